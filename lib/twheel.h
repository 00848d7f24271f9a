/* SPDX-License-Identifier: MIT */
/*
 * libtwheel: timers for a program with an event loop, as many as it likes.
 *
 * A timer is a struct in an object of the caller's.  It is linked into a slot of a timing
 * wheel in the process.  To start it takes some 29 instructions, to restart it for later 12,
 * to stop it 10, however many pend.  None of these allocates memory or can fail.
 *
 *	static void on_idle(struct twheel *w, struct twheel_timer *t)
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
 * A loop with a timeout asks until when it may sleep:
 *
 *	for (;;) {
 *		wake_ns = twheel_next(w);			ends the turn
 *		n = my_poll(events, wake_ns);			epoll_pwait2, ppoll, kevent, ...
 *		twheel_dispatch(w, 0);				calls what has expired
 *		...
 *	}
 *
 * A loop without one watches twheel_fd(w), calls twheel_flush(w) last before it sleeps, and
 * twheel_dispatch(w, 0) when the descriptor is readable.  twheel_wait(w, timeout_ns) is a
 * loop for a program that has none.
 *
 * If the clock is TWHEEL_REALTIME or TWHEEL_TAI, use the descriptor: a loop with a timeout sleeps
 * on when the clock is set, and is late by as much as the clock was set forward.  The descriptor
 * becomes readable when the clock is set.
 *
 * Rules that hold for all functions:
 *
 * - Times are nanoseconds, unsigned, on the wheel's clock.  TWHEEL_NEVER is later than all
 *   of them.  Every time from 2^63 on stands for it: a timer with that deadline pends, and
 *   never expires.
 * - A turn of the loop begins with twheel_dispatch() and ends with twheel_next() or
 *   twheel_flush().  The clock is read by twheel_dispatch(), or by the first start after the
 *   end of a turn.  Relative times count from there.  A turn that takes long calls
 *   twheel_update().  After each callback with a fixed delay, twheel_now() is a new time, since
 *   the delay begins then.  Before each callback of a periodic timer the clock is read to count
 *   the periods, and twheel_now() stays.
 * - A timer never expires before its deadline.  It expires in the first twheel_dispatch()
 *   after the first edge of a tick at or after its deadline.  So it is at most one tick
 *   late, plus the slack, plus the time that the program takes to call twheel_dispatch().
 *   A deadline that has passed when the timer is started does not wait for an edge.
 * - If two deadlines are a tick or more apart, the earlier timer is called first.  Nearer
 *   ones have no order.  Timers that were started with a deadline that had passed are called
 *   after all others that are due then, in the order of their starts.  If one of these is
 *   restarted for later before it was called, it may keep its place among them, and then
 *   does not wait for an edge either.
 * - A timer that was started has one outcome: its callback is called, or it is stopped, or
 *   it is started again.  When twheel_stop() has returned, the callback is not called.  A
 *   one-shot does not pend in its callback, which may free it.  A periodic timer pends in
 *   its callback, and has to be stopped before it is freed.
 * - No function touches a timer that does not pend, but the one that it is given.  The
 *   functions touch timers that pend at any time: before a timer's memory is freed or moved,
 *   it has to be stopped, or moved by twheel_timer_move().
 * - A timer of zeros does not pend: it may be stopped, asked, moved, and started once it has
 *   got a callback by twheel_timer_init().
 * - A callback may start and stop any timer of the wheel, call twheel_dispatch(), close the
 *   wheel, fork, throw a C++ exception, and leave by longjmp(), and its thread may be
 *   cancelled in it.  Timers that are due and were not called then are called by the next
 *   twheel_dispatch().  If a callback of a shared wheel has left by longjmp(), only its thread
 *   may dispatch or close the wheel after that.
 * - In a plain wheel, a callback may return on another thread than the one that it was called
 *   on, as a coroutine does.  In a shared wheel it may not call twheel_dispatch() or
 *   twheel_stop_sync() on the other thread.
 * - A wheel and its timers are for one thread at a time, unless it is TWHEEL_SHARED.  The
 *   library has no threads.
 * - Functions that can fail return a negative errno.  errno itself may have another value
 *   after any call but twheel_wake().
 *
 * All functions can be called from other languages: if TWHEEL_NO_INLINE is defined, this
 * header has declarations only.
 */
#ifndef _TWHEEL_H
#define _TWHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
/*
 * For twheel_container_of(): the object that a member is in.  offsetof() is for classes of
 * standard layout only.  The pointer to a member is its offset, by the ABI of all compilers here.
 */
template <typename Type>
class _twheel_same {
public:
	using self = Type;
};

template <typename Type, typename Class, typename Member>
inline Type *_twheel_container_of(Member *t, Member Class::*member)
{
	/* It may be a member of a base class. */
	Member Type::*own = member;
	ptrdiff_t offset = 0;

	static_assert(sizeof(offset) == sizeof(own), "a pointer to a member is an offset");
	__builtin_memcpy(&offset, &own, sizeof(offset));

	void *type = static_cast<char *>(static_cast<void *>(t)) - offset;

	return static_cast<Type *>(type);
}

extern "C" {
#endif

/* Of the inline functions, the library makes functions as well, and says here how. */
#define _TWHEEL_INLINE	static inline __attribute__((__always_inline__, __unused__))
#ifdef TWHEEL_NO_INLINE
#define _TWHEEL_FUNCTION
#elif !defined(_TWHEEL_FUNCTION)
#define _TWHEEL_FUNCTION	_TWHEEL_INLINE
#endif

/* The version of this header; twheel_version() says that of the library. */
#define TWHEEL_VERSION_MAJOR	0
#define TWHEEL_VERSION_MINOR	1
#define TWHEEL_VERSION_PATCH	0

#define TWHEEL_USEC	1000ULL
#define TWHEEL_MSEC	1000000ULL
#define TWHEEL_SEC	1000000000ULL

/* Later than all times. */
#define TWHEEL_NEVER	UINT64_MAX

struct twheel;
struct twheel_timer;

/**
 * twheel_callback - what a timer calls
 * @w: the wheel
 * @t: the timer; a one-shot does not pend any more, a periodic one does
 */
typedef void twheel_callback(struct twheel *w, struct twheel_timer *t);

/**
 * struct twheel_timer - a timer, in an object of the caller's; 40 bytes on a 64-bit machine
 *
 * All members are the library's.  twheel_timer_init() or TWHEEL_TIMER_INIT() comes first.
 */
struct twheel_timer {
	/* private: stores to neighbours would be joined by compilers, which takes longer */
	struct twheel_timer *next;
	twheel_callback *callback;
	struct twheel_timer **pprev;
	uint64_t interval_ns;		/* of a periodic timer, with a flag on top */
	/*
	 * 0 if the timer does not pend.  Of a one-shot that pends, the deadline with the highest
	 * bit set.  Of a periodic timer, or one that never expires, the deadline without it; but a
	 * periodic timer whose first deadline is 0 has that of a one-shot.
	 */
	uint64_t deadline;
};

#define TWHEEL_TIMER_INIT(its_callback)	{ NULL, (its_callback), NULL, 0, 0 }

/*
 * The object that a timer is in, of this type, by the name of the member.  In C++ it may be a
 * member of a base class, but of no virtual one, and no member of a member.
 */
#ifdef __cplusplus
#define twheel_container_of(t, type, member)						\
	_twheel_container_of<type>(t, &_twheel_same<type>::self::member)
#else
#define twheel_container_of(t, type, member) \
	((type *)(void *)((char *)(t) - offsetof(type, member)))
#endif

/* Clocks. */
#define TWHEEL_MONOTONIC	0U
#define TWHEEL_BOOTTIME		1U	/* goes on while the machine sleeps; does not wake it */
#define TWHEEL_REALTIME		2U
#define TWHEEL_TAI		3U
#define TWHEEL_CALLER		4U	/* begins at 0, moves by twheel_advance() only */

/*
 * Flags of a wheel.
 *
 * TWHEEL_SHARED: any thread may start, stop and ask.  A lock is inside, and the clock is
 * read at each start by a delay.  One thread at a time dispatches, or sleeps in twheel_wait(): if
 * another thread starts a timer that is the first to expire, the sleeper learns of it by
 * the descriptor, which twheel_wait() makes.  Starts need no twheel_flush().
 */
#define TWHEEL_SHARED		(1U << 0)
/*
 * For a loop that has no hook before it sleeps: there are no turns, the clock is read at
 * each start by a delay, and the descriptor is set at once.  A timer that was stopped may wake the
 * program once.
 */
#define TWHEEL_IMMEDIATE	(1U << 1)
/* Read the clock before and after each callback, for slowest_ns of struct twheel_stats. */
#define TWHEEL_MEASURE		(1U << 2)

/**
 * struct twheel_options - what twheel_open() makes; 0 is the default, but for @size
 * @size: sizeof(struct twheel_options)
 * @clock: TWHEEL_MONOTONIC and its like
 * @flags: TWHEEL_SHARED and its like
 * @reserved: 0
 * @tick_ns: 1 us to 1 h; 0 for 1 ms
 * @slack_ns: how much later than its tick a timer may expire, so that many expire in one
 *	wake-up; rounded down to ticks; up to 1 h.  For timers with another slack, open
 *	another wheel.
 * @data: a pointer of the program's, see twheel_data()
 */
struct twheel_options {
	uint32_t size;
	uint32_t clock;
	uint32_t flags;
	uint32_t reserved;
	uint64_t tick_ns;
	uint64_t slack_ns;
	void *data;
};

/* Buckets of lateness. */
#define TWHEEL_LATE_BUCKETS	64

/**
 * struct twheel_stats - what a wheel holds and has done
 * @pending: timers that pend; twheel_get_stats() walks them all
 * @called: callbacks that were called
 * @dispatches: calls of twheel_dispatch() in which the clock had reached something
 * @vain: of these, those that called no callback: the timers had been stopped or restarted,
 *	or had to be sorted
 * @settings: calls of timerfd_settime(), but for those of twheel_wake()
 * @moved: timers that were moved to a finer slot, or after a restart to another one
 * @slowest_ns: the longest callback; with TWHEEL_MEASURE
 * @late: how late callbacks were called, counted from their deadlines: @late[0] at once,
 *	@late[i] by 2^(i-1) ns or more, and less than 2^i ns
 */
struct twheel_stats {
	uint64_t pending;
	uint64_t called;
	uint64_t dispatches;
	uint64_t vain;
	uint64_t settings;
	uint64_t moved;
	uint64_t slowest_ns;
	uint64_t late[TWHEEL_LATE_BUCKETS];
};

/**
 * twheel_visitor - what twheel_each() and twheel_stop_all() call
 * @w: the wheel
 * @t: the timer
 * @arg: what was given with it
 */
typedef void twheel_visitor(struct twheel *w, struct twheel_timer *t, void *arg);

/* The version of the library, as "0.1.0". */
const char *twheel_version(void);

/**
 * twheel_open() - make a wheel
 * @w: out: the wheel; NULL on failure
 * @options: how it is to be; NULL for the defaults
 *
 * A wheel takes 20 kB of memory from calloc().  It has no descriptor before twheel_fd() is
 * called.
 *
 * Return: 0, or:
 *	-EINVAL		an option is outside its range, @size is too small, or the system has
 *			no such clock
 *	-E2BIG		@options is larger than this library knows, and not zero there
 *	-ENOMEM		out of memory
 */
int twheel_open(struct twheel **w, const struct twheel_options *options);

/**
 * twheel_close() - end a wheel
 * @w: the wheel, or NULL
 *
 * No timer pends afterwards, and no callback is called.  It may be called in a callback of
 * this wheel, whose memory is freed when the outermost twheel_dispatch() is over.  If a callback
 * has left that by longjmp(), the memory of the wheel is never freed.  The memory of each timer
 * that pends has to be there still.
 */
void twheel_close(struct twheel *w);

/* The pointer of the program's that is in the wheel. */
void *twheel_data(const struct twheel *w);

/**
 * twheel_timer_init() - make a timer, which does not pend
 * @t: the timer
 * @its_callback: what it calls
 */
_TWHEEL_FUNCTION
void twheel_timer_init(struct twheel_timer *t, twheel_callback *its_callback);

/* sizeof(struct twheel_timer), for other languages. */
size_t twheel_timer_size(void);

/**
 * twheel_start() - start a timer, or restart it
 * @w: the wheel
 * @t: the timer, pending in this wheel or not at all
 * @delay_ns: from twheel_now() on; 0 for the next twheel_dispatch(), but not the one that
 *	is under way
 *
 * It is a one-shot from now on.
 */
_TWHEEL_FUNCTION
void twheel_start(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns);

/**
 * twheel_start_at() - the same, by the deadline
 * @w: the wheel
 * @t: the timer
 * @deadline_ns: on the wheel's clock; one that has passed is as a delay of 0
 *
 * If the wheel is TWHEEL_SHARED or TWHEEL_IMMEDIATE, the clock is not read.  A deadline that has
 * passed since it was read last expires as if it had been started before that.
 */
_TWHEEL_FUNCTION
void twheel_start_at(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns);

/**
 * twheel_start_every() - start a timer that expires again and again, at a fixed rate
 * @w: the wheel
 * @t: the timer
 * @interval_ns: the first time this long from twheel_now(), and then each time as long
 *	after the deadline before; below a tick it is raised to one
 *
 * If twheel_dispatch() comes so late that further periods have passed, the callback is
 * called once, and twheel_periods() says how many periods it is for.
 */
void twheel_start_every(struct twheel *w, struct twheel_timer *t, uint64_t interval_ns);

/*
 * A flag of twheel_start_periodic(): each period begins when the callback has returned.  If
 * it has not returned after a period, a twheel_dispatch() in it may call it again.
 */
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
 * twheel_periods() - in the callback of a periodic timer: how many periods it is called for
 * @w: the wheel
 *
 * They are counted up to the call, not to the beginning of the dispatch.
 *
 * Return: 1 or more; 1 for a one-shot, and for a fixed delay.
 */
uint64_t twheel_periods(const struct twheel *w);

/**
 * twheel_stop() - stop a timer
 * @w: the wheel
 * @t: the timer, pending or not
 *
 * If @t does not pend and the wheel is not shared, nothing is done with the wheel: it may have
 * been closed, or @w may be NULL.  So a destructor may stop its timer, whichever ends first.  If
 * the wheel is shared, it asks twheel_timer_pending() before.
 *
 * In a shared wheel, another thread may be in the callback: see twheel_stop_sync().
 *
 * Return: whether it was pending.
 */
_TWHEEL_FUNCTION
bool twheel_stop(struct twheel *w, struct twheel_timer *t);

/**
 * twheel_stop_sync() - stop a timer, and wait until its callback has returned
 * @w: the wheel
 * @t: the timer, pending or not
 *
 * After it the timer may be freed, if nobody starts it again.  It does not wait in the
 * thread that dispatches, so a callback may call it for its own timer.  The caller must hold
 * no lock that the callback takes.  If the callback restarts the timer, it is not called
 * again: the thread that dispatches stops it.  It waits without end for a callback that has
 * left by longjmp().  If the dispatching thread is in more than 16 callbacks, each in a
 * twheel_dispatch() in the one before, or some of them have left by longjmp(), it knows the
 * last 16 only.
 *
 * Return: whether it was pending.
 */
bool twheel_stop_sync(struct twheel *w, struct twheel_timer *t);

/**
 * twheel_stop_all() - stop all timers
 * @w: the wheel
 * @fn: called for each when it has been stopped, and may free it; NULL for none
 * @arg: given to @fn
 *
 * What @fn starts pends, and is not stopped again.  Meanwhile the deadlines of those that
 * have not been stopped yet are TWHEEL_NEVER.  If @fn throws a C++ exception, these pend and
 * never expire, until the next twheel_stop_all() or a restart.  @fn must not call
 * twheel_dispatch() or twheel_close().
 *
 * Return: how many have been pending.
 */
size_t twheel_stop_all(struct twheel *w, twheel_visitor *fn, void *arg);

/**
 * twheel_each() - call a function for each timer that pends, in no order
 * @w: the wheel
 * @fn: may stop the timer that it is called for, but must not start or stop others;
 *	in a shared wheel, it must not call any function of the wheel
 * @arg: given to @fn
 */
void twheel_each(struct twheel *w, twheel_visitor *fn, void *arg);

/*
 * Whether a timer is pending: its callback will be called unless it is stopped.  This and
 * twheel_timer_deadline() take no lock: in a shared wheel, no other thread may start, stop or
 * dispatch meanwhile.
 */
_TWHEEL_FUNCTION
bool twheel_timer_pending(const struct twheel_timer *t);

/* The deadline of a pending timer, as it was asked for; TWHEEL_NEVER otherwise. */
_TWHEEL_FUNCTION
uint64_t twheel_timer_deadline(const struct twheel_timer *t);

/**
 * twheel_timer_move() - take a timer along, when the object that it is in moves in memory
 * @w: the wheel
 * @to: where it is from now on; what is there is overwritten.  It may be @from.
 * @from: where it was, pending or not; a timer that does not pend stays there
 *
 * Both are memory of the caller's until the call is over.  Timers that pend know each
 * other, so an object with a timer cannot be moved by realloc(): allocate another one,
 * copy the rest, call this for each timer, and free the old one.
 */
void twheel_timer_move(struct twheel *w, struct twheel_timer *to, struct twheel_timer *from);

/**
 * twheel_dispatch() - call the callbacks of what has expired
 * @w: the wheel
 * @max: how many at most; 0 for no limit.  If there are more, twheel_next() returns a time
 *	that has passed, and the descriptor stays readable.
 *
 * It does not sleep.  A timer that is started in a callback never expires in the same call.
 * With a limit, all that is due has its turn before what is started meanwhile: a call that
 * goes on where the limit ended the one before calls what was due then, and the next call
 * what has become due since.  A call in a callback goes on with what the outer one has left.
 * If nothing is left, it begins anew, and the outer one goes on with what it leaves.
 *
 * It moves 4,096 timers that are not due at most, which takes some milliseconds if they are in
 * no cache: it may return before it has called all that is due, and twheel_next() then returns
 * a time that has passed.  It takes longer if many thousand deadlines are less than a tick
 * apart, or if the clock was set back: then it looks at each of them, or at all timers, once.
 *
 * Return: how many callbacks were called, or -EBUSY if another thread dispatches a shared
 * wheel.
 */
int twheel_dispatch(struct twheel *w, unsigned int max);

/**
 * twheel_next() - end the turn, and say until when the loop may sleep
 * @w: the wheel
 *
 * The time is never late.  It is exact if no slot has had more than 32 timers, and the timer
 * that is the first one has not been restarted for later.  Otherwise the loop may wake up
 * before to sort them, once for each such slot or 4,096 timers.  If no timer pends any more, it
 * does not wake up.  It takes the same time however many timers pend.
 *
 * A loop that sleeps until then by the timeout of poll(), select() or epoll_wait() is later by
 * 0.1 % of the time that it sleeps: by 60 ms after a minute, and 100 ms at most.  twheel_wait()
 * and the descriptor are not.
 *
 * Return: nanoseconds on the wheel's clock, which have passed if something is due now;
 * TWHEEL_NEVER if nothing will expire.
 */
uint64_t twheel_next(struct twheel *w);

/**
 * twheel_fd() - the descriptor of a wheel, for poll, epoll, and event loops
 * @w: the wheel
 *
 * The first call makes it: a timerfd, closed by exec, above 2.  It is readable when
 * twheel_dispatch() has something to do; level triggered is best.  It is not to be read
 * from, and twheel_close() closes it.
 *
 * Return: the descriptor, -EMFILE, -ENFILE or -ENOMEM; -ENOSYS if the system has no timerfd.
 * All that works by time works there as well.
 */
int twheel_fd(struct twheel *w);

/**
 * twheel_flush() - end the turn, and set the descriptor
 * @w: the wheel
 *
 * A system call is made if the time of twheel_next() has become earlier, if the descriptor is
 * readable, or if no timer pends any more.
 *
 * Return: 0, or the error of timerfd_settime(), such as -EBADF or -EINVAL if the descriptor
 * was closed or used for something else.
 */
int twheel_flush(struct twheel *w);

/**
 * twheel_wait() - end the turn, sleep, and dispatch: a loop for a program that has none
 * @w: the wheel
 * @timeout_ns: how long it sleeps at most, on the wheel's clock, or CLOCK_MONOTONIC if that
 *	is the caller's; TWHEEL_NEVER for no limit
 *
 * Return: how many callbacks were called; 0 if time was up, or if twheel_wake() was called and
 * nothing was due;
 * -EINTR if a signal came; in a shared wheel the errors of twheel_fd(), twheel_flush() and
 * twheel_dispatch().
 */
int twheel_wait(struct twheel *w, uint64_t timeout_ns);

/**
 * twheel_wake() - wake the thread that waits in a shared wheel
 * @w: a shared wheel
 *
 * twheel_wait() returns, and the descriptor is readable until the next twheel_dispatch().  If
 * nobody waits, the next twheel_wait() returns at once.  A wake ends one twheel_wait(), also
 * one that returns how many callbacks were called: so a thread that is to end asks a variable
 * of the program's after each.
 *
 * It takes no lock, and leaves errno alone: a signal handler may call it at any time.  No other
 * function may be called by a signal handler.
 */
void twheel_wake(struct twheel *w);

/* The wheel's time that relative times count from, in nanoseconds. */
uint64_t twheel_now(struct twheel *w);

/* Read the clock anew, in a turn of the loop that takes long. */
uint64_t twheel_update(struct twheel *w);

/**
 * twheel_advance() - move the caller's clock
 * @w: a wheel with TWHEEL_CALLER
 * @to_ns: the new time, not before the present one, and below 2^63 - 1
 *
 * What is due by @to_ns is for the next twheel_dispatch().
 *
 * Return: 0, -EINVAL if @to_ns is out of range, -EOPNOTSUPP if the clock is another one, or
 * an error of twheel_flush() if there is a descriptor.
 */
int twheel_advance(struct twheel *w, uint64_t to_ns);

/**
 * twheel_from_ms() - a time of a loop that counts milliseconds
 * @ms: milliseconds
 *
 * Return: nanoseconds; TWHEEL_NEVER if they are too many for a number of 64 bits.
 */
_TWHEEL_FUNCTION
uint64_t twheel_from_ms(uint64_t ms);

/**
 * twheel_left_ms() - how long a loop may sleep, as the timeout of poll() or epoll_wait()
 * @until_ns: what twheel_next() has returned
 * @now_ns: the time, on the same clock
 *
 * Return: milliseconds, rounded up; 0 if @until_ns has passed, -1 if it is TWHEEL_NEVER, and
 * 2^31 - 1 if there are more.
 */
_TWHEEL_FUNCTION
int twheel_left_ms(uint64_t until_ns, uint64_t now_ns);

/**
 * twheel_after_fork() - in the child after fork(): go on with a wheel of its own
 * @w: the wheel
 *
 * The child has all timers of the parent's, as they were at the fork.  If the wheel had a
 * descriptor, the child's has been closed: twheel_fd() makes a new one.  The parent is not
 * disturbed.  A child that does not call this may use a wheel that is not shared and has no
 * descriptor, and may only close any other.  If the wheel is shared, no other thread may be in a
 * function of it at the fork, but in a callback.
 */
void twheel_after_fork(struct twheel *w);

/**
 * twheel_get_stats() - say what a wheel holds and has done
 * @w: the wheel
 * @stats: out
 * @size: sizeof(struct twheel_stats); members that a later library adds are left out, and
 *	those that an older one does not know are 0
 */
void twheel_get_stats(struct twheel *w, struct twheel_stats *stats, size_t size);

#ifndef TWHEEL_NO_INLINE
/*
 * The rest of this file is not the interface: it has the functions that are inline, since
 * they are short.  The library has them as functions as well.
 *
 * A program that was compiled with this header relies on the following for as long as the
 * soname is libtwheel.so.1:
 * - struct twheel_timer as it is
 * - the members of struct _twheel_head, except the spare ones, and their places
 * - a timer goes to the head of the list of the slot w->level[bit][(key >> w->shift[bit]) %
 *   256], with bit the highest one of key - w->base, and _twheel_mark() is called if the
 *   slot was NULL or key is before w->next
 * - a timer that pends may have its deadline raised to a later key, if both have the highest
 *   bit set
 * - a timer leaves its list by being unlinked; each timer in a list has a next one, the last
 *   one has a timer of the wheel's
 * - the address of a wheel has the bit _TWHEEL_SHARED_BIT if it was opened as a shared one
 *
 * Times have the highest bit set in the wheel ("keys"), and are compared as signed numbers
 * with the deadline of a timer: so that of a periodic timer is later than all keys.
 */
#define _TWHEEL_UNLIKELY(x)	__builtin_expect(!!(x), 0)
#define _TWHEEL_KEY	(1ULL << 63)
#define _TWHEEL_SLOTS	256
#define _TWHEEL_SHARED_BIT	16U

#ifdef __cplusplus
#define _TWHEEL_HEAD(w)		reinterpret_cast<struct _twheel_head *>(w)
#define _TWHEEL_ADDRESS(w)	reinterpret_cast<uintptr_t>(w)
#define _TWHEEL_SIGNED(x)	static_cast<int64_t>(x)
#define _TWHEEL_INT(x)		static_cast<int>(x)
#define _TWHEEL_BIT(x)		(63U ^ static_cast<unsigned int>(__builtin_clzll(x)))
#else
#define _TWHEEL_HEAD(w)		((struct _twheel_head *)(w))
#define _TWHEEL_ADDRESS(w)	((uintptr_t)(w))
#define _TWHEEL_SIGNED(x)	((int64_t)(x))
#define _TWHEEL_INT(x)		((int)(x))
#define _TWHEEL_BIT(x)		(63U ^ (unsigned int)__builtin_clzll(x))
#endif

/* How struct twheel begins. */
struct _twheel_head {
	uint64_t now;		/* the key of the turn's time, or UINT64_MAX: not known */
	uint64_t base;		/* the wheel has been turned to this key */
	uint64_t next;		/* nothing is to be done for a slot before this key */
	uint64_t shared;
	uint64_t spare[4];
	uint8_t shift[64];
	struct twheel_timer **level[64];
};

void _twheel_start_slow(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns);
void _twheel_start_at_slow(struct twheel *w, struct twheel_timer *t, uint64_t key);
void _twheel_restart(struct twheel *w, struct twheel_timer *t, uint64_t key);
bool _twheel_stop_slow(struct twheel *w, struct twheel_timer *t);
void _twheel_mark(struct twheel *w, struct twheel_timer **slot, uint64_t key);

_TWHEEL_FUNCTION
void twheel_timer_init(struct twheel_timer *t, twheel_callback *its_callback)
{
	const struct twheel_timer timer = TWHEEL_TIMER_INIT(its_callback);

	*t = timer;
}

/* Link a timer into its slot; the key is after base. */
_TWHEEL_INLINE void _twheel_insert(struct twheel *wheel, struct twheel_timer *t, uint64_t key)
{
	struct _twheel_head *w = _TWHEEL_HEAD(wheel);
	unsigned int bit = _TWHEEL_BIT(key - w->base);
	struct twheel_timer **slot = w->level[bit] + (key >> w->shift[bit]) % _TWHEEL_SLOTS;
	struct twheel_timer *next = *slot;

	t->next = next;
	t->pprev = slot;
	t->deadline = key;
	*slot = t;
	if (_TWHEEL_UNLIKELY(!next)) {
		_twheel_mark(wheel, slot, key);
		return;
	}
	next->pprev = &t->next;
	if (_TWHEEL_UNLIKELY(key < w->next))
		_twheel_mark(wheel, slot, key);
}

/* Start a timer by its key, which is after the present. */
_TWHEEL_INLINE void _twheel_start_key(struct twheel *w, struct twheel_timer *t, uint64_t key)
{
	if (!t->deadline)
		_twheel_insert(w, t, key);
	else if (_TWHEEL_SIGNED(key) >= _TWHEEL_SIGNED(t->deadline))
		t->deadline = key;
	else
		_twheel_restart(w, t, key);
}

_TWHEEL_FUNCTION
void twheel_start(struct twheel *w, struct twheel_timer *t, uint64_t delay_ns)
{
	uint64_t key = _TWHEEL_HEAD(w)->now + delay_ns;

	/* The clock has to be read, the end of time is reached, or it is due now. */
	if (_TWHEEL_UNLIKELY(key <= _TWHEEL_HEAD(w)->now))
		_twheel_start_slow(w, t, delay_ns);
	else
		_twheel_start_key(w, t, key);
}

_TWHEEL_FUNCTION
void twheel_start_at(struct twheel *w, struct twheel_timer *t, uint64_t deadline_ns)
{
	uint64_t key = deadline_ns ^ _TWHEEL_KEY;

	if (_TWHEEL_UNLIKELY(key <= _TWHEEL_HEAD(w)->now))
		_twheel_start_at_slow(w, t, key);
	else
		_twheel_start_key(w, t, key);
}

_TWHEEL_FUNCTION
bool twheel_stop(struct twheel *w, struct twheel_timer *t)
{
	struct twheel_timer *next, **pprev;

	if (_TWHEEL_UNLIKELY(_TWHEEL_ADDRESS(w) & _TWHEEL_SHARED_BIT))
		return _twheel_stop_slow(w, t);
	if (!t->deadline)
		return false;
	next = t->next;
	pprev = t->pprev;
	t->deadline = 0;
	*pprev = next;
	next->pprev = pprev;
	return true;
}

_TWHEEL_FUNCTION
bool twheel_timer_pending(const struct twheel_timer *t)
{
	return t->deadline != 0;
}

_TWHEEL_FUNCTION
uint64_t twheel_timer_deadline(const struct twheel_timer *t)
{
	if (!t->deadline || t->deadline == _TWHEEL_KEY - 1)
		return TWHEEL_NEVER;
	return t->deadline & ~_TWHEEL_KEY;
}

_TWHEEL_FUNCTION
uint64_t twheel_from_ms(uint64_t ms)
{
	return ms > TWHEEL_NEVER / TWHEEL_MSEC ? TWHEEL_NEVER : ms * TWHEEL_MSEC;
}

_TWHEEL_FUNCTION
int twheel_left_ms(uint64_t until_ns, uint64_t now_ns)
{
	uint64_t left_ns;

	if (until_ns == TWHEEL_NEVER)
		return -1;
	if (until_ns <= now_ns)
		return 0;
	left_ns = until_ns - now_ns - 1;
	if (left_ns >= INT32_MAX * TWHEEL_MSEC)
		return INT32_MAX;
	return _TWHEEL_INT(left_ns / TWHEEL_MSEC) + 1;
}

#endif /* TWHEEL_NO_INLINE */

#ifdef __cplusplus
}
#endif

#endif /* _TWHEEL_H */
