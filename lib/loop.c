// SPDX-License-Identifier: MIT
/*
 * loop.c - the clock, the descriptor, dispatch, sleep
 *
 * A callback may close any wheel, throw, or leave by longjmp().  So all that a dispatch knows
 * is in the wheel, and a timer has left the list DUE before it is called.  A wheel that is closed
 * in a callback stays until its outermost dispatch is over, without timers, descriptor and lock.
 * Nothing is known by thread: another copy of the library may have closed the wheel, and a
 * callback that is a coroutine may return on another thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "wheel.h"

/* Flags of wheels whose callbacks need more than a call. */
#define CALLS_SPECIALLY	(TWHEEL_SHARED | TWHEEL_MEASURE)

/* The clock that is read; with the caller's clock there is real time only where it waits. */
static clockid_t clock_id(const struct twheel *w)
{
	static const clockid_t ids[] = {
		[TWHEEL_MONOTONIC] = CLOCK_MONOTONIC, [TWHEEL_BOOTTIME] = CLOCK_BOOTTIME,
		[TWHEEL_REALTIME] = CLOCK_REALTIME, [TWHEEL_TAI] = CLOCK_TAI,
		[TWHEEL_CALLER] = CLOCK_MONOTONIC,
	};

	return ids[w->options.clock];
}

uint64_t loop_clock(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * TWHEEL_SEC + (uint64_t)now.tv_nsec;
}

/* 0 for the caller's clock. */
uint64_t loop_read(const struct twheel *w)
{
	return w->options.clock == TWHEEL_CALLER ? 0 : loop_clock(clock_id(w));
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / TWHEEL_SEC), .tv_nsec = (long)(ns % TWHEEL_SEC),
	};
}

inline uint64_t loop_update(struct twheel *w)
{
	if (likely(w->options.clock != TWHEEL_CALLER)) {
		w->clock_ns = loop_clock(clock_id(w));
		if (unlikely((w->clock_ns | KEY) < w->passed_by))
			wheel_rewind(w, last_edge(w));
	}
	if (likely(!is_immediate(w)))
		w->head.now = w->clock_ns | KEY;
	return w->clock_ns;
}

void loop_end_turn(struct twheel *w)
{
	/* It stays so in a wheel that threads share, who read it without the lock. */
	if (w->head.now != NO_KEY)
		w->head.now = NO_KEY;
}

EXPORT uint64_t twheel_update(struct twheel *w)
{
	LOCKED(w);
	return loop_update(w);
}

EXPORT uint64_t twheel_now(struct twheel *w)
{
	LOCKED(w);
	return loop_turn_ns(w);
}

inline uint64_t loop_wake_ns(struct twheel *w)
{
	uint64_t ns;

	if (unlikely(w->at_once) || !first_is_known(w))
		wheel_find_next(w);
	/* A time that has passed, even if the clock was set back since it was read. */
	if (unlikely(w->at_once))
		return can_be_set(w->options.clock) ? 1 : w->clock_ns;
	if (w->head.next == NO_KEY)
		return TWHEEL_NEVER;
	ns = (w->head.next ^ KEY) + w->edge_ns - 1;
	ns -= ns % w->edge_ns;
	/* There may be no edge between it and the end of time. */
	return ns < END_NS ? ns : TWHEEL_NEVER;
}

/*
 * Return 0 to leave it unset, as a time of the caller's clock is that has not passed.  timerfd
 * knows no TAI, which is whole seconds ahead of the real time.
 */
static uint64_t timerfd_ns(const struct twheel *w, uint64_t ns)
{
	uint64_t ahead;

	if (ns == TWHEEL_NEVER)
		return 0;
	if (w->options.clock == TWHEEL_CALLER)
		return ns <= w->clock_ns;
	if (w->options.clock == TWHEEL_TAI) {
		/* A thread that is held up between the two is too early, not too late. */
		ahead = loop_clock(CLOCK_REALTIME);
		ahead = loop_clock(CLOCK_TAI) - ahead;
		ns -= min64(ns, ahead - ahead % TWHEEL_SEC);
	}
	return max64(ns, 1);
}

static int set_timerfd(const struct twheel *w, int fd, uint64_t ns)
{
	int cancel = can_be_set(w->options.clock) ? TFD_TIMER_CANCEL_ON_SET : 0;
	struct itimerspec when = { .it_value = to_timespec(ns) };

	return timerfd_settime(fd, TFD_TIMER_ABSTIME | cancel, &when, NULL);
}

/* Make the descriptor readable. */
static void ring(const struct twheel *w, int fd)
{
	set_timerfd(w, fd, 1);
}

static int settime(struct twheel *w, uint64_t ns)
{
	/* ECANCELED: it is set, and the clock was set since it was set before. */
	int ret = set_timerfd(w, w->fd, timerfd_ns(w, ns)) < 0 && errno != ECANCELED ? -errno : 0;

	/* If this failed, the next flush tries again. */
	w->set_ns = ret ? TWHEEL_NEVER : ns;
	w->readable = false;
	w->stats.settings++;
	/* A wake may have come before this.  Pairs with twheel_wake(), which notes it first. */
	if (unlikely(__atomic_load_n(&w->rung, __ATOMIC_SEQ_CST)))
		ring(w, w->fd);
	return ret;
}

#if ONLY_POSIX
#define make_fd(w)	((void)(w), -ENOSYS)

int loop_sleep(int fd, clockid_t id, uint64_t end_ns)
{
	(void)id;
	(void)end_ns;
	return fd;
}
#else
static int make_fd(const struct twheel *w)
{
	clockid_t id = w->options.clock == TWHEEL_TAI ? CLOCK_REALTIME : clock_id(w);
	int low, fd = timerfd_create(id, TFD_NONBLOCK | TFD_CLOEXEC);

	/* A daemon gives 0 to 2 to others. */
	if (fd >= 0 && fd <= 2) {
		low = fd;
		fd = fcntl(low, F_DUPFD_CLOEXEC, 3);
		close(low);
	}
	return fd < 0 ? -errno : fd;
}

/* Sleep until a descriptor is readable, or a clock has come to a time. */
int loop_sleep(int fd, clockid_t id, uint64_t end_ns)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	uint64_t now_ns = loop_clock(id);
	struct timespec left = to_timespec(end_ns > now_ns ? end_ns - now_ns : 0);

	if (fd < 0)
		return fd;
	if (ppoll(&pollfd, 1, end_ns < END_NS ? &left : NULL, NULL) < 0)
		return -errno;
	return pollfd.revents & POLLNVAL ? -EBADF : 0;
}
#endif

/* If the first deadline has become later, let the program wake up once. */
int loop_set_fd(struct twheel *w)
{
	uint64_t ns;

	if (w->fd < 0)
		return 0;
	ns = loop_wake_ns(w);
	/* A callback that dispatches or moves the clock may have made it readable. */
	if (w->readable || ns < w->set_ns || (ns == TWHEEL_NEVER && w->set_ns != ns) ||
	    (ns > w->clock_ns && w->set_ns <= w->clock_ns))
		return settime(w, ns);
	return 0;
}

EXPORT int twheel_fd(struct twheel *w)
{
	int fd, state;

	LOCKED(w);
	if (w->fd < 0) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		fd = make_fd(w);
		pthread_setcancelstate(state, NULL);
		w->set_ns = TWHEEL_NEVER;
		__atomic_store_n(&w->fd, fd, __ATOMIC_SEQ_CST);
		loop_set_fd(w);
		/* As if it had been there then. */
		if (fd >= 0 && __atomic_load_n(&w->woken, __ATOMIC_SEQ_CST)) {
			__atomic_store_n(&w->rung, true, __ATOMIC_SEQ_CST);
			ring(w, fd);
		}
	}
	return w->fd;
}

EXPORT int twheel_flush(struct twheel *w)
{
	LOCKED(w);
	loop_end_turn(w);
	return loop_set_fd(w);
}

EXPORT uint64_t twheel_next(struct twheel *w)
{
	LOCKED(w);
	loop_end_turn(w);
	return loop_wake_ns(w);
}

/*
 * Signal handlers may call this, so it takes no lock.  If another thread sets the descriptor
 * after it was rung here, it rings again in settime().  If another thread dispatches between
 * the first note and the ring, the second note makes the next dispatch set the descriptor anew.
 */
EXPORT void twheel_wake(struct twheel *w)
{
	int fd, error = errno;

	__atomic_store_n(&w->woken, true, __ATOMIC_SEQ_CST);
	__atomic_store_n(&w->rung, true, __ATOMIC_SEQ_CST);
	fd = __atomic_load_n(&w->fd, __ATOMIC_SEQ_CST);
	if (fd >= 0) {
		ring(w, fd);
		__atomic_store_n(&w->rung, true, __ATOMIC_SEQ_CST);
	}
	errno = error;
}

/* The timer is in no list. */
void loop_place(struct twheel *w, struct twheel_timer *t, uint64_t ns)
{
	/* 0 is for a timer that does not pend. */
	t->deadline = ns | (t->interval_ns && ns ? 0 : KEY);
	if (unlikely(ns >= (t->interval_ns ? NEVER : END_NS)))
		t->deadline = NEVER;
	wheel_place(w, t, w->clock_ns | KEY);
}

EXPORT uint64_t twheel_periods(const struct twheel *w)
{
	return w->periods;
}

static void begin_period(struct twheel *w, struct twheel_timer *t)
{
	uint64_t interval_ns = t->interval_ns & ~FIXED_DELAY, ns = t->deadline & ~KEY;
	uint64_t now_ns = w->options.clock == TWHEEL_CALLER ? w->clock_ns : loop_read(w);

	if (t->interval_ns & FIXED_DELAY) {
		/* If the callback does not return, the timer expires after a period. */
		t->deadline = min64(time_add(now_ns, interval_ns), NEVER - 1);
		push(&w->list[IN_CALLBACK], t);
		w->head.next = min64(w->head.next, key_of(t));
		w->first = NULL;
		return;
	}
	if (now_ns > ns)
		w->periods += (now_ns - ns) / interval_ns;
	/* Less than 2^64: all periods but the last one are in the past. */
	loop_place(w, t, time_add(ns, w->periods * interval_ns));
}

/*
 * The timer was called at one address, and may have moved to the other.  If its callback has
 * stopped or restarted it, it is in another list, or gone.
 */
static void end_period(struct twheel *w, const struct twheel_timer *called,
		       const struct twheel_timer *moved)
{
	struct twheel_timer *t = w->list[IN_CALLBACK];

	while (t != called && t != moved && t != &w->end)
		t = t->next;
	if (t == &w->end)
		return;
	unlink_timer(t);
	loop_place(w, t, time_add(loop_update(w), t->interval_ns & ~FIXED_DELAY));
}

/* If a thread is in the callback of a timer, return where this is noted. */
struct twheel_timer **loop_callback_of(struct twheel *w, const struct twheel_timer *t)
{
	uint32_t i;

	for (i = w->callbacks; i-- && w->callbacks - i <= CALLBACKS_MAX;)
		if (w->calling[i % CALLBACKS_MAX] == t)
			return &w->calling[i % CALLBACKS_MAX];
	return NULL;
}

/* A dispatch that is under way, on the stack, and the callback that it is in. */
struct pass {
	struct twheel *w;
	uint64_t periods;		/* of the wheel before it */
	bool dispatched;		/* as well */
	bool has_returned;
	uint32_t nr;			/* of callbacks around the one of call_specially() */
	struct twheel_timer **calling;	/* where its timer is noted; NULL: there is none */
	struct twheel_timer *outer;	/* the timer that was noted there before */
};

/*
 * Stop the timer for the threads in twheel_stop_sync(): if they did it themselves, it might be
 * called again before each of them has the lock.
 */
static void call_is_over(struct pass *pass)
{
	struct twheel *w = pass->w;
	struct twheel_timer *t = *pass->calling;
	struct waiter **link = &w->waiters, *waiter;

	*pass->calling = pass->outer;
	pass->calling = NULL;
	w->callbacks = pass->nr;
	while (unlikely(waiter = *link)) {
		if (waiter->t == t)
			waiter->was_pending |= stop_timer(t);
		if (waiter->t == t && !loop_callback_of(w, t)) {
			*link = waiter->next;
			waiter->t = NULL;
			pthread_cond_broadcast(&w->returned);
		} else {
			link = &waiter->next;
		}
	}
}

static APART void free_closed(struct twheel *w)
{
	if (w->closed && !w->dispatched)
		free(w->memory);
}

/*
 * If a dispatch has not returned, a callback has thrown, or its thread was cancelled in it, and
 * nobody else will free a wheel that was closed.  Such a wheel is not shared.
 */
static inline void end_pass(struct pass *pass)
{
	struct twheel *w = pass->w;

	if (unlikely(!pass->has_returned)) {
		lock(w);
		if (pass->calling)
			call_is_over(pass);
	}
	w->periods = pass->periods;
	w->dispatched = pass->dispatched;
	if (unlikely(!pass->has_returned)) {
		unlock(w);
		free_closed(w);
	}
}

static APART void call_specially(struct twheel *w, struct twheel_timer *t, struct pass *pass)
{
	bool periodic = is_periodic(t);
	struct twheel_timer *moved;
	uint64_t took_ns = 0;

	if (periodic)
		begin_period(w, t);
	else
		t->deadline = 0;
	/* The place may be that of a callback around this one, or of one that left by longjmp(). */
	pass->nr = w->callbacks++;
	pass->calling = &w->calling[pass->nr % CALLBACKS_MAX];
	pass->outer = *pass->calling;
	*pass->calling = t;
	if (unlikely(w->head.shared))
		w->thread = pthread_self();
	unlock(w);
	if (w->options.flags & TWHEEL_MEASURE)
		took_ns -= loop_clock(CLOCK_MONOTONIC);
	t->callback(w, t);
	if (w->options.flags & TWHEEL_MEASURE)
		took_ns += loop_clock(CLOCK_MONOTONIC);
	lock(w);
	if (unlikely(took_ns > w->stats.slowest_ns))
		w->stats.slowest_ns = took_ns;
	moved = *pass->calling;
	call_is_over(pass);
	if (!periodic)
		return;
	w->periods = 1;
	end_period(w, t, moved);
}

/* A dispatch has left something over. */
static bool is_unfinished(const struct twheel *w)
{
	return w->list[DUE] != &w->end || w->list[PASSED_NOW] != &w->end ||
		w->head.base < w->target;
}

/* Timers that are due by the edge come first, then those that had passed, by their starts. */
static void begin_dispatch(struct twheel *w, uint64_t edge)
{
	struct twheel_timer **to = &w->list[PASSED_NOW];

	w->target = edge;
	w->passed_by = w->clock_ns | KEY;
	/* If no slot has come up, those that have passed are all. */
	if (edge < w->head.next) {
		w->head.base = max64(edge, w->head.base);
		w->due_by = w->passed_by;
		to = &w->list[DUE];
	}
	move_by(w, &w->list[PASSED_NEXT], to, NO_KEY);
	/* Those whose callbacks have not returned, and will not. */
	move_by(w, &w->list[IN_CALLBACK], &w->list[PASSED_NOW], w->target);
}

/* Call so many timers at most, and return how many are left of these. */
static unsigned int call_due(struct twheel *w, struct pass *pass, unsigned int left)
{
	struct twheel_timer *end = &w->end, *t;
	uint64_t deadline;

	while ((t = w->list[DUE]) != end || (is_unfinished(w) && wheel_turn(w))) {
		if (t == end)
			continue;
		deadline = t->deadline;
		/* The timer has been restarted for later. */
		if (unlikely((deadline | KEY) > w->due_by)) {
			unlink_timer(t);
			w->stats.moved++;
			wheel_place(w, t, w->head.base);
			if (--w->budget <= 0)
				break;
			continue;
		}
		if (unlikely(!left))
			break;
		left--;
		w->list[DUE] = t->next;
		t->next->pprev = &w->list[DUE];
		/* The bucket is the number of bits of the lateness. */
		w->stats.late[_TWHEEL_BIT((w->clock_ns - deadline) << 1 | 1)]++;
		PROBE(expire, w, t, deadline & ~KEY, w->clock_ns - (deadline & ~KEY));
		if (likely(!is_periodic(t)) && likely(!(w->options.flags & CALLS_SPECIALLY))) {
			t->deadline = 0;
			t->callback(w, t);
		} else {
			call_specially(w, t, pass);
		}
	}
	return left;
}

/* True as well if the descriptor is readable. */
static APART bool clock_was_set(const struct twheel *w)
{
	uint64_t expirations;
	bool was_set;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	was_set = read(w->fd, &expirations, sizeof(expirations)) >= 0 || errno == ECANCELED;
	pthread_setcancelstate(state, NULL);
	return was_set;
}

/*
 * Return the edge by which something may be due.  If nothing is, turn the wheel to the last edge,
 * and return 0.
 */
static inline uint64_t edge_to_dispatch(struct twheel *w)
{
	bool rung = unlikely(__atomic_load_n(&w->rung, __ATOMIC_RELAXED)) &&
		__atomic_exchange_n(&w->rung, false, __ATOMIC_SEQ_CST);
	uint64_t edge;

	loop_update(w);
	if (w->fd >= 0 && (rung || w->clock_ns >= w->set_ns ||
			   (can_be_set(w->options.clock) && !w->readable && clock_was_set(w))))
		w->readable = true;
	edge = last_edge(w);
	if (edge >= w->head.next || w->at_once)
		return edge;
	if (edge > w->head.base) {
		w->head.base = edge;
		w->target = edge;
		w->passed_by = edge;
	}
	if (unlikely(w->readable) && is_immediate(w))
		loop_set_fd(w);
	return 0;
}

/* If the dispatch before has left something over, go on there: nothing comes in between. */
static APART int dispatch(struct twheel *w, uint64_t edge, unsigned int max)
{
	struct pass pass __attribute__((__cleanup__(end_pass))) = {
		.w = w, .periods = w->periods, .dispatched = w->dispatched,
	};
	unsigned int left = max;
	bool begins;

	w->dispatched = true;
	/* A callback may have left by longjmp(). */
	w->periods = 1;
	w->stats.dispatches++;
	w->budget = WHEEL_BUDGET;
	do {
		begins = !is_unfinished(w);
		if (begins)
			begin_dispatch(w, edge);
		left = call_due(w, &pass, left);
		/* If all of that has been stopped or restarted since, begin. */
	} while (!begins && left == max && !is_unfinished(w));
	w->stats.vain += left == max;
	PROBE(pass, w, max - left);
	if (w->head.next <= w->target)
		wheel_look_ahead(w, max - left);
	wheel_find_next(w);
	if (is_immediate(w))
		loop_set_fd(w);
	pass.has_returned = true;
	return (int)(max - left);
}

inline int loop_dispatch(struct twheel *w, unsigned int max)
{
	uint64_t edge = edge_to_dispatch(w);

	return edge ? dispatch(w, edge, max) : 0;
}

EXPORT int twheel_dispatch(struct twheel *w, unsigned int max)
{
	int called;

	if (!max || max > INT32_MAX)
		max = INT32_MAX;
	lock(w);
	called = is_elsewhere(w) ? -EBUSY : loop_dispatch(w, max);
	unlock(w);
	if (called > 0 && unlikely(w->closed))
		free_closed(w);
	return called;
}

static int sleep_until(struct twheel *w, clockid_t id, uint64_t end_ns)
{
	uint64_t ns = twheel_next(w);
	struct timespec until;

	/* The caller's clock stands still: now, or at the end. */
	if (w->options.clock == TWHEEL_CALLER)
		ns = ns > w->clock_ns ? TWHEEL_NEVER : 0;
	until = to_timespec(min64(ns, end_ns));
	return -clock_nanosleep(id, TIMER_ABSTIME, &until, NULL);
}

/* The descriptor wakes it up if another thread starts a timer. */
static int sleep_shared(struct twheel *w, clockid_t id, uint64_t end_ns)
{
	int fd = twheel_fd(w), ret = twheel_flush(w);

	return ret < 0 ? ret : loop_sleep(fd, id, end_ns);
}

EXPORT int twheel_wait(struct twheel *w, uint64_t timeout_ns)
{
	clockid_t id = clock_id(w);
	uint64_t end_ns = time_add(loop_clock(id), timeout_ns);
	bool woken;
	int ret = 0;

	do {
		if (!__atomic_load_n(&w->woken, __ATOMIC_RELAXED))
			ret = w->head.shared ? sleep_shared(w, id, end_ns) :
					       sleep_until(w, id, end_ns);
		woken = __atomic_exchange_n(&w->woken, false, __ATOMIC_RELAXED);
		if (!ret)
			ret = twheel_dispatch(w, 0);
		/* After an error, it is for the next wait; else the wheel may be gone. */
		if (woken && ret < 0)
			__atomic_store_n(&w->woken, true, __ATOMIC_RELAXED);
	} while (!ret && !woken && loop_clock(id) < end_ns);
	return ret;
}

EXPORT int twheel_advance(struct twheel *w, uint64_t to_ns)
{
	if (w->options.clock != TWHEEL_CALLER)
		return -EOPNOTSUPP;
	LOCKED(w);
	if (to_ns < w->clock_ns || to_ns >= NEVER)
		return -EINVAL;
	w->clock_ns = to_ns;
	loop_update(w);
	return w->fd < 0 ? 0 : settime(w, loop_wake_ns(w));
}
