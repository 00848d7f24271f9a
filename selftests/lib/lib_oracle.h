/* SPDX-License-Identifier: GPL-2.0 */
/*
 * lib_oracle.h - the judge of libtwheel, shared by its random test and its fuzzer
 *
 * The program decides where randomness comes from, and how a failure ends: it has rnd(), below()
 * and die().
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

/* From here on, a deadline means never. */
#define END_NS		(1ULL << 63)

/*
 * An object of the caller's: the timer is not its first member.  An object has memory of its own,
 * which is freed when its timer does not pend: if anything touches it afterwards, a sanitizer sees
 * that.
 */
struct thing {
	u64 guard;
	u32 nr;
	struct twheel_timer timer;
};

/**
 * struct known - the oracle's knowledge of one timer
 * @thing: the object; NULL if there is none
 * @deadline_ns: the one asked for, END_NS at most
 * @interval_ns: the one in force, 0 for a one-shot
 * @start: when it was started, as a number that grows with each event
 * @due: when it became due, likewise; 0 if it is not due
 * @reached: when its deadline was reached, which may be before an edge; 0 if it was not
 * @fixed_delay: a periodic timer of this kind
 * @pending: its callback has to be called some day
 * @passed: its deadline had passed when it was started, so it does not wait for an edge
 * @loose: it may come among those that have @passed: it was @passed, and has been restarted
 *	for later; or it has a fixed delay, and became due in its callback
 * @running: it has a fixed delay, and its callback has not returned
 * @visited: by twheel_each() or twheel_stop_all()
 */
struct known {
	struct thing *thing;
	u64 deadline_ns;
	u64 interval_ns;
	u64 start;
	u64 due;
	u64 reached;
	bool fixed_delay;
	bool pending;
	bool passed;
	bool loose;
	bool running;
	bool visited;
};

/**
 * struct shape - the parameters of a world
 * @tick_ns: as in struct twheel_options
 * @slack_ns: likewise
 * @flags: likewise
 * @nr_things: the most timers that there are at a time
 * @exponent: distances are up to 2^exponent ticks
 */
struct shape {
	u64 tick_ns;
	u64 slack_ns;
	u32 flags;
	u32 nr_things;
	u32 exponent;
};

/**
 * struct world - a wheel, and the oracle's knowledge of it
 * @edge_ns: a tick, or with slack several
 * @event: the number of the last one: a start, a dispatch, an advance
 * @turn: the dispatch that began the turn of the wheel: timers that were due then are called
 * @turn_most: a later one, if that has perhaps begun another turn; otherwise @turn
 * @unfinished: the turn may not be over, even if no timer is left that is known to be due
 * @stopping: when twheel_stop_all() began; 0 if it is not under way
 * @depth: dispatches under way, one in another
 * @in_drain: callbacks start nothing
 * @stale: the timer that was the first one may have been stopped or restarted
 * @had_passed: a timer may have been started since the last dispatch whose deadline had passed
 * @may_set: the descriptor may have been set since the last step
 * @called: callbacks in the dispatch under way
 * @inner: the part of the statistics that was added by dispatches within the one under way
 * @late: callbacks by their lateness
 * @settings: settings in the statistics, after the last step
 */
struct world {
	struct shape shape;
	struct twheel *w;
	u64 now_ns;
	u64 edge_ns;
	struct known known[MAX_THINGS];
	u32 nr_pending;
	u64 event;
	u64 turn;
	u64 turn_most;
	bool unfinished;
	u64 stopping;
	u32 depth;
	bool in_drain;
	bool stale;
	bool had_passed;
	bool may_set;
	u32 called;
	struct {
		u64 dispatches;
		u64 vain;
	} inner;
	u64 late[TWHEEL_LATE_BUCKETS];
	u64 settings;
	u64 all_called;
	u64 steps;
	u64 starts;
};

/* The program defines these. */
u64 rnd(void);
u64 below(u64 n);
__attribute__((format(printf, 1, 2), noreturn)) void die(const char *fmt, ...);

#define CHECK(cond, fmt, ...)						\
	do {								\
		if (!(cond))						\
			die("%s:%d: !(%s) " fmt, __FILE__, __LINE__, #cond, ##__VA_ARGS__); \
	} while (0)

struct shape random_shape(void);
struct world *world_make(const struct shape *shape);
void world_free(struct world *world);
void world_step(struct world *world);
void world_drain(struct world *world);

/* The functions that are inline in this program; a program in another language calls these. */
void plain_init(struct twheel_timer *t, twheel_callback *callback);
void plain_start(struct twheel *w, struct twheel_timer *t, u64 delay_ns);
void plain_start_at(struct twheel *w, struct twheel_timer *t, u64 deadline_ns);
bool plain_stop(struct twheel *w, struct twheel_timer *t);

#endif /* _LIB_ORACLE_H */
