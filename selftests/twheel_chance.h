/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Chance, for tests that are random: each run has a seed of its own, which it prints;
 * TW_SEED=number in the environment runs that one again.
 */
#ifndef TWHEEL_CHANCE_H
#define TWHEEL_CHANCE_H

#include "twheel_test.h"

#include <sys/random.h>

static __u64 seed;

static inline void seed_begin(struct __test_metadata *_metadata)
{
	const char *wanted = getenv("TW_SEED");

	if (wanted)
		seed = strtoull(wanted, NULL, 0);
	else
		ASSERT_EQ(sizeof(seed), getrandom(&seed, sizeof(seed), 0));
	TH_LOG("TW_SEED=%#llx", seed);
}

static inline __u32 random_below(__u32 end)
{
	return tw_random(&seed) % end;
}

/* Return a number from min to max - 1, or min if they are equal. */
static inline __u64 random_between(__u64 min, __u64 max)
{
	__u64 high = tw_random(&seed);

	return max <= min ? min : min + (high << 32 | tw_random(&seed)) % (max - min);
}

#endif /* TWHEEL_CHANCE_H */
