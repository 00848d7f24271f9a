// SPDX-License-Identifier: GPL-2.0
/*
 * The descriptor of libtwheel, with its system calls counted and refused, and clocks that jump:
 * when it is made and set, which loop it wakes, and its behaviour if a clock goes back.
 */
#include "twheel_lib_test.h"
#include "lib_calls.h"

#include <sys/mman.h>
#include <sys/resource.h>

#define MANY	100
/* If a slot has more timers than this, the first one is not searched for. */
#define FEW	32

FIXTURE(descriptor) {
	struct twheel *w;
	struct mark mark[MANY];
};

FIXTURE_SETUP(descriptor)
{
	int i;

	for (i = 0; i < MANY; i++)
		mark_init(&self->mark[i]);
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, 0, TW_MS));
	lib_watch();
}

FIXTURE_TEARDOWN(descriptor)
{
	lib_calls.refuse = NULL;
	twheel_close(self->w);
	EXPECT_NO_LEAK();
}

static int readable(struct twheel *w, int timeout_ms)
{
	return tw_poll(twheel_fd(w), POLLIN, timeout_ms);
}

/* ---- when it is made, and set ------------------------------------------------- */

TEST_F(descriptor, descriptor_is_made_when_it_is_asked_for_first)
{
	int fd;

	twheel_start(self->w, &self->mark[0].timer, TW_MS);
	twheel_next(self->w);
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_EQ(1, twheel_wait(self->w, TW_SEC));
	EXPECT_EQ(0, lib_calls.settings);
	fd = twheel_fd(self->w);
	ASSERT_LT(2, fd);
	EXPECT_EQ(fd, twheel_fd(self->w));
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	twheel_close(self->w);
	EXPECT_EQ(-1, fcntl(fd, F_GETFD));
	self->w = NULL;
}

/* The first timer had been started before. */
TEST_F(descriptor, descriptor_is_set_for_the_first_timer_when_it_is_made)
{
	twheel_start(self->w, &self->mark[0].timer, 5 * TW_MS);
	EXPECT_EQ(POLLIN, readable(self->w, TW_PATIENCE_MS));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
}

TEST_F(descriptor, descriptor_is_set_if_the_first_deadline_becomes_earlier_and_not_otherwise)
{
	int i;

	ASSERT_LE(0, twheel_fd(self->w));
	twheel_start(self->w, &self->mark[0].timer, TW_HOUR);
	EXPECT_EQ(0, twheel_flush(self->w));
	lib_watch();
	for (i = 1; i < FEW; i++) {
		twheel_start(self->w, &self->mark[i].timer, TW_HOUR + i * TW_SEC);
		twheel_start(self->w, &self->mark[0].timer, TW_HOUR + i * TW_SEC);
		EXPECT_EQ(0, twheel_flush(self->w));
	}
	EXPECT_EQ(0, lib_calls.system);
	twheel_start(self->w, &self->mark[50].timer, TW_MIN);
	EXPECT_EQ(0, lib_calls.system);
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_EQ(1, lib_calls.settings);
	EXPECT_EQ(1, lib_calls.system);
}

/* They have to be sorted before the first of them is due.  All are in one slot of 2^40 ns. */
TEST_F(descriptor, descriptor_is_set_once_more_if_a_slot_gets_more_than_32_timers)
{
	struct twheel *w;
	int i;

	ASSERT_EQ(0, lib_open(&w, TWHEEL_CALLER, 0, TW_MS));
	ASSERT_LE(0, twheel_fd(w));
	for (i = 0; i < FEW; i++)
		twheel_start(w, &self->mark[i].timer, TW_HOUR + i * TW_SEC);
	EXPECT_EQ(0, twheel_flush(w));
	lib_watch();
	for (; i < MANY; i++) {
		twheel_start(w, &self->mark[i].timer, TW_HOUR + i * TW_SEC);
		EXPECT_EQ(0, twheel_flush(w));
	}
	EXPECT_EQ(1, lib_calls.settings);
	EXPECT_EQ(1, lib_calls.system);
	twheel_close(w);
}

TEST_F(descriptor, dispatch_with_nothing_due_sets_nothing)
{
	ASSERT_LE(0, twheel_fd(self->w));
	twheel_start(self->w, &self->mark[0].timer, TW_HOUR);
	EXPECT_EQ(0, twheel_flush(self->w));
	lib_watch();
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(0, lib_calls.system);
	EXPECT_EQ(0, lib_stats(self->w).dispatches);
}

TEST_F(descriptor, descriptor_wakes_nobody_after_the_last_stop)
{
	int i;

	ASSERT_LE(0, twheel_fd(self->w));
	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, 20 * TW_MS);
	EXPECT_EQ(0, twheel_flush(self->w));
	for (i = 0; i < MANY; i++)
		twheel_stop(self->w, &self->mark[i].timer);
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_EQ(0, readable(self->w, 100));
	lib_watch();
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_EQ(0, lib_calls.system);
}

/* Each waits for 50 ms, and is stopped within 10. */
TEST_F(descriptor, starts_and_stops_within_a_loop_wake_nobody)
{
	int i, is_readable;

	ASSERT_LE(0, twheel_fd(self->w));
	for (i = 0; i < 30; i++) {
		struct mark *m = &self->mark[i];

		twheel_start(self->w, &m->timer, 50 * TW_MS);
		EXPECT_EQ(0, twheel_flush(self->w));
		is_readable = readable(self->w, 5);
		/* If it has passed, the machine was too slow for this check. */
		if (tw_now(CLOCK_MONOTONIC) < twheel_timer_deadline(&m->timer))
			EXPECT_EQ(0, is_readable);
		EXPECT_TRUE(twheel_stop(self->w, &m->timer));
		EXPECT_EQ(0, twheel_flush(self->w));
		EXPECT_EQ(0, readable(self->w, 5));
	}
}

TEST_F(descriptor, loop_that_never_flushes_gets_what_is_due_by_dispatch)
{
	ASSERT_LE(0, twheel_fd(self->w));
	twheel_start(self->w, &self->mark[0].timer, 2 * TW_MS);
	tw_sleep(5 * TW_MS);
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
}

TEST_F(descriptor, descriptor_stays_readable_while_something_is_left)
{
	int i;

	ASSERT_LE(0, twheel_fd(self->w));
	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_MS);
	EXPECT_EQ(0, twheel_flush(self->w));
	for (i = 0; i < MANY; i += 20) {
		ASSERT_EQ(POLLIN, readable(self->w, TW_PATIENCE_MS));
		ASSERT_EQ(20, twheel_dispatch(self->w, 20));
		ASSERT_EQ(0, twheel_flush(self->w));
	}
	EXPECT_EQ(0, readable(self->w, 20));
}

TEST_F(descriptor, descriptor_of_the_callers_clock_is_readable_if_something_is_due)
{
	struct twheel *w;

	ASSERT_EQ(0, lib_open(&w, TWHEEL_CALLER, 0, TW_MS));
	ASSERT_LE(0, twheel_fd(w));
	twheel_start(w, &self->mark[0].timer, TW_SEC);
	EXPECT_EQ(0, twheel_flush(w));
	EXPECT_EQ(0, readable(w, 0));
	ASSERT_EQ(0, twheel_advance(w, TW_SEC - 1));
	EXPECT_EQ(0, readable(w, 20));
	ASSERT_EQ(0, twheel_advance(w, TW_SEC));
	EXPECT_EQ(POLLIN, readable(w, TW_PATIENCE_MS));
	EXPECT_EQ(1, twheel_dispatch(w, 0));
	EXPECT_EQ(0, twheel_flush(w));
	EXPECT_EQ(0, readable(w, 0));
	twheel_close(w);
}

TEST_F(descriptor, immediate_wheel_needs_no_flush_and_no_turn)
{
	struct twheel *w;
	__u64 before_ns;

	ASSERT_EQ(0, lib_open(&w, TWHEEL_MONOTONIC, TWHEEL_IMMEDIATE, TW_MS));
	ASSERT_LE(0, twheel_fd(w));
	twheel_start(w, &self->mark[0].timer, TW_HOUR);
	before_ns = twheel_now(w);
	tw_sleep(2 * TW_MS);
	EXPECT_LE(before_ns + 2 * TW_MS, twheel_now(w));
	twheel_start(w, &self->mark[1].timer, 5 * TW_MS);
	EXPECT_LE(before_ns + 7 * TW_MS, twheel_timer_deadline(&self->mark[1].timer));
	EXPECT_EQ(POLLIN, readable(w, TW_PATIENCE_MS));
	EXPECT_EQ(1, twheel_dispatch(w, 0));
	EXPECT_EQ(0, readable(w, 20));
	twheel_start_at(w, &self->mark[1].timer, twheel_now(w) + 5 * TW_MS);
	twheel_start_every(w, &self->mark[0].timer, 5 * TW_MS);
	EXPECT_EQ(POLLIN, readable(w, TW_PATIENCE_MS));
	twheel_close(w);
}

/* ---- when it fails ------------------------------------------------------------- */

TEST_F(descriptor, fd_says_why_it_cannot_make_a_descriptor_and_can_be_called_again)
{
	lib_calls.refuse = "timerfd_create";
	EXPECT_EQ(-EMFILE, twheel_fd(self->w));
	lib_calls.refuse = NULL;
	EXPECT_LE(0, twheel_fd(self->w));
}

TEST_F(descriptor, flush_says_that_the_descriptor_cannot_be_set)
{
	twheel_start(self->w, &self->mark[0].timer, TW_HOUR);
	ASSERT_LE(0, twheel_fd(self->w));
	lib_calls.refuse = "timerfd_settime";
	twheel_start(self->w, &self->mark[1].timer, TW_SEC);
	EXPECT_EQ(-EINVAL, twheel_flush(self->w));
	lib_calls.refuse = NULL;
}

TEST_F(descriptor, flush_says_that_the_descriptor_is_something_else)
{
	int fd = twheel_fd(self->w), null = open("/dev/null", O_RDWR | O_CLOEXEC);

	ASSERT_LE(0, fd);
	ASSERT_EQ(fd, dup2(null, fd));
	twheel_start(self->w, &self->mark[0].timer, 0);
	EXPECT_EQ(-EINVAL, twheel_flush(self->w));
	close(fd);
	EXPECT_EQ(-EBADF, twheel_flush(self->w));
	/* Timers do not need the descriptor. */
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	/* Give the number back, or close() would close a number that nobody has. */
	ASSERT_EQ(fd, dup2(null, fd));
	close(null);
}

TEST_F(descriptor, open_without_memory_is_enomem_and_no_wheel)
{
	struct twheel *w = (void *)self;

	lib_calls.refuse = "calloc";
	EXPECT_EQ(-ENOMEM, lib_open(&w, 0, 0, 0));
	EXPECT_EQ(NULL, w);
}

/* A daemon closes 0 to 2, opens its wheel, and points them to /dev/null after that. */
TEST_F(descriptor, descriptor_is_above_2_even_if_0_to_2_are_free)
{
	int in = dup(0), out = dup(1), err = dup(2), fd;

	close(0);
	close(1);
	close(2);
	fd = twheel_fd(self->w);
	dup2(in, 0);
	dup2(out, 1);
	dup2(err, 2);
	EXPECT_LT(2, fd);
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	twheel_start(self->w, &self->mark[0].timer, 5 * TW_MS);
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_EQ(POLLIN, readable(self->w, TW_PATIENCE_MS));
}

/* ---- clocks that jump -------------------------------------------------------------- */

/* Run a loop by the descriptor for this long; return how many turns it took. */
static int turns_in(struct twheel *w, __u64 ns)
{
	__u64 until_ns = tw_now(CLOCK_MONOTONIC) + ns, now_ns;
	int turns = 0;

	while ((now_ns = tw_now(CLOCK_MONOTONIC)) < until_ns) {
		twheel_flush(w);
		readable(w, (until_ns - now_ns) / TW_MS + 1);
		twheel_dispatch(w, 0);
		turns++;
	}
	return turns;
}

TEST_F(descriptor, monotonic_clock_that_goes_back_neither_spins_nor_fires_early)
{
	struct mark *old = &self->mark[0], *m = &self->mark[1];
	/* If the machine has just booted, do not go below 0. */
	__s64 back_ns = tw_now(CLOCK_MONOTONIC) / 2;
	__u64 start_ns;

	twheel_start(self->w, &self->mark[2].timer, TW_MS);
	EXPECT_GT(20, turns_in(self->w, 20 * TW_MS));
	twheel_start(self->w, &old->timer, TW_SEC);
	twheel_flush(self->w);
	lib_jump(CLOCK_MONOTONIC, -back_ns);
	start_ns = tw_now(CLOCK_MONOTONIC);
	twheel_start(self->w, &m->timer, 200 * TW_MS);
	EXPECT_GT(20, turns_in(self->w, 250 * TW_MS));
	EXPECT_EQ(1, m->called);
	EXPECT_LE(start_ns + 200 * TW_MS, m->at_ns);
	/* The other timer is as far away now as the clock went back. */
	EXPECT_EQ(0, old->called);
	EXPECT_LT(start_ns + back_ns, twheel_timer_deadline(&old->timer));
	lib_jump(CLOCK_MONOTONIC, back_ns);
	turns_in(self->w, TW_SEC);
	EXPECT_EQ(1, old->called);
}

/* If the loop is by time, twheel_next() is in the future, and at most a tick from the deadline. */
TEST_F(descriptor, next_is_right_after_the_clock_went_back)
{
	int i;

	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, (1 + i) * TW_MIN);
	twheel_next(self->w);
	lib_jump(CLOCK_MONOTONIC, 30 * TW_MIN);
	EXPECT_LE(29, twheel_dispatch(self->w, 0));
	lib_jump(CLOCK_MONOTONIC, -29 * (__s64)TW_MIN);
	twheel_next(self->w);
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_LE(twheel_now(self->w), twheel_next(self->w));
	for (i = 0; i < MANY; i++)
		if (twheel_timer_pending(&self->mark[i].timer))
			break;
	EXPECT_GE(2 * TW_MS, twheel_next(self->w) - twheel_timer_deadline(&self->mark[i].timer));
}

TEST_F(descriptor, timers_due_and_not_yet_called_are_not_called_early_after_the_clock_went_back)
{
	int i;

	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_MIN + i * TW_MS);
	twheel_next(self->w);
	lib_jump(CLOCK_MONOTONIC, 2 * TW_MIN);
	EXPECT_EQ(3, twheel_dispatch(self->w, 3));
	lib_jump(CLOCK_MONOTONIC, -2 * (__s64)TW_MIN);
	twheel_next(self->w);
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_LT(tw_now(CLOCK_MONOTONIC), twheel_next(self->w));
	/* If a dispatch has something to do, it does not end that, either. */
	twheel_start(self->w, &self->mark[0].timer, 0);
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	lib_jump(CLOCK_MONOTONIC, 2 * TW_MIN);
	EXPECT_EQ(MANY - 3, twheel_dispatch(self->w, 0));
}

TEST_F(descriptor, realtime_clock_set_forward_wakes_the_loop)
{
	struct twheel *w;

	ASSERT_EQ(0, lib_open(&w, TWHEEL_REALTIME, 0, TW_MS));
	ASSERT_LE(0, twheel_fd(w));
	twheel_start(w, &self->mark[0].timer, TW_HOUR);
	EXPECT_EQ(0, twheel_flush(w));
	EXPECT_EQ(0, readable(w, 10));
	lib_jump(CLOCK_REALTIME, 2 * TW_HOUR);
	EXPECT_EQ(POLLIN, readable(w, TW_PATIENCE_MS));
	EXPECT_EQ(1, twheel_dispatch(w, 0));
	EXPECT_EQ(0, twheel_flush(w));
	EXPECT_EQ(0, readable(w, 10));
	twheel_close(w);
}

/* ---- how often the clock is read ---------------------------------------------------- */

TEST_F(descriptor, clock_is_read_once_in_a_turn)
{
	int i;

	twheel_next(self->w);
	lib_watch();
	for (i = 0; i < MANY; i++) {
		twheel_start(self->w, &self->mark[i].timer, TW_SEC + i);
		twheel_start_every(self->w, &self->mark[i].timer, TW_SEC + i);
	}
	twheel_now(self->w);
	EXPECT_EQ(1, lib_calls.clock);
	twheel_next(self->w);
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_SEC + i);
	EXPECT_EQ(2, lib_calls.clock);
	twheel_update(self->w);
	EXPECT_EQ(3, lib_calls.clock);
	twheel_flush(self->w);
	twheel_start(self->w, &self->mark[0].timer, TW_SEC);
	EXPECT_EQ(4, lib_calls.clock);
}

/* Try each kind of wheel that has no turns. */
static const __u32 without_turns[] = { TWHEEL_SHARED, TWHEEL_IMMEDIATE };

TEST_F(descriptor, start_by_a_deadline_in_a_wheel_without_turns_reads_no_clock)
{
	struct twheel *w;
	__u64 now_ns;
	int i, j;

	for (j = 0; j < 2; j++) {
		ASSERT_EQ(0, lib_open(&w, TWHEEL_MONOTONIC, without_turns[j], TW_MS));
		now_ns = twheel_now(w);
		lib_watch();
		for (i = 0; i < MANY; i++)
			twheel_start_at(w, &self->mark[i].timer, now_ns + TW_HOUR + i);
		EXPECT_EQ(0, lib_calls.clock);
		twheel_start(w, &self->mark[0].timer, TW_HOUR);
		EXPECT_EQ(1, lib_calls.clock);
		/* The deadline has passed since, and so have all edges of its tick. */
		twheel_start_at(w, &self->mark[1].timer, now_ns + 1);
		tw_sleep(3 * TW_MS);
		EXPECT_EQ(1, twheel_dispatch(w, 0));
		EXPECT_EQ(1, self->mark[1].called);
		self->mark[1].called = 0;
		twheel_close(w);
	}
}

TEST_F(descriptor, deadline_that_the_clock_had_passed_before_it_was_set_back_is_not_early)
{
	struct twheel *w;
	__u64 now_ns;
	int j;

	for (j = 0; j < 2; j++) {
		ASSERT_EQ(0, lib_open(&w, TWHEEL_REALTIME, without_turns[j], TW_MS));
		now_ns = twheel_now(w);
		lib_jump(CLOCK_REALTIME, -TW_HOUR);
		twheel_start_at(w, &self->mark[0].timer, now_ns - TW_MIN);
		EXPECT_EQ(0, twheel_dispatch(w, 0));
		lib_jump(CLOCK_REALTIME, TW_HOUR);
		EXPECT_EQ(1, twheel_dispatch(w, 0));
		now_ns = twheel_now(w);
		lib_jump(CLOCK_REALTIME, -TW_HOUR);
		twheel_start(w, &self->mark[0].timer, TW_MIN);
		EXPECT_GT(now_ns, twheel_timer_deadline(&self->mark[0].timer));
		EXPECT_EQ(0, twheel_dispatch(w, 0));
		lib_jump(CLOCK_REALTIME, TW_HOUR);
		EXPECT_EQ(1, twheel_dispatch(w, 0));
		twheel_close(w);
	}
}

TEST_F(descriptor, start_by_no_delay_in_a_wheel_without_turns_waits_for_no_edge)
{
	struct twheel *w;
	int j;

	for (j = 0; j < 2; j++) {
		ASSERT_EQ(0, lib_open(&w, TWHEEL_MONOTONIC, without_turns[j], TW_HOUR));
		twheel_start(w, &self->mark[0].timer, 0);
		EXPECT_EQ(1, twheel_dispatch(w, 0));
		twheel_close(w);
	}
}

TEST_F(descriptor, callbacks_of_one_shots_read_no_clock)
{
	int i;

	for (i = 0; i < MANY; i++)
		twheel_start(self->w, &self->mark[i].timer, TW_MS);
	twheel_next(self->w);
	tw_sleep(3 * TW_MS);
	lib_watch();
	EXPECT_EQ(MANY, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, lib_calls.clock);
	EXPECT_EQ(0, lib_calls.system);
}

TEST_F(descriptor, each_call_of_a_periodic_timer_reads_the_clock_and_now_stays)
{
	__u64 now_ns;
	int i;

	for (i = 0; i < MANY; i++)
		twheel_start_every(self->w, &self->mark[i].timer, TW_MS);
	twheel_next(self->w);
	tw_sleep(3 * TW_MS);
	lib_watch();
	EXPECT_EQ(MANY, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1 + MANY, lib_calls.clock);
	now_ns = twheel_now(self->w);
	for (i = 0; i < MANY; i++)
		EXPECT_EQ(now_ns, self->mark[i].at_ns);
}

TEST_F(descriptor, now_is_new_after_each_callback_of_a_fixed_delay)
{
	__u64 now_ns;

	now_ns = twheel_now(self->w);
	twheel_start_periodic(self->w, &self->mark[0].timer, now_ns, TW_MS, TWHEEL_FIXED_DELAY);
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_LT(self->mark[0].at_ns, twheel_now(self->w));
}

/* If a call succeeds, errno has no meaning. */
TEST_F(descriptor, dispatch_that_succeeds_may_change_errno)
{
	struct twheel *w;

	ASSERT_EQ(0, lib_open(&w, TWHEEL_REALTIME, 0, TW_MS));
	ASSERT_LE(0, twheel_fd(w));
	errno = 0;
	EXPECT_EQ(0, twheel_dispatch(w, 0));
	EXPECT_EQ(EAGAIN, errno);
	twheel_close(w);
}

TEST_HARNESS_MAIN
