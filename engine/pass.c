// SPDX-License-Identifier: GPL-2.0
/*
 * A pass: one round of the kthread over a wheel
 *
 *   pass_begin()          take all timeouts out of the inbox, and read the clock
 *   inbox_drain()         give each of them an entry in the wheel
 *   expire()              turn the entries that are due into events
 *   drain_pages()         after DRAIN: turn all timeouts that are left into events
 *   twheel_sweep()        drop stale entries, if there are too many (room.c)
 *   twheel_room_shrink()  give unused chunks back (room.c)
 *   look_ahead()          drop or move entries that the alarm would be set for in vain
 *   pass_end()            set the alarm, and wake callers that wait for the pass
 *
 * Whoever has the wheel's turn makes the passes, and alone touches the wheel.  That is the
 * wheel's kthread, or a waiter that stands in for it (twheel_stand_in()).  Comments say
 * "the kthread" for either.
 *
 * G5 bounded interrupt work: all this is done in process context.  Every loop here yields
 * (turn_yield()) after a batch of entries, or ends there in a waiter's pass.  A pass is cut
 * into turns, bounded in entries and in time; struct twheel_pass says where the next turn
 * goes on.
 *
 * Locks: events.lock for a batch of entries at a time, as expiring and postponing write
 * to timeouts, and for a page of places in a drain; wake.lock at the beginning and the end of a
 * pass, and under it what wake.c names.  ending.c, room.c and shrink.c take locks of their own.
 * Otherwise none of these is held while another one is taken, and waiters are woken under none.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/container_of.h>
#include <linux/llist.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/poll.h>
#include <linux/prefetch.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sort.h>
#include <linux/spinlock.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "arena.h"
#include "budget.h"
#include "clock.h"
#include "ending.h"
#include "engine.h"
#include "events.h"
#include "limits.h"
#include "pass.h"
#include "periods.h"
#include "room.h"
#include "shrink.h"
#include "slack.h"
#include "timeout.h"
#include "twheel.h"
#include "twheel_wheel.h"
#include "user.h"
#include "wake.h"
#include "window.h"
#include "words.h"

/* A waiter that stands in for the kthread works for this long, and a batch more. */
#define STAND_IN_NS	(100 * NSEC_PER_USEC)

/*
 * The entry for a timeout in this state: at the first tick whose edge is not before the
 * deadline (G1), and which its slack leaves (G2).  An overdue timeout, which was due when it
 * was armed, does not wait for an edge: it goes into the tick in which its deadline lies,
 * which has begun.
 *
 * The timeout is told of the entry here, before its state tells others that it has one.
 */
static __always_inline struct twheel_entry entry_make(struct twheel *tw,
						      struct twheel_timeout *t, u32 index,
						      u64 state, u64 deadline_ns)
	__must_hold(&tw->events.lock)
{
	struct twheel_entry entry = {
		.tick	= state_is_overdue(state) ?
			  div64_u64(deadline_ns, tw->clock.tick_ns) :
			  timeout_tick(&tw->clock, state, deadline_ns),
		.index	= index,
		.seq	= state_seq(state),
	};

	WRITE_ONCE(t->entry_ns, timeout_due_ns(&tw->clock, state, deadline_ns));
	return entry;
}

/*
 * Take a timeout that came by the inbox into the wheel, or free its place if it was
 * cancelled meanwhile.
 */
static void timeout_enter(struct twheel *tw, struct twheel_timeout *t,
			  struct ending *ending)
	__must_hold(&tw->events.lock)
{
	u64 state = timeout_state(t);

	if (state_is_queued(state)) {
		u64 next = state_placed(state);
		struct twheel_entry entry = entry_make(tw, t, timeout_index(t), next,
						       READ_ONCE(t->deadline_ns));

		twheel_window(WINDOW_PASS_ENTERS);
		if (state_change(t, state, next)) {
			twheel_wheel_insert(&tw->wheel, entry);
			return;
		}
		/* G3: CANCEL came first; all else that ends QUEUED takes events.lock. */
		state = timeout_state(t);
	}
	/* The state is DEAD: the timeout was cancelled in the inbox. */
	atomic64_set(&t->state, state_freed(state));
	place_free(&tw->arena, t, state_freed(state), ending);
	ending->nr_room++;
}

/* Empty the inbox.  Returns false when the budget ran out before that was done. */
static bool inbox_drain(struct twheel *tw, struct budget *budget)
{
	while (tw->pass.arrivals) {
		struct ending ending = {};
		unsigned int nr = 0;

		spin_lock(&tw->events.lock);
		while (tw->pass.arrivals && nr < KTHREAD_BATCH) {
			struct twheel_timeout *t =
				llist_entry(tw->pass.arrivals, struct twheel_timeout,
					    node);

			/*
			 * Read the link first.  Once the timeout is ARMED, or its place
			 * freed, other threads may reuse the link.
			 * Test: windows.link_of_an_arrival_is_read_first
			 */
			tw->pass.arrivals = tw->pass.arrivals->next;
			if (tw->pass.arrivals)
				prefetchw(tw->pass.arrivals);
			twheel_window(WINDOW_PASS_LINK);
			timeout_enter(tw, t, &ending);
			nr++;
		}
		spin_unlock(&tw->events.lock);
		atomic_sub(nr, &tw->inbox.len);
		/* G7: a pass sweeps more the more it inserts, see twheel_sweep(). */
		tw->pass.sweep_left += 2 * nr;
		twheel_ending_done(tw, &ending);
		turn_yield(tw->pass.by_waiter);
		if (!budget_spend(budget, nr))
			break;
	}
	return !tw->pass.arrivals;
}

/**
 * struct expiry - a batch of entries that are worked on; a local variable
 * @now_ns: the wheel's clock when the pass began, see clock_follow()
 * @fired_ns: the wheel's clock when the batch began, not before @now_ns
 * @fired_tick: the tick in which @fired_ns lies
 * @nr_room: entries of the batch that are gone for good: room to be given back
 * @nr_events: events that the batch has added to the ready list
 * @nr_overdue: those of them whose timeouts were due when they were armed
 * @late_tick: the tick of the latest timeouts that came after their tick
 * @nr_late: how many of them are still to be counted
 */
struct expiry {
	u64 now_ns;
	u64 fired_ns;
	u64 fired_tick;
	unsigned int nr_room;
	unsigned int nr_events;
	unsigned int nr_overdue;
	u64 late_tick;
	unsigned int nr_late;
};

/* Note how late the @nr_late timeouts were that have expired after @late_tick. */
static noinline void lateness_settle(struct twheel *tw, struct expiry *x)
	__must_hold(&tw->events.lock)
{
	struct twheel_events *events = &tw->events;
	u64 late_ns = x->fired_ns - x->late_tick * tw->clock.tick_ns;
	unsigned int nr = x->nr_late;

	x->nr_late = 0;
	if (!nr)
		return;
	events->late_ticks[min(fls64(x->fired_tick - x->late_tick),
			       TWHEEL_LATE_TICKS - 1)] += nr;
	if (late_ns <= tw->clock.tick_ns + tw->clock.slack_ns)
		return;
	events->late += nr;
	events->last_late_ns = late_ns;
	events->last_late_at_ns = x->fired_ns;
}

/*
 * Note how late @nr timeouts are (G2): max_late_ns counts from the earliest of their
 * deadlines, all else from the tick of their entries, so that slack is not lateness.
 */
static inline void lateness_account(struct twheel *tw, struct expiry *x, u64 tick,
				    u64 deadline_ns, unsigned int nr)
	__must_hold(&tw->events.lock)
{
	if (x->fired_ns - deadline_ns > tw->events.max_late_ns)
		tw->events.max_late_ns = x->fired_ns - deadline_ns;
	if (unlikely(tick < x->fired_tick)) {
		if (tick != x->late_tick) {
			lateness_settle(tw, x);
			x->late_tick = tick;
		}
		x->nr_late += nr;
	}
}

/*
 * Count the expirations of a timeout, and note how late it is.  A timeout that was due when it
 * was armed is not late.
 */
static inline void expiry_account(struct twheel *tw, struct expiry *x, u64 tick,
				  u64 deadline_ns, u64 nr, bool overdue)
	__must_hold(&tw->events.lock)
{
	tw->events.expirations += nr;
	if (overdue)
		x->nr_overdue++;
	else
		lateness_account(tw, x, tick, deadline_ns, 1);
}

/* Turn a one-shot into an event.  False if it was cancelled meanwhile. */
static inline bool timeout_expire_once(struct twheel *tw,
				       struct twheel_timeout *t, u32 index,
				       u64 state, struct expiry *x,
				       u64 deadline_ns)
	__must_hold(&tw->events.lock)
{
	twheel_window(WINDOW_PASS_EXPIRES);
	/*
	 * G3 exactly one outcome: this fails if a CANCEL came first.
	 * Test: windows.timeout_with_slack_cancelled_as_it_expires_has_no_event
	 */
	if (!state_change(t, state, state_unread(state)))
		return false;
	WRITE_ONCE(t->deadline_ns, deadline_ns);
	WRITE_ONCE(t->fired_ns, x->fired_ns);
	ready_add(&tw->events, t, index);
	x->nr_events++;
	return true;
}

/*
 * Turn a periodic timeout into one event for all periods that have passed by @until_ns,
 * or up to its repeat limit; @nr tells how many.  The caller passes @nr as 1, which is
 * right for a fixed delay.  The timeout leaves the wheel until its event is read, and
 * keeps its room for an entry.  False if it was cancelled meanwhile.
 */
static bool timeout_expire_periodic(struct twheel *tw, struct twheel_timeout *t,
				    u64 state, struct expiry *x, u64 until_ns,
				    u64 *nr)
	__must_hold(&tw->events.lock)
{
	struct twheel_periodic *periodic = timeout_periodic(t);
	u32 slot = timeout_slot(t);
	/*
	 * CANCEL takes no lock, so the fields may be those of another life by now.  Then
	 * state_change() fails below; until then, no interval may be 0.
	 */
	u64 interval_ns = max(READ_ONCE(periodic->interval_ns[slot]),
			      tw->clock.tick_ns);
	u64 deadline_ns = READ_ONCE(t->deadline_ns);

	if (!state_is_fixed_delay(state))
		*nr = periods_passed(deadline_ns, interval_ns, until_ns);
	if (state_is_limited(state))
		*nr = min_t(u64, *nr, READ_ONCE(periodic->repeats_left[slot]));
	twheel_window(WINDOW_PASS_EXPIRES);
	if (!state_change(t, state, state_unread(state)))
		return false;

	if (state_is_limited(state))
		periodic->repeats_left[slot] -= *nr;
	periodic->count[slot] = periods_count(0, *nr);
	WRITE_ONCE(t->deadline_ns, deadline_ns + (*nr - 1) * interval_ns);
	WRITE_ONCE(t->fired_ns, x->fired_ns);
	ready_add(&tw->events, t, timeout_index(t));
	x->nr_events++;
	return true;
}

/*
 * Make a later entry for a timeout, in place of one that was taken out of the wheel.  False if
 * the timeout was cancelled meanwhile.
 *
 * The entry came up, or look_ahead() found it, before the timeout is due.  Either the
 * timeout was moved later, by REARM or by a store into the refresh table; or it was
 * overdue when it was armed, and a real-time clock was set back after that; or REARM has
 * given it slack; or it was armed in a place that had kept its entry.  From now on it
 * waits for its edge as all others do.
 */
static __always_inline bool timeout_postpone(struct twheel *tw, struct twheel_timeout *t,
					     u32 index, u64 state, u64 deadline_ns,
					     struct twheel_entry *later)
	__must_hold(&tw->events.lock)
{
	u64 next = state_not_overdue(state);

	/*
	 * The fields are written under REARMING: a CANCEL, which takes no lock, cannot end the
	 * life and give the place away while they are being written.
	 * Test: windows.cancel_waits_while_a_pass_writes_a_refreshed_deadline
	 */
	if (!state_change(t, state, state_rearming(state)))
		return false;
	twheel_window(WINDOW_PASS_POSTPONES);
	WRITE_ONCE(t->deadline_ns, deadline_ns);
	*later = entry_make(tw, t, index, next, deadline_ns);
	atomic64_set_release(&t->state, next);
	return true;
}

/* Postpone a timeout whose entry came up.  False if it was cancelled meanwhile. */
static noinline bool expiry_postpone(struct twheel *tw, struct twheel_timeout *t, u32 index,
				     u64 state, u64 deadline_ns)
	__must_hold(&tw->events.lock)
{
	struct twheel_entry later;

	if (!timeout_postpone(tw, t, index, state, deadline_ns, &later))
		return false;
	twheel_wheel_insert(&tw->wheel, later);
	return true;
}

/*
 * The entry of a periodic timeout came up, and the timeout is due.  False if it was
 * cancelled meanwhile.
 */
static bool periodic_expire(struct twheel *tw, u64 tick, struct twheel_timeout *t,
			    u64 state, struct expiry *x, u64 now_ns)
	__must_hold(&tw->events.lock)
{
	u64 nr = 1, deadline_ns = READ_ONCE(t->deadline_ns);
	u64 edge_ns = div64_u64(now_ns, tw->clock.tick_ns) * tw->clock.tick_ns;
	bool overdue = state_is_overdue(state);
	u64 until_ns = overdue ? now_ns : slack_edge_ns(&tw->clock, state, edge_ns);

	/*
	 * The deadline has passed, in any case, and stands for one period at least.  Yet it
	 * may be later than @until_ns: an overdue timeout may have been re-armed while it
	 * waited among the arrivals, and a clock that was set back may be before the edge at
	 * which the timeout came up.
	 */
	until_ns = max(until_ns, deadline_ns);
	if (!timeout_expire_periodic(tw, t, state, x, until_ns, &nr))
		return false;
	expiry_account(tw, x, tick, deadline_ns, nr, overdue);
	return true;
}

/*
 * The wheel's clock, for a timeout that is about to expire.  G1 never early: a clock that
 * can be set back is read after the timeout's state.  Since the pass began, it may have
 * been set back, and the timeout armed after that, with the entry that it had.
 */
static inline u64 expiry_clock_ns(const struct twheel *tw, const struct expiry *x)
{
	return unlikely(tw->wheel.rewinds) ? twheel_now(&tw->clock) : x->fired_ns;
}

/*
 * The entry of a timeout came up: its tick has passed.  The timeout expires if it is due,
 * or is postponed.  False if it was cancelled meanwhile.
 */
static inline bool timeout_expire(struct twheel *tw,
				  const struct twheel_entry *entry,
				  struct twheel_timeout *t, u64 state,
				  struct expiry *x)
	__must_hold(&tw->events.lock)
{
	u64 deadline_ns, clock_ns = expiry_clock_ns(tw, x);
	bool overdue;

	/*
	 * G1 never early: a timeout that was moved later than the tick of its entry is
	 * postponed, even if the new deadline has passed as well.  It then comes up in
	 * the tick where it belongs, in this pass if need be, for events come in the
	 * order of ticks.  An overdue timeout belongs to no tick: its deadline is
	 * compared to the clock.  The end of time is in no tick, though it may be an edge.
	 */
	deadline_ns = timeout_deadline_ns(&tw->words, t, entry->index, state);
	overdue = state_is_overdue(state);
	if (deadline_ns > (overdue ? clock_ns : entry->tick * tw->clock.tick_ns) ||
	    unlikely(deadline_ns >= TWHEEL_TIME_NEVER))
		return expiry_postpone(tw, t, entry->index, state, deadline_ns);
	/* The clock was set back.  The wheel, when it follows, puts the entry in its place. */
	if (unlikely(deadline_ns > clock_ns)) {
		twheel_wheel_insert(&tw->wheel, *entry);
		return true;
	}
	if (unlikely(!state_is_plain(state))) {
		if (entry_is_before_slack(state, entry->tick))
			return expiry_postpone(tw, t, entry->index, state, deadline_ns);
		if (state_is_periodic(state))
			return periodic_expire(tw, entry->tick, t, state, x,
					       min(x->now_ns, clock_ns));
	}
	if (!timeout_expire_once(tw, t, entry->index, state, x, deadline_ns))
		return false;
	expiry_account(tw, x, entry->tick, deadline_ns, 1, overdue);
	x->nr_room++;
	return true;
}

/*
 * An entry came up.  If it is stale, or a free place has kept it, its room is given back.
 * A timeout that was cancelled meanwhile may have left the entry to its place, and another
 * timeout may have been armed there since then: so the entry is looked at again.
 * Test: windows.timeout_expires_that_is_armed_in_place_of_one_that_was_about_to,
 * windows.timeout_expires_that_is_armed_in_place_of_one_with_slack_that_was_about_to
 */
static inline void entry_expire(struct twheel *tw,
				const struct twheel_entry *entry,
				struct twheel_timeout *t, struct expiry *x)
	__must_hold(&tw->events.lock)
{
	u64 state;

	lockdep_assert_held(&tw->events.lock);
	do {
		state = entry_claim(entry->seq, t);
		if (!entry_lives(entry->seq, state)) {
			x->nr_room++;
			return;
		}
	} while (unlikely(!timeout_expire(tw, entry, t, state, x)));
}

static int entry_compare(const void *a, const void *b)
{
	const struct twheel_entry *x = a, *y = b;

	return x->tick < y->tick ? -1 : x->tick > y->tick;
}

/*
 * Let one-shots expire until one comes that is not as usual: its entry is stale, it has a
 * period or slack, it was due when it was armed, it was moved later, or it is cancelled just
 * now.  Returns how many have expired.  The work is that of entry_expire(); but whatever is
 * the same for all of them is done once.
 *
 * G1 never early: the caller has seen that all entries are for one tick, and that the clock
 * of the wheel cannot be set back.  So the tick has passed.
 */
static __always_inline unsigned int expire_plain(struct twheel *tw,
						 const struct twheel_entry *due,
						 struct twheel_timeout **timeout,
						 unsigned int nr, struct expiry *x)
	__must_hold(&tw->events.lock)
{
	struct twheel_events *events = &tw->events;
	/* The end of time is in no tick, though it may be an edge. */
	u64 edge_ns = min(due->tick * tw->clock.tick_ns, TWHEEL_TIME_NEVER - 1);
	u64 fired_ns = x->fired_ns, earliest_ns = x->fired_ns;
	u32 ignored, *next = &ignored, link = events->last_link;
	unsigned int i;

	lockdep_assert_held(&events->lock);
	for (i = 0; i < nr; i++) {
		struct twheel_timeout *t = timeout[i];
		u64 deadline_ns, state = timeout_state_or_free(t);

		if (unlikely(!state_is_plain_armed(state, due[i].seq)))
			break;
		deadline_ns = timeout_deadline_ns(&tw->words, t, due[i].index, state);
		if (unlikely(deadline_ns > edge_ns))
			break;
		twheel_window(WINDOW_PASS_EXPIRES);
		/*
		 * G3 exactly one outcome: this fails if a CANCEL came first.
		 * Test: windows.timeout_cancelled_as_it_expires_has_no_event
		 */
		if (unlikely(!state_change(t, state, state_unread(state))))
			break;
		WRITE_ONCE(t->deadline_ns, deadline_ns);
		WRITE_ONCE(t->fired_ns, fired_ns);
		earliest_ns = min(earliest_ns, deadline_ns);
		t->prev = link;
		link = due[i].index + 1;
		*next = link;
		next = &t->next;
	}
	if (!i)
		return 0;
	ready_append(events, timeout[0], due[0].index, timeout[i - 1], due[i - 1].index, i);
	events->expirations += i;
	lateness_account(tw, x, due->tick, earliest_ns, i);
	x->nr_events += i;
	x->nr_room += i;
	return i;
}

/*
 * Find the timeouts of a batch of entries.  Returns whether all entries are for one tick.
 */
static inline bool due_find(struct twheel *tw, const struct twheel_entry *due,
			    unsigned int nr, struct twheel_timeout **t)
{
	u64 differ = 0;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		differ |= due[i].tick ^ due[0].tick;
		t[i] = entry_timeout(&tw->arena, &due[i]);
		prefetchw(t[i]);
	}
	return !differ;
}

/* Expire or postpone the timeouts of a batch of entries, and wake readers and pollers. */
static void expire_batch(struct twheel *tw, struct twheel_entry *due,
			 unsigned int nr, struct expiry *x)
{
	struct twheel_timeout *t[KTHREAD_BATCH] __uninitialized;
	bool one_tick, usual;
	unsigned int i, n;

	x->nr_room = 0;
	x->nr_events = 0;
	x->nr_overdue = 0;
	rcu_read_lock();
	one_tick = due_find(tw, due, nr, t);
	/* The wheel hands out in no order the entries that came after their ticks. */
	if (unlikely(!one_tick)) {
		sort(due, nr, sizeof(*due), entry_compare, NULL);
		due_find(tw, due, nr, t);
	}
	rcu_read_unlock();
	spin_lock(&tw->events.lock);
	/* The clock may have been set back since the pass began. */
	x->fired_ns = max(twheel_now(&tw->clock), x->now_ns);
	x->fired_tick = div64_u64(x->fired_ns, tw->clock.tick_ns);
	usual = one_tick && !tw->wheel.rewinds;
	for (i = 0; i < nr; i += n) {
		n = likely(usual) ? expire_plain(tw, &due[i], &t[i], nr - i, x) : 0;
		if (!n) {
			entry_expire(tw, &due[i], t[i], x);
			n = 1;
		}
	}
	lateness_settle(tw, x);
	tw->events.expired += x->nr_events - x->nr_overdue;
	spin_unlock(&tw->events.lock);
	room_give(&tw->room, x->nr_room);
	twheel_window(WINDOW_PASS_EXPIRED);
	/* One wake-up for the batch, under no lock: it runs the callbacks of epoll. */
	if (x->nr_events)
		twheel_wake_for_events(tw, x->nr_events);
}

/*
 * Return the tick up to which the pass lets timeouts expire.  If the clock was set back,
 * be it since the pass began, the wheel goes back with it: timeouts armed from now on may
 * be due before tick @cur.
 */
static u64 clock_follow(struct twheel *tw)
{
	u64 now_tick;

	if (unlikely(tw->wheel.rewinds))
		tw->pass.now_ns = min(tw->pass.now_ns, twheel_now(&tw->clock));
	now_tick = div64_u64(tw->pass.now_ns, tw->clock.tick_ns);
	if (unlikely(now_tick + 1 < tw->wheel.cur) && tw->wheel.rewinds)
		twheel_wheel_rewind(&tw->wheel, now_tick);
	return now_tick;
}

/* Expire all that is due.  Returns false when the budget ran out before that was done. */
static bool expire(struct twheel *tw, struct budget *budget)
{
	struct twheel_entry due[KTHREAD_BATCH] __uninitialized;
	struct expiry x = {};
	bool more;

	do {
		u64 now_tick = clock_follow(tw);
		unsigned int nr;

		x.now_ns = tw->pass.now_ns;
		nr = twheel_wheel_advance(&tw->wheel, now_tick, due,
					  KTHREAD_BATCH, &more);
		if (nr)
			expire_batch(tw, due, nr, &x);
		turn_yield(tw->pass.by_waiter);
	} while (more && budget_spend(budget, KTHREAD_BATCH));
	return !more;
}

/*
 * Turn a timeout that is left after DRAIN into an event flagged drained (G3).  Its place
 * may also be free, or its event unread: a one-shot's event stays as it is, a periodic
 * timeout's is flagged unless it was the last one anyway.
 */
static void timeout_drain(struct twheel *tw, struct twheel_timeout *t,
			  u64 now_ns)
	__must_hold(&tw->events.lock)
{
	u64 state = timeout_state(t);
	u64 deadline_ns = timeout_deadline_ns(&tw->words, t, timeout_index(t), state);
	u64 next = state_drained(state);

	if (state_is_unread(state)) {
		twheel_periods_settle(tw, t, state,
				      twheel_periods_unread(&tw->clock, t, state));
		if (!timeout_has_ended(t, state, 0)) {
			room_give(&tw->room, 1);
			tw->events.changes++;
			atomic64_set(&t->state, next);
		}
		return;
	}
	twheel_window(WINDOW_PASS_DRAINS);
	if (!state_is_armed(state) || !state_change(t, state, next))
		return;
	WRITE_ONCE(t->deadline_ns, deadline_ns);
	WRITE_ONCE(t->fired_ns, now_ns);
	ready_add(&tw->events, t, timeout_index(t));
}

/*
 * Turn all timeouts that are left into events, page by page.  Returns false when the
 * budget ran out before that was done.
 */
static bool drain_pages(struct twheel *tw, struct budget *budget)
{
	struct twheel_page *page;
	u32 i;

	while (tw->pass.drain_page < READ_ONCE(tw->arena.places.nr)) {
		u64 now_ns = twheel_now(&tw->clock);

		if (budget_is_spent(budget))
			return false;
		spin_lock(&tw->events.lock);
		page = page_at(&tw->arena, tw->pass.drain_page++);
		for (i = 0; page && i < PLACES_PER_PAGE; i++)
			timeout_drain(tw, &page->timeout[i], now_ns);
		spin_unlock(&tw->events.lock);
		budget_spend(budget, PLACES_PER_PAGE);
		turn_yield(tw->pass.by_waiter);
	}
	return true;
}

/*
 * Whether the kthread need not wake up for the live entry of a timeout, because the timeout
 * was moved later, and it can move the entry now.  The entry has to move at least as far as
 * it still has to wait.
 *
 * That condition bounds both kinds of work.  G7: each move at least doubles the wait of
 * the entry, so it is moved at most twice in the time that its timeout is armed for,
 * however often that is refreshed.  G6: an entry that is left where it is, although its
 * timeout was moved later, makes the kthread wake up in vain.  But by that wake-up more
 * than half of the time until the first timeout is due has passed, so there are at most
 * as many of these wake-ups as that time can be halved.
 */
static inline bool entry_is_idle(const struct twheel *tw, u64 tick, u64 state, u64 deadline_ns)
{
	u64 edge_ns = tick * tw->clock.tick_ns;
	u64 due_ns = timeout_due_ns(&tw->clock, state, deadline_ns);

	/*
	 * An overdue timeout is not moved ahead: it has no edge to wait for.  It can be
	 * here only after a rewind, and is postponed when its entry comes up.
	 */
	return !state_is_overdue(state) && due_ns > edge_ns &&
	       due_ns - edge_ns >= edge_ns - tw->wheel.cur * tw->clock.tick_ns;
}

/*
 * Make the entry of a timeout that was moved later, in place of @entry.  The timeout may have
 * been cancelled meanwhile, and the place, which keeps the entry, may have another one.  False
 * if it has none.
 */
static __always_inline bool entry_move(struct twheel *tw, const struct twheel_entry *entry,
				       struct twheel_timeout *t, u64 state, u64 deadline_ns,
				       struct twheel_entry *later)
	__must_hold(&tw->events.lock)
{
	while (unlikely(!timeout_postpone(tw, t, entry->index, state, deadline_ns, later))) {
		state = entry_claim(entry->seq, t);
		if (!entry_lives(entry->seq, state))
			return false;
		deadline_ns = timeout_deadline_ns(&tw->words, t, entry->index, state);
	}
	return true;
}

/*
 * Clear the oldest chunk of the next slot of entries for which the kthread need not wake up.
 * One that is stale, or that a place has kept, is dropped; one whose timeout was moved later
 * is moved; others go back into the slot.  False if there is no such slot, or if the kthread
 * has to wake up for the first entry.
 *
 * A stale entry stays stale: its place gets a new sequence number with each entry, and uses
 * a million of them before the same one comes again.  One whose page was removed may meet
 * its number in a new page, and is an entry too many then.
 */
static bool chunk_clear(struct twheel *tw, struct expiry *x)
	__must_hold(&tw->events.lock)
{
	const struct twheel_chunk *next = twheel_wheel_peek(&tw->wheel);
	struct twheel_timeout *t[TWHEEL_CHUNK_ENTRIES] __uninitialized;
	unsigned int i, nr, nr_left = 0;
	struct twheel_chunk *chunk;
	u64 state, deadline_ns = 0;

	lockdep_assert_held(&tw->events.lock);
	if (!next)
		return false;
	t[0] = entry_timeout(&tw->arena, next->entry);
	state = entry_claim(next->entry->seq, t[0]);
	if (entry_lives(next->entry->seq, state)) {
		deadline_ns = timeout_deadline_ns(&tw->words, t[0], next->entry->index, state);
		if (!entry_is_idle(tw, next->entry->tick, state, deadline_ns))
			return false;
	}
	/* In most cases the first entry lives, and decides: the others wait till here. */
	nr = next->nr;
	entries_fetch(&tw->arena, &next->entry[1], nr - 1, &t[1]);
	chunk = twheel_wheel_take_out(&tw->wheel);
	for (i = 0; i < nr; i++) {
		struct twheel_entry *entry = &chunk->entry[i];

		if (i)
			state = entry_claim(entry->seq, t[i]);
		if (!entry_lives(entry->seq, state))
			continue;
		if (i)
			deadline_ns = timeout_deadline_ns(&tw->words, t[i], entry->index, state);
		if (i && !entry_is_idle(tw, entry->tick, state, deadline_ns))
			chunk->entry[nr_left++] = *entry;
		else if (entry_move(tw, entry, t[i], state, deadline_ns, &chunk->entry[nr_left]))
			nr_left++;
	}
	x->nr_room += nr - nr_left;
	chunk->nr = nr_left;
	twheel_wheel_put_back(&tw->wheel, chunk);
	return true;
}

/*
 * G6 silent when idle: before the alarm is set, empty the slots that it would be set for
 * in vain.  Returns false when the budget ran out before that was done.
 */
static bool look_ahead(struct twheel *tw, struct budget *budget)
{
	int left;

	if (tw->pass.drains)
		return true;	/* no timeout is left to wake up for */
	do {
		struct expiry x = {};
		bool cleared;

		left = KTHREAD_BATCH;
		spin_lock(&tw->events.lock);
		do {
			cleared = chunk_clear(tw, &x);
			left -= TWHEEL_CHUNK_ENTRIES;
		} while (cleared && left > 0);
		spin_unlock(&tw->events.lock);
		room_give(&tw->room, x.nr_room);
		if (!cleared)
			return true;
		turn_yield(tw->pass.by_waiter);
	} while (budget_spend(budget, KTHREAD_BATCH - left));
	return false;
}

/*
 * Begin a pass.  The order matters:
 *
 * 1. Under wake.lock, note which requests this pass satisfies, and set at_ns to
 *    WAKE_NEVER.
 * 2. Empty the inbox.  A caller first adds to the inbox and then reads at_ns.  If this
 *    step misses its timeout, the caller finds WAKE_NEVER there, and asks for the time
 *    that it needs; pass_end() heeds that.
 * 3. Read the clock, after the inbox: a timeout that was due when it was armed is then
 *    due at now_ns, too.  One reading serves the whole pass, unless the clock is set back
 *    (clock_follow()).  Timeouts that become due later are for the next pass, or a
 *    periodic one could make the pass go on for ever.
 * 4. Accept new chunks, after the inbox: their callers provided them before they added to
 *    the inbox, so there is a chunk for every entry (G4).
 *
 * Test: litmus inbox_state, inbox_clock, inbox_chunks
 */
static void pass_begin(struct twheel *tw)
{
	spin_lock_bh(&tw->wake.lock);
	tw->wake.passing = true;
	tw->pass.number = tw->wake.passes_wanted;
	tw->pass.drains = tw->wake.drain_wanted;
	twheel_stand_in_late(&tw->wake);
	WRITE_ONCE(tw->wake.at_ns, WAKE_NEVER);
	spin_unlock_bh(&tw->wake.lock);
	twheel_window(WINDOW_PASS_NOTED);

	/*
	 * A full barrier, as llist_add_batch() is: see wake_is_too_late().
	 * Test: litmus wake_arm, wake_rearm, wake_read
	 */
	tw->pass.arrivals = llist_del_all(&tw->inbox.list);
	tw->pass.now_ns = twheel_now(&tw->clock);
	twheel_window(WINDOW_PASS_EMPTIED);
	twheel_gifts_accept(tw);
	tw->pass.drain_page = 0;
	tw->pass.sweep_left = TURN_BUDGET;
	tw->pass.begun = true;
}

/* When the next entry of the wheel comes up; WAKE_NEVER if none does. */
static u64 wheel_next_ns(struct twheel *tw)
{
	if (tw->control.drained)
		return WAKE_NEVER;
	return tick_edge_ns(&tw->clock, min(twheel_wheel_next(&tw->wheel),
					    tw->clock.max_tick));
}

/*
 * End a pass, and set the alarm for the next one, which is made at once if @again.
 *
 * While the pass went on, wake.passing kept callers from setting the alarm: they only
 * lowered at_ns.  Here the earliest of their times and of the wheel's next entry is
 * chosen under wake.lock, so that none is missed (G2).  No alarm is set when nothing
 * pends (G6).
 */
static void pass_end(struct twheel *tw, bool again)
{
	bool synced;

	if (tw->pass.drains && !tw->control.drained) {
		twheel_window(WINDOW_PASS_EMPTY);
		/*
		 * Pairs with the acquire in twheel_is_drained(): a caller that sees this
		 * also sees all events on the ready list.
		 * Test: litmus drained_read, drained_poll
		 */
		smp_store_release(&tw->control.drained, true);
		twheel_window(WINDOW_PASS_DRAINED);
		twheel_wake_waiters(&tw->wake, EPOLLIN | EPOLLRDNORM | EPOLLHUP, 0);
	}
	tw->pass.begun = false;

	spin_lock_bh(&tw->wake.lock);
	tw->wake.passing = false;
	synced = tw->wake.passes_done != tw->pass.number;
	/*
	 * Pairs with the acquire in pass_is_done(): the waiter sees the pass's work.
	 * Test: litmus passes_done, waiters_pass, waiters_pass_killable
	 */
	smp_store_release(&tw->wake.passes_done, tw->pass.number);
	/*
	 * inbox_add() asks for a pass when the length crosses the watermark.  Timeouts
	 * added during this pass may not have crossed it, because those being taken out
	 * of the inbox still counted; so the length is looked at here.
	 */
	if (again || tw->wake.passes_wanted != tw->wake.passes_done ||
	    atomic_read(&tw->inbox.len) >= INBOX_WATERMARK)
		WRITE_ONCE(tw->wake.at_ns, WAKE_NOW);
	else
		WRITE_ONCE(tw->wake.at_ns, min(tw->wake.at_ns, wheel_next_ns(tw)));
	twheel_wake_program(tw);
	spin_unlock_bh(&tw->wake.lock);
	twheel_window(WINDOW_PASS_COUNTED);
	if (synced)
		wake_up_all(&tw->wake.pass_waiters);
}

/*
 * Do as much of a pass as the budget allows.  Returns false when the budget ran out
 * before the pass was done.
 *
 * The inbox goes first and as a whole.  A timeout in it may be due before those in the
 * wheel, and events come in the order of ticks.
 */
static bool pass_continue(struct twheel *tw, struct budget *budget)
{
	bool again;

	if (!tw->pass.begun)
		pass_begin(tw);
	if (!inbox_drain(tw, budget) || !expire(tw, budget) ||
	    (tw->pass.drains && !tw->control.drained && !drain_pages(tw, budget)) ||
	    !twheel_sweep(tw, budget))
		return false;
	again = twheel_room_shrink(tw);
	/* A long look ahead goes on in the next pass, after the inbox and expiry. */
	again = again || tw->pass.sweeping || !look_ahead(tw, budget);
	pass_end(tw, again);
	return true;
}

/**
 * twheel_pass_turn() - take a wheel's turn with the kthread
 * @turn: &twheel_wake.turn
 * @end_ns: when the turn has to end, ktime_get_ns()
 *
 * G2 bounded lateness: a turn is bounded in entries and in time, so that the wheels of
 * other users, and the other wheels of this user, have their turns in between.
 *
 * Context: the kthread; sleeps; no lock is held.
 * Return: true when the wheel needs another turn.
 */
bool twheel_pass_turn(struct twheel_turn *turn, u64 end_ns)
{
	struct twheel *tw = container_of(turn, struct twheel, wake.turn);
	struct budget budget = { .entries = TURN_BUDGET, .end_ns = end_ns };

	if (!pass_continue(tw, &budget))
		return true;
	/* Pages are given back between passes, and not before a sweep has ended. */
	if (tw->shrink.due && !tw->pass.sweeping && twheel_arena_shrink(tw, &budget))
		WRITE_ONCE(tw->shrink.due, false);
	return tw->shrink.due;
}

/**
 * twheel_stand_in() - make the pass that a waiter was woken for, in place of the kthread
 * @tw: the wheel
 *
 * poll and read call it, and then look for events.  It does nothing if no pass is due for
 * which the softirq has woken a waiter, or if the kthread is making it.  What is more than
 * fits into a turn is left to the kthread; so is giving pages of places back.
 *
 * Context: process; sleeps; under none of the engine's locks.
 */
void twheel_stand_in(struct twheel *tw)
{
	struct budget budget = { .entries = TURN_BUDGET, .by_waiter = true };
	bool done;

	if (!twheel_stand_in_begin(tw))
		return;
	budget.end_ns = ktime_get_ns() + STAND_IN_NS;
	tw->pass.by_waiter = true;
	done = pass_continue(tw, &budget);
	tw->pass.by_waiter = false;
	twheel_stand_in_end(tw, !done || READ_ONCE(tw->shrink.due));
}
