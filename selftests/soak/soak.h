/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the parts of the soak: the parameters, the verdicts, and the oracle, which remembers
 * the outcome that each timeout must have.
 */
#ifndef SOAK_H
#define SOAK_H

#include "../twheel_test.h"

struct soak_options {
	__u64 seed;
	__u32 days;
	__u32 pending;
};

/* ---- verdicts ------------------------------------------------------------ */

/* Kinds of faults; each is one test of each part. */
enum fault {
	FAULT_EARLY,
	FAULT_LATE,
	FAULT_LOST,
	FAULT_TWICE,
	FAULT_COUNT,
	FAULT_ORDER,
	FAULT_VERDICT,
	FAULT_BOOKS,
	NR_FAULTS
};

void part_begin(const char *name);
void part_end(void);
/* If this is true, end the part: no result from here on would mean anything. */
bool part_is_hopeless(void);
/* Report a result that is no count of faults. */
void result(bool ok, const char *name);
/* Count a fault, and print the first ones. */
#define LIKE_PRINTF	__format__(__printf__, 2, 3)
void fault(enum fault what, const char *format, ...) __attribute__((LIKE_PRINTF));

/* ---- numbers that look random -------------------------------------------- */

__u32 random_below(__u32 limit);
/* Return a random number whose scale is as likely as any other from low to high. */
__u64 random_scale(__u64 low, __u64 high);

/* ---- the oracle ---------------------------------------------------------- */

/**
 * struct job - a timeout, as the oracle knows it
 * @id: the id of its present schedule, or of its last one; 0 if it has had none
 * @deadline_ns: the next one to pass, or the first one that is unread
 * @interval_ns: the period in force, 0 for a one-shot
 * @stride_ns: the distance of the edges at which it may expire: the tick, and more with slack
 * @armed_ns: the time at which it was armed, or a little earlier
 * @slop_ns: the deadline may be this much later if it was relative
 * @repeats: expirations left, 0 for no limit
 * @live: it holds a place
 * @delay: its delay is fixed
 * @overdue: it was due when armed, and waits for no edge
 */
struct job {
	__u64 id;
	__u64 deadline_ns;
	__u64 interval_ns;
	__u64 stride_ns;
	__u64 armed_ns;
	__u32 slop_ns;
	__u32 repeats;
	bool live;
	bool delay;
	bool overdue;
};

#define ORACLE_BATCH	8192

/**
 * struct oracle - a wheel, and the outcomes that its timeouts must have
 * @setup: the wheel's configuration
 * @fd: the wheel
 * @job: the timeouts, by user_data
 * @nr_jobs: how many
 * @now_ns: the wheel's clock, or a little earlier
 * @since_ns: the time since which that clock has moved without a step
 * @catch_up_ns: how long after that the wheel may still be busy with the timeouts that the
 *	step has made due at once
 * @slack_ns: if an event is within this distance of a call, it may be before or after it; 0
 *	on the virtual clock, which stands still
 * @in_order: events come in the order of ticks, unless the clock is set
 * @last_edge_ns: the first edge of the event read last
 * @ended: called with each job that ended because its event was read
 * @arm: the elements for the next flush; and so on
 * @books: the values that INFO must have, as far as they are known
 * @expirations_max: the most that books.expirations may be: if an event was revoked, its
 *	timeout may have expired once more
 * @max_late_ns: the greatest distance of an expiration from its edge
 */
struct oracle {
	struct twheel_setup setup;
	int fd;
	struct job *job;
	__u32 nr_jobs;
	__u64 now_ns;
	__u64 since_ns;
	__u64 catch_up_ns;
	__u64 slack_ns;
	bool in_order;
	__u64 last_edge_ns;
	void (*ended)(struct oracle *o, __u32 index);

	struct twheel_arm *arm;
	struct twheel_arm *rearm;
	struct twheel_cancel *cancel;
	__u32 *cancel_index;
	struct twheel_event *event;
	__u32 nr_arm;
	__u32 nr_rearm;
	__u32 nr_cancel;
	bool relative;

	struct twheel_info books;
	__u64 expirations_max;
	__u64 max_late_ns;
};

bool oracle_open(struct oracle *o, __u32 nr_jobs);
void oracle_close(struct oracle *o);
/* Read the wheel's clock. */
void oracle_stamp(struct oracle *o);
__u64 oracle_edge_ns(const struct oracle *o, __u64 deadline_ns);
/* Note a call for the next flush, which does cancels, then re-arms, then arms. */
void oracle_arm(struct oracle *o, __u32 index, struct twheel_arm arm);
void oracle_rearm(struct oracle *o, __u32 index, struct twheel_arm arm);
void oracle_cancel(struct oracle *o, __u32 index);
void oracle_flush(struct oracle *o);
/* Read all events and judge them; return how many there were. */
unsigned int oracle_read(struct oracle *o);
/* Move the virtual clock, and read all events. */
void oracle_advance(struct oracle *o, __u64 to_ns);
/* After a read, check that no timeout that is due has been left out. */
void oracle_find_lost(struct oracle *o);
/* Check the same, and the values of INFO. */
void oracle_check_books(struct oracle *o);
void oracle_query(struct oracle *o, __u32 index);
/* Drain the wheel: all live timeouts must come, once. */
void oracle_drain(struct oracle *o);

/* ---- the parts ----------------------------------------------------------- */

void soak_mix(const struct soak_options *options);
void soak_steps(const struct soak_options *options);
void soak_virtual(const struct soak_options *options);
void soak_idle(const struct soak_options *options);
void soak_rush(const struct soak_options *options);

#endif /* SOAK_H */
