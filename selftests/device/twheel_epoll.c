// SPDX-License-Identifier: GPL-2.0
/*
 * epoll: level- and edge-triggered, one-shot, exclusive, nested. New expirations make an edge and
 * nothing else does, and nobody stays asleep while an event is unread.
 */
#include "twheel_outcomes.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#define PLACES		64
#define THREADS		4
#define MAX_EVENTS	1000

FIXTURE(epoll) {
	int fd;
	int ep;
	__u64 now_ns;
};

FIXTURE_SETUP(epoll)
{
	self->fd = tw_virtual_for(O_NONBLOCK | O_CLOEXEC, PLACES);
	ASSERT_LE(0, self->fd);
	self->ep = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_LE(0, self->ep);
}

FIXTURE_TEARDOWN(epoll)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->ep);
	close(self->fd);
}

static int watch(int ep, int fd, __u32 events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int watch_again(int ep, int fd, __u32 events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return epoll_ctl(ep, EPOLL_CTL_MOD, fd, &event) ? -errno : 0;
}

/* Return the events that epoll reports for its only descriptor; 0 if none. */
static int said(int ep, int timeout_ms)
{
	struct epoll_event event = { .events = TW_POISON32 };
	int ret = epoll_wait(ep, &event, 1, timeout_ms);

	return ret < 0 ? -errno : ret ? (int)event.events : 0;
}

/* Let nr timeouts expire on the next tick. */
static void expire(struct __test_metadata *_metadata, int fd, __u64 *now_ns, int nr)
{
	__u64 id;
	int i;

	*now_ns += TW_MS;
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, tw_arm_at(fd, *now_ns, &id));
	ASSERT_EQ(0, tw_advance(fd, *now_ns));
}

#define EXPIRE(nr)	expire(_metadata, self->fd, &self->now_ns, nr)

/* ---- level --------------------------------------------------------------- */

TEST_F(epoll, a_level_trigger_reports_an_event_until_it_was_read)
{
	struct twheel_event event;

	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN));
	EXPECT_EQ(0, said(self->ep, 0));
	EXPIRE(1);
	EXPECT_EQ(EPOLLIN, said(self->ep, 0));
	EXPECT_EQ(EPOLLIN, said(self->ep, 0));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(0, said(self->ep, 0));
}

TEST_F(epoll, a_level_trigger_reports_room_until_the_wheel_is_full)
{
	__u64 id;
	int i;

	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLOUT));
	for (i = 0; i < PLACES; i++) {
		ASSERT_EQ(EPOLLOUT, said(self->ep, 0));
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	}
	EXPECT_EQ(0, said(self->ep, 0));
}

TEST_F(epoll, a_level_trigger_reports_hup_for_ever)
{
	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN | EPOLLOUT));
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(EPOLLHUP, said(self->ep, 0));
	EXPECT_EQ(EPOLLHUP, said(self->ep, 0));
}

TEST_F(epoll, an_event_from_before_the_watch_is_reported)
{
	EXPIRE(1);
	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN | EPOLLET));
	EXPECT_EQ(EPOLLIN, said(self->ep, 0));
}

TEST_F(epoll, every_epoll_that_watches_a_wheel_reports_its_event)
{
	int other = epoll_create1(EPOLL_CLOEXEC);

	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN | EPOLLET));
	ASSERT_EQ(0, watch(other, self->fd, EPOLLIN | EPOLLET));
	EXPIRE(1);
	EXPECT_EQ(EPOLLIN, said(self->ep, 0));
	EXPECT_EQ(EPOLLIN, said(other, 0));
	close(other);
}

TEST_F(epoll, a_closed_wheel_is_watched_no_more)
{
	int fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
	__u64 now_ns = 0;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, watch(self->ep, fd, EPOLLIN));
	expire(_metadata, fd, &now_ns, 1);
	ASSERT_EQ(EPOLLIN, said(self->ep, 0));
	close(fd);
	EXPECT_EQ(0, said(self->ep, 0));
}

/* ---- edge ---------------------------------------------------------------- */

TEST_F(epoll, an_edge_trigger_reports_an_expiration_once)
{
	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN | EPOLLET));
	EXPIRE(1);
	EXPECT_EQ(EPOLLIN, said(self->ep, 0));
	EXPECT_EQ(0, said(self->ep, 0));
}

TEST_F(epoll, an_edge_trigger_reports_a_new_expiration_though_others_are_unread)
{
	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN | EPOLLET));
	EXPIRE(1);
	ASSERT_EQ(EPOLLIN, said(self->ep, 0));
	EXPIRE(1);
	EXPECT_EQ(EPOLLIN, said(self->ep, 0));
}

TEST_F(epoll, an_edge_trigger_reports_a_new_expiration_after_all_were_read)
{
	struct twheel_event events[2];

	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN | EPOLLET));
	EXPIRE(2);
	ASSERT_EQ(EPOLLIN, said(self->ep, 0));
	ASSERT_EQ(2, tw_read(self->fd, events, 2));
	EXPIRE(1);
	EXPECT_EQ(EPOLLIN, said(self->ep, 0));
}

TEST_F(epoll, edges_of_rdnorm_and_of_wrnorm_come_alone)
{
	int other = epoll_create1(EPOLL_CLOEXEC);
	__u64 id;
	int i;

	for (i = 0; i < PLACES - 1; i++) {
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	}
	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLRDNORM | EPOLLET));
	EXPECT_EQ(0, said(self->ep, 0));
	EXPIRE(1);
	EXPECT_EQ(EPOLLRDNORM, said(self->ep, 0));
	ASSERT_EQ(0, watch(other, self->fd, EPOLLWRNORM | EPOLLET));
	EXPECT_EQ(0, said(other, 0));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	EXPECT_EQ(EPOLLWRNORM, said(other, 0));
	EXPECT_EQ(0, said(self->ep, 0));
	close(other);
}

/* As with timerfd: periods that pass while the event is unread make no edge. */
TEST_F(epoll, an_edge_trigger_reports_the_first_period_since_the_last_read)
{
	struct twheel_event event;
	__u64 id;
	int i;

	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN | EPOLLET));
	ASSERT_EQ(0, tw_arm1(self->fd, 0, TW_MS, TW_MS, 0, &id));
	for (i = 1; i <= 6; i += 3) {
		ASSERT_EQ(0, tw_advance(self->fd, i * TW_MS));
		EXPECT_EQ(EPOLLIN, said(self->ep, 0));
		EXPECT_EQ(0, said(self->ep, 0));
		ASSERT_EQ(0, tw_advance(self->fd, (i + 2) * TW_MS));
		EXPECT_EQ(0, said(self->ep, 0));
		ASSERT_ONE_EVENT(self->fd, &event, id);
		EXPECT_EQ(3, event.count);
	}
}

TEST_F(epoll, edge_is_not_made_by_arm_rearm_cancel_or_idle_ticks)
{
	__u64 id;

	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN | EPOLLET));
	EXPIRE(1);
	ASSERT_EQ(EPOLLIN, said(self->ep, 0));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MIN, &id));
	EXPECT_EQ(0, said(self->ep, 0));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_rearm1(self->fd, id, 0, TW_HOUR, 0));
	EXPECT_EQ(0, said(self->ep, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 2 * TW_MIN));
	EXPECT_EQ(0, said(self->ep, 0));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	EXPECT_EQ(0, said(self->ep, 0));
}

TEST_F(epoll, edge_of_out_comes_when_a_place_is_free_again)
{
	__u64 id;
	int i;

	for (i = 0; i < PLACES; i++)
		ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLOUT | EPOLLET));
	ASSERT_EQ(0, said(self->ep, 0));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	EXPECT_EQ(EPOLLOUT, said(self->ep, 0));
}

TEST_F(epoll, edge_of_out_is_not_made_by_a_place_in_a_wheel_that_has_room)
{
	struct twheel_event event;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	EXPIRE(1);
	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLOUT | EPOLLET));
	ASSERT_EQ(EPOLLOUT, said(self->ep, 0));
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, id));
	EXPECT_EQ(0, said(self->ep, 0));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(0, said(self->ep, 0));
}

TEST_F(epoll, edge_of_hup_comes_with_drain)
{
	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN | EPOLLET));
	ASSERT_EQ(0, tw_drain(self->fd));
	EXPECT_EQ(EPOLLHUP, said(self->ep, 0));
}

/* ---- one-shot ------------------------------------------------------------ */

TEST_F(epoll, a_oneshot_watch_reports_once)
{
	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN | EPOLLONESHOT));
	EXPIRE(1);
	EXPECT_EQ(EPOLLIN, said(self->ep, 0));
	EXPIRE(1);
	EXPECT_EQ(0, said(self->ep, 0));
}

TEST_F(epoll, a_oneshot_watch_enabled_again_reports_an_unread_event)
{
	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN | EPOLLONESHOT));
	EXPIRE(1);
	ASSERT_EQ(EPOLLIN, said(self->ep, 0));
	ASSERT_EQ(0, watch_again(self->ep, self->fd, EPOLLIN | EPOLLONESHOT));
	EXPECT_EQ(EPOLLIN, said(self->ep, 0));
}

/* ---- two wheels ---------------------------------------------------------- */

TEST_F(epoll, two_wheels_in_one_epoll_are_both_reported)
{
	const __u32 watched[] = { EPOLLIN, EPOLLIN | EPOLLET };
	int i, fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
	struct epoll_event events[3];
	__u64 now_ns = 0;

	ASSERT_LE(0, fd);
	for (i = 0; i < (int)ARRAY_SIZE(watched); i++) {
		int ep = epoll_create1(EPOLL_CLOEXEC);

		ASSERT_EQ(0, watch(ep, self->fd, watched[i]));
		ASSERT_EQ(0, watch(ep, fd, watched[i]));
		if (!i) {
			EXPECT_EQ(0, epoll_wait(ep, events, 3, 0));
			EXPIRE(1);
			expire(_metadata, fd, &now_ns, 1);
		}
		EXPECT_EQ(2, epoll_wait(ep, events, 3, 0));
		EXPECT_EQ(watched[i] & EPOLLET ? 0 : 2, epoll_wait(ep, events, 3, 0));
		close(ep);
	}
	close(fd);
}

/* ---- several threads ----------------------------------------------------- */

/*
 * Each thread sleeps in its own or in a shared epoll without a time limit. When it is woken, it
 * reads one event at a time (level) or all there are (edge). The main thread never reads: if a
 * sleeper misses an event, that stays unread.
 */
static struct crowd {
	int fd;
	int stop;			/* an eventfd: all threads end */
	bool until_eagain;
	_Atomic int ready;
	_Atomic unsigned int seen[MAX_EVENTS];
	_Atomic int bad;		/* the first errno that was not expected */
	struct {
		pthread_t thread;
		int ep;
	} member[THREADS];
} crowd;

/* Return false if there was none. */
static bool crowd_read(void)
{
	struct twheel_event event;
	int ret = tw_read(crowd.fd, &event, 1);

	if (ret == 1 && event.user_data < MAX_EVENTS)
		crowd.seen[event.user_data]++;
	else if (ret != -EAGAIN)
		crowd.bad = ret ? ret : TW_BROKEN;
	return ret == 1;
}

static void *crowd_run(void *arg)
{
	int ep = *(int *)arg;
	struct epoll_event event;

	crowd.ready++;
	for (;;) {
		int ret = epoll_wait(ep, &event, 1, -1);

		if (ret != 1 || event.data.fd != crowd.fd) {
			if (ret != 1)
				crowd.bad = -errno;
			return NULL;
		}
		while (crowd_read() && crowd.until_eagain)
			;
	}
}

static void crowd_start(struct __test_metadata *_metadata, int fd, __u32 events, bool shared)
{
	int i;

	crowd.fd = fd;
	crowd.until_eagain = events & EPOLLET;
	crowd.stop = eventfd(0, EFD_CLOEXEC);
	ASSERT_LE(0, crowd.stop);
	for (i = 0; i < THREADS; i++) {
		int *ep = &crowd.member[i].ep;

		if (i && shared) {
			*ep = crowd.member[0].ep;
		} else {
			*ep = epoll_create1(EPOLL_CLOEXEC);
			ASSERT_EQ(0, watch(*ep, fd, events));
			ASSERT_EQ(0, watch(*ep, crowd.stop, EPOLLIN));
		}
		ASSERT_EQ(0, pthread_create(&crowd.member[i].thread, NULL, crowd_run, ep));
	}
	while (crowd.ready < THREADS)
		tw_sleep(TW_MS);
}

static void crowd_stop(void)
{
	int i;

	eventfd_write(crowd.stop, 1);
	for (i = 0; i < THREADS; i++)
		pthread_join(crowd.member[i].thread, NULL);
}

/* Events come in bursts of 1 to 7, sometimes with time to fall asleep again. */
static void crowd_feed(struct __test_metadata *_metadata, int fd)
{
	__u64 seed = 3, now_ns = 0, id;
	int i, burst, armed = 0;

	while (armed < MAX_EVENTS) {
		burst = tw_random(&seed) % 7 + 1;
		if (burst > MAX_EVENTS - armed)
			burst = MAX_EVENTS - armed;
		now_ns += TW_MS;
		for (i = 0; i < burst; i++) {
			while (!tw_poll(fd, POLLOUT, 0))
				tw_sleep(TW_MS);
			ASSERT_EQ(0, tw_arm1(fd, TWHEEL_ARM_ABSOLUTE, now_ns, 0,
					     armed + i, &id));
		}
		armed += burst;
		ASSERT_EQ(0, tw_advance(fd, now_ns));
		if (tw_random(&seed) % 4 == 0)
			tw_sleep(2 * TW_MS);
	}
}

static void crowd_check(struct __test_metadata *_metadata, int fd)
{
	struct twheel_info info;
	int i;

	for (i = 0; i < TW_PATIENCE_MS / 10; i++) {
		ASSERT_EQ(0, tw_info(fd, &info));
		if (!info.unread)
			break;
		tw_sleep(10 * TW_MS);
	}
	EXPECT_EQ(0, info.unread)
		TH_LOG("all sleep, and %llu are unread", info.unread);
	crowd_stop();
	EXPECT_EQ(0, crowd.bad);
	for (i = 0; i < MAX_EVENTS; i++)
		ASSERT_EQ(1, crowd.seen[i]);
}

TEST_F_TIMEOUT(epoll, an_exclusive_watch_wakes_somebody_for_each_event, 120)
{
	crowd_start(_metadata, self->fd, EPOLLIN | EPOLLEXCLUSIVE, false);
	crowd_feed(_metadata, self->fd);
	crowd_check(_metadata, self->fd);
}

TEST_F_TIMEOUT(epoll, an_exclusive_edge_trigger_wakes_somebody_for_each_event, 120)
{
	crowd_start(_metadata, self->fd, EPOLLIN | EPOLLEXCLUSIVE | EPOLLET, false);
	crowd_feed(_metadata, self->fd);
	crowd_check(_metadata, self->fd);
}

TEST_F_TIMEOUT(epoll, threads_in_one_level_epoll_share_the_events, 120)
{
	crowd_start(_metadata, self->fd, EPOLLIN, true);
	crowd_feed(_metadata, self->fd);
	crowd_check(_metadata, self->fd);
}

TEST_F_TIMEOUT(epoll, threads_in_one_edge_epoll_share_the_events, 120)
{
	crowd_start(_metadata, self->fd, EPOLLIN | EPOLLET, true);
	crowd_feed(_metadata, self->fd);
	crowd_check(_metadata, self->fd);
}

/* ---- asleep -------------------------------------------------------------- */

/* A thread that sleeps in an epoll of one descriptor. */
struct sleeper {
	pthread_t thread;
	int ep;
	int said;
	_Atomic pid_t tid;
	_Atomic bool woken;
};

static struct sleeper sleepers[THREADS];

static void *sleeper_run(void *arg)
{
	struct sleeper *s = arg;

	s->tid = syscall(SYS_gettid);
	s->said = said(s->ep, TW_PATIENCE_MS);
	s->woken = true;
	return NULL;
}

/* Start it, and return 0 when it is asleep. */
static int sleeper_start(struct sleeper *s, int ep)
{
	int ret;

	s->ep = ep;
	ret = pthread_create(&s->thread, NULL, sleeper_run, s);
	if (ret)
		return -ret;
	while (!s->tid)
		tw_sleep(TW_MS);
	return tw_wait_asleep(s->tid);
}

/* Return the events that woke it; 0 if nothing did. */
static int sleeper_join(struct sleeper *s)
{
	pthread_join(s->thread, NULL);
	return s->said;
}

/* Start all of them, each in an epoll of its own. */
static void sleepers_start(struct __test_metadata *_metadata, int fd, __u32 events)
{
	int i;

	for (i = 0; i < THREADS; i++) {
		int ep = epoll_create1(EPOLL_CLOEXEC);

		ASSERT_EQ(0, watch(ep, fd, events));
		ASSERT_EQ(0, sleeper_start(&sleepers[i], ep));
	}
}

/* None of them goes back to wait: if one leaves an event, it is for the next. */
TEST_F_TIMEOUT(epoll, a_burst_wakes_as_many_exclusive_sleepers_as_it_has_events, 60)
{
	int i;

	sleepers_start(_metadata, self->fd, EPOLLIN | EPOLLEXCLUSIVE);
	EXPIRE(THREADS);
	for (i = 0; i < THREADS; i++)
		EXPECT_EQ(EPOLLIN, sleeper_join(&sleepers[i]));
}

/* Return how many sleepers are woken, if this many should be. */
static int nr_woken_of_all(int wanted)
{
	int tries, i, nr = 0;

	for (tries = 0; tries < TW_PATIENCE_MS && nr < wanted; tries++) {
		tw_sleep(TW_MS);
		for (nr = i = 0; i < THREADS; i++)
			nr += sleepers[i].woken;
	}
	/* If a sleeper was woken in vain, it would be awake by now. */
	tw_sleep(20 * TW_MS);
	for (nr = i = 0; i < THREADS; i++)
		nr += sleepers[i].woken;
	return nr;
}

TEST_F_TIMEOUT(epoll, as_many_exclusive_sleepers_wake_as_there_are_new_events, 60)
{
	sleepers_start(_metadata, self->fd, EPOLLIN | EPOLLEXCLUSIVE);
	EXPIRE(1);
	EXPECT_EQ(1, nr_woken_of_all(1));
	EXPIRE(2);
	EXPECT_EQ(3, nr_woken_of_all(3));
	EXPIRE(1);
	EXPECT_EQ(4, nr_woken_of_all(4));
}

/* Fill the wheel. This many timeouts were armed, the first two of which are due. */
static void fill(struct __test_metadata *_metadata, int fd, __u64 *ids)
{
	int i;

	for (i = 0; i < PLACES; i++) {
		ASSERT_EQ(0, tw_arm_at(fd, i < 2 ? TW_MS : TW_HOUR, &ids[i]));
	}
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
}

/* Only the first place that gets free can wake all: after that, the wheel is not full. */
TEST_F_TIMEOUT(epoll, all_exclusive_sleepers_for_out_wake_when_a_full_wheel_has_room, 60)
{
	__u64 ids[PLACES];
	int i;

	fill(_metadata, self->fd, ids);
	sleepers_start(_metadata, self->fd, EPOLLOUT | EPOLLEXCLUSIVE);
	ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(self->fd, ids[2]));
	for (i = 0; i < THREADS; i++)
		EXPECT_EQ(EPOLLOUT, sleeper_join(&sleepers[i]));
}

TEST_F_TIMEOUT(epoll, drain_wakes_all_exclusive_sleepers_for_out, 60)
{
	__u64 ids[PLACES];
	int i;

	fill(_metadata, self->fd, ids);
	sleepers_start(_metadata, self->fd, EPOLLOUT | EPOLLEXCLUSIVE);
	ASSERT_EQ(0, tw_drain(self->fd));
	for (i = 0; i < THREADS; i++)
		EXPECT_EQ(EPOLLHUP, sleeper_join(&sleepers[i]));
}

TEST_F_TIMEOUT(epoll, drain_wakes_all_exclusive_sleepers, 60)
{
	int i;

	sleepers_start(_metadata, self->fd, EPOLLIN | EPOLLEXCLUSIVE);
	ASSERT_EQ(0, tw_drain(self->fd));
	for (i = 0; i < THREADS; i++)
		EXPECT_EQ(EPOLLHUP, sleeper_join(&sleepers[i]));
}

TEST_F_TIMEOUT(epoll, drain_with_events_left_wakes_all_exclusive_sleepers, 60)
{
	__u64 id;
	int i;

	ASSERT_EQ(0, tw_arm_in(self->fd, TW_HOUR, &id));
	sleepers_start(_metadata, self->fd, EPOLLIN | EPOLLEXCLUSIVE);
	ASSERT_EQ(0, tw_drain(self->fd));
	for (i = 0; i < THREADS; i++)
		EXPECT_EQ(EPOLLIN | EPOLLHUP, sleeper_join(&sleepers[i]));
}

/* ---- two sleepers, and an epoll within an epoll ---------------------------- */

/* Return how many of the first two sleepers are woken, if this many should be. */
static int nr_woken(int wanted)
{
	int tries;

	for (tries = 0; tries < TW_PATIENCE_MS; tries++) {
		if (sleepers[0].woken + sleepers[1].woken >= wanted)
			break;
		tw_sleep(TW_MS);
	}
	/* If a sleeper was woken in vain, it would be awake by now. */
	if (wanted < 2)
		tw_sleep(50 * TW_MS);
	return sleepers[0].woken + sleepers[1].woken;
}

FIXTURE(nest) {
	int fd;
	int inner;		/* watches the wheel */
	int outer;		/* watches inner */
	__u64 now_ns;
};

FIXTURE_VARIANT(nest) {
	__u32 of_wheel;
	__u32 of_inner;
};

FIXTURE_VARIANT_ADD(nest, level_of_level) { .of_wheel = EPOLLIN, .of_inner = EPOLLIN };
FIXTURE_VARIANT_ADD(nest, level_of_edge) { .of_wheel = EPOLLIN | EPOLLET, .of_inner = EPOLLIN };
FIXTURE_VARIANT_ADD(nest, edge_of_level) { .of_wheel = EPOLLIN, .of_inner = EPOLLIN | EPOLLET };
FIXTURE_VARIANT_ADD(nest, edge_of_edge) {
	.of_wheel = EPOLLIN | EPOLLET, .of_inner = EPOLLIN | EPOLLET,
};

FIXTURE_SETUP(nest)
{
	self->fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
	ASSERT_LE(0, self->fd);
	self->inner = epoll_create1(EPOLL_CLOEXEC);
	self->outer = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_EQ(0, watch(self->inner, self->fd, variant->of_wheel));
	ASSERT_EQ(0, watch(self->outer, self->inner, variant->of_inner));
}

FIXTURE_TEARDOWN(nest)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->outer);
	close(self->inner);
	close(self->fd);
}

TEST_F(nest, a_nested_epoll_reports_an_event_as_often_as_its_triggers_say)
{
	bool again = !(variant->of_inner & EPOLLET);
	struct twheel_event event;

	EXPECT_EQ(0, tw_poll(self->outer, POLLIN, 0));
	EXPECT_EQ(0, said(self->outer, 0));
	EXPIRE(1);
	EXPECT_EQ(POLLIN, tw_poll(self->outer, POLLIN, 0));
	EXPECT_EQ(EPOLLIN, said(self->outer, 0));
	EXPECT_EQ(again ? POLLIN : 0, tw_poll(self->outer, POLLIN, 0));
	EXPECT_EQ(again ? EPOLLIN : 0, said(self->outer, 0));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(0, said(self->outer, 0));
	EXPIRE(1);
	EXPECT_EQ(EPOLLIN, said(self->outer, 0));
}

TEST_F_TIMEOUT(nest, a_nested_epoll_wakes_both_sleepers_by_level_and_one_by_edge, 60)
{
	int i, wanted = variant->of_inner & EPOLLET ? 1 : 2;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, sleeper_start(&sleepers[i], self->outer));
	EXPIRE(1);
	EXPECT_EQ(wanted, nr_woken(wanted));
	/* This is for the sleepers that are still asleep. */
	EXPIRE(1);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(EPOLLIN, sleeper_join(&sleepers[i]));
}

/* With an edge trigger, the inner sleeper may take the event that the outer one was woken for. */
TEST_F_TIMEOUT(nest, a_sleeper_in_the_inner_epoll_is_woken, 60)
{
	ASSERT_EQ(0, sleeper_start(&sleepers[0], self->outer));
	ASSERT_EQ(0, sleeper_start(&sleepers[1], self->inner));
	EXPIRE(1);
	EXPECT_EQ(EPOLLIN, sleeper_join(&sleepers[1]));
	if (!(variant->of_wheel & EPOLLET))
		EXPECT_EQ(2, nr_woken(2));
	EXPIRE(1);
	EXPECT_EQ(EPOLLIN, sleeper_join(&sleepers[0]));
}

TEST_F_TIMEOUT(epoll, a_level_trigger_wakes_both_sleepers, 60)
{
	int i;

	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, sleeper_start(&sleepers[i], self->ep));
	EXPIRE(1);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(EPOLLIN, sleeper_join(&sleepers[i]));
}

TEST_F_TIMEOUT(epoll, an_edge_trigger_wakes_one_of_two_sleepers, 60)
{
	int i;

	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN | EPOLLET));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, sleeper_start(&sleepers[i], self->ep));
	EXPIRE(1);
	EXPECT_EQ(1, nr_woken(1));
	EXPIRE(1);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(EPOLLIN, sleeper_join(&sleepers[i]));
}

/* ---- races on a real clock ------------------------------------------------- */

/* A wheel that is watched for edges. */
FIXTURE(real_clock) {
	int fd;
	int ep;
};

FIXTURE_SETUP(real_clock)
{
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->ep = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_LE(0, self->ep);
	ASSERT_EQ(0, watch(self->ep, self->fd, EPOLLIN | EPOLLET));
}

FIXTURE_TEARDOWN(real_clock)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->ep);
	close(self->fd);
}

#define CHANGES		2000

static struct change {
	int ep;
	int fd;
	_Atomic bool wanted;
	_Atomic bool stop;
} change;

static void *change_interest(void *arg)
{
	struct change *c = arg;
	struct epoll_event event = { .events = EPOLLIN | EPOLLERR | EPOLLET };

	while (!c->stop) {
		if (c->wanted) {
			epoll_ctl(c->ep, EPOLL_CTL_MOD, c->fd, &event);
			c->wanted = false;
		}
		sched_yield();
	}
	return NULL;
}

/* Kernel bug 205933: an unread event makes an edge each time */
TEST_F_TIMEOUT(real_clock, an_edge_made_by_a_change_of_interest_is_never_lost, 60)
{
	struct epoll_event event;
	pthread_t thread;
	int i, nr = 1;
	__u64 id;

	ASSERT_EQ(0, tw_arm_in(self->fd, 0, &id));
	ASSERT_EQ(1, epoll_wait(self->ep, &event, 1, TW_PATIENCE_MS));
	change.ep = self->ep;
	change.fd = self->fd;
	ASSERT_EQ(0, pthread_create(&thread, NULL, change_interest, &change));
	for (i = 0; i < CHANGES && nr == 1; i++) {
		while (change.wanted)
			sched_yield();
		change.wanted = true;
		nr = epoll_wait(self->ep, &event, 1, TW_PATIENCE_MS);
	}
	EXPECT_EQ(CHANGES, i);
	EXPECT_EQ(1, nr);
	change.stop = true;
	pthread_join(thread, NULL);
}

#define SLEEPERS	10
#define ROUNDS		40

static struct {
	bool stop;
	pthread_barrier_t begin;
	pthread_barrier_t end;
	_Atomic int bad;
} many;

static void *many_run(void *arg)
{
	int ep = *(const int *)arg;
	struct twheel_event event;
	struct epoll_event ready;

	for (;;) {
		pthread_barrier_wait(&many.begin);
		if (many.stop)
			return NULL;
		if (epoll_wait(ep, &ready, 1, TW_PATIENCE_MS) != 1 ||
		    tw_read(ready.data.fd, &event, 1) != 1)
			many.bad++;
		pthread_barrier_wait(&many.end);
	}
}

/* There are as many edges as sleepers, all at one tick, from several kthreads. */
TEST_F_TIMEOUT(real_clock, each_of_ten_sleepers_gets_one_of_ten_wheels, 90)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	pthread_t thread[SLEEPERS];
	int i, round, fd[SLEEPERS];
	__u64 id, deadline_ns;

	pthread_barrier_init(&many.begin, NULL, SLEEPERS + 1);
	pthread_barrier_init(&many.end, NULL, SLEEPERS + 1);
	for (i = 0; i < SLEEPERS; i++) {
		fd[i] = tw_open(O_NONBLOCK);
		ASSERT_LE(0, fd[i]);
		event.data.fd = fd[i];
		ASSERT_EQ(0, epoll_ctl(self->ep, EPOLL_CTL_ADD, fd[i], &event));
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, many_run, &self->ep));
	}
	for (round = 0; round < ROUNDS && !many.bad; round++) {
		pthread_barrier_wait(&many.begin);
		deadline_ns = tw_now(CLOCK_MONOTONIC) + 5 * TW_MS;
		for (i = 0; i < SLEEPERS; i++)
			EXPECT_EQ(0, tw_arm_at(fd[i], deadline_ns, &id));
		pthread_barrier_wait(&many.end);
		EXPECT_EQ(0, (int)many.bad)
			TH_LOG("round %d", round);
	}
	many.stop = true;
	pthread_barrier_wait(&many.begin);
	for (i = 0; i < SLEEPERS; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_ACCOUNTS(fd[i]);
		close(fd[i]);
	}
}

enum { WOKEN, GAVE_UP };

static struct tw_outcome short_waits[] = {
	[WOKEN]		= TW_OUTCOME("the shorter wait was woken", TW_A_FEW),
	[GAVE_UP]	= TW_OUTCOME("the shorter wait gave up", TW_A_FEW),
};

static struct {
	int fd;
	int ep;
	struct tw_meeting start;
} brief;

static void *wait_briefly(void *arg)
{
	struct epoll_event event;
	bool woken;
	__u64 id;

	(void)arg;
	tw_meet(&brief.start, 2);
	tw_sleep(TW_MS / 2);
	woken = epoll_wait(brief.ep, &event, 1, 11) == 1;
	tw_saw(&short_waits[woken ? WOKEN : GAVE_UP], 1);
	/* Then there must be an event for the other one, too. */
	if (woken)
		tw_arm_in(brief.fd, 0, &id);
	return NULL;
}

/*
 * If an event comes when one of two sleepers gives up, it is not lost to the other one. It comes at
 * any time around the end of the shorter wait, which begins last and so is the first that epoll
 * wakes.
 */
TEST_F_TIMEOUT(real_clock, an_expiry_at_the_end_of_a_wait_wakes_somebody, 90)
{
	struct tw_race race = TW_RACE(short_waits, 0);
	struct twheel_event events[4];
	struct epoll_event event;
	pthread_t thread;
	__u64 id;

	brief.fd = self->fd;
	brief.ep = self->ep;
	race.usual_rounds = 100;
	while (tw_race_goes_on(&race)) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, wait_briefly, NULL));
		tw_meet(&brief.start, 2);
		ASSERT_EQ(0, tw_arm_in(self->fd, 9 * TW_MS + race.rounds % 20 * 200 * TW_US, &id));
		ASSERT_EQ(1, epoll_wait(self->ep, &event, 1, TW_PATIENCE_MS))
			TH_LOG("round %u", race.rounds);
		pthread_join(thread, NULL);
		/* If the other sleeper was woken only after us, the event is for it. */
		while (tw_poll(self->fd, POLLIN, 2) == POLLIN)
			ASSERT_LT(0, tw_read(self->fd, events, 4));
	}
	EXPECT_RACE(&race);
}

TEST_HARNESS_MAIN
