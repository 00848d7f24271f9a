/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Each command as data: the size of its argument and of its elements, and a good call of it, of
 * which a test changes one thing.
 */
#ifndef TWHEEL_COMMANDS_H
#define TWHEEL_COMMANDS_H

#include "twheel_test.h"

/* Memory for the argument of any command and for one element, with room to grow. */
union tw_argument {
	struct twheel_info info;
	struct twheel_setup setup;
	struct twheel_vector vector;
	struct twheel_list list;
	struct twheel_advance advance;
	unsigned char bytes[1024];
};

union tw_element {
	struct twheel_arm arm;
	struct twheel_cancel cancel;
	struct twheel_status status;
	unsigned char bytes[512];
};

static const struct tw_command {
	const char *name;
	unsigned long cmd;
	__u32 size;
	__u32 entry_size;	/* 0: takes no elements */
	int good;		/* the result of the good call, on a new wheel for SETUP */
} tw_commands[] = {
	{ "INFO", TWHEEL_IOC_INFO, sizeof(struct twheel_info), 0, 0 },
	{ "SETUP", TWHEEL_IOC_SETUP, sizeof(struct twheel_setup), 0, 0 },
	{ "ARM", TWHEEL_IOC_ARM, sizeof(struct twheel_vector), sizeof(struct twheel_arm), 1 },
	{ "REARM", TWHEEL_IOC_REARM, sizeof(struct twheel_vector), sizeof(struct twheel_arm), 1 },
	{
		"CANCEL", TWHEEL_IOC_CANCEL, sizeof(struct twheel_vector),
		sizeof(struct twheel_cancel), 1
	},
	{
		"QUERY", TWHEEL_IOC_QUERY, sizeof(struct twheel_vector),
		sizeof(struct twheel_status), 1
	},
	{ "LIST", TWHEEL_IOC_LIST, sizeof(struct twheel_list), sizeof(struct twheel_status), 1 },
	{ "ADVANCE", TWHEEL_IOC_ADVANCE, sizeof(struct twheel_advance), 0, 0 },
};

/*
 * Make a virtual wheel of 1 ms at TW_MADE_NS with a pending timeout, an unread one, and a periodic
 * one that is both. Return the descriptor, or -errno.
 */
#define TW_MADE_NS	(20 * TW_MS)

static inline int tw_make_wheel(__u64 *pending)
{
	struct twheel_arm arms[3] = {
		{ .expires_ns = TW_HOUR },
		{ .expires_ns = 10 * TW_MS },
		{ .expires_ns = 10 * TW_MS, .interval_ns = 3 * TW_MS },
	};
	int fd = tw_virtual(O_NONBLOCK, TW_MS);

	if (fd < 0)
		return fd;
	if (tw_arm_vec(fd, arms, 3) != 3 || tw_advance(fd, TW_MADE_NS)) {
		close(fd);
		return TW_BROKEN;
	}
	*pending = arms[0].id;
	return fd;
}

/*
 * Fill in a good call of this command: it would succeed on the wheel of tw_make_wheel(), whose
 * pending timeout has this id.
 */
static inline void tw_make_good(const struct tw_command *command, __u64 id,
				union tw_argument *argument, union tw_element *element)
{
	memset(argument, 0, sizeof(*argument));
	memset(element, 0, sizeof(*element));
	/* The size is the first field of each. */
	argument->info.size = command->size;

	if (command->cmd == TWHEEL_IOC_SETUP) {
		argument->setup.clock = TWHEEL_CLOCK_MONOTONIC;
	} else if (command->cmd == TWHEEL_IOC_ADVANCE) {
		argument->advance.to_ns = TW_MADE_NS;
	} else if (command->cmd == TWHEEL_IOC_LIST) {
		argument->list.entry_size = command->entry_size;
		argument->list.nr = 1;
		argument->list.entries = (uintptr_t)element;
	} else if (command->entry_size) {
		argument->vector.entry_size = command->entry_size;
		argument->vector.nr = 1;
		argument->vector.entries = (uintptr_t)element;
	}

	if (command->entry_size == sizeof(element->arm)) {
		element->arm.expires_ns = TW_HOUR;
		element->arm.id = id;
	} else if (command->entry_size == sizeof(element->cancel)) {
		element->cancel.id = id;
	} else {
		element->status.id = id;
	}
}

/* NULL for DRAIN and REOPEN, which have tests of their own, and for an unknown command. */
static inline const struct tw_command *tw_find_command(unsigned long cmd)
{
	const struct tw_command *command = tw_commands;

	while (command < tw_commands + ARRAY_SIZE(tw_commands) && command->cmd != cmd)
		command++;
	return command < tw_commands + ARRAY_SIZE(tw_commands) ? command : NULL;
}

/*
 * The result of the good call on a descriptor that is open for reading only. If a command is not
 * listed here, it is unknown, or it is REOPEN.
 */
static inline int tw_listener_expects(unsigned long cmd)
{
	switch (cmd) {
	case TWHEEL_IOC_INFO:
		return 0;
	case TWHEEL_IOC_QUERY:
	case TWHEEL_IOC_LIST:
		return 1;
	case TWHEEL_IOC_SETUP:
	case TWHEEL_IOC_ARM:
	case TWHEEL_IOC_REARM:
	case TWHEEL_IOC_CANCEL:
	case TWHEEL_IOC_DRAIN:
	case TWHEEL_IOC_ADVANCE:
		return -EBADF;
	default:
		return -ENOTTY;
	}
}

static inline __s32 tw_result_of(const struct tw_command *command, const union tw_element *element)
{
	switch (command->cmd) {
	case TWHEEL_IOC_ARM:
	case TWHEEL_IOC_REARM:
		return element->arm.result;
	case TWHEEL_IOC_CANCEL:
		return element->cancel.result;
	default:
		return element->status.result;
	}
}

#endif /* TWHEEL_COMMANDS_H */
