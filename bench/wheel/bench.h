/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bench.h - the interface of a structure of timers
 *
 * A structure has places for timers, numbered from 0.  All times are whole milliseconds from the
 * start; time stands still until run().
 */
#ifndef _WHEEL_BENCH_H
#define _WHEEL_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Deadlines are random within this, or within an hour for the longest call. */
#define SPAN_MS		60000
#define HOUR_MS		3600000

/* The time at which simulated time begins, as CLOCK_MONOTONIC. */
#define START_NS	1000000000000ULL

/**
 * struct structure - timers to be measured
 * @name: for the table
 * @why_missing: why it is not here, or NULL
 * @make: prepare places for @nr timers, once a process
 * @insert: begin timers that are not pending
 * @remove: end pending timers before they are due
 * @settle: do what removals have left to be done, or NULL
 * @move: give pending timers a later deadline
 * @run: let time pass until all have expired; @nr_expired counts them
 * @step: one turn of a loop: let time pass until something may be due, and call what is due;
 *	returns false if nothing pends; NULL if deadlines cannot be an hour ahead
 */
struct structure {
	const char *name;
	const char *why_missing;
	void (*make)(uint32_t nr);
	void (*insert)(const uint32_t *who, const uint32_t *due_ms, uint32_t nr);
	void (*remove)(const uint32_t *who, uint32_t nr);
	void (*settle)(void);
	void (*move)(const uint32_t *who, const uint32_t *due_ms, uint32_t nr);
	void (*run)(void);
	bool (*step)(void);
};

extern const struct structure libtwheel_structure;
extern const struct structure callout_structure;
extern const struct structure levels_structure;
extern const struct structure heap_structure;
extern const struct structure twheel_structure;
extern const struct structure libev_structure;
extern const struct structure libuv_structure;
extern const struct structure libevent_structure;
extern const struct structure libevent_common_structure;

/* Structures increment it for each timer that expires. */
extern uint64_t nr_expired;

/* Simulated time; see clock.c. */
extern uint64_t clock_ns;

/* Processor time of this process: others may run in between. */
uint64_t cpu_ns(void);

/* Zeroed memory in huge pages, never freed; ends the program if there is none. */
void *allocate(size_t size);

void fail(const char *what) __attribute__((noreturn));

#endif /* _WHEEL_BENCH_H */
