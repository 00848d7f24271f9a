/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Expiry: timeouts become events
 */
#ifndef _TWHEEL_ENGINE_EXPIRE_H
#define _TWHEEL_ENGINE_EXPIRE_H

#include <linux/lockdep.h>
#include <linux/types.h>

#include "engine.h"

void twheel_expire_overdue(struct twheel *tw, struct twheel_timeout *t, u64 now_ns)
	__must_hold(&tw->lock);
unsigned int twheel_expire(struct twheel *tw, u64 now_ns, unsigned int nr)
	__must_hold(&tw->lock);

#endif /* _TWHEEL_ENGINE_EXPIRE_H */
