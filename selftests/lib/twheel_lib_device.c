// SPDX-License-Identifier: GPL-2.0
/*
 * <twheel/device.h> on the device: each function, each of its errors, a second process that takes
 * over, and numbers of descriptors that were used again.
 *
 * It is compiled twice: twheel_lib_device_functions defines TWHEEL_NO_INLINE.
 */
#include <twheel/device.h>

#include "twheel_test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define SIZE		sizeof(struct twheel_setup)

/* Return how many descriptors the process has. */
static int open_descriptors(void)
{
	int fd, nr = 0;

	for (fd = 0; fd < 1024; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* Run it in a child, where descriptors may be closed at will; return its result, or tw_reap()'s. */
static int in_child(int (*function)(void *argument), void *argument)
{
	pid_t child = fork();

	if (!child)
		_exit(function(argument));
	return tw_reap(child);
}

/* If an expectation of a child is not met, the child ends with its line. */
#define CHILD_NEEDS(condition) do {					\
	if (!(condition)) {						\
		fprintf(stderr, "# line %d: %s\n", __LINE__, #condition);	\
		return 1;						\
	}								\
} while (0)

static int open_virtual(struct twheel_device **d, __u32 setup_flags, __u32 event_size)
{
	const struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.tick_ns = TW_MS,
		.flags = setup_flags,
		.event_size = event_size,
	};

	return twheel_device_open(d, NULL, O_NONBLOCK, &setup);
}

/* ---- opening ------------------------------------------------------------- */

TEST(open_without_a_setup_makes_a_wheel_with_the_defaults)
{
	struct twheel_device *d;
	struct twheel_info info;

	ASSERT_EQ(0, twheel_device_open(&d, NULL, 0, NULL));
	EXPECT_EQ(FD_CLOEXEC, fcntl(twheel_device_fd(d), F_GETFD));
	EXPECT_EQ(0, fcntl(twheel_device_fd(d), F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(O_RDWR, fcntl(twheel_device_fd(d), F_GETFL) & O_ACCMODE);
	memset(&info, TW_POISON, sizeof(info));
	ASSERT_EQ(0, twheel_device_info(d, &info, TWHEEL_INFO_WALK));
	EXPECT_EQ(sizeof(info), info.size);
	EXPECT_EQ(TWHEEL_CLOCK_MONOTONIC, info.clock);
	EXPECT_EQ(TW_MS, info.tick_ns);
	EXPECT_EQ(0, info.setup_flags);
	EXPECT_EQ(TWHEEL_EVENT_SIZE_MIN, info.event_size);
	EXPECT_EQ(TWHEEL_WHEEL_RUNNING, info.state);
	EXPECT_EQ(TWHEEL_TIME_NEVER, info.next_expiry_ns);
	EXPECT_EQ(-EINVAL, twheel_device_info(d, &info, 1U << 31));
	twheel_device_close(d);
	twheel_device_close(NULL);
}

TEST(open_passes_the_setup_on)
{
	const struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_BOOTTIME,
		.tick_ns = 5 * TW_MS,
		.slack_ns = 7 * TW_MS,
		.slots = 64,
		.max_pending = 1000,
		.event_size = 48,
		.flags = TWHEEL_SETUP_KEYED,
	};
	struct twheel_device *d;
	struct twheel_info info;

	ASSERT_EQ(0, twheel_device_open(&d, "/proc/self/root/dev/twheel", O_NONBLOCK, &setup));
	ASSERT_EQ(0, twheel_device_info(d, &info, 0));
	EXPECT_EQ(TWHEEL_CLOCK_BOOTTIME, info.clock);
	EXPECT_EQ(5 * TW_MS, info.tick_ns);
	EXPECT_EQ(7 * TW_MS, info.slack_ns);
	EXPECT_EQ(64, info.slots);
	EXPECT_EQ(1000, info.max_pending);
	EXPECT_EQ(48, info.event_size);
	EXPECT_EQ(TWHEEL_SETUP_KEYED, info.setup_flags);
	EXPECT_EQ(O_NONBLOCK, fcntl(twheel_device_fd(d), F_GETFL) & O_NONBLOCK);
	twheel_device_close(d);
}

TEST(open_refuses_what_setup_refuses_and_leaves_nothing_behind)
{
	const struct twheel_setup bad[] = {
		{ .size = SIZE, .clock = TWHEEL_CLOCK_VIRTUAL + 1 },
		{ .size = SIZE, .clock = 0 },
		{ .size = SIZE, .clock = 1, .tick_ns = TWHEEL_TICK_MIN_NS - 1 },
		{ .size = SIZE, .clock = 1, .slack_ns = TWHEEL_SLACK_MAX_NS + 1 },
		{ .size = SIZE, .clock = 1, .slots = TWHEEL_SLOTS_MAX + 1 },
		{ .size = SIZE, .clock = 1, .max_pending = UINT32_MAX },
		{ .size = SIZE, .clock = 1, .event_size = 44 },
		{ .size = SIZE, .clock = 1, .flags = 1U << 31 },
		{ .size = 0, .clock = 1 },
	};
	int before = open_descriptors();
	struct twheel_device *d;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		d = (void *)1;
		EXPECT_EQ(-EINVAL, twheel_device_open(&d, NULL, 0, &bad[i]))
			TH_LOG("setup %zu", i);
		EXPECT_EQ(NULL, d);
	}
	EXPECT_EQ(before, open_descriptors());
}

TEST(a_setup_of_a_later_header_must_be_zero_in_what_the_module_does_not_know)
{
	struct {
		struct twheel_setup known;
		uint64_t later;
	} setup = { .known = { .size = sizeof(setup), .clock = TWHEEL_CLOCK_MONOTONIC } };
	struct twheel_device *d;

	ASSERT_EQ(0, twheel_device_open(&d, NULL, 0, &setup.known));
	twheel_device_close(d);
	setup.later = 1ULL << 63;
	EXPECT_EQ(-E2BIG, twheel_device_open(&d, NULL, 0, &setup.known));
	EXPECT_EQ(NULL, d);
}

TEST(open_says_why_it_cannot_open)
{
	static const struct {
		const char *path;
		int expected;
	} cases[] = {
		{ "/dev/twheel-that-is-not-there", -ENOENT },
		{ "/dev/null/twheel", -ENOTDIR },
		{ "/dev", -EISDIR },
		{ "/dev/null", -ENOTTY },
		{ "/proc/self/oom_score_adj", -ENOTTY },
	};
	int before = open_descriptors();
	struct rlimit limit, none = {};
	struct twheel_device *d;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		EXPECT_EQ(cases[i].expected, twheel_device_open(&d, cases[i].path, 0, NULL))
			TH_LOG("%s", cases[i].path);
		EXPECT_EQ(NULL, d);
	}
	EXPECT_EQ(before, open_descriptors());

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	none.rlim_max = limit.rlim_max;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_EQ(-EMFILE, twheel_device_open(&d, NULL, 0, NULL));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
}

static int opens_without_standard_descriptors(void *argument)
{
	struct twheel_device *d;
	int fd;

	(void)argument;
	for (fd = 0; fd <= 2; fd++)
		close(fd);
	if (twheel_device_open(&d, NULL, 0, NULL) || twheel_device_fd(d) <= 2)
		return 1;
	for (fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return 2;
	if (fcntl(twheel_device_fd(d), F_GETFD) != FD_CLOEXEC)
		return 3;
	twheel_device_close(d);
	/* If adopt fails, it keeps none of them, and leaves the others alone. */
	if (open("/dev/twheel", O_RDWR) != 0 || open("/dev/null", O_RDWR) != 1)
		return 4;
	if (twheel_device_adopt(&d, 0, NULL) || twheel_device_fd(d) <= 2)
		return 5;
	if (fcntl(0, F_GETFD) >= 0 || fcntl(1, F_GETFD) != 0)
		return 6;
	return fcntl(twheel_device_fd(d), F_GETFD) == FD_CLOEXEC ? 0 : 7;
}

TEST(descriptors_0_to_2_are_never_taken)
{
	EXPECT_EQ(0, in_child(opens_without_standard_descriptors, NULL));
}

/* ---- taking over --------------------------------------------------------- */

TEST(adopt_of_something_else_fails_and_leaves_it_as_it_is)
{
	struct twheel_device *d = (void *)1;
	int pipes[2], closed = dup(2);

	ASSERT_EQ(0, pipe(pipes));
	close(closed);
	EXPECT_EQ(-EBADF, twheel_device_adopt(&d, -1, NULL));
	EXPECT_EQ(NULL, d);
	EXPECT_EQ(-EBADF, twheel_device_adopt(&d, closed, NULL));
	EXPECT_EQ(-ENOTTY, twheel_device_adopt(&d, pipes[0], NULL));
	EXPECT_EQ(0, fcntl(pipes[0], F_GETFD));
	close(pipes[0]);
	close(pipes[1]);
}

TEST(adopt_sets_a_new_wheel_up)
{
	const struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.flags = TWHEEL_SETUP_KEYED,
	};
	struct twheel_setup bad = setup;
	int fd = tw_open(O_NONBLOCK);
	struct twheel_device *d;
	struct twheel_info info;

	ASSERT_LE(3, fd);
	bad.slots = UINT32_MAX;
	EXPECT_EQ(-EINVAL, twheel_device_adopt(&d, fd, &bad));
	EXPECT_EQ(0, fcntl(fd, F_GETFD));
	ASSERT_EQ(0, twheel_device_adopt(&d, fd, &setup));
	EXPECT_EQ(fd, twheel_device_fd(d));
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	ASSERT_EQ(0, twheel_device_info(d, &info, 0));
	EXPECT_EQ(TWHEEL_CLOCK_VIRTUAL, info.clock);
	EXPECT_EQ(TWHEEL_SETUP_KEYED, info.setup_flags);
	EXPECT_EQ(O_NONBLOCK, fcntl(fd, F_GETFL) & O_NONBLOCK);
	twheel_device_close(d);
	EXPECT_EQ(-1, fcntl(fd, F_GETFD));
}

TEST(adopt_leaves_a_wheel_as_somebody_has_set_it_up)
{
	const struct twheel_setup setup = {
		.size = sizeof(setup), .clock = TWHEEL_CLOCK_VIRTUAL, .slots = 64,
	};
	struct twheel_device *d;
	struct twheel_info info;
	int fd = tw_open(0);
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	ASSERT_EQ(0, twheel_device_adopt(&d, fd, &setup));
	ASSERT_EQ(0, twheel_device_info(d, &info, 0));
	EXPECT_EQ(TWHEEL_CLOCK_MONOTONIC, info.clock);
	EXPECT_NE(64, info.slots);
	EXPECT_EQ(1, info.pending);
	twheel_device_close(d);
}

TEST(adopt_takes_a_drained_wheel_as_well)
{
	struct twheel_device *d;
	int fd = tw_open(0);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_drain(fd));
	ASSERT_EQ(0, twheel_device_adopt(&d, fd, NULL));
	EXPECT_EQ(0, twheel_device_drain(d));
	twheel_device_close(d);
}

static int send_descriptor(int to, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {};
	struct iovec iov = { "", 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(to, &msg, 0) == 1 ? 0 : -errno;
}

static int receive_descriptor(int from)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {};
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd;

	if (recvmsg(from, &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* Run a process that arms keys 1 to 3, sends its wheel away, and dies. */
static int arms_and_dies(void *argument)
{
	const int *socket = argument;
	struct twheel_arm arms[3] = {
		{ .user_data = 1, .expires_ns = 10 * TW_MS },
		{ .user_data = 2, .expires_ns = 20 * TW_MS },
		{ .user_data = 3, .expires_ns = 30 * TW_MS },
	};
	struct twheel_device *d;

	CHILD_NEEDS(!open_virtual(&d, TWHEEL_SETUP_KEYED, 48));
	CHILD_NEEDS(twheel_device_arm_many(d, arms, 3) == 3);
	CHILD_NEEDS(twheel_device_refresh(d, arms[2].id, TW_SEC) == 1);
	CHILD_NEEDS(!send_descriptor(*socket, twheel_device_fd(d)));
	raise(SIGKILL);
	return 1;
}

TEST(a_second_process_takes_over_all_that_pends)
{
	struct twheel_status rows[4], row = { .id = 3 };
	struct twheel_device *d;
	struct twheel_event events[8];
	__u64 seen = 0;
	uint64_t cursor = 0;
	int sockets[2], fd, i;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	EXPECT_EQ(128 + SIGKILL, in_child(arms_and_dies, &sockets[1]));
	fd = receive_descriptor(sockets[0]);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, twheel_device_adopt(&d, fd, NULL));

	ASSERT_EQ(3, twheel_device_list(d, &cursor, rows, 4));
	for (i = 0; i < 3; i++)
		seen |= 1 << rows[i].user_data;
	EXPECT_EQ(2 | 4 | 8, seen);
	EXPECT_EQ(0, twheel_device_list(d, &cursor, rows, 4));
	/* The other process's stores are in force, too. */
	ASSERT_EQ(0, twheel_device_query_key(d, &row));
	EXPECT_LE(TW_SEC, row.deadline_ns);

	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_device_cancel_key(d, 2));
	ASSERT_EQ(0, twheel_device_advance(d, 2 * TW_SEC));
	ASSERT_EQ(2, twheel_device_read(d, events, 8));
	EXPECT_EQ(1, events[0].user_data);
	EXPECT_EQ(10 * TW_MS, events[0].deadline_ns);
	EXPECT_EQ(3, events[1].user_data);
	EXPECT_EQ(row.deadline_ns, events[1].deadline_ns);
	EXPECT_EQ(-EAGAIN, twheel_device_read(d, events, 8));
	EXPECT_ACCOUNTS(fd);
	twheel_device_close(d);
	close(sockets[0]);
	close(sockets[1]);
}

static int uses_and_closes(void *argument)
{
	struct twheel_arm arm = { .expires_ns = 10 * TW_MS, .user_data = 5 };
	struct twheel_device *d = argument;

	CHILD_NEEDS(twheel_device_arm(d, &arm) == TWHEEL_CREATED);
	CHILD_NEEDS(twheel_device_refresh(d, arm.id, 20 * TW_MS) == 1);
	twheel_device_close(d);
	return 0;
}

TEST(a_child_shares_the_device_and_does_not_close_it_for_its_parent)
{
	struct twheel_device *d;
	struct twheel_status row;
	twheel_word_t *table;
	uint64_t cursor = 0;
	uint32_t shift;

	ASSERT_EQ(0, open_virtual(&d, 0, 0));
	ASSERT_EQ(0, twheel_device_map(d, &table, &shift));
	ASSERT_EQ(0, in_child(uses_and_closes, d));
	ASSERT_EQ(1, twheel_device_list(d, &cursor, &row, 1));
	EXPECT_EQ(5, row.user_data);
	EXPECT_LE(20 * TW_MS, row.deadline_ns);
	EXPECT_EQ(1, twheel_device_refresh(d, row.id, 30 * TW_MS));
	twheel_device_close(d);
}

/* ---- one timeout --------------------------------------------------------- */

FIXTURE(device) {
	struct twheel_device *d;
	struct twheel_arm arm;
	struct twheel_event event;
	int fd;
};

FIXTURE_VARIANT(device) {
	__u32 setup_flags;
};

FIXTURE_VARIANT_ADD(device, by_id) { .setup_flags = 0 };
FIXTURE_VARIANT_ADD(device, keyed) { .setup_flags = TWHEEL_SETUP_KEYED };

FIXTURE_SETUP(device)
{
	ASSERT_EQ(0, open_virtual(&self->d, variant->setup_flags, 0));
	self->fd = twheel_device_fd(self->d);
	self->arm = (struct twheel_arm){
		.expires_ns = 10 * TW_MS, .user_data = 7, .id = TW_POISON64,
	};
}

FIXTURE_TEARDOWN(device)
{
	if (fcntl(self->fd, F_GETFD) == FD_CLOEXEC) {
		EXPECT_ACCOUNTS(self->fd);
	}
	twheel_device_close(self->d);
}

#define keyed	(variant->setup_flags == TWHEEL_SETUP_KEYED)

TEST_F(device, arm_arms_and_tells_the_id)
{
	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	EXPECT_EQ(TWHEEL_CREATED, self->arm.result);
	ASSERT_EQ(0, twheel_device_advance(self->d, 10 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &self->event, self->arm.id);
	EXPECT_EQ(7, self->event.user_data);
}

TEST_F(device, arm_of_a_key_that_is_there_replaces)
{
	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	self->arm.expires_ns = 20 * TW_MS;
	if (!keyed) {
		EXPECT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
		return;
	}
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_device_arm(self->d, &self->arm));
	EXPECT_EQ(10 * TW_MS, self->arm.was_deadline_ns);
	self->arm.flags = TWHEEL_ARM_IF_ABSENT;
	EXPECT_EQ(-EEXIST, twheel_device_arm(self->d, &self->arm));
	self->arm.flags = TWHEEL_ARM_ONLY_EARLIER;
	EXPECT_EQ(-ERANGE, twheel_device_arm(self->d, &self->arm));
	self->arm.flags = TWHEEL_ARM_ONLY_LATER;
	self->arm.expires_ns = 15 * TW_MS;
	EXPECT_EQ(-ERANGE, twheel_device_arm(self->d, &self->arm));
	self->arm.flags = TWHEEL_ARM_IF_PRESENT;
	self->arm.user_data = 8;
	EXPECT_EQ(-ENOENT, twheel_device_arm(self->d, &self->arm));
}

TEST_F(device, rearm_tells_what_it_found)
{
	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	self->arm.expires_ns = 20 * TW_MS;
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_device_rearm(self->d, &self->arm));
	ASSERT_EQ(0, twheel_device_advance(self->d, 20 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, twheel_device_rearm(self->d, &self->arm));
	ASSERT_EQ(0, twheel_device_advance(self->d, 40 * TW_MS));
	ASSERT_ONE_EVENT(self->fd, &self->event, self->arm.id);
	EXPECT_EQ(-ENOENT, twheel_device_rearm(self->d, &self->arm));
}

TEST_F(device, rearm_key_moves_the_timeout_of_the_key)
{
	struct twheel_arm by_key = { .id = 7, .expires_ns = 20 * TW_MS };
	struct twheel_status status = {};

	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	ASSERT_EQ(keyed ? TWHEEL_WAS_PENDING : -EINVAL,
		  twheel_device_rearm_key(self->d, &by_key));
	status.id = self->arm.id;
	ASSERT_EQ(0, twheel_device_query(self->d, &status));
	EXPECT_EQ(keyed ? 20 * TW_MS : 10 * TW_MS, status.deadline_ns);
	by_key.id = 8;
	EXPECT_EQ(keyed ? -ENOENT : -EINVAL, twheel_device_rearm_key(self->d, &by_key));
}

TEST_F(device, cancel_tells_what_it_found)
{
	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_device_cancel(self->d, self->arm.id));
	EXPECT_EQ(-ENOENT, twheel_device_cancel(self->d, self->arm.id));
	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	ASSERT_EQ(0, twheel_device_advance(self->d, 10 * TW_MS));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, twheel_device_cancel(self->d, self->arm.id));
	EXPECT_NO_EVENT(self->fd);
}

TEST_F(device, cancel_key_cancels_the_timeout_of_the_key)
{
	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	EXPECT_EQ(keyed ? TWHEEL_WAS_PENDING : -EINVAL, twheel_device_cancel_key(self->d, 7));
	EXPECT_EQ(keyed ? -ENOENT : -EINVAL, twheel_device_cancel_key(self->d, 7));
}

TEST_F(device, query_fills_the_row)
{
	struct twheel_status status;

	memset(&status, TW_POISON, sizeof(status));
	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	status.id = self->arm.id;
	ASSERT_EQ(0, twheel_device_query(self->d, &status));
	EXPECT_EQ(TWHEEL_STATE_PENDING, status.state);
	EXPECT_EQ(10 * TW_MS, status.left_ns);
	status.id = 0;
	EXPECT_EQ(-ENOENT, twheel_device_query(self->d, &status));
	status.id = 7;
	ASSERT_EQ(keyed ? 0 : -EINVAL, twheel_device_query_key(self->d, &status));
	if (keyed) {
		EXPECT_EQ(self->arm.id, status.id);
	}
}

TEST_F(device, an_operation_that_is_refused_and_a_call_that_fails_look_alike)
{
	struct twheel_status status = {};
	struct twheel_info info;
	uint64_t now_ns, cursor = 0;

	self->arm.repeats = 3;		/* a one-shot with a limit */
	EXPECT_EQ(-EINVAL, twheel_device_arm(self->d, &self->arm));
	EXPECT_EQ(0, self->arm.id);
	self->arm.repeats = 0;
	ASSERT_EQ(0, twheel_device_drain(self->d));
	EXPECT_EQ(-ESHUTDOWN, twheel_device_arm(self->d, &self->arm));
	EXPECT_EQ(-ESHUTDOWN, twheel_device_advance(self->d, TW_SEC));
	close(self->fd);
	EXPECT_EQ(-EBADF, twheel_device_arm(self->d, &self->arm));
	EXPECT_EQ(-EBADF, twheel_device_rearm(self->d, &self->arm));
	EXPECT_EQ(-EBADF, twheel_device_rearm_key(self->d, &self->arm));
	EXPECT_EQ(-EBADF, twheel_device_cancel(self->d, 1));
	EXPECT_EQ(-EBADF, twheel_device_cancel_key(self->d, 1));
	EXPECT_EQ(-EBADF, twheel_device_query(self->d, &status));
	EXPECT_EQ(-EBADF, twheel_device_query_key(self->d, &status));
	EXPECT_EQ(-EBADF, twheel_device_info(self->d, &info, 0));
	EXPECT_EQ(-EBADF, twheel_device_now(self->d, &now_ns));
	EXPECT_EQ(-EBADF, twheel_device_list(self->d, &cursor, &status, 1));
	EXPECT_EQ(-EBADF, twheel_device_drain(self->d));
	EXPECT_EQ(-EBADF, twheel_device_advance(self->d, 0));
	EXPECT_EQ(-EBADF, twheel_device_refresh(self->d, 1ULL << 32, 0));
	EXPECT_EQ(-EBADF, twheel_device_read(self->d, &self->event, 1));
}

TEST_F(device, descriptor_for_reading_only_changes_nothing_and_says_ebadf)
{
	int fd = twheel_device_reopen(self->d, O_RDONLY | O_NONBLOCK);
	struct twheel_status status = {};
	struct twheel_device *d;

	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	ASSERT_EQ(0, twheel_device_adopt(&d, fd, NULL));
	EXPECT_EQ(-EBADF, twheel_device_rearm(d, &self->arm));
	EXPECT_EQ(-EBADF, twheel_device_rearm_key(d, &self->arm));
	EXPECT_EQ(-EBADF, twheel_device_cancel(d, self->arm.id));
	EXPECT_EQ(-EBADF, twheel_device_cancel_key(d, self->arm.user_data));
	EXPECT_EQ(-EBADF, twheel_device_drain(d));
	EXPECT_EQ(-EBADF, twheel_device_advance(d, TW_SEC));
	status.id = self->arm.id;
	EXPECT_EQ(-EBADF, twheel_device_arm(d, &self->arm));
	EXPECT_EQ(0, twheel_device_query(d, &status));
	EXPECT_EQ(TWHEEL_STATE_PENDING, status.state);
	EXPECT_EQ(-EAGAIN, twheel_device_read(d, &self->event, 1));
	twheel_device_close(d);
}

TEST_F(device, descriptor_for_writing_only_fetches_nothing_and_says_ebadf)
{
	int fd = twheel_device_reopen(self->d, O_WRONLY | O_NONBLOCK);
	struct twheel_reader *r;
	struct twheel_device *d;

	ASSERT_EQ(0, twheel_device_adopt(&d, fd, NULL));
	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(d, &self->arm));
	ASSERT_EQ(0, twheel_device_advance(d, TW_HOUR));
	EXPECT_EQ(-EBADF, twheel_device_read(d, &self->event, 1));
	ASSERT_EQ(0, twheel_reader_open(&r, d, 1));
	EXPECT_EQ(-EBADF, twheel_reader_next(r, &self->event));
	twheel_reader_close(r);
	EXPECT_EQ(TWHEEL_WAS_UNREAD, twheel_device_cancel(d, self->arm.id));
	twheel_device_close(d);
}

TEST_F(device, now_is_the_time_of_the_wheel)
{
	uint64_t now_ns = TW_POISON64;
	struct twheel_device *other;

	ASSERT_EQ(0, twheel_device_advance(self->d, 1234567));
	ASSERT_EQ(0, twheel_device_now(self->d, &now_ns));
	EXPECT_EQ(1234567, now_ns);
	EXPECT_EQ(-EINVAL, twheel_device_advance(self->d, 1234566));
	ASSERT_EQ(0, twheel_device_open(&other, NULL, 0, NULL));
	EXPECT_EQ(-EOPNOTSUPP, twheel_device_advance(other, TW_SEC));
	twheel_device_close(other);
}

TEST_F(device, list_walks_by_steps)
{
	struct twheel_arm arms[12];
	struct twheel_status rows[5];
	struct twheel_info info;
	uint64_t cursor = 0, seen = 0;
	int i, ret;

	ASSERT_EQ(0, twheel_device_info(self->d, &info, 0));
	for (i = 0; i < 12; i++)
		arms[i] = (struct twheel_arm){ .user_data = i, .expires_ns = TW_SEC };
	ASSERT_EQ(12, twheel_device_arm_many(self->d, arms, 12));
	while ((ret = twheel_device_list(self->d, &cursor, rows, 5)) > 0)
		for (i = 0; i < ret; i++)
			seen |= 1ULL << rows[i].user_data;
	EXPECT_EQ(0, ret);
	EXPECT_EQ((1 << 12) - 1, seen);
	EXPECT_EQ(-EINVAL, twheel_device_list(self->d, &cursor, rows, 0));
	EXPECT_EQ(-E2BIG, twheel_device_list(self->d, &cursor, rows, info.max_vector + 1));
}

/* ---- many timeouts ------------------------------------------------------- */

TEST_F(device, many_are_armed_moved_and_cancelled_by_id)
{
	struct twheel_arm arms[64] = {};
	struct twheel_cancel cancels[64] = {};
	struct twheel_status status = {};
	int i;

	for (i = 0; i < 64; i++)
		arms[i] = (struct twheel_arm){ .user_data = i, .expires_ns = TW_SEC };
	EXPECT_EQ(64, twheel_device_arm_many(self->d, arms, 64));
	for (i = 0; i < 64; i++) {
		EXPECT_EQ(TWHEEL_CREATED, arms[i].result);
		arms[i].expires_ns = 2 * TW_SEC;
		cancels[i].id = arms[i].id;
	}
	EXPECT_EQ(60, twheel_device_rearm_many(self->d, arms, 60));
	EXPECT_EQ(TWHEEL_WAS_PENDING, arms[59].result);
	status.id = arms[59].id;
	ASSERT_EQ(0, twheel_device_query(self->d, &status));
	EXPECT_EQ(2 * TW_SEC, status.deadline_ns);
	status.id = arms[60].id;
	ASSERT_EQ(0, twheel_device_query(self->d, &status));
	EXPECT_EQ(TW_SEC, status.deadline_ns);
	EXPECT_EQ(64, twheel_device_cancel_many(self->d, cancels, 64));
	for (i = 0; i < 64; i++)
		EXPECT_EQ(TWHEEL_WAS_PENDING, cancels[i].result);
	EXPECT_EQ(0, twheel_device_cancel_many(self->d, cancels, 64));
	EXPECT_EQ(-ENOENT, cancels[63].result);
}

TEST_F(device, many_are_moved_and_cancelled_by_key)
{
	struct twheel_arm arms[3] = {
		{ .user_data = 7, .expires_ns = TW_SEC }, { .user_data = 8, .expires_ns = TW_SEC },
		{ .user_data = 9, .expires_ns = TW_SEC },
	};
	struct twheel_cancel cancels[] = { { .id = 8 }, { .id = 10 }, { .id = 7 } };
	struct twheel_status status = { .id = 9 };
	int i;

	ASSERT_EQ(3, twheel_device_arm_many(self->d, arms, 3));
	for (i = 0; i < 3; i++)
		arms[i] = (struct twheel_arm){ .id = 7 + i, .expires_ns = 2 * TW_SEC };
	EXPECT_EQ(keyed ? 3 : 0, twheel_device_rearm_key_many(self->d, arms, 3));
	EXPECT_EQ(keyed ? TWHEEL_WAS_PENDING : -EINVAL, arms[2].result);
	EXPECT_EQ(keyed ? 2 : 0, twheel_device_cancel_key_many(self->d, cancels, 3));
	EXPECT_EQ(keyed ? TWHEEL_WAS_PENDING : -EINVAL, cancels[0].result);
	EXPECT_EQ(keyed ? -ENOENT : -EINVAL, cancels[1].result);
	EXPECT_EQ(keyed ? TWHEEL_WAS_PENDING : -EINVAL, cancels[2].result);
	ASSERT_EQ(keyed ? 0 : -EINVAL, twheel_device_query_key(self->d, &status));
	if (keyed) {
		EXPECT_EQ(2 * TW_SEC, status.deadline_ns);
	}
}

TEST_F(device, operations_on_one_timeout_keep_the_order_of_the_array)
{
	const __u64 deadlines[] = { 20 * TW_MS, 50 * TW_MS, 30 * TW_MS };
	struct twheel_cancel cancels[2] = {};
	struct twheel_status status = {};
	struct twheel_arm arms[3];
	int i;

	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	for (i = 0; i < 3; i++) {
		arms[i] = self->arm;
		arms[i].expires_ns = deadlines[i];
	}
	EXPECT_EQ(3, twheel_device_rearm_many(self->d, arms, 3));
	status.id = self->arm.id;
	ASSERT_EQ(0, twheel_device_query(self->d, &status));
	EXPECT_EQ(30 * TW_MS, status.deadline_ns);
	cancels[0].id = self->arm.id;
	cancels[1].id = self->arm.id;
	EXPECT_EQ(1, twheel_device_cancel_many(self->d, cancels, 2));
	EXPECT_EQ(TWHEEL_WAS_PENDING, cancels[0].result);
	EXPECT_EQ(-ENOENT, cancels[1].result);
	EXPECT_EQ(0, twheel_device_rearm_many(self->d, arms, 1));
	EXPECT_EQ(-ENOENT, arms[0].result);
}

TEST_F(device, many_go_on_past_elements_that_are_refused)
{
	struct twheel_arm arms[30];
	int i;

	for (i = 0; i < 30; i++)
		arms[i] = (struct twheel_arm){
			.user_data = i,
			.expires_ns = TW_SEC,
			.id = TW_POISON64,
			.repeats = i % 3 == 0,	/* a one-shot with a limit: EINVAL */
		};
	EXPECT_EQ(20, twheel_device_arm_many(self->d, arms, 30));
	for (i = 0; i < 30; i++) {
		EXPECT_EQ(i % 3 ? TWHEEL_CREATED : -EINVAL, arms[i].result);
		EXPECT_EQ(i % 3 != 0, arms[i].id != 0);
		EXPECT_NE(TW_POISON64, arms[i].id);
	}
}

TEST_F(device, more_elements_than_max_vector_are_armed_by_one_call)
{
	struct twheel_info info;
	struct twheel_arm *arms;
	__u32 nr, i;

	ASSERT_EQ(0, twheel_device_info(self->d, &info, 0));
	nr = 2 * info.max_vector + 1;
	arms = calloc(nr, sizeof(*arms));
	ASSERT_NE(NULL, arms);
	for (i = 0; i < nr; i++)
		arms[i] = (struct twheel_arm){ .user_data = i, .expires_ns = TW_SEC };
	EXPECT_EQ(nr, twheel_device_arm_many(self->d, arms, nr));
	EXPECT_EQ(TWHEEL_CREATED, arms[nr - 1].result);
	ASSERT_EQ(0, twheel_device_info(self->d, &info, 0));
	EXPECT_EQ(nr, info.pending);
	free(arms);
}

TEST_F(device, an_element_has_all_that_a_timeout_has)
{
	struct twheel_arm arms[2] = {
		{ .user_data = 6, .expires_ns = TW_HOUR },
		{
			.user_data = 7, .expires_ns = 20 * TW_MS, .interval_ns = 10 * TW_MS,
			.flags = TWHEEL_ARM_ABSOLUTE, .repeats = 3,
		},
	};

	ASSERT_EQ(0, twheel_device_advance(self->d, 5 * TW_MS));
	EXPECT_EQ(2, twheel_device_arm_many(self->d, arms, 2));
	ASSERT_EQ(0, twheel_device_advance(self->d, 100 * TW_MS));
	ASSERT_EQ(1, twheel_device_read(self->d, &self->event, 1));
	EXPECT_EQ(arms[1].id, self->event.id);
	EXPECT_EQ(3, self->event.count);
	EXPECT_EQ(40 * TW_MS, self->event.deadline_ns);
}

TEST_F(device, elements_of_a_call_that_fails_have_its_errno)
{
	struct twheel_arm arms[2] = { { .user_data = 7 }, { .user_data = 8 } };
	struct twheel_cancel cancels[2] = { { .id = 7 }, { .id = 8 } };

	EXPECT_EQ(0, twheel_device_cancel_key_many(self->d, cancels, 2));
	EXPECT_EQ(keyed ? -ENOENT : -EINVAL, cancels[0].result);
	EXPECT_EQ(keyed ? -ENOENT : -EINVAL, cancels[1].result);

	close(self->fd);
	EXPECT_EQ(0, twheel_device_arm_many(self->d, arms, 2));
	EXPECT_EQ(-EBADF, arms[0].result);
	EXPECT_EQ(-EBADF, arms[1].result);
	EXPECT_EQ(0, arms[0].id);
	EXPECT_EQ(0, twheel_device_cancel_many(self->d, cancels, 2));
	EXPECT_EQ(-EBADF, cancels[1].result);
}

TEST_F(device, a_drained_wheel_refuses_to_arm_and_still_cancels)
{
	struct twheel_arm arms[2] = { { .user_data = 8 }, { .user_data = 9 } };
	struct twheel_cancel cancel = {};

	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	ASSERT_EQ(0, twheel_device_drain(self->d));
	EXPECT_EQ(0, twheel_device_arm_many(self->d, arms, 2));
	EXPECT_EQ(-ESHUTDOWN, arms[0].result);
	EXPECT_EQ(-ESHUTDOWN, arms[1].result);
	cancel.id = self->arm.id;
	EXPECT_EQ(0, twheel_device_rearm_many(self->d, &self->arm, 1));
	EXPECT_EQ(-ESHUTDOWN, self->arm.result);
	EXPECT_EQ(1, twheel_device_cancel_many(self->d, &cancel, 1));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, cancel.result);
}

TEST(elements_beyond_max_pending_say_eagain)
{
	const struct twheel_setup setup = {
		.size = sizeof(setup), .clock = TWHEEL_CLOCK_VIRTUAL, .max_pending = 3,
	};
	struct twheel_arm arms[5];
	struct twheel_device *d;
	int i;

	ASSERT_EQ(0, twheel_device_open(&d, NULL, 0, &setup));
	for (i = 0; i < 5; i++)
		arms[i] = (struct twheel_arm){ .user_data = i, .expires_ns = TW_SEC };
	EXPECT_EQ(3, twheel_device_arm_many(d, arms, 5));
	EXPECT_EQ(TWHEEL_CREATED, arms[2].result);
	EXPECT_EQ(-EAGAIN, arms[3].result);
	EXPECT_EQ(-EAGAIN, arms[4].result);
	twheel_device_close(d);
}

/* ---- batches ------------------------------------------------------------- */

FIXTURE(batch) {
	struct twheel_device *d;
	struct twheel_batch *b;
	struct twheel_reader *r;
	struct twheel_arm arm;
	struct twheel_event event;
	int fd;
};

FIXTURE_VARIANT(batch) {
	__u32 setup_flags;
};

FIXTURE_VARIANT_ADD(batch, by_id) { .setup_flags = 0 };
FIXTURE_VARIANT_ADD(batch, keyed) { .setup_flags = TWHEEL_SETUP_KEYED };

#define CAPACITY	64

FIXTURE_SETUP(batch)
{
	ASSERT_EQ(0, open_virtual(&self->d, variant->setup_flags, 0));
	ASSERT_EQ(0, twheel_batch_open(&self->b, self->d, CAPACITY));
	ASSERT_EQ(0, twheel_reader_open(&self->r, self->d, 4));
	self->fd = twheel_device_fd(self->d);
	self->arm = (struct twheel_arm){
		.expires_ns = 10 * TW_MS, .user_data = 7, .id = TW_POISON64,
	};
}

FIXTURE_TEARDOWN(batch)
{
	if (fcntl(self->fd, F_GETFD) == FD_CLOEXEC) {
		EXPECT_ACCOUNTS(self->fd);
	}
	twheel_reader_close(self->r);
	twheel_batch_close(self->b);
	twheel_device_close(self->d);
}

TEST_F(batch, a_batch_takes_1_to_max_vector_elements)
{
	struct twheel_batch *b = (void *)1;
	struct twheel_info info;

	ASSERT_EQ(0, twheel_device_info(self->d, &info, 0));
	EXPECT_EQ(-EINVAL, twheel_batch_open(&b, self->d, 0));
	EXPECT_EQ(NULL, b);
	EXPECT_EQ(-EINVAL, twheel_batch_open(&b, self->d, info.max_vector + 1));
	ASSERT_EQ(0, twheel_batch_open(&b, self->d, info.max_vector));
	EXPECT_EQ(0, twheel_batch_nr(b));
	EXPECT_EQ(0, twheel_batch_submit(b));
	twheel_batch_close(b);
	twheel_batch_close(NULL);
}

TEST_F(batch, a_full_batch_refuses_each_kind_and_does_the_others)
{
	int i;

	for (i = 0; i < CAPACITY; i++)
		ASSERT_NE(NULL, twheel_batch_arm(self->b, i, TW_SEC));
	EXPECT_EQ(NULL, twheel_batch_arm(self->b, 100, TW_SEC));
	EXPECT_EQ(NULL, twheel_batch_rearm(self->b, 100, TW_SEC));
	EXPECT_EQ(NULL, twheel_batch_rearm_key(self->b, 100, TW_SEC));
	EXPECT_EQ(NULL, twheel_batch_cancel(self->b, 100));
	EXPECT_EQ(NULL, twheel_batch_cancel_key(self->b, 100));
	EXPECT_EQ(CAPACITY, twheel_batch_nr(self->b));
	EXPECT_EQ(CAPACITY, twheel_batch_submit(self->b));
}

TEST_F(batch, a_batch_keeps_the_order_of_operations_on_one_timeout)
{
	struct twheel_status status = {};
	struct twheel_arm *last;
	__u64 id;

	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	id = self->arm.id;
	twheel_batch_rearm(self->b, id, 20 * TW_MS);
	twheel_batch_cancel(self->b, id);
	twheel_batch_cancel(self->b, id);
	twheel_batch_rearm(self->b, id, 30 * TW_MS);
	twheel_batch_arm(self->b, 7, 40 * TW_MS);
	last = keyed ? twheel_batch_rearm_key(self->b, 7, 50 * TW_MS) : NULL;
	EXPECT_EQ(-EINPROGRESS, twheel_batch_result(self->b, 0));
	EXPECT_EQ(-EINPROGRESS, twheel_batch_result(self->b, 1));
	EXPECT_EQ(keyed ? 4 : 3, twheel_batch_submit(self->b));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_batch_result(self->b, 0));
	EXPECT_EQ(TWHEEL_WAS_PENDING, twheel_batch_result(self->b, 1));
	EXPECT_EQ(-ENOENT, twheel_batch_result(self->b, 2));
	EXPECT_EQ(-ENOENT, twheel_batch_result(self->b, 3));
	EXPECT_EQ(TWHEEL_CREATED, twheel_batch_result(self->b, 4));
	EXPECT_EQ(id, twheel_batch_id(self->b, 0));
	EXPECT_EQ(id, twheel_batch_id(self->b, 1));
	status.id = twheel_batch_id(self->b, 4);
	EXPECT_NE(id, status.id);
	ASSERT_EQ(0, twheel_device_query(self->d, &status));
	EXPECT_EQ(keyed ? 50 * TW_MS : 40 * TW_MS, status.deadline_ns);
	if (keyed) {
		EXPECT_EQ(TWHEEL_WAS_PENDING, last->result);
		EXPECT_EQ(7, twheel_batch_id(self->b, 5));
	}
	EXPECT_EQ(-EINVAL, twheel_batch_result(self->b, twheel_batch_nr(self->b)));
	EXPECT_EQ(0, twheel_batch_id(self->b, twheel_batch_nr(self->b)));
}

TEST_F(batch, a_batch_goes_on_past_elements_that_are_refused)
{
	int i, good = 0;

	for (i = 0; i < 30; i++) {
		struct twheel_arm *arm = twheel_batch_arm(self->b, i, TW_SEC);

		arm->repeats = i % 3 == 0;	/* a one-shot with a limit: EINVAL */
	}
	twheel_batch_cancel(self->b, 1);
	EXPECT_EQ(20, twheel_batch_submit(self->b));
	for (i = 0; i < 30; i++) {
		EXPECT_EQ(i % 3 ? TWHEEL_CREATED : -EINVAL, twheel_batch_result(self->b, i));
		EXPECT_EQ(i % 3 != 0, twheel_batch_id(self->b, i) != 0);
		good += twheel_batch_result(self->b, i) > 0;
	}
	EXPECT_EQ(20, good);
	EXPECT_EQ(-ENOENT, twheel_batch_result(self->b, 30));
}

TEST_F(batch, an_element_is_the_programs_to_refine)
{
	struct twheel_arm *arm;

	ASSERT_EQ(0, twheel_device_advance(self->d, 5 * TW_MS));
	arm = twheel_batch_arm(self->b, 7, 20 * TW_MS);
	arm->flags = TWHEEL_ARM_ABSOLUTE;
	arm->interval_ns = 10 * TW_MS;
	arm->repeats = 3;
	EXPECT_EQ(1, twheel_batch_submit(self->b));
	EXPECT_EQ(arm->id, twheel_batch_id(self->b, 0));
	ASSERT_EQ(0, twheel_device_advance(self->d, 100 * TW_MS));
	ASSERT_EQ(1, twheel_reader_next(self->r, &self->event));
	EXPECT_EQ(arm->id, self->event.id);
	EXPECT_EQ(3, self->event.count);
	EXPECT_EQ(40 * TW_MS, self->event.deadline_ns);
}

TEST_F(batch, a_batch_submits_what_is_new_and_reset_empties_it)
{
	struct twheel_info info;
	int round, i;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < 5; i++) {
			twheel_batch_arm(self->b, 10 * round + i, TW_SEC);
			EXPECT_EQ(1, twheel_batch_submit(self->b));
			EXPECT_EQ(0, twheel_batch_submit(self->b));
		}
		EXPECT_EQ(5, twheel_batch_nr(self->b));
		twheel_batch_reset(self->b);
		EXPECT_EQ(0, twheel_batch_nr(self->b));
		EXPECT_EQ(-EINVAL, twheel_batch_result(self->b, 0));
	}
	/* If an element is not submitted, it is not done. */
	twheel_batch_arm(self->b, 100, TW_SEC);
	twheel_batch_reset(self->b);
	EXPECT_EQ(0, twheel_batch_submit(self->b));
	ASSERT_EQ(0, twheel_device_info(self->d, &info, 0));
	EXPECT_EQ(15, info.armed);
}

TEST_F(batch, elements_of_a_call_that_fails_have_its_errno)
{
	twheel_batch_arm(self->b, 7, TW_SEC);
	twheel_batch_cancel_key(self->b, 7);
	twheel_batch_cancel_key(self->b, 8);
	twheel_batch_arm(self->b, 9, TW_SEC);
	EXPECT_EQ(keyed ? 3 : 2, twheel_batch_submit(self->b));
	EXPECT_EQ(TWHEEL_CREATED, twheel_batch_result(self->b, 0));
	EXPECT_EQ(keyed ? TWHEEL_WAS_PENDING : -EINVAL, twheel_batch_result(self->b, 1));
	EXPECT_EQ(keyed ? -ENOENT : -EINVAL, twheel_batch_result(self->b, 2));
	EXPECT_EQ(TWHEEL_CREATED, twheel_batch_result(self->b, 3));
	twheel_batch_reset(self->b);

	close(self->fd);
	twheel_batch_arm(self->b, 7, TW_SEC);
	twheel_batch_cancel(self->b, 7);
	EXPECT_EQ(0, twheel_batch_submit(self->b));
	EXPECT_EQ(-EBADF, twheel_batch_result(self->b, 0));
	EXPECT_EQ(0, twheel_batch_id(self->b, 0));
	EXPECT_EQ(-EBADF, twheel_batch_result(self->b, 1));
}

TEST_F(batch, a_drained_wheel_refuses_to_arm_and_still_cancels)
{
	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	ASSERT_EQ(0, twheel_device_drain(self->d));
	twheel_batch_arm(self->b, 8, TW_SEC);
	twheel_batch_arm(self->b, 9, TW_SEC);
	twheel_batch_rearm(self->b, self->arm.id, TW_SEC);
	twheel_batch_cancel(self->b, self->arm.id);
	EXPECT_EQ(1, twheel_batch_submit(self->b));
	EXPECT_EQ(-ESHUTDOWN, twheel_batch_result(self->b, 0));
	EXPECT_EQ(-ESHUTDOWN, twheel_batch_result(self->b, 1));
	EXPECT_EQ(-ESHUTDOWN, twheel_batch_result(self->b, 2));
	EXPECT_EQ(TWHEEL_WAS_UNREAD, twheel_batch_result(self->b, 3));
}

TEST(elements_of_a_batch_beyond_max_pending_say_eagain)
{
	const struct twheel_setup setup = {
		.size = sizeof(setup), .clock = TWHEEL_CLOCK_VIRTUAL, .max_pending = 3,
	};
	struct twheel_device *d;
	struct twheel_batch *b;
	int i;

	ASSERT_EQ(0, twheel_device_open(&d, NULL, 0, &setup));
	ASSERT_EQ(0, twheel_batch_open(&b, d, 8));
	for (i = 0; i < 5; i++)
		twheel_batch_arm(b, i, TW_SEC);
	EXPECT_EQ(3, twheel_batch_submit(b));
	EXPECT_EQ(TWHEEL_CREATED, twheel_batch_result(b, 2));
	EXPECT_EQ(-EAGAIN, twheel_batch_result(b, 3));
	EXPECT_EQ(-EAGAIN, twheel_batch_result(b, 4));
	twheel_batch_close(b);
	twheel_device_close(d);
}

/* ---- events -------------------------------------------------------------- */

FIXTURE(events) {
	struct twheel_device *d;
	struct twheel_event event[10];
};

FIXTURE_VARIANT(events) {
	__u32 size;
};

FIXTURE_VARIANT_ADD(events, of_the_default) { .size = 0 };
FIXTURE_VARIANT_ADD(events, of_40_bytes) { .size = 40 };
FIXTURE_VARIANT_ADD(events, of_48_bytes) { .size = 48 };
FIXTURE_VARIANT_ADD(events, of_4096_bytes) { .size = 4096 };

FIXTURE_SETUP(events)
{
	ASSERT_EQ(0, open_virtual(&self->d, 0, variant->size));
	memset(&self->event, TW_POISON, sizeof(self->event));
}

FIXTURE_TEARDOWN(events)
{
	twheel_device_close(self->d);
}

/* Arm as many timeouts, and let them expire one after the other. */
static void expire(struct __test_metadata *_metadata, struct twheel_device *d, int nr, __u64 *ids)
{
	int i;

	for (i = 0; i < nr; i++) {
		struct twheel_arm arm = { .expires_ns = (i + 1) * TW_MS, .user_data = i };

		ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(d, &arm));
		ids[i] = arm.id;
	}
	ASSERT_EQ(0, twheel_device_advance(d, TW_SEC));
}

TEST_F(events, events_come_in_the_order_of_their_deadlines_and_as_many_as_there_is_room_for)
{
	int i, got = 0, ret;
	__u64 ids[10];

	expire(_metadata, self->d, 10, ids);
	/* If events have 4096 bytes, two are fetched at a time. */
	while (got < 10) {
		ret = twheel_device_read(self->d, self->event, 4);
		ASSERT_EQ(variant->size == 4096 ? 2 : got < 8 ? 4 : 2, ret);
		for (i = 0; i < ret; i++, got++) {
			EXPECT_EQ(ids[got], self->event[i].id);
			EXPECT_EQ(got, self->event[i].user_data);
			EXPECT_EQ((got + 1) * TW_MS, self->event[i].deadline_ns);
			EXPECT_EQ(TWHEEL_EVENT_ENDED, self->event[i].flags);
		}
	}
	EXPECT_EQ(-EAGAIN, twheel_device_read(self->d, self->event, 4));
	for (i = 4; i < 10; i++)
		EXPECT_EQ(TW_POISON64, self->event[i].id);
}

TEST_F(events, events_end_when_the_wheel_was_drained)
{
	struct twheel_arm arm = { .expires_ns = TW_SEC, .user_data = 7 };

	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &arm));
	ASSERT_EQ(0, twheel_device_drain(self->d));
	ASSERT_EQ(1, twheel_device_read(self->d, self->event, 4));
	EXPECT_EQ(TW_DRAINED, self->event[0].flags);
	EXPECT_EQ(7, self->event[0].user_data);
	EXPECT_EQ(0, twheel_device_read(self->d, self->event, 4));
	EXPECT_EQ(0, twheel_device_read(self->d, self->event, 4));
}

TEST_F(events, events_come_of_the_wheel_only)
{
	int pipes[2];

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(3, write(pipes[1], "abc", 3));
	ASSERT_EQ(twheel_device_fd(self->d), dup2(pipes[0], twheel_device_fd(self->d)));
	EXPECT_EQ(-EIO, twheel_device_read(self->d, self->event, 4));
	close(pipes[0]);
	close(pipes[1]);
}

TEST_F(events, events_need_room)
{
	__u64 ids[2];

	expire(_metadata, self->d, 2, ids);
	EXPECT_EQ(-EINVAL, twheel_device_read(self->d, self->event, 0));
	EXPECT_EQ(TW_POISON64, self->event[0].id);
	EXPECT_EQ(1, twheel_device_read(self->d, self->event, 1));
	EXPECT_EQ(1, twheel_device_read(self->d, self->event, 1));
}

static void on_signal(int signal)
{
	(void)signal;
}

TEST(a_blocking_read_waits_and_a_signal_ends_the_wait)
{
	const struct itimerspec often = {
		.it_value.tv_nsec = 50 * TW_MS, .it_interval.tv_nsec = 50 * TW_MS,
	};
	struct sigaction action = { .sa_handler = on_signal };
	struct sigevent by_signal = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct twheel_arm arm = { .expires_ns = 20 * TW_MS, .user_data = 7 };
	struct twheel_event event;
	struct twheel_device *d;
	timer_t timer;

	ASSERT_EQ(0, twheel_device_open(&d, NULL, 0, NULL));
	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(d, &arm));
	ASSERT_EQ(1, twheel_device_read(d, &event, 1));
	EXPECT_EQ(7, event.user_data);
	EXPECT_LE(event.deadline_ns, event.fired_ns);

	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, timer_create(CLOCK_MONOTONIC, &by_signal, &timer));
	ASSERT_EQ(0, timer_settime(timer, 0, &often, NULL));
	EXPECT_EQ(-EINTR, twheel_device_read(d, &event, 1));
	timer_delete(timer);
	twheel_device_close(d);
}

/* ---- readers ------------------------------------------------------------- */

FIXTURE(reader) {
	struct twheel_device *d;
	struct twheel_reader *r;
	struct twheel_event event;
};

FIXTURE_VARIANT(reader) {
	__u32 size;
};

FIXTURE_VARIANT_ADD(reader, of_the_default) { .size = 0 };
FIXTURE_VARIANT_ADD(reader, of_40_bytes) { .size = 40 };
FIXTURE_VARIANT_ADD(reader, of_48_bytes) { .size = 48 };
FIXTURE_VARIANT_ADD(reader, of_4096_bytes) { .size = 4096 };

FIXTURE_SETUP(reader)
{
	ASSERT_EQ(0, open_virtual(&self->d, 0, variant->size));
	ASSERT_EQ(0, twheel_reader_open(&self->r, self->d, 4));
	memset(&self->event, TW_POISON, sizeof(self->event));
}

FIXTURE_TEARDOWN(reader)
{
	twheel_reader_close(self->r);
	twheel_device_close(self->d);
}

TEST_F(reader, events_of_a_reader_come_one_after_the_other)
{
	__u64 ids[10];
	int i;

	for (i = 0; i < 10; i++) {
		struct twheel_arm arm = { .expires_ns = (i + 1) * TW_MS, .user_data = i };

		ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &arm));
		ids[i] = arm.id;
	}
	ASSERT_EQ(0, twheel_device_advance(self->d, TW_SEC));
	EXPECT_EQ(0, twheel_reader_left(self->r));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(1, twheel_reader_next(self->r, &self->event));
		EXPECT_EQ(ids[i], self->event.id);
		EXPECT_EQ(i, self->event.user_data);
		EXPECT_EQ((i + 1) * TW_MS, self->event.deadline_ns);
		EXPECT_EQ(TWHEEL_EVENT_ENDED, self->event.flags);
		/* They come by fours, and the last two together. */
		EXPECT_EQ(i < 8 ? 3 - i % 4 : 9 - i, twheel_reader_left(self->r));
	}
	EXPECT_EQ(-EAGAIN, twheel_reader_next(self->r, &self->event));
}

TEST_F(reader, events_of_a_reader_end_when_the_wheel_was_drained)
{
	struct twheel_arm arm = { .expires_ns = TW_SEC, .user_data = 7 };

	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &arm));
	ASSERT_EQ(0, twheel_device_drain(self->d));
	ASSERT_EQ(1, twheel_reader_next(self->r, &self->event));
	EXPECT_EQ(TW_DRAINED, self->event.flags);
	EXPECT_EQ(7, self->event.user_data);
	EXPECT_EQ(0, twheel_reader_next(self->r, &self->event));
	EXPECT_EQ(0, twheel_reader_next(self->r, &self->event));
	EXPECT_EQ(0, twheel_reader_left(self->r));
}

TEST_F(reader, events_go_to_one_reader_each)
{
	struct twheel_arm arm = { .expires_ns = TW_MS };
	struct twheel_reader *other;
	int i;

	for (i = 0; i < 6; i++)
		ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &arm));
	ASSERT_EQ(0, twheel_device_advance(self->d, TW_SEC));
	ASSERT_EQ(0, twheel_reader_open(&other, self->d, 1));
	ASSERT_EQ(1, twheel_reader_next(self->r, &self->event));
	EXPECT_EQ(3, twheel_reader_left(self->r));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(1, twheel_reader_next(other, &self->event));
	EXPECT_EQ(-EAGAIN, twheel_reader_next(other, &self->event));
	twheel_reader_close(other);
}

TEST_F(reader, events_of_a_reader_come_of_the_wheel_only)
{
	int pipes[2];

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(3, write(pipes[1], "abc", 3));
	ASSERT_EQ(twheel_device_fd(self->d), dup2(pipes[0], twheel_device_fd(self->d)));
	EXPECT_EQ(-EIO, twheel_reader_next(self->r, &self->event));
	EXPECT_EQ(0, twheel_reader_left(self->r));
	close(pipes[0]);
	close(pipes[1]);
}

TEST_F(reader, a_reader_takes_1_to_65536_of_them)
{
	struct twheel_reader *r = (void *)1;

	EXPECT_EQ(-EINVAL, twheel_reader_open(&r, self->d, 0));
	EXPECT_EQ(NULL, r);
	EXPECT_EQ(-EINVAL, twheel_reader_open(&r, self->d, 65537));
	ASSERT_EQ(0, twheel_reader_open(&r, self->d, 65536));
	EXPECT_EQ(-EAGAIN, twheel_reader_next(r, &self->event));
	twheel_reader_close(r);
	twheel_reader_close(NULL);
}

TEST(a_blocking_reader_waits_and_a_signal_ends_the_wait)
{
	const struct itimerspec often = {
		.it_value.tv_nsec = 50 * TW_MS, .it_interval.tv_nsec = 50 * TW_MS,
	};
	struct sigaction action = { .sa_handler = on_signal };
	struct sigevent by_signal = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct twheel_arm arm = { .expires_ns = 20 * TW_MS, .user_data = 7 };
	struct twheel_event event;
	struct twheel_device *d;
	struct twheel_reader *r;
	timer_t timer;

	ASSERT_EQ(0, twheel_device_open(&d, NULL, 0, NULL));
	ASSERT_EQ(0, twheel_reader_open(&r, d, 4));
	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(d, &arm));
	ASSERT_EQ(1, twheel_reader_next(r, &event));
	EXPECT_EQ(7, event.user_data);
	EXPECT_LE(event.deadline_ns, event.fired_ns);

	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, timer_create(CLOCK_MONOTONIC, &by_signal, &timer));
	ASSERT_EQ(0, timer_settime(timer, 0, &often, NULL));
	EXPECT_EQ(-EINTR, twheel_reader_next(r, &event));
	timer_delete(timer);
	twheel_reader_close(r);
	twheel_device_close(d);
}

/* ---- the refresh table --------------------------------------------------- */

TEST_F(device, refresh_moves_a_timeout_to_a_later_deadline)
{
	struct twheel_status status = {};

	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	EXPECT_EQ(1, twheel_device_refresh(self->d, self->arm.id, TW_SEC));
	status.id = self->arm.id;
	ASSERT_EQ(0, twheel_device_query(self->d, &status));
	EXPECT_LE(TW_SEC, status.deadline_ns);
	EXPECT_GT(TW_SEC + TW_MS, status.deadline_ns);
}

TEST_F(device, refresh_of_a_timeout_whose_place_another_one_has_stores_nothing)
{
	struct twheel_status status = {};
	twheel_word_t *table;
	uint32_t shift;
	__u64 old = 0;
	int tries;

	ASSERT_EQ(0, twheel_device_map(self->d, &table, &shift));
	/* Go on until the place of the first one comes round. */
	for (tries = 0; tries < 1000; tries++) {
		ASSERT_EQ(0, twheel_device_advance(self->d, 0));
		ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
		old = old ?: self->arm.id;
		if (old != self->arm.id && (__u32)old == (__u32)self->arm.id)
			break;
		ASSERT_EQ(TWHEEL_WAS_PENDING, twheel_device_cancel(self->d, self->arm.id));
	}
	ASSERT_NE(1000, tries);
	EXPECT_EQ(0, twheel_device_refresh(self->d, old, TW_SEC));
	status.id = self->arm.id;
	ASSERT_EQ(0, twheel_device_query(self->d, &status));
	EXPECT_EQ(10 * TW_MS, status.deadline_ns);
}

TEST_F(device, refresh_of_an_id_that_cannot_be_says_einval)
{
	struct twheel_info info;

	ASSERT_EQ(0, twheel_device_info(self->d, &info, 0));
	EXPECT_EQ(-EINVAL, twheel_device_refresh(self->d, 0, TW_SEC));
	EXPECT_EQ(-EINVAL, twheel_device_refresh(self->d, 1ULL << 32 | info.refresh_size / 8,
						 TW_SEC));
	EXPECT_EQ(-EINVAL, twheel_device_refresh(self->d, UINT64_MAX, TW_SEC));
}

TEST_F(device, map_tells_the_table_of_the_wheel)
{
	twheel_word_t *table = NULL, *again = NULL;
	struct twheel_status status = {};
	struct twheel_info info;
	uint64_t later;
	uint32_t shift;

	ASSERT_EQ(0, twheel_device_info(self->d, &info, 0));
	ASSERT_EQ(0, twheel_device_map(self->d, &table, &shift));
	EXPECT_EQ(info.refresh_shift, shift);
	ASSERT_EQ(TWHEEL_CREATED, twheel_device_arm(self->d, &self->arm));
	later = twheel_refresh_deadline(20 * TW_MS, shift);
	twheel_refresh_blind(table, self->arm.id, later);
	status.id = self->arm.id;
	ASSERT_EQ(0, twheel_device_query(self->d, &status));
	EXPECT_LE(20 * TW_MS, status.deadline_ns);
	EXPECT_EQ(1, twheel_refresh(table, self->arm.id,
				    twheel_refresh_deadline(30 * TW_MS, shift)));
	ASSERT_EQ(0, twheel_device_query(self->d, &status));
	EXPECT_LE(30 * TW_MS, status.deadline_ns);
	ASSERT_EQ(0, twheel_device_map(self->d, &again, &shift));
	EXPECT_EQ(table, again);
}

struct mapper {
	struct twheel_device *d;
	pthread_barrier_t *start;
	twheel_word_t *table;
	int ret;
};

static void *maps(void *argument)
{
	struct mapper *m = argument;
	uint32_t shift;

	pthread_barrier_wait(m->start);
	m->ret = twheel_device_map(m->d, &m->table, &shift);
	return NULL;
}

/* Return how many mappings of the device the process has. */
static int mappings(void)
{
	FILE *maps_of_us = fopen("/proc/self/maps", "r");
	char line[512];
	int nr = 0;

	if (!maps_of_us)
		return -1;
	while (fgets(line, sizeof(line), maps_of_us))
		nr += !!strstr(line, "/dev/twheel");
	fclose(maps_of_us);
	return nr;
}

TEST(threads_that_map_at_once_get_one_table)
{
	int round, i;

	for (round = 0; round < 50; round++) {
		struct mapper mapper[3];
		pthread_barrier_t start;
		struct twheel_device *d;
		pthread_t thread[3];

		ASSERT_EQ(0, twheel_device_open(&d, NULL, 0, NULL));
		pthread_barrier_init(&start, NULL, 3);
		for (i = 0; i < 3; i++) {
			mapper[i] = (struct mapper){ .d = d, .start = &start };
			ASSERT_EQ(0, pthread_create(&thread[i], NULL, maps, &mapper[i]));
		}
		for (i = 0; i < 3; i++) {
			pthread_join(thread[i], NULL);
			EXPECT_EQ(0, mapper[i].ret);
			EXPECT_EQ(mapper[0].table, mapper[i].table);
		}
		EXPECT_EQ(1, mappings());
		twheel_device_close(d);
		EXPECT_EQ(0, mappings());
	}
}

/* ---- descriptors for reading only ---------------------------------------- */

TEST(a_descriptor_for_reading_only_is_adopted_when_the_wheel_is_set_up)
{
	struct twheel_device *owner, *d;
	struct twheel_event event;
	struct twheel_info info;
	int fd;

	ASSERT_EQ(0, open_virtual(&owner, 0, 48));
	fd = twheel_device_reopen(owner, O_RDONLY | O_NONBLOCK);
	ASSERT_LE(0, fd);
	EXPECT_EQ(O_RDONLY | O_NONBLOCK, fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK));
	ASSERT_EQ(0, twheel_device_adopt(&d, fd, NULL));
	ASSERT_EQ(0, twheel_device_info(d, &info, 0));
	EXPECT_EQ(TWHEEL_CLOCK_VIRTUAL, info.clock);
	ASSERT_EQ(1, twheel_device_arm_many(owner, &(struct twheel_arm){ .user_data = 7 }, 1));
	ASSERT_EQ(0, twheel_device_advance(owner, 0));
	ASSERT_EQ(1, twheel_device_read(d, &event, 1));
	EXPECT_EQ(7, event.user_data);
	EXPECT_EQ(-EBADF, twheel_device_cancel(d, event.id));
	EXPECT_EQ(-EBADF, twheel_device_advance(d, TW_SEC));
	EXPECT_EQ(-EBADF, twheel_device_drain(d));
	EXPECT_EQ(-EBADF, twheel_device_reopen(d, O_RDWR));
	EXPECT_EQ(-EINVAL, twheel_device_reopen(d, O_CREAT));
	twheel_device_close(d);
	twheel_device_close(owner);
}

/* If it were adopted, its configuration would not be final. */
TEST(a_descriptor_for_reading_only_of_a_new_wheel_is_not_adopted)
{
	int fd = open(TW_DEVICE, O_RDONLY);
	struct twheel_device *d;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBADF, twheel_device_adopt(&d, fd, NULL));
	EXPECT_EQ(NULL, d);
	EXPECT_EQ(0, close(fd));
}

TEST(a_descriptor_for_reading_only_cannot_be_mapped_for_stores)
{
	struct twheel_device *owner, *d;
	twheel_word_t *table;
	uint32_t shift;

	ASSERT_EQ(0, open_virtual(&owner, 0, 48));
	ASSERT_EQ(0, twheel_device_adopt(&d, twheel_device_reopen(owner, O_RDONLY), NULL));
	EXPECT_EQ(-EACCES, twheel_device_map(d, &table, &shift));
	EXPECT_EQ(-EACCES, twheel_device_refresh(d, 1ULL << 32, TW_SEC));
	twheel_device_close(d);
	twheel_device_close(owner);
}

TEST_HARNESS_MAIN
