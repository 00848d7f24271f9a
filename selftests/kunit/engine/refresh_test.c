// SPDX-License-Identifier: GPL-2.0
/*
 * engine/refresh.c: the pages of the refresh table
 */

/* The pages that there are by then are of use to the next caller of mmap(). */
static void a_fatal_signal_ends_making_a_large_table(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int i;
	u32 nr;

	arm_all(test);
	fatal_signal_send();
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), -EINTR);
	KUNIT_EXPECT_LT(test, tw->words.pages.nr, 3U);
	KUNIT_EXPECT_FALSE(test, tw->words.made);
	fatal_signal_forget();
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), 0);
	nr = DIV_ROUND_UP(arena_size(&tw->arena), WORDS_PER_PAGE);
	KUNIT_EXPECT_EQ(test, tw->words.pages.nr, nr);
	for (i = 0; i < MAX_PENDING; i++) {
		u64 word;

		rcu_read_lock();
		word = *word_at(&tw->words, i);
		rcu_read_unlock();
		KUNIT_ASSERT_EQ(test, word, 1ULL);
	}
	pass(tw);
}

/* Returns the page that users see in the refresh table at number @nr. */
static void *words_seen_by_users(struct twheel *tw, unsigned long nr)
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
	struct twheel *tw = test->priv;
	u32 nr, left = 0, nr_pages;
	unsigned int i;
	u64 *ids;

	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	ids = arm_all(test);
	nr_pages = tw->words.pages.nr;
	KUNIT_ASSERT_GT(test, nr_pages, 3U);
	for (nr = 0; nr < nr_pages; nr++)
		KUNIT_EXPECT_PTR_EQ(test, words_seen_by_users(tw, nr),
				    look_at_words(tw, nr));
	KUNIT_EXPECT_NULL(test, words_seen_by_users(tw, nr_pages));
	KUNIT_EXPECT_NULL(test, words_seen_by_users(tw, ULONG_MAX));
	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	pass(tw);
	shrink(test);
	flush_work(&tw->words.work);
	for (nr = 0; nr < nr_pages; nr++) {
		bool wanted;

		mutex_lock(&tw->arena.mutex);
		wanted = words_are_wanted(tw, nr);
		mutex_unlock(&tw->arena.mutex);
		KUNIT_EXPECT_EQ(test, wanted, !!look_at_words(tw, nr));
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
		KUNIT_EXPECT_NOT_NULL(test, look_at_words(tw, nr));
		KUNIT_EXPECT_PTR_EQ(test, words_seen_by_users(tw, nr),
				    look_at_words(tw, nr));
	}
	for (i = 0; i < MAX_PENDING; i++)
		KUNIT_ASSERT_EQ(test, *word_of(tw, ids[i]),
				ids[i] >> 32 & TWHEEL_REFRESH_GEN_MASK);
	expect_charged_for_all(test);
}

/* A fatal signal ended it. Then places come where there were none. */
static void a_table_that_was_not_finished_is_finished_later(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int i;
	u64 *ids;

	ids = arm_all(test);
	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	pass(tw);
	shrink(test);
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), 0);
	/* As if the signal had come at the last page. */
	tw->words.made = false;
	arm_many(test, MAX_PENDING, ids);
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), 0);
	for (i = 0; i < MAX_PENDING; i++)
		KUNIT_ASSERT_EQ(test, *word_of(tw, ids[i]),
				ids[i] >> 32 & TWHEEL_REFRESH_GEN_MASK);
}

static void a_table_that_cannot_be_finished_is_given_back(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	unsigned int i;
	long charged;

	charged = atomic_long_read(&tw->memory.charged);
	twheel_limit_memory(LONG_MAX, twheel_charged() + 8 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), -ENOSPC);
	KUNIT_EXPECT_GT(test, tw->words.pages.nr, 2U);
	flush_work(&tw->words.work);
	/* The table of pages stays, and the page that users see in place of these. */
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged),
			charged + 2 * (long)PAGE_SIZE);
	expect_charged_for_all(test);
	limits_init();
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), 0);
	for (i = 0; i < MAX_PENDING; i++)
		KUNIT_ASSERT_EQ(test, *word_of(tw, ids[i]),
				ids[i] >> 32 & TWHEEL_REFRESH_GEN_MASK);
	expect_charged_for_all(test);
}

static struct kunit_case refresh_cases[] = {
	KUNIT_CASE(a_fatal_signal_ends_making_a_large_table),
	KUNIT_CASE(words_go_with_their_places_and_come_again),
	KUNIT_CASE(a_table_that_was_not_finished_is_finished_later),
	KUNIT_CASE(a_table_that_cannot_be_finished_is_given_back),
	{}
};

ENGINE_SUITE(refresh);
