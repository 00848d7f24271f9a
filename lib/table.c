// SPDX-License-Identifier: MIT
/*
 * Timeouts by number: what <twheel/table.h> offers
 *
 * In the process, a table is an array of timers on a wheel, under a lock that each call takes
 * once.  A timer is unread if the clock has come to the edge of its tick: this is seen by its
 * deadline, and nothing is stored for it.  When numbers are fetched, the wheel is turned, and
 * its callback puts them into the caller's array.  Sleepers poll the descriptor of the wheel,
 * which does not exist before the first of them comes.
 *
 * On the device, a table is a keyed wheel: the number is the key.  The kernel keeps all that
 * there is to keep, and this makes one call of each array.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default)
#include "twheel/table.h"
#pragma GCC visibility pop
#include "twheel/device.h"
#include "options.h"
#include "wheel.h"

static_assert(TWHEEL_TABLE_NEVER == TWHEEL_NEVER, "never");
static_assert(TWHEEL_TABLE_BOOTTIME == TWHEEL_BOOTTIME, "clocks");
static_assert(TWHEEL_TABLE_REALTIME == TWHEEL_REALTIME, "clocks");
static_assert(TWHEEL_TABLE_TAI == TWHEEL_TAI, "clocks");
static_assert(TWHEEL_TABLE_VIRTUAL == TWHEEL_VIRTUAL, "clocks");

/* From here on, a deadline is none. */
#define NONE_NS		((uint64_t)INT64_MAX)

#define NUMBERS_MAX	(1U << 30)
/* Changes ahead of the present one whose timers are fetched into the cache. */
#define AHEAD		8
/* Changes and events in one call of the device. */
#define VECTOR		256
/*
 * More timeouts than there are numbers: the kernel counts one that has ended a moment longer
 * than its key is taken, and so does each of the threads that end some.
 */
#define SPARE		65536

struct twheel_table {
	struct twheel_device *device;	/* NULL: in the process */
	uint32_t nr;

	/* In the process; what follows is guarded by the lock. */
	pthread_mutex_t lock;
	struct twheel *wheel;
	uint64_t tick_ns;
	bool watched;			/* the wheel has a descriptor */
	uint32_t *fetched;		/* where the callback puts numbers */
	struct twheel_timer timers[];
};

static uint64_t add_ns(uint64_t a, uint64_t b)
{
	return b < NONE_NS - a ? a + b : NONE_NS;
}

/* ---- in the process ------------------------------------------------------ */

static void fetch(struct twheel *w, struct twheel_timer *t)
{
	struct twheel_table *table = twheel_data(w);

	*table->fetched++ = (uint32_t)(t - table->timers);
}

/* The last edge of a tick: what had its deadline by then has expired. */
static uint64_t last_edge(const struct twheel_table *table, uint64_t now_ns)
{
	return now_ns - now_ns % table->tick_ns;
}

static int32_t timer_state(const struct twheel_timer *t, uint64_t edge_ns)
{
	if (!t->deadline)
		return TWHEEL_TABLE_IDLE;
	return key_of(t) <= (edge_ns | KEY) ? TWHEEL_TABLE_UNREAD : TWHEEL_TABLE_PENDING;
}

/*
 * A deadline that has passed becomes 0: it has expired, though its tick has no edge yet.  What
 * is unread may be in a list of the wheel that does not wait for edges, and has to leave it.
 */
static inline int32_t process_change(struct twheel_table *table, struct twheel_timer *t,
				     uint64_t deadline_ns, uint64_t now_ns, uint64_t edge_ns)
{
	int32_t was = timer_state(t, edge_ns);

	if (was == TWHEEL_TABLE_UNREAD || deadline_ns == TWHEEL_NEVER)
		_twheel_stop(table->wheel, t);
	if (deadline_ns != TWHEEL_NEVER) {
		t->callback = fetch;
		_twheel_start_at(table->wheel, t, deadline_ns > now_ns ? deadline_ns : 0);
	}
	return was;
}

static int32_t process_apply(struct twheel_table *table, struct twheel_table_change *changes,
			     uint32_t nr, uint32_t flags)
{
	uint64_t now_ns, edge_ns, from_ns;
	int32_t nr_done = 0, ret = 0;
	bool started = false;
	uint32_t i;

	pthread_mutex_lock(&table->lock);
	now_ns = twheel_update(table->wheel);
	edge_ns = last_edge(table, now_ns);
	from_ns = flags & TWHEEL_TABLE_AFTER ? now_ns : 0;
	for (i = 0; i < nr; i++) {
		struct twheel_table_change *c = &changes[i];
		uint64_t deadline_ns = c->deadline_ns < NONE_NS ?
			add_ns(from_ns, c->deadline_ns) : TWHEEL_NEVER;

		if (i + AHEAD < nr && changes[i + AHEAD].number < table->nr)
			__builtin_prefetch(&table->timers[changes[i + AHEAD].number], 1);
		if (c->number >= table->nr) {
			c->result = -ERANGE;
			continue;
		}
		c->result = process_change(table, &table->timers[c->number], deadline_ns, now_ns,
					   edge_ns);
		started |= deadline_ns != TWHEEL_NEVER;
		nr_done++;
	}
	if (started && table->watched)
		ret = twheel_flush(table->wheel);
	pthread_mutex_unlock(&table->lock);
	return ret < 0 ? ret : nr_done;
}

static int32_t process_fetch(struct twheel_table *table, uint32_t *numbers, uint32_t nr)
{
	const uint32_t *end = numbers + nr;
	uint64_t now_ns;
	int32_t ret = 0;

	pthread_mutex_lock(&table->lock);
	table->fetched = numbers;
	/* A dispatch may end before it has called all that is due. */
	do {
		twheel_dispatch(table->wheel, (uint32_t)(end - table->fetched));
		now_ns = twheel_now(table->wheel);
	} while (table->fetched < end && twheel_next(table->wheel) <= now_ns);
	if (table->watched)
		ret = twheel_flush(table->wheel);
	nr = (uint32_t)(table->fetched - numbers);
	pthread_mutex_unlock(&table->lock);
	return nr ? (int32_t)nr : ret;
}

static int32_t process_state(struct twheel_table *table, uint32_t number, uint64_t *deadline_ns)
{
	const struct twheel_timer *t = &table->timers[number];
	int32_t state;

	pthread_mutex_lock(&table->lock);
	state = timer_state(t, last_edge(table, twheel_update(table->wheel)));
	if (state == TWHEEL_TABLE_PENDING)
		*deadline_ns = key_of(t) & ~KEY;
	pthread_mutex_unlock(&table->lock);
	return state;
}

static int32_t process_fd(struct twheel_table *table)
{
	int32_t fd;

	pthread_mutex_lock(&table->lock);
	fd = twheel_fd(table->wheel);
	table->watched = fd >= 0;
	pthread_mutex_unlock(&table->lock);
	return fd;
}

/* ---- on the device ------------------------------------------------------- */

/* Changes that go to the kernel together: the starts in one call, the stops in another. */
struct call {
	uint32_t nr_starts;
	uint32_t nr_stops;
	uint32_t mask;
	uint32_t seen[2 * VECTOR];	/* a hash table of their numbers; the mask has its size */
	struct twheel_arm starts[VECTOR];
	struct twheel_cancel stops[VECTOR];
};

/*
 * Note a number, and whether it is stopped.  False if a change of the other kind is there: the
 * order of both must not change.
 */
static bool call_note(struct call *call, uint32_t number, bool stop)
{
	uint32_t mark = (number << 1 | stop) + 1;
	uint32_t i = (number * 2654435769U) >> 16 & call->mask;

	for (; call->seen[i] && call->seen[i] != mark; i = (i + 1) & call->mask)
		if ((call->seen[i] - 1) >> 1 == number)
			return false;
	call->seen[i] = mark;
	return true;
}

static bool is_stop(const struct twheel_table_change *c)
{
	return c->deadline_ns >= NONE_NS;
}

/* Take in changes, as many as can go together.  Returns the first one that cannot. */
static uint32_t call_fill(struct call *call, const struct twheel_table *table,
			  const struct twheel_table_change *changes, uint32_t nr, uint32_t flags)
{
	uint32_t arm_flags = flags & TWHEEL_TABLE_AFTER ? 0 : TWHEEL_ARM_ABSOLUTE;
	uint32_t nr_starts = 0, nr_stops = 0, i;

	if (nr > VECTOR)
		nr = VECTOR;
	call->mask = UINT32_MAX >> __builtin_clz(2 * nr - 1);
	memset(call->seen, 0, (call->mask + 1) * sizeof(*call->seen));
	for (i = 0; i < nr; i++) {
		const struct twheel_table_change *c = &changes[i];
		bool stop = is_stop(c);

		if (c->number >= table->nr)
			continue;
		if (!call_note(call, c->number, stop))
			break;
		if (stop)
			call->stops[nr_stops++] = (struct twheel_cancel){ .id = c->number };
		else
			call->starts[nr_starts++] = (struct twheel_arm){
				.expires_ns = c->deadline_ns,
				.user_data = c->number,
				.flags = arm_flags,
			};
	}
	call->nr_starts = nr_starts;
	call->nr_stops = nr_stops;
	return i;
}

/* Returns 0, or why the kernel has looked at nothing. */
static int32_t call_make(const struct twheel_table *table, unsigned long command, uint32_t flags,
			 void *elements, size_t size, uint32_t nr)
{
	struct twheel_vector vector = {
		.size = sizeof(vector),
		.entry_size = (uint32_t)size,
		.nr = nr,
		.flags = flags,
		.entries = (uintptr_t)elements,
	};

	if (nr && ioctl(twheel_device_fd(table->device), command, &vector) < 0)
		return -errno;
	return 0;
}

/* What a change did, as a verdict of the kernel or an error. */
static int32_t call_result(const struct twheel_table_change *c, int32_t failed, int32_t verdict)
{
	if (failed)
		return failed;
	if (verdict == -ENOENT && is_stop(c))
		return TWHEEL_TABLE_IDLE;
	return verdict > 0 ? verdict - TWHEEL_CREATED + TWHEEL_TABLE_IDLE : verdict;
}

static int32_t device_apply(struct twheel_table *table, struct twheel_table_change *changes,
			    uint32_t nr, uint32_t flags)
{
	uint32_t begin, end, i;
	int32_t nr_done = 0;
	struct call call;

	for (begin = 0; begin < nr; begin = end) {
		const struct twheel_cancel *stop = call.stops;
		const struct twheel_arm *start = call.starts;
		int32_t start_failed, stop_failed;

		end = begin + call_fill(&call, table, changes + begin, nr - begin, flags);
		start_failed = call_make(table, TWHEEL_IOC_ARM, 0, call.starts,
					 sizeof(*call.starts), call.nr_starts);
		stop_failed = call_make(table, TWHEEL_IOC_CANCEL, TWHEEL_VECTOR_BY_KEY,
					call.stops, sizeof(*call.stops), call.nr_stops);
		for (i = begin; i < end; i++) {
			struct twheel_table_change *c = &changes[i];

			if (c->number >= table->nr)
				c->result = -ERANGE;
			else if (is_stop(c))
				c->result = call_result(c, stop_failed, stop++->result);
			else
				c->result = call_result(c, start_failed, start++->result);
			nr_done += c->result >= 0;
		}
	}
	return nr_done;
}

static int32_t device_fetch(struct twheel_table *table, uint32_t *numbers, uint32_t nr)
{
	struct twheel_event events[VECTOR];
	uint32_t nr_events, room, got = 0, i;
	ssize_t bytes;

	do {
		room = nr - got < VECTOR ? nr - got : VECTOR;
		bytes = read(twheel_device_fd(table->device), events, room * sizeof(*events));
		if (bytes <= 0) {
			if (got || (bytes < 0 && errno == EAGAIN))
				break;
			return bytes < 0 ? -errno : -ESHUTDOWN;
		}
		nr_events = (uint32_t)((size_t)bytes / sizeof(*events));
		for (i = 0; i < nr_events; i++) {
			/* What was drained has not expired; other keys are not the table's. */
			if (events[i].count && events[i].user_data < table->nr)
				numbers[got++] = (uint32_t)events[i].user_data;
		}
	} while (got < nr && nr_events == room);
	return (int32_t)got;
}

static int32_t device_state(struct twheel_table *table, uint32_t number, uint64_t *deadline_ns)
{
	struct twheel_status status = { .id = number };
	int32_t ret = twheel_device_query_key(table->device, &status);

	if (ret < 0)
		return ret == -ENOENT ? TWHEEL_TABLE_IDLE : ret;
	if (status.state == TWHEEL_STATE_EXPIRED)
		return TWHEEL_TABLE_UNREAD;
	if (status.state != TWHEEL_STATE_PENDING)
		return TWHEEL_TABLE_IDLE;
	*deadline_ns = status.deadline_ns;
	return TWHEEL_TABLE_PENDING;
}

static uint64_t device_next(struct twheel_table *table)
{
	struct twheel_info info;

	if (twheel_device_info(table->device, &info, 0) < 0 || info.unread)
		return 0;
	return info.next_expiry_ns;
}

/* ---- open and close ------------------------------------------------------ */

static int32_t options_get(struct twheel_table_options *to,
			   const struct twheel_table_options *from)
{
	int ret = options_copy(to, sizeof(*to), sizeof(*to), from);

	if (ret)
		return ret;
	if (to->backend == TWHEEL_TABLE_AUTO)
		to->backend = to->flags || to->fd ? TWHEEL_TABLE_DEVICE : TWHEEL_TABLE_PROCESS;
	if (!to->tick_ns)
		to->tick_ns = TWHEEL_MSEC;
	if (to->backend > TWHEEL_TABLE_DEVICE || to->flags & ~TWHEEL_TABLE_PROCESSES ||
	    to->clock > TWHEEL_TABLE_VIRTUAL || to->reserved || (to->fd && to->fd <= 2) ||
	    (to->backend == TWHEEL_TABLE_PROCESS && (to->flags || to->fd)))
		return -EINVAL;
	return 0;
}

static int32_t process_open(struct twheel_table *table, const struct twheel_table_options *o)
{
	const struct twheel_options options = {
		.size = sizeof(options),
		.clock = o->clock,
		.tick_ns = o->tick_ns,
		.data = table,
	};

	table->tick_ns = o->tick_ns;
	pthread_mutex_init(&table->lock, NULL);
	return twheel_open(&table->wheel, &options);
}

/* Whether a wheel is a table of so many numbers; it is made non-blocking then. */
static int32_t device_check(const struct twheel_table *table)
{
	int fd = twheel_device_fd(table->device), flags;
	struct twheel_info info;
	int32_t ret = twheel_device_info(table->device, &info, TWHEEL_INFO_NO_WALK);

	if (ret < 0)
		return ret;
	if (!(info.setup_flags & TWHEEL_SETUP_KEYED) || info.max_pending != table->nr + SPARE ||
	    info.event_size != sizeof(struct twheel_event))
		return -EINVAL;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
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
	int32_t fd, ret;

	if (!o->fd) {
		ret = twheel_device_open(&table->device, NULL, 0, &setup);
		return ret < 0 ? ret : device_check(table);
	}
	/* If this fails, the descriptor of the caller is as it was. */
	fd = fcntl(o->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (fd < 0)
		return -errno;
	ret = twheel_device_adopt(&table->device, fd, &setup);
	if (ret < 0)
		close(fd);
	else
		ret = device_check(table);
	if (ret == 0)
		close(o->fd);
	return ret;
}

int32_t twheel_table_open(struct twheel_table **table, uint32_t nr,
			  const struct twheel_table_options *options)
{
	struct twheel_table_options o;
	struct twheel_table *new;
	int32_t ret = options_get(&o, options);
	size_t nr_timers = o.backend == TWHEEL_TABLE_PROCESS ? nr : 0;

	*table = NULL;
	if (ret < 0)
		return ret;
	if (!nr || nr > NUMBERS_MAX)
		return -EINVAL;
	if (nr_timers > (PTRDIFF_MAX - sizeof(*new)) / sizeof(new->timers[0]))
		return -ENOMEM;
	new = calloc(1, sizeof(*new) + nr_timers * sizeof(new->timers[0]));
	if (!new)
		return -ENOMEM;
	new->nr = nr;
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

/* ---- the functions ------------------------------------------------------- */

int32_t twheel_table_apply(struct twheel_table *table, struct twheel_table_change *changes,
			   uint32_t nr, uint32_t flags)
{
	if (flags & ~TWHEEL_TABLE_AFTER || nr > INT32_MAX)
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

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * TWHEEL_SEC + (uint64_t)now.tv_nsec;
}

/* Sleep until the descriptor is readable, or the monotonic clock says so. */
static int32_t sleep_until(int32_t fd, uint64_t now_ns, uint64_t end_ns)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	uint64_t left_ns = end_ns - now_ns;
	const struct timespec left = {
		.tv_sec = (time_t)(left_ns / TWHEEL_SEC),
		.tv_nsec = (long)(left_ns % TWHEEL_SEC),
	};

	if (ppoll(&poll_fd, 1, end_ns < NONE_NS ? &left : NULL, NULL) < 0)
		return -errno;
	return poll_fd.revents & POLLNVAL ? -EBADF : 0;
}

int32_t twheel_table_expired(struct twheel_table *table, uint32_t *numbers, uint32_t nr,
			     uint64_t timeout_ns)
{
	uint64_t end_ns = timeout_ns ? add_ns(monotonic_ns(), timeout_ns) : 0, now_ns;
	int32_t fd, ret;

	if (!nr)
		return -EINVAL;
	if (nr > INT32_MAX)
		nr = INT32_MAX;
	for (;;) {
		ret = table->device ? device_fetch(table, numbers, nr) :
				      process_fetch(table, numbers, nr);
		if (ret || !timeout_ns)
			return ret;
		now_ns = monotonic_ns();
		if (now_ns >= end_ns)
			return 0;
		fd = twheel_table_fd(table);
		ret = fd < 0 ? fd : sleep_until(fd, now_ns, end_ns);
		if (ret < 0)
			return ret;
	}
}

int32_t twheel_table_state(struct twheel_table *table, uint32_t number, uint64_t *deadline_ns)
{
	uint64_t deadline = TWHEEL_TABLE_NEVER;
	int32_t ret;

	if (number >= table->nr)
		ret = -ERANGE;
	else if (table->device)
		ret = device_state(table, number, &deadline);
	else
		ret = process_state(table, number, &deadline);
	if (deadline_ns && ret >= 0)
		*deadline_ns = deadline;
	return ret;
}

int32_t twheel_table_fd(struct twheel_table *table)
{
	return table->device ? twheel_device_fd(table->device) : process_fd(table);
}

uint64_t twheel_table_next(struct twheel_table *table)
{
	uint64_t next_ns;

	if (table->device)
		return device_next(table);
	pthread_mutex_lock(&table->lock);
	next_ns = twheel_next(table->wheel);
	pthread_mutex_unlock(&table->lock);
	return next_ns;
}

uint64_t twheel_table_now(struct twheel_table *table)
{
	uint64_t now_ns = 0;

	if (table->device) {
		twheel_device_now(table->device, &now_ns);
		return now_ns;
	}
	pthread_mutex_lock(&table->lock);
	now_ns = twheel_update(table->wheel);
	pthread_mutex_unlock(&table->lock);
	return now_ns;
}

int32_t twheel_table_advance(struct twheel_table *table, uint64_t to_ns)
{
	int32_t ret;

	if (table->device)
		return to_ns < NONE_NS ? twheel_device_advance(table->device, to_ns) : -EINVAL;
	pthread_mutex_lock(&table->lock);
	ret = to_ns < NONE_NS ? twheel_advance(table->wheel, to_ns) : -EINVAL;
	pthread_mutex_unlock(&table->lock);
	return ret;
}
