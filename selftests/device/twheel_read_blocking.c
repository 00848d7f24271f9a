// SPDX-License-Identifier: GPL-2.0
/*
 * read() that sleeps: events wake it, a signal ends it, and several sleepers share the events: each
 * event comes once, and nobody is left asleep.
 */
#include "twheel_outcomes.h"
#include "twheel_outside.h"

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define MAX_EVENTS	1024
#define READERS		4

/* A thread that reads one event at a time, until it got this many or there is no other. */
struct reader {
	pthread_t thread;
	int fd;
	int wanted;
	int got;
	int ret;			/* result of its last tw_read() */
	_Atomic pid_t tid;
	struct twheel_event events[MAX_EVENTS + 1];
};

static struct reader readers[READERS];

static void *reader_run(void *arg)
{
	struct reader *r = arg;

	r->tid = syscall(SYS_gettid);
	while (r->got < r->wanted) {
		r->ret = tw_read(r->fd, &r->events[r->got], 1);
		if (r->ret <= 0)
			break;
		r->got++;
	}
	return NULL;
}

/* Start it, and return 0 when it is asleep in read(). */
static int reader_start(struct reader *r, int fd, int wanted)
{
	int ret;

	memset(r, 0, sizeof(*r));
	r->fd = fd;
	r->wanted = wanted;
	ret = pthread_create(&r->thread, NULL, reader_run, r);
	if (ret)
		return -ret;
	while (!r->tid)
		tw_sleep(TW_MS);
	return tw_wait_asleep(r->tid);
}

/* Return 0 if it ended, ETIMEDOUT if it did not. */
static int reader_join(struct reader *r)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += TW_PATIENCE_MS / 1000;
	return pthread_timedjoin_np(r->thread, NULL, &end);
}

static volatile sig_atomic_t caught;

static void catch(int sig)
{
	(void)sig;
	caught++;
}

/* Let a sleeping reader run a handler. */
static int interrupt(struct reader *r, int sa_flags)
{
	struct sigaction action = { .sa_handler = catch, .sa_flags = sa_flags };

	caught = 0;
	if (sigaction(SIGUSR1, &action, NULL) || pthread_kill(r->thread, SIGUSR1))
		return -EINVAL;
	return TW_WAIT_FOR(caught, TW_MS) ? 0 : -ETIMEDOUT;
}

/* Make one event on a virtual wheel: return 0, or the errno that failed. */
static int make_event(int fd)
{
	__u64 id;
	int ret = tw_arm_in(fd, 0, &id);

	return ret ? ret : tw_advance(fd, 0);
}

FIXTURE(blocking_read) {
	int fd;
};

FIXTURE_SETUP(blocking_read)
{
	self->fd = tw_virtual(0, TW_MS);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(blocking_read)
{
	close(self->fd);
}

TEST_F_TIMEOUT(blocking_read, a_blocking_read_wakes_when_a_timeout_expires, 60)
{
	ASSERT_EQ(0, reader_start(&readers[0], self->fd, 1));
	ASSERT_EQ(0, make_event(self->fd));
	ASSERT_EQ(0, reader_join(&readers[0]));
	EXPECT_EQ(1, readers[0].got);
}

TEST_F_TIMEOUT(blocking_read, a_blocking_read_wakes_when_a_deadline_in_the_past_is_armed, 60)
{
	int fd = tw_open(O_CLOEXEC);
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, reader_start(&readers[0], fd, 1));
	ASSERT_EQ(0, tw_arm_at(fd, 1, &id));
	ASSERT_EQ(0, reader_join(&readers[0]));
	EXPECT_EQ(id, readers[0].events[0].id);
	close(fd);
}

TEST_F_TIMEOUT(blocking_read, a_blocking_read_on_a_real_clock_is_never_early, 60)
{
	int fd = tw_open(O_CLOEXEC);
	struct twheel_event event;
	__u64 before, id;

	ASSERT_LE(0, fd);
	before = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, tw_arm_in(fd, 50 * TW_MS, &id));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_LE(before + 50 * TW_MS, event.deadline_ns);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	EXPECT_LE(event.fired_ns, tw_now(CLOCK_MONOTONIC));
	TH_LOG("late by %llu us", (event.fired_ns - event.deadline_ns) / TW_US);
	close(fd);
}

TEST_F_TIMEOUT(blocking_read, a_blocking_read_goes_on_after_a_signal_with_sa_restart, 60)
{
	ASSERT_EQ(0, reader_start(&readers[0], self->fd, 1));
	ASSERT_EQ(0, interrupt(&readers[0], SA_RESTART));
	ASSERT_EQ(0, tw_wait_asleep(readers[0].tid));
	ASSERT_EQ(0, make_event(self->fd));
	ASSERT_EQ(0, reader_join(&readers[0]));
	EXPECT_EQ(1, readers[0].ret);
}

TEST_F_TIMEOUT(blocking_read, a_blocking_read_says_eintr_after_a_signal_without_sa_restart, 60)
{
	ASSERT_EQ(0, reader_start(&readers[0], self->fd, 1));
	ASSERT_EQ(0, interrupt(&readers[0], 0));
	ASSERT_EQ(0, reader_join(&readers[0]));
	EXPECT_EQ(-EINTR, readers[0].ret);
}

TEST_F_TIMEOUT(blocking_read, a_signal_takes_no_event, 60)
{
	struct twheel_event event;

	ASSERT_EQ(0, reader_start(&readers[0], self->fd, 1));
	ASSERT_EQ(0, interrupt(&readers[0], 0));
	ASSERT_EQ(0, reader_join(&readers[0]));
	ASSERT_EQ(0, make_event(self->fd));
	EXPECT_EQ(1, tw_read(self->fd, &event, 1));
}

TEST_F_TIMEOUT(blocking_read, a_blocking_read_obeys_o_nonblock_that_was_set_later, 60)
{
	struct twheel_event event;

	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-EAGAIN, tw_read(self->fd, &event, 1));
}

TEST_F_TIMEOUT(blocking_read, a_short_buffer_says_einval_and_does_not_block, 60)
{
	char buf[sizeof(struct twheel_event)];

	EXPECT_EQ(-1, read(self->fd, buf, sizeof(buf) - 1));
	EXPECT_EQ(EINVAL, errno);
}

/* If one reader gets a wake-up and does not use it, it goes on to the next. */
TEST_F_TIMEOUT(blocking_read, one_batch_wakes_as_many_readers_as_it_has_events, 60)
{
	__u64 id;
	int i;

	for (i = 0; i < READERS; i++)
		ASSERT_EQ(0, reader_start(&readers[i], self->fd, 1));
	for (i = 0; i < READERS; i++)
		ASSERT_EQ(0, tw_arm_at(self->fd, TW_MS, &id));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	for (i = 0; i < READERS; i++) {
		ASSERT_EQ(0, reader_join(&readers[i]));
		EXPECT_EQ(1, readers[i].got);
	}
}

static struct tw_outcome shares[READERS] = {
	TW_OUTCOME("read by the first one", TW_A_FEW),
	TW_OUTCOME("by the second one", TW_A_FEW),
	TW_OUTCOME("by the third one", TW_A_FEW),
	TW_OUTCOME("by the last one", TW_A_FEW),
};

/*
 * MAX_EVENTS events, one tick at a time, so that all readers sleep now and then. One of them may
 * get all events, and has to see the end, too.
 */
static void share_events(struct __test_metadata *_metadata)
{
	int i, j, got = 0, fd = tw_virtual(0, TW_MS);
	bool seen[MAX_EVENTS] = {};
	__u64 id;

	ASSERT_LE(0, fd);
	for (i = 0; i < READERS; i++)
		ASSERT_EQ(0, reader_start(&readers[i], fd, MAX_EVENTS + 1));
	for (i = 0; i < MAX_EVENTS; i++)
		ASSERT_EQ(0, tw_arm1(fd, 0, i * TW_MS, 0, i, &id));
	for (i = 0; i < MAX_EVENTS; i++)
		ASSERT_EQ(0, tw_advance(fd, i * TW_MS));
	ASSERT_EQ(0, tw_drain(fd));
	for (i = 0; i < READERS; i++) {
		ASSERT_EQ(0, reader_join(&readers[i]));
		ASSERT_EQ(0, readers[i].ret);
		for (j = 0; j < readers[i].got; j++) {
			__u64 who = readers[i].events[j].user_data;

			ASSERT_LT(who, MAX_EVENTS);
			ASSERT_FALSE(seen[who]);
			seen[who] = true;
		}
		got += readers[i].got;
		tw_saw(&shares[i], readers[i].got);
	}
	EXPECT_EQ(MAX_EVENTS, got);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

TEST_F_TIMEOUT(blocking_read, several_readers_get_each_event_exactly_once, 100)
{
	struct tw_race race = TW_RACE(shares, 0);

	while (tw_race_goes_on(&race))
		share_events(_metadata);
	EXPECT_RACE(&race);
}

/* A caller that polls first has to set O_NONBLOCK. */
TEST_F_TIMEOUT(blocking_read, a_blocking_read_waits_if_the_event_that_poll_reported_is_gone, 60)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, 0, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 0));
	ASSERT_EQ(POLLIN, tw_poll(self->fd, POLLIN, 0));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, id));
	ASSERT_EQ(0, reader_start(&readers[0], self->fd, 1));
	ASSERT_EQ(0, make_event(self->fd));
	ASSERT_EQ(0, reader_join(&readers[0]));
	EXPECT_EQ(1, readers[0].got);
	EXPECT_NE(id, readers[0].events[0].id);
}

TEST_F_TIMEOUT(blocking_read, a_killed_reader_takes_no_event, 60)
{
	struct twheel_event event;
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		tw_read(self->fd, &event, 1);
		_exit(0);
	}
	ASSERT_EQ(0, tw_wait_asleep(child));
	kill(child, SIGKILL);
	ASSERT_EQ(128 + SIGKILL, tw_reap(child));
	ASSERT_EQ(0, make_event(self->fd));
	EXPECT_EQ(1, tw_read(self->fd, &event, 1));
}

/* ---- readers beside one in a page fault ---------------------------------- */

/*
 * A thread that reads one event into a page, and sleeps in the page fault until the test provides
 * the page.
 */
FIXTURE(stuck) {
	int fd;
	int faults;		/* a userfaultfd, or -1 if there is none */
	size_t size;
	struct twheel_event *page;
	pthread_t thread;
	int ret;
};

static void *stuck_run(void *arg)
{
	FIXTURE_DATA(stuck) *self = arg;
	ssize_t bytes = read(self->fd, self->page, sizeof(self->page[0]));

	self->ret = bytes < 0 ? -errno : (int)bytes;
	return NULL;
}

/* Map the page and make the userfaultfd of its faults; -1 if the kernel has none. */
static int watch_page(struct twheel_event *page, size_t size)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { .start = (uintptr_t)page, .len = size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (faults < 0)
		return -1;
	if (ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &range)) {
		close(faults);
		return -1;
	}
	return faults;
}

FIXTURE_SETUP(stuck)
{
	self->fd = tw_virtual(O_NONBLOCK, TW_MS);
	ASSERT_LE(0, self->fd);
	self->size = sysconf(_SC_PAGESIZE);
	self->page = mmap(NULL, self->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->page);
	self->faults = watch_page(self->page, self->size);
}

FIXTURE_TEARDOWN(stuck)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Start it with nr events unread, and return when it is in the page fault. */
static void stuck_begin(struct __test_metadata *_metadata, FIXTURE_DATA(stuck) *self, int nr)
{
	__u64 id;

	while (nr--) {
		ASSERT_EQ(0, tw_arm_in(self->fd, 0, &id));
	}
	ASSERT_EQ(0, tw_advance(self->fd, 0));
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, stuck_run, self));
	ASSERT_EQ(POLLIN, tw_poll(self->faults, POLLIN, TW_PATIENCE_MS));
}

/* Provide its page. */
static void stuck_end(struct __test_metadata *_metadata, FIXTURE_DATA(stuck) *self)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)self->page, .len = self->size },
	};

	ASSERT_EQ(0, ioctl(self->faults, UFFDIO_ZEROPAGE, &zero));
	ASSERT_EQ(0, pthread_join(self->thread, NULL));
}

/* poll() reports no event that read() does not find: a loop that polls does not spin. */
TEST_F_TIMEOUT(stuck, a_nonblocking_read_beside_a_stuck_one_gets_what_poll_reports, 60)
{
	struct twheel_event event;
	int nr;

	if (self->faults < 0)
		SKIP(return, "there is no userfaultfd");
	stuck_begin(_metadata, self, 3);
	for (nr = 0; tw_poll(self->fd, POLLIN, 0) == POLLIN; nr++) {
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	}
	EXPECT_EQ(3, nr);
	EXPECT_EQ(-EAGAIN, tw_read(self->fd, &event, 1));
	stuck_end(_metadata, self);
	EXPECT_EQ(-EAGAIN, self->ret);
}

TEST_F_TIMEOUT(stuck, a_stuck_read_gets_the_events_that_another_one_left, 60)
{
	struct twheel_event event;

	if (self->faults < 0)
		SKIP(return, "there is no userfaultfd");
	stuck_begin(_metadata, self, 2);
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	stuck_end(_metadata, self);
	ASSERT_EQ((int)sizeof(struct twheel_event), self->ret);
	EXPECT_NE(event.id, self->page[0].id);
	EXPECT_EQ(-EAGAIN, tw_read(self->fd, &event, 1));
}

/* The event that it has seen is another one now. */
TEST_F_TIMEOUT(stuck, a_stuck_read_gets_an_event_that_came_after_those_it_has_seen, 60)
{
	struct twheel_event event;
	__u64 id;

	if (self->faults < 0)
		SKIP(return, "there is no userfaultfd");
	stuck_begin(_metadata, self, 1);
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	ASSERT_EQ(0, tw_arm_in(self->fd, 0, &id));
	ASSERT_EQ(0, tw_advance(self->fd, 0));
	stuck_end(_metadata, self);
	ASSERT_EQ((int)sizeof(struct twheel_event), self->ret);
	EXPECT_EQ(id, self->page[0].id);
	EXPECT_NE(event.id, id);
}

static void on_signal(int number)
{
	(void)number;
}

/* If the event that it has seen is gone, and it does not wait, there is nothing to interrupt. */
TEST_F_TIMEOUT(stuck, a_signal_does_not_interrupt_a_read_that_does_not_wait, 60)
{
	const struct sigaction action = { .sa_handler = on_signal };
	struct twheel_event event;

	if (self->faults < 0)
		SKIP(return, "there is no userfaultfd");
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	stuck_begin(_metadata, self, 1);
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	ASSERT_EQ(0, pthread_kill(self->thread, SIGUSR1));
	stuck_end(_metadata, self);
	EXPECT_EQ(-EAGAIN, self->ret);
}

TEST_F_TIMEOUT(stuck, a_blocking_read_beside_a_stuck_one_waits_for_nothing, 60)
{
	struct twheel_event events[4];

	if (self->faults < 0)
		SKIP(return, "there is no userfaultfd");
	stuck_begin(_metadata, self, 2);
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, 0));
	EXPECT_EQ(2, tw_read(self->fd, events, 4));
	stuck_end(_metadata, self);
	EXPECT_EQ(-EAGAIN, self->ret);
}

TEST_HARNESS_MAIN
