// SPDX-License-Identifier: GPL-2.0
/*
 * LIST: all timeouts of a wheel, each once, however many rows are asked for at a
 * time and whatever happens between.
 */
#include "twheel_test.h"

FIXTURE(list) {
	int fd;
};

FIXTURE_SETUP(list)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(list)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(list, of_an_empty_wheel_is_at_its_end)
{
	struct twheel_status row;
	__u64 cursor = 0;

	EXPECT_EQ(0, tw_list(self->fd, &cursor, &row, 1));
}

TEST_F(list, of_a_wheel_that_was_never_set_up_is_at_its_end)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_status row;
	__u64 cursor = 0;

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, tw_list(fd, &cursor, &row, 1));
	close(fd);
}

TEST_F(list, row_is_what_query_says)
{
	struct twheel_status rows[TW_KINDS], status;
	__u64 ids[TW_KINDS];
	int i;

	tw_arm_each_kind(_metadata, self->fd, ids);
	ASSERT_EQ(TW_KINDS, tw_list_all(self->fd, rows, TW_KINDS, TW_KINDS));
	for (i = 0; i < TW_KINDS; i++) {
		ASSERT_EQ(0, tw_query1(self->fd, rows[i].id, &status));
		EXPECT_EQ(0, memcmp(&status, &rows[i], sizeof(status)))
			TH_LOG("row %d, timeout %llu", i, rows[i].user_data);
	}
}

TEST_F(list, does_not_show_what_has_ended)
{
	struct twheel_event event;
	struct twheel_status row;
	__u64 delivered, cancelled, left;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &delivered));
	ASSERT_EQ(0, tw_arm_at(self->fd, TW_SEC, &cancelled));
	ASSERT_EQ(0, tw_arm_at(self->fd, TW_SEC, &left));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, delivered);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, cancelled));
	ASSERT_EQ(1, tw_list_all(self->fd, &row, 1, 1));
	EXPECT_EQ(left, row.id);
}

#define CROWD	3000

static void arm_crowd(struct __test_metadata *_metadata, int fd, __u64 *ids)
{
	struct twheel_arm *arms = calloc(CROWD, sizeof(*arms));
	__u64 seed = 7;
	int i, done;

	ASSERT_NE(NULL, arms);
	for (i = 0; i < CROWD; i++) {
		arms[i].expires_ns = TW_SEC + tw_random(&seed) * TW_US;
		arms[i].user_data = i;
	}
	for (done = 0; done < CROWD; done += 1000) {
		ASSERT_EQ(1000, tw_arm_vec(fd, &arms[done], 1000));
	}
	for (i = 0; i < CROWD; i++)
		ids[i] = arms[i].id;
	free(arms);
}

TEST_F(list, shows_thousands_once_each_whatever_the_step)
{
	static struct twheel_status rows[CROWD];
	const int steps[] = { 1, 7, 64, 1000 };
	__u64 ids[CROWD];
	int i, k;

	arm_crowd(_metadata, self->fd, ids);
	for (k = 0; k < ARRAY_SIZE(steps); k++) {
		bool seen[CROWD] = {};

		ASSERT_EQ(CROWD, tw_list_all(self->fd, rows, CROWD, steps[k]))
			TH_LOG("%d rows at a time", steps[k]);
		for (i = 0; i < CROWD; i++) {
			__u64 who = rows[i].user_data;

			ASSERT_TRUE(who < CROWD && !seen[who]);
			seen[who] = true;
			ASSERT_EQ(ids[who], rows[i].id);
		}
	}
}

/* Only what is there is written, so that two rows have enough space. */
TEST_F(list, takes_as_many_rows_as_a_vector_may_have_and_no_more)
{
	struct twheel_status rows[2];
	struct twheel_list list = {
		.size = sizeof(list), .entry_size = sizeof(rows[0]),
		.entries = (uintptr_t)rows,
	};
	struct twheel_info info;
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &id));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	list.nr = info.max_vector;
	EXPECT_EQ(1, tw_ioctl(self->fd, TWHEEL_IOC_LIST, &list));
	EXPECT_EQ(id, rows[0].id);
	list.cursor = 0;
	list.nr = info.max_vector + 1;
	EXPECT_EQ(-E2BIG, tw_ioctl(self->fd, TWHEEL_IOC_LIST, &list));
	EXPECT_EQ(0, list.cursor);
}

TEST_F(list, at_its_end_stays_there)
{
	struct twheel_status rows[2];
	__u64 cursor = 0, id;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_SEC, &id));
	ASSERT_EQ(1, tw_list(self->fd, &cursor, rows, 2));
	EXPECT_EQ(0, tw_list(self->fd, &cursor, rows, 2));
	EXPECT_EQ(0, tw_list(self->fd, &cursor, rows, 2));
}

/* No bit of a cursor is left out of account. */
TEST_F(list, cursor_beyond_the_last_place_is_at_the_end)
{
	struct twheel_status row;
	__u64 cursor, id;
	int bit;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_SEC, &id));
	for (bit = 16; bit < 64; bit++) {
		cursor = 1ULL << bit;
		EXPECT_EQ(0, tw_list(self->fd, &cursor, &row, 1))
			TH_LOG("bit %d", bit);
	}
	cursor = ~0ULL;
	EXPECT_EQ(0, tw_list(self->fd, &cursor, &row, 1));
	cursor = (__u32)id;
	EXPECT_EQ(1, tw_list(self->fd, &cursor, &row, 1));
	EXPECT_EQ(id, row.id);
	cursor = (__u32)id + 1;
	EXPECT_EQ(0, tw_list(self->fd, &cursor, &row, 1));
}

TEST_F(list, does_not_write_beyond_the_rows_it_returns)
{
	struct twheel_status rows[4], poison;
	__u64 cursor = 0, id;

	memset(&poison, TW_POISON, sizeof(poison));
	ASSERT_EQ(0, tw_arm_at(self->fd, TW_SEC, &id));
	ASSERT_EQ(1, tw_list(self->fd, &cursor, rows, 4));
	EXPECT_EQ(0, memcmp(&poison, &rows[1], sizeof(poison)));
}

/* Between the steps of a walk a third is cancelled, a third re-armed, and new ones come. */
TEST_F(list, shows_what_is_not_touched_exactly_once_beside_changes)
{
	__u64 ids[CROWD], cursor = 0, id, next = 0;
	static unsigned char seen[CROWD];
	struct twheel_status rows[50];
	int i, nr;

	arm_crowd(_metadata, self->fd, ids);
	while ((nr = tw_list(self->fd, &cursor, rows, 50)) > 0) {
		for (i = 0; i < nr; i++) {
			if (rows[i].user_data < CROWD)
				seen[rows[i].user_data]++;
		}
		for (i = 0; i < 60 && next < CROWD; i++, next++) {
			if (next % 3 == 1) {
				ASSERT_LT(0, tw_cancel1(self->fd, ids[next]));
			}
			if (next % 3 == 2) {
				ASSERT_LT(0, tw_rearm1(self->fd, ids[next], 0, TW_HOUR + next, 0));
			}
		}
		/* A wheel that grows as fast as the walk must not keep it going for ever. */
		if (next < CROWD) {
			ASSERT_EQ(0, tw_arm1(self->fd, 0, TW_DAY, 0, CROWD, &id));
		}
	}
	ASSERT_EQ(0, nr);
	for (i = 0; i < CROWD; i++) {
		if (i % 3 == 0) {
			EXPECT_EQ(1, seen[i])
				TH_LOG("timeout %d, which nobody touched", i);
		}
		if (i % 3 == 2) {
			EXPECT_LE(1, seen[i])
				TH_LOG("timeout %d, which was re-armed", i);
		}
	}
}

TEST_HARNESS_MAIN
