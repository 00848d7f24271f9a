/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A timeout: its state word, its place, and the page of places that it is in
 *
 * One atomic word per timeout decides every race.  The phases and flags of the word are
 * named in this file and nowhere else: all other files ask for a state, and change it, by
 * the functions below.
 *
 * Locks: none is taken here.  A thread that holds no lock changes a published state by
 * state_change() only.  The fields' guards stand at struct twheel_timeout.
 */
#ifndef _TWHEEL_ENGINE_TIMEOUT_H
#define _TWHEEL_ENGINE_TIMEOUT_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/limits.h>
#include <linux/llist.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/types.h>

/*
 * The state word: generation 63-32, sequence number 31-12, slack 11-8, flags and phase.
 */
enum twheel_phase {
	PHASE_FREE,
	PHASE_NEW,
	PHASE_DEAD,
	/*
	 * In the phases below, the timeout's id names it.  They come last, so that a
	 * single comparison finds out.
	 */
	PHASE_QUEUED,
	PHASE_ARMED,
	PHASE_UNREAD,
	PHASE_REARMING,
};

#define STATE_PHASE		0x7ULL
#define STATE_DRAINED		BIT_ULL(3)	/* UNREAD: the event is flagged as drained */
#define STATE_ENTRY		BIT_ULL(3)	/* FREE, NEW: has an entry in the wheel */
#define STATE_PERIODIC		BIT_ULL(4)	/* has a twheel_periodic */
#define STATE_FIXED_DELAY	BIT_ULL(5)
#define STATE_LIMITED		BIT_ULL(6)	/* repeats_left is valid */
#define STATE_OVERDUE		BIT_ULL(7)	/* was due when it was armed */
#define STATE_SLACK_SHIFT	8
#define STATE_SLACK		GENMASK_ULL(11, STATE_SLACK_SHIFT)
#define STATE_SLACK_MAX		(STATE_SLACK >> STATE_SLACK_SHIFT)
#define STATE_LIFE		(STATE_PERIODIC | STATE_FIXED_DELAY | \
				 STATE_LIMITED | STATE_SLACK)
#define STATE_FLAGS		(STATE_DRAINED | STATE_LIFE | STATE_OVERDUE)
#define STATE_SEQ_SHIFT		12
#define STATE_SEQ		GENMASK_ULL(31, STATE_SEQ_SHIFT)
#define STATE_GEN_SHIFT		32
#define STATE_GEN		GENMASK_ULL(63, STATE_GEN_SHIFT)

/**
 * struct twheel_timeout - a timeout, or the place for one
 * @state: atomic; its parts are described at enum twheel_phase
 * @deadline_ns: as asked for; it may be later than TWHEEL_TIME_NEVER.  While UNREAD: the
 *	deadline that has expired, or had yet to when DRAIN came.  Written by the thread
 *	that arms while it alone has the place, and under &twheel_events.lock after that;
 *	read by any thread.
 * @user_data: written by the thread that arms, constant until the place is FREE
 * @node: link in the inbox (QUEUED, DEAD) or in a chain of places (FREE, NEW).  Belongs
 *	to the thread that holds the chain.
 * @prev: link in the ready list (UNREAD), an index + 1; &twheel_events.lock
 * @next: likewise
 * @fired_ns: the clock when the timeout became UNREAD, or the tick of the latest period
 *	that was settled since then, see twheel_periods_settle(); valid while UNREAD;
 *	&twheel_events.lock
 * @entry_ns: the time for which the wheel has the entry of this timeout, or of the place:
 *	the entry serves a timeout that is due then or later.  Valid while ARMED, and with
 *	STATE_ENTRY.  Written by the kthread under &twheel_events.lock, before the
 *	timeout becomes ARMED; read by any thread that may change the state.
 *
 * These 40 bytes are all that a one-shot needs.  A periodic timeout has the rest in
 * struct twheel_periodic.
 */
struct twheel_timeout {
	atomic64_t state;
	u64 deadline_ns;
	u64 user_data;
	union {
		struct llist_node node;
		struct {
			u32 prev;
			u32 next;
		};
	};
	union {
		u64 fired_ns;
		u64 entry_ns;
	};
};

#define PLACES_PER_PAGE \
	((PAGE_SIZE - 2 * sizeof(u64)) / sizeof(struct twheel_timeout))

/**
 * struct twheel_periodic - the fields of a page's periodic timeouts
 * @interval_ns: the period, not shorter than a tick
 * @repeats_left: expirations to come; valid with STATE_LIMITED.  For an UNREAD timeout:
 *	the expirations after deadline_ns, some of which may have passed, see
 *	twheel_periods_unread()
 * @count: expirations that the unread event stands for, up to deadline_ns; likewise
 * @deliveries: events of this life that were read.  It saturates, as @count does.
 *
 * It is allocated when the first timeout of the page gets an interval.  Each member has
 * the guard of struct twheel_timeout.deadline_ns.
 */
struct twheel_periodic {
	u64 interval_ns[PLACES_PER_PAGE];
	u32 repeats_left[PLACES_PER_PAGE];
	u32 count[PLACES_PER_PAGE];
	u32 deliveries[PLACES_PER_PAGE];
};

/**
 * struct twheel_periodic_page - the periodic fields of two neighbouring pages of places
 * @half: one for the page of places with an even number, one for the page after it;
 *	guarded as struct twheel_periodic says
 * @nr_halves: halves in use; &twheel_arena.mutex
 */
struct twheel_periodic_page {
	struct twheel_periodic half[2];
	u32 nr_halves;
};

static_assert(sizeof(struct twheel_periodic_page) <= PAGE_SIZE);

/**
 * struct twheel_page - a page of places
 * @periodic: set once, under &twheel_arena.mutex; NULL until a place needs it.  Read
 *	without the lock.
 * @first_index: index of the first place; constant
 * @nr_found: how many of the page's places twheel_arena_shrink() has found.  Only the
 *	kthread uses this member and the next three, until RCU frees the page.
 * @picked: twheel_arena_shrink() keeps the page's places off the free list
 * @last_half: @periodic is freed together with the page, because the neighbouring page
 *	does not use the other half
 * @found: the place that it found last, as its offset in the page / 4; each place links to
 *	the one found before
 * @timeout: the places
 */
struct twheel_page {
	struct twheel_periodic *periodic;
	u32 first_index;
	u16 nr_found;
	u16 picked : 1;
	u16 last_half : 1;
	u16 found : 14;
	struct twheel_timeout timeout[PLACES_PER_PAGE] __aligned(8);
};

static_assert(sizeof(struct twheel_page) <= PAGE_SIZE);
static_assert(PAGE_SIZE <= 4 << 14);

/**
 * struct chain - timeouts linked by their node, for adding to an llist at once
 * @first: the timeout that was added last; NULL if there is none
 * @last: the end of the chain; valid with @first
 * @nr: how many timeouts there are
 *
 * A chain belongs to the thread that builds it, except for &twheel_arena.sifted.
 */
struct chain {
	struct llist_node *first;
	struct llist_node *last;
	unsigned int nr;
};

static inline u64 timeout_state(const struct twheel_timeout *t)
{
	/*
	 * Pairs with the release of the thread that published the fields: ARM, REARM,
	 * read, or the kthread.
	 * Test: litmus arm_publish, rearm_publish, defer_publish, continue_publish,
	 * postpone_publish, entry_enter, entry_postpone, entry_kept
	 */
	return atomic64_read_acquire(&t->state);
}

static inline enum twheel_phase state_phase(u64 state)
{
	return state & STATE_PHASE;
}

static inline u32 state_seq(u64 state)
{
	return (state & STATE_SEQ) >> STATE_SEQ_SHIFT;
}

static inline u32 state_gen(u64 state)
{
	return state >> STATE_GEN_SHIFT;
}

/* The id of a timeout that is in this state, at the place with this index. */
static inline u64 state_id(u64 state, u32 index)
{
	return (state & STATE_GEN) | index;
}

/* Questions about a state */

static inline bool state_is_free(u64 state)
{
	return state_phase(state) == PHASE_FREE;
}

static inline bool state_is_new(u64 state)
{
	return state_phase(state) == PHASE_NEW;
}

/* True for a place without a timeout of which the wheel has an entry: see state_cancelled(). */
static inline bool state_has_entry(u64 state)
{
	return state_phase(state) <= PHASE_NEW && state & STATE_ENTRY;
}

static inline bool state_is_queued(u64 state)
{
	return state_phase(state) == PHASE_QUEUED;
}

static inline bool state_is_armed(u64 state)
{
	return state_phase(state) == PHASE_ARMED;
}

static inline bool state_is_pending(u64 state)
{
	return state_is_queued(state) || state_is_armed(state);
}

static inline bool state_is_unread(u64 state)
{
	return state_phase(state) == PHASE_UNREAD;
}

static inline bool state_is_rearming(u64 state)
{
	return state_phase(state) == PHASE_REARMING;
}

static inline bool state_is_periodic(u64 state)
{
	return state & STATE_PERIODIC;
}

static inline bool state_is_fixed_delay(u64 state)
{
	return state & STATE_FIXED_DELAY;
}

static inline bool state_is_limited(u64 state)
{
	return state & STATE_LIMITED;
}

static inline bool state_is_overdue(u64 state)
{
	return state & STATE_OVERDUE;
}

static inline bool state_is_drained(u64 state)
{
	return state & STATE_DRAINED;
}

static inline bool state_has_slack(u64 state)
{
	return state & STATE_SLACK;
}

/* The slack in force, 2^k - 1 ticks: the timeout expires in a multiple of 2^k. */
static inline u64 state_slack_ticks(u64 state)
{
	return BIT_ULL((state & STATE_SLACK) >> STATE_SLACK_SHIFT) - 1;
}

/* True for a one-shot without slack, as nearly all timeouts are. */
static inline bool state_is_plain(u64 state)
{
	return !(state & (STATE_PERIODIC | STATE_SLACK));
}

/*
 * True for a one-shot without slack whose entry has this sequence number, if it was not due
 * when it was armed.  All of that is in the lower half of the state.
 */
static inline bool state_is_plain_armed(u64 state, u32 seq)
{
	return (u32)state == (seq << STATE_SEQ_SHIFT | PHASE_ARMED);
}

/* True for a one-shot that has expired and was not drained, as nearly all events are. */
static inline bool state_is_plain_unread(u64 state)
{
	return (state & (STATE_PHASE | STATE_PERIODIC | STATE_DRAINED)) ==
	       PHASE_UNREAD;
}

/*
 * True for a timeout that counts for the user: it pends, or its event waits to be read.
 */
static inline bool state_is_live(u64 state)
{
	return state_is_pending(state) || state_is_unread(state);
}

/* True for an UNREAD timeout that keeps its room in the wheel for its next period. */
static inline bool state_keeps_room(u64 state)
{
	return state_is_unread(state) && state_is_periodic(state) &&
	       !state_is_drained(state);
}

/*
 * True for a timeout that has ended, and whose place is not in use again: it is free, or
 * its timeout was cancelled in the inbox.
 */
static inline bool state_has_ended(u64 state)
{
	return state_is_free(state) || state_phase(state) == PHASE_DEAD;
}

/* The flags with which a life begins */

static inline u64 flags_once(bool overdue)
{
	return overdue ? STATE_OVERDUE : 0;
}

static inline u64 flags_periodic(bool overdue, bool fixed_delay, bool limited)
{
	return STATE_PERIODIC | flags_once(overdue) |
	       (fixed_delay ? STATE_FIXED_DELAY : 0) | (limited ? STATE_LIMITED : 0);
}

/* The greatest slack of the form 2^k - 1 that is within @slack_ticks. */
static inline u64 flags_slack(u32 slack_ticks)
{
	u64 k = ilog2((u64)slack_ticks + 1);

	return min(k, STATE_SLACK_MAX) << STATE_SLACK_SHIFT;
}

/*
 * The state after a transition.  A life goes from ARM or REARM to the end of the timeout,
 * or to the next REARM.
 */

static inline u64 state_next(u64 state, enum twheel_phase phase, u64 flags)
{
	return (state & (STATE_GEN | STATE_SEQ)) | phase | flags;
}

static inline u64 state_new(u64 state, u64 flags)
{
	return state_next(state, PHASE_NEW, flags);
}

/* NEW, and the place still has its entry. */
static inline u64 state_new_with_entry(u64 state)
{
	return state_new(state, STATE_ENTRY);
}

/* NEW goes into the inbox. */
static inline u64 state_published(u64 state)
{
	return state_next(state, PHASE_QUEUED, state & STATE_FLAGS);
}

/* The timeout goes into the inbox, or stays there, with the flags of a new life. */
static inline u64 state_requeued(u64 state, u64 flags)
{
	return state_next(state, PHASE_QUEUED, flags);
}

/* The timeout goes into the inbox for the next period of the same life. */
static inline u64 state_continued(u64 state, bool overdue)
{
	return state_requeued(state, (state & STATE_LIFE) | flags_once(overdue));
}

/* The timeout goes into the wheel.  Its new sequence number makes older entries stale. */
static inline u64 state_placed(u64 state)
{
	u64 seq = (state + BIT_ULL(STATE_SEQ_SHIFT)) & STATE_SEQ;

	return (state & STATE_GEN) | seq | PHASE_ARMED | (state & STATE_FLAGS);
}

/* A new life begins, and keeps the entry of the old one, or of the place. */
static inline u64 state_deferred(u64 state, u64 flags)
{
	return state_next(state, PHASE_ARMED, flags);
}

/* A holder of events.lock is about to change the fields. */
static inline u64 state_rearming(u64 state)
{
	return state_next(state, PHASE_REARMING, 0);
}

static inline u64 state_unread(u64 state)
{
	return state_next(state, PHASE_UNREAD, state & STATE_LIFE);
}

static inline u64 state_drained(u64 state)
{
	return state_unread(state) | STATE_DRAINED;
}

/* The timeout waits for the edge of a tick from now on, though it was due when armed. */
static inline u64 state_not_overdue(u64 state)
{
	return state & ~STATE_OVERDUE;
}

static inline u64 state_dead(u64 state)
{
	return state_next(state, PHASE_DEAD, 0);
}

/*
 * The place becomes free.  G8 stale ids are harmless: from now on the old id names
 * nothing.
 */
static inline u64 state_freed(u64 state)
{
	return (state & (STATE_GEN | STATE_SEQ)) + BIT_ULL(STATE_GEN_SHIFT);
}

/*
 * A timeout is cancelled while it is ARMED.  The place keeps the entry: a timeout that is
 * armed there next, and is not due before the entry comes up, needs no other one.
 */
static inline u64 state_cancelled(u64 state)
{
	return state_freed(state) | STATE_ENTRY;
}

/* The entry of the place was taken out of the wheel. */
static inline u64 state_without_entry(u64 state)
{
	return state & ~STATE_ENTRY;
}

/* The state of a place that was never used, with @gen as its first generation. */
static inline u64 state_unused(u32 gen)
{
	return (u64)gen << STATE_GEN_SHIFT;
}

/*
 * All races between threads end here.  G3 exactly one outcome: of all threads that try to
 * change the same state, one gets true, and goes on with the timeout; the others look at
 * the state again.
 */
static inline bool state_change(struct twheel_timeout *t, u64 from, u64 to)
{
	return atomic64_try_cmpxchg(&t->state, (s64 *)&from, to);
}

/* Places, indices and ids */

static inline struct twheel_page *timeout_page(const struct twheel_timeout *t)
{
	return (struct twheel_page *)((unsigned long)t & PAGE_MASK);
}

static inline u32 timeout_slot(const struct twheel_timeout *t)
{
	return t - timeout_page(t)->timeout;
}

static inline u32 timeout_index(const struct twheel_timeout *t)
{
	return timeout_page(t)->first_index + timeout_slot(t);
}

static inline u64 timeout_id(const struct twheel_timeout *t, u64 state)
{
	return state_id(state, timeout_index(t));
}

static inline u32 id_index(u64 id)
{
	return id;
}

static inline u32 id_gen(u64 id)
{
	return id >> STATE_GEN_SHIFT;
}

/*
 * The state of an entry's timeout.  @t is NULL if its page was removed; all its places
 * were free then.
 */
static inline u64 timeout_state_or_free(const struct twheel_timeout *t)
{
	return t ? timeout_state(t) : PHASE_FREE;
}

static inline struct twheel_periodic *timeout_periodic(const struct twheel_timeout *t)
{
	/* Pairs with the release in periodic_add().  Test: litmus periodic_filled */
	return READ_ONCE(timeout_page(t)->periodic);
}

static __always_inline void chain_add(struct chain *chain, struct twheel_timeout *t)
{
	t->node.next = chain->first;
	chain->first = &t->node;
	if (!chain->last)
		chain->last = &t->node;
	chain->nr++;
}

#endif /* _TWHEEL_ENGINE_TIMEOUT_H */
