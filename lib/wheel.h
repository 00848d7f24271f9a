/* SPDX-License-Identifier: MIT */
/*
 * wheel.h - a wheel, and the functions that the files of the library share
 */
#ifndef _TWHEEL_WHEEL_H
#define _TWHEEL_WHEEL_H

#include <pthread.h>
#include <time.h>

#include "twheel.h"

/*
 * Only Linux has timerfd, ppoll() and two clocks.  Elsewhere, or if TWHEEL_POSIX is defined, there
 * is no descriptor and not these clocks.
 */
#if defined(__linux__) && !defined(TWHEEL_POSIX)
#include <fcntl.h>
#include <poll.h>
#include <sys/timerfd.h>
#define ONLY_POSIX	0
#else
#define ONLY_POSIX	1
#undef CLOCK_BOOTTIME
#undef CLOCK_TAI
#define CLOCK_BOOTTIME		CLOCK_MONOTONIC
#define CLOCK_TAI		CLOCK_REALTIME
#define TFD_TIMER_ABSTIME	0
#define TFD_TIMER_CANCEL_ON_SET	0
/* It is for a descriptor, and so never called. */
#define timerfd_settime(fd, flags, when, old)	\
	((void)(fd), (void)(flags), (void)(when), (void)(old), -1)
#endif

/*
 * USDT probes with the names of the module's tracepoints.  Each is a nop, and is there if USDT is
 * defined.  Starts and stops of timers have none: most of them are inline in programs.
 *
 *	arm, move	table, number, deadline_ns
 *	cancel		table, number
 *	read		table, number
 *	expire		wheel, timer, deadline_ns, late_ns
 *	pass		wheel, called
 */
#ifdef USDT
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
#define PROBE(name, ...)	STAP_PROBEV(twheel, name, __VA_ARGS__)
#else
#define PROBE(...)		do { } while (0)
#endif

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define EXPORT		__attribute__((visibility("default")))
#define APART		__attribute__((noinline))

#define KEY		_TWHEEL_KEY
#define NO_KEY		UINT64_MAX
/* The end of time: from here on, a timer never expires. */
#define END_NS		(1ULL << 63)
/* The deadline of a timer that never expires: the last one of a periodic timer. */
#define NEVER		(END_NS - 1)

#define FIXED_DELAY	(1ULL << 63)	/* in interval_ns */

#define SLOTS		_TWHEEL_SLOTS
/* A slot of a level is half of the level below. */
#define LEVEL_BITS	7
#define LEVELS_MAX	8

/* Callbacks that are known by their timers: the innermost ones. */
#define CALLBACKS_MAX	16
/* Timers that one dispatch moves to other slots at most. */
#define WHEEL_BUDGET	4096

/*
 * Lists of timers that are in no slot.  The way of a timer to its callback, if its deadline is
 * ahead when it is started, if it has passed by then, and with a fixed delay:
 *
 *	slot -----------------------> DUE --> callback
 *	PASSED_NEXT --> PASSED_NOW --> DUE --> callback
 *	slot or PASSED_NEXT ... -----> DUE --> IN_CALLBACK during the callback --> slot
 *
 * A dispatch that begins takes PASSED_NEXT, the last one first, to PASSED_NOW, the first one
 * first.  Those are due when the wheel has been turned to the target.  A timer in DUE is called if
 * it has not been restarted for later than due_by.  If the callback of a fixed delay does not
 * return, its timer goes to PASSED_NOW.  twheel_stop_all() takes all timers to STOPPING.
 */
enum { STOPPING, DUE, PASSED_NEXT, PASSED_NOW, IN_CALLBACK, LISTS };

/* A thread in twheel_stop_sync(), on its stack. */
struct waiter {
	struct waiter *next;
	struct twheel_timer *t;		/* NULL: its callback has returned */
	bool was_pending;
};

struct twheel {
	struct _twheel_head head;
	void *memory;			/* that this is in */
	struct twheel_timer **first;	/* head.next is of a timer in this list; or NULL */
	struct twheel_timer *earliest;	/* that timer, first in its list; NULL: not known */
	struct twheel_timer end;	/* of each list */
	struct twheel_timer *list[LISTS];
	uint64_t due_by;		/* a key: of DUE */
	uint64_t passed_by;		/* of PASSED_NOW; not before due_by, base and target */
	uint64_t target;		/* a key: the edge that the wheel is turned to */
	uint64_t clock_ns;		/* when the clock was read last */
	uint64_t edge_ns;		/* a tick and the slack */
	uint64_t set_ns;		/* what the timerfd is set to; TWHEEL_NEVER: not set */
	uint64_t begin[LEVELS_MAX];	/* of each level, no slot before this one has a timer */
	uint64_t crowded[LEVELS_MAX];	/* of each level: the slot that was crowded, a hint */
	uint32_t levels;		/* bits: those that may have a slot that is not empty */
	uint32_t grain_shift;		/* the width of a slot of level 0, in bits */
	int fd;				/* below 0: none */
	int budget;			/* timers that this dispatch may still move */
	bool at_once;			/* a timer may have passed, or a turn be left */
	bool readable;			/* the timerfd has fired since it was set */
	/* By twheel_wake(), which takes no lock; atomic: it is for the next ... */
	bool woken;			/* twheel_wait() */
	bool rung;			/* dispatch; until then the timerfd is readable */
	bool dispatched;		/* a dispatch is under way, or was left by longjmp() */
	bool closed;			/* in a callback; the outermost dispatch frees it */
	uint64_t periods;
	struct twheel_options options;	/* with a tick */
	struct twheel_stats stats;	/* without pending and called */

	/* If shared, lock guards the others above but what is fixed by twheel_open(). */
	pthread_mutex_t lock;
	pthread_cond_t returned;	/* a callback for which somebody waits */
	struct waiter *waiters;
	struct twheel_timer *calling[CALLBACKS_MAX];
	uint32_t callbacks;		/* that a thread is in, or has left by longjmp() */
	pthread_t thread;		/* if callbacks is not 0: that thread */

	uint64_t occupied[LEVELS_MAX * SLOTS / 64];	/* bits: slots that are not NULL */
	struct twheel_timer *slot[LEVELS_MAX * SLOTS];
};

static inline uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t time_add(uint64_t a, uint64_t b)
{
	return b >= END_NS - a ? END_NS : a + b;
}

static inline uint64_t key_of(const struct twheel_timer *t)
{
	return t->deadline | KEY;
}

/* A timer that pends.  The first deadline of a periodic one may be 0. */
static inline bool is_periodic(const struct twheel_timer *t)
{
	return t->deadline <= KEY && (likely(t->deadline != KEY) || t->interval_ns);
}

/* By its first timer; a slot that is not used has none. */
static inline bool is_empty(const struct twheel *w, const struct twheel_timer *first)
{
	return !first || first == &w->end;
}

static inline bool first_is_known(const struct twheel *w)
{
	return w->first && (w->earliest ? *w->first == w->earliest : !is_empty(w, *w->first));
}

/* A list ends in a timer of the wheel: this is not for a slot that is NULL. */
static inline void push(struct twheel_timer **list, struct twheel_timer *t)
{
	struct twheel_timer *next = *list;

	t->next = next;
	t->pprev = list;
	next->pprev = &t->next;
	*list = t;
}

static inline void unlink_timer(struct twheel_timer *t)
{
	*t->pprev = t->next;
	t->next->pprev = t->pprev;
}

static inline bool stop_timer(struct twheel_timer *t)
{
	if (!t->deadline)
		return false;
	unlink_timer(t);
	t->deadline = 0;
	return true;
}

/* Move timers of a list to the head of another, those whose keys are not after this one. */
static inline void move_by(struct twheel *w, struct twheel_timer **from,
			   struct twheel_timer **to, uint64_t by)
{
	struct twheel_timer *t, *next;

	for (t = *from; t != &w->end; t = next) {
		next = t->next;
		if (key_of(t) <= by) {
			unlink_timer(t);
			push(to, t);
		}
	}
}

/* Make a list that of another head; the other one is empty then. */
static inline void take_list(struct twheel *w, struct twheel_timer **to,
			     struct twheel_timer **from)
{
	*to = *from;
	(*to)->pprev = to;
	*from = &w->end;
}

void wheel_init(struct twheel *w);
void wheel_place(struct twheel *w, struct twheel_timer *t, uint64_t passed);
bool wheel_turn(struct twheel *w);
void wheel_look_ahead(struct twheel *w, unsigned int called);
void wheel_search(struct twheel *w);
void wheel_rewind(struct twheel *w, uint64_t edge);
void wheel_each(struct twheel *w, twheel_visitor *fn, void *arg);

/* Find out when there will be something to do.  The first timer may be known from before. */
static inline void wheel_find_next(struct twheel *w)
{
	w->at_once = w->list[PASSED_NEXT] != &w->end || w->list[DUE] != &w->end ||
		w->list[PASSED_NOW] != &w->end;
	if (!w->at_once && (w->head.next <= w->target || !first_is_known(w)))
		wheel_search(w);
}

static inline bool can_be_set(uint32_t clock)
{
	return clock == TWHEEL_REALTIME || clock == TWHEEL_TAI;
}

/* If a call could cancel its thread under the lock, disable that: the lock would stay taken. */
static inline struct twheel *lock(struct twheel *w)
{
	if (unlikely(w->head.shared))
		pthread_mutex_lock(&w->lock);
	return w;
}

static inline void unlock(struct twheel *w)
{
	if (unlikely(w->head.shared))
		pthread_mutex_unlock(&w->lock);
}

static inline void unlock_block(struct twheel **w)
{
	unlock(*w);
}

/* The rest of the block has the lock, also if a visitor throws in it. */
#define LOCKED(w)	\
	struct twheel *locked __attribute__((__cleanup__(unlock_block), __unused__)) = lock(w)

/* There are no turns: each start reads the clock and sets the descriptor. */
static inline bool is_immediate(const struct twheel *w)
{
	return w->options.flags & (TWHEEL_SHARED | TWHEEL_IMMEDIATE);
}

/* Another thread is in a callback: only its callbacks are called without the lock. */
static inline bool is_elsewhere(const struct twheel *w)
{
	return unlikely(w->head.shared) && w->callbacks &&
		!pthread_equal(w->thread, pthread_self());
}

static inline uint64_t last_edge(const struct twheel *w)
{
	uint64_t passed = (w->clock_ns | KEY) - w->target;

	if (likely(passed < 2 * w->edge_ns))
		return passed < w->edge_ns ? w->target : w->target + w->edge_ns;
	return (w->clock_ns - w->clock_ns % w->edge_ns) | KEY;
}

uint64_t loop_clock(clockid_t id);
uint64_t loop_read(const struct twheel *w);
int loop_sleep(int fd, clockid_t id, uint64_t end_ns);
int options_copy(void *to, size_t known, const void *from);

/* Callers of these hold the lock. */
uint64_t loop_update(struct twheel *w);
void loop_end_turn(struct twheel *w);
uint64_t loop_wake_ns(struct twheel *w);
int loop_set_fd(struct twheel *w);
void loop_place(struct twheel *w, struct twheel_timer *t, uint64_t ns);
struct twheel_timer **loop_callback_of(struct twheel *w, const struct twheel_timer *t);
int loop_dispatch(struct twheel *w, unsigned int max);
void timers_start(struct twheel *w, struct twheel_timer *t, uint64_t ns, uint64_t interval_ns);

static inline uint64_t loop_turn_ns(struct twheel *w)
{
	return w->head.now != NO_KEY ? w->clock_ns : loop_update(w);
}

#endif /* _TWHEEL_WHEEL_H */
