// SPDX-License-Identifier: GPL-2.0
/* Expiry and delivery: the cost, the lateness, and both amid refreshes. */
#include "histogram.h"
#include "workload.h"

#include <err.h>
#include <unistd.h>

/* Long enough to arm all timeouts before the first is due; idle time is not measured. */
static uint64_t lead_ns(uint32_t nr)
{
	return counts_instructions ? SEC / 10 + nr * 20 * US : SEC + nr * 60 * US;
}

/* Arm n timeouts that are due within span_ns; return when that time begins. */
static uint64_t arm_over(struct run *run, const struct peer *peer, const struct setup *setup,
			 uint64_t span_ns)
{
	uint32_t n = setup->nr;
	uint64_t start_ns;

	run_open_with(run, peer, setup);
	if (peer->create)
		peer->create(run->self, 0, n);
	start_ns = now_ns() + lead_ns(n);
	/* Begin at the same distance from the edges of ticks, each time. */
	start_ns += SEC / 10 - start_ns % (SEC / 10);
	run_choose(run, start_ns, start_ns + span_ns, 1);
	run_batches(run, run_arm, 0, n);
	run_settle(run);
	if (now_ns() > start_ns)
		warnx("%s: the first of %u were due before all were armed", peer->name, n);
	return start_ns;
}

/*
 * n timeouts expire within a second.  All work between arming and expiry counts, such as moving to
 * a finer level of a wheel.
 */
void run_expire(const struct peer *peer, uint32_t n)
{
	const struct setup setup = { .nr = n };
	struct meter meter;
	uint32_t total = 0;
	struct run run;

	arm_over(&run, peer, &setup, SEC);
	meter_start(&meter);
	while (total < n) {
		nr_expired = 0;
		peer->wait(run.self, true);
		total += nr_expired;
	}
	meter_stop(&meter);
	result_cost(peer->name, "expire", n, &meter, n);
	result(peer->name, "expire", n, "wakeups", (double)meter.wakeups / n);
	result(peer->name, "expire", n, "kthread_wakeups", (double)meter.kthread_wakeups / n);
	run_close(&run);
}

/* How late the program gets them, by the clock that it reads afterwards. */
void run_late(const struct peer *peer, uint32_t n)
{
	static const struct {
		double share;
		const char *name;
	} points[] = {
		{ 0.5, "p50" }, { 0.9, "p90" }, { 0.99, "p99" }, { 0.999, "p99.9" },
		{ 0.9999, "p99.99" },
	};
	const struct setup setup = { .nr = n, .in_time = true };
	struct histogram *histogram = histogram_new();
	uint32_t total, i, early = 0;
	struct run run;

	arm_over(&run, peer, &setup, SEC);
	for (total = 0; total < n; total += nr_expired) {
		uint64_t now;

		nr_expired = 0;
		peer->wait(run.self, true);
		now = now_ns();
		for (i = 0; i < nr_expired; i++) {
			uint64_t due = run.deadline_ns[expired_who[i]];

			early += now < due;
			histogram_add(histogram, now < due ? 0 : now - due);
		}
	}
	for (i = 0; i < ARRAY_SIZE(points); i++)
		result(peer->name, "late", n, points[i].name,
		       histogram_at(histogram, points[i].share) / 1e3);
	result(peer->name, "late", n, "max", histogram_max(histogram) / 1e3);
	result(peer->name, "late", n, "early", early);
	run_close(&run);
}

/*
 * n timeouts expire within an hour, in a loop that turns a hundred times a second.  The result is
 * the longest time, or the most instructions, of a call that does not sleep.  If an interrupt comes
 * in the call, its instructions count as well.
 */
#define HOUR_NS		(3600 * SEC)
#define CALL_NS		(10 * MS)

void run_dispatch(const struct peer *peer, uint32_t n)
{
	uint64_t next_ns, took_ns, longest_ns = 0;
	const struct setup setup = { .nr = n };
	uint32_t total;
	struct run run;

	next_ns = arm_over(&run, peer, &setup, HOUR_NS);
	for (total = 0; total < n; total += nr_expired) {
		next_ns += CALL_NS;
		sleep_until(next_ns);
		nr_expired = 0;
		took_ns = now_ns();
		peer->wait(run.self, false);
		took_ns = now_ns() - took_ns;
		if (took_ns > longest_ns)
			longest_ns = took_ns;
	}
	result(peer->name, "dispatch", n, "max", longest_ns);
	run_close(&run);
}

/*
 * Idle connections: packets come at random, and each moves the timeout of its connection on by the
 * same distance.  There are a thousand packets for each expiry: exp(-rate * distance / n) is
 * 1/1000.  If a timeout has expired, it is armed again, as a new connection.  The loop turns each
 * millisecond, with 69 packets.
 */
#define TURN_NS		MS
#define PACKETS		69
#define LN_1000		6.9078

static uint32_t mix_turns(struct run *run, uint64_t distance_ns, uint32_t turns, uint64_t *seed)
{
	uint64_t deadline_ns[BATCH], next_ns = now_ns();
	uint32_t who[BATCH], turn, i, j, step, total = 0;

	for (turn = 0; turn < turns; turn++) {
		uint64_t deadline;

		next_ns += TURN_NS;
		sleep_until(next_ns);
		deadline = now_ns() + distance_ns;
		for (i = 0; i < BATCH; i++)
			deadline_ns[i] = deadline;
		nr_expired = 0;
		run->peer->wait(run->self, false);
		for (i = 0; i < nr_expired; i += step) {
			step = nr_expired - i < run->batch ? nr_expired - i : run->batch;
			run->peer->arm(run->self, expired_who + i, deadline_ns, step);
		}
		total += nr_expired;
		for (j = 0; j < PACKETS; j++)
			who[j] = (uint64_t)random32(seed) * run->nr >> 32;
		run->peer->refresh(run->self, who, deadline_ns, PACKETS);
	}
	return total;
}

void run_mix(const struct peer *peer, uint32_t n)
{
	uint32_t turns = n * LN_1000 / PACKETS, total;
	uint64_t distance_ns = turns * TURN_NS, seed = 7;
	struct meter meter;
	struct run run;

	run_open(&run, peer, n, distance_ns);
	if (peer->create)
		peer->create(run.self, 0, n);
	run_choose(&run, now_ns() + lead_ns(n), now_ns() + lead_ns(n) + distance_ns, 1);
	run_batches(&run, run_arm, 0, n);
	run_settle(&run);
	/* Go on until the first deadlines have been replaced. */
	mix_turns(&run, distance_ns, turns + lead_ns(n) / TURN_NS, &seed);
	meter_start(&meter);
	total = mix_turns(&run, distance_ns, 2 * turns, &seed);
	meter_stop(&meter);
	result_cost(peer->name, "mix", n, &meter, 2ULL * turns * PACKETS);
	result(peer->name, "mix", n, "expiries", total * 1000.0 / (2.0 * turns * PACKETS));
	run_close(&run);
}
