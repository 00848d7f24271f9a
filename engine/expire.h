/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Expiry: timeouts become events
 */
#ifndef _TWHEEL_ENGINE_EXPIRE_H
#define _TWHEEL_ENGINE_EXPIRE_H

#include <linux/lockdep.h>
#include <linux/types.h>

#include "engine.h"
#include "slack.h"
#include "timeout.h"
#include "words.h"

/*
 * When a PENDING timeout is due, by its deadline in force and its slack; NEVER_NS if it never is.
 */
static inline u64 timeout_due_ns(struct twheel *tw, const struct twheel_timeout *t)
	__must_hold(&tw->lock)
{
	u64 due_ns = timeout_deadline_ns(&tw->words, t);

	if (timeout_is_odd(t))
		due_ns = slack_due_ns(&tw->clock, timeout_extra(t)->flags, due_ns);
	return due_ns < tw->clock.never_ns ? due_ns : NEVER_NS;
}

/*
 * Take over the deadline in force before a PENDING timeout is put elsewhere: it has to come up by the
 * deadline that is known.  Returns when it is due, as timeout_due_ns() does.
 */
static inline u64 timeout_take_over(struct twheel *tw, struct twheel_timeout *t)
	__must_hold(&tw->lock)
{
	t->deadline_ns = timeout_deadline_ns(&tw->words, t) | (t->deadline_ns & DEADLINE_ODD);
	return timeout_due_ns(tw, t);
}

void twheel_expire_overdue(struct twheel *tw, struct twheel_timeout *t, u64 now_ns)
	__must_hold(&tw->lock);
unsigned int twheel_expire(struct twheel *tw, u64 now_ns, unsigned int nr)
	__must_hold(&tw->lock);
unsigned int twheel_drain_step(struct twheel *tw, u64 now_ns, unsigned int nr)
	__must_hold(&tw->lock);

#endif /* _TWHEEL_ENGINE_EXPIRE_H */
