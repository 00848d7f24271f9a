// SPDX-License-Identifier: GPL-2.0
/*
 * engine/pass.c: the inbox is emptied, timeouts expire or are drained, slots are cleared
 * ahead of time
 */

/* G8: the place of a timeout that was cancelled young gets its next generation here. */
static void the_inbox_lets_in_what_lives_and_frees_what_is_dead(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, deed_enter, start->to.enter, 0);
}

/* G8: a carry of the sequence number must not make another id. */
static void a_sequence_number_that_comes_round_leaves_the_generation(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, PE);
	u64 id = id_of(t);
	int i;

	atomic64_set(&t->state, timeout_state(t) | STATE_SEQ);
	enter(tw);
	KUNIT_EXPECT_EQ(test, state_seq(timeout_state(t)), 0U);
	KUNIT_EXPECT_EQ(test, id_of(t), id);
	/* Likewise where a period begins. */
	for (i = 0; i < 3; i++) {
		expire_at(tw, t->deadline_ns + TICK_NS);
		KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
		KUNIT_ASSERT_EQ(test, state_phase(timeout_state(t)), PHASE_QUEUED);
		atomic64_set(&t->state, timeout_state(t) | STATE_SEQ);
		enter(tw);
		KUNIT_EXPECT_EQ(test, state_seq(timeout_state(t)), 0U);
		KUNIT_EXPECT_EQ(test, id_of(t), id);
	}
}

/* G2: a turn takes TURN_BUDGET entries at the most. */
static void a_full_inbox_is_emptied_turn_by_turn(struct kunit *test)
{
	struct twheel *tw = test->priv;

	arm_many(test, INBOX_WATERMARK - 1, NULL);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	arm_many(test, 1, NULL);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	KUNIT_EXPECT_EQ(test, pass(tw), (unsigned int)INBOX_WATERMARK / TURN_BUDGET);
	KUNIT_EXPECT_EQ(test, tw->wheel.nr_entries, (u64)INBOX_WATERMARK);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->inbox.len), 0);
	/* The entries expire by turns as well, and give their room back. */
	tw->clock.virtual_now_ns += 100 * TICK_NS;
	KUNIT_EXPECT_GT(test, pass(tw), 1U);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, (u32)INBOX_WATERMARK);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 0L);
}

/* G2: also where its entries are few, for each may take long. */
static void a_turn_ends_with_its_time(struct kunit *test)
{
	struct twheel *tw = test->priv;

	arm_many(test, 3 * KTHREAD_BATCH, NULL);
	KUNIT_EXPECT_TRUE(test, twheel_pass_turn(&tw->wake.turn, 0));
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->inbox.len), 2 * KTHREAD_BATCH);
	KUNIT_EXPECT_TRUE(test, twheel_pass_turn(&tw->wake.turn, 0));
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->inbox.len), KTHREAD_BATCH);
	KUNIT_EXPECT_EQ(test, pass(tw), 1U);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->inbox.len), 0);
}

/* G3, G4: one event each, and none for a stale entry. */
static void expiry_makes_one_event_and_goes_on_as_the_life_says(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, deed_expire, start->to.expire, 0);
}

static bool lives(struct twheel *tw, const struct twheel_entry *entry)
{
	bool lives;

	spin_lock(&tw->events.lock);
	lives = entry_lives(entry->seq, timeout_state(entry_timeout(&tw->arena, entry)));
	spin_unlock(&tw->events.lock);
	return lives;
}

/* G1, G8: an entry that was left behind does not expire the next life. */
static void an_entry_of_any_other_sequence_number_is_stale(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 rest;
	struct twheel_timeout *t = some_place(test, &rest);
	struct twheel_entry entry = {
		.tick = deadline_tick(&tw->clock, t->deadline_ns),
		.index = timeout_index(t),
	};
	struct expiry x = { .now_ns = t->deadline_ns + TICK_NS };
	unsigned int bit;

	for (bit = 0; bit < 20; bit++) {
		entry.seq = state_seq(rest) ^ BIT(bit);
		KUNIT_ASSERT_EQ(test, twheel_room_take(tw, 1), 0);
		expire_batch(tw, &entry, 1, &x);
		KUNIT_ASSERT_EQ(test, x.nr_room, 1U);
		KUNIT_ASSERT_EQ(test, x.nr_events, 0U);
		KUNIT_ASSERT_EQ(test, (u64)timeout_state(t), rest);
		KUNIT_ASSERT_FALSE(test, lives(tw, &entry));
	}
}

/* G3: with the right sequence number, too, only an ARMED timeout expires. */
static void an_entry_of_what_is_not_armed_is_stale(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 rest;
	struct twheel_timeout *t = some_place(test, &rest);
	struct twheel_entry entry = { .index = timeout_index(t), .seq = 5 };
	struct expiry x = { .now_ns = START_NS };
	unsigned int shape;

	for (shape = 0; shape < NR_FLAGS << FLAGS_SHIFT; shape++) {
		u64 state = state_of(9, 5, shape);

		atomic64_set(&t->state, state);
		KUNIT_ASSERT_EQ(test, lives(tw, &entry),
				(shape & 7) == PHASE_ARMED);
		if ((shape & 7) == PHASE_ARMED)
			continue;
		KUNIT_ASSERT_EQ(test, twheel_room_take(tw, 1), 0);
		expire_batch(tw, &entry, 1, &x);
		KUNIT_ASSERT_EQ(test, x.nr_room, 1U);
		KUNIT_ASSERT_EQ(test, x.nr_events, 0U);
		/* A place that has kept it has it no more. */
		KUNIT_ASSERT_EQ(test, (u64)timeout_state(t),
				(shape & 7) <= PHASE_NEW ? state & ~BIT_ULL(3) : state);
	}
	atomic64_set(&t->state, rest);
}

/* G3: the kthread has seen both timeouts armed when they are cancelled. */
static void an_expiry_that_a_cancel_overtook_makes_no_event(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *once = arm_like(test, 0);
	struct twheel_timeout *periodic = arm_like(test, LI);
	struct expiry x = { .now_ns = START_NS + 100 * PERIOD_NS };
	s64 before[NR_TALLIES];
	u64 seen[2], nr = 1, deadline_ns;
	bool won[2];

	enter(tw);
	seen[0] = timeout_state(once);
	seen[1] = timeout_state(periodic);
	deadline_ns = periodic->deadline_ns;
	cancel(tw, id_of(once));
	cancel(tw, id_of(periodic));
	tally_take(tw, before);
	spin_lock(&tw->events.lock);
	won[0] = timeout_expire_once(tw, once, timeout_index(once), seen[0], &x,
				     once->deadline_ns);
	won[1] = timeout_expire_periodic(tw, periodic, seen[1], &x, x.now_ns, &nr);
	spin_unlock(&tw->events.lock);
	KUNIT_EXPECT_FALSE(test, won[0]);
	KUNIT_EXPECT_FALSE(test, won[1]);
	KUNIT_EXPECT_EQ(test, x.nr_events, 0U);
	KUNIT_EXPECT_EQ(test, periodic->deadline_ns, deadline_ns);
	KUNIT_EXPECT_EQ(test, timeout_periodic(periodic)->repeats_left[timeout_slot(periodic)],
			2U);
	expect_delta(test, before, nothing);
}

/* G4: both entries are out of the wheel, and none of them comes back. */
static void an_entry_whose_timeout_a_cancel_ended_gives_its_room_back(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *once = arm_like(test, 0);
	struct twheel_timeout *periodic = arm_like(test, LI);
	struct expiry x = { .now_ns = START_NS + 100 * PERIOD_NS };
	struct twheel_entry entry, ahead;
	bool changed[3];
	u64 seen[2];

	enter(tw);
	seen[0] = timeout_state(once);
	seen[1] = timeout_state(periodic);
	cancel(tw, id_of(once));
	cancel(tw, id_of(periodic));
	entry.tick = deadline_tick(&tw->clock, periodic->deadline_ns);
	entry.index = timeout_index(periodic);
	entry.seq = state_seq(seen[1]);
	ahead.tick = deadline_tick(&tw->clock, once->deadline_ns);
	ahead.index = timeout_index(once);
	ahead.seq = state_seq(seen[0]);
	nr_inserted = 0;
	spin_lock(&tw->events.lock);
	changed[0] = expiry_postpone(tw, once, timeout_index(once), seen[0],
				     once->deadline_ns + TICK_NS);
	changed[1] = periodic_expire(tw, entry.tick, periodic, seen[1], &x, x.now_ns);
	KUNIT_EXPECT_EQ(test, x.nr_room, 0U);
	changed[2] = entry_move(tw, &ahead, once, seen[0], once->deadline_ns + TICK_NS, &ahead);
	entry_expire(tw, &entry, periodic, &x);
	spin_unlock(&tw->events.lock);
	KUNIT_EXPECT_FALSE(test, changed[0]);
	KUNIT_EXPECT_FALSE(test, changed[1]);
	KUNIT_EXPECT_FALSE(test, changed[2]);
	KUNIT_EXPECT_EQ(test, x.nr_room, 1U);
	KUNIT_EXPECT_EQ(test, nr_inserted, 0ULL);
	KUNIT_EXPECT_EQ(test, shape_of(timeout_state(once)), (u64)PHASE_FREE);
	KUNIT_EXPECT_EQ(test, shape_of(timeout_state(periodic)), (u64)PHASE_FREE);
}

/* G1: up to the last nanosecond before the edge. */
static void nothing_expires_before_its_tick(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t;
	u64 deadline_ns, edge_ns, distance;

	for (distance = 1; distance < 3 * TICK_NS; distance += TICK_NS / 7) {
		u64 now_ns = tw->clock.virtual_now_ns + 12345;

		tw->clock.virtual_now_ns = now_ns;
		t = arm(test, &(struct twheel_arm) { .expires_ns = distance });
		enter(tw);
		deadline_ns = now_ns + distance;
		KUNIT_ASSERT_EQ(test, t->deadline_ns, deadline_ns);
		edge_ns = DIV64_U64_ROUND_UP(deadline_ns, TICK_NS) * TICK_NS;
		expire_at(tw, edge_ns - 1);
		KUNIT_ASSERT_EQ(test, tw->events.nr_unread, 0U);
		expire_at(tw, edge_ns);
		KUNIT_ASSERT_EQ(test, tw->events.nr_unread, 1U);
		KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	}
}

/* G1: its entry comes up early, and is put where the deadline now says. */
static void what_was_moved_later_waits_for_its_new_tick(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, 0);
	u64 id = id_of(t), first_ns = t->deadline_ns + TICK_NS;

	enter(tw);
	rearm(tw, id, &(struct twheel_arm) { .expires_ns = 10 * DELAY_NS });
	expire_at(tw, first_ns);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	KUNIT_EXPECT_EQ(test, state_phase(timeout_state(t)), PHASE_ARMED);
	audit(test);
	expire_at(tw, START_NS + 10 * DELAY_NS - 1);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	expire_at(tw, START_NS + 10 * DELAY_NS + TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
}

/* G1: settimeofday() may set the clock back between ARM and the next pass. */
static void what_was_overdue_until_the_clock_was_set_back_waits_again(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;

	tw->wheel.rewinds = true;
	arm(test, &(struct twheel_arm) {
		.expires_ns = START_NS - TICK_NS / 2,
		.flags = TWHEEL_ARM_ABSOLUTE });
	enter(tw);
	tw->clock.virtual_now_ns = START_NS - TICK_NS + 1;
	expire_at(tw, 0);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	audit(test);
	expire_at(tw, START_NS - 1);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	expire_at(tw, START_NS);
	KUNIT_EXPECT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.fired_ns, START_NS);
}

/* Arm a timeout of each kind that expires by itself, due one after another. */
static void arm_kinds(struct kunit *test)
{
	arm_like(test, 0);
	arm_like(test, PE);
	arm_like(test, SL);
	arm_like(test, PE | FD);
	enter(test->priv);
}

/* Expect an event of each of arm_kinds(), none before its edge. */
static void expect_kinds_in_time(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	unsigned int i;

	expire_at(tw, START_NS + DELAY_NS - 1);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	audit(test);
	expire_at(tw, START_NS + 2 * DELAY_NS - 1);
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_EXPECT_EQ(test, event.deadline_ns, START_NS + DELAY_NS);
		KUNIT_EXPECT_EQ(test, event.count, 1U);
	}
	audit(test);
}

/* G1: nor does what was not due before the pass had read the clock. */
static void what_was_due_until_the_clock_was_set_back_waits_again(struct kunit *test)
{
	struct budget budget = { .entries = INT_MAX, .end_ns = U64_MAX };
	struct twheel *tw = test->priv;

	tw->wheel.rewinds = true;
	arm_kinds(test);
	/* The clock stands at START_NS again. */
	tw->pass.now_ns = START_NS + 2 * DELAY_NS;
	KUNIT_EXPECT_TRUE(test, expire(tw, &budget));
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	KUNIT_EXPECT_EQ(test, tw->pass.now_ns, START_NS);
	expect_kinds_in_time(test);
}

/* G1: nor when it is set back while a batch of entries is worked on. */
static void what_was_taken_out_until_the_clock_was_set_back_waits_again(struct kunit *test)
{
	struct budget budget = { .entries = INT_MAX, .end_ns = U64_MAX };
	struct expiry x = { .now_ns = START_NS + 2 * DELAY_NS };
	struct twheel_entry due[KTHREAD_BATCH];
	struct twheel *tw = test->priv;
	unsigned int nr;
	bool more;

	tw->wheel.rewinds = true;
	arm_kinds(test);
	do {
		nr = twheel_wheel_advance(&tw->wheel, x.now_ns / TICK_NS, due, KTHREAD_BATCH,
					  &more);
		if (!nr)
			continue;
		expire_batch(tw, due, nr, &x);
		KUNIT_ASSERT_EQ(test, x.nr_events, 0U);
		KUNIT_ASSERT_EQ(test, x.nr_room, 0U);
	} while (!tw->wheel.overdue);
	/* Another pass follows at once, should this one end here. */
	KUNIT_EXPECT_EQ(test, twheel_wheel_next(&tw->wheel), 0ULL);
	tw->pass.now_ns = x.now_ns;
	KUNIT_EXPECT_TRUE(test, expire(tw, &budget));
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	KUNIT_EXPECT_GT(test, twheel_wheel_next(&tw->wheel), START_NS / TICK_NS);
	expect_kinds_in_time(test);
}

/* G1, G6: a timeout that was due when it was armed then waits for its edge. */
static void what_was_overdue_in_a_batch_until_the_clock_was_set_back_waits(struct kunit *test)
{
	struct expiry x = { .now_ns = START_NS };
	struct twheel *tw = test->priv;
	struct twheel_timeout *t;
	struct twheel_entry entry;
	bool more;

	tw->wheel.rewinds = true;
	t = arm(test, &(struct twheel_arm) {
		.expires_ns = START_NS - TICK_NS / 2,
		.flags = TWHEEL_ARM_ABSOLUTE });
	enter(tw);
	KUNIT_ASSERT_EQ(test, twheel_wheel_advance(&tw->wheel, START_NS / TICK_NS, &entry, 1,
						   &more), 1U);
	tw->clock.virtual_now_ns = START_NS - TICK_NS + 1;
	expire_batch(tw, &entry, 1, &x);
	KUNIT_EXPECT_FALSE(test, state_is_overdue(timeout_state(t)));
	expire_at(tw, START_NS - 1);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	expire_at(tw, START_NS);
	KUNIT_EXPECT_EQ(test, read_one(tw, NULL), 1);
}

/* G1: a periodic timeout has no event for periods that the clock has not come to. */
static void periods_are_counted_by_the_clock_that_was_set_back(struct kunit *test)
{
	struct expiry x = { .now_ns = START_NS + 10 * PERIOD_NS };
	struct twheel *tw = test->priv;
	struct twheel_entry entry;
	struct twheel_event event;
	bool more;

	tw->wheel.rewinds = true;
	arm_like(test, PE);
	enter(tw);
	while (!twheel_wheel_advance(&tw->wheel, x.now_ns / TICK_NS, &entry, 1, &more))
		;
	tw->clock.virtual_now_ns = entry.tick * TICK_NS;
	expire_batch(tw, &entry, 1, &x);
	KUNIT_ASSERT_EQ(test, x.nr_events, 1U);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 1U);
	KUNIT_EXPECT_EQ(test, event.deadline_ns, START_NS + DELAY_NS);
}

/*
 * G1, G3: a clock that is set back to before the edge at which a timeout came up, and not
 * before its deadline, has come to one of its periods.
 */
static void a_clock_set_back_by_less_than_a_tick_makes_one_period(struct kunit *test)
{
	static const unsigned int kinds[] = { PE, PE | LI, PE | SL };
	struct twheel_entry entry;
	struct twheel_event event;
	unsigned int i;
	bool more;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct expiry x = { .now_ns = START_NS + 10 * PERIOD_NS };
		struct twheel *tw = wheel_remake(test, &usual_setup);
		struct twheel_timeout *t;
		u64 id, deadline_ns;

		tw->clock.virtual_now_ns = START_NS;
		tw->wheel.rewinds = true;
		t = arm_like(test, kinds[i]);
		id = id_of(t);
		deadline_ns = t->deadline_ns;
		enter(tw);
		while (!twheel_wheel_advance(&tw->wheel, x.now_ns / TICK_NS, &entry, 1, &more))
			;
		KUNIT_ASSERT_LT(test, deadline_ns, entry.tick * TICK_NS);
		tw->clock.virtual_now_ns = entry.tick * TICK_NS - 1;
		expire_batch(tw, &entry, 1, &x);
		KUNIT_EXPECT_EQ(test, x.nr_events, 1U);
		KUNIT_EXPECT_EQ(test, tw->events.expirations, 1ULL);
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_EXPECT_EQ(test, event.id, id);
		KUNIT_EXPECT_EQ(test, event.count, 1U);
		KUNIT_EXPECT_EQ(test, event.deadline_ns, deadline_ns);
		KUNIT_EXPECT_EQ(test, event.flags, 0U);
	}
}

/* What a pass lets expire has fired when it began, or later. */
static void an_event_is_not_before_its_pass(struct kunit *test)
{
	struct budget budget = { .entries = INT_MAX, .end_ns = U64_MAX };
	u64 read_ns = START_NS + DELAY_NS + TICK_NS;
	struct twheel *tw = test->priv;
	struct twheel_event event;
	unsigned int i;

	arm_like(test, 0);
	arm_like(test, PE);
	enter(tw);
	tw->pass.now_ns = read_ns;
	expire(tw, &budget);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_EXPECT_EQ(test, event.deadline_ns, START_NS + DELAY_NS);
		KUNIT_EXPECT_EQ(test, event.fired_ns, read_ns);
	}
	KUNIT_EXPECT_EQ(test, tw->events.max_late_ns, TICK_NS);
}

/* fired_ns is when the event was there, however long ago the pass began. */
static void an_event_tells_when_it_was_made(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;

	arm_like(test, 0);
	pass(tw);
	tw->clock.virtual_now_ns = START_NS + DELAY_NS + TICK_NS;
	pass_begin(tw);
	tw->clock.virtual_now_ns += 777;
	pass(tw);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.fired_ns, START_NS + DELAY_NS + TICK_NS + 777);
}

/* G2: neither emptying the slots nor filling them again is done in one turn. */
static void a_clock_set_back_is_followed_by_turns(struct kunit *test)
{
	const unsigned int nr = 18000;
	struct twheel *tw = wheel_with(test, slots, 1 << 15);
	unsigned int i;

	tw->wheel.rewinds = true;
	tw->clock.virtual_now_ns = START_NS;
	pass(tw);
	for (i = 0; i < nr; i++) {
		arm(test, &(struct twheel_arm) {
			.expires_ns = START_NS + (i + 2) * TICK_NS,
			.flags = TWHEEL_ARM_ABSOLUTE });
		if (i % TURN_BUDGET == 0)
			pass(tw);
	}
	pass(tw);
	/* In the same tick nothing is sorted. */
	KUNIT_EXPECT_EQ(test, pass(tw), 1U);
	tw->clock.virtual_now_ns = START_NS / 2;
	/* A unit of the budget is MOVES_PER_DUE slots or entries. */
	KUNIT_EXPECT_EQ(test, pass(tw), 2 * nr / (4U * TURN_BUDGET) + 1);
	audit(test);
	/* While that is under way, once more, and a timeout before all others. */
	tw->clock.virtual_now_ns = START_NS;
	pass(tw);
	tw->clock.virtual_now_ns = START_NS / 2;
	work_take(tw);
	twheel_pass_turn(&tw->wake.turn, U64_MAX);
	KUNIT_ASSERT_TRUE(test, tw->pass.begun);
	arm(test, &(struct twheel_arm) {
		.expires_ns = START_NS / 2, .flags = TWHEEL_ARM_ABSOLUTE });
	tw->clock.virtual_now_ns = START_NS / 4;
	pass(tw);
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS / 2);
	tw->clock.virtual_now_ns = START_NS / 2;
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
	audit(test);
	tw->clock.virtual_now_ns = START_NS + (nr + 1) * TICK_NS;
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, nr + 1);
}

static void lateness_counts_from_the_deadline_but_not_of_the_overdue(struct kunit *test)
{
	struct twheel *tw = test->priv;

	arm(test, &(struct twheel_arm) {
		.expires_ns = 5, .flags = TWHEEL_ARM_ABSOLUTE });
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
	KUNIT_EXPECT_EQ(test, tw->events.max_late_ns, 0ULL);
	arm_like(test, 0);
	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + 3 * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->events.max_late_ns, 3 * TICK_NS);
}

/* G3, G4: every pending timeout gets an event, and one that is unread keeps its own. */
static void drain_makes_an_event_of_what_is_left(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, deed_drain, start->to.drain, 0);
}

/* G2: other wheels have turns before all is drained. */
static void a_drain_goes_by_turns(struct kunit *test)
{
	struct twheel *tw = test->priv;

	arm_many(test, INBOX_WATERMARK, NULL);
	pass(tw);
	WRITE_ONCE(tw->control.draining, true);
	tw->wake.drain_wanted = true;
	KUNIT_EXPECT_TRUE(test, twheel_pass_turn(&tw->wake.turn, U64_MAX));
	KUNIT_EXPECT_LE(test, tw->events.nr_unread, (u32)(TURN_BUDGET + PLACES_PER_PAGE));
	KUNIT_EXPECT_FALSE(test, tw->control.drained);
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, (u32)INBOX_WATERMARK);
	KUNIT_EXPECT_TRUE(test, tw->control.drained);
	audit(test);
}

/*
 * Many places that are free and keep their entries, and @nr_new timeouts in the inbox.
 * Returns how many entries there are.
 */
static long free_places_keep_entries(struct kunit *test, unsigned int nr_new)
{
	const unsigned int nr = 2 * INBOX_WATERMARK;
	struct twheel *tw = test->priv;
	u64 *ids = kunit_kcalloc(test, nr, sizeof(*ids), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	for (i = 0; i < nr; i += INBOX_WATERMARK) {
		arm_many(test, INBOX_WATERMARK, ids + i);
		pass(tw);
	}
	arm_many(test, nr_new, NULL);
	for (i = 0; i < nr; i++)
		cancel(tw, ids[i]);
	kunit_kfree(test, ids);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), (long)(nr + nr_new));
	return nr + nr_new;
}

/*
 * Has turns until @left of @nr entries are left.  Returns how many were dropped in the first
 * pass.
 */
static long entries_are_dropped_by_turns(struct kunit *test, long nr, long left)
{
	struct twheel *tw = test->priv;
	long used, in_a_pass = 0;
	unsigned int turns = 0;

	while ((used = atomic_long_read(&tw->room.used)) > left && turns++ < nr) {
		twheel_pass_turn(&tw->wake.turn, U64_MAX);
		KUNIT_EXPECT_LE(test, used - atomic_long_read(&tw->room.used),
				(long)(TURN_BUDGET + 2 * KTHREAD_BATCH));
		if (!in_a_pass && !tw->pass.begun)
			in_a_pass = nr - atomic_long_read(&tw->room.used);
	}
	KUNIT_EXPECT_EQ(test, used, left);
	KUNIT_EXPECT_GE(test, turns, (nr - left) / (TURN_BUDGET + 2 * KTHREAD_BATCH));
	work_take(tw);
	audit(test);
	return in_a_pass;
}

/* G2: a turn ends before all entries are dropped; G7: a pass drops more if it inserts more. */
static void a_sweep_goes_by_turns(struct kunit *test)
{
	const unsigned int nr_new = 3000;
	struct twheel *tw = test->priv;
	long nr = free_places_keep_entries(test, nr_new);

	tw->room.starved = true;
	KUNIT_EXPECT_GT(test, entries_are_dropped_by_turns(test, nr, nr_new),
			(long)(TURN_BUDGET + 2 * KTHREAD_BATCH));
}

static void a_look_ahead_at_free_places_goes_by_turns(struct kunit *test)
{
	entries_are_dropped_by_turns(test, free_places_keep_entries(test, 0), 0);
}

/*
 * G4: a sweep has spared the entries of many free places when a caller finds no room.  Those
 * are dropped, too.
 */
static void a_sweep_that_spares_entries_begins_anew_for_who_waits(struct kunit *test)
{
	struct twheel *tw = test->priv;
	long nr = free_places_keep_entries(test, 0);
	unsigned int i;

	twheel_wheel_sweep_begin(&tw->wheel);
	tw->pass.sweeping = true;
	/* More than a look ahead in the last turn makes up for. */
	for (i = 0; i < 3; i++)
		twheel_pass_turn(&tw->wake.turn, U64_MAX);
	KUNIT_EXPECT_TRUE(test, tw->pass.sweeping);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), nr);
	tw->room.starved = true;
	for (i = 0; tw->pass.sweeping && i < nr; i++)
		twheel_pass_turn(&tw->wake.turn, U64_MAX);
	KUNIT_EXPECT_FALSE(test, tw->room.starved);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 0L);
	work_take(tw);
	audit(test);
}

/* Looking ahead */

/* Arms @nr timeouts a tick apart, the first one 10 ticks ahead, and has them in the wheel. */
static void row_arm(struct kunit *test, unsigned int nr, u64 *ids)
{
	struct twheel *tw = test->priv;
	unsigned int i;

	for (i = 0; i < nr; i++)
		ids[i] = id_of(arm(test, &(struct twheel_arm) {
			.expires_ns = (10 + i) * TICK_NS }));
	pass(tw);
	KUNIT_ASSERT_EQ(test, tw->wake.at_ns, START_NS + 10 * TICK_NS);
}

/* More than one level reaches. */
#define ROW	200

/* G6: no alarm is set for slots of stale entries. */
static void slots_of_the_cancelled_are_cleared_ahead_of_time(struct kunit *test)
{
	static u64 ids[ROW];
	struct twheel *tw = test->priv;
	unsigned int i;

	row_arm(test, ROW, ids);
	for (i = 0; i < ROW - 1; i++)
		cancel(tw, ids[i]);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	pass(tw);
	/* One slot is left, of 32 ticks, which holds the last timeout. */
	KUNIT_EXPECT_LE(test, atomic_long_read(&tw->room.used), 32L);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	KUNIT_EXPECT_GT(test, tw->wake.at_ns, START_NS + 100 * TICK_NS);
	KUNIT_EXPECT_LE(test, tw->wake.at_ns, START_NS + (9 + ROW) * TICK_NS);
	cancel(tw, ids[ROW - 1]);
	pass(tw);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 0L);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NEVER);
}

/* G1, G6: no alarm is set for the slots that these timeouts have left. */
static void slots_of_what_was_moved_later_are_cleared_ahead_of_time(struct kunit *test)
{
	static u64 ids[ROW];
	struct twheel *tw = test->priv;
	u64 last_ns = START_NS + 10000 * TICK_NS;
	unsigned int i;

	row_arm(test, ROW, ids);
	for (i = 0; i < ROW; i++)
		rearm(tw, ids[i], &(struct twheel_arm) {
			.expires_ns = last_ns, .flags = TWHEEL_ARM_ABSOLUTE });
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	pass(tw);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), (long)ROW);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	KUNIT_EXPECT_GT(test, tw->wake.at_ns, START_NS + 1000 * TICK_NS);
	audit(test);
	tw->clock.virtual_now_ns = last_ns - 1;
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	tw->clock.virtual_now_ns = last_ns;
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, (u32)ROW);
}

/*
 * G2, G7: the alarm is set for a live entry.  What its slot holds besides is dropped, and the
 * entry is put back with each chunk that it is in, until it is the first one of its chunk.
 */
static void what_lives_stays_where_it_is(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 inserted, ids[20];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++)
		ids[i] = id_of(arm_like(test, 0));
	pass(tw);
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		if (i != 13)
			cancel(tw, ids[i]);
	for (i = 0; i < 3; i++) {
		inserted = nr_inserted;
		pass(tw);
		KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS + 6 * TICK_NS);
		KUNIT_EXPECT_EQ(test, nr_inserted, inserted + (i ? 0 : 2));
		KUNIT_EXPECT_EQ(test, tw->wheel.nr_entries, 1ULL);
		audit(test);
	}
	tw->clock.virtual_now_ns += 6 * TICK_NS;
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
}

/* G2: neither the inbox nor a timeout that is due waits until all slots are looked at. */
static void looking_ahead_goes_by_turns(struct kunit *test)
{
	const unsigned int nr = 3 * TURN_BUDGET;
	struct twheel *tw = test->priv;
	u64 *ids = kunit_kcalloc(test, nr, sizeof(*ids), GFP_KERNEL);
	unsigned int i, passes = 0;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	/* All of them live, so there is no sweep. */
	arm_many(test, nr, ids);
	pass(tw);
	for (i = 0; i < nr; i++)
		rearm(tw, ids[i], &(struct twheel_arm) {
			.expires_ns = 1000 * TICK_NS });
	do {
		KUNIT_EXPECT_EQ(test, pass(tw), 1U);
		if (++passes == 2)
			arm_like(test, OV);
		KUNIT_EXPECT_EQ(test, tw->events.nr_unread, (u32)(passes > 2));
		KUNIT_ASSERT_LT(test, passes, 10U);
	} while (work_take(tw));
	KUNIT_EXPECT_GE(test, passes, 3U);
	KUNIT_EXPECT_GT(test, tw->wake.at_ns, START_NS + 100 * TICK_NS);
}

/*
 * G7: idle connections, each refreshed much more often than its timeout is long, beside
 * passes in each tick.  The reason for a pass must not matter.
 */
#define LENGTH	300
#define ROUNDS	4

/* Returns how often the kthread moved an entry. */
static u64 moves_of_idle_connections(struct kunit *test, u64 *ids,
				     unsigned int nr, u64 beside_ns)
{
	struct twheel *tw = test->priv;
	unsigned int tick, i = 0;
	u64 moves = 0;

	for (tick = 0; tick < ROUNDS * LENGTH; tick++) {
		u64 inserted;
		unsigned int k;

		/* All of them in a tenth of their length. */
		for (k = 0; k < nr / (LENGTH / 10); k++, i++)
			rearm(tw, ids[i % nr], &(struct twheel_arm) {
				.expires_ns = LENGTH * TICK_NS });
		if (beside_ns != WAKE_NEVER)
			arm(test, &(struct twheel_arm) { .expires_ns = beside_ns });
		inserted = nr_inserted;
		pass(tw);
		moves += nr_inserted - inserted - (beside_ns != WAKE_NEVER);
		while (read_one(tw, NULL))
			;
		tw->clock.virtual_now_ns += TICK_NS;
	}
	return moves;
}

static void a_refreshed_timeout_moves_twice_in_its_length_at_most(struct kunit *test)
{
	static const u64 beside_ns[] = {
		WAKE_NEVER, 0, 1, TICK_NS, 7 * TICK_NS, LENGTH / 3 * TICK_NS,
	};
	static u64 ids[LENGTH];
	struct twheel *tw = test->priv;
	unsigned int i;
	u64 moves;

	/* One timeout is there all the time, and never moves. */
	arm(test, &(struct twheel_arm) {
		.expires_ns = 100 * ROUNDS * LENGTH * TICK_NS });
	for (i = 0; i < LENGTH; i++)
		ids[i] = id_of(arm(test, &(struct twheel_arm) {
			.expires_ns = LENGTH * TICK_NS }));
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
 * G6: entries that are left alone, since they would move by little, wake the kthread no
 * more often than the time to the first live one can be halved.
 */
static void wake_ups_in_vain_are_few_before_the_first_is_due(struct kunit *test)
{
	const unsigned int nr = 4000;
	struct twheel *tw = test->priv;
	u64 *ids = kunit_kcalloc(test, nr, sizeof(*ids), GFP_KERNEL);
	u64 first_ns = START_NS + (nr + 10) * TICK_NS;
	unsigned int i, woken = 0;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	row_arm(test, nr, ids);
	for (i = 0; i < nr; i++)
		rearm(tw, ids[i], &(struct twheel_arm) {
			.expires_ns = first_ns, .flags = TWHEEL_ARM_ABSOLUTE });
	while (!tw->events.nr_unread) {
		/* Slots of the three levels are emptied on the way. */
		KUNIT_ASSERT_LT(test, woken++, 13U + 20);
		KUNIT_ASSERT_LE(test, tw->wake.at_ns, first_ns);
		tw->clock.virtual_now_ns = max(tw->clock.virtual_now_ns, tw->wake.at_ns);
		pass(tw);
	}
	KUNIT_EXPECT_EQ(test, tw->clock.virtual_now_ns, first_ns);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, nr);
	kunit_info(test, "%u wake-ups\n", woken);
}

static struct kunit_case pass_cases[] = {
	KUNIT_CASE_PARAM(the_inbox_lets_in_what_lives_and_frees_what_is_dead, start_gen_params),
	KUNIT_CASE(a_sequence_number_that_comes_round_leaves_the_generation),
	KUNIT_CASE(a_full_inbox_is_emptied_turn_by_turn),
	KUNIT_CASE(a_turn_ends_with_its_time),
	KUNIT_CASE_PARAM(expiry_makes_one_event_and_goes_on_as_the_life_says, start_gen_params),
	KUNIT_CASE(an_entry_of_any_other_sequence_number_is_stale),
	KUNIT_CASE(an_entry_of_what_is_not_armed_is_stale),
	KUNIT_CASE(an_expiry_that_a_cancel_overtook_makes_no_event),
	KUNIT_CASE(an_entry_whose_timeout_a_cancel_ended_gives_its_room_back),
	KUNIT_CASE(nothing_expires_before_its_tick),
	KUNIT_CASE(what_was_moved_later_waits_for_its_new_tick),
	KUNIT_CASE(what_was_overdue_until_the_clock_was_set_back_waits_again),
	KUNIT_CASE(what_was_due_until_the_clock_was_set_back_waits_again),
	KUNIT_CASE(what_was_taken_out_until_the_clock_was_set_back_waits_again),
	KUNIT_CASE(what_was_overdue_in_a_batch_until_the_clock_was_set_back_waits),
	KUNIT_CASE(periods_are_counted_by_the_clock_that_was_set_back),
	KUNIT_CASE(a_clock_set_back_by_less_than_a_tick_makes_one_period),
	KUNIT_CASE(an_event_is_not_before_its_pass),
	KUNIT_CASE(an_event_tells_when_it_was_made),
	KUNIT_CASE(a_clock_set_back_is_followed_by_turns),
	KUNIT_CASE(lateness_counts_from_the_deadline_but_not_of_the_overdue),
	KUNIT_CASE_PARAM(drain_makes_an_event_of_what_is_left, start_gen_params),
	KUNIT_CASE(a_drain_goes_by_turns),
	KUNIT_CASE(a_sweep_goes_by_turns),
	KUNIT_CASE(a_sweep_that_spares_entries_begins_anew_for_who_waits),
	KUNIT_CASE(a_look_ahead_at_free_places_goes_by_turns),
	KUNIT_CASE(slots_of_the_cancelled_are_cleared_ahead_of_time),
	KUNIT_CASE(slots_of_what_was_moved_later_are_cleared_ahead_of_time),
	KUNIT_CASE(what_lives_stays_where_it_is),
	KUNIT_CASE(looking_ahead_goes_by_turns),
	KUNIT_CASE(a_refreshed_timeout_moves_twice_in_its_length_at_most),
	KUNIT_CASE(wake_ups_in_vain_are_few_before_the_first_is_due),
	{}
};

ENGINE_SUITE(pass);
