/* SPDX-License-Identifier: GPL-2.0 */
/* The refresh table: users move a deadline by a store into its word */
#ifndef _TWHEEL_ENGINE_REFRESH_H
#define _TWHEEL_ENGINE_REFRESH_H

#include <linux/fs.h>
#include <linux/twheel.h>

#include "pages.h"
#include "timeout.h"

struct tw_ctx;

/*
 * The refresh table has one word for each index, in pages that users map.  A user may store into a
 * word at any time.  So the engine reads a word once, and follows it only if it has the generation
 * of the timeout, and only to a later deadline.
 *
 * A deadline is stored in grains of 2^shift ns, modulo 2^36.  The engine completes it from the
 * deadline that it knows.
 */
#define WORDS_PER_PAGE		(PAGE_SIZE / sizeof(u64))

/**
 * struct twheel_words - the refresh table
 * @pages: pages of words, by index / WORDS_PER_PAGE; refresh.c says when there is one.  Guarded as
 *	struct twheel_pages says.
 * @made: the table was mapped: from now on each place gets its word before it is used; written
 *	under &twheel_places.mutex, read without it by any thread
 * @hole: the page that users see if @pages has none.  Only the users of this wheel see it, and the
 *	engine never reads it, so a store through a stale id does no harm.  Set under
 *	&twheel_places.mutex when the table is first mapped, constant after that.
 * @mapping: the address space through which users map the table; constant once the file is open
 * @shift: a grain is 2^@shift ns, more than half a tick and a tick at most; written under
 *	&twheel_control.mutex before &twheel_control.started is set, constant after that
 */
struct twheel_words {
	struct twheel_pages pages;
	u32 shift;
	bool made;
	void *hole;
	struct address_space mapping;
};

/* Find the word of an index, or NULL.  The caller may call pages_get(). */
static __always_inline u64 *word_at(struct twheel_words *words, u32 index)
{
	u64 *word = pages_at(&words->pages, index / WORDS_PER_PAGE);

	return word ? &word[index % WORDS_PER_PAGE] : NULL;
}

/*
 * The word that leaves a timeout at its deadline.  It is rounded down to a grain, since a word
 * moves a timeout only to a later grain.
 */
static __always_inline u64 word_of_deadline(const struct twheel_words *words, u64 id,
					    u64 deadline_ns)
{
	return deadline_ns >> words->shift << TWHEEL_REFRESH_GEN_BITS |
	       (id >> GEN_SHIFT & TWHEEL_REFRESH_GEN_MASK);
}

/* Return whether new timeouts write their word.  If not, words_fill() writes it later. */
static __always_inline bool words_are_there(const struct twheel_words *words)
{
	return READ_ONCE(words->pages.nr);
}

/*
 * Write the word that asks for nothing.  G8 stale ids are harmless: a store for an earlier timeout
 * of the place must not move this one.  The word now has the generation of the new id, so a user
 * who stores through an older id can see that the id is stale.  The caller is in an RCU read
 * section, or holds the wheel's lock, which counts as one.
 */
static __always_inline void word_begin(struct twheel_words *words,
				       const struct twheel_timeout *t, u64 deadline_ns)
{
	u64 *word = word_at(words, timeout_index(t));

	if (word)
		WRITE_ONCE(*word, word_of_deadline(words, t->word, deadline_ns));
}

/*
 * Return the deadline in force, under the wheel's lock: the known one, or for a pending one-shot, a
 * later one that a user has stored.  G8 stale ids are harmless: a store through a stale id has
 * another generation, and is ignored.
 */
static inline u64 timeout_deadline_ns(struct twheel_words *words, const struct twheel_timeout *t)
{
	u64 grains, ahead, deadline_ns = timeout_known_ns(t);
	u64 *word;

	if (!words_are_there(words) || !timeout_is_pending(t) || timeout_is_periodic(t))
		return deadline_ns;
	word = word_at(words, timeout_index(t));
	if (!word)
		return deadline_ns;
	/*
	 * The grains are the upper bits of the word, so the subtraction is modulo 2^36, and its
	 * sign says which deadline is later.  If the generations are equal, the lower bits of the
	 * difference are 0.
	 */
	ahead = READ_ONCE(*word) - word_of_deadline(words, t->word, deadline_ns);
	if ((s64)ahead <= 0 || ahead & TWHEEL_REFRESH_GEN_MASK)
		return deadline_ns;
	/*
	 * G1 never early: this is at least one grain later than the known deadline rounded down.
	 * If it is after the end of time, it means the end of time, as in ARM.
	 */
	grains = (deadline_ns >> words->shift) + (ahead >> TWHEEL_REFRESH_GEN_BITS);
	return grains > TWHEEL_TIME_NEVER >> words->shift ? TWHEEL_TIME_NEVER :
							    grains << words->shift;
}

int twheel_words_provide(struct tw_ctx *tw, u32 first_index) __must_hold(&tw->places.mutex);
void twheel_refresh_shrink(struct tw_ctx *tw);
void twheel_words_free(struct twheel_words *words);

#endif /* _TWHEEL_ENGINE_REFRESH_H */
