/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Report first, commit second: what a call has seen of a timeout
 */
#ifndef _TWHEEL_ENGINE_LOOK_H
#define _TWHEEL_ENGINE_LOOK_H

#include <linux/atomic.h>
#include <linux/lockdep.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "arena.h"
#include "engine.h"
#include "timeout.h"
#include "twheel.h"

/*
 * As timeout_by_id(), for those who do not hold the lock: a timeout that is
 * just being re-armed is waited for.
 */
static inline struct twheel_timeout *timeout_look(struct twheel *tw, u64 id,
						  u64 *state)
{
	struct twheel_timeout *t;

	while ((t = timeout_by_id(&tw->arena, id, state)) &&
	       unlikely(state_is_rearming(*state))) {
		spin_lock(&tw->events.lock);
		spin_unlock(&tw->events.lock);
	}
	return t;
}

/*
 * What was looked at is committed when the user has been told, in another RCU
 * section.  A timeout that was found after look_begin() is still there in that
 * one, if no page was freed until then: whoever frees pages counts them first and
 * has RCU wait after that, so who does not see the count is waited for.
 */
static inline void look_begin(struct twheel_arena *arena, struct twheel_look *look)
{
	/* Pairs with the release in page_remove(): those pages are not found. */
	look->changes = smp_load_acquire(&arena->nr_removed);
}

static inline bool look_is_good(struct twheel_arena *arena,
				const struct twheel_look *look)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "nobody waits for us");
	return READ_ONCE(arena->nr_removed) == look->changes;
}

static inline enum twheel_verdict state_verdict(u64 state)
{
	return state_is_unread(state) ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING;
}

#endif /* _TWHEEL_ENGINE_LOOK_H */
