// SPDX-License-Identifier: GPL-2.0
/*
 * A pass of the kthread: inbox, expiry, drain, sweep, and the look ahead
 *
 * Nobody but the kthread touches the wheel, and nobody but the kthread makes passes.
 *
 * Locks: events.lock for a batch of entries at a time, wake.lock at the beginning and the end
 * of a pass.  Neither is held while the other is taken.
 */
#include <linux/atomic.h>
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
#include "timeout.h"
#include "twheel_wheel.h"
#include "wake.h"
#include "words.h"

/*
 * Put a timeout into the wheel.  One that was due when armed does not wait for
 * an edge: the tick that it is in has begun.
 */
static __always_inline void entry_insert(struct twheel *tw,
					 const struct twheel_timeout *t,
					 u64 state, u32 index)
{
	u64 deadline_ns = READ_ONCE(t->deadline_ns);
	struct twheel_entry entry = {
		.tick	= state_is_overdue(state) ?
			  div64_u64(deadline_ns, tw->clock.tick_ns) :
			  deadline_tick(&tw->clock, deadline_ns),
		.index	= index,
		.seq	= state_seq(state),
	};

	twheel_wheel_insert(&tw->wheel, entry);
}

/* Let a timeout from the inbox into the wheel, if it still wants to. */
static void timeout_enter(struct twheel *tw, struct twheel_timeout *t,
			  struct ending *ending)
	__must_hold(&tw->events.lock)
{
	u64 next, state = timeout_state(t);

	if (state_is_queued(state)) {
		next = state_placed(state);
		if (state_change(t, state, next)) {
			entry_insert(tw, t, next, timeout_index(t));
			return;
		}
		/* Lost to a cancel, the only one who does not take the lock. */
		state = timeout_state(t);
	}
	/* It was cancelled young: DEAD. */
	atomic64_set(&t->state, state_freed(state));
	place_free(&tw->arena, t, state_freed(state), ending);
	ending->nr_room++;
}

/* Returns false when the budget ran out before the arrivals did. */
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

			/* Before it is let go: its link may be used again. */
			tw->pass.arrivals = tw->pass.arrivals->next;
			if (tw->pass.arrivals)
				prefetchw(tw->pass.arrivals);
			timeout_enter(tw, t, &ending);
			nr++;
		}
		spin_unlock(&tw->events.lock);
		atomic_sub(nr, &tw->inbox.len);
		tw->pass.sweep_left += 2 * nr;
		twheel_ending_done(tw, &ending);
		cond_resched();
		if (!budget_spend(budget, nr))
			break;
	}
	return !tw->pass.arrivals;
}

/**
 * struct expiry - a batch of expirations
 * @now_ns: the clock when the pass began
 * @edge_ns: the latest tick's edge that has passed by then
 * @fired_ns: the clock when the batch was begun
 * @nr_room: room in the wheel to be given back
 * @nr_events: events that came
 */
struct expiry {
	u64 now_ns;
	u64 edge_ns;
	u64 fired_ns;
	unsigned int nr_room;
	unsigned int nr_events;
};

/* Count an expiration and note how late it is. */
static inline void expiry_account(struct twheel *tw, const struct expiry *x,
				  u64 deadline_ns, u64 nr, bool overdue)
	__must_hold(&tw->events.lock)
{
	tw->events.expirations += nr;
	if (!overdue && x->fired_ns - deadline_ns > tw->events.max_late_ns)
		tw->events.max_late_ns = x->fired_ns - deadline_ns;
}

static inline bool timeout_expire_once(struct twheel *tw,
				       struct twheel_timeout *t, u32 index,
				       u64 state, struct expiry *x,
				       u64 deadline_ns)
	__must_hold(&tw->events.lock)
{
	/* G3: a cancel that came first has won. */
	if (!state_change(t, state, state_unread(state)))
		return false;
	WRITE_ONCE(t->deadline_ns, deadline_ns);
	t->fired_ns = x->fired_ns;
	ready_add(&tw->events, t, index);
	x->nr_events++;
	return true;
}

/*
 * Periods until @until_ns have passed; @nr of them, within the limit.  The timeout is
 * not in the wheel until its event is read, and keeps its room there.
 */
static bool timeout_expire_periodic(struct twheel *tw, struct twheel_timeout *t,
				    u64 state, struct expiry *x, u64 until_ns,
				    u64 *nr)
	__must_hold(&tw->events.lock)
{
	struct twheel_periodic *periodic = timeout_periodic(t);
	u32 slot = timeout_slot(t);
	/* Of another life, if it is gone: then the cmpxchg below fails. */
	u64 interval_ns = max(READ_ONCE(periodic->interval_ns[slot]),
			      tw->clock.tick_ns);
	u64 deadline_ns = READ_ONCE(t->deadline_ns);

	if (!state_is_fixed_delay(state))
		*nr = periods_passed(deadline_ns, interval_ns, until_ns);
	if (state_is_limited(state))
		*nr = min_t(u64, *nr, READ_ONCE(periodic->repeats_left[slot]));
	if (!state_change(t, state, state_unread(state)))
		return false;

	if (state_is_limited(state))
		periodic->repeats_left[slot] -= *nr;
	periodic->count[slot] = periods_count(0, *nr);
	WRITE_ONCE(t->deadline_ns, deadline_ns + (*nr - 1) * interval_ns);
	t->fired_ns = x->fired_ns;
	ready_add(&tw->events, t, timeout_index(t));
	x->nr_events++;
	return true;
}

/*
 * An entry came up, or was found by looking ahead, before its timeout is due.  That
 * is because the timeout was moved later, or because the clock was set back since
 * it was overdue.
 */
static void timeout_postpone(struct twheel *tw, struct twheel_timeout *t,
			     u64 state, struct expiry *x, u64 deadline_ns)
	__must_hold(&tw->events.lock)
{
	u64 next = state_not_overdue(state);

	/* Where REARM has moved it there is nothing to be written. */
	if (next != state || deadline_ns != READ_ONCE(t->deadline_ns)) {
		if (!state_change(t, state, state_rearming(state))) {
			x->nr_room++;
			return;
		}
		WRITE_ONCE(t->deadline_ns, deadline_ns);
		atomic64_set_release(&t->state, next);
	}
	entry_insert(tw, t, next, timeout_index(t));
}

/* An entry of a periodic timeout came up, which is due. */
static void periodic_expire(struct twheel *tw, struct twheel_timeout *t, u64 state,
			    struct expiry *x)
	__must_hold(&tw->events.lock)
{
	u64 nr = 1, deadline_ns = READ_ONCE(t->deadline_ns);
	bool overdue = state_is_overdue(state);
	/* Re-armed since the pass began, it may be due after x->now_ns. */
	u64 until_ns = overdue ? max(x->now_ns, deadline_ns) : x->edge_ns;

	if (timeout_expire_periodic(tw, t, state, x, until_ns, &nr))
		expiry_account(tw, x, deadline_ns, nr, overdue);
	else
		x->nr_room++;
}

/* An entry came up. */
static inline void timeout_expire(struct twheel *tw,
				  const struct twheel_entry *entry,
				  struct twheel_timeout *t, struct expiry *x)
	__must_hold(&tw->events.lock)
{
	u64 deadline_ns, state = timeout_state_or_free(t);
	bool overdue;

	lockdep_assert_held(&tw->events.lock);
	if (!state_is_armed(state) || state_seq(state) != entry->seq) {
		x->nr_room++;
		return;
	}
	/*
	 * G1 never early.  What was moved later waits, also when that has passed
	 * too: events come in the order of ticks.
	 */
	deadline_ns = timeout_deadline_ns(&tw->words, t, state);
	overdue = state_is_overdue(state);
	if (deadline_ns > (overdue ? x->fired_ns : entry->tick * tw->clock.tick_ns)) {
		timeout_postpone(tw, t, state, x, deadline_ns);
		return;
	}
	if (unlikely(state_is_periodic(state))) {
		periodic_expire(tw, t, state, x);
		return;
	}
	if (timeout_expire_once(tw, t, entry->index, state, x, deadline_ns))
		expiry_account(tw, x, deadline_ns, 1, overdue);
	x->nr_room++;
}

static int entry_compare(const void *a, const void *b)
{
	const struct twheel_entry *x = a, *y = b;

	return x->tick < y->tick ? -1 : x->tick > y->tick;
}

/* Find whose they are.  False if they are not in the order of ticks. */
static inline bool due_find(struct twheel *tw, const struct twheel_entry *due,
			    unsigned int nr, struct twheel_timeout **t)
{
	bool in_order = true;
	u64 tick = 0;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		in_order &= due[i].tick >= tick;
		tick = due[i].tick;
		t[i] = entry_timeout(&tw->arena, &due[i]);
		prefetchw(t[i]);
	}
	return in_order;
}

static void expire_batch(struct twheel *tw, struct twheel_entry *due,
			 unsigned int nr, struct expiry *x)
{
	struct twheel_timeout *t[KTHREAD_BATCH] __uninitialized;
	unsigned int i;

	x->nr_room = 0;
	x->nr_events = 0;
	rcu_read_lock();
	/* Those that came too late for their ticks are in no order. */
	if (unlikely(!due_find(tw, due, nr, t))) {
		sort(due, nr, sizeof(*due), entry_compare, NULL);
		due_find(tw, due, nr, t);
	}
	rcu_read_unlock();
	spin_lock(&tw->events.lock);
	/* The clock may have been set back since. */
	x->fired_ns = max(twheel_now(&tw->clock), x->now_ns);
	for (i = 0; i < nr; i++)
		timeout_expire(tw, &due[i], t[i], x);
	spin_unlock(&tw->events.lock);
	room_give(&tw->room, x->nr_room);
	/* One wake-up a batch. */
	if (x->nr_events)
		twheel_wake_waiters(&tw->wake, EPOLLIN | EPOLLRDNORM, x->nr_events);
}

/* Returns false when the budget ran out before the due did. */
static bool expire(struct twheel *tw, struct budget *budget)
{
	struct twheel_entry due[KTHREAD_BATCH] __uninitialized;
	struct expiry x = { .now_ns = tw->pass.now_ns };
	u64 now_tick = div64_u64(x.now_ns, tw->clock.tick_ns);
	bool more;

	x.edge_ns = now_tick * tw->clock.tick_ns;
	/* The clock was set back: what is armed now may be due before @cur. */
	if (now_tick + 1 < tw->wheel.cur && tw->wheel.rewinds)
		twheel_wheel_rewind(&tw->wheel, now_tick);
	do {
		unsigned int nr;

		nr = twheel_wheel_advance(&tw->wheel, now_tick, due,
					  KTHREAD_BATCH, &more);
		if (nr)
			expire_batch(tw, due, nr, &x);
		cond_resched();
	} while (more && budget_spend(budget, KTHREAD_BATCH));
	return !more;
}

/* What is left becomes an event flagged drained. */
static void timeout_drain(struct twheel *tw, struct twheel_timeout *t,
			  u64 now_ns)
	__must_hold(&tw->events.lock)
{
	u64 state = timeout_state(t);
	u64 deadline_ns = timeout_deadline_ns(&tw->words, t, state);
	u64 next = state_drained(state);

	if (state_is_unread(state)) {
		/* A periodic one that waits; others have expired as usual. */
		twheel_periods_settle(tw, t, state, twheel_periods_unread(&tw->clock, t, state));
		if (!timeout_has_ended(t, state, 0)) {
			room_give(&tw->room, 1);
			tw->events.changes++;
			atomic64_set(&t->state, next);
		}
		return;
	}
	if (!state_is_armed(state) || !state_change(t, state, next))
		return;
	WRITE_ONCE(t->deadline_ns, deadline_ns);
	t->fired_ns = now_ns;
	ready_add(&tw->events, t, timeout_index(t));
}

/* Returns false when the budget ran out before the pages did. */
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
		cond_resched();
	}
	return true;
}

/**
 * struct ahead - an entry that nobody has to come for
 * @t: its timeout, NULL if it is stale
 * @state: that of @t
 * @deadline_ns: that of @t, later than the entry says
 */
struct ahead {
	struct twheel_timeout *t;
	u64 state;
	u64 deadline_ns;
};

/*
 * Whether an entry is no reason to come for its slot.  One that is stale is none.
 * One whose timeout was moved later is none either, if it can be moved at least
 * as far as it has to wait now.  So an entry moves twice at most in the time that
 * its timeout is armed for, however often that is refreshed (G7).  And before the
 * first timeout is due, the kthread does not wake up for an entry that was left
 * alone more often than the time until then can be halved (G6).
 */
static inline bool entry_is_idle(struct twheel *tw,
				 const struct twheel_entry *entry,
				 struct twheel_timeout *t, struct ahead *ahead)
	__must_hold(&tw->events.lock)
{
	u64 edge_ns = entry->tick * tw->clock.tick_ns;

	*ahead = (struct ahead){};
	/* For good: its sequence number is not used again soon. */
	if (!entry_lives(entry, t))
		return true;
	ahead->t = t;
	ahead->state = timeout_state(t);
	ahead->deadline_ns = timeout_deadline_ns(&tw->words, t, ahead->state);
	/* One that was due when armed has no edge: it waits since a rewind. */
	return !state_is_overdue(ahead->state) && ahead->deadline_ns > edge_ns &&
	       ahead->deadline_ns - edge_ns >=
	       edge_ns - tw->wheel.cur * tw->clock.tick_ns;
}

/* Let nobody come for the oldest chunk of the next slot.  False if it has to stay. */
static bool chunk_clear(struct twheel *tw, struct expiry *x)
	__must_hold(&tw->events.lock)
{
	const struct twheel_chunk *chunk = twheel_wheel_peek(&tw->wheel);
	struct twheel_timeout *t[TWHEEL_CHUNK_ENTRIES] __uninitialized;
	struct ahead ahead[TWHEEL_CHUNK_ENTRIES] __uninitialized;
	unsigned int i, nr;

	lockdep_assert_held(&tw->events.lock);
	if (!chunk)
		return false;
	/* In most cases the first one is enough to know. */
	t[0] = entry_timeout(&tw->arena, &chunk->entry[0]);
	if (!entry_is_idle(tw, &chunk->entry[0], t[0], &ahead[0]))
		return false;
	nr = chunk->nr;
	for (i = 1; i < nr; i++) {
		t[i] = entry_timeout(&tw->arena, &chunk->entry[i]);
		prefetch(t[i]);
	}
	for (i = 1; i < nr; i++)
		if (!entry_is_idle(tw, &chunk->entry[i], t[i], &ahead[i]))
			return false;

	twheel_wheel_drop(&tw->wheel);
	for (i = 0; i < nr; i++) {
		if (ahead[i].t)
			timeout_postpone(tw, ahead[i].t, ahead[i].state, x,
					 ahead[i].deadline_ns);
		else
			x->nr_room++;
	}
	return true;
}

/*
 * G6 silent when idle: before the alarm is set, clear the slots that it would be
 * set for in vain.  Returns false when the budget ran out before that.
 */
static bool look_ahead(struct twheel *tw, struct budget *budget)
{
	if (tw->pass.drains)
		return true;	/* nothing is left to be waited for */
	do {
		struct expiry x = {};
		int left = KTHREAD_BATCH;
		bool cleared;

		spin_lock(&tw->events.lock);
		do {
			cleared = chunk_clear(tw, &x);
			left -= TWHEEL_CHUNK_ENTRIES;
		} while (cleared && left > 0);
		spin_unlock(&tw->events.lock);
		room_give(&tw->room, x.nr_room);
		if (!cleared)
			return true;
		cond_resched();
	} while (budget_spend(budget, KTHREAD_BATCH));
	return false;
}

static void pass_begin(struct twheel *tw)
{
	spin_lock(&tw->wake.lock);
	tw->wake.passing = true;
	tw->pass.number = tw->wake.passes_wanted;
	tw->pass.drains = tw->wake.drain_wanted;
	/* What comes from now on sets it anew, or is seen by this pass. */
	WRITE_ONCE(tw->wake.at_ns, WAKE_NEVER);
	spin_unlock(&tw->wake.lock);

	/* A full barrier; pairs with wake_for(). */
	tw->pass.arrivals = llist_del_all(&tw->inbox.list);
	/*
	 * After the inbox: what was due when armed is due now.  Once for the
	 * whole pass: what expires again meanwhile is for the next one, or a
	 * pass might never end.
	 */
	tw->pass.now_ns = twheel_now(&tw->clock);
	/* After the inbox: the chunks for what came from it are here. */
	twheel_gifts_accept(tw);
	tw->pass.drain_page = 0;
	tw->pass.sweep_left = TURN_BUDGET;
	tw->pass.begun = true;
}

static u64 wheel_next_ns(struct twheel *tw)
{
	if (tw->control.drained)
		return WAKE_NEVER;
	return tick_edge_ns(&tw->clock, min(twheel_wheel_next(&tw->wheel),
					    tw->clock.max_tick));
}

static void pass_end(struct twheel *tw, bool again)
{
	bool synced;

	if (tw->pass.drains && !tw->control.drained) {
		/* Pairs with the acquire in twheel_is_drained(). */
		smp_store_release(&tw->control.drained, true);
		twheel_wake_waiters(&tw->wake, EPOLLIN | EPOLLRDNORM | EPOLLHUP, 0);
	}
	tw->pass.begun = false;

	spin_lock(&tw->wake.lock);
	tw->wake.passing = false;
	synced = tw->wake.passes_done != tw->pass.number;
	/* Pairs with the acquire in pass_is_done(). */
	smp_store_release(&tw->wake.passes_done, tw->pass.number);
	/* What came during the pass did not cross the watermark. */
	if (again || tw->wake.passes_wanted != tw->wake.passes_done ||
	    atomic_read(&tw->inbox.len) >= INBOX_WATERMARK)
		WRITE_ONCE(tw->wake.at_ns, WAKE_NOW);
	else
		WRITE_ONCE(tw->wake.at_ns, min(tw->wake.at_ns, wheel_next_ns(tw)));
	twheel_wake_program(tw);
	spin_unlock(&tw->wake.lock);
	if (synced)
		wake_up_all(&tw->wake.pass_waiters);
}

/*
 * As much of a pass as the budget allows.  Returns false when it ran out before the
 * pass was done.
 *
 * The inbox goes first and as a whole: what it holds may be due before what the
 * wheel holds, and events come in the order of ticks.
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
	/* What is due, and the inbox, do not wait for what is far ahead. */
	again = again || tw->pass.sweeping || !look_ahead(tw, budget);
	pass_end(tw, again);
	return true;
}

/**
 * twheel_pass_turn() - take a wheel's turn with the kthread
 * @turn: &twheel_wake.turn
 * @end_ns: when the turn ends at the latest, ktime_get_ns()
 *
 * A turn is bounded in entries and in time.  G2 bounded lateness: other users, and the other
 * wheels of this one, have their turns in between.
 *
 * Context: the kthread; sleeps.
 * Return: true when there is more to be done.
 */
bool twheel_pass_turn(struct twheel_turn *turn, u64 end_ns)
{
	struct twheel *tw = container_of(turn, struct twheel, wake.turn);
	struct budget budget = { .entries = TURN_BUDGET, .end_ns = end_ns };

	if (!pass_continue(tw, &budget))
		return true;
	/* A sweep goes on in further passes, which then see that it is due. */
	if (tw->shrink.due && !tw->pass.sweeping && twheel_arena_shrink(tw, &budget))
		tw->shrink.due = false;
	return tw->shrink.due;
}
