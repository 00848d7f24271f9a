// SPDX-License-Identifier: GPL-2.0
/*
 * Giving pages of places back after a burst
 *
 * A wheel must not keep the memory of a burst for ever.  SHRINK_DELAY after a caller has
 * found more than half of all places or of the room unused, the kthread looks for pages to
 * free.  A page of places can be freed only while all its places are free and none of them is
 * on a free list, where ARM would take it.  The kthread gets there in steps of bounded length,
 * in four phases, and all other threads go on:
 *
 *  PICKS    walk the pages, and pick those whose places are all free at that moment, as
 *           many as are in excess
 *  SIFTS    take all places off the free list.  Keep back those of picked pages; put
 *           the others aside (arena.sifted), where ARM finds them when the free list
 *           is empty
 *  FREES    remove each page whose places were all kept back, and let RCU free it
 *  SETTLES  release the places of the picked pages of which a place was missing:
 *           another thread had taken it in the meantime
 *
 * So only places of picked pages are ever out of ARM's reach, and an ARM that lacks a
 * place adds a page or waits for a pass.
 *
 * Locks: pages are removed under arena.mutex, which the kthread only tries, because a
 * thread that holds it may be waiting for memory.  Places are sifted under
 * arena.free_lock.  The delayed work is queued under wake.lock, because twheel_stop()
 * sets wake.closing under that lock, and nothing may be queued afterwards; the locks of
 * the work's timer and of the kthread's list are taken under it.  None of the three is
 * held while another is taken.
 */
#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/container_of.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/limits.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/stddef.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/wait_bit.h>

#include "arena.h"
#include "budget.h"
#include "engine.h"
#include "keys.h"
#include "limits.h"
#include "memory.h"
#include "pages.h"
#include "refresh.h"
#include "shrink.h"
#include "timeout.h"
#include "twheel_compat.h"
#include "user.h"
#include "window.h"

/* Memory is given back when it has been unused for this long, jiffies. */
#define SHRINK_DELAY	HZ

/*
 * Return whether all places of a page are free.  Count off @left the places that were
 * looked at.  A page with a place that is retired, or has used more than half of its
 * generations, is not picked: page_remove() would keep it.
 */
static bool page_is_free(const struct twheel_page *page, int *left)
{
	u32 i;

	for (i = 0; i < PLACES_PER_PAGE; i++) {
		u64 state = timeout_state(&page->timeout[i]);

		--*left;
		if (!state_is_free(state) || !state_gen(state) ||
		    state_gen(state) > S32_MAX)
			return false;
	}
	return true;
}

/* PICKS: pick pages whose places are all free.  ARM may take their places at any time. */
static void shrink_pick(struct twheel *tw)
{
	struct shrink_state *shrink = &tw->shrink.step;
	struct twheel_page *page;
	int left = SHRINK_STEP;

	rcu_read_lock();
	while (left > 0 && shrink->nr_excess &&
	       shrink->page < READ_ONCE(tw->arena.places.nr)) {
		page = page_at(&tw->arena, shrink->page++);
		left--;
		if (!page || !page_is_free(page, &left))
			continue;
		page->picked = true;
		page->nr_found = 0;
		shrink->nr_excess--;
		shrink->nr_picked++;
	}
	rcu_read_unlock();
	if (left > 0)
		shrink->phase = SHRINK_SIFTS;
}

/* The place that was found last in a picked page, by its link; NULL if there is none. */
static struct llist_node *page_found(struct twheel_page *page)
{
	struct twheel_timeout *t = (void *)page + page->found * 4;

	return page->nr_found ? &t->node : NULL;
}

/* Keep back a place of a picked page.  Return true if it was the page's last one. */
static bool page_find(struct twheel_page *page, struct twheel_timeout *t)
{
	t->node.next = page_found(page);
	page->found = offset_in_page(t) / 4;
	return ++page->nr_found == PLACES_PER_PAGE;
}

/*
 * SIFTS: take places off the free list.  Keep back those of picked pages, and put the
 * others aside; a caller that needs a place finds them there.  Test: litmus place_sifted
 */
static void shrink_sift(struct twheel *tw)
{
	struct shrink_state *shrink = &tw->shrink.step;
	unsigned int i, nr = min_t(u64, SHRINK_STEP, shrink->nr_left);
	struct llist_node *place;

	spin_lock(&tw->arena.free_lock);
	place = tw->arena.free;
	for (i = 0; i < nr && shrink->nr_picked; i++) {
		struct twheel_timeout *t;
		struct twheel_page *page;

		if (!place)
			place = llist_del_all(&tw->arena.freed);
		if (!place)
			break;
		t = llist_entry(place, struct twheel_timeout, node);
		place = place->next;
		page = timeout_page(t);
		if (!page->picked) {
			chain_add(&tw->arena.sifted, t);
		} else if (page_find(page, t)) {
			shrink->nr_picked--;
			WRITE_ONCE(t->user_data, (unsigned long)shrink->freeing);
			shrink->freeing = t;
		}
	}
	tw->arena.free = place;
	spin_unlock(&tw->arena.free_lock);
	shrink->nr_left -= i;
	if (i < SHRINK_STEP)
		shrink->phase = SHRINK_FREES;
}

/* Release the places of a picked page that were kept back: they go to the free list. */
static void page_keep(struct twheel *tw, struct twheel_page *page)
{
	struct chain chain = {};
	struct llist_node *node, *next;

	page->picked = false;
	for (node = page_found(page); node; node = next) {
		next = node->next;
		chain_add(&chain, llist_entry(node, struct twheel_timeout, node));
	}
	if (chain.nr)
		llist_add_batch(chain.first, chain.last, &tw->arena.freed);
}

/*
 * Remove a page from the table.  All its places are free and off the free list.  G8 stale
 * ids are harmless: the page's indices may be used again, and their generations go on
 * after the highest one of any removed page, so that no id comes twice.  Return false for
 * a page of which a place has used more than half of its generations: it stays, or later
 * pages would have few generations left.
 */
static bool page_remove(struct twheel_arena *arena, struct twheel_page *page)
	__must_hold(&arena->mutex)
{
	u32 nr = page->first_index / PLACES_PER_PAGE;
	u32 i, gen = arena->first_gen;

	for (i = 0; i < PLACES_PER_PAGE; i++)
		gen = max(gen, state_gen(timeout_state(&page->timeout[i])));
	if (gen > S32_MAX)
		return false;
	arena->first_gen = gen;
	twheel_pages_set(&arena->places, nr, NULL);
	twheel_window(WINDOW_SHRINK_REMOVED);
	/*
	 * Pairs with the acquire in look_begin().
	 * Test: litmus page_freed_cancel, page_freed_rearm
	 */
	smp_store_release(&arena->nr_removed, arena->nr_removed + 1);
	WRITE_ONCE(arena->nr_holes, arena->nr_holes + 1);
	arena->first_hole = min(arena->first_hole, nr);
	page->last_half = periodic_remove(page);
	return true;
}

/*
 * A removed page waits for RCU with its places FREE.  Another thread that has found the
 * page may still read their state words, so those stay as they are.  The struct rcu_head
 * lies in the first place, behind its state word.  In the second place, node links the
 * pages that are freed together, and user_data of the first of these pages leads to the
 * wheel.  In the third and the fourth place, user_data leads to pages of nodes that go with
 * the page.
 */
static_assert(offsetofend(struct twheel_timeout, node) -
	      offsetof(struct twheel_timeout, user_data) >=
	      sizeof(struct rcu_head));

static struct rcu_head *page_rcu(struct twheel_page *page)
{
	return (struct rcu_head *)&page->timeout[0].user_data;
}

/*
 * Free the pages of one step, once RCU has let go of them.  G5 bounded interrupt work:
 * RCU may call this in softirq, and one step removes few pages.
 */
static void pages_free_rcu(struct rcu_head *head)
{
	struct twheel_page *next, *page = (void *)((unsigned long)head & PAGE_MASK);
	struct twheel *tw = (void *)(unsigned long)page->timeout[1].user_data;

	twheel_window(WINDOW_SHRINK_FREES);
	for (; page; page = next) {
		next = (struct twheel_page *)page->timeout[1].node.next;
		if (page->last_half)
			twheel_page_put(&tw->memory, periodic_page(page->periodic));
		twheel_key_page_put(tw, (void *)(unsigned long)page->timeout[2].user_data);
		twheel_key_page_put(tw, (void *)(unsigned long)page->timeout[3].user_data);
		twheel_page_put(&tw->memory, page);
	}
	/*
	 * The wheel may be gone after this, see twheel_arena_free(): wake_up_var() uses
	 * the address only.
	 */
	if (atomic_dec_and_test(&tw->arena.nr_leaving))
		wake_up_var(&tw->arena.nr_leaving);
}

/* Give up the nodes of a removed page, and note which pages of nodes go with it. */
static void page_give_keys(struct twheel *tw, struct twheel_page *page)
	__must_hold(&tw->arena.mutex)
{
	void *unused[KEY_PAGES] = {};

	if (tw->keys.used)
		twheel_keys_remove(tw, page->first_index / PLACES_PER_PAGE, unused);
	page->timeout[2].user_data = (unsigned long)unused[0];
	page->timeout[3].user_data = (unsigned long)unused[1];
}

/*
 * FREES: remove some of the pages whose places were all found, and have RCU free them.
 * Return false if another thread holds arena.mutex.
 */
static bool shrink_free(struct twheel *tw)
{
	struct shrink_state *shrink = &tw->shrink.step;
	struct twheel_page *removed = NULL;
	int left = SHRINK_STEP;

	if (!mutex_trylock(&tw->arena.mutex))
		return false;
	while (shrink->freeing && left > 0) {
		struct twheel_timeout *t = shrink->freeing;
		struct twheel_page *page = timeout_page(t);

		shrink->freeing = (void *)(unsigned long)t->user_data;
		left -= PLACES_PER_PAGE;
		if (!page_remove(&tw->arena, page)) {
			page_keep(tw, page);
			continue;
		}
		page->timeout[1].node.next = (struct llist_node *)removed;
		page_give_keys(tw, page);
		removed = page;
		shrink->removed = true;
	}
	mutex_unlock(&tw->arena.mutex);
	if (!shrink->freeing) {
		shrink->phase = SHRINK_SETTLES;
		shrink->page = 0;
	}
	if (removed) {
		removed->timeout[1].user_data = (unsigned long)tw;
		atomic_inc(&tw->arena.nr_leaving);
		call_rcu_hurry(page_rcu(removed), pages_free_rcu);
	}
	return true;
}

/*
 * SETTLES: release the places of picked pages that cannot be freed, because some of their
 * places are in use after all.
 */
static void shrink_settle(struct twheel *tw)
{
	struct shrink_state *shrink = &tw->shrink.step;
	struct twheel_page *page;
	int left = SHRINK_STEP;

	rcu_read_lock();
	while (left > 0 && shrink->nr_picked) {
		page = page_at(&tw->arena, shrink->page++);
		left--;
		if (!page || !page->picked)
			continue;
		left -= page->nr_found;
		page_keep(tw, page);
		shrink->nr_picked--;
		shrink->in_vain = true;
	}
	rcu_read_unlock();
	if (!shrink->nr_picked)
		shrink->phase = SHRINK_NOTHING;
}

/**
 * twheel_shrink_request() - have memory given back after a delay
 * @tw: the wheel
 *
 * To look through all free places, or all entries, is expensive.  A caller that has ended
 * many timeouts may be about to end more, or to arm again.
 *
 * Context: process or kthread; takes &twheel_wake.lock.
 */
void twheel_shrink_request(struct twheel *tw)
{
	spin_lock_bh(&tw->wake.lock);
	if (!tw->shrink.wanted && !tw->wake.closing) {
		WRITE_ONCE(tw->shrink.wanted, true);
		kthread_queue_delayed_work(tw->wake.turn.queue->worker,
					   &tw->shrink.work, SHRINK_DELAY);
	}
	spin_unlock_bh(&tw->wake.lock);
}

/*
 * Begin to give pages back, but keep half as many places again as are live: they may soon
 * be needed.
 */
static void shrink_begin(struct twheel *tw)
{
	u64 live = atomic_read(&tw->arena.live);
	u64 wanted = live + live / 2 + FREE_SLACK / 2;
	u64 size;

	WRITE_ONCE(tw->shrink.running, true);
	/*
	 * The next look for pages is worth its cost when half of the live timeouts have
	 * ended.
	 */
	WRITE_ONCE(tw->shrink.below, live / 2);
	twheel_window(WINDOW_SHRINK_BEGUN);
	/*
	 * Pairs with the barrier in arena_add(): either the size counts a new page, or
	 * arena_add() overrides the value above.
	 * Test: litmus shrink_below, shrink_below_hole
	 */
	smp_mb();
	size = arena_size(&tw->arena);
	tw->shrink.step = (struct shrink_state){
		.phase		= SHRINK_PICKS,
		.nr_left	= size,
		.nr_excess	= (size - min(wanted, size)) / PLACES_PER_PAGE,
	};
}

/* End: release the places that were put aside, and see whether more is to be done. */
static void shrink_end(struct twheel *tw)
{
	struct chain sifted;

	spin_lock(&tw->arena.free_lock);
	sifted = tw->arena.sifted;
	tw->arena.sifted = (struct chain){};
	spin_unlock(&tw->arena.free_lock);
	if (sifted.nr)
		llist_add_batch(sifted.first, sifted.last, &tw->arena.freed);

	/*
	 * Some places were taken for a moment: look for free pages again at once, without
	 * waiting for arena.live to fall.
	 */
	if (tw->shrink.step.in_vain)
		WRITE_ONCE(tw->shrink.below, U32_MAX);
	/* The removed pages of places may have had words. */
	if (READ_ONCE(tw->words.made) && tw->shrink.step.removed)
		twheel_refresh_shrink(tw);
	WRITE_ONCE(tw->shrink.running, false);
	WRITE_ONCE(tw->shrink.wanted, false);
	twheel_window(WINDOW_SHRINK_ENDED);
	/*
	 * Pairs with the full barrier of atomic_sub_return() in twheel_live_give().  A
	 * caller that ended timeouts while shrink.wanted was set has not asked.  So
	 * either that caller sees it cleared, or its timeouts are counted here.
	 * Test: litmus shrink_wanted
	 */
	smp_mb();
	if (memory_is_wasted(&tw->shrink, &tw->arena, &tw->room))
		twheel_shrink_request(tw);
}

/*
 * Take a step of the present phase.  Return false if arena.mutex is held by another
 * thread.
 */
static bool shrink_step(struct twheel *tw)
{
	switch (tw->shrink.step.phase) {
	case SHRINK_PICKS:
		shrink_pick(tw);
		return true;
	case SHRINK_SIFTS:
		shrink_sift(tw);
		return true;
	case SHRINK_FREES:
		return shrink_free(tw);
	default:
		shrink_settle(tw);
		return true;
	}
}

/* Go on in a jiffy. */
static void shrink_later(struct twheel *tw)
{
	spin_lock_bh(&tw->wake.lock);
	if (!tw->wake.closing)
		kthread_queue_delayed_work(tw->wake.turn.queue->worker,
					   &tw->shrink.work, 1);
	spin_unlock_bh(&tw->wake.lock);
}

/**
 * twheel_arena_shrink() - give back pages of places
 * @tw: the wheel
 * @budget: of the turn
 *
 * The banner explains how.  Call it after a pass, which has fetched from the inbox the
 * places of timeouts that were cancelled there.
 *
 * Context: the kthread after a pass; sleeps.
 * Return: false when the budget ran out before the work was done.  True when it was done,
 * or when another thread holds &twheel_arena.mutex: then twheel_shrink.work asks for
 * another turn in a jiffy.
 */
bool twheel_arena_shrink(struct twheel *tw, struct budget *budget)
{
	if (!tw->shrink.running)
		shrink_begin(tw);
	while (tw->shrink.step.phase != SHRINK_NOTHING) {
		if (budget_is_spent(budget))
			return false;
		/* A thread that holds arena.mutex adds pages, and may sleep. */
		if (!shrink_step(tw)) {
			shrink_later(tw);
			return true;
		}
		budget_spend(budget, SHRINK_STEP);
		cond_resched();
	}
	shrink_end(tw);
	return true;
}

/* The delayed work: ask for a turn in which memory is given back. */
static void shrink_due(struct kthread_work *work)
{
	struct twheel *tw = container_of(work, struct twheel, shrink.work.work);

	WRITE_ONCE(tw->shrink.due, true);
	twheel_turn_request(&tw->wake.turn);
}

/**
 * twheel_shrink_init() - prepare a wheel that has nothing to give back
 * @shrink: the wheel's
 *
 * Context: process, before the wheel is published.
 */
void twheel_shrink_init(struct twheel_shrink *shrink)
{
	kthread_init_delayed_work(&shrink->work, shrink_due);
}
