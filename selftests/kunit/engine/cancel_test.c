// SPDX-License-Identifier: GPL-2.0
/*
 * engine/cancel.c: CANCEL
 */

/* G3: a cancelled timeout has no other outcome. */
static void cancel_ends_what_lives_and_says_what_it_was(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, deed_cancel, start->to.cancel, 0);
}

/* G3: of two that end a timeout, the one that comes second does nothing. */
static void a_cancel_that_was_overtaken_touches_nothing(struct kunit *test)
{
	const struct loss *loss = test->param_value;
	struct twheel *tw = test->priv;
	struct twheel_cancel cancel = {};
	s64 before[NR_TALLIES];
	struct twheel_timeout *t;
	struct twheel_look look;
	unsigned int nr_ok = 0;
	u64 state;

	t = bring(test, &loss->start, &cancel.id);
	twheel_cancel_look(tw, &cancel, &look, 1);
	KUNIT_ASSERT_GT(test, cancel.result, 0);
	state = lose(test, t, cancel.id, before);
	KUNIT_EXPECT_EQ(test, twheel_cancel_commit(tw, &cancel, &look, 1, &nr_ok),
			0U);
	KUNIT_EXPECT_EQ(test, nr_ok, 0U);
	KUNIT_EXPECT_EQ(test, (u64)timeout_state(t), state);
	expect_delta(test, before, nothing);
}

/* G3: of four pending timeouts the third is gone before commit. */
static void a_batch_of_cancels_stops_at_the_first_that_was_overtaken(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_cancel cancels[4] = {};
	struct twheel_look look;
	unsigned int nr_ok = 0;
	int i;

	for (i = 0; i < 4; i++)
		cancels[i].id = id_of(arm_like(test, 0));
	enter(tw);
	twheel_cancel_look(tw, cancels, &look, 4);
	cancel(tw, cancels[2].id);
	KUNIT_EXPECT_EQ(test, twheel_cancel_commit(tw, cancels, &look, 4, &nr_ok),
			2U);
	KUNIT_EXPECT_EQ(test, nr_ok, 2U);
	audit(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.live), 1);
	twheel_cancel_look(tw, cancels + 2, &look, 2);
	KUNIT_EXPECT_EQ(test, cancels[2].result, -ENOENT);
	KUNIT_EXPECT_EQ(test, twheel_cancel_commit(tw, cancels + 2, &look, 2,
						   &nr_ok), 2U);
	KUNIT_EXPECT_EQ(test, nr_ok, 3U);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.live), 0);
}

static struct kunit_case cancel_cases[] = {
	KUNIT_CASE_PARAM(cancel_ends_what_lives_and_says_what_it_was, start_gen_params),
	KUNIT_CASE_PARAM(a_cancel_that_was_overtaken_touches_nothing, loss_gen_params),
	KUNIT_CASE(a_batch_of_cancels_stops_at_the_first_that_was_overtaken),
	{}
};

ENGINE_SUITE(cancel);
