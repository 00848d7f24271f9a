// SPDX-License-Identifier: GPL-2.0
/*
 * engine/places.c: ids, places, and their pages
 */

/* G8: an id names a live timeout or nothing. */
static void an_id_names_a_live_timeout_or_nothing(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, 0);
	u64 rest = t->word, id = timeout_id(t);
	struct twheel_timeout *found;
	unsigned int bit, s;

	for (s = 0; s < ARRAY_SIZE(states); s++) {
		t->word = id | states[s];
		twheel_lock(tw);
		found = timeout_by_id(&tw->places, id);
		twheel_unlock(tw);
		KUNIT_EXPECT_PTR_EQ(test, found, states[s] == STATE_FREE ? NULL : t);
	}
	t->word = rest;
	for (bit = 0; bit < 64; bit++)
		KUNIT_ASSERT_NULL(test, find(tw, id ^ BIT_ULL(bit)));
	KUNIT_EXPECT_PTR_EQ(test, find(tw, id), t);
}

/* G7: an index leads to its place, however many there are, without a search. */
static void an_index_and_its_place_name_each_other(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u32 index;

	arm_many(test, 3 * PLACES_PER_PAGE + 1, NULL);
	KUNIT_ASSERT_EQ(test, tw->places.pages.nr, 4U);
	for (index = 0; index < 4 * PLACES_PER_PAGE; index++) {
		struct twheel_timeout *t = place_of(tw, index);

		KUNIT_ASSERT_NOT_NULL(test, t);
		KUNIT_ASSERT_EQ(test, timeout_index(t), index);
		KUNIT_ASSERT_EQ(test, (u32)(t - timeout_page(t)->timeout),
				index % PLACES_PER_PAGE);
		/* No id is 0. */
		KUNIT_ASSERT_EQ(test, timeout_gen(t), 1U);
	}
	KUNIT_EXPECT_NULL(test, place_of(tw, 4 * PLACES_PER_PAGE));
	KUNIT_EXPECT_NULL(test, place_of(tw, U32_MAX));
	KUNIT_EXPECT_NULL(test, find(tw, U64_MAX));
	KUNIT_EXPECT_NULL(test, find(tw, 0));
}

static void places_are_counted_exactly(struct kunit *test)
{
	struct tw_ctx *tw = wheel_with(test, max_pending, 10);
	struct twheel_timeout *held, *first;
	unsigned int i, nr, got;

	for (i = 0; i <= 10; i++) {
		KUNIT_ASSERT_EQ(test, twheel_places_take(tw, i, false, &held), 0);
		for (nr = 1; nr < 15; nr++) {
			got = min(nr, 10 - i);
			KUNIT_ASSERT_EQ(test, twheel_places_take(tw, nr, false, &first),
					got < nr ? -EAGAIN : 0);
			KUNIT_ASSERT_EQ(test, tw->places.nr_taken, i + got);
			KUNIT_ASSERT_EQ(test, has_room(tw), i + got < 10);
			KUNIT_ASSERT_EQ(test, !first, !got);
			twheel_places_give(tw, first);
			KUNIT_ASSERT_EQ(test, tw->places.nr_taken, i);
		}
		twheel_places_give(tw, held);
	}
}

/* Pretend that 2^30 - 40 places are in use: that takes no memory, but the sums are the same. */
static void the_last_places_of_the_largest_wheel_are_counted_exactly(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u32 limit = tw->places.max_pending;
	struct twheel_timeout *first[2], *none;

	tw->places.max_pending = BIT(30);
	tw->places.nr_taken = BIT(30) - 40;
	KUNIT_EXPECT_EQ(test, twheel_places_take(tw, 32, false, &first[0]), 0);
	KUNIT_EXPECT_EQ(test, twheel_places_take(tw, 32, false, &first[1]), -EAGAIN);
	KUNIT_EXPECT_EQ(test, tw->places.nr_taken, (u32)BIT(30));
	KUNIT_EXPECT_EQ(test, twheel_places_take(tw, 1, false, &none), -EAGAIN);
	KUNIT_EXPECT_NULL(test, none);
	KUNIT_EXPECT_FALSE(test, has_room(tw));
	twheel_places_give(tw, first[1]);
	KUNIT_EXPECT_TRUE(test, has_room(tw));
	twheel_places_give(tw, first[0]);
	KUNIT_EXPECT_EQ(test, tw->places.nr_taken, (u32)BIT(30) - 40);
	tw->places.nr_taken = 0;
	tw->places.max_pending = limit;
}

/* If the caller has the lock of the wheel, no page is added. */
static void a_place_that_is_not_at_hand_under_the_lock_says_why(struct kunit *test)
{
	struct tw_ctx *tw = wheel_with(test, max_pending, 1);
	struct twheel_timeout *t, *full;
	struct twheel_timeout *none = twheel_place_take_locked(tw);

	KUNIT_EXPECT_EQ(test, PTR_ERR(none), (long)-ENOMEM);
	KUNIT_ASSERT_EQ(test, twheel_places_provide(tw), 0);
	KUNIT_ASSERT_EQ(test, twheel_places_provide(tw), 0);
	/* One page is enough. */
	KUNIT_EXPECT_EQ(test, tw->places.pages.nr, 1U);
	t = twheel_place_take_locked(tw);
	full = twheel_place_take_locked(tw);
	KUNIT_ASSERT_FALSE(test, IS_ERR(t));
	KUNIT_EXPECT_EQ(test, PTR_ERR(full), (long)-EAGAIN);
	t->link.next = NULL;
	twheel_places_give(tw, t);
	KUNIT_EXPECT_EQ(test, timeout_gen(t), 2U);
}

/* The ways in which a place becomes free. */
enum ending_way { CANCEL, CANCEL_ONE, REVOKE, READ_IT, READ_ODD, READ_DRAINED, NR_WAYS };

static void end_it(struct tw_ctx *tw, u64 id, enum ending_way way)
{
	if (way == REVOKE || way == READ_IT || way == READ_ODD)
		expire_at(tw, START_NS + DELAY_NS + 2 * TICK_NS);
	if (way == READ_DRAINED)
		drain(tw);
	if (way == READ_IT || way == READ_ODD || way == READ_DRAINED)
		read_one(tw, NULL);
	else if (way == CANCEL_ONE)
		twheel_cancel_one(tw, id, false);
	else
		cancel(tw, id);
}

/* G8: after 2^32 timeouts, a place could give out an old id again, so it is not used any more. */
static void a_place_whose_generations_are_used_up_retires(struct kunit *test)
{
	enum ending_way way;

	for (way = 0; way < NR_WAYS; way++) {
		struct tw_ctx *tw = wheel_remake(test, &usual_setup);
		u64 *ids = kunit_kcalloc(test, 200, sizeof(*ids), GFP_KERNEL);
		struct twheel_timeout *t;
		unsigned int i;
		u32 index;

		KUNIT_ASSERT_NOT_NULL(test, ids);
		time_set(tw, START_NS);
		pass(tw);
		t = arm_like(test, way == READ_ODD ? SL : 0);
		index = timeout_index(t);
		t->word |= (u64)U32_MAX << GEN_SHIFT;
		end_it(tw, timeout_id(t), way);
		/* No id has generation 0. */
		KUNIT_EXPECT_EQ(test, timeout_gen(t), 0U);
		KUNIT_EXPECT_FALSE(test, timeout_is_live(t));
		KUNIT_EXPECT_EQ_MSG(test, census_take(test).retired, 1U, "way %d", way);
		/* A retired place does not count against max_pending. */
		KUNIT_EXPECT_EQ(test, tw->places.nr_taken, 0U);
		audit(test);
		if (way == READ_DRAINED)
			continue;
		arm_many(test, 200, ids);
		for (i = 0; i < 200; i++)
			KUNIT_ASSERT_NE(test, (u32)ids[i], index);
		cancel_ids(tw, ids, 200);
	}
}

/* G8: try the last generations of all places of a page, one by one. */
static void no_id_is_given_out_twice_not_even_the_last_ones(struct kunit *test)
{
	struct tw_ctx *tw = wheel_with(test, max_pending, 1);
	u32 *gen = kunit_kcalloc(test, PLACES_PER_PAGE, sizeof(*gen), GFP_KERNEL);
	unsigned int i;
	u32 index;
	u64 id;

	KUNIT_ASSERT_NOT_NULL(test, gen);
	/* There is one page, and each of its places has four generations left. */
	KUNIT_ASSERT_EQ(test, cancel(tw, timeout_id(arm_like(test, 0))), TWHEEL_WAS_PENDING);
	for (i = 0; i < PLACES_PER_PAGE; i++)
		place_of(tw, i)->word = (u64)(U32_MAX - 3) << GEN_SHIFT | i;
	for (i = 0; i < 4 * PLACES_PER_PAGE; i++) {
		KUNIT_ASSERT_EQ(test, arm_plain(tw, &id), 0);
		index = (u32)id;
		KUNIT_ASSERT_LT(test, index, PLACES_PER_PAGE);
		KUNIT_ASSERT_GT(test, (u32)(id >> 32), gen[index]);
		gen[index] = id >> 32;
		KUNIT_ASSERT_EQ(test, cancel(tw, id), TWHEEL_WAS_PENDING);
		KUNIT_ASSERT_EQ(test, cancel(tw, id), -ENOENT);
	}
	/* If all have retired, the limit is still one: another page is made. */
	KUNIT_EXPECT_EQ(test, census_take(test).retired, PLACES_PER_PAGE);
	KUNIT_ASSERT_EQ(test, arm_plain(tw, &id), 0);
	KUNIT_EXPECT_GE(test, (u32)id, PLACES_PER_PAGE);
	KUNIT_EXPECT_EQ(test, tw->places.pages.nr, 2U);
}

/* Take some, so that the others become unused and are given back. */
static void a_page_that_is_in_use_is_filled_before_another_is_begun(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 *ids = arm_all(test);
	unsigned int i, nr = 0;
	u64 id;

	for (i = 0; i < MAX_PENDING; i++)
		if ((u32)ids[i] / PLACES_PER_PAGE != 7 || (u32)ids[i] % 2)
			nr += cancel(tw, ids[i]) > 0;
	KUNIT_EXPECT_EQ(test, tw->places.nr_unused, tw->places.nr_pages - 1);
	for (i = 0; i < PLACES_PER_PAGE / 2; i++) {
		KUNIT_ASSERT_EQ(test, arm_plain(tw, &id), 0);
		KUNIT_ASSERT_EQ(test, (u32)id / PLACES_PER_PAGE, 7U);
	}
	KUNIT_ASSERT_EQ(test, arm_plain(tw, &id), 0);
	KUNIT_EXPECT_NE(test, (u32)id / PLACES_PER_PAGE, 7U);
}

/* G8: if pages come again with the indices of old ones, all their ids are new. */
static void pages_of_a_burst_are_given_back_and_come_again_with_new_ids(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u32 *gen = kunit_kcalloc(test, MAX_PENDING + PLACES_PER_PAGE, sizeof(*gen), GFP_KERNEL);
	u64 *ids = arm_all(test);
	u32 nr_pages = tw->places.nr_pages;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, gen);

	for (i = 0; i < 5; i++) {
		cancel_ids(tw, ids, MAX_PENDING);
		arm_many(test, MAX_PENDING, ids);
	}
	cancel_ids(tw, ids, MAX_PENDING);
	for (i = 0; i < nr_pages * PLACES_PER_PAGE; i++)
		gen[i] = timeout_gen(place_of(tw, i));
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&tw->memory.shrink));
	shrink(test);
	KUNIT_EXPECT_LE(test, tw->places.nr_pages, UNUSED_SLACK);
	audit(test);
	expect_charged_for_all(test);
	arm_many(test, MAX_PENDING, ids);
	KUNIT_EXPECT_EQ(test, tw->places.nr_pages, nr_pages);
	KUNIT_EXPECT_EQ(test, tw->places.pages.nr, nr_pages);
	/* Generations go on from those of this place, or after all that were removed. */
	for (i = 0; i < MAX_PENDING; i++)
		KUNIT_ASSERT_GE(test, (u32)(ids[i] >> GEN_SHIFT), gen[(u32)ids[i]]);
	cancel_ids(tw, ids, MAX_PENDING);
}

/* Half as many unused pages as used ones are kept, and a few more. */
static void pages_that_may_soon_be_needed_are_kept(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 *ids = arm_all(test);
	u32 used, nr_pages = tw->places.nr_pages;
	unsigned int i;

	for (i = 0; i < MAX_PENDING; i++)
		if ((u32)ids[i] / PLACES_PER_PAGE % 4)
			cancel(tw, ids[i]);
	used = DIV_ROUND_UP(nr_pages, 4);
	KUNIT_EXPECT_EQ(test, tw->places.nr_unused, nr_pages - used);
	shrink(test);
	KUNIT_EXPECT_EQ(test, tw->places.nr_pages, used + UNUSED_SLACK + used / 2);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&tw->memory.shrink));
	/* If one more page becomes unused, memory is given back again, after a while. */
	for (i = 0; i < MAX_PENDING && tw->places.nr_unused <= UNUSED_SLACK + used / 2; i++)
		cancel(tw, ids[i]);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&tw->memory.shrink));
	KUNIT_EXPECT_EQ(test, work_delay, (unsigned long)HZ);
}

/* G8: if it went, few generations would be left for later pages. */
static void a_page_that_has_used_half_of_its_generations_stays(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 *ids = arm_all(test);
	u32 i;

	for (i = 0; i < 3; i++)
		place_of(tw, i * 2 * PLACES_PER_PAGE)->word |= BIT_ULL(63);
	for (i = MAX_PENDING; i--;)
		cancel(tw, timeout_id(place_of(tw, (u32)ids[i])));
	shrink(test);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_NOT_NULL(test, page_of_nr(tw, 2 * i));
	KUNIT_EXPECT_LE(test, tw->places.first_gen, (u32)S32_MAX);
	/* They count as partly used, so that they are used first. */
	KUNIT_EXPECT_FALSE(test, hlist_empty(&tw->places.partly));
	arm_many(test, 3 * PLACES_PER_PAGE, ids);
	for (i = 0; i < 3 * PLACES_PER_PAGE; i++)
		KUNIT_ASSERT_EQ(test, (u32)ids[i] / PLACES_PER_PAGE % 2, 0U);
}

/* If many pages stay side by side, the lock is taken for each of them anew. */
static void one_page_that_stays_is_visited_under_the_lock(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 *ids = arm_all(test);
	u32 i, nr_pages = tw->places.nr_pages;
	struct twheel_page *page;

	for (i = 0; i < nr_pages; i++)
		place_of(tw, i * PLACES_PER_PAGE)->word |= BIT_ULL(63);
	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, timeout_id(place_of(tw, (u32)ids[i])));
	mutex_lock(&tw->places.mutex);
	KUNIT_ASSERT_EQ(test, tw->places.nr_unused, nr_pages);
	KUNIT_EXPECT_TRUE(test, page_pick(&tw->places, &page));
	KUNIT_EXPECT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, tw->places.nr_unused, nr_pages - 1);
	mutex_unlock(&tw->places.mutex);
	shrink(test);
	KUNIT_EXPECT_EQ(test, tw->places.nr_pages, nr_pages);
	audit(test);
}

/* G8: a lookup may have found one of its places just before. */
static void a_page_that_was_removed_stays_until_rcu_lets_go_of_it(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 *ids = arm_all(test);
	struct twheel_page *page;
	struct page *memory;
	int nr_users;
	long charged;

	cancel_ids(tw, ids, MAX_PENDING);
	charged = atomic_long_read(&tw->memory.charged);
	mutex_lock(&tw->places.mutex);
	KUNIT_EXPECT_TRUE(test, page_pick(&tw->places, &page));
	/* No key takes a place of the page again. */
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_FALSE(test, page_has_free(page));
	memory = virt_to_page(page);
	get_page(memory);
	rcu_read_lock();
	page_remove(tw, page);
	nr_users = page_count(memory);
	rcu_read_unlock();
	mutex_unlock(&tw->places.mutex);
	KUNIT_EXPECT_EQ(test, nr_users, 2);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged), charged - (long)PAGE_SIZE);
	rcu_barrier();
	KUNIT_EXPECT_EQ(test, page_count(memory), 1);
	put_page(memory);
	/* The page was freed, and only this case has a reference. */
	KUNIT_EXPECT_EQ(test, atomic_xchg(&machine_memory.nr_shared, 0), 1);
	shrink(test);
	expect_charged_for_all(test);
}

/* The work may have checked the pages of places before that for the last time. */
static void places_that_are_freed_while_memory_is_given_back_have_it_begin_again(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct work_struct *work = &tw->memory.shrink.work;
	unsigned long end = jiffies + 3 * HZ;
	u64 *ids = arm_all(test);

	/* The work waits for the mutex. */
	mutex_lock(&tw->places.mutex);
	queue_work(twheel_memory_queue, work);
	while (!(work_busy(work) & WORK_BUSY_RUNNING) && time_before(jiffies, end))
		usleep_range(1000, 2000);
	KUNIT_EXPECT_TRUE(test, work_busy(work) & WORK_BUSY_RUNNING);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&tw->memory.shrink));
	cancel_ids(tw, ids, MAX_PENDING);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&tw->memory.shrink));
	mutex_unlock(&tw->places.mutex);
	cancel_delayed_work_sync(&tw->memory.shrink);
}

/* The last close waits for one page at most. */
static void giving_memory_back_ends_when_no_file_is_left(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u64 *ids = arm_all(test);
	u32 nr_pages = tw->places.nr_pages;

	cancel_ids(tw, ids, MAX_PENDING);
	cancel_delayed_work_sync(&tw->memory.shrink);
	refcount_set(&tw->control.nr_files, 0);
	places_shrink(&tw->memory.shrink.work);
	refcount_set(&tw->control.nr_files, 1);
	KUNIT_EXPECT_EQ(test, tw->places.nr_pages, nr_pages - 1);
}

/* Two pages of places side by side share one page for periods and slack. */
static void the_page_for_periods_goes_with_the_last_page_that_needs_it(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_page *page[2];
	struct twheel_extra *both;
	u64 *ids = arm_all(test);
	long charged;
	u32 i;

	charged = atomic_long_read(&tw->memory.charged);
	for (i = 0; i < 2; i++) {
		page[i] = page_of_nr(tw, i);
		KUNIT_EXPECT_EQ(test, twheel_extra_provide(tw, i * PLACES_PER_PAGE, true),
				-EAGAIN);
		KUNIT_ASSERT_EQ(test, twheel_extra_provide(tw, i * PLACES_PER_PAGE, false), 0);
		KUNIT_EXPECT_EQ(test, twheel_extra_provide(tw, i * PLACES_PER_PAGE, true), 0);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged),
				charged + (long)PAGE_SIZE);
	}
	both = extra_page(page[0]->extra);
	KUNIT_EXPECT_PTR_EQ(test, page[0]->extra, &both[0]);
	KUNIT_EXPECT_PTR_EQ(test, page[1]->extra, &both[PLACES_PER_PAGE]);
	/* If a page of places is far from them, it has a page of its own. */
	KUNIT_ASSERT_EQ(test, twheel_extra_provide(tw, 5 * PLACES_PER_PAGE, false), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged),
			charged + 2 * (long)PAGE_SIZE);
	/* If a page of places does not exist, it needs none. */
	KUNIT_EXPECT_EQ(test, twheel_extra_provide(tw, NR_INDICES - 1, true), 0);
	/* The page of places that became unused last goes first. */
	cancel_ids(tw, ids + 2 * PLACES_PER_PAGE, MAX_PENDING - 2 * PLACES_PER_PAGE);
	cancel_ids(tw, ids + PLACES_PER_PAGE, PLACES_PER_PAGE);
	cancel_ids(tw, ids, PLACES_PER_PAGE);
	shrink(test);
	KUNIT_EXPECT_NULL(test, page_of_nr(tw, 0));
	KUNIT_EXPECT_NULL(test, page_of_nr(tw, 1));
	expect_charged_for_all(test);
}

/* If any of the allocations fails, the memory taken before it is given back. */
static void all_memory_that_is_charged_is_there_at_any_limit(struct kunit *test)
{
	unsigned int pages, keyed, i;

	for (keyed = 0; keyed < 2; keyed++) {
		for (pages = 1; pages < 24; pages++) {
			struct tw_ctx *tw = wheel_with(test, flags,
						       keyed ? TWHEEL_SETUP_KEYED : 0);
			struct twheel_arm how = arm_of(PE, 0);

			/* A table of pages takes less than a page at first. */
			memory_limit(twheel_charged() + pages * PAGE_SIZE + pages % 2 * 16,
				     LONG_MAX);
			for (i = 0; i < MAX_PENDING; i++) {
				how = arm_of(i % PLACES_PER_PAGE ? 0 : PE, 0);
				how.user_data = i;
				if (arm_result(tw, &how) < 0)
					break;
			}
			KUNIT_EXPECT_EQ(test, how.result, -ENOSPC);
			KUNIT_EXPECT_EQ(test, how.id, 0ULL);
			limits_apply();
			expect_charged_for_all(test);
			audit(test);
		}
	}
}

/**
 * struct holder - a thread that holds a mutex
 * @work: runs hold()
 * @mutex: any mutex of a wheel
 * @holds: the thread has the mutex
 * @done: the thread may unlock it
 */
struct holder {
	struct kthread_work work;
	struct mutex *mutex;	/* any mutex of a wheel */
	struct completion holds;
	struct completion done;
};

static void hold(struct kthread_work *work)
{
	struct holder *holder = container_of(work, struct holder, work);

	mutex_lock(holder->mutex);
	complete(&holder->holds);
	/* For the caller that waits, this is for ever. */
	wait_for_completion_timeout(&holder->done, 3 * HZ);
	mutex_unlock(holder->mutex);
}

/* ARM and REARM wait in vain for another caller that adds places. */
static void a_fatal_signal_ends_waiting_for_memory(struct kunit *test)
{
	struct holder *holder = kunit_kzalloc(test, sizeof(*holder), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	struct twheel_arm how = arm_of(0, 0), periodic = arm_of(PE, 0);
	u64 *ids = kunit_kcalloc(test, PLACES_PER_PAGE, sizeof(*ids), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, holder);
	KUNIT_ASSERT_NOT_NULL(test, ids);
	arm_many(test, PLACES_PER_PAGE, ids);
	holder->mutex = &tw->places.mutex;
	init_completion(&holder->holds);
	init_completion(&holder->done);
	kthread_init_work(&holder->work, hold);
	kthread_queue_work(twheel_workers[0], &holder->work);
	wait_for_completion(&holder->holds);
	fatal_signal_send();
	KUNIT_EXPECT_EQ(test, arm_result(tw, &how), -EINTR);
	KUNIT_EXPECT_EQ(test, rearm(tw, ids[0], &periodic), -EINTR);
	fatal_signal_forget();
	complete(&holder->done);
	kthread_flush_worker(twheel_workers[0]);
	KUNIT_EXPECT_EQ(test, arm_result(tw, &how), TWHEEL_CREATED);
	KUNIT_EXPECT_EQ(test, rearm(tw, ids[0], &periodic), TWHEEL_WAS_PENDING);
}

/* Cancel the timeouts that are in some pages of places. */
static void cancel_in_pages(struct tw_ctx *tw, const u64 *ids, u32 first, u32 last)
{
	unsigned int i;

	for (i = 0; i < MAX_PENDING; i++)
		if ((u32)ids[i] / PLACES_PER_PAGE >= first && (u32)ids[i] / PLACES_PER_PAGE <= last)
			cancel(tw, ids[i]);
}

/* One of the two has had a period, and one of them goes, while the other stays. */
static void the_page_for_periods_stays_as_long_as_one_of_two_pages_needs_it(struct kunit *test)
{
	unsigned int had, goes, i;

	for (had = 1; had < 4; had++) {
		for (goes = 0; goes < 2; goes++) {
			struct tw_ctx *tw = wheel_remake(test, &usual_setup);
			u64 *ids = arm_all(test);

			for (i = 0; i < 2; i++)
				if (had & BIT(i))
					twheel_extra_provide(tw, i * PLACES_PER_PAGE, false);
			expect_charged_for_all(test);
			/* The page of places that became unused last goes first. */
			cancel_in_pages(tw, ids, 2, U32_MAX);
			cancel_in_pages(tw, ids, goes, goes);
			shrink(test);
			KUNIT_EXPECT_NULL(test, page_of_nr(tw, goes));
			KUNIT_ASSERT_NOT_NULL(test, page_of_nr(tw, !goes));
			KUNIT_EXPECT_EQ(test, !!page_of_nr(tw, !goes)->extra, !!(had & BIT(!goes)));
			expect_charged_for_all(test);
		}
	}
}

/*
 * One of two pages side by side has had a period: the case's exit counts the memory that is left.
 */
static void the_page_for_periods_goes_with_the_last_close(struct kunit *test)
{
	unsigned int had, i;

	for (had = 1; had < 4; had++) {
		struct tw_ctx *tw = wheel_remake(test, &usual_setup);

		arm_all(test);
		for (i = 0; i < 2; i++)
			if (had & BIT(i))
				KUNIT_EXPECT_EQ(test, twheel_extra_provide(tw, i * PLACES_PER_PAGE,
									   false), 0);
	}
}

/* The bits above an index are the state. */
static void an_arm_that_would_have_an_index_too_many_says_enospc(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	u32 first_gap = tw->places.first_gap;
	u64 id;

	tw->places.first_gap = NR_INDICES / PLACES_PER_PAGE;
	KUNIT_EXPECT_EQ(test, arm_plain(tw, &id), -ENOSPC);
	KUNIT_EXPECT_EQ(test, tw->places.nr_pages, 0U);
	tw->places.first_gap = first_gap;
	KUNIT_EXPECT_EQ(test, arm_plain(tw, &id), 0);
}

static struct kunit_case places_cases[] = {
	KUNIT_CASE(an_id_names_a_live_timeout_or_nothing),
	KUNIT_CASE(an_index_and_its_place_name_each_other),
	KUNIT_CASE(places_are_counted_exactly),
	KUNIT_CASE(the_last_places_of_the_largest_wheel_are_counted_exactly),
	KUNIT_CASE(a_place_that_is_not_at_hand_under_the_lock_says_why),
	KUNIT_CASE(a_place_whose_generations_are_used_up_retires),
	KUNIT_CASE(no_id_is_given_out_twice_not_even_the_last_ones),
	KUNIT_CASE(a_page_that_is_in_use_is_filled_before_another_is_begun),
	KUNIT_CASE(pages_of_a_burst_are_given_back_and_come_again_with_new_ids),
	KUNIT_CASE(pages_that_may_soon_be_needed_are_kept),
	KUNIT_CASE(a_page_that_has_used_half_of_its_generations_stays),
	KUNIT_CASE(one_page_that_stays_is_visited_under_the_lock),
	KUNIT_CASE(a_page_that_was_removed_stays_until_rcu_lets_go_of_it),
	KUNIT_CASE(places_that_are_freed_while_memory_is_given_back_have_it_begin_again),
	KUNIT_CASE(giving_memory_back_ends_when_no_file_is_left),
	KUNIT_CASE(the_page_for_periods_goes_with_the_last_page_that_needs_it),
	KUNIT_CASE(all_memory_that_is_charged_is_there_at_any_limit),
	KUNIT_CASE(a_fatal_signal_ends_waiting_for_memory),
	KUNIT_CASE(the_page_for_periods_stays_as_long_as_one_of_two_pages_needs_it),
	KUNIT_CASE(the_page_for_periods_goes_with_the_last_close),
	KUNIT_CASE(an_arm_that_would_have_an_index_too_many_says_enospc),
	{}
};

ENGINE_SUITE(places);
