/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages that a wheel allocates, and the user who is charged for them
 */
#ifndef _TWHEEL_ENGINE_MEMORY_H
#define _TWHEEL_ENGINE_MEMORY_H

#include <linux/atomic.h>
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
 * Runs @shrink of all wheels: one work item at a time, because each may wait for grace periods, and
 * users may have many wheels.  None of them is in a hurry.
 */
extern struct workqueue_struct *twheel_memory_queue;

int twheel_memory_charge(struct twheel_memory *memory, size_t bytes);
void twheel_memory_uncharge(struct twheel_memory *memory, size_t bytes);
int twheel_page_get(struct twheel_memory *memory, void **page);
void twheel_page_put(struct twheel_memory *memory, void *page);
void twheel_page_put_rcu(struct twheel_memory *memory, void *page);
void *twheel_area_alloc(size_t size);
void twheel_area_free(void *area, size_t size);
int twheel_area_get(struct twheel_memory *memory, size_t size, void **area);

#endif /* _TWHEEL_ENGINE_MEMORY_H */
