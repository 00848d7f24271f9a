// SPDX-License-Identifier: GPL-2.0
/*
 * engine/expire.c: timeouts become events, by expiring or by a drain
 */

/* G3, G4: each gets one event, and the timeout goes on by its schedule. */
static void expiry_makes_one_event_of_a_timeout_that_is_due(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, action_expire, start->to.expire);
}

/* G3, G4: if a timeout pends, it gets an event; if it is unread, it keeps its own. */
static void drain_makes_an_event_of_a_timeout_that_is_left(struct kunit *test)
{
	const struct start *start = test->param_value;
	struct twheel_timeout *t = expect_outcome(test, action_drain, start->to.drain);
	struct twheel_event event;

	if (start->drains)
		return;
	WRITE_ONCE(((struct tw_ctx *)test->priv)->control.draining, true);
	KUNIT_ASSERT_EQ(test, read_one(test->priv, &event), 1);
	/* If a timeout has expired for the last time, it is not drained. */
	KUNIT_EXPECT_EQ(test, !!(event.flags & TWHEEL_EVENT_DRAINED),
			start->to.read != COMPLETES);
	KUNIT_EXPECT_EQ(test, event.count, (u32)start->fires);
	KUNIT_EXPECT_FALSE(test, timeout_is_live(t));
}

/* G1: up to the last nanosecond before the edge, in each level of the wheel. */
static void nothing_expires_before_its_tick(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t;
	u64 deadline_ns, edge_ns, distance;

	for (distance = 1; distance < 10000 * TICK_NS; distance = distance * 4 / 3 + 12345) {
		u64 now_ns = time_of(tw) + 12345;

		time_set(tw, now_ns);
		t = arm(test, &(struct twheel_arm) { .expires_ns = distance });
		deadline_ns = now_ns + distance;
		KUNIT_ASSERT_EQ(test, t->deadline_ns, deadline_ns);
		edge_ns = DIV64_U64_ROUND_UP(deadline_ns, TICK_NS) * TICK_NS;
		expire_at(tw, edge_ns - 1);
		KUNIT_ASSERT_EQ(test, nr_unread(tw), 0U);
		expire_at(tw, edge_ns);
		KUNIT_ASSERT_EQ(test, nr_unread(tw), 1U);
		KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	}
}

/* G1: the timeout comes up early, and is put into the slot of its new deadline. */
static void a_timeout_that_was_moved_later_waits_for_its_new_tick(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, 0);
	u64 id = timeout_id(t), first_ns = t->deadline_ns + TICK_NS;

	rearm_to(tw, id, .expires_ns = 10 * DELAY_NS);
	expire_at(tw, first_ns);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
	KUNIT_EXPECT_TRUE(test, timeout_is_pending(t));
	audit(test);
	expire_at(tw, START_NS + 10 * DELAY_NS - 1);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
	expire_at(tw, START_NS + 10 * DELAY_NS + TICK_NS);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 1U);
}

/* The same holds for the end of time: then it is in no slot. */
static void a_timeout_that_was_moved_to_the_end_of_time_is_put_aside(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, 0);

	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	/* A store of a user can do that with a time beyond all others. */
	*word_of(tw, timeout_id(t)) = (timeout_id(t) >> GEN_SHIFT & TWHEEL_REFRESH_GEN_MASK) |
		((START_NS >> tw->words.shift) + BIT_ULL(34)) << TWHEEL_REFRESH_GEN_BITS;
	t->deadline_ns = TWHEEL_TIME_NEVER;
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
	KUNIT_EXPECT_PTR_EQ(test, tw->wheel.never, &t->link);
	audit(test);
}

/* Arm a timeout of each kind that expires by itself, due one after another. */
static void arm_kinds(struct kunit *test)
{
	arm_like(test, 0);
	arm_like(test, PE);
	arm_like(test, SL);
	arm_like(test, FD);
}

/* G1: if the clock is set back when a slot has come, its timeouts wait for the clock. */
static void a_timeout_that_has_come_waits_for_a_clock_that_is_set_back(struct kunit *test)
{
	struct tw_ctx *tw = wheel_whose_clock_goes_back(test);
	struct twheel_event event;
	unsigned int i;
	bool came;

	arm_kinds(test);
	time_set(tw, START_NS + 6 * TICK_NS);
	twheel_lock(tw);
	came = twheel_wheel_turn(&tw->wheel, START_NS + 6 * TICK_NS);
	twheel_unlock(tw);
	KUNIT_ASSERT_TRUE(test, came);
	time_set(tw, START_NS + 3 * TICK_NS);
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
	audit(test);
	time_set(tw, START_NS + DELAY_NS);
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
	time_set(tw, START_NS + 6 * TICK_NS);
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 4U);
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_EXPECT_EQ(test, event.deadline_ns, START_NS + DELAY_NS);
		KUNIT_EXPECT_EQ(test, event.count, 1U);
	}
}

/* G1: from any time to any other, each timeout expires in the tick of its deadline. */
static void a_clock_that_is_set_back_makes_no_timeout_early_or_late(struct kunit *test)
{
	static const u64 ahead[] = { 3, 40, 70, 500, 5000 }, back[] = { 1, 30, 600, 900 };
	unsigned int i, j, k;

	for (i = 0; i < ARRAY_SIZE(ahead); i++) {
		for (j = 0; j < ARRAY_SIZE(back); j++) {
			struct tw_ctx *tw = wheel_whose_clock_goes_back(test);
			u64 due[] = { 1, 5, 63, 64, 200, 4000, 9000 };
			u64 now = START_NS / TICK_NS, next;
			unsigned int fired = 0;

			for (k = 0; k < ARRAY_SIZE(due); k++) {
				due[k] += now + ahead[i];
				arm(test, &(struct twheel_arm) {
					.flags = TWHEEL_ARM_ABSOLUTE,
					.expires_ns = due[k] * TICK_NS });
			}
			time_set(tw, (now + ahead[i]) * TICK_NS);
			pass(tw);
			time_set(tw, (now + ahead[i] - back[j]) * TICK_NS);
			pass(tw);
			KUNIT_ASSERT_EQ(test, nr_unread(tw), 0U);
			audit(test);
			for (k = 0; k < ARRAY_SIZE(due); k++) {
				next = due[k];
				time_set(tw, next * TICK_NS - 1);
				pass(tw);
				KUNIT_ASSERT_EQ_MSG(test, nr_unread(tw), fired, "%llu back %llu",
						    ahead[i], back[j]);
				time_set(tw, next * TICK_NS);
				pass(tw);
				KUNIT_ASSERT_EQ_MSG(test, nr_unread(tw), ++fired,
						    "%llu back %llu", ahead[i], back[j]);
			}
		}
	}
}

/*
 * G1, G3: if the clock is set back to before the edge at which a timeout came up, that is one
 * period.
 */
static void a_clock_set_back_by_less_than_a_tick_makes_one_period(struct kunit *test)
{
	static const u32 kinds[] = { PE, LI, PE | SL };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct tw_ctx *tw = wheel_whose_clock_goes_back(test);
		struct twheel_timeout *t = arm_like(test, kinds[i]);
		struct twheel_event event;
		u64 deadline_ns = timeout_known_ns(t);

		twheel_lock(tw);
		KUNIT_EXPECT_EQ(test, periods_expire(t, timeout_extra(t), deadline_ns - TICK_NS),
				1ULL);
		twheel_link_del(&t->link);
		event_add(&tw->events, t, deadline_ns);
		tw->events.expirations++;
		twheel_unlock(tw);
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_EXPECT_EQ(test, event.count, 1U);
		KUNIT_EXPECT_EQ(test, event.deadline_ns, deadline_ns);
	}
}

/* G5: expiry visits this many timeouts and no more, of any kind. */
static void expiry_visits_as_many_timeouts_as_it_may(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	unsigned int nr, left, i;

	for (nr = 1; nr < 40; nr += 6) {
		/* If a timeout is due at an edge, it is visited once. */
		for (i = 0; i < 30; i++)
			arm(test, &(struct twheel_arm) {
				.expires_ns = 4 * TICK_NS, .slack_ticks = i % 5 == 4 });
		time_set(tw, time_of(tw) + 6 * TICK_NS);
		left = nr;
		twheel_lock(tw);
		twheel_expire(tw, time_of(tw), &left);
		twheel_unlock(tw);
		KUNIT_ASSERT_EQ(test, nr_unread(tw), min(nr, 30U));
		KUNIT_ASSERT_EQ(test, left, nr - min(nr, 30U));
		audit(test);
		pass(tw);
		KUNIT_ASSERT_EQ(test, nr_unread(tw), 30U);
		while (read_one(tw, NULL))
			;
	}
}

/* A timeout that only moves counts, too. */
static void expiry_counts_timeouts_that_were_moved_later(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	unsigned int left = 15, i;
	u64 ids[20];

	arm_many(test, 20, ids);
	for (i = 0; i < 20; i++)
		rearm_to(tw, ids[i], .expires_ns = 100 * TICK_NS);
	time_set(tw, START_NS + DELAY_NS + TICK_NS);
	twheel_lock(tw);
	KUNIT_EXPECT_TRUE(test, twheel_expire(tw, time_of(tw), &left));
	twheel_unlock(tw);
	KUNIT_EXPECT_EQ(test, left, 0U);
	audit(test);
	left = 15;
	twheel_lock(tw);
	KUNIT_EXPECT_FALSE(test, twheel_expire(tw, time_of(tw), &left));
	twheel_unlock(tw);
	KUNIT_EXPECT_EQ(test, left, 10U);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
}

/* G2: a step of a drain visits a limited number of places, and another goes on from there. */
static void a_drain_goes_by_steps(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	unsigned int left, i;

	arm_many(test, 3 * PASS_STEP, NULL);
	for (i = 1; i <= 3; i++) {
		twheel_lock(tw);
		left = drain_step(tw, time_of(tw), PASS_STEP);
		twheel_unlock(tw);
		KUNIT_EXPECT_EQ(test, left, 0U);
		KUNIT_EXPECT_EQ(test, nr_unread(tw), i * PASS_STEP);
		audit(test);
	}
	do {
		twheel_lock(tw);
		left = drain_step(tw, time_of(tw), PASS_STEP);
		twheel_unlock(tw);
		KUNIT_ASSERT_LT(test, i++, 20U);
	} while (!left);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 3U * PASS_STEP);
}

/* Try every lateness from a tick on, and the counter that it goes to. */
static void lateness_is_counted_in_powers_of_two_of_ticks(struct kunit *test)
{
	struct tw_ctx *tw = wheel_with(test, slack_ns, 5 * TICK_NS);
	u64 sum = 0, nr_late = 0, distance;
	u64 expected[TWHEEL_LATE_TICKS] = {};
	struct twheel_info info = {};
	unsigned int i;

	for (distance = 0; distance < 70 * TICK_NS; distance += TICK_NS / 4) {
		u64 due_ns = round_up(time_of(tw) / TICK_NS + 22, 64) * TICK_NS;
		bool slack = distance / (TICK_NS / 4) % 2;

		arm(test, &(struct twheel_arm) {
			.flags = TWHEEL_ARM_ABSOLUTE, .slack_ticks = slack ? 63 : 0,
			.expires_ns = due_ns - (slack ? 20 * TICK_NS : 0) - 1 });
		/* If a timeout was due when armed, its lateness does not count. */
		arm(test, &(struct twheel_arm) { .flags = TWHEEL_ARM_ABSOLUTE });
		expire_at(tw, due_ns + distance);
		KUNIT_ASSERT_EQ(test, read_one(tw, NULL) + read_one(tw, NULL), 2);
		expected[fls64(distance / TICK_NS)]++;
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
	/* The last counter takes all that are later. */
	arm(test, &(struct twheel_arm) { .expires_ns = 1 });
	expire_at(tw, TICK_NS << 34);
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.late_ticks[TWHEEL_LATE_TICKS - 1], 1ULL);
}

static void each_timeout_that_is_late_counts(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	unsigned int i;

	for (i = 0; i < 10; i++)
		arm(test, &(struct twheel_arm) { .expires_ns = DELAY_NS + (i + 3) % 10 });
	expire_at(tw, START_NS + DELAY_NS + 3 * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->events.late, 10ULL);
	KUNIT_EXPECT_EQ(test, tw->events.late_ticks[2], 10ULL);
	arm(test, &(struct twheel_arm) { .expires_ns = 5, .flags = TWHEEL_ARM_ABSOLUTE });
	KUNIT_EXPECT_EQ(test, tw->events.late, 10ULL);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 11U);
}

/* If few of the timeouts that come up are due, the others count as well. */
static void expiry_counts_timeouts_that_were_moved_among_those_that_are_due(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	unsigned int i, left, nr = 0;
	u64 ids[100];

	arm_many(test, 100, ids);
	for (i = 0; i < 100; i++)
		if (i % 20)
			rearm_to(tw, ids[i], .expires_ns = 100 * TICK_NS);
	time_set(tw, START_NS + DELAY_NS + TICK_NS);
	do {
		u64 before = nr_inserted + nr_unread(tw);

		left = 30;
		twheel_lock(tw);
		twheel_expire(tw, time_of(tw), &left);
		twheel_unlock(tw);
		KUNIT_EXPECT_EQ(test, nr_inserted + nr_unread(tw) - before, 30ULL - left);
		audit(test);
	} while (!left && ++nr < 10);
	KUNIT_EXPECT_EQ(test, nr, 3U);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 5U);
}

/* G5: a step ends after many slots that are empty by now, in which no timeout was scanned. */
static void slots_whose_timeouts_were_cancelled_are_no_timeouts(struct kunit *test)
{
	struct twheel_setup setup = usual_setup;
	struct tw_ctx *tw;
	unsigned int i;
	u64 ids[400];

	engine_case_exit(test);
	setup.slots = 1024;
	tw = wheel_make(test, &setup);
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		ids[i] = timeout_id(arm(test, &(struct twheel_arm) {
			.expires_ns = (i + 1) * TICK_NS }));
	cancel_ids(tw, ids, ARRAY_SIZE(ids));
	time_set(tw, time_of(tw) + 500 * TICK_NS);
	twheel_lock(tw);
	KUNIT_EXPECT_TRUE(test, pass_step(tw));
	KUNIT_EXPECT_EQ(test, tw->nr_ahead, 0U);
	twheel_unlock(tw);
	pass(tw);
}

static struct kunit_case expire_cases[] = {
	KUNIT_CASE_PARAM(expiry_makes_one_event_of_a_timeout_that_is_due, start_gen_params),
	KUNIT_CASE_PARAM(drain_makes_an_event_of_a_timeout_that_is_left, start_gen_params),
	KUNIT_CASE(nothing_expires_before_its_tick),
	KUNIT_CASE(a_timeout_that_was_moved_later_waits_for_its_new_tick),
	KUNIT_CASE(a_timeout_that_was_moved_to_the_end_of_time_is_put_aside),
	KUNIT_CASE(a_timeout_that_has_come_waits_for_a_clock_that_is_set_back),
	KUNIT_CASE(a_clock_that_is_set_back_makes_no_timeout_early_or_late),
	KUNIT_CASE(a_clock_set_back_by_less_than_a_tick_makes_one_period),
	KUNIT_CASE(expiry_visits_as_many_timeouts_as_it_may),
	KUNIT_CASE(expiry_counts_timeouts_that_were_moved_later),
	KUNIT_CASE(a_drain_goes_by_steps),
	KUNIT_CASE(lateness_is_counted_in_powers_of_two_of_ticks),
	KUNIT_CASE(each_timeout_that_is_late_counts),
	KUNIT_CASE(expiry_counts_timeouts_that_were_moved_among_those_that_are_due),
	KUNIT_CASE(slots_whose_timeouts_were_cancelled_are_no_timeouts),
	{}
};

ENGINE_SUITE(expire);
