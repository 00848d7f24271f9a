// SPDX-License-Identifier: GPL-2.0
/*
 * wheel_fuzz.c - the timing wheel under libFuzzer, with the oracle as its judge
 *
 * An input is the randomness that the oracle's driver asks for: its bytes say which wheel, which
 * steps, and how far each of them goes, until there are no more. So any input is a correct use of
 * the wheel, and to change a byte is to change a decision. A failure stops the fuzzer, which keeps
 * the input; if the program gets that file, it fails again.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "oracle.h"
#include "fuzz_input.h"

/* If there are more slots, they take time to check and find nothing new. */
#define MAX_SLOTS	1024

/* Take only as many bytes as have an effect. */
u64 below(u64 n)
{
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

static const struct shape *choose_shape(void)
{
	const struct shape *shape = &shapes[below(NR_SHAPES)];

	return shape->config.slots <= MAX_SLOTS ? shape : &shapes[0];
}

static struct rig *choose_rig(void)
{
	static const u32 caps[] = { 1, 8, 60, 150, 400 };
	const struct shape *shape = choose_shape();
	u64 start_ns = starts[below(NR_STARTS)];

	return rig_make(&shape->config, start_ns, caps[below(ARRAY_SIZE(caps))]);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct rig *r;

	input = data;
	input_left = size;
	r = choose_rig();
	while (input_left) {
		random_step(r);
		walk(r);
	}
	/* No entry may stay behind. */
	pass_at(r, r->never_ns - 1);
	CHECK(oracle_first(r) == NEVER_NS, "%u are left", r->held);
	walk(r);
	rig_free(r);
	return 0;
}
