/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A pass: what there is to do on a wheel, step by step
 */
#ifndef _TWHEEL_ENGINE_PASS_H
#define _TWHEEL_ENGINE_PASS_H

#include <linux/lockdep.h>
#include <linux/types.h>

struct twheel;
struct twheel_turn;

/* A step looks at so many timeouts, under one hold of the wheel's lock. */
#define PASS_STEP	64

bool twheel_pass_step(struct twheel *tw)
	__must_hold(&tw->lock);
int twheel_pass_now(struct twheel *tw);
bool twheel_pass_turn(struct twheel_turn *turn, u64 end_ns);

#endif /* _TWHEEL_ENGINE_PASS_H */
