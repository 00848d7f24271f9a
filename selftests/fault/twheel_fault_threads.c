// SPDX-License-Identifier: GPL-2.0
/*
 * The module's threads allocate nothing: they do all their work although each of their allocations
 * and copies would fail.
 */
#include "fault_inject.h"
#include "twheel_module.h"

#define CROWD		8192

FIXTURE(thread) {
	struct fi_module module;
};

FIXTURE_SETUP(thread)
{
	/* Allocations by which the kernel debugs timers are not the module's. */
	static const char * const names[] = {
		"debug_object_init", "debug_object_init_on_stack", "debug_object_activate",
		"debug_object_deactivate", "debug_object_destroy", "debug_object_free",
		"debug_object_assert_init", "debug_object_active_state",
	};
	int ret = fi_open();

	if (ret)
		SKIP(return, "no fault injection with a filter for stacks: %s", strerror(-ret));
	ASSERT_EQ(0, fi_reject(fi_functions(names, ARRAY_SIZE(names))));
	ASSERT_EQ(0, fi_read_module(&self->module, tw_module_path()));
}

FIXTURE_TEARDOWN(thread)
{
	fi_fail_no_more();
}

/* Whether this is a thread of the kernel that may run the module's work items. */
static bool is_kworker(const char *pid)
{
	char path[300], line[64];
	FILE *file;
	bool is;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	is = fgets(line, sizeof(line), file) && !strncmp(line, "kworker/", 8);
	fclose(file);
	return is;
}

/*
 * Let the threads of the module fail whenever they can; return how many there are. Mark kworkers,
 * too: their work for others is not in the filter.
 */
static int mark_threads(bool on)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	__u64 switches;
	int nr = 0;
	bool runs;

	while (proc && (entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		if (is_kworker(entry->d_name))
			fi_mark(entry->d_name, on);
		else if (tw_kthread_read(entry->d_name, &switches, &runs) &&
			 !fi_mark(entry->d_name, on))
			nr++;
	}
	if (proc)
		closedir(proc);
	return nr;
}

/* Return how many pages of a mapping are there. */
static int pages_there(void *table, size_t size)
{
	unsigned char there[64];
	size_t i, nr_pages = size / sysconf(_SC_PAGESIZE);
	int nr = 0;

	if (nr_pages > ARRAY_SIZE(there) || mincore(table, size, there))
		return -1;
	for (i = 0; i < nr_pages; i++)
		nr += there[i] & 1;
	return nr;
}

/*
 * Give a thread each of its tasks: expire more than the softirq may, empty coarse slots, give pages
 * of places back, take pages of the refresh table away.
 */
static void let_them_work(struct __test_metadata *_metadata, const struct twheel_setup *setup)
{
	static struct twheel_arm arms[CROWD];
	static struct twheel_event events[CROWD];
	int i, fd = tw_open_setup(O_NONBLOCK | O_CLOEXEC, setup);
	const size_t size = ARRAY_SIZE(arms) * sizeof(__u64);
	const int nr_pages = size / sysconf(_SC_PAGESIZE);
	const bool settable = setup->clock == TWHEEL_CLOCK_REALTIME;
	__u64 *table, from_ns = settable ? tw_now(CLOCK_REALTIME) : 0;

	ASSERT_LE(0, fd);
	table = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)table);
	for (i = 0; i < (int)ARRAY_SIZE(arms); i++)
		arms[i] = (struct twheel_arm){
			.expires_ns = from_ns + (i % 3 ? TW_HOUR + i * TW_MS :
							 i / 2048 * 100 * TW_MS),
			.interval_ns = i % 5 ? 0 : TW_SEC,
			.flags = (settable ? TWHEEL_ARM_ABSOLUTE : 0) |
				 (i % 10 ? 0 : TWHEEL_ARM_FIXED_DELAY),
		};
	ASSERT_EQ(ARRAY_SIZE(arms), tw_arm_vec(fd, arms, ARRAY_SIZE(arms)));
	for (i = 0; i < (int)ARRAY_SIZE(arms); i++)
		tw_refresh(table, arms[i].id, 0, tw_shift(setup->tick_ns));
	EXPECT_EQ(nr_pages, pages_there(table, size));
	for (i = 0; i < 4 && setup->clock == TWHEEL_CLOCK_VIRTUAL; i++) {
		ASSERT_EQ(0, tw_advance(fd, (i + 1) * TW_SEC));
		ASSERT_LT(0, tw_read(fd, events, ARRAY_SIZE(events) / 2));
	}
	/* Cancel most timeouts, so that more than half of the pages of places become unused. */
	for (i = 0; i < (int)ARRAY_SIZE(arms); i++)
		if (i % 8)
			tw_cancel1(fd, arms[i].id);
	if (setup->clock == TWHEEL_CLOCK_VIRTUAL) {
		ASSERT_EQ(0, tw_advance(fd, TW_HOUR));
	} else {
		ASSERT_LT(0, tw_poll(fd, POLLIN, TW_PATIENCE_MS));
	}
	ASSERT_EQ(0, tw_drain(fd));
	while (tw_read(fd, events, ARRAY_SIZE(events)) > 0)
		;
	EXPECT_ACCOUNTS(fd);
	EXPECT_TRUE(TW_WAIT_FOR(pages_there(table, size) <= nr_pages / 2, 10 * TW_MS));
	munmap(table, size);
	close(fd);
}

/* The callers have allocated all memory that the threads need. */
TEST_F_TIMEOUT(thread, a_thread_of_the_module_allocates_nothing, 100)
{
	static const struct twheel_setup setups[] = {
		{ .clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS },
		{ .clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS, .slots = TWHEEL_SLOTS_MIN },
		{
			.clock = TWHEEL_CLOCK_VIRTUAL, .tick_ns = TW_MS, .slots = 128,
			.flags = TWHEEL_SETUP_ONE_LEVEL
		},
		{ .clock = TWHEEL_CLOCK_MONOTONIC, .tick_ns = TW_MS },
		{ .clock = TWHEEL_CLOCK_REALTIME, .tick_ns = TW_MS },
	};
	__u64 switches;
	int i, nr = tw_kthreads(&switches);

	ASSERT_LT(0, nr);
	ASSERT_EQ(0, fi_filter(FI_ALL, self->module.code));
	ASSERT_EQ(nr, mark_threads(true));
	ASSERT_EQ(0, fi_fail_always());
	for (i = 0; i < (int)ARRAY_SIZE(setups); i++)
		let_them_work(_metadata, &setups[i]);
	EXPECT_EQ(0, fi_fail_no_more())
		TH_LOG("faults in the threads");

	/* If there were a fault, it would show. */
	ASSERT_EQ(0, fi_mark("thread-self", true));
	ASSERT_EQ(0, fi_fail_always());
	EXPECT_EQ(-ENOMEM, tw_open(O_CLOEXEC));
	EXPECT_LT(0, fi_fail_no_more());
	ASSERT_EQ(0, fi_mark("thread-self", false));
	ASSERT_EQ(nr, mark_threads(false));
}

TEST_HARNESS_MAIN
