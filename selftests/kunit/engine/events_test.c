// SPDX-License-Identifier: GPL-2.0
/*
 * engine/events.c: the ready list, and reading it
 */

/* G3, G4: a read ends a timeout that is over, and lets a periodic one go on. */
static void read_takes_the_event_and_what_ended_with_it(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, deed_read, start->to.read, 0);
}

/* G3, G4: the event was taken, or has changed, between look and commit. */
static void a_read_that_was_overtaken_takes_nothing(struct kunit *test)
{
	const struct loss *loss = test->param_value;
	struct twheel *tw = test->priv;
	struct twheel_event event;
	s64 before[NR_TALLIES];
	struct twheel_timeout *t;
	struct twheel_look look;
	unsigned int nr;
	u64 state, id;

	t = bring(test, &loss->start, &id);
	nr = twheel_events_look(tw, &event, &look, 1);
	KUNIT_ASSERT_EQ(test, nr, (unsigned int)state_is_unread(loss->start.state));
	if (!nr)
		return;
	state = lose(test, t, id, before);
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 0U);
	KUNIT_EXPECT_EQ(test, (u64)timeout_state(t), state);
	expect_delta(test, before, nothing);
}

/* A periodic timeout whose event was looked at before others were taken. */
static struct twheel_timeout *look_at_one(struct kunit *test, struct twheel_event *event,
					  struct twheel_look *look)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, PE);

	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, event, look, 1), 1U);
	tw->events.changes++;
	return t;
}

/* G4: the sequence number may have come round since the look; the count has not. */
static void an_event_that_grew_is_not_taken_whatever_its_state_says(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	struct twheel_look look;
	struct twheel_timeout *t = look_at_one(test, &event, &look);

	timeout_periodic(t)->count[timeout_slot(t)]++;
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 0U);
	timeout_periodic(t)->count[timeout_slot(t)]--;
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 1U);
}

/* G3: it has come round, and the event is a later one: other readers took those before it. */
static void a_later_event_is_not_taken_whatever_its_state_says(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	struct twheel_look look;
	struct twheel_timeout *t = look_at_one(test, &event, &look);

	t->deadline_ns += PERIOD_NS;
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 0U);
	t->deadline_ns -= PERIOD_NS;
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 1U);
}

/* G4: the last periods pass while the event is copied, and a drain counts them. */
static void an_event_that_a_drain_completed_is_looked_at_again(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	struct twheel_look look;

	arm_like(test, LI);
	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, event.count, 1U);
	tw->clock.virtual_now_ns += 5 * PERIOD_NS;
	drain(tw);
	/* The second expiration is not lost. */
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 0U);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, event.count, 2U);
	KUNIT_EXPECT_EQ(test, event.flags, TWHEEL_EVENT_ENDED);
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 2ULL);
	KUNIT_EXPECT_EQ(test, tw->events.completed, 1ULL);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 0L);
}

/* G3: what the event says is what becomes of the timeout, at whichever period it is read. */
static void an_event_says_ended_exactly_if_its_timeout_ends(struct kunit *test)
{
	static const struct { u64 like; unsigned int periods; bool ended; } rows[] = {
		{ 0, 0, true },
		{ 0, 3, true },
		{ PE, 0, false },
		{ PE, 3, false },
		{ LI, 0, false },
		{ LI, 1, true },
		{ LI, 3, true },
		{ FD, 0, false },
		{ FD, 3, false },
		{ FD | STATE_LIMITED, 0, false },
	};
	struct twheel *tw = test->priv;
	struct twheel_event event;
	struct twheel_timeout *t;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		t = arm_like(test, rows[i].like);
		enter(tw);
		expire_at(tw, tw->clock.virtual_now_ns + DELAY_NS + TICK_NS);
		tw->clock.virtual_now_ns += rows[i].periods * PERIOD_NS;
		KUNIT_ASSERT_EQ_MSG(test, read_one(tw, &event), 1, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, event.flags,
				    rows[i].ended ? TWHEEL_EVENT_ENDED : 0U, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, state_is_live(timeout_state(t)), !rows[i].ended,
				    "row %u", i);
		if (!rows[i].ended)
			cancel(tw, event.id);
		pass(tw);
	}
}

/*
 * G3: the limit is reached while an event that did not say so is copied.  The timeout
 * goes on, and its next event says so.
 */
static void a_limit_that_is_reached_while_copying_is_told_by_the_next_event(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	struct twheel_look look;

	arm_like(test, LI);
	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, event.flags, 0U);
	tw->clock.virtual_now_ns += 5 * PERIOD_NS;
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, tw->events.completed, 0ULL);
	pass(tw);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 1U);
	KUNIT_EXPECT_EQ(test, event.flags, TWHEEL_EVENT_ENDED);
	KUNIT_EXPECT_EQ(test, tw->events.completed, 1ULL);
}

/* G3: of four events the third is revoked before commit. */
static void a_batch_of_events_stops_at_the_first_that_was_overtaken(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event events[4];
	struct twheel_look look;
	int i;

	for (i = 0; i < 4; i++)
		arm_like(test, 0);
	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, events, &look, 4), 4U);
	cancel(tw, events[2].id);
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, events, &look, 4), 2U);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
	KUNIT_EXPECT_EQ(test, tw->events.delivered, 2ULL);
	KUNIT_EXPECT_EQ(test, tw->events.revoked, 1ULL);
}

/* G3: DRAIN came between look and commit, so that no period follows. */
static void a_fixed_delay_read_beside_a_drain_ends_with_it(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	struct twheel_look look;

	arm_like(test, FD);
	enter(tw);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, event.flags, 0U);
	WRITE_ONCE(tw->control.draining, true);
	/* The event would tell the reader something wrong: no period follows. */
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 0U);
	KUNIT_EXPECT_EQ(test, tw->events.delivered, 0ULL);
	KUNIT_ASSERT_EQ(test, twheel_events_look(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, event.flags, TWHEEL_EVENT_DRAINED | TWHEEL_EVENT_ENDED);
	KUNIT_EXPECT_EQ(test, twheel_events_commit(tw, &event, &look, 1), 1U);
	KUNIT_EXPECT_EQ(test, tw->events.drained_out, 1ULL);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 0L);
}

/* G4: four events are taken out of the list in every order there is. */
static void the_ready_list_holds_in_every_order_of_taking(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int order, i;

	for (order = 0; order < 24; order++) {
		u64 ids[4], id;
		unsigned int rest = order;

		for (i = 0; i < 4; i++)
			ids[i] = id_of(arm_like(test, 0));
		enter(tw);
		expire_at(tw, tw->clock.virtual_now_ns + DELAY_NS + TICK_NS);
		audit(test);
		for (i = 4; i; i--) {
			swap(ids[rest % i], ids[i - 1]);
			rest /= i;
			id = ids[i - 1];
			KUNIT_ASSERT_EQ(test, cancel(tw, id), TWHEEL_WAS_UNREAD);
			KUNIT_ASSERT_EQ(test, (unsigned int)audit_ready(test),
					i - 1);
		}
		KUNIT_ASSERT_NULL(test, tw->events.first);
	}
}

static void events_come_in_the_order_of_their_ticks(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_event event;
	u64 last_ns = 0;
	unsigned int i;

	/* 7 and 50 have no common factor: each deadline once, in disorder. */
	for (i = 0; i < 50; i++)
		arm(test, &(struct twheel_arm) {
			.expires_ns = (1 + i * 7 % 50) * TICK_NS });
	tw->clock.virtual_now_ns += 100 * TICK_NS;
	pass(tw);
	for (i = 0; i < 50; i++) {
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_ASSERT_GT(test, event.deadline_ns, last_ns);
		last_ns = event.deadline_ns;
	}
	KUNIT_EXPECT_EQ(test, read_one(tw, &event), 0);
}

static void an_event_tells_whose_it_is_and_when_it_was(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, PE);
	struct twheel_event event;
	const u64 fired_ns = START_NS + DELAY_NS + 2 * PERIOD_NS + TICK_NS;

	enter(tw);
	expire_at(tw, fired_ns);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.id, id_of(t));
	KUNIT_EXPECT_EQ(test, event.user_data, 0x1122334455667788ULL);
	/* There were three expirations; the latest one is told. */
	KUNIT_EXPECT_EQ(test, event.count, 3U);
	KUNIT_EXPECT_EQ(test, event.deadline_ns,
			START_NS + DELAY_NS + 2 * PERIOD_NS);
	KUNIT_EXPECT_EQ(test, event.fired_ns, fired_ns);
	KUNIT_EXPECT_EQ(test, event.flags, 0U);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, START_NS + DELAY_NS + 3 * PERIOD_NS);
	/* The next event counts from one. */
	enter(tw);
	expire_at(tw, t->deadline_ns + TICK_NS);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 1U);
}

static struct kunit_case events_cases[] = {
	KUNIT_CASE_PARAM(read_takes_the_event_and_what_ended_with_it, start_gen_params),
	KUNIT_CASE_PARAM(a_read_that_was_overtaken_takes_nothing, loss_gen_params),
	KUNIT_CASE(an_event_that_grew_is_not_taken_whatever_its_state_says),
	KUNIT_CASE(a_later_event_is_not_taken_whatever_its_state_says),
	KUNIT_CASE(an_event_that_a_drain_completed_is_looked_at_again),
	KUNIT_CASE(an_event_says_ended_exactly_if_its_timeout_ends),
	KUNIT_CASE(a_limit_that_is_reached_while_copying_is_told_by_the_next_event),
	KUNIT_CASE(a_batch_of_events_stops_at_the_first_that_was_overtaken),
	KUNIT_CASE(a_fixed_delay_read_beside_a_drain_ends_with_it),
	KUNIT_CASE(the_ready_list_holds_in_every_order_of_taking),
	KUNIT_CASE(events_come_in_the_order_of_their_ticks),
	KUNIT_CASE(an_event_tells_whose_it_is_and_when_it_was),
	{}
};

ENGINE_SUITE(events);
