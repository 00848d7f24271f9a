// SPDX-License-Identifier: GPL-2.0
/*
 * engine/control.c: SETUP; and ADVANCE and DRAIN, which are in engine/run.c
 */

#define MONOTONIC_WITH(member)	{ .clock = TWHEEL_CLOCK_MONOTONIC, member }
#define ONE_LEVEL_WITH(tick, nr) {					\
	.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = tick, .slots = nr,	\
	.flags = TWHEEL_SETUP_ONE_LEVEL }

static void a_set_up_outside_the_limits_is_refused(struct kunit *test)
{
	static const struct { struct twheel_setup setup; int says; } rows[] = {
		{ { .clock = TWHEEL_CLOCK_MONOTONIC }, 0 },
		{ { .clock = TWHEEL_CLOCK_VIRTUAL }, 0 },
		{ {}, -EINVAL },
		{ { .clock = CLOCK_MONOTONIC }, -EINVAL },
		{ { .clock = CLOCK_TAI }, -EINVAL },
		{ { .clock = TWHEEL_CLOCK_MONOTONIC - 1 }, -EINVAL },
		{ { .clock = TWHEEL_CLOCK_VIRTUAL + 1 }, -EINVAL },
		{ { .clock = U32_MAX }, -EINVAL },
		{ MONOTONIC_WITH(.tick_ns = TWHEEL_TICK_MIN_NS), 0 },
		{ MONOTONIC_WITH(.tick_ns = TWHEEL_TICK_MIN_NS - 1), -EINVAL },
		{ MONOTONIC_WITH(.tick_ns = TWHEEL_TICK_MAX_NS), 0 },
		{ MONOTONIC_WITH(.tick_ns = TWHEEL_TICK_MAX_NS + 1), -EINVAL },
		{ MONOTONIC_WITH(.slots = TWHEEL_SLOTS_MIN), 0 },
		{ MONOTONIC_WITH(.slots = TWHEEL_SLOTS_MIN - 1), -EINVAL },
		{ MONOTONIC_WITH(.slots = TWHEEL_SLOTS_MAX), 0 },
		{ MONOTONIC_WITH(.slots = TWHEEL_SLOTS_MAX + 1), -EINVAL },
		{ MONOTONIC_WITH(.max_pending = 16777216), 0 },
		{ MONOTONIC_WITH(.max_pending = 16777217), -EINVAL },
		{ MONOTONIC_WITH(.flags = TWHEEL_SETUP_ONE_LEVEL), 0 },
		{ MONOTONIC_WITH(.flags = TWHEEL_SETUP_KEYED), 0 },
		{ MONOTONIC_WITH(.flags = TWHEEL_SETUP_KEYED << 1), -EINVAL },
		{ MONOTONIC_WITH(.flags = BIT(31)), -EINVAL },
		{ ONE_LEVEL_WITH(100 * NSEC_PER_USEC, 1000), 0 },
		{ ONE_LEVEL_WITH(97656, 1024), -EINVAL },
		{ ONE_LEVEL_WITH(97657, 1024), 0 },
		{ ONE_LEVEL_WITH(TWHEEL_TICK_MIN_NS, TWHEEL_SLOTS_MIN), -EINVAL },
		{ ONE_LEVEL_WITH(TWHEEL_TICK_MAX_NS, TWHEEL_SLOTS_MAX), 0 },
		{ ONE_LEVEL_WITH(TWHEEL_TICK_MIN_NS, 0), -EINVAL },
		{ ONE_LEVEL_WITH(0, TWHEEL_SLOTS_MIN), -EINVAL },
		{ ONE_LEVEL_WITH(0, 65), 0 },
		{ MONOTONIC_WITH(.event_size = TWHEEL_EVENT_SIZE_MIN), 0 },
		{ MONOTONIC_WITH(.event_size = TWHEEL_EVENT_SIZE_MIN + 8), 0 },
		{ MONOTONIC_WITH(.event_size = TWHEEL_EVENT_SIZE_MAX), 0 },
		{ MONOTONIC_WITH(.event_size = 1), -EINVAL },
		{ MONOTONIC_WITH(.event_size = TWHEEL_EVENT_SIZE_MIN - 8), -EINVAL },
		{ MONOTONIC_WITH(.event_size = TWHEEL_EVENT_SIZE_MIN + 4), -EINVAL },
		{ MONOTONIC_WITH(.event_size = TWHEEL_EVENT_SIZE_MAX + 8), -EINVAL },
		{ MONOTONIC_WITH(.slack_ns = TWHEEL_SLACK_MAX_NS), 0 },
		{ MONOTONIC_WITH(.slack_ns = TWHEEL_SLACK_MAX_NS + 1), -EINVAL },
		{ MONOTONIC_WITH(.name = "!#0Az[]~"), 0 },
		{ MONOTONIC_WITH(.name = "123456789abcdef"), 0 },
		{ MONOTONIC_WITH(.name = "a b"), -EINVAL },
		{ MONOTONIC_WITH(.name = "\x7f"), -EINVAL },
		{ MONOTONIC_WITH(.name = "a\0b"), -EINVAL },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct twheel_setup setup = rows[i].setup;

		KUNIT_EXPECT_EQ_MSG(test, setup_complete(&setup), rows[i].says, "row %u", i);
	}
	KUNIT_EXPECT_EQ(test, twheel_configure(test->priv, &rows[0].setup),
			-EBUSY);
}

/* Let another thread read the wheel during a SETUP that is about to fail. */
static struct tw_ctx *failing;
static u32 failing_event_size;

static void read_beside_a_failure(void)
{
	failing_event_size = failing->control.event_size;
}

/* If SETUP fails, it leaves no memory behind, and may be tried again. */
static void a_start_that_fails_takes_nothing(struct kunit *test)
{
	struct twheel_setup setup = usual_setup;
	struct tw_ctx *tw;
	long charged;

	engine_case_exit(test);
	tw = twheel_create();
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tw);
	test->priv = tw;
	charged = twheel_charged();
	setup.flags = TWHEEL_SETUP_KEYED;
	setup.event_size = TWHEEL_EVENT_SIZE_MAX;
	setup.name[0] = 'n';
	/* The slots are there, and there is no memory for the keys. */
	memory_limit(charged + 8 * PAGE_SIZE, LONG_MAX);
	failing = tw;
	log_call = read_beside_a_failure;
	KUNIT_EXPECT_EQ(test, twheel_configure(tw, &setup), -ENOSPC);
	log_call = NULL;
	/* A read() in another thread would not have a buffer for an event of that length. */
	KUNIT_EXPECT_EQ(test, failing_event_size, (u32)TWHEEL_EVENT_SIZE_MIN);
	KUNIT_EXPECT_EQ(test, twheel_charged(), charged);
	KUNIT_EXPECT_FALSE(test, control_is_started(&tw->control));
	KUNIT_EXPECT_FALSE(test, twheel_is_keyed(tw));
	/*
	 * INFO does not show the values: if a wheel has not started, it gives the present defaults.
	 */
	KUNIT_EXPECT_EQ(test, tw->control.event_size, (u32)TWHEEL_EVENT_SIZE_MIN);
	KUNIT_EXPECT_EQ(test, tw->clock.kind, (u32)TWHEEL_CLOCK_MONOTONIC);
	KUNIT_EXPECT_EQ(test, tw->control.name[0], '\0');
	limits_apply();
	KUNIT_EXPECT_EQ(test, twheel_configure(tw, &setup), 0);
	KUNIT_EXPECT_TRUE(test, twheel_is_keyed(tw));
}

/* G3, G4 */
static void advance_and_drain_return_when_all_events_can_be_read(struct kunit *test)
{
	struct tw_ctx *tw = wheel_remake(test, &usual_setup);
	unsigned int i;

	for (i = 0; i < 100; i++)
		arm(test, &(struct twheel_arm) { .expires_ns = i * TICK_NS });
	KUNIT_EXPECT_EQ(test, twheel_clock_advance(tw, 49 * TICK_NS), 0);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 50U);
	KUNIT_EXPECT_EQ(test, twheel_clock_advance(tw, 48 * TICK_NS), -EINVAL);
	KUNIT_EXPECT_EQ(test, twheel_clock_advance(tw, BIT_ULL(63)), -EINVAL);
	KUNIT_EXPECT_EQ(test, tw->clock.virtual_now_ns, 49 * TICK_NS);
	KUNIT_EXPECT_EQ(test, twheel_drain(tw), 0);
	KUNIT_EXPECT_EQ(test, twheel_drain(tw), 0);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 100U);
	KUNIT_EXPECT_TRUE(test, twheel_is_drained(tw));
	KUNIT_EXPECT_EQ(test, twheel_clock_advance(tw, 50 * TICK_NS), -ESHUTDOWN);
	for (i = 0; i < 100; i++)
		KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	KUNIT_EXPECT_EQ(test, tw->events.completed, 50ULL);
	KUNIT_EXPECT_EQ(test, tw->events.drained, 50ULL);
}

static void only_a_virtual_clock_can_be_advanced(struct kunit *test)
{
	struct tw_ctx *tw = wheel_with(test, clock, TWHEEL_CLOCK_MONOTONIC);

	KUNIT_EXPECT_EQ(test, twheel_clock_advance(tw, TWHEEL_TIME_NEVER), -EOPNOTSUPP);
}

/* G3: a first ARM that has found the wheel in use may be here when DRAIN is over. */
static void a_wheel_that_was_drained_before_it_started_never_does(struct kunit *test)
{
	struct tw_ctx *tw;

	engine_case_exit(test);
	tw = twheel_create();
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tw);
	test->priv = tw;
	KUNIT_EXPECT_EQ(test, twheel_drain(tw), 0);
	KUNIT_EXPECT_TRUE(test, twheel_is_drained(tw));
	KUNIT_EXPECT_EQ(test, twheel_start_lazily(tw), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, twheel_configure(tw, &usual_setup), -ESHUTDOWN);
	KUNIT_EXPECT_FALSE(test, control_is_started(&tw->control));
}

static int drain_amid_a_signal(struct tw_ctx *tw)
{
	int says;

	fatal_signal_send();
	says = twheel_drain(tw);
	fatal_signal_forget();
	return says;
}

/* An ADVANCE has the mutex for as long as its pass takes. */
static void a_drain_that_waits_for_another_call_ends_with_a_signal(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	expect_no_wait(test, &tw->control.mutex, drain_amid_a_signal, -ERESTARTSYS);
	KUNIT_EXPECT_FALSE(test, tw->control.draining);
}

/* The call can be repeated, and the kthread does the rest in any case. */
static void a_drain_that_a_signal_ends_is_completed_by_the_kthread(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	unsigned int i;

	for (i = 0; i < 10; i++)
		arm_many(test, PASS_STEP, NULL);
	fatal_signal_send();
	KUNIT_EXPECT_EQ(test, twheel_drain(tw), -ERESTARTSYS);
	fatal_signal_forget();
	KUNIT_EXPECT_TRUE(test, turn_take(tw));
	KUNIT_EXPECT_TRUE(test, tw->control.draining);
	KUNIT_EXPECT_FALSE(test, twheel_is_drained(tw));
	pass(tw);
	KUNIT_EXPECT_TRUE(test, twheel_is_drained(tw));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 10U * PASS_STEP);
	KUNIT_EXPECT_EQ(test, twheel_drain(tw), 0);
}

/* The same for ADVANCE: the clock has moved. */
static void an_advance_that_a_signal_ends_is_completed_by_the_kthread(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	arm_many(test, 4 * PASS_STEP, NULL);
	time_set(tw, START_NS + 10 * TICK_NS);
	fatal_signal_send();
	KUNIT_EXPECT_EQ(test, run_now(tw), -ERESTARTSYS);
	fatal_signal_forget();
	KUNIT_EXPECT_EQ(test, nr_unread(tw), (u32)PASS_STEP);
	KUNIT_EXPECT_TRUE(test, turn_take(tw));
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 4U * PASS_STEP);
	KUNIT_EXPECT_EQ(test, twheel_clock_advance(tw, time_of(tw)), 0);
}

/*
 * After the last close, nothing may run, since the wheel's memory may belong to others. If the test
 * finds work there, it removes it, so that it does no harm.
 */
static void nothing_runs_in_a_wheel_that_was_stopped(struct kunit *test)
{
	struct tw_ctx *tw = wheel_with(test, clock, TWHEEL_CLOCK_MONOTONIC);
	struct twheel_arm how = { .expires_ns = 3600 * NSEC_PER_SEC };
	u64 *ids = kunit_kcalloc(test, 2000, sizeof(*ids), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	for (i = 0; i < 2000; i++) {
		arm(test, &how);
		ids[i] = how.id;
	}
	cancel_ids(tw, ids + 1, 1999);
	KUNIT_EXPECT_TRUE(test, hrtimer_active(&tw->alarm.timer));
	twheel_turn_request(&tw->turn);
	KUNIT_EXPECT_FALSE(test, list_empty(&tw->turn.node));
	/* No thread takes the turn, and the stop would wait for it: remove it from the worker. */
	raw_spin_lock_irq(&nobody.lock);
	list_del_init(&nobodys.work.node);
	raw_spin_unlock_irq(&nobody.lock);
	wheel_stop(tw);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_FALSE(test, hrtimer_cancel(&tw->alarm.timer));
		KUNIT_EXPECT_FALSE(test, turn_take(tw));
		/* No other turn begins. */
		twheel_turn_request(&tw->turn);
	}
}

/* The wheel of an ARM that has found it accepting, and has yet to add its timeout to the inbox. */
static struct tw_ctx *graced;
static struct llist_node *graced_node;

/* The kthread has a turn before that, in the grace period of DRAIN. */
static void arm_in_the_grace_period(void)
{
	pass(graced);
	llist_add(graced_node, &graced->inbox);
}

/* G3, G4: if an ARM has begun, the wheel is not drained before it has submitted its timeouts. */
static void a_turn_in_the_grace_period_of_a_drain_drains_nothing(struct kunit *test)
{
	struct arming arming = { .now_ns = START_NS };
	struct twheel_arm how = arm_of(0, 0);
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;

	KUNIT_ASSERT_EQ(test, twheel_places_take(tw, 1, false, &arming.first), 0);
	arming.place = arming.first;
	KUNIT_ASSERT_EQ(test, arm_begin(tw, &how, &arming), 0);
	graced = tw;
	graced_node = &arming.first->node;
	grace_call = arm_in_the_grace_period;
	KUNIT_EXPECT_EQ(test, twheel_drain(tw), 0);
	KUNIT_EXPECT_TRUE(test, twheel_is_drained(tw));
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.flags, TWHEEL_EVENT_DRAINED | TWHEEL_EVENT_ENDED);
	KUNIT_EXPECT_EQ(test, read_one(tw, &event), 0);
}

/* G3, G4: all places of each page are in use. */
static void a_drain_comes_to_the_last_place(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	arm_many(test, 3 * PLACES_PER_PAGE, NULL);
	KUNIT_ASSERT_EQ(test, tw->places.nr_pages, 3U);
	KUNIT_EXPECT_EQ(test, twheel_drain(tw), 0);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 3 * PLACES_PER_PAGE);
}

/* The last close comes during a turn of the kthread, which then does not go on to its end. */
static bool turn_that_is_cancelled(struct twheel_turn *turn, u64 end_ns)
{
	twheel_turn_cancel(turn);
	return true;
}

static void a_turn_that_is_cancelled_while_it_is_taken_is_the_last_one(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	tw->turn.take = turn_that_is_cancelled;
	twheel_turn_request(&tw->turn);
	raw_spin_lock_irq(&nobody.lock);
	list_del_init(&nobodys.work.node);
	raw_spin_unlock_irq(&nobody.lock);
	user_turn(&nobodys.work);
	KUNIT_EXPECT_TRUE(test, list_empty(&tw->turn.node));
	KUNIT_EXPECT_TRUE(test, list_empty(&nobodys.turns));
	turn_take(tw);
}

static struct kunit_case control_cases[] = {
	KUNIT_CASE(a_set_up_outside_the_limits_is_refused),
	KUNIT_CASE(a_start_that_fails_takes_nothing),
	KUNIT_CASE(advance_and_drain_return_when_all_events_can_be_read),
	KUNIT_CASE(only_a_virtual_clock_can_be_advanced),
	KUNIT_CASE(a_wheel_that_was_drained_before_it_started_never_does),
	KUNIT_CASE(a_drain_that_waits_for_another_call_ends_with_a_signal),
	KUNIT_CASE(a_drain_that_a_signal_ends_is_completed_by_the_kthread),
	KUNIT_CASE(an_advance_that_a_signal_ends_is_completed_by_the_kthread),
	KUNIT_CASE(nothing_runs_in_a_wheel_that_was_stopped),
	KUNIT_CASE(a_turn_in_the_grace_period_of_a_drain_drains_nothing),
	KUNIT_CASE(a_drain_comes_to_the_last_place),
	KUNIT_CASE(a_turn_that_is_cancelled_while_it_is_taken_is_the_last_one),
	{}
};

ENGINE_SUITE(control);
