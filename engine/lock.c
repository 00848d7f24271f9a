// SPDX-License-Identifier: GPL-2.0
/*
 * The wheel's lock, the inbox, insertion into the wheel, and waking
 *
 * If an ARM gets the lock at once, it puts its timeouts into the wheel itself.  If not, it adds
 * them to the inbox and goes on: a thread that takes or releases the lock empties the inbox.  So an
 * ARM does not wait for a pass, and its timeouts are in the wheel before a later call takes the
 * lock.  poll() does not take it, and may find events of these timeouts later, by a wake-up.
 *
 * If something is in the inbox already, the ARM waits for the lock: the work that a thread with the
 * lock does for others is bounded by a batch for each processor (G5).
 *
 * Waiters are woken under no spinlock of the engine, since a wake-up runs the callbacks of epoll,
 * which take locks of their own and may take long.
 */
#include <linux/poll.h>

#include "lock.h"
#include "trace.h"

/* Wake readers and pollers: @nr of the exclusive ones (EPOLLEXCLUSIVE), or all if it is 0. */
static void wake_waiters(struct tw_ctx *tw, __poll_t events, unsigned int nr)
{
	/*
	 * Pairs with poll_wait() and wait_event_interruptible(): a waiter queues first, and reads
	 * the state after that.  Test: litmus waiters_poll, waiters_read, waiters_room,
	 * waiters_drained
	 */
	if (wq_has_sleeper(&tw->waiters))
		__wake_up(&tw->waiters, TASK_NORMAL, nr, poll_to_key(events));
}

/*
 * Wake readers and pollers for @nr events that were added, if any event is still unread.  If the
 * wheel is drained, wake all: no event will come for those that go on sleeping.
 */
void twheel_wake_for_events(struct tw_ctx *tw, unsigned int nr)
{
	bool drained;

	twheel_syncpoint(SYNC_EVENTS_ADDED);
	drained = READ_ONCE(tw->control.drained);
	if (drained || READ_ONCE(tw->events.nr_unread))
		wake_waiters(tw, EPOLLIN | EPOLLRDNORM | (drained ? EPOLLHUP : 0),
			     drained ? 0 : nr);
}

/* A full wheel has room again: wake all pollers, since places freed after the first wake none. */
void twheel_wake_for_room(struct tw_ctx *tw)
{
	wake_waiters(tw, EPOLLOUT | EPOLLWRNORM, 0);
}

/* Slow path of timeout_pend().  An overdue timeout becomes an event at once, not at a tick. */
u64 twheel_pend_slow(struct tw_ctx *tw, struct twheel_timeout *t, u64 now_ns) __must_hold(&tw->lock)
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

/* Put the timeouts of the inbox into the wheel. */
void twheel_inbox_empty(struct tw_ctx *tw) __must_hold(&tw->lock)
{
	/* Pairs with llist_add_batch() in arm_queue().  Test: litmus inbox_filled */
	struct llist_node *node = llist_del_all(&tw->inbox);
	u64 now_ns = passed_ns(tw, clock_now(&tw->clock)), first_ns = NEVER_NS;
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

/*
 * Leave nothing to other threads: timeouts that an ARM has left in the inbox before are in the
 * wheel when this returns, and waiters are woken for events that were added.
 */
void twheel_settle(struct tw_ctx *tw)
{
	twheel_lock(tw);
	twheel_unlock(tw);
}

/* Empty the inbox.  If another thread has the lock by now, leave it to that thread. */
void twheel_unlock_inbox(struct tw_ctx *tw)
{
	unlock_begin();
	while (!llist_empty(&tw->inbox) && twheel_trylock(tw)) {
		u32 nr;

		twheel_inbox_empty(tw);
		nr = tw->events.nr_to_wake;
		tw->events.nr_to_wake = 0;
		spin_unlock(&tw->lock);
		if (!IS_ENABLED(CONFIG_SMP))
			local_bh_enable();
		if (nr)
			twheel_wake_for_events(tw, nr);
		/* For the reason in unlock_and_recheck(). */
		smp_mb();
	}
	unlock_end();
}
