// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that are found by number, in two loads
 *
 * Readers look a page up under RCU.  The table grows by replacement: the old table is freed
 * after a grace period.
 *
 * Locks: &twheel_pages.mutex, which the caller holds to change a table.
 */
#include <linux/atomic.h>
#include <linux/container_of.h>
#include <linux/gfp.h>
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>

#include "memory.h"
#include "pages.h"
#include "twheel_compat.h"

static u32 table_capacity(const struct twheel_table *table)
{
	return (table->size - offsetof(struct twheel_table, page)) / sizeof(void *);
}

static void table_free_rcu(struct rcu_head *rcu)
{
	struct twheel_table *table = container_of(rcu, struct twheel_table, rcu);

	twheel_area_free(table, table->size);
}

static struct twheel_table *pages_table(const struct twheel_pages *pages)
	__must_hold(pages->mutex)
{
	return rcu_dereference_protected(pages->table, lockdep_is_held(pages->mutex));
}

/* A table with room for more, in place of one that is full or not there. */
static int table_grow(struct twheel_pages *pages, struct twheel_memory *memory,
		      struct twheel_table *old)
	__must_hold(pages->mutex)
{
	size_t size = old ? 2 * old->size : PAGE_SIZE;
	struct twheel_table *table;
	int err = twheel_area_get(memory, size, (void **)&table);

	if (err)
		return err;
	table->size = size;
	if (old)
		memcpy(table->page, old->page, pages->nr * sizeof(table->page[0]));
	rcu_assign_pointer(pages->table, table);
	if (old) {
		twheel_memory_uncharge(memory, old->size);
		call_rcu_hurry(&old->rcu, table_free_rcu);
	}
	return 0;
}

/**
 * twheel_pages_add() - put a page at the end of a table
 * @pages: the table
 * @memory: who pays when the table grows
 * @page: the page; NULL for none
 *
 * Context: process; sleeps; under @pages->mutex.
 * Return: 0, -ENOMEM, or -ENOSPC at the limit of memory.
 */
int twheel_pages_add(struct twheel_pages *pages, struct twheel_memory *memory,
			    void *page)
	__must_hold(pages->mutex)
{
	struct twheel_table *table = pages_table(pages);

	if (!table || pages->nr == table_capacity(table)) {
		int err = table_grow(pages, memory, table);

		if (err)
			return err;
		table = pages_table(pages);
	}
	table->page[pages->nr] = page;
	/* Pairs with the acquire in pages_at(). */
	smp_store_release(&pages->nr, pages->nr + 1);
	return 0;
}

/**
 * twheel_pages_set() - put a page where there was none, or none where there was one
 * @pages: the table
 * @nr: the page's number
 * @page: the page, NULL for none
 *
 * A page that was there may be in use until a grace period has passed.
 *
 * Context: process; under @pages->mutex.
 */
void twheel_pages_set(struct twheel_pages *pages, u32 nr, void *page)
	__must_hold(pages->mutex)
{
	/* Pairs with the READ_ONCE in pages_get(). */
	smp_store_release(&pages_table(pages)->page[nr], page);
}

/**
 * twheel_pages_free() - free a table and all its pages, uncharged
 * @pages: the table, which nobody else uses any more
 *
 * Context: process; sleeps.
 */
void twheel_pages_free(struct twheel_pages *pages)
{
	/* The last close: nobody else is left. */
	struct twheel_table *table = rcu_dereference_raw(pages->table);
	u32 i;

	for (i = 0; i < pages->nr; i++) {
		free_page((unsigned long)table->page[i]);
		cond_resched();
	}
	if (table)
		twheel_area_free(table, table->size);
}
