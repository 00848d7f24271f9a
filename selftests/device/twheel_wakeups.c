// SPDX-License-Identifier: GPL-2.0
/*
 * Wake-ups are counted, by how often the kthread and the waiters went to sleep, and by how often
 * the alarm rang: it rings for timeouts that are due, and for nothing else (G6). The softirq
 * expires them, and ADVANCE and DRAIN do their own work, so that the kthread sleeps on. A waiter
 * is woken by the event that it waits for, and by nothing else.
 *
 * The counts do not depend on how fast the machine is: on the virtual clock they are exact; on a
 * real clock a late timeout comes together with the next one, so there they are upper bounds.
 */
#include "twheel_outside.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#define VECTOR		512
/* With this many, there are pages that are worth giving back when they end. */
#define MANY		16384
#define PLACES		1048576
#define FEW		4

/* Counts how often a thread went to sleep since the last call. */
struct count {
	pid_t tid;
	long settled;
};

static int count_begin(struct count *count, pid_t tid)
{
	count->tid = tid;
	count->settled = tw_settled_switches(tid);
	return count->settled < 0 ? -ETIMEDOUT : 0;
}

static long count_next(struct count *count)
{
	long before = count->settled;

	count->settled = tw_settled_switches(count->tid);
	return count->settled < 0 ? -ETIMEDOUT : count->settled - before;
}

/* If a thread sleeps while it waits for a spinlock, there may be more. */
static void expect_woken(struct __test_metadata *_metadata, struct count *count, long least,
			 long most, int line)
{
	long woken = 0;

	/* If a thread was woken, it may not have run yet: on a busy host, for long. */
	TW_WAIT_FOR((woken += count_next(count)) >= least, TW_MS);
	EXPECT_LE(least, woken)
		TH_LOG("line %d", line);
	if (!tw_kernel_is_rt()) {
		EXPECT_GE(most, woken)
			TH_LOG("line %d", line);
	}
}

#define EXPECT_WOKEN(nr, count)		expect_woken(_metadata, count, nr, nr, __LINE__)
#define EXPECT_WOKEN_AT_MOST(nr, count)	expect_woken(_metadata, count, 0, nr, __LINE__)

static void arm_many(struct __test_metadata *_metadata, int fd, __u64 distance_ns, __u32 nr)
{
	static struct twheel_arm arms[VECTOR];
	__u32 i, n;

	for (; nr; nr -= n) {
		n = nr < VECTOR ? nr : VECTOR;
		for (i = 0; i < n; i++)
			arms[i] = (struct twheel_arm){ .expires_ns = distance_ns };
		ASSERT_EQ(n, tw_arm_vec(fd, arms, n));
	}
}

static int read_all(int fd)
{
	static struct twheel_event events[VECTOR];
	int nr = 0, ret;

	while ((ret = tw_read(fd, events, VECTOR)) > 0)
		nr += ret;
	return ret == -EAGAIN || !ret ? nr : ret;
}

/* ---- the kthread, on the virtual clock ----------------------------------- */

FIXTURE(turns) {
	int fd;
	struct count kthread;
};

FIXTURE_SETUP(turns)
{
	self->fd = tw_virtual_for(O_NONBLOCK | O_CLOEXEC, PLACES);
	ASSERT_LE(0, self->fd);
	/* If a deadline is before this time, it is in the past. */
	ASSERT_EQ(0, tw_advance(self->fd, TW_SEC));
	ASSERT_EQ(0, count_begin(&self->kthread, tw_kthread_of(self->fd)));
}

FIXTURE_TEARDOWN(turns)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F_TIMEOUT(turns, an_advance_takes_no_turn_however_many_expire, 60)
{
	const int nr[] = { 0, 1, 2, 64, 65, 1000 };
	__u64 now_ns = TW_SEC;
	int i;

	/* The timeouts that stay keep enough pages that those of the others are not given back. */
	arm_many(_metadata, self->fd, TW_HOUR, 2 * nr[ARRAY_SIZE(nr) - 1]);
	for (i = 0; i < (int)ARRAY_SIZE(nr); i++) {
		arm_many(_metadata, self->fd, TW_MS, nr[i]);
		now_ns += TW_MS;
		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		ASSERT_EQ(nr[i], read_all(self->fd));
		EXPECT_WOKEN(0, &self->kthread);
	}
}

TEST_F_TIMEOUT(turns, a_future_timeout_takes_no_turn_whatever_is_done_with_it, 60)
{
	struct twheel_status status;
	struct twheel_info info;
	__u64 id[2], cursor = 0;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id[0]));
	ASSERT_EQ(0, tw_arm1(self->fd, 0, TW_MIN, TW_MIN, 0, &id[1]));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, id[0], 0, TW_DAY, 0));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, id[0], 0, TW_MS, 0));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, id[1], 0, TW_HOUR, TW_MIN));
	ASSERT_EQ(0, tw_query1(self->fd, id[0], &status));
	ASSERT_EQ(1, tw_list(self->fd, &cursor, &status, 1));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	ASSERT_EQ(POLLOUT, tw_poll(self->fd, POLLIN | POLLOUT, 0));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id[0]));
	ASSERT_EQ(-ENOENT, tw_cancel1(self->fd, id[0]));
	arm_many(_metadata, self->fd, TW_HOUR, MANY);
	EXPECT_WOKEN(0, &self->kthread);
}

/* The thread that arms it makes the event, which can be read at once. */
TEST_F_TIMEOUT(turns, a_due_timeout_takes_no_turn_by_any_way_to_arm_it, 60)
{
	const struct twheel_record record = { .op = TWHEEL_OP_ARM, .expires_ns = 0 };
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, 0, &id));
	/* The timeout expired, and its event is revoked. */
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_rearm1(self->fd, id, TWHEEL_ARM_ABSOLUTE, 1, 0));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, id));
	ASSERT_EQ(1, tw_write(self->fd, &record, 1));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, id, 0, 0, 0));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_WOKEN(0, &self->kthread);
}

/* If the event of a timeout is read, it goes on with its next period, which may be due again. */
TEST_F_TIMEOUT(turns, reading_periodic_timeouts_takes_no_turn, 60)
{
	struct twheel_event event;
	__u64 id, delayed;

	ASSERT_EQ(0, tw_arm1(self->fd, 0, 0, TW_SEC, 0, &id));
	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_FIXED_DELAY, 0, TW_SEC, 0, &delayed));
	ASSERT_EQ(2, read_all(self->fd));
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_SEC));
	/* Periods pass unread. */
	ASSERT_EQ(0, tw_advance(self->fd, 5 * TW_SEC));
	ASSERT_EQ(2, read_all(self->fd));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, delayed));
	ASSERT_EQ(0, tw_advance(self->fd, 6 * TW_SEC));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_WOKEN(0, &self->kthread);
}

TEST_F_TIMEOUT(turns, a_drain_takes_no_turn, 60)
{
	struct twheel_event event;

	arm_many(_metadata, self->fd, TW_HOUR, MANY);
	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	ASSERT_EQ(TWHEEL_EVENT_DRAINED | TWHEEL_EVENT_ENDED, event.flags);
	EXPECT_WOKEN(0, &self->kthread);
}

/* If the memory has been idle for a second, a work item does so. */
TEST_F_TIMEOUT(turns, giving_memory_back_takes_no_turn, 60)
{
	static struct twheel_cancel cancels[VECTOR];
	static struct twheel_arm arms[VECTOR];
	static __u64 id[MANY];
	long bytes;
	int i, j;

	for (i = 0; i < MANY; i += VECTOR) {
		for (j = 0; j < VECTOR; j++)
			arms[j] = (struct twheel_arm){ .expires_ns = TW_MIN + (i + j) * TW_MS };
		ASSERT_EQ(VECTOR, tw_arm_vec(self->fd, arms, VECTOR));
		for (j = 0; j < VECTOR; j++)
			id[i + j] = arms[j].id;
	}
	bytes = tw_fdinfo_number(self->fd, "bytes");
	for (i = 0; i < MANY; i += VECTOR) {
		for (j = 0; j < VECTOR; j++)
			cancels[j].id = id[i + j];
		ASSERT_EQ(VECTOR, tw_cancel_vec(self->fd, cancels, VECTOR));
	}
	EXPECT_TRUE(TW_WAIT_FOR(tw_fdinfo_number(self->fd, "bytes") < bytes / 2, TW_MS));
	EXPECT_WOKEN(0, &self->kthread);
}

/* ---- the alarm ------------------------------------------------------------ */

#define DEADLINES	10
#define LONGEST_LEAD_NS	(4 * TW_SEC)

/*
 * A row of timeouts, and one an hour ahead. Before the first of the row is due, the test changes
 * them.
 */
FIXTURE(row) {
	int fd;
	__u64 id[DEADLINES];
	__u64 end_ns;
	struct count kthread;
	bool traced;		/* expiries of hrtimers are counted */
};

enum change { NOTHING, CANCELS_ALL, CANCELS_HALF, MOVES_ALL_LATER, DRAINS };

FIXTURE_VARIANT(row) {
	__u64 apart_ns;
	bool enters;		/* the alarm has rung since the row was armed */
	enum change change;
	bool passes;		/* it has rung since then */
	int wakes;		/* the greatest number of times that it rings */
	int nr_events;
};

FIXTURE_VARIANT_ADD(row, of_ticks_of_their_own) {
	.apart_ns = 6 * TW_MS, .change = NOTHING, .wakes = DEADLINES, .nr_events = DEADLINES,
};

FIXTURE_VARIANT_ADD(row, of_ticks_of_their_own_in_the_wheel) {
	.apart_ns = 6 * TW_MS, .enters = true, .change = NOTHING,
	.wakes = DEADLINES, .nr_events = DEADLINES,
};

FIXTURE_VARIANT_ADD(row, of_one_tick) {
	.change = NOTHING, .wakes = 1, .nr_events = DEADLINES,
};

/* The alarm was set for the first of them, and finds none left. */
FIXTURE_VARIANT_ADD(row, cancelled_before_it_entered) {
	.apart_ns = 6 * TW_MS, .change = CANCELS_ALL, .wakes = 1,
};

FIXTURE_VARIANT_ADD(row, cancelled_in_the_wheel) {
	.apart_ns = 6 * TW_MS, .enters = true, .change = CANCELS_ALL, .wakes = 1,
};

FIXTURE_VARIANT_ADD(row, cancelled_by_half) {
	.apart_ns = 6 * TW_MS, .enters = true, .change = CANCELS_HALF,
	.wakes = DEADLINES / 2 + 1, .nr_events = DEADLINES / 2,
};

FIXTURE_VARIANT_ADD(row, moved_later_in_the_wheel) {
	.apart_ns = 6 * TW_MS, .enters = true, .change = MOVES_ALL_LATER, .wakes = 1,
};

FIXTURE_VARIANT_ADD(row, moved_later_before_it_entered) {
	.apart_ns = 6 * TW_MS, .change = MOVES_ALL_LATER, .wakes = 1,
};

/* If the alarm rings for another one, it is not set again for these. */
FIXTURE_VARIANT_ADD(row, cancelled_and_a_pass_since) {
	.apart_ns = 6 * TW_MS, .change = CANCELS_ALL, .passes = true, .wakes = 0,
};

FIXTURE_VARIANT_ADD(row, cancelled_in_the_wheel_and_a_pass_since) {
	.apart_ns = 6 * TW_MS, .enters = true, .change = CANCELS_ALL, .passes = true, .wakes = 0,
};

FIXTURE_VARIANT_ADD(row, drained) {
	.apart_ns = 6 * TW_MS, .enters = true, .change = DRAINS, .wakes = 0,
	.nr_events = DEADLINES + 1,
};

FIXTURE_SETUP(row)
{
}

FIXTURE_TEARDOWN(row)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Let the alarm ring before the row is due. */
static void enter_all(struct __test_metadata *_metadata, int fd)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(fd, TW_MS, &id));
	ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
	ASSERT_EQ(id, event.id);
}

/* Return how many of the row were not as expected. */
static int row_change(int fd, const __u64 *id, enum change change)
{
	int i, nr = 0;

	if (change == DRAINS)
		return tw_drain(fd);
	for (i = 0; i < DEADLINES && change != NOTHING; i++)
		if (change == MOVES_ALL_LATER)
			nr += tw_rearm1(fd, id[i], 0, TW_HOUR, 0) != TWHEEL_WAS_PENDING;
		else if (change == CANCELS_ALL || i % 2)
			nr += tw_cancel1(fd, id[i]) != TWHEEL_WAS_PENDING;
	return nr;
}

/* If that took so long that some were due before all was done, return false. */
static bool make_row(struct __test_metadata *_metadata, FIXTURE_DATA(row) *self,
		     const FIXTURE_VARIANT(row) *variant, __u64 lead_ns)
{
	__u64 id, first_ns;
	int i, nr;

	self->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	first_ns = tw_round_up(tw_now(CLOCK_MONOTONIC) + lead_ns, TW_MS);
	for (i = 0; i < DEADLINES; i++) {
		ASSERT_EQ(0, tw_arm_at(self->fd, first_ns + i * variant->apart_ns, &self->id[i]));
	}
	self->end_ns = first_ns + DEADLINES * variant->apart_ns + 20 * TW_MS;
	if (variant->enters)
		enter_all(_metadata, self->fd);
	nr = row_change(self->fd, self->id, variant->change);
	if (variant->passes)
		enter_all(_metadata, self->fd);
	ASSERT_EQ(0, count_begin(&self->kthread, tw_kthread_of(self->fd)));
	self->traced = !tw_trace_start();
	if (tw_now(CLOCK_MONOTONIC) >= first_ns && lead_ns < LONGEST_LEAD_NS)
		return false;
	ASSERT_EQ(0, nr);
	return true;
}

TEST_F_TIMEOUT(row, the_alarm_rings_as_often_as_there_are_ticks_with_something_due, 60)
{
	__u64 lead_ns = 100 * TW_MS;
	int ours, all;

	while (!make_row(_metadata, self, variant, lead_ns)) {
		close(self->fd);
		lead_ns *= 2;
	}
	tw_sleep_until(self->end_ns);
	ours = tw_trace_expiries(&all);
	if (self->traced) {
		EXPECT_LE(variant->wakes && variant->nr_events, ours);
		EXPECT_GE(variant->wakes, ours);
	}
	/* If the softirq may not work, the kthread does so each time. */
	EXPECT_WOKEN_AT_MOST(variant->wakes, &self->kthread);
	EXPECT_EQ(variant->nr_events, read_all(self->fd));
}

/* ---- the softirq, in place of the kthread --------------------------------- */

enum way { POLLS, WAITS_FOR_LEVEL, WAITS_FOR_EDGE, READS };

FIXTURE(expiry) {
	int fd;
	int ep;
	struct count kthread;
};

FIXTURE_VARIANT(expiry) {
	enum way way;
};

FIXTURE_VARIANT_ADD(expiry, polls) {
	.way = POLLS,
};

FIXTURE_VARIANT_ADD(expiry, waits_for_a_level) {
	.way = WAITS_FOR_LEVEL,
};

FIXTURE_VARIANT_ADD(expiry, waits_for_an_edge) {
	.way = WAITS_FOR_EDGE,
};

FIXTURE_VARIANT_ADD(expiry, reads) {
	.way = READS,
};

FIXTURE_SETUP(expiry)
{
	const struct twheel_setup setup = { .tick_ns = TW_MS };
	struct epoll_event interest = { .events = EPOLLIN };
	__u64 id;

	if (variant->way == WAITS_FOR_EDGE)
		interest.events |= EPOLLET;
	self->ep = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_LE(0, self->ep);
	self->fd = tw_open_setup(O_CLOEXEC | (variant->way == READS ? 0 : O_NONBLOCK), &setup);
	ASSERT_LE(0, self->fd);
	/* An epoll instance waits even while no thread waits for it. */
	if (variant->way == WAITS_FOR_LEVEL || variant->way == WAITS_FOR_EDGE)
		ASSERT_EQ(0, epoll_ctl(self->ep, EPOLL_CTL_ADD, self->fd, &interest));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_DAY, &id));
}

FIXTURE_TEARDOWN(expiry)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
	close(self->ep);
}

/* Arm one timeout, for which the thread waits. Return how often the kthread was woken. */
static long wait_for_one(struct __test_metadata *_metadata, FIXTURE_DATA(expiry) *self,
			 enum way way)
{
	struct twheel_event event;
	struct epoll_event ready;
	__u64 id;

	ASSERT_EQ(0, count_begin(&self->kthread, tw_kthread_of(self->fd)));
	ASSERT_EQ(0, tw_arm_in(self->fd, 20 * TW_MS, &id));
	if (way == POLLS) {
		ASSERT_EQ(POLLIN, tw_poll(self->fd, POLLIN, TW_PATIENCE_MS));
	} else if (way != READS) {
		ASSERT_EQ(1, epoll_wait(self->ep, &ready, 1, TW_PATIENCE_MS));
	}
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(id, event.id);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	return count_next(&self->kthread);
}

TEST_F_TIMEOUT(expiry, the_softirq_expires_timeouts_and_the_kthread_sleeps, 100)
{
	/*
	 * If the kernel has PREEMPT_RT, any thread may keep the softirq waiting: it only wakes the
	 * kthread.
	 */
	if (tw_kernel_is_rt()) {
		EXPECT_LT(0, wait_for_one(_metadata, self, variant->way));
		return;
	}
	/* If the host takes the processor away, the softirq may have used its share. */
	EXPECT_TRUE(TW_WAIT_FOR(!wait_for_one(_metadata, self, variant->way), 0));
}

/* ---- waiters ------------------------------------------------------------- */

FIXTURE(waiter) {
	int fd;
	short events;
	short said;
	pthread_t thread;
	_Atomic pid_t tid;
	struct count count;
};

FIXTURE_SETUP(waiter)
{
	self->fd = tw_virtual_for(O_NONBLOCK | O_CLOEXEC, FEW);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(waiter)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

static void *wait_run(void *arg)
{
	FIXTURE_DATA(waiter) *self = arg;

	self->tid = syscall(SYS_gettid);
	self->said = tw_poll(self->fd, self->events, TW_PATIENCE_MS);
	return NULL;
}

static void wait_begin(struct __test_metadata *_metadata, FIXTURE_DATA(waiter) *self, short events)
{
	self->events = events;
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, wait_run, self));
	while (!self->tid)
		tw_sleep(TW_MS);
	ASSERT_EQ(0, count_begin(&self->count, self->tid));
}

/* Its result at the end. */
static short wait_end(FIXTURE_DATA(waiter) *self)
{
	pthread_join(self->thread, NULL);
	return self->said;
}

static void arm_full(struct __test_metadata *_metadata, int fd, __u64 *id)
{
	int i;

	for (i = 0; i < FEW; i++) {
		ASSERT_EQ(0, tw_arm_at(fd, (i + 1) * TW_MS, &id[i]));
	}
}

TEST_F_TIMEOUT(waiter, a_waiter_for_in_is_not_woken_by_a_place_that_is_free_again, 60)
{
	__u64 id[FEW];

	arm_full(_metadata, self->fd, id);
	wait_begin(_metadata, self, POLLIN);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id[3]));
	EXPECT_WOKEN(0, &self->count);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id[3]));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, id[3], 0, TW_MIN, 0));
	EXPECT_WOKEN(0, &self->count);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(POLLIN, wait_end(self));
}

TEST_F_TIMEOUT(waiter, a_waiter_for_out_is_not_woken_by_an_expiry, 60)
{
	struct twheel_event event;
	__u64 id[FEW];

	arm_full(_metadata, self->fd, id);
	wait_begin(_metadata, self, POLLOUT);
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MS));
	EXPECT_WOKEN(0, &self->count);
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(POLLOUT, wait_end(self));
}

TEST_F_TIMEOUT(waiter, a_waiter_for_in_is_not_woken_by_a_turn_without_an_event, 60)
{
	__u64 id[FEW];

	arm_full(_metadata, self->fd, id);
	wait_begin(_metadata, self, POLLIN);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS - 1));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS - 1));
	EXPECT_WOKEN(0, &self->count);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(POLLIN, wait_end(self));
}

/* The old deadline of a timeout does not wake it either. */
TEST_F_TIMEOUT(waiter, a_waiter_for_in_is_not_woken_by_the_tick_of_a_cancelled_timeout, 60)
{
	__u64 id[FEW];

	arm_full(_metadata, self->fd, id);
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	wait_begin(_metadata, self, POLLIN);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id[0]));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, id[1], 0, TW_HOUR, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 3 * TW_MS - 1));
	EXPECT_WOKEN(0, &self->count);
	ASSERT_EQ(0, tw_advance(self->fd, 3 * TW_MS));
	EXPECT_EQ(POLLIN, wait_end(self));
}

TEST_F_TIMEOUT(waiter, a_waiter_for_nothing_is_woken_by_drain_alone, 60)
{
	__u64 id[FEW];

	arm_full(_metadata, self->fd, id);
	wait_begin(_metadata, self, 0);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id[3]));
	EXPECT_WOKEN(0, &self->count);
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(POLLHUP, wait_end(self));
}

TEST_HARNESS_MAIN
