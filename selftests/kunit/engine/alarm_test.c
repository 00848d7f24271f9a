// SPDX-License-Identifier: GPL-2.0
/*
 * engine/alarm.c: when the alarm rings
 */

/* G2, G6: the alarm is set for the earliest edge, and nothing happens until then. */
static void the_alarm_is_set_to_the_edge_of_the_first_timeout(struct kunit *test)
{
	const u64 edge_ns = START_NS + 6 * TICK_NS;
	struct tw_ctx *tw = test->priv;

	alarms_begin(tw);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, NEVER_NS);
	arm(test, &(struct twheel_arm) { .expires_ns = TWHEEL_TIME_NEVER });
	arm_like(test, OV);
	KUNIT_EXPECT_FALSE(test, machine_alarm.is_on);
	arm_like(test, 0);
	KUNIT_EXPECT_TRUE(test, machine_alarm.is_on);
	KUNIT_EXPECT_EQ(test, machine_alarm.at_ns, edge_ns);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, edge_ns);
	/* If a timeout is later or in the same tick, nothing changes. */
	arm(test, &(struct twheel_arm) { .expires_ns = 2 * DELAY_NS });
	arm(test, &(struct twheel_arm) { .expires_ns = 6 * TICK_NS });
	arm(test, &(struct twheel_arm) { .expires_ns = DELAY_NS - 1 + 1 });
	KUNIT_EXPECT_EQ(test, machine_alarm.nr_set, 1U);
	arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS });
	KUNIT_EXPECT_EQ(test, machine_alarm.at_ns, START_NS + TICK_NS);
	/* A pass finds the same alarm from the wheel. */
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, START_NS + TICK_NS);
	KUNIT_EXPECT_EQ(test, machine_alarm.nr_set, 2U);
	KUNIT_EXPECT_FALSE(test, turn_take(tw));
}

/* REARM, a period that begins, and ARM by key set it as ARM does. */
static void each_call_that_makes_a_timeout_pend_sets_the_alarm(struct kunit *test)
{
	struct twheel_arm how = { .expires_ns = 1000 * TICK_NS };
	struct tw_ctx *tw = test->priv;

	alarms_begin(tw);
	arm(test, &how);
	rearm_to(tw, how.id, .expires_ns = 100 * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, START_NS + 100 * TICK_NS);
	rearm_to(tw, how.id, .expires_ns = 50 * TICK_NS, .slack_ticks = 1);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, START_NS + 50 * TICK_NS);
	how.expires_ns = 25 * TICK_NS;
	KUNIT_EXPECT_EQ(test, twheel_rearm_one(tw, &how, false, false), 0);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, START_NS + 25 * TICK_NS);
	cancel(tw, how.id);
	arm_like(test, FD | OV);
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, NEVER_NS);
	KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, START_NS + PERIOD_NS);

	tw = wheel_with(test, flags, TWHEEL_SETUP_KEYED);
	alarms_begin(tw);
	how = (struct twheel_arm){ .expires_ns = 100 * TICK_NS };
	arm(test, &how);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, 100 * TICK_NS);
	how.expires_ns = 50 * TICK_NS;
	KUNIT_EXPECT_EQ(test, arm_result(tw, &how), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, 50 * TICK_NS);
}

/* G6: with nothing pending the hrtimer is off. */
static void the_alarm_is_off_when_nothing_pends(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 id;

	alarms_begin(tw);
	KUNIT_ASSERT_EQ(test, arm_plain(tw, &id), 0);
	arm(test, &(struct twheel_arm) { .expires_ns = TWHEEL_TIME_NEVER });
	KUNIT_EXPECT_TRUE(test, machine_alarm.is_on);
	/* A cancel does not search for the next timeout: the alarm is in vain at most once. */
	cancel(tw, id);
	KUNIT_EXPECT_TRUE(test, machine_alarm.is_on);
	time_set(tw, tw->alarm.at_ns);
	KUNIT_EXPECT_FALSE(test, alarm_rings_now(tw));
	KUNIT_EXPECT_FALSE(test, machine_alarm.is_on);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, NEVER_NS);
	KUNIT_EXPECT_FALSE(test, turn_take(tw));
	/* A pass does not leave it on either. */
	KUNIT_ASSERT_EQ(test, arm_plain(tw, &id), 0);
	cancel(tw, id);
	pass(tw);
	KUNIT_EXPECT_FALSE(test, machine_alarm.is_on);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, NEVER_NS);
}

/* G6: if all timeouts of a slot were cancelled, no alarm rings for it. */
static void the_alarm_is_not_set_for_slots_that_are_empty(struct kunit *test)
{
	u64 *ids = kunit_kcalloc(test, 200, sizeof(*ids), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	alarms_begin(tw);
	for (i = 0; i < 200; i++) {
		struct twheel_arm how = { .expires_ns = (10 + i) * TICK_NS };

		arm(test, &how);
		ids[i] = how.id;
	}
	cancel_ids(tw, ids, 199);
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, START_NS + 209 * TICK_NS);
	cancel(tw, ids[199]);
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, NEVER_NS);
	KUNIT_EXPECT_EQ(test, tw->wheel.used, 0U);
}

/* G6, G7: if timeouts were moved later, none rings for them; steps move them to their own slots. */
static void the_alarm_is_set_after_steps_that_move_timeouts_to_where_they_belong(struct kunit *test)
{
	const unsigned int nr = 3 * PASS_STEP;
	u64 *ids = kunit_kcalloc(test, nr, sizeof(*ids), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	unsigned int i, steps = 0;
	bool set;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	alarms_begin(tw);
	arm_many(test, nr, ids);
	for (i = 0; i < nr; i++)
		rearm_to(tw, ids[i], .expires_ns = 1000 * TICK_NS + i);
	do {
		u64 inserted = nr_inserted;

		twheel_lock(tw);
		set = twheel_alarm_set(tw, NULL);
		twheel_unlock(tw);
		KUNIT_EXPECT_LE(test, nr_inserted - inserted, (u64)PASS_STEP);
		KUNIT_ASSERT_LT(test, ++steps, 10U);
		if (!set)
			KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, START_NS + 6 * TICK_NS);
		audit(test);
	} while (!set);
	KUNIT_EXPECT_GE(test, steps, 3U);
	KUNIT_EXPECT_GT(test, tw->alarm.at_ns, START_NS + 900 * TICK_NS);
	KUNIT_EXPECT_LE(test, tw->alarm.at_ns, START_NS + 1001 * TICK_NS);
}

/*
 * G2: if an upper slot has many timeouts, it has to be emptied before it begins; if it has few,
 * not.
 */
static void the_alarm_comes_before_an_upper_slot_with_many_timeouts(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_level *upper = &tw->wheel.level[1];
	u64 begin_ns = twheel_slot_begin_ns(upper, START_NS + 100 * TICK_NS);
	u64 ahead_ns = edge_after_ns(&tw->clock, begin_ns - twheel_slot_lead_ns(upper));
	unsigned int i;

	alarms_begin(tw);
	for (i = 0; i < ALARM_SCAN_MAX; i++) {
		arm(test, &(struct twheel_arm) { .expires_ns = 100 * TICK_NS });
		KUNIT_ASSERT_EQ(test, tw->alarm.at_ns, START_NS + 100 * TICK_NS);
	}
	/* One more, and no pass has counted them. */
	arm(test, &(struct twheel_arm) { .expires_ns = 100 * TICK_NS });
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, ahead_ns);
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, ahead_ns);
	time_set(tw, ahead_ns);
	work_is_paid(tw);
	KUNIT_EXPECT_TRUE(test, alarm_rings_now(tw));
	KUNIT_EXPECT_EQ(test, level_entries(test, 1), 0U);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, START_NS + 100 * TICK_NS);
}

/*
 * G2: it rings with each tick until the slot is empty, although no timeout of the slot is due
 * before it begins.
 */
static void the_alarm_comes_until_an_upper_slot_is_empty(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_level *upper = &tw->wheel.level[1];
	u64 begin_ns = twheel_slot_begin_ns(upper, START_NS + 100 * TICK_NS);
	u64 ahead_ns = edge_after_ns(&tw->clock, begin_ns - twheel_slot_lead_ns(upper));

	alarms_begin(tw);
	arm_same(test, AHEAD_TICK + PASS_STEP + 1, begin_ns - START_NS);
	KUNIT_ASSERT_EQ(test, tw->alarm.at_ns, ahead_ns);
	time_set(tw, ahead_ns);
	pass(tw);
	KUNIT_EXPECT_GT(test, level_entries(test, 1), 0U);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, ahead_ns + TICK_NS);
	time_set(tw, ahead_ns + TICK_NS);
	pass(tw);
	KUNIT_EXPECT_EQ(test, level_entries(test, 1), 0U);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, edge_after_ns(&tw->clock, begin_ns));
}

/* G1, G2: a time namespace sets the wheel's clock ahead of the machine's, or behind it. */
static void an_alarm_is_set_on_the_clock_of_the_machine(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	tw->clock.offset_ns = 900 * (s64)NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, alarm_expiry(tw, 1000 * NSEC_PER_SEC), 100 * (ktime_t)NSEC_PER_SEC);
	tw->clock.offset_ns = -900 * (s64)NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, alarm_expiry(tw, 1000 * NSEC_PER_SEC), 1900 * (ktime_t)NSEC_PER_SEC);
	/* A time beyond the end of the machine's clock. */
	KUNIT_EXPECT_EQ(test, alarm_expiry(tw, TWHEEL_TIME_NEVER - 1), KTIME_MAX);
	tw->clock.offset_ns = 0;
}

/* The alarm may come late by the slack of the wheel, and is not set earlier for that. */
static void an_alarm_has_the_slack_of_the_wheel_as_its_range(struct kunit *test)
{
	struct tw_ctx *tw = wheel_with(test, slack_ns, 1234567);

	alarms_begin(tw);
	arm(test, &(struct twheel_arm) { .expires_ns = DELAY_NS });
	arm(test, &(struct twheel_arm) { .expires_ns = 10 * TICK_NS });
	KUNIT_EXPECT_EQ(test, machine_alarm.at_ns, 6 * TICK_NS);
	KUNIT_EXPECT_EQ(test, machine_alarm.range_ns, 1234567ULL);
	/* The range is the same if it rings again. */
	time_set(tw, 6 * TICK_NS);
	work_is_paid(tw);
	KUNIT_EXPECT_TRUE(test, alarm_rings_now(tw));
	KUNIT_EXPECT_EQ(test, machine_alarm.at_ns, 10 * TICK_NS);
	KUNIT_EXPECT_EQ(test, (u64)ktime_to_ns(hrtimer_get_expires(&tw->alarm.timer)),
			10 * TICK_NS + 1234567);
}

/* This uses the kernel's own hrtimer. */
static void a_real_clock_has_an_hrtimer_while_a_timeout_pends(struct kunit *test)
{
	struct tw_ctx *tw = wheel_with(test, clock, TWHEEL_CLOCK_MONOTONIC);
	struct twheel_timeout *t;

	KUNIT_EXPECT_FALSE(test, hrtimer_active(&tw->alarm.timer));
	t = arm(test, &(struct twheel_arm) { .expires_ns = 3600 * NSEC_PER_SEC });
	KUNIT_EXPECT_TRUE(test, hrtimer_active(&tw->alarm.timer));
	KUNIT_EXPECT_EQ(test, (u64)ktime_to_ns(hrtimer_get_expires(&tw->alarm.timer)),
			edge_after_ns(&tw->clock, t->deadline_ns));
	cancel(tw, timeout_id(t));
	pass(tw);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&tw->alarm.timer));
}

/* A virtual clock has no hrtimer. */
static void an_alarm_that_never_rings_is_never_set(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	machine_alarm = (struct machine_alarm){ .used = true };
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, 0ULL);
	arm_like(test, 0);
	pass(tw);
	KUNIT_EXPECT_EQ(test, machine_alarm.nr_set, 0U);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, 0ULL);
}

static struct kunit_case alarm_cases[] = {
	KUNIT_CASE(the_alarm_is_set_to_the_edge_of_the_first_timeout),
	KUNIT_CASE(each_call_that_makes_a_timeout_pend_sets_the_alarm),
	KUNIT_CASE(the_alarm_is_off_when_nothing_pends),
	KUNIT_CASE(the_alarm_is_not_set_for_slots_that_are_empty),
	KUNIT_CASE(the_alarm_is_set_after_steps_that_move_timeouts_to_where_they_belong),
	KUNIT_CASE(the_alarm_comes_before_an_upper_slot_with_many_timeouts),
	KUNIT_CASE(the_alarm_comes_until_an_upper_slot_is_empty),
	KUNIT_CASE(an_alarm_is_set_on_the_clock_of_the_machine),
	KUNIT_CASE(an_alarm_has_the_slack_of_the_wheel_as_its_range),
	KUNIT_CASE(a_real_clock_has_an_hrtimer_while_a_timeout_pends),
	KUNIT_CASE(an_alarm_that_never_rings_is_never_set),
	{}
};

ENGINE_SUITE(alarm);
