/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages that are found by number, in two loads
 */
#ifndef _TWHEEL_ENGINE_PAGES_H
#define _TWHEEL_ENGINE_PAGES_H

#include <linux/atomic.h>
#include <linux/nospec.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

struct mutex;
struct twheel_memory;

/**
 * struct twheel_table - from number to page
 * @rcu: for freeing it
 * @size: bytes that it takes, a multiple of a page
 * @page: the pages below struct twheel_pages.nr, NULL for one that was freed
 */
struct twheel_table {
	struct rcu_head rcu;
	size_t size;
	void *page[];
};

/**
 * struct twheel_pages - pages that are found by number
 * @table: RCU, replaced under @mutex
 * @nr: pages in @table; written under @mutex, released
 * @mutex: &twheel_arena.mutex, constant
 */
struct twheel_pages {
	struct twheel_table __rcu *table;
	u32 nr;
	struct mutex *mutex;
};

/* A page whose number is in the table; NULL if it was freed. */
static inline void *pages_get(const struct twheel_pages *pages, u32 nr)
{
	struct twheel_table *table;

	table = rcu_dereference_check(pages->table, rcu_read_lock_any_held());
	/* Pairs with the release in twheel_pages_set(). */
	return READ_ONCE(table->page[nr]);
}

/*
 * G7: a timeout is found in two loads, whatever pends.  NULL beyond the end, and
 * for a page that was freed.
 */
static inline void *pages_at(const struct twheel_pages *pages, u32 nr)
{
	u32 nr_pages;

	/* Pairs with the release in twheel_pages_add(): the table has that page. */
	nr_pages = smp_load_acquire(&pages->nr);
	if (unlikely(nr >= nr_pages))
		return NULL;
	return pages_get(pages, array_index_nospec(nr, nr_pages));
}

int twheel_pages_add(struct twheel_pages *pages, struct twheel_memory *memory,
			    void *page)
	__must_hold(pages->mutex);
void twheel_pages_set(struct twheel_pages *pages, u32 nr, void *page)
	__must_hold(pages->mutex);
void twheel_pages_free(struct twheel_pages *pages);

#endif /* _TWHEEL_ENGINE_PAGES_H */
