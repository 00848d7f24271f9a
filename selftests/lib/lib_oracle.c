// SPDX-License-Identifier: GPL-2.0
/*
 * lib_oracle.c - a plain list that knows what libtwheel has to do
 *
 * A world is a wheel on the virtual clock beside an array of all timers.  Whatever is
 * asked of the library goes through here, and each callback is compared with what the
 * list says: a timer expires in the first tick at or after its deadline, rounded up to
 * a grain, neither before nor after it, once, and not after it was stopped.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib_oracle.h"

/* A timerfd that is set to the past becomes readable soon, not at once. */
#define PATIENCE_MS	15000

#define GUARD		0x5afe5afe5afe5afeULL

/* The world whose callbacks are called: one at a time. */
static struct world *here;

/* Time */

static u64 min64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u64 round_up_to(u64 ns, u64 unit_ns)
{
	return (ns + unit_ns - 1) / unit_ns * unit_ns;
}

static u64 later(u64 ns, u64 by_ns)
{
	return ns + by_ns < ns ? TWHEEL_TIME_NEVER : min64(ns + by_ns, TWHEEL_TIME_NEVER);
}

/* What twheel_timer_deadline() says. */
static u64 grain_of(const struct world *world, u64 deadline_ns)
{
	return min64(round_up_to(deadline_ns, world->grain_ns), TWHEEL_TIME_NEVER);
}

/* The end of time is never. */
static u64 edge_of(const struct world *world, u64 deadline_ns)
{
	u64 ns = grain_of(world, deadline_ns);

	if (ns >= TWHEEL_TIME_NEVER)
		return TWHEEL_NO_EXPIRY;
	ns = round_up_to(ns, world->edge_ns);
	return ns > TWHEEL_TIME_NEVER ? TWHEEL_NO_EXPIRY : ns;
}

static bool is_due(const struct world *world, const struct known *k)
{
	return k->deadline_ns < TWHEEL_TIME_NEVER && k->deadline_ns <= world->now_ns;
}

/* Whether it may come between two ticks: whatever has passed when it is armed. */
static bool is_of_no_tick(const struct known *k)
{
	return k->was_due || k->loose || k->far;
}

/* The first tick in which a pending timer has to come. */
static u64 first_edge(const struct world *world)
{
	u64 first = TWHEEL_NO_EXPIRY;
	u32 i;

	for (i = 0; i < world->shape.nr_things; i++)
		if (world->known[i].pending)
			first = min64(first, edge_of(world, world->known[i].deadline_ns));
	return first;
}

/* Objects */

static twheel_callback on_expiry;

/* Not by malloc(), which may be the library's turn to fail. */
static struct thing *thing_alloc(void)
{
	struct thing *thing = aligned_alloc(__alignof__(*thing), sizeof(*thing));

	if (!thing)
		die("out of memory");
	return thing;
}

static void thing_make(struct world *world, u32 nr)
{
	struct known *k = &world->known[nr];

	k->thing = thing_alloc();
	memset(k->thing, 0xa5, sizeof(*k->thing));
	k->thing->guard = GUARD;
	k->thing->nr = nr;
	twheel_timer_init(&k->thing->timer, on_expiry);
	CHECK(!twheel_timer_pending(&k->thing->timer), "at its beginning");
}

static void thing_free(struct known *k)
{
	memset(k->thing, 0x5a, sizeof(*k->thing));
	free(k->thing);
	k->thing = NULL;
}

/* Nobody needs it any more; or it is started again some day. */
static void let_go(struct known *k)
{
	k->pending = false;
	k->must = false;
	if (k->thing && below(4))
		thing_free(k);
}

/* What holds for one timer between any two calls. */
static void check_timer(const struct world *world, const struct known *k)
{
	u64 deadline_ns, expected_ns = TWHEEL_NO_EXPIRY;

	if (!k->thing) {
		CHECK(!k->pending, "the oracle's own mistake");
		return;
	}
	CHECK(twheel_timer_pending(&k->thing->timer) == k->pending, "timer %u: %d",
	      k->thing->nr, k->pending);
	deadline_ns = twheel_timer_deadline(world->w, &k->thing->timer);
	if (k->pending)
		expected_ns = grain_of(world, k->deadline_ns);
	/* What has passed is not rounded up. */
	if (k->pending && is_of_no_tick(k) && deadline_ns < expected_ns)
		expected_ns = k->deadline_ns / world->grain_ns * world->grain_ns;
	CHECK(deadline_ns == expected_ns, "timer %u: %llu, not %llu", k->thing->nr,
	      (unsigned long long)deadline_ns, (unsigned long long)expected_ns);
}

/* Starting and stopping */

static void started(struct world *world, struct known *k, u64 deadline_ns, u64 interval_ns)
{
	if (!k->pending)
		world->nr_pending++;
	k->pending = true;
	k->deadline_ns = deadline_ns;
	k->interval_ns = interval_ns;
	k->started_in = world->dispatch;
	k->was_due = is_due(world, k);
	k->loose = world->undispatched || world->in_advance;
	k->far = deadline_ns > later(world->now_ns, world->grain_ns << 34);
	k->must = false;
	world->starts++;
}

static u64 random_ns(const struct world *world)
{
	u64 ns, exponent;

	switch (below(16)) {
	case 0:
		return 0;
	case 1:
		return below(2 * world->shape.tick_ns);
	case 2:
		return below(16) * world->shape.tick_ns;
	case 3:
		/* Where many go. */
		return 100 * world->shape.tick_ns;
	case 4:
		switch (below(4)) {
		case 0:
			return rnd();
		case 1:
			return TWHEEL_TIME_NEVER - below(3);
		case 2:
			return TWHEEL_TIME_NEVER + 1 + below(3);
		default:
			return UINT64_MAX - below(3);
		}
	default:
		exponent = below(world->shape.exponent + 1);
		ns = below(1ULL << exponent);
		if (ns >= TWHEEL_TIME_NEVER / world->shape.tick_ns)
			return TWHEEL_TIME_NEVER;
		return ns * world->shape.tick_ns + below(world->shape.tick_ns);
	}
}

/* A deadline that has to do with the one there is, or with the past. */
static u64 random_deadline(const struct world *world, const struct known *k)
{
	switch (below(8)) {
	case 0:
		return below(world->now_ns + 1);
	case 1:
		return k->pending ? k->deadline_ns : world->now_ns;
	case 2:
		return k->pending && k->deadline_ns ? k->deadline_ns - 1 : 0;
	case 3:
		return k->pending ? later(k->deadline_ns, 1 + below(world->shape.tick_ns)) : 1;
	case 4:
		return k->pending ? below(k->deadline_ns + 1) : world->now_ns + 1;
	default:
		return later(world->now_ns, random_ns(world));
	}
}

static void start_periodic(struct world *world, struct known *k)
{
	struct twheel_timer *t = &k->thing->timer;
	u64 ns, interval_ns = random_ns(world), raised_ns = interval_ns;

	/* Some that never end otherwise. */
	if (raised_ns < world->shape.tick_ns)
		raised_ns = world->shape.tick_ns;
	if (!below(3)) {
		twheel_start_every(world->w, t, interval_ns);
		k->fixed_delay = false;
		started(world, k, later(world->now_ns, raised_ns), raised_ns);
		return;
	}
	ns = random_deadline(world, k);
	k->fixed_delay = below(2);
	twheel_start_periodic(world->w, t, ns, interval_ns,
			      k->fixed_delay ? TWHEEL_FIXED_DELAY : 0);
	started(world, k, min64(ns, TWHEEL_TIME_NEVER), raised_ns);
}

static void start(struct world *world, u32 nr)
{
	struct known *k = &world->known[nr];
	u64 ns;

	if (!k->thing)
		thing_make(world, nr);
	check_timer(world, k);
	switch (below(8)) {
	case 0:
		start_periodic(world, k);
		break;
	case 1:
	case 2:
	case 3:
		ns = random_deadline(world, k);
		twheel_start_at(world->w, &k->thing->timer, ns);
		started(world, k, min64(ns, TWHEEL_TIME_NEVER), 0);
		break;
	default:
		ns = random_ns(world);
		twheel_start(world->w, &k->thing->timer, ns);
		started(world, k, later(world->now_ns, ns), 0);
	}
	check_timer(world, k);
}

static void stop(struct world *world, u32 nr)
{
	struct known *k = &world->known[nr];
	bool was;

	if (!k->thing)
		return;
	was = twheel_stop(world->w, &k->thing->timer);
	CHECK(was == k->pending, "timer %u: %d", nr, was);
	CHECK(!twheel_stop(world->w, &k->thing->timer), "twice");
	world->nr_pending -= was;
	k->pending = false;
	check_timer(world, k);
	let_go(k);
}

/* Where it was, nobody may look again. */
static void move(struct world *world, u32 nr)
{
	struct known *k = &world->known[nr];
	struct thing *thing;

	if (!k->thing)
		return;
	thing = thing_alloc();
	memcpy(thing, k->thing, sizeof(*thing));
	twheel_timer_move(world->w, &thing->timer, &k->thing->timer);
	thing_free(k);
	k->thing = thing;
	check_timer(world, k);
}

static u32 random_thing(const struct world *world)
{
	/* Some are touched again and again. */
	return below(below(2) ? world->shape.nr_things : min64(8, world->shape.nr_things));
}

static void random_touch(struct world *world)
{
	u32 nr = random_thing(world);

	switch (below(8)) {
	case 0:
	case 1:
	case 2:
		stop(world, nr);
		break;
	case 3:
		move(world, nr);
		break;
	default:
		start(world, nr);
	}
}

/* Many at once, of one length; as many stops as starts in the long run. */
static void burst(struct world *world)
{
	u64 ns = random_ns(world);
	u32 i, nr = below(world->shape.nr_things), first = below(world->shape.nr_things);
	bool starts = below(2);

	for (i = 0; i < nr; i++) {
		u32 at = (first + i) % world->shape.nr_things;
		struct known *k = &world->known[at];

		if (!starts) {
			stop(world, at);
			continue;
		}
		if (!k->thing)
			thing_make(world, at);
		twheel_start(world->w, &k->thing->timer, ns);
		started(world, k, later(world->now_ns, ns), 0);
	}
}

/* Callbacks */

/* How many periods have passed, and when the next one ends. */
static void expire_periodic(struct world *world, struct known *k)
{
	u32 count = twheel_timer_count(&k->thing->timer);
	u64 last_ns, nr = (world->now_ns - k->deadline_ns) / k->interval_ns + 1;

	CHECK(count >= 1, "timer %u", k->thing->nr);
	CHECK(twheel_timer_pending(&k->thing->timer), "timer %u", k->thing->nr);
	if (k->fixed_delay) {
		CHECK(count == 1, "%u", count);
		started(world, k, later(world->now_ns, k->interval_ns), k->interval_ns);
		return;
	}
	/* A period whose end is in the tick that is under way may wait for the next. */
	if (count == UINT32_MAX && nr > UINT32_MAX)
		last_ns = k->deadline_ns + (nr - 1) * k->interval_ns;
	else
		last_ns = k->deadline_ns + (u64)(count - 1) * k->interval_ns;
	CHECK(last_ns <= world->now_ns, "timer %u counts %u, not %llu", k->thing->nr, count,
	      (unsigned long long)nr);
	started(world, k, later(last_ns, k->interval_ns), k->interval_ns);
	CHECK(edge_of(world, k->deadline_ns) > world->now_ns, "timer %u counts %u, not %llu",
	      k->thing->nr, count, (unsigned long long)nr);
	check_timer(world, k);
}

static void expire(struct world *world, struct known *k)
{
	u64 edge_ns = edge_of(world, k->deadline_ns);

	CHECK(world->dispatch, "not in a dispatch");
	CHECK(is_due(world, k), "early: %llu, it is %llu", (unsigned long long)k->deadline_ns,
	      (unsigned long long)world->now_ns);
	CHECK(is_of_no_tick(k) || edge_ns <= world->now_ns,
	      "before its tick: %llu, it is %llu", (unsigned long long)edge_ns,
	      (unsigned long long)world->now_ns);
	CHECK(k->started_in != world->dispatch, "started in this dispatch");
	world->called++;
	world->all_called++;
	if (k->interval_ns) {
		expire_periodic(world, k);
		return;
	}
	world->nr_pending--;
	k->pending = false;
	k->must = false;
}

static void refuse(struct world *world, struct known *k, int status)
{
	CHECK(world->in_flush, "not in a flush");
	CHECK(status == -EAGAIN || (status == -ENOMEM && world->shape.may_lack_memory),
	      "%d", status);
	world->refused++;
	world->all_refused++;
	world->nr_pending--;
	k->pending = false;
	k->must = false;
}

static void on_expiry(struct twheel *w, struct twheel_timer *t, int status)
{
	struct thing *thing = twheel_container_of(t, struct thing, timer);
	struct world *world = here;
	struct known *k;
	u32 nr;

	CHECK(w == world->w, "another wheel");
	CHECK(thing->guard == GUARD, "not an object");
	nr = thing->nr;
	CHECK(nr < world->shape.nr_things, "%u", nr);
	k = &world->known[nr];
	CHECK(k->thing == thing, "an object of the past");
	CHECK(k->pending, "timer %u is not pending, status %d", nr, status);
	CHECK(twheel_now(w) == world->now_ns, "the time in a callback");
	if (status)
		refuse(world, k, status);
	else
		expire(world, k);
	check_timer(world, k);
	/* Whatever callbacks do: with this one, with others, with those that come next. */
	while (!world->in_drain && !below(3)) {
		random_touch(world);
		world->touched = true;
	}
	if (!k->pending)
		let_go(k);
	else if (k->interval_ns && (world->in_drain || !below(3)))
		stop(world, nr);
}

/* Calls that call back */

static void flush_begin(struct world *world)
{
	u32 i;

	world->in_flush = true;
	world->refused = 0;
	/* The event of what is due comes soon, and its place may be another's by then. */
	for (i = 0; i < world->shape.nr_things; i++)
		if (world->known[i].pending && is_due(world, &world->known[i]))
			world->unsettled = true;
	if (world->unsettled)
		world->undispatched = true;
}

/* No timer is refused while there is room, and there is never more than room for. */
static void flush_end(struct world *world, u32 pending_before)
{
	u32 max = world->shape.max_timers;

	world->in_flush = false;
	if (world->shape.may_lack_memory)
		return;
	CHECK(world->refused <= (pending_before > max ? pending_before - max : 0),
	      "%u of %u refused, there is room for %u", world->refused, pending_before, max);
}

static void flush(struct world *world)
{
	u32 before = world->nr_pending;
	unsigned int refused;

	flush_begin(world);
	refused = twheel_flush(world->w);
	CHECK(refused == world->refused, "%u, not %u", refused, world->refused);
	flush_end(world, before);
}

static void advance(struct world *world, u64 to_ns)
{
	u32 i, before = world->nr_pending;
	bool unread;
	int ret;

	/*
	 * Refused ones are told of before the clock moves: what their callbacks start is
	 * relative to the old time, and is armed later.
	 */
	flush(world);
	flush_begin(world);
	unread = world->undispatched;
	before = world->nr_pending;
	world->in_advance = true;
	ret = twheel_advance(world->w, to_ns);
	world->in_advance = false;
	CHECK(!ret, "%d", ret);
	flush_end(world, before);
	world->now_ns = to_ns;
	world->undispatched = true;
	world->unsettled = false;
	for (i = 0; i < world->shape.nr_things; i++) {
		struct known *k = &world->known[i];

		if (k->pending && !k->loose && !(k->far && unread) &&
		    edge_of(world, k->deadline_ns) <= to_ns)
			k->must = true;
	}
	CHECK(twheel_now(world->w) == to_ns, "it is another time");
	if (to_ns)
		CHECK(twheel_advance(world->w, to_ns - 1) == -EINVAL, "back");
}

static bool is_readable(const struct world *world)
{
	struct pollfd pfd = { .fd = twheel_fd(world->w), .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static u64 monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/*
 * When its time is up, poll() looks once more.  What it finds only then has woken nobody,
 * and does not count.
 */
static bool becomes_readable(const struct world *world)
{
	struct pollfd pfd = { .fd = twheel_fd(world->w), .events = POLLIN };
	u64 begin_ns = monotonic_ns();

	return poll(&pfd, 1, PATIENCE_MS) == 1 &&
	       monotonic_ns() - begin_ns < PATIENCE_MS * 1000000ULL;
}

/* What had to come has come; and what was loose is not so any more. */
static void dispatched_all(struct world *world)
{
	u32 i;

	for (i = 0; i < world->shape.nr_things; i++) {
		struct known *k = &world->known[i];

		CHECK(!k->must, "timer %u has not come: %llu, it is %llu", i,
		      (unsigned long long)k->deadline_ns, (unsigned long long)world->now_ns);
		if (k->loose && is_due(world, k))
			k->was_due = true;
		k->loose = world->unsettled;
	}
	/* The kernel may still be about to expire what was due when it was armed. */
	world->undispatched = world->unsettled;
	CHECK(world->unsettled || !is_readable(world), "nothing is left");
}

static void dispatch(struct world *world, unsigned int max)
{
	u32 i;
	int ret;

	world->dispatch = ++world->nr_dispatches;
	world->called = 0;
	world->touched = false;
	ret = twheel_dispatch(world->w, max);
	world->dispatch = 0;
	CHECK(ret >= 0 && (u32)ret == world->called, "%d, not %u", ret, world->called);
	CHECK(!max || (u32)ret <= max, "%d, not %u", ret, max);
	/* The descriptor could not be read. */
	if (world->shape.may_lack_memory && is_readable(world))
		return;
	/* A callback that stops others leaves fewer than were to be called. */
	if (!max || ((u32)ret < max && (!ret || !world->touched))) {
		dispatched_all(world);
		return;
	}
	for (i = 0; i < world->shape.nr_things; i++)
		CHECK(!world->known[i].must || becomes_readable(world),
		      "timer %u is left", i);
}

/* It may be too early, for a parked place, but never too late. */
static u64 next(struct world *world)
{
	struct twheel_stats stats;
	u32 before;
	u64 ns;

	flush(world);
	before = world->nr_pending;
	flush_begin(world);
	ns = twheel_next(world->w);
	flush_end(world, before);
	twheel_stats(world->w, &stats, sizeof(stats));
	if (!stats.noted)
		CHECK(ns <= first_edge(world) || ns <= world->now_ns, "%llu, not %llu",
		      (unsigned long long)ns, (unsigned long long)first_edge(world));
	if (!stats.places && !world->undispatched)
		CHECK(ns == TWHEEL_NO_EXPIRY, "%llu", (unsigned long long)ns);
	return ns;
}

/* What holds between any two steps */

static void check_world(struct world *world, bool flushed)
{
	const struct shape *shape = &world->shape;
	struct twheel_stats stats;
	u64 owned;
	u32 i;

	memset(&stats, 0xa5, sizeof(stats));
	twheel_stats(world->w, &stats, sizeof(stats));
	CHECK(stats.tick_ns == shape->tick_ns, "tick");
	CHECK(stats.backend == shape->backend, "backend");
	CHECK(stats.clock == TWHEEL_CLOCK_VIRTUAL, "clock");
	CHECK(1ULL << stats.grain_shift == world->grain_ns, "grain");
	CHECK(stats.max_timers == shape->max_timers, "max_timers");
	CHECK(stats.expired == world->all_called, "expired %llu, not %llu",
	      (unsigned long long)stats.expired, (unsigned long long)world->all_called);
	CHECK(stats.refused == world->all_refused, "refused");
	CHECK(stats.parked <= stats.places, "parked");
	owned = stats.places - stats.parked;
	/* Before a flush, some places may wait to be cancelled. */
	CHECK(owned + stats.noted >= world->nr_pending, "%llu places, %llu parked, %llu noted, %u pending",
	      (unsigned long long)stats.places, (unsigned long long)stats.parked,
	      (unsigned long long)stats.noted, world->nr_pending);
	CHECK(stats.places <= shape->max_timers, "%llu", (unsigned long long)stats.places);
	if (flushed && !world->refused) {
		CHECK(!stats.noted, "%llu noted", (unsigned long long)stats.noted);
		CHECK(owned == world->nr_pending || shape->may_lack_memory, "%llu places, %llu parked, %u pending",
		      (unsigned long long)stats.places, (unsigned long long)stats.parked,
		      world->nr_pending);
	}
	for (i = 0; i < shape->nr_things; i++)
		check_timer(world, &world->known[i]);
	CHECK(twheel_now(world->w) == world->now_ns, "the time");
}

/* Worlds */

struct shape random_shape(u32 backend)
{
	static const u64 ticks[] = {
		1000000, 1000, 1024, 1500, 999999, 1000003, 65536, 4194304, 3600000000000ULL,
	};
	static const u32 maxes[] = { 1, 7, 100, 300, 1000, 1 << 20 };
	static const u32 sizes[] = { 3, 20, 150, 700, MAX_THINGS };
	struct shape shape = {
		.backend = backend,
		.tick_ns = ticks[below(ARRAY_SIZE(ticks))],
		.max_timers = maxes[below(2) ? ARRAY_SIZE(maxes) - 1 : below(ARRAY_SIZE(maxes))],
		.nr_things = sizes[below(ARRAY_SIZE(sizes))],
		.exponent = below(2) ? 10 : 1 + below(50),
	};

	if (!below(3))
		shape.slack_ns = below(below(2) ? 40 : 40000) * shape.tick_ns +
				 below(shape.tick_ns);
	return shape;
}

struct world *world_make(const struct shape *shape)
{
	const struct twheel_options options = {
		.size = sizeof(options),
		.backend = shape->backend,
		.clock = TWHEEL_CLOCK_VIRTUAL,
		.max_timers = shape->max_timers,
		.tick_ns = shape->tick_ns,
		.slack_ns = shape->slack_ns,
	};
	struct world *world = calloc(1, sizeof(*world));
	u64 ticks = shape->slack_ns / shape->tick_ns;
	int k = 0, ret;

	if (!world)
		die("out of memory");
	world->shape = *shape;
	here = world;
	while (k < 15 && (2ULL << k) - 1 <= ticks)
		k++;
	world->edge_ns = shape->tick_ns << k;
	world->grain_ns = 1ULL << (63 - __builtin_clzll(shape->tick_ns));
	ret = twheel_open(&world->w, &options);
	CHECK(!ret, "%d", ret);
	CHECK(twheel_backend(world->w) == shape->backend, "backend");
	check_world(world, false);
	return world;
}

/* Timers that are pending are the caller's again, and are not touched. */
void world_free(struct world *world)
{
	u32 i;

	if (below(2)) {
		for (i = 0; i < world->shape.nr_things; i++)
			if (world->known[i].thing)
				thing_free(&world->known[i]);
		twheel_close(world->w);
	} else {
		twheel_close(world->w);
		for (i = 0; i < world->shape.nr_things; i++)
			if (world->known[i].thing)
				thing_free(&world->known[i]);
	}
	free(world);
}

/* Somewhere, or just before or just at the next edge there is. */
static void random_advance(struct world *world)
{
	u64 to_ns = later(world->now_ns, random_ns(world));
	u64 first = first_edge(world);

	/* Time ends only once in a while. */
	if (to_ns > TWHEEL_TIME_NEVER / 2 && below(64))
		to_ns = world->now_ns;
	if (first && first != TWHEEL_NO_EXPIRY && below(2))
		to_ns = first - below(2);
	if (to_ns < world->now_ns || !below(8))
		to_ns = world->now_ns;
	advance(world, to_ns);
}

void world_step(struct world *world)
{
	bool flushed = false;

	world->steps++;
	switch (below(16)) {
	case 0:
		burst(world);
		break;
	case 1:
	case 2:
		flush(world);
		flushed = true;
		break;
	case 3:
	case 4:
	case 5:
		random_advance(world);
		break;
	case 6:
	case 7:
		dispatch(world, 0);
		break;
	case 8:
		dispatch(world, 1 + below(below(2) ? 4 : 300));
		break;
	case 9:
		next(world);
		break;
	case 10:
		CHECK(twheel_update(world->w) == world->now_ns, "the time");
		break;
	default:
		random_touch(world);
	}
	check_world(world, flushed);
}

/*
 * Goes from one expiry to the next as twheel_next() says, until nothing is left: no
 * more often than there are timers, places, and words that have moved since.
 */
void world_drain(struct world *world)
{
	struct twheel_stats stats;
	u64 ns, limit;
	u32 i;

	world->in_drain = true;
	for (i = 0; i < world->shape.nr_things; i++)
		if (edge_of(world, world->known[i].deadline_ns) == TWHEEL_NO_EXPIRY)
			stop(world, i);
	twheel_stats(world->w, &stats, sizeof(stats));
	limit = 20 * (stats.places + stats.noted) + 1000;
	for (; limit && world->nr_pending; limit--) {
		ns = next(world);
		CHECK(ns != TWHEEL_NO_EXPIRY || !world->nr_pending, "%u are left",
		      world->nr_pending);
		if (ns == TWHEEL_NO_EXPIRY)
			break;
		advance(world, ns < world->now_ns ? world->now_ns : ns);
		dispatch(world, 0);
		check_world(world, false);
	}
	CHECK(!world->nr_pending, "%u are left", world->nr_pending);
	world->in_drain = false;
}
