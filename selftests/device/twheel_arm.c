// SPDX-License-Identifier: GPL-2.0
/*
 * ARM: when a timeout expires. It is never early (G1), expires on the first edge at or after its
 * deadline (G2), and in the order of ticks, at any distance.
 *
 * All tests use the virtual clock, on which "not before" and "not after" are exact: one
 * nanosecond before the edge there is no event, and on the edge there is one.
 */
#include "twheel_test.h"

#define MAX_DEADLINES	512

FIXTURE(arm) {
	int fd;
	__u64 tick_ns;
	__u64 slots;
};

TW_VIRTUAL_VARIANTS(arm);

FIXTURE_SETUP(arm)
{
	struct twheel_info info;

	self->fd = tw_open_setup(O_NONBLOCK, &variant->setup);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	self->tick_ns = info.tick_ns;
	self->slots = info.slots;
}

FIXTURE_TEARDOWN(arm)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

static int compare_u64(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return (x > y) - (x < y);
}

/* Arm a one-shot for each deadline, with its number as user_data. */
static void arm_all(struct __test_metadata *_metadata, int fd, const __u64 *deadlines_ns, int nr)
{
	struct twheel_arm *arms = calloc(nr, sizeof(*arms));
	int i;

	ASSERT_NE(NULL, arms);
	for (i = 0; i < nr; i++) {
		arms[i].flags = TWHEEL_ARM_ABSOLUTE;
		arms[i].expires_ns = deadlines_ns[i];
		arms[i].user_data = i;
	}
	ASSERT_EQ(nr, tw_arm_vec(fd, arms, nr));
	free(arms);
}

/* Read the events of one edge: exactly the deadlines from first to end. */
static void expect_group(struct __test_metadata *_metadata, int fd, const __u64 *deadlines_ns,
			 int first, int end, __u64 edge_ns)
{
	struct twheel_event events[MAX_DEADLINES + 1];
	bool seen[MAX_DEADLINES] = {};
	int i;

	ASSERT_EQ(end - first, tw_read(fd, events, end - first + 1))
		TH_LOG("edge %llu, deadline %llu", edge_ns, deadlines_ns[first]);
	for (i = 0; i < end - first; i++) {
		__u64 who = events[i].user_data;

		ASSERT_TRUE(who >= first && who < end && !seen[who]);
		seen[who] = true;
		EXPECT_EQ(deadlines_ns[who], events[i].deadline_ns);
		EXPECT_EQ(edge_ns, events[i].fired_ns);
		EXPECT_EQ(1, events[i].count);
		EXPECT_EQ(TWHEEL_EVENT_ENDED, events[i].flags);
	}
}

/*
 * Arm all deadlines, which must be in the future, and go from edge to edge: a nanosecond before
 * each edge there is no event, and on it exactly the events of that edge. This sorts the deadlines.
 */
static void expect_exact(struct __test_metadata *_metadata, int fd, __u64 tick_ns,
			 __u64 *deadlines_ns, int nr)
{
	int first, end;

	ASSERT_LE(nr, MAX_DEADLINES);
	qsort(deadlines_ns, nr, sizeof(*deadlines_ns), compare_u64);
	arm_all(_metadata, fd, deadlines_ns, nr);

	for (first = 0; first < nr; first = end) {
		__u64 edge_ns = tw_round_up(deadlines_ns[first], tick_ns);

		for (end = first; end < nr; end++)
			if (tw_round_up(deadlines_ns[end], tick_ns) != edge_ns)
				break;
		ASSERT_EQ(0, tw_advance(fd, edge_ns - 1));
		EXPECT_NO_EVENT(fd);
		ASSERT_EQ(0, tw_advance(fd, edge_ns));
		expect_group(_metadata, fd, deadlines_ns, first, end, edge_ns);
	}
	EXPECT_NO_EVENT(fd);
}

TEST_F(arm, deadline_on_a_tick_edge_expires_on_that_edge)
{
	__u64 deadlines_ns[] = { self->tick_ns, 2 * self->tick_ns, 7 * self->tick_ns };

	expect_exact(_metadata, self->fd, self->tick_ns, deadlines_ns, ARRAY_SIZE(deadlines_ns));
}

TEST_F(arm, deadline_between_edges_expires_on_the_next_edge)
{
	__u64 tick_ns = self->tick_ns;
	__u64 deadlines_ns[] = {
		1, tick_ns + 1, 2 * tick_ns + tick_ns / 2, 4 * tick_ns - 1, 9 * tick_ns + 1,
	};

	expect_exact(_metadata, self->fd, tick_ns, deadlines_ns, ARRAY_SIZE(deadlines_ns));
}

TEST_F(arm, each_of_many_successive_ticks_expires_its_own_timeout)
{
	__u64 deadlines_ns[300];
	int i;

	for (i = 0; i < ARRAY_SIZE(deadlines_ns); i++)
		deadlines_ns[i] = (i + 1) * self->tick_ns;
	expect_exact(_metadata, self->fd, self->tick_ns, deadlines_ns, ARRAY_SIZE(deadlines_ns));
}

TEST_F(arm, all_timeouts_of_one_tick_expire_together)
{
	__u64 deadlines_ns[200];
	int i;

	for (i = 0; i < ARRAY_SIZE(deadlines_ns); i++)
		deadlines_ns[i] = 5 * self->tick_ns + 1 + i * (self->tick_ns - 1) / 199;
	expect_exact(_metadata, self->fd, self->tick_ns, deadlines_ns, ARRAY_SIZE(deadlines_ns));
}

/*
 * The distances at which a wheel takes another level: the span of the first level, then 128 times
 * as much for each further one; if there is one level, whole rounds of it. Each has its neighbours
 * on both sides.
 */
static int fill_spans(__u64 *deadlines_ns, int max, __u64 base_ns, __u64 tick_ns, __u64 slots)
{
	__u64 span_ticks;
	int nr = 0;

	for (span_ticks = slots; ; span_ticks *= 128) {
		int times, beside;

		if (span_ticks > TWHEEL_TIME_NEVER / tick_ns / 512)
			return nr;
		for (times = 1; times <= 3; times++)
			for (beside = -1; beside <= 1; beside++)
				if (nr < max)
					deadlines_ns[nr++] = base_ns +
						(span_ticks * times + beside) * tick_ns;
	}
}

TEST_F(arm, deadlines_around_the_span_of_each_level_are_exact)
{
	__u64 deadlines_ns[128];
	int nr = fill_spans(deadlines_ns, ARRAY_SIZE(deadlines_ns), 0, self->tick_ns, self->slots);

	expect_exact(_metadata, self->fd, self->tick_ns, deadlines_ns, nr);
}

TEST_F(arm, spans_counted_from_within_a_level_are_exact)
{
	__u64 base_ns = (self->slots * 128 - 1) * self->tick_ns;
	__u64 deadlines_ns[128];
	int nr = fill_spans(deadlines_ns, ARRAY_SIZE(deadlines_ns), base_ns, self->tick_ns,
			    self->slots);

	ASSERT_EQ(0, tw_advance(self->fd, base_ns));
	expect_exact(_metadata, self->fd, self->tick_ns, deadlines_ns, nr);
}

/* 49.7 days and 2.2 years in milliseconds, at which counters of other systems wrapped. */
TEST_F(arm, deadlines_around_32_and_36_bits_of_milliseconds_are_exact)
{
	__u64 tick_ns = self->tick_ns;
	__u64 wrap32_ns = (1ULL << 32) * TW_MS, wrap36_ns = (1ULL << 36) * TW_MS;
	__u64 deadlines_ns[] = {
		wrap32_ns - tick_ns, wrap32_ns - 1, wrap32_ns, wrap32_ns + 1, wrap32_ns + tick_ns,
		wrap36_ns - tick_ns, wrap36_ns - 1, wrap36_ns, wrap36_ns + 1, wrap36_ns + tick_ns,
	};

	expect_exact(_metadata, self->fd, tick_ns, deadlines_ns, ARRAY_SIZE(deadlines_ns));
}

TEST_F(arm, deadlines_around_31_and_32_bits_of_ticks_are_exact)
{
	__u64 sign_ns = (1ULL << 31) * self->tick_ns, wrap_ns = 2 * sign_ns;
	__u64 deadlines_ns[] = {
		sign_ns - self->tick_ns, sign_ns - 1, sign_ns, sign_ns + 1,
		wrap_ns - self->tick_ns, wrap_ns - 1, wrap_ns, wrap_ns + 1,
	};

	if (self->tick_ns > TWHEEL_TIME_NEVER >> 33)
		SKIP(return, "time ends before so many ticks");
	expect_exact(_metadata, self->fd, self->tick_ns, deadlines_ns, ARRAY_SIZE(deadlines_ns));
}

TEST_F(arm, last_edge_before_the_end_of_time_is_reached)
{
	__u64 last_ns = (TWHEEL_TIME_NEVER - 1) / self->tick_ns * self->tick_ns;
	__u64 deadlines_ns[] = { last_ns - 2 * self->tick_ns, last_ns - 1, last_ns };

	expect_exact(_metadata, self->fd, self->tick_ns, deadlines_ns, ARRAY_SIZE(deadlines_ns));
}

TEST_F(arm, last_edge_before_the_end_of_time_is_a_next_expiry)
{
	__u64 id, last_ns = TWHEEL_TIME_NEVER / self->tick_ns * self->tick_ns;
	struct twheel_info info;

	ASSERT_EQ(0, tw_arm_at(self->fd, last_ns, &id));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(last_ns, info.next_expiry_ns);
}

TEST_F(arm, arming_into_the_expiring_slot_does_not_expire_a_round_early)
{
	__u64 now_ns = 3 * self->slots * self->tick_ns;
	__u64 deadlines_ns[] = {
		now_ns + self->tick_ns,
		now_ns + (self->slots - 1) * self->tick_ns,
		now_ns + self->slots * self->tick_ns,
		now_ns + 2 * self->slots * self->tick_ns,
	};

	ASSERT_EQ(0, tw_advance(self->fd, now_ns));
	expect_exact(_metadata, self->fd, self->tick_ns, deadlines_ns, ARRAY_SIZE(deadlines_ns));
}

TEST_F(arm, relative_deadline_counts_from_now_and_not_from_an_edge)
{
	__u64 now_ns = 5 * self->tick_ns + self->tick_ns / 3;
	__u64 edge_ns = 8 * self->tick_ns;
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_advance(self->fd, now_ns));
	ASSERT_EQ(0, tw_arm_in(self->fd, 2 * self->tick_ns, &id));
	ASSERT_EQ(0, tw_advance(self->fd, edge_ns - 1));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, edge_ns));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(now_ns + 2 * self->tick_ns, event.deadline_ns);
}

TEST_F(arm, relative_zero_expires_when_the_clock_is_advanced_to_the_present)
{
	__u64 now_ns = 5 * self->tick_ns + self->tick_ns / 2;
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_advance(self->fd, now_ns));
	ASSERT_EQ(0, tw_arm_in(self->fd, 0, &id));
	ASSERT_EQ(0, tw_advance(self->fd, now_ns));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(now_ns, event.deadline_ns);
	EXPECT_EQ(now_ns, event.fired_ns);
	EXPECT_EQ(1, event.count);
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(arm, deadline_that_has_passed_does_not_wait_for_an_edge)
{
	__u64 now_ns = 9 * self->tick_ns + self->tick_ns / 2;
	const __u64 past_ns[] = { 0, 1, 4 * self->tick_ns, 9 * self->tick_ns, now_ns - 1, now_ns };
	struct twheel_event event;
	__u64 id;
	int i;

	ASSERT_EQ(0, tw_advance(self->fd, now_ns));
	for (i = 0; i < ARRAY_SIZE(past_ns); i++) {
		ASSERT_EQ(0, tw_arm_at(self->fd, past_ns[i], &id));
		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		ASSERT_ONE_EVENT(self->fd, &event, id);
		EXPECT_EQ(past_ns[i], event.deadline_ns);
		EXPECT_EQ(1, event.count);
	}
}

TEST_F(arm, deadline_later_in_the_present_tick_waits_for_its_edge)
{
	__u64 now_ns = 9 * self->tick_ns + self->tick_ns / 2;
	__u64 deadlines_ns[] = { now_ns + 1, 10 * self->tick_ns - 1 };

	ASSERT_EQ(0, tw_advance(self->fd, now_ns));
	expect_exact(_metadata, self->fd, self->tick_ns, deadlines_ns, ARRAY_SIZE(deadlines_ns));
}

/* The clock jumps over the last part of the way: all events come at once, in the order of ticks. */
TEST_F(arm, events_after_a_stall_come_in_the_order_of_ticks)
{
	__u64 range_ticks = 40 * self->slots, previous_ns = 0, seed = 1;
	struct twheel_event events[MAX_DEADLINES];
	__u64 deadlines_ns[MAX_DEADLINES];
	int i;

	for (i = 0; i < MAX_DEADLINES; i++)
		deadlines_ns[i] = self->tick_ns + tw_random(&seed) % range_ticks * self->tick_ns +
				  tw_random(&seed) % self->tick_ns;
	arm_all(_metadata, self->fd, deadlines_ns, MAX_DEADLINES);
	ASSERT_EQ(0, tw_advance(self->fd, (range_ticks + 2) * self->tick_ns));

	ASSERT_EQ(MAX_DEADLINES, tw_read(self->fd, events, MAX_DEADLINES));
	for (i = 0; i < MAX_DEADLINES; i++) {
		__u64 edge_ns = tw_round_up(events[i].deadline_ns, self->tick_ns);

		EXPECT_LE(previous_ns, edge_ns);
		previous_ns = edge_ns;
		ASSERT_GT(MAX_DEADLINES, events[i].user_data);
		EXPECT_EQ(deadlines_ns[events[i].user_data], events[i].deadline_ns);
		/* Each event comes exactly once: none matches a second time. */
		deadlines_ns[events[i].user_data] = 0;
	}
	EXPECT_NO_EVENT(self->fd);
}

/*
 * Timeouts that have moved down from far levels and those that were armed near come in one order.
 */
TEST_F(arm, events_armed_at_different_times_come_in_the_order_of_ticks)
{
	__u64 end_ticks = 300 * self->slots, previous_ns = 0, seed = 2;
	struct twheel_event events[MAX_DEADLINES];
	int i, step, armed = 0;
	__u64 id;

	for (step = 0; step < 8; step++) {
		__u64 now_ticks = step * end_ticks / 10;

		ASSERT_EQ(0, tw_advance(self->fd, now_ticks * self->tick_ns));
		for (i = 0; i < MAX_DEADLINES / 8; i++, armed++) {
			/* All are beyond the last step, so that nothing expires before the jump. */
			__u64 deadline_ticks = end_ticks * 8 / 10 +
					       tw_random(&seed) % (end_ticks / 5);

			ASSERT_EQ(0, tw_arm_at(self->fd, deadline_ticks * self->tick_ns, &id));
		}
	}
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, end_ticks * self->tick_ns));
	ASSERT_EQ(armed, tw_read(self->fd, events, MAX_DEADLINES));
	for (i = 0; i < armed; i++) {
		EXPECT_LE(previous_ns, events[i].deadline_ns);
		previous_ns = events[i].deadline_ns;
	}
}

TEST_F(arm, user_data_is_handed_back)
{
	const __u64 values[] = { 0, 1, ~0ULL, TW_POISON64, 1ULL << 63 };
	struct twheel_event event;
	__u64 id, now_ns;
	int i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		now_ns = (i + 1) * self->tick_ns;
		ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, now_ns, 0, values[i], &id));
		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		ASSERT_ONE_EVENT(self->fd, &event, id);
		EXPECT_EQ(values[i], event.user_data);
	}
}

/* ---- the end of time ----------------------------------------------------- */

static const struct {
	const char *name;
	__u32 flags;
	__u64 expires_ns;
} endless[] = {
	{ "absolute, the end of time", TWHEEL_ARM_ABSOLUTE, TWHEEL_TIME_NEVER },
	{ "relative, the end of time", 0, TWHEEL_TIME_NEVER },
	{ "relative, one below", 0, TWHEEL_TIME_NEVER - 1 },
	/* Now is one hour: the sum is just the end of time. */
	{ "relative, reaching it", 0, TWHEEL_TIME_NEVER - TW_HOUR },
};

TEST_F(arm, end_of_time_reads_back_as_such_and_so_does_what_reaches_beyond_it)
{
	struct twheel_status status;
	struct twheel_info info;
	__u64 id;
	int i;

	ASSERT_EQ(0, tw_advance(self->fd, TW_HOUR));
	for (i = 0; i < ARRAY_SIZE(endless); i++) {
		ASSERT_EQ(0, tw_arm1(self->fd, endless[i].flags, endless[i].expires_ns, 0, 0, &id))
			TH_LOG("%s", endless[i].name);
		ASSERT_EQ(0, tw_query1(self->fd, id, &status));
		EXPECT_EQ(TWHEEL_TIME_NEVER, status.deadline_ns)
			TH_LOG("%s", endless[i].name);
		EXPECT_EQ(TWHEEL_STATE_PENDING, status.state);
	}
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(ARRAY_SIZE(endless), info.pending);
	EXPECT_EQ(TWHEEL_TIME_NEVER, info.next_expiry_ns);
}

/* The deadline looks as if a program had computed it by a subtraction. */
TEST_F(arm, a_time_that_has_become_negative_says_einval)
{
	const __u64 negative[] = { -5ULL, ~0ULL, TWHEEL_TIME_NEVER + 1 };
	struct twheel_arm arms[3];
	int i, k;

	for (i = 0; i < 4 * ARRAY_SIZE(negative); i++) {
		memset(arms, 0, sizeof(arms));
		for (k = 0; k < 3; k++) {
			arms[k].expires_ns = TW_HOUR;
			arms[k].flags = i & 1 ? TWHEEL_ARM_ABSOLUTE : 0;
		}
		*(i & 2 ? &arms[1].expires_ns : &arms[1].interval_ns) = negative[i / 4];
		EXPECT_EQ(2, tw_arm_vec(self->fd, arms, 3));
		EXPECT_EQ(TWHEEL_CREATED, arms[0].result);
		EXPECT_EQ(-EINVAL, arms[1].result)
			TH_LOG("case %d", i);
		EXPECT_EQ(TWHEEL_CREATED, arms[2].result);
		EXPECT_EQ(2, tw_rearm_vec(self->fd, arms, 3));
		EXPECT_EQ(-EINVAL, arms[1].result)
			TH_LOG("case %d", i);
	}
}

TEST_F(arm, end_of_time_never_expires)
{
	struct twheel_info info;
	__u64 id;
	int i;

	for (i = 0; i < ARRAY_SIZE(endless) - 1; i++) {
		ASSERT_EQ(0, tw_arm1(self->fd, endless[i].flags, endless[i].expires_ns, 0, 0, &id));
	}
	ASSERT_EQ(0, tw_advance(self->fd, TWHEEL_TIME_NEVER));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(ARRAY_SIZE(endless) - 1, info.pending);
	EXPECT_EQ(0, info.expirations);
}

/*
 * If the tick is this long, the end of time is an edge, which the clock can reach. The wheel has
 * entries there, which serve timeouts that were armed later.
 */
TEST(end_of_time_that_is_an_edge_never_expires)
{
	const __u64 tick_ns = 7 * 7 * 73, last_ns = TWHEEL_TIME_NEVER - 5;
	int i, fd = tw_virtual(O_NONBLOCK, tick_ns);
	struct twheel_info info;
	__u64 id[3];

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, TWHEEL_TIME_NEVER % tick_ns);
	ASSERT_EQ(0, tw_arm_at(fd, last_ns, &id[0]));
	ASSERT_EQ(0, tw_arm_at(fd, last_ns, &id[1]));
	ASSERT_EQ(0, tw_advance(fd, tick_ns));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(fd, id[0], TWHEEL_ARM_ABSOLUTE,
						TWHEEL_TIME_NEVER, 0));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, id[1]));
	ASSERT_EQ(0, tw_arm_at(fd, TWHEEL_TIME_NEVER, &id[1]));
	ASSERT_EQ(0, tw_arm_at(fd, TWHEEL_TIME_NEVER, &id[2]));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TWHEEL_TIME_NEVER, info.next_expiry_ns);
	ASSERT_EQ(0, tw_advance(fd, TWHEEL_TIME_NEVER));
	EXPECT_NO_EVENT(fd);
	for (i = 0; i < ARRAY_SIZE(id); i++)
		EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, id[i]));
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

TEST_F(arm, relative_deadline_armed_at_the_end_of_time_never_expires)
{
	__u64 id;

	ASSERT_EQ(0, tw_advance(self->fd, TWHEEL_TIME_NEVER));
	ASSERT_EQ(0, tw_arm_in(self->fd, 1, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TWHEEL_TIME_NEVER));
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
}

TEST_HARNESS_MAIN
