// SPDX-License-Identifier: GPL-2.0
/*
 * The timing wheel in the kernel
 *
 * selftests/wheel tests the wheel in depth in userspace. Here it is built as it is shipped, with
 * the kernel's bitmaps and under its sanitizers, and small shapes are tested exhaustively.
 */
#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "twheel_wheel.h"

#define NR_ENTRIES	64

/**
 * struct shape - the shape of a wheel to test
 * @name: its name
 * @config: the shape
 */
struct shape {
	const char *name;
	struct twheel_wheel_config config;
};

static const struct shape shapes[] = {
	{ "smallest", { .tick_ns = 1024, .slots = 4 } },
	{ "smallest, odd tick", { .tick_ns = 1003, .slots = 4 } },
	{ "smallest of one level", { .tick_ns = 1024, .slots = 4, .one_level = true } },
	{ "one level, odd tick", { .tick_ns = 1337, .slots = 8, .one_level = true } },
	{ "usual", { .tick_ns = 1000000, .slots = 1024 } },
	{ "large", { .tick_ns = 1000, .slots = 1 << 14 } },
	{ "longest tick", { .tick_ns = 3600000000000ULL, .slots = 4 } },
};

static void shape_name(const struct shape *shape, char *name)
{
	strscpy(name, shape->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(shape, shapes, shape_name);

/**
 * struct entry - an entry of the wheel
 * @link: its link
 * @key_ns: its key
 * @came_ns: the edge of the tick in which it was due; 0 if it has not come
 */
struct entry {
	struct twheel_link link;
	u64 key_ns;
	u64 came_ns;
};

/**
 * struct rig - a wheel and its entries
 * @w: the wheel
 * @slots: its slots
 * @entry: the entries
 */
struct rig {
	struct twheel_wheel w;
	void *slots;
	struct entry entry[NR_ENTRIES];
};

static void rig_restart(struct rig *r, const struct twheel_wheel_config *config, u64 base_ns)
{
	memset(r->slots, 0, twheel_wheel_size(config));
	memset(r->entry, 0, sizeof(r->entry));
	twheel_wheel_init(&r->w, config, r->slots, base_ns);
}

static struct rig *rig_make(struct kunit *test, const struct twheel_wheel_config *config)
{
	struct rig *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	test->priv = r;
	/* Allocate exactly this much, so that KASAN sees an access beyond it. */
	r->slots = kvzalloc(twheel_wheel_size(config), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->slots);
	twheel_wheel_init(&r->w, config, r->slots, 0);
	return r;
}

static void wheel_case_exit(struct kunit *test)
{
	struct rig *r = test->priv;

	if (r)
		kvfree(r->slots);
	test->priv = NULL;
}

static void insert(struct rig *r, unsigned int i, u64 key_ns)
{
	r->entry[i].key_ns = key_ns;
	r->entry[i].came_ns = 0;
	twheel_wheel_insert(&r->w, &r->entry[i].link, key_ns);
}

static u64 edge_of(const struct rig *r, u64 key_ns)
{
	return DIV64_U64_ROUND_UP(key_ns, r->w.tick_ns) * r->w.tick_ns;
}

/* Turn the wheel, and note the entries that come. Return how many were visited. */
static unsigned int turn(struct kunit *test, struct rig *r, u64 until_ns)
{
	struct twheel_wheel *w = &r->w;
	unsigned int looks = 0;

	while (twheel_wheel_turn(w, until_ns)) {
		while (twheel_wheel_has_coming(w)) {
			struct entry *e = container_of(w->coming, struct entry, link);

			looks++;
			twheel_link_del(&e->link);
			if (e->key_ns <= w->base_ns) {
				KUNIT_ASSERT_EQ(test, e->came_ns, 0ULL);
				e->came_ns = edge_of(r, w->base_ns);
			} else {
				twheel_wheel_put_back(w, &e->link, e->key_ns);
			}
		}
	}
	KUNIT_ASSERT_GE(test, w->base_ns, until_ns);
	return looks;
}

static void slots_fill_their_memory_exactly(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config);
	void *end = r->slots;
	u32 i;

	for (i = 0; i < r->w.nr_levels; i++) {
		struct twheel_level *l = &r->w.level[i];

		KUNIT_EXPECT_PTR_EQ(test, (void *)l->slot, end);
		end += (l->mask + 1) * sizeof(l->slot[0]);
		KUNIT_EXPECT_PTR_EQ(test, (void *)l->occupied, end);
		end += BITS_TO_LONGS(l->mask + 1) * sizeof(long);
	}
	KUNIT_EXPECT_PTR_EQ(test, end, r->slots + twheel_wheel_size(&shape->config));
}

/* The entry is in the first level that reaches it. */
static void the_level_of_an_entry_goes_by_its_distance(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config);
	u32 bit, level;

	for (bit = 0; bit < 63; bit++) {
		level = r->w.level_of[bit];
		KUNIT_ASSERT_LT(test, level, r->w.nr_levels);
		if (level)
			KUNIT_EXPECT_GE(test, bit, r->w.level[level].shift);
		if (level + 1 < r->w.nr_levels)
			KUNIT_EXPECT_LT(test, bit, r->w.level[level + 1].shift);
	}
	for (level = 1; level < r->w.nr_levels; level++)
		KUNIT_EXPECT_EQ(test, 2ULL << r->w.level[level].shift,
				(r->w.level[level - 1].mask + 1ULL) <<
				r->w.level[level - 1].shift);
}

/*
 * G1, G2: the entry is alone in the wheel, at every distance near a power of two, from some bases.
 */
static void an_entry_of_any_distance_comes_at_its_edge(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config);
	u64 tick_ns = shape->config.tick_ns, base_ns, key_ns, edge_ns;
	u32 bit, most = shape->config.one_level ? 20 : 61;
	unsigned int b;
	s64 off;

	for (b = 0; b < 5; b++) {
		for (bit = 0; bit < most; bit++) {
			for (off = -2; off <= 2; off++) {
				base_ns = (b * b * 37) * tick_ns;
				key_ns = base_ns + BIT_ULL(bit) + off;
				edge_ns = edge_of(r, key_ns);
				if ((s64)(key_ns - base_ns) <= 0 || edge_ns >= BIT_ULL(62))
					continue;
				rig_restart(r, &shape->config, base_ns);
				insert(r, 0, key_ns);
				turn(test, r, edge_ns - tick_ns);
				KUNIT_ASSERT_EQ(test, r->entry[0].came_ns, 0ULL);
				turn(test, r, edge_ns);
				KUNIT_ASSERT_EQ_MSG(test, r->entry[0].came_ns, edge_ns,
						    "base %llu key %llu", base_ns, key_ns);
			}
		}
	}
}

/* There are many, in strides of all lengths, and slots are emptied ahead or not. */
static void entries_come_in_the_order_of_their_ticks_in_any_stride(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config);
	u64 tick_ns = shape->config.tick_ns, now_ns;
	unsigned int i, stride, left;

	for (stride = 1; stride < 40; stride = stride * 3 / 2 + 1) {
		rig_restart(r, &shape->config, 0);
		for (i = 0; i < NR_ENTRIES; i++)
			insert(r, i, 1 + (i * 37 % 200) * tick_ns + i % 3);
		left = NR_ENTRIES;
		for (now_ns = 0; left && now_ns < 300 * tick_ns; now_ns += stride * tick_ns) {
			struct twheel_link **slot;
			u32 level;

			turn(test, r, now_ns);
			for (i = 0, left = 0; i < NR_ENTRIES; i++) {
				struct entry *e = &r->entry[i];
				u64 edge_ns = edge_of(r, e->key_ns);

				left += !e->came_ns;
				KUNIT_ASSERT_EQ_MSG(test, e->came_ns,
						    edge_ns <= now_ns ? edge_ns : 0,
						    "key %llu at %llu", e->key_ns, now_ns);
			}
			slot = stride % 2 ? twheel_wheel_ahead(&r->w, &level) : NULL;
			while (slot && *slot != &r->w.end) {
				struct entry *e = container_of(*slot, struct entry, link);

				twheel_link_del(&e->link);
				twheel_wheel_move_down(&r->w, level, &e->link, e->key_ns);
			}
		}
		KUNIT_ASSERT_EQ(test, left, 0U);
		KUNIT_ASSERT_EQ(test, r->w.used, 0U);
	}
}

/*
 * G7: the number of ticks between does not matter, nor that of the rounds in which nothing is
 * due.
 */
static void a_long_absence_costs_the_entries_and_not_the_ticks(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config);
	u64 tick_ns = shape->config.tick_ns, far_ns = tick_ns << 16;
	unsigned int i, looks;

	for (i = 0; i < 8; i++)
		insert(r, i, far_ns + i);
	looks = turn(test, r, edge_of(r, far_ns + 8));
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, r->entry[i].came_ns, edge_of(r, far_ns + i));
	/* Each level is searched once, and a second time if a slot has two ticks. */
	KUNIT_EXPECT_LE(test, looks, 8U * (r->w.nr_levels + 3));
}

/* If a key is made later without the wheel, the entry comes once for that in its time. */
static void an_entry_whose_key_became_later_comes_at_the_edge_of_that(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config);
	u64 tick_ns = shape->config.tick_ns, edge_ns;
	unsigned int from, to;

	for (from = 1; from < 100; from += 9) {
		for (to = from; to < 3000; to = to * 2 + 1) {
			rig_restart(r, &shape->config, 0);
			insert(r, 0, from * tick_ns + 1);
			r->entry[0].key_ns = to * tick_ns + 1;
			edge_ns = edge_of(r, r->entry[0].key_ns);
			turn(test, r, edge_ns - tick_ns);
			KUNIT_ASSERT_EQ(test, r->entry[0].came_ns, 0ULL);
			turn(test, r, edge_ns);
			KUNIT_ASSERT_EQ(test, r->entry[0].came_ns, edge_ns);
		}
	}
}

/* G1: from any time to any other; no entry comes before its edge, or after it. */
static void a_wheel_that_is_set_back_brings_each_entry_at_its_edge(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config);
	u64 tick_ns = shape->config.tick_ns, now_ns;
	unsigned int at, to, i;

	for (at = 1; at < 200; at = at * 2 + 1) {
		for (to = 0; to < at; to += 1 + at / 7) {
			rig_restart(r, &shape->config, 0);
			turn(test, r, at * tick_ns);
			for (i = 0; i < 16; i++)
				insert(r, i, at * tick_ns + 1 + (i * i) * tick_ns);
			twheel_wheel_set_back(&r->w, to * tick_ns);
			/* Some keys are between the two. */
			for (; i < 24; i++)
				insert(r, i, to * tick_ns + 1 + (i - 16) * tick_ns);
			for (now_ns = to * tick_ns; now_ns <= (at + 230) * tick_ns;
			     now_ns += tick_ns) {
				turn(test, r, now_ns);
				for (i = 0; i < 24; i++) {
					u64 edge_ns = edge_of(r, r->entry[i].key_ns);

					KUNIT_ASSERT_EQ(test, r->entry[i].came_ns,
							edge_ns <= now_ns ? edge_ns : 0);
				}
			}
		}
	}
}

static void an_entry_leaves_its_list_wherever_it_stands(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct rig *r = rig_make(test, &shape->config);
	u64 tick_ns = shape->config.tick_ns;
	unsigned int out, i;

	for (out = 0; out < BIT(5); out++) {
		rig_restart(r, &shape->config, 0);
		for (i = 0; i < 5; i++)
			insert(r, i, 2 * tick_ns);
		for (i = 0; i < 5; i++)
			if (out & BIT(i))
				twheel_link_del(&r->entry[i].link);
		turn(test, r, 3 * tick_ns);
		for (i = 0; i < 5; i++)
			KUNIT_ASSERT_EQ(test, r->entry[i].came_ns,
					out & BIT(i) ? 0 : 2 * tick_ns);
		KUNIT_ASSERT_EQ(test, r->w.used, 0U);
	}
}

static struct kunit_case wheel_cases[] = {
	KUNIT_CASE_PARAM(slots_fill_their_memory_exactly, shape_gen_params),
	KUNIT_CASE_PARAM(the_level_of_an_entry_goes_by_its_distance, shape_gen_params),
	KUNIT_CASE_PARAM(an_entry_of_any_distance_comes_at_its_edge, shape_gen_params),
	KUNIT_CASE_PARAM(entries_come_in_the_order_of_their_ticks_in_any_stride,
			 shape_gen_params),
	KUNIT_CASE_PARAM(a_long_absence_costs_the_entries_and_not_the_ticks, shape_gen_params),
	KUNIT_CASE_PARAM(an_entry_whose_key_became_later_comes_at_the_edge_of_that,
			 shape_gen_params),
	KUNIT_CASE_PARAM(a_wheel_that_is_set_back_brings_each_entry_at_its_edge,
			 shape_gen_params),
	KUNIT_CASE_PARAM(an_entry_leaves_its_list_wherever_it_stands, shape_gen_params),
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

/* The number of cases in the sources, see Kbuild: so many have to run. */
static int cases = KUNIT_CASES;
module_param(cases, int, 0444);
MODULE_PARM_DESC(cases, "Number of cases in the sources");
