// SPDX-License-Identifier: GPL-2.0
/*
 * engine/expire.c: periods that pass while an event is unread, and limits of repeats
 */

static void periods_are_counted_as_if_one_by_one(struct kunit *test)
{
	u64 deadline, interval, until;

	for (interval = 1; interval < 12; interval++) {
		for (deadline = 0; deadline < 15; deadline++) {
			u64 next = deadline, nr = 0;

			for (until = deadline; until < 60; until++) {
				for (; next <= until; next += interval)
					nr++;
				KUNIT_ASSERT_EQ(test, periods_passed(deadline,
								     interval,
								     until), nr);
			}
		}
	}
	KUNIT_EXPECT_EQ(test, periods_passed(0, 1, U64_MAX - 1), U64_MAX);
	KUNIT_EXPECT_EQ(test, periods_passed(0, TWHEEL_TIME_NEVER,
					     TWHEEL_TIME_NEVER - 1), 1ULL);
	KUNIT_EXPECT_EQ(test, periods_passed(1, 4294967297ULL,
					     1 + 4294967297ULL * 1000003),
			1000004ULL);
}

/* G7: no loop runs once per period: 2^40 of them would not end. */
static void any_number_of_periods_passes_at_once(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	const u64 nr = BIT_ULL(40) + 5;
	struct twheel_event event;
	struct twheel_timeout *t;

	t = arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS, .interval_ns = TICK_NS });
	expire_at(tw, START_NS + nr * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, nr);
	KUNIT_EXPECT_EQ(test, timeout_known_ns(t), START_NS + nr * TICK_NS);
	/* The count of the event saturates. */
	expire_at(tw, START_NS + 2 * nr * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, nr);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 2 * nr);
	KUNIT_EXPECT_EQ(test, event.count, U32_MAX);
	KUNIT_EXPECT_EQ(test, event.deadline_ns, START_NS + 2 * nr * TICK_NS);
}

/* G4: a period that passes while an event is copied is neither lost nor late. */
static void a_period_that_passes_while_its_event_is_taken_has_the_next_event(struct kunit *test)
{
	struct twheel_timeout *t = arm_like(test, PE);
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;
	u64 nr, nr_late;
	u32 nr_new;

	expire_at(tw, START_NS + DELAY_NS + PERIOD_NS + TICK_NS);
	nr_late = tw->events.late;
	twheel_lock(tw);
	spin_lock(&tw->places.lock);
	nr = event_fill(tw, t, &event);
	time_set(tw, time_of(tw) + 3 * PERIOD_NS);
	nr_new = tw->alarm.nr_new;
	event_take(tw, t, &event, nr);
	spin_unlock(&tw->places.lock);
	twheel_unlock(tw);
	KUNIT_EXPECT_EQ(test, event.count, 2U);
	KUNIT_EXPECT_EQ(test, tw->alarm.nr_new, nr_new);
	KUNIT_EXPECT_TRUE(test, timeout_is_unread(t));
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 3U);
	KUNIT_EXPECT_EQ(test, event.deadline_ns, START_NS + DELAY_NS + 4 * PERIOD_NS);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 5ULL);
	KUNIT_EXPECT_EQ(test, tw->events.late, nr_late);
}

/* G1, G4: if somebody asks for the event, a period counts from the edge of its tick on. */
static void periods_of_an_unread_event_are_counted_when_it_is_settled(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_status status = {};
	struct twheel_info info = { .flags = TWHEEL_INFO_WALK };
	struct twheel_arm how = arm_of(PE, 0);
	u64 at_ns = START_NS + DELAY_NS;

	/* Three more periods have passed, and no pass has counted them. */
	arm(test, &how);
	expire_at(tw, at_ns + TICK_NS);
	time_set(tw, at_ns + 3 * PERIOD_NS + TICK_NS);
	status.id = how.id;
	twheel_query(tw, &status, 1, false);
	KUNIT_EXPECT_EQ(test, status.count, 4U);
	KUNIT_EXPECT_EQ(test, status.deadline_ns, at_ns + 4 * PERIOD_NS);
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.expirations, 1ULL);
	KUNIT_EXPECT_EQ(test, info.pending, 1ULL);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns,
			edge_after_ns(&tw->clock, at_ns + 4 * PERIOD_NS));
	/* A period counts from the edge of its tick on, and not from its deadline. */
	time_set(tw, at_ns + 4 * PERIOD_NS);
	twheel_query(tw, &status, 1, false);
	KUNIT_EXPECT_EQ(test, status.count, 4U);
	KUNIT_EXPECT_EQ(test, cancel(tw, how.id), TWHEEL_WAS_UNREAD);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 4ULL);
}

/* G3: the last expiration passes unread, and the read ends the timeout. */
static void a_limit_that_is_reached_unread_ends_with_the_read(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_arm how = arm_of(LI, 2);
	struct twheel_timeout *t = arm(test, &how);
	struct twheel_status status = { .id = how.id };
	struct twheel_info info = { .flags = TWHEEL_INFO_WALK };
	struct twheel_event event;

	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	time_set(tw, time_of(tw) + 100 * PERIOD_NS);
	twheel_query(tw, &status, 1, false);
	KUNIT_EXPECT_EQ(test, status.count, 2U);
	KUNIT_EXPECT_EQ(test, status.repeats_left, 0U);
	KUNIT_EXPECT_EQ(test, status.left_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, status.deadline_ns, START_NS + DELAY_NS + PERIOD_NS);
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.pending, 0ULL);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns, TWHEEL_TIME_NEVER);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 2U);
	KUNIT_EXPECT_EQ(test, event.flags, TWHEEL_EVENT_ENDED);
	KUNIT_EXPECT_EQ(test, event.fired_ns,
			edge_after_ns(&tw->clock, START_NS + DELAY_NS + PERIOD_NS));
	KUNIT_EXPECT_EQ(test, tw->events.completed, 1ULL);
	KUNIT_EXPECT_FALSE(test, timeout_is_live(t));
}

/* G4: the event has the periods. If it was not the last one, it is flagged as drained. */
static void a_drained_event_counts_the_periods_that_passed_unread(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;
	u64 deadline_ns;
	int i;

	arm_like(test, PE);
	arm_like(test, LI);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	time_set(tw, time_of(tw) + 4 * PERIOD_NS);
	drain(tw);
	time_set(tw, time_of(tw) + 4 * PERIOD_NS);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_EXPECT_EQ(test, event.count,
				event.flags & TWHEEL_EVENT_DRAINED ? 5U : 2U);
		/* The latest of them has expired at the edge of its tick. */
		deadline_ns = START_NS + DELAY_NS + (event.count - 1) * PERIOD_NS;
		KUNIT_EXPECT_EQ(test, event.fired_ns, edge_after_ns(&tw->clock, deadline_ns));
	}
	KUNIT_EXPECT_EQ(test, tw->events.drained, 1ULL);
	KUNIT_EXPECT_EQ(test, tw->events.completed, 1ULL);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 7ULL);
}

static void a_limit_bounds_the_periods_that_pass_at_once(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;
	u32 repeats;

	for (repeats = 1; repeats < 8; repeats++) {
		u64 begun_ns = time_of(tw), before = tw->events.expirations;

		arm(test, &(struct twheel_arm) {
			.expires_ns = TICK_NS, .interval_ns = PERIOD_NS,
			.repeats = repeats });
		/* Three periods pass at once, and then the rest. */
		expire_at(tw, begun_ns + TICK_NS + 2 * PERIOD_NS);
		KUNIT_ASSERT_EQ(test, tw->events.expirations - before, (u64)min(repeats, 3U));
		expire_at(tw, begun_ns + TICK_NS + 100 * PERIOD_NS);
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_ASSERT_EQ(test, tw->events.expirations - before, (u64)repeats);
		KUNIT_ASSERT_EQ(test, event.count, repeats);
		KUNIT_ASSERT_EQ(test, event.deadline_ns, begun_ns + TICK_NS +
				(repeats - 1) * PERIOD_NS);
		KUNIT_ASSERT_EQ(test, tw->places.nr_taken, 0U);
	}
}

/* A fixed delay begins when its event is read, however long that takes. */
static void a_fixed_delay_begins_with_the_read(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, FD);
	struct twheel_event event;

	expire_at(tw, START_NS + DELAY_NS + 7 * PERIOD_NS);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 1ULL);
	time_set(tw, time_of(tw) + 7 * PERIOD_NS + 5);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 1U);
	KUNIT_EXPECT_EQ(test, timeout_known_ns(t), time_of(tw) + PERIOD_NS);
	KUNIT_EXPECT_EQ(test, timeout_extra(t)->deliveries, 1U);
}

/* G1: a fixed rate counts from the deadline, whenever the timeout came up. */
static void a_fixed_rate_does_not_drift(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, PE);
	unsigned int i;

	for (i = 0; i < 10; i++) {
		KUNIT_ASSERT_EQ(test, timeout_known_ns(t), START_NS + DELAY_NS + i * PERIOD_NS);
		expire_at(tw, timeout_known_ns(t) + (1 + i % 3) * TICK_NS);
		KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	}
	KUNIT_EXPECT_EQ(test, timeout_extra(t)->deliveries, 10U);
}

/* If a timeout was due when armed, it belongs to no tick: its periods count up to now. */
static void periods_of_an_overdue_timeout_count_within_the_present_tick(struct kunit *test)
{
	struct twheel_arm how = {
		.expires_ns = START_NS, .interval_ns = 3 * TICK_NS / 2,
		.flags = TWHEEL_ARM_ABSOLUTE,
	};
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;

	time_set(tw, START_NS + how.interval_ns + 1);
	arm(test, &how);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.count, 2U);
	KUNIT_EXPECT_EQ(test, event.deadline_ns, START_NS + how.interval_ns);
}

static struct kunit_case periods_cases[] = {
	KUNIT_CASE(periods_are_counted_as_if_one_by_one),
	KUNIT_CASE(any_number_of_periods_passes_at_once),
	KUNIT_CASE(a_period_that_passes_while_its_event_is_taken_has_the_next_event),
	KUNIT_CASE(periods_of_an_unread_event_are_counted_when_it_is_settled),
	KUNIT_CASE(a_limit_that_is_reached_unread_ends_with_the_read),
	KUNIT_CASE(a_drained_event_counts_the_periods_that_passed_unread),
	KUNIT_CASE(a_limit_bounds_the_periods_that_pass_at_once),
	KUNIT_CASE(a_fixed_delay_begins_with_the_read),
	KUNIT_CASE(a_fixed_rate_does_not_drift),
	KUNIT_CASE(periods_of_an_overdue_timeout_count_within_the_present_tick),
	{}
};

ENGINE_SUITE(periods);
