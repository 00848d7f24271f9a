// SPDX-License-Identifier: GPL-2.0
/*
 * <twheel/device.h> without the device: what is hardly to be forced there.  The calls of
 * lib/device.c come here, which says what the kernel would: a vector that is stopped in the
 * middle, a kernel or a program of another version, memory that is not there.
 */
#include <twheel/device.h>

#include "twheel_test.h"

#include <stdarg.h>
#include <sys/mman.h>

#define CALLS	16

/* What the device says, and what it was asked. */
static struct {
	struct twheel_info info;
	int setup_error;
	int vector_errors[CALLS];	/* of the calls, in their order */
	uint32_t stops[CALLS];		/* each is stopped after so many; 0: it is not */
	uint32_t claims;		/* not 0: nr_done, whatever was done */
	struct twheel_vector vectors[CALLS];
	unsigned long commands[CALLS];
	unsigned int nr;		/* of vectors */
	unsigned int nr_setups;
	unsigned int memory;		/* allocations until one fails; 0: none does */
	unsigned int nr_mmaps;
	int mmap_error;
	int fcntl_error;
	const void *events;
	ssize_t nr_bytes;
	unsigned int nr_reads;
} fake;

static int fail(int error)
{
	errno = error;
	return -1;
}

/* Each element is done, up to where it stops. */
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
		return fake.setup_error ? fail(fake.setup_error) : 0;
	case TWHEEL_IOC_INFO:
		memcpy(argument, &fake.info, sizeof(fake.info));
		return 0;
	default:
		return fake_vector(command, argument);
	}
}

/* The functions of the C library; __wrap_ is what the client calls, see lib.mk. */
__typeof__(calloc) __real_calloc;
__typeof__(malloc) __real_malloc;
__typeof__(free) __real_free;
__typeof__(mmap) __real_mmap;
__typeof__(fcntl) __real_fcntl;

/* How many are allocated and not freed. */
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
	if (fake.nr_bytes > 0)
		memcpy(buffer, fake.events, size < (size_t)fake.nr_bytes ? size :
		       (size_t)fake.nr_bytes);
	return fake.nr_bytes < 0 ? fail(-fake.nr_bytes) : fake.nr_bytes;
}

/* ---- */

FIXTURE(client) {
	struct twheel_device_options options;
	struct twheel_device *d;
	struct twheel_batch *b;
	int blocks;		/* before: in a static program, those of the C library, too */
};

FIXTURE_SETUP(client)
{
	self->blocks = blocks;
	memset(&fake, 0, sizeof(fake));
	fake.info = (struct twheel_info){
		.size = sizeof(fake.info),
		.event_size = TWHEEL_EVENT_SIZE_MIN,
		.max_vector = 1000,
		.features = TWHEEL_FEATURE_REFRESH,
		.refresh_size = 8192,
		.refresh_shift = 19,
		.now_ns = 42,
	};
	self->options = (struct twheel_device_options){
		.size = sizeof(self->options), .path = "/dev/null",
	};
	ASSERT_EQ(0, twheel_device_open(&self->d, &self->options));
	ASSERT_EQ(0, twheel_batch_open(&self->b, self->d, 32));
}

FIXTURE_TEARDOWN(client)
{
	twheel_batch_close(self->b);
	twheel_device_close(self->d);
	EXPECT_EQ(self->blocks, blocks);
}

/* One system call each: command, flags and how many. */
static void expect_call(struct __test_metadata *_metadata, unsigned int call,
			unsigned long command, uint32_t flags, uint32_t nr)
{
	EXPECT_EQ(command, fake.commands[call]);
	EXPECT_EQ(flags, fake.vectors[call].flags);
	EXPECT_EQ(nr, fake.vectors[call].nr);
	EXPECT_EQ(sizeof(struct twheel_vector), fake.vectors[call].size);
	EXPECT_EQ(0, fake.vectors[call].reserved);
}

TEST_F(client, a_run_of_one_kind_is_one_call)
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

TEST_F(client, a_call_that_is_stopped_goes_on_with_the_rest)
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

TEST_F(client, the_rest_of_a_call_that_cannot_go_on_has_its_errno)
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

TEST_F(client, a_driver_that_says_nothing_of_the_vector_ends_the_call)
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

/* As a program of a later header has it: the rest of each element is zero, also when reused. */
TEST_F(client, elements_are_as_long_as_those_of_a_program_of_a_later_header)
{
	struct twheel_batch *b;
	unsigned char *arm;
	int i, k, round;

	ASSERT_EQ(0, _twheel_batch_open(&b, self->d, 4, 72, 24));
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 2; i++) {
			arm = (unsigned char *)twheel_batch_arm(b, i, TW_SEC);
			for (k = sizeof(struct twheel_arm); k < 72; k++) {
				EXPECT_EQ(0, arm[k]);
				arm[k] = TW_POISON;
			}
		}
		for (i = 0; i < 2; i++) {
			arm = (unsigned char *)twheel_batch_cancel(b, i);
			for (k = sizeof(struct twheel_cancel); k < 24; k++) {
				EXPECT_EQ(0, arm[k]);
				arm[k] = TW_POISON;
			}
		}
		EXPECT_EQ(NULL, twheel_batch_cancel(b, i));
		EXPECT_EQ(4, twheel_batch_submit(b));
		EXPECT_EQ(72, fake.vectors[2 * round].entry_size);
		EXPECT_EQ(24, fake.vectors[2 * round + 1].entry_size);
		EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_batch_result(b, 3));
		twheel_batch_reset(b);
	}
	twheel_batch_close(b);
	EXPECT_EQ(-EINVAL, _twheel_batch_open(&b, self->d, 1000, SIZE_MAX / 1000, 16));
}

TEST_F(client, elements_have_room_for_what_the_library_knows)
{
	struct twheel_batch *b;
	struct twheel_arm *arm;

	ASSERT_EQ(0, _twheel_batch_open(&b, self->d, 2, 40, 8));
	ASSERT_NE(NULL, twheel_batch_cancel(b, 2));
	arm = twheel_batch_arm(b, 1, TW_SEC);
	ASSERT_NE(NULL, arm);
	memset(arm, 0, sizeof(*arm));
	EXPECT_EQ(2, twheel_batch_submit(b));
	EXPECT_EQ(sizeof(struct twheel_cancel), fake.vectors[0].entry_size);
	EXPECT_EQ(sizeof(struct twheel_arm), fake.vectors[1].entry_size);
	twheel_batch_close(b);
}

TEST_F(client, an_event_has_the_size_that_the_program_knows)
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
	/* One of an older header is not written beyond its end. */
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

/* No descriptor is left behind. */
TEST_F(client, open_says_what_fails)
{
	static const int errors[] = { ENOSPC, ENOMEM, ENOTTY, EINVAL };
	struct twheel_device *d;
	int before = open("/dev/null", O_RDONLY);
	size_t i;

	close(before);
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		fake.setup_error = errors[i];
		EXPECT_EQ(-errors[i], twheel_device_open(&d, &self->options));
		EXPECT_EQ(NULL, d);
	}
	fake.setup_error = 0;
	fake.memory = 1;
	EXPECT_EQ(-ENOMEM, twheel_device_open(&d, &self->options));
	fake.fcntl_error = EMFILE;
	EXPECT_EQ(-EMFILE, twheel_device_open(&d, &self->options));
	fake.fcntl_error = 0;
	fake.info.max_vector = 0;
	EXPECT_EQ(-ENOTTY, twheel_device_open(&d, &self->options));
	fake.info.max_vector = 1000;
	fake.info.event_size = TWHEEL_EVENT_SIZE_MIN - 1;
	EXPECT_EQ(-ENOTTY, twheel_device_open(&d, &self->options));
	fake.info.event_size = TWHEEL_EVENT_SIZE_MAX + 1;
	EXPECT_EQ(-ENOTTY, twheel_device_open(&d, &self->options));
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

TEST_F(client, a_module_without_the_table_says_eopnotsupp)
{
	struct twheel_device *d;
	twheel_word_t *table;
	uint32_t shift;

	fake.info.features = 0;
	ASSERT_EQ(0, twheel_device_open(&d, &self->options));
	EXPECT_EQ(-EOPNOTSUPP, twheel_device_map(d, &table, &shift));
	EXPECT_EQ(-EOPNOTSUPP, twheel_device_refresh(d, 1ULL << 32, TW_SEC));
	EXPECT_EQ(0, fake.nr_mmaps);
	twheel_device_close(d);
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
