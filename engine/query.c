// SPDX-License-Identifier: GPL-2.0
/*
 * QUERY, LIST and INFO: tell the state of timeouts and of the wheel; nothing is changed
 *
 * Locks: events.lock, so that no timeout is REARMING, and fields agree with each other.
 * It is held for a batch of timeouts or for a page of places at a time, never for all of
 * them.  INFO takes control.mutex in a wheel that has not started, since SETUP may be at
 * work there.  The two are not nested.  Holding a spinlock counts as an RCU read-side
 * section: pages that are found under events.lock are not freed before it is released.
 */
#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "arena.h"
#include "clock.h"
#include "control.h"
#include "engine.h"
#include "periods.h"
#include "slack.h"
#include "timeout.h"
#include "twheel.h"
#include "words.h"

/*
 * Whether an UNREAD timeout waits for another period at the same time.  A fixed rate goes
 * on while the event is unread, up to the repeat limit; a fixed delay begins when it is
 * read.  @nr is the number of periods that have passed unread.
 */
static bool unread_is_pending(const struct twheel_timeout *t, u64 state, u64 nr)
	__must_hold(&tw->events.lock)
{
	return state_keeps_room(state) && !state_is_fixed_delay(state) &&
	       !timeout_has_ended(t, state, nr);
}

/*
 * Add the periods that have passed unread to the status of an UNREAD timeout.  Returns
 * whether it waits for another one, whose deadline the status then has.
 */
static bool status_count_periods(struct twheel *tw, const struct twheel_timeout *t,
				 u64 state, struct twheel_status *status)
	__must_hold(&tw->events.lock)
{
	u64 nr = twheel_periods_unread(&tw->clock, t, state);
	bool waits = unread_is_pending(t, state, nr);

	status->count = periods_count(status->count, nr);
	if (state_is_limited(state))
		status->repeats_left -= nr;
	status->deadline_ns += (nr + waits) * status->interval_ns;
	return waits;
}

/* Tell the state of a timeout that is live; false if it was cancelled meanwhile. */
static bool timeout_status(struct twheel *tw, struct twheel_timeout *t,
			   u64 state, u64 now_ns, struct twheel_status *status)
	__must_hold(&tw->events.lock)
{
	/* All members are named, or the compiler clears a struct of this size by a loop. */
	*status = (struct twheel_status){
		.id		= timeout_id(t, state),
		.result		= 0,
		.state		= TWHEEL_STATE_PENDING,
		.user_data	= READ_ONCE(t->user_data),
		.deadline_ns	= timeout_deadline_ns(&tw->words, t, timeout_index(t),
					      state),
		.left_ns	= 0,
		.interval_ns	= 0,
		.flags		= 0,
		.repeats_left	= 0,
		.count		= timeout_count(t, state),
		.deliveries	= 0,
		.slack_ticks	= state_slack_ticks(state),
		.reserved	= 0,
	};
	bool waits = state_is_pending(state);

	if (state_is_drained(state))
		status->state = TWHEEL_STATE_DRAINED;
	else if (state_is_unread(state))
		status->state = TWHEEL_STATE_EXPIRED;
	if (state_is_periodic(state)) {
		struct twheel_periodic *periodic = timeout_periodic(t);
		u32 slot = timeout_slot(t);

		status->interval_ns = READ_ONCE(periodic->interval_ns[slot]);
		status->deliveries = READ_ONCE(periodic->deliveries[slot]);
		status->repeats_left = READ_ONCE(periodic->repeats_left[slot]);
	}
	if (state_is_fixed_delay(state))
		status->flags = TWHEEL_ARM_FIXED_DELAY;
	if (state_is_unread(state))
		waits = status_count_periods(tw, t, state, status);
	status->deadline_ns = min(status->deadline_ns, TWHEEL_TIME_NEVER);
	if (waits && status->deadline_ns > now_ns)
		status->left_ns = status->deadline_ns == TWHEEL_TIME_NEVER ?
				  TWHEEL_TIME_NEVER :
				  status->deadline_ns - now_ns;
	/*
	 * G8 stale ids are harmless: a CANCEL takes no lock, so the place may belong to
	 * another timeout by now, and the fields read above may be that one's.  The
	 * barrier orders those reads before the generation is read again.
	 * Test: litmus query_reused
	 */
	smp_rmb();
	return state_gen(atomic64_read(&t->state)) == state_gen(state);
}

/**
 * twheel_query() - tell the state of a batch of timeouts
 * @tw: the wheel
 * @status: the batch; in: ids; out: all else, with -ENOENT as result for an id that names
 *	no timeout
 * @nr: number of ids, up to TWHEEL_BATCH
 *
 * Context: process; does not sleep.
 */
void twheel_query(struct twheel *tw, struct twheel_status *status,
		  unsigned int nr)
{
	u64 state, now_ns = twheel_now(&tw->clock);
	unsigned int i;

	spin_lock(&tw->events.lock);
	for (i = 0; i < nr; i++) {
		struct twheel_timeout *t;

		t = timeout_by_id(&tw->arena, status[i].id, &state);
		if (!t || !timeout_status(tw, t, state, now_ns, &status[i]))
			status[i].result = -ENOENT;
	}
	spin_unlock(&tw->events.lock);
}

/**
 * twheel_list() - take one step in a walk over all timeouts
 * @tw: the wheel
 * @cursor: in: index of the place to begin with; out: index of the place to go on with
 * @status: out: a row for each live timeout that was found
 * @nr: number of rows that there is space for, up to TWHEEL_BATCH
 *
 * A step ends with a page of places at the latest, so the lock is held only briefly.  A
 * walk goes by index and a timeout keeps its place for life: a timeout that nobody
 * touches appears exactly once.
 *
 * Context: process; does not sleep.
 * Return: the number of rows, which may be 0 in the middle of a walk; -1 when the cursor
 * is past the last place.
 */
int twheel_list(struct twheel *tw, u64 *cursor, struct twheel_status *status,
		unsigned int nr)
{
	u64 now_ns = twheel_now(&tw->clock);
	struct twheel_page *page;
	u32 page_nr, slot;
	int i = 0;

	if (*cursor >= (u64)READ_ONCE(tw->arena.places.nr) * PLACES_PER_PAGE)
		return -1;
	page_nr = (u32)*cursor / PLACES_PER_PAGE;
	slot = (u32)*cursor % PLACES_PER_PAGE;
	spin_lock(&tw->events.lock);
	page = page_at(&tw->arena, page_nr);
	if (!page)
		slot = PLACES_PER_PAGE;
	for (; slot < PLACES_PER_PAGE && i < nr; slot++) {
		struct twheel_timeout *t = &page->timeout[slot];
		u64 state = timeout_state(t);

		if (state_is_live(state) &&
		    timeout_status(tw, t, state, now_ns, &status[i]))
			i++;
	}
	spin_unlock(&tw->events.lock);
	*cursor = (u64)page_nr * PLACES_PER_PAGE + slot;
	return i;
}

/**
 * struct outlook - the part of INFO that takes a walk over all places; a local variable
 * @next_ns: when the first timeout is due, TWHEEL_TIME_NEVER if no timeout is pending
 * @nr_both: number of timeouts that are pending and have an unread event
 */
struct outlook {
	u64 next_ns;
	u32 nr_both;
};

/* Add the timeouts of a page to the outlook. */
static void page_look(struct twheel *tw, const struct twheel_page *page,
		      struct outlook *outlook)
	__must_hold(&tw->events.lock)
{
	u32 i;

	for (i = 0; i < PLACES_PER_PAGE; i++) {
		const struct twheel_timeout *t = &page->timeout[i];
		u64 state = timeout_state(t);
		u64 deadline_ns;

		if (state_is_pending(state)) {
			deadline_ns = timeout_deadline_ns(&tw->words, t, page->first_index + i,
							  state);
		} else if (state_keeps_room(state)) {
			u64 nr = twheel_periods_unread(&tw->clock, t, state);

			if (!unread_is_pending(t, state, nr))
				continue;
			outlook->nr_both++;
			deadline_ns = t->deadline_ns +
				      (nr + 1) * page->periodic->interval_ns[i];
		} else {
			continue;
		}
		outlook->next_ns = min(outlook->next_ns,
				       timeout_due_ns(&tw->clock, state, deadline_ns));
	}
}

/* Walk over all places; 0, or -EINTR by a fatal signal. */
static int twheel_look_out(struct twheel *tw, struct outlook *outlook)
{
	struct twheel_page *page;
	u32 nr;

	*outlook = (struct outlook){ .next_ns = TWHEEL_TIME_NEVER };
	for (nr = 0; nr < READ_ONCE(tw->arena.places.nr); nr++) {
		/*
		 * Under the lock no timeout is REARMING, a state that would not be
		 * counted.
		 */
		spin_lock(&tw->events.lock);
		page = page_at(&tw->arena, nr);
		if (page)
			page_look(tw, page, outlook);
		spin_unlock(&tw->events.lock);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static_assert(WAKE_NEVER == TWHEEL_NO_EXPIRY);

/* When the earliest timeout will expire: G1, its deadline is rounded up to a tick. */
static u64 next_expiry_ns(const struct twheel *tw, u64 next_ns)
{
	/* This includes a wheel that was not started: it has no ticks to round to. */
	if (next_ns >= TWHEEL_TIME_NEVER)
		return TWHEEL_NO_EXPIRY;
	return tick_edge_ns(&tw->clock, deadline_tick(&tw->clock, next_ns));
}

/* Fill in the configuration, which is final, or held still by control.mutex. */
static void info_configuration(struct twheel *tw, struct twheel_info *info)
{
	info->clock = tw->clock.kind;
	info->tick_ns = tw->clock.tick_ns;
	info->slots = tw->control.slots;
	info->levels = tw->wheel.nr_levels;
	info->max_pending = tw->arena.max_pending;
	info->setup_flags = tw->control.setup_flags;
	info->event_size = tw->control.event_size;
	info->slack_ns = tw->clock.slack_ns;
	info->refresh_size = twheel_refresh_size(tw);
	info->refresh_shift = clock_grain_shift(&tw->clock);
	info->now_ns = twheel_now(&tw->clock);
}

/* Fill in the configuration of a wheel that has not started; SETUP may be changing it. */
static int info_configuration_locked(struct twheel *tw, struct twheel_info *info)
{
	if (mutex_lock_killable(&tw->control.mutex))
		return -EINTR;
	info_configuration(tw, info);
	/*
	 * If the caller started the wheel now, it would live in the caller's time
	 * namespace.
	 */
	if (!tw->control.started)
		info->now_ns += twheel_namespace_offset_ns(tw->clock.kind);
	mutex_unlock(&tw->control.mutex);
	return 0;
}

/* Fill in how late timeouts have expired; the others were in time. */
static void info_lateness(const struct twheel_events *events, struct twheel_info *info)
	__must_hold(&events->lock)
{
	unsigned int i;

	info->max_late_ns = events->max_late_ns;
	info->late = events->late;
	info->last_late_ns = events->last_late_ns;
	info->last_late_at_ns = events->last_late_at_ns;
	info->late_ticks[0] = events->expired;
	for (i = 1; i < TWHEEL_LATE_TICKS; i++) {
		info->late_ticks[i] = events->late_ticks[i];
		info->late_ticks[0] -= events->late_ticks[i];
	}
}

/**
 * twheel_get_info() - tell the configuration and the counters, for INFO and fdinfo
 * @tw: the wheel
 * @info: in: the flags, TWHEEL_INFO_*; out: all else
 *
 * The counters are exact when no other thread uses the wheel.  Otherwise they may
 * disagree by the changes made meanwhile: ARM and CANCEL count without events.lock, and
 * the walk over all places takes the lock page by page.
 *
 * Context: process; sleeps.
 * Return: 0, or -EINTR by a fatal signal.
 */
int twheel_get_info(struct twheel *tw, struct twheel_info *info)
{
	bool walk = !(info->flags & TWHEEL_INFO_NO_WALK);
	struct outlook outlook = {};
	int err = 0;

	*info = (struct twheel_info){
		.size		= sizeof(*info),
		.flags		= info->flags,
		.features	= TWHEEL_FEATURE_REFRESH | TWHEEL_FEATURE_KEYED |
				  TWHEEL_FEATURE_WRITE | TWHEEL_FEATURE_SLACK,
	};
	info->max_pending_limit = twheel_max_pending_limit();
	info->max_vector = TWHEEL_MAX_VECTOR;
	if (walk)
		err = twheel_look_out(tw, &outlook);
	if (err)
		return err;
	/*
	 * A started wheel is read without the mutex: ADVANCE and DRAIN may hold it for
	 * long.
	 */
	if (control_is_started(&tw->control))
		info_configuration(tw, info);
	else
		err = info_configuration_locked(tw, info);
	if (err)
		return err;
	if (walk)
		info->next_expiry_ns = next_expiry_ns(tw, outlook.next_ns);

	spin_lock(&tw->events.lock);
	info_lateness(&tw->events, info);
	info->armed = atomic64_read(&tw->arena.armed);
	info->live = atomic_read(&tw->arena.live);
	info->unread = tw->events.nr_unread;
	/*
	 * Events may have been read since nr_both was counted: it is at most @unread now.
	 */
	info->pending = info->live - info->unread +
			min_t(u64, outlook.nr_both, info->unread);
	info->expirations = tw->events.expirations;
	info->delivered = tw->events.delivered;
	info->completed = tw->events.completed;
	info->cancelled = atomic64_read(&tw->arena.cancelled);
	info->revoked = tw->events.revoked;
	info->drained = tw->events.drained_out;
	info->rearmed = tw->events.rearmed;
	spin_unlock(&tw->events.lock);
	return 0;
}
