// SPDX-License-Identifier: GPL-2.0
/*
 * The module's parameters: each is in force, and a value outside its range is refused, when the
 * module is loaded and later.  (twheel_enospc_module.c tests the limits of memory.)
 *
 * The program loads and unloads the module itself; TWHEEL_KO names the file.
 */
#include "twheel_module.h"
#include "twheel_outside.h"

#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>

FIXTURE(parameters) {
};

FIXTURE_SETUP(parameters)
{
	/* If a test failed, it has left the module. */
	tw_unload_soon();
	ASSERT_NE(0, access(TW_PARAMETERS, F_OK));
}

FIXTURE_TEARDOWN(parameters)
{
	tw_unload_soon();
}

TEST_F(parameters, value_outside_its_range_is_refused_when_loading)
{
	static const char * const bad[] = {
		"max_pending_limit=0", "max_pending_limit=1073741825",
		"max_memory_kb=255", "max_memory_kb=x", "max_user_memory_kb=127",
		"kthreads=65", "kthread_nice=20", "kthread_nice=-21", "kthread_fifo=7",
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, tw_load_and_wait(bad[i]))
			TH_LOG("%s", bad[i]);
		EXPECT_NE(0, access("/sys/module/twheel", F_OK));
	}
}

TEST_F(parameters, both_ends_of_each_range_are_taken)
{
	static const char * const good[] = {
		"max_pending_limit=1 max_memory_kb=256 kthreads=1 kthread_nice=-20",
		"max_pending_limit=1073741824 kthreads=64 kthread_nice=19",
		"kthread_fifo=1",
	};
	struct twheel_event event;
	__u64 id;
	int i, fd;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		ASSERT_EQ(0, tw_load_and_wait(good[i]))
			TH_LOG("%s", good[i]);
		fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, tw_arm_at(fd, TW_MS, &id));
		ASSERT_EQ(0, tw_advance(fd, TW_MS));
		ASSERT_ONE_EVENT(fd, &event, id);
		close(fd);
		ASSERT_EQ(0, tw_unload_soon());
	}
}

/* The header and Documentation/device.rst give these figures. */
TEST_F(parameters, the_defaults_are_those_that_are_documented)
{
	struct twheel_info info;
	__u64 id;
	int fd;

	ASSERT_EQ(0, tw_load_and_wait(""));
	fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TWHEEL_CLOCK_MONOTONIC, info.clock);
	EXPECT_EQ(TW_MS, info.tick_ns);
	EXPECT_EQ(1024, info.slots);
	EXPECT_EQ(1048576, info.max_pending);
	EXPECT_EQ(16777216, info.max_pending_limit);
	EXPECT_EQ(0, info.setup_flags);
	close(fd);
}

/* If a program reads INFO and needs more, the field's name is that of the parameter. */
TEST_F(parameters, max_pending_limit_of_info_is_the_parameter_of_that_name)
{
	struct twheel_info info;
	unsigned int parameter = 0;
	FILE *file;
	int fd;

	ASSERT_EQ(0, tw_load_and_wait(""));
	fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_EQ(0, tw_info(fd, &info));
	close(fd);
	file = fopen(TW_PARAMETERS "/max_pending_limit", "re");
	ASSERT_NE(NULL, file);
	EXPECT_EQ(1, fscanf(file, "%u", &parameter));
	fclose(file);
	EXPECT_EQ(info.max_pending_limit, parameter);
}

TEST_F(parameters, max_pending_limit_bounds_the_max_pending_of_setup)
{
	struct twheel_arm arms[101] = {};
	struct twheel_info info;
	int i, fd;

	ASSERT_EQ(0, tw_load_and_wait("max_pending_limit=100"));
	fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(100, info.max_pending_limit);
	EXPECT_EQ(-EINVAL, tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, 0, 101));
	ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, 0, 100));
	for (i = 0; i < 101; i++)
		arms[i].expires_ns = TW_HOUR;
	EXPECT_EQ(100, tw_arm_vec(fd, arms, 101));
	EXPECT_EQ(-EAGAIN, arms[100].result);
	close(fd);
}

TEST_F(parameters, max_pending_limit_bounds_the_default)
{
	struct twheel_info info;
	int fd;

	ASSERT_EQ(0, tw_load_and_wait("max_pending_limit=100"));
	fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, 0, 0));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(100, info.max_pending);
	close(fd);
}

/* ---- while the module is loaded ------------------------------------------- */

TEST_F(parameters, value_outside_its_range_is_refused_later_and_the_old_one_stays)
{
	static const struct {
		const char *name, *good, *bad[5];
	} limits[] = {
		{ "max_pending_limit", "500", { "0", "-1", "1073741825", "4294967297", "x" } },
		{ "max_memory_kb", "1000", { "255", "1", "-1", "18446744073709551616", "9x" } },
		{ "max_user_memory_kb", "300",
		  { "127", "1", "-1", "18446744073709551616", "400 1" } },
	};
	int i, k;

	ASSERT_EQ(0, tw_load_and_wait(""));
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		ASSERT_EQ(0, tw_write_parameter(limits[i].name, limits[i].good));
		for (k = 0; k < ARRAY_SIZE(limits[i].bad); k++) {
			EXPECT_EQ(-EINVAL, tw_write_parameter(limits[i].name, limits[i].bad[k]))
				TH_LOG("%s of %s", limits[i].name, limits[i].bad[k]);
		}
		EXPECT_EQ(strtoull(limits[i].good, NULL, 10), tw_read_parameter(limits[i].name))
			TH_LOG("%s", limits[i].name);
	}
}

/* If a limit of memory is written as 0, it is the default again. */
TEST_F(parameters, share_of_a_user_is_half_of_all_if_nobody_chose_another)
{
	unsigned long usual;

	ASSERT_EQ(0, tw_load_and_wait("max_user_memory_kb=0"));
	usual = tw_read_parameter("max_memory_kb");
	ASSERT_EQ(0, tw_write_parameter("max_memory_kb", "1000"));
	EXPECT_EQ(1000, tw_read_parameter("max_memory_kb"));
	EXPECT_EQ(500, tw_read_parameter("max_user_memory_kb"));
	ASSERT_EQ(0, tw_write_parameter("max_user_memory_kb", "700"));
	ASSERT_EQ(0, tw_write_parameter("max_memory_kb", "0"));
	EXPECT_EQ(usual, tw_read_parameter("max_memory_kb"));
	EXPECT_EQ(700, tw_read_parameter("max_user_memory_kb"));
	ASSERT_EQ(0, tw_write_parameter("max_user_memory_kb", "0"));
	EXPECT_EQ(usual / 2, tw_read_parameter("max_user_memory_kb"));
}

TEST_F(parameters, max_pending_limit_of_a_loaded_module_is_for_wheels_that_start_later)
{
	struct twheel_arm arms[101] = {};
	struct twheel_info info;
	int i, started, lazy, fd;
	__u64 id;

	ASSERT_EQ(0, tw_load_and_wait("max_pending_limit=100"));
	started = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
	lazy = tw_open(O_NONBLOCK | O_CLOEXEC);
	fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	ASSERT_EQ(0, tw_write_parameter("max_pending_limit", "50"));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(50, info.max_pending_limit);
	EXPECT_EQ(50, info.max_pending);
	EXPECT_EQ(-EINVAL, tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, 0, 51));
	ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, 0, 0));
	ASSERT_EQ(0, tw_arm_in(lazy, TW_HOUR, &id));
	/* These wheels got the limit that was in force, and keep it. */
	ASSERT_EQ(0, tw_write_parameter("max_pending_limit", "200"));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(200, info.max_pending_limit);
	EXPECT_EQ(50, info.max_pending);
	ASSERT_EQ(0, tw_info(lazy, &info));
	EXPECT_EQ(50, info.max_pending);
	/* A wheel keeps a limit that it was given. */
	ASSERT_EQ(0, tw_write_parameter("max_pending_limit", "1"));
	for (i = 0; i < 101; i++)
		arms[i].expires_ns = TW_HOUR;
	EXPECT_EQ(100, tw_arm_vec(started, arms, 101));
	EXPECT_EQ(-EAGAIN, arms[100].result);
	close(started);
	close(lazy);
	close(fd);
}

/* ---- the threads ----------------------------------------------------------- */

TEST_F(parameters, kthreads_is_how_many_threads_there_are)
{
	DIR *proc;
	struct dirent *entry;
	int nr = 0;

	ASSERT_EQ(0, tw_load_and_wait("kthreads=3"));
	proc = opendir("/proc");
	ASSERT_NE(NULL, proc);
	while ((entry = readdir(proc))) {
		char path[300], comm[16] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		nr += fgets(comm, sizeof(comm), file) && !strncmp(comm, "twheel/", 7);
		fclose(file);
	}
	closedir(proc);
	EXPECT_EQ(3, nr);
}

/* Each of the threads has them, as the scheduler shows. */
TEST_F(parameters, kthread_nice_and_kthread_fifo_are_those_of_the_threads)
{
	static const char * const text[] = {
		"kthread_nice=-7 kthreads=2", "kthread_fifo=1 kthreads=2",
	};
	int i, k;

	for (i = 0; i < ARRAY_SIZE(text); i++) {
		ASSERT_EQ(0, tw_load_and_wait(text[i]));
		for (k = 0; k < 2; k++) {
			struct sched_param param = { .sched_priority = -1 };
			char name[16];
			pid_t pid;

			snprintf(name, sizeof(name), "twheel/%d", k);
			pid = tw_thread_named(name);
			ASSERT_LT(0, pid);
			EXPECT_EQ(i ? SCHED_FIFO : SCHED_OTHER, sched_getscheduler(pid));
			EXPECT_EQ(0, sched_getparam(pid, &param));
			EXPECT_EQ(i, param.sched_priority);
			EXPECT_EQ(i ? 0 : -7, getpriority(PRIO_PROCESS, pid));
		}
		ASSERT_EQ(0, tw_unload_soon());
	}
}

/* The limit of all is about a quarter of the machine's memory, and that of a user is half of it. */
TEST_F(parameters, default_limits_of_memory_are_shares_of_the_machine)
{
	unsigned long all, each, machine = sysconf(_SC_PHYS_PAGES) * (sysconf(_SC_PAGESIZE) / 1024);
	FILE *file;

	ASSERT_EQ(0, tw_load_and_wait(""));
	file = fopen(TW_PARAMETERS "/max_memory_kb", "re");
	ASSERT_NE(NULL, file);
	ASSERT_EQ(1, fscanf(file, "%lu", &all));
	fclose(file);
	file = fopen(TW_PARAMETERS "/max_user_memory_kb", "re");
	ASSERT_NE(NULL, file);
	ASSERT_EQ(1, fscanf(file, "%lu", &each));
	fclose(file);
	EXPECT_GE(machine / 4 * 11 / 10, all);
	EXPECT_LE(machine / 4 * 9 / 10, all);
	EXPECT_EQ(all / 2, each);
}

/* Run a program beside this one, and keep its stderr; return its exit status, or -errno. */
static int say(const char *name, char *said, size_t size)
{
	char self[256] = {}, path[320];
	int ends[2], status;
	size_t got = 0;
	ssize_t len;
	pid_t child;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return -errno;
	*strrchr(self, '/') = '\0';
	snprintf(path, sizeof(path), "%s/%s", self, name);
	if (access(path, X_OK) || pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	if (child < 0)
		return -errno;
	if (!child) {
		dup2(ends[1], STDERR_FILENO);
		execl(path, name, NULL);
		_exit(127);
	}
	close(ends[1]);
	while (got < size - 1 && (len = read(ends[0], said + got, size - 1 - got)) > 0)
		got += len;
	said[got] = '\0';
	close(ends[0]);
	if (waitpid(child, &status, 0) != child)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* The wheel has places for two of its three timeouts. */
TEST_F(parameters, example_of_the_readme_names_the_refused_entry_and_the_error)
{
	char said[256];
	int ret;

	ASSERT_EQ(0, tw_load_and_wait("max_pending_limit=2"));
	ret = say("raw-hello", said, sizeof(said));
	if (ret == -ENOENT)
		SKIP(return, "raw-hello is not here");
	EXPECT_EQ(1, ret);
	EXPECT_NE(NULL, strstr(said, "entry 2"))
		TH_LOG("it says %s", said);
	EXPECT_NE(NULL, strstr(said, strerror(EAGAIN)))
		TH_LOG("it says %s", said);
}

TEST_HARNESS_MAIN
