// SPDX-License-Identifier: GPL-2.0
/*
 * What tokio-util's tests of its DelayQueue (tests/time_delay_queue.rs) check,
 * asked of the device.  There a task polls the queue and is woken; here an
 * edge-triggered epoll watches the wheel for room as well, of which there is
 * always some, so that each time somebody is woken it says so, were it in vain.
 * Time goes on by single ticks.  (A DelayQueue may wake for a cascade; a wheel
 * may not.)
 *
 *   there                                     here
 *   single_immediate_delay                    arm.c: relative_zero_expires_...
 *   multi_immediate_delays                    delays_of_zero_...
 *   single_short_delay, multi_delay_at_start  wakes_at_the_delays_...
 *   insert_in_past_fires_immediately          arm.c: deadline_that_has_passed_...
 *   remove_entry, reset_*, multi_reset,
 *   expire_*_when_reset_to_expire_earlier,
 *   repeatedly_reset_entry_inserted_as_expired,
 *   expires_before_last_insert, insert_before_first_after_poll,
 *   insert_in_past_after_poll_fires_immediately,
 *   compact_change_deadline                   scripts, see there
 *   remove_expired_item                       an_item_inserted_expired_...
 *   remove_at_timer_wheel_threshold           what_expired_where_a_level_begins_...
 *   insert_after_ready_poll                   items_inserted_between_...
 *   item_expiry_greater_than_wheel            a_queue_older_than_2_36_...
 *   compact_remove_remapped_keys              keys_stay_good_...
 *   compact_expire_empty, compact_remove_empty  limits.c: places are free at once
 *   remove_after_compact, _poll               cancel.c: stale_id_says_enoent_...
 *   peek                                      info.c: next_expiry
 *   delay_queue_poll_expired_when_empty,
 *   wake_after_remove_last                    an empty wheel is no end: traps,
 *                                             a_reader_of_a_wheel_that_...
 */
#include "twheel_test.h"

#include <sys/epoll.h>

#define MAX_KEYS	8
/* Not 0, so that there is a past to insert into. */
#define START_MS	1000

FIXTURE(delay_queue) {
	int fd;
	int ep;
	__u64 slots;
	__u64 now_ms;
	__u64 keys[MAX_KEYS];
};

FIXTURE_VARIANT(delay_queue) {
	__u32 slots;
};

FIXTURE_VARIANT_ADD(delay_queue, levels_of_64) { .slots = 64 };
FIXTURE_VARIANT_ADD(delay_queue, levels_of_4) { .slots = 4 };

/* Whether the wheel has woken anybody since it was asked last. */
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

	self->slots = variant->slots;
	self->fd = tw_open_setup(O_NONBLOCK | O_CLOEXEC, &setup);
	ASSERT_LE(0, self->fd);
	self->now_ms = START_MS;
	ASSERT_EQ(0, tw_advance(self->fd, START_MS * TW_MS));
	self->ep = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_LE(0, self->ep);
	ASSERT_EQ(0, epoll_ctl(self->ep, EPOLL_CTL_ADD, self->fd, &watch));
	/* The room there is from the beginning. */
	ASSERT_TRUE(woken(self->ep));
}

FIXTURE_TEARDOWN(delay_queue)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->ep);
	close(self->fd);
}

/* ---- scripts ------------------------------------------------------------- */

/*
 * Times are distances from the start, in milliseconds, and may be negative.
 * What a script says happens at that time, after what is due has been read;
 * what it expects is who comes when.
 */
struct line {
	int at;
	enum { INSERT, RESET, REMOVE, EXPECT } what;
	int key;
	int deadline;		/* INSERT, RESET */
};

#define COMES(at, key)	{ at, EXPECT, key, 0 }
#define SCRIPT(...)	((const struct line[]){ __VA_ARGS__, { -1, EXPECT, 0, 0 } })

/*
 * Changes one key.  What is inserted overdue may have expired before a reset or
 * a removal comes: both verdicts are good, but one there must be.
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
	case EXPECT:
		break;
	}
}

/* Exactly those keys of which the script says so come at that time. */
static void expect_keys(struct __test_metadata *_metadata, int fd, const __u64 *keys,
			const struct line *script, int at)
{
	struct twheel_event events[MAX_KEYS + 1];
	const struct line *line;
	int i, nr, wanted = 0;

	nr = tw_read(fd, events, MAX_KEYS + 1);
	for (line = script; line->at >= 0; line++) {
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

static void run_script(struct __test_metadata *_metadata, int fd, int ep,
		       const struct line *script, int until)
{
	const struct line *line;
	bool overdue = false;
	__u64 keys[MAX_KEYS];
	int at;

	for (at = 0; at <= until; at++) {
		bool expected = false;

		ASSERT_EQ(0, tw_advance(fd, (START_MS + at) * TW_MS));
		for (line = script; line->at >= 0; line++)
			expected |= line->what == EXPECT && line->at == at;
		/* Not for a cascade, nor at a deadline that was moved away. */
		ASSERT_TRUE(woken(ep) == expected || overdue)
			TH_LOG("at %d, where %s was expected", at, expected ? "one" : "none");
		expect_keys(_metadata, fd, keys, script, at);
		overdue = false;
		for (line = script; line->at >= 0; line++) {
			if (line->at != at || line->what == EXPECT)
				continue;
			perform(_metadata, fd, keys, line);
			overdue |= line->what != REMOVE && line->deadline <= at;
		}
		/* What is due at once may wake before the next tick; nothing else. */
		EXPECT_TRUE(!woken(ep) || overdue)
			TH_LOG("woken by a change at %d", at);
	}
	EXPECT_NO_EVENT(fd);
}

#define RUN(until, ...)							\
	run_script(_metadata, self->fd, self->ep, SCRIPT(__VA_ARGS__), until)

/* single_short_delay, multi_delay_at_start */
TEST_F_TIMEOUT(delay_queue, wakes_at_the_delays_and_at_no_other_tick, 60)
{
	RUN(1010,
	    { 0, INSERT, 0, 1000 }, { 0, INSERT, 1, 2 }, { 0, INSERT, 2, 234 },
	    { 0, INSERT, 3, 262144 + 9 * 4096 }, { 0, INSERT, 4, 60 }, { 0, INSERT, 5, 10 },
	    COMES(2, 1), COMES(10, 5), COMES(60, 4), COMES(234, 2),
	    COMES(1000, 0));
	/* The long one is still to come, on its own tick. */
	ASSERT_EQ(0, tw_advance(self->fd, (START_MS + 262144 + 9 * 4096 - 1) * TW_MS));
	EXPECT_FALSE(woken(self->ep));
	ASSERT_EQ(0, tw_advance(self->fd, (START_MS + 262144 + 9 * 4096) * TW_MS));
	EXPECT_TRUE(woken(self->ep));
}

/* remove_entry */
TEST_F(delay_queue, a_removed_item_wakes_nobody)
{
	RUN(15, { 0, INSERT, 0, 5 }, { 1, REMOVE, 0, 0 });
}

/* reset_entry */
TEST_F(delay_queue, an_item_reset_to_later_wakes_only_then)
{
	RUN(15, { 0, INSERT, 0, 5 }, { 1, RESET, 0, 10 }, COMES(10, 0));
}

/* reset_much_later, which was tokio issue 849 */
TEST_F(delay_queue, an_item_reset_to_much_earlier_wakes_then)
{
	RUN(205, { 1, INSERT, 0, 200 }, { 4, RESET, 0, 10 }, COMES(10, 0));
}

/* reset_twice, likewise */
TEST_F(delay_queue, an_item_reset_twice_to_earlier_wakes_at_the_last_deadline)
{
	RUN(205, { 1, INSERT, 0, 200 }, { 4, RESET, 0, 50 }, { 24, RESET, 0, 40 },
	    COMES(40, 0));
}

/* repeatedly_reset_entry_inserted_as_expired */
TEST_F(delay_queue, an_item_inserted_expired_and_reset_repeatedly_wakes_once)
{
	RUN(120, { 0, INSERT, 0, -100 }, { 0, RESET, 0, 100 }, { 0, RESET, 0, 50 },
	    COMES(50, 0));
}

/* reset_inserted_expired */
TEST_F(delay_queue, an_item_inserted_expired_and_reset_is_one_item)
{
	struct twheel_info info;
	__u64 key;

	ASSERT_EQ(0, tw_arm_at(self->fd, (START_MS - 100) * TW_MS, &key));
	ASSERT_LT(0, tw_rearm1(self->fd, key, TWHEEL_ARM_ABSOLUTE, (START_MS + 100) * TW_MS, 0));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1, info.live);
	EXPECT_EQ(1, info.pending);
	EXPECT_EQ(0, info.unread);
}

/* multi_reset */
TEST_F(delay_queue, items_reset_over_one_another_come_in_their_last_order)
{
	RUN(405, { 0, INSERT, 0, 200 }, { 0, INSERT, 1, 250 },
	    { 0, RESET, 0, 300 }, { 0, RESET, 1, 350 }, { 0, RESET, 0, 400 },
	    COMES(350, 1), COMES(400, 0));
}

/* expire_first_key_when_reset_to_expire_earlier */
TEST_F(delay_queue, the_first_of_two_reset_to_earlier_comes_first)
{
	RUN(260, { 0, INSERT, 0, 200 }, { 0, INSERT, 1, 250 }, { 0, RESET, 0, 100 },
	    COMES(100, 0), COMES(250, 1));
}

/* expire_second_key_when_reset_to_expire_earlier */
TEST_F(delay_queue, the_second_of_two_reset_to_earlier_comes_first)
{
	RUN(260, { 0, INSERT, 0, 200 }, { 0, INSERT, 1, 250 }, { 0, RESET, 1, 100 },
	    COMES(100, 1), COMES(200, 0));
}

/* reset_first_expiring_item_to_expire_later */
TEST_F(delay_queue, the_first_of_two_reset_to_later_lets_the_second_come_first)
{
	RUN(310, { 0, INSERT, 0, 200 }, { 0, INSERT, 1, 250 }, { 0, RESET, 0, 300 },
	    COMES(250, 1), COMES(300, 0));
}

/* insert_before_first_after_poll */
TEST_F(delay_queue, an_item_inserted_before_the_first_comes_first)
{
	RUN(210, { 0, INSERT, 0, 200 }, { 1, INSERT, 1, 100 },
	    COMES(100, 1), COMES(200, 0));
}

/* expires_before_last_insert */
TEST_F(delay_queue, an_item_inserted_far_before_the_first_does_not_wait_for_its_level)
{
	RUN(610, { 0, INSERT, 0, 10000 }, { 1, INSERT, 1, 600 }, COMES(600, 1));
}

/* reset_later_after_slot_starts */
TEST_F(delay_queue, an_item_reset_to_later_when_its_slot_has_begun_wakes_only_then)
{
	RUN(130, { 0, INSERT, 0, 100 }, { 80, RESET, 0, 120 }, COMES(120, 0));
}

/* reset_earlier_after_slot_starts */
TEST_F(delay_queue, an_item_reset_to_earlier_when_its_slot_has_begun_wakes_then)
{
	RUN(210, { 0, INSERT, 0, 200 }, { 80, RESET, 0, 120 }, COMES(120, 0));
}

/* insert_in_past_after_poll_fires_immediately */
TEST_F(delay_queue, an_item_inserted_in_the_past_is_there_at_the_next_turn)
{
	RUN(200, { 0, INSERT, 0, 150 }, { 80, INSERT, 1, 150 }, { 90, RESET, 1, 40 },
	    COMES(91, 1), COMES(150, 0));
}

/* compact_change_deadline: what frees places there happens by itself here */
TEST_F(delay_queue, deadlines_are_changed_while_places_are_freed_and_taken)
{
	RUN(60, { 0, INSERT, 0, 10 }, { 0, INSERT, 1, 10 }, { 0, INSERT, 2, 20 },
	    { 0, INSERT, 3, 20 }, COMES(10, 0), COMES(10, 1),
	    { 10, INSERT, 4, 20 }, { 10, INSERT, 5, 20 }, { 10, RESET, 3, 30 },
	    { 10, RESET, 5, 30 }, COMES(20, 2), COMES(20, 4),
	    COMES(30, 3), COMES(30, 5));
}

/* ---- single stories ------------------------------------------------------ */

/* multi_immediate_delays */
TEST_F(delay_queue, delays_of_zero_come_all_and_once)
{
	struct twheel_event events[4];
	bool seen[3] = {};
	__u64 id;
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, tw_arm1(self->fd, 0, 0, 0, i, &id));
	ASSERT_EQ(0, tw_advance(self->fd, START_MS * TW_MS));
	ASSERT_EQ(3, tw_read(self->fd, events, 4));
	for (i = 0; i < 3; i++) {
		ASSERT_GT(3, events[i].user_data);
		EXPECT_FALSE(seen[events[i].user_data]);
		seen[events[i].user_data] = true;
	}
}

/* remove_expired_item */
TEST_F(delay_queue, an_item_inserted_expired_can_be_taken_back)
{
	__u64 key;
	int i;

	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, tw_arm_at(self->fd, (START_MS - 10) * TW_MS, &key));
		ASSERT_LT(0, tw_cancel1(self->fd, key));
		ASSERT_EQ(0, tw_advance(self->fd, START_MS * TW_MS));
		EXPECT_NO_EVENT(self->fd);
	}
}

/* remove_at_timer_wheel_threshold: the first tick of a slot, at each level */
TEST_F(delay_queue, what_expired_where_a_level_begins_can_be_taken_back)
{
	const __u64 ticks[] = {
		self->slots, 2 * self->slots, self->slots * 64, self->slots * self->slots,
		self->slots * 128, self->slots * 128 * 128,
	};
	__u64 now_ticks = START_MS, keys[2];
	struct twheel_event event;
	int i, other;

	for (i = 0; i < ARRAY_SIZE(ticks); i++) {
		/* The next multiple of what a slot of that level spans. */
		__u64 edge_ticks = (now_ticks / ticks[i] + 1) * ticks[i];

		ASSERT_EQ(0, tw_arm_at(self->fd, edge_ticks * TW_MS, &keys[0]));
		ASSERT_EQ(0, tw_arm_at(self->fd, edge_ticks * TW_MS, &keys[1]));
		ASSERT_EQ(0, tw_advance(self->fd, edge_ticks * TW_MS));
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		other = event.id == keys[0];
		ASSERT_EQ(keys[!other], event.id);
		EXPECT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, keys[other]));
		EXPECT_NO_EVENT(self->fd);
		now_ticks = edge_ticks;
	}
}

/* insert_after_ready_poll */
TEST_F(delay_queue, items_inserted_between_reads_do_not_push_in)
{
	struct twheel_event event;
	__u64 id, seen = 0;
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, tw_arm1(self->fd, 0, 100 * TW_MS, 0, i, &id));
	ASSERT_EQ(0, tw_advance(self->fd, (START_MS + 100) * TW_MS));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		ASSERT_GT(3, event.user_data);
		seen |= 1 << event.user_data;
		ASSERT_EQ(0, tw_arm1(self->fd, 0, 400 * TW_MS, 0, 9, &id));
	}
	EXPECT_EQ(7, seen);
	EXPECT_NO_EVENT(self->fd);
}

/* item_expiry_greater_than_wheel */
TEST_F(delay_queue, a_queue_older_than_2_36_ms_still_takes_items)
{
	__u64 key, now_ms = START_MS;
	struct twheel_event event;
	int i;

	for (i = 0; i < 3; i++) {
		now_ms += 1ULL << 35;
		ASSERT_EQ(0, tw_advance(self->fd, now_ms * TW_MS));
		ASSERT_EQ(0, tw_arm_in(self->fd, 0, &key));
		ASSERT_EQ(0, tw_advance(self->fd, now_ms * TW_MS));
		ASSERT_ONE_EVENT(self->fd, &event, key);
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &key));
		ASSERT_EQ(0, tw_advance(self->fd, now_ms * TW_MS + TW_MS - 1));
		EXPECT_NO_EVENT(self->fd);
		now_ms++;
		ASSERT_EQ(0, tw_advance(self->fd, now_ms * TW_MS));
		ASSERT_ONE_EVENT(self->fd, &event, key);
	}
}

#define CROWD	12000
#define VECTOR	500
#define KEPT	1000		/* each 1000th is */

static __u64 crowd[CROWD];

/* Arms what is not there, and takes all back but each 1000th. */
static void come_and_go(struct __test_metadata *_metadata, int fd, bool again)
{
	struct twheel_cancel cancels[VECTOR] = {};
	struct twheel_arm arms[VECTOR] = {};
	int i, first, from;

	for (first = 0; first < CROWD; first += VECTOR) {
		from = again && first % KEPT == 0;
		for (i = from; i < VECTOR; i++)
			arms[i] = (struct twheel_arm){
				.expires_ns = TW_HOUR + (first + i) * TW_MS,
				.user_data = first + i,
			};
		ASSERT_EQ(VECTOR - from, tw_arm_vec(fd, &arms[from], VECTOR - from));
		for (i = from; i < VECTOR; i++)
			crowd[first + i] = arms[i].id;
	}
	ASSERT_EQ(0, tw_advance(fd, START_MS * TW_MS));
	for (first = 0; first < CROWD; first += VECTOR) {
		from = first % KEPT == 0;
		for (i = from; i < VECTOR; i++)
			cancels[i].id = crowd[first + i];
		ASSERT_EQ(VECTOR - from, tw_cancel_vec(fd, &cancels[from], VECTOR - from));
	}
	ASSERT_EQ(0, tw_advance(fd, START_MS * TW_MS));
}

/*
 * compact_remove_remapped_keys: so many are removed that the kernel sweeps the
 * wheel and gives memory back; the keys that are left know nothing of it.
 */
TEST_F_TIMEOUT(delay_queue, keys_stay_good_while_those_around_them_go, 60)
{
	struct twheel_event event;
	struct twheel_info info;
	int i;

	come_and_go(_metadata, self->fd, false);
	come_and_go(_metadata, self->fd, true);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(CROWD / KEPT, info.live);
	/* One half is moved, the other one stays; each comes in its time. */
	for (i = 0; i < CROWD; i += 2 * KEPT) {
		ASSERT_EQ(TWHEEL_WAS_PENDING,
			  tw_rearm1(self->fd, crowd[i], TWHEEL_ARM_ABSOLUTE,
				    (START_MS + 10 + i) * TW_MS, 0));
	}
	for (i = 0; i < CROWD; i += 2 * KEPT) {
		ASSERT_EQ(0, tw_advance(self->fd, (START_MS + 10 + i) * TW_MS));
		ASSERT_ONE_EVENT(self->fd, &event, crowd[i]);
		EXPECT_EQ(i, event.user_data);
	}
	for (i = KEPT; i < CROWD; i += 2 * KEPT) {
		ASSERT_EQ(0, tw_advance(self->fd, (START_MS + i) * TW_MS + TW_HOUR));
		ASSERT_ONE_EVENT(self->fd, &event, crowd[i]);
		EXPECT_EQ(i, event.user_data);
	}
}

TEST_HARNESS_MAIN
