/* SPDX-License-Identifier: GPL-2.0 */
/* The keys of a keyed wheel: an index from user_data to the timeout that has it */
#ifndef _TWHEEL_ENGINE_KEYS_H
#define _TWHEEL_ENGINE_KEYS_H

#include <linux/rhashtable-types.h>

#include "pages.h"
#include "timeout.h"

struct tw_ctx;

/**
 * struct twheel_keys - the index of a keyed wheel
 * @used: this is a keyed wheel; constant once the wheel has started
 * @index: the nodes by key; &tw_ctx.lock.  The hash table takes its own locks under that.
 * @pages: struct twheel_key_page by index / KEYS_PER_PAGE; guarded as struct twheel_pages says
 * @nr_pages: number of these; &twheel_places.mutex
 * @charged: bytes that are charged for the hash table; &twheel_places.mutex
 */
struct twheel_keys {
	bool used;
	struct rhashtable index;
	struct twheel_pages pages;
	u32 nr_pages;
	size_t charged;
};

/**
 * struct twheel_key - the node of a place
 * @node: link in the index; @node.next is NULL if it is not there
 * @key: the key, which is constant while the node is in the index; &tw_ctx.lock.  It is here as
 *	well as in the timeout, so that a lookup that follows a chain reads only nodes.
 */
struct twheel_key {
	struct rhash_head node;
	u64 key;
};

/* A page of nodes has the nodes of this many neighbouring pages of places. */
#define PAGES_PER_KEY_PAGE	3U
#define KEYS_PER_PAGE		(PAGES_PER_KEY_PAGE * PLACES_PER_PAGE)

/**
 * struct twheel_key_page - a page of nodes
 * @places: the pages of places that the nodes belong to; constant
 * @first_index: index of the place that the first node belongs to; constant
 * @key: a node for each place
 */
struct twheel_key_page {
	const struct twheel_pages *places;
	u32 first_index;
	struct twheel_key key[KEYS_PER_PAGE];
};

static_assert(sizeof(struct twheel_key_page) <= PAGE_SIZE);

int twheel_keys_start(struct tw_ctx *tw, u32 max_pending);
int twheel_keys_provide(struct tw_ctx *tw, u32 page_nr) __must_hold(&tw->places.mutex);
void twheel_keys_remove(struct tw_ctx *tw, u32 page_nr) __must_hold(&tw->places.mutex);
struct twheel_timeout *twheel_key_find(struct tw_ctx *tw, u64 key) __must_hold(&tw->lock);
struct twheel_timeout *twheel_key_place(struct tw_ctx *tw, u64 key) __must_hold(&tw->lock);
int twheel_key_take(struct tw_ctx *tw, struct twheel_timeout *t, u64 key) __must_hold(&tw->lock);
void twheel_key_drop(struct tw_ctx *tw, struct twheel_timeout *t) __must_hold(&tw->lock);
void twheel_keys_prefetch(struct tw_ctx *tw, const struct twheel_timeout **place, const u64 *key,
			  size_t stride, unsigned int nr, bool words);
void twheel_keys_free(struct twheel_keys *keys);

#endif /* _TWHEEL_ENGINE_KEYS_H */
