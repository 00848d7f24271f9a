// SPDX-License-Identifier: GPL-2.0
/*
 * The refresh table: a store of a later deadline moves a timeout, and no store does any harm.
 */
#include "twheel_test.h"

#include <sys/mman.h>

#define TABLE_PAGES	64
#define TABLE_BYTES	((size_t)TABLE_PAGES * sysconf(_SC_PAGESIZE))
#define WORDS_PER_PAGE	(sysconf(_SC_PAGESIZE) / sizeof(__u64))

/* Stored deadlines are modulo this many grains, and count within half of that. */
#define NR_GRAINS	(1ULL << 36)

/* Generations in a word are modulo this, too. */
#define NR_GENS		(1ULL << TWHEEL_REFRESH_GEN_BITS)

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
	__u32 shift;		/* a grain is 1 << shift ns */
	__u64 deadline_ns;	/* deadline of id; a multiple of tick_ns */
	__u64 id;
};

TW_VIRTUAL_VARIANTS(refresh);
TW_VIRTUAL_SETTLED(refresh);

FIXTURE_SETUP(refresh)
{
	TW_SETTLE();
	self->fd = tw_open_setup(O_NONBLOCK, &variant->setup);
	ASSERT_LE(0, self->fd);
	self->table = map_table(self->fd);
	ASSERT_NE(NULL, self->table);
	self->tick_ns = variant->setup.tick_ns;
	self->shift = tw_shift(self->tick_ns);
	self->deadline_ns = tw_round_up(10 * TW_MS, self->tick_ns);
	ASSERT_EQ(0, tw_arm1(self->fd, 0, self->deadline_ns, 0, 42, &self->id));
}

FIXTURE_TEARDOWN(refresh)
{
	EXPECT_ACCOUNTS(self->fd);
	munmap(self->table, TABLE_BYTES);
	close(self->fd);
}

/* Expect nothing until the edge of deadline_ns, and then one event of this deadline. */
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

TEST_F(refresh, a_timeout_expires_at_a_later_deadline_that_was_stored)
{
	__u64 deadline_ns = tw_refreshed_ns(self->deadline_ns + 7 * TW_MS + 1, self->shift);

	EXPECT_LE(self->deadline_ns + 7 * TW_MS + 1, deadline_ns);
	EXPECT_GT(self->deadline_ns + 7 * TW_MS + 1 + (1ULL << self->shift), deadline_ns);
	tw_refresh(self->table, self->id, deadline_ns, self->shift);
	EXPECT_EXPIRY(deadline_ns);
}

/* The latest deadline that a word can hold, if the known one is @deadline_ns. */
static __u64 latest_ns(__u64 deadline_ns, __u32 shift)
{
	unsigned __int128 grains = (deadline_ns >> shift) + NR_GRAINS / 2 - 1;

	return grains << shift > TWHEEL_TIME_NEVER ? TWHEEL_TIME_NEVER : grains << shift;
}

TEST_F(refresh, a_timeout_expires_at_a_far_deadline_that_was_stored)
{
	__u64 deadline_ns = latest_ns(self->deadline_ns, self->shift);

	/* These are the figures of the header. */
	if (self->tick_ns == TW_MS) {
		EXPECT_EQ(208, (deadline_ns - self->deadline_ns) / TW_DAY);
	}
	if (self->tick_ns == TW_US) {
		EXPECT_EQ(48, (deadline_ns - self->deadline_ns) / (TW_HOUR / 10));
	}
	/* A year passes in steps of ADVANCE; thousands of steps are enough. */
	if (deadline_ns > self->deadline_ns + 400 * TW_DAY)
		deadline_ns = tw_refreshed_ns(self->deadline_ns + 400 * TW_DAY, self->shift);
	tw_refresh(self->table, self->id, deadline_ns, self->shift);
	EXPECT_EXPIRY(deadline_ns);
}

/*
 * The kernel takes a word for the nearest time. If the time is farther away, it does nothing, or
 * moves the timeout to a later time than was armed.
 */
TEST_F(refresh, a_deadline_beyond_the_horizon_is_never_an_earlier_one)
{
	__u64 deadline_ns = latest_ns(self->deadline_ns, self->shift);
	__u64 base = self->deadline_ns >> self->shift;
	struct twheel_status status;

	/* If ticks are long, no deadline is beyond the horizon. */
	if (deadline_ns == TWHEEL_TIME_NEVER)
		return;
	/*
	 * As a difference of 2^35 grains, this deadline is the farthest one before the known one.
	 */
	tw_refresh(self->table, self->id, deadline_ns + 1, self->shift);
	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	EXPECT_EQ(self->deadline_ns, status.deadline_ns);
	tw_refresh(self->table, self->id, (base + NR_GRAINS) << self->shift, self->shift);
	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	EXPECT_EQ(self->deadline_ns, status.deadline_ns);
	/* This is the next grain. */
	tw_refresh(self->table, self->id, (base + NR_GRAINS + 1) << self->shift, self->shift);
	EXPECT_EXPIRY((base + 1) << self->shift);
}

/* The words of deadlines on both sides of a multiple of 2^36 grains. */
TEST_F(refresh, a_later_deadline_counts_also_where_the_grains_wrap)
{
	unsigned __int128 turn = (unsigned __int128)NR_GRAINS << self->shift;
	__u64 turn_ns = turn, before_ns;

	/* If ticks are long, words never wrap. */
	if (turn > TWHEEL_TIME_NEVER / 2)
		return;
	before_ns = turn_ns - 3 * self->tick_ns;
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE,
						before_ns, 0));
	/* Both deadlines are before the armed one, one of them only as a number. */
	tw_refresh(self->table, self->id, before_ns - 5 * self->tick_ns, self->shift);
	tw_refresh(self->table, self->id, turn_ns + 5 * self->tick_ns, self->shift);
	EXPECT_EXPIRY(tw_refreshed_ns(turn_ns + 5 * self->tick_ns, self->shift));
}

TEST_F(refresh, an_earlier_deadline_changes_nothing_where_the_grains_wrap)
{
	unsigned __int128 turn = (unsigned __int128)NR_GRAINS << self->shift;
	__u64 turn_ns = turn, after_ns;

	/* If ticks are long, words never wrap. */
	if (turn > TWHEEL_TIME_NEVER / 2)
		return;
	after_ns = tw_round_up(turn_ns + 3 * self->tick_ns, self->tick_ns);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE,
						after_ns, 0));
	tw_refresh(self->table, self->id, turn_ns - 3 * self->tick_ns, self->shift);
	EXPECT_EXPIRY(after_ns);
}

TEST_F(refresh, the_last_of_many_stores_counts)
{
	__u64 deadline_ns = self->deadline_ns;
	int i;

	for (i = 0; i < 1000; i++) {
		deadline_ns = tw_refreshed_ns(deadline_ns + 3 * TW_SEC, self->shift);
		tw_refresh(self->table, self->id, deadline_ns, self->shift);
	}
	EXPECT_EXPIRY(deadline_ns);
}

/* The idle connection: its slot comes due again and again. */
TEST_F(refresh, a_timeout_refreshed_in_time_never_expires)
{
	__u64 now_ns = 0, deadline_ns = self->deadline_ns;
	int i;

	for (i = 0; i < 100; i++) {
		deadline_ns = tw_refreshed_ns(now_ns + 3 * self->deadline_ns, self->shift);
		tw_refresh(self->table, self->id, deadline_ns, self->shift);
		now_ns += 2 * self->deadline_ns;
		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		EXPECT_NO_EVENT(self->fd);
	}
	EXPECT_EXPIRY(deadline_ns);
}

TEST_F(refresh, an_earlier_deadline_changes_nothing)
{
	tw_refresh(self->table, self->id, 0, self->shift);
	tw_refresh(self->table, self->id, self->deadline_ns >> self->shift << self->shift,
		   self->shift);
	EXPECT_EXPIRY(self->deadline_ns);
}

/* If the kernel has seen a deadline, and moved the timeout for it, that is not taken back. */
TEST_F(refresh, an_earlier_deadline_changes_nothing_after_a_later_one_was_seen)
{
	__u64 later_ns = tw_refreshed_ns(5 * self->deadline_ns, self->shift);

	tw_refresh(self->table, self->id, later_ns, self->shift);
	ASSERT_EQ(0, tw_advance(self->fd, self->deadline_ns));
	EXPECT_NO_EVENT(self->fd);
	tw_refresh(self->table, self->id, 3 * self->deadline_ns, self->shift);
	EXPECT_EXPIRY(later_ns);
}

TEST_F(refresh, a_store_that_makes_no_sense_changes_nothing)
{
	__u64 later = twheel_refresh_deadline(9 * self->deadline_ns, self->shift);
	__u64 gen = self->id >> 32 & TWHEEL_REFRESH_GEN_MASK;
	const __u64 words[] = {
		~0ULL,				/* another generation */
		gen,
		later | (gen ^ 1),		/* other generations */
		later | (gen ^ 1 << 16),
		later | (gen ^ 1 << 27),
		later | ((gen - 1) & TWHEEL_REFRESH_GEN_MASK),
		later | ((gen + 1) & TWHEEL_REFRESH_GEN_MASK),
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

/* Whatever the tick is, any value of a word moves the timeout later, or not at all. */
TEST_F(refresh, any_grains_are_those_of_the_nearest_time)
{
	__u64 gen = self->id >> 32 & TWHEEL_REFRESH_GEN_MASK, seed = 11;
	struct twheel_status status;
	int i;

	for (i = 0; i < 3000; i++) {
		__u64 armed_ns = TW_DAY + (tw_random(&seed) >> (2 + tw_random(&seed) % 62));
		__u64 grains = tw_random(&seed) >> (28 + tw_random(&seed) % 36);
		__u64 base = armed_ns >> self->shift, ahead = (grains - base) % NR_GRAINS;
		__u64 expected_ns = armed_ns;

		if (ahead && ahead < NR_GRAINS / 2) {
			unsigned __int128 moved_ns = base + ahead;

			moved_ns <<= self->shift;
			expected_ns = moved_ns > TWHEEL_TIME_NEVER ? TWHEEL_TIME_NEVER : moved_ns;
		}
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE,
							armed_ns, 0));
		self->table[(__u32)self->id] = grains << TWHEEL_REFRESH_GEN_BITS | gen;
		ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
		ASSERT_EQ(expected_ns, status.deadline_ns)
			TH_LOG("armed %llu, grains %llu", armed_ns, grains);
	}
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE,
						self->deadline_ns, 0));
	EXPECT_EXPIRY(self->deadline_ns);
}

/*
 * G1: if a deadline is within the grain of the one armed, it is rounded up, and counts as a move.
 */
TEST_F(refresh, a_deadline_between_grains_is_rounded_up)
{
	__u64 grain_ns = 1ULL << self->shift;
	__u64 armed_ns = tw_refreshed_ns(self->deadline_ns, self->shift) + grain_ns / 4;
	__u64 wanted_ns = armed_ns + grain_ns / 4;

	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE,
						armed_ns, 0));
	tw_refresh(self->table, self->id, wanted_ns, self->shift);
	EXPECT_EXPIRY(tw_refreshed_ns(wanted_ns, self->shift));
}

TEST_F(refresh, info_says_how_long_a_grain_is)
{
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(self->shift, info.refresh_shift);
	EXPECT_EQ(0, info.reserved);
	EXPECT_GE(self->tick_ns, 1ULL << info.refresh_shift);
	EXPECT_LT(self->tick_ns / 2, 1ULL << info.refresh_shift);
}

/* Only if ticks are long, the end of time is within the horizon. */
TEST(a_timeout_refreshed_to_the_end_of_time_never_expires)
{
	static const __u64 stored_ns[] = {
		TWHEEL_TIME_NEVER, TWHEEL_TIME_NEVER - 1, TWHEEL_TIME_NEVER + 1, 3ULL << 62,
	};
	int i, fd = tw_virtual(O_NONBLOCK, TW_HOUR);
	__u32 shift = tw_shift(TW_HOUR);
	struct twheel_status status;
	struct twheel_info info;
	__u64 id, *table;

	ASSERT_LE(0, fd);
	table = map_table(fd);
	ASSERT_NE(NULL, table);
	ASSERT_EQ(0, tw_arm_in(fd, TW_DAY, &id));
	for (i = 0; i < ARRAY_SIZE(stored_ns); i++) {
		ASSERT_LT(0, tw_rearm1(fd, id, TWHEEL_ARM_ABSOLUTE, TW_DAY, 0));
		EXPECT_EQ(1, tw_refresh(table, id, stored_ns[i], shift));
		ASSERT_EQ(0, tw_query1(fd, id, &status));
		EXPECT_EQ(TWHEEL_TIME_NEVER, status.deadline_ns)
			TH_LOG("%#llx", stored_ns[i]);
		EXPECT_EQ(TWHEEL_TIME_NEVER, status.left_ns);
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(TWHEEL_TIME_NEVER, info.next_expiry_ns);
	}
	ASSERT_EQ(0, tw_advance(fd, 1000 * TW_DAY));
	EXPECT_NO_EVENT(fd);
	/* Only REARM brings it back. */
	EXPECT_EQ(1, tw_refresh(table, id, 2000 * TW_DAY, shift));
	ASSERT_EQ(0, tw_query1(fd, id, &status));
	EXPECT_EQ(TWHEEL_TIME_NEVER, status.deadline_ns);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, id));
	EXPECT_ACCOUNTS(fd);
	munmap(table, TABLE_BYTES);
	close(fd);
}

TEST_F(refresh, no_store_moves_a_timeout_armed_for_the_end_of_time)
{
	__u64 gen = self->id >> 32 & TWHEEL_REFRESH_GEN_MASK, grains, seed = 3;
	struct twheel_status status;
	int i;

	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE,
						TWHEEL_TIME_NEVER, 0));
	for (i = 0; i < 200; i++) {
		grains = (TWHEEL_TIME_NEVER >> self->shift) + i - 100;
		if (i > 150)
			grains = tw_random(&seed);
		self->table[(__u32)self->id] = grains << TWHEEL_REFRESH_GEN_BITS | gen;
		ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
		EXPECT_EQ(TWHEEL_TIME_NEVER, status.deadline_ns);
	}
	ASSERT_EQ(0, tw_advance(self->fd, 1000 * TW_DAY));
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, self->id));
}

TEST_F(refresh, a_store_counts_for_a_deadline_of_zero)
{
	__u64 deadline_ns = tw_refreshed_ns(5 * self->deadline_ns, self->shift);
	__u64 gen = self->id >> 32 & TWHEEL_REFRESH_GEN_MASK;
	struct twheel_status status;

	/* The timeout is due at once, so it may have expired before the store. */
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE, 0, 0));
	self->table[(__u32)self->id] = gen;
	/* This is the grain before that of zero. */
	self->table[(__u32)self->id] = ~(__u64)TWHEEL_REFRESH_GEN_MASK | gen;
	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	EXPECT_EQ(0, status.deadline_ns);
	tw_refresh(self->table, self->id, deadline_ns, self->shift);
	/* The kthread reads the word now, if it has not before. */
	ASSERT_EQ(0, tw_advance(self->fd, 0));
	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	if (status.state == TWHEEL_STATE_PENDING) {
		EXPECT_EXPIRY(deadline_ns);
		return;
	}
	EXPECT_EQ(0, status.deadline_ns);
	EXPECT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, self->id));
}

TEST_F(refresh, a_store_shows_at_once)
{
	__u64 deadline_ns = tw_refreshed_ns(3 * self->deadline_ns, self->shift);
	struct twheel_status status, row;

	tw_refresh(self->table, self->id, deadline_ns, self->shift);
	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	EXPECT_EQ(deadline_ns, status.deadline_ns);
	EXPECT_EQ(deadline_ns, status.left_ns);
	ASSERT_EQ(1, tw_list_all(self->fd, &row, 1, 1));
	EXPECT_EQ(deadline_ns, row.deadline_ns);
	EXPECT_EQ(deadline_ns, row.left_ns);
	EXPECT_EXPIRY(deadline_ns);
}

TEST_F(refresh, a_rearm_earlier_than_the_stored_deadline_counts)
{
	tw_refresh(self->table, self->id, TW_DAY, self->shift);
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->id, 0, self->deadline_ns + self->tick_ns, 0));
	EXPECT_EXPIRY(self->deadline_ns + self->tick_ns);
}

TEST_F(refresh, a_rearm_of_a_timeout_in_the_wheel_counts_more_than_an_earlier_store)
{
	ASSERT_EQ(0, tw_advance(self->fd, 0));
	tw_refresh(self->table, self->id, TW_DAY, self->shift);
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->id, 0, self->deadline_ns + self->tick_ns, 0));
	EXPECT_EXPIRY(self->deadline_ns + self->tick_ns);
}

TEST_F(refresh, a_store_later_than_a_rearm_to_later_counts)
{
	__u64 deadline_ns = tw_refreshed_ns(9 * self->deadline_ns, self->shift);

	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->id, 0, 3 * self->deadline_ns, 0));
	tw_refresh(self->table, self->id, deadline_ns, self->shift);
	EXPECT_EXPIRY(deadline_ns);
}

/* The timeout was due when armed, and moved before any pass. */
TEST_F(refresh, an_overdue_timeout_waits_for_the_stored_deadline)
{
	__u64 now_ns = 2 * self->deadline_ns;
	__u64 deadline_ns = tw_refreshed_ns(3 * self->deadline_ns, self->shift);
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(self->fd, now_ns));
	ASSERT_ONE_EVENT(self->fd, &event, self->id);
	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, 1, 0, 42, &self->id));
	tw_refresh(self->table, self->id, deadline_ns, self->shift);
	/* If the kthread was first, it has expired. */
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
		deadline_ns[i] = self->deadline_ns + tw_random(&seed) % 200 * self->tick_ns;
		tw_refresh(self->table, ids[i], deadline_ns[i], self->shift);
	}
	ASSERT_EQ(0, tw_advance(self->fd, self->deadline_ns + 300 * self->tick_ns + TW_SEC));
	ASSERT_EQ(65, tw_read(self->fd, events, 65));
	for (i = 0; i < 65; i++) {
		EXPECT_LE(last_ns, tw_round_up(events[i].deadline_ns, self->tick_ns));
		last_ns = tw_round_up(events[i].deadline_ns, self->tick_ns);
	}
}

/* ---- other rules of the table -------------------------------------------- */

FIXTURE(table) {
	int fd;
	__u64 *table;
	__u32 shift;		/* a grain is 1 << shift ns */
};

FIXTURE_SETUP(table)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	self->shift = tw_shift(TW_MS);
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

TEST_F(table, info_says_how_much_of_the_table_to_map)
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
		tw_refresh(table, id, TW_MIN, self->shift);
	}
	EXPECT_EQ(-EAGAIN, tw_arm_in(fd, TW_SEC, &id));
	munmap(table, info.refresh_size);
	close(fd);
}

/* This does not depend on how many places were used, or on whether the table is mapped. */
TEST(the_fields_of_info_for_the_table_do_not_change)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = 3 * TW_MS, .max_pending = 3000,
	};
	int i, fd = tw_open_setup(O_NONBLOCK, &setup);
	struct twheel_info before, after;
	__u64 ids[3000], *table;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &before));
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		ASSERT_EQ(0, tw_arm_in(fd, TW_SEC, &ids[i]));
	for (i = 0; i < ARRAY_SIZE(ids) / 2; i++) {
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, ids[i]));
		ASSERT_EQ(0, tw_arm_in(fd, TW_SEC, &ids[i]));
	}
	table = map_table(fd);
	ASSERT_NE(NULL, table);
	ASSERT_EQ(0, tw_info(fd, &after));
	EXPECT_EQ(before.refresh_size, after.refresh_size);
	EXPECT_EQ(before.refresh_shift, after.refresh_shift);
	munmap(table, TABLE_BYTES);
	close(fd);
}

/* After *old was cancelled, arm until the place of *old is used again. */
static int arm_successor(int fd, __u64 old, __u64 *new)
{
	int tries, ret;

	for (tries = 0; tries < 1000; tries++) {
		ret = tw_advance(fd, 0) ?: tw_arm1(fd, 0, TW_SEC, 0, 42, new);
		if (ret)
			return ret;
		if ((__u32)*new == (__u32)old)
			return 0;
		if (tw_cancel1(fd, *new) != TWHEEL_WAS_PENDING)
			return -EIO;
	}
	return -ENOENT;
}

TEST_F(table, a_store_through_the_id_of_one_cancelled_changes_nothing_for_its_successor)
{
	struct twheel_status status;
	__u64 old, new;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &old));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, old));
	ASSERT_EQ(0, arm_successor(self->fd, old, &new));
	ASSERT_NE(old, new);
	EXPECT_EQ(0, tw_refresh(self->table, old, TW_HOUR, self->shift));
	ASSERT_EQ(0, tw_query1(self->fd, new, &status));
	EXPECT_EQ(TW_SEC, status.deadline_ns);
	/* If a late store is not blind, it takes nothing back. */
	EXPECT_EQ(1, tw_refresh(self->table, new, TW_MIN, self->shift));
	EXPECT_EQ(0, tw_refresh(self->table, old, TW_HOUR, self->shift));
	ASSERT_EQ(0, tw_query1(self->fd, new, &status));
	EXPECT_EQ(tw_refreshed_ns(TW_MIN, self->shift), status.deadline_ns);
	tw_refresh_blind(self->table, old, TW_HOUR, self->shift);
	ASSERT_EQ(0, tw_query1(self->fd, new, &status));
	EXPECT_EQ(TW_SEC, status.deadline_ns);
	EXPECT_EQ(-ENOENT, tw_query1(self->fd, old, &status));
	expect_expiry(_metadata, self->fd, TW_MS, new, TW_SEC);
}

/* A mistake of one thread does not keep another one's stores from counting. */
TEST_F(table, the_owner_s_next_store_repairs_a_word_that_a_stale_one_overwrote)
{
	__u64 old, new, deadline_ns = tw_refreshed_ns(TW_MIN, self->shift);
	int i;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &old));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, old));
	ASSERT_EQ(0, arm_successor(self->fd, old, &new));
	for (i = 0; i < 3; i++) {
		tw_refresh_blind(self->table, old, TW_HOUR, self->shift);
		EXPECT_EQ(1, tw_refresh(self->table, new, deadline_ns, self->shift));
	}
	/* If a word's generation is up to half of all ahead, it is newer. */
	self->table[(__u32)new] = ((new >> 32) + NR_GENS / 2) % NR_GENS;
	EXPECT_EQ(1, tw_refresh(self->table, new, deadline_ns, self->shift));
	self->table[(__u32)new] = 0;
	EXPECT_EQ(1, tw_refresh(self->table, new, deadline_ns, self->shift));
	expect_expiry(_metadata, self->fd, TW_MS, new, deadline_ns);
}

TEST_F(table, the_word_of_a_newer_generation_is_not_overwritten)
{
	static const __u64 newer[] = { 1, 2, 65535, 65536, NR_GENS / 2 - 1 };
	__u64 id, word;
	int i;

	ASSERT_EQ(0, tw_arm1(self->fd, 0, TW_SEC, 0, 42, &id));
	for (i = 0; i < ARRAY_SIZE(newer); i++) {
		word = ((id >> 32) + newer[i]) % NR_GENS | 77ULL << TWHEEL_REFRESH_GEN_BITS;
		self->table[(__u32)id] = word;
		EXPECT_EQ(0, tw_refresh(self->table, id, TW_MIN, self->shift))
			TH_LOG("newer by %llu", newer[i]);
		EXPECT_EQ(word, self->table[(__u32)id]);
	}
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, id, 0, TW_SEC, 0));
	EXPECT_EQ(1, tw_refresh(self->table, id, TW_MIN, self->shift));
	expect_expiry(_metadata, self->fd, TW_MS, id, tw_refreshed_ns(TW_MIN, self->shift));
}

/* The word of a timeout that nobody has refreshed. */
static __u64 fresh_word(__u64 id, __u64 deadline_ns, __u32 shift)
{
	return deadline_ns >> shift << TWHEEL_REFRESH_GEN_BITS |
	       (id >> 32 & TWHEEL_REFRESH_GEN_MASK);
}

TEST_F(table, arm_and_rearm_write_the_word)
{
	__u64 ids[1000];
	int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &ids[i]));
		EXPECT_EQ(fresh_word(ids[i], TW_SEC, self->shift), self->table[(__u32)ids[i]]);
		self->table[(__u32)ids[i]] = ~0ULL;
	}
	/* Half of them are re-armed in the wheel, and half in the inbox. */
	ASSERT_EQ(0, tw_advance(self->fd, 0));
	for (i = 0; i < ARRAY_SIZE(ids) / 2; i++) {
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[i]));
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &ids[i]));
	}
	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, ids[i], 0, TW_MIN, 0));
		EXPECT_EQ(fresh_word(ids[i], TW_MIN, self->shift), self->table[(__u32)ids[i]]);
		self->table[(__u32)ids[i]] = ~0ULL;
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[i]));
	}
	ASSERT_EQ(0, tw_advance(self->fd, 0));
	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &ids[i]));
		EXPECT_EQ(fresh_word(ids[i], TW_SEC, self->shift), self->table[(__u32)ids[i]]);
	}
}

TEST_F(table, a_periodic_timeout_is_not_moved)
{
	struct twheel_status status;
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm1(self->fd, 0, TW_SEC, TW_SEC, 0, &id));
	tw_refresh(self->table, id, TW_HOUR, self->shift);
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(TW_SEC, status.deadline_ns);
	ASSERT_EQ(0, tw_advance(self->fd, 3 * TW_SEC));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(3, event.count);
	EXPECT_EQ(3 * TW_SEC, event.deadline_ns);
}

TEST_F(table, an_expired_timeout_is_not_moved)
{
	struct twheel_status status;
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_SEC));
	tw_refresh(self->table, id, TW_HOUR, self->shift);
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, status.state);
	EXPECT_EQ(TW_SEC, status.deadline_ns);
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(TW_SEC, event.deadline_ns);
}

TEST_F(table, a_drained_event_has_the_refreshed_deadline)
{
	__u64 deadline_ns = tw_refreshed_ns(TW_HOUR, self->shift);
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &id));
	tw_refresh(self->table, id, deadline_ns, self->shift);
	ASSERT_EQ(0, tw_drain(self->fd));
	tw_refresh(self->table, id, TW_DAY, self->shift);
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(id, event.id);
	EXPECT_EQ(deadline_ns, event.deadline_ns);
	EXPECT_EQ(TW_DRAINED, event.flags);
}

TEST_F(table, a_cancel_wins_over_any_store)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &id));
	tw_refresh(self->table, id, TW_MIN, self->shift);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	tw_refresh(self->table, id, TW_HOUR, self->shift);
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_DAY));
	EXPECT_NO_EVENT(self->fd);
}

/* A child writes; return its status. */
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

TEST_F(table, a_store_beyond_the_armed_places_is_sigbus)
{
	__u64 ids[1000];
	int i;

	EXPECT_EQ(SIGBUS, status_of_store(&self->table[0]));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &ids[0]));
	EXPECT_EQ(0, status_of_store(&self->table[(__u32)ids[0]]));
	EXPECT_EQ(SIGBUS, status_of_store(&self->table[WORDS_PER_PAGE]));
	/* If a timeout is armed next, it has its word in the same mapping. */
	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &ids[i]));
		tw_refresh(self->table, ids[i], TW_MIN, self->shift);
	}
	EXPECT_EQ(0, status_of_store(&self->table[WORDS_PER_PAGE]));
	EXPECT_EQ(SIGBUS, status_of_store(&self->table[TABLE_BYTES / sizeof(__u64) - 1]));
}

TEST_F(table, the_table_begins_with_zeroes_and_the_word_of_the_armed_timeout)
{
	__u64 id;
	int i;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &id));
	for (i = 0; i < WORDS_PER_PAGE; i++)
		ASSERT_EQ(i == (int)id ? fresh_word(id, TW_SEC, self->shift) : 0, self->table[i]);
}

TEST_F(table, a_mapping_made_later_sees_the_same)
{
	size_t page = sysconf(_SC_PAGESIZE);
	__u64 ids[1500], *part;
	int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++)
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &ids[i]));
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		tw_refresh(self->table, ids[i], (i + 1) * TW_MS, self->shift);
	part = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, part);
	EXPECT_EQ(0, memcmp(part, self->table, 2 * page));
	munmap(part, 2 * page);
}

/* The table is mapped for the first time when the timeouts are there already. */
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
		ASSERT_EQ(1, tw_refresh(table, ids[i], TW_MIN, tw_shift(TW_MS)));
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

TEST_F(table, a_store_by_a_child_counts)
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
		tw_refresh(table, id, TW_MIN, self->shift);
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

TEST_F(table, a_descriptor_without_write_access_cannot_be_mapped_for_writing)
{
	int fd = open(TW_DEVICE, O_RDONLY);

	ASSERT_LE(0, fd);
	errno = 0;
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	EXPECT_EQ(EACCES, errno);
	close(fd);
}

TEST_F(table, a_descriptor_for_reading_can_be_mapped_for_reading)
{
	size_t page = sysconf(_SC_PAGESIZE);
	int fd = tw_reopen(self->fd, O_RDONLY);
	const __u64 *table;
	__u64 id;

	ASSERT_LE(0, fd);
	table = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)table);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	EXPECT_EQ(id >> 32, table[(__u32)id] & TWHEEL_REFRESH_GEN_MASK);
	errno = 0;
	EXPECT_EQ(-1, mprotect((void *)table, page, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	munmap((void *)table, page);
	close(fd);
}

/* Other offsets are refused, so that a later version can map something there. */
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
	tw_refresh(table, id, TW_DAY, tw_shift(TW_MS));
	EXPECT_NE(0, table[(__u32)id]);
	tw_sleep(10 * TW_MS);
	munmap(table, TABLE_BYTES);
}

/* ---- the real clock ------------------------------------------------------ */

TEST(a_refresh_on_a_real_clock_is_never_early)
{
	__u64 id, deadline_ns, end_ns, *table;
	struct twheel_event event;
	int fd = tw_open(O_NONBLOCK);

	ASSERT_LE(0, fd);
	table = map_table(fd);
	ASSERT_NE(NULL, table);
	/* If the machine stalls for longer, the timeout expires at the stored deadline. */
	ASSERT_EQ(0, tw_arm_in(fd, 200 * TW_MS, &id));
	end_ns = tw_now(CLOCK_MONOTONIC) + TW_SEC;
	do {
		deadline_ns = tw_refreshed_ns(tw_now(CLOCK_MONOTONIC) + 200 * TW_MS,
					      tw_shift(TW_MS));
		tw_refresh(table, id, deadline_ns, tw_shift(TW_MS));
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

/*
 * If nobody has set up a wheel, slots of its second level are 2^28 ns wide. Arm a timeout early in
 * one of them that is far away, move it to the end of that slot by a store, and let the kernel read
 * the word: it sets the alarm when another timeout has expired.
 */
static int arm_and_find(int fd, __u64 *table, __u64 begin_ns, __u64 *id)
{
	struct twheel_event event;
	__u64 other;
	int ret = tw_arm_at(fd, begin_ns + 10 * TW_MS, id);

	if (ret)
		return ret;
	tw_refresh(table, *id, begin_ns + 250 * TW_MS, tw_shift(TW_MS));
	return tw_arm_in(fd, TW_MS, &other) ?: tw_wait_event(fd, &event, TW_PATIENCE_MS) - 1;
}

static __u64 far_slot(void)
{
	return ((tw_now(CLOCK_MONOTONIC) >> 28) + 100) << 28;
}

/* The kernel makes a pass by then. */
#define EXPECT_ALARM_BY(fd, by_ns) do {					\
	struct twheel_info __info;					\
	ASSERT_EQ(0, tw_info(fd, &__info));				\
	EXPECT_GE(by_ns, __info.alarm_ns);				\
	EXPECT_GE(__info.next_expiry_ns, __info.alarm_ns);		\
} while (0)

TEST(a_rearm_earlier_than_the_deadline_found_sets_the_alarm)
{
	__u64 id, *table, begin_ns = far_slot();
	int fd = tw_open(O_NONBLOCK);

	ASSERT_LE(0, fd);
	table = map_table(fd);
	ASSERT_NE(NULL, table);
	ASSERT_EQ(0, arm_and_find(fd, table, begin_ns, &id));
	/* Re-arm it later than it was armed for, and earlier than it was moved to. */
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(fd, id, TWHEEL_ARM_ABSOLUTE,
						begin_ns + 50 * TW_MS, 0));
	EXPECT_ALARM_BY(fd, tw_round_up(begin_ns + 50 * TW_MS, TW_MS));
	munmap(table, TABLE_BYTES);
	close(fd);
}

TEST(a_store_earlier_than_the_deadline_found_does_not_count)
{
	__u64 id, deadline_ns, *table, begin_ns = far_slot();
	struct twheel_status status;
	int fd = tw_open(O_NONBLOCK);

	ASSERT_LE(0, fd);
	table = map_table(fd);
	ASSERT_NE(NULL, table);
	ASSERT_EQ(0, arm_and_find(fd, table, begin_ns, &id));
	deadline_ns = tw_refreshed_ns(begin_ns + 250 * TW_MS, tw_shift(TW_MS));
	tw_refresh_blind(table, id, begin_ns + 50 * TW_MS, tw_shift(TW_MS));
	ASSERT_EQ(0, tw_query1(fd, id, &status));
	EXPECT_EQ(deadline_ns, status.deadline_ns);
	EXPECT_ALARM_BY(fd, tw_round_up(deadline_ns, TW_MS));
	munmap(table, TABLE_BYTES);
	close(fd);
}

TEST_HARNESS_MAIN
