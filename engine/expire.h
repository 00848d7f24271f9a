/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Expiry: timeouts become events
 */
#ifndef _TWHEEL_ENGINE_EXPIRE_H
#define _TWHEEL_ENGINE_EXPIRE_H

#include <linux/compiler.h>
#include <linux/lockdep.h>
#include <linux/types.h>

#include "engine.h"
#include "time.h"
#include "timeout.h"
#include "words.h"

/* When a PENDING timeout with this deadline is due, by its slack; NEVER_NS if it never is. */
static inline u64 timeout_due_by_ns(struct twheel *tw, const struct twheel_timeout *t,
				    u64 deadline_ns)
	__must_hold(&tw->lock)
{
	if (timeout_is_odd(t))
		deadline_ns = slack_due_ns(&tw->clock, timeout_extra(t)->flags, deadline_ns);
	return deadline_ns < tw->clock.never_ns ? deadline_ns : NEVER_NS;
}

/* When a PENDING timeout is due, by its deadline in force. */
static inline u64 timeout_due_ns(struct twheel *tw, const struct twheel_timeout *t)
	__must_hold(&tw->lock)
{
	return timeout_due_by_ns(tw, t, timeout_deadline_ns(&tw->words, t));
}

/*
 * Take over the deadline in force before a PENDING timeout is put elsewhere: it has to come up by
 * the deadline that is known.  Returns when it is due by that.  The word is read once: a user may
 * store another deadline at any time.
 */
static inline u64 timeout_take_over(struct twheel *tw, struct twheel_timeout *t)
	__must_hold(&tw->lock)
{
	u64 deadline_ns = t->deadline_ns;

	/* A plain one, as in the loop of slots_empty_ahead(). */
	if (likely(deadline_ns < tw->clock.never_ns && !words_are_there(&tw->words)))
		return deadline_ns;
	deadline_ns = timeout_deadline_ns(&tw->words, t);
	t->deadline_ns = deadline_ns | (t->deadline_ns & DEADLINE_ODD);
	return timeout_due_by_ns(tw, t, deadline_ns);
}

void twheel_expire_overdue(struct twheel *tw, struct twheel_timeout *t, u64 now_ns)
	__must_hold(&tw->lock);
unsigned int twheel_expire(struct twheel *tw, u64 now_ns, unsigned int nr)
	__must_hold(&tw->lock);

#endif /* _TWHEEL_ENGINE_EXPIRE_H */
