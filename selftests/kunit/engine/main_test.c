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
	EXPECT_PARAMETER(test, default_tick_us, 0, false);
	EXPECT_PARAMETER(test, default_tick_us, 1, true);
	EXPECT_PARAMETER(test, default_tick_us, 3600000000U, true);
	EXPECT_PARAMETER(test, default_tick_us, 3600000001U, false);
	EXPECT_PARAMETER(test, max_pending_limit, 0, false);
	EXPECT_PARAMETER(test, max_pending_limit, BIT(30), true);
	EXPECT_PARAMETER(test, max_pending_limit, BIT(30) + 1, false);
	EXPECT_PARAMETER(test, max_memory_kb, 255, false);
	EXPECT_PARAMETER(test, max_memory_kb, 256, true);
	EXPECT_PARAMETER(test, max_memory_kb, ULONG_MAX, true);
	EXPECT_PARAMETER(test, max_user_memory_kb, 127, false);
	EXPECT_PARAMETER(test, max_user_memory_kb, 128, true);
	EXPECT_PARAMETER(test, max_user_memory_kb, ULONG_MAX, true);
	EXPECT_PARAMETER(test, kthreads, 64, true);
	EXPECT_PARAMETER(test, kthreads, 65, false);
	EXPECT_PARAMETER(test, kthread_nice, -21, false);
	EXPECT_PARAMETER(test, kthread_nice, 19, true);
	EXPECT_PARAMETER(test, kthread_nice, 20, false);
}

/* The suite loads the module again; no wheel is open then. */
static void a_device_that_cannot_be_registered_leaves_nothing(struct kunit *test)
{
	engine_case_exit(test);
	test->priv = NULL;
	KUNIT_EXPECT_EQ(test, twheel_charged(), 0L);
	KUNIT_EXPECT_EQ(test, chardev_registered, 1);
	twheel_module_exit();
	KUNIT_EXPECT_EQ(test, chardev_registered, 0);
	chardev_errno = -EBUSY;
	KUNIT_EXPECT_EQ(test, twheel_module_init(), -EBUSY);
	chardev_errno = 0;
	KUNIT_EXPECT_EQ(test, nr_workers, 0U);
	KUNIT_ASSERT_EQ(test, twheel_module_init(), 0);
	KUNIT_EXPECT_EQ(test, nr_workers, min(num_online_cpus(), 4U));
	KUNIT_EXPECT_EQ(test, chardev_registered, 1);
}

static struct kunit_case main_cases[] = {
	KUNIT_CASE(module_parameters_outside_their_range_are_refused),
	KUNIT_CASE(a_device_that_cannot_be_registered_leaves_nothing),
	{}
};

ENGINE_SUITE(main);
