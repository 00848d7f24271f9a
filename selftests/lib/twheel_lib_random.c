// SPDX-License-Identifier: GPL-2.0
/*
 * libtwheel against a plain array, on the caller's clock: random timers of all kinds, bursts,
 * limits, and callbacks that start, stop, move, dispatch, and advance the clock. TW_ROUNDS says how
 * many worlds there are, TW_SEED which ones.
 */
#include "twheel_lib_test.h"
#include "lib_seeded.h"

#include <stdarg.h>

#define STEPS	400

static __u64 first_seed;
static struct world *world;

void die(const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "# TW_SEED=%llu TW_ROUNDS=1, step %llu: ", (unsigned long long)first_seed,
		world ? (unsigned long long)world->steps : 0);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(KSFT_FAIL);
}

static void one_world(const struct shape *shape, unsigned long long *starts,
		      unsigned long long *calls)
{
	int step;

	world = world_make(shape);
	for (step = 0; step < STEPS; step++)
		world_step(world);
	if (below(2))
		world_drain(world);
	*starts += world->starts;
	*calls += world->all_called;
	world_free(world);
	world = NULL;
}

FIXTURE(random_use) {
};

FIXTURE_SETUP(random_use)
{
}

FIXTURE_TEARDOWN(random_use)
{
	EXPECT_NO_LEAK();
}

TEST_F_TIMEOUT(random_use, library_agrees_with_a_plain_array, 110)
{
	int round, rounds = tw_setting("TW_ROUNDS", 25);
	unsigned long long starts = 0, calls = 0;
	__u64 seed0 = tw_setting("TW_SEED", 1);

	for (round = 0; round < rounds; round++) {
		struct shape shape;

		first_seed = seed0 + round;
		seed = first_seed * 0x9e3779b97f4a7c15ULL;
		shape = random_shape();
		one_world(&shape, &starts, &calls);
	}
	TH_LOG("%llu starts, %llu callbacks", starts, calls);
	EXPECT_LT(10 * rounds, starts);
}

TEST_HARNESS_MAIN
