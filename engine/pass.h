/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A pass: one round of the kthread over a wheel
 *
 * Locks: none.  Only the thread that has the wheel's turn uses this struct: the kthread, or a
 * waiter that stands in for it.  At the last close, when there are no turns, that thread does.
 */
#ifndef _TWHEEL_ENGINE_PASS_H
#define _TWHEEL_ENGINE_PASS_H

#include <linux/cache.h>
#include <linux/llist.h>
#include <linux/types.h>

struct twheel_turn;

/**
 * struct twheel_pass - how far the pass has come
 * @number: &twheel_wake.passes_wanted when the pass began
 * @drains: &twheel_wake.drain_wanted when the pass began
 * @begun: a pass has begun and has not ended: the next turn goes on with it
 * @sweeping: a sweep for stale entries has begun; it may last several passes
 * @sweeps_all: it drops the entries that free places keep, too
 * @by_waiter: a waiter stands in for the kthread, see twheel_stand_in_begin()
 * @now_ns: the wheel's clock when the pass began, or a later reading that is less, since
 *	the clock was set back
 * @sweep_left: how many entries the pass may still sweep; below 0 when the last chunk
 *	held more than were left
 * @drain_page: number of the page of places that is drained next
 * @arrivals: timeouts taken from the inbox that are not in the wheel yet
 *
 * No lock guards these members: &twheel_queue.lock gives the turn to one thread at a time.
 */
struct twheel_pass {
	u64 number ____cacheline_aligned_in_smp;
	bool drains;
	bool begun;
	bool sweeping;
	bool sweeps_all;
	bool by_waiter;
	u64 now_ns;
	s64 sweep_left;
	u32 drain_page;
	struct llist_node *arrivals;
};

bool twheel_pass_turn(struct twheel_turn *turn, u64 end_ns);

#endif /* _TWHEEL_ENGINE_PASS_H */
