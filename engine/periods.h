/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Periods of a timeout whose event nobody has read yet
 */
#ifndef _TWHEEL_ENGINE_PERIODS_H
#define _TWHEEL_ENGINE_PERIODS_H

#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "timeout.h"

struct twheel;
struct twheel_clockwork;

/*
 * How many periods have passed by @until_ns, the first one included; no loop
 * per period, however many there are.
 */
static inline u64 periods_passed(u64 deadline_ns, u64 interval_ns, u64 until_ns)
{
	u64 late_ns = until_ns - deadline_ns;

	return late_ns < interval_ns ? 1 : div64_u64(late_ns, interval_ns) + 1;
}

/* What @nr more expirations make of the count in an event. */
static inline u32 periods_count(u32 count, u64 nr)
{
	return min(count + nr, (u64)U32_MAX);
}

/* Whether its event is the last one of an UNREAD timeout, when @nr periods more have passed. */
static inline bool timeout_has_ended(const struct twheel_timeout *t, u64 state, u64 nr)
{
	if (!state_keeps_room(state))
		return true;
	return state_is_limited(state) &&
	       timeout_periodic(t)->repeats_left[timeout_slot(t)] == nr;
}

static inline u32 timeout_count(const struct twheel_timeout *t, u64 state)
{
	if (!state_is_unread(state))
		return 0;
	if (state_is_periodic(state))
		return READ_ONCE(timeout_periodic(t)->count[timeout_slot(t)]);
	return !state_is_drained(state);
}

u64 twheel_periods_unread(const struct twheel_clockwork *clock, const struct twheel_timeout *t,
				 u64 state)
	__must_hold(&tw->events.lock);
void twheel_periods_settle(struct twheel *tw, struct twheel_timeout *t, u64 state,
				  u64 nr)
	__must_hold(&tw->events.lock);

#endif /* _TWHEEL_ENGINE_PERIODS_H */
