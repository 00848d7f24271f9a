// SPDX-License-Identifier: GPL-2.0
/*
 * REARM: tell the user the verdict on a timeout, and begin a new life for it
 *
 * Both are one step for each entry, under the lock: an entry that cannot be told is not done, and
 * nothing changes in between (G3).  A fault is served without the lock, by the caller.
 *
 * G7 cost does not grow: a plain timeout that moves to later only gets another deadline.  The wheel
 * puts it where it belongs when its slot comes up.
 *
 * Locks: twheel.lock, for a batch.  places.mutex to provide for periods, under no other lock.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/prefetch.h>
#include <linux/rcupdate.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/uaccess.h>

#include "access.h"
#include "clock.h"
#include "control.h"
#include "engine.h"
#include "events.h"
#include "keys.h"
#include "life.h"
#include "periods.h"
#include "places.h"
#include "rearm.h"
#include "submit.h"
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
 * @now_ns: the clock
 *
 * Context: under &twheel.lock.
 * Return: TWHEEL_WAS_*, or -ERANGE, or REARM_NEEDS_EXTRA.
 */
int twheel_rearm_verdict(struct twheel *tw, struct twheel_arm *arm, struct twheel_timeout *t,
			 u64 now_ns)
	__must_hold(&tw->lock)
{
	u64 deadline_ns = life_deadline_ns(arm->expires_ns, arm->flags, now_ns);

	if (life_is_odd(arm) && !READ_ONCE(timeout_page(t)->extra))
		return REARM_NEEDS_EXTRA;
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
 * @now_ns: the clock
 * @first_ns: goes down to the time at which the timeout is due
 *
 * An event that is unread is revoked; periods that have passed unread are counted first.
 *
 * Context: under &twheel.lock.
 */
void twheel_rearm_do(struct twheel *tw, struct twheel_timeout *t, const struct twheel_arm *arm,
		     u64 now_ns, u64 *first_ns)
	__must_hold(&tw->lock)
{
	bool was_unread = timeout_is_unread(t);

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
	*first_ns = min(*first_ns, timeout_pend(tw, t, passed_ns(tw, now_ns)));
}

/* Find the timeout of an entry of any kind, and the verdict on it, as above or another errno. */
static int rearm_look(struct twheel *tw, struct twheel_arm *arm, bool by_key, u64 now_ns,
		      struct twheel_timeout **t)
	__must_hold(&tw->lock)
{
	int err = life_check(arm, ARM_ONLY, tw->clock.settable);

	if (err)
		return err;
	*t = by_key ? twheel_key_find(tw, arm->id) : timeout_by_id(&tw->places, arm->id);
	return *t ? twheel_rearm_verdict(tw, arm, *t, now_ns) : -ENOENT;
}

/**
 * struct rearming - a batch that is being re-armed; a local variable
 * @now_ns: the clock when the call began, if it was looked at
 * @first_ns: when the first timeout is due that was put into a slot
 * @nr_ok: timeouts that were re-armed
 * @needs_extra: the timeout of the next entry needs a struct twheel_extra
 * @index: its index
 */
struct rearming {
	u64 now_ns;
	u64 first_ns;
	unsigned int nr_ok;
	bool needs_extra;
	u32 index;
};

/* Tell the verdict on an entry of any kind, and do it.  False if it faults, or needs memory. */
static noinline bool rearm_any(struct twheel *tw, struct twheel_arm __user *user,
			       const struct twheel_call *call, struct rearming *rearming)
	__must_hold(&tw->lock)
{
	struct twheel_timeout *t = NULL;
	struct twheel_arm arm = {};
	bool told = false;
	int result;

	pagefault_disable();
	if (__copy_from_user_inatomic(&arm, user, min_t(size_t, call->stride, sizeof(arm))))
		goto out;
	result = rearm_look(tw, &arm, call->by_key, rearming->now_ns, &t);
	if (result == REARM_NEEDS_EXTRA) {
		rearming->needs_extra = true;
		rearming->index = timeout_index(t);
		goto out;
	}
	told = !__put_user(result, &user->result);
	if (told && result > 0) {
		twheel_rearm_do(tw, t, &arm, rearming->now_ns, &rearming->first_ns);
		rearming->nr_ok++;
	}
out:
	pagefault_enable();
	return told;
}

/* Whether all entries are left to rearm_any(). */
static bool rearm_is_any(const struct twheel_call *call)
{
	return call->by_key || trace_twheel_move_enabled();
}

/*
 * Look at the clock.  A plain deadline from then on is to come, and can be done in rearm_fill(); in
 * a wheel that has not started, none.
 */
static noinline u64 rearm_from_ns(struct twheel *tw, struct twheel_call *call,
				  struct rearming *rearming)
	__must_hold(&tw->lock)
{
	if (unlikely(!control_is_started(&tw->control)))
		return NEVER_NS;
	rearming->now_ns = call_now_ns(tw, call);
	return rearm_is_any(call) ? NEVER_NS : passed_ns(tw, rearming->now_ns) + 1;
}

/*
 * Tell and re-arm timeouts, entry by entry, until one faults or needs memory; returns how many.
 * Plain ones that pend are done here, others by rearm_any().
 */
static __always_inline unsigned int rearm_fill(struct twheel *tw, struct twheel_arm __user *user,
					       unsigned int nr, struct twheel_call *call,
					       struct rearming *rearming)
	__must_hold(&tw->lock)
{
	u64 never_ns = tw->clock.never_ns, first_ns = NEVER_NS;
	u64 from_ns = rearm_is_any(call) ? NEVER_NS : certain_ns(tw);
	bool words = words_are_there(&tw->words);
	unsigned int i, nr_plain = 0;
	u32 stride = call->stride;

	if (!access_open_locked(user, nr * stride))
		return 0;
	for (i = 0; i < nr; i++, user = access_next(user, stride)) {
		u64 deadline_ns, interval_ns, id, flags_repeats, result_slack, oddities;
		struct twheel_timeout *t;
		bool relative;

		if (unlikely(!access_get(&id, &user->id) ||
			     !access_get(&deadline_ns, &user->expires_ns) ||
			     !access_get(&interval_ns, &user->interval_ns) ||
			     !access_get(&flags_repeats, pair_of(&user->flags)) ||
			     !access_get(&result_slack, pair_of(&user->result))))
			goto fault;
		oddities = life_oddities(flags_repeats, interval_ns, result_slack);
		relative = oddities == LIFE_RELATIVE && !tw->clock.settable;
		if (relative && rearming->now_ns) {
			deadline_ns = time_add(rearming->now_ns, deadline_ns);
			oddities = 0;
		}
		/* The deadline has to be to come, and to come at all. */
		if (unlikely(oddities || deadline_ns < from_ns || deadline_ns >= never_ns)) {
			access_close_locked();
			from_ns = rearm_from_ns(tw, call, rearming);
			if (relative && oddities) {
				deadline_ns = time_add(rearming->now_ns, deadline_ns);
				oddities = 0;
			}
			if (oddities || deadline_ns < from_ns || deadline_ns >= never_ns)
				goto odd;
			if (!access_open_locked(user, (nr - i) * stride))
				goto out;
		}
		t = place_at(&tw->places, id_index(id));
		if (unlikely(!place_has_pending(t, id) || timeout_is_odd(t))) {
			access_close_locked();
			goto odd;
		}
		if (unlikely(!access_tell(TWHEEL_WAS_PENDING, &user->result)))
			goto fault;
		if (unlikely(words))
			word_begin(&tw->words, t, deadline_ns);
		if (deadline_ns < t->deadline_ns) {
			twheel_link_del(&t->link);
			twheel_wheel_insert(&tw->wheel, &t->link, deadline_ns);
			first_ns = min(first_ns, deadline_ns);
		}
		t->deadline_ns = deadline_ns;
		nr_plain++;
		continue;
odd:
		from_ns = rearm_from_ns(tw, call, rearming);
		if (!rearm_any(tw, user, call, rearming))
			goto out;
		if (access_open_locked(access_next(user, stride), (nr - i - 1) * stride))
			continue;
		i++;
		goto out;
	}
fault:
	access_close_locked();
out:
	rearming->first_ns = min(rearming->first_ns, first_ns);
	rearming->nr_ok += nr_plain;
	tw->events.rearmed += nr_plain;
	return i;
}

/**
 * twheel_rearm_step() - re-arm the timeouts of some entries
 * @tw: the wheel
 * @user: the entries, in the user's memory
 * @nr: how many, 1 to TWHEEL_BATCH
 * @call: the call
 *
 * Context: process; sleeps; no lock of the wheel may be held.
 * Return: the number of entries that are done.  If it is none: -EFAULT, and the caller has a fault
 * of the first entry served, and tries again; -ESHUTDOWN, or -EINTR by a fatal signal.
 */
int twheel_rearm_step(struct twheel *tw, struct twheel_arm __user *user, unsigned int nr,
		      struct twheel_call *call)
{
	for (;;) {
		struct rearming rearming = {
			.first_ns	= NEVER_NS,
		};
		unsigned int i;
		int err;

		twheel_lock(tw);
		if (unlikely(READ_ONCE(tw->control.draining))) {
			twheel_unlock(tw);
			return -ESHUTDOWN;
		}
		i = rearm_fill(tw, user, nr, call, &rearming);
		alarm_need(tw, rearming.first_ns, rearming.nr_ok);
		twheel_unlock(tw);
		call->nr_ok += rearming.nr_ok;
		if (likely(i || !rearming.needs_extra))
			return i ?: -EFAULT;
		err = twheel_extra_provide(tw, rearming.index, false);
		if (err == -EINTR)
			return err;
		if (err)
			return put_user(err, &user->result) ? -EFAULT : 1;
	}
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
	u64 now_ns = twheel_now(&tw->clock), first_ns = NEVER_NS;

	for (;;) {
		struct twheel_timeout *t = NULL;
		int err, result = -ESHUTDOWN;
		u32 index = 0;

		twheel_lock(tw);
		if (!READ_ONCE(tw->control.draining))
			result = rearm_look(tw, arm, by_key, now_ns, &t);
		if (result > 0) {
			twheel_rearm_do(tw, t, arm, now_ns, &first_ns);
			alarm_need(tw, first_ns, 1);
		} else if (result == REARM_NEEDS_EXTRA) {
			index = timeout_index(t);
		}
		twheel_unlock(tw);
		if (result != REARM_NEEDS_EXTRA)
			return min(result, 0);
		err = twheel_extra_provide(tw, index, nowait);
		if (err)
			return err;
	}
}
