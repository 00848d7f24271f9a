// SPDX-License-Identifier: GPL-2.0
/*
 * REARM
 *
 * A timeout that moves later keeps its entry in the wheel: the entry comes up early and is put
 * where the deadline then says.
 *
 * Locks: events.lock.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "arena.h"
#include "clock.h"
#include "control.h"
#include "engine.h"
#include "events.h"
#include "inbox.h"
#include "life.h"
#include "look.h"
#include "room.h"
#include "timeout.h"
#include "twheel.h"
#include "wake.h"
#include "words.h"

/*
 * Whether a timeout that is as @seen goes on with the entry that it has in the wheel
 * when it is re-armed: that comes up early, and is moved then.  The deadline may be
 * another life's; who acts on the answer finds out by the state.
 */
static inline bool entry_is_kept(const struct twheel_timeout *t, u64 seen,
				 const struct life *life)
{
	return state_is_armed(seen) && !state_is_overdue(life->flags) &&
	       life->deadline_ns >= READ_ONCE(t->deadline_ns);
}

/*
 * Whether re-arming takes room in the wheel: what moves earlier leaves a stale entry
 * there.  One that is in the inbox has room, as has a periodic one that is UNREAD.
 */
static inline bool rearm_needs_room(const struct twheel_timeout *t, u64 seen,
				    const struct life *life)
{
	return !entry_is_kept(t, seen, life) && !state_is_queued(seen) &&
	       !state_keeps_room(seen);
}

static noinline bool rearm_is_needy(const struct twheel_timeout *t, u64 seen,
				    const struct twheel_arm *arm, u64 now_ns)
{
	struct life life = life_once(arm, now_ns);

	return rearm_needs_room(t, seen, &life);
}

/* A bit for each entry of a batch. */
static_assert(TWHEEL_BATCH <= 32);

/* Room for those that need it; the last of these go without where there is less. */
static noinline void rearm_take_room(struct twheel *tw, struct twheel_arm *arm,
				     struct twheel_rearming *rearming, u32 needy)
{
	unsigned int nr_needy = hweight32(needy), left;
	int err = twheel_room_take_reclaiming(tw, nr_needy);

	if (likely(!err)) {
		rearming->nr_room = nr_needy;
		return;
	}
	/* There may be a little, which is not enough for all. */
	while (rearming->nr_room < nr_needy && !twheel_room_take(tw, 1))
		rearming->nr_room++;
	left = rearming->nr_room;
	for (; needy; needy &= needy - 1) {
		if (left)
			left--;
		else
			arm[__ffs(needy)].result = err;
	}
}

/**
 * twheel_rearm_prepare() - what re-arming would say
 * @tw: the wheel
 * @arm: the batch; out: result
 * @rearming: out: for twheel_rearm_commit(), which has to follow
 * @nr: how many, up to TWHEEL_BATCH
 *
 * Context: process; sleeps.
 * Return: 0, or -ESHUTDOWN when the wheel has been drained.
 */
int twheel_rearm_prepare(struct twheel *tw, struct twheel_arm *arm,
			 struct twheel_rearming *rearming, unsigned int nr)
{
	struct twheel_look *look = &rearming->look;
	bool scarce = false;
	unsigned int i;
	u32 needy = 0;

	rearming->nr_room = 0;
	if (READ_ONCE(tw->control.draining))
		return -ESHUTDOWN;
	/*
	 * Most of them need no room; but to take it for all of them is cheaper than
	 * to find out for each, unless memory is short.
	 */
	if (likely(control_is_started(&tw->control))) {
		scarce = !room_take_at_hand(&tw->room, nr) &&
			 (READ_ONCE(tw->room.short_of) || twheel_room_take(tw, nr));
		if (likely(!scarce))
			rearming->nr_room = nr;
	}
	rearming->now_ns = twheel_now(&tw->clock);
	rcu_read_lock();
	look_begin(&tw->arena, look);
	for (i = 0; i < nr; i++) {
		int refused = life_check(&arm[i]);
		struct twheel_timeout *t;

		if (unlikely(refused)) {
			arm[i].result = refused;
			continue;
		}
		t = timeout_look(tw, arm[i].id, &look->state[i]);
		look->timeout[i] = t;
		if (unlikely(!t)) {
			arm[i].result = -ENOENT;
			continue;
		}
		if (unlikely(arm[i].interval_ns)) {
			/* It was found before: it is of that page, or gone. */
			rcu_read_unlock();
			refused = twheel_periodic_provide(tw, id_index(arm[i].id));
			rcu_read_lock();
		}
		arm[i].result = refused ?: state_verdict(look->state[i]);
		if (unlikely(scarce) && !refused &&
		    rearm_is_needy(t, look->state[i], &arm[i], rearming->now_ns))
			needy |= BIT(i);
	}
	rcu_read_unlock();
	if (unlikely(needy))
		rearm_take_room(tw, arm, rearming, needy);
	return 0;
}

/*
 * Make a one-shot of a timeout that is as @seen, which waits in the wheel and is
 * due no later than @deadline_ns.  That is what nearly all are, and changes nothing
 * there: the entry is moved when it comes up, or when the kthread looks ahead.
 */
static inline bool timeout_defer(struct twheel *tw, struct twheel_timeout *t,
				 u64 seen, u64 deadline_ns)
	__must_hold(&tw->events.lock)
{
	if (!state_is_armed(seen) ||
	    deadline_ns < READ_ONCE(t->deadline_ns) ||
	    !state_change(t, seen, state_rearming(seen)))
		return false;
	word_begin(&tw->words, t, seen);
	WRITE_ONCE(t->deadline_ns, deadline_ns);
	atomic64_set_release(&t->state, state_deferred(seen, flags_once(false)));
	return true;
}

/* A new life, of any kind, for a timeout that is as @seen. */
static bool timeout_rearm(struct twheel *tw, struct twheel_timeout *t, u64 seen,
			  const struct life *life, bool *to_inbox)
	__must_hold(&tw->events.lock)
{
	bool stays = entry_is_kept(t, seen, life);

	lockdep_assert_held(&tw->events.lock);
	/* An UNREAD timeout changes under the lock only; others may race. */
	if (state_is_unread(seen)) {
		if (atomic64_read(&t->state) != seen)
			return false;
		twheel_event_take(tw, t, seen);
	} else if (!state_change(t, seen, state_rearming(seen))) {
		return false;
	}
	life_begin(&tw->words, t, seen, life);
	*to_inbox = !state_is_queued(seen) && !stays;
	atomic64_set_release(&t->state, stays ? state_deferred(seen, life->flags) :
						state_requeued(seen, life->flags));
	return true;
}

/**
 * struct requeue - what a batch that is re-armed leaves to be done
 * @chain: for the inbox
 * @due_ns: when the kthread has to look at it
 * @queued: something was QUEUED, and is where it was
 */
struct requeue {
	struct chain chain;
	u64 due_ns;
	bool queued;
};

/* Those that do not just move later. */
static noinline bool rearm_any(struct twheel *tw, const struct twheel_arm *arm,
			       struct twheel_timeout *t, u64 seen,
			       struct twheel_rearming *rearming,
			       struct requeue *requeue)
	__must_hold(&tw->events.lock)
{
	struct life life = life_of(&tw->clock, arm, rearming->now_ns);
	bool to_inbox;

	/* It kept its entry, until it was moved later: that can be seen by now. */
	if (!rearming->nr_room && rearm_needs_room(t, seen, &life))
		return false;
	if (!timeout_rearm(tw, t, seen, &life, &to_inbox))
		return false;
	if (state_is_queued(seen))
		requeue->queued = true;
	requeue->due_ns = min(requeue->due_ns, life_due_ns(&life));
	if (to_inbox) {
		chain_add(&requeue->chain, t);
		if (!state_keeps_room(seen))
			rearming->nr_room--;
	}
	return true;
}

/**
 * twheel_rearm_commit() - re-arm what was reported to the user
 * @tw: the wheel
 * @arm: the batch as twheel_rearm_prepare() left it
 * @rearming: likewise; used up
 * @nr: how many of them
 * @nr_ok: how many were re-armed is added to it
 *
 * Context: process.
 * Return: how many were done; when fewer than @nr, the next one is no longer as
 * it was seen and has to be prepared again, with those after it.  -ESHUTDOWN
 * when the wheel was drained meanwhile and nothing was done.
 */
int twheel_rearm_commit(struct twheel *tw, const struct twheel_arm *arm,
			struct twheel_rearming *rearming, unsigned int nr,
			unsigned int *nr_ok)
{
	struct requeue requeue = { .due_ns = WAKE_NEVER };
	u64 due_ns, now_ns = rearming->now_ns;
	struct twheel_look *look = &rearming->look;
	unsigned int i = 0, nr_rearmed = 0;
	int err = 0;

	/* Pairs with synchronize_rcu() in twheel_drain(). */
	rcu_read_lock();
	if (READ_ONCE(tw->control.draining)) {
		err = -ESHUTDOWN;
		goto unlock;
	}
	spin_lock(&tw->events.lock);
	if (unlikely(!look_is_good(&tw->arena, look)))
		for (i = 0; i < nr; i++)
			look->timeout[i] = timeout_at(&tw->arena, id_index(arm[i].id));
	for (i = 0; i < nr; i++) {
		struct twheel_timeout *t = look->timeout[i];
		u64 deadline_ns, seen = look->state[i];

		if (arm[i].result < 0)
			continue;
		if (unlikely(!t))
			break;
		deadline_ns = arm_deadline_ns(&arm[i], now_ns);
		if (likely(!arm[i].interval_ns && deadline_ns > now_ns &&
			   timeout_defer(tw, t, seen, deadline_ns)) ||
		    rearm_any(tw, &arm[i], t, seen, rearming, &requeue))
			nr_rearmed++;
		else
			break;
	}
	tw->events.rearmed += nr_rearmed;
	due_ns = inbox_add(&tw->inbox, &requeue.chain, requeue.due_ns);
	spin_unlock(&tw->events.lock);
	/* Pairs with the look at it in twheel_arm_commit(). */
	if (requeue.queued)
		atomic_inc_return(&tw->inbox.nr_requeued);
	if (wake_is_too_late(&tw->wake, due_ns))
		twheel_wake_for(tw, due_ns);
	*nr_ok += nr_rearmed;
unlock:
	rcu_read_unlock();
	room_give(&tw->room, rearming->nr_room);
	return err ?: i;
}
