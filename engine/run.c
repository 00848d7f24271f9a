// SPDX-License-Identifier: GPL-2.0
/*
 * Work on a wheel, step by step, and who does it
 *
 * The softirq takes steps when the alarm rings, and the kthread does when there is more.  ADVANCE
 * and DRAIN take them as well.  Each step is done under one hold of the lock, and leaves the wheel
 * as any other thread may find it: so it does not matter who takes the next one.
 *
 * G5 bounded interrupt work: the softirq looks at SOFT_STEPS * PASS_STEP timeouts for one wheel at
 * most.  All wheels together take SOFT_NS of a processor in one go, and half of its time after
 * that; and those of one user a tenth of the time of all processors, after a burst (account.c).
 * The kthread does what is left.
 *
 * The softirq only tries the lock.  If another thread has it, the alarm rings again in a moment,
 * and if that happens some times, the kthread is asked as well.
 *
 * G2 bounded lateness: whatever the softirq leaves to the kthread, the alarm is set again: if the
 * kthread gets no processor, because realtime tasks have it, the softirq goes on.  Not so with
 * PREEMPT_RT, where only the kthread works.
 *
 * Locks: twheel.lock, for a step at a time; after it, the lock of the user's queue.  ADVANCE and
 * DRAIN hold control.mutex meanwhile.
 */
#include <linux/container_of.h>
#include <linux/prefetch.h>
#include <linux/sched/signal.h>

#include "lock.h"
#include "trace.h"
#include "twheel_compat.h"

/*
 * Readers and pollers are woken once for so many events, as long as more of them come.  If another
 * thread has the lock meanwhile, it wakes them.  With PREEMPT_RT, they are woken after each step
 * (G2): that thread may have a low priority, and be preempted before it wakes them.
 */
#define WAKE_EVERY	(IS_ENABLED(CONFIG_PREEMPT_RT) ? 1 : 1024)

/* After so many steps for one wheel, other wheels have a turn (G2): see account.c. */
#define TURN_STEPS	64

/*
 * Upper slots are emptied ahead, evenly: for two timeouts that expire, three are moved down.  If as
 * many come in each tick, the slot that comes next is empty in time, and nobody waits for a pass
 * that does nothing else.  If timeouts are left in it half of its width before it begins, the wheel
 * moves AHEAD_TICK of them in a tick; if a quarter of its width before, all at once.
 */
#define AHEAD_TICK	4096

/*
 * How many timeouts of a slot of this level, which comes next, are to be moved down now, besides
 * those for which there is time in this step.
 */
static u32 ahead_of_level(struct twheel *tw, const struct twheel_level *level)
	__must_hold(&tw->lock)
{
	u64 left_ns = twheel_slot_left_ns(&tw->wheel, level), lead_ns = twheel_slot_lead_ns(level);

	if (left_ns > lead_ns)
		return tw->nr_ahead;
	if (left_ns <= lead_ns / 2)
		return U32_MAX;
	if (tw->ahead_ns != tw->wheel.base_ns) {
		tw->ahead_ns = tw->wheel.base_ns;
		tw->nr_ahead = max(tw->nr_ahead, AHEAD_TICK);
	}
	return tw->nr_ahead;
}

/*
 * Empty upper slots to which the wheel comes next, timeout by timeout, up to @nr.  Returns whether
 * more of them are to be moved now.
 */
static bool slots_empty_ahead(struct twheel *tw, unsigned int nr)
	__must_hold(&tw->lock)
{
	struct twheel_wheel *w = &tw->wheel;
	struct twheel_link **slot;
	u32 i;

	while ((slot = twheel_wheel_ahead(w, &i))) {
		u32 nr_ahead = ahead_of_level(tw, &w->level[i]);
		unsigned int before = nr;

		for (; nr && *slot != &w->end; nr--) {
			struct twheel_timeout *t = link_timeout(*slot);
			u64 due_ns = timeout_take_over(tw, t);

			prefetchw(t->link.next);
			twheel_link_del(&t->link);
			if (likely(due_ns != NEVER_NS))
				twheel_wheel_move_down(w, i, &t->link, due_ns);
			else
				twheel_link_push(&w->never, &t->link);
		}
		tw->nr_ahead -= min(tw->nr_ahead, before - nr);
		if (!nr)
			return *slot != &w->end && nr_ahead > before;
	}
	tw->nr_ahead = 0;
	return false;
}

/*
 * Turn a timeout that is left after DRAIN into an event flagged drained (G3).  Its place
 * may also be free, or its event unread: a one-shot's event stays as it is, a periodic
 * timeout's is flagged unless it was the last one anyway.
 */
static void timeout_drain(struct twheel *tw, struct twheel_timeout *t, u64 now_ns)
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

/*
 * Turn some of the timeouts that are left after DRAIN into events: @nr places may be looked at.
 * Returns how many more may be; 0 if there may be more to do.
 */
static unsigned int drain_step(struct twheel *tw, u64 now_ns, unsigned int nr)
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
static bool pass_step(struct twheel *tw)
	__must_hold(&tw->lock)
{
	u64 now_ns = passed_ns(tw, twheel_now(&tw->clock));
	unsigned int left = twheel_expire(tw, now_ns, PASS_STEP), looked = PASS_STEP - left;
	enum twheel_counter by = counter_of_pass();
	bool more = true;

	/* Three are moved ahead for two that were looked at. */
	tw->nr_ahead += looked + looked / 2;
	if (left && unlikely(tw->drains)) {
		left = drain_step(tw, now_ns, left);
		more = !left;
		if (!more) {
			tw->drains = false;
			/*
			 * Pairs with the acquire in twheel_is_drained(): who sees this sees all
			 * events.  Test: litmus drained_read, drained_poll
			 */
			smp_store_release(&tw->control.drained, true);
			tw->events.nr_untold++;
		}
	} else if (left) {
		more = slots_empty_ahead(tw, left);
	}
	counter_add(by, 1);
	trace_twheel_pass(tw, by, now_ns, looked, more);
	return more;
}

/* Take a step under one hold of the lock.  Returns whether there is more to do now. */
static bool pass_step_locked(struct twheel *tw)
{
	u32 nr_before;
	bool more;

	twheel_lock(tw);
	nr_before = tw->events.nr_untold;
	more = pass_step(tw) || !twheel_alarm_set(tw, NULL);
	if (!more || tw->events.nr_untold == nr_before || tw->events.nr_untold >= WAKE_EVERY)
		twheel_unlock(tw);
	else
		twheel_unlock_quietly(tw);
	return more;
}

/* A pass stops before it is complete: wake waiters for the events of its last steps. */
static void pass_stop(struct twheel *tw)
{
	twheel_lock(tw);
	twheel_unlock(tw);
}

/*
 * Do all that there is to do on a wheel now: 0, or -ERESTARTSYS by a signal: the kthread does the
 * rest then.
 */
static int pass_now(struct twheel *tw)
{
	while (pass_step_locked(tw)) {
		if (signal_pending(current)) {
			pass_stop(tw);
			twheel_turn_request(&tw->turn);
			return -ERESTARTSYS;
		}
		cond_resched();
	}
	return 0;
}

/**
 * twheel_run_turn() - take a wheel's turn with the kthread
 * @turn: &twheel.turn
 * @end_ns: when the turn has to end, ktime_get_ns()
 *
 * G2 bounded lateness: a turn is bounded in timeouts and in time, so that the wheels of
 * other users, and the other wheels of this user, have their turns in between.
 *
 * Context: the kthread; sleeps; no lock is held.
 * Return: true when the wheel needs another turn.
 */
bool twheel_run_turn(struct twheel_turn *turn, u64 end_ns)
{
	struct twheel *tw = container_of(turn, struct twheel, turn);
	unsigned int steps = 0;
	bool more;

	do {
		more = pass_step_locked(tw);
		cond_resched();
	} while (more && ++steps < TURN_STEPS && ktime_get_ns() < end_ns);
	if (more)
		pass_stop(tw);
	return more;
}

/* The softirq */

/* So many steps of PASS_STEP timeouts the softirq takes for one wheel. */
#define SOFT_STEPS	8

/* The softirqs of all wheels take so much of a processor in one go. */
#define SOFT_NS		(50 * NSEC_PER_USEC)

/* No softirq takes longer: the machine stood still meanwhile, and nobody is charged for that. */
#define SOFT_TOOK_MAX_NS	NSEC_PER_SEC

/*
 * If the lock is not free, the alarm rings again after MISSED_NS, and that MISSED_MAX times; then
 * after MISSED_LONG_NS, until it is free.
 */
#define MISSED_NS	(20 * NSEC_PER_USEC)
#define MISSED_MAX	3
#define MISSED_LONG_NS	NSEC_PER_MSEC

/* Without a share, the alarm rings again at an edge that is not before this time is over. */
#define BARRED_NS	(100 * NSEC_PER_USEC)

/*
 * Until then (ktime_get_ns()) the processor has given as much time to softirqs of this module as
 * they may take: each takes twice its time of it.
 */
static DEFINE_PER_CPU(u64, soft_until_ns);

/* How much time the processor has left for softirqs of this module. */
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

/* Another thread has the lock.  If it has set the alarm meanwhile, that is the right time. */
static void alarm_missed(struct twheel *tw)
{
	bool often = tw->alarm.nr_missed == MISSED_MAX;

	tw->alarm.nr_missed += !often;
	if (!hrtimer_is_queued(&tw->alarm.timer))
		hrtimer_start(&tw->alarm.timer, ns_to_ktime(often ? MISSED_LONG_NS : MISSED_NS),
			      HRTIMER_MODE_REL_SOFT);
	if (often)
		twheel_turn_request(&tw->turn);
}

/* The alarm has rung, and the lock is taken: it is not set any more. */
static void alarm_is_over(struct twheel *tw)
	__must_hold(&tw->lock)
{
	tw->alarm.nr_missed = 0;
	tw->alarm.at_ns = NEVER_NS;
}

/* How long it takes until the processor and the user have a share of the softirq. */
static u64 share_pause_ns(const struct twheel *tw, u64 now_ns)
{
	s64 processor_ns = __this_cpu_read(soft_until_ns) - now_ns;

	return max3((s64)BARRED_NS, processor_ns, user_pause_ns(tw->memory.user, now_ns));
}

/*
 * Leave a wheel whose alarm has rung to the kthread, since the processor or the user has no share
 * of the softirq left.  Returns whether the alarm rings again.
 *
 * It rings when there is a share again, and the user may have its work done then, whatever other
 * wheels of the user have taken meanwhile: each of them rings in vain once only.
 */
static enum hrtimer_restart alarm_leave(struct twheel *tw, u64 now_ns)
{
	enum hrtimer_restart restart = HRTIMER_NORESTART;

	if (twheel_trylock(tw)) {
		alarm_is_over(tw);
		twheel_alarm_set_next(tw, now_ns, share_pause_ns(tw, now_ns), &restart);
		tw->alarm.paid = true;
		twheel_unlock_quietly(tw);
	} else {
		alarm_missed(tw);
	}
	twheel_turn_request(&tw->turn);
	return restart;
}

/* Work on a wheel whose alarm has rung.  Returns whether it rings again. */
static enum hrtimer_restart alarm_work(struct twheel *tw, u64 end_ns)
{
	enum hrtimer_restart restart = HRTIMER_NORESTART;
	unsigned int steps = 0;
	u64 now_ns;

	if (!twheel_trylock(tw)) {
		alarm_missed(tw);
		return restart;
	}
	alarm_is_over(tw);
	if (unlikely(!llist_empty(&tw->inbox)))
		twheel_inbox_empty(tw);
	if (unlikely(tw->drains)) {
		/* DRAIN does all, or the kthread. */
		twheel_unlock(tw);
		return restart;
	}
	do {
		if (!pass_step(tw) && twheel_alarm_set(tw, &restart)) {
			twheel_unlock(tw);
			return restart;
		}
		/* It rings at the next tick, should the kthread not get a processor by then. */
		now_ns = ktime_get_ns();
		twheel_alarm_set_next(tw, now_ns, 1, &restart);
		if (++steps == SOFT_STEPS || now_ns >= end_ns) {
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
	struct twheel *tw = container_of(timer, struct twheel, alarm.timer);
	u64 end_ns, begin_ns = ktime_get_ns(), left_ns = processor_left_ns(begin_ns);
	enum hrtimer_restart restart;
	bool works;

	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		twheel_turn_request(&tw->turn);
		return HRTIMER_NORESTART;
	}
	works = left_ns && (user_may_work(tw->memory.user, begin_ns) || READ_ONCE(tw->alarm.paid));
	restart = works ? alarm_work(tw, begin_ns + left_ns) : alarm_leave(tw, begin_ns);
	end_ns = min(ktime_get_ns(), begin_ns + SOFT_TOOK_MAX_NS);
	if (works)
		processor_has_worked(begin_ns, end_ns);
	/* To ring in vain counts as well, or many wheels with short ticks would do little else. */
	twheel_user_has_worked(tw->memory.user, begin_ns, end_ns);
	return restart;
}

/**
 * twheel_alarm_init() - prepare the hrtimer
 * @tw: the wheel, whose clock is final
 *
 * Context: process; under &twheel_control.mutex, before the wheel has started.
 */
void twheel_alarm_init(struct twheel *tw)
{
	hrtimer_setup(&tw->alarm.timer, alarm_rings, twheel_clock_id(&tw->clock),
		      HRTIMER_MODE_ABS_SOFT);
	if (tw->clock.kind != TWHEEL_CLOCK_VIRTUAL)
		tw->alarm.at_ns = NEVER_NS;
}

/* ADVANCE and DRAIN */

/**
 * twheel_advance() - move the virtual clock, and let expire what is due
 * @tw: the wheel
 * @to_ns: its new time
 *
 * A signal may end the wait when the clock has moved already.  The call can be repeated
 * with the same time.
 *
 * Context: process; sleeps; no lock of the wheel may be held.
 * Return: 0 when the events of all timeouts that are due by @to_ns can be read, or
 *
 * * -EOPNOTSUPP when the wheel has another clock
 * * -ESHUTDOWN when it was drained
 * * -EINVAL when @to_ns is in the past or after the end of time
 * * -ERESTARTSYS by a signal
 */
int twheel_advance(struct twheel *tw, u64 to_ns)
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
		err = pass_now(tw);
	mutex_unlock(&tw->control.mutex);
	return err;
}

/**
 * twheel_is_drained() - tell whether the events of all timeouts left can be read
 * @tw: the wheel
 *
 * Context: any; no lock is needed.
 * Return: true once the drain is complete; it stays true, and no event is added any more.
 */
bool twheel_is_drained(const struct twheel *tw)
{
	/*
	 * Pairs with the release in pass_step(): the last events are in the list.
	 * Test: litmus drained_read, drained_poll
	 */
	return smp_load_acquire(&tw->control.drained);
}

/**
 * twheel_drain() - stop a wheel, and turn each timeout that is left into an event
 * @tw: the wheel
 *
 * Draining takes these steps, each of which relies on the one before:
 *
 * 1. Set draining.  ARM tests it before it submits timeouts, both within one RCU read-side
 *    section, or under the wheel's lock; REARM and read test it under the lock.
 * 2. Wait for a grace period.  After it, every timeout that was accepted is in the wheel or in the
 *    inbox, and no other will come (G3, G4).
 * 3. Set drains.  From then on a step of a pass expires the timeouts that are due, turns those
 *    left into events flagged drained, and sets drained in the end.  The last one has all readers
 *    and pollers woken.
 * 4. Take these steps.
 *
 * A later call, or one that is repeated after a signal, goes on with step 4, as the kthread does
 * meanwhile.  A wheel that has not started has nothing to be drained.
 *
 * Context: process; sleeps; no lock of the wheel may be held.
 * Return: 0 when the events of all timeouts that were left can be read, also when the
 * wheel was drained before; -ERESTARTSYS by a signal, after which the call is to be
 * repeated.
 */
int twheel_drain(struct twheel *tw)
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
			tw->events.nr_untold++;
		}
		twheel_unlock(tw);
	}
	if (!twheel_is_drained(tw))
		err = pass_now(tw);
	mutex_unlock(&tw->control.mutex);
	return err;
}
