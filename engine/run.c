// SPDX-License-Identifier: GPL-2.0
/*
 * Passes: timeouts expire step by step, in the softirq, the kthread, ADVANCE and DRAIN
 *
 * The softirq takes steps when the alarm rings, and leaves the rest to the kthread.  Each step is
 * done under one hold of the lock and leaves the wheel consistent, so any thread may take the next
 * one.
 *
 * G5 bounded interrupt work: the softirq processes SOFT_STEPS * PASS_STEP timeouts of one wheel at
 * most.  All wheels together take SOFT_NS of a processor in one go, and half of its time after
 * that; those of one user take a tenth of the time of all processors, after a burst (account.c).
 *
 * The softirq only tries the lock.  If another thread has it, the alarm rings again in a moment.
 * If that happens several times, the kthread is asked as well.
 *
 * G2 bounded lateness: if the softirq leaves work to the kthread, it sets the alarm again.  If
 * realtime tasks keep the kthread from the processor, the softirq goes on.  With PREEMPT_RT, only
 * the kthread works.
 */
#include <linux/sched/signal.h>

#include "lock.h"
#include "trace.h"
#include "twheel_compat.h"

/*
 * While a pass goes on, wake readers and pollers once for this many events.  If another thread
 * takes the lock in between, it wakes them.  If spinlocks sleep, wake them after each step (G2):
 * that thread may have a low priority, and be preempted before it wakes them.
 */
#define WAKE_EVERY	(spinlocks_sleep() ? 1 : 1024)

/* After this many steps for one wheel, other wheels have a turn (G2): see account.c. */
#define TURN_STEPS	64

/*
 * Turn a timeout that is left after DRAIN into an event flagged drained (G3).  If its event is
 * unread, a one-shot's stays as it is, and a periodic timeout's is flagged unless it is the last
 * one anyway.  If the place is free, do nothing.
 */
static void timeout_drain(struct tw_ctx *tw, struct twheel_timeout *t, u64 now_ns)
	__must_hold(&tw->lock)
{
	if (timeout_is_unread(t)) {
		twheel_periods_settle(tw, t, twheel_periods_unread(&tw->clock, t));
		if (!timeout_ends(t, 0))
			t->fired_ns |= FIRED_DRAINED;
		return;
	}
	if (!timeout_is_pending(t))
		return;
	timeout_take_over(tw, t);
	if (timeout_is_periodic(t))
		timeout_extra(t)->count = 0;
	twheel_link_del(&t->link);
	event_add(&tw->events, t, now_ns | FIRED_DRAINED);
}

/* Drain up to @nr places.  Returns how many of @nr are left; 0 if there may be more to drain. */
static unsigned int drain_step(struct tw_ctx *tw, u64 now_ns, unsigned int nr)
	__must_hold(&tw->lock)
{
	u32 nr_places = READ_ONCE(tw->places.pages.nr) * PLACES_PER_PAGE;

	for (; nr && tw->drain_index < nr_places; nr--, tw->drain_index++) {
		struct twheel_timeout *t = place_at(&tw->places, tw->drain_index);

		if (t)
			timeout_drain(tw, t, now_ns);
	}
	return nr;
}

/* Take a step.  Returns whether there is more to do now. */
static bool pass_step(struct tw_ctx *tw) __must_hold(&tw->lock)
{
	u64 now_ns = passed_ns(tw, clock_now(&tw->clock));
	unsigned int left = PASS_STEP, scanned;
	bool more = twheel_expire(tw, now_ns, &left);
	enum twheel_counter by = in_serving_softirq() ? COUNTER_PASSES_SOFTIRQ :
				 current->flags & PF_KTHREAD ? COUNTER_PASSES_KTHREAD :
							       COUNTER_PASSES_CALL;

	scanned = PASS_STEP - left;
	tw->nr_ahead += scanned + scanned / 2;
	if (!more && unlikely(tw->drains)) {
		more = !drain_step(tw, now_ns, left);
		if (!more) {
			tw->drains = false;
			/*
			 * Pairs with the acquire in twheel_is_drained(): a thread that reads true
			 * finds all events in the list.  Test: litmus drained_read, drained_poll
			 */
			smp_store_release(&tw->control.drained, true);
			tw->events.nr_to_wake++;
		}
	} else if (!more) {
		more = twheel_empty_ahead(tw, left);
	}
	counter_add(by, 1);
	trace_twheel_pass(tw, by, now_ns, scanned, more);
	return more;
}

static bool pass_step_locked(struct tw_ctx *tw)
{
	u32 nr_before;
	bool more;

	twheel_lock(tw);
	nr_before = tw->events.nr_to_wake;
	more = pass_step(tw) || !twheel_alarm_set(tw, NULL);
	if (!more || tw->events.nr_to_wake == nr_before || tw->events.nr_to_wake >= WAKE_EVERY)
		twheel_unlock(tw);
	else
		twheel_unlock_quietly(tw);
	return more;
}

/* ADVANCE and DRAIN */

/* Take all steps: 0, or -ERESTARTSYS by a signal, after which the kthread takes the rest. */
static int run_now(struct tw_ctx *tw)
{
	while (pass_step_locked(tw)) {
		if (signal_pending(current)) {
			/* Waiters may not be woken yet for the events of the last steps. */
			twheel_settle(tw);
			twheel_turn_request(&tw->turn);
			return -ERESTARTSYS;
		}
		cond_resched();
	}
	return 0;
}

/*
 * Set the virtual clock, and expire the timeouts that are due by @to_ns.  Returns 0 once their
 * events can be read; -EOPNOTSUPP if the wheel has another clock; -ESHUTDOWN if it was drained;
 * -EINVAL if @to_ns is in the past or after the end of time; -ERESTARTSYS by a signal, perhaps with
 * the clock set already: the call can be repeated with the same time.
 */
int twheel_clock_advance(struct tw_ctx *tw, u64 to_ns)
{
	int err = 0;

	if (mutex_lock_interruptible(&tw->control.mutex))
		return -ERESTARTSYS;
	if (tw->clock.kind != TWHEEL_CLOCK_VIRTUAL)
		err = -EOPNOTSUPP;
	else if (tw->control.draining)
		err = -ESHUTDOWN;
	else if (to_ns < tw->clock.virtual_now_ns || to_ns > TWHEEL_TIME_NEVER)
		err = -EINVAL;
	else
		WRITE_ONCE(tw->clock.virtual_now_ns, to_ns);
	if (!err)
		err = run_now(tw);
	mutex_unlock(&tw->control.mutex);
	return err;
}

/* Whether all events are in the list, and none is added any more: once true, it stays so. */
bool twheel_is_drained(const struct tw_ctx *tw)
{
	/*
	 * Pairs with the release in pass_step(): the last events are in the list.
	 * Test: litmus drained_read, drained_poll
	 */
	return smp_load_acquire(&tw->control.drained);
}

/*
 * Stop a wheel, and turn each timeout that is left into an event.  Each step relies on the one
 * before:
 *
 * 1. Set draining.  ARM tests it before it submits timeouts, both within one RCU read-side section
 *    or under the wheel's lock; REARM and read test it under the lock.
 * 2. Wait for a grace period.  After it, every accepted timeout is in the wheel or in the inbox,
 *    and no other will come (G3, G4).
 * 3. Set drains.  From then on the steps of a pass expire the timeouts that are due, turn the
 *    others into events flagged drained, and set drained in the end.  The last step wakes all
 *    readers and pollers.
 * 4. Take these steps.
 *
 * If a signal interrupts step 4, the kthread goes on with it, and so does the next call.  If the
 * wheel has not started, there is nothing to drain.  Returns 0 once all events can be read, also
 * if the wheel was drained before; -ERESTARTSYS by a signal.
 */
int twheel_drain(struct tw_ctx *tw)
{
	int err = 0;

	if (mutex_lock_interruptible(&tw->control.mutex))
		return -ERESTARTSYS;
	if (!tw->control.draining) {
		twheel_lock(tw);
		WRITE_ONCE(tw->control.draining, true);
		twheel_unlock(tw);
		/*
		 * G3 exactly one outcome: pairs with the RCU section of arm_queue().
		 * Test: litmus drain_arm
		 *
		 * The mutex is held meanwhile, so that another DRAIN finds this step done.  Once
		 * the wheel has started, no other calls wait for it but ADVANCE and SETUP.
		 */
		synchronize_rcu();
		twheel_lock(tw);
		if (tw->control.started) {
			tw->drains = true;
		} else {
			/*
			 * Pairs with the acquire in twheel_is_drained().
			 * Test: litmus drained_empty
			 */
			smp_store_release(&tw->control.drained, true);
			tw->events.nr_to_wake++;
		}
		twheel_unlock(tw);
	}
	if (!twheel_is_drained(tw))
		err = run_now(tw);
	mutex_unlock(&tw->control.mutex);
	return err;
}

/* The kthread */

/*
 * Take a wheel's turn with the kthread, until @end_ns (ktime_get_ns()).  Returns whether the wheel
 * needs another turn.  G2 bounded lateness: a turn is bounded in steps and in time, so that other
 * wheels, of this user and of others, have their turns in between.
 */
bool twheel_run_turn(struct twheel_turn *turn, u64 end_ns)
{
	struct tw_ctx *tw = container_of(turn, struct tw_ctx, turn);
	unsigned int steps = 0;
	bool more;

	do {
		more = pass_step_locked(tw);
		cond_resched();
	} while (more && ++steps < TURN_STEPS && ktime_get_ns() < end_ns);
	/* As in run_now(). */
	if (more)
		twheel_settle(tw);
	return more;
}

/* The softirq */

#define SOFT_STEPS	8
#define SOFT_NS		(50 * NSEC_PER_USEC)

/* If a softirq took longer than this, the machine stood still: charge the user for this at most. */
#define SOFT_TOOK_MAX_NS	NSEC_PER_SEC

/* If the lock is taken, ring again after MISSED_NS, MISSED_MAX times; then after MISSED_LONG_NS. */
#define MISSED_NS	(20 * NSEC_PER_USEC)
#define MISSED_MAX	3
#define MISSED_LONG_NS	NSEC_PER_MSEC

/* If no share is left, the alarm rings again at the first edge after this time, or later. */
#define BARRED_NS	(100 * NSEC_PER_USEC)

/*
 * By this time (ktime_get_ns()), half of the processor's time has paid for what softirqs of this
 * module took: each of them adds twice its own time.
 */
static DEFINE_PER_CPU(u64, soft_until_ns);

/* How much longer softirqs of this module may run on this processor. */
static u64 processor_left_ns(u64 now_ns)
{
	s64 taken_ns = __this_cpu_read(soft_until_ns) - now_ns;

	return taken_ns <= 0 ? SOFT_NS : SOFT_NS - min_t(u64, taken_ns / 2, SOFT_NS);
}

static void processor_has_worked(u64 begin_ns, u64 end_ns)
{
	u64 until_ns = __this_cpu_read(soft_until_ns);

	if ((s64)(until_ns - begin_ns) < 0)
		until_ns = begin_ns;
	__this_cpu_write(soft_until_ns, until_ns + 2 * (end_ns - begin_ns));
}

/*
 * Another thread has the lock: try again soon, unless that thread has set the alarm.  If it sets
 * the alarm just now, hrtimer_start() overwrites its time, and the alarm rings as late as this.
 * The kthread is asked before that matters.
 */
static void alarm_missed(struct tw_ctx *tw)
{
	bool often = tw->alarm.nr_missed == MISSED_MAX;

	tw->alarm.nr_missed += !often;
	if (!hrtimer_is_queued(&tw->alarm.timer))
		hrtimer_start(&tw->alarm.timer, ns_to_ktime(often ? MISSED_LONG_NS : MISSED_NS),
			      HRTIMER_MODE_REL_SOFT);
	if (often)
		twheel_turn_request(&tw->turn);
}

/* The alarm has rung, and the lock was free. */
static void alarm_is_over(struct tw_ctx *tw) __must_hold(&tw->lock)
{
	tw->alarm.nr_missed = 0;
	tw->alarm.at_ns = NEVER_NS;
}

/* How long it takes until both the processor and the user have a share of the softirq again. */
static u64 share_pause_ns(const struct tw_ctx *tw, u64 now_ns)
{
	s64 processor_ns = __this_cpu_read(soft_until_ns) - now_ns;

	return max3((s64)BARRED_NS, processor_ns, user_pause_ns(tw->memory.user, now_ns));
}

/*
 * Leave a wheel whose alarm has rung to the kthread: the processor or the user has no share of the
 * softirq left.  Returns whether the alarm rings again.
 *
 * It rings when there is a share again.  Then the softirq works on this wheel (@paid) even if other
 * wheels of the user have used the share up: so each wheel rings in vain only once.
 */
static enum hrtimer_restart alarm_leave(struct tw_ctx *tw, u64 now_ns)
{
	enum hrtimer_restart restart = HRTIMER_NORESTART;

	if (twheel_trylock(tw)) {
		alarm_is_over(tw);
		twheel_alarm_set_next(tw, share_pause_ns(tw, now_ns), &restart);
		tw->alarm.paid = true;
		twheel_unlock_quietly(tw);
	} else {
		alarm_missed(tw);
	}
	twheel_turn_request(&tw->turn);
	return restart;
}

/* Work on a wheel whose alarm has rung, until @end_ns.  Returns whether it rings again. */
static enum hrtimer_restart alarm_work(struct tw_ctx *tw, u64 end_ns)
{
	enum hrtimer_restart restart = HRTIMER_NORESTART;
	unsigned int steps = 0;

	if (!twheel_trylock(tw)) {
		alarm_missed(tw);
		return restart;
	}
	alarm_is_over(tw);
	if (unlikely(!llist_empty(&tw->inbox)))
		twheel_inbox_empty(tw);
	if (unlikely(tw->drains)) {
		/* DRAIN or the kthread does all of it. */
		twheel_unlock(tw);
		return restart;
	}
	do {
		if (!pass_step(tw) && twheel_alarm_set(tw, &restart)) {
			twheel_unlock(tw);
			return restart;
		}
		/* If the kthread gets no processor by the next tick, the alarm rings then. */
		twheel_alarm_set_next(tw, 1, &restart);
		if (++steps == SOFT_STEPS || ktime_get_ns() >= end_ns) {
			twheel_unlock(tw);
			break;
		}
		twheel_unlock_quietly(tw);
	} while (twheel_trylock(tw));
	twheel_turn_request(&tw->turn);
	return restart;
}

static enum hrtimer_restart alarm_rings(struct hrtimer *timer)
{
	struct tw_ctx *tw = container_of(timer, struct tw_ctx, alarm.timer);
	u64 end_ns, begin_ns = ktime_get_ns(), left_ns = processor_left_ns(begin_ns);
	enum hrtimer_restart restart;
	bool works;

	if (!softirq_expires()) {
		twheel_turn_request(&tw->turn);
		return HRTIMER_NORESTART;
	}
	works = left_ns && (user_may_work(tw->memory.user, begin_ns) || READ_ONCE(tw->alarm.paid));
	restart = works ? alarm_work(tw, begin_ns + left_ns) : alarm_leave(tw, begin_ns);
	end_ns = min(ktime_get_ns(), begin_ns + SOFT_TOOK_MAX_NS);
	if (works)
		processor_has_worked(begin_ns, end_ns);
	/* Charge for ringing in vain as well: many wheels with short ticks would do little else. */
	twheel_user_has_worked(tw->memory.user, begin_ns, end_ns);
	return restart;
}

/* Prepare the hrtimer.  The clock is final, and the wheel has not started. */
void twheel_alarm_init(struct tw_ctx *tw)
{
	hrtimer_setup(&tw->alarm.timer, alarm_rings, twheel_clock_id(&tw->clock),
		      HRTIMER_MODE_ABS_SOFT);
	if (tw->clock.kind != TWHEEL_CLOCK_VIRTUAL)
		tw->alarm.at_ns = NEVER_NS;
}
