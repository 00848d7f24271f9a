/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The words of the refresh table, by which users move deadlines with a store
 */
#ifndef _TWHEEL_ENGINE_WORDS_H
#define _TWHEEL_ENGINE_WORDS_H

#include <linux/fs.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "pages.h"
#include "timeout.h"

struct twheel;

/*
 * The refresh table has one word for each index, in pages that users map.  A user may
 * store into a word at any time.  So the engine reads a word once, and follows it only if
 * the word has the generation of the timeout, and only to a later deadline.
 */
#define WORDS_PER_PAGE		(PAGE_SIZE / sizeof(u64))

/**
 * struct twheel_words - the refresh table
 * @pages: pages of words, by index / WORDS_PER_PAGE; empty until the table is mapped for
 *	the first time.  A page of words exists as long as a page of places has its
 *	words in it.  Guarded as struct twheel_pages says.
 * @made: the table was mapped, and from then on each place gets its word before it is
 *	used; written under &twheel_arena.mutex, read without it by the kthread
 * @hole: the page that users see if @pages has none.  Only the users of this wheel see
 *	it, and the engine never reads it, so a store through a stale id does no harm.
 *	Set under &twheel_arena.mutex when the table is first mapped, constant after
 *	that.
 * @mapping: the address space through which users map the table; constant once the file
 *	is open
 * @work: frees the pages of words that no place needs; queued by twheel_refresh_shrink()
 */
struct twheel_words {
	struct twheel_pages pages;
	bool made;
	void *hole;
	struct address_space mapping;
	struct work_struct work;
};

/* Find the word of an index, or NULL.  The caller is in an RCU read section. */
static inline u64 *word_at(struct twheel_words *words, u32 index)
{
	u64 *word = pages_at(&words->pages, index / WORDS_PER_PAGE);

	return word ? &word[index % WORDS_PER_PAGE] : NULL;
}

/*
 * Begin a life with a word that asks for nothing.  A store for an earlier life of the
 * place must not move this one.  G8 stale ids are harmless: the word now has the
 * generation of the new id, so a user who stores through an older id can see that the id
 * is stale.
 */
static inline void word_begin(struct twheel_words *words, const struct twheel_timeout *t,
			      u64 state)
{
	u64 *word;

	/* If the table is made later, words_begin() writes the word. */
	if (!READ_ONCE(words->pages.nr))
		return;
	rcu_read_lock();
	word = word_at(words, timeout_index(t));
	if (word)
		WRITE_ONCE(*word, state_gen(state) & TWHEEL_REFRESH_GEN_MASK);
	rcu_read_unlock();
}

/*
 * Return the deadline in force: the deadline as armed, or a later one that a user has
 * stored.  G8 stale ids are harmless: a store through a stale id has another generation,
 * and is ignored.  The caller holds events.lock, which counts as an RCU read section.
 */
static inline u64 timeout_deadline_ns(struct twheel_words *words,
				      const struct twheel_timeout *t,
				      u64 state)
{
	u64 word_ns, deadline_ns = READ_ONCE(t->deadline_ns);
	u64 *word;

	if (!READ_ONCE(words->pages.nr) || state_is_periodic(state) ||
	    !state_is_pending(state))
		return deadline_ns;
	word = word_at(words, timeout_index(t));
	if (!word)
		return deadline_ns;
	word_ns = READ_ONCE(*word);
	if ((word_ns ^ state_gen(state)) & TWHEEL_REFRESH_GEN_MASK)
		return deadline_ns;
	word_ns &= ~(u64)TWHEEL_REFRESH_GEN_MASK;
	/* A time after the end of time means the end of time, as it does in ARM. */
	return max(deadline_ns, min(word_ns, TWHEEL_TIME_NEVER));
}

void *twheel_words_page(struct twheel_words *words, u32 nr)
	__must_hold(words->pages.mutex);
void twheel_words_set(struct twheel *tw, u32 nr, void *page)
	__must_hold(&tw->arena.mutex);
int twheel_words_add(struct twheel *tw, u32 nr)
	__must_hold(&tw->arena.mutex);
int twheel_words_provide(struct twheel *tw, u32 first_index)
	__must_hold(&tw->arena.mutex);
void twheel_words_free(struct twheel_words *words);

#endif /* _TWHEEL_ENGINE_WORDS_H */
