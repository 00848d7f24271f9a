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
