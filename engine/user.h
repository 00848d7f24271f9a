/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The users of twheel: their turns with the kthreads, and their shares of memory
 */
#ifndef _TWHEEL_ENGINE_USER_H
#define _TWHEEL_ENGINE_USER_H

#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>

struct seq_file;
struct twheel_user;

/**
 * struct twheel_queue - the wheels of one user that wait for a turn with one kthread
 * @lock: guards @turns and the members of struct twheel_turn.  The softirq takes it, so
 *	that all others disable interrupts.
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
 * @node: link in struct twheel_queue.turns, empty while no turn is asked for;
 *	&twheel_queue.lock
 * @queue: the queue; constant
 * @take: takes the turn: works until nothing is left to do, or until the clock
 *	(ktime_get_ns()) reads @end_ns.  Returns true when more is to be done.
 *	Constant.
 * @cancelled: the wheel gets no turn any more; &twheel_queue.lock
 */
struct twheel_turn {
	struct list_head node;
	struct twheel_queue *queue;
	bool (*take)(struct twheel_turn *turn, u64 end_ns);
	bool cancelled;
};

/* The kthreads that serve the wheels; constant while there are users. */
extern struct kthread_worker **twheel_workers;
extern unsigned int twheel_nr_workers;

/*
 * The limits of memory for all users together, and for each of them, bytes.  They may change at any
 * time: if more is charged already, that stays, and nothing is added until it is below the limit.
 */
extern long twheel_max_memory, twheel_max_user_memory;

void twheel_turn_init(struct twheel_turn *turn, struct twheel_user *user,
		      bool (*take)(struct twheel_turn *turn, u64 end_ns));
void twheel_turn_request(struct twheel_turn *turn);
void twheel_turn_cancel(struct twheel_turn *turn);

struct twheel_user *twheel_user_get(void);
void twheel_user_put(struct twheel_user *user);
void twheel_users_show(struct seq_file *m);
kuid_t twheel_user_uid(const struct twheel_user *user);
unsigned int twheel_user_ns(const struct twheel_user *user);

bool twheel_user_may_work(const struct twheel_user *user, u64 now_ns);
void twheel_user_has_worked(struct twheel_user *user, u64 begin_ns, u64 end_ns);

int twheel_charge(struct twheel_user *user, size_t bytes);
void twheel_uncharge(struct twheel_user *user, size_t bytes);
long twheel_charged(void);

#endif /* _TWHEEL_ENGINE_USER_H */
