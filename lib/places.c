// SPDX-License-Identifier: MIT
/*
 * Places that no timer has: parked in stacks, given up, and free
 *
 * A stack holds the parked places of one class of lengths.  twheel_start() and twheel_stop()
 * use its top, inline; here is what they do where that is not enough, and what
 * twheel_flush() does so that there are neither too many nor too few.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"

/* How many places are kept beside half of those in use, and how many a stack begins with. */
#define KEPT		512

/* How many parked places a start looks at before it is noted. */
#define TRIES		16

/* A place is not to be used any more. */
static void give_up(struct twheel *w, struct twheel_place *place)
{
	if (place->bound == NO_BOUND) {
		place_free(w, place);
		return;
	}
	place->owner = link_to(w->given_up);
	w->given_up = place;
	w->head.work |= WORK_NOTES;
}

static size_t stack_used(const struct twheel *w, unsigned int length)
{
	return w->stack[length].bottom ? w->head.top[length] - w->stack[length].bottom : 0;
}

/* Remove the places that have run out from the stacks. */
static void purge(struct twheel *w)
{
	unsigned int length;

	for (length = 0; length < LENGTHS; length++) {
		size_t i, used = stack_used(w, length);
		struct twheel_place **to = w->stack[length].bottom, **from = to;

		for (i = 0; i < used; i++)
			if ((*++from)->bound == NO_BOUND)
				place_free(w, *from);
			else
				*++to = *from;
		if (used)
			w->head.top[length] = to;
	}
}

/*
 * A place for a timeout that is to be armed.  There is one: no more than max_timers are
 * armed, there are BATCH more, and all others are free, or in a stack.  NULL only when
 * those that are given up cannot be cancelled.
 */
struct twheel_place *twheel_place_new(struct twheel *w)
{
	struct twheel_place *place;

	if (!w->free) {
		if (w->nr_used < w->nr_places)
			return &w->place[w->nr_used++];
		purge(w);
	}
	place = w->free;
	if (place)
		w->free = link_next(place);
	return place;
}

/*
 * There is no room for one more, or twheel_flush() has to see whether there are too many.
 * Between the two, the stack goes to the end of its memory.
 */
static COLD void park_beyond(struct twheel *w, unsigned int length, struct twheel_place *place)
{
	struct stack *stack = &w->stack[length];

	w->head.work |= WORK_TRIM;
	if (!stack->size || w->head.end[length] == &stack->bottom[stack->size - 1]) {
		give_up(w, place);
		return;
	}
	w->head.end[length] = &stack->bottom[stack->size - 1];
	*++w->head.top[length] = place;
}

void twheel_park(struct twheel *w, unsigned int length, struct twheel_place *place)
{
	place->owner = NULL;
	if (w->head.top[length] == w->head.end[length])
		park_beyond(w, length, place);
	else
		*++w->head.top[length] = place;
}

/* Give a timer a place of this class whose bound is not after its deadline. */
bool twheel_take(struct twheel *w, struct twheel_timer *t, grains_t deadline,
		 unsigned int length)
{
	grains_t now = twheel_now(w) >> w->head.grain_shift;
	struct twheel_place **bottom = w->stack[length].bottom;
	struct twheel_place **entry = w->head.top[length];
	unsigned int tries, its_length;

	for (tries = 0; tries < TRIES && bottom && entry > bottom; tries++, entry--) {
		struct twheel_place *place = *entry;

		its_length = length;
		if (place->bound != NO_BOUND && place->bound > now)
			its_length = _twheel_length((place->bound - now) << w->head.grain_shift);
		/* Its last timer was moved farther ahead than it began. */
		if (place->bound != NO_BOUND && place->bound > deadline &&
		    its_length <= length + 1)
			continue;
		*entry = *w->head.top[length]--;
		if (place->bound == NO_BOUND) {
			place_free(w, place);
		} else if (place->bound > deadline) {
			twheel_park(w, its_length, place);
		} else {
			place->owner = t;
			t->place = place;
			store(w, place, deadline);
			w->head.taken++;
			return true;
		}
	}
	return false;
}

/* ---- stacks --------------------------------------------------------------- */

/* Those that could not be cancelled, for want of memory, go to @failed. */
static void cancel_some(struct twheel *w, struct twheel_place *place, uint32_t nr,
			struct twheel_place **failed)
{
	struct twheel_place *next;
	uint32_t i;

	w->stats.calls++;
	w->backend->cancel(w, w->cancel, nr);
	for (i = 0; i < nr; i++, place = next) {
		next = link_next(place);
		if (w->cancel[i].result < 0 && w->cancel[i].result != -ENOENT) {
			place->owner = link_to(*failed);
			*failed = place;
			continue;
		}
		place_free(w, place);
		/* ENOENT: its event was read while it waited here. */
		if (w->cancel[i].result < 0)
			continue;
		w->nr_armed--;
		w->stats.cancelled++;
	}
}

/* Cancel all that is given up; what fails stays for the next time. */
void twheel_cancel_given_up(struct twheel *w)
{
	struct twheel_place *failed = NULL;

	while (w->given_up) {
		struct twheel_place *first = w->given_up;
		uint32_t nr = 0;

		while (w->given_up && nr < BATCH) {
			w->cancel[nr++] = (struct twheel_cancel){ .id = id_of(w->given_up) };
			w->given_up = link_next(w->given_up);
		}
		cancel_some(w, first, nr, &failed);
	}
	w->given_up = failed;
	if (failed)
		w->head.work |= WORK_NOTES;
}

static size_t all_parked(const struct twheel *w)
{
	unsigned int length;
	size_t nr = 0;

	for (length = 0; length < LENGTHS; length++)
		nr += stack_used(w, length);
	return nr;
}

/* Give up the oldest of a stack. */
static void stack_cut(struct twheel *w, unsigned int length, size_t nr)
{
	struct twheel_place **entry = w->stack[length].bottom + 1;
	size_t i, rest = stack_used(w, length) - nr;

	for (i = 0; i < nr; i++)
		give_up(w, entry[i]);
	memmove(entry, entry + nr, rest * sizeof(*entry));
	w->head.top[length] = entry - 1 + rest;
}

/* Make room for more; without memory the stack stays as it is, and parks fewer. */
static void stack_provide(struct twheel *w, unsigned int length, size_t room)
{
	size_t used = stack_used(w, length), size = 1 + used + room;
	struct stack *stack = &w->stack[length];
	struct twheel_place **bottom;

	if (stack->size < size || stack->size / 4 > size) {
		bottom = realloc(stack->bottom, size * sizeof(*bottom));
		if (bottom) {
			bottom[0] = (struct twheel_place *)&twheel_idle;
			stack->bottom = bottom;
			stack->size = size;
			w->head.top[length] = bottom + used;
		}
	}
	if (!stack->size)
		return;
	w->head.end[length] = &stack->bottom[(stack->size < size ? stack->size : size) - 1];
}

/* A burst that ends does not leave all its places to come up in vain. */
void twheel_trim(struct twheel *w)
{
	size_t parked = all_parked(w), in_use, kept, used, room;
	unsigned int length;

	in_use = w->nr_armed > parked ? w->nr_armed - parked : 0;
	kept = in_use / 2 + KEPT;
	for (length = 0; length < LENGTHS; length++) {
		used = stack_used(w, length);
		if (!w->stack[length].size)
			continue;
		if (parked > kept)
			stack_cut(w, length, used - used * kept / parked);
		room = used / 4 > KEPT ? used / 4 : KEPT;
		stack_provide(w, length, room);
	}
}

/* Give up as many parked places, so that timers can have them; how many there were. */
size_t twheel_relieve(struct twheel *w, size_t wanted)
{
	size_t nr = 0;
	unsigned int length;

	purge(w);
	for (length = LENGTHS; length-- && nr < wanted;) {
		size_t used = stack_used(w, length);

		if (!used)
			continue;
		if (used > wanted - nr)
			used = wanted - nr;
		stack_cut(w, length, used);
		nr += used;
	}
	twheel_cancel_given_up(w);
	return nr;
}

/* Classes that are used for the first time get a stack; what cannot get one parks nothing. */
void twheel_stacks_provide(struct twheel *w)
{
	uint64_t lengths = w->lengths & ~1ULL;	/* what is due is no use to others */

	for (; lengths; lengths &= lengths - 1)
		if (!w->stack[__builtin_ctzll(lengths)].size)
			stack_provide(w, __builtin_ctzll(lengths), KEPT);
	w->lengths = 0;
}

/* The stack of a class that is not used: nothing to take, and no room. */
static struct twheel_place *const no_stack[] = { (struct twheel_place *)&twheel_idle };

void twheel_stacks_init(struct twheel *w)
{
	unsigned int length;

	for (length = 0; length < LENGTHS; length++) {
		w->head.top[length] = (struct twheel_place **)no_stack;
		w->head.end[length] = w->head.top[length];
	}
}

void twheel_stacks_free(struct twheel *w)
{
	unsigned int length;

	for (length = 0; length < LENGTHS; length++)
		free(w->stack[length].bottom);
}

/* How many places are parked and have not run out. */
uint64_t twheel_parked(const struct twheel *w)
{
	unsigned int length;
	uint64_t nr = 0;
	size_t i;

	for (length = 0; length < LENGTHS; length++)
		for (i = stack_used(w, length); i; i--)
			nr += w->stack[length].bottom[i]->bound != NO_BOUND;
	return nr;
}
