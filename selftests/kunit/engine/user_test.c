// SPDX-License-Identifier: GPL-2.0
/*
 * engine/account.c: the turns of a user's wheels.  (Its memory is in memory_test.c.)
 */

/* A stand-in for a wheel: the properties of its turns, and a record of them. */
struct stand_in {
	struct twheel_turn turn;
	bool takes_all;			/* a turn takes all time that is left */
	unsigned int more;		/* how many more turns are wanted */
	unsigned int nr;		/* turns taken */
	unsigned int last;		/* the number of the last one among all turns */
	u64 end_ns;
};

static unsigned int nr_turns;

static bool stand_in_take(struct twheel_turn *turn, u64 end_ns)
{
	struct stand_in *wheel = container_of(turn, struct stand_in, turn);
	u64 until_ns = wheel->takes_all ? end_ns : ktime_get_ns() + NSEC_PER_USEC;

	while (ktime_get_ns() < until_ns)
		cpu_relax();
	wheel->end_ns = end_ns;
	wheel->nr++;
	wheel->last = ++nr_turns;
	return wheel->nr <= wheel->more;
}

/* Let all of them want a turn. */
static void stand_ins_begin(struct kunit *test, struct stand_in *wheel, unsigned int nr)
{
	struct twheel_user *user = ((struct tw_ctx *)test->priv)->memory.user;
	unsigned int i;

	nr_turns = 0;
	for (i = 0; i < nr; i++) {
		twheel_turn_init(&wheel[i].turn, user, stand_in_take);
		wheel[i].turn.queue = &nobodys;
		wheel[i].nr = 0;
		twheel_turn_request(&wheel[i].turn);
	}
}

/* Take one turn of the user. Return whether another one was asked for. */
static bool user_turn_once(struct kunit *test)
{
	bool again;

	turn_take(test->priv);
	user_turn(&nobodys.work);
	again = !list_empty(&nobodys.work.node);
	turn_take(test->priv);
	return again;
}

/* G2: a user with many wheels has no more time than one with a single wheel. */
static void wheels_of_a_user_share_one_turn(struct kunit *test)
{
	struct stand_in wheel[2] = {};
	int tries;

	/* If the processor stands still, the first wheel may use up the whole turn: try again. */
	for (tries = 0; tries < 100 && !wheel[1].nr; tries++) {
		stand_ins_begin(test, wheel, 2);
		if (user_turn_once(test) && !wheel[1].nr) {
			user_turn_once(test);
			wheel[1].nr = 0;
		}
	}
	KUNIT_EXPECT_EQ(test, wheel[1].nr, 1U);
	KUNIT_EXPECT_EQ(test, wheel[0].end_ns, wheel[1].end_ns);
}

/* G2: other users are served before the rest of the wheels is. */
static void turn_of_a_user_ends_with_its_time(struct kunit *test)
{
	struct stand_in wheel[2] = { { .takes_all = true } };

	stand_ins_begin(test, wheel, 2);
	KUNIT_EXPECT_TRUE(test, user_turn_once(test));
	KUNIT_EXPECT_EQ(test, wheel[0].nr, 1U);
	KUNIT_EXPECT_EQ(test, wheel[1].nr, 0U);
	while (user_turn_once(test))
		;
	KUNIT_EXPECT_EQ(test, wheel[0].nr, 1U);
	KUNIT_EXPECT_EQ(test, wheel[1].nr, 1U);
}

/* G2: a busy wheel waits until each of the others has had its turn. */
static void wheel_with_more_to_do_comes_last(struct kunit *test)
{
	struct stand_in wheel[3] = { { .more = 1 } };

	stand_ins_begin(test, wheel, 3);
	while (user_turn_once(test))
		;
	KUNIT_EXPECT_EQ(test, wheel[1].last, 2U);
	KUNIT_EXPECT_EQ(test, wheel[2].last, 3U);
	KUNIT_EXPECT_EQ(test, wheel[0].last, 4U);
	KUNIT_EXPECT_EQ(test, nr_turns, 4U);
}

/* Return whether a turn of the wheel is asked for, and withdraw it. */
static bool turn_is_asked_for(struct stand_in *wheel)
{
	bool asked = !list_empty(&wheel->turn.node);

	list_del_init(&wheel->turn.node);
	return asked;
}

static bool asks_again_take(struct twheel_turn *turn, u64 end_ns)
{
	struct stand_in *wheel = container_of(turn, struct stand_in, turn);

	if (!wheel->nr)
		twheel_turn_request(turn);
	return stand_in_take(turn, end_ns);
}

/* G2: a turn that is asked for during a turn is not forgotten. */
static void a_turn_that_is_asked_for_in_a_turn_comes_after_it(struct kunit *test)
{
	struct stand_in wheel = {};

	stand_ins_begin(test, &wheel, 1);
	wheel.turn.take = asks_again_take;
	while (user_turn_once(test))
		;
	KUNIT_EXPECT_EQ(test, wheel.nr, 2U);
	KUNIT_EXPECT_FALSE(test, turn_is_asked_for(&wheel));
}

struct busy_work {
	struct kthread_work work;
	struct completion begins;
	struct completion may_end;
};

static void busy_work_does(struct kthread_work *work)
{
	struct busy_work *busy = container_of(work, struct busy_work, work);

	complete(&busy->begins);
	wait_for_completion(&busy->may_end);
}

/* If a kthread is busy, it does not know yet that a queue is empty. */
static void last_close_of_a_user_leaves_no_work(struct kunit *test)
{
	struct kthread_worker *worker;
	struct twheel_user *user;
	struct busy_work *busy = kunit_kzalloc(test, sizeof(*busy), GFP_KERNEL);
	bool left;

	KUNIT_ASSERT_NOT_NULL(test, busy);
	engine_case_exit(test);
	user = twheel_user_get();
	KUNIT_ASSERT_FALSE(test, IS_ERR(user));
	KUNIT_EXPECT_EQ(test, user->nr_wheels, 1UL);
	worker = user->queue[0].worker;
	kthread_init_work(&busy->work, busy_work_does);
	init_completion(&busy->begins);
	init_completion(&busy->may_end);
	kthread_queue_work(worker, &busy->work);
	wait_for_completion(&busy->begins);
	kthread_queue_work(worker, &user->queue[0].work);
	twheel_user_put(user);
	/* If work is left there, it is in memory that was freed: nobody may do it. */
	raw_spin_lock_irq(&worker->lock);
	left = !list_empty(&worker->work_list);
	INIT_LIST_HEAD(&worker->work_list);
	raw_spin_unlock_irq(&worker->lock);
	complete(&busy->may_end);
	kthread_flush_work(&busy->work);
	KUNIT_EXPECT_FALSE(test, left);
	KUNIT_EXPECT_EQ(test, twheel_charged(), 0L);
}

static void last_close_of_a_user_frees_the_user(struct kunit *test)
{
	struct twheel_user *user;
	unsigned long address;

	engine_case_exit(test);
	user = twheel_user_get();
	KUNIT_ASSERT_FALSE(test, IS_ERR(user));
	KUNIT_EXPECT_PTR_EQ(test, twheel_user_get(), user);
	address = (unsigned long)user;
	freed = 0;
	twheel_user_put(user);
	KUNIT_EXPECT_EQ(test, freed, 0UL);
	twheel_user_put(user);
	KUNIT_EXPECT_EQ(test, freed, address);
}

/* Let another thread of the same user open a wheel at that time. */
static struct twheel_user *user_beside;
static bool user_waits;

static void open_beside(void)
{
	alloc_call = NULL;
	user_waits = mutex_is_locked(&users_mutex);
	if (!user_waits)
		user_beside = twheel_user_get();
}

/* If memory is short for one user, in its memory cgroup, no other must wait for that. */
static void two_opens_that_make_a_user_at_once_share_it_and_wait_for_nobody(struct kunit *test)
{
	struct twheel_user *user;

	engine_case_exit(test);
	alloc_call = open_beside;
	user = twheel_user_get();
	KUNIT_ASSERT_FALSE(test, IS_ERR(user));
	KUNIT_EXPECT_FALSE(test, user_waits);
	if (!user_waits) {
		KUNIT_EXPECT_PTR_EQ(test, user_beside, user);
		KUNIT_EXPECT_EQ(test, user->nr_wheels, 2UL);
		twheel_user_put(user);
	}
	twheel_user_put(user);
	KUNIT_EXPECT_EQ(test, twheel_charged(), 0L);
}

/* G5: a tenth of the processors' time, for any of the user's wheels, on any processor. */
static void the_softirq_works_for_a_user_a_tenth_of_the_time(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_user *user = tw->memory.user;
	const u64 begin_ns = 1000 * NSEC_PER_SEC, took_ns = 1000 * num_online_cpus();

	atomic64_set(&user->paid_ns, 0);
	KUNIT_EXPECT_TRUE(test, user_may_work(user, begin_ns));
	twheel_user_has_worked(user, begin_ns, begin_ns + USER_BURST_NS + took_ns);
	KUNIT_EXPECT_FALSE(test, user_may_work(user, begin_ns + 9999));
	KUNIT_EXPECT_TRUE(test, user_may_work(user, begin_ns + 10000));
	/* If another processor began at the same time, both count. */
	twheel_user_has_worked(user, begin_ns, begin_ns + 2 * took_ns);
	KUNIT_EXPECT_FALSE(test, user_may_work(user, begin_ns + 29999));
	KUNIT_EXPECT_TRUE(test, user_may_work(user, begin_ns + 30000));
	/* If the machine has run for centuries, a new user is not barred either. */
	atomic64_set(&user->paid_ns, 0);
	KUNIT_EXPECT_TRUE(test, user_may_work(user, S64_MAX / 2));
	/* If time passes without work, it is no credit. */
	twheel_user_has_worked(user, 2 * begin_ns, 2 * begin_ns + USER_BURST_NS + took_ns);
	KUNIT_EXPECT_FALSE(test, user_may_work(user, 2 * begin_ns + 9999));
	KUNIT_EXPECT_TRUE(test, user_may_work(user, 2 * begin_ns + 10000));
	atomic64_set(&user->paid_ns, 0);
}

/* G2: ticks begin together, so the wheels of a user are due together: a little work bars none. */
static void wheels_of_a_user_that_are_due_together_have_the_softirq(struct kunit *test)
{
	struct twheel_user *user = ((struct tw_ctx *)test->priv)->memory.user;
	u64 now_ns = 1000 * NSEC_PER_SEC, took_ns = 2 * NSEC_PER_USEC;
	unsigned int edge, i, nr_barred = 0;

	atomic64_set(&user->paid_ns, 0);
	for (edge = 0; edge < 100; edge++, now_ns += 10 * NSEC_PER_MSEC) {
		for (i = 0; i < 64; i++) {
			u64 begin_ns = now_ns + i * took_ns;

			nr_barred += !user_may_work(user, begin_ns);
			twheel_user_has_worked(user, begin_ns, begin_ns + took_ns);
		}
	}
	KUNIT_EXPECT_EQ(test, nr_barred, 0U);
	atomic64_set(&user->paid_ns, 0);
}

/* Each kthread gets a wheel in turn. */
static void wheels_are_spread_over_the_kthreads(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_user *user = tw->memory.user;
	struct twheel_queue *first;
	struct stand_in wheel;
	unsigned int i, j;

	for (i = 0; i < twheel_nr_workers; i++) {
		twheel_turn_init(&wheel.turn, user, stand_in_take);
		first = wheel.turn.queue;
		KUNIT_EXPECT_PTR_EQ(test, first->worker, twheel_workers[first - user->queue]);
		for (j = 1; j < twheel_nr_workers; j++) {
			twheel_turn_init(&wheel.turn, user, stand_in_take);
			KUNIT_EXPECT_PTR_NE(test, wheel.turn.queue, first);
		}
	}
}

static struct kunit_case user_cases[] = {
	KUNIT_CASE(the_softirq_works_for_a_user_a_tenth_of_the_time),
	KUNIT_CASE(wheels_of_a_user_that_are_due_together_have_the_softirq),
	KUNIT_CASE(wheels_are_spread_over_the_kthreads),
	KUNIT_CASE(wheels_of_a_user_share_one_turn),
	KUNIT_CASE(turn_of_a_user_ends_with_its_time),
	KUNIT_CASE(wheel_with_more_to_do_comes_last),
	KUNIT_CASE(a_turn_that_is_asked_for_in_a_turn_comes_after_it),
	KUNIT_CASE(last_close_of_a_user_leaves_no_work),
	KUNIT_CASE(last_close_of_a_user_frees_the_user),
	KUNIT_CASE(two_opens_that_make_a_user_at_once_share_it_and_wait_for_nobody),
	{}
};

ENGINE_SUITE(user);
