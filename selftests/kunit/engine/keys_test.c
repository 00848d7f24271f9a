// SPDX-License-Identifier: GPL-2.0
/*
 * engine/keys.c: the keys of a keyed wheel
 */

#define KEY	42ULL

static struct twheel *keyed_wheel(struct kunit *test)
{
	return wheel_with(test, flags, TWHEEL_SETUP_KEYED);
}

static struct twheel_arm arm_of_key(u64 key)
{
	return (struct twheel_arm) { .user_data = key, .expires_ns = DELAY_NS };
}

/* Arms a timeout whose key is free, and returns it. */
static struct twheel_timeout *arm_key(struct kunit *test, u64 key)
{
	struct twheel_arm how = arm_of_key(key);
	struct twheel *tw = test->priv;
	struct twheel_arming arming;
	unsigned int nr_armed = 0;

	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, &how, 1, &arming), 0);
	KUNIT_ASSERT_EQ(test, how.result, TWHEEL_CREATED);
	KUNIT_ASSERT_EQ(test, twheel_arm_commit_keyed(tw, &arming, 1, &nr_armed), 0);
	KUNIT_ASSERT_EQ(test, nr_armed, 1U);
	return look_at(tw, (u32)how.id);
}

static int nr_nodes(const struct twheel *tw)
{
	return atomic_read(&tw->keys.index.nelems);
}

static void a_key_leads_to_its_timeout_until_that_ends(struct kunit *test)
{
	struct twheel *tw = keyed_wheel(test);
	struct twheel_timeout *t = arm_key(test, KEY);
	u64 id = id_of(t);

	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, KEY), id);
	enter(tw);
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, KEY), id);
	expire_at(tw, START_NS);
	KUNIT_EXPECT_TRUE(test, state_is_unread(timeout_state(t)));
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, KEY), id);
	KUNIT_EXPECT_EQ(test, read_one(tw, NULL), 1);
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, KEY), 0ULL);
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 0);
}

/* G3: two ARMs have found the key free, and one of them is first. */
static void of_two_arms_that_were_prepared_one_is_published(struct kunit *test)
{
	struct twheel *tw = keyed_wheel(test);
	struct twheel_arm first = arm_of_key(KEY), second = arm_of_key(KEY);
	struct twheel_arming arming, other;
	unsigned int nr_armed = 7;
	s64 before[NR_TALLIES];

	/* So that there are places. */
	KUNIT_ASSERT_EQ(test, cancel(tw, id_of(arm_key(test, KEY))), TWHEEL_WAS_PENDING);
	pass(tw);
	tally_take(tw, before);
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, &first, 1, &arming), 0);
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, &second, 1, &other), 0);
	KUNIT_EXPECT_EQ(test, twheel_arm_commit_keyed(tw, &other, 1, &nr_armed), 0);
	KUNIT_EXPECT_EQ(test, nr_armed, 1U);
	KUNIT_EXPECT_EQ(test, twheel_arm_commit_keyed(tw, &arming, 1, &nr_armed), -EEXIST);
	KUNIT_EXPECT_EQ(test, nr_armed, 0U);
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, KEY), second.id);
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 1);
	expect_delta(test, before, (s8[NR_TALLIES]) {
		[LIVE] = 1, [PENDING] = 1, [ACCEPTED] = 1, [INBOX] = 1,
		[ROOM] = 1, [PLACES] = -1 });
}

/* The first of a batch is not published yet when the second is looked at. */
static void of_two_in_a_batch_the_second_finds_the_first(struct kunit *test)
{
	struct twheel *tw = keyed_wheel(test);
	struct twheel_arm how[3] = { arm_of_key(1), arm_of_key(1), arm_of_key(2) };
	struct twheel_arming arming;
	unsigned int nr_armed = 7;

	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, how, 3, &arming), 0);
	KUNIT_EXPECT_EQ(test, twheel_arm_commit_keyed(tw, &arming, 3, &nr_armed), -EEXIST);
	KUNIT_EXPECT_EQ(test, nr_armed, 1U);
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, 1), how[0].id);
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, 2), 0ULL);
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 1);
}

/* Its node stays in the index until the kthread comes by, and stands in nobody's way. */
static void the_key_of_a_timeout_that_is_dead_in_the_inbox_is_free(struct kunit *test)
{
	struct twheel *tw = keyed_wheel(test);
	struct twheel_timeout *dead = arm_key(test, KEY), *t;

	KUNIT_ASSERT_EQ(test, cancel(tw, id_of(dead)), TWHEEL_WAS_PENDING);
	KUNIT_ASSERT_EQ(test, state_phase(timeout_state(dead)), PHASE_DEAD);
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, KEY), 0ULL);
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 1);
	t = arm_key(test, KEY);
	KUNIT_EXPECT_PTR_NE(test, t, dead);
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, KEY), id_of(t));
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 1);
	/* The kthread gives the place of the dead one up, and leaves the key where it is. */
	pass(tw);
	KUNIT_EXPECT_TRUE(test, state_is_free(timeout_state(dead)));
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, KEY), id_of(t));
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 1);
}

/* The thread that ended it has changed its state, and waits for keys.lock. */
static void the_key_of_a_timeout_that_is_being_ended_is_free(struct kunit *test)
{
	struct twheel *tw = keyed_wheel(test);
	struct twheel_timeout *ended = arm_key(test, KEY), *t;
	u64 state;

	enter(tw);
	state = timeout_state(ended);
	atomic64_set(&ended->state, state_freed(state));
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, KEY), 0ULL);
	t = arm_key(test, KEY);
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, KEY), id_of(t));
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 1);
	/* It comes by: what it gives up is its own node, which is out already. */
	atomic64_set(&ended->state, state);
	KUNIT_EXPECT_EQ(test, cancel(tw, id_of(ended)), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, KEY), id_of(t));
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 1);
}

static void a_live_timeout_keeps_its_key_in_each_of_its_states(struct kunit *test)
{
	struct twheel *tw = keyed_wheel(test);
	struct twheel_timeout *t = arm_key(test, KEY);
	struct twheel_arming arming;
	unsigned int i, nr_armed;
	u64 rest, id = id_of(t);

	enter(tw);
	rest = timeout_state(t);
	for (i = 0; i < 3; i++) {
		struct twheel_arm how = arm_of_key(KEY);
		u64 states[] = { rest, state_rearming(rest), state_next(rest, PHASE_UNREAD, 0) };

		atomic64_set(&t->state, states[i]);
		KUNIT_EXPECT_EQ(test, twheel_key_id(tw, KEY), id);
		KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, &how, 1, &arming), 0);
		KUNIT_EXPECT_EQ(test, twheel_arm_commit_keyed(tw, &arming, 1, &nr_armed), -EEXIST);
		KUNIT_EXPECT_EQ(test, nr_armed, 0U);
		atomic64_set(&t->state, rest);
	}
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 1);
}

/* A look-up that has found the node of a key may come to the place when that is another's. */
static void a_place_with_another_key_is_not_what_was_looked_for(struct kunit *test)
{
	struct twheel *tw = keyed_wheel(test);
	struct twheel_timeout *t = arm_key(test, KEY);

	KUNIT_EXPECT_EQ(test, live_id(t, KEY), id_of(t));
	KUNIT_EXPECT_EQ(test, live_id(t, KEY + 1), 0ULL);
	enter(tw);
	KUNIT_EXPECT_EQ(test, live_id(t, KEY), id_of(t));
	KUNIT_EXPECT_EQ(test, live_id(t, KEY - 1), 0ULL);
}

/* G4: the places go back, and the keys are free. */
static void an_index_that_has_no_memory_refuses_and_keeps_nothing(struct kunit *test)
{
	struct twheel *tw = keyed_wheel(test);
	struct twheel_arm how[2] = { arm_of_key(1), arm_of_key(2) };
	unsigned int nr_armed = 7, most = tw->keys.index.max_elems;
	struct twheel_arming arming;

	tw->keys.index.max_elems = 1;
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, how, 2, &arming), 0);
	KUNIT_EXPECT_EQ(test, twheel_arm_commit_keyed(tw, &arming, 2, &nr_armed), -ENOMEM);
	KUNIT_EXPECT_EQ(test, nr_armed, 1U);
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, 1), how[0].id);
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, 2), 0ULL);
	tw->keys.index.max_elems = most;
	arm_key(test, 2);
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 2);
}

static void an_arm_that_drain_has_overtaken_takes_no_key(struct kunit *test)
{
	struct twheel *tw = keyed_wheel(test);
	struct twheel_arm how = arm_of_key(KEY);
	struct twheel_arming arming;
	unsigned int nr_armed = 7;

	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, &how, 1, &arming), 0);
	drain(tw);
	KUNIT_EXPECT_EQ(test, twheel_arm_commit_keyed(tw, &arming, 1, &nr_armed), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, nr_armed, 0U);
	KUNIT_EXPECT_EQ(test, twheel_key_id(tw, KEY), 0ULL);
	KUNIT_EXPECT_EQ(test, nr_nodes(tw), 0);
}

/* An entry may be refused for a deadline that the one before it has just replaced. */
static void a_bound_that_the_entry_before_has_moved_is_looked_at_again(struct kunit *test)
{
	struct twheel *tw = keyed_wheel(test);
	u64 id = id_of(arm_key(test, KEY));
	struct twheel_arm how[2] = {
		{ .id = id, .expires_ns = TICK_NS },
		{ .id = id, .expires_ns = 2 * TICK_NS, .flags = TWHEEL_ARM_ONLY_LATER },
	};
	struct twheel_rearming rearming;
	unsigned int nr_ok = 0;

	KUNIT_ASSERT_EQ(test, twheel_upsert_prepare(tw, how, &rearming, 2), 0);
	KUNIT_EXPECT_EQ(test, how[1].result, -ERANGE);
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, how, &rearming, 2, &nr_ok), 1);
	KUNIT_EXPECT_EQ(test, nr_ok, 1U);
	KUNIT_ASSERT_EQ(test, twheel_upsert_prepare(tw, &how[1], &rearming, 1), 0);
	KUNIT_EXPECT_EQ(test, how[1].result, TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, &how[1], &rearming, 1, &nr_ok), 1);
}

/* Its event was revoked meanwhile, and one of another deadline waits, in the same state. */
static void an_event_that_was_replaced_by_one_that_looks_the_same_is_told_apart(struct kunit *test)
{
	struct twheel *tw = keyed_wheel(test);
	struct twheel_timeout *t = arm_key(test, KEY);
	struct twheel_arm how = { .id = id_of(t), .expires_ns = DELAY_NS };
	struct twheel_rearming rearming;
	unsigned int nr_ok = 0;

	enter(tw);
	expire_at(tw, START_NS);
	KUNIT_ASSERT_EQ(test, twheel_upsert_prepare(tw, &how, &rearming, 1), 0);
	KUNIT_EXPECT_EQ(test, how.result, TWHEEL_WAS_UNREAD);
	KUNIT_EXPECT_EQ(test, how.was_deadline_ns, DELAY_NS);
	t->deadline_ns += TICK_NS;
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, &how, &rearming, 1, &nr_ok), 0);
	KUNIT_EXPECT_EQ(test, nr_ok, 0U);
	KUNIT_ASSERT_EQ(test, twheel_upsert_prepare(tw, &how, &rearming, 1), 0);
	KUNIT_EXPECT_EQ(test, how.was_deadline_ns, DELAY_NS + TICK_NS);
	KUNIT_EXPECT_EQ(test, twheel_rearm_commit(tw, &how, &rearming, 1, &nr_ok), 1);
}

/*
 * Pages of nodes go with their pages of places, and come again; all are accounted for.  A
 * page of places goes before or after the one behind it, with which it shares nodes.
 */
static void pages_of_nodes_come_and_go_with_pages_of_places(struct kunit *test)
{
	struct twheel *tw = keyed_wheel(test);
	int round, most = 0;
	u64 key, id;

	for (round = 0; round < 3; round++) {
		for (key = 0; key < MAX_PENDING; key++)
			arm_key(test, key * 4096 + round);
		KUNIT_EXPECT_EQ(test, nr_nodes(tw), MAX_PENDING);
		pass(tw);
		most = max(most, nr_key_pages(tw));
		KUNIT_EXPECT_EQ(test, nr_key_pages(tw), most);
		expect_charged_for_all(test);
		for (key = 0; key < MAX_PENDING; key++) {
			id = twheel_key_id(tw, key * 4096 + round);
			if ((u32)id % (2 * PLACES_PER_PAGE))
				KUNIT_ASSERT_EQ(test, cancel(tw, id), TWHEEL_WAS_PENDING);
		}
		shrink(test);
		expect_charged_for_all(test);
		for (key = 0; key < MAX_PENDING; key++) {
			id = twheel_key_id(tw, key * 4096 + round);
			if (id)
				KUNIT_ASSERT_EQ(test, cancel(tw, id), TWHEEL_WAS_PENDING);
		}
		KUNIT_EXPECT_EQ(test, nr_nodes(tw), 0);
		shrink(test);
		KUNIT_EXPECT_LT(test, nr_key_pages(tw), most / 2);
		expect_charged_for_all(test);
	}
}

static struct kunit_case keys_cases[] = {
	KUNIT_CASE(a_key_leads_to_its_timeout_until_that_ends),
	KUNIT_CASE(of_two_arms_that_were_prepared_one_is_published),
	KUNIT_CASE(of_two_in_a_batch_the_second_finds_the_first),
	KUNIT_CASE(the_key_of_a_timeout_that_is_dead_in_the_inbox_is_free),
	KUNIT_CASE(the_key_of_a_timeout_that_is_being_ended_is_free),
	KUNIT_CASE(a_live_timeout_keeps_its_key_in_each_of_its_states),
	KUNIT_CASE(a_place_with_another_key_is_not_what_was_looked_for),
	KUNIT_CASE(an_index_that_has_no_memory_refuses_and_keeps_nothing),
	KUNIT_CASE(an_arm_that_drain_has_overtaken_takes_no_key),
	KUNIT_CASE(a_bound_that_the_entry_before_has_moved_is_looked_at_again),
	KUNIT_CASE(an_event_that_was_replaced_by_one_that_looks_the_same_is_told_apart),
	KUNIT_CASE(pages_of_nodes_come_and_go_with_pages_of_places),
	{}
};

ENGINE_SUITE(keys);
