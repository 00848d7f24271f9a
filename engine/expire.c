// SPDX-License-Identifier: GPL-2.0
/*
 * Expiry: timeouts become events, and upper slots are emptied ahead of time
 *
 * The wheel is turned slot by slot to the last edge of a tick that has passed.  If a timeout that
 * comes up is due, it becomes an event; if it was moved to later, it goes to where it belongs.
 */
#include "engine.h"
#include "trace.h"

/* Count the periods that have passed by @until_ns, up to the repeat limit, into one event. */
static u64 periods_expire(struct twheel_timeout *t, struct twheel_extra *x, u64 until_ns)
{
	u64 nr = 1, deadline_ns = timeout_known_ns(t);

	/* If the clock was set back, it may be before the edge at which the timeout came up. */
	if (!(x->flags & EXTRA_FIXED_DELAY))
		nr = periods_passed(deadline_ns, x->interval_ns, max(until_ns, deadline_ns));
	if (x->flags & EXTRA_LIMITED) {
		nr = min_t(u64, nr, x->repeats_left);
		x->repeats_left -= nr;
	}
	x->count = periods_count(0, nr);
	t->deadline_ns += (nr - 1) * x->interval_ns;
	return nr;
}

/* Turn a timeout that is PENDING and in no list into an event, for its periods up to @until_ns. */
static void timeout_expire(struct tw_ctx *tw, struct twheel_timeout *t, u64 now_ns, u64 until_ns,
			   u64 late_ns) __must_hold(&tw->lock)
{
	u64 nr = timeout_is_periodic(t) ? periods_expire(t, timeout_extra(t), until_ns) : 1;

	tw->events.expirations += nr;
	event_add(&tw->events, t, now_ns);
	trace_twheel_expire(tw, t, late_ns, nr);
}

/*
 * Turn a timeout that is PENDING and in no list into an event.  It was due when it was armed, so it
 * belongs to no tick, and is not late.
 */
void twheel_expire_overdue(struct tw_ctx *tw, struct twheel_timeout *t, u64 now_ns)
	__must_hold(&tw->lock)
{
	timeout_expire(tw, t, now_ns, now_ns, 0);
}

/*
 * Note the lateness of @nr timeouts (G2).  Returns how long ago the edge was at which they were
 * due.
 */
static u64 lateness_note(struct tw_ctx *tw, u64 now_ns, unsigned int nr)
	__must_hold(&tw->lock)
{
	struct twheel_events *events = &tw->events;
	u64 late_ns = now_ns - min(edge_after_ns(&tw->clock, tw->wheel.base_ns), now_ns);

	events->late_ticks[ticks_log2(&tw->clock, late_ns)] += nr;
	if (unlikely(late_ns > tw->clock.tick_ns + tw->clock.slack_ns)) {
		events->late += nr;
		events->last_late_ns = late_ns;
		events->last_late_at_ns = now_ns;
		counter_add(COUNTER_LATE, nr);
	}
	return late_ns;
}

/*
 * Slow path: expire or put back a coming timeout of any kind.  It takes the timeouts that
 * expire_oneshots() leaves, and all of them if words may have moved them, or if they are traced.
 */
static noinline void expire_slow(struct tw_ctx *tw, struct twheel_timeout *t, u64 now_ns, u64 by_ns)
	__must_hold(&tw->lock)
{
	u64 due_ns, until_ns = 0, late_ns;

	timeout_prefetch_ahead(tw, t, words_are_there(&tw->words));
	due_ns = timeout_take_over(tw, t);
	twheel_link_del(&t->link);
	if (due_ns == NEVER_NS) {
		twheel_link_push(&tw->wheel.never, &t->link);
		return;
	}
	/* G1 never early. */
	if (due_ns > by_ns) {
		twheel_wheel_put_back(&tw->wheel, &t->link, due_ns);
		return;
	}
	if (timeout_is_periodic(t))
		until_ns = slack_edge_ns(&tw->clock, timeout_extra(t)->flags, now_ns);
	late_ns = lateness_note(tw, now_ns, 1);
	timeout_expire(tw, t, now_ns, until_ns, late_ns);
}

/* Whether a timeout that seems to be due later is a one-shot with slack that is due by @by_ns. */
static bool slack_is_over(struct tw_ctx *tw, const struct twheel_timeout *t, u64 by_ns)
	__must_hold(&tw->lock)
{
	return timeout_has_extra(t) && !timeout_is_periodic(t) &&
	       timeout_due_by_ns(tw, t, timeout_known_ns(t)) <= by_ns;
}

/*
 * Fast path: expire coming timeouts, up to @nr, until one is not a one-shot, or has slack and is
 * not due; returns how many were processed.  Those that are due by @by_ns stay linked with each
 * other.  The others go back: their slot has another edge, or they were moved to later.
 */
static unsigned int expire_oneshots(struct tw_ctx *tw, u64 now_ns, u64 by_ns, unsigned int nr)
	__must_hold(&tw->lock)
{
	struct twheel_wheel *w = &tw->wheel;
	struct twheel_link *link = w->coming, *first, *last = NULL, *next;
	unsigned int nr_scanned, nr_due = 0;

	for (nr_scanned = 0; nr_scanned < nr && link != &w->end; nr_scanned++, link = next) {
		struct twheel_timeout *t = link_timeout(link);
		u64 deadline_ns = t->deadline_ns;

		next = link->next;
		timeout_prefetch_ahead(tw, t, false);
		if (unlikely(deadline_ns > by_ns)) {
			/* G1 never early. */
			if (deadline_ns < tw->clock.never_ns) {
				twheel_link_del(link);
				twheel_wheel_put_back(w, link, deadline_ns);
				continue;
			}
			if (!slack_is_over(tw, t, by_ns))
				break;
		}
		last = link;
		timeout_become_event(t, now_ns);
		nr_due++;
	}
	if (!nr_due)
		return nr_scanned;
	first = w->coming;
	w->coming = link;
	link->pprev = &w->coming;
	events_append(&tw->events, first, last, nr_due);
	tw->events.expirations += nr_due;
	lateness_note(tw, now_ns, nr_due);
	return nr_scanned;
}

/*
 * Expire the timeouts that are due, in the order of ticks.  Process *@nr at most, and reduce it by
 * their number.  Returns whether there may be more that are due.
 */
bool twheel_expire(struct tw_ctx *tw, u64 now_ns, unsigned int *nr) __must_hold(&tw->lock)
{
	u64 edge_ns = edge_before_ns(&tw->clock, now_ns);

	while (*nr) {
		unsigned int done = 0;
		u64 by_ns;

		if (!twheel_wheel_has_coming(&tw->wheel)) {
			if (!twheel_wheel_turn(&tw->wheel, edge_ns))
				return false;
			/* There were many empty slots. */
			if (unlikely(!twheel_wheel_has_coming(&tw->wheel)))
				return true;
		}
		/* G1 never early.  The end of time is in no tick, though it may be an edge. */
		by_ns = min(tw->wheel.base_ns, tw->clock.never_ns - 1);
		if (likely(!words_are_there(&tw->words) && !trace_twheel_expire_enabled()))
			done = expire_oneshots(tw, now_ns, by_ns, *nr);
		if (!done) {
			expire_slow(tw, link_timeout(tw->wheel.coming), now_ns, by_ns);
			done = 1;
		}
		*nr -= done;
	}
	return true;
}

/* Upper slots */

/*
 * Upper slots are emptied ahead of time and evenly: for two timeouts that are processed, three are
 * moved down.  If as many come in each tick, the next slot is empty in time, and no thread waits
 * for a pass that only moves timeouts.  If timeouts are left in a slot half of its width before it
 * begins, the wheel moves AHEAD_TICK of them in a tick; if a quarter of its width before, all at
 * once.
 */
#define AHEAD_TICK	4096

/* How many timeouts of this level's next slot have to be moved down now, time left or not. */
static u32 ahead_of_level(struct tw_ctx *tw, const struct twheel_level *level)
	__must_hold(&tw->lock)
{
	u64 left_ns = twheel_slot_left_ns(&tw->wheel, level), lead_ns = twheel_slot_lead_ns(level);

	if (left_ns > lead_ns)
		return tw->nr_ahead;
	if (left_ns <= lead_ns / 2)
		return U32_MAX;
	if (tw->ahead_ns != tw->wheel.base_ns) {
		tw->ahead_ns = tw->wheel.base_ns;
		tw->nr_ahead = max(tw->nr_ahead, AHEAD_TICK);
	}
	return tw->nr_ahead;
}

/* Move down up to @nr timeouts of the next upper slots.  Returns whether more have to move now. */
bool twheel_empty_ahead(struct tw_ctx *tw, unsigned int nr) __must_hold(&tw->lock)
{
	struct twheel_wheel *w = &tw->wheel;
	struct twheel_link **slot;
	u32 i;

	while ((slot = twheel_wheel_ahead(w, &i))) {
		u32 nr_ahead = ahead_of_level(tw, &w->level[i]);
		unsigned int before = nr;

		for (; nr && *slot != &w->end; nr--) {
			struct twheel_timeout *t = link_timeout(*slot);
			u64 due_ns;

			timeout_prefetch_ahead(tw, t, words_are_there(&tw->words));
			due_ns = timeout_take_over(tw, t);
			twheel_link_del(&t->link);
			if (likely(due_ns != NEVER_NS))
				twheel_wheel_move_down(w, i, &t->link, due_ns);
			else
				twheel_link_push(&w->never, &t->link);
		}
		tw->nr_ahead -= min(tw->nr_ahead, before - nr);
		if (!nr)
			return *slot != &w->end && nr_ahead > before;
	}
	tw->nr_ahead = 0;
	return false;
}

/*
 * Periods that pass while the event of a periodic timeout waits to be read
 *
 * Such a timeout is not in the wheel, so periods cost no work until the event is read.  With a
 * fixed rate, the periods are computed from the clock when a caller asks for them, and written into
 * the timeout when its event is taken.
 */

/*
 * The number of periods that have passed since the event of a timeout was settled, up to the repeat
 * limit; 0 unless the timeout is UNREAD, not drained, and periodic at a fixed rate.  The caller
 * holds the wheel's lock.  G1 never early: a period counts only once the clock has reached the edge
 * of its tick, just as if it had expired there.
 */
u64 twheel_periods_unread(const struct twheel_clockwork *clock, const struct twheel_timeout *t)
{
	const struct twheel_extra *x;
	u64 next_ns, edge_ns, nr;

	if (!timeout_goes_on(t))
		return 0;
	x = timeout_extra(t);
	if (x->flags & EXTRA_FIXED_DELAY)
		return 0;
	next_ns = timeout_known_ns(t) + x->interval_ns;
	edge_ns = slack_edge_ns(clock, x->flags, clock_now(clock));
	if (next_ns > edge_ns)
		return 0;
	nr = periods_passed(next_ns, x->interval_ns, edge_ns);
	if (x->flags & EXTRA_LIMITED)
		nr = min_t(u64, nr, x->repeats_left);
	return nr;
}

/* Add @nr periods to an unread event.  The caller holds the wheel's lock. */
void twheel_periods_settle(struct tw_ctx *tw, struct twheel_timeout *t, u64 nr)
{
	struct twheel_extra *x;

	if (!nr)
		return;
	x = timeout_extra(t);
	tw->events.expirations += nr;
	if (x->flags & EXTRA_LIMITED)
		x->repeats_left -= nr;
	x->count = periods_count(x->count, nr);
	t->deadline_ns += nr * x->interval_ns;
	t->fired_ns = period_fired_ns(&tw->clock, x->flags, timeout_known_ns(t));
}

/* Begin the next period of a periodic timeout whose event was taken. */
void twheel_period_begin(struct tw_ctx *tw, struct twheel_timeout *t) __must_hold(&tw->lock)
{
	struct twheel_extra *x = timeout_extra(t);
	u64 now_ns = passed_ns(tw, clock_now(&tw->clock));
	u64 due_ns, from_ns = x->flags & EXTRA_FIXED_DELAY ? now_ns : timeout_known_ns(t);

	x->count = 0;
	x->deliveries = periods_count(x->deliveries, 1);
	t->deadline_ns = ns_add(from_ns, x->interval_ns) | DEADLINE_EXTRA;
	timeout_begin_again(t);
	due_ns = timeout_due_ns(tw, t);
	if (due_ns == NEVER_NS) {
		twheel_link_push(&tw->wheel.never, &t->link);
	} else if (due_ns <= edge_before_ns(&tw->clock, now_ns)) {
		/* A period passed while the event was copied: its reader is late, it is not. */
		twheel_expire_overdue(tw, t, now_ns);
	} else {
		twheel_wheel_insert(&tw->wheel, &t->link, due_ns);
		alarm_need(tw, due_ns, 1);
	}
}
