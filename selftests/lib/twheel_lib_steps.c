// SPDX-License-Identifier: GPL-2.0
/*
 * libtwheel while the realtime clock is set.  If it is set forwards, timers that are now due are
 * called; if backwards, none is called early or twice.  These tests need a machine that may have a
 * wrong time for a while.
 */
#include "twheel_lib_test.h"

struct seen {
	struct twheel_timer timer;
	int called;
	__u32 count;
	__u64 at_ns;
};

static void on_expiry(struct twheel *w, struct twheel_timer *t)
{
	struct seen *s = twheel_container_of(t, struct seen, timer);

	s->called++;
	s->count = twheel_periods(w);
	s->at_ns = twheel_now(w);
}

FIXTURE(steps) {
	struct twheel *w;
	struct seen near, far;
	/* CLOCK_REALTIME less CLOCK_MONOTONIC, before any step */
	__u64 offset_ns;
};

FIXTURE_VARIANT(steps) {
	__u32 clock;
};

FIXTURE_VARIANT_ADD(steps, realtime) {
	.clock = TWHEEL_REALTIME,
};

FIXTURE_VARIANT_ADD(steps, tai) {
	.clock = TWHEEL_TAI,
};

/* Set CLOCK_REALTIME; return 0 or -errno. */
static int set_realtime(__u64 now_ns)
{
	struct timespec ts = tw_to_timespec(now_ns);

	return clock_settime(CLOCK_REALTIME, &ts) ? -errno : 0;
}

static int step_realtime(__s64 by_ns)
{
	return set_realtime(tw_now(CLOCK_REALTIME) + by_ns);
}

FIXTURE_SETUP(steps)
{
	self->offset_ns = tw_now(CLOCK_REALTIME) - tw_now(CLOCK_MONOTONIC);
	/* If the machine has no battery, its clock stands at 1970: leave room for steps back. */
	ASSERT_EQ(0, set_realtime(tw_now(CLOCK_REALTIME) + 10000 * TW_DAY));
	ASSERT_EQ(0, lib_open(&self->w, variant->clock, 0, TW_MS));
	twheel_timer_init(&self->near.timer, on_expiry);
	twheel_timer_init(&self->far.timer, on_expiry);
}

/* The parent runs this even if an assertion has ended the test. */
FIXTURE_TEARDOWN_PARENT(steps)
{
	EXPECT_EQ(0, set_realtime(tw_now(CLOCK_MONOTONIC) + self->offset_ns));
}

/* Run a loop by the descriptor, which wakes up if the clock is set. */
static int turn(struct twheel *w, int timeout_ms)
{
	twheel_flush(w);
	tw_poll(twheel_fd(w), POLLIN, timeout_ms);
	return twheel_dispatch(w, 0);
}

/* Return how many callbacks there are in so long; it may wake up for nothing. */
static int calls_in(struct twheel *w, __u64 ns)
{
	__u64 until_ns = tw_now(CLOCK_MONOTONIC) + ns, now_ns;
	int ret, calls = 0;

	while ((now_ns = tw_now(CLOCK_MONOTONIC)) < until_ns) {
		ret = turn(w, (until_ns - now_ns) / TW_MS + 1);
		if (ret < 0)
			return ret;
		calls += ret;
	}
	return calls;
}

static bool comes(struct twheel *w, const struct seen *s)
{
	__u64 until_ns = tw_now(CLOCK_MONOTONIC) + TW_PATIENCE_MS * TW_MS;

	while (!s->called && tw_now(CLOCK_MONOTONIC) < until_ns)
		turn(w, 1000);
	return s->called == 1;
}

TEST_F(steps, step_forwards_calls_the_timers_that_are_due_then)
{
	twheel_start(self->w, &self->near.timer, TW_HOUR);
	twheel_start(self->w, &self->far.timer, 3 * TW_HOUR);
	ASSERT_LE(0, twheel_fd(self->w));
	twheel_flush(self->w);
	ASSERT_EQ(0, step_realtime(2 * TW_HOUR));
	EXPECT_TRUE(comes(self->w, &self->near));
	EXPECT_EQ(0, calls_in(self->w, TW_SEC / 5));
	EXPECT_EQ(0, self->far.called);
	EXPECT_TRUE(twheel_stop(self->w, &self->far.timer));
	twheel_close(self->w);
}

TEST_F(steps, step_forwards_counts_each_period)
{
	const __u64 first_ns = twheel_now(self->w) + TW_MIN;

	twheel_start_periodic(self->w, &self->near.timer, first_ns, TW_MIN, 0);
	ASSERT_LE(0, twheel_fd(self->w));
	twheel_flush(self->w);
	ASSERT_EQ(0, step_realtime(100 * TW_MIN + TW_SEC));
	EXPECT_TRUE(comes(self->w, &self->near));
	EXPECT_EQ(100, self->near.count);
	twheel_close(self->w);
}

TEST_F(steps, step_backwards_calls_nothing_early)
{
	const __u64 deadline_ns = twheel_now(self->w) + 2 * TW_SEC;

	twheel_start(self->w, &self->near.timer, 2 * TW_SEC);
	ASSERT_LE(0, twheel_fd(self->w));
	twheel_flush(self->w);
	ASSERT_EQ(0, step_realtime(-(__s64)TW_HOUR));
	EXPECT_EQ(0, calls_in(self->w, 3 * TW_SEC));
	ASSERT_EQ(0, step_realtime(TW_HOUR));
	EXPECT_TRUE(comes(self->w, &self->near));
	EXPECT_LE(deadline_ns, self->near.at_ns);
	twheel_close(self->w);
}

/* If a timer was started before, it keeps its deadline, and takes no part in this. */
TEST_F(steps, timer_started_after_a_step_backwards_comes_in_its_time)
{
	__u64 start_ns;

	twheel_start(self->w, &self->near.timer, TW_MS);
	EXPECT_TRUE(comes(self->w, &self->near));
	twheel_start(self->w, &self->far.timer, TW_DAY);
	ASSERT_LE(0, twheel_fd(self->w));
	twheel_flush(self->w);
	ASSERT_EQ(0, step_realtime(-(__s64)TW_HOUR));
	self->near.called = 0;
	start_ns = twheel_update(self->w);
	twheel_start(self->w, &self->near.timer, TW_SEC / 2);
	EXPECT_TRUE(comes(self->w, &self->near));
	EXPECT_LE(start_ns + TW_SEC / 2, self->near.at_ns);
	EXPECT_GT(start_ns + TW_MIN, self->near.at_ns);
	EXPECT_EQ(0, self->far.called);
	twheel_close(self->w);
}

TEST_F(steps, step_backwards_calls_nothing_twice)
{
	twheel_start(self->w, &self->near.timer, TW_MS);
	EXPECT_TRUE(comes(self->w, &self->near));
	ASSERT_EQ(0, step_realtime(-(__s64)(2 * TW_SEC)));
	/* Its deadline lies ahead again, and is not waited for. */
	EXPECT_EQ(0, calls_in(self->w, 3 * TW_SEC));
	EXPECT_EQ(1, self->near.called);
	EXPECT_FALSE(twheel_timer_pending(&self->near.timer));
	twheel_close(self->w);
}

TEST_HARNESS_MAIN
