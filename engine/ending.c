// SPDX-License-Identifier: GPL-2.0
/*
 * Finishing a batch of timeouts that have ended
 *
 * A call first ends timeouts, each by its state word, and collects in a struct ending the
 * work that is left.  twheel_ending_done() then does that work once for the whole batch.
 *
 * Locks: the caller holds none of the engine's locks, because pollers for EPOLLOUT are
 * woken here.  keys.lock is taken in a keyed wheel, and wake.lock when a shrink is due.
 */
#include <linux/atomic.h>
#include <linux/llist.h>
#include <linux/poll.h>

#include "arena.h"
#include "clock.h"
#include "ending.h"
#include "engine.h"
#include "keys.h"
#include "room.h"
#include "shrink.h"
#include "wake.h"
#include "window.h"

/**
 * twheel_live_give() - stop counting timeouts against max_pending
 * @tw: the wheel
 * @nr: how many
 *
 * Context: process or kthread; under none of the engine's locks.
 */
void twheel_live_give(struct twheel *tw, unsigned int nr)
{
	int live;

	if (!nr)
		return;
	live = atomic_sub_return(nr, &tw->arena.live);
	twheel_window(WINDOW_LIVE_GIVEN);
	/* A poller waits for EPOLLOUT only while the wheel is full. */
	if (live + nr >= tw->arena.max_pending)
		twheel_wake_waiters(&tw->wake, EPOLLOUT | EPOLLWRNORM, nr);
}

/**
 * twheel_ending_done() - finish a batch of timeouts that have ended
 * @tw: the wheel
 * @ending: the work that they have left
 *
 * The places and the room are given back before the timeouts stop counting: an ARM that
 * max_pending lets in then finds them.
 *
 * Context: process or kthread; under none of the engine's locks.
 */
void twheel_ending_done(struct twheel *tw, struct ending *ending)
{
	if (ending->places.first) {
		if (unlikely(tw->keys.used))
			twheel_keys_give(tw, ending->places.first);
		twheel_window(WINDOW_KEYS_GIVEN);
		llist_add_batch(ending->places.first, ending->places.last,
				&tw->arena.freed);
	}
	if (ending->nr_cancelled)
		atomic64_add(ending->nr_cancelled, &tw->arena.cancelled);
	room_give(&tw->room, ending->nr_room);
	twheel_live_give(tw, ending->nr_places);
	if (unlikely(memory_is_wasted(&tw->shrink, &tw->arena, &tw->room)))
		twheel_shrink_request(tw);
}
