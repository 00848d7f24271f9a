// SPDX-License-Identifier: GPL-2.0
/*
 * Vectors that reach into memory that cannot be read, or read but not written.
 * What stands before the fault is done, reported and counted; nothing from
 * there on has been done; and if there is nothing before it, nothing happens.
 */
#include "twheel_commands.h"
#include "twheel_test.h"

FIXTURE(faults) {
	int fd;
	size_t page;
};

FIXTURE_VARIANT(faults) {
	/* of the memory after the good entries */
	int protection;
	/* how much of the first bad entry still lies in the good part */
	size_t inside;
};

FIXTURE_VARIANT_ADD(faults, entry_that_cannot_be_read) {
	.protection = PROT_NONE,
};

FIXTURE_VARIANT_ADD(faults, entry_of_which_the_end_cannot_be_read) {
	.protection = PROT_NONE, .inside = 8,
};

FIXTURE_VARIANT_ADD(faults, entry_that_cannot_be_written) {
	.protection = PROT_READ,
};

/* Its result lies in the part that can be read only. */
FIXTURE_VARIANT_ADD(faults, entry_of_which_the_end_cannot_be_written) {
	.protection = PROT_READ, .inside = 8,
};

FIXTURE_SETUP(faults)
{
	self->page = sysconf(_SC_PAGESIZE);
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 0));
}

FIXTURE_TEARDOWN(faults)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* How many entries are good: none, a few, around powers of two, many. */
static const int goods[] = { 0, 1, 3, 63, 64, 65, 127, 128, 129, 255, 256, 257, 700 };

/* And so many more are asked for, in vain. */
#define BAD	5

#define MOST	(700 + BAD)

/*
 * Copies entries to where the one after nr_good runs into a page that has the
 * protection of the variant; all BAD ones after it lie there wholly.
 */
static void *place(struct __test_metadata *_metadata, size_t page,
		   const FIXTURE_VARIANT(faults) *variant, const void *entries, size_t entry_size,
		   int nr_good)
{
	size_t good_bytes = nr_good * entry_size + variant->inside;
	size_t good_pages = (good_bytes + page - 1) / page + 1;
	char *map = mmap(NULL, (good_pages + 1) * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *edge = map + good_pages * page;
	void *at = edge - good_bytes;

	ASSERT_NE(MAP_FAILED, (void *)map);
	memcpy(at, entries, (nr_good + BAD) * entry_size);
	ASSERT_EQ(0, mprotect(edge, page, variant->protection));
	return at;
}

/* What the call returns: how many were done, or that there was none to do. */
static int expected(int nr_good)
{
	return nr_good ? nr_good : -EFAULT;
}

/* ARMs nr_good + BAD timeouts from good memory, for other calls to spoil. */
static void arm_some(struct __test_metadata *_metadata, int fd, struct twheel_arm *arms, int nr)
{
	int i;

	memset(arms, 0, nr * sizeof(*arms));
	for (i = 0; i < nr; i++) {
		arms[i].expires_ns = TW_HOUR;
		arms[i].user_data = i;
	}
	ASSERT_EQ(nr, tw_arm_vec(fd, arms, nr));
}

static int live(int fd)
{
	struct twheel_info info;

	return tw_info(fd, &info) ? -1 : (int)info.live;
}

/* Takes back all that is left of these, so that the next round starts afresh. */
static void cancel_all(struct __test_metadata *_metadata, int fd, const struct twheel_arm *arms,
		       int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		tw_cancel1(fd, arms[i].id);
	ASSERT_EQ(0, live(fd));
}

TEST_F(faults, arm_arms_what_stands_before)
{
	static struct twheel_arm arms[MOST];
	struct twheel_status status;
	int i, k;

	for (k = 0; k < ARRAY_SIZE(goods); k++) {
		struct twheel_arm *at;

		memset(arms, 0, sizeof(arms));
		for (i = 0; i < MOST; i++) {
			arms[i].expires_ns = TW_HOUR;
			arms[i].user_data = i;
			arms[i].result = TW_POISON32;
		}
		at = place(_metadata, self->page, variant, arms, sizeof(*arms), goods[k]);
		EXPECT_EQ(expected(goods[k]), tw_vector(self->fd, TWHEEL_IOC_ARM, at,
							sizeof(*arms), goods[k] + BAD))
			TH_LOG("%d good entries", goods[k]);
		ASSERT_EQ(goods[k], live(self->fd));
		for (i = 0; i < goods[k]; i++) {
			ASSERT_EQ(0, at[i].result);
			ASSERT_EQ(0, tw_query1(self->fd, at[i].id, &status));
			ASSERT_EQ(i, status.user_data);
		}
		cancel_all(_metadata, self->fd, at, goods[k]);
	}
}

TEST_F(faults, cancel_cancels_what_stands_before)
{
	static struct twheel_cancel cancels[MOST];
	static struct twheel_arm arms[MOST];
	struct twheel_status status;
	int i, k;

	for (k = 0; k < ARRAY_SIZE(goods); k++) {
		struct twheel_cancel *at;

		arm_some(_metadata, self->fd, arms, goods[k] + BAD);
		for (i = 0; i < MOST; i++)
			cancels[i] = (struct twheel_cancel){ .id = arms[i].id };
		at = place(_metadata, self->page, variant, cancels, sizeof(*cancels), goods[k]);
		EXPECT_EQ(expected(goods[k]), tw_vector(self->fd, TWHEEL_IOC_CANCEL, at,
							sizeof(*cancels), goods[k] + BAD))
			TH_LOG("%d good entries", goods[k]);
		ASSERT_EQ(BAD, live(self->fd));
		for (i = 0; i < goods[k]; i++) {
			ASSERT_EQ(TWHEEL_WAS_PENDING, at[i].result);
		}
		for (; i < goods[k] + BAD; i++) {
			ASSERT_EQ(0, tw_query1(self->fd, arms[i].id, &status));
		}
		cancel_all(_metadata, self->fd, arms, goods[k] + BAD);
	}
}

TEST_F(faults, rearm_moves_what_stands_before)
{
	static struct twheel_arm arms[MOST];
	struct twheel_status status;
	int i, k;

	for (k = 0; k < ARRAY_SIZE(goods); k++) {
		struct twheel_arm *at;

		arm_some(_metadata, self->fd, arms, goods[k] + BAD);
		for (i = 0; i < MOST; i++)
			arms[i].expires_ns = TW_DAY;
		at = place(_metadata, self->page, variant, arms, sizeof(*arms), goods[k]);
		EXPECT_EQ(expected(goods[k]), tw_vector(self->fd, TWHEEL_IOC_REARM, at,
							sizeof(*arms), goods[k] + BAD))
			TH_LOG("%d good entries", goods[k]);
		for (i = 0; i < goods[k] + BAD; i++) {
			ASSERT_EQ(0, tw_query1(self->fd, arms[i].id, &status));
			ASSERT_EQ(i < goods[k] ? TW_DAY : TW_HOUR, status.deadline_ns)
				TH_LOG("timeout %d of %d", i, goods[k]);
			if (i < goods[k]) {
				ASSERT_EQ(TWHEEL_WAS_PENDING, at[i].result);
			}
		}
		cancel_all(_metadata, self->fd, arms, goods[k] + BAD);
	}
}

TEST_F(faults, query_tells_what_stands_before)
{
	static struct twheel_status rows[MOST];
	static struct twheel_arm arms[MOST];
	int i, k;

	arm_some(_metadata, self->fd, arms, MOST);
	for (i = 0; i < MOST; i++)
		rows[i].id = arms[i].id;
	for (k = 0; k < ARRAY_SIZE(goods); k++) {
		struct twheel_status *at;

		at = place(_metadata, self->page, variant, rows, sizeof(*rows), goods[k]);
		EXPECT_EQ(expected(goods[k]), tw_vector(self->fd, TWHEEL_IOC_QUERY, at,
							sizeof(*rows), goods[k] + BAD))
			TH_LOG("%d good entries", goods[k]);
		for (i = 0; i < goods[k]; i++) {
			ASSERT_EQ(i, at[i].user_data);
			ASSERT_EQ(TW_HOUR, at[i].deadline_ns);
		}
	}
}

/* The walk goes on with the row that could not be written. */
TEST_F(faults, list_writes_what_stands_before_and_loses_no_row)
{
	static struct twheel_status rows[MOST];
	static struct twheel_arm arms[MOST];
	bool seen[MOST] = {};
	struct twheel_list list;
	int i, k, nr;

	arm_some(_metadata, self->fd, arms, MOST);
	for (k = 0; k < ARRAY_SIZE(goods); k++) {
		struct twheel_status *at;

		list = (struct twheel_list){
			.size = sizeof(list),
			.entry_size = sizeof(*rows),
			.nr = goods[k] + BAD,
		};
		at = place(_metadata, self->page, variant, rows, sizeof(*rows), goods[k]);
		list.entries = (uintptr_t)at;
		EXPECT_EQ(expected(goods[k]), tw_ioctl(self->fd, TWHEEL_IOC_LIST, &list))
			TH_LOG("%d good rows", goods[k]);
		memset(seen, 0, sizeof(seen));
		for (i = 0; i < goods[k]; i++) {
			ASSERT_TRUE(at[i].user_data < MOST && !seen[at[i].user_data]);
			seen[at[i].user_data] = true;
		}
		nr = tw_list(self->fd, &list.cursor, rows, MOST);
		EXPECT_EQ(MOST - goods[k], nr)
			TH_LOG("%d good rows", goods[k]);
		for (i = 0; i < nr; i++) {
			ASSERT_TRUE(rows[i].user_data < MOST && !seen[rows[i].user_data]);
			seen[rows[i].user_data] = true;
		}
	}
}

/* One entry was attempted and failed by itself: the call as a whole did not. */
TEST_F(faults, entry_that_is_refused_before_the_fault_was_attempted)
{
	struct twheel_arm arms[1 + BAD] = {}, *at;

	arms[0].flags = 1U << 31;
	at = place(_metadata, self->page, variant, arms, sizeof(*arms), 1);
	EXPECT_EQ(0, tw_vector(self->fd, TWHEEL_IOC_ARM, at, sizeof(*arms), 1 + BAD));
	EXPECT_EQ(-EINVAL, at[0].result);
	EXPECT_EQ(0, live(self->fd));
}

/* A wheel that nobody set up: what failed as a whole was not the first ARM. */
TEST_F(faults, arm_that_arms_nothing_leaves_setup_open)
{
	struct twheel_arm arms[BAD] = {}, *at;
	struct tw_snapshot before;
	int fd = tw_open(O_NONBLOCK);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_snapshot(fd, &before));
	at = place(_metadata, self->page, variant, arms, sizeof(*arms), 0);
	EXPECT_EQ(-EFAULT, tw_vector(fd, TWHEEL_IOC_ARM, at, sizeof(*arms), BAD));
	EXPECT_UNCHANGED(fd, &before);
	EXPECT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 0));
	close(fd);
}

TEST_HARNESS_MAIN
