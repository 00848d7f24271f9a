// SPDX-License-Identifier: GPL-2.0
/*
 * Wheels that threads share: they start and stop, one dispatches, and the earliest wakes it. These
 * tests are also built with the sanitizer for threads, see Makefile.
 */
#include "twheel_lib_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#define THREADS	3
#define MANY	200

/* A timer that threads start, stop and call. */
struct item {
	struct twheel_timer timer;
	atomic_int called;
	atomic_int in_callback;
	__u64 deadline_ns;
	atomic_int early;
};

FIXTURE(shared) {
	struct twheel *w;
	struct item item[THREADS][MANY];
};

static void on_expiry(struct twheel *w, struct twheel_timer *t)
{
	struct item *item = twheel_container_of(t, struct item, timer);

	(void)w;
	if (tw_now(CLOCK_MONOTONIC) < item->deadline_ns)
		item->early++;
	item->called++;
}

FIXTURE_SETUP(shared)
{
	int i, k;

	memset(self->item, 0, sizeof(self->item));
	for (i = 0; i < THREADS; i++)
		for (k = 0; k < MANY; k++)
			twheel_timer_init(&self->item[i][k].timer, on_expiry);
	ASSERT_EQ(0, lib_open(&self->w, TWHEEL_MONOTONIC, TWHEEL_SHARED, TW_MS));
}

FIXTURE_TEARDOWN(shared)
{
	twheel_close(self->w);
	EXPECT_NO_LEAK();
}

struct work {
	struct twheel *w;
	struct item *items;
	__u64 seed;
	long stopped;
	atomic_bool *end;
};

/* Start and stop timers of its own, each of which comes to one outcome. */
static void *starts_and_stops(void *arg)
{
	struct work *work = arg;
	int i, round;

	for (round = 0; round < 20; round++) {
		for (i = 0; i < MANY; i++) {
			struct item *item = &work->items[i];
			__u64 delay_ns = tw_random(&work->seed) % (10 * TW_MS);

			if (twheel_stop(work->w, &item->timer))
				work->stopped++;
			/* If the callback is under way, the stop waits. */
			if (twheel_stop_sync(work->w, &item->timer))
				work->stopped++;
			item->deadline_ns = tw_now(CLOCK_MONOTONIC) + delay_ns;
			if (i % 2)
				twheel_start(work->w, &item->timer, delay_ns);
			else
				twheel_start_at(work->w, &item->timer, item->deadline_ns);
		}
		tw_sleep(tw_random(&work->seed) % (3 * TW_MS));
	}
	return NULL;
}

static void *waits(void *arg)
{
	struct work *work = arg;

	while (!*work->end)
		if (twheel_wait(work->w, TW_SEC) < 0)
			return work;
	return NULL;
}

TEST_F(shared, every_start_by_any_thread_has_one_outcome)
{
	pthread_t thread[THREADS], waiter;
	struct work work[THREADS + 1] = { };
	atomic_bool end = false;
	long called = 0, stopped = 0;
	void *failed;
	int i, k;

	for (i = 0; i <= THREADS; i++) {
		work[i].w = self->w;
		work[i].items = self->item[i % THREADS];
		work[i].seed = i + 1;
		work[i].end = &end;
	}
	ASSERT_EQ(0, pthread_create(&waiter, NULL, waits, &work[THREADS]));
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, starts_and_stops, &work[i]));
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	TW_WAIT_FOR(!lib_stats(self->w).pending, TW_MS);
	end = true;
	twheel_wake(self->w);
	pthread_join(waiter, &failed);
	EXPECT_EQ(NULL, failed);
	for (i = 0; i < THREADS; i++) {
		stopped += work[i].stopped;
		for (k = 0; k < MANY; k++) {
			called += self->item[i][k].called;
			EXPECT_EQ(0, self->item[i][k].early);
		}
	}
	EXPECT_EQ(THREADS * MANY * 20, called + stopped);
	EXPECT_LT(0, called);
	EXPECT_EQ(called, lib_stats(self->w).called);
}

/* The first thread sleeps for an hour, and another one starts a timer of 5 ms. */
static void *starts_the_earliest(void *arg)
{
	struct work *work = arg;

	tw_wait_asleep(getpid());
	twheel_start(work->w, &work->items[1].timer, 5 * TW_MS);
	return NULL;
}

TEST_F(shared, start_of_the_earliest_wakes_the_thread_that_waits)
{
	struct work work = { .w = self->w, .items = self->item[0] };
	__u64 before_ns = tw_now(CLOCK_MONOTONIC);
	pthread_t thread;

	twheel_start(self->w, &self->item[0][0].timer, TW_HOUR);
	ASSERT_EQ(0, pthread_create(&thread, NULL, starts_the_earliest, &work));
	EXPECT_EQ(1, twheel_wait(self->w, TW_MIN));
	EXPECT_GT(before_ns + TW_PATIENCE_MS * TW_MS, tw_now(CLOCK_MONOTONIC));
	pthread_join(thread, NULL);
	EXPECT_EQ(1, self->item[0][1].called);
}

/* The wheel is used by its descriptor, without a flush. */
TEST_F(shared, start_of_the_earliest_makes_the_descriptor_readable)
{
	struct work work = { .w = self->w, .items = self->item[0] };
	pthread_t thread;

	ASSERT_LE(0, twheel_fd(self->w));
	ASSERT_EQ(0, pthread_create(&thread, NULL, starts_the_earliest, &work));
	EXPECT_EQ(POLLIN, tw_poll(twheel_fd(self->w), POLLIN, TW_PATIENCE_MS));
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	pthread_join(thread, NULL);
}

static void *wakes(void *arg)
{
	struct work *work = arg;

	tw_wait_asleep(getpid());
	twheel_wake(work->w);
	return NULL;
}

TEST_F(shared, wake_ends_the_wait_of_another_thread)
{
	struct work work = { .w = self->w };
	__u64 before_ns = tw_now(CLOCK_MONOTONIC);
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, wakes, &work));
	EXPECT_EQ(0, twheel_wait(self->w, TW_MIN));
	EXPECT_GT(before_ns + TW_PATIENCE_MS * TW_MS, tw_now(CLOCK_MONOTONIC));
	pthread_join(thread, NULL);
}

TEST_F(shared, wake_before_a_wait_ends_that_one_and_no_other)
{
	__u64 before_ns = tw_now(CLOCK_MONOTONIC);

	twheel_wake(self->w);
	EXPECT_EQ(0, twheel_wait(self->w, TW_MIN));
	EXPECT_GT(before_ns + TW_PATIENCE_MS * TW_MS, tw_now(CLOCK_MONOTONIC));
	before_ns = tw_now(CLOCK_MONOTONIC);
	EXPECT_EQ(0, twheel_wait(self->w, 20 * TW_MS));
	EXPECT_LE(before_ns + 20 * TW_MS, tw_now(CLOCK_MONOTONIC));
}

TEST_F(shared, wait_that_calls_a_timer_returns_the_count_and_spends_the_wake)
{
	__u64 before_ns;
	struct mark m;

	mark_init(&m);
	twheel_start(self->w, &m.timer, 0);
	twheel_wake(self->w);
	EXPECT_EQ(1, twheel_wait(self->w, TW_MIN));
	before_ns = tw_now(CLOCK_MONOTONIC);
	EXPECT_EQ(0, twheel_wait(self->w, 20 * TW_MS));
	EXPECT_LE(before_ns + 20 * TW_MS, tw_now(CLOCK_MONOTONIC));
}

TEST_F(shared, wake_makes_the_descriptor_readable_until_the_next_dispatch)
{
	ASSERT_LE(0, twheel_fd(self->w));
	EXPECT_EQ(0, tw_poll(twheel_fd(self->w), POLLIN, 10));
	twheel_wake(self->w);
	EXPECT_EQ(POLLIN, tw_poll(twheel_fd(self->w), POLLIN, TW_PATIENCE_MS));
	EXPECT_EQ(0, twheel_flush(self->w));
	EXPECT_EQ(POLLIN, tw_poll(twheel_fd(self->w), POLLIN, TW_PATIENCE_MS));
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(0, tw_poll(twheel_fd(self->w), POLLIN, 10));
}

/* ---- in a signal handler ------------------------------------------------------- */

static struct twheel *signalled;
static atomic_int signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
	twheel_wake(signalled);
}

TEST_F(shared, wake_in_a_signal_handler_takes_no_lock_and_leaves_errno)
{
	const struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { };
	struct item *item = &self->item[0][0];

	signalled = self->w;
	signals = 0;
	ASSERT_LE(0, twheel_fd(self->w));
	signal(SIGALRM, on_signal);
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	while (signals < 300) {
		/* This timer expires first, so its start sets the descriptor, under the lock. */
		twheel_start(self->w, &item->timer, TW_HOUR);
		twheel_stop(self->w, &item->timer);
		twheel_dispatch(self->w, 0);
	}
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &never, NULL));
	close(twheel_fd(self->w));
	errno = 0;
	twheel_wake(self->w);
	EXPECT_EQ(0, errno);
	/* This is the number that twheel_close() closes. */
	ASSERT_EQ(twheel_fd(self->w), dup(0));
}

TEST_F(shared, wake_in_a_signal_handler_ends_the_wait_that_it_interrupts)
{
	const struct itimerval soon = { { 0, 0 }, { 0, 20000 } };
	__u64 before_ns = tw_now(CLOCK_MONOTONIC);
	int ret;

	signalled = self->w;
	signal(SIGALRM, on_signal);
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &soon, NULL));
	ret = twheel_wait(self->w, TW_MIN);
	/* After that, the next wait ends at once. */
	if (ret == -EINTR)
		ret = twheel_wait(self->w, TW_MIN);
	EXPECT_EQ(0, ret);
	EXPECT_GT(before_ns + TW_PATIENCE_MS * TW_MS, tw_now(CLOCK_MONOTONIC));
}

static void *starts_and_stops_the_earliest(void *arg)
{
	struct work *work = arg;
	int i;

	for (i = 0; !*work->end; i++) {
		twheel_start(work->w, &work->items->timer, TW_HOUR - i % 1000 * TW_US);
		if (i % 3 == 2)
			twheel_stop(work->w, &work->items->timer);
	}
	return NULL;
}

/* Other threads set it to later times, also just after it was rung. */
TEST_F(shared, each_wake_makes_the_descriptor_readable_beside_starts_of_other_threads)
{
	atomic_bool end = false;
	struct work work = { .w = self->w, .items = self->item[0], .end = &end };
	pthread_t thread;
	int i;

	ASSERT_LE(0, twheel_fd(self->w));
	ASSERT_EQ(0, pthread_create(&thread, NULL, starts_and_stops_the_earliest, &work));
	for (i = 0; i < 1000; i++) {
		twheel_wake(self->w);
		ASSERT_EQ(POLLIN, tw_poll(twheel_fd(self->w), POLLIN, TW_PATIENCE_MS));
		EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	}
	end = true;
	pthread_join(thread, NULL);
	/* It does not stay readable for ever. */
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
	EXPECT_EQ(0, tw_poll(twheel_fd(self->w), POLLIN, 10));
}

/* ---- while a callback runs --------------------------------------------------- */

static atomic_int entered, may_return;

static void stays(struct twheel *w, struct twheel_timer *t)
{
	struct item *item = twheel_container_of(t, struct item, timer);

	(void)w;
	item->in_callback = 1;
	entered = 1;
	TW_WAIT_FOR(may_return, TW_MS);
	item->in_callback = 0;
	item->called++;
}

static void *dispatches(void *arg)
{
	struct work *work = arg;

	while (!entered)
		twheel_wait(work->w, 10 * TW_MS);
	return NULL;
}

/* Return as soon as the first thread sleeps in twheel_stop_sync(). */
static void *returns_soon(void *arg)
{
	(void)arg;
	tw_wait_asleep(getpid());
	may_return = 1;
	return NULL;
}

/* Wait until a callback is under way in another thread. */
static void enter_callback(struct __test_metadata *_metadata, struct twheel *w, struct work *work,
			   struct item *item, bool periodic, pthread_t *thread)
{
	entered = 0;
	may_return = 0;
	*work = (struct work){ .w = w };
	twheel_timer_init(&item->timer, stays);
	if (periodic)
		twheel_start_every(w, &item->timer, TW_MS);
	else
		twheel_start(w, &item->timer, TW_MS);
	ASSERT_EQ(0, pthread_create(thread, NULL, dispatches, work));
	TW_WAIT_FOR(entered, TW_MS);
}

TEST_F(shared, dispatch_while_another_thread_dispatches_is_ebusy)
{
	struct item *item = &self->item[0][0];
	pthread_t thread;
	struct work work;

	enter_callback(_metadata, self->w, &work, item, false, &thread);
	EXPECT_EQ(-EBUSY, twheel_dispatch(self->w, 0));
	/* All other timers go on. */
	twheel_start(self->w, &self->item[0][1].timer, TW_HOUR);
	EXPECT_TRUE(twheel_stop(self->w, &self->item[0][1].timer));
	EXPECT_NE(0, twheel_now(self->w));
	may_return = 1;
	pthread_join(thread, NULL);
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
}

/* If a thread cannot dispatch, it leaves the wake to the thread that it is meant for. */
TEST_F(shared, wake_that_a_wait_finds_while_another_thread_dispatches_ends_the_next_one)
{
	struct item *item = &self->item[0][0];
	__u64 before_ns;
	pthread_t thread;
	struct work work;

	enter_callback(_metadata, self->w, &work, item, false, &thread);
	twheel_wake(self->w);
	EXPECT_EQ(-EBUSY, twheel_wait(self->w, TW_MIN));
	may_return = 1;
	pthread_join(thread, NULL);
	before_ns = tw_now(CLOCK_MONOTONIC);
	EXPECT_EQ(0, twheel_wait(self->w, 5 * TW_SEC));
	EXPECT_GT(before_ns + 4 * TW_SEC, tw_now(CLOCK_MONOTONIC));
}

TEST_F(shared, stop_sync_returns_after_the_callback_has)
{
	struct item *item = &self->item[0][0];
	pthread_t thread, other;
	struct work work;

	enter_callback(_metadata, self->w, &work, item, false, &thread);
	EXPECT_FALSE(twheel_stop(self->w, &item->timer));
	EXPECT_EQ(1, item->in_callback);
	ASSERT_EQ(0, pthread_create(&other, NULL, returns_soon, NULL));
	EXPECT_FALSE(twheel_stop_sync(self->w, &item->timer));
	EXPECT_EQ(0, item->in_callback);
	EXPECT_EQ(1, item->called);
	/* Do as a program does that frees it. */
	memset(&item->timer, TW_POISON, sizeof(item->timer));
	pthread_join(other, NULL);
	pthread_join(thread, NULL);
}

TEST_F(shared, stop_sync_of_another_timer_does_not_wait)
{
	struct item *item = &self->item[0][0];
	pthread_t thread;
	struct work work;

	enter_callback(_metadata, self->w, &work, item, false, &thread);
	twheel_start(self->w, &self->item[0][1].timer, TW_HOUR);
	EXPECT_TRUE(twheel_stop_sync(self->w, &self->item[0][1].timer));
	EXPECT_EQ(1, item->in_callback);
	may_return = 1;
	pthread_join(thread, NULL);
}

TEST_F(shared, stop_sync_leaves_a_periodic_timer_idle)
{
	struct item *item = &self->item[0][0];
	pthread_t thread, other;
	struct work work;

	enter_callback(_metadata, self->w, &work, item, true, &thread);
	ASSERT_EQ(0, pthread_create(&other, NULL, returns_soon, NULL));
	EXPECT_TRUE(twheel_stop_sync(self->w, &item->timer));
	EXPECT_EQ(0, item->in_callback);
	EXPECT_FALSE(twheel_timer_pending(&item->timer));
	pthread_join(other, NULL);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, twheel_wait(self->w, 10 * TW_MS));
	EXPECT_EQ(1, item->called);
}

static _Atomic pid_t stopping;

static void *stops_sync(void *arg)
{
	struct work *work = arg;

	stopping = gettid();
	twheel_stop_sync(work->w, &work->items->timer);
	return arg;
}

TEST_F(shared, thread_that_is_cancelled_in_stop_sync_does_not_take_the_lock_along)
{
	struct item *item = &self->item[0][0];
	pthread_t thread, other;
	struct work work;
	void *ret;

	enter_callback(_metadata, self->w, &work, item, false, &thread);
	work.items = item;
	ASSERT_EQ(0, pthread_create(&other, NULL, stops_sync, &work));
	ASSERT_TRUE(TW_WAIT_FOR(stopping, TW_MS));
	ASSERT_EQ(0, tw_wait_asleep(stopping));
	ASSERT_EQ(0, pthread_cancel(other));
	ASSERT_EQ(0, tw_wait_asleep(stopping));
	may_return = 1;
	pthread_join(other, &ret);
	EXPECT_EQ(&work, ret);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, twheel_dispatch(self->w, 0));
}

static void *dispatches_once(void *arg)
{
	struct work *work = arg;

	pthread_cancel(pthread_self());
	twheel_dispatch(work->w, 0);
	return arg;
}

/* If the clock can be set, a dispatch reads the descriptor. */
TEST_F(shared, thread_that_is_cancelled_in_dispatch_does_not_take_the_lock_along)
{
	struct work work = { .w = NULL };
	pthread_t thread;
	void *ret;

	ASSERT_EQ(0, lib_open(&work.w, TWHEEL_REALTIME, TWHEEL_SHARED, TW_MS));
	ASSERT_LE(0, twheel_fd(work.w));
	twheel_start(work.w, &self->item[0][0].timer, TW_HOUR);
	ASSERT_EQ(0, pthread_create(&thread, NULL, dispatches_once, &work));
	pthread_join(thread, &ret);
	EXPECT_EQ(&work, ret);
	EXPECT_EQ(0, twheel_dispatch(work.w, 0));
	twheel_close(work.w);
}

static void stops_itself(struct twheel *w, struct twheel_timer *t)
{
	struct item *item = twheel_container_of(t, struct item, timer);

	item->called += 1 + twheel_stop_sync(w, t);
}

TEST_F(shared, stop_sync_in_the_timers_own_callback_does_not_wait)
{
	struct item *item = &self->item[0][0];

	twheel_timer_init(&item->timer, stops_itself);
	twheel_start(self->w, &item->timer, 0);
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, item->called);
	twheel_start_every(self->w, &item->timer, TW_MS);
	EXPECT_EQ(1, twheel_wait(self->w, TW_SEC));
	EXPECT_EQ(3, item->called);
	EXPECT_EQ(TWHEEL_NEVER, twheel_next(self->w));
}

static pid_t waiting;

/* Wait until the thread that stops the timer sleeps: then it waits for the callback. */
static void *returns_when_awaited(void *arg)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", waiting);
	while (state != 'S') {
		FILE *file = fopen(path, "r");

		if (!file || fscanf(file, "%*d %*s %c", &state) != 1)
			return arg;
		fclose(file);
		tw_sleep(TW_MS);
	}
	may_return = 1;
	return NULL;
}

static void stays_and_restarts_itself(struct twheel *w, struct twheel_timer *t)
{
	stays(w, t);
	twheel_start(w, t, 0);
}

static void *dispatches_all(void *arg)
{
	struct work *work = arg;

	while (!*work->end)
		twheel_wait(work->w, 10 * TW_MS);
	return NULL;
}

TEST_F(shared, stop_sync_is_not_overtaken_by_a_callback_that_restarts_itself)
{
	struct item *item = &self->item[0][0];
	atomic_bool end = false;
	struct work work = { .w = self->w, .end = &end };
	pthread_t thread, other;
	void *failed;
	int i;

	waiting = (pid_t)syscall(SYS_gettid);
	twheel_timer_init(&item->timer, stays_and_restarts_itself);
	ASSERT_EQ(0, pthread_create(&thread, NULL, dispatches_all, &work));
	for (i = 0; i < 20; i++) {
		item->called = 0;
		entered = 0;
		may_return = 0;
		twheel_start(self->w, &item->timer, 0);
		TW_WAIT_FOR(entered, TW_MS);
		ASSERT_EQ(0, pthread_create(&other, NULL, returns_when_awaited, &work));
		EXPECT_TRUE(twheel_stop_sync(self->w, &item->timer));
		EXPECT_FALSE(twheel_timer_pending(&item->timer));
		EXPECT_EQ(1, item->called);
		pthread_join(other, &failed);
		EXPECT_EQ(NULL, failed);
	}
	end = true;
	pthread_join(thread, NULL);
}

static struct twheel_timer moved;

static void stays_moves_and_restarts_itself(struct twheel *w, struct twheel_timer *t)
{
	stays(w, t);
	twheel_start(w, t, 0);
	twheel_timer_move(w, &moved, t);
}

TEST_F(shared, stop_sync_stops_a_timer_that_has_moved_in_its_callback)
{
	struct item *item = &self->item[0][0];
	pthread_t thread, other;
	struct work work;

	enter_callback(_metadata, self->w, &work, item, false, &thread);
	item->timer.callback = stays_moves_and_restarts_itself;
	may_return = 1;
	pthread_join(thread, NULL);
	waiting = (pid_t)syscall(SYS_gettid);
	entered = 0;
	may_return = 0;
	twheel_start(self->w, &item->timer, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, dispatches, &work));
	TW_WAIT_FOR(entered, TW_MS);
	ASSERT_EQ(0, pthread_create(&other, NULL, returns_when_awaited, &work));
	EXPECT_TRUE(twheel_stop_sync(self->w, &item->timer));
	EXPECT_FALSE(twheel_timer_pending(&moved));
	pthread_join(other, NULL);
	pthread_join(thread, NULL);
}

/* ---- threads that end in a callback ------------------------------------------- */

static void is_cancelled(struct twheel *w, struct twheel_timer *t)
{
	(void)w;
	(void)t;
	entered = 1;
	pthread_cancel(pthread_self());
	pthread_testcancel();
}

TEST_F(shared, thread_that_is_cancelled_in_a_callback_leaves_the_wheel_to_others)
{
	struct item *item = self->item[0];
	struct work work = { .w = self->w };
	pthread_t thread;
	void *ret;

	entered = 0;
	twheel_timer_init(&item[0].timer, is_cancelled);
	twheel_start(self->w, &item[0].timer, 0);
	twheel_start(self->w, &item[1].timer, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, dispatches, &work));
	pthread_join(thread, &ret);
	EXPECT_EQ(PTHREAD_CANCELED, ret);
	EXPECT_EQ(1, twheel_dispatch(self->w, 0));
	EXPECT_EQ(1, item[1].called);
	/* If the callback is over, it does not wait. */
	twheel_start(self->w, &item[0].timer, TW_HOUR);
	work.items = item;
	ASSERT_EQ(0, pthread_create(&thread, NULL, stops_sync, &work));
	pthread_join(thread, NULL);
	EXPECT_FALSE(twheel_timer_pending(&item[0].timer));
}

/* ---- fork() ------------------------------------------------------------------- */

/* The child has no thread that is in the callback, so nobody returns from it there. */
TEST_F(shared, child_of_a_fork_while_another_thread_is_in_a_callback_goes_on)
{
	struct item *item = &self->item[0][0];
	pthread_t thread;
	struct work work;
	int status;
	pid_t pid;

	enter_callback(_metadata, self->w, &work, item, false, &thread);
	twheel_start(self->w, &self->item[0][1].timer, 0);
	pid = fork();
	if (!pid) {
		twheel_after_fork(self->w);
		if (twheel_dispatch(self->w, 0) != 1 || self->item[0][1].called != 1)
			_exit(1);
		twheel_start(self->w, &item->timer, TW_HOUR);
		_exit(twheel_stop_sync(self->w, &item->timer) ? 0 : 2);
	}
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	may_return = 1;
	pthread_join(thread, NULL);
}

/* ---- the clock ---------------------------------------------------------------- */

TEST_F(shared, wheel_that_threads_share_keeps_their_deadlines)
{
	__u64 before_ns = tw_now(CLOCK_MONOTONIC);

	/* If there are no turns, the clock is read at each start. */
	twheel_start(self->w, &self->item[0][0].timer, TW_HOUR);
	tw_sleep(3 * TW_MS);
	twheel_start(self->w, &self->item[0][1].timer, TW_HOUR);
	EXPECT_LE(before_ns + TW_HOUR, twheel_timer_deadline(&self->item[0][0].timer));
	EXPECT_LE(twheel_timer_deadline(&self->item[0][0].timer) + 3 * TW_MS,
		  twheel_timer_deadline(&self->item[0][1].timer));
}

TEST_HARNESS_MAIN
