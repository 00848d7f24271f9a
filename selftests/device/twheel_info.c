// SPDX-License-Identifier: GPL-2.0
/*
 * INFO: the values that it reports of a wheel, above all its next expiry and how late timeouts
 * expired. (Nearly every test checks at its end that the counters agree.)
 */
#include "twheel_outcomes.h"

#include <pthread.h>

FIXTURE(info) {
	int fd;
};

FIXTURE_SETUP(info)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(info)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(info, all_counters_of_a_new_wheel_are_zero)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_info i;
	int k;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &i));
	EXPECT_EQ(TWHEEL_WHEEL_NEW, i.state);
	EXPECT_EQ(0, i.setup_flags);
	EXPECT_EQ(0, i.features & ~TWHEEL_FEATURE_URING_CMD);
	EXPECT_EQ(TWHEEL_TIME_NEVER, i.next_expiry_ns);
	EXPECT_EQ(0, i.late | i.last_late_ns | i.last_late_at_ns);
	for (k = 0; k < TWHEEL_LATE_TICKS; k++) {
		EXPECT_EQ(0, i.late_ticks[k]);
	}
	EXPECT_EQ(0, i.armed | i.pending | i.unread | i.live | i.expirations | i.delivered);
	EXPECT_EQ(0, i.completed | i.cancelled | i.revoked | i.drained | i.rearmed);
	EXPECT_LT(0, i.max_vector);
	EXPECT_LT(0, i.max_pending_limit);
	close(fd);
}

TEST_F(info, info_shows_the_state_of_the_wheel)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_info info;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TWHEEL_WHEEL_NEW, info.state);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TWHEEL_WHEEL_RUNNING, info.state);
	ASSERT_EQ(0, tw_drain(fd));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TWHEEL_WHEEL_DRAINED, info.state);
	close(fd);
}

/* The sum is the number of expirations, each counted by its own tick. */
TEST_F(info, lateness_is_counted_in_powers_of_two_of_ticks)
{
	static const __u64 late_ticks[] = { 0, 0, 1, 1, 2, 3, 4, 7, 8, 1000, 1ULL << 40 };
	static const int counted_in[] = { 0, 0, 1, 1, 2, 2, 3, 3, 4, 10, 31 };
	__u64 expected[TWHEEL_LATE_TICKS] = {};
	__u64 id, late = 0, last_ns = 0, last_at_ns = 0, now_ns = 0;
	struct twheel_event event;
	struct twheel_info info;
	int i, k;

	for (i = 0; i < ARRAY_SIZE(late_ticks); i++) {
		__u64 edge_ns = now_ns + 16 * TW_MS;

		/* Every second timeout has slack, which is no lateness. */
		ASSERT_EQ(0, tw_arm_at(self->fd, edge_ns, &id));
		ASSERT_EQ(0, tw_arm_entry(self->fd, &(struct twheel_arm) {
			.flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = edge_ns - 5 * TW_MS,
			.slack_ticks = 15,
		}));
		now_ns = edge_ns + late_ticks[i] * TW_MS;
		if (i % 2)
			now_ns += TW_MS - 1;
		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		expected[counted_in[i]] += 2;
		if (now_ns - edge_ns > TW_MS) {
			late += 2;
			last_ns = now_ns - edge_ns;
			last_at_ns = now_ns;
		}
		ASSERT_EQ(0, tw_info(self->fd, &info));
		EXPECT_EQ(late, info.late);
		EXPECT_EQ(last_ns, info.last_late_ns);
		EXPECT_EQ(last_at_ns, info.last_late_at_ns);
		for (k = 0; k < TWHEEL_LATE_TICKS; k++) {
			EXPECT_EQ(expected[k], info.late_ticks[k])
				TH_LOG("%d ticks late, bucket %d", (int)late_ticks[i], k);
		}
		/* This is the next multiple of 16. */
		now_ns = tw_round_up(now_ns, 16 * TW_MS);
		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
	}
}

/* All three are counted, each from the edge of their tick. */
TEST_F(info, lateness_is_that_of_each_timeout_of_a_tick)
{
	struct twheel_info info;
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 9 * TW_MS + 2, &id));
	ASSERT_EQ(0, tw_arm_at(self->fd, 9 * TW_MS + 1, &id));
	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 14 * TW_MS));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(3, info.expirations);
	EXPECT_EQ(3, info.late);
	EXPECT_EQ(3, info.late_ticks[3]);
	EXPECT_EQ(4 * TW_MS, info.last_late_ns);
}

/*
 * Lateness counts for each timeout that the kthread expires, and not for the periods that follow.
 */
TEST_F(info, lateness_leaves_out_periods_and_timeouts_due_when_armed)
{
	struct twheel_event event;
	struct twheel_info info;
	__u64 id;
	int i;

	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, TW_MS, TW_MS, 0, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 100 * TW_MS));
	ASSERT_EQ(0, tw_arm_at(self->fd, 50 * TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 200 * TW_MS));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(200, event.count);
	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	/* It is 99 ticks late. */
	for (i = 0; i < TWHEEL_LATE_TICKS; i++) {
		EXPECT_EQ(i == 7, info.late_ticks[i]);
	}
	EXPECT_EQ(1, info.late);
	EXPECT_EQ(99 * TW_MS, info.last_late_ns);
	EXPECT_EQ(100 * TW_MS, info.last_late_at_ns);
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
}

/* Lateness within the slack of the wheel does not count. */
TEST_F(info, a_timeout_is_late_after_a_tick_and_the_slack_of_the_wheel)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = TW_MS,
		.slack_ns = 5 * TW_MS,
	};
	int fd = tw_open_setup(O_NONBLOCK, &setup);
	struct twheel_info info;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_at(fd, 10 * TW_MS, &id));
	ASSERT_EQ(0, tw_advance(fd, 16 * TW_MS));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0, info.late);
	EXPECT_EQ(0, info.last_late_ns);
	EXPECT_EQ(1, info.late_ticks[3]);
	ASSERT_EQ(0, tw_arm_at(fd, 20 * TW_MS, &id));
	ASSERT_EQ(0, tw_advance(fd, 26 * TW_MS + 1));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(1, info.late);
	EXPECT_EQ(6 * TW_MS + 1, info.last_late_ns);
	close(fd);
}

TEST_F(info, a_timeout_due_when_armed_does_not_count_as_late)
{
	struct twheel_info info;
	__u64 id;

	ASSERT_EQ(0, tw_advance(self->fd, TW_HOUR));
	ASSERT_EQ(0, tw_arm_at(self->fd, 1, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_HOUR));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1, info.expirations);
	EXPECT_EQ(0, info.late_ticks[0]);
}

/* ---- how long events were unread ------------------------------------------ */

/* The sum is the number of events that were read. */
TEST_F(info, time_unread_is_counted_in_powers_of_two_of_ticks)
{
	static const __u64 ticks[] = { 0, 1, 1ULL << 40, 3, 1000, 1ULL << 40, 7, 0, 8 };
	static const int counted_in[] = { 0, 1, 31, 2, 10, 31, 3, 0, 4 };
	__u64 expected[TWHEEL_LATE_TICKS] = {};
	__u64 id, now_ns = 0, longest_at_ns = 0;
	struct twheel_event event;
	struct twheel_info info;
	int i, k, longest = 0;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0, info.longest_unread_at_ns);
	for (i = 0; i < ARRAY_SIZE(ticks); i++) {
		now_ns += TW_MS;
		ASSERT_EQ(0, tw_arm_at(self->fd, now_ns, &id));
		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		now_ns += ticks[i] * TW_MS + (i % 2 ? TW_MS - 1 : 0);
		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		expected[counted_in[i]]++;
		if (counted_in[i] >= longest) {
			longest = counted_in[i];
			longest_at_ns = now_ns;
		}
		ASSERT_EQ(0, tw_info(self->fd, &info));
		EXPECT_EQ(longest_at_ns, info.longest_unread_at_ns);
		for (k = 0; k < TWHEEL_LATE_TICKS; k++) {
			EXPECT_EQ(expected[k], info.unread_ticks[k])
				TH_LOG("%d ticks unread, bucket %d", (int)ticks[i], k);
		}
		now_ns = tw_round_up(now_ns, TW_MS);
		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
	}
}

/*
 * There are 40 events, each a tick older than the next: 32 count as the first, and 8 as the 33rd.
 */
TEST_F(info, events_that_are_copied_out_together_count_as_the_oldest)
{
	struct twheel_event events[40];
	struct twheel_info info;
	__u64 id;
	int i;

	for (i = 1; i <= 40; i++) {
		ASSERT_EQ(0, tw_arm_at(self->fd, i * TW_MS, &id));
		ASSERT_EQ(0, tw_advance(self->fd, i * TW_MS));
	}
	ASSERT_EQ(40, tw_read(self->fd, events, 40));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	/* These are 39 ticks, and 7. */
	EXPECT_EQ(32, info.unread_ticks[6]);
	EXPECT_EQ(8, info.unread_ticks[3]);
	EXPECT_EQ(40 * TW_MS, info.longest_unread_at_ns);
}

/* If nobody reads an event, it does not count; if DRAIN has made it, it does. */
TEST_F(info, time_unread_counts_events_that_are_read)
{
	struct twheel_event event;
	struct twheel_info info;
	__u64 ids[2];

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &ids[0]));
	ASSERT_EQ(0, tw_arm_at(self->fd, TW_HOUR, &ids[1]));
	ASSERT_EQ(0, tw_advance(self->fd, 9 * TW_MS));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, ids[0]));
	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_TRUE(event.flags & TWHEEL_EVENT_DRAINED);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1, info.unread_ticks[0]);
	EXPECT_EQ(0, info.unread_ticks[4]);
	EXPECT_EQ(9 * TW_MS, info.longest_unread_at_ns);
}

/* ---- without the walk ----------------------------------------------------- */

static int info_without_walk(int fd, struct twheel_info *info)
{
	memset(info, TW_POISON, sizeof(*info));
	info->size = sizeof(*info);
	info->flags = 0;
	return tw_ioctl(fd, TWHEEL_IOC_INFO, info);
}

TEST_F(info, info_without_the_walk_reports_all_but_what_needs_one)
{
	struct twheel_info walk, info;
	__u64 ids[TW_KINDS];

	tw_arm_each_kind(_metadata, self->fd, ids);
	ASSERT_EQ(0, tw_info(self->fd, &walk));
	EXPECT_EQ(TWHEEL_INFO_WALK, walk.flags);
	/* One of them is pending and has an unread event. */
	EXPECT_EQ(3, walk.pending);
	EXPECT_EQ(3, walk.unread);
	EXPECT_EQ(5, walk.live);
	ASSERT_EQ(0, info_without_walk(self->fd, &info));
	EXPECT_EQ(0, info.flags);
	EXPECT_EQ(0, info.next_expiry_ns);
	EXPECT_EQ(2, info.pending);
	info.flags = walk.flags;
	info.next_expiry_ns = walk.next_expiry_ns;
	info.pending = walk.pending;
	EXPECT_EQ(0, memcmp(&walk, &info, sizeof(info)));
}

TEST_F(info, info_without_the_walk_of_a_new_wheel_reports_its_defaults)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_info info;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, info_without_walk(fd, &info));
	EXPECT_EQ(0, info.next_expiry_ns);
	EXPECT_EQ(0, info.pending | info.live);
	EXPECT_EQ(TWHEEL_TIME_NEVER, info.alarm_ns);
	EXPECT_EQ(TW_MS, info.tick_ns);
	close(fd);
}

/* ---- the alarm ------------------------------------------------------------- */

static __u64 alarm_of(int fd)
{
	struct twheel_info info;

	return info_without_walk(fd, &info) ? TW_POISON64 : info.alarm_ns;
}

TEST_F(info, alarm_is_set_to_the_next_expiry_or_before)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_info info;
	__u64 far, near, now_ns;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_DAY, &far));
	now_ns = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_LT(now_ns, info.alarm_ns);
	EXPECT_GE(info.next_expiry_ns, info.alarm_ns);
	/* If a timeout becomes the first one, the alarm is set at once. */
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &near));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_GT(now_ns + 2 * TW_HOUR, info.alarm_ns);
	EXPECT_GE(info.next_expiry_ns, info.alarm_ns);
	EXPECT_EQ(0, info.alarm_ns % info.tick_ns);
	close(fd);
}

TEST_F(info, alarm_is_not_set_when_nothing_will_expire)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_event event;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TWHEEL_TIME_NEVER, &id));
	EXPECT_EQ(TWHEEL_TIME_NEVER, alarm_of(fd));
	ASSERT_EQ(0, tw_arm_in(fd, TW_MS, &id));
	ASSERT_EQ(POLLIN, tw_poll(fd, POLLIN, TW_PATIENCE_MS));
	ASSERT_ONE_EVENT(fd, &event, id);
	EXPECT_TRUE(TW_WAIT_FOR(alarm_of(fd) == TWHEEL_TIME_NEVER, TW_MS));
	close(fd);
}

TEST_F(info, alarm_of_a_virtual_clock_is_never_set)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &id));
	EXPECT_EQ(TWHEEL_TIME_NEVER, alarm_of(self->fd));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(TWHEEL_TIME_NEVER, alarm_of(self->fd));
}

TEST_F(info, alarm_does_not_have_the_slack_of_the_wheel_in_it)
{
	const struct twheel_setup setup = { .tick_ns = TW_MS, .slack_ns = TWHEEL_SLACK_MAX_NS };
	int fd = tw_open_setup(O_NONBLOCK, &setup);
	struct twheel_info info;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_MIN, &id));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_GT(tw_now(CLOCK_MONOTONIC) + 2 * TW_MIN, info.next_expiry_ns);
	EXPECT_GE(info.next_expiry_ns, info.alarm_ns);
	close(fd);
}

/* If nobody reads, the periods cost nothing, and INFO counts them. */
TEST_F(info, alarm_is_not_set_for_periods_that_pass_unread)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_status status;
	__u64 id, alarm_ns;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm1(fd, 0, TW_MS, TW_MS, 0, &id));
	ASSERT_EQ(POLLIN, tw_poll(fd, POLLIN, TW_PATIENCE_MS));
	EXPECT_TRUE(TW_WAIT_FOR((alarm_ns = alarm_of(fd)) == TWHEEL_TIME_NEVER, TW_MS))
		TH_LOG("the alarm is set to %llu", alarm_ns);
	EXPECT_TRUE(TW_WAIT_FOR(!tw_query1(fd, id, &status) && status.count > 20, 10 * TW_MS));
	EXPECT_EQ(TWHEEL_TIME_NEVER, alarm_of(fd));
	close(fd);
}

#define ROUND_NS	TWHEEL_ROUND_MIN_NS

/* A wheel of 100 ms a round, with timeouts an hour ahead that have their own slots by now. */
static int open_for_an_hour(__u32 flags, int nr)
{
	const struct twheel_setup setup = {
		.tick_ns = ROUND_NS / TWHEEL_SLOTS_MIN, .slots = TWHEEL_SLOTS_MIN, .flags = flags,
	};
	__u64 id, first_ns = tw_now(CLOCK_MONOTONIC) + TW_HOUR;
	int fd = tw_open_setup(O_NONBLOCK, &setup);
	struct twheel_event event;

	while (fd >= 0 && nr--)
		if (tw_arm_at(fd, first_ns + nr * setup.tick_ns, &id))
			return TW_BROKEN;
	if (fd < 0 || tw_arm_in(fd, ROUND_NS, &id) ||
	    tw_wait_event(fd, &event, TW_PATIENCE_MS) != 1)
		return TW_BROKEN;
	return fd;
}

/*
 * In each round, the alarm rings for each slot that holds a timeout, however far the deadline is.
 */
TEST_F(info, alarm_of_one_level_comes_in_each_round)
{
	__u64 before_ns, alarm_ns, now_ns;
	int nr, turn;

	for (nr = 1; nr <= TWHEEL_SLOTS_MIN; nr *= TWHEEL_SLOTS_MIN) {
		int fd = open_for_an_hour(TWHEEL_SETUP_ONE_LEVEL, nr);

		ASSERT_LE(0, fd);
		before_ns = alarm_of(fd);
		EXPECT_GE(tw_now(CLOCK_MONOTONIC) + ROUND_NS / nr, before_ns);
		for (turn = 0; turn < 5; turn++) {
			ASSERT_TRUE(TW_WAIT_FOR((alarm_ns = alarm_of(fd)) > before_ns &&
						alarm_ns != TWHEEL_TIME_NEVER, TW_MS));
			now_ns = tw_now(CLOCK_MONOTONIC);
			EXPECT_GE(now_ns + ROUND_NS / nr, alarm_ns)
				TH_LOG("%d timeouts: %llu ns ahead", nr, alarm_ns - now_ns);
			before_ns = alarm_ns;
		}
		EXPECT_NO_EVENT(fd);
		close(fd);
	}
}

TEST_F(info, alarm_of_coarser_levels_comes_in_no_round_in_vain)
{
	int fd = open_for_an_hour(0, 1);
	__u64 alarm_ns;

	ASSERT_LE(0, fd);
	alarm_ns = alarm_of(fd);
	EXPECT_LT(tw_now(CLOCK_MONOTONIC) + TW_MIN, alarm_ns);
	tw_sleep(3 * ROUND_NS);
	EXPECT_EQ(alarm_ns, alarm_of(fd));
	close(fd);
}

/* ---- the next expiry, in every level ------------------------------------- */

FIXTURE(next_expiry) {
	int fd;
	struct twheel_info info;
};

TW_VIRTUAL_VARIANTS(next_expiry);

FIXTURE_SETUP(next_expiry)
{
	self->fd = tw_open_setup(O_NONBLOCK, &variant->setup);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &self->info));
}

FIXTURE_TEARDOWN(next_expiry)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

static __u64 next_expiry(int fd)
{
	struct twheel_info info;

	return tw_info(fd, &info) ? TW_POISON64 : info.next_expiry_ns;
}

TEST_F(next_expiry, there_is_no_next_expiry_when_nothing_will_expire)
{
	__u64 id;

	EXPECT_EQ(TWHEEL_TIME_NEVER, next_expiry(self->fd));
	ASSERT_EQ(0, tw_arm_at(self->fd, TWHEEL_TIME_NEVER, &id));
	EXPECT_EQ(TWHEEL_TIME_NEVER, next_expiry(self->fd));
	ASSERT_EQ(0, tw_arm_at(self->fd, self->info.tick_ns, &id));
	ASSERT_EQ(0, tw_advance(self->fd, self->info.tick_ns));
	/* If an event is unread, its expiry is in the past. */
	EXPECT_EQ(TWHEEL_TIME_NEVER, next_expiry(self->fd));
}

TEST_F(next_expiry, next_expiry_is_rounded_up_to_its_tick)
{
	__u64 tick_ns = self->info.tick_ns, id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 9 * tick_ns + 1, &id));
	EXPECT_EQ(10 * tick_ns, next_expiry(self->fd));
	ASSERT_EQ(0, tw_arm_at(self->fd, 7 * tick_ns, &id));
	EXPECT_EQ(7 * tick_ns, next_expiry(self->fd));
}

TEST_F(next_expiry, next_expiry_of_a_periodic_timeout_goes_on_while_it_is_unread)
{
	__u64 tick_ns = self->info.tick_ns, id;

	ASSERT_EQ(0, tw_arm1(self->fd, 0, 10 * tick_ns, 10 * tick_ns, 0, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 35 * tick_ns));
	EXPECT_EQ(40 * tick_ns, next_expiry(self->fd));
}

/*
 * The end of time cuts the last tick short: if a timeout is due in it, it never expires, and INFO
 * shows that.
 */
TEST_F(next_expiry, there_is_no_next_expiry_for_a_tick_that_ends_after_time_does)
{
	__u64 last_ns = TWHEEL_TIME_NEVER / self->info.tick_ns * self->info.tick_ns;
	const __u64 deadlines_ns[] = {
		last_ns + 1, TWHEEL_TIME_NEVER - 1, TWHEEL_TIME_NEVER, last_ns, last_ns - 1,
	};
	struct twheel_event event;
	struct twheel_status row;
	__u64 id;
	int i;

	for (i = 0; i < (int)ARRAY_SIZE(deadlines_ns); i++) {
		/* The end of time may be the edge of a tick, as any other time. */
		bool comes = tw_round_up(deadlines_ns[i], self->info.tick_ns) <=
			     TWHEEL_TIME_NEVER && deadlines_ns[i] < TWHEEL_TIME_NEVER;

		ASSERT_EQ(0, tw_arm_at(self->fd, deadlines_ns[i], &id));
		EXPECT_EQ(comes ? last_ns : TWHEEL_TIME_NEVER, next_expiry(self->fd));
		ASSERT_EQ(0, tw_query1(self->fd, id, &row));
		EXPECT_EQ(TWHEEL_STATE_PENDING, row.state);
		EXPECT_EQ(deadlines_ns[i], row.deadline_ns);
		if (comes) {
			ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
		}
	}
	ASSERT_EQ(0, tw_arm_at(self->fd, last_ns, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TWHEEL_TIME_NEVER));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(TWHEEL_TIME_NEVER, next_expiry(self->fd));
}

#define WAITING	60

/* Return a near, a far, or a middle number of ticks. */
static __u64 some_ticks(__u64 *seed, __u64 slots)
{
	const __u64 ranges[] = { slots, 100 * slots, 2000 * slots };

	return 1 + tw_random(seed) % ranges[tw_random(seed) % 3];
}

/* Cancel or re-arm from the nearest on: INFO always shows the nearest of the others. */
TEST_F(next_expiry, next_expiry_is_exact_as_the_nearest_is_cancelled_or_moved)
{
	__u64 ids[WAITING], ticks[WAITING], seed = 8, tick_ns = self->info.tick_ns;
	int i, step, nearest;

	for (i = 0; i < WAITING; i++) {
		ticks[i] = some_ticks(&seed, self->info.slots);
		ASSERT_EQ(0, tw_arm_at(self->fd, ticks[i] * tick_ns, &ids[i]));
	}
	for (step = 0; step < 2 * WAITING; step++) {
		for (i = nearest = 0; i < WAITING; i++)
			if (ticks[i] < ticks[nearest])
				nearest = i;
		ASSERT_EQ(ticks[nearest] * tick_ns, next_expiry(self->fd));
		if (step % 2) {
			ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[nearest]));
			ticks[nearest] = ~0ULL / tick_ns;
		} else {
			ticks[nearest] += some_ticks(&seed, self->info.slots);
			ASSERT_EQ(TWHEEL_WAS_PENDING,
				  tw_rearm1(self->fd, ids[nearest], TWHEEL_ARM_ABSOLUTE,
					    ticks[nearest] * tick_ns, 0));
		}
	}
	EXPECT_EQ(TWHEEL_TIME_NEVER, next_expiry(self->fd));
}

TEST_F(next_expiry, next_expiry_is_exact_as_time_passes)
{
	__u64 seed = 9, tick_ns = self->info.tick_ns, id, next_ns;
	struct twheel_event events[WAITING];
	int i, nr, left = WAITING;

	for (i = 0; i < WAITING; i++) {
		ASSERT_EQ(0, tw_arm_at(self->fd, some_ticks(&seed, self->info.slots) * tick_ns,
				       &id));
	}
	while (left) {
		next_ns = next_expiry(self->fd);
		ASSERT_NE(TWHEEL_TIME_NEVER, next_ns);
		ASSERT_EQ(0, tw_advance(self->fd, next_ns - 1));
		EXPECT_NO_EVENT(self->fd);
		ASSERT_EQ(next_ns, next_expiry(self->fd));
		ASSERT_EQ(0, tw_advance(self->fd, next_ns));
		nr = tw_read(self->fd, events, WAITING);
		ASSERT_LT(0, nr);
		left -= nr;
	}
	EXPECT_EQ(TWHEEL_TIME_NEVER, next_expiry(self->fd));
}

/* ---- before several threads ------------------------------------------------ */

static struct tw_outcome overtaken[] = {
	TW_OUTCOME("another thread has read the time meanwhile", TW_A_FEW),
};

static struct {
	int fd;
	_Atomic __u64 latest_ns;
	_Atomic bool stop;
	_Atomic int backwards;
} shown;

static void *read_time(void *arg)
{
	(void)arg;
	while (!shown.stop) {
		__u64 before_ns = shown.latest_ns, latest_ns;
		struct twheel_info info;

		tw_info(shown.fd, &info);
		if (info.now_ns < before_ns)
			shown.backwards++;
		latest_ns = shown.latest_ns;
		tw_saw(&overtaken[0], latest_ns != before_ns);
		while (latest_ns < info.now_ns &&
		       !atomic_compare_exchange_weak(&shown.latest_ns, &latest_ns, info.now_ns))
			;
	}
	return NULL;
}

/* ---- counters of one moment ------------------------------------------------- */

static struct tw_outcome moved[] = {
	TW_OUTCOME("counters that had moved", TW_A_FEW),
};

/* One-shots come and go: some expire and are read, some are cancelled. */
static void *arm_and_end(void *arg)
{
	const int fd = *(int *)arg;
	__u64 ids[4], now_ns = 0;
	struct twheel_event event;
	int i;

	while (!shown.stop) {
		for (i = 0; i < 4; i++)
			tw_arm_in(fd, i < 2 ? TW_MS : TW_HOUR, &ids[i]);
		tw_advance(fd, now_ns += TW_MS);
		tw_read(fd, &event, 1);
		for (i = 0; i < 4; i++)
			tw_cancel1(fd, ids[i]);
	}
	return NULL;
}

/* These sums hold whenever all counters are of the same moment, and seldom if they are not. */
TEST_F_TIMEOUT(info, counters_are_those_of_one_moment, 60)
{
	struct tw_race race = TW_RACE(moved, 1);
	struct twheel_info i;
	pthread_t thread;
	__u64 sum, armed = 0;
	int k;

	ASSERT_EQ(0, pthread_create(&thread, NULL, arm_and_end, &self->fd));
	while (tw_race_goes_on(&race)) {
		ASSERT_EQ(0, info_without_walk(self->fd, &i));
		tw_saw(&moved[0], i.armed != armed);
		armed = i.armed;
		for (k = sum = 0; k < TWHEEL_LATE_TICKS; k++)
			sum += i.late_ticks[k];
		ASSERT_EQ(i.expirations, sum);
		for (k = sum = 0; k < TWHEEL_LATE_TICKS; k++)
			sum += i.unread_ticks[k];
		ASSERT_EQ(i.delivered, sum);
		ASSERT_EQ(i.expirations, i.unread + i.completed + i.revoked);
		ASSERT_EQ(i.armed, i.live + i.completed + i.cancelled + i.revoked);
		ASSERT_EQ(i.completed, i.delivered);
	}
	shown.stop = true;
	pthread_join(thread, NULL);
	EXPECT_RACE(&race);
}

FIXTURE(time) {
};

FIXTURE_VARIANT(time) {
	bool virtual;
};

FIXTURE_VARIANT_ADD(time, monotonic) { .virtual = false };
FIXTURE_VARIANT_ADD(time, virtual) { .virtual = true };

FIXTURE_SETUP(time)
{
	shown.fd = variant->virtual ? tw_virtual(O_NONBLOCK, TW_MS) : tw_open(O_NONBLOCK);
	ASSERT_LE(0, shown.fd);
}

FIXTURE_TEARDOWN(time)
{
	close(shown.fd);
}

TEST_F_TIMEOUT(time, time_never_goes_back_before_several_threads, 60)
{
	struct tw_race race = TW_RACE(overtaken, 0);
	pthread_t thread[3];
	int i;

	race.usual_rounds = 100;
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, read_time, NULL));
	while (tw_race_goes_on(&race)) {
		if (variant->virtual)
			tw_advance(shown.fd, race.rounds * TW_MS);
		tw_sleep(TW_MS);
	}
	shown.stop = true;
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, (int)shown.backwards);
	EXPECT_LT(0, (__u64)shown.latest_ns);
	EXPECT_RACE(&race);
}

TEST_HARNESS_MAIN
