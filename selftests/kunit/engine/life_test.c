// SPDX-License-Identifier: GPL-2.0
/*
 * engine/time.h: the schedule that ARM and REARM make of the times that are asked for
 */

static void a_malformed_element_is_refused(struct kunit *test)
{
	static const struct { struct twheel_arm arm; u32 conditions; int says; } rows[] = {
		{ {}, 0, 0 },
		{ { .expires_ns = TWHEEL_TIME_NEVER, .interval_ns = TWHEEL_TIME_NEVER,
		    .flags = TWHEEL_ARM_ABSOLUTE | TWHEEL_ARM_FIXED_DELAY,
		    .repeats = U32_MAX }, 0, 0 },
		{ { .expires_ns = TWHEEL_TIME_NEVER + 1 }, 0, -EINVAL },
		{ { .expires_ns = -5 }, 0, -EINVAL },
		{ { .interval_ns = 1 }, 0, 0 },
		{ { .interval_ns = TWHEEL_TIME_NEVER + 1 }, 0, -EINVAL },
		{ { .flags = TWHEEL_ARM_ABSOLUTE }, 0, 0 },
		{ { .flags = TWHEEL_ARM_FIXED_DELAY }, 0, -EINVAL },
		{ { .flags = TWHEEL_ARM_FIXED_DELAY, .interval_ns = 1 }, 0, 0 },
		{ { .repeats = 1 }, 0, -EINVAL },
		{ { .repeats = 1, .interval_ns = 1 }, 0, 0 },
		{ { .slack_ticks = 1 }, 0, 0 },
		{ { .slack_ticks = 32767, .interval_ns = 1 }, 0, 0 },
		{ { .slack_ticks = 32768 }, 0, -EINVAL },
		{ { .slack_ticks = U32_MAX }, 0, -EINVAL },
		{ { .slack_ticks = 1, .repeats = 1 }, 0, -EINVAL },
		{ { .flags = TWHEEL_ARM_ONLY_LATER }, 0, -EINVAL },
		{ { .flags = TWHEEL_ARM_ONLY_LATER }, ARM_IF, -EINVAL },
		{ { .flags = TWHEEL_ARM_ONLY_LATER }, ARM_ONLY, 0 },
		{ { .flags = TWHEEL_ARM_ONLY_EARLIER }, ARM_ONLY, 0 },
		{ { .flags = ARM_ONLY }, ARM_ONLY, -EINVAL },
		{ { .flags = TWHEEL_ARM_IF_ABSENT }, ARM_ONLY, -EINVAL },
		{ { .flags = TWHEEL_ARM_IF_ABSENT }, ARM_IF | ARM_ONLY, 0 },
		{ { .flags = TWHEEL_ARM_IF_PRESENT }, ARM_IF | ARM_ONLY, 0 },
		{ { .flags = ARM_IF }, ARM_IF | ARM_ONLY, -EINVAL },
	};
	const u32 known = TWHEEL_ARM_ABSOLUTE | TWHEEL_ARM_FIXED_DELAY | ARM_IF | ARM_ONLY;
	struct twheel_arm unknown = { .interval_ns = 1 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ_MSG(test, arm_check(&rows[i].arm, rows[i].conditions, false),
				    rows[i].says, "row %u", i);
	for (i = 0; i < 32; i++) {
		unknown.flags = BIT(i);
		if (!(unknown.flags & known))
			KUNIT_EXPECT_EQ(test, arm_check(&unknown, ARM_IF | ARM_ONLY, false),
					-EINVAL);
	}
}

static void a_relative_deadline_is_refused_if_the_clock_can_be_set(struct kunit *test)
{
	struct twheel_arm arm = { .interval_ns = 1 };

	KUNIT_EXPECT_EQ(test, arm_check(&arm, 0, true), -EINVAL);
	KUNIT_EXPECT_EQ(test, arm_check(&arm, 0, false), 0);
	arm.flags = TWHEEL_ARM_ABSOLUTE;
	KUNIT_EXPECT_EQ(test, arm_check(&arm, 0, true), 0);
}

static void a_schedule_is_what_was_asked_for_within_bounds(struct kunit *test)
{
	const u64 now = START_NS, end = TWHEEL_TIME_NEVER;
	struct tw_ctx *tw = test->priv;
	static const struct {
		struct twheel_arm arm;
		u64 deadline_ns;
		struct twheel_extra extra;
	} rows[] = {
		{ { .expires_ns = 5 }, now + 5 },
		{ { .expires_ns = 0 }, now },
		{ { .expires_ns = end - now - 1 }, end - 1 },
		{ { .expires_ns = end - now }, end },
		{ { .expires_ns = end }, end },
		{ { .flags = 1 }, 0 },
		{ { .flags = 1, .expires_ns = now + 1 }, now + 1 },
		{ { .flags = 1, .expires_ns = end }, end },
		{ { .expires_ns = 5, .interval_ns = 1 }, now + 5, { .interval_ns = TICK_NS } },
		{ { .expires_ns = 5, .interval_ns = TICK_NS + 1 }, now + 5,
		  { .interval_ns = TICK_NS + 1 } },
		{ { .expires_ns = 5, .interval_ns = end }, now + 5, { .interval_ns = end } },
		{ { .expires_ns = 5, .interval_ns = PERIOD_NS, .flags = 2 }, now + 5,
		  { .interval_ns = PERIOD_NS, .flags = EXTRA_FIXED_DELAY } },
		{ { .expires_ns = 5, .interval_ns = PERIOD_NS, .repeats = 7 }, now + 5,
		  { .interval_ns = PERIOD_NS, .repeats_left = 7, .flags = EXTRA_LIMITED } },
		{ { .expires_ns = 5, .slack_ticks = 1 }, now + 5, { .flags = 1 << 8 } },
		{ { .flags = 3, .interval_ns = 1, .repeats = U32_MAX, .slack_ticks = 32767 }, 0,
		  { .interval_ns = TICK_NS, .repeats_left = U32_MAX,
		    .flags = EXTRA_LIMITED | EXTRA_FIXED_DELAY | 15 << 8 } },
	};
	struct twheel_timeout *t = arm_like(test, PE);
	struct twheel_timeout rest = *t;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		bool odd = rows[i].arm.interval_ns || rows[i].arm.slack_ticks;
		struct twheel_extra *x = timeout_extra(t);

		*x = (struct twheel_extra){ .deliveries = 9, .count = 9 };
		timeout_schedule(&tw->clock, t, &rows[i].arm, now);
		KUNIT_EXPECT_EQ_MSG(test, timeout_known_ns(t), rows[i].deadline_ns, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, timeout_has_extra(t), odd, "row %u", i);
		if (odd)
			KUNIT_EXPECT_EQ_MSG(test, memcmp(x, &rows[i].extra, sizeof(*x)), 0,
					    "row %u", i);
	}
	t->deadline_ns = rest.deadline_ns;
}

/* The slack is 2^k - 1 ticks, the greatest that is not above the one asked for. */
static void the_slack_of_a_schedule_is_within_what_was_asked_for(struct kunit *test)
{
	static const struct { u32 asked, k; } rows[] = {
		{ 0, 0 }, { 1, 1 }, { 2, 1 }, { 3, 2 }, { 6, 2 }, { 7, 3 },
		{ 16382, 13 }, { 16383, 14 }, { 32766, 14 }, { 32767, 15 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		u32 flags = slack_flags(rows[i].asked);

		KUNIT_EXPECT_EQ_MSG(test, flags, rows[i].k << 8, "row %u", i);
		KUNIT_EXPECT_EQ(test, slack_ticks(flags), (1ULL << rows[i].k) - 1);
	}
}

static struct kunit_case life_cases[] = {
	KUNIT_CASE(a_malformed_element_is_refused),
	KUNIT_CASE(a_relative_deadline_is_refused_if_the_clock_can_be_set),
	KUNIT_CASE(a_schedule_is_what_was_asked_for_within_bounds),
	KUNIT_CASE(the_slack_of_a_schedule_is_within_what_was_asked_for),
	{}
};

ENGINE_SUITE(life);
