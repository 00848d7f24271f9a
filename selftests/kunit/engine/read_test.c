// SPDX-License-Identifier: GPL-2.0
/*
 * engine/read.c and expire.h: the list of events, and reading it
 */

/* G3, G4: a read ends a timeout that is over, and lets a periodic one go on. */
static void read_takes_the_event_and_the_timeout_that_ended_with_it(struct kunit *test)
{
	const struct start *start = test->param_value;

	expect_outcome(test, action_read, start->to.read);
}

/* G3: the event says whether the timeout ends, at whichever period it is read. */
static void an_event_says_ended_exactly_if_its_timeout_ends(struct kunit *test)
{
	static const struct { u32 kind; unsigned int periods; bool ended; } rows[] = {
		{ 0, 0, true },
		{ 0, 3, true },
		{ SL, 3, true },
		{ PE, 0, false },
		{ PE, 3, false },
		{ LI, 0, false },
		{ LI, 1, true },
		{ LI, 3, true },
		{ FD, 0, false },
		{ FD, 3, false },
		{ FD | LI, 0, false },
	};
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;
	struct twheel_timeout *t;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		t = arm_like(test, rows[i].kind);
		expire_at(tw, time_of(tw) + DELAY_NS + 2 * TICK_NS);
		time_set(tw, time_of(tw) + rows[i].periods * PERIOD_NS);
		KUNIT_ASSERT_EQ_MSG(test, read_one(tw, &event), 1, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, event.flags,
				    rows[i].ended ? TWHEEL_EVENT_ENDED : 0U, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, timeout_is_live(t), !rows[i].ended, "row %u", i);
		if (!rows[i].ended)
			cancel(tw, event.id);
	}
}

/* G3: if a wheel is draining, no period follows, and the event says so. */
static void a_periodic_event_that_is_read_in_a_drain_is_the_last_one(struct kunit *test)
{
	static const u32 kinds[] = { PE, FD, PE | SL, FD | LI };
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		arm_like(test, kinds[i]);
	expire_at(tw, START_NS + DELAY_NS + 2 * TICK_NS);
	/* The steps of the drain have yet to reach it. */
	WRITE_ONCE(tw->control.draining, true);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_EXPECT_EQ(test, event.flags, TWHEEL_EVENT_DRAINED | TWHEEL_EVENT_ENDED);
		KUNIT_EXPECT_EQ(test, event.count, 1U);
	}
	KUNIT_EXPECT_EQ(test, tw->events.drained, 4ULL);
	KUNIT_EXPECT_EQ(test, tw->places.nr_taken, 0U);
}

/* G4: four events are taken out of the list in every possible order. */
static void the_list_of_events_holds_in_every_order_of_taking(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	unsigned int order, i;

	for (order = 0; order < 24; order++) {
		u64 ids[4], id;
		unsigned int rest = order;

		for (i = 0; i < 4; i++)
			KUNIT_ASSERT_EQ(test, arm_plain(tw, &ids[i]), 0);
		expire_at(tw, time_of(tw) + DELAY_NS + TICK_NS);
		audit(test);
		for (i = 4; i; i--) {
			swap(ids[rest % i], ids[i - 1]);
			rest /= i;
			id = ids[i - 1];
			KUNIT_ASSERT_EQ(test, cancel(tw, id), TWHEEL_WAS_UNREAD);
			KUNIT_ASSERT_EQ(test, nr_unread(tw), i - 1);
			audit(test);
		}
		KUNIT_ASSERT_PTR_EQ(test, tw->events.first, &tw->events.end);
	}
}

static void events_come_in_the_order_of_their_ticks(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;
	u64 last_ns = 0;
	unsigned int i;

	/* 7 and 200 have no common factor: each deadline comes once, in disorder, in all levels. */
	for (i = 0; i < 200; i++)
		arm(test, &(struct twheel_arm) {
			.expires_ns = (1 + i * 7 % 200) * TICK_NS, .slack_ticks = i % 20 == 0 });
	time_set(tw, START_NS + 300 * TICK_NS);
	pass(tw);
	for (i = 0; i < 200; i++) {
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_ASSERT_GE(test, event.deadline_ns + TICK_NS, last_ns);
		last_ns = event.deadline_ns;
	}
	KUNIT_EXPECT_EQ(test, read_one(tw, &event), 0);
}

static void an_event_says_whose_it_is_and_when_it_was(struct kunit *test)
{
	static const u32 kinds[] = { 0, SL, PE };
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct twheel_arm how = arm_of(kinds[i], 0);
		u64 now_ns = time_of(tw), fired_ns = now_ns + DELAY_NS + 2 * PERIOD_NS + 7;

		arm(test, &how);
		expire_at(tw, fired_ns);
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_EXPECT_EQ(test, event.id, how.id);
		KUNIT_EXPECT_EQ(test, event.user_data, how.user_data);
		KUNIT_EXPECT_EQ(test, event.fired_ns, fired_ns);
		/* A periodic one has expired twice; the event has the latest time. */
		KUNIT_EXPECT_EQ(test, event.count, kinds[i] & PE ? 2U : 1U);
		KUNIT_EXPECT_EQ(test, event.deadline_ns,
				now_ns + DELAY_NS + (kinds[i] & PE ? PERIOD_NS : 0));
		time_set(tw, START_NS + (i + 1) * 100 * TICK_NS);
		pass(tw);
	}
}

/*
 * G4: whichever access faults, the events before it are taken and the others stay, in their
 * order.
 */
static void a_read_that_faults_anywhere_loses_no_event(struct kunit *test)
{
	static const u32 kinds[] = { 0, 0, PE, SL, 0, FD };
	struct twheel_event *events = kunit_kcalloc(test, 6, sizeof(*events), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	bool faulted = true;
	int nr, done, i;
	u64 ids[6];

	KUNIT_ASSERT_NOT_NULL(test, events);
	for (nr = 0; faulted; nr++) {
		for (i = 0; i < 6; i++) {
			struct twheel_arm how = arm_of(kinds[i], 0);

			arm(test, &how);
			ids[i] = how.id;
			expire_at(tw, time_of(tw) + DELAY_NS + 2 * TICK_NS);
		}
		faults_begin(nr);
		done = read_some(tw, events, sizeof(*events), 6);
		faulted = faults_end();
		audit(test);
		if (done == -EFAULT)
			done = 0;
		KUNIT_ASSERT_EQ(test, faulted, done < 6);
		KUNIT_ASSERT_EQ(test, nr_unread(tw), (u32)(6 - done));
		if (done < 6)
			KUNIT_ASSERT_EQ(test, read_some(tw, events + done, sizeof(*events), 6),
					6 - done);
		for (i = 0; i < 6; i++) {
			KUNIT_ASSERT_EQ(test, events[i].id, ids[i]);
			KUNIT_ASSERT_EQ(test, cancel(tw, ids[i]),
					kinds[i] & PE ? TWHEEL_WAS_PENDING : -ENOENT);
		}
	}
	KUNIT_EXPECT_GT(test, nr, 3 * 6 + 3);
}

/* If a program is of another release, its events have another size. */
static void an_event_is_as_long_as_the_reader_wants_it(struct kunit *test)
{
	u32 size = TWHEEL_EVENT_SIZE_MIN + 16;
	u8 *to = kunit_kzalloc(test, 4 * size, GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;
	unsigned int i, j;
	u64 ids[3];

	KUNIT_ASSERT_NOT_NULL(test, to);
	memset(to, 0xaa, 4 * size);
	for (i = 0; i < 3; i++) {
		struct twheel_arm how = arm_of(OV, 0);

		arm(test, &how);
		ids[i] = how.id;
	}
	KUNIT_ASSERT_EQ(test, read_some(tw, to, size, 4), 3);
	for (i = 0; i < 3; i++) {
		memcpy(&event, to + i * size, sizeof(event));
		KUNIT_EXPECT_EQ(test, event.id, ids[i]);
		for (j = sizeof(event); j < size; j++)
			KUNIT_ASSERT_EQ(test, to[i * size + j], 0);
	}
	/* No byte is written beyond the events. */
	for (j = 3 * size; j < 4 * size; j++)
		KUNIT_ASSERT_EQ(test, to[j], 0xaa);
}

static void read_takes_no_more_events_than_it_has_room_for(struct kunit *test)
{
	struct twheel_event *events = kunit_kcalloc(test, 32, sizeof(*events), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	unsigned int nr, i;

	KUNIT_ASSERT_NOT_NULL(test, events);
	for (nr = 1; nr < 8; nr++) {
		for (i = 0; i < 8; i++)
			arm_like(test, i == 4 ? OV | SL : OV);
		KUNIT_ASSERT_EQ(test, read_some(tw, events, sizeof(*events), nr), (int)nr);
		KUNIT_ASSERT_EQ(test, nr_unread(tw), 8 - nr);
		KUNIT_ASSERT_EQ(test, read_some(tw, events, sizeof(*events), 32), (int)(8 - nr));
		KUNIT_ASSERT_EQ(test, read_some(tw, events, sizeof(*events), 32), 0);
	}
	KUNIT_EXPECT_EQ(test, tw->events.delivered, 56ULL);
	KUNIT_EXPECT_EQ(test, tw->events.completed, 56ULL);
}

/*
 * G4: if an access faults at any byte of an event, the events that follow come to their own places:
 * the caller has the fault served, and goes on with the same iterator.
 */
static void an_event_that_faults_shifts_none_behind_it(struct kunit *test)
{
	static const u32 kinds[] = { 0, PE, 0 };
	u32 size = sizeof(struct twheel_event);
	u8 *to = kunit_kzalloc(test, 4 * (size + 16), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	struct iov_iter iter;
	unsigned int longer, i;
	bool faulted;
	int nr, done;
	u64 ids[3];

	KUNIT_ASSERT_NOT_NULL(test, to);
	for (longer = 0; longer < 2; longer++, size += 16) {
		for (nr = 0, faulted = true; faulted; nr++) {
			for (i = 0; i < ARRAY_SIZE(kinds); i++) {
				ids[i] = timeout_id(arm_like(test, kinds[i]));
				expire_at(tw, time_of(tw) + DELAY_NS + 2 * TICK_NS);
			}
			iov_iter_ubuf(&iter, READ, (void __user __force *)to, 3 * size);
			faults_begin(nr);
			done = twheel_read_step(tw, &iter, size, 3);
			faulted = faults_end();
			done = max(done, 0);
			KUNIT_ASSERT_EQ(test, iov_iter_count(&iter), (size_t)(3 - done) * size);
			if (faulted)
				KUNIT_ASSERT_EQ(test, twheel_read_step(tw, &iter, size, 3),
						3 - done);
			for (i = 0; i < ARRAY_SIZE(kinds); i++) {
				struct twheel_event event;

				memcpy(&event, to + i * size, sizeof(event));
				KUNIT_ASSERT_EQ(test, event.id, ids[i]);
				cancel(tw, ids[i]);
			}
		}
		KUNIT_EXPECT_GT(test, nr, 3);
	}
}

/*
 * G1: if the deadline of a period has passed, but its tick has not ended, it is neither reported
 * nor due.
 */
static void a_period_waits_for_the_edge_of_its_tick_when_the_one_before_is_read(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, PE);
	struct twheel_event event;

	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	time_set(tw, START_NS + DELAY_NS + PERIOD_NS + 1);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 1U);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
	KUNIT_EXPECT_EQ(test, tick_of_expiry(test, t),
			deadline_tick(&tw->clock, START_NS + DELAY_NS + PERIOD_NS));
}

/* If a period never comes, it is in no slot: no pass finds it. */
static void a_period_that_never_comes_is_put_aside(struct kunit *test)
{
	struct twheel_arm how = { .expires_ns = DELAY_NS, .interval_ns = TWHEEL_TIME_NEVER };
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t = arm(test, &how);

	alarms_begin(tw);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	KUNIT_EXPECT_PTR_EQ(test, tw->wheel.never, &t->link);
	pass(tw);
	KUNIT_EXPECT_FALSE(test, machine_alarm.is_on);
}

static void an_event_of_a_drain_is_unread_from_the_drain_on(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	arm_like(test, PE);
	twheel_lock(tw);
	drain_step(tw, time_of(tw), PASS_STEP);
	twheel_unlock(tw);
	time_set(tw, time_of(tw) + 5 * TICK_NS);
	KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	KUNIT_EXPECT_EQ(test, tw->events.unread_ticks[3], 1ULL);
	KUNIT_EXPECT_EQ(test, tw->events.longest_unread_at_ns, time_of(tw));
}

static struct kunit_case read_cases[] = {
	KUNIT_CASE_PARAM(read_takes_the_event_and_the_timeout_that_ended_with_it,
			 start_gen_params),
	KUNIT_CASE(an_event_says_ended_exactly_if_its_timeout_ends),
	KUNIT_CASE(a_periodic_event_that_is_read_in_a_drain_is_the_last_one),
	KUNIT_CASE(the_list_of_events_holds_in_every_order_of_taking),
	KUNIT_CASE(events_come_in_the_order_of_their_ticks),
	KUNIT_CASE(an_event_says_whose_it_is_and_when_it_was),
	KUNIT_CASE(a_read_that_faults_anywhere_loses_no_event),
	KUNIT_CASE(an_event_is_as_long_as_the_reader_wants_it),
	KUNIT_CASE(read_takes_no_more_events_than_it_has_room_for),
	KUNIT_CASE(an_event_that_faults_shifts_none_behind_it),
	KUNIT_CASE(a_period_waits_for_the_edge_of_its_tick_when_the_one_before_is_read),
	KUNIT_CASE(a_period_that_never_comes_is_put_aside),
	KUNIT_CASE(an_event_of_a_drain_is_unread_from_the_drain_on),
	{}
};

ENGINE_SUITE(read);
