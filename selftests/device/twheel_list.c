// SPDX-License-Identifier: GPL-2.0
/*
 * LIST: all timeouts of a wheel, each once, however many rows a call asks for and whatever
 * happens between the calls.
 */
#include "twheel_chance.h"

#include <pthread.h>

#include <sys/mman.h>

FIXTURE(list) {
	int fd;
};

FIXTURE_SETUP(list)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(list)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

TEST_F(list, a_list_of_an_empty_wheel_is_at_its_end)
{
	struct twheel_status row;
	__u64 cursor = 0;

	EXPECT_EQ(0, tw_list(self->fd, &cursor, &row, 1));
}

TEST_F(list, a_list_of_a_wheel_that_was_never_set_up_is_at_its_end)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_status row;
	__u64 cursor = 0;

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, tw_list(fd, &cursor, &row, 1));
	close(fd);
}

TEST_F(list, row_is_what_query_says)
{
	struct twheel_status rows[TW_KINDS], status;
	__u64 ids[TW_KINDS];
	int i;

	tw_arm_each_kind(_metadata, self->fd, ids);
	ASSERT_EQ(TW_KINDS, tw_list_all(self->fd, rows, TW_KINDS, TW_KINDS));
	for (i = 0; i < TW_KINDS; i++) {
		ASSERT_EQ(0, tw_query1(self->fd, rows[i].id, &status));
		EXPECT_EQ(0, memcmp(&status, &rows[i], sizeof(status)))
			TH_LOG("row %d, timeout %llu", i, rows[i].user_data);
	}
}

TEST_F(list, list_does_not_show_ended_timeouts)
{
	struct twheel_event event;
	struct twheel_status row;
	__u64 delivered, cancelled, left;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &delivered));
	ASSERT_EQ(0, tw_arm_at(self->fd, TW_SEC, &cancelled));
	ASSERT_EQ(0, tw_arm_at(self->fd, TW_SEC, &left));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, delivered);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, cancelled));
	ASSERT_EQ(1, tw_list_all(self->fd, &row, 1, 1));
	EXPECT_EQ(left, row.id);
}

#define CROWD	3000

static void arm_crowd(struct __test_metadata *_metadata, int fd, __u64 *ids)
{
	struct twheel_arm *arms = calloc(CROWD, sizeof(*arms));
	__u64 seed = 7;
	int i, done;

	ASSERT_NE(NULL, arms);
	for (i = 0; i < CROWD; i++) {
		arms[i].expires_ns = TW_SEC + tw_random(&seed) * TW_US;
		arms[i].user_data = i;
	}
	for (done = 0; done < CROWD; done += 1000) {
		ASSERT_EQ(1000, tw_arm_vec(fd, &arms[done], 1000));
	}
	for (i = 0; i < CROWD; i++)
		ids[i] = arms[i].id;
	free(arms);
}

TEST_F(list, list_shows_thousands_once_each_whatever_the_step)
{
	static struct twheel_status rows[CROWD];
	const int steps[] = { 1, 7, 64, 1000 };
	__u64 ids[CROWD];
	int i, k;

	arm_crowd(_metadata, self->fd, ids);
	for (k = 0; k < ARRAY_SIZE(steps); k++) {
		bool seen[CROWD] = {};

		ASSERT_EQ(CROWD, tw_list_all(self->fd, rows, CROWD, steps[k]))
			TH_LOG("%d rows at a time", steps[k]);
		for (i = 0; i < CROWD; i++) {
			__u64 who = rows[i].user_data;

			ASSERT_TRUE(who < CROWD && !seen[who]);
			seen[who] = true;
			ASSERT_EQ(ids[who], rows[i].id);
		}
	}
}

/* Only rows that exist are written, so two rows have enough space. */
TEST_F(list, list_takes_as_many_rows_as_a_vector_may_have_and_no_more)
{
	struct twheel_status rows[2];
	struct twheel_list list = {
		.size = sizeof(list), .entry_size = sizeof(rows[0]),
		.entries = (uintptr_t)rows,
	};
	struct twheel_info info;
	__u64 id;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &id));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	list.nr = info.max_vector;
	EXPECT_EQ(1, tw_ioctl(self->fd, TWHEEL_IOC_LIST, &list));
	EXPECT_EQ(id, rows[0].id);
	list.cursor = 0;
	list.nr = info.max_vector + 1;
	EXPECT_EQ(-E2BIG, tw_ioctl(self->fd, TWHEEL_IOC_LIST, &list));
	EXPECT_EQ(0, list.cursor);
}

TEST_F(list, a_list_at_its_end_stays_there)
{
	struct twheel_status rows[2];
	__u64 cursor = 0, id;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_SEC, &id));
	ASSERT_EQ(1, tw_list(self->fd, &cursor, rows, 2));
	EXPECT_EQ(0, tw_list(self->fd, &cursor, rows, 2));
	EXPECT_EQ(0, tw_list(self->fd, &cursor, rows, 2));
}

/* Each bit of a cursor counts. */
TEST_F(list, cursor_beyond_the_last_place_is_at_the_end)
{
	struct twheel_status row;
	__u64 cursor, id;
	int bit;

	ASSERT_EQ(0, tw_arm_at(self->fd, TW_SEC, &id));
	for (bit = 16; bit < 64; bit++) {
		cursor = 1ULL << bit;
		EXPECT_EQ(0, tw_list(self->fd, &cursor, &row, 1))
			TH_LOG("bit %d", bit);
	}
	cursor = ~0ULL;
	EXPECT_EQ(0, tw_list(self->fd, &cursor, &row, 1));
	cursor = (__u32)id;
	EXPECT_EQ(1, tw_list(self->fd, &cursor, &row, 1));
	EXPECT_EQ(id, row.id);
	cursor = (__u32)id + 1;
	EXPECT_EQ(0, tw_list(self->fd, &cursor, &row, 1));
}

TEST_F(list, list_does_not_write_beyond_the_rows_it_returns)
{
	struct twheel_status rows[4], poison;
	__u64 cursor = 0, id;

	memset(&poison, TW_POISON, sizeof(poison));
	ASSERT_EQ(0, tw_arm_at(self->fd, TW_SEC, &id));
	ASSERT_EQ(1, tw_list(self->fd, &cursor, rows, 4));
	EXPECT_EQ(0, memcmp(&poison, &rows[1], sizeof(poison)));
}

/* The rows that it wrote are right, and the walk begins again. */
TEST_F(list, a_list_whose_cursor_cannot_be_written_says_efault)
{
	struct twheel_status rows[2], expected;
	size_t page = sysconf(_SC_PAGESIZE);
	struct twheel_list *list = mmap(NULL, page, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__u64 id, cursor = 0;

	ASSERT_NE(MAP_FAILED, (void *)list);
	ASSERT_EQ(0, tw_arm_at(self->fd, TW_SEC, &id));
	ASSERT_EQ(1, tw_list(self->fd, &cursor, &expected, 1));
	*list = (struct twheel_list){
		.size = sizeof(*list), .entry_size = sizeof(rows[0]), .nr = 2,
		.entries = (uintptr_t)rows,
	};
	ASSERT_EQ(0, mprotect(list, page, PROT_READ));
	memset(rows, TW_POISON, sizeof(rows));
	EXPECT_EQ(-EFAULT, tw_ioctl(self->fd, TWHEEL_IOC_LIST, list));
	EXPECT_EQ(0, memcmp(&expected, &rows[0], sizeof(expected)));
	EXPECT_EQ(0, list->cursor);
	munmap(list, page);
}

/* Between the steps of a walk a third is cancelled, a third is re-armed, and new ones are armed. */
TEST_F(list, list_shows_untouched_timeouts_exactly_once_beside_changes)
{
	__u64 ids[CROWD], cursor = 0, id, next = 0;
	static unsigned char seen[CROWD];
	struct twheel_status rows[50];
	int i, nr;

	arm_crowd(_metadata, self->fd, ids);
	while ((nr = tw_list(self->fd, &cursor, rows, 50)) > 0) {
		for (i = 0; i < nr; i++) {
			if (rows[i].user_data < CROWD)
				seen[rows[i].user_data]++;
		}
		for (i = 0; i < 60 && next < CROWD; i++, next++) {
			if (next % 3 == 1) {
				ASSERT_LT(0, tw_cancel1(self->fd, ids[next]));
			}
			if (next % 3 == 2) {
				ASSERT_LT(0, tw_rearm1(self->fd, ids[next], 0, TW_HOUR + next, 0));
			}
		}
		/* If a wheel grows as fast as the walk, it must not keep it going for ever. */
		if (next < CROWD) {
			ASSERT_EQ(0, tw_arm1(self->fd, 0, TW_DAY, 0, CROWD, &id));
		}
	}
	ASSERT_EQ(0, nr);
	for (i = 0; i < CROWD; i++) {
		if (i % 3 == 0) {
			EXPECT_EQ(1, seen[i])
				TH_LOG("timeout %d, which nobody touched", i);
		}
		if (i % 3 == 2) {
			EXPECT_LE(1, seen[i])
				TH_LOG("timeout %d, which was re-armed", i);
		}
	}
}

/* Timeouts that pend in one wheel are armed in another one, with the same parameters. */
TEST_F(list, list_shows_all_that_is_needed_to_arm_again_elsewhere)
{
	struct twheel_arm arms[] = {
		{ .expires_ns = TW_SEC + 1, .user_data = 1 },
		{ .expires_ns = TWHEEL_TIME_NEVER, .user_data = 2 },
		{ .expires_ns = TW_SEC, .slack_ticks = 100, .user_data = 3 },
		{ .expires_ns = 5 * TW_MS, .interval_ns = 6 * TW_MS, .user_data = 4 },
		{
			.expires_ns = 5 * TW_MS, .interval_ns = 7 * TW_MS + 1, .repeats = 9,
			.flags = TWHEEL_ARM_FIXED_DELAY, .slack_ticks = 3, .user_data = 5,
		},
	};
	struct twheel_status rows[ARRAY_SIZE(arms)], copies[ARRAY_SIZE(arms)];
	struct twheel_arm again[ARRAY_SIZE(arms)] = {};
	struct twheel_event events[2];
	unsigned int i;
	int fd;

	ASSERT_EQ(ARRAY_SIZE(arms), tw_arm_vec(self->fd, arms, ARRAY_SIZE(arms)));
	ASSERT_EQ(0, tw_advance(self->fd, 9 * TW_MS));
	ASSERT_EQ(2, tw_read(self->fd, events, 2));
	ASSERT_EQ(ARRAY_SIZE(arms), tw_list_all(self->fd, rows, ARRAY_SIZE(arms), 2));

	fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_advance(fd, 9 * TW_MS));
	for (i = 0; i < ARRAY_SIZE(arms); i++) {
		ASSERT_EQ(TWHEEL_STATE_PENDING, rows[i].state);
		again[i].expires_ns = rows[i].deadline_ns;
		again[i].interval_ns = rows[i].interval_ns;
		again[i].user_data = rows[i].user_data;
		again[i].flags = TWHEEL_ARM_ABSOLUTE | rows[i].flags;
		again[i].repeats = rows[i].repeats_left;
		again[i].slack_ticks = rows[i].slack_ticks;
	}
	ASSERT_EQ(ARRAY_SIZE(arms), tw_arm_vec(fd, again, ARRAY_SIZE(arms)));
	ASSERT_EQ(ARRAY_SIZE(arms), tw_list_all(fd, copies, ARRAY_SIZE(arms), 2));
	for (i = 0; i < ARRAY_SIZE(arms); i++) {
		copies[i].id = rows[i].id;
		copies[i].deliveries = rows[i].deliveries;
		EXPECT_EQ(0, memcmp(&rows[i], &copies[i], sizeof(rows[i])))
			TH_LOG("timeout %llu", rows[i].user_data);
	}
	close(fd);
}

/* The number of changes that LIST reports, or -errno. */
static __s64 changes_of(int fd)
{
	struct twheel_status row;
	struct twheel_list list = {
		.size = sizeof(list), .entry_size = sizeof(row), .nr = 1,
		.entries = (uintptr_t)&row, .changes = 12345,
	};
	int ret = tw_ioctl(fd, TWHEEL_IOC_LIST, &list);

	return ret < 0 ? ret : (__s64)list.changes;
}

TEST_F(list, list_counts_changes_and_nothing_else)
{
	struct twheel_arm arms[3] = {
		{ .expires_ns = TW_MS }, { .expires_ns = TW_MS, .repeats = 7 },
		{ .expires_ns = TW_MS, .interval_ns = TW_MS },
	};
	struct twheel_cancel cancels[2] = {};
	struct twheel_status status;
	struct twheel_event events[2];
	struct twheel_info info;

	EXPECT_EQ(0, changes_of(self->fd));
	/* The second one has no interval, so it is refused. */
	ASSERT_EQ(2, tw_arm_vec(self->fd, arms, 3));
	EXPECT_EQ(2, changes_of(self->fd));
	ASSERT_EQ(0, tw_query1(self->fd, arms[0].id, &status));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(2, info.changes);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, arms[0].id, 0, 2 * TW_MS, 0));
	EXPECT_EQ(3, changes_of(self->fd));
	EXPECT_EQ(-ENOENT, tw_rearm1(self->fd, arms[0].id + (1ULL << 32), 0, 2 * TW_MS, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 3 * TW_MS));
	EXPECT_EQ(3, changes_of(self->fd));
	ASSERT_EQ(2, tw_read(self->fd, events, 2));
	EXPECT_EQ(5, changes_of(self->fd));
	ASSERT_EQ(0, tw_advance(self->fd, 4 * TW_MS));
	cancels[0].id = arms[0].id;
	cancels[1].id = arms[2].id;
	/* The first has ended; an event of the second is revoked. */
	ASSERT_EQ(1, tw_cancel_vec(self->fd, cancels, 2));
	EXPECT_EQ(6, changes_of(self->fd));
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(6, changes_of(self->fd));
}

/*
 * A copy of a wheel that changes all the time. It is made by a walk in small steps, and by the log
 * of each thread that changes the wheel, from the number that the first step reported.
 */
#define COPIED		2000
#define LOGGED		60000

struct logged {
	__u64 id;
	__u64 deadline_ns;	/* 0: it has ended */
};

static struct {
	int fd;
	__u64 seed;
	struct logged log[LOGGED];
	_Atomic int nr;
	_Atomic int failed;
	pthread_mutex_t mutex;
} writer = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static void writer_log(__u64 id, __u64 deadline_ns)
{
	writer.log[writer.nr].id = id;
	writer.log[writer.nr].deadline_ns = deadline_ns;
	writer.nr++;
}

/* If *id is 0, arm a timeout; otherwise move or cancel it. */
static void writer_change(__u64 *id)
{
	__u64 deadline_ns = TW_HOUR + tw_random(&writer.seed) % TW_HOUR;
	int ret;

	if (!*id) {
		ret = tw_arm1(writer.fd, TWHEEL_ARM_ABSOLUTE, deadline_ns, 0, 0, id);
		writer_log(*id, deadline_ns);
		writer.failed += ret != 0;
	} else if (tw_random(&writer.seed) % 3) {
		ret = tw_rearm1(writer.fd, *id, TWHEEL_ARM_ABSOLUTE, deadline_ns, 0);
		writer_log(*id, deadline_ns);
		writer.failed += ret < 0;
	} else {
		ret = tw_cancel1(writer.fd, *id);
		writer_log(*id, 0);
		*id = 0;
		writer.failed += ret < 0;
	}
}

/* If the log is full, return false. */
static bool writer_step(__u64 *id)
{
	bool room;

	pthread_mutex_lock(&writer.mutex);
	room = writer.nr < LOGGED;
	if (room)
		writer_change(id);
	pthread_mutex_unlock(&writer.mutex);
	return room;
}

/* The order of the log is that of the mutex, and not of one thread. */
static void *writer_run(void *ids)
{
	__u64 *id = ids;
	__u64 chance = (uintptr_t)ids;

	while (writer_step(&id[tw_random(&chance) % (COPIED / 2)]))
		;
	return NULL;
}

/* The timeout at a place: the last row or record of the log counts. */
#define PLACES	(2 * COPIED)

struct copy {
	__s64 changes;
	struct logged at[PLACES];
};

static void copy_put(struct copy *copy, __u64 id, __u64 deadline_ns)
{
	if ((__u32)id < PLACES)
		copy->at[(__u32)id] = (struct logged){ deadline_ns ? id : 0, deadline_ns };
	else
		writer.failed++;
}

/*
 * Copy the wheel by a walk; between its steps, this thread changes something, too. Return 0, or
 * -errno.
 */
static int copy_take(int fd, struct copy *copy, __u32 step)
{
	static struct twheel_status rows[PLACES];
	static __u64 ids[16];
	struct twheel_list list = {
		.size = sizeof(list), .entry_size = sizeof(rows[0]), .nr = step,
		.entries = (uintptr_t)rows,
	};
	int i, nr;

	memset(copy, 0, sizeof(*copy));
	copy->changes = -1;
	while ((nr = tw_ioctl(fd, TWHEEL_IOC_LIST, &list)) > 0) {
		if (copy->changes < 0)
			copy->changes = list.changes;
		for (i = 0; i < nr; i++)
			copy_put(copy, rows[i].id, rows[i].deadline_ns);
		writer_step(&ids[i % ARRAY_SIZE(ids)]);
	}
	return nr;
}

TEST_F(list, walk_and_the_log_from_its_number_on_are_an_exact_copy)
{
	static __u64 ids[2][COPIED / 2];
	static struct copy copies[8], end;
	int i, k, nr_early = 0;
	pthread_t threads[2];

	writer.fd = self->fd;
	seed_begin(_metadata);
	writer.seed = seed;
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, writer_run, ids[i]));
	}
	for (i = 0; i < ARRAY_SIZE(copies); i++) {
		while (writer.nr < (i + 1) * LOGGED / 10)
			sched_yield();
		EXPECT_EQ(0, copy_take(self->fd, &copies[i], i % 2 ? 16 : PLACES));
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(0, copy_take(self->fd, &end, PLACES));
	EXPECT_EQ(LOGGED, end.changes);
	for (i = 0; i < ARRAY_SIZE(copies); i++) {
		/* If the machine is busy, the writers may have ended before the last ones. */
		nr_early += !!memcmp(end.at, copies[i].at, sizeof(end.at));
		for (k = copies[i].changes; k < writer.nr; k++)
			copy_put(&copies[i], writer.log[k].id, writer.log[k].deadline_ns);
		EXPECT_EQ(0, memcmp(end.at, copies[i].at, sizeof(end.at)))
			TH_LOG("copy %d, from change %lld on", i, copies[i].changes);
	}
	EXPECT_LT(0, nr_early);
	EXPECT_EQ(0, writer.failed);
}

TEST_HARNESS_MAIN
