// SPDX-License-Identifier: GPL-2.0
/*
 * When the kthread runs, and which waiters are woken
 *
 * wake.at_ns says when the kthread runs next.  An ARM wakes the kthread only if its
 * timeout is due earlier than that.  twheel_wake_program() sets the hrtimer to that time,
 * or asks for a turn with the kthread if the time has come.
 *
 * Locks: wake.lock makes wake.at_ns, the hrtimer and the requests for passes agree.  It
 * is a plain spinlock because the softirq does not take it.  Under it,
 * twheel_turn_request() takes the lock of the user's queue (user.c), which the softirq
 * takes as well, and hrtimer_start() takes that of the hrtimer's base.  ADVANCE and DRAIN
 * hold control.mutex when they come here.  Readers, pollers and callers that wait for a
 * pass are woken under none of the engine's locks.
 */
#include <linux/atomic.h>
#include <linux/container_of.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "clock.h"
#include "engine.h"
#include "twheel_compat.h"
#include "user.h"
#include "wake.h"
#include "window.h"

/* wake.at_ns on the machine's clock.  It is later than now, and so it is not negative. */
static ktime_t wake_expiry(const struct twheel *tw)
{
	return ns_to_ktime(min_t(u64, tw->wake.at_ns - tw->clock.offset_ns, KTIME_MAX));
}

/**
 * twheel_wake_program() - set the hrtimer, or ask for a turn, as wake.at_ns says
 * @tw: the wheel
 *
 * Context: process or kthread; under &twheel_wake.lock.
 */
void twheel_wake_program(struct twheel *tw)
	__must_hold(&tw->wake.lock)
{
	lockdep_assert_held(&tw->wake.lock);

	if (tw->wake.closing)
		return;
	twheel_window(WINDOW_ALARM);
	if (tw->wake.at_ns == WAKE_NOW ||
	    (tw->wake.at_ns != WAKE_NEVER && tw->wake.at_ns <= twheel_now(&tw->clock)))
		twheel_turn_request(&tw->wake.turn);
	else if (tw->clock.kind == TWHEEL_CLOCK_VIRTUAL)
		return;	/* ADVANCE asks for the pass */
	else if (tw->wake.at_ns == WAKE_NEVER)
		hrtimer_try_to_cancel(&tw->wake.timer); /* G6 silent when idle */
	else
		hrtimer_start_range_ns(&tw->wake.timer, wake_expiry(tw),
				       tw->clock.slack_ns, HRTIMER_MODE_ABS_SOFT);
}

/**
 * twheel_wake_at() - have the kthread run at a time, unless it runs earlier anyway
 * @tw: the wheel
 * @edge_ns: when, on the wheel's clock; WAKE_NOW for at once
 *
 * Context: process or kthread; takes &twheel_wake.lock.
 */
void twheel_wake_at(struct twheel *tw, u64 edge_ns)
{
	spin_lock(&tw->wake.lock);
	if (edge_ns < tw->wake.at_ns) {
		WRITE_ONCE(tw->wake.at_ns, edge_ns);
		/* A pass that is going on looks at wake.at_ns when it ends. */
		if (!tw->wake.passing)
			twheel_wake_program(tw);
	}
	spin_unlock(&tw->wake.lock);
}

/**
 * twheel_wake_for() - have the kthread run when a timeout is due
 * @tw: the wheel, for which wake_is_too_late() was true
 * @due_ns: when the timeout is due; WAKE_NOW if it was due when armed
 *
 * Context: process or kthread; takes &twheel_wake.lock.
 */
void twheel_wake_for(struct twheel *tw, u64 due_ns)
{
	twheel_wake_at(tw, tick_edge_ns(&tw->clock, deadline_tick(&tw->clock, due_ns)));
}

/**
 * twheel_wake_waiters() - wake readers and pollers
 * @wake: the wheel's
 * @events: EPOLL* bits that have become true
 * @nr: how many events or places there are; 0 to wake all
 *
 * Only @nr of the exclusive waiters (EPOLLEXCLUSIVE) are woken.
 *
 * Context: process or kthread; under none of the engine's locks, since the callbacks of
 * epoll take locks of their own and may take long.
 */
void twheel_wake_waiters(struct twheel_wake *wake, __poll_t events, unsigned int nr)
{
	/*
	 * Pairs with poll_wait() and wait_event(): a waiter queues first and looks for
	 * events after that.  Test: litmus waiters_poll, waiters_read, waiters_room
	 */
	if (wq_has_sleeper(&wake->waiters))
		__wake_up(&wake->waiters, TASK_NORMAL, nr, poll_to_key(events));
}

/* Ask for a pass that begins after this call.  Return the number of that pass. */
static u64 pass_request(struct twheel *tw)
{
	u64 wanted;

	spin_lock(&tw->wake.lock);
	wanted = ++tw->wake.passes_wanted;
	WRITE_ONCE(tw->wake.at_ns, WAKE_NOW);
	if (!tw->wake.passing)
		twheel_wake_program(tw);
	spin_unlock(&tw->wake.lock);
	return wanted;
}

static bool pass_is_done(const struct twheel_wake *wake, u64 wanted)
{
	/*
	 * Pairs with the release in pass_end(): the caller sees all that the pass did.
	 * Test: litmus passes_done, waiters_pass, waiters_pass_killable
	 */
	return smp_load_acquire(&wake->passes_done) >= wanted;
}

/**
 * twheel_pass_wait() - wait until a pass has begun and ended
 * @tw: the wheel, which has started
 *
 * Context: process; sleeps.  ADVANCE and DRAIN hold &twheel_control.mutex, which the
 * kthread never takes.
 * Return: 0, or -ERESTARTSYS by a signal.
 */
int twheel_pass_wait(struct twheel *tw)
{
	u64 wanted = pass_request(tw);

	return wait_event_interruptible(tw->wake.pass_waiters,
					pass_is_done(&tw->wake, wanted));
}

/**
 * twheel_pass_wait_killable() - wait for a pass that frees memory
 * @tw: the wheel, which has started
 *
 * ARM and REARM call it when they lack a place or room.  The pass begins after the call
 * and empties the inbox.  So when the wait ends without an error, the places and the room
 * of all timeouts that had been cancelled in the inbox before the call are free again.
 *
 * Context: process; sleeps; under none of the engine's locks.
 * Return: 0, or -EINTR by a fatal signal.
 */
int twheel_pass_wait_killable(struct twheel *tw)
{
	u64 wanted = pass_request(tw);

	return wait_event_killable(tw->wake.pass_waiters, pass_is_done(&tw->wake, wanted)) ?
	       -EINTR : 0;
}

/*
 * G5 bounded interrupt work: the softirq asks for a turn and does nothing else, however
 * many timeouts are due.
 */
static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct twheel *tw = container_of(timer, struct twheel, wake.timer);

	twheel_turn_request(&tw->wake.turn);
	return HRTIMER_NORESTART;
}

/**
 * twheel_wake_init() - prepare a wheel for which the kthread never has to run
 * @wake: the wheel's
 *
 * Context: process, before the wheel is published.
 */
void twheel_wake_init(struct twheel_wake *wake)
{
	wake->at_ns = WAKE_NEVER;
	spin_lock_init(&wake->lock);
	init_waitqueue_head(&wake->waiters);
	init_waitqueue_head(&wake->pass_waiters);
}

/**
 * twheel_wake_start() - prepare the hrtimer, and choose the kthread
 * @tw: the wheel, whose clock is final
 *
 * Context: process; under &twheel_control.mutex, before the wheel has started.
 */
void twheel_wake_start(struct twheel *tw)
{
	hrtimer_setup(&tw->wake.timer, timer_fired, twheel_clock_id(&tw->clock),
		      HRTIMER_MODE_ABS_SOFT);
	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
}
