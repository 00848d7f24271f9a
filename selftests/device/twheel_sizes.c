// SPDX-License-Identifier: GPL-2.0
/*
 * The sizes in a call: if a size is below that of the first version, it is refused; if it is that
 * of a newer header, it is taken if the part that this kernel does not know is zero.
 */
#include "twheel_commands.h"
#include "twheel_test.h"

#include <sys/mman.h>

/* The structures of this kernel are larger than those of our header by this much. */
#ifndef TW_GROWN
#define TW_GROWN	0U
#endif

/* The part that a newer header added; a multiple of the alignment of any structure. */
#define TAIL	32U

FIXTURE(sizes) {
	int fd;
	__u64 pending;
	struct tw_snapshot before;
};

FIXTURE_SETUP(sizes)
{
	self->fd = tw_make_wheel(&self->pending);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_snapshot(self->fd, &self->before));
}

FIXTURE_TEARDOWN(sizes)
{
	EXPECT_UNCHANGED(self->fd, &self->before);
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Make a wheel on which the good call of this command succeeds. */
static int open_for(const struct tw_command *command, __u64 *pending)
{
	return command->cmd == TWHEEL_IOC_SETUP ? tw_open(O_NONBLOCK) : tw_make_wheel(pending);
}

/*
 * Expect the good call of a command to succeed if its argument and its elements are longer by this
 * much.
 */
static void expect_good(struct __test_metadata *_metadata, const struct tw_command *command,
			__u32 argument_more, __u32 element_more)
{
	union tw_argument argument;
	union tw_element element;
	__u64 pending = 0;
	int fd = open_for(command, &pending);

	ASSERT_LE(0, fd);
	tw_make_good(command, pending, &argument, &element);
	argument.info.size += argument_more;
	if (element_more)
		argument.vector.entry_size += element_more;
	EXPECT_EQ(command->good, tw_ioctl(fd, command->cmd, &argument))
		TH_LOG("%s", command->name);
	close(fd);
}

/* ---- the size of the argument -------------------------------------------- */

TEST_F(sizes, argument_of_this_version_is_taken)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++)
		expect_good(_metadata, &tw_commands[i], 0, 0);
}

TEST_F(sizes, larger_argument_with_a_tail_of_zeroes_is_taken)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++)
		expect_good(_metadata, &tw_commands[i], TAIL, 0);
}

TEST_F(sizes, argument_smaller_than_the_first_version_is_refused)
{
	union tw_argument argument;
	union tw_element element;
	int i, k;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		const __u32 first = tw_commands[i].size;
		const __u32 sizes[] = { 0, 1, 4, first - 8, first - 1 };

		for (k = 0; k < ARRAY_SIZE(sizes); k++) {
			tw_make_good(&tw_commands[i], self->pending, &argument, &element);
			argument.info.size = sizes[k];
			EXPECT_EQ(-EINVAL, tw_ioctl(self->fd, tw_commands[i].cmd, &argument))
				TH_LOG("%s, size %u", tw_commands[i].name, sizes[k]);
		}
	}
}

TEST_F(sizes, larger_argument_with_an_unknown_tail_says_e2big)
{
	union tw_argument argument;
	union tw_element element;
	int i, k;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		const __u32 tails[] = { TW_GROWN, TAIL - 1 };

		/* The kernel only writes it. */
		if (tw_commands[i].cmd == TWHEEL_IOC_INFO)
			continue;
		for (k = 0; k < ARRAY_SIZE(tails); k++) {
			tw_make_good(&tw_commands[i], self->pending, &argument, &element);
			argument.info.size = tw_commands[i].size + TAIL;
			argument.bytes[tw_commands[i].size + tails[k]] = 1;
			EXPECT_EQ(-E2BIG, tw_ioctl(self->fd, tw_commands[i].cmd, &argument))
				TH_LOG("%s, byte %u of the tail", tw_commands[i].name, tails[k]);
		}
	}
}

TEST_F(sizes, tail_of_a_larger_info_is_zeroed)
{
	union tw_argument argument;
	int i;

	memset(&argument, TW_POISON, sizeof(argument));
	argument.info.size = sizeof(argument.info) + TAIL;
	argument.info.flags = 0;
	ASSERT_EQ(0, tw_ioctl(self->fd, TWHEEL_IOC_INFO, &argument));
	for (i = 0; i < TAIL; i++) {
		EXPECT_EQ(0, argument.bytes[sizeof(argument.info) + i]);
	}
	EXPECT_EQ(TW_POISON, argument.bytes[sizeof(argument.info) + TAIL]);
	/* The kernel knows this much; bytes behind it have no meaning. */
	EXPECT_EQ(sizeof(argument.info) + TW_GROWN, argument.info.size);
}

/* More zeroes than a structure may be long, after the structure at their front. */
#define LARGE	(2 * TWHEEL_SIZE_MAX)

static unsigned char *make_large(const void *front, size_t size)
{
	unsigned char *bytes = mmap(NULL, LARGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return bytes == MAP_FAILED ? NULL : memcpy(bytes, front, size);
}

TEST_F(sizes, argument_of_4096_bytes_is_taken_and_one_byte_more_says_e2big)
{
	union tw_argument argument, *large;
	union tw_element element;
	__u64 pending = 0;
	int i, fd;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		fd = open_for(&tw_commands[i], &pending);
		ASSERT_LE(0, fd);
		tw_make_good(&tw_commands[i], pending, &argument, &element);
		large = (void *)make_large(&argument, tw_commands[i].size);
		ASSERT_NE(NULL, large);
		large->info.size = TWHEEL_SIZE_MAX + 1;
		EXPECT_EQ(-E2BIG, tw_ioctl(fd, tw_commands[i].cmd, large))
			TH_LOG("%s", tw_commands[i].name);
		large->info.size = TWHEEL_SIZE_MAX;
		EXPECT_EQ(tw_commands[i].good, tw_ioctl(fd, tw_commands[i].cmd, large))
			TH_LOG("%s", tw_commands[i].name);
		munmap(large, LARGE);
		close(fd);
	}
}

TEST_F(sizes, absurdly_large_argument_is_refused)
{
	union tw_argument argument;
	union tw_element element;
	int i;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		tw_make_good(&tw_commands[i], self->pending, &argument, &element);
		argument.info.size = ~0U;
		EXPECT_EQ(-E2BIG, tw_ioctl(self->fd, tw_commands[i].cmd, &argument))
			TH_LOG("%s", tw_commands[i].name);
	}
}

/* If an interpreter makes the call, the argument may be at any address. */
TEST_F(sizes, argument_at_any_address_is_taken)
{
	unsigned char bytes[sizeof(union tw_argument) + 8];
	union tw_argument argument;
	union tw_element element;
	__u64 pending = 0;
	int i, k, fd;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		for (k = 0; k < 8; k++) {
			fd = open_for(&tw_commands[i], &pending);
			ASSERT_LE(0, fd);
			tw_make_good(&tw_commands[i], pending, &argument, &element);
			memcpy(bytes + k, &argument, sizeof(argument));
			EXPECT_EQ(tw_commands[i].good,
				  tw_ioctl(fd, tw_commands[i].cmd, bytes + k))
				TH_LOG("%s, %d bytes behind a multiple of 8",
				       tw_commands[i].name, k);
			close(fd);
		}
	}
}

/* ---- the size of an element ---------------------------------------------- */

/* The vector and the list begin alike, and have the pointer to elements at different places. */
static __u64 *entries_of(const struct tw_command *command, union tw_argument *argument)
{
	return command->cmd == TWHEEL_IOC_LIST ? (__u64 *)&argument->list.entries :
						 (__u64 *)&argument->vector.entries;
}

TEST_F(sizes, element_size_that_is_no_multiple_of_8_says_einval)
{
	union tw_argument argument;
	union tw_element element;
	int i, k;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		for (k = 1; tw_commands[i].entry_size && k < 8; k++) {
			tw_make_good(&tw_commands[i], self->pending, &argument, &element);
			argument.vector.entry_size += k;
			EXPECT_EQ(-EINVAL, tw_ioctl(self->fd, tw_commands[i].cmd, &argument))
				TH_LOG("%s, entry_size + %d", tw_commands[i].name, k);
		}
	}
}

TEST_F(sizes, elements_at_an_address_that_is_no_multiple_of_8_say_einval)
{
	union tw_argument argument;
	union tw_element elements[2] = {};
	int i, k, nr;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		for (k = 1; tw_commands[i].entry_size && k < 8; k++) {
			for (nr = 0; nr < 2; nr++) {
				tw_make_good(&tw_commands[i], self->pending, &argument, elements);
				memmove(elements->bytes + k, elements, sizeof(elements[0]));
				*entries_of(&tw_commands[i], &argument) += k;
				argument.vector.nr = nr;
				EXPECT_EQ(-EINVAL,
					  tw_ioctl(self->fd, tw_commands[i].cmd, &argument))
					TH_LOG("%s of %d at an address + %d", tw_commands[i].name,
					       nr, k);
			}
		}
	}
}

TEST_F(sizes, larger_element_with_a_tail_of_zeroes_is_taken)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++)
		if (tw_commands[i].entry_size)
			expect_good(_metadata, &tw_commands[i], 0, TAIL);
}

TEST_F(sizes, element_smaller_than_the_first_version_is_refused)
{
	union tw_argument argument;
	union tw_element element;
	int i, k;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		const __u32 sizes[] = { 0, 8, tw_commands[i].entry_size - 8,
					tw_commands[i].entry_size - 1 };

		for (k = 0; tw_commands[i].entry_size && k < ARRAY_SIZE(sizes); k++) {
			tw_make_good(&tw_commands[i], self->pending, &argument, &element);
			argument.vector.entry_size = sizes[k];
			EXPECT_EQ(-EINVAL, tw_ioctl(self->fd, tw_commands[i].cmd, &argument))
				TH_LOG("%s, entry_size %u", tw_commands[i].name, sizes[k]);
		}
	}
}

TEST_F(sizes, element_of_4096_bytes_is_taken_and_a_longer_one_says_e2big)
{
	union tw_argument argument;
	union tw_element element;
	unsigned char *large;
	__u64 pending;
	int i, fd;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		if (!tw_commands[i].entry_size)
			continue;
		fd = open_for(&tw_commands[i], &pending);
		ASSERT_LE(0, fd);
		tw_make_good(&tw_commands[i], pending, &argument, &element);
		large = make_large(&element, tw_commands[i].entry_size);
		ASSERT_NE(NULL, large);
		argument.vector.entry_size = TWHEEL_SIZE_MAX + 8;
		*entries_of(&tw_commands[i], &argument) = (uintptr_t)large;
		EXPECT_EQ(-E2BIG, tw_ioctl(fd, tw_commands[i].cmd, &argument))
			TH_LOG("%s", tw_commands[i].name);
		argument.vector.entry_size = TWHEEL_SIZE_MAX;
		EXPECT_EQ(tw_commands[i].good, tw_ioctl(fd, tw_commands[i].cmd, &argument))
			TH_LOG("%s", tw_commands[i].name);
		munmap(large, LARGE);
		close(fd);
	}
}

/* The kernel only writes rows of LIST: they have no tail that could be refused. */
TEST_F(sizes, larger_element_with_an_unknown_tail_says_e2big_in_its_result)
{
	union tw_argument argument;
	union tw_element element;
	int i, k;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		const __u32 tails[] = { TW_GROWN, TAIL - 1 };

		if (!tw_commands[i].entry_size || tw_commands[i].cmd == TWHEEL_IOC_LIST)
			continue;
		for (k = 0; k < ARRAY_SIZE(tails); k++) {
			tw_make_good(&tw_commands[i], self->pending, &argument, &element);
			argument.vector.entry_size = tw_commands[i].entry_size + TAIL;
			element.bytes[tw_commands[i].entry_size + tails[k]] = 1;
			EXPECT_EQ(0, tw_ioctl(self->fd, tw_commands[i].cmd, &argument))
				TH_LOG("%s, byte %u of the tail", tw_commands[i].name, tails[k]);
			EXPECT_EQ(-E2BIG, tw_result_of(&tw_commands[i], &element))
				TH_LOG("%s, byte %u of the tail", tw_commands[i].name, tails[k]);
		}
	}
}

/* ---- the stride ---------------------------------------------------------- */

/* Elements of a newer header, of which this kernel knows the first part. */
struct newer_arm {
	struct twheel_arm arm;
	unsigned char tail[TAIL];
};

struct newer_status {
	struct twheel_status status;
	unsigned char tail[TAIL];
};

#define STRIDES	50

TEST_F(sizes, entry_size_is_the_stride_of_arm)
{
	struct newer_arm arms[STRIDES] = {};
	struct twheel_status status;
	__u64 pending;
	int i, fd = tw_make_wheel(&pending);

	ASSERT_LE(0, fd);
	for (i = 0; i < STRIDES; i++) {
		arms[i].arm.expires_ns = TW_HOUR;
		arms[i].arm.user_data = 100 + i;
	}
	ASSERT_EQ(STRIDES, tw_vector(fd, TWHEEL_IOC_ARM, arms, sizeof(arms[0]), STRIDES));
	for (i = 0; i < STRIDES; i++) {
		EXPECT_EQ(TWHEEL_CREATED, arms[i].arm.result);
		ASSERT_EQ(0, tw_query1(fd, arms[i].arm.id, &status));
		EXPECT_EQ(100 + i, status.user_data);
	}
	close(fd);
}

/* Every third element sets bytes that this kernel does not know, also the first and the last. */
TEST_F(sizes, elements_with_an_unknown_tail_are_left_out_of_a_vector)
{
	struct newer_arm arms[STRIDES - 1] = {};
	const int nr = STRIDES - 1, left_out = (STRIDES + 1) / 3;
	__u64 pending;
	int i, fd = tw_make_wheel(&pending);

	ASSERT_LE(0, fd);
	for (i = 0; i < nr; i++) {
		arms[i].arm.expires_ns = TW_HOUR;
		arms[i].arm.result = 7;
		arms[i].tail[TAIL - 1] = i % 3 == 0;
	}
	ASSERT_EQ(nr - left_out, tw_vector(fd, TWHEEL_IOC_ARM, arms, sizeof(arms[0]), nr));
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(i % 3 ? TWHEEL_CREATED : -E2BIG, arms[i].arm.result);
		if (i % 3) {
			ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, arms[i].arm.id));
		}
	}

	/* The skipped elements do not change why the others are refused. */
	ASSERT_EQ(0, tw_drain(fd));
	EXPECT_EQ(-ESHUTDOWN, tw_vector(fd, TWHEEL_IOC_ARM, arms, sizeof(arms[0]), nr));
	EXPECT_EQ(-ESHUTDOWN, tw_vector(fd, TWHEEL_IOC_REARM, arms, sizeof(arms[0]), nr));
	close(fd);
}

TEST_F(sizes, entry_size_is_the_stride_of_query)
{
	struct newer_status rows[STRIDES] = {};
	int i;

	for (i = 0; i < STRIDES; i++)
		rows[i].status.id = i % 2 ? self->pending : 0;
	EXPECT_EQ(STRIDES / 2, tw_vector(self->fd, TWHEEL_IOC_QUERY, rows, sizeof(rows[0]),
					 STRIDES));
	for (i = 0; i < STRIDES; i++) {
		EXPECT_EQ(i % 2 ? 0 : -ENOENT, rows[i].status.result);
		EXPECT_EQ(i % 2 ? TW_HOUR : 0, rows[i].status.deadline_ns);
	}
}

TEST_F(sizes, entry_size_is_the_stride_of_list)
{
	struct newer_status rows[4] = {};
	struct twheel_list list = {
		.size = sizeof(list),
		.entry_size = sizeof(rows[0]),
		.nr = 4,
		.entries = (uintptr_t)rows,
	};
	int i;

	ASSERT_EQ(3, tw_ioctl(self->fd, TWHEEL_IOC_LIST, &list));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, memcmp(&self->before.rows[i], &rows[i].status,
				    sizeof(rows[i].status)));
	}
}

/* The tail is cleared, as with a larger INFO. */
TEST_F(sizes, tail_of_a_larger_row_of_list_is_zeroed)
{
	struct newer_status rows[4];
	struct twheel_list list = {
		.size = sizeof(list),
		.entry_size = sizeof(rows[0]),
		.nr = 4,
		.entries = (uintptr_t)rows,
	};
	int i, k;

	memset(rows, TW_POISON, sizeof(rows));
	ASSERT_EQ(3, tw_ioctl(self->fd, TWHEEL_IOC_LIST, &list));
	for (i = 0; i < 4; i++) {
		for (k = 0; k < TAIL; k++) {
			EXPECT_EQ(i < 3 ? 0 : TW_POISON, rows[i].tail[k])
				TH_LOG("row %d, byte %d of the tail", i, k);
		}
	}
}

TEST_HARNESS_MAIN
