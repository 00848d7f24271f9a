/* SPDX-License-Identifier: GPL-2.0 */
/* Users: their turns with the kthreads, their shares of the softirq and of memory; counters */
#ifndef _TWHEEL_ENGINE_ACCOUNT_H
#define _TWHEEL_ENGINE_ACCOUNT_H

#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <linux/time64.h>
#include <linux/user_namespace.h>

struct seq_file;
struct tw_ctx;

/**
 * struct twheel_queue - the wheels of one user that wait for a turn with one kthread
 * @lock: guards @turns and struct twheel_turn.  The softirq takes it to request a turn, so all
 *	others disable interrupts.  It is taken under no spinlock of the engine; only the lock of
 *	the kthread's list is taken under it.
 * @turns: the wheels, in the order of their turns; @lock
 * @worker: the kthread; constant
 * @work: the user's turn; it is queued, or running, while @turns is not empty
 */
struct twheel_queue {
	spinlock_t lock;	/* the softirq takes it */
	struct list_head turns;
	struct kthread_worker *worker;
	struct kthread_work work;
};

/**
 * struct twheel_turn - a wheel's turn with its kthread
 * @node: link in &twheel_queue.turns, empty if no turn is requested; &twheel_queue.lock
 * @queue: the queue; constant
 * @take: works for a bounded number of steps, until nothing is left to do, or until ktime_get_ns()
 *	reads @end_ns; returns true if there is more to do.  Called without @queue->lock.  Constant.
 * @cancelled: the wheel gets no turn any more; &twheel_queue.lock
 */
struct twheel_turn {
	struct list_head node;
	struct twheel_queue *queue;
	bool (*take)(struct twheel_turn *turn, u64 end_ns);
	bool cancelled;
};

/**
 * struct twheel_user - a user who has a wheel open
 * @node: link in the table of users; users_mutex
 * @ns: the initial user namespace, or that of a container; the user has a reference; constant
 * @uid: the user's id; the id of root if @ns is that of a container; constant
 * @nr_wheels: wheels that are open; users_mutex
 * @charged: bytes that the user's wheels take, and this structure; atomic
 * @paid_ns: the time (ktime_get_ns()) from which on the user owes the softirq nothing; atomic
 * @queue: one queue for each kthread; each has a lock of its own
 */
struct twheel_user {
	struct hlist_node node;
	struct user_namespace *ns;
	kuid_t uid;
	unsigned long nr_wheels;
	atomic_long_t charged;
	atomic64_t paid_ns;
	struct twheel_queue queue[];
};

#define TWHEEL_WORKERS_MAX	64U

/* The kthreads that serve the wheels; constant while there are users. */
extern struct kthread_worker *twheel_workers[TWHEEL_WORKERS_MAX];
extern unsigned int twheel_nr_workers;

/*
 * The limits of memory for all users together, and for each of them, bytes.  They may change at any
 * time: if more is charged already, that stays, but nothing is added until it is below the limit.
 */
extern long twheel_max_memory, twheel_max_user_memory;

extern atomic_long_t twheel_all_charged;

static inline long twheel_charged(void)
{
	return atomic_long_read(&twheel_all_charged);
}

/* The real user id.  For a container: the id that its root has, or INVALID_UID. */
static inline kuid_t user_uid(const struct twheel_user *user)
{
	return user->ns == &init_user_ns ? user->uid : make_kuid(user->ns, 0);
}

/* For a user, the softirq may work one part in USER_PAUSES of the time of all processors. */
#define USER_PAUSES	10

/* Beyond that a user may owe the softirq this much work. */
#define USER_BURST_NS	(500 * NSEC_PER_USEC)

/* Return how long from @now_ns on the user owes more than a burst; may be negative. */
static inline s64 user_pause_ns(const struct twheel_user *user, u64 now_ns)
{
	s64 owed_ns = atomic64_read(&user->paid_ns) - now_ns;

	return owed_ns - (s64)(USER_BURST_NS * USER_PAUSES / num_online_cpus());
}

/* Return whether the softirq may work for a user; see twheel_user_has_worked(). */
static inline bool user_may_work(const struct twheel_user *user, u64 now_ns)
{
	return user_pause_ns(user, now_ns) <= 0;
}

/**
 * enum twheel_counter - the counters; each processor counts for itself
 * @COUNTER_PASSES_SOFTIRQ: steps of passes that the softirq has taken
 * @COUNTER_PASSES_KTHREAD: steps that a kthread has taken
 * @COUNTER_PASSES_CALL: steps that ADVANCE or DRAIN has taken
 * @COUNTER_LATE: timeouts that were late, as &twheel_events.late of each wheel
 * @COUNTER_REFUSED_PENDING: how often max_pending of a wheel has refused a timeout
 * @COUNTER_REFUSED_USER_MEMORY: how often max_user_memory_kb has refused memory
 * @COUNTER_REFUSED_MEMORY: how often max_memory_kb has refused memory
 * @COUNTER_WHEELS: wheels that are open
 * @COUNTER_TIMEOUTS: places in use, &twheel_places.nr_taken of each wheel
 * @NR_COUNTERS: how many counters there are
 */
enum twheel_counter {
	COUNTER_PASSES_SOFTIRQ,
	COUNTER_PASSES_KTHREAD,
	COUNTER_PASSES_CALL,
	COUNTER_LATE,
	COUNTER_REFUSED_PENDING,
	COUNTER_REFUSED_USER_MEMORY,
	COUNTER_REFUSED_MEMORY,
	COUNTER_WHEELS,
	COUNTER_TIMEOUTS,
	NR_COUNTERS,
};

DECLARE_PER_CPU(u64 [NR_COUNTERS], twheel_counters);

static inline void counter_add(enum twheel_counter counter, u64 nr)
{
	this_cpu_add(twheel_counters[counter], nr);
}

void twheel_turn_init(struct twheel_turn *turn, struct twheel_user *user,
		      bool (*take)(struct twheel_turn *turn, u64 end_ns));
void twheel_turn_request(struct twheel_turn *turn);
void twheel_turn_cancel(struct twheel_turn *turn);
struct twheel_user *twheel_user_get(void);
void twheel_user_put(struct twheel_user *user);
void twheel_users_show(struct seq_file *m);
void twheel_user_has_worked(struct twheel_user *user, u64 begin_ns, u64 end_ns);
int twheel_charge(struct twheel_user *user, size_t bytes);
void twheel_uncharge(struct twheel_user *user, size_t bytes);
void twheel_refused(const struct tw_ctx *tw, kuid_t uid, enum twheel_counter limit, u64 used,
		    u64 wanted, u64 most);
u64 twheel_counter(enum twheel_counter counter);

#endif /* _TWHEEL_ENGINE_ACCOUNT_H */
