// SPDX-License-Identifier: GPL-2.0
/*
 * libtwheel on clocks that go by themselves, in the loops that programs have, and across
 * fork(), with both back ends.
 */
#include "twheel_lib_test.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

struct seen {
	struct twheel_timer timer;
	clockid_t clock;
	__u64 deadline_ns;
	int called;
	int early;
};

static void on_expiry(struct twheel *w, struct twheel_timer *t, int status)
{
	struct seen *s = twheel_container_of(t, struct seen, timer);

	(void)w;
	s->called++;
	if (status || tw_now(s->clock) < s->deadline_ns)
		s->early++;
}

static void seen_init(struct seen *s, clockid_t clock)
{
	memset(s, 0, sizeof(*s));
	s->clock = clock;
	twheel_timer_init(&s->timer, on_expiry);
}

/* Until a timer has been called so often. */
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
	__u32 backend;
	__u32 clock;
	clockid_t clockid;
};

#define CLOCK_VARIANTS(name, its_clock, its_clockid)			\
	FIXTURE_VARIANT_ADD(clocks, name ## _device) {			\
		.backend = TWHEEL_DEVICE, .clock = its_clock, .clockid = its_clockid,	\
	};								\
	FIXTURE_VARIANT_ADD(clocks, name ## _local) {			\
		.backend = TWHEEL_LOCAL, .clock = its_clock, .clockid = its_clockid,	\
	}

CLOCK_VARIANTS(monotonic, TWHEEL_CLOCK_MONOTONIC, CLOCK_MONOTONIC);
CLOCK_VARIANTS(boottime, TWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME);
CLOCK_VARIANTS(realtime, TWHEEL_CLOCK_REALTIME, CLOCK_REALTIME);
CLOCK_VARIANTS(tai, TWHEEL_CLOCK_TAI, CLOCK_TAI);

FIXTURE_SETUP(clocks)
{
	LIB_SKIP_WITHOUT_BACKEND();
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

	ASSERT_EQ(0, lib_open(&w, variant->backend, variant->clock, 50 * TW_US));
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

	ASSERT_EQ(0, lib_open(&w, variant->backend, variant->clock, TW_MS));
	seen_init(&seen, variant->clockid);
	before_ns = twheel_now(w);
	tw_sleep(20 * TW_MS);
	/* Once a turn. */
	EXPECT_EQ(before_ns, twheel_now(w));
	twheel_flush(w);
	after_ns = tw_now(variant->clockid);
	twheel_start(w, &seen.timer, TW_SEC);
	EXPECT_LE(after_ns, twheel_now(w));
	EXPECT_LE(after_ns + TW_SEC, twheel_timer_deadline(w, &seen.timer));
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

	ASSERT_EQ(0, lib_open(&w, variant->backend, variant->clock, TW_MS));
	seen_init(&seen, variant->clockid);
	twheel_start(w, &seen.timer, TW_MS);
	twheel_flush(w);
	tw_sleep(20 * TW_MS);
	twheel_flush(w);
	twheel_start(w, &seen.timer, TWHEEL_TIME_NEVER);
	EXPECT_EQ(TWHEEL_TIME_NEVER, twheel_timer_deadline(w, &seen.timer));
	EXPECT_EQ(0, twheel_wait(w, 20 * TW_MS));
	twheel_flush(w);
	twheel_start(w, &seen.timer, ~0ULL);
	EXPECT_EQ(0, twheel_wait(w, 20 * TW_MS));
	EXPECT_EQ(0, seen.called);
	twheel_close(w);
}

TEST_F(clocks, advance_is_for_the_virtual_clock)
{
	struct twheel *w;

	ASSERT_EQ(0, lib_open(&w, variant->backend, variant->clock, TW_MS));
	EXPECT_EQ(-EOPNOTSUPP, twheel_advance(w, TWHEEL_TIME_NEVER));
	twheel_close(w);
}

/* ---- loops ---------------------------------------------------------------- */

FIXTURE(loops) {
	struct twheel *w;
	struct seen seen[100];
};

LIB_VARIANTS(loops);

FIXTURE_SETUP(loops)
{
	int i;

	LIB_SKIP_WITHOUT_BACKEND();
	for (i = 0; i < 100; i++)
		seen_init(&self->seen[i], CLOCK_MONOTONIC);
	ASSERT_EQ(0, lib_open(&self->w, variant->backend, TWHEEL_CLOCK_MONOTONIC, TW_MS));
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
	EXPECT_EQ(-EINTR, twheel_wait(self->w, TWHEEL_TIME_NEVER));
}

TEST_F(loops, periodic_timer_comes_again_and_again)
{
	twheel_start_every(self->w, &self->seen[0].timer, 5 * TW_MS);
	EXPECT_TRUE(wait_for(self->w, &self->seen[0], 10));
	EXPECT_TRUE(twheel_stop(self->w, &self->seen[0].timer));
}

/* ---- fork ----------------------------------------------------------------- */

TEST_F(loops, child_may_close_and_the_parent_goes_on)
{
	int i, status;
	pid_t pid;

	for (i = 0; i < 100; i++)
		twheel_start(self->w, &self->seen[i].timer, 100 * TW_MS);
	twheel_flush(self->w);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* What lies where the parent's table is must stay there. */
		size_t size = 16 << 20;
		char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		twheel_close(self->w);
		for (i = 0; i < (int)(size >> 12); i++)
			memory[(size_t)i << 12] = 1;
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	for (i = 0; i < 100; i++)
		EXPECT_TRUE(wait_for(self->w, &self->seen[i], 1));
}

TEST_F(loops, child_that_ends_does_not_disturb_the_parent)
{
	pid_t pid;

	twheel_start(self->w, &self->seen[0].timer, 50 * TW_MS);
	twheel_flush(self->w);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	EXPECT_TRUE(wait_for(self->w, &self->seen[0], 1));
}

/* ---- options -------------------------------------------------------------- */

FIXTURE(options) {
	struct twheel *w;
	struct twheel_options options;
};

LIB_VARIANTS(options);

FIXTURE_SETUP(options)
{
	LIB_SKIP_WITHOUT_BACKEND();
	self->options = (struct twheel_options){
		.size = sizeof(self->options),
		.backend = variant->backend,
	};
}

FIXTURE_TEARDOWN(options)
{
	twheel_close(self->w);
	EXPECT_NO_LEAK();
}

/* What twheel_open() says; nothing is open afterwards. */
static int try_open(const struct twheel_options *options)
{
	struct twheel *w = (struct twheel *)TW_POISON64;
	int ret = twheel_open(&w, options);

	if (ret && w)
		return TW_BROKEN;
	if (!ret)
		twheel_close(w);
	return ret;
}

TEST_F(options, outside_their_range_are_einval)
{
	struct twheel_options options = self->options;

	options.tick_ns = TWHEEL_TICK_MIN_NS - 1;
	EXPECT_EQ(-EINVAL, try_open(&options));
	options.tick_ns = TWHEEL_TICK_MAX_NS + 1;
	EXPECT_EQ(-EINVAL, try_open(&options));
	options.tick_ns = TWHEEL_TICK_MIN_NS;
	EXPECT_EQ(0, try_open(&options));
	options.tick_ns = TWHEEL_TICK_MAX_NS;
	EXPECT_EQ(0, try_open(&options));
	options.clock = CLOCK_MONOTONIC + 1;
	EXPECT_EQ(-EINVAL, try_open(&options));
	options.clock = TWHEEL_CLOCK_VIRTUAL + 1;
	EXPECT_EQ(-EINVAL, try_open(&options));
	options.clock = 0;
	options.max_timers = ~0U;
	EXPECT_EQ(-EINVAL, try_open(&options));
	options.max_timers = 0;
	options.backend = TWHEEL_LOCAL + 1;
	EXPECT_EQ(-EINVAL, try_open(&options));
}

TEST_F(options, of_a_later_library_are_e2big_where_they_are_not_zero)
{
	struct {
		struct twheel_options options;
		__u64 more[8];
	} later = { .options = self->options };

	later.options.size = sizeof(later);
	EXPECT_EQ(0, try_open(&later.options));
	later.more[7] = 1;
	EXPECT_EQ(-E2BIG, try_open(&later.options));
}

TEST_F(options, that_are_0_mean_the_defaults)
{
	struct twheel_stats stats;

	ASSERT_EQ(0, twheel_open(&self->w, &self->options));
	stats = lib_stats(self->w);
	EXPECT_EQ(TW_MS, stats.tick_ns);
	EXPECT_EQ(0, stats.slack_ns);
	EXPECT_EQ(1 << 20, stats.max_timers);
	EXPECT_EQ(TWHEEL_CLOCK_MONOTONIC, stats.clock);
	EXPECT_EQ(variant->backend, stats.backend);
	EXPECT_EQ(19, stats.grain_shift);
}

TEST_F(options, slack_counts_in_powers_of_two_less_one)
{
	static const struct { __u64 slack_ticks, in_force; } rows[] = {
		{ 0, 0 }, { 1, 1 }, { 2, 1 }, { 3, 3 }, { 6, 3 }, { 7, 7 }, { 32766, 16383 },
		{ 32767, 32767 }, { 1ULL << 40, 32767 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		self->options.slack_ns = rows[i].slack_ticks * TW_MS + TW_MS / 2;
		ASSERT_EQ(0, twheel_open(&self->w, &self->options));
		EXPECT_EQ(rows[i].in_force * TW_MS, lib_stats(self->w).slack_ns);
		twheel_close(self->w);
		self->w = NULL;
	}
}

TEST_F(options, auto_falls_back_where_there_is_no_device)
{
	self->options.device = "/dev/there/is/no/such/device";
	self->options.backend = TWHEEL_DEVICE;
	EXPECT_EQ(-ENOENT, try_open(&self->options));
	self->options.device = "/dev/null";
	EXPECT_EQ(-EOPNOTSUPP, try_open(&self->options));
	self->options.backend = TWHEEL_AUTO;
	EXPECT_EQ(0, try_open(&self->options));
	self->options.device = "/dev/there/is/no/such/device";
	ASSERT_EQ(0, twheel_open(&self->w, &self->options));
	EXPECT_EQ(TWHEEL_LOCAL, twheel_backend(self->w));
}

TEST_F(options, auto_takes_the_device_where_it_is)
{
	if (variant->backend != TWHEEL_DEVICE)
		SKIP(return, "with the device only");
	ASSERT_EQ(0, twheel_open(&self->w, NULL));
	EXPECT_EQ(TWHEEL_DEVICE, twheel_backend(self->w));
}

TEST_HARNESS_MAIN
