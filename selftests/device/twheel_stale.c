// SPDX-License-Identifier: GPL-2.0
/*
 * Stale ids (G8): an id whose timeout has ended says ENOENT for ever, and never
 * touches the one that has its place now.
 *
 * The wheels here are tiny, so that places are used again at once.
 */
#include "twheel_test.h"

#include <pthread.h>
#include <stdatomic.h>

#define PLACES		4
#define GENERATIONS	2000
#define STALE		4096

FIXTURE(stale) {
	int fd;
};

FIXTURE_SETUP(stale)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = TW_MS,
		.max_pending = PLACES,
	};

	self->fd = tw_open_setup(O_NONBLOCK | O_CLOEXEC, &setup);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(stale)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(stale, an_id_is_never_given_out_twice)
{
	static __u64 ids[GENERATIONS];
	int i, j;

	for (i = 0; i < GENERATIONS; i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &ids[i]));
		ASSERT_NE(0, ids[i]);
		for (j = 0; j < i; j++)
			ASSERT_NE(ids[j], ids[i]);
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[i]));
	}
}

/*
 * So that a program can have an array beside the wheel.  Places are made by the
 * page: for those that may be live, and a bounded number for those that were cancelled
 * and wait for the kthread to be freed.
 */
#define MORE_PLACES	32768

TEST_F(stale, the_low_half_of_an_id_is_bounded)
{
	struct twheel_info info;
	__u64 ids[PLACES];
	int i, j;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	for (i = 0; i < 3 * MORE_PLACES / PLACES; i++) {
		for (j = 0; j < PLACES; j++) {
			ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &ids[j]));
			ASSERT_GT(PLACES + MORE_PLACES + sysconf(_SC_PAGESIZE) / 40,
				  (__u32)ids[j]);
			ASSERT_GT(info.refresh_size / sizeof(__u64), (__u32)ids[j]);
		}
		for (j = 0; j < PLACES; j++)
			ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[j]));
	}
}

TEST_F(stale, an_old_id_says_enoent_to_all_and_touches_nobody)
{
	static __u64 old[100];
	struct twheel_status row;
	struct tw_snapshot before;
	__u64 ids[PLACES];
	int i;

	for (i = 0; i < (int)ARRAY_SIZE(old); i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &old[i]));
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, old[i]));
	}
	for (i = 0; i < PLACES; i++)
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &ids[i]));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	for (i = 0; i < (int)ARRAY_SIZE(old); i++) {
		EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, old[i]));
		EXPECT_EQ(-ENOENT, tw_rearm1(self->fd, old[i], 0, TW_MS, 0));
		EXPECT_EQ(-ENOENT, tw_query1(self->fd, old[i], &row));
	}
	EXPECT_UNCHANGED(self->fd, &before);
}

TEST_F(stale, a_made_up_generation_says_enoent)
{
	struct twheel_status row;
	__u64 id;
	int bit;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	for (bit = 0; bit < 64; bit++) {
		ASSERT_EQ(-ENOENT, tw_query1(self->fd, id ^ 1ULL << bit, &row));
		ASSERT_EQ(-ENOENT, tw_cancel1(self->fd, id ^ 1ULL << bit));
	}
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
}

/* ---- beside the reuse ---------------------------------------------------- */

static struct {
	int fd;
	_Atomic __u64 id[STALE];	/* a ring of what has ended */
	_Atomic __u64 nr;
	_Atomic __u64 tried;
	_Atomic bool stop;
	_Atomic int bad;		/* the line of what went wrong first */
} ended;

#define CHECK(condition) do {						\
	int __none = 0;							\
	if (!(condition))						\
		atomic_compare_exchange_strong(&ended.bad, &__none, __LINE__); \
} while (0)

static void note_ended(__u64 id)
{
	__u64 nr = ended.nr;

	ended.id[nr % STALE] = id;
	ended.nr = nr + 1;
}

static void *hammer(void *arg)
{
	struct twheel_status row;
	__u64 seed = 1;

	(void)arg;
	while (!ended.stop) {
		__u64 nr = ended.nr;
		__u64 id;

		if (!nr)
			continue;
		/* Mostly the latest: its place is the next to be used. */
		id = ended.id[(nr - 1 - tw_random(&seed) % (nr < 8 ? nr : 8)) % STALE];
		switch (tw_random(&seed) % 3) {
		case 0:
			CHECK(tw_cancel1(ended.fd, id) == -ENOENT);
			break;
		case 1:
			CHECK(tw_rearm1(ended.fd, id, 0, 0, 0) == -ENOENT);
			break;
		case 2:
			CHECK(tw_query1(ended.fd, id, &row) == -ENOENT);
			break;
		}
		ended.tried++;
	}
	return NULL;
}

/* One timeout after the other ends by cancel, and its place is used again. */
static void end_by_cancel(struct __test_metadata *_metadata, int fd)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, id));
	note_ended(id);
}

static void end_by_read(struct __test_metadata *_metadata, int fd)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(fd, 0, &id));
	ASSERT_EQ(0, tw_advance(fd, 0));
	ASSERT_ONE_EVENT(fd, &event, id);
	note_ended(id);
}

static void hammer_while(struct __test_metadata *_metadata, int fd,
			 void (*end_one)(struct __test_metadata *, int))
{
	__u64 end_ns = tw_now(CLOCK_MONOTONIC) + tw_setting("TW_RACE_SECONDS", 2) * TW_SEC;
	pthread_t thread;

	ended.fd = fd;
	ASSERT_EQ(0, pthread_create(&thread, NULL, hammer, NULL));
	while (tw_now(CLOCK_MONOTONIC) < end_ns)
		end_one(_metadata, fd);
	ended.stop = true;
	pthread_join(thread, NULL);
	TH_LOG("%llu stale ids tried beside %llu timeouts", ended.tried, ended.nr);
	EXPECT_EQ(0, ended.bad)
		TH_LOG("a thread found line %d not true", ended.bad);
}

TEST_F_TIMEOUT(stale, ids_hammered_beside_arm_and_cancel_touch_nobody, 100)
{
	hammer_while(_metadata, self->fd, end_by_cancel);
}

TEST_F_TIMEOUT(stale, ids_hammered_beside_arm_and_read_touch_nobody, 100)
{
	hammer_while(_metadata, self->fd, end_by_read);
}

TEST_HARNESS_MAIN
