// SPDX-License-Identifier: GPL-2.0
/*
 * The pages of words that make up the refresh table
 *
 * Locks: the caller holds places.mutex to add, replace or remove a page of words.  It is a
 * mutex because pages are allocated under it.  Under places.mutex, twheel_words_set()
 * takes the page lock of the page that users saw so far, and, after it has released that,
 * the locks of the mapping and of the page tables.
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
#include "window.h"
#include "words.h"

/**
 * twheel_words_set() - put a page of words at a number, or take the page away
 * @tw: the wheel
 * @nr: the page's number, which the table has
 * @page: the new page; NULL for none
 *
 * From then on users see the new page, or the hole if @page is NULL.  The old page must
 * not stay in any page table.  A page fault may have found the old page just now, and be
 * about to map it.  The fault keeps that page locked from the moment at which it has
 * checked the table until the page is mapped, see twheel_words_lock().  This function
 * changes the table under the same page lock, and removes the old page from all page
 * tables after that.  So either the fault finds the new page, or it has mapped the old
 * one before that is removed.
 *
 * Context: process; sleeps; under &twheel_places.mutex.
 */
void twheel_words_set(struct twheel *tw, u32 nr, void *page)
	__must_hold(&tw->places.mutex)
{
	void *old = pages_at(&tw->words.pages, nr) ?: tw->words.hole;
	struct page *seen = virt_to_page(old);

	lock_page(seen);
	twheel_pages_set(&tw->words.pages, nr, page);
	unlock_page(seen);
	/* Test: windows.page_of_words_is_mapped_as_soon_as_it_is_set */
	twheel_window(WINDOW_WORDS_SET);
	unmap_mapping_range(&tw->words.mapping, (loff_t)nr << PAGE_SHIFT, PAGE_SIZE, 1);
}

/**
 * twheel_words_add() - make sure that there is a page of words at a number
 * @tw: the wheel
 * @nr: the page's number, which the table has, or the one after its last
 *
 * Context: process; sleeps; under &twheel_places.mutex.
 * Return: 0, -ENOMEM, or -ENOSPC at the limit of memory.
 */
int twheel_words_add(struct twheel *tw, u32 nr)
	__must_hold(&tw->places.mutex)
{
	void *words;
	int err;

	if (pages_at(&tw->words.pages, nr))
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
 * twheel_words_provide() - make sure that all places of a page have words
 * @tw: the wheel
 * @first_index: the index of the page's first place
 *
 * Context: process; sleeps; under &twheel_places.mutex.
 * Return: 0, -ENOMEM, or -ENOSPC at the limit of memory.
 */
int twheel_words_provide(struct twheel *tw, u32 first_index)
	__must_hold(&tw->places.mutex)
{
	u32 nr = first_index / WORDS_PER_PAGE;
	u32 last = (first_index + PLACES_PER_PAGE - 1) / WORDS_PER_PAGE;
	int err = 0;

	for (; nr <= last && !err; nr++)
		err = twheel_words_add(tw, nr);
	return err;
}

/**
 * twheel_words_free() - free the refresh table at the last close
 * @words: the table, which no user has mapped any more
 *
 * The charges remain: twheel_destroy() takes back all of a wheel at once.
 *
 * Context: process; sleeps.
 */
void twheel_words_free(struct twheel_words *words)
{
	twheel_pages_free(&words->pages);
	free_page((unsigned long)words->hole);
	path_put(&words->path);
}
