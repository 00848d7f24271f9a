// SPDX-License-Identifier: GPL-2.0
/*
 * The mode of a descriptor: calls that change the wheel need one that is open for writing, read()
 * needs one that is open for reading, and the others need neither.
 */
#include "twheel_commands.h"
#include "twheel_test.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#define TABLE_BYTES	((size_t)sysconf(_SC_PAGESIZE))

#define NOBODY		65534

/* Open for neither reading nor writing. */
#define O_NEITHER	3

FIXTURE(mode) {
	int owner;			/* may do everything */
	int fd;				/* the same wheel */
	__u64 pending;
	struct tw_snapshot before;
};

FIXTURE_VARIANT(mode) {
	int mode;
};

FIXTURE_VARIANT_ADD(mode, reading) {
	.mode = O_RDONLY,
};

FIXTURE_VARIANT_ADD(mode, writing) {
	.mode = O_WRONLY,
};

FIXTURE_VARIANT_ADD(mode, both) {
	.mode = O_RDWR,
};

FIXTURE_VARIANT_ADD(mode, neither) {
	.mode = O_NEITHER,
};

FIXTURE_SETUP(mode)
{
	self->owner = tw_make_wheel(&self->pending);
	ASSERT_LE(0, self->owner);
	self->fd = tw_reopen(self->owner, variant->mode | O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_snapshot(self->owner, &self->before));
}

FIXTURE_TEARDOWN(mode)
{
	EXPECT_ACCOUNTS(self->owner);
	close(self->fd);
	close(self->owner);
}

static bool may_read(int mode)
{
	return mode == O_RDONLY || mode == O_RDWR;
}

static bool may_write(int mode)
{
	return mode == O_WRONLY || mode == O_RDWR;
}

/* ---- each call ----------------------------------------------------------- */

static int call(int fd, unsigned long cmd, __u64 pending)
{
	const struct tw_command *command = tw_find_command(cmd);
	union tw_argument argument;
	union tw_element element;

	tw_make_good(command, pending, &argument, &element);
	return tw_ioctl(fd, cmd, &argument);
}

#define EXPECT_NEEDS_WRITING(cmd, done) do {					\
	bool __may = may_write(variant->mode);					\
										\
	EXPECT_EQ(__may ? (done) : -EBADF, call(self->fd, cmd, self->pending));	\
	if (!__may)								\
		EXPECT_UNCHANGED(self->owner, &self->before);			\
} while (0)

/* The wheel has been set up. */
TEST_F(mode, setup_needs_writing)
{
	EXPECT_NEEDS_WRITING(TWHEEL_IOC_SETUP, -EBUSY);
}

TEST_F(mode, arm_needs_writing)
{
	EXPECT_NEEDS_WRITING(TWHEEL_IOC_ARM, 1);
}

TEST_F(mode, rearm_needs_writing)
{
	EXPECT_NEEDS_WRITING(TWHEEL_IOC_REARM, 1);
}

TEST_F(mode, cancel_needs_writing)
{
	EXPECT_NEEDS_WRITING(TWHEEL_IOC_CANCEL, 1);
}

TEST_F(mode, advance_needs_writing)
{
	EXPECT_NEEDS_WRITING(TWHEEL_IOC_ADVANCE, 0);
}

TEST_F(mode, drain_needs_writing)
{
	if (may_write(variant->mode)) {
		EXPECT_EQ(0, tw_drain(self->fd));
		return;
	}
	EXPECT_EQ(-EBADF, tw_drain(self->fd));
	EXPECT_UNCHANGED(self->owner, &self->before);
}

TEST_F(mode, write_needs_writing)
{
	const struct twheel_record record = { .op = TWHEEL_OP_ARM, .expires_ns = TW_HOUR };

	if (may_write(variant->mode)) {
		EXPECT_EQ(1, tw_write(self->fd, &record, 1));
		return;
	}
	EXPECT_EQ(-EBADF, tw_write(self->fd, &record, 1));
	EXPECT_UNCHANGED(self->owner, &self->before);
}

TEST_F(mode, read_needs_reading)
{
	struct twheel_event events[3];

	if (may_read(variant->mode)) {
		EXPECT_EQ(2, tw_read(self->fd, events, 3));
		return;
	}
	EXPECT_EQ(-EBADF, tw_read(self->fd, events, 3));
	EXPECT_UNCHANGED(self->owner, &self->before);
}

TEST_F(mode, info_query_list_and_poll_need_neither)
{
	short room = POLLIN | POLLOUT;

	EXPECT_EQ(0, call(self->fd, TWHEEL_IOC_INFO, 0));
	EXPECT_EQ(1, call(self->fd, TWHEEL_IOC_QUERY, self->pending));
	EXPECT_EQ(1, call(self->fd, TWHEEL_IOC_LIST, 0));
	EXPECT_EQ((may_read(variant->mode) ? POLLIN : 0) | (may_write(variant->mode) ? POLLOUT : 0),
		  tw_poll(self->fd, room, 0));
	EXPECT_UNCHANGED(self->fd, &self->before);
}

/* A mapping has to be readable, so its descriptor has to be readable, too. */
TEST_F(mode, a_mapping_for_stores_needs_both)
{
	int prot = PROT_READ | PROT_WRITE, expected = variant->mode == O_RDWR ? 0 : EACCES;
	void *table;

	errno = 0;
	table = mmap(NULL, TABLE_BYTES, prot, MAP_SHARED, self->fd, 0);
	EXPECT_EQ(expected, errno);
	if (table != MAP_FAILED)
		munmap(table, TABLE_BYTES);
	errno = 0;
	table = mmap(NULL, TABLE_BYTES, PROT_READ, MAP_SHARED, self->fd, 0);
	EXPECT_EQ(may_read(variant->mode) ? 0 : EACCES, errno);
	if (table != MAP_FAILED)
		munmap(table, TABLE_BYTES);
}

TEST(each_setup_needs_writing)
{
	int fd = open(TW_DEVICE, O_RDONLY | O_CLOEXEC);
	struct twheel_info info;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBADF, tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 0));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TWHEEL_WHEEL_NEW, info.state);
	close(fd);
	fd = open(TW_DEVICE, O_WRONLY | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 0));
	close(fd);
}

/* An unknown command says ENOTTY for any mode, and a malformed argument is not read. */
TEST_F(mode, the_mode_is_checked_after_the_number_and_before_the_argument)
{
	EXPECT_EQ(-ENOTTY, tw_ioctl(self->fd, _IO(TWHEEL_IOC_MAGIC, 255), NULL));
	EXPECT_EQ(may_write(variant->mode) ? -EFAULT : -EBADF,
		  tw_ioctl(self->fd, TWHEEL_IOC_ARM, NULL));
}

/* ---- descriptors for reading only ---------------------------------------- */

FIXTURE(listener) {
	int owner;
	int fd;
	__u64 pending;
	struct tw_snapshot before;
};

FIXTURE_SETUP(listener)
{
	self->owner = tw_make_wheel(&self->pending);
	ASSERT_LE(0, self->owner);
	self->fd = tw_reopen(self->owner, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_snapshot(self->owner, &self->before));
}

FIXTURE_TEARDOWN(listener)
{
	EXPECT_UNCHANGED(self->owner, &self->before);
	close(self->fd);
	close(self->owner);
}

/* REOPEN has a test of its own. */
TEST_F(listener, a_listener_gets_no_command_done_that_changes_the_wheel)
{
	int nr;

	for (nr = 0; nr < 256; nr++) {
		unsigned long cmd = _IO(TWHEEL_IOC_MAGIC, nr);
		const struct tw_command *command = tw_find_command(cmd);
		union tw_argument argument;
		union tw_element element;

		if (cmd == TWHEEL_IOC_REOPEN)
			continue;
		if (command)
			tw_make_good(command, self->pending, &argument, &element);
		EXPECT_EQ(tw_listener_expects(cmd),
			  tw_ioctl(self->fd, cmd, command ? &argument : NULL))
			TH_LOG("number %d", nr);
	}
}

/* Try each command from each mode that a listener may have, with each of its arguments. */
TEST_F(listener, a_listener_gets_no_descriptor_that_may_write)
{
	const int more[] = { 0, O_NONBLOCK, O_CLOEXEC, O_NONBLOCK | O_CLOEXEC };
	const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR, O_NEITHER };
	char path[32];
	int i, k, fd;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		bool may = modes[i] == O_RDONLY || modes[i] == O_NEITHER;

		for (k = 0; k < ARRAY_SIZE(more); k++) {
			fd = tw_reopen(self->fd, modes[i] | more[k]);
			ASSERT_EQ(may ? fd : -EBADF, fd)
				TH_LOG("mode %d", modes[i]);
			if (!may)
				continue;
			EXPECT_EQ(-EBADF, call(fd, TWHEEL_IOC_CANCEL, self->pending));
			EXPECT_EQ(-EBADF, tw_reopen(fd, O_RDWR));
			EXPECT_EQ(-EBADF, tw_reopen(fd, O_WRONLY));
			close(fd);
		}
	}
	fd = dup(self->fd);
	EXPECT_EQ(-EBADF, call(fd, TWHEEL_IOC_CANCEL, self->pending));
	close(fd);
	fcntl(self->fd, F_SETFL, O_RDWR | O_NONBLOCK);
	EXPECT_EQ(-EBADF, call(self->fd, TWHEEL_IOC_CANCEL, self->pending));
	/* That is a wheel of its own. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-ENOENT, tw_cancel1(fd, self->pending));
	close(fd);
	EXPECT_EQ(-1, truncate(path, 0));
}

TEST_F(listener, a_listener_writes_nothing)
{
	const struct twheel_record record = {
		.op = TWHEEL_OP_CANCEL, .key = self->pending,
	};
	struct iovec iov = { (void *)&record, sizeof(record) };
	int pipes[2], memory = memfd_create("record", MFD_CLOEXEC);

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_LE(0, memory);
	ASSERT_EQ(sizeof(record), write(pipes[1], &record, sizeof(record)));
	ASSERT_EQ(sizeof(record), write(memory, &record, sizeof(record)));
	ASSERT_EQ(0, lseek(memory, 0, SEEK_SET));

#define EXPECT_EBADF(call) do {						\
	errno = 0;							\
	EXPECT_EQ(-1, call);						\
	EXPECT_EQ(EBADF, errno);					\
} while (0)
	EXPECT_EBADF(write(self->fd, &record, sizeof(record)));
	EXPECT_EBADF(writev(self->fd, &iov, 1));
	EXPECT_EBADF(pwritev2(self->fd, &iov, 1, -1, 0));
	EXPECT_EBADF(pwritev2(self->fd, &iov, 1, -1, RWF_NOWAIT));
	EXPECT_EBADF(splice(pipes[0], NULL, self->fd, NULL, sizeof(record), 0));
	EXPECT_EBADF(sendfile(self->fd, memory, NULL, sizeof(record)));
#undef EXPECT_EBADF
	/* These calls are not the device's, and have error codes of their own. */
	EXPECT_EQ(-1, pwrite(self->fd, &record, sizeof(record), 0));
	EXPECT_EQ(-1, ftruncate(self->fd, 0));
	EXPECT_EQ(-1, fallocate(self->fd, 0, 0, 4096));
	EXPECT_EQ(-1, copy_file_range(memory, NULL, self->fd, NULL, sizeof(record), 0));
	close(memory);
	close(pipes[0]);
	close(pipes[1]);
}

/* Return whether a store succeeds; a child tries it, since it may be killed. */
static bool store_succeeds(struct __test_metadata *_metadata, __u64 *word)
{
	pid_t pid = fork();
	int status;

	ASSERT_LE(0, pid);
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		*(volatile __u64 *)word = ~0ULL;
		_exit(0);
	}
	status = tw_reap(pid);
	EXPECT_TRUE(!status || status == 128 + SIGSEGV);
	return !status;
}

TEST_F(listener, a_listener_stores_nothing_into_the_refresh_table)
{
	const int types[] = { MAP_SHARED, MAP_SHARED_VALIDATE, MAP_PRIVATE };
	int i, memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	__u64 *table, *word, before;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		EXPECT_EQ(MAP_FAILED, mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE, types[i],
					   self->fd, 0));
		EXPECT_EQ(MAP_FAILED, mmap(NULL, TABLE_BYTES, PROT_WRITE, types[i], self->fd, 0));
	}
	table = mmap(NULL, TABLE_BYTES, PROT_READ, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)table);
	word = &table[(__u32)self->pending];
	before = *word;
	EXPECT_FALSE(store_succeeds(_metadata, word));
	errno = 0;
	EXPECT_EQ(-1, mprotect(table, TABLE_BYTES, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect(table, TABLE_BYTES, PROT_WRITE));
	table = mremap(table, TABLE_BYTES, TABLE_BYTES, MREMAP_MAYMOVE);
	ASSERT_NE(MAP_FAILED, (void *)table);
	EXPECT_EQ(-1, mprotect(table, TABLE_BYTES, PROT_READ | PROT_WRITE));
	/* If a debugger writes to a private mapping, that gets a page of its own. */
	ASSERT_LE(0, memory);
	EXPECT_EQ(-1, pwrite(memory, &(__u64){ ~0ULL }, sizeof(__u64), (uintptr_t)word));
	EXPECT_EQ(before, *word);
	close(memory);
	munmap(table, TABLE_BYTES);
}

/* The purpose of a listener: another user, who may not open the device, reads the events. */
TEST(a_listener_of_another_user_reads_what_the_owner_arms)
{
	int owner = tw_virtual(O_NONBLOCK, TW_MS), pair[2];
	char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	struct twheel_event event;
	pid_t pid;
	__u64 id;
	int fd;

	ASSERT_LE(0, owner);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(owner);
		if (setgid(NOBODY) || setuid(NOBODY) || recvmsg(pair[1], &message, 0) != 1)
			_exit(2);
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
		if (tw_read(fd, &event, 1) != 1)
			_exit(3);
		if (tw_cancel1(fd, event.id) != -EBADF || tw_drain(fd) != -EBADF)
			_exit(4);
		_exit(event.user_data == 42 ? 0 : 1);
	}
	fd = tw_reopen(owner, O_RDONLY);
	ASSERT_LE(0, fd);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	ASSERT_EQ(1, sendmsg(pair[0], &message, 0));
	close(fd);
	ASSERT_EQ(0, tw_arm1(owner, 0, TW_MS, 0, 42, &id));
	ASSERT_EQ(0, tw_advance(owner, TW_MS));
	EXPECT_EQ(0, tw_reap(pid));
	EXPECT_ACCOUNTS(owner);
	close(owner);
	close(pair[0]);
	close(pair[1]);
}

TEST_HARNESS_MAIN
