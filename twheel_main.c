// SPDX-License-Identifier: GPL-2.0
/*
 * twheel: millions of timeouts behind one file descriptor
 *
 * This file has the map of the design, the module's parameters, its kthreads, and
 * loading and unloading.  Documentation/design.rst explains the design with pictures,
 * the reason for each lock, and a glossary.
 *
 *
 * The way of a timeout
 * --------------------
 *
 *   any thread                        kthread                    any thread
 *
 *   ARM, REARM --> inbox (llist) --> wheel --> ready list --> read, poll
 *                       ^              |
 *   CANCEL --> state word              '--> next tick --> hrtimer, softirq
 *
 * An open file is a struct twheel (engine/engine.h).  Its timeouts have places in pages
 * that RCU frees, so a reference to a timeout may be stale but never dangles: an id is a
 * generation and an index, the index leads to the place in two loads, and the generation
 * in the place's state word says whether the id still names the timeout that is there.
 *
 * The wheel (twheel_wheel.c) holds entries, not timeouts: a tick, an index and a sequence
 * number.  Only the kthread touches it, or the waiter that stands in for it when the
 * hrtimer fires (engine/wake.c); comments say "the kthread" for either.  If a timeout is
 * cancelled when its entry is in the wheel, its place is free for reuse at once, and the
 * entry stays behind.  The next timeout in that place may use it.  Otherwise the kthread
 * drops it when it comes up, because the state word has another state or another sequence
 * number.  Sweeps bound the number of stale entries.  When a timeout is moved later, by
 * REARM or by a store into the refresh table that nobody notices, its entry stays where it
 * is as well: it comes up early, and the kthread puts it where the deadline then says.
 *
 * Neither is worth a wake-up.  At the end of a pass the kthread looks ahead: as long as the
 * first entry of the next slot is such an entry, and not one that it would move by little, it
 * drops or moves all of them that stand with it.  Then it sets the alarm for the first slot
 * that is needed.
 *
 *
 * Where to look
 * -------------
 *
 *   twheel_main.c        this file
 *   twheel_chardev.c     open, read, poll, mmap; what POLLIN, POLLOUT and POLLHUP mean
 *   twheel_write.c       write: records, each done as an entry of a vector is
 *   twheel_ioctl.c       the ioctls: which there are, and those without a vector
 *   twheel_vectors.c     those with a vector: ARM, REARM, CANCEL, QUERY.  Batches, in steps
 *                        or at once; and what ARM does in a keyed wheel
 *   twheel_copy.c        copies a structure in whose size the caller names
 *
 *   engine/arm.c, rearm.c, cancel.c, query.c      a file for each call
 *   engine/control.c     create, SETUP, start, ADVANCE, DRAIN, destroy
 *   engine/pass.c        a pass of the kthread: inbox, expiry, drain, looking ahead
 *   engine/events.c      the ready list and reading; periods.c: periods nobody read
 *   engine/look.h        report first, commit second; tell.h: both in one step
 *   engine/ending.c      what follows when timeouts have ended
 *   engine/shrink.c      giving pages of places back; refresh.c: the mapped table
 *   engine/inbox.h       timeouts on their way into the wheel
 *   engine/room.c        room in the wheel, and the sweep; budget.h: how long a turn lasts
 *   engine/arena.c       places, indices and ids; words.c: the words of the table;
 *                        keys.c: the index of a keyed wheel
 *   engine/life.h        times as asked for;
 *                        slack.h: the ticks of timeouts that may be late
 *   engine/wake.c        the hrtimer, and which waiters are woken
 *   engine/pages.c, memory.c, user.c, clock.c     the ground; turns of users
 *   engine/window.c      where tests hold a thread; not in an ordinary build
 *   engine/timeout.h     a timeout and its state word
 *   engine/limits.h      how much the kthread does at a time, how much waits for it, and how much
 *                        waste counts.  Each other measure stands with the code or the structure
 *                        that it belongs to
 *
 *   twheel_wheel.c       the wheel: ticks and entries, no clock, no locks
 *   twheel_compat.h      what an older kernel lacks
 *
 * A file calls those below it in this list, and none above.  What leads up is a function
 * that was handed down: user.c takes a wheel's turn by twheel_pass_turn().
 *
 *
 * States
 * ------
 *
 * One atomic word per timeout decides every race.  The thread that changes it owns what
 * follows, and the loser looks again.
 *
 *   FREE --> NEW --> QUEUED --> ARMED --> UNREAD --> FREE
 *
 *   FREE      no timeout is in the place.  It is on a free list, on its way there, or retired;
 *             or an ARM has taken it, or the kthread keeps it back to free its page
 *   NEW       an ARM prepares the timeout, and no other thread knows it
 *   QUEUED    the timeout pends; it is in the inbox, or on its way there
 *   ARMED     it pends, and an entry in the wheel has its sequence number
 *   UNREAD    it is on the ready list, and its event waits to be read.  It has no entry
 *             in the wheel, but perhaps a stale one.  A periodic timeout gets one again after
 *             its event was read, unless it ends with that event
 *   DEAD      it was cancelled in the inbox, and the kthread frees it from there
 *   REARMING  a holder of events.lock changes its fields.  No other holder of the lock
 *             ever sees this state, and a thread without the lock that wants to change the
 *             timeout waits for its end
 *
 * Documentation/design.rst has the table of transitions, each with its function.
 *
 *
 * Locks
 * -----
 *
 * The banner of each .c file states its part.  An arrow leads from the outer lock to the inner:
 *
 *   mmap_lock --> arena.mutex        mmap() makes the refresh table
 *   arena.mutex --> page lock        a page of words is replaced; a page fault takes the
 *                                    page lock as well, under mmap_lock or the VMA's only
 *   arena.mutex --> i_mmap_rwsem     the replaced page is taken from its users
 *   keys.lock --> the hash table's   a node goes into the index, or out of it
 *   arena.mutex --> the work queue's mmap() has failed: what it made is freed
 *   control.mutex --> wake.lock      ADVANCE and DRAIN ask for a pass and wait for it
 *   wake.lock --> queue.lock         the wheel's turn is asked for (engine/user.c), and
 *                                    queue.lock --> the kthread's list
 *   wake.lock --> hrtimer            the alarm is set
 *   wake.lock --> the kthread's list, and its timer: the work is queued that gives memory back
 *
 * No other two locks of the engine nest.  events.lock, arena.free_lock, room.mutex and
 * users_mutex are innermost, but for the allocator's locks under the mutexes.
 *
 * The mutexes are mutexes because their holders allocate, or wait for the kthread.  The
 * kthread takes none of them: it tries arena.mutex and room.mutex, and comes back later.
 * Of the engine's spinlocks the softirq takes wake.lock and queue.lock, so the other ones
 * are plain.
 *
 * Readers and pollers are woken under no lock of the engine: a wake-up runs the callbacks
 * of epoll, which take locks of their own and may take long.  A poll may make a pass, with
 * the locks of its caller held, such as epoll's mutex: no such lock is taken under one of the
 * engine's.
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
#include <linux/hrtimer.h>
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
#include "engine/window.h"
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
		/* The new thread may be writing worker->task: the same value again. */
		worker_prioritize(data_race(worker->task));
		workers[nr_workers++] = worker;
	}
	twheel_users_init(workers, nr_workers);
	return 0;
}

/*
 * Unless the parameters say otherwise, all wheels may take a quarter of the machine's
 * memory, and the wheels of one user half of that (fs/eventpoll.c gives each user a
 * twenty-fifth).  The parameters then show the limits in force.
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

/* G2 assumes high-resolution timers.  With highres=off each wake-up waits for a jiffy. */
static void resolution_tell(void)
{
	if (hrtimer_resolution > 1)
		pr_warn("no high-resolution timers: each wake-up may be %lu us late\n",
			hrtimer_resolution / NSEC_PER_USEC);
}

static int __init twheel_module_init(void)
{
	int err = parameters_check();

	if (err)
		return err;
	limits_init();
	twheel_windows_init();
	twheel_control_init(default_tick_us, max_pending_limit);
	err = twheel_refresh_init();
	if (err)
		goto exit_windows;
	err = workers_start();
	if (err)
		goto exit_refresh;
	err = twheel_chardev_register();
	if (err)
		goto stop_workers;
	resolution_tell();
	return 0;

stop_workers:
	workers_stop();
exit_refresh:
	twheel_refresh_exit();
exit_windows:
	twheel_windows_exit();
	return err;
}

static void __exit twheel_module_exit(void)
{
	twheel_chardev_unregister();
	workers_stop();
	twheel_refresh_exit();
	/* table_free_rcu() is a function of this module, and may still have to run. */
	rcu_barrier();
	twheel_windows_exit();
}

module_init(twheel_module_init);
module_exit(twheel_module_exit);

MODULE_DESCRIPTION("millions of timeouts behind one file descriptor");
MODULE_LICENSE("GPL");
MODULE_VERSION(TWHEEL_VERSION);
