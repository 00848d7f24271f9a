// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel's selftests of timers, eventfd and epoll check of these, asked
 * of the device (tools/testing/selftests: timers, filesystems/eventfd,
 * filesystems/epoll).
 *
 *   timers/                     here
 *   posix_timers: check_sig_ign periodic.c: unread_one_stays_one_event_...
 *     check_rearm               rearm.c: unread_periods_of_the_old_life_...
 *     check_delete              cancel.c: periodic_one_with_an_unread_event_...
 *     check_sigev_none,
 *     check_gettime             what_is_left_of_a_period_shrinks_and_begins_anew
 *     check_overrun             a_second_that_nobody_reads_is_counted_to_the_last
 *     the others                signals and processor time are not offered
 *   nanosleep, set-timer-lat,
 *   nsleep-lat                  clocks.c; lateness is told there, not judged
 *   inconsistency-check,
 *   threadtest                  time_never_goes_back_before_several_threads
 *   clocksource-switch          no_change_of_the_clock_source_makes_it_early
 *   change_skew                 no_skew_of_the_clock_makes_it_early
 *   leap-a-day, leapcrash       a_leap_second_makes_nothing_early
 *   set-2038                    the_end_of_32_bits_of_seconds_is_a_second_as_...
 *   set-tai                     clock_steps.c: change_of_the_tai_offset_...
 *   alarmtimer-suspend          a wheel wakes no machine
 *   adjtick, freq-step, mqueue-lat, raw_skew, rtcpie, set-tz, skew_consistency,
 *   valid-adjtimex              are of the clocks alone
 *
 *   filesystems/eventfd         here
 *   eventfd_check_flag_*        a_wheel_has_the_flags_it_was_opened_with
 *   eventfd_check_write         writing_says_einval_...
 *   eventfd_check_read          read.c: a_buffer_short_of_one_event_says_einval
 *   ..._read_with_nonsemaphore  periodic.c: the count of an event
 *   ..._read_with_semaphore     each_of_many_expirations_is_read_by_itself
 *
 *   filesystems/epoll           here
 *   epoll1-8, 17-24, 49-52      tree_alone, one variant each
 *   epoll9-16, 25-48, 53-58, 64 tree_of_two, one variant each
 *   epoll59                     an_edge_made_by_a_change_of_interest_...
 *   epoll60                     each_of_ten_sleepers_gets_one_of_ten_wheels
 *   epoll61                     an_expiry_at_the_end_of_a_wait_wakes_somebody
 *   epoll62                     epoll_pwait2_says_the_same
 *   epoll63                     is of epoll alone
 */
#include "twheel_test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timex.h>

/* ---- trees of epoll ------------------------------------------------------ */

/*
 * Who watches whom: e0 to e2 are epolls, s0 and s2 are wheels.  Wheels are on
 * the virtual clock, and one timeout expires on each that is in the tree.
 */
enum node { E0, E1, E2, S0, S2, NR_NODES };

#define LT	EPOLLIN
#define ET	(EPOLLIN | EPOLLET)

struct edge {
	enum node epoll;
	enum node watched;
	__u32 events;		/* 0: no more edges */
};

#define MAX_EDGES	4

#define OF_TWO_LEVELS(top)						\
	{ E1, S0, LT }, { E2, S2, LT }, { E0, E1, top }, { E0, E2, top }

static struct tree {
	int fd[NR_NODES];
	int nr_wheels;
} tree;

static void tree_make(struct __test_metadata *_metadata, const struct edge *edge)
{
	int i;

	tree.nr_wheels = 1;
	for (i = 0; i < MAX_EDGES; i++)
		if (edge[i].events && edge[i].watched == S2)
			tree.nr_wheels = 2;
	for (i = 0; i < S0 + tree.nr_wheels; i++) {
		tree.fd[i] = i < S0 ? epoll_create1(EPOLL_CLOEXEC) : tw_virtual(O_NONBLOCK, TW_MS);
		ASSERT_LE(0, tree.fd[i]);
	}
	for (i = 0; i < MAX_EDGES && edge[i].events; i++) {
		struct epoll_event event = {
			.events = edge[i].events, .data.u32 = edge[i].watched,
		};

		ASSERT_EQ(0, epoll_ctl(tree.fd[edge[i].epoll], EPOLL_CTL_ADD,
				       tree.fd[edge[i].watched], &event));
	}
}

static void tree_expire(struct __test_metadata *_metadata)
{
	__u64 id;
	int i;

	for (i = 0; i < tree.nr_wheels; i++) {
		ASSERT_EQ(0, tw_arm_in(tree.fd[S0 + i], TW_MS, &id));
		ASSERT_EQ(0, tw_advance(tree.fd[S0 + i], TW_MS));
	}
}

static void tree_close(void)
{
	int i;

	for (i = 0; i < S0 + tree.nr_wheels; i++)
		close(tree.fd[i]);
}

/* Alone: asked twice, since nothing is read, a level says the same again. */
FIXTURE(tree_alone) {
};

FIXTURE_VARIANT(tree_alone) {
	struct edge edge[MAX_EDGES];
	bool polls;		/* asks poll() of e0 first */
	int again;		/* how many are ready when it asks again */
};

#define ALONE(name, number_again, ...)					\
FIXTURE_VARIANT_ADD(tree_alone, name) {					\
	.edge = { __VA_ARGS__ }, .again = number_again,			\
};									\
FIXTURE_VARIANT_ADD(tree_alone, polled_##name) {			\
	.edge = { __VA_ARGS__ }, .again = number_again, .polls = true,	\
}

/* epoll1, epoll5 */
ALONE(level, 1, { E0, S0, LT });
/* epoll2, epoll6 */
ALONE(edge, 0, { E0, S0, ET });
/* epoll3, epoll7 */
ALONE(two_levels, 2, { E0, S0, LT }, { E0, S2, LT });
/* epoll4, epoll8 */
ALONE(two_edges, 0, { E0, S0, ET }, { E0, S2, ET });
/* epoll17, epoll21 */
ALONE(level_of_level, 1, { E1, S0, LT }, { E0, E1, LT });
/* epoll18, epoll22 */
ALONE(level_of_edge, 1, { E1, S0, ET }, { E0, E1, LT });
/* epoll19, epoll23 */
ALONE(edge_of_level, 0, { E1, S0, LT }, { E0, E1, ET });
/* epoll20, epoll24 */
ALONE(edge_of_edge, 0, { E1, S0, ET }, { E0, E1, ET });
/* epoll49, epoll51 */
ALONE(levels_of_two_levels, 2, OF_TWO_LEVELS(LT));
/* epoll50, epoll52 */
ALONE(edges_of_two_levels, 0, OF_TWO_LEVELS(ET));

FIXTURE_SETUP(tree_alone)
{
	tree_make(_metadata, variant->edge);
}

FIXTURE_TEARDOWN(tree_alone)
{
	tree_close();
}

TEST_F(tree_alone, says_it_as_often_as_its_triggers_do)
{
	struct epoll_event events[2];

	EXPECT_EQ(0, epoll_wait(tree.fd[E0], events, 2, 0));
	tree_expire(_metadata);
	if (variant->polls) {
		EXPECT_EQ(POLLIN, tw_poll(tree.fd[E0], POLLIN, 0));
	}
	EXPECT_EQ(tree.nr_wheels, epoll_wait(tree.fd[E0], events, 2, 0));
	if (variant->polls) {
		EXPECT_EQ(variant->again ? POLLIN : 0, tw_poll(tree.fd[E0], POLLIN, 0));
	}
	EXPECT_EQ(variant->again, epoll_wait(tree.fd[E0], events, 2, 0));
}

/* ---- two who wait -------------------------------------------------------- */

static struct waiter {
	pthread_t thread;
	int ep;
	int max_events;
	bool polls;		/* by poll(), and then takes what there is */
	_Atomic pid_t tid;
	_Atomic int got;	/* events */
	_Atomic bool done;
} waiters[2];

static void on_signal(int signal __attribute__((unused)))
{
}

static void *waiter_run(void *arg)
{
	struct waiter *w = arg;
	struct epoll_event events[2];
	int nr;

	w->tid = syscall(SYS_gettid);
	if (!w->polls) {
		nr = epoll_wait(w->ep, events, w->max_events, -1);
	} else {
		/* Again, where the other one was faster to take what poll() told of. */
		do {
			nr = tw_poll(w->ep, POLLIN, -1);
			if (nr > 0)
				nr = epoll_wait(w->ep, events, w->max_events, 0);
		} while (!nr);
	}
	w->got = nr;
	w->done = true;
	return NULL;
}

static void waiter_start(struct __test_metadata *_metadata, struct waiter *w, int ep, bool polls,
			 int max_events)
{
	w->ep = ep;
	w->polls = polls;
	w->max_events = max_events;
	ASSERT_EQ(0, pthread_create(&w->thread, NULL, waiter_run, w));
	while (!w->tid)
		tw_sleep(TW_MS / 10);
	ASSERT_EQ(0, tw_wait_asleep(w->tid));
}

/* Wakes it if nobody else did; true if there was something for it. */
static bool waiter_stop(struct waiter *w)
{
	/* Again, if the signal came just before it fell asleep. */
	while (!w->done) {
		pthread_kill(w->thread, SIGUSR1);
		tw_sleep(TW_MS);
	}
	pthread_join(w->thread, NULL);
	return w->got > 0;
}

FIXTURE(tree_of_two) {
};

enum woken { BOTH, ONE, SECOND_AT_LEAST };

FIXTURE_VARIANT(tree_of_two) {
	struct edge edge[MAX_EDGES];
	enum node at[2];	/* where they wait */
	bool polls[2];
	enum woken woken;
	int max_events;
};

#define OF_TWO(name, who, where, first_polls, second_polls, ...)	\
FIXTURE_VARIANT_ADD(tree_of_two, name) {				\
	.edge = { __VA_ARGS__ }, .at = { E0, where }, .woken = who,	\
	.polls = { first_polls, second_polls }, .max_events = 1,	\
}

/* Both at the top: both in epoll_wait(), or the first one in poll(). */
#define AT_TOP(name, who, ...)						\
	OF_TWO(waits_##name, who, E0, false, false, __VA_ARGS__);	\
	OF_TWO(polls_##name, who, E0, true, false, __VA_ARGS__)

/* epoll9 (and 64), epoll13 */
AT_TOP(level, BOTH, { E0, S0, LT });
/* epoll10, epoll14 */
AT_TOP(edge, ONE, { E0, S0, ET });
/* epoll11, epoll15 */
AT_TOP(two_levels, BOTH, { E0, S0, LT }, { E0, S2, LT });
/* epoll12, epoll16 */
AT_TOP(two_edges, BOTH, { E0, S0, ET }, { E0, S2, ET });
/* epoll25, epoll29 */
AT_TOP(level_of_level, BOTH, { E1, S0, LT }, { E0, E1, LT });
/* epoll26, epoll30 */
AT_TOP(level_of_edge, BOTH, { E1, S0, ET }, { E0, E1, LT });
/* epoll27, epoll31 */
AT_TOP(edge_of_level, ONE, { E1, S0, LT }, { E0, E1, ET });
/* epoll28, epoll32 */
AT_TOP(edge_of_edge, ONE, { E1, S0, ET }, { E0, E1, ET });
/* epoll53, epoll55 */
AT_TOP(levels_of_two_levels, BOTH, OF_TWO_LEVELS(LT));
/* epoll54, epoll56 */
AT_TOP(edges_of_two_levels, BOTH, OF_TWO_LEVELS(ET));
/* epoll57, epoll58 */
OF_TWO(poll_both_levels_of_two_levels, BOTH, E0, true, true, OF_TWO_LEVELS(LT));
OF_TWO(poll_both_edges_of_two_levels, BOTH, E0, true, true, OF_TWO_LEVELS(ET));

/*
 * The second one waits below the first.  Where e1 is triggered by an edge, it may
 * have taken what the first one was woken for.
 */
#define BELOW(name, who, ...)						\
	OF_TWO(waits_above_wait_##name, who, E1, false, false, __VA_ARGS__);	\
	OF_TWO(waits_above_poll_##name, who, E1, false, true, __VA_ARGS__);	\
	OF_TWO(polls_above_wait_##name, who, E1, true, false, __VA_ARGS__);	\
	OF_TWO(polls_above_poll_##name, who, E1, true, true, __VA_ARGS__)

/* epoll33, epoll37, epoll41, epoll45 */
BELOW(level_of_level, BOTH, { E1, S0, LT }, { E0, E1, LT });
/* epoll34, epoll38, epoll42, epoll46 */
BELOW(level_of_edge, SECOND_AT_LEAST, { E1, S0, ET }, { E0, E1, LT });
/* epoll35, epoll39, epoll43, epoll47 */
BELOW(edge_of_level, BOTH, { E1, S0, LT }, { E0, E1, ET });
/* epoll36, epoll40, epoll44, epoll48 */
BELOW(edge_of_edge, SECOND_AT_LEAST, { E1, S0, ET }, { E0, E1, ET });

FIXTURE_SETUP(tree_of_two)
{
	const struct sigaction action = { .sa_handler = on_signal };

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	tree_make(_metadata, variant->edge);
}

FIXTURE_TEARDOWN(tree_of_two)
{
	tree_close();
}

/* Long enough for those that are to be woken, at once. */
static int wait_woken(int wanted)
{
	int tries;

	for (tries = 0; tries < TW_PATIENCE_MS; tries++) {
		if (waiters[0].done + waiters[1].done >= wanted)
			break;
		tw_sleep(TW_MS);
	}
	return waiters[0].done + waiters[1].done;
}

TEST_F_TIMEOUT(tree_of_two, wakes_whom_its_triggers_are_to_wake, 60)
{
	bool got[2];
	int i;

	for (i = 0; i < 2; i++)
		waiter_start(_metadata, &waiters[i], tree.fd[variant->at[i]], variant->polls[i],
			     variant->max_events);
	tree_expire(_metadata);
	if (variant->woken == BOTH) {
		EXPECT_EQ(2, wait_woken(2));
	} else if (variant->woken == SECOND_AT_LEAST) {
		for (i = 0; i < TW_PATIENCE_MS && !waiters[1].done; i++)
			tw_sleep(TW_MS);
	} else {
		EXPECT_LE(1, wait_woken(1));
		/* Who is woken in vain would be by now. */
		tw_sleep(50 * TW_MS);
	}
	for (i = 0; i < 2; i++)
		got[i] = waiter_stop(&waiters[i]);
	EXPECT_TRUE(got[1] || variant->woken == ONE);
	EXPECT_TRUE(got[0] || variant->woken != BOTH);
	EXPECT_TRUE(variant->woken != ONE || got[0] != got[1]);
}

/* ---- more of epoll ------------------------------------------------------- */

FIXTURE(epoll) {
	int fd;
	int ep;
};

FIXTURE_SETUP(epoll)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	/* MONOTONIC, of 1 ms */
	self->fd = tw_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	event.data.fd = self->fd;
	self->ep = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_LE(0, self->ep);
	ASSERT_EQ(0, epoll_ctl(self->ep, EPOLL_CTL_ADD, self->fd, &event));
}

FIXTURE_TEARDOWN(epoll)
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

/* epoll59, which was kernel bug 205933: what is unread makes an edge each time */
TEST_F_TIMEOUT(epoll, an_edge_made_by_a_change_of_interest_is_never_lost, 60)
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

/* epoll60: as many edges as sleepers, all at one tick, from several kthreads */
TEST_F_TIMEOUT(epoll, each_of_ten_sleepers_gets_one_of_ten_wheels, 90)
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

static void *wait_shortly(void *arg)
{
	const int *fds = arg;
	struct epoll_event event;
	__u64 id;

	/* If it was woken, there is to be something for the other one too. */
	if (epoll_wait(fds[1], &event, 1, 11) == 1)
		tw_arm_in(fds[0], 0, &id);
	return NULL;
}

/* epoll61: what comes as one of two gives up is not lost to the other one */
TEST_F_TIMEOUT(epoll, an_expiry_at_the_end_of_a_wait_wakes_somebody, 90)
{
	int fds[] = { self->fd, self->ep };
	struct twheel_event events[4];
	struct epoll_event event;
	pthread_t thread;
	__u64 id;
	int i;

	for (i = 0; i < 100; i++) {
		/* Before, at, and after the end of the shorter wait. */
		ASSERT_EQ(0, tw_arm_in(self->fd, 10 * TW_MS + i % 20 * 100 * TW_US, &id));
		ASSERT_EQ(0, pthread_create(&thread, NULL, wait_shortly, fds));
		ASSERT_EQ(1, epoll_wait(self->ep, &event, 1, TW_PATIENCE_MS))
			TH_LOG("round %d", i);
		pthread_join(thread, NULL);
		/* The other one's, if it was woken only after us. */
		while (tw_poll(self->fd, POLLIN, 2) == POLLIN)
			ASSERT_LT(0, tw_read(self->fd, events, 4));
	}
}

/* epoll62 */
TEST_F(epoll, epoll_pwait2_says_the_same)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = self->fd };
	__u64 id;
	int i;

	ASSERT_EQ(0, epoll_ctl(self->ep, EPOLL_CTL_MOD, self->fd, &event));
	ASSERT_EQ(0, tw_arm_in(self->fd, TW_MS, &id));
	for (i = 0; i < 2; i++) {
		event.events = 0;
		ASSERT_EQ(1, syscall(SYS_epoll_pwait2, self->ep, &event, 1, NULL, NULL, 0));
		EXPECT_EQ(EPOLLIN, event.events);
	}
}

/* ---- eventfd ------------------------------------------------------------- */

/* eventfd_check_flag_rdwr, _cloexec, _nonblock, and both */
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

/* eventfd_check_write */
TEST(writing_says_einval_and_changes_nothing)
{
	int fd = tw_virtual(O_NONBLOCK, TW_MS);
	struct twheel_arm arm = { .expires_ns = TW_MS };
	struct tw_snapshot before;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	ASSERT_EQ(0, tw_snapshot(fd, &before));
	EXPECT_EQ(-1, write(fd, &arm, sizeof(arm)));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(fd, &arm, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_UNCHANGED(fd, &before);
	close(fd);
}

#define MANY	20000
#define VECTOR	1000

/* eventfd_check_read_with_semaphore */
TEST(each_of_many_expirations_is_read_by_itself)
{
	static bool seen[MANY];
	struct twheel_arm arms[VECTOR] = {};
	int i, j, fd = tw_virtual(O_NONBLOCK, TW_MS);
	struct twheel_event event;

	ASSERT_LE(0, fd);
	for (i = 0; i < MANY; i += VECTOR) {
		for (j = 0; j < VECTOR; j++) {
			arms[j].expires_ns = TW_MS;
			arms[j].user_data = i + j;
		}
		ASSERT_EQ(VECTOR, tw_arm_vec(fd, arms, VECTOR));
	}
	ASSERT_EQ(0, tw_advance(fd, TW_MS));
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		ASSERT_EQ(1, event.count);
		ASSERT_GT(MANY, event.user_data);
		ASSERT_FALSE(seen[event.user_data]);
		seen[event.user_data] = true;
	}
	EXPECT_NO_EVENT(fd);
	EXPECT_ACCOUNTS(fd);
	close(fd);
}

/* ---- posix_timers -------------------------------------------------------- */

#define PERIOD_NS	(10 * TW_MS)

static __u64 left_at(__u64 now_ns, __u64 deadline_ns)
{
	return now_ns < deadline_ns ? deadline_ns - now_ns : 0;
}

/* check_gettime(), check_sigev_none(): nobody reads, and it goes on */
TEST(what_is_left_of_a_period_shrinks_and_begins_anew)
{
	__u64 id, first_ns, end_ns, before_ns, after_ns, previous_ns = PERIOD_NS;
	int begun = 0, fd = tw_open(O_NONBLOCK);
	struct twheel_status status;

	ASSERT_LE(0, fd);
	first_ns = tw_now(CLOCK_MONOTONIC) + PERIOD_NS;
	ASSERT_EQ(0, tw_arm1(fd, TWHEEL_ARM_ABSOLUTE, first_ns, PERIOD_NS, 0, &id));
	end_ns = first_ns + TW_PATIENCE_MS * TW_MS;
	while (begun < 10 && tw_now(CLOCK_MONOTONIC) < end_ns) {
		before_ns = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(0, tw_query1(fd, id, &status));
		after_ns = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(PERIOD_NS, status.interval_ns);
		/* Down to 0, while the deadline has passed and its edge has not. */
		ASSERT_GE(left_at(before_ns, status.deadline_ns), status.left_ns);
		ASSERT_LE(left_at(after_ns, status.deadline_ns), status.left_ns);
		ASSERT_EQ(0, (status.deadline_ns - first_ns) % PERIOD_NS);
		/* One deadline is waited for; those before it are in the count. */
		ASSERT_EQ(status.count, (status.deadline_ns - first_ns) / PERIOD_NS);
		begun += status.left_ns > previous_ns;
		previous_ns = status.left_ns;
	}
	EXPECT_EQ(10, begun);
	close(fd);
}

/* check_overrun(), a fifth of it */
TEST(a_second_that_nobody_reads_is_counted_to_the_last)
{
	__u64 id, first_ns, end_ns, sum = 0;
	int fd = tw_open(O_NONBLOCK);
	struct twheel_event event;

	ASSERT_LE(0, fd);
	first_ns = tw_now(CLOCK_MONOTONIC) + PERIOD_NS;
	ASSERT_EQ(0, tw_arm1(fd, TWHEEL_ARM_ABSOLUTE, first_ns, PERIOD_NS, 0, &id));
	/* Busy, as it is there, and not asleep. */
	end_ns = first_ns + 20 * PERIOD_NS;
	while (tw_now(CLOCK_MONOTONIC) < end_ns)
		;
	/* The kthread may be behind: then the rest comes in another event. */
	do {
		ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
		sum += event.count;
		EXPECT_EQ(first_ns + (sum - 1) * PERIOD_NS, event.deadline_ns);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
	} while (event.deadline_ns < end_ns);
	close(fd);
}

/* ---- the clocks ---------------------------------------------------------- */

static struct {
	int fd;
	_Atomic __u64 latest_ns;
	_Atomic bool stop;
	_Atomic int backwards;
} shown;

static void *look_at_time(void *arg)
{
	int fd = *(const int *)arg;

	while (!shown.stop) {
		__u64 before_ns = shown.latest_ns;
		struct twheel_info info;

		tw_info(fd, &info);
		if (info.now_ns < before_ns)
			shown.backwards++;
		while (before_ns < info.now_ns &&
		       !__atomic_compare_exchange_n((__u64 *)&shown.latest_ns, &before_ns,
						    info.now_ns, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST))
			;
	}
	return NULL;
}

/* inconsistency-check, threadtest */
TEST(time_never_goes_back_before_several_threads)
{
	pthread_t thread[3];
	int i, clock;

	for (clock = 0; clock < 2; clock++) {
		memset(&shown, 0, sizeof(shown));
		shown.fd = clock ? tw_virtual(O_NONBLOCK, TW_MS) : tw_open(O_NONBLOCK);
		ASSERT_LE(0, shown.fd);
		for (i = 0; i < 3; i++)
			ASSERT_EQ(0, pthread_create(&thread[i], NULL, look_at_time, &shown.fd));
		for (i = 1; i <= 100; i++) {
			if (clock)
				tw_advance(shown.fd, i * TW_MS);
			tw_sleep(TW_MS);
		}
		shown.stop = true;
		for (i = 0; i < 3; i++)
			pthread_join(thread[i], NULL);
		EXPECT_EQ(0, (int)shown.backwards);
		EXPECT_LT(0, (__u64)shown.latest_ns);
		close(shown.fd);
	}
}

#define SOURCES	"/sys/devices/system/clocksource/clocksource0/"

/* The machine's time is changed, and put right again after each test. */
FIXTURE(clocks) {
	__u64 offset_ns;	/* CLOCK_REALTIME less CLOCK_MONOTONIC */
	int tai;
	char source[32];
};

static ssize_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[len < 0 ? 0 : len] = '\0';
	return len;
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return len < 0 ? -errno : 0;
}

static int set_realtime(__u64 now_ns)
{
	struct timespec ts = tw_to_timespec(now_ns);

	return clock_settime(CLOCK_REALTIME, &ts) ? -errno : 0;
}

static int set_timex(unsigned int modes, int status, long constant, long freq)
{
	struct timex timex = {
		.modes = modes, .status = status, .constant = constant, .freq = freq,
	};

	return adjtimex(&timex);
}

FIXTURE_SETUP(clocks)
{
	struct timex timex = {};

	self->offset_ns = tw_now(CLOCK_REALTIME) - tw_now(CLOCK_MONOTONIC);
	ASSERT_LE(0, adjtimex(&timex));
	self->tai = timex.tai;
	read_text(SOURCES "current_clocksource", self->source, sizeof(self->source));
}

/* In the parent, which is there also when an assertion has ended the test. */
FIXTURE_TEARDOWN_PARENT(clocks)
{
	/* The way out of a leap second leads by the phase-locked loop. */
	set_timex(ADJ_STATUS, STA_PLL, 0, 0);
	EXPECT_LE(0, set_timex(ADJ_STATUS, 0, 0, 0));
	EXPECT_LE(0, set_timex(ADJ_FREQUENCY, 0, 0, 0));
	EXPECT_LE(0, set_timex(ADJ_TAI, 0, self->tai, 0));
	EXPECT_EQ(0, set_realtime(tw_now(CLOCK_MONOTONIC) + self->offset_ns));
	write_text(SOURCES "current_clocksource", self->source);
}

static const struct {
	__u32 clock;
	clockid_t clockid;
} clocks[] = {
	{ TWHEEL_CLOCK_MONOTONIC, CLOCK_MONOTONIC }, { TWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME },
	{ TWHEEL_CLOCK_REALTIME, CLOCK_REALTIME }, { TWHEEL_CLOCK_TAI, CLOCK_TAI },
};

/* Timeouts up to 100 ms ahead come on each clock, and by that clock. */
static void expect_on_no_clock_early(struct __test_metadata *_metadata)
{
	struct twheel_event event;
	int i, j;
	__u64 id;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = tw_open(O_NONBLOCK);

		ASSERT_LE(0, fd);
		ASSERT_EQ(0, tw_setup(fd, clocks[i].clock, TW_MS, 0));
		for (j = 1; j <= 10; j++)
			ASSERT_EQ(0, tw_arm_in(fd, j * 5 * TW_MS, &id));
		for (j = 1; j <= 10; j++) {
			ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
			EXPECT_LE(event.deadline_ns, event.fired_ns);
			EXPECT_LE(event.deadline_ns, tw_now(clocks[i].clockid));
		}
		EXPECT_ACCOUNTS(fd);
		close(fd);
	}
}

/* change_skew: 500 ppm is as far as it goes, 2^16 a ppm */
TEST_F(clocks, no_skew_of_the_clock_makes_it_early)
{
	ASSERT_LE(0, set_timex(ADJ_FREQUENCY, 0, 0, 500L << 16));
	expect_on_no_clock_early(_metadata);
	ASSERT_LE(0, set_timex(ADJ_FREQUENCY, 0, 0, -(500L << 16)));
	expect_on_no_clock_early(_metadata);
}

/* clocksource-switch */
TEST_F(clocks, no_change_of_the_clock_source_makes_it_early)
{
	char sources[256], *source, *rest = sources;
	int nr = 0;

	if (read_text(SOURCES "available_clocksource", sources, sizeof(sources)) < 0 ||
	    !strchr(sources, ' '))
		SKIP(return, "this machine has no two clock sources");
	while ((source = strtok_r(rest, "\n ", &rest))) {
		ASSERT_EQ(0, write_text(SOURCES "current_clocksource", source));
		expect_on_no_clock_early(_metadata);
		nr++;
	}
	EXPECT_LT(1, nr);
}

/* set-2038 */
TEST_F(clocks, the_end_of_32_bits_of_seconds_is_a_second_as_any_other)
{
	const __u64 end_ns = (1ULL << 31) * TW_SEC;
	int i, fd = tw_open(O_NONBLOCK);
	struct twheel_event event;
	__u64 id;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_setup(fd, TWHEEL_CLOCK_REALTIME, TW_MS, 0));
	ASSERT_EQ(0, set_realtime(end_ns - 100 * TW_MS));
	for (i = -5; i <= 5; i++)
		ASSERT_EQ(0, tw_arm_at(fd, end_ns + i * 10 * TW_MS, &id));
	for (i = -5; i <= 5; i++) {
		ASSERT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
		EXPECT_EQ(end_ns + i * 10 * TW_MS, event.deadline_ns);
		EXPECT_LE(event.deadline_ns, event.fired_ns);
		EXPECT_LE(event.fired_ns, tw_now(CLOCK_REALTIME));
	}
	EXPECT_NO_EVENT(fd);
	close(fd);
}

/* What takes so long by one clock takes how long by CLOCK_MONOTONIC? */
static __u64 time_taken_ns(struct __test_metadata *_metadata, int fd, __u64 begin_ns)
{
	struct twheel_event event;

	EXPECT_EQ(1, tw_wait_event(fd, &event, TW_PATIENCE_MS));
	EXPECT_LE(event.deadline_ns, event.fired_ns);
	return tw_now(CLOCK_MONOTONIC) - begin_ns;
}

/*
 * leap-a-day; leapsec01 of LTP, which is about timers that were early after it.
 * The day has a second more: what is to be after it waits a second longer by
 * CLOCK_REALTIME, and not by CLOCK_TAI.
 */
TEST_F_TIMEOUT(clocks, a_leap_second_makes_nothing_early, 60)
{
	__u64 begin_ns, midnight_ns, distance_ns = 2500 * TW_MS;
	struct timex timex = {};
	int i, fd[2];
	__u64 id;

	midnight_ns = (tw_now(CLOCK_REALTIME) / TW_DAY + 10000) * TW_DAY;
	set_timex(ADJ_STATUS, STA_PLL, 0, 0);
	ASSERT_LE(0, set_timex(ADJ_STATUS, 0, 0, 0));
	ASSERT_EQ(0, set_realtime(midnight_ns - 2200 * TW_MS));
	ASSERT_LE(0, set_timex(ADJ_STATUS, STA_INS, 0, 0));

	begin_ns = tw_now(CLOCK_MONOTONIC);
	for (i = 0; i < 2; i++) {
		fd[i] = tw_open(O_NONBLOCK);
		ASSERT_LE(0, fd[i]);
		ASSERT_EQ(0, tw_setup(fd[i], i ? TWHEEL_CLOCK_TAI : TWHEEL_CLOCK_REALTIME,
				      TW_MS, 0));
		ASSERT_EQ(0, tw_arm_in(fd[i], distance_ns, &id));
	}
	EXPECT_LE(distance_ns, time_taken_ns(_metadata, fd[1], begin_ns));
	EXPECT_LE(distance_ns + TW_SEC, time_taken_ns(_metadata, fd[0], begin_ns));
	ASSERT_LE(0, adjtimex(&timex));
	EXPECT_EQ(self->tai + 1, timex.tai)
		TH_LOG("no leap second was inserted");
	for (i = 0; i < 2; i++) {
		EXPECT_NO_EVENT(fd[i]);
		EXPECT_ACCOUNTS(fd[i]);
		close(fd[i]);
	}
}

TEST_HARNESS_MAIN
