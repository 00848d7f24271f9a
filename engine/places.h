/* SPDX-License-Identifier: GPL-2.0 */
/* The places of timeouts, in pages that are handed out as a slab is */
#ifndef _TWHEEL_ENGINE_PLACES_H
#define _TWHEEL_ENGINE_PLACES_H

#include <linux/cache.h>

#include "account.h"
#include "pages.h"
#include "timeout.h"

struct tw_ctx;

/**
 * struct twheel_places - the places of a wheel
 * @pages: pages of places, by index / PLACES_PER_PAGE; guarded as struct twheel_pages says
 * @mutex: serialises adding and removing pages, and sleeps because they are allocated under it.
 *	mmap() takes it under mmap_lock, so nothing under it may touch user memory.  tw_ctx.lock
 *	and @lock are taken under it.
 * @first_gap: no page is missing in the table before this number; @mutex
 * @first_gen: generation of the places of a new page: above those of all ids of removed pages;
 *	@mutex
 * @max_pending: limit of @nr_taken; written under &twheel_control.mutex, constant once the wheel
 *	has started
 * @lock: guards the members below, and the free places of each page.  It is taken under
 *	tw_ctx.lock, @mutex or neither; no other lock of the engine is taken under it.
 * @partly: pages with places in use and places that are free; @lock
 * @unused: pages whose places are all free; @lock
 * @nr_unused: length of @unused; @lock
 * @nr_pages: number of pages; @lock
 * @nr_taken: places in use, and those that an ARM has taken: they count against @max_pending.
 *	Written under @lock, read without it.
 */
struct twheel_places {
	struct twheel_pages pages ____cacheline_aligned_in_smp;
	struct mutex mutex;	/* adding and removing pages */
	u32 first_gap;
	u32 first_gen;
	u32 max_pending;

	spinlock_t lock ____cacheline_aligned_in_smp;	/* taking places and giving them back */
	struct hlist_head partly;
	struct hlist_head unused;
	u32 nr_unused;
	u32 nr_pages;
	u32 nr_taken;
};

/* This many unused pages are not worth giving back. */
#define UNUSED_SLACK	6U

/*
 * Return whether unused pages should be given back.  Half as many as the pages in use are kept, as
 * they may soon be needed.
 */
static inline bool places_are_wasted(const struct twheel_places *places)
{
	return places->nr_unused > UNUSED_SLACK + (places->nr_pages - places->nr_unused) / 2;
}

/*
 * Find the place of an index, whatever its state; NULL if its page does not exist.  The caller is
 * in an RCU read section, or holds the wheel's lock, which counts as one.
 */
static __always_inline struct twheel_timeout *place_at(const struct twheel_places *places,
						       u32 index)
{
	struct twheel_page *page = pages_at(&places->pages, index / PLACES_PER_PAGE);

	return page ? page->timeout + index % PLACES_PER_PAGE : NULL;
}

/*
 * Find the live timeout of an id, under the wheel's lock.  G8 stale ids are harmless: the word of
 * the place has another generation.
 */
static __always_inline struct twheel_timeout *timeout_by_id(const struct twheel_places *places,
							    u64 id)
{
	struct twheel_timeout *t = place_at(places, id_index(id));

	return likely(place_has_live(t, id)) ? t : NULL;
}

/*
 * If the places take more pages than this, 8 MB, a batch prefetches what it is about to access, so
 * that its cache misses overlap.  By keys, or with words, it does from a quarter of that on: these
 * are accessed as well, and found one after another.
 */
#define PREFETCH_PAGES	2048U

static __always_inline u32 place_bit(const struct twheel_page *page, const struct twheel_timeout *t)
{
	return timeout_index(t) - page->first_index;
}

/* The word of &twheel_page.free with a bit.  For why it is no array element, see user_access.h. */
static __always_inline unsigned long *page_free_word(struct twheel_page *page, u32 bit)
{
	return page->free + BIT_WORD(bit);
}

static __always_inline bool page_has_free(const struct twheel_page *page)
{
	unsigned long any = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(page->free); i++)
		any |= *(page->free + i);
	return any;
}

/* Count places for place_free(). */
static __always_inline void places_count_free(struct twheel_places *places, unsigned int nr)
	__must_hold(&places->lock)
{
	WRITE_ONCE(places->nr_taken, places->nr_taken - nr);
	counter_add(COUNTER_TIMEOUTS, -(u64)nr);
}

/*
 * Free a place whose timeout has ended, or which an ARM has not used; the caller counts it.  G8:
 * from now on the old id names nothing.  If the generations of the place are used up, it is not
 * used again.
 */
static __always_inline void place_free(struct twheel_places *places, struct twheel_timeout *t)
	__must_hold(&places->lock)
{
	struct twheel_page *page = timeout_page(t);
	u32 bit;

	lockdep_assert_held(&places->lock);
	if (unlikely(!timeout_end(t)))
		return;
	bit = place_bit(page, t);
	if (unlikely(!page_has_free(page)))
		hlist_add_head(&page->node, &places->partly);
	*page_free_word(page, bit) |= BIT_MASK(bit);
	if (unlikely(!--page->nr_used)) {
		__hlist_del(&page->node);
		hlist_add_head(&page->node, &places->unused);
		places->nr_unused++;
	}
}

/* Account for @nr places of a page that the caller has taken. */
static __always_inline void page_use(struct twheel_places *places, struct twheel_page *page,
				     unsigned int nr) __must_hold(&places->lock)
{
	if (!page->nr_used) {
		places->nr_unused--;
		__hlist_del(&page->node);
		hlist_add_head(&page->node, &places->partly);
	}
	if (!page_has_free(page))
		__hlist_del(&page->node);
	page->nr_used += nr;
}

static __always_inline struct twheel_page *page_with_free(struct twheel_places *places)
	__must_hold(&places->lock)
{
	struct hlist_node *node = places->partly.first ?: places->unused.first;

	return node ? hlist_entry(node, struct twheel_page, node) : NULL;
}

/* Take a free place; NULL at max_pending, or if a page has to be added. */
static __always_inline struct twheel_timeout *place_pop(struct twheel_places *places)
	__must_hold(&places->lock)
{
	struct twheel_page *page = page_with_free(places);
	struct twheel_timeout *t;
	unsigned long *word;

	if (unlikely(!page || places->nr_taken >= places->max_pending))
		return NULL;
	word = page->free;
	while (!*word)
		word++;
	t = page->timeout + (word - page->free) * BITS_PER_LONG + __ffs(*word);
	*word &= *word - 1;
	page_use(places, page, 1);
	WRITE_ONCE(places->nr_taken, places->nr_taken + 1);
	counter_add(COUNTER_TIMEOUTS, 1);
	return t;
}

void twheel_places_init(struct tw_ctx *tw);
int twheel_places_take(struct tw_ctx *tw, unsigned int nr, bool nowait,
		       struct twheel_timeout **first);
void twheel_place_refused(struct tw_ctx *tw);
int twheel_places_provide(struct tw_ctx *tw);
struct twheel_timeout *twheel_place_take_locked(struct tw_ctx *tw);
int twheel_place_take_again(struct tw_ctx *tw, struct twheel_timeout *t);
void twheel_places_give(struct tw_ctx *tw, struct twheel_timeout *first);
void twheel_places_freed(struct tw_ctx *tw, u32 nr_before);
int twheel_extra_provide(struct tw_ctx *tw, u32 index, bool nowait);
void twheel_places_free(struct twheel_places *places);

#endif /* _TWHEEL_ENGINE_PLACES_H */
