// SPDX-License-Identifier: GPL-2.0
/*
 * engine/wake.c: when the kthread runs, and on which alarm
 */

/* G2, G6: the alarm is set for the earliest edge, and the kthread sleeps until then. */
static void what_is_far_wakes_nobody_and_sets_the_alarm(struct kunit *test)
{
	struct twheel *tw = test->priv;
	const u64 edge_ns = START_NS + 6 * TICK_NS;

	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NEVER);
	arm(test, &(struct twheel_arm) { .expires_ns = TWHEEL_TIME_NEVER });
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NEVER);
	arm_like(test, 0);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, edge_ns);
	arm(test, &(struct twheel_arm) { .expires_ns = 2 * DELAY_NS });
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, edge_ns);
	arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS });
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS + TICK_NS);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	/* A pass finds the same alarm from the wheel. */
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS + TICK_NS);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
}

/* G2: a timeout that is due when armed does not wait for an alarm. */
static void what_is_overdue_wakes_at_once(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 id;

	arm_like(test, OV);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	id = id_of(arm_like(test, 0));
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	rearm(tw, id, &(struct twheel_arm) { .flags = TWHEEL_ARM_ABSOLUTE });
	KUNIT_EXPECT_TRUE(test, work_take(tw));
}

/* G2: such a timeout wakes nobody, and yet is not forgotten. */
static void what_comes_during_a_pass_is_looked_at_when_it_ends(struct kunit *test)
{
	struct twheel *tw = test->priv;

	pass_begin(tw);
	arm_like(test, OV);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	pass_end(tw, false);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
}

/*
 * The inbox wakes the kthread once, when it reaches its watermark.  What a pass has taken out
 * of it counts until the pass has done it.
 */
static void an_inbox_that_fills_again_is_looked_at_when_the_pass_ends(struct kunit *test)
{
	struct twheel *tw = test->priv;

	arm_many(test, INBOX_WATERMARK, NULL);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	pass_begin(tw);
	arm_many(test, INBOX_WATERMARK, NULL);
	KUNIT_EXPECT_NE(test, tw->wake.at_ns, WAKE_NOW);
	while (twheel_pass_turn(&tw->wake.turn, U64_MAX) && tw->pass.begun)
		;
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NOW);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	pass(tw);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
}

/* G2: two callers have found the alarm too late, and the earlier one came first. */
static void an_alarm_is_not_put_off_by_a_later_one(struct kunit *test)
{
	struct twheel *tw = test->priv;

	twheel_wake_at(tw, START_NS + 2 * TICK_NS);
	twheel_wake_at(tw, START_NS + 3 * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS + 2 * TICK_NS);
	twheel_wake_at(tw, START_NS + TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS + TICK_NS);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
}

/* G1, G2: a time namespace sets the wheel's clock ahead of the machine's, or behind it. */
static void an_alarm_is_set_on_the_clock_of_the_machine(struct kunit *test)
{
	struct twheel *tw = test->priv;

	tw->wake.at_ns = 1000 * NSEC_PER_SEC;
	tw->clock.offset_ns = 900 * (s64)NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, wake_expiry(tw), 100 * (ktime_t)NSEC_PER_SEC);
	tw->clock.offset_ns = -900 * (s64)NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, wake_expiry(tw), 1900 * (ktime_t)NSEC_PER_SEC);
	/* Beyond what the machine's clock reaches. */
	tw->wake.at_ns = TWHEEL_TIME_NEVER - 1;
	KUNIT_EXPECT_EQ(test, wake_expiry(tw), KTIME_MAX);
	tw->wake.at_ns = WAKE_NEVER;
	tw->clock.offset_ns = 0;
}

/* The alarm may come late by the slack of the wheel, and no earlier for it. */
static void an_alarm_has_the_slack_of_the_wheel_as_its_range(struct kunit *test)
{
	struct twheel_setup setup = usual_setup;
	struct twheel_timeout *t;
	struct twheel *tw;

	setup.clock = TWHEEL_CLOCK_MONOTONIC;
	setup.slack_ns = 1234567;
	tw = wheel_remake(test, &setup);
	t = arm(test, &(struct twheel_arm) { .expires_ns = 3600 * NSEC_PER_SEC });
	KUNIT_EXPECT_EQ(test, (u64)ktime_to_ns(hrtimer_get_softexpires(&tw->wake.timer)),
			DIV64_U64_ROUND_UP(t->deadline_ns, TICK_NS) * TICK_NS);
	KUNIT_EXPECT_EQ(test, (u64)ktime_to_ns(hrtimer_get_expires(&tw->wake.timer)),
			DIV64_U64_ROUND_UP(t->deadline_ns, TICK_NS) * TICK_NS + 1234567);
}

/* G6: with nothing pending the hrtimer is off. */
static void a_real_clock_is_slept_on_and_let_go_when_nothing_pends(struct kunit *test)
{
	struct twheel *tw = wheel_with(test, clock, TWHEEL_CLOCK_MONOTONIC);
	struct twheel_timeout *t;

	KUNIT_EXPECT_FALSE(test, hrtimer_active(&tw->wake.timer));
	t = arm(test, &(struct twheel_arm) { .expires_ns = 3600 * NSEC_PER_SEC });
	KUNIT_EXPECT_TRUE(test, hrtimer_active(&tw->wake.timer));
	KUNIT_EXPECT_EQ(test, (u64)ktime_to_ns(hrtimer_get_expires(&tw->wake.timer)),
			DIV64_U64_ROUND_UP(t->deadline_ns, TICK_NS) * TICK_NS);
	/* The alarm follows a timeout that is moved earlier. */
	rearm(tw, id_of(t), &(struct twheel_arm) {
		.expires_ns = 1800 * NSEC_PER_SEC });
	KUNIT_EXPECT_EQ(test, (u64)ktime_to_ns(hrtimer_get_expires(&tw->wake.timer)),
			DIV64_U64_ROUND_UP(t->deadline_ns, TICK_NS) * TICK_NS);
	cancel(tw, id_of(t));
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NEVER);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&tw->wake.timer));
}

static struct kunit_case wake_cases[] = {
	KUNIT_CASE(what_is_far_wakes_nobody_and_sets_the_alarm),
	KUNIT_CASE(what_is_overdue_wakes_at_once),
	KUNIT_CASE(what_comes_during_a_pass_is_looked_at_when_it_ends),
	KUNIT_CASE(an_inbox_that_fills_again_is_looked_at_when_the_pass_ends),
	KUNIT_CASE(an_alarm_is_not_put_off_by_a_later_one),
	KUNIT_CASE(an_alarm_is_set_on_the_clock_of_the_machine),
	KUNIT_CASE(an_alarm_has_the_slack_of_the_wheel_as_its_range),
	KUNIT_CASE(a_real_clock_is_slept_on_and_let_go_when_nothing_pends),
	{}
};

ENGINE_SUITE(wake);
