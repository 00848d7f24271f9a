/* SPDX-License-Identifier: GPL-2.0 */
/*
 * libtwheel's calls of the C library, counted, refused if a test wants it, and with clocks that
 * jump.  The linker puts these in between, see lib.mk.
 */
#ifndef LIB_CALLS_H
#define LIB_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Clocks by their numbers, CLOCK_TAI the last one. */
#define LIB_CLOCKS	12

/**
 * struct lib_calls - calls since lib_watch()
 * @system: system calls, but for the clock
 * @settings: of these, timerfd_settime()
 * @clock: how often a clock was read
 * @memory: of these, the system calls that get or return memory
 * @refuse: the function that fails, or NULL
 * @granted: how many calls of it succeed before
 * @offset_ns: how far a clock is ahead of the system's
 */
struct lib_calls {
	unsigned long system;
	unsigned long settings;
	unsigned long clock;
	unsigned long memory;
	const char *refuse;
	int granted;
	int64_t offset_ns[LIB_CLOCKS];
};

extern struct lib_calls lib_calls;

/* Begin to count from 0. */
static inline void lib_watch(void)
{
	lib_calls.system = 0;
	lib_calls.settings = 0;
	lib_calls.clock = 0;
	lib_calls.memory = 0;
}

void lib_jump(clockid_t clock, int64_t by_ns);

#endif /* LIB_CALLS_H */
