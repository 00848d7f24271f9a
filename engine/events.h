/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ready list: the timeouts whose events wait to be read
 *
 * Locks: events.lock is declared here.  It is a spinlock that is never taken in
 * interrupts.  A timeout becomes UNREAD, and stops being UNREAD, only under it; so do the
 * fields of a timeout change once ARM has published it.  No other lock is taken under it.
 */
#ifndef _TWHEEL_ENGINE_EVENTS_H
#define _TWHEEL_ENGINE_EVENTS_H

#include <linux/cache.h>
#include <linux/lockdep.h>
#include <linux/spinlock.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "arena.h"
#include "timeout.h"

struct twheel;

/**
 * struct twheel_events - the ready list, and the counters that change with it
 * @lock: guards all members below, and the fields of timeouts that are live
 * @first: the first timeout of the ready list, NULL when the list is empty; @lock
 * @last: the last timeout of the list, NULL when the list is empty; @lock
 * @last_link: the link that leads to @last, see ready_at(), or 0; @lock
 * @changes: counts changes of events that are on the list: an event is read, revoked,
 *	drained, or has periods settled.  Events that are added do not count, since a
 *	reader looks at the oldest ones.  @lock
 * @nr_unread: length of the list; written under @lock, read without it by any thread
 * @expirations: see struct twheel_info; @lock
 * @delivered: see struct twheel_info; @lock
 * @completed: see struct twheel_info; @lock
 * @revoked: see struct twheel_info; @lock
 * @drained_out: drained events that were read, the "drained" of struct twheel_info; @lock
 * @rearmed: see struct twheel_info; @lock
 * @max_late_ns: see struct twheel_info; @lock
 * @expired: timeouts that the kthread has expired and that were not overdue; @lock
 * @late: see struct twheel_info; @lock
 * @last_late_ns: see struct twheel_info; @lock
 * @last_late_at_ns: see struct twheel_info; @lock
 * @late_ticks: see struct twheel_info, without those in time, which the others leave of
 *	@expired; @lock
 */
struct twheel_events {
	spinlock_t lock ____cacheline_aligned_in_smp;
	struct twheel_timeout *first;
	struct twheel_timeout *last;
	u32 last_link;
	u64 changes;
	u32 nr_unread;
	u64 expirations;
	u64 delivered;
	u64 completed;
	u64 revoked;
	u64 drained_out;
	u64 rearmed;
	u64 max_late_ns;
	u64 expired;
	u64 late;
	u64 last_late_ns;
	u64 last_late_at_ns;
	u64 late_ticks[TWHEEL_LATE_TICKS];
};

/*
 * The timeout that a link of the ready list leads to: a link is an index + 1, and 0 ends
 * the list.  The caller holds events.lock.
 */
static __always_inline struct twheel_timeout *ready_at(struct twheel_arena *arena, u32 link)
{
	u32 index = link - 1;

	/*
	 * A timeout on the list keeps its place in use, so its page is not freed.  Not as an
	 * element of the array: a sanitizer would put a call there, see tell.h.
	 */
	return link ? own_page_at(arena, index)->timeout + index % PLACES_PER_PAGE : NULL;
}

/*
 * Append @nr timeouts, which have just become UNREAD, to the ready list.  They are linked with
 * each other from @first to @last, and @first is linked to events->last_link.
 */
static inline void ready_append(struct twheel_events *events, struct twheel_timeout *first,
				u32 first_index, struct twheel_timeout *last, u32 last_index,
				unsigned int nr)
	__must_hold(&events->lock)
{
	lockdep_assert_held(&events->lock);
	last->next = 0;
	if (events->last)
		events->last->next = first_index + 1;
	else
		events->first = first;
	events->last = last;
	events->last_link = last_index + 1;
	WRITE_ONCE(events->nr_unread, events->nr_unread + nr);
}

/* Append a timeout, which has just become UNREAD, to the ready list. */
static inline void ready_add(struct twheel_events *events, struct twheel_timeout *t,
			     u32 index)
	__must_hold(&events->lock)
{
	t->prev = events->last_link;
	ready_append(events, t, index, t, index, 1);
}

void twheel_event_take(struct twheel *tw, struct twheel_timeout *t, u64 state)
	__must_hold(&tw->events.lock);

#endif /* _TWHEEL_ENGINE_EVENTS_H */
