// SPDX-License-Identifier: GPL-2.0
/*
 * lib_oracle.c - a plain array that knows how libtwheel has to behave
 *
 * A world is a wheel on the caller's clock beside an array of all timers.  All calls of the library
 * go through here, and each callback is compared with the array:  a timer expires once, not before
 * its deadline, in the first dispatch at or after the edge of its tick that is not cut off, in the
 * order that the header promises, and not after it was stopped.
 *
 * Due timers are called in turns of the wheel.  A dispatch begins a turn, unless something is left
 * of the one before: a limit has ended the dispatch, or it is in a callback.  If a timer becomes
 * due during a turn, it has to wait for the next one.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "lib_oracle.h"

/* If a timerfd is set to the past, it becomes readable soon, not at once. */
#define PATIENCE_MS	15000
/* If a dispatch has moved this many timers, it may return with some left. */
#define BUDGET		4096
/* If a slot has more timers than this, the first one is not searched for. */
#define FEW		32

/* For any POSIX system, the library works by time alone. */
#ifdef TWHEEL_POSIX
#define HAS_DESCRIPTOR	false
#else
#define HAS_DESCRIPTOR	true
#endif

#define GUARD		0x5afe5afe5afe5afeULL

/* The world whose callbacks are called: one at a time. */
static struct world *here;

static void dispatch(struct world *world, unsigned int max);
static void advance(struct world *world, u64 to_ns);

/* ---- time ------------------------------------------------------------------ */

static u64 min64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u64 later(u64 ns, u64 by_ns)
{
	return by_ns >= END_NS - ns ? END_NS : ns + by_ns;
}

/* When the wheel has to wake up for a deadline; if that is beyond all time, TWHEEL_NEVER. */
static u64 edge_of(const struct world *world, u64 deadline_ns)
{
	u64 ns;

	if (deadline_ns >= END_NS)
		return TWHEEL_NEVER;
	ns = deadline_ns + world->edge_ns - 1;
	ns -= ns % world->edge_ns;
	return ns >= END_NS ? TWHEEL_NEVER : ns;
}

static bool is_due(const struct world *world, const struct known *k)
{
	return k->pending && (k->passed || edge_of(world, k->deadline_ns) <= world->now_ns);
}

/* The time at which the loop has to wake up. */
static u64 true_next(const struct world *world)
{
	u64 first = TWHEEL_NEVER;
	u32 i;

	for (i = 0; i < world->shape.nr_things; i++) {
		const struct known *k = &world->known[i];

		if (is_due(world, k))
			return world->now_ns;
		if (k->pending)
			first = min64(first, edge_of(world, k->deadline_ns));
	}
	return first;
}

/* ---- objects --------------------------------------------------------------- */

static twheel_callback on_expiry;

static struct thing *thing_alloc(void)
{
	struct thing *thing = malloc(sizeof(*thing));

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
	if (below(2))
		twheel_timer_init(&k->thing->timer, on_expiry);
	else
		plain_init(&k->thing->timer, on_expiry);
	CHECK(!twheel_timer_pending(&k->thing->timer), "at its beginning");
}

static void thing_free(struct known *k)
{
	memset(k->thing, 0x5a, sizeof(*k->thing));
	free(k->thing);
	k->thing = NULL;
}

static void idle(struct known *k)
{
	k->pending = false;
	k->passed = false;
	k->loose = false;
	k->running = false;
	k->due = 0;
	k->reached = 0;
}

/* A timer has ended: free its object, or keep it to be started again. */
static void let_go(struct world *world, struct known *k)
{
	world->nr_pending -= k->pending;
	idle(k);
	if (k->thing && below(4) == 0)
		thing_free(k);
}

/* Check the rules that hold for a timer between any two calls. */
static void check_timer(const struct known *k)
{
	u64 ns;

	if (!k->thing) {
		CHECK(!k->pending, "the oracle's own mistake");
		return;
	}
	CHECK(twheel_timer_pending(&k->thing->timer) == k->pending, "timer %u: %d",
	      k->thing->nr, k->pending);
	ns = k->pending && k->deadline_ns < END_NS ? k->deadline_ns : TWHEEL_NEVER;
	/* It waits to be stopped by twheel_stop_all(). */
	if (k->start < here->stopping)
		ns = TWHEEL_NEVER;
	CHECK(twheel_timer_deadline(&k->thing->timer) == ns, "timer %u: %llu, not %llu",
	      k->thing->nr, (unsigned long long)twheel_timer_deadline(&k->thing->timer),
	      (unsigned long long)ns);
}

/* ---- start and stop -------------------------------------------------------- */

/* If a timer will be stopped or restarted, the wheel may not know the first one any more. */
static void note_stale(struct world *world, const struct known *k)
{
	const struct known *other;
	u32 i;

	if (!k->pending || world->stale)
		return;
	for (i = 0; i < world->shape.nr_things; i++) {
		other = &world->known[i];
		/* If a deadline has passed, the timer is in no slot. */
		if (other->pending && !other->passed && !other->loose &&
		    other->deadline_ns < k->deadline_ns)
			return;
	}
	world->stale = true;
}

static void started(struct world *world, struct known *k, u64 deadline_ns, u64 interval_ns)
{
	/* If a periodic timer whose deadline is not 0 becomes a one-shot, it leaves its list. */
	bool was_loose = (k->passed || k->loose) && (!k->interval_ns || !k->deadline_ns);

	note_stale(world, k);
	deadline_ns = min64(deadline_ns, END_NS);
	/* If a periodic timer has the last nanosecond, that is never. */
	if (interval_ns && deadline_ns == END_NS - 1)
		deadline_ns = END_NS;
	world->nr_pending += !k->pending;
	world->starts++;
	k->start = ++world->event;
	k->pending = true;
	k->running = false;
	k->passed = deadline_ns <= world->now_ns;
	world->had_passed |= k->passed;
	k->loose = was_loose && !interval_ns && !k->passed && deadline_ns < END_NS &&
		deadline_ns >= k->deadline_ns;
	k->due = k->passed ? k->start : 0;
	k->reached = k->due;
	k->deadline_ns = deadline_ns;
	k->interval_ns = interval_ns;
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
		/* Many timers get this length. */
		return 100 * world->shape.tick_ns;
	case 4:
		switch (below(4)) {
		case 0:
			return rnd();
		case 1:
			return END_NS - below(3);
		case 2:
			return END_NS + 1 + below(3);
		default:
			return UINT64_MAX - below(3);
		}
	case 5:
		/* The beginning of a slot, if the tick is a power of two. */
		exponent = below(world->shape.exponent + 1);
		ns = (world->now_ns / world->shape.tick_ns >> exponent) + 1 + below(3);
		if (ns >= END_NS / world->shape.tick_ns >> exponent)
			return END_NS;
		return (ns << exponent) * world->shape.tick_ns - world->now_ns;
	default:
		exponent = below(world->shape.exponent + 1);
		ns = below(1ULL << exponent);
		if (ns >= END_NS / world->shape.tick_ns)
			return END_NS;
		return ns * world->shape.tick_ns + below(world->shape.tick_ns);
	}
}

/* Return a deadline near the present one, or in the past. */
static u64 random_deadline(const struct world *world, const struct known *k)
{
	u64 ns = k->pending ? k->deadline_ns : world->now_ns;

	switch (below(8)) {
	case 0:
		return below(world->now_ns + 1);
	case 1:
		return ns;
	case 2:
		/* Return the edge before, or a time just after it. */
		if (below(2))
			return ns - ns % world->edge_ns + below(2);
		return ns ? ns - 1 : 0;
	case 3:
		return later(ns, 1 + below(world->shape.tick_ns));
	case 4:
		return below(ns + 1);
	default:
		return later(world->now_ns, random_ns(world));
	}
}

static void start_periodic(struct world *world, struct known *k)
{
	struct twheel_timer *t = &k->thing->timer;
	u64 ns, interval_ns = random_ns(world), raised_ns = interval_ns;

	if (raised_ns < world->shape.tick_ns)
		raised_ns = world->shape.tick_ns;
	raised_ns = min64(raised_ns, END_NS - 2);
	if (!below(3)) {
		twheel_start_every(world->w, t, interval_ns);
		k->fixed_delay = false;
		ns = interval_ns < world->shape.tick_ns ? world->shape.tick_ns : interval_ns;
		started(world, k, later(world->now_ns, ns), raised_ns);
		return;
	}
	ns = random_deadline(world, k);
	k->fixed_delay = below(2);
	twheel_start_periodic(world->w, t, ns, interval_ns,
			      k->fixed_delay ? TWHEEL_FIXED_DELAY : 0);
	started(world, k, ns, raised_ns);
}

static void start(struct world *world, u32 nr)
{
	struct known *k = &world->known[nr];
	u64 ns;

	if (!k->thing)
		thing_make(world, nr);
	check_timer(k);
	switch (below(8)) {
	case 0:
		start_periodic(world, k);
		break;
	case 1:
	case 2:
	case 3:
		ns = random_deadline(world, k);
		if (below(2))
			twheel_start_at(world->w, &k->thing->timer, ns);
		else
			plain_start_at(world->w, &k->thing->timer, ns);
		started(world, k, ns, 0);
		break;
	default:
		ns = random_ns(world);
		if (below(2))
			twheel_start(world->w, &k->thing->timer, ns);
		else
			plain_start(world->w, &k->thing->timer, ns);
		started(world, k, later(world->now_ns, ns), 0);
	}
	check_timer(k);
}

static bool stop_somehow(struct world *world, struct twheel_timer *t)
{
	switch (below(3)) {
	case 0:
		return twheel_stop(world->w, t);
	case 1:
		return twheel_stop_sync(world->w, t);
	default:
		return plain_stop(world->w, t);
	}
}

static void stop(struct world *world, u32 nr)
{
	struct known *k = &world->known[nr];
	bool was;

	if (!k->thing)
		return;
	note_stale(world, k);
	was = stop_somehow(world, &k->thing->timer);
	CHECK(was == k->pending, "timer %u: %d", nr, was);
	CHECK(!stop_somehow(world, &k->thing->timer), "twice");
	let_go(world, k);
	check_timer(k);
}

/* The old place is idle now; its memory is freed, or used again. */
static void move(struct world *world, u32 nr)
{
	struct known *k = &world->known[nr];
	struct thing *thing;

	if (!k->thing)
		return;
	if (!below(4)) {
		twheel_timer_move(world->w, &k->thing->timer, &k->thing->timer);
		check_timer(k);
		return;
	}
	thing = thing_alloc();
	memcpy(thing, k->thing, sizeof(*thing));
	memset(&thing->timer, 0xa5, sizeof(thing->timer));
	twheel_timer_move(world->w, &thing->timer, &k->thing->timer);
	CHECK(!twheel_timer_pending(&k->thing->timer), "timer %u pends twice", nr);
	CHECK(!twheel_stop(world->w, &k->thing->timer), "timer %u pends twice", nr);
	thing_free(k);
	k->thing = thing;
	check_timer(k);
}

static u32 random_thing(const struct world *world)
{
	/* Touch some timers again and again. */
	return below(below(2) ? world->shape.nr_things : min64(8, world->shape.nr_things));
}

static void touch(struct world *world, u32 nr)
{
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

/* Start or stop many of one length at once; in the long run there are as many stops as starts. */
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

/* ---- callbacks ------------------------------------------------------------- */

/* Return whether it has to be called in this turn. */
static bool is_left_one(const struct world *world, const struct known *k)
{
	return k->pending && k->due && k->due <= world->turn;
}

static const struct known *left_one(const struct world *world)
{
	u32 i;

	for (i = 0; i < world->shape.nr_things; i++)
		if (is_left_one(world, &world->known[i]))
			return &world->known[i];
	return NULL;
}

/* If the dispatch has begun another turn, this callback shows that. */
static void check_turn(struct world *world, const struct known *k)
{
	u64 since = k->loose ? k->reached : k->due;

	CHECK(since, "timer %u is called before its edge: %llu, it is %llu", k->thing->nr,
	      (unsigned long long)k->deadline_ns, (unsigned long long)world->now_ns);
	if (since <= world->turn)
		return;
	CHECK(since <= world->turn_most, "timer %u became due in this turn", k->thing->nr);
	CHECK(!left_one(world), "timer %u comes before timer %u, which was due before",
	      k->thing->nr, left_one(world)->thing->nr);
	world->turn = world->turn_most;
}

/* Check that no timer that has to be called before this one still waits. */
static void check_order(const struct world *world, const struct known *k)
{
	u32 i;

	if (k->loose || k->running)
		return;
	for (i = 0; i < world->shape.nr_things; i++) {
		const struct known *other = &world->known[i];

		if (other == k || !is_left_one(world, other) || other->loose || other->running)
			continue;
		if (!k->passed) {
			CHECK(other->passed || later(other->deadline_ns,
						     world->shape.tick_ns) > k->deadline_ns,
			      "timer %u is earlier than timer %u", i, k->thing->nr);
			continue;
		}
		CHECK(other->passed, "timer %u comes before timer %u, which had not passed",
		      k->thing->nr, i);
		CHECK(other->start > k->start, "timer %u had passed before timer %u", i,
		      k->thing->nr);
	}
}

/* Return how many periods have passed; the next one ends later. */
static u64 expire_periodic(struct world *world, struct known *k)
{
	u64 count;

	if (k->fixed_delay) {
		started(world, k, min64(later(world->now_ns, k->interval_ns), END_NS - 2),
			k->interval_ns);
		k->running = true;
		/* At the end of time its deadline is before the present. */
		k->passed = false;
		k->due = 0;
		return 1;
	}
	count = (world->now_ns - k->deadline_ns) / k->interval_ns + 1;
	started(world, k, later(k->deadline_ns, count > END_NS / k->interval_ns ? END_NS :
				count * k->interval_ns), k->interval_ns);
	return count;
}

/* Return for how many periods it is called. */
static u64 expire(struct world *world, struct known *k)
{
	u64 late_ns = world->now_ns - k->deadline_ns;

	CHECK(world->depth, "not in a dispatch");
	CHECK(k->deadline_ns <= world->now_ns, "early: %llu, it is %llu",
	      (unsigned long long)k->deadline_ns, (unsigned long long)world->now_ns);
	check_turn(world, k);
	check_order(world, k);
	world->called++;
	world->all_called++;
	world->late[late_ns ? 64 - __builtin_clzll(late_ns) : 0]++;
	if (k->interval_ns)
		return expire_periodic(world, k);
	world->nr_pending--;
	idle(k);
	return 1;
}

/*
 * A fixed delay begins when the callback returns.  If a dispatch in the callback has found the
 * timer due, it is left for the next one.
 */
static void end_fixed_delay(struct world *world, struct known *k)
{
	if (k->due && (k->due <= world->turn ||
		       (k->due <= world->turn_most &&
			twheel_timer_deadline(&k->thing->timer) == k->deadline_ns))) {
		k->running = false;
		k->loose = true;
		return;
	}
	started(world, k, later(world->now_ns, k->interval_ns), k->interval_ns);
}

static void act(struct world *world, u32 nr)
{
	switch (below(16)) {
	case 0:
		if (world->depth < 4)
			dispatch(world, below(3));
		break;
	case 1:
		advance(world, min64(later(world->now_ns, below(4 * world->shape.tick_ns)),
				     END_NS - 2));
		break;
	case 2:
		touch(world, nr);
		break;
	default:
		touch(world, random_thing(world));
	}
}

static void on_expiry(struct twheel *w, struct twheel_timer *t)
{
	struct thing *thing = twheel_container_of(t, struct thing, timer);
	struct world *world = here;
	u64 start, periods;
	struct known *k;
	u32 nr;

	CHECK(w == world->w, "another wheel");
	CHECK(thing->guard == GUARD, "not an object");
	nr = thing->nr;
	CHECK(nr < world->shape.nr_things, "%u", nr);
	k = &world->known[nr];
	CHECK(k->thing == thing, "an object of the past");
	CHECK(k->pending, "timer %u does not pend", nr);
	CHECK(twheel_now(w) == world->now_ns, "the time in a callback");
	periods = expire(world, k);
	CHECK(twheel_periods(w) == periods, "timer %u: %llu periods, not %llu", nr,
	      (unsigned long long)twheel_periods(w), (unsigned long long)periods);
	check_timer(k);
	start = k->start;
	/* Callbacks touch this timer, others, and those that come next. */
	while (!world->in_drain && !below(3))
		act(world, nr);
	CHECK(twheel_periods(w) == periods, "timer %u: %llu periods at the end, not %llu", nr,
	      (unsigned long long)twheel_periods(w), (unsigned long long)periods);
	if (k->start != start)
		return;
	if (!k->pending)
		let_go(world, k);
	else if (world->in_drain || !below(3))
		stop(world, nr);
	else if (k->fixed_delay)
		end_fixed_delay(world, k);
}

/* ---- calls that call back --------------------------------------------------- */

static struct twheel_stats stats_of(const struct world *world)
{
	struct twheel_stats stats;

	memset(&stats, 0xa5, sizeof(stats));
	twheel_get_stats(world->w, &stats, sizeof(stats));
	return stats;
}

/*
 * The turn is over: if a timer had passed before it, and was restarted for later, it is like all
 * others now.
 */
static void end_turn(struct world *world)
{
	u32 i;

	for (i = 0; i < world->shape.nr_things; i++)
		if (world->known[i].start <= world->turn)
			world->known[i].loose = false;
	world->turn_most = world->turn;
}

static bool has_loose_ones(const struct world *world)
{
	u32 i;

	for (i = 0; i < world->shape.nr_things; i++)
		if (world->known[i].loose)
			return true;
	return false;
}

static bool has_passed_ones(const struct world *world)
{
	u32 i;

	for (i = 0; i < world->shape.nr_things; i++)
		if (world->known[i].passed || world->known[i].loose)
			return true;
	return false;
}

static void check_dispatches(struct world *world, const struct twheel_stats *before,
			     const struct twheel_stats *after, u32 called, bool by_time)
{
	u64 dispatches = after->dispatches - before->dispatches;
	u64 vain = after->vain - before->vain;

	CHECK(dispatches - world->inner.dispatches <= 1, "%llu more, %llu of them inside",
	      (unsigned long long)dispatches, (unsigned long long)world->inner.dispatches);
	CHECK(dispatches > world->inner.dispatches || !called, "not counted");
	CHECK(vain - world->inner.vain == (dispatches > world->inner.dispatches && !called),
	      "%llu more in vain, %u callbacks", (unsigned long long)vain, called);
	/* If a slot has come up, the wheel has found out again which timer is the first. */
	if (dispatches && !world->inner.dispatches && by_time)
		world->stale = false;
}

static void dispatch(struct world *world, unsigned int max)
{
	struct twheel_stats before = stats_of(world), after;
	typeof(world->inner) inner = world->inner;
	const struct known *left = left_one(world);
	bool by_time = !world->had_passed;
	u32 called = world->called;
	bool may_be_cut_off;
	int ret;

	world->event++;
	if (!left) {
		world->turn_most = world->event;
		if (!world->unfinished && !(world->depth && has_loose_ones(world)))
			world->turn = world->event;
	}
	world->called = 0;
	memset(&world->inner, 0, sizeof(world->inner));
	world->depth++;
	ret = twheel_dispatch(world->w, max);
	world->depth--;
	CHECK(ret >= 0 && (u32)ret == world->called, "%d, not %u", ret, world->called);
	CHECK(!max || (u32)ret <= max, "%d, not %u", ret, max);
	after = stats_of(world);
	check_dispatches(world, &before, &after, ret, by_time);
	world->had_passed = has_passed_ones(world);
	left = left_one(world);
	may_be_cut_off = after.moved - before.moved >= BUDGET;
	CHECK(!left || may_be_cut_off || (max && (u32)ret == max),
	      "timer %u has not been called: %llu, it is %llu", left->thing->nr,
	      (unsigned long long)left->deadline_ns, (unsigned long long)world->now_ns);
	world->unfinished = left || may_be_cut_off ||
		(max && (u32)ret == max && has_loose_ones(world));
	if (!world->unfinished)
		end_turn(world);
	world->called = called;
	world->inner.dispatches = inner.dispatches + after.dispatches - before.dispatches;
	world->inner.vain = inner.vain + after.vain - before.vain;
}

/* If this is true, twheel_next() is exact. */
static bool is_exact(const struct world *world)
{
	return world->shape.nr_things <= FEW && !world->unfinished && !world->stale &&
		!has_loose_ones(world);
}

/* If a slot has many timers, this may be early, but never late. */
static u64 next(struct world *world)
{
	u64 ns = twheel_next(world->w), first = true_next(world);

	if (ns >= END_NS)
		ns = TWHEEL_NEVER;
	CHECK(ns <= first, "%llu, not %llu", (unsigned long long)ns, (unsigned long long)first);
	if (is_exact(world))
		CHECK(ns == first || (ns < first && first == world->now_ns),
		      "%llu, not %llu, it is %llu", (unsigned long long)ns,
		      (unsigned long long)first, (unsigned long long)world->now_ns);
	if (!world->nr_pending)
		CHECK(ns == TWHEEL_NEVER, "%llu", (unsigned long long)ns);
	return ns;
}

static bool is_readable(const struct world *world, int timeout_ms)
{
	struct pollfd pfd = { .fd = twheel_fd(world->w), .events = POLLIN };

	return poll(&pfd, 1, timeout_ms) == 1;
}

static void flush(struct world *world)
{
	int ret = twheel_flush(world->w);

	world->may_set = true;
	CHECK(!ret, "%d", ret);
	if (!HAS_DESCRIPTOR)
		return;
	if (true_next(world) <= world->now_ns)
		CHECK(is_readable(world, PATIENCE_MS), "something is due");
	else if (world->now_ns && (!world->nr_pending || is_exact(world)))
		/* The wheel cannot tell a descriptor set to 0 from one set by twheel_wake(). */
		CHECK(!is_readable(world, 0), "nothing is due");
}

static void advance(struct world *world, u64 to_ns)
{
	u32 i;
	int ret;

	ret = twheel_advance(world->w, to_ns);
	world->may_set = true;
	CHECK(!ret, "%d", ret);
	world->now_ns = to_ns;
	world->event++;
	for (i = 0; i < world->shape.nr_things; i++) {
		struct known *k = &world->known[i];

		if (is_due(world, k) && !k->due)
			k->due = world->event;
		if (k->pending && k->deadline_ns <= to_ns && !k->reached)
			k->reached = world->event;
	}
	CHECK(twheel_now(world->w) == to_ns, "it is another time");
	if (to_ns)
		CHECK(twheel_advance(world->w, to_ns - 1) == -EINVAL, "back");
	CHECK(twheel_advance(world->w, END_NS - 1 + below(3)) == -EINVAL, "to the end of time");
}

static struct known *visited(struct twheel *w, struct twheel_timer *t, void *arg)
{
	struct thing *thing = twheel_container_of(t, struct thing, timer);
	struct world *world = arg;
	struct known *k;

	CHECK(w == world->w, "another wheel");
	CHECK(thing->guard == GUARD, "not an object");
	k = &world->known[thing->nr];
	CHECK(k->thing == thing, "an object of the past");
	CHECK(k->pending, "timer %u does not pend", thing->nr);
	return k;
}

static void on_visit(struct twheel *w, struct twheel_timer *t, void *arg)
{
	struct known *k = visited(w, t, arg);

	CHECK(!k->visited, "timer %u is visited twice", k->thing->nr);
	k->visited = true;
}

static void check_visits(struct world *world)
{
	u32 i;

	for (i = 0; i < world->shape.nr_things; i++) {
		CHECK(world->known[i].visited == world->known[i].pending, "timer %u", i);
		world->known[i].visited = false;
	}
}

static void on_visit_stop(struct twheel *w, struct twheel_timer *t, void *arg)
{
	struct known *k = visited(w, t, arg);

	if (!(here->shape.flags & TWHEEL_SHARED) && !below(4))
		stop(arg, k->thing->nr);
}

static void on_stop_all(struct twheel *w, struct twheel_timer *t, void *arg)
{
	struct known *k = visited(w, t, arg);
	struct world *world = arg;

	CHECK(!twheel_timer_pending(t), "timer %u", k->thing->nr);
	CHECK(k->start < world->stopping, "timer %u was started meanwhile", k->thing->nr);
	world->called++;
	let_go(world, k);
	while (!below(8))
		touch(world, random_thing(world));
}

static void stop_all(struct world *world)
{
	bool with_fn = below(4);
	u64 began = ++world->event;
	size_t nr;
	u32 i;

	world->called = with_fn ? 0 : world->nr_pending;
	world->stale |= world->nr_pending > 0;
	/* From now on no timer is due, whether it has been stopped or is about to be. */
	for (i = 0; i < world->shape.nr_things; i++) {
		bool pending = world->known[i].pending;

		idle(&world->known[i]);
		world->known[i].pending = pending;
	}
	world->stopping = began;
	nr = twheel_stop_all(world->w, with_fn ? on_stop_all : NULL, world);
	world->stopping = 0;
	CHECK(nr == world->called, "%zu, not %u", nr, world->called);
	for (i = 0; i < world->shape.nr_things; i++) {
		struct known *k = &world->known[i];

		if (!with_fn)
			let_go(world, k);
		CHECK(!k->pending || k->start > began, "timer %u pends", i);
	}
}

/* ---- checks between any two steps --------------------------------------------- */

static void check_world(struct world *world)
{
	struct twheel_stats stats = stats_of(world);
	u64 sum = 0;
	u32 i;

	CHECK(stats.pending == world->nr_pending, "%llu, not %u",
	      (unsigned long long)stats.pending, world->nr_pending);
	CHECK(stats.called == world->all_called, "%llu, not %llu",
	      (unsigned long long)stats.called, (unsigned long long)world->all_called);
	for (i = 0; i < TWHEEL_LATE_BUCKETS; i++)
		sum += stats.late[i];
	CHECK(sum == stats.called, "%llu", (unsigned long long)sum);
	CHECK(!memcmp(stats.late, world->late, sizeof(stats.late)), "lateness");
	CHECK(!stats.slowest_ns || world->shape.flags & TWHEEL_MEASURE, "%llu",
	      (unsigned long long)stats.slowest_ns);
	CHECK(world->may_set || stats.settings == world->settings, "%llu, not %llu",
	      (unsigned long long)stats.settings, (unsigned long long)world->settings);
	world->settings = stats.settings;
	world->may_set = world->shape.flags & (TWHEEL_SHARED | TWHEEL_IMMEDIATE);
	CHECK(twheel_periods(world->w) == 1, "%llu", (unsigned long long)twheel_periods(world->w));
	twheel_each(world->w, on_visit, world);
	check_visits(world);
	for (i = 0; i < world->shape.nr_things; i++)
		check_timer(&world->known[i]);
	CHECK(twheel_now(world->w) == world->now_ns, "the time");
}

/* ---- worlds ------------------------------------------------------------------ */

struct shape random_shape(void)
{
	static const u64 ticks[] = {
		1000000, 1000, 1024, 1500, 999999, 1000003, 65536, 4194304, 3600000000000ULL,
	};
	static const u32 sizes[] = { 3, 20, 32, 150, 700, MAX_THINGS };
	struct shape shape = {
		.tick_ns = ticks[below(ARRAY_SIZE(ticks))],
		.flags = below(2) ? 0 : below(8),
		.nr_things = sizes[below(ARRAY_SIZE(sizes))],
		.exponent = below(2) ? 10 : 1 + below(50),
	};

	if (!below(3))
		shape.slack_ns = min64(below(below(2) ? 40 : 40000) * shape.tick_ns +
				       below(shape.tick_ns), 3600 * TWHEEL_SEC);
	return shape;
}

struct world *world_make(const struct shape *shape)
{
	const struct twheel_options options = {
		.size = sizeof(options),
		.clock = TWHEEL_CALLER,
		.flags = shape->flags,
		.tick_ns = shape->tick_ns,
		.slack_ns = shape->slack_ns,
	};
	struct world *world = calloc(1, sizeof(*world));
	int ret;

	if (!world)
		die("out of memory");
	world->shape = *shape;
	here = world;
	world->edge_ns = shape->tick_ns * (1 + shape->slack_ns / shape->tick_ns);
	world->event = 1;
	ret = twheel_open(&world->w, &options);
	CHECK(!ret, "%d", ret);
	check_world(world);
	return world;
}

/* After this, all timers are idle. */
void world_free(struct world *world)
{
	u32 i;

	twheel_close(world->w);
	for (i = 0; i < world->shape.nr_things; i++) {
		struct known *k = &world->known[i];

		if (!k->thing)
			continue;
		CHECK(!twheel_timer_pending(&k->thing->timer), "timer %u", i);
		thing_free(k);
	}
	free(world);
}

/* Advance to any time, or just before or just to the next edge. */
static void random_advance(struct world *world)
{
	u64 to_ns = later(world->now_ns, random_ns(world));
	u64 first = true_next(world);

	/* Time ends only once in a while. */
	if (to_ns > END_NS / 2 && below(64))
		to_ns = world->now_ns;
	if (first && first != TWHEEL_NEVER && below(2))
		to_ns = first - below(2);
	if (to_ns < world->now_ns || !below(8))
		to_ns = world->now_ns;
	advance(world, min64(to_ns, END_NS - 2));
}

void world_step(struct world *world)
{
	world->steps++;
	switch (below(16)) {
	case 0:
		burst(world);
		break;
	case 1:
		flush(world);
		break;
	case 2:
	case 3:
	case 4:
		random_advance(world);
		break;
	case 5:
	case 6:
	case 7:
		dispatch(world, 0);
		break;
	case 8:
		dispatch(world, 1 + below(below(2) ? 4 : 300));
		break;
	case 9:
	case 10:
		next(world);
		break;
	case 11:
		if (!below(20))
			stop_all(world);
		else if (!below(4))
			twheel_each(world->w, on_visit_stop, world);
		CHECK(twheel_update(world->w) == world->now_ns, "the time");
		break;
	default:
		touch(world, random_thing(world));
	}
	check_world(world);
}

/* Go from one expiry to the next as twheel_next() says, until nothing is left. */
void world_drain(struct world *world)
{
	u64 ns, limit;
	u32 i;

	world->in_drain = true;
	for (i = 0; i < world->shape.nr_things; i++)
		if (edge_of(world, world->known[i].deadline_ns) == TWHEEL_NEVER)
			stop(world, i);
	limit = 20 * world->nr_pending + 100;
	for (; limit && world->nr_pending; limit--) {
		ns = next(world);
		CHECK(ns != TWHEEL_NEVER, "%u are left", world->nr_pending);
		advance(world, ns < world->now_ns ? world->now_ns : ns);
		dispatch(world, 0);
		check_world(world);
	}
	CHECK(!world->nr_pending, "%u are left", world->nr_pending);
	world->in_drain = false;
}
