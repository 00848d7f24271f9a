// SPDX-License-Identifier: MIT
/*
 * Timeouts by number: what <twheel/table.h> offers
 *
 * In the process, a table is an array of timers on a wheel, under the wheel's lock, which each
 * call takes once.  By its deadline, a timer is unread if the clock has come to the edge of its
 * tick.  When numbers are fetched, a dispatch of the wheel puts them into the caller's array.
 * Sleepers poll the descriptor of the wheel, which the first of them makes.
 *
 * On the device, a table is a keyed wheel: the number is the key, and an array is two calls.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#pragma GCC visibility push(default)
#include "twheel/table.h"
#pragma GCC visibility pop
#include "twheel/device.h"
#include "wheel.h"

static_assert(TWHEEL_TABLE_NEVER == TWHEEL_NEVER, "never");
static_assert(TWHEEL_TABLE_BOOTTIME == TWHEEL_BOOTTIME, "clocks");
static_assert(TWHEEL_TABLE_REALTIME == TWHEEL_REALTIME, "clocks");
static_assert(TWHEEL_TABLE_TAI == TWHEEL_TAI, "clocks");
static_assert(TWHEEL_TABLE_VIRTUAL == TWHEEL_CALLER, "clocks");
/* The kernel's states are the table's, and its verdicts are TWHEEL_CREATED more. */
static_assert(TWHEEL_TABLE_PENDING == TWHEEL_STATE_PENDING, "states");
static_assert(TWHEEL_TABLE_UNREAD == TWHEEL_STATE_EXPIRED, "states");
static_assert(TWHEEL_TABLE_PENDING + TWHEEL_CREATED == TWHEEL_WAS_PENDING, "verdicts");
static_assert(TWHEEL_TABLE_UNREAD + TWHEEL_CREATED == TWHEEL_WAS_UNREAD, "verdicts");

/* From here on, a deadline is a stop. */
#define NONE_NS		((uint64_t)INT64_MAX)

#define NUMBERS_MAX	(1U << 30)
/* Changes ahead of the present one whose timers are fetched into the cache. */
#define AHEAD		8
/* Changes and events in one call of the device. */
#define VECTOR		256U
/* Bits for the numbers of a call that are stopped. */
#define FILTER		16384
/* More places than numbers: the kernel counts a place as free only a moment after its key is. */
#define SPARE		65536

struct twheel_table {
	struct twheel_device *device;	/* NULL: in the process */
	uint32_t nr;
	bool settable;			/* the clock can be set */

	/* In the process; what follows is guarded by the lock of the wheel. */
	struct twheel *wheel;
	struct twheel_timer *timers;
	uint32_t *fetched;		/* where the callback puts numbers */
};

static bool is_stop(const struct twheel_table_change *c)
{
	return c->deadline_ns >= NONE_NS;
}

static void fetch(struct twheel *w, struct twheel_timer *t)
{
	struct twheel_table *table = twheel_data(w);

	PROBE(read, table, (uint32_t)(t - table->timers));
	*table->fetched++ = (uint32_t)(t - table->timers);
}

static int32_t process_open(struct twheel_table *table, const struct twheel_table_options *o)
{
	const struct twheel_options options = {
		.size = sizeof(options),
		.clock = o->clock,
		.tick_ns = o->tick_ns,
		.data = table,
	};
	int32_t ret;

	table->timers = calloc(table->nr, sizeof(*table->timers));
	ret = table->timers ? twheel_open(&table->wheel, &options) : -ENOMEM;
	/* From now on its functions take the lock, and call fetch() under it. */
	if (ret == 0)
		table->wheel->head.shared = true;
	return ret;
}

static int32_t timer_state(const struct twheel_timer *t, uint64_t edge)
{
	if (!t->deadline)
		return TWHEEL_TABLE_IDLE;
	return key_of(t) <= edge ? TWHEEL_TABLE_UNREAD : TWHEEL_TABLE_PENDING;
}

static int32_t process_apply(struct twheel_table *table, struct twheel_table_change *changes,
			     uint32_t nr, uint32_t flags)
{
	uint64_t now_ns, edge, from_ns, deadline_ns;
	int32_t nr_done = 0, ret = 0;
	struct twheel *w = table->wheel;
	struct twheel_timer *t;
	bool started = false;
	uint32_t i;

	LOCKED(w);
	now_ns = loop_update(w);
	edge = last_edge(w);
	from_ns = flags & TWHEEL_TABLE_AFTER ? now_ns : 0;
	for (i = 0; i < nr; i++) {
		struct twheel_table_change *c = &changes[i];

		if (i + AHEAD < nr && changes[i + AHEAD].number < table->nr) {
			t = &table->timers[changes[i + AHEAD].number];
			/* A timer may lie in two lines of the cache. */
			__builtin_prefetch(t, 1);
			__builtin_prefetch(&t->deadline, 1);
		}
		if (c->number >= table->nr) {
			c->result = -ERANGE;
			continue;
		}
		nr_done++;
		t = &table->timers[c->number];
		c->result = timer_state(t, edge);
		/* If it is unread, its list may not wait for edges. */
		if (c->result == TWHEEL_TABLE_UNREAD || is_stop(c))
			stop_timer(t);
		if (is_stop(c)) {
			if (c->result)
				PROBE(cancel, table, c->number);
			continue;
		}
		deadline_ns = min64(from_ns + c->deadline_ns, NONE_NS);
		t->callback = fetch;
		/* A deadline that has passed becomes 0, which does not wait for an edge. */
		if (deadline_ns > now_ns)
			_twheel_start_key(w, t, deadline_ns | KEY);
		else
			timers_start(w, t, 0, 0);
		if (c->result)
			PROBE(move, table, c->number, deadline_ns);
		else
			PROBE(arm, table, c->number, deadline_ns);
		started = true;
	}
	loop_end_turn(w);
	if (started)
		ret = loop_set_fd(w);
	return ret < 0 ? ret : nr_done;
}

static int32_t process_fetch(struct twheel_table *table, uint32_t *numbers, uint32_t nr)
{
	struct twheel *w = table->wheel;
	int32_t got = 0, ret;

	LOCKED(w);
	table->fetched = numbers;
	/* A dispatch may end before it has called all that is due. */
	do {
		got += loop_dispatch(w, nr - (uint32_t)got);
	} while ((uint32_t)got < nr && loop_wake_ns(w) <= w->clock_ns);
	ret = loop_set_fd(w);
	loop_end_turn(w);
	return got ? got : ret;
}

static int32_t process_state(struct twheel_table *table, uint32_t number, uint64_t *deadline_ns)
{
	const struct twheel_timer *t = &table->timers[number];
	struct twheel *w = table->wheel;

	LOCKED(w);
	loop_update(w);
	*deadline_ns = key_of(t) & ~KEY;
	return timer_state(t, last_edge(w));
}

static int32_t device_open(struct twheel_table *table, const struct twheel_table_options *o)
{
	const struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = o->clock + TWHEEL_CLOCK_MONOTONIC,
		.tick_ns = o->tick_ns,
		.max_pending = table->nr + SPARE,
		.event_size = sizeof(struct twheel_event),
		.flags = TWHEEL_SETUP_KEYED,
	};
	struct twheel_info info;
	int32_t fd, ret;

	if (!o->fd)
		return twheel_device_open(&table->device, NULL, O_NONBLOCK, &setup);
	/* If this fails, the descriptor of the caller is as it was. */
	fd = fcntl(o->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (fd < 0)
		return -errno;
	ret = twheel_device_adopt(&table->device, fd, &setup);
	if (ret < 0)
		close(fd);
	else
		ret = twheel_device_info(table->device, &info, 0);
	if (ret < 0)
		return ret;
	if (!(info.setup_flags & TWHEEL_SETUP_KEYED) || info.max_pending != setup.max_pending)
		return -EINVAL;
	table->settable = can_be_set(info.clock - TWHEEL_CLOCK_MONOTONIC);
	if (ioctl(fd, FIONBIO, &(int){ 1 }) < 0)
		return -errno;
	close(o->fd);
	return 0;
}

/*
 * One call makes all starts, and the next one all stops: up to a start of a number that is stopped
 * before it, or shares the bit of one.
 */
static uint32_t changes_together(const struct twheel_table_change *changes, uint32_t nr)
{
	uint64_t stopped[FILTER / 64], *word, bit;
	uint32_t i;

	memset(stopped, 0, sizeof(stopped));
	for (i = 0; i < nr; i++) {
		word = &stopped[changes[i].number % FILTER / 64];
		bit = 1ULL << changes[i].number % 64;
		if (is_stop(&changes[i]))
			*word |= bit;
		else if (*word & bit)
			break;
	}
	return i;
}

static int32_t change_result(int32_t verdict)
{
	if (verdict == -ENOENT)
		return TWHEEL_TABLE_IDLE;
	return verdict < 0 ? verdict : verdict - TWHEEL_CREATED;
}

static int32_t device_apply(struct twheel_table *table, struct twheel_table_change *changes,
			    uint32_t nr, uint32_t flags)
{
	uint32_t arm_flags = flags & TWHEEL_TABLE_AFTER ? 0 : TWHEEL_ARM_ABSOLUTE;
	struct twheel_cancel stops[VECTOR], *stop;
	struct twheel_arm starts[VECTOR], *start;
	const int32_t no_number = -ERANGE, *result[VECTOR];
	struct twheel_table_change *c;
	int32_t nr_done = 0;
	uint32_t i, together;

	for (; nr; nr -= together, changes += together) {
		together = changes_together(changes, nr < VECTOR ? nr : VECTOR);
		start = starts;
		stop = stops;
		for (i = 0; i < together; i++) {
			c = &changes[i];
			result[i] = &no_number;
			if (c->number >= table->nr)
				continue;
			result[i] = is_stop(c) ? &stop->result : &start->result;
			if (is_stop(c))
				*stop++ = (struct twheel_cancel){ .id = c->number };
			else
				*start++ = (struct twheel_arm){
					.expires_ns = c->deadline_ns,
					.user_data = c->number,
					.flags = arm_flags,
				};
		}
		twheel_device_arm_many(table->device, starts, (uint32_t)(start - starts));
		twheel_device_cancel_key_many(table->device, stops, (uint32_t)(stop - stops));
		for (i = 0; i < together; i++) {
			changes[i].result = change_result(*result[i]);
			nr_done += changes[i].result >= 0;
		}
	}
	return nr_done;
}

static int32_t device_fetch(struct twheel_table *table, uint32_t *numbers, uint32_t nr)
{
	struct twheel_event events[VECTOR];
	uint32_t room, got = 0;
	int32_t ret, i;

	do {
		room = nr - got < VECTOR ? nr - got : VECTOR;
		ret = twheel_device_read(table->device, events, room);
		for (i = 0; i < ret; i++) {
			/* Leave out drained timeouts, and keys that are not the table's. */
			if (events[i].count && events[i].user_data < table->nr)
				numbers[got++] = (uint32_t)events[i].user_data;
		}
	} while (got < nr && ret == (int32_t)room);
	if (got || ret > 0 || ret == -EAGAIN)
		return (int32_t)got;
	return ret ? ret : -ESHUTDOWN;
}

static int32_t device_state(struct twheel_table *table, uint32_t number, uint64_t *deadline_ns)
{
	struct twheel_status status = { .id = number };
	int32_t ret = twheel_device_query_key(table->device, &status);

	if (ret < 0)
		return ret == -ENOENT ? TWHEEL_TABLE_IDLE : ret;
	*deadline_ns = status.deadline_ns;
	return status.state == TWHEEL_STATE_DRAINED ? TWHEEL_TABLE_IDLE : (int32_t)status.state;
}

int32_t twheel_table_open(struct twheel_table **table, uint32_t nr,
			  const struct twheel_table_options *options)
{
	struct twheel_table_options o;
	struct twheel_table *new;
	int32_t ret = options_copy(&o, sizeof(o), options);

	*table = NULL;
	if (ret < 0)
		return ret;
	if (o.backend == TWHEEL_TABLE_AUTO)
		o.backend = o.flags || o.fd ? TWHEEL_TABLE_DEVICE : TWHEEL_TABLE_PROCESS;
	if (!nr || nr > NUMBERS_MAX || o.backend > TWHEEL_TABLE_DEVICE || o.reserved ||
	    o.clock > TWHEEL_TABLE_VIRTUAL || o.flags & ~TWHEEL_TABLE_PROCESSES ||
	    (o.fd && o.fd <= STDERR_FILENO) ||
	    (o.backend == TWHEEL_TABLE_PROCESS && (o.flags || o.fd)))
		return -EINVAL;
	if (!o.tick_ns)
		o.tick_ns = TWHEEL_MSEC;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->nr = nr;
	new->settable = can_be_set(o.clock);
	ret = o.backend == TWHEEL_TABLE_PROCESS ? process_open(new, &o) : device_open(new, &o);
	if (ret < 0)
		twheel_table_close(new);
	else
		*table = new;
	return ret;
}

void twheel_table_close(struct twheel_table *table)
{
	if (!table)
		return;
	twheel_device_close(table->device);
	twheel_close(table->wheel);
	free(table->timers);
	free(table);
}

uint32_t twheel_table_nr(const struct twheel_table *table)
{
	return table->nr;
}

uint32_t twheel_table_backend(const struct twheel_table *table)
{
	return table->device ? TWHEEL_TABLE_DEVICE : TWHEEL_TABLE_PROCESS;
}

int32_t twheel_table_apply(struct twheel_table *table, struct twheel_table_change *changes,
			   uint32_t nr, uint32_t flags)
{
	/* If the clock is set, a deadline that counts from now on would move. */
	if (flags & ~TWHEEL_TABLE_AFTER || nr > INT32_MAX || (flags && table->settable))
		return -EINVAL;
	if (table->device)
		return device_apply(table, changes, nr, flags);
	return process_apply(table, changes, nr, flags);
}

static int32_t apply_one(struct twheel_table *table, uint32_t number, uint64_t deadline_ns,
			 uint32_t flags)
{
	struct twheel_table_change change = { .number = number, .deadline_ns = deadline_ns };
	int32_t ret = twheel_table_apply(table, &change, 1, flags);

	return ret < 0 ? ret : change.result;
}

int32_t twheel_table_start(struct twheel_table *table, uint32_t number, uint64_t deadline_ns)
{
	return apply_one(table, number, deadline_ns, 0);
}

int32_t twheel_table_start_after(struct twheel_table *table, uint32_t number, uint64_t delay_ns)
{
	return apply_one(table, number, delay_ns, TWHEEL_TABLE_AFTER);
}

int32_t twheel_table_stop(struct twheel_table *table, uint32_t number)
{
	return apply_one(table, number, TWHEEL_TABLE_NEVER, 0);
}

int32_t twheel_table_expired(struct twheel_table *table, uint32_t *numbers, uint32_t nr,
			     uint64_t timeout_ns)
{
	uint64_t end_ns = timeout_ns ? time_add(loop_clock(CLOCK_MONOTONIC), timeout_ns) : 0;
	int32_t ret;

	if (!nr)
		return -EINVAL;
	if (nr > INT32_MAX)
		nr = INT32_MAX;
	for (;;) {
		ret = table->device ? device_fetch(table, numbers, nr) :
				      process_fetch(table, numbers, nr);
		if (ret || !timeout_ns || loop_clock(CLOCK_MONOTONIC) >= end_ns)
			return ret;
		ret = loop_sleep(twheel_table_fd(table), CLOCK_MONOTONIC, end_ns);
		if (ret < 0)
			return ret;
	}
}

int32_t twheel_table_state(struct twheel_table *table, uint32_t number, uint64_t *deadline_ns)
{
	uint64_t deadline = TWHEEL_TABLE_NEVER;
	int32_t state;

	if (number >= table->nr)
		return -ERANGE;
	state = table->device ? device_state(table, number, &deadline) :
				process_state(table, number, &deadline);
	if (deadline_ns && state >= 0)
		*deadline_ns = state == TWHEEL_TABLE_PENDING ? deadline : TWHEEL_TABLE_NEVER;
	return state;
}

int32_t twheel_table_fd(struct twheel_table *table)
{
	return table->device ? twheel_device_fd(table->device) : twheel_fd(table->wheel);
}

uint64_t twheel_table_next(struct twheel_table *table)
{
	struct twheel_info info;

	if (!table->device)
		return twheel_next(table->wheel);
	if (twheel_device_info(table->device, &info, TWHEEL_INFO_WALK) < 0 || info.unread)
		return 0;
	return info.next_expiry_ns < NONE_NS ? info.next_expiry_ns : TWHEEL_TABLE_NEVER;
}

uint64_t twheel_table_now(struct twheel_table *table)
{
	uint64_t now_ns = 0;

	if (!table->device)
		return twheel_update(table->wheel);
	twheel_device_now(table->device, &now_ns);
	return now_ns;
}

int32_t twheel_table_advance(struct twheel_table *table, uint64_t to_ns)
{
	if (to_ns >= NONE_NS)
		return -EINVAL;
	return table->device ? twheel_device_advance(table->device, to_ns) :
			       twheel_advance(table->wheel, to_ns);
}
