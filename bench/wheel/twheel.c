// SPDX-License-Identifier: GPL-2.0
/*
 * twheel.c - twheel_wheel.c as it is, amid what its engine keeps beside it
 *
 * As in twheel_main.c, a timeout is 40 bytes in a page of them, found by its
 * index in two loads, and an atomic state word with a generation and a sequence
 * number decides all.  A device is called for a batch of timeouts, and so is
 * this.  Not here: system calls, locks, the inbox, periods.
 *
 *	insert	fields and state.  A place that has kept an entry for a time that is no
 *		later needs no more; for the others an entry goes into the wheel, and
 *		the one that the place may have kept is stale.  When there are twice as
 *		many entries as places, and 4096, a sweep drops those that are stale:
 *		that is part of the price of inserting
 *	remove	one change of state; the place keeps the entry.  What settle() drops is
 *		part of the price
 *	move	two changes of state and a new deadline; the entry comes up too
 *		early and is put back, which is part of the price of expiry
 *	run	what the kthread does, and a reader who takes the events
 */
#include <stdbool.h>

#include "bench.h"
#include "shim.h"
#include "twheel_wheel.h"

#define NS_PER_MS	1000000ULL

/* As the engine has them. */
#define BATCH		64U
#define CALL		32U
#define SWEEP_SLACK	4096
#define PAGE_BYTES	4096
#define NR_IN_PAGE	((PAGE_BYTES - 16) / sizeof(struct timeout))

enum phase { FREE, NEW, QUEUED, ARMED, SPENT, REARMING };

#define STATE_PHASE	7ULL
#define STATE_ENTRY	8ULL
#define STATE_SEQ_SHIFT	12
#define STATE_SEQ	0xfffff000ULL
#define STATE_GEN_SHIFT	32
#define STATE_GEN	(~0ULL << STATE_GEN_SHIFT)

struct timeout {
	u64 state;
	u64 deadline_ns;
	u64 user_data;
	u64 link;
	union {
		u64 fired_ns;
		u64 entry_ns;
	};
};

struct page {
	u64 head[2];
	struct timeout timeout[NR_IN_PAGE];
} __attribute__((aligned(PAGE_BYTES)));

static struct page **table;
static u64 tick_ns = NS_PER_MS;
static struct twheel_wheel wheel;
static u32 nr_places;
static u32 nr_pending;
static u64 ready_first;
static u64 ready_last;

static struct timeout *timeout_at(u32 index)
{
	return &table[index / NR_IN_PAGE]->timeout[index % NR_IN_PAGE];
}

static u64 state_next(u64 state, enum phase phase)
{
	return (state & (STATE_GEN | STATE_SEQ)) | phase;
}

static u64 state_placed(u64 state)
{
	return (state & STATE_GEN) | ARMED |
	       ((state + (1ULL << STATE_SEQ_SHIFT)) & STATE_SEQ);
}

static u64 state_freed(u64 state)
{
	return state_next(state, FREE) + (1ULL << STATE_GEN_SHIFT);
}

static bool state_has_entry(u64 state)
{
	return (state & STATE_PHASE) <= NEW && state & STATE_ENTRY;
}

static u32 state_seq(u64 state)
{
	return (state & STATE_SEQ) >> STATE_SEQ_SHIFT;
}

static u64 state_read(const struct timeout *t)
{
	return __atomic_load_n(&t->state, __ATOMIC_ACQUIRE);
}

static bool state_change(struct timeout *t, u64 from, u64 to)
{
	return __atomic_compare_exchange_n(&t->state, &from, to, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* An entry is of this timeout's present place in the wheel. */
static bool entry_is_live(const struct twheel_entry *entry, u64 state)
{
	return (state & STATE_PHASE) == ARMED && state_seq(state) == entry->seq;
}

/* A place, free or NEW, keeps the entry. */
static bool entry_is_kept(const struct twheel_entry *entry, u64 state)
{
	return state_has_entry(state) && state_seq(state) == entry->seq;
}

/* The state that decides what becomes of an entry: a free place gives up the one it kept. */
static u64 entry_claim(const struct twheel_entry *entry, struct timeout *t)
{
	u64 state = state_read(t);

	if (entry_is_kept(entry, state) && state_change(t, state, state & ~STATE_ENTRY))
		return state & ~STATE_ENTRY;
	return state;
}

static void make(uint32_t nr)
{
	const struct twheel_wheel_config config = {
		.slots		= 1024,
		.max_tick	= (1ULL << 63) / NS_PER_MS,
	};
	u32 i, nr_pages = nr / NR_IN_PAGE + 1;
	struct page *pages = allocate(nr_pages * sizeof(*pages));
	char *chunks;

	table = allocate(nr_pages * sizeof(*table));
	for (i = 0; i < nr_pages; i++)
		table[i] = &pages[i];
	twheel_wheel_init(&wheel, &config, allocate(twheel_wheel_size(&config)),
			  START_NS / NS_PER_MS + 1);
	nr_places = nr_pages * NR_IN_PAGE;
	/* Stale entries want room as well, and so do those of one batch. */
	nr = twheel_wheel_pages_for(&wheel, 2 * nr_places + SWEEP_SLACK + BATCH);
	chunks = allocate(nr * PAGE_SIZE);
	for (i = 0; i < nr; i++)
		twheel_wheel_give(&wheel, (void *)(chunks + i * PAGE_SIZE));
}

/* Rounded up to a tick: never early. */
static void entry_insert(struct timeout *t, u64 state, u32 index)
{
	const struct twheel_entry entry = {
		.tick	= (t->deadline_ns + tick_ns - 1) / tick_ns,
		.index	= index,
		.seq	= state_seq(state),
	};

	t->entry_ns = t->deadline_ns;
	twheel_wheel_insert(&wheel, entry);
}

/* ARM: a place that keeps its entry for the new timeout is done.  Returns how many are not. */
static u32 arm(const uint32_t *who, const uint32_t *due_ms, u32 nr, u32 *queued)
{
	u32 i, nr_queued = 0;

	for (i = 0; i < nr; i++) {
		struct timeout *t = timeout_at(who[i]);
		u64 deadline_ns = clock_ns + due_ms[i] * NS_PER_MS;
		u64 state = state_read(t);
		bool keep = state_has_entry(state) && deadline_ns >= t->entry_ns;
		u64 new = state_next(state, NEW) | STATE_ENTRY;

		t->deadline_ns = deadline_ns;
		t->user_data = i;
		if (keep && state_change(t, state, new) &&
		    state_change(t, new, state_next(new, ARMED)))
			continue;
		__atomic_store_n(&t->state, state_next(state, QUEUED), __ATOMIC_RELEASE);
		queued[nr_queued++] = who[i];
	}
	return nr_queued;
}

/* The kthread finds them in its inbox. */
static void enter(const uint32_t *who, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		struct timeout *t = timeout_at(who[i]);
		u64 state = state_read(t);

		if (state_change(t, state, state_placed(state)))
			entry_insert(t, state_placed(state), who[i]);
	}
}

/*
 * Drop entries that are stale, and with @all those that free places keep; the timeouts of a
 * chunk are fetched before the first is looked at.
 */
static void sweep(bool all)
{
	struct timeout *t[TWHEEL_CHUNK_ENTRIES];
	struct twheel_chunk *chunk;
	unsigned int i, nr_left;

	twheel_wheel_sweep_begin(&wheel);
	while ((chunk = twheel_wheel_sweep(&wheel))) {
		nr_left = 0;
		for (i = 0; i < chunk->nr; i++) {
			t[i] = timeout_at(chunk->entry[i].index);
			__builtin_prefetch(t[i]);
		}
		for (i = 0; i < chunk->nr; i++) {
			struct twheel_entry *entry = &chunk->entry[i];
			u64 state = all ? entry_claim(entry, t[i]) : state_read(t[i]);

			if (entry_is_live(entry, state) || entry_is_kept(entry, state))
				chunk->entry[nr_left++] = *entry;
		}
		chunk->nr = nr_left;
		twheel_wheel_put_back(&wheel, chunk);
	}
}

static void settle(void)
{
	sweep(true);
}

static void insert(const uint32_t *who, const uint32_t *due_ms, uint32_t nr)
{
	u32 queued[BATCH];
	u32 i, step;

	for (i = 0; i < nr; i += step) {
		step = min(nr - i, BATCH);
		enter(queued, arm(who + i, due_ms + i, step, queued));
		if (wheel.nr_entries > 2ULL * nr_places + SWEEP_SLACK)
			sweep(false);
	}
	nr_pending += nr;
}

/* Find the places of a call's batch, and fetch their lines together. */
static void fetch(const uint32_t *who, struct timeout **t, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		t[i] = timeout_at(who[i]);
		__builtin_prefetch(t[i], 1);
	}
}

static void remove_timers(const uint32_t *who, uint32_t nr)
{
	struct timeout *t[CALL];
	u32 i, step;

	for (; nr; who += step, nr -= step) {
		step = min(nr, CALL);
		fetch(who, t, step);
		for (i = 0; i < step; i++) {
			u64 state = state_read(t[i]);

			if ((state & STATE_PHASE) == ARMED &&
			    state_change(t[i], state, state_freed(state) | STATE_ENTRY))
				nr_pending--;
		}
	}
}

static void move_one(struct timeout *t, u64 seen, u64 deadline_ns)
{
	if (!state_change(t, seen, state_next(seen, REARMING)))
		return;
	t->deadline_ns = deadline_ns;
	__atomic_store_n(&t->state, state_next(seen, ARMED), __ATOMIC_RELEASE);
}

static void move(const uint32_t *who, const uint32_t *due_ms, uint32_t nr)
{
	struct timeout *t[CALL];
	u32 i, step;

	for (; nr; who += step, due_ms += step, nr -= step) {
		step = min(nr, CALL);
		fetch(who, t, step);
		for (i = 0; i < step; i++)
			move_one(t[i], state_read(t[i]), clock_ns + due_ms[i] * NS_PER_MS);
	}
}

static void expire_one(const struct twheel_entry *entry, struct timeout *t)
{
	u64 state = entry_claim(entry, t);

	if (!entry_is_live(entry, state))
		return;
	if (t->deadline_ns > entry->tick * tick_ns) {
		entry_insert(t, state, entry->index);
		return;
	}
	if (!state_change(t, state, state_next(state, SPENT)))
		return;
	t->fired_ns = clock_ns;
	t->link = 0;
	if (ready_last)
		timeout_at(ready_last - 1)->link = entry->index + 1;
	else
		ready_first = entry->index + 1;
	ready_last = entry->index + 1;
}

/* What the reader of the descriptor gets. */
static void deliver(void)
{
	while (ready_first) {
		struct timeout *t = timeout_at(ready_first - 1);

		ready_first = t->link;
		t->state = state_freed(t->state);
		nr_pending--;
		nr_expired++;
	}
	ready_last = 0;
}

static void pass(u64 now)
{
	struct twheel_entry due[BATCH];
	struct timeout *t[BATCH];
	unsigned int i, nr;
	bool more;

	do {
		nr = twheel_wheel_advance(&wheel, now, due, BATCH, &more);
		for (i = 0; i < nr; i++) {
			t[i] = timeout_at(due[i].index);
			__builtin_prefetch(t[i], 1);
		}
		for (i = 0; i < nr; i++)
			expire_one(&due[i], t[i]);
	} while (more);
	deliver();
}

static bool step(void)
{
	u64 next;

	if (!nr_pending)
		return false;
	next = twheel_wheel_next(&wheel);
	if (next * tick_ns > clock_ns)
		clock_ns = next * tick_ns;
	pass(clock_ns / tick_ns);
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
	.settle	= settle,
	.move	= move,
	.run	= run,
	.step	= step,
};
