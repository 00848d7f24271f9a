// SPDX-License-Identifier: GPL-2.0
/*
 * Cases that libtwheel has to withstand: a clock that is set back in the middle of a dispatch,
 * callbacks that leave, nested dispatches of shared wheels, wake-ups at any time.
 */
#include "twheel_lib_test.h"
#include "lib_wrapped.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <twheel/table.h>

#define MANY	20000

/* ---- the clock of the library ------------------------------------------------- */

static _Thread_local __u64 fake_ns;	/* the time of the clock; 0: the true one */
static _Thread_local __u64 fake_tai_ns;	/* how far TAI is ahead */
static _Thread_local __u64 read_ns;	/* how long it takes to read the clock */
static _Thread_local int reads_until_hook;
static struct twheel *hooked;

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	__u64 ns;

	if (reads_until_hook && !--reads_until_hook)
		twheel_wake(hooked);
	if (!fake_ns)
		return __real_clock_gettime(id, ts);
	ns = fake_ns + (id == CLOCK_TAI ? fake_tai_ns : 0);
	ts->tv_sec = ns / TW_SEC;
	ts->tv_nsec = ns % TW_SEC;
	fake_ns += read_ns;
	return 0;
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

FIXTURE(review) {
	struct twheel *w;
	struct mark *mark;
};

FIXTURE_SETUP(review)
{
	int i;

	self->w = NULL;
	self->mark = malloc(MANY * sizeof(*self->mark));
	ASSERT_NE(NULL, self->mark);
	for (i = 0; i < MANY; i++)
		mark_init(&self->mark[i]);
}

FIXTURE_TEARDOWN(review)
{
	fake_ns = 0;
	fake_tai_ns = 0;
	read_ns = 0;
	reads_until_hook = 0;
	twheel_close(self->w);
	free(self->mark);
	EXPECT_NO_LEAK();
}

/* ---- the clock is set back ------------------------------------------------------ */

/* The dispatch that moves many timers stops in the middle; there the clock is set back. */
TEST_F(review, timer_that_a_dispatch_left_is_not_early_if_the_clock_is_set_back)
{
	/* The deadline is at the end of a slot of level 1. */
	__u64 begin = 1000 * TW_SEC, due = (100000ULL << 26) + 60 * TW_MS, now;
	struct twheel_timer *t;
	int i, rounds;

	fake_ns = begin;
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_REALTIME, 0, TW_MS));
	for (i = 0; i < MANY; i++)
		twheel_start_at(self->w, &self->mark[i].timer, due);
	twheel_flush(self->w);
	fake_ns = due + 3600 * TW_SEC;
	ASSERT_EQ(0, twheel_dispatch(self->w, 0));
	ASSERT_GE(fake_ns, twheel_next(self->w));
	now = due - 30 * TW_MS;
	fake_ns = now;
	for (rounds = 0; rounds < 100; rounds++)
		ASSERT_EQ(0, twheel_dispatch(self->w, 0));
	/* This deadline is before the time to which the wheel was about to be turned. */
	t = &self->mark[0].timer;
	twheel_stop(self->w, t);
	twheel_start(self->w, t, 10 * TW_MS);
	EXPECT_GE(now + 11 * TW_MS, twheel_next(self->w));
	fake_ns = now + 11 * TW_MS;
	ASSERT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, self->mark[0].called);
	fake_ns = due + TW_MS;
	for (rounds = 0; rounds < 100; rounds++)
		twheel_dispatch(self->w, 0);
	EXPECT_EQ(MANY, marks_called(self->mark, MANY));
}

static void sets_back_and_restarts(struct twheel *w, struct mark *m)
{
	fake_ns -= 5 * TW_SEC;
	twheel_update(w);
	twheel_start(w, &m->others->timer, TW_SEC);
}

TEST_F(review, timer_restarted_after_the_clock_was_set_back_is_not_called_at_once)
{
	struct mark *m = self->mark;

	fake_ns = 1000 * TW_SEC;
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_REALTIME, 0, 3600 * TW_SEC));
	m->does = sets_back_and_restarts;
	m->others = &m[1];
	fake_ns += 10 * TW_SEC;
	twheel_start_at(self->w, &m[0].timer, fake_ns - 9 * TW_SEC);
	twheel_start_at(self->w, &m[1].timer, fake_ns - 9 * TW_SEC);
	ASSERT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(0, m[1].called);
	EXPECT_EQ(1006 * TW_SEC, twheel_timer_deadline(&m[1].timer));
}

TEST_F(review, timer_that_a_limit_left_is_not_early_if_the_clock_is_set_back)
{
	struct mark *m = self->mark;

	fake_ns = 1000 * TW_SEC;
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_REALTIME, 0, TW_MS));
	twheel_start(self->w, &m[0].timer, 5 * TW_SEC);
	twheel_start(self->w, &m[1].timer, 5 * TW_SEC);
	fake_ns += 10 * TW_SEC;
	ASSERT_EQ(1, twheel_dispatch(self->w, 1));
	fake_ns -= 7 * TW_SEC;
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	fake_ns += 2 * TW_SEC;
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
}

/* It is set back to a time at which the deadline has passed, but not the edge after it. */
TEST_F(review, timer_that_has_passed_is_called_and_does_not_spin_though_the_clock_was_set_back)
{
	struct mark *m = self->mark;

	fake_ns = 1000 * TW_SEC;
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_REALTIME, 0, 3600 * TW_SEC));
	twheel_start(self->w, &m[0].timer, 5 * TW_SEC);
	fake_ns += 20 * TW_SEC;
	twheel_start(self->w, &m[1].timer, 0);
	ASSERT_EQ(1, twheel_dispatch(self->w, 0));
	ASSERT_EQ(1, m[1].called);
	fake_ns -= 10 * TW_SEC;
	twheel_dispatch(self->w, 0);
	EXPECT_LT(fake_ns, twheel_next(self->w));
	fake_ns = 3600 * TW_SEC;
	twheel_dispatch(self->w, 0);
	EXPECT_EQ(1, m[0].called);
}

/* A dispatch that had nothing to do has turned the wheel to its time. */
TEST_F(review, timer_is_in_time_if_the_clock_was_set_back_after_a_dispatch_in_vain)
{
	struct mark *m = self->mark;

	fake_ns = 1000 * TW_SEC;
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_REALTIME, 0, TW_MS));
	twheel_start_at(self->w, &m[0].timer, 10000 * TW_SEC);
	twheel_next(self->w);
	fake_ns = 2000 * TW_SEC;
	ASSERT_EQ(0, twheel_dispatch(self->w, 0));
	twheel_next(self->w);
	fake_ns = 1500 * TW_SEC;
	twheel_start(self->w, &m[1].timer, 10 * TW_SEC);
	EXPECT_EQ(1510 * TW_SEC, twheel_next(self->w));
	fake_ns = 1510 * TW_SEC;
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, m[1].called);
	EXPECT_EQ(10000 * TW_SEC, twheel_next(self->w));
}

/* The timerfd has fired, but the clock that the program reads is a moment behind. */
TEST_F(review, descriptor_that_fired_before_the_clock_says_so_is_not_readable_for_long)
{
	struct mark *m = self->mark;
	struct pollfd p = { .events = POLLIN };
	int i;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, 0, TW_MS));
	p.fd = twheel_fd(self->w);
	ASSERT_LE(3, p.fd);
	for (i = 0; i < 3; i++) {
		__u64 start_ns = twheel_update(self->w);

		twheel_start(self->w, &m->timer, 2 * TW_MS);
		ASSERT_EQ(0, twheel_flush(self->w));
		ASSERT_EQ(1, poll(&p, 1, 10000));
		fake_ns = start_ns + TW_MS;
		EXPECT_EQ(0, twheel_dispatch(self->w, 0));
		if (i == 0) {
			/* No timer is left to wake up for. */
			twheel_stop(self->w, &m->timer);
			ASSERT_EQ(0, twheel_flush(self->w));
			EXPECT_FALSE(is_readable(p.fd));
		} else if (i == 1) {
			twheel_start(self->w, &m->timer, 3600 * TW_SEC);
			ASSERT_EQ(0, twheel_flush(self->w));
		}
		/* The clock is not behind any more. */
		fake_ns = 0;
		EXPECT_EQ(i == 2, twheel_dispatch(self->w, 0));
		ASSERT_EQ(0, twheel_flush(self->w));
		EXPECT_FALSE(is_readable(p.fd));
	}
	EXPECT_EQ(1, m->called);
}

TEST_F(review, next_has_passed_though_the_clock_was_set_back)
{
	fake_ns = 100000 * TW_SEC;
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_REALTIME, 0, TW_MS));
	twheel_start(self->w, &self->mark->timer, 0);
	fake_ns -= 3600 * TW_SEC;
	EXPECT_GE(fake_ns, twheel_next(self->w));
}

TEST_F(review, unread_number_is_pending_again_if_the_clock_is_set_back)
{
	const struct twheel_table_options options = {
		.size = sizeof(options), .clock = TWHEEL_TABLE_REALTIME,
	};
	struct twheel_table *table;
	uint64_t deadline_ns = TW_POISON64;
	uint32_t number = UINT32_MAX;

	fake_ns = 1000 * TW_SEC;
	ASSERT_EQ(0, twheel_table_open(&table, 1, &options));
	ASSERT_EQ(TWHEEL_TABLE_IDLE, twheel_table_start(table, 0, 1010 * TW_SEC));
	fake_ns = 1020 * TW_SEC;
	EXPECT_EQ(TWHEEL_TABLE_UNREAD, twheel_table_state(table, 0, NULL));
	fake_ns = 1005 * TW_SEC;
	EXPECT_EQ(TWHEEL_TABLE_PENDING, twheel_table_state(table, 0, &deadline_ns));
	EXPECT_EQ(1010 * TW_SEC, deadline_ns);
	EXPECT_EQ(0, twheel_table_expired(table, &number, 1, 0));
	fake_ns = 1010 * TW_SEC;
	EXPECT_EQ(1, twheel_table_expired(table, &number, 1, 0));
	EXPECT_EQ(0, number);
	fake_ns = 1005 * TW_SEC;
	EXPECT_EQ(0, twheel_table_expired(table, &number, 1, 0));
	twheel_table_close(table);
}

/*
 * If the clock is set back between two edges, a timer that is due in between waits for the later
 * one. For another timer, @other, the wheel reads the clock before that.
 */
static void expect_the_next_edge(struct __test_metadata *_metadata, struct twheel *w,
				 struct mark *other)
{
	fake_ns = 1002800 * TW_MS;
	twheel_start_at(w, &other->timer, 0);
	ASSERT_EQ(1, twheel_dispatch(w, 0));
	fake_ns = 1002600 * TW_MS;
	EXPECT_EQ(0, twheel_dispatch(w, 0));
	EXPECT_EQ(1003 * TW_SEC, twheel_next(w));
	fake_ns = 1003 * TW_SEC;
	EXPECT_EQ(1, twheel_dispatch(w, 0));
}

TEST_F(review, timer_waits_for_its_edge_though_the_clock_was_set_back_to_before_it)
{
	struct mark *m = self->mark;

	fake_ns = 1000 * TW_SEC;
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_REALTIME, 0, TW_SEC));
	twheel_start_at(self->w, &m[0].timer, 1002400 * TW_MS);
	expect_the_next_edge(_metadata, self->w, &m[1]);
	EXPECT_EQ(1, m[0].called);
}

/* The first one is in the wheel, and the second was due when a limit ended the fetch. */
TEST_F(review, number_that_pends_is_not_fetched_though_the_clock_was_set_back)
{
	const struct twheel_table_options options = {
		.size = sizeof(options),
		.clock = TWHEEL_TABLE_REALTIME,
		.tick_ns = TW_SEC,
	};
	struct twheel_table *table;
	__u32 numbers[3];
	int due;

	for (due = 0; due < 2; due++) {
		fake_ns = 1000 * TW_SEC;
		ASSERT_EQ(0, twheel_table_open(&table, 3, &options));
		ASSERT_EQ(0, twheel_table_start(table, 1, 1002400 * TW_MS));
		ASSERT_EQ(0, twheel_table_start(table, 2, 1002400 * TW_MS));
		fake_ns = (due ? 1003000 : 1002800) * TW_MS;
		if (!due)
			ASSERT_EQ(0, twheel_table_start(table, 0, 0));
		ASSERT_EQ(1, twheel_table_expired(table, numbers, 1, 0));
		fake_ns = 1002600 * TW_MS;
		/* Each that pends counts 1. */
		EXPECT_EQ(2 - due, twheel_table_state(table, 1, NULL) +
				   twheel_table_state(table, 2, NULL));
		EXPECT_EQ(0, twheel_table_expired(table, numbers, 3, 0));
		fake_ns = 1003 * TW_SEC;
		EXPECT_EQ(2 - due, twheel_table_expired(table, numbers, 3, 0));
		twheel_table_close(table);
	}
}

/* The descriptor is set by the real time, which is read together with TAI. */
TEST_F(review, descriptor_of_tai_is_in_time_if_the_thread_is_held_up_between_two_clocks)
{
	struct itimerspec left;
	__u64 now_ns = tw_now(CLOCK_REALTIME);

	fake_ns = now_ns;
	fake_tai_ns = 37 * TW_SEC;
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_TAI, 0, TW_MS));
	twheel_start_at(self->w, &self->mark->timer, now_ns + 137 * TW_SEC);
	ASSERT_LE(3, twheel_fd(self->w));
	read_ns = 600 * TW_MS;
	twheel_start_at(self->w, &self->mark->timer, now_ns + 136 * TW_SEC);
	ASSERT_EQ(0, twheel_flush(self->w));
	ASSERT_EQ(0, timerfd_gettime(twheel_fd(self->w), &left));
	EXPECT_GE(99, left.it_value.tv_sec);
	EXPECT_LE(96, left.it_value.tv_sec);
}

/* ---- callbacks that leave, or dispatch ------------------------------------------ */

static jmp_buf back;

static void leaves(struct twheel *w, struct mark *m)
{
	(void)w;
	(void)m;
	longjmp(back, 1);
}

TEST_F(review, a_fixed_delay_whose_callback_left_does_not_wait_for_a_longer_one)
{
	int i;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, 0, TW_MS));
	for (i = 0; i < 2; i++) {
		struct mark *m = &self->mark[i];

		m->does = leaves;
		twheel_start_periodic(self->w, &m->timer, TW_MS * (i + 1),
				      i ? 3600 * TW_SEC : 10 * TW_MS, TWHEEL_FIXED_DELAY);
		if (!setjmp(back))
			lib_step(self->w, TW_MS * (i + 1));
		ASSERT_EQ(1, m->called);
		m->does = NULL;
	}
	lib_step(self->w, 20 * TW_MS);
	EXPECT_EQ(2, self->mark[0].called);
	EXPECT_LT(twheel_now(self->w), twheel_next(self->w));
}

/* It is due between two edges, and the clock comes there for a second time. */
TEST_F(review, a_fixed_delay_whose_callback_left_wakes_nobody_before_its_edge)
{
	struct mark *m = self->mark;

	fake_ns = 1000 * TW_SEC;
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_REALTIME, 0, TW_SEC));
	m->does = leaves;
	twheel_start_periodic(self->w, &m[0].timer, 1001 * TW_SEC, 1300 * TW_MS,
			      TWHEEL_FIXED_DELAY);
	fake_ns = 1001 * TW_SEC;
	if (!setjmp(back))
		twheel_dispatch(self->w, 0);
	ASSERT_EQ(1, m[0].called);
	m->does = NULL;
	expect_the_next_edge(_metadata, self->w, &m[1]);
	EXPECT_EQ(2, m[0].called);
}

static void dispatches(struct twheel *w, struct mark *m)
{
	twheel_start(w, &m->others->timer, 0);
	/* The first one goes on with the outer one's turn. */
	if (!twheel_dispatch(w, 0))
		twheel_dispatch(w, 0);
	m->periods = twheel_periods(w);
}

TEST_F(review, periods_are_those_of_the_callback_after_a_nested_dispatch)
{
	struct mark *m = self->mark;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, 0, TW_MS));
	m->does = dispatches;
	m->others = &m[1];
	twheel_start_every(self->w, &m->timer, 10 * TW_MS);
	lib_step(self->w, 55 * TW_MS);
	EXPECT_EQ(1, m[1].called);
	EXPECT_EQ(5, m->periods);
}

static void moves_itself(struct twheel *w, struct mark *m)
{
	struct mark *to = m->others;

	*to = *m;
	to->does = NULL;
	twheel_timer_move(w, &to->timer, &m->timer);
	/* The callback takes 5 ms. */
	twheel_advance(w, twheel_now(w) + 5 * TW_MS);
}

TEST_F(review, a_fixed_delay_that_moves_in_its_callback_counts_from_its_end)
{
	struct mark *m = self->mark;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, 0, TW_MS));
	m->does = moves_itself;
	m->others = &m[1];
	twheel_start_periodic(self->w, &m->timer, 10 * TW_MS, 10 * TW_MS, TWHEEL_FIXED_DELAY);
	lib_step(self->w, 10 * TW_MS);
	ASSERT_EQ(1, m->called);
	EXPECT_EQ(25 * TW_MS, twheel_timer_deadline(&m[1].timer));
	EXPECT_FALSE(twheel_timer_pending(&m->timer));
}

static void starts_and_dispatches(struct twheel *w, struct mark *m)
{
	m->does = NULL;
	twheel_start_periodic(w, &m->others->timer, 1, 10 * TW_MS, TWHEEL_FIXED_DELAY);
	if (!twheel_dispatch(w, 0))
		twheel_dispatch(w, 0);
	twheel_advance(w, twheel_now(w) + 5 * TW_MS);
}

/* The callback stops itself, and moves the timer of the outer callback. */
static void stops_itself_and_moves_the_outer_one(struct twheel *w, struct mark *m)
{
	struct mark *outer = m->others, *to = outer + 2;

	twheel_stop(w, &m->timer);
	*to = *outer;
	twheel_timer_move(w, &to->timer, &outer->timer);
}

TEST_F(review, a_fixed_delay_that_an_inner_one_moves_counts_from_the_end_of_its_own_callback)
{
	struct mark *m = self->mark;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, 0, TW_MS));
	m[0].does = starts_and_dispatches;
	m[0].others = &m[1];
	m[1].does = stops_itself_and_moves_the_outer_one;
	m[1].others = &m[0];
	twheel_start_periodic(self->w, &m[0].timer, 10 * TW_MS, 10 * TW_MS, TWHEEL_FIXED_DELAY);
	lib_step(self->w, 10 * TW_MS);
	ASSERT_EQ(1, m[1].called);
	EXPECT_EQ(25 * TW_MS, twheel_timer_deadline(&m[2].timer));
}

static void dispatches_deeper(struct twheel *w, struct mark *m)
{
	if (m->others) {
		twheel_start_periodic(w, &m->others->timer, 1, 10 * TW_MS, TWHEEL_FIXED_DELAY);
		if (!twheel_dispatch(w, 0))
			twheel_dispatch(w, 0);
	}
	m->does = NULL;
	twheel_advance(w, twheel_now(w) + TW_MS / 100);
}

TEST_F(review, fixed_delays_count_from_their_ends_however_deep_they_are_nested)
{
	struct mark *m = self->mark;
	const int deep = 40;
	int i;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, 0, TW_MS));
	for (i = 0; i < deep; i++) {
		m[i].does = dispatches_deeper;
		m[i].others = i + 1 < deep ? &m[i + 1] : NULL;
	}
	twheel_start_periodic(self->w, &m[0].timer, TW_MS, 10 * TW_MS, TWHEEL_FIXED_DELAY);
	lib_step(self->w, TW_MS);
	for (i = 0; i < deep; i++) {
		EXPECT_EQ(1, m[i].called);
		EXPECT_EQ(11 * TW_MS + (deep - i) * TW_MS / 100,
			  twheel_timer_deadline(&m[i].timer));
	}
}

static void dispatches_after_its_delay(struct twheel *w, struct mark *m)
{
	m->does = NULL;
	twheel_start(w, &m->others->timer, 0);
	twheel_advance(w, (__u64)(uintptr_t)m->data);
	twheel_dispatch(w, 0);
	m->nr_others = m->called;
	twheel_advance(w, 4 * TW_MS);
}

/*
 * It is called at 1 ms. If it has not returned at 2.5 ms, it is due again, and the edge is at 3 ms.
 */
TEST_F(review, a_fixed_delay_whose_callback_has_not_returned_waits_for_an_edge)
{
	const __u64 ns = TW_MS * 3 / 2;
	int late;

	for (late = 0; late < 2; late++) {
		struct mark *m = &self->mark[2 * late];

		ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, 0, TW_MS));
		m[0].does = dispatches_after_its_delay;
		m[0].data = (void *)(uintptr_t)(late ? 3 * TW_MS : TW_MS * 26 / 10);
		m[0].others = &m[1];
		twheel_start_periodic(self->w, &m[0].timer, TW_MS, ns, TWHEEL_FIXED_DELAY);
		ASSERT_EQ(1, lib_step(self->w, TW_MS));
		EXPECT_EQ(1, m[1].called);
		EXPECT_EQ(1 + late, m[0].nr_others);
		EXPECT_EQ((late ? 3 : 4) * TW_MS + ns, twheel_timer_deadline(&m[0].timer));
		twheel_close(self->w);
		self->w = NULL;
	}
}

/* ---- timeouts that are not due ------------------------------------------------ */

TEST_F(review, timers_restarted_for_later_make_no_dispatch_long)
{
	__u64 moved = 0, before;
	int i, rounds;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, 0, TW_MS));
	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, 50 * TW_MS);
	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, 3600 * TW_SEC);
	twheel_advance(self->w, 51 * TW_MS);
	for (rounds = 0; rounds < 20; rounds++) {
		before = moved;
		ASSERT_EQ(0, twheel_dispatch(self->w, 0));
		moved = lib_stats(self->w).moved;
		EXPECT_GE(5000, moved - before);
	}
	EXPECT_LE(MANY, moved);
	EXPECT_LT(twheel_now(self->w), twheel_next(self->w));
}

/* ---- the descriptor ------------------------------------------------------------ */

TEST_F(review, a_start_that_has_passed_wakes_an_immediate_loop)
{
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, TWHEEL_IMMEDIATE, TW_MS));
	EXPECT_EQ(0, tw_poll(twheel_fd(self->w), POLLIN, 0));
	twheel_start(self->w, &self->mark[0].timer, 0);
	EXPECT_EQ(POLLIN, tw_poll(twheel_fd(self->w), POLLIN, TW_PATIENCE_MS));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
}

TEST_F(review, a_stopped_timer_wakes_an_immediate_loop_once)
{
	int fd;

	fake_ns = 1 * TW_SEC + 5;
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, TWHEEL_IMMEDIATE, TW_MS));
	fd = twheel_fd(self->w);
	ASSERT_LE(3, fd);
	twheel_start(self->w, &self->mark[0].timer, 10 * TW_MS);
	twheel_stop(self->w, &self->mark[0].timer);
	twheel_start(self->w, &self->mark[1].timer, 1000000 * TW_SEC);
	fake_ns += 11 * TW_MS;
	ASSERT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_FALSE(is_readable(fd));
	EXPECT_EQ(2, lib_stats(self->w).settings);
}

static void starts_itself(struct twheel *w, struct mark *m)
{
	twheel_start(w, &m->timer, 3600 * TW_SEC);
}

TEST_F(review, a_callback_of_an_immediate_wheel_sets_the_descriptor_once)
{
	__u64 settings;
	int i, fd;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, TWHEEL_IMMEDIATE, TW_MS));
	fd = twheel_fd(self->w);
	for (i = 0; i < 3; i++) {
		self->mark[i].does = starts_itself;
		twheel_start(self->w, &self->mark[i].timer, TW_MS);
	}
	usleep(5000);
	ASSERT_TRUE(TW_WAIT_FOR(is_readable(fd), TW_MS));
	settings = lib_stats(self->w).settings;
	ASSERT_EQ(3, twheel_dispatch(self->w, 0));
	EXPECT_EQ(settings + 1, lib_stats(self->w).settings);
	EXPECT_FALSE(is_readable(fd));
}

/* Move the clock while the other one is due. */
static void moves_the_clock(struct twheel *w, struct mark *m)
{
	if (!m->others->called)
		twheel_advance(w, twheel_now(w) + TW_MS);
}

TEST_F(review, flush_after_a_callback_that_moves_the_clock_leaves_nothing_readable_in_vain)
{
	struct mark *m = self->mark;
	int i, fd;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, 0, TW_MS));
	fd = twheel_fd(self->w);
	ASSERT_LE(3, fd);
	for (i = 0; i < 2; i++) {
		m[i].does = moves_the_clock;
		m[i].others = &m[1 - i];
		twheel_start(self->w, &m[i].timer, TW_MS);
	}
	twheel_start(self->w, &m[2].timer, 10 * TW_MS);
	ASSERT_EQ(2, lib_step(self->w, TW_MS));
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_FALSE(is_readable(fd));
	ASSERT_EQ(1, lib_step(self->w, 10 * TW_MS));
}

TEST_F(review, flush_says_each_time_that_the_descriptor_was_closed)
{
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, 0, TW_MS));
	close(twheel_fd(self->w));
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	EXPECT_EQ(-EBADF, twheel_flush(self->w));
	EXPECT_EQ(-EBADF, twheel_flush(self->w));
}

/* ---- shared wheels -------------------------------------------------------------- */

TEST_F(review, a_wake_just_before_the_sleep_is_not_lost)
{
	__u64 before;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, TWHEEL_SHARED, TW_MS));
	ASSERT_LE(3, twheel_fd(self->w));
	hooked = self->w;
	/* The first is for the end, the second before the flush. */
	before = tw_now(CLOCK_MONOTONIC);
	reads_until_hook = 2;
	ASSERT_EQ(0, twheel_wait(self->w, 3 * TW_SEC));
	EXPECT_EQ(0, reads_until_hook);
	EXPECT_GT(before + 2 * TW_SEC, tw_now(CLOCK_MONOTONIC));
	EXPECT_FALSE(is_readable(twheel_fd(self->w)));
}

TEST_F(review, a_wake_before_a_dispatch_ends_the_next_wait)
{
	__u64 start_ns;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, TWHEEL_SHARED, TW_MS));
	ASSERT_LE(3, twheel_fd(self->w));
	twheel_wake(self->w);
	start_ns = twheel_update(self->w);
	ASSERT_EQ(0, twheel_dispatch(self->w, 0));
	ASSERT_EQ(0, twheel_flush(self->w));
	EXPECT_EQ(0, twheel_wait(self->w, 5 * TW_SEC));
	EXPECT_GT(start_ns + 4 * TW_SEC, twheel_update(self->w));
}

TEST_F(review, a_wake_before_there_is_a_descriptor_is_not_lost)
{
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, TWHEEL_SHARED, TW_MS));
	twheel_wake(self->w);
	EXPECT_TRUE(TW_WAIT_FOR(is_readable(twheel_fd(self->w)), TW_MS));
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_TRUE(TW_WAIT_FOR(is_readable(twheel_fd(self->w)), TW_MS));
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_FALSE(is_readable(twheel_fd(self->w)));
}

TEST_F(review, a_wake_is_not_lost_if_the_callers_clock_is_moved)
{
	int moved;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, TWHEEL_SHARED, TW_MS));
	for (moved = 0; moved < 2; moved++) {
		twheel_wake(self->w);
		EXPECT_EQ(0, twheel_advance(self->w, twheel_now(self->w) + TW_MS));
		EXPECT_TRUE(TW_WAIT_FOR(is_readable(twheel_fd(self->w)), TW_MS));
		EXPECT_EQ(0, twheel_dispatch(self->w, 0));
		EXPECT_FALSE(is_readable(twheel_fd(self->w)));
	}
}

static void wakes(int signal)
{
	(void)signal;
	twheel_wake(hooked);
}

/* If the machine is busy, the signal may come before the thread sleeps: try again. */
static int wait_for_a_signal(struct twheel *w)
{
	struct itimerval soon = { .it_value = { .tv_usec = 20000 } };
	int ret;

	do {
		setitimer(ITIMER_REAL, &soon, NULL);
		ret = twheel_wait(w, 5 * TW_SEC);
		soon.it_value.tv_usec *= 2;
	} while (!ret && soon.it_value.tv_usec < 1000000);
	return ret;
}

TEST_F(review, a_wake_that_comes_with_a_signal_ends_the_next_wait)
{
	__u64 start_ns;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, TWHEEL_SHARED, TW_MS));
	hooked = self->w;
	signal(SIGALRM, wakes);
	ASSERT_EQ(-EINTR, wait_for_a_signal(self->w));
	start_ns = twheel_update(self->w);
	EXPECT_EQ(0, twheel_wait(self->w, 5 * TW_SEC));
	EXPECT_GT(start_ns + 4 * TW_SEC, twheel_update(self->w));
}

static void *dispatch_here(void *w)
{
	return (void *)(long)twheel_dispatch(w, 0);
}

static void *in_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;
	void *ret;

	if (pthread_create(&thread, NULL, fn, arg) || pthread_join(thread, &ret))
		abort();
	return ret;
}

static void dispatch_there(struct twheel *w, struct twheel_timer *t, void *arg)
{
	(void)t;
	++*(int *)arg;
	in_thread(dispatch_here, w);
}

TEST_F(review, stop_all_stops_all_while_another_thread_dispatches)
{
	int i, seen = 0;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, TWHEEL_SHARED, TW_MS));
	for (i = 0; i < 5; i++)
		twheel_start(self->w, &self->mark[i].timer, 3600 * TW_SEC);
	EXPECT_EQ(5, twheel_stop_all(self->w, dispatch_there, &seen));
	EXPECT_EQ(5, seen);
	for (i = 0; i < 5; i++)
		EXPECT_FALSE(twheel_timer_pending(&self->mark[i].timer));
}

static void *stop_all_here(void *w)
{
	twheel_stop_all(w, NULL, NULL);
	return NULL;
}

static void stops_all_there(struct twheel *w, struct mark *m)
{
	(void)m;
	in_thread(stop_all_here, w);
}

static void dispatches_inner(struct twheel *w, struct mark *m)
{
	(void)w;
	twheel_dispatch(m->data, 0);
}

TEST_F(review, stop_all_leaves_alone_where_the_other_thread_is)
{
	struct mark *m = self->mark;
	struct twheel *inner;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, 0, TW_MS));
	ASSERT_EQ(0, lib_open(&inner, TWHEEL_CALLER, TWHEEL_SHARED, TW_MS));
	m[0].does = dispatches_inner;
	m[0].data = inner;
	m[2].does = stops_all_there;
	twheel_start(self->w, &m[0].timer, 0);
	twheel_start(self->w, &m[1].timer, 0);
	twheel_start(inner, &m[2].timer, 0);
	EXPECT_EQ(2, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, m[1].called);
	twheel_close(inner);
}

static atomic_int stage;

/*
 * Take so long that the first thread, which has been waiting for stage 1, sleeps in
 * twheel_stop_sync().
 */
static void take_long(void)
{
	atomic_store(&stage, 1);
	tw_wait_asleep(getpid());
}

static void dispatches_and_takes_long(struct twheel *w, struct mark *m)
{
	dispatches(w, m);
	take_long();
	atomic_store(&stage, 2);
}

static void takes_long_with_others(struct twheel *w, struct mark *m)
{
	(void)w;
	(void)m;
	take_long();
}

/* Wait without a sleep. */
static void wait_for_stage(int nr)
{
	while (atomic_load(&stage) < nr)
		sched_yield();
}

TEST_F(review, stop_sync_waits_for_a_callback_that_has_dispatched)
{
	struct mark *m = self->mark;
	pthread_t thread;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, TWHEEL_SHARED, TW_MS));
	atomic_store(&stage, 0);
	m->does = dispatches_and_takes_long;
	m->others = &m[1];
	twheel_start(self->w, &m->timer, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, dispatch_here, self->w));
	wait_for_stage(1);
	EXPECT_FALSE(twheel_stop_sync(self->w, &m->timer));
	EXPECT_EQ(2, atomic_load(&stage));
	pthread_join(thread, NULL);
}

static void takes_long_to_the_end(struct twheel *w, struct mark *m)
{
	takes_long_with_others(w, m);
	atomic_store(&stage, 2);
}

static void *dispatches_what_leaves(void *arg)
{
	volatile long nr_left = 0;

	while (setjmp(back))
		nr_left++;
	twheel_dispatch(arg, 0);
	return (void *)nr_left;
}

TEST_F(review, stop_sync_knows_the_callback_under_way_after_many_that_have_left)
{
	const int nr = 40;
	struct mark *m = self->mark, *last = &m[nr], *other = &m[nr + 1];
	pthread_t thread;
	void *nr_left;
	int i;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, TWHEEL_SHARED, TW_MS));
	atomic_store(&stage, 0);
	for (i = 0; i < nr; i++) {
		m[i].does = leaves;
		twheel_start(self->w, &m[i].timer, 0);
	}
	last->does = takes_long_to_the_end;
	twheel_start(self->w, &last->timer, 0);
	twheel_start(self->w, &other->timer, 3600 * TW_SEC);
	ASSERT_EQ(0, pthread_create(&thread, NULL, dispatches_what_leaves, self->w));
	wait_for_stage(1);
	EXPECT_TRUE(twheel_stop_sync(self->w, &other->timer));
	EXPECT_EQ(1, atomic_load(&stage));
	EXPECT_FALSE(twheel_stop_sync(self->w, &last->timer));
	EXPECT_EQ(2, atomic_load(&stage));
	ASSERT_EQ(0, pthread_join(thread, &nr_left));
	EXPECT_EQ(nr, (long)nr_left);
	EXPECT_FALSE(twheel_stop_sync(self->w, &last->timer));
}

static void dispatches_to_the_end(struct twheel *w, struct mark *m)
{
	dispatches(w, m);
	atomic_store(&stage, 2);
}

TEST_F(review, stop_sync_waits_for_a_callback_that_dispatches)
{
	struct mark *m = self->mark;
	pthread_t thread;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, TWHEEL_SHARED, TW_MS));
	atomic_store(&stage, 0);
	m->does = dispatches_to_the_end;
	m->others = &m[1];
	m[1].does = takes_long_with_others;
	twheel_start(self->w, &m->timer, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, dispatch_here, self->w));
	wait_for_stage(1);
	EXPECT_FALSE(twheel_stop_sync(self->w, &m->timer));
	EXPECT_EQ(2, atomic_load(&stage));
	pthread_join(thread, NULL);
}

static void dispatches_the_next(struct twheel *w, struct mark *m)
{
	twheel_start(w, &m[1].timer, 0);
	if (!twheel_dispatch(w, 0))
		twheel_dispatch(w, 0);
}

static void dispatches_many_and_takes_long(struct twheel *w, struct mark *m)
{
	dispatches_the_next(w, m);
	takes_long_to_the_end(w, m);
}

TEST_F(review, stop_sync_knows_a_callback_again_in_which_many_have_returned)
{
	struct mark *m = self->mark;
	const int deep = 40;
	pthread_t thread;
	int i;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, TWHEEL_SHARED, TW_MS));
	atomic_store(&stage, 0);
	m->does = dispatches_many_and_takes_long;
	for (i = 1; i < deep; i++)
		m[i].does = dispatches_the_next;
	twheel_start(self->w, &m->timer, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, dispatch_here, self->w));
	wait_for_stage(1);
	EXPECT_EQ(1, m[deep].called);
	EXPECT_FALSE(twheel_stop_sync(self->w, &m->timer));
	EXPECT_EQ(2, atomic_load(&stage));
	pthread_join(thread, NULL);
}

static void *dispatches_one_after_the_other(void *arg)
{
	struct twheel **w = arg;

	twheel_dispatch(w[0], 0);
	atomic_store(&stage, 1);
	wait_for_stage(2);
	return dispatch_here(w[1]);
}

TEST_F(review, a_thread_knows_nothing_of_a_wheel_that_another_one_has_closed)
{
	struct mark *m = self->mark;
	struct twheel *w[2];
	pthread_t thread;
	void *ret;
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, lib_open(&w[i], TWHEEL_CALLER, 0, TW_MS));
		twheel_start(w[i], &m[i].timer, 0);
	}
	atomic_store(&stage, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, dispatches_one_after_the_other, w));
	wait_for_stage(1);
	twheel_close(w[0]);
	atomic_store(&stage, 2);
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(1, (long)ret);
	twheel_close(w[1]);
}

static void takes_long_and_starts_itself(struct twheel *w, struct mark *m)
{
	take_long();
	twheel_start(w, &m->timer, 3600 * TW_SEC);
}

TEST_F(review, stop_sync_stops_what_the_callback_starts_meanwhile)
{
	struct mark *m = self->mark;
	pthread_t thread;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, TWHEEL_SHARED, TW_MS));
	atomic_store(&stage, 0);
	m->does = takes_long_and_starts_itself;
	twheel_start(self->w, &m->timer, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, dispatch_here, self->w));
	wait_for_stage(1);
	EXPECT_TRUE(twheel_stop_sync(self->w, &m->timer));
	EXPECT_FALSE(twheel_timer_pending(&m->timer));
	pthread_join(thread, NULL);
}

static void moves_and_takes_long(struct twheel *w, struct mark *m)
{
	twheel_timer_move(w, &m->others->timer, &m->timer);
	take_long();
	atomic_store(&stage, 2);
}

TEST_F(review, stop_sync_waits_for_a_callback_in_which_the_timer_has_moved)
{
	struct mark *m = self->mark;
	pthread_t thread;

	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, TWHEEL_SHARED, TW_MS));
	atomic_store(&stage, 0);
	m->does = moves_and_takes_long;
	m->others = &m[1];
	twheel_start_every(self->w, &m->timer, TW_MS);
	usleep(3000);
	ASSERT_EQ(0, pthread_create(&thread, NULL, dispatch_here, self->w));
	wait_for_stage(1);
	EXPECT_TRUE(twheel_stop_sync(self->w, &m[1].timer));
	EXPECT_EQ(2, atomic_load(&stage));
	pthread_join(thread, NULL);
}

TEST_HARNESS_MAIN
