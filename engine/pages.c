// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that are found by their number, in two loads
 *
 * Any thread looks a page up under RCU.  When the table is full, a larger one replaces
 * it, and the old table is freed after a grace period.
 *
 * Locks: &twheel_pages.mutex, which the caller holds to change a table.  Look-ups take
 * none.
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

/* Replace the table by one of twice the size, or make the first one. */
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
 * twheel_pages_add() - add a page at the end of a table
 * @pages: the table
 * @memory: the account to charge when the table grows
 * @page: the page; NULL for a number without a page
 *
 * Context: process; sleeps; under @pages->mutex.
 * Return: 0, -ENOMEM, or -ENOSPC at the limit of memory.
 */
int twheel_pages_add(struct twheel_pages *pages, struct twheel_memory *memory, void *page)
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
	/* Pairs with the acquire in pages_at().  Test: litmus table_page, table_grown */
	smp_store_release(&pages->nr, pages->nr + 1);
	return 0;
}

/**
 * twheel_pages_set() - put a page at a number, or take the page away
 * @pages: the table
 * @nr: the number, which the table has
 * @page: the new page; NULL for none
 *
 * Other threads may use the page that was there until a grace period has passed.
 *
 * Context: process; under @pages->mutex.
 */
void twheel_pages_set(struct twheel_pages *pages, u32 nr, void *page)
	__must_hold(pages->mutex)
{
	/* Pairs with the READ_ONCE in pages_get().  Test: litmus page_filled */
	smp_store_release(&pages_table(pages)->page[nr], page);
}

/**
 * twheel_pages_free() - free a table and all its pages at the last close
 * @pages: the table, which no other thread uses any more
 *
 * The charges remain: twheel_destroy() takes back all of a wheel at once.
 *
 * Context: process; sleeps.
 */
void twheel_pages_free(struct twheel_pages *pages)
{
	/* The last close needs neither the mutex nor RCU. */
	struct twheel_table *table = rcu_dereference_raw(pages->table);
	u32 i;

	for (i = 0; i < pages->nr; i++) {
		free_page((unsigned long)table->page[i]);
		cond_resched();
	}
	if (table)
		twheel_area_free(table, table->size);
}
