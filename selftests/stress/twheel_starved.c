// SPDX-License-Identifier: GPL-2.0
/*
 * Realtime threads have all processors, so the kthreads get none: the softirq goes on with all
 * that it would leave to them (G2).
 *
 * If the kernel has PREEMPT_RT, only the kthreads expire timeouts, so an administrator who gives
 * all processors to realtime threads has to give the kthreads a higher priority.
 */
#include "twheel_outside.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define WHEELS		8
#define EDGES		50
#define BURST		20000
#define HOGS_MAX	64

/*
 * Priorities of realtime threads: hogs, the kernel's thread for softirqs that take long, and the
 * test.
 */
#define PRIORITY_HOG		20
#define PRIORITY_KSOFTIRQD	30
#define PRIORITY_TEST		40

static pthread_t hogs[HOGS_MAX];
static long nr_hogs;
static atomic_int hogs_may_end, nr_hogs_begun;

static int set_priority(pid_t tid, int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	return sched_setscheduler(tid, priority ? SCHED_FIFO : SCHED_OTHER, &param) ? -errno : 0;
}

/* If a softirq takes long, a thread continues it, which must not wait for the hogs. */
static int set_ksoftirqd(int priority)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int ret = proc ? 0 : -errno;

	while (proc && !ret && (entry = readdir(proc))) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file) && !strncmp(name, "ksoftirqd/", 10))
			ret = set_priority(atoi(entry->d_name), priority);
		fclose(file);
	}
	if (proc)
		closedir(proc);
	return ret;
}

static void *hog(void *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((long)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) || set_priority(0, PRIORITY_HOG))
		return NULL;
	nr_hogs_begun++;
	while (!hogs_may_end)
		;
	return NULL;
}

static void hogs_end(void)
{
	hogs_may_end = 1;
	while (nr_hogs)
		pthread_join(hogs[--nr_hogs], NULL);
	set_priority(0, 0);
	set_ksoftirqd(0);
	tw_let_realtime_starve(false);
}

/* From here on no ordinary thread runs.  Return 0 or -errno. */
static int hogs_begin(void)
{
	int ret = tw_let_realtime_starve(true);

	ret = ret ?: set_ksoftirqd(PRIORITY_KSOFTIRQD);
	ret = ret ?: set_priority(0, PRIORITY_TEST);
	if (ret)
		return ret;
	hogs_may_end = 0;
	nr_hogs_begun = 0;
	for (nr_hogs = 0; nr_hogs < sysconf(_SC_NPROCESSORS_ONLN) && nr_hogs < HOGS_MAX; nr_hogs++)
		if (pthread_create(&hogs[nr_hogs], NULL, hog, (void *)nr_hogs))
			return -errno;
	return TW_WAIT_FOR(nr_hogs_begun == nr_hogs, TW_MS) ? 0 : -ETIMEDOUT;
}

FIXTURE(starved) {
	int fd[WHEELS];
	int nr_read[WHEELS];
};

FIXTURE_SETUP(starved)
{
	int i;

	if (tw_kernel_is_rt())
		SKIP(return, "with PREEMPT_RT the softirq leaves all to the kthreads");
	for (i = 0; i < WHEELS; i++) {
		self->fd[i] = tw_open(O_NONBLOCK);
		ASSERT_LE(0, self->fd[i]);
		ASSERT_EQ(0, tw_setup(self->fd[i], TWHEEL_CLOCK_MONOTONIC, TW_MS, 0));
		self->nr_read[i] = 0;
	}
}

FIXTURE_TEARDOWN(starved)
{
	int i;

	hogs_end();
	for (i = 0; i < WHEELS; i++)
		close(self->fd[i]);
}

/* Read all events.  Return whether each of some wheels had so many events by now. */
static bool all_are_read(struct __test_metadata *_metadata, FIXTURE_DATA(starved) *self,
			 int nr_wheels, int nr)
{
	static struct twheel_event events[1024];
	bool all = true;
	int i, ret;

	for (i = 0; i < nr_wheels; i++) {
		while ((ret = tw_read(self->fd[i], events, 1024)) > 0)
			self->nr_read[i] += ret;
		EXPECT_EQ(-EAGAIN, ret);
		all &= self->nr_read[i] == nr;
	}
	return all;
}

/* The wheels are due at the same edges, which is more than one user's share now and then. */
static void expect_wheels_go_on(struct __test_metadata *_metadata, FIXTURE_DATA(starved) *self,
				int nr_wheels)
{
	__u64 begin_ns = tw_round_up(tw_now(CLOCK_MONOTONIC) + 100 * TW_MS, TW_MS);
	int i, edge, ret;
	__u64 id;
	bool all;

	for (edge = 0; edge < EDGES; edge++)
		for (i = 0; i < nr_wheels; i++)
			ASSERT_EQ(0, tw_arm_at(self->fd[i], begin_ns + edge * 2 * TW_MS, &id));
	ret = hogs_begin();
	all = !ret && TW_WAIT_FOR(all_are_read(_metadata, self, nr_wheels, EDGES), 2 * TW_MS);
	hogs_end();
	EXPECT_EQ(0, ret);
	EXPECT_TRUE(all);
	for (i = 0; i < nr_wheels; i++) {
		EXPECT_EQ(EDGES, self->nr_read[i])
			TH_LOG("wheel %d of %d", i, nr_wheels);
	}
}

TEST_F(starved, one_wheel_goes_on)
{
	expect_wheels_go_on(_metadata, self, 1);
}

TEST_F(starved, two_wheels_of_a_user_go_on)
{
	expect_wheels_go_on(_metadata, self, 2);
}

TEST_F(starved, eight_wheels_of_a_user_go_on)
{
	expect_wheels_go_on(_metadata, self, WHEELS);
}

/* A burst uses the share up, and more than that is left to do. */
TEST_F(starved, a_burst_comes_to_its_end_and_so_does_what_is_due_after_it)
{
	static struct twheel_arm arms[BURST];
	__u64 begin_ns = tw_round_up(tw_now(CLOCK_MONOTONIC) + 300 * TW_MS, TW_MS);
	int i, ret;
	__u64 id;
	bool all;

	for (i = 0; i < BURST; i++)
		arms[i] = (struct twheel_arm){
			.expires_ns = begin_ns,
			.flags = TWHEEL_ARM_ABSOLUTE,
		};
	ASSERT_EQ(BURST, tw_arm_vec(self->fd[0], arms, BURST));
	ASSERT_EQ(0, tw_arm_at(self->fd[0], begin_ns + 100 * TW_MS, &id));
	ret = hogs_begin();
	all = !ret && TW_WAIT_FOR(all_are_read(_metadata, self, 1, BURST + 1), 2 * TW_MS);
	hogs_end();
	EXPECT_EQ(0, ret);
	EXPECT_TRUE(all)
		TH_LOG("%d of %d", self->nr_read[0], BURST + 1);
}

TEST_HARNESS_MAIN
