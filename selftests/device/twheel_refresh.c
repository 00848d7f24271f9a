// SPDX-License-Identifier: GPL-2.0
/*
 * The refresh table: a store of a later deadline moves a timeout, and no store
 * whatever does any harm.
 */
#include "twheel_test.h"

#include <sys/mman.h>

#define TABLE_PAGES	64
#define TABLE_BYTES	((size_t)TABLE_PAGES * sysconf(_SC_PAGESIZE))
#define WORDS_PER_PAGE	(sysconf(_SC_PAGESIZE) / sizeof(__u64))

/* On a grain, so that what is stored is what reads back. */
#define GRAINS(n)	((n) * TWHEEL_REFRESH_GRAIN_NS)

static __u64 *map_table(int fd)
{
	void *table = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return table == MAP_FAILED ? NULL : table;
}

/* ---- on wheels of every make --------------------------------------------- */

FIXTURE(refresh) {
	int fd;
	__u64 *table;
	__u64 tick_ns;
	__u64 deadline_ns;	/* of id; a multiple of tick_ns */
	__u64 id;
};

TW_VIRTUAL_VARIANTS(refresh);

FIXTURE_SETUP(refresh)
{
	self->fd = tw_open_setup(O_NONBLOCK, &variant->setup);
	ASSERT_LE(0, self->fd);
	self->table = map_table(self->fd);
	ASSERT_NE(NULL, self->table);
	self->tick_ns = variant->setup.tick_ns;
	self->deadline_ns = tw_round_up(10 * TW_MS, self->tick_ns);
	ASSERT_EQ(0, tw_arm1(self->fd, 0, self->deadline_ns, 0, 42, &self->id));
}

FIXTURE_TEARDOWN(refresh)
{
	EXPECT_ACCOUNTS(self->fd);
	munmap(self->table, TABLE_BYTES);
	close(self->fd);
}

/* Nothing until the edge of deadline_ns, then one event of this deadline. */
static void expect_expiry(struct __test_metadata *_metadata, int fd, __u64 tick_ns,
			  __u64 id, __u64 deadline_ns)
{
	__u64 edge_ns = tw_round_up(deadline_ns, tick_ns);
	struct twheel_event event;
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(edge_ns, info.next_expiry_ns);
	ASSERT_EQ(0, tw_advance(fd, edge_ns - 1));
	EXPECT_NO_EVENT(fd);
	ASSERT_EQ(0, tw_advance(fd, edge_ns));
	ASSERT_ONE_EVENT(fd, &event, id);
	EXPECT_EQ(deadline_ns, event.deadline_ns);
	EXPECT_EQ(edge_ns, event.fired_ns);
	EXPECT_EQ(42, event.user_data);
	EXPECT_EQ(1, event.count);
	ASSERT_EQ(0, tw_advance(fd, edge_ns + TW_DAY));
	EXPECT_NO_EVENT(fd);
}

#define EXPECT_EXPIRY(deadline_ns)						\
	expect_expiry(_metadata, self->fd, self->tick_ns, self->id, deadline_ns)

TEST_F(refresh, a_later_deadline_is_the_one_it_expires_at)
{
	__u64 deadline_ns = twheel_refresh_deadline(self->deadline_ns + 7 * TW_MS + 1);

	EXPECT_LE(self->deadline_ns + 7 * TW_MS + 1, deadline_ns);
	EXPECT_GT(self->deadline_ns + 7 * TW_MS + 1 + TWHEEL_REFRESH_GRAIN_NS, deadline_ns);
	twheel_refresh(self->table, self->id, deadline_ns);
	EXPECT_EXPIRY(deadline_ns);
}

TEST_F(refresh, a_far_deadline_is_the_one_it_expires_at)
{
	__u64 deadline_ns = twheel_refresh_deadline(self->deadline_ns + 400 * TW_DAY);

	twheel_refresh(self->table, self->id, deadline_ns);
	EXPECT_EXPIRY(deadline_ns);
}

TEST_F(refresh, of_many_stores_the_last_one_counts)
{
	__u64 deadline_ns = self->deadline_ns;
	int i;

	for (i = 0; i < 1000; i++) {
		deadline_ns = twheel_refresh_deadline(deadline_ns + 3 * TW_SEC);
		twheel_refresh(self->table, self->id, deadline_ns);
	}
	EXPECT_EXPIRY(deadline_ns);
}

/* The idle connection: its slot comes due again and again. */
TEST_F(refresh, refreshed_in_time_it_never_expires)
{
	__u64 now_ns = 0, deadline_ns = self->deadline_ns;
	int i;

	for (i = 0; i < 100; i++) {
		deadline_ns = twheel_refresh_deadline(now_ns + 3 * self->deadline_ns);
		twheel_refresh(self->table, self->id, deadline_ns);
		now_ns += 2 * self->deadline_ns;
		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		EXPECT_NO_EVENT(self->fd);
	}
	EXPECT_EXPIRY(deadline_ns);
}

TEST_F(refresh, an_earlier_deadline_changes_nothing)
{
	twheel_refresh(self->table, self->id, 0);
	twheel_refresh(self->table, self->id, GRAINS(self->deadline_ns / GRAINS(1)));
	EXPECT_EXPIRY(self->deadline_ns);
}

/* What the kernel has seen, and moved the timeout for, is not taken back. */
TEST_F(refresh, an_earlier_deadline_changes_nothing_after_a_later_one_was_seen)
{
	__u64 later_ns = twheel_refresh_deadline(5 * self->deadline_ns);

	twheel_refresh(self->table, self->id, later_ns);
	ASSERT_EQ(0, tw_advance(self->fd, self->deadline_ns));
	EXPECT_NO_EVENT(self->fd);
	twheel_refresh(self->table, self->id,
		       twheel_refresh_deadline(3 * self->deadline_ns));
	EXPECT_EXPIRY(later_ns);
}

TEST_F(refresh, what_makes_no_sense_changes_nothing)
{
	__u64 later_ns = twheel_refresh_deadline(9 * self->deadline_ns);
	__u64 gen = self->id >> 32 & TWHEEL_REFRESH_GEN_MASK;
	const __u64 words[] = {
		~0ULL,				/* another generation */
		gen,
		later_ns | (gen ^ 1),		/* other generations */
		later_ns | (gen ^ 0x8000),
		later_ns | ((gen - 1) & TWHEEL_REFRESH_GEN_MASK),
		later_ns | ((gen + 1) & TWHEEL_REFRESH_GEN_MASK),
		0,
	};
	struct twheel_status status;
	int i;

	for (i = 0; i < ARRAY_SIZE(words); i++) {
		self->table[(__u32)self->id] = words[i];
		ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
		EXPECT_EQ(self->deadline_ns, status.deadline_ns)
			TH_LOG("%#llx", words[i]);
		ASSERT_EQ(0, tw_advance(self->fd, i + 1));
		EXPECT_NO_EVENT(self->fd);
	}
	self->table[(__u32)self->id] = words[2];
	EXPECT_EXPIRY(self->deadline_ns);
}

TEST_F(refresh, to_the_end_of_time_never_expires)
{
	struct twheel_status status;
	struct twheel_info info;

	twheel_refresh(self->table, self->id, twheel_refresh_deadline(~0ULL));
	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	EXPECT_EQ(TWHEEL_TIME_NEVER, status.deadline_ns);
	EXPECT_EQ(TWHEEL_TIME_NEVER, status.left_ns);
	ASSERT_EQ(0, tw_advance(self->fd, 1000 * TW_DAY));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(TWHEEL_NO_EXPIRY, info.next_expiry_ns);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, self->id));
}

/* Made by hand, without twheel_refresh_deadline(): all above it is the end of time. */
TEST_F(refresh, to_beyond_the_end_of_time_never_expires)
{
	const __u64 beyond_ns[] = {
		TWHEEL_TIME_NEVER + 1, TWHEEL_TIME_NEVER + 1 + TWHEEL_REFRESH_GRAIN_NS,
		3ULL << 62, ~(__u64)TWHEEL_REFRESH_GEN_MASK,
	};
	struct twheel_status status;
	struct twheel_info info;
	int i;

	for (i = 0; i < ARRAY_SIZE(beyond_ns); i++) {
		ASSERT_LT(0, tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE,
				       self->deadline_ns, 0));
		twheel_refresh_blind(self->table, self->id, beyond_ns[i]);
		ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
		EXPECT_EQ(TWHEEL_TIME_NEVER, status.deadline_ns)
			TH_LOG("%#llx", beyond_ns[i]);
		EXPECT_EQ(TWHEEL_TIME_NEVER, status.left_ns);
		ASSERT_EQ(0, tw_info(self->fd, &info));
		EXPECT_EQ(TWHEEL_NO_EXPIRY, info.next_expiry_ns);
	}
	ASSERT_EQ(0, tw_advance(self->fd, 1000 * TW_DAY));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	EXPECT_EQ(TWHEEL_TIME_NEVER, status.deadline_ns);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, self->id));
}

TEST_F(refresh, it_shows_at_once)
{
	__u64 deadline_ns = twheel_refresh_deadline(3 * self->deadline_ns);
	struct twheel_status status, row;

	twheel_refresh(self->table, self->id, deadline_ns);
	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	EXPECT_EQ(deadline_ns, status.deadline_ns);
	EXPECT_EQ(deadline_ns, status.left_ns);
	ASSERT_EQ(1, tw_list_all(self->fd, &row, 1, 1));
	EXPECT_EQ(deadline_ns, row.deadline_ns);
	EXPECT_EQ(deadline_ns, row.left_ns);
	EXPECT_EXPIRY(deadline_ns);
}

TEST_F(refresh, rearm_earlier_than_what_was_stored_counts)
{
	twheel_refresh(self->table, self->id, twheel_refresh_deadline(TW_DAY));
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->id, 0, self->deadline_ns + self->tick_ns, 0));
	EXPECT_EXPIRY(self->deadline_ns + self->tick_ns);
}

TEST_F(refresh, rearm_of_what_is_in_the_wheel_counts_more_than_an_earlier_store)
{
	ASSERT_EQ(0, tw_advance(self->fd, 0));
	twheel_refresh(self->table, self->id, twheel_refresh_deadline(TW_DAY));
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->id, 0, self->deadline_ns + self->tick_ns, 0));
	EXPECT_EXPIRY(self->deadline_ns + self->tick_ns);
}

TEST_F(refresh, rearm_later_and_a_store_later_still)
{
	__u64 deadline_ns = twheel_refresh_deadline(9 * self->deadline_ns);

	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->id, 0, 3 * self->deadline_ns, 0));
	twheel_refresh(self->table, self->id, deadline_ns);
	EXPECT_EXPIRY(deadline_ns);
}

/* Due when armed, and moved before anybody looked. */
TEST_F(refresh, an_overdue_one_waits_for_what_was_stored)
{
	__u64 now_ns = 2 * self->deadline_ns;
	__u64 deadline_ns = twheel_refresh_deadline(3 * self->deadline_ns);
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(self->fd, now_ns));
	ASSERT_ONE_EVENT(self->fd, &event, self->id);
	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, 1, 0, 42, &self->id));
	twheel_refresh(self->table, self->id, deadline_ns);
	/* The kthread may have been first. */
	if (tw_advance(self->fd, now_ns) == 0 && tw_read(self->fd, &event, 1) == 1) {
		EXPECT_EQ(self->id, event.id);
		EXPECT_EQ(1, event.deadline_ns);
		return;
	}
	EXPECT_EXPIRY(deadline_ns);
}

TEST_F(refresh, events_still_come_in_the_order_of_ticks)
{
	__u64 ids[64], deadline_ns[64], seed = 7;
	struct twheel_event events[65];
	__u64 last_ns = 0;
	int i;

	for (i = 0; i < 64; i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, self->deadline_ns + i * self->tick_ns, &ids[i]));
		deadline_ns[i] = twheel_refresh_deadline(self->deadline_ns +
							 tw_random(&seed) % 200 * self->tick_ns);
		twheel_refresh(self->table, ids[i], deadline_ns[i]);
	}
	ASSERT_EQ(0, tw_advance(self->fd, self->deadline_ns + 300 * self->tick_ns + TW_SEC));
	ASSERT_EQ(65, tw_read(self->fd, events, 65));
	for (i = 0; i < 65; i++) {
		EXPECT_LE(last_ns, tw_round_up(events[i].deadline_ns, self->tick_ns));
		last_ns = tw_round_up(events[i].deadline_ns, self->tick_ns);
	}
}

/* ---- what else there is -------------------------------------------------- */

FIXTURE(table) {
	int fd;
	__u64 *table;
};

FIXTURE_SETUP(table)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
	self->table = map_table(self->fd);
	ASSERT_NE(NULL, self->table);
}

FIXTURE_TEARDOWN(table)
{
	EXPECT_ACCOUNTS(self->fd);
	munmap(self->table, TABLE_BYTES);
	close(self->fd);
}

TEST_F(table, info_says_that_it_is_there)
{
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_TRUE(info.features & TWHEEL_FEATURE_REFRESH);
}

TEST_F(table, info_says_how_much_to_map)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .max_pending = 5000,
	};
	int fd = tw_open_setup(O_NONBLOCK, &setup);
	struct twheel_info info;
	__u64 *table, id;
	int i;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &info));
	table = mmap(NULL, info.refresh_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, table);
	for (i = 0; i < 5000; i++) {
		ASSERT_EQ(0, tw_arm_in(fd, TW_SEC, &id));
		ASSERT_GT(info.refresh_size / sizeof(__u64), (__u32)id);
		twheel_refresh(table, id, twheel_refresh_deadline(TW_MIN));
	}
	EXPECT_EQ(-EAGAIN, tw_arm_in(fd, TW_SEC, &id));
	munmap(table, info.refresh_size);
	close(fd);
}

TEST_F(table, a_store_through_the_id_of_one_cancelled_changes_nothing_for_its_successor)
{
	struct twheel_status status;
	__u64 old, new;
	int tries;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &old));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, old));
	/* The kthread gives the place back, and it comes round. */
	for (tries = 0; tries < 1000; tries++) {
		ASSERT_EQ(0, tw_advance(self->fd, 0));
		ASSERT_EQ(0, tw_arm1(self->fd, 0, TW_SEC, 0, 42, &new));
		if ((__u32)new == (__u32)old)
			break;
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, new));
	}
	ASSERT_EQ((__u32)old, (__u32)new);
	ASSERT_NE(old, new);
	EXPECT_EQ(0, twheel_refresh(self->table, old, twheel_refresh_deadline(TW_HOUR)));
	ASSERT_EQ(0, tw_query1(self->fd, new, &status));
	EXPECT_EQ(TW_SEC, status.deadline_ns);
	/* And takes nothing back, unless it is blind. */
	EXPECT_EQ(1, twheel_refresh(self->table, new, twheel_refresh_deadline(TW_MIN)));
	EXPECT_EQ(0, twheel_refresh(self->table, old, twheel_refresh_deadline(TW_HOUR)));
	ASSERT_EQ(0, tw_query1(self->fd, new, &status));
	EXPECT_EQ(twheel_refresh_deadline(TW_MIN), status.deadline_ns);
	twheel_refresh_blind(self->table, old, twheel_refresh_deadline(TW_HOUR));
	ASSERT_EQ(0, tw_query1(self->fd, new, &status));
	EXPECT_EQ(TW_SEC, status.deadline_ns);
	EXPECT_EQ(-ENOENT, tw_query1(self->fd, old, &status));
	expect_expiry(_metadata, self->fd, TW_MS, new, TW_SEC);
}

TEST_F(table, arm_and_rearm_begin_the_word_anew)
{
	__u64 ids[1000];
	int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &ids[i]));
		EXPECT_EQ(ids[i] >> 32, self->table[(__u32)ids[i]]);
		self->table[(__u32)ids[i]] = ~0ULL;
	}
	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, ids[i], 0, TW_MIN, 0));
		EXPECT_EQ(ids[i] >> 32, self->table[(__u32)ids[i]]);
		self->table[(__u32)ids[i]] = ~0ULL;
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[i]));
	}
	ASSERT_EQ(0, tw_advance(self->fd, 0));
	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &ids[i]));
		EXPECT_EQ(ids[i] >> 32, self->table[(__u32)ids[i]]);
	}
}

TEST_F(table, a_periodic_one_is_not_moved)
{
	struct twheel_status status;
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm1(self->fd, 0, TW_SEC, TW_SEC, 0, &id));
	twheel_refresh(self->table, id, twheel_refresh_deadline(TW_HOUR));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(TW_SEC, status.deadline_ns);
	ASSERT_EQ(0, tw_advance(self->fd, 3 * TW_SEC));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(3, event.count);
	EXPECT_EQ(3 * TW_SEC, event.deadline_ns);
}

TEST_F(table, an_expired_one_is_not_moved)
{
	struct twheel_status status;
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_SEC));
	twheel_refresh(self->table, id, twheel_refresh_deadline(TW_HOUR));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, status.state);
	EXPECT_EQ(TW_SEC, status.deadline_ns);
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(TW_SEC, event.deadline_ns);
}

TEST_F(table, what_is_drained_tells_the_refreshed_deadline)
{
	__u64 deadline_ns = twheel_refresh_deadline(TW_HOUR);
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &id));
	twheel_refresh(self->table, id, deadline_ns);
	ASSERT_EQ(0, tw_drain(self->fd));
	twheel_refresh(self->table, id, twheel_refresh_deadline(TW_DAY));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(id, event.id);
	EXPECT_EQ(deadline_ns, event.deadline_ns);
	EXPECT_EQ(TW_DRAINED, event.flags);
}

TEST_F(table, a_cancel_wins_over_any_store)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &id));
	twheel_refresh(self->table, id, twheel_refresh_deadline(TW_MIN));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	twheel_refresh(self->table, id, twheel_refresh_deadline(TW_HOUR));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_DAY));
	EXPECT_NO_EVENT(self->fd);
}

/* A child writes; how it ended. */
static int status_of_store(__u64 *word)
{
	pid_t child = fork();
	int status;

	if (!child) {
		*(volatile __u64 *)word = 0;
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -1;
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

TEST_F(table, beyond_what_was_armed_is_sigbus)
{
	__u64 ids[1000];
	int i;

	EXPECT_EQ(SIGBUS, status_of_store(&self->table[0]));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &ids[0]));
	EXPECT_EQ(0, status_of_store(&self->table[(__u32)ids[0]]));
	EXPECT_EQ(SIGBUS, status_of_store(&self->table[WORDS_PER_PAGE]));
	/* What is armed next has its word in the same mapping. */
	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &ids[i]));
		twheel_refresh(self->table, ids[i], twheel_refresh_deadline(TW_MIN));
	}
	EXPECT_EQ(0, status_of_store(&self->table[WORDS_PER_PAGE]));
	EXPECT_EQ(SIGBUS, status_of_store(&self->table[TABLE_BYTES / sizeof(__u64) - 1]));
}

TEST_F(table, begins_with_zeroes_and_the_generation_of_what_is_armed)
{
	__u64 id;
	int i;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &id));
	for (i = 0; i < WORDS_PER_PAGE; i++)
		ASSERT_EQ(i == (int)id ? id >> 32 : 0, self->table[i]);
}

TEST_F(table, a_mapping_made_later_sees_the_same)
{
	size_t page = sysconf(_SC_PAGESIZE);
	__u64 ids[1500], *part;
	int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++)
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &ids[i]));
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		twheel_refresh(self->table, ids[i], GRAINS(i + 1));
	part = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, part);
	EXPECT_EQ(0, memcmp(part, self->table, 2 * page));
	munmap(part, 2 * page);
}

/* Mapped for the first time when the timeouts are there already. */
TEST(a_table_that_comes_after_the_timeouts_holds_them_all)
{
	__u64 ids[3000], *table;
	struct twheel_event event;
	int i, fd = tw_virtual(O_NONBLOCK, TW_MS);

	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		ASSERT_EQ(0, tw_arm_in(fd, TW_SEC, &ids[i]));
	table = map_table(fd);
	ASSERT_NE(NULL, table);
	for (i = 1; i < ARRAY_SIZE(ids); i++)
		ASSERT_EQ(1, twheel_refresh(table, ids[i], twheel_refresh_deadline(TW_MIN)));
	ASSERT_EQ(0, tw_advance(fd, TW_MIN - 1));
	ASSERT_ONE_EVENT(fd, &event, ids[0]);
	ASSERT_EQ(0, tw_advance(fd, TW_MIN + TW_SEC));
	for (i = 1; i < ARRAY_SIZE(ids); i++)
		ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_NO_EVENT(fd);
	EXPECT_ACCOUNTS(fd);
	munmap(table, TABLE_BYTES);
	close(fd);
}

TEST_F(table, what_a_child_stores_counts)
{
	struct twheel_event event;
	pid_t child;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &id));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		__u64 *table = map_table(self->fd);

		if (!table)
			_exit(1);
		twheel_refresh(table, id, twheel_refresh_deadline(TW_MIN));
		_exit(0);
	}
	ASSERT_EQ(0, tw_reap(child));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MIN - 1));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MIN + TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
}

TEST_F(table, a_private_mapping_is_refused)
{
	errno = 0;
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, self->fd, 0));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(table, who_may_not_write_the_descriptor_may_not_map_it_for_writing)
{
	int fd = open(TW_DEVICE, O_RDONLY);

	ASSERT_LE(0, fd);
	errno = 0;
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	EXPECT_EQ(EACCES, errno);
	close(fd);
}

TEST_F(table, who_may_only_read_the_descriptor_may_map_it_for_reading)
{
	size_t page = sysconf(_SC_PAGESIZE);
	int fd = open(TW_DEVICE, O_RDONLY);
	const __u64 *table;
	__u64 id;

	ASSERT_LE(0, fd);
	table = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)table);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	EXPECT_EQ(id >> 32, table[(__u32)id]);
	errno = 0;
	EXPECT_EQ(-1, mprotect((void *)table, page, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	munmap((void *)table, page);
	close(fd);
}

/* Nothing is there, so that something may come to be there. */
TEST_F(table, a_mapping_at_an_offset_is_refused)
{
	const __u64 pages[] = { 1, 2, 1ULL << 20, 1ULL << 40, (1ULL << 51) - 1 };
	size_t page = sysconf(_SC_PAGESIZE);
	int i;

	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		errno = 0;
		EXPECT_EQ(MAP_FAILED, mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED,
					   self->fd, (off_t)(pages[i] * page)));
		EXPECT_EQ(EINVAL, errno)
			TH_LOG("page %llu", pages[i]);
	}
}

TEST_F(table, a_mapping_longer_than_the_table_is_refused)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct twheel_info info;
	void *table;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	errno = 0;
	EXPECT_EQ(MAP_FAILED, mmap(NULL, info.refresh_size + page, PROT_READ, MAP_SHARED,
				   self->fd, 0));
	EXPECT_EQ(EINVAL, errno);
	table = mmap(NULL, info.refresh_size, PROT_READ, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, table);
	munmap(table, info.refresh_size);
}

TEST_F(table, a_mapping_cannot_grow)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *table = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);

	ASSERT_NE(MAP_FAILED, table);
	errno = 0;
	EXPECT_EQ(MAP_FAILED, mremap(table, page, 2 * page, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
	munmap(table, page);
}

TEST_F(table, a_mapping_is_never_executable)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *table;

	errno = 0;
	EXPECT_EQ(MAP_FAILED, mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_SHARED, self->fd, 0));
	EXPECT_EQ(EINVAL, errno);
	table = mmap(NULL, page, PROT_READ, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, table);
	errno = 0;
	EXPECT_EQ(-1, mprotect(table, page, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	munmap(table, page);
}

TEST(a_mapping_outlives_its_descriptor)
{
	__u64 id, *table;
	int fd = tw_open(O_NONBLOCK);

	ASSERT_LE(0, fd);
	table = map_table(fd);
	ASSERT_NE(NULL, table);
	ASSERT_EQ(0, tw_arm_in(fd, TW_MS, &id));
	close(fd);
	twheel_refresh(table, id, twheel_refresh_deadline(TW_DAY));
	EXPECT_NE(0, table[(__u32)id]);
	tw_sleep(10 * TW_MS);
	munmap(table, TABLE_BYTES);
}

/* ---- the real clock ------------------------------------------------------ */

TEST(refreshed_on_a_real_clock_it_is_never_early)
{
	__u64 id, deadline_ns, end_ns, *table;
	struct twheel_event event;
	int fd = tw_open(O_NONBLOCK);

	ASSERT_LE(0, fd);
	table = map_table(fd);
	ASSERT_NE(NULL, table);
	/* A stall of the machine may be longer: then it comes at what was stored. */
	ASSERT_EQ(0, tw_arm_in(fd, 200 * TW_MS, &id));
	end_ns = tw_now(CLOCK_MONOTONIC) + TW_SEC;
	do {
		deadline_ns = twheel_refresh_deadline(tw_now(CLOCK_MONOTONIC) + 200 * TW_MS);
		twheel_refresh(table, id, deadline_ns);
		tw_sleep(5 * TW_MS);
	} while (tw_now(CLOCK_MONOTONIC) < end_ns && tw_poll(fd, POLLIN, 0) == 0);
	ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
	EXPECT_EQ(id, event.id);
	EXPECT_LE(tw_round_up(event.deadline_ns, TW_MS), event.fired_ns);
	if (event.fired_ns >= end_ns)
		EXPECT_EQ(deadline_ns, event.deadline_ns);
	EXPECT_ACCOUNTS(fd);
	munmap(table, TABLE_BYTES);
	close(fd);
}

TEST_HARNESS_MAIN
