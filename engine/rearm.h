/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A timeout begins a new life, by REARM or by ARM in a keyed wheel
 */
#ifndef _TWHEEL_ENGINE_REARM_H
#define _TWHEEL_ENGINE_REARM_H

#include <linux/lockdep.h>
#include <linux/types.h>

struct twheel;
struct twheel_arm;
struct twheel_timeout;

/* In place of a verdict: twheel_extra_provide() has to be called first. */
#define REARM_NEEDS_EXTRA	0

int twheel_rearm_verdict(struct twheel *tw, struct twheel_arm *arm, struct twheel_timeout *t,
			 u64 now_ns)
	__must_hold(&tw->lock);
void twheel_rearm_do(struct twheel *tw, struct twheel_timeout *t, const struct twheel_arm *arm,
		     u64 now_ns, u64 *first_ns)
	__must_hold(&tw->lock);

#endif /* _TWHEEL_ENGINE_REARM_H */
