// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring: reads wait for events, and writes for places, without a worker thread of io_uring
 * (iou-wrk-*); and no ring keeps its process or its wheel from ending.
 */
#include "twheel_commands.h"
#include "twheel_outside.h"

#include <dirent.h>
#include <liburing.h>
#include <pthread.h>
#include <signal.h>
#include <sys/uio.h>

/* Since Linux 6.7; the number is that of the ABI, whatever liburing is there. */
#define OP_READ_MULTISHOT	49

/* The number of IORING_OP_URING_CMD, and where its cmd is in a submission. */
#define OP_URING_CMD		46
#define CMD_OFFSET		48

#define EVENT_BYTES	((int)sizeof(struct twheel_event))
#define RECORD_BYTES	((int)sizeof(struct twheel_record))
#define ENTRIES		64
#define NOTHING		(-ETIME)	/* no completion has come */

/* Count the threads of this process that io_uring has made. */
static int nr_workers(void)
{
	DIR *dir = opendir("/proc/self/task");
	char path[64], comm[32];
	struct dirent *entry;
	int nr = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(comm, sizeof(comm), file) && !strncmp(comm, "iou-wrk", 7))
			nr++;
		fclose(file);
	}
	closedir(dir);
	return nr;
}

FIXTURE(ring) {
	int fd;
	struct io_uring ring;
	struct twheel_event events[ENTRIES];
};

FIXTURE_SETUP(ring)
{
	int ret = io_uring_queue_init(ENTRIES, &self->ring, 0);

	self->fd = -1;
	if (ret)
		SKIP(return, "no io_uring here: %s", strerror(-ret));
	self->fd = tw_virtual(0, TW_MS);
	ASSERT_LE(0, self->fd);
	memset(self->events, TW_POISON, sizeof(self->events));
}

FIXTURE_TEARDOWN(ring)
{
	if (self->fd < 0)
		return;
	EXPECT_ACCOUNTS(self->fd);
	io_uring_queue_exit(&self->ring);
	close(self->fd);
}

#define ASSERT_NO_WORKER() ASSERT_EQ(0, nr_workers())

/* Return the result of the next completion, and its user_data; NOTHING if none comes. */
static int next_result(struct io_uring *ring, int patience_ms, __u64 *whose, __u32 *flags)
{
	struct __kernel_timespec patience = {
		.tv_sec = patience_ms / 1000,
		.tv_nsec = patience_ms % 1000 * TW_MS,
	};
	struct io_uring_cqe *cqe;
	int ret;

	do {
		ret = io_uring_wait_cqe_timeout(ring, &cqe, &patience);
	} while (ret == -EINTR);
	if (ret)
		return ret;
	ret = cqe->res;
	*whose = cqe->user_data;
	if (flags)
		*flags = cqe->flags;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

#define EXPECT_RESULT(ring, expected, its) do {					\
	__u64 __whose = ~0ULL;							\
	EXPECT_EQ(expected, next_result(ring, TW_PATIENCE_MS, &__whose, NULL));	\
	EXPECT_EQ((__u64)(its), __whose);					\
} while (0)

#define EXPECT_NO_RESULT(ring) do {						\
	__u64 __whose;								\
	EXPECT_EQ(NOTHING, next_result(ring, 50, &__whose, NULL));		\
} while (0)

static struct io_uring_sqe *put_read(struct io_uring *ring, int fd,
				     struct twheel_event *event, __u64 its)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_read(sqe, fd, event, sizeof(*event), -1);
	sqe->user_data = its;
	return sqe;
}

static struct io_uring_sqe *put_write(struct io_uring *ring, int fd,
				      const struct twheel_record *records, int nr, __u64 its)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_write(sqe, fd, records, nr * sizeof(*records), -1);
	sqe->user_data = its;
	return sqe;
}

static void put_cancel(struct io_uring *ring, __u64 whose, __u64 its)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_cancel64(sqe, whose, 0);
	sqe->user_data = its;
}

/* An ioctl as a submission; the words are at the same place for any liburing. */
static struct io_uring_sqe *put_ioctl(struct io_uring *ring, int fd, __u32 cmd, const void *arg,
				      __u64 its)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = OP_URING_CMD;
	sqe->fd = fd;
	sqe->off = cmd;
	memcpy((char *)sqe + CMD_OFFSET, &arg, sizeof(arg));
	sqe->user_data = its;
	return sqe;
}

/* ---- ioctls -------------------------------------------------------------- */

#define VECTOR_OF(entry, nr_of_them) {						\
	.size = sizeof(struct twheel_vector), .entry_size = sizeof(*(entry)),	\
	.nr = nr_of_them, .entries = (uintptr_t)(entry),			\
}

TEST_F(ring, a_submission_arms_moves_and_cancels)
{
	struct twheel_arm arm[2] = {
		{ .expires_ns = TW_MS, .user_data = 1 }, { .expires_ns = TW_MS, .repeats = 7 },
	};
	struct twheel_vector arms = VECTOR_OF(arm, 2), moves = VECTOR_OF(arm, 1);
	struct twheel_cancel cancel[1] = {};
	struct twheel_vector cancels = VECTOR_OF(cancel, 1);
	__u64 id;

	/* Now there is memory for more. */
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_ARM, &arms, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(1, io_uring_cq_ready(&self->ring));
	EXPECT_RESULT(&self->ring, 1, 1);
	EXPECT_EQ(2, arms.nr_done);
	EXPECT_EQ(TWHEEL_CREATED, arm[0].result);
	EXPECT_EQ(-EINVAL, arm[1].result);

	arm[0].expires_ns = 5 * TW_MS;
	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_REARM, &moves, 2);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, 1, 2);
	EXPECT_EQ(TWHEEL_WAS_PENDING, arm[0].result);
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MS));

	cancel[0].id = arm[0].id;
	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_CANCEL, &cancels, 3);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, 1, 3);
	EXPECT_EQ(TWHEEL_WAS_PENDING, cancel[0].result);
	ASSERT_NO_WORKER();
}

/* If a ring links them, submissions are in order: a timeout that was armed is found by its key. */
TEST_F(ring, submissions_go_in_their_order)
{
	struct twheel_arm arm[1] = { { .expires_ns = 3600 * TW_SEC, .user_data = 5 } };
	struct twheel_vector arms = VECTOR_OF(arm, 1);
	struct twheel_cancel cancel[1] = { { .id = 5 } };
	struct twheel_vector cancels = VECTOR_OF(cancel, 1);
	int fd = tw_open_setup(0, &(struct twheel_setup){ .flags = TWHEEL_SETUP_KEYED });
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	cancels.flags = TWHEEL_VECTOR_BY_KEY;
	put_ioctl(&self->ring, fd, TWHEEL_IOC_ARM, &arms, 1)->flags |= IOSQE_IO_LINK;
	put_ioctl(&self->ring, fd, TWHEEL_IOC_CANCEL, &cancels, 2);
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, 1, 1);
	EXPECT_RESULT(&self->ring, 1, 2);
	EXPECT_EQ(TWHEEL_WAS_PENDING, cancel[0].result);
	ASSERT_NO_WORKER();
	close(fd);
}

TEST_F(ring, a_submission_that_is_not_an_ioctl_says_so)
{
	struct twheel_info info = { .size = sizeof(info) };
	struct io_uring_sqe *sqe;

	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_INFO + 100, &info, 1);
	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_INFO, NULL, 2);
	sqe = put_ioctl(&self->ring, self->fd, TWHEEL_IOC_INFO, &info, 3);
	((char *)sqe)[CMD_OFFSET + 8] = 1;
	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_INFO, &info, 4);
	ASSERT_EQ(4, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, -ENOTTY, 1);
	EXPECT_RESULT(&self->ring, -EFAULT, 2);
	EXPECT_RESULT(&self->ring, -EINVAL, 3);
	EXPECT_RESULT(&self->ring, 0, 4);
	EXPECT_EQ(TW_MS, info.tick_ns);
	EXPECT_TRUE(info.features & TWHEEL_FEATURE_URING_CMD);
	ASSERT_NO_WORKER();
}

/* If a command may wait for other threads, it does not block the thread that submits. */
TEST_F(ring, a_worker_does_a_command_that_may_wait)
{
	struct twheel_advance advance = { .size = sizeof(advance), .to_ns = TW_MS };
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_ADVANCE, &advance, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, 0, 1);
	ASSERT_LT(0, nr_workers());
	EXPECT_EQ(1, tw_read(self->fd, self->events, 1));
	EXPECT_EQ(id, self->events[0].id);
	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_DRAIN, NULL, 2);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, 0, 2);
	EXPECT_EQ(-ESHUTDOWN, tw_arm_in(self->fd, TW_MS, &id));
}

/* The good call of each command, on a wheel that has nothing to do. */
TEST_F(ring, a_command_is_done_in_the_call_that_submits_unless_it_may_wait)
{
	union tw_argument argument;
	union tw_element element;
	__u64 pending;
	int i, fd;

	for (i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		const struct tw_command *command = &tw_commands[i];
		bool waits = command->cmd == TWHEEL_IOC_SETUP ||
			     command->cmd == TWHEEL_IOC_ADVANCE;

		/* Once there is a worker, it stays for a while. */
		if (waits)
			continue;
		fd = tw_make_wheel(&pending);
		ASSERT_LE(0, fd);
		tw_make_good(command, pending, &argument, &element);
		put_ioctl(&self->ring, fd, command->cmd, &argument, i);
		ASSERT_EQ(1, io_uring_submit(&self->ring));
		ASSERT_EQ(1, io_uring_cq_ready(&self->ring))
			TH_LOG("%s", command->name);
		EXPECT_RESULT(&self->ring, command->good, i);
		ASSERT_NO_WORKER();
		close(fd);
	}
}

/* A worker opens the file: that may sleep. */
TEST_F(ring, a_submission_opens_the_wheel_once_more)
{
	struct twheel_reopen reopen = { .size = sizeof(reopen), .flags = O_RDONLY };
	__u64 whose;
	int again;

	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_REOPEN, &reopen, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	again = next_result(&self->ring, TW_PATIENCE_MS, &whose, NULL);
	ASSERT_LE(0, again);
	EXPECT_EQ(O_RDONLY, fcntl(again, F_GETFL) & O_ACCMODE);
	close(again);
}

/* Flags are refused so that they can get a meaning later: registered buffers are one. */
TEST_F(ring, a_flag_of_the_submission_says_einval)
{
	struct twheel_info info = { .size = sizeof(info) };
	struct iovec buffer = { &info, sizeof(info) };
	struct io_uring_sqe *sqe;
	unsigned int bit;

	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &buffer, 1));
	for (bit = 0; bit < 32; bit++) {
		sqe = put_ioctl(&self->ring, self->fd, TWHEEL_IOC_INFO, &info, bit);
		sqe->rw_flags = 1U << bit;
		ASSERT_EQ(1, io_uring_submit(&self->ring));
		EXPECT_RESULT(&self->ring, -EINVAL, bit);
	}
	EXPECT_EQ(0, info.tick_ns);
}

/* In a submission of 128 bytes, cmd has 80. */
TEST_F(ring, all_bytes_behind_the_argument_must_be_0)
{
	struct twheel_info info = { .size = sizeof(info) };
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int i, flags;

	ASSERT_EQ(0, io_uring_queue_init(8, &ring, IORING_SETUP_SQE128));
	for (i = 8; i < 80; i++) {
		flags = i % 2 ? IOSQE_ASYNC : 0;
		sqe = put_ioctl(&ring, self->fd, TWHEEL_IOC_INFO, &info, i);
		memset((char *)sqe + 64, 0, 64);
		((char *)sqe)[CMD_OFFSET + i] = 1;
		sqe->flags |= flags;
		ASSERT_EQ(1, io_uring_submit(&ring));
		EXPECT_RESULT(&ring, -EINVAL, i);
	}
	sqe = put_ioctl(&ring, self->fd, TWHEEL_IOC_INFO, &info, 1);
	memset((char *)sqe + 64, 0, 64);
	ASSERT_EQ(1, io_uring_submit(&ring));
	EXPECT_RESULT(&ring, 0, 1);
	EXPECT_EQ(TW_MS, info.tick_ns);
	io_uring_queue_exit(&ring);
}

/* The thread that submits does not allocate, and it does not work for milliseconds. */
TEST_F(ring, a_worker_does_what_allocates)
{
	struct twheel_arm arm[1] = { { .expires_ns = TW_MS } };
	struct twheel_vector arms = VECTOR_OF(arm, 1);

	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_ARM, &arms, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, 1, 1);
	EXPECT_LT(0, nr_workers());
	EXPECT_EQ(TWHEEL_CREATED, arm[0].result);
}

/* Many programs refresh by ARM of keys that are there, and have no place to spare. */
TEST_F(ring, an_arm_of_keys_is_done_in_the_call_that_submits)
{
	struct twheel_arm arm[128] = {};
	struct twheel_vector arms = VECTOR_OF(arm, ARRAY_SIZE(arm));
	int i, fd = tw_open_setup(0, &(struct twheel_setup){ .flags = TWHEEL_SETUP_KEYED });

	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(arm); i++) {
		arm[i].user_data = i;
		arm[i].expires_ns = TW_HOUR;
	}
	ASSERT_EQ(ARRAY_SIZE(arm), tw_arm_vec(fd, arm, ARRAY_SIZE(arm)));
	put_ioctl(&self->ring, fd, TWHEEL_IOC_ARM, &arms, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(1, io_uring_cq_ready(&self->ring));
	EXPECT_RESULT(&self->ring, ARRAY_SIZE(arm), 1);
	EXPECT_EQ(TWHEEL_WAS_PENDING, arm[0].result);
	ASSERT_NO_WORKER();
	close(fd);
}

TEST_F(ring, a_worker_does_a_walk)
{
	struct twheel_info info = { .size = sizeof(info), .flags = TWHEEL_INFO_WALK };

	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_INFO, &info, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, 0, 1);
	EXPECT_LT(0, nr_workers());
	EXPECT_EQ(TWHEEL_TIME_NEVER, info.next_expiry_ns);
}

TEST_F(ring, a_worker_does_a_long_vector)
{
	static struct twheel_cancel cancel[65536];
	struct twheel_vector cancels = VECTOR_OF(cancel, ARRAY_SIZE(cancel));

	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_CANCEL, &cancels, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, 0, 1);
	EXPECT_LT(0, nr_workers());
	EXPECT_EQ(ARRAY_SIZE(cancel), cancels.nr_done);
	EXPECT_EQ(-ENOENT, cancel[65535].result);
}

TEST_F(ring, a_worker_does_a_long_list)
{
	static struct twheel_status status[2000];
	struct twheel_list list = {
		.size = sizeof(list), .entry_size = sizeof(status[0]), .nr = ARRAY_SIZE(status),
		.entries = (uintptr_t)status,
	};

	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_LIST, &list, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, 0, 1);
	EXPECT_LT(0, nr_workers());
}

TEST_F(ring, a_worker_does_a_setup)
{
	struct twheel_setup setup = { .size = sizeof(setup), .clock = TWHEEL_CLOCK_VIRTUAL };
	int fd = tw_open(0);

	ASSERT_LE(0, fd);
	put_ioctl(&self->ring, fd, TWHEEL_IOC_SETUP, &setup, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, 0, 1);
	EXPECT_LT(0, nr_workers());
	close(fd);
}

TEST_F(ring, a_worker_does_a_drain)
{
	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_DRAIN, NULL, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, 0, 1);
	EXPECT_LT(0, nr_workers());
}

struct advance_aside {
	int fd;
	__u64 to_ns;
};

static void *advance_aside(void *arg)
{
	const struct advance_aside *aside = arg;

	return (void *)(long)tw_advance(aside->fd, aside->to_ns);
}

/*
 * An ADVANCE waits for another one, which has much to do. If it is cancelled, it says an errno that
 * programs know.
 */
TEST_F(ring, an_advance_that_is_cancelled_says_eintr)
{
	struct twheel_advance advance = { .size = sizeof(advance) };
	struct twheel_info info = { .size = sizeof(info) };
	struct advance_aside aside = { .fd = self->fd };
	static struct twheel_event events[8192];
	static struct twheel_arm arm[65536];
	int i, nr, tries, result = 0;
	pthread_t thread;
	__u64 whose;
	void *ret;

	/*
	 * If the other one is done too early, or it is cancelled before a worker has it, try again.
	 */
	for (tries = 0; tries < 40 && result != -EINTR; tries++) {
		for (i = 0; i < ARRAY_SIZE(arm); i++)
			arm[i] = (struct twheel_arm){ .expires_ns = TW_MS };
		for (i = 0; i < 4; i++) {
			ASSERT_EQ(ARRAY_SIZE(arm), tw_arm_vec(self->fd, arm, ARRAY_SIZE(arm)));
		}
		aside.to_ns += 2 * TW_MS;
		ASSERT_EQ(0, pthread_create(&thread, NULL, advance_aside, &aside));
		do {
			ASSERT_EQ(0, tw_ioctl(self->fd, TWHEEL_IOC_INFO, &info));
		} while (info.now_ns < aside.to_ns);
		advance.to_ns = aside.to_ns;
		put_ioctl(&self->ring, self->fd, TWHEEL_IOC_ADVANCE, &advance, 1);
		ASSERT_EQ(1, io_uring_submit(&self->ring));
		tw_sleep(tries % 4 * TW_MS);
		put_cancel(&self->ring, 1, 2);
		ASSERT_EQ(1, io_uring_submit(&self->ring));
		for (i = 0; i < 2; i++) {
			nr = next_result(&self->ring, TW_PATIENCE_MS, &whose, NULL);
			if (whose == 1)
				result = nr;
		}
		EXPECT_TRUE(!result || result == -EINTR || result == -ECANCELED)
			TH_LOG("it says %d", result);
		ASSERT_EQ(0, pthread_join(thread, &ret));
		EXPECT_EQ(NULL, ret);
		for (i = 0; i < 4 * ARRAY_SIZE(arm); i += nr) {
			nr = tw_read(self->fd, events, ARRAY_SIZE(events));
			ASSERT_LT(0, nr);
		}
	}
	if (result != -EINTR)
		SKIP(return, "it never waited when it was cancelled");
}

TEST_F(ring, a_submission_may_be_left_to_a_worker)
{
	struct twheel_arm arm[1] = { { .expires_ns = TW_MS } };
	struct twheel_vector arms = VECTOR_OF(arm, 1);

	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_ARM, &arms, 1)->flags |= IOSQE_ASYNC;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, 1, 1);
	EXPECT_EQ(TWHEEL_CREATED, arm[0].result);
}

/* ---- reads --------------------------------------------------------------- */

TEST_F(ring, a_read_waits_for_an_event)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	put_read(&self->ring, self->fd, &self->events[0], 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_NO_RESULT(&self->ring);
	ASSERT_NO_WORKER();
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_RESULT(&self->ring, EVENT_BYTES, 1);
	EXPECT_EQ(id, self->events[0].id);
	ASSERT_NO_WORKER();
}

TEST_F(ring, a_read_of_an_event_that_is_there_is_done_at_once)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	put_read(&self->ring, self->fd, &self->events[0], 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(1, io_uring_cq_ready(&self->ring));
	EXPECT_RESULT(&self->ring, EVENT_BYTES, 1);
	EXPECT_EQ(id, self->events[0].id);
	ASSERT_NO_WORKER();
}

/* Each event wakes all of them, and all but one find nothing and wait again. */
TEST_F(ring, many_reads_wait_and_each_gets_an_event)
{
	enum { READS = 16 };
	bool seen[READS] = {};
	int i, j;

	for (i = 0; i < READS; i++)
		put_read(&self->ring, self->fd, &self->events[i], i);
	ASSERT_EQ(READS, io_uring_submit(&self->ring));
	for (i = 0; i < READS; i++) {
		__u64 id, whose = ~0ULL;

		ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
		ASSERT_EQ(0, tw_advance(self->fd, (i + 1) * TW_MS));
		ASSERT_EQ(EVENT_BYTES, next_result(&self->ring, TW_PATIENCE_MS, &whose, NULL));
		ASSERT_GT(READS, whose);
		EXPECT_FALSE(seen[whose]);
		seen[whose] = true;
		EXPECT_EQ(id, self->events[whose].id);
		ASSERT_NO_WORKER();
	}
	for (j = 0; j < READS; j++)
		EXPECT_TRUE(seen[j]);
}

TEST_F(ring, a_read_ends_when_the_wheel_is_drained)
{
	put_read(&self->ring, self->fd, &self->events[0], 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_RESULT(&self->ring, 0, 1);
	ASSERT_NO_WORKER();
}

/* io_uring waits for a descriptor that has O_NONBLOCK, too, if it has FMODE_NOWAIT. */
TEST_F(ring, a_read_with_o_nonblock_waits_all_the_same)
{
	__u64 id;

	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	put_read(&self->ring, self->fd, &self->events[0], 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_NO_RESULT(&self->ring);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_RESULT(&self->ring, EVENT_BYTES, 1);
	ASSERT_NO_WORKER();
}

TEST_F(ring, a_read_with_rwf_nowait_says_eagain)
{
	put_read(&self->ring, self->fd, &self->events[0], 1)->rw_flags = RWF_NOWAIT;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, -EAGAIN, 1);
	ASSERT_NO_WORKER();
}

TEST_F(ring, a_read_that_waits_is_cancelled)
{
	struct twheel_event event;
	__u64 id;

	put_read(&self->ring, self->fd, &self->events[0], 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_NO_RESULT(&self->ring);
	put_cancel(&self->ring, 1, 2);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	{
		__u64 whose[2] = {};
		int i, ret;

		/* The two come in any order. */
		for (i = 0; i < 2; i++) {
			ret = next_result(&self->ring, TW_PATIENCE_MS, &whose[i], NULL);
			EXPECT_EQ(whose[i] == 1 ? -ECANCELED : 0, ret);
		}
		EXPECT_EQ(3, whose[0] + whose[1]);
	}
	/* The request has taken no event. */
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(id, event.id);
	ASSERT_NO_WORKER();
}

TEST_F(ring, a_poll_reports_an_event)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);
	__u64 id;

	io_uring_prep_poll_add(sqe, self->fd, POLLIN);
	sqe->user_data = 1;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_NO_RESULT(&self->ring);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_RESULT(&self->ring, POLLIN, 1);
	ASSERT_NO_WORKER();
}

/* One request reads all events, into buffers that were provided. */
TEST_F(ring, a_multishot_read_goes_on)
{
	enum { ROUNDS = 20, BUFFERS = 32, GROUP = 7 };
	struct io_uring_buf_reg reg = { .ring_entries = BUFFERS, .bgid = GROUP };
	struct io_uring_buf_ring *buffers;
	struct io_uring_sqe *sqe;
	__u64 id, whose;
	__u32 flags;
	int i, ret;

	buffers = mmap(NULL, BUFFERS * sizeof(struct io_uring_buf), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, buffers);
	reg.ring_addr = (uintptr_t)buffers;
	ASSERT_EQ(0, io_uring_register_buf_ring(&self->ring, &reg, 0));
	io_uring_buf_ring_init(buffers);
	for (i = 0; i < BUFFERS; i++)
		io_uring_buf_ring_add(buffers, &self->events[i], sizeof(self->events[i]), i,
				      io_uring_buf_ring_mask(BUFFERS), i);
	io_uring_buf_ring_advance(buffers, BUFFERS);

	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_rw(OP_READ_MULTISHOT, sqe, self->fd, NULL, 0, -1);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = GROUP;
	sqe->user_data = 1;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ret = next_result(&self->ring, 50, &whose, NULL);
	if (ret == -EINVAL)
		SKIP(return, "the kernel has no IORING_OP_READ_MULTISHOT");
	ASSERT_EQ(NOTHING, ret);
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
		ASSERT_EQ(0, tw_advance(self->fd, (i + 1) * TW_MS));
		ret = next_result(&self->ring, TW_PATIENCE_MS, &whose, &flags);
		ASSERT_EQ(EVENT_BYTES, ret);
		ASSERT_TRUE(flags & IORING_CQE_F_MORE);
		ASSERT_TRUE(flags & IORING_CQE_F_BUFFER);
		EXPECT_EQ(id, self->events[flags >> IORING_CQE_BUFFER_SHIFT].id);
		ASSERT_NO_WORKER();
	}
	/* This is the last one, after which none follows. */
	ASSERT_EQ(0, tw_drain(self->fd));
	ASSERT_EQ(0, next_result(&self->ring, TW_PATIENCE_MS, &whose, &flags));
	EXPECT_FALSE(flags & IORING_CQE_F_MORE);
	ASSERT_NO_WORKER();
}

/* ---- writes -------------------------------------------------------------- */

TEST_F(ring, a_write_arms)
{
	struct twheel_record records[3] = {
		{ .op = TWHEEL_OP_ARM, .key = 1, .expires_ns = TW_MS },
		{ .op = TWHEEL_OP_ARM, .key = 2, .expires_ns = TW_MS },
		{ .op = 99 },
	};
	__u64 id;

	/* Write once before, so that memory for the others is allocated. */
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	put_write(&self->ring, self->fd, records, 3, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, 2 * RECORD_BYTES, 1);
	put_write(&self->ring, self->fd, records + 2, 1, 2);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, -EINVAL, 2);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(2, tw_read(self->fd, self->events, ENTRIES));
	ASSERT_NO_WORKER();
}

/* Since the wheel says that there are places, io_uring needs a worker for it. */
TEST_F(ring, a_write_that_has_to_allocate_is_done_all_the_same)
{
	struct twheel_record records[ENTRIES];
	struct twheel_info info;
	int i;

	for (i = 0; i < ENTRIES; i++)
		records[i] = (struct twheel_record){
			.op = TWHEEL_OP_ARM, .key = i, .expires_ns = TW_HOUR,
		};
	put_write(&self->ring, self->fd, records, ENTRIES, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, ENTRIES * RECORD_BYTES, 1);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(ENTRIES, info.armed);
	EXPECT_LT(0, nr_workers());
}

TEST_F(ring, a_write_and_a_read_are_linked)
{
	struct twheel_record record = {
		.op = TWHEEL_OP_ARM, .key = 5, .expires_ns = 20 * TW_MS,
	};
	int fd = tw_open(0);
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	put_write(&self->ring, fd, &record, 1, 1)->flags |= IOSQE_IO_LINK;
	put_read(&self->ring, fd, &self->events[0], 2);
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, RECORD_BYTES, 1);
	EXPECT_RESULT(&self->ring, EVENT_BYTES, 2);
	EXPECT_EQ(5, self->events[0].user_data);
	ASSERT_NO_WORKER();
	close(fd);
}

FIXTURE(full) {
	int fd;
	struct io_uring ring;
	struct twheel_record record;
	__u64 id;
};

/* A wheel with one place, which is taken. */
FIXTURE_SETUP(full)
{
	int ret = io_uring_queue_init(ENTRIES, &self->ring, 0);

	self->fd = -1;
	if (ret)
		SKIP(return, "no io_uring here: %s", strerror(-ret));
	self->fd = tw_open(0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_setup(self->fd, TWHEEL_CLOCK_VIRTUAL, TW_MS, 1));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &self->id));
	self->record = (struct twheel_record){
		.op = TWHEEL_OP_ARM, .key = 6, .expires_ns = TW_MS,
	};
}

FIXTURE_TEARDOWN(full)
{
	if (self->fd < 0)
		return;
	EXPECT_ACCOUNTS(self->fd);
	io_uring_queue_exit(&self->ring);
	close(self->fd);
}

/* An element can be refused without memory. */
TEST_F(full, an_arm_of_a_full_wheel_is_refused_in_the_call_that_submits)
{
	struct twheel_arm arm[2] = { { .expires_ns = TW_MS }, { .expires_ns = TW_MS } };
	struct twheel_vector arms = VECTOR_OF(arm, 2);

	put_ioctl(&self->ring, self->fd, TWHEEL_IOC_ARM, &arms, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(1, io_uring_cq_ready(&self->ring));
	EXPECT_RESULT(&self->ring, 0, 1);
	EXPECT_EQ(-EAGAIN, arm[1].result);
	ASSERT_NO_WORKER();
}

TEST_F(full, a_write_waits_for_a_place)
{
	struct twheel_event event;

	put_write(&self->ring, self->fd, &self->record, 1, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_NO_RESULT(&self->ring);
	ASSERT_NO_WORKER();
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_NO_RESULT(&self->ring);
	/* The place is free when the event was read. */
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_RESULT(&self->ring, RECORD_BYTES, 1);
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MS));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(6, event.user_data);
	ASSERT_NO_WORKER();
}

TEST_F(full, a_write_with_rwf_nowait_says_eagain)
{
	put_write(&self->ring, self->fd, &self->record, 1, 1)->rw_flags = RWF_NOWAIT;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, -EAGAIN, 1);
	ASSERT_NO_WORKER();
}

TEST_F(full, a_write_that_waits_ends_when_the_wheel_is_drained)
{
	put_write(&self->ring, self->fd, &self->record, 1, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_NO_RESULT(&self->ring);
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_RESULT(&self->ring, -ESHUTDOWN, 1);
	ASSERT_NO_WORKER();
}

TEST_F(full, a_write_that_waits_is_cancelled)
{
	__u64 whose[2] = {};
	int i, ret;

	put_write(&self->ring, self->fd, &self->record, 1, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_NO_RESULT(&self->ring);
	put_cancel(&self->ring, 1, 2);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	for (i = 0; i < 2; i++) {
		ret = next_result(&self->ring, TW_PATIENCE_MS, &whose[i], NULL);
		EXPECT_EQ(whose[i] == 1 ? -ECANCELED : 0, ret);
	}
	EXPECT_EQ(3, whose[0] + whose[1]);
	ASSERT_NO_WORKER();
}

TEST_F(ring, a_write_to_a_descriptor_for_reading_says_ebadf)
{
	const struct twheel_record record = { .op = TWHEEL_OP_ARM, .expires_ns = TW_MS };
	int fd = tw_reopen(self->fd, O_RDONLY);
	struct twheel_info info;
	__u64 id;

	ASSERT_LE(0, fd);
	put_write(&self->ring, fd, &record, 1, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, -EBADF, 1);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0, info.armed);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	put_read(&self->ring, fd, &self->events[0], 2);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_RESULT(&self->ring, EVENT_BYTES, 2);
	EXPECT_EQ(id, self->events[0].id);
	ASSERT_NO_WORKER();
	close(fd);
}

/* Submit each number as a command, to be done at once or by a worker; and try each way to write. */
TEST_F(ring, no_command_changes_a_wheel_by_a_descriptor_for_reading)
{
	struct twheel_record record = { .op = TWHEEL_OP_CANCEL };
	struct iovec iov = { &record, sizeof(record) };
	union tw_argument argument;
	union tw_element element;
	struct twheel_reopen reopen = { .size = sizeof(reopen), .flags = O_RDWR };
	struct tw_snapshot before;
	struct io_uring_sqe *sqe;
	int owner, fd, nr, flags, pipes[2];
	__u64 pending;

	owner = tw_make_wheel(&pending);
	ASSERT_LE(0, owner);
	fd = tw_reopen(owner, O_RDONLY | O_NONBLOCK);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_snapshot(owner, &before));
	for (flags = 0; flags <= IOSQE_ASYNC; flags += IOSQE_ASYNC) {
		for (nr = 0; nr < 256; nr++) {
			unsigned long cmd = _IO(TWHEEL_IOC_MAGIC, nr);
			const struct tw_command *command = tw_find_command(cmd);
			bool reopens = cmd == TWHEEL_IOC_REOPEN;
			const void *arg = command ? (void *)&argument :
					  reopens ? (void *)&reopen : NULL;

			if (command)
				tw_make_good(command, pending, &argument, &element);
			put_ioctl(&self->ring, fd, cmd, arg, nr)->flags |= flags;
			ASSERT_EQ(1, io_uring_submit(&self->ring));
			EXPECT_RESULT(&self->ring, reopens ? -EBADF : tw_listener_expects(cmd),
				      nr);
		}
	}

	record.key = pending;
	put_write(&self->ring, fd, &record, 1, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, -EBADF, 1);
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_writev(sqe, fd, &iov, 1, -1);
	sqe->user_data = 2;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, -EBADF, 2);
	ASSERT_EQ(0, io_uring_register_buffers(&self->ring, &iov, 1));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_write_fixed(sqe, fd, &record, sizeof(record), -1, 0);
	sqe->user_data = 3;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, -EBADF, 3);
	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(sizeof(record), write(pipes[1], &record, sizeof(record)));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_splice(sqe, pipes[0], -1, fd, -1, sizeof(record), 0);
	sqe->user_data = 4;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, -EBADF, 4);
	EXPECT_UNCHANGED(owner, &before);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
	close(owner);
}

TEST_F(ring, a_read_from_a_descriptor_for_writing_says_ebadf)
{
	int fd = tw_reopen(self->fd, O_WRONLY);

	ASSERT_LE(0, fd);
	put_read(&self->ring, fd, &self->events[0], 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_RESULT(&self->ring, -EBADF, 1);
	close(fd);
}

/* ---- the end of a ring --------------------------------------------------- */

/*
 * How many requests of a ring of that process wait by poll, according to fdinfo, and how many
 * have completed; -1 if fdinfo does not show it.
 */
static int nr_waiting(pid_t pid, int ring_fd, unsigned int *nr_completed)
{
	bool is_listed = false;
	char line[256];
	int nr = 0;
	FILE *file;

	snprintf(line, sizeof(line), "/proc/%d/fdinfo/%d", pid, ring_fd);
	file = fopen(line, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "CqTail: %u", nr_completed) == 1)
			continue;
		is_listed |= !strncmp(line, "PollList:", 9);
		nr += is_listed && !strncmp(line, "  op=", 5);
	}
	if (file)
		fclose(file);
	return is_listed ? nr : -1;
}

/* Whether all reads of a ring wait but those that have got an event. */
static bool reads_wait(pid_t pid, int ring_fd, int reads, unsigned int nr_events)
{
	unsigned int nr_completed = 0;

	return nr_waiting(pid, ring_fd, &nr_completed) == reads - (int)nr_events &&
	       nr_completed == nr_events;
}

/*
 * A child with a ring of its own, in which reads of the wheel wait. With async they begin in
 * workers (IOSQE_ASYNC). It reports which ring that is, and waits to be killed.
 */
static pid_t fork_reader(int fd, int reads, bool async, int *ring_fd)
{
	static struct twheel_event events[ENTRIES];
	struct io_uring ring;
	int pipe_fds[2], i;
	pid_t pid;

	if (pipe(pipe_fds))
		return -errno;
	pid = fork();
	if (pid) {
		close(pipe_fds[1]);
		if (read(pipe_fds[0], ring_fd, sizeof(*ring_fd)) != sizeof(*ring_fd))
			*ring_fd = -1;
		close(pipe_fds[0]);
		return pid < 0 ? -errno : pid;
	}
	if (io_uring_queue_init(ENTRIES, &ring, 0))
		_exit(1);
	for (i = 0; i < reads; i++)
		put_read(&ring, fd, &events[i], i)->flags |= async ? IOSQE_ASYNC : 0;
	if (io_uring_submit(&ring) != reads)
		_exit(2);
	if (write(pipe_fds[1], &ring.ring_fd, sizeof(ring.ring_fd)) != sizeof(ring.ring_fd))
		_exit(3);
	for (;;)
		pause();
}

TEST_F(ring, closing_the_ring_ends_the_reads_that_wait)
{
	struct twheel_event event;
	struct io_uring ring;
	__u64 id, now_ns = 0;
	int i, nr = 0;

	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &ring, 0));
	for (i = 0; i < 8; i++)
		put_read(&ring, self->fd, &self->events[i], i);
	ASSERT_EQ(8, io_uring_submit(&ring));
	io_uring_queue_exit(&ring);
	/* The kernel ends them a moment after the ring; until then each may take an event. */
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	for (i = 0; i <= 8 && nr != 1; i++) {
		now_ns += TW_MS;
		ASSERT_EQ(0, tw_arm_at(self->fd, now_ns, &id));
		ASSERT_EQ(0, tw_advance(self->fd, now_ns));
		nr = tw_read(self->fd, &event, 1);
	}
	ASSERT_EQ(1, nr);
	EXPECT_EQ(id, event.id);
	ASSERT_NO_WORKER();
	EXPECT_ACCOUNTS(self->fd);
	/* If a read went on, it would hold the file, and so the module. */
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, tw_wait_wheels_open(0));
}

FIXTURE(killed) {
	int fd;
};

/* How the reads begin, and how many of them get an event. */
FIXTURE_VARIANT(killed) {
	bool async;
	int nr_events;
};

FIXTURE_VARIANT_ADD(killed, reads) { .async = false, .nr_events = 0 };
FIXTURE_VARIANT_ADD(killed, reads_after_others) { .async = false, .nr_events = 3 };
FIXTURE_VARIANT_ADD(killed, async_reads) { .async = true, .nr_events = 0 };
FIXTURE_VARIANT_ADD(killed, async_reads_after_others) { .async = true, .nr_events = 3 };

FIXTURE_SETUP(killed)
{
	struct io_uring ring;
	int ret = io_uring_queue_init(1, &ring, 0);

	self->fd = -1;
	if (ret)
		SKIP(return, "no io_uring here: %s", strerror(-ret));
	io_uring_queue_exit(&ring);
	self->fd = tw_virtual(O_CLOEXEC, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(killed)
{
	close(self->fd);
}

/*
 * Each event wakes all reads. Without FMODE_NOWAIT, the reads that come too late would block in
 * workers. If workers had begun them, Linux 6.1 lost a request now and then: its process waited for
 * ever, and could not be killed.
 */
TEST_F(killed, a_process_with_eight_reads_ends)
{
	int ring_fd = -1, i, round;
	pid_t pid;
	__u64 id;

	for (round = 1; round <= 8; round++) {
		pid = fork_reader(self->fd, 8, variant->async, &ring_fd);
		ASSERT_LT(0, pid);
		ASSERT_TRUE(TW_WAIT_FOR(reads_wait(pid, ring_fd, 8, 0), TW_MS));
		for (i = 0; i < variant->nr_events; i++) {
			ASSERT_EQ(0, tw_arm_in(self->fd, 0, &id));
			ASSERT_EQ(0, tw_advance(self->fd, round * TW_MS));
			ASSERT_TRUE(TW_WAIT_FOR(reads_wait(pid, ring_fd, 8, i + 1), TW_MS));
		}
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(128 + SIGKILL, tw_reap(pid));
	}
}

TEST_HARNESS_MAIN
