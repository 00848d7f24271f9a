/* SPDX-License-Identifier: GPL-2.0 */
/* The functions that the oracle needs from its program, if choices come from a seed. */
#ifndef LIB_SEEDED_H
#define LIB_SEEDED_H

#include "lib_oracle.h"
#include "../twheel_test.h"

static __u64 seed;

u64 rnd(void)
{
	return (u64)tw_random(&seed) << 32 | tw_random(&seed);
}

u64 below(u64 n)
{
	return rnd() % n;
}

#endif /* LIB_SEEDED_H */
