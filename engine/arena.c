// SPDX-License-Identifier: GPL-2.0
/*
 * The arena: the places of timeouts
 *
 * ARM takes a place from the free list.  The place goes back to that list when its
 * timeout has ended.  When no place is free, ARM adds a page of places; shrink.c removes
 * pages after a burst.
 *
 * Locks: arena.mutex serialises adding pages of places and of periodic fields.  It is a
 * mutex because pages are allocated and charged under it.  mmap() takes it under
 * mmap_lock, so nothing under it may touch user memory.  arena.free_lock, a spinlock,
 * serialises taking free places; no other lock is taken under it.  A caller waits for the
 * kthread under neither.  The locks that a page of words needs under arena.mutex are
 * named in words.c.
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
#include "keys.h"
#include "memory.h"
#include "pages.h"
#include "timeout.h"
#include "wake.h"
#include "window.h"
#include "words.h"

/* Put a page at the number of a page that was removed, or at the end of the table. */
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
	twheel_window(WINDOW_ARENA_ADDED);
	/*
	 * Pairs with the barrier in shrink_begin(): either shrink_begin() counts this
	 * page, or the store below comes after its own and overrides it.
	 * Test: litmus shrink_below, shrink_below_hole
	 */
	smp_mb();
	WRITE_ONCE(tw->shrink.below, U32_MAX);
	return 0;
}

/*
 * A stale id may be as many uses of its place away from an id with the same
 * TWHEEL_REFRESH_GEN_BITS, at least.  A power of two.
 */
#define STALE_DISTANCE	65536U

/*
 * Have each place of a new page begin after the generation that its word has, if that
 * would soon come round.  G8 stale ids are harmless: that generation may be the one of a
 * stale id, of a page that was removed.  Users may have stored any generation in the
 * word, so no place leaves out more than STALE_DISTANCE generations.
 */
static void page_pass_stale(struct twheel_words *words, struct twheel_page *page, u32 gen)
{
	u32 i, ahead;
	u64 *word = NULL;

	rcu_read_lock();
	for (i = 0; i < PLACES_PER_PAGE; i++) {
		u32 index = page->first_index + i;

		/* The words of a page of places lie in two pages at most. */
		if (!i || index % WORDS_PER_PAGE == 0)
			word = word_at(words, index);
		if (!word)
			continue;
		ahead = (READ_ONCE(*word++) - gen) & TWHEEL_REFRESH_GEN_MASK;
		if (ahead < STALE_DISTANCE)
			atomic64_set(&page->timeout[i].state, state_unused(gen + ahead + 1));
	}
	rcu_read_unlock();
}

/* Link all places of a new page, each in the state of a place that was never used. */
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

/* Add a page of places, all of which are free. */
static int arena_grow(struct twheel *tw)
	__must_hold(&tw->arena.mutex)
{
	struct twheel_page *page;
	u32 first_index;
	int err;

	rcu_read_lock();
	while (tw->arena.first_hole < tw->arena.places.nr &&
	       page_at(&tw->arena, tw->arena.first_hole))
		tw->arena.first_hole++;
	rcu_read_unlock();
	first_index = tw->arena.first_hole * PLACES_PER_PAGE;

	if (tw->words.made) {
		err = twheel_words_provide(tw, first_index);
		if (err)
			return err;
	}
	if (tw->keys.used) {
		err = twheel_keys_provide(tw, tw->arena.first_hole);
		if (err)
			return err;
	}
	err = twheel_page_get(&tw->memory, (void **)&page);
	if (err)
		goto remove_keys;
	page_fill(page, first_index, state_unused(tw->arena.first_gen));
	if (tw->words.pages.nr)
		page_pass_stale(&tw->words, page, tw->arena.first_gen);
	err = arena_add(tw, page);
	if (err)
		goto put_page;
	twheel_window(WINDOW_ARENA_GROWN);
	llist_add_batch(&page->timeout[0].node,
			&page->timeout[PLACES_PER_PAGE - 1].node, &tw->arena.freed);
	return 0;

put_page:
	twheel_page_put(&tw->memory, page);
remove_keys:
	if (tw->keys.used) {
		void *unused[KEY_PAGES];

		/* No look-up has reached them: they need no grace period. */
		twheel_keys_remove(tw, tw->arena.first_hole, unused);
		twheel_key_page_put(tw, unused[0]);
		twheel_key_page_put(tw, unused[1]);
	}
	return err;
}

/**
 * twheel_sifted_take() - use the places that twheel_arena_shrink() has put aside
 * @arena: the arena, which has no other free places
 *
 * Context: any but interrupts; under &twheel_arena.free_lock.
 */
void twheel_sifted_take(struct twheel_arena *arena)
	__must_hold(&arena->free_lock)
{
	lockdep_assert_held(&arena->free_lock);
	arena->free = arena->sifted.first;
	arena->sifted = (struct chain){};
}

/*
 * Make sure that there are free places: add a page, or wait for the kthread at the limit.
 */
static int arena_provide(struct twheel *tw)
{
	bool full = false;
	int err = 0;

	if (mutex_lock_killable(&tw->arena.mutex))
		return -EINTR;
	/* Another thread may have added a page, or freed places, in the meantime. */
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
 * twheel_places_wait() - take free places, and wait until there are enough
 * @tw: the wheel
 * @nr: how many
 * @tail: the end of the chain to which the places are added; out: its new end
 * @err: out: the reason why there are no more
 *
 * Context: process; sleeps; under none of the engine's locks.
 * Return: how many were taken; when fewer than @nr, @err is -ENOMEM, -ENOSPC, or -EINTR
 * by a fatal signal.
 */
unsigned int twheel_places_wait(struct twheel *tw, unsigned int nr,
				struct llist_node ***tail, int *err)
{
	unsigned int got = 0, reclaims = 0;

	do {
		*err = arena_provide(tw);
		/*
		 * There is no memory for another page.  Places of cancelled timeouts may
		 * be in the inbox, and the next pass frees them.  twheel_arena_shrink()
		 * may hold back other places, and needs several passes to release them if
		 * other callers keep it from going on.
		 */
		if (*err && (reclaims++ > (READ_ONCE(tw->shrink.running) ? 3 : 0) ||
			     twheel_pass_wait_killable(tw)))
			break;
		got += places_pop(&tw->arena, nr - got, tail);
	} while (got < nr);
	return got;
}

/*
 * Let a page use the other half of its neighbour's periodic fields, or allocate them for
 * both.
 */
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
	/* Pairs with the READ_ONCE in timeout_periodic().  Test: litmus periodic_filled */
	smp_store_release(&page->periodic, &both->half[nr & 1]);
	return 0;
}

/**
 * twheel_periodic_provide() - make sure that the timeout of an index can be periodic
 * @tw: the wheel
 * @index: the index; its page may have been removed
 * @nowait: do not sleep
 *
 * Context: process; sleeps unless @nowait; in no RCU read section.
 * Return: 0, -ENOMEM, -ENOSPC at the limit of memory, -EINTR by a fatal signal, or
 * -EAGAIN if it would have to sleep and may not.
 */
int twheel_periodic_provide(struct twheel *tw, u32 index, bool nowait)
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
	if (nowait)
		return -EAGAIN;
	twheel_window(WINDOW_PERIODIC_NONE);
	if (mutex_lock_killable(&tw->arena.mutex))
		return -EINTR;
	/*
	 * The page may have been removed or replaced in the meantime.  The mutex keeps it
	 * from now on.
	 */
	rcu_read_lock();
	page = page_at(&tw->arena, nr);
	rcu_read_unlock();
	if (page && !page->periodic)
		err = periodic_add(tw, page, nr);
	mutex_unlock(&tw->arena.mutex);
	return err;
}

/**
 * twheel_arena_init() - prepare an arena without a place
 * @arena: the arena
 *
 * Context: process, before the wheel is published.
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

/**
 * twheel_arena_free() - free all places at the last close
 * @arena: the arena, which no other thread uses any more
 *
 * The charges remain: twheel_destroy() takes back all of a wheel at once.
 *
 * Context: process; sleeps until RCU has freed the pages that were removed.
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
	/*
	 * pages_free_rcu() takes back charges of this wheel.  The acquire pairs with the
	 * full barrier of its atomic_dec_and_test().  Test: litmus leaving
	 */
	wait_var_event(&arena->nr_leaving, !atomic_read_acquire(&arena->nr_leaving));
}
