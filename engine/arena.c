// SPDX-License-Identifier: GPL-2.0
/*
 * The arena: the places of timeouts
 *
 * A place is taken from the free list, and goes back to it when its timeout has ended.
 * Where no place is free, a page of places is added; shrink.c gives pages back.
 *
 * Locks: arena.mutex for growing and shrinking, a mutex because it allocates and charges.
 * arena.free_lock, a spinlock, for taking free places; nothing is taken under it.
 */
#include <linux/atomic.h>
#include <linux/gfp.h>
#include <linux/limits.h>
#include <linux/llist.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait_bit.h>

#include "arena.h"
#include "engine.h"
#include "memory.h"
#include "pages.h"
#include "timeout.h"
#include "wake.h"
#include "words.h"

/**
 * twheel_arena_init() - begin without a place
 * @arena: the arena
 *
 * Context: any.
 */
void twheel_arena_init(struct twheel_arena *arena)
{
	mutex_init(&arena->mutex);
	spin_lock_init(&arena->free_lock);
	init_llist_head(&arena->freed);
	arena->places.mutex = &arena->mutex;
	/* Generations begin at 1, so that no id is 0. */
	arena->first_gen = 1;
}

/* Put a page where one was freed, or at the end. */
static int arena_add(struct twheel *tw, struct twheel_page *page)
	__must_hold(&tw->arena.mutex)
{
	u32 nr = page->first_index / PLACES_PER_PAGE;
	int err;

	if (nr == tw->arena.places.nr) {
		err = twheel_pages_add(&tw->arena.places, &tw->memory, page);
		if (err)
			return err;
	} else {
		twheel_pages_set(&tw->arena.places, nr, page);
		WRITE_ONCE(tw->arena.nr_holes, tw->arena.nr_holes - 1);
	}
	/* Pairs with shrink_begin(), which counts this page, or is overruled. */
	smp_mb();
	WRITE_ONCE(tw->shrink.below, U32_MAX);
	return 0;
}

/* Make a chain of all places of a new page, in the state of places never used. */
static void page_fill(struct twheel_page *page, u32 first_index, u64 state)
{
	struct twheel_timeout *t = page->timeout;
	struct twheel_timeout *last = t + PLACES_PER_PAGE - 1;

	page->first_index = first_index;
	for (; t < last; t++) {
		atomic64_set(&t->state, state);
		t->node.next = &t[1].node;
	}
	atomic64_set(&last->state, state);
	last->node.next = NULL;
}

/* Add a page of places to the free ones. */
static int arena_grow(struct twheel *tw)
	__must_hold(&tw->arena.mutex)
{
	struct twheel_page *page;
	u32 first_index;
	int err;

	rcu_read_lock();
	while (tw->arena.first_hole < tw->arena.places.nr && page_at(&tw->arena, tw->arena.first_hole))
		tw->arena.first_hole++;
	rcu_read_unlock();
	first_index = tw->arena.first_hole * PLACES_PER_PAGE;

	if (tw->words.made) {
		err = twheel_words_provide(tw, first_index);
		if (err)
			return err;
	}
	err = twheel_page_get(&tw->memory, (void **)&page);
	if (err)
		return err;
	page_fill(page, first_index, state_unused(tw->arena.first_gen));
	err = arena_add(tw, page);
	if (err) {
		twheel_page_put(&tw->memory, page);
		return err;
	}
	llist_add_batch(&page->timeout[0].node,
			&page->timeout[PLACES_PER_PAGE - 1].node, &tw->arena.freed);
	return 0;
}

static int arena_provide(struct twheel *tw)
{
	bool full = false;
	int err = 0;

	if (mutex_lock_killable(&tw->arena.mutex))
		return -EINTR;
	/* Someone else may have grown it, or freed places, meanwhile. */
	if (llist_empty(&tw->arena.freed)) {
		full = arena_size(&tw->arena) >=
		       arena_limit(&tw->arena) + atomic_read(&tw->arena.nr_retired);
		if (!full)
			err = arena_grow(tw);
	}
	mutex_unlock(&tw->arena.mutex);
	return full ? twheel_pass_wait_killable(tw) : err;
}

/**
 * twheel_sifted_take() - make free places of those that twheel_arena_shrink() has put aside
 * @arena: the arena, which has no other free places
 *
 * Context: any; under &twheel_arena.free_lock.
 */
void twheel_sifted_take(struct twheel_arena *arena)
	__must_hold(&arena->free_lock)
{
	lockdep_assert_held(&arena->free_lock);
	if (arena->sifted.nr)
		arena->sifted.last->next = NULL;
	arena->free = arena->sifted.first;
	arena->sifted = (struct chain){};
}

/**
 * twheel_places_wait() - take more places than were free
 * @tw: the wheel
 * @nr: how many
 * @tail: the end of the chain that they are added to; out: its new end
 * @err: out: why there are no more
 *
 * Context: process; sleeps.
 * Return: how many were taken; when fewer than @nr, @err is -ENOMEM, -ENOSPC, or
 * -EINTR by a fatal signal.
 */
unsigned int twheel_places_wait(struct twheel *tw, unsigned int nr,
				struct llist_node ***tail, int *err)
{
	unsigned int got = 0, reclaims = 0;

	do {
		*err = arena_provide(tw);
		/*
		 * Without memory for more places, some may be in the inbox, or
		 * twheel_arena_shrink() may have them, which other callers may keep
		 * from going on.
		 */
		if (*err && (reclaims++ > (READ_ONCE(tw->shrink.running) ? 3 : 0) ||
			     twheel_pass_wait_killable(tw)))
			break;
		got += places_pop(&tw->arena, nr - got, tail);
	} while (got < nr);
	return got;
}

/* Have a page share that of the page beside it, or make one for both. */
static int periodic_add(struct twheel *tw, struct twheel_page *page, u32 nr)
	__must_hold(&tw->arena.mutex)
{
	struct twheel_periodic_page *both = NULL;
	struct twheel_page *beside;
	int err;

	rcu_read_lock();
	beside = page_at(&tw->arena, nr ^ 1);
	if (beside && beside->periodic)
		both = periodic_page(beside->periodic);
	rcu_read_unlock();
	if (!both) {
		err = twheel_page_get(&tw->memory, (void **)&both);
		if (err)
			return err;
	}
	both->nr_halves++;
	/* Pairs with the READ_ONCE in timeout_periodic(). */
	smp_store_release(&page->periodic, &both->half[nr & 1]);
	return 0;
}

/**
 * twheel_periodic_provide() - make sure that the timeout of an index may be periodic
 * @tw: the wheel
 * @index: the index; there may be no place by now
 *
 * Context: process; sleeps.
 * Return: 0, -ENOMEM, -ENOSPC at the limit of memory, or -EINTR by a fatal signal.
 */
int twheel_periodic_provide(struct twheel *tw, u32 index)
{
	u32 nr = index / PLACES_PER_PAGE;
	struct twheel_page *page;
	int err = 0;

	rcu_read_lock();
	page = page_at(&tw->arena, nr);
	if (!page || READ_ONCE(page->periodic)) {
		rcu_read_unlock();
		return 0;
	}
	rcu_read_unlock();
	if (mutex_lock_killable(&tw->arena.mutex))
		return -EINTR;
	/* It may be another page, or none, by now; it is not removed meanwhile. */
	rcu_read_lock();
	page = page_at(&tw->arena, nr);
	rcu_read_unlock();
	if (page && !page->periodic)
		err = periodic_add(tw, page, nr);
	mutex_unlock(&tw->arena.mutex);
	return err;
}

/**
 * twheel_arena_free() - free all places, uncharged
 * @arena: the arena, which nobody else uses any more
 *
 * Context: process; sleeps.
 */
void twheel_arena_free(struct twheel_arena *arena)
{
	struct twheel_table *table = rcu_dereference_raw(arena->places.table);
	u32 nr;

	for (nr = 0; nr < arena->places.nr; nr++) {
		struct twheel_page *page = table->page[nr];

		if (page && periodic_remove(page))
			free_page((unsigned long)periodic_page(page->periodic));
		cond_resched();
	}
	twheel_pages_free(&arena->places);
	/* Pairs with the full barrier in pages_free_rcu(), which needs the wheel. */
	wait_var_event(&arena->nr_leaving, !atomic_read_acquire(&arena->nr_leaving));
}
