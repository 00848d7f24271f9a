// SPDX-License-Identifier: GPL-2.0
/*
 * engine/pages.c and account.c: the memory that a wheel and its user are charged for
 */

static void all_memory_is_charged_and_given_back(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	/* In addition to the wheel, the account of its user takes some memory. */
	long beside = twheel_charged() - atomic_long_read(&tw->memory.charged);
	u64 *ids;

	KUNIT_EXPECT_GT(test, beside, 0L);
	expect_charged_for_all(test);
	KUNIT_EXPECT_EQ(test, cancel(tw, timeout_id(arm_like(test, PE))), TWHEEL_WAS_PENDING);
	expect_charged_for_all(test);
	ids = arm_all(test);
	expect_charged_for_all(test);
	KUNIT_ASSERT_EQ(test, twheel_map_words(tw), 0);
	expect_charged_for_all(test);
	cancel_ids(tw, ids, MAX_PENDING);
	shrink(test);
	expect_charged_for_all(test);
	KUNIT_EXPECT_EQ(test, twheel_charged() - atomic_long_read(&tw->memory.charged), beside);
}

/* Each kind of memory, in the order in which a wheel comes to need it. */
static void a_limit_of_memory_says_enospc_and_takes_nothing(struct kunit *test)
{
	const size_t big = MAX_PENDING * sizeof(struct twheel_timeout);
	struct tw_ctx *tw = test->priv, *other;
	long charged = twheel_charged(), all, each;
	s64 before[NR_TALLIES];
	struct twheel_arm how;
	u64 id;
	int i;

	for (i = 0; i < 2; i++) {
		/* First the limit of the user is reached, then that of all users. */
		all = i ? charged + big : charged;
		each = i ? charged : charged + big;
		tally_take(tw, before);
		memory_limit(all, each);
		KUNIT_EXPECT_EQ(test, arm_plain(tw, &id), -ENOSPC);
		other = twheel_create();
		KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(other), -ENOSPC);
		if (!IS_ERR(other))
			twheel_put(other);
		KUNIT_EXPECT_EQ(test, tw->memory.user->nr_wheels, 1UL);
		/* If a user were never freed, the code below would wait for ever. */
		tw->memory.user->nr_wheels = 1;
		expect_delta(test, before, nothing);
		KUNIT_EXPECT_EQ(test, tw->places.pages.nr, 0U);
		KUNIT_EXPECT_EQ(test, twheel_charged(), charged);
	}
	memory_limit(charged + big, charged + big);
	KUNIT_EXPECT_EQ(test, arm_plain(tw, &id), 0);

	charged = twheel_charged();
	memory_limit(charged, charged + big);
	how = arm_of(PE, 0);
	KUNIT_EXPECT_EQ(test, rearm(tw, id, &how), -ENOSPC);
	KUNIT_EXPECT_EQ(test, twheel_map_words(tw), -ENOSPC);
	/* G4: the timeout is still pending, and a one-shot needs no memory. */
	how = arm_of(0, 0);
	KUNIT_EXPECT_EQ(test, rearm(tw, id, &how), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, twheel_charged(), charged);
}

/* Let another thread charge memory while a charge is refused; this is its result. */
static struct twheel_memory *beside;
static int beside_says;

static void charge_beside(void)
{
	log_call = NULL;
	beside_says = twheel_memory_charge(beside, PAGE_SIZE);
	if (!beside_says)
		twheel_memory_uncharge(beside, PAGE_SIZE);
}

/*
 * If it were, an ARM for which there is memory could fail beside a SETUP for which there is none.
 */
static void a_charge_that_is_refused_is_in_nobodys_way(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	long charged = twheel_charged(), room = charged + PAGE_SIZE;
	int i;

	beside = &tw->memory;
	for (i = 0; i < 2; i++) {
		/* First the limit of the user is reached, then that of all users. */
		memory_limit(i ? room : LONG_MAX, i ? room + PAGE_SIZE : room);
		beside_says = 1;
		log_call = charge_beside;
		KUNIT_EXPECT_EQ(test, twheel_memory_charge(beside, 2 * PAGE_SIZE), -ENOSPC);
		log_call = NULL;
		KUNIT_EXPECT_EQ(test, beside_says, 0);
		KUNIT_EXPECT_EQ(test, twheel_charged(), charged);
	}
}

/* If it were, each ENOMEM would reduce the limits for ever. */
static void memory_that_is_not_to_be_had_is_not_charged(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	long charged = twheel_charged(), of_wheel = atomic_long_read(&tw->memory.charged);
	void *memory;

	no_memory = true;
	KUNIT_EXPECT_EQ(test, twheel_page_get(&tw->memory, &memory), -ENOMEM);
	KUNIT_EXPECT_EQ(test, twheel_area_get(&tw->memory, PAGE_SIZE, &memory), -ENOMEM);
	KUNIT_EXPECT_EQ(test, twheel_area_get(&tw->memory, PAGE_SIZE + 1, &memory), -ENOMEM);
	no_memory = false;
	KUNIT_EXPECT_EQ(test, twheel_charged(), charged);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged), of_wheel);
}

/* Try one page, and more than can be had side by side; the case's exit checks the cgroup. */
static void memory_of_any_size_is_cleared(struct kunit *test)
{
	static const size_t sizes[] = {
		1, PAGE_SIZE, PAGE_SIZE + 1, AREA_CONTIGUOUS, AREA_CONTIGUOUS + 1, 100 * PAGE_SIZE,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		void *area = twheel_area_alloc(sizes[i]);

		KUNIT_ASSERT_NOT_NULL(test, area);
		KUNIT_EXPECT_NULL(test, memchr_inv(area, 0, sizes[i]));
		twheel_area_free(area, sizes[i]);
	}
}

static struct kunit_case memory_cases[] = {
	KUNIT_CASE(all_memory_is_charged_and_given_back),
	KUNIT_CASE(memory_that_is_not_to_be_had_is_not_charged),
	KUNIT_CASE(a_limit_of_memory_says_enospc_and_takes_nothing),
	KUNIT_CASE(a_charge_that_is_refused_is_in_nobodys_way),
	KUNIT_CASE(memory_of_any_size_is_cleared),
	{}
};

ENGINE_SUITE(memory);
