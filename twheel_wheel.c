// SPDX-License-Identifier: GPL-2.0
/*
 * The wheel of twheel: a hashed timing wheel of levels
 *
 * After Varghese and Lauck, "Hashed and Hierarchical Timing Wheels: Data
 * Structures for the Efficient Implementation of a Timer Facility" (1987),
 * schemes 6 (hashed, with rounds) and 7 (hierarchical).
 *
 * Levels
 * ------
 *
 * Level 0 has a slot per tick.  Every further level has 256 slots and overlaps
 * the one below: one of its slots spans half of that level's whole range.  With
 * 1024 slots in level 0 and a tick of 1 ms:
 *
 *	level	slots	a slot spans	the level reaches
 *	0	1024	  1 ms		1 s
 *	1	 256	512 ms		131 s
 *	2	 256	 65 s		4.6 h
 *	3	 256	2.3 h		24 d
 *	4	 256	 12 d		8.5 y
 *	...
 *
 * An entry goes to the finest level that reaches it, and moves to a finer one
 * when its slot comes due ("cascades"): at most once per level, whatever
 * happens around it.  It always carries its exact tick, so that nothing is
 * rounded by the levels: what is due at tick T is handed out at tick T.
 *
 * Emptying a coarse slot in the very tick when it comes due would make others
 * late.  Since the level below reaches nearly two such slots, a slot can be moved
 * down in the span before: it is begun LEAD (three quarters of a span, no more)
 * ahead, and done in steps of EARLY_STEP entries a tick.  What is left when the
 * slot's first tick is processed - there were more than three million for each
 * second of it - is moved then.
 *
 * With one level, an entry beyond its range waits in the slot it hashes to and
 * is looked at once a round.
 *
 * A bitmap per level says which slots are occupied, and each level keeps the
 * first tick of the next one that is: only filling an empty slot and emptying
 * that one change it.  The next tick at which anything must be done follows from
 * these alone: in between nobody needs to call, and a call after a long absence
 * costs what became due, not the ticks that went by.
 *
 * Memory
 * ------
 *
 * A slot is a bag of chunks of entries, 18.3 bytes an entry (18.9 with what a page
 * of 4096 bytes takes beside its chunks).  Entries are
 * values: moving one reads and writes a chunk in sequence and touches nothing
 * of the caller's.  There is no removal: the caller lets go of what an entry
 * stands for, and drops the entry when it is handed out or when a sweep brings
 * it up.  A caller who never sweeps holds dead entries until they are due.  Before
 * the caller waits for the next slot, it may look into it, and drop what there is
 * no need to wait for.
 *
 * The wheel allocates nothing.  It takes chunks from pages that the caller gives
 * it beforehand, and twheel_wheel_pages_for() says how many make sure that an
 * insertion cannot fail.  A page goes back to the caller when none of its chunks
 * is in use; so a chunk is taken from a page in use if there is one.
 *
 * A bag is a circular list of chunks, oldest to newest, known by its newest:
 *
 *	bag --> newest --> oldest --> ... --> (newest)
 *
 * Only the newest is filled, only the oldest is emptied, and two bags join in
 * constant time.  No chunk of a bag is empty; only the newest, and the oldest
 * while it is emptied, are less than full.
 *
 * Context
 * -------
 *
 * There are no locks here and no clock.  One caller at a time; the caller also
 * decides what a tick is and when to come back.  The order in which entries of
 * one tick are handed out is not defined.
 */
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/prefetch.h>

#include "twheel_wheel.h"

/* Slots of every level but the first, and by how much it is coarser. */
#define UPPER_SLOTS	256
#define UPPER_SHIFT	7

/* Entries moved down ahead of time in one tick. */
#define EARLY_STEP	4096

/* Entries moved or put back for each one that a caller has room for. */
#define MOVES_PER_DUE	4

/* The pool: pages of chunks */

static struct twheel_chunk_page *chunk_page(const struct twheel_chunk *chunk)
{
	return (struct twheel_chunk_page *)((unsigned long)chunk & PAGE_MASK);
}

static struct twheel_chunk *pool_get(struct twheel_wheel *w)
{
	struct twheel_chunk_page *page;
	struct twheel_chunk *chunk;

	page = list_first_entry(&w->pages, struct twheel_chunk_page, node);
	if (unlikely(list_empty(&w->pages) || !page->free)) {
		/* There is one: twheel_wheel_pages_for() is the caller's promise. */
		page = list_first_entry(&w->spare, struct twheel_chunk_page,
					node);
		list_move(&page->node, &w->pages);
	}
	chunk = page->free;
	page->free = chunk->next;
	w->nr_free--;
	if (!--page->nr_free)
		list_move_tail(&page->node, &w->pages);
	/* Its link will be wanted, and it was given back long ago. */
	prefetchw(page->free);
	return chunk;
}

static void pool_put(struct twheel_wheel *w, struct twheel_chunk *chunk)
{
	struct twheel_chunk_page *page = chunk_page(chunk);

	chunk->next = page->free;
	page->free = chunk;
	w->nr_free++;
	if (++page->nr_free == TWHEEL_CHUNKS_PER_PAGE)
		list_move(&page->node, &w->spare);
	else if (page->nr_free == 1)
		list_move(&page->node, &w->pages);
}

/* Bags: chunks of entries */

/* Into a new newest chunk.  Out of the way of the six in seven that need none. */
static noinline void bag_grow(struct twheel_wheel *w, struct twheel_chunk **bag,
			      struct twheel_entry entry)
{
	struct twheel_chunk *chunk = pool_get(w);
	struct twheel_chunk *newest = *bag;

	chunk->nr = 1;
	chunk->epoch = w->epoch;
	chunk->entry[0] = entry;
	chunk->next = chunk;
	if (newest) {
		chunk->next = newest->next;
		newest->next = chunk;
	}
	*bag = chunk;
}

static inline void bag_add(struct twheel_wheel *w, struct twheel_chunk **bag,
			   struct twheel_entry entry)
{
	struct twheel_chunk *newest = *bag;

	if (newest && likely(newest->nr < TWHEEL_CHUNK_ENTRIES))
		newest->entry[newest->nr++] = entry;
	else
		bag_grow(w, bag, entry);
}

static struct twheel_chunk *bag_take_oldest(struct twheel_chunk **bag)
{
	struct twheel_chunk *oldest = (*bag)->next;

	if (oldest == *bag)
		*bag = NULL;
	else
		(*bag)->next = oldest->next;
	return oldest;
}

/*
 * The chunk after the oldest was filled long ago, and only the oldest leads to
 * it: have it fetched while the oldest is emptied.
 */
static void bag_prefetch(struct twheel_chunk *bag)
{
	struct twheel_chunk *following = bag->next->next;

	prefetch(following);
	prefetch(&following->entry[TWHEEL_CHUNK_ENTRIES - 1]);
}

/* Take up to @max entries out of a bag; returns how many. */
static unsigned int bag_take(struct twheel_wheel *w, struct twheel_chunk **bag,
			     struct twheel_entry *out, unsigned int max)
{
	unsigned int left = max;

	while (*bag && left) {
		struct twheel_chunk *oldest = (*bag)->next;
		const struct twheel_entry *from = &oldest->entry[oldest->nr];
		u32 nr = min(oldest->nr, left);

		oldest->nr -= nr;
		left -= nr;
		while (nr--)
			*out++ = *--from;
		if (!oldest->nr)
			pool_put(w, bag_take_oldest(bag));
	}
	return max - left;
}

static void bag_join(struct twheel_chunk **to, struct twheel_chunk **from)
{
	if (*to && *from)
		swap((*to)->next, (*from)->next);
	else if (*from)
		*to = *from;
	*from = NULL;
}

/* Slots */

/*
 * How far ahead of its first tick a slot is begun to be moved down, ticks.  Its last
 * one is less than 1 3/4 spans away then; the finer level reaches 2, but for one of
 * its own slots.
 */
static u64 level_lead(const struct twheel_level *level)
{
	return (1ULL << level->shift) * 3 / 4;
}

/* The slot that a tick belongs to. */
static u32 level_slot(const struct twheel_level *level, u64 tick)
{
	return (tick >> level->shift) & level->mask;
}

/*
 * The first tick of the level's next occupied slot, U64_MAX if there is none.
 * The slot that @cur lies in counts as the next one: in level 0 it is the one
 * to be processed, and in a coarser level it is occupied only when @cur is its
 * first tick.
 */
static u64 level_find(const struct twheel_level *level, u64 cur)
{
	u64 base = cur >> level->shift;
	unsigned int nr = level->mask + 1;
	unsigned int from = base & level->mask;
	unsigned int slot = find_next_bit(level->occupied, nr, from);

	if (slot >= nr) {
		slot = find_next_bit(level->occupied, from, 0);
		if (slot >= from)
			return U64_MAX;
	}
	return (base + ((slot - from) & level->mask)) << level->shift;
}

/* The first entry of a slot. */
static noinline void slot_begin(struct twheel_wheel *w,
				struct twheel_level *level, u32 slot,
				struct twheel_entry entry)
{
	u64 base = w->cur >> level->shift;
	u64 first_tick = (base + ((slot - base) & level->mask)) << level->shift;

	bag_grow(w, &level->slot[slot], entry);
	__set_bit(slot, level->occupied);
	if (first_tick >= level->next)
		return;
	level->next = first_tick;
	if (level != w->level)
		w->cascade_from = min(w->cascade_from,
				      first_tick - level_lead(level));
}

/* A slot has become empty. */
static void slot_end(struct twheel_wheel *w, struct twheel_level *level,
		     u32 slot)
{
	u32 l;

	__clear_bit(slot, level->occupied);
	if (slot != level_slot(level, level->next))
		return;
	level->next = level_find(level, w->cur);
	if (level == w->level)
		return;
	w->cascade_from = U64_MAX;
	for (l = 1; l < w->nr_levels; l++)
		if (w->level[l].next != U64_MAX)
			w->cascade_from = min(w->cascade_from,
					      w->level[l].next -
					      level_lead(&w->level[l]));
}

/*
 * The level that has the first slot that is to be emptied; where two have the
 * same tick, the coarser: it may fill the finer.
 */
static struct twheel_level *wheel_next_level(struct twheel_wheel *w)
{
	struct twheel_level *first = w->level;
	u32 l;

	/* The coarser levels come after that, if it is to be soon at all. */
	if (first->next <= w->cascade_from)
		return first;
	for (l = 1; l < w->nr_levels; l++)
		if (w->level[l].next <= first->next)
			first = &w->level[l];
	return first;
}

/* The level of which a slot is to be handled next, empty or not. */
static __always_inline u32 wheel_wake_level(const struct twheel_wheel *w)
{
	u32 l = 0;

	if (likely(w->level[0].next <= w->cascade_from))
		return 0;
	do
		l++;
	while (w->level[l].next == U64_MAX ||
	       w->level[l].next - level_lead(&w->level[l]) != w->cascade_from);
	return l;
}

/* Put an entry where it belongs: the finest level that reaches its tick. */
static __always_inline void entry_place(struct twheel_wheel *w, struct twheel_entry entry)
{
	struct twheel_level *level = w->level;
	u64 tick = entry.tick;
	struct twheel_chunk **bag;
	u32 slot;

	if (unlikely(tick < w->cur)) {
		bag_add(w, &w->overdue, entry);
		return;
	}
	if (w->nr_levels == 1)
		w->round_min = min(w->round_min, tick);
	/* The last one reaches everything. */
	while (tick - w->cur > level->reach)
		level++;
	slot = level_slot(level, tick);
	bag = &level->slot[slot];
	if (unlikely(!*bag))
		slot_begin(w, level, slot, entry);
	else
		bag_add(w, bag, entry);
}

/* Move up to @max entries of a slot to finer levels; returns how many. */
static unsigned int slot_cascade(struct twheel_wheel *w,
				 struct twheel_level *level, u32 slot,
				 unsigned int max)
{
	struct twheel_chunk **bag = &level->slot[slot];
	unsigned int moved = 0;

	while (*bag && moved < max) {
		struct twheel_chunk *oldest = (*bag)->next;
		u32 nr = min(oldest->nr, max - moved);

		bag_prefetch(*bag);
		moved += nr;
		/* Others are filled meanwhile, this slot and chunk are not. */
		while (nr--)
			entry_place(w, oldest->entry[--oldest->nr]);
		if (!oldest->nr)
			pool_put(w, bag_take_oldest(bag));
	}
	if (!*bag)
		slot_end(w, level, slot);
	w->nr_moved += moved;
	return moved;
}

/*
 * Move down what comes due within the lead of its level, one step of it.  The
 * finest first: it is due soonest, and the coarser ones have more time.
 */
static void wheel_cascade_early(struct twheel_wheel *w)
{
	unsigned int left = EARLY_STEP;
	u32 l;

	for (l = 1; l < w->nr_levels && left; l++) {
		struct twheel_level *level = &w->level[l];

		if (level->next == U64_MAX ||
		    level->next - w->cur >= level_lead(level))
			continue;
		left -= slot_cascade(w, level, level_slot(level, level->next),
				     left);
	}
}

/* Rewinding */

/* The next slot that a rewind has to empty, NULL if none is left. */
static struct twheel_chunk **rewind_slot(struct twheel_wheel *w)
{
	for (; w->rewind_level < w->nr_levels; w->rewind_level++) {
		struct twheel_level *level = &w->level[w->rewind_level];
		u32 slot = find_next_bit(level->occupied, level->mask + 1,
					 w->rewind_slot);

		w->rewind_slot = slot + 1;
		if (slot <= level->mask) {
			__clear_bit(slot, level->occupied);
			return &level->slot[slot];
		}
		w->rewind_slot = 0;
	}
	return NULL;
}

/* After a rewind: empty up to @max slots into limbo; returns how many. */
static unsigned int limbo_fill(struct twheel_wheel *w, unsigned int max)
{
	struct twheel_chunk **bag;
	unsigned int nr = 0;

	while (nr < max && (bag = rewind_slot(w))) {
		bag_join(&w->limbo, bag);
		nr++;
	}
	return nr;
}

/* After that: place up to @max entries; returns how many. */
static unsigned int limbo_place(struct twheel_wheel *w, unsigned int max)
{
	struct twheel_entry entry;
	unsigned int nr = 0;

	while (nr < max && bag_take(w, &w->limbo, &entry, 1)) {
		entry_place(w, entry);
		nr++;
	}
	w->nr_moved += nr;
	return nr;
}

/* Handing out */

/*
 * Hand out entries of the slot at hand; returns how many.  With one level some
 * may belong to a later round: they go back to their slot, which comes up again
 * in a round, and count as @moves.
 */
static unsigned int hand_take(struct twheel_wheel *w, struct twheel_entry *due,
			      unsigned int max, unsigned int *moves)
{
	unsigned int nr = 0;

	if (w->nr_levels > 1)
		return bag_take(w, &w->hand, due, max);
	while (nr < max && *moves && bag_take(w, &w->hand, &due[nr], 1)) {
		if (due[nr].tick < w->cur) {
			nr++;
			continue;
		}
		entry_place(w, due[nr]);
		w->nr_moved++;
		(*moves)--;
	}
	return nr;
}

/*
 * With one level, and after a long absence: when a whole round has gone by, all
 * entries have been seen, and @round_min knows that nothing is due before it.
 */
static void rounds_skip(struct twheel_wheel *w, u64 now)
{
	if (w->cur - w->round_start <= w->level[0].mask)
		return;
	if (w->round_min > w->cur) {
		w->cur = max(w->cur, min(w->round_min, now + 1));
		w->level[0].next = level_find(&w->level[0], w->cur);
	}
	w->round_start = w->cur;
	w->round_min = U64_MAX;
}

/*
 * Go to the next tick at which there is something to be done, and take its slot
 * into the hand, or some of it to finer levels.  False if it is after @now.
 */
static bool wheel_step(struct twheel_wheel *w, u64 now, unsigned int *moves)
{
	struct twheel_level *level;
	u32 slot;

	if (w->nr_levels == 1)
		rounds_skip(w, now);
	level = wheel_next_level(w);
	if (level->next > now) {
		w->cur = max(w->cur, now + 1);
		return false;
	}
	w->cur = level->next;
	slot = level_slot(level, level->next);
	if (level != w->level) {
		*moves -= slot_cascade(w, level, slot, *moves);
		return true;
	}
	w->hand = level->slot[slot];
	level->slot[slot] = NULL;
	w->cur++;
	slot_end(w, level, slot);
	return true;
}

/* Shape */

static u32 level_slots(const struct twheel_wheel_config *config, u32 l)
{
	return l ? UPPER_SLOTS : config->slots;
}

static u32 level_shift(const struct twheel_wheel_config *config, u32 l)
{
	return l ? ilog2(config->slots) - 1 + (l - 1) * UPPER_SHIFT : 0;
}

/* As many levels as it takes to reach max_tick from any tick. */
static u32 config_levels(const struct twheel_wheel_config *config)
{
	u32 l = 1;

	if (config->one_level)
		return 1;
	while ((config->max_tick >> level_shift(config, l - 1)) >=
	       level_slots(config, l - 1))
		l++;
	return l;
}

static size_t level_bitmap_size(const struct twheel_wheel_config *config, u32 l)
{
	return BITS_TO_LONGS(level_slots(config, l)) * sizeof(unsigned long);
}

/**
 * twheel_wheel_size() - memory that a wheel's slots take
 * @config: the shape
 *
 * Context: any.
 * Return: bytes; to be given to twheel_wheel_init(), zeroed.
 */
size_t twheel_wheel_size(const struct twheel_wheel_config *config)
{
	u32 l, nr_levels = config_levels(config);
	size_t size = 0;

	for (l = 0; l < nr_levels; l++)
		size += level_slots(config, l) * sizeof(struct twheel_chunk *) +
			level_bitmap_size(config, l);
	return size;
}

/**
 * twheel_wheel_init() - make an empty wheel
 * @w: the wheel
 * @config: its shape
 * @memory: twheel_wheel_size() bytes, zeroed, aligned to a pointer
 * @cur: the first tick that has not gone by
 *
 * Context: any.
 */
void twheel_wheel_init(struct twheel_wheel *w,
		       const struct twheel_wheel_config *config, void *memory,
		       u64 cur)
{
	u32 l;

	*w = (struct twheel_wheel){
		.cur		= cur,
		.round_start	= cur,
		.round_min	= U64_MAX,
		.cascade_from	= U64_MAX,
		.rewind_level	= config_levels(config),
		.nr_levels	= config_levels(config),
		.rewinds	= config->rewinds,
	};
	for (l = 0; l < w->nr_levels; l++) {
		struct twheel_level *level = &w->level[l];

		level->next = U64_MAX;
		level->mask = level_slots(config, l) - 1;
		level->shift = level_shift(config, l);
		level->reach = (u64)level->mask << level->shift;
		level->slot = memory;
		memory += level_slots(config, l) * sizeof(*level->slot);
		level->occupied = memory;
		memory += level_bitmap_size(config, l);
	}
	w->level[l - 1].reach = U64_MAX;
	INIT_LIST_HEAD(&w->pages);
	INIT_LIST_HEAD(&w->spare);
}

/* Giving and taking pages */

/**
 * twheel_wheel_pages_for() - how many pages of chunks make sure of room
 * @w: the wheel
 * @nr_entries: how many entries it is going to hold
 *
 * Each slot wastes less than one chunk, its newest.  So does each that is being
 * emptied, its oldest: one a level, the hand, the overdue.  The last entry of a
 * chunk is moved down before the chunk is free: one more, and one for a sweep.
 * After a rewind the wasted chunks of all slots are in limbo, while the slots fill
 * again.
 *
 * Context: any; reads only what twheel_wheel_init() set.
 * Return: pages with which no insertion of up to @nr_entries entries finds the
 * pool empty.
 */
u64 twheel_wheel_pages_for(const struct twheel_wheel *w, u64 nr_entries)
{
	u64 nr_chunks, nr_slots = 0;
	u32 l;

	for (l = 0; l < w->nr_levels; l++)
		nr_slots += w->level[l].mask + 1;
	if (w->rewinds)
		nr_slots *= 2;
	nr_chunks = DIV_ROUND_UP(nr_entries, TWHEEL_CHUNK_ENTRIES) +
		    min(nr_entries, nr_slots) + 2 * TWHEEL_MAX_LEVELS;
	return DIV_ROUND_UP(nr_chunks, TWHEEL_CHUNKS_PER_PAGE);
}

/**
 * twheel_wheel_give() - add a page of chunks
 * @w: the wheel
 * @page: PAGE_SIZE bytes, aligned to as many; what they hold does not matter
 *
 * Context: the wheel's one caller.
 */
void twheel_wheel_give(struct twheel_wheel *w, struct twheel_chunk_page *page)
{
	u32 i;

	page->free = NULL;
	for (i = TWHEEL_CHUNKS_PER_PAGE; i--;) {
		page->chunk[i].next = page->free;
		page->free = &page->chunk[i];
	}
	page->nr_free = TWHEEL_CHUNKS_PER_PAGE;
	w->nr_free += TWHEEL_CHUNKS_PER_PAGE;
	list_add(&page->node, &w->spare);
}

/**
 * twheel_wheel_take_back() - take a page that is not in use
 * @w: the wheel
 *
 * Context: the wheel's one caller, who keeps twheel_wheel_pages_for().
 * Return: a page, or NULL when all are in use.
 */
struct twheel_chunk_page *twheel_wheel_take_back(struct twheel_wheel *w)
{
	struct twheel_chunk_page *page;

	if (list_empty(&w->spare))
		return NULL;
	page = list_first_entry(&w->spare, struct twheel_chunk_page, node);
	list_del(&page->node);
	w->nr_free -= TWHEEL_CHUNKS_PER_PAGE;
	return page;
}

/**
 * twheel_wheel_dismantle() - take a page of a wheel that is to go
 * @w: the wheel; only this function may be called from now on
 *
 * Context: the wheel's one caller.
 * Return: a page, whatever is in it; NULL when none is left.
 */
struct twheel_chunk_page *twheel_wheel_dismantle(struct twheel_wheel *w)
{
	struct twheel_chunk_page *page;

	if (list_empty(&w->pages))
		return twheel_wheel_take_back(w);
	page = list_first_entry(&w->pages, struct twheel_chunk_page, node);
	list_del(&page->node);
	return page;
}

/* Operations */

/**
 * twheel_wheel_insert() - add an entry
 * @w: the wheel
 * @entry: the entry; one whose tick has been processed already is handed out
 *	by the next twheel_wheel_advance()
 *
 * Context: the wheel's one caller, who has given it the pages that
 * twheel_wheel_pages_for() tells.
 */
void twheel_wheel_insert(struct twheel_wheel *w, struct twheel_entry entry)
{
	/*
	 * After a rewind, behind those that wait to be placed: the slots must
	 * not fill from two sides, or rewinds in a row would waste more chunks
	 * than were promised.
	 */
	w->nr_entries++;
	if (unlikely(w->limbo))
		bag_add(w, &w->limbo, entry);
	else
		entry_place(w, entry);
}

/**
 * twheel_wheel_advance() - hand out what is due
 * @w: the wheel
 * @now: the present tick, less than U64_MAX
 * @due: out: entries whose tick is not after @now, in the order of ticks
 *	(except for those that were overdue when inserted, which come first)
 * @max: room at @due, 1 at least
 * @more: out: this is not all, call again; the work of one call is bounded by
 *	@max, and by EARLY_STEP in the last one
 *
 * What is handed out in one call is of one tick, or overdue.  So an entry that
 * the caller puts back for a later tick, even if that has passed as well, is
 * handed out in its turn.
 *
 * A @now that is before the last one hands out nothing new; see
 * twheel_wheel_rewind() for a clock that was set back.
 *
 * Context: the wheel's one caller.
 * Return: how many entries are at @due; they are the wheel's no longer.
 */
unsigned int twheel_wheel_advance(struct twheel_wheel *w, u64 now,
				  struct twheel_entry *due, unsigned int max,
				  bool *more)
{
	unsigned int moves = max * MOVES_PER_DUE;
	unsigned int nr = 0;
	bool again = false;

	if (unlikely(w->limbo)) {
		/* Only when that took less than it might is there no slot left. */
		moves -= limbo_fill(w, moves);
		moves -= limbo_place(w, moves);
	}
	if (!w->limbo) {
		if (w->overdue) {
			/* If the caller puts them back, they may be so again. */
			again = true;
			nr = bag_take(w, &w->overdue, due, max);
		}
		if (w->hand)
			nr += hand_take(w, due + nr, max - nr, &moves);
		/* One tick at a time: see above. */
		while (!nr && moves && wheel_step(w, now, &moves))
			nr = hand_take(w, due, max, &moves);
		w->nr_entries -= nr;
	}
	/* What is due does not wait for what is moved ahead of time. */
	*more = again || w->limbo || w->overdue || w->hand || w->cur <= now ||
		(nr && w->cascade_from < w->cur);
	if (!*more && w->cascade_from < w->cur)
		wheel_cascade_early(w);
	return nr;
}

/**
 * twheel_wheel_next() - when there is something to do
 * @w: the wheel
 *
 * Context: the wheel's one caller.
 * Return: the tick at which twheel_wheel_advance() must be called next, 0 when
 * at once, U64_MAX when never.  With one level there may turn out to be nothing
 * to do but to look at entries of later rounds.
 */
u64 twheel_wheel_next(const struct twheel_wheel *w)
{
	if (w->limbo || w->overdue || w->hand)
		return 0;
	return min(w->level[0].next, max(w->cascade_from, w->cur));
}

/**
 * twheel_wheel_peek() - look at what there is to do next
 * @w: the wheel
 *
 * Context: the wheel's one caller.
 * Return: the oldest chunk of the slot that twheel_wheel_next() tells the time
 * of; NULL when there is something to do at once, or never.  Good until the wheel
 * is used again.
 */
const struct twheel_chunk *twheel_wheel_peek(const struct twheel_wheel *w)
{
	const struct twheel_level *level = &w->level[wheel_wake_level(w)];

	if (level->next == U64_MAX || w->limbo || w->overdue || w->hand)
		return NULL;
	return level->slot[level_slot(level, level->next)]->next;
}

/**
 * twheel_wheel_drop() - drop the entries that twheel_wheel_peek() has shown
 * @w: the wheel, not used since
 *
 * All of them: a slot of which some were dropped would waste a chunk, and any
 * number of slots may be looked at before they are due.
 *
 * Context: the wheel's one caller.
 */
void twheel_wheel_drop(struct twheel_wheel *w)
{
	struct twheel_level *level = &w->level[wheel_wake_level(w)];
	u32 slot = level_slot(level, level->next);
	struct twheel_chunk *chunk = bag_take_oldest(&level->slot[slot]);

	w->nr_entries -= chunk->nr;
	pool_put(w, chunk);
	if (!level->slot[slot])
		slot_end(w, level, slot);
}

/**
 * twheel_wheel_rewind() - go back to an earlier tick
 * @w: the wheel, made with rewinds set
 * @tick: the first tick that has not gone by, now that the clock was set back
 *
 * This only begins it.  The next calls of twheel_wheel_advance() empty the slots,
 * and put the entries where they belong from @tick on, before they hand out
 * anything; a slot or an entry counts as one that is moved.
 *
 * Context: the wheel's one caller.
 */
void twheel_wheel_rewind(struct twheel_wheel *w, u64 tick)
{
	u32 l;

	/* One that has not emptied all slots yet has filled none. */
	if (w->rewind_level == w->nr_levels) {
		w->rewind_level = 0;
		w->rewind_slot = 0;
	}
	for (l = 0; l < w->nr_levels; l++)
		w->level[l].next = U64_MAX;
	bag_join(&w->limbo, &w->hand);
	bag_join(&w->limbo, &w->overdue);
	/* What is inserted meanwhile must find it begun. */
	if (!w->limbo)
		limbo_fill(w, 1);
	w->cur = tick;
	w->round_start = tick;
	w->round_min = U64_MAX;
	w->cascade_from = U64_MAX;
}

/**
 * twheel_wheel_sweep_begin() - begin to bring up all entries
 * @w: the wheel
 *
 * Context: the wheel's one caller.
 */
void twheel_wheel_sweep_begin(struct twheel_wheel *w)
{
	w->epoch++;
	w->sweep_level = 0;
	w->sweep_slot = 0;
}

/**
 * twheel_wheel_sweep() - take some entries out, so that the dead can be dropped
 * @w: the wheel
 *
 * Those that live are to be put back with twheel_wheel_keep(), and then the chunk
 * with twheel_wheel_swept(), before anything else is done with the wheel, another
 * sweep included.
 *
 * Entries may be inserted and handed out between two chunks.  A sweep brings up
 * each entry that waits in its slot from the sweep's beginning to its end.  One
 * that moves in between may be missed, and a newer one may come up.
 *
 * Context: the wheel's one caller.
 * Return: a chunk of entries, which the wheel does not hold any more; NULL when the
 * sweep is done, and while a rewind is under way, which moves all of them.
 */
struct twheel_chunk *twheel_wheel_sweep(struct twheel_wheel *w)
{
	if (w->limbo)
		return NULL;
	for (; w->sweep_level < w->nr_levels; w->sweep_level++) {
		struct twheel_level *level = &w->level[w->sweep_level];

		for (;;) {
			u32 slot = find_next_bit(level->occupied,
						 level->mask + 1,
						 w->sweep_slot);
			struct twheel_chunk **bag = &level->slot[slot];
			struct twheel_chunk *chunk;

			w->sweep_slot = slot;
			if (slot > level->mask)
				break;
			/* Newer chunks were filled in this sweep as well. */
			if ((*bag)->next->epoch == w->epoch) {
				w->sweep_slot++;
				continue;
			}
			bag_prefetch(*bag);
			chunk = bag_take_oldest(bag);
			w->nr_entries -= chunk->nr;
			if (!*bag)
				slot_end(w, level, slot);
			return chunk;
		}
		w->sweep_slot = 0;
	}
	return NULL;
}

/**
 * twheel_wheel_keep() - put an entry back that a sweep has brought up
 * @w: the wheel
 * @entry: one of the chunk that the last twheel_wheel_sweep() returned
 *
 * Context: the wheel's one caller.
 */
void twheel_wheel_keep(struct twheel_wheel *w, struct twheel_entry entry)
{
	struct twheel_level *level = &w->level[w->sweep_level];
	u32 slot = w->sweep_slot;

	w->nr_entries++;
	if (level->slot[slot])
		bag_add(w, &level->slot[slot], entry);
	else
		slot_begin(w, level, slot, entry);
}

/**
 * twheel_wheel_swept() - done with a chunk that a sweep has brought up
 * @w: the wheel
 * @chunk: the chunk that the last twheel_wheel_sweep() returned
 *
 * Context: the wheel's one caller.
 */
void twheel_wheel_swept(struct twheel_wheel *w, struct twheel_chunk *chunk)
{
	pool_put(w, chunk);
}
