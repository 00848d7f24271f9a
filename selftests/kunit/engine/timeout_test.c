// SPDX-License-Identifier: GPL-2.0
/*
 * engine/timeout.h: the state word
 */

/* Generations and sequence numbers, some of which are about to carry. */
static const u32 gens[] = { 0, 1, 2, 0x7fffffff, 0x80000000, U32_MAX - 1, U32_MAX };
static const u32 seqs[] = { 0, 1, 0x7ffff, 0x80000, 0xffffe, 0xfffff };
/* Likewise for the slack, which is the rest of the flags. */
static const u32 slacks[] = { 0, 1, 8, 15 };

typedef void (*state_check)(struct kunit *test, u64 state, u32 gen, u32 seq);

/* Calls @check with every shape of the state word, beside some gens, seqs and slacks. */
static void check_all_states(struct kunit *test, state_check check)
{
	unsigned int g, s, shape, slack;

	for (g = 0; g < ARRAY_SIZE(gens); g++)
		for (s = 0; s < ARRAY_SIZE(seqs); s++)
			for (shape = 0; shape < BIT(8); shape++)
				for (slack = 0; slack < ARRAY_SIZE(slacks); slack++)
					check(test, state_of(gens[g], seqs[s],
							     slacks[slack] << 8 | shape),
					      gens[g], seqs[s]);
}

static void check_fields(struct kunit *test, u64 state, u32 gen, u32 seq)
{
	KUNIT_ASSERT_EQ(test, state_gen(state), gen);
	KUNIT_ASSERT_EQ(test, state_seq(state), seq);
	KUNIT_ASSERT_EQ(test, (u64)state_phase(state), state & 7);
}

static void the_fields_of_the_state_word_stand_apart(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, STATE_PHASE & STATE_FLAGS, 0ULL);
	KUNIT_EXPECT_EQ(test, (STATE_PHASE | STATE_FLAGS) & STATE_SEQ, 0ULL);
	KUNIT_EXPECT_EQ(test, STATE_SEQ & STATE_GEN, 0ULL);
	KUNIT_EXPECT_EQ(test, hweight64(STATE_SEQ), 20UL);
	check_all_states(test, check_fields);
}

static void check_next(struct kunit *test, u64 state, u32 gen, u32 seq)
{
	u64 flags = (state * 5) & STATE_FLAGS;

	KUNIT_ASSERT_EQ(test, state_next(state, PHASE_UNREAD, flags),
			state_of(gen, seq, PHASE_UNREAD | flags));
	KUNIT_ASSERT_EQ(test, state_new(state, flags),
			state_of(gen, seq, PHASE_NEW | flags));
	KUNIT_ASSERT_EQ(test, state_published(state),
			state_of(gen, seq, PHASE_QUEUED | (state & STATE_FLAGS)));
	KUNIT_ASSERT_EQ(test, state_requeued(state, flags),
			state_of(gen, seq, PHASE_QUEUED | flags));
	KUNIT_ASSERT_EQ(test, state_deferred(state, flags),
			state_of(gen, seq, PHASE_ARMED | flags));
	KUNIT_ASSERT_EQ(test, state_rearming(state),
			state_of(gen, seq, PHASE_REARMING));
	KUNIT_ASSERT_EQ(test, state_dead(state), state_of(gen, seq, PHASE_DEAD));
}

static void the_next_state_is_of_the_same_life(struct kunit *test)
{
	check_all_states(test, check_next);
}

/* Flags that outlive a change of phase, and those that do not. */
static void check_life(struct kunit *test, u64 state, u32 gen, u32 seq)
{
	u64 life = state & (BIT(4) | BIT(5) | BIT(6) | GENMASK(11, 8));

	KUNIT_ASSERT_EQ(test, state_unread(state),
			state_of(gen, seq, PHASE_UNREAD | life));
	KUNIT_ASSERT_EQ(test, state_drained(state),
			state_of(gen, seq, PHASE_UNREAD | life | BIT(3)));
	KUNIT_ASSERT_EQ(test, state_continued(state, false),
			state_of(gen, seq, PHASE_QUEUED | life));
	KUNIT_ASSERT_EQ(test, state_continued(state, true),
			state_of(gen, seq, PHASE_QUEUED | life | BIT(7)));
	KUNIT_ASSERT_EQ(test, state_not_overdue(state), state & ~BIT_ULL(7));
}

static void the_flags_of_a_life_last_as_long_as_it(struct kunit *test)
{
	check_all_states(test, check_life);
	KUNIT_EXPECT_EQ(test, flags_once(false), 0ULL);
	KUNIT_EXPECT_EQ(test, flags_once(true), BIT_ULL(7));
	KUNIT_EXPECT_EQ(test, flags_periodic(false, false, false), BIT_ULL(4));
	KUNIT_EXPECT_EQ(test, flags_periodic(true, false, false), BIT_ULL(4) | BIT_ULL(7));
	KUNIT_EXPECT_EQ(test, flags_periodic(false, true, false), BIT_ULL(4) | BIT_ULL(5));
	KUNIT_EXPECT_EQ(test, flags_periodic(false, false, true), BIT_ULL(4) | BIT_ULL(6));
}

/* The slack is 2^k - 1 ticks, the most that is within what was asked for. */
static void the_slack_of_a_life_is_within_what_was_asked_for(struct kunit *test)
{
	static const struct { u32 asked, k; } rows[] = {
		{ 0, 0 }, { 1, 1 }, { 2, 1 }, { 3, 2 }, { 6, 2 }, { 7, 3 },
		{ 16382, 13 }, { 16383, 14 }, { 32766, 14 }, { 32767, 15 }, { 32768, 15 },
		{ 65535, 15 }, { 0x7fffffff, 15 }, { 0x80000000, 15 }, { U32_MAX, 15 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		u64 flags = flags_slack(rows[i].asked);

		KUNIT_EXPECT_EQ_MSG(test, flags, (u64)rows[i].k << 8, "row %u", i);
		KUNIT_EXPECT_EQ(test, state_slack_ticks(flags), (1ULL << rows[i].k) - 1);
	}
}

static void check_placed(struct kunit *test, u64 state, u32 gen, u32 seq)
{
	KUNIT_ASSERT_EQ(test, state_placed(state),
			state_of(gen, seq == 0xfffff ? 0 : seq + 1,
				 PHASE_ARMED | (state & STATE_FLAGS)));
}

static void a_place_in_the_wheel_counts_the_sequence_number_up(struct kunit *test)
{
	check_all_states(test, check_placed);
}

static void check_freed(struct kunit *test, u64 state, u32 gen, u32 seq)
{
	KUNIT_ASSERT_EQ(test, state_freed(state),
			state_of(gen == U32_MAX ? 0 : gen + 1, seq, PHASE_FREE));
}

/* G8: the old id names nothing any more. */
static void freeing_counts_the_generation_up_and_clears_the_flags(struct kunit *test)
{
	check_all_states(test, check_freed);
}

static void check_cancelled(struct kunit *test, u64 state, u32 gen, u32 seq)
{
	u64 cancelled = state_cancelled(state);

	KUNIT_ASSERT_EQ(test, cancelled, state_of(gen == U32_MAX ? 0 : gen + 1, seq,
						  PHASE_FREE | BIT(3)));
	KUNIT_ASSERT_TRUE(test, state_has_entry(cancelled));
	KUNIT_ASSERT_EQ(test, state_without_entry(cancelled), state_freed(state));
}

static void cancelling_leaves_the_entry_to_the_place(struct kunit *test)
{
	check_all_states(test, check_cancelled);
}

static void check_predicates(struct kunit *test, u64 state, u32 gen, u32 seq)
{
	bool queued = (state & 7) == PHASE_QUEUED;
	bool armed = (state & 7) == PHASE_ARMED;
	bool unread = (state & 7) == PHASE_UNREAD;
	bool periodic = state & BIT(4), drained = state & BIT(3);

	KUNIT_ASSERT_EQ(test, state_is_pending(state), queued || armed);
	KUNIT_ASSERT_EQ(test, state_is_live(state), queued || armed || unread);
	KUNIT_ASSERT_EQ(test, state_is_free(state), (state & 7) == PHASE_FREE);
	KUNIT_ASSERT_EQ(test, state_is_new(state), (state & 7) == PHASE_NEW);
	KUNIT_ASSERT_EQ(test, state_has_entry(state), (state & 7) <= PHASE_NEW && drained);
	KUNIT_ASSERT_EQ(test, state_is_queued(state), queued);
	KUNIT_ASSERT_EQ(test, state_is_armed(state), armed);
	KUNIT_ASSERT_EQ(test, state_is_unread(state), unread);
	KUNIT_ASSERT_EQ(test, state_is_rearming(state), (state & 7) == PHASE_REARMING);
	KUNIT_ASSERT_EQ(test, state_is_plain_unread(state), unread && !periodic && !drained);
	KUNIT_ASSERT_EQ(test, state_is_periodic(state), periodic);
	KUNIT_ASSERT_EQ(test, state_is_fixed_delay(state), !!(state & BIT(5)));
	KUNIT_ASSERT_EQ(test, state_is_limited(state), !!(state & BIT(6)));
	KUNIT_ASSERT_EQ(test, state_is_overdue(state), !!(state & BIT(7)));
	KUNIT_ASSERT_EQ(test, state_is_drained(state), drained);
	KUNIT_ASSERT_EQ(test, state_has_slack(state), !!(state & GENMASK(11, 8)));
	KUNIT_ASSERT_EQ(test, state_slack_ticks(state), (1ULL << (state >> 8 & 15)) - 1);
	KUNIT_ASSERT_EQ(test, state_is_plain(state),
			!periodic && !(state & GENMASK(11, 8)));
	KUNIT_ASSERT_EQ(test, state_keeps_room(state),
			unread && periodic && !drained);
	KUNIT_ASSERT_EQ(test, state_verdict(state) == TWHEEL_WAS_UNREAD,
			unread);
}

static void the_predicates_agree_with_the_banner(struct kunit *test)
{
	check_all_states(test, check_predicates);
}

/* G3: of two threads that saw the same state, one changes it. */
static void a_change_is_made_from_the_state_seen_and_no_other(struct kunit *test)
{
	struct twheel_timeout t = {};
	u64 seen = state_of(5, 9, PHASE_ARMED | STATE_PERIODIC);
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		atomic64_set(&t.state, seen ^ BIT_ULL(bit));
		KUNIT_ASSERT_FALSE(test, state_change(&t, seen, 1));
		KUNIT_ASSERT_EQ(test, (u64)atomic64_read(&t.state),
				seen ^ BIT_ULL(bit));
	}
	atomic64_set(&t.state, seen);
	KUNIT_ASSERT_TRUE(test, state_change(&t, seen, 1));
	KUNIT_ASSERT_EQ(test, (u64)atomic64_read(&t.state), 1ULL);
}

static struct kunit_case timeout_cases[] = {
	KUNIT_CASE(the_fields_of_the_state_word_stand_apart),
	KUNIT_CASE(the_next_state_is_of_the_same_life),
	KUNIT_CASE(the_flags_of_a_life_last_as_long_as_it),
	KUNIT_CASE(the_slack_of_a_life_is_within_what_was_asked_for),
	KUNIT_CASE(a_place_in_the_wheel_counts_the_sequence_number_up),
	KUNIT_CASE(freeing_counts_the_generation_up_and_clears_the_flags),
	KUNIT_CASE(cancelling_leaves_the_entry_to_the_place),
	KUNIT_CASE(the_predicates_agree_with_the_banner),
	KUNIT_CASE(a_change_is_made_from_the_state_seen_and_no_other),
	{}
};

ENGINE_SUITE(timeout);
