/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Report first, commit second: how calls bear a fault in the user's memory
 *
 * Writing a result to the user's memory may fault.  So REARM, CANCEL and read do a
 * batch in three steps:
 *
 *   1. look    find the timeouts and remember their states; change nothing
 *   2. report  write the results of step 3 to the user in advance; no lock is held
 *   3. commit  make each change that was reported, if the timeout is still as it was seen
 *
 * An entry that could not be reported is not committed: a bad pointer leaves nothing half
 * done, and an event that a reader did not get stays on the ready list (G4).  An entry
 * whose timeout has changed since step 1 is not committed either, and the caller begins
 * again with step 1 from there.  Step 3 finds that out by a compare-and-swap of the state
 * word, which has one winner (G3) and fails for any later generation (G8); for UNREAD
 * timeouts it compares the state under events.lock, without which no timeout becomes
 * UNREAD or stops being UNREAD.  ARM has nothing to look at: it prepares places, reports
 * their ids, and then publishes the timeouts.
 *
 * Between look and commit the caller may fault and sleep, so RCU cannot be held all the
 * way.  For REARM and CANCEL, look_begin() and look_is_good() tell whether the pointers
 * found in step 1 may still be used in step 3.  A read compares &twheel_events.changes
 * instead: a timeout on the ready list keeps its place.
 *
 * As long as a batch is as usual, all of that is one step for each of its entries, in ARM and
 * read as well, see tell.h.
 *
 * Locks: events.lock, for a moment and only if a timeout is REARMING.
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
#include "window.h"

/*
 * timeout_by_id() for callers that do not hold events.lock.  Such a caller may meet a
 * timeout in the state REARMING, which lasts only as long as another thread holds
 * events.lock to change the timeout's fields.  Taking that lock once waits until the
 * change is complete.
 *
 * The caller is in an RCU read-side section, and uses the result there or by
 * look_is_good().
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
 * Look and commit are two RCU read-side sections, and in between the user is told.  A
 * page of places might be freed in between, and with it a timeout that was found.
 *
 * The kthread frees a page in this order: page_remove() takes the page out of the table
 * and then counts it in nr_removed; only after that a grace period begins, at whose end
 * the page is freed.  look_begin() reads the count before the caller looks for any
 * timeout, so a page in which the caller finds one is counted later, if ever.  A commit
 * that does not see that count began before the grace period, which waits for its RCU
 * section.  So while the count reads the same, all pointers of the look are good until
 * that section ends.
 *
 * If the count has changed, the caller finds the places by index again.  By then a place
 * may be gone, or belong to another timeout; its state word tells.
 */
static inline void look_begin(struct twheel_arena *arena, struct twheel_look *look)
{
	/*
	 * Pairs with the release in page_remove(): pages counted by now are not found.
	 * Test: litmus page_freed_cancel, page_freed_rearm
	 */
	look->changes = smp_load_acquire(&arena->nr_removed);
	twheel_window(WINDOW_LOOK_BEGUN);
}

/*
 * Whether the timeouts found since look_begin() may be used; holds until
 * rcu_read_unlock().
 */
static inline bool look_is_good(struct twheel_arena *arena,
				const struct twheel_look *look)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "no grace period waits for the commit");
	return READ_ONCE(arena->nr_removed) == look->changes;
}

/* The result that REARM and CANCEL report for a timeout that they found in this state. */
static inline enum twheel_verdict state_verdict(u64 state)
{
	return state_is_unread(state) ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING;
}

#endif /* _TWHEEL_ENGINE_LOOK_H */
