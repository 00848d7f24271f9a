// SPDX-License-Identifier: GPL-2.0
/*
 * The refresh table's memory: a page of it exists while a timeout has, or may have, its word in it.
 * If a page goes, or comes again, processes that have mapped the table notice nothing.
 */
#include "twheel_outcomes.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define NR		20000
#define VECTOR		500
#define ROUNDS		4

/* Pages of words that this many timeouts need. */
#define PAGES		(NR * sizeof(__u64) / sysconf(_SC_PAGESIZE))

/* The pages that an empty wheel may keep. */
#define PAGES_KEPT	4

/* Return how much of a mapping exists, in pages. */
static long pages_mapped(const void *table)
{
	char line[256], wanted[32];
	FILE *file = fopen("/proc/self/smaps", "re");
	bool ours = false;
	long kb = -1;

	snprintf(wanted, sizeof(wanted), "%lx-", (unsigned long)table);
	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, wanted, strlen(wanted)))
			ours = true;
		if (ours && sscanf(line, "Rss: %ld", &kb) == 1)
			break;
	}
	if (file)
		fclose(file);
	return kb < 0 ? -1 : kb * 1024 / sysconf(_SC_PAGESIZE);
}

struct wheel {
	int fd;
	__u64 *table;
	size_t size;
	__u64 ids[NR];
};

static int wheel_make(struct wheel *wheel)
{
	struct twheel_info info;

	wheel->fd = tw_virtual_for(O_NONBLOCK, NR);
	if (wheel->fd < 0 || tw_info(wheel->fd, &info))
		return -1;
	wheel->size = info.refresh_size;
	wheel->table = mmap(NULL, wheel->size, PROT_READ | PROT_WRITE, MAP_SHARED, wheel->fd, 0);
	return wheel->table == MAP_FAILED ? -1 : 0;
}

static void wheel_unmake(struct wheel *wheel)
{
	munmap(wheel->table, wheel->size);
	close(wheel->fd);
}

static int arm_all(struct wheel *wheel, __u64 deadline_ns)
{
	struct twheel_arm arms[VECTOR];
	int i, j;

	for (i = 0; i < NR; i += VECTOR) {
		for (j = 0; j < VECTOR; j++)
			arms[j] = (struct twheel_arm){
				.expires_ns = deadline_ns, .flags = TWHEEL_ARM_ABSOLUTE,
			};
		if (tw_arm_vec(wheel->fd, arms, VECTOR) != VECTOR)
			return -1;
		for (j = 0; j < VECTOR; j++)
			wheel->ids[i + j] = arms[j].id;
	}
	return 0;
}

static int cancel_all(struct wheel *wheel)
{
	struct twheel_cancel cancels[VECTOR];
	int i, j;

	for (i = 0; i < NR; i += VECTOR) {
		for (j = 0; j < VECTOR; j++)
			cancels[j] = (struct twheel_cancel){ .id = wheel->ids[i + j] };
		if (tw_cancel_vec(wheel->fd, cancels, VECTOR) != VECTOR)
			return -1;
	}
	return 0;
}

/* Return how many deadlines were stored. */
static int refresh_all(struct wheel *wheel, __u64 deadline_ns)
{
	int i, nr = 0;

	for (i = 0; i < NR; i++)
		nr += tw_refresh(wheel->table, wheel->ids[i], deadline_ns, tw_shift(TW_MS));
	return nr;
}

static long wait_until_few_are_mapped(const struct wheel *wheel)
{
	long nr;

	TW_WAIT_FOR((nr = pages_mapped(wheel->table)) <= PAGES_KEPT, 10 * TW_MS);
	return nr;
}

FIXTURE(refresh_pages) {
	__u64 now_ns;
};

static struct wheel wheel, other;

FIXTURE_SETUP(refresh_pages)
{
	ASSERT_EQ(0, wheel_make(&wheel));
	self->now_ns = 0;
}

FIXTURE_TEARDOWN(refresh_pages)
{
	EXPECT_ACCOUNTS(wheel.fd);
	wheel_unmake(&wheel);
}

TEST_F(refresh_pages, pages_go_when_no_timeout_needs_them)
{
	ASSERT_EQ(0, arm_all(&wheel, TW_HOUR));
	ASSERT_EQ(NR, refresh_all(&wheel, 2 * TW_HOUR));
	EXPECT_LE(PAGES, pages_mapped(wheel.table));
	ASSERT_EQ(0, cancel_all(&wheel));
	EXPECT_GE(PAGES_KEPT, wait_until_few_are_mapped(&wheel));
}

/* The page of places has its words in two pages, and no neighbours. */
TEST_F(refresh_pages, pages_of_the_only_timeouts_that_have_words_there_stay)
{
	const __u32 words = sysconf(_SC_PAGESIZE) / sizeof(__u64);
	const __u32 places = (sysconf(_SC_PAGESIZE) - 64) / 48;
	const __u32 first = words / places * places;
	static __u64 ids[NR];
	struct twheel_status status;
	int i, nr = 0;

	ASSERT_LT(first / words, (first + places - 1) / words);
	ASSERT_EQ(0, arm_all(&wheel, TW_HOUR));
	ASSERT_EQ(NR, refresh_all(&wheel, 2 * TW_HOUR));
	/* The pages that became unused last go first: so none before these stays. */
	for (i = NR; i--;) {
		if ((__u32)wheel.ids[i] >= first && (__u32)wheel.ids[i] < first + places)
			ids[nr++] = wheel.ids[i];
		else
			ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(wheel.fd, wheel.ids[i]));
	}
	ASSERT_EQ(places, nr);
	ASSERT_GE(PAGES_KEPT, wait_until_few_are_mapped(&wheel));
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, tw_query1(wheel.fd, ids[i], &status));
		ASSERT_EQ(tw_refreshed_ns(2 * TW_HOUR, tw_shift(TW_MS)), status.deadline_ns)
			TH_LOG("place %u", (__u32)ids[i] - first);
		ASSERT_EQ(1, tw_refresh(wheel.table, ids[i], 3 * TW_HOUR, tw_shift(TW_MS)));
		ASSERT_EQ(0, tw_query1(wheel.fd, ids[i], &status));
		ASSERT_EQ(tw_refreshed_ns(3 * TW_HOUR, tw_shift(TW_MS)), status.deadline_ns);
	}
	ASSERT_EQ(0, tw_advance(wheel.fd, 3 * TW_HOUR - TW_SEC));
	EXPECT_NO_EVENT(wheel.fd);
}

/* If a store is late, it harms nobody: there is no signal, and no other timeout moves. */
TEST_F(refresh_pages, an_id_whose_page_has_gone_is_stale_as_any_other)
{
	__u64 old[NR];
	int i;

	ASSERT_EQ(0, arm_all(&wheel, TW_HOUR));
	ASSERT_EQ(NR, refresh_all(&wheel, 2 * TW_HOUR));
	memcpy(old, wheel.ids, sizeof(old));
	ASSERT_EQ(0, cancel_all(&wheel));
	ASSERT_GE(PAGES_KEPT, wait_until_few_are_mapped(&wheel));
	refresh_all(&wheel, 3 * TW_HOUR);
	/* Store like a program that does not check the result. */
	for (i = 0; i < NR; i++)
		wheel.table[(__u32)old[i]] = 3 * TW_HOUR;
	/* If timeouts come again, none of these stores has an effect. */
	ASSERT_EQ(0, arm_all(&wheel, TW_HOUR));
	EXPECT_EQ(NR, refresh_all(&wheel, 0));
	ASSERT_EQ(0, tw_advance(wheel.fd, TW_HOUR));
	for (i = 0; i < NR / VECTOR; i++) {
		struct twheel_event events[VECTOR];

		ASSERT_EQ(VECTOR, tw_read(wheel.fd, events, VECTOR));
	}
	EXPECT_NO_EVENT(wheel.fd);
}

TEST_F(refresh_pages, pages_of_another_wheel_stay_where_they_are)
{
	long mapped;

	ASSERT_EQ(0, wheel_make(&other));
	ASSERT_EQ(0, arm_all(&other, TW_HOUR));
	ASSERT_EQ(NR, refresh_all(&other, 2 * TW_HOUR));
	mapped = pages_mapped(other.table);
	ASSERT_EQ(0, arm_all(&wheel, TW_HOUR));
	ASSERT_EQ(NR, refresh_all(&wheel, 2 * TW_HOUR));
	ASSERT_EQ(0, cancel_all(&wheel));
	ASSERT_GE(PAGES_KEPT, wait_until_few_are_mapped(&wheel));
	EXPECT_EQ(mapped, pages_mapped(other.table));
	EXPECT_EQ(NR, refresh_all(&other, 3 * TW_HOUR));
	wheel_unmake(&other);
}

/* Make all calls that a process can make on a mapping, or on a file. */
TEST_F(refresh_pages, no_call_on_a_mapping_loses_a_stored_deadline)
{
	static const int mapping_advice[] = {
		MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED,
		MADV_REMOVE, MADV_DONTFORK, MADV_DOFORK, MADV_MERGEABLE, MADV_HUGEPAGE,
		MADV_COLD, MADV_PAGEOUT, MADV_POPULATE_READ, MADV_POPULATE_WRITE,
	};
	static const int file_advice[] = {
		POSIX_FADV_NORMAL, POSIX_FADV_RANDOM, POSIX_FADV_SEQUENTIAL,
		POSIX_FADV_WILLNEED, POSIX_FADV_DONTNEED, POSIX_FADV_NOREUSE,
	};
	size_t size = PAGES * sysconf(_SC_PAGESIZE);
	__u64 word, deadline_ns = TW_HOUR;
	unsigned int i;
	void *moved, *before = wheel.table;
	int memory;

	ASSERT_EQ(0, arm_all(&wheel, TW_HOUR));
	for (i = 0; i < ARRAY_SIZE(mapping_advice); i++) {
		deadline_ns += TW_HOUR;
		ASSERT_EQ(NR, refresh_all(&wheel, deadline_ns));
		/*
		 * Ignore the result. Advise for the whole mapping, or mremap() would find two
		 * mappings.
		 */
		madvise(wheel.table, wheel.size, mapping_advice[i]);
		EXPECT_EQ(twheel_refresh_deadline(deadline_ns, tw_shift(TW_MS)) |
			  (wheel.ids[7] >> 32 & TWHEEL_REFRESH_GEN_MASK),
			  wheel.table[(__u32)wheel.ids[7]])
			TH_LOG("advice %d", mapping_advice[i]);
	}
	for (i = 0; i < ARRAY_SIZE(file_advice); i++)
		posix_fadvise(wheel.fd, 0, 0, file_advice[i]);
	EXPECT_EQ(-1, readahead(wheel.fd, 0, size));
	EXPECT_EQ(-1, fsync(wheel.fd));
	EXPECT_EQ(-1, ftruncate(wheel.fd, 0));
	msync(wheel.table, size, MS_SYNC | MS_INVALIDATE);
	mlock(wheel.table, size);
	munlock(wheel.table, size);
	memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, memory);
	ASSERT_EQ(sizeof(word), pread(memory, &word, sizeof(word),
				      (off_t)&wheel.table[(__u32)wheel.ids[7]]));
	close(memory);
	EXPECT_EQ(wheel.table[(__u32)wheel.ids[7]], word);
	moved = mmap(NULL, wheel.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, moved);
	wheel.table = mremap(before, wheel.size, wheel.size, MREMAP_MAYMOVE | MREMAP_FIXED, moved);
	ASSERT_EQ(moved, (void *)wheel.table);

	/* Pages go, and come again, also at the address to which the mapping was moved. */
	ASSERT_EQ(0, cancel_all(&wheel));
	EXPECT_GE(PAGES_KEPT, wait_until_few_are_mapped(&wheel));
	ASSERT_EQ(0, arm_all(&wheel, TW_HOUR));
	ASSERT_EQ(NR, refresh_all(&wheel, 2 * TW_HOUR));
	ASSERT_EQ(0, tw_advance(wheel.fd, 2 * TW_HOUR - TW_SEC));
	EXPECT_NO_EVENT(wheel.fd);
}

/* ---- pages that other threads touch all the time --------------------------- */

static atomic_bool stop;

/* Write without a change into each page of the table. */
static void *touch(void *arg)
{
	size_t words = sysconf(_SC_PAGESIZE) / sizeof(__u64);
	unsigned int seed = (long)arg;

	while (!atomic_load(&stop)) {
		__u64 *word = &wheel.table[seed % PAGES * words];

		__atomic_fetch_or(word, 0, __ATOMIC_RELAXED);
		seed += 7;
	}
	return NULL;
}

/* Return how often a process here has touched a page that was not mapped. */
static long faults(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) ? -1 : usage.ru_minflt;
}

/*
 * A work item gives pages back after a second, though it also touches pages that it finds. Return
 * whether it did so in time.
 */
static bool pages_went(void)
{
	long before = faults();
	int i;

	for (i = 0; i < 500 && faults() - before < (long)PAGES / 2; i++)
		tw_sleep(10 * TW_MS);
	return i < 500;
}

TEST_F_TIMEOUT(refresh_pages, a_store_counts_however_often_pages_went_and_came, 100)
{
	struct tw_outcome outcomes[] = { TW_OUTCOME("pages went while threads read them", 2) };
	struct tw_race race = TW_RACE(outcomes, 0);
	pthread_t threads[2];
	struct twheel_event event;
	long i;

	/* This makes all pages, so that there is no number beyond the end. */
	ASSERT_EQ(0, arm_all(&wheel, TW_HOUR));
	/* This touches each page once. */
	ASSERT_EQ(NR, refresh_all(&wheel, TW_HOUR));
	ASSERT_EQ(0, cancel_all(&wheel));
	atomic_store(&stop, false);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, touch, (void *)(3 * i)));
	race.usual_rounds = ROUNDS;
	while (tw_race_goes_on(&race)) {
		__u64 id;

		tw_saw(&outcomes[0], pages_went());
		self->now_ns += TW_MIN;
		ASSERT_EQ(0, arm_all(&wheel, self->now_ns));
		ASSERT_EQ(NR, refresh_all(&wheel, self->now_ns + TW_HOUR));
		ASSERT_EQ(0, tw_advance(wheel.fd, self->now_ns + TW_SEC));
		EXPECT_NO_EVENT(wheel.fd);
		ASSERT_EQ(0, cancel_all(&wheel));
		/* Check that it is not because nothing expires. */
		ASSERT_EQ(0, tw_arm_in(wheel.fd, TW_MS, &id));
		self->now_ns += 2 * TW_SEC;
		ASSERT_EQ(0, tw_advance(wheel.fd, self->now_ns));
		ASSERT_ONE_EVENT(wheel.fd, &event, id);
	}
	atomic_store(&stop, true);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	EXPECT_RACE(&race);
}

TEST_HARNESS_MAIN
