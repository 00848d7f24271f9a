// SPDX-License-Identifier: GPL-2.0
/*
 * The mix: the timeouts of a busy server, for hundreds of days, on three clocks; and the same
 * while the realtime clock is set forwards and back.
 *
 *	sessions	56 %	one-shots of two days to two months, refreshed
 *	delayed jobs	43 %	one-shots of an hour to four months
 *	heartbeats	0.2 %	fixed rate, 10 s to 12 h, half of them limited
 *	retries		0.1 %	fixed delay, an hour to 10 d, limited
 *	requests	on top	2 ms to 30 s, mostly cancelled young; a few are due
 *				when armed, or are short bursts of periods
 *
 * If a timeout ends, it is armed again. The day has quiet hours, looked at every minute or two, and
 * a peak of rounds some milliseconds apart, with the requests.
 */
#include "soak.h"

#define PEAK_ROUNDS	1000
#define QUIET_ROUNDS	720	/* from peak to peak, on average */
#define REQUESTS	50	/* a round of the peak */
#define PATIENT		32	/* one request in this many is not cancelled */
#define QUERIES		100	/* a day */
#define STEPS		2000

/*
 * The delay that a step may cause. The kernel notices it at the next interrupt of the CPU that set
 * the clock, at the latest at its next jiffy of 10 ms. Each tick that has passed costs a reading of
 * the clock, which takes 256 ns of simulated time.
 */
#define STEP_NOTICED_NS	(20 * TW_MS)
#define STEP_COST_NS	(TW_US / 2)

enum kind { SESSION, DELAYED, HEARTBEAT, RETRY, REQUEST };

#define MAX_WHEELS	3

/**
 * struct mix - a mix being run
 * @wheel: the wheels
 * @nr_wheels: how many
 * @share: the share of each in the rounds, per cent
 * @steps: how many times the clock is set; 0: never
 * @refreshes: sessions refreshed a round
 * @cursor: for each wheel, the request to arm next
 * @peak_left: rounds of the peak to come
 * @previous: the wheel that was served last and read to the end, NULL if none
 */
struct mix {
	struct oracle wheel[MAX_WHEELS];
	unsigned int nr_wheels;
	unsigned int share[MAX_WHEELS];
	unsigned int steps;
	unsigned int refreshes;
	__u32 cursor[MAX_WHEELS];
	unsigned int peak_left;
	struct oracle *previous;
};

/* ---- the kinds of timeouts ----------------------------------------------- */

/* The requests have the last places. */
static __u32 first_request(const struct oracle *o)
{
	return o->nr_jobs - o->nr_jobs / 21;
}

static enum kind kind_of(const struct oracle *o, __u32 index)
{
	__u32 permille = index % 1000;

	if (index >= first_request(o))
		return REQUEST;
	if (permille == 999)
		return RETRY;
	if (permille >= 997)
		return HEARTBEAT;
	return permille < 560 ? SESSION : DELAYED;
}

/* Most have periods of hours, one in fifty of minutes, and a few of seconds. */
static __u64 heartbeat_interval_ns(__u32 index)
{
	__u32 nr = index / 1000;

	if (nr % 250 == 7)
		return random_scale(10 * TW_SEC, TW_MIN);
	if (nr % 50 == 3)
		return random_scale(5 * TW_MIN, TW_HOUR);
	return random_scale(TW_HOUR, 12 * TW_HOUR);
}

/* If the clock can be set, a relative time is refused. */
static bool is_settable(const struct oracle *o)
{
	return o->setup.clock == TWHEEL_CLOCK_REALTIME || o->setup.clock == TWHEEL_CLOCK_TAI;
}

static struct twheel_arm plan_request(const struct oracle *o)
{
	struct twheel_arm arm = { .flags = TWHEEL_ARM_ABSOLUTE };
	__u32 lot = random_below(64);

	arm.expires_ns = o->now_ns + random_scale(2 * TW_MS, 30 * TW_SEC);
	if (!random_below(4))
		arm.slack_ticks = random_scale(1, 4096);
	if (lot < 2) {	/* overdue */
		arm.expires_ns = o->now_ns - random_scale(1, o->now_ns < TW_HOUR ? 2 : TW_HOUR);
	} else if (lot == 2) {
		arm.expires_ns = 0;
		arm.flags = is_settable(o) ? TWHEEL_ARM_ABSOLUTE : 0;
	}
	if (lot == 1 || lot == 3 || lot == 4) {
		arm.interval_ns = random_scale(TW_US, TW_SEC);
		arm.repeats = 1 + random_below(20);
	}
	return arm;
}

static struct twheel_arm plan(const struct oracle *o, __u32 index)
{
	struct twheel_arm arm = {};

	switch (kind_of(o, index)) {
	case SESSION:
		arm.expires_ns = random_scale(2 * TW_DAY, 60 * TW_DAY);
		break;
	case DELAYED:
		arm.expires_ns = random_scale(TW_HOUR, 120 * TW_DAY);
		break;
	case HEARTBEAT:
		arm.interval_ns = heartbeat_interval_ns(index);
		arm.expires_ns = random_scale(5 * TW_MS, arm.interval_ns);
		if (random_below(2))
			arm.repeats = random_scale(10, 1000);
		break;
	case RETRY:
		arm.interval_ns = random_scale(TW_HOUR, 10 * TW_DAY);
		arm.expires_ns = random_scale(TW_SEC, TW_HOUR);
		arm.repeats = 1 + random_below(20);
		arm.flags = TWHEEL_ARM_FIXED_DELAY;
		break;
	case REQUEST:
		return plan_request(o);
	}
	if (is_settable(o) || random_below(8)) {
		arm.expires_ns += o->now_ns;
		arm.flags |= TWHEEL_ARM_ABSOLUTE;
	}
	return arm;
}

static void renew(struct oracle *o, __u32 index)
{
	if (kind_of(o, index) != REQUEST)
		oracle_arm(o, index, plan(o, index));
}

/* ---- a round ------------------------------------------------------------- */

static void refresh_some(const struct mix *m, struct oracle *o)
{
	unsigned int i;
	__u32 index;

	for (i = 0; i < m->refreshes; i++) {
		index = random_below(first_request(o));
		/* Move some of the others too, also earlier. */
		if (kind_of(o, index) == SESSION || !random_below(8))
			oracle_rearm(o, index, plan(o, index));
	}
	index = random_below(first_request(o));
	if (o->job[index].live) {
		oracle_cancel(o, index);
		renew(o, index);
	}
}

static void serve_requests(struct mix *m, struct oracle *o)
{
	__u32 first = first_request(o), nr = o->nr_jobs - first;
	__u32 *cursor = &m->cursor[o - m->wheel];
	unsigned int i;

	for (i = 0; i < REQUESTS; i++) {
		__u32 index = first + (*cursor + nr - 1 - random_below(2 * REQUESTS)) % nr;

		/* If a request was answered before, its id is stale. */
		if (index % PATIENT && o->job[index].id)
			oracle_cancel(o, index);
	}
	for (i = 0; i < REQUESTS && i < nr; i++) {
		__u32 index = first + (*cursor + i) % nr;

		if (!o->job[index].live)
			oracle_arm(o, index, plan(o, index));
	}
	*cursor = (*cursor + REQUESTS) % nr;
}

/* Set the clock forwards by days, or back by hours. */
static void step_clock(struct mix *m)
{
	struct timespec ts;
	unsigned int i;
	__u64 now_ns;

	for (i = 0; i < m->nr_wheels; i++) {
		oracle_stamp(&m->wheel[i]);
		oracle_read(&m->wheel[i]);
		oracle_flush(&m->wheel[i]);
	}
	now_ns = tw_now(CLOCK_REALTIME);
	if (random_below(4))
		now_ns += random_scale(TW_SEC, 3 * TW_DAY);
	else
		now_ns -= random_scale(TW_MS, 12 * TW_HOUR);
	ts = tw_to_timespec(now_ns);
	if (clock_settime(CLOCK_REALTIME, &ts))
		fault(FAULT_LOST, "clock_settime: errno %d", errno);
	for (i = 0; i < m->nr_wheels; i++) {
		oracle_stamp(&m->wheel[i]);
		m->wheel[i].since_ns = m->wheel[i].now_ns;
	}
	m->steps--;
	/* All wheels have the same kthread. */
	tw_sleep(m->wheel[0].catch_up_ns + random_scale(TW_MS, TW_MIN));
}

static struct oracle *pick_wheel(struct mix *m)
{
	int ticket = random_below(100);
	unsigned int i = 0;

	while ((ticket -= m->share[i]) >= 0)
		i++;
	return &m->wheel[i];
}

/* Sleep, or poll; return whether poll reports an event. */
static bool wait_for(const struct mix *m, const struct oracle *o)
{
	__u64 gap_ns = m->peak_left ? random_scale(TW_MS, 100 * TW_MS) :
				      random_scale(TW_SEC, 10 * TW_MIN);

	if (!random_below(8))
		return tw_poll(o->fd, POLLIN, gap_ns / TW_MS) == POLLIN;
	tw_sleep(gap_ns);
	return false;
}

static void read_some(const struct mix *m, struct oracle *o, bool polled)
{
	__u64 woken_ns = o->now_ns;
	unsigned int nr = oracle_read(o);

	if (polled && !nr)
		fault(FAULT_LOST, "poll said IN, and there was nothing");
	if (polled && nr && m->previous == o &&
	    woken_ns - o->event[0].fired_ns >= o->setup.tick_ns) {
		fault(FAULT_LATE, "fired at %llu, poll woke at %llu", o->event[0].fired_ns,
		      woken_ns);
	}
}

static void one_round(struct mix *m)
{
	struct oracle *o = pick_wheel(m);
	bool polled = wait_for(m, o);
	bool reads = polled || random_below(8);

	oracle_stamp(o);
	if (reads)
		read_some(m, o, polled);
	/* Set the clock before a timeout is armed that would be due at once. */
	if (m->steps && !random_below(4)) {
		step_clock(m);
		oracle_stamp(o);
		oracle_read(o);
	}
	m->previous = reads ? o : NULL;
	refresh_some(m, o);
	if (m->peak_left)
		serve_requests(m, o);
	oracle_flush(o);
	if (m->peak_left)
		m->peak_left--;
	else if (!random_below(QUIET_ROUNDS))
		m->peak_left = PEAK_ROUNDS;
}

/* ---- the whole mix ------------------------------------------------------- */

static void check_all(struct oracle *o, bool thoroughly)
{
	unsigned int i;

	oracle_stamp(o);
	oracle_read(o);
	oracle_flush(o);
	oracle_find_lost(o);
	for (i = 0; i < QUERIES; i++)
		oracle_query(o, random_below(o->nr_jobs));
	if (thoroughly)
		oracle_check_books(o);
}

static void fill(struct oracle *o)
{
	__u32 i;

	for (i = 0; i < first_request(o) && !part_is_hopeless(); i++) {
		oracle_arm(o, i, plan(o, i));
		if (i % ORACLE_BATCH && i + 1 < first_request(o))
			continue;
		oracle_flush(o);
		tw_sleep(TW_MS);
		oracle_stamp(o);
	}
}

static void empty(struct oracle *o)
{
	__u32 i;

	oracle_stamp(o);
	oracle_read(o);
	for (i = random_below(3); i < o->nr_jobs; i += 3)
		oracle_cancel(o, i);
	oracle_flush(o);
	tw_sleep(TW_MIN);
	check_all(o, true);
	oracle_drain(o);
}

static void print_result(const struct oracle *o)
{
	static const char * const clock[] = { "MONOTONIC", "BOOTTIME", "REALTIME", "TAI" };
	const char *name = clock[o->setup.clock - TWHEEL_CLOCK_MONOTONIC];

	printf("# %s, tick %llu us: %llu armed, %llu re-armed, ",
	       name, o->setup.tick_ns / TW_US, o->books.armed, o->books.rearmed);
	printf("%llu cancelled, %llu revoked, %llu drained\n", o->books.cancelled,
	       o->books.revoked, o->books.drained);
	printf("# %s: %llu events read, %llu expirations, at most %llu ns after their edge\n",
	       name, o->books.delivered, o->books.expirations, o->max_late_ns);
}

static bool begin(struct mix *m, const struct soak_options *options, __u32 pending)
{
	unsigned int i;

	m->refreshes = pending / 28000 + 1;
	for (i = 0; i < m->nr_wheels; i++) {
		struct oracle *o = &m->wheel[i];

		o->ended = renew;
		o->in_order = !m->steps;
		o->catch_up_ns = m->steps ? STEP_NOTICED_NS + pending * STEP_COST_NS : 0;
		/* Add a twentieth, for the requests. */
		if (!oracle_open(o, pending / 100 * m->share[i] * 21 / 20))
			return false;
		fill(o);
	}
	printf("# %u timeouts pending on %u wheels, seed %llu\n", pending, m->nr_wheels,
	       options->seed);
	return true;
}

static void end(struct mix *m)
{
	unsigned int i;

	for (i = 0; i < m->nr_wheels; i++) {
		if (m->wheel[i].job) {
			empty(&m->wheel[i]);
			print_result(&m->wheel[i]);
		}
		oracle_close(&m->wheel[i]);
	}
	part_end();
}

void soak_mix(const struct soak_options *options)
{
	static struct mix m = {
		.nr_wheels = 3,
		.share = { 60, 20, 20 },
		.wheel = {
			{ .setup = { .clock = TWHEEL_CLOCK_MONOTONIC, .tick_ns = TW_MS } },
			{ .setup = { .clock = TWHEEL_CLOCK_BOOTTIME, .tick_ns = 10 * TW_MS } },
			{ .setup = { .clock = TWHEEL_CLOCK_REALTIME, .tick_ns = TW_MS } },
		},
	};
	__u64 start_ns = tw_now(CLOCK_MONOTONIC);
	unsigned int i, rounds = 0, day = 1;

	part_begin("the_mix");
	if (begin(&m, options, options->pending)) {
		while (day <= options->days && !part_is_hopeless()) {
			one_round(&m);
			if (++rounds % 16 ||
			    tw_now(CLOCK_MONOTONIC) < start_ns + day * TW_DAY)
				continue;
			for (i = 0; i < m.nr_wheels; i++)
				check_all(&m.wheel[i], day % 8 == 0);
			if (day % 50 == 0)
				printf("# day %u of %u\n", day, options->days);
			day++;
		}
		printf("# %u days in %u rounds\n", day - 1, rounds);
	}
	end(&m);
}

void soak_steps(const struct soak_options *options)
{
	static struct mix m = {
		.nr_wheels = 2,
		.share = { 60, 40 },
		.steps = STEPS,
		.wheel = {
			{ .setup = { .clock = TWHEEL_CLOCK_REALTIME, .tick_ns = TW_MS } },
			{ .setup = { .clock = TWHEEL_CLOCK_TAI, .tick_ns = 10 * TW_MS,
				     .slots = 16 } },
		},
	};
	unsigned int i, rounds = 0;

	part_begin("a_clock_that_is_set");
	if (begin(&m, options, options->pending / 10)) {
		while (m.steps && !part_is_hopeless()) {
			one_round(&m);
			if (++rounds % 64)
				continue;
			for (i = 0; i < m.nr_wheels; i++)
				check_all(&m.wheel[i], true);
		}
		printf("# %u steps of the clock in %u rounds\n", STEPS - m.steps, rounds);
	}
	end(&m);
}
