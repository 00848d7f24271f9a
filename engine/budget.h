/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The budget of a turn with the kthread
 *
 * G2 bounded lateness: a turn ends when its budget is spent, and other wheels have
 * theirs.
 *
 * Locks: none.  A budget lives on the stack of the thread that takes the turn: the kthread, or
 * a waiter that stands in for it.
 */
#ifndef _TWHEEL_ENGINE_BUDGET_H
#define _TWHEEL_ENGINE_BUDGET_H

#include <linux/compiler.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/types.h>

#include "limits.h"

/**
 * struct budget - how much longer a turn lasts
 * @entries: entries that the turn may still work on; the turn has ended at 0 or below
 * @end_ns: when the turn ends at the latest, ktime_get_ns()
 * @by_waiter: the turn ends when another thread wants the processor
 *
 * There are two limits because the cost of an entry depends on the machine and on its
 * load.
 */
struct budget {
	int entries;
	u64 end_ns;
	bool by_waiter;
};

static inline bool budget_is_spent(const struct budget *budget)
{
	return budget->entries <= 0;
}

/*
 * Charge @nr entries to the turn.  Return whether the turn goes on.  The clock is read
 * once in KTHREAD_BATCH entries only.
 */
static inline bool budget_spend(struct budget *budget, int nr)
{
	int left = budget->entries - nr;

	if ((left - 1) / KTHREAD_BATCH != (budget->entries - 1) / KTHREAD_BATCH &&
	    (ktime_get_ns() >= budget->end_ns || (budget->by_waiter && need_resched())))
		left = 0;
	budget->entries = left;
	return left > 0;
}

/*
 * Let others have the processor between two batches.  A waiter does not do so while it has
 * the wheel's turn: it ends its turn instead, see budget_spend().
 */
static inline void turn_yield(bool by_waiter)
{
	if (likely(!by_waiter))
		cond_resched();
}

#endif /* _TWHEEL_ENGINE_BUDGET_H */
