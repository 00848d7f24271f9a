// SPDX-License-Identifier: GPL-2.0
/*
 * The users of twheel: whose turn it is, and whose memory
 *
 * A few kthreads serve the wheels of all users.  If the wheels simply queued for
 * them, a user who opens a hundred busy wheels would get a hundred turns for each
 * one of another user.  So it is users that queue, and each user has a queue of
 * wheels for each kthread:
 *
 *   kthread --> work of user 1 --> work of user 2 --> ...
 *                   |                  |
 *                wheel, wheel, ...  wheel
 *
 * The work of a user is a turn of TURN_NS at most, and then goes to the end of the
 * kthread's list (struct kthread_worker is a FIFO).  Within it the user's wheels
 * have turns of their own, one after the other.
 *
 * G2 bounded lateness: so a wheel that is due waits for the wheels of its own user,
 * and for TURN_NS, and at most one batch more, for each other user who has
 * something to be done by the same kthread.  How many wheels those users have, and
 * how many timeouts, does not matter.
 *
 * What the wheels take is counted in bytes, for all users and for each.  A user has
 * a share of what the module may take, so that no user can have it all.
 *
 * A user is a real user id of the initial user namespace, as it is for
 * fs/eventpoll.c.  It is there as long as it has an open wheel.
 *
 * Locks: users_mutex, for opening and closing; under it, nothing.  twheel_queue.lock,
 * in softirq too, is taken under the engine's wake.lock, and the lock of the
 * kthread's list is taken under it.
 */
#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/time64.h>
#include <linux/uidgid.h>

#include "user.h"

/* How long the wheels of one user work before another user has a turn. */
#define TURN_NS		(500 * NSEC_PER_USEC)

/**
 * struct twheel_user - a user who has a wheel open
 * @node: link in the table of users; users_mutex
 * @uid: who it is; constant
 * @nr_wheels: wheels open; users_mutex
 * @charged: bytes that it and its wheels take; atomic
 * @queue: a queue for each kthread
 */
struct twheel_user {
	struct hlist_node node;
	kuid_t uid;
	unsigned long nr_wheels;
	atomic_long_t charged;
	struct twheel_queue queue[];
};

static DEFINE_MUTEX(users_mutex);
static DEFINE_HASHTABLE(users, 6);

/* The kthreads; constant while there are users. */
static struct kthread_worker **kthread_workers;
static unsigned int nr_kthread_workers;

/* Counts the wheels that were given a queue, so that all kthreads have as many. */
static atomic_t nr_queued;

/* Bytes that the wheels of all users take, and the limits; constant while there are users. */
static atomic_long_t charged_total;
static long max_total, max_each;

/* Turns */

/* The first wheel of a queue is not in it any more while it has its turn. */
static struct twheel_turn *queue_pop(struct twheel_queue *queue)
{
	struct twheel_turn *turn;

	spin_lock_irq(&queue->lock);
	turn = list_first_entry_or_null(&queue->turns, struct twheel_turn, node);
	if (turn)
		list_del_init(&turn->node);
	spin_unlock_irq(&queue->lock);
	return turn;
}

/* Put a wheel at the end, unless it is there, or goes.  True if it was put there. */
static bool queue_add(struct twheel_queue *queue, struct twheel_turn *turn)
	__must_hold(&queue->lock)
{
	lockdep_assert_held(&queue->lock);
	if (turn->cancelled || !list_empty(&turn->node))
		return false;
	list_add_tail(&turn->node, &queue->turns);
	return true;
}

/*
 * The turn of a user: turns of the user's wheels, until TURN_NS have passed.  A wheel
 * that comes too late to be seen here has queued the work once more.
 */
static void user_turn(struct kthread_work *work)
{
	struct twheel_queue *queue = container_of(work, struct twheel_queue, work);
	u64 end_ns = ktime_get_ns() + TURN_NS;
	struct twheel_turn *turn;

	do {
		turn = queue_pop(queue);
		if (!turn)
			return;
		if (turn->take(turn, end_ns)) {
			spin_lock_irq(&queue->lock);
			queue_add(queue, turn);
			spin_unlock_irq(&queue->lock);
		}
		cond_resched();
		if (list_empty(&queue->turns))
			return;
	} while (ktime_get_ns() < end_ns);
	/* Behind the other users. */
	kthread_queue_work(queue->worker, work);
}

/**
 * twheel_turn_init() - make a turn that is not asked for yet
 * @turn: the turn
 * @take: see struct twheel_turn
 *
 * Context: any; @turn->queue is to be set before the turn is asked for.
 */
void twheel_turn_init(struct twheel_turn *turn,
		      bool (*take)(struct twheel_turn *turn, u64 end_ns))
{
	*turn = (struct twheel_turn){ .take = take };
	INIT_LIST_HEAD(&turn->node);
}

/**
 * twheel_turn_request() - ask for a turn that begins from now on
 * @turn: the turn
 *
 * Does nothing when the turn was asked for and has not begun yet.
 *
 * Context: any but hard interrupts.
 */
void twheel_turn_request(struct twheel_turn *turn)
{
	struct twheel_queue *queue = turn->queue;
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	if (queue_add(queue, turn))
		kthread_queue_work(queue->worker, &queue->work);
	spin_unlock_irqrestore(&queue->lock, flags);
}

/**
 * twheel_turn_cancel() - end all turns
 * @turn: the turn; it is not taking place, and never will, when this returns
 *
 * Context: process; sleeps.
 */
void twheel_turn_cancel(struct twheel_turn *turn)
{
	struct twheel_queue *queue = turn->queue;

	spin_lock_irq(&queue->lock);
	turn->cancelled = true;
	list_del_init(&turn->node);
	spin_unlock_irq(&queue->lock);
	/* It may be taking place. */
	kthread_flush_work(&queue->work);
}

/* Memory */

/**
 * twheel_charge() - count memory that a user makes us take
 * @user: the user
 * @bytes: how much
 *
 * Context: any.
 * Return: 0, or -ENOSPC when it would be more than all users together may have, or
 * more than the user's share of that.
 */
int twheel_charge(struct twheel_user *user, size_t bytes)
{
	if (atomic_long_add_return(bytes, &user->charged) <= max_each) {
		if (atomic_long_add_return(bytes, &charged_total) <= max_total)
			return 0;
		atomic_long_sub(bytes, &charged_total);
	}
	atomic_long_sub(bytes, &user->charged);
	return -ENOSPC;
}

/**
 * twheel_uncharge() - memory was given back
 * @user: the user
 * @bytes: how much
 *
 * Context: any.
 */
void twheel_uncharge(struct twheel_user *user, size_t bytes)
{
	atomic_long_sub(bytes, &charged_total);
	atomic_long_sub(bytes, &user->charged);
}

/**
 * twheel_charged() - memory of all users
 *
 * Context: any.
 * Return: bytes.
 */
long twheel_charged(void)
{
	return atomic_long_read(&charged_total);
}

/**
 * twheel_limit_memory() - tell how much memory there may be
 * @all: for all users together, bytes
 * @each: for each of them, bytes
 *
 * Context: process, while there are no users.
 */
void twheel_limit_memory(long all, long each)
{
	max_total = all;
	max_each = each;
}

/* Users */

/* As kmalloc() rounds it. */
static size_t user_size(void)
{
	return roundup_pow_of_two(struct_size((struct twheel_user *)NULL, queue,
					      nr_kthread_workers));
}

static struct twheel_user *user_find(kuid_t uid)
{
	struct twheel_user *user;

	lockdep_assert_held(&users_mutex);
	hash_for_each_possible(users, user, node, __kuid_val(uid))
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

static struct twheel_user *user_make(kuid_t uid)
{
	struct twheel_user *user;
	unsigned int i;
	int err;

	lockdep_assert_held(&users_mutex);
	user = kzalloc(user_size(), GFP_KERNEL_ACCOUNT);
	if (!user)
		return ERR_PTR(-ENOMEM);
	err = twheel_charge(user, user_size());
	if (err) {
		kfree(user);
		return ERR_PTR(err);
	}
	user->uid = uid;
	for (i = 0; i < nr_kthread_workers; i++) {
		struct twheel_queue *queue = &user->queue[i];

		spin_lock_init(&queue->lock);
		INIT_LIST_HEAD(&queue->turns);
		queue->worker = kthread_workers[i];
		kthread_init_work(&queue->work, user_turn);
	}
	hash_add(users, &user->node, __kuid_val(uid));
	return user;
}

/**
 * twheel_user_get() - the user who opens a wheel
 *
 * Context: process; sleeps.
 * Return: the user, to be put when the wheel is closed, or an ERR_PTR: -ENOMEM, or
 * -ENOSPC at the limit of memory.
 */
struct twheel_user *twheel_user_get(void)
{
	kuid_t uid = current_uid();
	struct twheel_user *user;

	mutex_lock(&users_mutex);
	user = user_find(uid) ?: user_make(uid);
	if (!IS_ERR(user))
		user->nr_wheels++;
	mutex_unlock(&users_mutex);
	return user;
}

/**
 * twheel_user_put() - a wheel was closed
 * @user: whose it was
 *
 * Context: process; sleeps.
 */
void twheel_user_put(struct twheel_user *user)
{
	unsigned int i;

	mutex_lock(&users_mutex);
	if (--user->nr_wheels) {
		mutex_unlock(&users_mutex);
		return;
	}
	hash_del(&user->node);
	mutex_unlock(&users_mutex);
	/* The queues are empty; a work may still be on its way to find that. */
	for (i = 0; i < nr_kthread_workers; i++)
		kthread_cancel_work_sync(&user->queue[i].work);
	twheel_uncharge(user, user_size());
	kfree(user);
}

/**
 * twheel_user_queue() - choose the queue of a wheel
 * @user: whose wheel it is
 *
 * Context: any.
 * Return: the queue; wheels are spread over all kthreads.
 */
struct twheel_queue *twheel_user_queue(struct twheel_user *user)
{
	u32 nr = atomic_inc_return(&nr_queued);

	return &user->queue[nr % nr_kthread_workers];
}

/**
 * twheel_users_init() - tell which kthreads there are
 * @workers: the kthreads
 * @nr_workers: how many
 *
 * Context: process, while there are no users.
 */
void twheel_users_init(struct kthread_worker **workers, unsigned int nr_workers)
{
	kthread_workers = workers;
	nr_kthread_workers = nr_workers;
}
