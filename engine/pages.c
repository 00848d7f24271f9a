// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that a wheel allocates, and tables in which they are found by their number
 *
 * All memory that a user makes a wheel allocate is charged to that user, see account.c.  It is
 * allocated in whole pages: kmalloc() would put small objects of many wheels into one page, and
 * that page would stay allocated until the last object in it is freed.
 *
 * Three things are allocated elsewhere: open files (WHEEL_SIZE has the bytes of the first one), the
 * user (account.c charges it), and the hash table of a keyed wheel.  The kernel allocates that, and
 * keys.c charges the user for as much as it may take; no memory cgroup is charged for it.
 *
 * Any thread finds a page in a table under RCU.  If a table is full, a larger one replaces it, and
 * the old table is freed after a grace period.
 */
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "account.h"
#include "pages.h"
#include "twheel_compat.h"

/*
 * The memory cgroup of the caller is charged as well.  If an allocation would call the OOM killer,
 * it fails instead, and the caller gets -ENOMEM.
 */
#define GFP_TWHEEL	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

struct workqueue_struct *twheel_memory_queue;

/* Charge memory before a wheel allocates it.  For errors see twheel_charge(). */
int twheel_memory_charge(struct twheel_memory *memory, size_t bytes)
{
	int err = twheel_charge(memory->user, bytes);

	if (!err)
		atomic_long_add(bytes, &memory->charged);
	return err;
}

void twheel_memory_uncharge(struct twheel_memory *memory, size_t bytes)
{
	atomic_long_sub(bytes, &memory->charged);
	twheel_uncharge(memory->user, bytes);
}

/* Allocate a zeroed page and charge it.  Return 0, -ENOMEM, or -ENOSPC at the limit of memory. */
int twheel_page_get(struct twheel_memory *memory, void **page)
{
	return twheel_area_get(memory, PAGE_SIZE, page);
}

void twheel_page_put(struct twheel_memory *memory, void *page)
{
	free_page((unsigned long)page);
	twheel_memory_uncharge(memory, PAGE_SIZE);
}

static void page_free_rcu(struct rcu_head *head)
{
	__free_page(container_of(head, struct page, rcu_head));
}

/*
 * Free a page after a grace period, but take back its charge now.  Users have never mapped it, and
 * no lookup finds it any more.
 */
void twheel_page_put_rcu(struct twheel_memory *memory, void *page)
{
	twheel_memory_uncharge(memory, PAGE_SIZE);
	call_rcu_hurry(&virt_to_page(page)->rcu_head, page_free_rcu);
}

/* Up to this size, try contiguous pages first: they need no mapping of their own. */
#define AREA_CONTIGUOUS		(8 * PAGE_SIZE)

/* Allocate zeroed pages, contiguous in the kernel's address space, without a charge; or NULL. */
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

/* Free an area of the @size that was asked for, or NULL; leave its charge to the caller. */
void twheel_area_free(void *area, size_t size)
{
	if (is_vmalloc_addr(area))
		vfree(area);
	else if (area)
		free_pages_exact(area, size);
}

/* Allocate an area and charge it.  For errors see twheel_page_get(). */
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

static u32 table_capacity(const struct twheel_array *table)
{
	return (table->size - offsetof(struct twheel_array, page)) / sizeof(void *);
}

static void table_free_rcu(struct rcu_head *rcu)
{
	struct twheel_array *table = container_of(rcu, struct twheel_array, rcu);

	twheel_area_free(table, table->size);
}

static struct twheel_array *pages_table(const struct twheel_pages *pages) __must_hold(pages->mutex)
{
	return rcu_dereference_protected(pages->table, lockdep_is_held(pages->mutex));
}

/* Replace the table by one of twice the size, or make the first one. */
static int table_grow(struct twheel_pages *pages, struct twheel_memory *memory,
		      struct twheel_array *old) __must_hold(pages->mutex)
{
	size_t size = old ? 2 * old->size : PAGE_SIZE;
	struct twheel_array *table;
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

/*
 * Add a page, or NULL for a number without a page, at the end of a table.  If the table cannot
 * grow, return an error of twheel_page_get().
 */
int twheel_pages_add(struct twheel_pages *pages, struct twheel_memory *memory, void *page)
	__must_hold(pages->mutex)
{
	struct twheel_array *table = pages_table(pages);

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

/*
 * Replace the page at a number that the table has; NULL for none.  Other threads may use the old
 * page until a grace period has passed.
 */
void twheel_pages_set(struct twheel_pages *pages, u32 nr, void *page) __must_hold(pages->mutex)
{
	/* Pairs with the READ_ONCE in pages_get().  Test: litmus page_filled */
	smp_store_release(&pages_table(pages)->page[nr], page);
}

/*
 * Free a table and all its pages at the last close.  Leave their charges: twheel_destroy() takes
 * back all of a wheel at once.
 */
void twheel_pages_free(struct twheel_pages *pages)
{
	/* The last close needs neither the mutex nor RCU. */
	struct twheel_array *table = rcu_dereference_raw(pages->table);
	u32 i;

	for (i = 0; i < pages->nr; i++) {
		free_page((unsigned long)table->page[i]);
		cond_resched();
	}
	if (table)
		twheel_area_free(table, table->size);
}
