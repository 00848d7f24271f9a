// SPDX-License-Identifier: GPL-2.0
/*
 * engine/slack.h: the ticks of timeouts with slack, in all that a life goes through
 */

/* G1, G2: against a loop that goes on from the deadline, tick by tick. */
static void a_tick_is_the_first_one_that_the_slack_leaves(struct kunit *test)
{
	const struct twheel_clockwork clock = { .tick_ns = 7, .max_tick = 1000 };
	u64 k, deadline_ns, tick;

	for (k = 0; k < 7; k++) {
		for (deadline_ns = 0; deadline_ns < 300 * 7; deadline_ns += 3) {
			for (tick = 0; tick * 7 < deadline_ns || tick % BIT(k); tick++)
				;
			KUNIT_ASSERT_EQ(test, timeout_tick(&clock, k << 8, deadline_ns),
					tick);
			KUNIT_ASSERT_EQ(test, timeout_due_ns(&clock, k << 8, deadline_ns),
					k ? tick * 7 : deadline_ns);
			KUNIT_ASSERT_EQ(test, timeout_due_ns(&clock, k << 8 | STATE_OVERDUE,
							     deadline_ns), deadline_ns);
		}
	}
}

/* No clock reaches the last tick, and no slack leads past it. */
static void a_slack_does_not_lead_past_the_last_tick(struct kunit *test)
{
	struct twheel *tw = test->priv;
	const u64 last = tw->clock.max_tick;
	u64 k;

	for (k = 0; k < 16; k++) {
		KUNIT_EXPECT_EQ(test, timeout_tick(&tw->clock, k << 8, TWHEEL_TIME_NEVER), last);
		KUNIT_EXPECT_EQ(test, timeout_tick(&tw->clock, k << 8, U64_MAX), last);
		KUNIT_EXPECT_LE(test, timeout_tick(&tw->clock, k << 8, TWHEEL_TIME_NEVER - 1),
				last);
		KUNIT_EXPECT_GE(test, timeout_due_ns(&tw->clock, k << 8, TWHEEL_TIME_NEVER),
				TWHEEL_TIME_NEVER);
	}
}

/* Counts the periods whose ticks have come, one by one. */
static void periods_count_from_the_edges_of_their_ticks(struct kunit *test)
{
	const struct twheel_clockwork clock = { .tick_ns = 10, .max_tick = 100000 };
	u64 k, now, first = 23, interval = 17;

	for (k = 0; k < 6; k++) {
		for (now = 0; now < 2000; now += 10) {
			u64 until = slack_edge_ns(&clock, k << 8, now), nr = 0, n;

			for (n = 0; timeout_tick(&clock, k << 8, first + n * interval) * 10 <=
			     now; n++)
				nr++;
			KUNIT_ASSERT_EQ(test, until < first ? 0 :
					periods_passed(first, interval, until), nr);
		}
	}
}

/* G6: the kthread need not look at a timeout before its tick. */
static void a_timeout_with_slack_sets_the_alarm_to_its_tick(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	u64 id;

	id = id_of(arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS, .slack_ticks = 63 }));
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, 1024 * TICK_NS);
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, 1024 * TICK_NS);
	/* Not even REARM, from the inbox or the wheel, as long as the tick is the same. */
	KUNIT_EXPECT_EQ(test, rearm(tw, id, &(struct twheel_arm) {
		.expires_ns = 3 * TICK_NS, .slack_ticks = 63 }), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, rearm(tw, id, &(struct twheel_arm) {
		.expires_ns = 2 * TICK_NS, .slack_ticks = 31 }), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, 1024 * TICK_NS);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	expire_at(tw, 1024 * TICK_NS - 1);
	KUNIT_EXPECT_EQ(test, read_one(tw, &event), 0);
	expire_at(tw, 1024 * TICK_NS);
	KUNIT_EXPECT_EQ(test, read_one(tw, &event), 1);
	/* A periodic one that goes on sets it to the tick of its next period. */
	arm(test, &(struct twheel_arm) {
		.expires_ns = TICK_NS, .interval_ns = TICK_NS, .slack_ticks = 63 });
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, 1088 * TICK_NS);
	expire_at(tw, 1088 * TICK_NS);
	pass(tw);
	KUNIT_EXPECT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 64U);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, 1152 * TICK_NS);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
}

/*
 * Every pair of lives: REARM keeps the entry of the old one where it can, and the timeout
 * still expires in the tick of the new one.
 */
static void a_rearm_to_any_slack_expires_in_the_tick_of_the_new_life(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 from, to, k, new_k, tick;

	for (from = 1; from < 10; from += 2) {
		for (k = 0; k < 4; k++) {
			for (to = 1; to < 10; to++) {
				for (new_k = 0; new_k < 4; new_k++) {
					u64 base = round_up(tw->clock.virtual_now_ns / TICK_NS, 16);
					struct twheel_arm how = {
						.flags = TWHEEL_ARM_ABSOLUTE,
						.expires_ns = (base + from) * TICK_NS - 1,
						.slack_ticks = BIT(k) - 1,
					};
					struct twheel_timeout *t;

					tw->clock.virtual_now_ns = base * TICK_NS;
					pass(tw);
					t = arm(test, &how);
					/* From the wheel and from the inbox. */
					if ((from + to) % 4)
						pass(tw);
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

/* A refresh is found late, and the slack is still there. */
static void a_refresh_keeps_the_slack(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t;
	u64 to;

	for (to = 2; to < 40; to++) {
		u64 base = round_up(tw->clock.virtual_now_ns / TICK_NS, 16);
		u64 state, deadline_ns = (base + to) * TICK_NS;

		tw->clock.virtual_now_ns = base * TICK_NS;
		t = arm(test, &(struct twheel_arm) {
			.flags = TWHEEL_ARM_ABSOLUTE, .slack_ticks = 15,
			.expires_ns = base * TICK_NS + 1 });
		pass(tw);
		/* As timeout_expire() does with the deadline that it finds in the word. */
		state = timeout_state(t);
		spin_lock(&tw->events.lock);
		expiry_postpone(tw, t, timeout_index(t), state, deadline_ns);
		spin_unlock(&tw->events.lock);
		KUNIT_ASSERT_EQ(test, twheel_room_take(tw, 1), 0);
		KUNIT_ASSERT_EQ(test, shape_of(timeout_state(t)), shape_of(state));
		tw->wake.at_ns = WAKE_NEVER;
		KUNIT_ASSERT_EQ(test, tick_of_expiry(test, t), round_up(base + to, 16));
		KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	}
}

/* Its tick comes first where the kthread does not look ahead: another timeout is due there. */
static void an_entry_that_got_slack_is_moved_when_it_comes_up(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_arm soon = { .expires_ns = TICK_NS };
	u64 id;

	arm(test, &soon);
	id = id_of(arm(test, &soon));
	pass(tw);
	KUNIT_EXPECT_EQ(test, rearm(tw, id, &(struct twheel_arm) {
		.expires_ns = TICK_NS, .slack_ticks = 63 }), TWHEEL_WAS_PENDING);
	expire_at(tw, START_NS + TICK_NS);
	KUNIT_EXPECT_EQ(test, read_one(tw, NULL), 1);
	KUNIT_EXPECT_EQ(test, read_one(tw, NULL), 0);
	expire_at(tw, 1024 * TICK_NS);
	KUNIT_EXPECT_EQ(test, read_one(tw, NULL), 1);
}

/* G6: entries whose timeouts got slack are moved ahead of time, not woken up for. */
static void an_entry_that_got_slack_is_moved_ahead(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 id = id_of(arm(test, &(struct twheel_arm) { .expires_ns = 2 * TICK_NS }));

	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS + 2 * TICK_NS);
	KUNIT_EXPECT_EQ(test, rearm(tw, id, &(struct twheel_arm) {
		.expires_ns = 2 * TICK_NS, .slack_ticks = 1023 }), TWHEEL_WAS_PENDING);
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, 1024 * TICK_NS);
}

/* Every distance from a tick on: what lateness is, and where it is counted. */
static void lateness_is_counted_in_powers_of_two_of_ticks(struct kunit *test)
{
	struct twheel *tw = wheel_with(test, slack_ns, 5 * TICK_NS);
	u64 sum = 0, nr_late = 0, distance;
	u64 expected[TWHEEL_LATE_TICKS] = {};
	struct twheel_info info;
	unsigned int i;

	for (distance = 0; distance < 70 * TICK_NS; distance += TICK_NS / 4) {
		u64 due_ns = round_up(tw->clock.virtual_now_ns / TICK_NS + 22, 64) * TICK_NS;
		u64 ticks = distance / TICK_NS;

		arm(test, &(struct twheel_arm) {
			.flags = TWHEEL_ARM_ABSOLUTE, .expires_ns = due_ns - 20 * TICK_NS - 1,
			.slack_ticks = 63 });
		/* One that was due when armed does not count. */
		arm(test, &(struct twheel_arm) { .flags = TWHEEL_ARM_ABSOLUTE });
		enter(tw);
		expire_at(tw, due_ns + distance);
		KUNIT_ASSERT_EQ(test, read_one(tw, NULL) + read_one(tw, NULL), 2);
		expected[fls64(ticks)]++;
		nr_late += distance > 6 * TICK_NS;
		twheel_get_info(tw, &info);
		KUNIT_ASSERT_EQ(test, info.late, nr_late);
		if (distance <= 6 * TICK_NS)
			continue;
		KUNIT_ASSERT_EQ(test, info.last_late_ns, distance);
		KUNIT_ASSERT_EQ(test, info.last_late_at_ns, due_ns + distance);
	}
	for (i = 0; i < TWHEEL_LATE_TICKS; i++) {
		KUNIT_EXPECT_EQ_MSG(test, info.late_ticks[i], expected[i], "bucket %u", i);
		sum += info.late_ticks[i];
	}
	KUNIT_EXPECT_EQ(test, sum, 280ULL);
	/* The last one takes all that are later. */
	arm(test, &(struct twheel_arm) { .expires_ns = 1 });
	enter(tw);
	expire_at(tw, TICK_NS << 34);
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.late_ticks[TWHEEL_LATE_TICKS - 1], 1ULL);
}

static struct kunit_case slack_cases[] = {
	KUNIT_CASE(a_tick_is_the_first_one_that_the_slack_leaves),
	KUNIT_CASE(a_slack_does_not_lead_past_the_last_tick),
	KUNIT_CASE(periods_count_from_the_edges_of_their_ticks),
	KUNIT_CASE(a_timeout_with_slack_sets_the_alarm_to_its_tick),
	KUNIT_CASE(a_rearm_to_any_slack_expires_in_the_tick_of_the_new_life),
	KUNIT_CASE(a_refresh_keeps_the_slack),
	KUNIT_CASE(an_entry_that_got_slack_is_moved_when_it_comes_up),
	KUNIT_CASE(an_entry_that_got_slack_is_moved_ahead),
	KUNIT_CASE(lateness_is_counted_in_powers_of_two_of_ticks),
	{}
};

ENGINE_SUITE(slack);
