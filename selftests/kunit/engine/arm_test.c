// SPDX-License-Identifier: GPL-2.0
/*
 * engine/arm.c: ARM
 */

static void an_element_beyond_max_pending_says_eagain_and_takes_nothing(struct kunit *test)
{
	struct twheel_arm *how = kunit_kcalloc(test, 5, sizeof(*how), GFP_KERNEL);
	struct tw_ctx *tw = wheel_with(test, max_pending, 3);
	s64 before[NR_TALLIES];
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, how);
	for (i = 0; i < 5; i++)
		how[i] = arm_of(0, 0);
	KUNIT_ASSERT_EQ(test, arm_some(tw, how, 5), 5);
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_EQ(test, how[i].result, i < 3 ? TWHEEL_CREATED : -EAGAIN);
		KUNIT_EXPECT_EQ(test, !how[i].id, i >= 3);
	}
	audit(test);
	tally_take(tw, before);
	KUNIT_ASSERT_EQ(test, arm_some(tw, how, 5), 5);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, how[i].result, -EAGAIN);
	expect_delta(test, before, nothing);
}

static void a_batch_with_bad_elements_arms_the_good_ones(struct kunit *test)
{
	struct twheel_arm *how = kunit_kcalloc(test, 6, sizeof(*how), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, how);
	for (i = 0; i < 6; i++) {
		how[i] = arm_of(0, 0);
		how[i].user_data = i;
		how[i].repeats = i % 2;
	}
	KUNIT_ASSERT_EQ(test, arm_some(tw, how, 6), 6);
	for (i = 0; i < 6; i++) {
		KUNIT_EXPECT_EQ(test, how[i].result, i % 2 ? -EINVAL : TWHEEL_CREATED);
		if (i % 2)
			KUNIT_EXPECT_EQ(test, how[i].id, 0ULL);
		else
			KUNIT_EXPECT_EQ(test, find(tw, how[i].id)->user_data, (u64)i);
	}
	KUNIT_EXPECT_EQ(test, tw->places.nr_taken, 3U);
}

/*
 * G3, G4, G8: whichever access faults, the timeouts whose results were copied out are armed, and
 * an id that may have been copied out without a timeout is never given out again.
 */
static void an_arm_that_faults_anywhere_has_armed_the_ids_copied_out(struct kunit *test)
{
	static const u32 kinds[] = { 0, PE, 0, OV, SL, 0 };
	struct twheel_arm *how = kunit_kcalloc(test, 6, sizeof(*how), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	bool faulted = true;
	u64 armed, copied, id;
	int nr, done, i;

	KUNIT_ASSERT_NOT_NULL(test, how);
	/* Arm and cancel once, so that memory and places are there. */
	KUNIT_ASSERT_EQ(test, cancel(tw, timeout_id(arm_like(test, PE))), TWHEEL_WAS_PENDING);
	for (nr = 0; faulted; nr++) {
		for (i = 0; i < 6; i++)
			how[i] = arm_of(kinds[i], 0);
		armed = tw->events.armed;
		faults_begin(nr);
		done = max(arm_some(tw, how, 6), 0);
		faulted = faults_end();
		audit(test);
		KUNIT_ASSERT_EQ(test, faulted, done < 6);
		KUNIT_ASSERT_EQ(test, tw->events.armed - armed, (u64)done);
		KUNIT_ASSERT_EQ(test, tw->places.nr_taken, (u32)done);
		for (i = 0; i < done; i++) {
			KUNIT_ASSERT_EQ(test, how[i].result, TWHEEL_CREATED);
			KUNIT_ASSERT_GT(test, cancel(tw, how[i].id), 0);
		}
		copied = done < 6 ? how[done].id : 0;
		for (; i < 6; i++)
			KUNIT_ASSERT_EQ(test, cancel(tw, how[i].id), -ENOENT);
		for (i = 0; copied && i < 6; i++) {
			KUNIT_ASSERT_EQ(test, arm_plain(tw, &id), 0);
			KUNIT_ASSERT_NE(test, id, copied);
			how[i].id = id;
		}
		while (copied && i--)
			cancel(tw, how[i].id);
	}
	KUNIT_EXPECT_GT(test, nr, 6 * 2);
}

/* G3, G8: the same for a single element, which is done in one step. */
static void a_single_arm_that_faults_anywhere_leaves_no_timeout(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	bool faulted = true, done;
	struct twheel_arm how;
	int nr;

	KUNIT_ASSERT_EQ(test, cancel(tw, timeout_id(arm_like(test, 0))), TWHEEL_WAS_PENDING);
	for (nr = 0; faulted; nr++) {
		how = arm_of(0, 0);
		faults_begin(nr);
		done = twheel_arm_plain(tw, to_user(how));
		faulted = faults_end();
		audit(test);
		KUNIT_ASSERT_EQ(test, faulted, !done);
		KUNIT_ASSERT_EQ(test, tw->places.nr_taken, (u32)done);
		KUNIT_ASSERT_EQ(test, cancel(tw, how.id), done ? TWHEEL_WAS_PENDING : -ENOENT);
	}
	KUNIT_EXPECT_GT(test, nr, 2);
}

static void a_single_arm_that_is_not_plain_begins_nothing(struct kunit *test)
{
	static const u32 kinds[] = { PE, OV, SL };
	struct tw_ctx *tw = test->priv;
	struct twheel_arm how;
	int i;

	KUNIT_ASSERT_EQ(test, cancel(tw, timeout_id(arm_like(test, 0))), TWHEEL_WAS_PENDING);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		how = arm_of(kinds[i], 0);
		KUNIT_EXPECT_FALSE(test, twheel_arm_plain(tw, to_user(how)));
	}
	how = (struct twheel_arm){ .expires_ns = TWHEEL_TIME_NEVER };
	KUNIT_EXPECT_FALSE(test, twheel_arm_plain(tw, to_user(how)));
	how = (struct twheel_arm){ .expires_ns = DELAY_NS, .flags = BIT(31) };
	KUNIT_EXPECT_FALSE(test, twheel_arm_plain(tw, to_user(how)));
	how = arm_of(0, 0);
	WRITE_ONCE(tw->control.draining, true);
	KUNIT_EXPECT_FALSE(test, twheel_arm_plain(tw, to_user(how)));
	WRITE_ONCE(tw->control.draining, false);
	KUNIT_EXPECT_EQ(test, how.id, 0ULL);
	KUNIT_EXPECT_EQ(test, tw->places.nr_taken, 0U);
	how.user_data = 77;
	KUNIT_ASSERT_TRUE(test, twheel_arm_plain(tw, to_user(how)));
	KUNIT_EXPECT_EQ(test, how.result, TWHEEL_CREATED);
	KUNIT_EXPECT_EQ(test, find(tw, how.id)->user_data, 77ULL);
	KUNIT_EXPECT_EQ(test, find(tw, how.id)->deadline_ns, time_of(tw) + DELAY_NS);
}

static void drain_begins(void)
{
	WRITE_ONCE(user_memory.tw->control.draining, true);
}

/* G3: if DRAIN comes after ids were copied out, the call takes them back, and arms nothing. */
static void an_arm_that_a_drain_overtakes_takes_back_the_ids_copied_out(struct kunit *test)
{
	struct twheel_arm *how = kunit_kcalloc(test, 3, sizeof(*how), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	s64 before[NR_TALLIES];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, how);
	KUNIT_ASSERT_EQ(test, cancel(tw, timeout_id(arm_like(test, 0))), TWHEEL_WAS_PENDING);
	tally_take(tw, before);
	for (i = 0; i < 3; i++)
		how[i] = arm_of(i == 1 ? SL : 0, 0);
	/* The elements were copied in, and the ids of two were copied out. */
	user_memory.call_at = user_memory.nr + 1 + 2 * 2;
	user_memory.call = drain_begins;
	KUNIT_EXPECT_EQ(test, arm_some(tw, how, 3), -ESHUTDOWN);
	user_memory.call = NULL;
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, how[i].result, -ESHUTDOWN);
		KUNIT_EXPECT_EQ(test, how[i].id, 0ULL);
	}
	expect_delta(test, before, nothing);
	/* The next call says so at once. */
	how[0] = arm_of(0, 0);
	KUNIT_EXPECT_EQ(test, arm_some(tw, how, 1), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, how[0].result, 0);
	KUNIT_EXPECT_EQ(test, twheel_arm_one(tw, how, false), -ESHUTDOWN);
	expect_delta(test, before, nothing);
}

static void an_arm_that_may_not_wait_takes_free_places(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_arm plain = arm_of(0, 0), periodic = arm_of(PE, 0), bad = { .repeats = 1 };
	unsigned int i;

	/* There is no page yet, and none for periods. */
	KUNIT_EXPECT_EQ(test, twheel_arm_one(tw, &plain, true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, twheel_arm_one(tw, &plain, false), 0);
	KUNIT_EXPECT_EQ(test, twheel_arm_one(tw, &plain, true), 0);
	KUNIT_EXPECT_EQ(test, twheel_arm_one(tw, &periodic, true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, twheel_arm_one(tw, &periodic, false), 0);
	KUNIT_EXPECT_EQ(test, twheel_arm_one(tw, &periodic, true), 0);
	KUNIT_EXPECT_EQ(test, twheel_arm_one(tw, &bad, false), -EINVAL);
	KUNIT_EXPECT_EQ(test, tw->places.nr_taken, 4U);
	for (i = 4; i < PLACES_PER_PAGE; i++)
		KUNIT_ASSERT_EQ(test, twheel_arm_one(tw, &plain, true), 0);
	KUNIT_EXPECT_EQ(test, twheel_arm_one(tw, &plain, true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, tw->places.nr_taken, PLACES_PER_PAGE);
}

/* G2: if a deadline has passed, it waits for no tick, and is not late. */
static void a_timeout_that_is_due_when_armed_is_an_event_at_once(struct kunit *test)
{
	static const u64 ahead_ns[] = { START_NS, 1, 0 };
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;
	unsigned int i;

	time_set(tw, START_NS + 7);
	for (i = 0; i < ARRAY_SIZE(ahead_ns); i++) {
		arm(test, &(struct twheel_arm) {
			.flags = TWHEEL_ARM_ABSOLUTE, .slack_ticks = i,
			.expires_ns = START_NS + 7 - ahead_ns[i] });
		KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
		KUNIT_EXPECT_EQ(test, event.fired_ns, START_NS + 7);
		KUNIT_EXPECT_EQ(test, event.deadline_ns, START_NS + 7 - ahead_ns[i]);
	}
	KUNIT_EXPECT_EQ(test, tw->events.late_ticks[0], 0ULL);
	KUNIT_EXPECT_EQ(test, tw->events.expirations, 3ULL);
}

/*
 * G1, G2: the alarm may show that an absolute deadline has not passed, so that the clock is not
 * read. The timeout expires in its tick, whether the alarm is off, or set to an earlier or a later
 * time.
 */
static void an_absolute_deadline_is_met_whatever_the_alarm_is_set_to(struct kunit *test)
{
	static const u64 others_ns[] = { 0, TICK_NS, 3 * TICK_NS, 50 * TICK_NS };
	struct tw_ctx *tw = test->priv;
	unsigned int i;
	int half;

	alarms_begin(tw);
	for (i = 0; i < ARRAY_SIZE(others_ns); i++) {
		for (half = -4; half < 12; half++) {
			u64 now_ns = time_of(tw), edge_ns;
			u64 deadline_ns = now_ns + half * (s64)TICK_NS / 2;
			struct twheel_arm other = { .expires_ns = others_ns[i] };
			struct twheel_arm how = {
				.expires_ns = deadline_ns, .flags = TWHEEL_ARM_ABSOLUTE,
			};
			struct twheel_timeout *t;

			if (other.expires_ns)
				arm(test, &other);
			t = arm(test, &how);
			KUNIT_ASSERT_EQ(test, timeout_is_unread(t), half <= 0);
			edge_ns = edge_after_ns(&tw->clock, deadline_ns);
			if (half > 0) {
				KUNIT_ASSERT_LE(test, tw->alarm.at_ns, edge_ns);
				time_set(tw, edge_ns - 1);
				pass(tw);
				KUNIT_ASSERT_FALSE(test, timeout_is_unread(t));
				time_set(tw, edge_ns);
				pass(tw);
				KUNIT_ASSERT_TRUE(test, timeout_is_unread(t));
			}
			cancel(tw, how.id);
			if (other.expires_ns)
				cancel(tw, other.id);
			time_set(tw, edge_after_ns(&tw->clock, max(now_ns, edge_ns)) + TICK_NS);
			pass(tw);
		}
	}
}

/* G4: if the alarm has rung and was left to the kthread, a deadline since then is not forgotten. */
static void a_deadline_after_an_alarm_that_was_left_to_the_kthread_is_not_lost(struct kunit *test)
{
	struct twheel_arm how = {
		.expires_ns = START_NS + 7 * TICK_NS, .flags = TWHEEL_ARM_ABSOLUTE,
	};
	struct tw_ctx *tw = test->priv;

	alarms_begin(tw);
	arm_like(test, 0);
	time_set(tw, START_NS + 8 * TICK_NS);
	arm(test, &how);
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 2U);
}

/* G2: if an alarm is left to the kthread, a deadline that has passed waits for no tick. */
static void a_timeout_that_is_due_waits_for_no_kthread(struct kunit *test)
{
	struct twheel_arm how = {
		.expires_ns = START_NS + 7 * TICK_NS + TICK_NS / 4, .flags = TWHEEL_ARM_ABSOLUTE,
	};
	struct tw_ctx *tw = test->priv;

	alarms_begin(tw);
	arm(test, &(struct twheel_arm){ .expires_ns = 5 * TICK_NS });
	time_set(tw, START_NS + 7 * TICK_NS + TICK_NS / 2);
	machine_alarm.is_on = false;
	KUNIT_EXPECT_TRUE(test, timeout_is_unread(arm(test, &how)));
}

/* The same holds if the clock was read before the alarm could ring. */
static void a_timeout_for_now_waits_for_no_alarm(struct kunit *test)
{
	struct twheel_arm how = {};
	struct tw_ctx *tw = test->priv;

	alarms_begin(tw);
	arm(test, &(struct twheel_arm){ .expires_ns = 5 * TICK_NS });
	time_set(tw, START_NS + 7 * TICK_NS + TICK_NS / 2);
	KUNIT_EXPECT_TRUE(test, timeout_is_unread(arm(test, &how)));
}

/*
 * The batch has relative and absolute ones, with and without periods, each before and after
 * another.
 */
static void elements_of_all_kinds_stand_side_by_side_in_a_batch(struct kunit *test)
{
	struct twheel_arm *how = kunit_kcalloc(test, 16, sizeof(*how), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, how);
	for (i = 0; i < 16; i++) {
		how[i].expires_ns = (10 + i) * TICK_NS;
		how[i].slack_ticks = i & 2 ? 1 : 0;
		how[i].user_data = i;
		if (i & 1) {
			how[i].expires_ns += START_NS;
			how[i].flags = TWHEEL_ARM_ABSOLUTE;
		}
		if (i & 4)
			how[i].interval_ns = PERIOD_NS;
		if (i == 8 || i == 11)
			how[i].expires_ns = TWHEEL_TIME_NEVER - (i & 1 ? 0 : i);
	}
	KUNIT_ASSERT_EQ(test, arm_some(tw, how, 16), 16);
	for (i = 0; i < 16; i++) {
		struct twheel_timeout *t = find(tw, how[i].id);

		KUNIT_ASSERT_EQ(test, how[i].result, TWHEEL_CREATED);
		KUNIT_ASSERT_NOT_NULL(test, t);
		KUNIT_EXPECT_EQ(test, t->user_data, (u64)i);
		KUNIT_EXPECT_EQ(test, timeout_known_ns(t), i == 8 || i == 11 ? TWHEEL_TIME_NEVER :
				START_NS + (10 + i) * TICK_NS);
		KUNIT_EXPECT_EQ(test, timeout_has_extra(t), !!(i & 6));
	}
}

/* If timeouts of a vector are due when armed, they expire at once. */
static void a_vector_for_now_makes_events_at_once(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_arm how[3];
	unsigned int i;

	time_set(tw, START_NS + TICK_NS / 2);
	for (i = 0; i < ARRAY_SIZE(how); i++)
		how[i] = (struct twheel_arm){
			.expires_ns = time_of(tw), .flags = TWHEEL_ARM_ABSOLUTE,
		};
	KUNIT_EXPECT_EQ(test, arm_some(tw, how, ARRAY_SIZE(how)), (int)ARRAY_SIZE(how));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), (u32)ARRAY_SIZE(how));
}

/*
 * If an ARM must not sleep, it says EAGAIN as if the wheel were full, and does not count as
 * refused.
 */
static void an_arm_that_would_have_to_sleep_is_not_refused_by_max_pending(struct kunit *test)
{
	u64 before = twheel_counter(COUNTER_REFUSED_PENDING);
	struct twheel_arm how = arm_of(0, 0);
	struct tw_ctx *tw = test->priv;

	/* It would sleep for a page of places, and then for the memory of periods. */
	KUNIT_EXPECT_EQ(test, twheel_arm_one(tw, &how, true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, twheel_arm_one(tw, &how, false), 0);
	how = arm_of(PE, 0);
	KUNIT_EXPECT_EQ(test, twheel_arm_one(tw, &how, true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, twheel_counter(COUNTER_REFUSED_PENDING), before);
}

/* Let another thread call ARM while this one has the lock. */
static bool others_may_arm;

static int arm_when_others_may(struct tw_ctx *tw)
{
	u64 id;

	while (!READ_ONCE(others_may_arm))
		cond_resched();
	return arm_plain(tw, &id);
}

/* G5: the holder of the lock inserts one batch of another thread, and not all its timeouts. */
static void an_arm_that_finds_something_in_the_inbox_waits_for_the_lock(struct kunit *test)
{
	struct other_thread other = { .tw = test->priv, .run = arm_when_others_may };
	struct arming arming = { .now_ns = START_NS };
	struct twheel_arm how = arm_of(0, 0);
	struct tw_ctx *tw = test->priv;
	struct task_struct *kthread;
	bool is_over, is_alone;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, twheel_places_take(tw, 1, false, &arming.first), 0);
	arming.place = arming.first;
	KUNIT_ASSERT_EQ(test, arm_begin(tw, &how, &arming), 0);
	init_completion(&other.done);
	WRITE_ONCE(others_may_arm, false);
	kthread = kthread_run(other_thread_runs, &other, "twheel_other");
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread));
	twheel_lock(tw);
	llist_add(&arming.first->node, &tw->inbox);
	WRITE_ONCE(others_may_arm, true);
	/* If it does not wait, it is over soon. */
	for (i = 0; i < 1000 && !completion_done(&other.done); i++)
		udelay(9);
	is_over = completion_done(&other.done);
	is_alone = !READ_ONCE(tw->inbox.first->next);
	twheel_unlock(tw);
	wait_for_completion(&other.done);
	KUNIT_EXPECT_FALSE(test, is_over);
	KUNIT_EXPECT_TRUE(test, is_alone);
	KUNIT_EXPECT_EQ(test, other.says, 0);
	KUNIT_EXPECT_EQ(test, tw->events.armed, 2ULL);
}

static struct kunit_case arm_cases[] = {
	KUNIT_CASE(an_element_beyond_max_pending_says_eagain_and_takes_nothing),
	KUNIT_CASE(a_batch_with_bad_elements_arms_the_good_ones),
	KUNIT_CASE(an_arm_that_faults_anywhere_has_armed_the_ids_copied_out),
	KUNIT_CASE(a_single_arm_that_faults_anywhere_leaves_no_timeout),
	KUNIT_CASE(a_single_arm_that_is_not_plain_begins_nothing),
	KUNIT_CASE(an_arm_that_a_drain_overtakes_takes_back_the_ids_copied_out),
	KUNIT_CASE(an_arm_that_may_not_wait_takes_free_places),
	KUNIT_CASE(a_timeout_that_is_due_when_armed_is_an_event_at_once),
	KUNIT_CASE(an_absolute_deadline_is_met_whatever_the_alarm_is_set_to),
	KUNIT_CASE(a_deadline_after_an_alarm_that_was_left_to_the_kthread_is_not_lost),
	KUNIT_CASE(a_timeout_that_is_due_waits_for_no_kthread),
	KUNIT_CASE(a_timeout_for_now_waits_for_no_alarm),
	KUNIT_CASE(elements_of_all_kinds_stand_side_by_side_in_a_batch),
	KUNIT_CASE(a_vector_for_now_makes_events_at_once),
	KUNIT_CASE(an_arm_that_would_have_to_sleep_is_not_refused_by_max_pending),
	KUNIT_CASE(an_arm_that_finds_something_in_the_inbox_waits_for_the_lock),
	{}
};

ENGINE_SUITE(arm);
