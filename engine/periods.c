// SPDX-License-Identifier: GPL-2.0
/*
 * Periods of a timeout whose event nobody has read yet
 *
 * Locks: events.lock, held by the caller.
 */
#include <linux/minmax.h>
#include <linux/types.h>

#include "clock.h"
#include "engine.h"
#include "periods.h"
#include "timeout.h"

/**
 * twheel_periods_unread() - count the periods that nobody has counted yet
 * @clock: the wheel's clock
 * @t: a timeout
 * @state: its state
 *
 * A periodic timeout with an unread event is not in the wheel: nobody works for periods
 * that nobody reads.  With a fixed rate, the periods that have passed since it expired are
 * counted here, for any caller that asks.  G1 never early: a period counts from the edge of
 * its tick on, as if it had expired.
 *
 * Context: any; under &twheel_events.lock.
 * Return: how many have passed, within the limit of repeats; 0 for any other timeout.
 */
u64 twheel_periods_unread(const struct twheel_clockwork *clock, const struct twheel_timeout *t,
				 u64 state)
	__must_hold(&tw->events.lock)
{
	const struct twheel_periodic *periodic = timeout_periodic(t);
	u32 slot = timeout_slot(t);
	u64 next_ns, edge_ns, nr;

	if (!state_keeps_room(state) || state_is_fixed_delay(state))
		return 0;
	next_ns = t->deadline_ns + periodic->interval_ns[slot];
	edge_ns = twheel_edge_ns(clock);
	if (next_ns > edge_ns)
		return 0;
	nr = periods_passed(next_ns, periodic->interval_ns[slot], edge_ns);
	if (state_is_limited(state))
		nr = min_t(u64, nr, periodic->repeats_left[slot]);
	return nr;
}

/**
 * twheel_periods_settle() - write down the periods that twheel_periods_unread() has counted
 * @tw: the wheel
 * @t: the timeout
 * @state: its state
 * @nr: how many
 *
 * G4 nothing lost: a reader that has looked at the event, and copies it just now, sees that
 * it has grown, if nothing else has changed.
 *
 * Context: any; under &twheel_events.lock.
 */
void twheel_periods_settle(struct twheel *tw, struct twheel_timeout *t, u64 state,
				  u64 nr)
	__must_hold(&tw->events.lock)
{
	struct twheel_periodic *periodic = timeout_periodic(t);
	u32 slot = timeout_slot(t);

	if (!nr)
		return;
	tw->events.expirations += nr;
	tw->events.changes++;
	if (state_is_limited(state))
		periodic->repeats_left[slot] -= nr;
	periodic->count[slot] = periods_count(periodic->count[slot], nr);
	t->deadline_ns += nr * periodic->interval_ns[slot];
	t->fired_ns = deadline_tick(&tw->clock, t->deadline_ns) * tw->clock.tick_ns;
}
