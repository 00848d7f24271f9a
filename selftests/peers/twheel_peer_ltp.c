// SPDX-License-Identifier: GPL-2.0
/*
 * What the Linux Test Project checks of timerfd and of POSIX timers
 * (testcases/kernel/syscalls/timerfd*, timer_*, and conformance/interfaces/timer_*
 * of its POSIX test suite), asked of the device.
 *
 *   there                             here
 *   timerfd01                         one_timeout_lives_many_lives_...
 *   timerfd02, timer_create           peer_kernel.c: flags of a descriptor
 *   timerfd03                         peer_kernel.c: O_NONBLOCK
 *   timerfd04                         clocks.c: namespace.*
 *   timerfd_create01                  badinput.c, clocks and flags of SETUP
 *   timerfd_gettime01, _settime01     badinput.c and faults.c; what another file
 *                                     says to these calls is not ours to test
 *   timerfd_settime02 (CVE-2017-10661)  changes_of_kind_against_each_other_...
 *   timer_settime01                   clocks.c, arm.c; the old value is not told
 *   timer_settime02                   any 64 bits are a time; ids: cancel.c
 *   timer_settime03 (CVE-2018-12896)  more_periods_than_an_int_counts_...
 *   timer_gettime01, timer_getoverrun01,
 *   timer_delete01, timer_delete02    query.c, cancel.c
 *   timer_create01-03                 signals and processor time are not offered
 *
 *   timer_create/2-1, 8-1, 9-1        stale.c; lifecycle.c, where it is shared
 *   timer_create/16-1, 15-1           badinput.c, limits.c
 *   timer_delete/1-1, 1-2, 5-*        cancel.c
 *   timer_settime/1-*, 2-1, 5-*, 6-1  clocks.c, rearm.c, periodic.c
 *   timer_settime/3-1 to 3-3          a_periodic_one_set_to_never_...
 *   timer_settime/8-*                 the old value is not told: query.c
 *   timer_settime/9-1, 9-2            delays_of_all_sorts_measured_from_outside_...
 *   timer_settime/12-*, 13-1          cancel.c, arm.c: end of time
 *   timer_gettime, all                query.c; 1-4 on a real clock: peer_kernel.c
 *   timer_getoverrun/1-1, 2-1, 2-2    periodic.c
 *   timer_getoverrun/2-3              a_stretch_of_shortest_periods_...
 *   timer_getoverrun/3-1              periodic.c: count_saturates_...
 */
#include "twheel_test.h"

#include <limits.h>
#include <pthread.h>

FIXTURE(real_clock) {
	int fd;
	__u64 id;
};

FIXTURE_VARIANT(real_clock) {
	__u32 clock;
	clockid_t clockid;
};

FIXTURE_VARIANT_ADD(real_clock, monotonic) {
	.clock = TWHEEL_CLOCK_MONOTONIC, .clockid = CLOCK_MONOTONIC,
};

FIXTURE_VARIANT_ADD(real_clock, realtime) {
	.clock = TWHEEL_CLOCK_REALTIME, .clockid = CLOCK_REALTIME,
};

FIXTURE_SETUP(real_clock)
{
	self->fd = tw_open(0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, variant->clock, TW_MS, 0));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &self->id));
}

FIXTURE_TEARDOWN(real_clock)
{
	close(self->fd);
}

/* A new life for the one timeout there is, which must not have ended. */
static void live_again(struct __test_metadata *_metadata, int fd, __u64 *id, __u32 flags,
		       __u64 expires_ns, __u64 interval_ns)
{
	int ret = tw_rearm1(fd, *id, flags, expires_ns, interval_ns);

	if (ret == -ENOENT)
		ret = tw_arm1(fd, flags, expires_ns, interval_ns, 0, id);
	ASSERT_LE(0, ret);
}

/*
 * So many expirations at least, by reads that block.  They may come in several
 * events, when the machine stalls; but none that the clock does not bear out.
 */
static void expect_expirations(struct __test_metadata *_metadata, int fd, __u64 id, __u64 least,
			       __u64 first_ns, __u64 interval_ns)
{
	struct twheel_event event;
	__u64 sum = 0;

	while (sum < least) {
		ASSERT_EQ(POLLIN, tw_poll(fd, POLLIN, TW_PATIENCE_MS));
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		EXPECT_EQ(id, event.id);
		sum += event.count;
		EXPECT_LE(first_ns + (sum - 1) * interval_ns, event.deadline_ns);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
	}
}

/* timerfd01 */
TEST_F(real_clock, one_timeout_lives_many_lives_as_a_timerfd_does)
{
	struct twheel_status status;
	struct twheel_event event;
	__u64 now_ns;

	now_ns = tw_now(variant->clockid);
	live_again(_metadata, self->fd, &self->id, 0, 100 * TW_MS, 0);
	expect_expirations(_metadata, self->fd, self->id, 1, now_ns + 100 * TW_MS, 0);

	now_ns = tw_now(variant->clockid);
	live_again(_metadata, self->fd, &self->id, TWHEEL_ARM_ABSOLUTE, now_ns + 100 * TW_MS, 0);
	expect_expirations(_metadata, self->fd, self->id, 1, now_ns + 100 * TW_MS, 0);

	now_ns = tw_now(variant->clockid);
	live_again(_metadata, self->fd, &self->id, TWHEEL_ARM_ABSOLUTE, now_ns + 50 * TW_MS,
		   50 * TW_MS);
	/* What is left is told as a distance, though the deadline is a point. */
	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	EXPECT_GE(50 * TW_MS, status.left_ns);
	tw_sleep(160 * TW_MS);
	expect_expirations(_metadata, self->fd, self->id, 3, now_ns + 50 * TW_MS, 50 * TW_MS);

	/* A one-shot again: of the periodic life nothing more comes. */
	now_ns = tw_now(variant->clockid);
	live_again(_metadata, self->fd, &self->id, 0, 100 * TW_MS, 0);
	expect_expirations(_metadata, self->fd, self->id, 1, now_ns + 100 * TW_MS, 0);
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, fcntl(self->fd, F_GETFL) | O_NONBLOCK));
	tw_sleep(100 * TW_MS);
	EXPECT_EQ(-EAGAIN, tw_read(self->fd, &event, 1));
	EXPECT_ACCOUNTS(self->fd);
}

/* timer_settime/3-1 to 3-3: zero disarms there; here the end of time does */
TEST_F(real_clock, a_periodic_one_set_to_never_is_silent_until_it_is_set_again)
{
	struct twheel_event event;

	live_again(_metadata, self->fd, &self->id, 0, 5 * TW_MS, 5 * TW_MS);
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	/* What is unread goes with its life. */
	ASSERT_EQ(POLLIN, tw_poll(self->fd, POLLIN, TW_PATIENCE_MS));
	ASSERT_EQ(TWHEEL_WAS_UNREAD,
		  tw_rearm1(self->fd, self->id, 0, TWHEEL_TIME_NEVER, 5 * TW_MS));
	EXPECT_EQ(0, tw_poll(self->fd, POLLIN, 100));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, 0, 5 * TW_MS, 5 * TW_MS));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(self->id, event.id);
}

/*
 * timer_settime03 (CVE-2018-12896): so long ago and so often that the count would
 * be negative, were it an int; 1.4 times as many periods as an int counts.
 */
TEST(more_periods_than_an_int_counts_stay_a_positive_count)
{
	const __u64 periods = INT_MAX * 14ULL / 10;
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_REALTIME, .tick_ns = TW_US,
	};
	int fd = tw_open_setup(O_NONBLOCK, &setup);
	__u64 first_ns, id, now_ns = tw_now(CLOCK_REALTIME);
	struct twheel_event event;

	ASSERT_LE(0, fd);
	if (now_ns < periods * TW_US) {
		close(fd);
		SKIP(return, "the clock stands in the first hour of 1970");
	}
	first_ns = now_ns - periods * TW_US;
	ASSERT_EQ(0, tw_arm1(fd, TWHEEL_ARM_ABSOLUTE, first_ns, TW_US, 0, &id));
	ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
	EXPECT_LT(0, tw_cancel1(fd, id));
	EXPECT_LE(periods, event.count);
	EXPECT_EQ(first_ns + (event.count - 1ULL) * TW_US, event.deadline_ns);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* timer_getoverrun/2-3: a period as short as the clock allows, and nobody reads */
TEST(a_stretch_of_shortest_periods_is_counted_to_the_last)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_REALTIME, .tick_ns = 50 * TW_US,
	};
	int fd = tw_open_setup(O_NONBLOCK, &setup);
	__u64 first_ns, id, sum = 0;
	struct twheel_event event;
	struct twheel_info info;
	int nr = 0;

	ASSERT_LE(0, fd);
	first_ns = tw_round_up(tw_now(CLOCK_REALTIME), 50 * TW_US) + 50 * TW_MS;
	ASSERT_EQ(0, tw_arm1(fd, TWHEEL_ARM_ABSOLUTE, first_ns, 50 * TW_US, 0, &id));
	do {
		tw_sleep(50 * TW_MS);
		ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
		sum += event.count;
		/* Every period up to the latest one, and no other. */
		EXPECT_EQ(first_ns + (sum - 1) * 50 * TW_US, event.deadline_ns);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
		nr++;
	} while (event.deadline_ns < first_ns + 200 * TW_MS);
	EXPECT_LT(0, tw_cancel1(fd, id));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_LE(sum, info.expirations);
	EXPECT_EQ(nr, info.delivered);
	close(fd);
}

/* ---- from outside -------------------------------------------------------- */

static const struct {
	__u32 clock;
	clockid_t clockid;
} clocks[] = {
	{ TWHEEL_CLOCK_MONOTONIC, CLOCK_MONOTONIC }, { TWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME },
	{ TWHEEL_CLOCK_REALTIME, CLOCK_REALTIME }, { TWHEEL_CLOCK_TAI, CLOCK_TAI },
};

static const __u64 delays_ns[] = {
	0, 5, 5 * TW_US, 30 * TW_MS, 300 * TW_MS, TW_SEC, TW_SEC + 5, TW_SEC + 5 * TW_US,
	TW_SEC + 30 * TW_MS,
};

#define NR_DELAYS	ARRAY_SIZE(delays_ns)

/* timer_settime/9-1, 9-2: by clock_gettime(), and not by what an event says */
TEST(delays_of_all_sorts_measured_from_outside_are_never_too_short)
{
	__u64 before_ns[ARRAY_SIZE(clocks)][NR_DELAYS];
	struct pollfd pfds[ARRAY_SIZE(clocks)];
	int i, j, left = ARRAY_SIZE(clocks) * NR_DELAYS;
	struct twheel_event event;
	__u64 id;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		pfds[i] = (struct pollfd){ .fd = tw_open(O_NONBLOCK), .events = POLLIN };
		ASSERT_EQ(0, tw_setup(pfds[i].fd, clocks[i].clock, TW_MS, 0));
		for (j = 0; j < NR_DELAYS; j++) {
			before_ns[i][j] = tw_now(clocks[i].clockid);
			ASSERT_EQ(0, tw_arm1(pfds[i].fd, 0, delays_ns[j], 0, j, &id));
		}
	}
	while (left) {
		ASSERT_LT(0, poll(pfds, ARRAY_SIZE(pfds), TW_PATIENCE_MS));
		for (i = 0; i < ARRAY_SIZE(clocks); i++) {
			if (!pfds[i].revents || tw_read(pfds[i].fd, &event, 1) != 1)
				continue;
			j = event.user_data;
			EXPECT_LE(delays_ns[j], tw_now(clocks[i].clockid) - before_ns[i][j])
				TH_LOG("clock %d, delay %llu", i, delays_ns[j]);
			left--;
		}
	}
	for (i = 0; i < ARRAY_SIZE(clocks); i++)
		close(pfds[i].fd);
}

/* ---- against each other -------------------------------------------------- */

static struct contest {
	int fd;
	__u64 id;
	_Atomic bool stop;
	_Atomic int bad;
	_Atomic int done;
} contest;

/* What a REARM may be like; each is right for a REALTIME clock. */
static const struct {
	__u32 flags;
	__u64 expires_ns;
	__u64 interval_ns;
} kinds[] = {
	{ 0, TW_HOUR, 0 },
	{ TWHEEL_ARM_ABSOLUTE, TWHEEL_TIME_NEVER, 0 },
	{ 0, 0, 0 },
	{ 0, TW_MS, TW_MS },
	{ TWHEEL_ARM_FIXED_DELAY, 0, TW_HOUR },
	{ TWHEEL_ARM_ABSOLUTE, 1, TW_DAY },
};

static void *change_kind(void *arg)
{
	__u64 seed = (uintptr_t)arg;

	while (!contest.stop) {
		int i = tw_random(&seed) % ARRAY_SIZE(kinds);
		int ret = tw_rearm1(contest.fd, contest.id, kinds[i].flags, kinds[i].expires_ns,
				    kinds[i].interval_ns);

		/* Nobody reads, so it never ends. */
		if (ret != TWHEEL_WAS_PENDING && ret != TWHEEL_WAS_UNREAD)
			contest.bad = ret;
		contest.done++;
	}
	return NULL;
}

/*
 * timerfd_settime02 (CVE-2017-10661): what it is, and what the clock's steps mean
 * to it, is changed by two at a time while a third one steps the clock.
 */
TEST(changes_of_kind_against_each_other_and_the_clock_leave_one_timeout)
{
	__u64 offset_ns = tw_now(CLOCK_REALTIME) - tw_now(CLOCK_MONOTONIC);
	__u64 end_ns = tw_now(CLOCK_MONOTONIC) + TW_SEC;
	struct twheel_info info;
	struct timespec ts;
	pthread_t thread[2];
	int i, stepped = 0;

	contest.fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, contest.fd);
	ASSERT_EQ(0, tw_setup(contest.fd, TWHEEL_CLOCK_REALTIME, TW_MS, 0));
	ASSERT_EQ(0, tw_arm_in(contest.fd, TW_HOUR, &contest.id));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, change_kind, (void *)(i + 1L)));
	for (i = 1; tw_now(CLOCK_MONOTONIC) < end_ns; i = -i) {
		ts = tw_to_timespec(tw_now(CLOCK_MONOTONIC) + offset_ns + (i > 0 ? TW_DAY : 0));
		stepped += !clock_settime(CLOCK_REALTIME, &ts);
		tw_sleep(TW_MS);
	}
	ts = tw_to_timespec(tw_now(CLOCK_MONOTONIC) + offset_ns);
	EXPECT_EQ(0, clock_settime(CLOCK_REALTIME, &ts));
	contest.stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);

	EXPECT_EQ(0, (int)contest.bad);
	EXPECT_LT(0, stepped);
	EXPECT_ACCOUNTS(contest.fd);
	ASSERT_EQ(0, tw_info(contest.fd, &info));
	EXPECT_EQ(1, info.live);
	EXPECT_EQ((int)contest.done, info.rearmed);
	TH_LOG("%d changes, %d steps", contest.done, stepped);
	/* It still does what it is told. */
	ASSERT_LT(0, tw_rearm1(contest.fd, contest.id, 0, TW_MS, 0));
	EXPECT_EQ(POLLIN, tw_poll(contest.fd, POLLIN, TW_PATIENCE_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(contest.fd, contest.id));
	EXPECT_EQ(0, tw_poll(contest.fd, POLLIN, 20));
	close(contest.fd);
}

TEST_HARNESS_MAIN
