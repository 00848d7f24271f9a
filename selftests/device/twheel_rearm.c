// SPDX-License-Identifier: GPL-2.0
/*
 * REARM: a new schedule under the same id. Earlier, later, into the past, to never and back; the
 * events that it revokes, the fields that it keeps and those that it replaces.
 */
#include "twheel_test.h"

FIXTURE(rearm) {
	int fd;
	__u64 id;
};

TW_SETTLE_VARIANTS(rearm);

/* A wheel whose clock stands at 0, and a one-shot due at 10 ms. */
FIXTURE_SETUP(rearm)
{
	TW_SETTLE();
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, 10 * TW_MS, 0, 42, &self->id));
}

FIXTURE_TEARDOWN(rearm)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Expect nothing until the edge at deadline_ns, and then one event of this deadline. */
static void expect_expiry(struct __test_metadata *_metadata, int fd, __u64 id, __u64 deadline_ns)
{
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(fd, deadline_ns - 1));
	EXPECT_NO_EVENT(fd);
	ASSERT_EQ(0, tw_advance(fd, deadline_ns));
	ASSERT_ONE_EVENT(fd, &event, id);
	EXPECT_EQ(deadline_ns, event.deadline_ns);
	EXPECT_EQ(deadline_ns, event.fired_ns);
	EXPECT_EQ(1, event.count);
}

TEST_F(rearm, rearm_of_a_pending_timeout_says_pending)
{
	EXPECT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE, 20 * TW_MS, 0));
}

TEST_F(rearm, a_timeout_moved_later_expires_at_the_new_deadline_only)
{
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE, 20 * TW_MS, 0));
	expect_expiry(_metadata, self->fd, self->id, 20 * TW_MS);
	ASSERT_EQ(0, tw_advance(self->fd, TW_HOUR));
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(rearm, a_timeout_moved_earlier_expires_at_the_new_deadline_only)
{
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE, 5 * TW_MS, 0));
	expect_expiry(_metadata, self->fd, self->id, 5 * TW_MS);
	ASSERT_EQ(0, tw_advance(self->fd, TW_HOUR));
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(rearm, a_timeout_moved_later_and_back_expires_at_the_last_deadline)
{
	const __u64 way_ns[] = { TW_DAY, 15 * TW_MS, TW_HOUR, 3 * TW_MS, 7 * TW_MS };
	int i;

	for (i = 0; i < ARRAY_SIZE(way_ns); i++) {
		ASSERT_EQ(TWHEEL_WAS_PENDING,
			  tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE, way_ns[i], 0));
	}
	expect_expiry(_metadata, self->fd, self->id, 7 * TW_MS);
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_DAY));
	EXPECT_NO_EVENT(self->fd);
}

/* The old slot comes due between one REARM and the next, many times. */
TEST_F(rearm, a_timeout_rearmed_in_time_never_expires)
{
	__u64 now_ns;

	for (now_ns = 0; now_ns < 500 * TW_MS; now_ns += 9 * TW_MS) {
		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		EXPECT_NO_EVENT(self->fd);
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, 0, 10 * TW_MS, 0));
	}
	expect_expiry(_metadata, self->fd, self->id, now_ns - 9 * TW_MS + 10 * TW_MS);
}

TEST_F(rearm, a_relative_rearm_counts_from_now_and_not_from_the_old_deadline)
{
	struct twheel_status status;

	ASSERT_EQ(0, tw_advance(self->fd, 4 * TW_MS));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, 0, 3 * TW_MS, 0));
	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	EXPECT_EQ(7 * TW_MS, status.deadline_ns);
	EXPECT_EQ(3 * TW_MS, status.left_ns);
}

TEST_F(rearm, a_timeout_moved_into_the_past_expires_at_the_next_turn)
{
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(self->fd, 8 * TW_MS + 1));
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE, 2 * TW_MS, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 8 * TW_MS + 1));
	ASSERT_ONE_EVENT(self->fd, &event, self->id);
	EXPECT_EQ(2 * TW_MS, event.deadline_ns);
	EXPECT_EQ(8 * TW_MS + 1, event.fired_ns);
}

/* The old deadline has passed as well, and the edge of that tick is still to come. */
TEST_F(rearm, a_timeout_moved_into_the_tick_that_has_begun_expires_at_the_next_turn)
{
	const __u64 now_ns = 20 * TW_MS + TW_MS / 2;
	struct twheel_event event;
	struct twheel_info info;

	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE, 20 * TW_MS + 1, 0));
	ASSERT_EQ(0, tw_advance(self->fd, now_ns));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE, 20 * TW_MS + 2, 0));
	ASSERT_EQ(0, tw_advance(self->fd, now_ns));
	ASSERT_ONE_EVENT(self->fd, &event, self->id);
	EXPECT_EQ(20 * TW_MS + 2, event.deadline_ns);
	EXPECT_EQ(now_ns, event.fired_ns);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0, info.late);
}

TEST_F(rearm, a_timeout_can_be_moved_to_never_and_back)
{
	struct twheel_info info;

	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->id, TWHEEL_ARM_ABSOLUTE, TWHEEL_TIME_NEVER,
			    0));
	ASSERT_EQ(0, tw_advance(self->fd, TW_DAY));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1, info.pending);
	EXPECT_EQ(TWHEEL_TIME_NEVER, info.next_expiry_ns);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, 0, TW_MS, 0));
	expect_expiry(_metadata, self->fd, self->id, TW_DAY + TW_MS);
}

/* ---- expired and unread -------------------------------------------------- */

TEST_F(rearm, rearm_of_an_unread_timeout_says_unread)
{
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, tw_rearm1(self->fd, self->id, 0, 10 * TW_MS, 0));
}

TEST_F(rearm, unread_event_of_the_old_schedule_never_comes)
{
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_rearm1(self->fd, self->id, 0, 10 * TW_MS, 0));
	EXPECT_EQ(0, tw_poll(self->fd, POLLIN, 0));
	EXPECT_NO_EVENT(self->fd);
	expect_expiry(_metadata, self->fd, self->id, 20 * TW_MS);
}

TEST_F(rearm, an_unread_timeout_moved_to_zero_expires_once)
{
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_rearm1(self->fd, self->id, 0, 0, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, self->id);
	EXPECT_EQ(1, event.count);
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(rearm, unread_sibling_keeps_its_event)
{
	struct twheel_event event;
	__u64 sibling;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &sibling));
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_rearm1(self->fd, self->id, 0, TW_MS, 0));
	ASSERT_ONE_EVENT(self->fd, &event, sibling);
}

/* ---- timeouts that have ended -------------------------------------------- */

TEST_F(rearm, rearm_of_a_delivered_timeout_says_enoent_and_begins_nothing)
{
	struct tw_snapshot before;
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, self->id);
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-ENOENT, tw_rearm1(self->fd, self->id, 0, TW_MS, 0));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(rearm, rearm_of_a_cancelled_timeout_says_enoent_and_begins_nothing)
{
	struct tw_snapshot before;

	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, self->id));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-ENOENT, tw_rearm1(self->fd, self->id, 0, TW_MS, 0));
	EXPECT_UNCHANGED(self->fd, &before);
}

/* ---- fields that are kept or replaced ------------------------------------ */

TEST_F(rearm, id_and_user_data_are_kept)
{
	struct twheel_status status;
	struct twheel_event event;

	/* tw_rearm1() passes poison as user_data. */
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, 0, TW_MS, 0));
	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	EXPECT_EQ(42, status.user_data);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, self->id);
	EXPECT_EQ(42, event.user_data);
}

TEST_F(rearm, one_shot_becomes_periodic)
{
	int i;

	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, 0, TW_MS, 5 * TW_MS));
	for (i = 0; i < 4; i++)
		expect_expiry(_metadata, self->fd, self->id, TW_MS + i * 5 * TW_MS);
}

TEST_F(rearm, one_shot_that_moves_later_becomes_periodic)
{
	int i;

	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, 0, 20 * TW_MS, 5 * TW_MS));
	for (i = 0; i < 4; i++)
		expect_expiry(_metadata, self->fd, self->id, 20 * TW_MS + i * 5 * TW_MS);
}

TEST_F(rearm, periodic_timeout_becomes_a_one_shot)
{
	struct twheel_status status;

	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, 0, TW_MS, 5 * TW_MS));
	expect_expiry(_metadata, self->fd, self->id, TW_MS);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, 0, TW_MS, 0));
	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	EXPECT_EQ(0, status.interval_ns);
	expect_expiry(_metadata, self->fd, self->id, 2 * TW_MS);
	EXPECT_EQ(-ENOENT, tw_query1(self->fd, self->id, &status));
}

TEST_F(rearm, unread_periods_of_the_old_schedule_are_not_counted_in_the_new_one)
{
	struct twheel_event event;

	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, 0, TW_MS, TW_MS));
	ASSERT_EQ(0, tw_advance(self->fd, 50 * TW_MS));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_rearm1(self->fd, self->id, 0, TW_MS, TW_MS));
	ASSERT_EQ(0, tw_advance(self->fd, 53 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, self->id);
	EXPECT_EQ(3, event.count);
	EXPECT_EQ(53 * TW_MS, event.deadline_ns);
}

TEST_F(rearm, limit_flags_interval_and_deliveries_are_replaced)
{
	struct twheel_arm first = {
		.id = self->id,
		.flags = TWHEEL_ARM_FIXED_DELAY,
		.expires_ns = TW_MS,
		.interval_ns = 7 * TW_MS,
		.repeats = 5,
	};
	struct twheel_arm second = {
		.id = self->id,
		.expires_ns = TW_MS,
		.interval_ns = 3 * TW_MS,
		.repeats = 9,
	};
	struct twheel_status status;

	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm_entry(self->fd, &first));
	expect_expiry(_metadata, self->fd, self->id, TW_MS);
	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	EXPECT_EQ(TWHEEL_ARM_FIXED_DELAY, status.flags);
	EXPECT_EQ(7 * TW_MS, status.interval_ns);
	EXPECT_EQ(4, status.repeats_left);
	EXPECT_EQ(1, status.deliveries);

	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm_entry(self->fd, &second));
	ASSERT_EQ(0, tw_query1(self->fd, self->id, &status));
	EXPECT_EQ(0, status.flags);
	EXPECT_EQ(3 * TW_MS, status.interval_ns);
	EXPECT_EQ(9, status.repeats_left);
	EXPECT_EQ(0, status.deliveries);
	EXPECT_EQ(0, status.count);
}

TEST_F(rearm, spent_and_unread_timeout_gets_a_new_limit)
{
	struct twheel_arm arm = {
		.id = self->id,
		.expires_ns = TW_MS,
		.interval_ns = TW_MS,
		.repeats = 2,
	};
	struct twheel_event event;

	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm_entry(self->fd, &arm));
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_rearm_entry(self->fd, &arm));
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, self->id);
	EXPECT_EQ(2, event.count);
	EXPECT_EQ(12 * TW_MS, event.deadline_ns);
}

TEST_F(rearm, a_rearm_is_counted_as_such_and_as_nothing_else)
{
	struct twheel_info info;

	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, 0, TW_MS, 0));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_rearm1(self->fd, self->id, 0, TW_MS, 0));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(2, info.rearmed);
	EXPECT_EQ(1, info.armed);
	EXPECT_EQ(1, info.live);
	EXPECT_EQ(1, info.pending);
	EXPECT_EQ(0, info.unread);
	EXPECT_EQ(0, info.revoked);
	EXPECT_EQ(0, info.cancelled);
	EXPECT_EQ(0, info.completed);
}

TEST_F(rearm, next_expiry_follows_in_both_directions)
{
	struct twheel_info info;
	__u64 farther;

	ASSERT_EQ(0, tw_arm_at(self->fd, 50 * TW_MS, &farther));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, 0, 3 * TW_MS + 1, 0));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(4 * TW_MS, info.next_expiry_ns);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, 0, TW_SEC, 0));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(50 * TW_MS, info.next_expiry_ns);
}

/* ---- vectors ------------------------------------------------------------- */

TEST_F(rearm, vector_goes_on_past_elements_that_fail)
{
	struct twheel_arm arms[4] = {};
	__u64 unread;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &unread));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	arms[0] = (struct twheel_arm){ .id = 0, .expires_ns = TW_MS };
	arms[1] = (struct twheel_arm){ .id = self->id, .expires_ns = TW_MS };
	arms[2] = (struct twheel_arm){ .id = self->id, .expires_ns = TW_MS, .flags = 1U << 31 };
	arms[3] = (struct twheel_arm){ .id = unread, .expires_ns = TW_MS };
	EXPECT_EQ(2, tw_rearm_vec(self->fd, arms, 4));
	EXPECT_EQ(-ENOENT, arms[0].result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, arms[1].result);
	EXPECT_EQ(-EINVAL, arms[2].result);
	EXPECT_EQ(TWHEEL_WAS_UNREAD, arms[3].result);
}

TEST_F(rearm, the_last_of_two_rearms_in_one_vector_holds)
{
	struct twheel_arm arms[2] = {
		{ .id = self->id, .expires_ns = 2 * TW_MS },
		{ .id = self->id, .expires_ns = 5 * TW_MS },
	};

	EXPECT_EQ(2, tw_rearm_vec(self->fd, arms, 2));
	expect_expiry(_metadata, self->fd, self->id, 5 * TW_MS);
	EXPECT_NO_EVENT(self->fd);
}

/*
 * Some elements take the fast path, and some do not: each is done by itself, in the order of the
 * vector.
 */
TEST_F(rearm, vector_of_many_kinds_does_each)
{
	static const struct {
		__u64 expires_ns, interval_ns;
		__u32 flags, slack_ticks;
		__s32 result;
	} kinds[] = {
		{ 20 * TW_MS, .result = TWHEEL_WAS_PENDING },
		{ 30 * TW_MS, .result = TWHEEL_WAS_PENDING },
		{ 5 * TW_MS, .result = TWHEEL_WAS_PENDING },
		{ 20 * TW_MS, .result = TWHEEL_WAS_PENDING },
		{ 20 * TW_MS, .interval_ns = TW_SEC, .result = TWHEEL_WAS_PENDING },
		{ 20 * TW_MS, .slack_ticks = 7, .result = TWHEEL_WAS_PENDING },
		{ 20 * TW_MS, .flags = 1U << 31, .result = -EINVAL },
		{ 20 * TW_MS, .result = TWHEEL_WAS_PENDING },
	};
	const int nr_kinds = ARRAY_SIZE(kinds), nr = 10 * nr_kinds;
	struct twheel_arm arms[10 * ARRAY_SIZE(kinds)] = {};
	struct twheel_status status;
	int i;

	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &arms[i].id));
		arms[i].expires_ns = kinds[i % nr_kinds].expires_ns;
		arms[i].interval_ns = kinds[i % nr_kinds].interval_ns;
		arms[i].flags = kinds[i % nr_kinds].flags;
		arms[i].slack_ticks = kinds[i % nr_kinds].slack_ticks;
	}
	EXPECT_EQ(nr - nr / nr_kinds, tw_rearm_vec(self->fd, arms, nr));
	for (i = 0; i < nr; i++) {
		EXPECT_EQ(kinds[i % nr_kinds].result, arms[i].result);
		ASSERT_EQ(0, tw_query1(self->fd, arms[i].id, &status));
		EXPECT_EQ(arms[i].result < 0 ? 10 * TW_MS : arms[i].expires_ns,
			  status.deadline_ns);
		EXPECT_EQ(arms[i].interval_ns, status.interval_ns);
		EXPECT_EQ(arms[i].slack_ticks, status.slack_ticks);
	}
}

/* ---- timeouts in every level --------------------------------------------- */

#define MOVED	200

#define CROWD	5000

/* G4: for each stale entry that is left behind, the wheel has chunks. */
TEST(crowd_that_moves_earlier_again_and_again_expires)
{
	struct twheel_arm *arms = calloc(CROWD, sizeof(*arms));
	int fd = tw_open(O_NONBLOCK), i, hour;
	struct twheel_info info;

	ASSERT_NE(NULL, arms);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 0));
	for (hour = 6; hour > 0; hour--) {
		for (i = 0; i < CROWD; i++) {
			arms[i].flags = TWHEEL_ARM_ABSOLUTE;
			arms[i].expires_ns = hour * TW_HOUR + i * TW_MS;
		}
		ASSERT_EQ(CROWD, hour == 6 ? tw_arm_vec(fd, arms, CROWD) :
				 tw_rearm_vec(fd, arms, CROWD));
		ASSERT_EQ(0, tw_advance(fd, (7 - hour) * TW_MS));
	}
	ASSERT_EQ(0, tw_advance(fd, 2 * TW_HOUR));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(CROWD, info.expirations);
	EXPECT_ACCOUNTS(fd);
	close(fd);
	free(arms);
}

FIXTURE(rearm_anywhere) {
	int fd;
	struct twheel_info info;
};

TW_VIRTUAL_VARIANTS(rearm_anywhere);

FIXTURE_SETUP(rearm_anywhere)
{
	self->fd = tw_open_setup(O_NONBLOCK, &variant->setup);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &self->info));
}

FIXTURE_TEARDOWN(rearm_anywhere)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/*
 * Each timeout is moved from one random time to another, several times while time passes, and
 * expires once, at the last one, in the order of ticks.
 */
TEST_F(rearm_anywhere, each_timeout_expires_once_at_its_last_deadline)
{
	__u64 tick_ns = self->info.tick_ns, range_ticks = 150 * self->info.slots;
	__u64 ids[MOVED], deadlines_ns[MOVED], previous_ns = 0, seed = 4;
	struct twheel_event events[MOVED + 1];
	int i, step;

	for (step = 0; step < 5; step++) {
		/* No deadline is reached before the last step is done. */
		__u64 first_tick = 5 * range_ticks + 1;

		ASSERT_EQ(0, tw_advance(self->fd, step * range_ticks * tick_ns));
		for (i = 0; i < MOVED; i++) {
			deadlines_ns[i] = (first_tick + tw_random(&seed) % range_ticks) * tick_ns;
			if (step) {
				ASSERT_EQ(TWHEEL_WAS_PENDING,
					  tw_rearm1(self->fd, ids[i], TWHEEL_ARM_ABSOLUTE,
						    deadlines_ns[i], 0));
			} else {
				ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE,
						     deadlines_ns[i], 0, i, &ids[i]));
			}
		}
	}
	ASSERT_EQ(0, tw_advance(self->fd, 6 * range_ticks * tick_ns + tick_ns));
	ASSERT_EQ(MOVED, tw_read(self->fd, events, MOVED + 1));
	for (i = 0; i < MOVED; i++) {
		ASSERT_GT(MOVED, events[i].user_data);
		EXPECT_EQ(deadlines_ns[events[i].user_data], events[i].deadline_ns);
		deadlines_ns[events[i].user_data] = 0;
		EXPECT_LE(previous_ns, events[i].deadline_ns);
		previous_ns = events[i].deadline_ns;
	}
}

TEST_HARNESS_MAIN
