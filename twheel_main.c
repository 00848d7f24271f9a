// SPDX-License-Identifier: GPL-2.0
/*
 * twheel: millions of timeouts behind one file descriptor
 * Copyright (c) 2026 The twheel authors
 *
 * Here are the module's parameters, its kthreads, loading and unloading.  Documentation/design.rst
 * explains the whole.  One or more open files have a struct tw_ctx (engine/engine.h):
 *
 *   ARM --> place --> wheel ------> list of events --> read, poll
 *             '--> inbox --^   ^--- steps of a pass, by softirq, kthread, ADVANCE or DRAIN
 *
 * Order of files: a part, X.c and its X.h, calls those below it, and none above.
 *	twheel_main twheel_chardev twheel_stat twheel_ioctl arm rearm element cancel read query
 *	control run places lock expire alarm keys refresh user_access pages account trace time
 *	timeout syncpoint twheel_wheel twheel_compat
 *
 * Locks, the outer ones first; they are declared in engine.h, places.h and account.[ch]:
 *	control.mutex	SETUP, ADVANCE, DRAIN, the start, and INFO before it, one at a time
 *	places.mutex	pages come and go; mmap() takes it under mmap_lock
 *	tw_ctx.lock	all timeouts, the wheel, the keys, the events; the softirq only tries it
 *	places.lock	free places; the innermost but for locks of the kernel
 *	queue.lock	wheels that wait for the kthread; the softirq takes it, under no spinlock
 *	users_mutex	the table of users; under no other
 *
 * The guarantees G1 to G8 stand by name at the lines that enforce them; design.rst lists both.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kstrtox.h>
#include <linux/module.h>

#include "engine/engine.h"
#include "engine/syncpoint.h"
#include "twheel.h"
#include "twheel_compat.h"

#define CREATE_TRACE_POINTS
#include "engine/trace.h"

/*
 * Parameters that are limits may be written at any time.  A new limit is for requests from then on;
 * memory and places that were given stay.  The kernel calls one of these functions at a time.
 */

static int max_pending_limit_set(const char *text, const struct kernel_param *parameter)
{
	return param_set_uint_minmax(text, parameter, 1, 1U << 30) ? -EINVAL : 0;
}

static const struct kernel_param_ops max_pending_limit_ops = {
	.set = max_pending_limit_set,
	.get = param_get_uint,
};
module_param_cb(max_pending_limit, &max_pending_limit_ops, &twheel_max_pending_limit, 0644);
__MODULE_PARM_TYPE(max_pending_limit, "uint");
MODULE_PARM_DESC(max_pending_limit,
		 "greatest max_pending that one wheel may ask for, timeouts (1 to 1073741824, default 16777216)");

/* As they were written: 0 stands for the default. */
static unsigned long max_memory_kb, max_user_memory_kb;

/*
 * By default, all wheels may take a quarter of the machine's memory, and the wheels of one user
 * half of what all may take (fs/eventpoll.c gives each user a twenty-fifth).
 */
static void limits_apply(void)
{
	const unsigned long most_kb = LONG_MAX >> 10;
	unsigned long quarter_kb = max(totalram_pages() >> 2, 64UL) << (PAGE_SHIFT - 10);
	unsigned long all_kb = max_memory_kb ?: quarter_kb;
	unsigned long user_kb = max_user_memory_kb ?: all_kb / 2;

	WRITE_ONCE(twheel_max_memory, min(all_kb, most_kb) << 10);
	WRITE_ONCE(twheel_max_user_memory, min(user_kb, most_kb) << 10);
}

static int memory_set(const char *text, const struct kernel_param *parameter)
{
	unsigned long kb, least_kb = parameter->arg == &max_memory_kb ? 256 : 128;

	if (kstrtoul(text, 0, &kb) || (kb && kb < least_kb))
		return -EINVAL;
	*(unsigned long *)parameter->arg = kb;
	limits_apply();
	return 0;
}

/* Show the limit in force: memory may have been added to the machine since, or removed. */
static int memory_get(char *text, const struct kernel_param *parameter)
{
	long bytes = parameter->arg == &max_memory_kb ? twheel_max_memory : twheel_max_user_memory;

	return sysfs_emit(text, "%ld\n", bytes >> 10);
}

static const struct kernel_param_ops memory_ops = {
	.set = memory_set,
	.get = memory_get,
};

module_param_cb(max_memory_kb, &memory_ops, &max_memory_kb, 0644);
__MODULE_PARM_TYPE(max_memory_kb, "ulong");
MODULE_PARM_DESC(max_memory_kb,
		 "memory that all wheels together may take, kB (256 and up; default 0: a quarter of the machine's)");

module_param_cb(max_user_memory_kb, &memory_ops, &max_user_memory_kb, 0644);
__MODULE_PARM_TYPE(max_user_memory_kb, "ulong");
MODULE_PARM_DESC(max_user_memory_kb,
		 "memory that the wheels of one user or container may take, kB (128 and up; default 0: half of max_memory_kb)");

/*
 * Parameters of the threads: they cannot be written, since the threads are made when the module is
 * loaded, and a wheel stays with its thread.  renice(1) and chrt(1) change threads that run.
 */

static unsigned int kthreads;
module_param(kthreads, uint, 0444);
MODULE_PARM_DESC(kthreads,
		 "threads that serve the wheels (1 to 64; default 0: one per CPU, 4 at most)");

static int kthread_nice;
module_param(kthread_nice, int, 0444);
MODULE_PARM_DESC(kthread_nice, "nice value of the threads (-20 to 19, default 0)");

static bool kthread_fifo;
module_param(kthread_fifo, bool, 0444);
MODULE_PARM_DESC(kthread_fifo, "run the threads as SCHED_FIFO, lowest priority (default 0)");

static void workers_stop(void)
{
	while (twheel_nr_workers)
		kthread_destroy_worker(twheel_workers[--twheel_nr_workers]);
}

static int workers_start(void)
{
	unsigned int nr = kthreads ?: min(num_online_cpus(), 4U);

	while (twheel_nr_workers < nr) {
		struct kthread_worker *worker;
		struct task_struct *task;

		worker = kthread_run_worker(0, "twheel/%u", twheel_nr_workers);
		if (IS_ERR(worker)) {
			workers_stop();
			return PTR_ERR(worker);
		}
		/* The new thread may be writing worker->task: the same value again. */
		task = data_race(worker->task);
		if (kthread_fifo)
			sched_set_fifo_low(task);
		else
			sched_set_normal(task, kthread_nice);
		twheel_workers[twheel_nr_workers++] = worker;
	}
	return 0;
}

/* Check the parameters of the threads.  The others are checked when they are written. */
static int parameters_check(void)
{
	if (kthreads > TWHEEL_WORKERS_MAX)
		pr_err("kthreads is not 0 to 64\n");
	else if (kthread_nice < MIN_NICE || kthread_nice > MAX_NICE)
		pr_err("kthread_nice is not -20 to 19\n");
	else
		return 0;
	return -EINVAL;
}

static int __init twheel_module_init(void)
{
	int err = parameters_check();

	if (err)
		return err;
	limits_apply();
	twheel_memory_queue = alloc_workqueue("twheel", WQ_UNBOUND, 1);
	if (!twheel_memory_queue)
		return -ENOMEM;
	twheel_syncpoints_init();
	err = workers_start();
	if (err)
		goto destroy_queue;
	err = twheel_chardev_register();
	if (err)
		goto stop_workers;
	/* G2 assumes high-resolution timers.  With highres=off each wake-up waits for a jiffy. */
	if (hrtimer_resolution > 1)
		pr_warn("no high-resolution timers: each wake-up may be %lu us late\n",
			hrtimer_resolution / NSEC_PER_USEC);
	return 0;

stop_workers:
	workers_stop();
destroy_queue:
	twheel_syncpoints_exit();
	destroy_workqueue(twheel_memory_queue);
	return err;
}

static void __exit twheel_module_exit(void)
{
	twheel_chardev_unregister();
	workers_stop();
	destroy_workqueue(twheel_memory_queue);
	/* RCU may still have to free pages and tables, by functions of this module. */
	rcu_barrier();
	twheel_syncpoints_exit();
}

module_init(twheel_module_init);
module_exit(twheel_module_exit);

/* The only place for this address: Documentation/packaging.rst. */
MODULE_AUTHOR("The twheel authors <twheel@example.org>");
MODULE_DESCRIPTION("millions of timeouts behind one file descriptor");
MODULE_LICENSE("GPL");
MODULE_VERSION(TWHEEL_VERSION);
