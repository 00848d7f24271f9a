// SPDX-License-Identifier: GPL-2.0
/*
 * engine/life.h: what ARM and REARM make of the times that are asked for
 */

static void what_is_malformed_is_refused(struct kunit *test)
{
	static const struct { struct twheel_arm arm; int says; } rows[] = {
		{ {}, 0 },
		{ { .expires_ns = U64_MAX, .interval_ns = U64_MAX,
		    .flags = 3, .repeats = U32_MAX }, 0 },
		{ { .interval_ns = 1 }, 0 },
		{ { .flags = TWHEEL_ARM_ABSOLUTE }, 0 },
		{ { .flags = TWHEEL_ARM_FIXED_DELAY }, -EINVAL },
		{ { .flags = TWHEEL_ARM_FIXED_DELAY, .interval_ns = 1 }, 0 },
		{ { .repeats = 1 }, -EINVAL },
		{ { .repeats = 1, .interval_ns = 1 }, 0 },
		{ { .slack_ticks = 1 }, 0 },
		{ { .slack_ticks = U32_MAX, .interval_ns = 1 }, 0 },
		{ { .slack_ticks = 1, .repeats = 1 }, -EINVAL },
		{ { .slack_ticks = 1, .flags = TWHEEL_ARM_FIXED_DELAY }, -EINVAL },
	};
	struct twheel_arm unknown = { .interval_ns = 1 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ_MSG(test, life_check(&rows[i].arm, 0),
				    rows[i].says, "row %u", i);
	for (i = 2; i < 32; i++) {
		unknown.flags = BIT(i);
		KUNIT_EXPECT_EQ(test, life_check(&unknown, 0), -EINVAL);
	}
}

static void a_life_is_what_was_asked_for_within_bounds(struct kunit *test)
{
	const u64 now = START_NS, end = TWHEEL_TIME_NEVER;
	struct twheel *tw = test->priv;
	static const struct {
		struct twheel_arm arm;
		struct life life;
	} rows[] = {
		{ { .expires_ns = 5 }, { 0, now + 5, 0, 0 } },
		{ { .expires_ns = 0 }, { STATE_OVERDUE, now, 0, 0 } },
		{ { .expires_ns = end - now - 1 }, { 0, end - 1, 0, 0 } },
		{ { .expires_ns = end - now }, { 0, end, 0, 0 } },
		{ { .expires_ns = U64_MAX }, { 0, end, 0, 0 } },
		{ { .flags = 1 }, { STATE_OVERDUE, 0, 0, 0 } },
		{ { .flags = 1, .expires_ns = now }, { STATE_OVERDUE, now, 0, 0 } },
		{ { .flags = 1, .expires_ns = now + 1 }, { 0, now + 1, 0, 0 } },
		{ { .flags = 1, .expires_ns = end }, { 0, end, 0, 0 } },
		{ { .flags = 1, .expires_ns = U64_MAX }, { 0, end, 0, 0 } },
		{ { .expires_ns = 5, .interval_ns = 1 },
		  { PE, now + 5, TICK_NS, 0 } },
		{ { .expires_ns = 5, .interval_ns = TICK_NS },
		  { PE, now + 5, TICK_NS, 0 } },
		{ { .expires_ns = 5, .interval_ns = TICK_NS + 1 },
		  { PE, now + 5, TICK_NS + 1, 0 } },
		{ { .expires_ns = 5, .interval_ns = U64_MAX },
		  { PE, now + 5, end, 0 } },
		{ { .expires_ns = 5, .interval_ns = PERIOD_NS, .flags = 2 },
		  { FD, now + 5, PERIOD_NS, 0 } },
		{ { .expires_ns = 5, .interval_ns = PERIOD_NS, .repeats = 7 },
		  { LI, now + 5, PERIOD_NS, 7 } },
		{ { .flags = 3, .interval_ns = 1, .repeats = U32_MAX },
		  { FL | OV, 0, TICK_NS, U32_MAX } },
		{ { .expires_ns = 5, .slack_ticks = 1 }, { BIT(8), now + 5, 0, 0 } },
		{ { .flags = 1, .slack_ticks = 3 }, { BIT(9) | OV, 0, 0, 0 } },
		{ { .flags = 3, .interval_ns = 1, .repeats = 7, .slack_ticks = U32_MAX },
		  { FL | OV | GENMASK(11, 8), 0, TICK_NS, 7 } },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct life life = life_of(&tw->clock, &rows[i].arm, now);

		KUNIT_EXPECT_EQ_MSG(test, life.flags, rows[i].life.flags,
				    "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, life.deadline_ns,
				    rows[i].life.deadline_ns, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, life.interval_ns,
				    rows[i].life.interval_ns, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, life.repeats, rows[i].life.repeats,
				    "row %u", i);
	}
}

static struct kunit_case life_cases[] = {
	KUNIT_CASE(what_is_malformed_is_refused),
	KUNIT_CASE(a_life_is_what_was_asked_for_within_bounds),
	{}
};

ENGINE_SUITE(life);
