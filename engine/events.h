/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The list of events: the timeouts whose events wait to be read
 */
#ifndef _TWHEEL_ENGINE_EVENTS_H
#define _TWHEEL_ENGINE_EVENTS_H

#include <linux/twheel.h>
#include <linux/types.h>

#include "timeout.h"
#include "twheel_wheel.h"

/**
 * struct twheel_events - the list of events, and the counters of a wheel
 * @first: the oldest event
 * @end: the end of the list; @end.pprev leads to it
 * @nr_unread: length of the list; read without the lock by any thread
 * @nr_untold: events that were added, and the end of DRAIN, for which waiters have yet to be woken
 * @armed: see struct twheel_info, as are the following
 * @expirations: expirations so far
 * @delivered: events read
 * @completed: timeouts that ended because their last event was read
 * @cancelled: timeouts that CANCEL has ended while they pended
 * @revoked: timeouts that CANCEL has ended while they had an event
 * @drained: drained events that were read
 * @rearmed: timeouts that began a new life
 * @max_late_ns: greatest lateness
 * @late: late timeouts
 * @last_late_ns: lateness of the last of them
 * @last_late_at_ns: when it expired
 * @late_ticks: lateness in ticks
 *
 * &twheel.lock guards all members.
 */
struct twheel_events {
	struct twheel_link *first;
	struct twheel_link end;
	u32 nr_unread;
	u32 nr_untold;
	u64 armed;
	u64 expirations;
	u64 delivered;
	u64 completed;
	u64 cancelled;
	u64 revoked;
	u64 drained;
	u64 rearmed;
	u64 max_late_ns;
	u64 late;
	u64 last_late_ns;
	u64 last_late_at_ns;
	u64 late_ticks[TWHEEL_LATE_TICKS];
};

static inline void events_init(struct twheel_events *events)
{
	events->first = &events->end;
	events->end.pprev = &events->first;
}

/* How many changes there were; see struct twheel_info. */
static inline u64 events_changes(const struct twheel_events *events)
{
	return events->armed + events->rearmed + events->cancelled + events->revoked +
	       events->delivered;
}

/*
 * Append @nr timeouts to the list, which are linked with each other by both links, and whose
 * words and times are those of events already.
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
	events->nr_untold += nr;
}

/* Turn a timeout that is PENDING, and in no list, into an event. */
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

#endif /* _TWHEEL_ENGINE_EVENTS_H */
