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

/* What twheel_arena_shrink() is doing, in this order. */
enum shrink_phase {
	SHRINK_NOTHING,
	SHRINK_PICKS,
	SHRINK_SIFTS,
	SHRINK_FREES,
	SHRINK_SETTLES,
};

/**
 * struct shrink_state - how far giving back pages of places has come
 * @phase: enum shrink_phase
 * @in_vain: a page that was free in the beginning was not in the end
 * @removed: some pages were taken out
 * @page: number of the page that is looked at next
 * @nr_excess: pages that may still be picked
 * @nr_picked: pages that are picked, and not all of whose places were found
 * @nr_left: places that may still be sifted
 * @freeing: a place of each page all of whose places were found, linked by their
 *	user_data
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
 * @wanted: @work is on its way, or memory is being given back; guarded by
 *	&twheel_wake.lock, also read without it
 * @work: begins to give memory back, after a while
 * @below: free pages are not looked for until &twheel_arena.live is below; set by the
 *	kthread when it begins to look, and under &twheel_arena.mutex when a page comes
 * @running: places may be away from the free list; read by who needs one
 * @due: memory is to be given back.  This and the next are the kthread's alone.
 * @step: for twheel_arena_shrink()
 */
struct twheel_shrink {
	bool wanted;
	struct kthread_delayed_work work;
	u32 below;
	bool running;
	bool due;
	struct shrink_state step;
};

/* Places and room that nobody needs; too much of it is to be given back. */
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
