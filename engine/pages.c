// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that a wheel allocates, and tables in which they are found by their number
 *
 * All memory that a user makes a wheel allocate is charged to that user, see account.c.  What is
 * allocated here comes in whole pages: kmalloc() would put small objects of many wheels into one
 * page, and that page stays allocated as long as a single object in it lives.
 *
 * Three things do not come from here: the open file (its bytes are in WHEEL_SIZE), the user
 * (account.c charges it), and the hash table of a keyed wheel.  The kernel allocates that, and
 * keys.c charges the user for as much as it may take; no memory cgroup is charged for it.
 *
 * Any thread finds a page in a table under RCU.  When a table is full, a larger one replaces it,
 * and the old table is freed after a grace period.
 *
 * Locks: &twheel_pages.mutex, which the caller holds to change a table.  The counters are atomic.
 */
#include <linux/container_of.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "account.h"
#include "pages.h"
#include "twheel_compat.h"

/*
 * The memory cgroup of the caller is charged as well.  An allocation that would otherwise
 * call the OOM killer fails, and the caller gets -ENOMEM.
 */
#define GFP_TWHEEL	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

struct workqueue_struct *twheel_memory_queue;

/**
 * twheel_memory_charge() - charge memory before a wheel allocates it
 * @memory: the wheel's account
 * @bytes: how much
 *
 * Context: any.
 * Return: 0, or -ENOSPC at the limit of the user or of all users.
 */
int twheel_memory_charge(struct twheel_memory *memory, size_t bytes)
{
	int err = twheel_charge(memory->user, bytes);

	if (!err)
		atomic_long_add(bytes, &memory->charged);
	return err;
}

/**
 * twheel_memory_uncharge() - take back the charge for memory that a wheel has freed
 * @memory: the wheel's account
 * @bytes: how much
 *
 * Context: any.
 */
void twheel_memory_uncharge(struct twheel_memory *memory, size_t bytes)
{
	atomic_long_sub(bytes, &memory->charged);
	twheel_uncharge(memory->user, bytes);
}

/**
 * twheel_page_get() - allocate a zeroed page and charge it
 * @memory: the account to charge
 * @page: out: the page
 *
 * Context: process; sleeps.
 * Return: 0, -ENOMEM, or -ENOSPC at the limit of memory.
 */
int twheel_page_get(struct twheel_memory *memory, void **page)
{
	return twheel_area_get(memory, PAGE_SIZE, page);
}

/**
 * twheel_page_put() - free a page of twheel_page_get() and take back its charge
 * @memory: the account that was charged
 * @page: the page
 *
 * Context: any.
 */
void twheel_page_put(struct twheel_memory *memory, void *page)
{
	free_page((unsigned long)page);
	twheel_memory_uncharge(memory, PAGE_SIZE);
}

static void page_free_rcu(struct rcu_head *head)
{
	__free_page(container_of(head, struct page, rcu_head));
}

/**
 * twheel_page_put_rcu() - free a page after a grace period, and take back its charge now
 * @memory: the account that was charged
 * @page: the page, which users have never mapped; no look-up finds it any more
 *
 * Context: any.
 */
void twheel_page_put_rcu(struct twheel_memory *memory, void *page)
{
	twheel_memory_uncharge(memory, PAGE_SIZE);
	call_rcu_hurry(&virt_to_page(page)->rcu_head, page_free_rcu);
}

/* Up to this size, try contiguous pages first: they need no mapping of their own. */
#define AREA_CONTIGUOUS		(8 * PAGE_SIZE)

/**
 * twheel_area_alloc() - allocate several zeroed pages without a charge
 * @size: bytes
 *
 * Context: process; sleeps.
 * Return: the pages, contiguous in the kernel's address space, or NULL.
 */
void *twheel_area_alloc(size_t size)
{
	void *area = NULL;

	if (size <= PAGE_SIZE)
		return (void *)get_zeroed_page(GFP_TWHEEL);
	if (size <= AREA_CONTIGUOUS)
		area = alloc_pages_exact(size, GFP_KERNEL_ACCOUNT | __GFP_ZERO |
					 __GFP_NORETRY | __GFP_NOWARN);
	return area ?: __vmalloc(size, GFP_TWHEEL | __GFP_ZERO);
}

/**
 * twheel_area_free() - free an area of twheel_area_alloc() or twheel_area_get()
 * @area: the pages; NULL for none
 * @size: bytes, as they were asked for
 *
 * The charge of twheel_area_get() remains: the caller takes it back.
 *
 * Context: any but hard interrupts.
 */
void twheel_area_free(void *area, size_t size)
{
	if (is_vmalloc_addr(area))
		vfree(area);
	else if (area)
		free_pages_exact(area, size);
}

/**
 * twheel_area_get() - allocate several zeroed pages and charge them
 * @memory: the account to charge
 * @size: bytes
 * @area: out: the pages
 *
 * Context: process; sleeps.
 * Return: 0, -ENOMEM, or -ENOSPC at the limit of memory.
 */
int twheel_area_get(struct twheel_memory *memory, size_t size, void **area)
{
	int err = twheel_memory_charge(memory, PAGE_ALIGN(size));

	if (err)
		return err;
	*area = twheel_area_alloc(size);
	if (*area)
		return 0;
	twheel_memory_uncharge(memory, PAGE_ALIGN(size));
	return -ENOMEM;
}

/* Tables */

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
