// SPDX-License-Identifier: GPL-2.0
/*
 * engine/lock.c: which waiters are woken, and how often
 */

struct waiter {
	struct wait_queue_entry entry;
	unsigned int nr_woken;
	__poll_t events;
};

static int waiter_wakes(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	struct waiter *waiter = container_of(entry, struct waiter, entry);

	waiter->nr_woken++;
	waiter->events |= key_to_poll(key);
	return 1;
}

static void waiter_queues(struct tw_ctx *tw, struct waiter *waiter)
{
	init_waitqueue_func_entry(&waiter->entry, waiter_wakes);
	add_wait_queue(&tw->waiters, &waiter->entry);
}

static void waiter_leaves(struct tw_ctx *tw, struct waiter *waiter)
{
	remove_wait_queue(&tw->waiters, &waiter->entry);
}

/* The waiter is woken once for all events under one hold of the lock. */
static void a_waiter_is_woken_once_for_the_events_of_a_step(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct waiter waiter = {};
	unsigned int i;

	for (i = 0; i < 40; i++)
		arm_like(test, i % 2 ? PE : 0);
	waiter_queues(tw, &waiter);
	time_set(tw, START_NS + DELAY_NS + TICK_NS);
	pass(tw);
	KUNIT_EXPECT_EQ(test, nr_unread(tw), 40U);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	KUNIT_EXPECT_EQ(test, (u32)waiter.events, (u32)(EPOLLIN | EPOLLRDNORM));
	/* If nothing expires, no waiter is woken. */
	pass(tw);
	arm_like(test, 0);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	/* If a timeout is due when armed, it has an event. */
	arm_like(test, OV);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 2U);
	waiter_leaves(tw, &waiter);
}

/* There are as many threads as events, and each wants one. */
static void as_many_exclusive_waiters_are_woken_as_there_are_events(struct kunit *test)
{
	struct waiter waiter[8] = {};
	struct tw_ctx *tw = test->priv;
	unsigned int i, nr = 0;

	for (i = 0; i < 3; i++)
		arm_like(test, 0);
	for (i = 0; i < 8; i++) {
		init_waitqueue_func_entry(&waiter[i].entry, waiter_wakes);
		add_wait_queue_exclusive(&tw->waiters, &waiter[i].entry);
	}
	time_set(tw, START_NS + DELAY_NS + TICK_NS);
	pass(tw);
	for (i = 0; i < 8; i++) {
		nr += waiter[i].nr_woken;
		waiter_leaves(tw, &waiter[i]);
	}
	KUNIT_EXPECT_EQ(test, nr, 3U);
}

static void nobody_is_woken_for_events_that_were_read_meanwhile(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct waiter waiter = {};

	waiter_queues(tw, &waiter);
	twheel_wake_for_events(tw, 1);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 0U);
	arm_like(test, OV);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	twheel_wake_for_events(tw, 1);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 2U);
	KUNIT_ASSERT_EQ(test, read_one(tw, NULL), 1);
	twheel_wake_for_events(tw, 1);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 2U);
	waiter_leaves(tw, &waiter);
}

/*
 * A poller for EPOLLOUT waits only while the wheel is full; each way to end a timeout frees a
 * place.
 */
static void a_waiter_for_room_is_woken_when_a_full_wheel_is_not_full_any_more(struct kunit *test)
{
	struct tw_ctx *tw = wheel_with(test, max_pending, 3);
	struct waiter waiter = {};
	u64 id[3];
	int i;

	time_set(tw, START_NS);
	pass(tw);
	waiter_queues(tw, &waiter);
	KUNIT_ASSERT_EQ(test, arm_plain(tw, &id[0]), 0);
	KUNIT_ASSERT_EQ(test, arm_plain(tw, &id[1]), 0);
	KUNIT_EXPECT_TRUE(test, has_room(tw));
	cancel(tw, id[1]);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 0U);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, arm_plain(tw, &id[1]), 0);
		KUNIT_ASSERT_EQ(test, arm_plain(tw, &id[2]), 0);
		KUNIT_EXPECT_FALSE(test, has_room(tw));
		waiter = (struct waiter){ .entry = waiter.entry };
		if (i == 0) {
			cancel(tw, id[1]);
			cancel(tw, id[2]);
		} else if (i == 1) {
			twheel_cancel_one(tw, id[1], false);
			twheel_cancel_one(tw, id[2], false);
		} else {
			expire_at(tw, START_NS + DELAY_NS + TICK_NS);
			waiter.nr_woken = 0;
			waiter.events = 0;
			read_one(tw, NULL);
			read_one(tw, NULL);
		}
		KUNIT_EXPECT_EQ_MSG(test, waiter.nr_woken, 1U, "way %d", i);
		KUNIT_EXPECT_EQ(test, (u32)waiter.events, (u32)(EPOLLOUT | EPOLLWRNORM));
		KUNIT_EXPECT_TRUE(test, has_room(tw));
	}
	waiter_leaves(tw, &waiter);
}

/* G4: the thread that completes a drain wakes the pollers that wait for its end. */
static void the_end_of_a_drain_wakes_all(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct waiter waiter = {};

	arm_like(test, 0);
	waiter_queues(tw, &waiter);
	drain(tw);
	KUNIT_EXPECT_TRUE(test, twheel_is_drained(tw));
	KUNIT_EXPECT_TRUE(test, waiter.events & EPOLLHUP);
	KUNIT_EXPECT_TRUE(test, waiter.events & EPOLLIN);
	waiter.nr_woken = 0;
	pass(tw);
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 0U);
	waiter_leaves(tw, &waiter);
}

/* The same holds for a wheel without timeouts: there is no event to wake for. */
static void the_end_of_a_drain_without_events_wakes_all(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;
	struct waiter waiter = {};

	waiter_queues(tw, &waiter);
	drain(tw);
	KUNIT_EXPECT_TRUE(test, twheel_is_drained(tw));
	KUNIT_EXPECT_EQ(test, waiter.nr_woken, 1U);
	KUNIT_EXPECT_TRUE(test, waiter.events & EPOLLHUP);
	waiter_leaves(tw, &waiter);
}

static struct kunit_case wake_cases[] = {
	KUNIT_CASE(a_waiter_is_woken_once_for_the_events_of_a_step),
	KUNIT_CASE(as_many_exclusive_waiters_are_woken_as_there_are_events),
	KUNIT_CASE(nobody_is_woken_for_events_that_were_read_meanwhile),
	KUNIT_CASE(a_waiter_for_room_is_woken_when_a_full_wheel_is_not_full_any_more),
	KUNIT_CASE(the_end_of_a_drain_wakes_all),
	KUNIT_CASE(the_end_of_a_drain_without_events_wakes_all),
	{}
};

ENGINE_SUITE(wake);
