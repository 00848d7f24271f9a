/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The counters of the module, and what limits refuse
 *
 * Each processor has its own, and they are added up when they are read: to count costs an
 * instruction, and no cache line is shared.
 *
 * Locks: none.
 */
#ifndef _TWHEEL_ENGINE_COUNTERS_H
#define _TWHEEL_ENGINE_COUNTERS_H

#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/uidgid.h>

struct twheel;

/**
 * enum twheel_counter - what is counted
 * @COUNTER_PASSES_SOFTIRQ: steps of passes that the softirq has taken
 * @COUNTER_PASSES_KTHREAD: those that a kthread has taken
 * @COUNTER_PASSES_CALL: those that ADVANCE or DRAIN has taken
 * @COUNTER_LATE: timeouts that were late, as &twheel_events.late of each wheel
 * @COUNTER_REFUSED_PENDING: how often max_pending of a wheel has refused a timeout
 * @COUNTER_REFUSED_USER_MEMORY: how often max_user_memory_kb has refused memory
 * @COUNTER_REFUSED_MEMORY: how often max_memory_kb has
 * @COUNTER_WHEELS: wheels that are open
 * @COUNTER_TIMEOUTS: places in use, &twheel_places.nr_taken of each wheel
 * @NR_COUNTERS: how many counters there are
 */
enum twheel_counter {
	COUNTER_PASSES_SOFTIRQ,
	COUNTER_PASSES_KTHREAD,
	COUNTER_PASSES_CALL,
	COUNTER_LATE,
	COUNTER_REFUSED_PENDING,
	COUNTER_REFUSED_USER_MEMORY,
	COUNTER_REFUSED_MEMORY,
	COUNTER_WHEELS,
	COUNTER_TIMEOUTS,
	NR_COUNTERS,
};

DECLARE_PER_CPU(u64 [NR_COUNTERS], twheel_counters);

static inline void counter_add(enum twheel_counter counter, u64 nr)
{
	this_cpu_add(twheel_counters[counter], nr);
}

/* The counter of passes for whoever takes a step. */
static inline enum twheel_counter counter_of_pass(void)
{
	if (in_serving_softirq())
		return COUNTER_PASSES_SOFTIRQ;
	return current->flags & PF_KTHREAD ? COUNTER_PASSES_KTHREAD : COUNTER_PASSES_CALL;
}

void twheel_refused(const struct twheel *tw, kuid_t uid, enum twheel_counter limit, u64 used,
		    u64 wanted, u64 most);
u64 twheel_counter(enum twheel_counter counter);

#endif /* _TWHEEL_ENGINE_COUNTERS_H */
