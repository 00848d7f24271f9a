// SPDX-License-Identifier: GPL-2.0
/*
 * twheel_main.c: parameters, loading and unloading
 */

#define EXPECT_PARAMETER(test, name, value, good)			\
do {									\
	typeof(name) *parameter = &(name);				\
	const typeof(name) was = *parameter;				\
									\
	*parameter = value;						\
	KUNIT_EXPECT_EQ(test, parameters_check(), (good) ? 0 : -EINVAL);	\
	*parameter = was;						\
} while (0)

static void module_parameters_outside_their_range_are_refused(struct kunit *test)
{
	EXPECT_PARAMETER(test, kthreads, 64, true);
	EXPECT_PARAMETER(test, kthreads, 65, false);
	EXPECT_PARAMETER(test, kthread_nice, -21, false);
	EXPECT_PARAMETER(test, kthread_nice, 19, true);
	EXPECT_PARAMETER(test, kthread_nice, 20, false);
}

/* If a value is refused, the old one stays. */
static void limits_outside_their_range_are_refused(struct kunit *test)
{
	static const struct {
		struct kernel_param parameter;
		const char *good[3], *bad[5];
	} limits[] = {
		{ { .ops = &max_pending_limit_ops, .arg = &twheel_max_pending_limit },
		  { "1", "1073741824", "16777216" },
		  { "0", "1073741825", "4294967297", "x", "-1" } },
		{ { .ops = &memory_ops, .arg = &max_memory_kb },
		  { "256", "18446744073709551615", "0" },
		  { "255", "1", "18446744073709551616", "", "-1" } },
		{ { .ops = &memory_ops, .arg = &max_user_memory_kb },
		  { "128", "18446744073709551615", "0" },
		  { "127", "1", "18446744073709551616", "1 2", "-1" } },
	};
	unsigned int i, k;

	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		const struct kernel_param *limit = &limits[i].parameter;

		for (k = 0; k < ARRAY_SIZE(limits[i].bad); k++)
			KUNIT_EXPECT_EQ_MSG(test, limit->ops->set(limits[i].bad[k], limit), -EINVAL,
					    "limit %u: %s", i, limits[i].bad[k]);
		/* The last one is the default. */
		for (k = 0; k < ARRAY_SIZE(limits[i].good); k++)
			KUNIT_EXPECT_EQ_MSG(test, limit->ops->set(limits[i].good[k], limit), 0,
					    "limit %u: %s", i, limits[i].good[k]);
	}
	KUNIT_EXPECT_EQ(test, twheel_max_pending_limit, 16777216U);
}

/* If the machine gets more memory, the limits do not change. */
static void a_limit_of_memory_is_shown_as_it_is_in_force(struct kunit *test)
{
	const struct kernel_param limits[] = {
		{ .ops = &memory_ops, .arg = &max_memory_kb },
		{ .ops = &memory_ops, .arg = &max_user_memory_kb },
	};
	char *text = (char *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	unsigned long kb = 0;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, text);
	limits_apply();
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		totalram_pages_add(1024);
		limits[i].ops->get(text, &limits[i]);
		totalram_pages_add(-1024);
		KUNIT_EXPECT_EQ(test, kstrtoul(text, 0, &kb), 0);
		KUNIT_EXPECT_EQ(test, kb, (i ? twheel_max_user_memory : twheel_max_memory) >> 10);
	}
	free_page((unsigned long)text);
}

/* The suite loads the module again; no wheel is open then. */
static void a_device_that_cannot_be_registered_leaves_nothing(struct kunit *test)
{
	engine_case_exit(test);
	KUNIT_EXPECT_EQ(test, twheel_charged(), 0L);
	KUNIT_EXPECT_EQ(test, chardev_registered, 1);
	twheel_module_exit();
	KUNIT_EXPECT_EQ(test, chardev_registered, 0);
	chardev_errno = -EBUSY;
	KUNIT_EXPECT_EQ(test, twheel_module_init(), -EBUSY);
	chardev_errno = 0;
	KUNIT_EXPECT_EQ(test, twheel_nr_workers, 0U);
	KUNIT_ASSERT_EQ(test, twheel_module_init(), 0);
	KUNIT_EXPECT_EQ(test, twheel_nr_workers, min(num_online_cpus(), 4U));
	KUNIT_EXPECT_EQ(test, chardev_registered, 1);
}

struct late_callback {
	struct completion reads;
	struct completion ends;
	struct rcu_head rcu;
	bool was_called;
};

/* For half a second RCU calls no callback. */
static int rcu_is_read(void *data)
{
	struct late_callback *late = data;
	unsigned long end = jiffies + HZ / 2;

	rcu_read_lock();
	complete(&late->reads);
	while (time_before(jiffies, end))
		cpu_relax();
	rcu_read_unlock();
	kthread_complete_and_exit(&late->ends, 0);
}

static void callback_comes(struct rcu_head *rcu)
{
	struct late_callback *late = container_of(rcu, struct late_callback, rcu);

	WRITE_ONCE(late->was_called, true);
}

/* table_free_rcu() may do this: its code is gone when the module is. */
static void unloading_waits_for_callbacks_of_rcu(struct kunit *test)
{
	struct late_callback late = {};
	struct task_struct *reader;

	engine_case_exit(test);
	init_completion(&late.reads);
	init_completion(&late.ends);
	reader = kthread_run(rcu_is_read, &late, "reader");
	KUNIT_ASSERT_FALSE(test, IS_ERR(reader));
	wait_for_completion(&late.reads);
	init_rcu_head_on_stack(&late.rcu);
	call_rcu_hurry(&late.rcu, callback_comes);
	twheel_module_exit();
	KUNIT_EXPECT_TRUE(test, READ_ONCE(late.was_called));
	wait_for_completion(&late.ends);
	rcu_barrier();
	destroy_rcu_head_on_stack(&late.rcu);
	KUNIT_ASSERT_EQ(test, twheel_module_init(), 0);
}

static struct kunit_case main_cases[] = {
	KUNIT_CASE(module_parameters_outside_their_range_are_refused),
	KUNIT_CASE(limits_outside_their_range_are_refused),
	KUNIT_CASE(a_limit_of_memory_is_shown_as_it_is_in_force),
	KUNIT_CASE(a_device_that_cannot_be_registered_leaves_nothing),
	KUNIT_CASE(unloading_waits_for_callbacks_of_rcu),
	{}
};

ENGINE_SUITE(main);
