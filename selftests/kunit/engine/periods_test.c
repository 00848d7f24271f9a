// SPDX-License-Identifier: GPL-2.0
/*
 * engine/periods.c: periods that pass while an event is unread, and limits of repeats
 */

static void periods_are_counted_as_if_one_by_one(struct kunit *test)
{
	u64 deadline, interval, until;

	for (interval = 1; interval < 12; interval++) {
		for (deadline = 0; deadline < 15; deadline++) {
			u64 next = deadline, nr = 0;

			for (until = deadline; until < 60; until++) {
				for (; next <= until; next += interval)
					nr++;
				KUNIT_ASSERT_EQ(test, periods_passed(deadline,
								     interval,
								     until), nr);
			}
		}
	}
	KUNIT_EXPECT_EQ(test, periods_passed(0, 1, U64_MAX - 1), U64_MAX);
	KUNIT_EXPECT_EQ(test, periods_passed(0, TWHEEL_TIME_NEVER,
					     TWHEEL_TIME_NEVER - 1), 1ULL);
	KUNIT_EXPECT_EQ(test, periods_passed(1, 4294967297ULL,
					     1 + 4294967297ULL * 1000003),
			1000004ULL);
}

/* G7: no loop runs once per period: 2^40 of them would not end. */
static void any_number_of_periods_passes_at_once(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t;
	const u64 nr = BIT_ULL(40) + 5;
	struct twheel_event event;

	t = arm(test, &(struct twheel_arm) {
		.expires_ns = TICK_NS, .interval_ns = TICK_NS });
	enter(tw);
	expire_at(tw, START_NS + nr * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, nr);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, START_NS + nr * TICK_NS);
	/* The count of the event saturates. */
	expire_at(tw, START_NS + 2 * nr * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, nr);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 2 * nr);
	KUNIT_EXPECT_EQ(test, event.count, U32_MAX);
	KUNIT_EXPECT_EQ(test, event.deadline_ns, START_NS + 2 * nr * TICK_NS);
}

/* G4: periods that pass between look and commit are neither lost nor late. */
static void periods_that_pass_while_an_event_is_copied_are_in_the_next(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, PE);
	struct twheel_event event;
	struct twheel_look look;

	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + PERIOD_NS + TICK_NS);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, event.count, 2U);
	tw->clock.virtual_now_ns += 3 * PERIOD_NS;
	KUNIT_ASSERT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 2ULL);
	KUNIT_EXPECT_EQ(test, shape_of(timeout_state(t)), PHASE_QUEUED | PE | OV);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NOW);
	pass(tw);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 3U);
	KUNIT_EXPECT_EQ(test, event.deadline_ns, START_NS + DELAY_NS + 4 * PERIOD_NS);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 5ULL);
	KUNIT_EXPECT_EQ(test, tw->events.max_late_ns, PERIOD_NS + TICK_NS);
}

/* G1, G4: a period counts from the edge of its tick, and as soon as somebody asks. */
static void periods_of_an_unread_event_are_counted_when_it_is_settled(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_status status = {};
	struct twheel_info info = {};
	struct twheel_event event;
	struct twheel_timeout *t;
	u64 at_ns = START_NS + DELAY_NS;

	/* Three more periods have passed, for which nothing was done yet. */
	t = arm_like(test, PE);
	enter(tw);
	expire_at(tw, at_ns + TICK_NS);
	tw->clock.virtual_now_ns = at_ns + 3 * PERIOD_NS + TICK_NS;
	status.id = id_of(t);
	twheel_query(tw, &status, 1);
	KUNIT_EXPECT_EQ(test, status.count, 4U);
	KUNIT_EXPECT_EQ(test, status.deadline_ns, at_ns + 4 * PERIOD_NS);
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.expirations, 1ULL);
	KUNIT_EXPECT_EQ(test, info.pending, 1ULL);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns,
			deadline_tick(&tw->clock, at_ns + 4 * PERIOD_NS) * TICK_NS);
	/* The edge of the tick, not the deadline, is when a period counts. */
	tw->clock.virtual_now_ns = at_ns + 4 * PERIOD_NS;
	twheel_query(tw, &status, 1);
	KUNIT_EXPECT_EQ(test, status.count, 4U);
	KUNIT_EXPECT_EQ(test, cancel(tw, id_of(t)), TWHEEL_WAS_UNREAD);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 4ULL);
	audit(test);

	/* Setting the clock back takes away no period that was counted. */
	t = arm_like(test, PE);
	enter(tw);
	at_ns = t->deadline_ns;
	expire_at(tw, at_ns + TICK_NS);
	tw->clock.virtual_now_ns = START_NS;
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 1U);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, at_ns + PERIOD_NS);
	KUNIT_EXPECT_EQ(test, cancel(tw, id_of(t)), TWHEEL_WAS_PENDING);
	pass(tw);
	audit(test);
}

/* G3: the last expiration passes unread, and the read ends the timeout. */
static void a_limit_that_is_reached_unread_ends_with_the_read(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, LI);
	struct twheel_status status = { .id = id_of(t) };
	struct twheel_event event;
	struct twheel_info info = {};

	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	tw->clock.virtual_now_ns += 100 * PERIOD_NS;
	twheel_query(tw, &status, 1);
	KUNIT_EXPECT_EQ(test, status.count, 2U);
	KUNIT_EXPECT_EQ(test, status.repeats_left, 0U);
	KUNIT_EXPECT_EQ(test, status.left_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, status.deadline_ns, START_NS + DELAY_NS + PERIOD_NS);
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.pending, 0ULL);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns, TWHEEL_NO_EXPIRY);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 2U);
	KUNIT_EXPECT_EQ(test, event.fired_ns,
			deadline_tick(&tw->clock, START_NS + DELAY_NS + PERIOD_NS) * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->events.completed, 1ULL);
	KUNIT_EXPECT_EQ(test, (int)state_phase(timeout_state(t)), (int)PHASE_FREE);
}

/* G4: they are in the event, which is flagged unless it was the last one. */
static void a_drained_event_counts_the_periods_that_passed_unread(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	int i;

	arm_like(test, PE);
	arm_like(test, LI);
	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	tw->clock.virtual_now_ns += 4 * PERIOD_NS;
	drain(tw);
	tw->clock.virtual_now_ns += 4 * PERIOD_NS;
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_EXPECT_EQ(test, event.count,
				event.flags & TWHEEL_EVENT_DRAINED ? 5U : 2U);
	}
	KUNIT_EXPECT_EQ(test, tw->events.drained_out, 1ULL);
	KUNIT_EXPECT_EQ(test, tw->events.completed, 1ULL);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 7ULL);
}

static void a_limit_bounds_what_passes_at_once(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	u32 repeats;

	for (repeats = 1; repeats < 8; repeats++) {
		u64 begun_ns = tw->clock.virtual_now_ns, before = tw->events.expirations;

		arm(test, &(struct twheel_arm) {
			.expires_ns = TICK_NS, .interval_ns = PERIOD_NS,
			.repeats = repeats });
		enter(tw);
		/* Three periods at once, and then the rest. */
		expire_at(tw, begun_ns + TICK_NS + 2 * PERIOD_NS);
		KUNIT_ASSERT_EQ(test, tw->events.expirations - before,
				min(repeats, 3ULL));
		expire_at(tw, begun_ns + TICK_NS + 100 * PERIOD_NS);
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_ASSERT_EQ(test, tw->events.expirations - before, (u64)repeats);
		KUNIT_ASSERT_EQ(test, event.count, repeats);
		KUNIT_ASSERT_EQ(test, event.deadline_ns, begun_ns + TICK_NS +
				(repeats - 1) * PERIOD_NS);
		KUNIT_ASSERT_EQ(test, atomic_read(&tw->arena.live), 0);
	}
}

/*
 * The kthread has read the clock and taken the inbox when a timeout there is re-armed to what
 * has passed since.
 */
static void one_that_became_overdue_during_a_pass_has_one_period(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_arm how = arm_of(STATE_PERIODIC, 0);
	u64 id = id_of(arm(test, &how));
	struct twheel_event event;

	tw->clock.virtual_now_ns = START_NS + 100;
	pass_begin(tw);
	tw->clock.virtual_now_ns = START_NS + 300;
	how.flags = TWHEEL_ARM_ABSOLUTE;
	how.expires_ns = START_NS + 200;
	KUNIT_EXPECT_EQ(test, rearm(tw, id, &how), TWHEEL_WAS_PENDING);
	pass(tw);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 1U);
	KUNIT_EXPECT_EQ(test, event.deadline_ns, START_NS + 200);
}

static struct kunit_case periods_cases[] = {
	KUNIT_CASE(one_that_became_overdue_during_a_pass_has_one_period),
	KUNIT_CASE(periods_are_counted_as_if_one_by_one),
	KUNIT_CASE(any_number_of_periods_passes_at_once),
	KUNIT_CASE(periods_that_pass_while_an_event_is_copied_are_in_the_next),
	KUNIT_CASE(periods_of_an_unread_event_are_counted_when_it_is_settled),
	KUNIT_CASE(a_limit_that_is_reached_unread_ends_with_the_read),
	KUNIT_CASE(a_drained_event_counts_the_periods_that_passed_unread),
	KUNIT_CASE(a_limit_bounds_what_passes_at_once),
	{}
};

ENGINE_SUITE(periods);
