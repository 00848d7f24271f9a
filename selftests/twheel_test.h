/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the device tests: thin wrappers around each call, and checks that hold for every wheel.
 * A wrapper returns the result of the call, or -errno; the "1" forms return the result of the one
 * element. Every out-parameter is filled with TW_POISON before the call: if the kernel forgets a
 * field, that is seen.
 *
 * Checks that can fail a test take _metadata first, under that name, because the macros of the
 * harness look for it. Their EXPECT_/ASSERT_ forms pass it on, together with their line.
 *
 * The harness ends each EXPECT_ and ASSERT_ with a statement of its own, which leaves the test
 * or runs the TH_LOG. So a loop or an if with one of them as its body needs braces.
 */
#ifndef TWHEEL_TEST_H
#define TWHEEL_TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* the harness wants it */
#endif

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/*
 * How long a program may take, all its tests together, seconds: tools/vm reads this, and kills the
 * program then. TEST_TIMEOUT overrides it, and reaches us as vm_timeout. A limit is for tests that
 * hang: it is ten times as long as the longest program takes without hardware virtualisation, as
 * are those below.
 *
 * The limits of single tests (TEST_F_TIMEOUT) are for a program of TW_USUAL_LIMIT_S, and grow with
 * the program's limit. No test gets more than is left: if one hangs, its name is reported before
 * the program is killed.
 */
#define TW_PROGRAM_LIMIT_S	1200
#define TW_USUAL_LIMIT_S	120
#define TW_LAST_WORDS_S		3

/* When the program began: its tests are its children, and know it too. */
static struct timespec tw_program_start;

static void __attribute__((constructor)) tw_program_begin(void)
{
	clock_gettime(CLOCK_MONOTONIC, &tw_program_start);
}

static inline int tw_program_limit_s(void)
{
	const char *text = getenv("vm_timeout");

	return text ? atoi(text) : TW_PROGRAM_LIMIT_S;
}

/* How long the program may still take, and end before it is killed; it may be negative. */
static inline int tw_program_left_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return tw_program_limit_s() - TW_LAST_WORDS_S - (now.tv_sec - tw_program_start.tv_sec);
}

static inline unsigned int tw_test_limit(unsigned int limit_s)
{
	int left_s = tw_program_left_s();

	if (!limit_s)
		return 0;
	limit_s = (unsigned long long)limit_s * tw_program_limit_s() / TW_USUAL_LIMIT_S;
	if (left_s < 1)
		left_s = 1;
	return limit_s < 1 ? 1 : (int)limit_s < left_s ? limit_s : (unsigned int)left_s;
}

/* The harness has one such call, for each test. */
#define alarm(limit_s)	alarm(tw_test_limit(limit_s))
#include "kselftest_harness.h"
#undef alarm

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <linux/twheel.h>
#include <twheel/device.h>	/* the words of the refresh table */

/*
 * The harness compares operands in their own types, and a literal is an int.
 * No test compares an unsigned value with a negative one.
 */
#pragma GCC diagnostic ignored "-Wsign-compare"
/* The harness leaves a failed test by longjmp(), on purpose. */
#pragma GCC diagnostic ignored "-Wclobbered"

#define TW_DEVICE	"/dev/twheel"
#define TW_PARAMETERS	"/sys/module/twheel/parameters"

#define TW_US		1000ULL
#define TW_MS		1000000ULL
#define TW_SEC		1000000000ULL
#define TW_MIN		(60 * TW_SEC)
#define TW_HOUR		(60 * TW_MIN)
#define TW_DAY		(24 * TW_HOUR)

#define TW_POISON	0xa5
#define TW_POISON32	0xa5a5a5a5U
#define TW_POISON64	0xa5a5a5a5a5a5a5a5ULL

/* The flags of an event that DRAIN made. */
#define TW_DRAINED	(TWHEEL_EVENT_DRAINED | TWHEEL_EVENT_ENDED)

/* No call returns this: if two outputs contradict each other, a wrapper does. */
#define TW_BROKEN	(-EPROTO)

/*
 * How long a test waits for an event that should come at once: half of the time of a test that has
 * no limit of its own. The machine may be an emulator under load: if an event is late, that is no
 * error; if it never comes, it is.
 */
#define TW_PATIENCE_MS	(15000 / TW_USUAL_LIMIT_S * tw_program_limit_s())

/* ---- settings ------------------------------------------------------------ */

/* A number that the caller may choose through the environment. */
static inline double tw_setting(const char *name, double otherwise)
{
	const char *text = getenv(name);

	return text ? atof(text) : otherwise;
}

/* ---- time ---------------------------------------------------------------- */

static inline __u64 tw_from_timespec(const struct timespec *ts)
{
	return ts->tv_sec * TW_SEC + ts->tv_nsec;
}

static inline struct timespec tw_to_timespec(__u64 ns)
{
	return (struct timespec){ .tv_sec = ns / TW_SEC, .tv_nsec = ns % TW_SEC };
}

/* The present time of a clock, nanoseconds; a wheel on this clock calls it now_ns. */
static inline __u64 tw_now(clockid_t clockid)
{
	struct timespec ts;

	if (clock_gettime(clockid, &ts))
		return 0;
	return tw_from_timespec(&ts);
}

/* Sleep at least this long, whatever signals come in. */
static inline void tw_sleep(__u64 ns)
{
	struct timespec left = tw_to_timespec(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

/* Sleep until the monotonic clock reaches a time: not at all if it has passed. */
static inline void tw_sleep_until(__u64 ns)
{
	const struct timespec end = tw_to_timespec(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

/*
 * Wait until a condition holds, checking it every so often; return whether it does. It goes by the
 * clock, not by the number of checks: if the kernel is slow, a check may take longer than the
 * pause, and the test around it would end first.
 */
#define TW_WAIT_FOR(condition, pause_ns) ({					\
	const __u64 tw_until_ns = tw_now(CLOCK_MONOTONIC) + TW_PATIENCE_MS * TW_MS;	\
	bool tw_holds = (condition);						\
										\
	while (!tw_holds && tw_now(CLOCK_MONOTONIC) < tw_until_ns) {		\
		tw_sleep(pause_ns);						\
		tw_holds = (condition);						\
	}									\
	tw_holds;								\
})

/*
 * Map memory that nobody has touched, with pages of the usual size: the first read of a page
 * faults, and then the first write does. If there is no memory, return NULL.
 */
static inline void *tw_fresh_memory(size_t length)
{
	void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);

	if (memory == MAP_FAILED)
		return NULL;
	/* If a kernel has no huge pages, it refuses the advice. */
	(void)madvise(memory, length, MADV_NOHUGEPAGE);
	return memory;
}

/* Numbers that look random and are the same in each run. */
static inline __u32 tw_random(__u64 *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return *seed >> 32;
}

/* The edge at which a deadline expires: never before it. */
static inline __u64 tw_round_up(__u64 deadline_ns, __u64 tick_ns)
{
	return (deadline_ns + tick_ns - 1) / tick_ns * tick_ns;
}

/* ---- one call each ------------------------------------------------------- */

static inline int tw_open(int flags)
{
	int fd = open(TW_DEVICE, O_RDWR | flags);

	return fd < 0 ? -errno : fd;
}

/* Make any command, with the argument as the caller made it. */
static inline int tw_ioctl(int fd, unsigned long cmd, void *arg)
{
	int ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

/* SETUP with every field as given; size is filled in and, if there is none, a clock. */
static inline int tw_setup_full(int fd, const struct twheel_setup *wanted)
{
	struct twheel_setup setup = *wanted;

	setup.size = sizeof(setup);
	if (!setup.clock)
		setup.clock = TWHEEL_CLOCK_MONOTONIC;
	return tw_ioctl(fd, TWHEEL_IOC_SETUP, &setup);
}

static inline int tw_setup(int fd, __u32 clock, __u64 tick_ns, __u32 max_pending)
{
	const struct twheel_setup setup = {
		.clock = clock,
		.tick_ns = tick_ns,
		.max_pending = max_pending,
	};

	return tw_setup_full(fd, &setup);
}

/* Open a wheel and set it up. Return the descriptor, or -errno of the call that failed. */
static inline int tw_open_setup(int flags, const struct twheel_setup *wanted)
{
	int fd = tw_open(flags);
	int ret;

	if (fd < 0)
		return fd;
	ret = tw_setup_full(fd, wanted);
	if (ret < 0) {
		close(fd);
		return ret;
	}
	return fd;
}

/* Make a wheel whose time moves by tw_advance() only; it stands at 0. */
static inline int tw_virtual(int flags, __u64 tick_ns)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = tick_ns,
	};

	return tw_open_setup(flags, &setup);
}

/* Make the same with this max_pending. */
static inline int tw_virtual_for(int flags, __u32 max_pending)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = TW_MS,
		.max_pending = max_pending,
	};

	return tw_open_setup(flags, &setup);
}

/* INFO with all its fields. */
static inline int tw_info(int fd, struct twheel_info *info)
{
	memset(info, TW_POISON, sizeof(*info));
	info->size = sizeof(*info);
	info->flags = TWHEEL_INFO_WALK;
	return tw_ioctl(fd, TWHEEL_IOC_INFO, info);
}

/* A grain of the refresh table is 1 << this, ns; INFO's refresh_shift is tested to be the same. */
static inline __u32 tw_shift(__u64 tick_ns)
{
	return 63 - __builtin_clzll(tick_ns);
}

static inline int tw_refresh(void *table, __u64 id, __u64 deadline_ns, __u32 shift)
{
	return twheel_refresh(table, id, twheel_refresh_deadline(deadline_ns, shift));
}

static inline void tw_refresh_blind(void *table, __u64 id, __u64 deadline_ns, __u32 shift)
{
	twheel_refresh_blind(table, id, twheel_refresh_deadline(deadline_ns, shift));
}

/* The deadline in force after one was stored: rounded up to a grain. */
static inline __u64 tw_refreshed_ns(__u64 deadline_ns, __u32 shift)
{
	return (deadline_ns + (1ULL << shift) - 1) >> shift << shift;
}

static inline int tw_advance(int fd, __u64 to_ns)
{
	struct twheel_advance advance = {
		.size = sizeof(advance),
		.to_ns = to_ns,
	};

	return tw_ioctl(fd, TWHEEL_IOC_ADVANCE, &advance);
}

static inline int tw_drain(int fd)
{
	return tw_ioctl(fd, TWHEEL_IOC_DRAIN, NULL);
}

/* Open another descriptor of the same wheel; return it, or -errno. */
static inline int tw_reopen_as(int fd, __u32 flags, __u32 event_size)
{
	struct twheel_reopen reopen = {
		.size = sizeof(reopen), .flags = flags, .event_size = event_size,
	};
	int ret = ioctl(fd, TWHEEL_IOC_REOPEN, &reopen);

	return ret < 0 ? -errno : ret;
}

static inline int tw_reopen(int fd, __u32 flags)
{
	return tw_reopen_as(fd, flags, 0);
}

/* One LIST call. Return the number of rows, or -errno. */
static inline int tw_list(int fd, __u64 *cursor, struct twheel_status *rows, __u32 nr)
{
	struct twheel_list list = {
		.size = sizeof(list),
		.entry_size = sizeof(*rows),
		.nr = nr,
		.cursor = *cursor,
		.entries = (uintptr_t)rows,
	};
	int ret;

	memset(rows, TW_POISON, nr * sizeof(*rows));
	ret = tw_ioctl(fd, TWHEEL_IOC_LIST, &list);
	*cursor = list.cursor;
	return ret;
}

/*
 * Do a whole walk, in steps of at most step rows. Return the number of rows or -errno; if there
 * are more than max, -EOVERFLOW.
 */
static inline int tw_list_all(int fd, struct twheel_status *rows, __u32 max, __u32 step)
{
	struct twheel_status extra;
	__u64 cursor = 0;
	__u32 nr = 0;
	int ret;

	while (nr < max) {
		ret = tw_list(fd, &cursor, &rows[nr], step < max - nr ? step : max - nr);
		if (ret <= 0)
			return ret < 0 ? ret : (int)nr;
		nr += ret;
	}
	/* The buffer is full: unless the walk ends here, the caller expected fewer. */
	ret = tw_list(fd, &cursor, &extra, 1);
	if (ret)
		return ret < 0 ? ret : -EOVERFLOW;
	return nr;
}

/*
 * Read into more than one piece of memory: each event is copied by an iterator, see
 * engine/read.c. Return the result of readv().
 */
static inline ssize_t tw_read_pieces(int fd, void *bytes, size_t size)
{
	const struct iovec pieces[2] = { { bytes, size } };

	return readv(fd, pieces, 2);
}

typedef ssize_t tw_read_call(int fd, void *bytes, size_t size);

/* Return the number of events read, 0 at the end of a drained wheel, or -errno. */
static inline int tw_read_by(tw_read_call *call, int fd, struct twheel_event *events, size_t nr)
{
	ssize_t bytes;

	memset(events, TW_POISON, nr * sizeof(*events));
	bytes = call(fd, events, nr * sizeof(*events));
	if (bytes < 0)
		return -errno;
	if (bytes % sizeof(*events) || (size_t)bytes > nr * sizeof(*events))
		return TW_BROKEN;
	return bytes / sizeof(*events);
}

static inline int tw_read(int fd, struct twheel_event *events, size_t nr)
{
	return tw_read_by(read, fd, events, nr);
}

/*
 * A timeout waits in the inbox of its wheel until the kthread moves it into the wheel. If a
 * timeout is in the inbox, REARM and CANCEL handle it in another way than in the wheel. On the
 * virtual clock, only ADVANCE empties the inbox: so the tests of REARM have two variants. In one
 * of them, there is an ADVANCE to the present before each REARM, and before each write() and ARM of
 * keys that may be one. Use this after FIXTURE(name) {...}: it defines the two; the set-up has
 * TW_SETTLE().
 */
#define TW_SETTLE_VARIANTS(fixture)					\
	FIXTURE_VARIANT(fixture) {					\
		bool settles;						\
	};								\
	FIXTURE_VARIANT_ADD(fixture, in_the_inbox) {			\
		.settles = false,					\
	};								\
	FIXTURE_VARIANT_ADD(fixture, in_the_wheel) {			\
		.settles = true,					\
	}

#define TW_SETTLE()	(tw_settles = variant->settles)

static bool tw_settles;

/* Empty the inbox by an ADVANCE to the present; return 0 or -errno: only for the virtual clock. */
static inline int tw_pass(int fd)
{
	struct twheel_info info = { .size = sizeof(info) };

	return tw_ioctl(fd, TWHEEL_IOC_INFO, &info) ?: tw_advance(fd, info.now_ns);
}

/* If the clock is another one, ADVANCE refuses it, and does nothing to the wheel. */
static inline void tw_settle(int fd)
{
	if (tw_settles)
		tw_pass(fd);
}

/* Return the number of records done by write(), or -errno. */
static inline int tw_write(int fd, const struct twheel_record *records, size_t nr)
{
	ssize_t bytes;

	tw_settle(fd);
	bytes = write(fd, records, nr * sizeof(*records));
	if (bytes < 0)
		return -errno;
	if (bytes % sizeof(*records) || (size_t)bytes > nr * sizeof(*records))
		return TW_BROKEN;
	return bytes / sizeof(*records);
}

/*
 * Return the events of poll() (0 if it timed out), or -errno. timeout_ms as for poll().
 *
 * At its time-out, poll() checks once more. If it finds an event only then, that has woken nobody:
 * a poller without a time-out would sleep on, so this returns 0.
 */
static inline int tw_poll(int fd, short events, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	__u64 begin_ns = tw_now(CLOCK_MONOTONIC);

	if (poll(&pfd, 1, timeout_ms) < 0)
		return -errno;
	if (timeout_ms >= TW_PATIENCE_MS &&
	    tw_now(CLOCK_MONOTONIC) - begin_ns >= timeout_ms * TW_MS)
		return 0;
	return pfd.revents;
}

/* Get one event, by poll() and read(): return 1, or 0 if none came in time, or -errno. */
static inline int tw_wait_event(int fd, struct twheel_event *event, int timeout_ms)
{
	int revents = tw_poll(fd, POLLIN, timeout_ms);

	return revents <= 0 ? revents : tw_read(fd, event, 1);
}

/* ---- vectors ------------------------------------------------------------- */

/* Store in *nr_done the value of the vector, if the call returns how many succeeded. */
static inline int tw_vector_done(int fd, unsigned long cmd, void *entries, __u32 entry_size,
				 __u32 nr, __u32 *nr_done)
{
	struct twheel_vector vector = {
		.size = sizeof(vector),
		.entry_size = entry_size,
		.nr = nr,
		.entries = (uintptr_t)entries,
		.nr_done = TW_POISON32,
	};
	int ret = tw_ioctl(fd, cmd, &vector);

	*nr_done = vector.nr_done;
	if (ret >= 0 && (vector.nr_done > nr || vector.nr_done < (__u32)ret))
		return TW_BROKEN;
	return ret;
}

static inline int tw_vector(int fd, unsigned long cmd, void *entries, __u32 entry_size, __u32 nr)
{
	__u32 nr_done;

	return tw_vector_done(fd, cmd, entries, entry_size, nr, &nr_done);
}

static inline int tw_arm_vec(int fd, struct twheel_arm *arms, __u32 nr)
{
	__u32 i;

	for (i = 0; i < nr; i++) {
		arms[i].id = TW_POISON64;
		arms[i].result = TW_POISON32;
	}
	return tw_vector(fd, TWHEEL_IOC_ARM, arms, sizeof(*arms), nr);
}

static inline int tw_rearm_vec(int fd, struct twheel_arm *arms, __u32 nr)
{
	__u32 i;

	tw_settle(fd);
	for (i = 0; i < nr; i++)
		arms[i].result = TW_POISON32;
	return tw_vector(fd, TWHEEL_IOC_REARM, arms, sizeof(*arms), nr);
}

static inline int tw_cancel_vec(int fd, struct twheel_cancel *cancels, __u32 nr)
{
	__u32 i;

	for (i = 0; i < nr; i++)
		cancels[i].result = TW_POISON32;
	return tw_vector(fd, TWHEEL_IOC_CANCEL, cancels, sizeof(*cancels), nr);
}

/* QUERY: only the ids are input, all other fields are poisoned. */
static inline int tw_query_vec(int fd, struct twheel_status *rows, __u32 nr)
{
	__u32 i;

	for (i = 0; i < nr; i++) {
		__u64 id = rows[i].id;

		memset(&rows[i], TW_POISON, sizeof(rows[i]));
		rows[i].id = id;
	}
	return tw_vector(fd, TWHEEL_IOC_QUERY, rows, sizeof(*rows), nr);
}

/* The result of a vector of one: if the element succeeded, the call must return 1, otherwise 0. */
static inline int tw_one_result(int ret, __s32 result)
{
	int succeeded = result >= 0;

	if (ret < 0)
		return ret;
	if (ret != succeeded)
		return TW_BROKEN;
	return result;
}

/*
 * ARM of one element with every field as given; fills in id and result. Return 0 if it made a
 * timeout, or -errno.
 */
static inline int tw_arm_entry(int fd, struct twheel_arm *arm)
{
	int ret = tw_arm_vec(fd, arm, 1);

	ret = tw_one_result(ret, arm->result);
	return ret == TWHEEL_CREATED ? 0 : ret < 0 ? ret : TW_BROKEN;
}

static inline int tw_arm1(int fd, __u32 flags, __u64 expires_ns, __u64 interval_ns,
			  __u64 user_data, __u64 *id)
{
	struct twheel_arm arm = {
		.flags = flags,
		.expires_ns = expires_ns,
		.interval_ns = interval_ns,
		.user_data = user_data,
	};
	int ret = tw_arm_entry(fd, &arm);

	*id = arm.id;
	return ret;
}

/* Arm a one-shot at a point in time. */
static inline int tw_arm_at(int fd, __u64 deadline_ns, __u64 *id)
{
	return tw_arm1(fd, TWHEEL_ARM_ABSOLUTE, deadline_ns, 0, 0, id);
}

/* Arm a one-shot at a distance from now. */
static inline int tw_arm_in(int fd, __u64 distance_ns, __u64 *id)
{
	return tw_arm1(fd, 0, distance_ns, 0, 0, id);
}

/* Do the same on a clock that can be set, which refuses relative times. */
static inline int tw_arm_ahead(int fd, clockid_t clockid, __u64 distance_ns, __u64 *id)
{
	return tw_arm_at(fd, tw_now(clockid) + distance_ns, id);
}

/* Do a REARM of one element with every field as given. */
static inline int tw_rearm_entry(int fd, struct twheel_arm *arm)
{
	int ret = tw_rearm_vec(fd, arm, 1);

	return tw_one_result(ret, arm->result);
}

/*
 * Re-arm one timeout; return the verdict, or -errno.  user_data is poison: REARM has to ignore it.
 */
static inline int tw_rearm1(int fd, __u64 id, __u32 flags, __u64 expires_ns, __u64 interval_ns)
{
	struct twheel_arm arm = {
		.id = id,
		.flags = flags,
		.expires_ns = expires_ns,
		.interval_ns = interval_ns,
		.user_data = TW_POISON64,
	};

	return tw_rearm_entry(fd, &arm);
}

/* Cancel one timeout; return the verdict, or -errno. */
static inline int tw_cancel1(int fd, __u64 id)
{
	struct twheel_cancel cancel = { .id = id };
	int ret = tw_cancel_vec(fd, &cancel, 1);

	return tw_one_result(ret, cancel.result);
}

static inline int tw_query1(int fd, __u64 id, struct twheel_status *status)
{
	int ret;

	status->id = id;
	ret = tw_query_vec(fd, status, 1);
	return tw_one_result(ret, status->result);
}

/* ---- checks of every wheel ----------------------------------------------- */

/*
 * Check that the counters balance (G3), and that the three gauges agree with one another. Use this
 * only at rest: no call is under way, and on a real clock nothing is about to expire. If an
 * assertion has ended a test, nothing is checked.
 */
static inline void tw_expect_accounts(struct __test_metadata *_metadata, int fd, int line)
{
	struct twheel_info i;

	if (_metadata->aborted)
		return;
	ASSERT_EQ(0, tw_info(fd, &i))
		TH_LOG("INFO, asked for in line %d", line);
	EXPECT_EQ(i.armed, i.live + i.completed + i.cancelled + i.revoked + i.drained) {
		TH_LOG("line %d: armed %llu, live %llu, completed %llu, cancelled %llu, revoked %llu, drained %llu",
		       line, i.armed, i.live, i.completed, i.cancelled, i.revoked, i.drained);
	}
	/* If a timeout is periodic, it may be both pending and unread, but takes one place. */
	EXPECT_TRUE(i.pending <= i.live && i.unread <= i.live &&
		    i.live <= i.pending + i.unread) {
		TH_LOG("line %d: live %llu, pending %llu, unread %llu",
		       line, i.live, i.pending, i.unread);
	}
	EXPECT_LE(i.live, i.max_pending)
		TH_LOG("line %d", line);
	EXPECT_EQ(i.armed + i.rearmed + i.cancelled + i.revoked + i.delivered, i.changes)
		TH_LOG("line %d", line);
	/* If an event has ended its timeout, it was read. */
	EXPECT_LE(i.completed + i.drained, i.delivered)
		TH_LOG("line %d", line);
}

#define EXPECT_ACCOUNTS(fd)	tw_expect_accounts(_metadata, fd, __LINE__)

/* Expect that no event can be read now. The descriptor is non-blocking. */
#define EXPECT_NO_EVENT(fd) do {					\
	struct twheel_event __event;					\
	EXPECT_EQ(-EAGAIN, tw_read(fd, &__event, 1));			\
} while (0)

/*
 * Expect that exactly one event can be read, which is this timeout's. The descriptor is
 * non-blocking.
 */
#define ASSERT_ONE_EVENT(fd, event, its_id) do {			\
	struct twheel_event __events[2];				\
	ASSERT_EQ(1, tw_read(fd, __events, 2));				\
	*(event) = __events[0];						\
	ASSERT_EQ((its_id), (event)->id);				\
} while (0)

/*
 * All that can be seen of a wheel from outside, to check that a call changes nothing if it fails.
 * The wheel has up to TW_SNAPSHOT_ROWS timeouts.
 */
#define TW_SNAPSHOT_ROWS	128

struct tw_snapshot {
	struct twheel_info info;
	int nr;
	struct twheel_status rows[TW_SNAPSHOT_ROWS];
};

/* Take a snapshot. Return 0, or -errno of INFO or LIST. */
static inline int tw_snapshot(int fd, struct tw_snapshot *snapshot)
{
	int ret = tw_info(fd, &snapshot->info);

	if (ret < 0)
		return ret;
	snapshot->nr = tw_list_all(fd, snapshot->rows, TW_SNAPSHOT_ROWS, TW_SNAPSHOT_ROWS);
	return snapshot->nr < 0 ? snapshot->nr : 0;
}

/*
 * Expect that the two are the same, but on a real clock for the time that has passed and the alarm
 * that the kernel has set. Rows are compared in the order in which LIST gives them.
 */
static inline void tw_expect_unchanged(struct __test_metadata *_metadata, int fd,
				       const struct tw_snapshot *before, int line)
{
	struct tw_snapshot after;
	int i;

	if (_metadata->aborted)
		return;
	ASSERT_EQ(0, tw_snapshot(fd, &after))
		TH_LOG("asked for in line %d", line);
	if (before->info.clock != TWHEEL_CLOCK_VIRTUAL) {
		after.info.now_ns = before->info.now_ns;
		after.info.alarm_ns = before->info.alarm_ns;
		for (i = 0; i < after.nr && i < before->nr; i++)
			after.rows[i].left_ns = before->rows[i].left_ns;
	}
	EXPECT_EQ(0, memcmp(&before->info, &after.info, sizeof(after.info))) {
		TH_LOG("line %d: INFO changed: armed %llu -> %llu, live %llu -> %llu, pending %llu -> %llu, unread %llu -> %llu, now %llu -> %llu, next %llu -> %llu",
		       line, before->info.armed, after.info.armed,
		       before->info.live, after.info.live,
		       before->info.pending, after.info.pending,
		       before->info.unread, after.info.unread,
		       before->info.now_ns, after.info.now_ns,
		       before->info.next_expiry_ns, after.info.next_expiry_ns);
	}
	ASSERT_EQ(before->nr, after.nr)
		TH_LOG("line %d: LIST has more or fewer rows", line);
	for (i = 0; i < after.nr; i++) {
		EXPECT_EQ(0, memcmp(&before->rows[i], &after.rows[i], sizeof(after.rows[i])))
			TH_LOG("line %d: LIST row %d (id %#llx) changed",
			       line, i, after.rows[i].id);
	}
}

#define EXPECT_UNCHANGED(fd, before)	tw_expect_unchanged(_metadata, fd, before, __LINE__)

/* Five timeouts, two of them pending and three expired, at 20 ms. */
#define TW_KINDS	5

static inline void tw_arm_each_kind(struct __test_metadata *_metadata, int fd, __u64 ids[TW_KINDS])
{
	struct twheel_arm arms[TW_KINDS] = {
		{ .expires_ns = 30 * TW_MS + 1, .user_data = 1 },
		{ .expires_ns = 10 * TW_MS, .user_data = 2 },
		{ .expires_ns = TWHEEL_TIME_NEVER, .user_data = 3 },
		{ .expires_ns = 5 * TW_MS, .interval_ns = 6 * TW_MS, .user_data = 4 },
		{
			.expires_ns = 5 * TW_MS, .interval_ns = 6 * TW_MS, .repeats = 9,
			.flags = TWHEEL_ARM_FIXED_DELAY, .user_data = 5,
		},
	};
	int i;

	ASSERT_EQ(TW_KINDS, tw_arm_vec(fd, arms, TW_KINDS));
	ASSERT_EQ(0, tw_advance(fd, 20 * TW_MS));
	for (i = 0; i < TW_KINDS; i++)
		ids[i] = arms[i].id;
}

/*
 * Virtual wheels of every shape, for rules that hold for each. Use this after FIXTURE(name)
 * {...}: it defines its variants, each with a member ``setup``.
 */
#define TW_VIRTUAL_VARIANT(fixture, name, ...)				\
	FIXTURE_VARIANT_ADD(fixture, name) {				\
		.setup = { .clock = TWHEEL_CLOCK_VIRTUAL, __VA_ARGS__ },	\
	}

#define TW_VIRTUAL_VARIANTS(fixture)					\
	FIXTURE_VARIANT(fixture) {					\
		struct twheel_setup setup;				\
		bool settles;						\
	};								\
	TW_VIRTUAL_VARIANT(fixture, usual, .tick_ns = TW_MS);		\
	TW_VIRTUAL_VARIANT(fixture, many_levels,			\
			   .tick_ns = TW_MS, .slots = TWHEEL_SLOTS_MIN);	\
	TW_VIRTUAL_VARIANT(fixture, one_level, .tick_ns = TW_MS,	\
			   .slots = 256, .flags = TWHEEL_SETUP_ONE_LEVEL);	\
	TW_VIRTUAL_VARIANT(fixture, one_small_level, .tick_ns = 25 * TW_MS,	\
			   .slots = TWHEEL_SLOTS_MIN,			\
			   .flags = TWHEEL_SETUP_ONE_LEVEL);		\
	TW_VIRTUAL_VARIANT(fixture, shortest_tick,			\
			   .tick_ns = TWHEEL_TICK_MIN_NS, .slots = 64);	\
	TW_VIRTUAL_VARIANT(fixture, longest_tick,			\
			   .tick_ns = TWHEEL_TICK_MAX_NS, .slots = 16);	\
	TW_VIRTUAL_VARIANT(fixture, odd_tick, .tick_ns = 1234567, .slots = 8)

/* Define one more as well, for tests of REARM: see TW_SETTLE_VARIANTS(). */
#define TW_VIRTUAL_SETTLED(fixture)					\
	FIXTURE_VARIANT_ADD(fixture, in_the_wheel) {			\
		.setup = { .clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS },	\
		.settles = true,					\
	}

/* ---- processes ----------------------------------------------------------- */

static inline bool tw_is_asleep(pid_t pid)
{
	char path[48], stat[256];
	const char *paren;
	ssize_t len;
	int fd;

	/* Read the state of the task: under qemu-user, /proc/self/stat always says "running". */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, stat, sizeof(stat) - 1);
	close(fd);
	if (len <= 0)
		return false;
	stat[len] = '\0';
	/* "pid (name) S ...": a name may hold anything but the last ')'. */
	paren = strrchr(stat, ')');
	return paren && paren[1] == ' ' && paren[2] == 'S';
}

/*
 * Wait until a child sleeps: if it is about to call read() or poll(), it sleeps there, and the next
 * call of the test wakes it. Return 0, or -ETIMEDOUT.
 */
static inline int tw_wait_asleep(pid_t pid)
{
	return TW_WAIT_FOR(tw_is_asleep(pid), 10 * TW_MS) ? 0 : -ETIMEDOUT;
}

/*
 * Return the exit status of a child, or 128 + signal if it was killed. If it does not end, kill
 * and reap it, and return -ETIMEDOUT.
 */
static inline int tw_reap(pid_t pid)
{
	int status;
	pid_t got;

	TW_WAIT_FOR((got = waitpid(pid, &status, WNOHANG)), 10 * TW_MS);
	if (got < 0)
		return -errno;
	if (got)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -ETIMEDOUT;
}

#endif /* TWHEEL_TEST_H */
