// SPDX-License-Identifier: GPL-2.0
/*
 * engine/time.h: the ticks of timeouts with slack, in all states of a schedule
 */

/* G1, G2: compare with a loop that goes on from the deadline, tick by tick. */
static void a_timeout_is_due_in_the_first_tick_that_its_slack_leaves(struct kunit *test)
{
	const struct twheel_clockwork clock = { .tick_ns = 7, .never_ns = 10000 };
	u64 k, deadline_ns, tick;

	for (k = 0; k < 7; k++) {
		for (deadline_ns = 0; deadline_ns < 300 * 7; deadline_ns += 3) {
			for (tick = 0; tick * 7 < deadline_ns || tick % BIT(k); tick++)
				;
			KUNIT_ASSERT_EQ(test, slack_due_ns(&clock, k << 8, deadline_ns),
					k ? tick * 7 : deadline_ns);
		}
	}
}

/* No clock reaches the last edge with slack, and none is added to the end of time. */
static void slack_does_not_lead_past_the_end_of_time(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, SL);
	u64 k, deadline_ns = t->deadline_ns;

	for (k = 1; k < 16; k++) {
		u32 flags = k << 8;

		KUNIT_EXPECT_EQ(test, slack_due_ns(&tw->clock, flags, TWHEEL_TIME_NEVER),
				TWHEEL_TIME_NEVER);
		KUNIT_EXPECT_GE(test, slack_due_ns(&tw->clock, flags, tw->clock.never_ns - 1),
				tw->clock.never_ns - 1);
		timeout_extra(t)->flags = flags;
		t->deadline_ns = TWHEEL_TIME_NEVER | DEADLINE_EXTRA;
		twheel_lock(tw);
		KUNIT_EXPECT_EQ(test, timeout_due_ns(tw, t), NEVER_NS);
		t->deadline_ns = (tw->clock.never_ns - 1) | DEADLINE_EXTRA;
		/* Either the edge comes, or no expiry does. */
		if (timeout_due_ns(tw, t) != NEVER_NS)
			KUNIT_EXPECT_LT(test, timeout_due_ns(tw, t), tw->clock.never_ns);
		twheel_unlock(tw);
	}
	t->deadline_ns = deadline_ns;
}

/* Count the periods whose ticks have come, one by one. */
static void periods_count_from_the_edges_of_their_ticks(struct kunit *test)
{
	const struct twheel_clockwork clock = { .tick_ns = 10, .never_ns = 1000000 };
	u64 k, now, first = 23, interval = 17;

	for (k = 0; k < 6; k++) {
		for (now = 0; now < 2000; now += 10) {
			u64 until = slack_edge_ns(&clock, k << 8, now), nr = 0, n;

			for (n = 0; edge_after_ns(&clock, slack_due_ns(&clock, k << 8, first +
								       n * interval)) <= now; n++)
				nr++;
			KUNIT_ASSERT_EQ(test, until < first ? 0 :
					periods_passed(first, interval, until), nr);
		}
	}
}

/* The timeout expires in the tick of the new schedule, from whatever slot it had. */
static void a_rearm_to_any_slack_expires_in_the_tick_of_the_new_schedule(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 from, to, k, new_k, tick;

	for (from = 1; from < 10; from += 2) {
		for (k = 0; k < 4; k++) {
			for (to = 1; to < 10; to++) {
				for (new_k = 0; new_k < 4; new_k++) {
					u64 base = round_up(time_of(tw) / TICK_NS, 16);
					struct twheel_arm how = {
						.flags = TWHEEL_ARM_ABSOLUTE,
						.expires_ns = (base + from) * TICK_NS - 1,
						.slack_ticks = BIT(k) - 1,
					};
					struct twheel_timeout *t;

					time_set(tw, base * TICK_NS);
					t = arm(test, &how);
					how.expires_ns = (base + to) * TICK_NS - 1;
					how.slack_ticks = BIT(new_k) - 1;
					KUNIT_ASSERT_EQ(test, rearm(tw, how.id, &how),
							TWHEEL_WAS_PENDING);
					tick = tick_of_expiry(test, t);
					KUNIT_ASSERT_EQ_MSG(test, tick,
							    round_up(base + to, BIT(new_k)),
							    "from %llu slack %lu to %llu slack %lu",
							    from, BIT(k) - 1, to, BIT(new_k) - 1);
					KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
				}
			}
		}
	}
}

/* G6: there is nothing to do before the tick. */
static void a_timeout_with_slack_sets_the_alarm_to_its_tick(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;

	alarms_begin(tw);
	arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS, .slack_ticks = 63 });
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, 1024 * TICK_NS);
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, 1024 * TICK_NS);
	expire_at(tw, 1024 * TICK_NS - 1);
	KUNIT_EXPECT_EQ(test, read_one(tw, &event), 0);
	expire_at(tw, 1024 * TICK_NS);
	KUNIT_EXPECT_EQ(test, read_one(tw, &event), 1);
	/* If a periodic timeout goes on, it sets the alarm to the tick of its next period. */
	arm(test, &(struct twheel_arm) {
		.expires_ns = TICK_NS, .interval_ns = TICK_NS, .slack_ticks = 63 });
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, 1088 * TICK_NS);
	time_set(tw, 1088 * TICK_NS);
	pass(tw);
	KUNIT_EXPECT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 64U);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, 1152 * TICK_NS);
}

/*
 * If a stall ends within the ticks that the slack leaves out, the periods since the last edge wait.
 */
static void periods_of_a_stall_count_to_the_last_edge_that_the_slack_leaves(struct kunit *test)
{
	u64 tick = round_up(START_NS / TICK_NS, 8) + 1;
	struct twheel_arm how = {
		.expires_ns = tick * TICK_NS, .interval_ns = TICK_NS, .slack_ticks = 7,
		.flags = TWHEEL_ARM_ABSOLUTE,
	};
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;

	arm(test, &how);
	/* The timeout comes up at the next multiple of 8, and the pass is 5 ticks late. */
	expire_at(tw, (tick + 7 + 5) * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 8ULL);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 8U);
	KUNIT_EXPECT_EQ(test, event.deadline_ns, (tick + 7) * TICK_NS);
}

static struct kunit_case slack_cases[] = {
	KUNIT_CASE(a_timeout_is_due_in_the_first_tick_that_its_slack_leaves),
	KUNIT_CASE(slack_does_not_lead_past_the_end_of_time),
	KUNIT_CASE(periods_count_from_the_edges_of_their_ticks),
	KUNIT_CASE(a_rearm_to_any_slack_expires_in_the_tick_of_the_new_schedule),
	KUNIT_CASE(a_timeout_with_slack_sets_the_alarm_to_its_tick),
	KUNIT_CASE(periods_of_a_stall_count_to_the_last_edge_that_the_slack_leaves),
	{}
};

ENGINE_SUITE(slack);
