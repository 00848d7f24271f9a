// SPDX-License-Identifier: GPL-2.0
/*
 * Silence (G6): with a million timeouts an hour ahead, the module's threads are not woken once and
 * its hrtimers do not expire once.  One timeout does expire, which shows that the measurement
 * works. TW_IDLE_SECONDS (10) says how long it listens, TW_MILLION how many timeouts there are.
 */
#include "twheel_outside.h"

#define VECTOR		512

static __u64 listen_ns(void)
{
	return tw_setting("TW_IDLE_SECONDS", 10) * TW_SEC;
}

/* ---- a million ----------------------------------------------------------- */

FIXTURE(idle) {
	int fd;
};

/* Arm timeouts over an hour, from an hour on. */
static void arm_all(struct __test_metadata *_metadata, int fd, __u32 nr)
{
	static struct twheel_arm arms[VECTOR];
	__u64 seed = 1;
	__u32 i, j, n;

	for (i = 0; i < nr; i += n) {
		n = nr - i < VECTOR ? nr - i : VECTOR;
		for (j = 0; j < n; j++)
			arms[j] = (struct twheel_arm){
				.expires_ns = TW_HOUR + tw_random(&seed) * TW_US % TW_HOUR,
			};
		ASSERT_EQ(n, tw_arm_vec(fd, arms, n));
	}
}

FIXTURE_SETUP(idle)
{
	__u32 nr = tw_setting("TW_MILLION", 1000000);

	self->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_MONOTONIC, TW_MS, nr));
	arm_all(_metadata, self->fd, nr);
	/* Sorting in the timeouts is no tick: wait until the thread is done. */
	ASSERT_EQ(0, tw_wait_kthreads_quiet());
}

FIXTURE_TEARDOWN(idle)
{
	close(self->fd);
}

/* Both are tested in the same time: if a kernel cannot trace one, another kernel can. */
TEST_F_TIMEOUT(idle, no_thread_of_ours_is_woken_and_no_hrtimer_expires, 100)
{
	int ours, all, ret = tw_trace_start();
	__u64 before, after;
	int threads = tw_kthreads(&before);

	ASSERT_LT(0, threads);
	tw_sleep(listen_ns());
	EXPECT_EQ(threads, tw_kthreads(&after));
	EXPECT_EQ(before, after);
	ours = tw_trace_expiries(&all);
	if (ret) {
		TH_LOG("hrtimers cannot be traced: %s", strerror(-ret));
	} else {
		EXPECT_LT(0, all);
		EXPECT_EQ(0, ours);
	}
}

/* ---- one: the control, and the moments around an expiry ------------------ */

FIXTURE(single) {
	int fd;
};

FIXTURE_SETUP(single)
{
	__u64 far;

	self->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &far));
}

FIXTURE_TEARDOWN(single)
{
	close(self->fd);
}

/* More timeouts than the softirq may expire. */
#define BURST		1000

static int arm_burst(int fd, __u64 deadline_ns)
{
	static struct twheel_arm arms[BURST];
	int i;

	for (i = 0; i < BURST; i++)
		arms[i] = (struct twheel_arm){
			.flags = TWHEEL_ARM_ABSOLUTE, .expires_ns = deadline_ns,
		};
	return tw_arm_vec(fd, arms, BURST);
}

TEST_F_TIMEOUT(single, a_burst_is_seen_in_our_threads, 100)
{
	static struct twheel_event events[BURST];
	__u64 before, after, deadline_ns, ahead_ns = TW_SEC;
	int tries = 0;

	deadline_ns = tw_now(CLOCK_MONOTONIC) + ahead_ns;
	ASSERT_EQ(BURST, arm_burst(self->fd, deadline_ns));
	tw_sleep(TW_SEC / 2);
	tw_kthreads(&before);
	/* If the machine stalled, this came too late: do it once more, farther ahead. */
	while (tw_now(CLOCK_MONOTONIC) >= deadline_ns) {
		ASSERT_TRUE(TW_WAIT_FOR(tw_read(self->fd, events, BURST) == BURST, TW_MS));
		ahead_ns *= 2;
		deadline_ns = tw_now(CLOCK_MONOTONIC) + ahead_ns;
		ASSERT_EQ(BURST, arm_burst(self->fd, deadline_ns));
		tw_kthreads(&before);
	}
	/*
	 * The softirq leaves the rest to the kthread.  If that goes to sleep again, a switch is
	 * counted.
	 */
	tw_sleep_until(deadline_ns);
	do {
		tw_sleep(TW_MS);
		tw_kthreads(&after);
	} while (after == before && ++tries < 1000);
	EXPECT_LT(before, after);
	EXPECT_EQ(BURST, tw_read(self->fd, events, BURST));
}

TEST_F_TIMEOUT(single, an_expiry_is_seen_in_our_hrtimers, 100)
{
	struct twheel_event event;
	int ours, all, ret;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &id));
	ret = tw_trace_start();
	if (ret)
		SKIP(return, "hrtimers cannot be traced: %s", strerror(-ret));
	ASSERT_EQ(POLLIN, tw_poll(self->fd, POLLIN, TW_PATIENCE_MS));
	ours = tw_trace_expiries(&all);
	EXPECT_LT(0, ours);
	ASSERT_ONE_EVENT(self->fd, &event, id);
}

/* The alarm was set for a timeout that DRAIN has ended. */
TEST_F_TIMEOUT(single, no_hrtimer_of_ours_expires_after_a_drain, 100)
{
	int ours, all, ret;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, 2 * TW_SEC, &id));
	ASSERT_EQ(0, tw_wait_kthreads_quiet());
	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(0, tw_wait_kthreads_quiet());
	ret = tw_trace_start();
	if (ret)
		SKIP(return, "hrtimers cannot be traced: %s", strerror(-ret));
	tw_sleep(3 * TW_SEC);
	ours = tw_trace_expiries(&all);
	EXPECT_EQ(0, ours);
	EXPECT_LT(0, all);
}

TEST_F_TIMEOUT(single, there_is_silence_again_after_an_expiry, 100)
{
	struct twheel_event event;
	__u64 before, after, id;
	bool traced;
	int all;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	ASSERT_EQ(POLLIN, tw_poll(self->fd, POLLIN, TW_PATIENCE_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	ASSERT_EQ(0, tw_wait_kthreads_quiet());
	traced = !tw_trace_start();
	tw_kthreads(&before);
	tw_sleep(listen_ns() / 3);
	tw_kthreads(&after);
	EXPECT_EQ(before, after);
	EXPECT_EQ(0, tw_trace_expiries(&all));
	EXPECT_LE(traced, all);
}

/*
 * If the earliest timeout is cancelled, it is no reason to wake up; see twheel_idle_stale.c for
 * many.
 */
TEST_F_TIMEOUT(single, the_earliest_one_cancelled_wakes_at_most_once, 100)
{
	__u64 before, after, id;
	int i, all;

	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, 2 * TW_SEC, &id));
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	}
	tw_sleep(TW_SEC);
	tw_trace_start();
	tw_kthreads(&before);
	tw_sleep(4 * TW_SEC);
	tw_kthreads(&after);
	EXPECT_GE(before + 2, after);
	EXPECT_GE(2, tw_trace_expiries(&all));
}

TEST_HARNESS_MAIN
