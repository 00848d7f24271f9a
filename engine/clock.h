/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The time on a wheel's clock, and its division into ticks
 */
#ifndef _TWHEEL_ENGINE_CLOCK_H
#define _TWHEEL_ENGINE_CLOCK_H

#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/twheel.h>
#include <linux/types.h>

struct twheel;

/* Later than all times. */
#define NEVER_NS		U64_MAX

/**
 * struct twheel_clockwork - a wheel's clock and its tick
 * @kind: enum twheel_clock.  All members but @virtual_now_ns are written under
 *	&twheel_control.mutex before &twheel_control.started is set, and are constant
 *	after that.
 * @tick_ns: length of a tick
 * @slack_ns: how much later than it was set to the hrtimer may fire
 * @settable: the clock can be set back
 * @steady: it cannot, the hrtimer does not fire later than it was set to, and the wheel has levels:
 *	where the wheel was turned to, and what is due, need no look at the clock
 * @offset_ns: how far the clock is ahead of the machine's clock in the wheel's time
 *	namespace
 * @never_ns: a deadline from here on never expires: no clock reaches the edge of its tick
 * @virtual_now_ns: time of TWHEEL_CLOCK_VIRTUAL; written under &twheel_control.mutex,
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

/*
 * How many bits of a time the words of the refresh table leave out: what remains is in
 * units of more than half a tick, and of a tick at most.
 */
static inline u32 clock_grain_shift(const struct twheel_clockwork *clock)
{
	return ilog2(clock->tick_ns);
}

/* The sum of two times, TWHEEL_TIME_NEVER at most. */
static __always_inline u64 time_add(u64 a_ns, u64 b_ns)
{
	if (a_ns >= TWHEEL_TIME_NEVER || b_ns >= TWHEEL_TIME_NEVER - a_ns)
		return TWHEEL_TIME_NEVER;
	return a_ns + b_ns;
}

/*
 * The tick in which a deadline falls due.  G1 never early: the first tick whose edge is at or after
 * the deadline.
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

/* The latest edge of a tick that has passed by a time. */
static inline u64 edge_before_ns(const struct twheel_clockwork *clock, u64 ns)
{
	return div64_u64(ns, clock->tick_ns) * clock->tick_ns;
}

s64 twheel_namespace_offset_ns(u32 kind);
u64 twheel_now_other(const struct twheel_clockwork *clock);
clockid_t twheel_clock_id(const struct twheel_clockwork *clock);
u64 twheel_clock_follow(struct twheel *tw, u64 now_ns);

/* Read a wheel's clock: nanoseconds, in the wheel's time namespace. */
static __always_inline u64 twheel_now(const struct twheel_clockwork *clock)
{
	if (likely(clock->kind == TWHEEL_CLOCK_MONOTONIC))
		return ktime_get_ns() + clock->offset_ns;
	return twheel_now_other(clock);
}

/* The same, just after ktime_get_ns() has returned @machine_ns. */
static __always_inline u64 clock_at_ns(const struct twheel_clockwork *clock, u64 machine_ns)
{
	if (likely(clock->kind == TWHEEL_CLOCK_MONOTONIC))
		return machine_ns + clock->offset_ns;
	return twheel_now_other(clock);
}

#endif /* _TWHEEL_ENGINE_CLOCK_H */
