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
#include "front.h"

EXPORT const struct twheel_place twheel_idle = { .bound = NO_BOUND, .ref = IDLE };
const struct twheel_place twheel_noted = { .bound = NO_BOUND, .ref = NOTED };
const struct twheel_place twheel_due = { .bound = NO_BOUND, .ref = DUE };

_Static_assert(!offsetof(struct twheel, head), "the inline functions find it there");
_Static_assert(sizeof(uintptr_t) == sizeof(uint64_t), "libtwheel is for 64-bit machines");

/* ---- time ---------------------------------------------------------------- */

EXPORT uint64_t twheel_update(struct twheel *w)
{
	w->now_ns = w->backend->now_ns(w);
	w->head.now_up = w->now_ns + w->head.grain_mask;
	return w->now_ns;
}

EXPORT uint64_t twheel_now(struct twheel *w)
{
	return w->head.now_up & STALE ? twheel_update(w) : w->now_ns;
}

/* ---- start and stop ------------------------------------------------------ */

/* Let go of the place. */
static void disown(struct twheel *w, struct twheel_timer *t)
{
	twheel_park(w, t->length, t->place);
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
	return *w->head.top[length] == &twheel_idle;
}

/* By any way: the timer's own place, a parked one, or a note. */
static COLD void start_anyhow(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns,
			      unsigned int length)
{
	grains_t deadline = grains_up(w, deadline_ns);

	if (!is_idle(t) && restart(w, t, deadline))
		return;
	t->length = length;
	if (length && (twheel_take(w, t, deadline, length) ||
		       twheel_take(w, t, deadline, length - 1)))
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
	if (w->head.now_up & STALE) {
		twheel_update(w);
		if (!(w->head.now_up & STALE)) {
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
