// SPDX-License-Identifier: GPL-2.0
/*
 * engine/cancel.c: CANCEL
 */

/* G3: a cancelled timeout has no other outcome. */
static void cancel_ends_a_live_timeout_and_says_what_it_was(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, action_cancel, start->to.cancel);
}

/* G8: if an id has ended, or another bit of its generation is set, it names no timeout. */
static void cancel_of_any_other_id_says_enoent_and_changes_nothing(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	s64 before[NR_TALLIES];
	unsigned int bit;
	u64 id, next;

	KUNIT_ASSERT_EQ(test, arm_plain(tw, &id), 0);
	tally_take(tw, before);
	for (bit = 32; bit < 64; bit++)
		KUNIT_ASSERT_EQ(test, cancel(tw, id ^ BIT_ULL(bit)), -ENOENT);
	KUNIT_EXPECT_EQ(test, cancel(tw, id | STATE_PENDING), -ENOENT);
	KUNIT_EXPECT_EQ(test, cancel(tw, id + 1000 * PLACES_PER_PAGE), -ENOENT);
	KUNIT_EXPECT_EQ(test, cancel(tw, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, cancel(tw, U64_MAX), -ENOENT);
	expect_delta(test, before, nothing);
	KUNIT_EXPECT_EQ(test, cancel(tw, id), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, cancel(tw, id), -ENOENT);
	/* The same holds if the place has another timeout. */
	KUNIT_ASSERT_EQ(test, arm_plain(tw, &next), 0);
	KUNIT_EXPECT_EQ(test, (u32)next, (u32)id);
	KUNIT_EXPECT_EQ(test, cancel(tw, id), -ENOENT);
	KUNIT_EXPECT_EQ(test, cancel(tw, next), TWHEEL_WAS_PENDING);
}

/*
 * G3, G4: whichever access faults, elements that are done are reported and their timeouts have
 * ended. The others are unchanged: the same call can be made again from there.
 */
static void a_cancel_that_faults_anywhere_goes_on_where_it_stopped(struct kunit *test)
{
	struct twheel_cancel *how = kunit_kcalloc(test, 6, sizeof(*how), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	int nr, done, i;
	bool faulted = true;

	KUNIT_ASSERT_NOT_NULL(test, how);
	for (nr = 0; faulted; nr++) {
		struct twheel_cancel __user *user = (struct twheel_cancel __user __force *)how;
		struct twheel_call call = { .stride = sizeof(*how) };
		u64 cancelled = tw->events.cancelled, revoked = tw->events.revoked;

		for (i = 0; i < 6; i++) {
			struct twheel_arm arming = arm_of(i == 3 ? OV : i == 1 ? PE : 0, 0);

			arm(test, &arming);
			how[i] = (struct twheel_cancel){ .id = arming.id, .result = 77 };
		}
		how[4].id ^= BIT_ULL(40);
		faults_begin(nr);
		done = twheel_cancel_step(tw, user, 6, &call);
		faulted = faults_end();
		audit(test);
		if (done < 0) {
			KUNIT_ASSERT_EQ(test, done, -EFAULT);
			done = 0;
		}
		KUNIT_ASSERT_TRUE(test, faulted == (done < 6));
		for (i = 0; i < 6; i++) {
			KUNIT_ASSERT_EQ(test, how[i].result == 77, i >= done);
			KUNIT_ASSERT_EQ(test, !!find(tw, how[i].id), i >= done && i != 4);
		}
		if (done < 6)
			KUNIT_ASSERT_EQ(test, twheel_cancel_step(tw, user + done, 6 - done, &call),
					6 - done);
		for (i = 0; i < 6; i++)
			KUNIT_ASSERT_EQ(test, how[i].result, i == 4 ? -ENOENT :
					i == 3 ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING);
		KUNIT_ASSERT_EQ(test, call.nr_ok, 5U);
		KUNIT_ASSERT_EQ(test, tw->events.cancelled - cancelled, 4ULL);
		KUNIT_ASSERT_EQ(test, tw->events.revoked - revoked, 1ULL);
		cancel(tw, how[4].id ^ BIT_ULL(40));
	}
	KUNIT_EXPECT_GT(test, nr, 6);
}

static void an_element_with_a_reserved_member_set_says_einval(struct kunit *test)
{
	struct twheel_cancel how = { .reserved = 1 };
	struct twheel_call call = { .stride = sizeof(how) };
	struct tw_ctx *tw = test->priv;

	KUNIT_ASSERT_EQ(test, arm_plain(tw, &how.id), 0);
	KUNIT_EXPECT_EQ(test, twheel_cancel_step(tw, to_user(how), 1, &call), 1);
	KUNIT_EXPECT_EQ(test, how.result, -EINVAL);
	KUNIT_EXPECT_EQ(test, call.nr_ok, 0U);
	KUNIT_EXPECT_NOT_NULL(test, find(tw, how.id));
}

static void cancel_one_says_0_or_enoent(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 id;

	KUNIT_ASSERT_EQ(test, arm_plain(tw, &id), 0);
	KUNIT_EXPECT_EQ(test, twheel_cancel_one(tw, id ^ BIT_ULL(32), false), -ENOENT);
	KUNIT_EXPECT_EQ(test, twheel_cancel_one(tw, id, false), 0);
	KUNIT_EXPECT_EQ(test, twheel_cancel_one(tw, id, false), -ENOENT);
	KUNIT_EXPECT_EQ(test, tw->events.cancelled, 1ULL);
}

static void a_single_cancel_that_is_not_plain_begins_nothing(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_cancel how = { .id = timeout_id(arm_like(test, 0)), .reserved = 1 };

	KUNIT_EXPECT_FALSE(test, twheel_cancel_plain(tw, to_user(how)));
	how.reserved = 0;
	how.id ^= BIT_ULL(40);
	KUNIT_EXPECT_FALSE(test, twheel_cancel_plain(tw, to_user(how)));
	how.id ^= BIT_ULL(40);
	faults_begin(2);
	KUNIT_EXPECT_FALSE(test, twheel_cancel_plain(tw, to_user(how)));
	KUNIT_EXPECT_TRUE(test, faults_end());
	KUNIT_EXPECT_NOT_NULL(test, find(tw, how.id));
	audit(test);
	KUNIT_EXPECT_TRUE(test, twheel_cancel_plain(tw, to_user(how)));
	KUNIT_EXPECT_EQ(test, how.result, TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_NULL(test, find(tw, how.id));
	how.id = timeout_id(arm_like(test, OV));
	KUNIT_EXPECT_FALSE(test, twheel_cancel_plain(tw, to_user(how)));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 1U);
}

static struct kunit_case cancel_cases[] = {
	KUNIT_CASE(a_single_cancel_that_is_not_plain_begins_nothing),
	KUNIT_CASE_PARAM(cancel_ends_a_live_timeout_and_says_what_it_was, start_gen_params),
	KUNIT_CASE(cancel_of_any_other_id_says_enoent_and_changes_nothing),
	KUNIT_CASE(a_cancel_that_faults_anywhere_goes_on_where_it_stopped),
	KUNIT_CASE(an_element_with_a_reserved_member_set_says_einval),
	KUNIT_CASE(cancel_one_says_0_or_enoent),
	{}
};

ENGINE_SUITE(cancel);
