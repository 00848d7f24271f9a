// SPDX-License-Identifier: GPL-2.0
/*
 * Running the suites on a kernel without KUnit
 *
 * All suites run when the module is loaded, one case after the other.  The results are written down
 * in KTAP, a file for each suite: /sys/kernel/debug/kunit/SUITE/results, as KUnit has it.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/vmalloc.h>

static struct kunit_suite * const * const all_suites[] = {
	wheel_suites, engine_suites,
};

#define MOST_SUITES		64

/* If a case takes longer, it hangs. */
#define CASE_TIMEOUT		(300 * HZ)

/* If a case takes this long in all its parameters, its line says so. */
#define SLOW_MS			1000

/* If a case fails in a loop, not every failure is printed. */
#define MOST_FAILURES		10

static struct dentry *folder;

/* The output of each suite. */
static struct debugfs_blob_wrapper results[MOST_SUITES];
static unsigned int nr_suites;

/*
 * The output of the present suite.  It is allocated ahead, since cases may print while they hold
 * locks.
 */
#define LOG_SIZE		SZ_256K

static char *log;
static size_t log_len;

/* If a case hangs, it uses this module for ever. */
static bool hangs;

static __printf(1, 0) void log_args(const char *fmt, va_list args)
{
	log_len += vscnprintf(log + log_len, LOG_SIZE - log_len, fmt, args);
}

static __printf(1, 2) void log_add(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_args(fmt, args);
	va_end(args);
}

void kunit_info(struct kunit *test, const char *fmt, ...)
{
	va_list args;

	log_add("    # %s: ", test->running->name);
	va_start(args, fmt);
	log_args(fmt, args);
	va_end(args);
}

void kunit_fail(struct kunit *test, const char *where, const char *condition,
		const char *fmt, ...)
{
	va_list args;

	if (++test->nr_failures > MOST_FAILURES)
		return;
	log_add("    # %s: FAILED at %s: %s: ", test->running->name, where, condition);
	va_start(args, fmt);
	log_args(fmt, args);
	va_end(args);
	log_add("\n");
}

struct kunit_memory {
	struct list_head node;
	u8 data[] __aligned(sizeof(u64));
};

void *kunit_kzalloc(struct kunit *test, size_t size, gfp_t gfp)
{
	struct kunit_memory *memory = kzalloc(size_add(sizeof(*memory), size), gfp);

	if (!memory)
		return NULL;
	list_add(&memory->node, &test->memory);
	return memory->data;
}

static void memory_free(struct kunit_memory *memory)
{
	list_del(&memory->node);
	kfree(memory);
}

void kunit_kfree(struct kunit *test, const void *data)
{
	if (data)
		memory_free(container_of(data, struct kunit_memory, data[0]));
}

static DECLARE_COMPLETION(step_done);

static int run_case(void *data)
{
	struct kunit *test = data;
	int err = 0;

	if (test->suite->init)
		err = test->suite->init(test);
	if (err)
		kunit_fail(test, test->suite->name, "init", "returns %d", err);
	else
		test->running->run_case(test);
	kunit_abort(test);
}

static int run_exit(void *data)
{
	struct kunit *test = data;

	if (test->suite->exit)
		test->suite->exit(test);
	kunit_abort(test);
}

/* Run a function in a thread, so that kunit_abort() can end it. */
static void run_step(struct kunit *test, int (*step)(void *data))
{
	struct task_struct *task;
	long left;

	reinit_completion(&step_done);
	task = kthread_run(step, test, "%s", test->running->name);
	if (IS_ERR(task)) {
		kunit_fail(test, "kthread_run()", "a thread", "error %ld", PTR_ERR(task));
		return;
	}
	left = wait_for_completion_killable_timeout(&step_done, CASE_TIMEOUT);
	if (left > 0)
		return;
	kunit_fail(test, test->suite->name, "the case ends", "%s",
		   left ? "and this test was killed" : "and it takes too long");
	hangs = true;
	__module_get(THIS_MODULE);
}

/* The reason why the last case could not run; NULL if it could. */
static const char *skipped;

/* Run a case with one parameter, or without any.  Return whether it passed. */
static bool run_once(const struct kunit_suite *suite, const struct kunit_case *one,
		     const void *param)
{
	struct kunit_memory *memory, *next;
	static struct kunit test;

	test = (struct kunit){ .suite = suite, .running = one, .param_value = param,
				.done = &step_done };
	INIT_LIST_HEAD(&test.memory);
	run_step(&test, run_case);
	if (!hangs)
		run_step(&test, run_exit);
	if (hangs)
		return false;
	list_for_each_entry_safe(memory, next, &test.memory, node)
		memory_free(memory);
	if (test.nr_failures > MOST_FAILURES)
		log_add("    # %s: and %u times more\n", one->name,
			test.nr_failures - MOST_FAILURES);
	skipped = test.skipped;
	return !test.nr_failures;
}

static bool run_params(const struct kunit_suite *suite, const struct kunit_case *one)
{
	char desc[KUNIT_PARAM_DESC_SIZE] = "";
	unsigned int nr = 0;
	bool passed = true;
	const void *param;

	log_add("        KTAP version 1\n        # Subtest: %s\n", one->name);
	for (param = one->generate_params(NULL, desc); param && !hangs;
	     param = one->generate_params(param, desc)) {
		bool ok = run_once(suite, one, param);

		log_add("        %sok %u %s\n", ok ? "" : "not ", ++nr, desc);
		passed &= ok;
	}
	return passed && nr;
}

static bool run_cases(struct kunit_suite *suite)
{
	const struct kunit_case *one;
	unsigned int nr = 0;
	bool passed = true;
	int err = 0;

	for (one = suite->test_cases; one->run_case; one++)
		nr++;
	log_add("    KTAP version 1\n    # Subtest: %s\n    1..%u\n", suite->name, nr);
	if (suite->suite_init)
		err = suite->suite_init(suite);
	if (err)
		log_add("    # the suite's init returns %d\n", err);
	nr = 0;
	for (one = suite->test_cases; one->run_case && !hangs; one++) {
		ktime_t began = ktime_get();
		s64 ms;
		bool ok = !err && (one->generate_params ? run_params(suite, one) :
						       run_once(suite, one, NULL));

		ms = ktime_ms_delta(ktime_get(), began);
		if (ms >= SLOW_MS)
			log_add("    # %s: takes %lld ms\n", one->name, ms);
		log_add("    %sok %u %s%s%s\n", ok ? "" : "not ", ++nr, one->name,
			ok && skipped ? " # SKIP " : "", ok && skipped ? skipped : "");
		passed &= ok;
	}
	if (suite->suite_exit && !err && !hangs)
		suite->suite_exit(suite);
	return passed;
}

static int run_suite(struct kunit_suite *suite)
{
	struct debugfs_blob_wrapper *blob = &results[nr_suites];
	bool passed;

	log_len = 0;
	log_add("KTAP version 1\n1..1\n");
	passed = run_cases(suite);
	log_add("%sok 1 %s\n", passed ? "" : "not ", suite->name);

	/* One attempt has to be enough: if a suite has no result, it has failed. */
	blob->data = kvmalloc(log_len, GFP_KERNEL);
	if (!blob->data)
		return -ENOMEM;
	memcpy(blob->data, log, log_len);
	blob->size = log_len;
	debugfs_create_blob("results", 0444, debugfs_create_dir(suite->name, folder), blob);
	nr_suites++;
	return 0;
}

static void results_free(void)
{
	debugfs_remove_recursive(folder);
	while (nr_suites)
		kvfree(results[--nr_suites].data);
}

static int __init shim_init(void)
{
	struct kunit_suite * const *suite;
	unsigned int i;
	int err = 0;

	log = vmalloc(LOG_SIZE);
	if (!log)
		return -ENOMEM;
	folder = debugfs_create_dir("kunit", NULL);
	for (i = 0; i < ARRAY_SIZE(all_suites); i++)
		for (suite = all_suites[i]; *suite && !err && !hangs; suite++)
			err = nr_suites < MOST_SUITES ? run_suite(*suite) : -E2BIG;
	if (hangs)
		return 0;
	vfree(log);
	if (err)
		results_free();
	return err;
}

static void __exit shim_exit(void)
{
	results_free();
}

module_init(shim_init);
module_exit(shim_exit);
