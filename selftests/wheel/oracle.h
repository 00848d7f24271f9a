/* SPDX-License-Identifier: GPL-2.0 */
/*
 * oracle.h - the judge of the timing wheel, shared by its test and its fuzzer
 *
 * Where randomness comes from, and what becomes of a failure, is the program's:
 * rnd(), below() and die() are its own.
 */
#ifndef _WHEEL_ORACLE_H
#define _WHEEL_ORACLE_H

#include "shim.h"
#include "twheel_wheel.h"

#define __printf(fmt, args)	__attribute__((format(printf, fmt, args)))
#ifndef __noreturn
#define __noreturn		__attribute__((noreturn))
#endif

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define EARLY_STEP	4096	/* what the wheel's banner promises */
#define MOVES_PER_DUE	4	/* likewise */

#define MAX_TICK	((1ULL << 63) / 1000)
#define SPARE_PAGES	8	/* given and taken back at random */

#define NR_SHAPES	12
#define NR_STARTS	6

struct shape {
	const char *name;
	struct twheel_wheel_config config;
};

extern const struct shape shapes[NR_SHAPES];
extern const u64 starts[NR_STARTS];

/* The oracle's knowledge of one entry; its index is the place in the array. */
struct known {
	u64 tick;
	u32 seq;
	u32 level;	/* where it was when last seen */
	u32 slot;
	bool held;
	bool late;	/* its tick was done when it came: it has no order */
	bool seen;	/* by a sweep */
};

struct rig {
	struct twheel_wheel w;
	struct twheel_wheel_config config;
	void *slots;
	char *pages;
	u32 *walked;	/* per chunk and per entry: the last walk that met it */
	u32 walk;
	u32 nr_pages;
	u32 nr_chunks;
	struct twheel_chunk_page *outside[SPARE_PAGES];
	u32 nr_outside;
	struct known *known;
	u32 cap;
	u32 held;
	u32 hint;	/* where to look for an index not in use */
	u64 now;	/* what the wheel was told last */
	u64 last;	/* the last tick that was handed out in order */
	u64 moved;	/* entries put from slot to slot */
	u64 may_move;	/* how many that may be, if each level is left once */
	bool exact;	/* entries must come in their very tick */
	struct twheel_entry *due;
	unsigned int max;
};

/* Given by the program. */
u64 rnd(void);
u64 below(u64 n);
__printf(1, 2) __noreturn void die(const char *fmt, ...);

#define CHECK(cond, fmt, ...)						\
	do {								\
		if (!(cond))						\
			die("line %d: !(%s) " fmt, __LINE__, #cond, ##__VA_ARGS__); \
	} while (0)

/* Counted up by what takes long, so that a report can say where it was. */
extern u64 *oracle_step;

struct rig *rig_make(const struct twheel_wheel_config *config, u64 start,
		     u32 cap, unsigned int max);
void rig_free(struct rig *r);
u32 nr_slots(const struct twheel_wheel *w);
void walk(struct rig *r);
u64 oracle_first(const struct rig *r);

void insert(struct rig *r, u64 tick);
bool advance(struct rig *r);
void advance_to(struct rig *r, u64 now);
void check_next(struct rig *r);
void drive_by_next(struct rig *r);
unsigned int sweep(struct rig *r, unsigned int drop_one_in);
unsigned int look_ahead(struct rig *r, unsigned int drop_one_in);
void rewind_to(struct rig *r, u64 tick);

u64 random_distance(const struct rig *r);
u64 random_tick(const struct rig *r);
void random_step(struct rig *r);

#endif /* _WHEEL_ORACLE_H */
