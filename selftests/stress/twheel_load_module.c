// SPDX-License-Identifier: GPL-2.0
/*
 * Loading and unloading: busy while a wheel is open, and a hundred times under
 * load without leaving anything behind.
 *
 * The program loads and unloads the module itself.  TWHEEL_KO names the file,
 * TW_ROUNDS the number of rounds.  When it ends, the module is loaded.
 */
#include "twheel_module.h"
#include "twheel_outside.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define WHEELS		8
#define TIMEOUTS	1000

/*
 * Return how many names in a directory begin so. Links do not count: if a slab cache has shared its
 * slabs with others, its name stays behind as a link.
 */
static int count_names(const char *path, const char *start)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int nr = 0;

	while (dir && (entry = readdir(dir)))
		nr += entry->d_type != DT_LNK && !strncmp(entry->d_name, start, strlen(start));
	if (dir)
		closedir(dir);
	return nr;
}

/* A slab cache may go only after a grace period of RCU. */
static int count_caches(void)
{
	int nr;

	TW_WAIT_FOR(!(nr = count_names("/sys/kernel/slab", "twheel")), TW_MS);
	return nr;
}

static bool slabinfo_has(const char *start)
{
	FILE *file = fopen("/proc/slabinfo", "re");
	char line[512];
	bool found = false;

	while (file && fgets(line, sizeof(line), file))
		found |= !strncmp(line, start, strlen(start));
	if (file)
		fclose(file);
	return found;
}

FIXTURE(load) {
};

FIXTURE_SETUP(load)
{
	if (access(tw_module_path(), R_OK))
		SKIP(return, "no %s: set TWHEEL_KO", tw_module_path());
	if (!tw_is_loaded())
		ASSERT_EQ(0, tw_load_and_wait(""));
}

FIXTURE_TEARDOWN(load)
{
	if (!tw_is_loaded())
		EXPECT_EQ(0, tw_load_and_wait(""));
}

TEST_F(load, unloading_with_a_wheel_open_says_ewouldblock)
{
	int fd = tw_open(O_CLOEXEC);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EWOULDBLOCK, tw_unload());
	close(fd);
}

TEST_F(load, a_wheel_goes_on_after_unloading_was_refused)
{
	int fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
	struct twheel_event event;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_MS, &id));
	ASSERT_EQ(-EWOULDBLOCK, tw_unload());
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	ASSERT_ONE_EVENT(fd, &event, id);
	close(fd);
}

TEST_F(load, unloading_after_the_last_close_takes_everything_away)
{
	int fd = tw_open(O_CLOEXEC);
	__u64 id, switches;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	close(fd);
	ASSERT_EQ(0, tw_unload());
	EXPECT_FALSE(tw_is_loaded());
	EXPECT_EQ(-ENOENT, tw_open(O_CLOEXEC));
	EXPECT_EQ(0, tw_kthreads(&switches));
	EXPECT_EQ(0, count_caches());
	EXPECT_FALSE(slabinfo_has("twheel"));
	EXPECT_EQ(0, count_names("/sys/class/misc", "twheel"));
	EXPECT_EQ(0, count_names("/sys/kernel/debug", "twheel"));
}

TEST_F(load, a_module_never_used_can_be_unloaded)
{
	ASSERT_EQ(0, tw_unload());
	ASSERT_EQ(0, tw_load_and_wait(""));
	EXPECT_EQ(0, tw_unload());
}

/* ---- many rounds --------------------------------------------------------- */

/* Do every kind of work at once: near and far, periodic, read, cancelled, drained. */
static int work(void)
{
	static struct twheel_arm arms[TIMEOUTS];
	static struct twheel_event events[TIMEOUTS];
	int i, j, fds[WHEELS];

	for (i = 0; i < WHEELS; i++) {
		fds[i] = tw_open(O_NONBLOCK | O_CLOEXEC);
		if (fds[i] < 0)
			return fds[i];
		for (j = 0; j < TIMEOUTS; j++)
			arms[j] = (struct twheel_arm){
				.expires_ns = j % 3 ? j % 10 * TW_MS : TW_HOUR,
				.interval_ns = j % 5 ? 0 : TW_MS,
			};
		if (tw_arm_vec(fds[i], arms, TIMEOUTS) != TIMEOUTS)
			return -EIO;
	}
	for (i = 0; i < WHEELS; i++) {
		if (i % 3 == 1)
			tw_read(fds[i], events, TIMEOUTS);
		if (i % 3 == 2)
			tw_drain(fds[i]);
		for (j = 0; j < TIMEOUTS; j += 7)
			tw_cancel1(fds[i], arms[j].id);
		close(fds[i]);
	}
	return 0;
}

/* How often the hammer below opened the device, and how often there was none. */
static struct door {
	atomic_long opened;
	atomic_long gone;
} *door;

/*
 * Open, arm and close without end, whether the module is there or not.  The device is open for less
 * than half of the time, so that an unload soon wins, even if the kernel is slow.
 */
static pid_t spawn_hammer(void)
{
	pid_t child = fork();
	__u64 id;

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		__u64 from_ns = tw_now(CLOCK_MONOTONIC);
		int fd = tw_open(O_NONBLOCK | O_CLOEXEC);

		if (fd >= 0) {
			atomic_fetch_add(&door->opened, 1);
			tw_arm_in(fd, TW_MS, &id);
			close(fd);
		} else {
			atomic_fetch_add(&door->gone, 1);
		}
		tw_sleep(TW_MS + (tw_now(CLOCK_MONOTONIC) - from_ns));
	}
}

/* Kill a process with a wheel full of timeouts by SIGKILL. */
static int kill_a_holder(void)
{
	pid_t child = fork();

	if (!child) {
		int fd = tw_open(O_CLOEXEC);
		__u64 id;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		tw_arm_in(fd, TW_HOUR, &id);
		for (;;)
			pause();
	}
	if (child < 0 || tw_wait_asleep(child))
		return -EIO;
	kill(child, SIGKILL);
	return tw_reap(child) == 128 + SIGKILL ? 0 : -EIO;
}

/*
 * Kernel memory that a leak would show in, kB. Slabs are left out if the kernel notes allocations
 * and keeps freed memory for a while: it has more slabs whatever is done, and kmemleak finds leaks
 * there.
 */
static long kernel_kb(void)
{
	static const char * const keys[] = {
		"VmallocUsed:", "KernelStack:", "PageTables:", "Percpu:", "Slab:",
	};
	size_t nr_keys = ARRAY_SIZE(keys) - tw_kernel_notes_allocations();
	FILE *file;
	char key[64];
	long sum = 0, kb;
	size_t i;

	/* Drop the caches of pages and inodes, and give RCU and work items a moment. */
	file = fopen("/proc/sys/vm/drop_caches", "we");
	if (file) {
		fputs("3\n", file);
		fclose(file);
	}
	tw_sleep(500 * TW_MS);
	file = fopen("/proc/meminfo", "re");
	while (file && fscanf(file, "%63s %ld%*[^\n]", key, &kb) == 2)
		for (i = 0; i < nr_keys; i++)
			if (!strcmp(key, keys[i]))
				sum += kb;
	if (file)
		fclose(file);
	return sum;
}

/* Make rounds while the hammer runs all the time; return the kernel memory after them, kB. */
static long rounds(struct __test_metadata *_metadata, int nr)
{
	pid_t hammer = spawn_hammer();
	__u64 switches;

	ASSERT_LT(0, hammer);
	while (nr--) {
		ASSERT_EQ(0, tw_unload_soon());
		ASSERT_EQ(0, tw_kthreads(&switches));
		ASSERT_EQ(0, tw_load_and_wait(""));
		ASSERT_EQ(0, kill_a_holder());
		ASSERT_EQ(0, work());
	}
	kill(hammer, SIGKILL);
	tw_reap(hammer);
	return kernel_kb();
}

TEST_F_TIMEOUT(load, a_hundred_rounds_under_load_leave_nothing, 115)
{
	int nr = tw_setting("TW_ROUNDS", 100), tries = 0;
	long before, after;

	door = mmap(NULL, sizeof(*door), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)door);
	/* The first rounds fill caches that stay. */
	before = rounds(_metadata, nr / 10 + 1);
	after = rounds(_metadata, nr);
	/* RCU and work items may take their time to finish the last round. */
	while (after >= before + 4 * nr && ++tries < 20)
		after = kernel_kb();
	TH_LOG("kernel memory: %ld kB before, %ld kB after %d rounds", before, after, nr);
	TH_LOG("opened %ld times beside them, and %ld times in vain", atomic_load(&door->opened),
	       atomic_load(&door->gone));
	EXPECT_LT(0, atomic_load(&door->opened));
	EXPECT_LT(0, atomic_load(&door->gone));
	/* A round may lose less than a page. */
	EXPECT_GT(before + 4 * nr, after);
}

TEST_HARNESS_MAIN
