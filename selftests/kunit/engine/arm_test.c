// SPDX-License-Identifier: GPL-2.0
/*
 * engine/arm.c: ARM
 */

static void over_the_limit_an_entry_says_eagain_and_nothing_is_taken(struct kunit *test)
{
	struct twheel *tw = wheel_with(test, max_pending, 3);
	struct twheel_arm how[5] = {};
	struct twheel_arming arming = {};
	s64 before[NR_TALLIES];
	unsigned int i;

	for (i = 0; i < 5; i++)
		how[i].expires_ns = DELAY_NS;
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, how, 5, &arming), 0);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, how[i].result, i < 3 ? TWHEEL_CREATED : -EAGAIN);
	KUNIT_ASSERT_EQ(test, twheel_arm_commit(tw, &arming, 3), 0);
	audit(test);
	tally_take(tw, before);
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, how, 5, &arming), 0);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, how[i].result, -EAGAIN);
	KUNIT_EXPECT_EQ(test, twheel_arm_commit(tw, &arming, 0), 0);
	expect_delta(test, before, (s8[NR_TALLIES]) {});
}

/* G4, G8: a call that faults arms nothing, and its ids are not given out again. */
static void what_is_prepared_and_not_committed_leaves_no_trace(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_arm how[4];
	struct twheel_arming arming = {};
	s64 before[NR_TALLIES];
	unsigned int i;
	u64 seen;

	arm_like(test, 0);
	tally_take(tw, before);
	for (i = 0; i < 4; i++)
		how[i] = arm_of(PE, 0);
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, how, 4, &arming), 0);
	for (i = 0; i < 4; i++) {
		struct twheel_timeout *t = look_at(tw, (u32)how[i].id);

		KUNIT_EXPECT_EQ(test, shape_of(timeout_state(t)), PHASE_NEW | PE);
		KUNIT_EXPECT_EQ(test, cancel(tw, how[i].id), -ENOENT);
	}
	KUNIT_ASSERT_EQ(test, twheel_arm_commit(tw, &arming, 1), 0);
	expect_delta(test, before, (s8[NR_TALLIES]) {
		[LIVE] = 1, [PENDING] = 1, [ACCEPTED] = 1, [INBOX] = 1,
		[ROOM] = 1, [PLACES] = -1 });
	/* The ids that were reported are not given out again. */
	for (i = 1; i < 4; i++)
		KUNIT_EXPECT_EQ(test, state_gen(timeout_state(look_at(tw, (u32)how[i].id))),
				(u32)(how[i].id >> 32) + 1);
	KUNIT_EXPECT_NOT_NULL(test, look_by_id(tw, how[0].id, &seen));
}

static void a_batch_with_bad_entries_arms_the_good_ones(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_arm how[6];
	struct twheel_arming arming = {};
	unsigned int i;

	for (i = 0; i < 6; i++) {
		how[i] = arm_of(0, 0);
		how[i].user_data = i;
		how[i].repeats = i % 2;
	}
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, how, 6, &arming), 0);
	KUNIT_ASSERT_EQ(test, twheel_arm_commit(tw, &arming, 3), 0);
	for (i = 0; i < 6; i++) {
		KUNIT_EXPECT_EQ(test, how[i].result, i % 2 ? -EINVAL : TWHEEL_CREATED);
		if (!(i % 2))
			KUNIT_EXPECT_EQ(test, look_at(tw, (u32)how[i].id)->user_data,
					(u64)i);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.live), 3);
}

/* G3: DRAIN came between prepare and commit. The call says so, and arms nothing. */
static void what_is_armed_beside_a_drain_is_given_back(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_arm how[3];
	struct twheel_arming arming = {};
	struct twheel_rearming rearming = {};
	s64 before[NR_TALLIES];
	unsigned int nr_ok = 0;
	int i;

	how[0] = arm_of(0, 0);
	arm(test, &how[0]);
	enter(tw);
	tally_take(tw, before);
	for (i = 1; i < 3; i++)
		how[i] = arm_of(PE, 0);
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, how + 1, 2, &arming), 0);
	KUNIT_ASSERT_EQ(test, twheel_rearm_prepare(tw, how, &rearming, 1), 0);
	WRITE_ONCE(tw->control.draining, true);
	KUNIT_EXPECT_EQ(test, twheel_arm_commit(tw, &arming, 2), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, how, &rearming, 1, &nr_ok),
			-ESHUTDOWN);
	expect_delta(test, before, nothing);
	KUNIT_EXPECT_EQ(test, twheel_arm_prepare(tw, how + 1, 2, &arming),
			-ESHUTDOWN);
	expect_delta(test, before, nothing);
}

static struct kunit_case arm_cases[] = {
	KUNIT_CASE(over_the_limit_an_entry_says_eagain_and_nothing_is_taken),
	KUNIT_CASE(what_is_prepared_and_not_committed_leaves_no_trace),
	KUNIT_CASE(a_batch_with_bad_entries_arms_the_good_ones),
	KUNIT_CASE(what_is_armed_beside_a_drain_is_given_back),
	{}
};

ENGINE_SUITE(arm);
