// SPDX-License-Identifier: GPL-2.0
/*
 * The engine of twheel: who may do what to a timeout, and when
 *
 * Overview
 * --------
 *
 *   any thread                        kthread                    any thread
 *
 *   ARM, REARM --> inbox (llist) --> wheel --> ready list --> read, poll
 *                       ^              |
 *   CANCEL --> state word              '--> next tick --> hrtimer, softirq
 *
 * An open file is a struct twheel.  Its timeouts live in pages that are freed by
 * RCU, when none of their places is in use, so that a reference to a timeout may
 * be stale but never dangles: an id is a generation and an index, the index
 * leads to the timeout in two loads, and the generation in its state word says
 * whether it is still the same one.
 *
 * The wheel (twheel_wheel.c) holds entries, not timeouts: a tick, an index and
 * a sequence number.  Nobody but the wheel's kthread touches it.  A timeout
 * that is cancelled is free for reuse at once; its entry stays behind and is
 * dropped as stale when it comes up, because the state or the sequence number
 * in the state word differ.  Sweeps bound how many stale entries there are.  A
 * timeout that is moved later stays where it is as well, whether by REARM or by
 * a store into the refresh table, which nobody notices then: its entry comes up
 * early, and is put where the deadline now says.
 *
 * Neither is a reason to wake up.  At the end of each pass the kthread looks ahead:
 * as long as the next slot holds such entries only, it drops or moves them, and
 * sets the alarm for the first slot that is needed.  So a wake-up in vain is one
 * for a timeout that was cancelled, or moved, after the last pass.
 *
 * Arming wakes nobody unless the kthread has to run earlier than it would
 * anyway.  Until then new timeouts stay in the inbox, and those cancelled there
 * never enter the wheel.
 *
 *
 * States
 * ------
 *
 * One atomic word per timeout decides every race; whoever changes it owns what
 * follows, and the loser looks again.
 *
 *   FREE --> NEW --> QUEUED --> ARMED --> UNREAD --> FREE
 *
 *   FREE    on a free list
 *   NEW     being armed; only the arming thread knows it
 *   QUEUED  in the inbox, pending
 *   ARMED   pending; an entry in the wheel has its sequence number
 *   UNREAD  on the ready list: its event waits to be read.  It is not in the wheel,
 *           though a periodic one goes back there when its event is read
 *   DEAD    cancelled while in the inbox; the kthread frees it from there
 *   REARMING  being re-armed or postponed by a holder of the lock: nobody who
 *           holds the lock ever sees it, and who meets it without waits for it
 *
 *   arm_publish()          NEW --> QUEUED                      armer
 *   timeout_enter()        QUEUED --> ARMED, DEAD --> FREE     kthread
 *   timeout_expire()       ARMED --> UNREAD                    kthread
 *   timeout_postpone()     ARMED --> (REARMING) --> ARMED      kthread
 *   twheel_cancel_commit() QUEUED --> DEAD, ARMED --> FREE,
 *                          UNREAD --> FREE                     anyone
 *   timeout_rearm()        any live --> (REARMING) --> QUEUED, ARMED   anyone
 *   timeout_defer()        ARMED --> (REARMING) --> ARMED      anyone
 *   twheel_events_commit() UNREAD --> FREE, QUEUED             reader
 *   timeout_drain()        any pending --> UNREAD+DRAINED      kthread
 *
 * A periodic timeout whose event nobody reads costs nothing: twheel_periods_unread() tells
 * how many periods have passed when somebody asks.
 *
 *
 * Report first, commit second
 * ---------------------------
 *
 * What a call is about to do is first written to the user's memory, which may
 * fault, and then done by a compare-and-swap that fails if the timeout is no
 * longer as it was seen; then the call looks again.  Events are taken under the
 * lock, where a count says whether any of those on the ready list has changed.
 * So a bad pointer leaves nothing half-done (G4 for read), and no user memory is
 * touched under a lock.
 *
 *
 * Locks
 * -----
 *
 *   control.mutex   SETUP, ADVANCE and DRAIN one at a time, and the first ARM;
 *                   held while they wait for the kthread
 *   arena.mutex     growing and shrinking the arena, and the refresh table
 *   room.mutex      growing and shrinking the wheel's pool.  These two are
 *                   mutexes because they allocate and charge; the kthread only
 *                   tries them.
 *   events.lock     spinlock: the ready list, and every change of a live
 *                   timeout's fields.  A timeout becomes UNREAD, or stops
 *                   being so, under it only.  Never taken in interrupts.  "The
 *                   lock", where no other is named.
 *   arena.free_lock spinlock: the list of free places, taking side
 *   wake.lock       spinlock: when the kthread runs next, the hrtimer
 *
 * The order is
 *
 *   mmap_lock --> arena.mutex      mmap() makes the refresh table
 *   arena.mutex --> the lock of a page of words, and then i_mmap_rwsem: the page
 *                 comes or goes; who faults holds mmap_lock and that page's lock only
 *   control.mutex --> wake.lock    ADVANCE and DRAIN ask for a pass and wait for it
 *   wake.lock --> the lock of a user's queue, see engine/user.c, and those of the
 *                 timers and kthreads that are set going
 *
 * and nothing else nests.  Nobody who polls or reads is woken under any of them:
 * that runs epoll's callbacks.  Arming, and cancelling what is not UNREAD, take none
 * but arena.free_lock (for a batch) and, when earlier than all else, wake.lock.
 *
 * RCU: readers of the page table, which grows by replacement; whoever looks at a
 * timeout by its index and does not know that its place is in use (a spinlock
 * does as well as rcu_read_lock(), and the kthread, which is the one to free
 * pages, needs none); whoever keeps a timeout by pointer from looking to
 * committing, see look_begin(); and what checks "draining" and then publishes to
 * the inbox, which DRAIN waits for.
 *
 *
 * Guarantees, by the names that mark the lines which keep them
 * ------------------------------------------------------------
 *
 *   G1 never early          G5 bounded interrupt work
 *   G2 bounded lateness     G6 silent when idle
 *   G3 exactly one outcome  G7 cost does not grow
 *   G4 nothing lost         G8 stale ids are harmless
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/time64.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "engine/control.h"
#include "engine/refresh.h"
#include "engine/user.h"
#include "twheel.h"
#include "twheel_compat.h"

/* Module parameters */

static unsigned int default_tick_us = 1000;
module_param(default_tick_us, uint, 0444);
MODULE_PARM_DESC(default_tick_us,
		 "tick of a wheel that does not choose one, microseconds (1 to 3600000000, default 1000)");

static unsigned int max_pending_limit = 16777216;
module_param(max_pending_limit, uint, 0444);
MODULE_PARM_DESC(max_pending_limit,
		 "greatest max_pending that one wheel may ask for, timeouts (1 to 1073741824, default 16777216)");

static unsigned long max_memory_kb;
module_param(max_memory_kb, ulong, 0444);
MODULE_PARM_DESC(max_memory_kb,
		 "memory that all wheels together may take, kB (256 and up; default 0: a quarter of the machine's)");

static unsigned long max_user_memory_kb;
module_param(max_user_memory_kb, ulong, 0444);
MODULE_PARM_DESC(max_user_memory_kb,
		 "memory that the wheels of one user may take, kB (128 and up; default 0: half of max_memory_kb)");

static unsigned int kthreads;
module_param(kthreads, uint, 0444);
MODULE_PARM_DESC(kthreads,
		 "threads that serve the wheels (1 to 64; default 0: one per CPU, 4 at most)");

static int kthread_nice;
module_param(kthread_nice, int, 0444);
MODULE_PARM_DESC(kthread_nice,
		 "nice value of the threads (-20 to 19, default 0)");

static bool kthread_fifo;
module_param(kthread_fifo, bool, 0444);
MODULE_PARM_DESC(kthread_fifo,
		 "run the threads as SCHED_FIFO, lowest priority (default 0)");

/* The threads that serve the wheels. */
static struct kthread_worker **workers;
static unsigned int nr_workers;

static void workers_stop(void)
{
	while (nr_workers)
		kthread_destroy_worker(workers[--nr_workers]);
	kfree(workers);
}

static void worker_prioritize(struct task_struct *task)
{
	if (kthread_fifo)
		sched_set_fifo_low(task);
	else
		sched_set_normal(task, kthread_nice);
}

static int workers_start(void)
{
	unsigned int nr = kthreads ?: min(num_online_cpus(), 4U);

	workers = kcalloc(nr, sizeof(*workers), GFP_KERNEL);
	if (!workers)
		return -ENOMEM;
	while (nr_workers < nr) {
		struct kthread_worker *worker;

		worker = kthread_run_worker(0, "twheel/%u", nr_workers);
		if (IS_ERR(worker)) {
			workers_stop();
			return PTR_ERR(worker);
		}
		/* The thread begins by writing what is there already. */
		worker_prioritize(data_race(worker->task));
		workers[nr_workers++] = worker;
	}
	twheel_users_init(workers, nr_workers);
	return 0;
}

/*
 * Not more than a quarter of the machine's memory unless somebody says so, and no user
 * more than half of that: fs/eventpoll.c gives each user a twenty-fifth.  The
 * parameters tell what is in force.
 */
static void limits_init(void)
{
	const unsigned long most_kb = LONG_MAX >> 10;

	if (!max_memory_kb)
		max_memory_kb = max(totalram_pages() >> 2, 64UL) <<
				(PAGE_SHIFT - 10);
	if (!max_user_memory_kb)
		max_user_memory_kb = max_memory_kb / 2;
	twheel_limit_memory(min(max_memory_kb, most_kb) << 10,
			    min(max_user_memory_kb, most_kb) << 10);
}

static int parameters_check(void)
{
	if (default_tick_us < 1 ||
	    default_tick_us > TWHEEL_TICK_MAX_NS / NSEC_PER_USEC)
		pr_err("default_tick_us is not 1 to 3600000000\n");
	else if (max_pending_limit < 1 || max_pending_limit > 1U << 30)
		pr_err("max_pending_limit is not 1 to 1073741824\n");
	else if (max_memory_kb && max_memory_kb < 256)
		pr_err("max_memory_kb is below 256\n");
	else if (max_user_memory_kb && max_user_memory_kb < 128)
		pr_err("max_user_memory_kb is below 128\n");
	else if (kthreads > 64)
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
	limits_init();
	twheel_control_init(default_tick_us, max_pending_limit);
	err = twheel_refresh_init();
	if (err)
		return err;
	err = workers_start();
	if (err)
		goto exit_refresh;
	err = twheel_chardev_register();
	if (err)
		goto stop_workers;
	return 0;

stop_workers:
	workers_stop();
exit_refresh:
	twheel_refresh_exit();
	return err;
}

static void __exit twheel_module_exit(void)
{
	twheel_chardev_unregister();
	workers_stop();
	twheel_refresh_exit();
	/* For table_free_rcu(). */
	rcu_barrier();
}

module_init(twheel_module_init);
module_exit(twheel_module_exit);

MODULE_DESCRIPTION("millions of timeouts behind one file descriptor");
MODULE_LICENSE("GPL");
MODULE_VERSION(TWHEEL_VERSION);
