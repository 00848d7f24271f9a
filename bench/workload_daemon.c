// SPDX-License-Identifier: GPL-2.0
/*
 * Workloads of daemons.  A workload is a loop with turns, in each of which requests and replies
 * come, and the kernel is asked once which timeouts have expired.  "empty" does the same with a
 * descriptor that is never readable: its cost is the loop's own.
 */
#include "workload.h"

#include <err.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define REQUEST_NS	SEC
#define IDLE_NS		(30 * SEC)

/* Requests in a turn. */
#define TURN		50

struct daemon {
	struct run run;
	uint32_t in_ring;	/* requests, in the order in which they come */
	uint32_t at;		/* the next one */
	uint32_t lag;		/* how much later each is answered */
	const uint32_t *idle;	/* the connections of these requests */
	const uint32_t *request;
	uint64_t request_ns[TURN], idle_ns[TURN];
	uint64_t now_ns;
	uint64_t timed_out;
};

typedef void (*turn_fn)(void *daemon);

static void turn(struct daemon *d, turn_fn fn)
{
	const struct peer *peer = d->run.peer;

	nr_expired = 0;
	if (peer->turn) {
		peer->turn(d->run.self, fn, d);
	} else {
		fn(d);
		peer->wait(d->run.self, false);
	}
	d->timed_out += nr_expired;
}

static void daemon_open(struct daemon *d, const struct peer *peer, uint32_t nr,
			uint64_t same_ns, uint64_t other_ns)
{
	const struct setup setup = {
		.nr = nr, .same_ns = same_ns, .other_ns = other_ns, .turns = true,
	};

	run_open_with(&d->run, peer, &setup);
	if (peer->create)
		peer->create(d->run.self, 0, nr);
}

static void read_clock(struct daemon *d)
{
	uint32_t i;

	d->now_ns = now_ns();
	for (i = 0; i < TURN; i++) {
		d->request_ns[i] = d->now_ns + REQUEST_NS;
		d->idle_ns[i] = d->now_ns + IDLE_NS;
	}
}

static void tell_tally(struct daemon *d, const char *workload, uint32_t n,
		       const struct tally *was, uint64_t starts)
{
	const struct peer *peer = d->run.peer;
	struct tally is;

	if (!peer->tally)
		return;
	peer->tally(d->run.self, &is);
	result(peer->name, workload, n, "vain", (is.vain - was->vain) * 1000.0 / starts);
	result(peer->name, workload, n, "rearmed", (is.rearmed - was->rearmed) * 1000.0 / starts);
	result(peer->name, workload, n, "calls", (is.calls - was->calls) * 1000.0 / starts);
}

static struct tally tally_of(const struct daemon *d)
{
	struct tally tally = { 0 };

	if (d->run.peer->tally)
		d->run.peer->tally(d->run.self, &tally);
	return tally;
}

/* ---- request timeouts: started, and stopped in the order of their starts -- */

static void start_requests(void *daemon)
{
	struct daemon *d = daemon;

	read_clock(d);
	d->run.peer->arm(d->run.self, d->run.who + d->at, d->request_ns, TURN);
}

static void start_and_stop_requests(void *daemon)
{
	struct daemon *d = daemon;

	start_requests(d);
	d->at += TURN;
	if (d->at == d->in_ring)
		d->at = 0;
	d->run.peer->cancel(d->run.self, d->run.who + d->at, TURN);
}

/* Run the turns one after the other, or each at its time; return how many requests came. */
static uint64_t request_turns(struct daemon *d, uint64_t for_ns, uint64_t period_ns)
{
	uint64_t next_ns = now_ns(), until_ns = next_ns + for_ns, turns = 0;

	do {
		next_ns += period_ns;
		if (period_ns)
			sleep_until(next_ns);
		turn(d, start_and_stop_requests);
		turns++;
	} while (d->now_ns < until_ns);
	return turns;
}

/* Keep n timeouts in flight; each is answered life_ns after its start, or as soon as possible. */
static void run_requests(const struct peer *peer, const char *workload, uint32_t n,
			 uint64_t life_ns)
{
	uint32_t batches = n < TURN ? 1 : n / TURN;
	struct daemon d = { .in_ring = (batches + 1) * TURN };
	struct meter meter;
	struct tally tally;
	uint64_t turns;

	daemon_open(&d, peer, d.in_ring, REQUEST_NS, 0);
	for (; d.at < d.in_ring - TURN; d.at += TURN) {
		turn(&d, start_requests);
		if (life_ns)
			sleep_until(now_ns() + life_ns / batches);
	}
	/* Go on until the first deadlines have passed. */
	request_turns(&d, REQUEST_NS * 3 / 2, life_ns / batches);
	tally = tally_of(&d);
	meter_start(&meter);
	turns = request_turns(&d, 3 * REQUEST_NS, life_ns / batches);
	meter_stop(&meter);
	if (d.timed_out)
		errx(1, "%s: requests time out where %u are in flight", peer->name, n);
	result_cost(peer->name, workload, n, &meter, turns * TURN);
	tell_tally(&d, workload, n, &tally, turns * TURN);
	run_close(&d.run);
}

void run_request(const struct peer *peer, uint32_t n)
{
	run_requests(peer, "request", n, 0);
}

/* Requests that take half of their time. */
void run_slow(const struct peer *peer, uint32_t n)
{
	run_requests(peer, "slow", n, REQUEST_NS / 2);
}

/* ---- idle timeouts that are moved, and none expires ------------------------ */

static void start_idle(void *daemon)
{
	struct daemon *d = daemon;

	read_clock(d);
	d->run.peer->arm(d->run.self, d->run.who + d->at, d->idle_ns, TURN);
}

static void restart_idle(void *daemon)
{
	struct daemon *d = daemon;

	read_clock(d);
	d->run.peer->refresh(d->run.self, d->run.who + d->at, d->idle_ns, TURN);
}

static void for_all(struct daemon *d, turn_fn fn)
{
	for (d->at = 0; d->at < d->in_ring; d->at += TURN)
		turn(d, fn);
}

/* n connections, each of which is active once a round, in a random order. */
void run_restart(const struct peer *peer, uint32_t n)
{
	struct daemon d = { .in_ring = n / TURN * TURN };
	struct meter meter;
	uint32_t rounds = 0;
	uint64_t until_ns;

	daemon_open(&d, peer, d.in_ring, IDLE_NS, 0);
	run_shuffle(&d.run, 2);
	for_all(&d, start_idle);
	/* Touch all memory now: the first use costs more. */
	for_all(&d, restart_idle);
	meter_start(&meter);
	until_ns = now_ns() + SEC;
	do {
		for_all(&d, restart_idle);
		rounds++;
	} while (now_ns() < until_ns);
	meter_stop(&meter);
	if (d.timed_out)
		errx(1, "%s: idle timeouts expire", peer->name);
	result_cost(peer->name, "restart", n, &meter, (uint64_t)rounds * d.in_ring);
	run_close(&d.run);
}

/* ---- the last one is answered first ---------------------------------------- */

/* Start new requests in place of those of the turn before, which are answered now. */
static void replace_newest(void *daemon)
{
	struct daemon *d = daemon;

	d->run.peer->cancel(d->run.self, d->request, TURN);
	start_requests(d);
}

static uint64_t newest_turns(struct daemon *d, uint64_t for_ns)
{
	uint64_t until_ns = now_ns() + for_ns, turns = 0;

	do {
		turn(d, replace_newest);
		turns++;
	} while (d->now_ns < until_ns);
	return turns;
}

/* Arm n long timeouts, and have room for the requests of a turn. */
static void lifo_open(struct daemon *d, const struct peer *peer, uint32_t n)
{
	/* The upper half has the other length; the requests of a turn are its first. */
	const struct setup setup = {
		.nr = 2 * n, .same_ns = IDLE_NS, .other_ns = REQUEST_NS, .turns = true,
	};

	run_open_with(&d->run, peer, &setup);
	if (!peer->create)
		return;
	peer->create(d->run.self, 0, n);
	peer->create(d->run.self, n, TURN);
}

/*
 * n requests with a timeout of 30 s are in flight all the time.  In each turn 50 more come, with a
 * timeout of 1 s.  They are answered at the beginning of the next turn, the last one first.
 */
void run_lifo(const struct peer *peer, uint32_t n)
{
	struct daemon d = { .in_ring = n / TURN * TURN };
	uint32_t backwards[TURN], i;
	struct meter meter;
	struct tally tally;
	uint64_t turns;

	if (n < TURN)
		errx(1, "lifo: at least %d", TURN);
	lifo_open(&d, peer, n);
	for_all(&d, start_idle);
	for (i = 0; i < TURN; i++)
		backwards[i] = n + TURN - 1 - i;
	d.request = backwards;
	d.at = n;
	turn(&d, start_requests);
	/* Go on until the first deadlines have passed. */
	newest_turns(&d, REQUEST_NS * 3 / 2);
	tally = tally_of(&d);
	meter_start(&meter);
	turns = newest_turns(&d, 2 * REQUEST_NS);
	meter_stop(&meter);
	if (d.timed_out)
		errx(1, "%s: requests time out", peer->name);
	result_cost(peer->name, "lifo", n, &meter, turns * TURN);
	tell_tally(&d, "lifo", n, &tally, turns * TURN);
	run_close(&d.run);
}

/* ---- two lengths on each connection --------------------------------------- */

/* A reply comes some turns after its request; each moves the connection's idle timeout. */
#define LAG_TURNS	8

/* If instructions are counted, the loop sleeps after this many turns, to be in time. */
#define TURNS_AWAKE	16
#define PER_MS		64

static void talk(void *daemon)
{
	struct daemon *d = daemon;
	const struct peer *peer = d->run.peer;
	uint32_t reply;

	read_clock(d);
	peer->refresh(d->run.self, d->idle + d->at, d->idle_ns, TURN);
	peer->arm(d->run.self, d->request + d->at, d->request_ns, TURN);
	reply = d->at >= d->lag ? d->at - d->lag : d->at + d->in_ring - d->lag;
	peer->cancel(d->run.self, d->request + reply, TURN);
	peer->refresh(d->run.self, d->idle + reply, d->idle_ns, TURN);
	d->at += TURN;
	if (d->at == d->in_ring)
		d->at = 0;
}

static uint64_t talk_turns(struct daemon *d, uint64_t for_ns)
{
	uint64_t start_ns = now_ns(), turns = 0;

	do {
		turn(d, talk);
		turns++;
		if (counts_instructions && !(turns % TURNS_AWAKE))
			sleep_until(start_ns + turns * TURN * MS / PER_MS);
	} while (d->now_ns - start_ns < for_ns);
	return turns;
}

/* The first round: no reply yet, and no idle timeout. */
static void greet(void *daemon)
{
	struct daemon *d = daemon;

	read_clock(d);
	d->run.peer->arm(d->run.self, d->idle + d->at, d->idle_ns, TURN);
	if (d->at >= d->in_ring - d->lag)
		d->run.peer->arm(d->run.self, d->request + d->at, d->request_ns, TURN);
}

/*
 * Connections with an idle timeout and one of a request: on each request the first is
 * moved twice, and the second started and stopped.  The first n timeouts are the former,
 * in a random order of connections, the other n the latter.
 */
void run_lengths(const struct peer *peer, uint32_t n)
{
	struct daemon d = { .in_ring = n / TURN * TURN };
	uint32_t *request = get_memory(n, sizeof(*request)), i;
	struct meter meter;
	struct tally tally;
	uint64_t turns;

	daemon_open(&d, peer, 2 * n, IDLE_NS, REQUEST_NS);
	d.run.nr = n;
	run_shuffle(&d.run, 2);
	for (i = 0; i < n; i++)
		request[i] = n + d.run.who[i];
	d.idle = d.run.who;
	d.request = request;
	d.lag = d.in_ring > 2 * LAG_TURNS * TURN ? LAG_TURNS * TURN : TURN;
	for (; d.at < d.in_ring; d.at += TURN)
		turn(&d, greet);
	d.at = 0;
	talk_turns(&d, counts_instructions ? IDLE_NS + SEC : 2 * SEC);
	tally = tally_of(&d);
	meter_start(&meter);
	turns = talk_turns(&d, counts_instructions ? IDLE_NS + SEC : 4 * SEC);
	meter_stop(&meter);
	if (d.timed_out)
		errx(1, "%s: requests time out", peer->name);
	result_cost(peer->name, "lengths", n, &meter, turns * TURN);
	tell_tally(&d, "lengths", n, &tally, turns * TURN);
	run_close(&d.run);
}

/* ---- a burst that ends ---------------------------------------------------- */

#define QUIET_SECONDS	5

static void each_batch(struct daemon *d, bool start)
{
	uint32_t i, nr;

	for (i = 0; i < d->run.nr; i += nr) {
		nr = d->run.nr - i < TURN ? d->run.nr - i : TURN;
		if (start)
			d->run.peer->arm(d->run.self, d->run.who + i, d->request_ns, nr);
		else
			d->run.peer->cancel(d->run.self, d->run.who + i, nr);
	}
}

static void start_all(void *daemon)
{
	read_clock(daemon);
	each_batch(daemon, true);
}

static void stop_all(void *daemon)
{
	each_batch(daemon, false);
}

static void start_and_stop_all(void *daemon)
{
	start_all(daemon);
	stop_all(daemon);
}

static void nothing(void *daemon)
{
	(void)daemon;
}

static void tell_cost(struct daemon *d, const char *what, struct meter *meter)
{
	meter_stop(meter);
	result(d->run.peer->name, "burst", d->run.nr, what, (double)meter->busy_ns / d->run.nr);
	meter_start(meter);
}

/*
 * Start n timeouts in one turn, and stop them in the next or in the same.  Then the loop turns ten
 * times a second, and has nothing to do.
 */
void run_burst(const struct peer *peer, uint32_t n)
{
	struct daemon d = { 0 };
	uint64_t free_before, next_ns;
	struct meter meter;
	struct tally tally;
	uint32_t i;

	daemon_open(&d, peer, n, REQUEST_NS, 0);
	free_before = free_bytes();
	tally = tally_of(&d);
	meter_start(&meter);
	turn(&d, start_and_stop_all);
	tell_cost(&d, "one_turn", &meter);
	turn(&d, start_all);
	turn(&d, stop_all);
	tell_cost(&d, "cost", &meter);
	next_ns = now_ns();
	for (i = 0; i < 10 * QUIET_SECONDS; i++) {
		next_ns += SEC / 10;
		sleep_until(next_ns);
		turn(&d, nothing);
	}
	tell_cost(&d, "later", &meter);
	if (d.timed_out)
		errx(1, "%s: stopped, and expired", peer->name);
	tell_tally(&d, "burst", n, &tally, 2 * n);
	result(peer->name, "burst", n, "bytes", ((double)free_before - free_bytes()) / n);
	run_close(&d.run);
}

/* ---- how often a process wakes up by itself -------------------------------- */

/* A measurement lasts this long, and is scaled to an hour. */
#define WAKEUPS_NS	(300 * SEC)
#define IN_HOUR		12

/* Requests in flight, if a request comes before the last one is answered. */
#define FLIGHT		5

struct wakeups {
	struct daemon d;
	uint64_t length_ns;
	int timerfd;		/* readable when an event comes */
	uint64_t next_ns;	/* when the next event comes */
	uint64_t period_ns;	/* between two events, on an average */
	uint64_t seed;
	uint64_t events;	/* until now: requests, and answers that come alone */
	bool apart;		/* each is answered before the next one comes */
};

static void start_one(struct wakeups *w)
{
	uint64_t deadline_ns = now_ns() + w->length_ns;

	w->d.run.peer->arm(w->d.run.self, w->d.run.who + w->d.at, &deadline_ns, 1);
	w->d.at = (w->d.at + 1) % w->d.run.nr;
}

static void stop_one(struct wakeups *w, uint32_t flight)
{
	uint32_t nr = w->d.run.nr, at = (w->d.at + nr - flight) % nr;

	w->d.run.peer->cancel(w->d.run.self, w->d.run.who + at, 1);
}

static void come_or_answer(void *wakeups)
{
	struct wakeups *w = wakeups;
	bool answer = w->apart && w->events % 2;

	if (!answer)
		start_one(w);
	if (answer)
		stop_one(w, 1);
	else if (!w->apart && w->events >= FLIGHT)
		stop_one(w, FLIGHT + 1);
	w->events++;
}

/* Events come at random: if a deadline fell on one, the wake-up for it would not be counted. */
static void wait_for_event(struct wakeups *w)
{
	struct itimerspec spec = { 0 };

	/* An event never comes so soon that the process is still awake. */
	w->next_ns += w->period_ns / 4 + (w->period_ns * 3 / 2 * (random32(&w->seed) >> 16) >> 16);
	spec.it_value = to_timespec(w->next_ns);
	if (timerfd_settime(w->timerfd, TFD_TIMER_ABSTIME, &spec, NULL))
		err(1, "timerfd_settime");
}

/* Run the turns of `for_ns'; return how many events came. */
static uint64_t wakeups_turns(struct wakeups *w, uint64_t for_ns)
{
	uint64_t until_ns = now_ns() + for_ns, count, was = w->events;

	while (now_ns() < until_ns) {
		nr_expired = 0;
		w->d.run.peer->wait(w->d.run.self, true);
		w->d.timed_out += nr_expired;
		if (read(w->timerfd, &count, sizeof(count)) != sizeof(count))
			continue;
		turn(&w->d, come_or_answer);
		wait_for_event(w);
	}
	return w->events - was;
}

/* Wake-ups in an hour: the process's without those for events, and the kthreads'. */
static void wakeups_of(const struct peer *peer, uint32_t n, uint64_t length_ns, bool apart,
		       const char *metric, const char *kthread_metric)
{
	struct wakeups w = {
		.length_ns = length_ns, .apart = apart, .seed = 7, .next_ns = now_ns() + SEC,
		.period_ns = SEC / n / (apart ? 2 : 1),
	};
	struct meter meter;
	uint64_t events;

	daemon_open(&w.d, peer, n, length_ns, 0);
	w.timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (w.timerfd < 0)
		err(1, "timerfd_create");
	peer->watch(w.d.run.self, w.timerfd);
	wait_for_event(&w);
	wakeups_turns(&w, length_ns + SEC);
	meter_start(&meter);
	events = wakeups_turns(&w, WAKEUPS_NS);
	meter_stop(&meter);
	if (w.d.timed_out)
		errx(1, "%s: requests time out", peer->name);
	result(peer->name, "wakeups", n, metric, IN_HOUR * ((double)meter.wakeups - events));
	result(peer->name, "wakeups", n, kthread_metric,
	       IN_HOUR * (double)meter.kthread_wakeups);
	run_close(&w.d.run);
}

/*
 * n requests come in a second, and each is answered in time: after five more have come, or before
 * the next one comes.
 */
void run_wakeups(const struct peer *peer, uint32_t n)
{
	wakeups_of(peer, n, REQUEST_NS, false, "hour_1s", "kthreads_1s");
	wakeups_of(peer, n, IDLE_NS, false, "hour_30s", "kthreads_30s");
	wakeups_of(peer, n, REQUEST_NS, true, "hour_apart", "kthreads_apart");
}
