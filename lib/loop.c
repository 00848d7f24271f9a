// SPDX-License-Identifier: MIT
/*
 * loop.c - what a program does with a wheel: start and stop, clock, dispatch, sleep
 *
 * A callback may close any wheel, throw, or leave by longjmp().  So all that a dispatch knows
 * is in the wheel, and a timer has left the list of those that are due before it is called.
 * Each thread has a list of the wheels whose callbacks it is in, innermost first, linked in
 * the wheels.  twheel_close() takes a wheel out of it: thereby the dispatch knows, when a
 * callback has returned, whether the wheel is still there.
 *
 * In a shared wheel each function takes the lock, and a dispatch drops it for each callback.
 * The functions that are inline leave shared wheels to the _slow ones: now is always 0 there.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/timerfd.h>
#endif

#include "loop.h"

/* Flags of wheels whose callbacks need more than a call. */
#define CALLS_SPECIALLY	(TWHEEL_SHARED | TWHEEL_MEASURE)

/* What twheel_wake() sets the descriptor to. */
#define WOKEN	0

/* The wheels whose callbacks this thread is in. */
static _Thread_local struct twheel *inside;

bool loop_is_inside(const struct twheel *w)
{
	const struct twheel *in = inside;

	while (in && in != w)
		in = in->outer;
	return in;
}

/* Returns whether this thread was not in a callback of this wheel. */
bool loop_enter(struct twheel *w)
{
	if (loop_is_inside(w))
		return false;
	w->outer = inside;
	inside = w;
	return true;
}

void loop_leave(struct twheel *w)
{
	struct twheel **in = &inside;

	while (*in && *in != w)
		in = &(*in)->outer;
	if (*in)
		*in = w->outer;
}

/* ---- the clock ------------------------------------------------------------ */

static clockid_t clock_id(const struct twheel *w)
{
	switch (w->clock) {
#ifdef __linux__
	case TWHEEL_BOOTTIME:
		return CLOCK_BOOTTIME;
	case TWHEEL_TAI:
		return CLOCK_TAI;
#endif
	case TWHEEL_REALTIME:
		return CLOCK_REALTIME;
	default:
		return CLOCK_MONOTONIC;
	}
}

static uint64_t read_clock(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * TWHEEL_SEC + (uint64_t)now.tv_nsec;
}

static bool clock_can_be_set(const struct twheel *w)
{
	return w->clock == TWHEEL_REALTIME || w->clock == TWHEEL_TAI;
}

/* The key of the last edge of a tick. */
static uint64_t last_edge(const struct twheel *w)
{
	uint64_t passed = (w->clock_ns | KEY) - w->target;

	if (likely(passed < 2 * w->edge_ns))
		return passed < w->edge_ns ? w->target : w->target + w->edge_ns;
	return (w->clock_ns - w->clock_ns % w->edge_ns) | KEY;
}

uint64_t loop_update(struct twheel *w)
{
	if (likely(w->clock != TWHEEL_VIRTUAL)) {
		w->clock_ns = read_clock(clock_id(w));
		if (unlikely((w->clock_ns | KEY) < w->ready_by))
			wheel_rewind(w, w->clock_ns | KEY, last_edge(w));
	}
	if (!is_immediate(w))
		w->head.now = w->clock_ns | KEY;
	return w->clock_ns;
}

uint64_t loop_turn_ns(struct twheel *w)
{
	return w->head.now ? w->clock_ns : loop_update(w);
}

void loop_end_turn(struct twheel *w)
{
	/* It is 0 for ever in a wheel that threads share, who read it without the lock. */
	if (w->head.now && w->clock != TWHEEL_VIRTUAL)
		w->head.now = 0;
}

EXPORT uint64_t twheel_update(struct twheel *w)
{
	uint64_t ns;

	lock(w);
	ns = loop_update(w);
	unlock(w);
	return ns;
}

EXPORT uint64_t twheel_now(struct twheel *w)
{
	uint64_t ns;

	lock(w);
	ns = loop_turn_ns(w);
	unlock(w);
	return ns;
}

/* ---- the descriptor -------------------------------------------------------- */

/* A time that has passed, even if the clock was set back since it was read. */
static uint64_t passed_ns(const struct twheel *w)
{
	return clock_can_be_set(w) ? 1 : w->clock_ns;
}

/* When to wake up: at the edge of a tick. */
static uint64_t wake_ns(struct twheel *w)
{
	uint64_t ns;

	/* The timer that was the first one has been stopped, or none is known. */
	if (!w->first || (w->earliest ? *w->first != w->earliest : is_empty(w, *w->first)))
		wheel_find_next(w);
	if (w->head.next <= w->head.base)
		return passed_ns(w);
	if (w->head.next == NO_KEY)
		return TWHEEL_NEVER;
	/* Usually it is the next edge, and there is no need to divide. */
	if (w->head.next - w->target <= w->edge_ns) {
		ns = (w->target + w->edge_ns) ^ KEY;
	} else {
		ns = time_add(w->head.next ^ KEY, w->edge_ns - 1);
		ns -= ns % w->edge_ns;
	}
	/* There may be no edge between it and the end of time. */
	return ns < (w->head.next ^ KEY) || ns >= END_NS ? TWHEEL_NEVER : ns;
}

#ifdef __linux__
/* timerfd knows no TAI, which is whole seconds ahead of the real time. */
static uint64_t to_timerfd(const struct twheel *w, uint64_t ns)
{
	uint64_t ahead;

	if (w->clock == TWHEEL_TAI) {
		ahead = read_clock(CLOCK_TAI) - read_clock(CLOCK_REALTIME) + TWHEEL_SEC / 2;
		ns -= min64(ns, ahead - ahead % TWHEEL_SEC);
	}
	return ns ? ns : 1;
}

static int settime(struct twheel *w, uint64_t ns)
{
	int flags = TFD_TIMER_ABSTIME | (clock_can_be_set(w) ? TFD_TIMER_CANCEL_ON_SET : 0);
	struct itimerspec when = { .it_value.tv_sec = 0 };
	int ret;

	w->set_ns = ns;
	w->readable = false;
	/* The virtual clock: at once, or not. */
	if (w->clock == TWHEEL_VIRTUAL && ns > w->clock_ns)
		ns = TWHEEL_NEVER;
	if (ns != TWHEEL_NEVER) {
		ns = to_timerfd(w, w->clock == TWHEEL_VIRTUAL ? 0 : ns);
		when.it_value.tv_sec = (time_t)(ns / TWHEEL_SEC);
		when.it_value.tv_nsec = (long)(ns % TWHEEL_SEC);
	}
	w->stats.settings++;
	ret = timerfd_settime(w->fd, flags, &when, NULL);
	/* It is set, and says that the clock was set since it was set before. */
	if (ret < 0 && errno == ECANCELED)
		ret = timerfd_settime(w->fd, flags, &when, NULL);
	if (ret == 0)
		return 0;
	/* So that the next flush tries again. */
	w->set_ns = TWHEEL_NEVER;
	return -errno;
}

static int make_fd(const struct twheel *w)
{
	clockid_t id = w->clock == TWHEEL_TAI ? CLOCK_REALTIME : clock_id(w);
	int low, fd = timerfd_create(id, TFD_NONBLOCK | TFD_CLOEXEC);

	/* A daemon gives 0 to 2 to others. */
	if (fd >= 0 && fd <= 2) {
		low = fd;
		fd = fcntl(low, F_DUPFD_CLOEXEC, 3);
		close(low);
	}
	return fd < 0 ? -errno : fd;
}
#else
static int settime(struct twheel *w, uint64_t ns)
{
	(void)w;
	(void)ns;
	return 0;
}

static int make_fd(const struct twheel *w)
{
	(void)w;
	return -EOPNOTSUPP;
}
#endif

/*
 * If the first deadline has become later, the descriptor stays as it is: at worst the program
 * wakes up once.  After twheel_wake() it stays readable until a dispatch has noted it.
 */
static bool may_stay_set(const struct twheel *w, uint64_t ns)
{
	if (w->readable || w->set_ns == WOKEN)
		return !w->readable;
	if (ns < w->set_ns || (ns == TWHEEL_NEVER && w->set_ns != ns))
		return false;
	/* A callback that dispatches or moves the clock may have made it readable. */
	return w->set_ns > w->clock_ns || ns <= w->clock_ns;
}

int loop_set_fd(struct twheel *w)
{
	uint64_t ns;

	if (w->fd < 0)
		return 0;
	ns = wake_ns(w);
	return may_stay_set(w, ns) ? 0 : settime(w, ns);
}

EXPORT int twheel_fd(struct twheel *w)
{
	int fd;

	lock(w);
	if (w->fd < 0) {
		fd = make_fd(w);
		if (fd >= 0) {
			w->fd = fd;
			w->set_ns = TWHEEL_NEVER;
			if (w->woken)
				settime(w, WOKEN);
			else
				loop_set_fd(w);
		}
	} else {
		fd = w->fd;
	}
	unlock(w);
	return fd;
}

EXPORT int twheel_flush(struct twheel *w)
{
	int ret;

	lock(w);
	ret = loop_set_fd(w);
	loop_end_turn(w);
	unlock(w);
	return ret;
}

EXPORT uint64_t twheel_next(struct twheel *w)
{
	uint64_t ns;

	lock(w);
	ns = wake_ns(w);
	loop_end_turn(w);
	unlock(w);
	return ns;
}

EXPORT void twheel_wake(struct twheel *w)
{
	lock(w);
	w->woken = true;
	if (w->fd >= 0)
		settime(w, WOKEN);
	unlock(w);
}

/* ---- dispatch -------------------------------------------------------------- */

/* A timer that is in no list; its deadline, and whether it is periodic. */
void loop_place(struct twheel *w, struct twheel_timer *t, uint64_t ns, bool periodic)
{
	t->deadline = ns | (periodic ? 0 : KEY);
	if (unlikely(ns >= (periodic ? NEVER : END_NS))) {
		t->deadline = NEVER;
		ns = END_NS;
	}
	if (ns <= w->clock_ns)
		wheel_place_soon(w, t);
	else
		wheel_place(w, t);
}

EXPORT uint64_t twheel_periods(const struct twheel *w)
{
	return w->periods;
}

/* A periodic timer, which has left its list, on its way to its callback. */
static COLD void begin_period(struct twheel *w, struct twheel_timer *t)
{
	uint64_t interval_ns = t->interval_ns & ~FIXED_DELAY, ns = t->deadline;
	uint64_t now_ns = w->clock == TWHEEL_VIRTUAL ? w->clock_ns : read_clock(clock_id(w));

	if (t->interval_ns & FIXED_DELAY) {
		/* In case the callback does not return. */
		t->deadline = min64(time_add(now_ns, interval_ns), NEVER - 1);
		push(&w->running, t);
		return;
	}
	if (now_ns > ns)
		w->periods += (now_ns - ns) / interval_ns;
	/* Less than 2^64: all periods but the last one are in the past. */
	loop_place(w, t, time_add(ns, w->periods * interval_ns), true);
}

/* The timer is the first one of those that run: it may have moved since it was called. */
static COLD void end_period(struct twheel *w)
{
	struct twheel_timer *t = w->running;

	unlink_timer(t);
	loop_place(w, t, time_add(loop_update(w), t->interval_ns & ~FIXED_DELAY), true);
}

static void call_measured(struct twheel *w, struct twheel_timer *t)
{
	uint64_t began_ns = read_clock(CLOCK_MONOTONIC), ns;

	t->callback(w, t);
	if (!loop_is_inside(w))
		return;
	ns = read_clock(CLOCK_MONOTONIC) - began_ns;
	if (ns > w->stats.slowest_ns)
		w->stats.slowest_ns = ns;
}

/* Call back with a stop watch, and without the lock. */
static void call_unlocked(struct twheel *w, struct twheel_timer *t)
{
	uint32_t nr = w->callbacks;

	/* If callbacks have left by longjmp(), the first ones are of those. */
	if (nr == CALLBACKS_MAX)
		memmove(w->calling, w->calling + 1, --nr * sizeof(w->calling[0]));
	w->calling[nr] = t;
	w->callbacks = nr + 1;
	unlock(w);
	if (w->flags & TWHEEL_MEASURE)
		call_measured(w, t);
	else
		t->callback(w, t);
	if (!loop_is_inside(w))
		return;
	lock(w);
	w->callbacks = nr;
	if (w->waiting)
		pthread_cond_broadcast(&w->returned);
}

/* Call a timer that is periodic, or of a wheel with flags. */
static COLD void call_specially(struct twheel *w, struct twheel_timer *t)
{
	struct twheel_timer *outer = w->running;
	bool periodic = !(t->deadline & KEY);

	if (periodic)
		begin_period(w, t);
	else
		t->deadline = 0;
	if (w->flags & CALLS_SPECIALLY)
		call_unlocked(w, t);
	else
		t->callback(w, t);
	if (!periodic || !loop_is_inside(w))
		return;
	w->periods = 1;
	/* Otherwise it was stopped or restarted, or has no fixed delay. */
	if (w->running != &w->end && w->running != outer)
		end_period(w);
}

/*
 * A dispatch that begins anew calls what is due by the last edge, and then what was started
 * with a deadline that had passed, in the order of the starts.  If the one before has left
 * something over, it goes on there, so that nothing comes in between.  Returns whether it
 * begins anew.
 */
static bool begin_anew(struct twheel *w)
{
	struct twheel_timer *t, *next;

	if (w->due != &w->end || w->ready != &w->end || w->head.base < w->target)
		return false;
	w->target = last_edge(w);
	w->ready_by = w->clock_ns | KEY;
	while ((t = w->soon) != &w->end) {
		unlink_timer(t);
		push(&w->ready, t);
	}
	/* Those whose callbacks have not returned, and will not. */
	for (t = w->running; t != &w->end; t = next) {
		next = t->next;
		if (key_of(t) <= w->target) {
			unlink_timer(t);
			push(&w->ready, t);
		}
	}
	return true;
}

/*
 * When no timer is left in the list of those that are due: a turn of the wheel goes to the
 * target, and then those have their turn that were ready.  Returns whether it goes on.
 */
static bool fill_due(struct twheel *w)
{
	if (wheel_turn(w))
		return true;
	if (w->head.base < w->target || w->ready == &w->end)
		return false;
	take_list(w, &w->due, &w->ready);
	w->due_by = w->ready_by;
	return true;
}

/*
 * Call what is due, so many at most; the next dispatch goes on there.  Returns how many are
 * left of these.  Then the wheel may be gone.
 */
static unsigned int call_due(struct twheel *w, struct twheel **in, unsigned int left)
{
	struct twheel_timer *end = &w->end, *t;
	uint64_t deadline;

	/* When none is left, it looks whether more is due. */
	left++;
	while ((t = w->due) != end || fill_due(w)) {
		if (t == end)
			continue;
		deadline = t->deadline;
		/* It has been restarted for later. */
		if (unlikely((deadline | KEY) > w->due_by)) {
			unlink_timer(t);
			w->stats.moved++;
			wheel_place(w, t);
			if (--w->budget <= 0)
				break;
			continue;
		}
		if (unlikely(!--left)) {
			left = 1;
			break;
		}
		w->due = t->next;
		t->next->pprev = &w->due;
		/* The bucket is the number of bits of the lateness. */
		w->stats.late[_TWHEEL_BIT((w->clock_ns - deadline) << 1 | 1)]++;
		if (likely(deadline & KEY) && likely(!(w->flags & CALLS_SPECIALLY))) {
			t->deadline = 0;
			t->callback(w, t);
		} else {
			call_specially(w, t);
		}
		if (unlikely(*in != w) && !loop_is_inside(w))
			break;
	}
	return left - 1;
}

/* The clock has come to what the descriptor was set to, or was set. */
static void note_readable(struct twheel *w)
{
	uint64_t expirations;

	if (w->fd < 0 || w->readable)
		return;
	w->readable = w->clock_ns >= w->set_ns ||
		(clock_can_be_set(w) &&
		 (read(w->fd, &expirations, sizeof(expirations)) >= 0 || errno == ECANCELED));
}

/* Read the clock.  If nothing is due, the wheel is turned to the last edge by that. */
static bool is_anything_due(struct twheel *w)
{
	uint64_t edge;

	loop_update(w);
	note_readable(w);
	edge = last_edge(w);
	if (edge >= w->head.next)
		return true;
	if (edge > w->head.base) {
		w->head.base = edge;
		w->target = edge;
	}
	if (unlikely(w->readable) && is_immediate(w))
		loop_set_fd(w);
	return false;
}

/* Returns whether the wheel is still there. */
static bool dispatch(struct twheel *w, unsigned int *left)
{
	unsigned int max = *left;
	struct twheel **in = &inside;
	uint64_t periods = w->periods;
	bool outermost = loop_enter(w), anew;

	/* Otherwise compilers find out the address anew after each callback. */
	__asm__("" : "+r" (in));
	anew = begin_anew(w);
	/* A callback may have left by longjmp(). */
	w->periods = 1;
	w->stats.dispatches++;
	w->budget = WHEEL_BUDGET;
	*left = call_due(w, in, *left);
	/* Nothing was left of the one before, or that has been stopped since. */
	if (!anew && *left == max && loop_is_inside(w) && begin_anew(w))
		*left = call_due(w, in, *left);
	if (!loop_is_inside(w))
		return false;
	w->periods = periods;
	if (outermost)
		loop_leave(w);
	w->stats.vain += *left == max;
	wheel_look_ahead(w);
	wheel_find_next(w);
	if (is_immediate(w))
		loop_set_fd(w);
	return true;
}

static COLD int dispatch_shared(struct twheel *w, unsigned int max)
{
	unsigned int left = max;
	bool nested;

	lock(w);
	nested = w->dispatching;
	if (nested && !pthread_equal(w->dispatcher, pthread_self())) {
		unlock(w);
		return -EBUSY;
	}
	w->dispatching = true;
	w->dispatcher = pthread_self();
	if (!is_anything_due(w) || dispatch(w, &left)) {
		w->dispatching = nested;
		unlock(w);
	}
	return (int)(max - left);
}

EXPORT int twheel_dispatch(struct twheel *w, unsigned int max)
{
	unsigned int left;

	if (!max || max > INT32_MAX)
		max = INT32_MAX;
	if (unlikely(w->head.shared))
		return dispatch_shared(w, max);
	left = max;
	if (is_anything_due(w))
		dispatch(w, &left);
	return (int)(max - left);
}

/* ---- a loop for a program that has none ------------------------------------- */

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / TWHEEL_SEC), .tv_nsec = (long)(ns % TWHEEL_SEC),
	};
}

static int sleep_until(struct twheel *w, clockid_t id, uint64_t end_ns)
{
	uint64_t ns = twheel_next(w);
	struct timespec until;

	/* The virtual clock stands still: now, or at the end. */
	if (w->clock == TWHEEL_VIRTUAL)
		ns = ns > w->clock_ns ? TWHEEL_NEVER : 0;
	until = to_timespec(min64(ns, end_ns));
	return -clock_nanosleep(id, TIMER_ABSTIME, &until, NULL);
}

/* Other threads set the descriptor. */
static int sleep_shared(struct twheel *w, clockid_t id, uint64_t end_ns)
{
	struct pollfd fd = { .fd = twheel_fd(w), .events = POLLIN };
	uint64_t now_ns = read_clock(id);
	struct timespec left = to_timespec(end_ns > now_ns ? end_ns - now_ns : 0);
	int ret;

	if (fd.fd < 0)
		return fd.fd;
	ret = twheel_flush(w);
	if (ret < 0)
		return ret;
	ret = ppoll(&fd, 1, end_ns < END_NS ? &left : NULL, NULL);
	return ret < 0 ? -errno : 0;
}

static bool take_wake(struct twheel *w)
{
	bool woken;

	lock(w);
	woken = w->woken;
	w->woken = false;
	unlock(w);
	return woken;
}

EXPORT int twheel_wait(struct twheel *w, uint64_t timeout_ns)
{
	clockid_t id = clock_id(w);
	uint64_t end_ns = time_add(read_clock(id), timeout_ns);
	bool woken = false;
	int ret;

	do {
		if (w->head.shared) {
			woken = take_wake(w);
			ret = woken ? 0 : sleep_shared(w, id, end_ns);
			woken = take_wake(w) || woken;
		} else {
			ret = sleep_until(w, id, end_ns);
		}
		if (!ret)
			ret = twheel_dispatch(w, 0);
	} while (!ret && !woken && read_clock(id) < end_ns);
	return ret;
}

EXPORT int twheel_advance(struct twheel *w, uint64_t to_ns)
{
	int ret = 0;

	if (w->clock != TWHEEL_VIRTUAL)
		return -EOPNOTSUPP;
	lock(w);
	if (to_ns < w->clock_ns || to_ns >= END_NS) {
		ret = -EINVAL;
	} else {
		w->clock_ns = to_ns;
		loop_update(w);
		if (w->fd >= 0)
			ret = settime(w, wake_ns(w));
	}
	unlock(w);
	return ret;
}

