// SPDX-License-Identifier: GPL-2.0
/*
 * engine/rearm.c: REARM
 */

/* G7: a timeout in the wheel is moved later without touching the wheel. */
static void rearm_to_a_later_time_leaves_the_entry_where_it_is(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, deed_rearm_later, start->to.later, 0);
}

/* G2: the kthread is to look at it at once. */
static void rearm_to_the_past_goes_through_the_inbox(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, deed_rearm_past, start->to.past,
		       start->to.past == GONE || start->to.past == SHUT ?
		       0 : STATE_OVERDUE);
}

/* G3, G8: neither the next life of the timeout nor the next owner of its place. */
static void a_rearm_that_was_overtaken_touches_nothing(struct kunit *test)
{
	const struct loss *loss = test->param_value;
	struct twheel *tw = test->priv;
	struct twheel_arm how = { .expires_ns = 77 * TICK_NS };
	struct twheel_rearming rearming = {};
	s64 before[NR_TALLIES];
	struct twheel_timeout *t;
	u64 state, deadline_ns;
	unsigned int nr_room, nr_ok = 0;

	t = bring(test, &loss->start, &how.id);
	KUNIT_ASSERT_EQ(test, twheel_rearm_prepare(tw, &how, &rearming, 1), 0);
	KUNIT_ASSERT_GT(test, how.result, 0);
	nr_room = rearming.nr_room;
	state = lose(test, t, how.id, before);
	deadline_ns = t->deadline_ns;
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, &how, &rearming, 1, &nr_ok),
			0);
	KUNIT_EXPECT_EQ(test, nr_ok, 0U);
	KUNIT_EXPECT_EQ(test, (u64)timeout_state(t), state);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, deadline_ns);
	/* @before counts the room that prepare had taken. */
	expect_delta(test, before, (s8[NR_TALLIES]) { [ROOM] = -nr_room });
}

/* G3: likewise for every other state that there is. */
static void a_new_life_begins_from_the_state_seen_and_no_other(struct kunit *test)
{
	const struct life life = { .deadline_ns = 77 };
	struct twheel *tw = test->priv;
	u64 rest, deadline_ns;
	struct twheel_timeout *t = some_place(test, &rest);
	unsigned int bit;
	bool won;

	deadline_ns = t->deadline_ns;
	for (bit = 0; bit < 64; bit++) {
		u64 seen = rest ^ BIT_ULL(bit);

		spin_lock(&tw->events.lock);
		won = timeout_rearm(tw, t, seen, &life, false) ||
		      timeout_move(tw, t, seen, life.deadline_ns, false) ||
		      timeout_move(tw, t, seen, life.deadline_ns, true);
		spin_unlock(&tw->events.lock);
		KUNIT_ASSERT_FALSE(test, won);
		KUNIT_ASSERT_EQ(test, (u64)timeout_state(t), rest);
		KUNIT_ASSERT_EQ(test, t->deadline_ns, deadline_ns);
	}
}

/* The short way of REARM: a condition, and what it is for. */
static bool defer(struct twheel *tw, struct twheel_timeout *t, u64 seen, u64 deadline_ns)
	__must_hold(&tw->events.lock)
{
	return can_defer(t, seen, deadline_ns) && timeout_move(tw, t, seen, deadline_ns, true);
}

/* The short way is for a timeout in the wheel that is as it was seen and moves later. */
static void nothing_else_is_deferred(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, 0);
	u64 state, deadline_ns = t->deadline_ns;
	unsigned int bit;

	spin_lock(&tw->events.lock);
	KUNIT_EXPECT_FALSE(test, defer(tw, t, timeout_state(t), deadline_ns + 1));
	spin_unlock(&tw->events.lock);
	enter(tw);
	state = timeout_state(t);
	spin_lock(&tw->events.lock);
	for (bit = 0; bit < 64; bit++)
		KUNIT_EXPECT_FALSE(test, defer(tw, t, state ^ BIT_ULL(bit), deadline_ns + 1));
	KUNIT_EXPECT_FALSE(test, defer(tw, t, state, deadline_ns - 1));
	KUNIT_EXPECT_EQ(test, (u64)timeout_state(t), state);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, deadline_ns);
	KUNIT_EXPECT_TRUE(test, defer(tw, t, state, deadline_ns));
	KUNIT_EXPECT_TRUE(test, defer(tw, t, state, deadline_ns + 1));
	KUNIT_EXPECT_EQ(test, (u64)timeout_state(t), state);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, deadline_ns + 1);
	spin_unlock(&tw->events.lock);
}

/* Takes all room; from now on there is no memory for more. Returns how much it took. */
static unsigned int room_exhaust(struct kunit *test)
{
	unsigned int nr = 0;

	no_memory = true;
	while (!twheel_room_take(test->priv, 1))
		KUNIT_ASSERT_LT(test, ++nr, 100000U);
	return nr;
}

/*
 * G4: an entry in the inbox, and one that moves later, need no room. Any other says ENOMEM
 * and pends as before.
 */
static void only_what_needs_room_fails_for_want_of_it(struct kunit *test)
{
	struct twheel_arm *how = kunit_kcalloc(test, TWHEEL_BATCH, sizeof(*how), GFP_KERNEL);
	struct twheel_rearming rearming = {};
	struct twheel *tw = test->priv;
	unsigned int i, taken, nr_ok = 0;
	long used;
	u64 ids[TWHEEL_BATCH];

	KUNIT_ASSERT_NOT_NULL(test, how);
	arm_many(test, TWHEEL_BATCH - 1, ids);
	enter(tw);
	arm_many(test, 1, &ids[TWHEEL_BATCH - 1]);
	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
	taken = room_exhaust(test);
	used = atomic_long_read(&tw->room.used);
	for (i = 0; i < TWHEEL_BATCH; i++) {
		how[i].id = ids[i];
		how[i].expires_ns = DELAY_NS + (i % 3 ? 1 : -1);
	}
	/* Room for four comes back. */
	room_give(&tw->room, 4);
	taken -= 4;
	KUNIT_EXPECT_EQ(test, twheel_rearm_prepare(tw, how, &rearming,
						   TWHEEL_BATCH), 0);
	KUNIT_EXPECT_EQ(test, rearming.nr_room, 4U);
	for (i = 0; i < TWHEEL_BATCH; i++)
		KUNIT_EXPECT_EQ_MSG(test, how[i].result,
				    i % 3 || i < 12 || i == TWHEEL_BATCH - 1 ?
				    TWHEEL_WAS_PENDING : -ENOMEM, "entry %u", i);
	/* For want of room the kthread has made a pass: the last timeout is in the wheel. */
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, how, &rearming,
						  TWHEEL_BATCH, &nr_ok),
			TWHEEL_BATCH - 1);
	KUNIT_EXPECT_EQ(test, nr_ok, 24U);
	KUNIT_EXPECT_EQ(test, rearm(tw, ids[TWHEEL_BATCH - 1],
				    &how[TWHEEL_BATCH - 1]), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), used);
	no_memory = false;
	KUNIT_EXPECT_EQ(test, rearm(tw, ids[12], &how[12]), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, tw->clock.virtual_now_ns), 0);
	room_give(&tw->room, taken);
}

/* Every entry of a full batch fails, the last one too. */
static void a_whole_batch_may_go_without_room(struct kunit *test)
{
	/* The entry after the batch must not be written. */
	struct twheel_arm *how = kunit_kcalloc(test, TWHEEL_BATCH + 1, sizeof(*how),
					       GFP_KERNEL);
	struct twheel_rearming rearming = {};
	struct twheel *tw = test->priv;
	unsigned int i, room, taken, nr_ok;
	u64 ids[TWHEEL_BATCH];

	KUNIT_ASSERT_NOT_NULL(test, how);
	arm_many(test, TWHEEL_BATCH, ids);
	enter(tw);
	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
	taken = room_exhaust(test);
	for (room = 0; room <= 3; room += 3) {
		room_give(&tw->room, room);
		taken -= room;
		for (i = 0; i < TWHEEL_BATCH; i++)
			how[i] = (struct twheel_arm) {
				.id = ids[i], .expires_ns = DELAY_NS - 1 - room };
		how[TWHEEL_BATCH].result = 77;
		KUNIT_ASSERT_EQ(test, twheel_rearm_prepare(tw, how, &rearming,
							   TWHEEL_BATCH), 0);
		for (i = 0; i < TWHEEL_BATCH; i++)
			KUNIT_EXPECT_EQ_MSG(test, how[i].result, i < room ?
					    TWHEEL_WAS_PENDING : -ENOMEM,
					    "entry %u", i);
		KUNIT_EXPECT_EQ(test, how[TWHEEL_BATCH].result, 77);
		nr_ok = 0;
		KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, how, &rearming,
							  TWHEEL_BATCH, &nr_ok),
				TWHEEL_BATCH);
		KUNIT_EXPECT_EQ(test, nr_ok, room);
	}
	no_memory = false;
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, tw->clock.virtual_now_ns), 0);
	room_give(&tw->room, taken);
}

/*
 * At prepare the timeout could keep its entry.  At commit it cannot: another REARM has moved
 * it later, and the kthread its entry.
 */
static void what_needs_room_after_all_is_looked_at_again(struct kunit *test)
{
	struct twheel_arm how = { .expires_ns = 20 * TICK_NS };
	struct twheel_arm later = { .expires_ns = 30 * TICK_NS };
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, 0);
	struct twheel_rearming rearming = {};
	unsigned int nr_ok = 0;
	s64 before[NR_TALLIES];

	enter(tw);
	/* Without this prepare would take room for all entries. */
	tw->room.provided = atomic_long_read(&tw->room.used);
	tw->room.short_of = true;
	how.id = id_of(t);
	KUNIT_ASSERT_EQ(test, twheel_rearm_prepare(tw, &how, &rearming, 1), 0);
	KUNIT_EXPECT_EQ(test, rearming.nr_room, 0U);
	KUNIT_ASSERT_EQ(test, rearm(tw, how.id, &later), TWHEEL_WAS_PENDING);
	/* The first pass gives room back. */
	pass(tw);
	pass(tw);
	tally_take(tw, before);
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, &how, &rearming, 1, &nr_ok),
			0);
	expect_delta(test, before, nothing);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, START_NS + 30 * TICK_NS);
	KUNIT_EXPECT_EQ(test, rearm(tw, how.id, &how), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, START_NS + 20 * TICK_NS);
}

/*
 * A timeout that was moved later has its entry where it was: it can be moved back to there
 * without another one, and expires in its tick.
 */
static void a_timeout_that_moves_back_and_forth_has_one_entry(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t;
	unsigned int i;

	/* Nobody looks ahead behind this one. */
	arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS });
	t = arm_like(test, 0);
	pass(tw);
	for (i = 0; i < 10; i++) {
		KUNIT_ASSERT_EQ(test, rearm(tw, id_of(t), &(struct twheel_arm) {
			.expires_ns = i % 2 ? DELAY_NS + i : 1000 * TICK_NS,
			.slack_ticks = i % 3 ? 0 : 3 }), TWHEEL_WAS_PENDING);
		KUNIT_EXPECT_TRUE(test, state_is_armed(timeout_state(t)));
		pass(tw);
		KUNIT_EXPECT_EQ(test, tw->wheel.nr_entries, 2ULL);
	}
	KUNIT_EXPECT_EQ(test, tick_of_expiry(test, t),
			round_up(START_NS / TICK_NS + 6, 4));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 0L);
}

/* G3: of four timeouts the third is gone before commit. */
static void a_batch_of_rearms_stops_at_the_first_that_was_overtaken(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_rearming rearming = {};
	struct twheel_arm how[4] = {};
	unsigned int nr_ok = 0;
	int i;

	for (i = 0; i < 4; i++)
		how[i].id = id_of(arm_like(test, 0));
	enter(tw);
	how[0].expires_ns = 2 * DELAY_NS;
	KUNIT_ASSERT_EQ(test, twheel_rearm_prepare(tw, how, &rearming, 4), 0);
	cancel(tw, how[2].id);
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, how, &rearming, 4, &nr_ok),
			2);
	KUNIT_EXPECT_EQ(test, nr_ok, 2U);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, state_phase(timeout_state(look_at(tw, (u32)how[i].id))),
				i == 1 ? PHASE_QUEUED :
				i == 2 ? PHASE_FREE : PHASE_ARMED);
}

static struct kunit_case rearm_cases[] = {
	KUNIT_CASE_PARAM(rearm_to_a_later_time_leaves_the_entry_where_it_is, start_gen_params),
	KUNIT_CASE_PARAM(rearm_to_the_past_goes_through_the_inbox, start_gen_params),
	KUNIT_CASE_PARAM(a_rearm_that_was_overtaken_touches_nothing, loss_gen_params),
	KUNIT_CASE(a_new_life_begins_from_the_state_seen_and_no_other),
	KUNIT_CASE(nothing_else_is_deferred),
	KUNIT_CASE(only_what_needs_room_fails_for_want_of_it),
	KUNIT_CASE(a_whole_batch_may_go_without_room),
	KUNIT_CASE(what_needs_room_after_all_is_looked_at_again),
	KUNIT_CASE(a_timeout_that_moves_back_and_forth_has_one_entry),
	KUNIT_CASE(a_batch_of_rearms_stops_at_the_first_that_was_overtaken),
	{}
};

ENGINE_SUITE(rearm);
