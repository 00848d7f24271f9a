/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When the kthread runs, and who is woken
 */
#ifndef _TWHEEL_ENGINE_WAKE_H
#define _TWHEEL_ENGINE_WAKE_H

#include <linux/cache.h>
#include <linux/hrtimer.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "user.h"

struct twheel;

/**
 * struct twheel_wake - when the kthread runs, and who waits
 * @lock: guards the next ones, and starting @timer; also &twheel_shrink.wanted
 * @at_ns: when the kthread runs next; read without the lock to see whether a new
 *	timeout is earlier
 * @passing: a pass is going on, which looks at @at_ns when it ends
 * @closing: @timer and &twheel_shrink.work must not be started any more
 * @drain_wanted: the next pass is to drain
 * @passes_wanted: the number of the latest pass that somebody asked for
 * @passes_done: the number of the latest of these passes that began and ended
 * @pass_waiters: callers that wait for a pass to end
 * @waiters: readers and pollers
 * @timer: fires at @at_ns
 * @turn: the wheel's turn with the kthread
 */
struct twheel_wake {
	spinlock_t lock ____cacheline_aligned_in_smp;
	u64 at_ns;
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
 * Something was put into the inbox that is due at @due_ns (WAKE_NOW if it was
 * due when armed).  Nobody is woken if the kthread runs by then anyway.
 *
 * The llist_add before us is a full barrier, as is the llist_del_all in
 * pass_begin() after it has set wake.at_ns to WAKE_NEVER: either we see that, or
 * the pass sees what we added.
 */
static inline bool wake_is_too_late(const struct twheel_wake *wake, u64 due_ns)
{
	return due_ns < READ_ONCE(wake->at_ns) && due_ns < TWHEEL_TIME_NEVER;
}

void twheel_wake_program(struct twheel *tw)
	__must_hold(&tw->wake.lock);
void twheel_wake_at(struct twheel *tw, u64 edge_ns);
void twheel_wake_for(struct twheel *tw, u64 due_ns);
void twheel_wake_waiters(struct twheel_wake *wake, __poll_t events, unsigned int nr);
int twheel_pass_wait(struct twheel *tw);
int twheel_pass_wait_killable(struct twheel *tw);
void twheel_wake_init(struct twheel_wake *wake);
void twheel_wake_start(struct twheel *tw);

#endif /* _TWHEEL_ENGINE_WAKE_H */
