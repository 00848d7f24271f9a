// SPDX-License-Identifier: GPL-2.0
/*
 * <twheel/device.h> without the device, for cases that can hardly be forced there.  The calls of
 * lib/device.c come here, and get a kernel's answers: a vector that is stopped in the middle, a
 * kernel or a program of another version, no memory.
 */
#include <twheel/device.h>

#include "twheel_test.h"

#include <stdarg.h>
#include <sys/mman.h>

#define CALLS	16

/* The answers of the device, and the calls that it got. */
static struct {
	struct twheel_info info;
	int setup_error;
	int vector_errors[CALLS];	/* errors of the calls, in their order */
	uint32_t stops[CALLS];		/* each is stopped after so many elements; 0: it is not */
	uint32_t claims;		/* if not 0, this is nr_done, whatever was done */
	struct twheel_vector vectors[CALLS];
	unsigned long commands[CALLS];
	unsigned int nr;		/* number of vectors */
	unsigned int nr_setups;
	struct twheel_setup setup;	/* the last one */
	unsigned int memory;		/* allocations until one fails; 0: none fails */
	unsigned int nr_mmaps;
	int mmap_error;
	int fcntl_error;
	const void *events;
	ssize_t nr_bytes;
	unsigned int nr_reads;
	size_t read_size;
} fake;

static int fail(int error)
{
	errno = error;
	return -1;
}

/* Do each element, up to the point at which the call stops. */
static int fake_vector(unsigned long command, struct twheel_vector *vector)
{
	unsigned char *element = (unsigned char *)(uintptr_t)vector->entries;
	unsigned int call = fake.nr++;
	uint32_t i, done = fake.stops[call] ?: vector->nr;

	fake.commands[call] = command;
	fake.vectors[call] = *vector;
	if (fake.vector_errors[call])
		return fail(fake.vector_errors[call]);
	for (i = 0; i < done; i++, element += vector->entry_size) {
		if (command == TWHEEL_IOC_CANCEL)
			((struct twheel_cancel *)element)->result = TWHEEL_WAS_PENDING;
		else if (command == TWHEEL_IOC_QUERY)
			((struct twheel_status *)element)->result = 0;
		else
			((struct twheel_arm *)element)->result = TWHEEL_CREATED;
	}
	vector->nr_done = fake.claims ? fake.claims - 1 : done;
	return done;
}

int __wrap_ioctl(int fd, unsigned long command, ...)
{
	va_list arguments;
	void *argument;

	(void)fd;
	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	switch (command) {
	case TWHEEL_IOC_SETUP:
		fake.nr_setups++;
		memcpy(&fake.setup, argument, sizeof(fake.setup));
		return fake.setup_error ? fail(fake.setup_error) : 0;
	case TWHEEL_IOC_INFO:
		memcpy(argument, &fake.info, sizeof(fake.info));
		return 0;
	default:
		return fake_vector(command, argument);
	}
}

/* The functions of the C library; the client calls __wrap_..., see lib.mk. */
__typeof__(calloc) __real_calloc;
__typeof__(malloc) __real_malloc;
__typeof__(free) __real_free;
__typeof__(mmap) __real_mmap;
__typeof__(fcntl) __real_fcntl;

/* How many blocks are allocated and not freed. */
static int blocks;

static bool out_of_memory(void)
{
	if (fake.memory && !--fake.memory)
		return true;
	blocks++;
	return false;
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return out_of_memory() ? NULL : __real_calloc(nr, size);
}

void *__wrap_malloc(size_t size)
{
	return out_of_memory() ? NULL : __real_malloc(size);
}

void __wrap_free(void *memory)
{
	blocks -= !!memory;
	__real_free(memory);
}

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	if (fd < 0)
		return __real_mmap(at, size, prot, flags, fd, offset);
	fake.nr_mmaps++;
	if (fake.mmap_error) {
		errno = fake.mmap_error;
		return MAP_FAILED;
	}
	return __real_mmap(at, size, prot, flags | MAP_ANONYMOUS, -1, 0);
}

int __wrap_fcntl(int fd, int command, ...)
{
	va_list arguments;
	int argument;

	va_start(arguments, command);
	argument = va_arg(arguments, int);
	va_end(arguments);
	return fake.fcntl_error ? fail(fake.fcntl_error) : __real_fcntl(fd, command, argument);
}

ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
	(void)fd;
	fake.nr_reads++;
	fake.read_size = size;
	if (fake.nr_bytes > 0)
		memcpy(buffer, fake.events, size < (size_t)fake.nr_bytes ? size :
		       (size_t)fake.nr_bytes);
	return fake.nr_bytes < 0 ? fail(-fake.nr_bytes) : fake.nr_bytes;
}

/* ---- */

static int open_fake(struct twheel_device **d)
{
	return twheel_device_open(d, "/dev/null", 0, NULL);
}

FIXTURE(client) {
	struct twheel_device *d;
	struct twheel_batch *b;
	int blocks;		/* blocks before the test: also the C library's, if it is static */
};

FIXTURE_SETUP(client)
{
	self->blocks = blocks;
	memset(&fake, 0, sizeof(fake));
	fake.info = (struct twheel_info){
		.size = sizeof(fake.info),
		.event_size = TWHEEL_EVENT_SIZE_MIN,
		.max_vector = 1000,
		.refresh_size = 8192,
		.refresh_shift = 19,
		.now_ns = 42,
	};
	ASSERT_EQ(0, open_fake(&self->d));
	ASSERT_EQ(0, twheel_batch_open(&self->b, self->d, 32));
}

FIXTURE_TEARDOWN(client)
{
	twheel_batch_close(self->b);
	twheel_device_close(self->d);
	EXPECT_EQ(self->blocks, blocks);
}

/* Expect one system call: its command, its flags and its number of elements. */
static void expect_call(struct __test_metadata *_metadata, unsigned int call,
			unsigned long command, uint32_t flags, uint32_t nr)
{
	EXPECT_EQ(command, fake.commands[call]);
	EXPECT_EQ(flags, fake.vectors[call].flags);
	EXPECT_EQ(nr, fake.vectors[call].nr);
	EXPECT_EQ(sizeof(struct twheel_vector), fake.vectors[call].size);
	EXPECT_EQ(0, fake.vectors[call].reserved);
}

TEST_F(client, an_array_is_one_call)
{
	struct twheel_arm arms[4] = {};
	struct twheel_cancel cancels[2] = {};

	EXPECT_EQ(3, twheel_device_arm_many(self->d, arms, 3));
	EXPECT_EQ(2, twheel_device_rearm_many(self->d, arms, 2));
	EXPECT_EQ(4, twheel_device_rearm_key_many(self->d, arms, 4));
	EXPECT_EQ(1, twheel_device_cancel_many(self->d, cancels, 1));
	EXPECT_EQ(2, twheel_device_cancel_key_many(self->d, cancels, 2));
	ASSERT_EQ(5, fake.nr);
	expect_call(_metadata, 0, TWHEEL_IOC_ARM, 0, 3);
	expect_call(_metadata, 1, TWHEEL_IOC_REARM, 0, 2);
	expect_call(_metadata, 2, TWHEEL_IOC_REARM, TWHEEL_VECTOR_BY_KEY, 4);
	expect_call(_metadata, 3, TWHEEL_IOC_CANCEL, 0, 1);
	expect_call(_metadata, 4, TWHEEL_IOC_CANCEL, TWHEEL_VECTOR_BY_KEY, 2);
}

TEST_F(client, a_call_for_one_timeout_goes_by_its_id_or_by_its_key)
{
	struct twheel_status status = { .id = 7 };
	struct twheel_arm arm = { .id = 7 };

	EXPECT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &arm));
	EXPECT_EQ(TWHEEL_CREATED, twheel_device_rearm(self->d, &arm));
	EXPECT_EQ(TWHEEL_CREATED, twheel_device_rearm_key(self->d, &arm));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_device_cancel(self->d, 7));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_device_cancel_key(self->d, 7));
	EXPECT_EQ(0, twheel_device_query(self->d, &status));
	EXPECT_EQ(0, twheel_device_query_key(self->d, &status));
	ASSERT_EQ(7, fake.nr);
	expect_call(_metadata, 0, TWHEEL_IOC_ARM, 0, 1);
	expect_call(_metadata, 1, TWHEEL_IOC_REARM, 0, 1);
	expect_call(_metadata, 2, TWHEEL_IOC_REARM, TWHEEL_VECTOR_BY_KEY, 1);
	expect_call(_metadata, 3, TWHEEL_IOC_CANCEL, 0, 1);
	expect_call(_metadata, 4, TWHEEL_IOC_CANCEL, TWHEEL_VECTOR_BY_KEY, 1);
	expect_call(_metadata, 5, TWHEEL_IOC_QUERY, 0, 1);
	expect_call(_metadata, 6, TWHEEL_IOC_QUERY, TWHEEL_VECTOR_BY_KEY, 1);
}

TEST_F(client, an_empty_array_is_no_call)
{
	EXPECT_EQ(0, twheel_device_arm_many(self->d, NULL, 0));
	EXPECT_EQ(0, twheel_device_cancel_many(self->d, NULL, 0));
	EXPECT_EQ(0, fake.nr);
}

TEST_F(client, an_array_that_is_longer_than_a_vector_takes_several_calls)
{
	struct twheel_arm arms[7] = {};
	struct twheel_device *d;
	int i;

	fake.info.max_vector = 3;
	ASSERT_EQ(0, open_fake(&d));
	EXPECT_EQ(7, twheel_device_arm_many(d, arms, 7));
	ASSERT_EQ(3, fake.nr);
	for (i = 0; i < 3; i++) {
		expect_call(_metadata, i, TWHEEL_IOC_ARM, 0, i < 2 ? 3 : 1);
		EXPECT_EQ((uintptr_t)&arms[3 * i], fake.vectors[i].entries);
	}
	twheel_device_close(d);
}

TEST_F(client, a_call_that_is_stopped_goes_on_with_the_rest)
{
	struct twheel_arm arms[7] = {};
	int i;

	fake.stops[0] = 2;
	fake.stops[1] = 4;
	EXPECT_EQ(7, twheel_device_arm_many(self->d, arms, 7));
	ASSERT_EQ(3, fake.nr);
	expect_call(_metadata, 0, TWHEEL_IOC_ARM, 0, 7);
	expect_call(_metadata, 1, TWHEEL_IOC_ARM, 0, 5);
	expect_call(_metadata, 2, TWHEEL_IOC_ARM, 0, 1);
	EXPECT_EQ((uintptr_t)&arms[2], fake.vectors[1].entries);
	EXPECT_EQ((uintptr_t)&arms[6], fake.vectors[2].entries);
	for (i = 0; i < 7; i++)
		EXPECT_EQ(TWHEEL_CREATED, arms[i].result);
}

TEST_F(client, the_rest_of_a_call_that_cannot_go_on_has_its_errno)
{
	struct twheel_arm arms[6] = { [5].result = TW_POISON32 };
	int i;

	fake.stops[0] = 2;
	fake.vector_errors[1] = ESHUTDOWN;
	EXPECT_EQ(2, twheel_device_arm_many(self->d, arms, 5));
	for (i = 0; i < 5; i++)
		EXPECT_EQ(i < 2 ? TWHEEL_CREATED : -ESHUTDOWN, arms[i].result);
	EXPECT_EQ((__s32)TW_POISON32, arms[5].result);
	EXPECT_EQ(2, fake.nr);
}

TEST_F(client, a_driver_that_says_nothing_of_the_vector_ends_the_call)
{
	struct twheel_arm arm = {};

	fake.claims = 1 + 0;
	EXPECT_EQ(0, twheel_device_arm_many(self->d, &arm, 1));
	EXPECT_EQ(-EIO, arm.result);
	EXPECT_EQ(-EIO, twheel_device_arm(self->d, &arm));
	fake.claims = 1 + 2;
	EXPECT_EQ(0, twheel_device_arm_many(self->d, &arm, 1));
	EXPECT_EQ(-EIO, arm.result);
	EXPECT_EQ(-EIO, twheel_device_cancel(self->d, 1));
	EXPECT_EQ(4, fake.nr);
}

TEST_F(client, elements_are_as_long_as_those_of_a_program_of_a_later_header)
{
	struct { struct twheel_arm known; unsigned char more[16]; } arms[5];
	int i, k;

	memset(arms, TW_POISON, sizeof(arms));
	fake.stops[0] = 2;
	fake.vector_errors[1] = ENOSPC;
	EXPECT_EQ(2, _twheel_device_vector(self->d, TWHEEL_IOC_ARM, 0, arms, sizeof(arms[0]),
					   offsetof(struct twheel_arm, result), 4));
	EXPECT_EQ(sizeof(arms[0]), fake.vectors[1].entry_size);
	EXPECT_EQ((uintptr_t)&arms[2], fake.vectors[1].entries);
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(i < 2 ? TWHEEL_CREATED : i < 4 ? -ENOSPC : (__s32)TW_POISON32,
			  arms[i].known.result);
		for (k = 0; k < 16; k++)
			EXPECT_EQ(TW_POISON, arms[i].more[k]);
	}
}

TEST_F(client, a_run_of_one_kind_in_a_batch_is_one_call)
{
	int i;

	for (i = 0; i < 3; i++)
		twheel_batch_arm(self->b, i, TW_SEC);
	for (i = 0; i < 2; i++)
		twheel_batch_rearm(self->b, i, TW_SEC);
	for (i = 0; i < 4; i++)
		twheel_batch_rearm_key(self->b, i, TW_SEC);
	twheel_batch_cancel(self->b, 1);
	twheel_batch_cancel_key(self->b, 2);
	twheel_batch_cancel_key(self->b, 3);
	twheel_batch_arm(self->b, 4, TW_SEC);
	EXPECT_EQ(13, twheel_batch_submit(self->b));
	ASSERT_EQ(6, fake.nr);
	expect_call(_metadata, 0, TWHEEL_IOC_ARM, 0, 3);
	expect_call(_metadata, 1, TWHEEL_IOC_REARM, 0, 2);
	expect_call(_metadata, 2, TWHEEL_IOC_REARM, TWHEEL_VECTOR_BY_KEY, 4);
	expect_call(_metadata, 3, TWHEEL_IOC_CANCEL, 0, 1);
	expect_call(_metadata, 4, TWHEEL_IOC_CANCEL, TWHEEL_VECTOR_BY_KEY, 2);
	expect_call(_metadata, 5, TWHEEL_IOC_ARM, 0, 1);
}

TEST_F(client, a_call_of_a_batch_that_is_stopped_goes_on_with_the_rest)
{
	int i;

	for (i = 0; i < 7; i++)
		twheel_batch_arm(self->b, i, TW_SEC);
	twheel_batch_cancel(self->b, 1);
	fake.stops[0] = 2;
	fake.stops[1] = 4;
	EXPECT_EQ(8, twheel_batch_submit(self->b));
	ASSERT_EQ(4, fake.nr);
	expect_call(_metadata, 0, TWHEEL_IOC_ARM, 0, 7);
	expect_call(_metadata, 1, TWHEEL_IOC_ARM, 0, 5);
	expect_call(_metadata, 2, TWHEEL_IOC_ARM, 0, 1);
	expect_call(_metadata, 3, TWHEEL_IOC_CANCEL, 0, 1);
	EXPECT_EQ(fake.vectors[0].entries + 2 * sizeof(struct twheel_arm),
		  fake.vectors[1].entries);
	for (i = 0; i < 7; i++)
		EXPECT_EQ(TWHEEL_CREATED, twheel_batch_result(self->b, i));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_batch_result(self->b, 7));
}

TEST_F(client, the_rest_of_a_call_of_a_batch_that_cannot_go_on_has_its_errno)
{
	int i;

	for (i = 0; i < 5; i++)
		twheel_batch_arm(self->b, i, TW_SEC);
	twheel_batch_cancel(self->b, 1);
	fake.stops[0] = 2;
	fake.vector_errors[1] = ESHUTDOWN;
	EXPECT_EQ(3, twheel_batch_submit(self->b));
	for (i = 0; i < 5; i++)
		EXPECT_EQ(i < 2 ? TWHEEL_CREATED : -ESHUTDOWN, twheel_batch_result(self->b, i));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_batch_result(self->b, 5));
	EXPECT_EQ(0, twheel_batch_submit(self->b));
	EXPECT_EQ(3, fake.nr);
}

TEST_F(client, a_driver_that_says_nothing_of_the_vector_ends_the_call_of_a_batch)
{
	struct twheel_arm arm = {};

	twheel_batch_arm(self->b, 1, TW_SEC);
	fake.claims = 1 + 0;
	EXPECT_EQ(0, twheel_batch_submit(self->b));
	EXPECT_EQ(-EIO, twheel_batch_result(self->b, 0));
	EXPECT_EQ(-EIO, twheel_device_arm(self->d, &arm));
	fake.claims = 1 + 2;
	twheel_batch_arm(self->b, 1, TW_SEC);
	EXPECT_EQ(0, twheel_batch_submit(self->b));
	EXPECT_EQ(-EIO, twheel_batch_result(self->b, 1));
	EXPECT_EQ(-EIO, twheel_device_cancel(self->d, 1));
}

/* In a program of a later header, the rest of each element is zero, also when it is reused. */
TEST_F(client, elements_of_a_batch_are_as_long_as_those_of_a_program_of_a_later_header)
{
	struct twheel_batch *b;
	unsigned char *element;
	int i, k, round;

	ASSERT_EQ(0, _twheel_batch_open(&b, self->d, 4, 72));
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 4; i++) {
			const int known = i < 2 ? sizeof(struct twheel_arm) :
						  sizeof(struct twheel_cancel);
			const int size = i < 2 ? 72 : 24;

			element = (unsigned char *)(i < 2 ?
				_twheel_batch_add(b, TWHEEL_IOC_ARM, 0, size,
						  offsetof(struct twheel_arm, id), 0) :
				_twheel_batch_add(b, TWHEEL_IOC_CANCEL, 0, size,
						  offsetof(struct twheel_cancel, id), i)).arm;
			for (k = known; k < size; k++) {
				EXPECT_EQ(0, element[k]);
				element[k] = TW_POISON;
			}
			EXPECT_EQ(-EINPROGRESS, twheel_batch_result(b, i));
			EXPECT_EQ(i < 2 ? 0 : i, twheel_batch_id(b, i));
		}
		EXPECT_EQ(NULL, twheel_batch_cancel(b, i));
		EXPECT_EQ(4, twheel_batch_submit(b));
		EXPECT_EQ(72, fake.vectors[2 * round].entry_size);
		EXPECT_EQ(24, fake.vectors[2 * round + 1].entry_size);
		EXPECT_EQ(TWHEEL_CREATED, twheel_batch_result(b, 1));
		EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_batch_result(b, 3));
		twheel_batch_reset(b);
	}
	twheel_batch_close(b);
	EXPECT_EQ(-EINVAL, _twheel_batch_open(&b, self->d, 1000, SIZE_MAX / 1000));
	EXPECT_EQ(NULL, b);
}

TEST_F(client, a_batch_refuses_an_element_that_is_longer_than_it_was_opened_for)
{
	struct twheel_batch *b;

	ASSERT_EQ(0, _twheel_batch_open(&b, self->d, 2, sizeof(struct twheel_cancel)));
	EXPECT_EQ(NULL, twheel_batch_arm(b, 1, TW_SEC));
	EXPECT_EQ(0, twheel_batch_nr(b));
	EXPECT_NE(NULL, twheel_batch_cancel(b, 2));
	EXPECT_EQ(1, twheel_batch_submit(b));
	EXPECT_EQ(sizeof(struct twheel_cancel), fake.vectors[0].entry_size);
	twheel_batch_close(b);
}

/* If two parts of a program were compiled with different headers, they share a batch. */
TEST_F(client, elements_of_one_kind_and_two_lengths_are_two_calls)
{
	struct twheel_batch *b;

	ASSERT_EQ(0, _twheel_batch_open(&b, self->d, 2, 72));
	ASSERT_NE(NULL, twheel_batch_arm(b, 1, TW_SEC));
	ASSERT_NE(NULL, _twheel_batch_add(b, TWHEEL_IOC_ARM, 0, 72,
					  offsetof(struct twheel_arm, id), 0).arm);
	EXPECT_EQ(2, twheel_batch_submit(b));
	ASSERT_EQ(2, fake.nr);
	EXPECT_EQ(sizeof(struct twheel_arm), fake.vectors[0].entry_size);
	EXPECT_EQ(72, fake.vectors[1].entry_size);
	EXPECT_EQ(fake.vectors[0].entries + sizeof(struct twheel_arm), fake.vectors[1].entries);
	twheel_batch_close(b);
}

TEST_F(client, an_event_has_the_size_that_the_program_knows)
{
	struct later { struct twheel_event known; unsigned char more[24]; } later[3];
	struct twheel_event events[3] = { { .id = 1, .count = 9 }, { .id = 2 }, { .id = 3 } };
	struct twheel_event same[3];
	__u64 old[2 * 3];
	int i, k;

	fake.events = events;
	fake.nr_bytes = sizeof(events);
	memset(later, TW_POISON, sizeof(later));
	ASSERT_EQ(3, _twheel_device_read(self->d, &later[0].known, sizeof(later[0]), 3));
	EXPECT_EQ(9, later[0].known.count);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(i + 1, later[i].known.id);
		for (k = 0; k < 24; k++)
			EXPECT_EQ(0, later[i].more[k]);
	}
	/* If it is of an older header, nothing is written beyond its end. */
	memset(old, TW_POISON, sizeof(old));
	fake.nr_bytes = 2 * sizeof(events[0]);
	ASSERT_EQ(2, _twheel_device_read(self->d, (struct twheel_event *)old, 16, 3));
	EXPECT_EQ(1, old[0]);
	EXPECT_EQ(2, old[2]);
	EXPECT_EQ(TW_POISON64, old[4]);
	/* If it is of this header, the events go to their place at once. */
	fake.nr_bytes = sizeof(events);
	memset(same, TW_POISON, sizeof(same));
	ASSERT_EQ(3, twheel_device_read(self->d, same, 3));
	EXPECT_EQ(0, memcmp(same, events, sizeof(events)));
	EXPECT_EQ(3, fake.nr_reads);
}

TEST_F(client, as_many_events_are_asked_for_as_there_is_room_for)
{
	struct twheel_event events[4];
	struct twheel_device *d;

	EXPECT_EQ(0, twheel_device_read(self->d, events, 4));
	EXPECT_EQ(4 * sizeof(events[0]), fake.read_size);
	EXPECT_EQ(0, twheel_device_read(self->d, events, UINT32_MAX));
	EXPECT_EQ(65536 * sizeof(events[0]), fake.read_size);
	fake.info.event_size = TWHEEL_EVENT_SIZE_MAX;
	ASSERT_EQ(0, open_fake(&d));
	EXPECT_EQ(0, twheel_device_read(d, events, 1));
	EXPECT_EQ(TWHEEL_EVENT_SIZE_MAX, fake.read_size);
	EXPECT_EQ(0, twheel_device_read(d, events, 4));
	EXPECT_EQ(2 * TWHEEL_EVENT_SIZE_MAX, fake.read_size);
	twheel_device_close(d);
}

TEST_F(client, read_says_what_the_system_call_says)
{
	struct twheel_event event;

	EXPECT_EQ(0, twheel_device_read(self->d, &event, 1));
	fake.nr_bytes = -EINTR;
	EXPECT_EQ(-EINTR, twheel_device_read(self->d, &event, 1));
	fake.nr_bytes = -EAGAIN;
	EXPECT_EQ(-EAGAIN, twheel_device_read(self->d, &event, 1));
	fake.events = "ab";
	fake.nr_bytes = 2;
	EXPECT_EQ(-EIO, twheel_device_read(self->d, &event, 1));
	EXPECT_EQ(4, fake.nr_reads);
}

TEST_F(client, an_event_of_a_reader_has_the_size_that_the_program_knows)
{
	struct { struct twheel_event known; unsigned char more[24]; } later, old;
	struct twheel_event events[3] = { { .id = 1, .count = 9 }, { .id = 2 }, { .id = 3 } };
	struct twheel_reader *r;
	int i;

	fake.events = events;
	fake.nr_bytes = sizeof(events);
	ASSERT_EQ(0, twheel_reader_open(&r, self->d, 3));
	memset(&later, TW_POISON, sizeof(later));
	ASSERT_EQ(1, _twheel_reader_next(r, &later.known, sizeof(later)));
	EXPECT_EQ(1, later.known.id);
	EXPECT_EQ(9, later.known.count);
	for (i = 0; i < 24; i++)
		EXPECT_EQ(0, later.more[i]);
	/* If it is of an older header, nothing is written beyond its end. */
	memset(&old, TW_POISON, sizeof(old));
	ASSERT_EQ(1, _twheel_reader_next(r, &old.known, 16));
	EXPECT_EQ(2, old.known.id);
	EXPECT_EQ(TW_POISON64, old.known.deadline_ns);
	EXPECT_EQ(1, twheel_reader_left(r));
	EXPECT_EQ(1, fake.nr_reads);
	twheel_reader_close(r);
}

TEST_F(client, a_reader_says_what_read_says)
{
	struct twheel_event event;
	struct twheel_reader *r;

	ASSERT_EQ(0, twheel_reader_open(&r, self->d, 3));
	EXPECT_EQ(0, twheel_reader_next(r, &event));
	fake.nr_bytes = -EINTR;
	EXPECT_EQ(-EINTR, twheel_reader_next(r, &event));
	fake.nr_bytes = -EAGAIN;
	EXPECT_EQ(-EAGAIN, twheel_reader_next(r, &event));
	fake.events = "ab";
	fake.nr_bytes = 2;
	EXPECT_EQ(-EIO, twheel_reader_next(r, &event));
	EXPECT_EQ(0, twheel_reader_left(r));
	EXPECT_EQ(4, fake.nr_reads);
	twheel_reader_close(r);
}

TEST_F(client, open_passes_the_setup_on_or_the_usual_one)
{
	const struct twheel_setup setup = {
		.size = sizeof(setup), .clock = TWHEEL_CLOCK_TAI, .tick_ns = TW_SEC, .slots = 64,
		.max_pending = 1000, .flags = TWHEEL_SETUP_KEYED, .event_size = 48,
		.slack_ns = 7,
	}, usual = { .size = sizeof(usual), .clock = TWHEEL_CLOCK_MONOTONIC };
	struct twheel_device *d;

	EXPECT_EQ(0, memcmp(&usual, &fake.setup, sizeof(usual)));
	ASSERT_EQ(0, twheel_device_open(&d, "/dev/null", O_NONBLOCK, &setup));
	EXPECT_EQ(0, memcmp(&setup, &fake.setup, sizeof(setup)));
	EXPECT_EQ(O_NONBLOCK | O_RDWR, fcntl(twheel_device_fd(d), F_GETFL) &
		  (O_NONBLOCK | O_ACCMODE));
	twheel_device_close(d);
}

/* If open fails, it leaves no descriptor behind. */
TEST_F(client, open_says_what_fails)
{
	static const int errors[] = { ENOSPC, ENOMEM, ENOTTY, EINVAL };
	struct twheel_device *d;
	int before = open("/dev/null", O_RDONLY);
	size_t i;

	close(before);
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		fake.setup_error = errors[i];
		EXPECT_EQ(-errors[i], open_fake(&d));
		EXPECT_EQ(NULL, d);
	}
	fake.setup_error = 0;
	fake.memory = 1;
	EXPECT_EQ(-ENOMEM, open_fake(&d));
	fake.fcntl_error = EMFILE;
	EXPECT_EQ(-EMFILE, open_fake(&d));
	fake.fcntl_error = 0;
	fake.info.max_vector = 0;
	EXPECT_EQ(-ENOTTY, open_fake(&d));
	fake.info.max_vector = 1000;
	fake.info.event_size = TWHEEL_EVENT_SIZE_MIN - 1;
	EXPECT_EQ(-ENOTTY, open_fake(&d));
	fake.info.event_size = TWHEEL_EVENT_SIZE_MAX + 1;
	EXPECT_EQ(-ENOTTY, open_fake(&d));
	EXPECT_EQ(before, open("/dev/null", O_RDONLY));
	close(before);
}

TEST_F(client, adopt_takes_a_wheel_that_somebody_else_set_up_or_drained)
{
	struct twheel_device *d;

	fake.setup_error = EBUSY;
	ASSERT_EQ(0, twheel_device_adopt(&d, open("/dev/null", O_RDWR), NULL));
	twheel_device_close(d);
	fake.setup_error = ESHUTDOWN;
	ASSERT_EQ(0, twheel_device_adopt(&d, open("/dev/null", O_RDWR), NULL));
	twheel_device_close(d);
	EXPECT_EQ(3, fake.nr_setups);
}

/* A daemon closes 0 to 2, and opens the device before it points them to something else. */
TEST_F(client, the_descriptor_is_above_2_and_closed_by_exec)
{
	int fd, saved = dup(0);
	struct twheel_device *d;

	ASSERT_LT(2, saved);
	close(0);
	ASSERT_EQ(0, open_fake(&d));
	fd = twheel_device_fd(d);
	EXPECT_LT(2, fd);
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	EXPECT_EQ(-1, fcntl(0, F_GETFD));
	twheel_device_close(d);
	ASSERT_EQ(0, dup2(saved, 0));
	close(saved);
	/* A descriptor that was given is closed by exec from then on. */
	ASSERT_EQ(0, twheel_device_adopt(&d, open("/dev/null", O_RDWR), NULL));
	EXPECT_EQ(FD_CLOEXEC, fcntl(twheel_device_fd(d), F_GETFD));
	twheel_device_close(d);
}

TEST_F(client, a_batch_and_a_reader_take_as_many_as_a_call_does)
{
	struct twheel_batch *b = (void *)1;
	struct twheel_reader *r = (void *)1;

	EXPECT_EQ(-EINVAL, twheel_batch_open(&b, self->d, 0));
	EXPECT_EQ(NULL, b);
	EXPECT_EQ(-EINVAL, twheel_batch_open(&b, self->d, 1001));
	ASSERT_EQ(0, twheel_batch_open(&b, self->d, 1000));
	twheel_batch_close(b);
	EXPECT_EQ(-EINVAL, twheel_reader_open(&r, self->d, 0));
	EXPECT_EQ(NULL, r);
	EXPECT_EQ(-EINVAL, twheel_reader_open(&r, self->d, 65537));
	ASSERT_EQ(0, twheel_reader_open(&r, self->d, 65536));
	twheel_reader_close(r);
}

TEST_F(client, an_element_of_a_batch_has_what_it_was_given)
{
	struct twheel_arm *arm = twheel_batch_arm(self->b, 7, TW_SEC);
	struct twheel_arm *moved = twheel_batch_rearm(self->b, 8, TW_MS);
	struct twheel_arm *keyed = twheel_batch_rearm_key(self->b, 9, TW_US);

	EXPECT_EQ(7, arm->user_data);
	EXPECT_EQ(TW_SEC, arm->expires_ns);
	EXPECT_EQ(0, arm->id);
	EXPECT_EQ(8, moved->id);
	EXPECT_EQ(TW_MS, moved->expires_ns);
	EXPECT_EQ(9, keyed->id);
	EXPECT_EQ(TW_US, keyed->expires_ns);
}

TEST_F(client, an_element_that_is_not_there_has_no_result_and_no_id)
{
	ASSERT_NE(NULL, twheel_batch_cancel(self->b, 7));
	EXPECT_EQ(-EINPROGRESS, twheel_batch_result(self->b, 0));
	EXPECT_EQ(7, twheel_batch_id(self->b, 0));
	EXPECT_EQ(-EINVAL, twheel_batch_result(self->b, 1));
	EXPECT_EQ(0, twheel_batch_id(self->b, 1));
}

TEST_F(client, a_batch_and_a_reader_say_that_there_is_no_memory)
{
	struct twheel_batch *b = (void *)1;
	struct twheel_reader *r = (void *)1;

	fake.memory = 1;
	EXPECT_EQ(-ENOMEM, twheel_batch_open(&b, self->d, 1));
	EXPECT_EQ(NULL, b);
	fake.memory = 1;
	EXPECT_EQ(-ENOMEM, twheel_reader_open(&r, self->d, 1));
	EXPECT_EQ(NULL, r);
}

TEST_F(client, nothing_is_allocated_after_the_batch_was_opened)
{
	int round, i;

	fake.memory = 1;
	for (round = 0; round < 4; round++) {
		for (i = 0; i < 32; i++)
			ASSERT_NE(NULL, twheel_batch_arm(self->b, i, TW_SEC));
		EXPECT_EQ(32, twheel_batch_submit(self->b));
		twheel_batch_reset(self->b);
	}
	EXPECT_EQ(1, fake.memory);
}

TEST_F(client, nothing_is_allocated_after_the_device_was_opened)
{
	struct twheel_arm arms[32] = {};
	struct twheel_event event;

	fake.memory = 1;
	EXPECT_EQ(32, twheel_device_arm_many(self->d, arms, 32));
	EXPECT_EQ(TWHEEL_CREATED, twheel_device_rearm(self->d, arms));
	EXPECT_EQ(0, twheel_device_read(self->d, &event, 1));
	EXPECT_EQ(1, fake.memory);
}

TEST_F(client, the_table_is_mapped_once)
{
	twheel_word_t *table, *again;
	uint32_t shift;

	ASSERT_EQ(0, twheel_device_map(self->d, &table, &shift));
	EXPECT_EQ(19, shift);
	ASSERT_EQ(0, twheel_device_map(self->d, &again, &shift));
	EXPECT_EQ(table, again);
	EXPECT_EQ(1, twheel_device_refresh(self->d, 3ULL << 32 | 1023, TW_SEC));
	EXPECT_EQ(twheel_refresh_deadline(TW_SEC, 19) | 3, table[1023]);
	EXPECT_EQ(-EINVAL, twheel_device_refresh(self->d, 3ULL << 32 | 1024, TW_SEC));
	EXPECT_EQ(1, fake.nr_mmaps);
}

static bool is_mapped(const void *page)
{
	return msync((void *)(uintptr_t)page, 1, MS_ASYNC) == 0;
}

TEST_F(client, close_unmaps_the_table)
{
	struct twheel_device *d;
	twheel_word_t *table;
	uint32_t shift;

	ASSERT_EQ(0, open_fake(&d));
	ASSERT_EQ(0, twheel_device_map(d, &table, &shift));
	EXPECT_TRUE(is_mapped(table));
	twheel_device_close(d);
	EXPECT_FALSE(is_mapped(table));
}

TEST_F(client, map_says_what_fails)
{
	static const int errors[] = { ENOMEM, ENOSPC, EACCES };
	twheel_word_t *table;
	uint32_t shift;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		fake.mmap_error = errors[i];
		EXPECT_EQ(-errors[i], twheel_device_map(self->d, &table, &shift));
		EXPECT_EQ(-errors[i], twheel_device_refresh(self->d, 1ULL << 32, TW_SEC));
	}
}

/* ---- the words ----------------------------------------------------------- */

TEST(a_deadline_is_rounded_up_to_a_grain)
{
	EXPECT_EQ(0, twheel_refresh_deadline(0, 19));
	EXPECT_EQ(1ULL << 28, twheel_refresh_deadline(1, 19));
	EXPECT_EQ(1ULL << 28, twheel_refresh_deadline(1 << 19, 19));
	EXPECT_EQ(2ULL << 28, twheel_refresh_deadline((1 << 19) + 1, 19));
	EXPECT_EQ(5ULL << 28, twheel_refresh_deadline(5, 0));
}

TEST(a_store_is_made_unless_the_generation_in_the_word_is_newer)
{
	static const struct {
		uint32_t in_the_word, of_the_id;
		int stored;
	} stores[] = {
		{ 5, 5, 1 }, { 4, 5, 1 }, { 6, 5, 0 }, { 5 + (1 << 27) - 1, 5, 0 },
		{ 5 + (1 << 27), 5, 1 }, { 5 + (1 << 27) + 1, 5, 1 },
		{ 0, 0x0fffffff, 0 }, { 0x0fffffff, 0x10000000, 1 },
		{ 0x0fffffff, 0x0ffffffe, 0 }, { 0, 0x10000000, 1 },
	};
	twheel_word_t table[8];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(stores); i++) {
		uint64_t id = (uint64_t)stores[i].of_the_id << 32 | 5;
		uint64_t before = 77ULL << 28 | stores[i].in_the_word;
		uint64_t after = 99ULL << 28 | (stores[i].of_the_id & TWHEEL_REFRESH_GEN_MASK);
		uint64_t expected = stores[i].stored ? after : before;

		memset(table, 0, sizeof(table));
		table[5] = before;
		EXPECT_EQ(stores[i].stored, twheel_refresh(table, id, 99ULL << 28));
		EXPECT_EQ(expected, table[5])
			TH_LOG("store %zu", i);
		twheel_refresh_blind(table, id, 99ULL << 28);
		EXPECT_EQ(after, table[5]);
		table[5] = 0;
		for (int k = 0; k < 8; k++)
			EXPECT_EQ(0, table[k]);
	}
}

TEST_HARNESS_MAIN
