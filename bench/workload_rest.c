// SPDX-License-Identifier: GPL-2.0
/* Memory, and the cost while nothing is due. */
#include "workload.h"

#include <err.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOUR_NS		(3600 * SEC)
#define IDLE_SECONDS	10
#define NR_ROUNDS	4

static void arm_far(struct run *run)
{
	if (run->peer->create)
		run->peer->create(run->self, 0, run->nr);
	run_choose(run, now_ns() + HOUR_NS, now_ns() + 2 * HOUR_NS, 1);
	run_batches(run, run_arm, 0, run->nr);
	run_settle(run);
}

static void replace(struct run *run, uint32_t first, uint32_t nr)
{
	run_cancel(run, first, nr);
	run_arm(run, first, nr);
}

/* Cancel batch after batch, in random order, and arm as many. */
static void churn(struct run *run)
{
	uint64_t busy_ns = 0;
	struct meter meter;
	uint32_t round;

	for (round = 0; round < NR_ROUNDS; round++) {
		run_shuffle(run, 10 + round);
		run_choose(run, now_ns() + HOUR_NS, now_ns() + 2 * HOUR_NS, 20 + round);
		meter_start(&meter);
		run_batches(run, replace, 0, run->nr);
		run_settle(run);
		meter_stop(&meter);
		busy_ns += meter.busy_ns;
	}
	result(run->peer->name, "churn", run->nr, "cost",
	       (double)busy_ns / NR_ROUNDS / run->nr);
}

static void move_all_earlier(struct run *run)
{
	run_shuffle(run, 2);
	run_choose(run, now_ns() + HOUR_NS / 2, now_ns() + HOUR_NS, 3);
	run_batches(run, run_refresh, 0, run->nr);
	run_settle(run);
}

/*
 * Measure how much less memory of the machine is free, whatever it is used for: slabs, pages,
 * tables, and the process's own memory.  The benchmark's tables do not count.
 */
static void measure_memory(const struct peer *peer, const char *what, uint32_t n,
			   void (*after)(struct run *run))
{
	uint64_t free_before, free_after, slab_before, slab_after, process_before, process;
	struct run run;

	run_open(&run, peer, n, 0);
	free_before = free_bytes();
	slab_before = slab_bytes();
	process_before = process_bytes();
	arm_far(&run);
	if (after)
		after(&run);
	process = process_bytes() - process_before;
	free_after = free_bytes();
	slab_after = slab_bytes();
	result(peer->name, what, n, "bytes", ((double)free_before - free_after) / n);
	result(peer->name, what, n, "slab_bytes", ((double)slab_after - slab_before) / n);
	if (peer->timer_size) {
		result(peer->name, what, n, "caller_bytes", peer->timer_size);
		result(peer->name, what, n, "library_bytes",
		       (double)process / n - peer->timer_size);
	}
	run_close(&run);
}

void run_memory(const struct peer *peer, uint32_t n)
{
	measure_memory(peer, "memory", n, NULL);
}

/* The memory of a daemon whose timeouts come and go. */
void run_churn(const struct peer *peer, uint32_t n)
{
	measure_memory(peer, "churn", n, churn);
}

void run_moved(const struct peer *peer, uint32_t n)
{
	measure_memory(peer, "moved", n, move_all_earlier);
}

/*
 * Make n wheels, heaps or loops with ten timers in each, of 30 s to 5 min.  The library's pages
 * count if they were touched, and the caller's structs by their size; the benchmark's own data
 * beside them does not count.  If a structure is the benchmark's own, it counts by the bytes that
 * it asked for, and not by the pages that it got: a program would take them from malloc().  There
 * are no huge pages: for wheels that happen to lie side by side, the kernel would count memory that
 * nobody has touched.
 */
#define IN_WHEEL	10
#define STEP_NS		(30 * SEC)

static void open_wheel_of_ten(const struct peer *peer)
{
	const struct setup setup = { .nr = IN_WHEEL };
	uint64_t deadline_ns[IN_WHEEL];
	uint32_t who[IN_WHEEL], i;
	void *self = peer->open(&setup);

	for (i = 0; i < IN_WHEEL; i++) {
		who[i] = i;
		deadline_ns[i] = now_ns() + (i + 1) * STEP_NS;
	}
	if (peer->create)
		peer->create(self, 0, IN_WHEEL);
	peer->arm(self, who, deadline_ns, IN_WHEEL);
}

void run_wheels(const struct peer *peer, uint32_t n)
{
	uint64_t free_before, process_before, bytes_before, pages_before, timers;
	double process, kernel;
	uint32_t i;

	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		err(1, "PR_SET_THP_DISABLE");
	free_before = free_bytes();
	process_before = process_bytes();
	bytes_before = got_bytes;
	pages_before = got_page_bytes;
	for (i = 0; i < n; i++)
		open_wheel_of_ten(peer);
	process = process_bytes() - process_before;
	kernel = (double)free_before - free_bytes() - process;
	timers = peer->is_structure ? got_bytes - bytes_before :
		(uint64_t)n * (IN_WHEEL * peer->timer_size + peer->wheel_size);
	process += (double)timers - (got_page_bytes - pages_before);
	result(peer->name, "wheels", n, "process", process / n);
	result(peer->name, "wheels", n, "kernel", kernel / n);
	result(peer->name, "wheels", n, "timer", peer->timer_size);
}

/* Another process waits: it must sleep during the whole measurement. */
static pid_t start_waiting(const struct peer *peer, uint32_t n)
{
	int ready[2];
	pid_t pid;
	char byte;

	if (pipe(ready))
		err(1, "pipe");
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		struct run run;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_open(&run, peer, n, 0);
		arm_far(&run);
		if (write(ready[1], "", 1) != 1)
			err(1, "pipe");
		for (;;)
			peer->wait(run.self, true);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		errx(1, "%s could not be made to wait", peer->name);
	close(ready[0]);
	return pid;
}

void run_idle(const struct peer *peer, uint32_t n)
{
	uint64_t timers, all, timers_after, all_after, process, kthreads;
	pid_t pid = start_waiting(peer, n);

	/* Let the kernel finish the work that arming has left. */
	sleep_until(now_ns() + 2 * SEC);
	process = switches_of(pid);
	kthreads = kthread_switches();
	count_interrupts(&timers, &all);
	sleep_until(now_ns() + IDLE_SECONDS * SEC);
	count_interrupts(&timers_after, &all_after);
	result(peer->name, "idle", n, "wakeups", switches_of(pid) - process);
	result(peer->name, "idle", n, "kthread_wakeups", kthread_switches() - kthreads);
	result(peer->name, "idle", n, "timer_interrupts", timers_after - timers);
	result(peer->name, "idle", n, "interrupts", all_after - all);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
