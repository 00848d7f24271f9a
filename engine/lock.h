/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wheel's lock, the inbox of who does not get it, and how timeouts come into the wheel
 *
 * An ARM puts its timeouts into the wheel itself if it gets the lock at once.  If not, it adds them
 * to the inbox, and goes its way: whoever takes the lock, or releases it, empties the inbox.  So an
 * ARM does not wait for a pass, and its timeouts are in the wheel before a later call takes the
 * lock.  poll() does not take it, and may find an event of these later, by a wake-up.
 * If something is in the inbox already, it waits for the lock: what whoever has the lock does for
 * others is bounded by a batch for each processor (G5).
 *
 * Locks: twheel.lock.
 */
#ifndef _TWHEEL_ENGINE_LOCK_H
#define _TWHEEL_ENGINE_LOCK_H

#include <linux/bottom_half.h>
#include <linux/kconfig.h>

#include "engine.h"
#include "syncpoint.h"
#include "twheel.h"

void twheel_wake_for_events(struct twheel *tw, unsigned int nr);
void twheel_wake_for_room(struct twheel *tw);
void twheel_inbox_empty(struct twheel *tw)
	__must_hold(&tw->lock);
void twheel_unlock_inbox(struct twheel *tw);
u64 twheel_pend_odd(struct twheel *tw, struct twheel_timeout *t, u64 now_ns)
	__must_hold(&tw->lock);

/*
 * Try to take the lock.  On a machine of one processor a spinlock keeps nobody out but by disabling
 * preemption, and is always free: there, softirqs are disabled as well.
 */
static __always_inline bool twheel_trylock(struct twheel *tw)
{
	if (!IS_ENABLED(CONFIG_SMP))
		local_bh_disable();
	if (likely(spin_trylock(&tw->lock)))
		return true;
	if (!IS_ENABLED(CONFIG_SMP))
		local_bh_enable();
	return false;
}

static __always_inline void twheel_lock(struct twheel *tw)
	__acquires(&tw->lock)
{
	if (!IS_ENABLED(CONFIG_SMP))
		local_bh_disable();
	spin_lock(&tw->lock);
	if (unlikely(!llist_empty(&tw->inbox)))
		twheel_inbox_empty(tw);
	twheel_window(WINDOW_LOCKED);
}

/*
 * A thread that releases the lock does the work of others after that: it empties the inbox, and
 * wakes waiters.  It is not preempted before that is done (G2): others would wait until it has a
 * processor again, which may be long if it is of SCHED_IDLE.  With PREEMPT_RT a wake-up may sleep;
 * there is nothing in the inbox there, see arm_queue().
 */
static __always_inline void unlock_begin(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_disable();
}

static __always_inline void unlock_end(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		preempt_enable();
}

/*
 * An ARM first adds to the inbox and then tries the lock; here the lock is released first, and then
 * the inbox is looked at.  So either the ARM gets the lock, or its timeouts are seen here.
 * Test: litmus inbox
 */
static __always_inline void unlock_and_look(struct twheel *tw)
	__releases(&tw->lock)
{
	spin_unlock(&tw->lock);
	if (!IS_ENABLED(CONFIG_SMP))
		local_bh_enable();
	twheel_window(WINDOW_UNLOCKED);
	/*
	 * Pairs with llist_add_batch() in arm_queue(), after which that tries the lock.
	 * Test: litmus inbox
	 */
	smp_mb();
	if (unlikely(!llist_empty(&tw->inbox)))
		twheel_unlock_inbox(tw);
}

/* Release the lock. */
static __always_inline void twheel_unlock_quietly(struct twheel *tw)
	__releases(&tw->lock)
{
	unlock_begin();
	unlock_and_look(tw);
	unlock_end();
}

/* Release the lock, and wake readers and pollers if events were added. */
static __always_inline void twheel_unlock(struct twheel *tw)
	__releases(&tw->lock)
{
	u32 nr = tw->events.nr_untold;

	tw->events.nr_untold = 0;
	unlock_begin();
	unlock_and_look(tw);
	if (unlikely(nr)) {
		twheel_window(WINDOW_EVENTS_ADDED);
		twheel_wake_for_events(tw, nr);
	}
	unlock_end();
}

/* The clock, as the first step of a call has read it. */
static __always_inline u64 call_now_ns(struct twheel *tw, struct twheel_call *call)
{
	if (likely(!call->now_ns))
		call->now_ns = twheel_now(&tw->clock);
	return call->now_ns;
}

/* The softirq is not later than this with an alarm, unless the machine stands still. */
#define ALARM_LATE_NS	NSEC_PER_SEC

/*
 * A plain deadline from here on, and before the end of time, is to come: found without a look at
 * the clock, as long as the alarm has yet to ring.  It may be late, or have rung in vain: so
 * nothing is certain of a deadline shortly after it.  NEVER_NS if the clock has to be looked at: if
 * the alarm is not set, or may ring later than it was set to.
 */
static __always_inline u64 certain_ns(struct twheel *tw)
	__must_hold(&tw->lock)
{
	u64 at_ns = tw->alarm.at_ns;

	if (unlikely(!hrtimer_is_queued(&tw->alarm.timer) || at_ns >= TWHEEL_TIME_NEVER ||
		     !tw->clock.steady))
		return NEVER_NS;
	return max(at_ns + ALARM_LATE_NS, tw->wheel.base_ns + 1);
}

/*
 * Put a timeout that is in no list, and is PENDING, to where its deadline says.  @passed_ns is what
 * passed_ns() returned.  Returns when it is due; NEVER_NS if no alarm is needed for it.
 */
static __always_inline u64 timeout_pend(struct twheel *tw, struct twheel_timeout *t, u64 passed_ns)
	__must_hold(&tw->lock)
{
	u64 due_ns = t->deadline_ns;

	/* The deadline is to come, and comes, and the timeout is a plain one. */
	if (unlikely(due_ns <= passed_ns || due_ns >= tw->clock.never_ns))
		return twheel_pend_odd(tw, t, passed_ns);
	twheel_wheel_insert(&tw->wheel, &t->link, due_ns);
	return due_ns;
}

#endif /* _TWHEEL_ENGINE_LOCK_H */
