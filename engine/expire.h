/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Expiry: timeouts become events, which wait in a list to be read, while periods pass
 */
#ifndef _TWHEEL_ENGINE_EXPIRE_H
#define _TWHEEL_ENGINE_EXPIRE_H

#include <linux/lockdep.h>

#include "time.h"

struct tw_ctx;

/**
 * struct twheel_events - the list of events, and the counters of a wheel
 * @first: the oldest event
 * @end: the end of the list; @end.pprev leads to it
 * @nr_unread: length of the list; read without the lock by any thread
 * @nr_to_wake: events that were added, and the end of DRAIN, for which waiters have yet to be woken
 * @armed: see struct twheel_info, as are the following
 * @expirations: expirations so far
 * @delivered: events read
 * @completed: timeouts that ended because their last event was read
 * @cancelled: timeouts that CANCEL has ended while they pended
 * @revoked: timeouts that CANCEL has ended while they had an event
 * @drained: drained events that were read
 * @rearmed: how often a timeout was given a new schedule
 * @late: late timeouts
 * @last_late_ns: lateness of the last of them
 * @last_late_at_ns: when it expired
 * @late_ticks: lateness in ticks
 * @unread_ticks: how long the events that were read had been unread
 * @longest_unread: the last element of that which is not 0
 * @longest_unread_at_ns: when it last grew
 *
 * &tw_ctx.lock guards all members.
 */
struct twheel_events {
	struct twheel_link *first;
	struct twheel_link end;
	u32 nr_unread;
	u32 nr_to_wake;
	u32 longest_unread;
	u64 armed;
	u64 expirations;
	u64 delivered;
	u64 completed;
	u64 cancelled;
	u64 revoked;
	u64 drained;
	u64 rearmed;
	u64 late;
	u64 last_late_ns;
	u64 last_late_at_ns;
	u64 late_ticks[TWHEEL_LATE_TICKS];
	u64 unread_ticks[TWHEEL_LATE_TICKS];
	u64 longest_unread_at_ns;
};

static inline void events_init(struct twheel_events *events)
{
	events->first = &events->end;
	events->end.pprev = &events->first;
}

/* The number of changes, see struct twheel_info. */
static inline u64 events_changes(const struct twheel_events *events)
{
	return events->armed + events->rearmed + events->cancelled + events->revoked +
	       events->delivered;
}

/*
 * Append @nr timeouts, which are linked with each other in both directions, and whose words and
 * times are those of events already.
 */
static __always_inline void events_append(struct twheel_events *events, struct twheel_link *first,
					  struct twheel_link *last, unsigned int nr)
{
	struct twheel_link **tail = events->end.pprev;

	*tail = first;
	first->pprev = tail;
	last->next = &events->end;
	events->end.pprev = &last->next;
	WRITE_ONCE(events->nr_unread, events->nr_unread + nr);
	events->nr_to_wake += nr;
}

/* Turn a timeout that is PENDING and in no list into an event. */
static __always_inline void event_add(struct twheel_events *events, struct twheel_timeout *t,
				      u64 fired_ns)
{
	timeout_become_event(t, fired_ns);
	events_append(events, &t->link, &t->link, 1);
}

/* Take a timeout off the list, wherever it stands. */
static inline void event_del(struct twheel_events *events, struct twheel_timeout *t)
{
	twheel_link_del(&t->link);
	WRITE_ONCE(events->nr_unread, events->nr_unread - 1);
}

/* Periods: how many have passed, and the count in the event of a periodic timeout */

/*
 * The number of expirations from @deadline_ns to @until_ns, both included: at least 1.  G7 cost
 * does not grow: a division, not a loop, also after a year of one-millisecond periods.
 */
static inline u64 periods_passed(u64 deadline_ns, u64 interval_ns, u64 until_ns)
{
	u64 late_ns = until_ns - deadline_ns;

	return late_ns < interval_ns ? 1 : div64_u64(late_ns, interval_ns) + 1;
}

/* Add @nr expirations to the count in an event, which saturates. */
static inline u32 periods_count(u32 count, u64 nr)
{
	return min(count + nr, (u64)U32_MAX);
}

/* Whether an UNREAD timeout is periodic, and goes on after its event unless that is the last. */
static inline bool timeout_goes_on(const struct twheel_timeout *t)
{
	return timeout_is_unread(t) && !(t->fired_ns & FIRED_DRAINED) && timeout_is_periodic(t);
}

/*
 * Whether an UNREAD timeout ends when its event is read, if @nr more periods have passed since it
 * expired.  One-shots and drained timeouts always end; a periodic one ends when its repeat limit is
 * used up.
 */
static inline bool timeout_ends(const struct twheel_timeout *t, u64 nr)
{
	const struct twheel_extra *x;

	if (!timeout_goes_on(t))
		return true;
	x = timeout_extra(t);
	return x->flags & EXTRA_LIMITED && x->repeats_left == nr;
}

/*
 * The expirations that an unread event has counted; 0 if there is no such event.  A drained
 * one-shot has an event and has not expired.
 */
static inline u32 timeout_count(const struct twheel_timeout *t)
{
	if (!timeout_is_unread(t))
		return 0;
	if (timeout_is_periodic(t))
		return timeout_extra(t)->count;
	return !(t->fired_ns & FIRED_DRAINED);
}

/* When a period that was counted late has expired: at the edge of its tick. */
static inline u64 period_fired_ns(const struct twheel_clockwork *clock, u32 flags, u64 deadline_ns)
{
	return edge_after_ns(clock, slack_due_ns(clock, flags, deadline_ns));
}

void twheel_expire_overdue(struct tw_ctx *tw, struct twheel_timeout *t, u64 now_ns)
	__must_hold(&tw->lock);
bool twheel_expire(struct tw_ctx *tw, u64 now_ns, unsigned int *nr) __must_hold(&tw->lock);
bool twheel_empty_ahead(struct tw_ctx *tw, unsigned int nr) __must_hold(&tw->lock);
u64 twheel_periods_unread(const struct twheel_clockwork *clock, const struct twheel_timeout *t);
void twheel_periods_settle(struct tw_ctx *tw, struct twheel_timeout *t, u64 nr);
void twheel_period_begin(struct tw_ctx *tw, struct twheel_timeout *t) __must_hold(&tw->lock);

#endif /* _TWHEEL_ENGINE_EXPIRE_H */
