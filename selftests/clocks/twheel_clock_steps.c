// SPDX-License-Identifier: GPL-2.0
/*
 * Steps of the realtime clock: forwards they expire what is now due, backwards
 * they expire nothing twice and nothing early, and the other clocks do not
 * care.  Needs a machine that may have a wrong time for a while, and
 * CAP_SYS_TIME; the time is put right again after each test.
 */
#include "twheel_test.h"

#include <sys/timex.h>

FIXTURE(realtime_step) {
	int fd;
	/* CLOCK_REALTIME less CLOCK_MONOTONIC, before any step */
	__u64 offset_ns;
};

/* Sets CLOCK_REALTIME; 0 or -errno. */
static int set_realtime(__u64 now_ns)
{
	struct timespec ts = tw_to_timespec(now_ns);

	return clock_settime(CLOCK_REALTIME, &ts) ? -errno : 0;
}

/* So far from now that no stall of the machine is taken for a step. */
static int step_realtime(__s64 by_ns)
{
	return set_realtime(tw_now(CLOCK_REALTIME) + by_ns);
}

FIXTURE_SETUP(realtime_step)
{
	self->offset_ns = tw_now(CLOCK_REALTIME) - tw_now(CLOCK_MONOTONIC);
	/* A machine without a battery stands at 1970: leave room for steps back. */
	ASSERT_EQ(0, set_realtime(tw_now(CLOCK_REALTIME) + 10000 * TW_DAY));
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_REALTIME, TW_MS, 0));
}

/* In the parent, which is there also when an assertion has ended the test. */
FIXTURE_TEARDOWN_PARENT(realtime_step)
{
	EXPECT_EQ(0, set_realtime(tw_now(CLOCK_MONOTONIC) + self->offset_ns));
}

TEST_F(realtime_step, forwards_expires_what_is_now_due)
{
	struct twheel_event event;
	__u64 due, later;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &due));
	ASSERT_EQ(0, tw_arm_in(self->fd, 3 * TW_HOUR, &later));
	ASSERT_EQ(0, step_realtime(2 * TW_HOUR));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(due, event.id);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, later));
	EXPECT_ACCOUNTS(self->fd);
}

TEST_F(realtime_step, forwards_counts_each_period)
{
	__u64 first_ns = tw_now(CLOCK_REALTIME) + TW_MIN;
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, first_ns, TW_MIN, 0, &id));
	ASSERT_EQ(0, set_realtime(first_ns + 99 * TW_MIN + TW_SEC));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(100, event.count);
	EXPECT_EQ(first_ns + 99 * TW_MIN, event.deadline_ns);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
}

TEST_F(realtime_step, backwards_expires_nothing_early)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, 3 * TW_SEC, &id));
	ASSERT_EQ(0, step_realtime(-(__s64)TW_HOUR));
	EXPECT_EQ(0, tw_wait_event(self->fd, &event, 4000));
	ASSERT_EQ(0, step_realtime(TW_HOUR));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
}

TEST_F(realtime_step, backwards_expires_nothing_twice)
{
	struct twheel_event event;
	__u64 one_shot, periodic;

	ASSERT_EQ(0, tw_arm_in(self->fd, 0, &one_shot));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	ASSERT_EQ(0, tw_arm1(self->fd, 0, 0, TW_MIN, 0, &periodic));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	ASSERT_EQ(0, step_realtime(-(__s64)(10 * TW_SEC)));
	/* Both deadlines lie ahead again, and are not waited for. */
	EXPECT_EQ(0, tw_wait_event(self->fd, &event, 12000));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, one_shot));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, periodic));
	EXPECT_ACCOUNTS(self->fd);
}

/* The wheel goes on from where the clock now stands. */
TEST_F(realtime_step, backwards_what_is_armed_next_expires_in_its_time)
{
	struct twheel_event event;
	__u64 id, far;

	ASSERT_EQ(0, tw_arm_in(self->fd, 0, &id));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_DAY, &far));
	ASSERT_EQ(0, step_realtime(-(__s64)TW_HOUR));
	ASSERT_EQ(0, tw_arm_in(self->fd, 50 * TW_MS, &id));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	ASSERT_EQ(0, tw_arm_at(self->fd, 1, &id));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
}

TEST_F(realtime_step, wakes_a_sleeping_poller)
{
	struct twheel_event event;
	pid_t pid;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(tw_poll(self->fd, POLLIN, -1) == POLLIN ? 0 : 1);
	ASSERT_EQ(0, tw_wait_asleep(pid));
	ASSERT_EQ(0, step_realtime(2 * TW_HOUR));
	EXPECT_EQ(0, tw_reap(pid));
	ASSERT_ONE_EVENT(self->fd, &event, id);
}

TEST_F(realtime_step, does_not_touch_a_monotonic_wheel)
{
	int fd = tw_open(O_NONBLOCK);
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_MONOTONIC, TW_MS, 0));
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	ASSERT_EQ(0, step_realtime(2 * TW_HOUR));
	EXPECT_EQ(0, tw_poll(fd, POLLIN, 500));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, id));
	close(fd);
}

TEST_F(realtime_step, moves_a_tai_wheel_too)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_event event;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_TAI, TW_MS, 0));
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	ASSERT_EQ(0, step_realtime(2 * TW_HOUR));
	ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
	close(fd);
}

/* A leap of the offset moves CLOCK_TAI and no other clock. */
TEST_F(realtime_step, change_of_the_tai_offset_expires_what_is_now_due)
{
	struct timex tai = { .modes = ADJ_TAI, .constant = 1000 };
	int fd = tw_open(O_NONBLOCK);
	struct twheel_event event;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_TAI, TW_MS, 0));
	ASSERT_EQ(0, tw_arm_in(fd, 500 * TW_SEC, &id));
	ASSERT_LE(0, adjtimex(&tai));
	EXPECT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
	tai.constant = 0;
	ASSERT_LE(0, adjtimex(&tai));
	EXPECT_EQ(id, event.id);
	close(fd);
}

/* Steps in both directions at random, beside timeouts that come and go. */
TEST_F(realtime_step, many_steps_lose_nothing_and_fire_nothing_twice)
{
	struct twheel_event events[64];
	bool seen[200] = {};
	int i, nr, left = 200;
	__u64 seed = 5, id;

	for (i = 0; i < 200; i++) {
		__u64 distance_ns = tw_random(&seed) % (4 * TW_SEC);

		ASSERT_EQ(0, tw_arm1(self->fd, 0, distance_ns, 0, i, &id));
		if (i % 10 == 9) {
			ASSERT_EQ(0, step_realtime((i / 10 % 2 ? -1 : 1) * (__s64)TW_SEC));
		}
	}
	while (left) {
		ASSERT_LT(0, tw_poll(self->fd, POLLIN, TW_PATIENCE_MS));
		nr = tw_read(self->fd, events, 64);
		ASSERT_LT(0, nr);
		left -= nr;
		while (nr--) {
			EXPECT_LE(events[nr].deadline_ns, events[nr].fired_ns);
			ASSERT_GT(200, events[nr].user_data);
			ASSERT_FALSE(seen[events[nr].user_data]);
			seen[events[nr].user_data] = true;
		}
	}
	EXPECT_NO_EVENT(self->fd);
	EXPECT_ACCOUNTS(self->fd);
}

TEST_HARNESS_MAIN
