/* SPDX-License-Identifier: GPL-2.0 */
/* A timeout: its state, its place, and the page of its place */
#ifndef _TWHEEL_ENGINE_TIMEOUT_H
#define _TWHEEL_ENGINE_TIMEOUT_H

#include <linux/bitmap.h>
#include <linux/build_bug.h>
#include <linux/llist.h>
#include <linux/mm.h>
#include <linux/prefetch.h>

#include "twheel_wheel.h"

/*
 * The word of a timeout: generation 63-32, state 31-30, index 29-0.  The word without its state is
 * the id.
 *
 *   FREE --> PENDING --> UNREAD --> FREE
 *
 *   FREE	the place has no timeout; or one that ARM prepares, which no other thread knows, or
 *		that waits in the inbox
 *   PENDING	the timeout is in the wheel
 *   UNREAD	it is in the list of events: it has expired, or was drained
 */
#define STATE_SHIFT	30
#define STATE_PENDING	BIT_ULL(STATE_SHIFT)
#define STATE_UNREAD	BIT_ULL(STATE_SHIFT + 1)
#define STATE_MASK	(STATE_PENDING | STATE_UNREAD)
#define GEN_SHIFT	32
#define GEN_ONE		BIT_ULL(GEN_SHIFT)

/* All indices are below this. */
#define NR_INDICES	((u32)STATE_PENDING)

/*
 * The timeout has a period or slack, and so a struct twheel_extra.  With this bit a deadline is
 * later than all times, so one comparison checks both.
 */
#define DEADLINE_EXTRA	BIT_ULL(63)

/* The event is flagged as drained. */
#define FIRED_DRAINED	BIT_ULL(63)

/**
 * struct twheel_timeout - a timeout, or the place for one
 * @link: in a slot of the wheel (PENDING), or in the list of events (UNREAD).  In a FREE place that
 *	an ARM has taken, @link.next leads to the next place of the ARM.
 * @node: @link.next of a timeout that ARM has put into the inbox
 * @fired_ns: the clock when the timeout became UNREAD, or the tick of the latest period that was
 *	counted since then; with FIRED_DRAINED.  Valid while UNREAD; it takes the place of
 *	@link.hint.
 * @deadline_ns: as armed or re-armed, or as read in the refresh table; with DEADLINE_EXTRA.  The
 *	slot that has the timeout comes up by then.  While UNREAD: the deadline that has expired, or
 *	that had yet to expire when DRAIN came.
 * @user_data: as armed
 * @word: generation, state and index
 *
 * &tw_ctx.lock guards all members.  But a FREE place that an ARM has taken is the ARM's alone until
 * it is in the inbox.  These 48 bytes are all that a one-shot needs.
 */
struct twheel_timeout {
	union {
		struct twheel_link link;
		struct llist_node node;
		struct {
			/* private: that of @link */
			void *next_and_pprev[2];
			/* public: */
			u64 fired_ns;
		};
	};
	u64 word;
	u64 deadline_ns;
	u64 user_data;
};

static_assert(offsetof(struct twheel_timeout, fired_ns) ==
	      offsetof(struct twheel_timeout, link.hint));

/* Flags of struct twheel_extra */
#define EXTRA_FIXED_DELAY	BIT(0)
#define EXTRA_LIMITED		BIT(1)		/* repeats_left is valid */
#define EXTRA_SLACK_SHIFT	8		/* the slack is 2^k - 1 ticks */

/**
 * struct twheel_extra - the parameters and counters of a timeout with a period or slack
 * @interval_ns: the period, not shorter than a tick; 0 for a one-shot
 * @repeats_left: expirations to come.  For an UNREAD timeout: the expirations after deadline_ns,
 *	some of which may have passed, see twheel_periods_unread()
 * @count: expirations that the unread event stands for, up to deadline_ns; likewise.  It saturates.
 * @deliveries: events that were read since the timeout was armed or re-armed.  It saturates.
 * @flags: EXTRA_*
 *
 * Each member has the guard of struct twheel_timeout.
 */
struct twheel_extra {
	u64 interval_ns;
	u32 repeats_left;
	u32 count;
	u32 deliveries;
	u32 flags;
};

/*
 * Each place takes its bit in struct twheel_page.free as well; the other members of that take 32
 * bytes.  84 for pages of 4 kB.
 */
#define PLACES_PER_PAGE \
	((u32)((PAGE_SIZE - 32) * BITS_PER_BYTE / \
	       (sizeof(struct twheel_timeout) * BITS_PER_BYTE + 1)))

/**
 * struct twheel_page - a page of places
 * @extra: array for the places of this page; set once, under &twheel_places.mutex; NULL until a
 *	timeout of the page has a period or slack
 * @free: a bit for each place, set if the place is FREE, no ARM has taken it, and its generations
 *	are not used up; &twheel_places.lock
 * @node: link in a list of struct twheel_places, while a place is free; &twheel_places.lock
 * @first_index: index of the first place; constant
 * @nr_used: places that are not in @free; &twheel_places.lock
 * @timeout: the places
 */
struct twheel_page {
	struct twheel_extra *extra;
	DECLARE_BITMAP(free, PLACES_PER_PAGE);
	struct hlist_node node;
	u32 first_index;
	u32 nr_used;
	struct twheel_timeout timeout[PLACES_PER_PAGE];
};

static_assert(sizeof(struct twheel_page) <= PAGE_SIZE);

/* The caller of these holds the wheel's lock, or has taken the place for an ARM. */

static __always_inline bool timeout_is_pending(const struct twheel_timeout *t)
{
	return t->word & STATE_PENDING;
}

static __always_inline bool timeout_is_unread(const struct twheel_timeout *t)
{
	return t->word & STATE_UNREAD;
}

static __always_inline bool timeout_is_live(const struct twheel_timeout *t)
{
	return t->word & STATE_MASK;
}

static __always_inline bool timeout_has_extra(const struct twheel_timeout *t)
{
	return t->deadline_ns & DEADLINE_EXTRA;
}

static __always_inline bool timeout_is_drained(const struct twheel_timeout *t)
{
	return timeout_is_unread(t) && t->fired_ns & FIRED_DRAINED;
}

/* The deadline that the engine knows: the refresh table may have a later one. */
static __always_inline u64 timeout_known_ns(const struct twheel_timeout *t)
{
	return t->deadline_ns & ~DEADLINE_EXTRA;
}

static __always_inline u64 timeout_id(const struct twheel_timeout *t)
{
	return t->word & ~STATE_MASK;
}

static __always_inline u32 timeout_index(const struct twheel_timeout *t)
{
	return t->word & (NR_INDICES - 1);
}

static inline u32 timeout_gen(const struct twheel_timeout *t)
{
	return t->word >> GEN_SHIFT;
}

static __always_inline struct twheel_page *timeout_page(const struct twheel_timeout *t)
{
	return (struct twheel_page *)((unsigned long)t & PAGE_MASK);
}

static __always_inline struct twheel_extra *timeout_extra(const struct twheel_timeout *t)
{
	struct twheel_page *page = timeout_page(t);

	/* Pairs with the release in extra_add().  Test: litmus extra_filled */
	return &smp_load_acquire(&page->extra)[t - page->timeout];
}

static __always_inline bool timeout_is_periodic(const struct twheel_timeout *t)
{
	return timeout_has_extra(t) && timeout_extra(t)->interval_ns;
}

static __always_inline struct twheel_timeout *link_timeout(struct twheel_link *link)
{
	return container_of(link, struct twheel_timeout, link);
}

static __always_inline struct twheel_timeout *place_next(const struct twheel_timeout *t)
{
	return (struct twheel_timeout *)t->link.next;
}

static __always_inline u32 id_index(u64 id)
{
	return id;
}

/* Prefetch a place, which may lie in two lines of the cache.  Any address will do. */
static __always_inline void place_prefetch(const struct twheel_timeout *t)
{
	prefetchw(t);
	prefetchw(&t->user_data);
}

/* Prefetch what a timeout that leaves its list changes in its neighbours. */
static __always_inline void place_prefetch_beside(const struct twheel_timeout *t)
{
	/* Without the lock: if they change meanwhile, the prefetch is in vain. */
	prefetchw(data_race(t->link.next));
	/* Likewise. */
	prefetchw(data_race(t->link.pprev));
}

/* The transitions.  G3 exactly one outcome: all of them under the wheel's lock. */

/* FREE --> PENDING */
static __always_inline void timeout_begin(struct twheel_timeout *t)
{
	t->word |= STATE_PENDING;
}

/* PENDING --> UNREAD */
static __always_inline void timeout_become_event(struct twheel_timeout *t, u64 fired_ns)
{
	t->fired_ns = fired_ns;
	t->word ^= STATE_PENDING ^ STATE_UNREAD;
}

/* UNREAD --> PENDING, or PENDING as before: a REARM, or the next period. */
static __always_inline void timeout_begin_again(struct twheel_timeout *t)
{
	t->word = (t->word & ~STATE_MASK) | STATE_PENDING;
}

/*
 * Any --> FREE.  G8 stale ids are harmless: the next generation begins, and the old id names
 * nothing.  If generations are used up, return false: the place is not used again.
 */
static __always_inline bool timeout_end(struct twheel_timeout *t)
{
	t->word = (t->word & ~STATE_MASK) + GEN_ONE;
	return t->word >= GEN_ONE;
}

/*
 * Return whether an id names the timeout in its place, and that is pending.  One comparison checks
 * both: the word differs from the id in that state only.
 */
static __always_inline bool place_has_pending(const struct twheel_timeout *t, u64 id)
{
	return t && (t->word ^ id) == STATE_PENDING;
}

/* Return whether an id names the timeout in its place, and that is live. */
static __always_inline bool place_has_live(const struct twheel_timeout *t, u64 id)
{
	return t && !((t->word ^ id) & ~STATE_MASK) && timeout_is_live(t);
}

#endif /* _TWHEEL_ENGINE_TIMEOUT_H */
