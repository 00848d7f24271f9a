// SPDX-License-Identifier: GPL-2.0
/*
 * The actions that a callback of libtwheel may do: free its timer, dispatch, close wheels, and
 * leave by longjmp().
 */
#include "twheel_lib_test.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <ucontext.h>

#define MANY	100

FIXTURE(callbacks) {
	struct twheel *w;
	struct twheel *other;
	struct mark mark[MANY];
};

/* Variants have a stop watch, and drop the lock. */
FIXTURE_VARIANT(callbacks) {
	__u32 flags;
};

FIXTURE_VARIANT_ADD(callbacks, plain) { .flags = 0 };
FIXTURE_VARIANT_ADD(callbacks, measured) { .flags = TWHEEL_MEASURE };
FIXTURE_VARIANT_ADD(callbacks, shared) { .flags = TWHEEL_SHARED };

FIXTURE_SETUP(callbacks)
{
	int i;

	for (i = 0; i < MANY; i++)
		mark_init(&self->mark[i]);
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_CALLER, variant->flags, TW_MS));
	ASSERT_EQ(0, lib_open(&self->other, TWHEEL_CALLER, variant->flags, TW_MS));
}

FIXTURE_TEARDOWN(callbacks)
{
	twheel_close(self->w);
	twheel_close(self->other);
	EXPECT_NO_LEAK();
}

static void start_all(struct twheel *w, struct mark *m, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		twheel_start(w, &m[i].timer, i % 2 ? TW_MS : 0);
}

/* ---- free --------------------------------------------------------------------- */

static void frees_itself(struct twheel *w, struct mark *m)
{
	int *freed = m->data;

	(void)w;
	++*freed;
	free(m);
}

TEST_F(callbacks, callback_of_a_one_shot_may_free_it)
{
	int i, freed = 0;

	for (i = 0; i < MANY; i++) {
		struct mark *m = malloc(sizeof(*m));

		mark_init(m);
		m->does = frees_itself;
		m->data = &freed;
		twheel_start(self->w, &m->timer, i % 3 * TW_MS);
	}
	ASSERT_EQ(MANY, lib_step(self->w, TW_SEC));
	EXPECT_EQ(MANY, freed);
}

static void stops_and_frees_itself(struct twheel *w, struct mark *m)
{
	if (twheel_stop(w, &m->timer))
		frees_itself(w, m);
}

TEST_F(callbacks, callback_of_a_periodic_timer_may_stop_and_free_it)
{
	int i, freed = 0;

	for (i = 0; i < MANY; i++) {
		struct mark *m = malloc(sizeof(*m));

		mark_init(m);
		m->does = stops_and_frees_itself;
		m->data = &freed;
		twheel_start_periodic(self->w, &m->timer, i % 3 * TW_MS, TW_MS,
				      i % 2 ? TWHEEL_FIXED_DELAY : 0);
	}
	ASSERT_EQ(MANY, lib_step(self->w, TW_SEC));
	EXPECT_EQ(MANY, freed);
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
}

static void restarts_itself(struct twheel *w, struct mark *m)
{
	twheel_start(w, &m->timer, TW_HOUR);
}

TEST_F(callbacks, callback_of_a_periodic_timer_may_make_it_a_one_shot)
{
	int i;

	for (i = 0; i < MANY; i++) {
		self->mark[i].does = restarts_itself;
		twheel_start_periodic(self->w, &self->mark[i].timer, TW_MS, TW_MS,
				      i % 2 ? TWHEEL_FIXED_DELAY : 0);
	}
	ASSERT_EQ(MANY, lib_step(self->w, TW_SEC));
	ASSERT_EQ(0, lib_step(self->w, TW_HOUR));
	for (i = 0; i < MANY; i++) {
		self->mark[i].does = NULL;
		EXPECT_EQ(TW_HOUR + TW_SEC, twheel_timer_deadline(&self->mark[i].timer));
	}
	ASSERT_EQ(MANY, lib_step(self->w, TW_DAY));
	EXPECT_EQ(0, lib_stats(self->w).pending);
}

static void stops_itself(struct twheel *w, struct mark *m)
{
	m->nr_others = twheel_stop(w, &m->timer);
}

TEST_F(callbacks, callback_finds_a_one_shot_idle_and_a_periodic_timer_pending)
{
	int i;

	for (i = 0; i < 3; i++)
		self->mark[i].does = stops_itself;
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	twheel_start_every(self->w, &self->mark[1].timer, TW_MS);
	twheel_start_periodic(self->w, &self->mark[2].timer, TW_MS, TW_MS, TWHEEL_FIXED_DELAY);
	ASSERT_EQ(3, lib_step(self->w, TW_MS));
	EXPECT_EQ(0, self->mark[0].nr_others);
	EXPECT_EQ(1, self->mark[1].nr_others);
	EXPECT_EQ(1, self->mark[2].nr_others);
	ASSERT_EQ(0, lib_step(self->w, TW_SEC));
}

/* ---- nested dispatch -------------------------------------------------------------- */

static void dispatches(struct twheel *w, struct mark *m)
{
	int *ret = m->data;

	/* The first callback does so, whichever it is. */
	if (*ret == TW_POISON) {
		*ret = 0;
		*ret = twheel_dispatch(w, 0);
	}
}

TEST_F(callbacks, callback_may_dispatch_and_so_call_the_timers_that_are_due)
{
	int i, ret = TW_POISON;

	for (i = 0; i < MANY; i++) {
		self->mark[i].does = dispatches;
		self->mark[i].data = &ret;
	}
	start_all(self->w, self->mark, MANY);
	ASSERT_EQ(1, lib_step(self->w, TW_SEC));
	EXPECT_EQ(MANY - 1, ret);
	EXPECT_EQ(MANY, marks_called(self->mark, MANY));
}

static void dispatches_one(struct twheel *w, struct mark *m)
{
	(void)m;
	twheel_dispatch(w, 1);
}

TEST_F(callbacks, callbacks_may_dispatch_each_in_the_one_before)
{
	int i;

	for (i = 0; i < MANY; i++)
		self->mark[i].does = dispatches_one;
	start_all(self->w, self->mark, MANY);
	ASSERT_EQ(1, lib_step(self->w, TW_SEC));
	EXPECT_EQ(MANY, marks_called(self->mark, MANY));
	ASSERT_EQ(0, twheel_dispatch(self->w, 0));
}

/* Dispatch another wheel in a callback of this one. */
static void dispatches_data(struct twheel *w, struct mark *m)
{
	(void)w;
	m->nr_others = twheel_dispatch(m->data, 0);
}

TEST_F(callbacks, callback_may_dispatch_another_wheel)
{
	int i;

	self->mark[0].does = dispatches_data;
	self->mark[0].data = self->other;
	start_all(self->w, self->mark, MANY / 2);
	start_all(self->other, self->mark + MANY / 2, MANY / 2);
	ASSERT_EQ(0, twheel_advance(self->other, TW_SEC));
	ASSERT_EQ(MANY / 2, lib_step(self->w, TW_SEC));
	EXPECT_EQ(MANY / 2, self->mark[0].nr_others);
	for (i = 0; i < MANY; i++)
		EXPECT_EQ(1, self->mark[i].called);
}

/* ---- close -------------------------------------------------------------------------- */

static void closes_the_wheel(struct twheel *w, struct mark *m)
{
	(void)m;
	twheel_close(w);
}

TEST_F(callbacks, callback_may_close_the_wheel_which_is_the_end_of_all_callbacks)
{
	int i;

	for (i = 0; i < MANY; i++)
		self->mark[i].does = closes_the_wheel;
	start_all(self->w, self->mark, MANY);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, marks_called(self->mark, MANY));
	for (i = 0; i < MANY; i++)
		EXPECT_FALSE(twheel_timer_pending(&self->mark[i].timer));
	self->w = NULL;
}

TEST_F(callbacks, callback_of_a_periodic_timer_may_close_the_wheel)
{
	int flags;

	for (flags = 0; flags <= (int)TWHEEL_FIXED_DELAY; flags++) {
		struct mark *m = malloc(sizeof(*m));
		struct twheel *w;

		ASSERT_EQ(0, lib_open(&w, TWHEEL_CALLER, variant->flags, TW_MS));
		mark_init(m);
		m->does = closes_the_wheel;
		twheel_start_periodic(w, &m->timer, TW_MS, TW_MS, flags);
		EXPECT_EQ(1, lib_step(w, TW_SEC));
		EXPECT_FALSE(twheel_timer_pending(&m->timer));
		free(m);
	}
}

static void closes_data(struct twheel *w, struct mark *m)
{
	(void)w;
	twheel_close(m->data);
}

TEST_F(callbacks, callback_may_close_the_wheel_of_the_callback_around_it)
{
	struct mark *m = self->mark;

	/* w calls m[0], which dispatches the other wheel, which calls m[1], which closes w. */
	m[0].does = dispatches_data;
	m[0].data = self->other;
	m[1].does = closes_data;
	m[1].data = self->w;
	twheel_start(self->w, &m[0].timer, TW_MS);
	twheel_start(self->w, &m[2].timer, TW_SEC);
	twheel_start(self->other, &m[1].timer, TW_MS);
	twheel_start(self->other, &m[3].timer, TW_MS);
	ASSERT_EQ(0, twheel_advance(self->other, TW_SEC));
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	self->w = NULL;
	EXPECT_EQ(2, m[0].nr_others);
	EXPECT_EQ(1, m[1].called);
	EXPECT_EQ(0, m[2].called);
	EXPECT_EQ(1, m[3].called);
	/* The wheel that is left goes on. */
	twheel_start(self->other, &m[3].timer, TW_MS);
	ASSERT_EQ(1, lib_step(self->other, TW_MIN));
}

static void dispatches_and_closes(struct twheel *w, struct mark *m)
{
	(void)m;
	twheel_dispatch(w, 0);
	twheel_close(w);
}

TEST_F(callbacks, callback_may_close_the_wheel_after_a_dispatch_in_it)
{
	self->mark[0].does = dispatches_and_closes;
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	twheel_start(self->w, &self->mark[1].timer, 2 * TW_MS);
	ASSERT_EQ(1, lib_step(self->w, TW_SEC));
	EXPECT_EQ(2, marks_called(self->mark, 2));
	self->w = NULL;
}

static void dispatches_the_closing_one(struct twheel *w, struct mark *m)
{
	m->nr_others = twheel_dispatch(w, 1);
}

TEST_F(callbacks, callback_may_dispatch_and_the_one_in_it_close_the_wheel)
{
	self->mark[0].does = dispatches_the_closing_one;
	self->mark[1].does = closes_the_wheel;
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	twheel_start(self->w, &self->mark[1].timer, 2 * TW_MS);
	twheel_start(self->w, &self->mark[2].timer, 3 * TW_MS);
	ASSERT_EQ(1, lib_step(self->w, TW_SEC));
	EXPECT_EQ(1, self->mark[0].nr_others);
	EXPECT_EQ(2, marks_called(self->mark, 3));
	self->w = NULL;
}

static void closes_and_opens_another(struct twheel *w, struct mark *m)
{
	int fd = twheel_fd(w);

	twheel_close(w);
	m->nr_others = lib_open(m->data, TWHEEL_MONOTONIC, TWHEEL_IMMEDIATE, TW_MS);
	if (!m->nr_others) {
		twheel_start(*(struct twheel **)m->data, &m[1].timer, TW_MS);
		m->nr_others = twheel_fd(*(struct twheel **)m->data) - fd;
	}
}

/* Another wheel has the number of the descriptor now. */
TEST_F(callbacks, wheel_that_is_closed_in_its_callback_leaves_its_descriptor_alone)
{
	struct twheel *w, *other = NULL;

	ASSERT_EQ(0, lib_open(&w, TWHEEL_MONOTONIC, variant->flags | TWHEEL_IMMEDIATE, TW_MS));
	ASSERT_LE(0, twheel_fd(w));
	self->mark[0].does = closes_and_opens_another;
	self->mark[0].data = &other;
	twheel_start(w, &self->mark[0].timer, 0);
	twheel_start(w, &self->mark[2].timer, TW_SEC);
	EXPECT_EQ(1, twheel_dispatch(w, 0));
	ASSERT_EQ(0, self->mark[0].nr_others);
	EXPECT_EQ(POLLIN, tw_poll(twheel_fd(other), POLLIN, TW_PATIENCE_MS));
	EXPECT_EQ(1, twheel_dispatch(other, 0));
	twheel_close(other);
}

/* ---- longjmp() ------------------------------------------------------------------------ */

static jmp_buf back;

static void jumps(struct twheel *w, struct mark *m)
{
	(void)w;
	m->does = NULL;
	longjmp(back, 1);
}

/* If a wheel is shared, the thread that left it dispatches it. */
TEST_F(callbacks, callback_may_leave_by_longjmp_and_the_next_dispatch_calls_the_rest)
{
	int i;
	volatile int jumped = 0;

	for (i = 0; i < MANY; i += 10)
		self->mark[i].does = jumps;
	start_all(self->w, self->mark, MANY);
	twheel_start_every(self->w, &self->mark[10].timer, 5 * TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, 5 * TW_MS));
	while (setjmp(back))
		jumped++;
	EXPECT_LE(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(10, jumped);
	for (i = 0; i < MANY; i++)
		EXPECT_EQ(1, self->mark[i].called);
	EXPECT_TRUE(twheel_stop(self->w, &self->mark[10].timer));
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
}

TEST_F(callbacks, callback_may_leave_by_longjmp_and_next_says_that_there_is_more)
{
	int i;

	self->mark[0].does = jumps;
	for (i = 0; i < 3; i++)
		twheel_start(self->w, &self->mark[i].timer, (1 + i) * TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	if (!setjmp(back))
		twheel_dispatch(self->w, 0);
	EXPECT_GE(TW_SEC, twheel_next(self->w));
	EXPECT_LE(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(3, marks_called(self->mark, 3));
}

TEST_F(callbacks, fixed_delay_counts_from_the_call_if_its_callback_leaves_by_longjmp)
{
	struct mark *m = &self->mark[0];

	m->does = jumps;
	twheel_start_periodic(self->w, &m->timer, TW_MS, 10 * TW_MS, TWHEEL_FIXED_DELAY);
	ASSERT_EQ(0, twheel_advance(self->w, 5 * TW_MS));
	if (!setjmp(back))
		twheel_dispatch(self->w, 0);
	EXPECT_TRUE(twheel_timer_pending(&m->timer));
	EXPECT_EQ(15 * TW_MS, twheel_timer_deadline(&m->timer));
	/* If later dispatches have something to do, they do not call it either. */
	twheel_start(self->w, &self->mark[1].timer, 0);
	EXPECT_LE(0, twheel_dispatch(self->w, 0));
	EXPECT_LE(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, self->mark[1].called);
	EXPECT_EQ(1, m->called);
	EXPECT_EQ(15 * TW_MS, twheel_next(self->w));
	EXPECT_EQ(1, lib_step(self->w, 15 * TW_MS));
	EXPECT_EQ(25 * TW_MS, twheel_timer_deadline(&m->timer));
	EXPECT_TRUE(twheel_stop(self->w, &m->timer));
}

/* It is the first now, though the wheel knew another one as the first. */
TEST_F(callbacks, fixed_delay_that_had_passed_wakes_the_loop_if_its_callback_leaves_by_longjmp)
{
	struct mark *m = &self->mark[0];
	int asks;

	for (asks = 0; asks < 2; asks++) {
		__u64 now_ns = twheel_now(self->w);

		twheel_start(self->w, &self->mark[1].timer, TW_HOUR);
		EXPECT_EQ(now_ns + TW_HOUR, twheel_next(self->w));
		m->does = jumps;
		m->called = 0;
		twheel_start_periodic(self->w, &m->timer, 0, 10 * TW_MS, TWHEEL_FIXED_DELAY);
		if (!setjmp(back))
			twheel_dispatch(self->w, 0);
		EXPECT_EQ(1, m->called);
		if (asks)
			EXPECT_EQ(now_ns + 10 * TW_MS, twheel_next(self->w));
		EXPECT_EQ(1, lib_step(self->w, now_ns + 10 * TW_MS));
		EXPECT_EQ(2, m->called);
		EXPECT_TRUE(twheel_stop(self->w, &m->timer));
	}
	EXPECT_TRUE(twheel_stop(self->w, &self->mark[1].timer));
}

static void takes_5_ms(struct twheel *w, struct mark *m)
{
	(void)m;
	twheel_advance(w, twheel_now(w) + 5 * TW_MS);
}

TEST_F(callbacks, next_is_that_of_a_fixed_delay_that_had_passed_and_whose_callback_took_long)
{
	const __u64 now_ns = twheel_now(self->w);
	struct mark *m = &self->mark[0];

	twheel_start(self->w, &self->mark[1].timer, TW_HOUR);
	EXPECT_EQ(now_ns + TW_HOUR, twheel_next(self->w));
	m->does = takes_5_ms;
	twheel_start_periodic(self->w, &m->timer, 0, 10 * TW_MS, TWHEEL_FIXED_DELAY);
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(now_ns + 15 * TW_MS, twheel_next(self->w));
	EXPECT_TRUE(twheel_stop(self->w, &m->timer));
	EXPECT_TRUE(twheel_stop(self->w, &self->mark[1].timer));
}

static void dispatches_and_is_jumped_over(struct twheel *w, struct mark *m)
{
	(void)w;
	twheel_dispatch(m->data, 0);
}

/* The frames of both dispatches are gone, and both wheels go on, in any order. */
TEST_F(callbacks, callback_may_leave_two_dispatches_at_once_by_longjmp)
{
	struct mark *m = self->mark;

	m[0].does = dispatches_and_is_jumped_over;
	m[0].data = self->other;
	m[1].does = jumps;
	twheel_start(self->w, &m[0].timer, TW_MS);
	twheel_start(self->w, &m[2].timer, 2 * TW_MS);
	twheel_start(self->other, &m[1].timer, TW_MS);
	twheel_start(self->other, &m[3].timer, 2 * TW_MS);
	ASSERT_EQ(0, twheel_advance(self->other, TW_SEC));
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	if (!setjmp(back))
		twheel_dispatch(self->w, 0);
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, twheel_dispatch(self->other, 0));
	twheel_close(self->w);
	self->w = NULL;
	m[3].does = closes_the_wheel;
	twheel_start(self->other, &m[3].timer, TW_MS);
	ASSERT_EQ(1, lib_step(self->other, TW_MIN));
	self->other = NULL;
	EXPECT_EQ(1, m[2].called);
	EXPECT_EQ(2, m[3].called);
}

/* ---- coroutines ----------------------------------------------------------------------- */

static ucontext_t coroutine, resumer;

static void yields(struct twheel *w, struct mark *m)
{
	(void)w;
	m->nr_others++;
	swapcontext(&coroutine, &resumer);
}

static struct twheel *its_wheel;
static int its_ret;

static void dispatches_in_a_coroutine(void)
{
	its_ret = twheel_dispatch(its_wheel, 0);
}

static void *goes_on(void *arg)
{
	(void)arg;
	swapcontext(&resumer, &coroutine);
	twheel_close(its_wheel);
	return NULL;
}

/* A plain wheel is for one thread at a time, which may be another one later. */
TEST_F(callbacks, callback_may_return_on_another_thread)
{
	struct mark *m = self->mark;
	pthread_t thread;
	void *stack = malloc(1 << 18);

	ASSERT_NE(NULL, stack);
	m[0].does = yields;
	twheel_start(self->w, &m[0].timer, TW_MS);
	twheel_start(self->w, &m[1].timer, 2 * TW_MS);
	twheel_start_every(self->w, &m[2].timer, 2 * TW_MS);
	ASSERT_EQ(0, twheel_advance(self->w, 3 * TW_MS));
	its_wheel = self->w;
	its_ret = TW_POISON;
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = 1 << 18;
	coroutine.uc_link = &resumer;
	makecontext(&coroutine, dispatches_in_a_coroutine, 0);
	swapcontext(&resumer, &coroutine);
	EXPECT_EQ(1, m[0].nr_others);
	EXPECT_EQ(TW_POISON, its_ret);
	ASSERT_EQ(0, pthread_create(&thread, NULL, goes_on, NULL));
	pthread_join(thread, NULL);
	EXPECT_EQ(3, its_ret);
	EXPECT_EQ(3, marks_called(m, 3));
	/* The other thread has closed it, and nothing of it is left in this one. */
	self->w = NULL;
	twheel_start(self->other, &m[3].timer, TW_MS);
	EXPECT_EQ(1, lib_step(self->other, TW_SEC));
	free(stack);
}

/* ---- fork() ---------------------------------------------------------------------------- */

static void forks(struct twheel *w, struct mark *m)
{
	pid_t pid = fork();
	int status;

	if (pid) {
		waitpid(pid, &status, 0);
		m->nr_others = status;
		return;
	}
	/* The child goes on with the rest of the dispatch. */
	twheel_after_fork(w);
	m->data = m;
}

TEST_F(callbacks, callback_may_fork_and_the_child_calls_the_rest_as_well)
{
	int i;

	self->mark[0].does = forks;
	self->mark[0].nr_others = -1;
	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	for (i = 1; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_MS * (2 + i));
	ASSERT_EQ(0, twheel_advance(self->w, TW_SEC));
	i = twheel_dispatch(self->w, 0);
	if (self->mark[0].data)
		_exit(i == MANY && marks_called(self->mark, MANY) == MANY ? 0 : 1);
	EXPECT_EQ(MANY, i);
	EXPECT_EQ(0, self->mark[0].nr_others);
}

TEST_HARNESS_MAIN
