/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A timeout begins a new life, by REARM or by ARM in a keyed wheel
 */
#ifndef _TWHEEL_ENGINE_REARM_H
#define _TWHEEL_ENGINE_REARM_H

#include <linux/errno.h>
#include <linux/lockdep.h>
#include <linux/types.h>

struct twheel;
struct twheel_arm;
struct twheel_call;
struct twheel_timeout;

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
int twheel_rearm_batch(struct twheel *tw, struct twheel_arm __user *user, unsigned int nr,
		       struct twheel_call *call, rearm_entry_fn entry);
int twheel_rearm_alone(struct twheel *tw, struct twheel_arm *arm, bool by_key, bool nowait,
		       rearm_entry_fn entry);

#endif /* _TWHEEL_ENGINE_REARM_H */
