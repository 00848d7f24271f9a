/* SPDX-License-Identifier: GPL-2.0 */
/*
 * oracle.h - the judge of the timing wheel, shared by its test and its fuzzer
 *
 * The program defines the source of randomness and the treatment of a failure: rnd(), below() and
 * die().
 */
#ifndef _WHEEL_ORACLE_H
#define _WHEEL_ORACLE_H

#include "shim.h"
#include "twheel_wheel.h"

#define __printf(fmt, args)	__attribute__((format(printf, fmt, args)))
#ifndef __noreturn
#define __noreturn		__attribute__((noreturn))
#endif

#define NEVER_NS	U64_MAX
#define END_OF_TIME_NS	((1ULL << 63) - 1)

/* The same values as in the engine. */
#define PASS_STEP	64
#define ALARM_SCAN_MAX	32

#define NR_SHAPES	13
#define NR_STARTS	6

struct shape {
	const char *name;
	struct twheel_wheel_config config;
};

extern const struct shape shapes[NR_SHAPES];
extern const u64 starts[NR_STARTS];

/* The level of an entry that is in no slot. */
enum { IN_COMING = TWHEEL_MAX_LEVELS, IN_NEVER, NOWHERE };

/**
 * struct entry - an entry, as the oracle knows it
 * @link: its link in the wheel
 * @key_ns: its key, which may have been made later without the wheel
 * @placed_ns: its key when the wheel put it into a slot last
 * @level: the level that it is in, or IN_COMING, IN_NEVER, NOWHERE
 * @slot: the slot of that level, or of the level from which it comes
 * @may_move: how often it may be put from slot to slot before it is due (G7)
 * @astray: the clock was set back since it was placed
 * @walk: the last walk that met it
 */
struct entry {
	struct twheel_link link;
	u64 key_ns;
	u64 placed_ns;
	u32 level;
	u32 slot;
	u32 may_move;
	bool astray;
	u32 walk;
};

/**
 * struct rig - a wheel beside the array of all entries that it should hold
 * @w: the wheel
 * @config: its shape
 * @slots: its memory
 * @entry: the entries
 * @cap: how many entries there are
 * @held: how many of them the wheel has
 * @hint: where to find an entry that is not in the wheel
 * @walk: the number of the last walk
 * @never_ns: entries with this key or a later one never expire
 * @now_ns: the clock
 * @last_ns: the edge of the tick in which the last entry has expired
 * @alarm_ns: when to turn the wheel again; NEVER_NS if there is no need to
 * @nr_new: how many entries were inserted since the alarm was set
 * @cascade_ns: the cascade_ns that the wheel must have
 * @expired: entries that have expired
 * @moved: entries that were put from slot to slot
 * @may_turn: how often the wheel may be turned: more is an error
 * @exact: entries have to come at the very edge of their tick
 * @slot_is_old: the clock was set back since the slot has come
 */
struct rig {
	struct twheel_wheel w;
	struct twheel_wheel_config config;
	void *slots;
	struct entry *entry;
	u32 cap;
	u32 held;
	u32 hint;
	u32 walk;
	u64 never_ns;
	u64 now_ns;
	u64 last_ns;
	u64 alarm_ns;
	u32 nr_new;
	u64 cascade_ns;
	u64 expired;
	u64 moved;
	u64 may_turn;
	bool exact;
	bool slot_is_old;
};

/* The program defines these. */
u64 rnd(void);
u64 below(u64 n);
__printf(1, 2) __noreturn void die(const char *fmt, ...);

#define CHECK(cond, fmt, ...)						\
	do {								\
		if (!(cond))						\
			die("line %d: !(%s) " fmt, __LINE__, #cond, ##__VA_ARGS__); \
	} while (0)

/* Long loops count this up, so that a report can show how far they got. */
extern u64 *oracle_step;

struct rig *rig_make(const struct twheel_wheel_config *config, u64 start_ns, u32 cap);
void rig_free(struct rig *r);
void walk(struct rig *r);
u64 slot_width(const struct rig *r, u32 level);
u64 edge_before(const struct rig *r, u64 ns);
u64 edge_after(const struct rig *r, u64 ns);
u64 oracle_first(const struct rig *r);
struct entry *any_held(struct rig *r);

struct entry *insert(struct rig *r, u64 key_ns);
void delete(struct rig *r, struct entry *e);
void make_later(struct rig *r, struct entry *e, u64 key_ns);
void set_clock(struct rig *r, u64 now_ns);

unsigned int expire(struct rig *r, unsigned int nr);
bool empty_ahead(struct rig *r, unsigned int nr);
void check_first(struct rig *r, u32 level);
bool set_alarm(struct rig *r);
void pass(struct rig *r, unsigned int nr);
void pass_at(struct rig *r, u64 now_ns);
void drive_by_alarm(struct rig *r);

u64 later_by(u64 ns, u64 by_ns);
u64 random_distance(const struct rig *r);
u64 random_key(const struct rig *r);
void random_step(struct rig *r);

#endif /* _WHEEL_ORACLE_H */
