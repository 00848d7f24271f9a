// SPDX-License-Identifier: GPL-2.0
/*
 * Stale ids (G8): an id whose timeout has ended says ENOENT for ever, and never
 * touches the one that has its place now.
 *
 * The wheels here are tiny, so that places are used again at once.
 */
#include "twheel_outcomes.h"

#include <pthread.h>

#define PLACES		4
#define GENERATIONS	1500
#define IDS		20000
#define STALE		4096

FIXTURE(stale) {
	int fd;
};

FIXTURE_SETUP(stale)
{
	self->fd = tw_virtual_for(O_NONBLOCK | O_CLOEXEC, PLACES);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(stale)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

static int compare_u64(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return (x > y) - (x < y);
}

TEST_F(stale, no_id_is_given_out_twice_and_none_is_zero)
{
	static __u64 ids[IDS];
	int i, j;

	for (i = 0; i < IDS; i += PLACES) {
		struct twheel_cancel cancels[PLACES] = {};
		struct twheel_arm arms[PLACES] = {};

		for (j = 0; j < PLACES; j++)
			arms[j].expires_ns = TW_HOUR;
		ASSERT_EQ(PLACES, tw_arm_vec(self->fd, arms, PLACES));
		for (j = 0; j < PLACES; j++) {
			ids[i + j] = arms[j].id;
			cancels[j].id = arms[j].id;
		}
		ASSERT_EQ(PLACES, tw_cancel_vec(self->fd, cancels, PLACES));
	}
	qsort(ids, IDS, sizeof(ids[0]), compare_u64);
	EXPECT_NE(0, ids[0]);
	for (i = 1; i < IDS; i++)
		ASSERT_NE(ids[i - 1], ids[i]);
}

/*
 * The bound lets a program have an array beside the wheel. Places are made by the page: for those
 * that may be live, and a bounded number for those that were cancelled and wait for the kthread
 * to be freed.
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

/* More places than such a wheel can have. */
#define MOST_PLACES	65536

/* The state of the loop below, and its counts. */
static struct {
	int fd;
	_Atomic __u64 live;			/* the timeout armed last */
	_Atomic __u64 of_place[MOST_PLACES];	/* the timeout that ended there last */
	_Atomic __u64 tried;
	_Atomic bool stop;
	_Atomic int bad;			/* the line of the first error */
} ended;

static void expect_enoent(struct __test_metadata *_metadata, int fd, __u64 id)
{
	struct twheel_status row;

	ASSERT_EQ(-ENOENT, tw_cancel1(fd, id))
		TH_LOG("id %#llx", id);
	ASSERT_EQ(-ENOENT, tw_rearm1(fd, id, 0, TW_MS, 0))
		TH_LOG("id %#llx", id);
	ASSERT_EQ(-ENOENT, tw_query1(fd, id, &row))
		TH_LOG("id %#llx", id);
}

/* End a timeout by CANCEL. */
static __u64 end_by_cancel(struct __test_metadata *_metadata, int fd)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	ended.live = id;
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, id));
	return id;
}

/* End a timeout by a read of its event. */
static __u64 end_by_read(struct __test_metadata *_metadata, int fd)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(fd, 0, &id));
	ended.live = id;
	ASSERT_EQ(0, tw_advance(fd, 0));
	ASSERT_ONE_EVENT(fd, &event, id);
	return id;
}

TEST_F(stale, an_old_id_says_enoent_to_all_and_touches_nobody)
{
	static __u64 old[GENERATIONS];
	struct tw_snapshot before;
	__u64 ids[PLACES];
	int i, j, again = 0;

	for (i = 0; i < GENERATIONS; i++) {
		old[i] = i % 2 ? end_by_cancel(_metadata, self->fd) :
				 end_by_read(_metadata, self->fd);
		expect_enoent(_metadata, self->fd, old[i]);
		expect_enoent(_metadata, self->fd, old[0]);
	}
	for (i = 0; i < PLACES; i++)
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &ids[i]));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));
	for (i = 0; i < GENERATIONS; i++) {
		expect_enoent(_metadata, self->fd, old[i]);
		for (j = 0; j < PLACES; j++)
			again += (__u32)old[i] == (__u32)ids[j];
	}
	EXPECT_UNCHANGED(self->fd, &before);
	/* If they are not used again, nothing was tried. */
	EXPECT_LE(PLACES, again);
}

/* Ids near that of a live timeout. */
TEST_F(stale, an_id_that_never_was_says_enoent_to_all_and_touches_nobody)
{
	struct tw_snapshot before;
	__u64 id;
	int i;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	ASSERT_EQ(0, tw_snapshot(self->fd, &before));

	const __u64 strangers[] = {
		0, ~0ULL, (__u32)id, id & ~0xffffffffULL, id + 1, id - 1, id + (1ULL << 32),
		id - (1ULL << 32), id | 0xffffffffULL, 1ULL << 63, TW_POISON64,
	};

	for (i = 0; i < (int)ARRAY_SIZE(strangers); i++)
		/* If the live one has a small id itself, leave it out. */
		if (strangers[i] != id)
			expect_enoent(_metadata, self->fd, strangers[i]);
	for (i = 0; i < 64; i++)
		expect_enoent(_metadata, self->fd, id ^ 1ULL << i);
	EXPECT_UNCHANGED(self->fd, &before);
}

/* ---- stale ids while places are used again ------------------------------- */

enum { CANCELLED, REARMED, QUERIED };

static struct tw_outcome outcomes[] = {
	[CANCELLED]	= TW_OUTCOME("CANCEL of a place that is in use again", TW_A_FEW),
	[REARMED]	= TW_OUTCOME("REARM of one", TW_A_FEW),
	[QUERIED]	= TW_OUTCOME("QUERY of one", TW_A_FEW),
};

#define CHECK(condition) do {						\
	int __none = 0;							\
	if (!(condition))						\
		atomic_compare_exchange_strong(&ended.bad, &__none, __LINE__); \
} while (0)

static _Atomic __u64 *last_of(__u64 id)
{
	return &ended.of_place[id % MOST_PLACES];
}

/* Use the id that had the place before the timeout that was armed last. */
static void *hammer(void *arg)
{
	struct twheel_status row;
	__u64 seed = 1;

	(void)arg;
	while (!ended.stop) {
		__u64 live = ended.live;
		__u64 id = *last_of(live);
		int call = tw_random(&seed) % 3;

		if (!id)
			continue;
		/* If that timeout has ended, too, the two ids are the same. */
		if (id != live)
			tw_saw(&outcomes[call], 1);
		switch (call) {
		case CANCELLED:
			CHECK(tw_cancel1(ended.fd, id) == -ENOENT);
			break;
		case REARMED:
			CHECK(tw_rearm1(ended.fd, id, 0, 0, 0) == -ENOENT);
			break;
		case QUERIED:
			CHECK(tw_query1(ended.fd, id, &row) == -ENOENT);
			break;
		}
		ended.tried++;
	}
	return NULL;
}

static void hammer_while(struct __test_metadata *_metadata, int fd,
			 __u64 (*end_one)(struct __test_metadata *, int))
{
	struct tw_race race = TW_RACE(outcomes, tw_race_seconds());
	pthread_t thread;
	int i;

	ended.fd = fd;
	ASSERT_EQ(0, pthread_create(&thread, NULL, hammer, NULL));
	while (tw_race_goes_on(&race)) {
		for (i = 0; i < 100; i++) {
			__u64 id = end_one(_metadata, fd);

			*last_of(id) = id;
		}
	}
	ended.stop = true;
	pthread_join(thread, NULL);
	TH_LOG("%llu stale ids tried", ended.tried);
	EXPECT_EQ(0, ended.bad)
		TH_LOG("a thread found line %d not true", ended.bad);
	EXPECT_RACE(&race);
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
