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
 *   wake.lock --> the lock of a user's queue, see twheel_user.c, and those of the
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

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/time64.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "engine/arena.h"
#include "engine/clock.h"
#include "engine/control.h"
#include "engine/engine.h"
#include "engine/periods.h"
#include "engine/refresh.h"
#include "engine/timeout.h"
#include "engine/words.h"
#include "twheel.h"
#include "twheel_compat.h"
#include "twheel_user.h"

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

/* Looking */

/*
 * Whether an UNREAD timeout of a fixed rate waits for its next period as well; @nr
 * have passed since it expired.
 */
static bool unread_is_pending(const struct twheel_timeout *t, u64 state, u64 nr)
	__must_hold(&tw->events.lock)
{
	return state_keeps_room(state) && !state_is_fixed_delay(state) &&
	       !timeout_has_ended(t, state, nr);
}

/* Periods that have passed since an UNREAD timeout expired; true if more are to come. */
static bool status_count_periods(struct twheel *tw, const struct twheel_timeout *t,
				 u64 state, struct twheel_status *status)
	__must_hold(&tw->events.lock)
{
	u64 nr = twheel_periods_unread(&tw->clock, t, state);
	bool waits = unread_is_pending(t, state, nr);

	status->count = periods_count(status->count, nr);
	if (state_is_limited(state))
		status->repeats_left -= nr;
	status->deadline_ns += (nr + waits) * status->interval_ns;
	return waits;
}

/* False if it is gone. */
static bool timeout_status(struct twheel *tw, struct twheel_timeout *t,
			   u64 state, u64 now_ns, struct twheel_status *status)
	__must_hold(&tw->events.lock)
{
	*status = (struct twheel_status){
		.id		= timeout_id(t, state),
		.state		= TWHEEL_STATE_PENDING,
		.user_data	= READ_ONCE(t->user_data),
		.deadline_ns	= timeout_deadline_ns(&tw->words, t, state),
		.count		= timeout_count(t, state),
	};
	bool waits = state_is_pending(state);

	if (state_is_drained(state))
		status->state = TWHEEL_STATE_DRAINED;
	else if (state_is_unread(state))
		status->state = TWHEEL_STATE_EXPIRED;
	if (state_is_periodic(state)) {
		struct twheel_periodic *periodic = timeout_periodic(t);
		u32 slot = timeout_slot(t);

		status->interval_ns = READ_ONCE(periodic->interval_ns[slot]);
		status->deliveries = READ_ONCE(periodic->deliveries[slot]);
		status->repeats_left = READ_ONCE(periodic->repeats_left[slot]);
	}
	if (state_is_fixed_delay(state))
		status->flags = TWHEEL_ARM_FIXED_DELAY;
	if (state_is_unread(state))
		waits = status_count_periods(tw, t, state, status);
	status->deadline_ns = min(status->deadline_ns, TWHEEL_TIME_NEVER);
	if (waits && status->deadline_ns > now_ns)
		status->left_ns = status->deadline_ns == TWHEEL_TIME_NEVER ?
				  TWHEEL_TIME_NEVER :
				  status->deadline_ns - now_ns;
	/*
	 * G8: cancelled meanwhile, which takes no lock, its place may be another
	 * one's, and what was read above that one's.
	 */
	smp_rmb();
	return state_gen(atomic64_read(&t->state)) == state_gen(state);
}

/**
 * twheel_query() - tell the state of timeouts
 * @tw: the wheel
 * @status: the batch: id in, the rest out
 * @nr: how many, up to TWHEEL_BATCH
 *
 * Context: process.
 */
void twheel_query(struct twheel *tw, struct twheel_status *status,
		  unsigned int nr)
{
	u64 state, now_ns = twheel_now(&tw->clock);
	unsigned int i;

	spin_lock(&tw->events.lock);
	for (i = 0; i < nr; i++) {
		struct twheel_timeout *t;

		t = timeout_by_id(&tw->arena, status[i].id, &state);
		if (!t || !timeout_status(tw, t, state, now_ns, &status[i]))
			status[i].result = -ENOENT;
	}
	spin_unlock(&tw->events.lock);
}

/**
 * twheel_list() - tell the state of some of all timeouts
 * @tw: the wheel
 * @cursor: the first index to be looked at; out: where to go on
 * @status: out: rows
 * @nr: room, up to TWHEEL_BATCH
 *
 * Looks at one page of places at the most.
 *
 * Context: process.
 * Return: how many rows; negative when the cursor is past the end.
 */
int twheel_list(struct twheel *tw, u64 *cursor, struct twheel_status *status,
		unsigned int nr)
{
	u64 now_ns = twheel_now(&tw->clock);
	struct twheel_page *page;
	u32 page_nr, slot;
	int i = 0;

	if (*cursor >= (u64)READ_ONCE(tw->arena.places.nr) * PLACES_PER_PAGE)
		return -1;
	page_nr = (u32)*cursor / PLACES_PER_PAGE;
	slot = (u32)*cursor % PLACES_PER_PAGE;
	spin_lock(&tw->events.lock);
	page = page_at(&tw->arena, page_nr);
	if (!page)
		slot = PLACES_PER_PAGE;
	for (; slot < PLACES_PER_PAGE && i < nr; slot++) {
		struct twheel_timeout *t = &page->timeout[slot];
		u64 state = timeout_state(t);

		if (state_is_live(state) &&
		    timeout_status(tw, t, state, now_ns, &status[i]))
			i++;
	}
	spin_unlock(&tw->events.lock);
	*cursor = (u64)page_nr * PLACES_PER_PAGE + slot;
	return i;
}

/**
 * struct outlook - what is found by walking all places
 * @next_ns: the next deadline, TWHEEL_TIME_NEVER if there is none
 * @nr_both: timeouts that are pending and have an unread event
 */
struct outlook {
	u64 next_ns;
	u32 nr_both;
};

static void page_look(struct twheel *tw, const struct twheel_page *page,
		      struct outlook *outlook)
	__must_hold(&tw->events.lock)
{
	u32 i;

	for (i = 0; i < PLACES_PER_PAGE; i++) {
		const struct twheel_timeout *t = &page->timeout[i];
		u64 state = timeout_state(t);
		u64 deadline_ns;

		if (state_is_pending(state)) {
			deadline_ns = timeout_deadline_ns(&tw->words, t, state);
		} else if (state_keeps_room(state)) {
			u64 nr = twheel_periods_unread(&tw->clock, t, state);

			if (!unread_is_pending(t, state, nr))
				continue;
			outlook->nr_both++;
			deadline_ns = t->deadline_ns +
				      (nr + 1) * page->periodic->interval_ns[i];
		} else {
			continue;
		}
		outlook->next_ns = min(outlook->next_ns, deadline_ns);
	}
}

static int twheel_look_out(struct twheel *tw, struct outlook *outlook)
{
	struct twheel_page *page;
	u32 nr;

	*outlook = (struct outlook){ .next_ns = TWHEEL_TIME_NEVER };
	for (nr = 0; nr < READ_ONCE(tw->arena.places.nr); nr++) {
		/* What is being re-armed is in no state that counts. */
		spin_lock(&tw->events.lock);
		page = page_at(&tw->arena, nr);
		if (page)
			page_look(tw, page, outlook);
		spin_unlock(&tw->events.lock);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static_assert(WAKE_NEVER == TWHEEL_NO_EXPIRY);

/* The next deadline, rounded up to its tick. */
static u64 next_expiry_ns(const struct twheel *tw, u64 next_ns)
{
	/* Nothing pends in a wheel that was not started, and knows no ticks. */
	if (next_ns >= TWHEEL_TIME_NEVER)
		return TWHEEL_NO_EXPIRY;
	return tick_edge_ns(&tw->clock, deadline_tick(&tw->clock, next_ns));
}

static void info_configuration(struct twheel *tw, struct twheel_info *info)
{
	info->clock = tw->clock.kind;
	info->tick_ns = tw->clock.tick_ns;
	info->slots = tw->control.slots;
	info->levels = tw->wheel.nr_levels;
	info->max_pending = tw->arena.max_pending;
	info->setup_flags = tw->control.setup_flags;
	info->refresh_size = twheel_refresh_size(tw);
	info->now_ns = twheel_now(&tw->clock);
}

/* The same, while SETUP may be changing all of that. */
static int info_configuration_locked(struct twheel *tw, struct twheel_info *info)
{
	if (mutex_lock_killable(&tw->control.mutex))
		return -EINTR;
	info_configuration(tw, info);
	/* It would begin to live in the caller's time namespace. */
	if (!tw->control.started)
		info->now_ns += twheel_namespace_offset_ns(tw->clock.kind);
	mutex_unlock(&tw->control.mutex);
	return 0;
}

/**
 * twheel_get_info() - tell what INFO and fdinfo tell
 * @tw: the wheel
 * @info: out
 *
 * Context: process; sleeps.
 * Return: 0, or -EINTR by a fatal signal.
 */
int twheel_get_info(struct twheel *tw, struct twheel_info *info)
{
	struct outlook outlook;
	int err;

	*info = (struct twheel_info){
		.size		= sizeof(*info),
		.features	= TWHEEL_FEATURE_REFRESH,
	};
	info->max_pending_limit = twheel_max_pending_limit();
	info->max_vector = TWHEEL_MAX_VECTOR;
	err = twheel_look_out(tw, &outlook);
	if (err)
		return err;
	/* Once the wheel has started, this is final, and nobody is waited for. */
	if (control_is_started(&tw->control))
		info_configuration(tw, info);
	else
		err = info_configuration_locked(tw, info);
	if (err)
		return err;
	info->next_expiry_ns = next_expiry_ns(tw, outlook.next_ns);

	spin_lock(&tw->events.lock);
	info->max_late_ns = tw->events.max_late_ns;
	info->armed = atomic64_read(&tw->arena.armed);
	info->live = atomic_read(&tw->arena.live);
	info->unread = tw->events.nr_unread;
	/* Some may have been read since they were counted. */
	info->pending = info->live - info->unread +
			min_t(u64, outlook.nr_both, info->unread);
	info->expirations = tw->events.expirations;
	info->delivered = tw->events.delivered;
	info->completed = tw->events.completed;
	info->cancelled = atomic64_read(&tw->arena.cancelled);
	info->revoked = tw->events.revoked;
	info->drained = tw->events.drained_out;
	info->rearmed = tw->events.rearmed;
	spin_unlock(&tw->events.lock);
	return 0;
}

/* Birth and death of the module */

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
