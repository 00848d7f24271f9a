// SPDX-License-Identifier: GPL-2.0
/*
 * The timing wheel in the kernel: small shapes gone through exhaustively
 *
 * selftests/wheel throws random work at the wheel in userspace.  Here it is
 * built as it is shipped, with the kernel's bitmaps and under its sanitizers;
 * and where a shape is small enough, every possible case is tried and compared
 * with what a plain list of entries would do.
 *
 * Wheels get exactly the pages that twheel_wheel_pages_for() promises to be
 * enough, each an allocation of its own, so that KASAN sees who leaves one.
 */
#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "twheel_wheel.h"

/* What the wheel's banner promises. */
#define EARLY_STEP		4096
#define MOVES_PER_DUE		4
#define LEAD(span)		((span) * 3 / 4)

/* The last tick of the shortest tick there is. */
#define FAR			(S64_MAX / 1000)

/**
 * struct shape - a wheel to be tried
 * @name: what it is called
 * @config: the shape
 */
struct shape {
	const char *name;
	struct twheel_wheel_config config;
};

#define SHAPE(n, ...) { .name = n, .config = { __VA_ARGS__ } }

static const struct shape shapes[] = {
	SHAPE("smallest", .slots = 4, .max_tick = FAR),
	SHAPE("smallest that rewinds", .slots = 4, .max_tick = FAR,
	      .rewinds = true),
	SHAPE("two levels", .slots = 8, .max_tick = 1023),
	SHAPE("usual", .slots = 1024, .max_tick = FAR, .rewinds = true),
	SHAPE("largest", .slots = 1 << 20, .max_tick = FAR),
	SHAPE("smallest of one level", .slots = 4, .max_tick = FAR,
	      .one_level = true),
	SHAPE("usual of one level", .slots = 1024, .max_tick = FAR,
	      .one_level = true, .rewinds = true),
};

static void shape_name(const struct shape *shape, char *name)
{
	strscpy(name, shape->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(shape, shapes, shape_name);

/* Small enough for trying everything. */
static const struct shape small_shapes[] = {
	SHAPE("levels", .slots = 4, .max_tick = 4095, .rewinds = true),
	SHAPE("one level", .slots = 4, .max_tick = 4095, .rewinds = true,
	      .one_level = true),
};

KUNIT_ARRAY_PARAM(small, small_shapes, shape_name);

/**
 * struct rig - a wheel and what it is made of
 * @w: the wheel
 * @config: its shape
 * @slots: its slots
 * @nr_pages: pages of chunks that it was given
 */
struct rig {
	struct twheel_wheel w;
	struct twheel_wheel_config config;
	void *slots;
	u32 nr_pages;
};

static struct rig *rig_make(struct kunit *test,
			    const struct twheel_wheel_config *config, u64 cur,
			    u32 nr_entries)
{
	struct rig *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->config = *config;
	r->slots = kvzalloc(twheel_wheel_size(config), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->slots);
	twheel_wheel_init(&r->w, config, r->slots, cur);
	test->priv = r;
	while (r->nr_pages < twheel_wheel_pages_for(&r->w, nr_entries)) {
		void *page = (void *)__get_free_page(GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, page);
		twheel_wheel_give(&r->w, page);
		r->nr_pages++;
	}
	return r;
}

/* Chunks that it was given. */
static u64 rig_chunks(const struct rig *r)
{
	return r->nr_pages * TWHEEL_CHUNKS_PER_PAGE;
}

/* Whatever a case leaves behind, all pages must come back from it. */
static void wheel_case_exit(struct kunit *test)
{
	struct twheel_chunk_page *page;
	struct rig *r = test->priv;
	u32 nr = 0;

	if (!r)
		return;
	while ((page = twheel_wheel_dismantle(&r->w))) {
		free_page((unsigned long)page);
		nr++;
	}
	KUNIT_EXPECT_EQ(test, nr, r->nr_pages);
	kvfree(r->slots);
}

/* Begin anew with a wheel that is empty, and must be as if it were new. */
static void rig_restart(struct kunit *test, struct rig *r, u64 cur)
{
	u64 nr_free = r->w.nr_free;
	LIST_HEAD(pages);

	KUNIT_ASSERT_EQ(test, r->w.nr_entries, 0ULL);
	KUNIT_ASSERT_EQ(test, nr_free, rig_chunks(r));
	KUNIT_ASSERT_TRUE(test, list_empty(&r->w.pages));
	if (r->config.slots <= 1024)
		KUNIT_ASSERT_NULL(test, memchr_inv(r->slots, 0,
						   twheel_wheel_size(&r->config)));
	list_splice_init(&r->w.spare, &pages);
	twheel_wheel_init(&r->w, &r->config, r->slots, cur);
	list_splice(&pages, &r->w.spare);
	r->w.nr_free = nr_free;
}

static void insert(struct kunit *test, u64 tick, u32 index)
{
	struct rig *r = test->priv;
	struct twheel_entry entry = {
		.tick = tick, .index = index, .seq = ~index,
	};

	KUNIT_ASSERT_GT(test, r->w.nr_free, 0ULL);
	twheel_wheel_insert(&r->w, entry);
}

/* Take all that is due; returns how many, the first 16 of them at @out. */
static unsigned int advance_into(struct kunit *test, u64 now,
				 struct twheel_entry out[16])
{
	struct rig *r = test->priv;
	struct twheel_entry due[5];
	unsigned int i, nr, total = 0;
	bool more;

	do {
		nr = twheel_wheel_advance(&r->w, now, due, ARRAY_SIZE(due),
					  &more);
		KUNIT_ASSERT_LE(test, nr, (unsigned int)ARRAY_SIZE(due));
		for (i = 0; i < nr; i++) {
			KUNIT_ASSERT_EQ(test, due[i].seq, ~due[i].index);
			KUNIT_ASSERT_LE(test, due[i].tick, now);
			if (out && total < 16)
				out[total] = due[i];
			total++;
		}
		cond_resched();
	} while (more);
	return total;
}

static unsigned int advance(struct kunit *test, u64 now)
{
	return advance_into(test, now, NULL);
}

static u64 level_span(const struct rig *r, u32 l)
{
	return 1ULL << r->w.level[l].shift;
}

/* How far a level reaches; the last one farther. */
static u64 level_reach(const struct rig *r, u32 l)
{
	return (u64)r->w.level[l].mask << r->w.level[l].shift;
}

static u32 level_entries(const struct rig *r, u32 l)
{
	const struct twheel_level *level = &r->w.level[l];
	const struct twheel_chunk *chunk;
	u32 slot, nr = 0;

	for_each_set_bit(slot, level->occupied, level->mask + 1) {
		chunk = level->slot[slot];
		do {
			nr += chunk->nr;
			chunk = chunk->next;
		} while (chunk != level->slot[slot]);
	}
	return nr;
}

/*
 * The wheel holds the only entry there is.  Come when it says so, and not else:
 * it must come in its tick.  Returns how many times one had to come.
 */
static unsigned int drive_to(struct kunit *test, u64 tick)
{
	struct rig *r = test->priv;
	unsigned int nr = 0, times = 0;

	while (!nr) {
		u64 next = twheel_wheel_next(&r->w);

		KUNIT_ASSERT_LE(test, next, tick);
		KUNIT_ASSERT_GE(test, next, r->w.cur);
		/* A tick before that, nothing is due. */
		if (next > r->w.cur)
			KUNIT_ASSERT_EQ(test, advance(test, next - 1), 0U);
		nr = advance(test, next);
		KUNIT_ASSERT_EQ(test, nr, (unsigned int)(next == tick));
		times++;
	}
	KUNIT_ASSERT_EQ(test, twheel_wheel_next(&r->w), U64_MAX);
	return times;
}

/* Shape */

static void there_are_as_many_levels_as_it_takes(struct kunit *test)
{
	struct twheel_wheel *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	u32 slots_log, bits;

	KUNIT_ASSERT_NOT_NULL(test, w);
	for (slots_log = 2; slots_log <= 20; slots_log++) {
		for (bits = 1; bits <= 64; bits++) {
			struct twheel_wheel_config config = {
				.slots = 1U << slots_log,
				.max_tick = U64_MAX >> (64 - bits),
			};
			struct twheel_level *last;

			/* The memory is not touched by that. */
			twheel_wheel_init(w, &config, NULL, 0);
			KUNIT_ASSERT_LE(test, w->nr_levels, TWHEEL_MAX_LEVELS);
			last = &w->level[w->nr_levels - 1];
			KUNIT_ASSERT_LE(test, config.max_tick >> last->shift,
					(u64)last->mask);
			if (w->nr_levels == 1)
				continue;
			last--;
			KUNIT_ASSERT_GT(test, config.max_tick >> last->shift,
					(u64)last->mask);
		}
	}
}

static void a_coarse_slot_spans_half_of_the_level_below(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 1);
	u32 l;

	KUNIT_EXPECT_EQ(test, level_span(r, 0), 1ULL);
	KUNIT_EXPECT_EQ(test, r->w.level[0].mask, shape->config.slots - 1);
	for (l = 1; l < r->w.nr_levels; l++)
		KUNIT_EXPECT_EQ(test, 2 * level_span(r, l),
				level_reach(r, l - 1) + level_span(r, l - 1));
	if (shape->config.one_level)
		KUNIT_EXPECT_EQ(test, r->w.nr_levels, 1U);
}

static void the_slots_fill_their_memory_exactly(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 1);
	void *end = r->slots;
	u32 l;

	for (l = 0; l < r->w.nr_levels; l++) {
		struct twheel_level *level = &r->w.level[l];

		KUNIT_EXPECT_PTR_EQ(test, (void *)level->slot, end);
		end += (level->mask + 1) * sizeof(*level->slot);
		KUNIT_EXPECT_PTR_EQ(test, (void *)level->occupied, end);
		end += BITS_TO_LONGS(level->mask + 1) * sizeof(long);
	}
	KUNIT_EXPECT_EQ(test, end - r->slots,
			(ptrdiff_t)twheel_wheel_size(&shape->config));
}

static void an_entry_takes_little_more_than_18_bytes(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, sizeof(struct twheel_entry), 16UL);
	KUNIT_EXPECT_LE(test, sizeof(struct twheel_chunk) * 10,
			183UL * TWHEEL_CHUNK_ENTRIES);
}

/* When */

static void a_new_wheel_has_nothing_to_do_for_ever(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 7, 1);

	KUNIT_EXPECT_EQ(test, twheel_wheel_next(&r->w), U64_MAX);
	KUNIT_EXPECT_EQ(test, advance(test, shape->config.max_tick), 0U);
	KUNIT_EXPECT_EQ(test, twheel_wheel_next(&r->w), U64_MAX);
}

/* A tick before the end of each level's reach, at it, and after it. */
static void deadlines_on_the_edge_of_a_level_come_in_their_tick(struct kunit *test)
{
	static const u64 starts[] = {
		0, 1, 2, 3, 511, 512, 513, BIT_ULL(32) - 1, BIT_ULL(32), BIT_ULL(48) + 1,
	};
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 1);
	unsigned int s, k;
	u32 l;

	for (s = 0; s < ARRAY_SIZE(starts); s++) {
		u64 start = min(starts[s], shape->config.max_tick / 2);

		for (l = 0; l < r->w.nr_levels; l++) {
			u64 edge = level_reach(r, l);

			for (k = 0; k < 9; k++) {
				u64 tick = start + edge + k / 3 * level_span(r, l) +
					   k % 3 - 1;

				if (tick > shape->config.max_tick)
					continue;
				rig_restart(test, r, start);
				insert(test, tick, k);
				drive_to(test, tick);
			}
		}
	}
}

static void the_farthest_deadline_comes_in_its_tick(struct kunit *test)
{
	struct twheel_wheel_config config = shapes[0].config;
	struct rig *r = rig_make(test, &config, 0, 1);
	unsigned int times;
	u64 start;

	for (start = 0; start < 600; start += 7) {
		rig_restart(test, r, start);
		insert(test, config.max_tick, 1);
		times = drive_to(test, config.max_tick);
		/* It is moved once a level, and handed out. */
		KUNIT_ASSERT_LE(test, times, r->w.nr_levels);
	}
}

static void every_distance_from_every_tick_comes_in_its_tick(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 1);
	u64 start, distance;
	/* 510 is how far the second level reaches; its slots span 2 ticks. */
	u64 limit = shape->config.one_level ? 100 : 1100;

	for (start = 500; start < 516; start++) {
		for (distance = 0; distance < limit; distance++) {
			rig_restart(test, r, start);
			insert(test, start + distance, 1);
			drive_to(test, start + distance);
		}
	}
}

/* Whatever is due up to @now, and nothing else, in the order of ticks. */
static void expect_due(struct kunit *test, u32 held, u64 base, u64 now)
{
	struct twheel_entry out[16];
	unsigned int i, nr = advance_into(test, now, out);
	u32 seen = 0;
	u64 last = 0;

	for (i = 0; i < nr; i++) {
		KUNIT_ASSERT_LT(test, out[i].index, 16U);
		KUNIT_ASSERT_EQ(test, out[i].tick, base + out[i].index);
		KUNIT_ASSERT_GE(test, out[i].tick, last);
		KUNIT_ASSERT_FALSE(test, seen & BIT(out[i].index));
		seen |= BIT(out[i].index);
		last = out[i].tick;
	}
	/* Bit n of @held: an entry of tick @base + n. */
	KUNIT_ASSERT_EQ(test, seen, held & GENMASK(min(now - base, 15ULL), 0));
}

static void every_set_of_ticks_comes_in_order_in_every_stride(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 10);
	const u64 base = 510;
	u32 set, held, n;
	u64 now, stride;

	for (stride = 1; stride < 12; stride += 1 + stride / 3) {
		for (set = 1; set < BIT(10); set++) {
			rig_restart(test, r, base - stride % 3);
			for (n = 0; n < 10; n++)
				if (set & BIT(n))
					insert(test, base + n, n);
			held = set;
			for (now = base; held; now += stride) {
				expect_due(test, held, base, now);
				held &= ~GENMASK(min(now - base, 15ULL), 0);
			}
		}
	}
}

static void a_long_absence_costs_what_became_due_not_the_ticks(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 20);
	struct twheel_entry due[8];
	unsigned int calls = 0, nr = 0;
	u64 last = 0;
	bool more;
	u32 i;

	for (i = 0; i < 20; i++)
		insert(test, shape->config.max_tick >> (3 * i), i);
	do {
		unsigned int got = twheel_wheel_advance(&r->w,
							shape->config.max_tick,
							due, 8, &more);

		for (i = 0; i < got; i++) {
			KUNIT_ASSERT_GE(test, due[i].tick, last);
			last = due[i].tick;
		}
		nr += got;
		KUNIT_ASSERT_LE(test, ++calls, 1000U);
	} while (more);
	KUNIT_EXPECT_EQ(test, nr, 20U);
	KUNIT_EXPECT_EQ(test, last, shape->config.max_tick);
}

static void a_call_hands_out_one_tick_and_no_more_than_asked_for(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 30);
	struct twheel_entry due[4];
	unsigned int i, nr, total = 0;
	bool more;

	/* Ten in each of three ticks. */
	for (i = 0; i < 30; i++)
		insert(test, 2 + i % 3, i);
	do {
		nr = twheel_wheel_advance(&r->w, 100, due, 4, &more);
		KUNIT_ASSERT_LE(test, nr, 4U);
		for (i = 0; i < nr; i++) {
			KUNIT_ASSERT_EQ(test, due[i].tick, due[0].tick);
			KUNIT_ASSERT_EQ(test, due[i].tick, 2ULL + total++ / 10);
		}
	} while (more);
	KUNIT_EXPECT_EQ(test, total, 30U);
	KUNIT_EXPECT_EQ(test, twheel_wheel_next(&r->w), U64_MAX);
}

static void what_has_gone_by_comes_at_the_next_call_and_first(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 100, 4);
	struct twheel_entry out[16];

	insert(test, 100, 3);
	insert(test, 99, 1);
	insert(test, 0, 2);
	KUNIT_EXPECT_EQ(test, twheel_wheel_next(&r->w), 0ULL);
	KUNIT_ASSERT_EQ(test, advance_into(test, 100, out), 3U);
	KUNIT_EXPECT_EQ(test, out[0].index + out[1].index, 3U);
	KUNIT_EXPECT_EQ(test, out[2].index, 3U);
	/* Also when the clock has not moved. */
	insert(test, 100, 4);
	KUNIT_EXPECT_EQ(test, twheel_wheel_next(&r->w), 0ULL);
	KUNIT_EXPECT_EQ(test, advance(test, 100), 1U);
}

static void a_clock_that_stands_or_goes_back_hands_out_nothing_new(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 4);

	advance(test, 50);
	insert(test, 51, 1);
	KUNIT_EXPECT_EQ(test, advance(test, 50), 0U);
	KUNIT_EXPECT_EQ(test, advance(test, 3), 0U);
	KUNIT_EXPECT_EQ(test, advance(test, 0), 0U);
	KUNIT_EXPECT_EQ(test, r->w.cur, 51ULL);
	KUNIT_EXPECT_EQ(test, twheel_wheel_next(&r->w), 51ULL);
	KUNIT_EXPECT_EQ(test, advance(test, 51), 1U);
}

static void next_is_exact_within_the_first_level(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 1);
	u64 start, distance;

	for (start = 0; start < 70; start++) {
		for (distance = 0; distance <= min(level_reach(r, 0), 80ULL);
		     distance++) {
			rig_restart(test, r, start);
			insert(test, start + distance, 1);
			KUNIT_ASSERT_EQ(test, twheel_wheel_next(&r->w),
					start + distance);
			KUNIT_ASSERT_EQ(test, advance(test, start + distance),
					1U);
		}
	}
}

static void next_is_the_earliest_of_all_levels(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 40);
	u32 i, l;

	for (l = 0; l < r->w.nr_levels; l++)
		insert(test, level_reach(r, l), l);
	KUNIT_EXPECT_LE(test, twheel_wheel_next(&r->w), level_reach(r, 0));
	for (i = 3; i; i--) {
		insert(test, i, 20 + i);
		KUNIT_EXPECT_EQ(test, twheel_wheel_next(&r->w), (u64)i);
	}
}

/* Levels */

static void a_coarse_slot_is_begun_three_quarters_of_a_span_ahead(struct kunit *test)
{
	struct rig *r = rig_make(test, &shapes[3].config, 0, 1);
	const u64 span = level_span(r, 1), tick = 10 * span + 17;

	insert(test, tick, 1);
	KUNIT_ASSERT_EQ(test, level_entries(r, 1), 1U);
	KUNIT_EXPECT_EQ(test, twheel_wheel_next(&r->w), 10 * span - LEAD(span));
	advance(test, 10 * span - LEAD(span) - 1);
	KUNIT_EXPECT_EQ(test, level_entries(r, 1), 1U);
	advance(test, 10 * span - LEAD(span));
	KUNIT_EXPECT_EQ(test, level_entries(r, 0), 1U);
	KUNIT_EXPECT_EQ(test, level_entries(r, 1), 0U);
	KUNIT_EXPECT_EQ(test, twheel_wheel_next(&r->w), tick);
}

static void a_full_coarse_slot_moves_down_a_step_a_tick(struct kunit *test)
{
	const u32 nr = 2 * EARLY_STEP + 100;
	struct rig *r = rig_make(test, &shapes[3].config, 0, nr);
	const u64 span = level_span(r, 1), first = 10 * span;
	u32 i, left = nr;
	u64 now;

	for (i = 0; i < nr; i++)
		insert(test, first + i % span, i);
	KUNIT_ASSERT_EQ(test, level_entries(r, 1), nr);
	for (now = twheel_wheel_next(&r->w); left; now++) {
		u32 before = left;

		KUNIT_ASSERT_LT(test, now, first);
		KUNIT_ASSERT_EQ(test, advance(test, now), 0U);
		left = level_entries(r, 1);
		KUNIT_ASSERT_LE(test, before - left, (u32)EARLY_STEP);
		KUNIT_ASSERT_LT(test, left, before);
		/* As long as any are left, it is needed in the next tick. */
		if (left)
			KUNIT_ASSERT_EQ(test, twheel_wheel_next(&r->w), now + 1);
	}
	KUNIT_EXPECT_EQ(test, twheel_wheel_next(&r->w), first);
	for (now = first; now < first + span; now++)
		KUNIT_ASSERT_EQ(test, advance(test, now),
				(u32)((nr - (now - first) + span - 1) / span));
}

static void what_is_left_of_a_coarse_slot_moves_when_it_comes_due(struct kunit *test)
{
	const u32 nr = 300;
	struct rig *r = rig_make(test, &shapes[3].config, 0, nr);
	const u64 first = 10 * level_span(r, 1);
	struct twheel_entry due[8];
	unsigned int got = 0;
	bool more = true;
	u32 i;

	for (i = 0; i < nr; i++)
		insert(test, first + i % 3, i);
	/* Nobody came in time, and no call may take it all. */
	while (more) {
		u32 before = level_entries(r, 1);

		got += twheel_wheel_advance(&r->w, first + 2, due, 8, &more);
		KUNIT_ASSERT_LE(test, before - level_entries(r, 1),
				8U * MOVES_PER_DUE);
	}
	KUNIT_EXPECT_EQ(test, got, nr);
}

/* One level */

static void an_entry_of_a_later_round_waits_in_its_slot(struct kunit *test)
{
	struct rig *r = rig_make(test, &small_shapes[1].config, 0, 2);
	u64 round;

	for (round = 0; round < 20; round++) {
		u64 tick = 4 * round + 2, now;

		rig_restart(test, r, 0);
		insert(test, tick, 1);
		for (now = 0; now < tick; now++) {
			/* Its slot comes up in each round, and not else. */
			KUNIT_ASSERT_EQ(test, twheel_wheel_next(&r->w),
					((now + 1) & ~3ULL) + 2);
			KUNIT_ASSERT_EQ(test, advance(test, now), 0U);
		}
		KUNIT_ASSERT_EQ(test, advance(test, tick), 1U);
	}
}

static void rounds_that_hold_nothing_due_are_skipped(struct kunit *test)
{
	struct rig *r = rig_make(test, &small_shapes[1].config, 0, 4);
	struct twheel_entry due[4];
	unsigned int nr, calls = 0;
	bool more;
	u32 i;

	for (i = 0; i < 4; i++)
		insert(test, BIT_ULL(40) + i, i);
	do {
		nr = twheel_wheel_advance(&r->w, BIT_ULL(40) - 1, due, 4, &more);
		KUNIT_ASSERT_EQ(test, nr, 0U);
		KUNIT_ASSERT_LE(test, ++calls, 100U);
	} while (more);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, advance(test, BIT_ULL(40) + i), 1U);
}

/* Rewinding */

/*
 * What is due at @tick, armed at 0, with the clock going to @to, back to @back,
 * and on from there.
 */
static void rewind_case(struct kunit *test, u64 tick, u64 to, u64 back)
{
	struct rig *r = test->priv;
	u64 now, when = max(tick, back);

	rig_restart(test, r, 0);
	insert(test, tick, 1);
	if (tick <= to) {
		/* What was handed out does not come again. */
		KUNIT_ASSERT_EQ(test, advance(test, to), 1U);
		twheel_wheel_rewind(&r->w, back);
		KUNIT_ASSERT_EQ(test, twheel_wheel_next(&r->w), U64_MAX);
		KUNIT_ASSERT_EQ(test, advance(test, to + 40), 0U);
		return;
	}
	KUNIT_ASSERT_EQ(test, advance(test, to), 0U);
	twheel_wheel_rewind(&r->w, back);
	KUNIT_ASSERT_EQ(test, twheel_wheel_next(&r->w), 0ULL);
	for (now = back; now < when; now++) {
		KUNIT_ASSERT_EQ(test, advance(test, now), 0U);
		KUNIT_ASSERT_LE(test, twheel_wheel_next(&r->w), when);
	}
	KUNIT_ASSERT_EQ(test, advance(test, when), 1U);
}

static void a_clock_set_back_from_any_tick_to_any_other(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	u64 tick, to, back;

	rig_make(test, &shape->config, 0, 1);
	for (tick = 0; tick < 24; tick++)
		for (to = 0; to < 24; to++)
			for (back = 0; back <= to; back++)
				rewind_case(test, tick, to, back);
}

static void what_is_inserted_after_a_rewind_comes_in_its_tick(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 1000, 8);
	u32 i;

	for (i = 0; i < 4; i++)
		insert(test, 1010 + i, i);
	twheel_wheel_rewind(&r->w, 900);
	for (i = 4; i < 8; i++)
		insert(test, 906 + i, i);
	KUNIT_EXPECT_EQ(test, advance(test, 909), 0U);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, advance(test, 910 + i), 1U);
	KUNIT_EXPECT_EQ(test, advance(test, 1009), 0U);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, advance(test, 1010 + i), 1U);
}

static void a_rewind_amidst_handing_out_loses_nothing(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 40);
	struct twheel_entry due[3];
	bool more;
	u32 i;

	/* In the hand, overdue, in level 0 and beyond it. */
	advance(test, 9);
	for (i = 0; i < 10; i++) {
		insert(test, 10, i);
		insert(test, 3, 10 + i);
		insert(test, 12, 20 + i);
		insert(test, 300, 30 + i);
	}
	KUNIT_ASSERT_EQ(test, twheel_wheel_advance(&r->w, 10, due, 3, &more), 3U);
	KUNIT_ASSERT_TRUE(test, more);
	while (r->w.overdue)
		KUNIT_ASSERT_GT(test, twheel_wheel_advance(&r->w, 10, due, 1,
							   &more), 0U);
	KUNIT_ASSERT_EQ(test, twheel_wheel_advance(&r->w, 10, due, 3, &more), 3U);
	KUNIT_ASSERT_NOT_NULL(test, r->w.hand);
	twheel_wheel_rewind(&r->w, 8);
	KUNIT_EXPECT_EQ(test, advance(test, 9), 0U);
	KUNIT_EXPECT_EQ(test, advance(test, 10), 7U);
	KUNIT_EXPECT_EQ(test, advance(test, 12), 10U);
	KUNIT_EXPECT_EQ(test, advance(test, 300), 10U);
}

/* Sweeps */

/* Put back what a sweep has brought up, of those below 32 the ones in @set only. */
static void keep(struct kunit *test, struct twheel_chunk *chunk, u32 set)
{
	struct rig *r = test->priv;
	u32 i, nr_left = 0;

	KUNIT_EXPECT_GT(test, chunk->nr, 0U);
	for (i = 0; i < chunk->nr; i++)
		if (chunk->entry[i].index >= 32 ||
		    set & BIT(chunk->entry[i].index))
			chunk->entry[nr_left++] = chunk->entry[i];
	chunk->nr = nr_left;
	twheel_wheel_put_back(&r->w, chunk);
}

static void a_sweep_brings_up_every_entry_and_ends(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 120);
	DECLARE_BITMAP(seen, 120) = {};
	struct twheel_chunk *chunk;
	unsigned int i, total = 0;

	for (i = 0; i < 120; i++)
		insert(test, i % 4 ? i % 50 : 2000 + i, i);
	twheel_wheel_sweep_begin(&r->w);
	while ((chunk = twheel_wheel_sweep(&r->w))) {
		/* Put back, some find room in a chunk that is yet to come. */
		total += chunk->nr;
		KUNIT_ASSERT_LE(test, total, 2U * 120);
		for (i = 0; i < chunk->nr; i++)
			__set_bit(chunk->entry[i].index, seen);
		keep(test, chunk, U32_MAX);
	}
	KUNIT_EXPECT_TRUE(test, bitmap_full(seen, 120));
	KUNIT_EXPECT_EQ(test, r->w.nr_entries, 120ULL);
	KUNIT_EXPECT_EQ(test, advance(test, 50), 90U);
	KUNIT_EXPECT_EQ(test, advance(test, 4000), 30U);
}

static void what_a_sweep_drops_never_comes(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 10);
	struct twheel_chunk *chunk;
	u32 i, set, drop;

	for (set = 1; set < BIT(10); set++) {
		drop = set * 0x55b & 0x3ff;
		rig_restart(test, r, 508);
		for (i = 0; i < 10; i++)
			if (set & BIT(i))
				insert(test, 508 + i, i);
		twheel_wheel_sweep_begin(&r->w);
		while ((chunk = twheel_wheel_sweep(&r->w)))
			keep(test, chunk, ~drop);
		expect_due(test, set & ~drop, 508, 530);
	}
}

static void a_sweep_beside_expiry_loses_nothing(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 200);
	struct twheel_chunk *chunk;
	unsigned int i, came = 0, steps = 0;

	for (i = 0; i < 200; i++)
		insert(test, i, i);
	twheel_wheel_sweep_begin(&r->w);
	while ((chunk = twheel_wheel_sweep(&r->w))) {
		keep(test, chunk, U32_MAX);
		came += advance(test, 3 * steps++);
	}
	KUNIT_EXPECT_EQ(test, came + advance(test, 200), 200U);
}

static void sweeping_an_empty_wheel_brings_up_nothing(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 1);

	KUNIT_EXPECT_NULL(test, twheel_wheel_sweep(&r->w));
	twheel_wheel_sweep_begin(&r->w);
	KUNIT_EXPECT_NULL(test, twheel_wheel_sweep(&r->w));
	KUNIT_EXPECT_NULL(test, twheel_wheel_sweep(&r->w));
}

/* The pool */

/* Spread @nr entries as wastefully as can be: one a slot, levels in turn. */
static void insert_spread(struct kunit *test, u32 nr)
{
	struct rig *r = test->priv;
	u64 base = r->w.cur;
	u32 i, l;

	for (i = 0; i < nr; i++) {
		l = i % r->w.nr_levels;
		insert(test, min(base + level_reach(r, l) -
				 level_span(r, l) * (i / r->w.nr_levels %
						     r->w.level[l].mask),
				 r->config.max_tick), i);
	}
}

static void the_promised_chunks_suffice_one_entry_a_slot(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	u32 nr = shape->config.slots > 1024 ? 3000 : 700;
	struct rig *r = rig_make(test, &shape->config, 0, nr);

	insert_spread(test, nr);
	KUNIT_EXPECT_EQ(test, r->w.nr_entries, (u64)nr);
	KUNIT_EXPECT_EQ(test, advance(test, shape->config.max_tick), nr);
}

/* Each number of entries there may be, with its chunks and none besides. */
static void the_promised_chunks_suffice_for_any_number(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	u32 nr;

	for (nr = 1; nr <= 60; nr += 1 + nr / 16) {
		struct rig *r = rig_make(test, &shape->config, 0, nr);
		u64 to = r->w.level[r->w.nr_levels - 1].mask;

		insert_spread(test, nr);
		advance(test, to);
		/* Those that came are followed by others. */
		insert_spread(test, nr - r->w.nr_entries);
		twheel_wheel_rewind(&r->w, to / 2);
		advance(test, to / 2);
		insert_spread(test, nr - r->w.nr_entries);
		KUNIT_ASSERT_EQ(test, r->w.nr_entries, (u64)nr);
		twheel_wheel_rewind(&r->w, 0);
		KUNIT_ASSERT_EQ(test, advance(test, 2 * shape->config.max_tick),
				nr);
		wheel_case_exit(test);
		test->priv = NULL;
	}
}

/* Every entry may have a slot to itself, and the last sum must not wrap. */
static void the_promise_grows_with_what_is_asked_for(struct kunit *test)
{
	static const u64 edges[] = {
		BIT_ULL(30), BIT_ULL(31), 3 * BIT_ULL(30), BIT_ULL(32), BIT_ULL(33),
	};
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 1);
	u64 nr, before = 0;
	int i, d;

	for (i = 0; i < ARRAY_SIZE(edges); i++) {
		for (d = -8; d <= 8; d++) {
			nr = twheel_wheel_pages_for(&r->w, edges[i] + d);
			KUNIT_EXPECT_GE(test, nr, before);
			KUNIT_EXPECT_GT(test, nr * TWHEEL_CHUNKS_PER_PAGE *
					TWHEEL_CHUNK_ENTRIES, edges[i] + d);
			before = nr;
		}
	}
}

static void a_page_taken_back_is_no_longer_the_wheels(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 3);
	struct twheel_chunk_page *page, *next;
	u32 nr = r->nr_pages;
	LIST_HEAD(taken);

	while ((page = twheel_wheel_take_back(&r->w))) {
		nr--;
		KUNIT_ASSERT_EQ(test, r->w.nr_free, nr * TWHEEL_CHUNKS_PER_PAGE);
		list_add(&page->node, &taken);
	}
	KUNIT_EXPECT_EQ(test, nr, 0U);
	list_for_each_entry_safe(page, next, &taken, node) {
		list_del(&page->node);
		twheel_wheel_give(&r->w, page);
	}
}

static u32 pages_in(const struct list_head *list)
{
	struct list_head *node;
	u32 nr = 0;

	list_for_each(node, list)
		nr++;
	return nr;
}

/* However they came to be in use, and free again. */
static void a_page_is_taken_back_when_none_of_its_chunks_is_in_use(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	const u32 nr = 8 * TWHEEL_CHUNKS_PER_PAGE * TWHEEL_CHUNK_ENTRIES;
	struct rig *r = rig_make(test, &shape->config, 0, nr);
	u32 i, in_use, spare;

	/* All of one tick: as many chunks as it takes, and no more. */
	for (i = 0; i < nr; i++)
		insert(test, 3, i);
	in_use = pages_in(&r->w.pages);
	KUNIT_EXPECT_EQ(test, in_use, 8U);
	/* One in the way, which came last. */
	insert(test, 3, nr);
	insert(test, 100, nr + 1);
	KUNIT_EXPECT_EQ(test, pages_in(&r->w.pages), 9U);
	KUNIT_EXPECT_EQ(test, advance(test, 50), nr + 1);
	KUNIT_EXPECT_EQ(test, pages_in(&r->w.pages), 1U);
	spare = pages_in(&r->w.spare);
	KUNIT_EXPECT_EQ(test, spare, r->nr_pages - 1);
	while (spare--) {
		struct twheel_chunk_page *page = twheel_wheel_take_back(&r->w);

		KUNIT_ASSERT_NOT_NULL(test, page);
		free_page((unsigned long)page);
		r->nr_pages--;
	}
	KUNIT_EXPECT_NULL(test, twheel_wheel_take_back(&r->w));
	KUNIT_EXPECT_EQ(test, advance(test, 100), 1U);
	KUNIT_EXPECT_TRUE(test, list_empty(&r->w.pages));
}

static void a_wheel_that_has_emptied_holds_no_chunk(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 0, 100);

	insert_spread(test, 100);
	KUNIT_EXPECT_LT(test, r->w.nr_free, rig_chunks(r));
	KUNIT_EXPECT_EQ(test, advance(test, shape->config.max_tick), 100U);
	rig_restart(test, r, 0);
}

/* The chunks are counted when a case ends. */
static void dismantling_gives_back_the_chunks_of_every_bag(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config, 50, 100);
	struct twheel_entry due[1];
	bool more;
	u32 i;

	for (i = 0; i < 20; i++) {
		insert(test, 50, i);
		insert(test, 10, 20 + i);
		insert(test, 500 + i, 40 + i);
	}
	while (r->w.overdue)
		twheel_wheel_advance(&r->w, 50, due, 1, &more);
	twheel_wheel_advance(&r->w, 50, due, 1, &more);
	KUNIT_ASSERT_NOT_NULL(test, r->w.hand);
	twheel_wheel_rewind(&r->w, 49);
	KUNIT_ASSERT_NOT_NULL(test, r->w.limbo);
	twheel_wheel_advance(&r->w, 50, due, 1, &more);
	insert(test, 60, 99);
}

static struct kunit_case wheel_cases[] = {
	KUNIT_CASE(there_are_as_many_levels_as_it_takes),
	KUNIT_CASE_PARAM(a_coarse_slot_spans_half_of_the_level_below,
			 shape_gen_params),
	KUNIT_CASE_PARAM(the_slots_fill_their_memory_exactly, shape_gen_params),
	KUNIT_CASE(an_entry_takes_little_more_than_18_bytes),
	KUNIT_CASE_PARAM(a_new_wheel_has_nothing_to_do_for_ever,
			 shape_gen_params),
	KUNIT_CASE_PARAM(deadlines_on_the_edge_of_a_level_come_in_their_tick,
			 shape_gen_params),
	KUNIT_CASE(the_farthest_deadline_comes_in_its_tick),
	KUNIT_CASE_PARAM(every_distance_from_every_tick_comes_in_its_tick,
			 small_gen_params),
	KUNIT_CASE_PARAM(every_set_of_ticks_comes_in_order_in_every_stride,
			 small_gen_params),
	KUNIT_CASE_PARAM(a_long_absence_costs_what_became_due_not_the_ticks,
			 shape_gen_params),
	KUNIT_CASE_PARAM(a_call_hands_out_one_tick_and_no_more_than_asked_for,
			 shape_gen_params),
	KUNIT_CASE_PARAM(what_has_gone_by_comes_at_the_next_call_and_first,
			 shape_gen_params),
	KUNIT_CASE_PARAM(a_clock_that_stands_or_goes_back_hands_out_nothing_new,
			 shape_gen_params),
	KUNIT_CASE_PARAM(next_is_exact_within_the_first_level, small_gen_params),
	KUNIT_CASE_PARAM(next_is_the_earliest_of_all_levels, shape_gen_params),
	KUNIT_CASE(a_coarse_slot_is_begun_three_quarters_of_a_span_ahead),
	KUNIT_CASE(a_full_coarse_slot_moves_down_a_step_a_tick),
	KUNIT_CASE(what_is_left_of_a_coarse_slot_moves_when_it_comes_due),
	KUNIT_CASE(an_entry_of_a_later_round_waits_in_its_slot),
	KUNIT_CASE(rounds_that_hold_nothing_due_are_skipped),
	KUNIT_CASE_PARAM(a_clock_set_back_from_any_tick_to_any_other,
			 small_gen_params),
	KUNIT_CASE_PARAM(what_is_inserted_after_a_rewind_comes_in_its_tick,
			 small_gen_params),
	KUNIT_CASE_PARAM(a_rewind_amidst_handing_out_loses_nothing,
			 small_gen_params),
	KUNIT_CASE_PARAM(a_sweep_brings_up_every_entry_and_ends, small_gen_params),
	KUNIT_CASE_PARAM(what_a_sweep_drops_never_comes, small_gen_params),
	KUNIT_CASE_PARAM(a_sweep_beside_expiry_loses_nothing, small_gen_params),
	KUNIT_CASE_PARAM(sweeping_an_empty_wheel_brings_up_nothing,
			 shape_gen_params),
	KUNIT_CASE_PARAM(the_promised_chunks_suffice_one_entry_a_slot,
			 shape_gen_params),
	KUNIT_CASE_PARAM(the_promised_chunks_suffice_for_any_number,
			 small_gen_params),
	KUNIT_CASE_PARAM(the_promise_grows_with_what_is_asked_for,
			 shape_gen_params),
	KUNIT_CASE_PARAM(a_page_taken_back_is_no_longer_the_wheels,
			 shape_gen_params),
	KUNIT_CASE_PARAM(a_page_is_taken_back_when_none_of_its_chunks_is_in_use,
			 shape_gen_params),
	KUNIT_CASE_PARAM(a_wheel_that_has_emptied_holds_no_chunk,
			 shape_gen_params),
	KUNIT_CASE_PARAM(dismantling_gives_back_the_chunks_of_every_bag,
			 small_gen_params),
	{}
};

static struct kunit_suite wheel_suite = {
	.name = "twheel_wheel",
	.exit = wheel_case_exit,
	.test_cases = wheel_cases,
};

kunit_test_suite(wheel_suite);

MODULE_DESCRIPTION("KUnit suites of twheel");
MODULE_LICENSE("GPL");

/* How many cases the sources have, see Kbuild: so many have to run. */
static int cases = KUNIT_CASES;
module_param(cases, int, 0444);
MODULE_PARM_DESC(cases, "Number of cases in the sources");
