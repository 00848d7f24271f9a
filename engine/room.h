/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Room in the wheel: entries for which the wheel is sure to have chunks
 */
#ifndef _TWHEEL_ENGINE_ROOM_H
#define _TWHEEL_ENGINE_ROOM_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/types.h>

struct budget;
struct twheel;

/**
 * struct twheel_room - entries for which the wheel is sure to have chunks
 * @used: entries in the wheel, stale ones included, and entries promised; atomic.  It is
 *	a long because there may be twice as many entries as places, and twice as many
 *	places as timeouts, 2^30.
 * @provided: entries for which the chunks suffice; written under @mutex, read without it
 * @short_of: the last attempt to provide more room failed; written under @mutex, read
 *	without it
 * @starved: a caller waits for room, so that any stale entry is worth a sweep; set by any
 *	thread, cleared by the kthread
 * @mutex: serialises adding and removing pages of chunks.  It is a mutex because its
 *	holders allocate.  The kthread only tries it, so that no wheel waits for an
 *	allocation.
 * @nr_chunk_pages: pages of chunks that were allocated, in @gifts and in the wheel;
 *	@mutex
 * @gifts: pages of chunks on their way to the wheel; llist: any thread adds, the kthread
 *	takes
 */
struct twheel_room {
	atomic_long_t used ____cacheline_aligned_in_smp;
	long provided;
	bool short_of;
	bool starved;
	struct mutex mutex;	/* adding and removing chunks */
	u64 nr_chunk_pages;
	struct llist_head gifts;
};

/* Give back room for @nr entries.  Any thread may do that without a lock. */
static inline void room_give(struct twheel_room *room, unsigned int nr)
{
	if (nr)
		atomic_long_sub(nr, &room->used);
}

/*
 * Take room for @nr entries if the chunks suffice for it.  Return false if they do not.
 */
static inline bool room_take_at_hand(struct twheel_room *room, unsigned int nr)
{
	if (atomic_long_add_return(nr, &room->used) <= READ_ONCE(room->provided))
		return true;
	room_give(room, nr);
	return false;
}

void twheel_room_init(struct twheel_room *room);
int twheel_room_take(struct twheel *tw, unsigned int nr);
int twheel_room_take_reclaiming(struct twheel *tw, unsigned int nr);
void twheel_gifts_accept(struct twheel *tw);
bool twheel_sweep(struct twheel *tw, struct budget *budget);
bool twheel_room_shrink(struct twheel *tw);

#endif /* _TWHEEL_ENGINE_ROOM_H */
