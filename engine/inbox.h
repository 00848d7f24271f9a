/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The inbox: timeouts on their way to the wheel
 *
 * Locks: none.  Any thread adds, and only the kthread takes, which it does with the whole
 * list at once.
 */
#ifndef _TWHEEL_ENGINE_INBOX_H
#define _TWHEEL_ENGINE_INBOX_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/llist.h>
#include <linux/types.h>

#include "clock.h"
#include "limits.h"
#include "timeout.h"

/**
 * struct twheel_inbox - timeouts on their way to the wheel
 * @list: the timeouts; llist
 * @len: how many timeouts there are, in @list and in twheel_pass.arrivals; atomic
 * @nr_requeued: batches of REARM that found a timeout QUEUED and left it in the inbox;
 *	atomic
 */
struct twheel_inbox {
	struct llist_head list ____cacheline_aligned_in_smp;
	atomic_t len;
	atomic_t nr_requeued;
};

/*
 * Add a chain of QUEUED timeouts to the inbox.  The chain then belongs to the kthread,
 * and the caller must not touch it any more.  Return the time at which the kthread has to
 * look at the inbox: @due_ns, or WAKE_NOW if the inbox has just reached its watermark.
 * The caller goes on with wake_is_too_late().
 *
 * REARM leaves a timeout that is QUEUED in the inbox, and asks for a pass that has to
 * find the timeout in the inbox.  So a caller that makes timeouts QUEUED under
 * events.lock adds them before it releases the lock: no REARM comes in between.
 * ARM holds no lock; arm_queue() recognises such a REARM by inbox.nr_requeued, and asks
 * for a pass, too.
 */
static inline u64 inbox_add(struct twheel_inbox *inbox, const struct chain *chain, u64 due_ns)
{
	unsigned int len;

	if (!chain->nr)
		return due_ns;
	len = atomic_add_return(chain->nr, &inbox->len);
	llist_add_batch(chain->first, chain->last, &inbox->list);
	if (len >= INBOX_WATERMARK && len - chain->nr < INBOX_WATERMARK)
		return WAKE_NOW;
	return due_ns;
}

#endif /* _TWHEEL_ENGINE_INBOX_H */
