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
 *	4	 256	 12 d		8.7 y
 *	...
 *
 * An entry goes to the finest level that reaches it, and moves to a finer level
 * when its slot comes due ("cascades").  G7 cost does not grow: an entry moves at
 * most once per level, whatever happens around it.  G1 never early: an entry always
 * carries its exact tick, and no level rounds it.  An entry that is due at tick T is
 * handed out when tick T is processed, not before.
 *
 * G2 bounded lateness: to empty a coarse slot in the very tick in which it comes due
 * would make other entries late.  The level below reaches nearly two such slots, so a
 * slot can be moved down in the span before.  The wheel begins a lead ahead (three
 * quarters of a span, see level_lead()) and moves EARLY_STEP entries a tick.  Entries
 * that are left when the slot's first tick is processed are moved then; there are such
 * entries when the slot held more than three million for each second of its span.
 *
 * With one level, an entry beyond the level's range waits in the slot that it hashes
 * to, and is looked at once a round.
 *
 * A bitmap per level says which slots are occupied, and each level keeps the first
 * tick of its next occupied slot.  Only filling an empty slot and emptying that slot
 * change it.  The next tick at which the wheel has work follows from these alone: the
 * caller need not call in between, and a call after a long absence costs as much as
 * became due, not as many ticks as went by (G6, G7).
 *
 * Memory
 * ------
 *
 * A slot is a bag of chunks of entries.  An entry takes 18.3 bytes of a chunk (18.9
 * with the head of a page of 4096 bytes).  Entries are values: to move an entry, the
 * wheel reads and writes chunks in sequence, and touches no memory of the caller's.
 *
 * The wheel removes no entry on demand.  The caller lets go of the object that an entry
 * stands for, and drops the dead entry when the wheel hands it out or when a sweep
 * brings it up.  A caller that never sweeps holds dead entries until they are due.
 * Before the caller waits for the next slot, it may look into the slot
 * (twheel_wheel_peek()), and drop or move entries that need no waiting.
 *
 * The wheel allocates nothing.  It takes chunks from pages that the caller has given it.
 * G4 nothing lost: with as many pages as twheel_wheel_pages_for() tells, an insertion
 * cannot fail.  A page goes back to the caller when none of its chunks is in use.  That
 * is why the wheel takes chunks from a page in use as long as there is one.
 *
 * A bag is a circular list of chunks, oldest to newest, known by its newest:
 *
 *	bag --> newest --> oldest --> ... --> (newest)
 *
 * The wheel fills the newest chunk only and empties the oldest chunk only, and it joins
 * two bags in constant time.  No chunk of a bag is empty.  All chunks of a slot are full but the
 * newest, and the oldest while it is emptied.
 *
 * Context
 * -------
 *
 * The wheel has no locks and no clock.  It has one caller at a time, and that caller
 * decides what a tick is and when to call again.  The wheel hands out entries of one
 * tick in no defined order.
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

/* How many entries are moved down ahead of time in one tick. */
#define EARLY_STEP	4096

/* How many entries one call may move for each entry that its caller has space for. */
#define MOVES_PER_DUE	4

/* Pages of chunks */

static struct twheel_chunk_page *chunk_page(const struct twheel_chunk *chunk)
{
	return (struct twheel_chunk_page *)((unsigned long)chunk & PAGE_MASK);
}

/* Few chunks need a page to be moved to another list: that is out of the way of the others. */
static noinline struct twheel_chunk_page *page_move(struct twheel_chunk_page *page,
						    struct list_head *to)
{
	list_move(&page->node, to);
	return page;
}

/* All chunks of a page are in use. */
static noinline void page_used_up(struct twheel_wheel *w, struct twheel_chunk_page *page)
{
	list_move_tail(&page->node, &w->pages);
}

/* Find a page with a free chunk. */
static inline struct twheel_chunk_page *pool_page(struct twheel_wheel *w)
{
	struct twheel_chunk_page *page;

	page = list_first_entry(&w->pages, struct twheel_chunk_page, node);
	if (likely(!list_empty(&w->pages) && page->free))
		return page;
	/* G4: there is a spare page, by twheel_wheel_pages_for(). */
	return page_move(list_first_entry(&w->spare, struct twheel_chunk_page, node),
			 &w->pages);
}

static void pool_put(struct twheel_wheel *w, struct twheel_chunk *chunk)
{
	struct twheel_chunk_page *page = chunk_page(chunk);

	chunk->next = page->free;
	page->free = chunk;
	w->nr_free++;
	if (++page->nr_free == TWHEEL_CHUNKS_PER_PAGE)
		page_move(page, &w->spare);
	else if (page->nr_free == 1)
		page_move(page, &w->pages);
}

/**
 * twheel_wheel_pages_for() - how many pages of chunks are sure to suffice
 * @w: the wheel
 * @nr_entries: how many entries it is going to hold
 *
 * G4 nothing lost.  Each slot wastes less than one chunk, its newest.  Each bag that is
 * being emptied wastes less than one more, its oldest: one slot per level, the hand, the
 * overdue entries.  The wheel moves the last entry of a chunk down before it frees the
 * chunk: one more, and one for a chunk that the caller has taken out.  During a rewind the
 * wasted chunks of all slots are in limbo while the slots fill again.
 *
 * Context: any; reads only what twheel_wheel_init() set.
 * Return: pages with which no insertion of up to @nr_entries entries finds the
 * pool empty.
 */
u64 twheel_wheel_pages_for(const struct twheel_wheel *w, u64 nr_entries)
{
	u64 nr_chunks, nr_slots = w->level[0].mask + 1 + (w->nr_levels - 1) * UPPER_SLOTS;

	if (w->rewinds)
		nr_slots *= 2;
	nr_chunks = DIV_ROUND_UP(nr_entries, TWHEEL_CHUNK_ENTRIES) +
		    min(nr_entries, nr_slots) + 2 * TWHEEL_MAX_LEVELS;
	return DIV_ROUND_UP(nr_chunks, TWHEEL_CHUNKS_PER_PAGE);
}

/**
 * twheel_wheel_give() - add a page of chunks
 * @w: the wheel
 * @page: PAGE_SIZE bytes, aligned to as many, with any contents
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
 * Context: the wheel's one caller, which leaves the wheel as many pages as
 * twheel_wheel_pages_for() tells.
 * Return: a page, or NULL when all pages are in use.
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
 * twheel_wheel_dismantle() - take any page of a wheel that is not used any more
 * @w: the wheel; only this function may be called from now on
 *
 * Context: the wheel's one caller.
 * Return: a page, whose entries are lost, or NULL when no page is left.
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

/* Bags: chunks of entries */

/* Add an entry in a new newest chunk.  Six entries in seven need no new chunk. */
static noinline void bag_grow(struct twheel_wheel *w, struct twheel_chunk **bag,
			      struct twheel_entry entry)
{
	struct twheel_chunk_page *page = pool_page(w);
	struct twheel_chunk *chunk = page->free;
	struct twheel_chunk *newest = *bag;

	page->free = chunk->next;
	/* The next call reads its link, which left the cache long ago. */
	prefetchw(page->free);
	w->nr_free--;

	chunk->nr = 1;
	chunk->epoch = w->epoch;
	chunk->entry[0] = entry;
	chunk->next = chunk;
	if (newest) {
		chunk->next = newest->next;
		newest->next = chunk;
	}
	*bag = chunk;
	if (!--page->nr_free)
		page_used_up(w, page);
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
 * The chunk after the oldest was filled long ago, and only the oldest chunk leads to
 * it: fetch it while the oldest is emptied.
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
		for (from -= nr; nr; nr--)
			*out++ = *from++;
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
 * Return: bytes.  The caller gives twheel_wheel_init() as many, zeroed.
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

/* Slots */

/*
 * G2: how many ticks before its first tick the wheel begins to move a slot down.  The
 * slot's last tick is less than 1 3/4 spans away at that time, and the finer level
 * reaches 2 spans less one of its own slots.
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
 * The first tick of the level's next occupied slot, U64_MAX if all slots are empty.
 * The slot that @cur lies in counts as the next slot: in level 0 it is about to be
 * processed, and in a coarser level it is occupied only when @cur is its first tick.
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

/* Put the first entry into an empty slot. */
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

/* Inserting */

/* Put an entry into the finest level that reaches its tick, which has not gone by. */
static __always_inline void entry_file(struct twheel_wheel *w, struct twheel_entry entry)
{
	struct twheel_level *level = w->level;
	u64 wait = entry.tick - w->cur;
	struct twheel_chunk **bag;
	u32 slot;

	/* The last level reaches every tick. */
	while (wait > level->reach)
		level++;
	slot = level_slot(level, entry.tick);
	bag = &level->slot[slot];
	if (unlikely(!*bag))
		slot_begin(w, level, slot, entry);
	else
		bag_add(w, bag, entry);
}

/* Put an entry where it belongs. */
static __always_inline void entry_place(struct twheel_wheel *w, struct twheel_entry entry)
{
	if (unlikely(entry.tick < w->cur)) {
		bag_add(w, &w->overdue, entry);
		return;
	}
	if (w->nr_levels == 1)
		w->round_min = min(w->round_min, entry.tick);
	entry_file(w, entry);
}

/**
 * twheel_wheel_insert() - add an entry
 * @w: the wheel
 * @entry: the entry; if its tick has been processed already, the next
 *	twheel_wheel_advance() hands it out
 *
 * Context: the wheel's one caller, which has given the wheel as many pages as
 * twheel_wheel_pages_for() tells.
 */
void twheel_wheel_insert(struct twheel_wheel *w, struct twheel_entry entry)
{
	/*
	 * During a rewind the new entry waits behind the entries in limbo.  The slots
	 * must not fill from two sides, or rewinds in a row would waste more chunks than
	 * twheel_wheel_pages_for() counts (G4).
	 */
	w->nr_entries++;
	if (unlikely(w->limbo))
		bag_add(w, &w->limbo, entry);
	else
		entry_place(w, entry);
}

/* Cascading */

/*
 * Move up to @max entries of a slot to finer levels; returns how many.  No tick of the entries
 * has gone by: the wheel does not go beyond the first tick of a coarse slot that is occupied.
 */
static unsigned int slot_cascade(struct twheel_wheel *w,
				 struct twheel_level *level, u32 slot,
				 unsigned int max)
{
	struct twheel_chunk **bag = &level->slot[slot];
	unsigned int moved = 0;

	while (*bag && moved < max) {
		struct twheel_chunk *oldest = (*bag)->next;
		const struct twheel_entry *from = &oldest->entry[oldest->nr];
		u32 nr = min(oldest->nr, max - moved);

		bag_prefetch(*bag);
		moved += nr;
		oldest->nr -= nr;
		/* entry_file() fills finer slots, never this slot or this chunk. */
		while (nr--)
			entry_file(w, *--from);
		if (!oldest->nr)
			pool_put(w, bag_take_oldest(bag));
	}
	if (!*bag)
		slot_end(w, level, slot);
	w->nr_moved += moved;
	return moved;
}

/*
 * G2: move down one step of the slots that come due within the lead of their level.  The
 * finest level goes first: its slot is due soonest, and coarser slots have more time.
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

/* The next slot that the rewind has to empty, NULL if no slot is left. */
static struct twheel_chunk **rewind_next(struct twheel_wheel *w)
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

/* First step of a rewind: empty up to @max slots into limbo; returns how many. */
static unsigned int limbo_fill(struct twheel_wheel *w, unsigned int max)
{
	struct twheel_chunk **bag;
	unsigned int nr = 0;

	while (nr < max && (bag = rewind_next(w))) {
		bag_join(&w->limbo, bag);
		nr++;
	}
	return nr;
}

/* Second step: place up to @max entries of limbo; returns how many. */
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

/**
 * twheel_wheel_rewind() - go back to an earlier tick
 * @w: the wheel, made with rewinds set
 * @tick: the first tick that has not gone by, now that the clock was set back
 *
 * This call only begins the rewind.  The next calls of twheel_wheel_advance() empty the
 * slots, put the entries where they belong from @tick on, and hand out nothing before
 * that is done.  G2: each slot emptied and each entry placed counts as one move.
 *
 * Context: the wheel's one caller.
 */
void twheel_wheel_rewind(struct twheel_wheel *w, u64 tick)
{
	u32 l;

	/* An earlier rewind that is not done with emptying has filled no slot yet. */
	if (w->rewind_level == w->nr_levels) {
		w->rewind_level = 0;
		w->rewind_slot = 0;
	}
	for (l = 0; l < w->nr_levels; l++)
		w->level[l].next = U64_MAX;
	bag_join(&w->limbo, &w->hand);
	bag_join(&w->limbo, &w->overdue);
	/* twheel_wheel_insert() knows by limbo that a rewind is under way. */
	if (!w->limbo)
		limbo_fill(w, 1);
	w->cur = tick;
	w->round_start = tick;
	w->round_min = U64_MAX;
	w->cascade_from = U64_MAX;
}

/* Handing out */

/*
 * The level whose next slot has the earliest first tick.  Where two levels have the same
 * tick, it is the coarser one: emptying the coarser slot may fill the finer slot.
 */
static struct twheel_level *wheel_next_level(struct twheel_wheel *w)
{
	struct twheel_level *first = w->level;
	u32 l;

	/* A coarser slot's first tick is after cascade_from, and so later still. */
	if (first->next <= w->cascade_from)
		return first;
	for (l = 1; l < w->nr_levels; l++)
		if (w->level[l].next <= first->next)
			first = &w->level[l];
	return first;
}

/*
 * Hand out entries of the slot at hand; returns how many.  With one level the slot may
 * hold entries of a later round (G1 never early): they go back to their slot, which
 * comes up again in a round, and each counts as one of @moves.
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
 * With one level: when a whole round has gone by, the wheel has seen all entries, and
 * @round_min tells the earliest tick among them.  So after a long absence of the caller
 * the wheel skips the ticks before it.
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
 * Go to the next tick that has an occupied slot, and take the slot into the hand, or move
 * some of its entries to finer levels.  Returns false if that tick is after @now (G1).
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

/**
 * twheel_wheel_advance() - hand out what is due
 * @w: the wheel
 * @now: the present tick, less than U64_MAX
 * @due: out: entries whose tick is not after @now, in the order of ticks; entries that
 *	were overdue when they were inserted come first
 * @max: space at @due, at least 1 entry
 * @more: out: there may be more, call again
 *
 * G2 bounded lateness: the work of one call is bounded by @max, and by EARLY_STEP in the
 * call that sets @more to false.
 *
 * All entries of one call have the same tick, or were overdue.  So when the caller puts an
 * entry back for a later tick, the wheel hands it out in its turn, even if that tick has
 * passed as well.
 *
 * A call whose @now is before the last call's hands out nothing new.  See
 * twheel_wheel_rewind() for a clock that was set back.
 *
 * Context: the wheel's one caller.
 * Return: how many entries are at @due; the wheel does not hold them any more.
 */
unsigned int twheel_wheel_advance(struct twheel_wheel *w, u64 now,
				  struct twheel_entry *due, unsigned int max,
				  bool *more)
{
	unsigned int moves = max * MOVES_PER_DUE;
	unsigned int nr = 0;
	bool again = false;

	if (unlikely(w->limbo)) {
		/* If limbo_fill() uses all moves, a slot may be left, and none is placed. */
		moves -= limbo_fill(w, moves);
		moves -= limbo_place(w, moves);
	}
	if (!w->limbo) {
		if (w->overdue) {
			/* The caller may put them back, and they may be overdue again. */
			again = true;
			nr = bag_take(w, &w->overdue, due, max);
		}
		if (w->hand)
			nr += hand_take(w, due + nr, max - nr, &moves);
		/* One tick at a time, see the kernel-doc. */
		while (!nr && moves && wheel_step(w, now, &moves))
			nr = hand_take(w, due, max, &moves);
		w->nr_entries -= nr;
	}
	/* G2: entries that are due do not wait for entries that are moved ahead of time. */
	*more = again || w->limbo || w->hand || w->cur <= now ||
		(nr && w->cascade_from < w->cur);
	if (!*more && w->cascade_from < w->cur)
		wheel_cascade_early(w);
	return nr;
}

/* Waiting for the next slot */

/* The level of the slot that twheel_wheel_next() tells the time of. */
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

/**
 * twheel_wheel_next() - when the wheel has work
 * @w: the wheel
 *
 * Context: the wheel's one caller.
 * Return: the tick at which the caller must call twheel_wheel_advance() next; 0 for at
 * once, U64_MAX for never.  With one level that call may find entries of later rounds
 * only.
 */
u64 twheel_wheel_next(const struct twheel_wheel *w)
{
	if (w->limbo || w->overdue || w->hand)
		return 0;
	return min(w->level[0].next, max(w->cascade_from, w->cur));
}

/**
 * twheel_wheel_peek() - look into the slot that the wheel waits for
 * @w: the wheel
 *
 * Context: the wheel's one caller.
 * Return: the oldest chunk of the slot that twheel_wheel_next() tells the time of, valid
 * until the wheel is used again; NULL when twheel_wheel_next() says "at once" or "never".
 */
const struct twheel_chunk *twheel_wheel_peek(const struct twheel_wheel *w)
{
	const struct twheel_level *level = &w->level[wheel_wake_level(w)];

	if (level->next == U64_MAX || w->limbo || w->overdue || w->hand)
		return NULL;
	return level->slot[level_slot(level, level->next)]->next;
}

/**
 * twheel_wheel_take_out() - take out the chunk that twheel_wheel_peek() has shown
 * @w: the wheel, not used since
 *
 * The caller drops entries or gives them later ticks, and puts the chunk back with
 * twheel_wheel_put_back() before it does anything else with the wheel.  A chunk with some
 * entries left would waste space in its slot, and the caller may look into any number of
 * slots before they are due (G4).
 *
 * Context: the wheel's one caller.
 * Return: the chunk, whose entries the wheel does not hold any more.
 */
struct twheel_chunk *twheel_wheel_take_out(struct twheel_wheel *w)
{
	struct twheel_level *level = &w->level[wheel_wake_level(w)];
	u32 slot = level_slot(level, level->next);
	struct twheel_chunk *chunk = bag_take_oldest(&level->slot[slot]);

	w->nr_entries -= chunk->nr;
	if (!level->slot[slot])
		slot_end(w, level, slot);
	return chunk;
}

/**
 * twheel_wheel_put_back() - put each entry of a chunk where it belongs
 * @w: the wheel
 * @chunk: what twheel_wheel_take_out() or twheel_wheel_sweep() returned; it may have fewer
 *	entries, or none
 *
 * Context: the wheel's one caller.
 */
void twheel_wheel_put_back(struct twheel_wheel *w, struct twheel_chunk *chunk)
{
	u32 i;

	w->nr_entries += chunk->nr;
	for (i = 0; i < chunk->nr; i++)
		entry_place(w, chunk->entry[i]);
	pool_put(w, chunk);
}

/* Sweeping */

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
 * twheel_wheel_sweep() - take a chunk of entries out, so that dead ones can be dropped
 * @w: the wheel
 *
 * The caller drops the dead entries of the chunk, and puts it back with
 * twheel_wheel_put_back() before it does anything else with the wheel.
 *
 * The caller may insert entries and advance the wheel between two chunks.  A sweep brings
 * up each entry that waits in its slot from the sweep's beginning to its end.  It may miss
 * an entry that moves meanwhile, or was taken out and put back, and bring up an entry that was
 * inserted meanwhile.
 *
 * Context: the wheel's one caller.
 * Return: a chunk of entries, which the wheel does not hold any more; NULL when the
 * sweep is done, and during a rewind, which moves all entries.
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
			/* The oldest was filled in this sweep, and so were newer ones. */
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
