// SPDX-License-Identifier: GPL-2.0
/*
 * The refresh table: the pages of words, and how users map them
 *
 * The table is made when it is mapped for the first time.  From then on, a page of words exists
 * while a page of places has words in it: the work item that removes pages of places (places.c)
 * frees the other pages of words.
 *
 * places.mutex serialises changes of the table.  Under it, words_set() takes and releases the page
 * lock of the page that users saw so far, and then takes the locks of the mapping and of the page
 * tables.  A page fault holds mmap_lock or the lock of the VMA, and takes only the page lock of the
 * page that it finds.  It must not take places.mutex under that page lock, since a holder of
 * places.mutex may wait for it.  The work item waits for RCU under none of the locks.
 */
#include <linux/pagemap.h>
#include <linux/sched/signal.h>

#include "engine.h"
#include "syncpoint.h"
#include "twheel.h"

/*
 * Users can map words for this many pages of places beyond max_pending timeouts.  A wheel gets one
 * page more whenever as many of its places are retired as a page has, each after 2^32 uses.
 */
#define REFRESH_SLACK_PAGES	4096

/* Pages of words that are checked under one hold of places.mutex. */
#define SHRINK_STEP		64

/*
 * Put a page of words at a number that the table has; NULL takes the page away.
 *
 * From then on users see the new page, or the hole, and the old page must not stay in any page
 * table.  A page fault may have found the old page just now, and be about to map it: it keeps that
 * page locked from its check of the table until the page is mapped, see twheel_words_lock().  This
 * function changes the table under the same page lock, and then removes the old page from all page
 * tables.  So the fault either finds the new page, or has mapped the old one before that is
 * removed.
 */
static void words_set(struct tw_ctx *tw, u32 nr, void *page) __must_hold(&tw->places.mutex)
{
	void *old = pages_at(&tw->words.pages, nr) ?: tw->words.hole;
	struct page *seen = virt_to_page(old);

	lock_page(seen);
	twheel_pages_set(&tw->words.pages, nr, page);
	unlock_page(seen);
	/* Test: syncpoints.page_of_words_is_mapped_as_soon_as_it_is_set */
	twheel_syncpoint(SYNC_WORDS_SET);
	unmap_mapping_range(&tw->words.mapping, (loff_t)nr << PAGE_SHIFT, PAGE_SIZE, 1);
}

/*
 * Fill a page of words that no thread sees yet, for places that were in use before there were
 * words.  Each word gets the generation before that of its place: it counts for no timeout, and the
 * owner of the timeout may overwrite it, as twheel_refresh() does.
 *
 * ARM may use the places at the same time, without the lock.  It does not see the page, and writes
 * no word: the word that is written here then has an older generation, and counts for no timeout
 * either.
 */
static void words_fill(struct tw_ctx *tw, u32 nr, u64 *words) __must_hold(&tw->places.mutex)
{
	u32 i, index = nr * WORDS_PER_PAGE;

	for (i = 0; i < WORDS_PER_PAGE; i++, index++) {
		const struct twheel_page *page = pages_at(&tw->places.pages,
							  index / PLACES_PER_PAGE);
		u32 gen;

		if (!page)
			continue;
		gen = READ_ONCE(page->timeout[index % PLACES_PER_PAGE].word) >> GEN_SHIFT;
		words[i] = (gen - 1) & TWHEEL_REFRESH_GEN_MASK;
	}
}

/* Make sure that there is a page of words at a number up to the one after the last of the table. */
static int words_add(struct tw_ctx *tw, u32 nr) __must_hold(&tw->places.mutex)
{
	void *words;
	int err;

	if (pages_at(&tw->words.pages, nr))
		return 0;
	err = twheel_page_get(&tw->memory, &words);
	if (err)
		return err;
	if (!tw->words.made)
		words_fill(tw, nr, words);
	if (nr < tw->words.pages.nr) {
		words_set(tw, nr, words);
		return 0;
	}
	err = twheel_pages_add(&tw->words.pages, &tw->memory, words);
	if (err)
		twheel_page_put(&tw->memory, words);
	return err;
}

/* Make sure that all places of a page have words.  For errors see twheel_page_get(). */
int twheel_words_provide(struct tw_ctx *tw, u32 first_index) __must_hold(&tw->places.mutex)
{
	u32 nr = first_index / WORDS_PER_PAGE;
	u32 last = (first_index + PLACES_PER_PAGE - 1) / WORDS_PER_PAGE;
	int err = 0;

	for (; nr <= last && !err; nr++)
		err = words_add(tw, nr);
	return err;
}

/* Return how many bytes the refresh table may ever take; final once the wheel has started. */
u64 twheel_refresh_size(const struct tw_ctx *tw)
{
	u64 nr_pages = DIV_ROUND_UP_ULL(READ_ONCE(tw->places.max_pending), PLACES_PER_PAGE) +
		       REFRESH_SLACK_PAGES;

	return PAGE_ALIGN(nr_pages * PLACES_PER_PAGE * sizeof(u64));
}

/* Return whether any page of places has words in this page. */
static bool words_are_wanted(struct tw_ctx *tw, u32 nr) __must_hold(&tw->places.mutex)
{
	u64 index = (u64)nr * WORDS_PER_PAGE;
	u32 first = index / PLACES_PER_PAGE;
	u32 last = (index + WORDS_PER_PAGE - 1) / PLACES_PER_PAGE;

	while (first <= last && !pages_at(&tw->places.pages, first))
		first++;
	return first <= last;
}

/* Free the pages of words that no place needs; see places_shrink(). */
void twheel_refresh_shrink(struct tw_ctx *tw)
{
	void *gone[SHRINK_STEP];
	unsigned int i, nr_gone;
	bool more = true;
	u32 end, nr = 0;

	/* Stop at the last close: twheel_words_free() frees the rest. */
	while (more && refcount_read(&tw->control.nr_files)) {
		nr_gone = 0;
		mutex_lock(&tw->places.mutex);
		end = min(nr + SHRINK_STEP, tw->words.pages.nr);
		for (; nr < end; nr++) {
			void *words = pages_at(&tw->words.pages, nr);

			/* If the table could not be made, nobody has mapped it, and all goes. */
			if (!words || (tw->words.made && words_are_wanted(tw, nr)))
				continue;
			words_set(tw, nr, NULL);
			gone[nr_gone++] = words;
		}
		more = nr < tw->words.pages.nr;
		mutex_unlock(&tw->places.mutex);
		/* Others may still use words that word_at() has found.  Test: litmus words_freed */
		if (nr_gone)
			synchronize_rcu();
		for (i = 0; i < nr_gone; i++)
			twheel_page_put(&tw->memory, gone[i]);
		cond_resched();
	}
}

/* Make the words of all places. */
static int words_make(struct tw_ctx *tw) __must_hold(&tw->places.mutex)
{
	u32 nr, end = DIV_ROUND_UP(tw->places.pages.nr * PLACES_PER_PAGE, WORDS_PER_PAGE);
	int err = 0;

	for (nr = 0; nr < end; nr++) {
		if (words_are_wanted(tw, nr))
			err = words_add(tw, nr);
		else if (nr == tw->words.pages.nr)
			err = twheel_pages_add(&tw->words.pages, &tw->memory, NULL);
		if (err)
			return err;
		/* A million timeouts have 2,000 pages of words: let a fatal signal end this. */
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/*
 * Make the refresh table before it is mapped, under mmap_lock.  If that fails, have the work item
 * free what was made, and return an error of twheel_page_get(), or -EINTR by a fatal signal.
 */
int twheel_map_words(struct tw_ctx *tw)
{
	int err = 0;

	if (mutex_lock_killable(&tw->places.mutex))
		return -EINTR;
	if (!tw->words.hole)
		err = twheel_page_get(&tw->memory, &tw->words.hole);
	if (!err && !tw->words.made)
		err = words_make(tw);
	if (!err)
		WRITE_ONCE(tw->words.made, true);
	else if (!tw->words.made)
		mod_delayed_work(twheel_memory_queue, &tw->memory.shrink, 0);
	mutex_unlock(&tw->places.mutex);
	return err;
}

/*
 * Return the address space through which users map the refresh table.  Each wheel has one of its
 * own, so that unmap_mapping_range() finds the users of this wheel only: all open files of the
 * device share that of the inode, also those of REOPEN, so the host stays.
 */
struct address_space *twheel_mapping(struct tw_ctx *tw, struct file *file)
{
	tw->words.mapping.host = file_inode(file);
	tw->words.mapping.a_ops = &empty_aops;
	return &tw->words.mapping;
}

/* Return the page of words or the hole, in an RCU read section; NULL beyond the table's end. */
static void *words_seen(struct twheel_words *words, unsigned long nr)
{
	if (nr >= READ_ONCE(words->pages.nr))
		return NULL;
	return pages_at(&words->pages, nr) ?: words->hole;
}

/* Return the page that a page fault maps, locked and referenced; NULL beyond the table's end. */
struct page *twheel_words_lock(struct tw_ctx *tw, unsigned long nr)
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
		twheel_syncpoint(SYNC_WORDS_FOUND);
		lock_page(page);
		rcu_read_lock();
		words = words_seen(&tw->words, nr);
		rcu_read_unlock();
		twheel_syncpoint(SYNC_WORDS_LOCKED);
		/*
		 * Pairs with the page lock in words_set(): the table keeps this page as long as it
		 * is locked.  Test: litmus words_mapped
		 */
		if (words == page_address(page))
			return page;
		unlock_page(page);
		put_page(page);
	}
}

/* Free the refresh table at the last close. */
void twheel_words_free(struct twheel_words *words)
{
	twheel_pages_free(&words->pages);
	free_page((unsigned long)words->hole);
}
