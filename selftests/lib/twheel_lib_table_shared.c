// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of <twheel/table.h> as threads and processes share them, on a real clock: sleepers,
 * exact accounts of threads on the same numbers, fork, and on the device descriptors that are
 * passed on, and processes that die
 */
#include "lib_table.h"
#include "twheel_chance.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#define NR		1000U

static __u64 now_ns(void)
{
	return tw_now(CLOCK_MONOTONIC);
}

/* ---- how it is opened ----------------------------------------------------- */

FIXTURE(opened)
{
	struct twheel_table_options options;
	struct twheel_table *t;
};

VARIANTS(opened);

FIXTURE_SETUP(opened)
{
	SKIP_WITHOUT_DEVICE();
	self->options.size = sizeof(self->options);
	self->options.backend = variant->backend;
}

FIXTURE_TEARDOWN(opened)
{
	twheel_table_close(self->t);
}

/* Return the error of an open that must fail, or 1 if it has made a table all the same. */
static int open_fails(__u32 nr, const struct twheel_table_options *options)
{
	struct twheel_table *table = (void *)1;
	int ret = twheel_table_open(&table, nr, options);

	return table ? 1 : ret;
}

TEST_F(opened, value_outside_its_range_is_einval)
{
	struct twheel_table_options *o = &self->options, good = *o;

	EXPECT_EQ(-EINVAL, open_fails(0, o));
	EXPECT_EQ(-EINVAL, open_fails((1U << 30) + 1, o));
	o->size--;
	EXPECT_EQ(-EINVAL, open_fails(NR, o));
	*o = good;
	o->backend = 3;
	EXPECT_EQ(-EINVAL, open_fails(NR, o));
	*o = good;
	o->flags = 2;
	EXPECT_EQ(-EINVAL, open_fails(NR, o));
	*o = good;
	o->clock = TWHEEL_TABLE_VIRTUAL + 1;
	EXPECT_EQ(-EINVAL, open_fails(NR, o));
	*o = good;
	o->tick_ns = TW_US - 1;
	EXPECT_EQ(-EINVAL, open_fails(NR, o));
	o->tick_ns = TW_HOUR + 1;
	EXPECT_EQ(-EINVAL, open_fails(NR, o));
	*o = good;
	o->reserved = 1;
	EXPECT_EQ(-EINVAL, open_fails(NR, o));
	*o = good;
	o->fd = 2;
	EXPECT_EQ(-EINVAL, open_fails(NR, o));
	o->fd = -1;
	EXPECT_EQ(-EINVAL, open_fails(NR, o));
}

TEST_F(opened, later_options_are_e2big_unless_they_are_zero)
{
	struct {
		struct twheel_table_options options;
		__u64 later;
	} o = { .options = self->options, .later = 1 };

	o.options.size = sizeof(o);
	EXPECT_EQ(-E2BIG, open_fails(NR, &o.options));
	o.later = 0;
	EXPECT_EQ(0, twheel_table_open(&self->t, NR, &o.options));
}

TEST_F(opened, close_of_no_table_does_nothing)
{
	twheel_table_close(NULL);
}

TEST_F(opened, each_clock_goes)
{
	__u32 clock, number;
	__u64 before_ns;

	for (clock = TWHEEL_TABLE_MONOTONIC; clock <= TWHEEL_TABLE_TAI; clock++) {
		self->options.clock = clock;
		ASSERT_EQ(0, twheel_table_open(&self->t, NR, &self->options));
		before_ns = twheel_table_now(self->t);
		tw_sleep(TW_MS);
		EXPECT_LE(before_ns + TW_MS, twheel_table_now(self->t));
		ASSERT_EQ(IDLE, twheel_table_start(self->t, 1,
						   twheel_table_now(self->t) + 3 * TW_MS));
		ASSERT_EQ(IDLE, twheel_table_start(self->t, 2,
						   twheel_table_now(self->t) + TW_HOUR));
		ASSERT_EQ(1, twheel_table_expired(self->t, &number, 1,
						  TW_PATIENCE_MS * TW_MS));
		EXPECT_EQ(1, number);
		EXPECT_EQ(-EOPNOTSUPP, twheel_table_advance(self->t, TW_DAY));
		twheel_table_close(self->t);
		self->t = NULL;
	}
}

TEST_F(opened, table_of_processes_is_on_the_device)
{
	const bool device = variant->backend == TWHEEL_TABLE_DEVICE;

	self->options.flags = TWHEEL_TABLE_PROCESSES;
	EXPECT_EQ(device ? 0 : -EINVAL, twheel_table_open(&self->t, NR, &self->options));
	self->options.flags = 0;
	self->options.fd = 1000;
	EXPECT_EQ(device ? -EBADF : -EINVAL, open_fails(NR, &self->options));
}

TEST_F(opened, auto_takes_the_device_if_it_is_asked_for)
{
	const bool wanted = variant->backend == TWHEEL_TABLE_DEVICE;

	self->options.backend = TWHEEL_TABLE_AUTO;
	self->options.flags = wanted ? TWHEEL_TABLE_PROCESSES : 0;
	ASSERT_EQ(0, twheel_table_open(&self->t, NR, &self->options));
	EXPECT_EQ(variant->backend, twheel_table_backend(self->t));
	twheel_table_close(self->t);
	self->t = NULL;
	if (!wanted) {
		ASSERT_EQ(0, twheel_table_open(&self->t, NR, NULL));
		EXPECT_EQ(TWHEEL_TABLE_PROCESS, twheel_table_backend(self->t));
	}
}

/* ---- threads -------------------------------------------------------------- */

FIXTURE(shared)
{
	struct twheel_table *t;
	__u32 number;
	int got;
	__u64 woke_ns;
};

VARIANTS(shared);

FIXTURE_SETUP(shared)
{
	SKIP_WITHOUT_DEVICE();
	ASSERT_EQ(0, table_open(&self->t, NR, variant->backend, TWHEEL_TABLE_MONOTONIC));
}

FIXTURE_TEARDOWN(shared)
{
	twheel_table_close(self->t);
}

TEST_F(shared, sleep_ends_when_time_is_up)
{
	__u64 began_ns = now_ns();
	__u32 number;

	ASSERT_EQ(IDLE, twheel_table_start_after(self->t, 1, TW_HOUR));
	EXPECT_EQ(0, twheel_table_expired(self->t, &number, 1, 20 * TW_MS));
	EXPECT_LE(began_ns + 20 * TW_MS, now_ns());
	EXPECT_EQ(0, twheel_table_expired(self->t, &number, 1, 0));
}

TEST_F(shared, number_is_never_early)
{
	__u64 deadline_ns[50];
	__u32 number, i;

	for (i = 0; i < 50; i++) {
		deadline_ns[i] = now_ns() + i * i * TW_MS / 20;
		ASSERT_EQ(IDLE, twheel_table_start(self->t, i, deadline_ns[i]));
	}
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(1, twheel_table_expired(self->t, &number, 1, NEVER));
		ASSERT_GT(50, number);
		EXPECT_LE(deadline_ns[number], now_ns());
	}
}

static void ignore(int signal)
{
	(void)signal;
}

TEST_F(shared, signal_ends_the_sleep)
{
	const struct sigaction action = { .sa_handler = ignore };
	const struct itimerval soon = {
		.it_value.tv_usec = 50000, .it_interval.tv_usec = 50000,
	};
	__u32 number;

	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &soon, NULL));
	EXPECT_EQ(-EINTR, twheel_table_expired(self->t, &number, 1, NEVER));
}

TEST_F(shared, descriptor_that_somebody_closed_is_ebadf)
{
	__u32 number;

	ASSERT_EQ(0, close(twheel_table_fd(self->t)));
	EXPECT_EQ(-EBADF, twheel_table_start_after(self->t, 1, TW_HOUR));
	EXPECT_EQ(-EBADF, twheel_table_expired(self->t, &number, 1, NEVER));
	if (variant->backend == TWHEEL_TABLE_PROCESS) {
		/* It has been started nevertheless. */
		EXPECT_EQ(PENDING, twheel_table_state(self->t, 1, NULL));
		EXPECT_EQ(PENDING, twheel_table_stop(self->t, 1));
		return;
	}
	EXPECT_EQ(-EBADF, twheel_table_state(self->t, 1, NULL));
	EXPECT_EQ(-EBADF, twheel_table_stop(self->t, 1));
	/* If a loop sleeps until then, it asks which numbers have expired. */
	EXPECT_EQ(0, twheel_table_next(self->t));
	EXPECT_EQ(0, twheel_table_now(self->t));
}

static _Atomic pid_t sleeper_tid;

static int sleeper_wait_asleep(void)
{
	return TW_WAIT_FOR(sleeper_tid, TW_MS) ? tw_wait_asleep(sleeper_tid) : -ETIMEDOUT;
}

static void *sleeper(void *arg)
{
	FIXTURE_DATA(shared) *self = arg;

	sleeper_tid = gettid();
	self->got = twheel_table_expired(self->t, &self->number, 1, NEVER);
	self->woke_ns = now_ns();
	return NULL;
}

TEST_F(shared, sleeper_wakes_for_an_earlier_deadline_of_another_thread)
{
	__u64 deadline_ns;
	pthread_t thread;

	ASSERT_EQ(IDLE, twheel_table_start_after(self->t, 1, TW_HOUR));
	ASSERT_EQ(0, pthread_create(&thread, NULL, sleeper, self));
	ASSERT_EQ(0, sleeper_wait_asleep());
	deadline_ns = now_ns() + 5 * TW_MS;
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 2, deadline_ns));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(1, self->got);
	EXPECT_EQ(2, self->number);
	EXPECT_LE(deadline_ns, self->woke_ns);
}

TEST_F(shared, sleeper_wakes_for_a_deadline_that_has_passed)
{
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, sleeper, self));
	ASSERT_EQ(0, sleeper_wait_asleep());
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 3, 0));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(1, self->got);
	EXPECT_EQ(3, self->number);
}

#define MAKERS		3
#define FETCHERS	2
#define FEW		64U

struct account {
	struct twheel_table *t;
	__u64 seed;
	bool *end;
	__u64 started;		/* numbers that were idle */
	__u64 stopped;		/* numbers that became idle */
	__u64 fetched;
	__u64 wrong;
};

/* Change the same few numbers as many other threads. */
static void *maker(void *arg)
{
	struct account *a = arg;
	struct twheel_table_change changes[40];
	__u32 i, nr;

	while (!__atomic_load_n(a->end, __ATOMIC_RELAXED)) {
		nr = 1 + tw_random(&a->seed) % 40;
		for (i = 0; i < nr; i++)
			changes[i] = change(tw_random(&a->seed) % FEW, tw_random(&a->seed) % 3 ?
					    tw_random(&a->seed) % (3 * TW_MS) : NEVER);
		if (twheel_table_apply(a->t, changes, nr, TWHEEL_TABLE_AFTER) != nr)
			a->wrong++;
		for (i = 0; i < nr; i++) {
			if (changes[i].deadline_ns == NEVER)
				a->stopped += changes[i].result != IDLE;
			else
				a->started += changes[i].result == IDLE;
		}
	}
	return NULL;
}

static void *fetcher(void *arg)
{
	struct account *a = arg;
	__u32 numbers[7];
	int nr;

	while (!__atomic_load_n(a->end, __ATOMIC_RELAXED)) {
		nr = twheel_table_expired(a->t, numbers, 1 + tw_random(&a->seed) % 7, TW_MS);
		if (nr < 0 || nr > 7)
			a->wrong++;
		else
			a->fetched += nr;
	}
	return NULL;
}

TEST_F_TIMEOUT(shared, accounts_of_threads_on_the_same_numbers_are_exact, 60)
{
	struct account a[MAKERS + FETCHERS];
	pthread_t thread[MAKERS + FETCHERS];
	__u64 started = 0, gone = 0;
	bool end = false;
	__u32 i, numbers[FEW];
	struct twheel_table *t;
	int nr;

	seed_begin(_metadata);
	/* With so few, all its numbers are in use at times. */
	ASSERT_EQ(0, table_open(&t, FEW, variant->backend, TWHEEL_TABLE_MONOTONIC));
	for (i = 0; i < ARRAY_SIZE(a); i++) {
		a[i] = (struct account){ .t = t, .seed = seed + i, .end = &end };
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, i < MAKERS ? maker : fetcher,
					    &a[i]));
	}
	tw_sleep(tw_setting("TW_SECONDS", 2) * TW_SEC);
	__atomic_store_n(&end, true, __ATOMIC_RELAXED);
	for (i = 0; i < ARRAY_SIZE(a); i++) {
		ASSERT_EQ(0, pthread_join(thread[i], NULL));
		EXPECT_EQ(0, a[i].wrong);
		started += a[i].started;
		gone += a[i].stopped + a[i].fetched;
	}
	/* All numbers that are left expire. */
	while ((nr = twheel_table_expired(t, numbers, FEW, 100 * TW_MS)) > 0)
		gone += nr;
	EXPECT_EQ(0, nr);
	EXPECT_LT(1000, started);
	EXPECT_EQ(started, gone);
	for (i = 0; i < FEW; i++) {
		EXPECT_EQ(IDLE, twheel_table_state(t, i, NULL));
	}
	twheel_table_close(t);
}

/* ---- numbers that are given out -------------------------------------------- */

/* This is the allocator of Documentation/bindings.rst. */
struct numbers {
	struct twheel_table *t;
	__u64 seed;
	bool end;
	pthread_mutex_t lock;
	bool taken[FEW];	/* a thread has the number, or it was fetched */
	bool owned[FEW];	/* it was not stopped */
	__u64 nr_ended;
	__u64 nr_wrong;
};

static void give_back(struct numbers *n, __u32 number)
{
	n->nr_wrong += !n->taken[number] || n->owned[number];
	n->taken[number] = false;
	n->nr_ended++;
}

static void *taker(void *arg)
{
	struct numbers *n = arg;
	__u64 chance = __atomic_fetch_add(&n->seed, 1, __ATOMIC_RELAXED);
	__u32 number;

	while (!__atomic_load_n(&n->end, __ATOMIC_RELAXED)) {
		number = tw_random(&chance) % FEW;
		pthread_mutex_lock(&n->lock);
		if (!n->taken[number]) {
			n->taken[number] = true;
			n->owned[number] = true;
			n->nr_wrong += twheel_table_start_after(n->t, number,
								tw_random(&chance) % TW_MS) != IDLE;
		} else if (n->owned[number]) {
			n->owned[number] = false;
			if (twheel_table_stop(n->t, number) > IDLE)
				give_back(n, number);
		}
		pthread_mutex_unlock(&n->lock);
	}
	return NULL;
}

static int fetch_and_give_back(struct numbers *n, __u64 timeout_ns)
{
	__u32 numbers[7];
	int i, nr;

	nr = twheel_table_expired(n->t, numbers, 7, timeout_ns);
	pthread_mutex_lock(&n->lock);
	for (i = 0; i < nr; i++) {
		n->owned[numbers[i]] = false;
		give_back(n, numbers[i]);
	}
	pthread_mutex_unlock(&n->lock);
	return nr;
}

static void *giver(void *arg)
{
	struct numbers *n = arg;

	while (!__atomic_load_n(&n->end, __ATOMIC_RELAXED))
		fetch_and_give_back(n, TW_MS);
	return NULL;
}

TEST_F_TIMEOUT(shared, each_number_comes_back_once_from_who_stops_or_who_fetches, 60)
{
	struct numbers n = { .lock = PTHREAD_MUTEX_INITIALIZER };
	pthread_t thread[MAKERS + FETCHERS];
	__u32 i;

	seed_begin(_metadata);
	n.seed = seed;
	ASSERT_EQ(0, table_open(&n.t, FEW, variant->backend, TWHEEL_TABLE_MONOTONIC));
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, i < MAKERS ? taker : giver, &n));
	tw_sleep(tw_setting("TW_SECONDS", 2) * TW_SEC);
	__atomic_store_n(&n.end, true, __ATOMIC_RELAXED);
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		ASSERT_EQ(0, pthread_join(thread[i], NULL));
	while (fetch_and_give_back(&n, 100 * TW_MS) > 0)
		;
	EXPECT_EQ(0, n.nr_wrong);
	EXPECT_LT(1000, n.nr_ended);
	for (i = 0; i < FEW; i++) {
		EXPECT_FALSE(n.taken[i]);
	}
	twheel_table_close(n.t);
}

/* ---- processes ------------------------------------------------------------ */

TEST_F(shared, child_closes_its_copy_and_the_parent_goes_on)
{
	__u32 number;
	int status;
	pid_t pid;

	ASSERT_LT(2, twheel_table_fd(self->t));
	ASSERT_EQ(IDLE, twheel_table_start_after(self->t, 1, 100 * TW_MS));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		twheel_table_close(self->t);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(1, twheel_table_expired(self->t, &number, 1, TW_PATIENCE_MS * TW_MS));
	EXPECT_EQ(1, number);
}

/* These tests are for the device alone. */
FIXTURE(processes)
{
	struct twheel_table_options options;
	struct twheel_table *t;
};

FIXTURE_VARIANT(processes)
{
	__u32 backend;
};

FIXTURE_VARIANT_ADD(processes, device) { .backend = TWHEEL_TABLE_DEVICE };

FIXTURE_SETUP(processes)
{
	SKIP_WITHOUT_DEVICE();
	self->options.size = sizeof(self->options);
	self->options.flags = TWHEEL_TABLE_PROCESSES;
	ASSERT_EQ(0, twheel_table_open(&self->t, NR, &self->options));
	ASSERT_EQ(TWHEEL_TABLE_DEVICE, twheel_table_backend(self->t));
}

FIXTURE_TEARDOWN(processes)
{
	twheel_table_close(self->t);
}

TEST_F(processes, child_starts_what_the_parent_fetches_after_its_end)
{
	__u32 number;
	int status;
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid)
		_exit(twheel_table_start_after(self->t, 42, 100 * TW_MS) != IDLE);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(1, twheel_table_expired(self->t, &number, 1, NEVER));
	EXPECT_EQ(42, number);
}

/* The descriptor passes the table on; the first process's own knowledge is lost. */
TEST_F(processes, descriptor_takes_over_the_table_and_what_pends)
{
	__u32 number;
	int fd = dup(twheel_table_fd(self->t));

	ASSERT_LT(2, fd);
	ASSERT_EQ(IDLE, twheel_table_start_after(self->t, 5, 20 * TW_MS));
	ASSERT_EQ(IDLE, twheel_table_start_after(self->t, 6, TW_HOUR));
	twheel_table_close(self->t);
	self->t = NULL;
	self->options.fd = fd;
	ASSERT_EQ(0, twheel_table_open(&self->t, NR, &self->options));
	EXPECT_EQ(-1, fcntl(fd, F_GETFD));
	EXPECT_EQ(FD_CLOEXEC, fcntl(twheel_table_fd(self->t), F_GETFD));
	EXPECT_EQ(PENDING, twheel_table_state(self->t, 6, NULL));
	ASSERT_EQ(1, twheel_table_expired(self->t, &number, 1, NEVER));
	EXPECT_EQ(5, number);
	EXPECT_EQ(PENDING, twheel_table_stop(self->t, 6));
}

TEST_F(processes, descriptor_that_is_no_such_table_stays_with_the_caller)
{
	int fd = dup(twheel_table_fd(self->t)), raw;

	self->options.fd = fd;
	EXPECT_EQ(-EINVAL, open_fails(NR + 1, &self->options));
	EXPECT_EQ(0, fcntl(fd, F_GETFD));
	self->options.fd = 1000;
	EXPECT_EQ(-EBADF, open_fails(NR, &self->options));
	self->options.fd = open("/dev/null", O_RDWR);
	EXPECT_EQ(-ENOTTY, open_fails(NR, &self->options));
	EXPECT_EQ(0, fcntl(self->options.fd, F_GETFD));
	EXPECT_EQ(0, close(self->options.fd));
	raw = tw_virtual(0, TW_MS);
	ASSERT_LT(2, raw);
	self->options.fd = raw;
	EXPECT_EQ(-EINVAL, open_fails(NR, &self->options));
	EXPECT_EQ(0, fcntl(raw, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(0, close(raw));
	EXPECT_EQ(0, close(fd));
}

TEST_F(processes, drained_table_says_eshutdown_when_all_is_fetched)
{
	__u32 number;

	ASSERT_EQ(IDLE, twheel_table_start_after(self->t, 1, TW_HOUR));
	ASSERT_EQ(IDLE, twheel_table_start(self->t, 2, 0));
	ASSERT_TRUE(TW_WAIT_FOR(twheel_table_state(self->t, 2, NULL) == UNREAD, TW_MS));
	ASSERT_EQ(0, tw_drain(twheel_table_fd(self->t)));
	EXPECT_EQ(-ESHUTDOWN, twheel_table_start_after(self->t, 3, 0));
	EXPECT_EQ(IDLE, twheel_table_state(self->t, 1, NULL));
	ASSERT_EQ(1, twheel_table_expired(self->t, &number, 1, NEVER));
	EXPECT_EQ(2, number);
	EXPECT_EQ(-ESHUTDOWN, twheel_table_expired(self->t, &number, 1, NEVER));
}

struct progress {
	__u32 nr;		/* numbers below are started */
	__u32 trying;		/* numbers below may be started */
};

/* Start numbers until this process is killed, and note how far it has come. */
static void start_them(struct twheel_table *t, struct progress *p, __u32 begin)
{
	struct twheel_table_change changes[16];
	__u32 i, at = begin;

	for (;;) {
		__u32 nr = 1 + at % 16;

		if (at + nr > begin + NR / 2) {
			pause();
			continue;
		}
		for (i = 0; i < nr; i++)
			changes[i] = change(at + i, 200 * TW_MS);
		__atomic_store_n(&p->trying, at + nr, __ATOMIC_SEQ_CST);
		if (twheel_table_apply(t, changes, nr, TWHEEL_TABLE_AFTER) != (int)nr)
			_exit(1);
		at += nr;
		__atomic_store_n(&p->nr, at, __ATOMIC_SEQ_CST);
	}
}

TEST_F_TIMEOUT(processes, nothing_is_lost_when_one_is_killed_in_the_middle, 60)
{
	struct progress *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	__u32 numbers[NR], i, round, half;
	bool seen[NR];
	pid_t pid[2];
	int nr;

	ASSERT_NE(MAP_FAILED, p);
	seed_begin(_metadata);
	for (round = 0; round < 10; round++) {
		memset(seen, 0, sizeof(seen));
		for (half = 0; half < 2; half++) {
			p[half].nr = half * NR / 2;
			p[half].trying = p[half].nr;
			pid[half] = fork();
			ASSERT_LE(0, pid[half]);
			if (!pid[half])
				start_them(self->t, &p[half], half * NR / 2);
		}
		tw_sleep(random_below(3000) * TW_US);
		for (half = 0; half < 2; half++) {
			ASSERT_EQ(0, kill(pid[half], SIGKILL));
			ASSERT_EQ(pid[half], waitpid(pid[half], NULL, 0));
		}
		while ((nr = twheel_table_expired(self->t, numbers, NR, TW_SEC)) > 0) {
			for (i = 0; i < nr; i++) {
				ASSERT_GT(NR, numbers[i]);
				ASSERT_FALSE(seen[numbers[i]]);
				seen[numbers[i]] = true;
			}
		}
		ASSERT_EQ(0, nr);
		for (i = 0; i < NR; i++) {
			half = i / (NR / 2);
			ASSERT_TRUE(seen[i] || i >= p[half].nr);
			ASSERT_FALSE(seen[i] && i >= p[half].trying);
		}
	}
	munmap(p, 4096);
}

TEST_HARNESS_MAIN
