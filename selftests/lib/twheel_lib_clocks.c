// SPDX-License-Identifier: GPL-2.0
/* libtwheel on real clocks, in the loops of programs, and across fork(). */
#include "twheel_lib_test.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>

struct seen {
	struct twheel_timer timer;
	clockid_t clock;
	__u64 deadline_ns;
	int called;
	int early;
};

static void on_expiry(struct twheel *w, struct twheel_timer *t)
{
	struct seen *s = twheel_container_of(t, struct seen, timer);

	(void)w;
	s->called++;
	if (tw_now(s->clock) < s->deadline_ns)
		s->early++;
}

static void seen_init(struct seen *s, clockid_t clock)
{
	memset(s, 0, sizeof(*s));
	s->clock = clock;
	twheel_timer_init(&s->timer, on_expiry);
}

/* Wait until a timer has been called so often. */
static bool wait_for(struct twheel *w, struct seen *s, int called)
{
	__u64 until_ns = tw_now(CLOCK_MONOTONIC) + TW_PATIENCE_MS * TW_MS;

	while (s->called < called && tw_now(CLOCK_MONOTONIC) < until_ns)
		twheel_wait(w, 100 * TW_MS);
	return s->called >= called;
}

/* ---- clocks --------------------------------------------------------------- */

FIXTURE(clocks) {
};

FIXTURE_VARIANT(clocks) {
	__u32 clock;
	clockid_t clockid;
};

FIXTURE_VARIANT_ADD(clocks, monotonic) {
	.clock = TWHEEL_MONOTONIC, .clockid = CLOCK_MONOTONIC,
};

FIXTURE_VARIANT_ADD(clocks, boottime) {
	.clock = TWHEEL_BOOTTIME, .clockid = CLOCK_BOOTTIME,
};

FIXTURE_VARIANT_ADD(clocks, realtime) {
	.clock = TWHEEL_REALTIME, .clockid = CLOCK_REALTIME,
};

FIXTURE_VARIANT_ADD(clocks, tai) {
	.clock = TWHEEL_TAI, .clockid = CLOCK_TAI,
};

FIXTURE_SETUP(clocks)
{
}

FIXTURE_TEARDOWN(clocks)
{
	EXPECT_NO_LEAK();
}

TEST_F(clocks, no_timer_expires_before_its_deadline)
{
	static struct seen seen[500];
	int i, round, called = 0;
	__u64 now_ns, seed = 1, until_ns;
	struct twheel *w;

	ASSERT_EQ(0, lib_open(&w, variant->clock, 0, 50 * TW_US));
	for (i = 0; i < 500; i++)
		seen_init(&seen[i], variant->clockid);
	for (round = 0; round < 4; round++) {
		for (i = 0; i < 500; i++) {
			__u64 delay_ns = tw_random(&seed) % (50 * TW_MS);

			now_ns = twheel_now(w);
			EXPECT_LE(now_ns, tw_now(variant->clockid));
			twheel_start(w, &seen[i].timer, delay_ns);
			seen[i].deadline_ns = now_ns + delay_ns;
			if (i % 3 == 0) {
				seen[i].deadline_ns += 10 * TW_MS;
				twheel_start_at(w, &seen[i].timer, seen[i].deadline_ns);
			}
		}
		twheel_flush(w);
	}
	until_ns = tw_now(CLOCK_MONOTONIC) + TW_PATIENCE_MS * TW_MS;
	while (called < 500 && tw_now(CLOCK_MONOTONIC) < until_ns) {
		int ret = twheel_wait(w, TW_SEC);

		ASSERT_LE(0, ret);
		called += ret;
	}
	for (i = 0; i < 500; i++) {
		ASSERT_EQ(1, seen[i].called);
		ASSERT_EQ(0, seen[i].early);
	}
	twheel_close(w);
}

TEST_F(clocks, first_start_after_a_flush_reads_the_clock)
{
	__u64 before_ns, after_ns;
	struct seen seen;
	struct twheel *w;

	ASSERT_EQ(0, lib_open(&w, variant->clock, 0, TW_MS));
	seen_init(&seen, variant->clockid);
	before_ns = twheel_now(w);
	tw_sleep(20 * TW_MS);
	/* The clock is read once a turn. */
	EXPECT_EQ(before_ns, twheel_now(w));
	twheel_flush(w);
	after_ns = tw_now(variant->clockid);
	twheel_start(w, &seen.timer, TW_SEC);
	EXPECT_LE(after_ns, twheel_now(w));
	EXPECT_LE(after_ns + TW_SEC, twheel_timer_deadline(&seen.timer));
	before_ns = twheel_now(w);
	tw_sleep(2 * TW_MS);
	EXPECT_LT(before_ns, twheel_update(w));
	twheel_close(w);
}

/* The mark of a time that has to be read is in the sum that begins a start. */
TEST_F(clocks, restart_to_never_in_a_new_turn_is_never)
{
	struct seen seen;
	struct twheel *w;

	ASSERT_EQ(0, lib_open(&w, variant->clock, 0, TW_MS));
	seen_init(&seen, variant->clockid);
	twheel_start(w, &seen.timer, TW_MS);
	twheel_flush(w);
	tw_sleep(20 * TW_MS);
	twheel_flush(w);
	twheel_start(w, &seen.timer, TWHEEL_NEVER);
	EXPECT_EQ(TWHEEL_NEVER, twheel_timer_deadline(&seen.timer));
	EXPECT_EQ(0, twheel_wait(w, 20 * TW_MS));
	twheel_flush(w);
	twheel_start(w, &seen.timer, 1ULL << 63);
	EXPECT_EQ(0, twheel_wait(w, 20 * TW_MS));
	EXPECT_EQ(0, seen.called);
	twheel_close(w);
}

TEST_F(clocks, advance_is_for_the_callers_clock)
{
	struct twheel *w;

	ASSERT_EQ(0, lib_open(&w, variant->clock, 0, TW_MS));
	EXPECT_EQ(-EOPNOTSUPP, twheel_advance(w, TWHEEL_NEVER));
	twheel_close(w);
}

/* ---- loops ---------------------------------------------------------------- */

FIXTURE(loops) {
	struct twheel *w;
	struct seen seen[100];
};

FIXTURE_SETUP(loops)
{
	int i;

	for (i = 0; i < 100; i++)
		seen_init(&self->seen[i], CLOCK_MONOTONIC);
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, 0, TW_MS));
}

FIXTURE_TEARDOWN(loops)
{
	twheel_close(self->w);
	EXPECT_NO_LEAK();
}

static void drive_epoll(struct __test_metadata *_metadata, struct twheel *w, struct seen *seen,
			__u32 events)
{
	struct epoll_event event = { .events = events };
	int i, epfd = epoll_create1(EPOLL_CLOEXEC), called = 0;

	ASSERT_LE(0, epfd);
	ASSERT_EQ(0, epoll_ctl(epfd, EPOLL_CTL_ADD, twheel_fd(w), &event));
	for (i = 0; i < 100; i++)
		twheel_start(w, &seen[i].timer, i % 10 * TW_MS);
	while (called < 100) {
		twheel_flush(w);
		ASSERT_EQ(1, epoll_wait(epfd, &event, 1, TW_PATIENCE_MS));
		i = twheel_dispatch(w, 0);
		ASSERT_LE(0, i);
		called += i;
	}
	for (i = 0; i < 100; i++)
		EXPECT_EQ(1, seen[i].called);
	twheel_flush(w);
	EXPECT_EQ(0, epoll_wait(epfd, &event, 1, 50));
	close(epfd);
}

TEST_F(loops, level_triggered_epoll_misses_nothing)
{
	drive_epoll(_metadata, self->w, self->seen, EPOLLIN);
}

TEST_F(loops, edge_triggered_epoll_misses_nothing)
{
	drive_epoll(_metadata, self->w, self->seen, EPOLLIN | EPOLLET);
}

TEST_F(loops, nothing_due_wakes_nobody)
{
	twheel_start(self->w, &self->seen[0].timer, TW_HOUR);
	twheel_flush(self->w);
	EXPECT_EQ(0, tw_poll(twheel_fd(self->w), POLLIN, 100));
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(0, tw_poll(twheel_fd(self->w), POLLIN, 100));
}

TEST_F(loops, wait_ends_when_time_is_up)
{
	__u64 before_ns = tw_now(CLOCK_MONOTONIC);

	EXPECT_EQ(0, twheel_wait(self->w, 20 * TW_MS));
	EXPECT_LE(before_ns + 20 * TW_MS, tw_now(CLOCK_MONOTONIC));
	EXPECT_EQ(0, twheel_wait(self->w, 0));
}

static void on_alarm(int signal)
{
	(void)signal;
}

TEST_F(loops, wait_is_interrupted_by_a_signal)
{
	const struct sigaction action = { .sa_handler = on_alarm };
	const struct itimerval soon = { .it_value.tv_usec = 50000 };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	EXPECT_EQ(-EINTR, twheel_wait(self->w, TWHEEL_NEVER));
}

TEST_F(loops, periodic_timer_comes_again_and_again)
{
	twheel_start_every(self->w, &self->seen[0].timer, 5 * TW_MS);
	EXPECT_TRUE(wait_for(self->w, &self->seen[0], 10));
	EXPECT_TRUE(twheel_stop(self->w, &self->seen[0].timer));
}

/* ---- fork ----------------------------------------------------------------- */

static int child_uses(struct twheel *w, struct seen *seen)
{
	int i;

	for (i = 0; i < 100; i += 2)
		if (!twheel_stop(w, &seen[i].timer))
			return 1;
	twheel_start(w, &seen[0].timer, 10 * TW_MS);
	for (i = 0; i < 100; i++)
		if ((i == 0 || i % 2) && !wait_for(w, &seen[i], 1))
			return 2;
	if (twheel_next(w) != TWHEEL_NEVER)
		return 3;
	twheel_close(w);
	return 0;
}

TEST_F(loops, child_may_use_a_plain_wheel_without_a_descriptor)
{
	int i, status;
	pid_t pid;

	for (i = 0; i < 100; i++)
		twheel_start(self->w, &self->seen[i].timer, 100 * TW_MS);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(child_uses(self->w, self->seen));
	for (i = 0; i < 100; i++)
		EXPECT_TRUE(wait_for(self->w, &self->seen[i], 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(loops, child_may_close_and_the_parent_goes_on)
{
	int i, status;
	pid_t pid;

	ASSERT_LE(0, twheel_fd(self->w));
	for (i = 0; i < 100; i++)
		twheel_start(self->w, &self->seen[i].timer, 100 * TW_MS);
	twheel_flush(self->w);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		twheel_close(self->w);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(POLLIN, tw_poll(twheel_fd(self->w), POLLIN, TW_PATIENCE_MS));
	for (i = 0; i < 100; i++)
		EXPECT_TRUE(wait_for(self->w, &self->seen[i], 1));
}

/*
 * Run a loop by the descriptor in the child; return 0 if all timers were called once, and in time.
 */
static int child_goes_on(struct twheel *w, struct seen *seen, int old_fd)
{
	int i, fd;

	twheel_after_fork(w);
	if (fcntl(old_fd, F_GETFD) >= 0)
		return 1;
	fd = twheel_fd(w);
	if (fd < 0)
		return 2;
	/* The descriptor is not the parent's, which is not disturbed. */
	twheel_start(w, &seen[0].timer, 5 * TW_MS);
	twheel_flush(w);
	if (tw_poll(fd, POLLIN, TW_PATIENCE_MS) != POLLIN || twheel_dispatch(w, 0) < 1)
		return 3;
	for (i = 0; i < 100; i++)
		if (!wait_for(w, &seen[i], 1) || seen[i].called != 1 || seen[i].early)
			return 4;
	twheel_close(w);
	return 0;
}

TEST_F(loops, child_goes_on_with_all_timers_after_after_fork)
{
	int i, status, old_fd = twheel_fd(self->w);
	pid_t pid;

	for (i = 0; i < 100; i++)
		twheel_start(self->w, &self->seen[i].timer, 400 * TW_MS);
	twheel_flush(self->w);
	lib_stats(self->w);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(child_goes_on(self->w, self->seen, old_fd));
	EXPECT_EQ(0, tw_poll(old_fd, POLLIN, 30));
	EXPECT_EQ(POLLIN, tw_poll(old_fd, POLLIN, TW_PATIENCE_MS));
	for (i = 0; i < 100; i++)
		EXPECT_TRUE(wait_for(self->w, &self->seen[i], 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(loops, child_that_ends_does_not_disturb_the_parent)
{
	pid_t pid;

	ASSERT_LE(0, twheel_fd(self->w));
	twheel_start(self->w, &self->seen[0].timer, 50 * TW_MS);
	twheel_flush(self->w);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	EXPECT_TRUE(wait_for(self->w, &self->seen[0], 1));
}

/* If a program is executed, it has none of its descriptors. */
TEST_F(loops, exec_closes_the_descriptor)
{
	char command[64];

	snprintf(command, sizeof(command), "[ ! -e /proc/self/fd/%d ]", twheel_fd(self->w));
	EXPECT_EQ(0, system(command));
}

/* ---- by time ---------------------------------------------------------------- */

TEST_F(loops, time_that_next_says_is_when_to_wake_up)
{
	int i, turns = 0, called = 0;

	for (i = 0; i < 20; i++)
		twheel_start(self->w, &self->seen[i].timer, (1 + i) * 3 * TW_MS);
	while (called < 20) {
		__u64 ns = twheel_next(self->w);

		ASSERT_NE(TWHEEL_NEVER, ns);
		tw_sleep_until(ns);
		i = twheel_dispatch(self->w, 0);
		ASSERT_LE(0, i);
		called += i;
		turns++;
	}
	EXPECT_GE(20, turns);
	EXPECT_EQ(0, lib_stats(self->w).vain);
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
}

TEST_F(loops, wait_without_a_timer_ends_when_time_is_up_also_on_the_callers_clock)
{
	__u64 before_ns = tw_now(CLOCK_MONOTONIC);
	struct twheel *w;

	ASSERT_EQ(0, lib_open(&w, TWHEEL_CALLER, 0, TW_MS));
	twheel_start(w, &self->seen[0].timer, TW_SEC);
	EXPECT_EQ(0, twheel_wait(w, 20 * TW_MS));
	EXPECT_LE(before_ns + 20 * TW_MS, tw_now(CLOCK_MONOTONIC));
	ASSERT_EQ(0, twheel_advance(w, TW_SEC));
	self->seen[0].deadline_ns = 0;
	EXPECT_EQ(1, twheel_wait(w, TWHEEL_NEVER));
	twheel_close(w);
}

static void naps(struct twheel *w, struct twheel_timer *t)
{
	(void)w;
	(void)t;
	tw_sleep(60 * TW_MS);
}

static void notes_the_time(struct twheel *w, struct mark *m)
{
	__u64 *at_ns = m->data;

	(void)w;
	at_ns[m->called - 1] = tw_now(CLOCK_MONOTONIC);
	m->does = m->called < 2 ? m->does : NULL;
}

/* If a neighbour is slow in the same dispatch, that shortens no pause. */
TEST_F(loops, pause_of_a_fixed_delay_is_as_long_as_asked_for_beside_a_slow_callback)
{
	struct mark fixed;
	__u64 at_ns[2];

	mark_init(&fixed);
	fixed.does = notes_the_time;
	fixed.data = at_ns;
	twheel_timer_init(&self->seen[0].timer, naps);
	twheel_start(self->w, &self->seen[0].timer, 2 * TW_MS);
	twheel_start_periodic(self->w, &fixed.timer, twheel_now(self->w) + 6 * TW_MS, 50 * TW_MS,
			      TWHEEL_FIXED_DELAY);
	twheel_next(self->w);
	tw_sleep(12 * TW_MS);
	ASSERT_EQ(2, twheel_dispatch(self->w, 0));
	while (fixed.called < 2)
		ASSERT_LE(0, twheel_wait(self->w, TW_SEC));
	EXPECT_LE(at_ns[0] + 50 * TW_MS, at_ns[1]);
	EXPECT_TRUE(twheel_stop(self->w, &fixed.timer));
}

TEST_HARNESS_MAIN
