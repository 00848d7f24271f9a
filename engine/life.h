/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A life: the times that ARM or REARM asks for, from the entry to the timeout
 *
 * Locks: none is taken here.  life_begin() says who may call it.
 */
#ifndef _TWHEEL_ENGINE_LIFE_H
#define _TWHEEL_ENGINE_LIFE_H

#include <linux/minmax.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "clock.h"
#include "slack.h"
#include "timeout.h"

/* The flags that make an ARM in a keyed wheel, or a REARM, depend on what is there. */
#define ARM_IF		(TWHEEL_ARM_IF_ABSENT | TWHEEL_ARM_IF_PRESENT)
#define ARM_ONLY	(TWHEEL_ARM_ONLY_LATER | TWHEEL_ARM_ONLY_EARLIER)

/*
 * Whether an entry is well-formed: 0, or -EINVAL.  Of the flags above, it may have those
 * in @conditions.  If the clock is @settable, the deadline has to be absolute: a relative one
 * would move when the clock is set.
 */
static inline int life_check(const struct twheel_arm *arm, u32 conditions, bool settable)
{
	if (arm->flags & ~(TWHEEL_ARM_ABSOLUTE | TWHEEL_ARM_FIXED_DELAY | conditions))
		return -EINVAL;
	if (settable && !(arm->flags & TWHEEL_ARM_ABSOLUTE))
		return -EINVAL;
	if ((arm->flags & ARM_IF) == ARM_IF || (arm->flags & ARM_ONLY) == ARM_ONLY)
		return -EINVAL;
	if (!arm->interval_ns &&
	    (arm->repeats || (arm->flags & TWHEEL_ARM_FIXED_DELAY)))
		return -EINVAL;
	return 0;
}

/* Whether a timeout with these times needs a struct twheel_extra. */
static inline bool life_is_odd(const struct twheel_arm *arm)
{
	return arm->interval_ns | arm->slack_ticks;
}

/* A deadline of an entry, as an absolute time; saturates at the end of time. */
static __always_inline u64 life_deadline_ns(u64 expires_ns, u32 flags, u64 now_ns)
{
	if (flags & TWHEEL_ARM_ABSOLUTE)
		return min(expires_ns, TWHEEL_TIME_NEVER);
	return time_add(now_ns, expires_ns);
}

/*
 * The deadline of an entry that asks for nothing else, as an absolute time; NEVER_NS if it asks for
 * more, or if the deadline is relative and @now_ns is 0: the clock was not looked at.  If the clock
 * can be set, each relative deadline is refused.
 */
static __always_inline u64 life_plain_ns(const struct twheel_clockwork *clock,
					 const struct twheel_arm *arm, u64 now_ns)
{
	if (unlikely(arm->interval_ns | arm->repeats | arm->slack_ticks))
		return NEVER_NS;
	if (likely(arm->flags == TWHEEL_ARM_ABSOLUTE))
		return arm->expires_ns;
	return !arm->flags && now_ns && !clock->settable ? time_add(now_ns, arm->expires_ns) :
							   NEVER_NS;
}

/*
 * Write what an entry asks for into a timeout.  The caller overwrites its word in the refresh
 * table, too.  It holds the wheel's lock, or has taken the place for an ARM; and where the life is
 * odd, it has provided a struct twheel_extra.
 */
static inline void life_begin(const struct twheel_clockwork *clock, struct twheel_timeout *t,
			      const struct twheel_arm *arm, u64 now_ns)
{
	u64 deadline_ns = life_deadline_ns(arm->expires_ns, arm->flags, now_ns);

	if (life_is_odd(arm)) {
		*timeout_extra(t) = (struct twheel_extra){
			.interval_ns	= arm->interval_ns ? clamp(arm->interval_ns, clock->tick_ns,
								   TWHEEL_TIME_NEVER) : 0,
			.repeats_left	= arm->repeats,
			.flags		= slack_flags(arm->slack_ticks) |
					  (arm->repeats ? EXTRA_LIMITED : 0) |
					  (arm->flags & TWHEEL_ARM_FIXED_DELAY ?
					   EXTRA_FIXED_DELAY : 0),
		};
		deadline_ns |= DEADLINE_ODD;
	}
	t->deadline_ns = deadline_ns;
}

#endif /* _TWHEEL_ENGINE_LIFE_H */
