// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that a wheel allocates, and the user who is charged for them
 *
 * All memory that a user makes a wheel allocate is charged to that user, see user.c.  What
 * is allocated here comes in whole pages.  kmalloc() would put small objects of many wheels
 * into one page, and that page stays allocated as long as a single object in it lives.
 *
 * Three things do not come from here: the open file (its bytes are in WHEEL_SIZE), the user
 * (user.c charges it), and the hash table of a keyed wheel.  The kernel allocates that, and
 * keys.c charges the user for as much as it may take; no memory cgroup is charged for it.
 *
 * Locks: none.  The counters are atomic.
 */
#include <linux/atomic.h>
#include <linux/container_of.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/vmalloc.h>

#include "memory.h"
#include "twheel_compat.h"
#include "user.h"

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
