// SPDX-License-Identifier: GPL-2.0
/*
 * engine/query.c: QUERY
 */

static void query_tells_what_a_timeout_is_doing(struct kunit *test)
{
	const struct start *start = test->param_value;
	struct twheel *tw = test->priv;
	struct twheel_status status = {};
	bool waits, gone, fired;

	bring(test, start, &status.id);
	twheel_query(tw, &status, 1);
	waits = state_phase(start->state) == PHASE_QUEUED ||
		state_phase(start->state) == PHASE_ARMED;
	gone = !waits && state_phase(start->state) != PHASE_UNREAD;
	KUNIT_ASSERT_EQ(test, status.result, gone ? -ENOENT : 0);
	if (gone)
		return;
	KUNIT_EXPECT_EQ(test, status.state,
			start->state & STATE_DRAINED ? TWHEEL_STATE_DRAINED :
			!waits ? TWHEEL_STATE_EXPIRED :
			TWHEEL_STATE_PENDING);
	/* With a fixed rate the timeout waits while its event is unread. */
	if (start->to.read == GOES_ON)
		waits = true;
	KUNIT_EXPECT_EQ(test, status.left_ns,
			!waits || status.deadline_ns < tw->clock.virtual_now_ns ? 0 :
			status.deadline_ns - tw->clock.virtual_now_ns);
	KUNIT_EXPECT_EQ(test, status.interval_ns,
			start->state & PE ? PERIOD_NS : 0);
	KUNIT_EXPECT_EQ(test, status.flags,
			start->state & STATE_FIXED_DELAY ?
			TWHEEL_ARM_FIXED_DELAY : 0);
	/* On the way to its state no timeout has expired more than once. */
	fired = start->state & STATE_DRAINED ? start->fired :
		state_is_unread(start->state);
	KUNIT_EXPECT_EQ(test, status.count, (u32)fired);
	KUNIT_EXPECT_EQ(test, status.slack_ticks, start->state & STATE_SLACK ? 1U : 0U);
	KUNIT_EXPECT_EQ(test, status.repeats_left,
			start->repeats ? start->repeats - status.count : 0);
}

static struct kunit_case query_cases[] = {
	KUNIT_CASE_PARAM(query_tells_what_a_timeout_is_doing, start_gen_params),
	{}
};

ENGINE_SUITE(query);
