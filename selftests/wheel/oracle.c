// SPDX-License-Identifier: GPL-2.0
/*
 * oracle.c - a plain list that knows what the timing wheel has to say
 *
 * A rig is a wheel beside an array of all that it should hold.  Whatever goes
 * into the wheel goes through here, what comes out is compared, and the walker
 * looks at every chunk, bit and entry.  Rigs get exactly the pages of chunks that
 * twheel_wheel_pages_for() promises to be enough.
 */
#include <stdlib.h>

#include "oracle.h"

/* Where an entry is, if it is not in a level's slot. */
enum { IN_HAND = TWHEEL_MAX_LEVELS, IN_OVERDUE, IN_LIMBO, NOWHERE };

static u64 steps_nobody_counts;
u64 *oracle_step = &steps_nobody_counts;

const struct shape shapes[NR_SHAPES] = {
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

const u64 starts[NR_STARTS] = {
	0, 1, (1ULL << 32) - 2, 1ULL << 32, (1ULL << 36) - 2, (1ULL << 53) - 3,
};

/* Rigs */

static struct twheel_chunk_page *page_of(const struct rig *r, u32 nr)
{
	return (struct twheel_chunk_page *)(r->pages + nr * PAGE_SIZE);
}

struct rig *rig_make(const struct twheel_wheel_config *config, u64 start,
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
	r->nr_pages = twheel_wheel_pages_for(&r->w, cap) + SPARE_PAGES;
	r->nr_chunks = r->nr_pages * TWHEEL_CHUNKS_PER_PAGE;
	r->pages = aligned_alloc(PAGE_SIZE, r->nr_pages * PAGE_SIZE);
	/* What they held before does not matter. */
	memset(r->pages, 0xa5, r->nr_pages * PAGE_SIZE);
	r->walked = calloc(r->nr_chunks + cap, sizeof(*r->walked));
	for (i = 0; i < r->nr_pages; i++)
		if (i < SPARE_PAGES)
			r->outside[r->nr_outside++] = page_of(r, i);
		else
			twheel_wheel_give(&r->w, page_of(r, i));
	return r;
}

/* The number of a page of the rig's. */
static u32 page_nr(const struct rig *r, const struct twheel_chunk_page *page)
{
	size_t at = (const char *)page - r->pages;

	CHECK(at < r->nr_pages * PAGE_SIZE && !(at % PAGE_SIZE), "wild");
	return at / PAGE_SIZE;
}

static void chunk_seen(struct rig *r, const struct twheel_chunk *chunk)
{
	u32 nr = ((const char *)chunk - r->pages) / PAGE_SIZE;
	u32 at;

	CHECK((const char *)chunk >= r->pages && nr < r->nr_pages, "wild");
	at = chunk - page_of(r, nr)->chunk;
	CHECK(at < TWHEEL_CHUNKS_PER_PAGE && chunk == &page_of(r, nr)->chunk[at],
	      "wild");
	at += nr * TWHEEL_CHUNKS_PER_PAGE;
	CHECK(r->walked[at] != r->walk, "chunk is there twice");
	r->walked[at] = r->walk;
}

/* The free chunks of a list of pages, of which each has so many; returns how many. */
static u32 walk_pages(struct rig *r, const struct list_head *pages, u32 min_free,
		      u32 max_free)
{
	const struct twheel_chunk *chunk;
	struct list_head *node;
	bool full = false;
	u32 nr, total = 0;

	for (node = pages->next; node != pages; node = node->next) {
		const struct twheel_chunk_page *page =
			list_entry(node, struct twheel_chunk_page, node);

		page_nr(r, page);
		nr = 0;
		for (chunk = page->free; chunk; chunk = chunk->next, nr++) {
			chunk_seen(r, chunk);
			CHECK(chunk - page->chunk < (long)TWHEEL_CHUNKS_PER_PAGE,
			      "of another page");
		}
		CHECK(page->nr_free == nr, "%u, not %u", page->nr_free, nr);
		CHECK(nr >= min_free && nr <= max_free, "%u in the wrong list", nr);
		CHECK(!full || !nr, "free ones behind a page that has none");
		full = !nr;
		total += nr;
	}
	return total;
}

u32 nr_slots(const struct twheel_wheel *w)
{
	u32 l, nr = 0;

	for (l = 0; l < w->nr_levels; l++)
		nr += w->level[l].mask + 1;
	return nr;
}

/* Every page must come back, whatever state the wheel was left in. */
void rig_free(struct rig *r)
{
	struct twheel_chunk_page *page;
	u32 nr = r->nr_outside;

	r->walk++;
	while ((page = twheel_wheel_dismantle(&r->w))) {
		CHECK(r->walked[page_nr(r, page)] != r->walk, "came back twice");
		r->walked[page_nr(r, page)] = r->walk;
		nr++;
	}
	CHECK(nr == r->nr_pages, "%u of %u came back", nr, r->nr_pages);
	free(r->walked);
	free(r->pages);
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

static bool rewinding(const struct twheel_wheel *w)
{
	return w->rewind_level < w->nr_levels;
}

static u32 walk_level(struct rig *r, u32 l)
{
	const struct twheel_wheel *w = &r->w;
	const struct twheel_level *level = &w->level[l];
	u32 slot, nr = 0, emptying = 0;
	/* What a rewind has not come to is where it was, and on its way. */
	u32 where = rewinding(w) ? IN_LIMBO : l;

	for (slot = 0; slot <= level->mask; slot++) {
		const struct twheel_chunk *bag = level->slot[slot];

		CHECK(!bag == !test_bit(slot, level->occupied), "level %u bit",
		      l);
		if (!bag)
			continue;
		nr += walk_bag(r, bag, where, slot);
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

void walk(struct rig *r)
{
	const struct twheel_wheel *w = &r->w;
	u32 i, j, l, nr;

	CHECK(w->limbo || !rewinding(w), "what is inserted goes to slots");
	r->walk++;
	nr = walk_bag(r, w->hand, IN_HAND, 0) +
	     walk_bag(r, w->overdue, IN_OVERDUE, 0) +
	     walk_bag(r, w->limbo, IN_LIMBO, 0);
	for (l = 0; l < w->nr_levels; l++)
		nr += walk_level(r, l);
	CHECK(nr == r->held, "%u entries, not %u", nr, r->held);
	CHECK(w->nr_entries == r->held, "%llu", w->nr_entries);

	nr = walk_pages(r, &w->pages, 0, TWHEEL_CHUNKS_PER_PAGE - 1) +
	     walk_pages(r, &w->spare, TWHEEL_CHUNKS_PER_PAGE,
			TWHEEL_CHUNKS_PER_PAGE);
	CHECK(w->nr_free == nr, "%llu, not %u", w->nr_free, nr);
	/* The next insertion or move may need one. */
	CHECK(nr, "the pool is empty with %u of %u entries", r->held, r->cap);
	for (i = 0; i < r->nr_outside; i++)
		for (j = 0; j < TWHEEL_CHUNKS_PER_PAGE; j++)
			chunk_seen(r, &r->outside[i]->chunk[j]);
	for (i = 0; i < r->nr_chunks; i++)
		CHECK(r->walked[i] == r->walk, "a chunk is lost");
}

/* The oracle: a list of all, looked through for what is needed. */

u64 oracle_first(const struct rig *r)
{
	u64 first = U64_MAX;
	u32 i;

	for (i = 0; i < r->cap; i++)
		if (r->known[i].held && r->known[i].tick < first)
			first = r->known[i].tick;
	return first;
}

/* The wheel is about to get this entry. */
static struct twheel_entry entry_of(struct rig *r, u32 index)
{
	struct known *known = &r->known[index];

	known->level = NOWHERE;
	known->late = known->tick < r->w.cur;
	return (struct twheel_entry){ known->tick, index, known->seq };
}

/*
 * The slot where an entry belongs that is neither late nor in limbo, and how often it moves from
 * there.
 */
static const struct twheel_chunk *slot_of(const struct rig *r, const struct known *known,
					  u32 *moves)
{
	const struct twheel_level *level;
	u32 l = 0;

	/* The first level whose slots, but one, span the distance. */
	for (level = r->w.level; l + 1 < r->w.nr_levels; l++, level++)
		if (known->tick - r->w.cur <= (u64)level->mask << level->shift)
			break;
	*moves = l;
	return level->slot[(known->tick >> level->shift) & level->mask];
}

static bool chunk_has(const struct twheel_chunk *chunk, u32 index)
{
	u32 i;

	for (i = 0; i < chunk->nr; i++)
		if (chunk->entry[i].index == index)
			return true;
	return false;
}

static void place(struct rig *r, u32 index)
{
	struct known *known = &r->known[index];
	const struct twheel_entry entry = entry_of(r, index);
	const struct twheel_chunk *newest;
	u32 moves;

	CHECK(r->w.nr_free, "no chunk for entry %u of %u", r->held, r->cap);
	twheel_wheel_insert(&r->w, entry);
	if (known->late || r->w.limbo)
		return;
	newest = slot_of(r, known, &moves);
	CHECK(newest && newest->entry[newest->nr - 1].index == index,
	      "tick %llu at %llu is not in its level", known->tick, r->w.cur);
	r->may_move += moves;
}

/* Put a chunk back; all of its entries are in the slots where they belong then. */
static void put_back(struct rig *r, struct twheel_chunk *chunk, u32 nr_left)
{
	struct twheel_entry left[TWHEEL_CHUNK_ENTRIES];
	u32 i, moves;

	memcpy(left, chunk->entry, sizeof(left));
	memset(&chunk->entry[nr_left], 0xa5, (TWHEEL_CHUNK_ENTRIES - nr_left) * sizeof(left[0]));
	chunk->nr = nr_left;
	twheel_wheel_put_back(&r->w, chunk);
	for (i = 0; i < nr_left; i++) {
		const struct known *known = &r->known[left[i].index];
		const struct twheel_chunk *newest = slot_of(r, known, &moves);

		for (chunk = newest ? newest->next : NULL; chunk; chunk = chunk->next)
			if (chunk_has(chunk, left[i].index) || chunk == newest)
				break;
		CHECK(chunk && chunk_has(chunk, left[i].index),
		      "tick %llu at %llu is not in its level", known->tick, r->w.cur);
	}
}

void insert(struct rig *r, u64 tick)
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
bool advance(struct rig *r)
{
	bool more = below(2), limbo = r->w.limbo, ordered = false;
	u64 placed = r->w.nr_moved;
	unsigned int i, nr;

	memset(r->due, 0xa5, r->max * sizeof(*r->due));
	nr = twheel_wheel_advance(&r->w, r->now, r->due, r->max, &more);
	placed = r->w.nr_moved - placed;
	r->moved += placed;
	CHECK(nr <= r->max, "%u", nr);
	CHECK(placed <= r->max * MOVES_PER_DUE + (more ? 0 : EARLY_STEP),
	      "%llu", placed);
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

void advance_to(struct rig *r, u64 now)
{
	r->now = now;
	while (advance(r))
		;
}

void check_next(struct rig *r)
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
void drive_by_next(struct rig *r)
{
	u32 held;
	u64 next, moved;

	r->exact = true;
	while (r->held) {
		++*oracle_step;
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

unsigned int sweep(struct rig *r, unsigned int drop_one_in)
{
	struct twheel_chunk *chunk = twheel_wheel_sweep(&r->w);
	unsigned int i, nr = chunk ? chunk->nr : 0, nr_left = 0;

	CHECK(nr <= TWHEEL_CHUNK_ENTRIES && (nr || !chunk), "%u", nr);
	for (i = 0; i < nr; i++) {
		struct known *known = known_of(r, &chunk->entry[i]);

		known->seen = true;
		if (!drop_one_in || below(drop_one_in)) {
			chunk->entry[nr_left++] = chunk->entry[i];
		} else {
			known->held = false;
			r->held--;
		}
	}
	if (chunk)
		put_back(r, chunk, nr_left);
	return nr;
}

/*
 * Look at the oldest entries of the slot that is next, and drop them, move them or leave them,
 * or do not touch the chunk.  Returns how many.
 */
unsigned int look_ahead(struct rig *r, unsigned int drop_one_in)
{
	const struct twheel_chunk *next = twheel_wheel_peek(&r->w);
	bool at_once = r->w.limbo || r->w.overdue || r->w.hand;
	u64 tick = twheel_wheel_next(&r->w);
	struct twheel_chunk *chunk, seen;
	unsigned int i, nr, nr_left = 0;
	u32 moves;

	CHECK(!next == (at_once || tick == U64_MAX), "%llu", tick);
	if (!next)
		return 0;
	CHECK(next->nr && next->nr <= TWHEEL_CHUNK_ENTRIES, "%u", next->nr);
	nr = next->nr;
	seen = *next;
	for (i = 0; i < nr; i++) {
		known_of(r, &seen.entry[i]);
		CHECK(seen.entry[i].tick >= tick, "due before %llu", tick);
	}
	if (!drop_one_in)
		return 0;
	chunk = twheel_wheel_take_out(&r->w);
	CHECK(chunk == next, "another chunk than was shown");
	for (i = 0; i < nr; i++) {
		u32 index = seen.entry[i].index;
		struct known *known = &r->known[index];

		if (!below(drop_one_in)) {
			known->held = false;
			r->held--;
			continue;
		}
		if (below(2)) {
			chunk->entry[nr_left++] = seen.entry[i];
			continue;
		}
		known->tick += min(random_distance(r),
				   r->config.max_tick - known->tick);
		known->seen = false;
		chunk->entry[nr_left++] = entry_of(r, index);
		slot_of(r, known, &moves);
		r->may_move += moves;
	}
	put_back(r, chunk, nr_left);
	return nr;
}

void rewind_to(struct rig *r, u64 tick)
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

/* -1, 0 or 1: to be added to a tick that is not 0. */
static u64 around(void)
{
	return below(3) - 1;
}

/* Distances that are on the edges of slots and levels, or anywhere. */
/* Where all are in use, in part at least, there is none. */
static void page_take_back(struct rig *r)
{
	struct twheel_chunk_page *page = twheel_wheel_take_back(&r->w);

	if (page)
		r->outside[r->nr_outside++] = page;
}

u64 random_distance(const struct rig *r)
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

u64 random_tick(const struct rig *r)
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

void random_step(struct rig *r)
{
	u32 i, nr = 1 + below(below(4) ? 4 : r->cap);
	u64 next;

	switch (below(17)) {
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
		else if (r->nr_outside < SPARE_PAGES)
			page_take_back(r);
		break;
	case 16:
		while (nr-- && look_ahead(r, below(4)))
			;
		break;
	}
}
