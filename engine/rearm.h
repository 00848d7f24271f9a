/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A timeout begins a new life, by REARM or by ARM in a keyed wheel
 *
 * Locks: twheel.lock, for a batch.
 */
#ifndef _TWHEEL_ENGINE_REARM_H
#define _TWHEEL_ENGINE_REARM_H

#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/lockdep.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "access.h"
#include "control.h"
#include "engine.h"
#include "places.h"
#include "submit.h"
#include "time.h"
#include "twheel.h"

/**
 * enum rearm_needs - what an entry needs before it can be tried again
 * @NEEDS_NOTHING: nothing
 * @NEEDS_PAGE: a page of places
 * @NEEDS_EXTRA: a struct twheel_extra for the place of &rearming.index
 */
enum rearm_needs {
	NEEDS_NOTHING,
	NEEDS_PAGE,
	NEEDS_EXTRA,
};

/**
 * struct rearming - a batch that is done under the lock; a local variable
 * @call: the call
 * @now_ns: the clock when the call began; REARM looks at it only if it has to
 * @first_ns: when the first timeout is due that was put into a slot
 * @nr_ok: entries that succeeded
 * @nr_before: places in use before one was given back; 0 if none was
 * @result: of the entry that was tried last
 * @needs: what that entry needs
 * @index: for what place
 * @refused: why there is no memory for the first entry, an errno; 0 until that was asked for
 */
struct rearming {
	struct twheel_call *call;
	u64 now_ns;
	u64 first_ns;
	unsigned int nr_ok;
	u32 nr_before;
	int result;
	enum rearm_needs needs;
	u32 index;
	int refused;
};

/*
 * An entry needs memory.  Return an errno, which is told only if there is none: if not, the lock is
 * left, and the entry is tried again.
 */
static inline int rearm_needs(struct rearming *rearming, enum rearm_needs needs, u32 index)
{
	if (rearming->refused)
		return rearming->refused;
	rearming->needs = needs;
	rearming->index = index;
	return -ENOMEM;
}

/* The lock was left: provide that; 0, or an errno, -EAGAIN if that would sleep and is not to. */
static inline int rearm_provide(struct twheel *tw, const struct rearming *rearming, bool nowait)
{
	if (rearming->needs == NEEDS_EXTRA)
		return twheel_extra_provide(tw, rearming->index, nowait);
	return nowait ? -EAGAIN : twheel_places_provide(tw);
}

/*
 * Does an entry of any kind, and tells the result, unless @user is NULL.  False if it faults or
 * needs memory.
 */
typedef bool (*rearm_entry_fn)(struct twheel *tw, struct twheel_arm *arm,
			       struct twheel_arm __user *user, struct rearming *rearming);

int twheel_rearm_verdict(struct twheel *tw, struct twheel_arm *arm, struct twheel_timeout *t,
			 struct rearming *rearming)
	__must_hold(&tw->lock);
void twheel_rearm_do(struct twheel *tw, struct twheel_timeout *t, const struct twheel_arm *arm,
		     struct rearming *rearming)
	__must_hold(&tw->lock);
int twheel_rearm_alone(struct twheel *tw, struct twheel_arm *arm, bool by_key, bool nowait,
		       rearm_entry_fn entry);

/* An ARM in a keyed wheel, see upsert.c. */
int twheel_upsert_step(struct twheel *tw, struct twheel_arm __user *user, unsigned int nr,
		       struct twheel_call *call);
int twheel_upsert_one(struct twheel *tw, struct twheel_arm *arm, bool nowait);

/* Release the lock.  A poller may have seen the wheel full while places were taken. */
static __always_inline void rearm_unlock(struct twheel *tw, const struct rearming *rearming)
	__releases(&tw->lock)
{
	twheel_unlock(tw);
	if (unlikely(rearming->nr_before))
		twheel_places_freed(tw, rearming->nr_before);
}

/* Tells and does entries, until one faults or needs memory; returns how many. */
typedef unsigned int (*rearm_fill_fn)(struct twheel *tw, struct twheel_arm *arm,
				      struct twheel_arm __user *user, unsigned int nr,
				      struct rearming *rearming);

/*
 * Do up to @nr entries under the lock, by @fill.  Returns the number of entries that are done.  If
 * it is none: -EFAULT, and the caller has a fault of the first entry served, and tries again;
 * -ESHUTDOWN, or -EINTR by a fatal signal.
 */
static __always_inline int rearm_batch(struct twheel *tw, struct twheel_arm __user *user,
				       unsigned int nr, struct twheel_call *call,
				       rearm_fill_fn fill)
{
	struct twheel_arm arm[TWHEEL_BATCH] __uninitialized;
	int err = 0;

	nr = access_copy_in(arm, sizeof(arm[0]), user, call->stride, nr);
	if (unlikely(!nr))
		return -EFAULT;
	do {
		struct rearming rearming = {
			.call		= call,
			.first_ns	= NEVER_NS,
			.refused	= err,
		};
		unsigned int i;

		twheel_lock(tw);
		if (unlikely(READ_ONCE(tw->control.draining))) {
			twheel_unlock(tw);
			return -ESHUTDOWN;
		}
		i = fill(tw, arm, user, nr, &rearming);
		alarm_need(tw, rearming.first_ns, rearming.nr_ok);
		rearm_unlock(tw, &rearming);
		call->nr_ok += rearming.nr_ok;
		if (likely(i))
			return i;
		if (!rearming.needs)
			return -EFAULT;
		err = rearm_provide(tw, &rearming, false);
	} while (err != -EINTR);
	return err;
}

#endif /* _TWHEEL_ENGINE_REARM_H */
