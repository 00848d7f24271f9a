// SPDX-License-Identifier: GPL-2.0
/*
 * The time on a wheel's clock, and its division into ticks
 *
 * Locks: none.  A wheel's clock is constant once the wheel has started.  The only
 * exception is the time of TWHEEL_CLOCK_VIRTUAL, which ADVANCE writes under
 * control.mutex, and which all other threads read without it.
 */
#include <linux/nsproxy.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>

#include "engine.h"

/**
 * twheel_namespace_offset_ns() - the offset of a clock in the caller's time namespace
 * @kind: enum twheel_clock
 *
 * A wheel lives in the time namespace of the process that set it up, or that armed its
 * first timeout.
 *
 * Context: process.
 * Return: nanoseconds by which the caller's clock is ahead of the machine's; may be
 * negative.
 */
s64 twheel_namespace_offset_ns(u32 kind)
{
#ifdef CONFIG_TIME_NS
	const struct timens_offsets *offsets = &current->nsproxy->time_ns->offsets;

	if (kind == TWHEEL_CLOCK_MONOTONIC)
		return timespec64_to_ns(&offsets->monotonic);
	if (kind == TWHEEL_CLOCK_BOOTTIME)
		return timespec64_to_ns(&offsets->boottime);
#endif
	return 0;
}

/**
 * twheel_now_other() - read a wheel's clock that is not CLOCK_MONOTONIC
 * @clock: the wheel's clock
 *
 * Context: any.
 * Return: nanoseconds, in the wheel's time namespace.
 */
u64 twheel_now_other(const struct twheel_clockwork *clock)
{
	switch (clock->kind) {
	case TWHEEL_CLOCK_BOOTTIME:
		return ktime_get_boottime_ns() + clock->offset_ns;
	case TWHEEL_CLOCK_REALTIME:
		return ktime_get_real_ns();
	case TWHEEL_CLOCK_TAI:
		return ktime_get_clocktai_ns();
	default:
		return READ_ONCE(clock->virtual_now_ns);
	}
}

/**
 * twheel_clock_id() - the clock that a wheel's hrtimer runs on
 * @clock: the wheel's clock
 *
 * Context: any.
 * Return: a CLOCK_* for hrtimer_setup().
 */
clockid_t twheel_clock_id(const struct twheel_clockwork *clock)
{
	switch (clock->kind) {
	case TWHEEL_CLOCK_BOOTTIME:
		return CLOCK_BOOTTIME;
	case TWHEEL_CLOCK_REALTIME:
		return CLOCK_REALTIME;
	case TWHEEL_CLOCK_TAI:
		return CLOCK_TAI;
	default:
		return CLOCK_MONOTONIC;	/* a virtual clock starts no hrtimer */
	}
}

/**
 * twheel_clock_follow() - read the clock again
 * @tw: the wheel
 * @now_ns: what the caller has read before it had the lock
 *
 * That does not do if the wheel was turned further since.  Nor does it in a wheel of one level,
 * which may skip rounds up to the present time.
 *
 * If the clock was set back, be it within a tick, the wheel goes back: G1 never early.
 *
 * Context: under &twheel.lock.
 * Return: the time by which all deadlines have passed: that which the caller has read, or a later
 * edge of a tick.
 */
u64 twheel_clock_follow(struct twheel *tw, u64 now_ns)
	__must_hold(&tw->lock)
{
	u64 present_ns = twheel_now(&tw->clock), edge_ns = edge_before_ns(&tw->clock, present_ns);

	if (unlikely(edge_ns < max(tw->wheel.base_ns, tw->wheel.round_until_ns)))
		twheel_wheel_set_back(&tw->wheel, edge_ns);
	return max(min(now_ns, present_ns), edge_ns);
}
