// SPDX-License-Identifier: GPL-2.0
/*
 * poll(), ppoll() and select(): IN while an event can be read, OUT while fewer than max_pending
 * places are taken, HUP for ever after DRAIN, and which event wakes which poller.
 */
#include "twheel_outcomes.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>

#define PLACES		4
#define ALL		(POLLIN | POLLOUT | POLLPRI | POLLRDHUP)
/* Some programs ask for these instead of IN and OUT. */
#define NORM		(POLLRDNORM | POLLWRNORM)

/* ---- events of poll() ---------------------------------------------------- */

FIXTURE(poll) {
	int fd;
	__u64 ids[PLACES];
};

FIXTURE_SETUP(poll)
{
	self->fd = tw_virtual_for(O_NONBLOCK, PLACES);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(poll)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Arm timeouts at 1 ms, 2 ms, ... */
static void arm_some(struct __test_metadata *_metadata, int fd, __u64 *ids, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, tw_arm_at(fd, (i + 1) * TW_MS, &ids[i]));
}

TEST_F(poll, a_wheel_never_armed_can_be_armed_only)
{
	int fd = tw_open(O_NONBLOCK);

	ASSERT_LE(0, fd);
	EXPECT_EQ(POLLOUT, tw_poll(fd, ALL, 0));
	close(fd);
}

TEST_F(poll, a_pending_timeout_cannot_be_read)
{
	arm_some(_metadata, self->fd, self->ids, 1);
	EXPECT_EQ(POLLOUT, tw_poll(self->fd, ALL, 0));
}

TEST_F(poll, an_event_can_be_read_until_it_was)
{
	struct twheel_event event;

	arm_some(_metadata, self->fd, self->ids, 1);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(POLLIN | POLLOUT, tw_poll(self->fd, ALL, 0));
	EXPECT_EQ(POLLIN | POLLOUT, tw_poll(self->fd, ALL, 0));
	ASSERT_ONE_EVENT(self->fd, &event, self->ids[0]);
	EXPECT_EQ(POLLOUT, tw_poll(self->fd, ALL, 0));
}

TEST_F(poll, the_rest_of_a_batch_can_be_read)
{
	struct twheel_event event;

	arm_some(_metadata, self->fd, self->ids, 2);
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MS));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(POLLIN, tw_poll(self->fd, POLLIN, 0));
}

TEST_F(poll, a_revoked_event_cannot_be_read)
{
	arm_some(_metadata, self->fd, self->ids, 1);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, self->ids[0]));
	EXPECT_EQ(0, tw_poll(self->fd, POLLIN, 0));
}

TEST_F(poll, an_event_revoked_by_rearm_cannot_be_read)
{
	arm_some(_metadata, self->fd, self->ids, 1);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(TWHEEL_WAS_UNREAD,
		  tw_rearm1(self->fd, self->ids[0], 0, TW_MS, 0));
	EXPECT_EQ(0, tw_poll(self->fd, POLLIN, 0));
}

TEST_F(poll, a_full_wheel_cannot_be_armed)
{
	__u64 id;

	arm_some(_metadata, self->fd, self->ids, PLACES);
	ASSERT_EQ(-EAGAIN, tw_arm_at(self->fd, TW_MS, &id));
	EXPECT_EQ(0, tw_poll(self->fd, ALL, 0));
}

TEST_F(poll, a_wheel_with_one_place_left_can_be_armed)
{
	arm_some(_metadata, self->fd, self->ids, PLACES - 1);
	EXPECT_EQ(POLLOUT, tw_poll(self->fd, POLLOUT, 0));
}

TEST_F(poll, an_expiry_frees_no_place)
{
	arm_some(_metadata, self->fd, self->ids, PLACES);
	ASSERT_EQ(0, tw_advance(self->fd, PLACES * TW_MS));
	EXPECT_EQ(POLLIN, tw_poll(self->fd, ALL, 0));
}

TEST_F(poll, out_comes_back_after_a_cancel)
{
	arm_some(_metadata, self->fd, self->ids, PLACES);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, self->ids[1]));
	EXPECT_EQ(POLLOUT, tw_poll(self->fd, ALL, 0));
}

TEST_F(poll, out_comes_back_after_a_read)
{
	struct twheel_event event;

	arm_some(_metadata, self->fd, self->ids, PLACES);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, self->ids[0]);
	EXPECT_EQ(POLLOUT, tw_poll(self->fd, ALL, 0));
}

TEST_F(poll, a_periodic_event_that_was_read_frees_no_place)
{
	struct twheel_event event;
	__u64 id;

	arm_some(_metadata, self->fd, self->ids, PLACES - 1);
	ASSERT_EQ(0, tw_arm1(self->fd, 0, TW_MS / 2, TW_HOUR, 0, &id));
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->ids[0], 0, TW_HOUR, 0));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_ONE_EVENT(self->fd, &event, id);
	EXPECT_EQ(0, tw_poll(self->fd, ALL, 0));
}

TEST_F(poll, hup_comes_without_being_asked_for)
{
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(POLLHUP, tw_poll(self->fd, 0, 0));
}

TEST_F(poll, rdnorm_goes_with_in_and_wrnorm_with_out)
{
	arm_some(_metadata, self->fd, self->ids, PLACES - 1);
	EXPECT_EQ(POLLWRNORM, tw_poll(self->fd, NORM, 0));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(NORM, tw_poll(self->fd, NORM, 0));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &self->ids[PLACES - 1]));
	EXPECT_EQ(POLLRDNORM, tw_poll(self->fd, NORM, 0));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, self->ids[0]));
	EXPECT_EQ(POLLWRNORM, tw_poll(self->fd, NORM, 0));
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(POLLRDNORM | POLLHUP, tw_poll(self->fd, NORM, 0));
}

TEST_F(poll, ppoll_says_the_same)
{
	struct pollfd pfd = { .fd = self->fd, .events = ALL };
	struct timespec zero = {};
	sigset_t all;

	sigfillset(&all);
	arm_some(_metadata, self->fd, self->ids, PLACES);
	EXPECT_EQ(0, ppoll(&pfd, 1, &zero, &all));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(1, ppoll(&pfd, 1, NULL, &all));
	EXPECT_EQ(POLLIN, pfd.revents);
}

/* Return in which of the three sets select() finds the descriptor: 1, 2, 4. */
static int select_says(int fd)
{
	struct timeval zero = {};
	fd_set in, out, except;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&except);
	FD_SET(fd, &in);
	FD_SET(fd, &out);
	FD_SET(fd, &except);
	if (select(fd + 1, &in, &out, &except, &zero) < 0)
		return -errno;
	return !!FD_ISSET(fd, &in) + 2 * !!FD_ISSET(fd, &out) + 4 * !!FD_ISSET(fd, &except);
}

TEST_F(poll, select_says_the_same)
{
	EXPECT_EQ(2, select_says(self->fd));
	arm_some(_metadata, self->fd, self->ids, PLACES);
	EXPECT_EQ(0, select_says(self->fd));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(1, select_says(self->fd));
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(1, select_says(self->fd));
}

/* ---- wake-ups ------------------------------------------------------------ */

/* A thread that sleeps in poll(). */
struct poller {
	pthread_t thread;
	int fd;
	short events;
	int ret;			/* result of tw_poll() */
	__u64 end_ns;			/* when that returned */
	_Atomic pid_t tid;
};

static struct poller poller;

static void *poller_run(void *arg)
{
	struct poller *p = arg;

	p->tid = syscall(SYS_gettid);
	p->ret = tw_poll(p->fd, p->events, TW_PATIENCE_MS);
	p->end_ns = tw_now(CLOCK_MONOTONIC);
	return NULL;
}

/* Start it, and return 0 when it is asleep. */
static int poller_start(int fd, short events)
{
	int ret;

	poller = (struct poller){ .fd = fd, .events = events };
	ret = pthread_create(&poller.thread, NULL, poller_run, &poller);
	if (ret)
		return -ret;
	while (!poller.tid)
		tw_sleep(TW_MS);
	return tw_wait_asleep(poller.tid);
}

/* The events that poll() returned; 0 if nothing woke it. */
static int poller_join(void)
{
	pthread_join(poller.thread, NULL);
	return poller.ret;
}

TEST_F_TIMEOUT(poll, advance_wakes_a_sleeping_poller, 60)
{
	arm_some(_metadata, self->fd, self->ids, 1);
	ASSERT_EQ(0, poller_start(self->fd, POLLIN));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(POLLIN, poller_join());
}

TEST_F_TIMEOUT(poll, advance_wakes_a_poller_that_sleeps_for_rdnorm, 60)
{
	arm_some(_metadata, self->fd, self->ids, 1);
	ASSERT_EQ(0, poller_start(self->fd, POLLRDNORM));
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	EXPECT_EQ(POLLRDNORM, poller_join());
}

TEST_F_TIMEOUT(poll, a_cancel_wakes_a_poller_that_sleeps_for_wrnorm, 60)
{
	arm_some(_metadata, self->fd, self->ids, PLACES);
	ASSERT_EQ(0, poller_start(self->fd, POLLWRNORM));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, self->ids[0]));
	EXPECT_EQ(POLLWRNORM, poller_join());
}

TEST_F_TIMEOUT(poll, a_cancel_of_several_wakes_a_poller_that_sleeps_for_out, 60)
{
	struct twheel_cancel cancels[PLACES];
	int i;

	arm_some(_metadata, self->fd, self->ids, PLACES);
	for (i = 0; i < PLACES; i++)
		cancels[i] = (struct twheel_cancel){ .id = self->ids[i] };
	ASSERT_EQ(0, poller_start(self->fd, POLLOUT));
	ASSERT_EQ(PLACES, tw_cancel_vec(self->fd, cancels, PLACES));
	EXPECT_EQ(POLLOUT, poller_join());
}

TEST_F_TIMEOUT(poll, drain_wakes_a_poller_that_sleeps_for_nothing, 60)
{
	ASSERT_EQ(0, poller_start(self->fd, 0));
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(POLLHUP, poller_join());
}

TEST_F_TIMEOUT(poll, drain_wakes_a_poller_that_sleeps_for_out, 60)
{
	arm_some(_metadata, self->fd, self->ids, PLACES);
	ASSERT_EQ(0, poller_start(self->fd, POLLOUT));
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(POLLHUP, poller_join());
}

TEST_F_TIMEOUT(poll, a_cancel_wakes_a_poller_that_sleeps_for_out, 60)
{
	__u64 id;

	arm_some(_metadata, self->fd, self->ids, PLACES);
	ASSERT_EQ(-EAGAIN, tw_arm_at(self->fd, TW_MS, &id));
	ASSERT_EQ(0, poller_start(self->fd, POLLOUT));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, self->ids[0]));
	EXPECT_EQ(POLLOUT, poller_join());
}

TEST_F_TIMEOUT(poll, a_revoking_cancel_wakes_a_poller_that_sleeps_for_out, 60)
{
	arm_some(_metadata, self->fd, self->ids, PLACES);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(0, poller_start(self->fd, POLLOUT));
	ASSERT_EQ(TWHEEL_WAS_UNREAD, tw_cancel1(self->fd, self->ids[0]));
	EXPECT_EQ(POLLOUT, poller_join());
}

TEST_F_TIMEOUT(poll, a_read_wakes_a_poller_that_sleeps_for_out, 60)
{
	struct twheel_event event;

	arm_some(_metadata, self->fd, self->ids, PLACES);
	ASSERT_EQ(0, tw_advance(self->fd, TW_MS));
	ASSERT_EQ(0, poller_start(self->fd, POLLOUT));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(POLLOUT, poller_join());
}

/* The monotonic clock, and one timeout an hour ahead. */
FIXTURE(sleeping_poll) {
	int fd;
	__u64 far;
};

FIXTURE_SETUP(sleeping_poll)
{
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &self->far));
}

FIXTURE_TEARDOWN(sleeping_poll)
{
	close(self->fd);
}

/* Expect that this timeout woke the poller, and not before its time. */
static void expect_woken_by(struct __test_metadata *_metadata, int fd, __u64 id, __u64 since_ns)
{
	struct twheel_event event;

	ASSERT_EQ(POLLIN, poller_join());
	ASSERT_ONE_EVENT(fd, &event, id);
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	EXPECT_LE(event.fired_ns, poller.end_ns);
	EXPECT_LE(since_ns, poller.end_ns);
	TH_LOG("woken %llu us after its deadline", (poller.end_ns - event.deadline_ns) / TW_US);
}

TEST_F_TIMEOUT(sleeping_poll, an_earlier_arm_wakes_in_time, 60)
{
	__u64 id, now;

	ASSERT_EQ(0, poller_start(self->fd, POLLIN));
	now = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, tw_arm_in(self->fd, 100 * TW_MS, &id));
	expect_woken_by(_metadata, self->fd, id, now + 100 * TW_MS);
}

TEST_F_TIMEOUT(sleeping_poll, an_arm_in_the_past_wakes_at_once, 60)
{
	__u64 id;

	ASSERT_EQ(0, poller_start(self->fd, POLLIN));
	ASSERT_EQ(0, tw_arm_at(self->fd, 1, &id));
	ASSERT_EQ(POLLIN, poller_join());
}

TEST_F_TIMEOUT(sleeping_poll, a_rearm_to_earlier_wakes_in_time, 60)
{
	__u64 now;

	ASSERT_EQ(0, poller_start(self->fd, POLLIN));
	now = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->far, 0, 100 * TW_MS, 0));
	expect_woken_by(_metadata, self->fd, self->far, now + 100 * TW_MS);
}

TEST_F_TIMEOUT(sleeping_poll, a_rearm_into_the_past_wakes_at_once, 60)
{
	struct twheel_event event;

	ASSERT_EQ(0, poller_start(self->fd, POLLIN));
	ASSERT_EQ(TWHEEL_WAS_PENDING,
		  tw_rearm1(self->fd, self->far, TWHEEL_ARM_ABSOLUTE, 1, 0));
	ASSERT_EQ(POLLIN, poller_join());
	ASSERT_ONE_EVENT(self->fd, &event, self->far);
}

TEST_F_TIMEOUT(sleeping_poll, a_rearm_to_later_wakes_nobody, 60)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, 2 * TW_SEC, &id));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, id, 0, TW_HOUR, 0));
	EXPECT_EQ(0, tw_poll(self->fd, POLLIN, 3000));
}

TEST_F_TIMEOUT(sleeping_poll, a_cancelled_timeout_wakes_nobody, 60)
{
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, 2 * TW_SEC, &id));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	EXPECT_EQ(0, tw_poll(self->fd, POLLIN, 3000));
}

TEST_F_TIMEOUT(sleeping_poll, a_timeout_behind_a_cancelled_one_still_wakes, 60)
{
	__u64 first, second;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_SEC, &first));
	ASSERT_EQ(0, tw_arm_in(self->fd, 2 * TW_SEC, &second));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, first));
	ASSERT_EQ(0, poller_start(self->fd, POLLIN));
	expect_woken_by(_metadata, self->fd, second, 0);
}

/* ---- poll beside a reader ------------------------------------------------ */

enum { BY_THIEF, BY_POLLER, ROBBED };

static struct tw_outcome outcomes[] = {
	[BY_THIEF]	= TW_OUTCOME("read by who did not poll", TW_A_FEW),
	[BY_POLLER]	= TW_OUTCOME("read by who polled", TW_A_FEW),
	[ROBBED]	= TW_OUTCOME("gone between poll and read", TW_A_FEW),
};

static struct {
	int fd;
	_Atomic bool stop;
	int ret;
} thief;

static void *thief_run(void *arg)
{
	struct twheel_event event;
	__u64 seed = 1;

	(void)arg;
	while (!thief.stop) {
		thief.ret = tw_read(thief.fd, &event, 1);
		if (thief.ret == 1)
			tw_saw(&outcomes[BY_THIEF], 1);
		else if (thief.ret != -EAGAIN)
			break;
		/* The poller finds nothing now and then, and comes at any time. */
		tw_spin(tw_random(&seed) % (50 * TW_US));
	}
	return NULL;
}

TEST_F_TIMEOUT(poll, each_event_is_read_once_beside_a_reader, 100)
{
	struct tw_race race = TW_RACE(outcomes, 0);
	struct twheel_event event;
	pthread_t thread;
	int ret;
	__u64 id;

	race.usual_rounds = 2000;
	thief.fd = self->fd;
	ASSERT_EQ(0, pthread_create(&thread, NULL, thief_run, NULL));
	while (tw_race_goes_on(&race)) {
		ASSERT_EQ(POLLOUT, tw_poll(self->fd, POLLOUT, TW_PATIENCE_MS));
		ASSERT_EQ(0, tw_arm_at(self->fd, race.rounds * TW_MS, &id));
		ASSERT_EQ(0, tw_advance(self->fd, race.rounds * TW_MS));
		/* If an event that poll() reported is gone, read() says so. */
		if (!tw_poll(self->fd, POLLIN, 0))
			continue;
		ret = tw_read(self->fd, &event, 1);
		ASSERT_TRUE(ret == 1 || ret == -EAGAIN);
		tw_saw(&outcomes[ret == 1 ? BY_POLLER : ROBBED], 1);
	}
	TW_WAIT_FOR(!tw_poll(self->fd, POLLIN, 0), TW_MS);
	thief.stop = true;
	pthread_join(thread, NULL);
	EXPECT_TRUE(thief.ret == 1 || thief.ret == -EAGAIN);
	EXPECT_EQ(race.rounds, outcomes[BY_POLLER].count + outcomes[BY_THIEF].count);
	EXPECT_EQ(0, tw_poll(self->fd, POLLIN, 0));
	EXPECT_RACE(&race);
}

/* ---- poll beside a key that is refused ------------------------------------ */

struct refuser {
	int fd;
	struct twheel_arm *arm;		/* can be read, and not written */
	_Atomic bool stop;
	_Atomic unsigned long refused;
};

/* For a moment, each of these ARMs has the only place. */
static void *refuser_run(void *arg)
{
	struct refuser *r = arg;

	while (!r->stop && tw_vector(r->fd, TWHEEL_IOC_ARM, r->arm, sizeof(*r->arm), 1) == -EFAULT)
		r->refused++;
	return NULL;
}

TEST_F_TIMEOUT(poll, a_refused_key_wakes_a_poller_that_has_seen_its_place_taken, 60)
{
	const struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_VIRTUAL, .max_pending = 1, .flags = TWHEEL_SETUP_KEYED,
	};
	struct refuser refuser = { .fd = tw_open_setup(O_NONBLOCK, &setup) };
	int ret = POLLOUT, nr = 0;
	pthread_t thread;
	__u64 end_ns;

	ASSERT_LE(0, refuser.fd);
	refuser.arm = mmap(NULL, sizeof(*refuser.arm), PROT_READ,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)refuser.arm);
	ASSERT_EQ(0, pthread_create(&thread, NULL, refuser_run, &refuser));
	end_ns = tw_now(CLOCK_MONOTONIC) + TW_SEC;
	while (ret == POLLOUT && (tw_now(CLOCK_MONOTONIC) < end_ns || refuser.refused < 1000)) {
		ret = tw_poll(refuser.fd, POLLOUT, TW_PATIENCE_MS);
		nr++;
	}
	EXPECT_EQ(POLLOUT, ret)
		TH_LOG("after %d polls", nr);
	refuser.stop = true;
	pthread_join(thread, NULL);
	EXPECT_LE(1000, refuser.refused);
	munmap(refuser.arm, sizeof(*refuser.arm));
	close(refuser.fd);
}

TEST_HARNESS_MAIN
