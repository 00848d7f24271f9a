/* SPDX-License-Identifier: MIT */
/*
 * libtwheel: timers for a program with an event loop, as many as it likes.
 *
 * A timer is a struct in an object of the caller's.  To start, to restart and to stop one
 * is usually a store or two, and no system call.  The timers wait in a wheel, which is in
 * the kernel where /dev/twheel is there (the module twheel), and otherwise in the process,
 * behind a timerfd; a program need not know which.  A wheel has one descriptor, for
 * epoll, poll, and any event loop.
 *
 *	static void on_idle(struct twheel *w, struct twheel_timer *t, int status)
 *	{
 *		struct conn *conn = twheel_container_of(t, struct conn, idle);
 *
 *		conn_close(conn);
 *	}
 *
 *	struct twheel *w;
 *
 *	if (twheel_open(&w, NULL) < 0)
 *		...
 *	twheel_timer_init(&conn->idle, on_idle);
 *	twheel_start(w, &conn->idle, 30 * TWHEEL_SEC);		restarts it as well
 *	...
 *	twheel_stop(w, &conn->idle);
 *
 * And in the loop:
 *
 *	twheel_flush(w);					the last thing before it sleeps
 *	n = epoll_wait(epfd, events, ...);			twheel_fd(w) is among the watched
 *	twheel_dispatch(w, 0);					when twheel_fd(w) is readable
 *
 * Rules that hold for all functions:
 *
 * - Times are nanoseconds, unsigned, on the wheel's clock.  TWHEEL_TIME_NEVER (2^63-1) and
 *   all that is above is the end of time: a timer with that deadline never expires.
 * - Relative times count from twheel_now(), which is read once for each turn of the loop:
 *   by twheel_dispatch(), or when the first timer is started after twheel_flush().  What
 *   happens later in the turn counts from the same time; a turn that takes long calls
 *   twheel_update().
 * - A timer never expires before its deadline.  It expires in the first tick at or after
 *   its deadline rounded up to a grain, or, when its deadline has passed by the time of
 *   the flush, as soon as it can; a grain is the greatest power of two, in
 *   nanoseconds, that is not above a tick.  So it is less than two ticks late, plus the
 *   slack, plus the time that the program takes to call twheel_dispatch().
 * - A timer that was started has one outcome: its callback is called, or it is stopped,
 *   or it is started again.  When twheel_stop() has returned, the callback is not called.
 *   A callback may stop and start any timer, its own as well, and free any that is not
 *   pending.  A one-shot is not pending in its callback; a periodic timer is, and has to be
 *   stopped before it is freed.
 * - What the kernel refuses is told: the callback is called with a negative errno as its
 *   status.  So callbacks are called by twheel_dispatch() and twheel_wait(), and for what is
 *   refused also by twheel_flush(), twheel_next() and twheel_advance().
 * - No function touches a timer that is not pending, but the one that it is given.
 *   A timer that is pending must not be freed or moved: stop it, or see
 *   twheel_timer_move().
 * - A wheel, and its timers, are for one thread at a time.  Threads open a wheel each.
 *   The library has no threads, no locks and no global state of its own.
 * - After fork(), the wheel belongs to the parent.  The child may call twheel_close(),
 *   which does not disturb the parent, and nothing else; it opens a wheel of its own.
 *   The descriptor is closed by exec.
 * - twheel_start(), _start_at(), _start_every(), _start_periodic() and _stop() allocate no
 *   memory, make no system call but to read the clock, and cannot fail.
 * - Functions that can fail return a negative errno, and do not use errno itself.
 */
#ifndef _TWHEEL_H
#define _TWHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/twheel.h>

#ifdef __cplusplus
extern "C" {
/* A function may have the name of a structure; -Wshadow of g++ complains about each. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

#define TWHEEL_USEC	1000ULL
#define TWHEEL_MSEC	1000000ULL
#define TWHEEL_SEC	1000000000ULL

/* Of functions that are short in the usual case: see the end of this file. */
#define _TWHEEL_INLINE	static inline __attribute__((always_inline))

struct twheel;
struct twheel_timer;

/**
 * twheel_callback - what a timer calls
 * @w: the wheel
 * @t: the timer, which is not pending any more, unless it is periodic
 * @status: 0: it has expired.  Otherwise it could not be armed, and is not pending:
 *	-EAGAIN		there are as many timers as max_timers allows
 *	-ENOMEM		out of memory, or the memory cgroup is at its limit
 *	-ENOSPC		the module's limit of memory is reached, or the user's share
 *	-ESHUTDOWN	somebody has drained the wheel, by its descriptor
 */
typedef void twheel_callback(struct twheel *w, struct twheel_timer *t, int status);

/*
 * A timeout that is armed for a timer, or kept for the next one.  These structures are the
 * library's: they are here for the functions below that are inline.
 */
struct twheel_place {
	uint64_t bound;
	struct twheel_timer *owner;
	uint64_t ref;
};

/* What a timer has that is not pending. */
extern const struct twheel_place twheel_idle;

/**
 * struct twheel_timer - a timer, in an object of the caller's
 *
 * All members are the library's.  twheel_timer_init() or TWHEEL_TIMER_INIT() comes first.
 */
struct twheel_timer {
	/* private: */
	struct twheel_place *place;
	twheel_callback *callback;
	uint64_t interval_ns;
	uint64_t deadline_ns;
	struct twheel_timer *next;
	struct twheel_timer *prev;
	uint32_t count;
	uint8_t length;
	uint8_t flags;
	uint16_t reserved;
};

#define TWHEEL_TIMER_INIT(its_callback) \
	{ (struct twheel_place *)&twheel_idle, (its_callback), 0, 0, NULL, NULL, 0, 0, 0, 0 }

/* The object that a timer is in. */
#define twheel_container_of(t, type, member) \
	((type *)((char *)(t) - offsetof(type, member)))

/**
 * twheel_timer_init() - make a timer, which is not pending
 * @t: the timer
 * @callback: what it calls
 */
static inline void twheel_timer_init(struct twheel_timer *t, twheel_callback *callback)
{
	const struct twheel_timer timer = TWHEEL_TIMER_INIT(callback);

	*t = timer;
}

/* Where a wheel is. */
enum twheel_backend {
	/* In the kernel if the device can be opened and used, otherwise in the process. */
	TWHEEL_AUTO	= 0,
	/* In the kernel: /dev/twheel. */
	TWHEEL_DEVICE	= 1,
	/*
	 * In the process.  With TWHEEL_CLOCK_TAI, a change of the offset of TAI alone, as at
	 * boot, is seen when the wheel next has something to do.
	 */
	TWHEEL_LOCAL	= 2,
};

/**
 * struct twheel_options - what twheel_open() makes; 0 means the default, but for @size
 * @size: sizeof(struct twheel_options)
 * @backend: enum twheel_backend
 * @clock: enum twheel_clock; 0 for TWHEEL_CLOCK_MONOTONIC.  TWHEEL_CLOCK_VIRTUAL is for
 *	tests of the caller's: it begins at 0 and moves by twheel_advance() only.
 * @max_timers: how many timers may be pending at a time, at most; 0 for 1,048,576, or
 *	what the module allows, where that is less.  A timer that is
 *	pending keeps its room when it is restarted.  The wheel takes 24 bytes of address
 *	space for each, and 32 more with TWHEEL_LOCAL, and memory for as many as were ever
 *	pending at a time.
 * @tick_ns: granularity, TWHEEL_TICK_MIN_NS to TWHEEL_TICK_MAX_NS; 0 for 1 ms
 * @slack_ns: how much later than its tick each timer may expire, so that many expire
 *	together; it counts in 2^k - 1 ticks, k = 15 at most, rounded down; 0 for none.
 *	For timers with another slack, open another wheel.
 * @device: the path of the device; NULL for /dev/twheel
 */
struct twheel_options {
	uint32_t size;
	uint32_t backend;
	uint32_t clock;
	uint32_t max_timers;
	uint64_t tick_ns;
	uint64_t slack_ns;
	const char *device;
};

/**
 * twheel_open() - make a wheel
 * @w: out: the wheel; NULL on failure
 * @options: how it is to be; NULL for the defaults
 *
 * Return: 0, or:
 *	-EINVAL		an option is outside its range
 *	-E2BIG		@options is larger than this library knows, and not zero there
 *	-ENOMEM		out of memory
 *	-EMFILE, -ENFILE	out of descriptors
 * and with TWHEEL_DEVICE:
 *	-ENOENT, -ENXIO, -ENODEV	the device is not there
 *	-EACCES, -EPERM	the user may not open it
 *	-ENOSPC		the module's limit of memory is reached
 *	-EOPNOTSUPP	the module is not one that this library can use
 */
int twheel_open(struct twheel **w, const struct twheel_options *options);

/**
 * twheel_close() - end a wheel
 * @w: the wheel, or NULL
 *
 * Timers that are pending are so no more, and their callbacks are not called; the library
 * does not touch them.  In a callback, twheel_close() takes effect when twheel_dispatch()
 * or twheel_flush() returns: until then no other callback is called, and the wheel must
 * not be used.
 */
void twheel_close(struct twheel *w);

/**
 * twheel_fd() - the descriptor of a wheel, for poll, epoll, and event loops
 * @w: the wheel
 *
 * It is readable when twheel_dispatch() has something to do; level triggered is best.
 * It is not to be read from, and twheel_close() closes it.
 *
 * Return: the descriptor.
 */
int twheel_fd(const struct twheel *w);

/* Which back end the wheel has: TWHEEL_DEVICE or TWHEEL_LOCAL. */
enum twheel_backend twheel_backend(const struct twheel *w);

/**
 * twheel_start() - start a timer, or restart it
 * @w: the wheel
 * @t: the timer, pending or not, in this wheel
 * @delay_ns: from twheel_now() on; 0 for the next twheel_dispatch(), but not the one that
 *	is under way
 *
 * It is a one-shot from now on.
 */
_TWHEEL_INLINE void twheel_start(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns);

/**
 * twheel_start_at() - the same, by the deadline
 * @w: the wheel
 * @t: the timer
 * @deadline_ns: on the wheel's clock; one that has passed is as a delay of 0
 */
_TWHEEL_INLINE void twheel_start_at(struct twheel *w, struct twheel_timer *t,
				    uint64_t deadline_ns);

/**
 * twheel_start_every() - start a timer that expires again and again, at a fixed rate
 * @w: the wheel
 * @t: the timer
 * @interval_ns: the first time this long from twheel_now(), and then each time as long
 *	after the deadline before; below a tick it is raised to one
 *
 * When twheel_dispatch() comes so late that further periods have passed, the callback is
 * called once, and twheel_timer_count() says how many periods it is for.
 */
void twheel_start_every(struct twheel *w, struct twheel_timer *t, uint64_t interval_ns);

/* A flag of twheel_start_periodic(): each period begins when the callback is called. */
#define TWHEEL_FIXED_DELAY	(1U << 0)

/**
 * twheel_start_periodic() - start a periodic timer, with all there is to choose
 * @w: the wheel
 * @t: the timer
 * @deadline_ns: when it expires first, on the wheel's clock
 * @interval_ns: as for twheel_start_every()
 * @flags: TWHEEL_FIXED_DELAY or 0
 */
void twheel_start_periodic(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns,
			   uint64_t interval_ns, unsigned int flags);

/**
 * twheel_stop() - stop a timer
 * @w: the wheel
 * @t: the timer, pending or not
 *
 * Return: whether it was pending.
 */
_TWHEEL_INLINE bool twheel_stop(struct twheel *w, struct twheel_timer *t);

/* Whether a timer is pending: its callback will be called unless it is stopped. */
bool twheel_timer_pending(const struct twheel_timer *t);

/* The deadline of a pending timer, rounded up to a grain; TWHEEL_NO_EXPIRY (2^64-1) otherwise. */
uint64_t twheel_timer_deadline(const struct twheel *w, const struct twheel_timer *t);

/* In the callback of a periodic timer: how many periods the call is for, at least 1. */
uint32_t twheel_timer_count(const struct twheel_timer *t);

/**
 * twheel_timer_move() - take a timer along, when the object that it is in moves in memory
 * @w: the wheel
 * @to: where it is from now on; what is there is overwritten
 * @from: where it was, pending or not; it is not pending any more
 *
 * Both are memory of the caller's until the call is over.  Timers that are pending know
 * each other, so an object with a timer cannot be moved by realloc(): allocate another one,
 * copy the rest, call this for each timer, and free the old one.  It costs as much as a
 * stop, and may be called in a callback.
 */
void twheel_timer_move(struct twheel *w, struct twheel_timer *to, struct twheel_timer *from);

/**
 * twheel_flush() - arm what was started, before the program sleeps
 * @w: the wheel
 *
 * A timer that was started may not expire before this was called.  It should be the last
 * call of a turn; the next start reads the clock anew.
 *
 * A timer that cannot be armed has its callback called with the reason.  What the
 * callback starts waits for the next flush.
 *
 * Return: how many timers were refused; when this is not 0, flush again before sleeping.
 * A callback that starts its own timer again while there is no room for it will be told
 * again, each time.
 */
unsigned int twheel_flush(struct twheel *w);

/**
 * twheel_dispatch() - call the callbacks of what has expired
 * @w: the wheel
 * @max: how many at most; 0 for no limit.  The descriptor stays readable when there are
 *	more, so a small number lets others have their turn.
 *
 * It does not sleep, and does not flush.  A timer that is started in a callback never
 * expires in the same call.
 *
 * Return: how many callbacks were called, 0 if nothing has expired; or -EIO when the
 * device cannot be read, since its descriptor was closed or used for something else.
 */
int twheel_dispatch(struct twheel *w, unsigned int max);

/**
 * twheel_wait() - flush, sleep, and dispatch: a loop for a program that has none
 * @w: the wheel
 * @timeout_ns: how long it sleeps at most, real time; TWHEEL_TIME_NEVER for no limit
 *
 * Return: how many callbacks were called, those that were refused included; 0 when time
 * was up; -EINTR when a signal came; -ESHUTDOWN when the wheel was drained and no event is
 * left; -EIO when the descriptor cannot be polled or read.  When a timer was refused, it
 * does not sleep.
 */
int twheel_wait(struct twheel *w, uint64_t timeout_ns);

/* The wheel's time that relative times count from. */
uint64_t twheel_now(struct twheel *w);

/* Read the clock anew, in a turn of the loop that takes long. */
uint64_t twheel_update(struct twheel *w);

/**
 * twheel_next() - when the program has to call twheel_dispatch(), for loops that want a
 * time instead of a descriptor
 * @w: the wheel
 *
 * It flushes.  With TWHEEL_DEVICE the kernel looks at all pending timers to find it, so
 * the descriptor is better there.
 *
 * Return: nanoseconds on the wheel's clock, or TWHEEL_NO_EXPIRY when nothing will expire.
 */
uint64_t twheel_next(struct twheel *w);

/**
 * twheel_advance() - move the virtual clock
 * @w: a wheel with TWHEEL_CLOCK_VIRTUAL
 * @to_ns: the new time, not before the present one
 *
 * It flushes.  What is due by @to_ns is for the next twheel_dispatch().
 *
 * Return: 0, -EINVAL when @to_ns is before the present time, -EOPNOTSUPP when the clock
 * is another one.
 */
int twheel_advance(struct twheel *w, uint64_t to_ns);

/**
 * struct twheel_stats - what a wheel is, and has done
 * @tick_ns: granularity in force
 * @slack_ns: slack in force
 * @max_timers: limit in force
 * @backend: TWHEEL_DEVICE or TWHEEL_LOCAL
 * @clock: enum twheel_clock
 * @grain_shift: deadlines are rounded up to 2^grain_shift ns
 * @places: timeouts that are armed in the back end now, for timers or parked
 * @parked: places that no timer has, kept for the next one
 * @noted: timers that wait for twheel_flush()
 * @taken: starts that took a parked place, by a store
 * @armed: starts for which a place was armed
 * @cancelled: parked places that were given up
 * @expired: timers whose callback was called
 * @refused: timers that could not be armed
 * @rearmed: timers whose event came up before the last store was seen, and that were
 *	armed again
 * @vain: events that came up for parked places
 * @calls: calls of the back end to arm and to cancel, and to read events
 */
struct twheel_stats {
	uint64_t tick_ns;
	uint64_t slack_ns;
	uint32_t max_timers;
	uint32_t backend;
	uint32_t clock;
	uint32_t grain_shift;
	uint64_t places;
	uint64_t parked;
	uint64_t noted;
	uint64_t taken;
	uint64_t armed;
	uint64_t cancelled;
	uint64_t expired;
	uint64_t refused;
	uint64_t rearmed;
	uint64_t vain;
	uint64_t calls;
};

/**
 * twheel_stats() - say what a wheel is, and has done
 * @w: the wheel
 * @stats: out
 * @size: sizeof(struct twheel_stats); members that a later library adds are left out
 */
void twheel_stats(struct twheel *w, struct twheel_stats *stats, size_t size);

/*
 * The rest of this file is not the interface.  twheel_start(), twheel_start_at() and
 * twheel_stop() are inline, since they are short in the usual case; lib/timers.c explains
 * what they do.  The library has them as functions as well, for programs in other
 * languages.
 */

#define _TWHEEL_LENGTHS	64
#define _TWHEEL_STALE	(1ULL << 63)

/* How struct twheel begins. */
struct _twheel_head {
	uint64_t now_up;
	uint64_t *words;
	uint32_t grain_shift;
	uint32_t work;
	uint64_t taken;
	uint64_t grain_mask;
	struct twheel_place **top[_TWHEEL_LENGTHS];
	struct twheel_place **end[_TWHEEL_LENGTHS];
};

void _twheel_start_slow(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns);
void _twheel_start_at_slow(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns);
bool _twheel_stop_slow(struct twheel *w, struct twheel_timer *t);

/* The classes of lengths: the logarithm. */
_TWHEEL_INLINE size_t _twheel_length(uint64_t length_ns)
{
	return 63 - (size_t)__builtin_clzll(length_ns | 1);
}

/* Store a deadline, in grains; the upper 28 bits of a ref are those of the generation. */
_TWHEEL_INLINE void _twheel_store(struct _twheel_head *w, struct twheel_place *place,
				  uint64_t deadline)
{
	uint64_t ref = place->ref;

	place->bound = deadline;
	__atomic_store_n(&w->words[(uint32_t)ref],
			 (uint64_t)(((__extension__ (unsigned __int128)deadline) << 64 | ref) >>
				    (64 - TWHEEL_REFRESH_GEN_BITS)),
			 __ATOMIC_RELAXED);
}

_TWHEEL_INLINE void twheel_start(struct twheel *wheel, struct twheel_timer *t, uint64_t delay_ns)
{
	struct _twheel_head *w = (struct _twheel_head *)wheel;
	uint64_t deadline = w->now_up + delay_ns;
	struct twheel_place *place = t->place;
	size_t length;

	/* The clock has to be read, or the end of time has been reached. */
	if (__builtin_expect((deadline | delay_ns) >= _TWHEEL_STALE, 0)) {
		_twheel_start_slow(wheel, t, delay_ns);
		return;
	}
	deadline >>= w->grain_shift;
	if (__builtin_expect(deadline >= place->bound, 1)) {
		_twheel_store(w, place, deadline);
		return;
	}
	length = _twheel_length(delay_ns);
	/* If it is not idle, or no parked place fits. */
	if (__builtin_expect(place->ref || deadline < (*w->top[length])->bound, 0)) {
		_twheel_start_slow(wheel, t, delay_ns);
		return;
	}
	place = *w->top[length]--;
	w->taken++;
	place->owner = t;
	t->place = place;
	t->length = (uint8_t)length;
	_twheel_store(w, place, deadline);
}

_TWHEEL_INLINE void twheel_start_at(struct twheel *wheel, struct twheel_timer *t,
				    uint64_t deadline_ns)
{
	struct _twheel_head *w = (struct _twheel_head *)wheel;
	uint64_t deadline = (deadline_ns + w->grain_mask) >> w->grain_shift;

	if (__builtin_expect(deadline < t->place->bound || deadline_ns >= TWHEEL_TIME_NEVER, 0))
		_twheel_start_at_slow(wheel, t, deadline_ns);
	else
		_twheel_store(w, t->place, deadline);
}

_TWHEEL_INLINE bool twheel_stop(struct twheel *wheel, struct twheel_timer *t)
{
	struct _twheel_head *w = (struct _twheel_head *)wheel;
	struct twheel_place *place = t->place;
	struct twheel_place **top = w->top[t->length];

	if (__builtin_expect(place->bound == UINT64_MAX || top == w->end[t->length], 0))
		return _twheel_stop_slow(wheel, t);
	*++top = place;
	w->top[t->length] = top;
	place->owner = NULL;
	t->place = (struct twheel_place *)&twheel_idle;
	return true;
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif /* _TWHEEL_H */
