/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An open wheel, composed of what its parts keep
 */
#ifndef _TWHEEL_ENGINE_H
#define _TWHEEL_ENGINE_H

#include <linux/types.h>

#include "arena.h"
#include "clock.h"
#include "control.h"
#include "events.h"
#include "inbox.h"
#include "memory.h"
#include "pass.h"
#include "room.h"
#include "shrink.h"
#include "twheel_wheel.h"
#include "wake.h"
#include "words.h"

/**
 * struct twheel - an open wheel
 * @clock: what time it is
 * @control: how it was set up
 * @memory: who pays
 * @words: the refresh table
 * @arena: the places of timeouts
 * @room: what the wheel has room for
 * @inbox: timeouts on their way to the wheel
 * @events: the ready list
 * @wake: when the kthread runs
 * @shrink: memory that is given back
 * @pass: what the kthread is doing
 * @wheel: the wheel; the kthread's alone
 * @slots_memory: its slots
 * @slots_size: bytes of them
 */
struct twheel {
	struct twheel_clockwork clock;
	struct twheel_control control;
	struct twheel_memory memory;
	struct twheel_words words;
	struct twheel_arena arena;
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
