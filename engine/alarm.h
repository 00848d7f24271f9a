/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The alarm: when the softirq runs next
 */
#ifndef _TWHEEL_ENGINE_ALARM_H
#define _TWHEEL_ENGINE_ALARM_H

#include <linux/hrtimer.h>
#include <linux/types.h>

struct twheel;

/* Of so many timeouts of a slot the first one to expire is searched for. */
#define ALARM_LOOKS	32

/**
 * struct twheel_alarm - the hrtimer of a wheel
 * @at_ns: when it rings, on the wheel's clock: by the time that the wheel has something to do; a
 *	time that has passed while it rings in vain and, with PREEMPT_RT, while the kthread is
 *	asked for.  NEVER_NS if it does not;
 *	0 if the clock is virtual, or the wheel has not started: then it never does.
 * @nr_new: timeouts that were put into slots since alarm_next_ns() has looked at those
 * @paid: it is set for a time by which the user's share has paid for what the softirq did before
 * @nr_missed: how often it has rung in vain, because another thread had the lock: the hrtimer is
 *	queued again, for a time after @at_ns; only the softirq looks at it
 * @timer: the hrtimer; started under &twheel.lock, or without it by its own function
 *
 * &twheel.lock guards all members but @nr_missed.
 */
struct twheel_alarm {
	u64 at_ns;
	u32 nr_new;
	u32 nr_missed;
	bool paid;
	struct hrtimer timer;
};

void twheel_alarm_need(struct twheel *tw, u64 first_ns);
bool twheel_alarm_set(struct twheel *tw, enum hrtimer_restart *restart);
void twheel_alarm_set_next(struct twheel *tw, u64 machine_ns, u64 pause_ns,
			   enum hrtimer_restart *restart);

#endif /* _TWHEEL_ENGINE_ALARM_H */
