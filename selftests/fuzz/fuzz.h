/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fuzz.h - what the parts of twheel_fuzz share
 *
 *	fuzz_program.c the calls to make: programs, mutation, the corpus fuzz_memory.c  pointers
 *	to give, good and hostile fuzz_vectors.c       the commands with a vector, and LIST
 *	fuzz_calls.c       all other calls, and the table of them all fuzz_cover.c KCOV
 *	fuzz_ledger.c      what became of each timeout, reconciled after a round fuzz_round.c
 *	a round: wheels, threads, watchdog, accounts twheel_fuzz.c      options, rounds, results
 */
#ifndef TWHEEL_FUZZ_H
#define TWHEEL_FUZZ_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <linux/twheel.h>
#include <twheel/device.h>

#define DEVICE		"/dev/twheel"

#define NS_PER_US	1000ULL
#define NS_PER_MS	1000000ULL
#define NS_PER_SEC	1000000000ULL
#define NS_PER_MIN	(60 * NS_PER_SEC)
#define NS_PER_HOUR	(60 * NS_PER_MIN)
#define NS_PER_DAY	(24 * NS_PER_HOUR)

#define THREADS_MAX	8
#define WHEELS		3
#define ALIASES		4	/* numbers by which a wheel is known; 0 is its own */
#define SEQUENCE	32	/* steps that are kept, or not, together */
#define SEQUENCES	24	/* of one thread in one round */
#define STEPS		(SEQUENCE * SEQUENCES)
#define RECENT		1024	/* ids that a wheel remembers */

/* Numbers of descriptors are fixed: whoever closes one, it never means another wheel. */
#define FD_FIRST	600
#define fd_of(wheel, alias)	(FD_FIRST + (wheel) * ALIASES + (alias))

#define min(a, b)	((a) < (b) ? (a) : (b))
#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif
#define max(a, b)	((a) > (b) ? (a) : (b))

/* ---- steps --------------------------------------------------------------- */

enum op {
	OP_INFO, OP_SETUP, OP_ARM, OP_REARM, OP_CANCEL, OP_QUERY, OP_LIST, OP_DRAIN,
	OP_ADVANCE, OP_UNKNOWN, OP_READ, OP_READV, OP_WRITE, OP_POLL, OP_EPOLL_CTL, OP_EPOLL_WAIT,
	OP_FLAGS, OP_DUP, OP_CLOSE, OP_PASS, OP_REOPEN, OP_FORK, OP_FDINFO, OP_MMAP,
	OP_NO_CALL, OP_CLOCK, OP_SIGNAL, OP_SCRIBBLE,
	NR_OPS
};

/*
 * A call to be made. These bytes determine all of it; only ids and the present time are looked up
 * when it is made.
 */
struct step {
	__u8 op;
	__u8 wheel;
	__u8 alias;
	__u8 spoil;		/* the mistake in the argument; 0: none */
	__u8 place;		/* the kind of memory it is in; 0: the right one */
	__u8 nr;		/* how many elements or bytes */
	__u8 kind;
	__u8 spare;
	__u64 seed;		/* determines the rest */
};

struct sequence {
	struct step step[SEQUENCE];
};

/* The plan that all threads of a round share. */
struct plan {
	__u64 round;
	int threads;
	__u64 seed;
	struct sequence sequence[THREADS_MAX][SEQUENCES];
};

void plan_make(struct plan *plan, __u64 seed, __u64 round, int threads);
/* Keep a sequence of the plan: it has reached code that none had reached before. */
void corpus_keep(const struct plan *plan, int thread, int sequence);
size_t corpus_size(void);
/* Keep a sequence, and note its name. */
void kept_add(const struct plan *plan, int thread, int sequence);
/* Make one random step of an op; for children, who have no plan. */
struct step step_make(__u64 *seed, enum op op, int wheel);

/* Mix two numbers into one that depends on both. */
static inline __u64 mix(__u64 a, __u64 b)
{
	__u64 z = a * 0x9e3779b97f4a7c15ULL + b + 0x632be59bd9b4e019ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static inline __u32 random32(__u64 *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return *seed >> 32;
}

static inline __u64 random64(__u64 *seed)
{
	__u64 high = random32(seed);

	return high << 32 | random32(seed);
}

static inline __u32 random_below(__u64 *seed, __u32 n)
{
	return random32(seed) % n;
}

static inline bool one_in(__u64 *seed, __u32 n)
{
	return !random_below(seed, n);
}

static inline __u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

static inline void sleep_ns(__u64 ns)
{
	struct timespec left = { ns / NS_PER_SEC, ns % NS_PER_SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

/* ---- errors that are found ------------------------------------------------ */

/* The checks; each is one test. */
enum check {
	CHECK_ACCOUNTS, CHECK_OUTCOMES, CHECK_ANSWERS, CHECK_HANGS, CHECK_CLOSE, CHECK_LOG,
	NR_CHECKS
};

__attribute__((format(printf, 2, 3))) void wrong(enum check check, const char *fmt, ...);
bool anything_wrong(void);

/* ---- memory --------------------------------------------------------------- */

/**
 * struct place - memory for an argument
 * @user: the pointer that the kernel gets
 * @mine: the same memory, always writable; scratch when @user is no memory
 * @writable: bytes from @user on that the kernel can write
 * @lossy: other threads write there: its contents mean nothing
 */
struct place {
	__u64 user;
	unsigned char *mine;
	size_t writable;
	bool lossy;
};

#define VIEW_PAGES	800	/* room for the longest vector of the largest elements */
#define HOSTILE_MAX	16384	/* longer arguments get memory of the right kind */

struct views {
	unsigned char *mine;	/* all of it, writable */
	unsigned char *user;	/* VIEW_PAGES writable, then read-only ones, then none */
	unsigned char *edge;	/* one writable page, then none */
	unsigned char *head;	/* for the structure before a vector */
};

int views_make(struct views *views);
void arena_make(void);
void arena_scribble(__u64 seed);

/* ---- coverage ------------------------------------------------------------- */

struct cover {
	int fd;
	unsigned long *area;	/* NULL: no KCOV */
	bool fresh;		/* a new edge was reached since this was last cleared */
};

void cover_open(struct cover *cover);
void cover_start(struct cover *cover);
void cover_stop(struct cover *cover);
void cover_begin(struct cover *cover);
void cover_end(struct cover *cover);
unsigned int cover_edges(void);
unsigned int cover_places(void);

/* ---- wheels and threads --------------------------------------------------- */

/*
 * If a wheel is strict, every outcome is known, and those of each id are reconciled. So no thread
 * re-arms or cancels there by key, which does not report the id. If it is not strict, it is closed,
 * written to at random, and used by children that are killed: only the kernel's own counters are
 * checked.
 */
struct wheel {
	bool strict;
	_Atomic bool may_be_keyed;	/* a thread has tried, or will in a moment */
	_Atomic __u32 clock;
	_Atomic __u64 tick_ns;
	__u32 event_size;		/* only the beginning of a round sets another one */
	_Atomic __u64 now_ns;		/* the virtual clock, as far as known */
	_Atomic __u32 nr_recent;
	_Atomic __u64 recent[RECENT];
};

/* An outcome of an id that a thread has seen. */
enum fact { ARMED, REARMED, CANCELLED, REVOKED, DELIVERED, LISTED, NR_FACTS };

struct record {
	__u64 id;
	__u64 user_data;	/* ARMED, DELIVERED */
	__u32 count;		/* DELIVERED: expirations; ARMED: repeats */
	__u8 fact;
	__u8 wheel;
	bool periodic;		/* ARMED */
	bool drained;		/* DELIVERED: so flagged */
	bool ended;		/* DELIVERED: so flagged */
	bool final;		/* DELIVERED: after the round was over */
};

struct ledger {
	struct record *record;
	size_t nr;
	size_t room;
};

void ledger_note(struct ledger *ledger, const struct record *record);
void ledger_reconcile(struct ledger *const ledgers[], int nr, int wheel,
		      const struct twheel_info *info, bool emptied);

struct thread {
	int nr;
	pthread_t pthread;
	pid_t tid;
	bool child;		/* a forked one, which is no thread of the round */
	const struct sequence *sequence;
	bool kept[SEQUENCES];
	struct views views;
	struct cover cover;
	struct ledger ledger;
	int epoll;
	__u64 serial;		/* user_data of the next timeout */
	const struct step *step;	/* the step that it makes */
	_Atomic __u64 done;	/* how many steps it has made */
	_Atomic bool patient;	/* in a call that may last until a signal comes */
	_Atomic bool finished;
};

extern struct wheel wheels[WHEELS];
extern struct thread threads[THREADS_MAX];
extern int nr_threads;
/* System calls made on the device or a descriptor of it; those of children count too. */
extern _Atomic __u64 *calls;

struct place place_choose(struct thread *t, __u8 kind, __u64 seed, size_t len, bool strict);
struct place place_head(struct thread *t, __u8 kind, __u64 seed);

/* The wheel's present time, as far as it is known. */
__u64 wheel_now(struct wheel *w);
/* Return a key: one of a few hundred, or any. */
__u64 wheel_some_key(__u64 *seed);
/* Return an id of the wheel, or one that is not the wheel's. */
__u64 wheel_some_id(struct wheel *w, __u64 *seed);
void wheel_remember(struct wheel *w, __u64 id);

void call_begin(struct thread *t);
void call_end(struct thread *t);
int call_ioctl(struct thread *t, int fd, unsigned long cmd, __u64 arg);
/* Check that the call has failed with one of these; 0 ends the list. */
bool answer_is_one_of(int ret, const int *allowed);
void answered(struct thread *t, int ret, const int *allowed, bool refused);

void run_vector(struct thread *t, const struct step *step);
void run_list(struct thread *t, const struct step *step);
void run_write(struct thread *t, const struct step *step);
void step_run(struct thread *t, const struct step *step);
const char *op_name(enum op op);
void events_seen(struct thread *t, int wheel, const struct twheel_event *event, size_t nr,
		 bool final);

/* round_init() prepares all rounds; round_run() does one. */
void round_init(void);
void round_run(struct plan *plan);

#endif /* TWHEEL_FUZZ_H */
