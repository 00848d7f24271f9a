// SPDX-License-Identifier: GPL-2.0
/*
 * Giving pages of places back after a burst
 *
 * Locks: arena.mutex, which the kthread only tries; arena.free_lock; wake.lock to ask for the
 * work.  None of them nests in another here.
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
#include "limits.h"
#include "memory.h"
#include "pages.h"
#include "refresh.h"
#include "shrink.h"
#include "timeout.h"
#include "twheel_compat.h"
#include "user.h"

/* How long memory that nobody needs is left alone, jiffies. */
#define SHRINK_DELAY	HZ

/**
 * twheel_shrink_request() - have memory given back, after a while
 * @tw: the wheel
 *
 * To look through all free places, or all entries, is expensive.  A caller that has let
 * go of many timeouts may be about to let go of more, or to arm again.
 *
 * Context: any but interrupts.
 */
void twheel_shrink_request(struct twheel *tw)
{
	spin_lock(&tw->wake.lock);
	if (!tw->shrink.wanted && !tw->wake.closing) {
		WRITE_ONCE(tw->shrink.wanted, true);
		kthread_queue_delayed_work(tw->wake.turn.queue->worker,
					   &tw->shrink.work, SHRINK_DELAY);
	}
	spin_unlock(&tw->wake.lock);
}

/*
 * While RCU waits, whoever finds a page may read its state words, and finds that
 * its places are free.  Of the first place the rest is RCU's; of the second one the
 * node links pages that are freed at once, and user_data says whose they are.
 */
static_assert(offsetofend(struct twheel_timeout, node) -
	      offsetof(struct twheel_timeout, user_data) >=
	      sizeof(struct rcu_head));

static struct rcu_head *page_rcu(struct twheel_page *page)
{
	return (struct rcu_head *)&page->timeout[0].user_data;
}

static void pages_free_rcu(struct rcu_head *head)
{
	struct twheel_page *next, *page = (void *)((unsigned long)head & PAGE_MASK);
	struct twheel *tw = (void *)(unsigned long)page->timeout[1].user_data;

	for (; page; page = next) {
		next = (struct twheel_page *)page->timeout[1].node.next;
		if (page->last_half)
			twheel_page_put(&tw->memory, periodic_page(page->periodic));
		twheel_page_put(&tw->memory, page);
	}
	/* Nothing of the wheel is touched after that: see twheel_arena_free(). */
	if (atomic_dec_and_test(&tw->arena.nr_leaving))
		wake_up_var(&tw->arena.nr_leaving);
}

/*
 * Take a page out of which all places are free and not on the free list.  G8: its
 * indices may be used again, their ids are not.  One that is near the end of its
 * generations is kept, or the pages after it would have few.
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
	/* Pairs with the acquire in look_begin(). */
	smp_store_release(&arena->nr_removed, arena->nr_removed + 1);
	WRITE_ONCE(arena->nr_holes, arena->nr_holes + 1);
	arena->first_hole = min(arena->first_hole, nr);
	page->last_half = periodic_remove(page);
	return true;
}

/* What is to be given back: not what will soon be wanted again. */
static void shrink_begin(struct twheel *tw)
{
	u64 live = atomic_read(&tw->arena.live);
	u64 wanted = live + live / 2 + FREE_SLACK / 2;
	u64 size;

	WRITE_ONCE(tw->shrink.running, true);
	/* The next look is worth while when half of what is live has gone. */
	WRITE_ONCE(tw->shrink.below, live / 2);
	/* Pairs with arena_add(): a page that is not counted now overrules that. */
	smp_mb();
	size = arena_size(&tw->arena);
	tw->shrink.step = (struct shrink_state){
		.phase		= SHRINK_PICKS,
		.nr_left	= size,
		.nr_excess	= (size - min(wanted, size)) / PLACES_PER_PAGE,
	};
}

/*
 * Whether all places of a page are free, and how many of them were looked at to
 * tell.  One that is retired, or about to be, stays with its page: see
 * page_remove().
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

/* Pick pages that are free as a whole.  They need not stay so. */
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

/* A place of a page that is picked: true when it was the last one. */
static bool page_find(struct twheel_page *page, struct twheel_timeout *t)
{
	t->node.next = page->nr_found ? &page->timeout[page->found].node : NULL;
	page->found = timeout_slot(t);
	return ++page->nr_found == PLACES_PER_PAGE;
}

/*
 * Go over the free list, take off it the places of pages that are picked, and put
 * the others aside, where whoever needs one finds them.
 */
static void shrink_sift(struct twheel *tw)
{
	struct shrink_state *shrink = &tw->shrink.step;
	unsigned int i;

	spin_lock(&tw->arena.free_lock);
	for (i = 0; i < SHRINK_STEP && shrink->nr_left && shrink->nr_picked; i++) {
		struct twheel_timeout *t;
		struct twheel_page *page;

		if (!tw->arena.free)
			tw->arena.free = llist_del_all(&tw->arena.freed);
		if (!tw->arena.free)
			break;
		t = llist_entry(tw->arena.free, struct twheel_timeout, node);
		tw->arena.free = tw->arena.free->next;
		page = timeout_page(t);
		shrink->nr_left--;
		if (!page->picked) {
			chain_add(&tw->arena.sifted, t);
		} else if (page_find(page, t)) {
			shrink->nr_picked--;
			WRITE_ONCE(t->user_data, (unsigned long)shrink->freeing);
			shrink->freeing = t;
		}
	}
	spin_unlock(&tw->arena.free_lock);
	if (i < SHRINK_STEP)
		shrink->phase = SHRINK_FREES;
}

/* Those of its places that twheel_arena_shrink() has go back to the free list. */
static void page_keep(struct twheel *tw, struct twheel_page *page)
{
	struct chain chain = {};
	struct llist_node *node, *next;

	page->picked = false;
	node = page->nr_found ? &page->timeout[page->found].node : NULL;
	for (; node; node = next) {
		next = node->next;
		chain_add(&chain, llist_entry(node, struct twheel_timeout, node));
	}
	if (chain.nr)
		llist_add_batch(chain.first, chain.last, &tw->arena.freed);
}

/* Free some of the pages that were found.  False where others are adding. */
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

/* Pages some of whose places were in use after all. */
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

static void shrink_end(struct twheel *tw)
{
	struct chain sifted;

	spin_lock(&tw->arena.free_lock);
	sifted = tw->arena.sifted;
	tw->arena.sifted = (struct chain){};
	spin_unlock(&tw->arena.free_lock);
	if (sifted.nr)
		llist_add_batch(sifted.first, sifted.last, &tw->arena.freed);

	/* What was in the way was there for a moment only. */
	if (tw->shrink.step.in_vain)
		WRITE_ONCE(tw->shrink.below, U32_MAX);
	/* What users have mapped follows what it is for. */
	if (READ_ONCE(tw->words.made) && tw->shrink.step.removed)
		twheel_refresh_shrink(tw);
	WRITE_ONCE(tw->shrink.running, false);
	WRITE_ONCE(tw->shrink.wanted, false);
	/* Who let go of more meanwhile has not asked again. */
	smp_mb();
	if (memory_is_wasted(&tw->shrink, &tw->arena, &tw->room))
		twheel_shrink_request(tw);
}

/* Go on with it in a jiffy. */
static void shrink_later(struct twheel *tw)
{
	spin_lock(&tw->wake.lock);
	if (!tw->wake.closing)
		kthread_queue_delayed_work(tw->wake.turn.queue->worker,
					   &tw->shrink.work, 1);
	spin_unlock(&tw->wake.lock);
}

/* Some of what the present phase asks for.  False where it has to wait. */
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

/**
 * twheel_arena_shrink() - give back pages of places when more than half of all places are free
 * @tw: the wheel
 * @budget: of the turn
 *
 * A burst must not keep its memory for ever.  Pages whose places are all free are picked.
 * Then all free places are looked at, and the places of picked pages are kept back.  A page
 * of which all places were found is freed.  A page of which somebody has taken a place
 * meanwhile is not.  No other place is away at any time: a caller that needs one gets it.
 *
 * It comes after a pass, which has fetched from the inbox the places of timeouts that were
 * cancelled there.
 *
 * Context: the kthread after a pass; sleeps.
 * Return: false when the budget ran out before that was done.
 */
bool twheel_arena_shrink(struct twheel *tw, struct budget *budget)
{
	if (!tw->shrink.running)
		shrink_begin(tw);
	while (tw->shrink.step.phase != SHRINK_NOTHING) {
		if (budget_is_spent(budget))
			return false;
		/* Who holds arena.mutex is adding, and may sleep. */
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

static void shrink_due(struct kthread_work *work)
{
	struct twheel *tw = container_of(work, struct twheel, shrink.work.work);

	tw->shrink.due = true;
	twheel_turn_request(&tw->wake.turn);
}

/**
 * twheel_shrink_init() - begin with nothing to be given back
 * @shrink: memory that is given back
 *
 * Context: any.
 */
void twheel_shrink_init(struct twheel_shrink *shrink)
{
	kthread_init_delayed_work(&shrink->work, shrink_due);
}
