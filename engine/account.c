// SPDX-License-Identifier: GPL-2.0
/*
 * Users: their turns with the kthreads, their shares of the softirq and of memory; counters
 *
 * A few kthreads serve the wheels of all users.  If each wheel queued for its kthread, a user with
 * a hundred busy wheels would get a hundred turns for each turn of another user.  So the users
 * queue, and each user has a queue of wheels for each kthread:
 *
 *   kthread --> work of user 1 --> work of user 2 --> ...
 *                   |                  |
 *                wheel, wheel, ...  wheel
 *
 * A user's work takes TURN_NS, and then goes to the end of the kthread's list (struct
 * kthread_worker is a FIFO).  Within the turn the user's wheels take turns of their own.
 *
 * G2 bounded lateness: a wheel that is due waits for the other wheels of its user, and for each
 * other user with work for the same kthread: TURN_NS and at most one step more, however many
 * wheels and timeouts that user has.
 *
 * Memory is counted in bytes, for each user and for all together.  Each user's limit is a part of
 * the module's, so that no user can take it all.
 *
 * A user is a real user id, as in fs/eventpoll.c, or a container: a user namespace that root has
 * made, with all processes in it.  A process in a namespace that another user has made counts as
 * that user, since anybody may make any number of namespaces.  A struct twheel_user exists while
 * the user has an open wheel.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/log2.h>
#include <linux/ratelimit.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "account.h"
#include "trace.h"

/* Length of a turn of a user. */
#define TURN_NS		(500 * NSEC_PER_USEC)

/*
 * Guards the table of users.  It is a mutex because twheel_users_show() walks the whole table.  No
 * memory is allocated under it, so no user waits until there is memory for another.
 */
static DEFINE_MUTEX(users_mutex);
static DEFINE_HASHTABLE(users, 6);

struct kthread_worker *twheel_workers[TWHEEL_WORKERS_MAX];
unsigned int twheel_nr_workers;

/* Wheels that were given a queue: they are spread evenly over the kthreads. */
static atomic_t nr_queued;

atomic_long_t twheel_all_charged;
long twheel_max_memory, twheel_max_user_memory;

/* Turns */

/* Return whether the wheel was queued: not if it is queued already, or was cancelled. */
static bool queue_add(struct twheel_queue *queue, struct twheel_turn *turn)
	__must_hold(&queue->lock)
{
	lockdep_assert_held(&queue->lock);
	if (turn->cancelled || !list_empty(&turn->node))
		return false;
	list_add_tail(&turn->node, &queue->turns);
	return true;
}

static void user_turn(struct kthread_work *work)
{
	struct twheel_queue *queue = container_of(work, struct twheel_queue, work);
	u64 end_ns = ktime_get_ns() + TURN_NS;
	struct twheel_turn *turn;
	bool more;

	spin_lock_irq(&queue->lock);
	while ((turn = list_first_entry_or_null(&queue->turns, struct twheel_turn, node))) {
		list_del_init(&turn->node);
		spin_unlock_irq(&queue->lock);
		more = turn->take(turn, end_ns);
		cond_resched();
		spin_lock_irq(&queue->lock);
		if (more)
			queue_add(queue, turn);
		if (ktime_get_ns() >= end_ns) {
			/* The next turn comes after those of the other users. */
			if (!list_empty(&queue->turns))
				kthread_queue_work(queue->worker, work);
			break;
		}
	}
	spin_unlock_irq(&queue->lock);
}

/* Prepare a turn that is not requested yet. */
void twheel_turn_init(struct twheel_turn *turn, struct twheel_user *user,
		      bool (*take)(struct twheel_turn *turn, u64 end_ns))
{
	u32 nr = atomic_inc_return(&nr_queued);

	*turn = (struct twheel_turn){
		.node = LIST_HEAD_INIT(turn->node),
		.queue = &user->queue[nr % twheel_nr_workers],
		.take = take,
	};
}

/*
 * Request a turn that begins after this call.  If one is requested already and has not begun, do
 * nothing.
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

/*
 * End the turns of a wheel: when this returns, none is being taken, and none will be.  It waits for
 * the kthread, which must not need a lock that the caller holds.
 */
void twheel_turn_cancel(struct twheel_turn *turn)
{
	struct twheel_queue *queue = turn->queue;

	spin_lock_irq(&queue->lock);
	turn->cancelled = true;
	list_del_init(&turn->node);
	spin_unlock_irq(&queue->lock);
	/* Wait for a turn that has begun. */
	kthread_flush_work(&queue->work);
}

/* The softirq */

/*
 * Charge a user for work in the softirq.
 *
 * G5 bounded interrupt work: the softirq works for a user, on all processors together, for a tenth
 * of their time; beyond that for USER_BURST_NS, and once on each processor.  The burst is for the
 * wheels of a user that are due at the same edge: ticks begin together, so this is common.  The
 * time includes expiring, and waking waiters, which may take long: nothing bounds how many waiters
 * an epoll instance has.
 */
void twheel_user_has_worked(struct twheel_user *user, u64 begin_ns, u64 end_ns)
{
	s64 paid_ns = atomic64_read(&user->paid_ns);
	u64 pause_ns = (end_ns - begin_ns) * USER_PAUSES / num_online_cpus();

	while (!atomic64_try_cmpxchg_relaxed(&user->paid_ns, &paid_ns,
					     max((u64)paid_ns, begin_ns) + pause_ns))
		;
}

/* Memory */

/*
 * Add to an account, unless that would exceed @most.  Refused bytes are not added even for a
 * moment: a smaller request of another thread may fit.
 */
static bool account_add(atomic_long_t *account, size_t bytes, long most, long *charged)
{
	*charged = atomic_long_read(account);
	do {
		if ((long)bytes > most - *charged)
			return false;
	} while (!atomic_long_try_cmpxchg_relaxed(account, charged, *charged + bytes));
	return true;
}

/* Charge memory to a user before it is allocated.  Return 0, or -ENOSPC at a limit. */
int twheel_charge(struct twheel_user *user, size_t bytes)
{
	long each = READ_ONCE(twheel_max_user_memory), total = READ_ONCE(twheel_max_memory);
	long charged;

	if (!account_add(&user->charged, bytes, each, &charged)) {
		twheel_refused(NULL, user_uid(user), COUNTER_REFUSED_USER_MEMORY, charged, bytes,
			       each);
		return -ENOSPC;
	}
	if (likely(account_add(&twheel_all_charged, bytes, total, &charged)))
		return 0;
	atomic_long_sub(bytes, &user->charged);
	twheel_refused(NULL, user_uid(user), COUNTER_REFUSED_MEMORY, charged, bytes, total);
	return -ENOSPC;
}

void twheel_uncharge(struct twheel_user *user, size_t bytes)
{
	atomic_long_sub(bytes, &twheel_all_charged);
	atomic_long_sub(bytes, &user->charged);
}

/* Users */

/* As kmalloc() rounds it. */
static size_t user_size(void)
{
	return roundup_pow_of_two(struct_size((struct twheel_user *)NULL, queue,
					      twheel_nr_workers));
}

/* The namespace and the id that the calling process counts as. */
static struct user_namespace *user_current(kuid_t *uid)
{
	struct user_namespace *ns = current_user_ns();

	*uid = current_uid();
	if (ns == &init_user_ns)
		return ns;
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	*uid = ns->owner;
	return uid_eq(ns->owner, GLOBAL_ROOT_UID) ? ns : &init_user_ns;
}

/* Find a user and count one more wheel.  If there is none, add @made, unless that is NULL. */
static struct twheel_user *user_find(struct user_namespace *ns, kuid_t uid,
				     struct twheel_user *made)
{
	struct twheel_user *user;

	mutex_lock(&users_mutex);
	hash_for_each_possible(users, user, node, __kuid_val(uid))
		if (user->ns == ns && uid_eq(user->uid, uid))
			goto found;
	user = made;
	if (user)
		hash_add(users, &user->node, __kuid_val(uid));
found:
	if (user)
		user->nr_wheels++;
	mutex_unlock(&users_mutex);
	return user;
}

static struct twheel_user *user_make(struct user_namespace *ns, kuid_t uid)
{
	struct twheel_user *user = kzalloc(user_size(), GFP_KERNEL_ACCOUNT);
	unsigned int i;
	int err;

	if (!user)
		return ERR_PTR(-ENOMEM);
	user->ns = ns;
	user->uid = uid;
	err = twheel_charge(user, user_size());
	if (err) {
		kfree(user);
		return ERR_PTR(err);
	}
	get_user_ns(ns);
	for (i = 0; i < twheel_nr_workers; i++) {
		struct twheel_queue *queue = &user->queue[i];

		spin_lock_init(&queue->lock);
		INIT_LIST_HEAD(&queue->turns);
		queue->worker = twheel_workers[i];
		kthread_init_work(&queue->work, user_turn);
	}
	return user;
}

static void user_free(struct twheel_user *user)
{
	twheel_uncharge(user, user_size());
	put_user_ns(user->ns);
	kfree(user);
}

/* Find or make the user who opens a wheel.  Return an ERR_PTR of -ENOMEM or -ENOSPC on failure. */
struct twheel_user *twheel_user_get(void)
{
	kuid_t uid;
	struct user_namespace *ns = user_current(&uid);
	struct twheel_user *made, *user = user_find(ns, uid, NULL);

	if (user)
		return user;
	made = user_make(ns, uid);
	if (IS_ERR(made))
		return made;
	user = user_find(ns, uid, made);
	if (user != made)
		user_free(made);
	return user;
}

/* Put the user of a wheel at its last close; the last wheel frees the user. */
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
	/* The queues are empty, but a work that has yet to find that out may be queued. */
	for (i = 0; i < twheel_nr_workers; i++)
		kthread_cancel_work_sync(&user->queue[i].work);
	user_free(user);
}

/* Show a line for each user: id, namespace, number of wheels and bytes charged. */
void twheel_users_show(struct seq_file *m)
{
	const struct twheel_user *user;
	int i;

	mutex_lock(&users_mutex);
	hash_for_each(users, i, user, node)
		seq_printf(m, "%u %u %lu %ld\n", from_kuid_munged(seq_user_ns(m), user_uid(user)),
			   user->ns->ns.inum, user->nr_wheels, atomic_long_read(&user->charged));
	mutex_unlock(&users_mutex);
}

/* Counters, and refusals: counted, traced and logged */

DEFINE_PER_CPU(u64 [NR_COUNTERS], twheel_counters);

/*
 * The log has one line a minute for a user who is refused memory, by a hash of the uid: a struct
 * twheel_user is freed with the last wheel, so a refused first wheel would get a line each time.
 */
#define LOGGED_BITS	5

static struct ratelimit_state logged[1 << LOGGED_BITS] = {
	[0 ... (1 << LOGGED_BITS) - 1] =
		RATELIMIT_STATE_INIT_FLAGS(logged[0], 60 * HZ, 1, RATELIMIT_MSG_ON_RELEASE),
};

/*
 * Note that a limit has refused @wanted timeouts or bytes beside the @used ones.  If memory was
 * asked for a user, @tw is NULL.
 */
void twheel_refused(const struct tw_ctx *tw, kuid_t uid, enum twheel_counter limit, u64 used,
		    u64 wanted, u64 most)
{
	u32 number = from_kuid(&init_user_ns, uid);

	trace_twheel_limit(tw, number, limit, used, wanted, most);
	counter_add(limit, 1);
	if (limit == COUNTER_REFUSED_PENDING)
		return;
	if (__ratelimit(&logged[hash_32(__kuid_val(uid), LOGGED_BITS)]))
		pr_notice("user %u is refused memory by %s, which is %llu\n", number,
			  limit == COUNTER_REFUSED_MEMORY ? "max_memory_kb" : "max_user_memory_kb",
			  most >> 10);
}

/*
 * Return the sum of all processors.  It is below 0 for a moment if a timeout begins on a processor
 * that was read already and ends on one that is read later: return 0 then.
 */
u64 twheel_counter(enum twheel_counter counter)
{
	unsigned int cpu;
	s64 sum = 0;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(twheel_counters, cpu)[counter]);
	return max(sum, 0LL);
}
