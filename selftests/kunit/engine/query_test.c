// SPDX-License-Identifier: GPL-2.0
/*
 * engine/query.c: QUERY, LIST and INFO
 */

static void query_reports_what_a_timeout_is_doing(struct kunit *test)
{
	const struct start *start = test->param_value;
	struct twheel_status status = {};
	struct tw_ctx *tw = test->priv;
	bool waits;

	bring(test, start, &status.id);
	twheel_query(tw, &status, 1, false);
	KUNIT_ASSERT_EQ(test, status.result, 0);
	KUNIT_EXPECT_EQ(test, status.state,
			start->drains ? TWHEEL_STATE_DRAINED :
			start->fires ? TWHEEL_STATE_EXPIRED : TWHEEL_STATE_PENDING);
	/* If its rate is fixed, the timeout is pending while its event is unread. */
	waits = (!start->fires && !start->drains) || start->to.read == GOES_ON;
	KUNIT_EXPECT_EQ(test, status.left_ns, !waits || status.deadline_ns < time_of(tw) ? 0 :
					      status.deadline_ns - time_of(tw));
	KUNIT_EXPECT_EQ(test, status.user_data, 0x1122334455667788ULL);
	KUNIT_EXPECT_EQ(test, status.interval_ns, start->kind & PE ? PERIOD_NS : 0);
	KUNIT_EXPECT_EQ(test, status.flags & TWHEEL_ARM_FIXED_DELAY,
			start->kind & IS_FIXED_DELAY ? TWHEEL_ARM_FIXED_DELAY : 0);
	KUNIT_EXPECT_EQ(test, status.flags & ~TWHEEL_ARM_FIXED_DELAY,
			start->to.read == COMPLETES || start->to.read == OUT ?
			TWHEEL_STATUS_LAST_EVENT : 0);
	/* On the way to its state no timeout has expired more than once. */
	KUNIT_EXPECT_EQ(test, status.count, (u32)start->fires);
	KUNIT_EXPECT_EQ(test, status.slack_ticks, start->kind & SL ? 1U : 0U);
	KUNIT_EXPECT_EQ(test, status.repeats_left,
			start->repeats ? start->repeats - status.count : 0);
}

static void query_of_an_id_that_names_nothing_says_enoent(struct kunit *test)
{
	struct twheel_status *status = kunit_kcalloc(test, 3, sizeof(*status), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	u64 id;

	KUNIT_ASSERT_NOT_NULL(test, status);
	KUNIT_ASSERT_EQ(test, arm_plain(tw, &id), 0);
	status[0].id = id ^ BIT_ULL(32);
	status[1].id = id;
	twheel_query(tw, status, 3, false);
	KUNIT_EXPECT_EQ(test, status[0].result, -ENOENT);
	KUNIT_EXPECT_EQ(test, status[1].result, 0);
	KUNIT_EXPECT_EQ(test, status[2].result, -ENOENT);
}

/* A step of LIST ends with a page of places: the lock is not held for all of them. */
static void list_goes_by_pages_and_finds_each_timeout_once(struct kunit *test)
{
	struct twheel_status *rows = kunit_kcalloc(test, TWHEEL_BATCH, sizeof(*rows), GFP_KERNEL);
	u64 *ids = kunit_kcalloc(test, 300, sizeof(*ids), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	unsigned int i, found = 0, steps = 0;
	u64 cursor = 0, last = 0;
	int nr;

	KUNIT_ASSERT_NOT_NULL(test, rows);
	KUNIT_ASSERT_NOT_NULL(test, ids);
	arm_many(test, 300, ids);
	for (i = 0; i < 300; i++)
		if (i % 3)
			cancel(tw, ids[i]);
	while ((nr = twheel_list(tw, &cursor, rows, TWHEEL_BATCH)) >= 0) {
		KUNIT_ASSERT_LE(test, nr, (int)TWHEEL_BATCH);
		for (i = 0; i < nr; i++) {
			KUNIT_ASSERT_NOT_NULL(test, find(tw, rows[i].id));
			KUNIT_ASSERT_EQ(test, rows[i].state, TWHEEL_STATE_PENDING);
			KUNIT_ASSERT_TRUE(test, !last || (u32)rows[i].id > (u32)last);
			last = rows[i].id;
		}
		found += nr;
		KUNIT_ASSERT_LT(test, ++steps, 100U);
	}
	KUNIT_EXPECT_EQ(test, found, 100U);
	KUNIT_EXPECT_GE(test, steps, tw->places.pages.nr);
}

/* INFO reads slack, words, and periods of unread events. */
static void info_reports_when_the_next_timeout_expires(struct kunit *test)
{
	struct twheel_info info = { .flags = TWHEEL_INFO_WALK };
	struct tw_ctx *tw = test->priv;
	struct twheel_timeout *t;

	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns, TWHEEL_TIME_NEVER);
	arm(test, &(struct twheel_arm) { .expires_ns = TWHEEL_TIME_NEVER });
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns, TWHEEL_TIME_NEVER);
	arm(test, &(struct twheel_arm) { .expires_ns = 100 * TICK_NS });
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns, START_NS + 100 * TICK_NS);
	arm(test, &(struct twheel_arm) { .expires_ns = TICK_NS, .slack_ticks = 63 });
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns, 1024 * TICK_NS);
	t = arm_like(test, PE);
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns, START_NS + 6 * TICK_NS);
	expire_at(tw, START_NS + 6 * TICK_NS);
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns, START_NS + 16 * TICK_NS);
	KUNIT_EXPECT_EQ(test, info.pending, 4ULL);
	KUNIT_EXPECT_EQ(test, info.unread, 1ULL);
	KUNIT_EXPECT_EQ(test, info.live, 4ULL);
	cancel(tw, timeout_id(t));
	info.flags = 0;
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns, 0ULL);
}

static int info_in_another_thread(struct tw_ctx *tw)
{
	struct twheel_info info = { .flags = TWHEEL_INFO_WALK };

	return twheel_get_info(tw, &info);
}

/* ADVANCE and DRAIN hold control.mutex for as long as their passes take. */
static void info_of_a_started_wheel_does_not_wait_for_advance(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	expect_no_wait(test, &tw->control.mutex, info_in_another_thread, 0);
}

/* INFO visits each place of a page, up to the last one. */
static void info_finds_the_last_place_of_a_page(struct kunit *test)
{
	struct twheel_info info = { .flags = TWHEEL_INFO_WALK };
	struct twheel_arm how = { .expires_ns = 7 * TICK_NS };
	struct tw_ctx *tw = test->priv;
	u64 ids[PLACES_PER_PAGE];
	unsigned int i;

	arm_many(test, PLACES_PER_PAGE, ids);
	for (i = 0; i < PLACES_PER_PAGE; i++) {
		if ((u32)ids[i] == PLACES_PER_PAGE - 1)
			rearm(tw, ids[i], &how);
		else
			cancel(tw, ids[i]);
	}
	twheel_get_info(tw, &info);
	KUNIT_EXPECT_EQ(test, info.next_expiry_ns, START_NS + 7 * TICK_NS);
}

static struct kunit_case query_cases[] = {
	KUNIT_CASE_PARAM(query_reports_what_a_timeout_is_doing, start_gen_params),
	KUNIT_CASE(query_of_an_id_that_names_nothing_says_enoent),
	KUNIT_CASE(list_goes_by_pages_and_finds_each_timeout_once),
	KUNIT_CASE(info_reports_when_the_next_timeout_expires),
	KUNIT_CASE(info_of_a_started_wheel_does_not_wait_for_advance),
	KUNIT_CASE(info_finds_the_last_place_of_a_page),
	{}
};

ENGINE_SUITE(query);
