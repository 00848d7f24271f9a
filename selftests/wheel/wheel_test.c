// SPDX-License-Identifier: GPL-2.0
/*
 * wheel_test.c - the timing wheel against a plain list
 *
 * The wheel is compiled unchanged; oracle.c judges its results, and checks every slot, bit and
 * link after each step.
 *
 * All is random but replayable.  The environment may say
 *
 *	SEED	where randomness starts
 *	ROUNDS	random rounds a shape
 *	FIRST	number of the first of them
 *	SHAPE	name of the only shape wanted
 *	LIMIT	seconds that a test may take
 *
 * and a failure prints the values that repeat it.
 *
 * Each test runs in a child: if it crashes or hangs, that is one failure.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "oracle.h"

#define TEST_SECONDS	60
#define MANY		200000
#define YEAR_NS		(365 * 86400000000000ULL)

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

/* Tests: each gets a shape. */

static u64 env(const char *name, u64 otherwise)
{
	const char *value = getenv(name);

	return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

static struct rig *rig_of(const struct shape *shape, u64 start_ns, u32 cap)
{
	return rig_make(&shape->config, start_ns, cap);
}

static u64 nr_slots(const struct rig *r, u32 level)
{
	return r->w.level[level].mask + 1ULL;
}

/*
 * If there is one level, and only the alarm runs the wheel, each round is gone through slot by
 * slot.
 */
static u64 round_ns(const struct rig *r)
{
	return slot_width(r, 0) * nr_slots(r, 0);
}

/* Return a distance from base_ns that takes no more than a few rounds. */
static u64 some_distance(const struct rig *r)
{
	u64 ns = random_distance(r);

	return r->w.nr_levels > 1 ? ns : ns % (3 * round_ns(r));
}

static u64 some_key(const struct rig *r)
{
	return later_by(r->w.base_ns, some_distance(r));
}

static void random_round(const struct shape *shape)
{
	static const u32 caps[] = { 1, 8, 60, 150, 400 };
	struct rig *r = rig_of(shape, starts[below(NR_STARTS)], caps[below(ARRAY_SIZE(caps))]);
	u32 steps = 100 + below(200);
	u32 every = 1 + shape->config.slots / 4096;

	for (note->step = 0; note->step < steps; note->step++) {
		random_step(r);
		if (!((note->step + 1) % every))
			walk(r);
	}
	if (below(2)) {
		pass_at(r, r->never_ns - 1);
		CHECK(oracle_first(r) == NEVER_NS, "%u are left", r->held);
		walk(r);
	}
	rig_free(r);
}

static void random_use_agrees_with_a_plain_list(const struct shape *shape)
{
	u64 first = env("FIRST", 0);
	u64 rounds = env("ROUNDS", shape->config.slots > 4096 ? 15 : 300);

	for (note->first = first; note->first < first + rounds; note->first++) {
		rnd_state = note->seed + note->first;
		rnd_state = rnd();
		random_round(shape);
	}
}

/* The widths are those in the banner of twheel_wheel.c. */
static void slots_are_as_wide_as_the_level_below_reaches_twice(const struct shape *shape)
{
	struct rig *r = rig_of(shape, 0, 1);
	u64 size = 0;
	u32 l;

	CHECK(slot_width(r, 0) <= r->config.tick_ns && 2 * slot_width(r, 0) > r->config.tick_ns,
	      "%llu", slot_width(r, 0));
	CHECK(nr_slots(r, 0) == r->config.slots, "%llu", nr_slots(r, 0));
	for (l = 0; l < r->w.nr_levels; l++) {
		CHECK(!l || slot_width(r, l) == nr_slots(r, l - 1) / 2 * slot_width(r, l - 1),
		      "level %u", l);
		CHECK(!l || nr_slots(r, l) == 256, "level %u", l);
		size += nr_slots(r, l) * sizeof(void *) +
			BITS_TO_LONGS(nr_slots(r, l)) * sizeof(long);
	}
	CHECK(twheel_wheel_size(&r->config) == size, "%llu", size);
	CHECK(r->w.nr_levels <= TWHEEL_MAX_LEVELS, "%u", r->w.nr_levels);
	CHECK((r->w.nr_levels == 1) == shape->config.one_level, "%u", r->w.nr_levels);
	/* The last level is for the last bit of a key, and there is no level behind it. */
	l = r->w.nr_levels - 1;
	if (l)
		CHECK(r->w.level[l].shift < 63 && r->w.level[l].shift + 7 >= 63, "%u", l);
	rig_free(r);
}

static void empty_wheel_never_asks_to_be_turned(const struct shape *shape)
{
	struct rig *r = rig_of(shape, 7, 1);
	u32 i, l;

	for (i = 0; i < 100; i++) {
		u64 at_ns = r->now_ns + below(1 + random_distance(r) / 256);

		if (at_ns < r->never_ns)
			pass_at(r, at_ns);
		for (l = 0; l < r->w.nr_levels; l++)
			check_first(r, l);
		CHECK(!twheel_wheel_ahead(&r->w, &l), "level %u", l);
		CHECK(r->alarm_ns == NEVER_NS && !r->w.used, "%llu", r->alarm_ns);
	}
	/* If entries have left the wheel without its knowledge, they do not matter either. */
	delete(r, insert(r, r->now_ns + 3 * r->config.tick_ns));
	pass(r, 1);
	CHECK(r->alarm_ns == NEVER_NS && !r->moved, "%llu", r->alarm_ns);
	walk(r);
	rig_free(r);
}

/* Insert entries on the edges of slots of a level, and beside them, by base_ns and by its slot. */
static void insert_on_edges(struct rig *r, u32 level)
{
	u64 width_ns = slot_width(r, level), nr = nr_slots(r, level), base_ns = r->w.base_ns;
	const u64 slots[] = { 1, 2, nr / 2 - 1, nr / 2, nr - 1, nr, nr + 1, 2 * nr };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(slots) * 6; i++) {
		u64 ahead = slots[i / 6], ns = base_ns + i / 2 % 3 - 1;

		if (i % 2)
			ns -= base_ns % width_ns;
		/* Some are beyond the end of time. */
		if (ahead <= (END_OF_TIME_NS - base_ns) / width_ns)
			insert(r, ns + ahead * width_ns);
	}
}

static void keys_on_every_edge_come_in_their_tick(const struct shape *shape)
{
	u32 s, l, i;

	for (s = 0; s < NR_STARTS; s++) {
		struct rig *r = rig_of(shape, starts[s], 500);

		insert(r, r->w.base_ns + 1);
		if (r->w.nr_levels > 1)
			insert(r, r->never_ns - 1);
		for (i = 0; i < 9; i++)
			insert(r, r->w.base_ns + i / 3 * r->config.tick_ns + i % 3 - 1);
		for (l = 0; l < r->w.nr_levels; l++)
			insert_on_edges(r, l);
		walk(r);
		drive_by_alarm(r);
		rig_free(r);
	}
}

/* Half of a slot's width is the time for moving its entries down. */
static void cascade_begins_ahead_of_a_slot(const struct shape *shape)
{
	u32 l;

	for (l = 1;; l++) {
		struct rig *r = rig_of(shape, 0, 3);
		u64 width_ns;

		if (l >= r->w.nr_levels) {
			rig_free(r);
			return;
		}
		width_ns = slot_width(r, l);
		CHECK(r->w.cascade_ns == U64_MAX, "%llu", r->w.cascade_ns);
		insert(r, min(3 * width_ns, r->never_ns - 1));
		CHECK(r->w.cascade_ns == r->entry[0].key_ns / width_ns * width_ns - width_ns / 2,
		      "level %u cascade %llu", l, r->w.cascade_ns);
		insert(r, width_ns);
		CHECK(r->w.cascade_ns == width_ns / 2, "level %u cascade %llu", l, r->w.cascade_ns);
		/* The entry has been counted, and one more makes no difference. */
		set_alarm(r);
		r->w.cascade_ns = U64_MAX;
		r->cascade_ns = U64_MAX;
		insert(r, width_ns);
		CHECK(r->w.cascade_ns == U64_MAX, "level %u cascade %llu", l, r->w.cascade_ns);
		rig_free(r);
	}
}

static void alarm_alone_is_enough(const struct shape *shape)
{
	u32 i, s;

	for (s = 0; s < NR_STARTS; s++) {
		struct rig *r = rig_of(shape, starts[s], 300);

		for (i = 0; i < r->cap; i++)
			insert(r, some_key(r));
		/* If a slot has this many entries, the alarm does not count them at all. */
		while (r->held > 200)
			delete(r, any_held(r));
		for (i = 0; i < 60; i++)
			insert(r, r->entry[0].key_ns + i % 3);
		drive_by_alarm(r);
		rig_free(r);
	}
}

static void stall_longer_than_the_wheel_loses_nothing(const struct shape *shape)
{
	struct rig *r = rig_of(shape, 1ULL << 32, 400);
	u32 i;

	for (i = 0; i < r->cap; i++)
		insert(r, r->now_ns + (below(2) ? random_distance(r) : rnd() >> (1 + below(63))));
	pass_at(r, r->never_ns - 1);
	CHECK(oracle_first(r) == NEVER_NS, "%u", r->held);
	walk(r);
	rig_free(r);
}

static void keys_made_later_come_in_their_tick(const struct shape *shape)
{
	struct rig *r = rig_of(shape, 1ULL << 32, 100);
	u32 i, k;

	for (i = 0; i < r->cap; i++)
		insert(r, some_key(r));
	r->exact = true;
	set_alarm(r);
	for (i = 0; i < 300 && r->alarm_ns != NEVER_NS; i++) {
		for (k = 0; k < 10 && r->held; k++) {
			struct entry *e = any_held(r);

			make_later(r, e, later_by(e->key_ns, some_distance(r)));
		}
		pass_at(r, r->alarm_ns);
		if (r->config.slots <= 4096)
			walk(r);
	}
	walk(r);
	if (r->w.nr_levels > 1)
		drive_by_alarm(r);
	rig_free(r);
}

/* The nearer one goes to a slot that is in use for a later round, and the other way round. */
static void entry_of_a_later_round_delays_no_other(const struct shape *shape)
{
	u32 i, k;

	for (i = 0; i < 100; i++) {
		struct rig *r = rig_of(shape, starts[below(NR_STARTS - 1)], 8);
		u64 near_ns = r->w.base_ns + 1 + below(round_ns(r));

		for (k = 0; k < 4; k++)
			insert(r, near_ns + below(5) * round_ns(r));
		insert(r, near_ns);
		walk(r);
		/* No search has found the first one: the alarm is that of the insertions. */
		r->exact = true;
		pass_at(r, r->alarm_ns);
		walk(r);
		drive_by_alarm(r);
		rig_free(r);
	}
}

/*
 * Make a wheel that has gone on for some time, is in the middle of a pass, and has an entry in each
 * of some slots.
 */
static struct rig *rig_amid_a_pass(const struct shape *shape, u64 now_ns)
{
	struct rig *r = rig_of(shape, now_ns - min(now_ns, YEAR_NS), 64);
	u32 i;

	for (i = 0; i < 20; i++)
		insert(r, now_ns + (1 + i) * YEAR_NS / 4);
	pass(r, PASS_STEP);
	for (i = 0; i < 20; i++)
		insert(r, r->now_ns + below(YEAR_NS));
	set_clock(r, now_ns);
	expire(r, 1 + below(60));
	return r;
}

/*
 * If a clock that was wrong by a year is set back, and some time later forward, that makes no
 * rounds.
 */
static void clock_set_back_and_forward_makes_no_rounds(const struct shape *shape)
{
	u32 i;

	for (i = 0; i < 20; i++) {
		struct rig *r = rig_amid_a_pass(shape, starts[4]);
		u64 now_ns = r->now_ns;

		set_clock(r, now_ns - YEAR_NS / 2 - below(YEAR_NS));
		walk(r);
		pass(r, 1 + below(PASS_STEP));
		insert(r, r->now_ns + below(YEAR_NS));
		pass_at(r, r->now_ns + 1 + below(round_ns(r)));
		walk(r);
		/* oracle.c counts how often the wheel is turned. */
		pass_at(r, now_ns - YEAR_NS / 4);
		pass_at(r, now_ns + 9 * YEAR_NS);
		CHECK(!r->held, "%u", r->held);
		walk(r);
		rig_free(r);
	}
}

/* If an entry is inserted by the new time, it comes in its tick, whatever the wheel was doing. */
static void key_after_the_clock_was_set_back_comes_in_its_tick(const struct shape *shape)
{
	u32 i, k;

	for (i = 0; i < 40; i++) {
		struct rig *r = rig_amid_a_pass(shape, starts[4]);

		set_clock(r, r->now_ns - YEAR_NS / 2);
		pass(r, PASS_STEP);
		r->exact = true;
		for (k = 0; k < 20; k++) {
			u64 end_ns = r->now_ns + 1 + below(2 * round_ns(r));

			while (r->alarm_ns <= end_ns)
				pass_at(r, r->alarm_ns);
			set_clock(r, end_ns);
			if (r->held < r->cap)
				insert(r, r->now_ns + 1 + below(2 * round_ns(r)));
		}
		walk(r);
		rig_free(r);
	}
}

/*
 * If an upper slot has as many entries as there are ticks in the slot before, one moves in each
 * tick, and when the time of the slot comes, it is empty.
 */
static void slot_emptied_ahead_is_empty_when_it_begins(const struct shape *shape)
{
	u32 l;

	for (l = 1; l < 3; l++) {
		struct rig *r = rig_of(shape, 0, 2000);
		u64 width_ns = slot_width(r, min(l, r->w.nr_levels - 1)), ticks, i;

		ticks = width_ns / r->config.tick_ns;
		if (l >= r->w.nr_levels || ticks < 8 || ticks > r->cap) {
			rig_free(r);
			return;
		}
		for (i = 0; i < ticks; i++)
			insert(r, 5 * width_ns + below(width_ns));
		pass_at(r, 4 * width_ns - 1);
		CHECK(r->entry[0].level == l, "level %u", r->entry[0].level);
		while (r->held) {
			set_clock(r, edge_before(r, r->now_ns) + r->config.tick_ns);
			expire(r, UINT_MAX);
			CHECK(!r->expired || !r->w.coming_level, "a slot of level %u at %llu",
			      r->w.coming_level, r->now_ns);
			empty_ahead(r, 1 + (l > 1));
		}
		rig_free(r);
	}
}

static u32 nr_in_use(const struct rig *r)
{
	u32 l, slot, nr = 0;

	for (l = 0; l < r->w.nr_levels; l++)
		for (slot = 0; slot <= r->w.level[l].mask; slot++)
			nr += test_bit(slot, r->w.level[l].occupied);
	return nr;
}

/* Make a rig that has had entries in many slots, of which few are left. */
static struct rig *rig_of_empty_slots(const struct shape *shape)
{
	struct rig *r = rig_of(shape, starts[4], 1000 + 256 * TWHEEL_MAX_LEVELS);
	u32 l, i;

	for (l = 0; l < r->w.nr_levels; l++)
		for (i = 0; i < min(nr_slots(r, l), 1000ULL); i++)
			insert(r, later_by(r->w.base_ns + 1, i * slot_width(r, l)));
	pass_at(r, r->now_ns + below(round_ns(r) / 2));
	for (i = 0; i < r->cap; i++)
		if (r->entry[i].level != NOWHERE && below(200))
			delete(r, &r->entry[i]);
	return r;
}

/* G5: if a caller cancels many, another one does not pay for that at once. */
static void empty_slots_are_left_in_steps(const struct shape *shape)
{
	struct rig *r = rig_of_empty_slots(shape);
	u32 l, nr = nr_in_use(r);

	for (l = 0; l < r->w.nr_levels; l++) {
		do {
			twheel_wheel_first(&r->w, l);
			CHECK(nr - nr_in_use(r) <= 256, "%u of %u", nr_in_use(r), nr);
			nr = nr_in_use(r);
		} while (r->w.used & BIT(l) && r->w.level[l].begin_ns <= r->w.base_ns);
		check_first(r, l);
	}
	walk(r);
	rig_free(r);
}

/*
 * G5: a search for the first slot reads each word of the bitmap once, however many empty slots are
 * in the way, and whether they became empty before or during the search.
 */
static void search_reads_each_word_once(const struct shape *shape)
{
	u32 i, k;

	for (k = 0; k < 2; k++) {
		struct rig *r = rig_of(shape, 0, 600);
		u64 half = nr_slots(r, 0) / 2, nr = min(half, 600ULL), calls = 0;

		for (i = 0; i < nr; i++)
			insert(r, 1 + (half - nr + i) * slot_width(r, 0));
		for (i = 0; i < nr - 1 && k; i++)
			delete(r, &r->entry[i]);
		shim_words = 0;
		for (i = k ? nr - 1 : 0; i < nr; i++) {
			struct twheel_link **slot;

			while (!(slot = twheel_wheel_first(&r->w, 0)))
				CHECK(++calls <= nr / 256, "%llu calls", calls);
			CHECK(slot == &r->w.level[0].slot[r->entry[i].slot], "%u", i);
			delete(r, &r->entry[i]);
		}
		CHECK(shim_words <= nr_slots(r, 0) / 64 + 4 * nr, "%llu words", shim_words);
		rig_free(r);
	}
}

static void empty_slots_delay_nothing(const struct shape *shape)
{
	u32 i, calls;

	for (i = 0; i < 5; i++) {
		struct rig *r = rig_of_empty_slots(shape);

		/* No search has found the first slot since most became empty. */
		set_clock(r, r->now_ns + round_ns(r) / 4 + below(round_ns(r)));
		for (calls = 0; !expire(r, r->cap); calls++)
			CHECK(calls <= nr_slots(r, 0) / 256 + r->w.nr_levels, "base %llu",
			      r->w.base_ns);
		walk(r);
		rig_free(r);
	}
}

static void clock_set_back_amid_empty_slots_delays_nothing(const struct shape *shape)
{
	u32 i, k;

	for (i = 0; i < 20; i++) {
		struct rig *r = rig_of_empty_slots(shape);

		set_clock(r, r->now_ns - round_ns(r) + below(round_ns(r) / 4));
		walk(r);
		for (k = 0; k < 100; k++)
			insert(r, r->now_ns + 1 + below(round_ns(r)));
		walk(r);
		for (k = 0; k < 50; k++)
			pass_at(r, r->now_ns + below(r->config.tick_ns * 20));
		walk(r);
		rig_free(r);
	}
}

/* G7: an entry among 200,000 moves no more often than among ten. */
static void cost_does_not_grow_with_entries(const struct shape *shape)
{
	struct twheel_wheel_config config = shape->config;
	struct twheel_link *link = calloc(MANY, sizeof(*link));
	u64 *key_ns = calloc(MANY, sizeof(*key_ns)), moves = 0, turns = 0, until_ns, last_ns = 0;
	struct twheel_wheel *w = calloc(1, sizeof(*w));
	void *slots = calloc(1, twheel_wheel_size(&config));
	u32 i, held = MANY;

	twheel_wheel_init(w, &config, slots, 0);
	for (i = 0; i < MANY; i++) {
		key_ns[i] = 1 + below(3600000 * config.tick_ns);
		twheel_wheel_insert(w, &link[i], key_ns[i]);
	}
	until_ns = 3600001 * config.tick_ns;
	while (twheel_wheel_turn(w, until_ns)) {
		u64 edge_ns = DIV64_U64_ROUND_UP(w->base_ns, config.tick_ns) * config.tick_ns;

		CHECK(++turns <= 3 * MANY, "%llu turns", turns);
		while (twheel_wheel_has_coming(w)) {
			i = w->coming - link;
			twheel_link_del(&link[i]);
			if (key_ns[i] > w->base_ns) {
				twheel_wheel_put_back(w, &link[i], key_ns[i]);
				moves++;
				continue;
			}
			CHECK(edge_ns >= last_ns && edge_ns - key_ns[i] < config.tick_ns,
			      "%llu in %llu", key_ns[i], edge_ns);
			last_ns = edge_ns;
			held--;
		}
	}
	CHECK(!held, "%u", held);
	/*
	 * An hour of ticks of a millisecond is within three levels, and a slot may have an edge in
	 * it.
	 */
	CHECK(moves <= 4ULL * MANY, "%llu moves", moves);
	free(slots);
	free(w);
	free(key_ns);
	free(link);
}

/* The runner */

enum { EACH, WITH_LEVELS, WITH_ROUNDS, USUAL };

static const struct {
	const char *name;
	void (*run)(const struct shape *shape);
	int shapes;
} tests[] = {
#define TEST(name, shapes)	{ #name, name, shapes }
	TEST(slots_are_as_wide_as_the_level_below_reaches_twice, EACH),
	TEST(empty_wheel_never_asks_to_be_turned, EACH),
	TEST(keys_on_every_edge_come_in_their_tick, EACH),
	TEST(cascade_begins_ahead_of_a_slot, WITH_LEVELS),
	TEST(alarm_alone_is_enough, EACH),
	TEST(stall_longer_than_the_wheel_loses_nothing, EACH),
	TEST(keys_made_later_come_in_their_tick, EACH),
	TEST(entry_of_a_later_round_delays_no_other, WITH_ROUNDS),
	TEST(clock_set_back_and_forward_makes_no_rounds, EACH),
	TEST(key_after_the_clock_was_set_back_comes_in_its_tick, EACH),
	TEST(slot_emptied_ahead_is_empty_when_it_begins, WITH_LEVELS),
	TEST(empty_slots_are_left_in_steps, EACH),
	TEST(search_reads_each_word_once, EACH),
	TEST(empty_slots_delay_nothing, EACH),
	TEST(clock_set_back_amid_empty_slots_delays_nothing, EACH),
	TEST(random_use_agrees_with_a_plain_list, EACH),
	TEST(cost_does_not_grow_with_entries, USUAL),
};

static bool is_for(size_t test, const struct shape *shape)
{
	switch (tests[test].shapes) {
	case WITH_LEVELS:
		return !shape->config.one_level;
	case WITH_ROUNDS:
		return shape->config.one_level;
	case USUAL:
		return !strcmp(shape->name, "usual");
	default:
		return true;
	}
}

/* Run a test; return whether it failed. */
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

	/* First only count them, since the plan comes first. */
	for (pass = 0; pass < 2; pass++) {
		if (pass)
			printf("TAP version 13\n1..%d\n", nr);
		for (t = 0, nr = 0; t < ARRAY_SIZE(tests); t++)
			for (s = 0; s < NR_SHAPES; s++) {
				if (!is_for(t, &shapes[s]))
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
