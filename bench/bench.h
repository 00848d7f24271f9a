/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the benchmark's parts: the interface of a back end, the meter, and the report of
 * results.
 *
 * A timeout is known by a number, 0 to n - 1, which the back end translates.
 * Deadlines are nanoseconds on CLOCK_MONOTONIC.
 */
#ifndef TWHEEL_BENCH_H
#define TWHEEL_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define US		1000ULL
#define MS		1000000ULL
#define SEC		1000000000ULL
#define ARRAY_SIZE(x)	(sizeof(x) / sizeof((x)[0]))

/* How late a timeout may be, for the back ends that have slack. */
#define SLACK_NS	(15 * MS)

/* How many timeouts the workloads hand over at a time. */
#define BATCH		256

/* ---- the back ends ------------------------------------------------------- */

/* Workloads, to say which of them a back end takes part in. */
enum workload {
	ARM, REFRESH, CANCEL, EARLIER, YOUNG, EXPIRE, MIX, MEMORY, CHURN, MOVED, IDLE, LATE,
	REQUEST, SLOW, LIFO, RESTART, LENGTHS, BURST,
	CALLS, SCALE, HUGE, WAKEUPS, DISPATCH, WHEELS, SHARED, NR_WORKLOADS
};

#define DOES(w)		(1U << (w))
#define DOES_ALL	(DOES(CALLS) - 1)
#define DOES_OPS	(DOES(ARM) | DOES(REFRESH) | DOES(CANCEL) | DOES(EARLIER) | DOES(YOUNG))
#define DOES_MEMORY	(DOES(MEMORY) | DOES(CHURN) | DOES(MOVED))
/* The workloads that are a loop with turns. */
#define DOES_DAEMON	(DOES(REQUEST) | DOES(SLOW) | DOES(LIFO) | DOES(RESTART) | DOES(LENGTHS) | \
			 DOES(BURST))
/* The workloads that report the cost of one timeout, which depends on earlier measurements. */
#define DOES_COST	(DOES_OPS | DOES(EXPIRE) | DOES(MIX))

/* The parameters with which a back end is opened. */
struct setup {
	uint32_t nr;		/* timeouts */
	uint64_t same_ns;	/* the one distance that all are armed with, or 0 */
	uint64_t other_ns;	/* that of the upper half of them, if it is another, or 0 */
	/*
	 * The workload is a loop: wait() is called once a turn, and all are armed with
	 * same_ns, or other_ns, from the present.
	 */
	bool turns;
	/*
	 * Several threads arm and cancel, one by one, after same_ns; turns is set, too.  If the
	 * back end reads the clock itself, it gets that distance in place of a deadline.
	 */
	bool shared;
	/*
	 * Lateness is measured, and there is no descriptor but the peer's own.  If the back end
	 * sleeps until a time, it does not do so by a timeout of poll(), which is 0.1 % late.
	 */
	bool in_time;
};

static inline uint64_t length_of(const struct setup *setup, uint32_t who)
{
	return setup->other_ns && who >= setup->nr / 2 ? setup->other_ns : setup->same_ns;
}

/* The counters that a library keeps of itself. */
struct tally {
	uint64_t vain;		/* events of timeouts that had been stopped */
	uint64_t rearmed;	/* events of timeouts that had been moved */
	uint64_t calls;		/* of the wheel, or of the kernel */
};

/*
 * One way to have timeouts.  If a function fails, it ends the process with a message: each
 * measurement is a process of its own.
 */
struct peer {
	const char *name;
	const char *usage;	/* how it is used, for the reader of the table */
	unsigned int workloads;
	uint32_t max;		/* the most it can hold, or take time for; 0: any */
	uint32_t batch;		/* timeouts at a time, if not BATCH */
	uint32_t timer_size;	/* bytes of the caller for each timeout, for the report; or 0 */
	uint32_t wheel_size;	/* bytes of the caller for what all timers are in; or 0 */
	bool is_structure;	/* that memory is the structure itself, not a handle of one */
	bool reads_clock;	/* in arm(), and */
	bool has_lock;		/* its own lock, if setup.shared is set */
	/* Why it cannot be measured here; NULL if it can. */
	const char *(*absent)(void);
	void *(*open)(const struct setup *setup);
	/* Make what serves many arms of a timeout.  NULL: nothing has to be made. */
	void (*create)(void *self, uint32_t first, uint32_t nr);
	void (*arm)(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr);
	void (*refresh)(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr);
	void (*cancel)(void *self, const uint32_t *who, uint32_t nr);
	/* Pass the timeouts that have expired to expired(); if `sleep', sleep until one has. */
	void (*wait)(void *self, bool sleep);
	/* From now on, let the sleep of wait() also end when this descriptor is readable. */
	void (*watch)(void *self, int fd);
	/* Run fn() in a turn of its loop. NULL: fn(), and then wait() without sleep. */
	void (*turn)(void *self, void (*fn)(void *arg), void *arg);
	/* NULL: it has no counters. */
	void (*tally)(void *self, struct tally *tally);
	/* Wait until all that was handed over is in force. NULL: it always is. */
	void (*settle)(void *self);
	/* NULL: the end of the process does it. */
	void (*close)(void *self);
};

/* A back end whose library was missing when this was built. */
#define ABSENT_PEER(var, its_name, why)					\
	static const char *var##_absent(void) { return why; }		\
	const struct peer var = { .name = its_name, .workloads = DOES_ALL,\
				  .absent = var##_absent }

extern const struct peer peer_empty, peer_libtwheel, peer_libtwheel_fd,
	peer_twheel, peer_twheel_store, peer_twheel_checked, peer_twheel_keyed,
	peer_twheel_single, peer_twheel_keyed_single, peer_twheel_slack, peer_timerfd_slack,
	peer_twheel_10ms, peer_twheel_2_wheels, peer_twheel_8_wheels,
	peer_timerfd, peer_timerfd_1ms, peer_posix, peer_io_uring,
	peer_table, peer_table_device, peer_libev, peer_libuv, peer_libevent, peer_heap,
	peer_callout, peer_levels, peer_bpf_timer, peer_bpf_1ms, peer_bpf_store;
extern const struct peer *const peers[];

/* The timeouts that have expired since the caller last set nr_expired to 0. */
extern uint32_t *expired_who;
extern uint32_t nr_expired;

static inline void expired(uint32_t who)
{
	expired_who[nr_expired++] = who;
}

/* ---- measurements -------------------------------------------------------- */

/* The clock counts instructions: see meter.c. */
extern bool counts_instructions;

/* The resources that have been used, at a moment or between two. */
struct meter {
	uint64_t elapsed_ns;
	uint64_t busy_ns;	/* or instructions */
	uint64_t wakeups;	/* of the process */
	uint64_t kthread_wakeups;
};

void meter_start(struct meter *meter);
void meter_stop(struct meter *meter);
/* Bytes of memory that nobody uses: for a machine at rest, on which nothing else runs. */
uint64_t free_bytes(void);
uint64_t slab_bytes(void);
/* Memory of this process alone. */
uint64_t process_bytes(void);
/* Context switches of another process. */
uint64_t switches_of(int pid);
uint64_t kthread_switches(void);
/* Sleep until the module's kthreads have nothing more to do. */
void kthreads_rest(void);
/* The machine's interrupts of local timers, and all of them. */
void count_interrupts(uint64_t *timers, uint64_t *all);

static inline struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / SEC, .tv_nsec = ns % SEC };
}

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

void sleep_until(uint64_t when_ns);

/* Numbers that look random and are the same in each run. */
static inline uint32_t random32(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return *seed >> 32;
}

/* Memory whose pages are allocated: to touch it later costs nothing. */
void *get_memory(size_t nr, size_t size);
/* How many bytes were asked for, and how many bytes of pages these take. */
extern uint64_t got_bytes, got_page_bytes;

/* One row of the CSV. */
void result(const char *peer, const char *workload, uint32_t n, const char *metric, double value);
/* The cost of one of `times' operations, in the unit of this mode. */
void result_cost(const char *peer, const char *workload, uint32_t n, const struct meter *meter,
		 uint64_t times);

/* ---- workloads, each in a process of its own ----------------------------- */

/* The workloads that were asked for of the same process. */
extern unsigned int wanted;

void run_ops(const struct peer *peer, uint32_t n);
void run_earlier(const struct peer *peer, uint32_t n);
void run_young(const struct peer *peer, uint32_t n);
void run_expire(const struct peer *peer, uint32_t n);
void run_late(const struct peer *peer, uint32_t n);
void run_mix(const struct peer *peer, uint32_t n);
void run_memory(const struct peer *peer, uint32_t n);
void run_churn(const struct peer *peer, uint32_t n);
void run_moved(const struct peer *peer, uint32_t n);
void run_idle(const struct peer *peer, uint32_t n);
void run_request(const struct peer *peer, uint32_t n);
void run_slow(const struct peer *peer, uint32_t n);
void run_lifo(const struct peer *peer, uint32_t n);
void run_restart(const struct peer *peer, uint32_t n);
void run_lengths(const struct peer *peer, uint32_t n);
void run_burst(const struct peer *peer, uint32_t n);
void run_calls(const struct peer *peer, uint32_t n);
void run_scale(const struct peer *peer, uint32_t n);
void run_huge(const struct peer *peer, uint32_t n);
void run_wakeups(const struct peer *peer, uint32_t n);
void run_dispatch(const struct peer *peer, uint32_t n);
void run_wheels(const struct peer *peer, uint32_t n);
void run_shared(const struct peer *peer, uint32_t threads);

/* These are for twheel alone. */
void twheel_list_all(void *self, uint32_t nr);
/* ARM by records of write(), up to BATCH of them. */
void twheel_write(void *self, const uint32_t *who, const uint64_t *deadline_ns, uint32_t nr);
/* From now on self uses the wheel of other. */
void twheel_share(void *self, void *other);

/* ---- the report ---------------------------------------------------------- */

void report_row(const char *line);
void report_print(void);
/* Compare with an older CSV; return how many values have moved, or -1. */
int report_compare(const char *path);
int report_read(const char *path);

#endif
