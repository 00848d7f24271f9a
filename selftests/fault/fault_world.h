/* SPDX-License-Identifier: GPL-2.0 */
/* A world: a wheel, the state that it must have, and the checks that the two agree. */
#ifndef TWHEEL_FAULT_WORLD_H
#define TWHEEL_FAULT_WORLD_H

#include "twheel_outside.h"

#define TICK		TW_MS
/* Times at which each case begins, and at which all its timeouts have expired. */
#define START		(20 * TW_MS)
#define FAR		(2 * TW_HOUR)

/* Each wheel has timeouts that have expired by START, and some that go on expiring. */
#define EXPIRED_NS	(10 * TW_MS)
#define PERIOD		(7 * TW_MS)

#define KNOWN		1024

/* Memory for arguments that 32-bit calls can reach, and the offset of the elements in it. */
#define ARENA		(1 << 18)
#define ENTRIES		4096

/* ---- the user's knowledge ------------------------------------------------ */

/* A timeout that was accepted and has not ended, by its user_data. */
struct known {
	__u64 id;		/* 0: none */
	__u64 deadline_ns;	/* the next deadline whose event the user has not read */
	__u64 interval_ns;
};

/**
 * struct world - the state of one run of a case
 * @fd: the wheel, or -errno of opening it
 * @other: another descriptor: epoll, or /proc/self/fdinfo
 * @compat: calls are made as 32-bit programs make them
 * @drained: DRAIN succeeded
 * @real: the wheel has a real clock, which cannot be led to the end
 * @arena: the arguments of the call; the vector or the structure at its
 *	beginning, the elements from ENTRIES on
 * @nr: elements
 * @stride: their size
 * @known: the timeouts, by user_data
 * @nr_known: how many of them are live
 * @armed: a counter that INFO should show, like those below
 * @cancelled: "
 * @revoked: "
 * @completed: "
 * @rearmed: "
 * @nr_enomem: elements that said ENOMEM
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
	size_t event_size;
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

static inline void *world_entry(struct world *w, int i)
{
	return w->arena + ENTRIES + (size_t)i * w->stride;
}

/* Read events of the size that this wheel has, as tw_read() does. */
static inline int world_read(struct world *w, struct twheel_event *events, size_t nr)
{
	static char wide[KNOWN * 64];
	ssize_t bytes;
	int i;

	if (w->event_size <= sizeof(*events))
		return tw_read(w->fd, events, nr);
	bytes = read(w->fd, wide, nr * w->event_size);
	if (bytes < 0)
		return -errno;
	for (i = 0; i < (int)(bytes / w->event_size); i++)
		memcpy(&events[i], &wide[i * w->event_size], sizeof(*events));
	return bytes % w->event_size ? TW_BROKEN : i;
}

/* Wait for an event of the size that this wheel has, as tw_wait_event() does. */
static inline int world_wait(struct world *w, struct twheel_event *event, int timeout_ms)
{
	int revents = tw_poll(w->fd, POLLIN, timeout_ms);

	return revents <= 0 ? revents : world_read(w, event, 1);
}

/* Make a call by the entry point of 32-bit programs, whose pointers are below 4 GB. */
static inline int compat_ioctl(int fd, unsigned long cmd, void *arg)
{
	long ret;

	asm volatile("int $0x80"
		     : "=a" (ret)
		     : "a" (54L), "b" ((long)fd), "c" (cmd), "d" (arg)
		     : "memory", "r8", "r9", "r10", "r11");
	return (int)ret;
}

static inline int world_ioctl(struct world *w, unsigned long cmd, void *arg)
{
	return w->compat ? compat_ioctl(w->fd, cmd, arg) : tw_ioctl(w->fd, cmd, arg);
}

static inline void world_learn(struct world *w, __u64 user_data, __u64 id, __u64 deadline_ns,
			       __u64 interval_ns)
{
	w->known[user_data] = (struct known){ id, deadline_ns, interval_ns };
	w->nr_known++;
	w->armed++;
}

static inline void world_forget(struct world *w, __u64 user_data)
{
	w->known[user_data].id = 0;
	w->nr_known--;
}

/* ---- wheels for the cases ------------------------------------------------ */

static inline void world_open(struct __test_metadata *_metadata, struct world *w)
{
	w->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, w->fd);
}

/* Arm nr one-shots far ahead, to use up places. */
static inline void world_fill(struct __test_metadata *_metadata, struct world *w, int nr)
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
		world_learn(w, arms[i].user_data, arms[i].id, arms[i].expires_ns, 0);
}

/* Make a virtual wheel on which nothing was armed. */
static inline void make_with(struct __test_metadata *_metadata, struct world *w,
			     __u32 flags, __u32 event_size)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = TICK,
		.flags = flags,
		.event_size = event_size,
	};

	world_open(_metadata, w);
	w->event_size = event_size;
	ASSERT_EQ(0, tw_setup_full(w->fd, &setup));
}

static inline void make_empty(struct __test_metadata *_metadata, struct world *w)
{
	make_with(_metadata, w, 0, 0);
}

/* Make a wheel at START, with a timeout that pends and one that is unread. */
static inline void make_plain(struct __test_metadata *_metadata, struct world *w)
{
	__u64 id;

	make_empty(_metadata, w);
	world_fill(_metadata, w, 1);
	ASSERT_EQ(0, tw_arm1(w->fd, TWHEEL_ARM_ABSOLUTE, EXPIRED_NS, 0, w->armed, &id));
	world_learn(w, w->armed, id, EXPIRED_NS, 0);
	ASSERT_EQ(0, tw_advance(w->fd, START));
}

/* Make an empty wheel at START, with a periodic timeout that pends and is unread. */
static inline void make_lively(struct __test_metadata *_metadata, struct world *w)
{
	__u64 id;

	world_fill(_metadata, w, 1);
	ASSERT_EQ(0, tw_arm1(w->fd, TWHEEL_ARM_ABSOLUTE, EXPIRED_NS, 0, w->armed, &id));
	world_learn(w, w->armed, id, EXPIRED_NS, 0);
	/* Its event is the first one, and makes a read take the slow path. */
	ASSERT_EQ(0, tw_arm1(w->fd, TWHEEL_ARM_ABSOLUTE, EXPIRED_NS - TW_MS, PERIOD, w->armed,
			     &id));
	world_learn(w, w->armed, id, EXPIRED_NS - TW_MS, PERIOD);
	ASSERT_EQ(0, tw_advance(w->fd, START));
}

static inline void make_usual(struct __test_metadata *_metadata, struct world *w)
{
	make_empty(_metadata, w);
	make_lively(_metadata, w);
}

/* ---- rows and events ----------------------------------------------------- */

/* Check a row of QUERY or LIST against the world; return its user_data. */
static inline __u64 row_is_known(struct __test_metadata *_metadata, struct world *w,
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
	/* If a timeout has expired, it shows its next deadline, or the last one if it has ended. */
	if (known->interval_ns && deadline_ns < START) {
		__u64 passed = (START - deadline_ns) / known->interval_ns;

		deadline_ns += (passed + !w->drained) * known->interval_ns;
	}
	EXPECT_EQ(deadline_ns, row->deadline_ns)
		TH_LOG("%s: user_data %llu", w->where, row->user_data);
	return row->user_data;
}

/* Check all fields of an event of a timeout that the world knows. */
static inline void event_is_due(struct __test_metadata *_metadata, struct world *w,
				const struct twheel_event *event, __u64 now_ns, int drained)
{
	struct known *known = &w->known[event->user_data];
	__u64 count = 1;
	__u32 flags = 0;

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
	if (drained && (!count || known->interval_ns))
		flags |= TWHEEL_EVENT_DRAINED;
	if (drained || !known->interval_ns)
		flags |= TWHEEL_EVENT_ENDED;
	EXPECT_EQ(flags, event->flags)
		TH_LOG("%s: user_data %llu", w->where, event->user_data);
	if (known->interval_ns && !drained) {
		known->deadline_ns += count * known->interval_ns;
	} else {
		if (!(event->flags & TWHEEL_EVENT_DRAINED))
			w->completed++;
		world_forget(w, event->user_data);
	}
}

/* ---- checks after each call ---------------------------------------------- */

static inline void check_counters(struct __test_metadata *_metadata, struct world *w)
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

/* Check that LIST shows exactly the timeouts that are live in the world. */
static inline void check_list(struct __test_metadata *_metadata, struct world *w)
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

/* Check that each of these has its event, once. */
static inline void check_events(struct __test_metadata *_metadata, struct world *w)
{
	static struct twheel_event events[KNOWN];
	__u64 wanted = w->nr_known;
	int i, nr;

	if (!w->drained && !w->real) {
		ASSERT_EQ(0, tw_advance(w->fd, FAR))
			TH_LOG("%s", w->where);
	}
	nr = world_read(w, events, KNOWN);
	if (!wanted) {
		EXPECT_EQ(w->drained ? 0 : -EAGAIN, nr)
			TH_LOG("%s: read", w->where);
		return;
	}
	ASSERT_EQ(wanted, nr)
		TH_LOG("%s: events", w->where);
	for (i = 0; i < nr; i++)
		event_is_due(_metadata, w, &events[i], w->drained ? START : FAR, w->drained);
	EXPECT_EQ(w->drained ? 0 : -EAGAIN, world_read(w, events, 1))
		TH_LOG("%s: one more event", w->where);
}

/* Only periodic timeouts are left; then a new one comes and goes. */
static inline void check_it_works(struct __test_metadata *_metadata, struct world *w)
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
		world_forget(w, i);
		w->cancelled++;
	}
	ASSERT_EQ(0, tw_arm_in(w->fd, TICK, &id))
		TH_LOG("%s", w->where);
	if (!w->real) {
		ASSERT_EQ(0, tw_advance(w->fd, FAR + TICK))
			TH_LOG("%s", w->where);
	}
	ASSERT_EQ(1, world_wait(w, &event, w->real ? TW_PATIENCE_MS : 0))
		TH_LOG("%s", w->where);
	EXPECT_EQ(id, event.id)
		TH_LOG("%s", w->where);
	w->armed++;
	w->completed++;
}

void check_world(struct __test_metadata *_metadata, struct world *w)
{
	check_counters(_metadata, w);
	check_list(_metadata, w);
	check_events(_metadata, w);
	check_it_works(_metadata, w);
	check_counters(_metadata, w);
}

#endif /* TWHEEL_FAULT_WORLD_H */
