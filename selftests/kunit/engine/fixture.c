// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel for each case, and a loaded module for each suite
 */

static const struct twheel_setup usual_setup = {
	.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TICK_NS, .slots = 64,
	.max_pending = MAX_PENDING,
};

static struct tw_ctx *wheel_make(struct kunit *test, const struct twheel_setup *setup)
{
	struct tw_ctx *tw = twheel_create();

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tw);
	test->priv = tw;
	KUNIT_ASSERT_EQ(test, twheel_configure(tw, setup), 0);
	tw->turn.queue = &nobodys;
	user_memory = (struct user_memory){ .left = -1, .tw = tw };
	return tw;
}

static int engine_case_init(struct kunit *test)
{
	struct tw_ctx *tw = wheel_make(test, &usual_setup);

	time_set(tw, START_NS);
	pass(tw);
	return 0;
}

static void engine_case_exit(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	machine_ns = 0;
	machine_step_ns = 0;
	no_memory = false;
	limits_apply();
	if (!tw)
		return;
	user_memory.left = -1;
	user_memory.call = NULL;
	audit(test);
	/* If a turn is queued, destroying waits for it, and nobody would take it. */
	turn_take(tw);
	twheel_put(tw);
	KUNIT_EXPECT_NULL(test, work_waiting);
	machine_alarm.used = false;
	machine_real_ns = 0;
	test->priv = NULL;
	/* RCU may still have some of the memory. */
	if (atomic_read(&machine_memory.nr))
		rcu_barrier();
	KUNIT_EXPECT_EQ(test, atomic_read(&machine_memory.nr), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&machine_memory.nr_unaccounted), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&machine_memory.nr_shared), 0);
	machine_memory = (struct machine_memory){};
	/* The wheel was the only one, and nobody is charged for anything any more. */
	KUNIT_EXPECT_EQ(test, twheel_charged(), 0L);
	KUNIT_EXPECT_EQ(test, twheel_counter(COUNTER_WHEELS), 0ULL);
	KUNIT_EXPECT_EQ(test, twheel_counter(COUNTER_TIMEOUTS), 0ULL);
}

/* Make another wheel in place of the one that every case is given. */
static struct tw_ctx *wheel_remake(struct kunit *test, const struct twheel_setup *setup)
{
	engine_case_exit(test);
	return wheel_make(test, setup);
}

/* Make a wheel that differs from the default one in a single field of its set-up. */
#define wheel_with(test, what, value)					\
({									\
	struct twheel_setup __setup = usual_setup;			\
									\
	__setup.what = value;						\
	wheel_remake(test, &__setup);					\
})

/* Make a wheel whose clock can be set back. */
static struct tw_ctx *wheel_whose_clock_goes_back(struct kunit *test)
{
	struct twheel_setup setup = usual_setup;

	engine_case_exit(test);
	setup.clock = TWHEEL_CLOCK_REALTIME;
	machine_real_ns = START_NS;
	machine_alarm = (struct machine_alarm){ .used = true };
	return wheel_make(test, &setup);
}

/*
 * If the kernel has PREEMPT_RT, the softirq leaves all to the kthread, and ARM waits for the lock.
 */
static void skip_with_preempt_rt(struct kunit *test)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		kunit_skip(test, "a kernel with PREEMPT_RT");
}

/* If the kernel has no SMP, a spinlock is always free. */
static void skip_without_smp(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_SMP))
		kunit_skip(test, "a kernel without SMP");
}

struct other_thread {
	struct completion done;
	struct tw_ctx *tw;
	int (*run)(struct tw_ctx *tw);
	int says;
};

static int other_thread_runs(void *data)
{
	struct other_thread *other = data;

	other->says = other->run(other->tw);
	kthread_complete_and_exit(&other->done, 0);
}

/* Expect that @run returns @says in another thread while this one holds @mutex. */
static void expect_no_wait(struct kunit *test, struct mutex *mutex,
			   int (*run)(struct tw_ctx *tw), int says)
{
	struct other_thread other = { .tw = test->priv, .run = run };
	struct task_struct *kthread;
	bool waits;

	init_completion(&other.done);
	mutex_lock(mutex);
	kthread = kthread_run(other_thread_runs, &other, "twheel_other");
	waits = !IS_ERR(kthread) && !wait_for_completion_timeout(&other.done, 5 * HZ);
	mutex_unlock(mutex);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread));
	KUNIT_EXPECT_FALSE(test, waits);
	if (waits)
		wait_for_completion(&other.done);
	KUNIT_EXPECT_EQ(test, other.says, says);
}

static int engine_suite_init(struct kunit_suite *suite)
{
	kthread_init_worker(&nobody);
	nobody.task = &nobodys_task;
	nobody.current_work = &nobodys_occupation;
	spin_lock_init(&nobodys.lock);
	INIT_LIST_HEAD(&nobodys.turns);
	nobodys.worker = &nobody;
	kthread_init_work(&nobodys.work, NULL);
	return twheel_module_init();
}

static void engine_suite_exit(struct kunit_suite *suite)
{
	twheel_module_exit();
}

/* The suite of one part of the engine: its cases are in part_cases. */
#define ENGINE_SUITE(part)						\
static struct kunit_suite part##_suite = {				\
	.name = "twheel_" #part,					\
	.suite_init = engine_suite_init,				\
	.suite_exit = engine_suite_exit,				\
	.init = engine_case_init,					\
	.exit = engine_case_exit,					\
	.test_cases = part##_cases,					\
}
