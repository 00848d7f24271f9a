/* SPDX-License-Identifier: GPL-2.0 */
/* The elements of ARM and REARM: their checks, and the times that they ask for */
#ifndef _TWHEEL_ENGINE_ELEMENT_H
#define _TWHEEL_ENGINE_ELEMENT_H

#include "engine.h"
#include "twheel.h"

/* The flags that make an ARM in a keyed wheel, or a REARM, depend on the timeout that is there. */
#define ARM_IF		(TWHEEL_ARM_IF_ABSENT | TWHEEL_ARM_IF_PRESENT)
#define ARM_ONLY	(TWHEEL_ARM_ONLY_LATER | TWHEEL_ARM_ONLY_EARLIER)

/*
 * Return 0 or -EINVAL.  Of the flags above, an element may have @conditions.  If the clock is
 * @settable, the deadline has to be absolute: a relative one would move when the clock is set.  A
 * time that is greater than the end of time is a difference that has become negative.
 */
static inline int arm_check(const struct twheel_arm *arm, u32 conditions, bool settable)
{
	if (arm->expires_ns > TWHEEL_TIME_NEVER || arm->interval_ns > TWHEEL_TIME_NEVER ||
	    arm->slack_ticks > TWHEEL_SLACK_TICKS_MAX)
		return -EINVAL;
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

/* Return whether the timeout needs a struct twheel_extra. */
static inline bool arm_needs_extra(const struct twheel_arm *arm)
{
	return arm->interval_ns | arm->slack_ticks;
}

/* The deadline of an element as an absolute time; saturates at the end of time. */
static __always_inline u64 arm_deadline_ns(u64 expires_ns, u32 flags, u64 now_ns)
{
	return flags & TWHEEL_ARM_ABSOLUTE ? expires_ns : ns_add(now_ns, expires_ns);
}

/*
 * Return the deadline of a plain element as an absolute time.  Return NEVER_NS if the element has a
 * period, slack or conditions, or if its deadline is relative and the clock was not read (@now_ns
 * is 0) or can be set.
 */
static __always_inline u64 arm_plain_ns(const struct twheel_clockwork *clock,
					const struct twheel_arm *arm, u64 now_ns)
{
	if (unlikely(arm->interval_ns | arm->repeats | arm->slack_ticks))
		return NEVER_NS;
	if (likely(arm->flags == TWHEEL_ARM_ABSOLUTE))
		return arm->expires_ns;
	return !arm->flags && now_ns && !clock->settable ? ns_add(now_ns, arm->expires_ns) :
							   NEVER_NS;
}

/*
 * Write the parameters of an element into a timeout.  The caller also overwrites its word in the
 * refresh table.  It holds the wheel's lock, or has taken the place for an ARM; and if the timeout
 * has a period or slack, it has provided the struct twheel_extra.
 */
static inline void timeout_schedule(const struct twheel_clockwork *clock, struct twheel_timeout *t,
				    const struct twheel_arm *arm, u64 now_ns)
{
	u64 deadline_ns = arm_deadline_ns(arm->expires_ns, arm->flags, now_ns);

	if (arm_needs_extra(arm)) {
		*timeout_extra(t) = (struct twheel_extra){
			.interval_ns	= arm->interval_ns ?
					  max(arm->interval_ns, clock->tick_ns) : 0,
			.repeats_left	= arm->repeats,
			.flags		= slack_flags(arm->slack_ticks) |
					  (arm->repeats ? EXTRA_LIMITED : 0) |
					  (arm->flags & TWHEEL_ARM_FIXED_DELAY ?
					   EXTRA_FIXED_DELAY : 0),
		};
		deadline_ns |= DEADLINE_EXTRA;
	}
	t->deadline_ns = deadline_ns;
}

/* The clock, read once in a call: relative deadlines count from it. */
static __always_inline u64 call_now_ns(struct tw_ctx *tw, struct twheel_call *call)
{
	if (likely(!call->now_ns))
		call->now_ns = clock_now(&tw->clock);
	return call->now_ns;
}

/* The softirq is late by less than this after an alarm, unless the machine stands still. */
#define ALARM_LATE_NS	NSEC_PER_SEC

/*
 * A time from which on a plain deadline that is before the end of time has certainly not passed,
 * found without reading the clock: the alarm's if it is still queued.  It may be late, or have rung
 * in vain, so shortly after it nothing is certain.  NEVER_NS if the clock has to be read: if the
 * alarm is not set, or may ring later than it was set to.
 */
static __always_inline u64 certain_ns(struct tw_ctx *tw) __must_hold(&tw->lock)
{
	u64 at_ns = tw->alarm.at_ns;

	if (unlikely(!hrtimer_is_queued(&tw->alarm.timer) || at_ns >= TWHEEL_TIME_NEVER ||
		     !tw->clock.steady))
		return NEVER_NS;
	return max(at_ns + ALARM_LATE_NS, tw->wheel.base_ns + 1);
}

/*
 * Whether the deadline of a plain element has passed.  @now_ns is the clock, or 0 if it was not
 * read: then it is read only if the alarm leaves it open.
 */
static __always_inline bool plain_has_passed(struct tw_ctx *tw, u64 deadline_ns, u64 now_ns)
	__must_hold(&tw->lock)
{
	return unlikely(deadline_ns < max(certain_ns(tw), now_ns + 1)) &&
	       deadline_ns <= passed_ns(tw, now_ns ?: clock_now(&tw->clock));
}

/* rearm.c: ARM in a keyed wheel */
int twheel_upsert_step(struct tw_ctx *tw, struct twheel_arm __user *user, unsigned int nr,
		       struct twheel_call *call);
int twheel_upsert_one(struct tw_ctx *tw, struct twheel_arm *arm, bool nowait);

#endif /* _TWHEEL_ENGINE_ELEMENT_H */
