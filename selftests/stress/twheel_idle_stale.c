// SPDX-License-Identifier: GPL-2.0
/*
 * Silence (G6) after timeouts were cancelled or moved later: nobody is woken at the
 * deadlines that they had.
 *
 * Half of all timeouts are an hour ahead and stay as they are. Each of the others has a deadline at
 * a tick of its own, within the time in which the test listens. TW_IDLE_SECONDS (5) says how long
 * that is, and TW_SLOWDOWN (1) how slow the kernel is.  The test tries how long before they have to
 * be armed: if the kernel is slow, it needs seconds to cancel all of them.
 */
#include "twheel_outside.h"

#include <sys/mman.h>

#define NR		5000
#define VECTOR		500
/* One is normal, two or three are seen; each timeout at its own deadline would be NR. */
#define A_HANDFUL	8
/*
 * Timeouts that were moved to later are visited when their slot comes up, and with one level all
 * are visited once a round.  If the kthread gets no processor, the softirq visits this many at a
 * ring.
 */
#define AT_A_RING	512
#define LONGEST_LEAD_NS	(32 * TW_SEC)

enum way { CANCELLED, REARMED, REFRESHED };

FIXTURE(half) {
	int fd;
	__u64 first_ns;		/* when the first of the others would be due */
	__u64 listen_ns;
	__u64 id[NR];		/* the ids of those that are cancelled or moved */
};

FIXTURE_VARIANT(half) {
	enum way way;
	struct twheel_setup setup;
	__u64 spread_ns;	/* the time from the first to the last of the half that stays */
};

FIXTURE_VARIANT_ADD(half, cancelled) {
	.way = CANCELLED,
	.spread_ns = 10 * TW_MIN,
};

FIXTURE_VARIANT_ADD(half, rearmed_to_later) {
	.way = REARMED,
	.spread_ns = 10 * TW_MIN,
};

FIXTURE_VARIANT_ADD(half, refreshed_to_later) {
	.way = REFRESHED,
	.spread_ns = 10 * TW_MIN,
};

/* All of them are in level 0. */
FIXTURE_VARIANT_ADD(half, cancelled_in_many_slots) {
	.way = CANCELLED,
	.setup = { .slots = 1 << 15 },
	.spread_ns = 10 * TW_MIN,
};

/* All of them are in coarse slots. */
FIXTURE_VARIANT_ADD(half, cancelled_in_few_slots) {
	.way = CANCELLED,
	.setup = { .slots = TWHEEL_SLOTS_MIN },
};

/* In a round, it visits each slot that is occupied, which is a single one here. */
FIXTURE_VARIANT_ADD(half, cancelled_in_one_level) {
	.way = CANCELLED,
	.setup = { .slots = 1 << 13, .flags = TWHEEL_SETUP_ONE_LEVEL },
};

/* Arm NR timeouts, the first at @first_ns, the last @spread_ns later. */
static void arm_half(struct __test_metadata *_metadata, int fd, __u64 first_ns,
		     __u64 spread_ns, __u64 *ids)
{
	static struct twheel_arm arms[VECTOR];
	int i, j;

	for (i = 0; i < NR; i += VECTOR) {
		for (j = 0; j < VECTOR; j++)
			arms[j] = (struct twheel_arm){
				.flags = TWHEEL_ARM_ABSOLUTE,
				.expires_ns = first_ns + spread_ns / NR * (i + j),
			};
		ASSERT_EQ(VECTOR, tw_arm_vec(fd, arms, VECTOR));
		for (j = 0; j < VECTOR; j++)
			ids[i + j] = arms[j].id;
	}
}

/* If the alarm has rung for this one, it is set for the first of the others. */
static void enter_all(struct __test_metadata *_metadata, int fd, __u64 *id)
{
	ASSERT_EQ(0, tw_arm_in(fd, TW_MS, id));
	ASSERT_EQ(POLLIN, tw_poll(fd, POLLIN, TW_PATIENCE_MS));
}

/* Return how many of these were not pending any more. */
static int cancel_all(int fd, const __u64 *ids)
{
	int i, nr = 0;

	for (i = 0; i < NR; i++)
		nr += tw_cancel1(fd, ids[i]) != TWHEEL_WAS_PENDING;
	return nr;
}

static int rearm_all(int fd, const __u64 *ids)
{
	int i, nr = 0;

	for (i = 0; i < NR; i++)
		nr += tw_rearm1(fd, ids[i], 0, TW_HOUR, 0) != TWHEEL_WAS_PENDING;
	return nr;
}

static int refresh_all(int fd, const __u64 *ids)
{
	__u64 deadline_ns = tw_now(CLOCK_MONOTONIC) + TW_HOUR;
	struct twheel_info info;
	__u64 *table;
	int i, nr = 0;

	if (tw_info(fd, &info))
		return -EIO;
	table = mmap(NULL, info.refresh_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED)
		return -ENOMEM;
	for (i = 0; i < NR; i++)
		nr += tw_refresh(table, ids[i], deadline_ns, info.refresh_shift) != 1;
	munmap(table, info.refresh_size);
	return nr;
}

/*
 * Make the wheel, with so much time until the first of the half that goes is due.  If that was too
 * little, so that some were due before all had gone, return false.
 */
static bool make_half(struct __test_metadata *_metadata, FIXTURE_DATA(half) *self,
		      const FIXTURE_VARIANT(half) *variant, __u64 lead_ns)
{
	struct twheel_event event;
	static __u64 stay[NR];
	__u64 id;
	int nr;

	self->fd = tw_open_setup(O_NONBLOCK | O_CLOEXEC, &variant->setup);
	ASSERT_LE(0, self->fd);
	arm_half(_metadata, self->fd, tw_now(CLOCK_MONOTONIC) + TW_HOUR, variant->spread_ns, stay);
	self->first_ns = tw_now(CLOCK_MONOTONIC) + lead_ns;
	arm_half(_metadata, self->fd, self->first_ns, self->listen_ns, self->id);
	enter_all(_metadata, self->fd, &id);
	if (variant->way == CANCELLED)
		nr = cancel_all(self->fd, self->id);
	else if (variant->way == REARMED)
		nr = rearm_all(self->fd, self->id);
	else
		nr = refresh_all(self->fd, self->id);
	if (tw_now(CLOCK_MONOTONIC) >= self->first_ns && lead_ns < LONGEST_LEAD_NS)
		return false;
	/* That one is due, and nothing else. */
	ASSERT_ONE_EVENT(self->fd, &event, id);
	ASSERT_EQ(0, nr);
	return true;
}

FIXTURE_SETUP(half)
{
	__u64 lead_ns = TW_SEC;

	self->listen_ns = tw_setting("TW_IDLE_SECONDS", 5) * TW_SEC;
	while (!make_half(_metadata, self, variant, lead_ns)) {
		close(self->fd);
		lead_ns *= 2;
	}
}

FIXTURE_TEARDOWN(half)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F_TIMEOUT(half, stale_deadlines_wake_nobody_more_than_a_handful_of_times, 100)
{
	bool cancelled = variant->way == CANCELLED;
	int rings = A_HANDFUL, ours, all;
	struct twheel_info info;
	__u64 before, after;
	bool traced;

	if (!cancelled || variant->setup.flags & TWHEEL_SETUP_ONE_LEVEL)
		rings += NR / AT_A_RING;
	/* The alarm rings at each tick while the kthread moves timeouts: longer if it is slow. */
	rings *= tw_setting("TW_SLOWDOWN", 1);
	traced = !tw_trace_start();
	ASSERT_LT(0, tw_kthreads(&before));
	tw_sleep_until(self->first_ns + self->listen_ns + TW_SEC / 5);
	ASSERT_LT(0, tw_kthreads(&after));
	ours = tw_trace_expiries(&all);
	TH_LOG("%llu switches, %d expiries", after - before, traced ? ours : -1);
	EXPECT_GE(before + A_HANDFUL, after);
	if (traced) {
		EXPECT_LT(0, all);
		EXPECT_GE(rings, ours);
	}
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(cancelled ? NR : 2 * NR, info.pending);
}

TEST_HARNESS_MAIN
