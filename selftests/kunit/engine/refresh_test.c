// SPDX-License-Identifier: GPL-2.0
/*
 * engine/refresh.c: the pages of the refresh table
 */

/* Return the word of a timeout that is armed when the table exists. */
static u64 fresh_word(struct tw_ctx *tw, u64 id)
{
	return timeout_known_ns(place_of(tw, (u32)id)) >> tw->words.shift <<
	       TWHEEL_REFRESH_GEN_BITS |
	       (id >> 32 & TWHEEL_REFRESH_GEN_MASK);
}

/* Return the word of a timeout that was armed before: the generation is an older one. */
static u64 late_word(u64 id)
{
	return ((id >> 32) - 1) & TWHEEL_REFRESH_GEN_MASK;
}

static u64 deadline_in_force(struct tw_ctx *tw, u64 id)
{
	u64 deadline_ns;

	twheel_lock(tw);
	deadline_ns = timeout_deadline_ns(&tw->words, place_of(tw, (u32)id));
	twheel_unlock(tw);
	return deadline_ns;
}

/* Write a word as users do. */
static void store(struct tw_ctx *tw, u64 id, u64 deadline_ns)
{
	u32 shift = tw->words.shift;

	*word_of(tw, id) = DIV_ROUND_UP_ULL(deadline_ns, 1ULL << shift) << TWHEEL_REFRESH_GEN_BITS |
			   (id >> 32 & TWHEEL_REFRESH_GEN_MASK);
}

/* The pages that exist by then serve the next caller of mmap(). */
static void a_fatal_signal_ends_making_a_large_table(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	unsigned int i;
	u32 nr;

	arm_all(test);
	fatal_signal_send();
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), -EINTR);
	KUNIT_EXPECT_LT(test, tw->words.pages.nr, 3U);
	KUNIT_EXPECT_FALSE(test, tw->words.made);
	fatal_signal_forget();
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), 0);
	nr = DIV_ROUND_UP(tw->places.pages.nr * PLACES_PER_PAGE, WORDS_PER_PAGE);
	KUNIT_EXPECT_EQ(test, tw->words.pages.nr, nr);
	for (i = 0; i < MAX_PENDING; i++) {
		u64 word;

		rcu_read_lock();
		word = *word_at(&tw->words, i);
		rcu_read_unlock();
		/* The word has the generation before that of the places. */
		KUNIT_ASSERT_EQ(test, word, 0ULL);
	}
	pass(tw);
}

/* Return the page that users see in the refresh table at number @nr. */
static void *words_seen_by_users(struct tw_ctx *tw, unsigned long nr)
{
	struct page *page = twheel_words_lock(tw, nr);
	void *words;

	if (!page)
		return NULL;
	words = page_address(page);
	unlock_page(page);
	put_page(page);
	return words;
}

/* G8: a new page of words has the generations of its places. */
static void words_go_with_their_places_and_come_again(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u32 nr, left = 0, nr_pages;
	unsigned int i;
	u64 *ids;

	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	ids = arm_all(test);
	nr_pages = tw->words.pages.nr;
	KUNIT_ASSERT_GT(test, nr_pages, 3U);
	for (nr = 0; nr < nr_pages; nr++)
		KUNIT_EXPECT_PTR_EQ(test, words_seen_by_users(tw, nr),
				    words_of_nr(tw, nr));
	KUNIT_EXPECT_NULL(test, words_seen_by_users(tw, nr_pages));
	KUNIT_EXPECT_NULL(test, words_seen_by_users(tw, ULONG_MAX));
	cancel_ids(tw, ids, MAX_PENDING);
	shrink(test);
	for (nr = 0; nr < nr_pages; nr++) {
		bool wanted;

		mutex_lock(&tw->places.mutex);
		wanted = words_are_wanted(tw, nr);
		mutex_unlock(&tw->places.mutex);
		KUNIT_EXPECT_EQ(test, wanted, !!words_of_nr(tw, nr));
		left += wanted;
		if (!wanted)
			KUNIT_EXPECT_PTR_EQ(test, words_seen_by_users(tw, nr),
					    tw->words.hole);
	}
	KUNIT_EXPECT_LT(test, left, nr_pages);
	/* The end stays where it was: a store through an old id raises no signal. */
	KUNIT_EXPECT_EQ(test, tw->words.pages.nr, nr_pages);
	expect_charged_for_all(test);

	arm_many(test, MAX_PENDING, ids);
	for (nr = 0; nr < nr_pages; nr++) {
		KUNIT_EXPECT_NOT_NULL(test, words_of_nr(tw, nr));
		KUNIT_EXPECT_PTR_EQ(test, words_seen_by_users(tw, nr),
				    words_of_nr(tw, nr));
	}
	for (i = 0; i < MAX_PENDING; i++)
		KUNIT_ASSERT_EQ(test, *word_of(tw, ids[i]), fresh_word(tw, ids[i]));
	expect_charged_for_all(test);
}

/* The page of places that stays has words in two pages. */
static void words_stay_with_the_only_page_of_places_that_has_any_there(struct kunit *test)
{
	const u32 nr = WORDS_PER_PAGE / PLACES_PER_PAGE;
	const u32 first = nr * PLACES_PER_PAGE, last = first + PLACES_PER_PAGE - 1;
	struct tw_ctx *tw = test->priv;
	unsigned int i;
	u64 *ids;

	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	KUNIT_ASSERT_LT(test, first / WORDS_PER_PAGE, last / WORDS_PER_PAGE);
	ids = arm_all(test);
	for (i = MAX_PENDING; i--;)
		if ((u32)ids[i] < first || (u32)ids[i] > last)
			cancel(tw, ids[i]);
	shrink(test);
	for (i = 0; i <= 2 * nr; i++)
		KUNIT_EXPECT_EQ(test, !!page_of_nr(tw, i), i == nr);
	KUNIT_EXPECT_NOT_NULL(test, words_of_nr(tw, first / WORDS_PER_PAGE));
	KUNIT_EXPECT_NOT_NULL(test, words_of_nr(tw, last / WORDS_PER_PAGE));
	KUNIT_EXPECT_NULL(test, words_of_nr(tw, last / WORDS_PER_PAGE + 1));
	for (i = 0; i < MAX_PENDING; i++)
		if ((u32)ids[i] >= first && (u32)ids[i] <= last && word_of(tw, ids[i]))
			KUNIT_ASSERT_EQ(test, *word_of(tw, ids[i]), fresh_word(tw, ids[i]));
	expect_charged_for_all(test);
}

/* A fatal signal has ended the making of a table, and then places are added that have no words. */
static void a_table_that_was_not_finished_is_finished_later(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	unsigned int i;
	u64 *ids;

	ids = arm_all(test);
	cancel_ids(tw, ids, MAX_PENDING);
	shrink(test);
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), 0);
	/* Pretend that the signal came at the last page. */
	tw->words.made = false;
	arm_many(test, MAX_PENDING, ids);
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), 0);
	for (i = 0; i < MAX_PENDING; i++) {
		KUNIT_ASSERT_NOT_NULL(test, word_of(tw, ids[i]));
		KUNIT_ASSERT_EQ(test, deadline_in_force(tw, ids[i]),
				timeout_known_ns(place_of(tw, (u32)ids[i])));
	}
}

/* Let the place of a timeout look as if it was used this often; return the new id. */
static u64 generation_set(struct tw_ctx *tw, u64 id, u32 gen)
{
	struct twheel_timeout *t = place_of(tw, (u32)id);

	t->word = (u64)gen << GEN_SHIFT | (u32)t->word;
	return timeout_id(t);
}

/*
 * A word of zeroes has the generation 0, as a place has after 2^28 uses. Its deadline, in 36 bits,
 * looks later than one beyond half of their range.
 */
static void a_table_that_is_not_finished_moves_nothing(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 *ids = arm_all(test);
	unsigned int i;

	for (i = 0; i < MAX_PENDING; i++)
		ids[i] = generation_set(tw, ids[i], BIT(28));
	memory_limit(LONG_MAX, twheel_charged() + 8 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), -ENOSPC);
	KUNIT_EXPECT_GT(test, tw->words.pages.nr, 2U);
	for (i = 0; i < MAX_PENDING; i++) {
		struct twheel_timeout *t = place_of(tw, (u32)ids[i]);
		u64 deadline_ns = (BIT_ULL(35) + 1) << tw->words.shift;

		swap(t->deadline_ns, deadline_ns);
		KUNIT_ASSERT_EQ(test, deadline_in_force(tw, ids[i]), t->deadline_ns);
		t->deadline_ns = deadline_ns;
	}
}

static void a_table_that_cannot_be_finished_is_given_back(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 *ids = arm_all(test);
	unsigned int i;
	long charged;

	charged = atomic_long_read(&tw->memory.charged);
	memory_limit(LONG_MAX, twheel_charged() + 8 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), -ENOSPC);
	KUNIT_EXPECT_GT(test, tw->words.pages.nr, 2U);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&tw->memory.shrink));
	KUNIT_EXPECT_EQ(test, work_delay, 0UL);
	shrink(test);
	/*
	 * The table of pages stays, and so does the page that users see in place of the missing
	 * ones.
	 */
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged),
			charged + 2 * (long)PAGE_SIZE);
	expect_charged_for_all(test);
	limits_apply();
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), 0);
	for (i = 0; i < MAX_PENDING; i++)
		KUNIT_ASSERT_EQ(test, *word_of(tw, ids[i]), late_word(ids[i]));
	expect_charged_for_all(test);
}

/*
 * If ARM has taken the place before there was a table, the word has an older generation: it does
 * not count, and a user may overwrite it.
 */
static void a_timeout_armed_before_the_table_is_made_keeps_its_deadline(struct kunit *test)
{
	struct arming arming = { .now_ns = START_NS };
	struct twheel_arm how = arm_of(0, 0);
	struct tw_ctx *tw = test->priv;
	u64 id, deadline_ns = START_NS + DELAY_NS;

	KUNIT_ASSERT_EQ(test, twheel_places_take(tw, 1, false, &arming.first), 0);
	arming.place = arming.first;
	id = timeout_id(arming.first);
	KUNIT_ASSERT_EQ(test, arm_begin(tw, &how, &arming), 0);
	arming.place = NULL;
	arming.nr = 1;
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), 0);
	twheel_lock(tw);
	arm_insert(tw, &arming);
	twheel_unlock(tw);
	KUNIT_EXPECT_EQ(test, *word_of(tw, id), late_word(id));
	KUNIT_EXPECT_EQ(test, deadline_in_force(tw, id), deadline_ns);
	store(tw, id, deadline_ns + PERIOD_NS);
	KUNIT_EXPECT_EQ(test, deadline_in_force(tw, id),
			round_up(deadline_ns + PERIOD_NS, 1ULL << tw->words.shift));
}

/* Timeouts with generations of all kinds, also those at which the 28 bits of a word wrap. */
static void a_timeout_of_any_generation_keeps_its_deadline_in_a_new_table(struct kunit *test)
{
	static const u32 generations[] = {
		1, 2, 65536, BIT(27), BIT(27) + 1, BIT(28) - 1, BIT(28), BIT(28) + 1, S32_MAX,
	};
	struct tw_ctx *tw = test->priv;
	unsigned int i;
	u64 ids[ARRAY_SIZE(generations)];

	arm_many(test, ARRAY_SIZE(generations), ids);
	for (i = 0; i < ARRAY_SIZE(generations); i++)
		ids[i] = generation_set(tw, ids[i], generations[i]);
	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	for (i = 0; i < ARRAY_SIZE(generations); i++) {
		u64 deadline_ns = place_of(tw, (u32)ids[i])->deadline_ns;

		KUNIT_EXPECT_EQ(test, *word_of(tw, ids[i]), late_word(ids[i]));
		KUNIT_EXPECT_EQ(test, deadline_in_force(tw, ids[i]), deadline_ns);
	}
	pass(tw);
}

/*
 * G8: a page comes with the number of an old one. If the word of a place has a near generation, the
 * place skips that one, and no more.
 */
static void a_place_passes_by_the_generation_of_its_word(struct kunit *test)
{
	static const struct {
		u32 ahead;
		u32 skipped;
	} cases[] = {
		{ 0, 1 }, { 1, 2 }, { 65535, 65536 }, { 65536, 0 }, { BIT(27), 0 },
		{ BIT(28) - 1, 0 }, { BIT(28) - 65536, 0 },
	};
	const u32 gen = 3 * BIT(28) - 100;	/* the bits of a word soon wrap */
	struct tw_ctx *tw = test->priv;
	unsigned int i;
	u32 highest = gen;
	u64 *ids;

	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	mutex_lock(&tw->places.mutex);
	KUNIT_EXPECT_EQ(test, words_add(tw, 0), 0);
	tw->places.first_gen = gen;
	mutex_unlock(&tw->places.mutex);
	for (i = 0; i < PLACES_PER_PAGE; i++)
		*word_of(tw, i) = 77ULL << TWHEEL_REFRESH_GEN_BITS |
				  ((gen + cases[i % ARRAY_SIZE(cases)].ahead) &
				   TWHEEL_REFRESH_GEN_MASK);
	ids = arm_all(test);
	for (i = 0; i < MAX_PENDING; i++) {
		u32 index = ids[i];

		if (index < PLACES_PER_PAGE)
			KUNIT_ASSERT_EQ(test, (u32)(ids[i] >> 32),
					gen + cases[index % ARRAY_SIZE(cases)].skipped);
		KUNIT_ASSERT_EQ(test, *word_of(tw, ids[i]), fresh_word(tw, ids[i]));
	}
	/* The pages that come after these begin at the highest generation of these. */
	for (i = 0; i < MAX_PENDING; i++)
		highest = max(highest, (u32)(ids[i] >> 32));
	cancel_backwards(tw, ids, MAX_PENDING);
	shrink(test);
	KUNIT_EXPECT_EQ(test, tw->places.first_gen, highest + 1);
}

/* If places have retired, others are needed instead, and those have words as well. */
static void users_can_map_the_words_of_more_places_than_there_may_be(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u32 i, nr = DIV_ROUND_UP(MAX_PENDING, PLACES_PER_PAGE) + 10;

	mutex_lock(&tw->places.mutex);
	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ(test, places_grow(tw), 0);
	mutex_unlock(&tw->places.mutex);
	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	KUNIT_EXPECT_LE(test, (u64)tw->words.pages.nr * PAGE_SIZE, twheel_refresh_size(tw));
}

/* G1, G8: a store counts if it is for this timeout, and later than the known deadline. */
static void a_store_counts_for_its_generation_and_only_to_later(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 id, deadline_ns, grain_ns, ns;
	unsigned int bit;

	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	grain_ns = 1ULL << tw->words.shift;
	KUNIT_ASSERT_EQ(test, arm_plain(tw, &id), 0);
	deadline_ns = START_NS + DELAY_NS;
	KUNIT_EXPECT_EQ(test, deadline_in_force(tw, id), deadline_ns);
	for (ns = deadline_ns - 3 * grain_ns; ns < deadline_ns + 5 * grain_ns; ns += grain_ns / 3) {
		store(tw, id, ns);
		KUNIT_ASSERT_EQ(test, deadline_in_force(tw, id),
				max(deadline_ns, round_up(ns, grain_ns)));
		KUNIT_ASSERT_GE(test, deadline_in_force(tw, id), ns);
	}
	for (bit = 0; bit < TWHEEL_REFRESH_GEN_BITS; bit++) {
		store(tw, id, deadline_ns + PERIOD_NS);
		*word_of(tw, id) ^= BIT_ULL(bit);
		KUNIT_ASSERT_EQ(test, deadline_in_force(tw, id), deadline_ns);
	}
	/* If a deadline is beyond the end of time, it is the end of time. */
	*word_of(tw, id) = fresh_word(tw, id) +
			   (BIT_ULL(35) - 1) * BIT_ULL(TWHEEL_REFRESH_GEN_BITS);
	KUNIT_EXPECT_LE(test, deadline_in_force(tw, id), TWHEEL_TIME_NEVER);
	KUNIT_EXPECT_GT(test, deadline_in_force(tw, id), deadline_ns);
	/* The event has the deadline that was in force. */
	store(tw, id, deadline_ns + PERIOD_NS);
	expire_at(tw, deadline_ns + PERIOD_NS - TICK_NS);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 0U);
	expire_at(tw, deadline_ns + PERIOD_NS + 2 * TICK_NS);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 1U);
	KUNIT_EXPECT_EQ(test, place_of(tw, (u32)id)->deadline_ns,
			round_up(deadline_ns + PERIOD_NS, grain_ns));
}

/* A word has 28 bits of a generation. */
static void a_store_counts_for_each_generation_that_has_the_same_28_bits(struct kunit *test)
{
	const u64 wrap = BIT_ULL(GEN_SHIFT + TWHEEL_REFRESH_GEN_BITS);
	u64 id, deadline_ns = START_NS + DELAY_NS;
	struct tw_ctx *tw = test->priv;

	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	KUNIT_ASSERT_EQ(test, arm_plain(tw, &id), 0);
	cancel(tw, id);
	place_of(tw, (u32)id)->word = (3 * wrap + GEN_ONE) | (u32)id;
	KUNIT_ASSERT_EQ(test, arm_plain(tw, &id), 0);
	KUNIT_ASSERT_GT(test, id, 3 * wrap);
	store(tw, id - wrap - GEN_ONE, deadline_ns + PERIOD_NS);
	KUNIT_EXPECT_EQ(test, deadline_in_force(tw, id), deadline_ns);
	store(tw, id - wrap, deadline_ns + PERIOD_NS);
	KUNIT_EXPECT_EQ(test, deadline_in_force(tw, id),
			round_up(deadline_ns + PERIOD_NS, 1ULL << tw->words.shift));
}

/* Each call that reads a deadline finds the one that was stored. */
static void every_call_goes_by_the_deadline_that_was_stored(struct kunit *test)
{
	struct twheel_arm how = { .expires_ns = 15 * TICK_NS };
	struct twheel_status status = {};
	struct tw_ctx *tw = test->priv;
	struct twheel_info info = { .flags = TWHEEL_INFO_WALK };
	struct twheel_event event;
	u64 id;

	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	KUNIT_ASSERT_EQ(test, arm_plain(tw, &id), 0);
	store(tw, id, START_NS + 20 * TICK_NS);
	status.id = id;
	twheel_query(tw, &status, 1, false);
	KUNIT_EXPECT_EQ(test, status.deadline_ns, deadline_in_force(tw, id));
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns,
			edge_after_ns(&tw->clock, deadline_in_force(tw, id)));
	how.flags = TWHEEL_ARM_ONLY_LATER;
	KUNIT_EXPECT_EQ(test, rearm(tw, id, &how), -ERANGE);
	how.flags = TWHEEL_ARM_ONLY_EARLIER;
	KUNIT_EXPECT_EQ(test, rearm(tw, id, &how), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, *word_of(tw, id), fresh_word(tw, id));
	KUNIT_EXPECT_EQ(test, deadline_in_force(tw, id), START_NS + 15 * TICK_NS);
	store(tw, id, START_NS + 20 * TICK_NS);
	drain(tw);
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_GE(test, event.deadline_ns, START_NS + 20 * TICK_NS);
	KUNIT_EXPECT_LT(test, event.deadline_ns, START_NS + 21 * TICK_NS);
}

/* If a refresh is found late, the slack is still there. */
static void a_refresh_keeps_the_slack(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 to;

	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	for (to = 2; to < 40; to++) {
		u64 base = round_up(time_of(tw) / TICK_NS, 16);
		struct twheel_arm how = {
			.flags = TWHEEL_ARM_ABSOLUTE, .slack_ticks = 15,
			.expires_ns = base * TICK_NS + 1,
		};
		struct twheel_timeout *t;

		time_set(tw, base * TICK_NS);
		t = arm(test, &how);
		store(tw, how.id, (base + to) * TICK_NS);
		/* The deadline is rounded up to a grain, which may be in the next tick. */
		KUNIT_ASSERT_EQ(test, tick_of_expiry(test, t),
				round_up(DIV_ROUND_UP_ULL(deadline_in_force(tw, how.id), TICK_NS),
					 16));
		KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	}
}

/*
 * G2: if the slot of a timeout was emptied ahead by a stored deadline, a REARM to an earlier time
 * finds the timeout.
 */
static void a_stored_deadline_is_known_once_the_timeout_was_put_elsewhere(struct kunit *test)
{
	struct twheel_arm how = { .expires_ns = 100 * TICK_NS };
	struct tw_ctx *tw = test->priv;
	struct twheel_level *upper = &tw->wheel.level[1];
	struct twheel_timeout *t;

	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	t = arm(test, &how);
	store(tw, how.id, START_NS + 5000 * TICK_NS);
	time_set(tw, twheel_slot_begin_ns(upper, START_NS + 100 * TICK_NS) - TICK_NS);
	step(tw);
	KUNIT_EXPECT_EQ(test, level_entries(test, 2), 1U);
	audit(test);
	rearm_to(tw, how.id, .expires_ns = START_NS + 200 * TICK_NS, .flags = TWHEEL_ARM_ABSOLUTE);
	audit(test);
	KUNIT_EXPECT_EQ(test, tick_of_expiry(test, t), START_NS / TICK_NS + 200);
}

/* The last grain is a deadline as any other, and one beyond it never comes. */
static void the_last_grain_of_time_can_be_stored(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 grain_ns = 1ULL << tw->words.shift, last_ns = TWHEEL_TIME_NEVER & ~(grain_ns - 1);
	struct twheel_arm how = {
		.expires_ns = last_ns - 10 * grain_ns, .flags = TWHEEL_ARM_ABSOLUTE,
	};

	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	arm(test, &how);
	store(tw, how.id, last_ns);
	KUNIT_EXPECT_EQ(test, deadline_in_force(tw, how.id), last_ns);
	store(tw, how.id, last_ns + grain_ns);
	KUNIT_EXPECT_EQ(test, deadline_in_force(tw, how.id), TWHEEL_TIME_NEVER);
}

/* Let another thread add the first page of words to this wheel. */
static struct tw_ctx *words_wheel;
static int words_say;

static void words_come(void)
{
	mutex_lock(&words_wheel->places.mutex);
	words_say = words_add(words_wheel, 0);
	mutex_unlock(&words_wheel->places.mutex);
}

/*
 * The fault has found no page, and then another thread adds a page of words. The case's exit checks
 * the reference.
 */
static void a_fault_that_finds_another_page_lets_go_of_the_first(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 *ids = arm_all(test);

	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	cancel_ids(tw, ids, MAX_PENDING);
	tw->words.made = false;
	shrink(test);
	tw->words.made = true;
	KUNIT_ASSERT_NULL(test, words_of_nr(tw, 0));
	words_wheel = tw;
	words_say = 1;
	lock_page_call = words_come;
	KUNIT_EXPECT_NOT_NULL(test, words_seen_by_users(tw, 0));
	KUNIT_EXPECT_EQ(test, words_say, 0);
	KUNIT_EXPECT_NOT_NULL(test, words_of_nr(tw, 0));
}

/* If no place needs a page, it goes, however many there are. */
static void words_of_a_large_burst_go(struct kunit *test)
{
	const unsigned int nr = (SHRINK_STEP + 6) * WORDS_PER_PAGE;
	struct tw_ctx *tw = wheel_with(test, max_pending, nr);
	u64 *ids = kvcalloc(nr, sizeof(*ids), GFP_KERNEL);
	u32 i, nr_unwanted = 0;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	arm_many(test, nr, ids);
	KUNIT_EXPECT_GT(test, tw->words.pages.nr, (u32)SHRINK_STEP);
	cancel_ids(tw, ids, nr);
	kvfree(ids);
	shrink(test);
	for (i = 0; i < tw->words.pages.nr; i++) {
		mutex_lock(&tw->places.mutex);
		nr_unwanted += words_of_nr(tw, i) && !words_are_wanted(tw, i);
		mutex_unlock(&tw->places.mutex);
	}
	KUNIT_EXPECT_EQ(test, nr_unwanted, 0U);
	expect_charged_for_all(test);
}

static void the_words_of_single_elements_are_written(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_arm how = arm_of(0, 0);
	struct twheel_timeout *t = arm_like(test, 0);

	KUNIT_ASSERT_EQ(test, cancel(tw, timeout_id(t)), TWHEEL_WAS_PENDING);
	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	KUNIT_ASSERT_TRUE(test, twheel_arm_plain(tw, to_user(how)));
	KUNIT_EXPECT_EQ(test, *word_of(tw, how.id), fresh_word(tw, how.id));
	how.expires_ns += PERIOD_NS;
	KUNIT_ASSERT_TRUE(test, twheel_rearm_plain(tw, to_user(how)));
	KUNIT_EXPECT_EQ(test, *word_of(tw, how.id), fresh_word(tw, how.id));
}

static struct kunit_case refresh_cases[] = {
	KUNIT_CASE(the_words_of_single_elements_are_written),
	KUNIT_CASE(a_fatal_signal_ends_making_a_large_table),
	KUNIT_CASE(words_go_with_their_places_and_come_again),
	KUNIT_CASE(words_stay_with_the_only_page_of_places_that_has_any_there),
	KUNIT_CASE(a_table_that_was_not_finished_is_finished_later),
	KUNIT_CASE(a_table_that_is_not_finished_moves_nothing),
	KUNIT_CASE(a_table_that_cannot_be_finished_is_given_back),
	KUNIT_CASE(a_timeout_armed_before_the_table_is_made_keeps_its_deadline),
	KUNIT_CASE(a_timeout_of_any_generation_keeps_its_deadline_in_a_new_table),
	KUNIT_CASE(a_place_passes_by_the_generation_of_its_word),
	KUNIT_CASE(users_can_map_the_words_of_more_places_than_there_may_be),
	KUNIT_CASE(a_store_counts_for_its_generation_and_only_to_later),
	KUNIT_CASE(a_store_counts_for_each_generation_that_has_the_same_28_bits),
	KUNIT_CASE(every_call_goes_by_the_deadline_that_was_stored),
	KUNIT_CASE(a_refresh_keeps_the_slack),
	KUNIT_CASE(a_stored_deadline_is_known_once_the_timeout_was_put_elsewhere),
	KUNIT_CASE(the_last_grain_of_time_can_be_stored),
	KUNIT_CASE(a_fault_that_finds_another_page_lets_go_of_the_first),
	KUNIT_CASE(words_of_a_large_burst_go),
	{}
};

ENGINE_SUITE(refresh);
