/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What time it is on a wheel's clock, and what a tick is
 */
#ifndef _TWHEEL_ENGINE_CLOCK_H
#define _TWHEEL_ENGINE_CLOCK_H

#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/twheel.h>
#include <linux/types.h>

#define WAKE_NEVER		U64_MAX
#define WAKE_NOW		0ULL

/**
 * struct twheel_clockwork - what time it is, and what a tick is
 * @kind: enum twheel_clock.  All but @virtual_now_ns: written under
 *	&twheel_control.mutex before &twheel_control.started, constant after
 * @tick_ns: granularity
 * @offset_ns: how far the wheel's clock is ahead of the machine's, by its time
 *	namespace
 * @max_tick: later than any tick there is: what never expires
 * @virtual_now_ns: time of TWHEEL_CLOCK_VIRTUAL; written under
 *	&twheel_control.mutex
 */
struct twheel_clockwork {
	u32 kind;
	u64 tick_ns;
	s64 offset_ns;
	u64 max_tick;
	u64 virtual_now_ns;
};

static inline u64 time_add(u64 a_ns, u64 b_ns)
{
	if (a_ns >= TWHEEL_TIME_NEVER || b_ns >= TWHEEL_TIME_NEVER - a_ns)
		return TWHEEL_TIME_NEVER;
	return a_ns + b_ns;
}

/* G1: the first tick at or after a deadline; rounding goes up, here only. */
static inline u64 deadline_tick(const struct twheel_clockwork *clock, u64 deadline_ns)
{
	if (deadline_ns >= TWHEEL_TIME_NEVER)
		return clock->max_tick;
	return DIV64_U64_ROUND_UP(deadline_ns, clock->tick_ns);
}

/*
 * When a tick has gone by.  The last one before TWHEEL_TIME_NEVER is cut short by it,
 * unless it ends just then: its edge is no time of any clock, and what is due in it
 * never expires.
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
