// SPDX-License-Identifier: GPL-2.0
/*
 * The periods that pass while the event of a periodic timeout waits to be read
 *
 * Such a timeout is not in the wheel, so the kthread does no work for periods whose
 * events nobody reads.  With a fixed rate, the periods are computed from the clock when a
 * caller asks for them, and written into the timeout when its event is taken.
 *
 * Locks: none is taken here; the callers hold events.lock.
 */
#include <linux/minmax.h>
#include <linux/types.h>

#include "clock.h"
#include "engine.h"
#include "periods.h"
#include "slack.h"
#include "timeout.h"

/**
 * twheel_periods_unread() - count the periods that have passed since an event was settled
 * @clock: the wheel's clock
 * @t: the timeout
 * @state: its state
 *
 * G1 never early: a period counts only once the clock has reached the edge of its tick,
 * just as if the kthread had expired it there.
 *
 * Context: process or kthread, with &twheel_events.lock held; does not sleep.
 * Return: the number of periods after the one at @t->deadline_ns, bounded by the repeat
 * limit; 0 unless the timeout is UNREAD, not drained, and periodic at a fixed rate.
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
	edge_ns = slack_edge_ns(clock, state, twheel_edge_ns(clock));
	if (next_ns > edge_ns)
		return 0;
	nr = periods_passed(next_ns, periodic->interval_ns[slot], edge_ns);
	if (state_is_limited(state))
		nr = min_t(u64, nr, periodic->repeats_left[slot]);
	return nr;
}

/**
 * twheel_periods_settle() - add periods that have passed to an unread event
 * @tw: the wheel
 * @t: the timeout
 * @state: its state, which is UNREAD
 * @nr: the number of periods, at most the result of twheel_periods_unread()
 *
 * G4 nothing lost: this counts as a change of the event.  A reader that looked at the
 * event before, and is copying it to the user now, finds in twheel_events_commit() that
 * the event has grown, and reads it again.
 *
 * Context: process or kthread, with &twheel_events.lock held; does not sleep.
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
	WRITE_ONCE(t->fired_ns, period_fired_ns(&tw->clock, state, t->deadline_ns));
}
