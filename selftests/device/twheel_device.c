// SPDX-License-Identifier: GPL-2.0
/*
 * The device node and the module's parameters, as they are by default: for root alone until an
 * administrator opens them.
 */
#include "twheel_test.h"

#include <dirent.h>
#include <sys/klog.h>

#define NOBODY	65534

#define KLOG_READ_ALL	3
#define KLOG_SIZE	(8 << 20)

/* One number from the parameters; -1 if the parameter does not exist. */
static long long parameter(const char *name)
{
	char path[128], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), TW_PARAMETERS "/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return atoll(text);
}

TEST(device_is_a_character_device_for_root_alone)
{
	struct stat st;

	ASSERT_EQ(0, stat(TW_DEVICE, &st));
	EXPECT_TRUE(S_ISCHR(st.st_mode));
	EXPECT_EQ(0600, st.st_mode & 07777);
	EXPECT_EQ(0, st.st_uid);
	EXPECT_EQ(0, st.st_gid);
}

TEST(user_without_privilege_cannot_open_it)
{
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		if (setgid(NOBODY) || setuid(NOBODY))
			_exit(2);
		_exit(tw_open(O_NONBLOCK) == -EACCES ? 0 : 1);
	}
	EXPECT_EQ(0, tw_reap(pid));
}

/* If a user was given the descriptor, this user may use the whole wheel. */
TEST(user_without_privilege_can_use_a_wheel_that_was_opened_for_him)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_event event;
	__u64 id;
	pid_t pid;

	ASSERT_LE(0, fd);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (setgid(NOBODY) || setuid(NOBODY))
			_exit(2);
		if (tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 100) || tw_arm_at(fd, TW_MS, &id))
			_exit(3);
		if (tw_advance(fd, TW_MS) || tw_read(fd, &event, 1) != 1)
			_exit(4);
		_exit(0);
	}
	EXPECT_EQ(0, tw_reap(pid));
	close(fd);
}

TEST(opening_for_reading_or_writing_alone_does_not_pass_for_the_other)
{
	const struct twheel_record record = { .op = TWHEEL_OP_ARM };
	struct twheel_event event;
	int fd = open(TW_DEVICE, O_WRONLY | O_NONBLOCK);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBADF, tw_read(fd, &event, 1));
	close(fd);
	fd = open(TW_DEVICE, O_RDONLY | O_NONBLOCK);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBADF, tw_write(fd, &record, 1));
	close(fd);
}

/* As with every device, this makes a new open file, unlike dup(). */
TEST(opening_proc_self_fd_makes_a_new_wheel)
{
	int fd = tw_virtual(O_NONBLOCK, TW_MS), other;
	struct twheel_info info;
	char path[32];
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, other);
	ASSERT_EQ(0, tw_info(other, &info));
	EXPECT_EQ(TWHEEL_WHEEL_NEW, info.state);
	EXPECT_EQ(0, info.armed);
	EXPECT_EQ(-ENOENT, tw_cancel1(other, id));
	close(other);
	other = dup(fd);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(other, id));
	close(other);
	close(fd);
}

/* The number of threads is fixed when the threads are made. */
TEST(root_may_write_the_parameters_that_are_limits)
{
	DIR *dir = opendir(TW_PARAMETERS);
	struct dirent *entry;
	struct stat st;
	int seen = 0;

	ASSERT_NE(NULL, dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		ASSERT_EQ(0, fstatat(dirfd(dir), entry->d_name, &st, 0));
		EXPECT_EQ(strncmp(entry->d_name, "max_", 4) ? 0444 : 0644, st.st_mode & 07777)
			TH_LOG("%s", entry->d_name);
		seen++;
	}
	EXPECT_LT(0, seen);
	closedir(dir);
}

TEST(info_reports_the_module_parameters)
{
	int fd = tw_open(O_NONBLOCK);
	struct twheel_info info;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(parameter("max_pending_limit"), info.max_pending_limit);
	close(fd);
}

/* selftests/host/low_resolution.sh runs this test on a machine with a low resolution. */
TEST(the_kernel_log_mentions_a_low_resolution_of_timers_and_no_high_one)
{
	static const char warning[] = "twheel: no high-resolution timers: each wake-up may be ";
	char *log = calloc(1, KLOG_SIZE), *warned;
	struct timespec resolution;

	ASSERT_NE(NULL, log);
	ASSERT_LT(0, klogctl(KLOG_READ_ALL, log, KLOG_SIZE - 1));
	ASSERT_EQ(0, clock_getres(CLOCK_MONOTONIC, &resolution));
	warned = strstr(log, warning);
	EXPECT_EQ(resolution.tv_nsec > 1, !!warned)
		TH_LOG("the resolution is %ld ns", resolution.tv_nsec);
	if (warned) {
		EXPECT_EQ(resolution.tv_nsec / 1000, atol(warned + strlen(warning)));
	}
	free(log);
}

TEST(a_wheel_has_the_flags_it_was_opened_with)
{
	const int flags[] = { 0, O_CLOEXEC, O_NONBLOCK, O_CLOEXEC | O_NONBLOCK };
	int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		int fd = tw_open(flags[i]);

		ASSERT_LE(0, fd);
		EXPECT_EQ(O_RDWR | (flags[i] & O_NONBLOCK),
			  fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK));
		EXPECT_EQ(flags[i] & O_CLOEXEC ? FD_CLOEXEC : 0, fcntl(fd, F_GETFD));
		close(fd);
	}
}

TEST_HARNESS_MAIN
