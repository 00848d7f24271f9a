/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the front share: how timers and places are told apart, and linked.
 * See the banner of timers.c.
 */
#ifndef _TWHEEL_LIB_FRONT_H
#define _TWHEEL_LIB_FRONT_H

#include "backend.h"

#define EXPORT		__attribute__((visibility("default")))
#define COLD		__attribute__((noinline, cold))

/*
 * The bound of a place that no twheel_start() may store a deadline for: no place at all,
 * one that has run out, and that of a periodic timer, which is not to be taken for a
 * one-shot.  The bound of the latter is the timer's deadline.
 */
#define NO_BOUND	UINT64_MAX

/* No time: its sum with a delay that is a time has this bit. */
#define STALE		_TWHEEL_STALE

/*
 * What a timer has instead of a place: it is idle, noted, or due.  The ref of a place is not
 * below PLACES.
 */
enum { IDLE, NOTED, DUE, PLACES };

extern const struct twheel_place twheel_noted, twheel_due;

/* Flags of a timer, beside TWHEEL_FIXED_DELAY */
#define DRAINED		(1U << 7)

/* What twheel_flush() has to do: w->head.work */
#define WORK_NOTES	(1U << 0)	/* timers are noted, or places given up */
#define WORK_TRIM	(1U << 1)	/* many places are parked */

/* places.c */
struct twheel_place *twheel_place_new(struct twheel *w);
void twheel_park(struct twheel *w, unsigned int length, struct twheel_place *place);
bool twheel_take(struct twheel *w, struct twheel_timer *t, grains_t deadline,
		 unsigned int length);
void twheel_trim(struct twheel *w);
size_t twheel_relieve(struct twheel *w, size_t wanted);
void twheel_cancel_given_up(struct twheel *w);
void twheel_stacks_provide(struct twheel *w);
void twheel_stacks_init(struct twheel *w);
void twheel_stacks_free(struct twheel *w);
uint64_t twheel_parked(const struct twheel *w);

/* flush.c */
bool twheel_flush_within(struct twheel *w, unsigned int *refused);

/* ---- timers and places --------------------------------------------------- */

static inline void set_idle(struct twheel_timer *t)
{
	t->place = (struct twheel_place *)&twheel_idle;
}

static inline bool is_idle(const struct twheel_timer *t)
{
	return t->place->ref == IDLE;
}

static inline bool is_owner(const struct twheel_timer *t)
{
	return t->place->ref >= PLACES;
}

/* A ref holds what an id does: the lowest 28 bits of the generation, the rest, the index. */
static inline uint64_t ref_of(uint64_t id)
{
	uint32_t gen = id >> 32;

	return (uint64_t)(gen << 4 | gen >> 28) << 32 | (uint32_t)id;
}

static inline uint64_t id_of(const struct twheel_place *place)
{
	uint32_t gen = place->ref >> 32;

	return (uint64_t)(gen >> 4 | gen << 28) << 32 | (uint32_t)place->ref;
}

/* ---- lists of timers ----------------------------------------------------- */

static inline void list_init(struct twheel_timer *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct twheel_timer *list)
{
	return list->next == list;
}

static inline void list_add_tail(struct twheel_timer *list, struct twheel_timer *t)
{
	t->next = list;
	t->prev = list->prev;
	list->prev->next = t;
	list->prev = t;
}

static inline void list_del(struct twheel_timer *t)
{
	t->next->prev = t->prev;
	t->prev->next = t->next;
}

/* Move all timers of a list to another, which is empty. */
static inline void list_take_all(struct twheel_timer *to, struct twheel_timer *from)
{
	list_init(to);
	if (list_empty(from))
		return;
	to->next = from->next;
	to->prev = from->prev;
	to->next->prev = to;
	to->prev->next = to;
	list_init(from);
}

/* ---- time ---------------------------------------------------------------- */

static inline grains_t grains_up(const struct twheel *w, uint64_t time_ns)
{
	return (time_ns + w->head.grain_mask) >> w->head.grain_shift;
}

static inline uint64_t time_add(uint64_t a_ns, uint64_t b_ns)
{
	if (b_ns >= TWHEEL_TIME_NEVER - a_ns)
		return TWHEEL_TIME_NEVER;
	return a_ns + b_ns;
}

/* ---- places -------------------------------------------------------------- */

static inline void store(struct twheel *w, struct twheel_place *place, grains_t deadline)
{
	_twheel_store(&w->head, place, deadline);
}

/* The links of the free and of the given up stand where owners do, and are odd. */
static inline struct twheel_timer *link_to(struct twheel_place *next)
{
	return (struct twheel_timer *)((uintptr_t)next | 1);
}

static inline struct twheel_place *link_next(const struct twheel_place *place)
{
	return (struct twheel_place *)((uintptr_t)place->owner & ~(uintptr_t)1);
}

static inline bool is_linked(const struct twheel_place *place)
{
	return (uintptr_t)place->owner & 1;
}

static inline void place_free(struct twheel *w, struct twheel_place *place)
{
	place->ref = IDLE;
	place->owner = link_to(w->free);
	w->free = place;
}

/* ---- what a timer waits for ----------------------------------------------- */

static inline void note(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns)
{
	t->deadline_ns = deadline_ns;
	t->place = (struct twheel_place *)&twheel_noted;
	list_add_tail(&w->notes, t);
	w->stats.noted++;
	w->lengths |= 1ULL << t->length;
	w->head.work |= WORK_NOTES;
}

static inline void unlink_timer(struct twheel *w, struct twheel_timer *t)
{
	if (t->place->ref == NOTED)
		w->stats.noted--;
	list_del(t);
	set_idle(t);
}

/* Make it a one-shot, if it was periodic. */
static inline void make_one_shot(struct twheel *w, struct twheel_timer *t)
{
	if (t->interval_ns && is_owner(t))
		t->place->bound = grains_up(w, t->deadline_ns);
	t->interval_ns = 0;
	t->flags = 0;
}

/* ---- calls under way ----------------------------------------------------- */

/* The end of a call in which callbacks may have closed the wheel. */
static inline void leave(struct twheel *w)
{
	if (!--w->depth && w->closed)
		twheel_close(w);
}

#endif /* _TWHEEL_LIB_FRONT_H */
