// SPDX-License-Identifier: GPL-2.0
/*
 * The checks of tokio-util's tests of its DelayQueue, made on the device: items are inserted, reset
 * and removed while a task polls the queue. Documentation/peers.rst says where the other checks
 * are.
 *
 * There, a task is woken. Here, an edge-triggered epoll watches the wheel. It also watches for free
 * places, which there always are: so each wake-up is reported, even one in vain. Time goes on by
 * single ticks. (A DelayQueue may wake for a cascade; a wheel may not.)
 */
#include "twheel_test.h"

#include <sys/epoll.h>

#define MAX_KEYS	8
/* If the start were 0, no item could be inserted in the past. */
#define START_MS	1000

/*
 * Times are distances from the start, in milliseconds, and may be negative. An action of a script
 * happens at its time, after the events that are due have been read; an expectation names the
 * items that come at a time.
 */
struct line {
	int at;
	enum { END, INSERT, RESET, REMOVE, EXPECT } what;
	int key;
	int deadline;		/* INSERT, RESET */
};

#define COMES(at, key)	{ at, EXPECT, key, 0 }
#define MAX_LINES	16

FIXTURE(delay_queue) {
	int fd;
	int ep;
};

FIXTURE_VARIANT(delay_queue) {
	__u32 slots;
	int until;			/* time goes by single ticks until here */
	struct line lines[MAX_LINES];	/* the lines, and behind them END, which is 0 */
};

/* Return whether the wheel has woken anybody since the last call. */
static bool woken(int ep)
{
	struct epoll_event event;

	return epoll_wait(ep, &event, 1, 0) == 1;
}

FIXTURE_SETUP(delay_queue)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = TW_MS,
		.slots = variant->slots,
	};
	struct epoll_event watch = { .events = EPOLLIN | EPOLLOUT | EPOLLET };

	self->fd = tw_open_setup(O_NONBLOCK | O_CLOEXEC, &setup);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, START_MS * TW_MS));
	self->ep = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_LE(0, self->ep);
	ASSERT_EQ(0, epoll_ctl(self->ep, EPOLL_CTL_ADD, self->fd, &watch));
	/* The wheel has free places from the beginning. */
	ASSERT_TRUE(woken(self->ep));
}

FIXTURE_TEARDOWN(delay_queue)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->ep);
	close(self->fd);
}

/*
 * Change one key. If an item is inserted overdue, it may have expired before a reset or a removal:
 * both verdicts are good, but there must be one.
 */
static void perform(struct __test_metadata *_metadata, int fd, __u64 *keys, const struct line *line)
{
	__u64 deadline_ns = (START_MS + line->deadline) * TW_MS;
	int ret;

	switch (line->what) {
	case INSERT:
		ASSERT_EQ(0, tw_arm1(fd, TWHEEL_ARM_ABSOLUTE, deadline_ns, 0, line->key,
				     &keys[line->key]));
		break;
	case RESET:
		ret = tw_rearm1(fd, keys[line->key], TWHEEL_ARM_ABSOLUTE, deadline_ns, 0);
		ASSERT_TRUE(ret == TWHEEL_WAS_PENDING || ret == TWHEEL_WAS_UNREAD);
		break;
	case REMOVE:
		ret = tw_cancel1(fd, keys[line->key]);
		ASSERT_TRUE(ret == TWHEEL_WAS_PENDING || ret == TWHEEL_WAS_UNREAD);
		break;
	case END:
	case EXPECT:
		break;
	}
}

/* Expect the keys that the script names for this time, and no others. */
static void expect_keys(struct __test_metadata *_metadata, int fd, const __u64 *keys,
			const struct line *lines, int at)
{
	struct twheel_event events[MAX_KEYS + 1];
	const struct line *line;
	int i, nr, wanted = 0;

	nr = tw_read(fd, events, MAX_KEYS + 1);
	for (line = lines; line->what; line++) {
		if (line->what != EXPECT || line->at != at)
			continue;
		for (i = 0; i < nr && events[i].user_data != line->key; i++)
			;
		ASSERT_GT(nr, i)
			TH_LOG("key %d did not come at %d", line->key, at);
		EXPECT_EQ(keys[line->key], events[i].id);
		wanted++;
	}
	ASSERT_EQ(wanted ?: -EAGAIN, nr)
		TH_LOG("at %d", at);
}

/* Wait for the items after the last single tick: nobody is woken before. */
static void expect_later(struct __test_metadata *_metadata, int fd, int ep, const __u64 *keys,
			 const struct line *lines, int until)
{
	const struct line *line;

	for (line = lines; line->what; line++) {
		if (line->what != EXPECT || line->at <= until)
			continue;
		ASSERT_EQ(0, tw_advance(fd, (START_MS + line->at) * TW_MS - 1));
		ASSERT_FALSE(woken(ep));
		ASSERT_EQ(0, tw_advance(fd, (START_MS + line->at) * TW_MS));
		ASSERT_TRUE(woken(ep));
		expect_keys(_metadata, fd, keys, lines, line->at);
	}
}

/*
 * Whether the story has nothing at this tick, nor at those beside it. If the kernel is slow, only
 * one such tick in TW_SLOWDOWN is checked.
 */
static bool passed_over(const struct line *lines, int at)
{
	const struct line *line;

	if (at % (int)tw_setting("TW_SLOWDOWN", 1) == 0)
		return false;
	for (line = lines; line->what; line++)
		if (abs(line->at - at) <= 1 || line->deadline == at)
			return false;
	return true;
}

static void run_script(struct __test_metadata *_metadata, int fd, int ep,
		       const struct line *lines, int until)
{
	const struct line *line;
	bool overdue = false;
	__u64 keys[MAX_KEYS];
	int at;

	for (at = 0; at <= until; at++) {
		bool expected = false;

		if (passed_over(lines, at))
			continue;
		ASSERT_EQ(0, tw_advance(fd, (START_MS + at) * TW_MS));
		for (line = lines; line->what; line++)
			expected |= line->what == EXPECT && line->at == at;
		/* No cascade wakes anybody, and no deadline that was moved away. */
		ASSERT_TRUE(woken(ep) == expected || overdue)
			TH_LOG("at %d, where %s was expected", at, expected ? "one" : "none");
		expect_keys(_metadata, fd, keys, lines, at);
		overdue = false;
		for (line = lines; line->what; line++) {
			if (line->at != at || line->what == EXPECT)
				continue;
			perform(_metadata, fd, keys, line);
			overdue |= line->what != REMOVE && line->deadline <= at;
		}
		/* If an item is due at once, it may wake before the next tick; nothing else may. */
		EXPECT_TRUE(!woken(ep) || overdue)
			TH_LOG("woken by a change at %d", at);
	}
	EXPECT_NO_EVENT(fd);
	expect_later(_metadata, fd, ep, keys, lines, until);
}

#define A_STORY(name, how_long, ...)					\
FIXTURE_VARIANT_ADD(delay_queue, name) {				\
	.slots = 64, .until = how_long, .lines = { __VA_ARGS__ },	\
};									\
FIXTURE_VARIANT_ADD(delay_queue, name##_in_levels_of_4) {		\
	.slots = 4, .until = how_long, .lines = { __VA_ARGS__ },	\
}

/* single_short_delay, multi_delay_at_start */
A_STORY(delays_of_all_sorts, 1010,
	{ 0, INSERT, 0, 1000 }, { 0, INSERT, 1, 2 }, { 0, INSERT, 2, 234 },
	{ 0, INSERT, 3, 262144 + 9 * 4096 }, { 0, INSERT, 4, 60 }, { 0, INSERT, 5, 10 },
	COMES(2, 1), COMES(10, 5), COMES(60, 4), COMES(234, 2), COMES(1000, 0),
	COMES(262144 + 9 * 4096, 3));
/* remove_entry */
A_STORY(a_removed_item, 15, { 0, INSERT, 0, 5 }, { 1, REMOVE, 0, 0 });
/* reset_entry */
A_STORY(an_item_reset_to_later, 15,
	{ 0, INSERT, 0, 5 }, { 1, RESET, 0, 10 }, COMES(10, 0));
/* reset_much_later, which was tokio issue 849 */
A_STORY(an_item_reset_to_much_earlier, 205,
	{ 1, INSERT, 0, 200 }, { 4, RESET, 0, 10 }, COMES(10, 0));
/* reset_twice, likewise */
A_STORY(an_item_reset_twice_to_earlier, 205,
	{ 1, INSERT, 0, 200 }, { 4, RESET, 0, 50 }, { 24, RESET, 0, 40 }, COMES(40, 0));
/* repeatedly_reset_entry_inserted_as_expired, reset_inserted_expired */
A_STORY(an_item_inserted_expired_and_reset_repeatedly, 120,
	{ 0, INSERT, 0, -100 }, { 0, RESET, 0, 100 }, { 0, RESET, 0, 50 }, COMES(50, 0));
/* remove_expired_item */
A_STORY(an_item_inserted_expired_and_removed, 15,
	{ 0, INSERT, 0, -10 }, { 0, REMOVE, 0, 0 }, { 3, INSERT, 0, -10 }, { 3, REMOVE, 0, 0 });
/* multi_reset */
A_STORY(items_reset_over_one_another, 405,
	{ 0, INSERT, 0, 200 }, { 0, INSERT, 1, 250 }, { 0, RESET, 0, 300 },
	{ 0, RESET, 1, 350 }, { 0, RESET, 0, 400 }, COMES(350, 1), COMES(400, 0));
/* expire_first_key_when_reset_to_expire_earlier */
A_STORY(the_first_of_two_reset_to_earlier, 260,
	{ 0, INSERT, 0, 200 }, { 0, INSERT, 1, 250 }, { 0, RESET, 0, 100 },
	COMES(100, 0), COMES(250, 1));
/* expire_second_key_when_reset_to_expire_earlier */
A_STORY(the_second_of_two_reset_to_earlier, 260,
	{ 0, INSERT, 0, 200 }, { 0, INSERT, 1, 250 }, { 0, RESET, 1, 100 },
	COMES(100, 1), COMES(200, 0));
/* reset_first_expiring_item_to_expire_later */
A_STORY(the_first_of_two_reset_to_later, 310,
	{ 0, INSERT, 0, 200 }, { 0, INSERT, 1, 250 }, { 0, RESET, 0, 300 },
	COMES(250, 1), COMES(300, 0));
/* insert_before_first_after_poll */
A_STORY(an_item_inserted_before_the_first, 210,
	{ 0, INSERT, 0, 200 }, { 1, INSERT, 1, 100 }, COMES(100, 1), COMES(200, 0));
/* expires_before_last_insert */
A_STORY(an_item_inserted_far_before_the_first, 610,
	{ 0, INSERT, 0, 10000 }, { 1, INSERT, 1, 600 }, COMES(600, 1));
/* reset_later_after_slot_starts */
A_STORY(an_item_reset_to_later_when_its_slot_has_begun, 130,
	{ 0, INSERT, 0, 100 }, { 80, RESET, 0, 120 }, COMES(120, 0));
/* reset_earlier_after_slot_starts */
A_STORY(an_item_reset_to_earlier_when_its_slot_has_begun, 210,
	{ 0, INSERT, 0, 200 }, { 80, RESET, 0, 120 }, COMES(120, 0));
/* insert_in_past_after_poll_fires_immediately */
A_STORY(an_item_reset_into_the_past, 200,
	{ 0, INSERT, 0, 150 }, { 80, INSERT, 1, 150 }, { 90, RESET, 1, 40 },
	COMES(91, 1), COMES(150, 0));
/* compact_change_deadline: here places are freed without a call */
A_STORY(items_changed_while_places_are_freed_and_taken, 60,
	{ 0, INSERT, 0, 10 }, { 0, INSERT, 1, 10 }, { 0, INSERT, 2, 20 }, { 0, INSERT, 3, 20 },
	COMES(10, 0), COMES(10, 1), { 10, INSERT, 4, 20 }, { 10, INSERT, 5, 20 },
	{ 10, RESET, 3, 30 }, { 10, RESET, 5, 30 }, COMES(20, 2), COMES(20, 4),
	COMES(30, 3), COMES(30, 5));

TEST_F_TIMEOUT(delay_queue, a_waiter_is_woken_when_a_timeout_expires_and_at_no_other_tick, 60)
{
	run_script(_metadata, self->fd, self->ep, variant->lines, variant->until);
}

TEST_HARNESS_MAIN
