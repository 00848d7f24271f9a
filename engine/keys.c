// SPDX-License-Identifier: GPL-2.0
/*
 * The keys of a keyed wheel
 *
 * In a keyed wheel, user_data is the key of a timeout, and no two live timeouts have the
 * same key.  An index leads from a key to the timeout: a hash table of the kernel, with a
 * node for each place.  The nodes lie in pages of their own, which only a keyed wheel has.
 *
 * ARM puts a node into the index.  When the timeout ends, its node stays there with its key: a key
 * that is armed again finds the place that it had, which is free, and takes it, and the index does
 * not change.  A node leaves the index when its place is taken for another key, or its page is
 * removed.
 *
 * Locks: the callers hold twheel.lock to look keys up, to take them and to give them up.  The hash
 * table takes its own locks under it; when it has grown full, it may allocate atomically there,
 * and grows by a work item otherwise.  Pages of nodes are added and removed under places.mutex.
 */
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/rhashtable.h>
#include <linux/stddef.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "engine.h"
#include "keys.h"
#include "memory.h"
#include "pages.h"
#include "timeout.h"

/*
 * Charged for the hash table with each page of nodes.  The table has up to 2.7 buckets of
 * 8 bytes for each node in it when it has grown, 3.3 before it shrinks, and for a moment 4
 * while it grows, but not more than twheel_keys_start() allows; and pages of places stay until
 * half of them are free.
 */
#define INDEX_CHARGE	PAGE_SIZE

/*
 * The hash table is made for so many keys, or for half of max_pending.  It need not grow
 * for the first ones then, and takes FIRST_CHARGE bytes at most.
 */
#define FIRST_KEYS	3000U
#define FIRST_CHARGE	(8 * PAGE_SIZE)

/* Find the place that a node belongs to. */
static inline struct twheel_timeout *key_timeout(const struct twheel_key *key)
{
	const struct twheel_key_page *page =
		(const void *)((unsigned long)key & PAGE_MASK);
	u32 index = page->first_index + (key - page->key);
	struct twheel_page *places = pages_get(page->places, index / PLACES_PER_PAGE);

	return &places->timeout[index % PLACES_PER_PAGE];
}

/* Find the node of a place that the caller owns. */
static inline struct twheel_key *timeout_key(struct twheel_keys *keys,
					     const struct twheel_timeout *t)
{
	u32 index = timeout_index(t);
	struct twheel_key_page *page = pages_get(&keys->pages, index / KEYS_PER_PAGE);

	return &page->key[index % KEYS_PER_PAGE];
}

/* Compare a node with a key; 0 if they are the same. */
static inline int key_compare(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct twheel_key *key = obj;

	return key->key != *(const u64 *)arg->key;
}

static const struct rhashtable_params index_params = {
	.head_offset		= offsetof(struct twheel_key, node),
	.key_offset		= offsetof(struct twheel_key, key),
	.key_len		= sizeof(u64),
	.obj_cmpfn		= key_compare,
	.automatic_shrinking	= true,
};

/**
 * twheel_keys_start() - make the index of a keyed wheel
 * @tw: the wheel
 * @max_pending: its limit of timeouts
 *
 * Context: process; sleeps; under &twheel_control.mutex, before the wheel has started.
 * Return: 0, -ENOMEM, or -ENOSPC at the limit of memory.
 */
int twheel_keys_start(struct twheel *tw, u32 max_pending)
{
	struct rhashtable_params params = index_params;
	int err = twheel_memory_charge(&tw->memory, FIRST_CHARGE);

	if (err)
		return err;
	/*
	 * A bucket for two keys is the most: the next node of a chain is found as quickly as
	 * the first, and the table takes less memory and moves less often.
	 */
	params.nelem_hint = min(max_pending / 2, FIRST_KEYS);
	params.max_size = max(roundup_pow_of_two(max_pending) / 2, 4UL);
	err = rhashtable_init(&tw->keys.index, &params);
	if (err) {
		twheel_memory_uncharge(&tw->memory, FIRST_CHARGE);
		return err;
	}
	/* No number of keys is too many for the table. */
	tw->keys.index.max_elems = U32_MAX;
	/* Pairs with the acquire in twheel_is_keyed().  Test: litmus keyed */
	smp_store_release(&tw->keys.used, true);
	return 0;
}

/**
 * twheel_keys_provide() - make sure that the places of a page have nodes
 * @tw: the wheel, which is keyed
 * @page_nr: number of the page of places, which is about to be added
 *
 * Context: process; sleeps; under &twheel_places.mutex.
 * Return: 0, -ENOMEM, or -ENOSPC at the limit of memory.
 */
int twheel_keys_provide(struct twheel *tw, u32 page_nr)
	__must_hold(&tw->places.mutex)
{
	u32 nr = page_nr / PAGES_PER_KEY_PAGE;
	struct twheel_key_page *page;
	int err;

	if (pages_at(&tw->keys.pages, nr))
		return 0;
	err = twheel_memory_charge(&tw->memory, INDEX_CHARGE);
	if (err)
		return err;
	err = twheel_page_get(&tw->memory, (void **)&page);
	if (err)
		goto uncharge;
	page->places = &tw->places.pages;
	page->first_index = nr * KEYS_PER_PAGE;
	if (nr < tw->keys.pages.nr) {
		twheel_pages_set(&tw->keys.pages, nr, page);
		return 0;
	}
	err = twheel_pages_add(&tw->keys.pages, &tw->memory, page);
	if (!err)
		return 0;
	twheel_page_put(&tw->memory, page);
uncharge:
	twheel_memory_uncharge(&tw->memory, INDEX_CHARGE);
	return err;
}

/**
 * twheel_keys_remove() - give up the nodes of a page of places
 * @tw: the wheel, which is keyed
 * @page_nr: number of the page of places, which is not in the table; all its nodes are out of the
 *	index
 *
 * Context: process; under &twheel_places.mutex.
 */
void twheel_keys_remove(struct twheel *tw, u32 page_nr)
	__must_hold(&tw->places.mutex)
{
	u32 i, nr = page_nr / PAGES_PER_KEY_PAGE;
	struct twheel_key_page *page = pages_at(&tw->keys.pages, nr);

	for (i = 0; i < PAGES_PER_KEY_PAGE; i++)
		if (pages_at(&tw->places.pages, nr * PAGES_PER_KEY_PAGE + i))
			return;
	twheel_pages_set(&tw->keys.pages, nr, NULL);
	twheel_page_put_rcu(&tw->memory, page);
	twheel_memory_uncharge(&tw->memory, INDEX_CHARGE);
}

/* Whether a node is in the index: the last one of a chain does not lead to NULL either. */
static inline bool key_is_used(const struct twheel_key *node)
{
	return rcu_access_pointer(node->node.next);
}

/**
 * twheel_key_place() - find the place that has a key, or had it last
 * @tw: the wheel, which is keyed
 * @key: the key
 *
 * Context: under &twheel.lock.
 * Return: the place, or NULL.
 */
struct twheel_timeout *twheel_key_place(struct twheel *tw, u64 key)
	__must_hold(&tw->lock)
{
	const struct twheel_key *found;

	rcu_read_lock();
	found = rhashtable_lookup(&tw->keys.index, &key, index_params);
	rcu_read_unlock();
	return found ? key_timeout(found) : NULL;
}

/**
 * twheel_key_find() - find the live timeout that has a key
 * @tw: the wheel, which is keyed
 * @key: the key
 *
 * Context: under &twheel.lock.
 * Return: the timeout, or NULL.
 */
struct twheel_timeout *twheel_key_find(struct twheel *tw, u64 key)
	__must_hold(&tw->lock)
{
	struct twheel_timeout *t = twheel_key_place(tw, key);

	return t && timeout_is_live(t) ? t : NULL;
}

/* Take a node out of the index, if it is there. */
static void key_remove(struct twheel_keys *keys, struct twheel_key *node)
{
	if (!key_is_used(node))
		return;
	rhashtable_remove_fast(&keys->index, &node->node, index_params);
	RCU_INIT_POINTER(node->node.next, NULL);
}

/**
 * twheel_key_take() - give a place that was taken a key which no other place has
 * @tw: the wheel, which is keyed
 * @t: the place
 * @key: the key
 *
 * Context: under &twheel.lock; does not sleep.
 * Return: 0, or -ENOMEM.
 */
int twheel_key_take(struct twheel *tw, struct twheel_timeout *t, u64 key)
	__must_hold(&tw->lock)
{
	struct twheel_key *node = timeout_key(&tw->keys, t);

	key_remove(&tw->keys, node);
	node->key = key;
	/* It fails if the table is full of long chains, and cannot be made larger. */
	if (likely(!rhashtable_insert_fast(&tw->keys.index, &node->node, index_params)))
		return 0;
	RCU_INIT_POINTER(node->node.next, NULL);
	return -ENOMEM;
}

/**
 * twheel_key_drop() - take the node of a place out of the index, if it is there
 * @tw: the wheel, which is keyed
 * @t: the place, whose timeout has ended
 *
 * Context: under &twheel.lock; does not sleep.
 */
void twheel_key_drop(struct twheel *tw, struct twheel_timeout *t)
	__must_hold(&tw->lock)
{
	lockdep_assert_held(&tw->lock);
	key_remove(&tw->keys, timeout_key(&tw->keys, t));
}

/**
 * twheel_keys_free() - free the index and the nodes at the last close
 * @keys: the keys, which no other thread uses any more
 *
 * The charges remain: twheel_destroy() takes back all of a wheel at once.
 *
 * Context: process; sleeps until a work item of the hash table has ended.
 */
void twheel_keys_free(struct twheel_keys *keys)
{
	if (keys->used)
		rhashtable_destroy(&keys->index);
	twheel_pages_free(&keys->pages);
}
