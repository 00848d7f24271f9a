// SPDX-License-Identifier: GPL-2.0
/*
 * twheel.c - twheel_wheel.c as it is, with the data that its engine keeps beside it
 *
 * As in the engine, a timeout is 48 bytes in a page of them, found by its index in two loads, and
 * its word has a generation and a state.  Each call is for a batch of timeouts, as on the device.
 * System calls, locks and periods are left out.
 *
 *	insert	fields and word, and then its slot
 *	remove	out of the slot, and a new generation
 *	move	a new deadline; the timeout comes up too early and is put back, which is part of the
 *		price of expiry
 *	run	what the softirq does, and a reader who takes the events
 */
#include <stdbool.h>

#include "bench.h"
#include "shim.h"
#include "twheel_wheel.h"

#define NS_PER_MS	1000000ULL

/* The same values as in the engine. */
#define CALL		32U
#define STEP		64U
#define LOOKS		32U
#define PAGE_BYTES	4096
#define NR_IN_PAGE	((PAGE_BYTES - 64) / sizeof(struct timeout))

#define STATE_PENDING	(1ULL << 30)
#define GEN_ONE		(1ULL << 32)

struct timeout {
	union {
		struct twheel_link link;
		struct {
			struct twheel_link *next;
			struct twheel_link **pprev;
			u64 fired_ns;
		};
	};
	u64 word;
	u64 deadline_ns;
	u64 user_data;
};

struct page {
	u64 head[8];
	struct timeout timeout[NR_IN_PAGE];
} __attribute__((aligned(PAGE_BYTES)));

static struct page **table;
static struct twheel_wheel wheel;
static struct twheel_link *events;
static struct twheel_link end;
static u32 nr_pending;

static struct timeout *timeout_at(u32 index)
{
	return &table[index / NR_IN_PAGE]->timeout[index % NR_IN_PAGE];
}

static struct timeout *link_timeout(struct twheel_link *link)
{
	return (struct timeout *)link;
}

static void make(uint32_t nr)
{
	const struct twheel_wheel_config config = { .tick_ns = NS_PER_MS, .slots = 1024 };
	u32 i, nr_pages = nr / NR_IN_PAGE + 1;
	struct page *pages = allocate(nr_pages * sizeof(*pages));

	table = allocate(nr_pages * sizeof(*table));
	for (i = 0; i < nr_pages; i++)
		table[i] = &pages[i];
	twheel_wheel_init(&wheel, &config, allocate(twheel_wheel_size(&config)), START_NS);
	events = &end;
}

static void insert(const uint32_t *who, const uint32_t *due_ms, uint32_t nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		struct timeout *t = timeout_at(who[i]);

		t->deadline_ns = clock_ns + due_ms[i] * NS_PER_MS;
		t->user_data = i;
		t->word = (t->word & ~(GEN_ONE - 1)) | STATE_PENDING | who[i];
		twheel_wheel_insert(&wheel, &t->link, t->deadline_ns);
	}
	nr_pending += nr;
}

/* A place may lie in two lines of the cache. */
static void place_prefetch(const struct timeout *t)
{
	__builtin_prefetch(t, 1);
	__builtin_prefetch(&t->user_data, 1);
}

/* Find the places of a call's batch, and prefetch them together. */
static void fetch(const uint32_t *who, struct timeout **t, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		t[i] = timeout_at(who[i]);
		place_prefetch(t[i]);
	}
}

static void timeout_end(struct timeout *t)
{
	t->word = (t->word & ~STATE_PENDING) + GEN_ONE;
	nr_pending--;
}

static void remove_timers(const uint32_t *who, uint32_t nr)
{
	struct timeout *t[CALL];
	u32 i, step;

	for (; nr; who += step, nr -= step) {
		step = min(nr, CALL);
		fetch(who, t, step);
		for (i = 0; i < step; i++) {
			__builtin_prefetch(t[i]->link.next, 1);
			__builtin_prefetch(t[i]->link.pprev, 1);
		}
		for (i = 0; i < step; i++) {
			if (!(t[i]->word & STATE_PENDING))
				continue;
			twheel_link_del(&t[i]->link);
			timeout_end(t[i]);
		}
	}
}

static void move(const uint32_t *who, const uint32_t *due_ms, uint32_t nr)
{
	struct timeout *t[CALL];
	u32 i, step;

	for (; nr; who += step, due_ms += step, nr -= step) {
		step = min(nr, CALL);
		fetch(who, t, step);
		for (i = 0; i < step; i++)
			if (t[i]->word & STATE_PENDING)
				t[i]->deadline_ns = clock_ns + due_ms[i] * NS_PER_MS;
	}
}

/* Free the timeouts whose events the reader takes. */
static void deliver(void)
{
	while (events != &end) {
		struct timeout *t = link_timeout(events);

		events = events->next;
		timeout_end(t);
		nr_expired++;
	}
}

/* Empty slots of upper levels before they are due. */
static void look_ahead(u32 nr)
{
	struct twheel_link **slot;
	u32 level;

	while (nr && (slot = twheel_wheel_ahead(&wheel, &level)))
		for (; nr && *slot != &wheel.end; nr--) {
			struct twheel_link *link = *slot;

			place_prefetch(link_timeout(twheel_link_ahead(link)));
			twheel_link_del(link);
			twheel_wheel_move_down(&wheel, level, link,
					       link_timeout(link)->deadline_ns);
		}
}

static void pass(u64 now_ns)
{
	u64 edge_ns = now_ns / NS_PER_MS * NS_PER_MS;

	while (twheel_wheel_has_coming(&wheel) || twheel_wheel_turn(&wheel, edge_ns)) {
		struct twheel_link *link = wheel.coming;
		struct timeout *t = link_timeout(link);

		if (link == &wheel.end)
			continue;
		place_prefetch(link_timeout(twheel_link_ahead(link)));
		twheel_link_del(link);
		if (t->deadline_ns > wheel.base_ns) {
			twheel_wheel_put_back(&wheel, link, t->deadline_ns);
			continue;
		}
		t->fired_ns = clock_ns;
		twheel_link_push(&events, link);
	}
	look_ahead(STEP);
	deliver();
}

/* When the first timeout of a slot is due, or an earlier time. */
static u64 slot_first_ns(struct twheel_level *level, struct twheel_link **slot)
{
	u64 end_ns = twheel_slot_begin_ns(level, level->begin_ns) + (1ULL << level->shift);
	struct twheel_link *link, *next;
	u64 first_ns = U64_MAX;
	u32 looks = 0;

	for (link = *slot; link != &wheel.end; link = next) {
		u64 due_ns = link_timeout(link)->deadline_ns;

		next = link->next;
		if (due_ns >= end_ns) {
			twheel_link_del(link);
			twheel_wheel_insert(&wheel, link, due_ns);
			continue;
		}
		first_ns = min(first_ns, due_ns);
		if (++looks > LOOKS)
			return level == wheel.level ? level->begin_ns :
			       max(level->begin_ns - twheel_slot_lead_ns(level),
				   wheel.base_ns + 1);
	}
	return first_ns;
}

static u64 next_ns(void)
{
	u64 first_ns = U64_MAX;
	u32 i;

	for (i = 0; i < wheel.nr_levels && wheel.used >> i; i++) {
		struct twheel_level *level = &wheel.level[i];
		u64 slot_ns = U64_MAX;

		while (slot_ns == U64_MAX && level->begin_ns < first_ns) {
			struct twheel_link **slot = twheel_wheel_first(&wheel, i);

			if (!slot && wheel.used >> i & 1)
				continue;
			if (!slot || level->begin_ns >= first_ns)
				break;
			slot_ns = slot_first_ns(level, slot);
		}
		first_ns = min(first_ns, slot_ns);
	}
	return first_ns;
}

static bool step(void)
{
	u64 next;

	if (!nr_pending)
		return false;
	next = (next_ns() + NS_PER_MS - 1) / NS_PER_MS * NS_PER_MS;
	if (next > clock_ns)
		clock_ns = next;
	pass(clock_ns);
	return true;
}

static void run(void)
{
	while (step())
		;
}

const struct structure twheel_structure = {
	.name	= "twheel",
	.make	= make,
	.insert	= insert,
	.remove	= remove_timers,
	.move	= move,
	.run	= run,
	.step	= step,
};
