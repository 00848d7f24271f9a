// SPDX-License-Identifier: GPL-2.0
/*
 * engine/keys.c and rearm.c: the keys of a keyed wheel, and ARM there
 */

#define KEY	42ULL

static struct tw_ctx *keyed_wheel(struct kunit *test)
{
	return wheel_with(test, flags, TWHEEL_SETUP_KEYED);
}

static struct twheel_arm arm_of_key(u64 key)
{
	return (struct twheel_arm){ .user_data = key, .expires_ns = DELAY_NS };
}

/* Arm a timeout whose key is free, and return it. */
static struct twheel_timeout *arm_key(struct kunit *test, u64 key)
{
	struct twheel_arm how = arm_of_key(key);

	return arm(test, &how);
}

static struct twheel_timeout *find_key(struct tw_ctx *tw, u64 key)
{
	struct twheel_timeout *t;

	twheel_lock(tw);
	t = twheel_key_find(tw, key);
	twheel_unlock(tw);
	return t;
}

static int cancel_key(struct tw_ctx *tw, u64 key)
{
	struct twheel_cancel how = { .id = key };
	struct twheel_call call = { .stride = sizeof(how), .by_key = true };
	int done = twheel_cancel_step(tw, to_user(how), 1, &call);

	return done == 1 ? how.result : done;
}

static int nr_nodes(const struct tw_ctx *tw)
{
	return atomic_read(&tw->keys.index.nelems);
}

static void a_key_leads_to_its_timeout_until_that_ends(struct kunit *test)
{
	struct tw_ctx *tw = keyed_wheel(test);
	int way;

	for (way = 0; way < 4; way++) {
		struct twheel_timeout *t = arm_key(test, KEY);

		KUNIT_EXPECT_PTR_EQ(test, find_key(tw, KEY), t);
		KUNIT_EXPECT_NULL(test, find_key(tw, KEY + 1));
		if (way >= 2) {
			expire_at(tw, time_of(tw) + DELAY_NS + TICK_NS);
			KUNIT_EXPECT_TRUE(test, timeout_is_unread(t));
			KUNIT_EXPECT_PTR_EQ(test, find_key(tw, KEY), t);
		}
		if (way == 0)
			KUNIT_EXPECT_EQ(test, cancel(tw, timeout_id(t)), TWHEEL_WAS_PENDING);
		else if (way == 1)
			KUNIT_EXPECT_EQ(test, cancel_key(tw, KEY), TWHEEL_WAS_PENDING);
		else if (way == 2)
			KUNIT_EXPECT_EQ(test, cancel_key(tw, KEY), TWHEEL_WAS_UNREAD);
		else
			KUNIT_EXPECT_EQ(test, read_one(tw, NULL), 1);
		KUNIT_EXPECT_NULL(test, find_key(tw, KEY));
		KUNIT_EXPECT_EQ(test, nr_nodes(tw), 1);
		KUNIT_EXPECT_EQ(test, cancel_key(tw, KEY), -ENOENT);
	}
}

enum keys_way {
	KEYS_CANCELLED,
	KEYS_READ,
	KEYS_READ_LARGER,
	NR_KEYS_WAYS,
};

/* End the timeouts of this many keys. */
static void end_keys(struct kunit *test, enum keys_way way, unsigned int nr)
{
	u32 size = sizeof(struct twheel_event) + (way == KEYS_READ_LARGER ? 8 : 0);
	u8 *events = kunit_kzalloc(test, nr * size, GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, events);
	if (way == KEYS_CANCELLED) {
		for (i = 0; i < nr; i++)
			KUNIT_EXPECT_EQ(test, cancel_key(tw, KEY + i), TWHEEL_WAS_PENDING);
		return;
	}
	expire_at(tw, time_of(tw) + DELAY_NS + TICK_NS);
	KUNIT_EXPECT_EQ(test, read_some(tw, events, size, nr), (int)nr);
}

/* If a key is armed again, it takes the place that it had, from anywhere among the free ones. */
static void a_key_that_is_armed_again_takes_its_place_again(struct kunit *test)
{
	static const unsigned int orders[][3] = {
		{ 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 }, { 1, 2, 0 },
	};
	struct tw_ctx *tw = keyed_wheel(test);
	struct twheel_timeout *t[3];
	unsigned int round, i;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		t[i] = arm_key(test, KEY + i);
	for (round = 0; round < NR_KEYS_WAYS * ARRAY_SIZE(orders); round++) {
		u64 id = timeout_id(t[0]);

		end_keys(test, round % NR_KEYS_WAYS, ARRAY_SIZE(t));
		audit(test);
		for (i = 0; i < ARRAY_SIZE(t); i++) {
			unsigned int which = orders[round / NR_KEYS_WAYS][i];

			KUNIT_EXPECT_PTR_EQ(test, arm_key(test, KEY + which), t[which]);
			audit(test);
		}
		/* G8 stale ids are harmless. */
		KUNIT_EXPECT_EQ(test, cancel(tw, id), -ENOENT);
		KUNIT_EXPECT_EQ(test, nr_nodes(tw), 3);
	}
}

/* The place is the only free one of its page, which leaves the list, and comes back. */
static void a_key_takes_the_last_free_place_of_a_page_again(struct kunit *test)
{
	struct tw_ctx *tw = keyed_wheel(test);
	struct twheel_timeout *t = NULL;
	unsigned int round;
	u64 key;

	for (key = 0; key < PLACES_PER_PAGE; key++)
		t = arm_key(test, key);
	for (round = 0; round < 2; round++) {
		KUNIT_EXPECT_FALSE(test, page_has_free(timeout_page(t)));
		cancel_key(tw, key - 1);
		audit(test);
		KUNIT_EXPECT_PTR_EQ(test, arm_key(test, key - 1), t);
		audit(test);
	}
	while (key)
		cancel_key(tw, --key);
	audit(test);
	/* The same holds for the first place of a page that is not used. */
	arm_key(test, 0);
	audit(test);
}

static void a_place_that_is_taken_for_another_key_forgets_the_first(struct kunit *test)
{
	struct tw_ctx *tw = keyed_wheel(test);
	struct twheel_timeout *t = arm_key(test, KEY);

	cancel_key(tw, KEY);
	KUNIT_EXPECT_PTR_EQ(test, arm_key(test, KEY + 1), t);
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 1);
	KUNIT_EXPECT_NULL(test, find_key(tw, KEY));
	KUNIT_EXPECT_TRUE(test, arm_key(test, KEY) != t);
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 2);
}

/* If a place is not used again, or its page is gone, it is left alone. */
static void a_key_whose_place_is_gone_takes_another(struct kunit *test)
{
	struct tw_ctx *tw = keyed_wheel(test);
	struct twheel_timeout *t = arm_key(test, KEY), *other;
	struct twheel_page *page = timeout_page(t);
	DECLARE_BITMAP(free, PLACES_PER_PAGE);

	t->word |= (u64)U32_MAX << GEN_SHIFT;
	cancel_key(tw, KEY);
	KUNIT_EXPECT_EQ(test, timeout_gen(t), 0U);
	other = arm_key(test, KEY);
	KUNIT_EXPECT_TRUE(test, other != t);
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 1);
	audit(test);
	cancel_key(tw, KEY);
	twheel_lock(tw);
	bitmap_copy(free, page->free, PLACES_PER_PAGE);
	bitmap_zero(page->free, PLACES_PER_PAGE);
	KUNIT_EXPECT_EQ(test, twheel_place_take_again(tw, other), -ENOENT);
	bitmap_copy(page->free, free, PLACES_PER_PAGE);
	twheel_unlock(tw);
	KUNIT_EXPECT_PTR_EQ(test, arm_key(test, KEY), other);
}

static void arm_makes_a_timeout_or_rearms_the_one_with_the_key(struct kunit *test)
{
	static const struct { bool present; u32 flags; int says; } rows[] = {
		{ false, 0, TWHEEL_CREATED },
		{ true, 0, TWHEEL_WAS_PENDING },
		{ false, TWHEEL_ARM_IF_ABSENT, TWHEEL_CREATED },
		{ true, TWHEEL_ARM_IF_ABSENT, -EEXIST },
		{ false, TWHEEL_ARM_IF_PRESENT, -ENOENT },
		{ true, TWHEEL_ARM_IF_PRESENT, TWHEEL_WAS_PENDING },
		{ false, TWHEEL_ARM_ONLY_LATER, TWHEEL_CREATED },
		{ true, TWHEEL_ARM_ONLY_LATER, TWHEEL_WAS_PENDING },
		{ true, TWHEEL_ARM_ONLY_EARLIER, -ERANGE },
		{ true, ARM_IF, -EINVAL },
	};
	struct tw_ctx *tw = keyed_wheel(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct twheel_arm how = arm_of_key(KEY);
		struct twheel_timeout *t = rows[i].present ? arm_key(test, KEY) : NULL;
		u64 was_ns = t ? t->deadline_ns : 0;

		how.flags = rows[i].flags;
		how.expires_ns = 2 * DELAY_NS;
		how.was_deadline_ns = 77;
		how.id = 77;
		KUNIT_EXPECT_EQ_MSG(test, arm_result(tw, &how), rows[i].says, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, how.was_deadline_ns,
				    rows[i].says == TWHEEL_WAS_PENDING ? was_ns : 0ULL,
				    "row %u", i);
		if (rows[i].says < 0) {
			KUNIT_EXPECT_EQ_MSG(test, how.id, 0ULL, "row %u", i);
			KUNIT_EXPECT_PTR_EQ(test, find_key(tw, KEY), t);
			if (t)
				KUNIT_EXPECT_EQ_MSG(test, t->deadline_ns, was_ns, "row %u", i);
		} else {
			KUNIT_EXPECT_PTR_EQ(test, find_key(tw, KEY), find(tw, how.id));
			KUNIT_EXPECT_EQ_MSG(test, find(tw, how.id)->deadline_ns, 2 * DELAY_NS,
					    "row %u", i);
			if (t)
				KUNIT_EXPECT_PTR_EQ(test, find_key(tw, KEY), t);
		}
		audit(test);
		cancel_key(tw, KEY);
	}
}

/* G3: the timeout of the first element exists when the second is looked up. */
static void the_second_of_two_elements_with_one_key_finds_the_first(struct kunit *test)
{
	struct twheel_arm *how = kunit_kcalloc(test, 4, sizeof(*how), GFP_KERNEL);
	struct tw_ctx *tw = keyed_wheel(test);

	KUNIT_ASSERT_NOT_NULL(test, how);
	how[0] = arm_of_key(1);
	how[1] = arm_of_key(1);
	how[1].expires_ns = DELAY_NS + 7;
	how[2] = arm_of_key(2);
	how[3] = arm_of_key(1);
	how[3].flags = TWHEEL_ARM_ONLY_LATER;
	KUNIT_ASSERT_EQ(test, arm_some(tw, how, 4), 4);
	KUNIT_EXPECT_EQ(test, how[0].result, TWHEEL_CREATED);
	KUNIT_EXPECT_EQ(test, how[1].result, TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, how[1].id, how[0].id);
	KUNIT_EXPECT_EQ(test, how[1].was_deadline_ns, DELAY_NS);
	KUNIT_EXPECT_EQ(test, how[2].result, TWHEEL_CREATED);
	KUNIT_EXPECT_EQ(test, how[3].result, -ERANGE);
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 2);
}

/*
 * G3, G4, G8: whichever access faults, exactly the elements whose results were copied out are
 * done, and an id that may have been copied out without a timeout is never given out again.
 */
static void an_arm_by_key_that_faults_anywhere_has_done_what_it_reported(struct kunit *test)
{
	struct twheel_arm *how = kunit_kcalloc(test, 4, sizeof(*how), GFP_KERNEL);
	struct tw_ctx *tw = keyed_wheel(test);
	bool faulted = true;
	int nr, done, i;
	u64 copied, id[4];

	KUNIT_ASSERT_NOT_NULL(test, how);
	KUNIT_ASSERT_EQ(test, cancel(tw, timeout_id(arm_like(test, PE))), TWHEEL_WAS_PENDING);
	for (nr = 0; faulted; nr++) {
		struct twheel_timeout *second = arm_key(test, 1);

		for (i = 0; i < 4; i++) {
			how[i] = arm_of_key(i);
			how[i].expires_ns = 2 * DELAY_NS;
		}
		how[2].interval_ns = PERIOD_NS;
		faults_begin(nr);
		done = max(arm_some(tw, how, 4), 0);
		faulted = faults_end();
		audit(test);
		KUNIT_ASSERT_EQ(test, faulted, done < 4);
		KUNIT_ASSERT_EQ(test, second->deadline_ns, done < 2 ? DELAY_NS : 2 * DELAY_NS);
		for (i = 0; i < 4; i++)
			KUNIT_ASSERT_EQ(test, !!find_key(tw, i), i < done || i == 1);
		copied = done < 4 && done != 1 ? how[done].id : 0;
		if (copied)
			KUNIT_ASSERT_EQ(test, cancel(tw, copied), -ENOENT);
		for (i = 0; i < 4; i++)
			cancel_key(tw, i);
		for (i = 0; copied && i < 4; i++) {
			id[i] = timeout_id(arm_key(test, i));
			KUNIT_ASSERT_NE(test, id[i], copied);
		}
		for (i = 0; i < 4; i++)
			cancel_key(tw, i);
	}
	KUNIT_EXPECT_GT(test, nr, 3 * 4);
}

/* A page of places, and one for periods, are made outside the lock. */
static void an_arm_by_key_that_needs_memory_gets_it_and_goes_on(struct kunit *test)
{
	struct twheel_arm *how = kunit_kcalloc(test, TWHEEL_BATCH, sizeof(*how), GFP_KERNEL);
	struct tw_ctx *tw = keyed_wheel(test);
	struct twheel_arm one = arm_of_key(1000);
	unsigned int i, j;

	KUNIT_ASSERT_NOT_NULL(test, how);
	KUNIT_EXPECT_EQ(test, twheel_upsert_one(tw, &one, true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 0);
	KUNIT_EXPECT_EQ(test, twheel_upsert_one(tw, &one, false), 0);
	one.interval_ns = PERIOD_NS;
	KUNIT_EXPECT_EQ(test, twheel_upsert_one(tw, &one, true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, twheel_upsert_one(tw, &one, false), 0);
	KUNIT_EXPECT_TRUE(test, timeout_is_periodic(find_key(tw, 1000)));
	for (i = 0; i < 5; i++) {
		int done = 0;

		for (j = 0; j < TWHEEL_BATCH; j++) {
			how[j] = arm_of_key(i * TWHEEL_BATCH + j);
			how[j].slack_ticks = j % 7 == 0;
		}
		while (done < TWHEEL_BATCH) {
			int more = arm_some(tw, how + done, TWHEEL_BATCH - done);

			KUNIT_ASSERT_GT(test, more, 0);
			done += more;
		}
		for (j = 0; j < TWHEEL_BATCH; j++)
			KUNIT_ASSERT_EQ(test, how[j].result, TWHEEL_CREATED);
	}
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 5 * (int)TWHEEL_BATCH + 1);
	expect_charged_for_all(test);
}

/* G4: the place goes back, and the key is free. */
static void an_index_that_has_no_memory_refuses_and_keeps_nothing(struct kunit *test)
{
	struct tw_ctx *tw = keyed_wheel(test);
	unsigned int most = tw->keys.index.max_elems;
	struct twheel_arm how = arm_of_key(2);

	arm_key(test, 1);
	tw->keys.index.max_elems = 1;
	KUNIT_EXPECT_EQ(test, arm_result(tw, &how), -ENOMEM);
	KUNIT_EXPECT_EQ(test, how.id, 0ULL);
	KUNIT_EXPECT_EQ(test, tw->places.nr_taken, 1U);
	KUNIT_EXPECT_NULL(test, find_key(tw, 2));
	audit(test);
	tw->keys.index.max_elems = most;
	arm_key(test, 2);
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 2);
}

/* If the limit of memory is reached at any point, the memory taken before it is given back. */
static void a_key_for_which_there_is_not_all_memory_keeps_nothing(struct kunit *test)
{
	const u64 nr = (u64)PAGES_PER_KEY_PAGE * PLACES_PER_PAGE;
	struct tw_ctx *tw = keyed_wheel(test);
	struct twheel_arm how = arm_of_key(nr);
	long charged, room;
	int err;
	u64 key;

	/* The next key needs a page of nodes, and one of places. */
	for (key = 0; key < nr; key++)
		arm_key(test, key);
	charged = twheel_charged();
	for (room = 0; ; room += PAGE_SIZE) {
		memory_limit(charged + room, charged + room);
		err = arm_result(tw, &how);
		if (err != -ENOSPC)
			break;
		KUNIT_EXPECT_EQ(test, twheel_charged(), charged);
	}
	KUNIT_EXPECT_EQ(test, err, TWHEEL_CREATED);
	KUNIT_EXPECT_GE(test, room, 2 * (long)PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, twheel_charged(), charged + room);
	audit(test);
}

static void a_key_that_is_there_can_still_be_rearmed_at_max_pending(struct kunit *test)
{
	struct twheel_setup setup = usual_setup;
	struct twheel_arm how = arm_of_key(2);
	struct tw_ctx *tw;

	setup.flags = TWHEEL_SETUP_KEYED;
	setup.max_pending = 1;
	tw = wheel_remake(test, &setup);
	arm_key(test, 1);
	KUNIT_EXPECT_EQ(test, arm_result(tw, &how), -EAGAIN);
	how.user_data = 1;
	KUNIT_EXPECT_EQ(test, arm_result(tw, &how), TWHEEL_WAS_PENDING);
	cancel_key(tw, 1);
	how.user_data = 2;
	KUNIT_EXPECT_EQ(test, arm_result(tw, &how), TWHEEL_CREATED);
	/* The place that a key had counts, too. */
	tw->places.max_pending = 2;
	arm_key(test, 3);
	cancel_key(tw, 3);
	tw->places.max_pending = 1;
	how.user_data = 3;
	KUNIT_EXPECT_EQ(test, arm_result(tw, &how), -EAGAIN);
}

static void an_arm_by_key_in_a_draining_wheel_takes_no_key(struct kunit *test)
{
	struct tw_ctx *tw = keyed_wheel(test);
	struct twheel_arm how = arm_of_key(KEY);

	arm_key(test, 1);
	drain(tw);
	KUNIT_EXPECT_EQ(test, arm_result(tw, &how), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, twheel_upsert_one(tw, &how, false), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 1);
	KUNIT_EXPECT_EQ(test, read_one(tw, NULL), 1);
	KUNIT_EXPECT_NULL(test, find_key(tw, KEY));
}

static void rearm_and_query_find_a_timeout_by_its_key(struct kunit *test)
{
	struct tw_ctx *tw = keyed_wheel(test);
	struct twheel_timeout *t = arm_key(test, KEY);
	struct twheel_status status = { .id = KEY };
	struct twheel_arm how = { .id = KEY, .expires_ns = 9 * TICK_NS };

	KUNIT_EXPECT_EQ(test, twheel_rearm_one(tw, &how, true, false), 0);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, 9 * TICK_NS);
	how.id = KEY + 1;
	KUNIT_EXPECT_EQ(test, twheel_rearm_one(tw, &how, true, false), -ENOENT);
	twheel_query(tw, &status, 1, true);
	KUNIT_EXPECT_EQ(test, status.result, 0);
	KUNIT_EXPECT_EQ(test, status.id, timeout_id(t));
	KUNIT_EXPECT_EQ(test, twheel_cancel_one(tw, KEY + 1, true), -ENOENT);
	KUNIT_EXPECT_EQ(test, twheel_cancel_one(tw, KEY, true), 0);
}

/* Pages of nodes go with the last of their pages of places, and come again; all are counted. */
static void pages_of_nodes_come_and_go_with_pages_of_places(struct kunit *test)
{
	struct tw_ctx *tw = keyed_wheel(test);
	struct twheel_timeout *t;
	size_t charged_first = tw->keys.charged;
	int round, most = 0;
	u64 key;

	for (round = 0; round < 3; round++) {
		for (key = 0; key < MAX_PENDING; key++)
			arm_key(test, key * 4096 + round);
		KUNIT_EXPECT_EQ(test, nr_nodes(tw), (int)MAX_PENDING);
		most = max(most, nr_key_pages(tw));
		KUNIT_EXPECT_EQ(test, nr_key_pages(tw), most);
		KUNIT_EXPECT_GT(test, tw->keys.charged, charged_first);
		expect_charged_for_all(test);
		for (key = 0; key < MAX_PENDING; key++) {
			t = find_key(tw, key * 4096 + round);
			KUNIT_ASSERT_NOT_NULL(test, t);
			if (timeout_index(t) % (2 * PLACES_PER_PAGE))
				cancel(tw, timeout_id(t));
		}
		shrink(test);
		expect_charged_for_all(test);
		for (key = 0; key < MAX_PENDING; key++)
			cancel_key(tw, key * 4096 + round);
		shrink(test);
		KUNIT_EXPECT_LE(test, nr_nodes(tw), (int)(UNUSED_SLACK * PLACES_PER_PAGE));
		KUNIT_EXPECT_LT(test, nr_key_pages(tw), most / 2);
		KUNIT_EXPECT_EQ(test, tw->keys.charged, charged_first);
		expect_charged_for_all(test);
	}
}

/* kvmalloc() takes this much. If memory is fragmented, it takes less, in single pages. */
static void an_index_is_charged_for_all_the_memory_that_it_takes(struct kunit *test)
{
	struct rhashtable_params params = { .nelem_hint = 1, .max_size = 1 << 18 };
	unsigned long nr;
	void *table;

	for (nr = BUCKETS_MIN; nr <= params.max_size; nr *= 2) {
		table = kvmalloc(struct_size((struct bucket_table *)NULL, buckets, nr), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, table);
		if (!is_vmalloc_addr(table))
			KUNIT_EXPECT_GE(test, index_bytes(&params, nr), ksize(table));
		kvfree(table);
	}
}

/* The hash table doubles with the key after these; it is charged before that. */
static void an_index_that_may_not_grow_refuses_a_key_and_keeps_nothing(struct kunit *test)
{
	const u32 nr = rounddown(roundup_pow_of_two(FIRST_KEYS) / 4 * 3, KEYS_PER_PAGE);
	struct tw_ctx *tw = keyed_wheel(test);
	struct twheel_arm how = arm_of_key(nr);
	u64 key;

	for (key = 0; key < nr; key++)
		arm_key(test, key);
	memory_limit(twheel_charged() + 8 * PAGE_SIZE, LONG_MAX);
	KUNIT_EXPECT_EQ(test, arm_result(tw, &how), -ENOSPC);
	KUNIT_EXPECT_EQ(test, arm_result(tw, &how), -ENOSPC);
	limits_apply();
	expect_charged_for_all(test);
	audit(test);
	KUNIT_EXPECT_EQ(test, arm_result(tw, &how), TWHEEL_CREATED);
	expect_charged_for_all(test);
}

/* Another key takes the first free place of the page, which is beside it. */
static void a_key_takes_its_place_again_beside_one_that_another_key_took(struct kunit *test)
{
	struct twheel_timeout *t[3];
	unsigned int i;

	keyed_wheel(test);
	for (i = 0; i < ARRAY_SIZE(t); i++)
		t[i] = arm_key(test, KEY + i);
	end_keys(test, KEYS_CANCELLED, ARRAY_SIZE(t));
	KUNIT_EXPECT_PTR_EQ(test, arm_key(test, KEY + 3), t[0]);
	KUNIT_EXPECT_PTR_EQ(test, arm_key(test, KEY + 2), t[2]);
	audit(test);
	KUNIT_EXPECT_PTR_EQ(test, arm_key(test, KEY + 1), t[1]);
	KUNIT_EXPECT_TRUE(test, arm_key(test, KEY) != t[0]);
	audit(test);
}

/* A page of nodes serves three pages of places: any of these may be the last one left. */
static void a_page_of_nodes_stays_with_any_page_of_places(struct kunit *test)
{
	unsigned int stays, i;

	for (stays = 0; stays < PAGES_PER_KEY_PAGE; stays++) {
		struct tw_ctx *tw = keyed_wheel(test);

		for (i = 0; i < MAX_PENDING; i++)
			arm_key(test, KEY + i);
		for (i = MAX_PENDING; i--;)
			if (i != stays * PLACES_PER_PAGE)
				cancel_key(tw, KEY + i);
		shrink(test);
		for (i = 0; i < PAGES_PER_KEY_PAGE; i++)
			KUNIT_EXPECT_EQ(test, !!page_of_nr(tw, i), i == stays);
		audit(test);
		expect_charged_for_all(test);
	}
}

/* The same as a_rearm_without_memory_for_one_element_finds_what_the_next_one_needs(), with keys. */
static void an_arm_without_memory_for_one_key_finds_what_the_next_one_needs(struct kunit *test)
{
	struct twheel_arm how[2] = { arm_of(PE, 0), arm_of(PE, 0) };
	struct tw_ctx *tw = keyed_wheel(test);
	unsigned int i;
	int done;

	for (i = 0; i < 4 * PLACES_PER_PAGE; i++) {
		struct twheel_timeout *t = arm_key(test, KEY + i);
		u32 nr = timeout_index(t) / PLACES_PER_PAGE;

		if (nr == 1)
			how[1].user_data = KEY + i;
		else if (nr == 2)
			how[0].user_data = KEY + i;
	}
	KUNIT_ASSERT_EQ(test, twheel_extra_provide(tw, 0, false), 0);
	memory_limit(twheel_charged(), LONG_MAX);
	done = arm_some(tw, how, 2);
	KUNIT_ASSERT_GT(test, done, 0);
	if (done == 1)
		KUNIT_ASSERT_EQ(test, arm_some(tw, how + 1, 1), 1);
	KUNIT_EXPECT_EQ(test, how[0].result, -ENOSPC);
	KUNIT_EXPECT_EQ(test, how[1].result, TWHEEL_WAS_PENDING);
}

static struct kunit_case keys_cases[] = {
	KUNIT_CASE(a_key_leads_to_its_timeout_until_that_ends),
	KUNIT_CASE(a_key_that_is_armed_again_takes_its_place_again),
	KUNIT_CASE(a_key_takes_the_last_free_place_of_a_page_again),
	KUNIT_CASE(a_place_that_is_taken_for_another_key_forgets_the_first),
	KUNIT_CASE(a_key_whose_place_is_gone_takes_another),
	KUNIT_CASE(arm_makes_a_timeout_or_rearms_the_one_with_the_key),
	KUNIT_CASE(the_second_of_two_elements_with_one_key_finds_the_first),
	KUNIT_CASE(an_arm_by_key_that_faults_anywhere_has_done_what_it_reported),
	KUNIT_CASE(an_arm_by_key_that_needs_memory_gets_it_and_goes_on),
	KUNIT_CASE(an_index_that_has_no_memory_refuses_and_keeps_nothing),
	KUNIT_CASE(a_key_for_which_there_is_not_all_memory_keeps_nothing),
	KUNIT_CASE(an_index_is_charged_for_all_the_memory_that_it_takes),
	KUNIT_CASE(an_index_that_may_not_grow_refuses_a_key_and_keeps_nothing),
	KUNIT_CASE(a_key_that_is_there_can_still_be_rearmed_at_max_pending),
	KUNIT_CASE(an_arm_by_key_in_a_draining_wheel_takes_no_key),
	KUNIT_CASE(rearm_and_query_find_a_timeout_by_its_key),
	KUNIT_CASE(pages_of_nodes_come_and_go_with_pages_of_places),
	KUNIT_CASE(a_key_takes_its_place_again_beside_one_that_another_key_took),
	KUNIT_CASE(a_page_of_nodes_stays_with_any_page_of_places),
	KUNIT_CASE(an_arm_without_memory_for_one_key_finds_what_the_next_one_needs),
	{}
};

ENGINE_SUITE(keys);
