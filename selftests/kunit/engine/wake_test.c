// SPDX-License-Identifier: GPL-2.0
/*
 * engine/wake.c: when the kthread runs, and on which alarm
 */

/* G2, G6: the alarm is set for the earliest edge, and the kthread sleeps until then. */
static void what_is_far_wakes_nobody_and_sets_the_alarm(struct kunit *test)
{
	struct twheel *tw = test->priv;
	const u64 edge_ns = START_NS + 6 * TICK_NS;

	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NEVER);
	arm(test, &(struct twheel_arm) { .expires_ns = TWHEEL_TIME_NEVER });
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NEVER);
	arm_like(test, 0);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, edge_ns);
	arm(test, &(struct twheel_arm) { .expires_ns = 2 * DELAY_NS });
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, edge_ns);
	arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS });
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS + TICK_NS);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	/* A pass finds the same alarm from the wheel. */
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS + TICK_NS);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
}

/* G2: a timeout that is due when armed does not wait for an alarm. */
static void what_is_overdue_wakes_at_once(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 id;

	arm_like(test, OV);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	id = id_of(arm_like(test, 0));
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	rearm(tw, id, &(struct twheel_arm) { .flags = TWHEEL_ARM_ABSOLUTE });
	KUNIT_EXPECT_TRUE(test, work_take(tw));
}

/* G2: such a timeout wakes nobody, and yet is not forgotten. */
static void what_comes_during_a_pass_is_looked_at_when_it_ends(struct kunit *test)
{
	struct twheel *tw = test->priv;

	pass_begin(tw);
	arm_like(test, OV);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	pass_end(tw, false);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
}

/*
 * The inbox wakes the kthread once, when it reaches its watermark.  What a pass has taken out
 * of it counts until the pass has done it.
 */
static void an_inbox_that_fills_again_is_looked_at_when_the_pass_ends(struct kunit *test)
{
	struct twheel *tw = test->priv;

	arm_many(test, INBOX_WATERMARK, NULL);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	pass_begin(tw);
	arm_many(test, INBOX_WATERMARK, NULL);
	KUNIT_EXPECT_NE(test, tw->wake.at_ns, WAKE_NOW);
	while (twheel_pass_turn(&tw->wake.turn, U64_MAX) && tw->pass.begun)
		;
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NOW);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	pass(tw);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
}

/* G2: two callers have found the alarm too late, and the earlier one came first. */
static void an_alarm_is_not_put_off_by_a_later_one(struct kunit *test)
{
	struct twheel *tw = test->priv;

	twheel_wake_at(tw, START_NS + 2 * TICK_NS);
	twheel_wake_at(tw, START_NS + 3 * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS + 2 * TICK_NS);
	twheel_wake_at(tw, START_NS + TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, START_NS + TICK_NS);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
}

/* G1, G2: a time namespace sets the wheel's clock ahead of the machine's, or behind it. */
static void an_alarm_is_set_on_the_clock_of_the_machine(struct kunit *test)
{
	struct twheel *tw = test->priv;

	tw->wake.at_ns = 1000 * NSEC_PER_SEC;
	tw->clock.offset_ns = 900 * (s64)NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, wake_expiry(tw), 100 * (ktime_t)NSEC_PER_SEC);
	tw->clock.offset_ns = -900 * (s64)NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, wake_expiry(tw), 1900 * (ktime_t)NSEC_PER_SEC);
	/* Beyond what the machine's clock reaches. */
	tw->wake.at_ns = TWHEEL_TIME_NEVER - 1;
	KUNIT_EXPECT_EQ(test, wake_expiry(tw), KTIME_MAX);
	tw->wake.at_ns = WAKE_NEVER;
	tw->clock.offset_ns = 0;
}

/* The alarm may come late by the slack of the wheel, and no earlier for it. */
static void an_alarm_has_the_slack_of_the_wheel_as_its_range(struct kunit *test)
{
	struct twheel_setup setup = usual_setup;
	struct twheel_timeout *t;
	struct twheel *tw;

	setup.clock = TWHEEL_CLOCK_MONOTONIC;
	setup.slack_ns = 1234567;
	tw = wheel_remake(test, &setup);
	t = arm(test, &(struct twheel_arm) { .expires_ns = 3600 * NSEC_PER_SEC });
	KUNIT_EXPECT_EQ(test, (u64)ktime_to_ns(hrtimer_get_softexpires(&tw->wake.timer)),
			DIV64_U64_ROUND_UP(t->deadline_ns, TICK_NS) * TICK_NS);
	KUNIT_EXPECT_EQ(test, (u64)ktime_to_ns(hrtimer_get_expires(&tw->wake.timer)),
			DIV64_U64_ROUND_UP(t->deadline_ns, TICK_NS) * TICK_NS + 1234567);
}

/* G6: with nothing pending the hrtimer is off. */
static void a_real_clock_is_slept_on_and_let_go_when_nothing_pends(struct kunit *test)
{
	struct twheel *tw = wheel_with(test, clock, TWHEEL_CLOCK_MONOTONIC);
	struct twheel_timeout *t;

	KUNIT_EXPECT_FALSE(test, hrtimer_active(&tw->wake.timer));
	t = arm(test, &(struct twheel_arm) { .expires_ns = 3600 * NSEC_PER_SEC });
	KUNIT_EXPECT_TRUE(test, hrtimer_active(&tw->wake.timer));
	KUNIT_EXPECT_EQ(test, (u64)ktime_to_ns(hrtimer_get_expires(&tw->wake.timer)),
			DIV64_U64_ROUND_UP(t->deadline_ns, TICK_NS) * TICK_NS);
	/* The alarm follows a timeout that is moved earlier. */
	rearm(tw, id_of(t), &(struct twheel_arm) {
		.expires_ns = 1800 * NSEC_PER_SEC });
	KUNIT_EXPECT_EQ(test, (u64)ktime_to_ns(hrtimer_get_expires(&tw->wake.timer)),
			DIV64_U64_ROUND_UP(t->deadline_ns, TICK_NS) * TICK_NS);
	cancel(tw, id_of(t));
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NEVER);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&tw->wake.timer));
}

struct waiter {
	struct wait_queue_entry entry;
	unsigned int nr_woken;
	bool slow;
};

static int waiter_wakes(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	struct waiter *waiter = container_of(entry, struct waiter, entry);

	u64 until_ns = ktime_get_ns() + NSEC_PER_MSEC;

	waiter->nr_woken++;
	while (waiter->slow && ktime_get_ns() < until_ns)
		cpu_relax();
	return 1;
}

static void waiter_queues(struct twheel *tw, struct waiter *waiter)
{
	init_waitqueue_func_entry(&waiter->entry, waiter_wakes);
	add_wait_queue(&tw->wake.waiters, &waiter->entry);
}

static void waiter_leaves(struct twheel *tw, struct waiter *waiter)
{
	remove_wait_queue(&tw->wake.waiters, &waiter->entry);
}

/* The hrtimer fires.  Says after how long it was to fire once more, 0 for not at all. */
static u64 alarm_fires(struct twheel *tw)
{
	u64 again_ns = 0, now_ns;

	/*
	 * It does not fire by itself before it is taken away again: softirqs wait, and under
	 * PREEMPT_RT the thread that lets timers fire does, which has a lower priority.
	 */
	sched_set_fifo(current);
	local_bh_disable();
	now_ns = ktime_get_ns();
	timer_fired(&tw->wake.timer);
	if (hrtimer_active(&tw->wake.timer))
		again_ns = ktime_to_ns(hrtimer_get_expires(&tw->wake.timer)) - now_ns;
	hrtimer_try_to_cancel(&tw->wake.timer);
	local_bh_enable();
	sched_set_normal(current, 0);
	return again_ns;
}

static u64 no_wake_until_ns(struct twheel *tw)
{
	return atomic64_read(&tw->memory.user->no_wake_until_ns);
}

static void wake_ups_are_paid(struct twheel *tw)
{
	atomic64_set(&tw->memory.user->no_wake_until_ns, 0);
}

/* Likewise; the wake-ups before are paid. */
static u64 alarm_goes_off(struct twheel *tw)
{
	wake_ups_are_paid(tw);
	return alarm_fires(tw);
}

static enum stand_in_phase stand_in_of(const struct twheel *tw)
{
	return atomic_read(&tw->wake.stand_in);
}

/* A timeout is due, and a pass is not yet asked for. */
static void make_due(struct kunit *test)
{
	struct twheel *tw = test->priv;

	arm_like(test, 0);
	pass(tw);
	work_take(tw);
	tw->clock.virtual_now_ns += DELAY_NS + TICK_NS;
}

/* G2, G5: one thread is woken, and the kthread only if that does not come. */
static void a_waiter_is_asked_and_makes_the_pass(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct waiter waiter = {};
	u64 again_ns;

	waiter_queues(tw, &waiter);
	make_due(test);
	again_ns = alarm_goes_off(tw);
	KUNIT_EXPECT_GT(test, again_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, stand_in_of(tw), STAND_IN_ASKED);
	KUNIT_EXPECT_TRUE(test, twheel_wait_is_over(tw));
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	KUNIT_EXPECT_FALSE(test, twheel_has_events(tw));
	KUNIT_EXPECT_EQ(test, stand_in_of(tw), STAND_IN_ASKED);
	twheel_stand_in(tw);
	KUNIT_EXPECT_TRUE(test, twheel_wait_is_over(tw));
	KUNIT_EXPECT_TRUE(test, twheel_has_events(tw));
	KUNIT_EXPECT_EQ(test, stand_in_of(tw), STAND_IN_NONE);
	/* A second wake-up would be a second edge for epoll. */
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	/* It makes one pass, and not another that nobody has asked for. */
	make_due(test);
	twheel_stand_in(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
	/* One that has events to read is busy. */
	KUNIT_EXPECT_EQ(test, alarm_goes_off(tw), 0ULL);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	/* The kthread wakes it for what it lets expire. */
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 2U);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 2U);
	waiter_leaves(tw, &waiter);
}

/* G2: half a tick later at most. */
static void the_kthread_makes_the_pass_if_the_waiter_does_not_come(struct kunit *test)
{
	static const struct { u64 tick_ns, again_ns; } rows[] = {
		{ NSEC_PER_SEC, 5000000 }, { 1000000, 500000 }, { 200000, 100000 },
		{ 100000, 50000 },
	};
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct twheel *tw = wheel_with(test, tick_ns, rows[i].tick_ns);
		struct waiter waiter = {};
		u64 again_ns;

		waiter_queues(tw, &waiter);
		make_due(test);
		again_ns = alarm_goes_off(tw);
		KUNIT_EXPECT_GE(test, again_ns, rows[i].again_ns);
		/* The clock was read before. */
		KUNIT_EXPECT_LT(test, again_ns, rows[i].again_ns + 100 * NSEC_PER_MSEC);
		KUNIT_EXPECT_FALSE(test, work_take(tw));
		KUNIT_EXPECT_EQ(test, alarm_goes_off(tw), 0ULL);
		KUNIT_EXPECT_TRUE(test, work_take(tw));
		pass(tw);
		KUNIT_EXPECT_EQ(test, stand_in_of(tw), STAND_IN_LATE);
		twheel_has_events(tw);
		KUNIT_EXPECT_EQ(test, stand_in_of(tw), STAND_IN_NONE);
		while (read_one(tw, NULL))
			;
		make_due(test);
		/* It is busy: the next passes are the kthread's at once. */
		for (j = 0; j < ASK_PAUSE; j++) {
			KUNIT_EXPECT_EQ(test, alarm_goes_off(tw), 0ULL);
			KUNIT_EXPECT_TRUE(test, work_take(tw));
		}
		KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
		KUNIT_EXPECT_GT(test, alarm_goes_off(tw), 0ULL);
		KUNIT_EXPECT_EQ(test, waiter.nr_woken, 2U);
		waiter_leaves(tw, &waiter);
	}
}

/*
 * A waiter that was asked may be killed before it looks, while others wait behind the same
 * epoll instance.  They are woken for the events of the next pass.
 */
static void a_waiter_that_never_looks_is_relied_on_for_one_pass(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct waiter waiter = {};

	waiter_queues(tw, &waiter);
	make_due(test);
	KUNIT_EXPECT_GT(test, alarm_goes_off(tw), 0ULL);
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
	KUNIT_EXPECT_EQ(test, stand_in_of(tw), STAND_IN_LATE);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	arm(test, &(struct twheel_arm) {});
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 2U);
	KUNIT_EXPECT_EQ(test, stand_in_of(tw), STAND_IN_NONE);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 2U);
	waiter_leaves(tw, &waiter);
}

struct overtaker {
	struct hrtimer timer;
	struct twheel_wake *wake;
};

static enum hrtimer_restart overtaker_begins(struct hrtimer *timer)
{
	struct overtaker *overtaker = container_of(timer, struct overtaker, timer);

	twheel_stand_in_late(overtaker->wake);
	return HRTIMER_NORESTART;
}

/*
 * G4: nobody who was asked and has not looked is woken for the events of the kthread's pass.
 * The pass begins anywhere in a look of a reader, here in an interrupt: when the reader goes to
 * sleep, it has looked.
 */
static void a_reader_that_is_overtaken_in_its_look_has_looked(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int i, nr_looks = 0, nr_missed = 0;
	struct overtaker *overtaker;

	/* Not on the stack: a kernel that watches timers wants to be told of those there. */
	overtaker = kunit_kzalloc(test, sizeof(*overtaker), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, overtaker);
	overtaker->wake = &tw->wake;
	hrtimer_setup(&overtaker->timer, overtaker_begins, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_HARD);
	for (i = 0; i < 300; i++) {
		KUNIT_ASSERT_TRUE(test, stand_in_change(&tw->wake, STAND_IN_NONE, STAND_IN_ASKED));
		hrtimer_start(&overtaker->timer, ns_to_ktime(20 * NSEC_PER_USEC),
			      HRTIMER_MODE_REL_HARD);
		while (twheel_wait_is_over(tw))
			nr_looks++;
		nr_missed += stand_in_change(&tw->wake, STAND_IN_LATE, STAND_IN_NONE);
		hrtimer_cancel(&overtaker->timer);
	}
	KUNIT_EXPECT_GT(test, nr_looks, 0U);
	KUNIT_EXPECT_EQ(test, nr_missed, 0U);
}

/* G5: the softirq wakes one waiter, and none where that takes long. */
static void a_waiter_is_not_asked_who_is_not_alone_or_slow_to_wake(struct kunit *test)
{
	struct waiter waiter = { .slow = true }, other = {};
	struct twheel *tw = test->priv;
	u64 begin_ns = ktime_get_ns();

	make_due(test);
	KUNIT_EXPECT_EQ(test, alarm_goes_off(tw), 0ULL);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	waiter_queues(tw, &waiter);
	waiter_queues(tw, &other);
	KUNIT_EXPECT_EQ(test, alarm_goes_off(tw), 0ULL);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	KUNIT_EXPECT_EQ(test, waiter.nr_woken + other.nr_woken, 0U);
	waiter_leaves(tw, &other);
	KUNIT_EXPECT_GT(test, alarm_goes_off(tw), 0ULL);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	twheel_stand_in(tw);
	KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	/* That has taken a millisecond. */
	KUNIT_EXPECT_GE(test, no_wake_until_ns(tw), begin_ns + WAKE_PAUSES * NSEC_PER_MSEC);
	twheel_user_has_woken(tw->memory.user, ktime_get_ns(),
			      ktime_get_ns() + NSEC_PER_SEC);
	make_due(test);
	KUNIT_EXPECT_EQ(test, alarm_fires(tw), 0ULL);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	waiter.slow = false;
	KUNIT_EXPECT_GT(test, alarm_goes_off(tw), 0ULL);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 2U);
	waiter_leaves(tw, &waiter);
}

/* G2: the wait for it would be too long for such a tick. */
static void no_waiter_is_asked_in_a_wheel_with_a_short_tick(struct kunit *test)
{
	struct twheel *tw = wheel_with(test, tick_ns, 2 * ASK_WAIT_MIN_NS - 1);
	struct waiter waiter = {};

	waiter_queues(tw, &waiter);
	make_due(test);
	KUNIT_EXPECT_EQ(test, alarm_goes_off(tw), 0ULL);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 0U);
	waiter_leaves(tw, &waiter);
}

/* Nor while a pass goes on, which may be past what is due, nor in the last close. */
static void no_waiter_is_asked_in_a_pass_or_a_close(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct waiter waiter = {};

	waiter_queues(tw, &waiter);
	make_due(test);
	pass_begin(tw);
	/* The end of the pass sees to what is due by then. */
	KUNIT_EXPECT_EQ(test, alarm_goes_off(tw), 0ULL);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	pass(tw);
	work_take(tw);
	while (read_one(tw, NULL))
		;
	waiter.nr_woken = 0;
	make_due(test);
	tw->wake.closing = true;
	KUNIT_EXPECT_EQ(test, alarm_goes_off(tw), 0ULL);
	tw->wake.closing = false;
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 0U);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	waiter_leaves(tw, &waiter);
}

/*
 * G6: a waiter on another processor may have made the pass before the function of the
 * hrtimer has returned, which then fires once more.
 */
static void an_alarm_for_nothing_wakes_nobody(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct waiter waiter = {};

	waiter_queues(tw, &waiter);
	KUNIT_EXPECT_EQ(test, tw->wake.at_ns, WAKE_NEVER);
	KUNIT_EXPECT_EQ(test, alarm_goes_off(tw), 0ULL);
	KUNIT_EXPECT_FALSE(test, work_take(tw));
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 0U);
	waiter_leaves(tw, &waiter);
}

/* G2: who may be kept from ending a pass leaves it to the kthread. */
static void no_pass_is_made_by_who_is_below_the_kthread(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct waiter waiter = {};

	waiter_queues(tw, &waiter);
	make_due(test);
	KUNIT_EXPECT_GT(test, alarm_goes_off(tw), 0ULL);
	set_user_nice(current, 1);
	twheel_stand_in(tw);
	set_user_nice(current, 0);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	KUNIT_EXPECT_EQ(test, stand_in_of(tw), STAND_IN_NONE);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	/* It would refuse the next time, too. */
	KUNIT_EXPECT_EQ(test, tw->wake.pause, ASK_PAUSE);
	tw->wake.pause = 0;
	/* A kthread that is above all is not relieved. */
	nobodys_task.prio = DEFAULT_PRIO - 1;
	KUNIT_EXPECT_EQ(test, alarm_goes_off(tw), 0ULL);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	/* One that is as low as the waiter is. */
	nobodys_task.prio = DEFAULT_PRIO + 1;
	KUNIT_EXPECT_GT(test, alarm_goes_off(tw), 0ULL);
	set_user_nice(current, 1);
	twheel_stand_in(tw);
	set_user_nice(current, 0);
	nobodys_task.prio = DEFAULT_PRIO;
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
	waiter_leaves(tw, &waiter);
}

/* A pass of the kthread does what the waiter was asked for. */
static void a_pass_of_the_kthread_leaves_a_waiter_nothing_to_do(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct waiter waiter = {}, other = {};

	waiter_queues(tw, &waiter);
	make_due(test);
	alarm_goes_off(tw);
	pass(tw);
	/* It has yet to look, and is not woken once more: that would be a second edge. */
	KUNIT_EXPECT_EQ(test, stand_in_of(tw), STAND_IN_LATE);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	twheel_stand_in(tw);
	KUNIT_EXPECT_TRUE(test, twheel_has_events(tw));
	KUNIT_EXPECT_EQ(test, stand_in_of(tw), STAND_IN_NONE);
	KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	/* If another one has come, both are woken. */
	make_due(test);
	alarm_goes_off(tw);
	pass_begin(tw);
	waiter_queues(tw, &other);
	pass(tw);
	waiter_leaves(tw, &other);
	KUNIT_EXPECT_EQ(test, stand_in_of(tw), STAND_IN_LATE);
	KUNIT_EXPECT_EQ(test, other.nr_woken, 1U);
	twheel_has_events(tw);
	KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	waiter.nr_woken = 1;
	/* If it has looked, it is woken. */
	make_due(test);
	alarm_goes_off(tw);
	pass_begin(tw);
	KUNIT_EXPECT_FALSE(test, twheel_has_events(tw));
	pass(tw);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 3U);
	KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	/* The kthread has the turn, and begins its pass when the waiter comes. */
	make_due(test);
	alarm_goes_off(tw);
	KUNIT_EXPECT_TRUE(test, twheel_turn_take(&tw->wake.turn));
	twheel_stand_in(tw);
	KUNIT_EXPECT_EQ(test, stand_in_of(tw), STAND_IN_NONE);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 0U);
	twheel_turn_end(&tw->wake.turn, false);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, 1U);
	waiter_leaves(tw, &waiter);
}

/* No event is missed by who looks, or comes, while a waiter makes the pass. */
static void who_finds_nothing_while_a_waiter_stands_in_is_woken_at_the_end(struct kunit *test)
{
	struct waiter waiter = {}, other = {};
	struct twheel *tw = test->priv;
	u32 size;

	waiter_queues(tw, &waiter);
	make_due(test);
	alarm_goes_off(tw);
	KUNIT_ASSERT_TRUE(test, twheel_stand_in_begin(tw));
	KUNIT_EXPECT_FALSE(test, twheel_stand_in_begin(tw));
	KUNIT_EXPECT_FALSE(test, twheel_has_events(tw));
	KUNIT_EXPECT_EQ(test, stand_in_of(tw), STAND_IN_AWAITED);
	KUNIT_EXPECT_FALSE(test, twheel_has_events(tw));
	KUNIT_EXPECT_FALSE(test, twheel_wait_is_over(tw));
	pass(tw);
	KUNIT_EXPECT_TRUE(test, twheel_has_events(tw));
	waiter.nr_woken = 0;
	twheel_stand_in_end(tw, false);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);

	/* A reader may take what is there, and miss what comes. */
	make_due(test);
	alarm_goes_off(tw);
	KUNIT_ASSERT_TRUE(test, twheel_stand_in_begin(tw));
	KUNIT_EXPECT_EQ(test, twheel_nr_events(tw, &size), 0U);
	KUNIT_EXPECT_EQ(test, stand_in_of(tw), STAND_IN_AWAITED);
	pass(tw);
	waiter.nr_woken = 0;
	twheel_stand_in_end(tw, false);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);

	make_due(test);
	alarm_goes_off(tw);
	KUNIT_ASSERT_TRUE(test, twheel_stand_in_begin(tw));
	waiter_queues(tw, &other);
	pass(tw);
	waiter.nr_woken = 0;
	other.nr_woken = 0;
	twheel_stand_in_end(tw, false);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	KUNIT_EXPECT_EQ(test, other.nr_woken, 1U);
	waiter_leaves(tw, &other);

	/* Where there is no event, nobody is woken. */
	while (read_one(tw, NULL))
		;
	make_due(test);
	alarm_goes_off(tw);
	KUNIT_ASSERT_TRUE(test, twheel_stand_in_begin(tw));
	KUNIT_EXPECT_FALSE(test, twheel_has_events(tw));
	waiter.nr_woken = 0;
	twheel_stand_in_end(tw, false);
	twheel_wake_for_events(tw, 1);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 0U);
	waiter_leaves(tw, &waiter);
}

/* G2: it has other things to do. */
static void a_waiter_leaves_the_kthread_what_takes_long(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct waiter waiter = {};

	waiter_queues(tw, &waiter);
	arm_many(test, TURN_BUDGET + 1, NULL);
	work_take(tw);
	alarm_goes_off(tw);
	twheel_stand_in(tw);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	KUNIT_EXPECT_GT(test, atomic_read(&tw->inbox.len), 0);
	pass(tw);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->inbox.len), 0);
	/* Giving memory back is the kthread's, too. */
	work_take(tw);
	tw->shrink.due = true;
	alarm_goes_off(tw);
	twheel_stand_in(tw);
	KUNIT_EXPECT_TRUE(test, work_take(tw));
	KUNIT_EXPECT_TRUE(test, tw->shrink.due);
	pass(tw);
	waiter_leaves(tw, &waiter);
}

/* Nor does it hold the wheel's turn while another thread wants its processor. */
static void a_waiter_ends_its_turn_rather_than_give_way_in_it(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct waiter waiter = {};
	bool gave_way = false;
	int tries;

	waiter_queues(tw, &waiter);
	/* An interrupt may come in between, and give way at once. */
	for (tries = 0; tries < 100 && !gave_way; tries++) {
		arm_many(test, 3 * KTHREAD_BATCH, NULL);
		alarm_goes_off(tw);
		set_tsk_need_resched(current);
		twheel_stand_in(tw);
		gave_way = atomic_read(&tw->inbox.len) && work_take(tw);
		pass(tw);
		work_take(tw);
	}
	KUNIT_EXPECT_TRUE(test, gave_way);
	waiter_leaves(tw, &waiter);
}

static struct kunit_case wake_cases[] = {
	KUNIT_CASE(a_waiter_ends_its_turn_rather_than_give_way_in_it),
	KUNIT_CASE(an_alarm_for_nothing_wakes_nobody),
	KUNIT_CASE(no_pass_is_made_by_who_is_below_the_kthread),
	KUNIT_CASE(a_waiter_is_asked_and_makes_the_pass),
	KUNIT_CASE(the_kthread_makes_the_pass_if_the_waiter_does_not_come),
	KUNIT_CASE(a_waiter_that_never_looks_is_relied_on_for_one_pass),
	KUNIT_CASE(a_reader_that_is_overtaken_in_its_look_has_looked),
	KUNIT_CASE(a_waiter_is_not_asked_who_is_not_alone_or_slow_to_wake),
	KUNIT_CASE(no_waiter_is_asked_in_a_wheel_with_a_short_tick),
	KUNIT_CASE(no_waiter_is_asked_in_a_pass_or_a_close),
	KUNIT_CASE(a_pass_of_the_kthread_leaves_a_waiter_nothing_to_do),
	KUNIT_CASE(who_finds_nothing_while_a_waiter_stands_in_is_woken_at_the_end),
	KUNIT_CASE(a_waiter_leaves_the_kthread_what_takes_long),
	KUNIT_CASE(what_is_far_wakes_nobody_and_sets_the_alarm),
	KUNIT_CASE(what_is_overdue_wakes_at_once),
	KUNIT_CASE(what_comes_during_a_pass_is_looked_at_when_it_ends),
	KUNIT_CASE(an_inbox_that_fills_again_is_looked_at_when_the_pass_ends),
	KUNIT_CASE(an_alarm_is_not_put_off_by_a_later_one),
	KUNIT_CASE(an_alarm_is_set_on_the_clock_of_the_machine),
	KUNIT_CASE(an_alarm_has_the_slack_of_the_wheel_as_its_range),
	KUNIT_CASE(a_real_clock_is_slept_on_and_let_go_when_nothing_pends),
	{}
};

ENGINE_SUITE(wake);
