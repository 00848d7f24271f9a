// SPDX-License-Identifier: GPL-2.0
/*
 * engine/time.c and time.h: deadlines, ticks, and the end of time
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

/* Expect the first edge that is not before a time, and the last that is not after it. */
static void expect_edges(struct kunit *test, u64 ns)
{
	struct tw_ctx *tw = test->priv;
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

/* G1: if a deadline is before never_ns, a clock reaches its edge, and otherwise not. */
static void the_last_deadline_is_that_of_the_last_edge(struct kunit *test)
{
	const u64 *tick_ns = test->param_value;
	struct tw_ctx *tw = wheel_with(test, tick_ns, *tick_ns);
	u64 never_ns = tw->clock.never_ns;

	KUNIT_EXPECT_LE(test, never_ns, TWHEEL_TIME_NEVER);
	KUNIT_EXPECT_LE(test, edge_after_ns(&tw->clock, never_ns - 1), TWHEEL_TIME_NEVER);
	if (never_ns < TWHEEL_TIME_NEVER)
		KUNIT_EXPECT_GT(test, edge_after_ns(&tw->clock, never_ns), TWHEEL_TIME_NEVER);
}

/* G1: if a timeout never expires, it does not expire at the end of time, either. */
static void the_clock_may_stand_at_the_end_of_time(struct kunit *test)
{
	const u64 *tick_ns = test->param_value;
	struct tw_ctx *tw = wheel_with(test, tick_ns, *tick_ns);
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
	/* The same holds if it is armed then, or moved to then. */
	KUNIT_EXPECT_TRUE(test, timeout_is_pending(arm(test, &never)));
	KUNIT_EXPECT_EQ(test, rearm(tw, last.id, &never), TWHEEL_WAS_UNREAD);
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
}

/* INFO shows a next expiry if one comes, and only then. */
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
		struct tw_ctx *tw = wheel_with(test, tick_ns, *tick_ns);

		arm(test, &(struct twheel_arm) {
			.expires_ns = deadlines_ns[i], .flags = TWHEEL_ARM_ABSOLUTE });
		pass(tw);
		twheel_get_info(tw, &info);
		time_set(tw, TWHEEL_TIME_NEVER);
		pass(tw);
		KUNIT_EXPECT_EQ_MSG(test, nr_unread(tw),
				    (u32)(info.next_expiry_ns != TWHEEL_TIME_NEVER),
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
		KUNIT_EXPECT_EQ_MSG(test, ns_add(rows[i].a, rows[i].b),
				    rows[i].sum, "%llu + %llu", rows[i].a, rows[i].b);
}

static void a_grain_of_a_word_is_at_most_a_tick_and_more_than_half_of_one(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ticks_ns); i++) {
		struct tw_ctx *tw = wheel_with(test, tick_ns, ticks_ns[i]);
		u64 grain_ns = 1ULL << tw->words.shift;

		KUNIT_EXPECT_LE(test, grain_ns, ticks_ns[i]);
		KUNIT_EXPECT_GT(test, 2 * grain_ns, ticks_ns[i]);
	}
}

/* G1: a caller has read the clock, and the clock is set back before the caller has the lock. */
static void a_time_from_before_the_clock_was_set_back_has_not_passed(struct kunit *test)
{
	struct tw_ctx *tw = wheel_whose_clock_goes_back(test);
	struct twheel_call call = { .stride = sizeof(struct twheel_arm) };
	struct twheel_arm how = {
		.expires_ns = START_NS + 1000 * TICK_NS, .flags = TWHEEL_ARM_ABSOLUTE,
	};

	arm(test, &how);
	call.now_ns = START_NS + 8 * TICK_NS;
	time_set(tw, START_NS + 3 * TICK_NS);
	how.expires_ns = START_NS + 5 * TICK_NS;
	KUNIT_EXPECT_EQ(test, twheel_rearm_step(tw, to_user(how), 1, &call), 1);
	KUNIT_EXPECT_EQ(test, how.result, TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
	time_set(tw, START_NS + 5 * TICK_NS);
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 1U);
}

/*
 * G2: a wheel of one level has gone through a round, and would skip others after it. If the clock
 * is set back, but not behind the wheel's own time, the rounds that come again are not skipped.
 */
static void a_clock_that_is_set_back_within_a_round_is_followed(struct kunit *test)
{
	struct twheel_setup setup = usual_setup;
	struct twheel_timeout *t;
	u64 base_ns, round_ns, due_ns;
	struct tw_ctx *tw;
	unsigned int i;

	engine_case_exit(test);
	setup.clock = TWHEEL_CLOCK_REALTIME;
	setup.flags = TWHEEL_SETUP_ONE_LEVEL;
	setup.slots = 128;
	machine_real_ns = START_NS;
	machine_alarm = (struct machine_alarm){ .used = true };
	tw = wheel_make(test, &setup);
	round_ns = (tw->wheel.level[0].mask + 1ULL) << tw->wheel.level[0].shift;
	for (i = 0; i < 300; i++)
		arm(test, &(struct twheel_arm) {
			.expires_ns = START_NS + (3000 + i) * TICK_NS,
			.flags = TWHEEL_ARM_ABSOLUTE });
	time_set(tw, START_NS + 2000 * TICK_NS);
	/* The clock takes one step, which is less than a round. */
	twheel_lock(tw);
	KUNIT_EXPECT_TRUE(test, pass_step(tw));
	twheel_unlock(tw);
	base_ns = tw->wheel.base_ns;
	KUNIT_ASSERT_GT(test, base_ns, START_NS + 5 * TICK_NS);
	KUNIT_ASSERT_LT(test, base_ns, START_NS + 100 * TICK_NS);
	time_set(tw, base_ns + 2 * TICK_NS);
	pass(tw);
	/* Its slot has come up in this round, and comes up again some rounds later. */
	due_ns = base_ns + 7 * round_ns - 5 * TICK_NS;
	t = arm(test, &(struct twheel_arm) {
		.expires_ns = due_ns, .flags = TWHEEL_ARM_ABSOLUTE });
	for (i = 0; i < 1000 && !timeout_is_unread(t); i++) {
		KUNIT_ASSERT_TRUE(test, machine_alarm.is_on);
		time_set(tw, max(time_of(tw), machine_alarm.at_ns));
		pass(tw);
	}
	KUNIT_EXPECT_EQ(test, time_of(tw), edge_after_ns(&tw->clock, due_ns));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 1U);
}

static struct kunit_case clock_cases[] = {
	KUNIT_CASE_PARAM(a_deadline_is_rounded_up_to_the_edge_of_its_tick, tick_gen_params),
	KUNIT_CASE_PARAM(the_last_deadline_is_that_of_the_last_edge, tick_gen_params),
	KUNIT_CASE_PARAM(the_clock_may_stand_at_the_end_of_time, tick_gen_params),
	KUNIT_CASE_PARAM(the_next_expiry_is_one_that_comes, tick_gen_params),
	KUNIT_CASE(times_add_up_to_the_end_of_time_at_the_most),
	KUNIT_CASE(a_grain_of_a_word_is_at_most_a_tick_and_more_than_half_of_one),
	KUNIT_CASE(a_time_from_before_the_clock_was_set_back_has_not_passed),
	KUNIT_CASE(a_clock_that_is_set_back_within_a_round_is_followed),
	{}
};

ENGINE_SUITE(clock);
