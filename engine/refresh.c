// SPDX-License-Identifier: GPL-2.0
/*
 * The refresh table as users map it
 *
 * The table is made when it is mapped for the first time.  A page of words is there as long
 * as some place has its word in it.  A workqueue gives the others back, not the kthread: to
 * take a page from its users costs the more the more often they have mapped it.
 *
 * Locks: arena.mutex.  mmap_lock is held around it by mmap(), and by a fault, which takes only
 * the lock of the page it finds.
 */
#include <linux/atomic.h>
#include <linux/container_of.h>
#include <linux/fs.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pagemap.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "arena.h"
#include "engine.h"
#include "limits.h"
#include "memory.h"
#include "pages.h"
#include "refresh.h"
#include "timeout.h"
#include "twheel.h"
#include "words.h"

/*
 * Pages that there is room for in what users map, beside those of arena_limit():
 * one is added when as many places are retired, each after 2^32 uses.
 */
#define REFRESH_SLACK_PAGES	4096

/**
 * twheel_refresh_size() - how much of the refresh table there may ever be
 * @tw: the wheel
 *
 * Context: any.
 * Return: bytes, a multiple of a page; final once the wheel was set up or armed.
 */
u64 twheel_refresh_size(const struct twheel *tw)
{
	u64 nr_pages = DIV_ROUND_UP_ULL(arena_limit(&tw->arena), PLACES_PER_PAGE) +
		       REFRESH_SLACK_PAGES;

	return PAGE_ALIGN(nr_pages * PLACES_PER_PAGE * sizeof(u64));
}

/* Whether there is a place that has its word in a page of words. */
static bool words_are_wanted(struct twheel *tw, u32 nr)
	__must_hold(&tw->arena.mutex)
{
	u64 index = (u64)nr * WORDS_PER_PAGE;
	u32 first = index / PLACES_PER_PAGE;
	u32 last = (index + WORDS_PER_PAGE - 1) / PLACES_PER_PAGE;
	bool wanted = false;

	rcu_read_lock();
	for (; first <= last && !wanted; first++)
		wanted = page_at(&tw->arena, first);
	rcu_read_unlock();
	return wanted;
}

/*
 * The words of a page of places that were in use before there were words.  One
 * that begins a life meanwhile writes its word itself, or is seen here.
 */
static void words_begin(struct twheel_words *words, struct twheel_page *page)
{
	unsigned int i;

	for (i = 0; i < PLACES_PER_PAGE; i++) {
		struct twheel_timeout *t = &page->timeout[i];
		u64 *word = word_at(words, timeout_index(t));
		u64 gen, old = 0;

		do {
			gen = state_gen(timeout_state(t)) &
			      TWHEEL_REFRESH_GEN_MASK;
			if (!try_cmpxchg64(word, &old, gen))
				break;
			old = gen;
		} while (gen != (state_gen(timeout_state(t)) &
				 TWHEEL_REFRESH_GEN_MASK));
	}
}

/* Gives pages of words back.  No wheel is in a hurry for that. */
static struct workqueue_struct *words_workers;

/**
 * twheel_refresh_init() - get ready to give pages of words back
 *
 * Context: process; sleeps.
 * Return: 0 or -ENOMEM.
 */
int twheel_refresh_init(void)
{
	/* One at a time: each waits for grace periods, and users have many wheels. */
	words_workers = alloc_workqueue("twheel", WQ_UNBOUND, 1);
	return words_workers ? 0 : -ENOMEM;
}

/**
 * twheel_refresh_exit() - no wheel is left
 *
 * Context: process; sleeps.
 */
void twheel_refresh_exit(void)
{
	destroy_workqueue(words_workers);
}

/* The words of all places that there are. */
static int words_make(struct twheel *tw)
	__must_hold(&tw->arena.mutex)
{
	u32 nr, end = DIV_ROUND_UP(tw->arena.places.nr * PLACES_PER_PAGE, WORDS_PER_PAGE);
	struct twheel_page *page;
	int err = 0;

	for (nr = 0; nr < end; nr++) {
		if (words_are_wanted(tw, nr))
			err = twheel_words_add(tw, nr);
		else if (nr == tw->words.pages.nr)
			err = twheel_pages_add(&tw->words.pages, &tw->memory, NULL);
		if (err)
			return err;
		/* A million timeouts have 2,000 pages of words. */
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	for (nr = 0; nr < tw->arena.places.nr; nr++) {
		rcu_read_lock();
		page = page_at(&tw->arena, nr);
		if (page)
			words_begin(&tw->words, page);
		rcu_read_unlock();
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/**
 * twheel_map_words() - make the refresh table, for it is going to be mapped
 * @tw: the wheel
 *
 * Context: process; sleeps.
 * Return: 0, -ENOMEM, -ENOSPC at the limit of memory, or -EINTR by a fatal signal.
 */
int twheel_map_words(struct twheel *tw)
{
	int err = 0;

	if (mutex_lock_killable(&tw->arena.mutex))
		return -EINTR;
	if (!tw->words.hole)
		err = twheel_page_get(&tw->memory, &tw->words.hole);
	if (!err && !tw->words.made)
		err = words_make(tw);
	if (!err)
		WRITE_ONCE(tw->words.made, true);
	else if (!tw->words.made)
		twheel_refresh_shrink(tw);
	mutex_unlock(&tw->arena.mutex);
	return err;
}

/**
 * twheel_mapping() - what the refresh table is mapped through
 * @tw: the wheel
 * @inode: the device's
 *
 * The device's own mapping would be that of all open files, and pages are taken away
 * from those who have mapped this one.
 *
 * Context: process.
 * Return: the mapping, which lives until twheel_destroy().
 */
struct address_space *twheel_mapping(struct twheel *tw, struct inode *inode)
{
	tw->words.mapping.host = inode;
	tw->words.mapping.a_ops = &empty_aops;
	return &tw->words.mapping;
}

/* What users see of the refresh table at a page's number; NULL beyond its end. */
static void *words_seen(struct twheel_words *words, unsigned long nr)
{
	if (nr >= READ_ONCE(words->pages.nr))
		return NULL;
	return pages_at(&words->pages, nr) ?: words->hole;
}

/**
 * twheel_words_lock() - find and lock a page of the refresh table
 * @tw: the wheel, whose table was mapped
 * @nr: its number
 *
 * Context: process; sleeps.
 * Return: the page, locked and referenced, or NULL where no timeout has ever had its
 * word.
 */
struct page *twheel_words_lock(struct twheel *tw, unsigned long nr)
{
	for (;;) {
		struct page *page;
		void *words;

		rcu_read_lock();
		words = words_seen(&tw->words, nr);
		page = words ? virt_to_page(words) : NULL;
		if (page)
			get_page(page);
		rcu_read_unlock();
		if (!page)
			return NULL;
		lock_page(page);
		rcu_read_lock();
		words = words_seen(&tw->words, nr);
		rcu_read_unlock();
		/* Pairs with twheel_words_set(): it stays so as long as it is locked. */
		if (words == page_address(page))
			return page;
		unlock_page(page);
		put_page(page);
	}
}

/*
 * Give back the pages of words that no place is left for.  Not the kthread's: what
 * it takes to take a page away from users depends on how often they have mapped it,
 * and a grace period has to pass.
 */
static void words_shrink(struct work_struct *work)
{
	struct twheel *tw = container_of(work, struct twheel, words.work);
	void *gone[SHRINK_STEP];
	unsigned int i, nr_gone;
	bool more = true;
	u32 nr = 0;

	/* At the last close twheel_words_free() frees the rest. */
	while (more && !READ_ONCE(tw->wake.closing)) {
		unsigned int left = SHRINK_STEP;

		nr_gone = 0;
		mutex_lock(&tw->arena.mutex);
		for (; left && nr < tw->words.pages.nr; left--, nr++) {
			void *words = twheel_words_page(&tw->words, nr);

			/* Nobody has mapped a table that could not be finished. */
			if (!words || (tw->words.made && words_are_wanted(tw, nr)))
				continue;
			twheel_words_set(tw, nr, NULL);
			gone[nr_gone++] = words;
		}
		more = nr < tw->words.pages.nr;
		mutex_unlock(&tw->arena.mutex);
		/* For word_at(). */
		if (nr_gone)
			synchronize_rcu();
		for (i = 0; i < nr_gone; i++)
			twheel_page_put(&tw->memory, gone[i]);
		cond_resched();
	}
}

/**
 * twheel_refresh_shrink() - have pages of words given back that no place needs
 * @tw: the wheel
 *
 * Context: any.
 */
void twheel_refresh_shrink(struct twheel *tw)
{
	queue_work(words_workers, &tw->words.work);
}

/**
 * twheel_refresh_begin() - begin without a refresh table
 * @words: the table
 * @mutex: &twheel_arena.mutex
 *
 * Context: process.
 */
void twheel_refresh_begin(struct twheel_words *words, struct mutex *mutex)
{
	words->pages.mutex = mutex;
	INIT_WORK(&words->work, words_shrink);
	address_space_init_once(&words->mapping);
}
