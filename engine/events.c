// SPDX-License-Identifier: GPL-2.0
/*
 * The ready list, and reading events from it
 *
 * A timeout that has expired, or was drained, waits on the ready list until its event is
 * read or revoked.  The list is linked by index, because a timeout has no space for two
 * pointers.
 *
 * A read goes by look, report and commit, as told in look.h.  It looks at the oldest
 * events and copies them to the user while they stay on the list; then it takes them off,
 * under events.lock, if they are still the same.  The count events.changes says so in the
 * usual case without comparing them.  twheel_events_directly() makes one step of it as long
 * as all is as usual.
 *
 * Any number of threads read at a time.  One that sleeps in a page fault has not taken the
 * events that it copies, and others go on with them.
 *
 * Locks: events.lock.  No lock is taken under it here; user memory is written under it with
 * page faults disabled.  After it, wake.lock if a periodic timeout goes back to the inbox or
 * memory is to be given back, and keys.lock in a keyed wheel.  Pollers that wait for EPOLLOUT
 * are woken under no lock of the engine.
 */
#include <linux/atomic.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "arena.h"
#include "clock.h"
#include "ending.h"
#include "engine.h"
#include "events.h"
#include "inbox.h"
#include "periods.h"
#include "slack.h"
#include "tell.h"
#include "timeout.h"
#include "twheel.h"
#include "wake.h"
#include "window.h"

/* Take one timeout off the ready list, wherever it stands. */
static void ready_del(struct twheel *tw, struct twheel_timeout *t)
	__must_hold(&tw->events.lock)
{
	struct twheel_timeout *prev = ready_at(&tw->arena, t->prev);
	struct twheel_timeout *next = ready_at(&tw->arena, t->next);

	lockdep_assert_held(&tw->events.lock);
	if (prev)
		prev->next = t->next;
	else
		tw->events.first = next;
	if (next) {
		next->prev = t->prev;
	} else {
		tw->events.last = prev;
		tw->events.last_link = t->prev;
	}
	WRITE_ONCE(tw->events.nr_unread, tw->events.nr_unread - 1);
}

/*
 * Take the first @nr timeouts off the ready list; @first follows them, NULL if none does.
 */
static void ready_cut(struct twheel_events *events, struct twheel_timeout *first,
		      unsigned int nr)
	__must_hold(&events->lock)
{
	lockdep_assert_held(&events->lock);
	events->first = first;
	if (first) {
		first->prev = 0;
	} else {
		events->last = NULL;
		events->last_link = 0;
	}
	WRITE_ONCE(events->nr_unread, events->nr_unread - nr);
}

/**
 * twheel_event_take() - take a timeout off the ready list without reading its event
 * @tw: the wheel
 * @t: the timeout, which is UNREAD
 * @state: its state
 *
 * CANCEL and REARM revoke the event so.  Periods that have passed unread are counted
 * first.
 *
 * Context: process, with &twheel_events.lock held; does not sleep.
 */
void twheel_event_take(struct twheel *tw, struct twheel_timeout *t, u64 state)
	__must_hold(&tw->events.lock)
{
	twheel_periods_settle(tw, t, state, twheel_periods_unread(&tw->clock, t, state));
	ready_del(tw, t);
	tw->events.changes++;
}

/* Fill in the event of a timeout that is periodic or drained, or both. */
static void event_look_closely(struct twheel *tw, struct twheel_timeout *t,
			       u64 state, struct twheel_event *event)
	__must_hold(&tw->events.lock)
{
	u64 nr = twheel_periods_unread(&tw->clock, t, state);
	bool drained = state_is_drained(state);
	bool ended = timeout_has_ended(t, state, nr);

	event->deadline_ns = t->deadline_ns;
	event->count = periods_count(timeout_count(t, state), nr);
	if (nr) {
		event->deadline_ns += nr * timeout_periodic(t)->interval_ns[timeout_slot(t)];
		event->fired_ns = period_fired_ns(&tw->clock, state,
						  event->deadline_ns);
	}
	event->deadline_ns = min(event->deadline_ns, TWHEEL_TIME_NEVER);
	/*
	 * A periodic timeout whose event is read while the wheel is draining ends with
	 * this event, so the event says that it was drained.
	 */
	if (READ_ONCE(tw->control.draining) && !ended)
		drained = true;
	event->flags = drained ? TWHEEL_EVENT_DRAINED | TWHEEL_EVENT_ENDED :
		       ended ? TWHEEL_EVENT_ENDED : 0;
}

/**
 * twheel_events_look() - find the oldest events, which stay where they are
 * @tw: the wheel
 * @event: out: the events, oldest first
 * @look: out: their timeouts and states, for twheel_events_commit()
 * @nr: number of events that there is space for, up to TWHEEL_BATCH
 *
 * Context: process; does not sleep.  Two readers may find the same events: one of them takes
 * an event, and the other one has to look again.
 * Return: the number of events found.
 */
unsigned int twheel_events_look(struct twheel *tw, struct twheel_event *event,
				struct twheel_look *look, unsigned int nr)
{
	struct twheel_timeout *t;
	unsigned int i = 0;
	u32 index;

	spin_lock(&tw->events.lock);
	look->changes = tw->events.changes;
	t = tw->events.first;
	index = t ? timeout_index(t) : 0;
	while (t && i < nr) {
		u64 state = atomic64_read(&t->state);

		event[i].id = state_id(state, index);
		event[i].user_data = t->user_data;
		event[i].fired_ns = t->fired_ns;
		if (likely(state_is_plain_unread(state))) {
			/* No timeout expires whose deadline is the end of time. */
			event[i].deadline_ns = t->deadline_ns;
			event[i].count = 1;
			event[i].flags = TWHEEL_EVENT_ENDED;
		} else {
			event_look_closely(tw, t, state, &event[i]);
		}
		look->timeout[i] = t;
		look->state[i++] = state;
		index = t->next - 1;
		t = ready_at(&tw->arena, t->next);
	}
	spin_unlock(&tw->events.lock);
	return i;
}

/* The last event of a timeout was read: the timeout ends. */
static void event_end(struct twheel *tw, struct twheel_timeout *t, u64 state,
		      bool drained, struct ending *ending)
	__must_hold(&tw->events.lock)
{
	if (drained)
		tw->events.drained_out++;
	else
		tw->events.completed++;
	if (state_keeps_room(state))
		ending->nr_room++;
	timeout_end(&tw->arena, t, state, ending);
}

/*
 * An event was read, and its periodic timeout lives on: UNREAD --> QUEUED.  The caller
 * puts the timeout into the inbox under the same hold of the lock.  Returns when the
 * kthread has to look at it.
 */
static u64 event_continue(struct twheel *tw, struct twheel_timeout *t, u64 state)
	__must_hold(&tw->events.lock)
{
	struct twheel_periodic *periodic = timeout_periodic(t);
	u32 slot = timeout_slot(t);
	u64 due_ns, from_ns = t->deadline_ns;
	bool overdue;

	periodic->count[slot] = 0;
	periodic->deliveries[slot] = periods_count(periodic->deliveries[slot], 1);
	if (state_is_fixed_delay(state))
		from_ns = twheel_now(&tw->clock);
	t->deadline_ns = time_add(from_ns, periodic->interval_ns[slot]);
	/*
	 * If a period passed while the event was copied, the next event is due at once.
	 * The timeout is marked overdue, so that max_late_ns does not count the reader's
	 * delay.
	 */
	due_ns = timeout_due_ns(&tw->clock, state, t->deadline_ns);
	overdue = due_ns <= twheel_edge_ns(&tw->clock);
	atomic64_set_release(&t->state, state_continued(state, overdue));
	return overdue ? WAKE_NOW : due_ns;
}

/*
 * How many periods an event that was looked at counts beyond those settled in its
 * timeout:  periods that passed unread before the look.
 */
static u64 event_periods(const struct twheel_timeout *t, u64 state,
			 const struct twheel_event *event)
	__must_hold(&tw->events.lock)
{
	if (!state_keeps_room(state) || event->deadline_ns <= t->deadline_ns)
		return 0;
	return div64_u64(event->deadline_ns - t->deadline_ns,
			 timeout_periodic(t)->interval_ns[timeout_slot(t)]);
}

/*
 * Whether a timeout still has the event that was looked at.  The state alone does not
 * tell: its sequence number may have come round to the same value, and periods that are
 * settled leave it as it is.  If other readers have taken this event and later ones since,
 * the next one has another deadline.
 */
static bool event_is_same(const struct twheel_timeout *t, u64 state,
			  const struct twheel_event *event)
	__must_hold(&tw->events.lock)
{
	u64 nr = event_periods(t, state, event), deadline_ns = t->deadline_ns;

	if (nr)
		deadline_ns += nr * timeout_periodic(t)->interval_ns[timeout_slot(t)];
	return atomic64_read(&t->state) == state &&
	       event->deadline_ns == min(deadline_ns, TWHEEL_TIME_NEVER) &&
	       periods_count(timeout_count(t, state), nr) == event->count;
}

/* How many events from the front of the list are still those that were looked at. */
static unsigned int events_as_seen(struct twheel *tw,
				   const struct twheel_event *event,
				   const struct twheel_look *look,
				   unsigned int nr)
	__must_hold(&tw->events.lock)
{
	struct twheel_timeout *t = tw->events.first;
	unsigned int i;

	for (i = 0; t && i < nr; i++, t = ready_at(&tw->arena, t->next)) {
		if (t != look->timeout[i] ||
		    !event_is_same(t, look->state[i], &event[i]))
			break;
	}
	return i;
}

/**
 * twheel_events_commit() - take events that the user has got off the ready list
 * @tw: the wheel
 * @event: the events as twheel_events_look() left them
 * @look: as twheel_events_look() left it
 * @nr: number of events that were copied as a whole
 *
 * G4 nothing lost: only events that the user has are taken.  G3 exactly one outcome: an
 * event that was revoked, has grown or was taken by another reader since the look is not taken.
 *
 * Context: process; does not sleep; no lock of the wheel may be held.
 * Return: the number of events taken.  If it is less than @nr, the rest has changed, and
 * the reader has to look again.
 */
unsigned int twheel_events_commit(struct twheel *tw,
				  const struct twheel_event *event,
				  const struct twheel_look *look,
				  unsigned int nr)
{
	struct ending ending = {};
	struct chain chain = {};
	unsigned int i, nr_completed = 0;
	u64 due_ns = WAKE_NEVER;
	bool draining;
	u32 next = 0;

	/*
	 * G3: synchronize_rcu() in twheel_drain() waits for this section, and so the
	 * draining pass finds in the inbox every timeout that goes on.
	 * Test: windows.drain_finds_what_read_is_about_to_continue
	 */
	rcu_read_lock();
	draining = READ_ONCE(tw->control.draining);
	twheel_window(WINDOW_READ_CHECKED);
	spin_lock(&tw->events.lock);
	/*
	 * With the same count, the events that were looked at are still the first ones:
	 * new events are added at the end of the list and do not count.
	 */
	if (unlikely(tw->events.changes != look->changes))
		nr = events_as_seen(tw, event, look, nr);
	for (i = 0; i < nr; i++) {
		struct twheel_timeout *t = look->timeout[i];
		u64 state = look->state[i];

		next = t->next;
		if (likely(state_is_plain_unread(state))) {
			timeout_end(&tw->arena, t, state, &ending);
			nr_completed++;
			continue;
		}
		twheel_periods_settle(tw, t, state, event_periods(t, state, &event[i]));
		/* G3 exactly one outcome: the timeout ends if the user was told so. */
		if (event[i].flags & TWHEEL_EVENT_ENDED) {
			event_end(tw, t, state, event[i].flags & TWHEEL_EVENT_DRAINED,
				  &ending);
		} else if (!draining) {
			due_ns = min(due_ns, event_continue(tw, t, state));
			chain_add(&chain, t);
		} else {
			/*
			 * The look was before DRAIN: look again, and flag the event.
			 * Test: windows.read_that_looked_before_a_drain_continues_nothing
			 */
			break;
		}
	}
	if (i) {
		tw->events.changes++;
		ready_cut(&tw->events,
			  i < nr ? look->timeout[i] : ready_at(&tw->arena, next), i);
	}
	tw->events.completed += nr_completed;
	tw->events.delivered += i;
	due_ns = inbox_add(&tw->inbox, &chain, due_ns);
	spin_unlock(&tw->events.lock);
	if (wake_is_too_late(&tw->wake, due_ns))
		twheel_wake_for(tw, due_ns);
	rcu_read_unlock();
	twheel_ending_done(tw, &ending);
	return i;
}

/**
 * twheel_events_directly() - give the oldest events to the user, and take them, one by one
 * @tw: the wheel
 * @user: out: the events, in the user's memory
 * @nr: number of events that there is space for, up to TWHEEL_BATCH
 *
 * It stands for twheel_events_look(), the copying and twheel_events_commit().  It ends where an
 * event is not that of a one-shot that has expired, or cannot be copied without serving a
 * fault.  G4 nothing lost: an event is taken after the user has all of it.
 *
 * Context: process; does not sleep; no lock of the wheel may be held.
 * Return: the number of events that the user has and that were taken; the caller goes by
 * look and commit from there.
 */
unsigned int twheel_events_directly(struct twheel *tw, struct twheel_event __user *user,
				    unsigned int nr)
{
	struct twheel_events *events = &tw->events;
	struct ending ending = {}, ended;
	struct twheel_timeout *t;
	unsigned int i = 0;
	u32 index;

	spin_lock(&tw->events.lock);
	t = events->first;
	if (!t || !tell_begin(user, nr * sizeof(*user)))
		goto out;
	index = timeout_index(t);
	do {
		u64 state = atomic64_read(&t->state);
		/* No timeout expires whose deadline is the end of time. */
		struct twheel_event event = {
			.id		= state_id(state, index),
			.user_data	= t->user_data,
			.deadline_ns	= t->deadline_ns,
			.fired_ns	= t->fired_ns,
			.count		= 1,
			.flags		= TWHEEL_EVENT_ENDED,
		};
		u32 next = t->next;

		if (unlikely(!state_is_plain_unread(state) || !tell_event(&event, &user[i])))
			break;
		timeout_end(&tw->arena, t, state, &ending);
		index = next - 1;
		t = ready_at(&tw->arena, next);
	} while (++i < nr && t);
	tell_end();
	if (i) {
		events->changes++;
		events->completed += i;
		events->delivered += i;
		ready_cut(events, t, i);
	}
out:
	spin_unlock(&tw->events.lock);
	if (i) {
		/* A copy: so @ending can be in registers, which saves 3 of 55 instructions. */
		ended = ending;
		twheel_ending_done(tw, &ended);
	}
	return i;
}

/**
 * twheel_nr_events() - tell how many events can be read
 * @tw: the wheel
 * @size: out: how long each of them is for the user, bytes.  Final if there are events;
 *	otherwise a SETUP may change it.
 *
 * Context: any; no lock is needed.
 * Return: the number of events, which may change at any time.
 */
unsigned int twheel_nr_events(struct twheel *tw, u32 *size)
{
	unsigned int nr;

	if (stand_in_matters(&tw->wake))
		twheel_stand_in_note(&tw->wake);
	nr = READ_ONCE(tw->events.nr_unread);
	twheel_window(WINDOW_EVENTS_COUNTED);
	/*
	 * Pairs with the release in twheel_start(): an event comes from a timeout that was
	 * armed after that, so a reader that sees an event sees the size as well.
	 * Test: litmus event_size
	 */
	smp_rmb();
	*size = READ_ONCE(tw->control.event_size);
	return nr;
}

/**
 * twheel_has_events() - tell whether an event can be read
 * @tw: the wheel
 *
 * If a waiter is making a pass, it wakes all waiters in the end if there are events then.
 *
 * Context: any; no lock is needed.
 * Return: true if one can; this may change at any time.
 */
bool twheel_has_events(struct twheel *tw)
{
	if (stand_in_matters(&tw->wake))
		twheel_stand_in_note(&tw->wake);
	return READ_ONCE(tw->events.nr_unread);
}

/**
 * twheel_wait_is_over() - tell whether a reader that waits has something to do
 * @tw: the wheel
 *
 * If it finds that it is not asked to make a pass, it may have been asked before, and another
 * thread makes that pass: so it looks for events after that, and not before.  Then either it
 * sees the events of the pass, or it is seen to have looked, and is woken for them.  In the
 * other order both would pass over it: to look while a waiter is asked does not count, and
 * who makes the pass wakes nobody who was asked and has not looked since.
 * Test: windows.reader_that_was_asked_and_is_late_gets_the_event
 *
 * Context: any; no lock is needed.
 * Return: true if there are events, or twheel_stand_in() is to be called; this may change at
 * any time.
 */
bool twheel_wait_is_over(struct twheel *tw)
{
	if (twheel_is_asked(tw))
		return true;
	twheel_window(WINDOW_WAIT_UNASKED);
	return twheel_has_events(tw);
}

/**
 * twheel_has_room() - tell whether one more timeout would be within max_pending
 * @tw: the wheel
 *
 * Context: any; no lock is needed.
 * Return: true if it would; this may change at any time.
 */
bool twheel_has_room(const struct twheel *tw)
{
	return atomic_read(&tw->arena.live) < READ_ONCE(tw->arena.max_pending);
}

/**
 * twheel_wait_queue() - the wait queue of readers and pollers
 * @tw: the wheel
 *
 * Context: any.
 * Return: the wait queue, which lives as long as the wheel.
 */
struct wait_queue_head *twheel_wait_queue(struct twheel *tw)
{
	return &tw->wake.waiters;
}
