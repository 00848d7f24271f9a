// SPDX-License-Identifier: GPL-2.0
/*
 * What a batch of timeouts that have ended leaves to be done
 *
 * Locks: none is held by the caller, since pollers that wait for EPOLLOUT are woken here.
 */
#include <linux/atomic.h>
#include <linux/llist.h>
#include <linux/poll.h>

#include "arena.h"
#include "clock.h"
#include "ending.h"
#include "engine.h"
#include "limits.h"
#include "room.h"
#include "shrink.h"
#include "wake.h"

/**
 * twheel_live_give() - count timeouts out
 * @tw: the wheel
 * @nr: how many
 *
 * Context: process or kthread; under none of the wheel's locks.
 */
void twheel_live_give(struct twheel *tw, unsigned int nr)
{
	int live;

	if (!nr)
		return;
	live = atomic_sub_return(nr, &tw->arena.live);
	if (live + nr >= tw->arena.max_pending)
		twheel_wake_waiters(&tw->wake, EPOLLOUT | EPOLLWRNORM, nr);
}

/**
 * twheel_ending_done() - finish a batch of timeouts that have ended
 * @tw: the wheel
 * @ending: what they leave to be done
 *
 * Context: process or kthread; under none of the wheel's locks.
 */
void twheel_ending_done(struct twheel *tw, struct ending *ending)
{
	if (ending->places.first)
		llist_add_batch(ending->places.first, ending->places.last,
				&tw->arena.freed);
	if (ending->nr_cancelled)
		atomic64_add(ending->nr_cancelled, &tw->arena.cancelled);
	room_give(&tw->room, ending->nr_room);
	twheel_live_give(tw, ending->nr_places);
	if (ending->nr_cancelled && room_is_wasted(&tw->room, &tw->arena, SWEEP_SLACK))
		twheel_wake_at(tw, WAKE_NOW);
	if (unlikely(memory_is_wasted(&tw->shrink, &tw->arena, &tw->room)))
		twheel_shrink_request(tw);
}
