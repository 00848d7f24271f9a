// SPDX-License-Identifier: MIT
/*
 * The front of libtwheel: timers that start and stop by stores
 *
 * The back end looks at the word of a timeout in the refresh table only when the deadline
 * that it knows comes up, and goes by the word then if that is later.  So a timeout that
 * is armed can serve one timer after another, as long as each has a later deadline than
 * the one before: a store gives it away, and nobody else has to know.
 *
 * A *place* is a timeout that is armed in the back end.  It knows the timeout's id, and a
 * *bound*: the latest deadline that the back end can have for it, armed or stored.  A place
 * is
 *
 * - owned: a timer has it.
 * - parked: no timer has it, and the next one may take it.  It is in a stack; there is one
 *   for each class of lengths, so that a timer of 1 s does not find a place that is armed
 *   for 30 s ahead.  What was parked last is taken first: what is not needed stays at the
 *   bottom, and runs out or is given up.  A parked place that has run out has no bound, and
 *   is taken out of its stack when it comes up there.
 * - given up: twheel_flush() is going to cancel it.
 * - gone: its timeout has ended.
 *
 * A timer is idle, or noted (it waits for twheel_flush() to arm a place for it), or the
 * owner of one place, or due (its event was read, and its callback will be called).
 *
 * The invariants:
 *
 * - The bound of a place is never below the deadline that the back end has for it.
 * - A deadline is stored only for a place that has not been read as ended: an event ends
 *   its place, in twheel_dispatch(), before any callback runs.
 * - A timer whose deadline had not come when its event did was moved too late for the back
 *   end to see it.  It is armed again.  This also mends what the words cannot carry: a
 *   deadline too far ahead.
 * - The library does not touch a timer after it has called its callback, and never one that
 *   is not pending.
 *
 * Deadlines are in grains, rounded up, as in the refresh table: see <linux/twheel.h>.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

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

/* How many places are kept beside half of those in use, and how many a stack begins with. */
#define KEPT		512

/* How many parked places a start looks at before it is noted. */
#define TRIES		16

/*
 * What a timer has instead of a place: it is idle, noted, or due.  The ref of a place is not
 * below PLACES.
 */
enum { IDLE, NOTED, DUE, PLACES };

EXPORT const struct twheel_place twheel_idle = { .bound = NO_BOUND, .ref = IDLE };
static const struct twheel_place timer_noted = { .bound = NO_BOUND, .ref = NOTED };
static const struct twheel_place timer_due = { .bound = NO_BOUND, .ref = DUE };

/* Flags of a timer, beside TWHEEL_FIXED_DELAY */
#define DRAINED		(1U << 7)

/* What twheel_flush() has to do: w->work */
#define WORK_NOTES	(1U << 0)	/* timers are noted, or places given up */
#define WORK_TRIM	(1U << 1)	/* many places are parked */

_Static_assert(offsetof(struct twheel, end) == offsetof(struct _twheel_head, end),
	       "the inline functions know struct twheel by another layout");
_Static_assert(sizeof(uintptr_t) == sizeof(uint64_t), "libtwheel is for 64-bit machines");

/* ---- timers and places --------------------------------------------------- */

static void set_idle(struct twheel_timer *t)
{
	t->place = (struct twheel_place *)&twheel_idle;
}

static bool is_idle(const struct twheel_timer *t)
{
	return t->place->ref == IDLE;
}

static bool is_owner(const struct twheel_timer *t)
{
	return t->place->ref >= PLACES;
}

/* A ref holds what an id does: the lowest 28 bits of the generation, the rest, the index. */
static uint64_t ref_of(uint64_t id)
{
	uint32_t gen = id >> 32;

	return (uint64_t)(gen << 4 | gen >> 28) << 32 | (uint32_t)id;
}

static uint64_t id_of(const struct twheel_place *place)
{
	uint32_t gen = place->ref >> 32;

	return (uint64_t)(gen >> 4 | gen << 28) << 32 | (uint32_t)place->ref;
}

/* ---- lists of timers ----------------------------------------------------- */

static void list_init(struct twheel_timer *list)
{
	list->next = list;
	list->prev = list;
}

static bool list_empty(const struct twheel_timer *list)
{
	return list->next == list;
}

static void list_add_tail(struct twheel_timer *list, struct twheel_timer *t)
{
	t->next = list;
	t->prev = list->prev;
	list->prev->next = t;
	list->prev = t;
}

static void list_del(struct twheel_timer *t)
{
	t->next->prev = t->prev;
	t->prev->next = t->next;
}

/* Move all timers of a list to another, which is empty. */
static void list_take_all(struct twheel_timer *to, struct twheel_timer *from)
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

static grains_t grains_up(const struct twheel *w, uint64_t time_ns)
{
	return (time_ns + w->grain_mask) >> w->grain_shift;
}

static uint64_t time_add(uint64_t a_ns, uint64_t b_ns)
{
	if (b_ns >= TWHEEL_TIME_NEVER - a_ns)
		return TWHEEL_TIME_NEVER;
	return a_ns + b_ns;
}

EXPORT uint64_t twheel_update(struct twheel *w)
{
	w->now_ns = w->backend->now_ns(w);
	w->now_up = w->now_ns + w->grain_mask;
	return w->now_ns;
}

EXPORT uint64_t twheel_now(struct twheel *w)
{
	return w->now_up & STALE ? twheel_update(w) : w->now_ns;
}

/* ---- places -------------------------------------------------------------- */

static void store(struct twheel *w, struct twheel_place *place, grains_t deadline)
{
	_twheel_store(&w->head, place, deadline);
}

/* The links of the free and of the given up stand where owners do, and are odd. */
static struct twheel_timer *link_to(struct twheel_place *next)
{
	return (struct twheel_timer *)((uintptr_t)next | 1);
}

static struct twheel_place *link_next(const struct twheel_place *place)
{
	return (struct twheel_place *)((uintptr_t)place->owner & ~(uintptr_t)1);
}

static bool is_linked(const struct twheel_place *place)
{
	return (uintptr_t)place->owner & 1;
}

static void place_free(struct twheel *w, struct twheel_place *place)
{
	place->ref = IDLE;
	place->owner = link_to(w->free);
	w->free = place;
}

/* A place is not to be used any more. */
static void give_up(struct twheel *w, struct twheel_place *place)
{
	if (place->bound == NO_BOUND) {
		place_free(w, place);
		return;
	}
	place->owner = link_to(w->given_up);
	w->given_up = place;
	w->work |= WORK_NOTES;
}

static size_t stack_used(const struct twheel *w, unsigned int length)
{
	return w->stack[length].bottom ? w->top[length] - w->stack[length].bottom : 0;
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
			w->top[length] = to;
	}
}

/*
 * A place for a timeout that is to be armed.  There is one: no more than max_timers are
 * armed, there are BATCH more, and all others are free, or in a stack.  NULL only when
 * those that are given up cannot be cancelled.
 */
static struct twheel_place *place_new(struct twheel *w)
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

	w->work |= WORK_TRIM;
	if (!stack->size || w->end[length] == &stack->bottom[stack->size - 1]) {
		give_up(w, place);
		return;
	}
	w->end[length] = &stack->bottom[stack->size - 1];
	*++w->top[length] = place;
}

static void park(struct twheel *w, unsigned int length, struct twheel_place *place)
{
	place->owner = NULL;
	if (w->top[length] == w->end[length])
		park_beyond(w, length, place);
	else
		*++w->top[length] = place;
}

/* Give a timer a place of this class whose bound is not after its deadline. */
static COLD bool take_of(struct twheel *w, struct twheel_timer *t, grains_t deadline,
			 unsigned int length)
{
	grains_t now = twheel_now(w) >> w->grain_shift;
	struct twheel_place **bottom = w->stack[length].bottom;
	struct twheel_place **entry = w->top[length];
	unsigned int tries, its_length;

	for (tries = 0; tries < TRIES && bottom && entry > bottom; tries++, entry--) {
		struct twheel_place *place = *entry;

		its_length = length;
		if (place->bound != NO_BOUND && place->bound > now)
			its_length = _twheel_length((place->bound - now) << w->grain_shift);
		/* Its last timer was moved farther ahead than it began. */
		if (place->bound != NO_BOUND && place->bound > deadline &&
		    its_length <= length + 1)
			continue;
		*entry = *w->top[length]--;
		if (place->bound == NO_BOUND) {
			place_free(w, place);
		} else if (place->bound > deadline) {
			park(w, its_length, place);
		} else {
			place->owner = t;
			t->place = place;
			store(w, place, deadline);
			w->taken++;
			return true;
		}
	}
	return false;
}

/* ---- start and stop ------------------------------------------------------ */

static void note(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns)
{
	t->deadline_ns = deadline_ns;
	t->place = (struct twheel_place *)&timer_noted;
	list_add_tail(&w->notes, t);
	w->stats.noted++;
	w->lengths |= 1ULL << t->length;
	w->work |= WORK_NOTES;
}

static void unlink_timer(struct twheel *w, struct twheel_timer *t)
{
	if (t->place->ref == NOTED)
		w->stats.noted--;
	list_del(t);
	set_idle(t);
}

/* Make it a one-shot, if it was periodic. */
static void make_one_shot(struct twheel *w, struct twheel_timer *t)
{
	if (t->interval_ns && is_owner(t))
		t->place->bound = grains_up(w, t->deadline_ns);
	t->interval_ns = 0;
	t->flags = 0;
}

/* Let go of the place. */
static void disown(struct twheel *w, struct twheel_timer *t)
{
	park(w, t->length, t->place);
	set_idle(t);
}

/* Stop a timer, unless it has a place and a store is enough to start it; then do that. */
static COLD bool restart(struct twheel *w, struct twheel_timer *t, grains_t deadline)
{
	make_one_shot(w, t);
	if (!is_owner(t)) {
		unlink_timer(w, t);
		return false;
	}
	if (deadline >= t->place->bound) {
		store(w, t->place, deadline);
		return true;
	}
	disown(w, t);
	return false;
}

static bool nothing_parked(const struct twheel *w, size_t length)
{
	return *w->top[length] == &twheel_idle;
}

/* By any way: the timer's own place, a parked one, or a note. */
static COLD void start_anyhow(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns,
			      unsigned int length)
{
	grains_t deadline = grains_up(w, deadline_ns);

	if (!is_idle(t) && restart(w, t, deadline))
		return;
	t->length = length;
	if (length && (take_of(w, t, deadline, length) || take_of(w, t, deadline, length - 1)))
		return;
	note(w, t, deadline_ns);
}

static inline void start(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns,
			 uint64_t delay_ns)
{
	size_t length = _twheel_length(delay_ns);

	if (likely(is_idle(t) && nothing_parked(w, length) &&
		   nothing_parked(w, length - !!length))) {
		t->length = length;
		note(w, t, deadline_ns);
		return;
	}
	start_anyhow(w, t, deadline_ns, length);
}

EXPORT void _twheel_start_slow(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns)
{
	/* Usually it is the first start of a turn.  A virtual clock may be at its end. */
	if (w->now_up & STALE) {
		twheel_update(w);
		if (!(w->now_up & STALE)) {
			twheel_start(w, t, delay_ns);
			return;
		}
	}
	start(w, t, time_add(w->now_ns, delay_ns), delay_ns);
}

EXPORT void _twheel_start_at_slow(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns)
{
	uint64_t now_ns = twheel_now(w);

	start(w, t, time_min(deadline_ns, TWHEEL_TIME_NEVER),
	      deadline_ns > now_ns ? deadline_ns - now_ns : 0);
}

EXPORT void twheel_start_periodic(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns,
				  uint64_t interval_ns, unsigned int flags)
{
	deadline_ns = time_min(deadline_ns, TWHEEL_TIME_NEVER);
	_twheel_start_at_slow(w, t, deadline_ns);
	t->interval_ns = interval_ns > w->tick_ns ? interval_ns : w->tick_ns;
	t->flags = flags & TWHEEL_FIXED_DELAY;
	t->deadline_ns = deadline_ns;
	if (is_owner(t))
		t->place->bound = NO_BOUND;
}

EXPORT void twheel_start_every(struct twheel *w, struct twheel_timer *t, uint64_t interval_ns)
{
	if (interval_ns < w->tick_ns)
		interval_ns = w->tick_ns;
	twheel_start_periodic(w, t, time_add(twheel_now(w), interval_ns), interval_ns, 0);
}

EXPORT COLD bool _twheel_stop_slow(struct twheel *w, struct twheel_timer *t)
{
	if (is_idle(t))
		return false;
	make_one_shot(w, t);
	if (is_owner(t))
		disown(w, t);
	else
		unlink_timer(w, t);
	return true;
}

/* For programs in other languages. */
EXPORT void start_function(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns)
	__asm__("twheel_start");
EXPORT void start_at_function(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns)
	__asm__("twheel_start_at");
EXPORT bool stop_function(struct twheel *w, struct twheel_timer *t) __asm__("twheel_stop");

void start_function(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns)
{
	twheel_start(w, t, delay_ns);
}

void start_at_function(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns)
{
	twheel_start_at(w, t, deadline_ns);
}

bool stop_function(struct twheel *w, struct twheel_timer *t)
{
	return twheel_stop(w, t);
}

EXPORT bool twheel_timer_pending(const struct twheel_timer *t)
{
	return !is_idle(t);
}

EXPORT uint64_t twheel_timer_deadline(const struct twheel *w, const struct twheel_timer *t)
{
	if (is_idle(t))
		return TWHEEL_NO_EXPIRY;
	if (is_owner(t) && !t->interval_ns)
		return grains_to_ns(w, t->place->bound);
	return grains_to_ns(w, grains_up(w, t->deadline_ns));
}

EXPORT uint32_t twheel_timer_count(const struct twheel_timer *t)
{
	return t->count;
}

EXPORT void twheel_timer_move(struct twheel *w, struct twheel_timer *to, struct twheel_timer *from)
{
	(void)w;
	*to = *from;
	if (is_owner(to)) {
		to->place->owner = to;
	} else if (!is_idle(to)) {
		to->next->prev = to;
		to->prev->next = to;
	}
	set_idle(from);
}

/* ---- flush --------------------------------------------------------------- */

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
static void cancel_given_up(struct twheel *w)
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
		w->work |= WORK_NOTES;
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
	w->top[length] = entry - 1 + rest;
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
			w->top[length] = bottom + used;
		}
	}
	if (!stack->size)
		return;
	w->end[length] = &stack->bottom[(stack->size < size ? stack->size : size) - 1];
}

/* A burst that ends does not leave all its places to come up in vain. */
static void trim(struct twheel *w)
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
static size_t relieve(struct twheel *w, size_t wanted)
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
	cancel_given_up(w);
	return nr;
}

/* Classes that are used for the first time get a stack; what cannot get one parks nothing. */
static void stacks_provide(struct twheel *w)
{
	uint64_t lengths = w->lengths & ~1ULL;	/* what is due is no use to others */

	for (; lengths; lengths &= lengths - 1)
		if (!w->stack[__builtin_ctzll(lengths)].size)
			stack_provide(w, __builtin_ctzll(lengths), KEPT);
	w->lengths = 0;
}

/*
 * Never early: the deadline is rounded up, to a grain, as those that are stored.  What has
 * passed is passed already, and is not to wait for a tick.
 */
static uint64_t arm_ns(const struct twheel *w, uint64_t deadline_ns)
{
	if (unlikely(deadline_ns <= w->now_ns && deadline_ns < TWHEEL_TIME_NEVER))
		return deadline_ns;
	return time_min((deadline_ns + w->grain_mask) & ~w->grain_mask, TWHEEL_TIME_NEVER);
}

/* What has passed is known to the back end by its exact deadline, and is not stored for. */
static grains_t armed_bound(const struct twheel *w, uint64_t expires_ns)
{
	if (expires_ns > w->now_ns || expires_ns == TWHEEL_TIME_NEVER)
		return grains_up(w, expires_ns);
	return expires_ns >> w->grain_shift;
}

/* There is no place, since none that was given up can be cancelled. */
static COLD void refuse_all(struct twheel_timer *list, struct twheel_timer *refused)
{
	while (!list_empty(list)) {
		struct twheel_timer *t = list->next;

		list_del(t);
		t->count = EAGAIN;
		list_add_tail(refused, t);
	}
}

/*
 * Arm a place for each of the first timers of a list, BATCH at most, and take them off.
 * Those that are refused go to @refused, with the errno in their count.
 */
static void arm_some(struct twheel *w, struct twheel_timer *list, struct twheel_timer *refused)
{
	struct twheel_timer *t, *next;
	uint32_t i, nr, nr_armed = 0;

	for (nr = 0, t = list->next; nr < BATCH && t != list; nr++, t = t->next) {
		struct twheel_place *place = place_new(w);

		if (unlikely(!place))
			break;
		w->arm[nr].expires_ns = arm_ns(w, t->deadline_ns);
		w->arm[nr].user_data = place - w->place;
	}
	if (unlikely(!nr)) {
		refuse_all(list, refused);
		return;
	}
	w->stats.calls++;
	w->backend->arm(w, w->arm, nr);
	for (i = 0, t = list->next; i < nr; i++, t = next) {
		struct twheel_place *place = &w->place[w->arm[i].user_data];

		next = t->next;
		if (unlikely(w->arm[i].result < 0)) {
			place_free(w, place);
			t->count = -w->arm[i].result;
			list_add_tail(refused, t);
			continue;
		}
		nr_armed++;
		place->ref = ref_of(w->arm[i].id);
		place->bound = t->interval_ns ? NO_BOUND : armed_bound(w, w->arm[i].expires_ns);
		place->owner = t;
		t->place = place;
	}
	list->next = t;
	t->prev = list;
	w->stats.noted -= nr_armed;
	w->stats.armed += nr_armed;
	w->nr_armed += nr_armed;
}

static void arm_all(struct twheel *w, struct twheel_timer *list, struct twheel_timer *refused)
{
	while (!list_empty(list))
		arm_some(w, list, refused);
}

/* Where the limit is reached, parked places are given up for those that were refused. */
static void arm_again(struct twheel *w, struct twheel_timer *refused)
{
	struct twheel_timer again, *t, *next;
	size_t wanted = 0, room;

	for (t = refused->next; t != refused; t = t->next)
		wanted += t->count == EAGAIN;
	if (!wanted)
		return;
	room = relieve(w, wanted);
	list_init(&again);
	for (t = refused->next; t != refused && room; t = next) {
		next = t->next;
		if (t->count != EAGAIN)
			continue;
		list_del(t);
		list_add_tail(&again, t);
		room--;
	}
	arm_all(w, &again, refused);
}

static void leave(struct twheel *w)
{
	if (!--w->depth && w->closed)
		twheel_close(w);
}

/* Tell the timers that were refused. */
static unsigned int tell_refused(struct twheel *w, struct twheel_timer *refused)
{
	unsigned int nr = 0;

	while (!list_empty(refused) && !w->closed) {
		struct twheel_timer *t = refused->next;
		int err = -(int)t->count;

		unlink_timer(w, t);
		make_one_shot(w, t);
		t->count = 0;
		nr++;
		w->stats.refused++;
		t->callback(w, t, err);
	}
	return nr;
}

static __attribute__((noinline)) unsigned int flush(struct twheel *w)
{
	struct twheel_timer list, refused;
	bool many = w->work & WORK_TRIM;
	unsigned int nr;

	w->work = 0;
	cancel_given_up(w);
	if (many) {
		/* It counts what is in use: without what was given up. */
		trim(w);
		cancel_given_up(w);
	}
	if (list_empty(&w->notes))
		return 0;
	stacks_provide(w);
	w->depth++;
	list_take_all(&list, &w->notes);
	list_init(&refused);
	arm_all(w, &list, &refused);
	if (!list_empty(&refused))
		arm_again(w, &refused);
	nr = tell_refused(w, &refused);
	leave(w);
	return nr;
}

EXPORT unsigned int twheel_flush(struct twheel *w)
{
	if (w->clock != TWHEEL_CLOCK_VIRTUAL)
		w->now_up = STALE;
	return unlikely(w->work) ? flush(w) : 0;
}

/* ---- dispatch ------------------------------------------------------------ */

/*
 * The event of a place that a timer has: the timer is due, unless it was moved to a time
 * that had not come.
 */
static inline bool owned_ended(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns,
			       const struct twheel_event *event)
{
	if (unlikely(t->interval_ns))
		deadline_ns = t->deadline_ns;
	if (unlikely(event->flags & TWHEEL_EVENT_DRAINED)) {
		t->flags |= DRAINED;
	} else if (unlikely(event->fired_ns < deadline_ns || deadline_ns == TWHEEL_TIME_NEVER)) {
		w->stats.rearmed++;
		note(w, t, deadline_ns);
		return false;
	}
	t->deadline_ns = deadline_ns;
	t->place = (struct twheel_place *)&timer_due;
	list_add_tail(&w->due, t);
	return true;
}

/* The place of an event is gone from now on; says whether a timer is due. */
static inline bool place_ended(struct twheel *w, struct twheel_place *place,
			       const struct twheel_event *event)
{
	struct twheel_timer *t = place->owner;
	uint64_t deadline_ns;

	if (unlikely(place->ref != ref_of(event->id)))
		return false;
	w->nr_armed--;
	if (unlikely(!t || is_linked(place))) {
		/* It stays where it is: in its stack, or among the given up. */
		w->stats.vain++;
		place->bound = NO_BOUND;
		return false;
	}
	deadline_ns = grains_to_ns(w, place->bound);
	place_free(w, place);
	return owned_ended(w, t, deadline_ns, event);
}

/* Read events until there is none, or so many timers are due. */
static int read_events(struct twheel *w, unsigned int max)
{
	unsigned int due = 0;
	uint32_t room;
	int i, nr;

	do {
		room = max - due < BATCH ? max - due : BATCH;
		w->stats.calls++;
		nr = w->backend->read(w, w->event, room);
		if (nr < 0)
			return nr;
		for (i = 0; i < nr; i++)
			if (likely(w->event[i].user_data < w->nr_used))
				due += place_ended(w, &w->place[w->event[i].user_data],
						   &w->event[i]);
	} while ((uint32_t)nr == room && due < max);
	return 0;
}

/* Start a periodic timer anew, and count the periods that have passed. */
static void next_period(struct twheel *w, struct twheel_timer *t)
{
	uint64_t now_ns = twheel_now(w), interval_ns = t->interval_ns, periods = 1;
	unsigned int flags = t->flags;

	if (flags & TWHEEL_FIXED_DELAY) {
		twheel_start_periodic(w, t, time_add(now_ns, interval_ns), interval_ns, flags);
	} else {
		if (now_ns > t->deadline_ns)
			periods += (now_ns - t->deadline_ns) / interval_ns;
		twheel_start_periodic(w, t, time_add(t->deadline_ns, periods * interval_ns),
				      interval_ns, flags);
	}
	t->count = periods < UINT32_MAX ? periods : UINT32_MAX;
}

static void expire(struct twheel *w, struct twheel_timer *t)
{
	bool drained = t->flags & DRAINED;

	list_del(t);
	set_idle(t);
	t->count = 1;
	if (drained)
		make_one_shot(w, t);
	else if (t->interval_ns)
		next_period(w, t);
	w->stats.expired++;
	t->callback(w, t, drained ? -ESHUTDOWN : 0);
}

EXPORT int twheel_dispatch(struct twheel *w, unsigned int max)
{
	unsigned int nr = 0;
	int ret;

	if (w->closed)
		return 0;
	w->depth++;
	if (!max)
		max = INT32_MAX;
	/* All that has ended is known as such before the first callback starts anything. */
	ret = list_empty(&w->due) ? read_events(w, max) : 0;
	twheel_update(w);
	while (nr < max && !w->closed && !list_empty(&w->due)) {
		expire(w, w->due.next);
		nr++;
	}
	leave(w);
	return nr || !ret ? (int)nr : ret;
}

/* Flush; returns false if a callback has closed the wheel, which is gone then. */
static bool flush_within(struct twheel *w, unsigned int *refused)
{
	bool closed;

	w->depth++;
	*refused = twheel_flush(w);
	closed = w->closed;
	leave(w);
	return !closed;
}

/* Sleep until the descriptor is readable, or until a time of CLOCK_MONOTONIC. */
static int sleep_until(const struct twheel *w, uint64_t end_ns)
{
	struct pollfd pollfd = { .fd = w->fd, .events = POLLIN };
	uint64_t now_ns = twheel_clock_now(TWHEEL_CLOCK_MONOTONIC);
	uint64_t left_ns = end_ns > now_ns ? end_ns - now_ns : 0;
	struct timespec left = {
		.tv_sec = left_ns / TWHEEL_SEC,
		.tv_nsec = left_ns % TWHEEL_SEC,
	};
	int ret = ppoll(&pollfd, 1, end_ns < TWHEEL_TIME_NEVER ? &left : NULL, NULL);

	if (ret < 0)
		return -errno;
	/* Otherwise it would say so for ever. */
	if (ret && !(pollfd.revents & POLLIN))
		return pollfd.revents & POLLHUP ? -ESHUTDOWN : -EIO;
	return ret;
}

EXPORT int twheel_wait(struct twheel *w, uint64_t timeout_ns)
{
	uint64_t end_ns = time_add(twheel_clock_now(TWHEEL_CLOCK_MONOTONIC), timeout_ns);
	unsigned int refused;
	bool due;
	int ret;

	do {
		if (!flush_within(w, &refused))
			return refused;
		due = !list_empty(&w->due);
		ret = sleep_until(w, refused || due ? 0 : end_ns);
		if (ret > 0 || (!ret && due))
			ret = twheel_dispatch(w, 0);
	} while (!ret && !refused && twheel_clock_now(TWHEEL_CLOCK_MONOTONIC) < end_ns);
	return ret > 0 || !refused ? ret + (int)refused : (int)refused;
}

/* ---- the wheel ----------------------------------------------------------- */

/* The stack of a class that is not used: nothing to take, and no room. */
static struct twheel_place *const no_stack[] = { (struct twheel_place *)&twheel_idle };

/* Address space that takes memory when it is touched, and is zero then. */
void *twheel_reserve(size_t nr, size_t size)
{
	void *memory = mmap(NULL, nr * size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void twheel_unreserve(void *memory, size_t nr, size_t size)
{
	if (memory)
		munmap(memory, nr * size);
}

static clockid_t clock_id(uint32_t clock)
{
	switch (clock) {
	case TWHEEL_CLOCK_BOOTTIME:
		return CLOCK_BOOTTIME;
	case TWHEEL_CLOCK_REALTIME:
		return CLOCK_REALTIME;
	case TWHEEL_CLOCK_TAI:
		return CLOCK_TAI;
	default:
		return CLOCK_MONOTONIC;
	}
}

uint64_t twheel_clock_now(uint32_t clock)
{
	struct timespec now;

	clock_gettime(clock_id(clock), &now);
	return now.tv_sec * TWHEEL_SEC + now.tv_nsec;
}

/* 2^k - 1 ticks that are not longer, as ARM has it. */
static uint32_t slack_ticks(uint64_t slack_ns, uint64_t tick_ns)
{
	uint32_t slack = 0;

	while (slack < (1U << 15) - 1 && 2 * slack + 1 <= slack_ns / tick_ns)
		slack = 2 * slack + 1;
	return slack;
}

/* Options that are longer than this library knows say nothing in the rest. */
static int options_copy(struct twheel_options *to, const struct twheel_options *from)
{
	const char *byte;
	uint32_t i;

	memset(to, 0, sizeof(*to));
	if (!from)
		return 0;
	if (from->size < offsetof(struct twheel_options, tick_ns))
		return -EINVAL;
	byte = (const char *)from;
	for (i = sizeof(*to); i < from->size; i++)
		if (byte[i])
			return -E2BIG;
	memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	return 0;
}

static int options_set(struct twheel *w, const struct twheel_options *options)
{
	w->clock = options->clock ? options->clock : TWHEEL_CLOCK_MONOTONIC;
	w->tick_ns = options->tick_ns ? options->tick_ns : TWHEEL_MSEC;
	w->max_timers = options->max_timers;
	if (w->clock < TWHEEL_CLOCK_MONOTONIC || w->clock > TWHEEL_CLOCK_VIRTUAL ||
	    w->tick_ns < TWHEEL_TICK_MIN_NS || w->tick_ns > TWHEEL_TICK_MAX_NS ||
	    w->max_timers >= MAX_TIMERS || options->backend > TWHEEL_LOCAL)
		return -EINVAL;
	w->slack_ticks = slack_ticks(options->slack_ns, w->tick_ns);
	w->grain_shift = 63 - __builtin_clzll(w->tick_ns);
	w->grain_mask = (1ULL << w->grain_shift) - 1;
	w->now_up = STALE;
	return 0;
}

static int backend_open(struct twheel *w, const struct twheel_options *options)
{
	int err;

	if (options->backend != TWHEEL_LOCAL) {
		w->backend = &twheel_device_backend;
		err = w->backend->open(w, options->device ? options->device : "/dev/twheel");
		if (!err || options->backend == TWHEEL_DEVICE)
			return err;
		w->max_timers = options->max_timers;
	}
	w->backend = &twheel_local_backend;
	return w->backend->open(w, NULL);
}

EXPORT int twheel_open(struct twheel **out, const struct twheel_options *its_options)
{
	struct twheel_options options;
	unsigned int length, i;
	struct twheel *w;
	int err;

	*out = NULL;
	err = options_copy(&options, its_options);
	if (err)
		return err;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	for (length = 0; length < LENGTHS; length++) {
		w->top[length] = (struct twheel_place **)no_stack;
		w->end[length] = w->top[length];
	}
	list_init(&w->notes);
	list_init(&w->due);
	err = options_set(w, &options);
	for (i = 0; i < BATCH; i++) {
		w->arm[i].flags = TWHEEL_ARM_ABSOLUTE;
		w->arm[i].slack_ticks = w->slack_ticks;
	}
	if (!err)
		err = backend_open(w, &options);
	if (err) {
		free(w);
		return err;
	}
	w->nr_places = w->max_timers + BATCH;
	w->place = twheel_reserve(w->nr_places, sizeof(*w->place));
	if (!w->place) {
		twheel_close(w);
		return -ENOMEM;
	}
	*out = w;
	return 0;
}

EXPORT void twheel_close(struct twheel *w)
{
	unsigned int length;

	if (!w)
		return;
	w->closed = true;
	if (w->depth)
		return;
	w->backend->close(w);
	twheel_unreserve(w->place, w->nr_places, sizeof(*w->place));
	for (length = 0; length < LENGTHS; length++)
		free(w->stack[length].bottom);
	free(w);
}

EXPORT int twheel_fd(const struct twheel *w)
{
	return w->fd;
}

EXPORT enum twheel_backend twheel_backend(const struct twheel *w)
{
	return w->backend->kind;
}

EXPORT uint64_t twheel_next(struct twheel *w)
{
	unsigned int refused;

	if (!flush_within(w, &refused))
		return TWHEEL_NO_EXPIRY;
	if (!list_empty(&w->due) || !list_empty(&w->notes))
		return twheel_now(w);
	return w->backend->next_ns(w);
}

EXPORT int twheel_advance(struct twheel *w, uint64_t to_ns)
{
	unsigned int refused;
	int err;

	if (w->clock != TWHEEL_CLOCK_VIRTUAL)
		return -EOPNOTSUPP;
	if (to_ns > TWHEEL_TIME_NEVER || to_ns < twheel_now(w))
		return -EINVAL;
	if (!flush_within(w, &refused))
		return 0;
	err = w->backend->advance(w, to_ns);
	twheel_update(w);
	return err;
}

EXPORT void twheel_stats(struct twheel *w, struct twheel_stats *stats, size_t size)
{
	struct twheel_stats now = w->stats;
	unsigned int length;
	size_t i;

	now.tick_ns = w->tick_ns;
	now.slack_ns = w->slack_ticks * w->tick_ns;
	now.max_timers = w->max_timers;
	now.backend = w->backend->kind;
	now.clock = w->clock;
	now.grain_shift = w->grain_shift;
	now.places = w->nr_armed;
	now.taken = w->taken;
	for (length = 0; length < LENGTHS; length++)
		for (i = stack_used(w, length); i; i--)
			now.parked += w->stack[length].bottom[i]->bound != NO_BOUND;
	memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
	if (size > sizeof(now))
		memset((char *)stats + sizeof(now), 0, size - sizeof(now));
}
