// SPDX-License-Identifier: GPL-2.0
/*
 * Every allocation that the module makes, and every copy from and to the user,
 * fails in turn.
 *
 * Each case is one system call upon a wheel that is made for it.  The call is
 * made to fail at its first chance, at its second, and so on until it comes
 * through untouched; after each of them the wheel is compared with what its
 * user has been told: the errno and the results, the counters, the rows of LIST,
 * the events of all that was armed, and whether it still works.  Then the same
 * is done for one call in the module's code after the other, also with a fault
 * that does not go away, and what the caller got is compared with the table
 * below, which stands in Documentation/fault-sites.rst.
 *
 * At the end no call of the module that can fail may be left that no case has
 * made fail.
 *
 * Copies of single values (get_user() and its kin) have no fault of their own:
 * for these, memory ends at each byte of each structure.
 */
#include "twheel_commands.h"
#include "twheel_module.h"
#include "fault_inject.h"

#include <sys/epoll.h>
#include <sys/uio.h>

#define TICK		TW_MS
/* When each case begins, and when all that it armed has expired. */
#define START		(20 * TW_MS)
#define FAR		(2 * TW_HOUR)

/* Of the baseline: what has expired by START, and what goes on expiring. */
#define EXPIRED_NS	(10 * TW_MS)
#define PERIOD		(7 * TW_MS)

#define KNOWN		1024

/* Room for arguments, where 32-bit calls reach it. */
#define ARENA		(1 << 18)

/* ---- a wheel, and what its user knows ------------------------------------ */

/* A timeout that was accepted and has not ended, by its user_data. */
struct known {
	__u64 id;		/* 0: none */
	__u64 deadline_ns;	/* the next one that the user has not read of */
	__u64 interval_ns;
};

/**
 * struct world - what one run of a case works upon
 * @fd: the wheel, or -errno of opening it
 * @other: epoll, or /proc/self/fdinfo
 * @compat: calls go the way of 32-bit programs
 * @drained: DRAIN succeeded
 * @real: the wheel has a real clock, which cannot be led to the end
 * @arena: the arguments of the call; the vector or the structure at its
 *	beginning, the entries from ENTRIES on
 * @nr: entries
 * @stride: their size
 * @known: by user_data
 * @nr_known: those that are there
 * @armed: counters that INFO should show
 * @cancelled: "
 * @revoked: "
 * @completed: "
 * @rearmed: "
 * @nr_enomem: entries that said ENOMEM
 * @where: for messages
 */
struct world {
	int fd;
	int other;
	bool compat;
	bool drained;
	bool real;
	char *arena;
	int nr;
	int stride;
	struct known known[KNOWN];
	__u64 nr_known;
	__u64 armed;
	__u64 cancelled;
	__u64 revoked;
	__u64 completed;
	__u64 rearmed;
	int nr_enomem;
	char where[256];
};

#define ENTRIES		4096

static void *entry_at(struct world *w, int i)
{
	return w->arena + ENTRIES + (size_t)i * w->stride;
}

/* A call by the gate of 32-bit programs, whose pointers are below 4 GB. */
static int compat_ioctl(int fd, unsigned long cmd, void *arg)
{
	long ret;

	asm volatile("int $0x80"
		     : "=a" (ret)
		     : "a" (54L), "b" ((long)fd), "c" (cmd), "d" (arg)
		     : "memory", "r8", "r9", "r10", "r11");
	return (int)ret;
}

static int call(struct world *w, unsigned long cmd, void *arg)
{
	return w->compat ? compat_ioctl(w->fd, cmd, arg) : tw_ioctl(w->fd, cmd, arg);
}

static void learn(struct world *w, __u64 user_data, __u64 id, __u64 deadline_ns,
		  __u64 interval_ns)
{
	w->known[user_data] = (struct known){ id, deadline_ns, interval_ns };
	w->nr_known++;
	w->armed++;
}

static void forget(struct world *w, __u64 user_data)
{
	w->known[user_data].id = 0;
	w->nr_known--;
}

/* ---- wheels for the cases ------------------------------------------------ */

static void open_wheel(struct __test_metadata *_metadata, struct world *w)
{
	w->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, w->fd);
}

/* Arms nr one-shots far ahead, that is, fills places. */
static void fill(struct __test_metadata *_metadata, struct world *w, int nr)
{
	static struct twheel_arm arms[KNOWN];
	int i;

	memset(arms, 0, sizeof(arms));
	for (i = 0; i < nr; i++) {
		arms[i].flags = TWHEEL_ARM_ABSOLUTE;
		arms[i].expires_ns = TW_HOUR + i * TW_MS;
		arms[i].user_data = w->armed + i;
	}
	ASSERT_EQ(nr, tw_arm_vec(w->fd, arms, nr));
	for (i = 0; i < nr; i++)
		learn(w, arms[i].user_data, arms[i].id, arms[i].expires_ns, 0);
}

/* A virtual wheel that nothing was armed on. */
static void make_empty(struct __test_metadata *_metadata, struct world *w)
{
	open_wheel(_metadata, w);
	ASSERT_EQ(0, tw_setup(w->fd, TWHEEL_CLOCK_VIRTUAL, TICK, 0));
}

/* And one at START with a timeout that pends and one that is unread. */
static void make_plain(struct __test_metadata *_metadata, struct world *w)
{
	__u64 id;

	make_empty(_metadata, w);
	fill(_metadata, w, 1);
	ASSERT_EQ(0, tw_arm1(w->fd, TWHEEL_ARM_ABSOLUTE, EXPIRED_NS, 0, w->armed, &id));
	learn(w, w->armed, id, EXPIRED_NS, 0);
	ASSERT_EQ(0, tw_advance(w->fd, START));
}

/* And one that also has a periodic one, which is both. */
static void make_usual(struct __test_metadata *_metadata, struct world *w)
{
	__u64 id;

	make_empty(_metadata, w);
	fill(_metadata, w, 1);
	ASSERT_EQ(0, tw_arm1(w->fd, TWHEEL_ARM_ABSOLUTE, EXPIRED_NS, 0, w->armed, &id));
	learn(w, w->armed, id, EXPIRED_NS, 0);
	ASSERT_EQ(0, tw_arm1(w->fd, TWHEEL_ARM_ABSOLUTE, EXPIRED_NS, PERIOD, w->armed, &id));
	learn(w, w->armed, id, EXPIRED_NS, PERIOD);
	ASSERT_EQ(0, tw_advance(w->fd, START));
}

/* ---- arguments ----------------------------------------------------------- */

static void poison_entries(struct world *w, int nr, int stride)
{
	w->nr = nr;
	w->stride = stride;
	memset(w->arena, 0, ARENA);
}

static void *vector_of(struct world *w, __u32 entry_size)
{
	struct twheel_vector *vector = (void *)w->arena;

	*vector = (struct twheel_vector){
		.size = sizeof(*vector),
		.entry_size = entry_size,
		.nr = w->nr,
		.entries = (uintptr_t)entry_at(w, 0),
	};
	return vector;
}

/* ARM of nr timeouts from user_data first on, each n-th of them periodic. */
static void arm_entries(struct world *w, int nr, int stride, int periodic)
{
	int i;

	poison_entries(w, nr, stride);
	for (i = 0; i < nr; i++) {
		struct twheel_arm *arm = entry_at(w, i);

		*arm = (struct twheel_arm){
			.flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = TW_HOUR + (i * 37 % 100) * TW_SEC,
			.interval_ns = periodic ? TW_MIN : 0,
			.user_data = w->armed + i,
			.id = TW_POISON64,
			.result = TW_POISON32,
		};
	}
	vector_of(w, stride);
}

/*
 * REARM of the one-shots from user_data first on, to earlier deadlines, so that
 * each needs room of its own in the wheel.
 */
static void rearm_entries(struct world *w, int first, int nr, __u64 interval_ns)
{
	int i;

	poison_entries(w, nr, sizeof(struct twheel_arm));
	for (i = 0; i < nr; i++) {
		struct twheel_arm *arm = entry_at(w, i);

		*arm = (struct twheel_arm){
			.id = w->known[first + i].id,
			.flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = TW_MIN + i * TW_MS,
			.interval_ns = interval_ns,
			.user_data = first + i,
			.result = TW_POISON32,
		};
	}
	vector_of(w, w->stride);
}

/* ---- what the user is told ----------------------------------------------- */

/*
 * One entry's result, which is that of an attempt or, from the fault on, none.
 * Returns true when the entry succeeded.
 */
static bool entry_done(struct __test_metadata *_metadata, struct world *w, int ret, int i,
		       __s32 result, bool *faulted)
{
	if (result == (__s32)TW_POISON32) {
		*faulted = true;
	} else {
		EXPECT_FALSE(*faulted)
			TH_LOG("%s: entry %d is done, and one before it is not", w->where, i);
	}
	if (ret < 0) {
		/* Before the first timeout it is tried whether anything can be told. */
		EXPECT_TRUE(*faulted || (!i && result == ret))
			TH_LOG("%s: entry %d of a call that failed says %d", w->where, i, result);
		return false;
	}
	if (result == -ENOMEM) {
		w->nr_enomem++;
	} else if (!*faulted) {
		EXPECT_LE(0, result)
			TH_LOG("%s: entry %d", w->where, i);
	}
	return !*faulted && result >= 0;
}

static void told_by_arm(struct __test_metadata *_metadata, struct world *w, int ret)
{
	bool faulted = false;
	int i, nr_ok = 0;

	for (i = 0; i < w->nr; i++) {
		struct twheel_arm *arm = entry_at(w, i);

		if (!entry_done(_metadata, w, ret, i, arm->result, &faulted)) {
			EXPECT_EQ(arm->result == (__s32)TW_POISON32 ? TW_POISON64 : 0, arm->id)
				TH_LOG("%s: entry %d was not armed and has an id", w->where, i);
			continue;
		}
		learn(w, arm->user_data, arm->id, arm->expires_ns, arm->interval_ns);
		nr_ok++;
	}
	if (ret >= 0) {
		EXPECT_EQ(nr_ok, ret)
			TH_LOG("%s", w->where);
	}
}

static void told_by_rearm(struct __test_metadata *_metadata, struct world *w, int ret)
{
	bool faulted = false;
	int i, nr_ok = 0;

	for (i = 0; i < w->nr; i++) {
		struct twheel_arm *arm = entry_at(w, i);
		struct known *known = &w->known[arm->user_data];

		if (!entry_done(_metadata, w, ret, i, arm->result, &faulted))
			continue;
		EXPECT_EQ(TWHEEL_WAS_PENDING, arm->result)
			TH_LOG("%s: entry %d", w->where, i);
		known->deadline_ns = arm->expires_ns;
		known->interval_ns = arm->interval_ns;
		w->rearmed++;
		nr_ok++;
	}
	if (ret >= 0) {
		EXPECT_EQ(nr_ok, ret)
			TH_LOG("%s", w->where);
	}
}

/*
 * The table begins with a page, which has room for the numbers of 509.  All their
 * places have to be in use, by timeouts that go before anything is compared.
 */
#define BALLAST		(509 * 102 - 3 - 2)

static struct twheel_arm ballast[BALLAST];

static void told_by_arm_table(struct __test_metadata *_metadata, struct world *w, int ret)
{
	static struct twheel_cancel cancels[BALLAST];
	int i;

	told_by_arm(_metadata, w, ret);
	for (i = 0; i < BALLAST; i++)
		cancels[i] = (struct twheel_cancel){ .id = ballast[i].id };
	ASSERT_EQ(BALLAST, tw_cancel_vec(w->fd, cancels, BALLAST))
		TH_LOG("%s", w->where);
	w->armed += BALLAST;
	w->cancelled += BALLAST;
}

/* Here the last entry is the one that is unread. */
static void told_by_cancel(struct __test_metadata *_metadata, struct world *w, int ret)
{
	bool faulted = false;
	int i, nr_ok = 0;

	for (i = 0; i < w->nr; i++) {
		struct twheel_cancel *cancel = entry_at(w, i);
		int user_data = i < w->nr - 1 ? i + 3 : 1;

		if (!entry_done(_metadata, w, ret, i, cancel->result, &faulted))
			continue;
		EXPECT_EQ(user_data == 1 ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING, cancel->result)
			TH_LOG("%s: entry %d", w->where, i);
		if (user_data == 1)
			w->revoked++;
		else
			w->cancelled++;
		forget(w, user_data);
		nr_ok++;
	}
	if (ret >= 0) {
		EXPECT_EQ(nr_ok, ret)
			TH_LOG("%s", w->where);
	}
}

/* A row of QUERY or LIST tells what the user knows; returns its user_data. */
static __u64 row_is_known(struct __test_metadata *_metadata, struct world *w,
			  const struct twheel_status *row)
{
	const struct known *known = &w->known[row->user_data];
	__u64 deadline_ns = known->deadline_ns;

	ASSERT_GT(KNOWN, row->user_data)
		TH_LOG("%s: a row says user_data %#llx", w->where, row->user_data);
	ASSERT_EQ(known->id, row->id)
		TH_LOG("%s: user_data %llu", w->where, row->user_data);
	EXPECT_EQ(0, row->result)
		TH_LOG("%s", w->where);
	EXPECT_EQ(known->interval_ns, row->interval_ns)
		TH_LOG("%s", w->where);
	/* One that has expired shows the next deadline, or the last one if it has ended. */
	if (known->interval_ns && deadline_ns < START) {
		__u64 passed = (START - deadline_ns) / known->interval_ns;

		deadline_ns += (passed + !w->drained) * known->interval_ns;
	}
	EXPECT_EQ(deadline_ns, row->deadline_ns)
		TH_LOG("%s: user_data %llu", w->where, row->user_data);
	return row->user_data;
}

static void told_by_query(struct __test_metadata *_metadata, struct world *w, int ret)
{
	bool faulted = false;
	int i, nr_ok = 0;

	for (i = 0; i < w->nr; i++) {
		struct twheel_status *row = entry_at(w, i);

		if (!entry_done(_metadata, w, ret, i, row->result, &faulted))
			continue;
		EXPECT_EQ(i, row_is_known(_metadata, w, row));
		nr_ok++;
	}
	if (ret >= 0) {
		EXPECT_EQ(nr_ok, ret)
			TH_LOG("%s", w->where);
	}
}

/* The walk goes on with the row that could not be written. */
static void told_by_list(struct __test_metadata *_metadata, struct world *w, int ret)
{
	struct twheel_list *list = (void *)w->arena;
	int i, nr = ret < 0 ? 0 : ret;
	__u64 cursor = list->cursor;
	bool seen[KNOWN] = {};

	for (i = 0; i < nr; i++)
		seen[row_is_known(_metadata, w, entry_at(w, i))] = true;
	nr += tw_list(w->fd, &cursor, entry_at(w, nr), KNOWN);
	EXPECT_EQ(w->nr_known, nr)
		TH_LOG("%s: rows, after the walk went on", w->where);
	for (; i < nr; i++) {
		__u64 user_data = row_is_known(_metadata, w, entry_at(w, i));

		EXPECT_FALSE(seen[user_data])
			TH_LOG("%s: row %d comes twice", w->where, i);
	}
}

/* An event of a timeout that the user knows, and all it should say. */
static void event_is_due(struct __test_metadata *_metadata, struct world *w,
			 const struct twheel_event *event, __u64 now_ns, int drained)
{
	struct known *known = &w->known[event->user_data];
	__u64 count = 1;

	ASSERT_GT(KNOWN, event->user_data)
		TH_LOG("%s: an event says user_data %#llx", w->where, event->user_data);
	ASSERT_EQ(known->id, event->id)
		TH_LOG("%s: user_data %llu, twice or never armed", w->where, event->user_data);
	if (known->deadline_ns > now_ns)
		count = 0;
	else if (known->interval_ns)
		count = (now_ns - known->deadline_ns) / known->interval_ns + 1;
	EXPECT_EQ(count, event->count)
		TH_LOG("%s: user_data %llu", w->where, event->user_data);
	EXPECT_EQ(count ? known->deadline_ns + (count - 1) * known->interval_ns :
			  known->deadline_ns, event->deadline_ns)
		TH_LOG("%s: user_data %llu", w->where, event->user_data);
	EXPECT_EQ(drained && (!count || known->interval_ns) ? TWHEEL_EVENT_DRAINED : 0,
		  event->flags)
		TH_LOG("%s: user_data %llu", w->where, event->user_data);
	if (known->interval_ns && !drained) {
		known->deadline_ns += count * known->interval_ns;
	} else {
		if (!event->flags)
			w->completed++;
		forget(w, event->user_data);
	}
}

static void told_by_read(struct __test_metadata *_metadata, struct world *w, int ret)
{
	int i;

	for (i = 0; i < ret; i++)
		event_is_due(_metadata, w, entry_at(w, i), START, false);
	/* What was not delivered was not written, either, or not as an event. */
	EXPECT_TRUE(ret < 0 ? ret == -EFAULT : ret > 0)
		TH_LOG("%s: read says %d", w->where, ret);
}

static void told_nothing(struct __test_metadata *_metadata, struct world *w, int ret)
{
	(void)_metadata;
	(void)w;
	(void)ret;
}

/* INFO writes all of it, or nothing. */
static void told_by_info(struct __test_metadata *_metadata, struct world *w, int ret)
{
	const struct twheel_info *info = (void *)w->arena;

	EXPECT_EQ(ret ? TW_POISON64 : w->armed, info->armed)
		TH_LOG("%s", w->where);
}

/* A wheel that could not be set up is as new; it is set up now. */
static void told_by_setup(struct __test_metadata *_metadata, struct world *w, int ret)
{
	const struct twheel_setup *setup = (void *)w->arena;
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(w->fd, &info));
	if (!ret) {
		EXPECT_EQ(setup->slots ? setup->slots : 1024, info.slots)
			TH_LOG("%s", w->where);
		EXPECT_EQ(TWHEEL_CLOCK_VIRTUAL, info.clock)
			TH_LOG("%s", w->where);
		return;
	}
	EXPECT_TRUE(!info.levels && info.slots == 1024 && info.clock == TWHEEL_CLOCK_MONOTONIC)
		TH_LOG("%s: SETUP failed, and left clock %u, %u slots, %u levels", w->where,
		       info.clock, info.slots, info.levels);
	ASSERT_EQ(0, tw_setup(w->fd, TWHEEL_CLOCK_VIRTUAL, TICK, 0))
		TH_LOG("%s: SETUP after one that failed", w->where);
}

/*
 * The first ARM, when it failed as a whole, has left SETUP open.  It has no
 * virtual clock to be led to the end: what it armed is cancelled.
 */
static void told_by_first_arm(struct __test_metadata *_metadata, struct world *w, int ret)
{
	struct twheel_info info;
	int i;

	told_by_arm(_metadata, w, ret);
	w->real = ret >= 0;
	ASSERT_EQ(0, tw_info(w->fd, &info));
	EXPECT_EQ(w->real, !!info.levels)
		TH_LOG("%s: %u levels", w->where, info.levels);
	EXPECT_EQ(w->real ? -EBUSY : 0, tw_setup(w->fd, TWHEEL_CLOCK_VIRTUAL, TICK, 0))
		TH_LOG("%s", w->where);
	EXPECT_EQ(w->nr_known, info.live)
		TH_LOG("%s", w->where);
	for (i = 0; i < KNOWN; i++) {
		if (!w->known[i].id)
			continue;
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(w->fd, w->known[i].id))
			TH_LOG("%s", w->where);
		forget(w, i);
		w->cancelled++;
	}
}

static void told_by_drain(struct __test_metadata *_metadata, struct world *w, int ret)
{
	EXPECT_EQ(0, ret)
		TH_LOG("%s", w->where);
	w->drained = !ret;
}

static void told_by_open(struct __test_metadata *_metadata, struct world *w, int ret)
{
	if (ret < 0) {
		EXPECT_EQ(0, tw_wheels_open())
			TH_LOG("%s", w->where);
		open_wheel(_metadata, w);
	}
	ASSERT_EQ(0, tw_setup(w->fd, TWHEEL_CLOCK_VIRTUAL, TICK, 0))
		TH_LOG("%s", w->where);
}

/* close() destroys the wheel: the checks need another one. */
static void told_by_close(struct __test_metadata *_metadata, struct world *w, int ret)
{
	EXPECT_EQ(0, ret)
		TH_LOG("%s", w->where);
	EXPECT_EQ(0, tw_wait_wheels_open(0))
		TH_LOG("%s", w->where);
	memset(w->known, 0, sizeof(w->known));
	w->nr_known = 0;
	w->armed = 0;
	make_empty(_metadata, w);
}

/* ---- what holds after each of them --------------------------------------- */

static void check_counters(struct __test_metadata *_metadata, struct world *w)
{
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(w->fd, &info));
	EXPECT_EQ(w->nr_known, info.live)
		TH_LOG("%s: live", w->where);
	EXPECT_EQ(w->armed, info.armed)
		TH_LOG("%s: armed", w->where);
	EXPECT_EQ(w->cancelled, info.cancelled)
		TH_LOG("%s: cancelled", w->where);
	EXPECT_EQ(w->revoked, info.revoked)
		TH_LOG("%s: revoked", w->where);
	EXPECT_EQ(w->completed, info.completed)
		TH_LOG("%s: completed", w->where);
	EXPECT_EQ(w->rearmed, info.rearmed)
		TH_LOG("%s: rearmed", w->where);
	tw_expect_accounts(_metadata, w->fd, __LINE__);
}

/* LIST has exactly what the user believes to be armed. */
static void check_list(struct __test_metadata *_metadata, struct world *w)
{
	static struct twheel_status rows[KNOWN];
	bool seen[KNOWN] = {};
	int i, nr = tw_list_all(w->fd, rows, KNOWN, KNOWN);

	ASSERT_EQ(w->nr_known, nr)
		TH_LOG("%s: rows", w->where);
	for (i = 0; i < nr; i++) {
		__u64 user_data = row_is_known(_metadata, w, &rows[i]);

		EXPECT_FALSE(seen[user_data])
			TH_LOG("%s: user_data %llu twice", w->where, user_data);
		seen[user_data] = true;
	}
}

/* And each of these has its event, once. */
static void check_events(struct __test_metadata *_metadata, struct world *w)
{
	static struct twheel_event events[KNOWN];
	__u64 wanted = w->nr_known;
	int i, nr;

	if (!w->drained && !w->real) {
		ASSERT_EQ(0, tw_advance(w->fd, FAR))
			TH_LOG("%s", w->where);
	}
	nr = tw_read(w->fd, events, KNOWN);
	if (!wanted) {
		EXPECT_EQ(w->drained ? 0 : -EAGAIN, nr)
			TH_LOG("%s: read", w->where);
		return;
	}
	ASSERT_EQ(wanted, nr)
		TH_LOG("%s: events", w->where);
	for (i = 0; i < nr; i++)
		event_is_due(_metadata, w, &events[i], w->drained ? START : FAR, w->drained);
	EXPECT_EQ(w->drained ? 0 : -EAGAIN, tw_read(w->fd, events, 1))
		TH_LOG("%s: one more event", w->where);
}

/* What is left are periodic ones; then a new one comes and goes. */
static void check_it_works(struct __test_metadata *_metadata, struct world *w)
{
	struct twheel_event event;
	__u64 id;
	int i;

	if (w->drained)
		return;
	for (i = 0; i < KNOWN; i++) {
		if (!w->known[i].id)
			continue;
		EXPECT_NE(0, w->known[i].interval_ns)
			TH_LOG("%s: user_data %d has not expired", w->where, i);
		EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(w->fd, w->known[i].id))
			TH_LOG("%s: user_data %d", w->where, i);
		forget(w, i);
		w->cancelled++;
	}
	ASSERT_EQ(0, tw_arm_in(w->fd, TICK, &id))
		TH_LOG("%s", w->where);
	if (!w->real) {
		ASSERT_EQ(0, tw_advance(w->fd, FAR + TICK))
			TH_LOG("%s", w->where);
	}
	ASSERT_EQ(1, tw_wait_event(w->fd, &event, w->real ? TW_PATIENCE_MS : 0))
		TH_LOG("%s", w->where);
	EXPECT_EQ(id, event.id)
		TH_LOG("%s", w->where);
	w->armed++;
	w->completed++;
}

/* ---- the cases ----------------------------------------------------------- */

/**
 * struct op - a case: one system call
 * @name: of the call and what is special
 * @prepare: makes the wheel and the arguments
 * @run: the call, and nothing else that could fail
 * @told: what the user learns from its outcome
 * @nr: what it returns when nothing fails, entries; 0 for a plain success
 * @compat: 32-bit programs get there by another way
 * @indirect: it calls back what the kernel gave to it, which may fail
 * @slow: not to be repeated more often than needed
 * @only: at calls whose name begins so, others have cases of their own; NULL: at all
 */
struct op {
	const char *name;
	void (*prepare)(struct __test_metadata *_metadata, struct world *w);
	int (*run)(struct world *w);
	void (*told)(struct __test_metadata *_metadata, struct world *w, int ret);
	int nr;
	bool compat;
	bool indirect;
	bool slow;
	const char *only;
};

static int run_arm(struct world *w)
{
	return call(w, TWHEEL_IOC_ARM, w->arena);
}

static int run_rearm(struct world *w)
{
	return call(w, TWHEEL_IOC_REARM, w->arena);
}

static int run_cancel(struct world *w)
{
	return call(w, TWHEEL_IOC_CANCEL, w->arena);
}

static int run_query(struct world *w)
{
	return call(w, TWHEEL_IOC_QUERY, w->arena);
}

static int run_list(struct world *w)
{
	return call(w, TWHEEL_IOC_LIST, w->arena);
}

static int run_info(struct world *w)
{
	return call(w, TWHEEL_IOC_INFO, w->arena);
}

static int run_setup(struct world *w)
{
	return call(w, TWHEEL_IOC_SETUP, w->arena);
}

static int run_advance(struct world *w)
{
	return call(w, TWHEEL_IOC_ADVANCE, w->arena);
}

static int run_drain(struct world *w)
{
	return call(w, TWHEEL_IOC_DRAIN, NULL);
}

static int run_open(struct world *w)
{
	w->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	return w->fd < 0 ? w->fd : 0;
}

/* The table, which stays with the wheel; the mapping does not. */
static int run_map(struct world *w)
{
	const size_t size = 8 * 4096;
	void *table = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);

	return table == MAP_FAILED ? -errno : munmap(table, size);
}

static int run_close(struct world *w)
{
	return close(w->fd) ? -errno : 0;
}

static int run_read(struct world *w)
{
	ssize_t bytes = read(w->fd, entry_at(w, 0), w->nr * sizeof(struct twheel_event));

	return bytes < 0 ? -errno : (int)(bytes / sizeof(struct twheel_event));
}

/* Pieces that end within events. */
#define PIECE		(3 * sizeof(struct twheel_event) + 12)

static int run_readv(struct world *w)
{
	struct iovec iov[16];
	size_t left = w->nr * sizeof(struct twheel_event);
	char *at = entry_at(w, 0);
	ssize_t bytes;
	int i;

	for (i = 0; left && i < (int)ARRAY_SIZE(iov); i++) {
		iov[i] = (struct iovec){ at, left < PIECE ? left : PIECE };
		at += iov[i].iov_len;
		left -= iov[i].iov_len;
	}
	bytes = readv(w->fd, iov, i);
	if (bytes > 0 && bytes % sizeof(struct twheel_event))
		return TW_BROKEN;
	return bytes < 0 ? -errno : (int)(bytes / sizeof(struct twheel_event));
}

static int run_poll(struct world *w)
{
	int revents = tw_poll(w->fd, POLLIN, 0);

	return revents == POLLIN ? 0 : TW_BROKEN;
}

/* More descriptors than poll() has room for on its stack. */
static int run_poll_many(struct world *w)
{
	struct pollfd *pfd = (void *)w->arena;
	int i;

	for (i = 0; i < 64; i++)
		pfd[i] = (struct pollfd){ .fd = w->fd, .events = POLLPRI };
	/* To be told at once would not need to wait anywhere. */
	return poll(pfd, 64, 1) < 0 ? -errno : 0;
}

static int run_epoll_ctl(struct world *w)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(w->other, EPOLL_CTL_ADD, w->fd, &event) ? -errno : 0;
}

static int run_fdinfo(struct world *w)
{
	return pread(w->other, w->arena, 4096, 0) > 0 ? 0 : -errno;
}

static void prepare_open(struct __test_metadata *_metadata, struct world *w)
{
	(void)_metadata;
	w->fd = -1;
}

static void setup_argument(struct world *w, __u32 slots)
{
	struct twheel_setup *setup = (void *)w->arena;

	*setup = (struct twheel_setup){
		.size = sizeof(*setup),
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = TICK,
		.slots = slots,
	};
}

static void prepare_setup(struct __test_metadata *_metadata, struct world *w)
{
	open_wheel(_metadata, w);
	setup_argument(w, 0);
}

/* More than are taken as contiguous pages, and few enough to fail one after the other. */
static void prepare_setup_wide(struct __test_metadata *_metadata, struct world *w)
{
	open_wheel(_metadata, w);
	setup_argument(w, 1 << 14);
}

/* Two batches, on a wheel that was not set up. */
static void prepare_first_arm(struct __test_metadata *_metadata, struct world *w)
{
	int i;

	open_wheel(_metadata, w);
	arm_entries(w, 40, sizeof(struct twheel_arm), 0);
	/* Real time: far enough to stay pending. */
	for (i = 0; i < w->nr; i++)
		((struct twheel_arm *)entry_at(w, i))->flags = 0;
}

static void prepare_arm(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	arm_entries(w, 40, sizeof(struct twheel_arm), 0);
}

/* Entries with a tail that this version does not know: each is copied alone. */
static void prepare_arm_wide(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	arm_entries(w, 5, 64, 0);
}

/* A page has 102 places. */
static void prepare_arm_page(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	fill(_metadata, w, 102 - 3 - 2);
	arm_entries(w, 4, sizeof(struct twheel_arm), 0);
}

static void prepare_arm_table(struct __test_metadata *_metadata, struct world *w)
{
	int i;

	make_usual(_metadata, w);
	for (i = 0; i < BALLAST; i++)
		ballast[i] = (struct twheel_arm){ .expires_ns = TW_HOUR };
	ASSERT_EQ(BALLAST, tw_arm_vec(w->fd, ballast, BALLAST));
	arm_entries(w, 4, sizeof(struct twheel_arm), 0);
}

/* A page of the refresh table has 512 words. */
static void prepare_arm_words(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	ASSERT_EQ(0, run_map(w));
	fill(_metadata, w, 5 * 102 - 3 - 2);
	arm_entries(w, 4, sizeof(struct twheel_arm), 0);
}

static void prepare_arm_periodic(struct __test_metadata *_metadata, struct world *w)
{
	make_plain(_metadata, w);
	arm_entries(w, 4, sizeof(struct twheel_arm), 1);
}

/* Their pages of chunks have room for some of the entries they need then, not for all. */
static void prepare_rearm(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	fill(_metadata, w, 60);
	ASSERT_EQ(0, tw_advance(w->fd, START));
	rearm_entries(w, 3, 40, 0);
}

static void prepare_rearm_periodic(struct __test_metadata *_metadata, struct world *w)
{
	make_plain(_metadata, w);
	fill(_metadata, w, 8);
	ASSERT_EQ(0, tw_advance(w->fd, START));
	rearm_entries(w, 2, 8, TW_MIN);
}

static void prepare_cancel(struct __test_metadata *_metadata, struct world *w)
{
	int i;

	make_usual(_metadata, w);
	fill(_metadata, w, 39);
	poison_entries(w, 40, sizeof(struct twheel_cancel));
	for (i = 0; i < w->nr; i++)
		*(struct twheel_cancel *)entry_at(w, i) = (struct twheel_cancel){
			.id = w->known[i < w->nr - 1 ? i + 3 : 1].id,
			.result = TW_POISON32,
		};
	vector_of(w, w->stride);
}

static void prepare_query(struct __test_metadata *_metadata, struct world *w)
{
	int i;

	make_usual(_metadata, w);
	fill(_metadata, w, 37);
	poison_entries(w, 40, sizeof(struct twheel_status));
	for (i = 0; i < w->nr; i++) {
		struct twheel_status *row = entry_at(w, i);

		memset(row, TW_POISON, sizeof(*row));
		row->id = w->known[i].id;
	}
	vector_of(w, w->stride);
}

static void prepare_list(struct __test_metadata *_metadata, struct world *w)
{
	struct twheel_list *list = (void *)w->arena;

	make_usual(_metadata, w);
	fill(_metadata, w, 37);
	poison_entries(w, 40, sizeof(struct twheel_status));
	*list = (struct twheel_list){
		.size = sizeof(*list),
		.entry_size = w->stride,
		.nr = w->nr,
		.entries = (uintptr_t)entry_at(w, 0),
	};
}

static void prepare_info(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	memset(w->arena, TW_POISON, sizeof(struct twheel_info));
	*(__u32 *)w->arena = sizeof(struct twheel_info);
}

static void prepare_advance(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	*(struct twheel_advance *)w->arena = (struct twheel_advance){
		.size = sizeof(struct twheel_advance),
		.to_ns = START,
	};
}

/* 40 events that can be read, two batches. */
static void prepare_read(struct __test_metadata *_metadata, struct world *w)
{
	static struct twheel_arm arms[38];
	int i;

	make_usual(_metadata, w);
	for (i = 0; i < 38; i++)
		arms[i] = (struct twheel_arm){
			.flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = EXPIRED_NS,
			.user_data = w->armed + i,
		};
	ASSERT_EQ(38, tw_arm_vec(w->fd, arms, 38));
	for (i = 0; i < 38; i++)
		learn(w, arms[i].user_data, arms[i].id, EXPIRED_NS, 0);
	ASSERT_EQ(0, tw_advance(w->fd, START));
	poison_entries(w, 40, sizeof(struct twheel_event));
}

static void prepare_epoll(struct __test_metadata *_metadata, struct world *w)
{
	make_usual(_metadata, w);
	w->other = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_LE(0, w->other);
}

static void prepare_fdinfo(struct __test_metadata *_metadata, struct world *w)
{
	char path[64];

	make_usual(_metadata, w);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", w->fd);
	w->other = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, w->other);
}

/* ---- the table ----------------------------------------------------------- */

/**
 * struct row - what the caller of a case got from a fault at one call
 * @op: the case
 * @where: the function of the module, in its source
 * @callee: what it calls
 * @once: when the first fault happens there, the second and so on; what comes
 *	through in spite of a failed allocation is left out, if anything else is
 *	there to be told
 * @always: when all of them happen
 *
 * "done" is a success as if nothing had been.
 */
static const struct row {
	const char *op;
	const char *where;
	const char *callee;
	const char *once;
	const char *always;
} rows[] = {
	{ "open", "twheel_fop_open()", "kmalloc", "ENOMEM", "ENOMEM" },
	{ "open", "twheel_create()", "pages", "ENOMEM", "ENOMEM" },
	{ "open", "twheel_user_get()", "kmalloc", "ENOMEM", "ENOMEM" },
	{ "SETUP", "struct_copy_in()", "copy_from_user", "EFAULT", "EFAULT" },
	{ "SETUP", "twheel_start()", "pages", "done", "ENOMEM" },
	{ "SETUP of 2^14 slots", "struct_copy_in()", "copy_from_user", "EFAULT", "EFAULT" },
	{ "SETUP of 2^14 slots", "twheel_start()", "pages", "ENOMEM", "ENOMEM" },
	{
		"ARM, the first", "entries_copy_in()", "copy_from_user",
		"EFAULT; 32 of 40", "EFAULT"
	},
	{ "ARM, the first", "twheel_start()", "pages", "done", "ENOMEM" },
	{
		"ARM, the first", "chunks_add()", "pages", "done", "0 of 40, 40 ENOMEM"
	},
	{
		"ARM, the first", "arena_grow()", "pages",
		"done", "0 of 40, 40 ENOMEM"
	},
	{ "ARM, the first", "table_grow()", "pages", "done", "0 of 40, 40 ENOMEM" },
	{ "ARM", "entries_copy_in()", "copy_from_user", "EFAULT; 32 of 40", "EFAULT" },
	{
		"ARM", "chunks_add()", "pages", "done", "32 of 40, 8 ENOMEM"
	},
	{ "ARM, wide entries", "struct_copy_in()", "copy_from_user", "EFAULT; done", "EFAULT" },
	{ "ARM into a new page", "entries_copy_in()", "copy_from_user", "EFAULT", "EFAULT" },
	{
		"ARM into a new page", "arena_grow()", "pages",
		"done", "2 of 4, 2 ENOMEM"
	},
	{ "ARM into a new table", "table_grow()", "pages", "done", "2 of 4, 2 ENOMEM" },
	{
		"ARM into a new page of words", "entries_copy_in()", "copy_from_user",
		"EFAULT", "EFAULT"
	},
	{
		"ARM into a new page of words", "words_add()", "pages",
		"done", "2 of 4, 2 ENOMEM"
	},
	{
		"ARM into a new page of words", "arena_grow()", "pages",
		"done", "2 of 4, 2 ENOMEM"
	},
	{ "mmap", "twheel_map_words()", "pages", "ENOMEM", "ENOMEM" },
	{ "mmap", "words_add()", "pages", "ENOMEM", "ENOMEM" },
	{ "mmap", "table_grow()", "pages", "ENOMEM", "ENOMEM" },
	{ "ARM, periodic", "entries_copy_in()", "copy_from_user", "EFAULT", "EFAULT" },
	{
		"ARM, periodic", "periodic_add()", "pages",
		"3 of 4, 1 ENOMEM", "0 of 4, 4 ENOMEM"
	},
	{ "REARM", "entries_copy_in()", "copy_from_user", "EFAULT; 32 of 40", "EFAULT" },
	{
		"REARM", "chunks_add()", "pages", "done", "29 of 40, 11 ENOMEM"
	},
	{ "REARM, now periodic", "entries_copy_in()", "copy_from_user", "EFAULT", "EFAULT" },
	{
		"REARM, now periodic", "periodic_add()", "pages",
		"7 of 8, 1 ENOMEM", "0 of 8, 8 ENOMEM"
	},
	{ "CANCEL", "entries_copy_in()", "copy_from_user", "EFAULT; 32 of 40", "EFAULT" },
	{ "QUERY", "entries_copy_in()", "copy_from_user", "EFAULT; 24 of 40", "EFAULT" },
	{ "QUERY", "status_report()", "copy_to_user", "EFAULT; done; 24 of 40; done", "EFAULT" },
	{ "LIST", "struct_copy_in()", "copy_from_user", "EFAULT", "EFAULT" },
	{ "LIST", "rows_report()", "copy_to_user", "EFAULT; 1 to 39 of 40", "EFAULT" },
	{ "INFO", "info_ioctl()", "copy_to_user", "EFAULT", "EFAULT" },
	{ "ADVANCE", "struct_copy_in()", "copy_from_user", "EFAULT", "EFAULT" },
	{ "read", "events_read()", "copy_to_iter", "EFAULT; 32 of 40", "EFAULT" },
	{
		"readv", "events_read()", "copy_to_iter",
		"EFAULT; done; 32 of 40; done", "EFAULT"
	},
	{ "poll of many", "twheel_fop_poll()", "poll_wait", "ENOMEM", "ENOMEM" },
	{ "epoll_ctl", "twheel_fop_poll()", "poll_wait", "ENOMEM", "ENOMEM" },
};

/* What calls that can fail are called here; NULL for those that cannot. */
static const char *callee_name(const char *callee)
{
	static const struct {
		const char *start;
		const char *name;
	} names[] = {
		{ "page_get", "pages" },
		{ "area_get", "pages" },
		{ "area_alloc", "pages" },
		{ "__vmalloc", "pages" },
		{ "vmalloc", "pages" },
		{ "vzalloc", "pages" },
		{ "__kvmalloc", "kvmalloc" },
		{ "kvmalloc", "kvmalloc" },
		{ "__kmalloc", "kmalloc" },
		{ "kmalloc", "kmalloc" },
		{ "kmem_cache_alloc", "kmem_cache_alloc" },
		{ "get_zeroed_page", "pages" },
		{ "__get_free_pages", "pages" },
		{ "get_free_pages", "pages" },
		{ "alloc_pages", "pages" },
		{ "__alloc_pages", "pages" },
		{ "_copy_from_user", "copy_from_user" },
		{ "_copy_to_user", "copy_to_user" },
		{ "_copy_to_iter", "copy_to_iter" },
		{ "_copy_from_iter", "copy_from_iter" },
		{ "should_fail_usercopy", "copied inline" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(callee, names[i].start, strlen(names[i].start)))
			return names[i].name;
	return NULL;
}

/* ---- making them fail ---------------------------------------------------- */

/**
 * struct shot - where a run is made to fail
 * @kinds: of faults
 * @range: of code
 * @nth: which one; 0 for all of them
 */
struct shot {
	unsigned int kinds;
	struct fi_range range;
	unsigned int nth;
};

struct outcome {
	int ret;
	int nr_enomem;
};

/* Outcomes of one case. */
struct outcomes {
	int nr;
	struct outcome outcome[512];
};

/* Found by one test, needed by another. */
static struct shared {
	bool hit[ARRAY_SIZE(((struct fi_module *)NULL)->site)];
	bool row_seen[ARRAY_SIZE(rows)];
	int nr_cases;
} *shared;

static void __attribute__((constructor)) share(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
}

static void begin(struct __test_metadata *_metadata, struct world *w, const struct op *op,
		  bool compat)
{
	char *arena = w->arena;

	memset(w, 0, sizeof(*w));
	w->arena = arena;
	w->compat = compat;
	w->fd = -1;
	w->other = -1;
	memset(arena, 0, ENTRIES);
	op->prepare(_metadata, w);
}

static void end(struct world *w)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->other >= 0)
		close(w->other);
}

/* Makes the call.  Returns how many faults there were. */
static unsigned int fire(struct __test_metadata *_metadata, struct world *w, const struct op *op,
			 const struct shot *shot, int *ret)
{
	unsigned int left, nr;

	ASSERT_EQ(0, fi_filter(shot->kinds, shot->range));
	if (shot->nth) {
		ASSERT_EQ(0, fi_arm(shot->nth));
		*ret = op->run(w);
		left = fi_disarm();
		nr = shot->nth == FI_NEVER ? FI_NEVER - left : !left;
	} else {
		ASSERT_EQ(0, fi_mark("thread-self", true));
		ASSERT_EQ(0, fi_fail_always());
		*ret = op->run(w);
		nr = fi_fail_no_more();
		ASSERT_EQ(0, fi_mark("thread-self", false));
	}
	ASSERT_EQ(0, fi_filter(0, shot->range));
	return nr;
}

/* How many faults are possible there. */
static unsigned int probe(struct __test_metadata *_metadata, struct world *w, const struct op *op,
			  unsigned int kinds, struct fi_range range)
{
	const struct shot shot = { kinds, range, FI_NEVER };
	unsigned int nr;
	int ret;

	begin(_metadata, w, op, false);
	nr = fire(_metadata, w, op, &shot, &ret);
	end(w);
	return nr;
}

/* One run and all that has to hold after it.  False: nothing has failed. */
static bool shoot(struct __test_metadata *_metadata, struct world *w, const struct op *op,
		  const struct shot *shot, bool compat, struct outcome *outcome)
{
	unsigned int nr;
	int ret;

	begin(_metadata, w, op, compat);
	snprintf(w->where, sizeof(w->where), "%s%s, fault %u in %#llx-%#llx", op->name,
		 compat ? " (32-bit)" : "", shot->nth, shot->range.start, shot->range.end);
	nr = fire(_metadata, w, op, shot, &ret);
	op->told(_metadata, w, ret);
	*outcome = (struct outcome){ ret, w->nr_enomem };
	check_counters(_metadata, w);
	check_list(_metadata, w);
	check_events(_metadata, w);
	check_it_works(_metadata, w);
	check_counters(_metadata, w);
	end(w);
	EXPECT_EQ(0, tw_wait_wheels_open(0))
		TH_LOG("%s: wheels open", w->where);
	return nr;
}

/* ---- outcomes ------------------------------------------------------------ */

static bool is_done(const struct op *op, const struct outcome *outcome)
{
	return outcome->ret == op->nr && !outcome->nr_enomem;
}

static bool is_same(const struct outcome *a, const struct outcome *b)
{
	return a->ret == b->ret && a->nr_enomem == b->nr_enomem;
}

/* One like the last is not told again. */
static void outcomes_add(struct outcomes *outcomes, const struct outcome *outcome)
{
	if (outcomes->nr && is_same(&outcomes->outcome[outcomes->nr - 1], outcome))
		return;
	if (outcomes->nr < (int)ARRAY_SIZE(outcomes->outcome))
		outcomes->outcome[outcomes->nr++] = *outcome;
}

static bool outcomes_have(const struct outcomes *outcomes, const struct outcome *outcome)
{
	int i;

	for (i = 0; i < outcomes->nr; i++)
		if (is_same(&outcomes->outcome[i], outcome))
			return true;
	return false;
}

static void text_add(char *text, size_t size, const char *format, ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + len, size - len, format, args);
	va_end(args);
}

/* Outcomes as in the table; @last: of a run of such that differ by one. */
static void outcome_text(char *text, size_t size, const struct op *op,
			 const struct outcome *outcome, const struct outcome *last)
{
	if (*text)
		text_add(text, size, "; ");
	if (outcome->ret < 0)
		text_add(text, size, "%s", strerrorname_np(-outcome->ret));
	else if (is_done(op, outcome))
		text_add(text, size, "done");
	else if (last != outcome)
		text_add(text, size, "%d to %d of %d", outcome->ret, last->ret, op->nr);
	else
		text_add(text, size, "%d of %d", outcome->ret, op->nr);
	if (outcome->nr_enomem)
		text_add(text, size, ", %d ENOMEM", outcome->nr_enomem);
}

static void outcomes_text(char *text, size_t size, const struct op *op,
			  const struct outcomes *outcomes)
{
	const struct outcome *o = outcomes->outcome;
	int i, j;

	text[0] = '\0';
	for (i = 0; i < outcomes->nr; i = j + 1) {
		for (j = i; j + 1 < outcomes->nr && o[i].ret > 0 && !o[i].nr_enomem &&
		     !o[j + 1].nr_enomem && o[j + 1].ret == o[j].ret + 1; j++)
			;
		outcome_text(text, size, op, &o[i], &o[j]);
	}
}

/* ---- sites --------------------------------------------------------------- */

/* The outcomes are a row of the table. */
static void expect_row(struct __test_metadata *_metadata, const struct op *op, const char *callee,
		       const char *once, const char *always)
{
	int i, nr = 0;

	for (i = 0; i < (int)ARRAY_SIZE(rows); i++) {
		if (strcmp(rows[i].op, op->name) || strcmp(rows[i].callee, callee) ||
		    strcmp(rows[i].once, once) || strcmp(rows[i].always, always))
			continue;
		shared->row_seen[i] = true;
		nr++;
	}
	EXPECT_LT(0, nr)
		TH_LOG("the table has no row: %s | %s | %s | %s", op->name, callee, once, always);
}

/* One fault there after the other until nothing fails; what the caller got. */
static void shoot_once_each(struct __test_metadata *_metadata, struct world *w, const struct op *op,
			    struct shot shot, struct outcomes *once, struct outcomes *all)
{
	const struct outcome done = { op->nr, 0 };
	struct outcome outcome;

	for (shot.nth = 1; shoot(_metadata, w, op, &shot, false, &outcome); shot.nth++) {
		outcomes_add(all, &outcome);
		/* Beneath one allocation there may be others that can be done without. */
		if (shot.kinds == FI_COPIES || !is_done(op, &outcome))
			outcomes_add(once, &outcome);
	}
	EXPECT_TRUE(is_done(op, &outcome))
		TH_LOG("%s: untouched, it returns %d", w->where, outcome.ret);
	if (!once->nr)
		outcomes_add(once, &done);
}

/*
 * One after the other, then all at once.  @callee: as in the table, or NULL for a
 * call that must come through whatever fails beneath it.
 */
static void shoot_site(struct __test_metadata *_metadata, struct world *w, const struct op *op,
		       const char *callee, const char *function, struct shot shot,
		       struct outcomes *all)
{
	char once_text[256], always_text[256] = "";
	struct outcomes once = {};
	struct outcome outcome;

	shoot_once_each(_metadata, w, op, shot, &once, all);
	outcomes_text(once_text, sizeof(once_text), op, &once);
	if (!callee) {
		EXPECT_STREQ("done", once_text)
			TH_LOG("%s: called from %s(), and cannot fail", op->name, function);
		return;
	}
	shot.nth = 0;
	EXPECT_TRUE(shoot(_metadata, w, op, &shot, false, &outcome))
		TH_LOG("%s: nothing failed", w->where);
	outcomes_add(all, &outcome);
	outcome_text(always_text, sizeof(always_text), op, &outcome, &outcome);

	ksft_print_msg("site: %s | %s in %s() | %s | %s\n", op->name, callee, function, once_text,
		       always_text);
	fflush(stdout);
	expect_row(_metadata, op, callee, once_text, always_text);
}

/* Finds the calls out of the module at which this case can fail. */
static void find_sites(struct __test_metadata *_metadata, struct world *w, const struct op *op,
		       const struct fi_module *module, int first, int last, int *found, int *nr)
{
	const struct fi_range range = {
		module->site[first].address,
		module->site[last].address + 1,
	};
	int middle = first + (last - first) / 2;

	/* Between them are the module's calls to itself: it may be none of ours. */
	if (!probe(_metadata, w, op, FI_ALL, range))
		return;
	if (first == last) {
		found[(*nr)++] = first;
		return;
	}
	find_sites(_metadata, w, op, module, first, middle, found, nr);
	find_sites(_metadata, w, op, module, middle + 1, last, found, nr);
}

/* ---- tests --------------------------------------------------------------- */

FIXTURE(call) {
	struct world world;
	struct fi_module module;
	struct outcomes outcomes;
};

FIXTURE_VARIANT(call) {
	struct op op;
};

FIXTURE_VARIANT_ADD(call, open) {
	.op = {
		.name = "open",
		.prepare = prepare_open, .run = run_open, .told = told_by_open,
	},
};

FIXTURE_VARIANT_ADD(call, setup) {
	.op = {
		.name = "SETUP", .compat = true,
		.prepare = prepare_setup, .run = run_setup, .told = told_by_setup,
	},
};

FIXTURE_VARIANT_ADD(call, setup_wide) {
	.op = {
		.name = "SETUP of 2^14 slots",
		.prepare = prepare_setup_wide, .run = run_setup, .told = told_by_setup,
	},
};

FIXTURE_VARIANT_ADD(call, arm_first) {
	.op = {
		.name = "ARM, the first", .nr = 40, .compat = true,
		.prepare = prepare_first_arm, .run = run_arm, .told = told_by_first_arm,
	},
};

FIXTURE_VARIANT_ADD(call, arm) {
	.op = {
		.name = "ARM", .nr = 40, .compat = true,
		.prepare = prepare_arm, .run = run_arm, .told = told_by_arm,
	},
};

FIXTURE_VARIANT_ADD(call, arm_wide) {
	.op = {
		.name = "ARM, wide entries", .nr = 5, .compat = true,
		.prepare = prepare_arm_wide, .run = run_arm, .told = told_by_arm,
	},
};

FIXTURE_VARIANT_ADD(call, arm_page) {
	.op = {
		.name = "ARM into a new page", .nr = 4,
		.prepare = prepare_arm_page, .run = run_arm, .told = told_by_arm,
	},
};

FIXTURE_VARIANT_ADD(call, arm_table) {
	.op = {
		.name = "ARM into a new table", .nr = 4, .slow = true, .only = "area_",
		.prepare = prepare_arm_table, .run = run_arm, .told = told_by_arm_table,
	},
};

FIXTURE_VARIANT_ADD(call, arm_words) {
	.op = {
		.name = "ARM into a new page of words", .nr = 4,
		.prepare = prepare_arm_words, .run = run_arm, .told = told_by_arm,
	},
};

FIXTURE_VARIANT_ADD(call, map) {
	.op = {
		.name = "mmap",
		.prepare = make_usual, .run = run_map, .told = told_nothing,
	},
};

FIXTURE_VARIANT_ADD(call, arm_periodic) {
	.op = {
		.name = "ARM, periodic", .nr = 4,
		.prepare = prepare_arm_periodic, .run = run_arm, .told = told_by_arm,
	},
};

FIXTURE_VARIANT_ADD(call, rearm) {
	.op = {
		.name = "REARM", .nr = 40, .compat = true,
		.prepare = prepare_rearm, .run = run_rearm, .told = told_by_rearm,
	},
};

FIXTURE_VARIANT_ADD(call, rearm_periodic) {
	.op = {
		.name = "REARM, now periodic", .nr = 8,
		.prepare = prepare_rearm_periodic, .run = run_rearm, .told = told_by_rearm,
	},
};

FIXTURE_VARIANT_ADD(call, cancel) {
	.op = {
		.name = "CANCEL", .nr = 40, .compat = true,
		.prepare = prepare_cancel, .run = run_cancel, .told = told_by_cancel,
	},
};

FIXTURE_VARIANT_ADD(call, query) {
	.op = {
		.name = "QUERY", .nr = 40, .compat = true,
		.prepare = prepare_query, .run = run_query, .told = told_by_query,
	},
};

FIXTURE_VARIANT_ADD(call, list) {
	.op = {
		.name = "LIST", .nr = 40, .compat = true,
		.prepare = prepare_list, .run = run_list, .told = told_by_list,
	},
};

FIXTURE_VARIANT_ADD(call, info) {
	.op = {
		.name = "INFO", .compat = true,
		.prepare = prepare_info, .run = run_info, .told = told_by_info,
	},
};

FIXTURE_VARIANT_ADD(call, advance) {
	.op = {
		.name = "ADVANCE", .compat = true,
		.prepare = prepare_advance, .run = run_advance, .told = told_nothing,
	},
};

FIXTURE_VARIANT_ADD(call, drain) {
	.op = {
		.name = "DRAIN", .compat = true,
		.prepare = make_usual, .run = run_drain, .told = told_by_drain,
	},
};

FIXTURE_VARIANT_ADD(call, read) {
	.op = {
		.name = "read", .nr = 40,
		.prepare = prepare_read, .run = run_read, .told = told_by_read,
	},
};

FIXTURE_VARIANT_ADD(call, readv) {
	.op = {
		.name = "readv", .nr = 40,
		.prepare = prepare_read, .run = run_readv, .told = told_by_read,
	},
};

FIXTURE_VARIANT_ADD(call, poll) {
	.op = {
		.name = "poll",
		.prepare = make_usual, .run = run_poll, .told = told_nothing,
	},
};

FIXTURE_VARIANT_ADD(call, poll_of_many) {
	.op = {
		.name = "poll of many", .indirect = true,
		.prepare = make_usual, .run = run_poll_many, .told = told_nothing,
	},
};

FIXTURE_VARIANT_ADD(call, epoll_ctl) {
	.op = {
		.name = "epoll_ctl", .indirect = true,
		.prepare = prepare_epoll, .run = run_epoll_ctl, .told = told_nothing,
	},
};

FIXTURE_VARIANT_ADD(call, fdinfo) {
	.op = {
		.name = "fdinfo",
		.prepare = prepare_fdinfo, .run = run_fdinfo, .told = told_nothing,
	},
};

FIXTURE_VARIANT_ADD(call, close) {
	.op = {
		.name = "close",
		.prepare = make_usual, .run = run_close, .told = told_by_close,
	},
};

#define NR_CASES	24

FIXTURE_SETUP(call)
{
	int ret = fi_open();

	if (ret)
		SKIP(return, "no fault injection with a filter for stacks: %s", strerror(-ret));
	ASSERT_EQ(0, fi_spare_kmemleak());
	ASSERT_EQ(0, fi_read_module(&self->module, tw_module_path()));
	self->outcomes.nr = 0;
	self->world.arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->world.arena);
}

FIXTURE_TEARDOWN(call)
{
	fi_fail_no_more();
}

/*
 * Calls that can fail by what they are called, and any other that turns out to.
 * Returns how many there are at @found.
 */
static int sites_of(struct __test_metadata *_metadata, FIXTURE_DATA(call) *self,
		    const struct op *op, int *found)
{
	const struct fi_module *module = &self->module;
	unsigned int total = 0;
	int i, nr = 0;

	for (i = 0; i < module->nr; i++) {
		const struct fi_site *site = &module->site[i];
		unsigned int possible;

		if (!callee_name(site->callee) ||
		    (op->only && strncmp(op->only, site->callee, strlen(op->only))))
			continue;
		possible = probe(_metadata, &self->world, op, FI_ALL,
				 (struct fi_range){ site->address, site->address + 1 });
		if (possible)
			found[nr++] = i;
		total += possible;
	}
	if (!op->only && total != probe(_metadata, &self->world, op, FI_ALL, module->code)) {
		nr = 0;
		find_sites(_metadata, &self->world, op, module, 0, module->nr - 1, found, &nr);
	}
	return nr;
}

static void each_site(struct __test_metadata *_metadata, FIXTURE_DATA(call) *self,
		      const struct op *op)
{
	const struct fi_module *module = &self->module;
	int found[64], i, nr = sites_of(_metadata, self, op, found);
	unsigned int copies, copies_found = 0;

	for (i = 0; i < nr; i++) {
		const struct fi_site *site = &module->site[found[i]];
		struct shot shot = { FI_ALL, { site->address, site->address + 1 }, 0 };

		copies = probe(_metadata, &self->world, op, FI_COPIES, shot.range);
		if (copies)
			shot.kinds = FI_COPIES;
		copies_found += copies;
		shoot_site(_metadata, &self->world, op, callee_name(site->callee), site->function,
			   shot, &self->outcomes);
		shared->hit[found[i]] = true;
	}
	if (op->only)
		return;
	copies = probe(_metadata, &self->world, op, FI_COPIES, module->code);
	EXPECT_EQ(copies, copies_found)
		TH_LOG("%s: copies that stand in no relocation", op->name);
	if (op->indirect) {
		struct shot shot = { FI_ALL, module->code, 0 };

		shoot_site(_metadata, &self->world, op, "poll_wait", "twheel_fop_poll", shot,
			   &self->outcomes);
	}
}

/* All that the case does within the module, whatever it is called by. */
static void each_fault(struct __test_metadata *_metadata, FIXTURE_DATA(call) *self,
		       const struct op *op, bool compat)
{
	struct shot shot = { FI_ALL, self->module.code, 1 };
	struct outcome outcome;

	while (shoot(_metadata, &self->world, op, &shot, compat, &outcome)) {
		EXPECT_TRUE(is_done(op, &outcome) || outcomes_have(&self->outcomes, &outcome))
			TH_LOG("%s: %d, %d ENOMEM", self->world.where, outcome.ret,
			       outcome.nr_enomem);
		shot.nth++;
	}
	EXPECT_TRUE(is_done(op, &outcome))
		TH_LOG("%s: untouched, it returns %d", self->world.where, outcome.ret);
	ksft_print_msg("%s%s: %u faults, one after the other\n", op->name,
		       compat ? " (32-bit)" : "", shot.nth - 1);
	fflush(stdout);
}

TEST_F_TIMEOUT(call, that_fails_says_so_and_leaves_no_trace, 100)
{
	each_site(_metadata, self, &variant->op);
	if (!variant->op.only)
		each_fault(_metadata, self, &variant->op, false);
	if (variant->op.compat)
		each_fault(_metadata, self, &variant->op, true);
	shared->nr_cases++;
}

/* Kernel memory that this cgroup is charged for, bytes; -1: it does not tell. */
static long kernel_bytes(void)
{
	char line[256], path[300] = "/sys/fs/cgroup";
	FILE *file = fopen("/proc/self/cgroup", "re");
	long bytes = -1;

	if (!file)
		return -1;
	if (fgets(line, sizeof(line), file) && !strncmp(line, "0::", 3)) {
		line[strcspn(line, "\n")] = '\0';
		text_add(path, sizeof(path), "%s/memory.stat", line + 3);
	}
	fclose(file);
	/* What RCU has yet to free does not count. */
	tw_sleep(100 * TW_MS);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file) && bytes < 0)
		if (sscanf(line, "kernel %ld", &bytes) != 1)
			bytes = -1;
	if (file)
		fclose(file);
	return bytes;
}

#define ROUNDS		16

/* How many bytes more the kernel has for us after a number of failures. */
static long bytes_kept(struct __test_metadata *_metadata, struct world *w, const struct op *op,
		       const struct shot *shot)
{
	long before = kernel_bytes();
	int round, ret;

	for (round = 0; round < ROUNDS; round++) {
		begin(_metadata, w, op, false);
		EXPECT_LT(0, fire(_metadata, w, op, shot, &ret));
		end(w);
	}
	return kernel_bytes() - before;
}

/*
 * Pages, of which kmemleak knows nothing.  A page that is lost in each round
 * shows twice over, each time; what allocators keep for later does not.
 */
TEST_F_TIMEOUT(call, that_fails_gives_all_its_pages_back, 100)
{
	const long limit = ROUNDS * 4096 / 2;
	const struct fi_module *module = &self->module;
	const struct op *op = &variant->op;
	int found[64], i, again, nr;

	if (kernel_bytes() < 0)
		SKIP(return, "no memory cgroup that tells of kernel memory");
	nr = op->slow ? 0 : sites_of(_metadata, self, op, found);
	for (i = 0; i < nr; i++) {
		const struct fi_site *site = &module->site[found[i]];
		const struct shot shot = {
			FI_ALLOCATIONS, { site->address, site->address + 1 }, 0
		};
		long kept = limit;

		if (!probe(_metadata, &self->world, op, FI_ALLOCATIONS, shot.range))
			continue;
		for (again = 0; again < 5 && kept >= limit; again++)
			kept = bytes_kept(_metadata, &self->world, op, &shot);
		EXPECT_GT(limit, kept)
			TH_LOG("%s, %s in %s(): %ld bytes more after %d rounds", op->name,
			       site->callee, site->function, kept, ROUNDS);
	}
}

/* ---- again and again on one wheel ---------------------------------------- */

/* What is promised and not given back adds up. */
FIXTURE(again) {
	struct fi_module module;
	int fd;
};

#define PLACES		100
#define FAILURES	200

FIXTURE_SETUP(again)
{
	int ret = fi_open();

	if (ret)
		SKIP(return, "no fault injection with a filter for stacks: %s", strerror(-ret));
	ASSERT_EQ(0, fi_spare_kmemleak());
	ASSERT_EQ(0, fi_read_module(&self->module, tw_module_path()));
	self->fd = -1;
}

FIXTURE_TEARDOWN(again)
{
	fi_fail_no_more();
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* A vector of 32 for which no memory is to be had at that call; true if it was asked for. */
static bool fail_vector(struct __test_metadata *_metadata, FIXTURE_DATA(again) *self,
			const struct fi_site *site, unsigned long cmd, struct twheel_arm *arms)
{
	unsigned int nr;

	ASSERT_EQ(0, fi_filter(FI_ALLOCATIONS,
			       (struct fi_range){ site->address, site->address + 1 }));
	ASSERT_EQ(0, fi_mark("thread-self", true));
	ASSERT_EQ(0, fi_fail_always());
	ASSERT_LE(0, tw_vector(self->fd, cmd, arms, sizeof(*arms), 32));
	nr = fi_fail_no_more();
	ASSERT_EQ(0, fi_mark("thread-self", false));
	return nr;
}

static void another_wheel(struct __test_metadata *_metadata, FIXTURE_DATA(again) *self)
{
	if (self->fd >= 0) {
		EXPECT_ACCOUNTS(self->fd);
		close(self->fd);
	}
	self->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TICK, PLACES));
}

static void expect_all_places(struct __test_metadata *_metadata, int fd)
{
	struct twheel_arm arms[PLACES + 1];
	int i;

	memset(arms, 0, sizeof(arms));
	for (i = 0; i < PLACES + 1; i++)
		arms[i].expires_ns = TW_HOUR;
	EXPECT_EQ(PLACES, tw_arm_vec(fd, arms, PLACES + 1));
	EXPECT_EQ(0, arms[PLACES - 1].result);
	EXPECT_EQ(-EAGAIN, arms[PLACES].result);
}

/*
 * Kernel memory, where the cgroup tells, must not grow by what FAILURES vectors of 32
 * would take: 20 bytes an entry at the least.
 */
static void expect_no_more_memory(struct __test_metadata *_metadata, long before,
				  const struct fi_site *site)
{
	long after = before < 0 ? before : kernel_bytes();

	EXPECT_GE(before + FAILURES * 32 * 20, after)
		TH_LOG("%s in %s(): %ld bytes more", site->callee, site->function, after - before);
}

/*
 * ARM, on a wheel for each call that it comes by; returns at how many of them it
 * failed.  Room in the wheel cannot be seen but by what it costs, later.
 */
static int arm_in_vain(struct __test_metadata *_metadata, FIXTURE_DATA(again) *self,
		       __u64 interval_ns)
{
	struct twheel_arm arms[32];
	int i, j, round, nr = 0;
	long before;

	for (i = 0; i < self->module.nr; i++) {
		const struct fi_site *site = &self->module.site[i];

		if (!callee_name(site->callee))
			continue;
		another_wheel(_metadata, self);
		before = kernel_bytes();
		for (round = 0; round < FAILURES; round++) {
			memset(arms, 0, sizeof(arms));
			for (j = 0; j < 32; j++) {
				arms[j].expires_ns = TW_HOUR;
				arms[j].interval_ns = interval_ns;
			}
			if (!fail_vector(_metadata, self, site, TWHEEL_IOC_ARM, arms))
				break;
			ASSERT_EQ(-ENOMEM, arms[31].result)
				TH_LOG("%s in %s(), round %d", site->callee, site->function, round);
		}
		/* One that it does not come by; it has armed. */
		if (!round)
			continue;
		EXPECT_EQ(FAILURES, round)
			TH_LOG("%s in %s()", site->callee, site->function);
		expect_all_places(_metadata, self->fd);
		expect_no_more_memory(_metadata, before, site);
		nr++;
	}
	return nr;
}

TEST_F_TIMEOUT(again, arms_that_fail_keep_neither_place_nor_room, 120)
{
	/* Chunks, a page of places, the table. */
	EXPECT_LE(3, arm_in_vain(_metadata, self, 0));
}

TEST_F_TIMEOUT(again, arms_without_what_periods_need_keep_neither_place_nor_room, 120)
{
	EXPECT_LE(3 + 1, arm_in_vain(_metadata, self, TW_SEC));
}

/* Nor re-arming, which asks for room for as many as it is given. */
TEST_F_TIMEOUT(again, rearms_that_fail_keep_no_room, 120)
{
	struct twheel_arm arms[32];
	int i, j, round, nr = 0;
	long before;

	for (i = 0; i < self->module.nr; i++) {
		const struct fi_site *site = &self->module.site[i];

		if (!callee_name(site->callee))
			continue;
		another_wheel(_metadata, self);
		memset(arms, 0, sizeof(arms));
		for (j = 0; j < 32; j++)
			arms[j].expires_ns = TW_HOUR;
		ASSERT_EQ(32, tw_arm_vec(self->fd, arms, 32));
		ASSERT_EQ(0, tw_advance(self->fd, 0));
		before = kernel_bytes();
		for (j = 0; j < 32; j++)
			arms[j].interval_ns = TW_SEC;
		for (round = 0; round < FAILURES; round++) {
			if (!fail_vector(_metadata, self, site, TWHEEL_IOC_REARM, arms))
				break;
			ASSERT_EQ(-ENOMEM, arms[31].result)
				TH_LOG("%s in %s(), round %d", site->callee, site->function, round);
		}
		if (!round)
			continue;
		EXPECT_EQ(FAILURES, round)
			TH_LOG("%s in %s()", site->callee, site->function);
		ASSERT_EQ(32, tw_rearm_vec(self->fd, arms, 32));
		expect_no_more_memory(_metadata, before, site);
		nr++;
	}
	/* What periods need. */
	EXPECT_LE(1, nr);
}

/* ---- memory that ends ---------------------------------------------------- */

/*
 * Three timeouts, and two pages of which the second cannot be reached, or not be
 * written.  What is laid across the edge ends at any of its bytes.
 */
FIXTURE(memory) {
	int fd;
	size_t page;
	char *edge;
	struct twheel_arm arms[3];
};

FIXTURE_VARIANT(memory) {
	int protection;
};

FIXTURE_VARIANT_ADD(memory, that_ends) {
	.protection = PROT_NONE,
};

FIXTURE_VARIANT_ADD(memory, that_ends_for_who_writes) {
	.protection = PROT_READ,
};

static void three_timeouts(struct __test_metadata *_metadata, FIXTURE_DATA(memory) *self)
{
	int i;

	if (self->fd >= 0)
		close(self->fd);
	self->fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TICK);
	ASSERT_LE(0, self->fd);
	for (i = 0; i < 3; i++)
		self->arms[i] = (struct twheel_arm){
			.flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = TW_HOUR,
			.user_data = i,
		};
	ASSERT_EQ(3, tw_arm_vec(self->fd, self->arms, 3));
}

FIXTURE_SETUP(memory)
{
	char *map;

	self->fd = -1;
	self->page = sysconf(_SC_PAGESIZE);
	map = mmap(NULL, 2 * self->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		   -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)map);
	self->edge = map + self->page;
	three_timeouts(_metadata, self);
}

FIXTURE_TEARDOWN(memory)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Lays bytes where so many of them are before the edge. */
static void *lay(struct __test_metadata *_metadata, FIXTURE_DATA(memory) *self, int protection,
		 const void *bytes, size_t size, size_t before)
{
	ASSERT_EQ(0, mprotect(self->edge, self->page, PROT_READ | PROT_WRITE));
	memcpy(self->edge - before, bytes, size);
	ASSERT_EQ(0, mprotect(self->edge, self->page, protection));
	return self->edge - before;
}

#define offsetofend(type, member)					\
	(offsetof(type, member) + sizeof(((type *)NULL)->member))

/* Up to where an argument or an entry of stride bytes is written, bytes; 0 when it is not. */
static size_t written(unsigned long cmd, size_t stride)
{
	bool entry = stride;

	switch (cmd) {
	case TWHEEL_IOC_INFO:
		return sizeof(struct twheel_info);
	case TWHEEL_IOC_LIST:
		/* What a newer caller knows and this kernel does not is cleared. */
		return entry ? stride : offsetofend(struct twheel_list, cursor);
	case TWHEEL_IOC_ARM:
	case TWHEEL_IOC_REARM:
		return entry ? offsetofend(struct twheel_arm, result) :
			       offsetofend(struct twheel_vector, nr_done);
	case TWHEEL_IOC_CANCEL:
		return entry ? offsetofend(struct twheel_cancel, result) :
			       offsetofend(struct twheel_vector, nr_done);
	case TWHEEL_IOC_QUERY:
		return entry ? sizeof(struct twheel_status) :
			       offsetofend(struct twheel_vector, nr_done);
	default:
		return 0;
	}
}

TEST_F_TIMEOUT(memory, within_an_argument_says_efault, 120)
{
	union tw_argument argument;
	union tw_element element;
	struct tw_snapshot before;
	size_t i, k;

	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		const struct tw_command *command = &tw_commands[i];
		size_t end = variant->protection == PROT_NONE ? command->size :
							written(command->cmd, 0);

		for (k = 0; k < end; k++) {
			void *at;

			tw_make_good(command, self->arms[0].id, &argument, &element);
			at = lay(_metadata, self, variant->protection, &argument, command->size, k);
			EXPECT_EQ(-EFAULT, tw_ioctl(self->fd, command->cmd, at))
				TH_LOG("%s, %zu bytes of %u", command->name, k, command->size);
		}
		EXPECT_UNCHANGED(self->fd, &before);
	}
}

/* What a newer caller knows and this kernel does not is cleared. */
TEST_F_TIMEOUT(memory, within_the_tail_of_a_larger_info_says_efault, 120)
{
	union tw_argument argument = {};
	size_t k, size = sizeof(argument.info) + 24;

	argument.info.size = size;
	for (k = sizeof(argument.info); k < size; k++) {
		void *at = lay(_metadata, self, variant->protection, &argument, size, k);

		EXPECT_EQ(-EFAULT, tw_ioctl(self->fd, TWHEEL_IOC_INFO, at))
			TH_LOG("%zu bytes of %zu", k, size);
	}
}

/* How many entries of a command were done, by the counters. */
static int entries_done(struct __test_metadata *_metadata, int fd, unsigned long cmd, int ret)
{
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(fd, &info));
	switch (cmd) {
	case TWHEEL_IOC_ARM:
		return info.armed - 3;
	case TWHEEL_IOC_REARM:
		return info.rearmed;
	case TWHEEL_IOC_CANCEL:
		return info.cancelled;
	default:
		return ret;
	}
}

/* Of three entries the first is good, and of the second so many bytes are. */
static void entry_across_the_edge(struct __test_metadata *_metadata, FIXTURE_DATA(memory) *self,
				  int protection, const struct tw_command *command,
				  __u32 stride, size_t good)
{
	unsigned char bytes[3 * 128] = {};
	union tw_argument argument;
	union tw_element element;
	bool fits = good >= written(command->cmd, stride);
	int i, ret, wanted;

	three_timeouts(_metadata, self);
	for (i = 0; i < 3; i++) {
		tw_make_good(command, self->arms[i].id, &argument, &element);
		memcpy(bytes + i * stride, &element, command->entry_size);
	}
	/* The vector and the list begin alike, and have their entries elsewhere. */
	argument.vector.entry_size = stride;
	argument.vector.nr = 3;
	if (command->cmd == TWHEEL_IOC_LIST)
		argument.list.entries = (uintptr_t)lay(_metadata, self, protection, bytes,
						       3 * stride, stride + good);
	else
		argument.vector.entries = (uintptr_t)lay(_metadata, self, protection, bytes,
							 3 * stride, stride + good);
	/* Where it cannot be read, either, what is only written may still fit. */
	wanted = fits && (protection == PROT_READ || command->cmd == TWHEEL_IOC_LIST) ? 2 : 1;
	ret = tw_ioctl(self->fd, command->cmd, &argument);
	EXPECT_EQ(wanted, ret)
		TH_LOG("%s, %zu bytes of %u", command->name, good, stride);
	EXPECT_EQ(wanted, entries_done(_metadata, self->fd, command->cmd, ret))
		TH_LOG("%s, %zu bytes of %u", command->name, good, stride);
	if (command->cmd != TWHEEL_IOC_LIST) {
		EXPECT_EQ(wanted, argument.vector.nr_done)
			TH_LOG("%s, %zu bytes of %u", command->name, good, stride);
	}
}

TEST_F_TIMEOUT(memory, within_an_entry_stops_before_it, 100)
{
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		const struct tw_command *command = &tw_commands[i];
		__u32 stride = command->entry_size;

		for (k = 0; k < stride; k++)
			entry_across_the_edge(_metadata, self, variant->protection, command,
					      stride, k);
		/* With a tail that has to be zero, and is read. */
		for (k = 0; stride && k < stride + 24; k++)
			entry_across_the_edge(_metadata, self, variant->protection, command,
					      stride + 24, k);
	}
}

/* Of three timeouts that expired, each has its event once: read there, or then. */
static void expect_three(struct __test_metadata *_metadata, FIXTURE_DATA(memory) *self,
			 const char *at, int got)
{
	struct twheel_event events[3];
	bool seen[3] = {};
	int i;

	memcpy(events, at, got * sizeof(events[0]));
	EXPECT_EQ(3 - got, tw_read(self->fd, events + got, 3 - got));
	for (i = 0; i < 3; i++) {
		ASSERT_GT(3, events[i].user_data);
		EXPECT_FALSE(seen[events[i].user_data]);
		seen[events[i].user_data] = true;
	}
}

TEST_F_TIMEOUT(memory, within_an_event_stops_before_it, 120)
{
	const size_t size = sizeof(struct twheel_event);
	struct twheel_event events[3] = {};
	size_t k;

	for (k = 0; k < 3 * size; k++) {
		int got = k / size;
		ssize_t bytes;
		void *at;

		three_timeouts(_metadata, self);
		ASSERT_EQ(0, tw_advance(self->fd, TW_HOUR));
		at = lay(_metadata, self, variant->protection, events, 3 * size, k);
		bytes = read(self->fd, at, 3 * size);
		EXPECT_EQ(got ? got * (ssize_t)size : -1, bytes)
			TH_LOG("%zu bytes", k);
		if (bytes < 0) {
			EXPECT_EQ(EFAULT, errno);
		}
		expect_three(_metadata, self, at, got);
	}
}

/* ---- the threads --------------------------------------------------------- */

FIXTURE(thread) {
	struct fi_module module;
};

FIXTURE_SETUP(thread)
{
	/* What the kernel keeps to watch over timers is not the module's. */
	static const char * const names[] = {
		"debug_object_init", "debug_object_init_on_stack", "debug_object_activate",
		"debug_object_deactivate", "debug_object_destroy", "debug_object_free",
		"debug_object_assert_init", "debug_object_active_state",
	};
	int ret = fi_open();

	if (ret)
		SKIP(return, "no fault injection with a filter for stacks: %s", strerror(-ret));
	ASSERT_EQ(0, fi_reject(fi_functions(names, ARRAY_SIZE(names))));
	ASSERT_EQ(0, fi_read_module(&self->module, tw_module_path()));
}

FIXTURE_TEARDOWN(thread)
{
	fi_fail_no_more();
}

/* Those of the kernel's that may do what the module has put into a workqueue. */
static bool is_kworker(const char *pid)
{
	char path[300], line[64];
	FILE *file;
	bool is;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	is = fgets(line, sizeof(line), file) && !strncmp(line, "kworker/", 8);
	fclose(file);
	return is;
}

/*
 * Marks the threads of the module to fail whenever they can; how many there are.
 * And kworkers: what they do for others is not in the filter.
 */
static int mark_threads(bool on)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	__u64 switches;
	int nr = 0;
	bool runs;

	while (proc && (entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		if (is_kworker(entry->d_name))
			fi_mark(entry->d_name, on);
		else if (tw_kthread_look(entry->d_name, &switches, &runs) &&
			 !fi_mark(entry->d_name, on))
			nr++;
	}
	if (proc)
		closedir(proc);
	return nr;
}

/* How many pages of a mapping are there. */
static int pages_there(void *table, size_t size)
{
	unsigned char there[64];
	size_t i, nr_pages = size / sysconf(_SC_PAGESIZE);
	int nr = 0;

	if (nr_pages > ARRAY_SIZE(there) || mincore(table, size, there))
		return -1;
	for (i = 0; i < nr_pages; i++)
		nr += there[i] & 1;
	return nr;
}

/*
 * Each thing that a thread does: enter, expire, cascade, sweep, shrink, drain, take
 * pages of the refresh table away.
 */
static void let_them_work(struct __test_metadata *_metadata, const struct twheel_setup *setup)
{
	static struct twheel_arm arms[KNOWN * 8];
	static struct twheel_event events[KNOWN * 8];
	int i, fd = tw_open_setup(O_NONBLOCK | O_CLOEXEC, setup);
	const size_t size = ARRAY_SIZE(arms) * sizeof(__u64);
	const int nr_pages = size / sysconf(_SC_PAGESIZE);
	__u64 *table;

	ASSERT_LE(0, fd);
	table = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)table);
	for (i = 0; i < (int)ARRAY_SIZE(arms); i++)
		arms[i] = (struct twheel_arm){
			.expires_ns = i % 3 ? TW_HOUR + i * TW_MS : i * TW_MS,
			.interval_ns = i % 5 ? 0 : TW_SEC,
			.flags = i % 10 ? 0 : TWHEEL_ARM_FIXED_DELAY,
		};
	ASSERT_EQ(ARRAY_SIZE(arms), tw_arm_vec(fd, arms, ARRAY_SIZE(arms)));
	for (i = 0; i < (int)ARRAY_SIZE(arms); i++)
		twheel_refresh(table, arms[i].id, 0);
	EXPECT_EQ(nr_pages, pages_there(table, size));
	for (i = 0; i < 4 && setup->clock == TWHEEL_CLOCK_VIRTUAL; i++) {
		ASSERT_EQ(0, tw_advance(fd, (i + 1) * TW_SEC));
		ASSERT_LT(0, tw_read(fd, events, ARRAY_SIZE(events) / 2));
	}
	/* More that are stale than it keeps. */
	for (i = 0; i < (int)ARRAY_SIZE(arms); i++)
		if (i % 8)
			tw_cancel1(fd, arms[i].id);
	if (setup->clock == TWHEEL_CLOCK_VIRTUAL) {
		ASSERT_EQ(0, tw_advance(fd, TW_HOUR));
	} else {
		ASSERT_LT(0, tw_poll(fd, POLLIN, TW_PATIENCE_MS));
	}
	ASSERT_EQ(0, tw_drain(fd));
	while (tw_read(fd, events, ARRAY_SIZE(events)) > 0)
		;
	EXPECT_ACCOUNTS(fd);
	for (i = 0; i < TW_PATIENCE_MS / 10 && pages_there(table, size) > nr_pages / 2; i++)
		tw_sleep(10 * TW_MS);
	EXPECT_GE(nr_pages / 2, pages_there(table, size));
	munmap(table, size);
	close(fd);
}

/* Room for all they do was made by those who asked for it. */
TEST_F_TIMEOUT(thread, of_the_module_allocates_nothing, 100)
{
	static const struct twheel_setup setups[] = {
		{ .clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS },
		{ .clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS, .slots = TWHEEL_SLOTS_MIN },
		{
			.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS, .slots = 64,
			.flags = TWHEEL_SETUP_ONE_LEVEL
		},
		{ .clock = TWHEEL_CLOCK_MONOTONIC, .tick_ns = TW_MS },
		{ .clock = TWHEEL_CLOCK_REALTIME, .tick_ns = TW_MS },
	};
	__u64 switches;
	int i, nr = tw_kthreads(&switches);

	ASSERT_LT(0, nr);
	ASSERT_EQ(0, fi_filter(FI_ALL, self->module.code));
	ASSERT_EQ(nr, mark_threads(true));
	ASSERT_EQ(0, fi_fail_always());
	for (i = 0; i < (int)ARRAY_SIZE(setups); i++)
		let_them_work(_metadata, &setups[i]);
	EXPECT_EQ(0, fi_fail_no_more())
		TH_LOG("faults in the threads");

	/* And it would have shown. */
	ASSERT_EQ(0, fi_mark("thread-self", true));
	ASSERT_EQ(0, fi_fail_always());
	EXPECT_EQ(-ENOMEM, tw_open(O_CLOEXEC));
	EXPECT_LT(0, fi_fail_no_more());
	ASSERT_EQ(0, fi_mark("thread-self", false));
	ASSERT_EQ(nr, mark_threads(false));
}

/* ---- all of them --------------------------------------------------------- */

FIXTURE(all) {
	struct fi_module module;
};

FIXTURE_SETUP(all)
{
	if (shared->nr_cases < NR_CASES)
		SKIP(return, "only %d of %d cases were run, or could be", shared->nr_cases,
		     NR_CASES);
	ASSERT_EQ(0, fi_read_module(&self->module, tw_module_path()));
}

FIXTURE_TEARDOWN(all)
{
}

/* Whoever adds a call that can fail has to add a case that comes by it. */
TEST_F(all, calls_that_can_fail_have_failed)
{
	int i;

	for (i = 0; i < self->module.nr; i++) {
		const struct fi_site *site = &self->module.site[i];

		if (!callee_name(site->callee))
			continue;
		EXPECT_TRUE(shared->hit[i])
			TH_LOG("%s in %s() has never failed", site->callee, site->function);
	}
}

TEST_F(all, rows_of_the_table_were_seen)
{
	int i;

	for (i = 0; i < (int)ARRAY_SIZE(rows); i++) {
		EXPECT_TRUE(shared->row_seen[i])
			TH_LOG("%s | %s in %s | %s | %s", rows[i].op, rows[i].callee,
			       rows[i].where, rows[i].once, rows[i].always);
	}
}

TEST_HARNESS_MAIN
