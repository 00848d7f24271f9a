// SPDX-License-Identifier: GPL-2.0
/*
 * The keys of a keyed wheel
 *
 * The index is a hash table of the kernel, with a node for each place.  ARM puts a node into it.
 * When the timeout ends, its node stays there with its key: if the key is armed again, ARM finds
 * the place that it had, which is free, and takes it, and the index does not change.  A node leaves
 * the index if its place is taken for another key, or its page is removed.
 *
 * If the hash table is full, it may allocate atomically under tw_ctx.lock; otherwise a work item
 * grows it.
 */
#include <linux/rhashtable.h>
#include <linux/slab.h>

#include "engine.h"
#include "twheel.h"

/* The hash table begins with buckets for this many keys, or for half of max_pending if less. */
#define FIRST_KEYS	3000U

/* The least number of buckets of any hash table. */
#define BUCKETS_MIN	4UL

/*
 * Bytes of a hash table with this many buckets, raised to the least that a table has and lowered
 * to the most that it may have.  Since kvmalloc() tries contiguous pages first, a power of two of
 * them, and a table has a header, that is nearly twice the size of the table.  A larger table may
 * take huge pages.
 */
static size_t index_bytes(const struct rhashtable_params *params, unsigned long nr_buckets)
{
	unsigned long first = roundup_pow_of_two(params->nelem_hint * 4 / 3);
	size_t size;

	nr_buckets = max3(min_t(unsigned long, nr_buckets, params->max_size), first, BUCKETS_MIN);
	size = struct_size((struct bucket_table *)NULL, buckets, nr_buckets);
	return size <= KMALLOC_MAX_SIZE ? PAGE_SIZE << get_order(size) : ALIGN(size, PMD_SIZE);
}

/* A table doubles if it has more nodes than three quarters of its buckets. */
static size_t index_bytes_grown(const struct twheel_keys *keys, unsigned long nr_nodes)
{
	return index_bytes(&keys->index.p, roundup_pow_of_two(nr_nodes + nr_nodes / 3 + 1));
}

/* A table shrinks if it has fewer nodes than three tenths of its buckets. */
static size_t index_bytes_shrunk(const struct twheel_keys *keys, unsigned long nr_nodes)
{
	return index_bytes(&keys->index.p, rounddown_pow_of_two(nr_nodes * 10 / 3 + 1));
}

/* Set the charge for the hash table.  Return 0, or if it grows, an error of twheel_charge(). */
static int index_charge(struct tw_ctx *tw, size_t bytes) __must_hold(&tw->places.mutex)
{
	struct twheel_keys *keys = &tw->keys;

	if (bytes > keys->charged) {
		int err = twheel_memory_charge(&tw->memory, bytes - keys->charged);

		if (err)
			return err;
	} else {
		twheel_memory_uncharge(&tw->memory, keys->charged - bytes);
	}
	keys->charged = bytes;
	return 0;
}

static inline const struct twheel_key_page *key_page(const struct twheel_key *key)
{
	return (const void *)((unsigned long)key & PAGE_MASK);
}

static inline u32 key_index(const struct twheel_key *key)
{
	return key_page(key)->first_index + (key - key_page(key)->key);
}

/* The place of a node; NULL without the lock, if its page was removed. */
static inline struct twheel_timeout *key_timeout(const struct twheel_key *key)
{
	u32 index = key_index(key);
	struct twheel_page *places = pages_get(key_page(key)->places, index / PLACES_PER_PAGE);

	return places ? &places->timeout[index % PLACES_PER_PAGE] : NULL;
}

/* Find the node of a place that the caller owns. */
static inline struct twheel_key *timeout_key(struct twheel_keys *keys,
					     const struct twheel_timeout *t)
{
	u32 index = timeout_index(t);
	struct twheel_key_page *page = pages_get(&keys->pages, index / KEYS_PER_PAGE);

	return &page->key[index % KEYS_PER_PAGE];
}

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

/*
 * Make the index before the wheel has started, under &twheel_control.mutex.  For errors see
 * twheel_page_get().
 */
int twheel_keys_start(struct tw_ctx *tw, u32 max_pending)
{
	struct rhashtable_params params = index_params;
	size_t bytes;
	int err;

	/*
	 * Have at most one bucket for two keys: the next node of a chain is found as quickly as the
	 * first, and the table takes less memory and moves less often.
	 */
	params.nelem_hint = clamp(max_pending / 2, 1U, FIRST_KEYS);
	params.max_size = max(roundup_pow_of_two(max_pending) / 2, BUCKETS_MIN);
	bytes = index_bytes(&params, 0);
	err = twheel_memory_charge(&tw->memory, bytes);
	if (err)
		return err;
	err = rhashtable_init(&tw->keys.index, &params);
	if (err) {
		twheel_memory_uncharge(&tw->memory, bytes);
		return err;
	}
	tw->keys.charged = bytes;
	/* Do not limit the number of keys. */
	tw->keys.index.max_elems = U32_MAX;
	/* Pairs with the acquire in twheel_is_keyed().  Test: litmus keyed */
	smp_store_release(&tw->keys.used, true);
	return 0;
}

/*
 * Make sure that the places of a page that is about to be added have nodes.  For errors see
 * twheel_page_get().
 */
int twheel_keys_provide(struct tw_ctx *tw, u32 page_nr) __must_hold(&tw->places.mutex)
{
	u32 nr = page_nr / PAGES_PER_KEY_PAGE;
	struct twheel_keys *keys = &tw->keys;
	struct twheel_key_page *page;
	size_t bytes;
	int err = 0;

	if (pages_at(&keys->pages, nr))
		return 0;
	if (nr == keys->pages.nr)
		err = twheel_pages_add(&keys->pages, &tw->memory, NULL);
	if (!err)
		err = twheel_page_get(&tw->memory, (void **)&page);
	if (err)
		return err;
	/* Charge before the nodes are added: a work item grows the table, and cannot refuse. */
	bytes = index_bytes_grown(keys, (keys->nr_pages + 1UL) * KEYS_PER_PAGE);
	err = index_charge(tw, max(keys->charged, bytes));
	if (err) {
		twheel_page_put(&tw->memory, page);
		return err;
	}
	page->places = &tw->places.pages;
	page->first_index = nr * KEYS_PER_PAGE;
	twheel_pages_set(&keys->pages, nr, page);
	keys->nr_pages++;
	return 0;
}

/*
 * Free the page with the nodes of a page of places, unless its neighbours need it.  The page of
 * places is out of the table, and its nodes are out of the index.
 */
void twheel_keys_remove(struct tw_ctx *tw, u32 page_nr) __must_hold(&tw->places.mutex)
{
	u32 i, nr = page_nr / PAGES_PER_KEY_PAGE;
	struct twheel_keys *keys = &tw->keys;
	struct twheel_key_page *page = pages_at(&keys->pages, nr);
	size_t bytes;

	for (i = 0; i < PAGES_PER_KEY_PAGE; i++)
		if (pages_at(&tw->places.pages, nr * PAGES_PER_KEY_PAGE + i))
			return;
	twheel_pages_set(&keys->pages, nr, NULL);
	twheel_page_put_rcu(&tw->memory, page);
	keys->nr_pages--;
	bytes = index_bytes_shrunk(keys, (unsigned long)keys->nr_pages * KEYS_PER_PAGE);
	index_charge(tw, min(keys->charged, bytes));
}

/* Return whether a node is in the index: even the last one of a chain does not lead to NULL. */
static inline bool key_is_used(const struct twheel_key *node)
{
	return rcu_access_pointer(node->node.next);
}

/* Find the place that has a key, or had it last; NULL if there is none. */
struct twheel_timeout *twheel_key_place(struct tw_ctx *tw, u64 key) __must_hold(&tw->lock)
{
	const struct twheel_key *found;

	rcu_read_lock();
	found = rhashtable_lookup(&tw->keys.index, &key, index_params);
	rcu_read_unlock();
	return found ? key_timeout(found) : NULL;
}

/* Find the live timeout that has a key; NULL if there is none. */
struct twheel_timeout *twheel_key_find(struct tw_ctx *tw, u64 key) __must_hold(&tw->lock)
{
	struct twheel_timeout *t = twheel_key_place(tw, key);

	return t && timeout_is_live(t) ? t : NULL;
}

/* A node of a chain, prefetched with the header of its page; NULL at the end. */
static const struct twheel_key *node_prefetch(const struct rhash_head *head)
{
	const struct twheel_key *node;

	if (!head || rht_is_a_nulls(head))
		return NULL;
	node = container_of(head, struct twheel_key, node);
	prefetch(node);
	prefetch(key_page(node));
	return node;
}

/*
 * places_prefetch() by keys, TWHEEL_BATCH at most; a place is NULL if there is none.  To find a
 * place is to read a bucket, a node and the header of its page: prefetch each of these for all keys
 * before the first one is read.  The third node of a chain is rare, and left out.
 */
void twheel_keys_prefetch(struct tw_ctx *tw, const struct twheel_timeout **place, const u64 *key,
			  size_t stride, unsigned int nr, bool words)
{
	struct rhash_lock_head __rcu *const *bucket[TWHEEL_BATCH] __uninitialized;
	const struct twheel_key *node[TWHEEL_BATCH] __uninitialized;
	struct rhashtable *index = &tw->keys.index;
	const struct bucket_table *table = rht_dereference_rcu(index->tbl, index);
	const u64 *k = key;
	unsigned int i;

	for (i = 0; i < nr; i++, k = (const void *)k + stride) {
		bucket[i] = rht_bucket(table, rht_key_hashfn(index, table, k, index_params));
		prefetch(bucket[i]);
	}
	for (i = 0; i < nr; i++)
		node[i] = bucket[i] ? node_prefetch(rht_ptr_rcu(bucket[i])) : NULL;
	for (i = 0, k = key; i < nr; i++, k = (const void *)k + stride)
		/* Without the lock: if the key changes meanwhile, the prefetch is in vain. */
		if (node[i] && data_race(node[i]->key) != *k)
			node[i] = node_prefetch(rcu_dereference(node[i]->node.next));
	for (i = 0; i < nr; i++) {
		place[i] = node[i] ? key_timeout(node[i]) : NULL;
		place_prefetch(place[i]);
		if (words && node[i])
			prefetchw(word_at(&tw->words, key_index(node[i])));
	}
}

static void key_remove(struct twheel_keys *keys, struct twheel_key *node)
{
	if (!key_is_used(node))
		return;
	rhashtable_remove_fast(&keys->index, &node->node, index_params);
	RCU_INIT_POINTER(node->node.next, NULL);
}

/* Give a place that the caller has taken a key that no other place has.  Return 0, or -ENOMEM. */
int twheel_key_take(struct tw_ctx *tw, struct twheel_timeout *t, u64 key) __must_hold(&tw->lock)
{
	struct twheel_key *node = timeout_key(&tw->keys, t);

	key_remove(&tw->keys, node);
	node->key = key;
	/* This fails if the table is full of long chains and cannot grow. */
	if (likely(!rhashtable_insert_fast(&tw->keys.index, &node->node, index_params)))
		return 0;
	RCU_INIT_POINTER(node->node.next, NULL);
	return -ENOMEM;
}

/* Take the node of a place whose timeout has ended out of the index, if it is there. */
void twheel_key_drop(struct tw_ctx *tw, struct twheel_timeout *t) __must_hold(&tw->lock)
{
	lockdep_assert_held(&tw->lock);
	key_remove(&tw->keys, timeout_key(&tw->keys, t));
}

/* Free the index and the nodes at the last close.  Wait for a work item of the hash table. */
void twheel_keys_free(struct twheel_keys *keys)
{
	if (keys->used)
		rhashtable_destroy(&keys->index);
	twheel_pages_free(&keys->pages);
}
