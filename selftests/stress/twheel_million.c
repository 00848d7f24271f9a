// SPDX-License-Identifier: GPL-2.0
/*
 * A million timeouts on the monotonic clock: armed, refreshed, half of them
 * cancelled, the others expired and read.  Each has exactly one outcome (G3),
 * none is early (G1), none is lost (G4).
 *
 * TW_MILLION says how many, for machines on which a million is too many.
 */
#include "twheel_test.h"

#define VECTOR		512

FIXTURE(million) {
	int fd;
	__u32 nr;
	__u64 *ids;
	__u64 *deadlines_ns;
	__u8 *seen;
};

FIXTURE_SETUP(million)
{
	struct twheel_info info;

	self->nr = tw_setting("TW_MILLION", 1000000);
	self->ids = calloc(self->nr, sizeof(*self->ids));
	self->deadlines_ns = calloc(self->nr, sizeof(*self->deadlines_ns));
	self->seen = calloc(self->nr, sizeof(*self->seen));
	ASSERT_TRUE(self->ids && self->deadlines_ns && self->seen);
	self->fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_MONOTONIC, TW_MS, self->nr));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	ASSERT_LE(VECTOR, info.max_vector);
}

FIXTURE_TEARDOWN(million)
{
	close(self->fd);
}

static struct twheel_arm arms[VECTOR];
static struct twheel_cancel cancels[VECTOR];
static struct twheel_event events[VECTOR];

/* Print how long it took, and return that. */
static __u64 report(const char *what, __u32 nr, __u64 since_ns)
{
	__u64 ns = tw_now(CLOCK_MONOTONIC) - since_ns;

	printf("# %s: %u in %llu ms, %llu ns each\n", what, nr, ns / TW_MS, ns / nr);
	return ns;
}

/* Return a random time between two distances from now. */
static __u64 ahead(__u64 *seed, __u64 from_ns, __u64 to_ns)
{
	__u64 span_us = (to_ns - from_ns) / TW_US;

	return tw_now(CLOCK_MONOTONIC) + from_ns + tw_random(seed) % span_us * TW_US;
}

static __u64 arm_all(struct __test_metadata *_metadata, FIXTURE_DATA(million) *self)
{
	__u64 seed = 1, since_ns = tw_now(CLOCK_MONOTONIC);
	__u32 i, j, n;

	for (i = 0; i < self->nr; i += n) {
		n = self->nr - i < VECTOR ? self->nr - i : VECTOR;
		for (j = 0; j < n; j++)
			arms[j] = (struct twheel_arm){
				.expires_ns = ahead(&seed, TW_HOUR / 2, TW_HOUR),
				.user_data = i + j,
				.flags = TWHEEL_ARM_ABSOLUTE,
			};
		ASSERT_EQ(n, tw_arm_vec(self->fd, arms, n));
		for (j = 0; j < n; j++) {
			ASSERT_EQ(TWHEEL_CREATED, arms[j].result);
			self->ids[i + j] = arms[j].id;
		}
	}
	return report("armed", self->nr, since_ns);
}

/* Move every step-th of them to a new time. */
static void rearm_each(struct __test_metadata *_metadata, FIXTURE_DATA(million) *self,
		       __u32 step, __u64 from_ns, __u64 to_ns)
{
	__u64 seed = 2, since_ns = tw_now(CLOCK_MONOTONIC);
	__u32 i, j, n, nr = 0;

	for (i = 0; i < self->nr; nr += n) {
		for (n = 0; n < VECTOR && i < self->nr; n++, i += step) {
			self->deadlines_ns[i] = ahead(&seed, from_ns, to_ns);
			arms[n] = (struct twheel_arm){
				.expires_ns = self->deadlines_ns[i],
				.flags = TWHEEL_ARM_ABSOLUTE,
				.id = self->ids[i],
			};
		}
		ASSERT_EQ(n, tw_rearm_vec(self->fd, arms, n));
		for (j = 0; j < n; j++)
			ASSERT_EQ(TWHEEL_WAS_PENDING, arms[j].result);
	}
	report("re-armed", nr, since_ns);
}

/* Cancel those with odd numbers. */
static __u32 cancel_half(struct __test_metadata *_metadata, FIXTURE_DATA(million) *self)
{
	__u64 since_ns = tw_now(CLOCK_MONOTONIC);
	__u32 i, j, n, nr = 0;

	for (i = 1; i < self->nr; nr += n) {
		for (n = 0; n < VECTOR && i < self->nr; n++, i += 2)
			cancels[n] = (struct twheel_cancel){ .id = self->ids[i] };
		ASSERT_EQ(n, tw_cancel_vec(self->fd, cancels, n));
		for (j = 0; j < n; j++)
			ASSERT_EQ(TWHEEL_WAS_PENDING, cancels[j].result);
	}
	report("cancelled", nr, since_ns);
	return nr;
}

static void check_event(struct __test_metadata *_metadata, FIXTURE_DATA(million) *self,
			const struct twheel_event *event)
{
	__u64 who = event->user_data;

	ASSERT_LT(who, self->nr);
	ASSERT_EQ(0, self->seen[who]);
	self->seen[who] = 1;
	ASSERT_EQ(self->ids[who], event->id);
	ASSERT_EQ(self->deadlines_ns[who], event->deadline_ns);
	ASSERT_LE(event->deadline_ns, event->fired_ns);
	ASSERT_EQ(1, event->count);
	ASSERT_EQ(TWHEEL_EVENT_ENDED, event->flags);
}

static void read_all(struct __test_metadata *_metadata, FIXTURE_DATA(million) *self, __u32 nr)
{
	__u64 since_ns = tw_now(CLOCK_MONOTONIC);
	__u32 got = 0;
	int i, ret;

	while (got < nr) {
		ASSERT_EQ(POLLIN, tw_poll(self->fd, POLLIN, 4 * TW_PATIENCE_MS))
			TH_LOG("%u of %u events came", got, nr);
		ret = tw_read(self->fd, events, VECTOR);
		ASSERT_LT(0, ret);
		for (i = 0; i < ret; i++)
			check_event(_metadata, self, &events[i]);
		got += ret;
	}
	ASSERT_EQ(nr, got);
	report("expired and read", nr, since_ns);
}

/* Return a time so far ahead that all are moved there before any expires. */
static __u64 soon(__u64 armed_within_ns)
{
	return 3 * TW_SEC + 2 * armed_within_ns;
}

static void expect_counts(struct __test_metadata *_metadata, int fd, __u64 armed, __u64 pending,
			  __u64 cancelled, __u64 completed, __u64 rearmed)
{
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(armed, info.armed);
	EXPECT_EQ(pending, info.pending);
	EXPECT_EQ(pending, info.live);
	EXPECT_EQ(0, info.unread);
	EXPECT_EQ(cancelled, info.cancelled);
	EXPECT_EQ(completed, info.completed);
	EXPECT_EQ(completed, info.delivered);
	EXPECT_EQ(completed, info.expirations);
	EXPECT_EQ(rearmed, info.rearmed);
	EXPECT_EQ(0, info.revoked);
	EXPECT_EQ(0, info.drained);
	EXPECT_ACCOUNTS(fd);
}

TEST_F_TIMEOUT(million, each_has_exactly_one_outcome, 100)
{
	struct twheel_info info;
	__u32 cancelled, left, i;
	__u64 soon_ns = soon(arm_all(_metadata, self));

	expect_counts(_metadata, self->fd, self->nr, self->nr, 0, 0, 0);
	rearm_each(_metadata, self, 1, TW_HOUR, 2 * TW_HOUR);
	expect_counts(_metadata, self->fd, self->nr, self->nr, 0, 0, self->nr);
	cancelled = cancel_half(_metadata, self);
	left = self->nr - cancelled;
	expect_counts(_metadata, self->fd, self->nr, left, cancelled, 0, self->nr);
	rearm_each(_metadata, self, 2, soon_ns, soon_ns + 3 * TW_SEC);
	read_all(_metadata, self, left);
	expect_counts(_metadata, self->fd, self->nr, 0, cancelled, left, self->nr + left);
	for (i = 0; i < self->nr; i++)
		ASSERT_EQ(i % 2 ? 0 : 1, self->seen[i]);
	EXPECT_EQ(TWHEEL_TIME_NEVER, (tw_info(self->fd, &info), info.next_expiry_ns));
	TH_LOG("%llu were late, the last of them by %llu us", info.late,
	       info.last_late_ns / TW_US);
}

/* All are on one edge: that is the worst case for one tick. */
TEST_F_TIMEOUT(million, all_at_once_are_all_delivered, 100)
{
	__u64 deadline_ns;
	__u32 i, j, n;

	deadline_ns = soon(arm_all(_metadata, self));
	deadline_ns += tw_now(CLOCK_MONOTONIC);
	for (i = 0; i < self->nr; i += n) {
		n = self->nr - i < VECTOR ? self->nr - i : VECTOR;
		for (j = 0; j < n; j++) {
			self->deadlines_ns[i + j] = deadline_ns;
			arms[j] = (struct twheel_arm){
				.expires_ns = deadline_ns,
				.flags = TWHEEL_ARM_ABSOLUTE,
				.id = self->ids[i + j],
			};
		}
		ASSERT_EQ(n, tw_rearm_vec(self->fd, arms, n));
	}
	read_all(_metadata, self, self->nr);
	expect_counts(_metadata, self->fd, self->nr, 0, 0, self->nr, self->nr);
}

TEST_HARNESS_MAIN
