// SPDX-License-Identifier: GPL-2.0
/*
 * Readers and pollers wait, and are woken
 *
 * A waiter queues first, and looks at the wheel after that.  A thread that changes the wheel does
 * so first, and looks for waiters after that.
 *
 * Locks: that of the wait queue.  The callers hold none of the engine's locks, since a wake-up
 * runs the callbacks of epoll, which take locks of their own and may take long.
 */
#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "engine.h"
#include "twheel.h"
#include "twheel_compat.h"
#include "wake.h"
#include "window.h"

/* Wake readers and pollers: @nr of those that are exclusive (EPOLLEXCLUSIVE), or all if it is 0. */
static void wake_waiters(struct twheel *tw, __poll_t events, unsigned int nr)
{
	/*
	 * Pairs with poll_wait() and wait_event_interruptible(): a waiter queues first, and looks
	 * after that.  Test: litmus waiters_poll, waiters_read, waiters_room, waiters_drained
	 */
	if (wq_has_sleeper(&tw->waiters))
		__wake_up(&tw->waiters, TASK_NORMAL, nr, poll_to_key(events));
}

/**
 * twheel_wake_for_events() - wake readers and pollers for events that were added
 * @tw: the wheel
 * @nr: how many
 *
 * If all events have been read meanwhile, nobody is woken.  If the wheel is drained, all are: no
 * event will come for those that go on sleeping.
 *
 * Context: any but hard interrupts; under none of the engine's locks.
 */
void twheel_wake_for_events(struct twheel *tw, unsigned int nr)
{
	bool drained = READ_ONCE(tw->control.drained);

	if (drained || READ_ONCE(tw->events.nr_unread))
		wake_waiters(tw, EPOLLIN | EPOLLRDNORM | (drained ? EPOLLHUP : 0),
			     drained ? 0 : nr);
}

/**
 * twheel_wake_for_room() - wake all pollers, since a wheel that was full is not full any more
 * @tw: the wheel
 *
 * Nobody is woken for the places that get free after the first one, so that one has to wake all.
 *
 * Context: any but hard interrupts; under none of the engine's locks.
 */
void twheel_wake_for_room(struct twheel *tw)
{
	wake_waiters(tw, EPOLLOUT | EPOLLWRNORM, 0);
}

/**
 * twheel_is_drained() - tell whether the events of all timeouts left can be read
 * @tw: the wheel
 *
 * Context: any; no lock is needed.
 * Return: true once the drain is complete; it stays true, and no event is added any more.
 */
bool twheel_is_drained(const struct twheel *tw)
{
	/*
	 * Pairs with the release in twheel_pass_step(): the last events are in the list.
	 * Test: litmus drained_read, drained_poll
	 */
	return smp_load_acquire(&tw->control.drained);
}

/**
 * twheel_wait() - wait for an event, or for the end of DRAIN
 * @tw: the wheel
 *
 * Context: process; sleeps; no lock of the wheel may be held.
 * Return: 0, or -ERESTARTSYS by a signal.
 */
int twheel_wait(struct twheel *tw)
{
	return wait_event_interruptible(tw->waiters, READ_ONCE(tw->events.nr_unread) ||
					twheel_is_drained(tw));
}

/**
 * twheel_poll() - queue a poller, and tell what can be done now
 * @tw: the wheel
 * @file: an open file of the wheel
 * @wait: the poller
 *
 * It looks without the lock: an ARM may have left timeouts that were due when they were armed in
 * the inbox.  The thread that has the lock makes events of these, and wakes the poller.  A read
 * that does not wait takes the lock, see twheel_inbox_wait().
 *
 * Context: process; sleeps; no lock of the wheel may be held.
 * Return: EPOLL*, which may change at any time.
 */
__poll_t twheel_poll(struct twheel *tw, struct file *file, struct poll_table_struct *wait)
{
	__poll_t events = 0;

	/*
	 * Queue first, look second: an event that comes in between wakes the poller.
	 * Test: windows.event_between_queueing_and_looking_ends_poll
	 */
	poll_wait(file, &tw->waiters, wait);
	twheel_window(WINDOW_POLL_QUEUED);
	/*
	 * Before the events: HUP without IN has to mean that no event is left.
	 * Test: windows.poll_beside_drain_tells_no_hup_without_in
	 */
	if (twheel_is_drained(tw))
		events |= EPOLLHUP;
	else if (!READ_ONCE(tw->control.draining) &&
		 READ_ONCE(tw->places.nr_taken) < READ_ONCE(tw->places.max_pending))
		events |= EPOLLOUT | EPOLLWRNORM;
	twheel_window(WINDOW_POLL_DRAINED);
	if (READ_ONCE(tw->events.nr_unread))
		events |= EPOLLIN | EPOLLRDNORM;
	return events;
}
