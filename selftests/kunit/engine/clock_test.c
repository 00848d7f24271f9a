// SPDX-License-Identifier: GPL-2.0
/*
 * engine/clock.c and clock.h: deadlines, ticks, and the end of time
 */

static const u64 ticks_ns[] = {
	TWHEEL_TICK_MIN_NS, 1001, 65537, TICK_NS, 4294967296ULL, 4294967297ULL,
	TWHEEL_TICK_MAX_NS,
};

static void tick_name(const u64 *tick_ns, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "tick of %llu ns", *tick_ns);
}

KUNIT_ARRAY_PARAM(tick, ticks_ns, tick_name);

/* Expects the first edge that is not before a time, and the last that is not after it. */
static void expect_edges(struct kunit *test, u64 ns)
{
	struct twheel *tw = test->priv;
	u64 after_ns = edge_after_ns(&tw->clock, ns), before_ns = edge_before_ns(&tw->clock, ns);

	KUNIT_ASSERT_EQ(test, deadline_tick(&tw->clock, ns) * tw->clock.tick_ns, after_ns);
	KUNIT_ASSERT_GE(test, after_ns, ns);
	KUNIT_ASSERT_LT(test, after_ns - ns, tw->clock.tick_ns);
	KUNIT_ASSERT_LE(test, before_ns, ns);
	KUNIT_ASSERT_LT(test, ns - before_ns, tw->clock.tick_ns);
	KUNIT_ASSERT_EQ(test, after_ns - before_ns, after_ns == ns ? 0 : tw->clock.tick_ns);
}

/* G1: rounding goes up, for every size of tick. */
static void a_deadline_is_rounded_up_to_the_edge_of_its_tick(struct kunit *test)
{
	const u64 *tick_ns = test->param_value;
	u64 edge, last = div64_u64(TWHEEL_TIME_NEVER - 1, *tick_ns);
	unsigned int bit;

	wheel_with(test, tick_ns, *tick_ns);
	expect_edges(test, 0);
	expect_edges(test, 1);
	for (bit = 0; bit < 63; bit++) {
		edge = min(BIT_ULL(bit), last) * *tick_ns;
		expect_edges(test, edge - 1);
		expect_edges(test, edge);
		expect_edges(test, min(edge + 1, TWHEEL_TIME_NEVER - 1));
	}
	expect_edges(test, TWHEEL_TIME_NEVER - 1);
}

/* G1: from never_ns on, and from nowhere before, a deadline has no edge that a clock reaches. */
static void the_last_deadline_is_that_of_the_last_edge(struct kunit *test)
{
	const u64 *tick_ns = test->param_value;
	struct twheel *tw = wheel_with(test, tick_ns, *tick_ns);
	u64 never_ns = tw->clock.never_ns;

	KUNIT_EXPECT_LE(test, never_ns, TWHEEL_TIME_NEVER);
	KUNIT_EXPECT_LE(test, edge_after_ns(&tw->clock, never_ns - 1), TWHEEL_TIME_NEVER);
	if (never_ns < TWHEEL_TIME_NEVER)
		KUNIT_EXPECT_GT(test, edge_after_ns(&tw->clock, never_ns), TWHEEL_TIME_NEVER);
}

/* G1: a timeout that never expires does not expire at the end of time, either. */
static void the_clock_may_stand_at_the_end_of_time(struct kunit *test)
{
	const u64 *tick_ns = test->param_value;
	struct twheel *tw = wheel_with(test, tick_ns, *tick_ns);
	struct twheel_arm never = {
		.expires_ns = TWHEEL_TIME_NEVER, .flags = TWHEEL_ARM_ABSOLUTE,
	};
	struct twheel_arm last = {
		.expires_ns = tw->clock.never_ns - 1, .flags = TWHEEL_ARM_ABSOLUTE,
	};
	struct twheel_timeout *t = arm(test, &never);

	arm(test, &last);
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
	time_set(tw, TWHEEL_TIME_NEVER);
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 1U);
	KUNIT_EXPECT_TRUE(test, timeout_is_pending(t));
	/* Nor if it is armed then, or moved to then. */
	KUNIT_EXPECT_TRUE(test, timeout_is_pending(arm(test, &never)));
	KUNIT_EXPECT_EQ(test, rearm(tw, last.id, &never), TWHEEL_WAS_UNREAD);
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
}

/* INFO shows a next expiry exactly if it comes. */
static void the_next_expiry_is_one_that_comes(struct kunit *test)
{
	const u64 *tick_ns = test->param_value;
	u64 last_ns = TWHEEL_TIME_NEVER - TWHEEL_TIME_NEVER % *tick_ns;
	const u64 deadlines_ns[] = {
		TWHEEL_TIME_NEVER, TWHEEL_TIME_NEVER - 1, last_ns + 1, last_ns,
		last_ns - 1, last_ns - *tick_ns,
	};
	struct twheel_info info = { .flags = TWHEEL_INFO_WALK };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(deadlines_ns); i++) {
		struct twheel *tw = wheel_with(test, tick_ns, *tick_ns);

		arm(test, &(struct twheel_arm) {
			.expires_ns = deadlines_ns[i], .flags = TWHEEL_ARM_ABSOLUTE });
		pass(tw);
		twheel_get_info(tw, &info);
		time_set(tw, TWHEEL_TIME_NEVER);
		pass(tw);
		KUNIT_EXPECT_EQ_MSG(test, nr_unread(tw),
				    (u32)(info.next_expiry_ns != TWHEEL_NO_EXPIRY),
				    "%llu", deadlines_ns[i]);
		KUNIT_EXPECT_EQ(test, nr_unread(tw), (u32)(deadlines_ns[i] <= last_ns &&
							   deadlines_ns[i] < TWHEEL_TIME_NEVER));
	}
}

static void times_add_up_to_the_end_of_time_at_the_most(struct kunit *test)
{
	const u64 end = TWHEEL_TIME_NEVER;
	static const struct { u64 a, b, sum; } rows[] = {
		{ 0, 0, 0 }, { 1, 2, 3 },
		{ end - 1, 0, end - 1 }, { 0, end - 1, end - 1 },
		{ end - 2, 1, end - 1 }, { end - 1, 1, end },
		{ end - 1, 2, end }, { 2, end - 1, end }, { end, 0, end },
		{ 0, end, end }, { end, end, end }, { U64_MAX, 0, end },
		{ 0, U64_MAX, end }, { U64_MAX, U64_MAX, end },
		{ 1, U64_MAX, end }, { end + 1, U64_MAX - end, end },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ_MSG(test, time_add(rows[i].a, rows[i].b),
				    rows[i].sum, "%llu + %llu", rows[i].a, rows[i].b);
}

static void a_grain_of_a_word_is_at_most_a_tick_and_more_than_half_of_one(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ticks_ns); i++) {
		struct twheel_clockwork clock = { .tick_ns = ticks_ns[i] };
		u64 grain_ns = 1ULL << clock_grain_shift(&clock);

		KUNIT_EXPECT_LE(test, grain_ns, ticks_ns[i]);
		KUNIT_EXPECT_GT(test, 2 * grain_ns, ticks_ns[i]);
	}
}

static struct kunit_case clock_cases[] = {
	KUNIT_CASE_PARAM(a_deadline_is_rounded_up_to_the_edge_of_its_tick, tick_gen_params),
	KUNIT_CASE_PARAM(the_last_deadline_is_that_of_the_last_edge, tick_gen_params),
	KUNIT_CASE_PARAM(the_clock_may_stand_at_the_end_of_time, tick_gen_params),
	KUNIT_CASE_PARAM(the_next_expiry_is_one_that_comes, tick_gen_params),
	KUNIT_CASE(times_add_up_to_the_end_of_time_at_the_most),
	KUNIT_CASE(a_grain_of_a_word_is_at_most_a_tick_and_more_than_half_of_one),
	{}
};

ENGINE_SUITE(clock);
