/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Slack: the ticks of timeouts that may be late, so that many expire in one pass
 *
 * A timeout with a slack of 2^k - 1 ticks expires in the first tick at or after its
 * deadline that is a multiple of 2^k.  All timeouts with this slack share these ticks, and
 * those with less slack share some of them.  G7: no other timeout is looked at.
 *
 * G1 never early, G2 bounded lateness: the tick is only rounded up, and by the slack at
 * most.  An overdue timeout belongs to no tick, and its slack delays nothing.
 *
 * The slack is in the state word, so it holds for each entry of a life: for all periods,
 * and wherever a refresh or REARM moves the timeout.
 *
 * Locks: none.
 */
#ifndef _TWHEEL_ENGINE_SLACK_H
#define _TWHEEL_ENGINE_SLACK_H

#include <linux/compiler.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "clock.h"
#include "timeout.h"

/*
 * The tick in which a timeout expires that is not overdue.  Where the slack would lead past
 * the end of time, the timeout never expires.
 */
static inline u64 timeout_tick(const struct twheel_clockwork *clock, u64 state,
			       u64 deadline_ns)
{
	u64 slack, tick = deadline_tick(clock, deadline_ns);

	if (likely(!state_has_slack(state)))
		return tick;
	slack = state_slack_ticks(state);
	return min((tick + slack) & ~slack, clock->max_tick);
}

/*
 * When a timeout is due: its deadline, or with slack the edge of its tick.  The caller
 * rounds it up to a tick in either case.
 */
static inline u64 timeout_due_ns(const struct twheel_clockwork *clock, u64 state,
				 u64 deadline_ns)
{
	if (likely(!state_has_slack(state)) || state_is_overdue(state))
		return deadline_ns;
	return timeout_tick(clock, state, deadline_ns) * clock->tick_ns;
}

/*
 * Whether an entry has come up before the tick of its timeout, though the deadline has
 * passed: REARM has given the timeout slack, and has left the entry where it was.
 */
static inline bool entry_is_before_slack(u64 state, u64 tick)
{
	return tick & state_slack_ticks(state) && !state_is_overdue(state);
}

/*
 * The latest time by which a timeout in this state has expired, if its deadline is not
 * later than that and @edge_ns was the latest edge of a tick.
 */
static inline u64 slack_edge_ns(const struct twheel_clockwork *clock, u64 state,
				u64 edge_ns)
{
	if (likely(!state_has_slack(state)))
		return edge_ns;
	return (div64_u64(edge_ns, clock->tick_ns) & ~state_slack_ticks(state)) *
	       clock->tick_ns;
}

#endif /* _TWHEEL_ENGINE_SLACK_H */
