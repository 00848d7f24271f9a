/* SPDX-License-Identifier: GPL-2.0 */
/*
 * lib_oracle.h - the judge of libtwheel, shared by its random test and its fuzzer
 *
 * Where randomness comes from, and what becomes of a failure, is the program's:
 * rnd(), below() and die() are its own.
 */
#ifndef _LIB_ORACLE_H
#define _LIB_ORACLE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <twheel.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif

typedef uint64_t u64;
typedef uint32_t u32;

/* The most timers that there are at a time. */
#define MAX_THINGS	2048

/*
 * What is in the caller's object: the timer is not its first member.  An object has
 * memory of its own, which is given back when its timer is not pending, so that a
 * sanitizer sees whoever touches it afterwards.
 */
struct thing {
	u64 guard;
	u32 nr;
	struct twheel_timer timer;
};

/**
 * struct known - the oracle's knowledge of one timer
 * @thing: the object, NULL when there is none
 * @deadline_ns: as asked for, TWHEEL_TIME_NEVER at most
 * @interval_ns: as in force, 0 for a one-shot
 * @started_in: the number of the dispatch in which it was started, 0 outside of any
 * @fixed_delay: a periodic timer of this kind
 * @pending: its callback must be called some day
 * @was_due: its deadline had passed when it was started: it does not wait for a tick
 * @loose: it was started while there were events to be read, one of which may be for its
 *	place; when the clock moves before they are read, it may come later than in its
 *	tick, or between ticks
 * @far: a word of the refresh table may not reach so far: it may come between ticks; when
 *	the clock moves before events are read, one of them may be of the time to which the
 *	word reached, and then it is armed anew, and comes after the next flush
 * @must: it has to come in the next dispatch that is not cut off
 */
struct known {
	struct thing *thing;
	u64 deadline_ns;
	u64 interval_ns;
	u32 started_in;
	bool fixed_delay;
	bool pending;
	bool was_due;
	bool loose;
	bool far;
	bool must;
};

/**
 * struct shape - what a world is like
 * @backend: enum twheel_backend
 * @tick_ns: as in struct twheel_options
 * @slack_ns: likewise
 * @max_timers: likewise
 * @nr_things: the most timers that there are at a time
 * @exponent: distances are up to 2^exponent ticks
 * @may_lack_memory: -ENOMEM is no mistake
 */
struct shape {
	u32 backend;
	u64 tick_ns;
	u64 slack_ns;
	u32 max_timers;
	u32 nr_things;
	u32 exponent;
	bool may_lack_memory;
};

struct world {
	struct shape shape;
	struct twheel *w;
	u64 now_ns;
	u64 grain_ns;
	u64 edge_ns;		/* a tick, or with slack several */
	struct known known[MAX_THINGS];
	u32 nr_pending;
	u32 dispatch;		/* the number of the one under way, or 0 */
	u32 nr_dispatches;
	bool in_flush;		/* or in what flushes */
	bool in_advance;
	bool in_drain;		/* callbacks start nothing */
	bool touched;		/* by a callback of the dispatch under way */
	bool unsettled;		/* something was due when it was armed, since the last advance */
	bool undispatched;	/* the clock has moved since the last full dispatch */
	u32 called;		/* in this call, with status 0 */
	u32 refused;		/* in this call */
	u64 all_called;
	u64 all_refused;
	u64 steps;
	u64 starts;
};

/* Given by the program. */
u64 rnd(void);
u64 below(u64 n);
__attribute__((format(printf, 1, 2), noreturn)) void die(const char *fmt, ...);

#define CHECK(cond, fmt, ...)						\
	do {								\
		if (!(cond))						\
			die("%s:%d: !(%s) " fmt, __FILE__, __LINE__, #cond, ##__VA_ARGS__); \
	} while (0)

struct shape random_shape(u32 backend);
struct world *world_make(const struct shape *shape);
void world_free(struct world *world);
void world_step(struct world *world);
void world_drain(struct world *world);

#endif /* _LIB_ORACLE_H */
