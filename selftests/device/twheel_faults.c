// SPDX-License-Identifier: GPL-2.0
/*
 * Vectors that reach into memory that cannot be read, or can be read but not written. The elements
 * before the fault are done, reported and counted; those from the fault on are not done. If there
 * is no element before the fault, nothing happens.
 */
#include "twheel_commands.h"
#include "twheel_keyed.h"
#include "twheel_outcomes.h"

#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>

FIXTURE(faults) {
	int fd;
	int keyed;
	size_t page;
};

FIXTURE_VARIANT(faults) {
	/* protection of the memory after the good elements */
	int protection;
	/* how many bytes of the first bad element are still in the good part */
	size_t inside;
};

FIXTURE_VARIANT_ADD(faults, element_that_cannot_be_read) {
	.protection = PROT_NONE,
};

FIXTURE_VARIANT_ADD(faults, element_of_which_the_end_cannot_be_read) {
	.protection = PROT_NONE, .inside = 8,
};

FIXTURE_VARIANT_ADD(faults, element_that_cannot_be_written) {
	.protection = PROT_READ,
};

/* Its result is in the part that can only be read. */
FIXTURE_VARIANT_ADD(faults, element_of_which_the_end_cannot_be_written) {
	.protection = PROT_READ, .inside = 8,
};

FIXTURE_SETUP(faults)
{
	self->page = sysconf(_SC_PAGESIZE);
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 0));
	self->keyed = key_virtual(O_NONBLOCK, 0);
	ASSERT_LE(0, self->keyed);
}

FIXTURE_TEARDOWN(faults)
{
	EXPECT_ACCOUNTS(self->fd);
	EXPECT_ACCOUNTS(self->keyed);
	close(self->fd);
	close(self->keyed);
}

/* How many elements are good: none, a few, around powers of two, many. */
static const int goods[] = { 0, 1, 3, 63, 64, 65, 127, 128, 129, 255, 256, 257, 700 };

/* This many more elements are in bad memory. */
#define BAD	5

#define MOST	(700 + BAD)

/*
 * Copy elements so that the one after nr_good runs into a page that has the protection of the
 * variant; all BAD ones after it are wholly in that page.
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

/*
 * Return the result that the call must have: how many elements were done, or an error if none was.
 */
static int expected(int nr_good)
{
	return nr_good ? nr_good : -EFAULT;
}

/* The call does nr_good of nr_good + BAD elements, and says so. */
static void expect_stop(struct __test_metadata *_metadata, int fd, unsigned long cmd, void *at,
			__u32 entry_size, int nr_good, int line)
{
	__u32 nr_done;

	EXPECT_EQ(expected(nr_good),
		  tw_vector_done(fd, cmd, at, entry_size, nr_good + BAD, &nr_done))
		TH_LOG("line %d: %d good elements", line, nr_good);
	EXPECT_EQ(nr_good, nr_done)
		TH_LOG("line %d", line);
}

#define EXPECT_STOP(cmd, at, entry_size, nr_good)	\
	expect_stop(_metadata, self->fd, cmd, at, entry_size, nr_good, __LINE__)

/* ARM nr_good + BAD timeouts from good memory, for other calls to change. */
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

/* Cancel all timeouts that are left, so that the next round starts from nothing. */
static void cancel_all(struct __test_metadata *_metadata, int fd, const struct twheel_arm *arms,
		       int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		tw_cancel1(fd, arms[i].id);
	ASSERT_EQ(0, live(fd));
}

TEST_F(faults, arm_does_the_elements_before_a_fault)
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
		EXPECT_STOP(TWHEEL_IOC_ARM, at, sizeof(*arms), goods[k]);
		ASSERT_EQ(goods[k], live(self->fd));
		for (i = 0; i < goods[k]; i++) {
			ASSERT_EQ(TWHEEL_CREATED, at[i].result);
			ASSERT_EQ(0, tw_query1(self->fd, at[i].id, &status));
			ASSERT_EQ(i, status.user_data);
		}
		cancel_all(_metadata, self->fd, at, goods[k]);
	}
}

TEST_F(faults, cancel_does_the_elements_before_a_fault)
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
		EXPECT_STOP(TWHEEL_IOC_CANCEL, at, sizeof(*cancels), goods[k]);
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

/* Some move later, and some earlier; half of those of each length are in the inbox. */
TEST_F(faults, rearm_does_the_elements_before_a_fault)
{
	static struct twheel_arm arms[MOST];
	struct twheel_status status;
	int i, k;

	for (k = 0; k < 2 * ARRAY_SIZE(goods); k++) {
		int nr_good = goods[k / 2];
		struct twheel_arm *at;

		arm_some(_metadata, self->fd, arms, nr_good + BAD);
		if (k % 2)
			ASSERT_EQ(0, tw_advance(self->fd, k * TW_MS));
		for (i = 0; i < MOST; i++)
			arms[i] = (struct twheel_arm){
				.id = arms[i].id, .flags = TWHEEL_ARM_ABSOLUTE,
				.expires_ns = i % 3 ? TW_DAY : TW_MIN,
			};
		at = place(_metadata, self->page, variant, arms, sizeof(*arms), nr_good);
		EXPECT_STOP(TWHEEL_IOC_REARM, at, sizeof(*arms), nr_good);
		for (i = 0; i < nr_good; i++) {
			ASSERT_EQ(0, tw_query1(self->fd, arms[i].id, &status));
			ASSERT_EQ(arms[i].expires_ns, status.deadline_ns)
				TH_LOG("timeout %d of %d", i, nr_good);
			ASSERT_EQ(TWHEEL_WAS_PENDING, at[i].result);
		}
		for (; i < nr_good + BAD; i++) {
			ASSERT_EQ(0, tw_query1(self->fd, arms[i].id, &status));
			ASSERT_LE(TW_HOUR, status.deadline_ns);
			ASSERT_GT(TW_DAY, status.deadline_ns);
		}
		cancel_all(_metadata, self->fd, arms, nr_good + BAD);
	}
}

TEST_F(faults, query_does_the_elements_before_a_fault)
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
		EXPECT_STOP(TWHEEL_IOC_QUERY, at, sizeof(*rows), goods[k]);
		for (i = 0; i < goods[k]; i++) {
			ASSERT_EQ(i, at[i].user_data);
			ASSERT_EQ(TW_HOUR, at[i].deadline_ns);
		}
	}
}

/* The walk goes on with the row that could not be copied out. */
TEST_F(faults, list_writes_the_rows_before_a_fault_and_loses_none)
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

/* ---- the same by keys ------------------------------------------------------ */

/* Query each key: those from the fault on are unchanged. */
static void expect_keys(struct __test_metadata *_metadata, int fd, int nr, __u64 done_ns,
			int nr_good, __u64 rest_ns)
{
	struct twheel_status status;
	int i;

	for (i = 0; i < nr; i++) {
		__u64 deadline_ns = i < nr_good ? done_ns : rest_ns;

		ASSERT_EQ(deadline_ns ? 0 : -ENOENT, key_query(fd, i, &status))
			TH_LOG("key %d of %d", i, nr_good);
		if (deadline_ns) {
			ASSERT_EQ(deadline_ns, status.deadline_ns)
				TH_LOG("key %d of %d", i, nr_good);
		}
	}
}

static void cancel_keys(struct __test_metadata *_metadata, int fd, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		key_cancel(fd, i);
	ASSERT_EQ(0, live(fd));
}

/* If a key is behind the fault, it has not been taken, and can be. */
TEST_F(faults, arm_creates_the_keys_before_a_fault)
{
	static struct twheel_arm arms[MOST];
	int i, k;

	for (k = 0; k < ARRAY_SIZE(goods); k++) {
		struct twheel_arm *at;

		memset(arms, 0, sizeof(arms));
		for (i = 0; i < MOST; i++) {
			arms[i].expires_ns = TW_HOUR;
			arms[i].user_data = i;
		}
		at = place(_metadata, self->page, variant, arms, sizeof(*arms), goods[k]);
		expect_stop(_metadata, self->keyed, TWHEEL_IOC_ARM, at, sizeof(*arms), goods[k],
			    __LINE__);
		ASSERT_EQ(goods[k], live(self->keyed));
		for (i = 0; i < goods[k]; i++)
			ASSERT_EQ(TWHEEL_CREATED, at[i].result);
		expect_keys(_metadata, self->keyed, goods[k] + BAD, TW_HOUR, goods[k], 0);
		for (i = goods[k]; i < goods[k] + BAD; i++) {
			ASSERT_EQ(TWHEEL_CREATED, key_arm(self->keyed, i, TW_HOUR, 0));
		}
		cancel_keys(_metadata, self->keyed, goods[k] + BAD);
	}
}

TEST_F(faults, arm_replaces_the_keys_before_a_fault)
{
	static struct twheel_arm arms[MOST];
	int i, k;

	for (k = 0; k < ARRAY_SIZE(goods); k++) {
		struct twheel_arm *at;

		arm_some(_metadata, self->keyed, arms, goods[k] + BAD);
		for (i = 0; i < MOST; i++)
			arms[i].expires_ns = TW_DAY;
		at = place(_metadata, self->page, variant, arms, sizeof(*arms), goods[k]);
		expect_stop(_metadata, self->keyed, TWHEEL_IOC_ARM, at, sizeof(*arms), goods[k],
			    __LINE__);
		for (i = 0; i < goods[k]; i++) {
			ASSERT_EQ(TWHEEL_WAS_PENDING, at[i].result);
			ASSERT_EQ(TW_HOUR, at[i].was_deadline_ns);
		}
		expect_keys(_metadata, self->keyed, goods[k] + BAD, TW_DAY, goods[k], TW_HOUR);
		cancel_keys(_metadata, self->keyed, goods[k] + BAD);
	}
}

/* The keys are present and new in turn, and each comes once more at the end of the good part. */
TEST_F(faults, arm_does_keys_of_each_kind_before_a_fault)
{
	static struct twheel_arm arms[MOST];
	int i, k;

	for (k = 0; k < ARRAY_SIZE(goods); k++) {
		struct twheel_arm *at;
		int half = goods[k] / 2;

		memset(arms, 0, sizeof(arms));
		for (i = 0; i < MOST; i++) {
			arms[i].expires_ns = TW_HOUR;
			arms[i].user_data = i < half ? i : i - half;
			if (i % 3 == 0 && i < half) {
				ASSERT_EQ(TWHEEL_CREATED, key_arm(self->keyed, i, TW_DAY, 0));
			}
		}
		at = place(_metadata, self->page, variant, arms, sizeof(*arms), goods[k]);
		expect_stop(_metadata, self->keyed, TWHEEL_IOC_ARM, at, sizeof(*arms), goods[k],
			    __LINE__);
		for (i = 0; i < goods[k]; i++) {
			bool there = (i < half && i % 3 == 0) || (i >= half && i < 2 * half);

			ASSERT_EQ(there ? TWHEEL_WAS_PENDING : TWHEEL_CREATED, at[i].result)
				TH_LOG("element %d of %d", i, goods[k]);
		}
		ASSERT_EQ(goods[k] - half, live(self->keyed));
		cancel_keys(_metadata, self->keyed, MOST);
	}
}

TEST_F(faults, rearm_and_cancel_and_query_by_key_do_the_elements_before_a_fault)
{
	static struct twheel_cancel cancels[MOST];
	static struct twheel_status rows[MOST];
	static struct twheel_arm arms[MOST];
	__u32 nr_done;
	void *at;
	int i, k;

	for (i = 0; i < MOST; i++) {
		cancels[i].id = i;
		rows[i].id = i;
	}
	for (k = 0; k < ARRAY_SIZE(goods); k++) {
		const struct {
			unsigned long cmd;
			const void *entries;
			__u32 entry_size;
		} calls[] = {
			{ TWHEEL_IOC_QUERY, rows, sizeof(rows[0]) },
			{ TWHEEL_IOC_REARM, arms, sizeof(arms[0]) },
			{ TWHEEL_IOC_CANCEL, cancels, sizeof(cancels[0]) },
		};

		arm_some(_metadata, self->keyed, arms, goods[k] + BAD);
		for (i = 0; i < MOST; i++)
			arms[i] = (struct twheel_arm){ .expires_ns = TW_DAY, .id = i };
		for (i = 0; i < ARRAY_SIZE(calls); i++) {
			at = place(_metadata, self->page, variant, calls[i].entries,
				   calls[i].entry_size, goods[k]);
			EXPECT_EQ(expected(goods[k]),
				  key_vector_done(self->keyed, calls[i].cmd, TWHEEL_VECTOR_BY_KEY,
						  at, calls[i].entry_size, goods[k] + BAD,
						  &nr_done));
			EXPECT_EQ(goods[k], nr_done);
			expect_keys(_metadata, self->keyed, goods[k] + BAD,
				    i == 0 ? TW_HOUR : i == 1 ? TW_DAY : 0, goods[k], TW_HOUR);
		}
		cancel_keys(_metadata, self->keyed, goods[k] + BAD);
	}
}

/* ---- elements refused before, and setting up --------------------------------- */

/* If one element was attempted and failed by itself, the call as a whole did not fail. */
TEST_F(faults, element_refused_before_a_fault_was_attempted)
{
	struct twheel_arm arms[1 + BAD] = {}, *at;
	__u32 nr_done;

	arms[0].flags = 1U << 31;
	at = place(_metadata, self->page, variant, arms, sizeof(*arms), 1);
	EXPECT_EQ(0, tw_vector_done(self->fd, TWHEEL_IOC_ARM, at, sizeof(*arms), 1 + BAD,
				    &nr_done));
	EXPECT_EQ(1, nr_done);
	EXPECT_EQ(-EINVAL, at[0].result);
	EXPECT_EQ(0, live(self->fd));
}

/* If a call has one element, it takes another path. */
TEST_F(faults, single_element_that_faults_fails_the_call)
{
	struct twheel_cancel cancels[BAD] = {};
	struct twheel_status status, statuses[BAD] = {};
	struct twheel_arm arms[BAD] = {};
	const struct {
		unsigned long cmd;
		void *entries;
		__u32 entry_size;
	} calls[] = {
		{ TWHEEL_IOC_ARM, arms, sizeof(arms[0]) },
		{ TWHEEL_IOC_REARM, arms, sizeof(arms[0]) },
		{ TWHEEL_IOC_CANCEL, cancels, sizeof(cancels[0]) },
		{ TWHEEL_IOC_QUERY, statuses, sizeof(statuses[0]) },
	};
	__u64 id;
	int i;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_HOUR, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	arms[0] = (struct twheel_arm){ .id = id, .expires_ns = TW_DAY };
	cancels[0].id = id;
	statuses[0].id = id;
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		void *at = place(_metadata, self->page, variant, calls[i].entries,
				 calls[i].entry_size, 0);
		__u32 nr_done;

		EXPECT_EQ(-EFAULT, tw_vector_done(self->fd, calls[i].cmd, at,
						  calls[i].entry_size, 1, &nr_done))
			TH_LOG("call %d", i);
		EXPECT_EQ(0, nr_done);
		EXPECT_EQ(1, live(self->fd));
		ASSERT_EQ(0, tw_query1(self->fd, id, &status));
		EXPECT_EQ(TW_HOUR, status.deadline_ns);
	}
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
}

/*
 * QUERY writes a row as a whole or not at all: the key is still there, so that the caller can ask
 * for it again.
 */
TEST_F(faults, query_by_key_leaves_key_and_result_of_the_element_that_faults)
{
	struct twheel_status rows[BAD], *at;
	__u32 inside, nr_done;
	int i;

	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->keyed, TW_POISON64, TW_HOUR, 0));
	memset(rows, TW_POISON, sizeof(rows));
	for (inside = 0; inside < sizeof(*rows); inside += sizeof(__u64)) {
		char *map = mmap(NULL, 2 * self->page, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		ASSERT_NE(MAP_FAILED, (void *)map);
		at = (void *)(map + self->page - inside);
		memcpy(at, rows, sizeof(rows));
		ASSERT_EQ(0, mprotect(map + self->page, self->page, variant->protection));
		EXPECT_EQ(-EFAULT, key_vector_done(self->keyed, TWHEEL_IOC_QUERY,
						   TWHEEL_VECTOR_BY_KEY, at, sizeof(*at), BAD,
						   &nr_done));
		EXPECT_EQ(0, nr_done);
		ASSERT_EQ(0, mprotect(map + self->page, self->page, PROT_READ));
		for (i = 0; i < BAD; i++) {
			EXPECT_EQ(TW_POISON64, at[i].id)
				TH_LOG("row %d, %u bytes are good", i, inside);
			EXPECT_EQ((__s32)TW_POISON32, at[i].result)
				TH_LOG("row %d, %u bytes are good", i, inside);
		}
		munmap(map, 2 * self->page);
	}
}

/* The memory behind the fault is good again, and nothing was written there. */
TEST_F(faults, results_behind_a_fault_are_as_they_were)
{
	const int per_page = self->page / sizeof(struct twheel_arm), nr = 3 * per_page;
	struct twheel_arm *arms = mmap(NULL, 4 * self->page, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__u32 nr_done;
	int i;

	ASSERT_NE(MAP_FAILED, (void *)arms);
	for (i = 0; i < nr; i++)
		arms[i] = (struct twheel_arm){
			.expires_ns = TW_HOUR, .id = TW_POISON64, .result = TW_POISON32,
		};
	ASSERT_EQ(0, mprotect((char *)arms + self->page, self->page, variant->protection));
	EXPECT_EQ(per_page, tw_vector_done(self->fd, TWHEEL_IOC_ARM, arms, sizeof(*arms), nr,
					   &nr_done));
	EXPECT_EQ(per_page, nr_done);
	for (i = 2 * per_page + 2; i < nr; i++) {
		EXPECT_EQ((__s32)TW_POISON32, arms[i].result);
		EXPECT_EQ(TW_POISON64, arms[i].id);
	}
	EXPECT_EQ(per_page, live(self->fd));
}

/* If nobody has set up a wheel, a call that failed as a whole was not the first ARM. */
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

/* ---- the end of user space ----------------------------------------------- */

#define TOP_PAGES	4

FIXTURE(top) {
	int fd;
	char *end;		/* good memory before it, and none after it */
};

/* Map the last pages that a process can have: of 5-level page tables, or of 4. */
FIXTURE_SETUP(top)
{
	const __u64 ends[] = { 1ULL << 56, 1ULL << 47 };
	size_t page = sysconf(_SC_PAGESIZE), size = TOP_PAGES * page;
	int i;

	self->end = NULL;
	for (i = 0; i < ARRAY_SIZE(ends) && !self->end; i++) {
		char *at = (char *)(uintptr_t)(ends[i] - page - size);

		if (mmap(at, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at)
			self->end = at + size;
	}
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(top)
{
	if (self->end)
		munmap(self->end - TOP_PAGES * sysconf(_SC_PAGESIZE),
		       TOP_PAGES * sysconf(_SC_PAGESIZE));
	close(self->fd);
}

/* Lengths are shorter than a batch, as long, and longer. */
static const int tops[] = { 0, 1, 2, 31, 32, 33, 64, 200 };

#define MOST_TOPS	200

TEST_F(top, elements_before_the_end_of_user_space_are_done)
{
	static struct twheel_cancel cancels[MOST_TOPS];
	static struct twheel_status rows[MOST_TOPS];
	static struct twheel_arm arms[MOST_TOPS];
	int i, k;

	if (!self->end)
		SKIP(return, "the end of user space cannot be mapped");
	for (k = 0; k < ARRAY_SIZE(tops); k++) {
		size_t nr = tops[k];

		memset(arms, 0, sizeof(arms));
		for (i = 0; i < nr; i++)
			arms[i].expires_ns = TW_HOUR;
		memcpy(self->end - nr * sizeof(*arms), arms, nr * sizeof(*arms));
		EXPECT_STOP(TWHEEL_IOC_ARM, self->end - nr * sizeof(*arms), sizeof(*arms), nr);
		ASSERT_EQ(nr, live(self->fd));

		EXPECT_STOP(TWHEEL_IOC_REARM, self->end - nr * sizeof(*arms), sizeof(*arms), nr);
		memcpy(arms, self->end - nr * sizeof(*arms), nr * sizeof(*arms));
		for (i = 0; i < nr; i++) {
			ASSERT_EQ(TWHEEL_WAS_PENDING, arms[i].result);
			rows[i].id = arms[i].id;
			cancels[i].id = arms[i].id;
		}
		memcpy(self->end - nr * sizeof(*rows), rows, nr * sizeof(*rows));
		EXPECT_STOP(TWHEEL_IOC_QUERY, self->end - nr * sizeof(*rows), sizeof(*rows), nr);

		memcpy(self->end - nr * sizeof(*cancels), cancels, nr * sizeof(*cancels));
		EXPECT_STOP(TWHEEL_IOC_CANCEL, self->end - nr * sizeof(*cancels),
			    sizeof(*cancels), nr);
		ASSERT_EQ(0, live(self->fd));
	}
	EXPECT_ACCOUNTS(self->fd);
}

/* ---- a signal that kills ------------------------------------------------- */

#define LONGEST		65536

struct shared {
	struct twheel_vector vector;
	_Atomic int calling;
	struct twheel_arm arms[LONGEST];
};

/* A child makes the call and is killed after a while; return how far the call came. */
static __u32 killed_after(struct __test_metadata *_metadata, int fd, struct shared *shared,
			  __u64 delay_ns)
{
	pid_t child;
	int i;

	for (i = 0; i < LONGEST; i++)
		shared->arms[i] = (struct twheel_arm){
			.expires_ns = TW_HOUR,
			.user_data = i,
			.id = TW_POISON64,
			.result = TW_POISON32,
		};
	shared->calling = 0;
	shared->vector = (struct twheel_vector){
		.size = sizeof(shared->vector),
		.entry_size = sizeof(shared->arms[0]),
		.nr = LONGEST,
		.entries = (uintptr_t)shared->arms,
	};
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* No page of it is mapped in this process yet. */
		for (i = 0; i < LONGEST; i++)
			shared->arms[i].result = TW_POISON32;
		shared->calling = 1;
		tw_ioctl(fd, TWHEEL_IOC_ARM, &shared->vector);
		_exit(0);
	}
	TW_WAIT_FOR(shared->calling, TW_MS / 10);
	tw_sleep(delay_ns);
	kill(child, SIGKILL);
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	return shared->vector.nr_done;
}

/* Kill processes at any moment of a vector, on wheels of this kind. */
static void kill_some(struct __test_metadata *_metadata, __u32 setup_flags)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS, .flags = setup_flags,
	};
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct tw_outcome outcomes[] = {
		TW_OUTCOME("cut short", TW_A_FEW),
		TW_OUTCOME("killed before or after it", 0),
	};
	struct tw_race race = TW_RACE(outcomes, 0);
	__u64 span_ns, seed = 5;
	__u32 nr_done;
	int i, fd;

	ASSERT_NE(MAP_FAILED, (void *)shared);
	for (i = 0; i < LONGEST; i++) {
		shared->arms[i].expires_ns = TW_HOUR;
		shared->arms[i].user_data = i;
	}
	fd = tw_open_setup(O_NONBLOCK, &setup);
	ASSERT_LE(0, fd);
	span_ns = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(LONGEST, tw_arm_vec(fd, shared->arms, LONGEST));
	span_ns = tw_now(CLOCK_MONOTONIC) - span_ns;
	close(fd);

	while (tw_race_goes_on(&race)) {
		fd = tw_open_setup(O_NONBLOCK, &setup);
		ASSERT_LE(0, fd);
		nr_done = killed_after(_metadata, fd, shared, tw_random(&seed) % span_ns);
		ASSERT_EQ(nr_done, live(fd));
		for (i = 0; i < LONGEST; i++) {
			ASSERT_EQ(i < nr_done ? TWHEEL_CREATED : (__s32)TW_POISON32,
				  shared->arms[i].result)
				TH_LOG("element %d, %u attempted", i, nr_done);
		}
		tw_saw(&outcomes[nr_done > 0 && nr_done < LONGEST ? 0 : 1], 1);
		close(fd);
	}
	TH_LOG("a call takes %llu us", span_ns / TW_US);
	EXPECT_RACE(&race);
	munmap(shared, sizeof(*shared));
}

TEST_F_TIMEOUT(top, vector_of_a_killed_process_says_where_it_stopped, 100)
{
	kill_some(_metadata, 0);
}

TEST_F_TIMEOUT(top, vector_of_keys_of_a_killed_process_says_where_it_stopped, 100)
{
	kill_some(_metadata, TWHEEL_SETUP_KEYED);
}

/* ---- memory that nobody has touched ------------------------------------------- */

/* A single call may fault on any number of pages: each element has its own. */
TEST(vector_in_much_fresh_memory_is_done_to_its_end)
{
	static const unsigned long cmds[] = { TWHEEL_IOC_CANCEL, TWHEEL_IOC_REARM };
	const __u32 nr = 1100, entry_size = TWHEEL_SIZE_MAX;
	int fd = tw_virtual(O_NONBLOCK, TW_MS);
	__u32 i, k, nr_done;

	ASSERT_LE(0, fd);
	for (k = 0; k < ARRAY_SIZE(cmds); k++) {
		char *entries = tw_fresh_memory((size_t)nr * entry_size);

		ASSERT_NE(NULL, entries);
		EXPECT_EQ(0, tw_vector_done(fd, cmds[k], entries, entry_size, nr, &nr_done));
		EXPECT_EQ(nr, nr_done);
		for (i = 0; i < nr; i++) {
			const void *entry = entries + (size_t)i * entry_size;
			const struct twheel_cancel *cancel = entry;
			const struct twheel_arm *arm = entry;

			ASSERT_EQ(-ENOENT, k ? arm->result : cancel->result);
		}
		munmap(entries, (size_t)nr * entry_size);
	}
	close(fd);
}

/* Any of its members may be in the page that faults; its memory reads as zero. */
TEST(element_of_a_key_that_ends_in_a_fresh_page_is_done)
{
	const struct twheel_arm arm = {
		.expires_ns = TW_HOUR,
		.interval_ns = TW_MIN,
		.user_data = 42,
		.flags = TWHEEL_ARM_ABSOLUTE,
	};
	size_t page = sysconf(_SC_PAGESIZE), inside;
	int fd = key_virtual(O_NONBLOCK, 0);

	ASSERT_LE(0, fd);
	for (inside = 0; inside < sizeof(arm); inside += 8) {
		char *memory = tw_fresh_memory(2 * page);
		struct twheel_arm *at = (void *)(memory + page - inside);

		ASSERT_NE(NULL, memory);
		memcpy(at, &arm, inside);
		EXPECT_EQ(1, tw_vector(fd, TWHEEL_IOC_ARM, at, sizeof(*at), 1))
			TH_LOG("%zu bytes", inside);
		EXPECT_LT(0, at->result);
		munmap(memory, 2 * page);
	}
	close(fd);
}

/* ---- memory that ends ---------------------------------------------------- */

/*
 * Three timeouts, and two pages, the second of which cannot be read, or not be written. If a
 * structure crosses the edge, the edge may be at any of its bytes.
 */
FIXTURE(memory) {
	int fd;
	size_t page;
	char *edge;
	struct twheel_arm arms[3];
};

FIXTURE_VARIANT(memory) {
	int protection;
};

FIXTURE_VARIANT_ADD(memory, that_ends) {
	.protection = PROT_NONE,
};

FIXTURE_VARIANT_ADD(memory, that_ends_for_who_writes) {
	.protection = PROT_READ,
};

static void three_timeouts(struct __test_metadata *_metadata, FIXTURE_DATA(memory) *self)
{
	int i;

	if (self->fd >= 0)
		close(self->fd);
	self->fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
	ASSERT_LE(0, self->fd);
	for (i = 0; i < 3; i++)
		self->arms[i] = (struct twheel_arm){
			.flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = TW_HOUR,
			.user_data = i,
		};
	ASSERT_EQ(3, tw_arm_vec(self->fd, self->arms, 3));
}

FIXTURE_SETUP(memory)
{
	char *map;

	self->fd = -1;
	self->page = sysconf(_SC_PAGESIZE);
	map = mmap(NULL, 2 * self->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		   -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)map);
	self->edge = map + self->page;
	three_timeouts(_metadata, self);
}

FIXTURE_TEARDOWN(memory)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Place bytes so that this many of them are before the edge. */
static void *lay(struct __test_metadata *_metadata, FIXTURE_DATA(memory) *self, int protection,
		 const void *bytes, size_t size, size_t before)
{
	ASSERT_EQ(0, mprotect(self->edge, self->page, PROT_READ | PROT_WRITE));
	memcpy(self->edge - before, bytes, size);
	ASSERT_EQ(0, mprotect(self->edge, self->page, protection));
	return self->edge - before;
}

#define offsetofend(type, member)					\
	(offsetof(type, member) + sizeof(((type *)NULL)->member))

/* How many bytes of an argument or of an element of stride bytes are written; 0 if none. */
static size_t written(unsigned long cmd, size_t stride)
{
	bool entry = stride;

	switch (cmd) {
	case TWHEEL_IOC_INFO:
		return sizeof(struct twheel_info);
	case TWHEEL_IOC_LIST:
		/*
		 * If a newer caller knows a part that this kernel does not, that part is cleared.
		 */
		return entry ? stride : offsetofend(struct twheel_list, cursor);
	case TWHEEL_IOC_ARM:
	case TWHEEL_IOC_REARM:
		return entry ? offsetofend(struct twheel_arm, result) :
			       offsetofend(struct twheel_vector, nr_done);
	case TWHEEL_IOC_CANCEL:
		return entry ? offsetofend(struct twheel_cancel, result) :
			       offsetofend(struct twheel_vector, nr_done);
	case TWHEEL_IOC_QUERY:
		return entry ? sizeof(struct twheel_status) :
			       offsetofend(struct twheel_vector, nr_done);
	default:
		return 0;
	}
}

TEST_F_TIMEOUT(memory, a_fault_within_an_argument_says_efault, 120)
{
	union tw_argument argument;
	union tw_element element;
	struct tw_snapshot before;
	size_t i, k;

	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		const struct tw_command *command = &tw_commands[i];
		size_t end = variant->protection == PROT_NONE ? command->size :
							written(command->cmd, 0);

		for (k = 0; k < end; k++) {
			void *at;

			tw_make_good(command, self->arms[0].id, &argument, &element);
			at = lay(_metadata, self, variant->protection, &argument, command->size, k);
			EXPECT_EQ(-EFAULT, tw_ioctl(self->fd, command->cmd, at))
				TH_LOG("%s, %zu bytes of %u", command->name, k, command->size);
		}
		EXPECT_UNCHANGED(self->fd, &before);
	}
}

/* If a newer caller knows a part that this kernel does not, that part is cleared. */
TEST_F_TIMEOUT(memory, a_fault_within_the_tail_of_a_larger_info_says_efault, 120)
{
	union tw_argument argument = {};
	size_t k, size = sizeof(argument.info) + 24;

	argument.info.size = size;
	for (k = sizeof(argument.info); k < size; k++) {
		void *at = lay(_metadata, self, variant->protection, &argument, size, k);

		EXPECT_EQ(-EFAULT, tw_ioctl(self->fd, TWHEEL_IOC_INFO, at))
			TH_LOG("%zu bytes of %zu", k, size);
	}
}

/* How many elements of a command were done, by the counters. */
static int elements_done(struct __test_metadata *_metadata, int fd, unsigned long cmd, int ret)
{
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(fd, &info));
	switch (cmd) {
	case TWHEEL_IOC_ARM:
		return info.armed - 3;
	case TWHEEL_IOC_REARM:
		return info.rearmed;
	case TWHEEL_IOC_CANCEL:
		return info.cancelled;
	default:
		return ret;
	}
}

/* Place the elements so that the first of three is good, and this many bytes of the second. */
static void element_across_the_edge(struct __test_metadata *_metadata, FIXTURE_DATA(memory) *self,
				    int protection, const struct tw_command *command,
				  __u32 stride, size_t good)
{
	unsigned char bytes[3 * 128] = {};
	union tw_argument argument;
	union tw_element element;
	bool fits = good >= written(command->cmd, stride);
	int i, ret, wanted;

	three_timeouts(_metadata, self);
	for (i = 0; i < 3; i++) {
		tw_make_good(command, self->arms[i].id, &argument, &element);
		memcpy(bytes + i * stride, &element, command->entry_size);
	}
	/*
	 * The vector and the list begin alike, and have the pointer to elements at different
	 * places.
	 */
	argument.vector.entry_size = stride;
	argument.vector.nr = 3;
	if (command->cmd == TWHEEL_IOC_LIST)
		argument.list.entries = (uintptr_t)lay(_metadata, self, protection, bytes,
						       3 * stride, stride + good);
	else
		argument.vector.entries = (uintptr_t)lay(_metadata, self, protection, bytes,
							 3 * stride, stride + good);
	/* If memory cannot be read, either, a part that is only written may still fit. */
	wanted = fits && (protection == PROT_READ || command->cmd == TWHEEL_IOC_LIST) ? 2 : 1;
	ret = tw_ioctl(self->fd, command->cmd, &argument);
	EXPECT_EQ(wanted, ret)
		TH_LOG("%s, %zu bytes of %u", command->name, good, stride);
	EXPECT_EQ(wanted, elements_done(_metadata, self->fd, command->cmd, ret))
		TH_LOG("%s, %zu bytes of %u", command->name, good, stride);
	if (command->cmd != TWHEEL_IOC_LIST) {
		EXPECT_EQ(wanted, argument.vector.nr_done)
			TH_LOG("%s, %zu bytes of %u", command->name, good, stride);
	}
}

/* Elements are at multiples of 8, so the edge is, too. */
TEST_F_TIMEOUT(memory, a_fault_within_an_element_stops_before_it, 100)
{
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		const struct tw_command *command = &tw_commands[i];
		__u32 stride = command->entry_size;

		for (k = 0; k < stride; k += 8)
			element_across_the_edge(_metadata, self, variant->protection, command,
						stride, k);
		/* Elements have a tail that has to be zero, and is read. */
		for (k = 0; stride && k < stride + 24; k += 8)
			element_across_the_edge(_metadata, self, variant->protection, command,
						stride + 24, k);
	}
}

/*
 * Expect that each of three timeouts that expired has its event once: in this read, or in a later
 * one.
 */
static void expect_three(struct __test_metadata *_metadata, FIXTURE_DATA(memory) *self,
			 const char *at, int got)
{
	struct twheel_event events[3];
	bool seen[3] = {};
	int i;

	memcpy(events, at, got * sizeof(events[0]));
	EXPECT_EQ(3 - got, tw_read(self->fd, events + got, 3 - got));
	for (i = 0; i < 3; i++) {
		ASSERT_GT(3, events[i].user_data);
		EXPECT_FALSE(seen[events[i].user_data]);
		seen[events[i].user_data] = true;
	}
}

/* Expect the events before the byte that cannot be written, whichever call reads. */
static void expect_events_before(struct __test_metadata *_metadata, FIXTURE_DATA(memory) *self,
				 const FIXTURE_VARIANT(memory) *variant, tw_read_call *call)
{
	const size_t size = sizeof(struct twheel_event);
	struct twheel_event events[3] = {};
	size_t k;

	for (k = 0; k < 3 * size; k++) {
		int got = k / size;
		ssize_t bytes;
		void *at;

		three_timeouts(_metadata, self);
		ASSERT_EQ(0, tw_advance(self->fd, TW_HOUR));
		at = lay(_metadata, self, variant->protection, events, 3 * size, k);
		bytes = call(self->fd, at, 3 * size);
		EXPECT_EQ(got ? got * (ssize_t)size : -1, bytes)
			TH_LOG("%zu bytes", k);
		if (bytes < 0) {
			EXPECT_EQ(EFAULT, errno);
		}
		expect_three(_metadata, self, at, got);
	}
}

TEST_F_TIMEOUT(memory, a_fault_within_an_event_stops_before_it, 120)
{
	expect_events_before(_metadata, self, variant, read);
}

TEST_F_TIMEOUT(memory, a_fault_within_an_event_that_is_read_into_pieces_stops_before_it, 120)
{
	expect_events_before(_metadata, self, variant, tw_read_pieces);
}

TEST_HARNESS_MAIN
