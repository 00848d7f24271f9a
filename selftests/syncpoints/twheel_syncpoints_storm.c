// SPDX-License-Identifier: GPL-2.0
/*
 * Threads against each other while sync points of the module delay them: all sync points by
 * chance, and each one in turn for a fixed time. The oracle is G3: each timeout that was armed
 * has exactly one outcome, and the counters balance.
 *
 * Two threads arm, each of them first on a wheel that nobody has set up; one cancels and re-arms
 * their timeouts, one reads, and one maps the refresh table and queries timeouts. Bursts that end
 * at once make pages of places come and go.
 */
#include "syncpoints.h"

#include <sys/mman.h>

#define LINES		(1 << 16)
#define BATCH		40
#define BURST		3000

/* The record of a timeout; its user_data is the number of its line. */
struct line {
	_Atomic __u64 id;
	atomic_int outcomes;
};

struct storm {
	int fd;
	atomic_int next;	/* the first line that is not used */
	atomic_int stop;
	atomic_int bad;		/* the line of this file where a thread saw an impossible result */
	atomic_long said;	/* and that result */
	struct line line[LINES];
};

static struct storm *storm;

/* Note the first error, and the result of the call. */
static void note_bad(int line, long said)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&storm->bad, &none, line))
		storm->said = said;
	storm->stop = 1;
}

#define CHECK(holds, said) do {						\
	if (!(holds))							\
		note_bad(__LINE__, said);				\
} while (0)

static void arm_some(__u64 *seed, int nr, __u64 most_ns, int one_periodic_in)
{
	struct twheel_arm arms[BATCH] = {};
	int first = atomic_fetch_add(&storm->next, nr), i, ret;

	if (first + nr > LINES) {
		storm->stop = 1;
		return;
	}
	for (i = 0; i < nr; i++) {
		arms[i].expires_ns = most_ns ? tw_random(seed) % most_ns : TW_HOUR;
		arms[i].user_data = first + i;
		if (tw_random(seed) % one_periodic_in == 0)
			arms[i].interval_ns = TW_MS + tw_random(seed) % TW_MS;
	}
	ret = tw_arm_vec(storm->fd, arms, nr);
	CHECK(ret == nr, ret);
	for (i = 0; i < nr; i++)
		storm->line[first + i].id = arms[i].id;
}

static void cancel_line(struct line *line)
{
	__u64 id = line->id;

	if (id && tw_cancel1(storm->fd, id) > 0)
		CHECK(atomic_fetch_add(&line->outcomes, 1) == 0, id);
}

static void note_events(const struct twheel_event *events, int nr)
{
	int i;

	for (i = 0; i < nr; i++) {
		CHECK(events[i].user_data < LINES, events[i].id);
		/* If a timeout was drained, it need not have expired. */
		CHECK(events[i].count || events[i].flags & TWHEEL_EVENT_DRAINED, events[i].id);
		CHECK(events[i].fired_ns >= events[i].deadline_ns ||
		      events[i].flags & TWHEEL_EVENT_DRAINED, events[i].id);
		if (events[i].flags & TWHEEL_EVENT_ENDED)
			CHECK(atomic_fetch_add(&storm->line[events[i].user_data].outcomes,
					       1) == 0, events[i].id);
	}
}

static void *armer(void *arg)
{
	__u64 seed = (uintptr_t)arg;

	while (!storm->stop)
		arm_some(&seed, 1 + tw_random(&seed) % BATCH, 3 * TW_MS, 4);
	return NULL;
}

/* Also end timeouts that were armed so long ago that few of them are left. */
static void *changer(void *arg)
{
	__u64 seed = (uintptr_t)arg;

	while (!storm->stop) {
		int known = storm->next > LINES ? LINES : storm->next;
		struct line *line = &storm->line[known ? tw_random(&seed) % known : 0];
		__u64 id = line->id;

		if (!id)
			continue;
		if (tw_random(&seed) % 3)
			cancel_line(line);
		else
			tw_rearm1(storm->fd, id, 0, tw_random(&seed) % (4 * TW_MS), 0);
	}
	return NULL;
}

static void *reader(void *arg)
{
	struct twheel_event events[BATCH];
	int nr;

	(void)arg;
	while (!storm->stop) {
		struct pollfd pollfd = { .fd = storm->fd, .events = POLLIN };

		poll(&pollfd, 1, 10);
		nr = tw_read(storm->fd, events, BATCH);
		if (nr > 0)
			note_events(events, nr);
	}
	return NULL;
}

static void *watcher(void *arg)
{
	__u64 seed = (uintptr_t)arg, cursor = 0;
	struct twheel_status rows[BATCH];
	struct twheel_info info;
	void *table;

	while (!storm->stop) {
		table = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED,
			     storm->fd, 0);
		CHECK(table != MAP_FAILED, errno);
		CHECK(tw_list(storm->fd, &cursor, rows, BATCH) >= 0, cursor);
		rows[0].id = storm->line[tw_random(&seed) % LINES].id;
		tw_query1(storm->fd, rows[0].id, &rows[0]);
		CHECK(!tw_info(storm->fd, &info), 0);
		munmap(table, sysconf(_SC_PAGESIZE));
	}
	return NULL;
}

/* Arm a burst, and end it at once. */
static void burst(__u64 *seed)
{
	int i, first = storm->next;

	for (i = 0; i < BURST / BATCH && !storm->stop; i++)
		arm_some(seed, BATCH, 0, 1 << 30);
	for (i = first; i < storm->next && i < LINES; i++)
		cancel_line(&storm->line[i]);
}

FIXTURE(storm) {
	bool unused;
};

FIXTURE_SETUP(storm)
{
	if (syncpoint_say("all", "off"))
		SKIP(return, "a module without sync points");
	storm = mmap(NULL, sizeof(*storm), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)storm);
}

FIXTURE_TEARDOWN(storm)
{
	syncpoint_say("all", "off");
}

/* Use one wheel from its first ARM to its end. */
static void weather(struct __test_metadata *_metadata, __u64 seed, __u64 ns, bool bursts)
{
	void *(*role[])(void *) = { armer, armer, changer, reader, watcher };
	const int nr_roles = ARRAY_SIZE(role);
	__u64 end_ns = tw_now(CLOCK_MONOTONIC) + ns;
	struct twheel_event events[BATCH];
	pthread_t thread[ARRAY_SIZE(role)];
	struct twheel_info info;
	int i, nr;

	memset(storm, 0, sizeof(*storm));
	storm->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, storm->fd);
	for (i = 0; i < nr_roles; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, role[i],
					    (void *)(uintptr_t)(seed + i)));
	while (!storm->stop && tw_now(CLOCK_MONOTONIC) < end_ns) {
		if (bursts)
			burst(&seed);
		tw_sleep(10 * TW_MS);
	}
	storm->stop = 1;
	for (i = 0; i < nr_roles; i++)
		pthread_join(thread[i], NULL);
	ASSERT_EQ(0, storm->bad)
		TH_LOG("a thread saw in line %d what cannot be: %ld", storm->bad, storm->said);
	ASSERT_EQ(0, tw_drain(storm->fd));
	while ((nr = tw_read(storm->fd, events, BATCH)) > 0)
		note_events(events, nr);
	EXPECT_EQ(0, nr);
	EXPECT_EQ(0, storm->bad);
	for (i = 0; i < storm->next && i < LINES; i++) {
		if (storm->line[i].id) {
			ASSERT_EQ(1, storm->line[i].outcomes)
				TH_LOG("timeout %d", i);
		}
	}
	ASSERT_EQ(0, tw_info(storm->fd, &info));
	EXPECT_EQ(0, info.live);
	EXPECT_ACCOUNTS(storm->fd);
	close(storm->fd);
}

TEST_F_TIMEOUT(storm, each_timeout_has_one_outcome_if_all_sync_points_wait, 60)
{
	ASSERT_EQ(0, syncpoint_say("all", "delay 30 20"));
	weather(_metadata, 1, tw_setting("TW_STORM_SECONDS", 4) * TW_SEC, true);
	weather(_metadata, 2, TW_SEC / 2, false);
}

TEST_F_TIMEOUT(storm, each_timeout_has_one_outcome_if_one_sync_point_waits, 100)
{
	struct syncpoint seen;
	char name[64];
	int nr = 0;
	FILE *file = fopen(SYNCPOINTS_FILE, "re");

	ASSERT_NE(NULL, (void *)file);
	while (fscanf(file, "%63s %d %d %d", name, &seen.hits, &seen.inside, &seen.held) == 4) {
		ASSERT_EQ(0, syncpoint_say(name, "delay 300 3"));
		weather(_metadata, 100 + nr++, 150 * TW_MS, false);
		ASSERT_EQ(0, syncpoint_say(name, "off"));
	}
	fclose(file);
	EXPECT_LT(0, nr);
}

TEST_HARNESS_MAIN
