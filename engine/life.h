/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A life: the times that ARM or REARM asks for, from the entry to the timeout's fields
 *
 * Locks: none is taken here.  life_begin() says who may call it; the other functions
 * touch only their arguments.
 */
#ifndef _TWHEEL_ENGINE_LIFE_H
#define _TWHEEL_ENGINE_LIFE_H

#include <linux/minmax.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "clock.h"
#include "slack.h"
#include "timeout.h"

/**
 * struct life - the times that ARM or REARM asks for; a local variable of its caller
 * @flags: the flags that the state word gets
 * @deadline_ns: the deadline, absolute on the wheel's clock, at most TWHEEL_TIME_NEVER
 * @interval_ns: the period, at least one tick; 0 for a one-shot
 * @repeats: the limit of expirations; 0 for no limit
 */
struct life {
	u64 flags;
	u64 deadline_ns;
	u64 interval_ns;
	u32 repeats;
};

/*
 * 0 for an ordinary one-shot, as nearly all entries are: it needs no further check.  Any
 * other value says only that life_check() has to look.
 */
static inline u64 life_oddities(const struct twheel_arm *arm)
{
	return (arm->flags & ~TWHEEL_ARM_ABSOLUTE) | arm->repeats |
	       arm->slack_ticks | arm->interval_ns;
}

/* The flags that make an ARM in a keyed wheel, or a REARM, depend on what is there. */
#define ARM_IF		(TWHEEL_ARM_IF_ABSENT | TWHEEL_ARM_IF_PRESENT)
#define ARM_ONLY	(TWHEEL_ARM_ONLY_LATER | TWHEEL_ARM_ONLY_EARLIER)

/*
 * Whether an entry is well-formed: 0, or -EINVAL.  Of the flags above, it may have those
 * in @conditions.
 */
static inline int life_check(const struct twheel_arm *arm, u32 conditions)
{
	if (likely(!life_oddities(arm)))
		return 0;
	if (arm->flags & ~(TWHEEL_ARM_ABSOLUTE | TWHEEL_ARM_FIXED_DELAY | conditions))
		return -EINVAL;
	if ((arm->flags & ARM_IF) == ARM_IF || (arm->flags & ARM_ONLY) == ARM_ONLY)
		return -EINVAL;
	if (!arm->interval_ns &&
	    (arm->repeats || (arm->flags & TWHEEL_ARM_FIXED_DELAY)))
		return -EINVAL;
	return 0;
}

/* The absolute deadline of an entry; saturates at the end of time. */
static inline u64 arm_deadline_ns(const struct twheel_arm *arm, u64 now_ns)
{
	if (arm->flags & TWHEEL_ARM_ABSOLUTE)
		return min(arm->expires_ns, TWHEEL_TIME_NEVER);
	return time_add(now_ns, arm->expires_ns);
}

/*
 * The life of a one-shot without slack, which is also where any other life starts.  A
 * timeout that is already due is marked overdue: it expires in the next pass and does not
 * wait for the edge of a tick.
 */
static __always_inline struct life life_once(const struct twheel_arm *arm,
					     u64 now_ns)
{
	struct life life = { .deadline_ns = arm_deadline_ns(arm, now_ns) };

	if (life.deadline_ns <= now_ns && life.deadline_ns < TWHEEL_TIME_NEVER)
		life.flags = flags_once(true);
	return life;
}

/* The life that an entry of any kind asks for; life_check() has accepted the entry. */
static __always_inline struct life life_of(const struct twheel_clockwork *clock,
					   const struct twheel_arm *arm,
					   u64 now_ns)
{
	struct life life = life_once(arm, now_ns);

	life.flags |= flags_slack(arm->slack_ticks);
	if (likely(!arm->interval_ns))
		return life;
	life.interval_ns = clamp(arm->interval_ns, clock->tick_ns,
				 TWHEEL_TIME_NEVER);
	life.flags |= flags_periodic(false, arm->flags & TWHEEL_ARM_FIXED_DELAY,
				     arm->repeats);
	life.repeats = arm->repeats;
	return life;
}

/* When the kthread has to look at a timeout with this life: when it is due, or at once. */
static inline u64 life_due_ns(const struct twheel_clockwork *clock, const struct life *life)
{
	return state_is_overdue(life->flags) ? WAKE_NOW :
	       timeout_due_ns(clock, life->flags, life->deadline_ns);
}

/*
 * Write a life into a timeout.  The caller overwrites its word in the refresh table, too.
 *
 * The caller arms the timeout (its place came off the free list and nobody else acts on
 * it), or holds events.lock and has made the timeout REARMING or taken its event.
 * Threads that hold a pointer from an earlier life may read the fields meanwhile, without
 * a lock; they use what they read only after the state word has proved to be unchanged.  So
 * the writes are marked for KCSAN, and the caller publishes them by a release of the state
 * word.
 */
static inline void life_begin(struct twheel_timeout *t, const struct life *life)
{
	WRITE_ONCE(t->deadline_ns, life->deadline_ns);
	if (unlikely(state_is_periodic(life->flags))) {
		struct twheel_periodic *periodic = timeout_periodic(t);
		u32 slot = timeout_slot(t);

		WRITE_ONCE(periodic->interval_ns[slot], life->interval_ns);
		WRITE_ONCE(periodic->repeats_left[slot], life->repeats);
		WRITE_ONCE(periodic->count[slot], 0);
		WRITE_ONCE(periodic->deliveries[slot], 0);
	}
}

#endif /* _TWHEEL_ENGINE_LIFE_H */
