/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the workloads. */
#ifndef TWHEEL_BENCH_WORKLOAD_H
#define TWHEEL_BENCH_WORKLOAD_H

#include "bench.h"

/* One back end at work. */
struct run {
	const struct peer *peer;
	void *self;
	uint32_t nr;
	uint32_t batch;
	uint32_t *who;		/* all timeouts, in the order in which they are handed over */
	uint64_t *deadline_ns;	/* of who[i] */
};

typedef void (*run_fn)(struct run *run, uint32_t first, uint32_t nr);

void run_open(struct run *run, const struct peer *peer, uint32_t nr, uint64_t same_ns);
void run_open_with(struct run *run, const struct peer *peer, const struct setup *setup);
void run_close(struct run *run);
/* Choose random deadlines between two times. */
void run_choose(struct run *run, uint64_t from_ns, uint64_t to_ns, uint64_t seed);
void run_shuffle(struct run *run, uint64_t seed);
/* Hand over who[from] to who[to - 1] in batches, however long that takes. */
void run_batches(struct run *run, run_fn fn, uint32_t from, uint32_t to);
/* Hand over the first nr in batches; return how many it were before time was up. */
uint32_t run_all(struct run *run, run_fn fn, uint32_t nr);
void run_settle(struct run *run);

void run_arm(struct run *run, uint32_t first, uint32_t nr);
void run_refresh(struct run *run, uint32_t first, uint32_t nr);
void run_cancel(struct run *run, uint32_t first, uint32_t nr);
void run_young_ones(struct run *run, uint32_t first, uint32_t nr);

#endif
