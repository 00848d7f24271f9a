// SPDX-License-Identifier: GPL-2.0
/*
 * engine/run.c: the work of the softirq when the alarm rings
 */

/* G2: it makes the events, wakes the reader, and rings again for the next one. */
static void the_softirq_expires_what_is_due_and_sets_the_next_alarm(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct waiter waiter = {};

	alarms_begin(tw);
	arm_like(test, 0);
	arm_like(test, PE);
	arm(test, &(struct twheel_arm) { .expires_ns = 50 * TICK_NS });
	waiter_queues(tw, &waiter);
	time_set(tw, tw->alarm.at_ns);
	work_is_paid(tw);
	KUNIT_EXPECT_TRUE(test, alarm_rings_now(tw));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 2U);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	KUNIT_EXPECT_EQ(test, machine_alarm.at_ns, START_NS + 50 * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, START_NS + 50 * TICK_NS);
	KUNIT_EXPECT_FALSE(test, turn_take(tw));
	time_set(tw, tw->alarm.at_ns);
	work_is_paid(tw);
	KUNIT_EXPECT_FALSE(test, alarm_rings_now(tw));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 3U);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 2U);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, NEVER_NS);
	waiter_leaves(tw, &waiter);
}

/* G5: it takes this many steps, and the kthread does the rest. */
static void the_softirq_takes_a_limited_number_of_steps_for_a_wheel(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	alarms_begin(tw);
	machine_ns = NSEC_PER_SEC;
	machine_step_ns = 0;
	arm_many(test, (SOFT_STEPS + 2) * PASS_STEP, NULL);
	arm(test, &(struct twheel_arm) { .expires_ns = 50 * TICK_NS });
	time_set(tw, tw->alarm.at_ns);
	work_is_paid(tw);
	/* If the kthread does not come, the softirq goes on with the next tick. */
	KUNIT_EXPECT_TRUE(test, alarm_rings_now(tw));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), (u32)SOFT_STEPS * PASS_STEP);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, time_of(tw) + TICK_NS);
	KUNIT_EXPECT_EQ(test, machine_alarm.at_ns, time_of(tw) + TICK_NS);
	KUNIT_EXPECT_TRUE(test, turn_take(tw));
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), (u32)(SOFT_STEPS + 2) * PASS_STEP);
	KUNIT_EXPECT_EQ(test, machine_alarm.at_ns, START_NS + 50 * TICK_NS);
	KUNIT_EXPECT_TRUE(test, machine_alarm.is_on);
}

/* G2: if an ARM has set a later alarm, the rest does not wait for that either. */
static void the_softirq_goes_on_before_an_alarm_that_an_arm_has_set(struct kunit *test)
{
	struct twheel_arm how = arm_of(0, 0);
	struct tw_ctx *tw = test->priv;

	alarms_begin(tw);
	machine_ns = NSEC_PER_SEC;
	machine_step_ns = 0;
	arm_many(test, (SOFT_STEPS + 1) * PASS_STEP, NULL);
	time_set(tw, tw->alarm.at_ns);
	how.expires_ns = 50 * TICK_NS;
	arm_beside_the_lock(test, &how, 1);
	spin_unlock(&tw->lock);
	work_is_paid(tw);
	alarm_rings_now(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), (u32)SOFT_STEPS * PASS_STEP);
	KUNIT_EXPECT_TRUE(test, machine_alarm.is_on);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, time_of(tw) + TICK_NS);
	KUNIT_EXPECT_EQ(test, machine_alarm.at_ns, time_of(tw) + TICK_NS);
	KUNIT_EXPECT_TRUE(test, turn_take(tw));
}

/* G6: if several steps have done all that was due, it does not ring again. */
static void the_softirq_that_has_done_all_does_not_ring_again(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	alarms_begin(tw);
	machine_ns = NSEC_PER_SEC;
	machine_step_ns = 0;
	arm_many(test, 2 * PASS_STEP, NULL);
	time_set(tw, tw->alarm.at_ns);
	work_is_paid(tw);
	KUNIT_EXPECT_FALSE(test, alarm_rings_now(tw));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 2U * PASS_STEP);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, NEVER_NS);
	KUNIT_EXPECT_FALSE(test, turn_take(tw));
}

/* G5: the softirq works for this long. */
static void the_softirq_ends_with_its_time(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	alarms_begin(tw);
	arm_many(test, SOFT_STEPS * PASS_STEP, NULL);
	time_set(tw, tw->alarm.at_ns);
	work_is_paid(tw);
	machine_ns = NSEC_PER_SEC;
	machine_step_ns = SOFT_NS / 2;
	KUNIT_EXPECT_TRUE(test, alarm_rings_now(tw));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 2U * PASS_STEP);
	KUNIT_EXPECT_TRUE(test, turn_take(tw));
}

/* G5: all wheels together have one run, and half of the processor's time after that. */
static void the_softirqs_of_a_processor_share_its_time(struct kunit *test)
{
	const u64 begin_ns = 1000 * NSEC_PER_SEC;
	struct tw_ctx *tw = test->priv;
	u64 left_ns[6];

	work_is_paid(tw);
	preempt_disable();
	left_ns[0] = processor_left_ns(begin_ns);
	processor_has_worked(begin_ns, begin_ns + 20000);
	left_ns[1] = processor_left_ns(begin_ns + 20000);
	processor_has_worked(begin_ns + 20000, begin_ns + 50000);
	left_ns[2] = processor_left_ns(begin_ns + 50000);
	left_ns[3] = processor_left_ns(begin_ns + 60000);
	/* Unused time of long ago is no credit. If a softirq takes too long, nothing is left. */
	processor_has_worked(2 * begin_ns, 2 * begin_ns + 150000);
	left_ns[4] = processor_left_ns(2 * begin_ns + 150000);
	left_ns[5] = processor_left_ns(2 * begin_ns + 300000);
	preempt_enable();
	KUNIT_EXPECT_EQ(test, left_ns[0], (u64)SOFT_NS);
	KUNIT_EXPECT_EQ(test, left_ns[1], (u64)SOFT_NS - 10000);
	KUNIT_EXPECT_EQ(test, left_ns[2], (u64)SOFT_NS - 25000);
	KUNIT_EXPECT_EQ(test, left_ns[3], (u64)SOFT_NS - 20000);
	KUNIT_EXPECT_EQ(test, left_ns[4], 0ULL);
	KUNIT_EXPECT_EQ(test, left_ns[5], (u64)SOFT_NS);
	work_is_paid(tw);
}

/* Use up the share of the user or of the processor: @user says which. */
static void share_is_used_up(struct tw_ctx *tw, bool user)
{
	int cpu;

	work_is_paid(tw);
	if (user)
		twheel_user_has_worked(tw->memory.user, machine_ns, machine_ns + 2 * USER_BURST_NS);
	else
		for_each_possible_cpu(cpu)
			per_cpu(soft_until_ns, cpu) = machine_ns + 2 * SOFT_NS;
}

/* Arm a timeout whose alarm rings when the share is used up: only the alarm is set. */
static void rings_without_a_share(struct kunit *test, bool user)
{
	struct tw_ctx *tw = test->priv;
	s64 pause_ns;

	arm_like(test, 0);
	time_set(tw, tw->alarm.at_ns);
	share_is_used_up(tw, user);
	pause_ns = max3((s64)BARRED_NS, user ? 0 : 2 * (s64)SOFT_NS,
			user_pause_ns(tw->memory.user, machine_ns));
	KUNIT_EXPECT_TRUE(test, alarm_rings_now(tw));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, edge_after_ns(&tw->clock, time_of(tw) + pause_ns));
	KUNIT_EXPECT_EQ(test, machine_alarm.at_ns, tw->alarm.at_ns);
	KUNIT_EXPECT_TRUE(test, turn_take(tw));
}

/* G5: if the share of the user or of the processor is used up, the kthread does the work. */
static void a_share_that_is_used_up_leaves_the_work_to_the_kthread(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	int user;

	skip_with_preempt_rt(test);
	alarms_begin(tw);
	machine_ns = 1000 * NSEC_PER_SEC;
	machine_step_ns = 0;
	for (user = 0; user < 2; user++) {
		rings_without_a_share(test, user);
		pass(tw);
		KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, NEVER_NS);
		KUNIT_EXPECT_FALSE(test, machine_alarm.is_on);
		KUNIT_EXPECT_EQ(test, read_one(tw, NULL), 1);
		/* The kthread's time does not count, and the next alarm finds no share used. */
		rings_without_a_share(test, user);
		pass(tw);
		KUNIT_EXPECT_EQ(test, read_one(tw, NULL), 1);
	}
	work_is_paid(tw);
}

/* G2: if the kthread gets no processor, the softirq does the work when there is a share again. */
static void the_softirq_goes_on_when_there_is_a_share_again(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	int user, i;

	skip_with_preempt_rt(test);
	alarms_begin(tw);
	machine_ns = 1000 * NSEC_PER_SEC;
	machine_step_ns = 0;
	for (user = 0; user < 2; user++) {
		struct twheel_arm later = { .expires_ns = 50 * TICK_NS };
		u64 at_ns;

		rings_without_a_share(test, user);
		/* If an ARM comes before that, it finds the alarm set. */
		at_ns = tw->alarm.at_ns;
		arm(test, &later);
		KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, at_ns);
		for (i = 0; i < 3 && !user; i++) {
			time_set(tw, tw->alarm.at_ns);
			KUNIT_EXPECT_TRUE(test, alarm_rings_now(tw));
			KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
		}
		time_set(tw, tw->alarm.at_ns);
		/* The time of other wheels of the user does not bar this one again. */
		if (!user)
			work_is_paid(tw);
		KUNIT_EXPECT_TRUE(test, alarm_rings_now(tw));
		KUNIT_EXPECT_EQ(test, nr_unread(tw), 1U);
		KUNIT_EXPECT_EQ(test, read_one(tw, NULL), 1);
		turn_take(tw);
		KUNIT_EXPECT_EQ(test, cancel(tw, later.id), TWHEEL_WAS_PENDING);
		pass(tw);
	}
	work_is_paid(tw);
}

/* G5: if ticks are short, an alarm at each of them would be work as well. */
static void a_share_that_is_used_up_does_not_ring_with_each_short_tick(struct kunit *test)
{
	struct tw_ctx *tw = wheel_with(test, tick_ns, NSEC_PER_USEC);

	skip_with_preempt_rt(test);
	alarms_begin(tw);
	machine_ns = 1000 * NSEC_PER_SEC;
	machine_step_ns = 0;
	arm(test, &(struct twheel_arm) { .expires_ns = NSEC_PER_MSEC });
	time_set(tw, tw->alarm.at_ns);
	share_is_used_up(tw, false);
	KUNIT_EXPECT_TRUE(test, alarm_rings_now(tw));
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, time_of(tw) + BARRED_NS);
	KUNIT_EXPECT_TRUE(test, turn_take(tw));
	work_is_paid(tw);
}

/* The alarm of a timeout rings at @begin_ns; each reading of the machine's clock takes @step_ns. */
static void alarm_takes(struct kunit *test, u64 begin_ns, u64 step_ns)
{
	struct tw_ctx *tw = test->priv;

	alarms_begin(tw);
	arm_like(test, 0);
	time_set(tw, tw->alarm.at_ns);
	work_is_paid(tw);
	machine_ns = begin_ns;
	machine_step_ns = step_ns;
	alarm_rings_now(tw);
	machine_step_ns = 0;
}

/* G5: the time of the softirq is charged to its processor and to the user. */
static void the_time_of_the_softirq_is_charged(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 until_ns = 0;
	int cpu;

	skip_with_preempt_rt(test);
	alarm_takes(test, 1000 * NSEC_PER_SEC, USER_BURST_NS + 1000 * num_online_cpus());
	for_each_possible_cpu(cpu)
		until_ns = max(until_ns, per_cpu(soft_until_ns, cpu));
	KUNIT_EXPECT_GE(test, until_ns, 1000 * NSEC_PER_SEC + 2000 * num_online_cpus());
	KUNIT_EXPECT_FALSE(test, user_may_work(tw->memory.user, 1000 * NSEC_PER_SEC + 9999));
	work_is_paid(tw);
}

/* If the machine stood still for an hour, that is no fault of the processor or the user. */
static void an_hour_for_which_the_machine_stood_still_is_charged_to_nobody(struct kunit *test)
{
	const u64 begin_ns = 1000 * NSEC_PER_SEC;
	struct tw_ctx *tw = test->priv;
	int cpu;

	skip_with_preempt_rt(test);
	alarm_takes(test, begin_ns, 3600 * NSEC_PER_SEC);
	for_each_possible_cpu(cpu)
		KUNIT_EXPECT_LE(test, per_cpu(soft_until_ns, cpu), begin_ns + 2 * NSEC_PER_SEC);
	KUNIT_EXPECT_TRUE(test, user_may_work(tw->memory.user, begin_ns + 10 * NSEC_PER_SEC));
	work_is_paid(tw);
}

/*
 * G2: the softirq only tries the lock. If the lock is taken, it tries again in a moment; after some
 * tries it asks the kthread, and the alarm rings on.
 */
static void an_alarm_that_finds_the_lock_taken_rings_again(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	unsigned int i, round;

	skip_without_smp(test);
	alarms_begin(tw);
	arm_like(test, 0);
	time_set(tw, tw->alarm.at_ns);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < MISSED_MAX; i++) {
			bool again;

			work_is_paid(tw);
			spin_lock(&tw->lock);
			again = alarm_rings_now(tw);
			spin_unlock(&tw->lock);
			KUNIT_EXPECT_FALSE(test, again);
			KUNIT_EXPECT_TRUE(test, machine_alarm.is_on);
			KUNIT_EXPECT_TRUE(test, machine_alarm.relative);
			KUNIT_EXPECT_EQ(test, machine_alarm.at_ns, (u64)MISSED_NS);
			KUNIT_EXPECT_FALSE(test, turn_take(tw));
		}
		work_is_paid(tw);
		if (!round) {
			unsigned int late;

			for (late = 0; late < 3; late++) {
				spin_lock(&tw->lock);
				alarm_rings_now(tw);
				spin_unlock(&tw->lock);
				KUNIT_EXPECT_TRUE(test, machine_alarm.is_on);
				KUNIT_EXPECT_TRUE(test, machine_alarm.relative);
				KUNIT_EXPECT_EQ(test, machine_alarm.at_ns, (u64)MISSED_LONG_NS);
				KUNIT_EXPECT_TRUE(test, turn_take(tw));
			}
		}
		/* If the softirq gets the lock, it has all its tries again. */
		KUNIT_EXPECT_FALSE(test, alarm_rings_now(tw));
		KUNIT_EXPECT_EQ(test, nr_unread(tw), round + 1);
		KUNIT_EXPECT_EQ(test, tw->alarm.nr_missed, 0U);
		arm_like(test, 0);
		time_set(tw, tw->alarm.at_ns);
	}
}

/*
 * If the softirq is late, or has @missed the lock, a timeout that is due when armed waits for no
 * edge.
 */
static void arm_what_is_due_beside_an_alarm(struct kunit *test, bool missed)
{
	struct twheel_arm how = { .flags = TWHEEL_ARM_ABSOLUTE };
	struct twheel_arm later = { .flags = TWHEEL_ARM_ABSOLUTE };
	struct tw_ctx *tw = test->priv;

	alarms_begin(tw);
	later.expires_ns = time_of(tw) + NSEC_PER_SEC;
	arm(test, &later);
	arm_like(test, 0);
	time_set(tw, tw->alarm.at_ns);
	if (missed) {
		work_is_paid(tw);
		spin_lock(&tw->lock);
		alarm_rings_now(tw);
		spin_unlock(&tw->lock);
	}
	KUNIT_ASSERT_TRUE(test, machine_alarm.is_on);
	how.expires_ns = time_of(tw) + 1;
	time_set(tw, time_of(tw) + 2);
	arm(test, &how);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 1U);
	KUNIT_EXPECT_EQ(test, rearm_to(tw, how.id, .flags = TWHEEL_ARM_ABSOLUTE,
				       .expires_ns = time_of(tw) - 1), TWHEEL_WAS_UNREAD);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 1U);
	KUNIT_EXPECT_EQ(test, rearm_to(tw, later.id, .flags = TWHEEL_ARM_ABSOLUTE,
				       .expires_ns = time_of(tw) - 1), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 2U);
}

static void a_timeout_that_is_due_after_a_missed_alarm_is_an_event_at_once(struct kunit *test)
{
	skip_without_smp(test);
	arm_what_is_due_beside_an_alarm(test, true);
}

static void a_timeout_that_is_due_while_the_softirq_is_late_is_an_event_at_once(struct kunit *test)
{
	arm_what_is_due_beside_an_alarm(test, false);
}

/* DRAIN takes its steps itself; if a signal ends it, the kthread takes them. */
static void the_softirq_leaves_a_drain_alone(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	alarms_begin(tw);
	arm_like(test, 0);
	time_set(tw, tw->alarm.at_ns);
	WRITE_ONCE(tw->control.draining, true);
	tw->drains = true;
	work_is_paid(tw);
	KUNIT_EXPECT_FALSE(test, alarm_rings_now(tw));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
	KUNIT_EXPECT_FALSE(test, machine_alarm.is_on);
	pass(tw);
	KUNIT_EXPECT_TRUE(test, twheel_is_drained(tw));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 1U);
}

/* G4: if an ARM had not got the lock, it is in the wheel before the next alarm is set. */
static void the_softirq_empties_the_inbox(struct kunit *test)
{
	struct twheel_arm how = arm_of(0, 0);
	struct tw_ctx *tw = test->priv;

	alarms_begin(tw);
	arm_beside_the_lock(test, &how, 1);
	spin_unlock(&tw->lock);
	work_is_paid(tw);
	KUNIT_EXPECT_FALSE(test, llist_empty(&tw->inbox));
	alarm_rings_now(tw);
	KUNIT_EXPECT_TRUE(test, llist_empty(&tw->inbox));
	KUNIT_EXPECT_TRUE(test, machine_alarm.is_on);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, START_NS + 6 * TICK_NS);
}

/* If the hrtimer is set already, its function must not set it. */
static void an_alarm_that_an_arm_has_set_meanwhile_is_kept(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	enum hrtimer_restart restart;

	alarms_begin(tw);
	arm_like(test, 0);
	arm(test, &(struct twheel_arm) { .expires_ns = 50 * TICK_NS });
	time_set(tw, tw->alarm.at_ns);
	KUNIT_EXPECT_TRUE(test, machine_alarm.is_on);
	local_bh_disable();
	restart = alarm_work(tw, U64_MAX);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, (int)restart, (int)HRTIMER_NORESTART);
	KUNIT_EXPECT_TRUE(test, machine_alarm.is_on);
	KUNIT_EXPECT_EQ(test, machine_alarm.at_ns, START_NS + 50 * TICK_NS);
	KUNIT_EXPECT_EQ(test, tw->alarm.at_ns, START_NS + 50 * TICK_NS);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 1U);
}

static struct kunit_case softirq_cases[] = {
	KUNIT_CASE(the_softirq_expires_what_is_due_and_sets_the_next_alarm),
	KUNIT_CASE(the_softirq_takes_a_limited_number_of_steps_for_a_wheel),
	KUNIT_CASE(the_softirq_goes_on_before_an_alarm_that_an_arm_has_set),
	KUNIT_CASE(the_softirq_that_has_done_all_does_not_ring_again),
	KUNIT_CASE(the_softirq_ends_with_its_time),
	KUNIT_CASE(the_softirqs_of_a_processor_share_its_time),
	KUNIT_CASE(a_share_that_is_used_up_leaves_the_work_to_the_kthread),
	KUNIT_CASE(the_softirq_goes_on_when_there_is_a_share_again),
	KUNIT_CASE(a_share_that_is_used_up_does_not_ring_with_each_short_tick),
	KUNIT_CASE(the_time_of_the_softirq_is_charged),
	KUNIT_CASE(an_hour_for_which_the_machine_stood_still_is_charged_to_nobody),
	KUNIT_CASE(an_alarm_that_finds_the_lock_taken_rings_again),
	KUNIT_CASE(a_timeout_that_is_due_after_a_missed_alarm_is_an_event_at_once),
	KUNIT_CASE(a_timeout_that_is_due_while_the_softirq_is_late_is_an_event_at_once),
	KUNIT_CASE(the_softirq_leaves_a_drain_alone),
	KUNIT_CASE(the_softirq_empties_the_inbox),
	KUNIT_CASE(an_alarm_that_an_arm_has_set_meanwhile_is_kept),
	{}
};

ENGINE_SUITE(softirq);
