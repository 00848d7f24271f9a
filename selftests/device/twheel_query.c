// SPDX-License-Identifier: GPL-2.0
/*
 * QUERY: the fields that it reports of a timeout, and that it changes nothing.
 */
#include "twheel_test.h"

FIXTURE(query) {
	int fd;
};

FIXTURE_SETUP(query)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(query)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(query, query_of_a_pending_timeout_reports_each_field)
{
	struct twheel_status status;
	__u64 id;

	ASSERT_EQ(0, tw_advance(self->fd, 3 * TW_MS));
	ASSERT_EQ(0, tw_arm1(self->fd, 0, 10 * TW_MS + 5, 0, 77, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 4 * TW_MS));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(id, status.id);
	EXPECT_EQ(0, status.result);
	EXPECT_EQ(TWHEEL_STATE_PENDING, status.state);
	EXPECT_EQ(77, status.user_data);
	/* The slack is as it was asked for, and not rounded. */
	EXPECT_EQ(13 * TW_MS + 5, status.deadline_ns);
	EXPECT_EQ(9 * TW_MS + 5, status.left_ns);
	EXPECT_EQ(0, status.interval_ns);
	EXPECT_EQ(0, status.flags);
	EXPECT_EQ(0, status.repeats_left);
	EXPECT_EQ(0, status.count);
	EXPECT_EQ(0, status.deliveries);
}

TEST_F(query, query_of_a_periodic_timeout_reports_each_field)
{
	struct twheel_arm arm = {
		.expires_ns = 10 * TW_MS,
		.interval_ns = 7 * TW_MS + 1,
		.repeats = 5,
		.flags = TWHEEL_ARM_FIXED_DELAY,
		.user_data = 78,
	};
	struct twheel_status status;

	ASSERT_EQ(0, tw_arm_entry(self->fd, &arm));
	ASSERT_EQ(0, tw_query1(self->fd, arm.id, &status));
	EXPECT_EQ(TWHEEL_STATE_PENDING, status.state);
	EXPECT_EQ(78, status.user_data);
	EXPECT_EQ(10 * TW_MS, status.deadline_ns);
	EXPECT_EQ(10 * TW_MS, status.left_ns);
	EXPECT_EQ(7 * TW_MS + 1, status.interval_ns);
	EXPECT_EQ(TWHEEL_ARM_FIXED_DELAY, status.flags);
	EXPECT_EQ(5, status.repeats_left);
	EXPECT_EQ(0, status.count);
	EXPECT_EQ(0, status.deliveries);
}

TEST_F(query, absolute_flag_is_not_part_of_a_timeout)
{
	struct twheel_status status;
	__u64 id;

	ASSERT_EQ(0, tw_arm1(self->fd, TWHEEL_ARM_ABSOLUTE, TW_SEC, TW_SEC, 0, &id));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(0, status.flags);
}

TEST_F(query, query_of_an_expired_timeout_reports_the_deadline_that_passed)
{
	struct twheel_status status;
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS - 1, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 25 * TW_MS));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(TWHEEL_STATE_EXPIRED, status.state);
	EXPECT_EQ(10 * TW_MS - 1, status.deadline_ns);
	EXPECT_EQ(0, status.left_ns);
	EXPECT_EQ(1, status.count);
	EXPECT_EQ(0, status.deliveries);
}

struct ending {
	const char *what;
	struct twheel_arm arm;
	/* whether the event at 10 ms, 20 ms and 30 ms is the last one */
	bool last[3];
};

/*
 * repeats_left is 0 for each of these at 30 ms, so the flag says whether another event will follow.
 */
TEST_F(query, query_distinguishes_the_event_that_ends_a_timeout)
{
	const struct ending endings[] = {
		{ "one-shot", { .expires_ns = 10 * TW_MS }, { true, true, true } },
		{ "one-shot to come", { .expires_ns = 30 * TW_MS }, { false, false, true } },
		{
			"without a limit", {
				.expires_ns = 10 * TW_MS, .interval_ns = 10 * TW_MS,
			}, { false, false, false },
		}, {
			"limit of 3", {
				.expires_ns = 10 * TW_MS, .interval_ns = 10 * TW_MS, .repeats = 3,
			}, { false, false, true },
		}, {
			"limit of 1", {
				.expires_ns = 10 * TW_MS, .interval_ns = 10 * TW_MS, .repeats = 1,
			}, { true, true, true },
		}, {
			"fixed delay", {
				.expires_ns = 10 * TW_MS, .interval_ns = 10 * TW_MS,
				.flags = TWHEEL_ARM_FIXED_DELAY,
			}, { false, false, false },
		}, {
			"fixed delay, limit of 1", {
				.expires_ns = 20 * TW_MS, .interval_ns = 10 * TW_MS, .repeats = 1,
				.flags = TWHEEL_ARM_FIXED_DELAY,
			}, { false, true, true },
		},
	};
	struct twheel_status status;
	struct twheel_arm arms[ARRAY_SIZE(endings)];
	unsigned int i, k;

	for (i = 0; i < ARRAY_SIZE(arms); i++)
		arms[i] = endings[i].arm;
	ASSERT_EQ(ARRAY_SIZE(arms), tw_arm_vec(self->fd, arms, ARRAY_SIZE(arms)));
	for (k = 0; k < 3; k++) {
		ASSERT_EQ(0, tw_advance(self->fd, (k + 1) * 10 * TW_MS));
		for (i = 0; i < ARRAY_SIZE(arms); i++) {
			ASSERT_EQ(0, tw_query1(self->fd, arms[i].id, &status));
			EXPECT_EQ(arms[i].flags |
				  (endings[i].last[k] ? TWHEEL_STATUS_LAST_EVENT : 0),
				  status.flags)
				TH_LOG("%s, step %u", endings[i].what, k);
		}
	}
	for (i = 0; i < ARRAY_SIZE(arms); i++) {
		ASSERT_EQ(0, tw_query1(self->fd, arms[i].id, &status));
		EXPECT_EQ(0, status.repeats_left)
			TH_LOG("%s", endings[i].what);
	}
	/* Each has an event, and then none: the flag has said so. */
	ASSERT_EQ(0, tw_drain(self->fd));
	for (i = 0; i < ARRAY_SIZE(arms); i++) {
		ASSERT_EQ(0, tw_query1(self->fd, arms[i].id, &status));
		EXPECT_TRUE(status.flags & TWHEEL_STATUS_LAST_EVENT)
			TH_LOG("%s, drained", endings[i].what);
	}
}

/* The timeout waits for its edge: it is still pending, and no time is left. */
TEST_F(query, nothing_is_left_between_the_deadline_and_its_edge)
{
	struct twheel_status status;
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, 10 * TW_MS + 2, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 11 * TW_MS - 1));
	ASSERT_EQ(0, tw_query1(self->fd, id, &status));
	EXPECT_EQ(TWHEEL_STATE_PENDING, status.state);
	EXPECT_EQ(10 * TW_MS + 2, status.deadline_ns);
	EXPECT_EQ(0, status.left_ns);
}

TEST_F(query, unknown_id_says_enoent_and_only_the_result_is_written)
{
	struct twheel_status status, expected;

	ASSERT_EQ(-ENOENT, tw_query1(self->fd, 12345, &status));
	memset(&expected, TW_POISON, sizeof(expected));
	expected.id = 12345;
	expected.result = -ENOENT;
	EXPECT_EQ(0, memcmp(&expected, &status, sizeof(status)));
}

TEST_F(query, vector_goes_on_past_an_unknown_id)
{
	struct twheel_status rows[3] = {};
	__u64 a, b;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &a));
	ASSERT_EQ(0, tw_arm_at(self->fd, 2 * TW_MS, &b));
	rows[0].id = a;
	rows[2].id = b;
	EXPECT_EQ(2, tw_query_vec(self->fd, rows, 3));
	EXPECT_EQ(0, rows[0].result);
	EXPECT_EQ(TW_MS, rows[0].deadline_ns);
	EXPECT_EQ(-ENOENT, rows[1].result);
	EXPECT_EQ(0, rows[2].result);
	EXPECT_EQ(2 * TW_MS, rows[2].deadline_ns);
}

TEST_F(query, query_changes_nothing)
{
	struct tw_snapshot before;
	struct twheel_status status;
	__u64 ids[TW_KINDS];
	int i;

	tw_arm_each_kind(_metadata, self->fd, ids);
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	for (i = 0; i < TW_KINDS; i++) {
		ASSERT_EQ(0, tw_query1(self->fd, ids[i], &status));
	}
	EXPECT_UNCHANGED(self->fd, &before);
}

/* ---- on a real clock ------------------------------------------------------ */

#define PERIOD_NS	(10 * TW_MS)

static __u64 left_at(__u64 now_ns, __u64 deadline_ns)
{
	return now_ns < deadline_ns ? deadline_ns - now_ns : 0;
}

/* The event stays unread, and the timeout goes on. */
TEST(the_time_left_of_a_period_shrinks_and_begins_again)
{
	__u64 id, first_ns, end_ns, before_ns, after_ns, previous_ns = PERIOD_NS;
	int begun = 0, fd = tw_open(O_NONBLOCK);
	struct twheel_status status;

	ASSERT_LE(0, fd);
	first_ns = tw_now(CLOCK_MONOTONIC) + PERIOD_NS;
	ASSERT_EQ(0, tw_arm1(fd, TWHEEL_ARM_ABSOLUTE, first_ns, PERIOD_NS, 0, &id));
	end_ns = first_ns + TW_PATIENCE_MS * TW_MS;
	while (begun < 10 && tw_now(CLOCK_MONOTONIC) < end_ns) {
		before_ns = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(0, tw_query1(fd, id, &status));
		after_ns = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(PERIOD_NS, status.interval_ns);
		/*
		 * The time left goes down to 0, while the deadline has passed and its edge has not.
		 */
		ASSERT_GE(left_at(before_ns, status.deadline_ns), status.left_ns);
		ASSERT_LE(left_at(after_ns, status.deadline_ns), status.left_ns);
		ASSERT_EQ(0, (status.deadline_ns - first_ns) % PERIOD_NS);
		/* The timeout waits for one deadline; those before it are in the count. */
		ASSERT_EQ(status.count, (status.deadline_ns - first_ns) / PERIOD_NS);
		begun += status.left_ns > previous_ns;
		previous_ns = status.left_ns;
	}
	EXPECT_EQ(10, begun);
	close(fd);
}

TEST_HARNESS_MAIN
