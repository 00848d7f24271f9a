// SPDX-License-Identifier: GPL-2.0
/*
 * engine/lock.c and lock.h: the way into the wheel, and the inbox
 *
 * If a case has the lock itself, an ARM that it makes does not get it, as if another thread had
 * it.
 */

/* Arm timeouts while the lock is held: they go into the inbox. The lock is held afterwards. */
static void arm_beside_the_lock(struct kunit *test, struct twheel_arm *how, unsigned int nr)
	__acquires(lock)
{
	struct tw_ctx *tw = test->priv;
	int done;

	skip_with_preempt_rt(test);
	skip_without_smp(test);
	/* No memory may be allocated under the lock, so have free places before. */
	KUNIT_ASSERT_EQ(test, cancel(tw, timeout_id(arm_like(test, PE))), TWHEEL_WAS_PENDING);
	twheel_lock(tw);
	user_memory.under_lock = true;
	done = arm_some(tw, how, nr);
	user_memory.under_lock = false;
	if (done != nr)
		twheel_unlock(tw);
	KUNIT_ASSERT_EQ(test, done, (int)nr);
}

/*
 * An ARM waits for nobody, and copies the ids out; the holder of the lock puts the timeouts into
 * the wheel.
 */
static void an_arm_beside_the_lock_is_inserted_by_its_holder(struct kunit *test)
{
	struct twheel_arm *how = kunit_kcalloc(test, 4, sizeof(*how), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	bool queued, pending = false;
	u64 armed;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, how);
	for (i = 0; i < 4; i++)
		how[i] = arm_of(i == 2 ? PE : 0, 0);
	arm_beside_the_lock(test, how, 4);
	queued = !llist_empty(&tw->inbox);
	armed = tw->events.armed;
	for (i = 0; i < 4; i++)
		pending |= timeout_is_live(place_of(tw, (u32)how[i].id));
	twheel_unlock(tw);
	KUNIT_EXPECT_TRUE(test, queued);
	KUNIT_EXPECT_FALSE(test, pending);
	KUNIT_EXPECT_TRUE(test, llist_empty(&tw->inbox));
	KUNIT_EXPECT_EQ(test, tw->events.armed - armed, 4ULL);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, how[i].result, TWHEEL_CREATED);
		KUNIT_EXPECT_NOT_NULL(test, find(tw, how[i].id));
	}
	audit(test);
	expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 4U);
}

/* If the lock is released between the steps of a pass, they are inserted as well. */
static void the_inbox_is_emptied_between_the_steps_of_a_pass(struct kunit *test)
{
	struct twheel_arm how = arm_of(0, 0);
	struct tw_ctx *tw = test->priv;

	arm_beside_the_lock(test, &how, 1);
	twheel_unlock_quietly(tw);
	KUNIT_EXPECT_TRUE(test, llist_empty(&tw->inbox));
	KUNIT_EXPECT_NOT_NULL(test, find(tw, how.id));
}

/* Timeouts of the inbox are in the wheel before the next call looks one up. */
static void a_thread_that_takes_the_lock_finds_what_was_added_before(struct kunit *test)
{
	struct twheel_arm how = arm_of(0, 0);
	struct tw_ctx *tw = test->priv;

	arm_beside_the_lock(test, &how, 1);
	/* Pretend that the ARM came between the release and the check of the inbox. */
	spin_unlock(&tw->lock);
	KUNIT_ASSERT_FALSE(test, llist_empty(&tw->inbox));
	KUNIT_EXPECT_EQ(test, cancel(tw, how.id), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_TRUE(test, llist_empty(&tw->inbox));
}

/*
 * G2, G4: if a timeout becomes due in the inbox, it is an event when it leaves, and wakes a waiter.
 */
static void a_timeout_that_is_due_in_the_inbox_wakes_when_the_inbox_is_emptied(struct kunit *test)
{
	struct twheel_arm how = arm_of(0, 0);
	struct tw_ctx *tw = test->priv;
	struct waiter waiter = {};

	waiter_queues(tw, &waiter);
	arm_beside_the_lock(test, &how, 1);
	time_set(tw, START_NS + DELAY_NS);
	twheel_unlock(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 1U);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	KUNIT_EXPECT_EQ(test, tw->events.late_ticks[0], 0ULL);
	waiter_leaves(tw, &waiter);
}

/* G3: DRAIN waits for calls that have found the wheel accepting; no other timeout is added. */
static void nothing_is_added_to_the_inbox_of_a_draining_wheel(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct arming arming = { .now_ns = START_NS };
	struct twheel_arm how = arm_of(0, 0);
	bool queued;

	skip_with_preempt_rt(test);
	KUNIT_ASSERT_EQ(test, twheel_places_take(tw, 1, false, &arming.first), 0);
	arming.place = arming.first;
	KUNIT_ASSERT_EQ(test, arm_begin(tw, &how, &arming), 0);
	arming.place = NULL;
	arming.nr = 1;
	twheel_lock(tw);
	WRITE_ONCE(tw->control.draining, true);
	queued = arm_queue(tw, &arming);
	twheel_unlock(tw);
	KUNIT_EXPECT_FALSE(test, queued);
	KUNIT_EXPECT_EQ(test, tw->events.armed, 0ULL);
	twheel_places_give(tw, arming.first);
}

/* G1: a caller may have read the clock before the wheel was turned. */
static void a_caller_whose_time_is_old_goes_by_the_time_of_the_wheel(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 now_ns[3];

	time_set(tw, START_NS + 9 * TICK_NS);
	pass(tw);
	twheel_lock(tw);
	now_ns[0] = passed_ns(tw, START_NS);
	now_ns[1] = passed_ns(tw, tw->wheel.base_ns);
	now_ns[2] = passed_ns(tw, tw->wheel.base_ns + 1);
	twheel_unlock(tw);
	KUNIT_EXPECT_EQ(test, now_ns[0], START_NS + 9 * TICK_NS);
	KUNIT_EXPECT_EQ(test, now_ns[1], START_NS + 9 * TICK_NS);
	KUNIT_EXPECT_EQ(test, now_ns[2], START_NS + 9 * TICK_NS + 1);
	KUNIT_EXPECT_EQ(test, tw->wheel.base_ns, START_NS + 9 * TICK_NS);
}

/* G1: if a clock was set back, it is followed, and its timeouts wait for it. */
static void a_clock_that_was_set_back_is_followed_by_the_wheel(struct kunit *test)
{
	struct tw_ctx *tw = wheel_whose_clock_goes_back(test);
	u64 now_ns;

	time_set(tw, START_NS + 9 * TICK_NS);
	pass(tw);
	time_set(tw, START_NS + TICK_NS + 1);
	twheel_lock(tw);
	now_ns = passed_ns(tw, time_of(tw));
	twheel_unlock(tw);
	KUNIT_EXPECT_EQ(test, now_ns, START_NS + TICK_NS + 1);
	KUNIT_EXPECT_EQ(test, tw->wheel.base_ns, START_NS + TICK_NS);
	arm_like(test, 0);
	expire_at(tw, START_NS + 6 * TICK_NS);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
	expire_at(tw, START_NS + 7 * TICK_NS);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 1U);
}

static void a_timeout_that_never_expires_is_in_no_slot(struct kunit *test)
{
	struct twheel_arm how = { .expires_ns = TWHEEL_TIME_NEVER, .slack_ticks = 3 };
	struct tw_ctx *tw = test->priv;

	arm(test, &how);
	KUNIT_EXPECT_PTR_NE(test, tw->wheel.never, &tw->wheel.end);
	KUNIT_EXPECT_EQ(test, tw->wheel.used, 0U);
	/* The timeout can be cancelled and moved as any other. */
	KUNIT_EXPECT_EQ(test, rearm_to(tw, how.id, .expires_ns = 1), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_PTR_EQ(test, tw->wheel.never, &tw->wheel.end);
	KUNIT_EXPECT_EQ(test, tw->wheel.used, 1U);
	KUNIT_EXPECT_EQ(test, rearm(tw, how.id, &how), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, cancel(tw, how.id), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_PTR_EQ(test, tw->wheel.never, &tw->wheel.end);
}

static struct kunit_case submit_cases[] = {
	KUNIT_CASE(an_arm_beside_the_lock_is_inserted_by_its_holder),
	KUNIT_CASE(the_inbox_is_emptied_between_the_steps_of_a_pass),
	KUNIT_CASE(a_thread_that_takes_the_lock_finds_what_was_added_before),
	KUNIT_CASE(a_timeout_that_is_due_in_the_inbox_wakes_when_the_inbox_is_emptied),
	KUNIT_CASE(nothing_is_added_to_the_inbox_of_a_draining_wheel),
	KUNIT_CASE(a_caller_whose_time_is_old_goes_by_the_time_of_the_wheel),
	KUNIT_CASE(a_clock_that_was_set_back_is_followed_by_the_wheel),
	KUNIT_CASE(a_timeout_that_never_expires_is_in_no_slot),
	{}
};

ENGINE_SUITE(submit);
