// SPDX-License-Identifier: GPL-2.0
/*
 * What can be seen of a wheel: QUERY of one timeout, LIST of all, and INFO's
 * next expiry and greatest lateness.  Looking changes nothing.
 */
#include "twheel_test.h"

FIXTURE(query) {
	int fd;
};

FIXTURE_SETUP(query)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(query)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Five timeouts, two of them pending and three expired, seen at 20 ms. */
#define KINDS	5

static void arm_each_kind(struct __test_metadata *_metadata, int fd, __u64 ids[KINDS])
{
	struct twheel_arm arms[KINDS] = {
		{ .expires_ns = 30 * TW_MS + 1, .user_data = 1 },
		{ .expires_ns = 10 * TW_MS, .user_data = 2 },
		{ .expires_ns = TWHEEL_TIME_NEVER, .user_data = 3 },
		{ .expires_ns = 5 * TW_MS, .interval_ns = 6 * TW_MS, .user_data = 4 },
		{
			.expires_ns = 5 * TW_MS, .interval_ns = 6 * TW_MS, .repeats = 9,
			.flags = TWHEEL_ARM_FIXED_DELAY, .user_data = 5,
		},
	};
	int i;

	ASSERT_EQ(KINDS, tw_arm_vec(fd, arms, KINDS));
	ASSERT_EQ(0, tw_advance(fd, 20 * TW_MS));
	for (i = 0; i < KINDS; i++)
		ids[i] = arms[i].id;
}

/* ---- QUERY --------------------------------------------------------------- */

TEST_F(query, pending_one_tells_each_field)
{
	struct twheel_status status;
	__u64 id;

	ASSERT_EQ(0, tw_advance(self->fd, 3 * TW_MS));
	ASSERT_EQ(0, tw_arm1(self->fd, 0, 10 * TW_MS + 5, 0, 77, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 4 * TW_MS));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(id, status.id);
	EXPECT_EQ(0, status.result);
	EXPECT_EQ(TWHEEL_STATE_PENDING, status.state);
	EXPECT_EQ(77, status.user_data);
	/* As it was asked for, and not rounded. */
	EXPECT_EQ(13 * TW_MS + 5, status.deadline_ns);
	EXPECT_EQ(9 * TW_MS + 5, status.left_ns);
	EXPECT_EQ(0, status.interval_ns);
	EXPECT_EQ(0, status.flags);
	EXPECT_EQ(0, status.repeats_left);
	EXPECT_EQ(0, status.count);
	EXPECT_EQ(0, status.deliveries);
}

TEST_F(query, periodic_one_tells_each_field)
{
	struct twheel_arm arm = {
		.expires_ns = 10 * TW_MS,
		.interval_ns = 7 * TW_MS + 1,
		.repeats = 5,
		.flags = TWHEEL_ARM_FIXED_DELAY,
		.user_data = 78,
	};
	struct twheel_status status;

	ASSERT_EQ(0, tw_arm_entry(self->fd, &arm));
	ASSERT_EQ(0, tw_query1(self->fd, arm.id, &status));
	EXPECT_EQ(TWHEEL_STATE_PENDING, status.state);
	EXPECT_EQ(78, status.user_data);
	EXPECT_EQ(10 * TW_MS, status.deadline_ns);
	EXPECT_EQ(10 * TW_MS, status.left_ns);
	EXPECT_EQ(7 * TW_MS + 1, status.interval_ns);
	EXPECT_EQ(TWHEEL_ARM_FIXED_DELAY, status.flags);
	EXPECT_EQ(5, status.repeats_left);
	EXPECT_EQ(0, status.count);
	EXPECT_EQ(0, status.deliveries);
}

TEST_F(query, absolute_flag_is_not_part_of_a_timeout)
{
	struct twheel_status status;
	__u64 id;

	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, TW_SEC, TW_SEC, 0, &id));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(0, status.flags);
}

TEST_F(query, expired_one_tells_the_deadline_that_passed)
{
	struct twheel_status status;
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS - 1, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 25 * TW_MS));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, status.state);
	EXPECT_EQ(10 * TW_MS - 1, status.deadline_ns);
	EXPECT_EQ(0, status.left_ns);
	EXPECT_EQ(1, status.count);
	EXPECT_EQ(0, status.deliveries);
}

/* It waits for its edge: pending still, with nothing left. */
TEST_F(query, between_the_deadline_and_its_edge_nothing_is_left)
{
	struct twheel_status status;
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS + 2, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 11 * TW_MS - 1));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(TWHEEL_STATE_PENDING, status.state);
	EXPECT_EQ(10 * TW_MS + 2, status.deadline_ns);
	EXPECT_EQ(0, status.left_ns);
}

TEST_F(query, stranger_says_enoent_and_only_the_result_is_written)
{
	struct twheel_status status, expected;

	ASSERT_EQ(-ENOENT, tw_query1(self->fd, 12345, &status));
	memset(&expected, TW_POISON, sizeof(expected));
	expected.id = 12345;
	expected.result = -ENOENT;
	EXPECT_EQ(0, memcmp(&expected, &status, sizeof(status)));
}

TEST_F(query, vector_goes_on_past_a_stranger)
{
	struct twheel_status rows[3] = {};
	__u64 a, b;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &a));
	ASSERT_EQ(0, tw_arm_at(self->fd, 2 * TW_MS, &b));
	rows[0].id = a;
	rows[2].id = b;
	EXPECT_EQ(2, tw_query_vec(self->fd, rows, 3));
	EXPECT_EQ(0, rows[0].result);
	EXPECT_EQ(TW_MS, rows[0].deadline_ns);
	EXPECT_EQ(-ENOENT, rows[1].result);
	EXPECT_EQ(0, rows[2].result);
	EXPECT_EQ(2 * TW_MS, rows[2].deadline_ns);
}

TEST_F(query, looking_changes_nothing)
{
	struct tw_snapshot before;
	struct twheel_status status;
	__u64 ids[KINDS];
	int i;

	arm_each_kind(_metadata, self->fd, ids);
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	for (i = 0; i < KINDS; i++) {
		ASSERT_EQ(0, tw_query1(self->fd, ids[i], &status));
	}
	EXPECT_UNCHANGED(self->fd, &before);
}

/* ---- LIST ---------------------------------------------------------------- */

TEST_F(query, list_of_an_empty_wheel_is_at_its_end)
{
	struct twheel_status row;
	__u64 cursor = 0;

	EXPECT_EQ(0, tw_list(self->fd, &cursor, &row, 1));
}

TEST_F(query, list_of_a_wheel_that_was_never_set_up_is_at_its_end)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_status row;
	__u64 cursor = 0;

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, tw_list(fd, &cursor, &row, 1));
	close(fd);
}

TEST_F(query, row_of_list_is_what_query_says)
{
	struct twheel_status rows[KINDS], status;
	__u64 ids[KINDS];
	int i;

	arm_each_kind(_metadata, self->fd, ids);
	ASSERT_EQ(KINDS, tw_list_all(self->fd, rows, KINDS, KINDS));
	for (i = 0; i < KINDS; i++) {
		ASSERT_EQ(0, tw_query1(self->fd, rows[i].id, &status));
		EXPECT_EQ(0, memcmp(&status, &rows[i], sizeof(status)))
			TH_LOG("row %d, timeout %llu", i, rows[i].user_data);
	}
}

TEST_F(query, list_does_not_show_what_has_ended)
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

TEST_F(query, list_shows_thousands_once_each_whatever_the_step)
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

TEST_F(query, list_at_its_end_stays_there)
{
	struct twheel_status rows[2];
	__u64 cursor = 0, id;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_SEC, &id));
	ASSERT_EQ(1, tw_list(self->fd, &cursor, rows, 2));
	EXPECT_EQ(0, tw_list(self->fd, &cursor, rows, 2));
	EXPECT_EQ(0, tw_list(self->fd, &cursor, rows, 2));
}

TEST_F(query, list_does_not_write_beyond_the_rows_it_returns)
{
	struct twheel_status rows[4], poison;
	__u64 cursor = 0, id;

	memset(&poison, TW_POISON, sizeof(poison));
	ASSERT_EQ(0, tw_arm_at(self->fd, TW_SEC, &id));
	ASSERT_EQ(1, tw_list(self->fd, &cursor, rows, 4));
	EXPECT_EQ(0, memcmp(&poison, &rows[1], sizeof(poison)));
}

/* Between the steps of a walk a third is cancelled, a third re-armed, and new ones come. */
TEST_F(query, list_shows_what_is_not_touched_exactly_once_beside_changes)
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

/* ---- INFO ---------------------------------------------------------------- */

TEST_F(query, info_of_a_new_wheel_is_all_zero_where_it_counts)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_info i;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &i));
	EXPECT_EQ(0, i.levels);
	EXPECT_EQ(0, i.setup_flags);
	EXPECT_EQ(TWHEEL_FEATURE_REFRESH, i.features);
	EXPECT_EQ(TWHEEL_NO_EXPIRY, i.next_expiry_ns);
	EXPECT_EQ(0, i.max_late_ns);
	EXPECT_EQ(0, i.armed | i.pending | i.unread | i.live | i.expirations | i.delivered);
	EXPECT_EQ(0, i.completed | i.cancelled | i.revoked | i.drained | i.rearmed);
	EXPECT_LT(0, i.max_vector);
	EXPECT_LT(0, i.max_pending_limit);
	close(fd);
}

TEST_F(query, greatest_lateness_is_kept)
{
	struct twheel_info info;
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS + 1, &id));
	ASSERT_EQ(0, tw_arm_at(self->fd, 20 * TW_MS - 1, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 11 * TW_MS));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(TW_MS - 1, info.max_late_ns);
	/* The next one is nearly on time: the greatest stays. */
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(TW_MS - 1, info.max_late_ns);
}

TEST_F(query, what_was_due_when_armed_does_not_count_as_late)
{
	struct twheel_info info;
	__u64 id;

	ASSERT_EQ(0, tw_advance(self->fd, TW_HOUR));
	ASSERT_EQ(0, tw_arm_at(self->fd, 1, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_HOUR));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1, info.expirations);
	EXPECT_EQ(0, info.max_late_ns);
}

/* ---- the next expiry, wherever it waits ---------------------------------- */

FIXTURE(next_expiry) {
	int fd;
	struct twheel_info info;
};

TW_VIRTUAL_VARIANTS(next_expiry);

FIXTURE_SETUP(next_expiry)
{
	self->fd = tw_open_setup(O_NONBLOCK, &variant->setup);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &self->info));
}

FIXTURE_TEARDOWN(next_expiry)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

static __u64 next_expiry(int fd)
{
	struct twheel_info info;

	return tw_info(fd, &info) ? TW_POISON64 : info.next_expiry_ns;
}

TEST_F(next_expiry, none_when_nothing_will_expire)
{
	__u64 id;

	EXPECT_EQ(TWHEEL_NO_EXPIRY, next_expiry(self->fd));
	ASSERT_EQ(0, tw_arm_at(self->fd, TWHEEL_TIME_NEVER, &id));
	EXPECT_EQ(TWHEEL_NO_EXPIRY, next_expiry(self->fd));
	ASSERT_EQ(0, tw_arm_at(self->fd, self->info.tick_ns, &id));
	ASSERT_EQ(0, tw_advance(self->fd, self->info.tick_ns));
	/* Its event is unread: that is past, and not to come. */
	EXPECT_EQ(TWHEEL_NO_EXPIRY, next_expiry(self->fd));
}

TEST_F(next_expiry, is_rounded_up_to_its_tick)
{
	__u64 tick_ns = self->info.tick_ns, id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 9 * tick_ns + 1, &id));
	EXPECT_EQ(10 * tick_ns, next_expiry(self->fd));
	ASSERT_EQ(0, tw_arm_at(self->fd, 7 * tick_ns, &id));
	EXPECT_EQ(7 * tick_ns, next_expiry(self->fd));
}

TEST_F(next_expiry, of_a_periodic_one_goes_on_while_it_is_unread)
{
	__u64 tick_ns = self->info.tick_ns, id;

	ASSERT_EQ(0, tw_arm1(self->fd, 0, 10 * tick_ns, 10 * tick_ns, 0, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 35 * tick_ns));
	EXPECT_EQ(40 * tick_ns, next_expiry(self->fd));
}

/*
 * The last tick before the end of time is cut short by it: what is due in it never
 * expires, and is shown so.
 */
TEST_F(next_expiry, none_for_a_tick_that_ends_after_time_does)
{
	__u64 last_ns = TWHEEL_TIME_NEVER / self->info.tick_ns * self->info.tick_ns;
	const __u64 deadlines_ns[] = {
		last_ns + 1, TWHEEL_TIME_NEVER - 1, TWHEEL_TIME_NEVER, last_ns, last_ns - 1,
	};
	struct twheel_event event;
	struct twheel_status row;
	__u64 id;
	int i;

	for (i = 0; i < (int)ARRAY_SIZE(deadlines_ns); i++) {
		/* The end may be the edge of a tick, as any other time. */
		bool comes = tw_round_up(deadlines_ns[i], self->info.tick_ns) <=
			     TWHEEL_TIME_NEVER && deadlines_ns[i] < TWHEEL_TIME_NEVER;

		ASSERT_EQ(0, tw_arm_at(self->fd, deadlines_ns[i], &id));
		EXPECT_EQ(comes ? last_ns : TWHEEL_NO_EXPIRY, next_expiry(self->fd));
		ASSERT_EQ(0, tw_query1(self->fd, id, &row));
		EXPECT_EQ(TWHEEL_STATE_PENDING, row.state);
		EXPECT_EQ(deadlines_ns[i], row.deadline_ns);
		if (comes) {
			ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
		}
	}
	ASSERT_EQ(0, tw_arm_at(self->fd, last_ns, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TWHEEL_TIME_NEVER));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(TWHEEL_NO_EXPIRY, next_expiry(self->fd));
}

#define WAITING	60

/* Near ones, far ones, and some between. */
static __u64 some_ticks(__u64 *seed, __u64 slots)
{
	const __u64 ranges[] = { slots, 100 * slots, 2000 * slots };

	return 1 + tw_random(seed) % ranges[tw_random(seed) % 3];
}

/* Cancelled or re-armed from the nearest on: always the nearest of what is left. */
TEST_F(next_expiry, is_exact_as_the_nearest_is_cancelled_or_moved)
{
	__u64 ids[WAITING], ticks[WAITING], seed = 8, tick_ns = self->info.tick_ns;
	int i, step, nearest;

	for (i = 0; i < WAITING; i++) {
		ticks[i] = some_ticks(&seed, self->info.slots);
		ASSERT_EQ(0, tw_arm_at(self->fd, ticks[i] * tick_ns, &ids[i]));
	}
	for (step = 0; step < 2 * WAITING; step++) {
		for (i = nearest = 0; i < WAITING; i++)
			if (ticks[i] < ticks[nearest])
				nearest = i;
		ASSERT_EQ(ticks[nearest] * tick_ns, next_expiry(self->fd));
		if (step % 2) {
			ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[nearest]));
			ticks[nearest] = ~0ULL / tick_ns;
		} else {
			ticks[nearest] += some_ticks(&seed, self->info.slots);
			ASSERT_EQ(TWHEEL_WAS_PENDING,
				  tw_rearm1(self->fd, ids[nearest], TWHEEL_ARM_ABSOLUTE,
					    ticks[nearest] * tick_ns, 0));
		}
	}
	EXPECT_EQ(TWHEEL_NO_EXPIRY, next_expiry(self->fd));
}

TEST_F(next_expiry, is_exact_as_time_passes)
{
	__u64 seed = 9, tick_ns = self->info.tick_ns, id, next_ns;
	struct twheel_event events[WAITING];
	int i, nr, left = WAITING;

	for (i = 0; i < WAITING; i++) {
		ASSERT_EQ(0, tw_arm_at(self->fd, some_ticks(&seed, self->info.slots) * tick_ns,
				       &id));
	}
	while (left) {
		next_ns = next_expiry(self->fd);
		ASSERT_NE(TWHEEL_NO_EXPIRY, next_ns);
		ASSERT_EQ(0, tw_advance(self->fd, next_ns - 1));
		EXPECT_NO_EVENT(self->fd);
		ASSERT_EQ(next_ns, next_expiry(self->fd));
		ASSERT_EQ(0, tw_advance(self->fd, next_ns));
		nr = tw_read(self->fd, events, WAITING);
		ASSERT_LT(0, nr);
		left -= nr;
	}
	EXPECT_EQ(TWHEEL_NO_EXPIRY, next_expiry(self->fd));
}

TEST_HARNESS_MAIN
