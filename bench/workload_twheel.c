// SPDX-License-Identifier: GPL-2.0
/* Measured for twheel alone: single calls, ten million timeouts, and threads. */
#include "workload.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/twheel.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FAR_NS		(60 * SEC)

/* ---- single calls -------------------------------------------------------- */

/* Too few to wake the kthread. */
#define CALLS_NR	4096

/* Call a command that does not exist, on a descriptor whose driver has no ioctl. */
static void fail_at_once(struct run *run, uint32_t first, uint32_t nr)
{
	uint32_t i;

	(void)first;
	for (i = 0; i < nr; i++)
		if (!ioctl((int)(intptr_t)run->self, TWHEEL_IOC_INFO, NULL))
			errx(1, "/dev/null took a command");
}

/* Arm by records of write(), which need no ioctl. */
static void run_records(struct run *run, uint32_t first, uint32_t nr)
{
	twheel_write(run->self, run->who + first, run->deadline_ns + first, nr);
}

/* The cost of each, including the work that is left to the kthread. */
static double each(struct run *run, run_fn fn)
{
	struct meter meter;

	meter_start(&meter);
	run_all(run, fn, run->nr);
	run_settle(run);
	meter_stop(&meter);
	return (double)meter.busy_ns / run->nr;
}

/*
 * Results are the cost above that of an ioctl that fails at once, since the module cannot change
 * what a system call costs.
 */
void run_calls(const struct peer *peer, uint32_t n)
{
	struct peer single = *peer;
	struct run run, null;
	double floor;

	single.batch = 1;
	run_open(&run, &single, CALLS_NR, 0);
	run_choose(&run, now_ns() + FAR_NS, now_ns() + 2 * FAR_NS, 1);
	/* The first arms also allocate the memory. */
	run_all(&run, run_arm, CALLS_NR);
	run_settle(&run);
	run_all(&run, run_cancel, CALLS_NR);
	run_settle(&run);

	null = run;
	null.peer = &peer_empty;
	null.self = (void *)(intptr_t)open("/dev/null", O_RDWR | O_CLOEXEC);
	floor = each(&null, fail_at_once);
	result(peer->name, "calls", n, "failing_ioctl", floor);
	result(peer->name, "calls", n, "arm", each(&run, run_arm) - floor);
	result(peer->name, "calls", n, "refresh", each(&run, run_refresh) - floor);
	result(peer->name, "calls", n, "cancel", each(&run, run_cancel) - floor);
	run.batch = BATCH;
	result(peer->name, "calls", n, "records", each(&run, run_records));
	run_close(&run);
}

/* ---- threads ------------------------------------------------------------- */

#define SCALE_ROUNDS	4000
#define SCALE_THREADS	4

struct worker {
	pthread_t thread;
	struct run run;
	pthread_barrier_t *barrier;
};

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct run *run = &worker->run;
	uint64_t deadline_ns;
	uint32_t i, j;

	if (run->peer->create)
		run->peer->create(run->self, 0, BATCH);
	pthread_barrier_wait(worker->barrier);
	for (i = 0; i < SCALE_ROUNDS; i++) {
		deadline_ns = now_ns() + FAR_NS;
		for (j = 0; j < BATCH; j++)
			run->deadline_ns[j] = deadline_ns;
		run_young_ones(run, 0, BATCH);
	}
	return NULL;
}

static double scale_once(const struct peer *peer, uint32_t threads, bool shared)
{
	struct worker workers[SCALE_THREADS];
	pthread_barrier_t barrier;
	uint64_t start_ns;
	uint32_t i;

	pthread_barrier_init(&barrier, NULL, threads + 1);
	for (i = 0; i < threads; i++) {
		workers[i].barrier = &barrier;
		run_open(&workers[i].run, peer, BATCH * (shared ? SCALE_THREADS : 1), 0);
		if (shared && i)
			twheel_share(workers[i].run.self, workers[0].run.self);
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			errx(1, "no thread");
	}
	start_ns = now_ns();
	pthread_barrier_wait(&barrier);
	for (i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	start_ns = now_ns() - start_ns;
	for (i = 0; i < threads; i++)
		run_close(&workers[i].run);
	pthread_barrier_destroy(&barrier);
	return SCALE_ROUNDS * (double)BATCH * SEC / start_ns;
}

/*
 * Report how many arms and cancels a thread does in a second: the best of several runs.  If it is
 * libtwheel, each thread has a wheel of its own.
 */
void run_scale(const struct peer *peer, uint32_t threads)
{
	double own = 0, shared = 0, got;
	int i;

	if (threads > SCALE_THREADS)
		errx(1, "at most %d threads", SCALE_THREADS);
	for (i = 0; i < 5; i++) {
		got = scale_once(peer, threads, false);
		own = got > own ? got : own;
		if (peer != &peer_twheel)
			continue;
		got = scale_once(peer, threads, true);
		shared = got > shared ? got : shared;
	}
	result(peer->name, "scale", threads, "own_wheels", own);
	if (peer == &peer_twheel)
		result(peer->name, "scale", threads, "one_wheel", shared);
	result(peer->name, "scale", threads, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
}

/* ---- ten million --------------------------------------------------------- */

static void tell(struct run *run, const char *what, struct meter *meter, uint32_t nr)
{
	meter_stop(meter);
	result(run->peer->name, "huge", run->nr, what, (double)meter->busy_ns / nr);
	meter_start(meter);
}

static void settle_batches(struct run *run, run_fn fn, uint32_t from, uint32_t to)
{
	run_batches(run, fn, from, to);
	run_settle(run);
}

/* Arm, move and list all; cancel half of them, and let the other half expire. */
void run_huge(const struct peer *peer, uint32_t n)
{
	uint32_t total, half = n / 2;
	struct meter meter;
	struct run run;

	run_open(&run, peer, n, 0);
	run_choose(&run, now_ns() + 10 * FAR_NS, now_ns() + 11 * FAR_NS, 1);
	meter_start(&meter);
	settle_batches(&run, run_arm, 0, n);
	tell(&run, "arm", &meter, n);
	twheel_list_all(run.self, n);
	tell(&run, "list", &meter, n);
	run_shuffle(&run, 2);
	meter_start(&meter);
	settle_batches(&run, run_cancel, 0, half);
	tell(&run, "cancel", &meter, half);
	run_choose(&run, now_ns() + FAR_NS, now_ns() + 2 * FAR_NS, 3);
	meter_start(&meter);
	settle_batches(&run, run_refresh, half, n);
	tell(&run, "refresh", &meter, n - half);
	for (total = 0; total < n - half; total += nr_expired) {
		nr_expired = 0;
		peer->wait(run.self, true);
	}
	tell(&run, "expire", &meter, n - half);
	run_choose(&run, now_ns() + FAR_NS, now_ns() + 2 * FAR_NS, 3);
	settle_batches(&run, run_arm, 0, n);
	meter_start(&meter);
	run_close(&run);
	tell(&run, "close", &meter, n);
}
