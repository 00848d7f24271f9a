// SPDX-License-Identifier: MIT
/*
 * The front of libtwheel: timers that start and stop by stores
 *
 * The back end looks at the word of a timeout in the refresh table only when the deadline
 * that it knows comes up, and goes by the word then if that is later.  So a timeout that
 * is armed can serve one timer after another, as long as each has a later deadline than
 * the one before: a store gives it away, and nobody else has to know.
 *
 * A *place* is a timeout that is armed in the back end.  It has an id, and a *bound*: the
 * latest deadline that the back end can have for it, armed or stored.  A place is
 *
 * - owned: a timer has it.  Its id and bound are in the timer.
 * - parked: no timer has it, and the next one may take it.  Its id and bound are in a
 *   stack; there is one for each class of lengths, so that a timer of 1 s does not find a
 *   place that is armed for 30 s ahead.  What was parked last is taken first: what is
 *   not needed stays at the bottom, and runs out or is given up.
 * - given up: twheel_flush() is going to cancel it.
 * - gone: it has ended.
 *
 * w->owner[] says for each index which of these it is: see owner_kind().
 *
 * A timer is idle, or noted (it waits for twheel_flush() to arm a place for it), or the
 * owner of one place, or due (its event was read, and its callback will be called).
 *
 * The invariants:
 *
 * - The bound of a place is never below the deadline that the back end has for it.
 * - A deadline is stored only for a place that has not been read as ended: an event ends
 *   its place, in twheel_dispatch(), before any callback runs.
 * - A timer whose deadline is later than that of its event was moved too late for the back
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

#define NO_BOUND	UINT64_MAX

/* A bit that no time has, and that a sum with a delay keeps. */
#define STALE		(1ULL << 63)

/* How many places are kept beside half of those in use, and how many a stack begins with. */
#define KEPT		512

/* How many parked places a start looks at before it is noted. */
#define TRIES		16

/*
 * What a timer is that has no bound.  Periodic timers own a place, but have no bound, so
 * that twheel_start() does not take them for one-shots.
 */
enum state { IDLE, NOTED, DUE, PERIODIC };

/* Flags of a timer, beside TWHEEL_FIXED_DELAY */
#define DRAINED		(1U << 7)

/* What twheel_flush() has to do: w->work */
#define WORK_NOTES	(1U << 0)	/* timers are noted, or places given up */
#define WORK_TRIM	(1U << 1)	/* many places are parked */

_Static_assert(sizeof(uintptr_t) == sizeof(uint64_t), "libtwheel is for 64-bit machines");

/* ---- owners -------------------------------------------------------------- */

/*
 * What w->owner[] holds: a pointer to the timer, a pointer to the entry of a stack, or
 * the generation and the index of the next one that is given up.
 */
enum owner_kind { OWNED = 0, PARKED = 1, GIVEN_UP = 2, OWNER_KINDS = 3 };

static enum owner_kind owner_kind(uintptr_t owner)
{
	return owner & OWNER_KINDS;
}

static inline uintptr_t owner_parked(struct parked *entry)
{
	return (uintptr_t)entry | PARKED;
}

static struct parked *parked_of(uintptr_t owner)
{
	return (struct parked *)(owner & ~(uintptr_t)OWNER_KINDS);
}

static uint32_t index_of(uint64_t id)
{
	return (uint32_t)id;
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

static uint64_t grain_mask(const struct twheel *w)
{
	return (1ULL << w->grain_shift) - 1;
}

static grains_t grains_up(const struct twheel *w, uint64_t time_ns)
{
	return (time_ns + grain_mask(w)) >> w->grain_shift;
}

static uint64_t time_add(uint64_t a_ns, uint64_t b_ns)
{
	if (b_ns >= TWHEEL_TIME_NEVER - a_ns)
		return TWHEEL_TIME_NEVER;
	return a_ns + b_ns;
}

EXPORT uint64_t twheel_update(struct twheel *w)
{
	uint64_t now_ns = w->backend->now_ns(w);

	w->now_up = now_ns + grain_mask(w);
	return now_ns;
}

EXPORT uint64_t twheel_now(struct twheel *w)
{
	if (w->now_up & STALE)
		return twheel_update(w);
	return w->now_up - grain_mask(w);
}

static unsigned int length_class(uint64_t length_ns)
{
	return 63 - __builtin_clzll(length_ns | 1);
}

/* ---- places -------------------------------------------------------------- */

static inline void store(struct twheel *w, uint64_t id, grains_t deadline)
{
	__atomic_store_n(word_of(w, id), word_for(id, deadline), __ATOMIC_RELAXED);
}

/* A place is not to be used any more. */
static void give_up(struct twheel *w, uint64_t id)
{
	w->owner[index_of(id)] = w->given_up;
	w->given_up = (uintptr_t)(id >> 32 << 32 | (uint64_t)index_of(id) << 2 | GIVEN_UP);
	w->work |= WORK_NOTES;
}

static inline void park_at(struct twheel *w, struct parked *entry, uint64_t id, grains_t bound)
{
	entry->id = id;
	entry->bound = bound;
	w->owner[index_of(id)] = owner_parked(entry);
}

/* Beyond w->end[]: see whether there are too many, at the next flush. */
static COLD void park_beyond(struct twheel *w, unsigned int length, uint64_t id, grains_t bound)
{
	struct stack *stack = &w->stack[length];

	w->work |= WORK_TRIM;
	if (!stack->size || w->end[length] == &stack->bottom[stack->size - 1]) {
		give_up(w, id);
		return;
	}
	w->end[length] = &stack->bottom[stack->size - 1];
	park_at(w, ++w->top[length], id, bound);
}

static inline void park(struct twheel *w, unsigned int length, uint64_t id, grains_t bound)
{
	struct parked *top = w->top[length];

	if (unlikely(top == w->end[length])) {
		park_beyond(w, length, id, bound);
		return;
	}
	park_at(w, ++top, id, bound);
	w->top[length] = top;
}

/* Make a timer the owner of a place, by a store. */
static inline void own(struct twheel *w, struct twheel_timer *t, uint64_t id, grains_t deadline)
{
	w->owner[index_of(id)] = (uintptr_t)t;
	t->id = id;
	t->bound = deadline;
	store(w, id, deadline);
}

/* Take an entry out of the middle of a stack: the one on top comes in its place. */
static void unpark(struct twheel *w, unsigned int length, struct parked *entry)
{
	struct parked *top = w->top[length]--;

	if (entry == top)
		return;
	*entry = *top;
	if (entry->bound != NO_BOUND)
		w->owner[index_of(entry->id)] = owner_parked(entry);
}

/* Give a timer a place of this class whose bound is not after its deadline. */
static bool take_of(struct twheel *w, struct twheel_timer *t, grains_t deadline,
		    unsigned int length)
{
	grains_t now = twheel_now(w) >> w->grain_shift;
	struct parked *bottom = w->stack[length].bottom;
	struct parked *entry = w->top[length];
	unsigned int tries;

	if (!bottom)
		return false;
	for (tries = 0; tries < TRIES && entry > bottom; tries++, entry--) {
		struct parked found = *entry;
		unsigned int its_length;

		if (found.bound <= deadline) {
			unpark(w, length, entry);
			own(w, t, found.id, deadline);
			w->stats.taken++;
			return true;
		}
		/* It has ended, or its last timer was moved farther ahead than it began. */
		its_length = found.bound == NO_BOUND || found.bound <= now ? length :
			     length_class((found.bound - now) << w->grain_shift);
		if (found.bound == NO_BOUND || its_length > length + 1) {
			unpark(w, length, entry);
			if (found.bound != NO_BOUND)
				park(w, its_length, found.id, found.bound);
		}
	}
	return false;
}

/* ---- start and stop ------------------------------------------------------ */

static void note(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns)
{
	t->deadline_ns = deadline_ns;
	t->state = NOTED;
	list_add_tail(&w->notes, t);
	w->stats.noted++;
	w->work |= WORK_NOTES;
}

static void unlink_timer(struct twheel *w, struct twheel_timer *t)
{
	if (t->state == NOTED)
		w->stats.noted--;
	list_del(t);
	t->state = IDLE;
}

/* Make it a one-shot, if it was periodic. */
static void make_one_shot(struct twheel *w, struct twheel_timer *t)
{
	if (t->state == PERIODIC) {
		t->bound = grains_up(w, t->deadline_ns);
		t->state = IDLE;
	}
	t->interval_ns = 0;
	t->flags = 0;
}

static COLD void start(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns)
{
	uint64_t now_ns = twheel_now(w);
	uint64_t length_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	grains_t deadline = grains_up(w, deadline_ns);

	make_one_shot(w, t);
	if (t->state != IDLE)
		unlink_timer(w, t);
	if (t->bound != NO_BOUND) {
		if (deadline >= t->bound) {
			t->bound = deadline;
			store(w, t->id, deadline);
			return;
		}
		park(w, t->length, t->id, t->bound);
		t->bound = NO_BOUND;
	}
	t->length = length_class(length_ns);
	if (take_of(w, t, deadline, t->length) ||
	    (t->length && take_of(w, t, deadline, t->length - 1)))
		return;
	note(w, t, deadline_ns);
}

static COLD void start_after(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns)
{
	start(w, t, time_add(twheel_now(w), delay_ns));
}

EXPORT void twheel_start(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns)
{
	uint64_t deadline_up = w->now_up + delay_ns;
	grains_t deadline = deadline_up >> w->grain_shift;
	struct parked *top;
	unsigned int length;

	/* The clock has to be read, or the end of time has been reached. */
	if (unlikely(deadline_up & STALE))
		goto slow;
	if (deadline >= t->bound) {
		t->bound = deadline;
		store(w, t->id, deadline);
		return;
	}
	if (unlikely(t->bound != NO_BOUND || t->state != IDLE))
		goto slow;
	length = length_class(delay_ns);
	top = w->top[length];
	if (unlikely(top->bound > deadline))
		goto slow;
	w->top[length] = top - 1;
	t->length = length;
	w->stats.taken++;
	own(w, t, top->id, deadline);
	return;
slow:
	start_after(w, t, delay_ns);
}

EXPORT void twheel_start_at(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns)
{
	start(w, t, time_min(deadline_ns, TWHEEL_TIME_NEVER));
}

EXPORT void twheel_start_periodic(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns,
				  uint64_t interval_ns, unsigned int flags)
{
	deadline_ns = time_min(deadline_ns, TWHEEL_TIME_NEVER);
	start(w, t, deadline_ns);
	t->interval_ns = interval_ns > w->tick_ns ? interval_ns : w->tick_ns;
	t->flags = flags & TWHEEL_FIXED_DELAY;
	if (t->bound == NO_BOUND)
		return;
	t->deadline_ns = deadline_ns;
	t->bound = NO_BOUND;
	t->state = PERIODIC;
}

EXPORT void twheel_start_every(struct twheel *w, struct twheel_timer *t, uint64_t interval_ns)
{
	if (interval_ns < w->tick_ns)
		interval_ns = w->tick_ns;
	twheel_start_periodic(w, t, time_add(twheel_now(w), interval_ns), interval_ns, 0);
}

static COLD bool stop_unusual(struct twheel *w, struct twheel_timer *t)
{
	bool pending = t->state != IDLE;

	make_one_shot(w, t);
	if (t->bound != NO_BOUND) {
		park(w, t->length, t->id, t->bound);
		t->bound = NO_BOUND;
	} else if (pending) {
		unlink_timer(w, t);
	}
	return pending;
}

EXPORT bool twheel_stop(struct twheel *w, struct twheel_timer *t)
{
	if (unlikely(t->bound == NO_BOUND))
		return stop_unusual(w, t);
	park(w, t->length, t->id, t->bound);
	t->bound = NO_BOUND;
	return true;
}

EXPORT bool twheel_timer_pending(const struct twheel_timer *t)
{
	return t->bound != NO_BOUND || t->state != IDLE;
}

EXPORT uint64_t twheel_timer_deadline(const struct twheel *w, const struct twheel_timer *t)
{
	if (t->bound != NO_BOUND)
		return grains_to_ns(w, t->bound);
	if (t->state == IDLE)
		return TWHEEL_NO_EXPIRY;
	return grains_to_ns(w, grains_up(w, t->deadline_ns));
}

EXPORT uint32_t twheel_timer_count(const struct twheel_timer *t)
{
	return t->count;
}

EXPORT void twheel_timer_moved(struct twheel *w, struct twheel_timer *t)
{
	if (t->bound != NO_BOUND || t->state == PERIODIC) {
		w->owner[index_of(t->id)] = (uintptr_t)t;
	} else if (t->state != IDLE) {
		t->next->prev = t;
		t->prev->next = t;
	}
}

/* ---- flush --------------------------------------------------------------- */

static void cancel_some(struct twheel *w, uint32_t nr)
{
	uint32_t i;

	w->stats.calls++;
	w->backend->cancel(w, w->cancel, nr);
	for (i = 0; i < nr; i++) {
		/* ENOENT: its event was read while it waited here. */
		if (w->cancel[i].result < 0)
			continue;
		w->nr_places--;
		w->stats.cancelled++;
	}
}

/* Cancel all that is given up. */
static void cancel_given_up(struct twheel *w)
{
	uint32_t nr = 0;

	while (w->given_up) {
		uint32_t index = (uint32_t)w->given_up >> 2;

		w->cancel[nr++] = (struct twheel_cancel){
			.id = w->given_up >> 32 << 32 | index,
		};
		w->given_up = w->owner[index];
		w->owner[index] = 0;
		if (nr == BATCH || !w->given_up) {
			cancel_some(w, nr);
			nr = 0;
		}
	}
}

static size_t stack_used(const struct twheel *w, unsigned int length)
{
	return w->stack[length].bottom ? w->top[length] - w->stack[length].bottom : 0;
}

static size_t all_parked(const struct twheel *w)
{
	unsigned int length;
	size_t nr = 0;

	for (length = 0; length < LENGTHS; length++)
		nr += stack_used(w, length);
	return nr;
}

/* The entries of a stack stand elsewhere now. */
static void stack_moved(struct twheel *w, unsigned int length)
{
	struct parked *entry;

	for (entry = w->stack[length].bottom + 1; entry <= w->top[length]; entry++)
		if (entry->bound != NO_BOUND)
			w->owner[index_of(entry->id)] = owner_parked(entry);
}

/* Give up the oldest of a stack. */
static void stack_cut(struct twheel *w, unsigned int length, size_t nr)
{
	struct parked *entry = w->stack[length].bottom + 1;
	size_t i, rest = stack_used(w, length) - nr;

	for (i = 0; i < nr; i++)
		if (entry[i].bound != NO_BOUND)
			give_up(w, entry[i].id);
	memmove(entry, entry + nr, rest * sizeof(*entry));
	w->top[length] = entry - 1 + rest;
	stack_moved(w, length);
}

/* Make room for more; without memory the stack stays as it is, and parks fewer. */
static void stack_provide(struct twheel *w, unsigned int length, size_t room)
{
	struct stack *stack = &w->stack[length];
	size_t used = stack_used(w, length);
	size_t size = 1 + used + room;
	struct parked *bottom;

	if (stack->size < size || stack->size / 4 > size) {
		bottom = realloc(stack->bottom, size * sizeof(*bottom));
		if (bottom) {
			bottom[0] = (struct parked){ .bound = NO_BOUND };
			stack->bottom = bottom;
			stack->size = size;
			w->top[length] = bottom + used;
			w->end[length] = w->top[length];
			stack_moved(w, length);
		}
	}
	if (stack->size)
		w->end[length] = stack->size < size ? &stack->bottom[stack->size - 1] :
						      &stack->bottom[size - 1];
}

/* A burst that ends does not leave all its places to come up in vain. */
static void trim(struct twheel *w)
{
	size_t parked = all_parked(w), in_use, kept, used, room;
	unsigned int length;

	in_use = w->nr_places > parked ? w->nr_places - parked : 0;
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

/* A place was armed for a timer. */
static void armed(struct twheel *w, struct twheel_timer *t, uint64_t id)
{
	w->nr_places++;
	w->stats.armed++;
	w->owner[index_of(id)] = (uintptr_t)t;
	t->id = id;
	if (t->interval_ns) {
		t->state = PERIODIC;
	} else {
		t->state = IDLE;
		t->bound = grains_up(w, t->deadline_ns);
	}
	if (unlikely(!w->stack[t->length].size))
		stack_provide(w, t->length, KEPT);
}

/*
 * Arm a place for each of the first @nr timers of a list.  Those that are refused go to
 * @refused, with the errno in their count.
 */
static void arm_some(struct twheel *w, struct twheel_timer *list, uint32_t nr,
		     struct twheel_timer *refused)
{
	uint32_t i;

	w->stats.calls++;
	w->backend->arm(w, w->arm, nr);
	for (i = 0; i < nr; i++) {
		struct twheel_timer *t = list->next;

		list_del(t);
		w->stats.noted--;
		if (w->arm[i].result > 0) {
			armed(w, t, w->arm[i].id);
			continue;
		}
		t->count = -w->arm[i].result;
		list_add_tail(refused, t);
		w->stats.noted++;
	}
}

static void arm_all(struct twheel *w, struct twheel_timer *list, struct twheel_timer *refused)
{
	while (!list_empty(list)) {
		struct twheel_timer *t = list->next;
		uint32_t nr;

		for (nr = 0; nr < BATCH && t != list; nr++, t = t->next)
			w->arm[nr] = (struct twheel_arm){
				.expires_ns = grains_to_ns(w, grains_up(w, t->deadline_ns)),
				.flags = TWHEEL_ARM_ABSOLUTE,
				.slack_ticks = w->slack_ticks,
			};
		arm_some(w, list, nr, refused);
	}
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

	while (!list_empty(refused)) {
		struct twheel_timer *t = refused->next;
		int err = -(int)t->count;

		unlink_timer(w, t);
		make_one_shot(w, t);
		t->count = 0;
		if (w->closed)
			continue;
		nr++;
		w->stats.refused++;
		t->callback(w, t, err);
	}
	return nr;
}

static COLD unsigned int flush(struct twheel *w)
{
	struct twheel_timer list, refused;
	bool many = w->work & WORK_TRIM;
	unsigned int nr;

	w->work = 0;
	if (many)
		trim(w);
	cancel_given_up(w);
	if (list_empty(&w->notes))
		return 0;
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
	w->now_up |= w->stale;
	return unlikely(w->work) ? flush(w) : 0;
}

/* ---- dispatch ------------------------------------------------------------ */

/* The event of a place that a timer has: the timer is due, or has been moved. */
static void owned_ended(struct twheel *w, struct twheel_timer *t, const struct twheel_event *event)
{
	bool periodic = t->state == PERIODIC;
	grains_t bound = periodic ? grains_up(w, t->deadline_ns) : t->bound;

	w->owner[index_of(t->id)] = 0;
	t->bound = NO_BOUND;
	if (event->flags & TWHEEL_EVENT_DRAINED) {
		t->flags |= DRAINED;
	} else if (event->deadline_ns >> w->grain_shift < bound) {
		w->stats.rearmed++;
		note(w, t, periodic ? t->deadline_ns : grains_to_ns(w, bound));
		return;
	}
	t->state = DUE;
	list_add_tail(&w->due, t);
}

/* The place of an event is gone from now on. */
static void place_ended(struct twheel *w, const struct twheel_event *event)
{
	uint32_t index = index_of(event->id);
	struct twheel_timer *t;
	uintptr_t owner;

	if (index >= w->nr_indices)
		return;
	owner = w->owner[index];
	switch (owner_kind(owner)) {
	case OWNED:
		t = (struct twheel_timer *)owner;
		if (!t || t->id != event->id)
			return;
		owned_ended(w, t, event);
		break;
	case PARKED:
		if (parked_of(owner)->id != event->id)
			return;
		parked_of(owner)->bound = NO_BOUND;
		w->owner[index] = 0;
		w->stats.vain++;
		break;
	default:
		/* It stays among the given up, and cancelling it finds nothing. */
		w->stats.vain++;
	}
	w->nr_places--;
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
			place_ended(w, &w->event[i]);
		due += nr;
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
	t->state = IDLE;
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

	return ret < 0 ? -errno : ret;
}

EXPORT int twheel_wait(struct twheel *w, uint64_t timeout_ns)
{
	uint64_t end_ns = time_add(twheel_clock_now(TWHEEL_CLOCK_MONOTONIC), timeout_ns);
	unsigned int refused;
	int ret;

	do {
		if (!flush_within(w, &refused))
			return refused;
		ret = sleep_until(w, refused ? 0 : end_ns);
		if (ret > 0)
			ret = twheel_dispatch(w, 0);
		else if (!ret)
			break;
	} while (!ret && !refused);
	return ret > 0 || !refused ? ret + (int)refused : (int)refused;
}

/* ---- the wheel ----------------------------------------------------------- */

/* What parked places of an unused class look like: none, and no room for one. */
static const struct parked no_parked = { .bound = NO_BOUND };

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
	w->stale = w->clock == TWHEEL_CLOCK_VIRTUAL ? 0 : STALE;
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
	unsigned int length;
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
		w->top[length] = (struct parked *)&no_parked;
		w->end[length] = w->top[length];
	}
	list_init(&w->notes);
	list_init(&w->due);
	err = options_set(w, &options);
	if (!err)
		err = backend_open(w, &options);
	if (err) {
		free(w);
		return err;
	}
	w->owner = twheel_reserve(w->nr_indices, sizeof(*w->owner));
	if (!w->owner) {
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
	twheel_unreserve(w->owner, w->nr_indices, sizeof(*w->owner));
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
	struct parked *entry;

	now.tick_ns = w->tick_ns;
	now.slack_ns = w->slack_ticks * w->tick_ns;
	now.max_timers = w->max_timers;
	now.backend = w->backend->kind;
	now.clock = w->clock;
	now.grain_shift = w->grain_shift;
	now.places = w->nr_places;
	for (length = 0; length < LENGTHS; length++)
		for (entry = w->top[length]; w->stack[length].bottom &&
		     entry > w->stack[length].bottom; entry--)
			now.parked += entry->bound != NO_BOUND;
	memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
	if (size > sizeof(now))
		memset((char *)stats + sizeof(now), 0, size - sizeof(now));
}
