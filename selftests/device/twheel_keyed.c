// SPDX-License-Identifier: GPL-2.0
/*
 * Keyed wheels: user_data is the key, and no two live timeouts have the same one. ARM creates or
 * replaces in one step and reports which; REARM, CANCEL and QUERY may name a timeout by its key.
 */
#include "twheel_keyed.h"

#include <sys/mman.h>

#define KEY		42ULL

FIXTURE(keyed) {
	int fd;
};

TW_SETTLE_VARIANTS(keyed);

/* A keyed wheel with a tick of 1 ms whose clock stands at 0. */
FIXTURE_SETUP(keyed)
{
	TW_SETTLE();
	self->fd = key_virtual(O_NONBLOCK, 0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(keyed)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Expect nothing until the edge at deadline_ns, and then one event of this deadline. */
static void expect_expiry(struct __test_metadata *_metadata, int fd, __u64 key, __u64 id,
			  __u64 deadline_ns)
{
	struct twheel_event event;

	ASSERT_EQ(0, tw_advance(fd, deadline_ns - 1));
	EXPECT_NO_EVENT(fd);
	ASSERT_EQ(0, tw_advance(fd, deadline_ns));
	ASSERT_ONE_EVENT(fd, &event, id);
	EXPECT_EQ(key, event.user_data);
	EXPECT_EQ(deadline_ns, event.deadline_ns);
	EXPECT_EQ(deadline_ns, event.fired_ns);
	EXPECT_EQ(1, event.count);
}

/* Expect that no timeout has this key: all calls by key say so, and change nothing. */
static void expect_absent(struct __test_metadata *_metadata, int fd, __u64 key, int line)
{
	struct twheel_status status;
	struct tw_snapshot before;

	if (_metadata->aborted)
		return;
	ASSERT_EQ(0, tw_snapshot(fd, &before));
	EXPECT_EQ(-ENOENT, key_query(fd, key, &status))
		TH_LOG("line %d: key %#llx", line, key);
	EXPECT_EQ(-ENOENT, key_cancel(fd, key))
		TH_LOG("line %d: key %#llx", line, key);
	EXPECT_EQ(-ENOENT, key_arm(fd, key, TW_DAY, TWHEEL_ARM_IF_PRESENT))
		TH_LOG("line %d: key %#llx", line, key);
	EXPECT_UNCHANGED(fd, &before);
}

#define EXPECT_ABSENT(fd, key)	expect_absent(_metadata, fd, key, __LINE__)

/* Expect that a timeout with this key is pending until deadline_ns; return its id. */
static __u64 expect_pending(struct __test_metadata *_metadata, int fd, __u64 key,
			    __u64 deadline_ns, int line)
{
	struct twheel_status status = { .id = key };

	EXPECT_EQ(0, key_query(fd, key, &status))
		TH_LOG("line %d: key %#llx", line, key);
	EXPECT_EQ(TWHEEL_STATE_PENDING, status.state)
		TH_LOG("line %d", line);
	EXPECT_EQ(key, status.user_data)
		TH_LOG("line %d", line);
	EXPECT_EQ(deadline_ns, status.deadline_ns)
		TH_LOG("line %d", line);
	return status.id;
}

#define EXPECT_PENDING(fd, key, deadline_ns)	\
	expect_pending(_metadata, fd, key, deadline_ns, __LINE__)

/* ---- the wheel ----------------------------------------------------------- */

TEST_F(keyed, info_reports_the_flag)
{
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(TWHEEL_SETUP_KEYED, info.setup_flags);
}

TEST_F(keyed, new_wheel_has_no_key)
{
	EXPECT_ABSENT(self->fd, KEY);
	EXPECT_ABSENT(self->fd, 0);
	EXPECT_ABSENT(self->fd, ~0ULL);
}

TEST_F(keyed, two_wheels_have_keys_of_their_own)
{
	struct twheel_arm mine, other;
	int fd = key_virtual(O_NONBLOCK, 0);

	ASSERT_LE(0, fd);
	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 10 * TW_MS, 0, &mine));
	EXPECT_ABSENT(fd, KEY);
	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(fd, KEY, 20 * TW_MS, 0, &other));
	EXPECT_EQ(TWHEEL_WAS_PENDING, key_cancel(fd, KEY));
	EXPECT_EQ(mine.id, EXPECT_PENDING(self->fd, KEY, 10 * TW_MS));
	close(fd);
}

/* The module counts its wheels' memory: closing one with keys in it gives all back. */
TEST_F(keyed, wheel_full_of_keys_can_be_closed)
{
	int i, fd = key_virtual(O_NONBLOCK, 0);

	ASSERT_LE(0, fd);
	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(TWHEEL_CREATED, key_arm(fd, i, 1 + i * TW_MS, 0));
	}
	ASSERT_EQ(0, tw_advance(fd, 500 * TW_MS));
	close(fd);
}

/* ---- ARM ----------------------------------------------------------------- */

TEST_F(keyed, absent_key_is_created)
{
	struct twheel_arm arm;
	struct twheel_info info;

	EXPECT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 10 * TW_MS, 0, &arm));
	EXPECT_NE(0, arm.id);
	EXPECT_NE(TW_POISON64, arm.id);
	EXPECT_EQ(0, arm.was_deadline_ns);
	EXPECT_EQ(arm.id, EXPECT_PENDING(self->fd, KEY, 10 * TW_MS));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1, info.armed);
	EXPECT_EQ(0, info.rearmed);
	EXPECT_EQ(1, info.live);
	expect_expiry(_metadata, self->fd, KEY, arm.id, 10 * TW_MS);
}

TEST_F(keyed, arm_of_a_present_key_says_pending_and_keeps_its_id)
{
	struct twheel_arm first, second;
	struct twheel_info info;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 10 * TW_MS + 7, 0, &first));
	EXPECT_EQ(TWHEEL_WAS_PENDING, key_arm_at(self->fd, KEY, 20 * TW_MS, 0, &second));
	EXPECT_EQ(first.id, second.id);
	EXPECT_EQ(10 * TW_MS + 7, second.was_deadline_ns);
	EXPECT_EQ(first.id, EXPECT_PENDING(self->fd, KEY, 20 * TW_MS));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1, info.armed);
	EXPECT_EQ(1, info.rearmed);
	EXPECT_EQ(1, info.live);
	EXPECT_EQ(1, info.pending);
	EXPECT_EQ(0, info.cancelled);
	EXPECT_EQ(0, info.revoked);
}

TEST_F(keyed, replaced_timeout_expires_at_the_last_deadline_only)
{
	const __u64 way_ns[] = { TW_DAY, 15 * TW_MS, TW_HOUR, 3 * TW_MS, 7 * TW_MS };
	struct twheel_arm first, next;
	__u64 was_ns = 10 * TW_MS;
	int i;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, was_ns, 0, &first));
	for (i = 0; i < ARRAY_SIZE(way_ns); i++) {
		ASSERT_EQ(TWHEEL_WAS_PENDING, key_arm_at(self->fd, KEY, way_ns[i], 0, &next));
		EXPECT_EQ(was_ns, next.was_deadline_ns);
		EXPECT_EQ(first.id, next.id);
		was_ns = way_ns[i];
	}
	expect_expiry(_metadata, self->fd, KEY, first.id, 7 * TW_MS);
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_DAY));
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(keyed, arm_of_an_unread_key_says_unread_and_its_event_never_comes)
{
	struct twheel_arm first, second;
	struct twheel_info info;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 10 * TW_MS - 3, 0, &first));
	ASSERT_EQ(0, tw_advance(self->fd, 12 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, key_arm_at(self->fd, KEY, 20 * TW_MS, 0, &second));
	EXPECT_EQ(first.id, second.id);
	EXPECT_EQ(10 * TW_MS - 3, second.was_deadline_ns);
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1, info.armed);
	EXPECT_EQ(1, info.rearmed);
	EXPECT_EQ(1, info.live);
	EXPECT_EQ(1, info.pending);
	EXPECT_EQ(0, info.unread);
	EXPECT_EQ(0, info.revoked);
	EXPECT_EQ(0, info.delivered);
	expect_expiry(_metadata, self->fd, KEY, first.id, 20 * TW_MS);
	EXPECT_ABSENT(self->fd, KEY);
}

/* Each of these calls finds the event of the one before. */
TEST_F(keyed, unread_timeout_replaced_again_and_again_leaves_one_event)
{
	struct twheel_arm first, next;
	struct twheel_event event;
	int i;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, TW_MS, 0, &first));
	for (i = 1; i < 100; i++) {
		ASSERT_EQ(0, tw_advance(self->fd, i * TW_MS));
		ASSERT_EQ(TWHEEL_WAS_UNREAD,
			  key_arm_at(self->fd, KEY, (i + 1) * TW_MS, 0, &next));
		EXPECT_EQ(first.id, next.id);
		EXPECT_EQ(i * TW_MS, next.was_deadline_ns);
	}
	ASSERT_EQ(0, tw_advance(self->fd, TW_SEC));
	ASSERT_ONE_EVENT(self->fd, &event, first.id);
	EXPECT_EQ(100 * TW_MS, event.deadline_ns);
	EXPECT_EQ(1, event.count);
	EXPECT_NO_EVENT(self->fd);
}

/* An idle timeout: each request re-arms it by an upsert. */
TEST_F(keyed, timeout_replaced_in_time_never_expires)
{
	__u64 now_ns;

	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, 10 * TW_MS, 0));
	for (now_ns = 0; now_ns < 500 * TW_MS; now_ns += 9 * TW_MS) {
		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		EXPECT_NO_EVENT(self->fd);
		ASSERT_EQ(TWHEEL_WAS_PENDING, key_arm(self->fd, KEY, now_ns + 10 * TW_MS, 0));
	}
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(keyed, relative_deadline_counts_from_now)
{
	struct twheel_arm arm = { .user_data = KEY, .expires_ns = 3 * TW_MS };

	ASSERT_EQ(TWHEEL_CREATED, key_arm_entry(self->fd, &arm));
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_PENDING, key_arm_entry(self->fd, &arm));
	EXPECT_EQ(3 * TW_MS, arm.was_deadline_ns);
	EXPECT_PENDING(self->fd, KEY, 5 * TW_MS);
}

TEST_F(keyed, deadline_that_has_passed_expires_at_the_next_turn)
{
	struct twheel_event event;
	struct twheel_arm arm;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, TW_HOUR, 0, &arm));
	ASSERT_EQ(0, tw_advance(self->fd, 8 * TW_MS + 1));
	ASSERT_EQ(TWHEEL_WAS_PENDING, key_arm(self->fd, KEY, 2 * TW_MS, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 8 * TW_MS + 1));
	ASSERT_ONE_EVENT(self->fd, &event, arm.id);
	EXPECT_EQ(2 * TW_MS, event.deadline_ns);
	EXPECT_EQ(8 * TW_MS + 1, event.fired_ns);
}

TEST_F(keyed, end_of_time_reads_back_as_such_when_it_is_replaced)
{
	struct twheel_arm arm;

	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, TWHEEL_TIME_NEVER, 0));
	ASSERT_EQ(TWHEEL_WAS_PENDING, key_arm_at(self->fd, KEY, TWHEEL_TIME_NEVER, 0, &arm));
	EXPECT_EQ(TWHEEL_TIME_NEVER, arm.was_deadline_ns);
	ASSERT_EQ(TWHEEL_WAS_PENDING, key_arm_at(self->fd, KEY, TW_MS, 0, &arm));
	EXPECT_EQ(TWHEEL_TIME_NEVER, arm.was_deadline_ns);
	expect_expiry(_metadata, self->fd, KEY, arm.id, TW_MS);
}

/* The keys may have any bits in common. */
TEST_F(keyed, each_of_64_bits_distinguishes_keys)
{
	__u64 keys[2 + 2 * 64];
	struct twheel_arm arm;
	int i, nr = 0;

	keys[nr++] = 0;
	keys[nr++] = ~0ULL;
	for (i = 0; i < 64; i++) {
		keys[nr++] = 1ULL << i;
		keys[nr++] = ~(1ULL << i);
	}
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, keys[i], TW_SEC + i, 0))
			TH_LOG("key %#llx", keys[i]);
	}
	for (i = 0; i < nr; i++) {
		EXPECT_PENDING(self->fd, keys[i], TW_SEC + i);
		ASSERT_EQ(TWHEEL_WAS_PENDING,
			  key_arm_at(self->fd, keys[i], TW_MIN + i, 0, &arm));
		EXPECT_EQ(TW_SEC + i, arm.was_deadline_ns);
	}
	for (i = 0; i < nr; i++) {
		EXPECT_PENDING(self->fd, keys[i], TW_MIN + i);
		ASSERT_EQ(TWHEEL_WAS_PENDING, key_cancel(self->fd, keys[i]));
		ASSERT_EQ(-ENOENT, key_cancel(self->fd, keys[i]));
	}
}

TEST_F(keyed, refused_element_has_no_id_and_changes_nothing)
{
	struct twheel_arm arm = {
		.user_data = KEY, .expires_ns = TW_MS, .repeats = 3,
	};
	struct tw_snapshot before;

	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-EINVAL, key_arm_entry(self->fd, &arm));
	EXPECT_EQ(0, arm.id);
	EXPECT_UNCHANGED(self->fd, &before);
	EXPECT_ABSENT(self->fd, KEY);
	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, 10 * TW_MS, 0));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-EINVAL, key_arm_entry(self->fd, &arm));
	EXPECT_EQ(0, arm.id);
	EXPECT_UNCHANGED(self->fd, &before);
}

/* If an element of a newer header has a member that this kernel does not know, it is refused. */
TEST_F(keyed, element_refused_for_its_tail_has_no_id_and_has_replaced_nothing)
{
	struct {
		struct twheel_arm arm;
		__u64 tail;
	} newer[2] = {
		{ .arm.user_data = KEY, .arm.expires_ns = TW_MS, .tail = 1 },
		{ .arm.user_data = KEY, .arm.expires_ns = 2 * TW_MS },
	};
	__u32 nr_done;
	int i;

	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, 10 * TW_MS, 0));
	for (i = 0; i < 2; i++) {
		newer[i].arm.id = TW_POISON64;
		newer[i].arm.was_deadline_ns = TW_POISON64;
	}
	EXPECT_EQ(1, tw_vector_done(self->fd, TWHEEL_IOC_ARM, newer, sizeof(newer[0]), 2,
				    &nr_done));
	EXPECT_EQ(2, nr_done);
	EXPECT_EQ(-E2BIG, newer[0].arm.result);
	EXPECT_EQ(0, newer[0].arm.id);
	EXPECT_EQ(0, newer[0].arm.was_deadline_ns);
	EXPECT_EQ(TWHEEL_WAS_PENDING, newer[1].arm.result);
	EXPECT_EQ(10 * TW_MS, newer[1].arm.was_deadline_ns);
}

/* ---- periods ------------------------------------------------------------- */

TEST_F(keyed, limit_flags_interval_slack_and_deliveries_are_replaced)
{
	struct twheel_arm first = {
		.user_data = KEY, .flags = TWHEEL_ARM_FIXED_DELAY, .expires_ns = TW_MS,
		.interval_ns = 7 * TW_MS, .repeats = 5, .slack_ticks = 3,
	};
	struct twheel_arm second = {
		.user_data = KEY, .expires_ns = TW_MS, .interval_ns = 3 * TW_MS, .repeats = 9,
	};
	struct twheel_status status;

	struct twheel_event event;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_entry(self->fd, &first));
	/* With its slack, it expires at the end of four ticks. */
	ASSERT_EQ(0, tw_advance(self->fd, 4 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, first.id);
	ASSERT_EQ(0, key_query(self->fd, KEY, &status));
	EXPECT_EQ(TWHEEL_ARM_FIXED_DELAY, status.flags);
	EXPECT_EQ(3, status.slack_ticks);
	EXPECT_EQ(4, status.repeats_left);
	EXPECT_EQ(1, status.deliveries);

	EXPECT_EQ(TWHEEL_WAS_PENDING, key_arm_entry(self->fd, &second));
	EXPECT_EQ(first.id, second.id);
	EXPECT_EQ(11 * TW_MS, second.was_deadline_ns);
	ASSERT_EQ(0, key_query(self->fd, KEY, &status));
	EXPECT_EQ(first.id, status.id);
	EXPECT_EQ(0, status.flags);
	EXPECT_EQ(0, status.slack_ticks);
	EXPECT_EQ(3 * TW_MS, status.interval_ns);
	EXPECT_EQ(9, status.repeats_left);
	EXPECT_EQ(0, status.deliveries);
	EXPECT_EQ(0, status.count);
}

TEST_F(keyed, one_shot_becomes_periodic_and_periodic_a_one_shot)
{
	struct twheel_arm arm = {
		.user_data = KEY, .expires_ns = TW_MS, .interval_ns = 5 * TW_MS,
	};
	struct twheel_status status;
	int i;

	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, TW_HOUR, 0));
	ASSERT_EQ(TWHEEL_WAS_PENDING, key_arm_entry(self->fd, &arm));
	for (i = 0; i < 4; i++)
		expect_expiry(_metadata, self->fd, KEY, arm.id, TW_MS + i * 5 * TW_MS);
	ASSERT_EQ(TWHEEL_WAS_PENDING, key_arm(self->fd, KEY, 50 * TW_MS, 0));
	ASSERT_EQ(0, key_query(self->fd, KEY, &status));
	EXPECT_EQ(0, status.interval_ns);
	EXPECT_EQ(0, status.deliveries);
	expect_expiry(_metadata, self->fd, KEY, arm.id, 50 * TW_MS);
	EXPECT_ABSENT(self->fd, KEY);
}

TEST_F(keyed, periodic_timeout_keeps_its_key_from_event_to_event)
{
	struct twheel_arm arm = {
		.user_data = KEY, .expires_ns = TW_MS, .interval_ns = TW_MS,
	};
	struct twheel_event event;
	int i;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_entry(self->fd, &arm));
	for (i = 1; i < 10; i++) {
		ASSERT_EQ(0, tw_advance(self->fd, i * TW_MS));
		EXPECT_EQ(arm.id, key_id(self->fd, KEY));
		ASSERT_ONE_EVENT(self->fd, &event, arm.id);
		EXPECT_EQ(arm.id, key_id(self->fd, KEY));
	}
	EXPECT_EQ(-EEXIST, key_arm(self->fd, KEY, TW_SEC, TWHEEL_ARM_IF_ABSENT));
	EXPECT_EQ(TWHEEL_WAS_PENDING, key_cancel(self->fd, KEY));
	EXPECT_ABSENT(self->fd, KEY);
}

TEST_F(keyed, limited_timeout_frees_its_key_with_its_last_event)
{
	struct twheel_arm arm = {
		.user_data = KEY, .expires_ns = TW_MS, .interval_ns = TW_MS, .repeats = 3,
	};
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_entry(self->fd, &arm));
	id = arm.id;
	expect_expiry(_metadata, self->fd, KEY, id, TW_MS);
	EXPECT_EQ(id, EXPECT_PENDING(self->fd, KEY, 2 * TW_MS));
	/* Spent and unread: the timeout still has its key. */
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	EXPECT_EQ(id, key_id(self->fd, KEY));
	EXPECT_EQ(-EEXIST, key_arm(self->fd, KEY, TW_SEC, TWHEEL_ARM_IF_ABSENT));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(2, event.count);
	EXPECT_ABSENT(self->fd, KEY);
	EXPECT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, TW_SEC, 0, &arm));
	EXPECT_NE(id, arm.id);
}

TEST_F(keyed, spent_and_unread_timeout_begins_a_new_schedule)
{
	struct twheel_arm arm = {
		.user_data = KEY, .expires_ns = TW_MS, .interval_ns = TW_MS, .repeats = 2,
	};
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_entry(self->fd, &arm));
	id = arm.id;
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, key_arm_entry(self->fd, &arm));
	EXPECT_EQ(id, arm.id);
	EXPECT_EQ(2 * TW_MS, arm.was_deadline_ns);
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(2, event.count);
	EXPECT_EQ(12 * TW_MS, event.deadline_ns);
	EXPECT_ABSENT(self->fd, KEY);
}

TEST_F(keyed, fixed_delay_waits_unread_and_is_replaced_as_unread)
{
	struct twheel_arm arm = {
		.user_data = KEY, .expires_ns = 3 * TW_MS, .interval_ns = TW_MS,
		.flags = TWHEEL_ARM_FIXED_DELAY,
	};
	struct twheel_arm next;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_entry(self->fd, &arm));
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, key_arm_at(self->fd, KEY, 20 * TW_MS, 0, &next));
	EXPECT_EQ(arm.id, next.id);
	EXPECT_EQ(3 * TW_MS, next.was_deadline_ns);
	expect_expiry(_metadata, self->fd, KEY, arm.id, 20 * TW_MS);
	EXPECT_ABSENT(self->fd, KEY);
}

TEST_F(keyed, unread_event_of_a_period_is_revoked)
{
	struct twheel_arm arm = {
		.user_data = KEY, .expires_ns = 5 * TW_MS, .interval_ns = 10 * TW_MS,
	};
	struct twheel_arm next;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_entry(self->fd, &arm));
	ASSERT_EQ(0, tw_advance(self->fd, 6 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, key_arm_at(self->fd, KEY, 30 * TW_MS, 0, &next));
	EXPECT_EQ(5 * TW_MS, next.was_deadline_ns);
	expect_expiry(_metadata, self->fd, KEY, arm.id, 30 * TW_MS);
}

TEST_F(keyed, periods_that_passed_unread_are_in_the_deadline_that_is_replaced)
{
	struct twheel_arm arm = {
		.user_data = KEY, .expires_ns = 5 * TW_MS, .interval_ns = 10 * TW_MS,
	};
	struct twheel_arm next;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_entry(self->fd, &arm));
	ASSERT_EQ(0, tw_advance(self->fd, 5 * TW_MS));
	ASSERT_EQ(0, tw_advance(self->fd, 36 * TW_MS));
	EXPECT_EQ(-ERANGE, key_arm(self->fd, KEY, 35 * TW_MS, TWHEEL_ARM_ONLY_LATER));
	EXPECT_EQ(-ERANGE, key_arm(self->fd, KEY, 35 * TW_MS, TWHEEL_ARM_ONLY_EARLIER));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, key_arm_at(self->fd, KEY, 50 * TW_MS, 0, &next));
	EXPECT_EQ(35 * TW_MS, next.was_deadline_ns);
	expect_expiry(_metadata, self->fd, KEY, arm.id, 50 * TW_MS);
}

/* ---- when a key is free again --------------------------------------------- */

TEST_F(keyed, key_is_free_when_its_event_was_read)
{
	struct twheel_arm first, second;
	struct twheel_event event;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, TW_MS, 0, &first));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(first.id, key_id(self->fd, KEY));
	ASSERT_ONE_EVENT(self->fd, &event, first.id);
	EXPECT_ABSENT(self->fd, KEY);
	EXPECT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 5 * TW_MS, 0, &second));
	EXPECT_NE(first.id, second.id);
	EXPECT_EQ(0, second.was_deadline_ns);
	expect_expiry(_metadata, self->fd, KEY, second.id, 5 * TW_MS);
}

TEST_F(keyed, key_is_free_when_it_was_cancelled)
{
	struct twheel_arm first, second;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, TW_MS, 0, &first));
	EXPECT_EQ(TWHEEL_WAS_PENDING, key_cancel(self->fd, KEY));
	EXPECT_ABSENT(self->fd, KEY);
	EXPECT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 5 * TW_MS, 0, &second));
	EXPECT_NE(first.id, second.id);
	expect_expiry(_metadata, self->fd, KEY, second.id, 5 * TW_MS);
}

TEST_F(keyed, key_is_free_when_its_event_was_revoked)
{
	struct twheel_arm first, second;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, TW_MS, 0, &first));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, key_cancel(self->fd, KEY));
	EXPECT_ABSENT(self->fd, KEY);
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 5 * TW_MS, 0, &second));
	EXPECT_NE(first.id, second.id);
	expect_expiry(_metadata, self->fd, KEY, second.id, 5 * TW_MS);
}

TEST_F(keyed, key_is_free_when_its_id_was_cancelled)
{
	struct twheel_arm first, second;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, TW_MS, 0, &first));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, first.id));
	EXPECT_ABSENT(self->fd, KEY);
	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, TW_MS, 0, &second));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, second.id));
	EXPECT_ABSENT(self->fd, KEY);
	EXPECT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, 5 * TW_MS, 0));
}

/* The kthread may have seen the ARM or not; if it has, the place waits to be used again. */
TEST_F(keyed, key_is_free_again_and_again_at_once)
{
	__u64 previous = 0;
	int i;

	for (i = 0; i < 1000; i++) {
		struct twheel_arm arm;

		ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, TW_HOUR, 0, &arm));
		ASSERT_NE(previous, arm.id);
		previous = arm.id;
		if (i % 3 == 0) {
			ASSERT_EQ(0, tw_advance(self->fd, i * TW_US));
		}
		ASSERT_EQ(TWHEEL_WAS_PENDING, key_cancel(self->fd, KEY));
		ASSERT_EQ(-ENOENT, key_cancel(self->fd, KEY));
	}
	EXPECT_ABSENT(self->fd, KEY);
}

/* Their places may be others than those that are free. */
TEST_F(keyed, keys_that_have_ended_leave_room_for_as_many_as_may_pend)
{
	int fd = key_virtual(O_NONBLOCK, 100);
	__u64 key;

	ASSERT_LE(0, fd);
	for (key = 0; key < 100; key++)
		ASSERT_EQ(TWHEEL_CREATED, key_arm(fd, key, TW_DAY, 0));
	for (key = 0; key < 90; key++)
		ASSERT_EQ(TWHEEL_WAS_PENDING, key_cancel(fd, key));
	for (key = 100; key < 190; key++)
		ASSERT_EQ(TWHEEL_CREATED, key_arm(fd, key, TW_DAY, 0));
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

TEST_F(keyed, event_that_could_not_be_copied_keeps_its_key)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *nothing = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct twheel_event event;
	struct twheel_arm arm;

	ASSERT_NE(MAP_FAILED, nothing);
	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, TW_MS, 0, &arm));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(-1, read(self->fd, nothing, page));
	EXPECT_EQ(EFAULT, errno);
	munmap(nothing, page);
	EXPECT_EQ(arm.id, key_id(self->fd, KEY));
	EXPECT_EQ(-EEXIST, key_arm(self->fd, KEY, TW_SEC, TWHEEL_ARM_IF_ABSENT));
	ASSERT_ONE_EVENT(self->fd, &event, arm.id);
	EXPECT_ABSENT(self->fd, KEY);
}

/* ---- ids ----------------------------------------------------------------- */

TEST_F(keyed, ids_work_in_a_keyed_wheel)
{
	struct twheel_status status;
	struct twheel_arm arm;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 10 * TW_MS, 0, &arm));
	ASSERT_EQ(0, tw_query1(self->fd, arm.id, &status));
	EXPECT_EQ(KEY, status.user_data);
	EXPECT_EQ(10 * TW_MS, status.deadline_ns);
	EXPECT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, arm.id, TWHEEL_ARM_ABSOLUTE, 20 * TW_MS, 0));
	EXPECT_EQ(arm.id, EXPECT_PENDING(self->fd, KEY, 20 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, arm.id));
	EXPECT_ABSENT(self->fd, KEY);
}

/* A common bug of maps beside a wheel: the clean-up of one request ends the next one. */
TEST_F(keyed, old_id_does_not_touch_the_timeout_that_has_the_key_now)
{
	struct twheel_arm first, second;
	struct twheel_status status;
	struct tw_snapshot before;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 10 * TW_MS, 0, &first));
	ASSERT_EQ(TWHEEL_WAS_PENDING, key_cancel(self->fd, KEY));
	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 20 * TW_MS, 0, &second));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, first.id));
	EXPECT_EQ(-ENOENT, tw_rearm1(self->fd, first.id, 0, TW_MS, 0));
	EXPECT_EQ(-ENOENT, tw_query1(self->fd, first.id, &status));
	EXPECT_UNCHANGED(self->fd, &before);
	EXPECT_EQ(second.id, EXPECT_PENDING(self->fd, KEY, 20 * TW_MS));
}

TEST_F(keyed, id_is_no_key_and_key_is_no_id)
{
	struct twheel_status status;
	struct tw_snapshot before;
	struct twheel_arm arm;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 10 * TW_MS, 0, &arm));
	ASSERT_NE(KEY, arm.id);
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-ENOENT, key_cancel(self->fd, arm.id));
	EXPECT_EQ(-ENOENT, key_rearm(self->fd, arm.id, TW_SEC, 0));
	EXPECT_EQ(-ENOENT, key_query(self->fd, arm.id, &status));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, KEY));
	EXPECT_EQ(-ENOENT, tw_rearm1(self->fd, KEY, 0, TW_SEC, 0));
	EXPECT_EQ(-ENOENT, tw_query1(self->fd, KEY, &status));
	EXPECT_UNCHANGED(self->fd, &before);
}

/* A key may have the value of the id of another timeout. */
TEST_F(keyed, key_with_the_value_of_an_id_is_distinct_from_it)
{
	struct twheel_arm first, second;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 10 * TW_MS, 0, &first));
	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, first.id, 20 * TW_MS, 0, &second));
	EXPECT_EQ(TWHEEL_WAS_PENDING, key_cancel(self->fd, first.id));
	EXPECT_EQ(first.id, EXPECT_PENDING(self->fd, KEY, 10 * TW_MS));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, second.id));
}

/* ---- REARM, CANCEL, QUERY by key ------------------------------------------ */

TEST_F(keyed, rearm_by_key_begins_a_new_schedule)
{
	struct twheel_arm arm, rearm = {
		.id = KEY, .user_data = TW_POISON64, .expires_ns = 5 * TW_MS,
		.interval_ns = 2 * TW_MS, .repeats = 2,
	};
	struct twheel_status status;
	struct twheel_event event;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 10 * TW_MS, 0, &arm));
	ASSERT_EQ(1, key_rearm_vec(self->fd, &rearm, 1));
	EXPECT_EQ(TWHEEL_WAS_PENDING, rearm.result);
	ASSERT_EQ(0, key_query(self->fd, KEY, &status));
	EXPECT_EQ(arm.id, status.id);
	EXPECT_EQ(KEY, status.user_data);
	EXPECT_EQ(5 * TW_MS, status.deadline_ns);
	EXPECT_EQ(2 * TW_MS, status.interval_ns);
	EXPECT_EQ(2, status.repeats_left);
	ASSERT_EQ(0, tw_advance(self->fd, 5 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, key_rearm(self->fd, KEY, 20 * TW_MS, 0));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, arm.id);
	EXPECT_EQ(KEY, event.user_data);
	EXPECT_ABSENT(self->fd, KEY);
}

/* The key of the second element has the value of an id, that of the first one's timeout. */
TEST_F(keyed, rearm_by_key_goes_by_the_key_in_each_element)
{
	struct twheel_arm first, second, rearms[3];
	int i;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 10 * TW_MS, 0, &first));
	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, first.id, 20 * TW_MS, 0, &second));
	for (i = 0; i < 3; i++) {
		rearms[i] = (struct twheel_arm){
			.id = i == 1 ? first.id : KEY,
			.flags = TWHEEL_ARM_ABSOLUTE,
			.expires_ns = (30 + i) * TW_MS,
		};
	}
	ASSERT_EQ(3, key_rearm_vec(self->fd, rearms, 3));
	EXPECT_EQ(first.id, EXPECT_PENDING(self->fd, KEY, 32 * TW_MS));
	EXPECT_EQ(second.id, EXPECT_PENDING(self->fd, first.id, 31 * TW_MS));
}

TEST_F(keyed, rearm_of_an_absent_key_says_enoent_and_creates_nothing)
{
	struct tw_snapshot before;

	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-ENOENT, key_rearm(self->fd, KEY, TW_MS, 0));
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(keyed, cancel_by_key_says_what_it_found)
{
	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, 10 * TW_MS, 0));
	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY + 1, 20 * TW_MS, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, key_cancel(self->fd, KEY));
	EXPECT_EQ(TWHEEL_WAS_PENDING, key_cancel(self->fd, KEY + 1));
	EXPECT_EQ(-ENOENT, key_cancel(self->fd, KEY));
	EXPECT_EQ(-ENOENT, key_cancel(self->fd, KEY + 1));
	EXPECT_EQ(-ENOENT, key_cancel(self->fd, KEY + 2));
	ASSERT_EQ(0, tw_advance(self->fd, TW_SEC));
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(keyed, query_by_key_reports_each_field_and_the_id)
{
	struct twheel_arm arm = {
		.user_data = KEY, .expires_ns = 10 * TW_MS, .interval_ns = 7 * TW_MS,
		.repeats = 5, .flags = TWHEEL_ARM_FIXED_DELAY,
	};
	struct twheel_status by_key, by_id;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_entry(self->fd, &arm));
	ASSERT_EQ(0, tw_advance(self->fd, 3 * TW_MS));
	ASSERT_EQ(0, key_query(self->fd, KEY, &by_key));
	ASSERT_EQ(0, tw_query1(self->fd, arm.id, &by_id));
	EXPECT_EQ(0, memcmp(&by_id, &by_key, sizeof(by_id)));
	EXPECT_EQ(arm.id, by_key.id);
	EXPECT_EQ(7 * TW_MS, by_key.left_ns);

	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_EQ(0, key_query(self->fd, KEY, &by_key));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, by_key.state);
	EXPECT_EQ(arm.id, by_key.id);
}

TEST_F(keyed, query_of_an_absent_key_writes_its_result_only)
{
	struct twheel_status status, given;

	memset(&given, TW_POISON, sizeof(given));
	given.id = KEY;
	given.result = -ENOENT;
	EXPECT_EQ(-ENOENT, key_query(self->fd, KEY, &status));
	EXPECT_EQ(0, memcmp(&given, &status, sizeof(given)));
}

TEST_F(keyed, list_shows_each_key_once)
{
	struct twheel_status rows[20];
	bool seen[10] = {};
	int i;

	for (i = 0; i < 10; i++) {
		ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, 100 + i, (1 + i) * TW_MS, 0));
	}
	ASSERT_EQ(0, tw_advance(self->fd, 5 * TW_MS));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(i < 5 ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING,
			  key_arm(self->fd, 100 + i, (20 + i) * TW_MS, 0));
	}
	ASSERT_EQ(10, tw_list_all(self->fd, rows, ARRAY_SIZE(rows), 3));
	for (i = 0; i < 10; i++) {
		__u64 key = rows[i].user_data;

		ASSERT_TRUE(key >= 100 && key < 110 && !seen[key - 100]);
		seen[key - 100] = true;
		EXPECT_EQ(key_id(self->fd, key), rows[i].id);
		EXPECT_EQ((20 + key - 100) * TW_MS, rows[i].deadline_ns);
		EXPECT_EQ(TWHEEL_STATE_PENDING, rows[i].state);
	}
}

/* ---- flags of an element --------------------------------------------------- */

TEST_F(keyed, if_absent_creates_and_never_replaces)
{
	struct twheel_arm first, second;
	struct tw_snapshot before;
	struct twheel_event event;

	EXPECT_EQ(TWHEEL_CREATED,
		  key_arm_at(self->fd, KEY, 10 * TW_MS, TWHEEL_ARM_IF_ABSENT, &first));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-EEXIST, key_arm_at(self->fd, KEY, 20 * TW_MS, TWHEEL_ARM_IF_ABSENT, &second));
	EXPECT_EQ(0, second.id);
	EXPECT_UNCHANGED(self->fd, &before);

	/* An unread key is present, too. */
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-EEXIST, key_arm_at(self->fd, KEY, 20 * TW_MS, TWHEEL_ARM_IF_ABSENT, &second));
	EXPECT_EQ(0, second.id);
	EXPECT_UNCHANGED(self->fd, &before);
	ASSERT_ONE_EVENT(self->fd, &event, first.id);
	EXPECT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, 20 * TW_MS, TWHEEL_ARM_IF_ABSENT));
}

TEST_F(keyed, if_present_replaces_and_never_creates)
{
	struct twheel_arm first, second;
	struct tw_snapshot before;

	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-ENOENT, key_arm_at(self->fd, KEY, 20 * TW_MS, TWHEEL_ARM_IF_PRESENT, &second));
	EXPECT_EQ(0, second.id);
	EXPECT_UNCHANGED(self->fd, &before);

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 10 * TW_MS, 0, &first));
	EXPECT_EQ(TWHEEL_WAS_PENDING,
		  key_arm_at(self->fd, KEY, 20 * TW_MS, TWHEEL_ARM_IF_PRESENT, &second));
	EXPECT_EQ(first.id, second.id);
	EXPECT_EQ(10 * TW_MS, second.was_deadline_ns);
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD,
		  key_arm_at(self->fd, KEY, 30 * TW_MS, TWHEEL_ARM_IF_PRESENT, &second));
	EXPECT_EQ(20 * TW_MS, second.was_deadline_ns);
	expect_expiry(_metadata, self->fd, KEY, first.id, 30 * TW_MS);
}

/* Try each flag with the deadline in force, with one below it and with one above. */
struct bound_case {
	__u32 flag;
	__u64 deadline_ns;
	bool good;
};

static const struct bound_case bounds[] = {
	{ TWHEEL_ARM_ONLY_LATER, 10 * TW_MS + 1, true },
	{ TWHEEL_ARM_ONLY_LATER, 10 * TW_MS, false },
	{ TWHEEL_ARM_ONLY_LATER, 10 * TW_MS - 1, false },
	{ TWHEEL_ARM_ONLY_LATER, 1, false },
	{ TWHEEL_ARM_ONLY_LATER, TWHEEL_TIME_NEVER, true },
	{ TWHEEL_ARM_ONLY_EARLIER, 10 * TW_MS + 1, false },
	{ TWHEEL_ARM_ONLY_EARLIER, 10 * TW_MS, false },
	{ TWHEEL_ARM_ONLY_EARLIER, 10 * TW_MS - 1, true },
	{ TWHEEL_ARM_ONLY_EARLIER, 1, true },
	{ TWHEEL_ARM_ONLY_EARLIER, TWHEEL_TIME_NEVER, false },
};

/* The deadline of each key is 10 ms; if the clock has passed it, its event is unread. */
static void expect_bounds(struct __test_metadata *_metadata, int fd, __u64 now_ns, __s32 verdict)
{
	struct tw_snapshot before;
	struct twheel_arm arm;
	int i;

	/* Each timeout has a key of its own. */
	for (i = 0; i < ARRAY_SIZE(bounds); i++) {
		ASSERT_EQ(TWHEEL_CREATED, key_arm(fd, i, 10 * TW_MS, 0));
	}
	ASSERT_EQ(0, tw_advance(fd, now_ns));
	for (i = 0; i < ARRAY_SIZE(bounds); i++) {
		const struct bound_case *bound = &bounds[i];

		/* If the one before was due when it was moved, it expires now. */
		ASSERT_EQ(0, tw_advance(fd, now_ns));
		ASSERT_EQ(0, tw_snapshot(fd, &before));
		if (!bound->good) {
			EXPECT_EQ(-ERANGE, key_arm_at(fd, i, bound->deadline_ns, bound->flag, &arm))
				TH_LOG("case %d", i);
			EXPECT_EQ(0, arm.id);
			EXPECT_UNCHANGED(fd, &before);
			continue;
		}
		EXPECT_EQ(verdict, key_arm_at(fd, i, bound->deadline_ns, bound->flag, &arm))
			TH_LOG("case %d", i);
		EXPECT_EQ(10 * TW_MS, arm.was_deadline_ns)
			TH_LOG("case %d", i);
	}
}

TEST_F(keyed, only_later_and_only_earlier_compare_with_the_deadline_in_force)
{
	expect_bounds(_metadata, self->fd, 0, TWHEEL_WAS_PENDING);
}

TEST_F(keyed, only_later_and_only_earlier_compare_with_the_deadline_that_expired)
{
	expect_bounds(_metadata, self->fd, 50 * TW_MS, TWHEEL_WAS_UNREAD);
}

TEST_F(keyed, bounds_of_an_absent_key_create_it)
{
	EXPECT_EQ(TWHEEL_CREATED, key_arm(self->fd, 1, TW_MS, TWHEEL_ARM_ONLY_LATER));
	EXPECT_EQ(TWHEEL_CREATED, key_arm(self->fd, 2, TW_MS, TWHEEL_ARM_ONLY_EARLIER));
	EXPECT_EQ(-ENOENT, key_arm(self->fd, 3, TW_MS,
				   TWHEEL_ARM_ONLY_EARLIER | TWHEEL_ARM_IF_PRESENT));
}

TEST_F(keyed, if_present_and_a_bound_hold_together)
{
	const __u32 flags = TWHEEL_ARM_ONLY_LATER | TWHEEL_ARM_IF_PRESENT;

	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, 10 * TW_MS, 0));
	EXPECT_EQ(-ERANGE, key_arm(self->fd, KEY, 5 * TW_MS, flags));
	EXPECT_EQ(TWHEEL_WAS_PENDING, key_arm(self->fd, KEY, 15 * TW_MS, flags));
}

TEST_F(keyed, end_of_time_is_neither_later_nor_earlier_than_itself)
{
	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, TWHEEL_TIME_NEVER, 0));
	EXPECT_EQ(-ERANGE, key_arm(self->fd, KEY, TWHEEL_TIME_NEVER, TWHEEL_ARM_ONLY_LATER));
	EXPECT_EQ(-ERANGE, key_arm(self->fd, KEY, TWHEEL_TIME_NEVER, TWHEEL_ARM_ONLY_EARLIER));
	EXPECT_EQ(TWHEEL_WAS_PENDING, key_arm(self->fd, KEY, TWHEEL_TIME_NEVER - 1,
					      TWHEEL_ARM_ONLY_EARLIER));
}

TEST_F(keyed, bounds_of_a_relative_deadline_count_from_now)
{
	struct twheel_arm arm = {
		.user_data = KEY, .expires_ns = 10 * TW_MS, .flags = TWHEEL_ARM_ONLY_LATER,
	};

	ASSERT_EQ(TWHEEL_CREATED, key_arm_entry(self->fd, &arm));
	EXPECT_EQ(-ERANGE, key_arm_entry(self->fd, &arm));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	EXPECT_EQ(TWHEEL_WAS_PENDING, key_arm_entry(self->fd, &arm));
	EXPECT_EQ(10 * TW_MS, arm.was_deadline_ns);
	EXPECT_PENDING(self->fd, KEY, 10 * TW_MS + 1);
}

/* Its deadline is that of the period that it waits for. */
TEST_F(keyed, bounds_of_a_periodic_one_are_its_next_deadline)
{
	struct twheel_arm arm = {
		.user_data = KEY, .expires_ns = TW_MS, .interval_ns = 10 * TW_MS,
	};

	ASSERT_EQ(TWHEEL_CREATED, key_arm_entry(self->fd, &arm));
	expect_expiry(_metadata, self->fd, KEY, arm.id, TW_MS);
	EXPECT_EQ(-ERANGE, key_arm(self->fd, KEY, 11 * TW_MS, TWHEEL_ARM_ONLY_LATER));
	EXPECT_EQ(-ERANGE, key_arm(self->fd, KEY, 11 * TW_MS, TWHEEL_ARM_ONLY_EARLIER));
	EXPECT_EQ(TWHEEL_WAS_PENDING,
		  key_arm_at(self->fd, KEY, 11 * TW_MS + 1, TWHEEL_ARM_ONLY_LATER, &arm));
	EXPECT_EQ(11 * TW_MS, arm.was_deadline_ns);
}

TEST_F(keyed, contradictory_flags_are_einval)
{
	const __u32 both[] = {
		TWHEEL_ARM_IF_ABSENT | TWHEEL_ARM_IF_PRESENT,
		TWHEEL_ARM_ONLY_LATER | TWHEEL_ARM_ONLY_EARLIER,
	};
	struct tw_snapshot before;
	int i;

	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, 10 * TW_MS, 0));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	for (i = 0; i < ARRAY_SIZE(both); i++) {
		EXPECT_EQ(-EINVAL, key_arm(self->fd, KEY, TW_MS, both[i]));
		EXPECT_EQ(-EINVAL, key_arm(self->fd, KEY + 1, TW_MS, both[i]));
		EXPECT_EQ(-EINVAL, key_rearm(self->fd, KEY, TW_MS, both[i]));
	}
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(keyed, rearm_takes_bounds_and_no_conditions)
{
	struct tw_snapshot before;
	__u64 id;

	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, 10 * TW_MS, 0));
	id = key_id(self->fd, KEY);
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-EINVAL, key_rearm(self->fd, KEY, TW_SEC, TWHEEL_ARM_IF_ABSENT));
	EXPECT_EQ(-EINVAL, key_rearm(self->fd, KEY, TW_SEC, TWHEEL_ARM_IF_PRESENT));
	EXPECT_EQ(-EINVAL, tw_rearm1(self->fd, id, TWHEEL_ARM_IF_PRESENT, TW_SEC, 0));
	EXPECT_EQ(-ERANGE, key_rearm(self->fd, KEY, 10 * TW_MS, TWHEEL_ARM_ONLY_LATER));
	EXPECT_EQ(-ERANGE, key_rearm(self->fd, KEY, 10 * TW_MS, TWHEEL_ARM_ONLY_EARLIER));
	EXPECT_UNCHANGED(self->fd, &before);
	EXPECT_EQ(TWHEEL_WAS_PENDING,
		  key_rearm(self->fd, KEY, 11 * TW_MS, TWHEEL_ARM_ONLY_LATER));
	EXPECT_EQ(TWHEEL_WAS_PENDING,
		  key_rearm(self->fd, KEY, 9 * TW_MS, TWHEEL_ARM_ONLY_EARLIER));
	EXPECT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, id, TWHEEL_ARM_ABSOLUTE | TWHEEL_ARM_ONLY_LATER,
			    12 * TW_MS, 0));
	expect_expiry(_metadata, self->fd, KEY, id, 12 * TW_MS);
}

/* ---- wheels without keys --------------------------------------------------- */

FIXTURE(unkeyed) {
	int fd;
	__u64 id;
	struct tw_snapshot before;
};

FIXTURE_SETUP(unkeyed)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, 10 * TW_MS, 0, KEY, &self->id));
	ASSERT_EQ(0, tw_snapshot(self->fd, &self->before));
}

FIXTURE_TEARDOWN(unkeyed)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(unkeyed, by_key_is_einval_for_each_call)
{
	struct twheel_arm arm = { .user_data = KEY, .id = KEY, .expires_ns = TW_MS };
	struct twheel_status status = { .id = KEY };
	struct twheel_cancel cancel = { .id = KEY };
	const struct {
		unsigned long cmd;
		void *entries;
		__u32 entry_size;
	} calls[] = {
		{ TWHEEL_IOC_ARM, &arm, sizeof(arm) },
		{ TWHEEL_IOC_REARM, &arm, sizeof(arm) },
		{ TWHEEL_IOC_CANCEL, &cancel, sizeof(cancel) },
		{ TWHEEL_IOC_QUERY, &status, sizeof(status) },
	};
	__u32 nr_done, nr;
	int i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		for (nr = 0; nr < 2; nr++) {
			EXPECT_EQ(-EINVAL, key_vector_done(self->fd, calls[i].cmd,
							   TWHEEL_VECTOR_BY_KEY, calls[i].entries,
							   calls[i].entry_size, nr, &nr_done))
				TH_LOG("call %d with %u entries", i, nr);
			EXPECT_EQ(TW_POISON32, nr_done);
		}
	}
	EXPECT_UNCHANGED(self->fd, &self->before);
}

/* If nobody has set up a wheel, it has no keys, and may still get them. */
TEST_F(unkeyed, by_key_before_setup_is_einval_and_leaves_setup_open)
{
	struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS, .flags = TWHEEL_SETUP_KEYED,
	};
	struct twheel_status status;
	int fd = tw_open(O_NONBLOCK);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, key_cancel(fd, KEY));
	EXPECT_EQ(-EINVAL, key_rearm(fd, KEY, TW_MS, 0));
	EXPECT_EQ(-EINVAL, key_query(fd, KEY, &status));
	EXPECT_EQ(-EINVAL, key_arm(fd, KEY, TW_MS, TWHEEL_ARM_IF_ABSENT));
	ASSERT_EQ(0, tw_setup_full(fd, &setup));
	EXPECT_EQ(TWHEEL_CREATED, key_arm(fd, KEY, TW_MS, 0));
	EXPECT_EQ(TWHEEL_WAS_PENDING, key_cancel(fd, KEY));
	close(fd);
}

TEST_F(unkeyed, conditions_and_bounds_of_arm_are_einval)
{
	const __u32 flags[] = {
		TWHEEL_ARM_IF_ABSENT, TWHEEL_ARM_IF_PRESENT,
		TWHEEL_ARM_ONLY_LATER, TWHEEL_ARM_ONLY_EARLIER,
	};
	__u64 id;
	int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		EXPECT_EQ(-EINVAL, tw_arm1(self->fd, flags[i], TW_MS, 0, KEY, &id));
		EXPECT_EQ(0, id);
	}
	EXPECT_UNCHANGED(self->fd, &self->before);
}

TEST_F(unkeyed, conditions_of_rearm_are_einval)
{
	EXPECT_EQ(-EINVAL, tw_rearm1(self->fd, self->id, TWHEEL_ARM_IF_ABSENT, TW_SEC, 0));
	EXPECT_EQ(-EINVAL, tw_rearm1(self->fd, self->id, TWHEEL_ARM_IF_PRESENT, TW_SEC, 0));
	EXPECT_EQ(-EINVAL, tw_rearm1(self->fd, self->id,
				     TWHEEL_ARM_ONLY_LATER | TWHEEL_ARM_ONLY_EARLIER, TW_SEC, 0));
	EXPECT_UNCHANGED(self->fd, &self->before);
}

/*
 * If there are no keys, this works, too: a late refresh of one thread never shortens that of
 * another.
 */
TEST_F(unkeyed, rearm_takes_bounds)
{
	const __u32 later = TWHEEL_ARM_ABSOLUTE | TWHEEL_ARM_ONLY_LATER;
	const __u32 earlier = TWHEEL_ARM_ABSOLUTE | TWHEEL_ARM_ONLY_EARLIER;

	EXPECT_EQ(-ERANGE, tw_rearm1(self->fd, self->id, later, 10 * TW_MS, 0));
	EXPECT_EQ(-ERANGE, tw_rearm1(self->fd, self->id, later, 5 * TW_MS, 0));
	EXPECT_EQ(-ERANGE, tw_rearm1(self->fd, self->id, earlier, 10 * TW_MS, 0));
	EXPECT_EQ(-ERANGE, tw_rearm1(self->fd, self->id, earlier, 15 * TW_MS, 0));
	EXPECT_UNCHANGED(self->fd, &self->before);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, later, 15 * TW_MS, 0));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, self->id, earlier, 12 * TW_MS, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	EXPECT_EQ(-ERANGE, tw_rearm1(self->fd, self->id, later, 12 * TW_MS, 0));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, tw_rearm1(self->fd, self->id, later, 30 * TW_MS, 0));
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(-ENOENT, tw_rearm1(self->fd, self->id ^ 1ULL << 40, later, TW_SEC, 0));
}

TEST_F(unkeyed, values_of_user_data_may_be_the_same)
{
	struct twheel_arm arms[3] = {
		{ .user_data = KEY, .expires_ns = TW_MS },
		{ .user_data = KEY, .expires_ns = TW_MS },
		{ .user_data = KEY, .expires_ns = TW_MS },
	};
	struct twheel_info info;

	EXPECT_EQ(3, tw_arm_vec(self->fd, arms, 3));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(4, info.live);
	EXPECT_EQ(0, info.setup_flags & TWHEEL_SETUP_KEYED);
}

TEST_F(unkeyed, the_deadline_that_was_replaced_is_not_written)
{
	struct twheel_arm arm = { .expires_ns = TW_MS, .was_deadline_ns = TW_POISON64 };

	ASSERT_EQ(0, tw_arm_entry(self->fd, &arm));
	EXPECT_EQ(TW_POISON64, arm.was_deadline_ns);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm_entry(self->fd, &arm));
	EXPECT_EQ(TW_POISON64, arm.was_deadline_ns);
	arm.flags = 1U << 31;
	ASSERT_EQ(-EINVAL, tw_arm_entry(self->fd, &arm));
	EXPECT_EQ(TW_POISON64, arm.was_deadline_ns);
}

/* REARM does not write it either, even by key. */
TEST_F(keyed, the_deadline_that_was_replaced_is_not_written_by_rearm)
{
	struct twheel_arm arm = {
		.id = KEY, .expires_ns = TW_MS, .was_deadline_ns = TW_POISON64,
	};

	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, 10 * TW_MS, 0));
	ASSERT_EQ(1, key_vector(self->fd, TWHEEL_IOC_REARM, TWHEEL_VECTOR_BY_KEY, &arm,
				sizeof(arm), 1));
	EXPECT_EQ(TW_POISON64, arm.was_deadline_ns);
	arm.id = key_id(self->fd, KEY);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm_entry(self->fd, &arm));
	EXPECT_EQ(TW_POISON64, arm.was_deadline_ns);
}

TEST_F(keyed, by_key_is_einval_for_arm_and_unknown_flags_for_all)
{
	struct twheel_arm arm = { .user_data = KEY, .id = KEY, .expires_ns = TW_MS };
	struct twheel_cancel cancel = { .id = KEY };
	struct tw_snapshot before;

	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, 10 * TW_MS, 0));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-EINVAL, key_vector(self->fd, TWHEEL_IOC_ARM, TWHEEL_VECTOR_BY_KEY, &arm,
				      sizeof(arm), 1));
	EXPECT_EQ(-EINVAL, key_vector(self->fd, TWHEEL_IOC_CANCEL, TWHEEL_VECTOR_BY_KEY << 1,
				      &cancel, sizeof(cancel), 1));
	EXPECT_EQ(-EINVAL, key_vector(self->fd, TWHEEL_IOC_REARM,
				      TWHEEL_VECTOR_BY_KEY | 1U << 31, &arm, sizeof(arm), 1));
	EXPECT_UNCHANGED(self->fd, &before);
}

/* ---- a full wheel ----------------------------------------------------------- */

#define PLACES		40

FIXTURE(full) {
	int fd;
};

TW_SETTLE_VARIANTS(full);

/* PLACES keys from 0 on, all pending for an hour. */
FIXTURE_SETUP(full)
{
	int i;

	TW_SETTLE();
	self->fd = key_virtual(O_NONBLOCK, PLACES);
	ASSERT_LE(0, self->fd);
	for (i = 0; i < PLACES; i++) {
		ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, i, TW_HOUR, 0));
	}
}

FIXTURE_TEARDOWN(full)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(full, new_key_says_eagain_and_changes_nothing)
{
	struct tw_snapshot before;
	struct twheel_arm arm;

	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	EXPECT_EQ(-EAGAIN, key_arm_at(self->fd, PLACES, TW_MS, 0, &arm));
	EXPECT_EQ(0, arm.id);
	EXPECT_EQ(-EAGAIN, key_arm(self->fd, PLACES, TW_MS, TWHEEL_ARM_IF_ABSENT));
	EXPECT_EQ(-EAGAIN, key_arm(self->fd, PLACES, TW_MS, TWHEEL_ARM_ONLY_LATER));
	EXPECT_EQ(-ENOENT, key_arm(self->fd, PLACES, TW_MS, TWHEEL_ARM_IF_PRESENT));
	EXPECT_EQ(-EEXIST, key_arm(self->fd, 0, TW_MS, TWHEEL_ARM_IF_ABSENT));
	EXPECT_EQ(-ERANGE, key_arm(self->fd, 0, TW_MS, TWHEEL_ARM_ONLY_LATER));
	EXPECT_UNCHANGED(self->fd, &before);
	EXPECT_EQ(0, tw_poll(self->fd, POLLOUT, 0));
}

TEST_F(full, present_keys_are_replaced_all_the_same)
{
	struct twheel_arm arms[PLACES] = {};
	int i;

	for (i = 0; i < PLACES; i++) {
		arms[i].user_data = i;
		arms[i].expires_ns = TW_MS;
	}
	EXPECT_EQ(PLACES, key_arm_vec(self->fd, arms, PLACES));
	for (i = 0; i < PLACES; i++) {
		EXPECT_EQ(TWHEEL_WAS_PENDING, arms[i].result);
		EXPECT_EQ(TW_HOUR, arms[i].was_deadline_ns);
	}
	EXPECT_EQ(TWHEEL_WAS_PENDING, key_arm(self->fd, 7, TW_SEC, TWHEEL_ARM_IF_PRESENT));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, key_arm(self->fd, 8, TW_SEC, 0));
	EXPECT_EQ(0, tw_poll(self->fd, POLLOUT, 0));
}

/* If a key is present, it needs no place, wherever it is in the vector. */
TEST_F(full, vector_takes_the_places_there_are_for_new_keys_only)
{
	struct twheel_arm arms[PLACES + 3] = {};
	int i, created = 0, replaced = 0, refused = 0;

	ASSERT_EQ(TWHEEL_WAS_PENDING, key_cancel(self->fd, 3));
	ASSERT_EQ(TWHEEL_WAS_PENDING, key_cancel(self->fd, 4));
	/* The keys are 0 to 2, four that are new, 5 to the last one, and 1 again. */
	for (i = 0; i < PLACES + 3; i++) {
		arms[i].user_data = i < 3 ? i : i < 7 ? 1000 + i : i < PLACES + 2 ? i - 2 : 1;
		arms[i].expires_ns = TW_MS + i;
	}
	EXPECT_EQ(PLACES + 1, key_arm_vec(self->fd, arms, PLACES + 3));
	for (i = 0; i < PLACES + 3; i++) {
		created += arms[i].result == TWHEEL_CREATED;
		replaced += arms[i].result == TWHEEL_WAS_PENDING;
		refused += arms[i].result == -EAGAIN;
		EXPECT_EQ(arms[i].result > 0, !!arms[i].id)
			TH_LOG("element %d", i);
	}
	EXPECT_EQ(2, created);
	EXPECT_EQ(PLACES - 1, replaced);
	EXPECT_EQ(2, refused);
	EXPECT_PENDING(self->fd, 1, TW_MS + PLACES + 2);
}

/* If the first element is refused, no place is left for those behind it either. */
TEST_F(full, refused_key_leaves_present_ones_of_its_vector_alone)
{
	struct twheel_arm arms[20] = {};
	int i;

	for (i = 0; i < ARRAY_SIZE(arms); i++) {
		arms[i].user_data = i % 5 ? i : 1000 + i;
		arms[i].expires_ns = TW_MS;
	}
	EXPECT_EQ(16, key_arm_vec(self->fd, arms, ARRAY_SIZE(arms)));
	for (i = 0; i < ARRAY_SIZE(arms); i++) {
		EXPECT_EQ(i % 5 ? TWHEEL_WAS_PENDING : -EAGAIN, arms[i].result)
			TH_LOG("element %d", i);
	}
}

TEST_F(full, cancelled_key_frees_a_place)
{
	EXPECT_EQ(TWHEEL_WAS_PENDING, key_cancel(self->fd, 5));
	EXPECT_EQ(POLLOUT, tw_poll(self->fd, POLLOUT, 0));
	EXPECT_EQ(TWHEEL_CREATED, key_arm(self->fd, PLACES, TW_MS, 0));
	EXPECT_EQ(-EAGAIN, key_arm(self->fd, 5, TW_MS, 0));
}

/* The second element needs no place: the first one has taken it. */
TEST_F(full, last_place_is_enough_for_a_new_key_that_comes_twice)
{
	struct twheel_arm arms[4] = {
		{ .user_data = 1000, .expires_ns = 1 * TW_MS },
		{ .user_data = 1000, .expires_ns = 2 * TW_MS },
		{ .user_data = 1001, .expires_ns = 3 * TW_MS },
		{ .user_data = 1000, .expires_ns = 4 * TW_MS },
	};

	ASSERT_EQ(TWHEEL_WAS_PENDING, key_cancel(self->fd, 3));
	EXPECT_EQ(3, key_arm_vec(self->fd, arms, 4));
	EXPECT_EQ(TWHEEL_CREATED, arms[0].result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, arms[1].result);
	EXPECT_EQ(TW_MS, arms[1].was_deadline_ns);
	EXPECT_EQ(-EAGAIN, arms[2].result);
	EXPECT_EQ(TWHEEL_WAS_PENDING, arms[3].result);
	EXPECT_EQ(2 * TW_MS, arms[3].was_deadline_ns);
	EXPECT_PENDING(self->fd, 1000, 4 * TW_MS);
	EXPECT_ABSENT(self->fd, 1001);
}

/* If a cancelled timeout is still in the inbox, it takes no place from another key. */
TEST_F(full, place_goes_from_key_to_key_at_once)
{
	struct twheel_cancel cancels[PLACES] = {};
	struct twheel_arm arms[PLACES];
	int round, i;

	for (round = 0; round < 500; round++) {
		for (i = 0; i < PLACES; i++) {
			cancels[i].id = round * PLACES + i;
			arms[i] = (struct twheel_arm){
				.user_data = (round + 1) * PLACES + i, .expires_ns = TW_HOUR,
			};
		}
		ASSERT_EQ(PLACES, key_cancel_vec(self->fd, cancels, PLACES));
		ASSERT_EQ(PLACES, key_arm_vec(self->fd, arms, PLACES))
			TH_LOG("round %d: the last one says %d", round, arms[PLACES - 1].result);
	}
}

/*
 * If timeouts were cancelled in the inbox, they keep their nodes until the kthread takes the inbox.
 * There may also be the nodes of as many live ones as allowed: here, a power of two.
 */
TEST(wheel_that_is_nearly_full_takes_key_after_key)
{
	const int places = 32768;
	int i, fd = key_virtual(O_NONBLOCK, places);
	static struct twheel_arm arms[32768];

	ASSERT_LE(0, fd);
	for (i = 0; i < places; i++) {
		arms[i].user_data = i;
		arms[i].expires_ns = TW_HOUR;
	}
	ASSERT_EQ(places - 1, tw_arm_vec(fd, arms, places - 1));
	/* From here on the inbox is empty. */
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(TWHEEL_CREATED, key_arm(fd, places + i, TW_HOUR, 0))
			TH_LOG("key %d", i);
		ASSERT_EQ(TWHEEL_WAS_PENDING, key_cancel(fd, places + i));
	}
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* If a key is refused because no place is free, it does not exist. */
TEST_F(full, refused_key_can_be_armed_when_there_is_room)
{
	EXPECT_EQ(-EAGAIN, key_arm(self->fd, PLACES, TW_MS, 0));
	EXPECT_ABSENT(self->fd, PLACES);
	ASSERT_EQ(TWHEEL_WAS_PENDING, key_cancel(self->fd, 0));
	EXPECT_EQ(TWHEEL_CREATED, key_arm(self->fd, PLACES, TW_MS, 0));
}

/* ---- vectors ------------------------------------------------------------- */

#define MOST		100

FIXTURE(vector) {
	int fd;
	int nr;
	struct twheel_arm arms[MOST];
};

FIXTURE_VARIANT(vector) {
	int nr;
	bool settles;
};

FIXTURE_VARIANT_ADD(vector, of_1) { .nr = 1 };
FIXTURE_VARIANT_ADD(vector, of_2) { .nr = 2 };
FIXTURE_VARIANT_ADD(vector, of_31) { .nr = 31 };
FIXTURE_VARIANT_ADD(vector, of_32) { .nr = 32 };
FIXTURE_VARIANT_ADD(vector, of_33) { .nr = 33 };
FIXTURE_VARIANT_ADD(vector, of_100) { .nr = MOST };
FIXTURE_VARIANT_ADD(vector, of_100_in_the_wheel) { .nr = MOST, .settles = true };

FIXTURE_SETUP(vector)
{
	int i;

	TW_SETTLE();
	self->nr = variant->nr;
	self->fd = key_virtual(O_NONBLOCK, 0);
	ASSERT_LE(0, self->fd);
	memset(self->arms, 0, sizeof(self->arms));
	for (i = 0; i < self->nr; i++) {
		self->arms[i].user_data = i;
		self->arms[i].expires_ns = (1 + i) * TW_MS;
		self->arms[i].flags = TWHEEL_ARM_ABSOLUTE;
	}
}

FIXTURE_TEARDOWN(vector)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(vector, a_vector_creates_all_and_replaces_all)
{
	__u64 ids[MOST];
	int i;

	ASSERT_EQ(self->nr, key_arm_vec(self->fd, self->arms, self->nr));
	for (i = 0; i < self->nr; i++) {
		EXPECT_EQ(TWHEEL_CREATED, self->arms[i].result);
		EXPECT_EQ(0, self->arms[i].was_deadline_ns);
		ids[i] = self->arms[i].id;
		EXPECT_EQ(ids[i], EXPECT_PENDING(self->fd, i, (1 + i) * TW_MS));
		self->arms[i].expires_ns = TW_SEC + i * TW_MS;
	}
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	ASSERT_EQ(self->nr, key_arm_vec(self->fd, self->arms, self->nr));
	for (i = 0; i < self->nr; i++) {
		EXPECT_EQ(i < 20 ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING, self->arms[i].result);
		EXPECT_EQ((1 + i) * TW_MS, self->arms[i].was_deadline_ns);
		EXPECT_EQ(ids[i], self->arms[i].id);
	}
	EXPECT_NO_EVENT(self->fd);
	for (i = 0; i < self->nr; i++)
		expect_expiry(_metadata, self->fd, i, ids[i], TW_SEC + i * TW_MS);
}

/* The keys are by turns present, new, malformed, present but refused, new but refused. */
TEST_F(vector, a_vector_does_each_element_by_itself)
{
	int i, good = 0;

	for (i = 0; i < self->nr; i++) {
		if (i % 5 == 0 || i % 5 == 3) {
			ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, i, TW_HOUR, 0));
		}
		if (i % 5 == 2)
			self->arms[i].repeats = 1;
		if (i % 5 == 3)
			self->arms[i].flags |= TWHEEL_ARM_IF_ABSENT;
		if (i % 5 == 4)
			self->arms[i].flags |= TWHEEL_ARM_IF_PRESENT;
		good += i % 5 < 2;
	}
	EXPECT_EQ(good, key_arm_vec(self->fd, self->arms, self->nr));
	for (i = 0; i < self->nr; i++) {
		const __s32 results[] = {
			TWHEEL_WAS_PENDING, TWHEEL_CREATED, -EINVAL, -EEXIST, -ENOENT,
		};
		struct twheel_arm *arm = &self->arms[i];

		EXPECT_EQ(results[i % 5], arm->result)
			TH_LOG("element %d", i);
		EXPECT_EQ(i % 5 < 2, !!arm->id)
			TH_LOG("element %d", i);
		EXPECT_EQ(i % 5 ? 0 : TW_HOUR, arm->was_deadline_ns)
			TH_LOG("element %d", i);
		if (i % 5 < 2) {
			EXPECT_EQ(arm->id, EXPECT_PENDING(self->fd, i, (1 + i) * TW_MS));
		} else if (i % 5 == 3) {
			EXPECT_PENDING(self->fd, i, TW_HOUR);
		} else {
			EXPECT_ABSENT(self->fd, i);
		}
	}
}

TEST_F(vector, a_vector_of_one_key_finds_it_in_order)
{
	struct twheel_info info;
	int i;

	for (i = 0; i < self->nr; i++)
		self->arms[i].user_data = KEY;
	EXPECT_EQ(self->nr, key_arm_vec(self->fd, self->arms, self->nr));
	for (i = 0; i < self->nr; i++) {
		EXPECT_EQ(i ? TWHEEL_WAS_PENDING : TWHEEL_CREATED, self->arms[i].result)
			TH_LOG("element %d", i);
		EXPECT_EQ(i * TW_MS, self->arms[i].was_deadline_ns)
			TH_LOG("element %d", i);
		EXPECT_EQ(self->arms[0].id, self->arms[i].id)
			TH_LOG("element %d", i);
	}
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1, info.armed);
	EXPECT_EQ(self->nr - 1, info.rearmed);
	EXPECT_EQ(1, info.live);
	expect_expiry(_metadata, self->fd, KEY, self->arms[0].id, self->nr * TW_MS);
	ASSERT_EQ(0, tw_advance(self->fd, TW_SEC));
	EXPECT_NO_EVENT(self->fd);
}

/* Each key comes twice, and all are new. */
TEST_F(vector, a_vector_of_pairs_creates_the_first_and_replaces_by_the_second)
{
	const int apart = (self->nr + 1) / 2;
	int i;

	for (i = 0; i < self->nr; i++)
		self->arms[i].user_data = i % apart;
	EXPECT_EQ(self->nr, key_arm_vec(self->fd, self->arms, self->nr));
	for (i = 0; i < self->nr; i++) {
		const struct twheel_arm *arm = &self->arms[i], *first = &self->arms[i % apart];

		EXPECT_EQ(i < apart ? TWHEEL_CREATED : TWHEEL_WAS_PENDING, arm->result)
			TH_LOG("element %d", i);
		EXPECT_EQ(i < apart ? 0 : first->expires_ns, arm->was_deadline_ns)
			TH_LOG("element %d", i);
		EXPECT_EQ(first->id, arm->id)
			TH_LOG("element %d", i);
	}
	for (i = apart; i < self->nr; i++) {
		EXPECT_PENDING(self->fd, i % apart, (1 + i) * TW_MS);
	}
}

/* If the first element is refused, the second finds the timeout as it was. */
TEST_F(vector, a_vector_of_one_key_goes_on_past_refused_elements)
{
	int i, ret, good = 0;

	for (i = 0; i < self->nr; i++) {
		self->arms[i].user_data = KEY;
		if (i % 2 == 0)
			self->arms[i].flags |= TWHEEL_ARM_IF_PRESENT;
		if (i % 4 == 3)
			self->arms[i].flags |= TWHEEL_ARM_IF_ABSENT;
	}
	ret = key_arm_vec(self->fd, self->arms, self->nr);
	for (i = 0; i < self->nr; i++) {
		__s32 result = i % 4 == 3 ? -EEXIST : TWHEEL_WAS_PENDING;

		if (i < 2)
			result = i ? TWHEEL_CREATED : -ENOENT;
		EXPECT_EQ(result, self->arms[i].result)
			TH_LOG("element %d", i);
		good += result > 0;
	}
	EXPECT_EQ(good, ret);
	if (self->nr > 1) {
		EXPECT_PENDING(self->fd, KEY, (self->nr - (self->nr % 4 == 0)) * TW_MS);
	} else {
		EXPECT_ABSENT(self->fd, KEY);
	}
}

TEST_F(vector, a_vector_of_one_key_that_goes_only_later_keeps_the_latest)
{
	int i, good = 0;
	__u64 seed = 3, latest_ns = 0;

	for (i = 0; i < self->nr; i++) {
		self->arms[i].user_data = KEY;
		self->arms[i].flags |= TWHEEL_ARM_ONLY_LATER;
		self->arms[i].expires_ns = (1 + tw_random(&seed) % 50) * TW_MS;
		if (self->arms[i].expires_ns > latest_ns) {
			latest_ns = self->arms[i].expires_ns;
			good++;
		}
	}
	EXPECT_EQ(good, key_arm_vec(self->fd, self->arms, self->nr));
	latest_ns = 0;
	for (i = 0; i < self->nr; i++) {
		bool later = self->arms[i].expires_ns > latest_ns;

		EXPECT_EQ(!later ? -ERANGE : latest_ns ? TWHEEL_WAS_PENDING : TWHEEL_CREATED,
			  self->arms[i].result)
			TH_LOG("element %d", i);
		if (!later)
			continue;
		EXPECT_EQ(latest_ns, self->arms[i].was_deadline_ns);
		latest_ns = self->arms[i].expires_ns;
	}
	EXPECT_PENDING(self->fd, KEY, latest_ns);
}

/* Each bound is compared with the deadline that the element before has left. */
TEST_F(vector, a_vector_of_one_key_compares_each_bound_with_the_element_before)
{
	const __u32 later = TWHEEL_ARM_ABSOLUTE | TWHEEL_ARM_ONLY_LATER;
	const __u32 earlier = TWHEEL_ARM_ABSOLUTE | TWHEEL_ARM_ONLY_EARLIER;
	int i;

	/* Move it down to 5 ms without a condition, up to 7 by one, up to 8, and down to 6. */
	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, 10 * TW_MS, 0));
	for (i = 0; i < self->nr; i++) {
		const __u64 deadlines_ms[] = { 5, 7, 8, 6 };
		const __u32 flags[] = { TWHEEL_ARM_ABSOLUTE, later, later, earlier };

		self->arms[i].user_data = KEY;
		self->arms[i].expires_ns = deadlines_ms[i % 4] * TW_MS;
		self->arms[i].flags = flags[i % 4];
	}
	EXPECT_EQ(self->nr, key_arm_vec(self->fd, self->arms, self->nr));
	for (i = 0; i < self->nr; i++) {
		EXPECT_EQ(TWHEEL_WAS_PENDING, self->arms[i].result)
			TH_LOG("element %d", i);
		EXPECT_EQ(i ? self->arms[i - 1].expires_ns : 10 * TW_MS,
			  self->arms[i].was_deadline_ns)
			TH_LOG("element %d", i);
		self->arms[i].id = KEY;
	}
	ASSERT_EQ(TWHEEL_WAS_PENDING, key_arm(self->fd, KEY, 10 * TW_MS, 0));
	EXPECT_EQ(self->nr, key_rearm_vec(self->fd, self->arms, self->nr));
	for (i = 0; i < self->nr; i++) {
		EXPECT_EQ(TWHEEL_WAS_PENDING, self->arms[i].result)
			TH_LOG("element %d", i);
	}
	EXPECT_PENDING(self->fd, KEY, self->arms[self->nr - 1].expires_ns);
}

TEST_F(vector, vectors_of_rearm_query_and_cancel_go_by_key)
{
	struct twheel_cancel cancels[MOST] = {};
	struct twheel_status rows[MOST];
	__u64 ids[MOST];
	int i, there = 0;

	/* Every third key is absent. */
	for (i = 0; i < self->nr; i++) {
		if (i % 3 == 2)
			self->arms[i].flags |= TWHEEL_ARM_IF_PRESENT;
		there += i % 3 != 2;
	}
	ASSERT_EQ(there, key_arm_vec(self->fd, self->arms, self->nr));
	for (i = 0; i < self->nr; i++) {
		ids[i] = self->arms[i].id;
		self->arms[i].flags = TWHEEL_ARM_ABSOLUTE;
		self->arms[i].user_data = TW_POISON64;
		self->arms[i].id = i;
		self->arms[i].expires_ns = TW_SEC + i;
		rows[i].id = i;
		cancels[i].id = i;
	}
	EXPECT_EQ(there, key_rearm_vec(self->fd, self->arms, self->nr));
	EXPECT_EQ(there, key_query_vec(self->fd, rows, self->nr));
	EXPECT_EQ(there, key_cancel_vec(self->fd, cancels, self->nr));
	for (i = 0; i < self->nr; i++) {
		bool present = i % 3 != 2;

		EXPECT_EQ(present ? TWHEEL_WAS_PENDING : -ENOENT, self->arms[i].result);
		EXPECT_EQ(present ? 0 : -ENOENT, rows[i].result);
		EXPECT_EQ(present ? TWHEEL_WAS_PENDING : -ENOENT, cancels[i].result);
		EXPECT_EQ(present ? ids[i] : i, rows[i].id);
		if (present) {
			EXPECT_EQ(TW_SEC + i, rows[i].deadline_ns);
		}
		EXPECT_ABSENT(self->fd, i);
	}
}

TEST_F(vector, a_cancel_that_names_a_key_twice_ends_it_once)
{
	struct twheel_cancel cancels[MOST] = {};
	int i;

	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, TW_MS, 0));
	for (i = 0; i < self->nr; i++)
		cancels[i].id = KEY;
	EXPECT_EQ(1, key_cancel_vec(self->fd, cancels, self->nr));
	for (i = 0; i < self->nr; i++) {
		EXPECT_EQ(i ? -ENOENT : TWHEEL_WAS_PENDING, cancels[i].result);
	}
	EXPECT_ABSENT(self->fd, KEY);
}

TEST_F(vector, a_rearm_that_names_a_key_twice_leaves_the_last)
{
	int i;

	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, TW_HOUR, 0));
	for (i = 0; i < self->nr; i++)
		self->arms[i].id = KEY;
	EXPECT_EQ(self->nr, key_rearm_vec(self->fd, self->arms, self->nr));
	for (i = 0; i < self->nr; i++) {
		EXPECT_EQ(TWHEEL_WAS_PENDING, self->arms[i].result);
	}
	EXPECT_PENDING(self->fd, KEY, self->nr * TW_MS);
}

/* Periods need memory of their own, which must be allocated while no lock is held. */
TEST_F(vector, a_vector_makes_periods_and_one_shots_by_turns)
{
	int round, i;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < self->nr; i++)
			self->arms[i].interval_ns = (i + round) % 2 ? TW_SEC + i * TW_MS : 0;
		ASSERT_EQ(self->nr, key_arm_vec(self->fd, self->arms, self->nr));
		for (i = 0; i < self->nr; i++) {
			struct twheel_status status;

			ASSERT_EQ(round ? TWHEEL_WAS_PENDING : TWHEEL_CREATED,
				  self->arms[i].result);
			ASSERT_EQ(0, key_query(self->fd, i, &status));
			ASSERT_EQ(self->arms[i].interval_ns, status.interval_ns);
		}
	}
}

/* ---- DRAIN --------------------------------------------------------------- */

/* If a wheel is drained, the call fails as a whole, even if an element would be refused anyway. */
TEST_F(keyed, arm_in_a_drained_wheel_says_eshutdown_whatever_it_would_find)
{
	struct twheel_record record = {
		.op = TWHEEL_OP_ARM, .key = KEY + 1, .expires_ns = TW_SEC,
		.flags = TWHEEL_ARM_IF_PRESENT,
	};
	struct twheel_arm bad = { .user_data = KEY, .flags = 1U << 31 };

	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY, 10 * TW_MS, 0));
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(-ESHUTDOWN, key_arm(self->fd, KEY + 1, TW_SEC, TWHEEL_ARM_IF_PRESENT));
	EXPECT_EQ(-ESHUTDOWN, key_arm(self->fd, KEY, TW_SEC, TWHEEL_ARM_IF_ABSENT));
	EXPECT_EQ(-ESHUTDOWN, key_arm_vec(self->fd, &bad, 1));
	EXPECT_EQ(-ESHUTDOWN, tw_write(self->fd, &record, 1));
}

TEST_F(keyed, drained_timeout_keeps_its_key_until_its_event_was_read)
{
	struct twheel_event events[3];
	struct twheel_status status;
	struct twheel_arm arm;
	__u64 id;

	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 10 * TW_MS, 0, &arm));
	id = arm.id;
	ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, KEY + 1, 10 * TW_MS, 0));
	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(0, key_query(self->fd, KEY, &status));
	EXPECT_EQ(TWHEEL_STATE_DRAINED, status.state);
	EXPECT_EQ(id, status.id);
	EXPECT_EQ(-ESHUTDOWN, key_arm(self->fd, KEY, TW_SEC, 0));
	EXPECT_EQ(-ESHUTDOWN, key_arm(self->fd, KEY + 2, TW_SEC, 0));
	EXPECT_EQ(-ESHUTDOWN, key_rearm(self->fd, KEY, TW_SEC, 0));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, key_cancel(self->fd, KEY + 1));
	EXPECT_EQ(-ENOENT, key_cancel(self->fd, KEY + 1));
	ASSERT_EQ(1, tw_read(self->fd, events, 3));
	EXPECT_EQ(id, events[0].id);
	EXPECT_EQ(KEY, events[0].user_data);
	EXPECT_NE(0, events[0].flags & TWHEEL_EVENT_DRAINED);
	EXPECT_EQ(-ENOENT, key_query(self->fd, KEY, &status));
	EXPECT_EQ(-ENOENT, key_cancel(self->fd, KEY));
	EXPECT_EQ(0, tw_read(self->fd, events, 3));
}

TEST_F(keyed, drain_hands_out_each_key_once)
{
	struct twheel_event events[210];
	bool seen[200] = {};
	int i, nr;

	for (i = 0; i < 200; i++) {
		ASSERT_EQ(TWHEEL_CREATED, key_arm(self->fd, i, (1 + i) * TW_MS, 0));
	}
	ASSERT_EQ(0, tw_advance(self->fd, 100 * TW_MS));
	for (i = 0; i < 200; i += 3) {
		ASSERT_EQ(i < 100 ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING,
			  key_arm(self->fd, i, TW_HOUR, 0));
	}
	ASSERT_EQ(0, tw_drain(self->fd));
	nr = tw_read(self->fd, events, ARRAY_SIZE(events));
	ASSERT_EQ(200, nr);
	for (i = 0; i < nr; i++) {
		__u64 key = events[i].user_data;
		bool drained = key >= 100 || key % 3 == 0;

		ASSERT_TRUE(key < 200 && !seen[key]);
		seen[key] = true;
		EXPECT_EQ(drained, !!(events[i].flags & TWHEEL_EVENT_DRAINED));
		EXPECT_EQ(key % 3 ? (1 + key) * TW_MS : TW_HOUR, events[i].deadline_ns);
	}
}

/* ---- the refresh table ------------------------------------------------------ */

FIXTURE(refreshed) {
	int fd;
	struct twheel_info info;
	__u64 *table;
	struct twheel_arm arm;
};

TW_SETTLE_VARIANTS(refreshed);

/* One key is pending at 10 ms, and its word has been moved to about an hour. */
FIXTURE_SETUP(refreshed)
{
	struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS, .flags = TWHEEL_SETUP_KEYED,
	};

	TW_SETTLE();
	self->fd = tw_open_setup(O_NONBLOCK, &setup);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &self->info));
	self->table = mmap(NULL, self->info.refresh_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			   self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->table);
	ASSERT_EQ(TWHEEL_CREATED, key_arm_at(self->fd, KEY, 10 * TW_MS, 0, &self->arm));
}

FIXTURE_TEARDOWN(refreshed)
{
	EXPECT_ACCOUNTS(self->fd);
	munmap(self->table, self->info.refresh_size);
	close(self->fd);
}

/* Store a deadline; return the one that the kernel has read there, which QUERY reports. */
static __u64 refresh(struct __test_metadata *_metadata, FIXTURE_DATA(refreshed) *self,
		     __u64 deadline_ns)
{
	struct twheel_status status;

	ASSERT_EQ(1, tw_refresh(self->table, self->arm.id, deadline_ns,
				self->info.refresh_shift));
	ASSERT_EQ(0, key_query(self->fd, KEY, &status));
	EXPECT_LE(deadline_ns, status.deadline_ns);
	EXPECT_GT(deadline_ns + TW_MS, status.deadline_ns);
	return status.deadline_ns;
}

TEST_F(refreshed, deadline_that_is_replaced_is_the_one_in_force)
{
	__u64 deadline_ns = refresh(_metadata, self, TW_HOUR);
	struct twheel_arm arm;

	EXPECT_EQ(TWHEEL_WAS_PENDING, key_arm_at(self->fd, KEY, 20 * TW_MS, 0, &arm));
	EXPECT_EQ(deadline_ns, arm.was_deadline_ns);
	/* The word is new: a deadline that was stored there before counts no more. */
	EXPECT_EQ(self->arm.id, EXPECT_PENDING(self->fd, KEY, 20 * TW_MS));
	expect_expiry(_metadata, self->fd, KEY, self->arm.id, 20 * TW_MS);
	EXPECT_ABSENT(self->fd, KEY);
}

TEST_F(refreshed, bounds_are_measured_by_the_deadline_in_force)
{
	__u64 deadline_ns = refresh(_metadata, self, TW_HOUR);
	struct twheel_arm arm;

	EXPECT_EQ(-ERANGE, key_arm(self->fd, KEY, 20 * TW_MS, TWHEEL_ARM_ONLY_LATER));
	EXPECT_EQ(-ERANGE, key_rearm(self->fd, KEY, deadline_ns, TWHEEL_ARM_ONLY_LATER));
	EXPECT_EQ(-ERANGE, key_rearm(self->fd, KEY, deadline_ns, TWHEEL_ARM_ONLY_EARLIER));
	EXPECT_PENDING(self->fd, KEY, deadline_ns);
	EXPECT_EQ(TWHEEL_WAS_PENDING,
		  key_arm_at(self->fd, KEY, 20 * TW_MS, TWHEEL_ARM_ONLY_EARLIER, &arm));
	EXPECT_EQ(deadline_ns, arm.was_deadline_ns);
	EXPECT_PENDING(self->fd, KEY, 20 * TW_MS);
}

TEST_F(refreshed, deadline_that_expired_is_the_refreshed_one)
{
	__u64 deadline_ns = refresh(_metadata, self, 30 * TW_MS);
	struct twheel_arm arm;

	ASSERT_EQ(0, tw_advance(self->fd, 29 * TW_MS));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 40 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, key_arm_at(self->fd, KEY, TW_SEC, 0, &arm));
	EXPECT_EQ(deadline_ns, arm.was_deadline_ns);
	EXPECT_EQ(self->arm.id, arm.id);
}

TEST_F(refreshed, replaced_timeout_can_be_refreshed_again_by_its_id)
{
	__u64 deadline_ns;

	ASSERT_EQ(TWHEEL_WAS_PENDING, key_arm(self->fd, KEY, 20 * TW_MS, 0));
	deadline_ns = refresh(_metadata, self, 50 * TW_MS);
	ASSERT_EQ(0, tw_advance(self->fd, 45 * TW_MS));
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(self->arm.id, EXPECT_PENDING(self->fd, KEY, deadline_ns));
}

/* ---- many ---------------------------------------------------------------- */

#define MANY		20000
#define STRIDE		500

FIXTURE(many) {
	int fd;
};

FIXTURE_SETUP(many)
{
	self->fd = key_virtual(O_NONBLOCK, 0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(many)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Keys that a hash might confuse: low bits, high bits, and steps. */
static __u64 many_key(int pattern, __u64 i)
{
	switch (pattern) {
	case 0:
		return i;
	case 1:
		return i << 32;
	case 2:
		return i << 48 | i;
	case 3:
		return i * 4096;
	default:
		return i * 0x9e3779b97f4a7c15ULL;
	}
}

/* Half of the calls find timeouts that the kthread has seen, the others timeouts in the inbox. */
static void upsert_many(struct __test_metadata *_metadata, int fd, int pattern, __u64 base_ns,
			__s32 verdict, __u64 was_base_ns)
{
	static struct twheel_arm arms[STRIDE];
	int i, j;

	for (i = 0; i < MANY; i += STRIDE) {
		for (j = 0; j < STRIDE; j++)
			arms[j] = (struct twheel_arm){
				.user_data = many_key(pattern, i + j),
				.expires_ns = base_ns + i + j,
				.flags = TWHEEL_ARM_ABSOLUTE,
			};
		ASSERT_EQ(STRIDE, key_arm_vec(fd, arms, STRIDE));
		for (j = 0; j < STRIDE; j++) {
			ASSERT_EQ(verdict, arms[j].result);
			ASSERT_EQ(was_base_ns ? was_base_ns + i + j : 0, arms[j].was_deadline_ns);
		}
		if (i == MANY / 2) {
			ASSERT_EQ(0, tw_pass(fd));
		}
	}
}

static void cancel_many(struct __test_metadata *_metadata, int fd, int pattern, __s32 verdict)
{
	static struct twheel_cancel cancels[STRIDE];
	int i, j;

	for (i = 0; i < MANY; i += STRIDE) {
		for (j = 0; j < STRIDE; j++)
			cancels[j] = (struct twheel_cancel){ .id = many_key(pattern, i + j) };
		ASSERT_EQ(STRIDE, key_cancel_vec(fd, cancels, STRIDE));
		for (j = 0; j < STRIDE; j++) {
			ASSERT_EQ(verdict, cancels[j].result);
		}
	}
	ASSERT_EQ(0, tw_pass(fd));
}

/* If the memory of a burst was given back, the keys of the next burst work nevertheless. */
TEST_F_TIMEOUT(many, keys_of_any_pattern_are_created_replaced_and_cancelled, 100)
{
	struct twheel_info info;
	int pattern;

	for (pattern = 0; pattern < 5; pattern++) {
		upsert_many(_metadata, self->fd, pattern, TW_HOUR, TWHEEL_CREATED, 0);
		upsert_many(_metadata, self->fd, pattern, TW_DAY, TWHEEL_WAS_PENDING, TW_HOUR);
		ASSERT_EQ(0, tw_info(self->fd, &info));
		ASSERT_EQ(MANY, info.live);
		cancel_many(_metadata, self->fd, pattern, TWHEEL_WAS_PENDING);
		ASSERT_EQ(0, tw_info(self->fd, &info));
		ASSERT_EQ(0, info.live);
	}
}

TEST_F_TIMEOUT(many, keys_that_expired_are_read_and_created_again, 100)
{
	static struct twheel_event events[STRIDE];
	int i, nr, got, round;

	for (round = 1; round <= 3; round++) {
		upsert_many(_metadata, self->fd, 4, round * TW_SEC, TWHEEL_CREATED, 0);
		ASSERT_EQ(0, tw_advance(self->fd, round * TW_SEC + 10 * TW_MS));
		for (got = 0; got < MANY; got += nr) {
			nr = tw_read(self->fd, events, STRIDE);
			ASSERT_LT(0, nr);
			for (i = 0; i < nr; i++) {
				__u64 which = events[i].deadline_ns - round * TW_SEC;

				ASSERT_EQ(many_key(4, which), events[i].user_data);
			}
		}
		EXPECT_NO_EVENT(self->fd);
	}
}

TEST_HARNESS_MAIN
