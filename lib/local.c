// SPDX-License-Identifier: MIT
/*
 * The back end in the process: the wheel of the module, and a timerfd
 *
 * It does what the device does, as far as the front of libtwheel needs it: it arms and
 * cancels by vectors, looks at the words when a deadline comes up, and gives out events.
 * twheel_wheel.c is compiled unmodified.  It knows ticks; here are the clock, the timeouts
 * and the memory.
 *
 * A timeout has an entry in the wheel, whose seq is the timeout's generation.  An entry
 * whose timeout has ended, or has another generation, is dead: it is dropped when it comes
 * up, or when there are more dead entries than others, by a sweep.
 *
 * The timerfd is set to the tick in which the wheel has work next.  So the descriptor is
 * readable when there are events, and, now and then, when entries only move to a finer
 * level of the wheel.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <asm/page.h>

#include "backend.h"
#include "twheel_wheel.h"

#define SLOTS			1024

/* As many dead entries are not worth a sweep, and so many entries more get pages at once. */
#define FEW			1024

/* How many chunks at most are looked at for one that has to be waited for. */
#define LOOKS			64

/* What the timerfd is set to, beside times: nothing, and a time that has passed. */
#define WAKE_NEVER		UINT64_MAX
#define WAKE_NOW		1

/**
 * struct timeout - a timeout
 * @known: the deadline that it is in the wheel with, grains
 * @user_data: what it was armed with
 * @gen: its generation, that is the high half of its id
 * @next: it has ended: the next of the free ones; ARMED otherwise
 */
struct timeout {
	grains_t known;
	uint64_t user_data;
	uint32_t gen;
	uint32_t next;
};

#define ARMED		UINT32_MAX
#define NO_TIMEOUT	(UINT32_MAX - 1)

/**
 * struct local - a wheel in the process
 * @wheel: the wheel
 * @slots: its slots
 * @timeout: the timeouts, by index
 * @nr_used: how many of them have been in use
 * @free: the first of those that can be used again, NO_TIMEOUT if there is none
 * @nr_live: how many are armed
 * @nr_dead: dead entries in the wheel
 * @nr_pages: pages of chunks that the wheel has
 * @room: how many entries these are enough for
 * @now_ns: the latest time that was looked at; the time of TWHEEL_CLOCK_VIRTUAL
 * @wake_ns: what the timerfd is set to
 */
struct local {
	struct twheel_wheel wheel;
	void *slots;
	struct timeout *timeout;
	uint32_t nr_used;
	uint32_t free;
	uint32_t nr_live;
	uint64_t nr_dead;
	uint64_t nr_pages;
	uint64_t room;
	uint64_t now_ns;
	uint64_t wake_ns;
};

/* ---- time ---------------------------------------------------------------- */

static uint64_t local_now_ns(const struct twheel *w)
{
	return w->clock == TWHEEL_CLOCK_VIRTUAL ? w->local->now_ns : twheel_clock_now(w->clock);
}

static uint64_t max_tick(const struct twheel *w)
{
	return TWHEEL_TIME_NEVER / w->tick_ns + 2;
}

/* A deadline that no clock reaches needs no entry. */
static bool is_never(const struct twheel *w, grains_t deadline)
{
	return deadline >= TWHEEL_TIME_NEVER >> w->head.grain_shift;
}

/* Never early: the first tick whose edge is not before the deadline, and slack after it. */
static uint64_t tick_of(const struct twheel *w, grains_t deadline)
{
	uint64_t deadline_ns = deadline << w->head.grain_shift;
	uint64_t tick = deadline_ns / w->tick_ns + (deadline_ns % w->tick_ns != 0);

	tick = (tick + w->slack_ticks) & ~(uint64_t)w->slack_ticks;
	return tick < max_tick(w) ? tick : max_tick(w);
}

/* The clocks that can be set stand behind CLOCK_REALTIME. */
static bool can_be_set(const struct twheel *w)
{
	return w->clock == TWHEEL_CLOCK_REALTIME || w->clock == TWHEEL_CLOCK_TAI;
}

static clockid_t timerfd_clock(const struct twheel *w)
{
	if (can_be_set(w))
		return CLOCK_REALTIME;
	return w->clock == TWHEEL_CLOCK_BOOTTIME ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
}

/* A time of the wheel's clock, on that of the timerfd. */
static uint64_t to_timerfd(const struct twheel *w, uint64_t time_ns)
{
	uint64_t tai_ahead_ns;

	if (w->clock != TWHEEL_CLOCK_TAI)
		return time_ns;
	/* Whole seconds; between the two readings some time passes. */
	tai_ahead_ns = twheel_clock_now(TWHEEL_CLOCK_TAI) - twheel_clock_now(TWHEEL_CLOCK_REALTIME);
	tai_ahead_ns = (tai_ahead_ns + TWHEEL_SEC / 2) / TWHEEL_SEC * TWHEEL_SEC;
	return time_ns > tai_ahead_ns ? time_ns - tai_ahead_ns : WAKE_NOW;
}

static uint64_t wake_of(struct twheel *w)
{
	uint64_t tick;

	/* Dead entries may be left: many only where a sweep does not find them. */
	if (!w->local->nr_live && w->local->nr_dead <= FEW)
		return WAKE_NEVER;
	tick = twheel_wheel_next(&w->local->wheel);
	if (!tick)
		return WAKE_NOW;
	if (tick >= max_tick(w) - 1)
		return WAKE_NEVER;
	return tick * w->tick_ns;
}

/* Make the descriptor readable when the wheel has work. */
static void wake_set(struct twheel *w)
{
	struct itimerspec when = { .it_value.tv_sec = 0 };
	uint64_t wake_ns = wake_of(w), time_ns = wake_ns;

	if (w->clock == TWHEEL_CLOCK_VIRTUAL && wake_ns != WAKE_NEVER)
		wake_ns = wake_ns <= w->local->now_ns || wake_ns == WAKE_NOW ? WAKE_NOW :
									       WAKE_NEVER;
	if (wake_ns == w->local->wake_ns)
		return;
	w->local->wake_ns = wake_ns;
	if (wake_ns != WAKE_NEVER) {
		time_ns = wake_ns == WAKE_NOW ? WAKE_NOW : to_timerfd(w, wake_ns);
		when.it_value.tv_sec = time_ns / TWHEEL_SEC;
		when.it_value.tv_nsec = time_ns % TWHEEL_SEC;
	}
	timerfd_settime(w->fd, TFD_TIMER_ABSTIME | (can_be_set(w) ? TFD_TIMER_CANCEL_ON_SET : 0),
			&when, NULL);
}

/* ---- memory -------------------------------------------------------------- */

static bool page_give(struct local *local)
{
	void *page;

	if (posix_memalign(&page, PAGE_SIZE, PAGE_SIZE))
		return false;
	twheel_wheel_give(&local->wheel, page);
	local->nr_pages++;
	return true;
}

/* See to it that the wheel can take one more entry. */
static bool room_provide(struct local *local)
{
	uint64_t nr = local->wheel.nr_entries + 1;

	if (nr <= local->room)
		return true;
	while (local->nr_pages < twheel_wheel_pages_for(&local->wheel, nr + FEW))
		if (!page_give(local))
			return local->nr_pages >= twheel_wheel_pages_for(&local->wheel, nr);
	local->room = nr + FEW;
	return true;
}

static void room_give_back(struct local *local)
{
	uint64_t room = local->wheel.nr_entries + FEW;
	uint64_t needed = twheel_wheel_pages_for(&local->wheel, room);
	struct twheel_chunk_page *page;

	while (local->nr_pages > needed && (page = twheel_wheel_take_back(&local->wheel))) {
		free(page);
		local->nr_pages--;
	}
	if (room < local->room)
		local->room = room;
}

/* ---- timeouts ------------------------------------------------------------ */

static bool entry_is_dead(const struct local *local, struct twheel_entry entry)
{
	const struct timeout *t = &local->timeout[entry.index];

	return t->gen != entry.seq || t->next != ARMED;
}

static uint64_t entry_id(struct twheel_entry entry)
{
	return (uint64_t)entry.seq << 32 | entry.index;
}

static uint64_t id_of(const struct local *local, uint32_t index)
{
	return (uint64_t)local->timeout[index].gen << 32 | index;
}

static void timeout_end(struct local *local, uint32_t index)
{
	local->timeout[index].next = local->free;
	local->free = index;
	local->nr_live--;
}

static int arm_one(struct twheel *w, struct twheel_arm *arm, uint64_t now_ns)
{
	bool overdue = arm->expires_ns <= now_ns && arm->expires_ns < TWHEEL_TIME_NEVER;
	/* What is not overdue is rounded up, if the caller has not done so. */
	uint64_t grain_mask = overdue ? 0 : w->head.grain_mask;
	grains_t deadline = (arm->expires_ns + grain_mask) >> w->head.grain_shift;
	struct local *local = w->local;
	struct timeout *t;
	uint32_t index;

	if (local->nr_live == w->max_timers)
		return -EAGAIN;
	if (!room_provide(local))
		return -ENOMEM;
	index = local->free;
	if (index == NO_TIMEOUT)
		index = local->nr_used++;
	else
		local->free = local->timeout[index].next;
	local->nr_live++;
	t = &local->timeout[index];
	t->known = deadline;
	t->user_data = arm->user_data;
	/* No id is below 2^32. */
	t->gen += 1 + (t->gen == UINT32_MAX);
	t->next = ARMED;
	arm->id = id_of(local, index);
	*word_of(w, arm->id) = word_for(arm->id, deadline);
	/* What is due already expires at once, and belongs to no tick. */
	if (!is_never(w, deadline))
		twheel_wheel_insert(&local->wheel, (struct twheel_entry){
			.tick = overdue ? 0 : tick_of(w, deadline),
			.index = index,
			.seq = t->gen,
		});
	return TWHEEL_CREATED;
}

static void local_arm(struct twheel *w, struct twheel_arm *arm, uint32_t nr)
{
	uint64_t now_ns = local_now_ns(w);
	uint32_t i;

	for (i = 0; i < nr; i++)
		arm[i].result = arm_one(w, &arm[i], now_ns);
	wake_set(w);
}

static void sweep(struct local *local)
{
	struct twheel_chunk *chunk;
	uint32_t i, nr_left;

	twheel_wheel_sweep_begin(&local->wheel);
	while ((chunk = twheel_wheel_sweep(&local->wheel))) {
		nr_left = 0;
		for (i = 0; i < chunk->nr; i++) {
			if (entry_is_dead(local, chunk->entry[i]))
				local->nr_dead--;
			else
				chunk->entry[nr_left++] = chunk->entry[i];
		}
		chunk->nr = nr_left;
		twheel_wheel_put_back(&local->wheel, chunk);
	}
	room_give_back(local);
}

static void local_cancel(struct twheel *w, struct twheel_cancel *cancel, uint32_t nr)
{
	struct local *local = w->local;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		uint32_t index = (uint32_t)cancel[i].id;

		if (index >= local->nr_used || id_of(local, index) != cancel[i].id ||
		    local->timeout[index].next != ARMED) {
			cancel[i].result = -ENOENT;
			continue;
		}
		cancel[i].result = TWHEEL_WAS_PENDING;
		local->nr_dead += !is_never(w, local->timeout[index].known);
		timeout_end(local, index);
	}
	if (local->nr_dead > local->nr_live + FEW)
		sweep(local);
	wake_set(w);
}

/* ---- expiry -------------------------------------------------------------- */

/* By how many grains the deadline in the word is later than the known one. */
static grains_t moved_by(const struct twheel *w, const struct timeout *t, uint64_t id)
{
	uint64_t ahead = *word_of(w, id) - word_for(id, t->known);

	if ((int64_t)ahead <= 0 || ahead & TWHEEL_REFRESH_GEN_MASK)
		return 0;
	return ahead >> TWHEEL_REFRESH_GEN_BITS;
}

/* Look at an entry that the wheel has handed out: is there an event? */
static bool entry_expires(struct twheel *w, struct twheel_entry entry, uint64_t now_tick,
			  struct twheel_event *event)
{
	struct local *local = w->local;
	struct timeout *t = &local->timeout[entry.index];
	uint64_t id = entry_id(entry);
	grains_t ahead;

	if (entry_is_dead(local, entry)) {
		local->nr_dead--;
		return false;
	}
	ahead = moved_by(w, t, id);
	if (ahead) {
		t->known += ahead;
		if (is_never(w, t->known))
			return false;
		entry.tick = tick_of(w, t->known);
		if (entry.tick > now_tick) {
			twheel_wheel_insert(&local->wheel, entry);
			return false;
		}
	}
	*event = (struct twheel_event){
		.id = id,
		.user_data = t->user_data,
		.deadline_ns = t->known << w->head.grain_shift,
		.fired_ns = local->now_ns,
		.count = 1,
		.flags = TWHEEL_EVENT_ENDED,
	};
	timeout_end(local, entry.index);
	return true;
}

/*
 * Drop a chunk of the slot that the wheel waits for if none of its entries needs waiting
 * for: they are dead, or have been moved later.
 */
static bool way_clear(struct twheel *w)
{
	const struct twheel_chunk *next = twheel_wheel_peek(&w->local->wheel);
	grains_t ahead[TWHEEL_CHUNK_ENTRIES];
	struct local *local = w->local;
	struct twheel_chunk *chunk;
	uint32_t i, nr, nr_left = 0;

	if (!next)
		return false;
	nr = next->nr;
	for (i = 0; i < nr; i++) {
		struct twheel_entry entry = next->entry[i];

		ahead[i] = moved_by(w, &local->timeout[entry.index], entry_id(entry));
		if (!ahead[i] && !entry_is_dead(local, entry))
			return false;
	}
	chunk = twheel_wheel_take_out(&local->wheel);
	for (i = 0; i < nr; i++) {
		struct twheel_entry entry = chunk->entry[i];
		struct timeout *t = &local->timeout[entry.index];

		if (entry_is_dead(local, entry)) {
			local->nr_dead--;
			continue;
		}
		t->known += ahead[i];
		if (is_never(w, t->known))
			continue;
		entry.tick = tick_of(w, t->known);
		chunk->entry[nr_left++] = entry;
	}
	chunk->nr = nr_left;
	twheel_wheel_put_back(&local->wheel, chunk);
	return true;
}

/* Go to the present; the clock may have been set back. */
static uint64_t now_tick(struct twheel *w)
{
	struct local *local = w->local;
	uint64_t now_ns = local_now_ns(w);

	if (now_ns < local->now_ns && can_be_set(w))
		twheel_wheel_rewind(&local->wheel, now_ns / w->tick_ns + 1);
	local->now_ns = now_ns;
	return now_ns / w->tick_ns;
}

static int local_read(struct twheel *w, struct twheel_event *event, uint32_t max)
{
	struct local *local = w->local;
	uint64_t tick = now_tick(w);
	struct twheel_entry due[64];
	uint32_t nr = 0, i, nr_due, looks;
	bool more = true;

	while (more && nr < max) {
		nr_due = max - nr < 64 ? max - nr : 64;
		nr_due = twheel_wheel_advance(&local->wheel, tick, due, nr_due, &more);
		for (i = 0; i < nr_due; i++)
			nr += entry_expires(w, due[i], tick, &event[nr]);
	}
	for (looks = 0; !more && looks < LOOKS && way_clear(w); looks++)
		;
	/* The timerfd may have fired: set it anew in any case. */
	local->wake_ns = 0;
	wake_set(w);
	return nr;
}

static uint64_t local_next_ns(struct twheel *w)
{
	uint64_t wake_ns = wake_of(w);

	if (wake_ns == WAKE_NEVER)
		return TWHEEL_NO_EXPIRY;
	return wake_ns == WAKE_NOW ? local_now_ns(w) : wake_ns;
}

static int local_advance(struct twheel *w, uint64_t to_ns)
{
	w->local->now_ns = to_ns;
	wake_set(w);
	return 0;
}

/* ---- the wheel ----------------------------------------------------------- */

static void local_free(struct twheel *w)
{
	struct local *local = w->local;
	struct twheel_chunk_page *page;

	if (local->slots)
		while ((page = twheel_wheel_dismantle(&local->wheel)))
			free(page);
	free(local->slots);
	twheel_unreserve(local->timeout, w->nr_words, sizeof(*local->timeout));
	twheel_unreserve(w->head.words, w->nr_words, sizeof(*w->head.words));
	free(local);
}

static bool local_alloc(struct twheel *w)
{
	struct twheel_wheel_config config = {
		.slots = SLOTS,
		.rewinds = can_be_set(w),
		.max_tick = max_tick(w),
	};
	struct local *local = calloc(1, sizeof(*local));

	w->local = local;
	if (!local)
		return false;
	local->timeout = twheel_reserve(w->nr_words, sizeof(*local->timeout));
	w->head.words = twheel_reserve(w->nr_words, sizeof(*w->head.words));
	local->slots = calloc(1, twheel_wheel_size(&config));
	if (local->slots) {
		if (w->clock != TWHEEL_CLOCK_VIRTUAL)
			local->now_ns = twheel_clock_now(w->clock);
		twheel_wheel_init(&local->wheel, &config, local->slots,
				  local->now_ns / w->tick_ns + 1);
	}
	local->free = NO_TIMEOUT;
	local->wake_ns = WAKE_NEVER;
	if (local->timeout && w->head.words && local->slots)
		return true;
	local_free(w);
	return false;
}

static int local_open(struct twheel *w, const char *path)
{
	(void)path;
	if (!w->max_timers)
		w->max_timers = MAX_TIMERS_DEFAULT;
	w->nr_words = w->max_timers;
	w->fd = timerfd_create(timerfd_clock(w), TFD_NONBLOCK | TFD_CLOEXEC);
	if (w->fd < 0)
		return -errno;
	if (local_alloc(w))
		return 0;
	close(w->fd);
	return -ENOMEM;
}

static void local_close(struct twheel *w)
{
	close(w->fd);
	local_free(w);
}

const struct backend twheel_local_backend = {
	.kind		= TWHEEL_LOCAL,
	.open		= local_open,
	.close		= local_close,
	.now_ns		= local_now_ns,
	.arm		= local_arm,
	.cancel		= local_cancel,
	.read		= local_read,
	.next_ns	= local_next_ns,
	.advance	= local_advance,
};
