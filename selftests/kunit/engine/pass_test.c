// SPDX-License-Identifier: GPL-2.0
/*
 * engine/run.c: steps, turns, and slots that are emptied ahead
 */

/* Take a step. Return whether there is more to do. */
static bool step(struct tw_ctx *tw)
{
	bool more;

	twheel_lock(tw);
	more = pass_step(tw);
	twheel_unlock(tw);
	return more;
}

/* G2, G5: the lock is held for a limited number of timeouts. */
static void a_step_is_bounded_and_leaves_the_wheel_at_rest(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	unsigned int i;

	arm_many(test, 3 * PASS_STEP + 1, NULL);
	KUNIT_EXPECT_FALSE(test, step(tw));
	time_set(tw, START_NS + 10 * TICK_NS);
	for (i = 1; i <= 3; i++) {
		KUNIT_EXPECT_TRUE(test, step(tw));
		KUNIT_EXPECT_EQ(test, nr_unread(tw), i * PASS_STEP);
		audit(test);
	}
	KUNIT_EXPECT_FALSE(test, step(tw));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 3U * PASS_STEP + 1);
}

/* G2: other wheels have turns before all is done. */
static void a_turn_ends_after_a_number_of_steps(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	arm_many(test, (TURN_STEPS + 1) * PASS_STEP, NULL);
	time_set(tw, START_NS + 10 * TICK_NS);
	KUNIT_EXPECT_TRUE(test, twheel_run_turn(&tw->turn, U64_MAX));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), (u32)TURN_STEPS * PASS_STEP);
	audit(test);
	KUNIT_EXPECT_FALSE(test, twheel_run_turn(&tw->turn, U64_MAX));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), (u32)(TURN_STEPS + 1) * PASS_STEP);
}

/* G2: it also ends if its steps are few, since each may take long. */
static void a_turn_ends_with_its_time(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct waiter waiter = {};

	arm_many(test, 10 * PASS_STEP, NULL);
	waiter_queues(tw, &waiter);
	time_set(tw, START_NS + 10 * TICK_NS);
	KUNIT_EXPECT_TRUE(test, twheel_run_turn(&tw->turn, 0));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), (u32)PASS_STEP);
	/* A reader does not wait for the next turn. */
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	waiter_leaves(tw, &waiter);
	machine_ns = 1000;
	machine_step_ns = 10;
	KUNIT_EXPECT_TRUE(test, twheel_run_turn(&tw->turn, 1030));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 5U * PASS_STEP);
	machine_ns = 0;
	KUNIT_EXPECT_EQ(test, pass(tw), 1U);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 10U * PASS_STEP);
}

/* If a million events come in a second, not each step wakes a waiter. */
static void the_kthread_wakes_a_waiter_once_for_a_thousand_events(struct kunit *test)
{
	const unsigned int nr = 3 * max(WAKE_EVERY, PASS_STEP) + 1;
	struct tw_ctx *tw = test->priv;
	struct waiter waiter = {};

	arm_many(test, nr, NULL);
	waiter_queues(tw, &waiter);
	time_set(tw, START_NS + 10 * TICK_NS);
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), nr);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 4U);
	waiter_leaves(tw, &waiter);
}

/*
 * G2: if the kernel has PREEMPT_RT, no step leaves it to another thread to wake for its events:
 * that thread may have a low priority.
 */
static void a_step_leaves_waking_only_to_a_thread_that_is_not_preempted(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct waiter waiter = {};

	arm_many(test, 2 * PASS_STEP, NULL);
	waiter_queues(tw, &waiter);
	time_set(tw, START_NS + 10 * TICK_NS);
	KUNIT_EXPECT_TRUE(test, pass_step_locked(tw));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), (u32)PASS_STEP);
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		KUNIT_EXPECT_EQ(test, tw->events.nr_to_wake, 0U);
		KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	} else {
		KUNIT_EXPECT_EQ(test, tw->events.nr_to_wake, (u32)PASS_STEP);
		KUNIT_EXPECT_EQ(test, waiter.nr_woken, 0U);
	}
	waiter_leaves(tw, &waiter);
}

/* Steps that only move timeouts do not wake it, either. */
static void a_reader_does_not_wait_for_slots_that_are_emptied_ahead(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_level *upper = &tw->wheel.level[1];
	u64 begin_ns = twheel_slot_begin_ns(upper, START_NS + 100 * TICK_NS);
	u64 due_ns = begin_ns - twheel_slot_lead_ns(upper) / 4;
	struct waiter waiter = {};

	arm_same(test, 3 * PASS_STEP, begin_ns - START_NS);
	arm(test, &(struct twheel_arm) { .expires_ns = due_ns - START_NS });
	waiter_queues(tw, &waiter);
	time_set(tw, edge_after_ns(&tw->clock, due_ns));
	KUNIT_EXPECT_TRUE(test, pass_step_locked(tw));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 1U);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, IS_ENABLED(CONFIG_PREEMPT_RT) ? 1U : 0U);
	KUNIT_EXPECT_TRUE(test, pass_step_locked(tw));
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	waiter_leaves(tw, &waiter);
}

/* Return how many entries a level has. */
static u32 level_entries(struct kunit *test, u32 level)
{
	struct tw_ctx *tw = test->priv;

	return audit_level(test, &tw->wheel, level);
}

/* G2: a slot of an upper level is empty when its time comes, by steps of bounded length. */
static void an_upper_slot_is_emptied_step_by_step_before_it_begins(struct kunit *test)
{
	const unsigned int nr = 3 * AHEAD_TICK;
	struct tw_ctx *tw = test->priv;
	struct twheel_level *upper = &tw->wheel.level[1];
	u64 begin_ns, width_ns = 1ULL << upper->shift;
	unsigned int left = nr;

	arm_same(test, nr, 100 * TICK_NS);
	KUNIT_ASSERT_EQ(test, level_entries(test, 1), nr);
	begin_ns = twheel_slot_begin_ns(upper, START_NS + 100 * TICK_NS);
	/* No timeout moves before the wheel is in the slot before that. */
	time_set(tw, begin_ns - width_ns - TICK_NS);
	KUNIT_EXPECT_FALSE(test, step(tw));
	KUNIT_EXPECT_EQ(test, level_entries(test, 1), nr);
	/* There is no hurry at first, so a step moves as many as it may. */
	time_set(tw, begin_ns - width_ns + TICK_NS);
	KUNIT_EXPECT_FALSE(test, step(tw));
	left -= PASS_STEP;
	KUNIT_EXPECT_EQ(test, level_entries(test, 1), left);
	KUNIT_EXPECT_EQ(test, level_entries(test, 0), (u32)PASS_STEP);
	audit(test);
	/* In the second half, a step moves this many in a tick. */
	time_set(tw, begin_ns - width_ns / 2 + TICK_NS);
	while (step(tw))
		;
	left -= AHEAD_TICK;
	KUNIT_EXPECT_EQ(test, level_entries(test, 1), left);
	KUNIT_EXPECT_FALSE(test, step(tw));
	left -= PASS_STEP;
	KUNIT_EXPECT_EQ(test, level_entries(test, 1), left);
	/* In the last quarter, a step moves all. */
	time_set(tw, begin_ns - width_ns / 4 + TICK_NS);
	while (step(tw))
		;
	KUNIT_EXPECT_EQ(test, level_entries(test, 1), 0U);
	audit(test);
	time_set(tw, START_NS + 101 * TICK_NS);
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), nr);
	KUNIT_EXPECT_EQ(test, tw->events.late, 0ULL);
}

/* G2: three timeouts go down for two that expire, so that a busy slot is empty in time. */
static void expired_timeouts_make_others_go_down(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_level *upper = &tw->wheel.level[1];
	u64 begin_ns = twheel_slot_begin_ns(upper, START_NS + 100 * TICK_NS);
	u64 now_ns = begin_ns - (1ULL << upper->shift) + TICK_NS;

	arm_same(test, 1000, 100 * TICK_NS);
	time_set(tw, now_ns);
	KUNIT_EXPECT_FALSE(test, step(tw));
	KUNIT_EXPECT_EQ(test, level_entries(test, 1), 1000U - PASS_STEP);
	arm_same(test, 100, TICK_NS);
	time_set(tw, now_ns + 2 * TICK_NS);
	while (step(tw))
		;
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 100U);
	KUNIT_EXPECT_LE(test, level_entries(test, 1), 1000U - PASS_STEP - 150);
	KUNIT_EXPECT_GT(test, level_entries(test, 1), 1000U - 2 * PASS_STEP - 150);
	KUNIT_EXPECT_EQ(test, tw->nr_ahead, 0U);
}

/* If timeouts were moved later, they go to their own slots, and not down. */
static void a_timeout_that_was_moved_later_leaves_an_upper_slot_for_its_own(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_level *upper = &tw->wheel.level[1];
	struct twheel_arm how = { .expires_ns = 100 * TICK_NS };
	struct twheel_timeout *t = arm(test, &how);

	rearm_to(tw, how.id, .expires_ns = 5000 * TICK_NS);
	time_set(tw, twheel_slot_begin_ns(upper, START_NS + 100 * TICK_NS) - TICK_NS);
	step(tw);
	KUNIT_EXPECT_EQ(test, level_entries(test, 0) + level_entries(test, 1), 0U);
	KUNIT_EXPECT_EQ(test, level_entries(test, 2), 1U);
	KUNIT_EXPECT_EQ(test, tick_of_expiry(test, t), START_NS / TICK_NS + 5000);
}

/* G2, G4: other wheels have turns before all is drained; the drain is over only when all is. */
static void a_drain_goes_by_turns(struct kunit *test)
{
	const unsigned int nr = (TURN_STEPS + 2) * PASS_STEP;
	struct tw_ctx *tw = test->priv;

	arm_many(test, nr, NULL);
	WRITE_ONCE(tw->control.draining, true);
	tw->drains = true;
	KUNIT_EXPECT_TRUE(test, twheel_run_turn(&tw->turn, U64_MAX));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), (u32)TURN_STEPS * PASS_STEP);
	KUNIT_EXPECT_FALSE(test, twheel_is_drained(tw));
	audit(test);
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), nr);
	KUNIT_EXPECT_TRUE(test, twheel_is_drained(tw));
}

/* G3: if a timeout is due when the drain comes, it has expired, and is not drained. */
static void a_drain_lets_expire_what_is_due(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;

	arm(test, &(struct twheel_arm) { .expires_ns = 100 * TICK_NS });
	arm_like(test, 0);
	time_set(tw, START_NS + 10 * TICK_NS);
	drain(tw);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.flags, TWHEEL_EVENT_ENDED);
	KUNIT_EXPECT_EQ(test, event.count, 1U);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.flags, TWHEEL_EVENT_DRAINED | TWHEEL_EVENT_ENDED);
	KUNIT_EXPECT_EQ(test, event.count, 0U);
}

/*
 * G7: idle connections are refreshed often within their timeout, while passes come in each tick.
 * The reason for a pass must not matter.
 */
#define LENGTH	300
#define ROUNDS	4

/* Return how often a timeout was moved. */
static u64 moves_of_idle_connections(struct kunit *test, u64 *ids, unsigned int nr, u64 beside_ns)
{
	struct tw_ctx *tw = test->priv;
	unsigned int tick, i = 0;
	u64 moves = 0;

	for (tick = 0; tick < ROUNDS * LENGTH; tick++) {
		u64 inserted;
		unsigned int k;

		/* Re-arm all of them within a tenth of their length. */
		for (k = 0; k < nr / (LENGTH / 10); k++, i++)
			rearm_to(tw, ids[i % nr], .expires_ns = LENGTH * TICK_NS);
		if (beside_ns != NEVER_NS)
			arm(test, &(struct twheel_arm) { .expires_ns = beside_ns });
		inserted = nr_inserted;
		pass(tw);
		moves += nr_inserted - inserted;
		while (read_one(tw, NULL))
			;
		time_set(tw, time_of(tw) + TICK_NS);
	}
	return moves;
}

static void a_refreshed_timeout_moves_twice_in_its_length_at_most(struct kunit *test)
{
	static const u64 beside_ns[] = { NEVER_NS, 0, 1, TICK_NS, 7 * TICK_NS };
	u64 *ids = kunit_kcalloc(test, LENGTH, sizeof(*ids), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	unsigned int i;
	u64 moves;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	alarms_begin(tw);
	for (i = 0; i < LENGTH; i++) {
		struct twheel_arm how = { .expires_ns = LENGTH * TICK_NS };

		arm(test, &how);
		ids[i] = how.id;
	}
	pass(tw);
	for (i = 0; i < ARRAY_SIZE(beside_ns); i++) {
		moves = moves_of_idle_connections(test, ids, LENGTH, beside_ns[i]);
		KUNIT_EXPECT_LE_MSG(test, moves, (u64)2 * (ROUNDS + 1) * LENGTH,
				    "beside %llu ns", beside_ns[i]);
		kunit_info(test, "%llu moves of %u in %u lengths beside %lld ns\n",
			   moves, LENGTH, ROUNDS, (s64)beside_ns[i]);
	}
	for (i = 0; i < LENGTH; i++)
		KUNIT_ASSERT_EQ(test, cancel(tw, ids[i]), TWHEEL_WAS_PENDING);
}

/*
 * G6: if timeouts were moved later, the alarm rings in vain no more often than the time to the
 * first of them can be halved.
 */
static void alarms_in_vain_are_few_before_the_first_is_due(struct kunit *test)
{
	const unsigned int nr = 4000;
	u64 *ids = kunit_kcalloc(test, nr, sizeof(*ids), GFP_KERNEL);
	u64 first_ns = START_NS + (nr + 10) * TICK_NS;
	struct tw_ctx *tw = test->priv;
	unsigned int i, rung = 0;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	alarms_begin(tw);
	for (i = 0; i < nr; i++) {
		struct twheel_arm how = { .expires_ns = (10 + i) * TICK_NS };

		arm(test, &how);
		ids[i] = how.id;
	}
	pass(tw);
	KUNIT_ASSERT_EQ(test, tw->alarm.at_ns, START_NS + 10 * TICK_NS);
	for (i = 0; i < nr; i++)
		rearm_to(tw, ids[i], .expires_ns = first_ns, .flags = TWHEEL_ARM_ABSOLUTE);
	while (!nr_unread(tw)) {
		/*
		 * The time can be halved 12 times, and there are the slots of two levels on the
		 * way.
		 */
		KUNIT_ASSERT_LT(test, rung++, 13U + 20);
		KUNIT_ASSERT_LE(test, tw->alarm.at_ns, first_ns);
		time_set(tw, max(time_of(tw), tw->alarm.at_ns));
		pass(tw);
	}
	KUNIT_EXPECT_EQ(test, time_of(tw), first_ns);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), nr);
	kunit_info(test, "%u alarms\n", rung);
}

static struct kunit_case pass_cases[] = {
	KUNIT_CASE(a_step_is_bounded_and_leaves_the_wheel_at_rest),
	KUNIT_CASE(a_turn_ends_after_a_number_of_steps),
	KUNIT_CASE(a_turn_ends_with_its_time),
	KUNIT_CASE(the_kthread_wakes_a_waiter_once_for_a_thousand_events),
	KUNIT_CASE(a_step_leaves_waking_only_to_a_thread_that_is_not_preempted),
	KUNIT_CASE(a_reader_does_not_wait_for_slots_that_are_emptied_ahead),
	KUNIT_CASE(an_upper_slot_is_emptied_step_by_step_before_it_begins),
	KUNIT_CASE(expired_timeouts_make_others_go_down),
	KUNIT_CASE(a_timeout_that_was_moved_later_leaves_an_upper_slot_for_its_own),
	KUNIT_CASE(a_drain_goes_by_turns),
	KUNIT_CASE(a_drain_lets_expire_what_is_due),
	KUNIT_CASE(a_refreshed_timeout_moves_twice_in_its_length_at_most),
	KUNIT_CASE(alarms_in_vain_are_few_before_the_first_is_due),
	{}
};

ENGINE_SUITE(pass);
