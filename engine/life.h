/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The times of a timeout, as ARM or REARM asks for them
 */
#ifndef _TWHEEL_ENGINE_LIFE_H
#define _TWHEEL_ENGINE_LIFE_H

#include <linux/minmax.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "clock.h"
#include "timeout.h"
#include "words.h"

/**
 * struct life - times of a timeout, as asked for by ARM or REARM
 * @flags: those of the state word
 * @deadline_ns: absolute
 * @interval_ns: not below a tick; 0 for a one-shot
 * @repeats: 0 for no limit
 */
struct life {
	u64 flags;
	u64 deadline_ns;
	u64 interval_ns;
	u32 repeats;
};

/* 0 for a one-shot that nothing is to be said against, which nearly all are. */
static inline u64 life_oddities(const struct twheel_arm *arm)
{
	return (arm->flags & ~TWHEEL_ARM_ABSOLUTE) | arm->repeats |
	       arm->reserved | arm->interval_ns;
}

static inline int life_check(const struct twheel_arm *arm)
{
	if (likely(!life_oddities(arm)))
		return 0;
	if (arm->reserved)
		return -EINVAL;
	if (arm->flags & ~(TWHEEL_ARM_ABSOLUTE | TWHEEL_ARM_FIXED_DELAY))
		return -EINVAL;
	if (!arm->interval_ns &&
	    (arm->repeats || (arm->flags & TWHEEL_ARM_FIXED_DELAY)))
		return -EINVAL;
	return 0;
}

static inline u64 arm_deadline_ns(const struct twheel_arm *arm, u64 now_ns)
{
	if (arm->flags & TWHEEL_ARM_ABSOLUTE)
		return min(arm->expires_ns, TWHEEL_TIME_NEVER);
	return time_add(now_ns, arm->expires_ns);
}

/* Of a one-shot, and what others have in common with it. */
static __always_inline struct life life_once(const struct twheel_arm *arm,
					     u64 now_ns)
{
	struct life life = { .deadline_ns = arm_deadline_ns(arm, now_ns) };

	if (life.deadline_ns <= now_ns && life.deadline_ns < TWHEEL_TIME_NEVER)
		life.flags = flags_once(true);
	return life;
}

static __always_inline struct life life_of(const struct twheel_clockwork *clock,
					   const struct twheel_arm *arm,
					   u64 now_ns)
{
	struct life life = life_once(arm, now_ns);

	if (likely(!arm->interval_ns))
		return life;
	life.interval_ns = clamp(arm->interval_ns, clock->tick_ns,
				 TWHEEL_TIME_NEVER);
	life.flags |= flags_periodic(false, arm->flags & TWHEEL_ARM_FIXED_DELAY,
				     arm->repeats);
	life.repeats = arm->repeats;
	return life;
}

/* When the kthread has to look at it. */
static inline u64 life_due_ns(const struct life *life)
{
	return state_is_overdue(life->flags) ? WAKE_NOW : life->deadline_ns;
}

/*
 * The caller is the only one to act on it (NEW), or holds the lock.  Others, who
 * saw the place's last life, may read while we write, and find out afterwards.
 */
static inline void life_begin(struct twheel_words *words, struct twheel_timeout *t,
			      u64 state, const struct life *life)
{
	word_begin(words, t, state);
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
