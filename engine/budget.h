/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much longer a turn with the kthread lasts
 */
#ifndef _TWHEEL_ENGINE_BUDGET_H
#define _TWHEEL_ENGINE_BUDGET_H

#include <linux/timekeeping.h>
#include <linux/types.h>

#include "limits.h"

/**
 * struct budget - how much longer a turn lasts
 * @entries: how many more entries it may work on; not above 0: it has ended
 * @end_ns: when it ends at the latest, ktime_get_ns()
 *
 * Two limits, because the cost of an entry depends on the machine and on the load.
 */
struct budget {
	int entries;
	u64 end_ns;
};

static inline bool budget_is_spent(const struct budget *budget)
{
	return budget->entries <= 0;
}

/*
 * The turn has worked on @nr entries.  The clock is read once in KTHREAD_BATCH
 * entries.  Returns whether the turn goes on.
 */
static inline bool budget_spend(struct budget *budget, int nr)
{
	int left = budget->entries - nr;

	if ((left - 1) / KTHREAD_BATCH != (budget->entries - 1) / KTHREAD_BATCH &&
	    ktime_get_ns() >= budget->end_ns)
		left = 0;
	budget->entries = left;
	return left > 0;
}

#endif /* _TWHEEL_ENGINE_BUDGET_H */
