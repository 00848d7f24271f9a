// SPDX-License-Identifier: GPL-2.0
/*
 * <linux/twheel_calls.h>: each function makes one call, and returns the result of its
 * entry, or why the call failed.
 */
#include <linux/twheel_calls.h>

#include "twheel_test.h"

FIXTURE(calls) {
	int fd;
	struct twheel_arm arm;
};

FIXTURE_SETUP(calls)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
	self->arm = (struct twheel_arm){
		.expires_ns = 10 * TW_MS, .user_data = 7, .id = TW_POISON64,
	};
}

FIXTURE_TEARDOWN(calls)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(calls, arm_one_arms_and_tells_the_id)
{
	struct twheel_event event;

	ASSERT_EQ(TWHEEL_CREATED, twheel_arm_one(self->fd, &self->arm));
	EXPECT_EQ(TWHEEL_CREATED, self->arm.result);
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, self->arm.id);
	EXPECT_EQ(7, event.user_data);
}

TEST_F(calls, rearm_one_tells_what_it_found)
{
	struct twheel_event event;

	ASSERT_EQ(TWHEEL_CREATED, twheel_arm_one(self->fd, &self->arm));
	self->arm.expires_ns = 20 * TW_MS;
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_rearm_one(self->fd, &self->arm));
	ASSERT_EQ(0, tw_advance(self->fd, 20 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, twheel_rearm_one(self->fd, &self->arm));
	ASSERT_EQ(0, tw_advance(self->fd, 40 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, self->arm.id);
	EXPECT_EQ(-ENOENT, twheel_rearm_one(self->fd, &self->arm));
}

TEST_F(calls, cancel_one_tells_what_it_found)
{
	ASSERT_EQ(TWHEEL_CREATED, twheel_arm_one(self->fd, &self->arm));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_cancel_one(self->fd, self->arm.id));
	EXPECT_EQ(-ENOENT, twheel_cancel_one(self->fd, self->arm.id));
	ASSERT_EQ(TWHEEL_CREATED, twheel_arm_one(self->fd, &self->arm));
	ASSERT_EQ(0, tw_advance(self->fd, 10 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, twheel_cancel_one(self->fd, self->arm.id));
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(calls, query_one_fills_the_row)
{
	struct twheel_status status;

	memset(&status, TW_POISON, sizeof(status));
	ASSERT_EQ(TWHEEL_CREATED, twheel_arm_one(self->fd, &self->arm));
	status.id = self->arm.id;
	ASSERT_EQ(0, twheel_query_one(self->fd, &status));
	EXPECT_EQ(TWHEEL_STATE_PENDING, status.state);
	EXPECT_EQ(10 * TW_MS, status.left_ns);
	status.id = 0;
	EXPECT_EQ(-ENOENT, twheel_query_one(self->fd, &status));
}

TEST_F(calls, entry_that_is_refused_and_call_that_fails_look_alike)
{
	struct twheel_status status = {};

	self->arm.repeats = 3;		/* of a one-shot */
	EXPECT_EQ(-EINVAL, twheel_arm_one(self->fd, &self->arm));
	EXPECT_EQ(0, self->arm.id);
	self->arm.repeats = 0;
	EXPECT_EQ(-EBADF, twheel_arm_one(-1, &self->arm));
	EXPECT_EQ(-EBADF, twheel_rearm_one(-1, &self->arm));
	EXPECT_EQ(-EBADF, twheel_cancel_one(-1, 1));
	EXPECT_EQ(-EBADF, twheel_query_one(-1, &status));
	EXPECT_EQ(-EFAULT, twheel_call_one(self->fd, TWHEEL_IOC_ARM, NULL, sizeof(self->arm),
					   &self->arm.result));
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(-ESHUTDOWN, twheel_arm_one(self->fd, &self->arm));
}

TEST_HARNESS_MAIN
