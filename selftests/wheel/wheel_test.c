// SPDX-License-Identifier: GPL-2.0
/*
 * wheel_test.c - the timing wheel against a plain list
 *
 * The wheel is compiled as it is; what it hands out is compared with an array
 * that knows all entries, and after each step every chunk, bit and entry is
 * looked at.  Wheels get exactly the chunks that twheel_wheel_chunks_for()
 * promises to be enough.
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

#include "shim.h"
#include "twheel_wheel.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* What the wheel's banner promises. */
#define EARLY_STEP	4096
#define MOVES_PER_DUE	4
#define BYTES_PER_ENTRY	18.3

#define MAX_TICK	((1ULL << 63) / 1000)
#define SPARE_CHUNKS	8	/* given and taken back at random */
#define TEST_SECONDS	60

unsigned long shim_placed;

/* Where an entry is, if it is not in a level's slot. */
enum { IN_HAND = TWHEEL_MAX_LEVELS, IN_OVERDUE, IN_LIMBO, NOWHERE };

struct shape {
	const char *name;
	struct twheel_wheel_config config;
};

static const struct shape shapes[] = {
	{ "tiny",		{ 4, false, false, MAX_TICK } },
	{ "tiny_rewinds",	{ 4, false, true, MAX_TICK } },
	{ "tiny_one_level",	{ 4, true, false, MAX_TICK } },
	{ "tiny_one_rewinds",	{ 4, true, true, MAX_TICK } },
	{ "tiny_short",		{ 8, false, true, 1024 } },
	{ "two_levels",		{ 1024, false, true, 100000 } },
	{ "three_levels",	{ 64, false, false, 1000000 } },
	{ "usual",		{ 1024, false, false, MAX_TICK } },
	{ "usual_rewinds",	{ 1024, false, true, MAX_TICK } },
	{ "usual_one_level",	{ 1024, true, true, MAX_TICK } },
	{ "huge",		{ 1 << 20, false, true, MAX_TICK } },
	{ "huge_one_level",	{ 1 << 20, true, false, MAX_TICK } },
};

static const u64 starts[] = {
	0, 1, (1ULL << 32) - 2, 1ULL << 32, (1ULL << 36) - 2, (1ULL << 53) - 3,
};

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
	struct twheel_chunk *chunks;
	u32 *walked;	/* per chunk and per entry: the last walk that met it */
	u32 walk;
	u32 nr_chunks;
	struct twheel_chunk *outside[SPARE_CHUNKS];
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

/* Shared with the parent, which reports it. */
static struct {
	const char *shape;
	u64 seed;
	u64 first;
	u64 step;
	char why[256];
} *note;

static __attribute__((format(printf, 1, 2))) void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(note->why, sizeof(note->why), fmt, args);
	va_end(args);
	_exit(1);
}

#define CHECK(cond, fmt, ...)						\
	do {								\
		if (!(cond))						\
			die("line %d: !(%s) " fmt, __LINE__, #cond, ##__VA_ARGS__); \
	} while (0)

/* Randomness: splitmix64 */

static u64 rnd_state;

static u64 rnd(void)
{
	u64 z = rnd_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static u64 below(u64 n)
{
	return rnd() % n;
}

/* -1, 0 or 1: to be added to a tick that is not 0. */
static u64 around(void)
{
	return below(3) - 1;
}

/* Rigs */

static struct rig *rig_make(const struct twheel_wheel_config *config, u64 start,
			    u32 cap, unsigned int max)
{
	struct rig *r = calloc(1, sizeof(*r));
	u32 i;

	r->config = *config;
	r->slots = calloc(1, twheel_wheel_size(config));
	twheel_wheel_init(&r->w, config, r->slots, start);
	r->cap = cap;
	r->now = start ? start - 1 : 0;
	r->max = max;
	r->due = malloc(max * sizeof(*r->due));
	r->known = calloc(cap, sizeof(*r->known));
	r->nr_chunks = twheel_wheel_chunks_for(&r->w, cap) + SPARE_CHUNKS;
	r->chunks = calloc(r->nr_chunks, sizeof(*r->chunks));
	r->walked = calloc(r->nr_chunks + cap, sizeof(*r->walked));
	for (i = 0; i < r->nr_chunks; i++)
		if (i < SPARE_CHUNKS)
			r->outside[r->nr_outside++] = &r->chunks[i];
		else
			twheel_wheel_give(&r->w, &r->chunks[i]);
	return r;
}

static void chunk_seen(struct rig *r, const struct twheel_chunk *chunk)
{
	CHECK(chunk >= r->chunks && chunk < r->chunks + r->nr_chunks, "wild");
	CHECK(r->walked[chunk - r->chunks] != r->walk, "chunk is there twice");
	r->walked[chunk - r->chunks] = r->walk;
}

static u32 nr_slots(const struct twheel_wheel *w)
{
	u32 l, nr = 0;

	for (l = 0; l < w->nr_levels; l++)
		nr += w->level[l].mask + 1;
	return nr;
}

/* Every chunk must come back, whatever state the wheel was left in. */
static void rig_free(struct rig *r)
{
	struct twheel_chunk *chunk;
	u32 nr = r->nr_outside;

	r->walk++;
	while ((chunk = twheel_wheel_dismantle(&r->w)))
		for (; chunk; chunk = chunk->next, nr++)
			chunk_seen(r, chunk);
	CHECK(nr == r->nr_chunks, "%u of %u came back", nr, r->nr_chunks);
	free(r->walked);
	free(r->chunks);
	free(r->known);
	free(r->due);
	free(r->slots);
	free(r);
}

/* The walker */

static void walk_entry(struct rig *r, const struct twheel_entry *entry,
		       u32 l, u32 slot)
{
	const struct twheel_wheel *w = &r->w;
	struct known *known = &r->known[entry->index];
	u64 tick = entry->tick;

	CHECK(entry->index < r->cap, "wild");
	CHECK(r->walked[r->nr_chunks + entry->index] != r->walk, "twice");
	r->walked[r->nr_chunks + entry->index] = r->walk;
	CHECK(known->held && known->seq == entry->seq && known->tick == tick,
	      "index %u tick %llu", entry->index, tick);
	if (l == IN_HAND)
		CHECK(tick == w->cur - 1 ||
		      (r->config.one_level &&
		       !((tick - (w->cur - 1)) & w->level[0].mask)), "hand");
	if (l == IN_OVERDUE)
		CHECK(tick < w->cur, "tick %llu cur %llu", tick, w->cur);
	if (l < TWHEEL_MAX_LEVELS) {
		const struct twheel_level *level = &w->level[l];

		CHECK(((tick >> level->shift) & level->mask) == slot, "slot");
		CHECK(tick >= w->cur, "tick %llu cur %llu", tick, w->cur);
		CHECK(r->config.one_level || (tick >> level->shift) -
		      (w->cur >> level->shift) <= level->mask, "reach");
		CHECK(!l || (tick >> level->shift) << level->shift >= w->cur,
		      "the slot has begun: level %u", l);
		/* Nothing moves but to a finer level. */
		CHECK(known->level >= TWHEEL_MAX_LEVELS || l < known->level ||
		      (l == known->level && slot == known->slot),
		      "level %u from level %u", l, known->level);
	}
	known->level = l;
	known->slot = slot;
}

/* Returns how many entries are in the bag. */
static u32 walk_bag(struct rig *r, const struct twheel_chunk *newest, u32 l,
		    u32 slot)
{
	const struct twheel_chunk *chunk = newest;
	u32 i, nr = 0;

	if (!chunk)
		return 0;
	do {
		chunk = chunk->next;
		chunk_seen(r, chunk);
		CHECK(chunk->nr && chunk->nr <= TWHEEL_CHUNK_ENTRIES, "%u",
		      chunk->nr);
		CHECK(chunk->nr == TWHEEL_CHUNK_ENTRIES || chunk == newest ||
		      chunk == newest->next || l == IN_LIMBO, "partial");
		CHECK(l >= TWHEEL_MAX_LEVELS || chunk == newest ||
		      chunk->epoch <= chunk->next->epoch, "epochs");
		for (i = 0; i < chunk->nr; i++)
			walk_entry(r, &chunk->entry[i], l, slot);
		nr += chunk->nr;
	} while (chunk != newest);
	return nr;
}

static u32 walk_level(struct rig *r, u32 l)
{
	const struct twheel_wheel *w = &r->w;
	const struct twheel_level *level = &w->level[l];
	u32 slot, nr = 0, emptying = 0;

	for (slot = 0; slot <= level->mask; slot++) {
		const struct twheel_chunk *bag = level->slot[slot];

		CHECK(!bag == !test_bit(slot, level->occupied), "level %u bit",
		      l);
		if (!bag)
			continue;
		nr += walk_bag(r, bag, l, slot);
		emptying += bag->next != bag &&
			    bag->next->nr < TWHEEL_CHUNK_ENTRIES;
		/* What is behind the sweep was made after it began. */
		if (l < w->sweep_level ||
		    (l == w->sweep_level && slot < w->sweep_slot))
			CHECK(bag->next->epoch == w->epoch, "missed by sweep");
	}
	CHECK(emptying <= !!l, "%u slots of level %u", emptying, l);
	return nr;
}

static void walk(struct rig *r)
{
	const struct twheel_wheel *w = &r->w;
	const struct twheel_chunk *chunk;
	u32 i, l, nr;

	r->walk++;
	nr = walk_bag(r, w->hand, IN_HAND, 0) +
	     walk_bag(r, w->overdue, IN_OVERDUE, 0) +
	     walk_bag(r, w->limbo, IN_LIMBO, 0);
	for (l = 0; l < w->nr_levels; l++)
		nr += walk_level(r, l);
	CHECK(nr == r->held, "%u entries, not %u", nr, r->held);
	CHECK(w->nr_entries == r->held, "%llu", w->nr_entries);

	for (chunk = w->pool, nr = 0; chunk; chunk = chunk->next, nr++)
		chunk_seen(r, chunk);
	CHECK(w->nr_free == nr, "%llu, not %u", w->nr_free, nr);
	/* The next insertion or move may need one. */
	CHECK(nr, "the pool is empty with %u of %u entries", r->held, r->cap);
	for (i = 0; i < r->nr_outside; i++)
		chunk_seen(r, r->outside[i]);
	for (i = 0; i < r->nr_chunks; i++)
		CHECK(r->walked[i] == r->walk, "a chunk is lost");
}

/* The oracle: a list of all, looked through for what is needed. */

static u64 oracle_first(const struct rig *r)
{
	u64 first = U64_MAX;
	u32 i;

	for (i = 0; i < r->cap; i++)
		if (r->known[i].held && r->known[i].tick < first)
			first = r->known[i].tick;
	return first;
}

static void place(struct rig *r, u32 index)
{
	struct known *known = &r->known[index];
	const struct twheel_entry entry = { known->tick, index, known->seq };
	const struct twheel_level *level;
	const struct twheel_chunk *newest;
	u32 l = 0;

	known->level = NOWHERE;
	known->late = known->tick < r->w.cur;
	CHECK(r->w.pool, "no chunk for entry %u of %u", r->held, r->cap);
	twheel_wheel_insert(&r->w, entry);
	if (known->late || r->w.limbo)
		return;
	/* The first level that does not end before the tick. */
	for (level = r->w.level; l + 1 < r->w.nr_levels; l++, level++)
		if (known->tick < ((r->w.cur >> level->shift) + level->mask + 1)
				  << level->shift)
			break;
	newest = level->slot[(known->tick >> level->shift) & level->mask];
	CHECK(newest && newest->entry[newest->nr - 1].index == index,
	      "tick %llu at %llu is not in level %u", known->tick, r->w.cur, l);
	r->may_move += l;
}

static void insert(struct rig *r, u64 tick)
{
	CHECK(r->held < r->cap, "the test inserts too many");
	while (r->known[r->hint].held)
		r->hint = (r->hint + 1) % r->cap;
	r->known[r->hint].tick = min(tick, r->config.max_tick);
	r->known[r->hint].seq++;
	r->known[r->hint].held = true;
	r->known[r->hint].seen = false;
	r->held++;
	place(r, r->hint);
}

static struct known *known_of(struct rig *r, const struct twheel_entry *entry)
{
	struct known *known = &r->known[entry->index];

	CHECK(entry->index < r->cap, "wild");
	CHECK(known->held, "handed out twice: tick %llu", entry->tick);
	CHECK(known->seq == entry->seq && known->tick == entry->tick, "garbled");
	return known;
}

static void handed_out(struct rig *r, const struct twheel_entry *entry)
{
	struct known *known = known_of(r, entry);

	CHECK(entry->tick <= r->now, "early: %llu at %llu", entry->tick, r->now);
	if (!known->late) {
		CHECK(entry->tick >= r->last, "%llu after %llu", entry->tick,
		      r->last);
		CHECK(!r->exact || entry->tick == r->now, "late: %llu at %llu",
		      entry->tick, r->now);
		r->last = entry->tick;
	}
	known->held = false;
	r->held--;
}

/* One call, checked; returns whether there is more. */
static bool advance(struct rig *r)
{
	bool more = below(2), limbo = r->w.limbo, ordered = false;
	unsigned long placed = shim_placed;
	unsigned int i, nr;

	memset(r->due, 0xa5, r->max * sizeof(*r->due));
	nr = twheel_wheel_advance(&r->w, r->now, r->due, r->max, &more);
	placed = shim_placed - placed;
	r->moved += placed;
	CHECK(nr <= r->max, "%u", nr);
	CHECK(placed <= r->max * MOVES_PER_DUE + (more ? 0 : EARLY_STEP),
	      "%lu", placed);
	CHECK(!more || nr || placed || limbo, "more of nothing");
	for (i = 0; i < nr; i++) {
		/* What was overdue comes first. */
		CHECK(!ordered || !r->known[r->due[i].index].late, "overdue");
		CHECK(!ordered || r->due[i].tick == r->last, "two ticks");
		ordered = !known_of(r, &r->due[i])->late;
		handed_out(r, &r->due[i]);
	}
	if (more)
		return true;
	CHECK(!r->w.limbo && !r->w.overdue && !r->w.hand, "not all");
	CHECK(r->w.cur > r->now, "%llu", r->w.cur);
	return false;
}

static void advance_to(struct rig *r, u64 now)
{
	r->now = now;
	while (advance(r))
		;
}

static void check_next(struct rig *r)
{
	u64 next = twheel_wheel_next(&r->w);

	CHECK(next <= oracle_first(r), "%llu", next);
	CHECK(r->held || next == U64_MAX, "%llu of nothing", next);
	if (!r->w.limbo && !r->w.overdue && !r->w.hand)
		CHECK(next >= r->w.cur, "%llu", next);
	else
		CHECK(!next, "%llu", next);
}

/*
 * Come only when the wheel says so, until it is empty: each entry must come in
 * its tick, no call must be in vain, and a call just before must be.
 */
static void drive_by_next(struct rig *r)
{
	u32 held;
	u64 next, moved;

	r->exact = true;
	while (r->held) {
		note->step++;
		next = twheel_wheel_next(&r->w);
		CHECK(next != U64_MAX, "%u are held", r->held);
		held = r->held;
		moved = r->moved;
		if (next > r->w.cur) {
			advance_to(r, next - 1);
			CHECK(held == r->held && moved == r->moved,
			      "needed before %llu", next);
		}
		advance_to(r, max(next, r->now));
		/* One level looks at a slot once a round, or knows better. */
		CHECK(held > r->held || moved < r->moved ||
		      r->config.one_level, "idle at %llu", next);
		if (r->cap < 500 && r->config.slots < 4096)
			walk(r);
	}
	CHECK(twheel_wheel_next(&r->w) == U64_MAX, "empty");
	if (!r->config.one_level)
		CHECK(r->moved <= r->may_move, "%llu moves", r->moved);
}

static unsigned int sweep(struct rig *r, unsigned int drop_one_in)
{
	struct twheel_entry out[TWHEEL_CHUNK_ENTRIES];
	unsigned int i, nr;

	memset(out, 0xa5, sizeof(out));
	nr = twheel_wheel_sweep(&r->w, out);
	CHECK(nr <= TWHEEL_CHUNK_ENTRIES, "%u", nr);
	for (i = 0; i < nr; i++) {
		known_of(r, &out[i])->seen = true;
		if (!drop_one_in || below(drop_one_in)) {
			place(r, out[i].index);
		} else {
			r->known[out[i].index].held = false;
			r->held--;
		}
	}
	return nr;
}

static void rewind_to(struct rig *r, u64 tick)
{
	u32 i;

	twheel_wheel_rewind(&r->w, tick);
	r->now = tick ? tick - 1 : 0;
	r->last = 0;
	for (i = 0; i < r->cap; i++) {
		r->known[i].level = NOWHERE;
		r->known[i].late = r->known[i].tick < tick;
	}
}

/* The random driver */

/* Distances that are on the edges of slots and levels, or anywhere. */
static u64 random_distance(const struct rig *r)
{
	const struct twheel_level *level =
		&r->w.level[below(below(r->w.nr_levels) + 1)];
	u64 span = 1ULL << level->shift;
	u64 to_edge = span - (r->w.cur & (span - 1));

	switch (below(8)) {
	case 0:
		return 0;
	case 1:
		return below(4);
	case 2:
		return span + around();
	case 3:
		return to_edge + span * below(2 * level->mask) + around();
	case 4:
		return span * (level->mask + 1) + around();
	case 5:
		return to_edge + span * level->mask + around();
	case 6:
		return below(r->config.slots);
	default:
		/* Rounds are gone through one by one: not too many. */
		return r->config.one_level ? below(r->config.slots * 8) :
					     rnd() >> below(64);
	}
}

static u64 random_tick(const struct rig *r)
{
	u64 far = MAX_TICK - r->w.cur;

	switch (below(12)) {
	case 0:
		return r->w.cur - min(r->w.cur, 1 + below(16));
	case 1:
		return r->w.cur - min(r->w.cur, 1ULL);
	case 2:
		return r->last;
	case 3:
		return below(20) ? r->w.cur : r->config.max_tick;
	default:
		return r->w.cur + min(random_distance(r), far);
	}
}

static void random_step(struct rig *r)
{
	u32 i, nr = 1 + below(below(4) ? 4 : r->cap);
	u64 next;

	switch (below(16)) {
	case 0 ... 4:
		for (i = 0; i < nr && r->held < r->cap; i++)
			insert(r, random_tick(r));
		break;
	case 5 ... 8:
		if (r->now < r->config.max_tick)
			r->now += min(below(4) ? below(4) : below(16) ?
				      random_distance(r) : rnd() >> below(64),
				      r->config.max_tick - r->now);
		for (i = below(3) ? UINT_MAX : below(3); i && advance(r); i--)
			;
		if (i && r->held)
			CHECK(oracle_first(r) > r->now, "late");
		break;
	case 9 ... 10:
		next = twheel_wheel_next(&r->w);
		if (next > r->now && next <= r->config.max_tick)
			r->now = next;
		for (i = 1 + below(8); i && advance(r); i--)
			;
		break;
	case 11:
		if (below(2)) {
			twheel_wheel_sweep_begin(&r->w);
		} else if (!r->w.limbo && !r->w.overdue && !r->w.hand &&
			   r->w.cur > r->now) {
			/* A clock that goes back without a rewind. */
			next = r->w.cur;
			nr = r->held;
			advance_to(r, below(r->now + 1));
			CHECK(r->w.cur == next && r->held == nr, "%llu", next);
			r->now = next - 1;
		}
		break;
	case 12 ... 13:
		while (nr-- && sweep(r, 8))
			;
		break;
	case 14:
		if (r->config.rewinds)
			rewind_to(r, r->w.cur - min(r->w.cur,
						    random_distance(r)));
		break;
	case 15:
		if (r->nr_outside && below(2))
			twheel_wheel_give(&r->w, r->outside[--r->nr_outside]);
		else if (r->nr_outside < SPARE_CHUNKS)
			r->outside[r->nr_outside++] =
				twheel_wheel_take_back(&r->w);
		break;
	}
}

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
	bytes = (r->nr_chunks - r->nr_outside - r->w.nr_free) *
		sizeof(struct twheel_chunk);
	/* Of the table, each slot has a pointer, a bit, and half a chunk. */
	CHECK(bytes <= BYTES_PER_ENTRY * MANY +
	      nr_slots(&r->w) * sizeof(struct twheel_chunk) / 2, "%llu", bytes);
	rig_free(r);
}

/* The runner */

#define EACH	ARRAY_SIZE(shapes)	/* a test of each shape */
#define USUAL	7			/* of one */

static const struct {
	const char *name;
	void (*run)(const struct shape *shape);
	size_t shape;
} tests[] = {
#define TEST(name, shape)	{ #name, name, shape }
	TEST(empty_wheel_never_asks_to_be_called, EACH),
	TEST(arming_into_the_tick_at_hand_is_not_lost, EACH),
	TEST(deadlines_on_every_edge_come_in_their_tick, EACH),
	TEST(coarse_slots_begin_ahead_of_time, EACH),
	TEST(next_alone_is_enough, EACH),
	TEST(stall_longer_than_the_wheel_loses_nothing, EACH),
	TEST(quiet_sweep_brings_up_every_entry, EACH),
	TEST(chunks_promised_are_enough, EACH),
	TEST(rewinds_in_a_row_need_no_more_chunks, EACH),
	TEST(rewind_that_spreads_a_slot_has_chunks, EACH),
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
