// SPDX-License-Identifier: GPL-2.0
/*
 * The virtual clock, from 0 to the end of time: past every wrap of a counter of nanoseconds,
 * milliseconds or ticks, and past every edge of the wheel's levels.
 */
#include "soak.h"

#define JOBS		65536
#define RANDOM_JOBS	2000
#define RANDOM_ROUNDS	2500

/* Times at which something may go wrong, in nanoseconds. */
static __u64 point[4096];
static unsigned int nr_points;
/* Distances at the edges of levels, in nanoseconds. */
static __u64 span[256];
static unsigned int nr_spans;

static void add_point(unsigned __int128 ns)
{
	if (ns < TWHEEL_TIME_NEVER)
		point[nr_points++] = ns;
}

static int compare(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void sort_points(void)
{
	unsigned int i, nr = 0;

	qsort(point, nr_points, sizeof(point[0]), compare);
	for (i = 0; i < nr_points; i++) {
		if (!nr || point[i] != point[nr - 1])
			point[nr++] = point[i];
	}
	nr_points = nr;
}

/*
 * As in the table of twheel_wheel.c: level 0 has a slot per tick, each further one 256 slots, of
 * which one spans half of the range below.
 */
static void add_levels(__u64 tick_ns, __u32 slots)
{
	static const unsigned int multiple[] = { 1, 2, 3, 127, 128, 129, 255, 256, 257 };
	unsigned int i, shift = __builtin_ctz(slots) - 1;

	for (; shift < 63; shift += 7) {
		for (i = 0; i < ARRAY_SIZE(multiple); i++) {
			unsigned __int128 ns = (unsigned __int128)multiple[i] << shift;

			ns *= tick_ns;
			add_point(ns);
			if (ns < TWHEEL_TIME_NEVER)
				span[nr_spans++] = ns;
		}
		/* The wheel begins to move a slot down three quarters ahead. */
		add_point(((unsigned __int128)tick_ns << shift) / 4);
	}
}

static void find_points(const struct oracle *o)
{
	unsigned int i;

	nr_points = 0;
	nr_spans = 0;
	for (i = 0; i < 64; i++) {
		add_point((unsigned __int128)1 << i);
		add_point((unsigned __int128)TW_MS << i);
		add_point((unsigned __int128)TW_SEC << i);
		add_point((unsigned __int128)o->setup.tick_ns << i);
	}
	for (i = 1; i < 300; i++)
		add_point((unsigned __int128)i * 365 * TW_DAY);
	add_levels(o->setup.tick_ns, o->setup.slots);
	add_point(TWHEEL_TIME_NEVER - 1);
	sort_points();
}

static void forget(struct oracle *o, __u32 index)
{
	(void)o;
	(void)index;
}

/* If the number were greater, it would be refused. */
static __u64 until_the_end_ns(__u64 ns)
{
	return ns < TWHEEL_TIME_NEVER ? ns : TWHEEL_TIME_NEVER;
}

static void arm_at(struct oracle *o, __u32 *index, __u64 deadline_ns)
{
	const struct twheel_arm arm = {
		.flags = TWHEEL_ARM_ABSOLUTE,
		.expires_ns = until_the_end_ns(deadline_ns),
	};

	if (*index < o->nr_jobs)
		oracle_arm(o, (*index)++, arm);
}

/* Advance to a time, unless it has passed. */
static void go_to(struct oracle *o, __u64 to_ns)
{
	if (to_ns < o->now_ns || to_ns > TWHEEL_TIME_NEVER)
		return;
	oracle_advance(o, to_ns);
	oracle_flush(o);
	oracle_find_lost(o);
}

/* Timeouts around a point, by a tick and by a nanosecond. */
static void arm_around(struct oracle *o, __u32 *index, __u64 at_ns)
{
	__u64 tick_ns = o->setup.tick_ns;

	if (at_ns > tick_ns)
		arm_at(o, index, at_ns - tick_ns);
	arm_at(o, index, at_ns - 1);
	arm_at(o, index, at_ns);
	arm_at(o, index, at_ns + 1);
	arm_at(o, index, at_ns + tick_ns);
}

/* Arm all at the beginning, and let time go from edge to edge. */
static void walk_from_zero(struct oracle *o)
{
	__u64 tick_ns = o->setup.tick_ns;
	__u32 index = 0;
	unsigned int i;

	for (i = 0; i < nr_points; i++)
		arm_around(o, &index, point[i]);
	arm_at(o, &index, TWHEEL_TIME_NEVER);
	oracle_flush(o);
	for (i = 0; i < nr_points && !part_is_hopeless(); i++) {
		__u64 edge_ns = oracle_edge_ns(o, point[i]);

		go_to(o, edge_ns - tick_ns);
		go_to(o, edge_ns - 1);
		go_to(o, edge_ns);
		go_to(o, edge_ns + 1);
		go_to(o, edge_ns + tick_ns);
	}
	go_to(o, TWHEEL_TIME_NEVER);
	oracle_check_books(o);
}

/* At each point, arm timeouts at the range of each level. */
static void walk_with_spans(struct oracle *o)
{
	__u64 tick_ns = o->setup.tick_ns;
	unsigned int i, k;
	__u32 index = 0;

	for (i = 0; i < nr_points && !part_is_hopeless(); i++) {
		go_to(o, point[i] - random_below(3) * tick_ns);
		for (k = 0; k < nr_spans; k++)
			arm_at(o, &index, o->now_ns + span[k] - 1 + random_below(3));
		oracle_flush(o);
		go_to(o, point[i] + random_below(2) * tick_ns);
	}
	oracle_check_books(o);
	go_to(o, TWHEEL_TIME_NEVER);
	oracle_check_books(o);
}

static struct twheel_arm random_plan(const struct oracle *o)
{
	struct twheel_arm arm = { .expires_ns = random_scale(1, 1ULL << 62) };

	if (random_below(2))
		arm.interval_ns = random_scale(1, 1ULL << 62);
	if (arm.interval_ns && random_below(2))
		arm.repeats = random_scale(1, UINT32_MAX);
	if (arm.interval_ns && !random_below(8))
		arm.flags = TWHEEL_ARM_FIXED_DELAY;
	if (!random_below(4))
		arm.slack_ticks = random_scale(1, TWHEEL_SLACK_TICKS_MAX);
	if (random_below(2)) {
		arm.flags |= TWHEEL_ARM_ABSOLUTE;
		arm.expires_ns = until_the_end_ns(arm.expires_ns + o->now_ns);
	}
	if (!random_below(16) && o->now_ns) {
		arm.flags |= TWHEEL_ARM_ABSOLUTE;
		arm.expires_ns = o->now_ns - random_scale(1, o->now_ns);
	}
	return arm;
}

static void walk_at_random(struct oracle *o)
{
	unsigned int i, k;

	for (i = 0; i < RANDOM_ROUNDS && !part_is_hopeless(); i++) {
		for (k = 0; k < 16; k++) {
			__u32 index = random_below(o->nr_jobs);

			/* If timeouts were due when armed, they may or may not have come yet. */
			if (!o->job[index].live)
				oracle_arm(o, index, random_plan(o));
			else if (random_below(2))
				oracle_rearm(o, index, random_plan(o));
			else
				oracle_cancel(o, index);
			oracle_flush(o);
			if (o->job[index].overdue)
				go_to(o, o->now_ns);
		}
		/* Time gets there in the end, by shorter and shorter steps. */
		go_to(o, o->now_ns + random_scale(1, 1 + (TWHEEL_TIME_NEVER - o->now_ns) / 16));
		if (i % 16 == 0)
			oracle_check_books(o);
	}
	go_to(o, TWHEEL_TIME_NEVER - 1);
	oracle_check_books(o);
	go_to(o, TWHEEL_TIME_NEVER);
	oracle_check_books(o);
	oracle_drain(o);
}

static const struct twheel_setup shape[] = {
	{ .tick_ns = TW_MS, .slots = 1024 },
	{ .tick_ns = TW_MS, .slots = 4 },
	{ .tick_ns = TWHEEL_TICK_MIN_NS, .slots = 64 },
	{ .tick_ns = TWHEEL_TICK_MAX_NS, .slots = 16 },
	{ .tick_ns = 1 << 20, .slots = 256 },
	{ .tick_ns = 1234567, .slots = 8 },
	{ .tick_ns = 10 * TW_MS, .slots = TWHEEL_SLOTS_MAX },
	{ .tick_ns = TW_SEC, .slots = 256, .flags = TWHEEL_SETUP_ONE_LEVEL },
	{ .tick_ns = TWHEEL_ROUND_MIN_NS / 8, .slots = 8, .flags = TWHEEL_SETUP_ONE_LEVEL },
};

static const struct walk {
	void (*walk)(struct oracle *o);
	__u32 nr_jobs;
} walks[] = {
	{ walk_from_zero, JOBS },
	{ walk_with_spans, JOBS },
	{ walk_at_random, RANDOM_JOBS },
};

void soak_virtual(const struct soak_options *options)
{
	__u64 events = 0;
	unsigned int i, k;

	(void)options;
	part_begin("the_virtual_clock");
	for (i = 0; i < ARRAY_SIZE(shape) && !part_is_hopeless(); i++) {
		for (k = 0; k < ARRAY_SIZE(walks) && !part_is_hopeless(); k++) {
			struct oracle o = {
				.setup = shape[i],
				.in_order = true,
				.ended = forget,
			};

			o.setup.clock = TWHEEL_CLOCK_VIRTUAL;
			if (!oracle_open(&o, walks[k].nr_jobs))
				break;
			find_points(&o);
			walks[k].walk(&o);
			events += o.books.delivered;
			oracle_close(&o);
		}
	}
	printf("# %zu shapes, %u points in time for the last one, %llu events\n",
	       ARRAY_SIZE(shape), nr_points, events);
	part_end();
}
