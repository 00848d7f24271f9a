// SPDX-License-Identifier: MIT
/*
 * wheel.c - a hierarchical timing wheel of linked timers
 *
 * After scheme 6 and 7 of Varghese and Lauck, "Hashed and Hierarchical Timing Wheels" (1987).
 *
 * A level has 256 slots in a ring.  A slot of level 0 is a grain wide, the greatest power of
 * two that is not above a tick; a slot of any other level is as wide as half of the level
 * below.  The level of a timer is chosen by the highest bit of its distance from base, the
 * time to which the wheel has been turned, so that it lies 1 to 128 slots ahead, or in level
 * 0 up to 127.
 *
 *	tick 1 ms:	level	slot		reaches
 *			0	524 us		67 ms
 *			1	67 ms		8.6 s
 *			2	8.6 s		18 min
 *			3	18 min		39 h
 *			...
 *
 * When base comes to a slot of level 0, its timers are due, if their deadlines are not later
 * than the edge of the tick that the wheel is turned to.  When it comes to a slot of another
 * level, its timers are moved down.  Since many would take long, wheel_look_ahead() has begun
 * when base was in the slot before: the level below reaches far enough for both.  It moves three
 * timers for each two that are called: so a slot is empty in time if timers expire at the same
 * rate as before.  If some are left in the last quarter of the slot before, it moves as many as a
 * dispatch may, and the wheel wakes the program there.
 *
 * If a timer is restarted for later, only its deadline changes.  It changes its slot when the old
 * one comes up.
 *
 * Lists end in a timer of the wheel: a timer leaves its list without a test for the end.  A slot
 * that is not used is NULL.  If its last timer leaves, it keeps its bit in occupied until somebody
 * searches it.
 *
 * All times here are keys, see twheel.h.
 */
#include <string.h>

#include "wheel.h"

/* A dispatch moves down so many timers of the next slot of each level, at least. */
#define AHEAD		128
/* A slot with more timers is crowded: its first deadline is not searched for. */
#define LOOKS		32

static unsigned int shift_of(const struct twheel *w, unsigned int level)
{
	return w->grain_shift + level * LEVEL_BITS;
}

static struct twheel_timer **slot_at(struct twheel *w, unsigned int level, uint64_t key)
{
	return &w->slot[level * SLOTS + (key >> shift_of(w, level)) % SLOTS];
}

/* All slots are NULL. */
static void forget_slots(struct twheel *w)
{
	memset(w->occupied, 0, sizeof(w->occupied));
	memset(w->begin, 0xff, sizeof(w->begin));	/* NO_KEY */
	w->levels = 0;
	w->head.next = NO_KEY;
	w->first = NULL;
}

void wheel_init(struct twheel *w)
{
	unsigned int bit, i, level;

	w->grain_shift = _TWHEEL_BIT(w->options.tick_ns);
	for (bit = 0; bit < 64; bit++) {
		level = bit < w->grain_shift ? 0 : (bit - w->grain_shift) / LEVEL_BITS;
		w->head.level[bit] = &w->slot[level * SLOTS];
		w->head.shift[bit] = (uint8_t)shift_of(w, level);
	}
	for (i = 0; i < LISTS; i++)
		w->list[i] = &w->end;
	forget_slots(w);
}

/* A timer that was put into a slot may be the first one in it, or of all. */
EXPORT void _twheel_mark(struct twheel *w, struct twheel_timer **slot, uint64_t key)
{
	size_t i = (size_t)(slot - w->slot);
	unsigned int level = (unsigned int)(i / SLOTS), shift = shift_of(w, level);

	if (!(w->occupied[i / 64] >> i % 64 & 1)) {
		(*slot)->next = &w->end;
		w->occupied[i / 64] |= 1ULL << i % 64;
		w->levels |= 1U << level;
		w->begin[level] = min64(w->begin[level], key >> shift << shift);
	}
	if (key < w->head.next) {
		w->head.next = key;
		w->first = slot;
		w->earliest = *slot;
	}
}

/*
 * Put a timer that is in no list to where it belongs by its deadline, which has passed if it is not
 * after this key.  That is base or later: from there on, there is a slot.
 */
void wheel_place(struct twheel *w, struct twheel_timer *t, uint64_t passed)
{
	uint64_t deadline = t->deadline;

	if (key_of(t) <= passed) {
		push(&w->list[PASSED_NEXT], t);
		w->at_once = true;
	} else {
		_twheel_insert(w, t, key_of(t));
	}
	t->deadline = deadline;
}

/* Base is in the slot, or in the one before: the level below reaches to its end. */
static void move_down(struct twheel *w, unsigned int level, struct twheel_timer **slot, int nr)
{
	unsigned int shift = shift_of(w, level - 1);
	struct twheel_timer **below = &w->slot[(level - 1) * SLOTS], *t = *slot, *next;
	uint64_t base = w->head.base >> shift;
	int left = nr;

	for (; t != &w->end && left; t = next, left--) {
		uint64_t at = key_of(t) >> shift;
		struct twheel_timer **to = &below[at % SLOTS], *old = *to;

		next = t->next;
		__builtin_prefetch(next->next);
		if (unlikely(at - base >= SLOTS)) {
			wheel_place(w, t, w->head.base);
			continue;
		}
		t->next = old;
		t->pprev = to;
		*to = t;
		if (likely(old))
			old->pprev = &t->next;
		else
			_twheel_mark(w, to, key_of(t));
	}
	*slot = t;
	t->pprev = slot;
	w->budget -= nr - left;
	w->stats.moved += (unsigned int)(nr - left);
}

/* Find the next slot of a level that is not empty, and note where it begins. */
static struct twheel_timer **next_slot(struct twheel *w, unsigned int level)
{
	struct twheel_timer **slots = &w->slot[level * SLOTS];
	uint64_t *map = &w->occupied[level * SLOTS / 64], word;
	unsigned int shift = shift_of(w, level);
	uint64_t at = max64(w->head.base, w->begin[level]) >> shift, end = at + SLOTS;

	/* All of the ring, and so the slot where base is, which may have been emptied. */
	for (; at < end; at++) {
		word = map[at % SLOTS / 64] >> at % 64;
		if (!word) {
			at |= 63;
			continue;
		}
		at += (unsigned int)__builtin_ctzll(word);
		if (at >= end)
			break;
		if (!is_empty(w, slots[at % SLOTS])) {
			/* In the slot where base is, all are later. */
			w->begin[level] = max64(at << shift, w->head.base + 1);
			return &slots[at % SLOTS];
		}
		slots[at % SLOTS] = NULL;
		map[at % SLOTS / 64] &= ~(1ULL << at % 64);
	}
	w->levels &= ~(1U << level);
	w->begin[level] = NO_KEY;
	return NULL;
}

/* The level whose next slot begins first, as far as noted; of two the upper one. */
static unsigned int first_level(const struct twheel *w)
{
	unsigned int first = 0, level;
	uint32_t levels;

	for (levels = w->levels; levels; levels &= levels - 1) {
		level = (unsigned int)__builtin_ctz(levels);
		if (w->begin[level] <= w->begin[first])
			first = level;
	}
	return first;
}

/*
 * Turn the wheel to the target, but not beyond a slot with timers that are due, and as far as the
 * budget goes.  At the target, those of PASSED_NOW are due.  Return whether DUE may have timers.
 */
bool wheel_turn(struct twheel *w)
{
	while (w->head.base < w->target && w->budget > 0) {
		unsigned int level = first_level(w);
		uint64_t begin = w->begin[level], end;
		struct twheel_timer **slot = slot_at(w, level, begin);

		if (begin > w->target) {
			w->head.base = w->target;
		} else if (is_empty(w, *slot)) {
			next_slot(w, level);
		} else if (level) {
			/* A timer may be due at the beginning of the slot. */
			w->head.base = begin - 1;
			move_down(w, level, slot, w->budget);
		} else {
			end = begin | ((1ULL << w->grain_shift) - 1);
			w->due_by = min64(end, w->target);
			w->head.base = w->due_by;
			w->begin[0] = w->due_by + 1;
			if (end <= w->target)
				take_list(w, &w->list[DUE], slot);
			else
				move_by(w, slot, &w->list[DUE], w->target);
			return true;
		}
	}
	if (w->head.base < w->target || w->list[PASSED_NOW] == &w->end)
		return false;
	take_list(w, &w->list[DUE], &w->list[PASSED_NOW]);
	w->due_by = w->passed_by;
	return true;
}

/* A crowded slot is emptied from a quarter of its width before its beginning on. */
static uint64_t lead_of(const struct twheel *w, unsigned int level)
{
	return 1ULL << shift_of(w, level) >> 2;
}

/* Move some timers of the slots to which base will come next; so many have been called. */
void wheel_look_ahead(struct twheel *w, unsigned int called)
{
	uint64_t some = max64(AHEAD, called + (uint64_t)called / 2);
	uint32_t levels = w->levels & ~1U;

	for (; levels && w->budget > 0; levels &= levels - 1) {
		unsigned int level = (unsigned int)__builtin_ctz(levels);
		uint64_t lead = lead_of(w, level), budget = (uint64_t)w->budget;
		struct twheel_timer **slot = slot_at(w, level, w->head.base + 4 * lead);
		bool last_quarter = !(~w->head.base & 3 * lead);

		if (!is_empty(w, *slot))
			move_down(w, level, slot,
				  (int)(last_quarter ? budget : min64(some, budget)));
	}
}

/* If the next slot of a level is crowded, this is when to begin with it. */
static uint64_t crowd_begin(const struct twheel *w, unsigned int level)
{
	uint64_t begin = w->begin[level];

	/* From then on, a dispatch at each edge goes on to empty it. */
	return level ? max64(begin - lead_of(w, level), w->head.base + 1) : begin;
}

/*
 * Return the first deadline of a slot, or one before the next edge, and put its timer first.  If
 * the slot is crowded, return when to begin with it; if no timer is left, NO_KEY.  Timers that were
 * restarted for later change their slots.
 */
static uint64_t first_in_slot(struct twheel *w, unsigned int level, struct twheel_timer **slot)
{
	uint64_t begin = w->begin[level], first = NO_KEY, edge = w->target + w->edge_ns;
	uint64_t at = begin >> shift_of(w, level);
	uint64_t length = ((at + 1) << shift_of(w, level)) - begin;
	struct twheel_timer *t, *next, *earliest = NULL;
	unsigned int looks;

	if (w->crowded[level] == at)
		return crowd_begin(w, level);
	for (looks = 0, t = *slot; t != &w->end && (!earliest || first > edge); t = next) {
		next = t->next;
		if (++looks > LOOKS) {
			w->crowded[level] = at;
			return crowd_begin(w, level);
		}
		if (key_of(t) - begin >= length) {
			unlink_timer(t);
			wheel_place(w, t, w->head.base);
			w->stats.moved++;
		} else if (!earliest || key_of(t) < first) {
			/* Even the end of time is a time. */
			first = min64(key_of(t), NO_KEY - 1);
			earliest = t;
		}
	}
	if (earliest) {
		unlink_timer(earliest);
		push(slot, earliest);
	}
	return first;
}

void wheel_search(struct twheel *w)
{
	struct twheel_timer *t, **slot = NULL;
	uint64_t not_before = w->head.next;
	uint32_t levels = w->levels;

	w->first = NULL;
	w->head.next = NO_KEY;
	for (t = w->list[IN_CALLBACK]; t != &w->end; t = t->next) {
		w->head.next = min64(w->head.next, key_of(t));
		w->first = &w->list[IN_CALLBACK];
		w->earliest = NULL;
	}
	for (; levels; levels &= levels - 1) {
		unsigned int level = (unsigned int)__builtin_ctz(levels);
		uint64_t first = NO_KEY;

		while (first == NO_KEY && crowd_begin(w, level) < w->head.next &&
		       (slot = next_slot(w, level)) && crowd_begin(w, level) < w->head.next)
			first = first_in_slot(w, level, slot);
		if (!level)
			first = max64(first, not_before);
		if (first < w->head.next) {
			w->head.next = first;
			w->first = slot;
			w->earliest = key_of(*slot) == first ? *slot : NULL;
		}
	}
	/* If a turn is not complete, it goes on at once. */
	if (w->head.base < w->target && w->head.next != NO_KEY) {
		w->at_once = true;
		w->first = NULL;
	}
}

/* The clock was set back: put all timers to where they belong now, at the last edge. */
APART void wheel_rewind(struct twheel *w, uint64_t edge)
{
	struct twheel_timer *all = &w->end, *t;
	size_t i;

	for (i = 0; i < LEVELS_MAX * SLOTS; i++) {
		/* A store would take a page where no slot is used. */
		if (w->slot[i]) {
			move_by(w, &w->slot[i], &all, NO_KEY);
			w->slot[i] = NULL;
		}
	}
	forget_slots(w);
	w->head.base = edge;
	w->target = edge;
	w->due_by = min64(w->due_by, edge);
	w->passed_by = edge;
	while ((t = all) != &w->end) {
		unlink_timer(t);
		wheel_place(w, t, w->head.base);
	}
	wheel_find_next(w);
}

void wheel_each(struct twheel *w, twheel_visitor *fn, void *arg)
{
	struct twheel_timer *t, *next;
	size_t i;

	for (i = 0; i < LISTS + LEVELS_MAX * SLOTS; i++) {
		for (t = i < LISTS ? w->list[i] : w->slot[i - LISTS]; t && t != &w->end; t = next) {
			next = t->next;
			fn(w, t, arg);
		}
	}
}
