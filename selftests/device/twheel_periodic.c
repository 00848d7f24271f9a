// SPDX-License-Identifier: GPL-2.0
/*
 * Periodic timeouts: a fixed rate keeps its phase and is one event whose count grows; a fixed
 * delay begins its next period when its event is read; a limit bounds expirations. Counts are
 * computed: no stall is too long for them.
 */
#include "twheel_test.h"

FIXTURE(periodic) {
	int fd;
};

FIXTURE_SETUP(periodic)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(periodic)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Arm a periodic timeout at a point in time; return its id. */
static __u64 arm_periodic(struct __test_metadata *_metadata, int fd, __u64 first_ns,
			  __u64 interval_ns, __u32 flags, __u32 repeats)
{
	struct twheel_arm arm = {
		.flags = TWHEEL_ARM_ABSOLUTE | flags,
		.expires_ns = first_ns,
		.interval_ns = interval_ns,
		.repeats = repeats,
	};

	ASSERT_EQ(0, tw_arm_entry(fd, &arm));
	return arm.id;
}

/* Advance, and read the one event that there must be. */
static void expect_event_at(struct __test_metadata *_metadata, int fd, __u64 now_ns, __u64 id,
			    __u32 count, __u64 deadline_ns)
{
	struct twheel_status status;
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(fd, now_ns));
	ASSERT_ONE_EVENT(fd, &event, id);
	EXPECT_EQ(count, event.count)
		TH_LOG("at %llu", now_ns);
	EXPECT_EQ(deadline_ns, event.deadline_ns)
		TH_LOG("at %llu", now_ns);
	EXPECT_EQ(now_ns, event.fired_ns);
	/* If it was the last one, the event says so, and only then. */
	EXPECT_EQ(tw_query1(fd, id, &status) == -ENOENT ? TWHEEL_EVENT_ENDED : 0, event.flags)
		TH_LOG("at %llu", now_ns);
}

static void expect_nothing_at(struct __test_metadata *_metadata, int fd, __u64 now_ns)
{
	ASSERT_EQ(0, tw_advance(fd, now_ns));
	EXPECT_NO_EVENT(fd);
}

/* ---- fixed rate ---------------------------------------------------------- */

TEST_F(periodic, fixed_rate_expires_once_a_period)
{
	__u64 id = arm_periodic(_metadata, self->fd, 3 * TW_MS, 10 * TW_MS, 0, 0);
	__u64 deadline_ns;

	for (deadline_ns = 3 * TW_MS; deadline_ns < TW_SEC; deadline_ns += 10 * TW_MS) {
		expect_nothing_at(_metadata, self->fd, deadline_ns - 1);
		expect_event_at(_metadata, self->fd, deadline_ns, id, 1, deadline_ns);
	}
}

TEST_F(periodic, fixed_rate_that_is_read_late_keeps_its_phase)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 0);

	expect_event_at(_metadata, self->fd, 17 * TW_MS, id, 1, 10 * TW_MS);
	expect_nothing_at(_metadata, self->fd, 20 * TW_MS - 1);
	expect_event_at(_metadata, self->fd, 20 * TW_MS, id, 1, 20 * TW_MS);
}

/* Deadlines are 1.5 ms apart; each expires on the next edge of 1 ms. */
TEST_F(periodic, interval_that_is_no_multiple_of_the_tick_does_not_drift)
{
	__u64 id = arm_periodic(_metadata, self->fd, 1500 * TW_US, 1500 * TW_US, 0, 0);
	int i;

	for (i = 1; i <= 200; i++) {
		__u64 deadline_ns = i * 1500 * TW_US;
		__u64 edge_ns = tw_round_up(deadline_ns, TW_MS);

		expect_nothing_at(_metadata, self->fd, edge_ns - 1);
		expect_event_at(_metadata, self->fd, edge_ns, id, 1, deadline_ns);
	}
}

TEST_F(periodic, unread_timeout_stays_one_event_whose_count_grows)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 0);
	struct twheel_info info;
	int i;

	for (i = 1; i <= 7; i++) {
		ASSERT_EQ(0, tw_advance(self->fd, i * 10 * TW_MS));
		ASSERT_EQ(0, tw_info(self->fd, &info));
		EXPECT_EQ(1, info.unread);
		EXPECT_EQ(1, info.pending);
		EXPECT_EQ(1, info.live);
		/* If nobody has read periods, they are counted when the event is read. */
		EXPECT_EQ(1, info.expirations);
	}
	expect_event_at(_metadata, self->fd, 70 * TW_MS, id, 7, 70 * TW_MS);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(7, info.expirations);
}

TEST_F(periodic, each_period_of_an_unread_timeout_counts_from_its_edge_on)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 0);
	struct twheel_status status;
	__u64 i;

	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	for (i = 2; i <= 7; i++) {
		ASSERT_EQ(0, tw_advance(self->fd, i * 10 * TW_MS - 1));
		ASSERT_EQ(0, tw_query1(self->fd, id, &status));
		EXPECT_EQ(i - 1, status.count);
		ASSERT_EQ(0, tw_advance(self->fd, i * 10 * TW_MS));
		ASSERT_EQ(0, tw_query1(self->fd, id, &status));
		EXPECT_EQ(i, status.count);
	}
	expect_event_at(_metadata, self->fd, 70 * TW_MS, id, 7, 70 * TW_MS);
}

TEST_F(periodic, stall_of_many_periods_is_one_event_with_their_count)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 0);

	/* 10, 20, ..., 1000, but not 1010. */
	expect_event_at(_metadata, self->fd, TW_SEC + 9 * TW_MS, id, 100, TW_SEC);
	expect_event_at(_metadata, self->fd, TW_SEC + 10 * TW_MS, id, 1, TW_SEC + 10 * TW_MS);
}

/* If the edge of a deadline is still to come, the deadline is not counted in a stall either. */
TEST_F(periodic, stall_does_not_count_a_deadline_before_its_edge)
{
	__u64 id = arm_periodic(_metadata, self->fd, 1500 * TW_US, 1500 * TW_US, 0, 0);

	/* At 4.9 ms, 1.5 and 3.0 have expired; 4.5 has passed, but its edge is 5. */
	expect_event_at(_metadata, self->fd, 4900 * TW_US, id, 2, 3000 * TW_US);
	expect_nothing_at(_metadata, self->fd, 4900 * TW_US);
	expect_event_at(_metadata, self->fd, 5 * TW_MS, id, 1, 4500 * TW_US);
}

TEST_F(periodic, count_is_exact_just_below_32_bits)
{
	__u64 periods = (1ULL << 32) - 2;
	__u64 id = arm_periodic(_metadata, self->fd, TW_MS, TW_MS, 0, 0);

	expect_event_at(_metadata, self->fd, periods * TW_MS, id, periods, periods * TW_MS);
}

TEST_F(periodic, count_saturates_at_32_bits_in_one_stall)
{
	__u64 periods = (1ULL << 32) + 5;
	__u64 id = arm_periodic(_metadata, self->fd, TW_MS, TW_MS, 0, 0);

	expect_event_at(_metadata, self->fd, periods * TW_MS, id, ~0U, periods * TW_MS);
	expect_event_at(_metadata, self->fd, (periods + 1) * TW_MS, id, 1, (periods + 1) * TW_MS);
}

TEST_F(periodic, count_that_grows_past_32_bits_step_by_step_saturates)
{
	__u64 half = 1ULL << 31;
	__u64 id = arm_periodic(_metadata, self->fd, TW_MS, TW_MS, 0, 0);

	/* Go past the sign bit (the count is never negative), then past the maximum. */
	ASSERT_EQ(0, tw_advance(self->fd, (half + 1) * TW_MS));
	ASSERT_EQ(0, tw_advance(self->fd, 2 * half * TW_MS));
	expect_event_at(_metadata, self->fd, (2 * half + 7) * TW_MS, id, ~0U,
			(2 * half + 7) * TW_MS);
}

/* DRAIN adds the periods that have passed to the event, and read() only hands it out. */
TEST_F(periodic, count_past_32_bits_saturates_when_it_is_drained)
{
	__u64 periods = (1ULL << 32) + 5;
	__u64 id = arm_periodic(_metadata, self->fd, TW_MS, TW_MS, 0, 0);
	struct twheel_status status;
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(0, tw_advance(self->fd, periods * TW_MS));
	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(~0U, status.count);
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(~0U, event.count);
	EXPECT_EQ(periods * TW_MS, event.deadline_ns);
	EXPECT_EQ(TW_DRAINED, event.flags);
}

TEST_F(periodic, drained_event_says_when_its_latest_period_expired)
{
	__u64 id = arm_periodic(_metadata, self->fd, 1500 * TW_US, 1500 * TW_US, 0, 0);
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MS));
	/* The edge of 4.5 is 5; 6.0 is yet to come. */
	ASSERT_EQ(0, tw_advance(self->fd, 5900 * TW_US));
	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(3, event.count);
	EXPECT_EQ(4500 * TW_US, event.deadline_ns);
	EXPECT_EQ(5 * TW_MS, event.fired_ns);
	EXPECT_EQ(TW_DRAINED, event.flags);
}

TEST_F(periodic, expirations_are_counted_beyond_what_an_event_can_say)
{
	__u64 periods = (1ULL << 32) + 5;
	struct twheel_info info;

	arm_periodic(_metadata, self->fd, TW_MS, TW_MS, 0, 0);
	ASSERT_EQ(0, tw_advance(self->fd, periods * TW_MS));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(periods, info.expirations);
}

TEST_F(periodic, expirations_leave_out_unread_periods_until_they_are_read)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 0);
	struct twheel_event event;
	struct twheel_info info;

	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_EQ(0, tw_advance(self->fd, 70 * TW_MS));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1, info.expirations);
	ASSERT_ONE_EVENT(self->fd, &event, id);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(7, info.expirations);
}

/* No pass ran at that time. */
TEST_F(periodic, event_says_the_edge_of_the_latest_period_that_passed_unread)
{
	__u64 id = arm_periodic(_metadata, self->fd, 1500 * TW_US, 1500 * TW_US, 0, 0);
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MS));
	/* The edge of 4.5 is 5; 6.0 is yet to come. */
	ASSERT_EQ(0, tw_advance(self->fd, 5900 * TW_US));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(3, event.count);
	EXPECT_EQ(4500 * TW_US, event.deadline_ns);
	EXPECT_EQ(5 * TW_MS, event.fired_ns);
}

/* If an event is revoked, it never comes, but the timeout has expired that often. */
TEST_F(periodic, periods_of_an_event_that_is_revoked_are_counted)
{
	__u64 cancelled = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 0);
	__u64 rearmed = arm_periodic(_metadata, self->fd, 5 * TW_MS, 5 * TW_MS, 0, 0);
	struct twheel_info info;
	__u64 before;

	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_EQ(0, tw_advance(self->fd, 70 * TW_MS));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	before = info.expirations;
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, cancelled));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(before + 6, info.expirations);
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_rearm1(self->fd, rearmed, 0, TW_HOUR, 0));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(7 + 14, info.expirations);
}

TEST_F(periodic, stall_to_the_end_of_time_saturates_and_nothing_follows)
{
	__u64 id = arm_periodic(_metadata, self->fd, TW_MS, TW_MS, 0, 0);
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(self->fd, TWHEEL_TIME_NEVER));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(~0U, event.count);
	EXPECT_GT(TWHEEL_TIME_NEVER, event.deadline_ns);
	expect_nothing_at(_metadata, self->fd, TWHEEL_TIME_NEVER);
}

/* As with timerfd: 10, 20, ..., 100 have all passed when it is armed. */
TEST_F(periodic, first_event_of_a_timeout_armed_in_the_past_counts_each_period_since)
{
	__u64 id;

	ASSERT_EQ(0, tw_advance(self->fd, 100 * TW_MS));
	id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 0);
	expect_event_at(_metadata, self->fd, 100 * TW_MS, id, 10, 100 * TW_MS);
	expect_event_at(_metadata, self->fd, 110 * TW_MS, id, 1, 110 * TW_MS);
}

TEST_F(periodic, timeout_armed_four_billion_periods_in_the_past_saturates)
{
	__u64 now_ns = (1ULL << 33) * TW_MS;
	__u64 id;

	ASSERT_EQ(0, tw_advance(self->fd, now_ns));
	id = arm_periodic(_metadata, self->fd, TW_MS, TW_MS, 0, 0);
	expect_event_at(_metadata, self->fd, now_ns, id, ~0U, now_ns);
}

TEST_F(periodic, interval_below_a_tick_is_raised_to_a_tick)
{
	const __u64 intervals_ns[] = { 1, 1000, TW_MS - 1, TW_MS };
	struct twheel_status status;
	__u64 id;
	int i;

	for (i = 0; i < ARRAY_SIZE(intervals_ns); i++) {
		__u64 now_ns = i * TW_SEC;

		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		id = arm_periodic(_metadata, self->fd, now_ns + TW_MS, intervals_ns[i], 0, 0);
		ASSERT_EQ(0, tw_query1(self->fd, id, &status));
		EXPECT_EQ(TW_MS, status.interval_ns);
		expect_event_at(_metadata, self->fd, now_ns + 20 * TW_MS, id, 20,
				now_ns + 20 * TW_MS);
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	}
}

/* The second deadline would be past the end of time: there is none. */
TEST_F(periodic, interval_past_the_end_of_time_expires_once_and_waits_for_ever)
{
	const __u64 intervals_ns[] = { TWHEEL_TIME_NEVER, TWHEEL_TIME_NEVER - 1 };
	struct twheel_status status;
	struct twheel_info info;
	__u64 id;
	int i;

	for (i = 0; i < ARRAY_SIZE(intervals_ns); i++) {
		__u64 now_ns = (i + 1) * TW_MS;

		id = arm_periodic(_metadata, self->fd, now_ns, intervals_ns[i], 0, 0);
		expect_event_at(_metadata, self->fd, now_ns, id, 1, now_ns);
		ASSERT_EQ(0, tw_query1(self->fd, id, &status));
		EXPECT_EQ(TWHEEL_TIME_NEVER, status.deadline_ns);
		EXPECT_EQ(intervals_ns[i], status.interval_ns);
	}
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(TWHEEL_TIME_NEVER, info.next_expiry_ns);
	EXPECT_EQ(ARRAY_SIZE(intervals_ns), info.pending);
}

TEST_F(periodic, query_of_an_unread_timeout_reports_the_next_deadline)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 0);
	struct twheel_status status;

	ASSERT_EQ(0, tw_advance(self->fd, 34 * TW_MS));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, status.state);
	EXPECT_EQ(3, status.count);
	EXPECT_EQ(40 * TW_MS, status.deadline_ns);
	EXPECT_EQ(6 * TW_MS, status.left_ns);
	EXPECT_EQ(0, status.deliveries);
}

/* It is the same time as in the event when that is read. */
TEST_F(periodic, query_shows_when_the_unread_event_fired)
{
	const __u64 now_ns[] = { 34 * TW_MS, 39 * TW_MS, 45 * TW_MS };
	const __u64 fired_ns[] = { 34 * TW_MS, 34 * TW_MS, 40 * TW_MS };
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 0);
	struct twheel_status status;
	struct twheel_event event;
	int i;

	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(0, status.fired_ns);
	for (i = 0; i < ARRAY_SIZE(now_ns); i++) {
		ASSERT_EQ(0, tw_advance(self->fd, now_ns[i]));
		ASSERT_EQ(0, tw_query1(self->fd, id, &status));
		EXPECT_EQ(fired_ns[i], status.fired_ns);
	}
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(status.fired_ns, event.fired_ns);
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(0, status.fired_ns);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 48 * TW_MS));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(48 * TW_MS, status.fired_ns);
}

TEST_F(periodic, query_after_reading_reports_deliveries)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 0);
	struct twheel_status status;

	/* The limit counts events, not expirations: three events for five periods. */
	expect_event_at(_metadata, self->fd, 10 * TW_MS, id, 1, 10 * TW_MS);
	expect_event_at(_metadata, self->fd, 40 * TW_MS, id, 3, 40 * TW_MS);
	expect_event_at(_metadata, self->fd, 50 * TW_MS, id, 1, 50 * TW_MS);
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(TWHEEL_STATE_PENDING, status.state);
	EXPECT_EQ(3, status.deliveries);
	EXPECT_EQ(0, status.count);
}

/* ---- fixed delay --------------------------------------------------------- */

TEST_F(periodic, fixed_delay_begins_its_next_period_when_the_event_is_read)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS,
				TWHEEL_ARM_FIXED_DELAY, 0);
	struct twheel_event event;

	expect_event_at(_metadata, self->fd, 10 * TW_MS, id, 1, 10 * TW_MS);
	expect_nothing_at(_metadata, self->fd, 20 * TW_MS - 1);
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	/* The event is unread for 7 ms: the next one comes 10 ms after the read. */
	ASSERT_EQ(0, tw_advance(self->fd, 27 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(20 * TW_MS, event.deadline_ns);
	EXPECT_EQ(20 * TW_MS, event.fired_ns);
	EXPECT_EQ(1, event.count);
	expect_nothing_at(_metadata, self->fd, 37 * TW_MS - 1);
	expect_event_at(_metadata, self->fd, 37 * TW_MS, id, 1, 37 * TW_MS);
}

TEST_F(periodic, fixed_delay_counts_one_however_long_it_is_not_read)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS,
				TWHEEL_ARM_FIXED_DELAY, 0);

	expect_event_at(_metadata, self->fd, TW_DAY, id, 1, 10 * TW_MS);
	expect_event_at(_metadata, self->fd, TW_DAY + 10 * TW_MS, id, 1, TW_DAY + 10 * TW_MS);
}

TEST_F(periodic, fixed_delay_is_not_pending_while_unread)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS,
				TWHEEL_ARM_FIXED_DELAY, 0);
	struct twheel_event event;
	struct twheel_info info;

	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0, info.pending);
	EXPECT_EQ(1, info.unread);
	EXPECT_EQ(1, info.live);
	EXPECT_EQ(TWHEEL_TIME_NEVER, info.next_expiry_ns);

	ASSERT_ONE_EVENT(self->fd, &event, id);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1, info.pending);
	EXPECT_EQ(0, info.unread);
	EXPECT_EQ(1, info.live);
	EXPECT_EQ(20 * TW_MS, info.next_expiry_ns);
}

TEST_F(periodic, query_of_an_unread_fixed_delay_reports_the_deadline_that_passed)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS,
				TWHEEL_ARM_FIXED_DELAY, 0);
	struct twheel_status status;

	ASSERT_EQ(0, tw_advance(self->fd, 13 * TW_MS));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, status.state);
	EXPECT_EQ(TWHEEL_ARM_FIXED_DELAY, status.flags);
	EXPECT_EQ(10 * TW_MS, status.deadline_ns);
	EXPECT_EQ(0, status.left_ns);
	EXPECT_EQ(1, status.count);
}

TEST_F(periodic, fixed_delay_of_the_shortest_interval_is_one_event_a_read)
{
	__u64 id = arm_periodic(_metadata, self->fd, 0, 1, TWHEEL_ARM_FIXED_DELAY, 0);
	int i;

	/* The timeout does not expire again within the turn that delivered it. */
	for (i = 0; i < 20; i++) {
		expect_event_at(_metadata, self->fd, i * TW_MS, id, 1, i * TW_MS);
		expect_nothing_at(_metadata, self->fd, i * TW_MS);
	}
}

/* ---- limits -------------------------------------------------------------- */

TEST_F(periodic, limit_ends_a_timeout_after_as_many_events)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 3);
	struct twheel_status status;
	struct twheel_info info;
	int i;

	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(0, tw_query1(self->fd, id, &status));
		EXPECT_EQ(4 - i, status.repeats_left);
		expect_event_at(_metadata, self->fd, i * 10 * TW_MS, id, 1, i * 10 * TW_MS);
	}
	EXPECT_EQ(-ENOENT, tw_query1(self->fd, id, &status));
	expect_nothing_at(_metadata, self->fd, TW_DAY);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1, info.completed);
	EXPECT_EQ(3, info.delivered);
	EXPECT_EQ(0, info.live);
}

TEST_F(periodic, limit_bounds_expirations_and_not_events)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 5);
	struct twheel_event event;

	expect_event_at(_metadata, self->fd, 20 * TW_MS, id, 2, 20 * TW_MS);
	/* 30, 40, 50, and no more. */
	ASSERT_EQ(0, tw_advance(self->fd, TW_DAY));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(3, event.count);
	EXPECT_EQ(50 * TW_MS, event.deadline_ns);
	EXPECT_EQ(TWHEEL_EVENT_ENDED, event.flags);
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id));
}

TEST_F(periodic, spent_timeout_is_unread_and_no_longer_pending)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 2);
	struct twheel_status status;
	struct twheel_info info;

	ASSERT_EQ(0, tw_advance(self->fd, TW_SEC));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0, info.pending);
	EXPECT_EQ(1, info.unread);
	EXPECT_EQ(1, info.live);
	EXPECT_EQ(TWHEEL_TIME_NEVER, info.next_expiry_ns);
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, status.state);
	EXPECT_EQ(2, status.count);
	EXPECT_EQ(0, status.repeats_left);
	EXPECT_EQ(TWHEEL_STATUS_LAST_EVENT, status.flags);
	EXPECT_EQ(20 * TW_MS, status.deadline_ns);
	EXPECT_EQ(0, status.left_ns);
}

TEST_F(periodic, limit_of_one_is_one_expiration)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 1);

	expect_event_at(_metadata, self->fd, 10 * TW_MS, id, 1, 10 * TW_MS);
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id));
}

TEST_F(periodic, greatest_limit_is_reached_exactly)
{
	__u64 id = arm_periodic(_metadata, self->fd, TW_MS, TW_MS, 0, ~0U);
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(self->fd, (1ULL << 33) * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(~0U, event.count);
	EXPECT_EQ(((1ULL << 32) - 1) * TW_MS, event.deadline_ns);
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id));
}

TEST_F(periodic, limit_holds_when_armed_in_the_past)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_advance(self->fd, 100 * TW_MS));
	id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 4);
	ASSERT_EQ(0, tw_advance(self->fd, 100 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(4, event.count);
	EXPECT_EQ(40 * TW_MS, event.deadline_ns);
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id));
}

TEST_F(periodic, limit_of_a_fixed_delay_bounds_its_events)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS,
				TWHEEL_ARM_FIXED_DELAY, 2);

	expect_event_at(_metadata, self->fd, 10 * TW_MS, id, 1, 10 * TW_MS);
	expect_event_at(_metadata, self->fd, 20 * TW_MS, id, 1, 20 * TW_MS);
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id));
	expect_nothing_at(_metadata, self->fd, TW_DAY);
}

/* ---- the last event ------------------------------------------------------- */

/* Arm one timeout of each kind, expire them nr times, and read the flags of each event. */
static void expect_flags(struct __test_metadata *_metadata, int fd, int nr, __u32 flags,
			 __u32 repeats, const __u32 *expected)
{
	__u64 id = arm_periodic(_metadata, fd, 10 * TW_MS, repeats == 0 && !flags ? 0 : 10 * TW_MS,
				flags, repeats);
	struct twheel_event event;
	int i;

	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, tw_advance(fd, (i + 1) * 10 * TW_MS));
		ASSERT_ONE_EVENT(fd, &event, id);
		EXPECT_EQ(expected[i], event.flags)
			TH_LOG("event %d", i);
	}
}

TEST_F(periodic, event_of_a_one_shot_says_ended)
{
	expect_flags(_metadata, self->fd, 1, 0, 0, (__u32[]){ TWHEEL_EVENT_ENDED });
}

TEST_F(periodic, last_event_of_a_limited_timeout_says_ended_and_no_other)
{
	expect_flags(_metadata, self->fd, 3, 0, 3, (__u32[]){ 0, 0, TWHEEL_EVENT_ENDED });
}

TEST_F(periodic, last_event_of_a_limited_fixed_delay_says_ended_and_no_other)
{
	expect_flags(_metadata, self->fd, 3, TWHEEL_ARM_FIXED_DELAY, 3,
		     (__u32[]){ 0, 0, TWHEEL_EVENT_ENDED });
}

TEST_F(periodic, events_of_an_unlimited_fixed_delay_never_say_ended)
{
	const __u32 none[4] = {};

	expect_flags(_metadata, self->fd, 4, TWHEEL_ARM_FIXED_DELAY, 0, none);
}

TEST_F(periodic, events_of_an_unlimited_timeout_never_say_ended)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 0);
	struct twheel_event event;
	int i;

	for (i = 1; i <= 4; i++) {
		ASSERT_EQ(0, tw_advance(self->fd, i * TW_SEC));
		ASSERT_ONE_EVENT(self->fd, &event, id);
		EXPECT_EQ(0, event.flags);
	}
	/* This holds even if it goes on to the end of time, after which no event follows. */
	ASSERT_EQ(0, tw_advance(self->fd, TWHEEL_TIME_NEVER));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(0, event.flags);
}

/* Nobody has read it, and the kthread has not seen the last period pass. */
TEST_F(periodic, event_that_reaches_the_limit_unread_says_ended)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 4);
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_EQ(0, tw_advance(self->fd, 30 * TW_MS));
	ASSERT_EQ(POLLIN | POLLOUT, tw_poll(self->fd, POLLIN | POLLOUT, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 40 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(4, event.count);
	EXPECT_EQ(TWHEEL_EVENT_ENDED, event.flags);
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id));
}

TEST_F(periodic, rearm_of_a_spent_timeout_begins_again_and_its_events_say_so)
{
	__u64 id = arm_periodic(_metadata, self->fd, 10 * TW_MS, 10 * TW_MS, 0, 1);
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_rearm1(self->fd, id, 0, 10 * TW_MS, 10 * TW_MS));
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(0, event.flags);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, id, 0, 10 * TW_MS, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 30 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(TWHEEL_EVENT_ENDED, event.flags);
}

/* ---- timeouts in every level --------------------------------------------- */

FIXTURE(periodic_anywhere) {
	int fd;
	struct twheel_info info;
};

TW_VIRTUAL_VARIANTS(periodic_anywhere);

FIXTURE_SETUP(periodic_anywhere)
{
	self->fd = tw_open_setup(O_NONBLOCK, &variant->setup);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &self->info));
}

FIXTURE_TEARDOWN(periodic_anywhere)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Try each interval for which the timeout waits in another level, over a few periods. */
TEST_F(periodic_anywhere, any_period_keeps_its_phase)
{
	__u64 tick_ns = self->info.tick_ns, slots = self->info.slots;
	const __u64 periods_ns[] = {
		tick_ns, 2 * tick_ns, tick_ns + tick_ns / 2, (slots - 1) * tick_ns,
		slots * tick_ns, (slots + 1) * tick_ns, slots * 128 * tick_ns,
		slots * 128 * tick_ns + tick_ns / 3, 5 * slots * 128 * tick_ns,
	};
	__u64 base_ns = 0, id;
	int i, k;

	for (i = 0; i < ARRAY_SIZE(periods_ns); i++) {
		id = arm_periodic(_metadata, self->fd, base_ns + periods_ns[i], periods_ns[i], 0,
				  0);
		for (k = 1; k <= 5; k++) {
			__u64 deadline_ns = base_ns + k * periods_ns[i];
			__u64 edge_ns = tw_round_up(deadline_ns, tick_ns);

			expect_nothing_at(_metadata, self->fd, edge_ns - 1);
			expect_event_at(_metadata, self->fd, edge_ns, id, 1, deadline_ns);
		}
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
		base_ns = tw_round_up(base_ns + 6 * periods_ns[i], tick_ns);
		ASSERT_EQ(0, tw_advance(self->fd, base_ns));
	}
}

TEST_HARNESS_MAIN
