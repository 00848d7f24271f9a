/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ready list: timeouts whose events wait to be read
 */
#ifndef _TWHEEL_ENGINE_EVENTS_H
#define _TWHEEL_ENGINE_EVENTS_H

#include <linux/cache.h>
#include <linux/lockdep.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "arena.h"
#include "timeout.h"

struct twheel;

/**
 * struct twheel_events - the ready list, and the accounts
 * @lock: guards the fields of live timeouts and all down to @max_late_ns
 * @first: the first timeout of the ready list, NULL: empty
 * @last: the last one, NULL likewise
 * @last_link: its link, 0 likewise
 * @changes: counts what happens to events that are there: they are read, revoked or
 *	drained; not that others come, nor that periods pass
 * @nr_unread: length of the ready list; read without the lock by poll
 * @expirations: see struct twheel_info, as are the next
 * @delivered: "
 * @completed: "
 * @revoked: "
 * @drained_out: "
 * @rearmed: "
 * @max_late_ns: "
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
};

static inline struct twheel_timeout *ready_at(struct twheel_arena *arena, u32 link)
{
	u32 index = link - 1;

	/* Its place is in use, and its page there. */
	return link ? &own_page_at(arena, index)->timeout[index % PLACES_PER_PAGE] :
		      NULL;
}

static inline void ready_add(struct twheel_events *events, struct twheel_timeout *t,
			     u32 index)
	__must_hold(&events->lock)
{
	struct twheel_timeout *last = events->last;
	u32 link = index + 1;

	lockdep_assert_held(&events->lock);
	t->prev = events->last_link;
	t->next = 0;
	if (last)
		last->next = link;
	else
		events->first = t;
	events->last = t;
	events->last_link = link;
	WRITE_ONCE(events->nr_unread, events->nr_unread + 1);
}

void twheel_event_take(struct twheel *tw, struct twheel_timeout *t, u64 state)
	__must_hold(&tw->events.lock);

#endif /* _TWHEEL_ENGINE_EVENTS_H */
