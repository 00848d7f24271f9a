// SPDX-License-Identifier: GPL-2.0
/*
 * Signals during each loop. If a signal has a handler, it ends a read between two batches, and the
 * other events stay unread; it ends no vector, no write and no LIST. If it is fatal, it ends all of
 * them: the elements that were done are reported, and the others are unchanged.
 *
 * twheel_advance.c tests signals during ADVANCE, twheel_read_blocking.c during a read that
 * sleeps, and twheel_faults.c a fatal one during ARM.
 */
#include "twheel_outcomes.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/* A number that takes long enough for a signal to come. */
#define NR		16384

static union {
	struct twheel_arm arm[NR];
	struct twheel_cancel cancel[NR];
	struct twheel_status status[NR];
	struct twheel_record record[NR];
	struct twheel_event event[NR];
} *rows;

static __u64 *ids;

FIXTURE(signals) {
	int fd;
};

/* A child and its parent both see it. */
static void *map_shared(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

FIXTURE_SETUP(signals)
{
	self->fd = tw_virtual_for(O_NONBLOCK, NR);
	ASSERT_LE(0, self->fd);
	rows = map_shared(sizeof(*rows));
	ASSERT_NE(MAP_FAILED, (void *)rows);
	ids = map_shared(NR * sizeof(ids[0]));
	ASSERT_NE(MAP_FAILED, (void *)ids);
}

FIXTURE_TEARDOWN(signals)
{
	EXPECT_ACCOUNTS(self->fd);
	close(self->fd);
}

/* Arm NR timeouts with their number as user_data. */
static void arm_all(struct __test_metadata *_metadata, int fd, __u64 distance_ns)
{
	int i;

	memset(rows->arm, 0, sizeof(rows->arm));
	for (i = 0; i < NR; i++) {
		rows->arm[i].expires_ns = distance_ns;
		rows->arm[i].user_data = i;
	}
	ASSERT_EQ(NR, tw_arm_vec(fd, rows->arm, NR));
	for (i = 0; i < NR; i++)
		ids[i] = rows->arm[i].id;
}

/* ---- signals with a handler ---------------------------------------------- */

static struct {
	pthread_t thread;
	pthread_t target;
	_Atomic bool stop;
	_Atomic unsigned int caught;
} pinger;

static void catch(int sig)
{
	(void)sig;
	pinger.caught++;
}

static void *ping(void *arg)
{
	__u64 seed = 11;

	(void)arg;
	while (!pinger.stop) {
		pthread_kill(pinger.target, SIGUSR1);
		tw_spin(tw_random(&seed) % (300 * TW_US));
		sched_yield();
	}
	return NULL;
}

static int ping_begin(void)
{
	const struct sigaction action = { .sa_handler = catch, .sa_flags = SA_RESTART };

	pinger.stop = false;
	pinger.caught = 0;
	pinger.target = pthread_self();
	sigaction(SIGUSR1, &action, NULL);
	return pthread_create(&pinger.thread, NULL, ping, NULL);
}

static void ping_end(void)
{
	pinger.stop = true;
	pthread_join(pinger.thread, NULL);
}

/* Return how many events were read, 0 if there is none, or -errno. */
static int read_some(int fd)
{
	ssize_t bytes = read(fd, rows->event, sizeof(rows->event));

	if (bytes < 0)
		return errno == EAGAIN ? 0 : -errno;
	return bytes % sizeof(rows->event[0]) ? TW_BROKEN : bytes / (int)sizeof(rows->event[0]);
}

TEST_F_TIMEOUT(signals, a_read_that_is_cut_short_leaves_the_rest_in_order, 100)
{
	struct tw_outcome outcomes[] = {
		TW_OUTCOME("cut short", TW_A_FEW),
		TW_OUTCOME("read to the end", 0),
	};
	struct tw_race race = TW_RACE(outcomes, 0);
	int i, got, nr;

	while (tw_race_goes_on(&race)) {
		arm_all(_metadata, self->fd, 0);
		ASSERT_EQ(0, tw_advance(self->fd, race.rounds * TW_MS));
		ASSERT_EQ(0, ping_begin());
		for (got = 0; (nr = read_some(self->fd)) > 0; got += nr) {
			for (i = 0; i < nr; i++) {
				if (rows->event[i].id == ids[rows->event[i].user_data % NR])
					ids[rows->event[i].user_data % NR] = 0;
				else
					break;
			}
			ASSERT_EQ(nr, i);
			tw_saw(&outcomes[got + nr < NR ? 0 : 1], 1);
		}
		ping_end();
		ASSERT_EQ(0, nr);
		ASSERT_EQ(NR, got);
	}
	EXPECT_RACE(&race);
}

TEST_F_TIMEOUT(signals, a_handler_cuts_no_vector_no_list_and_no_write_short, 100)
{
	__u64 cursor = 0;
	int i;

	ASSERT_EQ(0, ping_begin());
	arm_all(_metadata, self->fd, TW_HOUR);
	EXPECT_EQ(NR, tw_rearm_vec(self->fd, rows->arm, NR));
	for (i = 0; i < NR; i++)
		rows->status[i].id = ids[i];
	EXPECT_EQ(NR, tw_query_vec(self->fd, rows->status, NR));
	EXPECT_EQ(NR, tw_list(self->fd, &cursor, rows->status, NR));
	memset(rows->cancel, 0, sizeof(rows->cancel));
	for (i = 0; i < NR; i++)
		rows->cancel[i].id = ids[i];
	EXPECT_EQ(NR, tw_cancel_vec(self->fd, rows->cancel, NR));
	memset(rows->record, 0, sizeof(rows->record));
	for (i = 0; i < NR; i++)
		rows->record[i] = (struct twheel_record){
			.op = TWHEEL_OP_ARM, .expires_ns = TW_HOUR,
		};
	EXPECT_EQ(NR, tw_write(self->fd, rows->record, NR));
	ping_end();
	EXPECT_LT(0, pinger.caught);
}

/*
 * If a signal interrupts DRAIN, it has begun, and the next call waits for its end. Return how often
 * that happened.
 */
static int drain_beside_signals(struct __test_metadata *_metadata, int sa_flags)
{
	const struct sigaction action = { .sa_handler = catch, .sa_flags = sa_flags };
	int i, nr, ret, revents, got = 0, interrupted = 0, fd = tw_virtual_for(O_NONBLOCK, NR);

	ASSERT_LE(0, fd);
	arm_all(_metadata, fd, TW_HOUR);
	ASSERT_EQ(0, ping_begin());
	sigaction(SIGUSR1, &action, NULL);
	while ((ret = tw_drain(fd)) == -EINTR)
		interrupted++;
	/* The call that returns 0 has waited for the end, too. */
	revents = tw_poll(fd, POLLIN, 0);
	ping_end();
	ASSERT_EQ(0, ret);
	EXPECT_EQ(POLLIN | POLLHUP, revents);
	while ((nr = read_some(fd)) > 0) {
		for (i = 0; i < nr; i++) {
			ASSERT_EQ(TW_DRAINED, rows->event[i].flags);
		}
		got += nr;
	}
	ASSERT_EQ(0, nr);
	EXPECT_EQ(NR, got);
	close(fd);
	return interrupted;
}

TEST_F_TIMEOUT(signals, a_drain_that_is_interrupted_is_finished_by_the_next, 100)
{
	struct tw_outcome outcomes[] = { TW_OUTCOME("interrupted", TW_A_FEW) };
	struct tw_race race = TW_RACE(outcomes, 0);

	while (tw_race_goes_on(&race))
		tw_saw(&outcomes[0], drain_beside_signals(_metadata, 0) > 0);
	EXPECT_RACE(&race);
}

/* If one call is interrupted, signals do come while DRAIN waits. */
TEST_F_TIMEOUT(signals, a_drain_goes_on_after_a_handler_with_sa_restart, 100)
{
	struct tw_outcome outcomes[] = { TW_OUTCOME("interrupted", TW_A_FEW) };
	struct tw_race race = TW_RACE(outcomes, 0);

	while (tw_race_goes_on(&race)) {
		tw_saw(&outcomes[0], drain_beside_signals(_metadata, 0) > 0);
		EXPECT_EQ(0, drain_beside_signals(_metadata, SA_RESTART));
	}
	EXPECT_RACE(&race);
}

/* ---- fatal signals ------------------------------------------------------- */

FIXTURE(killed) {
	int fd;
};

/* A call with NR elements, records or rows. */
FIXTURE_VARIANT(killed) {
	int (*call)(int fd);
	void (*prepare)(void);
	bool (*is_done)(int i);		/* whether row i reports so */
	__u64 (*nr_done)(const struct twheel_info *info);	/* NULL: the wheel has no counter */
};

static void prepare_rearm(void)
{
	int i;

	memset(rows->arm, 0, sizeof(rows->arm));
	for (i = 0; i < NR; i++)
		rows->arm[i] = (struct twheel_arm){
			.id = ids[i], .expires_ns = TW_DAY, .result = TW_POISON32,
		};
}

static int call_rearm(int fd)
{
	return tw_vector(fd, TWHEEL_IOC_REARM, rows->arm, sizeof(rows->arm[0]), NR);
}

static bool is_rearmed(int i)
{
	return rows->arm[i].result == TWHEEL_WAS_PENDING;
}

static __u64 nr_rearmed(const struct twheel_info *info)
{
	return info->rearmed;
}

static void prepare_cancel(void)
{
	int i;

	for (i = 0; i < NR; i++)
		rows->cancel[i] = (struct twheel_cancel){ .id = ids[i], .result = TW_POISON32 };
}

static int call_cancel(int fd)
{
	return tw_vector(fd, TWHEEL_IOC_CANCEL, rows->cancel, sizeof(rows->cancel[0]), NR);
}

static bool is_cancelled(int i)
{
	return rows->cancel[i].result == TWHEEL_WAS_PENDING;
}

static __u64 nr_cancelled(const struct twheel_info *info)
{
	return info->cancelled;
}

static void prepare_query(void)
{
	int i;

	memset(rows->status, TW_POISON, sizeof(rows->status));
	for (i = 0; i < NR; i++)
		rows->status[i].id = ids[i];
}

static int call_query(int fd)
{
	return tw_vector(fd, TWHEEL_IOC_QUERY, rows->status, sizeof(rows->status[0]), NR);
}

static bool is_reported(int i)
{
	return rows->status[i].result == 0 && rows->status[i].state == TWHEEL_STATE_PENDING;
}

static int call_list(int fd)
{
	struct twheel_list list = {
		.size = sizeof(list),
		.entry_size = sizeof(rows->status[0]),
		.nr = NR,
		.entries = (uintptr_t)rows->status,
	};

	return tw_ioctl(fd, TWHEEL_IOC_LIST, &list);
}

static void prepare_write(void)
{
	int i;

	memset(rows->record, 0, sizeof(rows->record));
	for (i = 0; i < NR; i++)
		rows->record[i] = (struct twheel_record){
			.op = TWHEEL_OP_CANCEL, .key = ids[i],
		};
}

static int call_write(int fd)
{
	return tw_write(fd, rows->record, NR);
}

FIXTURE_VARIANT_ADD(killed, in_rearm) {
	.prepare = prepare_rearm, .call = call_rearm, .is_done = is_rearmed,
	.nr_done = nr_rearmed,
};

FIXTURE_VARIANT_ADD(killed, in_cancel) {
	.prepare = prepare_cancel, .call = call_cancel, .is_done = is_cancelled,
	.nr_done = nr_cancelled,
};

FIXTURE_VARIANT_ADD(killed, in_query) {
	.prepare = prepare_query, .call = call_query, .is_done = is_reported,
};

FIXTURE_VARIANT_ADD(killed, in_list) {
	.prepare = prepare_query, .call = call_list, .is_done = is_reported,
};

FIXTURE_VARIANT_ADD(killed, in_write) {
	.prepare = prepare_write, .call = call_write, .nr_done = nr_cancelled,
};

FIXTURE_SETUP(killed)
{
	rows = map_shared(sizeof(*rows));
	ASSERT_NE(MAP_FAILED, (void *)rows);
	ids = map_shared(NR * sizeof(ids[0]));
	ASSERT_NE(MAP_FAILED, (void *)ids);
}

FIXTURE_TEARDOWN(killed)
{
}

/* If rows are not mapped, they fault, and a fault ends a call of a killed process. */
static void touch_rows(void)
{
	const long page = sysconf(_SC_PAGESIZE);
	size_t at;

	for (at = 0; at < sizeof(*rows); at += page)
		*((volatile char *)rows + at) = *((volatile char *)rows + at);
}

/*
 * A child makes the call, and is killed after a while. Return how long the call took, if it
 * returned.
 */
static __u64 call_in_child(struct __test_metadata *_metadata, int fd, int (*call)(int fd),
			   __u64 kill_after_ns)
{
	static _Atomic __u64 *took_ns;
	pid_t pid;

	if (!took_ns)
		took_ns = map_shared(sizeof(*took_ns) * 2);
	took_ns[0] = 0;
	took_ns[1] = 0;
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		__u64 begin_ns;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		touch_rows();
		begin_ns = tw_now(CLOCK_MONOTONIC);
		took_ns[1] = 1;
		call(fd);
		took_ns[0] = tw_now(CLOCK_MONOTONIC) - begin_ns;
		_exit(0);
	}
	while (!took_ns[1])
		sched_yield();
	if (kill_after_ns) {
		tw_spin(kill_after_ns);
		kill(pid, SIGKILL);
	}
	tw_reap(pid);
	return took_ns[0];
}

TEST_F_TIMEOUT(killed, a_killed_call_ends_and_did_what_it_reported, 100)
{
	struct tw_outcome outcomes[] = {
		TW_OUTCOME("cut short", TW_A_FEW),
		TW_OUTCOME("killed before or after it", 0),
		TW_OUTCOME("killed and done to the end", 0),
	};
	struct tw_race race = TW_RACE(outcomes, 0);
	__u64 span_ns = 0, took_ns, seed = 5;
	struct twheel_info info;
	int nr, i;

	while (tw_race_goes_on(&race)) {
		self->fd = tw_virtual_for(O_NONBLOCK, NR);
		ASSERT_LE(0, self->fd);
		arm_all(_metadata, self->fd, TW_HOUR);
		variant->prepare();
		if (!span_ns) {
			span_ns = call_in_child(_metadata, self->fd, variant->call, 0);
			ASSERT_LT(0, span_ns);
			race.rounds--;
			close(self->fd);
			continue;
		}
		took_ns = call_in_child(_metadata, self->fd, variant->call,
					tw_random(&seed) % span_ns + 1);
		ASSERT_EQ(0, tw_info(self->fd, &info));
		nr = variant->nr_done ? variant->nr_done(&info) : 0;
		if (variant->is_done) {
			for (i = 0; i < NR && variant->is_done(i); i++)
				;
			if (variant->nr_done) {
				ASSERT_EQ(nr, i);
			}
			nr = i;
			/* No element behind that one is done. */
			for (; i < NR; i++) {
				ASSERT_FALSE(variant->is_done(i));
			}
		}
		tw_saw(&outcomes[nr && nr < NR ? 0 : nr && !took_ns ? 2 : 1], 1);
		EXPECT_ACCOUNTS(self->fd);
		close(self->fd);
	}
	EXPECT_RACE(&race);
	/* If a signal comes in the last moment, it ends no loop; any other does. */
	EXPECT_GE(outcomes[0].count + 1, outcomes[2].count);
}

TEST_HARNESS_MAIN
