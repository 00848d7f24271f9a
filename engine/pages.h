/* SPDX-License-Identifier: GPL-2.0 */
/* Pages that a wheel allocates, and tables of pages */
#ifndef _TWHEEL_ENGINE_PAGES_H
#define _TWHEEL_ENGINE_PAGES_H

#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/workqueue.h>

struct twheel_user;

/**
 * struct twheel_memory - the account of a wheel's memory
 * @user: the user who opened the wheel and is charged; constant
 * @charged: bytes charged to @user for this wheel; atomic
 * @shrink: gives memory back that the wheel does not need; see places.c
 */
struct twheel_memory {
	struct twheel_user *user;
	atomic_long_t charged;
	struct delayed_work shrink;
};

/*
 * Runs @shrink of all wheels: one at a time, because each may wait for grace periods, users may
 * have many wheels, and there is no hurry.
 */
extern struct workqueue_struct *twheel_memory_queue;

/**
 * struct twheel_array - the pages by number
 * @rcu: for freeing the table
 * @size: bytes that the table takes, a multiple of a page; constant
 * @page: the pages below struct twheel_pages.nr; NULL for a page that was freed.  Written
 *	under &twheel_pages.mutex, read under RCU.
 */
struct twheel_array {
	struct rcu_head rcu;
	size_t size;
	void *page[];
};

/**
 * struct twheel_pages - pages that are found by number
 * @table: NULL until the first page is added; replaced under @mutex, read under RCU
 * @nr: pages in @table; written under @mutex with a release, read without it
 * @mutex: &twheel_places.mutex; constant
 */
struct twheel_pages {
	struct twheel_array __rcu *table;
	u32 nr;
	struct mutex *mutex;	/* changes of the table */
};

/*
 * Find a page below pages->nr.  Return NULL if it was freed.  The caller is in an RCU read section,
 * or holds pages->mutex.  Test: litmus table_filled, table_freed
 */
static __always_inline void *pages_get(const struct twheel_pages *pages, u32 nr)
{
	struct twheel_array *table;

	table = rcu_dereference_check(pages->table, rcu_read_lock_any_held() ||
				      lockdep_is_held(pages->mutex));
	/* Pairs with the release in twheel_pages_set().  Test: litmus page_filled */
	return READ_ONCE(table->page[nr]);
}

/*
 * Find a page by any number.  Return NULL if there is none, or if it was freed.  G7 cost does not
 * grow: it takes two loads, however many pages there are.  For the caller, see pages_get().
 */
static __always_inline void *pages_at(const struct twheel_pages *pages, u32 nr)
{
	/*
	 * Pairs with the release in twheel_pages_add(): the table has this many pages.
	 * Test: litmus table_page, table_grown
	 */
	u32 end = smp_load_acquire(&pages->nr);

	if (unlikely(nr >= end))
		return NULL;
	return pages_get(pages, array_index_nospec(nr, end));
}

int twheel_pages_add(struct twheel_pages *pages, struct twheel_memory *memory, void *page)
	__must_hold(pages->mutex);
void twheel_pages_set(struct twheel_pages *pages, u32 nr, void *page) __must_hold(pages->mutex);
void twheel_pages_free(struct twheel_pages *pages);
int twheel_memory_charge(struct twheel_memory *memory, size_t bytes);
void twheel_memory_uncharge(struct twheel_memory *memory, size_t bytes);
int twheel_page_get(struct twheel_memory *memory, void **page);
void twheel_page_put(struct twheel_memory *memory, void *page);
void twheel_page_put_rcu(struct twheel_memory *memory, void *page);
void *twheel_area_alloc(size_t size);
void twheel_area_free(void *area, size_t size);
int twheel_area_get(struct twheel_memory *memory, size_t size, void **area);

#endif /* _TWHEEL_ENGINE_PAGES_H */
