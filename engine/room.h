/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Room in the wheel: entries that the wheel is sure to have chunks for
 */
#ifndef _TWHEEL_ENGINE_ROOM_H
#define _TWHEEL_ENGINE_ROOM_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/types.h>

#include "arena.h"

struct budget;
struct twheel;

/**
 * struct twheel_room - entries that the wheel is sure to have chunks for
 * @used: entries in the wheel and entries promised; atomic.  Stale ones included,
 *	which may be twice as many as 2^30 timeouts: no int holds it
 * @mutex: growing and shrinking the wheel's pool.  Allocates and charges; the kthread
 *	only tries it.
 * @provided: entries that the wheel's chunks suffice for; written under @mutex
 * @short_of: there was no memory for more the last time; likewise
 * @nr_chunk_pages: pages of chunks allocated for them; @mutex
 * @gifts: pages of chunks on their way to the wheel; llist
 * @starved: there was no memory for more: any stale entry is worth a sweep
 */
struct twheel_room {
	atomic_long_t used ____cacheline_aligned_in_smp;
	long provided;
	bool short_of;
	bool starved;
	struct mutex mutex;	/* growing and shrinking */
	u64 nr_chunk_pages;
	struct llist_head gifts;
};

static inline void room_give(struct twheel_room *room, unsigned int nr)
{
	if (nr)
		atomic_long_sub(nr, &room->used);
}

/* False where more chunks are needed for it. */
static inline bool room_take_at_hand(struct twheel_room *room, unsigned int nr)
{
	if (atomic_long_add_return(nr, &room->used) <= READ_ONCE(room->provided))
		return true;
	room_give(room, nr);
	return false;
}

/*
 * Entries beyond what pends are stale; too many of them call for a sweep.  It
 * looks at no more that live than it drops.
 */
static inline bool room_is_wasted(const struct twheel_room *room,
				  const struct twheel_arena *arena, unsigned int slack)
{
	s64 pending = atomic_read(&arena->live);

	return atomic_long_read(&room->used) > 2 * pending + slack;
}

void twheel_room_init(struct twheel_room *room);
int twheel_room_take(struct twheel *tw, unsigned int nr);
int twheel_room_take_reclaiming(struct twheel *tw, unsigned int nr);
void twheel_gifts_accept(struct twheel *tw);
bool twheel_sweep(struct twheel *tw, struct budget *budget);
bool twheel_room_shrink(struct twheel *tw);

#endif /* _TWHEEL_ENGINE_ROOM_H */
