// SPDX-License-Identifier: GPL-2.0
/*
 * lib_fuzz.c - libtwheel under libFuzzer, with the oracle as its judge
 *
 * An input is the randomness that the oracle asks for: its bytes choose the wheel, the calls, the
 * actions of callbacks, and how far the clock moves, until there are no more.  So each input is a
 * correct use of the library, and to change a byte is to change a decision.  A failure stops the
 * fuzzer, which keeps the input; if the program gets that file, it fails again.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "lib_fuzz.h"
#include "lib_oracle.h"
#include "../wheel/fuzz_input.h"

/* If there are more timers, checks take long and find nothing new. */
#define MAX_FUZZED	700

/*
 * Take only as many bytes as have an effect.  At the end of the input this is 0, which ends loops
 * that go on while it is not.
 */
u64 below(u64 n)
{
	if (!input_left)
		return n - 1;
	return take(n <= 1 << 8 ? 1 : n <= 1 << 16 ? 2 : 8) % n;
}

void die(const char *fmt, ...)
{
	va_list args;

	fputs("oracle: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct world *world;
	struct shape shape;

	input = data;
	input_left = size;
	shape = random_shape();
	if (shape.nr_things > MAX_FUZZED)
		shape.nr_things = MAX_FUZZED;
	world = world_make(&shape);
	while (input_left)
		world_step(world);
	world_drain(world);
	world_free(world);
	return 0;
}
