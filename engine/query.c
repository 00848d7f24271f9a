// SPDX-License-Identifier: GPL-2.0
/*
 * QUERY, LIST and INFO
 *
 * Locks: events.lock for a batch of timeouts or a page of places at a time; control.mutex for
 * INFO of a wheel that has not started.
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
#include "timeout.h"
#include "twheel.h"
#include "words.h"

/*
 * Whether an UNREAD timeout of a fixed rate waits for its next period as well; @nr
 * have passed since it expired.
 */
static bool unread_is_pending(const struct twheel_timeout *t, u64 state, u64 nr)
	__must_hold(&tw->events.lock)
{
	return state_keeps_room(state) && !state_is_fixed_delay(state) &&
	       !timeout_has_ended(t, state, nr);
}

/* Periods that have passed since an UNREAD timeout expired; true if more are to come. */
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

/* False if it is gone. */
static bool timeout_status(struct twheel *tw, struct twheel_timeout *t,
			   u64 state, u64 now_ns, struct twheel_status *status)
	__must_hold(&tw->events.lock)
{
	*status = (struct twheel_status){
		.id		= timeout_id(t, state),
		.state		= TWHEEL_STATE_PENDING,
		.user_data	= READ_ONCE(t->user_data),
		.deadline_ns	= timeout_deadline_ns(&tw->words, t, state),
		.count		= timeout_count(t, state),
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
	 * G8: cancelled meanwhile, which takes no lock, its place may be another
	 * one's, and what was read above that one's.
	 */
	smp_rmb();
	return state_gen(atomic64_read(&t->state)) == state_gen(state);
}

/**
 * twheel_query() - tell the state of timeouts
 * @tw: the wheel
 * @status: the batch: id in, the rest out
 * @nr: how many, up to TWHEEL_BATCH
 *
 * Context: process.
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
 * twheel_list() - tell the state of some of all timeouts
 * @tw: the wheel
 * @cursor: the first index to be looked at; out: where to go on
 * @status: out: rows
 * @nr: room, up to TWHEEL_BATCH
 *
 * Looks at one page of places at the most.
 *
 * Context: process.
 * Return: how many rows; negative when the cursor is past the end.
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
 * struct outlook - what is found by walking all places
 * @next_ns: the next deadline, TWHEEL_TIME_NEVER if there is none
 * @nr_both: timeouts that are pending and have an unread event
 */
struct outlook {
	u64 next_ns;
	u32 nr_both;
};

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
			deadline_ns = timeout_deadline_ns(&tw->words, t, state);
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
		outlook->next_ns = min(outlook->next_ns, deadline_ns);
	}
}

static int twheel_look_out(struct twheel *tw, struct outlook *outlook)
{
	struct twheel_page *page;
	u32 nr;

	*outlook = (struct outlook){ .next_ns = TWHEEL_TIME_NEVER };
	for (nr = 0; nr < READ_ONCE(tw->arena.places.nr); nr++) {
		/* What is being re-armed is in no state that counts. */
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

/* The next deadline, rounded up to its tick. */
static u64 next_expiry_ns(const struct twheel *tw, u64 next_ns)
{
	/* Nothing pends in a wheel that was not started, and knows no ticks. */
	if (next_ns >= TWHEEL_TIME_NEVER)
		return TWHEEL_NO_EXPIRY;
	return tick_edge_ns(&tw->clock, deadline_tick(&tw->clock, next_ns));
}

static void info_configuration(struct twheel *tw, struct twheel_info *info)
{
	info->clock = tw->clock.kind;
	info->tick_ns = tw->clock.tick_ns;
	info->slots = tw->control.slots;
	info->levels = tw->wheel.nr_levels;
	info->max_pending = tw->arena.max_pending;
	info->setup_flags = tw->control.setup_flags;
	info->refresh_size = twheel_refresh_size(tw);
	info->now_ns = twheel_now(&tw->clock);
}

/* The same, while SETUP may be changing all of that. */
static int info_configuration_locked(struct twheel *tw, struct twheel_info *info)
{
	if (mutex_lock_killable(&tw->control.mutex))
		return -EINTR;
	info_configuration(tw, info);
	/* It would begin to live in the caller's time namespace. */
	if (!tw->control.started)
		info->now_ns += twheel_namespace_offset_ns(tw->clock.kind);
	mutex_unlock(&tw->control.mutex);
	return 0;
}

/**
 * twheel_get_info() - tell what INFO and fdinfo tell
 * @tw: the wheel
 * @info: out
 *
 * Context: process; sleeps.
 * Return: 0, or -EINTR by a fatal signal.
 */
int twheel_get_info(struct twheel *tw, struct twheel_info *info)
{
	struct outlook outlook;
	int err;

	*info = (struct twheel_info){
		.size		= sizeof(*info),
		.features	= TWHEEL_FEATURE_REFRESH,
	};
	info->max_pending_limit = twheel_max_pending_limit();
	info->max_vector = TWHEEL_MAX_VECTOR;
	err = twheel_look_out(tw, &outlook);
	if (err)
		return err;
	/* Once the wheel has started, this is final, and nobody is waited for. */
	if (control_is_started(&tw->control))
		info_configuration(tw, info);
	else
		err = info_configuration_locked(tw, info);
	if (err)
		return err;
	info->next_expiry_ns = next_expiry_ns(tw, outlook.next_ns);

	spin_lock(&tw->events.lock);
	info->max_late_ns = tw->events.max_late_ns;
	info->armed = atomic64_read(&tw->arena.armed);
	info->live = atomic_read(&tw->arena.live);
	info->unread = tw->events.nr_unread;
	/* Some may have been read since they were counted. */
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
