// SPDX-License-Identifier: GPL-2.0
/*
 * CANCEL: each verdict, the events that it revokes, and that it touches no other timeout. Stale
 * ids and ids that never were (G8) are in twheel_stale.c.
 */
#include "twheel_test.h"

FIXTURE(cancel) {
	int fd;
};

FIXTURE_SETUP(cancel)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(cancel)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(cancel, cancel_of_a_pending_timeout_says_pending)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
}

TEST_F(cancel, cancelled_timeout_never_expires)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_HOUR));
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(cancel, cancel_of_a_timeout_that_never_expires_says_pending)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, TWHEEL_TIME_NEVER, &id));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
}

TEST_F(cancel, cancel_of_an_unread_timeout_says_unread)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, id));
}

TEST_F(cancel, revoked_event_never_comes)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, id));
	EXPECT_EQ(0, tw_poll(self->fd, POLLIN, 0));
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(cancel, cancel_of_a_delivered_timeout_says_enoent)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id));
}

TEST_F(cancel, cancel_of_a_cancelled_timeout_says_enoent)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id));
}

TEST_F(cancel, cancel_of_a_revoked_timeout_says_enoent)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, id));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id));
}

TEST_F(cancel, second_cancel_in_one_vector_says_enoent)
{
	struct twheel_cancel cancels[2] = {};
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &id));
	cancels[0].id = id;
	cancels[1].id = id;
	EXPECT_EQ(1, tw_cancel_vec(self->fd, cancels, 2));
	EXPECT_EQ(TWHEEL_WAS_PENDING, cancels[0].result);
	EXPECT_EQ(-ENOENT, cancels[1].result);
}

TEST_F(cancel, id_of_another_wheel_cancels_nothing_there)
{
	int other = tw_virtual(O_NONBLOCK, TW_MS);
	struct tw_snapshot before;
	__u64 id;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, tw_arm_at(other, 10 * TW_MS, &id));
	ASSERT_EQ(0, tw_snapshot(other, &before));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id));
	EXPECT_UNCHANGED(other, &before);
	close(other);
}

TEST_F(cancel, vector_goes_on_past_elements_that_fail)
{
	struct twheel_cancel cancels[5] = {};
	__u64 pending, unread, delivered;
	struct twheel_event event;

	ASSERT_EQ(0, tw_arm_at(self->fd, 1 * TW_MS, &delivered));
	ASSERT_EQ(0, tw_arm_at(self->fd, 2 * TW_MS, &unread));
	ASSERT_EQ(0, tw_arm_at(self->fd, 3 * TW_MS, &pending));
	ASSERT_EQ(0, tw_advance(self->fd, 1 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, delivered);
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MS));

	cancels[0].id = delivered;
	cancels[1].id = pending;
	cancels[2].id = 0;
	cancels[3].id = unread;
	cancels[4].id = pending;
	EXPECT_EQ(2, tw_cancel_vec(self->fd, cancels, 5));
	EXPECT_EQ(-ENOENT, cancels[0].result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, cancels[1].result);
	EXPECT_EQ(-ENOENT, cancels[2].result);
	EXPECT_EQ(TWHEEL_WAS_UNREAD, cancels[3].result);
	EXPECT_EQ(-ENOENT, cancels[4].result);
}

TEST_F(cancel, siblings_of_the_same_tick_are_not_touched)
{
	struct twheel_event events[11];
	__u64 ids[20];
	int i, nr;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS, &ids[i]));
	}
	/* Cancel every other one: half of them are pending, and half have an unread event. */
	for (i = 0; i < 10; i += 2) {
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[i]));
	}
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	for (; i < 20; i += 2) {
		ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, ids[i]));
	}

	nr = tw_read(self->fd, events, 11);
	ASSERT_EQ(10, nr);
	while (nr--) {
		for (i = 1; i < 20 && ids[i] != events[nr].id; i += 2)
			;
		ASSERT_GT(20, i)
			TH_LOG("event of %#llx, which was cancelled", events[nr].id);
		ids[i] = 0;
	}
}

TEST_F(cancel, each_verdict_is_counted_once)
{
	__u64 pending, unread;
	struct twheel_info info;

	ASSERT_EQ(0, tw_arm_at(self->fd, 1 * TW_MS, &unread));
	ASSERT_EQ(0, tw_arm_at(self->fd, 9 * TW_MS, &pending));
	ASSERT_EQ(0, tw_advance(self->fd, 1 * TW_MS));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, pending));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, unread));
	ASSERT_EQ(-ENOENT, tw_cancel1(self->fd, pending));
	ASSERT_EQ(-ENOENT, tw_cancel1(self->fd, unread));

	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1, info.cancelled);
	EXPECT_EQ(1, info.revoked);
	EXPECT_EQ(0, info.pending);
	EXPECT_EQ(0, info.unread);
	EXPECT_EQ(0, info.live);
	EXPECT_EQ(0, info.delivered);
}

/* ---- periodic ones ------------------------------------------------------- */

static const struct {
	const char *name;
	__u32 flags;
	__u32 repeats;
} periodics[] = {
	{ "fixed rate", 0, 0 },
	{ "fixed rate, one of three left", 0, 3 },
	{ "fixed rate, spent", 0, 1 },
	{ "fixed delay", TWHEEL_ARM_FIXED_DELAY, 0 },
	{ "fixed delay, spent", TWHEEL_ARM_FIXED_DELAY, 1 },
};

static int arm_periodic(int fd, int i, __u64 *id)
{
	struct twheel_arm arm = {
		.flags = periodics[i].flags,
		.repeats = periodics[i].repeats,
		.expires_ns = 10 * TW_MS,
		.interval_ns = 10 * TW_MS,
	};
	int ret = tw_arm_entry(fd, &arm);

	*id = arm.id;
	return ret;
}

TEST_F(cancel, cancel_of_a_periodic_timeout_with_an_unread_event_says_unread_and_ends_it)
{
	__u64 id, now_ns = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(periodics); i++) {
		ASSERT_EQ(0, arm_periodic(self->fd, i, &id));
		ASSERT_EQ(0, tw_advance(self->fd, now_ns += 25 * TW_MS));
		EXPECT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, id))
			TH_LOG("%s", periodics[i].name);
		ASSERT_EQ(0, tw_advance(self->fd, now_ns += TW_SEC));
		EXPECT_NO_EVENT(self->fd);
		EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id))
			TH_LOG("%s", periodics[i].name);
	}
}

TEST_F(cancel, cancel_of_a_periodic_timeout_whose_event_was_read_says_pending_and_ends_it)
{
	struct twheel_event event;
	__u64 id, now_ns = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(periodics); i++) {
		if (periodics[i].repeats == 1)
			continue;
		ASSERT_EQ(0, arm_periodic(self->fd, i, &id));
		ASSERT_EQ(0, tw_advance(self->fd, now_ns += 15 * TW_MS));
		ASSERT_ONE_EVENT(self->fd, &event, id);
		EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id))
			TH_LOG("%s", periodics[i].name);
		ASSERT_EQ(0, tw_advance(self->fd, now_ns += TW_SEC));
		EXPECT_NO_EVENT(self->fd);
	}
}

TEST_F(cancel, cancel_of_a_periodic_timeout_whose_last_event_was_read_says_enoent)
{
	struct twheel_event event;
	__u64 id, now_ns = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(periodics); i++) {
		if (periodics[i].repeats != 1)
			continue;
		ASSERT_EQ(0, arm_periodic(self->fd, i, &id));
		ASSERT_EQ(0, tw_advance(self->fd, now_ns += 15 * TW_MS));
		ASSERT_ONE_EVENT(self->fd, &event, id);
		EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id))
			TH_LOG("%s", periodics[i].name);
	}
}

/* ---- timeouts in every level --------------------------------------------- */

FIXTURE(cancel_anywhere) {
	int fd;
	struct twheel_info info;
};

TW_VIRTUAL_VARIANTS(cancel_anywhere);

FIXTURE_SETUP(cancel_anywhere)
{
	self->fd = tw_open_setup(O_NONBLOCK, &variant->setup);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &self->info));
}

FIXTURE_TEARDOWN(cancel_anywhere)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Near and far timeouts, half of which are cancelled on the way: the others all expire. */
TEST_F(cancel_anywhere, exactly_the_timeouts_that_were_not_cancelled_expire)
{
	__u64 tick_ns = self->info.tick_ns, range_ticks = 200 * self->info.slots, seed = 3;
	struct twheel_event events[256];
	__u64 ids[500];
	int i, nr, got = 0;

	for (i = 0; i < 500; i++) {
		/*
		 * The deadlines are beyond half of the range, so that all pend when the clock gets
		 * there.
		 */
		__u64 ticks = range_ticks / 2 + 1 + tw_random(&seed) % (range_ticks / 2);

		ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, ticks * tick_ns, 0, i,
				     &ids[i]));
	}
	for (i = 0; i < 250; i += 2) {
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[i]));
	}
	ASSERT_EQ(0, tw_advance(self->fd, range_ticks / 2 * tick_ns));
	for (; i < 500; i += 2) {
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[i]));
	}
	ASSERT_EQ(0, tw_advance(self->fd, (range_ticks + 1) * tick_ns));

	while ((nr = tw_read(self->fd, events, 256)) > 0) {
		for (i = 0; i < nr; i++) {
			ASSERT_EQ(1, events[i].user_data % 2)
				TH_LOG("timeout %llu was cancelled", events[i].user_data);
			ASSERT_EQ(ids[events[i].user_data], events[i].id);
			ids[events[i].user_data] = 0;
		}
		got += nr;
	}
	EXPECT_EQ(-EAGAIN, nr);
	EXPECT_EQ(250, got);
}

TEST_HARNESS_MAIN
