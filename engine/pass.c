// SPDX-License-Identifier: GPL-2.0
/*
 * A pass: what there is to do on a wheel, step by step
 *
 * The softirq takes steps when the alarm rings (alarm.c), and the kthread does when there is more.
 * ADVANCE and DRAIN take them as well.  Each step is done under one hold of the lock, and leaves
 * the wheel as any other thread may find it: so it does not matter who takes the next one.
 *
 * Locks: twheel.lock, for a step at a time.
 */
#include <linux/container_of.h>
#include <linux/kconfig.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/prefetch.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "account.h"
#include "alarm.h"
#include "engine.h"
#include "expire.h"
#include "lock.h"
#include "pass.h"
#include "places.h"
#include "time.h"
#include "timeout.h"
#include "trace.h"
#include "twheel.h"
#include "twheel_wheel.h"

/*
 * Readers and pollers are woken once for so many events, as long as more of them come.  If another
 * thread has the lock meanwhile, it wakes them.  With PREEMPT_RT, they are woken after each step
 * (G2): that thread may have a low priority, and be preempted before it wakes them.
 */
#define WAKE_EVERY	(IS_ENABLED(CONFIG_PREEMPT_RT) ? 1 : 1024)

/* After so many steps for one wheel, other wheels have a turn (G2): see account.c. */
#define TURN_STEPS	64

/*
 * Upper slots are emptied ahead, evenly: for two timeouts that expire, three are moved down.  If as
 * many come in each tick, the slot that comes next is empty in time, and nobody waits for a pass
 * that does nothing else.  If timeouts are left in it half of its width before it begins, the wheel
 * moves AHEAD_TICK of them in a tick; if a quarter of its width before, all at once.
 */
#define AHEAD_TICK	4096

/*
 * How many timeouts of a slot of this level, which comes next, are to be moved down now, besides
 * those for which there is time in this step.
 */
static u32 ahead_of_level(struct twheel *tw, const struct twheel_level *level)
	__must_hold(&tw->lock)
{
	u64 left_ns = twheel_slot_left_ns(&tw->wheel, level), lead_ns = twheel_slot_lead_ns(level);

	if (left_ns > lead_ns)
		return tw->nr_ahead;
	if (left_ns <= lead_ns / 2)
		return U32_MAX;
	if (tw->ahead_ns != tw->wheel.base_ns) {
		tw->ahead_ns = tw->wheel.base_ns;
		tw->nr_ahead = max(tw->nr_ahead, AHEAD_TICK);
	}
	return tw->nr_ahead;
}

/*
 * Empty upper slots to which the wheel comes next, timeout by timeout, up to @nr.  Returns whether
 * more of them are to be moved now.
 */
static bool slots_empty_ahead(struct twheel *tw, unsigned int nr)
	__must_hold(&tw->lock)
{
	struct twheel_wheel *w = &tw->wheel;
	struct twheel_link **slot;
	u32 i;

	while ((slot = twheel_wheel_ahead(w, &i))) {
		u32 nr_ahead = ahead_of_level(tw, &w->level[i]);
		unsigned int before = nr;

		for (; nr && *slot != &w->end; nr--) {
			struct twheel_timeout *t = link_timeout(*slot);
			u64 due_ns = timeout_take_over(tw, t);

			prefetchw(t->link.next);
			twheel_link_del(&t->link);
			if (likely(due_ns != NEVER_NS))
				twheel_wheel_move_down(w, i, &t->link, due_ns);
			else
				twheel_link_push(&w->never, &t->link);
		}
		tw->nr_ahead -= min(tw->nr_ahead, before - nr);
		if (!nr)
			return *slot != &w->end && nr_ahead > before;
	}
	tw->nr_ahead = 0;
	return false;
}

/*
 * Turn a timeout that is left after DRAIN into an event flagged drained (G3).  Its place
 * may also be free, or its event unread: a one-shot's event stays as it is, a periodic
 * timeout's is flagged unless it was the last one anyway.
 */
static void timeout_drain(struct twheel *tw, struct twheel_timeout *t, u64 now_ns)
	__must_hold(&tw->lock)
{
	if (timeout_is_unread(t)) {
		twheel_periods_settle(tw, t, twheel_periods_unread(&tw->clock, t));
		if (!timeout_ends(t, 0))
			t->fired_ns |= FIRED_DRAINED;
		return;
	}
	if (!timeout_is_pending(t))
		return;
	timeout_take_over(tw, t);
	if (timeout_is_periodic(t))
		timeout_extra(t)->count = 0;
	twheel_link_del(&t->link);
	event_add(&tw->events, t, now_ns | FIRED_DRAINED);
}

/*
 * Turn some of the timeouts that are left after DRAIN into events: @nr places may be looked at.
 * Returns how many more may be; 0 if there may be more to do.
 */
static unsigned int drain_step(struct twheel *tw, u64 now_ns, unsigned int nr)
	__must_hold(&tw->lock)
{
	u32 nr_places = READ_ONCE(tw->places.pages.nr) * PLACES_PER_PAGE;

	for (; nr && tw->drain_index < nr_places; nr--, tw->drain_index++) {
		struct twheel_timeout *t = place_at(&tw->places, tw->drain_index);

		if (t)
			timeout_drain(tw, t, now_ns);
	}
	return nr;
}

/**
 * twheel_pass_step() - take a step
 * @tw: the wheel
 *
 * Context: under &twheel.lock.
 * Return: true if there is more to do now.
 */
bool twheel_pass_step(struct twheel *tw)
	__must_hold(&tw->lock)
{
	u64 now_ns = passed_ns(tw, twheel_now(&tw->clock));
	unsigned int left = twheel_expire(tw, now_ns, PASS_STEP), looked = PASS_STEP - left;
	enum twheel_counter by = counter_of_pass();
	bool more = true;

	/* Three are moved ahead for two that were looked at. */
	tw->nr_ahead += looked + looked / 2;
	if (left && unlikely(tw->drains)) {
		left = drain_step(tw, now_ns, left);
		more = !left;
		if (!more) {
			tw->drains = false;
			/*
			 * Pairs with the acquire in twheel_is_drained(): who sees this sees all
			 * events.  Test: litmus drained_read, drained_poll
			 */
			smp_store_release(&tw->control.drained, true);
			tw->events.nr_untold++;
		}
	} else if (left) {
		more = slots_empty_ahead(tw, left);
	}
	counter_add(by, 1);
	trace_twheel_pass(tw, by, now_ns, looked, more);
	return more;
}

/* Take a step under one hold of the lock.  Returns whether there is more to do now. */
static bool pass_step_locked(struct twheel *tw)
{
	u32 nr_before;
	bool more;

	twheel_lock(tw);
	nr_before = tw->events.nr_untold;
	more = twheel_pass_step(tw) || !twheel_alarm_set(tw, NULL);
	if (!more || tw->events.nr_untold == nr_before || tw->events.nr_untold >= WAKE_EVERY)
		twheel_unlock(tw);
	else
		twheel_unlock_quietly(tw);
	return more;
}

/* A pass stops before it is complete: wake waiters for the events of its last steps. */
static void pass_stop(struct twheel *tw)
{
	twheel_lock(tw);
	twheel_unlock(tw);
}

/**
 * twheel_pass_now() - do all that there is to do on a wheel now
 * @tw: the wheel
 *
 * Context: process; sleeps; under none of the engine's locks but &twheel_control.mutex.
 * Return: 0, or -ERESTARTSYS by a signal: the kthread does the rest then.
 */
int twheel_pass_now(struct twheel *tw)
{
	while (pass_step_locked(tw)) {
		if (signal_pending(current)) {
			pass_stop(tw);
			twheel_turn_request(&tw->turn);
			return -ERESTARTSYS;
		}
		cond_resched();
	}
	return 0;
}

/**
 * twheel_pass_turn() - take a wheel's turn with the kthread
 * @turn: &twheel.turn
 * @end_ns: when the turn has to end, ktime_get_ns()
 *
 * G2 bounded lateness: a turn is bounded in timeouts and in time, so that the wheels of
 * other users, and the other wheels of this user, have their turns in between.
 *
 * Context: the kthread; sleeps; no lock is held.
 * Return: true when the wheel needs another turn.
 */
bool twheel_pass_turn(struct twheel_turn *turn, u64 end_ns)
{
	struct twheel *tw = container_of(turn, struct twheel, turn);
	unsigned int steps = 0;
	bool more;

	do {
		more = pass_step_locked(tw);
		cond_resched();
	} while (more && ++steps < TURN_STEPS && ktime_get_ns() < end_ns);
	if (more)
		pass_stop(tw);
	return more;
}
