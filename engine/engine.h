/* SPDX-License-Identifier: GPL-2.0 */
/*
 * struct twheel, an open wheel: the data of each part of the engine, side by side
 *
 * Locks: each part declares its own in its header, and names there the members that they
 * guard.  The order among them stands in the banner of twheel_main.c.
 */
#ifndef _TWHEEL_ENGINE_H
#define _TWHEEL_ENGINE_H

#include <linux/types.h>

#include "arena.h"
#include "clock.h"
#include "control.h"
#include "events.h"
#include "inbox.h"
#include "keys.h"
#include "memory.h"
#include "pass.h"
#include "room.h"
#include "shrink.h"
#include "twheel_wheel.h"
#include "wake.h"
#include "words.h"

/**
 * struct twheel - an open wheel
 * @clock: the clock and the tick
 * @control: the configuration, and whether timeouts are accepted
 * @memory: the user who is charged for this wheel
 * @words: the refresh table
 * @arena: the places of timeouts
 * @keys: the index of a keyed wheel
 * @room: the number of entries that the wheel is sure to have chunks for
 * @inbox: timeouts on their way into the wheel
 * @events: the ready list
 * @wake: the time at which the kthread runs next, and the wait queues
 * @shrink: how far giving memory back has come
 * @pass: how far the kthread's pass has come
 * @wheel: the wheel itself.  twheel_start() makes it under &twheel_control.mutex; after
 *	that only the thread that has the wheel's turn changes it, until the last close,
 *	and no lock guards it.  Its number of levels is constant.
 * @slots_memory: memory of the wheel's slots; written under &twheel_control.mutex before
 *	&twheel_control.started is set, constant after that
 * @slots_size: size of @slots_memory in bytes; guarded as @slots_memory
 */
struct twheel {
	struct twheel_clockwork clock;
	struct twheel_control control;
	struct twheel_memory memory;
	struct twheel_words words;
	struct twheel_arena arena;
	struct twheel_keys keys;
	struct twheel_room room;
	struct twheel_inbox inbox;
	struct twheel_events events;
	struct twheel_wake wake;
	struct twheel_shrink shrink;
	struct twheel_pass pass;
	struct twheel_wheel wheel;
	void *slots_memory;
	size_t slots_size;
};

#endif /* _TWHEEL_ENGINE_H */
