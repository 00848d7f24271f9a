// SPDX-License-Identifier: GPL-2.0
/* Arm, move and cancel timeouts while a given number pends. */
#include "workload.h"

#include <stdlib.h>

/* A measurement ends after this time: io_uring would cancel for minutes. */
#define PATIENCE_NS	(3 * SEC)

/* Deadlines are spread over a minute, and none is reached while this is measured. */
#define FAR_NS		(60 * SEC)

uint32_t *expired_who;
uint32_t nr_expired;

void run_open_with(struct run *run, const struct peer *peer, const struct setup *setup)
{
	uint32_t nr = setup->nr, i;

	run->peer = peer;
	run->nr = nr;
	run->batch = peer->batch ?: BATCH;
	run->who = get_memory(nr, sizeof(*run->who));
	run->deadline_ns = get_memory(nr, sizeof(*run->deadline_ns));
	expired_who = get_memory(nr + 1, sizeof(*expired_who));
	nr_expired = 0;
	for (i = 0; i < nr; i++)
		run->who[i] = i;
	run->self = peer->open(setup);
}

void run_open(struct run *run, const struct peer *peer, uint32_t nr, uint64_t same_ns)
{
	const struct setup setup = { .nr = nr, .same_ns = same_ns };

	run_open_with(run, peer, &setup);
}

void run_close(struct run *run)
{
	if (run->peer->close)
		run->peer->close(run->self);
}

void run_choose(struct run *run, uint64_t from_ns, uint64_t to_ns, uint64_t seed)
{
	uint32_t i;

	for (i = 0; i < run->nr; i++)
		run->deadline_ns[i] = from_ns +
			((to_ns - from_ns) >> 16) * random32(&seed) / (1U << 16);
}

/* Shuffle the order only: the deadlines keep their places. */
void run_shuffle(struct run *run, uint64_t seed)
{
	uint32_t i, j, who;

	for (i = run->nr - 1; i > 0; i--) {
		j = (uint64_t)random32(&seed) * (i + 1) >> 32;
		who = run->who[i];
		run->who[i] = run->who[j];
		run->who[j] = who;
	}
}

void run_batches(struct run *run, run_fn fn, uint32_t from, uint32_t to)
{
	uint32_t i, step;

	for (i = from; i < to; i += step) {
		step = to - i < run->batch ? to - i : run->batch;
		fn(run, i, step);
	}
}

uint32_t run_all(struct run *run, run_fn fn, uint32_t nr)
{
	uint64_t until_ns = now_ns() + PATIENCE_NS;
	uint32_t done = 0, n;

	while (done < nr && now_ns() < until_ns) {
		n = nr - done < BATCH ? nr - done : BATCH;
		run_batches(run, fn, done, done + n);
		done += n;
	}
	return done;
}

/* With so few, the kthreads are done before settle() has returned. */
#define LEAVE_LITTLE	10000

void run_settle(struct run *run)
{
	if (!run->peer->settle)
		return;
	run->peer->settle(run->self);
	if (run->nr > LEAVE_LITTLE)
		kthreads_rest();
}

void run_arm(struct run *run, uint32_t first, uint32_t nr)
{
	run->peer->arm(run->self, run->who + first, run->deadline_ns + first, nr);
}

void run_refresh(struct run *run, uint32_t first, uint32_t nr)
{
	run->peer->refresh(run->self, run->who + first, run->deadline_ns + first, nr);
}

void run_cancel(struct run *run, uint32_t first, uint32_t nr)
{
	run->peer->cancel(run->self, run->who + first, nr);
}

void run_young_ones(struct run *run, uint32_t first, uint32_t nr)
{
	run_arm(run, first, nr);
	run_cancel(run, first, nr);
}

/* Make the timeouts and arm them all, a minute or more ahead, however long that takes. */
static void fill(struct run *run, uint64_t ahead_ns, bool tell)
{
	const char *name = run->peer->name;
	struct meter meter;

	if (run->peer->create) {
		meter_start(&meter);
		run->peer->create(run->self, 0, run->nr);
		meter_stop(&meter);
		if (tell)
			result_cost(name, "create", run->nr, &meter, run->nr);
	}
	run_choose(run, now_ns() + ahead_ns, now_ns() + ahead_ns + FAR_NS, 1);
	meter_start(&meter);
	run_batches(run, run_arm, 0, run->nr);
	run_settle(run);
	meter_stop(&meter);
	if (tell)
		result_cost(name, "arm", run->nr, &meter, run->nr);
}

static void measure(struct run *run, const char *what, run_fn fn, uint32_t n, bool tell)
{
	struct meter meter;
	uint32_t done;

	meter_start(&meter);
	done = run_all(run, fn, run->nr);
	run_settle(run);
	meter_stop(&meter);
	if (tell)
		result_cost(run->peer->name, what, n, &meter, done);
}

/* Report the work that is left after a cancel, for when the machine is idle. */
static void tell_later(struct run *run, uint32_t n)
{
	struct meter meter;

	meter_start(&meter);
	sleep_until(now_ns() + 2 * SEC);
	meter_stop(&meter);
	result(run->peer->name, "cancel", n, "later", (double)meter.busy_ns / n);
}

void run_ops(const struct peer *peer, uint32_t n)
{
	unsigned int todo = peer->workloads & wanted;
	struct run run;

	run_open(&run, peer, n, 0);
	fill(&run, FAR_NS, todo & DOES(ARM));
	/* If timeouts were moved, cancelling them has another price: so move them, even if that is
	 * not reported.
	 */
	if (peer->workloads & DOES(REFRESH) && todo & (DOES(REFRESH) | DOES(CANCEL))) {
		run_shuffle(&run, 2);
		run_choose(&run, now_ns() + 2 * FAR_NS, now_ns() + 3 * FAR_NS, 3);
		measure(&run, "refresh", run_refresh, n, todo & DOES(REFRESH));
	}
	if (todo & DOES(CANCEL)) {
		run_shuffle(&run, 4);
		measure(&run, "cancel", run_cancel, n, true);
		tell_later(&run, n);
	}
	run_close(&run);
}

/* Move each timeout to an earlier time, which a wheel may not put off. */
void run_earlier(const struct peer *peer, uint32_t n)
{
	struct run run;

	run_open(&run, peer, n, 0);
	fill(&run, 2 * FAR_NS, false);
	run_shuffle(&run, 2);
	run_choose(&run, now_ns() + FAR_NS, now_ns() + 2 * FAR_NS, 3);
	measure(&run, "earlier", run_refresh, n, true);
	run_close(&run);
}

/*
 * Request timeouts: answered, and so cancelled, soon after they were armed. A
 * hundred thousand come and go while n others pend.
 */
#define YOUNG_ONES	100000

void run_young(const struct peer *peer, uint32_t n)
{
	struct run run, young;
	uint32_t i;

	run_open(&run, peer, n + YOUNG_ONES, 0);
	run.nr = n;
	fill(&run, FAR_NS, false);
	if (peer->create)
		peer->create(run.self, n, YOUNG_ONES);
	young = run;
	young.nr = YOUNG_ONES;
	young.who += n;
	for (i = 0; i < YOUNG_ONES; i++)
		young.who[i] = n + i;
	young.deadline_ns += n;
	run_choose(&young, now_ns() + FAR_NS, now_ns() + 2 * FAR_NS, 5);
	measure(&young, "young", run_young_ones, n, true);
	run_close(&run);
}
