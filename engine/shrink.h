/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Giving memory back after a burst
 */
#ifndef _TWHEEL_ENGINE_SHRINK_H
#define _TWHEEL_ENGINE_SHRINK_H

#include <linux/atomic.h>
#include <linux/kthread.h>
#include <linux/types.h>

#include "arena.h"
#include "limits.h"
#include "room.h"

struct budget;
struct twheel;
struct twheel_timeout;

/* The phases of twheel_arena_shrink(), in this order; shrink.c explains them. */
enum shrink_phase {
	SHRINK_NOTHING,		/* nothing is going on */
	SHRINK_PICKS,		/* choose pages whose places are all free */
	SHRINK_SIFTS,		/* keep their places off the free list */
	SHRINK_FREES,		/* free the pages whose places were all found */
	SHRINK_SETTLES,		/* release the places of the other pages */
};

/**
 * struct shrink_state - how far twheel_arena_shrink() has come; the kthread's alone
 * @phase: enum shrink_phase
 * @in_vain: a page was picked and could not be freed, because some of its places were
 *	taken
 * @removed: at least one page was removed
 * @page: number of the page to look at next
 * @nr_excess: pages that may still be picked
 * @nr_picked: pages that are picked, and whose places were not all found yet
 * @nr_left: places that may still be sifted, so that sifting ends though places come back
 * @freeing: list of the pages whose places were all found: one place of each, linked by
 *	its user_data
 */
struct shrink_state {
	enum shrink_phase phase;
	bool in_vain;
	bool removed;
	u32 page;
	u32 nr_excess;
	u32 nr_picked;
	u64 nr_left;
	struct twheel_timeout *freeing;
};

/**
 * struct twheel_shrink - memory that is given back
 * @wanted: @work was queued, or memory is being given back; written under
 *	&twheel_wake.lock when it is set and by the kthread when it is cleared, read
 *	without a lock
 * @work: begins to give memory back after a delay; queued under &twheel_wake.lock
 * @below: pages are not looked for while &twheel_arena.live is not below this; written by
 *	the kthread when it begins to look and when it ends, and under
 *	&twheel_arena.mutex when a page is added
 * @running: twheel_arena_shrink() may hold places back; written by the kthread, read by
 *	callers that lack a place
 * @due: memory is to be given back; written by the kthread itself, never by a waiter that
 *	stands in for it, which reads it
 * @step: the state of twheel_arena_shrink(); the kthread's alone
 */
struct twheel_shrink {
	bool wanted;
	struct kthread_delayed_work work;
	u32 below;
	bool running;
	bool due;
	struct shrink_state step;
};

/*
 * Return whether so many places or so much room are unused that some are to be given
 * back, and the kthread has not been asked to do so yet.
 */
static inline bool memory_is_wasted(const struct twheel_shrink *shrink,
				    const struct twheel_arena *arena,
				    const struct twheel_room *room)
{
	u64 live = atomic_read(&arena->live);

	if (READ_ONCE(shrink->wanted))
		return false;
	return (live < READ_ONCE(shrink->below) &&
		arena_size(arena) > 2 * live + FREE_SLACK) ||
	       READ_ONCE(room->provided) > 2 * live + ROOM_SLACK;
}

void twheel_shrink_request(struct twheel *tw);
bool twheel_arena_shrink(struct twheel *tw, struct budget *budget);
void twheel_shrink_init(struct twheel_shrink *shrink);

#endif /* _TWHEEL_ENGINE_SHRINK_H */
