// SPDX-License-Identifier: GPL-2.0
/*
 * The wheel of twheel: a hierarchical timing wheel of linked entries
 *
 * After Varghese and Lauck, "Hashed and Hierarchical Timing Wheels: Data Structures for the
 * Efficient Implementation of a Timer Facility" (1987), schemes 6 (hashed, with rounds) and 7
 * (hierarchical).
 *
 * Levels
 * ------
 *
 * An entry has a key, the time at which it is due.  A slot of level 0 is as wide as the greatest
 * power of two ns that is not above a tick; a slot of any other level is as wide as half of the
 * level below.  With 1024 slots in level 0 and a tick of 1 ms:
 *
 *	level	slots	a slot is wide	the level reaches
 *	0	1024	524 us		268 ms
 *	1	 256	268 ms		34 s
 *	2	 256	 34 s		73 min
 *	3	 256	 73 min		6.5 d
 *	...
 *
 * The level of an entry goes by the highest bit of its distance from base_ns, the time to which
 * the wheel has been turned.  So it lies in the level's half that is ahead, and its slot goes by
 * its key alone.  When base_ns comes to a slot of an upper level, its entries go to finer ones.
 * G7 cost does not grow: an entry moves once for each level at most.
 *
 * G1 never early, G2 bounded lateness: a slot of level 0 is no wider than a tick, so there is one
 * edge of a tick in it at most.  The wheel is turned to each edge, in order: what is due by the
 * edge comes, and the rest of the slot goes back.
 *
 * To empty an upper slot when its time comes would make others late.  The level below reaches
 * over two such slots, so a slot can be emptied while base_ns is in the one before, step by step:
 * see twheel_wheel_ahead().
 *
 * An entry that is in a slot too early does no harm: it comes up, and is put where it belongs.  An
 * entry never comes up too late: the slots are in a ring, and base_ns is in each slot by the time
 * at which that begins.  So the key of an entry may be made later without the wheel, and the wheel
 * may be set back.
 *
 * With one level, an entry beyond the level waits in its slot, and comes up once a round.
 *
 * A bitmap for each level says which slots are in use, and so the next time at which there is
 * something to do follows from a few words (G6, G7).
 *
 * Lists
 * -----
 *
 * A list ends in the link @end.  An entry leaves its list by two stores, and may leave an empty
 * list in its slot.  The search for the next slot puts such a slot out of use.
 *
 * Context
 * -------
 *
 * The wheel has no lock, no clock and no memory of its own.  It has one caller at a time.  Entries
 * of one tick come in no defined order.
 */
#include <linux/bitmap.h>
#include <linux/log2.h>
#include <linux/math64.h>

#include "twheel_wheel.h"

/* Slots of every level but the first, and by how much it is coarser than the one below. */
#define UPPER_SLOTS	256
#define UPPER_SHIFT	7

/* Keys have so many bits. */
#define KEY_BITS	63

/* The width of slots, and how many there are, of level 0 or of those above. */
static u32 config_shift(const struct twheel_wheel_config *config, u32 level)
{
	u32 first = ilog2(config->tick_ns);

	return level ? first + ilog2(config->slots) - 1 + (level - 1) * UPPER_SHIFT : first;
}

static u32 config_slots(const struct twheel_wheel_config *config, u32 level)
{
	return level ? UPPER_SLOTS : config->slots;
}

static u32 config_levels(const struct twheel_wheel_config *config)
{
	u32 nr = 1;

	while (!config->one_level && config_shift(config, nr) < KEY_BITS)
		nr++;
	return nr;
}

/* Return how many bytes the slots of a wheel take. */
size_t twheel_wheel_size(const struct twheel_wheel_config *config)
{
	u32 level, nr = config_levels(config);
	size_t size = 0;

	for (level = 0; level < nr; level++)
		size += config_slots(config, level) * sizeof(struct twheel_link *) +
			BITS_TO_LONGS(config_slots(config, level)) * sizeof(long);
	return size;
}

/*
 * Make a wheel without entries, which begins with the time @base_ns: the keys of all entries are
 * later.  @memory is twheel_wheel_size() zeroed bytes, aligned for pointers.
 */
void twheel_wheel_init(struct twheel_wheel *w, const struct twheel_wheel_config *config,
		       void *memory, u64 base_ns)
{
	u32 bit, i;

	*w = (struct twheel_wheel){
		.base_ns	= base_ns,
		.cascade_ns	= U64_MAX,
		.tick_ns	= config->tick_ns,
		.coming		= &w->end,
		.never		= &w->end,
		.nr_levels	= config_levels(config),
	};
	for (i = 0; i < w->nr_levels; i++) {
		struct twheel_level *level = &w->level[i];

		level->shift = config_shift(config, i);
		level->mask = config_slots(config, i) - 1;
		level->begin_ns = U64_MAX;
		level->slot = memory;
		memory += config_slots(config, i) * sizeof(struct twheel_link *);
		level->occupied = memory;
		memory += BITS_TO_LONGS(config_slots(config, i)) * sizeof(long);
	}
	for (bit = 0, i = 0; bit < ARRAY_SIZE(w->level_of); bit++) {
		if (i + 1 < w->nr_levels && bit >= config_shift(config, i + 1))
			i++;
		w->level_of[bit] = i;
	}
}

/* At most this many empty slots are put out of use at a time. */
#define EMPTY_SLOTS	256

/*
 * Return the first slot of a level that has an entry, or NULL if there is none.  The level's
 * begin_ns then says when the slot begins, or that it has begun.  If there are many empty slots
 * before it, return NULL as well, but leave the level in used.
 *
 * G5: the search begins where the last one has ended, and looks at no word of the bitmap again for
 * each empty slot.
 */
struct twheel_link **twheel_wheel_first(struct twheel_wheel *w, u32 level)
{
	struct twheel_level *l = &w->level[level];
	/* No slot before these two is in use. */
	u64 at = max(l->begin_ns, w->base_ns + 1) >> l->shift;
	u32 nr = l->mask + 1, left = EMPTY_SLOTS;

	for (;;) {
		u32 from = at & l->mask, i = find_next_bit(l->occupied, nr, from);

		if (i >= nr)
			i = find_next_bit(l->occupied, from, 0);
		else
			from = nr;
		if (i >= from)
			break;
		at += (i - at) & l->mask;
		l->begin_ns = max(at << l->shift, w->base_ns + 1);
		if (l->slot[i] != &w->end)
			return &l->slot[i];
		l->slot[i] = NULL;
		l->occupied[BIT_WORD(i)] &= ~BIT_MASK(i);
		if (!--left)
			return NULL;
	}
	w->used &= ~BIT(level);
	l->begin_ns = U64_MAX;
	return NULL;
}

/* The level whose next slot begins first, as far as noted; of two the upper one. */
static u32 wheel_first_level(const struct twheel_wheel *w)
{
	u32 first = 0, used;

	for (used = w->used; used; used &= used - 1) {
		u32 level = __ffs(used);

		if (w->level[level].begin_ns <= w->level[first].begin_ns)
			first = level;
	}
	return first;
}

/* All entries of a slot come. */
static void slot_take(struct twheel_wheel *w, struct twheel_level *level,
		      struct twheel_link **slot)
{
	u32 i = slot - level->slot;

	w->coming = *slot;
	w->coming->pprev = &w->coming;
	*slot = NULL;
	level->occupied[BIT_WORD(i)] &= ~BIT_MASK(i);
}

/*
 * With one level: when a round is over in which each slot came up, skip the rounds in which nothing
 * is due.  @round_min_ns has the earliest key of all entries that were put back.  Entries that were
 * inserted meanwhile have keys after @round_until_ns.  Returns whether rounds were skipped.
 */
static bool rounds_skip(struct twheel_wheel *w, u64 begin_ns, u64 until_ns)
{
	u64 base_ns = w->base_ns, span_ns = (w->level[0].mask + 1ULL) << w->level[0].shift;

	if (w->nr_levels > 1 || begin_ns <= w->round_end_ns)
		return false;
	w->base_ns = max(base_ns, min(w->round_min_ns - 1, w->round_until_ns));
	w->round_end_ns = w->base_ns + span_ns;
	w->round_until_ns = until_ns;
	w->round_min_ns = U64_MAX;
	return w->base_ns != base_ns;
}

/* Put an entry that has come up back, as it is not due.  It is in no list. */
void twheel_wheel_put_back(struct twheel_wheel *w, struct twheel_link *link, u64 key_ns)
{
	w->round_min_ns = min(w->round_min_ns, key_ns);
	if (w->coming_level)
		twheel_wheel_move_down(w, w->coming_level, link, key_ns);
	else
		twheel_wheel_insert(w, link, key_ns);
}

/*
 * Turn a wheel without coming entries to the next slot that has an entry, or to @until_ns, the edge
 * of a tick.  Return false if no entry has a key by @until_ns; true if entries come, or if there
 * were so many empty slots that the caller has to call again.
 *
 * Of the entries that come, those whose key is not later than base_ns are due, at the first edge
 * that is not before base_ns.  The caller puts the others back, by twheel_wheel_put_back().
 */
bool twheel_wheel_turn(struct twheel_wheel *w, u64 until_ns)
{
	for (;;) {
		u32 level = wheel_first_level(w);
		struct twheel_level *l = &w->level[level];
		u64 noted_ns = l->begin_ns, end_ns, edge_ns;
		struct twheel_link **slot;

		if (noted_ns > until_ns)
			break;
		slot = twheel_wheel_first(w, level);
		if (!slot && w->used & BIT(level))
			return true;
		if (!slot || l->begin_ns > until_ns)
			continue;
		/* If it begins later than was noted, another level may come first. */
		if (l->begin_ns > noted_ns && wheel_first_level(w) != level)
			continue;
		if (rounds_skip(w, l->begin_ns, until_ns))
			continue;
		end_ns = twheel_slot_begin_ns(l, l->begin_ns) + (1ULL << l->shift) - 1;
		slot_take(w, l, slot);
		w->coming_level = level;
		edge_ns = DIV64_U64_ROUND_UP(l->begin_ns, w->tick_ns) * w->tick_ns;
		w->base_ns = level ? l->begin_ns - 1 : min(end_ns, edge_ns);
		return true;
	}
	w->base_ns = max(w->base_ns, until_ns);
	return false;
}

/*
 * Return a slot of an upper level that can be emptied, and its level; NULL if none has an entry.
 * It is the slot behind that to which the wheel will come next.
 */
struct twheel_link **twheel_wheel_ahead(struct twheel_wheel *w, u32 *level)
{
	u32 used;

	for (used = w->used & ~1U; used; used &= used - 1) {
		struct twheel_level *l = &w->level[__ffs(used)];
		u64 at = ((w->base_ns + 1) >> l->shift) + 1;
		struct twheel_link **slot = &l->slot[at & l->mask];

		if (!*slot || *slot == &w->end)
			continue;
		*level = l - w->level;
		return slot;
	}
	return NULL;
}

/*
 * Follow a clock that was set back to @base_ns, a time before base_ns or round_until_ns.  Entries
 * stay where they are.  See the banner: they come up in time, or before.
 */
void twheel_wheel_set_back(struct twheel_wheel *w, u64 base_ns)
{
	u32 level;

	w->base_ns = min(w->base_ns, base_ns);
	w->round_end_ns = 0;
	w->round_until_ns = 0;
	for (level = 0; level < w->nr_levels; level++)
		if (w->used & BIT(level))
			w->level[level].begin_ns = w->base_ns + 1;
}
