// SPDX-License-Identifier: GPL-2.0
/*
 * The alarm: when the softirq runs, and what it does then
 *
 * The hrtimer rings at the edge of the tick in which the first timeout is due (G6: there is no
 * other tick).  Its function runs in the softirq, and lets timeouts expire.
 *
 * G5 bounded interrupt work: it looks at SOFT_STEPS * PASS_STEP timeouts for one wheel at most.  All
 * wheels together take SOFT_NS of a processor in one go, and half of its time after that; and those
 * of one user a tenth of the time of all processors (user.c).  The kthread does what is left.
 *
 * The softirq only tries the lock.  If another thread has it, it rings again in a moment, and
 * leaves it to the kthread if that happens some times.
 *
 * Locks: twheel.lock; under it that of the hrtimer's base.  After it, the lock of the user's queue.
 */
#include <linux/container_of.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <linux/time64.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "alarm.h"
#include "clock.h"
#include "engine.h"
#include "expire.h"
#include "pass.h"
#include "submit.h"
#include "timeout.h"
#include "twheel_compat.h"
#include "twheel_wheel.h"
#include "user.h"

/* So many steps of PASS_STEP timeouts the softirq takes for one wheel. */
#define SOFT_STEPS	4

/* The softirqs of all wheels take so much of a processor in one go. */
#define SOFT_NS		(50 * NSEC_PER_USEC)

/* When the lock was not free, the alarm rings again after this time, and so often. */
#define MISSED_NS	(20 * NSEC_PER_USEC)
#define MISSED_MAX	3

/*
 * Until then (ktime_get_ns()) the processor has given as much time to softirqs of this module as
 * they may take: each takes twice its time of it.
 */
static DEFINE_PER_CPU(u64, soft_until_ns);

/* Whether the processor has time left for a softirq. */
static bool processor_may_work(u64 now_ns)
{
	return (s64)(__this_cpu_read(soft_until_ns) - now_ns) < (s64)SOFT_NS;
}

static void processor_has_worked(u64 begin_ns, u64 end_ns)
{
	u64 until_ns = __this_cpu_read(soft_until_ns);

	if ((s64)(until_ns - begin_ns) < 0)
		until_ns = begin_ns;
	__this_cpu_write(soft_until_ns, until_ns + 2 * (end_ns - begin_ns));
}

/*
 * When the first timeout in a slot is due, or a time before; NEVER_NS if no timeout is left.
 * Timeouts that were moved to later are put where they belong, @moves of them at most, unless they
 * would move by less than they have to wait: so each is moved twice at most in the time that it is
 * armed for, however often that is refreshed (G7).
 *
 * An upper slot with many timeouts has to be emptied before it begins.
 */
static u64 slot_first_ns(struct twheel *tw, struct twheel_level *level, struct twheel_link **slot,
			 unsigned int *moves)
	__must_hold(&tw->lock)
{
	struct twheel_wheel *w = &tw->wheel;
	u64 begin_ns = level->begin_ns, first_ns = NEVER_NS;
	u64 end_ns = twheel_slot_begin_ns(level, begin_ns) + (1ULL << level->shift);
	u64 soonest_ns = edge_after_ns(&tw->clock, begin_ns);
	struct twheel_link *link, *next;
	unsigned int looks = 0;

	for (link = *slot; link != &w->end && first_ns > soonest_ns && *moves; link = next) {
		struct twheel_timeout *t = link_timeout(link);
		u64 due_ns = timeout_due_ns(tw, t);

		next = link->next;
		if (due_ns == NEVER_NS || (w->nr_levels > 1 && due_ns >= end_ns &&
					   due_ns - begin_ns >= begin_ns - w->base_ns)) {
			/* A store may have changed it meanwhile. */
			due_ns = timeout_take_over(tw, t);
			twheel_link_del(link);
			if (due_ns == NEVER_NS)
				twheel_link_push(&w->never, link);
			else
				twheel_wheel_insert(w, link, due_ns);
			--*moves;
		} else {
			first_ns = min(first_ns, due_ns < end_ns ? due_ns : begin_ns);
			if (++looks > ALARM_LOOKS)
				return level == w->level ? begin_ns :
				       max(begin_ns - twheel_slot_lead_ns(level), w->base_ns + 1);
		}
	}
	return first_ns;
}

/*
 * When the wheel has something to do next: the edge of a tick, or NEVER_NS.  0 if so many timeouts
 * had to be moved that it is not known yet.
 */
static u64 alarm_next_ns(struct twheel *tw)
	__must_hold(&tw->lock)
{
	struct twheel_wheel *w = &tw->wheel;
	u64 first_ns = NEVER_NS, cascade_ns = U64_MAX;
	unsigned int moves = PASS_STEP;
	u32 i;

	for (i = 0; i < w->nr_levels && w->used >> i; i++) {
		struct twheel_level *level = &w->level[i];
		u64 slot_ns = NEVER_NS;

		while (slot_ns == NEVER_NS && level->begin_ns < first_ns && moves) {
			struct twheel_link **slot = twheel_wheel_first(w, i);

			/* There were many empty slots. */
			if (!slot && w->used & BIT(i))
				return 0;
			if (!slot || level->begin_ns >= first_ns)
				break;
			slot_ns = slot_first_ns(tw, level, slot, &moves);
		}
		first_ns = min(first_ns, slot_ns);
		if (i && level->begin_ns != U64_MAX)
			cascade_ns = min(cascade_ns, level->begin_ns - twheel_slot_lead_ns(level));
	}
	if (!moves)
		return 0;
	w->cascade_ns = cascade_ns;
	tw->alarm.nr_new = 0;
	return first_ns == NEVER_NS ? NEVER_NS : edge_after_ns(&tw->clock, first_ns);
}

/* A time on the machine's clock; never negative. */
static ktime_t alarm_expiry(const struct twheel *tw, u64 at_ns)
{
	return ns_to_ktime(min_t(u64, at_ns - tw->clock.offset_ns, KTIME_MAX));
}

static void alarm_begin(struct twheel *tw, u64 at_ns)
	__must_hold(&tw->lock)
{
	tw->alarm.at_ns = at_ns;
	hrtimer_start_range_ns(&tw->alarm.timer, alarm_expiry(tw, at_ns), tw->clock.slack_ns,
			       HRTIMER_MODE_ABS_SOFT);
}

/**
 * twheel_alarm_need() - set the alarm for timeouts that were put into slots
 * @tw: the wheel
 * @first_ns: when the first of them is due
 *
 * Context: under &twheel.lock.
 */
void twheel_alarm_need(struct twheel *tw, u64 first_ns)
	__must_hold(&tw->lock)
{
	u64 at_ns = first_ns;

	lockdep_assert_held(&tw->lock);
	if (tw->alarm.nr_new > ALARM_LOOKS)
		at_ns = min(at_ns, max(tw->wheel.cascade_ns, tw->wheel.base_ns + 1));
	if (at_ns >= tw->alarm.at_ns)
		return;
	at_ns = edge_after_ns(&tw->clock, at_ns);
	if (at_ns < tw->alarm.at_ns)
		alarm_begin(tw, at_ns);
	/* What is to be done by then is seen when it rings. */
	tw->wheel.cascade_ns = U64_MAX;
}

/**
 * twheel_alarm_set() - set the alarm, when nothing is left to do now
 * @tw: the wheel
 *
 * Context: under &twheel.lock.
 * Return: false if there is more to do before that is possible.
 */
bool twheel_alarm_set(struct twheel *tw)
	__must_hold(&tw->lock)
{
	u64 at_ns = alarm_next_ns(tw);

	lockdep_assert_held(&tw->lock);
	if (!at_ns)
		return false;
	if (!tw->alarm.at_ns)
		return true;
	if (at_ns != NEVER_NS) {
		/* It may have rung, and left this to the kthread. */
		if (at_ns != tw->alarm.at_ns || !hrtimer_is_queued(&tw->alarm.timer))
			alarm_begin(tw, at_ns);
	} else if (tw->alarm.at_ns != NEVER_NS) {
		/* G6 silent when idle. */
		tw->alarm.at_ns = NEVER_NS;
		hrtimer_try_to_cancel(&tw->alarm.timer);
	}
	return true;
}

/*
 * Set the alarm in its own function; @restart says whether that is to ring again.  False if there is
 * more to do before that is possible.
 */
static bool alarm_set_again(struct twheel *tw, struct hrtimer *timer,
			    enum hrtimer_restart *restart)
	__must_hold(&tw->lock)
{
	u64 at_ns;

	/* The last close has begun, or an ARM has set the alarm meanwhile. */
	if (!tw->alarm.at_ns || hrtimer_is_queued(timer))
		return twheel_alarm_set(tw);
	at_ns = alarm_next_ns(tw);
	if (!at_ns)
		return false;
	tw->alarm.at_ns = at_ns;
	if (at_ns == NEVER_NS)
		return true;
	hrtimer_set_expires_range_ns(timer, alarm_expiry(tw, at_ns), tw->clock.slack_ns);
	*restart = HRTIMER_RESTART;
	return true;
}

/* Another thread has the lock. */
static enum hrtimer_restart alarm_missed(struct twheel *tw, struct hrtimer *timer)
{
	if (++tw->alarm.nr_missed > MISSED_MAX) {
		tw->alarm.nr_missed = 0;
		twheel_turn_request(&tw->turn);
	} else {
		hrtimer_start(timer, ns_to_ktime(MISSED_NS), HRTIMER_MODE_REL_SOFT);
	}
	return HRTIMER_NORESTART;
}

/* Work on a wheel whose alarm has rung.  Returns whether it rings again. */
static enum hrtimer_restart alarm_work(struct twheel *tw, struct hrtimer *timer, u64 end_ns)
{
	enum hrtimer_restart restart = HRTIMER_NORESTART;
	unsigned int steps = 0;
	bool more;

	if (!twheel_trylock(tw))
		return alarm_missed(tw, timer);
	tw->alarm.nr_missed = 0;
	if (tw->alarm.at_ns)
		tw->alarm.at_ns = NEVER_NS;
	if (unlikely(!llist_empty(&tw->inbox)))
		twheel_inbox_empty(tw);
	if (unlikely(tw->drains)) {
		/* DRAIN does all, or the kthread. */
		twheel_unlock(tw);
		return restart;
	}
	for (;;) {
		more = twheel_pass_step(tw) || !alarm_set_again(tw, timer, &restart);
		if (!more || ++steps == SOFT_STEPS || ktime_get_ns() >= end_ns)
			break;
		twheel_unlock_quietly(tw);
		if (!twheel_trylock(tw)) {
			twheel_turn_request(&tw->turn);
			return HRTIMER_NORESTART;
		}
	}
	twheel_unlock(tw);
	if (more)
		twheel_turn_request(&tw->turn);
	return restart;
}

static enum hrtimer_restart alarm_rings(struct hrtimer *timer)
{
	struct twheel *tw = container_of(timer, struct twheel, alarm.timer);
	u64 end_ns, begin_ns = ktime_get_ns();
	enum hrtimer_restart restart;

	if (IS_ENABLED(CONFIG_PREEMPT_RT) || !processor_may_work(begin_ns) ||
	    !twheel_user_may_work(tw->memory.user, begin_ns)) {
		twheel_turn_request(&tw->turn);
		return HRTIMER_NORESTART;
	}
	restart = alarm_work(tw, timer, begin_ns + SOFT_NS);
	end_ns = ktime_get_ns();
	processor_has_worked(begin_ns, end_ns);
	twheel_user_has_worked(tw->memory.user, begin_ns, end_ns);
	return restart;
}

/**
 * twheel_alarm_init() - prepare a wheel whose alarm never rings
 * @tw: the wheel
 *
 * Context: process, before the wheel is published.
 */
void twheel_alarm_init(struct twheel *tw)
{
	tw->alarm.at_ns = 0;
}

/**
 * twheel_alarm_start() - prepare the hrtimer
 * @tw: the wheel, whose clock is final
 *
 * Context: process; under &twheel_control.mutex, before the wheel has started.
 */
void twheel_alarm_start(struct twheel *tw)
{
	hrtimer_setup(&tw->alarm.timer, alarm_rings, twheel_clock_id(&tw->clock),
		      HRTIMER_MODE_ABS_SOFT);
	if (tw->clock.kind != TWHEEL_CLOCK_VIRTUAL)
		tw->alarm.at_ns = NEVER_NS;
}

/**
 * twheel_alarm_stop() - stop the alarm for ever
 * @tw: the wheel, which has started; the last close
 *
 * Context: process; sleeps.
 */
void twheel_alarm_stop(struct twheel *tw)
{
	twheel_lock(tw);
	tw->alarm.at_ns = 0;
	twheel_unlock(tw);
	hrtimer_cancel(&tw->alarm.timer);
}
