/* SPDX-License-Identifier: GPL-2.0 */
/* See lock.c; for the order of locks, twheel_main.c. */
#ifndef _TWHEEL_ENGINE_LOCK_H
#define _TWHEEL_ENGINE_LOCK_H

#include <linux/bottom_half.h>

#include "engine.h"
#include "syncpoint.h"
#include "twheel.h"

void twheel_wake_for_events(struct tw_ctx *tw, unsigned int nr);
void twheel_wake_for_room(struct tw_ctx *tw);
void twheel_inbox_empty(struct tw_ctx *tw) __must_hold(&tw->lock);
void twheel_unlock_inbox(struct tw_ctx *tw);
u64 twheel_pend_slow(struct tw_ctx *tw, struct twheel_timeout *t, u64 now_ns)
	__must_hold(&tw->lock);

/*
 * PREEMPT_RT changes two things: whether the softirq expires timeouts, or the kthread does it;
 * and whether a thread that waits for a spinlock sleeps, and lends its priority to the holder.
 */
static inline bool softirq_expires(void)
{
	return !IS_ENABLED(CONFIG_PREEMPT_RT);
}

static inline bool spinlocks_sleep(void)
{
	return IS_ENABLED(CONFIG_PREEMPT_RT);
}

/* Without SMP, a spinlock only disables preemption and is always free: disable softirqs as well. */
static __always_inline bool twheel_trylock(struct tw_ctx *tw)
{
	if (!IS_ENABLED(CONFIG_SMP))
		local_bh_disable();
	if (likely(spin_trylock(&tw->lock)))
		return true;
	if (!IS_ENABLED(CONFIG_SMP))
		local_bh_enable();
	return false;
}

static __always_inline void twheel_lock(struct tw_ctx *tw) __acquires(&tw->lock)
{
	if (!IS_ENABLED(CONFIG_SMP))
		local_bh_disable();
	spin_lock(&tw->lock);
	if (unlikely(!llist_empty(&tw->inbox)))
		twheel_inbox_empty(tw);
	twheel_syncpoint(SYNC_LOCKED);
}

/*
 * A thread that releases the lock empties the inbox and wakes waiters after that.  It is not
 * preempted in between (G2): if it is of SCHED_IDLE, it may get a processor again only after a long
 * time, and others would wait for it.  With PREEMPT_RT, a wake-up may sleep, so preemption stays
 * on; and nothing is in the inbox, see arm_queue().
 */
static __always_inline void unlock_begin(void)
{
	if (!spinlocks_sleep())
		preempt_disable();
}

static __always_inline void unlock_end(void)
{
	if (!spinlocks_sleep())
		preempt_enable();
}

static __always_inline void unlock_and_recheck(struct tw_ctx *tw) __releases(&tw->lock)
{
	spin_unlock(&tw->lock);
	if (!IS_ENABLED(CONFIG_SMP))
		local_bh_enable();
	twheel_syncpoint(SYNC_UNLOCKED);
	/*
	 * Pairs with llist_add_batch() in arm_queue(): an ARM adds to the inbox and then tries the
	 * lock; here the lock is released, and then the inbox is read.  So either the ARM gets the
	 * lock, or its timeouts are found here.  Test: litmus inbox
	 */
	smp_mb();
	if (unlikely(!llist_empty(&tw->inbox)))
		twheel_unlock_inbox(tw);
}

/* Release the lock, and leave it to a later twheel_unlock() to wake waiters. */
static __always_inline void twheel_unlock_quietly(struct tw_ctx *tw) __releases(&tw->lock)
{
	unlock_begin();
	unlock_and_recheck(tw);
	unlock_end();
}

/* Release the lock, and wake readers and pollers if events were added. */
static __always_inline void twheel_unlock(struct tw_ctx *tw) __releases(&tw->lock)
{
	u32 nr = tw->events.nr_to_wake;

	tw->events.nr_to_wake = 0;
	unlock_begin();
	unlock_and_recheck(tw);
	if (unlikely(nr))
		twheel_wake_for_events(tw, nr);
	unlock_end();
}

/*
 * Put a PENDING timeout that is in no list to where its deadline says.  @passed_ns is what
 * passed_ns() returned.  Returns when it is due; NEVER_NS if no alarm is needed for it.
 */
static __always_inline u64 timeout_pend(struct tw_ctx *tw, struct twheel_timeout *t, u64 passed_ns)
	__must_hold(&tw->lock)
{
	u64 due_ns = t->deadline_ns;

	/*
	 * Slow path: the deadline has passed or never comes, or the timeout has a period or slack.
	 */
	if (unlikely(due_ns <= passed_ns || due_ns >= tw->clock.never_ns))
		return twheel_pend_slow(tw, t, passed_ns);
	twheel_wheel_insert(&tw->wheel, &t->link, due_ns);
	return due_ns;
}

#endif /* _TWHEEL_ENGINE_LOCK_H */
