// SPDX-License-Identifier: GPL-2.0
/* The time on a wheel's clock, and its division into ticks */
#include <linux/nsproxy.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>

#include "engine.h"

/*
 * Return by how many nanoseconds a clock is ahead of the machine's in the caller's time namespace;
 * may be negative.  The wheel's namespace is that of the process that set it up, or that armed its
 * first timeout.
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

u64 twheel_clock_other(const struct twheel_clockwork *clock)
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

/* The CLOCK_* that a wheel's hrtimer runs on. */
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

/*
 * Read the clock again: @now_ns, which the caller has read before it had the lock, is too early if
 * the wheel was turned further since, or has one level: then it may skip rounds up to the present
 * time.  Return a time by which all deadlines have passed: @now_ns or a later edge of a tick.
 *
 * If the clock was set back, be it within a tick, the wheel goes back: G1 never early.
 */
u64 twheel_clock_follow(struct tw_ctx *tw, u64 now_ns) __must_hold(&tw->lock)
{
	u64 present_ns = clock_now(&tw->clock), edge_ns = edge_before_ns(&tw->clock, present_ns);

	if (unlikely(edge_ns < max(tw->wheel.base_ns, tw->wheel.round_until_ns)))
		twheel_wheel_set_back(&tw->wheel, edge_ns);
	return max(min(now_ns, present_ns), edge_ns);
}
