// SPDX-License-Identifier: GPL-2.0
/*
 * The rules of lib/twheel.h on the caller's clock, one test each: deadlines, starts and stops,
 * order, periods, and idle timers.
 */
#include "twheel_lib_test.h"
#include "lib_calls.h"

#define MANY	1000
#define NR_WHEELS	16

FIXTURE(lib) {
	struct twheel *w;
	struct mark mark[MANY];
};

FIXTURE_SETUP(lib)
{
	int i;

	for (i = 0; i < MANY; i++)
		mark_init(&self->mark[i]);
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, 0, TW_MS));
	ASSERT_NE(NULL, self->w);
}

FIXTURE_TEARDOWN(lib)
{
	twheel_close(self->w);
	EXPECT_NO_LEAK();
}

/* ---- deadlines ------------------------------------------------------------ */

TEST_F(lib, timer_expires_in_the_first_dispatch_after_the_edge_of_its_tick)
{
	static const struct { __u64 deadline_ns, edge_ns; } rows[] = {
		{ 1, TW_MS },
		{ 1 << 19, TW_MS },
		{ TW_MS, TW_MS },
		{ TW_MS + 1, 2 * TW_MS },
		{ 2 * TW_MS, 2 * TW_MS },
		{ 30 * TW_MS, 30 * TW_MS },
		{ 1ULL << 26, 68 * TW_MS },
		{ 524288 * TW_MS, 524288 * TW_MS },
		{ 40 * 365 * TW_DAY + 1, 40 * 365 * TW_DAY + TW_MS },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		twheel_start_at(self->w, &self->mark[i].timer, rows[i].deadline_ns);
		EXPECT_EQ(rows[i].deadline_ns, twheel_timer_deadline(&self->mark[i].timer));
	}
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].edge_ns > twheel_now(self->w)) {
			ASSERT_EQ(0, lib_step(self->w, rows[i].edge_ns - 1));
			EXPECT_EQ(0, self->mark[i].called);
			ASSERT_LE(1, lib_step(self->w, rows[i].edge_ns));
		}
		EXPECT_EQ(1, self->mark[i].called);
		EXPECT_EQ(rows[i].edge_ns, self->mark[i].at_ns);
		EXPECT_EQ(TWHEEL_NEVER, twheel_timer_deadline(&self->mark[i].timer));
	}
}

/* On each level, an edge is also the beginning of a slot. */
TEST_F(lib, timer_expires_at_the_edge_with_ticks_of_a_power_of_two)
{
	unsigned int bit;
	struct twheel *w;

	ASSERT_EQ(0, lib_open(&w, TWHEEL_CALLER, 0, 1024));
	for (bit = 10; bit < 62; bit++) {
		struct mark *m = &self->mark[bit];

		twheel_start_at(w, &m->timer, 1ULL << bit);
		ASSERT_EQ(0, lib_step(w, (1ULL << bit) - 1));
		ASSERT_EQ(1, lib_step(w, 1ULL << bit));
		EXPECT_EQ(1, m->called);
	}
	twheel_close(w);
}

TEST_F(lib, deadline_that_has_passed_does_not_wait_for_an_edge)
{
	ASSERT_EQ(0, lib_step(self->w, 5 * TW_MS + 3));
	twheel_start_at(self->w, &self->mark[0].timer, 5 * TW_MS + 2);
	twheel_start_at(self->w, &self->mark[1].timer, 0);
	EXPECT_EQ(twheel_now(self->w), twheel_next(self->w));
	EXPECT_EQ(2, twheel_dispatch(self->w, 0));
}

/* Ticks are 1 ms and 2 s, so the timer pends, or is due and not dispatched. */
TEST_F(lib, restart_into_the_past_is_for_the_next_dispatch)
{
	const __u64 ticks[] = { TW_MS, 2 * TW_SEC };
	unsigned int i, how;

	for (i = 0; i < ARRAY_SIZE(ticks); i++) {
		for (how = 0; how < 5; how++) {
			struct mark *m = &self->mark[i * 5 + how];
			struct twheel *w;

			ASSERT_EQ(0, lib_open(&w, TWHEEL_CALLER, 0, ticks[i]));
			ASSERT_EQ(0, lib_step(w, 10 * TW_SEC + 1));
			twheel_start(w, &m->timer, how < 2 ? 10 * TW_SEC : TW_MS);
			twheel_next(w);
			if (how >= 2)
				ASSERT_EQ(0, twheel_advance(w, 20 * TW_SEC));
			if (how == 0)
				twheel_start_at(w, &m->timer, 9 * TW_SEC);
			else if (how < 3)
				twheel_start(w, &m->timer, 0);
			else
				twheel_start_at(w, &m->timer, 20 * TW_SEC - (how == 4));
			EXPECT_EQ(twheel_now(w), twheel_next(w));
			EXPECT_EQ(1, twheel_dispatch(w, 0))
				TH_LOG("tick %llu, way %u", ticks[i], how);
			EXPECT_EQ(1, m->called);
			twheel_close(w);
		}
	}
}

TEST_F(lib, deadlines_from_2_63_on_never_expire)
{
	const __u64 end_ns = 1ULL << 63;

	twheel_start(self->w, &self->mark[0].timer, TWHEEL_NEVER);
	twheel_start(self->w, &self->mark[1].timer, end_ns);
	twheel_start_at(self->w, &self->mark[2].timer, end_ns + 1);
	twheel_start_at(self->w, &self->mark[3].timer, TWHEEL_NEVER);
	twheel_start_every(self->w, &self->mark[4].timer, TWHEEL_NEVER);
	EXPECT_EQ(TWHEEL_NEVER, twheel_timer_deadline(&self->mark[0].timer));
	EXPECT_EQ(TWHEEL_NEVER, twheel_timer_deadline(&self->mark[2].timer));
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
	EXPECT_EQ(5, lib_stats(self->w).pending);
	ASSERT_EQ(0, lib_step(self->w, end_ns - 2));
	EXPECT_EQ(0, marks_called(self->mark, 5));
	EXPECT_TRUE(twheel_timer_pending(&self->mark[0].timer));
	EXPECT_TRUE(twheel_stop(self->w, &self->mark[0].timer));
	EXPECT_FALSE(twheel_timer_pending(&self->mark[0].timer));
}

/* The last nanosecond has the last key of all. */
TEST_F(lib, last_deadline_of_all_keeps_no_loop_awake)
{
	twheel_start_at(self->w, &self->mark[0].timer, (1ULL << 63) - 1);
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
	ASSERT_EQ(0, lib_step(self->w, TW_SEC));
	twheel_start(self->w, &self->mark[1].timer, TW_MS);
	ASSERT_EQ(1, lib_step(self->w, 2 * TW_SEC));
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
	EXPECT_TRUE(twheel_stop(self->w, &self->mark[0].timer));
}

TEST_F(lib, timer_that_never_expires_can_be_restarted_to_expire)
{
	twheel_start(self->w, &self->mark[0].timer, TWHEEL_NEVER);
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	ASSERT_EQ(1, lib_step(self->w, 2 * TW_SEC));
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	twheel_start(self->w, &self->mark[0].timer, TWHEEL_NEVER);
	ASSERT_EQ(0, lib_step(self->w, TW_DAY));
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
}

TEST_F(lib, delay_of_0_is_for_the_next_dispatch)
{
	twheel_start(self->w, &self->mark[0].timer, 0);
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, self->mark[0].called);
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
}

TEST_F(lib, slack_is_rounded_down_to_ticks_and_joins_expiries)
{
	struct twheel_options options = {
		.size = sizeof(options), .clock = TWHEEL_CALLER, .slack_ns = 10 * TW_MS - 1,
	};
	struct twheel *w;
	int i;

	ASSERT_EQ(0, twheel_open(&w, &options));
	for (i = 1; i <= 10; i++)
		twheel_start_at(w, &self->mark[i].timer, i * TW_MS);
	EXPECT_EQ(10 * TW_MS, twheel_next(w));
	EXPECT_EQ(0, lib_step(w, 10 * TW_MS - 1));
	EXPECT_EQ(10, lib_step(w, 10 * TW_MS));
	twheel_close(w);
}

/* ---- callbacks that start -------------------------------------------------- */

static void starts_itself_at_once(struct twheel *w, struct mark *m)
{
	twheel_start(w, &m->timer, 0);
}

TEST_F(lib, timer_that_a_callback_starts_does_not_expire_in_the_same_dispatch)
{
	int i;

	for (i = 0; i < MANY; i++) {
		self->mark[i].does = starts_itself_at_once;
		twheel_start(self->w, &self->mark[i].timer, TW_MS);
	}
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	for (i = 1; i < 4; i++) {
		EXPECT_EQ(MANY, twheel_dispatch(self->w, 0));
		EXPECT_EQ(i * MANY, marks_called(self->mark, MANY));
	}
}

static void restarts_the_others(struct twheel *w, struct mark *m)
{
	int i;

	for (i = 0; i < m->nr_others; i++)
		if (&m->others[i] != m)
			twheel_start_at(w, &m->others[i].timer, TW_MS);
	m->nr_others = 0;
}

/* This holds even with the deadline that it has. */
TEST_F(lib, timer_that_a_callback_restarts_does_not_expire_in_the_same_dispatch)
{
	int i;

	for (i = 0; i < MANY; i++) {
		self->mark[i].does = restarts_the_others;
		self->mark[i].others = self->mark;
		self->mark[i].nr_others = MANY;
		twheel_start_at(self->w, &self->mark[i].timer, TW_MS);
	}
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, marks_called(self->mark, MANY));
	for (i = 0; i < MANY; i++)
		self->mark[i].nr_others = 0;
	EXPECT_EQ(MANY - 1, twheel_dispatch(self->w, 0));
}

/* ---- order ------------------------------------------------------------------ */

TEST_F(lib, earlier_of_two_deadlines_a_tick_apart_is_called_first)
{
	__u64 seed = 1;
	int i;

	for (i = 0; i < MANY; i++) {
		struct mark *m = &self->mark[i];

		/* Most have been restarted for later, so their slots come up before. */
		twheel_start_at(self->w, &m->timer, tw_random(&seed) % (100 * TW_MS));
		if (i % 4)
			twheel_start_at(self->w, &m->timer, 100 * TW_MS + i * TW_MS);
		else
			twheel_start_at(self->w, &m->timer, i * TW_MS + 100 * TW_MS);
	}
	ASSERT_EQ(MANY, lib_step(self->w, TW_MIN));
	for (i = 1; i < MANY; i++)
		ASSERT_LT(self->mark[i - 1].order, self->mark[i].order);
}

TEST_F(lib, deadlines_that_had_passed_are_called_last_in_the_order_of_their_starts)
{
	int i;

	twheel_start(self->w, &self->mark[100].timer, 5 * TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, 10 * TW_MS));
	for (i = 0; i < 100; i++)
		twheel_start_at(self->w, &self->mark[i].timer, 10 * TW_MS - i);
	ASSERT_EQ(101, twheel_dispatch(self->w, 0));
	for (i = 0; i < 100; i++) {
		EXPECT_LT(self->mark[100].order, self->mark[i].order);
		if (i)
			EXPECT_LT(self->mark[i - 1].order, self->mark[i].order);
	}
}

/* ---- limits ------------------------------------------------------------------ */

TEST_F(lib, dispatch_calls_no_more_than_it_may_and_next_says_that_there_are_more)
{
	int i, left = MANY;

	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_MS + i % 100 * TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	while (left) {
		ASSERT_GE(twheel_now(self->w), twheel_next(self->w));
		ASSERT_EQ(left < 7 ? left : 7, twheel_dispatch(self->w, 7));
		left -= left < 7 ? left : 7;
		ASSERT_EQ(MANY - left, marks_called(self->mark, MANY));
	}
	EXPECT_EQ(0, twheel_dispatch(self->w, 7));
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
}

/* If timers start themselves again at once, they do not keep others from being called. */
TEST_F(lib, all_that_is_due_has_its_turn_before_what_is_started_meanwhile)
{
	static const struct { unsigned int max; int selves; } rows[] = {
		{ 0, 1 }, { 1, 1 }, { 4, 4 }, { 4, 1 }, { 3, 100 },
	};
	unsigned int i, turns;
	int k;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct twheel *w;

		ASSERT_EQ(0, lib_open(&w, TWHEEL_CALLER, 0, TW_MS));
		for (k = 0; k < 200; k++) {
			mark_init(&self->mark[k]);
			if (k < rows[i].selves) {
				self->mark[k].does = starts_itself_at_once;
				twheel_start(w, &self->mark[k].timer, 0);
			} else if (k >= 100) {
				twheel_start(w, &self->mark[k].timer, 5 * TW_MS);
			}
		}
		ASSERT_LE(0, twheel_dispatch(w, rows[i].max));
		ASSERT_EQ(0, twheel_advance(w, 20 * TW_MS));
		for (turns = 0; turns < 400; turns++)
			ASSERT_LE(0, twheel_dispatch(w, rows[i].max));
		EXPECT_EQ(100, marks_called(&self->mark[100], 100))
			TH_LOG("limit %u, %d that start themselves", rows[i].max, rows[i].selves);
		for (k = 1; k < rows[i].selves; k++)
			EXPECT_GE(1, abs(self->mark[0].called - self->mark[k].called));
		twheel_close(w);
	}
}

/* ---- stop -------------------------------------------------------------------- */

TEST_F(lib, callback_never_runs_after_stop)
{
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	EXPECT_TRUE(twheel_stop(self->w, &self->mark[0].timer));
	EXPECT_FALSE(twheel_stop(self->w, &self->mark[0].timer));
	twheel_start(self->w, &self->mark[1].timer, 0);
	EXPECT_TRUE(twheel_stop(self->w, &self->mark[1].timer));
	twheel_start(self->w, &self->mark[2].timer, TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_TRUE(twheel_stop_sync(self->w, &self->mark[2].timer));
	EXPECT_FALSE(twheel_stop_sync(self->w, &self->mark[2].timer));
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(0, marks_called(self->mark, 3));
}

static void stops_the_others(struct twheel *w, struct mark *m)
{
	int i;

	for (i = 0; i < m->nr_others; i++)
		twheel_stop(w, &m->others[i].timer);
}

TEST_F(lib, callback_never_runs_after_stop_by_another_callback_of_the_same_dispatch)
{
	int i;

	for (i = 0; i < MANY; i++) {
		self->mark[i].does = stops_the_others;
		self->mark[i].others = self->mark;
		self->mark[i].nr_others = MANY;
		twheel_start(self->w, &self->mark[i].timer, i % 2 ? TW_MS : 0);
	}
	ASSERT_EQ(1, lib_step(self->w, TW_SEC));
	ASSERT_EQ(0, lib_step(self->w, TW_MIN));
	EXPECT_EQ(1, marks_called(self->mark, MANY));
}

/* One address of two is that of a wheel which is not shared. */
TEST_F(lib, stop_of_an_idle_timer_needs_no_wheel)
{
	struct twheel *wheels[NR_WHEELS], *shared[NR_WHEELS];
	struct mark *m = self->mark;
	unsigned int i;

	for (i = 0; i < NR_WHEELS; i++) {
		ASSERT_EQ(0, lib_open(&wheels[i], TWHEEL_CALLER, 0, TW_MS));
		ASSERT_EQ(0, lib_open(&shared[i], TWHEEL_CALLER, TWHEEL_SHARED, TW_MS));
	}
	for (i = 0; i < NR_WHEELS; i++) {
		twheel_start(wheels[i], &m[0].timer, TW_MS);
		twheel_start(wheels[i], &m[1].timer, 2 * TW_MS);
		ASSERT_EQ(1, lib_step(wheels[i], TW_MS));
		twheel_close(wheels[i]);
		EXPECT_FALSE(twheel_stop(wheels[i], &m[0].timer));
		EXPECT_FALSE(twheel_stop(wheels[i], &m[1].timer));
		EXPECT_FALSE(twheel_stop(NULL, &m[1].timer));
		twheel_start(shared[i], &m[0].timer, TW_MS);
		EXPECT_TRUE(twheel_stop(shared[i], &m[0].timer));
		twheel_start(shared[i], &m[0].timer, TW_MS);
		twheel_close(shared[i]);
		EXPECT_FALSE(twheel_timer_pending(&m[0].timer));
	}
}

TEST_F(lib, milliseconds_are_rounded_up_and_saturate)
{
	const __u64 max_ms = UINT64_MAX / TW_MS, int_max = INT32_MAX;

	EXPECT_EQ(0, twheel_from_ms(0));
	EXPECT_EQ(7 * TW_MS, twheel_from_ms(7));
	EXPECT_EQ(max_ms * TW_MS, twheel_from_ms(max_ms));
	EXPECT_EQ(TWHEEL_NEVER, twheel_from_ms(max_ms + 1));
	EXPECT_EQ(TWHEEL_NEVER, twheel_from_ms(UINT64_MAX));
	EXPECT_EQ(0, twheel_left_ms(0, 0));
	EXPECT_EQ(0, twheel_left_ms(5, 5));
	EXPECT_EQ(0, twheel_left_ms(5, 6));
	EXPECT_EQ(0, twheel_left_ms(5, UINT64_MAX));
	EXPECT_EQ(1, twheel_left_ms(6, 5));
	EXPECT_EQ(1, twheel_left_ms(TW_MS, 0));
	EXPECT_EQ(2, twheel_left_ms(TW_MS + 1, 0));
	EXPECT_EQ(INT32_MAX - 1, twheel_left_ms((int_max - 1) * TW_MS, 0));
	EXPECT_EQ(INT32_MAX, twheel_left_ms((int_max - 1) * TW_MS + 1, 0));
	EXPECT_EQ(INT32_MAX, twheel_left_ms(int_max * TW_MS, 0));
	EXPECT_EQ(INT32_MAX, twheel_left_ms(int_max * TW_MS + 1, 0));
	EXPECT_EQ(INT32_MAX, twheel_left_ms(UINT64_MAX - 1, 0));
	EXPECT_EQ(-1, twheel_left_ms(TWHEEL_NEVER, 0));
	EXPECT_EQ(-1, twheel_left_ms(TWHEEL_NEVER, UINT64_MAX));
}

TEST_F(lib, restart_to_later_expires_later_once)
{
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_TRUE(twheel_timer_pending(&self->mark[0].timer));
	ASSERT_EQ(0, lib_step(self->w, 2 * TW_SEC - 1));
	ASSERT_EQ(1, lib_step(self->w, 2 * TW_SEC));
	ASSERT_EQ(0, lib_step(self->w, TW_DAY));
}

TEST_F(lib, restart_to_earlier_expires_earlier_once)
{
	int i;

	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_HOUR + i * TW_SEC);
	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_SEC);
	EXPECT_GE(TW_SEC, twheel_next(self->w));
	ASSERT_EQ(MANY, lib_step(self->w, TW_SEC));
	ASSERT_EQ(0, lib_step(self->w, 2 * TW_DAY));
}

/* Both are in one slot: if the first one is stopped, the slot still has another timer. */
TEST_F(lib, next_is_that_of_the_second_when_the_first_is_stopped)
{
	struct twheel_timer *first = &self->mark[0].timer, *second = &self->mark[1].timer;
	int i;

	for (i = 0; i < 2; i++) {
		twheel_start(self->w, i ? second : first, i ? TW_SEC : 950 * TW_MS);
		twheel_start(self->w, i ? first : second, i ? 950 * TW_MS : TW_SEC);
		EXPECT_EQ(950 * TW_MS, twheel_next(self->w));
		EXPECT_TRUE(twheel_stop(self->w, first));
		EXPECT_EQ(TW_SEC, twheel_next(self->w));
		EXPECT_TRUE(twheel_stop(self->w, second));
		EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
	}
}

TEST_F(lib, start_of_a_periodic_timer_as_a_one_shot_makes_it_one)
{
	twheel_start_every(self->w, &self->mark[0].timer, TW_MS);
	twheel_start(self->w, &self->mark[0].timer, 2 * TW_MS);
	ASSERT_EQ(1, lib_step(self->w, TW_SEC));
	EXPECT_EQ(1, self->mark[0].periods);
	EXPECT_FALSE(twheel_timer_pending(&self->mark[0].timer));
	ASSERT_EQ(0, lib_step(self->w, TW_MIN));
}

/* ---- periods ----------------------------------------------------------------- */

TEST_F(lib, periodic_timer_keeps_its_phase)
{
	const __u64 interval_ns = 10 * TW_MS + 1, first_ns = 3 * TW_MS + 7;
	struct mark *m = &self->mark[0];
	__u64 k, edge_ns;

	twheel_start_periodic(self->w, &m->timer, first_ns, interval_ns, 0);
	for (k = 0; k < 2000; k++) {
		edge_ns = tw_round_up(first_ns + k * interval_ns, TW_MS);
		ASSERT_EQ(0, lib_step(self->w, edge_ns - 1));
		ASSERT_EQ(1, lib_step(self->w, edge_ns));
		ASSERT_EQ(1, m->periods);
		ASSERT_TRUE(twheel_timer_pending(&m->timer));
	}
}

TEST_F(lib, periodic_timer_counts_the_periods_of_a_stall)
{
	struct mark *m = &self->mark[0];

	twheel_start_every(self->w, &m->timer, 10 * TW_MS);
	ASSERT_EQ(1, lib_step(self->w, 1005 * TW_MS));
	EXPECT_EQ(100, m->periods);
	EXPECT_EQ(1010 * TW_MS, twheel_timer_deadline(&m->timer));
	ASSERT_EQ(0, twheel_dispatch(self->w, 0));
	ASSERT_EQ(1, lib_step(self->w, 1012 * TW_MS));
	EXPECT_EQ(1, m->periods);
	EXPECT_TRUE(twheel_stop(self->w, &m->timer));
}

TEST_F(lib, periodic_timer_counts_every_period_since_a_deadline_in_the_past)
{
	struct mark *m = &self->mark[0];

	ASSERT_EQ(0, lib_step(self->w, TW_SEC));
	twheel_start_periodic(self->w, &m->timer, 5 * TW_MS, 10 * TW_MS, 0);
	ASSERT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(100, m->periods);
	EXPECT_EQ(1005 * TW_MS, twheel_timer_deadline(&m->timer));
}

TEST_F(lib, periodic_timer_from_0_on_keeps_the_phase_of_0)
{
	struct mark *m = &self->mark[0];

	/* Its deadline 0 has passed, so it does not wait for an edge. */
	twheel_start_periodic(self->w, &m->timer, 0, 10 * TW_MS, 0);
	EXPECT_TRUE(twheel_timer_pending(&m->timer));
	EXPECT_EQ(0, twheel_timer_deadline(&m->timer));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, m->periods);
	EXPECT_EQ(10 * TW_MS, twheel_timer_deadline(&m->timer));
	EXPECT_EQ(10 * TW_MS, twheel_next(self->w));
	EXPECT_TRUE(twheel_stop(self->w, &m->timer));
	/* Start it at a time that is no multiple of the interval. */
	ASSERT_EQ(0, lib_step(self->w, 25 * TW_MS));
	twheel_start_periodic(self->w, &m->timer, 0, 10 * TW_MS, 0);
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(3, m->periods);
	EXPECT_EQ(30 * TW_MS, twheel_timer_deadline(&m->timer));
	EXPECT_EQ(0, lib_step(self->w, 29 * TW_MS));
	EXPECT_EQ(1, lib_step(self->w, 30 * TW_MS));
	/* If a one-shot of 0 follows, it does not repeat, nor does one that was periodic before. */
	twheel_start_at(self->w, &m->timer, 0);
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_FALSE(twheel_timer_pending(&m->timer));
	twheel_start_periodic(self->w, &m->timer, 0, 10 * TW_MS, 0);
	twheel_start(self->w, &m->timer, TW_MS);
	EXPECT_EQ(31 * TW_MS, twheel_timer_deadline(&m->timer));
	EXPECT_EQ(1, lib_step(self->w, TW_SEC));
	EXPECT_FALSE(twheel_timer_pending(&m->timer));
}

TEST_F(lib, periodic_timer_may_begin_at_0)
{
	struct mark *m = &self->mark[0];

	twheel_start_periodic(self->w, &m->timer, 0, 10 * TW_MS, 0);
	EXPECT_TRUE(twheel_timer_pending(&m->timer));
	ASSERT_LE(0, twheel_dispatch(self->w, 0));
	ASSERT_LE(0, lib_step(self->w, TW_MS));
	EXPECT_EQ(1, m->called);
	EXPECT_TRUE(twheel_stop(self->w, &m->timer));
}

TEST_F(lib, interval_below_a_tick_is_raised_to_one)
{
	twheel_start_every(self->w, &self->mark[0].timer, 1);
	EXPECT_EQ(TW_MS, twheel_timer_deadline(&self->mark[0].timer));
	ASSERT_EQ(1, lib_step(self->w, 5 * TW_MS));
	EXPECT_EQ(5, self->mark[0].periods);
}

static void takes_7_ms(struct twheel *w, struct mark *m)
{
	(void)m;
	twheel_advance(w, twheel_now(w) + 7 * TW_MS);
}

TEST_F(lib, fixed_delay_begins_when_the_callback_returns)
{
	struct mark *m = &self->mark[0];

	m->does = takes_7_ms;
	twheel_start_periodic(self->w, &m->timer, 10 * TW_MS, 10 * TW_MS, TWHEEL_FIXED_DELAY);
	ASSERT_EQ(1, lib_step(self->w, 1005 * TW_MS));
	EXPECT_EQ(1, m->periods);
	EXPECT_EQ(1022 * TW_MS, twheel_timer_deadline(&m->timer));
}

/* The slow timer has its turn before, in the same dispatch. */
TEST_F(lib, fixed_delay_and_counts_are_not_those_of_the_beginning_of_the_dispatch)
{
	struct mark *slow = &self->mark[0], *fixed = &self->mark[1], *rate = &self->mark[2];

	slow->does = takes_7_ms;
	twheel_start(self->w, &slow->timer, TW_MS);
	twheel_start_periodic(self->w, &fixed->timer, 4 * TW_MS, 10 * TW_MS, TWHEEL_FIXED_DELAY);
	twheel_start_periodic(self->w, &rate->timer, 4 * TW_MS, 2 * TW_MS, 0);
	ASSERT_EQ(3, lib_step(self->w, 5 * TW_MS));
	EXPECT_EQ(12 * TW_MS, fixed->at_ns);
	EXPECT_EQ(22 * TW_MS, twheel_timer_deadline(&fixed->timer));
	EXPECT_EQ(5, rate->periods);
	EXPECT_EQ(14 * TW_MS, twheel_timer_deadline(&rate->timer));
}

/* ---- idle timers ------------------------------------------------------------- */

TEST_F(lib, timer_of_zeros_does_not_pend)
{
	struct twheel_timer zeros, to;

	memset(&zeros, 0, sizeof(zeros));
	memset(&to, TW_POISON, sizeof(to));
	EXPECT_FALSE(twheel_timer_pending(&zeros));
	EXPECT_EQ(TWHEEL_NEVER, twheel_timer_deadline(&zeros));
	EXPECT_FALSE(twheel_stop(self->w, &zeros));
	EXPECT_FALSE(twheel_stop_sync(self->w, &zeros));
	twheel_timer_move(self->w, &to, &zeros);
	EXPECT_FALSE(twheel_timer_pending(&to));
	EXPECT_FALSE(twheel_timer_pending(&zeros));
}

TEST_F(lib, timer_may_be_initialized_where_it_is_declared)
{
	struct mark m = { .timer = TWHEEL_TIMER_INIT(mark_called) };

	EXPECT_FALSE(twheel_timer_pending(&m.timer));
	twheel_start(self->w, &m.timer, TW_MS);
	ASSERT_EQ(1, lib_step(self->w, TW_SEC));
	EXPECT_EQ(1, m.called);
	EXPECT_EQ(sizeof(struct twheel_timer), twheel_timer_size());
}

TEST_F(lib, timer_that_has_moved_expires_at_its_new_place)
{
	struct mark *to = calloc(MANY, sizeof(*to));
	int i;

	/* Timers are of all kinds, and in all lists. */
	for (i = 0; i < MANY; i++) {
		struct mark *m = &self->mark[i];

		if (i % 5 == 0)
			twheel_start_every(self->w, &m->timer, TW_MS * (1 + i % 10));
		else if (i % 5 == 1)
			twheel_start(self->w, &m->timer, 0);
		else if (i % 5 == 2)
			twheel_start(self->w, &m->timer, TWHEEL_NEVER);
		else
			twheel_start(self->w, &m->timer, TW_MS << i % 10);
	}
	for (i = 0; i < MANY; i++) {
		to[i] = self->mark[i];
		memset(&to[i].timer, TW_POISON, sizeof(to[i].timer));
		twheel_timer_move(self->w, &to[i].timer, &self->mark[i].timer);
		EXPECT_FALSE(twheel_timer_pending(&self->mark[i].timer));
		EXPECT_FALSE(twheel_stop(self->w, &self->mark[i].timer));
		memset(&self->mark[i], TW_POISON, sizeof(self->mark[i]));
	}
	ASSERT_EQ(MANY - MANY / 5, lib_step(self->w, TW_SEC));
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(i % 5 != 2, to[i].called);
	twheel_stop_all(self->w, NULL, NULL);
	free(to);
}

TEST_F(lib, place_that_a_periodic_timer_has_left_is_that_of_a_one_shot)
{
	struct mark *from = &self->mark[0], *to = &self->mark[1];
	int i, flags;

	for (flags = 0; flags <= (int)TWHEEL_FIXED_DELAY; flags++) {
		mark_init(from);
		mark_init(to);
		twheel_start_periodic(self->w, &from->timer, twheel_now(self->w) + 10 * TW_MS,
				      10 * TW_MS, flags);
		twheel_timer_move(self->w, &to->timer, &from->timer);
		EXPECT_TRUE(twheel_stop(self->w, &to->timer));
		if (flags)
			twheel_start_at(self->w, &from->timer, twheel_now(self->w) + 5 * TW_MS);
		else
			twheel_start(self->w, &from->timer, 5 * TW_MS);
		for (i = 0; i < 100; i++)
			ASSERT_LE(0, lib_step(self->w, twheel_now(self->w) + TW_MS));
		EXPECT_EQ(1, from->called);
		EXPECT_FALSE(twheel_timer_pending(&from->timer));
	}
}

TEST_F(lib, move_onto_itself_changes_nothing)
{
	struct mark *m = self->mark;

	twheel_start(self->w, &m[0].timer, 10 * TW_MS);
	twheel_timer_move(self->w, &m[0].timer, &m[0].timer);
	twheel_timer_move(self->w, &m[1].timer, &m[1].timer);
	EXPECT_TRUE(twheel_timer_pending(&m[0].timer));
	EXPECT_FALSE(twheel_timer_pending(&m[1].timer));
	EXPECT_EQ(10 * TW_MS, twheel_timer_deadline(&m[0].timer));
	ASSERT_EQ(1, lib_step(self->w, TW_SEC));
	EXPECT_EQ(1, m[0].called);
}

TEST_F(lib, two_timers_are_swapped_by_a_third)
{
	struct mark *m = self->mark;

	twheel_start_every(self->w, &m[0].timer, 10 * TW_MS);
	twheel_timer_move(self->w, &m[2].timer, &m[0].timer);
	twheel_timer_move(self->w, &m[0].timer, &m[1].timer);
	twheel_timer_move(self->w, &m[1].timer, &m[2].timer);
	EXPECT_FALSE(twheel_timer_pending(&m[0].timer));
	EXPECT_TRUE(twheel_timer_pending(&m[1].timer));
	EXPECT_FALSE(twheel_timer_pending(&m[2].timer));
	ASSERT_EQ(1, lib_step(self->w, 10 * TW_MS));
	EXPECT_EQ(1, m[1].called);
}

/* ---- starts cost nothing ------------------------------------------------------ */

TEST_F(lib, start_stop_and_restart_allocate_nothing_and_call_nothing)
{
	int i;

	twheel_now(self->w);
	lib_watch();
	for (i = 0; i < MANY; i++) {
		twheel_start(self->w, &self->mark[i].timer, (i + 1) * TW_MS);
		twheel_start(self->w, &self->mark[i].timer, (i + 2) * TW_MS);
		twheel_start_every(self->w, &self->mark[i].timer, (i + 1) * TW_MS);
		twheel_start_at(self->w, &self->mark[i].timer, i);
		if (i % 2)
			twheel_stop(self->w, &self->mark[i].timer);
	}
	twheel_next(self->w);
	EXPECT_EQ(0, lib_calls.system);
	EXPECT_EQ(0, lib_calls.memory);
}

/* There are more than a limit of a device or an allocator might allow. */
TEST_F_TIMEOUT(lib, million_timers_expire_each_in_its_second, 100)
{
	int i, nr = tw_setting("TW_MILLION", 1000000), second, sum = 0;
	struct mark *m = calloc(nr, sizeof(*m));

	ASSERT_NE(NULL, m);
	for (i = 0; i < nr; i++) {
		mark_init(&m[i]);
		twheel_start(self->w, &m[i].timer, i % 10 * TW_SEC + TW_SEC / 2);
	}
	EXPECT_EQ(nr, lib_stats(self->w).pending);
	for (i = 0; i < nr; i += 2)
		twheel_start(self->w, &m[i].timer, i % 10 * TW_SEC + TW_SEC);
	for (i = 0; i < nr; i += 4)
		twheel_stop(self->w, &m[i].timer);
	for (second = 1; second <= 11; second++) {
		ASSERT_EQ(0, twheel_advance(self->w, second * TW_SEC));
		while (twheel_next(self->w) <= second * TW_SEC)
			sum += twheel_dispatch(self->w, 0);
	}
	EXPECT_EQ(nr - nr / 4, sum);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(!!(i % 4), m[i].called);
		if (i % 4) {
			ASSERT_EQ((i % 10 + 1) * TW_SEC, m[i].at_ns)
				TH_LOG("timer %d", i);
		}
	}
	free(m);
}

TEST_HARNESS_MAIN
