// SPDX-License-Identifier: GPL-2.0
/*
 * The periods that pass while the event of a periodic timeout waits to be read
 *
 * Such a timeout is not in the wheel, so no work is done for periods whose events nobody reads.
 * With a fixed rate, the periods are computed from the clock when a caller asks for them, and
 * written into the timeout when its event is taken.
 *
 * Locks: none is taken here; the callers hold twheel.lock.
 */
#include <linux/minmax.h>
#include <linux/types.h>

#include "engine.h"
#include "periods.h"
#include "time.h"
#include "timeout.h"

/**
 * twheel_periods_unread() - count the periods that have passed since an event was settled
 * @clock: the wheel's clock
 * @t: the timeout
 *
 * G1 never early: a period counts only once the clock has reached the edge of its tick,
 * just as if it had expired there.
 *
 * Context: under &twheel.lock.
 * Return: the number of periods after the one at the timeout's deadline, bounded by the repeat
 * limit; 0 unless the timeout is UNREAD, not drained, and periodic at a fixed rate.
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
	edge_ns = slack_edge_ns(clock, x->flags, twheel_now(clock));
	if (next_ns > edge_ns)
		return 0;
	nr = periods_passed(next_ns, x->interval_ns, edge_ns);
	if (x->flags & EXTRA_LIMITED)
		nr = min_t(u64, nr, x->repeats_left);
	return nr;
}

/**
 * twheel_periods_settle() - add periods that have passed to an unread event
 * @tw: the wheel
 * @t: the timeout
 * @nr: the number of periods, as twheel_periods_unread() has found
 *
 * Context: under &twheel.lock.
 */
void twheel_periods_settle(struct twheel *tw, struct twheel_timeout *t, u64 nr)
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
