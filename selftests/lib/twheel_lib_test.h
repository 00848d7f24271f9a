/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of libtwheel share.  Each runs with both back ends, in the virtual
 * machine; on the host, where there is no device, with the local one, and there with
 * sanitizers.
 */
#ifndef TWHEEL_LIB_TEST_H
#define TWHEEL_LIB_TEST_H

#include "twheel_test.h"

#include <twheel.h>

/* After FIXTURE(name) {...}: its variants, each with a member ``backend``. */
#define LIB_VARIANTS(fixture)						\
	FIXTURE_VARIANT(fixture) {					\
		__u32 backend;						\
	};								\
	FIXTURE_VARIANT_ADD(fixture, device) { .backend = TWHEEL_DEVICE };	\
	FIXTURE_VARIANT_ADD(fixture, local) { .backend = TWHEEL_LOCAL }

#define LIB_SKIP_WITHOUT_BACKEND() do {					\
	if (variant->backend == TWHEEL_DEVICE && access(TW_DEVICE, F_OK))	\
		SKIP(return, "no " TW_DEVICE);				\
} while (0)

/* Nothing that was allocated is lost: where there is a sanitizer to say so. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#define lib_leaks()	__lsan_do_recoverable_leak_check()
#else
#define lib_leaks()	0
#endif

#define EXPECT_NO_LEAK()	EXPECT_EQ(0, lib_leaks())

/* A wheel with these options; *w is NULL where that fails. */
static inline int lib_open(struct twheel **w, __u32 backend, __u32 clock, __u64 tick_ns)
{
	const struct twheel_options options = {
		.size = sizeof(options),
		.backend = backend,
		.clock = clock,
		.tick_ns = tick_ns,
	};

	return twheel_open(w, &options);
}

static inline struct twheel_stats lib_stats(struct twheel *w)
{
	struct twheel_stats stats;

	memset(&stats, TW_POISON, sizeof(stats));
	twheel_stats(w, &stats, sizeof(stats));
	return stats;
}

#endif /* TWHEEL_LIB_TEST_H */
