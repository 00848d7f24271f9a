// SPDX-License-Identifier: GPL-2.0
/*
 * The alarm: when the softirq runs
 *
 * The hrtimer rings at the edge of the tick in which the first timeout is due (G6: there is no
 * other tick), or when a slot of an upper level has to be emptied.  Its function is in run.c.
 */
#include "engine.h"

/*
 * When the first timeout in a slot is due, or a time before; NEVER_NS if no timeout is left.  An
 * upper slot with many timeouts has to be emptied before it begins.
 *
 * Timeouts that were moved to later are put where they belong, @moves of them at most.  A timeout
 * stays if its deadline is later by less than the time until it: so in the time for which it is
 * armed it is moved twice at most, however often it is refreshed (G7).
 */
static u64 slot_first_ns(struct tw_ctx *tw, struct twheel_level *level, struct twheel_link **slot,
			 unsigned int *moves) __must_hold(&tw->lock)
{
	struct twheel_wheel *w = &tw->wheel;
	u64 begin_ns = level->begin_ns, first_ns = NEVER_NS;
	u64 end_ns = twheel_slot_begin_ns(level, begin_ns) + (1ULL << level->shift);
	/*
	 * No timeout is due sooner: the scan may end here.  In an upper slot it goes on, since a
	 * slot with many timeouts has to be emptied before that.
	 */
	u64 soonest_ns = level == w->level ? edge_after_ns(&tw->clock, begin_ns) : 0;
	struct twheel_link *link, *next;
	unsigned int scanned = 0;

	for (link = *slot; link != &w->end && first_ns > soonest_ns && *moves; link = next) {
		struct twheel_timeout *t = link_timeout(link);
		/*
		 * The alarm may be set for a stored deadline, so make it the known one.  A REARM to
		 * an earlier one sets the alarm again, and a store of an earlier one is ignored.
		 */
		u64 due_ns = timeout_take_over(tw, t);

		next = link->next;
		if (due_ns == NEVER_NS || (w->nr_levels > 1 && due_ns >= end_ns &&
					   due_ns - begin_ns >= begin_ns - w->base_ns)) {
			twheel_link_del(link);
			if (due_ns == NEVER_NS)
				twheel_link_push(&w->never, link);
			else
				twheel_wheel_insert(w, link, due_ns);
			--*moves;
		} else {
			first_ns = min(first_ns, due_ns < end_ns ? due_ns : begin_ns);
			if (++scanned > ALARM_SCAN_MAX)
				return level == w->level ? begin_ns :
				       max(twheel_slot_ahead_ns(level, begin_ns), w->base_ns + 1);
		}
	}
	return first_ns;
}

/* By when the first slot of a level has to be scanned: before its first timeout is due. */
static u64 level_check_ns(const struct twheel_wheel *w, u32 i)
{
	const struct twheel_level *level = &w->level[i];

	if (!i || level->begin_ns == U64_MAX)
		return level->begin_ns;
	return twheel_slot_ahead_ns(level, level->begin_ns);
}

/*
 * When the wheel has something to do next: the edge of a tick, or NEVER_NS.  0 if that is not known
 * yet, because many timeouts had to be moved, or many slots were empty.
 */
static u64 alarm_next_ns(struct tw_ctx *tw) __must_hold(&tw->lock)
{
	struct twheel_wheel *w = &tw->wheel;
	u64 first_ns = NEVER_NS, cascade_ns = U64_MAX;
	unsigned int moves = PASS_STEP;
	u32 i;

	for (i = 0; i < w->nr_levels && w->used >> i; i++) {
		struct twheel_level *level = &w->level[i];
		u64 slot_ns = NEVER_NS;

		while (slot_ns == NEVER_NS && level_check_ns(w, i) < first_ns && moves) {
			struct twheel_link **slot = twheel_wheel_first(w, i);

			/* There were many empty slots. */
			if (!slot && w->used & BIT(i))
				return 0;
			if (!slot || level_check_ns(w, i) >= first_ns)
				break;
			slot_ns = slot_first_ns(tw, level, slot, &moves);
		}
		first_ns = min(first_ns, slot_ns);
		if (i)
			cascade_ns = min(cascade_ns, level_check_ns(w, i));
	}
	if (!moves)
		return 0;
	w->cascade_ns = cascade_ns;
	tw->alarm.nr_new = 0;
	return first_ns == NEVER_NS ? NEVER_NS : edge_after_ns(&tw->clock, first_ns);
}

/* A time of the wheel's clock on the machine's clock; never negative. */
static ktime_t alarm_expiry(const struct tw_ctx *tw, u64 at_ns)
{
	return ns_to_ktime(min_t(u64, at_ns - tw->clock.offset_ns, KTIME_MAX));
}

/*
 * Set the alarm.  In its own function, do so by *@restart, unless an ARM has queued the hrtimer.
 *
 * hrtimer_start_range_ns_user() of Linux 7.1 is not needed.  It refuses a time that has passed, so
 * that a program that sets its timer to such a time in a loop does not keep the interrupt from
 * coming.  No program can do that here: a deadline that has passed sets no alarm, and until the
 * alarm has rung, only an earlier time sets it again.
 */
static void alarm_begin(struct tw_ctx *tw, u64 at_ns, enum hrtimer_restart *restart)
	__must_hold(&tw->lock)
{
	struct hrtimer *timer = &tw->alarm.timer;

	tw->alarm.at_ns = at_ns;
	tw->alarm.paid = false;
	if (restart && !hrtimer_is_queued(timer)) {
		hrtimer_set_expires_range_ns(timer, alarm_expiry(tw, at_ns), tw->clock.slack_ns);
		*restart = HRTIMER_RESTART;
	} else {
		hrtimer_start_range_ns(timer, alarm_expiry(tw, at_ns), tw->clock.slack_ns,
				       HRTIMER_MODE_ABS_SOFT);
	}
}

/* Timeouts were put into slots, the first due at @first_ns: if the alarm rings later, set it. */
void twheel_alarm_need(struct tw_ctx *tw, u64 first_ns) __must_hold(&tw->lock)
{
	u64 at_ns = first_ns;

	lockdep_assert_held(&tw->lock);
	if (tw->alarm.nr_new > ALARM_SCAN_MAX) {
		at_ns = min(at_ns, max(tw->wheel.cascade_ns, tw->wheel.base_ns + 1));
		/* When the alarm has rung, alarm_next_ns() finds the next time again. */
		tw->wheel.cascade_ns = U64_MAX;
	}
	if (at_ns >= tw->alarm.at_ns)
		return;
	at_ns = edge_after_ns(&tw->clock, at_ns);
	if (at_ns < tw->alarm.at_ns)
		alarm_begin(tw, at_ns, NULL);
}

/*
 * Set the alarm for what is next.  Returns false if there is more to do before that is possible.
 * The alarm's function passes @restart, by which it rings again if the hrtimer is not queued; all
 * others pass NULL.
 */
bool twheel_alarm_set(struct tw_ctx *tw, enum hrtimer_restart *restart) __must_hold(&tw->lock)
{
	u64 at_ns;

	lockdep_assert_held(&tw->lock);
	if (!tw->alarm.at_ns)
		return true;
	at_ns = alarm_next_ns(tw);
	if (!at_ns)
		return false;
	if (at_ns != NEVER_NS) {
		/* If it is not queued, it has rung and left this to the kthread. */
		if (at_ns != tw->alarm.at_ns || !hrtimer_is_queued(&tw->alarm.timer))
			alarm_begin(tw, at_ns, restart);
	} else if (tw->alarm.at_ns != NEVER_NS) {
		/* G6 silent when idle. */
		tw->alarm.at_ns = NEVER_NS;
		hrtimer_try_to_cancel(&tw->alarm.timer);
		if (restart)
			*restart = HRTIMER_NORESTART;
	}
	return true;
}

/*
 * In the alarm's function, set the alarm for the first edge of a tick that is at least @pause_ns (1
 * or more) from now.  An ARM may have set it for an earlier one.  @restart is as in
 * twheel_alarm_set().
 *
 * G2 bounded lateness: more is left to do, and the softirq may have to leave it to the kthread,
 * which sets the alarm then.  If it has not done so by this tick, the softirq goes on.
 */
void twheel_alarm_set_next(struct tw_ctx *tw, u64 pause_ns, enum hrtimer_restart *restart)
	__must_hold(&tw->lock)
{
	u64 next_ns = edge_after_ns(&tw->clock, clock_now(&tw->clock) + pause_ns);

	if (next_ns < tw->alarm.at_ns)
		alarm_begin(tw, next_ns, restart);
}
