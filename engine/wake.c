// SPDX-License-Identifier: GPL-2.0
/*
 * When the kthread runs, and which waiters are woken
 *
 * wake.at_ns says when the kthread runs next.  An ARM has it run earlier only if its timeout
 * is due earlier than that, or if the inbox fills up.  twheel_wake_program() sets the hrtimer
 * to that time, or asks for a turn with the kthread if the time has come.
 *
 * When the hrtimer fires, two threads would have to be woken, the kthread and then the one
 * that waits for events; and a wake-up costs more than ten expiries.  So if one thread
 * waits, the softirq wakes that, and its poll() or read() makes the pass in place of the
 * kthread: see twheel_stand_in().  The softirq also sets the hrtimer anew, and if nobody
 * has made the pass by then, the kthread does.
 *
 * Locks: wake.lock makes wake.at_ns, the hrtimer and the requests for passes agree.  The
 * softirq takes it, so that all others disable softirqs.  Under it,
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
#include <linux/sched/prio.h>
#include <linux/spinlock.h>
#include <linux/time64.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "clock.h"
#include "engine.h"
#include "twheel.h"
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
	spin_lock_bh(&tw->wake.lock);
	if (edge_ns < tw->wake.at_ns) {
		WRITE_ONCE(tw->wake.at_ns, edge_ns);
		/* A pass that is going on looks at wake.at_ns when it ends. */
		if (!tw->wake.passing)
			twheel_wake_program(tw);
	}
	spin_unlock_bh(&tw->wake.lock);
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
	 * Pairs with poll_wait() and wait_event(): a waiter queues first, and looks after
	 * that for room and for the end of a drain.
	 * Test: litmus waiters_room, waiters_drained
	 */
	if (wq_has_sleeper(&wake->waiters))
		__wake_up(&wake->waiters, TASK_NORMAL, nr, poll_to_key(events));
}

/* Ask for a pass that begins after this call.  Return the number of that pass. */
static u64 pass_request(struct twheel *tw)
{
	u64 wanted;

	spin_lock_bh(&tw->wake.lock);
	wanted = ++tw->wake.passes_wanted;
	WRITE_ONCE(tw->wake.at_ns, WAKE_NOW);
	if (!tw->wake.passing)
		twheel_wake_program(tw);
	spin_unlock_bh(&tw->wake.lock);
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

/* A waiter that was asked is waited for so long at most, and for half a tick. */
#define ASK_WAIT_NS		(5 * NSEC_PER_MSEC)

/* If the wait would have to be shorter than this, no waiter is asked. */
#define ASK_WAIT_MIN_NS		(50 * NSEC_PER_USEC)

/* So many times no waiter is asked after one that was asked has not come. */
#define ASK_PAUSE		15

/* The priority of the kthread; a lower number is a higher priority. */
static int kthread_prio(const struct twheel *tw)
{
	return READ_ONCE(tw->wake.turn.queue->worker->task->prio);
}

static bool stand_in_change(struct twheel_wake *wake, enum stand_in_phase from,
			    enum stand_in_phase to)
{
	return atomic_cmpxchg(&wake->stand_in, from, to) == from;
}

/*
 * Whether a waiter may be asked.  G5: one is woken, and not many.  One that has events to
 * read is busy.  A kthread whose priority is above the usual one is meant to do this itself.
 */
static bool waiter_is_suitable(const struct twheel *tw, u64 now_ns)
{
	return waiter_is_alone(&tw->wake) && !READ_ONCE(tw->events.nr_unread) &&
	       kthread_prio(tw) >= DEFAULT_PRIO &&
	       twheel_user_may_wake(tw->memory.user, now_ns);
}

/*
 * Ask the waiter to make the pass that is due, and set the hrtimer to the time at which
 * the kthread makes it otherwise.  G2: that is half a tick later at most.  False if no
 * waiter is to be asked.
 */
static bool waiter_ask(struct twheel *tw, u64 now_ns)
	__must_hold(&tw->wake.lock)
{
	u64 wait_ns = min(tw->clock.tick_ns / 2, ASK_WAIT_NS);
	struct twheel_wake *wake = &tw->wake;

	lockdep_assert_held(&wake->lock);
	if (atomic_read(&wake->stand_in) == STAND_IN_ASKED) {
		wake->pause = ASK_PAUSE;
		return false;
	}
	if (wake->pause) {
		wake->pause--;
		return false;
	}
	/* Without timers of high resolution the hrtimer would be late. */
	if (wait_ns < max(ASK_WAIT_MIN_NS, hrtimer_resolution) || wake->closing ||
	    !waiter_is_suitable(tw, now_ns) ||
	    !stand_in_change(wake, STAND_IN_NONE, STAND_IN_ASKED))
		return false;
	hrtimer_start(&wake->timer, ns_to_ktime(wait_ns), HRTIMER_MODE_REL_SOFT);
	return true;
}

/*
 * Wake the waiter that was asked.  It is not told that there is an event, since there is
 * none yet: pollers look, and sleep on if their look finds none.  (Where an epoll instance is
 * itself polled, by io_uring say, its poller is told that it is ready.)
 *
 * G5: whatever waits for that epoll instance is woken as well, and nothing bounds how much
 * this is.  So the user pays for the time that it took, see twheel_user_has_woken().
 */
static void waiter_wake(struct twheel *tw, u64 begin_ns)
{
	/*
	 * All, since another one may have come in front of it meanwhile.  Pairs with
	 * poll_wait() and wait_event(): a waiter queues first, and looks whether it is asked
	 * after that.  Test: litmus waiters_asked
	 */
	wake_up_all(&tw->wake.waiters);
	twheel_user_has_woken(tw->memory.user, begin_ns, ktime_get_ns());
}

/*
 * G5 bounded interrupt work: the softirq wakes a waiter, or asks for a turn with the
 * kthread, and does nothing else, however many timeouts are due.
 */
static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct twheel *tw = container_of(timer, struct twheel, wake.timer);
	u64 begin_ns = ktime_get_ns();
	bool asks;

	spin_lock(&tw->wake.lock);
	/*
	 * A pass that is going on sets the alarm when it ends.  G6: nor is there anything to
	 * do if nothing pends.  The waiter was so quick that this timer could not be
	 * cancelled: its function had yet to return.
	 */
	if (tw->wake.passing || tw->wake.at_ns == WAKE_NEVER) {
		spin_unlock(&tw->wake.lock);
		return HRTIMER_NORESTART;
	}
	asks = waiter_ask(tw, begin_ns);
	spin_unlock(&tw->wake.lock);
	if (asks)
		waiter_wake(tw, begin_ns);
	else
		twheel_turn_request(&tw->wake.turn);
	return HRTIMER_NORESTART;
}

/**
 * twheel_is_asked() - tell whether a waiter has to make the pass that is due
 * @tw: the wheel
 *
 * Context: any; no lock is needed.
 * Return: true if twheel_stand_in() is to be called.
 */
bool twheel_is_asked(const struct twheel *tw)
{
	return atomic_read(&tw->wake.stand_in) == STAND_IN_ASKED;
}

/**
 * twheel_stand_in_begin() - take over the pass that a waiter was asked for
 * @tw: the wheel
 *
 * The pass then wakes no waiter for its events.  The only one was woken when it was asked,
 * and a second wake-up would be a second edge for an edge-triggered epoll.
 *
 * A thread of lower priority than the kthread does not make the pass, as it might be kept
 * from ending it.  For some time no waiter is asked then.
 *
 * Context: process.
 * Return: true if the caller has the wheel's turn, has to make the pass, and has to call
 * twheel_stand_in_end() after it.
 */
bool twheel_stand_in_begin(struct twheel *tw)
{
	if (likely(!twheel_is_asked(tw)) ||
	    !stand_in_change(&tw->wake, STAND_IN_ASKED, STAND_IN_WORKS))
		return false;
	if (current->prio > kthread_prio(tw) || current->policy == SCHED_IDLE) {
		spin_lock_bh(&tw->wake.lock);
		tw->wake.pause = ASK_PAUSE;
		twheel_turn_request(&tw->wake.turn);
		spin_unlock_bh(&tw->wake.lock);
	} else if (twheel_turn_take(&tw->wake.turn)) {
		return true;
	}
	/* The kthread is at it, or will be: it makes one more pass. */
	atomic_set(&tw->wake.stand_in, STAND_IN_NONE);
	return false;
}

/**
 * twheel_stand_in_late() - note that the kthread makes the pass that a waiter was asked for
 * @wake: the wheel's
 *
 * The waiter need not make the pass any more, and will look for its events.  If it has not
 * looked by the next pass, nobody may rely on that any longer: it may have been killed.
 *
 * Context: the kthread, when a pass begins; or a waiter that makes the pass.
 */
void twheel_stand_in_late(struct twheel_wake *wake)
{
	if (atomic_cmpxchg_relaxed(&wake->stand_in, STAND_IN_LATE, STAND_IN_NONE) != STAND_IN_LATE)
		atomic_cmpxchg_relaxed(&wake->stand_in, STAND_IN_ASKED, STAND_IN_LATE);
}

/**
 * twheel_stand_in_end() - give the wheel's turn back
 * @tw: the wheel
 * @more: the kthread has to go on
 *
 * Waiters that have come since the pass began were not woken when it was asked for.  They
 * are if they may have missed its events.
 *
 * Context: process; under none of the engine's locks.
 */
void twheel_stand_in_end(struct twheel *tw, bool more)
{
	/*
	 * Pairs with twheel_stand_in_note(): either this sees that a thread has looked for events,
	 * or that thread sees those of the pass.  Test: litmus stand_in_poll, stand_in_read
	 */
	enum stand_in_phase was = atomic_xchg(&tw->wake.stand_in, STAND_IN_NONE);
	u32 nr = READ_ONCE(tw->events.nr_unread);

	twheel_turn_end(&tw->wake.turn, more);
	if (nr && (was == STAND_IN_AWAITED || !waiter_is_alone(&tw->wake)))
		twheel_wake_waiters(&tw->wake, EPOLLIN | EPOLLRDNORM, nr);
}

/**
 * twheel_stand_in_note() - note that a thread looks for events
 * @wake: the wheel's; stand_in_matters() was true
 *
 * The thread may miss events that a pass has yet to make.  It is woken for these.
 *
 * Context: any.
 */
void twheel_stand_in_note(struct twheel_wake *wake)
{
	atomic_cmpxchg_relaxed(&wake->stand_in, STAND_IN_LATE, STAND_IN_NONE);
	atomic_cmpxchg_relaxed(&wake->stand_in, STAND_IN_WORKS, STAND_IN_AWAITED);
	/*
	 * Pairs with twheel_stand_in_end() and twheel_wake_for_events().
	 * Test: litmus stand_in_poll, stand_in_read, stand_in_late
	 */
	smp_mb();
}

/**
 * twheel_wake_for_events() - wake waiters for the events of a batch
 * @tw: the wheel, whose turn the caller has
 * @nr: how many events were added
 *
 * A waiter that makes the pass itself is awake, and one that was asked, is alone, and has
 * not looked since will look: another wake-up would be another edge for an edge-triggered
 * epoll.  Nor is anybody woken for events that were read meanwhile.
 *
 * Context: process; under none of the engine's locks.
 */
void twheel_wake_for_events(struct twheel *tw, unsigned int nr)
{
	struct twheel_wake *wake = &tw->wake;

	/*
	 * Pairs with poll_wait() and wait_event(): a waiter queues first and looks for
	 * events after that.  And with twheel_stand_in_note(): either this sees that the
	 * waiter has looked, or the waiter sees the events.
	 * Test: litmus waiters_poll, waiters_read, stand_in_late
	 */
	if (!tw->pass.by_waiter && wq_has_sleeper(&wake->waiters) &&
	    (atomic_read(&wake->stand_in) != STAND_IN_LATE || !waiter_is_alone(wake)) &&
	    READ_ONCE(tw->events.nr_unread))
		__wake_up(&wake->waiters, TASK_NORMAL, nr,
			  poll_to_key(EPOLLIN | EPOLLRDNORM));
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
