/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The inbox: timeouts on their way to the wheel
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
 * @len: how many; atomic
 * @nr_requeued: calls that re-armed something QUEUED; atomic
 */
struct twheel_inbox {
	struct llist_head list ____cacheline_aligned_in_smp;
	atomic_t len;
	atomic_t nr_requeued;
};

/*
 * Put a chain of QUEUED timeouts into the inbox; wake_for() has to follow.  The
 * chain is not to be touched any more.  Returns when it has to be looked at:
 * @due_ns, or now when the inbox is getting full.
 *
 * Those who re-arm what is QUEUED leave it where it is and trust that the next
 * pass finds it in the inbox.  So it is put there under the lock in which it
 * becomes QUEUED; twheel_arm_commit(), which has no lock, does otherwise.
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
