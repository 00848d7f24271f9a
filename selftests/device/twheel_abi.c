// SPDX-License-Identifier: GPL-2.0
/*
 * The binary interface: size and offset of every field, the numbers of the
 * commands and of the constants, and a short use of every command.
 *
 * It is built for 64 and, as twheel_abi32, for 32 bits, and the numbers below are the same for
 * both. The arguments of each command are written out field by field, as by a program that has
 * nothing but the header.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/twheel.h>

#include "kselftest_harness.h"

#define MS		1000000ULL
#define COOKIE		0xfedcba9876543210ULL

/* Assert twice: the compiler refuses a layout that the test would only report. */
#define SIZE(type, bytes) do {						\
	_Static_assert(sizeof(struct type) == (bytes), #type);		\
	_Static_assert(_Alignof(struct type) == 8, #type);		\
	EXPECT_EQ(bytes, sizeof(struct type));				\
} while (0)

#define FIELD(type, field, offset, bytes) do {				\
	_Static_assert(offsetof(struct type, field) == (offset),	\
		       #type "." #field);				\
	_Static_assert(sizeof(((struct type *)0)->field) == (bytes),	\
		       #type "." #field);				\
	EXPECT_EQ(offset, offsetof(struct type, field));		\
	EXPECT_EQ(bytes, sizeof(((struct type *)0)->field));		\
} while (0)

#define NUMBER(expected, name) do {					\
	_Static_assert((expected) == (name), #name);			\
	EXPECT_EQ(expected, name);					\
} while (0)

TEST(setup_has_its_layout)
{
	SIZE(twheel_setup, 56);
	FIELD(twheel_setup, size, 0, 4);
	FIELD(twheel_setup, clock, 4, 4);
	FIELD(twheel_setup, tick_ns, 8, 8);
	FIELD(twheel_setup, slots, 16, 4);
	FIELD(twheel_setup, max_pending, 20, 4);
	FIELD(twheel_setup, flags, 24, 4);
	FIELD(twheel_setup, event_size, 28, 4);
	FIELD(twheel_setup, slack_ns, 32, 8);
	FIELD(twheel_setup, name, 40, 16);
}

TEST(info_has_its_layout)
{
	SIZE(twheel_info, 760);
	FIELD(twheel_info, size, 0, 4);
	FIELD(twheel_info, flags, 4, 4);
	FIELD(twheel_info, clock, 8, 4);
	FIELD(twheel_info, setup_flags, 12, 4);
	FIELD(twheel_info, tick_ns, 16, 8);
	FIELD(twheel_info, slots, 24, 4);
	FIELD(twheel_info, state, 28, 4);
	FIELD(twheel_info, max_pending, 32, 4);
	FIELD(twheel_info, max_pending_limit, 36, 4);
	FIELD(twheel_info, max_vector, 40, 4);
	FIELD(twheel_info, event_size, 44, 4);
	FIELD(twheel_info, slack_ns, 48, 8);
	FIELD(twheel_info, features, 56, 8);
	FIELD(twheel_info, refresh_size, 64, 8);
	FIELD(twheel_info, refresh_shift, 72, 4);
	FIELD(twheel_info, reserved, 76, 4);
	FIELD(twheel_info, now_ns, 80, 8);
	FIELD(twheel_info, next_expiry_ns, 88, 8);
	FIELD(twheel_info, armed, 96, 8);
	FIELD(twheel_info, pending, 104, 8);
	FIELD(twheel_info, unread, 112, 8);
	FIELD(twheel_info, live, 120, 8);
	FIELD(twheel_info, expirations, 128, 8);
	FIELD(twheel_info, delivered, 136, 8);
	FIELD(twheel_info, completed, 144, 8);
	FIELD(twheel_info, cancelled, 152, 8);
	FIELD(twheel_info, revoked, 160, 8);
	FIELD(twheel_info, drained, 168, 8);
	FIELD(twheel_info, rearmed, 176, 8);
	FIELD(twheel_info, changes, 184, 8);
	FIELD(twheel_info, late, 192, 8);
	FIELD(twheel_info, last_late_ns, 200, 8);
	FIELD(twheel_info, last_late_at_ns, 208, 8);
	FIELD(twheel_info, late_ticks, 216, 256);
	FIELD(twheel_info, unread_ticks, 472, 256);
	FIELD(twheel_info, longest_unread_at_ns, 728, 8);
	FIELD(twheel_info, alarm_ns, 736, 8);
	FIELD(twheel_info, name, 744, 16);
}

TEST(vector_has_its_layout)
{
	SIZE(twheel_vector, 32);
	FIELD(twheel_vector, size, 0, 4);
	FIELD(twheel_vector, entry_size, 4, 4);
	FIELD(twheel_vector, nr, 8, 4);
	FIELD(twheel_vector, flags, 12, 4);
	FIELD(twheel_vector, entries, 16, 8);
	FIELD(twheel_vector, nr_done, 24, 4);
	FIELD(twheel_vector, reserved, 28, 4);
}

TEST(arm_has_its_layout)
{
	SIZE(twheel_arm, 56);
	FIELD(twheel_arm, expires_ns, 0, 8);
	FIELD(twheel_arm, interval_ns, 8, 8);
	FIELD(twheel_arm, user_data, 16, 8);
	FIELD(twheel_arm, flags, 24, 4);
	FIELD(twheel_arm, repeats, 28, 4);
	FIELD(twheel_arm, id, 32, 8);
	FIELD(twheel_arm, result, 40, 4);
	FIELD(twheel_arm, slack_ticks, 44, 4);
	FIELD(twheel_arm, was_deadline_ns, 48, 8);
}

TEST(cancel_has_its_layout)
{
	SIZE(twheel_cancel, 16);
	FIELD(twheel_cancel, id, 0, 8);
	FIELD(twheel_cancel, result, 8, 4);
	FIELD(twheel_cancel, reserved, 12, 4);
}

TEST(status_has_its_layout)
{
	SIZE(twheel_status, 80);
	FIELD(twheel_status, id, 0, 8);
	FIELD(twheel_status, result, 8, 4);
	FIELD(twheel_status, state, 12, 4);
	FIELD(twheel_status, user_data, 16, 8);
	FIELD(twheel_status, deadline_ns, 24, 8);
	FIELD(twheel_status, left_ns, 32, 8);
	FIELD(twheel_status, interval_ns, 40, 8);
	FIELD(twheel_status, flags, 48, 4);
	FIELD(twheel_status, repeats_left, 52, 4);
	FIELD(twheel_status, count, 56, 4);
	FIELD(twheel_status, deliveries, 60, 4);
	FIELD(twheel_status, slack_ticks, 64, 4);
	FIELD(twheel_status, reserved, 68, 4);
	FIELD(twheel_status, fired_ns, 72, 8);
}

TEST(list_has_its_layout)
{
	SIZE(twheel_list, 40);
	FIELD(twheel_list, size, 0, 4);
	FIELD(twheel_list, entry_size, 4, 4);
	FIELD(twheel_list, nr, 8, 4);
	FIELD(twheel_list, flags, 12, 4);
	FIELD(twheel_list, cursor, 16, 8);
	FIELD(twheel_list, entries, 24, 8);
	FIELD(twheel_list, changes, 32, 8);
}

TEST(record_has_its_layout)
{
	SIZE(twheel_record, 40);
	FIELD(twheel_record, op, 0, 4);
	FIELD(twheel_record, flags, 4, 4);
	FIELD(twheel_record, key, 8, 8);
	FIELD(twheel_record, expires_ns, 16, 8);
	FIELD(twheel_record, interval_ns, 24, 8);
	FIELD(twheel_record, repeats, 32, 4);
	FIELD(twheel_record, slack_ticks, 36, 4);
}

TEST(setup_record_has_its_layout)
{
	SIZE(twheel_setup_record, 40);
	FIELD(twheel_setup_record, op, 0, 4);
	FIELD(twheel_setup_record, flags, 4, 4);
	FIELD(twheel_setup_record, clock, 8, 4);
	FIELD(twheel_setup_record, event_size, 12, 4);
	FIELD(twheel_setup_record, tick_ns, 16, 8);
	FIELD(twheel_setup_record, slack_ns, 24, 8);
	FIELD(twheel_setup_record, slots, 32, 4);
	FIELD(twheel_setup_record, max_pending, 36, 4);
}

TEST(advance_has_its_layout)
{
	SIZE(twheel_advance, 16);
	FIELD(twheel_advance, size, 0, 4);
	FIELD(twheel_advance, reserved, 4, 4);
	FIELD(twheel_advance, to_ns, 8, 8);
}

TEST(reopen_has_its_layout)
{
	/* It has no member of 64 bits. */
	EXPECT_EQ(16, sizeof(struct twheel_reopen));
	FIELD(twheel_reopen, size, 0, 4);
	FIELD(twheel_reopen, flags, 4, 4);
	FIELD(twheel_reopen, event_size, 8, 4);
	FIELD(twheel_reopen, reserved, 12, 4);
}

TEST(event_has_its_layout)
{
	SIZE(twheel_event, 40);
	FIELD(twheel_event, id, 0, 8);
	FIELD(twheel_event, user_data, 8, 8);
	FIELD(twheel_event, deadline_ns, 16, 8);
	FIELD(twheel_event, fired_ns, 24, 8);
	FIELD(twheel_event, count, 32, 4);
	FIELD(twheel_event, flags, 36, 4);
}

TEST(commands_have_their_numbers)
{
	NUMBER(0xf700, TWHEEL_IOC_INFO);
	NUMBER(0xf701, TWHEEL_IOC_SETUP);
	NUMBER(0xf702, TWHEEL_IOC_ARM);
	NUMBER(0xf703, TWHEEL_IOC_REARM);
	NUMBER(0xf704, TWHEEL_IOC_CANCEL);
	NUMBER(0xf705, TWHEEL_IOC_QUERY);
	NUMBER(0xf706, TWHEEL_IOC_LIST);
	NUMBER(0xf707, TWHEEL_IOC_DRAIN);
	NUMBER(0xf708, TWHEEL_IOC_ADVANCE);
	NUMBER(0xf709, TWHEEL_IOC_REOPEN);
}

TEST(constants_have_their_numbers)
{
	NUMBER(0x7fffffffffffffffULL, TWHEEL_TIME_NEVER);
	NUMBER(4096U, TWHEEL_SIZE_MAX);
	NUMBER(0x101, TWHEEL_CLOCK_MONOTONIC);
	NUMBER(0x102, TWHEEL_CLOCK_BOOTTIME);
	NUMBER(0x103, TWHEEL_CLOCK_REALTIME);
	NUMBER(0x104, TWHEEL_CLOCK_TAI);
	NUMBER(0x105, TWHEEL_CLOCK_VIRTUAL);
	NUMBER(1000ULL, TWHEEL_TICK_MIN_NS);
	NUMBER(3600000000000ULL, TWHEEL_TICK_MAX_NS);
	NUMBER(1000000ULL, TWHEEL_TICK_DEFAULT_NS);
	NUMBER(4U, TWHEEL_SLOTS_MIN);
	NUMBER(1048576U, TWHEEL_SLOTS_MAX);
	NUMBER(100000000ULL, TWHEEL_ROUND_MIN_NS);
	NUMBER(40U, TWHEEL_EVENT_SIZE_MIN);
	NUMBER(4096U, TWHEEL_EVENT_SIZE_MAX);
	NUMBER(3600000000000ULL, TWHEEL_SLACK_MAX_NS);
	NUMBER(32767U, TWHEEL_SLACK_TICKS_MAX);
	NUMBER(16U, TWHEEL_NAME_SIZE);
	NUMBER(32, TWHEEL_LATE_TICKS);
	NUMBER(1U, TWHEEL_INFO_WALK);
	NUMBER(1U, TWHEEL_SETUP_ONE_LEVEL);
	NUMBER(2U, TWHEEL_SETUP_KEYED);
	NUMBER(1U, TWHEEL_VECTOR_BY_KEY);
	NUMBER(1ULL, TWHEEL_FEATURE_URING_CMD);
	NUMBER(0, TWHEEL_WHEEL_NEW);
	NUMBER(1, TWHEEL_WHEEL_RUNNING);
	NUMBER(2, TWHEEL_WHEEL_DRAINING);
	NUMBER(3, TWHEEL_WHEEL_DRAINED);
	NUMBER(1U, TWHEEL_ARM_ABSOLUTE);
	NUMBER(2U, TWHEEL_ARM_FIXED_DELAY);
	NUMBER(4U, TWHEEL_ARM_IF_ABSENT);
	NUMBER(8U, TWHEEL_ARM_IF_PRESENT);
	NUMBER(16U, TWHEEL_ARM_ONLY_LATER);
	NUMBER(32U, TWHEEL_ARM_ONLY_EARLIER);
	NUMBER(1, TWHEEL_CREATED);
	NUMBER(2, TWHEEL_WAS_PENDING);
	NUMBER(3, TWHEEL_WAS_UNREAD);
	NUMBER(1, TWHEEL_STATE_PENDING);
	NUMBER(2, TWHEEL_STATE_EXPIRED);
	NUMBER(3, TWHEEL_STATE_DRAINED);
	NUMBER(1U, TWHEEL_EVENT_DRAINED);
	NUMBER(2U, TWHEEL_EVENT_ENDED);
	NUMBER(65536U, TWHEEL_RECORD_ABSENT_OK);
	NUMBER(65536U, TWHEEL_STATUS_LAST_EVENT);
	NUMBER(1, TWHEEL_OP_ARM);
	NUMBER(2, TWHEEL_OP_REARM);
	NUMBER(3, TWHEEL_OP_CANCEL);
	NUMBER(4, TWHEEL_OP_SETUP);
	NUMBER(28, TWHEEL_REFRESH_GEN_BITS);
	NUMBER(0x0fffffffU, TWHEEL_REFRESH_GEN_MASK);
}

/* One wheel with a virtual clock and ticks of 1 ms: it is exact, and as fast as possible. */
FIXTURE(abi) {
	int fd;
};

FIXTURE_SETUP(abi)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = MS,
		.slots = 256,
		.max_pending = 16,
		.name = "fifteen-letters",
	};

	self->fd = open("/dev/twheel", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, ioctl(self->fd, TWHEEL_IOC_SETUP, &setup));
}

FIXTURE_TEARDOWN(abi)
{
	close(self->fd);
}

static int vector(int fd, unsigned long cmd, void *entry, __u32 entry_size)
{
	struct twheel_vector vec = {
		.size = sizeof(vec),
		.entry_size = entry_size,
		.nr = 1,
		.entries = (__u64)(uintptr_t)entry,
		.nr_done = 0x5a5a,
	};
	int ret = ioctl(fd, cmd, &vec);

	/* One element is attempted, whatever its result. */
	return ret < 0 || vec.nr_done == 1 ? ret : -1;
}

/* Five seconds ahead need more than 32 bits. */
static __u64 arm(int fd)
{
	struct twheel_arm entry = {
		.expires_ns = 5000 * MS,
		.user_data = COOKIE,
		.id = ~0ULL,
		.result = 0x5a5a,
	};

	if (vector(fd, TWHEEL_IOC_ARM, &entry, sizeof(entry)) != 1)
		return 0;
	return entry.result == TWHEEL_CREATED ? entry.id : 0;
}

static int advance(int fd, __u64 to_ns)
{
	struct twheel_advance adv = { .size = sizeof(adv), .to_ns = to_ns };

	return ioctl(fd, TWHEEL_IOC_ADVANCE, &adv);
}

TEST_F(abi, info_reads_back_the_setup)
{
	struct twheel_info info;

	memset(&info, 0x5a, sizeof(info));
	info.size = sizeof(info);
	info.flags = TWHEEL_INFO_WALK;
	ASSERT_EQ(0, ioctl(self->fd, TWHEEL_IOC_INFO, &info));
	EXPECT_EQ(sizeof(info), info.size);
	EXPECT_EQ(TWHEEL_CLOCK_VIRTUAL, info.clock);
	EXPECT_EQ(MS, info.tick_ns);
	EXPECT_EQ(256, info.slots);
	EXPECT_EQ(16, info.max_pending);
	EXPECT_LE(16, info.max_pending_limit);
	EXPECT_LE(1, info.max_vector);
	EXPECT_EQ(0, info.setup_flags);
	EXPECT_EQ(sizeof(struct twheel_event), info.event_size);
	EXPECT_EQ(0, info.slack_ns);
	EXPECT_EQ(TWHEEL_WHEEL_RUNNING, info.state);
	/* This flag is there only if the kernel has io_uring, see twheel_io_uring. */
	EXPECT_EQ(0, info.features & ~TWHEEL_FEATURE_URING_CMD);
	EXPECT_EQ(0, info.now_ns);
	EXPECT_EQ(TWHEEL_TIME_NEVER, info.next_expiry_ns);
	EXPECT_EQ(0, info.armed);
	EXPECT_EQ(0, info.pending);
	EXPECT_EQ(0, info.unread);
	EXPECT_EQ(0, info.live);
	EXPECT_EQ(0, info.expirations);
	EXPECT_EQ(0, info.delivered);
	EXPECT_EQ(0, info.completed);
	EXPECT_EQ(0, info.cancelled);
	EXPECT_EQ(0, info.revoked);
	EXPECT_EQ(0, info.drained);
	EXPECT_EQ(0, info.rearmed);
	EXPECT_EQ(TWHEEL_TIME_NEVER, info.alarm_ns);
	EXPECT_EQ(0, memcmp("fifteen-letters", info.name, TWHEEL_NAME_SIZE));
}

TEST_F(abi, each_field_of_an_event_is_read)
{
	struct pollfd pfd = { .fd = self->fd, .events = POLLIN };
	struct twheel_event event;
	__u64 id = arm(self->fd);

	ASSERT_NE(0, id);
	ASSERT_EQ(0, advance(self->fd, 5000 * MS));
	ASSERT_EQ(1, poll(&pfd, 1, 0));
	EXPECT_EQ(POLLIN, pfd.revents);
	memset(&event, 0x5a, sizeof(event));
	ASSERT_EQ(sizeof(event), read(self->fd, &event, sizeof(event)));
	EXPECT_EQ(id, event.id);
	EXPECT_EQ(COOKIE, event.user_data);
	EXPECT_EQ(5000 * MS, event.deadline_ns);
	EXPECT_EQ(5000 * MS, event.fired_ns);
	EXPECT_EQ(1, event.count);
	EXPECT_EQ(TWHEEL_EVENT_ENDED, event.flags);
}

TEST_F(abi, rearm_moves_the_deadline)
{
	struct twheel_arm entry = { .expires_ns = 6000 * MS };
	struct twheel_event event;

	entry.id = arm(self->fd);
	ASSERT_NE(0, entry.id);
	ASSERT_EQ(1, vector(self->fd, TWHEEL_IOC_REARM, &entry, sizeof(entry)));
	EXPECT_EQ(TWHEEL_WAS_PENDING, entry.result);
	ASSERT_EQ(0, advance(self->fd, 5999 * MS));
	EXPECT_EQ(-1, read(self->fd, &event, sizeof(event)));
	EXPECT_EQ(EAGAIN, errno);
	ASSERT_EQ(0, advance(self->fd, 6000 * MS));
	memset(&event, 0x5a, sizeof(event));
	ASSERT_EQ(sizeof(event), read(self->fd, &event, sizeof(event)));
	EXPECT_EQ(entry.id, event.id);
	EXPECT_EQ(6000 * MS, event.deadline_ns);
}

TEST_F(abi, cancel_says_what_it_found)
{
	struct twheel_cancel entry = { .result = 0x5a5a };

	entry.id = arm(self->fd);
	ASSERT_NE(0, entry.id);
	ASSERT_EQ(1, vector(self->fd, TWHEEL_IOC_CANCEL, &entry, sizeof(entry)));
	EXPECT_EQ(TWHEEL_WAS_PENDING, entry.result);
	entry.result = -0x5a5a;
	ASSERT_EQ(0, vector(self->fd, TWHEEL_IOC_CANCEL, &entry, sizeof(entry)));
	EXPECT_EQ(-ENOENT, entry.result);
}

TEST_F(abi, query_reports_the_state)
{
	struct twheel_status row;
	__u64 id = arm(self->fd);

	ASSERT_NE(0, id);
	ASSERT_EQ(0, advance(self->fd, 1000 * MS));
	memset(&row, 0x5a, sizeof(row));
	row.id = id;
	ASSERT_EQ(1, vector(self->fd, TWHEEL_IOC_QUERY, &row, sizeof(row)));
	EXPECT_EQ(id, row.id);
	EXPECT_EQ(0, row.result);
	EXPECT_EQ(TWHEEL_STATE_PENDING, row.state);
	EXPECT_EQ(COOKIE, row.user_data);
	EXPECT_EQ(5000 * MS, row.deadline_ns);
	EXPECT_EQ(4000 * MS, row.left_ns);
	EXPECT_EQ(0, row.interval_ns);
	EXPECT_EQ(0, row.flags);
	EXPECT_EQ(0, row.repeats_left);
	EXPECT_EQ(0, row.count);
	EXPECT_EQ(0, row.deliveries);
	EXPECT_EQ(0, row.slack_ticks);
	EXPECT_EQ(0, row.reserved);
}

TEST_F(abi, list_shows_the_row_and_ends)
{
	struct twheel_status rows[4];
	struct twheel_list list = {
		.size = sizeof(list),
		.entry_size = sizeof(rows[0]),
		.nr = ARRAY_SIZE(rows),
		.entries = (__u64)(uintptr_t)rows,
	};
	__u64 id = arm(self->fd);

	ASSERT_NE(0, id);
	memset(rows, 0x5a, sizeof(rows));
	ASSERT_EQ(1, ioctl(self->fd, TWHEEL_IOC_LIST, &list));
	EXPECT_EQ(id, rows[0].id);
	EXPECT_EQ(0, rows[0].result);
	EXPECT_EQ(TWHEEL_STATE_PENDING, rows[0].state);
	EXPECT_EQ(COOKIE, rows[0].user_data);
	EXPECT_EQ(5000 * MS, rows[0].deadline_ns);
	ASSERT_EQ(0, ioctl(self->fd, TWHEEL_IOC_LIST, &list));
}

/* A 32-bit program may have words that are not aligned to 8 bytes. */
TEST_F(abi, elements_are_at_a_multiple_of_8_and_the_vector_is_anywhere)
{
	struct twheel_status rows[2] = {};
	unsigned char bytes[sizeof(struct twheel_vector) + 4];
	struct twheel_vector vec = {
		.size = sizeof(vec),
		.entry_size = sizeof(rows[0]),
		.nr = 1,
		.entries = (__u64)(uintptr_t)rows,
	};

	rows[0].id = arm(self->fd);
	ASSERT_NE(0, rows[0].id);
	memcpy(bytes + 4, &vec, sizeof(vec));
	EXPECT_EQ(1, ioctl(self->fd, TWHEEL_IOC_QUERY, bytes + 4));
	EXPECT_EQ(COOKIE, rows[0].user_data);
	vec.entries += 4;
	EXPECT_EQ(-1, ioctl(self->fd, TWHEEL_IOC_QUERY, &vec));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(abi, a_record_arms)
{
	const struct twheel_record record = {
		.op = TWHEEL_OP_ARM,
		.key = COOKIE,
		.expires_ns = 5000 * MS,
	};
	struct twheel_event event;

	ASSERT_EQ(sizeof(record), write(self->fd, &record, sizeof(record)));
	ASSERT_EQ(0, advance(self->fd, 5000 * MS));
	memset(&event, 0x5a, sizeof(event));
	ASSERT_EQ(sizeof(event), read(self->fd, &event, sizeof(event)));
	EXPECT_EQ(COOKIE, event.user_data);
	EXPECT_EQ(5000 * MS, event.deadline_ns);
}

TEST_F(abi, a_record_and_an_event_lie_at_any_address)
{
	struct twheel_record record = { .op = TWHEEL_OP_ARM, .flags = TWHEEL_ARM_ABSOLUTE };
	unsigned char bytes[sizeof(record) + 8];
	struct twheel_event event;
	int i;

	for (i = 0; i < 8; i++) {
		record.key = COOKIE + i;
		record.expires_ns = (i + 1) * MS;
		memcpy(bytes + i, &record, sizeof(record));
		ASSERT_EQ(sizeof(record), write(self->fd, bytes + i, sizeof(record)));
		ASSERT_EQ(0, advance(self->fd, record.expires_ns));
		memset(bytes, 0x5a, sizeof(bytes));
		ASSERT_EQ(sizeof(event), read(self->fd, bytes + i, sizeof(event)));
		memcpy(&event, bytes + i, sizeof(event));
		EXPECT_EQ(COOKIE + i, event.user_data);
		EXPECT_EQ(record.expires_ns, event.deadline_ns);
	}
}

TEST_F(abi, drain_hands_out_the_timeouts_left)
{
	struct twheel_event event;
	__u64 id = arm(self->fd);

	ASSERT_NE(0, id);
	ASSERT_EQ(0, ioctl(self->fd, TWHEEL_IOC_DRAIN, 0));
	memset(&event, 0x5a, sizeof(event));
	ASSERT_EQ(sizeof(event), read(self->fd, &event, sizeof(event)));
	EXPECT_EQ(id, event.id);
	EXPECT_EQ(COOKIE, event.user_data);
	EXPECT_EQ(5000 * MS, event.deadline_ns);
	EXPECT_EQ(0, event.fired_ns);
	EXPECT_EQ(0, event.count);
	EXPECT_EQ(TWHEEL_EVENT_DRAINED | TWHEEL_EVENT_ENDED, event.flags);
	EXPECT_EQ(0, read(self->fd, &event, sizeof(event)));
}

TEST_HARNESS_MAIN
