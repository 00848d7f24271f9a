/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the tests of libtwheel.  They run in the virtual machine, and on the host with
 * sanitizers.
 */
#ifndef TWHEEL_LIB_TEST_H
#define TWHEEL_LIB_TEST_H

#include "twheel_test.h"

#include <twheel.h>

/* If there is a sanitizer, check that no allocation is lost. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#define lib_leaks()	__lsan_do_recoverable_leak_check()
#else
#define lib_leaks()	0
#endif

#define EXPECT_NO_LEAK()	EXPECT_EQ(0, lib_leaks())

/* Open a wheel with these options; if that fails, *w is NULL. */
static inline int lib_open(struct twheel **w, __u32 clock, __u32 flags, __u64 tick_ns)
{
	const struct twheel_options options = {
		.size = sizeof(options),
		.clock = clock,
		.flags = flags,
		.tick_ns = tick_ns,
	};

	return twheel_open(w, &options);
}

static inline struct twheel_stats lib_stats(struct twheel *w)
{
	struct twheel_stats stats;

	memset(&stats, TW_POISON, sizeof(stats));
	twheel_get_stats(w, &stats, sizeof(stats));
	return stats;
}

/* A timer that remembers its calls. */
struct mark {
	struct twheel_timer timer;
	int called;
	__u64 periods;
	__u64 at_ns;
	int order;		/* counts the calls of all marks */
	/* the action of its callback, or NULL */
	void (*does)(struct twheel *w, struct mark *m);
	struct mark *others;
	int nr_others;
	void *data;
};

static int mark_calls;

static inline void mark_called(struct twheel *w, struct twheel_timer *t)
{
	struct mark *m = twheel_container_of(t, struct mark, timer);

	m->called++;
	m->periods = twheel_periods(w);
	m->at_ns = twheel_now(w);
	m->order = ++mark_calls;
	if (m->does)
		m->does(w, m);
}

static inline void mark_init(struct mark *m)
{
	memset(m, 0, sizeof(*m));
	twheel_timer_init(&m->timer, mark_called);
}

static inline int marks_called(const struct mark *m, int nr)
{
	int i, sum = 0;

	for (i = 0; i < nr; i++)
		sum += m[i].called;
	return sum;
}

/* Move the virtual clock, and dispatch; return the number of callbacks, or -1. */
static inline int lib_step(struct twheel *w, __u64 to_ns)
{
	return twheel_advance(w, to_ns) ? -1 : twheel_dispatch(w, 0);
}

#endif /* TWHEEL_LIB_TEST_H */
