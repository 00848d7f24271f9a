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
#include <linux/spinlock.h>
#include <linux/types.h>

#include "limits.h"
#include "pages.h"
#include "timeout.h"
#include "twheel_wheel.h"

struct twheel;

/**
 * struct twheel_arena - the places of timeouts
 * @places: struct twheel_page by index / PLACES_PER_PAGE
 * @nr_removed: pages of places that were ever freed; released under @mutex
 * @nr_leaving: chains of these that RCU has yet to free; atomic
 * @mutex: growing and shrinking it, and the refresh table.  Allocates and charges;
 *	the kthread only tries it.
 * @nr_holes: numbers in @places without a page; @mutex
 * @first_hole: none of them is below; @mutex
 * @first_gen: where the generations of a new page begin: no id of a page that
 *	was freed is given out again; @mutex
 * @nr_retired: places whose generations are used up; atomic
 * @max_pending: limit of @live; constant once the wheel was started
 * @live: places that count against it; atomic
 * @armed: timeouts accepted; atomic
 * @cancelled: see struct twheel_info; atomic
 * @free_lock: guards @free and @sifted
 * @free: chain of free places
 * @sifted: free places that twheel_arena_shrink() has seen, for when there are no others
 * @freed: places on their way to @free; llist, taken from under @free_lock
 */
struct twheel_arena {
	/* Read for each id: away from what every call writes. */
	struct twheel_pages places ____cacheline_aligned_in_smp;
	unsigned long nr_removed;
	atomic_t nr_leaving;
	struct mutex mutex;	/* growing and shrinking */
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
 * struct ending - what a batch of timeouts that end leaves to be done
 * @places: places to be reused
 * @nr_places: places that do not count any more
 * @nr_cancelled: of these, cancelled while pending
 * @nr_room: room in the wheel to be given back
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
int twheel_periodic_provide(struct twheel *tw, u32 index);
void twheel_arena_free(struct twheel_arena *arena);

static inline struct twheel_page *page_at(struct twheel_arena *arena, u32 nr)
{
	return pages_at(&arena->places, nr);
}

static inline struct twheel_timeout *timeout_at(struct twheel_arena *arena, u32 index)
{
	struct twheel_page *page = page_at(arena, index / PLACES_PER_PAGE);

	return page ? &page->timeout[index % PLACES_PER_PAGE] : NULL;
}

/*
 * The page of an index that is the engine's own, not a user's.  The table reached
 * that far when the place was first used, and whoever has the index has it from
 * there, by the inbox or the lock: so no older table is seen here.
 */
static inline struct twheel_page *own_page_at(struct twheel_arena *arena, u32 index)
{
	return pages_get(&arena->places, index / PLACES_PER_PAGE);
}

/* Of an entry of the wheel, which may have outlived its timeout's page. */
static inline struct twheel_timeout *
entry_timeout(struct twheel_arena *arena, const struct twheel_entry *entry)
{
	struct twheel_page *page = own_page_at(arena, entry->index);

	return page ? &page->timeout[entry->index % PLACES_PER_PAGE] : NULL;
}

static inline bool entry_lives(const struct twheel_entry *entry,
			       const struct twheel_timeout *t)
{
	u64 state = timeout_state_or_free(t);

	return state_is_armed(state) && state_seq(state) == entry->seq;
}

/*
 * G8: what an id names, and the state in which it was found.  NULL if the place
 * is free or another generation lives there.  The state may change at once:
 * whoever acts on it does so by state_change().  Without the lock, it may be
 * REARMING: see timeout_look().
 */
static inline struct twheel_timeout *timeout_by_id(struct twheel_arena *arena, u64 id,
						   u64 *state)
{
	struct twheel_page *page = page_at(arena, id_index(id) / PLACES_PER_PAGE);
	struct twheel_timeout *t;

	if (unlikely(!page))
		return NULL;
	t = &page->timeout[id_index(id) % PLACES_PER_PAGE];
	*state = timeout_state(t);
	if (likely(state_gen(*state) == id_gen(id) &&
		   (state_is_live(*state) || state_is_rearming(*state))))
		return t;
	return NULL;
}

/* Chain a place that has become free, for ending_done. */
static inline void place_free(struct twheel_arena *arena, struct twheel_timeout *t, u64 state,
			      struct ending *ending)
{
	/*
	 * G8: a place whose generations are used up is not used again.  The
	 * last state has generation 0, which no id has.
	 */
	if (!state_gen(state)) {
		atomic_inc(&arena->nr_retired);
		return;
	}
	chain_add(&ending->places, t);
}

/* The life of one that was UNREAD is over; its place does not count any more. */
static inline void timeout_end(struct twheel_arena *arena, struct twheel_timeout *t,
			       u64 state, struct ending *ending)
	__must_hold(&tw->events.lock)
{
	state = state_freed(state);
	atomic64_set(&t->state, state);
	place_free(arena, t, state, ending);
	ending->nr_places++;
}

/* Count timeouts in; returns how many there was a place for, exactly. */
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

/* Move up to @nr free places to the end of a chain; returns how many. */
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
 * The places of those that were cancelled young are in the inbox until the kthread
 * frees them from there, and twheel_arena_shrink() has taken others away: beside those
 * that may be live there is room for as many.  So whoever arms waits for the
 * kthread only where it is away for so long that all of these are in use, too, or
 * where there is no more memory.
 */
static inline u64 arena_limit(const struct twheel_arena *arena)
{
	u32 most = READ_ONCE(arena->max_pending);

	return (u64)most + max(most, 4U * INBOX_WATERMARK);
}

/* Places that there are; without arena.mutex, about as many. */
static inline u64 arena_size(const struct twheel_arena *arena)
{
	return (u64)(READ_ONCE(arena->places.nr) - READ_ONCE(arena->nr_holes)) *
	       PLACES_PER_PAGE;
}

static inline struct twheel_periodic_page *
periodic_page(const struct twheel_periodic *periodic)
{
	return (struct twheel_periodic_page *)((unsigned long)periodic & PAGE_MASK);
}

/* A page goes: whether what it has beside goes with it. */
static inline bool periodic_remove(struct twheel_page *page)
{
	return page->periodic && !--periodic_page(page->periodic)->nr_halves;
}

#endif /* _TWHEEL_ENGINE_ARENA_H */
