// SPDX-License-Identifier: GPL-2.0
/*
 * The real clocks, as long as nobody sets them. If a timeout is early by the wheel's own clock,
 * that is an error; if it is late, that is only reported, since the machine may be a busy
 * emulator.
 */
#include "twheel_namespace.h"
#include "twheel_outside.h"

#include <sys/mman.h>

/* ---- rules of each clock ------------------------------------------------- */

FIXTURE(clock) {
	int fd;
};

FIXTURE_VARIANT(clock) {
	__u32 clock;
	clockid_t clockid;
};

FIXTURE_VARIANT_ADD(clock, monotonic) {
	.clock = TWHEEL_CLOCK_MONOTONIC, .clockid = CLOCK_MONOTONIC,
};

FIXTURE_VARIANT_ADD(clock, boottime) {
	.clock = TWHEEL_CLOCK_BOOTTIME, .clockid = CLOCK_BOOTTIME,
};

FIXTURE_VARIANT_ADD(clock, realtime) {
	.clock = TWHEEL_CLOCK_REALTIME, .clockid = CLOCK_REALTIME,
};

FIXTURE_VARIANT_ADD(clock, tai) {
	.clock = TWHEEL_CLOCK_TAI, .clockid = CLOCK_TAI,
};

FIXTURE_SETUP(clock)
{
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, variant->clock, TW_MS, 0));
}

FIXTURE_TEARDOWN(clock)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(clock, info_reports_the_time_of_the_clock)
{
	__u64 before_ns = tw_now(variant->clockid);
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(variant->clock, info.clock);
	EXPECT_LE(before_ns, info.now_ns);
	EXPECT_GE(tw_now(variant->clockid), info.now_ns);
}

/* Wait for the event of id, which must not come before its edge. */
static void expect_not_early(struct __test_metadata *_metadata, int fd, clockid_t clockid,
			     __u64 id, struct twheel_event *event)
{
	__u64 edge_ns;

	ASSERT_EQ(1, tw_wait_event(fd, event, TW_PATIENCE_MS));
	ASSERT_EQ(id, event->id);
	edge_ns = tw_round_up(event->deadline_ns, TW_MS);
	EXPECT_LE(edge_ns, event->fired_ns);
	EXPECT_LE(event->fired_ns, tw_now(clockid));
	EXPECT_EQ(1, event->count);
	TH_LOG("late by %llu us", (event->fired_ns - event->deadline_ns) / TW_US);
}

TEST_F(clock, absolute_deadline_is_never_early)
{
	const __u64 distances_ns[] = { 2 * TW_MS, 5 * TW_MS + 1, 30 * TW_MS, 300 * TW_MS };
	struct twheel_event event;
	__u64 id, deadline_ns;
	int i;

	for (i = 0; i < ARRAY_SIZE(distances_ns); i++) {
		deadline_ns = tw_now(variant->clockid) + distances_ns[i];
		ASSERT_EQ(0, tw_arm_at(self->fd, deadline_ns, &id));
		ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
		EXPECT_EQ(id, event.id);
		EXPECT_EQ(deadline_ns, event.deadline_ns);
		EXPECT_LE(deadline_ns, event.fired_ns);
		TH_LOG("late by %llu us", (event.fired_ns - deadline_ns) / TW_US);
	}
}

TEST_F(clock, deadline_in_the_past_expires_at_once)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 1, &id));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
	EXPECT_EQ(1, event.deadline_ns);
	EXPECT_EQ(1, event.count);
}

/* This holds even if the clock itself has passed every deadline in between. */
TEST_F(clock, periods_are_never_early_and_none_is_lost)
{
	__u64 interval_ns = 10 * TW_MS, first_ns = tw_now(variant->clockid) + interval_ns;
	__u64 id, total = 0;
	struct twheel_event event;

	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, first_ns, interval_ns, 0, &id));
	while (total < 20) {
		ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
		total += event.count;
		/* The phase is kept, and each period is counted in one event. */
		EXPECT_EQ(first_ns + (total - 1) * interval_ns, event.deadline_ns);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
	}
	EXPECT_LT(0, tw_cancel1(self->fd, id));
}

TEST_F(clock, a_nearer_timeout_armed_later_expires_first)
{
	struct twheel_event event;
	__u64 far, near;

	ASSERT_EQ(0, tw_arm_ahead(self->fd, variant->clockid, TW_HOUR, &far));
	/* By then the wheel has set its alarm for the far one. */
	tw_sleep(50 * TW_MS);
	ASSERT_EQ(0, tw_arm_ahead(self->fd, variant->clockid, 20 * TW_MS, &near));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(near, event.id);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, far));
}

/* Two mistakes are easy in a re-arm: not to set the alarm again, and not to wake the poller. */
static void rearm_and_expect_wakeup(struct __test_metadata *_metadata, int fd, clockid_t clockid,
				    __s64 distance_ns)
{
	struct twheel_event event;
	pid_t pid;
	__u64 id;

	ASSERT_EQ(0, tw_arm_ahead(fd, clockid, TW_HOUR, &id));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(tw_poll(fd, POLLIN, -1) == POLLIN ? 0 : 1);
	ASSERT_EQ(0, tw_wait_asleep(pid));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(fd, id, TWHEEL_ARM_ABSOLUTE,
						tw_now(clockid) + distance_ns, 0));
	EXPECT_EQ(0, tw_reap(pid));
	ASSERT_ONE_EVENT(fd, &event, id);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
}

TEST_F(clock, rearming_earlier_wakes_a_sleeping_poller)
{
	rearm_and_expect_wakeup(_metadata, self->fd, variant->clockid, 20 * TW_MS);
}

TEST_F(clock, rearming_into_the_past_wakes_a_sleeping_poller)
{
	rearm_and_expect_wakeup(_metadata, self->fd, variant->clockid, -(__s64)TW_SEC);
}

TEST_F(clock, rearming_later_does_not_expire_at_the_old_deadline)
{
	struct twheel_event event;
	__s32 was;
	__u64 id;

	/* On a busy machine half a second may pass between the two calls. */
	do {
		ASSERT_EQ(0, tw_arm_ahead(self->fd, variant->clockid, 500 * TW_MS, &id));
		was = tw_rearm1(self->fd, id, TWHEEL_ARM_ABSOLUTE,
				tw_now(variant->clockid) + TW_HOUR, 0);
		if (was == TWHEEL_WAS_UNREAD)
			ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	} while (was == TWHEEL_WAS_UNREAD);
	ASSERT_EQ(TWHEEL_WAS_PENDING, was);
	EXPECT_EQ(0, tw_wait_event(self->fd, &event, 800));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
}

/* ---- relative times ------------------------------------------------------ */

/* These tests use a clock that nobody can set. */
FIXTURE(relative) {
	int fd;
};

FIXTURE_VARIANT(relative) {
	__u32 clock;
	clockid_t clockid;
};

FIXTURE_VARIANT_ADD(relative, monotonic) {
	.clock = TWHEEL_CLOCK_MONOTONIC, .clockid = CLOCK_MONOTONIC,
};

FIXTURE_VARIANT_ADD(relative, boottime) {
	.clock = TWHEEL_CLOCK_BOOTTIME, .clockid = CLOCK_BOOTTIME,
};

FIXTURE_SETUP(relative)
{
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, variant->clock, TW_MS, 0));
}

FIXTURE_TEARDOWN(relative)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(relative, relative_deadline_is_never_early)
{
	const __u64 distances_ns[] = { TW_US, TW_MS, 5 * TW_MS + 1, 30 * TW_MS, 300 * TW_MS };
	struct twheel_event event;
	__u64 id, before_ns, after_ns;
	int i;

	for (i = 0; i < ARRAY_SIZE(distances_ns); i++) {
		before_ns = tw_now(variant->clockid);
		ASSERT_EQ(0, tw_arm_in(self->fd, distances_ns[i], &id));
		after_ns = tw_now(variant->clockid);
		expect_not_early(_metadata, self->fd, variant->clockid, id, &event);
		EXPECT_LE(before_ns + distances_ns[i], event.deadline_ns);
		EXPECT_GE(after_ns + distances_ns[i], event.deadline_ns);
	}
}

TEST_F(relative, relative_zero_expires_at_once)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, 0, &id));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
	EXPECT_EQ(1, event.count);
}

/* If a sum overflows, it is the end of time. */
TEST_F(relative, longest_delays_overflow_into_the_end_of_time)
{
	const __u64 delays_ns[] = {
		TWHEEL_TIME_NEVER, TWHEEL_TIME_NEVER - 1, TWHEEL_TIME_NEVER - TW_SEC,
	};
	__u64 ids[ARRAY_SIZE(delays_ns)];
	struct twheel_status status;
	int i;

	for (i = 0; i < ARRAY_SIZE(delays_ns); i++)
		ASSERT_EQ(0, tw_arm_in(self->fd, delays_ns[i], &ids[i]));
	EXPECT_EQ(0, tw_poll(self->fd, POLLIN, 200));
	for (i = 0; i < ARRAY_SIZE(delays_ns); i++) {
		ASSERT_EQ(0, tw_query1(self->fd, ids[i], &status));
		EXPECT_EQ(TWHEEL_TIME_NEVER, status.deadline_ns);
		EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[i]));
	}
}

/* Such a deadline would move when the clock is set. */
FIXTURE(settable) {
	int fd;
	__u64 id;
};

FIXTURE_VARIANT(settable) {
	__u32 clock;
	clockid_t clockid;
	__u32 flags;
};

FIXTURE_VARIANT_ADD(settable, realtime) {
	.clock = TWHEEL_CLOCK_REALTIME, .clockid = CLOCK_REALTIME,
};

FIXTURE_VARIANT_ADD(settable, tai) {
	.clock = TWHEEL_CLOCK_TAI, .clockid = CLOCK_TAI,
};

FIXTURE_VARIANT_ADD(settable, keyed) {
	.clock = TWHEEL_CLOCK_REALTIME, .clockid = CLOCK_REALTIME, .flags = TWHEEL_SETUP_KEYED,
};

FIXTURE_SETUP(settable)
{
	const struct twheel_setup setup = {
		.clock = variant->clock, .tick_ns = TW_MS, .flags = variant->flags,
	};

	self->fd = tw_open_setup(O_NONBLOCK, &setup);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_arm_ahead(self->fd, variant->clockid, TW_HOUR, &self->id));
}

FIXTURE_TEARDOWN(settable)
{
	struct twheel_status status;

	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	EXPECT_LT(TW_HOUR - TW_MIN, status.left_ns);
	EXPECT_EQ(0, status.interval_ns);
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Fill a vector with valid elements and others, in several orders. */
static int fill_relative(struct twheel_arm arms[5], clockid_t clockid, __u64 id)
{
	const struct twheel_arm all[5] = {
		{ .flags = TWHEEL_ARM_ABSOLUTE, .expires_ns = tw_now(clockid) + TW_HOUR },
		{ .expires_ns = TW_HOUR }, { .expires_ns = TW_HOUR, .interval_ns = TW_HOUR },
		{ .expires_ns = TWHEEL_TIME_NEVER }, { .expires_ns = 0 },
	};
	int i;

	for (i = 0; i < 5; i++) {
		arms[i] = all[i];
		arms[i].id = id;
		arms[i].user_data = i;
	}
	return 5;
}

TEST_F(settable, relative_arm_says_einval)
{
	struct twheel_arm arms[5];
	int i, nr = fill_relative(arms, variant->clockid, 0);

	EXPECT_EQ(1, tw_arm_vec(self->fd, arms, nr));
	for (i = 0; i < nr; i++) {
		EXPECT_EQ(i ? -EINVAL : variant->flags ? TWHEEL_WAS_PENDING : TWHEEL_CREATED,
			  arms[i].result)
			TH_LOG("element %d", i);
	}
}

TEST_F(settable, relative_rearm_says_einval)
{
	struct twheel_arm arms[5];
	int i, nr = fill_relative(arms, variant->clockid, self->id);

	EXPECT_EQ(1, tw_rearm_vec(self->fd, arms, nr));
	for (i = 0; i < nr; i++) {
		EXPECT_EQ(i ? -EINVAL : TWHEEL_WAS_PENDING, arms[i].result)
			TH_LOG("element %d", i);
	}
}

TEST_F(settable, relative_records_say_einval)
{
	struct twheel_record record = { .op = TWHEEL_OP_ARM, .expires_ns = TW_HOUR };

	EXPECT_EQ(-EINVAL, tw_write(self->fd, &record, 1));
	record.op = TWHEEL_OP_REARM;
	record.key = variant->flags ? 0 : self->id;
	EXPECT_EQ(-EINVAL, tw_write(self->fd, &record, 1));
	record.flags = TWHEEL_ARM_ABSOLUTE;
	record.expires_ns += tw_now(variant->clockid);
	EXPECT_EQ(1, tw_write(self->fd, &record, 1));
}

/* ---- without SETUP ------------------------------------------------------- */

FIXTURE(no_setup) {
	int fd;
};

FIXTURE_SETUP(no_setup)
{
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(no_setup)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(no_setup, wheel_that_is_just_armed_is_monotonic_with_the_defaults)
{
	struct twheel_info info;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(TWHEEL_CLOCK_MONOTONIC, info.clock);
	EXPECT_EQ(TW_MS, info.tick_ns);
	EXPECT_EQ(0, info.setup_flags);
	EXPECT_EQ(TWHEEL_WHEEL_RUNNING, info.state);
	EXPECT_LE(TWHEEL_SLOTS_MIN, info.slots);
	EXPECT_LT(0, info.max_pending);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
}

TEST_F(no_setup, wheel_that_is_just_armed_expires)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, 20 * TW_MS, &id));
	expect_not_early(_metadata, self->fd, CLOCK_MONOTONIC, id, &event);
}

/* ---- time namespaces ----------------------------------------------------- */

/* A wheel has the clock of the time namespace of the process that set it up, or armed it first. */
FIXTURE(namespace) {
	int fd;
};

FIXTURE_VARIANT(namespace) {
	__u32 clock;
	clockid_t clockid;
	const char *name;
	int ahead_s;
};

FIXTURE_VARIANT_ADD(namespace, monotonic_ahead) {
	.clock = TWHEEL_CLOCK_MONOTONIC,
	.clockid = CLOCK_MONOTONIC,
	.name = "monotonic",
	.ahead_s = 100000,
};

FIXTURE_VARIANT_ADD(namespace, monotonic_behind) {
	.clock = TWHEEL_CLOCK_MONOTONIC,
	.clockid = CLOCK_MONOTONIC,
	.name = "monotonic",
	.ahead_s = -1,
};

FIXTURE_VARIANT_ADD(namespace, boottime_ahead) {
	.clock = TWHEEL_CLOCK_BOOTTIME,
	.clockid = CLOCK_BOOTTIME,
	.name = "boottime",
	.ahead_s = 100000,
};

FIXTURE_VARIANT_ADD(namespace, boottime_behind) {
	.clock = TWHEEL_CLOCK_BOOTTIME,
	.clockid = CLOCK_BOOTTIME,
	.name = "boottime",
	.ahead_s = -1,
};

FIXTURE_SETUP(namespace)
{
	int ret;

	/* Clocks do not go below 0, so wait until this one is far enough. */
	while (tw_now(variant->clockid) < 2 * TW_SEC)
		tw_sleep(100 * TW_MS);
	ret = tw_namespace_for_children(variant->name, variant->ahead_s);
	if (ret)
		SKIP(return, "no time namespaces: %s", strerror(-ret));
	self->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(namespace)
{
	close(self->fd);
}

#define MUST(condition) do {						\
	if (!(condition))						\
		_exit(__LINE__ % 125 + 1);				\
} while (0)

/* A timeout that is due at a time of this process' clock expires then, and not before. */
static bool absolute_is_ours(int fd, clockid_t clockid)
{
	__u64 id, deadline_ns = tw_now(clockid) + 200 * TW_MS;
	struct twheel_event event;

	return !tw_arm_at(fd, deadline_ns, &id) &&
	       tw_wait_event(fd, &event, TW_PATIENCE_MS) == 1 &&
	       tw_now(clockid) >= deadline_ns && event.id == id &&
	       event.deadline_ns == deadline_ns && event.fired_ns >= deadline_ns &&
	       event.fired_ns <= tw_now(clockid);
}

TEST_F(namespace, times_are_those_of_the_process_that_set_the_wheel_up)
{
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		MUST(!tw_setup(self->fd, variant->clock, TW_MS, 0));
		MUST(tw_clock_is_ours(self->fd, variant->clockid));
		MUST(absolute_is_ours(self->fd, variant->clockid));
		_exit(0);
	}
	EXPECT_EQ(0, tw_reap(pid));
	/* The times stay the same, whichever process uses the wheel. */
	EXPECT_FALSE(tw_clock_is_ours(self->fd, variant->clockid));
	close(self->fd);
	self->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_EQ(0, tw_setup(self->fd, variant->clock, TW_MS, 0));
	EXPECT_TRUE(absolute_is_ours(self->fd, variant->clockid));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(tw_clock_is_ours(self->fd, variant->clockid));
	EXPECT_EQ(0, tw_reap(pid));
}

/* If a program takes a wheel into another namespace, it needs the offset for absolute deadlines. */
TEST_F(namespace, fdinfo_shows_the_offset_of_the_namespace)
{
	pid_t pid = fork();
	int other;

	ASSERT_LE(0, pid);
	if (!pid)
		_exit(tw_setup(self->fd, variant->clock, TW_MS, 0) ? 1 : 0);
	EXPECT_EQ(0, tw_reap(pid));
	other = tw_open(O_CLOEXEC);
	ASSERT_EQ(0, tw_setup(other, variant->clock, TW_MS, 0));
	EXPECT_EQ(variant->ahead_s * (long long)TW_SEC,
		  tw_fdinfo_number(self->fd, "clock_offset_ns") -
		  tw_fdinfo_number(other, "clock_offset_ns"));
	close(other);
}

/* A stored deadline counts by the clock of the wheel, whichever process stores it. */
TEST_F(namespace, stored_deadlines_are_times_of_the_process_that_set_the_wheel_up)
{
	struct twheel_event event;
	struct twheel_info info;
	__u64 id, deadline_ns;
	__u64 *table;
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid)
		_exit(tw_setup(self->fd, variant->clock, TW_MS, 0) ? 1 : 0);
	EXPECT_EQ(0, tw_reap(pid));
	table = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)table);
	ASSERT_EQ(0, tw_arm_in(self->fd, 200 * TW_MS, &id));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	deadline_ns = info.now_ns + 500 * TW_MS;
	ASSERT_EQ(1, tw_refresh(table, id, deadline_ns, info.refresh_shift));
	ASSERT_EQ(1, tw_wait_event(self->fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	/* If the timeout had expired before the store, the store does not count. */
	if (event.fired_ns > info.now_ns + 300 * TW_MS) {
		EXPECT_EQ(tw_refreshed_ns(deadline_ns, info.refresh_shift), event.deadline_ns);
	}
	munmap(table, sysconf(_SC_PAGESIZE));
}

TEST_F(no_setup, the_clock_is_that_of_the_caller_until_somebody_arms)
{
	int ret = tw_namespace_for_children("monotonic", 100000);
	pid_t pid;

	if (ret)
		SKIP(return, "no time namespaces: %s", strerror(-ret));
	EXPECT_TRUE(tw_clock_is_ours(self->fd, CLOCK_MONOTONIC));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		MUST(tw_clock_is_ours(self->fd, CLOCK_MONOTONIC));
		MUST(absolute_is_ours(self->fd, CLOCK_MONOTONIC));
		_exit(0);
	}
	EXPECT_EQ(0, tw_reap(pid));
	EXPECT_FALSE(tw_clock_is_ours(self->fd, CLOCK_MONOTONIC));
}

TEST_HARNESS_MAIN
