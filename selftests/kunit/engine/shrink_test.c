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
	/* It does not have to wait until half of what lives has ended. */
	KUNIT_EXPECT_EQ(test, tw->shrink.below, U32_MAX);
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

struct late_page {
	struct delayed_work work;
	struct twheel_page *page;
};

static void late_page_frees(struct work_struct *work)
{
	struct late_page *late = container_of(to_delayed_work(work), struct late_page, work);

	pages_free_rcu(page_rcu(late->page));
}

/* The last close waits for a page that RCU still has, and takes its charge back once. */
static void a_wheel_is_closed_before_its_memory_is_free(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct late_page late;

	KUNIT_ASSERT_EQ(test, twheel_page_get(&tw->memory, (void **)&late.page), 0);
	late.page->timeout[1].user_data = (unsigned long)tw;
	atomic_inc(&tw->arena.nr_leaving);
	INIT_DELAYED_WORK_ONSTACK(&late.work, late_page_frees);
	schedule_delayed_work(&late.work, HZ / 5);
	wheel_remake(test, &usual_setup);
	flush_delayed_work(&late.work);
	destroy_delayed_work_on_stack(&late.work);
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

static unsigned int chain_length(const struct chain *chain)
{
	unsigned int nr = chain->nr ? 1 : 0;
	struct llist_node *node;

	for (node = chain->first; chain->nr && node != chain->last; node = node->next)
		nr++;
	return nr;
}

/*
 * Every free place is in one of these while pages are given back: on the free list, put
 * aside, or kept back with its page.  Between the two, the number of holes says how many
 * pages are missing in the table.
 */
static void audit_places(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct census census = census_take(tw);
	unsigned int nr_kept = 0, nr_picked = 0, nr_holes = 0;
	struct twheel_page *page;
	u32 nr;

	for (nr = 0; nr < tw->arena.places.nr; nr++) {
		page = look_at_page(tw, nr);
		if (!page) {
			nr_holes++;
			KUNIT_ASSERT_GE(test, nr, tw->arena.first_hole);
		} else if (page->picked) {
			nr_picked += page->nr_found < PLACES_PER_PAGE;
			nr_kept += page->nr_found;
		}
	}
	KUNIT_ASSERT_EQ(test, nr_holes, tw->arena.nr_holes);
	KUNIT_ASSERT_EQ(test, nr_picked, tw->shrink.step.nr_picked);
	KUNIT_ASSERT_EQ(test, chain_length(&tw->arena.sifted), tw->arena.sifted.nr);
	KUNIT_ASSERT_EQ(test, census.phase[PHASE_FREE] - census.retired,
			llist_length(tw->arena.free) + llist_length(tw->arena.freed.first) +
			(int)tw->arena.sifted.nr + (int)nr_kept);
}

/* Arms a burst, and cancels all but the first @nr of it.  Returns the ids. */
static u64 *burst_but(struct kunit *test, unsigned int nr)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	unsigned int i;

	pass(tw);
	for (i = nr; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	/* The sweep that comes first is not the matter here. */
	do {
		pass(tw);
	} while (work_take(tw));
	kthread_cancel_delayed_work_sync(&tw->shrink.work);
	return ids;
}

static void no_place_is_lost_in_any_step(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int i, nr = 0, reached = 0;
	u64 *ids = burst_but(test, 300);
	u64 id;

	shrink_begin(tw);
	/* In each step a place is taken, and in every other one given back elsewhere. */
	for (i = 300; tw->shrink.step.phase != SHRINK_NOTHING; i++) {
		reached |= BIT(tw->shrink.step.phase);
		KUNIT_ASSERT_TRUE(test, shrink_step(tw));
		if (i % 9 == 0) {
			audit_places(test);
			KUNIT_ASSERT_EQ(test, arm_result(tw, &id), 0);
			if (i % 2)
				KUNIT_ASSERT_EQ(test, cancel(tw, ids[nr++]),
						TWHEEL_WAS_PENDING);
			audit_places(test);
		}
		KUNIT_ASSERT_LT(test, i, 10000U);
	}
	KUNIT_EXPECT_EQ(test, reached, BIT(SHRINK_PICKS) | BIT(SHRINK_SIFTS) |
			BIT(SHRINK_FREES) | BIT(SHRINK_SETTLES));
	audit_places(test);
	shrink_end(tw);
	KUNIT_EXPECT_EQ(test, tw->arena.sifted.nr, 0U);
	/* All that was picked was freed or released. */
	for (i = 0; i < tw->arena.places.nr; i++) {
		struct twheel_page *page = look_at_page(tw, i);

		KUNIT_ASSERT_FALSE(test, page && page->picked);
	}
	rcu_barrier();
	pass(tw);
	audit(test);
	expect_charged_for_all(test);
	while (atomic_read(&tw->arena.live) < MAX_PENDING)
		KUNIT_ASSERT_EQ(test, arm_result(tw, &id), 0);
	/* No page more than so many need was added. */
	KUNIT_EXPECT_LE(test, arena_size(&tw->arena), (u64)MAX_PENDING + FREE_SLACK);
}

/* Who takes places while others are sifted gets those that were put aside. */
static void no_page_is_added_while_sifted_places_are_free(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = burst_but(test, 300), id, size;
	unsigned int i, nr;

	shrink_begin(tw);
	for (i = 0; (tw->arena.free || !llist_empty(&tw->arena.freed)) && i < 10000; i++)
		KUNIT_ASSERT_TRUE(test, shrink_step(tw));
	nr = tw->arena.sifted.nr;
	KUNIT_ASSERT_GT(test, nr, 0U);
	size = arena_size(&tw->arena);
	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_EQ(test, arm_result(tw, &id), 0);
	KUNIT_EXPECT_EQ(test, arena_size(&tw->arena), size);
	audit_places(test);
	for (i = 0; tw->shrink.step.phase != SHRINK_NOTHING && i < 10000; i++)
		KUNIT_ASSERT_TRUE(test, shrink_step(tw));
	shrink_end(tw);
	rcu_barrier();
	pass(tw);
	audit(test);
	kunit_kfree(test, ids);
}

/*
 * Places that come back while others are sifted are not sifted again without end, though
 * a picked page whose place is in use is never found.
 */
static void sifting_ends_though_places_come_back(struct kunit *test)
{
	const unsigned int deep = 2000;
	u64 *ids = kunit_kcalloc(test, deep, sizeof(*ids), GFP_KERNEL);
	struct twheel *tw = test->priv;
	unsigned int i, nr = 0;
	u64 size;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	burst_but(test, 300);
	shrink_begin(tw);
	size = tw->shrink.step.nr_left;
	KUNIT_EXPECT_EQ(test, size, arena_size(&tw->arena));
	while (tw->shrink.step.phase == SHRINK_PICKS)
		shrink_step(tw);
	/* The pages that were freed last are not picked. */
	arm_many(test, deep, ids);
	for (i = 0; i < deep - 1; i++)
		KUNIT_ASSERT_EQ(test, cancel(tw, ids[i]), TWHEEL_WAS_PENDING);
	KUNIT_ASSERT_TRUE(test, timeout_page(look_at(tw, (u32)ids[deep - 1]))->picked);
	enter(tw);
	while (tw->shrink.step.phase == SHRINK_SIFTS) {
		arm_many(test, SHRINK_STEP, ids);
		for (i = 0; i < SHRINK_STEP; i++)
			KUNIT_ASSERT_EQ(test, cancel(tw, ids[i]), TWHEEL_WAS_PENDING);
		enter(tw);
		shrink_step(tw);
		KUNIT_ASSERT_LE(test, ++nr, (unsigned int)size / SHRINK_STEP + 1);
	}
	while (tw->shrink.step.phase != SHRINK_NOTHING) {
		shrink_step(tw);
		audit_places(test);
	}
	shrink_end(tw);
	rcu_barrier();
	kthread_cancel_delayed_work_sync(&tw->shrink.work);
	pass(tw);
}

/* What stays free is half of what lives, and a little. */
static void half_as_many_places_again_as_live_stay(struct kunit *test)
{
	static const unsigned int live[] = { 0, 10, 3000, 9000 };
	struct twheel *tw = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(live); i++) {
		u64 wanted = live[i] + live[i] / 2 + FREE_SLACK / 2;
		u64 size;

		tw = wheel_remake(test, &usual_setup);
		tw->clock.virtual_now_ns = START_NS;
		pass(tw);
		work_take(tw);
		kunit_kfree(test, burst_but(test, live[i]));
		size = arena_size(&tw->arena);
		shrink(test);
		KUNIT_EXPECT_EQ(test, tw->shrink.below, live[i] / 2);
		/* To a page: what is in excess is whole pages. */
		KUNIT_EXPECT_EQ(test, arena_size(&tw->arena), size -
				(size - wanted) / PLACES_PER_PAGE * PLACES_PER_PAGE);
		KUNIT_EXPECT_EQ(test, tw->arena.nr_removed,
				(unsigned long)((size - wanted) / PLACES_PER_PAGE));
		KUNIT_EXPECT_FALSE(test, tw->shrink.wanted);
		expect_charged_for_all(test);
	}
}

/* It is asked for at one time, and by whoever ends one timeout too many. */
static void giving_back_is_asked_for_when_more_than_half_is_free(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = arm_all(test);
	unsigned int i;
	u64 unused;

	pass(tw);
	for (i = 0; i < MAX_PENDING && !tw->shrink.wanted; i++)
		cancel(tw, ids[i]);
	unused = max_t(u64, arena_size(&tw->arena), tw->room.provided);
	/* More than twice of what lives, and not one fewer. */
	KUNIT_EXPECT_GT(test, unused, 2ULL * (MAX_PENDING - i) + FREE_SLACK);
	KUNIT_EXPECT_LE(test, unused, 2ULL * (MAX_PENDING - i + 1) + FREE_SLACK);
	KUNIT_EXPECT_TRUE(test, kthread_cancel_delayed_work_sync(&tw->shrink.work));
	/* Not while the wheel is closed: the work would outlive it. */
	tw->shrink.wanted = false;
	tw->wake.closing = true;
	twheel_shrink_request(tw);
	KUNIT_EXPECT_FALSE(test, tw->shrink.wanted);
	tw->wake.closing = false;
	KUNIT_EXPECT_FALSE(test, kthread_cancel_delayed_work_sync(&tw->shrink.work));
}

/* Who ends timeouts while pages are given back does not ask: the end of that does. */
static void ended_while_pages_are_given_back_are_seen_at_its_end(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 *ids = burst_but(test, 9000);
	unsigned int i;

	tw->shrink.wanted = true;
	shrink_begin(tw);
	while (tw->shrink.step.phase != SHRINK_NOTHING)
		KUNIT_ASSERT_TRUE(test, shrink_step(tw));
	for (i = 0; i < 9000; i++)
		cancel(tw, ids[i]);
	KUNIT_EXPECT_FALSE(test, kthread_cancel_delayed_work_sync(&tw->shrink.work));
	shrink_end(tw);
	KUNIT_EXPECT_TRUE(test, tw->shrink.wanted);
	KUNIT_EXPECT_TRUE(test, kthread_cancel_delayed_work_sync(&tw->shrink.work));
	rcu_barrier();
	shrink(test);
	expect_little_is_left(test);
}

/* The kthread comes again by itself when it has found the mutex taken. */
static void a_turn_is_asked_for_when_somebody_adds_pages(struct kunit *test)
{
	struct budget budget = { .entries = INT_MAX, .end_ns = U64_MAX };
	struct twheel *tw = test->priv;

	burst_but(test, 0);
	mutex_lock(&tw->arena.mutex);
	KUNIT_EXPECT_TRUE(test, twheel_arena_shrink(tw, &budget));
	mutex_unlock(&tw->arena.mutex);
	KUNIT_EXPECT_TRUE(test, tw->shrink.running);
	/* On a slow machine the jiffy has passed. */
	KUNIT_EXPECT_TRUE(test, kthread_cancel_delayed_work_sync(&tw->shrink.work) ||
			  tw->shrink.due);
	shrink(test);
	expect_little_is_left(test);
}

/*
 * A page that has used half of its generations between being picked and being removed
 * stays, with all its places.  G8: others go on after the generations that were used.
 */
static void a_page_with_few_generations_left_stays(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t;
	u64 size;

	burst_but(test, 0);
	shrink_begin(tw);
	while (tw->shrink.step.phase != SHRINK_FREES)
		KUNIT_ASSERT_TRUE(test, shrink_step(tw));
	t = tw->shrink.step.freeing;
	KUNIT_ASSERT_NOT_NULL(test, t);
	size = arena_size(&tw->arena);
	atomic64_set(&t->state, state_unused(S32_MAX + 1U));
	while (tw->shrink.step.phase != SHRINK_NOTHING) {
		KUNIT_ASSERT_TRUE(test, shrink_step(tw));
		audit_places(test);
	}
	shrink_end(tw);
	rcu_barrier();
	KUNIT_EXPECT_PTR_EQ(test, look_at(tw, timeout_index(t)), t);
	KUNIT_EXPECT_FALSE(test, timeout_page(t)->picked);
	KUNIT_EXPECT_LE(test, tw->arena.first_gen, (u32)S32_MAX);
	KUNIT_EXPECT_LT(test, arena_size(&tw->arena), size);
	kthread_cancel_delayed_work_sync(&tw->shrink.work);
	pass(tw);
	audit(test);
}

/* Whatever came and went, the next burst finds the wheel as the first one did. */
static void bursts_leave_nothing_behind(struct kunit *test)
{
	u64 shape[] = { 0, STATE_PERIODIC, STATE_PERIODIC | STATE_FIXED_DELAY };
	u64 *ids = kunit_kcalloc(test, MAX_PENDING, sizeof(*ids), GFP_KERNEL);
	struct twheel *tw = test->priv;
	long charged[2] = {}, provided = 0;
	unsigned int round, i;
	u64 size = 0;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	for (round = 0; round < 2 * ARRAY_SIZE(shape); round++) {
		for (i = 0; i < 8000; i++)
			ids[i] = id_of(arm_like(test, shape[round % ARRAY_SIZE(shape)]));
		pass(tw);
		/* Half of them expire, and their events are revoked. */
		if (round % 2) {
			tw->clock.virtual_now_ns += 10 * TICK_NS;
			pass(tw);
		}
		for (i = 0; i < 8000; i++)
			KUNIT_ASSERT_EQ(test, cancel(tw, ids[i]), round % 2 ?
					TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING);
		KUNIT_ASSERT_TRUE(test, tw->shrink.wanted);
		kthread_cancel_delayed_work_sync(&tw->shrink.work);
		do {
			shrink(test);
			flush_work(&tw->words.work);
		} while (work_take(tw));
		audit(test);
		expect_charged_for_all(test);
		if (!round) {
			charged[0] = atomic_long_read(&tw->memory.charged);
			provided = tw->room.provided;
			size = arena_size(&tw->arena);
		}
		charged[1] = atomic_long_read(&tw->memory.charged);
		/* Up to what is periodic in the pages that stay. */
		KUNIT_EXPECT_LE(test, charged[1], charged[0] +
				(long)(size / PLACES_PER_PAGE / 2 + 1) * (long)PAGE_SIZE);
		KUNIT_EXPECT_LE(test, tw->room.provided, provided);
		KUNIT_EXPECT_EQ(test, arena_size(&tw->arena), size);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 0L);
		KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.nr_leaving), 0);
	}
}

static struct kunit_case shrink_cases[] = {
	KUNIT_CASE(pages_of_a_burst_are_given_back),
	KUNIT_CASE(pages_of_the_cancelled_young_are_given_back),
	KUNIT_CASE(pages_are_given_back_when_nobody_is_adding_any_more),
	KUNIT_CASE(places_are_there_while_pages_are_looked_for),
	KUNIT_CASE(a_page_that_is_used_again_is_kept),
	KUNIT_CASE(memory_is_charged_until_it_is_free),
	KUNIT_CASE(a_wheel_is_closed_before_its_memory_is_free),
	KUNIT_CASE(a_burst_beside_giving_back_is_given_back_too),
	KUNIT_CASE(an_emptied_wheel_keeps_little),
	KUNIT_CASE(no_place_is_lost_in_any_step),
	KUNIT_CASE(no_page_is_added_while_sifted_places_are_free),
	KUNIT_CASE(sifting_ends_though_places_come_back),
	KUNIT_CASE(half_as_many_places_again_as_live_stay),
	KUNIT_CASE(giving_back_is_asked_for_when_more_than_half_is_free),
	KUNIT_CASE(ended_while_pages_are_given_back_are_seen_at_its_end),
	KUNIT_CASE(a_turn_is_asked_for_when_somebody_adds_pages),
	KUNIT_CASE(a_page_with_few_generations_left_stays),
	KUNIT_CASE(bursts_leave_nothing_behind),
	{}
};

ENGINE_SUITE(shrink);
