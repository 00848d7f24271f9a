// SPDX-License-Identifier: GPL-2.0
/*
 * QUERY, LIST and INFO: copy out the state of timeouts and of the wheel; no timeout changes
 *
 * The wheel's lock is held for a batch of timeouts, or for a page of places, at a time.
 */
#include <linux/sched/signal.h>
#include <linux/string.h>

#include "lock.h"

/*
 * Whether an UNREAD timeout waits for another period at the same time, if @nr have passed unread.
 * A fixed rate goes on while the event is unread, up to the repeat limit; a fixed delay begins when
 * it is read.
 */
static bool unread_is_pending(const struct twheel_timeout *t, u64 nr)
{
	return timeout_goes_on(t) && !(timeout_extra(t)->flags & EXTRA_FIXED_DELAY) &&
	       !timeout_ends(t, nr);
}

/*
 * Add the periods that have passed unread to the status of an UNREAD timeout, and flag the last
 * event.  Returns whether the timeout waits for another period, whose deadline the status then has.
 */
static bool status_count_periods(struct tw_ctx *tw, const struct twheel_timeout *t,
				 struct twheel_status *status) __must_hold(&tw->lock)
{
	u64 nr = twheel_periods_unread(&tw->clock, t);
	bool waits = unread_is_pending(t, nr);

	if (timeout_ends(t, nr))
		status->flags |= TWHEEL_STATUS_LAST_EVENT;
	status->count = periods_count(status->count, nr);
	if (status->repeats_left)
		status->repeats_left -= nr;
	status->fired_ns = nr ? period_fired_ns(&tw->clock, timeout_extra(t)->flags,
						status->deadline_ns + nr * status->interval_ns) :
				t->fired_ns & ~FIRED_DRAINED;
	status->deadline_ns += (nr + waits) * status->interval_ns;
	return waits;
}

/* Fill in the slack, and the period if there is one. */
static void status_add_extra(const struct twheel_timeout *t, struct twheel_status *status)
{
	const struct twheel_extra *x = timeout_extra(t);

	status->slack_ticks = slack_ticks(x->flags);
	if (!x->interval_ns)
		return;
	status->interval_ns = x->interval_ns;
	status->deliveries = x->deliveries;
	status->repeats_left = x->repeats_left;
	if (x->flags & EXTRA_FIXED_DELAY)
		status->flags = TWHEEL_ARM_FIXED_DELAY;
}

/* Fill in the status of a live timeout. */
static void timeout_status(struct tw_ctx *tw, struct twheel_timeout *t, u64 now_ns,
			   struct twheel_status *status) __must_hold(&tw->lock)
{
	bool waits = timeout_is_pending(t);

	/* Name all members, or the compiler clears a struct of this size by a loop. */
	*status = (struct twheel_status){
		.id		= timeout_id(t),
		.result		= 0,
		.state		= TWHEEL_STATE_PENDING,
		.user_data	= t->user_data,
		.deadline_ns	= timeout_deadline_ns(&tw->words, t),
		.left_ns	= 0,
		.interval_ns	= 0,
		.flags		= 0,
		.repeats_left	= 0,
		.count		= timeout_count(t),
		.deliveries	= 0,
		.slack_ticks	= 0,
		.reserved	= 0,
		.fired_ns	= 0,
	};
	if (timeout_has_extra(t))
		status_add_extra(t, status);
	if (timeout_is_unread(t)) {
		status->state = timeout_is_drained(t) ? TWHEEL_STATE_DRAINED :
							TWHEEL_STATE_EXPIRED;
		waits = status_count_periods(tw, t, status);
	}
	status->deadline_ns = min(status->deadline_ns, TWHEEL_TIME_NEVER);
	if (waits && status->deadline_ns > now_ns)
		status->left_ns = status->deadline_ns == TWHEEL_TIME_NEVER ?
				  TWHEEL_TIME_NEVER :
				  status->deadline_ns - now_ns;
}

/* Prefetch what a batch is about to access. */
static noinline void query_prefetch(struct tw_ctx *tw, const struct twheel_status *status,
				    unsigned int nr, bool by_key)
{
	const struct twheel_timeout *place[TWHEEL_BATCH] __uninitialized;

	rcu_read_lock();
	places_prefetch(tw, place, &status->id, sizeof(*status), nr, by_key,
			words_are_there(&tw->words));
	rcu_read_unlock();
}

/* Fill in the status for each id or key in @status; if it names no timeout, result is -ENOENT. */
void twheel_query(struct tw_ctx *tw, struct twheel_status *status, unsigned int nr, bool by_key)
{
	/* If SETUP may be changing the clock, there is no timeout yet. */
	u64 now_ns = control_is_started(&tw->control) ? clock_now(&tw->clock) : 0;
	unsigned int i;

	if (prefetch_pays(tw, nr, by_key))
		query_prefetch(tw, status, nr, by_key);
	twheel_lock(tw);
	for (i = 0; i < nr; i++) {
		struct twheel_timeout *t = timeout_find(tw, status[i].id, by_key);

		if (t)
			timeout_status(tw, t, now_ns, &status[i]);
		else
			status[i].result = -ENOENT;
	}
	twheel_unlock(tw);
}

/* The number of changes, see struct twheel_info. */
u64 twheel_changes(struct tw_ctx *tw)
{
	u64 changes;

	twheel_lock(tw);
	changes = events_changes(&tw->events);
	twheel_unlock(tw);
	return changes;
}

/*
 * Take one step of a walk over all timeouts: fill in a row for each live timeout from the place
 * @cursor on, @nr rows at most, and move @cursor.  Returns the number of rows, which may be 0 in
 * the middle of a walk; -1 if @cursor is past the last place.
 *
 * A step ends with a page of places at the latest, so the lock is held only briefly.  A walk goes
 * by index, and a timeout keeps its place until it ends: if no thread changes it, it appears
 * exactly once.
 */
int twheel_list(struct tw_ctx *tw, u64 *cursor, struct twheel_status *status,
		unsigned int nr)
{
	struct twheel_page *page;
	u32 page_nr, slot;
	u64 now_ns;
	int i = 0;

	if (*cursor >= (u64)READ_ONCE(tw->places.pages.nr) * PLACES_PER_PAGE)
		return -1;
	now_ns = clock_now(&tw->clock);
	page_nr = (u32)*cursor / PLACES_PER_PAGE;
	slot = (u32)*cursor % PLACES_PER_PAGE;
	twheel_lock(tw);
	page = pages_at(&tw->places.pages, page_nr);
	if (!page)
		slot = PLACES_PER_PAGE;
	for (; slot < PLACES_PER_PAGE && i < nr; slot++) {
		struct twheel_timeout *t = &page->timeout[slot];

		if (timeout_is_live(t))
			timeout_status(tw, t, now_ns, &status[i++]);
	}
	twheel_unlock(tw);
	*cursor = (u64)page_nr * PLACES_PER_PAGE + slot;
	return i;
}

/*
 * Add the timeouts of a page: next_expiry_ns becomes the time when the first one is due, and
 * pending counts those that wait for a period and also have an unread event.
 */
static void page_scan(struct tw_ctx *tw, const struct twheel_page *page, struct twheel_info *info)
	__must_hold(&tw->lock)
{
	u32 i;

	for (i = 0; i < PLACES_PER_PAGE; i++) {
		const struct twheel_timeout *t = &page->timeout[i];
		const struct twheel_extra *x;
		u64 nr, due_ns;

		if (timeout_is_pending(t)) {
			due_ns = timeout_due_ns(tw, t);
		} else {
			nr = twheel_periods_unread(&tw->clock, t);
			if (!unread_is_pending(t, nr))
				continue;
			x = timeout_extra(t);
			info->pending++;
			due_ns = slack_due_ns(&tw->clock, x->flags, timeout_known_ns(t) +
					      (nr + 1) * x->interval_ns);
		}
		info->next_expiry_ns = min(info->next_expiry_ns, due_ns);
	}
}

/* Scan all places: 0, or -EINTR by a fatal signal. */
static int places_scan(struct tw_ctx *tw, struct twheel_info *info)
{
	struct twheel_page *page;
	u32 nr;

	info->next_expiry_ns = NEVER_NS;
	for (nr = 0; nr < READ_ONCE(tw->places.pages.nr); nr++) {
		twheel_lock(tw);
		page = pages_at(&tw->places.pages, nr);
		if (page)
			page_scan(tw, page, info);
		twheel_unlock(tw);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* When the earliest timeout will expire: G1, its deadline is rounded up to a tick. */
static u64 next_expiry_ns(const struct tw_ctx *tw, u64 next_ns)
{
	/* If the wheel has not started, never_ns is 0: there are no ticks to round to. */
	if (next_ns >= tw->clock.never_ns)
		return TWHEEL_TIME_NEVER;
	return edge_after_ns(&tw->clock, next_ns);
}

/*
 * Fill in the configuration: 0, or -EINTR by a fatal signal.  If the wheel has not started, SETUP
 * may be changing it, so take control.mutex.  If it has, do without: ADVANCE and DRAIN may hold it
 * for long.
 */
static int info_configuration(struct tw_ctx *tw, struct twheel_info *info)
{
	bool final = control_is_started(&tw->control);

	if (!final && mutex_lock_killable(&tw->control.mutex))
		return -EINTR;
	if (!tw->control.started)
		twheel_set_defaults(tw);
	info->clock = tw->clock.kind;
	info->tick_ns = tw->clock.tick_ns;
	info->state = twheel_state(tw);
	info->slots = tw->control.slots;
	info->max_pending = tw->places.max_pending;
	info->setup_flags = tw->control.setup_flags;
	info->event_size = tw->control.event_size;
	info->slack_ns = tw->clock.slack_ns;
	memcpy(info->name, tw->control.name, sizeof(info->name));
	info->refresh_size = twheel_refresh_size(tw);
	info->refresh_shift = tw->words.shift;
	info->now_ns = clock_now(&tw->clock);
	/* If the caller started the wheel now, it would be in the caller's time namespace. */
	if (!tw->control.started)
		info->now_ns += twheel_namespace_offset_ns(tw->clock.kind);
	if (!final)
		mutex_unlock(&tw->control.mutex);
	return 0;
}

static void info_counters(struct tw_ctx *tw, struct twheel_info *info) __must_hold(&tw->lock)
{
	const struct twheel_events *events = &tw->events;

	info->late = events->late;
	info->last_late_ns = events->last_late_ns;
	info->last_late_at_ns = events->last_late_at_ns;
	memcpy(info->late_ticks, events->late_ticks, sizeof(info->late_ticks));
	memcpy(info->unread_ticks, events->unread_ticks, sizeof(info->unread_ticks));
	info->longest_unread_at_ns = events->longest_unread_at_ns;
	info->armed = events->armed;
	info->expirations = events->expirations;
	info->delivered = events->delivered;
	info->completed = events->completed;
	info->cancelled = events->cancelled;
	info->revoked = events->revoked;
	info->drained = events->drained;
	info->rearmed = events->rearmed;
	info->changes = events_changes(events);
	info->unread = events->nr_unread;
	/* G3 exactly one outcome: a timeout that was armed and has not ended is live. */
	info->live = events->armed - events->completed - events->cancelled - events->revoked -
		     events->drained;
	/* Some events that page_scan() counted may have been read since. */
	info->pending = info->live - info->unread + min(info->pending, info->unread);
	/* at_ns is 0 if the clock is virtual, or if the wheel has not started. */
	info->alarm_ns = min(tw->alarm.at_ns ?: NEVER_NS, TWHEEL_TIME_NEVER);
}

/*
 * Fill in @info for INFO and fdinfo, as its flags (TWHEEL_INFO_*) ask for: 0, or -EINTR by a fatal
 * signal.  The counters agree with each other.  The results of the scan of all places may not, if
 * other threads use the wheel: it takes the lock page by page.
 */
int twheel_get_info(struct tw_ctx *tw, struct twheel_info *info)
{
	bool walk = info->flags & TWHEEL_INFO_WALK;
	int err = 0;

	*info = (struct twheel_info){
		.size		= sizeof(*info),
		.flags		= info->flags,
		.features	= IS_ENABLED(CONFIG_IO_URING) ? TWHEEL_FEATURE_URING_CMD : 0,
	};
	info->max_pending_limit = READ_ONCE(twheel_max_pending_limit);
	info->max_vector = TWHEEL_MAX_VECTOR;
	if (walk)
		err = places_scan(tw, info);
	if (!err)
		err = info_configuration(tw, info);
	if (err)
		return err;
	if (walk)
		info->next_expiry_ns = next_expiry_ns(tw, info->next_expiry_ns);

	twheel_lock(tw);
	info_counters(tw, info);
	twheel_unlock(tw);
	return 0;
}
