/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Refresh by store, where <linux/twheel.h> does not have it yet.  The module says
 * in INFO's features whether it can.
 */
#ifndef TWHEEL_BENCH_REFRESH_H
#define TWHEEL_BENCH_REFRESH_H

#include <linux/twheel.h>

#ifndef TWHEEL_FEATURE_REFRESH
#define TWHEEL_FEATURE_REFRESH	(1ULL << 0)

#define REFRESH_UNIT_NS		65536ULL

/* Rounds up to what a word of the table can say: once a turn of the loop. */
static inline __u64 twheel_refresh_deadline(__u64 deadline_ns)
{
	return (deadline_ns + REFRESH_UNIT_NS - 1) & ~(REFRESH_UNIT_NS - 1);
}

static inline void twheel_refresh(__u64 *table, __u64 id, __u64 deadline)
{
	__atomic_store_n(&table[(__u32)id], deadline | ((id >> 32) & 0xffff),
			 __ATOMIC_RELAXED);
}
#endif

#endif
