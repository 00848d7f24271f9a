// SPDX-License-Identifier: GPL-2.0
/*
 * SETUP's event_size: the length of each event of read(). If a program has a newer header, it asks
 * for longer events than this kernel knows. It gets zeroes for the rest, and all rules of read() go
 * by that size (G4: if an event was not copied as a whole, it stays).
 */
#include "twheel_test.h"

#include <sys/mman.h>
#include <sys/uio.h>

#define KNOWN	((int)sizeof(struct twheel_event))
#define EVENTS	100	/* more than the kernel copies at a time */

FIXTURE(event_size) {
	int fd;
	__u32 size;		/* the size in force */
	char *bad;		/* this page faults; there is space for all events in front of it */
	char *room;		/* for one event less a byte more than all, poisoned */
};

FIXTURE_VARIANT(event_size) {
	__u32 asked;
};

FIXTURE_VARIANT_ADD(event_size, usual) { .asked = 0 };
FIXTURE_VARIANT_ADD(event_size, smallest) { .asked = TWHEEL_EVENT_SIZE_MIN };
FIXTURE_VARIANT_ADD(event_size, one_more_field) { .asked = TWHEEL_EVENT_SIZE_MIN + 8 };
FIXTURE_VARIANT_ADD(event_size, odd) { .asked = 1000 };
FIXTURE_VARIANT_ADD(event_size, largest) { .asked = TWHEEL_EVENT_SIZE_MAX };

static int wheel_of(__u32 event_size, int flags)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = TW_MS,
		.event_size = event_size,
	};

	return tw_open_setup(flags, &setup);
}

FIXTURE_SETUP(event_size)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t length = (EVENTS + 1) * TWHEEL_EVENT_SIZE_MAX;
	char *base = mmap(NULL, length + page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, base);
	ASSERT_EQ(0, mprotect(base + length, page, PROT_NONE));
	memset(base, TW_POISON, length);
	self->bad = base + length;
	self->room = base;
	self->size = variant->asked ?: TWHEEL_EVENT_SIZE_MIN;
	self->fd = wheel_of(variant->asked, O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(event_size)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Make unread events with user_data first to first + nr - 1, in this order. */
static void make_events(struct __test_metadata *_metadata, int fd, int first, int nr)
{
	struct twheel_info info;
	__u64 id;
	int i;

	ASSERT_EQ(0, tw_info(fd, &info));
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, tw_arm1(fd, 0, (i + 1) * TW_MS, 0, first + i, &id));
	ASSERT_EQ(0, tw_advance(fd, info.now_ns + nr * TW_MS));
}

/* Expect the events first to first + nr - 1 at bytes, each followed by zeroes. */
static void expect_events(struct __test_metadata *_metadata, const char *bytes, __u32 size,
			  int first, int nr)
{
	struct twheel_event event;
	__u32 k;
	int i;

	for (i = 0; i < nr; i++, bytes += size) {
		memcpy(&event, bytes, sizeof(event));
		ASSERT_EQ(first + i, event.user_data);
		ASSERT_EQ(1, event.count);
		ASSERT_EQ(TWHEEL_EVENT_ENDED, event.flags);
		for (k = KNOWN; k < size; k++)
			ASSERT_EQ(0, bytes[k]);
	}
}

static void expect_poison(struct __test_metadata *_metadata, const char *bytes, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		ASSERT_EQ(TW_POISON, (unsigned char)bytes[i]);
}

/* Return the result of read(), or -errno. */
static ssize_t read_bytes(int fd, void *to, size_t length)
{
	ssize_t ret = read(fd, to, length);

	return ret < 0 ? -errno : ret;
}

TEST_F(event_size, info_shows_the_size_of_events)
{
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(self->size, info.event_size);
}

TEST_F(event_size, event_size_is_the_stride_of_read_and_the_rest_is_zero)
{
	make_events(_metadata, self->fd, 0, EVENTS);
	ASSERT_EQ(EVENTS * self->size,
		  read_bytes(self->fd, self->room, (EVENTS + 1) * self->size));
	expect_events(_metadata, self->room, self->size, 0, EVENTS);
	expect_poison(_metadata, self->room + EVENTS * self->size, self->size);
}

TEST_F(event_size, an_event_that_does_not_fit_as_a_whole_stays)
{
	make_events(_metadata, self->fd, 0, 3);
	ASSERT_EQ(2 * self->size, read_bytes(self->fd, self->room, 3 * self->size - 1));
	expect_events(_metadata, self->room, self->size, 0, 2);
	expect_poison(_metadata, self->room + 2 * self->size, self->size);
	ASSERT_EQ(self->size, read_bytes(self->fd, self->room, 2 * self->size - 1));
	expect_events(_metadata, self->room, self->size, 2, 1);
}

TEST_F(event_size, a_buffer_short_of_one_event_says_einval)
{
	EXPECT_EQ(-EINVAL, read_bytes(self->fd, self->room, self->size - 1));
	EXPECT_EQ(-EAGAIN, read_bytes(self->fd, self->room, self->size));
	make_events(_metadata, self->fd, 0, 1);
	EXPECT_EQ(-EINVAL, read_bytes(self->fd, self->room, self->size - 1));
	EXPECT_EQ(-EINVAL, read_bytes(self->fd, self->room, 0));
	expect_poison(_metadata, self->room, self->size);
	ASSERT_EQ(self->size, read_bytes(self->fd, self->room, self->size));
	expect_events(_metadata, self->room, self->size, 0, 1);
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(-EINVAL, read_bytes(self->fd, self->room, self->size - 1));
	EXPECT_EQ(0, read_bytes(self->fd, self->room, self->size));
}

/* G4: the buffer ends anywhere, in the known part or in the zeroes. */
TEST_F(event_size, an_event_cut_by_a_fault_stays)
{
	const int step = self->size > 100 ? self->size / 20 + 3 : 8;
	struct twheel_info info;
	__u32 cut;

	for (cut = 0; cut < self->size; cut += step) {
		make_events(_metadata, self->fd, 0, 3);
		EXPECT_EQ(-EFAULT, read_bytes(self->fd, self->bad - cut, 3 * self->size));
		ASSERT_EQ(0, tw_info(self->fd, &info));
		EXPECT_EQ(3, info.unread);
		ASSERT_EQ(2 * self->size, read_bytes(self->fd, self->bad - 2 * self->size - cut,
						     3 * self->size));
		expect_events(_metadata, self->bad - 2 * self->size - cut, self->size, 0, 2);
		ASSERT_EQ(self->size, read_bytes(self->fd, self->room, 3 * self->size));
		expect_events(_metadata, self->room, self->size, 2, 1);
	}
}

/* G4: if an event faults in its middle, it is copied again, to its own place. */
TEST_F(event_size, a_read_into_fresh_memory_shifts_no_event)
{
	const size_t length = EVENTS * self->size;
	char *memory = tw_fresh_memory(length + 12);

	ASSERT_NE(NULL, memory);
	make_events(_metadata, self->fd, 0, EVENTS);
	ASSERT_EQ((ssize_t)length, read_bytes(self->fd, memory + 12, length));
	expect_events(_metadata, memory + 12, self->size, 0, EVENTS);
	munmap(memory, length + 12);
}

/* A single call may fault on any number of pages. */
TEST(a_read_into_much_fresh_memory_gets_all_events)
{
	const int nr = 1100, size = TWHEEL_EVENT_SIZE_MAX;
	int fd = wheel_of(size, O_NONBLOCK);
	char *memory = tw_fresh_memory(nr * size + 12);

	ASSERT_LE(0, fd);
	ASSERT_NE(NULL, memory);
	make_events(_metadata, fd, 0, nr);
	ASSERT_EQ(nr * size, read_bytes(fd, memory + 12, nr * size));
	expect_events(_metadata, memory + 12, size, 0, nr);
	munmap(memory, nr * size + 12);
	close(fd);
}

TEST_F(event_size, an_event_may_lie_across_the_pieces_of_readv)
{
	const struct iovec iov[] = {
		{ self->room, 12 },
		{ self->room + 12, self->size - 5 },
		{ self->room + 12 + self->size - 5, 2 * self->size },
	};

	make_events(_metadata, self->fd, 0, 3);
	ASSERT_EQ(3 * self->size, readv(self->fd, iov, ARRAY_SIZE(iov)));
	expect_events(_metadata, self->room, self->size, 0, 3);
	expect_poison(_metadata, self->room + 3 * self->size, self->size);
}

/* ---- when it is chosen ---------------------------------------------------- */

TEST(a_wheel_without_setup_has_the_smallest_events)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_event event;
	struct twheel_info info;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TWHEEL_EVENT_SIZE_MIN, info.event_size);
	ASSERT_EQ(0, tw_arm_in(fd, 0, &id));
	EXPECT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
	close(fd);
}

/* G4: the reader waited for an event that its buffer cannot hold. */
TEST(a_reader_that_slept_before_setup_gets_einval_for_a_short_buffer)
{
	const struct twheel_setup setup = { .event_size = 64 };
	char buffer[64];
	struct twheel_info info;
	int fd = tw_open(0);
	pid_t pid;
	__u64 id;

	ASSERT_LE(0, fd);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(read_bytes(fd, buffer, TWHEEL_EVENT_SIZE_MIN) == -EINVAL ? 0 : 1);
	ASSERT_EQ(0, tw_wait_asleep(pid));
	ASSERT_EQ(0, tw_setup_full(fd, &setup));
	ASSERT_EQ(0, tw_arm_in(fd, 0, &id));
	EXPECT_EQ(0, tw_reap(pid));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(1, info.unread);
	EXPECT_EQ(64, read_bytes(fd, buffer, sizeof(buffer)));
	close(fd);
}

TEST_HARNESS_MAIN
