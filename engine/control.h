/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Control: creating, setting up, starting, advancing, draining and destroying a wheel
 *
 * Locks: control.mutex is declared here.  It is the outermost of the engine's locks: it
 * is held while SETUP allocates and while ADVANCE and DRAIN take the steps of a pass, and the
 * kthread never takes it.
 */
#ifndef _TWHEEL_ENGINE_CONTROL_H
#define _TWHEEL_ENGINE_CONTROL_H

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/twheel.h>
#include <linux/types.h>

struct twheel;

/**
 * struct twheel_control - how a wheel was set up, and whether it accepts timeouts
 * @mutex: lets SETUP, ADVANCE, DRAIN and the start by the first ARM run one at a time
 * @slots: slots of the finest level; written under @mutex before @started is set,
 *	constant after that
 * @setup_flags: TWHEEL_SETUP_*; guarded as @slots
 * @event_size: how long each event of read() is, bytes; guarded as @slots, and read
 *	without a lock by readers, see twheel_nr_events()
 * @name: the name, for people, with a NUL at its end; guarded as @slots
 * @started: the configuration is final, and the wheel has its memory, hrtimer and
 *	kthread; set once, with release, under @mutex
 * @draining: no timeout is accepted any more; set once under @mutex and &twheel.lock.  ARM, REARM
 *	and read test it and act on it under the latter, or ARM within one RCU read-side section.
 * @drained: every timeout that was left has become an event; set once, with release, under
 *	&twheel.lock
 * @nr_files: open files of the wheel; 0 once the last close has begun, before anything is freed
 * @nr: the number of the wheel: no other wheel has it as long as the module is loaded; constant
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

/*
 * The parameter of the module, which may be written at any time: no wheel may ask for a greater
 * max_pending.  A wheel that has started keeps its own.
 */
extern unsigned int twheel_max_pending_limit;

/*
 * Whether the configuration is final: once it is, it stays so, and the caller may read all of it
 * without a lock.
 */
static inline bool control_is_started(const struct twheel_control *control)
{
	/* Pairs with the release in twheel_start().  Test: litmus started */
	return smp_load_acquire(&control->started);
}

void twheel_set_defaults(struct twheel *tw);
int twheel_start_lazily(struct twheel *tw);

#endif /* _TWHEEL_ENGINE_CONTROL_H */
