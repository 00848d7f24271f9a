// SPDX-License-Identifier: GPL-2.0
/*
 * REARM: tell the user the verdict on a timeout, and begin a new life for it
 *
 * Both are one step for each entry, under the lock: an entry that cannot be told is not done, and
 * nothing changes in between (G3).  A fault is served without the lock, by the caller; and if an
 * entry needs memory, the lock is left, and the entry is tried again.  ARM in a keyed wheel is done
 * by the same batches (upsert.c).
 *
 * G7 cost does not grow: a plain timeout that moves to later only gets another deadline.  The wheel
 * puts it where it belongs when its slot comes up.
 *
 * Locks: twheel.lock, for a batch.  places.mutex to provide for periods, under no other lock.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/uaccess.h>

#include "access.h"
#include "control.h"
#include "engine.h"
#include "expire.h"
#include "keys.h"
#include "places.h"
#include "rearm.h"
#include "submit.h"
#include "time.h"
#include "timeout.h"
#include "trace.h"
#include "twheel.h"
#include "twheel_wheel.h"
#include "words.h"

/*
 * The deadline that ARM and REARM compare with, and that ARM in a keyed wheel tells: the
 * one in force, or the latest one that has expired where the event is unread.
 */
static u64 rearm_was_deadline_ns(struct twheel *tw, const struct twheel_timeout *t)
	__must_hold(&tw->lock)
{
	u64 deadline_ns = timeout_deadline_ns(&tw->words, t);
	u64 nr = twheel_periods_unread(&tw->clock, t);

	if (nr)
		deadline_ns += nr * timeout_extra(t)->interval_ns;
	return min(deadline_ns, TWHEEL_TIME_NEVER);
}

/**
 * twheel_rearm_verdict() - find the outcome of re-arming a timeout, before that is done
 * @tw: the wheel
 * @arm: a well-formed entry; out: was_deadline_ns
 * @t: the timeout, which is live
 * @rearming: the batch
 *
 * Context: under &twheel.lock.
 * Return: TWHEEL_WAS_*, or -ERANGE, or what rearm_needs() returns.
 */
int twheel_rearm_verdict(struct twheel *tw, struct twheel_arm *arm, struct twheel_timeout *t,
			 struct rearming *rearming)
	__must_hold(&tw->lock)
{
	u64 deadline_ns = life_deadline_ns(arm->expires_ns, arm->flags, rearming->now_ns);

	if (life_is_odd(arm) && !READ_ONCE(timeout_page(t)->extra))
		return rearm_needs(rearming, NEEDS_EXTRA, timeout_index(t));
	arm->was_deadline_ns = rearm_was_deadline_ns(tw, t);
	if (arm->flags & TWHEEL_ARM_ONLY_LATER && deadline_ns <= arm->was_deadline_ns)
		return -ERANGE;
	if (arm->flags & TWHEEL_ARM_ONLY_EARLIER && deadline_ns >= arm->was_deadline_ns)
		return -ERANGE;
	return timeout_is_unread(t) ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING;
}

/**
 * twheel_rearm_do() - begin a new life for a timeout
 * @tw: the wheel
 * @t: the timeout, which is live
 * @arm: the entry, on which twheel_rearm_verdict() had a verdict
 * @rearming: the batch
 *
 * An event that is unread is revoked; periods that have passed unread are counted first.
 *
 * Context: under &twheel.lock.
 */
void twheel_rearm_do(struct twheel *tw, struct twheel_timeout *t, const struct twheel_arm *arm,
		     struct rearming *rearming)
	__must_hold(&tw->lock)
{
	bool was_unread = timeout_is_unread(t);
	u64 now_ns = rearming->now_ns;

	if (was_unread) {
		twheel_periods_settle(tw, t, twheel_periods_unread(&tw->clock, t));
		event_del(&tw->events, t);
	} else {
		twheel_link_del(&t->link);
	}
	timeout_begin_again(t);
	life_begin(&tw->clock, t, arm, now_ns);
	trace_twheel_move(tw, t, arm->was_deadline_ns, was_unread);
	if (words_are_there(&tw->words))
		word_begin(&tw->words, t, timeout_known_ns(t));
	tw->events.rearmed++;
	rearming->first_ns = min(rearming->first_ns, timeout_pend(tw, t, passed_ns(tw, now_ns)));
}

/* Find the timeout of an entry, and the verdict on it, as above or another errno. */
static int rearm_look(struct twheel *tw, struct twheel_arm *arm, struct rearming *rearming,
		      struct twheel_timeout **t)
	__must_hold(&tw->lock)
{
	int err = life_check(arm, ARM_ONLY, tw->clock.settable);

	if (err)
		return err;
	*t = rearming->call->by_key ? twheel_key_find(tw, arm->id) :
				      timeout_by_id(&tw->places, arm->id);
	return *t ? twheel_rearm_verdict(tw, arm, *t, rearming) : -ENOENT;
}

/* Tell the verdict on an entry of any kind, and do it: a rearm_entry_fn. */
static bool rearm_any(struct twheel *tw, struct twheel_arm *arm, struct twheel_arm __user *user,
		      struct rearming *rearming)
	__must_hold(&tw->lock)
{
	struct twheel_timeout *t = NULL;
	int result = rearm_look(tw, arm, rearming, &t);

	rearming->result = result;
	if (rearming->needs || (user && !access_tell_locked(result, &user->result)))
		return false;
	if (result > 0) {
		twheel_rearm_do(tw, t, arm, rearming);
		rearming->nr_ok++;
	}
	return true;
}

/* Whether no entry is done in rearm_run(). */
static bool rearm_is_any(const struct twheel_call *call)
{
	return call->by_key || trace_twheel_move_enabled();
}

/*
 * Look at the clock.  A plain deadline from then on is to come, and can be done in rearm_run(); in
 * a wheel that has not started, none.
 */
static noinline u64 rearm_from_ns(struct twheel *tw, struct rearming *rearming)
	__must_hold(&tw->lock)
{
	if (unlikely(!control_is_started(&tw->control)))
		return NEVER_NS;
	rearming->now_ns = call_now_ns(tw, rearming->call);
	return rearm_is_any(rearming->call) ? NEVER_NS : passed_ns(tw, rearming->now_ns) + 1;
}

/*
 * Tell and re-arm timeouts, up to an entry that faults, or that is not a plain one whose deadline
 * is from @from_ns on, or whose timeout does not pend; returns how many.
 */
static __always_inline unsigned int rearm_run(struct twheel *tw, const struct twheel_arm *arm,
					      struct twheel_arm __user *user, unsigned int nr,
					      u64 from_ns, struct rearming *rearming)
	__must_hold(&tw->lock)
{
	u64 now_ns = rearming->now_ns, never_ns = tw->clock.never_ns, first_ns = NEVER_NS;
	bool words = words_are_there(&tw->words);
	u32 stride = rearming->call->stride;
	unsigned int i;

	/* All of them were copied in. */
	if (!access_open_locked(user, sizeof(*user)))
		return 0;
	for (i = 0; i < nr; i++, arm++, user = access_next(user, stride)) {
		u64 deadline_ns = life_plain_ns(&tw->clock, arm, now_ns);
		struct twheel_timeout *t;

		/* The deadline has to be to come, and to come at all. */
		if (unlikely(deadline_ns < from_ns || deadline_ns >= never_ns))
			break;
		t = place_at(&tw->places, id_index(arm->id));
		if (unlikely(!place_has_pending(t, arm->id) || timeout_is_odd(t)))
			break;
		if (unlikely(!access_tell(TWHEEL_WAS_PENDING, &user->result)))
			break;
		if (unlikely(words))
			word_begin(&tw->words, t, deadline_ns);
		if (deadline_ns < t->deadline_ns) {
			twheel_link_del(&t->link);
			twheel_wheel_insert(&tw->wheel, &t->link, deadline_ns);
			first_ns = min(first_ns, deadline_ns);
		}
		t->deadline_ns = deadline_ns;
	}
	access_close_locked();
	rearming->first_ns = min(rearming->first_ns, first_ns);
	rearming->nr_ok += i;
	tw->events.rearmed += i;
	return i;
}

/* Go on with a batch at an entry that is not a plain one, or is not certain to be to come. */
static noinline unsigned int rearm_go_on(struct twheel *tw, struct twheel_arm *arm,
					 struct twheel_arm __user *user, unsigned int nr,
					 u64 from_ns, struct rearming *rearming)
	__must_hold(&tw->lock)
{
	u32 stride = rearming->call->stride;
	unsigned int i = 0;

	if (!rearming->now_ns)
		from_ns = rearm_from_ns(tw, rearming);
	while (i < nr && rearm_any(tw, arm + i, access_at(user, i, stride), rearming)) {
		rearming->refused = 0;
		i++;
		if (from_ns != NEVER_NS)
			i += rearm_run(tw, arm + i, access_at(user, i, stride), nr - i, from_ns,
				       rearming);
	}
	return i;
}

/* Tell and re-arm timeouts, until one faults or needs memory; returns how many. */
static unsigned int rearm_fill(struct twheel *tw, struct twheel_arm *arm,
			       struct twheel_arm __user *user, unsigned int nr,
			       struct rearming *rearming)
	__must_hold(&tw->lock)
{
	u64 from_ns = certain_ns(tw);
	unsigned int i = 0;

	if (from_ns == NEVER_NS || !(arm->flags & TWHEEL_ARM_ABSOLUTE) ||
	    rearm_is_any(rearming->call))
		from_ns = rearm_from_ns(tw, rearming);
	if (likely(from_ns != NEVER_NS))
		i = rearm_run(tw, arm, user, nr, from_ns, rearming);
	if (unlikely(i < nr))
		i += rearm_go_on(tw, arm + i, access_at(user, i, rearming->call->stride), nr - i,
				 from_ns, rearming);
	return i;
}

/**
 * twheel_rearm_alone() - do an entry that the device has
 * @tw: the wheel
 * @arm: the entry
 * @by_key: its id is a key
 * @nowait: refuse with -EAGAIN what would have to sleep
 * @entry: does it
 *
 * Context: process; sleeps unless @nowait; no lock of the wheel may be held.
 * Return: 0, or an errno as in the result of an entry.
 */
int twheel_rearm_alone(struct twheel *tw, struct twheel_arm *arm, bool by_key, bool nowait,
		       rearm_entry_fn entry)
{
	struct twheel_call call = { .by_key = by_key };
	int err;

	do {
		struct rearming rearming = {
			.call		= &call,
			.now_ns		= call_now_ns(tw, &call),
			.first_ns	= NEVER_NS,
			.result		= -ESHUTDOWN,
		};

		twheel_lock(tw);
		if (!READ_ONCE(tw->control.draining)) {
			entry(tw, arm, NULL, &rearming);
			alarm_need(tw, rearming.first_ns, rearming.nr_ok);
		}
		rearm_unlock(tw, &rearming);
		if (!rearming.needs)
			return min(rearming.result, 0);
		err = rearm_provide(tw, &rearming, nowait);
	} while (!err);
	return err;
}

/**
 * twheel_rearm_step() - re-arm the timeouts of some entries
 * @tw: the wheel
 * @user: the entries, in the user's memory
 * @nr: how many, 1 to TWHEEL_BATCH
 * @call: the call
 *
 * Context: process; sleeps; no lock of the wheel may be held.
 * Return: as rearm_batch().
 */
int twheel_rearm_step(struct twheel *tw, void __user *user, unsigned int nr,
		      struct twheel_call *call)
{
	return rearm_batch(tw, user, nr, call, rearm_fill);
}

/**
 * twheel_rearm_one() - re-arm a timeout
 * @tw: the wheel
 * @arm: the entry
 * @by_key: its id is a key
 * @nowait: refuse with -EAGAIN what would have to sleep
 *
 * Context: process; sleeps unless @nowait; no lock of the wheel may be held.
 * Return: 0, or an errno as in the result of an entry.
 */
int twheel_rearm_one(struct twheel *tw, struct twheel_arm *arm, bool by_key, bool nowait)
{
	return twheel_rearm_alone(tw, arm, by_key, nowait, rearm_any);
}
