// SPDX-License-Identifier: GPL-2.0
/*
 * The softirq: what is done when the alarm rings
 *
 * G5 bounded interrupt work: it looks at SOFT_STEPS * PASS_STEP timeouts for one wheel at most.
 * All wheels together take SOFT_NS of a processor in one go, and half of its time after that; and
 * those of one user a tenth of the time of all processors, after a burst (account.c).  The kthread
 * does what is left.
 *
 * The softirq only tries the lock.  If another thread has it, the alarm rings again in a moment,
 * and if that happens some times, the kthread is asked as well.
 *
 * G2 bounded lateness: whatever the softirq leaves to the kthread, the alarm is set again: if the
 * kthread gets no processor, because realtime tasks have it, the softirq goes on.  Not so with
 * PREEMPT_RT, where only the kthread works.
 *
 * Locks: twheel.lock.  After it, the lock of the user's queue.
 */
#include <linux/container_of.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/time64.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "account.h"
#include "alarm.h"
#include "engine.h"
#include "lock.h"
#include "pass.h"
#include "softirq.h"
#include "time.h"
#include "twheel_compat.h"

/* So many steps of PASS_STEP timeouts the softirq takes for one wheel. */
#define SOFT_STEPS	8

/* The softirqs of all wheels take so much of a processor in one go. */
#define SOFT_NS		(50 * NSEC_PER_USEC)

/* No softirq takes longer: the machine stood still meanwhile, and nobody is charged for that. */
#define SOFT_TOOK_MAX_NS	NSEC_PER_SEC

/*
 * If the lock is not free, the alarm rings again after MISSED_NS, and that MISSED_MAX times; then
 * after MISSED_LONG_NS, until it is free.
 */
#define MISSED_NS	(20 * NSEC_PER_USEC)
#define MISSED_MAX	3
#define MISSED_LONG_NS	NSEC_PER_MSEC

/* Without a share, the alarm rings again at an edge that is not before this time is over. */
#define BARRED_NS	(100 * NSEC_PER_USEC)

/*
 * Until then (ktime_get_ns()) the processor has given as much time to softirqs of this module as
 * they may take: each takes twice its time of it.
 */
static DEFINE_PER_CPU(u64, soft_until_ns);

/* How much time the processor has left for softirqs of this module. */
static u64 processor_left_ns(u64 now_ns)
{
	s64 taken_ns = __this_cpu_read(soft_until_ns) - now_ns;

	return taken_ns <= 0 ? SOFT_NS : SOFT_NS - min_t(u64, taken_ns / 2, SOFT_NS);
}

static void processor_has_worked(u64 begin_ns, u64 end_ns)
{
	u64 until_ns = __this_cpu_read(soft_until_ns);

	if ((s64)(until_ns - begin_ns) < 0)
		until_ns = begin_ns;
	__this_cpu_write(soft_until_ns, until_ns + 2 * (end_ns - begin_ns));
}

/* Another thread has the lock.  If it has set the alarm meanwhile, that is the right time. */
static void alarm_missed(struct twheel *tw)
{
	bool often = tw->alarm.nr_missed == MISSED_MAX;

	tw->alarm.nr_missed += !often;
	if (!hrtimer_is_queued(&tw->alarm.timer))
		hrtimer_start(&tw->alarm.timer, ns_to_ktime(often ? MISSED_LONG_NS : MISSED_NS),
			      HRTIMER_MODE_REL_SOFT);
	if (often)
		twheel_turn_request(&tw->turn);
}

/* The alarm has rung, and the lock is taken: it is not set any more. */
static void alarm_is_over(struct twheel *tw)
	__must_hold(&tw->lock)
{
	tw->alarm.nr_missed = 0;
	tw->alarm.at_ns = NEVER_NS;
}

/* How long it takes until the processor and the user have a share of the softirq. */
static u64 share_pause_ns(const struct twheel *tw, u64 now_ns)
{
	s64 processor_ns = __this_cpu_read(soft_until_ns) - now_ns;

	return max3((s64)BARRED_NS, processor_ns, user_pause_ns(tw->memory.user, now_ns));
}

/*
 * Leave a wheel whose alarm has rung to the kthread, since the processor or the user has no share
 * of the softirq left.  Returns whether the alarm rings again.
 *
 * It rings when there is a share again, and the user may have its work done then, whatever other
 * wheels of the user have taken meanwhile: each of them rings in vain once only.
 */
static enum hrtimer_restart alarm_leave(struct twheel *tw, u64 now_ns)
{
	enum hrtimer_restart restart = HRTIMER_NORESTART;

	if (twheel_trylock(tw)) {
		alarm_is_over(tw);
		twheel_alarm_set_next(tw, now_ns, share_pause_ns(tw, now_ns), &restart);
		tw->alarm.paid = true;
		twheel_unlock_quietly(tw);
	} else {
		alarm_missed(tw);
	}
	twheel_turn_request(&tw->turn);
	return restart;
}

/* Work on a wheel whose alarm has rung.  Returns whether it rings again. */
static enum hrtimer_restart alarm_work(struct twheel *tw, u64 end_ns)
{
	enum hrtimer_restart restart = HRTIMER_NORESTART;
	unsigned int steps = 0;
	u64 now_ns;

	if (!twheel_trylock(tw)) {
		alarm_missed(tw);
		return restart;
	}
	alarm_is_over(tw);
	if (unlikely(!llist_empty(&tw->inbox)))
		twheel_inbox_empty(tw);
	if (unlikely(tw->drains)) {
		/* DRAIN does all, or the kthread. */
		twheel_unlock(tw);
		return restart;
	}
	do {
		if (!twheel_pass_step(tw) && twheel_alarm_set(tw, &restart)) {
			twheel_unlock(tw);
			return restart;
		}
		/* It rings at the next tick, should the kthread not get a processor by then. */
		now_ns = ktime_get_ns();
		twheel_alarm_set_next(tw, now_ns, 1, &restart);
		if (++steps == SOFT_STEPS || now_ns >= end_ns) {
			twheel_unlock(tw);
			break;
		}
		twheel_unlock_quietly(tw);
	} while (twheel_trylock(tw));
	twheel_turn_request(&tw->turn);
	return restart;
}

static enum hrtimer_restart alarm_rings(struct hrtimer *timer)
{
	struct twheel *tw = container_of(timer, struct twheel, alarm.timer);
	u64 end_ns, begin_ns = ktime_get_ns(), left_ns = processor_left_ns(begin_ns);
	enum hrtimer_restart restart;
	bool works;

	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		twheel_turn_request(&tw->turn);
		return HRTIMER_NORESTART;
	}
	works = left_ns && (user_may_work(tw->memory.user, begin_ns) || READ_ONCE(tw->alarm.paid));
	restart = works ? alarm_work(tw, begin_ns + left_ns) : alarm_leave(tw, begin_ns);
	end_ns = min(ktime_get_ns(), begin_ns + SOFT_TOOK_MAX_NS);
	if (works)
		processor_has_worked(begin_ns, end_ns);
	/* To ring in vain counts as well, or many wheels with short ticks would do little else. */
	twheel_user_has_worked(tw->memory.user, begin_ns, end_ns);
	return restart;
}

/**
 * twheel_softirq_start() - prepare the hrtimer
 * @tw: the wheel, whose clock is final
 *
 * Context: process; under &twheel_control.mutex, before the wheel has started.
 */
void twheel_softirq_start(struct twheel *tw)
{
	hrtimer_setup(&tw->alarm.timer, alarm_rings, twheel_clock_id(&tw->clock),
		      HRTIMER_MODE_ABS_SOFT);
	if (tw->clock.kind != TWHEEL_CLOCK_VIRTUAL)
		tw->alarm.at_ns = NEVER_NS;
}
