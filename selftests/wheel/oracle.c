// SPDX-License-Identifier: GPL-2.0
/*
 * oracle.c - a plain array that knows what the timing wheel must return
 *
 * A rig is a wheel beside an array of all entries that it should hold. It does the same steps
 * with the wheel as the engine: engine/expire.c, engine/run.c and engine/alarm.c say why. After
 * each step the wheel's results are compared with the array, and the walker checks every slot,
 * bit and link.
 */
#include <stdlib.h>

#include "oracle.h"

static u64 steps_nobody_counts;
u64 *oracle_step = &steps_nobody_counts;

u64 shim_words;

const struct shape shapes[NR_SHAPES] = {
	{ "tiny",		{ 1000, 4, false } },
	{ "tiny_one_level",	{ 1000, 4, true } },
	{ "odd_tick",		{ 1234567, 16, false } },
	{ "odd_one_level",	{ 1234567, 128, true } },
	{ "power_tick",		{ 1 << 20, 64, false } },
	{ "power_one_level",	{ 1 << 20, 8, true } },
	{ "usual",		{ 1000000, 1024, false } },
	{ "usual_one_level",	{ 1000000, 1024, true } },
	{ "hour",		{ 3600000000000, 4, false } },
	{ "hour_one_level",	{ 3600000000000, 4, true } },
	{ "hour_huge",		{ 3600000000000, 1 << 20, false } },
	{ "huge",		{ 1000, 1 << 20, false } },
	{ "huge_one_level",	{ 1000, 1 << 20, true } },
};

/*
 * Times at which clocks begin: the last two are a REALTIME clock, and a day before the end of time.
 */
const u64 starts[NR_STARTS] = {
	0, 1000, (1ULL << 32) - 1, 1ULL << 53, 1790000000000000000, (1ULL << 63) - 86400000000000,
};

/* Rigs */

struct rig *rig_make(const struct twheel_wheel_config *config, u64 start_ns, u32 cap)
{
	struct rig *r = calloc(1, sizeof(*r));
	u32 i;

	r->config = *config;
	r->slots = calloc(1, twheel_wheel_size(config));
	r->never_ns = min(edge_before(r, END_OF_TIME_NS) + 1, END_OF_TIME_NS);
	r->now_ns = start_ns;
	/* Its old contents do not matter. */
	for (i = 0; i < sizeof(r->w); i++)
		((unsigned char *)&r->w)[i] = 0xa5;
	twheel_wheel_init(&r->w, config, r->slots, edge_before(r, r->now_ns));
	r->cap = cap;
	r->entry = calloc(cap, sizeof(*r->entry));
	for (i = 0; i < cap; i++)
		r->entry[i].level = NOWHERE;
	r->alarm_ns = NEVER_NS;
	r->cascade_ns = U64_MAX;
	return r;
}

void rig_free(struct rig *r)
{
	free(r->entry);
	free(r->slots);
	free(r);
}

static bool has_levels(const struct rig *r)
{
	return r->w.nr_levels > 1;
}

static struct entry *entry_of(struct rig *r, struct twheel_link *link)
{
	struct entry *e = (struct entry *)((char *)link - offsetof(struct entry, link));

	CHECK(e >= r->entry && e < r->entry + r->cap, "wild");
	return e;
}

u64 slot_width(const struct rig *r, u32 level)
{
	return 1ULL << r->w.level[level].shift;
}

/*
 * The time at which an upper slot has to be checked if it begins at begin_ns: half of its width
 * before.
 */
static u64 ahead_ns(const struct rig *r, u32 level, u64 begin_ns)
{
	return begin_ns - min(begin_ns, slot_width(r, level) / 2);
}

u64 edge_before(const struct rig *r, u64 ns)
{
	return ns / r->config.tick_ns * r->config.tick_ns;
}

u64 edge_after(const struct rig *r, u64 ns)
{
	return edge_before(r, ns + r->config.tick_ns - 1);
}

/* The next time at which base_ns + 1 comes to a slot, or the time when it did. */
static u64 ring_begin(const struct rig *r, u32 l, u32 slot)
{
	const struct twheel_level *level = &r->w.level[l];
	u64 at = (r->w.base_ns + 1) >> level->shift;

	return (at + ((slot - at) & level->mask)) << level->shift;
}

/* Whether a level reaches a key from base_ns + 1, so that it has a slot for it. */
static bool in_reach(const struct rig *r, u32 l, u64 key_ns)
{
	const struct twheel_level *level = &r->w.level[l];

	return (key_ns >> level->shift) - ((r->w.base_ns + 1) >> level->shift) <= level->mask;
}

/* The walker */

static void walk_entry(struct rig *r, struct entry *e, u32 level, u32 slot)
{
	CHECK(e->walk != r->walk, "twice");
	e->walk = r->walk;
	CHECK(e->level == level, "level %u, not %u", level, e->level);
	if (level == IN_NEVER)
		return;
	CHECK(e->slot == slot, "slot %u, not %u", slot, e->slot);
	CHECK(e->key_ns >= e->placed_ns, "key %llu", e->key_ns);
	if (level == IN_COMING)
		return;
	CHECK(e->placed_ns > r->w.base_ns, "key %llu base %llu", e->placed_ns, r->w.base_ns);
	CHECK((e->placed_ns >> r->w.level[level].shift & r->w.level[level].mask) == slot,
	      "key %llu", e->placed_ns);
	CHECK(e->astray || !has_levels(r) || in_reach(r, level, e->placed_ns), "key %llu base %llu",
	      e->placed_ns, r->w.base_ns);
}

/* Return how many entries are in the list. */
static u32 walk_list(struct rig *r, struct twheel_link **head, u32 level, u32 slot)
{
	struct twheel_link **pprev, *link;
	u32 nr = 0;

	for (pprev = head; (link = *pprev) != &r->w.end; pprev = &link->next, nr++) {
		CHECK(link->pprev == pprev, "pprev of level %u", level);
		walk_entry(r, entry_of(r, link), level, slot);
	}
	return nr;
}

static u32 walk_level(struct rig *r, u32 l)
{
	struct twheel_level *level = &r->w.level[l];
	bool in_use = false;
	u32 slot, nr, all = 0;
	u64 begin_ns;

	for (slot = 0; slot <= level->mask; slot++) {
		CHECK(!level->slot[slot] == !test_bit(slot, level->occupied), "level %u bit", l);
		if (!level->slot[slot])
			continue;
		in_use = true;
		nr = walk_list(r, &level->slot[slot], l, slot);
		all += nr;
		begin_ns = max(ring_begin(r, l, slot), r->w.base_ns + 1);
		CHECK(level->begin_ns <= begin_ns, "begin %llu, not %llu", level->begin_ns,
		      begin_ns);
	}
	CHECK(!in_use || r->w.used & BIT(l), "level %u", l);
	CHECK(r->w.used & BIT(l) || level->begin_ns == U64_MAX, "level %u", l);
	return all;
}

void walk(struct rig *r)
{
	u32 l, nr;

	r->walk++;
	nr = walk_list(r, &r->w.never, IN_NEVER, 0);
	if (twheel_wheel_has_coming(&r->w))
		nr += walk_list(r, &r->w.coming, IN_COMING, entry_of(r, r->w.coming)->slot);
	for (l = 0; l < r->w.nr_levels; l++)
		nr += walk_level(r, l);
	CHECK(nr == r->held, "%u entries, not %u", nr, r->held);
	CHECK(r->w.cascade_ns == r->cascade_ns, "cascade %llu, not %llu", r->w.cascade_ns,
	      r->cascade_ns);
}

/* The oracle: an array of all entries, which each question searches. */

/* The earliest key that is in force; NEVER_NS if no entry ever expires. */
u64 oracle_first(const struct rig *r)
{
	u64 first_ns = NEVER_NS;
	u32 i;

	for (i = 0; i < r->cap; i++)
		if (r->entry[i].level != NOWHERE && r->entry[i].key_ns < r->never_ns)
			first_ns = min(first_ns, r->entry[i].key_ns);
	return first_ns;
}

struct entry *any_held(struct rig *r)
{
	u32 i = below(r->cap);

	if (!r->held)
		return NULL;
	while (r->entry[i].level == NOWHERE)
		i = (i + 1) % r->cap;
	return &r->entry[i];
}

/* A bit for each level in which the slot of a key is not in use. */
static u32 unused_for(const struct rig *r, u64 key_ns)
{
	u32 l, unused = 0;

	for (l = 0; l < r->w.nr_levels; l++)
		if (!r->w.level[l].slot[key_ns >> r->w.level[l].shift & r->w.level[l].mask])
			unused |= BIT(l);
	return unused;
}

/* The wheel has put an entry somewhere: find out where. */
static void find(struct rig *r, struct entry *e, u32 unused)
{
	const struct twheel_level *level = r->w.level;
	u32 l, slot;

	for (l = 0; l < r->w.nr_levels; l++, level++) {
		slot = e->key_ns >> level->shift & level->mask;
		if (e->link.pprev == &level->slot[slot])
			break;
	}
	CHECK(l < r->w.nr_levels && level->slot[slot] == &e->link, "key %llu base %llu: no slot",
	      e->key_ns, r->w.base_ns);
	e->level = l;
	e->slot = slot;
	e->placed_ns = e->key_ns;
	e->astray = false;
	if (l && unused & BIT(l))
		r->cascade_ns = min(r->cascade_ns, ahead_ns(r, l, ring_begin(r, l, slot)));
}

/*
 * G7: an entry moves once from each level to the next, and once more as the edge of a tick divides
 * its slot.
 */
static u32 moves_from(u32 level)
{
	return level + 2;
}

/* Insert an entry, which is in no list: by the highest bit of its distance, so ahead of base_ns. */
static void place(struct rig *r, struct entry *e)
{
	u64 distance_ns = e->key_ns - r->w.base_ns;
	u32 unused = unused_for(r, e->key_ns);
	const struct twheel_level *level;

	CHECK(e->key_ns > r->w.base_ns, "the test inserts what has passed");
	twheel_wheel_insert(&r->w, &e->link, e->key_ns);
	find(r, e, unused);
	level = &r->w.level[e->level];
	if (has_levels(r))
		CHECK(distance_ns >> level->shift <= level->mask / 2 &&
		      (!e->level || distance_ns >> level->shift), "%llu is in level %u",
		      distance_ns, e->level);
}

/* Note that an entry has been put from one slot into another. */
static void moved(struct rig *r, struct entry *e, u64 placed_ns)
{
	r->moved++;
	if (!has_levels(r))
		return;
	CHECK(e->may_move, "key %llu level %u: too many moves", e->key_ns, e->level);
	e->may_move--;
	if (placed_ns != e->key_ns)
		e->may_move = moves_from(e->level);
}

static void never(struct rig *r, struct entry *e)
{
	twheel_link_push(&r->w.never, &e->link);
	e->level = IN_NEVER;
}

/* Note that the alarm has to ring for an entry that was inserted. */
static void need_alarm(struct rig *r, u64 key_ns)
{
	u64 at_ns = key_ns;

	if (++r->nr_new > ALARM_SCAN_MAX)
		at_ns = min(at_ns, max(r->w.cascade_ns, r->w.base_ns + 1));
	if (at_ns < r->alarm_ns)
		r->alarm_ns = min(r->alarm_ns, edge_after(r, at_ns));
}

/* Insert an entry; if its key has passed, it counts as one that is to come. */
struct entry *insert(struct rig *r, u64 key_ns)
{
	struct entry *e;

	CHECK(r->held < r->cap, "the test inserts too many");
	while (r->entry[r->hint].level != NOWHERE)
		r->hint = (r->hint + 1) % r->cap;
	e = &r->entry[r->hint];
	e->key_ns = max(key_ns, max(r->now_ns, r->w.base_ns) + 1);
	r->held++;
	if (e->key_ns >= r->never_ns) {
		never(r, e);
		return e;
	}
	place(r, e);
	e->may_move = moves_from(e->level);
	need_alarm(r, e->key_ns);
	return e;
}

void delete(struct rig *r, struct entry *e)
{
	twheel_link_del(&e->link);
	e->level = NOWHERE;
	r->held--;
}

/* Make the key of an entry later, without the wheel. */
void make_later(struct rig *r, struct entry *e, u64 key_ns)
{
	CHECK(key_ns >= e->key_ns, "the test makes it earlier");
	if (e->level != IN_NEVER) {
		e->key_ns = key_ns;
		r->may_turn += 3 * (r->held + 1);
	}
}

/*
 * Set the clock. If the wheel was turned, or was about to be turned, to a later time, it follows,
 * as by twheel_clock_follow().
 */
void set_clock(struct rig *r, u64 now_ns)
{
	u64 edge_ns = edge_before(r, now_ns), base_ns = r->w.base_ns;
	u32 i;

	r->now_ns = now_ns;
	if (edge_ns >= max(base_ns, r->w.round_until_ns))
		return;
	twheel_wheel_set_back(&r->w, edge_ns);
	CHECK(r->w.base_ns == min(base_ns, edge_ns), "base %llu", r->w.base_ns);
	r->last_ns = 0;
	r->slot_is_old = true;
	for (i = 0; i < r->cap; i++) {
		r->entry[i].astray = true;
		r->entry[i].may_move = 2 * moves_from(r->w.nr_levels);
	}
}

/* Expiry */

/* Check that each entry of the slot that has come is there, and that no other key has passed. */
static void check_coming(struct rig *r, u64 old_base_ns, u64 until_ns)
{
	const struct twheel_wheel *w = &r->w;
	const struct twheel_level *level = &w->level[w->coming_level];
	u64 begin_ns = (w->coming_level ? w->base_ns + 1 : w->base_ns) >> level->shift;
	u32 slot = begin_ns & level->mask, i, nr = 0;

	CHECK(w->base_ns >= old_base_ns && edge_after(r, w->base_ns) <= until_ns,
	      "base %llu from %llu", w->base_ns, old_base_ns);
	CHECK(w->coming_level || w->base_ns > old_base_ns, "base %llu", w->base_ns);
	for (i = 0; i < r->cap; i++) {
		struct entry *e = &r->entry[i];

		if (e->level == w->coming_level && e->slot == slot)
			e->level = IN_COMING, nr++;
		else if (e->level < TWHEEL_MAX_LEVELS)
			CHECK(e->placed_ns > w->base_ns, "%llu of level %u is left behind at %llu by level %u",
			      e->placed_ns, e->level, w->base_ns, w->coming_level);
	}
	i = walk_list(r, &r->w.coming, IN_COMING, slot);
	CHECK(i == nr, "%u entries of %u come", i, nr);
}

/*
 * If the wheel is not turned further, return false; if entries come, or it has to be called again,
 * return true.
 */
static bool turn(struct rig *r, u64 until_ns)
{
	u64 old_base_ns = r->w.base_ns;
	u32 i;

	CHECK(r->may_turn, "the wheel turns on and on: base %llu until %llu", old_base_ns,
	      until_ns);
	r->may_turn--;
	r->walk++;
	if (twheel_wheel_turn(&r->w, until_ns)) {
		if (!twheel_wheel_has_coming(&r->w)) {
			CHECK(r->w.used && r->w.base_ns == old_base_ns, "base %llu", r->w.base_ns);
			return true;
		}
		r->slot_is_old = false;
		check_coming(r, old_base_ns, until_ns);
		return true;
	}
	CHECK(!twheel_wheel_has_coming(&r->w), "base %llu", r->w.base_ns);
	CHECK(r->w.base_ns == max(old_base_ns, until_ns), "base %llu", r->w.base_ns);
	for (i = 0; i < r->cap; i++)
		CHECK(r->entry[i].level >= TWHEEL_MAX_LEVELS ||
		      r->entry[i].placed_ns > r->w.base_ns, "%llu is late at %llu",
		      r->entry[i].placed_ns, r->w.base_ns);
	return false;
}

static void has_expired(struct rig *r, struct entry *e)
{
	u64 edge_ns = edge_after(r, e->key_ns);

	CHECK(edge_ns <= r->now_ns, "early: %llu at %llu", e->key_ns, r->now_ns);
	CHECK(!r->exact || edge_ns == r->now_ns, "late: %llu at %llu", e->key_ns, r->now_ns);
	CHECK(edge_ns >= r->last_ns, "%llu after %llu", edge_ns, r->last_ns);
	CHECK(!r->w.coming_level, "%llu comes in level %u", e->key_ns, r->w.coming_level);
	CHECK(r->slot_is_old || edge_ns == edge_after(r, r->w.base_ns),
	      "%llu, not in its edge %llu", e->key_ns, edge_after(r, r->w.base_ns));
	r->last_ns = edge_ns;
	r->expired++;
	r->may_turn += 3 * (r->held + 1);
	r->held--;
	e->level = NOWHERE;
}

static void put_back(struct rig *r, struct entry *e)
{
	u32 unused = unused_for(r, e->key_ns), level = r->w.coming_level;
	u64 placed_ns = e->placed_ns;
	bool astray = e->astray;

	twheel_wheel_put_back(&r->w, &e->link, e->key_ns);
	find(r, e, unused);
	moved(r, e, placed_ns);
	if (!astray && placed_ns == e->key_ns)
		CHECK(e->level == (level ? level - 1 : 0), "level %u from %u", e->level, level);
}

/* If an entry that has come is due, it expires; if not, it goes back. */
static void look_at(struct rig *r, struct entry *e, u64 by_ns)
{
	CHECK(e->level == IN_COMING, "level %u", e->level);
	twheel_link_del(&e->link);
	if (e->key_ns >= r->never_ns)
		never(r, e);
	else if (e->key_ns > by_ns)
		put_back(r, e);
	else
		has_expired(r, e);
}

/*
 * Expire entries that are due, but visit @nr entries at most. Return how many more it might have
 * visited; if more may be due, return 0.
 */
unsigned int expire(struct rig *r, unsigned int nr)
{
	u64 edge_ns = edge_before(r, r->now_ns);

	r->may_turn += 4 * 3 * (r->held + 1);
	for (; nr; nr--) {
		if (!twheel_wheel_has_coming(&r->w)) {
			if (!turn(r, edge_ns))
				break;
			if (!twheel_wheel_has_coming(&r->w))
				return 0;
		}
		look_at(r, entry_of(r, r->w.coming), r->w.base_ns);
	}
	if (nr) {
		CHECK(oracle_first(r) > edge_ns, "%llu is late at %llu", oracle_first(r), edge_ns);
		CHECK(r->w.base_ns >= edge_ns, "base %llu", r->w.base_ns);
	}
	return nr;
}

/* Emptying slots ahead */

static void move_down(struct rig *r, u32 level, struct entry *e)
{
	u32 slot = e->slot, unused;
	u64 placed_ns = e->placed_ns;
	bool astray = e->astray;

	CHECK(e->level == level, "level %u", e->level);
	twheel_link_del(&e->link);
	if (e->key_ns >= r->never_ns) {
		never(r, e);
		return;
	}
	unused = unused_for(r, e->key_ns);
	twheel_wheel_move_down(&r->w, level, &e->link, e->key_ns);
	find(r, e, unused);
	moved(r, e, placed_ns);
	CHECK(e->level != level || e->slot != slot, "%llu stays in level %u", e->key_ns, level);
	CHECK(astray || placed_ns != e->key_ns || e->level == level - 1, "level %u from %u",
	      e->level, level);
}

static struct twheel_link **ahead(struct rig *r, u32 *level)
{
	struct twheel_link **slot = twheel_wheel_ahead(&r->w, level);
	u32 i;

	for (i = 1; i < r->w.nr_levels; i++) {
		const struct twheel_level *l = &r->w.level[i];
		u64 at = (r->w.base_ns + slot_width(r, i) + 1) >> l->shift & l->mask;

		if (slot == &l->slot[at]) {
			CHECK(*level == i && *slot && *slot != &r->w.end, "level %u", *level);
			return slot;
		}
		CHECK(slot || !l->slot[at] || l->slot[at] == &r->w.end, "level %u slot %llu", i,
		      at);
	}
	CHECK(!slot, "a slot of another time");
	return NULL;
}

/* Empty upper slots ahead, @nr entries; return whether one is left whose time has come. */
bool empty_ahead(struct rig *r, unsigned int nr)
{
	struct twheel_wheel *w = &r->w;
	struct twheel_link **slot;
	u32 l;

	while ((slot = ahead(r, &l))) {
		for (; nr && *slot != &w->end; nr--)
			move_down(r, l, entry_of(r, *slot));
		if (!nr)
			return *slot != &w->end && twheel_slot_left_ns(w, &w->level[l]) <=
						   twheel_slot_lead_ns(&w->level[l]);
	}
	return false;
}

/* The alarm */

/* Check that the first slot of a level is the one that the wheel comes to next. */
void check_first(struct rig *r, u32 level)
{
	const struct twheel_level *l = &r->w.level[level];
	struct twheel_link **slot;
	u64 begin_ns = U64_MAX;
	u32 i, calls = 0;

	/* It puts this many empty slots out of use at a time. */
	do
		CHECK(calls++ <= l->mask / 256 + 1, "level %u", level);
	while (!(slot = twheel_wheel_first(&r->w, level)) && r->w.used & BIT(level));
	for (i = 0; i < r->cap; i++)
		if (r->entry[i].level == level)
			begin_ns = min(begin_ns, ring_begin(r, level, r->entry[i].slot));
	if (begin_ns == U64_MAX) {
		CHECK(!slot && l->begin_ns == U64_MAX && !(r->w.used & BIT(level)), "level %u",
		      level);
		return;
	}
	CHECK(slot == &l->slot[begin_ns >> l->shift & l->mask], "level %u: not %llu", level,
	      begin_ns);
	CHECK(l->begin_ns == max(begin_ns, r->w.base_ns + 1), "level %u begin %llu, not %llu",
	      level, l->begin_ns, begin_ns);
	CHECK(r->w.used & BIT(level), "level %u", level);
}

static void move_later(struct rig *r, struct entry *e)
{
	u64 placed_ns = e->placed_ns;

	twheel_link_del(&e->link);
	if (e->key_ns >= r->never_ns) {
		never(r, e);
		return;
	}
	place(r, e);
	moved(r, e, placed_ns);
}

/* Do as slot_first_ns() of engine/alarm.c does. */
static u64 first_in_slot(struct rig *r, u32 l, struct twheel_link **slot, unsigned int *moves)
{
	struct twheel_wheel *w = &r->w;
	struct twheel_level *level = &w->level[l];
	u64 begin_ns = level->begin_ns, first_ns = NEVER_NS;
	u64 end_ns = twheel_slot_begin_ns(level, begin_ns) + slot_width(r, l);
	u64 soonest_ns = l ? 0 : edge_after(r, begin_ns);
	struct twheel_link *link, *next;
	unsigned int looks = 0;

	for (link = *slot; link != &w->end && first_ns > soonest_ns && *moves; link = next) {
		struct entry *e = entry_of(r, link);
		u64 key_ns = e->key_ns;

		next = link->next;
		if (key_ns >= r->never_ns || (w->nr_levels > 1 && key_ns >= end_ns &&
					      key_ns - begin_ns >= begin_ns - w->base_ns)) {
			move_later(r, e);
			--*moves;
			continue;
		}
		first_ns = min(first_ns, key_ns < end_ns ? key_ns : begin_ns);
		if (++looks > ALARM_SCAN_MAX)
			return l ? max(ahead_ns(r, l, begin_ns), w->base_ns + 1) :
				   begin_ns;
	}
	return first_ns;
}

/* Do as level_check_ns() of engine/alarm.c does. */
static u64 look_ns(const struct rig *r, u32 l)
{
	u64 begin_ns = r->w.level[l].begin_ns;

	return l && begin_ns != U64_MAX ? ahead_ns(r, l, begin_ns) : begin_ns;
}

/* Set the alarm. If there is something to do before, return false. */
bool set_alarm(struct rig *r)
{
	struct twheel_wheel *w = &r->w;
	u64 first_ns = NEVER_NS, cascade_ns = U64_MAX;
	unsigned int moves = PASS_STEP;
	u32 i;

	for (i = 0; i < w->nr_levels && w->used >> i; i++) {
		u64 slot_ns = NEVER_NS;

		while (slot_ns == NEVER_NS && look_ns(r, i) < first_ns && moves) {
			struct twheel_link **slot;

			check_first(r, i);
			slot = twheel_wheel_first(w, i);
			if (!slot || look_ns(r, i) >= first_ns)
				break;
			slot_ns = first_in_slot(r, i, slot, &moves);
		}
		first_ns = min(first_ns, slot_ns);
		if (i)
			cascade_ns = min(cascade_ns, look_ns(r, i));
	}
	if (!moves)
		return false;
	w->cascade_ns = cascade_ns;
	r->cascade_ns = cascade_ns;
	r->nr_new = 0;
	r->alarm_ns = first_ns == NEVER_NS ? NEVER_NS : edge_after(r, first_ns);
	first_ns = oracle_first(r);
	CHECK(first_ns == NEVER_NS ? r->alarm_ns == NEVER_NS :
				     r->alarm_ns <= edge_after(r, first_ns),
	      "alarm at %llu, first at %llu", r->alarm_ns, first_ns);
	return true;
}

/*
 * Do all steps that are due by the clock, @nr entries a step.  With one level, rounds are skipped
 * up to the next entry, and each of the others may be visited before that is due.
 */
void pass(struct rig *r, unsigned int nr)
{
	u64 steps = 0, most = 20000 + (r->held + 2ULL) * (r->held + 2);
	unsigned int left;
	bool more;

	do {
		++*oracle_step;
		CHECK(++steps <= most, "there is no end of steps: base %llu", r->w.base_ns);
		left = expire(r, nr);
		more = !left || empty_ahead(r, left) || !set_alarm(r);
	} while (more);
}

void pass_at(struct rig *r, u64 now_ns)
{
	set_clock(r, now_ns);
	pass(r, PASS_STEP);
}

/* Run only when the alarm rings, until nothing is left: each entry has to come in its tick. */
void drive_by_alarm(struct rig *r)
{
	u64 moved_before, expired_before;

	r->exact = true;
	while (!set_alarm(r))
		;
	while (r->alarm_ns != NEVER_NS) {
		CHECK(r->alarm_ns > r->now_ns, "alarm at %llu", r->alarm_ns);
		moved_before = r->moved;
		expired_before = r->expired;
		pass_at(r, r->alarm_ns);
		/* If there is one level, a slot comes up once a round. */
		CHECK(r->moved > moved_before || r->expired > expired_before || !has_levels(r),
		      "idle at %llu", r->now_ns);
		if (r->cap < 500 && r->config.slots < 4096)
			walk(r);
	}
	CHECK(oracle_first(r) == NEVER_NS, "%u are held", r->held);
	r->exact = false;
}

/* The random driver */

/* Return -1, 0 or 1, to be added to a time that is not 0. */
static u64 around(void)
{
	return below(3) - 1;
}

/* Return a distance at the edge of a tick, a slot or a level, or any. */
u64 random_distance(const struct rig *r)
{
	u32 l = below(below(r->w.nr_levels) + 1);
	u64 span = slot_width(r, l), nr = r->w.level[l].mask + 1ULL;
	u64 to_edge = span - (r->w.base_ns & (span - 1));
	u64 to_tick = r->config.tick_ns - r->w.base_ns % r->config.tick_ns;

	switch (below(9)) {
	case 0:
		return below(4);
	case 1:
		return span + around();
	case 2:
		return to_edge + span * below(2 * nr) + around();
	case 3:
		return span * nr + around();
	case 4:
		return to_edge + span * (nr - 1) + around();
	case 5:
		return to_tick + r->config.tick_ns * below(r->config.slots) + around();
	case 6:
		return to_tick + r->config.tick_ns * below(4) + around();
	case 7:
		return below(span) + span * below(nr / 2);
	default:
		return rnd() >> below(64);
	}
}

/* Return a later time, up to the end of time. */
u64 later_by(u64 ns, u64 by_ns)
{
	return by_ns < END_OF_TIME_NS - ns ? ns + by_ns : max(ns, END_OF_TIME_NS - below(2));
}

u64 random_key(const struct rig *r)
{
	switch (below(40)) {
	case 0:
		return r->never_ns - 2 + below(3);
	case 1 ... 4:
		return r->last_ns;
	case 5 ... 10:
		return later_by(r->now_ns, random_distance(r));
	default:
		return later_by(r->w.base_ns, random_distance(r));
	}
}

static void random_deletions(struct rig *r, u32 nr)
{
	while (nr-- && r->held) {
		struct entry *e = any_held(r);
		u64 key_ns = e->key_ns;

		delete(r, e);
		/* Move it earlier, as REARM does. */
		if (below(2))
			insert(r, key_ns - min(key_ns, random_distance(r)));
	}
}

static void random_delays(struct rig *r, u32 nr)
{
	while (nr-- && r->held) {
		struct entry *e = any_held(r);

		make_later(r, e, below(40) ? later_by(e->key_ns, random_distance(r)) :
					     max(r->never_ns, e->key_ns));
	}
}

/* Let the clock go on, sometimes far, or to its next alarm. */
static void random_clock(struct rig *r)
{
	u64 to_ns;

	if (below(3))
		to_ns = later_by(r->now_ns, below(8) ? random_distance(r) : below(1000));
	else
		to_ns = r->alarm_ns;
	if (to_ns > r->now_ns && to_ns < r->never_ns)
		set_clock(r, to_ns);
}

/* If a caller asks for a time to which the wheel was turned before, nothing changes. */
static void turn_to_the_past(struct rig *r)
{
	u64 base_ns = r->w.base_ns;

	if (twheel_wheel_has_coming(&r->w))
		return;
	r->may_turn++;
	turn(r, edge_before(r, base_ns - min(base_ns, random_distance(r))));
	CHECK(!twheel_wheel_has_coming(&r->w) && r->w.base_ns == base_ns, "base %llu from %llu",
	      r->w.base_ns, base_ns);
}

void random_step(struct rig *r)
{
	u32 i, nr = 1 + below(below(4) ? 4 : r->cap);

	switch (below(16)) {
	case 0 ... 3:
		for (i = 0; i < nr && r->held < r->cap; i++)
			insert(r, random_key(r));
		break;
	case 4:
		random_deletions(r, nr);
		break;
	case 5 ... 6:
		random_delays(r, nr);
		break;
	case 7 ... 10:
		random_clock(r);
		pass(r, below(2) ? PASS_STEP : 1 + below(8));
		break;
	case 11 ... 12:
		random_clock(r);
		/* Between two steps, do all the other things. */
		if (expire(r, nr) && below(2))
			empty_ahead(r, 1 + below(8));
		break;
	case 13:
		empty_ahead(r, nr);
		break;
	case 14:
		turn_to_the_past(r);
		if (below(2) && !twheel_wheel_has_coming(&r->w))
			set_alarm(r);
		else
			check_first(r, below(r->w.nr_levels));
		break;
	case 15:
		set_clock(r, r->now_ns - min(r->now_ns, random_distance(r)));
		break;
	}
}
