// SPDX-License-Identifier: GPL-2.0
/*
 * Timeouts by number: <twheel/table.h>, from one source in the process and on the device
 *
 * The clock is virtual, unless a test says otherwise.
 */
#include <assert.h>
#include <stddef.h>

#include "lib_table.h"
#include "twheel_chance.h"

#define NR		1000U

/* Other languages count on these. */
static_assert(sizeof(struct twheel_table_options) == 32, "options");
static_assert(offsetof(struct twheel_table_options, backend) == 4, "options.backend");
static_assert(offsetof(struct twheel_table_options, flags) == 8, "options.flags");
static_assert(offsetof(struct twheel_table_options, clock) == 12, "options.clock");
static_assert(offsetof(struct twheel_table_options, tick_ns) == 16, "options.tick_ns");
static_assert(offsetof(struct twheel_table_options, fd) == 24, "options.fd");
static_assert(sizeof(struct twheel_table_change) == 16, "change");
static_assert(offsetof(struct twheel_table_change, result) == 4, "change.result");
static_assert(offsetof(struct twheel_table_change, deadline_ns) == 8, "change.deadline_ns");

/* Fetch all that have expired by now, if there is room.  The kernel needs a moment for that. */
static int fetch(struct twheel_table *table, __u32 *numbers, __u32 nr)
{
	int ret = twheel_table_advance(table, twheel_table_now(table));

	memset(numbers, TW_POISON, nr * sizeof(*numbers));
	return ret ? ret : twheel_table_expired(table, numbers, nr, 0);
}

/* Fetch one number, and return it. */
static __s64 fetch_one(struct twheel_table *table)
{
	__u32 numbers[2];
	int nr = fetch(table, numbers, 2);

	return nr == 1 ? (__s64)numbers[0] : nr ? -EPROTO : -ENOENT;
}

FIXTURE(table)
{
	struct twheel_table *t;
};

VARIANTS(table);

FIXTURE_SETUP(table)
{
	SKIP_WITHOUT_DEVICE();
	ASSERT_EQ(0, table_open(&self->t, NR, variant->backend, TWHEEL_TABLE_VIRTUAL));
}

FIXTURE_TEARDOWN(table)
{
	twheel_table_close(self->t);
}

TEST_F(table, new_table_reports_its_parameters_and_has_no_deadline)
{
	EXPECT_EQ(variant->backend, twheel_table_backend(self->t));
	EXPECT_EQ(NR, twheel_table_nr(self->t));
	EXPECT_EQ(0, twheel_table_now(self->t));
	EXPECT_EQ(NEVER, twheel_table_next(self->t));
	EXPECT_LT(2, twheel_table_fd(self->t));
}

TEST_F(table, number_expires_once_at_its_tick)
{
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 7, 5 * TW_MS - 1));
	ASSERT_EQ(0, twheel_table_advance(self->t, 5 * TW_MS - 1));
	EXPECT_EQ(-ENOENT, fetch_one(self->t));
	ASSERT_EQ(0, twheel_table_advance(self->t, 5 * TW_MS));
	EXPECT_EQ(7, fetch_one(self->t));
	EXPECT_EQ(-ENOENT, fetch_one(self->t));
	EXPECT_EQ(IDLE, twheel_table_state(self->t, 7, NULL));
	EXPECT_EQ(IDLE, twheel_table_stop(self->t, 7));
}

TEST_F(table, deadline_from_now_on_is_refused_if_the_clock_can_be_set)
{
	const __u32 clocks[] = { TWHEEL_TABLE_REALTIME, TWHEEL_TABLE_TAI };
	const clockid_t clockids[] = { CLOCK_REALTIME, CLOCK_TAI };
	struct twheel_table_change changes[1];
	struct twheel_table *t;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		ASSERT_EQ(0, table_open(&t, NR, variant->backend, clocks[i]));
		changes[0] = change(7, TW_HOUR);
		EXPECT_EQ(-EINVAL, twheel_table_apply(t, changes, 1, TWHEEL_TABLE_AFTER));
		EXPECT_EQ(-EINVAL, twheel_table_start_after(t, 7, TW_HOUR));
		EXPECT_EQ(IDLE, twheel_table_state(t, 7, NULL));
		EXPECT_EQ(IDLE, twheel_table_start(t, 7, tw_now(clockids[i]) + TW_HOUR));
		EXPECT_EQ(PENDING, twheel_table_stop(t, 7));
		twheel_table_close(t);
	}
}

TEST_F(table, first_and_last_number_are_numbers)
{
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 0, TW_MS));
	ASSERT_EQ(IDLE, twheel_table_start(self->t, NR - 1, 2 * TW_MS));
	ASSERT_EQ(0, twheel_table_advance(self->t, TW_MS));
	EXPECT_EQ(0, fetch_one(self->t));
	ASSERT_EQ(0, twheel_table_advance(self->t, 2 * TW_MS));
	EXPECT_EQ(NR - 1, fetch_one(self->t));
}

TEST_F(table, all_numbers_pend_at_a_time_and_again)
{
	struct twheel_table_change changes[NR];
	__u32 numbers[NR + 1], i, round;
	bool seen[NR];

	for (round = 1; round <= 3; round++) {
		for (i = 0; i < NR; i++)
			changes[i] = change(i, round * TW_SEC + i % 7 * TW_MS);
		ASSERT_EQ(NR, twheel_table_apply(self->t, changes, NR, 0));
		for (i = 0; i < NR; i++) {
			ASSERT_EQ(IDLE, changes[i].result);
		}
		ASSERT_EQ(0, twheel_table_advance(self->t, round * TW_SEC + 7 * TW_MS));
		ASSERT_EQ(NR, fetch(self->t, numbers, NR + 1));
		memset(seen, 0, sizeof(seen));
		for (i = 0; i < NR; i++) {
			ASSERT_GT(NR, numbers[i]);
			ASSERT_FALSE(seen[numbers[i]]);
			seen[numbers[i]] = true;
			if (i) {
				ASSERT_LE(numbers[i - 1] % 7, numbers[i] % 7);
			}
		}
	}
}

#define BURST		20000U

TEST_F(table, one_fetch_gets_all_of_a_burst)
{
	struct twheel_table_change *changes = calloc(BURST, sizeof(*changes));
	__u32 *numbers = calloc(BURST, sizeof(*numbers)), i;
	struct twheel_table *t;

	ASSERT_NE(NULL, changes);
	ASSERT_NE(NULL, numbers);
	ASSERT_EQ(0, table_open(&t, BURST, variant->backend, TWHEEL_TABLE_VIRTUAL));
	for (i = 0; i < BURST; i++)
		changes[i] = change(i, TW_MIN + i);
	ASSERT_EQ(BURST, twheel_table_apply(t, changes, BURST, 0));
	ASSERT_EQ(0, twheel_table_advance(t, TW_MIN + TW_MS));
	EXPECT_EQ(BURST, fetch(t, numbers, BURST));
	twheel_table_close(t);
	free(numbers);
	free(changes);
}

TEST_F(table, deadline_that_has_passed_expires_without_a_tick)
{
	ASSERT_EQ(0, twheel_table_advance(self->t, TW_SEC + 1));
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 1, 0));
	EXPECT_EQ(1, fetch_one(self->t));
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 2, TW_SEC + 1));
	ASSERT_EQ(0, twheel_table_advance(self->t, TW_SEC + 1));
	EXPECT_EQ(UNREAD, twheel_table_state(self->t, 2, NULL));
	EXPECT_EQ(2, fetch_one(self->t));
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 3, TW_SEC + 2));
	EXPECT_EQ(-ENOENT, fetch_one(self->t));
}

TEST_F(table, restart_moves_to_later_and_to_earlier)
{
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 1, 10 * TW_MS));
	EXPECT_EQ(PENDING, twheel_table_start(self->t, 1, 20 * TW_MS));
	ASSERT_EQ(0, twheel_table_advance(self->t, 19 * TW_MS));
	EXPECT_EQ(-ENOENT, fetch_one(self->t));
	EXPECT_EQ(PENDING, twheel_table_start(self->t, 1, TW_HOUR));
	EXPECT_EQ(PENDING, twheel_table_start(self->t, 1, 30 * TW_MS));
	ASSERT_EQ(0, twheel_table_advance(self->t, 30 * TW_MS));
	EXPECT_EQ(1, fetch_one(self->t));
	ASSERT_EQ(0, twheel_table_advance(self->t, 2 * TW_HOUR));
	EXPECT_EQ(-ENOENT, fetch_one(self->t));
}

TEST_F(table, stop_of_a_pending_number_says_so_once)
{
	EXPECT_EQ(IDLE, twheel_table_stop(self->t, 1));
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 1, TW_MS));
	EXPECT_EQ(PENDING, twheel_table_stop(self->t, 1));
	EXPECT_EQ(IDLE, twheel_table_stop(self->t, 1));
	EXPECT_EQ(NEVER, twheel_table_next(self->t));
	ASSERT_EQ(0, twheel_table_advance(self->t, TW_SEC));
	EXPECT_EQ(-ENOENT, fetch_one(self->t));
}

TEST_F(table, stop_of_an_unread_number_revokes_it)
{
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 1, TW_MS));
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 2, TW_MS));
	ASSERT_EQ(0, twheel_table_advance(self->t, TW_MS));
	EXPECT_EQ(UNREAD, twheel_table_state(self->t, 1, NULL));
	EXPECT_EQ(UNREAD, twheel_table_stop(self->t, 1));
	EXPECT_EQ(IDLE, twheel_table_state(self->t, 1, NULL));
	EXPECT_EQ(2, fetch_one(self->t));
}

TEST_F(table, start_of_an_unread_number_revokes_it)
{
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 1, TW_MS));
	ASSERT_EQ(0, twheel_table_advance(self->t, TW_MS));
	EXPECT_EQ(UNREAD, twheel_table_start(self->t, 1, 2 * TW_MS));
	EXPECT_EQ(PENDING, twheel_table_state(self->t, 1, NULL));
	EXPECT_EQ(-ENOENT, fetch_one(self->t));
	ASSERT_EQ(0, twheel_table_advance(self->t, 2 * TW_MS));
	EXPECT_EQ(1, fetch_one(self->t));
}

TEST_F(table, unread_number_that_is_restarted_waits_for_its_tick)
{
	/* Its deadline had passed when it was started, so it waited for no tick. */
	ASSERT_EQ(0, twheel_table_advance(self->t, 100 * TW_US));
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 7, 0));
	ASSERT_EQ(0, twheel_table_advance(self->t, 110 * TW_US));
	ASSERT_EQ(UNREAD, twheel_table_start(self->t, 7, 200 * TW_US));
	ASSERT_EQ(0, twheel_table_advance(self->t, 300 * TW_US));
	EXPECT_EQ(-ENOENT, fetch_one(self->t));
	EXPECT_EQ(PENDING, twheel_table_state(self->t, 7, NULL));
	ASSERT_EQ(0, twheel_table_advance(self->t, TW_MS));
	EXPECT_EQ(7, fetch_one(self->t));
}

/* A limit has ended the first fetch in the middle of a tick. */
TEST_F(table, unread_numbers_are_revoked_after_a_fetch_that_was_full)
{
	struct twheel_table_change changes[8];
	__u32 numbers[8], left, i, stopped = 0, moved = NR;

	for (i = 0; i < 8; i++)
		changes[i] = change(i, TW_MS);
	ASSERT_EQ(8, twheel_table_apply(self->t, changes, 8, 0));
	ASSERT_EQ(0, twheel_table_advance(self->t, TW_MS));
	ASSERT_EQ(3, fetch(self->t, numbers, 3));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(IDLE, twheel_table_stop(self->t, numbers[i]));
	}
	for (i = 0; i < 8 && stopped < 2; i++)
		if (twheel_table_state(self->t, i, NULL) == UNREAD) {
			ASSERT_EQ(UNREAD, twheel_table_stop(self->t, i));
			stopped++;
		}
	for (; i < 8 && moved == NR; i++)
		if (twheel_table_state(self->t, i, NULL) == UNREAD) {
			ASSERT_EQ(UNREAD, twheel_table_start(self->t, i, 3 * TW_MS));
			moved = i;
		}
	left = fetch(self->t, numbers, 8);
	EXPECT_EQ(2, left);
	ASSERT_EQ(0, twheel_table_advance(self->t, 3 * TW_MS));
	EXPECT_EQ(moved, fetch_one(self->t));
}

TEST_F(table, array_goes_on_past_bad_elements)
{
	struct twheel_table_change changes[] = {
		change(1, TW_MS), change(NR, TW_MS), change(2, NEVER),
		change(UINT32_MAX, NEVER), change(3, TW_MS),
	};
	__u32 numbers[5];

	EXPECT_EQ(3, twheel_table_apply(self->t, changes, 5, 0));
	EXPECT_EQ(IDLE, changes[0].result);
	EXPECT_EQ(-ERANGE, changes[1].result);
	EXPECT_EQ(IDLE, changes[2].result);
	EXPECT_EQ(-ERANGE, changes[3].result);
	EXPECT_EQ(IDLE, changes[4].result);
	EXPECT_EQ(NR, changes[1].number);
	EXPECT_EQ(TW_MS, changes[1].deadline_ns);
	ASSERT_EQ(0, twheel_table_advance(self->t, TW_MS));
	EXPECT_EQ(2, fetch(self->t, numbers, 5));
	EXPECT_EQ(0, twheel_table_apply(self->t, &changes[1], 1, 0));
}

TEST_F(table, empty_array_changes_nothing)
{
	EXPECT_EQ(0, twheel_table_apply(self->t, NULL, 0, 0));
}

TEST_F(table, changes_of_one_number_keep_their_order)
{
	struct twheel_table_change changes[] = {
		change(1, TW_MS), change(1, NEVER), change(1, 2 * TW_MS), change(2, NEVER),
		change(1, 3 * TW_MS), change(2, TW_MS), change(2, NEVER), change(2, NEVER),
	};
	const __s32 was[] = { IDLE, PENDING, IDLE, IDLE, PENDING, IDLE, PENDING, IDLE };
	__u32 i;

	EXPECT_EQ(8, twheel_table_apply(self->t, changes, 8, 0));
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(was[i], changes[i].result);
	}
	ASSERT_EQ(0, twheel_table_advance(self->t, 2 * TW_MS));
	EXPECT_EQ(-ENOENT, fetch_one(self->t));
	ASSERT_EQ(0, twheel_table_advance(self->t, 3 * TW_MS));
	EXPECT_EQ(1, fetch_one(self->t));
}

TEST_F(table, deadline_from_int64_max_on_is_none)
{
	const __u64 none[] = { INT64_MAX, (__u64)INT64_MAX + 1, NEVER - 1, NEVER };
	__u32 i;

	for (i = 0; i < ARRAY_SIZE(none); i++) {
		EXPECT_EQ(IDLE, twheel_table_start(self->t, 1, TW_MS));
		EXPECT_EQ(PENDING, twheel_table_start(self->t, 1, none[i]));
		EXPECT_EQ(IDLE, twheel_table_start(self->t, 1, none[i]));
		EXPECT_EQ(IDLE, twheel_table_start(self->t, 1, TW_MS));
		EXPECT_EQ(PENDING, twheel_table_start_after(self->t, 1, none[i]));
	}
}

TEST_F(table, number_at_the_end_of_time_pends)
{
	uint64_t deadline_ns;

	ASSERT_EQ(0, twheel_table_advance(self->t, TW_SEC));
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 1, INT64_MAX - 1));
	ASSERT_EQ(IDLE, twheel_table_start_after(self->t, 2, INT64_MAX - 1));
	EXPECT_EQ(PENDING, twheel_table_state(self->t, 1, &deadline_ns));
	EXPECT_EQ(INT64_MAX - 1, deadline_ns);
	EXPECT_EQ(PENDING, twheel_table_state(self->t, 2, &deadline_ns));
	EXPECT_EQ(INT64_MAX, deadline_ns);
	ASSERT_EQ(0, twheel_table_advance(self->t, INT64_MAX - 1));
	EXPECT_EQ(-ENOENT, fetch_one(self->t));
	EXPECT_EQ(PENDING, twheel_table_stop(self->t, 1));
	EXPECT_EQ(PENDING, twheel_table_stop(self->t, 2));
}

TEST_F(table, relative_deadlines_count_from_now)
{
	struct twheel_table_change changes[] = { change(2, 2 * TW_MS), change(3, 0) };
	uint64_t deadline_ns = TW_POISON64;

	ASSERT_EQ(0, twheel_table_advance(self->t, TW_HOUR));
	ASSERT_EQ(IDLE, twheel_table_start_after(self->t, 1, TW_MS));
	ASSERT_EQ(2, twheel_table_apply(self->t, changes, 2, TWHEEL_TABLE_AFTER));
	EXPECT_EQ(3, fetch_one(self->t));
	EXPECT_EQ(PENDING, twheel_table_state(self->t, 2, &deadline_ns));
	EXPECT_EQ(TW_HOUR + 2 * TW_MS, deadline_ns);
	ASSERT_EQ(0, twheel_table_advance(self->t, TW_HOUR + TW_MS));
	EXPECT_EQ(1, fetch_one(self->t));
	ASSERT_EQ(0, twheel_table_advance(self->t, TW_HOUR + 2 * TW_MS));
	EXPECT_EQ(2, fetch_one(self->t));
}

TEST_F(table, state_has_the_deadline_as_it_was_given)
{
	uint64_t deadline_ns = TW_POISON64;

	EXPECT_EQ(IDLE, twheel_table_state(self->t, 1, &deadline_ns));
	EXPECT_EQ(NEVER, deadline_ns);
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 1, 12345678));
	EXPECT_EQ(PENDING, twheel_table_state(self->t, 1, &deadline_ns));
	EXPECT_EQ(12345678, deadline_ns);
	ASSERT_EQ(PENDING, twheel_table_start(self->t, 1, 123456789));
	EXPECT_EQ(PENDING, twheel_table_state(self->t, 1, &deadline_ns));
	EXPECT_EQ(123456789, deadline_ns);
	ASSERT_EQ(0, twheel_table_advance(self->t, 124 * TW_MS));
	EXPECT_EQ(UNREAD, twheel_table_state(self->t, 1, &deadline_ns));
	EXPECT_EQ(NEVER, deadline_ns);
	deadline_ns = TW_POISON64;
	EXPECT_EQ(-ERANGE, twheel_table_state(self->t, NR, &deadline_ns));
	EXPECT_EQ(TW_POISON64, deadline_ns);
}

TEST_F(table, next_is_the_tick_of_the_first_deadline)
{
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 1, TW_HOUR));
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 2, 5 * TW_MS - 1));
	EXPECT_EQ(5 * TW_MS, twheel_table_next(self->t));
	ASSERT_EQ(0, twheel_table_advance(self->t, 6 * TW_MS));
	EXPECT_GE(6 * TW_MS, twheel_table_next(self->t));
	EXPECT_EQ(2, fetch_one(self->t));
	EXPECT_EQ(TW_HOUR, twheel_table_next(self->t));
}

static bool is_readable(struct twheel_table *table)
{
	struct pollfd fd = { .fd = twheel_table_fd(table), .events = POLLIN };

	return poll(&fd, 1, 0) == 1 && fd.revents & POLLIN;
}

TEST_F(table, descriptor_is_readable_while_a_number_is_unread)
{
	__u32 number;

	EXPECT_FALSE(is_readable(self->t));
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 1, TW_MS));
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 2, TW_MS));
	EXPECT_FALSE(is_readable(self->t));
	ASSERT_EQ(0, twheel_table_advance(self->t, TW_MS));
	EXPECT_TRUE(TW_WAIT_FOR(is_readable(self->t), TW_MS));
	ASSERT_EQ(1, fetch(self->t, &number, 1));
	EXPECT_TRUE(TW_WAIT_FOR(is_readable(self->t), TW_MS));
	ASSERT_EQ(1, fetch(self->t, &number, 1));
	EXPECT_FALSE(is_readable(self->t));
}

TEST_F(table, bad_calls_change_nothing)
{
	struct twheel_table_change c = change(1, TW_MS);
	__u32 number = TW_POISON32;

	EXPECT_EQ(-ERANGE, twheel_table_start(self->t, NR, TW_MS));
	EXPECT_EQ(-ERANGE, twheel_table_start_after(self->t, UINT32_MAX, TW_MS));
	EXPECT_EQ(-ERANGE, twheel_table_stop(self->t, NR));
	EXPECT_EQ(-ERANGE, twheel_table_state(self->t, NR, NULL));
	EXPECT_EQ(-EINVAL, twheel_table_apply(self->t, &c, 1, 2));
	EXPECT_EQ(-EINVAL, twheel_table_apply(self->t, &c, 1U << 31, 0));
	EXPECT_EQ(TW_POISON32, (__u32)c.result);
	EXPECT_EQ(-EINVAL, twheel_table_expired(self->t, &number, 0, 0));
	EXPECT_EQ(TW_POISON32, number);
	EXPECT_EQ(NEVER, twheel_table_next(self->t));
	ASSERT_EQ(0, twheel_table_advance(self->t, TW_SEC));
	EXPECT_EQ(-EINVAL, twheel_table_advance(self->t, TW_SEC - 1));
	EXPECT_EQ(-EINVAL, twheel_table_advance(self->t, INT64_MAX));
	EXPECT_EQ(TW_SEC, twheel_table_now(self->t));
}

/* ---- against a plain array ------------------------------------------------ */

#define MODEL_NR	300U

/* The state that each number should have: NEVER if it is idle. */
struct model {
	__u64 now_ns;
	__u64 deadline_ns[MODEL_NR];
	__u64 tick_ns[MODEL_NR];	/* the tick at which it expires */
};

static __s32 model_state(const struct model *m, __u32 number)
{
	if (m->deadline_ns[number] == NEVER)
		return IDLE;
	return m->tick_ns[number] <= m->now_ns ? UNREAD : PENDING;
}

static __s32 model_change(struct model *m, const struct twheel_table_change *c, bool after)
{
	__u64 ns = c->deadline_ns;
	__s32 was;

	if (c->number >= MODEL_NR)
		return -ERANGE;
	was = model_state(m, c->number);
	if (after && ns < INT64_MAX)
		ns = ns + m->now_ns < INT64_MAX ? ns + m->now_ns : INT64_MAX;
	else if (ns >= INT64_MAX)
		ns = NEVER;
	m->deadline_ns[c->number] = ns;
	m->tick_ns[c->number] = ns <= m->now_ns ? m->now_ns : tw_round_up(ns, TW_MS);
	return was;
}

static __u64 random_deadline(__u64 now_ns)
{
	switch (random_below(8)) {
	case 0:
	case 1:
	case 2:
		return NEVER;
	case 3:
		return now_ns - random_below(2) * (now_ns / 2);
	case 4:
		return now_ns + random_between(0, 3 * TW_MS);
	case 5:
		return now_ns + random_between(0, TW_HOUR);
	case 6:
		return random_between(INT64_MAX / 2, (__u64)INT64_MAX + 4);
	default:
		return now_ns + random_between(0, TW_SEC);
	}
}

static void random_changes(struct __test_metadata *_metadata, struct twheel_table *t,
			   struct model *m)
{
	struct twheel_table_change changes[600];
	__u32 nr = random_below(8) ? random_below(20) : random_below(600), i, good = 0;
	__u32 few = 1 + random_below(MODEL_NR);
	bool after = !random_below(4);

	for (i = 0; i < nr; i++) {
		changes[i] = change(random_below(random_below(50) ? few : MODEL_NR + 2),
				    random_deadline(after ? 0 : m->now_ns));
	}
	ASSERT_GE(nr, twheel_table_apply(t, changes, nr, after ? TWHEEL_TABLE_AFTER : 0));
	for (i = 0; i < nr; i++) {
		__s32 was = model_change(m, &changes[i], after);

		/*
		 * If the table is on the device, a deadline that has passed needs a moment to
		 * expire.
		 */
		if (was == UNREAD && changes[i].result == PENDING &&
		    twheel_table_backend(t) == TWHEEL_TABLE_DEVICE)
			was = PENDING;
		ASSERT_EQ(was, changes[i].result) {
			TH_LOG("change %u of %u, number %u, at %llu", i, nr, changes[i].number,
			       m->now_ns);
		}
		good += was >= 0;
	}
	/* After this, the kernel has expired all that had passed. */
	ASSERT_EQ(0, twheel_table_advance(t, m->now_ns));
}

static void random_fetch(struct __test_metadata *_metadata, struct twheel_table *t,
			 struct model *m)
{
	__u32 numbers[MODEL_NR + 1], nr = 1 + random_below(MODEL_NR + 1), i, due = 0;
	int got;

	for (i = 0; i < MODEL_NR; i++)
		due += model_state(m, i) == UNREAD;
	got = fetch(t, numbers, nr);
	for (i = 0; i < got; i++) {
		ASSERT_GT(MODEL_NR, numbers[i]);
		ASSERT_EQ(UNREAD, model_state(m, numbers[i])) {
			TH_LOG("number %u, deadline %llu, at %llu", numbers[i],
			       m->deadline_ns[numbers[i]], m->now_ns);
		}
		m->deadline_ns[numbers[i]] = NEVER;
	}
	ASSERT_EQ(due < nr ? due : nr, got);
}

static void compare_states(struct __test_metadata *_metadata, struct twheel_table *t,
			   const struct model *m)
{
	uint64_t deadline_ns, got_ns, next_ns = NEVER;
	__u32 i;

	for (i = 0; i < MODEL_NR; i++) {
		__s32 state = model_state(m, i);

		ASSERT_EQ(state, twheel_table_state(t, i, &deadline_ns));
		ASSERT_EQ(state == PENDING ? m->deadline_ns[i] : NEVER, deadline_ns);
		if (state == UNREAD)
			next_ns = 0;
		else if (state == PENDING && m->tick_ns[i] < next_ns &&
			 m->tick_ns[i] < INT64_MAX)
			next_ns = m->tick_ns[i];
	}
	got_ns = twheel_table_next(t);
	if (!next_ns) {
		ASSERT_GE(m->now_ns, got_ns);
	} else if (twheel_table_backend(t) == TWHEEL_TABLE_DEVICE) {
		ASSERT_EQ(next_ns, got_ns);
	} else {
		/*
		 * If a slot has many numbers, the wheel does not search for the first one: the time
		 * may have passed.
		 */
		ASSERT_GE(next_ns, got_ns);
	}
}

TEST_F_TIMEOUT(table, table_agrees_with_a_plain_array, 60)
{
	const int rounds = tw_setting("TW_ROUNDS", 2000);
	static struct model m;
	struct twheel_table *t;
	int round;

	seed_begin(_metadata);
	m.now_ns = 0;
	memset(m.deadline_ns, 0xff, sizeof(m.deadline_ns));
	ASSERT_EQ(0, table_open(&t, MODEL_NR, variant->backend, TWHEEL_TABLE_VIRTUAL));
	if (random_below(2)) {
		ASSERT_LT(2, twheel_table_fd(t));
	}
	for (round = 0; round < rounds; round++) {
		switch (random_below(8)) {
		case 0:
		case 1:
			m.now_ns += random_below(6) ? random_between(0, 5 * TW_MS) :
						      random_between(0, TW_HOUR);
			ASSERT_EQ(0, twheel_table_advance(t, m.now_ns));
			break;
		case 2:
			random_fetch(_metadata, t, &m);
			break;
		case 3:
			if (!random_below(4))
				compare_states(_metadata, t, &m);
			break;
		default:
			random_changes(_metadata, t, &m);
		}
	}
	compare_states(_metadata, t, &m);
	twheel_table_close(t);
}

TEST_HARNESS_MAIN
