// SPDX-License-Identifier: GPL-2.0
/*
 * engine/arena.c: ids, places, and their pages
 */

/* G8: an id names a live timeout or nothing. */
static void an_id_is_found_where_something_lives_and_nowhere_else(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 rest, state, seen;
	struct twheel_timeout *t = some_place(test, &rest);
	unsigned int shape;
	bool found;

	for (shape = 0; shape < NR_FLAGS << FLAGS_SHIFT; shape++) {
		state = state_of(77, 5, shape);
		atomic64_set(&t->state, state);
		found = (shape & 7) == PHASE_QUEUED ||
			(shape & 7) == PHASE_ARMED ||
			(shape & 7) == PHASE_UNREAD ||
			(shape & 7) == PHASE_REARMING;
		KUNIT_ASSERT_EQ(test, look_by_id(tw, id_of(t), &seen) == t,
				found);
		if (found)
			KUNIT_ASSERT_EQ(test, seen, state);
		else
			KUNIT_ASSERT_NULL(test, look_by_id(tw, id_of(t), &seen));
	}
	atomic64_set(&t->state, rest);
}

/* G8: an id with any bit of its generation changed is ENOENT. */
static void an_id_of_any_other_generation_names_nothing(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 rest, seen, id;
	struct twheel_timeout *t = some_place(test, &rest);
	unsigned int bit;

	id = id_of(t);
	KUNIT_ASSERT_PTR_EQ(test, look_by_id(tw, id, &seen), t);
	for (bit = 32; bit < 64; bit++) {
		KUNIT_ASSERT_NULL(test, look_by_id(tw, id ^ BIT_ULL(bit),
						   &seen));
		KUNIT_ASSERT_EQ(test, cancel(tw, id ^ BIT_ULL(bit)), -ENOENT);
		KUNIT_ASSERT_EQ(test, rearm(tw, id ^ BIT_ULL(bit),
					    &(struct twheel_arm) {}), -ENOENT);
	}
	KUNIT_EXPECT_EQ(test, (u64)timeout_state(t), rest);
}

/* G7: an index leads to its place, however many there are, without a search. */
static void an_index_and_its_place_name_each_other(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u32 index, nr = 3 * PLACES_PER_PAGE + 1;
	u64 state;

	for (index = 0; index < nr; index++)
		arm_like(test, 0);
	KUNIT_ASSERT_EQ(test, tw->arena.places.nr, 4U);
	for (index = 0; index < 4 * PLACES_PER_PAGE; index++) {
		struct twheel_timeout *t = look_at(tw, index);

		KUNIT_ASSERT_NOT_NULL(test, t);
		KUNIT_ASSERT_EQ(test, timeout_index(t), index);
		KUNIT_ASSERT_EQ(test, timeout_slot(t),
				(u32)(index % PLACES_PER_PAGE));
	}
	KUNIT_EXPECT_NULL(test, look_at(tw, 4 * PLACES_PER_PAGE));
	KUNIT_EXPECT_NULL(test, look_at(tw, U32_MAX));
	KUNIT_EXPECT_NULL(test, look_by_id(tw, U64_MAX, &state));
	KUNIT_EXPECT_NULL(test, look_by_id(tw, 0, &state));
}

static void the_first_id_of_a_place_is_not_0(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u32 index;

	arm_like(test, 0);
	for (index = 0; index < PLACES_PER_PAGE; index++)
		KUNIT_ASSERT_EQ(test, state_gen(timeout_state(look_at(tw, index))),
				1U);
}

static void places_are_counted_exactly(struct kunit *test)
{
	struct twheel *tw = wheel_with(test, max_pending, 10);
	unsigned int held, nr;

	for (held = 0; held <= 10; held++) {
		for (nr = 0; nr < 15; nr++) {
			unsigned int got;

			atomic_set(&tw->arena.live, held);
			got = live_take(&tw->arena, nr);
			KUNIT_ASSERT_EQ(test, got, min(nr, 10 - held));
			KUNIT_ASSERT_EQ(test, atomic_read(&tw->arena.live),
					(int)(held + got));
			KUNIT_ASSERT_EQ(test, twheel_has_room(tw),
					held + got < 10);
			twheel_live_give(tw, got);
			KUNIT_ASSERT_EQ(test, atomic_read(&tw->arena.live), (int)held);
		}
	}
	atomic_set(&tw->arena.live, 0);
}

/* As if 2^30 - 40 places were in use: no memory, but the same sums. */
static void the_last_places_of_the_largest_wheel_are_counted_exactly(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u32 limit = tw->arena.max_pending;

	tw->arena.max_pending = BIT(30);
	atomic_set(&tw->arena.live, BIT(30) - 40);
	KUNIT_EXPECT_EQ(test, live_take(&tw->arena, 32), 32U);
	KUNIT_EXPECT_EQ(test, live_take(&tw->arena, 32), 8U);
	KUNIT_EXPECT_EQ(test, live_take(&tw->arena, 1), 0U);
	KUNIT_EXPECT_FALSE(test, twheel_has_room(tw));
	twheel_live_give(tw, 1);
	KUNIT_EXPECT_TRUE(test, twheel_has_room(tw));
	KUNIT_EXPECT_FALSE(test, room_is_wasted(tw));
	KUNIT_EXPECT_FALSE(test, memory_is_wasted(&tw->shrink, &tw->arena, &tw->room));
	atomic_set(&tw->arena.live, 0);
	tw->arena.max_pending = limit;
}

/* The ways in which a place becomes free. */
enum ending_way { CANCEL_YOUNG, CANCEL_ARMED, REVOKE, READ_IT, READ_DRAINED, NR_WAYS };

static void end_it(struct twheel *tw, u64 id, enum ending_way way)
{
	if (way != CANCEL_YOUNG)
		enter(tw);
	if (way == REVOKE || way == READ_IT)
		expire_at(tw, START_NS + DELAY_NS + TICK_NS);
	if (way == READ_DRAINED)
		drain(tw);
	if (way == READ_IT || way == READ_DRAINED)
		read_one(tw, NULL);
	else
		cancel(tw, id);
	enter(tw);
}

/* G8: after 2^32 timeouts a place could give out an old id again. It is not used. */
static void a_place_whose_generations_are_used_up_retires(struct kunit *test)
{
	enum ending_way way;

	for (way = 0; way < NR_WAYS; way++) {
		struct twheel *tw = wheel_remake(test, &usual_setup);
		struct twheel_timeout *t;
		s64 before[NR_TALLIES], after[NR_TALLIES];

		tw->clock.virtual_now_ns = START_NS;
		pass(tw);
		t = arm_like(test, 0);
		atomic64_set(&t->state, timeout_state(t) | STATE_GEN);
		tally_take(tw, before);
		end_it(tw, id_of(t), way);
		tally_take(tw, after);
		/* No id has generation 0. */
		KUNIT_EXPECT_EQ(test, state_gen(timeout_state(t)), 0U);
		KUNIT_EXPECT_TRUE(test, state_is_free(timeout_state(t)));
		KUNIT_EXPECT_EQ(test, after[LIVE], 0LL);
		KUNIT_EXPECT_EQ_MSG(test, after[RETIRED], 1LL, "way %d", way);
		KUNIT_EXPECT_EQ(test, after[PLACES], before[PLACES]);
		audit(test);
	}
}

/* G8: the last generations of all places of a page, one by one. */
static void no_id_is_given_out_twice_not_even_the_last_ones(struct kunit *test)
{
	struct twheel *tw = wheel_with(test, max_pending, 1);
	u32 *gen = kunit_kcalloc(test, PLACES_PER_PAGE, sizeof(*gen),
				 GFP_KERNEL);
	unsigned int i;
	u32 index;
	u64 id;

	KUNIT_ASSERT_NOT_NULL(test, gen);
	/* One page, each place of which has four generations left. */
	end_it(tw, id_of(arm_like(test, 0)), CANCEL_YOUNG);
	for (i = 0; i < PLACES_PER_PAGE; i++)
		atomic64_set(&look_at(tw, i)->state,
			     state_of(U32_MAX - 3, 0xfffff, PHASE_FREE));
	for (i = 0; i < 4 * PLACES_PER_PAGE; i++) {
		id = id_of(arm_like(test, 0));
		index = (u32)id;
		KUNIT_ASSERT_LT(test, index, (u32)PLACES_PER_PAGE);
		KUNIT_ASSERT_GT(test, (u32)(id >> 32), gen[index]);
		gen[index] = id >> 32;
		KUNIT_ASSERT_EQ(test, cancel(tw, id), TWHEEL_WAS_PENDING);
		KUNIT_ASSERT_EQ(test, cancel(tw, id), -ENOENT);
		enter(tw);
		KUNIT_ASSERT_EQ(test, cancel(tw, id), -ENOENT);
	}
	/* All have retired, and the limit is still one: another page is made. */
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.nr_retired), (int)PLACES_PER_PAGE);
	KUNIT_EXPECT_GE(test, timeout_index(arm_like(test, 0)),
			(u32)PLACES_PER_PAGE);
	KUNIT_EXPECT_EQ(test, tw->arena.places.nr, 2U);
}

/*
 * The kthread does not run, so timeouts that were cancelled young stay in the inbox.
 * ARM waits for the kthread only when these use up all the places that there may be.
 */
static void arming_beside_a_busy_thread_waits_for_it_last_of_all(struct kunit *test)
{
	struct twheel *tw = wheel_with(test, max_pending, PLACES_PER_PAGE);
	const unsigned int most = arena_limit(&tw->arena) / PLACES_PER_PAGE *
				  PLACES_PER_PAGE;
	unsigned int i;
	u32 nr_pages;
	u64 id;

	fatal_signal_send();
	for (i = 0; i < most; i++) {
		KUNIT_ASSERT_EQ(test, arm_result(tw, &id), 0);
		KUNIT_ASSERT_EQ(test, cancel(tw, id), TWHEEL_WAS_PENDING);
	}
	for (i = 0; arm_result(tw, &id) == 0; i++) {
		KUNIT_ASSERT_LT(test, i, (unsigned int)PLACES_PER_PAGE);
		KUNIT_ASSERT_EQ(test, cancel(tw, id), TWHEEL_WAS_PENDING);
	}
	KUNIT_EXPECT_EQ(test, arm_result(tw, &id), -EINTR);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->arena.live), 0);
	fatal_signal_forget();

	nr_pages = tw->arena.places.nr;
	work_take(tw);
	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
	for (i = 0; i < 3 * PLACES_PER_PAGE; i++) {
		int verdict;

		KUNIT_ASSERT_EQ(test, arm_result(tw, &id), 0);
		/* The thread may just be taking it into the wheel. */
		do {
			verdict = cancel(tw, id);
		} while (verdict == -EBUSY);
		KUNIT_ASSERT_EQ(test, verdict, TWHEEL_WAS_PENDING);
	}
	KUNIT_EXPECT_EQ(test, tw->arena.places.nr, nr_pages);
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, 0), 0);
}

/**
 * struct holder - a thread that holds a mutex
 * @work: runs hold()
 * @mutex: the mutex, any of a wheel's
 * @holds: the thread has the mutex
 * @done: the thread may unlock it
 */
struct holder {
	struct kthread_work work;
	struct mutex *mutex;	/* any of a wheel's */
	struct completion holds;
	struct completion done;
};

static void hold(struct kthread_work *work)
{
	struct holder *holder = container_of(work, struct holder, work);

	mutex_lock(holder->mutex);
	complete(&holder->holds);
	/* For ever, as far as the waiting caller can tell. */
	wait_for_completion_timeout(&holder->done, 3 * HZ);
	mutex_unlock(holder->mutex);
}

static void expect_killable(struct kunit *test, struct mutex *mutex)
{
	struct holder holder = { .mutex = mutex };
	u64 id;

	init_completion(&holder.holds);
	init_completion(&holder.done);
	kthread_init_work(&holder.work, hold);
	kthread_queue_work(workers[0], &holder.work);
	wait_for_completion(&holder.holds);
	fatal_signal_send();
	KUNIT_EXPECT_EQ(test, arm_result(test->priv, &id), -EINTR);
	fatal_signal_forget();
	complete(&holder.done);
	kthread_flush_worker(workers[0]);
}

/* ARM waits in vain for another caller that adds places or chunks. */
static void a_fatal_signal_ends_waiting_for_who_allocates(struct kunit *test)
{
	struct twheel *tw = test->priv;
	u64 id;

	expect_killable(test, &tw->room.mutex);
	expect_killable(test, &tw->arena.mutex);
	KUNIT_EXPECT_EQ(test, arm_result(tw, &id), 0);
}

/**
 * struct killer - ends a wait that would not end
 * @work: runs kill_late()
 * @task: the thread that waits
 */
struct killer {
	struct kthread_delayed_work work;
	struct task_struct *task;
};

static void kill_late(struct kthread_work *work)
{
	fatal_signal_send_to(container_of(work, struct killer, work.work)->task);
}

/* One pass frees what was cancelled in the inbox; shrinking may need some more. */
static void a_caller_short_of_places_waits_for_few_passes(struct kunit *test)
{
	struct killer *killer = kunit_kzalloc(test, sizeof(*killer), GFP_KERNEL);
	struct llist_node *first = NULL, **tail = &first, *none, **no_tail = &none;
	struct twheel *tw = test->priv;
	int shrinking, err;
	u64 asked;

	KUNIT_ASSERT_NOT_NULL(test, killer);
	killer->task = current;
	kthread_init_delayed_work(&killer->work, kill_late);
	arm_like(test, 0);
	KUNIT_ASSERT_GT(test, places_pop(&tw->arena, INT_MAX, &tail), 0U);
	work_take(tw);
	tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
	twheel_limit_memory(twheel_charged(), LONG_MAX);
	for (shrinking = 0; shrinking < 2; shrinking++) {
		WRITE_ONCE(tw->shrink.running, shrinking);
		asked = tw->wake.passes_wanted;
		kthread_queue_delayed_work(workers[0], &killer->work, 2 * HZ);
		KUNIT_EXPECT_EQ(test, twheel_places_wait(tw, 1, &no_tail, &err), 0U);
		kthread_cancel_delayed_work_sync(&killer->work);
		fatal_signal_forget();
		KUNIT_EXPECT_EQ(test, err, -ENOSPC);
		KUNIT_EXPECT_EQ(test, tw->wake.passes_wanted - asked, shrinking ? 4ULL : 1ULL);
	}
	WRITE_ONCE(tw->shrink.running, false);
	limits_init();
	llist_add_batch(first, container_of(tail, struct llist_node, next), &tw->arena.freed);
	KUNIT_EXPECT_EQ(test, twheel_advance(tw, tw->clock.virtual_now_ns), 0);
}

/* Two pages of places side by side share one page for their periodic timeouts. */
static void what_is_periodic_goes_with_the_last_page_that_needs_it(struct kunit *test)
{
	struct twheel_periodic_page *both;
	struct twheel *tw = test->priv;
	struct twheel_page *page[2];
	long charged;
	u64 *ids;
	u32 i;

	ids = arm_all(test);
	for (i = 0; i < 2; i++) {
		page[i] = look_at_page(tw, i);
		KUNIT_ASSERT_NOT_NULL(test, page[i]);
	}
	charged = atomic_long_read(&tw->memory.charged);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, twheel_periodic_provide(tw, i * PLACES_PER_PAGE, false),
				0);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged),
				charged + (long)PAGE_SIZE);
	}
	both = periodic_page(page[0]->periodic);
	KUNIT_EXPECT_PTR_EQ(test, page[0]->periodic, &both->half[0]);
	KUNIT_EXPECT_PTR_EQ(test, page[1]->periodic, &both->half[1]);
	/* A page of places that is far from them has its own. */
	KUNIT_ASSERT_EQ(test, twheel_periodic_provide(tw, 5 * PLACES_PER_PAGE, false), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&tw->memory.charged),
			charged + 2 * (long)PAGE_SIZE);
	KUNIT_EXPECT_FALSE(test, periodic_remove(page[1]));
	KUNIT_EXPECT_TRUE(test, periodic_remove(page[0]));
	both->nr_halves = 2;
	for (i = 0; i < MAX_PENDING; i++)
		cancel(tw, ids[i]);
	pass(tw);
	shrink(test);
	expect_charged_for_all(test);
}

/* At the limit a page is added for places that are retired, and for no others. */
static void retired_places_do_not_count_against_the_limit(struct kunit *test)
{
	struct twheel *tw = test->priv;
	struct llist_node *first, **tail = &first;
	u64 size;
	u64 id;

	tw->arena.max_pending = 10;
	KUNIT_ASSERT_EQ(test, arm_result(tw, &id), 0);
	mutex_lock(&tw->arena.mutex);
	while (arena_size(&tw->arena) < arena_limit(&tw->arena))
		KUNIT_EXPECT_EQ(test, arena_grow(tw), 0);
	mutex_unlock(&tw->arena.mutex);
	size = arena_size(&tw->arena);
	KUNIT_EXPECT_EQ(test, places_pop(&tw->arena, INT_MAX, &tail), (unsigned int)size - 1);
	fatal_signal_send();
	KUNIT_EXPECT_EQ(test, arena_provide(tw), -EINTR);
	KUNIT_EXPECT_EQ(test, arena_size(&tw->arena), size);
	atomic_set(&tw->arena.nr_retired, PLACES_PER_PAGE);
	KUNIT_EXPECT_EQ(test, arena_provide(tw), 0);
	KUNIT_EXPECT_EQ(test, arena_size(&tw->arena), size + PLACES_PER_PAGE);
	fatal_signal_forget();
	atomic_set(&tw->arena.nr_retired, 0);
	llist_add_batch(first, container_of(tail, struct llist_node, next), &tw->arena.freed);
	work_take(tw);
}

/* Whatever it is that finds no more memory: what was taken before it is given back. */
static void at_any_limit_of_memory_all_that_is_charged_is_there(struct kunit *test)
{
	struct twheel *tw = test->priv;
	unsigned int pages;
	u64 id;

	for (pages = 1; pages < 24; pages++) {
		tw = wheel_remake(test, &usual_setup);
		pass(tw);
		tw->wake.turn.queue = twheel_user_queue(tw->memory.user);
		/* A table of pages takes less than a page at first. */
		twheel_limit_memory(twheel_charged() + pages * PAGE_SIZE + pages % 2 * 16,
				    LONG_MAX);
		while (!arm_result(tw, &id))
			KUNIT_ASSERT_LT(test, atomic_read(&tw->arena.live), MAX_PENDING);
		KUNIT_EXPECT_EQ(test, arm_result(tw, &id), -ENOSPC);
		limits_init();
		expect_charged_for_all(test);
		KUNIT_EXPECT_EQ(test, twheel_advance(tw, tw->clock.virtual_now_ns), 0);
	}
}

static struct kunit_case arena_cases[] = {
	KUNIT_CASE(retired_places_do_not_count_against_the_limit),
	KUNIT_CASE(at_any_limit_of_memory_all_that_is_charged_is_there),
	KUNIT_CASE(an_id_is_found_where_something_lives_and_nowhere_else),
	KUNIT_CASE(an_id_of_any_other_generation_names_nothing),
	KUNIT_CASE(an_index_and_its_place_name_each_other),
	KUNIT_CASE(the_first_id_of_a_place_is_not_0),
	KUNIT_CASE(places_are_counted_exactly),
	KUNIT_CASE(the_last_places_of_the_largest_wheel_are_counted_exactly),
	KUNIT_CASE(a_place_whose_generations_are_used_up_retires),
	KUNIT_CASE(no_id_is_given_out_twice_not_even_the_last_ones),
	KUNIT_CASE(arming_beside_a_busy_thread_waits_for_it_last_of_all),
	KUNIT_CASE(a_fatal_signal_ends_waiting_for_who_allocates),
	KUNIT_CASE(a_caller_short_of_places_waits_for_few_passes),
	KUNIT_CASE(what_is_periodic_goes_with_the_last_page_that_needs_it),
	{}
};

ENGINE_SUITE(arena);
