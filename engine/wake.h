/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When the kthread runs, and which waiters are woken
 */
#ifndef _TWHEEL_ENGINE_WAKE_H
#define _TWHEEL_ENGINE_WAKE_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "user.h"

struct twheel;

/*
 * How far it is with a waiter that stands in for the kthread.  Each transition is one
 * atomic operation, of whoever is named there.
 */
enum stand_in_phase {
	/* No waiter is to make a pass. */
	STAND_IN_NONE,
	/*
	 * The softirq has woken a waiter to make the pass that is due.  That waiter, another
	 * thread that looks for events, or the kthread is the first to go on.
	 */
	STAND_IN_ASKED,
	/*
	 * The kthread makes the pass in its place, and the waiter has not looked since it was
	 * woken: it will, and needs no other wake-up for the events of this pass.
	 */
	STAND_IN_LATE,
	/* A waiter is making the pass.  It goes back to STAND_IN_NONE. */
	STAND_IN_WORKS,
	/* Likewise.  A thread has looked for events, and may have missed some. */
	STAND_IN_AWAITED,
};

/**
 * struct twheel_wake - when the kthread runs, and its waiters
 * @lock: serialises all that decides when the kthread runs: these members must agree with
 *	each other and with @timer
 * @at_ns: when the kthread runs next; written under @lock, read without it to find out
 *	whether a new timeout is earlier.  While a waiter is asked, it may be late by
 *	ASK_WAIT_NS.
 * @stand_in: enum stand_in_phase; atomic
 * @pause: so many times more the softirq asks no waiter; @lock
 * @passing: a pass is going on, and will look at @at_ns when it ends; @lock
 * @closing: the last close has begun: @timer and &twheel_shrink.work are not started any
 *	more; @lock, also read without it
 * @drain_wanted: the next pass drains the wheel; @lock
 * @passes_wanted: number of the latest pass that a caller asked for; @lock
 * @passes_done: number of the latest of these passes that began and ended; written under
 *	@lock with a release, read without it
 * @pass_waiters: callers that wait for a pass to end; guarded by its own lock
 * @waiters: readers and pollers; guarded by its own lock
 * @timer: fires at @at_ns; started under @lock
 * @turn: the wheel's turn with the kthread, see struct twheel_turn
 */
struct twheel_wake {
	spinlock_t lock ____cacheline_aligned_in_smp;	/* the softirq takes it */
	u64 at_ns;
	atomic_t stand_in;
	u8 pause;
	bool passing;
	bool closing;
	bool drain_wanted;
	u64 passes_wanted;
	u64 passes_done;
	wait_queue_head_t pass_waiters;
	wait_queue_head_t waiters;
	struct hrtimer timer;
	struct twheel_turn turn;
};

/*
 * Return whether the kthread would run too late for a timeout that the caller has put
 * into the inbox, and that is due at @due_ns (WAKE_NOW if it was due when armed).  The
 * caller then calls twheel_wake_for().  A timeout wakes nobody if the kthread runs early
 * enough anyway.
 *
 * The caller first adds to the inbox and then reads wake.at_ns.  pass_begin() first sets
 * wake.at_ns to WAKE_NEVER and then empties the inbox.  Both have a full barrier in
 * between: llist_add_batch() in the caller, or atomic_inc_return() of inbox.nr_requeued
 * if REARM has left its timeout in the inbox; llist_del_all() in pass_begin().  So either
 * the caller reads WAKE_NEVER here, or the time that a later call has set, or the pass
 * finds the timeout.  Test: litmus wake_arm, wake_rearm, wake_read, wake_requeued
 */
static inline bool wake_is_too_late(const struct twheel_wake *wake, u64 due_ns)
{
	return due_ns < READ_ONCE(wake->at_ns) && due_ns < TWHEEL_TIME_NEVER;
}

/* Return whether one thread waits, or one epoll instance. */
static inline bool waiter_is_alone(const struct twheel_wake *wake)
{
	/* The answer may be out of date, as it would be under the lock of the queue. */
	return data_race(list_is_singular(&wake->waiters.head));
}

/*
 * Return whether who looks for events has to call twheel_stand_in_note() first: a waiter
 * is making a pass, or the kthread has made one while a waiter was asked.
 */
static inline bool stand_in_matters(const struct twheel_wake *wake)
{
	/*
	 * Pairs with the full barrier in twheel_stand_in_end(): who sees that the pass has
	 * ended sees its events.  Test: litmus stand_in_ended
	 */
	return unlikely(atomic_read_acquire(&wake->stand_in) >= STAND_IN_LATE);
}

void twheel_wake_program(struct twheel *tw)
	__must_hold(&tw->wake.lock);
void twheel_wake_at(struct twheel *tw, u64 edge_ns);
void twheel_wake_for(struct twheel *tw, u64 due_ns);
void twheel_wake_waiters(struct twheel_wake *wake, __poll_t events, unsigned int nr);
int twheel_pass_wait(struct twheel *tw);
int twheel_pass_wait_killable(struct twheel *tw);
bool twheel_is_asked(const struct twheel *tw);
bool twheel_stand_in_begin(struct twheel *tw);
void twheel_stand_in_late(struct twheel_wake *wake);
void twheel_stand_in_end(struct twheel *tw, bool more);
void twheel_stand_in_note(struct twheel_wake *wake);
void twheel_wake_for_events(struct twheel *tw, unsigned int nr);
void twheel_wake_init(struct twheel_wake *wake);
void twheel_wake_start(struct twheel *tw);

#endif /* _TWHEEL_ENGINE_WAKE_H */
