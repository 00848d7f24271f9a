// SPDX-License-Identifier: GPL-2.0
/*
 * The pages of words that make up the refresh table
 *
 * Locks: &twheel_arena.mutex, held by all who add or remove a page of words.  Under it a page
 * of words is locked while it comes or goes.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

#include "engine.h"
#include "memory.h"
#include "pages.h"
#include "timeout.h"
#include "words.h"

/**
 * twheel_words_page() - find a page of words
 * @words: the refresh table
 * @nr: the page's number
 *
 * Context: process; under &twheel_arena.mutex, and while it is held the page stays.
 * Return: the page, or NULL where there is none.
 */
void *twheel_words_page(struct twheel_words *words, u32 nr)
	__must_hold(&tw->arena.mutex)
{
	void *page;

	rcu_read_lock();
	page = pages_at(&words->pages, nr);
	rcu_read_unlock();
	return page;
}

/**
 * twheel_words_set() - put a page of words where there was none, or none where there was one
 * @tw: the wheel
 * @nr: the page's number
 * @page: the page, NULL for none
 *
 * What users see there changes.  A fault keeps the page that it finds locked until the
 * page is in the user's page table, see twheel_words_lock(): so the fault either finds the
 * new page, or the old one is taken from the user here.
 *
 * Context: process; sleeps; under &twheel_arena.mutex.
 */
void twheel_words_set(struct twheel *tw, u32 nr, void *page)
	__must_hold(&tw->arena.mutex)
{
	void *old = twheel_words_page(&tw->words, nr) ?: tw->words.hole;
	struct page *seen = virt_to_page(old);

	lock_page(seen);
	twheel_pages_set(&tw->words.pages, nr, page);
	unlock_page(seen);
	unmap_mapping_range(&tw->words.mapping, (loff_t)nr << PAGE_SHIFT, PAGE_SIZE, 1);
}

/**
 * twheel_words_add() - make sure of a page of words, where there is a number for it or at the end
 * @tw: the wheel
 * @nr: the page's number
 *
 * Context: process; sleeps; under &twheel_arena.mutex.
 * Return: 0, -ENOMEM, or -ENOSPC at the limit of memory.
 */
int twheel_words_add(struct twheel *tw, u32 nr)
	__must_hold(&tw->arena.mutex)
{
	void *words;
	int err;

	if (twheel_words_page(&tw->words, nr))
		return 0;
	err = twheel_page_get(&tw->memory, &words);
	if (err)
		return err;
	if (nr < tw->words.pages.nr) {
		twheel_words_set(tw, nr, words);
		return 0;
	}
	err = twheel_pages_add(&tw->words.pages, &tw->memory, words);
	if (err)
		twheel_page_put(&tw->memory, words);
	return err;
}

/**
 * twheel_words_provide() - make sure of the words of a page of places
 * @tw: the wheel
 * @first_index: the index of the page's first place
 *
 * Context: process; sleeps; under &twheel_arena.mutex.
 * Return: 0, -ENOMEM, or -ENOSPC at the limit of memory.
 */
int twheel_words_provide(struct twheel *tw, u32 first_index)
	__must_hold(&tw->arena.mutex)
{
	u32 nr = first_index / WORDS_PER_PAGE;
	u32 last = (first_index + PLACES_PER_PAGE - 1) / WORDS_PER_PAGE;
	int err = 0;

	for (; nr <= last && !err; nr++)
		err = twheel_words_add(tw, nr);
	return err;
}

/**
 * twheel_words_free() - free the refresh table, uncharged
 * @words: the table, which nobody has mapped any more
 *
 * Context: process; sleeps.
 */
void twheel_words_free(struct twheel_words *words)
{
	twheel_pages_free(&words->pages);
	free_page((unsigned long)words->hole);
}
