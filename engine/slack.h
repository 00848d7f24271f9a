/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Slack: the ticks of timeouts that may be late, so that many expire together
 *
 * A timeout with a slack of 2^k - 1 ticks expires in the first tick at or after its deadline that
 * is a multiple of 2^k.  All timeouts with this slack share these ticks, and those with less slack
 * share some of them.  G7: no other timeout is looked at.
 *
 * G1 never early, G2 bounded lateness: the tick is only rounded up, and by the slack at most.  An
 * overdue timeout belongs to no tick, and its slack delays nothing.
 *
 * Locks: none.
 */
#ifndef _TWHEEL_ENGINE_SLACK_H
#define _TWHEEL_ENGINE_SLACK_H

#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "clock.h"
#include "timeout.h"

/* The flags for the greatest slack of the form 2^k - 1 ticks that is within @slack_ticks. */
static inline u32 slack_flags(u32 slack_ticks)
{
	u32 k = ilog2((u64)slack_ticks + 1);

	return min_t(u32, k, EXTRA_SLACK_MAX) << EXTRA_SLACK_SHIFT;
}

/* The slack in force, ticks. */
static inline u64 slack_ticks(u32 flags)
{
	return BIT_ULL(flags >> EXTRA_SLACK_SHIFT) - 1;
}

/*
 * When a timeout with these flags is due that is not overdue: its deadline, or with slack the edge
 * of its tick.  The caller rounds it up to a tick in either case.
 */
static inline u64 slack_due_ns(const struct twheel_clockwork *clock, u32 flags, u64 deadline_ns)
{
	u64 slack = slack_ticks(flags);

	if (!slack || deadline_ns >= clock->never_ns)
		return deadline_ns;
	return ((deadline_tick(clock, deadline_ns) + slack) & ~slack) * clock->tick_ns;
}

/* The latest edge by @now_ns at which timeouts with these flags expire. */
static inline u64 slack_edge_ns(const struct twheel_clockwork *clock, u32 flags, u64 now_ns)
{
	return (div64_u64(now_ns, clock->tick_ns) & ~slack_ticks(flags)) * clock->tick_ns;
}

#endif /* _TWHEEL_ENGINE_SLACK_H */
