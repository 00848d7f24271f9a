// SPDX-License-Identifier: GPL-2.0
/*
 * What Netty's HashedWheelTimerTest checks, asked of the device.
 *
 *   there                                              here
 *   testScheduleTimeoutShouldNotRunBeforeDelay         a_timeout_of_ten_seconds_...
 *   testScheduleTimeoutShouldRunAfterDelay             clocks.c: relative_deadline_...
 *   testStopTimer                                      stopping_after_all_came_..., and
 *                                                      drain.c: each_timeout_is_...
 *   testTimerShouldThrowExceptionAfterShutdown...      a_stopped_wheel_takes_none_...
 *   testTimerOverflowWheelLength                       a_timeout_armed_anew_...
 *   testExecutionOnTime                                a_hundred_thousand_...
 *   testExecutionOnTaskExecutor                        who reads is who executes
 *   testRejectedExecutionException...BackToBack        limits.c: one_more_than_max_...
 *   testNewTimeoutShouldStop...IsCancelled             limits.c: cancelled_ones_free_...
 *   testNewTimeoutShouldStop...IsExecuted              limits.c: read_events_free_...
 *   reportPendingTimeouts                              pending_ones_are_counted_...
 *   testOverflow                                       the_longest_delays_overflow_...
 *   testStopTimerCancelsPendingTasks                   drain.c: query_of_what_was_...
 *   cancelWillCallCallback                             cancel.c: the verdict says it
 *   testPendingTimeoutsShouldBeCounted...GoalTick      siblings_cancelled_while_...
 */
#include "twheel_test.h"

FIXTURE(real_clock) {
	int fd;
};

FIXTURE_VARIANT(real_clock) {
	__u32 clock;
};

FIXTURE_VARIANT_ADD(real_clock, monotonic) { .clock = TWHEEL_CLOCK_MONOTONIC };
FIXTURE_VARIANT_ADD(real_clock, boottime) { .clock = TWHEEL_CLOCK_BOOTTIME };
FIXTURE_VARIANT_ADD(real_clock, realtime) { .clock = TWHEEL_CLOCK_REALTIME };
FIXTURE_VARIANT_ADD(real_clock, tai) { .clock = TWHEEL_CLOCK_TAI };

FIXTURE_SETUP(real_clock)
{
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, variant->clock, TW_MS, 0));
}

FIXTURE_TEARDOWN(real_clock)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Reads nr events, in whatever portions they come. */
static void read_all(struct __test_metadata *_metadata, int fd, int nr)
{
	struct twheel_event event;

	while (nr--)
		ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
}

/* testScheduleTimeoutShouldNotRunBeforeDelay */
TEST_F(real_clock, a_timeout_of_ten_seconds_has_not_come_after_a_while)
{
	struct twheel_status status;
	struct twheel_event event;
	__u64 id;

	/* An hour, so that no stall of the machine takes as long. */
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	EXPECT_EQ(0, tw_poll(self->fd, POLLIN, 300));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(TWHEEL_STATE_PENDING, status.state);
	EXPECT_GE(TW_HOUR - 300 * TW_MS, status.left_ns);
	/* And is not lost when the wheel stops. */
	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(TWHEEL_EVENT_DRAINED, event.flags);
}

/* testStopTimer, the first half */
TEST_F(real_clock, stopping_after_all_came_hands_out_none)
{
	struct twheel_event event;
	struct twheel_info info;
	__u64 id;
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	read_all(_metadata, self->fd, 3);
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(0, tw_read(self->fd, &event, 1));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(3, info.completed);
	EXPECT_EQ(0, info.drained);
}

/* testTimerShouldThrowExceptionAfterShutdownForNewTimeouts */
TEST_F(real_clock, a_stopped_wheel_takes_none_though_it_had_delivered_all)
{
	__u64 id;
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	read_all(_metadata, self->fd, 3);
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(-ESHUTDOWN, tw_arm_in(self->fd, TW_MS, &id));
	EXPECT_EQ(TW_POISON64, id);
}

/* testOverflow: a sum that does not fit is the end of time */
TEST_F(real_clock, the_longest_delays_overflow_into_the_end_of_time)
{
	const __u64 delays_ns[] = {
		~0ULL, TWHEEL_TIME_NEVER + 1, TWHEEL_TIME_NEVER, TWHEEL_TIME_NEVER - TW_SEC,
		/* In milliseconds it is Long.MAX_VALUE there; the product wraps. */
		(__u64)TWHEEL_TIME_NEVER * 1000000,
	};
	__u64 ids[ARRAY_SIZE(delays_ns)];
	struct twheel_status status;
	int i;

	for (i = 0; i < ARRAY_SIZE(delays_ns); i++)
		ASSERT_EQ(0, tw_arm_in(self->fd, delays_ns[i], &ids[i]));
	EXPECT_EQ(0, tw_poll(self->fd, POLLIN, 200));
	for (i = 0; i < ARRAY_SIZE(delays_ns); i++) {
		ASSERT_EQ(0, tw_query1(self->fd, ids[i], &status));
		EXPECT_EQ(TWHEEL_TIME_NEVER, status.deadline_ns);
		EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[i]));
	}
}

/* ---- counts -------------------------------------------------------------- */

#define SIBLINGS	11

/*
 * testPendingTimeoutsShouldBeCountedCorrectlyWhenTimeoutCancelledWithinGoalTick:
 * the others of that tick may be on the list of what expires, or not yet.
 */
TEST_F(real_clock, siblings_cancelled_while_their_tick_is_delivered_are_counted_once)
{
	struct twheel_arm arms[SIBLINGS] = {};
	struct twheel_event event;
	struct twheel_info info;
	int i, round, verdict;

	for (round = 1; round <= 20; round++) {
		for (i = 0; i < SIBLINGS; i++)
			arms[i].expires_ns = 2 * TW_MS;
		ASSERT_EQ(SIBLINGS, tw_arm_vec(self->fd, arms, SIBLINGS));
		ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
		for (i = 0; i < SIBLINGS; i++) {
			verdict = tw_cancel1(self->fd, arms[i].id);
			if (arms[i].id == event.id) {
				ASSERT_EQ(-ENOENT, verdict);
			} else {
				ASSERT_LT(0, verdict);
			}
		}
		EXPECT_NO_EVENT(self->fd);
		ASSERT_EQ(0, tw_info(self->fd, &info));
		ASSERT_EQ(0, info.live);
		ASSERT_EQ(0, info.pending);
		ASSERT_EQ(0, info.unread);
		ASSERT_EQ(round, info.completed);
		ASSERT_EQ(round * (SIBLINGS - 1), info.cancelled + info.revoked);
	}
}

/* Both gauges and their sum, at each step of a story. */
static void expect_pending(struct __test_metadata *_metadata, int fd, int pending, int unread,
			   int line)
{
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(pending, info.pending)
		TH_LOG("line %d", line);
	EXPECT_EQ(unread, info.unread)
		TH_LOG("line %d", line);
	EXPECT_EQ(pending + unread, info.live)
		TH_LOG("line %d", line);
}

#define EXPECT_PENDING(pending, unread)					\
	expect_pending(_metadata, fd, pending, unread, __LINE__)

/* reportPendingTimeouts */
TEST(pending_ones_are_counted_at_each_step)
{
	int fd = tw_virtual(O_NONBLOCK, 100 * TW_MS);
	__u64 far[2], near;
	struct twheel_event event;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, 100 * TW_MIN, &far[0]));
	ASSERT_EQ(0, tw_arm_in(fd, 100 * TW_MIN, &far[1]));
	ASSERT_EQ(0, tw_arm_in(fd, 90 * TW_MS, &near));
	EXPECT_PENDING(3, 0);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, far[0]));
	EXPECT_PENDING(2, 0);
	/* What is cancelled in vain does not count. */
	ASSERT_EQ(-ENOENT, tw_cancel1(fd, far[0]));
	EXPECT_PENDING(2, 0);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, far[1]));
	EXPECT_PENDING(1, 0);
	ASSERT_EQ(0, tw_advance(fd, 100 * TW_MS));
	EXPECT_PENDING(0, 1);
	ASSERT_ONE_EVENT(fd, &event, near);
	EXPECT_PENDING(0, 0);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* ---- round and round ----------------------------------------------------- */

FIXTURE(round) {
};

FIXTURE_VARIANT(round) {
	__u32 flags;
};

FIXTURE_VARIANT_ADD(round, levels) { .flags = 0 };
FIXTURE_VARIANT_ADD(round, one_level) { .flags = TWHEEL_SETUP_ONE_LEVEL };

FIXTURE_SETUP(round)
{
}

FIXTURE_TEARDOWN(round)
{
}

/*
 * testTimerOverflowWheelLength: a wheel of 32 slots of 100 ms, and a timeout that
 * is armed again whenever it comes: within a round, of a whole one, and beyond.
 */
TEST_F(round, a_timeout_armed_anew_whenever_it_comes_goes_on_beyond_the_wheel)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = 100 * TW_MS, .slots = 32,
		.flags = variant->flags,
	};
	const __u64 delays_ns[] = {
		100 * TW_MS, TW_SEC, 3100 * TW_MS, 3200 * TW_MS, 3300 * TW_MS, 6400 * TW_MS,
		50 * TW_SEC,
	};
	int i, times, fd = tw_open_setup(O_NONBLOCK, &setup);
	struct twheel_event event;
	__u64 id, now_ns = 0;

	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(delays_ns); i++) {
		for (times = 0; times < 40; times++) {
			ASSERT_EQ(0, tw_arm_in(fd, delays_ns[i], &id));
			ASSERT_EQ(0, tw_advance(fd, now_ns + delays_ns[i] - 1));
			EXPECT_NO_EVENT(fd);
			now_ns += delays_ns[i];
			ASSERT_EQ(0, tw_advance(fd, now_ns));
			ASSERT_ONE_EVENT(fd, &event, id);
			EXPECT_EQ(now_ns, event.deadline_ns);
		}
	}
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* ---- many ---------------------------------------------------------------- */

#define MANY		100000
#define VECTOR		1000
#define TICK_NS		(200 * TW_MS)
#define DELAY_NS	(125 * TW_MS)

static __u64 many_deadline_ns[MANY];	/* 0: came */

static void arm_many(struct __test_metadata *_metadata, int fd)
{
	struct twheel_arm arms[VECTOR] = {};
	__u64 before_ns;
	int i, first;

	for (first = 0; first < MANY; first += VECTOR) {
		for (i = 0; i < VECTOR; i++) {
			arms[i].expires_ns = DELAY_NS;
			arms[i].user_data = first + i;
		}
		before_ns = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(VECTOR, tw_arm_vec(fd, arms, VECTOR));
		for (i = 0; i < VECTOR; i++)
			many_deadline_ns[first + i] = before_ns + DELAY_NS;
	}
}

/* testExecutionOnTime: each once, none early; how late is told */
TEST_F_TIMEOUT(round, a_hundred_thousand_with_a_delay_below_the_tick_come_in_time, 120)
{
	static struct twheel_event events[VECTOR];
	const struct twheel_setup setup = {
		.tick_ns = TICK_NS, .max_pending = MANY, .flags = variant->flags,
	};
	int i, nr, left = MANY, fd = tw_open_setup(O_NONBLOCK, &setup);
	struct twheel_info info;

	ASSERT_LE(0, fd);
	arm_many(_metadata, fd);
	while (left) {
		ASSERT_EQ(POLLIN, tw_poll(fd, POLLIN, TW_PATIENCE_MS));
		nr = tw_read(fd, events, VECTOR);
		ASSERT_LT(0, nr);
		left -= nr;
		for (i = 0; i < nr; i++) {
			__u64 who = events[i].user_data;

			ASSERT_GT(MANY, who);
			/* It was armed no sooner than it was told before. */
			ASSERT_NE(0, many_deadline_ns[who]);
			ASSERT_LE(many_deadline_ns[who], events[i].deadline_ns);
			ASSERT_LE(tw_round_up(events[i].deadline_ns, TICK_NS), events[i].fired_ns);
			ASSERT_LE(events[i].fired_ns, tw_now(CLOCK_MONOTONIC));
			many_deadline_ns[who] = 0;
		}
	}
	EXPECT_NO_EVENT(fd);
	ASSERT_EQ(0, tw_info(fd, &info));
	TH_LOG("late by at most %llu ms, up to 200 of them for the tick",
	       info.max_late_ns / TW_MS);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

TEST_HARNESS_MAIN
