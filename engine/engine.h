/* SPDX-License-Identifier: GPL-2.0 */
/*
 * struct twheel, an open wheel: the data of each part of the engine, side by side
 *
 * Locks: twheel.lock is declared here.  It is a spinlock that the softirq only tries to take, so
 * that all others need not disable softirqs.  It is held for a batch of entries at a time, and
 * taken and released by lock.h.  Each part declares its other locks in its header.
 */
#ifndef _TWHEEL_ENGINE_H
#define _TWHEEL_ENGINE_H

#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/llist.h>
#include <linux/lockdep.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "account.h"
#include "alarm.h"
#include "control.h"
#include "expire.h"
#include "keys.h"
#include "pages.h"
#include "places.h"
#include "time.h"
#include "twheel_wheel.h"
#include "words.h"

struct twheel_arm;
struct twheel_call;

/* A step looks at this many timeouts, under one hold of the wheel's lock. */
#define PASS_STEP	64

/**
 * struct twheel - an open wheel
 * @clock: the clock and the tick
 * @control: the configuration, and whether timeouts are accepted
 * @memory: the user who is charged for this wheel
 * @words: the refresh table
 * @places: the places of timeouts
 * @inbox: timeouts that ARM could not put into the wheel, because another thread had the lock;
 *	llist: added without a lock, emptied under @lock
 * @lock: guards all timeouts, and the members from @keys to @drain_index
 * @keys: the index of a keyed wheel
 * @wheel: the wheel
 * @events: the list of events, and the counters
 * @alarm: the hrtimer
 * @nr_ahead: so many timeouts of upper slots are to be moved down now
 * @ahead_ns: the tick for which that was made AHEAD_TICK
 * @drains: DRAIN wants all timeouts to become events, and some may be left
 * @drain_index: index of the place to look at next for that
 * @waiters: readers and pollers; guarded by its own lock
 * @turn: the wheel's turn with the kthread, see struct twheel_turn; written as @slots_memory
 * @slots_memory: memory of the wheel's slots; written under &twheel_control.mutex before
 *	&twheel_control.started is set, constant after that
 * @slots_size: size of @slots_memory in bytes; guarded as @slots_memory
 */
struct twheel {
	struct twheel_clockwork clock;
	struct twheel_control control;
	struct twheel_memory memory;
	struct twheel_words words;
	struct twheel_places places;
	struct llist_head inbox ____cacheline_aligned_in_smp;
	spinlock_t lock ____cacheline_aligned_in_smp;	/* all timeouts */
	struct twheel_keys keys;
	struct twheel_wheel wheel;
	struct twheel_events events;
	struct twheel_alarm alarm;
	u64 ahead_ns;
	u32 nr_ahead;
	bool drains;
	u32 drain_index;
	wait_queue_head_t waiters ____cacheline_aligned_in_smp;
	struct twheel_turn turn;
	void *slots_memory;
	size_t slots_size;
};

/* When a PENDING timeout with this deadline is due, by its slack; NEVER_NS if it never is. */
static inline u64 timeout_due_by_ns(struct twheel *tw, const struct twheel_timeout *t,
				    u64 deadline_ns)
	__must_hold(&tw->lock)
{
	if (timeout_is_odd(t))
		deadline_ns = slack_due_ns(&tw->clock, timeout_extra(t)->flags, deadline_ns);
	return deadline_ns < tw->clock.never_ns ? deadline_ns : NEVER_NS;
}

/* When a PENDING timeout is due, by its deadline in force. */
static inline u64 timeout_due_ns(struct twheel *tw, const struct twheel_timeout *t)
	__must_hold(&tw->lock)
{
	return timeout_due_by_ns(tw, t, timeout_deadline_ns(&tw->words, t));
}

/*
 * Take over the deadline in force before a PENDING timeout is put elsewhere: it has to come up by
 * the deadline that is known.  Returns when it is due by that.  The word is read once: a user may
 * store another deadline at any time.
 */
static inline u64 timeout_take_over(struct twheel *tw, struct twheel_timeout *t)
	__must_hold(&tw->lock)
{
	u64 deadline_ns = t->deadline_ns;

	/* A plain one, as in the loop of slots_empty_ahead(). */
	if (likely(deadline_ns < tw->clock.never_ns && !words_are_there(&tw->words)))
		return deadline_ns;
	deadline_ns = timeout_deadline_ns(&tw->words, t);
	t->deadline_ns = deadline_ns | (t->deadline_ns & DEADLINE_ODD);
	return timeout_due_by_ns(tw, t, deadline_ns);
}

/*
 * The time by which all deadlines have passed: the clock, which the caller has read as @now_ns,
 * or to where the wheel was turned since.
 */
static __always_inline u64 passed_ns(struct twheel *tw, u64 now_ns)
	__must_hold(&tw->lock)
{
	if (likely(now_ns >= tw->wheel.base_ns && tw->clock.steady))
		return now_ns;
	return twheel_clock_follow(tw, now_ns);
}

/* @nr timeouts were put into slots, the first of which is due at @first_ns. */
static __always_inline void alarm_need(struct twheel *tw, u64 first_ns, unsigned int nr)
	__must_hold(&tw->lock)
{
	tw->alarm.nr_new += nr;
	if (unlikely(first_ns < tw->alarm.at_ns ||
		     (tw->wheel.cascade_ns < tw->alarm.at_ns && tw->alarm.nr_new > ALARM_LOOKS)))
		twheel_alarm_need(tw, first_ns);
}

/* An ARM in a keyed wheel, see rearm.c. */
int twheel_upsert_step(struct twheel *tw, struct twheel_arm __user *user, unsigned int nr,
		       struct twheel_call *call);
int twheel_upsert_one(struct twheel *tw, struct twheel_arm *arm, bool nowait);

/* run.c */
bool twheel_run_turn(struct twheel_turn *turn, u64 end_ns);
void twheel_alarm_init(struct twheel *tw);

#endif /* _TWHEEL_ENGINE_H */
