/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wheel: a hashed timing wheel of levels, as a pure data structure.
 *
 * It knows ticks, not clocks, and entries, not timeouts.  See the banner of
 * twheel_wheel.c for how it works and what it leaves to its caller.
 */
#ifndef _TWHEEL_WHEEL_H
#define _TWHEEL_WHEEL_H

#include <linux/list.h>
#include <linux/types.h>
#include <asm/page.h>

/* As many levels as 2^64 ticks take with the smallest first level. */
#define TWHEEL_MAX_LEVELS	10

/**
 * struct twheel_entry - a timeout's entry: when it is due, and whose it is
 * @tick: the tick at which it is due
 * @index: the caller's number, which the wheel only carries along
 * @seq: likewise
 */
struct twheel_entry {
	u64 tick;
	u32 index;
	u32 seq;
};

#define TWHEEL_CHUNK_ENTRIES	7

/**
 * struct twheel_chunk - two cache lines of entries of one slot
 * @next: in a bag: the next newer chunk, from the newest round to the oldest;
 *	in the pool: the next free chunk of its page
 * @nr: entries in use, from the front
 * @epoch: value of struct twheel_wheel.epoch when it was put into its slot
 * @entry: the entries
 */
struct twheel_chunk {
	struct twheel_chunk *next;
	u32 nr;
	u32 epoch;
	struct twheel_entry entry[TWHEEL_CHUNK_ENTRIES];
};

/**
 * struct twheel_chunk_page - a page of chunks
 * @node: link in one of the wheel's lists of pages
 * @free: its unused chunks, linked by their @next
 * @nr_free: how many chunks are unused
 * @chunk: the chunks, as many as there is space for
 */
struct twheel_chunk_page {
	struct list_head node;
	struct twheel_chunk *free;
	u32 nr_free;
	struct twheel_chunk chunk[] __aligned(sizeof(struct twheel_chunk));
};

#define TWHEEL_CHUNKS_PER_PAGE \
	((PAGE_SIZE - sizeof(struct twheel_chunk_page)) / \
	 sizeof(struct twheel_chunk))

/**
 * struct twheel_level - slots of one granularity
 * @slot: the bag of each slot, known by its newest chunk; NULL for an empty slot
 * @occupied: a bit per slot, set while the slot is not empty
 * @next: the first tick of the next occupied slot, U64_MAX if all slots are empty
 * @reach: how many ticks ahead of the present tick an entry may be due that goes to this
 *	level: few enough to leave no doubt about the round, or U64_MAX in the last
 *	level, where no entry is farther or there are rounds
 * @mask: number of slots, a power of two, less one
 * @shift: a slot spans 2^shift ticks
 */
struct twheel_level {
	struct twheel_chunk **slot;
	unsigned long *occupied;
	u64 next;
	u64 reach;
	u32 mask;
	u32 shift;
};

/**
 * struct twheel_wheel - a wheel
 * @cur: the next tick to be processed; all ticks before it are done
 * @round_start: with one level: the tick at which the present round began
 * @round_min: with one level: the earliest tick of all entries that were seen or
 *	inserted in this round
 * @cascade_from: the earliest tick at which the wheel begins to move a slot of a coarser
 *	level down, U64_MAX if all of these slots are empty
 * @nr_entries: entries held
 * @nr_moved: how many times the wheel has moved an entry by itself
 * @nr_free: unused chunks
 * @pages: pages of which a chunk is in use; those with unused chunks come first
 * @spare: pages of which no chunk is in use
 * @overdue: entries whose tick was processed already when they were inserted
 * @hand: the rest of the slot of tick @cur - 1, which is being handed out
 * @limbo: entries on their way back into the slots after a rewind; never empty until
 *	all slots have been emptied for it
 * @epoch: the number of the latest sweep, which marks chunks filled since it began
 * @sweep_level: the level that the sweep has come to
 * @sweep_slot: the slot there, from which the sweep has brought up its last chunk
 * @rewind_level: the level that a rewind is emptying, @nr_levels when it has emptied all
 * @rewind_slot: the next slot to be looked at there
 * @nr_levels: levels in use
 * @rewinds: twheel_wheel_rewind() may be called
 * @level: the levels, finest first
 */
struct twheel_wheel {
	u64 cur;
	u64 round_start;
	u64 round_min;
	u64 cascade_from;
	u64 nr_entries;
	u64 nr_moved;
	u64 nr_free;
	struct list_head pages;
	struct list_head spare;
	struct twheel_chunk *overdue;
	struct twheel_chunk *hand;
	struct twheel_chunk *limbo;
	u32 epoch;
	u32 sweep_level;
	u32 sweep_slot;
	u32 rewind_level;
	u32 rewind_slot;
	u32 nr_levels;
	bool rewinds;
	struct twheel_level level[TWHEEL_MAX_LEVELS];
};

/**
 * struct twheel_wheel_config - the shape of a wheel
 * @slots: slots of the first level, a power of two, 4 at least
 * @one_level: a single level, with rounds
 * @rewinds: twheel_wheel_rewind() will be used
 * @max_tick: no entry is due later
 */
struct twheel_wheel_config {
	u32 slots;
	bool one_level;
	bool rewinds;
	u64 max_tick;
};

size_t twheel_wheel_size(const struct twheel_wheel_config *config);
void twheel_wheel_init(struct twheel_wheel *w,
		       const struct twheel_wheel_config *config, void *memory,
		       u64 cur);
u64 twheel_wheel_pages_for(const struct twheel_wheel *w, u64 nr_entries);
void twheel_wheel_give(struct twheel_wheel *w, struct twheel_chunk_page *page);
struct twheel_chunk_page *twheel_wheel_take_back(struct twheel_wheel *w);
struct twheel_chunk_page *twheel_wheel_dismantle(struct twheel_wheel *w);

void twheel_wheel_insert(struct twheel_wheel *w, struct twheel_entry entry);
unsigned int twheel_wheel_advance(struct twheel_wheel *w, u64 now,
				  struct twheel_entry *due, unsigned int max,
				  bool *more);
u64 twheel_wheel_next(const struct twheel_wheel *w);
const struct twheel_chunk *twheel_wheel_peek(const struct twheel_wheel *w);
struct twheel_chunk *twheel_wheel_take_out(struct twheel_wheel *w);
void twheel_wheel_put_back(struct twheel_wheel *w, struct twheel_chunk *chunk);
void twheel_wheel_rewind(struct twheel_wheel *w, u64 tick);
void twheel_wheel_sweep_begin(struct twheel_wheel *w);
struct twheel_chunk *twheel_wheel_sweep(struct twheel_wheel *w);

#endif /* _TWHEEL_WHEEL_H */
