// SPDX-License-Identifier: GPL-2.0
/*
 * REOPEN: another descriptor of the same wheel, with a mode and flags of its own.
 */
#include "twheel_outside.h"
#include "twheel_test.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define TABLE_BYTES	((size_t)sysconf(_SC_PAGESIZE))

/* Open for neither reading nor writing. */
#define O_NEITHER	3

FIXTURE(reopen) {
	int base;			/* descriptors that are not the test's */
	int fd;
	int again;
};

FIXTURE_SETUP(reopen)
{
	self->base = tw_wheels_open();
	ASSERT_LE(0, self->base);
	self->fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
	ASSERT_LE(0, self->fd);
	self->again = tw_reopen(self->fd, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->again);
}

FIXTURE_TEARDOWN(reopen)
{
	close(self->fd);
	close(self->again);
	EXPECT_EQ(self->base, tw_wait_wheels_open(self->base));
}

TEST_F(reopen, reopen_gives_the_same_wheel)
{
	struct twheel_event event;
	struct twheel_info info;
	__u64 ids[2];

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &ids[0]));
	ASSERT_EQ(0, tw_arm_in(self->again, TW_HOUR, &ids[1]));
	ASSERT_EQ(0, tw_advance(self->again, TW_MS));
	ASSERT_ONE_EVENT(self->again, &event, ids[0]);
	EXPECT_NO_EVENT(self->fd);
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[1]));
	ASSERT_EQ(0, tw_info(self->again, &info));
	EXPECT_EQ(TWHEEL_CLOCK_VIRTUAL, info.clock);
	EXPECT_EQ(2, info.armed);
	EXPECT_EQ(0, info.live);
	EXPECT_ACCOUNTS(self->again);
}

TEST_F(reopen, reopen_gives_the_mode_and_the_flags_that_were_asked_for)
{
	static const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR, O_NEITHER };
	static const int flags[] = { 0, O_CLOEXEC, O_NONBLOCK, O_CLOEXEC | O_NONBLOCK };
	int i, j, fd;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		for (j = 0; j < ARRAY_SIZE(flags); j++) {
			fd = tw_reopen(self->fd, modes[i] | flags[j]);
			ASSERT_LE(0, fd);
			EXPECT_EQ(modes[i] | (flags[j] & O_NONBLOCK),
				  fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK));
			EXPECT_EQ(flags[j] & O_CLOEXEC ? FD_CLOEXEC : 0, fcntl(fd, F_GETFD));
			close(fd);
		}
	}
}

TEST_F(reopen, reopen_gives_flags_that_others_do_not_change)
{
	ASSERT_EQ(0, fcntl(self->again, F_SETFL, 0));
	EXPECT_EQ(O_NONBLOCK, fcntl(self->fd, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(0, fcntl(self->again, F_GETFL) & O_NONBLOCK);
}

/* The kernel's number of O_LARGEFILE, which is 0 in a 64-bit program of glibc. */
#ifdef __aarch64__
#define KERNEL_LARGEFILE	0400000
#else
#define KERNEL_LARGEFILE	0100000
#endif

#define IGNORED	(O_APPEND | O_ASYNC | O_DSYNC | KERNEL_LARGEFILE | O_NOATIME | O_NOCTTY | \
		 O_NOFOLLOW | O_SYNC | O_TRUNC)

TEST_F(reopen, reopen_with_an_unknown_flag_says_einval)
{
	const __u32 known = O_ACCMODE | O_NONBLOCK | O_CLOEXEC | IGNORED;
	unsigned int bit;

	for (bit = 0; bit < 32; bit++) {
		if (known >> bit & 1)
			continue;
		EXPECT_EQ(-EINVAL, tw_reopen(self->fd, O_RDWR | 1U << bit))
			TH_LOG("bit %u", bit);
	}
	EXPECT_EQ(self->base + 2, tw_wheels_open());
}

TEST_F(reopen, reopen_ignores_what_open_of_a_device_ignores)
{
	int fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC | IGNORED), again, flags;

	ASSERT_LE(0, fd);
	close(fd);
	again = tw_reopen(self->fd, O_RDONLY | O_CLOEXEC | IGNORED);
	ASSERT_LE(0, again);
	flags = fcntl(again, F_GETFL);
	EXPECT_EQ(O_RDONLY, flags & O_ACCMODE);
	EXPECT_EQ(0, flags & (O_APPEND | O_ASYNC | O_DSYNC | O_TRUNC | O_NONBLOCK));
	EXPECT_EQ(FD_CLOEXEC, fcntl(again, F_GETFD));
	close(again);
}

TEST(reopen_takes_what_f_getfl_returns)
{
	const int flags[] = {
		O_RDWR, O_RDONLY | O_NONBLOCK, O_WRONLY | O_APPEND, O_RDWR | O_SYNC | O_CLOEXEC,
		O_RDWR | O_NOATIME | O_NOFOLLOW | O_NOCTTY | O_TRUNC,
	};
	int i, fd, again;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		fd = open(TW_DEVICE, flags[i]);
		ASSERT_LE(0, fd);
		again = tw_reopen(fd, fcntl(fd, F_GETFL));
		ASSERT_LE(0, again)
			TH_LOG("flags %#o", flags[i]);
		EXPECT_EQ(flags[i] & (O_ACCMODE | O_NONBLOCK),
			  fcntl(again, F_GETFL) & (O_ACCMODE | O_NONBLOCK));
		close(again);
		close(fd);
	}
}

/* ---- the argument -------------------------------------------------------- */

/* The process that gets a descriptor need not be the one that chose the size. */
TEST_F(reopen, each_descriptor_has_its_own_size_of_events)
{
	struct {
		struct twheel_event event;
		__u64 rest[3];
	} event[2];
	struct twheel_info info;
	__u64 ids[3];
	int i, fd;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	ASSERT_EQ(TWHEEL_EVENT_SIZE_MIN, info.event_size);
	fd = tw_reopen_as(self->fd, O_RDWR | O_NONBLOCK, sizeof(event[0]));
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(sizeof(event[0]), info.event_size);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(TWHEEL_EVENT_SIZE_MIN, info.event_size);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, (i + 1) * TW_MS, &ids[i]));
	}
	ASSERT_EQ(0, tw_advance(self->fd, 3 * TW_MS));
	EXPECT_EQ(-1, read(fd, event, sizeof(event[0]) - 1));
	EXPECT_EQ(EINVAL, errno);
	memset(event, TW_POISON, sizeof(event));
	ASSERT_EQ(sizeof(event), read(fd, event, sizeof(event)));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(ids[i], event[i].event.id);
		EXPECT_EQ(0, event[i].rest[0] | event[i].rest[1] | event[i].rest[2]);
	}
	ASSERT_EQ(sizeof(event[0].event), read(self->again, event, sizeof(event)));
	EXPECT_EQ(ids[2], event[0].event.id);
	close(fd);
}

TEST_F(reopen, fdinfo_shows_the_size_of_events_of_its_descriptor)
{
	int fd = tw_reopen_as(self->fd, O_RDONLY, 128);

	ASSERT_LE(0, fd);
	EXPECT_EQ(128, tw_fdinfo_number(fd, "event_size"));
	EXPECT_EQ(TWHEEL_EVENT_SIZE_MIN, tw_fdinfo_number(self->fd, "event_size"));
	close(fd);
}

TEST_F(reopen, event_size_of_0_is_that_of_setup)
{
	struct twheel_setup setup = {
		.size = sizeof(setup), .clock = TWHEEL_CLOCK_VIRTUAL, .event_size = 56,
	};
	int fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC), again, third;
	struct twheel_info info;

	ASSERT_LE(0, fd);
	again = tw_reopen_as(fd, O_RDWR, 64);
	ASSERT_LE(0, again);
	third = tw_reopen(again, O_RDWR);
	ASSERT_LE(0, third);
	ASSERT_EQ(0, tw_ioctl(fd, TWHEEL_IOC_SETUP, &setup));
	ASSERT_EQ(0, tw_info(again, &info));
	EXPECT_EQ(64, info.event_size);
	ASSERT_EQ(0, tw_info(third, &info));
	EXPECT_EQ(56, info.event_size);
	close(third);
	close(again);
	close(fd);
}

TEST_F(reopen, a_bad_argument_of_reopen_is_refused)
{
	static const __u32 sizes[] = { 1, 8, 32, 36, 44, 4104, ~0U };
	struct {
		struct twheel_reopen reopen;
		__u64 rest[(TWHEEL_SIZE_MAX + 8 - sizeof(struct twheel_reopen)) / 8];
	} large = { .reopen = { .flags = O_RDWR } };
	struct twheel_reopen *reopen = &large.reopen;
	int i, fd;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		EXPECT_EQ(-EINVAL, tw_reopen_as(self->fd, O_RDWR, sizes[i]))
			TH_LOG("event_size %u", sizes[i]);
	reopen->size = sizeof(*reopen);
	reopen->reserved = 1;
	EXPECT_EQ(-EINVAL, tw_ioctl(self->fd, TWHEEL_IOC_REOPEN, reopen));
	reopen->reserved = 0;
	reopen->size = sizeof(*reopen) - 1;
	EXPECT_EQ(-EINVAL, tw_ioctl(self->fd, TWHEEL_IOC_REOPEN, reopen));
	reopen->size = TWHEEL_SIZE_MAX + 1;
	EXPECT_EQ(-E2BIG, tw_ioctl(self->fd, TWHEEL_IOC_REOPEN, reopen));
	reopen->size = TWHEEL_SIZE_MAX;
	fd = tw_ioctl(self->fd, TWHEEL_IOC_REOPEN, reopen);
	EXPECT_LE(0, fd);
	close(fd);
	large.rest[0] = 1;
	EXPECT_EQ(-E2BIG, tw_ioctl(self->fd, TWHEEL_IOC_REOPEN, reopen));
	EXPECT_EQ(-EFAULT, tw_ioctl(self->fd, TWHEEL_IOC_REOPEN, NULL));
	EXPECT_EQ(-EFAULT, tw_ioctl(self->fd, TWHEEL_IOC_REOPEN, (void *)(long)O_RDWR));
	EXPECT_EQ(self->base + 2, tw_wheels_open());
}

/* Return 0, or -errno; close every descriptor. */
static int reopen_and_close(int fd, int flags)
{
	int again = tw_reopen(fd, flags);

	return again < 0 ? again : close(again);
}

TEST_F(reopen, reopen_gives_no_mode_that_the_descriptor_does_not_have)
{
	static const struct {
		int has, wants, err;
	} cases[] = {
		{ O_RDONLY, O_RDONLY, 0 }, { O_RDONLY, O_WRONLY, -EBADF },
		{ O_RDONLY, O_RDWR, -EBADF }, { O_RDONLY, O_NEITHER, 0 },
		{ O_WRONLY, O_RDONLY, -EBADF }, { O_WRONLY, O_WRONLY, 0 },
		{ O_WRONLY, O_RDWR, -EBADF }, { O_WRONLY, O_NEITHER, 0 },
		{ O_NEITHER, O_RDONLY, -EBADF }, { O_NEITHER, O_WRONLY, -EBADF },
		{ O_NEITHER, O_RDWR, -EBADF }, { O_NEITHER, O_NEITHER, 0 },
	};
	int i, fd;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fd = tw_reopen(self->fd, cases[i].has);
		ASSERT_LE(0, fd);
		EXPECT_EQ(cases[i].err, reopen_and_close(fd, cases[i].wants))
			TH_LOG("case %d", i);
		close(fd);
	}
}

/* As with the device itself, the mode of the open counts. */
TEST(a_device_opened_for_reading_is_not_reopened_for_writing)
{
	int fd = open(TW_DEVICE, O_RDONLY | O_CLOEXEC);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBADF, tw_reopen(fd, O_RDWR));
	EXPECT_EQ(-EBADF, tw_reopen(fd, O_WRONLY));
	close(fd);
}

TEST_F(reopen, reopen_without_a_free_descriptor_says_emfile)
{
	const struct rlimit none = { 3, 3 };
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		if (setrlimit(RLIMIT_NOFILE, &none))
			_exit(2);
		_exit(tw_reopen(self->fd, O_RDWR) == -EMFILE ? 0 : 1);
	}
	EXPECT_EQ(0, tw_reap(pid));
	EXPECT_EQ(self->base + 2, tw_wheels_open());
}

#define FILE_MAX	"/proc/sys/fs/file-max"
#define NOBODY		65534

/* Restore the limit when the test has ended, even if somebody killed it. */
static pid_t restore_at_the_end(const char *max, int *end)
{
	int file, pipes[2];
	pid_t pid;
	char byte;

	if (pipe2(pipes, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		setsid();
		close(pipes[1]);
		(void)!read(pipes[0], &byte, 1);
		file = open(FILE_MAX, O_WRONLY | O_CLOEXEC);
		_exit(write(file, max, strlen(max)) == (ssize_t)strlen(max) ? 0 : 1);
	}
	close(pipes[0]);
	*end = pipes[1];
	return pid;
}

/* Root may open more files than the limit. */
TEST_F(reopen, reopen_without_a_free_file_says_enfile)
{
	int i, end, ret = 0, file = open(FILE_MAX, O_RDWR | O_CLOEXEC);
	pid_t pid, guard;
	char max[32] = {};

	ASSERT_LE(0, file);
	ASSERT_LT(0, read(file, max, sizeof(max) - 1));
	guard = restore_at_the_end(max, &end);
	ASSERT_LT(0, guard);
	ASSERT_EQ(1, pwrite(file, "1", 1, 0));
	pid = fork();
	if (!pid) {
		close(end);
		if (setgid(NOBODY) || setuid(NOBODY))
			_exit(2);
		/* Each processor counts some files for itself before all are counted. */
		for (i = 0; i < 1000 && ret >= 0; i++)
			ret = tw_reopen(self->fd, O_RDWR);
		_exit(ret == -ENFILE ? 0 : ret == -EMFILE ? 3 : 1);
	}
	ret = pid < 0 ? pid : tw_reap(pid);
	close(end);
	EXPECT_EQ(0, tw_reap(guard));
	EXPECT_EQ(0, ret);
	close(file);
}

/* Security modules go by the inode, and so do programs that search /proc for a device. */
TEST_F(reopen, reopen_gives_a_file_of_the_device)
{
	char path[32], link[64] = {};
	struct stat was, is;
	int fd;

	ASSERT_EQ(0, fstat(self->fd, &was));
	ASSERT_EQ(0, fstat(self->again, &is));
	EXPECT_TRUE(S_ISCHR(is.st_mode));
	EXPECT_EQ(was.st_rdev, is.st_rdev);
	EXPECT_EQ(was.st_ino, is.st_ino);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->again);
	ASSERT_LT(0, readlink(path, link, sizeof(link) - 1));
	EXPECT_STREQ(TW_DEVICE, link);
	/* open() of the link makes a new wheel, as for any other descriptor. */
	fd = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(self->base + 3, tw_wheels_open());
	close(fd);
}

#define NO_LANDLOCK	4

/* The structures and numbers are those of the ABI, whichever headers are there. */
static int forbid_files(void)
{
	const struct {
		__u64 access_fs;
	} rules = { 1 << 1 | 1 << 2 };		/* access to write to files, and to read them */
	int fd = syscall(444, &rules, sizeof(rules), 0);

	if (fd < 0)
		return NO_LANDLOCK;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(446, fd, 0))
		return 3;
	close(fd);
	return 0;
}

/* They judge it as they judge open() of the device. */
TEST_F(reopen, a_security_module_may_refuse_reopen)
{
	pid_t pid = fork();
	int ret;

	ASSERT_LE(0, pid);
	if (!pid) {
		ret = forbid_files();
		if (ret)
			_exit(ret);
		_exit(tw_reopen(self->fd, O_RDONLY) != -EACCES ? 1 :
		      open(TW_DEVICE, O_RDONLY) >= 0 || errno != EACCES ? 2 : 0);
	}
	ret = tw_reap(pid);
	if (ret == NO_LANDLOCK)
		SKIP(return, "this kernel has no Landlock");
	EXPECT_EQ(0, ret);
	EXPECT_EQ(self->base + 2, tw_wheels_open());
}

/* ---- the last close ------------------------------------------------------ */

TEST_F(reopen, the_wheel_stays_when_the_first_descriptor_is_closed)
{
	struct twheel_event event;
	__u64 ids[2];

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &ids[0]));
	close(self->fd);
	EXPECT_EQ(self->base + 1, tw_wait_wheels_open(self->base + 1));
	self->fd = tw_reopen(self->again, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &ids[1]));
	EXPECT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->again, ids[1]));
	ASSERT_EQ(0, tw_advance(self->again, TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, ids[0]);
	EXPECT_ACCOUNTS(self->again);
}

TEST_F(reopen, reopen_leaves_epoll_to_each_descriptor)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN, .data.fd = self->fd }, events[3];
	__u64 id;

	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, self->fd, &event));
	event.data.fd = self->again;
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, self->again, &event));
	ASSERT_EQ(0, tw_arm_in(self->again, 0, &id));
	ASSERT_EQ(0, tw_advance(self->again, 0));
	EXPECT_EQ(2, epoll_wait(epoll, events, 3, 0));
	/* If there were a duplicate, the watch would go on, and nobody could end it. */
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(1, epoll_wait(epoll, &event, 1, 0));
	EXPECT_EQ(self->again, event.data.fd);
	close(epoll);
}

TEST_F(reopen, the_same_table_is_mapped_when_the_first_descriptor_is_closed)
{
	__u64 *first, *table, id, deadline_ns = 5 * TW_MS;
	struct twheel_event event;

	first = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)first);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	table = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, self->again, 0);
	ASSERT_NE(MAP_FAILED, (void *)table);
	EXPECT_EQ(first[(__u32)id], table[(__u32)id]);
	munmap(first, TABLE_BYTES);
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(1, tw_refresh(table, id, deadline_ns, tw_shift(TW_MS)));
	ASSERT_EQ(0, tw_advance(self->again, 5 * TW_MS - 1));
	EXPECT_NO_EVENT(self->again);
	ASSERT_EQ(0, tw_advance(self->again, 6 * TW_MS));
	ASSERT_ONE_EVENT(self->again, &event, id);
	munmap(table, TABLE_BYTES);
}

TEST_F(reopen, the_wheel_stays_as_long_as_it_is_mapped)
{
	__u64 *table, id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	table = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, self->again, 0);
	ASSERT_NE(MAP_FAILED, (void *)table);
	close(self->fd);
	close(self->again);
	self->fd = -1;
	self->again = -1;
	EXPECT_EQ(self->base + 1, tw_wait_wheels_open(self->base + 1));
	*(volatile __u64 *)table = 7;
	munmap(table, TABLE_BYTES);
	EXPECT_EQ(self->base, tw_wait_wheels_open(self->base));
}

/* If an inode were left when its file system goes, the kernel would complain in its log. */
TEST(a_wheel_keeps_the_file_system_of_its_device)
{
	char folder[] = "/tmp/twheel-XXXXXX", path[64];
	struct stat st;
	__u64 *table, id;
	int fd, again;

	ASSERT_EQ(0, stat(TW_DEVICE, &st));
	ASSERT_NE(NULL, mkdtemp(folder));
	ASSERT_EQ(0, mount("none", folder, "tmpfs", 0, NULL));
	snprintf(path, sizeof(path), "%s/twheel", folder);
	ASSERT_EQ(0, mknod(path, S_IFCHR | 0600, st.st_rdev));
	fd = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	again = tw_reopen(fd, O_RDWR);
	ASSERT_LE(0, again);
	close(fd);
	EXPECT_EQ(0, unlink(path));
	EXPECT_EQ(-1, umount(folder));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(0, umount2(folder, MNT_DETACH));
	fd = tw_reopen(again, O_RDWR);
	ASSERT_LE(0, fd);
	close(again);
	again = fd;
	ASSERT_EQ(0, tw_arm_in(again, TW_HOUR, &id));
	table = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
	ASSERT_NE(MAP_FAILED, (void *)table);
	*(volatile __u64 *)table = 7;
	munmap(table, TABLE_BYTES);
	close(again);
	EXPECT_EQ(0, rmdir(folder));
}

static void *reopen_often(void *arg)
{
	int fd = *(int *)arg, again, i;

	for (i = 0; i < 2000; i++) {
		again = tw_reopen(fd, O_RDWR | O_CLOEXEC);
		/* In some rounds, this is the only descriptor of the wheel. */
		close(fd);
		if (again < 0)
			return (void *)(long)again;
		fd = again;
	}
	close(fd);
	return NULL;
}

TEST_F_TIMEOUT(reopen, reopen_beside_other_closes_leaves_nothing, 60)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	int i, fds[THREADS];
	void *ret;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	for (i = 0; i < THREADS; i++) {
		fds[i] = tw_reopen(self->fd, O_RDWR | O_CLOEXEC);
		ASSERT_LE(0, fds[i]);
	}
	close(self->fd);
	close(self->again);
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, reopen_often, &fds[i]));
	for (i = 0; i < THREADS; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], &ret));
		EXPECT_EQ(NULL, ret);
	}
	self->fd = -1;
	self->again = -1;
}

/* ---- waiting ------------------------------------------------------------- */

TEST_F_TIMEOUT(reopen, readers_and_pollers_of_each_descriptor_are_woken, 60)
{
	struct twheel_event event;
	pid_t reader = fork(), poller;
	__u64 id;

	ASSERT_LE(0, reader);
	if (!reader) {
		fcntl(self->again, F_SETFL, 0);
		_exit(tw_read(self->again, &event, 1) == 1 ? 0 : 1);
	}
	ASSERT_EQ(0, tw_wait_asleep(reader));
	ASSERT_EQ(0, tw_arm_in(self->fd, 0, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 0));
	EXPECT_EQ(0, tw_reap(reader));
	poller = fork();
	ASSERT_LE(0, poller);
	if (!poller)
		_exit(tw_poll(self->again, POLLIN, TW_PATIENCE_MS) == POLLHUP ? 0 : 1);
	ASSERT_EQ(0, tw_wait_asleep(poller));
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(0, tw_reap(poller));
	EXPECT_EQ(0, tw_read(self->again, &event, 1));
}

TEST_HARNESS_MAIN
