/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The words of the refresh table: a deadline that its user moves by a store
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
 * The refresh table: a word per index, in pages of their own that users map.
 * They write there whenever they like; we read a word once, and believe it only
 * where it names the timeout's generation and moves it later.
 */
#define WORDS_PER_PAGE		(PAGE_SIZE / sizeof(u64))

/**
 * struct twheel_words - the refresh table
 * @pages: pages of words, by index / WORDS_PER_PAGE; none until the table is mapped.
 *	A page is there as long as some place has its word in it.
 * @made: the table was mapped, and each place has a word before it is used;
 *	&twheel_arena.mutex
 * @hole: the page that users see where @pages has none.  It belongs to this wheel's
 *	users alone, so a store through a stale id does no harm.  Constant once the
 *	table was mapped.
 * @mapping: the mapping by which users have mapped the table
 * @work: gives back pages that no place needs
 */
struct twheel_words {
	struct twheel_pages pages;
	bool made;
	void *hole;
	struct address_space mapping;
	struct work_struct work;
};

static inline u64 *word_at(struct twheel_words *words, u32 index)
{
	u64 *word = pages_at(&words->pages, index / WORDS_PER_PAGE);

	return word ? &word[index % WORDS_PER_PAGE] : NULL;
}

/*
 * A life begins: what was stored for an earlier one is not for this one.  Those
 * who store through an id see by the generation whether it is still good.
 */
static inline void word_begin(struct twheel_words *words, const struct twheel_timeout *t,
			      u64 state)
{
	u64 *word;

	/* A table that comes later begins with what there is then. */
	if (!READ_ONCE(words->pages.nr))
		return;
	rcu_read_lock();
	word = word_at(words, timeout_index(t));
	if (word)
		WRITE_ONCE(*word, state_gen(state) & TWHEEL_REFRESH_GEN_MASK);
	rcu_read_unlock();
}

/*
 * The deadline in force: as armed, or later, as refreshed.  G8: a store through
 * a stale id names another generation, and is not looked at.
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
	/* All above the end of time is the end of time, here as in ARM. */
	return max(deadline_ns, min(word_ns, TWHEEL_TIME_NEVER));
}

void *twheel_words_page(struct twheel_words *words, u32 nr)
	__must_hold(&tw->arena.mutex);
void twheel_words_set(struct twheel *tw, u32 nr, void *page)
	__must_hold(&tw->arena.mutex);
int twheel_words_add(struct twheel *tw, u32 nr)
	__must_hold(&tw->arena.mutex);
int twheel_words_provide(struct twheel *tw, u32 first_index)
	__must_hold(&tw->arena.mutex);
void twheel_words_free(struct twheel_words *words);

#endif /* _TWHEEL_ENGINE_WORDS_H */
