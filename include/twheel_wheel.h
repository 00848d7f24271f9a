/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wheel: a hierarchical timing wheel of linked entries, as a pure data structure
 *
 * It knows times and ticks, not clocks, and links, not timeouts.  Insertion is inline, at the head
 * of a slot; twheel_wheel.c has the rest, and says how it works.
 */
#ifndef _TWHEEL_WHEEL_H
#define _TWHEEL_WHEEL_H

#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* As many levels as 2^63 ns take with the smallest tick and the smallest first level. */
#define TWHEEL_MAX_LEVELS	9

/**
 * struct twheel_link - the link of an entry, in an object of the caller's
 * @next: the entry behind it, or the end of its list, which is a link as well
 * @pprev: what leads to this link: the @next of the one before, or the head of the list
 * @hint: of the entries two and three behind it when it was put into its slot, see
 *	twheel_link_ahead().  While an entry is in no slot, its owner may use @hint for other
 *	things.
 *
 * A list ends in a link, so that an entry leaves it without a look at what follows.
 */
struct twheel_link {
	struct twheel_link *next;
	struct twheel_link **pprev;
	struct twheel_hint {
		u32 two_behind;
		u32 three_behind;
	} hint;
};

/**
 * struct twheel_level - the slots of one width
 * @slot: the list of each slot; NULL for a slot that is not in use
 * @occupied: a bit for each slot that is in use; its list may have become empty since
 * @begin_ns: no slot that is in use comes up earlier, and no entry has an earlier key; U64_MAX if
 *	no slot is in use
 * @mask: number of slots, a power of two, less one
 * @shift: a slot is 2^@shift ns wide
 */
struct twheel_level {
	struct twheel_link **slot;
	unsigned long *occupied;
	u64 begin_ns;
	u32 mask;
	u32 shift;
};

/**
 * struct twheel_wheel - a wheel
 * @base_ns: to where the wheel has been turned: all entries in slots have later keys, and those
 *	of @coming with this key or an earlier one are due
 * @cascade_ns: when a slot of an upper level has to be empty, of the slots that were put to use
 *	since twheel_wheel_first() searched their level; U64_MAX if there is none
 * @round_end_ns: with one level: where the present round ends
 * @round_until_ns: with one level: to where the wheel was to be turned when the round began
 * @round_min_ns: with one level: the earliest key that was put back in the round
 * @tick_ns: length of a tick
 * @coming: entries of the slot to which the wheel was turned last
 * @coming_level: the level of that slot
 * @never: entries that never expire
 * @end: the end of all lists of the wheel
 * @used: a bit for each level that may have a slot in use; all slots of another are not in use
 * @nr_levels: number of levels
 * @level_of: the level of an entry, by the highest bit of its distance from @base_ns
 * @level: the levels, finest first
 */
struct twheel_wheel {
	u64 base_ns;
	u64 cascade_ns;
	u64 round_end_ns;
	u64 round_until_ns;
	u64 round_min_ns;
	u64 tick_ns;
	struct twheel_link *coming;
	struct twheel_link *never;
	struct twheel_link end;
	u32 coming_level;
	u32 used;
	u32 nr_levels;
	u8 level_of[64];
	struct twheel_level level[TWHEEL_MAX_LEVELS];
};

/**
 * struct twheel_wheel_config - the shape of a wheel
 * @tick_ns: length of a tick
 * @slots: slots of the first level, a power of two, 4 at least
 * @one_level: a single level, with rounds
 */
struct twheel_wheel_config {
	u64 tick_ns;
	u32 slots;
	bool one_level;
};

/* Put an entry at the front of a list that is not NULL. */
static __always_inline void twheel_link_push(struct twheel_link **head, struct twheel_link *link)
{
	struct twheel_link *first = *head;

	link->next = first;
	link->pprev = head;
	first->pprev = &link->next;
	*head = link;
}

/* Take an entry out of its list, whichever that is. */
static __always_inline void twheel_link_del(struct twheel_link *link)
{
	struct twheel_link *next = link->next, **pprev = link->pprev;

	*pprev = next;
	next->pprev = pprev;
}

/* The time at which a slot begins that a key falls into. */
static inline u64 twheel_slot_begin_ns(const struct twheel_level *level, u64 key_ns)
{
	return key_ns >> level->shift << level->shift;
}

/* A slot of an upper level is emptied half of its width before it begins. */
static inline u64 twheel_slot_lead_ns(const struct twheel_level *level)
{
	return 1ULL << level->shift >> 1;
}

/* When to empty the slot that begins at @begin_ns. */
static inline u64 twheel_slot_ahead_ns(const struct twheel_level *level, u64 begin_ns)
{
	return begin_ns - min(begin_ns, twheel_slot_lead_ns(level));
}

/* How long it takes until the slot of base_ns + 1 ends. */
static inline u64 twheel_slot_left_ns(const struct twheel_wheel *w,
				      const struct twheel_level *level)
{
	u64 width_ns = 1ULL << level->shift;

	return width_ns - ((w->base_ns + 1) & (width_ns - 1));
}

/* Put the first entry into a slot that is not in use. */
static __always_inline void twheel_slot_use(struct twheel_wheel *w, struct twheel_level *level,
					    struct twheel_link **slot)
{
	u64 at = (w->base_ns + 1) >> level->shift;
	u32 i = slot - level->slot;
	/* With one level, the key may be rounds ahead, and the slot comes up in this one. */
	u64 begin_ns = (at + ((i - at) & level->mask)) << level->shift;

	(*slot)->next = &w->end;
	level->occupied[BIT_WORD(i)] |= BIT_MASK(i);
	w->used |= BIT(level - w->level);
	level->begin_ns = min(level->begin_ns, begin_ns);
	if (level != w->level)
		w->cascade_ns = min(w->cascade_ns, twheel_slot_ahead_ns(level, begin_ns));
}

/*
 * An entry that comes up is likely to miss the cache, and so are those behind it, each of which is
 * found by the one before.  With a hint, a caller that works on an entry can prefetch the one three
 * behind.
 *
 * A hint has 32 bits of an address, which are right within 64 GB, and the entry may have left
 * since: so it serves for nothing but to prefetch.
 */
#define HINT_SHIFT	4
#define HINT_NEAR	(1UL << (32 + HINT_SHIFT))

static __always_inline u32 hint_of(const struct twheel_link *link)
{
	return (unsigned long)link >> HINT_SHIFT;
}

/* The entry three behind another one, probably. */
static __always_inline struct twheel_link *twheel_link_ahead(const struct twheel_link *link)
{
	unsigned long near = (unsigned long)link & -HINT_NEAR;

	return (struct twheel_link *)(near | (unsigned long)link->hint.three_behind << HINT_SHIFT);
}

static __always_inline void twheel_level_insert(struct twheel_wheel *w,
						struct twheel_level *level,
						struct twheel_link *link, u64 key_ns)
{
	struct twheel_link **slot = &level->slot[(key_ns >> level->shift) & level->mask];
	struct twheel_link *first = *slot;

	link->next = first;
	link->pprev = slot;
	*slot = link;
	if (likely(first)) {
		first->pprev = &link->next;
		link->hint.two_behind = hint_of(first->next);
		link->hint.three_behind = first->hint.two_behind;
	} else {
		link->hint = (struct twheel_hint){};
		twheel_slot_use(w, level, slot);
	}
}

/*
 * Put an entry into the slot of its key, which is later than base_ns and before 2^63.  G7: that
 * takes the same time however many entries there are.
 */
static __always_inline void twheel_wheel_insert(struct twheel_wheel *w,
						struct twheel_link *link, u64 key_ns)
{
	u32 bit = __fls(key_ns - w->base_ns);

	/* Not as array elements: a sanitizer would add a call, see engine/user_access.h. */
	twheel_level_insert(w, w->level + *(w->level_of + bit), link, key_ns);
}

/*
 * Put an entry of an upper level, where it was in the slot of base_ns + 1 or in the one behind
 * that, into the level below.  It is in no list.
 */
static __always_inline void twheel_wheel_move_down(struct twheel_wheel *w, u32 level,
						   struct twheel_link *link, u64 key_ns)
{
	struct twheel_level *below = &w->level[level - 1];

	if ((key_ns >> below->shift) - ((w->base_ns + 1) >> below->shift) <= below->mask)
		twheel_level_insert(w, below, link, key_ns);
	else
		twheel_wheel_insert(w, link, key_ns);
}

/* Whether entries of the slot that the wheel was turned to are still to be worked on. */
static inline bool twheel_wheel_has_coming(const struct twheel_wheel *w)
{
	return w->coming != &w->end;
}

size_t twheel_wheel_size(const struct twheel_wheel_config *config);
void twheel_wheel_init(struct twheel_wheel *w, const struct twheel_wheel_config *config,
		       void *memory, u64 base_ns);
struct twheel_link **twheel_wheel_first(struct twheel_wheel *w, u32 level);
bool twheel_wheel_turn(struct twheel_wheel *w, u64 until_ns);
struct twheel_link **twheel_wheel_ahead(struct twheel_wheel *w, u32 *level);
void twheel_wheel_put_back(struct twheel_wheel *w, struct twheel_link *link, u64 key_ns);
void twheel_wheel_set_back(struct twheel_wheel *w, u64 base_ns);

#endif /* _TWHEEL_WHEEL_H */
