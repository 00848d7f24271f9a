// SPDX-License-Identifier: GPL-2.0
/*
 * Slack: a timeout expires in the first tick at or after its deadline that its slack leaves,
 * never early, and together with all others of this slack.
 */
#include "twheel_test.h"

#include <sys/mman.h>

FIXTURE(slack) {
	int fd;
	__u64 tick_ns;
};

TW_VIRTUAL_VARIANTS(slack);
TW_VIRTUAL_SETTLED(slack);

FIXTURE_SETUP(slack)
{
	TW_SETTLE();
	self->fd = tw_open_setup(O_NONBLOCK, &variant->setup);
	ASSERT_LE(0, self->fd);
	self->tick_ns = variant->setup.tick_ns;
}

FIXTURE_TEARDOWN(slack)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* The slack in force: the greatest 2^k - 1 within the slack asked for. */
static __u64 in_force(__u32 slack_ticks)
{
	__u64 slack = 0;

	while (2 * slack + 1 <= slack_ticks)
		slack = 2 * slack + 1;
	return slack;
}

/* The edge at which a timeout expires. */
static __u64 edge_of(__u64 deadline_ns, __u64 tick_ns, __u32 slack_ticks)
{
	return tw_round_up(deadline_ns, tick_ns * (in_force(slack_ticks) + 1));
}

static int arm_slack(int fd, __u64 deadline_ns, __u64 interval_ns, __u32 slack_ticks, __u64 *id)
{
	struct twheel_arm arm = {
		.flags = TWHEEL_ARM_ABSOLUTE,
		.expires_ns = deadline_ns,
		.interval_ns = interval_ns,
		.slack_ticks = slack_ticks,
	};
	int ret = tw_arm_entry(fd, &arm);

	*id = arm.id;
	return ret;
}

static int rearm_slack(int fd, __u64 id, __u64 deadline_ns, __u32 slack_ticks)
{
	struct twheel_arm arm = {
		.id = id,
		.flags = TWHEEL_ARM_ABSOLUTE,
		.expires_ns = deadline_ns,
		.slack_ticks = slack_ticks,
	};

	return tw_rearm_entry(fd, &arm);
}

static __u64 next_expiry(int fd)
{
	struct twheel_info info;

	return tw_info(fd, &info) ? 0 : info.next_expiry_ns;
}

/* Expect nothing until this edge, which INFO foretells, and on it one event. */
static void expect_at(struct __test_metadata *_metadata, int fd, __u64 id, __u64 deadline_ns,
		      __u64 edge_ns)
{
	struct twheel_event event;

	ASSERT_EQ(edge_ns, next_expiry(fd));
	ASSERT_EQ(0, tw_advance(fd, edge_ns - 1));
	EXPECT_NO_EVENT(fd);
	ASSERT_EQ(0, tw_advance(fd, edge_ns));
	ASSERT_ONE_EVENT(fd, &event, id);
	EXPECT_EQ(deadline_ns, event.deadline_ns);
	EXPECT_EQ(edge_ns, event.fired_ns);
}

/* Between the deadline and the tick that it is rounded to, ADVANCE finds nothing. */
TEST_F(slack, slack_rounds_up_to_a_power_of_two_of_ticks)
{
	static const __u32 asked[] = {
		1, 2, 3, 6, 7, 8, 100, 1000, 16383, 32766, TWHEEL_SLACK_TICKS_MAX,
	};
	struct twheel_status row;
	struct twheel_event event;
	__u64 id, now_ns = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(asked); i++) {
		__u64 deadline_ns = now_ns + (13 + i) * self->tick_ns - i % 2;
		__u64 edge_ns = edge_of(deadline_ns, self->tick_ns, asked[i]);

		ASSERT_EQ(0, arm_slack(self->fd, deadline_ns, 0, asked[i], &id));
		ASSERT_EQ(0, tw_query1(self->fd, id, &row));
		EXPECT_EQ(in_force(asked[i]), row.slack_ticks);
		EXPECT_EQ(deadline_ns, row.deadline_ns);
		EXPECT_EQ(deadline_ns - now_ns, row.left_ns);
		ASSERT_EQ(0, tw_advance(self->fd, deadline_ns));
		EXPECT_EQ(edge_ns == deadline_ns, tw_poll(self->fd, POLLIN, 0) == POLLIN);
		if (edge_ns > deadline_ns) {
			expect_at(_metadata, self->fd, id, deadline_ns, edge_ns);
		} else {
			ASSERT_ONE_EVENT(self->fd, &event, id);
		}
		now_ns = edge_ns;
	}
}

/* Deadlines in 64 ticks expire in one of them. */
TEST_F(slack, timeouts_with_the_same_slack_expire_together)
{
	struct twheel_event events[65];
	__u64 id, now_ns;
	int i, tick, passes = 0;

	for (i = 0; i < 64; i++) {
		ASSERT_EQ(0, arm_slack(self->fd, 64 * self->tick_ns + i * self->tick_ns + 1, 0,
				       63, &id));
	}
	for (tick = 0; tick <= 128; tick++) {
		int nr;

		ASSERT_EQ(0, tw_advance(self->fd, tick * self->tick_ns));
		nr = tw_read(self->fd, events, 65);
		if (nr == -EAGAIN)
			continue;
		passes++;
		EXPECT_EQ(64, nr);
		EXPECT_EQ(128, tick);
	}
	EXPECT_EQ(1, passes);
	/* If a timeout has less slack, it comes earlier, also in ticks of its own. */
	now_ns = 128 * self->tick_ns;
	for (i = 0; i < 7; i++) {
		ASSERT_EQ(0, arm_slack(self->fd, now_ns + 60 * self->tick_ns, 0, (1U << i) - 1,
				       &id));
	}
	ASSERT_EQ(0, tw_advance(self->fd, now_ns + 63 * self->tick_ns));
	EXPECT_EQ(3, tw_read(self->fd, events, 65));
	ASSERT_EQ(0, tw_advance(self->fd, now_ns + 64 * self->tick_ns));
	EXPECT_EQ(4, tw_read(self->fd, events, 65));
}

TEST_F(slack, slack_does_not_delay_a_timeout_due_when_armed)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_advance(self->fd, 5 * self->tick_ns + 3));
	ASSERT_EQ(0, arm_slack(self->fd, 4 * self->tick_ns, 0, 1000, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 5 * self->tick_ns + 3));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	ASSERT_EQ(0, arm_slack(self->fd, 1000 * self->tick_ns, 0, 1000, &id));
	ASSERT_EQ(TWHEEL_WAS_PENDING, rearm_slack(self->fd, id, 1, TWHEEL_SLACK_TICKS_MAX));
	ASSERT_EQ(0, tw_advance(self->fd, 5 * self->tick_ns + 3));
	ASSERT_ONE_EVENT(self->fd, &event, id);
}

/* Each period is rounded, and none drifts; those of one tick are one event. */
TEST_F(slack, slack_holds_for_each_period_at_a_fixed_rate)
{
	const __u64 interval_ns = 5 * self->tick_ns + 1;
	__u64 id, deadline_ns = 3 * self->tick_ns;
	struct twheel_event event;
	int i;

	ASSERT_EQ(0, arm_slack(self->fd, deadline_ns, interval_ns, 7, &id));
	for (i = 0; i < 50; i++) {
		__u64 edge_ns = edge_of(deadline_ns, self->tick_ns, 7);
		__u32 count = (edge_ns - deadline_ns) / interval_ns + 1;

		deadline_ns += (count - 1) * interval_ns;
		ASSERT_EQ(edge_ns, next_expiry(self->fd));
		ASSERT_EQ(0, tw_advance(self->fd, edge_ns - 1));
		EXPECT_NO_EVENT(self->fd);
		ASSERT_EQ(0, tw_advance(self->fd, edge_ns));
		ASSERT_ONE_EVENT(self->fd, &event, id);
		EXPECT_EQ(deadline_ns, event.deadline_ns);
		EXPECT_EQ(edge_ns, event.fired_ns);
		EXPECT_EQ(count, event.count);
		deadline_ns += interval_ns;
	}
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
}

/* If nobody reads, the periods count from the edges at which they would have expired. */
TEST_F(slack, slack_holds_for_periods_that_pass_unread)
{
	const __u64 interval_ns = 3 * self->tick_ns;
	struct twheel_status row;
	struct twheel_event event;
	__u64 id;
	int tick;

	ASSERT_EQ(0, arm_slack(self->fd, interval_ns, interval_ns, 7, &id));
	for (tick = 8; tick < 60; tick++) {
		__u32 nr = tick / 8 * 8 / 3;
		__u64 next_ns = edge_of((nr + 1) * interval_ns, self->tick_ns, 7);

		ASSERT_EQ(0, tw_advance(self->fd, tick * self->tick_ns));
		ASSERT_EQ(0, tw_query1(self->fd, id, &row));
		EXPECT_EQ(nr, row.count);
		EXPECT_EQ((nr + 1) * interval_ns, row.deadline_ns);
		EXPECT_EQ(7, row.slack_ticks);
		EXPECT_EQ(next_ns, next_expiry(self->fd));
	}
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(18, event.count);
	EXPECT_EQ(18 * interval_ns, event.deadline_ns);
	EXPECT_EQ(56 * self->tick_ns, event.fired_ns);
	expect_at(_metadata, self->fd, id, 21 * interval_ns, 64 * self->tick_ns);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
}

TEST_F(slack, slack_holds_for_each_period_at_a_fixed_delay)
{
	struct twheel_arm arm = {
		.flags = TWHEEL_ARM_FIXED_DELAY,
		.expires_ns = self->tick_ns,
		.interval_ns = 3 * self->tick_ns,
		.slack_ticks = 15,
	};
	__u64 deadline_ns = self->tick_ns;
	int i;

	ASSERT_EQ(0, tw_arm_entry(self->fd, &arm));
	for (i = 0; i < 20; i++) {
		__u64 edge_ns = edge_of(deadline_ns, self->tick_ns, 15);

		expect_at(_metadata, self->fd, arm.id, deadline_ns, edge_ns);
		deadline_ns = edge_ns + 3 * self->tick_ns;
	}
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, arm.id));
}

TEST_F(slack, slack_holds_after_a_refresh)
{
	const size_t size = sysconf(_SC_PAGESIZE);
	__u64 *table = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
	struct twheel_info info;
	__u64 id, now_ns = 0;
	int i;

	ASSERT_NE(MAP_FAILED, table);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	for (i = 0; i < 40; i++) {
		__u64 deadline_ns = tw_refreshed_ns(now_ns + (3 + i) * self->tick_ns,
						    info.refresh_shift);
		__u64 edge_ns;

		ASSERT_EQ(0, arm_slack(self->fd, now_ns + 1 + i % 3 * self->tick_ns, 0, 15, &id));
		/* The timeout is in the inbox, or in the wheel. */
		if (i % 2) {
			ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		}
		ASSERT_EQ(1, tw_refresh(table, id, deadline_ns, info.refresh_shift));
		edge_ns = edge_of(deadline_ns, self->tick_ns, 15);
		EXPECT_LE(deadline_ns, edge_ns);
		EXPECT_GT(deadline_ns + 16 * self->tick_ns, edge_ns);
		expect_at(_metadata, self->fd, id, deadline_ns, edge_ns);
		now_ns = edge_ns;
	}
	munmap(table, size);
}

/* Try every pair of slacks, with a deadline that is earlier, later, or the same. */
TEST_F(slack, slack_is_that_of_the_new_schedule_after_a_rearm)
{
	static const __u32 slacks[] = { 0, 1, 7, 31 };
	static const int moves[] = { -9, -1, 0, 1, 6, 30 };
	__u64 id, deadline_ns, now_ns = 0;
	struct twheel_status row;
	unsigned int i, k, l, m;

	for (i = 0; i < 2 * ARRAY_SIZE(slacks) * ARRAY_SIZE(slacks) * ARRAY_SIZE(moves); i++) {
		k = slacks[i / 2 % 4];
		l = slacks[i / 8 % 4];
		m = i / 32;
		deadline_ns = now_ns + 11 * self->tick_ns;
		ASSERT_EQ(0, arm_slack(self->fd, deadline_ns, 0, k, &id));
		/* The timeout is in the inbox, or in the wheel. */
		if (i % 2) {
			ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		}
		deadline_ns += moves[m] * (__s64)self->tick_ns;
		ASSERT_EQ(TWHEEL_WAS_PENDING, rearm_slack(self->fd, id, deadline_ns, l));
		ASSERT_EQ(0, tw_query1(self->fd, id, &row));
		EXPECT_EQ(l, row.slack_ticks);
		now_ns = edge_of(deadline_ns, self->tick_ns, l);
		expect_at(_metadata, self->fd, id, deadline_ns, now_ns);
	}
}

/* The revoked event had slack, or the new schedule has. */
TEST_F(slack, slack_of_an_unread_event_ends_with_it)
{
	const __u64 tick_ns = self->tick_ns;
	struct twheel_status row;
	__u64 id;

	ASSERT_EQ(0, arm_slack(self->fd, tick_ns, 0, 3, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 4 * tick_ns));
	ASSERT_EQ(0, tw_query1(self->fd, id, &row));
	EXPECT_EQ(3, row.slack_ticks);
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, row.state);
	ASSERT_EQ(TWHEEL_WAS_UNREAD, rearm_slack(self->fd, id, 5 * tick_ns, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 5 * tick_ns));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, rearm_slack(self->fd, id, 6 * tick_ns, 15));
	expect_at(_metadata, self->fd, id, 6 * tick_ns, 16 * tick_ns);
}

/* A slack reaches neither the end of time nor a tick after it. */
TEST_F(slack, slack_does_not_lead_to_an_expiry_after_the_end_of_time)
{
	__u64 never, late;

	ASSERT_EQ(0, arm_slack(self->fd, TWHEEL_TIME_NEVER, 0,
			       TWHEEL_SLACK_TICKS_MAX, &never));
	ASSERT_EQ(0, arm_slack(self->fd, TWHEEL_TIME_NEVER - 1, 0, 7, &late));
	EXPECT_EQ(TWHEEL_TIME_NEVER, next_expiry(self->fd));
	if (variant->setup.flags & TWHEEL_SETUP_ONE_LEVEL)
		return;
	ASSERT_EQ(0, tw_advance(self->fd, TWHEEL_TIME_NEVER));
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, never));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, late));
}

/* ARM of a present key begins a schedule with its own slack. */
TEST(slack_is_that_of_the_latest_arm_of_a_key)
{
	static const __u32 slacks[] = { 7, 0, 15, 1 };
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = TW_MS,
		.flags = TWHEEL_SETUP_KEYED,
	};
	int i, fd = tw_open_setup(O_NONBLOCK, &setup);
	__u64 now_ns = 0;

	ASSERT_LE(0, fd);
	for (i = 0; i < 16; i++) {
		struct twheel_arm arm = {
			.flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = now_ns + 9 * TW_MS,
			.user_data = 42,
			.slack_ticks = slacks[i % 4],
		};

		ASSERT_EQ(1, tw_arm_vec(fd, &arm, 1));
		ASSERT_EQ(TWHEEL_CREATED, arm.result);
		if (i % 3) {
			ASSERT_EQ(0, tw_advance(fd, now_ns));
		}
		arm.slack_ticks = slacks[i / 4];
		arm.expires_ns += 2 * TW_MS;
		ASSERT_EQ(1, tw_arm_vec(fd, &arm, 1));
		ASSERT_EQ(TWHEEL_WAS_PENDING, arm.result);
		now_ns = edge_of(arm.expires_ns, TW_MS, slacks[i / 4]);
		expect_at(_metadata, fd, arm.id, arm.expires_ns, now_ns);
	}
	close(fd);
}

/* ---- the slack of a wheel ------------------------------------------------ */

TEST(slack_of_a_wheel_is_shown_and_never_makes_a_timeout_early)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.tick_ns = TW_MS,
		.slack_ns = 20 * TW_MS,
	};
	int i, fd = tw_open_setup(O_NONBLOCK, &setup);
	struct twheel_event event;
	struct twheel_info info;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(20 * TW_MS, info.slack_ns);
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, tw_arm_in(fd, i * TW_MS, &id));
		ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
		EXPECT_EQ(id, event.id);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
	}
	close(fd);
}

TEST(slack_of_a_wheel_does_not_delay_advance)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = TW_MS,
		.slack_ns = TWHEEL_SLACK_MAX_NS,
	};
	int fd = tw_open_setup(O_NONBLOCK, &setup);
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_at(fd, 5 * TW_MS, &id));
	expect_at(_metadata, fd, id, 5 * TW_MS, 5 * TW_MS);
	close(fd);
}

/*
 * Arm a timeout of a wheel with slack, and wait until its time has passed. If another timer fires
 * before, the kernel makes a pass: then try again. Return 0, or -errno.
 */
static int pass_unseen(int fd)
{
	struct twheel_event event;
	struct twheel_info info;
	int tries, ret;
	__u64 id, end_ns;

	for (tries = 0; tries < 1000; tries++) {
		end_ns = tw_now(CLOCK_MONOTONIC) + 100 * TW_US;
		ret = tw_arm_at(fd, end_ns, &id);
		if (ret)
			return ret;
		while (tw_now(CLOCK_MONOTONIC) < end_ns + 10 * TW_US)
			;
		ret = tw_info(fd, &info);
		if (ret)
			return ret;
		if (!info.unread && info.alarm_ns < info.now_ns)
			return 0;
		tw_cancel1(fd, id);
		tw_read(fd, &event, 1);
	}
	return -ETIME;
}

TEST(slack_of_a_wheel_does_not_delay_a_timeout_due_when_armed)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.tick_ns = TW_US,
		.slack_ns = TWHEEL_SLACK_MAX_NS,
	};
	struct twheel_event event;
	__u64 id;
	int i;

	for (i = 0; i < 10; i++) {
		int fd = tw_open_setup(O_NONBLOCK, &setup);

		ASSERT_LE(0, fd);
		ASSERT_EQ(0, pass_unseen(fd));
		ASSERT_EQ(0, tw_arm_in(fd, 0, &id));
		ASSERT_LE(1, tw_read(fd, &event, 1));
		EXPECT_EQ(id, event.id);
		close(fd);

		/* After the time of the alarm, but in the past. */
		fd = tw_open_setup(O_NONBLOCK, &setup);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, pass_unseen(fd));
		ASSERT_EQ(0, tw_arm_at(fd, tw_now(CLOCK_MONOTONIC), &id));
		ASSERT_LE(1, tw_read(fd, &event, 1));
		EXPECT_EQ(id, event.id);
		close(fd);

		fd = tw_open_setup(O_NONBLOCK, &setup);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
		ASSERT_EQ(0, pass_unseen(fd));
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(fd, id, 0, 0, 0));
		ASSERT_LE(1, tw_read(fd, &event, 1));
		EXPECT_EQ(id, event.id);
		close(fd);
	}
}

TEST_HARNESS_MAIN
