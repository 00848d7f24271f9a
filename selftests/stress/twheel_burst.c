// SPDX-License-Identifier: GPL-2.0
/*
 * Bursts: many timeouts come and go, and the memory of their places is given back in between. The
 * holder of an id, new, old or stale, does not notice that.
 *
 * TW_MILLION, 1000000 unless it is set, scales the bursts, TW_ROUNDS says how many
 * there are beside others.
 */
#include "twheel_outcomes.h"
#include "twheel_outside.h"

#include <pthread.h>
#include <sys/mman.h>

#define BURST		60000
#define BURST_MIN	20000		/* many more than are kept when they are free */
#define VECTOR		1000
#define STAY		300		/* one of so many stays */

static struct twheel_arm arms[VECTOR];
static struct twheel_cancel cancels[VECTOR];
static struct twheel_status rows[VECTOR];
static __u64 ids[BURST], kept[BURST / STAY], old_ids[BURST];

/* How many come and go: BURST, less those that stay; see TW_MILLION. */
static int nr_burst;

FIXTURE(burst) {
	int fd;
	__u64 *table;
	__u32 nr_kept;
	__u64 now_ns;
};

FIXTURE_SETUP(burst)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS, .max_pending = 2 * BURST,
	};

	nr_burst = BURST * tw_setting("TW_MILLION", 1000000) / 1000000 / VECTOR * VECTOR;
	if (nr_burst < BURST_MIN)
		nr_burst = BURST_MIN;
	if (nr_burst > BURST)
		nr_burst = BURST;
	self->fd = tw_open_setup(O_NONBLOCK, &setup);
	ASSERT_LE(0, self->fd);
	self->table = mmap(NULL, 16 * BURST, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->table);
	self->nr_kept = 0;
	self->now_ns = 0;
}

FIXTURE_TEARDOWN(burst)
{
	EXPECT_ACCOUNTS(self->fd);
	munmap(self->table, 16 * BURST);
	close(self->fd);
}

/* Arm all a day ahead of now_ns; they are in the wheel when this returns. */
static int come(int fd, __u64 now_ns)
{
	int i, first;

	for (first = 0; first < nr_burst; first += VECTOR) {
		for (i = 0; i < VECTOR; i++)
			arms[i] = (struct twheel_arm){
				.expires_ns = now_ns + TW_DAY + i * TW_MS,
				.flags = TWHEEL_ARM_ABSOLUTE,
				.user_data = first + i,
			};
		if (tw_arm_vec(fd, arms, VECTOR) != VECTOR)
			return -EIO;
		for (i = 0; i < VECTOR; i++)
			ids[first + i] = arms[i].id;
	}
	return tw_advance(fd, now_ns);
}

static int cancel_all(int fd, const __u64 *which, int nr, int verdict)
{
	int i, n, first;

	for (first = 0; first < nr; first += n) {
		n = nr - first < VECTOR ? nr - first : VECTOR;
		for (i = 0; i < n; i++)
			cancels[i] = (struct twheel_cancel){ .id = which[first + i] };
		tw_cancel_vec(fd, cancels, n);
		for (i = 0; i < n; i++)
			if (cancels[i].result != verdict)
				return -EIO;
	}
	return 0;
}

/* Wait for the kthread, which begins after a second, and then needs a moment. */
static void settle(void)
{
	tw_sleep(3 * TW_SEC / 2);
}

/* Wait as long as it needs. */
static int settle_quietly(void)
{
	settle();
	return tw_wait_kthreads_quiet();
}

TEST_F_TIMEOUT(burst, burst_that_is_cancelled_leaves_stale_ids_and_what_stays, 120)
{
	struct twheel_status status;
	__u32 round, i, n;

	for (round = 0; round < 5; round++) {
		memcpy(old_ids, ids, sizeof(ids));
		ASSERT_EQ(0, come(self->fd, self->now_ns));
		/* If a place was freed, it begins another generation. */
		for (i = 0; round && i < nr_burst; i++)
			ASSERT_NE(old_ids[i], ids[i]);
		/* The older ids name nothing, whatever timeouts have their places now. */
		if (round)
			ASSERT_EQ(0, cancel_all(self->fd, old_ids, nr_burst, -ENOENT));
		for (i = 0; round && i < nr_burst; i += 7)
			if (old_ids[i] != ~0ULL)
				tw_refresh(self->table, old_ids[i], TW_MS, tw_shift(TW_MS));
		for (i = 0, n = 0; i < nr_burst; i++)
			if (i % STAY)
				ids[n++] = ids[i];
			else if (self->nr_kept < ARRAY_SIZE(kept) && i % (5 * STAY) == 0)
				kept[self->nr_kept++] = ids[i];
			else
				ids[n++] = ids[i];
		ASSERT_EQ(0, cancel_all(self->fd, ids, n, TWHEEL_WAS_PENDING));
		memset(ids + n, 0xff, (nr_burst - n) * sizeof(ids[0]));
		ASSERT_EQ(0, settle_quietly());
		for (i = 0; i < self->nr_kept; i++) {
			ASSERT_EQ(0, tw_query1(self->fd, kept[i], &status));
			EXPECT_EQ(TWHEEL_STATE_PENDING, status.state);
			EXPECT_EQ(0, status.user_data % STAY);
		}
	}
	/* LIST finds those that were kept, across the pages that are gone. */
	EXPECT_EQ(self->nr_kept, tw_list_all(self->fd, rows, VECTOR, 17));
	for (i = 0; i < self->nr_kept; i++)
		tw_refresh(self->table, kept[i], 2 * TW_DAY, tw_shift(TW_MS));
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_DAY - 1));
	EXPECT_NO_EVENT(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_DAY + TW_MS));
	for (i = 0; i < self->nr_kept; i++)
		ASSERT_EQ(1, tw_read(self->fd, &(struct twheel_event){}, 1));
	EXPECT_NO_EVENT(self->fd);
}

TEST_F_TIMEOUT(burst, burst_that_expires_and_is_read_comes_again, 120)
{
	static struct twheel_event events[VECTOR];
	__u32 round, i;
	int n;

	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, come(self->fd, self->now_ns));
		self->now_ns += TW_DAY + VECTOR * TW_MS;
		ASSERT_EQ(0, tw_advance(self->fd, self->now_ns));
		for (i = 0; i < nr_burst; i += n) {
			n = tw_read(self->fd, events, VECTOR);
			ASSERT_LT(0, n);
		}
		EXPECT_NO_EVENT(self->fd);
		ASSERT_EQ(0, settle_quietly());
		ASSERT_EQ(0, cancel_all(self->fd, ids, nr_burst, -ENOENT));
	}
}

/* ---- bursts beside other threads ----------------------------------------- */

static struct {
	int fd;
	bool stop;
	_Atomic long armed, wrong;
} beside;

/* A few timeouts come and go, whose owner must notice nothing. */
static void *arm_beside(void *unused __attribute__((unused)))
{
	__u64 mine[20];
	int i;

	while (!__atomic_load_n(&beside.stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < 20; i++) {
			if (tw_arm_in(beside.fd, TW_DAY + i, &mine[i]))
				beside.wrong++;
			beside.armed++;
		}
		for (i = 0; i < 20; i++)
			if (tw_cancel1(beside.fd, mine[i]) != TWHEEL_WAS_PENDING)
				beside.wrong++;
		for (i = 0; i < 20; i++)
			if (tw_cancel1(beside.fd, mine[i]) != -ENOENT)
				beside.wrong++;
	}
	return NULL;
}

enum { FOUND, STALE, LISTED };

static struct tw_outcome looks[] = {
	[FOUND]		= TW_OUTCOME("QUERY found it", TW_A_FEW),
	[STALE]		= TW_OUTCOME("QUERY said ENOENT", TW_A_FEW),
	[LISTED]	= TW_OUTCOME("rows of LIST", TW_A_FEW),
};

/* Use ids of all ages, most of them stale, and some of pages that are gone. */
static void *look_beside(void *unused __attribute__((unused)))
{
	struct twheel_status status;
	__u64 seed = 5, cursor = 0;
	int ret;

	while (!__atomic_load_n(&beside.stop, __ATOMIC_RELAXED)) {
		ret = tw_query1(beside.fd, ids[tw_random(&seed) % nr_burst], &status);
		tw_saw(&looks[ret ? STALE : FOUND], 1);
		/* An id of the generation before was used before, or never. */
		ret = tw_rearm1(beside.fd, ids[tw_random(&seed) % nr_burst] - (1ULL << 32), 0,
				TW_DAY, TW_SEC);
		if (ret != -ENOENT)
			beside.wrong++;
		ret = tw_list(beside.fd, &cursor, &status, 1);
		if (ret > 0)
			tw_saw(&looks[LISTED], 1);
		else
			cursor = 0;
	}
	return NULL;
}

TEST_F_TIMEOUT(burst, burst_beside_other_threads_disturbs_none, 100)
{
	struct tw_race race = TW_RACE(looks, 0);
	pthread_t threads[2];

	race.usual_rounds = tw_setting("TW_ROUNDS", 20) / 4;
	beside.fd = self->fd;
	beside.stop = false;
	beside.wrong = 0;
	ASSERT_EQ(0, pthread_create(&threads[0], NULL, arm_beside, NULL));
	ASSERT_EQ(0, pthread_create(&threads[1], NULL, look_beside, NULL));
	while (tw_race_goes_on(&race)) {
		EXPECT_EQ(0, come(self->fd, self->now_ns));
		EXPECT_EQ(0, cancel_all(self->fd, ids, nr_burst, TWHEEL_WAS_PENDING));
		settle();
	}
	__atomic_store_n(&beside.stop, true, __ATOMIC_RELAXED);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	EXPECT_EQ(0, beside.wrong);
	EXPECT_LT(0, beside.armed);
	TH_LOG("%ld armed beside the bursts", beside.armed);
	EXPECT_RACE(&race);
}

TEST_HARNESS_MAIN
