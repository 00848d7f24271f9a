// SPDX-License-Identifier: GPL-2.0
/*
 * SETUP: the fields that it takes, their values in force, and until when it can be called.
 * (Fields that it refuses are in twheel_badinput.c.)
 */
#include "twheel_outside.h"
#include "twheel_test.h"

FIXTURE(setup) {
	int fd;
};

FIXTURE_SETUP(setup)
{
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(setup)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(setup, setup_reads_back_the_defaults_for_zeroes)
{
	struct twheel_info info;

	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_BOOTTIME, 0, 0));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(TWHEEL_CLOCK_BOOTTIME, info.clock);
	EXPECT_EQ(TWHEEL_TICK_DEFAULT_NS, info.tick_ns);
	EXPECT_LE(TWHEEL_SLOTS_MIN, info.slots);
	EXPECT_GE(TWHEEL_SLOTS_MAX, info.slots);
	EXPECT_EQ(0, info.slots & (info.slots - 1));
	EXPECT_LT(0, info.max_pending);
	EXPECT_LE(info.max_pending, info.max_pending_limit);
	EXPECT_EQ(TWHEEL_WHEEL_RUNNING, info.state);
}

TEST_F(setup, setup_takes_both_ends_of_each_range)
{
	const struct twheel_setup ends[] = {
		{ .tick_ns = TWHEEL_TICK_MIN_NS, .slots = TWHEEL_SLOTS_MIN, .max_pending = 1 },
		{ .tick_ns = TWHEEL_TICK_MAX_NS, .slots = TWHEEL_SLOTS_MAX, .max_pending = 1 },
		{ .tick_ns = TWHEEL_TICK_MIN_NS, .slots = TWHEEL_SLOTS_MAX, .max_pending = 7 },
		{ .tick_ns = TWHEEL_TICK_MAX_NS, .slots = TWHEEL_SLOTS_MIN, .max_pending = 7 },
	};
	struct twheel_info info;
	int i, fd;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		fd = tw_open_setup(O_NONBLOCK, &ends[i]);
		ASSERT_LE(0, fd)
			TH_LOG("setup %d", i);
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(ends[i].tick_ns, info.tick_ns);
		EXPECT_EQ(ends[i].slots, info.slots);
		EXPECT_EQ(ends[i].max_pending, info.max_pending);
		close(fd);
	}
}

TEST_F(setup, setup_takes_a_max_pending_up_to_the_limit_that_info_reports)
{
	struct twheel_setup setup = {};
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	ASSERT_GT(~0U, info.max_pending_limit);
	setup.max_pending = info.max_pending_limit + 1;
	EXPECT_EQ(-EINVAL, tw_setup_full(self->fd, &setup));
	setup.max_pending = info.max_pending_limit;
	EXPECT_EQ(0, tw_setup_full(self->fd, &setup));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(setup.max_pending, info.max_pending);
}

TEST_F(setup, setup_rounds_slots_up_to_a_power_of_two)
{
	const __u32 slots[][2] = {
		{ 4, 4 }, { 5, 8 }, { 255, 256 }, { 256, 256 }, { 257, 512 }, { 1000, 1024 },
		{ TWHEEL_SLOTS_MAX / 2 + 1, TWHEEL_SLOTS_MAX },
		{ TWHEEL_SLOTS_MAX - 1, TWHEEL_SLOTS_MAX },
	};
	struct twheel_info info;
	int i, fd;

	for (i = 0; i < ARRAY_SIZE(slots); i++) {
		fd = tw_open_setup(O_NONBLOCK, &(struct twheel_setup){ .slots = slots[i][0] });
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(slots[i][1], info.slots);
		close(fd);
	}
}

TEST_F(setup, setup_of_one_level_has_one_level)
{
	const struct twheel_setup setup = { .flags = TWHEEL_SETUP_ONE_LEVEL };
	struct twheel_info info;

	ASSERT_EQ(0, tw_setup_full(self->fd, &setup));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1, tw_fdinfo_number(self->fd, "levels"));
	EXPECT_EQ(TWHEEL_SETUP_ONE_LEVEL, info.setup_flags);
}

static int setup_one_level(__u64 tick_ns, __u32 slots, struct twheel_info *info)
{
	const struct twheel_setup setup = {
		.tick_ns = tick_ns, .slots = slots, .flags = TWHEEL_SETUP_ONE_LEVEL,
	};
	int fd = tw_open_setup(O_NONBLOCK, &setup);

	if (fd < 0)
		return fd;
	tw_info(fd, info);
	close(fd);
	return 0;
}

/* If a clockid_t is passed by mistake, it must not be taken for another clock. */
TEST_F(setup, any_clock_of_time_h_is_refused)
{
	const clockid_t clocks[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID,
		CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
		CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_REALTIME_ALARM,
		CLOCK_BOOTTIME_ALARM, CLOCK_TAI,
	};
	struct twheel_setup setup = { .size = sizeof(setup) };
	int i;

	/* 0 is CLOCK_REALTIME, and also the value in a program that names no clock. */
	EXPECT_EQ(0, CLOCK_REALTIME);
	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		setup.clock = clocks[i];
		EXPECT_EQ(-EINVAL, tw_ioctl(self->fd, TWHEEL_IOC_SETUP, &setup))
			TH_LOG("clock %d", clocks[i]);
	}
	/* A negative number is the clock of a process, of a thread or of a device. */
	for (i = -1; i > -64; i--) {
		setup.clock = i;
		EXPECT_EQ(-EINVAL, tw_ioctl(self->fd, TWHEEL_IOC_SETUP, &setup));
	}
	for (i = 0; i < TWHEEL_CLOCK_MONOTONIC; i++) {
		setup.clock = i;
		EXPECT_EQ(-EINVAL, tw_ioctl(self->fd, TWHEEL_IOC_SETUP, &setup));
	}
	setup.clock = TWHEEL_CLOCK_MONOTONIC;
	EXPECT_EQ(0, tw_ioctl(self->fd, TWHEEL_IOC_SETUP, &setup));
}

/* The bound is for the values in force: the slots rounded up, the defaults filled in. */
TEST_F(setup, round_of_one_level_lasts_100_ms_at_least)
{
	struct twheel_info info;
	__u32 slots;

	for (slots = TWHEEL_SLOTS_MIN; slots <= TWHEEL_SLOTS_MAX; slots *= 2) {
		__u64 least_ns = (TWHEEL_ROUND_MIN_NS + slots - 1) / slots;

		if (least_ns <= TWHEEL_TICK_MIN_NS) {
			least_ns = TWHEEL_TICK_MIN_NS;
		} else {
			EXPECT_EQ(-EINVAL, setup_one_level(least_ns - 1, slots, &info))
				TH_LOG("%u slots of %llu ns", slots, least_ns - 1);
		}
		ASSERT_EQ(0, setup_one_level(least_ns, slots, &info))
			TH_LOG("%u slots of %llu ns", slots, least_ns);
		EXPECT_LE(TWHEEL_ROUND_MIN_NS, info.slots * info.tick_ns);
	}
	EXPECT_EQ(0, setup_one_level(100 * TW_US, 513, &info));
	EXPECT_EQ(1024, info.slots);
	EXPECT_EQ(-EINVAL, setup_one_level(100 * TW_US, 512, &info));
	EXPECT_EQ(-EINVAL, setup_one_level(0, TWHEEL_SLOTS_MIN, &info));
	EXPECT_EQ(-EINVAL, setup_one_level(TWHEEL_TICK_MIN_NS, 0, &info));
}

static int setup_named(int fd, const void *name, size_t size)
{
	struct twheel_setup setup = { .clock = TWHEEL_CLOCK_VIRTUAL };

	memcpy(setup.name, name, size);
	return tw_setup_full(fd, &setup);
}

TEST_F(setup, name_of_up_to_15_characters_is_shown_by_info)
{
	static const char * const names[] = {
		"", "x", "sessions", "none", "123456789abcdef", "!#$%&'()*+,-./",
		":;<=>?@[]^_`{|}", "~",
	};
	struct twheel_info info;
	int i, fd;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		char shown[TWHEEL_NAME_SIZE] = {};

		fd = tw_open(O_NONBLOCK);
		ASSERT_EQ(0, setup_named(fd, names[i], strlen(names[i])));
		ASSERT_EQ(0, tw_info(fd, &info));
		memcpy(shown, names[i], strlen(names[i]));
		EXPECT_EQ(0, memcmp(shown, info.name, sizeof(shown)))
			TH_LOG("%s, and not %.16s", names[i], info.name);
		close(fd);
	}
}

TEST_F(setup, name_may_be_that_of_another_wheel)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_info info;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, setup_named(self->fd, "same", 4));
	EXPECT_EQ(0, setup_named(fd, "same", 4));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0, strcmp("same", info.name));
	close(fd);
}

TEST_F(setup, name_with_a_character_that_needs_a_quote_or_an_escape_says_einval)
{
	struct tw_snapshot before;
	int c;

	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	for (c = 1; c < 256; c++) {
		const unsigned char name[] = { 'a', c, 'z' };

		if (c > ' ' && c < 127 && c != '"' && c != '\\')
			continue;
		EXPECT_EQ(-EINVAL, setup_named(self->fd, name, sizeof(name)))
			TH_LOG("0x%02x", c);
		EXPECT_EQ(-EINVAL, setup_named(self->fd, name + 1, 1))
			TH_LOG("0x%02x", c);
	}
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(setup, name_without_a_nul_or_with_bytes_behind_it_says_einval)
{
	struct tw_snapshot before;
	char name[TWHEEL_NAME_SIZE];
	int i, length;

	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	memset(name, 'n', sizeof(name));
	EXPECT_EQ(-EINVAL, setup_named(self->fd, name, sizeof(name)));
	for (length = 0; length < TWHEEL_NAME_SIZE - 1; length++) {
		for (i = length + 1; i < TWHEEL_NAME_SIZE; i++) {
			memset(name, 0, sizeof(name));
			memset(name, 'n', length);
			name[i] = 'n';
			EXPECT_EQ(-EINVAL, setup_named(self->fd, name, sizeof(name)))
				TH_LOG("%d characters, and byte %d", length, i);
		}
	}
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(setup, second_setup_says_ebusy_and_the_first_holds)
{
	struct tw_snapshot before;

	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 5));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-EBUSY, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 5));
	EXPECT_EQ(-EBUSY, tw_setup(self->fd, TWHEEL_CLOCK_MONOTONIC, TW_US, 7));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(setup, setup_after_the_first_arm_says_ebusy)
{
	struct twheel_info info;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	EXPECT_EQ(-EBUSY, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_US, 5));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	/* SETUP says so also when the wheel is empty again. */
	EXPECT_EQ(-EBUSY, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_US, 5));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(TWHEEL_CLOCK_MONOTONIC, info.clock);
	EXPECT_EQ(TW_MS, info.tick_ns);
}

TEST_F(setup, setup_is_still_open_after_calls_that_find_nothing)
{
	struct twheel_status status;
	struct tw_snapshot snapshot;

	ASSERT_EQ(0, tw_snapshot(self->fd, &snapshot));
	ASSERT_EQ(-ENOENT, tw_query1(self->fd, 1, &status));
	ASSERT_EQ(-ENOENT, tw_cancel1(self->fd, 1));
	ASSERT_EQ(POLLOUT, tw_poll(self->fd, POLLIN | POLLOUT, 0));
	EXPECT_NO_EVENT(self->fd);
	EXPECT_UNCHANGED(self->fd, &snapshot);
	EXPECT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 5));
}

/* Each element is of a kind that ARM refuses; none of them starts the wheel. */
TEST_F(setup, setup_is_still_open_after_an_arm_that_was_refused)
{
	const struct twheel_record record = {
		.op = TWHEEL_OP_ARM, .expires_ns = TW_HOUR, .repeats = 1,
	};
	struct twheel_arm arms[3] = {
		{ .expires_ns = TW_HOUR, .flags = 1U << 31 },
		{ .expires_ns = TW_HOUR, .repeats = 1 },
		{ .expires_ns = TW_HOUR, .flags = TWHEEL_ARM_FIXED_DELAY },
	};
	struct tw_snapshot snapshot;
	int i;

	ASSERT_EQ(0, tw_snapshot(self->fd, &snapshot));
	ASSERT_EQ(0, tw_arm_vec(self->fd, arms, 3));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(-EINVAL, arms[i].result);
	ASSERT_EQ(-EINVAL, tw_arm_entry(self->fd, &arms[0]));
	ASSERT_EQ(-EINVAL, tw_write(self->fd, &record, 1));
	ASSERT_EQ(0, tw_arm_vec(self->fd, arms, 0));
	ASSERT_EQ(-ENOENT, tw_rearm1(self->fd, 1, 0, TW_HOUR, 0));
	EXPECT_UNCHANGED(self->fd, &snapshot);
	EXPECT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 5));
}

TEST_HARNESS_MAIN
