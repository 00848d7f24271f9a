// SPDX-License-Identifier: GPL-2.0
/*
 * engine/timeout.h: the word of a timeout, and its fields
 */

/* Generations and indices, some of which are about to carry. */
static const u32 gens[] = { 0, 1, 2, S32_MAX, BIT(31), U32_MAX - 1, U32_MAX };
static const u32 indices[] = { 0, 1, 83, 84, NR_INDICES / 2, NR_INDICES - 1 };
static const u64 states[] = { STATE_FREE, STATE_PENDING, STATE_UNREAD };

static void fields_of_the_word_stand_apart(struct kunit *test)
{
	unsigned int g, i, s;

	for (g = 0; g < ARRAY_SIZE(gens); g++) {
		for (i = 0; i < ARRAY_SIZE(indices); i++) {
			u64 id = (u64)gens[g] << 32 | indices[i];

			for (s = 0; s < ARRAY_SIZE(states); s++) {
				struct twheel_timeout t = { .word = id | states[s] };

				KUNIT_ASSERT_EQ(test, timeout_gen(&t), gens[g]);
				KUNIT_ASSERT_EQ(test, timeout_index(&t), indices[i]);
				KUNIT_ASSERT_EQ(test, state_of(&t), states[s]);
				KUNIT_ASSERT_EQ(test, timeout_id(&t), id);
				KUNIT_ASSERT_EQ(test, id_index(timeout_id(&t)), indices[i]);
			}
		}
	}
}

static void predicates_agree_with_the_states(struct kunit *test)
{
	unsigned int s, drained;

	for (s = 0; s < ARRAY_SIZE(states); s++) {
		for (drained = 0; drained < 2; drained++) {
			struct twheel_timeout t = {
				.word		= 77ULL << 32 | states[s] | 5,
				.fired_ns	= drained ? START_NS | FIRED_DRAINED : START_NS,
			};
			bool unread = states[s] == STATE_UNREAD;

			KUNIT_EXPECT_EQ(test, timeout_is_pending(&t), states[s] == STATE_PENDING);
			KUNIT_EXPECT_EQ(test, timeout_is_unread(&t), unread);
			KUNIT_EXPECT_EQ(test, timeout_is_live(&t), states[s] != STATE_FREE);
			KUNIT_EXPECT_EQ(test, timeout_is_drained(&t), unread && drained);
			KUNIT_EXPECT_EQ(test, timeout_count(&t), (u32)(unread && !drained));
			KUNIT_EXPECT_TRUE(test, timeout_ends(&t, 0));
		}
	}
}

/* One comparison with the present finds timeouts of the slow path, and those that are not due. */
static void a_deadline_of_a_slow_timeout_is_later_than_all_times(struct kunit *test)
{
	static const u64 deadlines_ns[] = {
		0, 1, START_NS, TWHEEL_TIME_NEVER - 1, TWHEEL_TIME_NEVER,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(deadlines_ns); i++) {
		struct twheel_timeout t = { .deadline_ns = deadlines_ns[i] };

		KUNIT_EXPECT_FALSE(test, timeout_has_extra(&t));
		KUNIT_EXPECT_EQ(test, timeout_known_ns(&t), deadlines_ns[i]);
		t.deadline_ns |= DEADLINE_EXTRA;
		KUNIT_EXPECT_TRUE(test, timeout_has_extra(&t));
		KUNIT_EXPECT_EQ(test, timeout_known_ns(&t), deadlines_ns[i]);
		KUNIT_EXPECT_GT(test, t.deadline_ns, TWHEEL_TIME_NEVER);
	}
}

/* Its deadline and its struct twheel_extra show the kind of a timeout. */
static void a_kind_of_timeout_is_found_again(struct kunit *test)
{
	static const u32 kinds[] = { 0, SL, PE, LI, FD, FD | LI, PE | SL, FD | LI | SL };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct twheel_timeout *t = arm_like(test, kinds[i]);
		struct twheel_page *page = timeout_page(t);
		const struct twheel_extra *x = &page->extra[t - page->timeout];

		KUNIT_EXPECT_EQ(test, timeout_has_extra(t), !!kinds[i]);
		KUNIT_EXPECT_EQ(test, timeout_is_periodic(t), !!(kinds[i] & PE));
		if (!kinds[i])
			continue;
		KUNIT_EXPECT_PTR_EQ(test, timeout_extra(t), x);
		KUNIT_EXPECT_EQ(test, !!(x->flags & EXTRA_FIXED_DELAY),
				!!(kinds[i] & IS_FIXED_DELAY));
		KUNIT_EXPECT_EQ(test, !!(x->flags & EXTRA_LIMITED), !!(kinds[i] & IS_LIMITED));
		KUNIT_EXPECT_EQ(test, slack_ticks(x->flags), kinds[i] & SL ? 1ULL : 0ULL);
	}
}

static struct kunit_case timeout_cases[] = {
	KUNIT_CASE(fields_of_the_word_stand_apart),
	KUNIT_CASE(predicates_agree_with_the_states),
	KUNIT_CASE(a_deadline_of_a_slow_timeout_is_later_than_all_times),
	KUNIT_CASE(a_kind_of_timeout_is_found_again),
	{}
};

ENGINE_SUITE(timeout);
