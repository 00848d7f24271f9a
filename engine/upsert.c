// SPDX-License-Identifier: GPL-2.0
/*
 * ARM in a keyed wheel: re-arm the timeout that has the key, or make one
 *
 * All of it is one step for each entry, under the lock: the key is looked up, the user is told what
 * is going to be done, and that is done.  So no other thread can come between (G3).  If there is no
 * page for a new place, or none for periods, the lock is left, and the entry is tried again.
 *
 * Locks: twheel.lock, for a batch; places.lock under it to take a place.  places.mutex to provide
 * memory, under no other lock.
 */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/spinlock.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/uaccess.h>

#include "access.h"
#include "clock.h"
#include "control.h"
#include "engine.h"
#include "keys.h"
#include "life.h"
#include "places.h"
#include "rearm.h"
#include "submit.h"
#include "timeout.h"
#include "trace.h"
#include "twheel.h"
#include "words.h"

/**
 * enum upsert_needs - what an entry needs before it can be tried again
 * @NEEDS_NOTHING: nothing
 * @NEEDS_PAGE: a page of places
 * @NEEDS_EXTRA: a struct twheel_extra for &upserting.index
 */
enum upsert_needs {
	NEEDS_NOTHING,
	NEEDS_PAGE,
	NEEDS_EXTRA,
};

/**
 * struct upserting - a batch that is done; a local variable
 * @now_ns: the clock when the call began
 * @first_ns: when the first timeout is due that was put into a slot
 * @nr_ok: entries that succeeded
 * @nr_before: places in use before one was given back; 0 if none was
 * @needs: what the next entry needs
 * @index: for what place
 */
struct upserting {
	u64 now_ns;
	u64 first_ns;
	unsigned int nr_ok;
	u32 nr_before;
	enum upsert_needs needs;
	u32 index;
};

/* Give back a place that a key was taken for, or was about to be. */
static void place_undo(struct twheel *tw, struct twheel_timeout *t, struct upserting *upserting)
	__must_hold(&tw->lock)
{
	spin_lock(&tw->places.lock);
	upserting->nr_before = max(upserting->nr_before, tw->places.nr_taken);
	place_free_keyed(&tw->places, t);
	spin_unlock(&tw->places.lock);
}

/* Take the place that a key had before, or if that is NULL, or has to go, any place. */
static struct twheel_timeout *place_take(struct twheel *tw, struct twheel_timeout *before)
	__must_hold(&tw->lock)
{
	if (before) {
		int err = twheel_place_take_again(tw, before);

		if (likely(!err))
			return before;
		if (err == -EAGAIN)
			return ERR_PTR(err);
		twheel_key_drop(tw, before);
	}
	return twheel_place_take_locked(tw);
}

/*
 * Take a place and its key for an entry whose key is absent: TWHEEL_CREATED, or an errno.  @place
 * is the place that the key had before, or NULL.
 */
static int upsert_take(struct twheel *tw, const struct twheel_arm *arm,
		       struct upserting *upserting, struct twheel_timeout **place)
	__must_hold(&tw->lock)
{
	struct twheel_timeout *before = *place, *t = place_take(tw, before);
	int err = 0;

	if (IS_ERR(t)) {
		if (t == ERR_PTR(-ENOMEM))
			upserting->needs = NEEDS_PAGE;
		else
			twheel_place_refused(tw, 1);
		return PTR_ERR(t);
	}
	if (life_is_odd(arm) && !READ_ONCE(timeout_page(t)->extra)) {
		upserting->needs = NEEDS_EXTRA;
		upserting->index = timeout_index(t);
		place_undo(tw, t, upserting);
		return -ENOMEM;
	}
	if (t != before)
		err = twheel_key_take(tw, t, arm->user_data);
	if (err) {
		place_undo(tw, t, upserting);
		return err;
	}
	*place = t;
	return TWHEEL_CREATED;
}

/*
 * Find what is to be done for an entry, and take what it needs: enum twheel_verdict, or an errno.
 */
static int upsert_look(struct twheel *tw, struct twheel_arm *arm, struct upserting *upserting,
		       struct twheel_timeout **t)
	__must_hold(&tw->lock)
{
	int result = life_check(arm, ARM_IF | ARM_ONLY, tw->clock.settable);

	arm->was_deadline_ns = 0;
	if (result)
		return result;
	*t = twheel_key_place(tw, arm->user_data);
	if (!*t || !timeout_is_live(*t))
		return arm->flags & TWHEEL_ARM_IF_PRESENT ? -ENOENT :
		       upsert_take(tw, arm, upserting, t);
	if (arm->flags & TWHEEL_ARM_IF_ABSENT)
		return -EEXIST;
	result = twheel_rearm_verdict(tw, arm, *t, upserting->now_ns);
	if (result == REARM_NEEDS_EXTRA) {
		upserting->needs = NEEDS_EXTRA;
		upserting->index = timeout_index(*t);
		return -ENOMEM;
	}
	return result;
}

/* Do an entry as upsert_look() has said. */
static void upsert_do(struct twheel *tw, struct twheel_timeout *t, const struct twheel_arm *arm,
		      int result, struct upserting *upserting)
	__must_hold(&tw->lock)
{
	upserting->nr_ok++;
	if (result != TWHEEL_CREATED) {
		twheel_rearm_do(tw, t, arm, upserting->now_ns, &upserting->first_ns);
		return;
	}
	life_begin(&tw->clock, t, arm, upserting->now_ns);
	t->user_data = arm->user_data;
	if (words_are_there(&tw->words))
		word_begin(&tw->words, t, timeout_known_ns(t));
	timeout_begin(t);
	trace_twheel_arm(tw, t);
	tw->events.armed++;
	upserting->first_ns = min(upserting->first_ns,
				  timeout_pend(tw, t, passed_ns(tw, upserting->now_ns)));
}

static bool upsert_tell(struct twheel_arm __user *user, u64 id, int result, u64 was_deadline_ns)
{
	if (!access_open_locked(user, sizeof(*user)))
		return false;
	if (unlikely(!access_put(id, &user->id) ||
		     !access_put(was_deadline_ns, &user->was_deadline_ns) ||
		     !access_tell(result, &user->result)))
		goto fault;
	access_close_locked();
	return true;
fault:
	access_close_locked();
	return false;
}

/* Tell that an entry is refused, under no lock; false if it faults. */
static bool upsert_refuse(struct twheel_arm __user *user, int err)
{
	return !put_user(0ULL, &user->id) && !put_user(0ULL, &user->was_deadline_ns) &&
	       !put_user(err, &user->result);
}

/* Tell and do an entry.  False if it faults, or needs memory. */
static bool upsert_entry(struct twheel *tw, struct twheel_arm __user *user, struct twheel_arm *arm,
			 struct upserting *upserting)
	__must_hold(&tw->lock)
{
	struct twheel_timeout *t = NULL;
	int result = upsert_look(tw, arm, upserting, &t);
	bool told;

	if (upserting->needs)
		return false;
	told = upsert_tell(user, result > 0 ? timeout_id(t) : 0, result,
			   result > 0 ? arm->was_deadline_ns : 0);
	if (told && result > 0) {
		upsert_do(tw, t, arm, result, upserting);
	} else if (result == TWHEEL_CREATED) {
		/* G8: the user may have been told the id. */
		place_undo(tw, t, upserting);
	}
	return told;
}

/* Release the lock.  A poller may have seen the wheel full while places were taken. */
static void upsert_unlock(struct twheel *tw, const struct upserting *upserting)
	__releases(&tw->lock)
{
	twheel_unlock(tw);
	if (unlikely(upserting->nr_before))
		twheel_places_freed(tw, upserting->nr_before);
}

/* Provide what an entry needs: 0 or an errno. */
static int upsert_provide(struct twheel *tw, const struct upserting *upserting, bool nowait)
{
	if (upserting->needs == NEEDS_EXTRA)
		return twheel_extra_provide(tw, upserting->index, nowait);
	return nowait ? -EAGAIN : twheel_places_provide(tw);
}

/* Copy entries in; returns how many. */
static unsigned int upsert_copy_in(struct twheel_arm *arm, struct twheel_arm __user *user,
				   u32 stride, unsigned int nr)
{
	size_t known = min_t(size_t, stride, sizeof(*arm));
	unsigned int i;

	if (likely(stride == sizeof(*arm)) && !copy_from_user(arm, user, nr * sizeof(*arm)))
		return nr;
	for (i = 0; i < nr; i++, user = access_next(user, stride)) {
		arm[i] = (struct twheel_arm){};
		if (copy_from_user(&arm[i], user, known))
			break;
	}
	return i;
}

/**
 * twheel_upsert_step() - do some entries of an ARM in a keyed wheel
 * @tw: the wheel, which has started, and is keyed
 * @user: the entries, in the user's memory
 * @nr: how many, 1 to TWHEEL_BATCH
 * @call: the call
 *
 * Context: process; sleeps; no lock of the wheel may be held.
 * Return: as twheel_rearm_step().
 */
int twheel_upsert_step(struct twheel *tw, struct twheel_arm __user *user, unsigned int nr,
		       struct twheel_call *call)
{
	struct twheel_arm arm[TWHEEL_BATCH] __uninitialized;
	struct twheel_arm __user *at;

	nr = upsert_copy_in(arm, user, call->stride, nr);
	if (!nr)
		return -EFAULT;
	for (;;) {
		struct upserting upserting = {
			.now_ns		= call_now_ns(tw, call),
			.first_ns	= NEVER_NS,
		};
		unsigned int i = 0;
		int err;

		twheel_lock(tw);
		if (unlikely(READ_ONCE(tw->control.draining))) {
			twheel_unlock(tw);
			return -ESHUTDOWN;
		}
		for (at = user; i < nr && upsert_entry(tw, at, &arm[i], &upserting); i++)
			at = access_next(at, call->stride);
		alarm_need(tw, upserting.first_ns, upserting.nr_ok);
		upsert_unlock(tw, &upserting);
		call->nr_ok += upserting.nr_ok;
		if (i || !upserting.needs)
			return i ?: -EFAULT;
		err = upsert_provide(tw, &upserting, false);
		if (err == -EINTR)
			return err;
		if (err)
			return upsert_refuse(user, err) ? 1 : -EFAULT;
	}
}

/**
 * twheel_upsert_one() - do an ARM in a keyed wheel
 * @tw: the wheel, which has started, and is keyed
 * @arm: the entry
 * @nowait: refuse with -EAGAIN what would have to sleep
 *
 * Context: process; sleeps unless @nowait; no lock of the wheel may be held.
 * Return: 0, or an errno as in the result of an entry.
 */
int twheel_upsert_one(struct twheel *tw, struct twheel_arm *arm, bool nowait)
{
	for (;;) {
		struct upserting upserting = {
			.now_ns		= twheel_now(&tw->clock),
			.first_ns	= NEVER_NS,
		};
		struct twheel_timeout *t = NULL;
		int err, result = -ESHUTDOWN;

		twheel_lock(tw);
		if (!READ_ONCE(tw->control.draining))
			result = upsert_look(tw, arm, &upserting, &t);
		if (result > 0) {
			upsert_do(tw, t, arm, result, &upserting);
			alarm_need(tw, upserting.first_ns, 1);
		}
		upsert_unlock(tw, &upserting);
		if (!upserting.needs)
			return min(result, 0);
		err = upsert_provide(tw, &upserting, nowait);
		if (err)
			return err;
	}
}
