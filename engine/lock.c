// SPDX-License-Identifier: GPL-2.0
/*
 * The inbox, insertion into the wheel, and waking
 *
 * Locks: twheel.lock, as lock.h says.  Who wakes holds none of the engine's locks, since a wake-up
 * runs the callbacks of epoll, which take locks of their own and may take long.
 */
#include "lock.h"
#include "trace.h"
#include "twheel_compat.h"

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
 * twheel_pend_odd() - put a timeout to where it belongs that is not a plain one to come
 * @tw: the wheel
 * @t: the timeout, which is in no list, and PENDING
 * @now_ns: what passed_ns() returned
 *
 * A timeout whose deadline has passed becomes an event at once, and does not wait for the edge of a
 * tick.
 *
 * Context: under &twheel.lock.
 * Return: when it is due; NEVER_NS if no alarm is needed for it.
 */
u64 twheel_pend_odd(struct twheel *tw, struct twheel_timeout *t, u64 now_ns)
	__must_hold(&tw->lock)
{
	u64 deadline_ns = timeout_known_ns(t), due_ns;

	if (deadline_ns <= now_ns && deadline_ns < TWHEEL_TIME_NEVER) {
		twheel_expire_overdue(tw, t, now_ns);
		return NEVER_NS;
	}
	due_ns = timeout_due_by_ns(tw, t, deadline_ns);
	if (due_ns != NEVER_NS)
		twheel_wheel_insert(&tw->wheel, &t->link, due_ns);
	else
		twheel_link_push(&tw->wheel.never, &t->link);
	return due_ns;
}

/**
 * twheel_inbox_empty() - put what is in the inbox into the wheel
 * @tw: the wheel
 *
 * Context: under &twheel.lock.
 */
void twheel_inbox_empty(struct twheel *tw)
	__must_hold(&tw->lock)
{
	/* Pairs with llist_add_batch() in arm_queue().  Test: litmus inbox_filled */
	struct llist_node *node = llist_del_all(&tw->inbox);
	u64 now_ns = passed_ns(tw, twheel_now(&tw->clock)), first_ns = NEVER_NS;
	unsigned int nr = 0;

	lockdep_assert_held(&tw->lock);
	while (node) {
		struct twheel_timeout *t = llist_entry(node, struct twheel_timeout, node);

		/* Read the link first: it is that of a slot from now on. */
		node = node->next;
		timeout_begin(t);
		trace_twheel_arm(tw, t);
		first_ns = min(first_ns, timeout_pend(tw, t, now_ns));
		nr++;
	}
	tw->events.armed += nr;
	alarm_need(tw, first_ns, nr);
}

/**
 * twheel_inbox_wait() - wait until the timeouts are in the wheel that were armed before
 * @tw: the wheel
 *
 * An ARM that has not got the lock leaves its timeouts to the thread that has it, which may not
 * have inserted them yet.
 *
 * Context: process; no lock of the wheel may be held.
 */
void twheel_inbox_wait(struct twheel *tw)
{
	twheel_lock(tw);
	twheel_unlock(tw);
}

/**
 * twheel_unlock_inbox() - put what was added to the inbox meanwhile into the wheel
 * @tw: the wheel, whose lock was released
 *
 * If another thread has the lock by now, it does so.
 *
 * Context: any but hard interrupts; under none of the engine's locks.
 */
void twheel_unlock_inbox(struct twheel *tw)
{
	unlock_begin();
	while (!llist_empty(&tw->inbox) && twheel_trylock(tw)) {
		u32 nr;

		twheel_inbox_empty(tw);
		nr = tw->events.nr_untold;
		tw->events.nr_untold = 0;
		spin_unlock(&tw->lock);
		if (!IS_ENABLED(CONFIG_SMP))
			local_bh_enable();
		if (nr)
			twheel_wake_for_events(tw, nr);
		/* As in unlock_and_look(). */
		smp_mb();
	}
	unlock_end();
}
