/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The periods of a periodic timeout: how many have passed, and the count in its event
 *
 * Locks: none is taken here; the callers hold the wheel's lock.
 */
#ifndef _TWHEEL_ENGINE_PERIODS_H
#define _TWHEEL_ENGINE_PERIODS_H

#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "time.h"
#include "timeout.h"

struct twheel;

/*
 * How many expirations lie between @deadline_ns and @until_ns, both included, for a
 * timeout that is due at @deadline_ns: at least 1.  G7 cost does not grow: a division,
 * not a loop, also after a year of one-millisecond periods.
 */
static inline u64 periods_passed(u64 deadline_ns, u64 interval_ns, u64 until_ns)
{
	u64 late_ns = until_ns - deadline_ns;

	return late_ns < interval_ns ? 1 : div64_u64(late_ns, interval_ns) + 1;
}

/* Add @nr expirations to the count in an event, which saturates. */
static inline u32 periods_count(u32 count, u64 nr)
{
	return min(count + nr, (u64)U32_MAX);
}

/* Whether an UNREAD timeout is periodic, and goes on after its event unless that is the last. */
static inline bool timeout_goes_on(const struct twheel_timeout *t)
{
	return timeout_is_unread(t) && !(t->fired_ns & FIRED_DRAINED) && timeout_is_periodic(t);
}

/*
 * Whether an UNREAD timeout ends when its event is read, given that @nr more periods have
 * passed since it expired.  One-shots and drained timeouts always end; a periodic timeout
 * ends when its repeat limit is used up.
 */
static inline bool timeout_ends(const struct twheel_timeout *t, u64 nr)
{
	const struct twheel_extra *x;

	if (!timeout_goes_on(t))
		return true;
	x = timeout_extra(t);
	return x->flags & EXTRA_LIMITED && x->repeats_left == nr;
}

/*
 * The expirations that an unread event has counted so far; 0 if there is no such event.
 * A drained one-shot has an event and has not expired.
 */
static inline u32 timeout_count(const struct twheel_timeout *t)
{
	if (!timeout_is_unread(t))
		return 0;
	if (timeout_is_periodic(t))
		return timeout_extra(t)->count;
	return !(t->fired_ns & FIRED_DRAINED);
}

/* When a period that was counted late has expired: at the edge of its tick. */
static inline u64 period_fired_ns(const struct twheel_clockwork *clock, u32 flags, u64 deadline_ns)
{
	return edge_after_ns(clock, slack_due_ns(clock, flags, deadline_ns));
}

u64 twheel_periods_unread(const struct twheel_clockwork *clock, const struct twheel_timeout *t);
void twheel_periods_settle(struct twheel *tw, struct twheel_timeout *t, u64 nr);

#endif /* _TWHEEL_ENGINE_PERIODS_H */
