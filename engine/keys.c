// SPDX-License-Identifier: GPL-2.0
/*
 * The keys of a keyed wheel
 *
 * In a keyed wheel, user_data is the key of a timeout, and no two live timeouts have the
 * same key.  An index leads from a key to the timeout: a hash table of the kernel, with a
 * node for each place.  The nodes lie in pages of their own, which only a keyed wheel has.
 *
 * The state word goes on to decide every race.  The index adds one rule: a timeout is
 * published only after its node is in the index, and a place becomes free for others only
 * after its node is out of it.
 *
 *  ARM looks its key up.  If the key has a live timeout, ARM re-arms that one by its id, as
 *	REARM does.  If not, ARM prepares a timeout as in any other wheel.  When it has
 *	told the user, it takes keys.lock, puts the node into the index and publishes the
 *	timeout, all under one hold of the lock.  If another ARM has taken the key
 *	meanwhile, nothing is published, and the call looks again.
 *  A timeout ends by its state word, as in any other wheel.  From then on, a look-up that
 *	finds its node sees that the key is free.  The thread that ended it takes the node
 *	out, under keys.lock, before it puts the place on the free list.
 *  An ARM that finds the node of a timeout that has ended, and whose thread has not come
 *	to take it out, puts its own node in the place of that node.
 *
 * So under keys.lock a node in the index belongs to a timeout that is live, or that has
 * ended and whose place nobody can use yet.  Two timeouts of one key never live at once:
 * the second is published only when its node is in the index, where the first one's was.
 *
 * Locks: keys.lock.  It is a spinlock because its holders neither allocate with sleeping
 * nor wait.  The hash table takes its own locks under it; when it has grown full, it may
 * allocate atomically there, and grows by a work item otherwise.  Look-ups take no lock:
 * they run under RCU.  Pages of nodes are added and removed under arena.mutex.
 */
#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/llist.h>
#include <linux/lockdep.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/rhashtable.h>
#include <linux/spinlock.h>
#include <linux/stddef.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "engine.h"
#include "keys.h"
#include "life.h"
#include "limits.h"
#include "memory.h"
#include "pages.h"
#include "timeout.h"
#include "twheel.h"
#include "window.h"

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

/* Find the place that a node belongs to; NULL if its page was removed. */
static inline struct twheel_timeout *key_timeout(const struct twheel_key *key)
{
	const struct twheel_key_page *page =
		(const void *)((unsigned long)key & PAGE_MASK);
	u32 index = page->first_index + (key - page->key);
	struct twheel_page *places = pages_get(page->places, index / PLACES_PER_PAGE);

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

/* Compare a node with a key; 0 if they are the same. */
static inline int key_compare(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct twheel_key *key = obj;

	/* A look-up may come upon a node that has left the index, and has a new key. */
	return READ_ONCE(key->key) != *(const u64 *)arg->key;
}

static const struct rhashtable_params index_params = {
	.head_offset		= offsetof(struct twheel_key, node),
	.key_offset		= offsetof(struct twheel_key, key),
	.key_len		= sizeof(u64),
	.obj_cmpfn		= key_compare,
	.automatic_shrinking	= true,
};

/**
 * twheel_keys_init() - prepare a wheel without keys
 * @keys: the wheel's
 * @mutex: &twheel_arena.mutex
 *
 * Context: process, before the wheel is published.
 */
void twheel_keys_init(struct twheel_keys *keys, struct mutex *mutex)
{
	spin_lock_init(&keys->lock);
	keys->pages.mutex = mutex;
}

/**
 * twheel_keys_start() - make the index of a keyed wheel
 * @tw: the wheel, whose max_pending is final
 *
 * Context: process; sleeps; under &twheel_control.mutex, before the wheel has started.
 * Return: 0, -ENOMEM, or -ENOSPC at the limit of memory.
 */
int twheel_keys_start(struct twheel *tw)
{
	struct rhashtable_params params = index_params;
	int err = twheel_memory_charge(&tw->memory, FIRST_CHARGE);

	if (err)
		return err;
	/*
	 * A bucket for two keys is the most: the next node of a chain is found as quickly as
	 * the first, and the table takes less memory and moves less often.  In a small wheel,
	 * most nodes may be those of timeouts that were cancelled in the inbox: there are
	 * buckets for these, too, since the table refuses nodes when chains grow too long.
	 */
	params.nelem_hint = min(tw->arena.max_pending / 2, FIRST_KEYS);
	params.max_size = max(roundup_pow_of_two(tw->arena.max_pending) / 2,
			      2UL * INBOX_WATERMARK);
	err = rhashtable_init(&tw->keys.index, &params);
	if (err) {
		twheel_memory_uncharge(&tw->memory, FIRST_CHARGE);
		return err;
	}
	/*
	 * No number of keys is too many for the table.  Nodes of timeouts that have ended may
	 * be in it beside those of max_pending live ones; arena_limit() bounds both.
	 */
	tw->keys.index.max_elems = U32_MAX;
	/* Pairs with the acquire in twheel_is_keyed().  Test: litmus keyed */
	smp_store_release(&tw->keys.used, true);
	return 0;
}

/* Find a page of nodes by its number, under &twheel_arena.mutex, so that it stays. */
static struct twheel_key_page *key_page(struct twheel_keys *keys, u32 nr)
{
	struct twheel_key_page *page;

	rcu_read_lock();
	page = pages_at(&keys->pages, nr);
	rcu_read_unlock();
	return page;
}

/* Make the page of nodes of this number. */
static int key_page_add(struct twheel *tw, u32 nr)
	__must_hold(&tw->arena.mutex)
{
	struct twheel_key_page *page;
	int err = twheel_memory_charge(&tw->memory, INDEX_CHARGE);

	if (err)
		return err;
	err = twheel_page_get(&tw->memory, (void **)&page);
	if (err)
		goto uncharge;
	page->places = &tw->arena.places;
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
 * twheel_key_page_put() - free a page that twheel_keys_remove() has returned
 * @tw: the wheel
 * @page: the page, which no look-up can reach any more; NULL for none
 *
 * Context: any.
 */
void twheel_key_page_put(struct twheel *tw, void *page)
{
	if (!page)
		return;
	twheel_page_put(&tw->memory, page);
	twheel_memory_uncharge(&tw->memory, INDEX_CHARGE);
}

/* Count a page of places less at a page of nodes; returns that if it was the last one. */
static struct twheel_key_page *key_page_leave(struct twheel *tw, u32 nr)
	__must_hold(&tw->arena.mutex)
{
	struct twheel_key_page *page = key_page(&tw->keys, nr);

	if (--page->nr_users)
		return NULL;
	twheel_pages_set(&tw->keys.pages, nr, NULL);
	return page;
}

/**
 * twheel_keys_provide() - make sure that the places of a page have nodes
 * @tw: the wheel, which is keyed
 * @page_nr: number of the page of places, which is about to be added
 *
 * Context: process; sleeps; under &twheel_arena.mutex.
 * Return: 0, -ENOMEM, or -ENOSPC at the limit of memory.
 */
int twheel_keys_provide(struct twheel *tw, u32 page_nr)
	__must_hold(&tw->arena.mutex)
{
	u32 first = page_nr * PLACES_PER_PAGE / KEYS_PER_PAGE;
	u32 last = (page_nr * PLACES_PER_PAGE + PLACES_PER_PAGE - 1) / KEYS_PER_PAGE;
	u32 nr;
	int err;

	for (nr = first; nr <= last; nr++) {
		if (!key_page(&tw->keys, nr)) {
			err = key_page_add(tw, nr);
			if (err)
				goto undo;
		}
		key_page(&tw->keys, nr)->nr_users++;
	}
	return 0;

undo:
	while (nr-- > first)
		twheel_key_page_put(tw, key_page_leave(tw, nr));
	return err;
}

/**
 * twheel_keys_remove() - give up the nodes of a page of places
 * @tw: the wheel, which is keyed
 * @page_nr: number of the page of places; all its nodes are out of the index
 * @unused: out: pages of nodes that no page of places needs any more, NULL for none.  The
 *	caller frees them by twheel_key_page_put() when a grace period has passed.
 *
 * Context: process or kthread; under &twheel_arena.mutex.
 */
void twheel_keys_remove(struct twheel *tw, u32 page_nr, void *unused[KEY_PAGES])
	__must_hold(&tw->arena.mutex)
{
	u32 first = page_nr * PLACES_PER_PAGE / KEYS_PER_PAGE;
	u32 last = (page_nr * PLACES_PER_PAGE + PLACES_PER_PAGE - 1) / KEYS_PER_PAGE;

	unused[0] = key_page_leave(tw, first);
	unused[1] = last != first ? key_page_leave(tw, last) : NULL;
}

/*
 * Put the node of a NEW timeout into the index.  G3 exactly one outcome: -EEXIST if
 * another live timeout has the key.  A timeout in the index that has ended is no
 * obstacle: its place is not used again before its thread, which waits for keys.lock, has
 * come by, so that it stays ended.
 */
static __always_inline int key_take(struct twheel_keys *keys, struct twheel_timeout *t)
	__must_hold(&keys->lock)
{
	struct twheel_key *old, *key = timeout_key(keys, t);

	WRITE_ONCE(key->key, t->user_data);
	old = rhashtable_lookup_get_insert_fast(&keys->index, &key->node, index_params);
	if (likely(!old))
		return 0;
	/* The table is full of long chains, and there is no memory to make it larger. */
	if (IS_ERR(old))
		return -ENOMEM;
	if (!state_has_ended(timeout_state(key_timeout(old))))
		return -EEXIST;
	twheel_window(WINDOW_KEYS_FOUND);
	return rhashtable_replace_fast(&keys->index, &old->node, &key->node, index_params);
}

/**
 * twheel_keys_take() - take the keys of timeouts that are about to be published
 * @tw: the wheel, which is keyed
 * @first: chain of the timeouts, which are NEW
 * @nr: how many
 * @err: out: why the next one's key was not taken: -EEXIST if another timeout has it, or
 *	-ENOMEM; 0 if all were taken
 *
 * Context: process; does not sleep; under &twheel_keys.lock and in an RCU read section.
 * The caller publishes the timeouts whose keys were taken before it releases the lock.
 * Return: the number of keys taken.
 */
unsigned int twheel_keys_take(struct twheel *tw, struct llist_node *first, unsigned int nr,
			      int *err)
	__must_hold(&tw->keys.lock)
{
	unsigned int i;

	lockdep_assert_held(&tw->keys.lock);
	*err = 0;
	for (i = 0; i < nr; i++) {
		*err = key_take(&tw->keys, llist_entry(first, struct twheel_timeout, node));
		if (*err)
			break;
		first = first->next;
	}
	return i;
}

/**
 * twheel_keys_give() - give up the keys of timeouts that have ended
 * @tw: the wheel, which is keyed
 * @first: chain of their places, which are about to go to the free list.  A timeout that
 *	was never published, or whose key another one has taken over, has none: nothing
 *	is done for it.
 *
 * Context: process or kthread; does not sleep; under none of the engine's locks.
 */
void twheel_keys_give(struct twheel *tw, struct llist_node *first)
{
	twheel_window(WINDOW_KEYS_ENDED);
	rcu_read_lock();
	spin_lock(&tw->keys.lock);
	for (; first; first = first->next) {
		struct twheel_timeout *t = llist_entry(first, struct twheel_timeout, node);

		rhashtable_remove_fast(&tw->keys.index, &timeout_key(&tw->keys, t)->node,
				       index_params);
	}
	spin_unlock(&tw->keys.lock);
	rcu_read_unlock();
}

/* The id of the timeout at a place, if it is live and has this key; 0 otherwise. */
static inline u64 live_id(const struct twheel_timeout *t, u64 key)
{
	u64 state = timeout_state_or_free(t);

	if (!(state_is_live(state) || state_is_rearming(state)) ||
	    READ_ONCE(t->user_data) != key)
		return 0;
	/*
	 * The place may have been given to another key since the look-up.  A timeout keeps
	 * its key as long as it keeps its generation, so that is read again, and the
	 * barrier orders the read of the key before it.  Test: litmus key_reused
	 */
	smp_rmb();
	return state_gen(atomic64_read(&t->state)) == state_gen(state) ?
	       timeout_id(t, state) : 0;
}

/**
 * twheel_key_id() - find the id of the live timeout that has a key
 * @tw: the wheel, which is keyed
 * @key: the key
 *
 * Context: any but interrupts; no lock is needed.
 * Return: the id, or 0 if no live timeout has the key.  Either may change at any time:
 * a caller goes on by the id, and finds out by that.
 */
u64 twheel_key_id(struct twheel *tw, u64 key)
{
	const struct twheel_key *found;
	u64 id;

	rcu_read_lock();
	found = rhashtable_lookup(&tw->keys.index, &key, index_params);
	id = found ? live_id(key_timeout(found), key) : 0;
	rcu_read_unlock();
	return id;
}

/* Find out what ARM is to do for an entry; refused entries get their result here. */
static enum twheel_found entry_look(struct twheel *tw, struct twheel_arm *arm)
{
	int err = life_check(arm, ARM_IF | ARM_ONLY);
	u64 id = err ? 0 : twheel_key_id(tw, arm->user_data);

	if (!err && id && arm->flags & TWHEEL_ARM_IF_ABSENT)
		err = -EEXIST;
	if (!err && !id && arm->flags & TWHEEL_ARM_IF_PRESENT)
		err = -ENOENT;
	if (err) {
		arm->result = err;
		return TWHEEL_FOUND_REFUSED;
	}
	arm->id = id;
	return id ? TWHEEL_FOUND_PRESENT : TWHEEL_FOUND_ABSENT;
}

/**
 * twheel_keyed_look() - find out what ARM in a keyed wheel has to do
 * @tw: the wheel, which is keyed
 * @arm: the batch; out: the id of each timeout that has the key, or the result of each
 *	entry that is refused
 * @nr: in: number of entries, 1 at least; out: how many of them from the first one on
 *	are alike
 * @guess: if the key of the first entry is absent, take it that those of the others are,
 *	too, without looking; the commit finds out which are not
 *
 * A look-up is the dearer half of a new key.  The keys of a batch are mostly all new, or
 * all there.
 *
 * The answer may be out of date at once.  For an absent key, twheel_arm_commit_keyed()
 * finds that out, and for one that is present twheel_upsert_prepare() does, or
 * twheel_rearm_commit().
 *
 * Context: process; does not sleep; no lock is needed.
 * Return: what was found of these entries.
 */
enum twheel_found twheel_keyed_look(struct twheel *tw, struct twheel_arm *arm,
				    unsigned int *nr, bool guess)
{
	enum twheel_found found = entry_look(tw, &arm[0]);
	unsigned int i;

	for (i = 1; i < *nr; i++) {
		if (found == TWHEEL_FOUND_ABSENT && guess &&
		    !(arm[i].flags & TWHEEL_ARM_IF_PRESENT))
			continue;
		if (entry_look(tw, &arm[i]) != found)
			break;
	}
	*nr = i;
	twheel_window(WINDOW_KEYS_LOOKED);
	return found;
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
