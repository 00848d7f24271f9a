// SPDX-License-Identifier: GPL-2.0
/*
 * One structure of timers for several threads, each of which starts and stops timers of its own,
 * one by one.  If the structure has no lock of its own, a mutex is held around each call.  Each
 * start reads the clock, as a start after a delay has to: if the peer does not do so itself, the
 * workload does, and passes a deadline.  "empty" is the loop alone.  The threads do not
 * sleep, so an earlier deadline wakes none of them.
 */
#include "workload.h"

#include <err.h>
#include <pthread.h>
#include <unistd.h>

#define THREADS_MAX	4
#define DELAY_NS	(60 * SEC)

/* Timers of a thread, one of which is stopped for each that starts. */
#define TIMERS		256
#define PAIRS		1000000U

/* If others use the machine, repeat this many times and report the shortest one. */
#define TIMES		5

struct worker {
	pthread_t thread;
	struct shared *shared;
	uint32_t first;		/* the first of its timers */
};

struct shared {
	const struct peer *peer;
	void *self;
	pthread_barrier_t barrier;
	struct worker worker[THREADS_MAX];
	char apart[64];		/* keeps the lock out of the cache line of the fields above */
	pthread_mutex_t lock;
};

static void start(struct shared *s, uint32_t who)
{
	const struct peer *peer = s->peer;
	uint64_t deadline_ns = peer->reads_clock ? DELAY_NS : now_ns() + DELAY_NS;

	if (!peer->has_lock)
		pthread_mutex_lock(&s->lock);
	peer->arm(s->self, &who, &deadline_ns, 1);
	if (!peer->has_lock)
		pthread_mutex_unlock(&s->lock);
}

static void stop(struct shared *s, uint32_t who)
{
	const struct peer *peer = s->peer;

	if (!peer->has_lock)
		pthread_mutex_lock(&s->lock);
	peer->cancel(s->self, &who, 1);
	if (!peer->has_lock)
		pthread_mutex_unlock(&s->lock);
}

static void *work(void *arg)
{
	const struct worker *worker = arg;
	struct shared *s = worker->shared;
	uint32_t i;

	for (i = 0; i < TIMERS - 1; i++)
		start(s, worker->first + i);
	/* All threads are ready; the meter runs. */
	pthread_barrier_wait(&s->barrier);
	pthread_barrier_wait(&s->barrier);
	for (i = 0; i < PAIRS; i++) {
		start(s, worker->first + (i + TIMERS - 1) % TIMERS);
		stop(s, worker->first + i % TIMERS);
	}
	pthread_barrier_wait(&s->barrier);
	return NULL;
}

static void shared_once(const struct peer *peer, uint32_t threads, struct meter *meter)
{
	const struct setup setup = {
		.nr = threads * TIMERS, .same_ns = DELAY_NS, .turns = true, .shared = true,
	};
	struct shared s = { .peer = peer, .self = peer->open(&setup) };
	uint32_t i;

	if (peer->create)
		peer->create(s.self, 0, setup.nr);
	pthread_mutex_init(&s.lock, NULL);
	pthread_barrier_init(&s.barrier, NULL, threads + 1);
	for (i = 0; i < threads; i++) {
		s.worker[i].shared = &s;
		s.worker[i].first = i * TIMERS;
		if (pthread_create(&s.worker[i].thread, NULL, work, &s.worker[i]))
			errx(1, "no thread");
	}
	pthread_barrier_wait(&s.barrier);
	meter_start(meter);
	pthread_barrier_wait(&s.barrier);
	pthread_barrier_wait(&s.barrier);
	meter_stop(meter);
	for (i = 0; i < threads; i++)
		pthread_join(s.worker[i].thread, NULL);
	if (peer->close)
		peer->close(s.self);
}

/* Pairs of a start and a stop: how many all threads make in a second, and what each costs. */
void run_shared(const struct peer *peer, uint32_t threads)
{
	struct meter best = { .elapsed_ns = UINT64_MAX }, meter;
	uint64_t pairs = (uint64_t)threads * PAIRS;
	int i;

	if (threads > THREADS_MAX)
		errx(1, "at most %d threads", THREADS_MAX);
	for (i = 0; i < (counts_instructions ? 1 : TIMES); i++) {
		shared_once(peer, threads, &meter);
		if (meter.elapsed_ns < best.elapsed_ns)
			best = meter;
	}
	result_cost(peer->name, "shared", threads, &best, pairs);
	result(peer->name, "shared", threads, "pairs", (double)pairs * SEC / best.elapsed_ns);
	result(peer->name, "shared", threads, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
}
