// SPDX-License-Identifier: GPL-2.0
/*
 * engine/rearm.c: REARM
 */

/* G3: the old schedule ends and the new one begins in one step, in any state of the timeout. */
static void rearm_to_a_later_time_begins_a_new_schedule(struct kunit *test)
{
	const struct start *start = test->param_value;
	struct twheel_timeout *t = expect_outcome(test, action_rearm_later, start->to.later);
	struct tw_ctx *tw = test->priv;

	if (start->to.later == SHUT)
		return;
	KUNIT_EXPECT_EQ(test, t->deadline_ns, time_of(tw) + 1000 * TICK_NS);
	expire_at(tw, t->deadline_ns + TICK_NS);
	KUNIT_EXPECT_TRUE(test, timeout_is_unread(t));
}

/* G2: if the deadline has passed, it waits for no tick. */
static void rearm_to_the_past_makes_an_event_at_once(struct kunit *test)
{
	const struct start *start = test->param_value;
	struct tw_ctx *tw = test->priv;
	struct twheel_event event;

	expect_outcome(test, action_rearm_past, start->to.past);
	if (start->to.past == SHUT)
		return;
	KUNIT_ASSERT_EQ(test, read_one(tw, &event), 1);
	KUNIT_EXPECT_EQ(test, event.deadline_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, event.fired_ns, time_of(tw));
	KUNIT_EXPECT_EQ(test, event.count, 1U);
}

/* G8: if an id is of another generation, or has ended, it names no timeout. */
static void rearm_of_any_other_id_says_enoent_and_changes_nothing(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, 0);
	u64 id = timeout_id(t), deadline_ns = t->deadline_ns;
	s64 before[NR_TALLIES];
	unsigned int bit;

	tally_take(tw, before);
	for (bit = 32; bit < 64; bit++)
		KUNIT_ASSERT_EQ(test, rearm_to(tw, id ^ BIT_ULL(bit), .expires_ns = 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, rearm_to(tw, 0, .expires_ns = 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, rearm_to(tw, U64_MAX, .expires_ns = 1), -ENOENT);
	expect_delta(test, before, nothing);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, deadline_ns);
	cancel(tw, id);
	KUNIT_EXPECT_EQ(test, rearm_to(tw, id, .expires_ns = 1), -ENOENT);
}

/* G7: if a plain timeout moves later, it stays in its slot; if it moves earlier, it does not. */
static void a_timeout_that_moves_later_keeps_its_slot(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_arm how = { .expires_ns = 50 * TICK_NS };
	struct twheel_timeout *t = arm(test, &how);
	struct twheel_link **pprev = t->link.pprev;
	unsigned int i;

	for (i = 0; i < 10; i++) {
		KUNIT_ASSERT_EQ(test, rearm_to(tw, how.id, .expires_ns = (51 + i) * TICK_NS),
				TWHEEL_WAS_PENDING);
		KUNIT_EXPECT_PTR_EQ(test, t->link.pprev, pprev);
		KUNIT_EXPECT_EQ(test, t->deadline_ns, START_NS + (51 + i) * TICK_NS);
	}
	KUNIT_ASSERT_EQ(test, rearm_to(tw, how.id, .expires_ns = 9 * TICK_NS),
			TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_PTR_NE(test, t->link.pprev, pprev);
	audit(test);
	KUNIT_EXPECT_EQ(test, tick_of_expiry(test, t), START_NS / TICK_NS + 9);
}

/* As rearm_to_a_..., with all conditions that there are. */
static void a_rearm_that_is_to_move_one_way_only_says_erange(struct kunit *test)
{
	static const struct { u64 to_ns; u32 flags; int says; } rows[] = {
		{ DELAY_NS + 1, TWHEEL_ARM_ONLY_LATER, TWHEEL_WAS_PENDING },
		{ DELAY_NS, TWHEEL_ARM_ONLY_LATER, -ERANGE },
		{ DELAY_NS - 1, TWHEEL_ARM_ONLY_LATER, -ERANGE },
		{ DELAY_NS + 1, TWHEEL_ARM_ONLY_EARLIER, -ERANGE },
		{ DELAY_NS, TWHEEL_ARM_ONLY_EARLIER, -ERANGE },
		{ DELAY_NS - 1, TWHEEL_ARM_ONLY_EARLIER, TWHEEL_WAS_PENDING },
	};
	struct tw_ctx *tw = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct twheel_timeout *t = arm_like(test, 0);
		u64 id = timeout_id(t);

		KUNIT_EXPECT_EQ_MSG(test, rearm_to(tw, id, .expires_ns = rows[i].to_ns,
						   .flags = rows[i].flags),
				    rows[i].says, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, t->deadline_ns, START_NS +
				    (rows[i].says > 0 ? rows[i].to_ns : DELAY_NS), "row %u", i);
		cancel(tw, id);
	}
}

/*
 * G3, G4: whichever access faults, the elements that are done are reported and have a new
 * schedule, and the others are unchanged.
 */
static void a_rearm_that_faults_anywhere_goes_on_where_it_stopped(struct kunit *test)
{
	struct twheel_arm *how = kunit_kcalloc(test, 6, sizeof(*how), GFP_KERNEL);
	struct twheel_arm __user *user = (struct twheel_arm __user __force *)how;
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t[6];
	int nr, done, i;
	bool faulted = true;

	KUNIT_ASSERT_NOT_NULL(test, how);
	for (nr = 0; faulted; nr++) {
		struct twheel_call call = { .stride = sizeof(*how) };
		u64 rearmed = tw->events.rearmed;

		for (i = 0; i < 6; i++) {
			t[i] = arm_like(test, i == 3 ? OV : i == 1 ? PE : 0);
			how[i] = (struct twheel_arm){
				.id = timeout_id(t[i]), .result = 77,
				.expires_ns = (i % 2 ? 1 : 50) * TICK_NS,
				.slack_ticks = i == 4,
			};
		}
		how[5].id ^= BIT_ULL(40);
		faults_begin(nr);
		done = max(twheel_rearm_step(tw, user, 6, &call), 0);
		faulted = faults_end();
		audit(test);
		KUNIT_ASSERT_EQ(test, faulted, done < 6);
		for (i = 0; i < 6; i++) {
			KUNIT_ASSERT_EQ(test, how[i].result == 77, i >= done);
			if (i < 5)
				KUNIT_ASSERT_EQ(test, timeout_known_ns(t[i]) ==
						START_NS + how[i].expires_ns, i < done);
		}
		if (done < 6)
			KUNIT_ASSERT_EQ(test, twheel_rearm_step(tw, user + done, 6 - done, &call),
					6 - done);
		for (i = 0; i < 6; i++)
			KUNIT_ASSERT_EQ(test, how[i].result, i == 5 ? -ENOENT :
					i == 3 ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING);
		KUNIT_ASSERT_EQ(test, call.nr_ok, 5U);
		KUNIT_ASSERT_EQ(test, tw->events.rearmed - rearmed, 5ULL);
		for (i = 0; i < 6; i++)
			KUNIT_ASSERT_GT(test, cancel(tw, timeout_id(t[i])), 0);
	}
	KUNIT_EXPECT_GT(test, nr, 6);
}

/* The page for periods is made outside the lock, and the element is tried again. */
static void a_rearm_that_needs_a_page_gets_it_and_goes_on(struct kunit *test)
{
	struct twheel_arm how = arm_of(PE | SL, 0);
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, 0);

	KUNIT_ASSERT_NULL(test, timeout_page(t)->extra);
	how.id = timeout_id(t);
	KUNIT_EXPECT_EQ(test, twheel_rearm_one(tw, &how, false, true), -EAGAIN);
	KUNIT_EXPECT_EQ(test, rearm(tw, how.id, &how), TWHEEL_WAS_PENDING);
	KUNIT_EXPECT_NOT_NULL(test, timeout_page(t)->extra);
	KUNIT_EXPECT_TRUE(test, timeout_is_periodic(t));
	KUNIT_EXPECT_EQ(test, twheel_rearm_one(tw, &how, false, true), 0);
	KUNIT_EXPECT_EQ(test, tw->events.rearmed, 2ULL);
	expect_charged_for_all(test);
}

/* G4: a one-shot needs none. */
static void a_rearm_for_which_there_is_no_memory_leaves_the_timeout_alone(struct kunit *test)
{
	struct twheel_arm how = arm_of(PE, 0), once = { .expires_ns = 1 };
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, 0);
	u64 id = timeout_id(t), deadline_ns = t->deadline_ns;

	no_memory = true;
	KUNIT_EXPECT_EQ(test, rearm(tw, id, &how), -ENOMEM);
	KUNIT_EXPECT_EQ(test, t->deadline_ns, deadline_ns);
	KUNIT_EXPECT_TRUE(test, timeout_is_pending(t));
	KUNIT_EXPECT_EQ(test, tw->events.rearmed, 0ULL);
	KUNIT_EXPECT_EQ(test, rearm(tw, id, &once), TWHEEL_WAS_PENDING);
	expect_charged_for_all(test);
}

/* The timeout does not wait for the edge of its tick, at any place of a vector. */
static void a_rearm_to_now_makes_an_event_at_once(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_call call = { .stride = sizeof(struct twheel_arm) };
	struct twheel_arm how[3] = {};
	u64 now_ns = START_NS + TICK_NS / 2;
	unsigned int i;
	u64 ids[3];

	arm_many(test, ARRAY_SIZE(ids), ids);
	time_set(tw, now_ns);
	for (i = 0; i < ARRAY_SIZE(how); i++)
		how[i] = (struct twheel_arm){
			.id = ids[i], .expires_ns = now_ns, .flags = TWHEEL_ARM_ABSOLUTE,
		};
	KUNIT_EXPECT_EQ(test, twheel_rearm_step(tw, (struct twheel_arm __user __force *)how,
						ARRAY_SIZE(how), &call), (int)ARRAY_SIZE(how));
	KUNIT_EXPECT_EQ(test, nr_unread(tw), (u32)ARRAY_SIZE(how));
}

/*
 * If there is no memory for the first element, it fails alone: the second one needs none, since the
 * page beside its own has it already.
 */
static void a_rearm_without_memory_for_one_element_finds_what_the_next_one_needs(struct kunit *test)
{
	struct twheel_arm how[2] = { arm_of(PE, 0), arm_of(PE, 0) };
	struct twheel_call call = { .stride = sizeof(struct twheel_arm) };
	struct tw_ctx *tw = test->priv;
	u64 *ids = arm_all(test);
	unsigned int i;

	for (i = 0; i < MAX_PENDING; i++) {
		u32 nr = (u32)ids[i] / PLACES_PER_PAGE;

		if (nr == 1)
			how[1].id = ids[i];
		else if (nr == 2)
			how[0].id = ids[i];
	}
	KUNIT_ASSERT_EQ(test, twheel_extra_provide(tw, 0, false), 0);
	memory_limit(twheel_charged(), LONG_MAX);
	i = 0;
	while (i < 2) {
		int done = twheel_rearm_step(tw, (struct twheel_arm __user __force *)&how[i],
					     2 - i, &call);

		KUNIT_ASSERT_GT(test, done, 0);
		i += done;
	}
	KUNIT_EXPECT_EQ(test, how[0].result, -ENOSPC);
	KUNIT_EXPECT_EQ(test, how[1].result, TWHEEL_WAS_PENDING);
}

/* Re-arm as a vector of one element does. */
static bool rearm_alone(struct tw_ctx *tw, u64 id, u64 deadline_ns)
{
	struct twheel_arm how = {
		.id = id, .flags = TWHEEL_ARM_ABSOLUTE, .expires_ns = deadline_ns, .result = 77,
	};
	bool done = twheel_rearm_plain(tw, to_user(how));

	return done && how.result == TWHEEL_WAS_PENDING;
}

static void a_single_rearm_that_is_not_plain_begins_nothing(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t = arm_like(test, 0), *periodic = arm_like(test, PE);
	u64 id = timeout_id(t), before_ns = t->deadline_ns, period_ns = periodic->deadline_ns;

	KUNIT_EXPECT_FALSE(test, rearm_alone(tw, timeout_id(periodic), before_ns + TICK_NS));
	KUNIT_EXPECT_EQ(test, periodic->deadline_ns, period_ns);
	KUNIT_EXPECT_FALSE(test, rearm_alone(tw, id ^ BIT_ULL(40), before_ns + TICK_NS));
	KUNIT_EXPECT_FALSE(test, rearm_alone(tw, id, time_of(tw)));
	KUNIT_EXPECT_FALSE(test, rearm_alone(tw, id, TWHEEL_TIME_NEVER));
	WRITE_ONCE(tw->control.draining, true);
	KUNIT_EXPECT_FALSE(test, rearm_alone(tw, id, before_ns + TICK_NS));
	WRITE_ONCE(tw->control.draining, false);
	/* Whichever access faults. */
	faults_begin(7);
	KUNIT_EXPECT_FALSE(test, rearm_alone(tw, id, before_ns + TICK_NS));
	KUNIT_EXPECT_TRUE(test, faults_end());
	KUNIT_EXPECT_EQ(test, t->deadline_ns, before_ns);
	KUNIT_EXPECT_EQ(test, tw->events.rearmed, 0ULL);
	audit(test);
	KUNIT_EXPECT_TRUE(test, rearm_alone(tw, id, before_ns + TICK_NS));
	KUNIT_EXPECT_EQ(test, t->deadline_ns, before_ns + TICK_NS);
	KUNIT_EXPECT_TRUE(test, rearm_alone(tw, id, before_ns - TICK_NS));
	KUNIT_EXPECT_EQ(test, tick_of_expiry(test, t),
			deadline_tick(&tw->clock, before_ns - TICK_NS));
	KUNIT_EXPECT_EQ(test, tw->events.rearmed, 2ULL);
}

static struct kunit_case rearm_cases[] = {
	KUNIT_CASE(a_single_rearm_that_is_not_plain_begins_nothing),
	KUNIT_CASE_PARAM(rearm_to_a_later_time_begins_a_new_schedule, start_gen_params),
	KUNIT_CASE_PARAM(rearm_to_the_past_makes_an_event_at_once, start_gen_params),
	KUNIT_CASE(rearm_of_any_other_id_says_enoent_and_changes_nothing),
	KUNIT_CASE(a_timeout_that_moves_later_keeps_its_slot),
	KUNIT_CASE(a_rearm_that_is_to_move_one_way_only_says_erange),
	KUNIT_CASE(a_rearm_that_faults_anywhere_goes_on_where_it_stopped),
	KUNIT_CASE(a_rearm_that_needs_a_page_gets_it_and_goes_on),
	KUNIT_CASE(a_rearm_for_which_there_is_no_memory_leaves_the_timeout_alone),
	KUNIT_CASE(a_rearm_to_now_makes_an_event_at_once),
	KUNIT_CASE(a_rearm_without_memory_for_one_element_finds_what_the_next_one_needs),
	{}
};

ENGINE_SUITE(rearm);
