/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What libtwheel asks of the C library, counted, and refused where a test wants it.  The
 * linker puts these in between, see lib.mk.
 */
#ifndef LIB_CALLS_H
#define LIB_CALLS_H

#include <stdbool.h>

/**
 * struct lib_calls - what is counted, while it is watched
 * @watched: count, and refuse; the test's own calls are not meant
 * @system: system calls, the clock apart
 * @clock: how often the clock was read
 * @memory: what allocates; mmap() is both
 * @attempts: of all that can be refused: a number for each, from 1 on
 * @refuse: which of them is refused, 0 for none
 * @refuse_after: and all after it as well
 * @refused: how many were
 * @name: which function was refused last
 */
struct lib_calls {
	bool watched;
	unsigned long system;
	unsigned long clock;
	unsigned long memory;
	unsigned long attempts;
	unsigned long refuse;
	bool refuse_after;
	unsigned long refused;
	const char *name;
};

extern struct lib_calls lib_calls;

/* Begins to count from nothing; the @refuse-th attempt fails. */
static inline void lib_watch(unsigned long refuse, bool refuse_after)
{
	lib_calls = (struct lib_calls){
		.watched = true,
		.refuse = refuse,
		.refuse_after = refuse_after,
	};
}

static inline void lib_unwatch(void)
{
	lib_calls.watched = false;
}

#endif /* LIB_CALLS_H */
