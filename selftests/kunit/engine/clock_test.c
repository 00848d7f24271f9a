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

/* Expects the first tick that is not before the deadline. */
static void expect_rounded_up(struct kunit *test, u64 deadline_ns)
{
	struct twheel *tw = test->priv;
	u64 tick = deadline_tick(&tw->clock, deadline_ns);

	/* No product passes 2^64: neither a tick nor 2^63 does. */
	KUNIT_ASSERT_GE(test, tick * tw->clock.tick_ns, deadline_ns);
	if (tick)
		KUNIT_ASSERT_LT(test, (tick - 1) * tw->clock.tick_ns, deadline_ns);
	KUNIT_ASSERT_LT(test, tick, tw->clock.max_tick);
}

/* G1: rounding goes up, for every size of tick. */
static void a_deadline_is_rounded_up_to_its_tick(struct kunit *test)
{
	const u64 *tick_ns = test->param_value;
	u64 edge, last = div64_u64(TWHEEL_TIME_NEVER - 1, *tick_ns);
	unsigned int bit;

	wheel_with(test, tick_ns, *tick_ns);
	expect_rounded_up(test, 0);
	expect_rounded_up(test, 1);
	for (bit = 0; bit < 63; bit++) {
		edge = min(BIT_ULL(bit), last) * *tick_ns;
		expect_rounded_up(test, edge - 1);
		expect_rounded_up(test, edge);
		expect_rounded_up(test, min(edge + 1, TWHEEL_TIME_NEVER - 1));
	}
	expect_rounded_up(test, TWHEEL_TIME_NEVER - 1);
}

/* G1: a timeout that never expires has no tick. */
static void the_end_of_time_has_a_tick_that_no_clock_reaches(struct kunit *test)
{
	const u64 *tick_ns = test->param_value;
	struct twheel *tw;

	tw = wheel_with(test, tick_ns, *tick_ns);
	KUNIT_EXPECT_GT(test, tw->clock.max_tick,
			div64_u64(TWHEEL_TIME_NEVER, *tick_ns));
	KUNIT_EXPECT_EQ(test, deadline_tick(&tw->clock, TWHEEL_TIME_NEVER), tw->clock.max_tick);
	KUNIT_EXPECT_EQ(test, deadline_tick(&tw->clock, U64_MAX), tw->clock.max_tick);
	KUNIT_EXPECT_EQ(test, tick_edge_ns(&tw->clock, tw->clock.max_tick), WAKE_NEVER);
	KUNIT_EXPECT_EQ(test, tick_edge_ns(&tw->clock, tw->clock.max_tick - 1), WAKE_NEVER);
	/* The one before is a time that can be slept until. */
	KUNIT_EXPECT_EQ(test, tick_edge_ns(&tw->clock, tw->clock.max_tick - 2),
			(tw->clock.max_tick - 2) * *tick_ns);
	KUNIT_EXPECT_LE(test, tick_edge_ns(&tw->clock, tw->clock.max_tick - 2),
			TWHEEL_TIME_NEVER);
	KUNIT_EXPECT_EQ(test, tick_edge_ns(&tw->clock, 0), 0ULL);
	KUNIT_EXPECT_EQ(test, tick_edge_ns(&tw->clock, 1), *tick_ns);
}

/* G1: a timeout that never expires does not expire then, either. */
static void the_clock_may_stand_at_the_end_of_time(struct kunit *test)
{
	const u64 *tick_ns = test->param_value;
	struct twheel_arm last = {
		.expires_ns = TWHEEL_TIME_NEVER - 1, .flags = TWHEEL_ARM_ABSOLUTE,
	};
	struct twheel_arm never = {
		.expires_ns = TWHEEL_TIME_NEVER, .flags = TWHEEL_ARM_ABSOLUTE,
	};
	struct twheel *tw;

	tw = wheel_with(test, tick_ns, *tick_ns);
	arm(test, &never);
	arm(test, &last);
	pass(tw);
	KUNIT_EXPECT_FALSE(test, twheel_has_events(tw));
	tw->clock.virtual_now_ns = TWHEEL_TIME_NEVER;
	pass(tw);
	/* The tick of @last may end after time does; @never has none. */
	KUNIT_EXPECT_LE(test, tw->events.nr_unread, 1U);
	KUNIT_EXPECT_EQ(test, state_phase(timeout_state(look_at(tw, (u32)never.id))),
			PHASE_ARMED);
}

/* INFO shows no next expiry that no clock reaches. */
static void the_next_expiry_is_one_that_comes(struct kunit *test)
{
	const u64 *tick_ns = test->param_value;
	u64 deadline_ns, last_ns = TWHEEL_TIME_NEVER -
				   TWHEEL_TIME_NEVER % *tick_ns;
	const u64 deadlines_ns[] = {
		TWHEEL_TIME_NEVER, TWHEEL_TIME_NEVER - 1, last_ns + 1, last_ns,
		last_ns - 1, last_ns - *tick_ns,
	};
	struct twheel_info info = {};
	struct twheel *tw;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(deadlines_ns); i++) {
		tw = wheel_with(test, tick_ns, *tick_ns);
		deadline_ns = deadlines_ns[i];
		arm(test, &(struct twheel_arm) {
			.expires_ns = deadline_ns, .flags = TWHEEL_ARM_ABSOLUTE });
		pass(tw);
		twheel_get_info(tw, &info);
		tw->clock.virtual_now_ns = TWHEEL_TIME_NEVER;
		pass(tw);
		KUNIT_EXPECT_EQ_MSG(test, tw->events.nr_unread,
				    (u32)(info.next_expiry_ns <= TWHEEL_TIME_NEVER),
				    "%llu", deadline_ns);
		if (!tw->events.nr_unread)
			KUNIT_EXPECT_EQ(test, info.next_expiry_ns,
					TWHEEL_NO_EXPIRY);
		KUNIT_EXPECT_EQ(test, tw->events.nr_unread, (u32)(deadline_ns <= last_ns));
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
				    rows[i].sum, "%llu + %llu", rows[i].a,
				    rows[i].b);
}

static struct kunit_case clock_cases[] = {
	KUNIT_CASE_PARAM(a_deadline_is_rounded_up_to_its_tick, tick_gen_params),
	KUNIT_CASE_PARAM(the_end_of_time_has_a_tick_that_no_clock_reaches, tick_gen_params),
	KUNIT_CASE_PARAM(the_clock_may_stand_at_the_end_of_time, tick_gen_params),
	KUNIT_CASE_PARAM(the_next_expiry_is_one_that_comes, tick_gen_params),
	KUNIT_CASE(times_add_up_to_the_end_of_time_at_the_most),
	{}
};

ENGINE_SUITE(clock);
