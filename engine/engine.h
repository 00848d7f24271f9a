/* SPDX-License-Identifier: GPL-2.0 */
/*
 * struct tw_ctx, a wheel: the data of each part of the engine; and what the parts share: to find a
 * timeout, to prefetch it, to say when it is due and to ask for the alarm
 */
#ifndef _TWHEEL_ENGINE_H
#define _TWHEEL_ENGINE_H

#include <linux/hrtimer.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "account.h"
#include "expire.h"
#include "keys.h"
#include "pages.h"
#include "places.h"
#include "refresh.h"
#include "time.h"
#include "timeout.h"
#include "twheel_wheel.h"

/* A step processes this many timeouts at most, under one hold of the lock. */
#define PASS_STEP	64

/* At most this many timeouts of a slot are searched for the first one to expire. */
#define ALARM_SCAN_MAX	32

/**
 * struct twheel_alarm - the hrtimer of a wheel
 * @at_ns: when it rings, on the wheel's clock: by the time that the wheel has something to do.  The
 *	time has passed while the alarm rings in vain and, with PREEMPT_RT, while the kthread is
 *	asked for.  NEVER_NS if the alarm is not set; 0 if it never is, because the clock is virtual
 *	or the wheel has not started.
 * @nr_new: timeouts that were put into slots since alarm_next_ns() scanned these
 * @paid: it is set for a time at which the user has a share of the softirq again
 * @nr_missed: how often it has rung in vain, because another thread had the lock: the hrtimer is
 *	queued again, for a time after @at_ns; only the softirq accesses it
 * @timer: the hrtimer; started under &tw_ctx.lock, or without it by its own function
 *
 * &tw_ctx.lock guards all members but @nr_missed.  The alarm's function reads @paid without it.
 */
struct twheel_alarm {
	u64 at_ns;
	u32 nr_new;
	u32 nr_missed;
	bool paid;
	struct hrtimer timer;
};

/**
 * struct twheel_control - how a wheel was set up, and whether it accepts timeouts
 * @mutex: lets SETUP, ADVANCE, DRAIN, the start by the first ARM, and INFO before that run one at a
 *	time.  It is the outermost of the engine's locks, and a mutex since SETUP allocates, DRAIN
 *	waits for a grace period, and ADVANCE and DRAIN take the steps of a pass, and wake waiters.
 *	The kthread never takes it.
 * @slots: slots of the finest level; written under @mutex before @started is set,
 *	constant after that
 * @setup_flags: TWHEEL_SETUP_*; guarded as @slots
 * @event_size: how long each event of read() is, bytes; guarded as @slots, but readers read it
 *	without a lock, see twheel_nr_events()
 * @name: the name, for people, with a NUL at its end; guarded as @slots
 * @started: the configuration is final, and the wheel has its memory, hrtimer and
 *	kthread; set once, with release, under @mutex
 * @draining: no timeout is accepted any more; set once under @mutex and &tw_ctx.lock.  ARM, REARM
 *	and read test it and act on it under the latter, or ARM within one RCU read-side section.
 * @drained: every timeout that was left has become an event; set once, with release, under
 *	&tw_ctx.lock
 * @nr_files: open files of the wheel; 0 once the last close has begun, before anything is freed
 * @nr: the number of the wheel, unique as long as the module is loaded; constant
 */
struct twheel_control {
	struct mutex mutex;	/* SETUP, ADVANCE, DRAIN, start */
	u32 slots;
	u32 setup_flags;
	u32 event_size;
	char name[TWHEEL_NAME_SIZE];
	bool started;
	bool draining;
	bool drained;
	refcount_t nr_files;
	u64 nr;
};

/* A parameter of the module, written at any time: the greatest max_pending of a new wheel. */
extern unsigned int twheel_max_pending_limit;

/* Whether the configuration is final: then it stays so, and is read without a lock. */
static inline bool control_is_started(const struct twheel_control *control)
{
	/* Pairs with the release in wheel_start().  Test: litmus started */
	return smp_load_acquire(&control->started);
}

/**
 * struct tw_ctx - a wheel, which one or more open files have
 * @clock: the clock and the tick
 * @control: the configuration, and whether timeouts are accepted
 * @memory: the user who is charged for this wheel
 * @words: the refresh table
 * @places: the places of timeouts
 * @inbox: timeouts that ARM could not put into the wheel, because another thread had the lock;
 *	llist: added without a lock, emptied under @lock
 * @lock: guards all timeouts, and the members from @keys to @drain_index, unless their structures
 *	say otherwise.  The softirq only tries to take this spinlock, so all others need not disable
 *	softirqs.  It is held for a step of a pass or a batch of elements at a time, and lock.h
 *	takes and releases it.  The lock of the hrtimer's base is taken under it.
 * @keys: the index of a keyed wheel
 * @wheel: the wheel
 * @events: the list of events, and the counters
 * @alarm: the hrtimer
 * @nr_ahead: how many timeouts of upper slots have to be moved down now
 * @ahead_ns: the tick for which @nr_ahead was raised to AHEAD_TICK
 * @drains: DRAIN wants all timeouts to become events, and some may be left
 * @drain_index: index of the next place to drain
 * @waiters: readers and pollers; guarded by its own lock
 * @turn: the wheel's turn with the kthread, see struct twheel_turn; written as @slots_memory
 * @slots_memory: memory of the wheel's slots; written under &twheel_control.mutex before
 *	&twheel_control.started is set, constant after that
 * @slots_size: size of @slots_memory in bytes; guarded as @slots_memory
 */
struct tw_ctx {
	struct twheel_clockwork clock;
	struct twheel_control control;
	struct twheel_memory memory;
	struct twheel_words words;
	struct twheel_places places;
	struct llist_head inbox ____cacheline_aligned_in_smp;
	spinlock_t lock ____cacheline_aligned_in_smp;	/* all timeouts */
	struct twheel_keys keys;
	struct twheel_wheel wheel;
	struct twheel_events events;
	struct twheel_alarm alarm;
	u64 ahead_ns;
	u32 nr_ahead;
	bool drains;
	u32 drain_index;
	wait_queue_head_t waiters ____cacheline_aligned_in_smp;
	struct twheel_turn turn;
	void *slots_memory;
	size_t slots_size;
};

/* Find the live timeout that an id or a key names; NULL if there is none. */
static inline struct twheel_timeout *timeout_find(struct tw_ctx *tw, u64 id, bool by_key)
	__must_hold(&tw->lock)
{
	return by_key ? twheel_key_find(tw, id) : timeout_by_id(&tw->places, id);
}

/* Whether a batch of elements prefetches what it is about to access. */
static __always_inline bool prefetch_pays(const struct tw_ctx *tw, unsigned int nr, bool by_key)
{
	return nr > 1 && unlikely(READ_ONCE(tw->places.pages.nr) >
				  (by_key || words_are_there(&tw->words) ? PREFETCH_PAGES / 4 :
									   PREFETCH_PAGES));
}

/*
 * Find and prefetch the places that @nr elements name, by what is at @id in each, @stride bytes
 * apart; and their words if @words.  As all that prefetches for a batch, this is done before the
 * lock is taken: others need not wait for the memory.  The caller is in an RCU read section.
 */
static __always_inline void places_prefetch(struct tw_ctx *tw, const struct twheel_timeout **place,
					    const u64 *id, size_t stride, unsigned int nr,
					    bool by_key, bool words)
{
	unsigned int i;

	if (by_key) {
		twheel_keys_prefetch(tw, place, id, stride, nr, words);
		return;
	}
	for (i = 0; i < nr; i++, id = (const void *)id + stride) {
		place[i] = place_at(&tw->places, id_index(*id));
		place_prefetch(place[i]);
		if (words)
			prefetchw(word_at(&tw->words, id_index(*id)));
	}
}

/* While a slot is worked on: prefetch the timeout three behind, and the word of the next one. */
static __always_inline void timeout_prefetch_ahead(struct tw_ctx *tw,
						   const struct twheel_timeout *t, bool words)
	__must_hold(&tw->lock)
{
	place_prefetch(link_timeout(twheel_link_ahead(&t->link)));
	if (words && t->link.next != &tw->wheel.end)
		prefetch(word_at(&tw->words, timeout_index(link_timeout(t->link.next))));
}

/* When a PENDING timeout with this deadline is due, by its slack; NEVER_NS if it never is. */
static inline u64 timeout_due_by_ns(struct tw_ctx *tw, const struct twheel_timeout *t,
				    u64 deadline_ns) __must_hold(&tw->lock)
{
	if (timeout_has_extra(t))
		deadline_ns = slack_due_ns(&tw->clock, timeout_extra(t)->flags, deadline_ns);
	return deadline_ns < tw->clock.never_ns ? deadline_ns : NEVER_NS;
}

/* When a PENDING timeout is due, by its deadline in force. */
static inline u64 timeout_due_ns(struct tw_ctx *tw, const struct twheel_timeout *t)
	__must_hold(&tw->lock)
{
	return timeout_due_by_ns(tw, t, timeout_deadline_ns(&tw->words, t));
}

/*
 * Make the deadline in force the known one before a PENDING timeout is put elsewhere: it has to
 * come up by the known one.  Returns when it is due by that.  The word is read once: a user may
 * store another deadline at any time.
 */
static inline u64 timeout_take_over(struct tw_ctx *tw, struct twheel_timeout *t)
	__must_hold(&tw->lock)
{
	u64 deadline_ns = t->deadline_ns;

	/* Fast path: a plain timeout, in a wheel without words. */
	if (likely(deadline_ns < tw->clock.never_ns && !words_are_there(&tw->words)))
		return deadline_ns;
	deadline_ns = timeout_deadline_ns(&tw->words, t);
	t->deadline_ns = deadline_ns | (t->deadline_ns & DEADLINE_EXTRA);
	return timeout_due_by_ns(tw, t, deadline_ns);
}

/*
 * The time by which all deadlines have passed: the clock, which the caller has read as @now_ns, or
 * the time to which the wheel was turned since.
 */
static __always_inline u64 passed_ns(struct tw_ctx *tw, u64 now_ns) __must_hold(&tw->lock)
{
	if (likely(now_ns >= tw->wheel.base_ns && tw->clock.steady))
		return now_ns;
	return twheel_clock_follow(tw, now_ns);
}

void twheel_alarm_need(struct tw_ctx *tw, u64 first_ns);

/* @nr timeouts were put into slots, the first of which is due at @first_ns. */
static __always_inline void alarm_need(struct tw_ctx *tw, u64 first_ns, unsigned int nr)
	__must_hold(&tw->lock)
{
	tw->alarm.nr_new += nr;
	if (unlikely(first_ns < tw->alarm.at_ns ||
		     (tw->wheel.cascade_ns < tw->alarm.at_ns && tw->alarm.nr_new > ALARM_SCAN_MAX)))
		twheel_alarm_need(tw, first_ns);
}

/* alarm.c */
bool twheel_alarm_set(struct tw_ctx *tw, enum hrtimer_restart *restart);
void twheel_alarm_set_next(struct tw_ctx *tw, u64 pause_ns, enum hrtimer_restart *restart);

/* control.c */
void twheel_set_defaults(struct tw_ctx *tw);
int twheel_start_lazily(struct tw_ctx *tw);

/* run.c */
bool twheel_run_turn(struct twheel_turn *turn, u64 end_ns);
void twheel_alarm_init(struct tw_ctx *tw);

#endif /* _TWHEEL_ENGINE_H */
