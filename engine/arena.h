/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arena: the places of timeouts, found by index and by id
 */
#ifndef _TWHEEL_ENGINE_ARENA_H
#define _TWHEEL_ENGINE_ARENA_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/prefetch.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "limits.h"
#include "pages.h"
#include "timeout.h"
#include "twheel_wheel.h"
#include "window.h"

struct twheel;

/**
 * struct twheel_arena - the places of timeouts
 * @places: struct twheel_page by index / PLACES_PER_PAGE; guarded as struct twheel_pages
 *	says
 * @nr_removed: pages of places that were ever removed; written under @mutex with a
 *	release, read without it
 * @nr_leaving: batches of removed pages that RCU has not freed yet; atomic
 * @mutex: serialises adding and removing pages of places, of periodic fields, of words and
 *	of nodes.  It is a mutex because its holders allocate.  The kthread only tries it,
 *	so that no wheel waits for an allocation.
 * @nr_holes: numbers in @places without a page; written under @mutex, read without it
 * @first_hole: no number below it is without a page; @mutex
 * @first_gen: the generation with which the places of a new page begin, or a later one,
 *	so that no id of a removed page is given out again; @mutex
 * @nr_retired: places whose generations are used up; atomic
 * @max_pending: limit of @live; written under &twheel_control.mutex, constant once the
 *	wheel has started
 * @live: timeouts that count against @max_pending; atomic
 * @armed: timeouts that ARM has accepted; atomic
 * @cancelled: see struct twheel_info; atomic
 * @free_lock: serialises taking free places; adding them to @freed needs no lock
 * @free: chain of free places; @free_lock
 * @sifted: free places that twheel_arena_shrink() has looked at; used when there are no
 *	others; @free_lock
 * @freed: places that have become free; llist: added without a lock, taken under
 *	@free_lock
 */
struct twheel_arena {
	/*
	 * Each look-up of an id reads these.  They share no cache line with the members
	 * that each call writes.
	 */
	struct twheel_pages places ____cacheline_aligned_in_smp;
	unsigned long nr_removed;
	atomic_t nr_leaving;
	struct mutex mutex;	/* adding and removing pages */
	u32 nr_holes;
	u32 first_hole;
	u32 first_gen;
	atomic_t nr_retired;
	u32 max_pending;

	atomic_t live ____cacheline_aligned_in_smp;
	atomic64_t armed;
	atomic64_t cancelled;

	spinlock_t free_lock ____cacheline_aligned_in_smp;
	struct llist_node *free;
	struct chain sifted;
	struct llist_head freed;
};

/**
 * struct ending - the work that a batch of ended timeouts leaves for twheel_ending_done()
 * @places: places that are free again
 * @nr_places: timeouts that no longer count against max_pending
 * @nr_cancelled: how many of these were cancelled while they pended
 * @nr_room: entries of room in the wheel to give back
 *
 * It lives on the stack of the thread that ends the timeouts.
 */
struct ending {
	struct chain places;
	unsigned int nr_places;
	unsigned int nr_cancelled;
	unsigned int nr_room;
};

void twheel_arena_init(struct twheel_arena *arena);
void twheel_sifted_take(struct twheel_arena *arena)
	__must_hold(&arena->free_lock);
unsigned int twheel_places_wait(struct twheel *tw, unsigned int nr,
				struct llist_node ***tail, int *err);
int twheel_periodic_provide(struct twheel *tw, u32 index, bool nowait);
void twheel_arena_free(struct twheel_arena *arena);

/* Find a page of places by its number, as pages_at() does. */
static inline struct twheel_page *page_at(struct twheel_arena *arena, u32 nr)
{
	return pages_at(&arena->places, nr);
}

/* The place with this index, which is in @page; NULL if there is no such page. */
static __always_inline struct twheel_timeout *page_place(struct twheel_page *page, u32 index)
{
	return page ? &page->timeout[index % PLACES_PER_PAGE] : NULL;
}

/* Find a place by its index.  Return NULL if its page does not exist. */
static inline struct twheel_timeout *timeout_at(struct twheel_arena *arena, u32 index)
{
	return page_place(page_at(arena, index / PLACES_PER_PAGE), index);
}

/*
 * Find the page of an index that comes from the engine and not from a user.  Return NULL
 * if the page was removed.  No check against the size of the table is needed.  The table
 * had grown beyond the index before the place was first used, and the caller got the
 * index after that, through the inbox or under a lock.  So it sees that table or a later
 * one.  The caller is in an RCU read section.
 */
static __always_inline struct twheel_page *own_page_at(struct twheel_arena *arena, u32 index)
{
	return pages_get(&arena->places, index / PLACES_PER_PAGE);
}

/*
 * Find the timeout of an entry.  Return NULL if its page was removed: the place was free.
 */
static inline struct twheel_timeout *
entry_timeout(struct twheel_arena *arena, const struct twheel_entry *entry)
{
	return page_place(own_page_at(arena, entry->index), entry->index);
}

/*
 * Find the timeouts of many entries, and fetch them: their cache misses overlap if that is
 * done before the first one is read.
 */
static inline void entries_fetch(struct twheel_arena *arena, const struct twheel_entry *entry,
				 unsigned int nr, struct twheel_timeout **t)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		t[i] = entry_timeout(arena, &entry[i]);
		prefetch(t[i]);
	}
}

/*
 * Return whether an entry with this sequence number stands for the timeout in this state.
 * If not, it is stale, or a free place keeps it: the timeout was cancelled or moved
 * earlier, and the place may have another timeout.  A REARM that is going on makes an
 * entry look stale, so the caller holds events.lock.
 */
static inline bool entry_lives(u32 seq, u64 state)
{
	return state_is_armed(state) && state_seq(state) == seq;
}

/*
 * Return whether a place in this state, free or NEW, keeps the entry with this sequence
 * number.
 */
static inline bool entry_is_kept(u32 seq, u64 state)
{
	return state_has_entry(state) && state_seq(state) == seq;
}

/*
 * Return the state that decides what becomes of an entry that was taken out of the wheel.
 * A place that has kept the entry has none from then on: G3, the compare-and-swap decides
 * between this and an ARM that uses the entry.  Only the kthread calls this, under
 * events.lock.
 * Test: windows.timeout_expires_that_is_armed_as_the_entry_of_its_place_comes_up
 */
static inline u64 entry_claim(u32 seq, struct twheel_timeout *t)
{
	u64 state = timeout_state_or_free(t);

	while (unlikely(entry_is_kept(seq, state))) {
		twheel_window(WINDOW_PASS_CLAIMS);
		if (state_change(t, state, state_without_entry(state)))
			return state_without_entry(state);
		state = timeout_state(t);
	}
	return state;
}

/*
 * Find the places that ids name, whatever is there now, and fetch them: their cache misses
 * overlap if that is done before the first one is read.  The ids are @stride bytes apart.  A
 * place is NULL if its page does not exist.  The caller is in an RCU read section.
 */
static __always_inline void places_fetch(struct twheel_arena *arena, const void *id,
					 size_t stride, unsigned int nr,
					 struct twheel_timeout **place)
{
	struct pages_view view = pages_look(&arena->places);
	unsigned int i;

	for (i = 0; i < nr; i++, id += stride) {
		u32 index = id_index(*(const u64 *)id);

		place[i] = page_place(view_page(&view, index / PLACES_PER_PAGE), index);
		prefetchw(place[i]);
	}
}

/*
 * Return whether an id names the timeout in a place, and find its state.  It does not if the
 * place is free, or has another generation (G8 stale ids are harmless).  The state may
 * change at any time: a caller that holds no lock acts on it by state_change().  Such a
 * caller may also find the timeout REARMING: see timeout_look().
 */
static __always_inline bool timeout_has_id(const struct twheel_timeout *t, u64 id, u64 *state)
{
	*state = timeout_state(t);
	return state_gen(*state) == id_gen(id) &&
	       (state_is_live(*state) || state_is_rearming(*state));
}

/*
 * Find the timeout that an id names, and its state; NULL if there is none.  The caller is in
 * an RCU read section.
 */
static inline struct twheel_timeout *timeout_by_id(struct twheel_arena *arena, u64 id,
						   u64 *state)
{
	struct twheel_timeout *t = timeout_at(arena, id_index(id));

	return likely(t && timeout_has_id(t, id, state)) ? t : NULL;
}

/* Add a place that has become free to the batch, for twheel_ending_done(). */
static __always_inline void place_free(struct twheel_arena *arena, struct twheel_timeout *t,
				       u64 state, struct ending *ending)
{
	/*
	 * G8 stale ids are harmless: a place whose generations are used up is not used
	 * again.  Its state has generation 0 from now on, which no id has.
	 */
	if (!state_gen(state)) {
		atomic_inc(&arena->nr_retired);
		return;
	}
	chain_add(&ending->places, t);
}

/* End a timeout that was UNREAD. */
static __always_inline void timeout_end(struct twheel_arena *arena, struct twheel_timeout *t,
					u64 state, struct ending *ending)
	__must_hold(&tw->events.lock)
{
	state = state_freed(state);
	atomic64_set(&t->state, state);
	place_free(arena, t, state, ending);
	ending->nr_places++;
}

/* Count @nr timeouts against max_pending, or as many as it allows.  Return how many. */
static inline unsigned int live_take(struct twheel_arena *arena, unsigned int nr)
{
	int live = atomic_read(&arena->live);
	unsigned int got;

	do {
		got = min_t(unsigned int, nr, arena->max_pending - live);
		if (!got)
			return 0;
	} while (!atomic_try_cmpxchg(&arena->live, &live, live + got));
	return got;
}

/*
 * Move up to @nr free places to the end of a chain.  Return how many.  Their timeouts have
 * ended, and their pages are in the table.  Test: litmus place_freed, place_added
 */
static __always_inline unsigned int places_pop(struct twheel_arena *arena,
					       unsigned int nr,
					       struct llist_node ***tail)
{
	struct llist_node *place;
	unsigned int got = 0;

	spin_lock(&arena->free_lock);
	while (got < nr) {
		if (!arena->free)
			arena->free = llist_del_all(&arena->freed);
		if (unlikely(!arena->free))
			twheel_sifted_take(arena);
		if (!arena->free)
			break;
		**tail = arena->free;
		for (place = arena->free; place && got < nr; got++) {
			*tail = &place->next;
			place = place->next;
		}
		arena->free = place;
	}
	spin_unlock(&arena->free_lock);
	return got;
}

/*
 * Return how many places a wheel may have.  A place may be in use though no live timeout
 * is in it: the timeout was cancelled in the inbox, and the kthread has not freed it yet;
 * or twheel_arena_shrink() keeps the place off the free list.  So there may be as many
 * such places as live timeouts, and some more in a small wheel.  A caller that arms waits
 * for the kthread only if the kthread stays away until all of these are in use as well,
 * or if there is no more memory.
 */
static inline u64 arena_limit(const struct twheel_arena *arena)
{
	u32 most = READ_ONCE(arena->max_pending);

	return (u64)most + max(most, 4U * INBOX_WATERMARK);
}

/*
 * Return how many places there are.  The number may change at once unless the caller
 * holds arena.mutex.
 */
static inline u64 arena_size(const struct twheel_arena *arena)
{
	return (u64)(READ_ONCE(arena->places.nr) - READ_ONCE(arena->nr_holes)) *
	       PLACES_PER_PAGE;
}

/* Find the memory of periodic fields that a page of places shares with its neighbour. */
static inline struct twheel_periodic_page *
periodic_page(const struct twheel_periodic *periodic)
{
	return (struct twheel_periodic_page *)((unsigned long)periodic & PAGE_MASK);
}

/*
 * Give up a page's half of its periodic fields.  Return true if the neighbour does not
 * use the other half, so that the caller has to free both.  Called under arena.mutex, or
 * at the last close.
 */
static inline bool periodic_remove(struct twheel_page *page)
{
	return page->periodic && !--periodic_page(page->periodic)->nr_halves;
}

#endif /* _TWHEEL_ENGINE_ARENA_H */
