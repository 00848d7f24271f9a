// SPDX-License-Identifier: GPL-2.0
/*
 * engine/shrink.c: pages of places are given back
 */

static void expect_little_is_left(struct kunit *test)
{
	struct twheel *tw = test->priv;

	KUNIT_EXPECT_LE(test, arena_size(&tw->arena),
			(u64)FREE_SLACK / 2 + PLACES_PER_PAGE);
}

static void pages_of_a_burst_are_given_back(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	unsigned int i;

	pass(tw);
	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	shrink(test);
	expect_little_is_left(test);
	audit(test);
	/* New pages come where others were freed. */
	arm_many(test, MAX_PENDING, NULL);
	audit(test);
}

static void pages_of_the_cancelled_young_are_given_back(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	unsigned int i;

	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	shrink(test);
	expect_little_is_left(test);
}

/* A caller that adds places holds the mutex, perhaps for long: the kthread tries again. */
static void pages_are_given_back_when_nobody_is_adding_any_more(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	u64 size = arena_size(&tw->arena);
	unsigned int i;

	pass(tw);
	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	mutex_lock(&tw->arena.mutex);
	for (i = 0; i < 100; i++)
		shrink_some(tw);
	mutex_unlock(&tw->arena.mutex);
	KUNIT_EXPECT_EQ(test, arena_size(&tw->arena), size);
	KUNIT_EXPECT_TRUE(test, tw->shrink.wanted);
	shrink(test);
	expect_little_is_left(test);
}

/* In every turn of that, max_pending timeouts may be armed. */
static void places_are_there_while_pages_are_looked_for(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 id, *ids = arm_all(test);
	u64 size = arena_size(&tw->arena);
	unsigned int i, nr = 0;
	bool more = true;

	pass(tw);
	for (i = 0; i < MAX_PENDING; i++)
		if (i * 7919U % 10 < 6)
			cancel(tw, ids[i]);
	fatal_signal_send();
	while (atomic_read(&tw->arena.live) < MAX_PENDING) {
		if (more && nr++ % 1000 == 0)
			more = shrink_some(tw);
		KUNIT_ASSERT_EQ(test, arm_result(tw, &id), 0);
	}
	fatal_signal_forget();
	work_take(tw);
	/* No page was free as a whole, and no place was missing. */
	KUNIT_EXPECT_EQ(test, arena_size(&tw->arena), size);
	shrink(test);
}

/*
 * A caller takes a place of the page after the page was picked and before all its places
 * are found.  The page is kept with all of them, and is looked at again when it is free.
 */
static void a_page_that_is_used_again_is_kept(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	u64 id, size = arena_size(&tw->arena);
	unsigned int i;

	pass(tw);
	/* The place that was freed last is used first, and the first pages are picked. */
	for (i = MAX_PENDING; i-- > 0;)
		cancel(tw, ids[i]);
	for (i = 0; i < 1000 && tw->shrink.step.phase <= SHRINK_PICKS; i++)
		shrink_some(tw);
	for (i = 0; i < 300; i++)
		KUNIT_ASSERT_EQ(test, arm_result(tw, &ids[i]), 0);
	while (shrink_some(tw))
		;
	rcu_barrier();
	KUNIT_EXPECT_TRUE(test, tw->shrink.step.in_vain);
	KUNIT_EXPECT_LT(test, arena_size(&tw->arena), size);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.live), 300);
	for (i = 0; i < 300; i++)
		KUNIT_ASSERT_EQ(test, cancel(tw, ids[i]), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, arm_result(tw, &id), 0);
	pass(tw);
	audit(test);
	shrink(test);
	expect_little_is_left(test);
}

/* Memory that RCU has yet to free is still there, and counts. */
static void memory_is_charged_until_it_is_free(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	long charged;
	unsigned int i;

	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	pass(tw);
	shrink_begin(tw);
	while (tw->shrink.step.phase != SHRINK_FREES)
		KUNIT_ASSERT_TRUE(test, shrink_step(tw));
	charged = atomic_long_read(&tw->memory.charged);
	rcu_read_lock();
	while (tw->shrink.step.phase == SHRINK_FREES)
		KUNIT_EXPECT_TRUE(test, shrink_step(tw));
	KUNIT_EXPECT_GT(test, tw->arena.nr_removed, 0UL);
	KUNIT_EXPECT_GT(test, atomic_read(&tw->arena.nr_leaving), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged), charged);
	rcu_read_unlock();
	rcu_barrier();
	shrink(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.nr_leaving), 0);
	KUNIT_EXPECT_LT(test, atomic_long_read(&tw->memory.charged), charged);
	expect_charged_for_all(test);
}

/* Pages come while others are given back. When these are free, they are looked for. */
static void a_burst_beside_giving_back_is_given_back_too(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	unsigned int i;

	for (i = 100; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	pass(tw);
	shrink_begin(tw);
	KUNIT_EXPECT_EQ(test, tw->shrink.below, 50U);
	while (tw->shrink.step.phase != SHRINK_FREES)
		KUNIT_ASSERT_TRUE(test, shrink_step(tw));
	mutex_lock(&tw->arena.mutex);
	KUNIT_ASSERT_EQ(test, arena_grow(tw), 0);
	mutex_unlock(&tw->arena.mutex);
	shrink(test);
	KUNIT_EXPECT_FALSE(test, tw->shrink.step.in_vain);
	KUNIT_EXPECT_EQ(test, tw->shrink.below, U32_MAX);
}

/* However much memory it had, and whatever that was used for. */
static void an_emptied_wheel_keeps_little(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int round, i;
	long before;
	u64 *ids;

	before = atomic_long_read(&tw->memory.charged);
	ids = arm_all(test);
	pass(tw);
	for (round = 0; round < 20; round++) {
		struct twheel_arm how = arm_of(0, 0);

		/* Each rearm leaves a stale entry in a slot of its own. */
		for (i = 0; i < 32; i++) {
			how.id = ids[i];
			how.expires_ns = (5000 - 200 * round) * TICK_NS + i * TICK_NS;
			rearm(tw, ids[i], &how);
		}
		pass(tw);
	}
	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	KUNIT_EXPECT_TRUE(test, tw->shrink.wanted);
	kthread_cancel_delayed_work_sync(&tw->shrink.work);
	do {
		shrink(test);
	} while (work_take(tw));
	KUNIT_EXPECT_LE(test, atomic_long_read(&tw->memory.charged),
			before + 10 * (long)PAGE_SIZE);
	KUNIT_EXPECT_FALSE(test, tw->shrink.wanted);
	expect_charged_for_all(test);
}

static struct kunit_case shrink_cases[] = {
	KUNIT_CASE(pages_of_a_burst_are_given_back),
	KUNIT_CASE(pages_of_the_cancelled_young_are_given_back),
	KUNIT_CASE(pages_are_given_back_when_nobody_is_adding_any_more),
	KUNIT_CASE(places_are_there_while_pages_are_looked_for),
	KUNIT_CASE(a_page_that_is_used_again_is_kept),
	KUNIT_CASE(memory_is_charged_until_it_is_free),
	KUNIT_CASE(a_burst_beside_giving_back_is_given_back_too),
	KUNIT_CASE(an_emptied_wheel_keeps_little),
	{}
};

ENGINE_SUITE(shrink);
