// SPDX-License-Identifier: GPL-2.0
/*
 * The rules of lib/twheel.h on the virtual clock, one test each, with both back ends.
 */
#include "twheel_lib_test.h"
#include "lib_calls.h"

#define MANY	1000

/* A timer that remembers what came. */
struct mark {
	struct twheel_timer timer;
	int called;
	int status;
	__u32 count;
	__u64 at_ns;
	/* What it does then, or nothing. */
	void (*does)(struct twheel *w, struct mark *m);
	struct mark *others;
	int nr_others;
	void *data;
};

static void on_expiry(struct twheel *w, struct twheel_timer *t, int status)
{
	struct mark *m = twheel_container_of(t, struct mark, timer);

	m->called++;
	m->status = status;
	m->count = twheel_timer_count(t);
	m->at_ns = twheel_now(w);
	if (m->does)
		m->does(w, m);
}

static void mark_init(struct mark *m)
{
	memset(m, 0, sizeof(*m));
	m->status = TW_POISON;
	twheel_timer_init(&m->timer, on_expiry);
}

FIXTURE(lib) {
	struct twheel *w;
	struct mark mark[MANY];
};

LIB_VARIANTS(lib);

FIXTURE_SETUP(lib)
{
	int i;

	LIB_SKIP_WITHOUT_BACKEND();
	for (i = 0; i < MANY; i++)
		mark_init(&self->mark[i]);
	ASSERT_EQ(0, lib_open(&self->w, variant->backend, TWHEEL_CLOCK_VIRTUAL, TW_MS));
	ASSERT_NE(NULL, self->w);
}

FIXTURE_TEARDOWN(lib)
{
	lib_unwatch();
	twheel_close(self->w);
	EXPECT_NO_LEAK();
}

static int called(const struct mark *m, int nr)
{
	int i, sum = 0;

	for (i = 0; i < nr; i++)
		sum += m[i].called;
	return sum;
}

/* ---- deadlines ------------------------------------------------------------ */

TEST_F(lib, timer_expires_in_the_first_tick_at_or_after_its_deadline)
{
	/* Deadlines, and ticks; a grain is 2^19 ns. */
	static const struct { __u64 deadline_ns, edge_ns; } rows[] = {
		{ 1, TW_MS },
		{ 1 << 19, TW_MS },
		{ (1 << 19) + 1, 2 * TW_MS },
		{ TW_MS, 2 * TW_MS },
		{ 2 << 19, 2 * TW_MS },
		{ 30 * TW_MS, 31 * TW_MS },
		{ 524288 * TW_MS, 524288 * TW_MS },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		twheel_start_at(self->w, &self->mark[i].timer, rows[i].deadline_ns);
		EXPECT_EQ(tw_refreshed_ns(rows[i].deadline_ns, 19),
			  twheel_timer_deadline(self->w, &self->mark[i].timer));
	}
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		__u64 now_ns = twheel_now(self->w);

		if (rows[i].edge_ns > now_ns) {
			ASSERT_EQ(0, twheel_advance(self->w, rows[i].edge_ns - 1));
			ASSERT_EQ(0, twheel_dispatch(self->w, 0));
			EXPECT_EQ(0, self->mark[i].called);
			ASSERT_EQ(0, twheel_advance(self->w, rows[i].edge_ns));
			ASSERT_LE(1, twheel_dispatch(self->w, 0));
		}
		EXPECT_EQ(1, self->mark[i].called);
		EXPECT_EQ(0, self->mark[i].status);
		EXPECT_EQ(rows[i].edge_ns, self->mark[i].at_ns);
	}
}

TEST_F(lib, timer_with_the_end_of_time_never_expires)
{
	twheel_start(self->w, &self->mark[0].timer, TWHEEL_TIME_NEVER);
	twheel_start(self->w, &self->mark[1].timer, ~0ULL);
	twheel_start_at(self->w, &self->mark[2].timer, TWHEEL_TIME_NEVER + 1);
	twheel_start_at(self->w, &self->mark[3].timer, TWHEEL_TIME_NEVER - 1);
	twheel_start_every(self->w, &self->mark[4].timer, ~0ULL);
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_EQ(TWHEEL_TIME_NEVER, twheel_timer_deadline(self->w, &self->mark[0].timer));
	EXPECT_EQ(TWHEEL_TIME_NEVER, twheel_timer_deadline(self->w, &self->mark[2].timer));
	EXPECT_EQ(TWHEEL_NO_EXPIRY, twheel_next(self->w));
	ASSERT_EQ(0, twheel_advance(self->w, TWHEEL_TIME_NEVER));
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(0, called(self->mark, 5));
	EXPECT_TRUE(twheel_timer_pending(&self->mark[0].timer));
	/* And one that never expires is stopped and started like any other. */
	EXPECT_TRUE(twheel_stop(self->w, &self->mark[0].timer));
}

TEST_F(lib, timer_that_never_expires_can_be_restarted_to_expire)
{
	twheel_start(self->w, &self->mark[0].timer, TWHEEL_TIME_NEVER);
	EXPECT_EQ(0, twheel_flush(self->w));
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	ASSERT_EQ(0, twheel_advance(self->w, 2 * TW_SEC));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	EXPECT_EQ(0, twheel_flush(self->w));
	twheel_start(self->w, &self->mark[0].timer, TWHEEL_TIME_NEVER);
	ASSERT_EQ(0, twheel_advance(self->w, TW_DAY));
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(TWHEEL_NO_EXPIRY, twheel_next(self->w));
}

/* A word of the refresh table reaches 2^35 grains: 208 days. */
TEST_F(lib, restart_may_be_farther_ahead_than_a_word_reaches)
{
	__u64 years_ns[] = { TW_DAY, 150 * TW_DAY, 300 * TW_DAY, 417 * TW_DAY, 500 * TW_DAY,
			     3650 * TW_DAY, 36500 * TW_DAY };
	__u64 edge_ns;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(years_ns); i++) {
		twheel_start(self->w, &self->mark[i].timer, TW_SEC);
		EXPECT_EQ(0, twheel_flush(self->w));
		twheel_start_at(self->w, &self->mark[i].timer, years_ns[i]);
	}
	for (i = 0; i < ARRAY_SIZE(years_ns); i++) {
		edge_ns = tw_round_up(tw_refreshed_ns(years_ns[i], 19), TW_MS);
		ASSERT_EQ(0, twheel_advance(self->w, edge_ns - 1));
		ASSERT_EQ(0, twheel_dispatch(self->w, 0));
		ASSERT_EQ(0, twheel_advance(self->w, edge_ns));
		ASSERT_EQ(1, twheel_dispatch(self->w, 0));
		EXPECT_EQ(1, self->mark[i].called);
	}
}

TEST_F(lib, delay_of_0_is_for_the_next_dispatch)
{
	twheel_start(self->w, &self->mark[0].timer, 0);
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	ASSERT_EQ(0, twheel_advance(self->w, 0));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, self->mark[0].called);
}

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
		EXPECT_EQ(i * MANY, called(self->mark, MANY));
		EXPECT_EQ(0, twheel_dispatch(self->w, 0));
		/* The present is rounded up to a grain, too. */
		ASSERT_EQ(0, twheel_advance(self->w, (i + 1) * TW_SEC));
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

/* With the deadline that its event has, even. */
TEST_F(lib, timer_that_a_callback_restarts_does_not_expire_in_the_same_dispatch)
{
	int i;

	for (i = 0; i < MANY; i++) {
		self->mark[i].does = restarts_the_others;
		self->mark[i].others = self->mark;
		twheel_start_at(self->w, &self->mark[i].timer, TW_MS);
	}
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	for (i = 0; i < MANY; i++)
		self->mark[i].nr_others = MANY;
	/* Whichever comes first: it restarts all that have not come. */
	EXPECT_EQ(1, twheel_dispatch(self->w, 1));
	EXPECT_EQ(1, called(self->mark, MANY));
	for (i = 0; i < MANY; i++)
		self->mark[i].nr_others = 0;
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_EQ(MANY - 1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(MANY, called(self->mark, MANY));
}

/* ---- stop ----------------------------------------------------------------- */

static void stops_the_others(struct twheel *w, struct mark *m)
{
	int i;

	for (i = 0; i < m->nr_others; i++)
		twheel_stop(w, &m->others[i].timer);
}

TEST_F(lib, callback_never_runs_after_stop)
{
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	EXPECT_TRUE(twheel_stop(self->w, &self->mark[0].timer));
	twheel_start(self->w, &self->mark[1].timer, TW_MS);
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_TRUE(twheel_stop(self->w, &self->mark[1].timer));
	twheel_start(self->w, &self->mark[2].timer, TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_TRUE(twheel_stop(self->w, &self->mark[2].timer));
	EXPECT_FALSE(twheel_stop(self->w, &self->mark[2].timer));
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(0, called(self->mark, 3));
}

TEST_F(lib, callback_never_runs_after_stop_by_another_callback_of_the_same_dispatch)
{
	int i;

	for (i = 0; i < MANY; i++) {
		self->mark[i].does = stops_the_others;
		self->mark[i].others = self->mark;
		self->mark[i].nr_others = MANY;
		twheel_start(self->w, &self->mark[i].timer, TW_MS);
	}
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, called(self->mark, MANY));
	ASSERT_EQ(0, twheel_advance(self->w, TW_MIN));
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, called(self->mark, MANY));
}

static void frees_itself(struct twheel *w, struct mark *m)
{
	int *freed = m->data;

	(void)w;
	++*freed;
	free(m);
}

TEST_F(lib, callback_may_free_its_own_timer)
{
	int i, freed = 0;

	for (i = 0; i < MANY; i++) {
		struct mark *m = malloc(sizeof(*m));

		mark_init(m);
		m->does = frees_itself;
		m->data = &freed;
		twheel_start(self->w, &m->timer, TW_MS + i % 3 * TW_MS);
	}
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_EQ(MANY, twheel_dispatch(self->w, 0));
	EXPECT_EQ(MANY, freed);
}

static void waits(struct twheel *w, struct mark *m)
{
	int *ret = m->data;

	/* The first one does, whichever it is. */
	if (*ret == TW_POISON) {
		*ret = 0;
		*ret = twheel_wait(w, TW_SEC);
	}
}

TEST_F(lib, wait_in_a_callback_calls_what_is_due)
{
	int i, ret = TW_POISON;

	for (i = 0; i < 3; i++) {
		self->mark[i].does = waits;
		self->mark[i].data = &ret;
		twheel_start(self->w, &self->mark[i].timer, TW_MS);
	}
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(3, called(self->mark, 3));
	EXPECT_EQ(2, ret);
}

static void moves_the_others(struct twheel *w, struct mark *m)
{
	struct mark *to = m->data;
	int i;

	for (i = 0; i < m->nr_others; i++) {
		if (&m->others[i] == m || !twheel_timer_pending(&m->others[i].timer))
			continue;
		to[i] = m->others[i];
		to[i].does = NULL;
		twheel_timer_move(w, &to[i].timer, &m->others[i].timer);
		memset(&m->others[i], TW_POISON, sizeof(m->others[i]));
	}
}

TEST_F(lib, timer_that_has_moved_expires_where_it_is_now)
{
	struct mark *to = calloc(MANY, sizeof(*to)), *from = calloc(MANY, sizeof(*from));
	int i;

	/* Armed, noted, and among those that are due. */
	for (i = 0; i < MANY; i++) {
		mark_init(&from[i]);
		from[i].does = moves_the_others;
		from[i].others = from;
		from[i].nr_others = MANY;
		from[i].data = to;
		twheel_start(self->w, &from[i].timer, TW_MS);
		if (i == MANY / 2)
			EXPECT_EQ(0, twheel_flush(self->w));
	}
	for (i = 0; i < MANY; i++) {
		to[i] = from[i];
		twheel_timer_move(self->w, &to[i].timer, &from[i].timer);
		memset(&from[i], TW_POISON, sizeof(from[i]));
	}
	for (i = 0; i < MANY; i++) {
		to[i].others = to;
		to[i].data = from;
	}
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_EQ(MANY, twheel_dispatch(self->w, 0));
	for (i = 0; i < MANY; i++) {
		/* One stayed where it was, since it moved the others. */
		EXPECT_TRUE(to[i].called == 1 || from[i].called == 1);
	}
	free(to);
	free(from);
}

/* ---- turns ---------------------------------------------------------------- */

TEST_F(lib, dispatch_calls_no_more_than_it_may_and_leaves_the_descriptor_readable)
{
	int i, left = MANY;

	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	while (left) {
		ASSERT_EQ(POLLIN, tw_poll(twheel_fd(self->w), POLLIN, TW_PATIENCE_MS));
		ASSERT_EQ(left < 7 ? left : 7, twheel_dispatch(self->w, 7));
		left -= left < 7 ? left : 7;
		ASSERT_EQ(MANY - left, called(self->mark, MANY));
	}
	EXPECT_EQ(0, tw_poll(twheel_fd(self->w), POLLIN, 0));
	EXPECT_EQ(0, twheel_dispatch(self->w, 7));
}

/* Those that came up in vain are no callbacks. */
TEST_F(lib, dispatch_goes_on_past_what_was_stopped)
{
	int i;

	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	for (i = 0; i < MANY - 1; i++)
		twheel_stop(self->w, &self->mark[i].timer);
	EXPECT_EQ(1, twheel_dispatch(self->w, 2));
	EXPECT_EQ(0, tw_poll(twheel_fd(self->w), POLLIN, 0));
}

TEST_F(lib, restart_to_later_while_the_event_waits_expires_later)
{
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_TRUE(twheel_timer_pending(&self->mark[0].timer));
	ASSERT_EQ(0, twheel_advance(self->w, 2 * TW_SEC - 1));
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	ASSERT_EQ(0, twheel_advance(self->w, 2 * TW_SEC + TW_MS));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
}

/* The timer that waits for its event is stopped, and another takes the place. */
TEST_F(lib, place_that_has_ended_is_no_place_for_another_timer)
{
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	ASSERT_EQ(0, twheel_advance(self->w, 2 * TW_SEC));
	EXPECT_TRUE(twheel_stop(self->w, &self->mark[0].timer));
	twheel_start(self->w, &self->mark[1].timer, TW_SEC);
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	ASSERT_EQ(0, twheel_advance(self->w, 4 * TW_SEC));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, self->mark[1].called);
	EXPECT_EQ(0, self->mark[0].called);
}

/* ---- periods -------------------------------------------------------------- */

TEST_F(lib, periodic_timer_keeps_its_phase)
{
	const __u64 interval_ns = 10 * TW_MS + 1, first_ns = 3 * TW_MS + 7;
	struct mark *m = &self->mark[0];
	__u64 k, edge_ns;

	twheel_start_periodic(self->w, &m->timer, first_ns, interval_ns, 0);
	for (k = 0; k < 2000; k++) {
		edge_ns = tw_round_up(tw_refreshed_ns(first_ns + k * interval_ns, 19), TW_MS);
		ASSERT_EQ(0, twheel_advance(self->w, edge_ns - 1));
		ASSERT_EQ(0, twheel_dispatch(self->w, 0));
		ASSERT_EQ(0, twheel_advance(self->w, edge_ns));
		ASSERT_EQ(1, twheel_dispatch(self->w, 0));
		ASSERT_EQ(1, m->count);
		ASSERT_TRUE(twheel_timer_pending(&m->timer));
	}
}

TEST_F(lib, periodic_timer_counts_the_periods_of_a_stall)
{
	struct mark *m = &self->mark[0];

	twheel_start_every(self->w, &m->timer, 10 * TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, 1005 * TW_MS));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, m->called);
	EXPECT_EQ(100, m->count);
	EXPECT_EQ(tw_refreshed_ns(1010 * TW_MS, 19), twheel_timer_deadline(self->w, &m->timer));
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	ASSERT_EQ(0, twheel_advance(self->w, 1012 * TW_MS));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, m->count);
	EXPECT_TRUE(twheel_stop(self->w, &m->timer));
}

TEST_F(lib, periodic_timer_counts_every_period_since_a_deadline_in_the_past)
{
	struct mark *m = &self->mark[0];

	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	twheel_start_periodic(self->w, &m->timer, 5 * TW_MS, 10 * TW_MS, 0);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(100, m->count);
	EXPECT_EQ(tw_refreshed_ns(1005 * TW_MS, 19), twheel_timer_deadline(self->w, &m->timer));
}

TEST_F(lib, fixed_delay_begins_when_the_callback_is_called)
{
	struct mark *m = &self->mark[0];

	twheel_start_periodic(self->w, &m->timer, 10 * TW_MS, 10 * TW_MS, TWHEEL_FIXED_DELAY);
	ASSERT_EQ(0, twheel_advance(self->w, 1005 * TW_MS));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, m->count);
	EXPECT_EQ(tw_refreshed_ns(1015 * TW_MS, 19), twheel_timer_deadline(self->w, &m->timer));
}

TEST_F(lib, interval_below_a_tick_is_raised_to_one)
{
	struct mark *m = &self->mark[0];

	twheel_start_every(self->w, &m->timer, 1);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_LE(999, m->count);
	EXPECT_GE(1000, m->count);
	twheel_start_every(self->w, &m->timer, 0);
	ASSERT_EQ(0, twheel_advance(self->w, 2 * TW_SEC));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_LE(999, m->count);
	EXPECT_GE(1000, m->count);
}

static void stops_itself(struct twheel *w, struct mark *m)
{
	twheel_stop(w, &m->timer);
}

TEST_F(lib, periodic_timer_ends_when_it_is_stopped_or_started_as_a_one_shot)
{
	self->mark[0].does = stops_itself;
	self->mark[1].does = starts_itself_at_once;
	twheel_start_every(self->w, &self->mark[0].timer, TW_MS);
	twheel_start_every(self->w, &self->mark[1].timer, TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, 10 * TW_MS));
	EXPECT_EQ(2, twheel_dispatch(self->w, 0));
	EXPECT_FALSE(twheel_timer_pending(&self->mark[0].timer));
	self->mark[1].does = NULL;
	ASSERT_EQ(0, twheel_advance(self->w, 20 * TW_MS));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_FALSE(twheel_timer_pending(&self->mark[1].timer));
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
}

/* ---- no system calls ------------------------------------------------------ */

TEST_F(lib, restart_to_later_makes_no_system_call)
{
	int i, round;

	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_SEC);
	EXPECT_EQ(0, twheel_flush(self->w));
	lib_watch(0, false);
	for (round = 1; round < 20; round++) {
		for (i = 0; i < MANY; i++)
			twheel_start(self->w, &self->mark[i].timer, TW_SEC + round * TW_MS);
		EXPECT_EQ(0, twheel_flush(self->w));
	}
	EXPECT_EQ(0, lib_calls.system);
	EXPECT_EQ(0, lib_calls.memory);
}

TEST_F(lib, start_stop_and_restart_allocate_nothing_and_call_nothing)
{
	int i;

	/* But to read the clock, once. */
	EXPECT_EQ(0, twheel_now(self->w));
	lib_watch(0, false);
	for (i = 0; i < MANY; i++) {
		twheel_start(self->w, &self->mark[i].timer, (i + 1) * TW_MS);
		twheel_start_every(self->w, &self->mark[i].timer, (i + 1) * TW_MS);
		twheel_start_at(self->w, &self->mark[i].timer, i);
		if (i % 2)
			twheel_stop(self->w, &self->mark[i].timer);
	}
	EXPECT_EQ(0, lib_calls.system);
	EXPECT_EQ(0, lib_calls.memory);
}

TEST_F(lib, timers_that_are_stopped_when_they_are_due_leave_no_memory_behind)
{
	int i;

	for (i = 0; i < 20 * MANY; i++) {
		if (i == 10 * MANY)
			lib_watch(0, false);
		twheel_start(self->w, &self->mark[0].timer, 0);
		ASSERT_EQ(0, twheel_flush(self->w));
		ASSERT_TRUE(twheel_stop(self->w, &self->mark[0].timer));
		if (twheel_next(self->w) <= twheel_now(self->w))
			ASSERT_EQ(0, twheel_dispatch(self->w, 0));
	}
	EXPECT_EQ(0, lib_calls.memory);
}

TEST_F(lib, flush_of_nothing_makes_no_system_call)
{
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	EXPECT_EQ(0, twheel_flush(self->w));
	lib_watch(0, false);
	EXPECT_EQ(0, twheel_flush(self->w));
	twheel_start(self->w, &self->mark[1].timer, TW_SEC);
	twheel_stop(self->w, &self->mark[1].timer);
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_EQ(0, lib_calls.system);
}

/*
 * Requests of one length, most of which are answered long before: in flight there are
 * always as many.  A millisecond a turn.
 */
TEST_F_TIMEOUT(lib, start_and_stop_in_a_steady_state_make_no_system_call_and_no_event_in_vain, 90)
{
	struct twheel_stats before, after;
	unsigned int turn, i, starts = 0;

	for (turn = 0; turn < 5000; turn++) {
		ASSERT_EQ(0, twheel_advance(self->w, turn * TW_MS));
		ASSERT_EQ(0, twheel_dispatch(self->w, 0));
		if (turn == 1000) {
			before = lib_stats(self->w);
			starts = 0;
		}
		/* 500 in flight, each for 100 ms; the timeout is a second. */
		for (i = 0; i < 5; i++) {
			struct mark *m = &self->mark[(turn * 5 + i) % 500];

			if (turn > 1000)
				lib_watch(0, false);
			twheel_stop(self->w, &m->timer);
			twheel_start(self->w, &m->timer, TW_SEC);
			starts++;
			if (turn > 1000) {
				ASSERT_EQ(0, twheel_flush(self->w));
				ASSERT_EQ(0, lib_calls.system);
				lib_unwatch();
			}
		}
	}
	after = lib_stats(self->w);
	EXPECT_EQ(before.vain, after.vain);
	EXPECT_EQ(before.armed, after.armed);
	EXPECT_EQ(before.cancelled, after.cancelled);
	EXPECT_EQ(starts, after.taken - before.taken);
	EXPECT_EQ(0, called(self->mark, 500));
}

/* An idle timer that each request restarts, and one for each request. */
TEST_F_TIMEOUT(lib, mixed_lengths_in_a_steady_state_make_no_event_in_vain, 90)
{
	struct mark *idle = self->mark, *request = self->mark + MANY / 2;
	struct twheel_stats before = {}, after;
	unsigned int turn, i, starts = 0;

	for (turn = 0; turn < 8000; turn++) {
		ASSERT_EQ(0, twheel_advance(self->w, turn * 10 * TW_MS));
		ASSERT_EQ(0, twheel_dispatch(self->w, 0));
		if (turn == 4000) {
			before = lib_stats(self->w);
			starts = 0;
		}
		for (i = 0; i < 5; i++) {
			unsigned int nr = (turn * 5 + i) % (MANY / 2);

			twheel_start(self->w, &idle[nr].timer, 30 * TW_SEC);
			twheel_start(self->w, &request[nr].timer, TW_SEC);
			nr = (turn * 5 + i + MANY / 2 - 50) % (MANY / 2);
			twheel_stop(self->w, &request[nr].timer);
			twheel_start(self->w, &idle[nr].timer, 30 * TW_SEC);
			starts++;
		}
		ASSERT_EQ(0, twheel_flush(self->w));
	}
	after = lib_stats(self->w);
	TH_LOG("%u requests: %llu in vain, %llu armed, %llu rearmed", starts,
	       (unsigned long long)(after.vain - before.vain),
	       (unsigned long long)(after.armed - before.armed),
	       (unsigned long long)(after.rearmed - before.rearmed));
	EXPECT_GE(starts / 1000, after.vain - before.vain);
	EXPECT_EQ(0, called(self->mark, MANY));
}

/* ---- places --------------------------------------------------------------- */

TEST_F(lib, parked_places_are_given_up_after_a_burst)
{
	struct twheel_stats stats;
	int i, nr = 20000;
	struct mark *burst = calloc(nr, sizeof(*burst));

	for (i = 0; i < nr; i++) {
		mark_init(&burst[i]);
		twheel_start(self->w, &burst[i].timer, TW_SEC);
	}
	EXPECT_EQ(0, twheel_flush(self->w));
	stats = lib_stats(self->w);
	EXPECT_EQ(nr, stats.places);
	EXPECT_EQ(0, stats.parked);
	for (i = 0; i < nr; i++)
		EXPECT_TRUE(twheel_stop(self->w, &burst[i].timer));
	stats = lib_stats(self->w);
	EXPECT_EQ(nr, stats.places);
	EXPECT_EQ(0, twheel_flush(self->w));
	stats = lib_stats(self->w);
	EXPECT_GE(512, stats.parked);
	EXPECT_EQ(stats.places, stats.parked);
	EXPECT_EQ(nr, stats.cancelled + stats.parked);
	/* What is left comes up in vain, and is then gone. */
	ASSERT_EQ(0, twheel_advance(self->w, 2 * TW_SEC));
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	stats = lib_stats(self->w);
	EXPECT_EQ(0, stats.places);
	EXPECT_GE(512, stats.vain);
	EXPECT_EQ(TWHEEL_NO_EXPIRY, twheel_next(self->w));
	free(burst);
}

/* Half of what is in use is kept, and no more when less is in use. */
TEST_F_TIMEOUT(lib, parked_places_follow_what_is_in_use, 90)
{
	int i, round, nr = 20000;
	struct mark *used = calloc(nr, sizeof(*used)), *cycling = calloc(nr, sizeof(*cycling));

	for (i = 0; i < nr; i++) {
		mark_init(&used[i]);
		mark_init(&cycling[i]);
		twheel_start(self->w, &used[i].timer, TW_SEC);
	}
	EXPECT_EQ(0, twheel_flush(self->w));
	for (round = 0; round < 40; round++) {
		for (i = 0; i < nr / 2; i++)
			twheel_start(self->w, &cycling[i].timer, TW_SEC);
		EXPECT_EQ(0, twheel_flush(self->w));
		for (i = 0; i < nr / 2; i++)
			twheel_stop(self->w, &cycling[i].timer);
		EXPECT_EQ(0, twheel_flush(self->w));
	}
	EXPECT_LT(nr / 4, lib_stats(self->w).parked);
	EXPECT_GE(nr / 2 + 512, lib_stats(self->w).parked);
	for (i = 0; i < nr; i++)
		twheel_stop(self->w, &used[i].timer);
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_GE(512, lib_stats(self->w).parked);
	free(used);
	free(cycling);
}

/* One of a second must not wait behind a place that is known for 30 s. */
TEST_F(lib, short_timer_takes_no_place_of_a_long_one)
{
	twheel_start(self->w, &self->mark[0].timer, 30 * TW_SEC);
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_TRUE(twheel_stop(self->w, &self->mark[0].timer));
	twheel_start(self->w, &self->mark[1].timer, TW_SEC);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC + 2 * TW_MS));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
}

TEST_F(lib, place_that_was_moved_later_is_not_taken_for_an_earlier_deadline)
{
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	EXPECT_EQ(0, twheel_flush(self->w));
	/* Same class of lengths, later. */
	twheel_start_at(self->w, &self->mark[0].timer, TW_SEC + 20 * TW_MS);
	EXPECT_TRUE(twheel_stop(self->w, &self->mark[0].timer));
	twheel_start_at(self->w, &self->mark[1].timer, TW_SEC + 10 * TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC + 12 * TW_MS));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, self->mark[1].called);
}

TEST_F(lib, restart_to_earlier_expires_earlier)
{
	struct twheel_stats stats;
	int i;

	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_HOUR);
	EXPECT_EQ(0, twheel_flush(self->w));
	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_SEC);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC + 2 * TW_MS));
	EXPECT_EQ(MANY, twheel_dispatch(self->w, 0));
	/* And not again in an hour. */
	ASSERT_EQ(0, twheel_advance(self->w, 2 * TW_HOUR));
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(MANY, called(self->mark, MANY));
	stats = lib_stats(self->w);
	EXPECT_EQ(0, stats.places);
}

TEST_F(lib, books_of_the_back_end_agree)
{
	struct twheel_stats stats;
	struct twheel_info info;
	int i;

	if (variant->backend != TWHEEL_DEVICE)
		SKIP(return, "only the device has books");
	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_SEC + i % 7 * TW_SEC);
	EXPECT_EQ(0, twheel_flush(self->w));
	for (i = 0; i < MANY; i += 3)
		twheel_stop(self->w, &self->mark[i].timer);
	EXPECT_EQ(0, twheel_flush(self->w));
	ASSERT_EQ(0, twheel_advance(self->w, 3 * TW_SEC + TW_SEC / 2));
	EXPECT_LT(0, twheel_dispatch(self->w, 0));
	stats = lib_stats(self->w);
	ASSERT_EQ(0, tw_info(twheel_fd(self->w), &info));
	EXPECT_EQ(stats.places, info.live);
	EXPECT_EQ(stats.places, info.pending);
	EXPECT_EQ(0, info.unread);
	EXPECT_EQ(stats.cancelled, info.cancelled + info.revoked);
	EXPECT_ACCOUNTS(twheel_fd(self->w));
}

/* ---- the end -------------------------------------------------------------- */

static void closes_the_wheel(struct twheel *w, struct mark *m)
{
	(void)m;
	twheel_close(w);
}

TEST_F(lib, close_in_a_callback_is_the_end_of_all_callbacks)
{
	int i;

	for (i = 0; i < MANY; i++) {
		self->mark[i].does = closes_the_wheel;
		twheel_start(self->w, &self->mark[i].timer, TW_MS);
	}
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, called(self->mark, MANY));
	self->w = NULL;
}

TEST_F(lib, close_in_a_callback_of_a_periodic_timer)
{
	struct mark *m = malloc(sizeof(*m));

	mark_init(m);
	m->does = closes_the_wheel;
	twheel_start_every(self->w, &m->timer, TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	free(m);
	self->w = NULL;
}

TEST_F(lib, close_of_nothing_is_nothing)
{
	twheel_close(NULL);
}

TEST_F(lib, close_does_not_touch_pending_timers)
{
	struct mark *m = malloc(2 * sizeof(*m));

	mark_init(&m[0]);
	mark_init(&m[1]);
	twheel_start(self->w, &m[0].timer, TW_SEC);
	EXPECT_EQ(0, twheel_flush(self->w));
	twheel_start(self->w, &m[1].timer, TW_SEC);
	free(m);
	twheel_close(self->w);
	self->w = NULL;
}

TEST_F(lib, descriptor_is_closed_by_exec)
{
	EXPECT_EQ(FD_CLOEXEC, fcntl(twheel_fd(self->w), F_GETFD));
}

TEST_F(lib, descriptor_that_is_gone_is_eio)
{
	int fd = twheel_fd(self->w), other = open("/dev/null", O_WRONLY | O_CLOEXEC);

	twheel_start(self->w, &self->mark[0].timer, 0);
	ASSERT_EQ(0, twheel_flush(self->w));
	/* Something else has its number. */
	ASSERT_EQ(fd, dup2(other, fd));
	close(other);
	/* What is in the process needs no descriptor to be read. */
	EXPECT_EQ(variant->backend == TWHEEL_DEVICE ? -EIO : 1, twheel_dispatch(self->w, 0));
}

TEST_F(lib, wait_ends_where_the_descriptor_says_nothing_of_use)
{
	int fd = twheel_fd(self->w), null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* Readable for ever, and nothing is there. */
	ASSERT_EQ(fd, dup2(null, fd));
	close(null);
	EXPECT_EQ(0, twheel_wait(self->w, 20 * TW_MS));
	close(fd);
	EXPECT_EQ(-EIO, twheel_wait(self->w, TW_SEC));
}

TEST_F(lib, wheel_that_somebody_drained_says_eshutdown)
{
	if (variant->backend != TWHEEL_DEVICE)
		SKIP(return, "nobody can drain it");
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	twheel_start(self->w, &self->mark[1].timer, TW_SEC);
	EXPECT_EQ(0, twheel_flush(self->w));
	twheel_start(self->w, &self->mark[2].timer, TW_SEC);
	ASSERT_EQ(0, tw_drain(twheel_fd(self->w)));
	EXPECT_LE(0, twheel_flush(self->w));
	EXPECT_LE(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(3, called(self->mark, 3));
	EXPECT_EQ(-ESHUTDOWN, self->mark[0].status);
	EXPECT_EQ(-ESHUTDOWN, self->mark[1].status);
	EXPECT_EQ(-ESHUTDOWN, self->mark[2].status);
	EXPECT_FALSE(twheel_timer_pending(&self->mark[0].timer));
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	EXPECT_EQ(1, twheel_flush(self->w));
	EXPECT_EQ(2, self->mark[0].called);
	EXPECT_EQ(-ESHUTDOWN, twheel_wait(self->w, TW_SEC));
}

/* ---- the virtual clock, and what a wheel says of itself ------------------------ */

TEST_F(lib, advance_to_the_past_is_einval_and_moves_nothing)
{
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	ASSERT_EQ(0, twheel_advance(self->w, TW_MS));
	EXPECT_EQ(-EINVAL, twheel_advance(self->w, TW_MS - 1));
	EXPECT_EQ(TW_MS, twheel_now(self->w));
	EXPECT_EQ(TW_MS, twheel_update(self->w));
	ASSERT_EQ(0, twheel_advance(self->w, TW_MS));
}

/* Or, in the process, somewhat before, when entries of the wheel move. */
TEST_F(lib, next_leads_to_the_first_timer_in_a_few_steps)
{
	const __u64 edge_ns = tw_round_up(tw_refreshed_ns(TW_HOUR, 19), TW_MS);
	__u64 next_ns;
	int step;

	EXPECT_EQ(TWHEEL_NO_EXPIRY, twheel_next(self->w));
	twheel_start(self->w, &self->mark[0].timer, TW_DAY);
	twheel_start(self->w, &self->mark[1].timer, TW_HOUR);
	for (step = 0; step < 8 && !self->mark[1].called; step++) {
		next_ns = twheel_next(self->w);
		EXPECT_EQ(0, lib_stats(self->w).noted);
		ASSERT_GE(edge_ns, next_ns);
		ASSERT_LT(twheel_now(self->w), next_ns);
		ASSERT_EQ(0, twheel_advance(self->w, next_ns));
		ASSERT_LE(0, twheel_dispatch(self->w, 0));
	}
	EXPECT_EQ(edge_ns, self->mark[1].at_ns);
	EXPECT_EQ(0, self->mark[0].called);
}

TEST_F(lib, stats_write_no_more_than_they_may)
{
	struct twheel_stats stats;

	memset(&stats, TW_POISON, sizeof(stats));
	twheel_stats(self->w, &stats, offsetof(struct twheel_stats, places));
	EXPECT_EQ(TW_MS, stats.tick_ns);
	EXPECT_EQ(19, stats.grain_shift);
	EXPECT_EQ(TW_POISON64, stats.places);
	EXPECT_EQ(TW_POISON64, stats.calls);
}

TEST_F(lib, timer_that_is_not_pending_has_no_deadline)
{
	EXPECT_EQ(TWHEEL_NO_EXPIRY, twheel_timer_deadline(self->w, &self->mark[0].timer));
	EXPECT_FALSE(twheel_timer_pending(&self->mark[0].timer));
	EXPECT_FALSE(twheel_stop(self->w, &self->mark[0].timer));
	twheel_timer_move(self->w, &self->mark[1].timer, &self->mark[0].timer);
	EXPECT_FALSE(twheel_timer_pending(&self->mark[0].timer));
	EXPECT_FALSE(twheel_timer_pending(&self->mark[1].timer));
}

/* ---- a million ------------------------------------------------------------ */

TEST_F_TIMEOUT(lib, million_timers_expire_each_in_its_second, 100)
{
	int i, nr = tw_setting("TW_MILLION", 1000000), second, sum = 0;
	struct mark *m = calloc(nr, sizeof(*m));

	if (nr > 1 << 20)
		nr = 1 << 20;
	for (i = 0; i < nr; i++) {
		mark_init(&m[i]);
		twheel_start(self->w, &m[i].timer, i % 10 * TW_SEC + TW_SEC / 2);
	}
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_EQ(nr, lib_stats(self->w).places);
	for (i = 0; i < nr; i += 2)
		twheel_start(self->w, &m[i].timer, i % 10 * TW_SEC + TW_SEC);
	for (i = 0; i < nr; i += 4)
		twheel_stop(self->w, &m[i].timer);
	for (second = 1; second <= 11; second++) {
		ASSERT_EQ(0, twheel_advance(self->w, second * TW_SEC));
		sum += twheel_dispatch(self->w, 0);
	}
	EXPECT_EQ(nr - nr / 4, sum);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(!!(i % 4), m[i].called);
		if (i % 4) {
			ASSERT_EQ((i % 10 + 1 + !(i % 2)) * TW_SEC, m[i].at_ns)
				TH_LOG("timer %d", i);
		}
	}
	free(m);
}

TEST_HARNESS_MAIN
