// SPDX-License-Identifier: GPL-2.0
/*
 * Bad input: each field alone, each pointer, each unknown command. The errno is exact, and the
 * wheel does not change.
 *
 * A table lists the fields and their bad values. Each is written into a call that would otherwise
 * succeed, so that nothing else can be the reason for a refusal.
 */
#include "twheel_commands.h"
#include "twheel_test.h"

#include <stddef.h>
#include <termios.h>

FIXTURE(bad) {
	int fd;
	__u64 pending;
	size_t page;
	struct tw_snapshot before;
};

FIXTURE_SETUP(bad)
{
	self->page = sysconf(_SC_PAGESIZE);
	self->fd = tw_make_wheel(&self->pending);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_snapshot(self->fd, &self->before));
}

FIXTURE_TEARDOWN(bad)
{
	EXPECT_UNCHANGED(self->fd, &self->before);
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* ---- one bad field of the argument --------------------------------------- */

static void poke(unsigned char *bytes, size_t offset, size_t size, __u64 value)
{
	if (size == sizeof(__u32))
		memcpy(bytes + offset, &(__u32){ value }, size);
	else
		memcpy(bytes + offset, &value, size);
}

#define FIELD(type, member)	offsetof(struct type, member), sizeof(((struct type *)0)->member)

struct bad_field {
	const char *name;
	unsigned long cmd;
	size_t offset, size;
	__u64 value;
	int error;
};

static const struct bad_field bad_fields[] = {
	{ "INFO.flags", TWHEEL_IOC_INFO, FIELD(twheel_info, flags), 1U << 1, -EINVAL },
	{ "INFO.flags", TWHEEL_IOC_INFO, FIELD(twheel_info, flags), 1U << 31, -EINVAL },
	{
		"INFO.flags", TWHEEL_IOC_INFO, FIELD(twheel_info, flags),
		TWHEEL_INFO_WALK | 1U << 7, -EINVAL
	},
	{ "ARM.flags", TWHEEL_IOC_ARM, FIELD(twheel_vector, flags), 1, -EINVAL },
	{ "REARM.flags", TWHEEL_IOC_REARM, FIELD(twheel_vector, flags), 1, -EINVAL },
	{ "CANCEL.flags", TWHEEL_IOC_CANCEL, FIELD(twheel_vector, flags), 1, -EINVAL },
	{ "QUERY.flags", TWHEEL_IOC_QUERY, FIELD(twheel_vector, flags), 1U << 31, -EINVAL },
	{ "ARM.reserved", TWHEEL_IOC_ARM, FIELD(twheel_vector, reserved), 1, -EINVAL },
	{ "REARM.reserved", TWHEEL_IOC_REARM, FIELD(twheel_vector, reserved), 1U << 31, -EINVAL },
	{ "CANCEL.reserved", TWHEEL_IOC_CANCEL, FIELD(twheel_vector, reserved), 1, -EINVAL },
	{ "QUERY.reserved", TWHEEL_IOC_QUERY, FIELD(twheel_vector, reserved), 1, -EINVAL },
	{ "ARM.nr", TWHEEL_IOC_ARM, FIELD(twheel_vector, nr), 65537, -E2BIG },
	{ "CANCEL.nr", TWHEEL_IOC_CANCEL, FIELD(twheel_vector, nr), ~0U, -E2BIG },
	{ "LIST.flags", TWHEEL_IOC_LIST, FIELD(twheel_list, flags), 1, -EINVAL },
	{ "LIST.nr", TWHEEL_IOC_LIST, FIELD(twheel_list, nr), 0, -EINVAL },
	{ "LIST.nr", TWHEEL_IOC_LIST, FIELD(twheel_list, nr), ~0U, -E2BIG },
	{ "ADVANCE.reserved", TWHEEL_IOC_ADVANCE, FIELD(twheel_advance, reserved), 1, -EINVAL },
	{ "ADVANCE.to_ns", TWHEEL_IOC_ADVANCE, FIELD(twheel_advance, to_ns), 0, -EINVAL },
};

TEST_F(bad, a_bad_field_of_an_argument_is_refused)
{
	union tw_argument argument, given;
	union tw_element element;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad_fields); i++) {
		const struct bad_field *bad = &bad_fields[i];

		tw_make_good(tw_find_command(bad->cmd), self->pending, &argument, &element);
		poke(argument.bytes, bad->offset, bad->size, bad->value);
		given = argument;
		EXPECT_EQ(bad->error, tw_ioctl(self->fd, bad->cmd, &argument))
			TH_LOG("%s = %#llx", bad->name, bad->value);
		EXPECT_EQ(0, memcmp(&given, &argument, sizeof(given)))
			TH_LOG("%s = %#llx: something was written", bad->name, bad->value);
	}
}

static const struct bad_field bad_setups[] = {
	{ "clock", 0, FIELD(twheel_setup, clock), 0, -EINVAL },
	{ "clock", 0, FIELD(twheel_setup, clock), TWHEEL_CLOCK_MONOTONIC - 1, -EINVAL },
	{ "clock", 0, FIELD(twheel_setup, clock), TWHEEL_CLOCK_VIRTUAL + 1, -EINVAL },
	{ "clock", 0, FIELD(twheel_setup, clock), ~0U, -EINVAL },
	{ "tick_ns", 0, FIELD(twheel_setup, tick_ns), 1, -EINVAL },
	{ "tick_ns", 0, FIELD(twheel_setup, tick_ns), TWHEEL_TICK_MIN_NS - 1, -EINVAL },
	{ "tick_ns", 0, FIELD(twheel_setup, tick_ns), TWHEEL_TICK_MAX_NS + 1, -EINVAL },
	{ "tick_ns", 0, FIELD(twheel_setup, tick_ns), ~0ULL, -EINVAL },
	{ "slots", 0, FIELD(twheel_setup, slots), 1, -EINVAL },
	{ "slots", 0, FIELD(twheel_setup, slots), TWHEEL_SLOTS_MIN - 1, -EINVAL },
	{ "slots", 0, FIELD(twheel_setup, slots), TWHEEL_SLOTS_MAX + 1, -EINVAL },
	{ "slots", 0, FIELD(twheel_setup, slots), ~0U, -EINVAL },
	{ "max_pending", 0, FIELD(twheel_setup, max_pending), ~0U, -EINVAL },
	{ "flags", 0, FIELD(twheel_setup, flags), TWHEEL_SETUP_KEYED << 1, -EINVAL },
	{ "flags", 0, FIELD(twheel_setup, flags), 1U << 31, -EINVAL },
	{ "event_size", 0, FIELD(twheel_setup, event_size), 1, -EINVAL },
	{ "event_size", 0, FIELD(twheel_setup, event_size), TWHEEL_EVENT_SIZE_MIN - 8, -EINVAL },
	{ "event_size", 0, FIELD(twheel_setup, event_size), TWHEEL_EVENT_SIZE_MIN + 4, -EINVAL },
	{ "event_size", 0, FIELD(twheel_setup, event_size), TWHEEL_EVENT_SIZE_MAX + 8, -EINVAL },
	{ "event_size", 0, FIELD(twheel_setup, event_size), ~7U, -EINVAL },
	{ "slack_ns", 0, FIELD(twheel_setup, slack_ns), TWHEEL_SLACK_MAX_NS + 1, -EINVAL },
	{ "slack_ns", 0, FIELD(twheel_setup, slack_ns), ~0ULL, -EINVAL },
};

TEST_F(bad, a_bad_field_of_setup_is_refused_and_the_wheel_can_still_be_set_up)
{
	struct tw_snapshot new;
	union tw_argument argument;
	union tw_element element;
	int fd, i;

	fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_snapshot(fd, &new));
	for (i = 0; i < ARRAY_SIZE(bad_setups); i++) {
		const struct bad_field *bad = &bad_setups[i];

		tw_make_good(tw_find_command(TWHEEL_IOC_SETUP), 0, &argument, &element);
		poke(argument.bytes, bad->offset, bad->size, bad->value);
		EXPECT_EQ(bad->error, tw_ioctl(fd, TWHEEL_IOC_SETUP, &argument))
			TH_LOG("%s = %#llx", bad->name, bad->value);
		EXPECT_UNCHANGED(fd, &new);
	}
	EXPECT_EQ(-EINVAL, tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, 0, new.info.max_pending_limit + 1));
	EXPECT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, new.info.max_pending_limit));
	close(fd);
}

/* ---- one bad field of an element ----------------------------------------- */

static const struct bad_field bad_elements[] = {
	{ "ARM flags", TWHEEL_IOC_ARM, FIELD(twheel_arm, flags), 1U << 2, -EINVAL },
	{ "ARM flags", TWHEEL_IOC_ARM, FIELD(twheel_arm, flags), 1U << 31, -EINVAL },
	{ "ARM expires_ns", TWHEEL_IOC_ARM, FIELD(twheel_arm, expires_ns), -5ULL, -EINVAL },
	{ "ARM expires_ns", TWHEEL_IOC_ARM, FIELD(twheel_arm, expires_ns), 1ULL << 63, -EINVAL },
	{ "ARM interval_ns", TWHEEL_IOC_ARM, FIELD(twheel_arm, interval_ns), 1ULL << 63, -EINVAL },
	{ "ARM slack_ticks", TWHEEL_IOC_ARM, FIELD(twheel_arm, slack_ticks), 32768, -EINVAL },
	{ "ARM repeats, no interval", TWHEEL_IOC_ARM, FIELD(twheel_arm, repeats), 1, -EINVAL },
	{
		"ARM fixed delay, no interval", TWHEEL_IOC_ARM, FIELD(twheel_arm, flags),
		TWHEEL_ARM_FIXED_DELAY, -EINVAL
	},
	{ "REARM flags", TWHEEL_IOC_REARM, FIELD(twheel_arm, flags), 1U << 2, -EINVAL },
	{ "REARM expires_ns", TWHEEL_IOC_REARM, FIELD(twheel_arm, expires_ns), -5ULL, -EINVAL },
	{
		"REARM expires_ns", TWHEEL_IOC_REARM, FIELD(twheel_arm, expires_ns), 1ULL << 63,
		-EINVAL
	},
	{
		"REARM interval_ns", TWHEEL_IOC_REARM, FIELD(twheel_arm, interval_ns), 1ULL << 63,
		-EINVAL
	},
	{ "REARM slack_ticks", TWHEEL_IOC_REARM, FIELD(twheel_arm, slack_ticks), 32768, -EINVAL },
	{ "REARM repeats, no interval", TWHEEL_IOC_REARM, FIELD(twheel_arm, repeats), 1, -EINVAL },
	{
		"REARM fixed delay, no interval", TWHEEL_IOC_REARM, FIELD(twheel_arm, flags),
		TWHEEL_ARM_FIXED_DELAY, -EINVAL
	},
	{ "REARM id", TWHEEL_IOC_REARM, FIELD(twheel_arm, id), 0, -ENOENT },
	{ "CANCEL id", TWHEEL_IOC_CANCEL, FIELD(twheel_cancel, id), 0, -ENOENT },
	{ "CANCEL reserved", TWHEEL_IOC_CANCEL, FIELD(twheel_cancel, reserved), 1, -EINVAL },
	{ "QUERY id", TWHEEL_IOC_QUERY, FIELD(twheel_status, id), 0, -ENOENT },
};

TEST_F(bad, a_bad_field_of_an_element_is_refused_in_its_result)
{
	union tw_argument argument;
	union tw_element element;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad_elements); i++) {
		const struct bad_field *bad = &bad_elements[i];
		const struct tw_command *command = tw_find_command(bad->cmd);

		tw_make_good(command, self->pending, &argument, &element);
		poke(element.bytes, bad->offset, bad->size, bad->value);
		EXPECT_EQ(0, tw_ioctl(self->fd, bad->cmd, &argument))
			TH_LOG("%s = %#llx", bad->name, bad->value);
		EXPECT_EQ(bad->error, tw_result_of(command, &element))
			TH_LOG("%s = %#llx", bad->name, bad->value);
	}
}

/* Every other element is bad; the good ones are done nevertheless. */
TEST_F(bad, vector_goes_on_past_elements_that_are_refused)
{
	struct twheel_arm arms[7] = {};
	int i;

	for (i = 0; i < 7; i++) {
		arms[i].expires_ns = TW_HOUR;
		arms[i].flags = i % 2 ? 1U << 31 : 0;
	}
	EXPECT_EQ(4, tw_arm_vec(self->fd, arms, 7));
	for (i = 0; i < 7; i++) {
		EXPECT_EQ(i % 2 ? -EINVAL : TWHEEL_CREATED, arms[i].result);
		if (i % 2 == 0) {
			EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, arms[i].id));
		}
	}
	/* The counters have moved here, and the teardown compares with this. */
	ASSERT_EQ(0, tw_snapshot(self->fd, &self->before));
	EXPECT_EQ(3, self->before.info.live);
}

/* If an array is used again, no element keeps the id of an earlier call. */
struct wide_arm {
	struct twheel_arm arm;
	__u64 unknown;
};

TEST(refused_element_of_arm_has_no_id)
{
	static const struct {
		__u32 flags;
		__u64 unknown;
		int result;
	} wanted[] = {
		{ 0, 1, -E2BIG }, { 0, 0, TWHEEL_CREATED }, { 1U << 31, 0, -EINVAL },
		{ 0, 0, TWHEEL_CREATED },
		{ 0, 1, -E2BIG }, { 0, 0, -EAGAIN }, { 1U << 31, 0, -EINVAL },
	};
	const struct twheel_setup setup = { .clock = TWHEEL_CLOCK_VIRTUAL, .max_pending = 2 };
	int i, fd = tw_open_setup(O_NONBLOCK, &setup);
	struct wide_arm arms[ARRAY_SIZE(wanted)] = {};
	struct twheel_arm one = { .expires_ns = TW_HOUR };
	__u32 nr_done;

	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(wanted); i++) {
		arms[i].arm.expires_ns = TW_HOUR;
		arms[i].arm.flags = wanted[i].flags;
		arms[i].arm.id = TW_POISON64;
		arms[i].unknown = wanted[i].unknown;
	}
	EXPECT_EQ(2, tw_vector_done(fd, TWHEEL_IOC_ARM, arms, sizeof(arms[0]),
				    ARRAY_SIZE(wanted), &nr_done));
	EXPECT_EQ(ARRAY_SIZE(wanted), nr_done);
	for (i = 0; i < ARRAY_SIZE(wanted); i++) {
		EXPECT_EQ(wanted[i].result, arms[i].arm.result)
			TH_LOG("element %d", i);
		EXPECT_NE(TW_POISON64, arms[i].arm.id)
			TH_LOG("element %d", i);
		EXPECT_EQ(wanted[i].result > 0, !!arms[i].arm.id)
			TH_LOG("element %d has the id %#llx", i, arms[i].arm.id);
	}
	/* tw_arm_vec() poisons the id. */
	EXPECT_EQ(-EAGAIN, tw_arm_entry(fd, &one));
	EXPECT_EQ(0, one.id);
	one.flags = 1U << 31;
	EXPECT_EQ(-EINVAL, tw_arm_entry(fd, &one));
	EXPECT_EQ(0, one.id);
	close(fd);
}

/* ---- pointers ------------------------------------------------------------ */

/* Fill in addresses that no caller can have: NULL, not mapped, the kernel's, the end. */
static void fill_wild(size_t page, __u64 wild[4])
{
	void *hole = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	wild[0] = 0;
	wild[1] = (uintptr_t)hole;
	wild[2] = 0xffff888000000000ULL;
	wild[3] = ~0ULL - 7;
}

TEST_F(bad, argument_that_cannot_be_read_says_efault)
{
	__u64 wild[4];
	int i, k;

	fill_wild(self->page, wild);
	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		for (k = 0; k < 4; k++) {
			EXPECT_EQ(-EFAULT, tw_ioctl(self->fd, tw_commands[i].cmd,
						    (void *)(uintptr_t)wild[k]))
				TH_LOG("%s at %#llx", tw_commands[i].name, wild[k]);
		}
	}
}

TEST_F(bad, elements_that_cannot_be_reached_say_efault)
{
	union tw_argument argument;
	union tw_element element;
	__u64 wild[4];
	int i, k;

	fill_wild(self->page, wild);
	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		for (k = 0; tw_commands[i].entry_size && k < 4; k++) {
			tw_make_good(&tw_commands[i], self->pending, &argument, &element);
			/* The pointer is at the same place in both structures. */
			if (tw_commands[i].cmd == TWHEEL_IOC_LIST)
				argument.list.entries = wild[k];
			else
				argument.vector.entries = wild[k];
			EXPECT_EQ(-EFAULT, tw_ioctl(self->fd, tw_commands[i].cmd, &argument))
				TH_LOG("%s, elements at %#llx", tw_commands[i].name, wild[k]);
		}
	}
}

/* INFO and LIST write their argument back, and vectors write how many elements were attempted. */
TEST_F(bad, argument_that_cannot_be_written_back_says_efault)
{
	const unsigned long written[] = {
		TWHEEL_IOC_INFO, TWHEEL_IOC_LIST, TWHEEL_IOC_ARM, TWHEEL_IOC_REARM,
		TWHEEL_IOC_CANCEL, TWHEEL_IOC_QUERY,
	};
	union tw_element element;
	int i;

	for (i = 0; i < ARRAY_SIZE(written); i++) {
		union tw_argument *argument = mmap(NULL, self->page, PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		ASSERT_NE(MAP_FAILED, (void *)argument);
		tw_make_good(tw_find_command(written[i]), self->pending, argument, &element);
		ASSERT_EQ(0, mprotect(argument, self->page, PROT_READ));
		EXPECT_EQ(-EFAULT, tw_ioctl(self->fd, written[i], argument))
			TH_LOG("command %#lx", written[i]);
		munmap(argument, self->page);
	}
}

/* ---- commands ------------------------------------------------------------ */

/* DRAIN takes no flag; a later version may. */
TEST_F(bad, a_bad_argument_of_drain_is_refused_and_nothing_is_drained)
{
	union tw_argument argument = {};
	int i;

	for (i = 0; i < 64; i++) {
		EXPECT_EQ(-EINVAL, tw_ioctl(self->fd, TWHEEL_IOC_DRAIN, (void *)(1UL << i)))
			TH_LOG("bit %d", i);
	}
	EXPECT_EQ(-EINVAL, tw_ioctl(self->fd, TWHEEL_IOC_DRAIN, &argument));
	EXPECT_EQ(POLLIN | POLLOUT, tw_poll(self->fd, POLLIN | POLLOUT, 0));
}

TEST_F(bad, unknown_command_says_enotty)
{
	union tw_argument argument = {};
	int nr;

	for (nr = TWHEEL_IOC_REOPEN - TWHEEL_IOC_INFO + 1; nr < 256; nr++) {
		EXPECT_EQ(-ENOTTY, tw_ioctl(self->fd, _IO(TWHEEL_IOC_MAGIC, nr), &argument))
			TH_LOG("number %d", nr);
	}
}

/* The commands carry neither a size nor a direction. */
TEST_F(bad, known_number_with_another_size_or_direction_says_enotty)
{
	union tw_argument argument = {};
	int nr;

	for (nr = 0; nr <= TWHEEL_IOC_REOPEN - TWHEEL_IOC_INFO; nr++) {
		EXPECT_EQ(-ENOTTY, tw_ioctl(self->fd, _IOWR(TWHEEL_IOC_MAGIC, nr, __u64),
					    &argument));
		EXPECT_EQ(-ENOTTY, tw_ioctl(self->fd, _IOW(TWHEEL_IOC_MAGIC, nr, __u32),
					    &argument));
	}
}

TEST_F(bad, command_of_another_magic_says_enotty)
{
	union tw_argument argument = {};
	int nr;

	for (nr = 0; nr < 32; nr++) {
		EXPECT_EQ(-ENOTTY, tw_ioctl(self->fd, _IO(TWHEEL_IOC_MAGIC ^ 1, nr), &argument));
		/* This is a command of a terminal. */
		EXPECT_EQ(-ENOTTY, tw_ioctl(self->fd, TCGETS + nr, &argument));
	}
}

TEST_HARNESS_MAIN
