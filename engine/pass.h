/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The passes of the kthread over a wheel
 */
#ifndef _TWHEEL_ENGINE_PASS_H
#define _TWHEEL_ENGINE_PASS_H

#include <linux/cache.h>
#include <linux/llist.h>
#include <linux/types.h>

struct twheel_turn;

/**
 * struct twheel_pass - what the kthread is doing; its alone
 * @number: &twheel_wake.passes_wanted when the pass began
 * @drains: &twheel_wake.drain_wanted when the pass began
 * @begun: a pass has begun and needs more turns
 * @sweeping: a sweep has begun
 * @now_ns: the clock when the pass began
 * @sweep_left: entries that this pass may still sweep
 * @drain_page: where draining stands
 * @arrivals: what is left of the chain taken from the inbox
 */
struct twheel_pass {
	u64 number ____cacheline_aligned_in_smp;
	bool drains;
	bool begun;
	bool sweeping;
	u64 now_ns;
	s64 sweep_left;
	u32 drain_page;
	struct llist_node *arrivals;
};

bool twheel_pass_turn(struct twheel_turn *turn, u64 end_ns);

#endif /* _TWHEEL_ENGINE_PASS_H */
