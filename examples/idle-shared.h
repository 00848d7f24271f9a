/* SPDX-License-Identifier: 0BSD */
/*
 * idle-shared.h - shared by the keeper and the workers of the shared server
 *
 * All of it is in memory that the processes share.  A worker may be killed between any two
 * instructions, so this memory has to be right at any time.
 */
#ifndef IDLE_SHARED_H
#define IDLE_SHARED_H

#include <twheel/device.h>

#include "idle-server.h"

#define LOAD(x)		__atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define STORE(x, value)	__atomic_store_n(&(x), value, __ATOMIC_SEQ_CST)

/*
 * A connection.  Its number is its place in the order of arrival, and no other gets it.  The wheel
 * is keyed: the key of a timeout is made of that number, so that no process has to know an id to
 * re-arm or to cancel it, and an event shows whose it is.
 */
struct conn {
	uint64_t id;		/* of the idle timeout, for the refresh table; the keeper's */
	uint32_t open;		/* the keeper's */
	uint32_t busy;		/* the worker is about to read it, or has not noted that below */
	uint64_t heard_ns;	/* when the worker read its last byte */
	uint64_t line_ns;	/* when the incomplete line began; 0: there is none */
};

/*
 * The vectors of a process, and the sums of their results.  The kernel writes the result of each
 * element into it.  So if a process is killed in the middle of a call, another one finds here the
 * results of the call, and the sums are exact.
 */
struct ledger {
	struct accounts sum[2];
	uint32_t state;		/* the sum in force; LEDGER_OPEN */
	uint32_t nr_arm, nr_cancel;
	struct twheel_arm arm[EVENTS];
	struct twheel_cancel cancel[EVENTS];
	uint64_t refreshed;
};

#define LEDGER_SUM	1U
#define LEDGER_OPEN	2U	/* the sum in force lacks the results of the vectors */

struct shared {
	struct ledger keeper;
	struct ledger worker[MAX_WORKERS];
	struct conn conn[];
};

/* The data that the processes inherit. */
struct common {
	struct server *s;
	struct shared *shared;
	struct twheel_device *wheel;
	twheel_word_t *table;
	uint32_t shift;
};

/* A message to a worker: serve the connection whose descriptor comes with it. */
struct handover {
	uint32_t number;
};

static inline uint64_t conn_key(uint32_t number, enum timeout t)
{
	return (uint64_t)number * NR_TIMEOUTS + t;
}

/* idle-ledger.c */
void ledger_arm(struct ledger *l, uint64_t key, uint64_t deadline_ns);
void ledger_cancel(struct ledger *l, uint64_t key);
void ledger_submit(struct ledger *l, const struct twheel_device *wheel);
void ledger_settle(struct ledger *l);
const struct accounts *ledger_sum(const struct ledger *l);

/* idle-worker.c */
void conn_hand_over(int control, uint32_t number, int fd);
noreturn void worker_run(const struct common *common, struct ledger *ledger, int control);

#endif /* IDLE_SHARED_H */
