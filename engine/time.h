/* SPDX-License-Identifier: GPL-2.0 */
/* Times: the clock of a wheel, its ticks, and slack */
#ifndef _TWHEEL_ENGINE_TIME_H
#define _TWHEEL_ENGINE_TIME_H

#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/twheel.h>

#include "timeout.h"

struct tw_ctx;

/* Later than all times. */
#define NEVER_NS		U64_MAX

/**
 * struct twheel_clockwork - a wheel's clock and its tick
 * @kind: enum twheel_clock.  All members but @virtual_now_ns are written under
 *	&twheel_control.mutex before &twheel_control.started is set, and are constant after that.
 * @tick_ns: length of a tick
 * @slack_ns: slack of the hrtimer
 * @settable: the clock can be set back
 * @steady: the clock cannot be set back, the hrtimer has no slack, and the wheel has levels: there
 *	is no need to read the clock to know how far the wheel was turned and what is due
 * @offset_ns: how far the clock is ahead of the machine's clock in the wheel's time namespace
 * @never_ns: a deadline from here on never expires: no clock reaches the edge of its tick
 * @virtual_now_ns: time of TWHEEL_CLOCK_VIRTUAL; written by ADVANCE under &twheel_control.mutex,
 *	read without it
 */
struct twheel_clockwork {
	u32 kind;
	u64 tick_ns;
	u64 slack_ns;
	bool settable;
	bool steady;
	s64 offset_ns;
	u64 never_ns;
	u64 virtual_now_ns;
};

/* Saturates at TWHEEL_TIME_NEVER. */
static __always_inline u64 ns_add(u64 a_ns, u64 b_ns)
{
	if (a_ns >= TWHEEL_TIME_NEVER || b_ns >= TWHEEL_TIME_NEVER - a_ns)
		return TWHEEL_TIME_NEVER;
	return a_ns + b_ns;
}

/*
 * Return the tick of a deadline.  G1 never early: the first tick whose edge is at or after the
 * deadline.
 */
static inline u64 deadline_tick(const struct twheel_clockwork *clock, u64 deadline_ns)
{
	return DIV64_U64_ROUND_UP(deadline_ns, clock->tick_ns);
}

/* The first edge of a tick at or after a time, which is before never_ns. */
static inline u64 edge_after_ns(const struct twheel_clockwork *clock, u64 ns)
{
	return deadline_tick(clock, ns) * clock->tick_ns;
}

/* The last edge of a tick at or before a time. */
static inline u64 edge_before_ns(const struct twheel_clockwork *clock, u64 ns)
{
	return div64_u64(ns, clock->tick_ns) * clock->tick_ns;
}

/*
 * The element of the histograms in INFO that counts a time: 0 if it is less than a tick, i if it is
 * 2^(i-1) to 2^i - 1 ticks.
 */
static inline unsigned int ticks_log2(const struct twheel_clockwork *clock, u64 ns)
{
	if (likely(ns < clock->tick_ns))
		return 0;
	return min(fls64(div64_u64(ns, clock->tick_ns)), TWHEEL_LATE_TICKS - 1);
}

s64 twheel_namespace_offset_ns(u32 kind);
u64 twheel_clock_other(const struct twheel_clockwork *clock);
clockid_t twheel_clock_id(const struct twheel_clockwork *clock);
u64 twheel_clock_follow(struct tw_ctx *tw, u64 now_ns);

/* Read a wheel's clock: nanoseconds, in the wheel's time namespace. */
static __always_inline u64 clock_now(const struct twheel_clockwork *clock)
{
	if (likely(clock->kind == TWHEEL_CLOCK_MONOTONIC))
		return ktime_get_ns() + clock->offset_ns;
	return twheel_clock_other(clock);
}

/*
 * Slack: the ticks of timeouts that may be late, so that many expire together
 *
 * A timeout with a slack of 2^k - 1 ticks expires in the first tick at or after its deadline that
 * is a multiple of 2^k.  All timeouts with this slack share these ticks, and those with less slack
 * share some of them.  G7: no other timeout is examined.
 *
 * G1 never early, G2 bounded lateness: the tick is only rounded up, and by the slack at most.  An
 * overdue timeout belongs to no tick, and its slack delays nothing.
 */

/* The flags for the greatest slack of the form 2^k - 1 ticks that is at most @slack_ticks. */
static inline u32 slack_flags(u32 slack_ticks)
{
	return ilog2(slack_ticks + 1) << EXTRA_SLACK_SHIFT;
}

static inline u64 slack_ticks(u32 flags)
{
	return BIT_ULL(flags >> EXTRA_SLACK_SHIFT) - 1;
}

/*
 * Return when a timeout that is not overdue is due: its deadline, or with slack the edge of its
 * tick.  The caller rounds it up to a tick in either case.
 */
static inline u64 slack_due_ns(const struct twheel_clockwork *clock, u32 flags, u64 deadline_ns)
{
	u64 slack = slack_ticks(flags);

	if (!slack || deadline_ns >= clock->never_ns)
		return deadline_ns;
	return ((deadline_tick(clock, deadline_ns) + slack) & ~slack) * clock->tick_ns;
}

/* The last edge by @now_ns at which timeouts with these flags expire. */
static inline u64 slack_edge_ns(const struct twheel_clockwork *clock, u32 flags, u64 now_ns)
{
	return (div64_u64(now_ns, clock->tick_ns) & ~slack_ticks(flags)) * clock->tick_ns;
}

#endif /* _TWHEEL_ENGINE_TIME_H */
