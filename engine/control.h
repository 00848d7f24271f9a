/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Control: creating, setting up, draining and destroying a wheel
 */
#ifndef _TWHEEL_ENGINE_CONTROL_H
#define _TWHEEL_ENGINE_CONTROL_H

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/types.h>

struct twheel;

/**
 * struct twheel_control - how a wheel was set up, and whether it takes timeouts
 * @mutex: one of SETUP, ADVANCE, DRAIN and the first ARM at a time; held while
 *	they wait for the kthread
 * @slots: of level 0.  This and the next: written under @mutex before @started,
 *	constant after
 * @setup_flags: TWHEEL_SETUP_*
 * @started: the configuration is final and the wheel exists; released once
 * @draining: arming is over; set once under @mutex
 * @drained: and all that was left is on the ready list; set once by the kthread
 */
struct twheel_control {
	struct mutex mutex;	/* set-up, drain, advance */
	u32 slots;
	u32 setup_flags;
	bool started;
	bool draining;
	bool drained;
};

static inline bool control_is_started(const struct twheel_control *control)
{
	/* Pairs with the release in twheel_start(). */
	return smp_load_acquire(&control->started);
}

void twheel_control_init(u32 default_tick_us, u32 max_pending_limit);
u32 twheel_max_pending_limit(void);
int twheel_start_lazily(struct twheel *tw);

#endif /* _TWHEEL_ENGINE_CONTROL_H */
