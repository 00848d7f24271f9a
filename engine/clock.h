/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The time on a wheel's clock, and its division into ticks
 */
#ifndef _TWHEEL_ENGINE_CLOCK_H
#define _TWHEEL_ENGINE_CLOCK_H

#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/twheel.h>
#include <linux/types.h>

#define WAKE_NEVER		U64_MAX
#define WAKE_NOW		0ULL

/**
 * struct twheel_clockwork - a wheel's clock and its tick
 * @kind: enum twheel_clock.  All members but @virtual_now_ns are written under
 *	&twheel_control.mutex before &twheel_control.started is set, and are constant
 *	after that.
 * @tick_ns: length of a tick
 * @slack_ns: how much later than it was set to the hrtimer may fire
 * @offset_ns: how far the clock is ahead of the machine's clock in the wheel's time
 *	namespace
 * @max_tick: later than any tick that a clock reaches; the tick of a timeout that never
 *	expires
 * @virtual_now_ns: time of TWHEEL_CLOCK_VIRTUAL; written under &twheel_control.mutex,
 *	read without it
 */
struct twheel_clockwork {
	u32 kind;
	u64 tick_ns;
	u64 slack_ns;
	s64 offset_ns;
	u64 max_tick;
	u64 virtual_now_ns;
};

/*
 * How many bits of a time the words of the refresh table leave out: what remains is in
 * units of more than half a tick, and of a tick at most.
 */
static inline u32 clock_grain_shift(const struct twheel_clockwork *clock)
{
	return ilog2(clock->tick_ns);
}

/* The sum of two times, TWHEEL_TIME_NEVER at most. */
static inline u64 time_add(u64 a_ns, u64 b_ns)
{
	if (a_ns >= TWHEEL_TIME_NEVER || b_ns >= TWHEEL_TIME_NEVER - a_ns)
		return TWHEEL_TIME_NEVER;
	return a_ns + b_ns;
}

/*
 * The tick in which a deadline falls due.  G1 never early: the first tick whose edge is
 * at or after the deadline.  Deadlines are rounded to ticks here and nowhere else; slack.h
 * rounds the ticks of timeouts that have slack.
 */
static inline u64 deadline_tick(const struct twheel_clockwork *clock, u64 deadline_ns)
{
	if (deadline_ns >= TWHEEL_TIME_NEVER)
		return clock->max_tick;
	return DIV64_U64_ROUND_UP(deadline_ns, clock->tick_ns);
}

/*
 * The edge of a tick: the time at which its timeouts expire.  The edge of the last tick
 * may be later than TWHEEL_TIME_NEVER.  No clock reaches that edge, so a timeout that is
 * rounded up to it never expires.
 */
static inline u64 tick_edge_ns(const struct twheel_clockwork *clock, u64 tick)
{
	return tick >= clock->max_tick - 1 ? WAKE_NEVER : tick * clock->tick_ns;
}

s64 twheel_namespace_offset_ns(u32 kind);
u64 twheel_now(const struct twheel_clockwork *clock);
u64 twheel_edge_ns(const struct twheel_clockwork *clock);
clockid_t twheel_clock_id(const struct twheel_clockwork *clock);

#endif /* _TWHEEL_ENGINE_CLOCK_H */
