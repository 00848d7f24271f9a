// SPDX-License-Identifier: GPL-2.0
/*
 * ARM in a keyed wheel: re-arm the timeout that has the key, or make one
 *
 * All of it is one step for each entry, under the lock: the key is looked up, the user is told what
 * is going to be done, and that is done.  So no other thread can come between (G3).
 *
 * Locks: those of rearm.c; places.lock under twheel.lock, to take a place.
 */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/spinlock.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/uaccess.h>

#include "access.h"
#include "control.h"
#include "engine.h"
#include "keys.h"
#include "places.h"
#include "rearm.h"
#include "submit.h"
#include "time.h"
#include "timeout.h"
#include "trace.h"
#include "twheel.h"
#include "words.h"

/* Give back a place that a key was taken for, or was about to be. */
static void place_undo(struct twheel *tw, struct twheel_timeout *t, struct rearming *rearming)
	__must_hold(&tw->lock)
{
	spin_lock(&tw->places.lock);
	rearming->nr_before = max(rearming->nr_before, tw->places.nr_taken);
	places_count_free(&tw->places, 1);
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
		       struct rearming *rearming, struct twheel_timeout **place)
	__must_hold(&tw->lock)
{
	struct twheel_timeout *before = *place, *t = place_take(tw, before);
	int err = 0;

	if (IS_ERR(t))
		return t == ERR_PTR(-ENOMEM) ? rearm_needs(rearming, NEEDS_PAGE, 0) : PTR_ERR(t);
	if (life_is_odd(arm) && !READ_ONCE(timeout_page(t)->extra))
		err = rearm_needs(rearming, NEEDS_EXTRA, timeout_index(t));
	else if (t != before)
		err = twheel_key_take(tw, t, arm->user_data);
	if (err) {
		place_undo(tw, t, rearming);
		return err;
	}
	*place = t;
	return TWHEEL_CREATED;
}

/*
 * Find what is to be done for an entry, and take what it needs: enum twheel_verdict, or an errno.
 */
static int upsert_look(struct twheel *tw, struct twheel_arm *arm, struct rearming *rearming,
		       struct twheel_timeout **t)
	__must_hold(&tw->lock)
{
	int err = life_check(arm, ARM_IF | ARM_ONLY, tw->clock.settable);

	arm->was_deadline_ns = 0;
	if (err)
		return err;
	*t = twheel_key_place(tw, arm->user_data);
	if (!*t || !timeout_is_live(*t))
		return arm->flags & TWHEEL_ARM_IF_PRESENT ? -ENOENT :
		       upsert_take(tw, arm, rearming, t);
	if (arm->flags & TWHEEL_ARM_IF_ABSENT)
		return -EEXIST;
	return twheel_rearm_verdict(tw, arm, *t, rearming);
}

/* Do an entry as upsert_look() has said. */
static void upsert_do(struct twheel *tw, struct twheel_timeout *t, const struct twheel_arm *arm,
		      int result, struct rearming *rearming)
	__must_hold(&tw->lock)
{
	rearming->nr_ok++;
	if (result != TWHEEL_CREATED) {
		twheel_rearm_do(tw, t, arm, rearming);
		return;
	}
	life_begin(&tw->clock, t, arm, rearming->now_ns);
	t->user_data = arm->user_data;
	if (words_are_there(&tw->words))
		word_begin(&tw->words, t, timeout_known_ns(t));
	timeout_begin(t);
	trace_twheel_arm(tw, t);
	tw->events.armed++;
	rearming->first_ns = min(rearming->first_ns,
				 timeout_pend(tw, t, passed_ns(tw, rearming->now_ns)));
}

static bool upsert_tell(struct twheel_arm __user *user, u64 id, int result, u64 was_deadline_ns)
{
	bool told;

	if (!access_open_locked(user, sizeof(*user)))
		return false;
	told = access_put(id, &user->id) &&
	       access_put(was_deadline_ns, &user->was_deadline_ns) &&
	       access_tell(result, &user->result);
	access_close_locked();
	return told;
}

/* Tell what is done for an entry, and do it: a rearm_entry_fn. */
static bool upsert_entry(struct twheel *tw, struct twheel_arm *arm, struct twheel_arm __user *user,
			 struct rearming *rearming)
	__must_hold(&tw->lock)
{
	struct twheel_timeout *t = NULL;
	int result = upsert_look(tw, arm, rearming, &t);
	bool told;

	rearming->result = result;
	if (rearming->needs)
		return false;
	told = !user || upsert_tell(user, result > 0 ? timeout_id(t) : 0, result,
				    result > 0 ? arm->was_deadline_ns : 0);
	if (told && result > 0) {
		upsert_do(tw, t, arm, result, rearming);
	} else if (result == TWHEEL_CREATED) {
		/* G8: the user may have been told the id. */
		place_undo(tw, t, rearming);
	} else if (told && result == -EAGAIN) {
		twheel_place_refused(tw);
	}
	return told;
}

/* Do entries: a rearm_fill_fn. */
static unsigned int upsert_fill(struct twheel *tw, struct twheel_arm *arm,
				struct twheel_arm __user *user, unsigned int nr,
				struct rearming *rearming)
	__must_hold(&tw->lock)
{
	u32 stride = rearming->call->stride;
	unsigned int i;

	rearming->now_ns = call_now_ns(tw, rearming->call);
	for (i = 0; i < nr; i++) {
		if (!upsert_entry(tw, arm + i, access_at(user, i, stride), rearming))
			break;
		rearming->refused = 0;
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
 * Return: as rearm_batch().
 */
int twheel_upsert_step(struct twheel *tw, struct twheel_arm __user *user, unsigned int nr,
		       struct twheel_call *call)
{
	return rearm_batch(tw, user, nr, call, upsert_fill);
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
	return twheel_rearm_alone(tw, arm, true, nowait, upsert_entry);
}
