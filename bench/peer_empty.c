// SPDX-License-Identifier: GPL-2.0
/*
 * Remembers deadlines and nothing else: what the benchmark's own loops cost, to
 * be subtracted from the others.
 */
#include "bench.h"

#include <unistd.h>

static void *open_empty(const struct setup *setup)
{
	return get_memory(setup->nr, sizeof(uint64_t));
}

static void arm(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr)
{
	uint64_t *deadline_of = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		deadline_of[who[i]] = deadline_ns[i];
}

static void cancel(void *self, const uint32_t *who, uint32_t nr)
{
	uint64_t *deadline_of = self;
	uint32_t i;

	for (i = 0; i < nr; i++)
		deadline_of[who[i]] = 0;
}

static void wait(void *self, bool sleep)
{
	(void)self;
	if (sleep)
		pause();
}

const struct peer peer_empty = {
	.name = "empty",
	.usage = "the loop alone",
	.workloads = DOES_OPS | DOES(MIX) | DOES(IDLE),
	.open = open_empty,
	.arm = arm,
	.refresh = arm,
	.cancel = cancel,
	.wait = wait,
};
