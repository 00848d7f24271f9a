// SPDX-License-Identifier: GPL-2.0
/*
 * wheel_test.c - the timing wheel against a plain list
 *
 * The wheel is compiled as it is; oracle.c judges what it hands out, and looks at
 * every chunk, bit and entry after each step.
 *
 * All is random but replayable.  The environment may say
 *
 *	SEED	where randomness starts
 *	ROUNDS	random rounds a shape
 *	FIRST	number of the first of them
 *	SHAPE	name of the only shape wanted
 *	LIMIT	seconds that a test may take
 *
 * and a failure prints what they must be to see it again.
 *
 * Each test runs in a child, so that one that crashes or hangs is one failure.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "oracle.h"
#define BYTES_PER_ENTRY	18.3	/* what the wheel's banner promises */
#define TEST_SECONDS	60

/* Shared with the parent, which reports it. */
static struct {
	const char *shape;
	u64 seed;
	u64 first;
	u64 step;
	char why[256];
} *note;

void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(note->why, sizeof(note->why), fmt, args);
	va_end(args);
	_exit(1);
}

/* Randomness: splitmix64 */

static u64 rnd_state;

u64 rnd(void)
{
	u64 z = rnd_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

u64 below(u64 n)
{
	return rnd() % n;
}

/* The random driver: whole rounds of it */

static void random_round(const struct shape *shape)
{
	static const u32 caps[] = { 1, 8, 60, 150, 400 };
	static const unsigned int maxes[] = { 1, 2, 7, 64 };
	u64 start = starts[below(ARRAY_SIZE(starts))];
	u32 steps = 100 + below(200);
	u32 every = 1 + shape->config.slots / 4096;
	struct rig *r;

	r = rig_make(&shape->config, min(start, shape->config.max_tick / 2),
		     caps[below(ARRAY_SIZE(caps))],
		     maxes[below(ARRAY_SIZE(maxes))]);
	for (note->step = 0; note->step < steps; note->step++) {
		random_step(r);
		check_next(r);
		if (!((note->step + 1) % every))
			walk(r);
	}
	if (below(2)) {
		advance_to(r, r->config.max_tick);
		CHECK(!r->held, "%u are left", r->held);
		walk(r);
	}
	rig_free(r);
}

/* Tests: each is given a shape. */

static u64 env(const char *name, u64 otherwise)
{
	const char *value = getenv(name);

	return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

static void random_use_agrees_with_a_plain_list(const struct shape *shape)
{
	u64 first = env("FIRST", 0);
	u64 rounds = env("ROUNDS", shape->config.slots > 4096 ? 15 : 150);

	for (note->first = first; note->first < first + rounds; note->first++) {
		rnd_state = note->seed + note->first;
		rnd_state = rnd();
		random_round(shape);
	}
}

static void deadlines_on_every_edge_come_in_their_tick(const struct shape *shape)
{
	u32 s, l, k;

	for (s = 0; s < ARRAY_SIZE(starts); s++) {
		u64 cur = min(starts[s], shape->config.max_tick / 2);
		struct rig *r = rig_make(&shape->config, cur, 400, 7);

		insert(r, cur);
		insert(r, shape->config.one_level ? cur : r->config.max_tick);
		for (l = 0; l < r->w.nr_levels; l++) {
			const struct twheel_level *level = &r->w.level[l];
			const u64 slots[] = { 1, 2, level->mask, level->mask + 1,
				level->mask + 2, 2 * level->mask + 2 };

			for (k = 0; k < ARRAY_SIZE(slots) * 6; k++) {
				u64 span = slots[k / 6] << level->shift;
				u64 from = k % 2 ? cur : cur >> level->shift
							 << level->shift;

				insert(r, from + span + k / 2 % 3 - 1);
			}
		}
		drive_by_next(r);
		rig_free(r);
	}
}

/* Three quarters of a slot's span are for moving it down. */
static void coarse_slots_begin_ahead_of_time(const struct shape *shape)
{
	u64 first, next;
	u32 l;

	for (l = 1;; l++) {
		struct rig *r = rig_make(&shape->config, 0, 1, 1);
		const struct twheel_level *level = &r->w.level[l];

		if (l >= r->w.nr_levels) {
			rig_free(r);
			return;
		}
		insert(r, (level[-1].mask + 1ULL) << level[-1].shift);
		first = r->known[0].tick >> level->shift << level->shift;
		next = twheel_wheel_next(&r->w);
		CHECK(next == first - (1ULL << level->shift) * 3 / 4,
		      "level %u slot %llu next %llu", l, first, next);
		rig_free(r);
	}
}

static void next_alone_is_enough(const struct shape *shape)
{
	u32 i, round;

	for (round = 0; round < 6; round++) {
		u64 start = min(starts[round], shape->config.max_tick / 2);
		struct rig *r = rig_make(&shape->config, start, 200, 64);

		for (i = 0; i < r->cap; i++)
			insert(r, start + min(random_distance(r),
					      MAX_TICK - start));
		drive_by_next(r);
		rig_free(r);
	}
}

static void stall_longer_than_the_wheel_loses_nothing(const struct shape *shape)
{
	u64 start = min(1ULL << 32, shape->config.max_tick / 2);
	struct rig *r = rig_make(&shape->config, start, 400, 7);
	u32 i;

	for (i = 0; i < r->cap; i++)
		insert(r, start + min(below(2) ? random_distance(r) :
				      rnd() >> below(64), MAX_TICK - start));
	advance_to(r, r->config.max_tick);
	CHECK(!r->held, "%u", r->held);
	/* With one level, some rounds for each entry, but not all the rounds. */
	CHECK(r->moved <= 3ULL * r->cap * r->cap, "%llu", r->moved);
	rig_free(r);
}

static void arming_into_the_tick_at_hand_is_not_lost(const struct shape *shape)
{
	struct rig *r = rig_make(&shape->config, 100, 64, 2);
	u32 i;

	for (i = 0; i < 30; i++)
		insert(r, 102 + (i >= 20));
	r->now = 102;
	for (i = 0; i < 5; i++) {
		CHECK(advance(r), "20 entries, 2 a call");
		walk(r);
		insert(r, 102);		/* cur - 1, being handed out */
		insert(r, 103);		/* cur */
		insert(r, 101 - i);
		insert(r, 103 + r->config.slots);
		walk(r);
	}
	while (advance(r))
		walk(r);
	CHECK(r->held == 20 && oracle_first(r) == 103, "%u", r->held);
	insert(r, r->w.cur);		/* no distance at all */
	advance_to(r, 103);
	CHECK(r->held == 5, "%u", r->held);
	drive_by_next(r);
	rig_free(r);
}

/* Even where its tick has gone by as well: nobody may end the pass before. */
static void what_is_put_back_is_asked_for_at_once(const struct shape *shape)
{
	struct rig *r = rig_make(&shape->config, 100, 8, 7);

	advance_to(r, 110);
	insert(r, 105);
	CHECK(advance(r) && !r->held, "%u", r->held);
	insert(r, 107);
	CHECK(advance(r) && !r->held, "%u", r->held);
	CHECK(!advance(r), "more of nothing");
	rig_free(r);
}

/* Insert @per_slot entries into each slot: one more than is full wastes most. */
static void fill_slots(struct rig *r, u32 per_slot)
{
	u64 slot;
	u32 l, i;

	for (l = 0; l < r->w.nr_levels; l++)
		for (slot = 0; slot <= r->w.level[l].mask; slot++)
			for (i = 0; i < per_slot && r->held < r->cap; i++)
				insert(r, (slot << r->w.level[l].shift) +
				       r->w.cur);
}

/* A rig that starts at 0 and has room for @per_slot entries a slot. */
static struct rig *rig_per_slot(const struct shape *shape, u32 per_slot)
{
	struct rig *r = rig_make(&shape->config, 0, 1, 1);
	u32 cap = nr_slots(&r->w) * per_slot;

	rig_free(r);
	return rig_make(&shape->config, 0, cap, 1);
}

static void chunks_promised_are_enough(const struct shape *shape)
{
	u32 per_slot, i;

	if (shape->config.slots > 4096)
		return;
	for (per_slot = 1; per_slot <= 15; per_slot += 7) {
		struct rig *r = rig_per_slot(shape, per_slot);

		fill_slots(r, per_slot);
		walk(r);
		for (i = 0; i < 40; i++) {
			r->now = min(r->now + below(r->config.slots),
				     r->config.max_tick - 1);
			advance(r);	/* leaves slots half emptied */
			while (r->held < r->cap && below(16))
				insert(r, random_tick(r));
			twheel_wheel_sweep_begin(&r->w);
			sweep(r, 0);
			if (r->config.rewinds && i % 8 == 7)
				rewind_to(r, 0);
			walk(r);
		}
		rig_free(r);
	}
}

/* What is in limbo when the clock is set back once more must not add up. */
static void rewinds_in_a_row_need_no_more_chunks(const struct shape *shape)
{
	u32 per_slot, again, i;

	if (!shape->config.rewinds || shape->config.slots > 4096)
		return;
	for (per_slot = 1; per_slot <= 7; per_slot += 3) {
		struct rig *r = rig_per_slot(shape, 6 * per_slot);

		for (again = 0; again < 40; again++) {
			fill_slots(r, per_slot);
			rewind_to(r, 0);
			walk(r);
			for (i = below(2) * below(r->cap / 8 + 2); i; i--)
				advance(r);
			walk(r);
		}
		rig_free(r);
	}
}

/*
 * Back by one tick while a full coarse slot can be spread over level 0 already,
 * but is not: a chunk for each of its entries, before level 0 is out of limbo.
 */
static void rewind_that_spreads_a_slot_has_chunks(const struct shape *shape)
{
	u32 slots = shape->config.slots, i;
	struct rig *r;
	u64 cur;

	if (shape->config.one_level || !shape->config.rewinds || slots > 4096)
		return;
	r = rig_make(&shape->config, 0, 1, 1);
	i = nr_slots(&r->w) + slots / 2;
	rig_free(r);
	r = rig_make(&shape->config, 0, i, 1);
	for (i = 0; i < slots / 2; i++)
		insert(r, slots + i);
	cur = slots / 2 + slots / 16;
	advance_to(r, cur - 1);
	fill_slots(r, 1);
	rewind_to(r, cur - 1);
	do
		walk(r);
	while (r->w.limbo && advance(r));
	rig_free(r);
}

static u32 nr_occupied(const struct twheel_wheel *w)
{
	u32 l, slot, nr = 0;

	for (l = 0; l < w->nr_levels; l++)
		for_each_set_bit(slot, w->level[l].occupied, w->level[l].mask + 1)
			nr++;
	return nr;
}

/* Neither the call itself nor one that follows empties more than a few slots. */
static void rewind_is_done_in_steps_of_bounded_work(const struct shape *shape)
{
	const unsigned int max = 256;	/* so that it takes some hundred steps */
	u32 before, cap, steps = 0;
	struct rig *r;

	if (!shape->config.rewinds)
		return;
	r = rig_make(&shape->config, 0, 1, 1);
	cap = nr_slots(&r->w);
	rig_free(r);
	r = rig_make(&shape->config, 0, cap, max);
	fill_slots(r, 1);
	CHECK(nr_occupied(&r->w) >= shape->config.slots, "%u", nr_occupied(&r->w));
	/* Once more when it has begun to empty them, and to fill them. */
	for (steps = 0; steps < 5; steps++) {
		before = nr_occupied(&r->w);
		rewind_to(r, 0);
		CHECK(before - nr_occupied(&r->w) <= 1, "%u at once", before);
		advance(r);
	}
	do {
		before = nr_occupied(&r->w);
		if (!r->w.limbo)
			break;
		advance(r);
		CHECK(nr_occupied(&r->w) + max * MOVES_PER_DUE >= before,
		      "%u of %u at once", before - nr_occupied(&r->w), before);
	} while (++steps < 3 * cap / max);
	CHECK(!r->w.limbo, "%u in %u steps", r->held, steps);
	walk(r);
	rig_free(r);
}

/* Dropping whatever is next, to the end, drops all, and wastes no chunk. */
static void what_is_next_can_be_dropped_until_nothing_is(const struct shape *shape)
{
	struct rig *r = rig_make(&shape->config, 5, 400, 7);
	u32 round, i;

	for (round = 0; round < 20; round++) {
		while (r->held < r->cap)
			insert(r, 5 + (below(2) ? below(8) : random_distance(r)));
		for (i = below(60); i; i--)
			look_ahead(r, below(4));
		walk(r);
	}
	while (look_ahead(r, 1))
		check_next(r);
	CHECK(!r->held && twheel_wheel_next(&r->w) == U64_MAX, "%u", r->held);
	walk(r);
	rig_free(r);
}

static void quiet_sweep_brings_up_every_entry(const struct shape *shape)
{
	struct rig *r = rig_make(&shape->config, 5, 400, 7);
	u32 i, calls = 0;

	for (i = 0; i < r->cap; i++)
		insert(r, 5 + (below(2) ? below(8) : random_distance(r)));
	twheel_wheel_sweep_begin(&r->w);
	while (sweep(r, 0))
		CHECK(++calls <= r->cap, "no end");
	for (i = 0; i < r->cap; i++)
		CHECK(r->known[i].seen, "tick %llu", r->known[i].tick);
	walk(r);
	twheel_wheel_sweep_begin(&r->w);
	while (sweep(r, 1))
		;
	CHECK(!r->held && twheel_wheel_next(&r->w) == U64_MAX, "%u", r->held);
	walk(r);
	rig_free(r);
}

static void empty_wheel_never_asks_to_be_called(const struct shape *shape)
{
	struct rig *r = rig_make(&shape->config, 7, 1, 1);
	u32 i;

	for (i = 0; i < 100; i++) {
		check_next(r);
		advance_to(r, r->now + random_distance(r) / 256);
	}
	CHECK(!r->moved, "%llu", r->moved);
	rig_free(r);
}

/* Tests with many entries, for which some shapes are enough. */

#define MANY	1000000

/*
 * Through @nr entries due evenly in @from ... @from + @span - 1, coming when the
 * wheel says so, which is each tick in the end.
 */
static void no_burst(u32 slots, u64 from, u64 span, u32 nr)
{
	const struct twheel_wheel_config config = { slots, false, false, MAX_TICK };
	struct rig *r = rig_make(&config, 0, nr, 64);
	u64 moved;
	u32 i;

	for (i = 0; i < nr; i++)
		insert(r, from + i % span);
	r->exact = true;
	while (r->held) {
		moved = r->moved;
		advance_to(r, twheel_wheel_next(&r->w));
		CHECK(r->moved - moved <= EARLY_STEP, "%llu in tick %llu",
		      r->moved - moved, r->now);
	}
	CHECK(r->now == from + span - 1, "%llu", r->now);
	rig_free(r);
}

static void coarse_slot_of_a_million_makes_no_burst(const struct shape *shape)
{
	(void)shape;
	no_burst(1024, 1024, 512, MANY);	/* all of a slot of level 1 */
	no_burst(64, 8192, 8192, MANY);		/* two of level 2 */
}

static void million_entries_take_18_bytes_each(const struct shape *shape)
{
	struct rig *r = rig_make(&shape->config, 1 << 20, MANY, 64);
	u64 bytes;
	u32 i;

	for (i = 0; i < MANY; i++)
		insert(r, (1 << 20) + below(3600000));
	walk(r);
	bytes = (r->nr_chunks - r->nr_outside * TWHEEL_CHUNKS_PER_PAGE -
		 r->w.nr_free) * sizeof(struct twheel_chunk);
	/* Of the table, each slot has a pointer, a bit, and half a chunk. */
	CHECK(bytes <= BYTES_PER_ENTRY * MANY +
	      nr_slots(&r->w) * sizeof(struct twheel_chunk) / 2, "%llu", bytes);
	rig_free(r);
}

/* The runner */

#define EACH	NR_SHAPES	/* a test of each shape */
#define USUAL	7			/* of one */

static const struct {
	const char *name;
	void (*run)(const struct shape *shape);
	size_t shape;
} tests[] = {
#define TEST(name, shape)	{ #name, name, shape }
	TEST(empty_wheel_never_asks_to_be_called, EACH),
	TEST(arming_into_the_tick_at_hand_is_not_lost, EACH),
	TEST(what_is_put_back_is_asked_for_at_once, EACH),
	TEST(deadlines_on_every_edge_come_in_their_tick, EACH),
	TEST(coarse_slots_begin_ahead_of_time, EACH),
	TEST(next_alone_is_enough, EACH),
	TEST(stall_longer_than_the_wheel_loses_nothing, EACH),
	TEST(quiet_sweep_brings_up_every_entry, EACH),
	TEST(chunks_promised_are_enough, EACH),
	TEST(rewinds_in_a_row_need_no_more_chunks, EACH),
	TEST(rewind_that_spreads_a_slot_has_chunks, EACH),
	TEST(rewind_is_done_in_steps_of_bounded_work, EACH),
	TEST(what_is_next_can_be_dropped_until_nothing_is, EACH),
	TEST(random_use_agrees_with_a_plain_list, EACH),
	TEST(coarse_slot_of_a_million_makes_no_burst, USUAL),
	TEST(million_entries_take_18_bytes_each, USUAL),
};

/* Returns whether it failed. */
static bool run(size_t test, const struct shape *shape, int nr)
{
	int status;
	pid_t pid;

	note->shape = shape->name;
	note->first = 0;
	note->step = 0;
	snprintf(note->why, sizeof(note->why), "crashed or hung");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(env("LIMIT", TEST_SECONDS));
		rnd_state = note->seed;
		tests[test].run(shape);
		exit(0);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid && !status) {
		printf("ok %d %s %s\n", nr, tests[test].name, shape->name);
		return false;
	}
	printf("not ok %d %s %s\n# %s\n", nr, tests[test].name, shape->name,
	       note->why);
	printf("# replay: SEED=%llu FIRST=%llu ROUNDS=1 SHAPE=%s, step %llu\n",
	       note->seed, note->first, note->shape, note->step);
	return true;
}

int main(void)
{
	const char *only = getenv("SHAPE");
	int nr = 0, failed = 0, pass;
	size_t t, s;

	note = mmap(NULL, sizeof(*note), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (note == MAP_FAILED)
		return 1;
	note->seed = env("SEED", 1);
	oracle_step = &note->step;

	/* First only count them: the plan comes first. */
	for (pass = 0; pass < 2; pass++) {
		if (pass)
			printf("TAP version 13\n1..%d\n", nr);
		for (t = 0, nr = 0; t < ARRAY_SIZE(tests); t++)
			for (s = 0; s < EACH; s++) {
				if (tests[t].shape != EACH && tests[t].shape != s)
					continue;
				if (only && *only && strcmp(only, shapes[s].name))
					continue;
				nr++;
				if (pass)
					failed += run(t, &shapes[s], nr);
			}
	}
	return failed != 0;
}
