// SPDX-License-Identifier: GPL-2.0
/*
 * When the kthread runs, and who is woken
 *
 * wake.at_ns says when the kthread runs next.  An ARM wakes nobody unless the kthread has to
 * run earlier than that.  The hrtimer, or a turn at once, follow from it.
 *
 * Locks: wake.lock.  Under it the lock of the user's queue is taken (user.c), and those of
 * the hrtimer and of the kthread's work.  Readers, pollers and callers that wait for a pass
 * are woken under no lock.
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

/* wake.at_ns as the machine counts.  It is later than now, and so not below 0. */
static ktime_t wake_expiry(const struct twheel *tw)
{
	return ns_to_ktime(min_t(u64, tw->wake.at_ns - tw->clock.offset_ns, KTIME_MAX));
}

/**
 * twheel_wake_program() - make the hrtimer, or the kthread at once, follow from wake.at_ns
 * @tw: the wheel
 *
 * Context: any but interrupts; under &twheel_wake.lock.
 */
void twheel_wake_program(struct twheel *tw)
	__must_hold(&tw->wake.lock)
{
	lockdep_assert_held(&tw->wake.lock);

	if (tw->wake.closing)
		return;
	if (tw->wake.at_ns == WAKE_NOW ||
	    (tw->wake.at_ns != WAKE_NEVER && tw->wake.at_ns <= twheel_now(&tw->clock)))
		twheel_turn_request(&tw->wake.turn);
	else if (tw->clock.kind == TWHEEL_CLOCK_VIRTUAL)
		return;	/* ADVANCE will see to it */
	else if (tw->wake.at_ns == WAKE_NEVER)
		hrtimer_try_to_cancel(&tw->wake.timer); /* G6 */
	else
		hrtimer_start(&tw->wake.timer, wake_expiry(tw), HRTIMER_MODE_ABS_SOFT);
}

/**
 * twheel_wake_at() - have the kthread run at a time, unless it runs earlier anyway
 * @tw: the wheel
 * @edge_ns: when, on the wheel's clock; WAKE_NOW for at once
 *
 * Context: any but interrupts.
 */
void twheel_wake_at(struct twheel *tw, u64 edge_ns)
{
	spin_lock(&tw->wake.lock);
	if (edge_ns < tw->wake.at_ns) {
		WRITE_ONCE(tw->wake.at_ns, edge_ns);
		/* A pass looks at it when it ends. */
		if (!tw->wake.passing)
			twheel_wake_program(tw);
	}
	spin_unlock(&tw->wake.lock);
}

/**
 * twheel_wake_for() - have the kthread run when something is due
 * @tw: the wheel, whose wake_is_too_late()
 * @due_ns: when, or WAKE_NOW
 *
 * Context: any but interrupts.
 */
void twheel_wake_for(struct twheel *tw, u64 due_ns)
{
	twheel_wake_at(tw, tick_edge_ns(&tw->clock, deadline_tick(&tw->clock, due_ns)));
}

/*
 * G5 bounded interrupt work: this is all that runs in softirq, whatever pends.
 */
static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct twheel *tw = container_of(timer, struct twheel, wake.timer);

	twheel_turn_request(&tw->wake.turn);
	return HRTIMER_NORESTART;
}

/**
 * twheel_wake_waiters() - wake the readers and pollers
 * @wake: the wheel's
 * @events: what has become ready, EPOLL*
 * @nr: how much of it there is; 0 for something that concerns all of them
 *
 * Of the waiters that wait exclusively (EPOLLEXCLUSIVE) only @nr wake up.
 *
 * Context: any; under none of the wheel's locks, since it runs the callbacks of epoll.
 */
void twheel_wake_waiters(struct twheel_wake *wake, __poll_t events, unsigned int nr)
{
	/* Pairs with poll_wait() and wait_event(): they look after queueing. */
	if (wq_has_sleeper(&wake->waiters))
		__wake_up(&wake->waiters, TASK_NORMAL, nr, poll_to_key(events));
}

/* Ask for a whole pass that begins from now on; returns its number. */
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
	/* Pairs with the release in pass_end(): what that pass did is seen. */
	return smp_load_acquire(&wake->passes_done) >= wanted;
}

/**
 * twheel_pass_wait() - wait for a whole pass that begins from now on
 * @tw: the wheel, which has started
 *
 * Context: process; sleeps.
 * Return: 0, or -ERESTARTSYS by a signal.
 */
int twheel_pass_wait(struct twheel *tw)
{
	u64 wanted = pass_request(tw);

	return wait_event_interruptible(tw->wake.pass_waiters,
					pass_is_done(&tw->wake, wanted));
}

/**
 * twheel_pass_wait_killable() - wait for a whole pass that begins from now on
 * @tw: the wheel, which has started
 *
 * The pass frees the places of all timeouts that were cancelled in the inbox before.
 *
 * Context: process; sleeps.
 * Return: 0, or -EINTR by a fatal signal.
 */
int twheel_pass_wait_killable(struct twheel *tw)
{
	u64 wanted = pass_request(tw);

	return wait_event_killable(tw->wake.pass_waiters, pass_is_done(&tw->wake, wanted)) ?
	       -EINTR : 0;
}

/**
 * twheel_wake_init() - begin with nothing that anybody has to wake up for
 * @wake: when the kthread runs
 *
 * Context: any.
 */
void twheel_wake_init(struct twheel_wake *wake)
{
	wake->at_ns = WAKE_NEVER;
	spin_lock_init(&wake->lock);
	init_waitqueue_head(&wake->waiters);
	init_waitqueue_head(&wake->pass_waiters);
}

/**
 * twheel_wake_start() - make the hrtimer, and choose the kthread
 * @tw: the wheel, whose clock is final
 *
 * Context: process.
 */
void twheel_wake_start(struct twheel *tw)
{
	hrtimer_setup(&tw->wake.timer, timer_fired, twheel_clock_id(&tw->clock),
		      HRTIMER_MODE_ABS_SOFT);
	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
}
