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
 * When base comes to a slot of level 0, the timers in it are due, if their deadlines are not
 * later than the edge of the tick that the wheel is turned to.  When it comes to a slot of
 * another level, its timers are moved down.  Since this would take long if there are many,
 * wheel_look_ahead() has begun when base was in the slot before: the level below reaches far
 * enough for both.
 *
 * If a timer is restarted for later, only its deadline changes.  It is moved to the slot
 * of its new deadline when its old one comes up.
 *
 * A slot whose last timer is stopped keeps its bit in occupied until somebody looks.
 *
 * All times here are keys, see twheel.h.
 */
#include "wheel.h"

/* Timers of the next slot of each level that a dispatch moves down. */
#define AHEAD		128
/* In a slot with more timers than this, the first deadline is not searched for. */
#define LOOKS		32

static unsigned int shift_of(const struct twheel *w, unsigned int level)
{
	return w->grain_shift + level * LEVEL_BITS;
}

static struct twheel_timer **slot_at(struct twheel *w, unsigned int level, uint64_t key)
{
	return &w->slot[level * SLOTS + (key >> shift_of(w, level)) % SLOTS];
}

void wheel_init(struct twheel *w)
{
	unsigned int bit, level;

	w->grain_shift = _TWHEEL_BIT(w->tick_ns);
	for (bit = 0; bit < 64; bit++) {
		level = bit < w->grain_shift ? 0 : (bit - w->grain_shift) / LEVEL_BITS;
		w->head.level[bit] = &w->slot[level * SLOTS];
		w->head.shift[bit] = (uint8_t)shift_of(w, level);
	}
	for (level = 0; level < LEVELS_MAX; level++)
		w->begin[level] = NO_KEY;
	w->head.next = NO_KEY;
}

/* A timer that was put into a slot may be the first one in it, or of all. */
EXPORT void _twheel_mark(struct twheel *w, struct twheel_timer **slot, uint64_t key)
{
	size_t i = (size_t)(slot - w->slot);
	unsigned int level = (unsigned int)(i / SLOTS), shift = shift_of(w, level);

	w->occupied[i / 64] |= 1ULL << i % 64;
	w->levels |= 1U << level;
	w->begin[level] = min64(w->begin[level], key >> shift << shift);
	if (key < w->head.next) {
		w->head.next = key;
		w->first = slot;
	}
}

static void place_in(struct twheel *w, struct twheel_timer **slot, struct twheel_timer *t)
{
	if (push(slot, t) || key_of(t) < w->head.next)
		_twheel_mark(w, slot, key_of(t));
}

/* Put a timer that is in no list to where it belongs by its deadline. */
void wheel_place(struct twheel *w, struct twheel_timer *t)
{
	uint64_t key = key_of(t);
	unsigned int bit;

	if (key <= w->head.base) {
		push(&w->soon, t);
		return;
	}
	bit = _TWHEEL_BIT(key - w->head.base);
	place_in(w, w->head.level[bit] + (key >> w->head.shift[bit]) % SLOTS, t);
}

/*
 * Move timers of a slot down, @nr at most; base is in the slot, or in the one before, so the
 * level below has room for what is there.  wheel_find_next() has to follow.
 */
static void move_down(struct twheel *w, unsigned int level, struct twheel_timer **slot, int nr)
{
	unsigned int shift = shift_of(w, level - 1);
	struct twheel_timer **below = &w->slot[(level - 1) * SLOTS], *t = *slot, *next;
	uint64_t base = w->head.base >> shift;
	int left = nr;

	*slot = NULL;
	for (; t && left > 0; t = next, left--) {
		uint64_t at = key_of(t) >> shift;

		next = t->next;
		if (likely(next))
			__builtin_prefetch(next->next);
		if (unlikely(at - base >= SLOTS))
			wheel_place(w, t);
		else if (unlikely(push(&below[at % SLOTS], t)))
			_twheel_mark(w, &below[at % SLOTS], key_of(t));
	}
	*slot = t;
	if (t)
		t->pprev = slot;
	w->budget -= nr - left;
	w->stats.moved += (unsigned int)(nr - left);
}

/* The next slot of a level whose bit is set, from base on; returns its beginning, or NO_KEY. */
static uint64_t next_marked(const struct twheel *w, unsigned int level, size_t *slot)
{
	const uint64_t *map = &w->occupied[level * SLOTS / 64];
	unsigned int shift = shift_of(w, level), i, at;
	uint64_t base = w->head.base >> shift, word, mask;

	mask = ~0ULL << base % 64;
	for (i = 0; i <= SLOTS / 64; i++) {
		at = (base / 64 + i) % (SLOTS / 64);
		word = map[at];
		if (i == 0)
			word &= mask;
		else if (i == SLOTS / 64)
			word &= ~mask;
		if (word) {
			at = at * 64 + (unsigned int)__builtin_ctzll(word);
			*slot = level * SLOTS + at;
			base += (at - base) % SLOTS;
			/* In the slot where base is, all are later. */
			return base << shift > w->head.base ? base << shift : w->head.base + 1;
		}
	}
	return NO_KEY;
}

/* The same, of slots that are not empty; notes the beginning. */
static uint64_t next_slot(struct twheel *w, unsigned int level, size_t *slot)
{
	uint64_t begin;

	while ((begin = next_marked(w, level, slot)) != NO_KEY && !w->slot[*slot])
		w->occupied[*slot / 64] &= ~(1ULL << *slot % 64);
	if (begin == NO_KEY)
		w->levels &= ~(1U << level);
	w->begin[level] = begin;
	return begin;
}

/* Of these levels, the one whose next slot begins first, as far as noted; of two the upper one. */
static unsigned int first_level(const struct twheel *w, uint32_t levels)
{
	unsigned int first = (unsigned int)__builtin_ctz(levels), level;

	while (levels &= levels - 1) {
		level = (unsigned int)__builtin_ctz(levels);
		if (w->begin[level] <= w->begin[first])
			first = level;
	}
	return first;
}

/*
 * Turn the wheel until there is something due, or it has come to the target, or the budget is
 * used up.  Returns whether something is due: then it is in the list due.
 */
bool wheel_turn(struct twheel *w)
{
	uint64_t grain = (1ULL << w->grain_shift) - 1, begin;
	unsigned int level;
	size_t slot = 0;

	while (w->head.base < w->target && w->budget > 0) {
		level = w->levels ? first_level(w, w->levels) : 0;
		begin = w->levels ? w->begin[level] : NO_KEY;
		if (begin > w->target) {
			w->head.base = w->target;
		} else if (next_slot(w, level, &slot) > begin) {
			continue;
		} else if (level) {
			/* A timer may be due at the beginning of the slot. */
			w->head.base = begin - 1;
			move_down(w, level, &w->slot[slot], w->budget);
		} else {
			w->head.base = min64(begin | grain, w->target);
			w->begin[0] = (begin | grain) + 1;
			w->due_by = w->head.base;
			take_list(&w->due, &w->slot[slot]);
			return true;
		}
	}
	return false;
}

/* Move some timers of the slots to which base will come next. */
void wheel_look_ahead(struct twheel *w)
{
	uint32_t levels = w->levels & ~1U;

	for (; levels && w->budget > 0; levels &= levels - 1) {
		unsigned int level = (unsigned int)__builtin_ctz(levels);
		uint64_t next = w->head.base + (1ULL << shift_of(w, level));
		struct twheel_timer **slot = slot_at(w, level, next);

		if (*slot)
			move_down(w, level, slot, AHEAD);
	}
}

/*
 * The first deadline in a slot that ends before @end, or one before the next edge; the
 * beginning of the slot, if it has too many timers to look at all; NO_KEY, if no timer is
 * left.  What was restarted for later is moved.
 */
static uint64_t first_in_slot(struct twheel *w, size_t slot, uint64_t begin, uint64_t end)
{
	struct twheel_timer *t = w->slot[slot], *next;
	uint64_t first = NO_KEY, edge = w->target + w->edge_ns;
	unsigned int looks;

	for (looks = 0; t && first > edge; t = next) {
		next = t->next;
		if (++looks > LOOKS)
			return begin;
		if (key_of(t) - begin >= end - begin) {
			unlink_timer(t);
			wheel_place(w, t);
			w->stats.moved++;
		} else {
			/* Even the end of time is a time. */
			first = min64(first, min64(key_of(t), NO_KEY - 1));
		}
	}
	return first;
}

/* Find out when there will be something to do. */
void wheel_find_next(struct twheel *w)
{
	uint32_t levels = w->levels;
	struct twheel_timer *t;
	size_t slot = 0;

	w->head.next = NO_KEY;
	w->first = NULL;
	for (t = w->running; t; t = t->next) {
		w->head.next = min64(w->head.next, key_of(t));
		w->first = &w->running;
	}
	while (levels) {
		unsigned int level = first_level(w, levels), shift = shift_of(w, level);
		uint64_t begin, first = NO_KEY;

		while (first == NO_KEY && w->begin[level] < w->head.next &&
		       (begin = next_slot(w, level, &slot)) < w->head.next)
			first = first_in_slot(w, slot, begin, ((begin >> shift) + 1) << shift);
		if (first < w->head.next) {
			w->head.next = first;
			w->first = &w->slot[slot];
		}
		levels &= ~(1U << level);
	}
	if (w->head.base < w->target && w->head.next != NO_KEY) {
		w->head.next = w->head.base;
		w->first = NULL;
	}
}

/* The clock was set back: put all timers to where they belong now. */
COLD void wheel_rewind(struct twheel *w, uint64_t key, uint64_t edge)
{
	struct twheel_timer *all = NULL, *t;
	size_t i;

	for (i = 0; i < LEVELS_MAX * SLOTS; i++) {
		while ((t = w->slot[i])) {
			unlink_timer(t);
			push(&all, t);
		}
	}
	w->head.base = key;
	w->target = edge;
	w->due_by = min64(w->due_by, key);
	w->ready_by = key;
	w->head.next = NO_KEY;
	w->first = NULL;
	while ((t = all)) {
		unlink_timer(t);
		wheel_place(w, t);
	}
}

static void each_in(struct twheel *w, struct twheel_timer *t, twheel_visitor *fn, void *arg)
{
	struct twheel_timer *next;

	for (; t; t = next) {
		next = t->next;
		fn(w, t, arg);
	}
}

void wheel_each(struct twheel *w, twheel_visitor *fn, void *arg)
{
	size_t i;

	each_in(w, w->due, fn, arg);
	each_in(w, w->ready, fn, arg);
	each_in(w, w->soon, fn, arg);
	each_in(w, w->running, fn, arg);
	each_in(w, w->never, fn, arg);
	each_in(w, w->stopping, fn, arg);
	for (i = 0; i < LEVELS_MAX * SLOTS; i++)
		if (w->occupied[i / 64] >> i % 64 & 1)
			each_in(w, w->slot[i], fn, arg);
}
