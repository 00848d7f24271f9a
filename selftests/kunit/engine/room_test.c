// SPDX-License-Identifier: GPL-2.0
/*
 * engine/room.c: promised entries, the chunks for them, and sweeps
 */

/* G4: whatever room is promised, the chunks for it are there or on their way. */
static void room_is_backed_by_chunks(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int nr, total = 0;

	for (nr = 1; nr < 400; nr += nr / 2 + 1) {
		KUNIT_ASSERT_EQ(test, twheel_room_take(tw, nr), 0);
		total += nr;
		KUNIT_ASSERT_EQ(test, atomic_long_read(&tw->room.used), (long)total);
		KUNIT_ASSERT_GE(test, tw->room.provided, (long)total);
		KUNIT_ASSERT_GE(test, tw->room.nr_chunk_pages,
				twheel_wheel_pages_for(&tw->wheel, tw->room.provided));
	}
	twheel_gifts_accept(tw);
	KUNIT_EXPECT_EQ(test, tw->wheel.nr_free,
			tw->room.nr_chunk_pages * TWHEEL_CHUNKS_PER_PAGE);
	room_give(&tw->room, total);
}

/*
 * The places for 2^30 timeouts, beside their entries as many stale ones as a sweep leaves,
 * and what a few callers ask for at the same time: no memory, but the same sums.
 */
static void room_is_counted_right_up_to_the_largest_wheel(struct kunit *test)
{
	const u64 most = 2 * (2ULL << 30) + SWEEP_SLACK;
	struct twheel *tw = test->priv;
	u64 had = tw->room.nr_chunk_pages;
	long was = tw->room.provided;
	u64 used;

	/* As if these pages were there; none is touched. */
	tw->room.nr_chunk_pages = 1ULL << 40;
	for (used = most - 200; used < 2 * most + 200; used += 50) {
		if (used == most + 200)
			used = 2 * most - 200;
		atomic_long_set(&tw->room.used, used - 50);
		KUNIT_ASSERT_EQ(test, twheel_room_take(tw, 50), 0);
		KUNIT_ASSERT_EQ(test, (u64)atomic_long_read(&tw->room.used), used);
		KUNIT_ASSERT_GE(test, tw->room.provided, (long)used);
		KUNIT_ASSERT_GE(test, twheel_wheel_pages_for(&tw->wheel, tw->room.provided),
				used / TWHEEL_CHUNK_ENTRIES / TWHEEL_CHUNKS_PER_PAGE);
		KUNIT_EXPECT_TRUE(test, room_is_wasted(tw));
	}
	atomic_long_set(&tw->room.used, 0);
	tw->room.provided = was;
	tw->room.nr_chunk_pages = had;
}

/* Nobody is refused for want of what is provided ahead. */
static void where_there_is_no_memory_the_chunks_are_used_to_the_last(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int round, nr;

	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
	for (round = 1; round < 5; round++) {
		limits_init();
		KUNIT_ASSERT_EQ(test, twheel_room_take(tw, 1000 * round + 60), 0);
		twheel_limit_memory(twheel_charged(), LONG_MAX);
		for (nr = 0; !twheel_room_take(tw, 1) && nr < 10000; nr++)
			;
		KUNIT_EXPECT_GT(test, twheel_wheel_pages_for(&tw->wheel,
							     1000 * round + 60 + nr + 1),
				tw->room.nr_chunk_pages);
		room_give(&tw->room, 1000 * round + 60 + nr);
	}
	limits_init();
}

/* G7: stale entries are bounded by the places and SWEEP_SLACK. */
static void entries_of_the_moved_are_swept(struct kunit *test)
{
	const unsigned int nr = SWEEP_SLACK + 500;
	struct twheel *tw = test->priv;
	u64 *ids = kunit_kcalloc(test, nr, sizeof(*ids), GFP_KERNEL);
	unsigned int i, round, passes = 0;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	/* It lives on, and nobody looks ahead behind it. */
	arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS });
	arm_many(test, nr, ids);
	for (round = 0; round < 2; round++) {
		pass(tw);
		for (i = 0; i < nr; i++) {
			struct twheel_arm how = { .expires_ns = DELAY_NS - round - 1 };

			KUNIT_ASSERT_EQ(test, rearm(tw, ids[i], &how), TWHEEL_WAS_PENDING);
		}
	}
	KUNIT_EXPECT_GT(test, atomic_long_read(&tw->room.used),
			2L * arena_size(&tw->arena) + SWEEP_SLACK);
	do {
		pass(tw);
		KUNIT_ASSERT_LT(test, ++passes, 100U);
	} while (tw->pass.sweeping || work_take(tw));
	KUNIT_EXPECT_LE(test, atomic_long_read(&tw->room.used),
			2L * arena_size(&tw->arena) + SWEEP_SLACK);
	audit(test);
	tw->clock.virtual_now_ns += 10 * TICK_NS;
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, nr + 1);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 0L);
}

/* Leaves one place free: what is cancelled there is followed by what is armed. */
static void fill_all_but_one(struct kunit *test)
{
	unsigned int i;

	for (i = 1; i < PLACES_PER_PAGE; i++)
		arm(test, &(struct twheel_arm) { .expires_ns = TWHEEL_TIME_NEVER });
	enter(test->priv);
}

#define BESIDE	((long)PLACES_PER_PAGE - 1)

/* G7: a timeout that is armed in a place whose entry will do needs nothing else. */
static void a_free_place_keeps_its_entry(struct kunit *test)
{
	/* There is no other free place. */
	const unsigned int nr = SWEEP_SLACK / PLACES_PER_PAGE * PLACES_PER_PAGE - 1;
	struct twheel *tw = test->priv;
	u64 *ids = kunit_kcalloc(test, nr, sizeof(*ids), GFP_KERNEL);
	unsigned int i, round;
	u64 nr_entries;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	/* It lives on, and nobody looks ahead behind it. */
	arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS });
	arm_many(test, nr, ids);
	pass(tw);
	nr_entries = tw->wheel.nr_entries;
	for (round = 0; round < 5; round++) {
		for (i = 0; i < nr; i++)
			KUNIT_ASSERT_EQ(test, cancel(tw, ids[i]), TWHEEL_WAS_PENDING);
		KUNIT_EXPECT_FALSE(test, work_take(tw));
		arm_many(test, nr, ids);
		KUNIT_EXPECT_EQ(test, atomic_read(&tw->inbox.len), 0);
		KUNIT_EXPECT_FALSE(test, work_take(tw));
		KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), (long)nr + 1);
		pass(tw);
		KUNIT_EXPECT_EQ(test, tw->wheel.nr_entries, nr_entries);
		audit(test);
	}
	tw->clock.virtual_now_ns += 10 * TICK_NS;
	pass(tw);
	KUNIT_EXPECT_EQ(test, tw->events.nr_unread, nr + 1);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 0L);
}

/* One that is due before the entry comes up has an entry of its own. */
static void an_entry_that_would_come_too_late_is_not_used(struct kunit *test)
{
	struct twheel *tw = test->priv;
	static const struct {
		u64 expires_ns;
		u32 slack_ticks;
		bool used;
	} rows[] = {
		{ DELAY_NS, 0, true }, { DELAY_NS + 1, 0, true }, { DELAY_NS - 1, 0, false },
		{ 0, 0, false }, { DELAY_NS, 1, false }, { DELAY_NS + 1, 7, false },
	};
	unsigned int i;

	fill_all_but_one(test);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct twheel_timeout *t = arm_like(test, 0);
		u64 deadline_ns = tw->clock.virtual_now_ns + rows[i].expires_ns;
		u64 id = id_of(t);

		pass(tw);
		cancel(tw, id);
		KUNIT_EXPECT_TRUE(test, state_has_entry(timeout_state(t)));
		KUNIT_ASSERT_PTR_EQ(test, t, arm(test, &(struct twheel_arm) {
			.expires_ns = rows[i].expires_ns,
			.slack_ticks = rows[i].slack_ticks }));
		KUNIT_EXPECT_EQ_MSG(test, state_is_armed(timeout_state(t)), rows[i].used,
				    "row %u", i);
		KUNIT_EXPECT_EQ(test, t->deadline_ns, deadline_ns);
		KUNIT_EXPECT_NE(test, id_of(t), id);
		tw->clock.virtual_now_ns += 16 * TICK_NS;
		pass(tw);
		KUNIT_EXPECT_EQ(test, read_one(tw, NULL), 1);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), BESIDE);
		audit(test);
	}
}

/*
 * What counts is the time for which the wheel has the entry, and not the last deadline: that
 * was moved later, and has slack that the entry does not have.
 */
static void an_entry_of_before_the_last_deadline_is_used(struct kunit *test)
{
	struct twheel *tw = test->priv;
	static const struct {
		u64 expires_ns;
		bool used;
	} rows[] = {
		{ DELAY_NS, true }, { 7 * TICK_NS, true }, { DELAY_NS - 1, false },
	};
	unsigned int i, moved;

	fill_all_but_one(test);
	for (i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
		struct twheel_timeout *t = arm_like(test, 0);
		u64 deadline_ns, id = id_of(t), expires_ns = rows[i / 2].expires_ns;

		/* The kthread moves the entry behind the new deadline, where it looks ahead. */
		moved = i % 2;
		enter(tw);
		KUNIT_ASSERT_EQ(test, rearm(tw, id, &(struct twheel_arm) {
			.expires_ns = 20 * TICK_NS, .slack_ticks = 15 }), TWHEEL_WAS_PENDING);
		KUNIT_EXPECT_TRUE(test, state_is_armed(timeout_state(t)));
		if (moved)
			pass(tw);
		cancel(tw, id);
		deadline_ns = tw->clock.virtual_now_ns + expires_ns;
		KUNIT_ASSERT_PTR_EQ(test, t, arm(test, &(struct twheel_arm) {
			.expires_ns = expires_ns }));
		KUNIT_EXPECT_EQ_MSG(test, state_is_armed(timeout_state(t)),
				    rows[i / 2].used && !moved, "row %u", i);
		KUNIT_EXPECT_EQ(test, tick_of_expiry(test, t),
				DIV_ROUND_UP(deadline_ns, TICK_NS));
		KUNIT_EXPECT_EQ(test, read_one(tw, NULL), 1);
		/* What is left of the one that was not used. */
		tw->clock.virtual_now_ns += 64 * TICK_NS;
		pass(tw);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), BESIDE);
		audit(test);
	}
}

/* The kthread takes the entry between ARM's look and its publication. */
static void an_entry_that_was_dropped_is_not_used(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t;
	struct twheel_arm how = arm_of(0, 0);
	struct twheel_arming arming = {};

	fill_all_but_one(test);
	t = arm_like(test, 0);
	pass(tw);
	cancel(tw, id_of(t));
	how.expires_ns = 4 * DELAY_NS;
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, &how, 1, &arming), 0);
	KUNIT_EXPECT_TRUE(test, state_has_entry(timeout_state(t)));
	expire_at(tw, tw->clock.virtual_now_ns + 2 * DELAY_NS);
	KUNIT_EXPECT_FALSE(test, state_has_entry(timeout_state(t)));
	KUNIT_ASSERT_EQ(test, twheel_arm_commit(tw, &arming, 1), 0);
	KUNIT_EXPECT_TRUE(test, state_is_queued(timeout_state(t)));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), BESIDE + 1);
	tw->clock.virtual_now_ns += 8 * DELAY_NS;
	pass(tw);
	KUNIT_EXPECT_EQ(test, read_one(tw, NULL), 1);
	audit(test);
}

/* G8, and G4: it was told to the user, and then the user's memory faulted. */
static void an_id_that_was_told_of_a_place_with_an_entry_is_not_used_again(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct twheel_timeout *t;
	struct twheel_arm how = arm_of(0, 0);
	struct twheel_arming arming = {};
	u64 told;

	fill_all_but_one(test);
	t = arm_like(test, 0);
	pass(tw);
	cancel(tw, id_of(t));
	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, &how, 1, &arming), 0);
	told = how.id;
	KUNIT_EXPECT_TRUE(test, state_has_entry(timeout_state(t)));
	KUNIT_ASSERT_EQ(test, twheel_arm_commit(tw, &arming, 0), 0);
	KUNIT_EXPECT_FALSE(test, state_has_entry(timeout_state(t)));
	KUNIT_EXPECT_NE(test, timeout_id(t, timeout_state(t)), told);
	/* What is stale has its room. */
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), BESIDE + 1);
	audit(test);
	tw->clock.virtual_now_ns += 8 * DELAY_NS;
	pass(tw);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), BESIDE);
}

/* Nor do they take memory for ever: with the pages, the entries go. */
static void entries_of_free_places_are_dropped_where_memory_is_given_back(struct kunit *test)
{
	const unsigned int nr = SWEEP_SLACK + 500;
	struct twheel *tw = test->priv;
	u64 *ids = kunit_kcalloc(test, nr, sizeof(*ids), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	/* It lives on, and nobody looks ahead behind it. */
	arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS });
	arm_many(test, nr, ids);
	pass(tw);
	for (i = 0; i < nr; i++)
		cancel(tw, ids[i]);
	pass(tw);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), (long)nr + 1);
	tw->shrink.due = true;
	pass(tw);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 1L);
	audit(test);
}

/* G4: as many chunks stay as the promised room needs. */
static void chunks_that_nobody_needs_are_freed(struct kunit *test)
{
	const unsigned int nr = 2 * SWEEP_SLACK + 100;
	struct twheel_setup setup = usual_setup;
	struct twheel *tw;
	u64 chunks;

	setup.flags = TWHEEL_SETUP_ONE_LEVEL;
	setup.slots = 128;
	tw = wheel_remake(test, &setup);
	KUNIT_ASSERT_EQ(test, twheel_room_take(tw, nr), 0);
	twheel_gifts_accept(tw);
	chunks = tw->room.nr_chunk_pages;
	/* While they are needed, chunks stay. */
	KUNIT_EXPECT_FALSE(test, twheel_room_shrink(tw));
	KUNIT_EXPECT_EQ(test, tw->room.nr_chunk_pages, chunks);
	/* Chunks on their way are not those that may stay. */
	KUNIT_ASSERT_EQ(test, twheel_room_take(tw, nr), 0);
	chunks = tw->room.nr_chunk_pages;
	room_give(&tw->room, 2 * nr - 1);
	while (twheel_room_shrink(tw))
		;
	KUNIT_EXPECT_LT(test, tw->room.nr_chunk_pages, chunks);
	KUNIT_EXPECT_GE(test, tw->room.provided, 1L);
	KUNIT_EXPECT_EQ(test, tw->room.nr_chunk_pages,
			twheel_wheel_pages_for(&tw->wheel, tw->room.provided));
	KUNIT_EXPECT_EQ(test, tw->wheel.nr_free,
			tw->room.nr_chunk_pages * TWHEEL_CHUNKS_PER_PAGE);
	room_give(&tw->room, 1);
}

static int other_pass(struct twheel *tw)
{
	pass(tw);
	return 0;
}

/*
 * G2: a caller that adds chunks may sleep long for memory.  The kthread, which has other
 * wheels to serve, does not wait for it.
 */
static void a_pass_does_not_wait_for_a_caller_that_adds_chunks(struct kunit *test)
{
	struct twheel *tw = test->priv;

	arm_many(test, 100, NULL);
	expect_no_wait(test, &tw->room.mutex, other_pass, 0);
}

/* At the limit ARM gets the room of entries in the inbox, and of stale ones. */
static void the_room_of_the_cancelled_is_fetched_where_there_is_no_memory(struct kunit *test)
{
	struct twheel *tw = test->priv;
	const unsigned int most = 400;
	u64 *ids = kunit_kcalloc(test, most, sizeof(*ids), GFP_KERNEL);
	unsigned int round, i, n = 0;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	/* It lives on, and nobody looks ahead behind it: what is stale there takes a sweep. */
	arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS });
	pass(tw);
	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
	twheel_limit_memory(twheel_charged() + 8 * PAGE_SIZE, LONG_MAX);
	while (n < most && !arm_result(tw, &ids[n]))
		n++;
	KUNIT_ASSERT_LT(test, n, most);
	for (round = 0; round < 4; round++) {
		/* In even rounds they are cancelled in the inbox, in odd ones in the wheel. */
		if (round % 2)
			KUNIT_EXPECT_EQ(test, twheel_advance(tw, tw->clock.virtual_now_ns), 0);
		for (i = 0; i < n; i++)
			KUNIT_ASSERT_EQ(test, cancel(tw, ids[i]), TWHEEL_WAS_PENDING);
		for (i = 0; i < n; i++)
			KUNIT_ASSERT_EQ(test, arm_result(tw, &ids[i]), 0);
	}
	limits_init();
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, tw->clock.virtual_now_ns), 0);
}

/*
 * They are too few for a sweep by themselves, and take all the room that there is: the
 * pass that a caller waits for sweeps them.
 */
static void the_room_of_few_stale_entries_is_fetched_where_there_is_no_memory(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int round, i;
	u64 ids[100];

	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
	/* One that comes first, and lives: nobody looks ahead past it. */
	arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS });
	for (round = 0; round < SWEEP_SLACK / ARRAY_SIZE(ids) / 2; round++) {
		for (i = 0; i < ARRAY_SIZE(ids) && round; i++)
			KUNIT_ASSERT_EQ(test, cancel(tw, ids[i]), TWHEEL_WAS_PENDING);
		/* The entries that the places keep would come too late. */
		for (i = 0; i < ARRAY_SIZE(ids); i++)
			ids[i] = id_of(arm(test, &(struct twheel_arm) {
				.expires_ns = (1000 - round) * TICK_NS }));
		if (!round)
			twheel_limit_memory(twheel_charged(), LONG_MAX);
		KUNIT_ASSERT_EQ(test, twheel_advance(tw, tw->clock.virtual_now_ns), 0);
	}
	/* In so little room it was needed. */
	KUNIT_EXPECT_LT(test, tw->room.provided, (long)SWEEP_SLACK / 2);
	limits_init();
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, tw->clock.virtual_now_ns), 0);
}

/* Before memory is given back, fewer stale entries are worth a sweep. */
static void stale_entries_are_swept_before_memory_is_given_back(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int i, n;
	u64 ids[120];

	/* It lives on, and nobody looks ahead behind it. */
	arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS });
	for (i = 0; i < 11; i++)
		arm_many(test, ARRAY_SIZE(ids), ids);
	pass(tw);
	shrink(test);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 1321L);
	for (i = 0; i < 4; i++) {
		for (n = 0; n < ARRAY_SIZE(ids); n++) {
			struct twheel_arm how = { .expires_ns = DELAY_NS - i - 1 };

			KUNIT_ASSERT_EQ(test, rearm(tw, ids[n], &how), TWHEEL_WAS_PENDING);
		}
		pass(tw);
	}
	/* These leave another entry each, which is not stale. */
	for (n = 0; n < ARRAY_SIZE(ids); n++)
		cancel(tw, ids[n]);
	pass(tw);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 1801L);
	shrink(test);
	do {
		pass(tw);
	} while (work_take(tw));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->room.used), 1201L);
}

/* As much as the comment at room_enough() says, and not one entry more or less. */
static void room_for_a_part_of_what_is_used_is_kept(struct kunit *test)
{
	struct twheel *tw = test->priv;
	long was = tw->room.provided, used;

	for (used = 0; used <= 10000; used += 2500) {
		tw->shrink.due = false;
		tw->room.provided = 2 * (used + SWEEP_SLACK) + 1;
		KUNIT_EXPECT_EQ(test, room_enough(tw, used), tw->room.provided);
		tw->room.provided++;
		KUNIT_EXPECT_EQ(test, room_enough(tw, used), used + used / 2 + SWEEP_SLACK);
		tw->shrink.due = true;
		KUNIT_EXPECT_EQ(test, room_enough(tw, used), used + used / 2 + SWEEP_SLACK);
		tw->room.provided = used + used / 4 + ROOM_SLACK / 2;
		KUNIT_EXPECT_EQ(test, room_enough(tw, used), tw->room.provided);
		tw->room.provided++;
		KUNIT_EXPECT_EQ(test, room_enough(tw, used), used + used / 8 + ROOM_AHEAD);
	}
	tw->shrink.due = false;
	tw->room.provided = was;
}

static struct kunit_case room_cases[] = {
	KUNIT_CASE(room_is_backed_by_chunks),
	KUNIT_CASE(room_is_counted_right_up_to_the_largest_wheel),
	KUNIT_CASE(where_there_is_no_memory_the_chunks_are_used_to_the_last),
	KUNIT_CASE(entries_of_the_moved_are_swept),
	KUNIT_CASE(a_free_place_keeps_its_entry),
	KUNIT_CASE(an_entry_that_would_come_too_late_is_not_used),
	KUNIT_CASE(an_entry_of_before_the_last_deadline_is_used),
	KUNIT_CASE(an_entry_that_was_dropped_is_not_used),
	KUNIT_CASE(an_id_that_was_told_of_a_place_with_an_entry_is_not_used_again),
	KUNIT_CASE(entries_of_free_places_are_dropped_where_memory_is_given_back),
	KUNIT_CASE(chunks_that_nobody_needs_are_freed),
	KUNIT_CASE(a_pass_does_not_wait_for_a_caller_that_adds_chunks),
	KUNIT_CASE(stale_entries_are_swept_before_memory_is_given_back),
	KUNIT_CASE(room_for_a_part_of_what_is_used_is_kept),
	KUNIT_CASE(the_room_of_the_cancelled_is_fetched_where_there_is_no_memory),
	KUNIT_CASE(the_room_of_few_stale_entries_is_fetched_where_there_is_no_memory),
	{}
};

ENGINE_SUITE(room);
