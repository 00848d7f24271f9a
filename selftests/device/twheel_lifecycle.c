// SPDX-License-Identifier: GPL-2.0
/*
 * The holders of a wheel: dup, fork, exec and a descriptor sent over a socket share it, and no
 * other wheel is affected.
 */
#include "twheel_outside.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

FIXTURE(lifecycle) {
	int base;			/* tw_wheels_open() without those of the test */
	int fd;				/* virtual, non-blocking */
};

FIXTURE_SETUP(lifecycle)
{
	self->base = tw_wheels_open();
	ASSERT_LE(0, self->base);
	self->fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(lifecycle)
{
	close(self->fd);
	EXPECT_EQ(self->base, tw_wait_wheels_open(self->base));
}

TEST_F(lifecycle, a_parent_reads_the_timeouts_of_its_child)
{
	struct twheel_event event;
	__u64 id;
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child)
		_exit(tw_arm1(self->fd, 0, TW_MS, 0, 4711, &id) ? 1 : 0);
	ASSERT_EQ(0, tw_reap(child));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(4711, event.user_data);
}

TEST_F(lifecycle, a_child_cancels_the_timeouts_of_its_parent)
{
	pid_t child;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(tw_cancel1(self->fd, id) != TWHEEL_WAS_PENDING);
	ASSERT_EQ(0, tw_reap(child));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id));
}

TEST_F(lifecycle, the_end_of_a_child_leaves_the_wheel)
{
	struct twheel_event event;
	pid_t child;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(close(self->fd));
	ASSERT_EQ(0, tw_reap(child));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
}

TEST_F(lifecycle, a_wheel_lives_on_in_its_duplicate)
{
	struct twheel_event event;
	int other = dup(self->fd);
	__u64 id;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	close(self->fd);
	self->fd = other;
	ASSERT_EQ(0, tw_advance(other, TW_MS));
	ASSERT_ONE_EVENT(other, &event, id);
}

TEST_F(lifecycle, an_event_read_from_one_duplicate_is_gone_from_the_other)
{
	struct twheel_event event;
	int other = dup(self->fd);
	__u64 id;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_ONE_EVENT(other, &event, id);
	EXPECT_NO_EVENT(self->fd);
	close(other);
}

/* Ask this program, run by exec: its exit status is the answer. */
static int after_exec(const char *question, int fd, __u64 id)
{
	if (!strcmp(question, "cancels"))
		return tw_cancel1(fd, id) != TWHEEL_WAS_PENDING;
	if (!strcmp(question, "lacks"))
		return fcntl(fd, F_GETFD) != -1 || errno != EBADF;
	return 2;
}

static int exec_and_ask(const char *question, int fd, __u64 id)
{
	char fd_text[16], id_text[32];
	pid_t child;

	snprintf(fd_text, sizeof(fd_text), "%d", fd);
	snprintf(id_text, sizeof(id_text), "%llu", id);
	child = fork();
	if (!child) {
		execl("/proc/self/exe", "after-exec", question, fd_text, id_text, NULL);
		_exit(3);
	}
	return tw_reap(child);
}

TEST_F(lifecycle, exec_keeps_a_wheel_without_o_cloexec)
{
	__u64 id;

	ASSERT_EQ(0, fcntl(self->fd, F_SETFD, 0));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	ASSERT_EQ(0, exec_and_ask("cancels", self->fd, id));
	EXPECT_EQ(-ENOENT, tw_cancel1(self->fd, id));
}

TEST_F(lifecycle, exec_closes_a_wheel_with_o_cloexec)
{
	EXPECT_EQ(0, exec_and_ask("lacks", self->fd, 0));
}

/* If only one process holds the wheel, its exec is the last close. */
TEST_F(lifecycle, exec_with_o_cloexec_ends_the_wheel)
{
	pid_t child = fork();
	__u64 id;

	ASSERT_LE(0, child);
	if (!child) {
		int fd = tw_open(O_CLOEXEC);

		if (fd < 0 || tw_arm_in(fd, TW_HOUR, &id))
			_exit(1);
		execl("/proc/self/exe", "after-exec", "lacks", "1000", "0", NULL);
		_exit(3);
	}
	ASSERT_EQ(0, tw_reap(child));
	EXPECT_EQ(self->base + 1, tw_wait_wheels_open(self->base + 1));
}

/* ---- over a socket ------------------------------------------------------- */

static int send_fd(int sock, int fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct iovec iov = { "", 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(sock, &msg, 0) == 1 ? 0 : -errno;
}

static int receive_fd(int sock)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {};
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	int fd;

	if (recvmsg(sock, &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* A process that opens a wheel, arms it, sends it, and waits to be killed. */
static pid_t spawn_sender(int sock)
{
	pid_t child = fork();
	__u64 id;
	int fd;

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = tw_open(O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || tw_arm1(fd, 0, TW_SEC, 0, 4711, &id) || send_fd(sock, fd))
		_exit(1);
	for (;;)
		pause();
}

static void expect_sent_event(struct __test_metadata *_metadata, int fd)
{
	struct twheel_event event;

	ASSERT_LE(0, fd);
	ASSERT_EQ(POLLIN, tw_poll(fd, POLLIN, TW_PATIENCE_MS));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(4711, event.user_data);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	close(fd);
}

TEST_F_TIMEOUT(lifecycle, a_wheel_that_was_sent_outlives_its_maker, 60)
{
	int sock[2], fd;
	pid_t child;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	child = spawn_sender(sock[1]);
	ASSERT_LT(0, child);
	fd = receive_fd(sock[0]);
	kill(child, SIGKILL);
	ASSERT_EQ(128 + SIGKILL, tw_reap(child));
	expect_sent_event(_metadata, fd);
}

TEST_F_TIMEOUT(lifecycle, a_wheel_on_its_way_outlives_its_maker, 60)
{
	int sock[2];
	pid_t child;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	child = spawn_sender(sock[1]);
	ASSERT_LT(0, child);
	ASSERT_EQ(POLLIN, tw_poll(sock[0], POLLIN, TW_PATIENCE_MS));
	kill(child, SIGKILL);
	ASSERT_EQ(128 + SIGKILL, tw_reap(child));
	ASSERT_EQ(self->base + 2, tw_wheels_open());
	expect_sent_event(_metadata, receive_fd(sock[0]));
}

TEST_F(lifecycle, two_wheels_know_nothing_of_each_other)
{
	int other = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
	struct twheel_event event;
	struct twheel_info info;
	__u64 id;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	EXPECT_EQ(-ENOENT, tw_cancel1(other, id));
	EXPECT_EQ(-ENOENT, tw_rearm1(other, id, 0, TW_MS, 0));
	EXPECT_EQ(0, tw_advance(other, TW_HOUR));
	EXPECT_EQ(0, tw_drain(other));
	EXPECT_EQ(0, tw_read(other, &event, 1));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0, info.now_ns);
	EXPECT_EQ(1, info.pending);
	close(other);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
}

TEST_F_TIMEOUT(lifecycle, many_wheels_are_not_many_threads, 120)
{
	unsigned int thread, wheels[1024] = {};
	static int fds[500];
	__u64 id, switches;
	char name[64];
	int i, nr;

	for (i = 0; i < (int)ARRAY_SIZE(fds); i++) {
		fds[i] = tw_open(O_CLOEXEC);
		ASSERT_LE(0, fds[i]);
		ASSERT_EQ(0, tw_arm_in(fds[i], TW_HOUR, &id));
	}
	nr = tw_kthreads(&switches);
	EXPECT_LT(0, nr);
	EXPECT_GE(4 * sysconf(_SC_NPROCESSORS_ONLN), nr);
	/* Each thread serves its part of the wheels. */
	for (i = 0; i < (int)ARRAY_SIZE(fds); i++) {
		tw_kthread_name(fds[i], name);
		ASSERT_EQ(0, strncmp(name, "twheel/", 7));
		thread = atoi(name + 7);
		ASSERT_GT(ARRAY_SIZE(wheels), thread);
		wheels[thread]++;
	}
	for (i = 0; i < nr; i++) {
		EXPECT_LE(ARRAY_SIZE(fds) / nr, wheels[i]);
		EXPECT_GE(ARRAY_SIZE(fds) / nr + 1, wheels[i]);
	}
	for (i = 0; i < (int)ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

/* Run the tests or, after an exec, answer the question. */
int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[0], "after-exec"))
		return after_exec(argv[1], atoi(argv[2]), strtoull(argv[3], NULL, 10));
	return test_harness_run(argc, argv);
}
