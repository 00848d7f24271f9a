// SPDX-License-Identifier: GPL-2.0
/*
 * Actions on a wheel: arming, cancelling, reading, and the steps of a pass
 *
 * Nothing here checks an outcome beyond what the next step needs.
 */

#define TICK_NS		1000000ULL
#define START_NS	(1000 * TICK_NS)
/*
 * A deadline that is on no edge; from START_NS on, it is in a slot of the wheel that has no edge.
 */
#define DELAY_NS	(5 * TICK_NS + 100001)
#define PERIOD_NS	(10 * TICK_NS)
#define MAX_PENDING	20000U

/* Kinds of timeouts; 0 for a plain one-shot. */
#define PE		BIT(0)			/* periodic */
#define FD		(BIT(1) | PE)		/* with a fixed delay */
#define LI		(BIT(2) | PE)		/* with a limit of repeats */
#define SL		BIT(3)			/* with a slack of one tick */
#define OV		BIT(4)			/* due when it is armed */
#define IS_LIMITED	BIT(2)
#define IS_FIXED_DELAY	BIT(1)

/* The state of a timeout; 0 if it is FREE. */
#define STATE_FREE	0ULL

static u64 state_of(const struct twheel_timeout *t)
{
	return t->word & STATE_MASK;
}

/* The worker without a thread, and the queue for it. */
static struct kthread_worker nobody;
/* It stands for the worker's task, which is not woken, since it is always running. */
static struct task_struct nobodys_task = { .prio = DEFAULT_PRIO };
static struct kthread_work nobodys_occupation;
static struct twheel_queue nobodys;

/* In the engine, RCU protects this. Here nothing is freed in between. */
static struct twheel_page *page_of_nr(struct tw_ctx *tw, u32 nr)
{
	struct twheel_page *page;

	rcu_read_lock();
	page = pages_at(&tw->places.pages, nr);
	rcu_read_unlock();
	return page;
}

static void *words_of_nr(struct tw_ctx *tw, u32 nr)
{
	void *words;

	rcu_read_lock();
	words = pages_at(&tw->words.pages, nr);
	rcu_read_unlock();
	return words;
}

static u64 *word_of(struct tw_ctx *tw, u64 id)
{
	u64 *word;

	rcu_read_lock();
	word = word_at(&tw->words, (u32)id);
	rcu_read_unlock();
	return word;
}

static struct twheel_timeout *place_of(struct tw_ctx *tw, u32 index)
{
	struct twheel_timeout *t;

	rcu_read_lock();
	t = place_at(&tw->places, index);
	rcu_read_unlock();
	return t;
}

/* The live timeout with an id, or NULL. */
static struct twheel_timeout *find(struct tw_ctx *tw, u64 id)
{
	struct twheel_timeout *t;

	twheel_lock(tw);
	t = timeout_by_id(&tw->places, id);
	twheel_unlock(tw);
	return t;
}

/* Return whether the kthread was asked for a turn, and take the request away. */
static bool turn_take(struct tw_ctx *tw)
{
	bool queued;

	spin_lock_irq(&nobodys.lock);
	queued = control_is_started(&tw->control) && !list_empty(&tw->turn.node);
	if (queued)
		list_del_init(&tw->turn.node);
	raw_spin_lock(&nobody.lock);
	list_del_init(&nobodys.work.node);
	raw_spin_unlock(&nobody.lock);
	spin_unlock_irq(&nobodys.lock);
	return queued;
}

/* Take all turns that are asked for, and return how many. */
static unsigned int pass(struct tw_ctx *tw)
{
	unsigned int turns = 0;

	do {
		turn_take(tw);
		turns++;
	} while (twheel_run_turn(&tw->turn, U64_MAX));
	return turns;
}

/* Whether a poller sees that one more timeout can be armed. */
static bool has_room(struct tw_ctx *tw)
{
	return twheel_poll(tw, NULL, NULL) & EPOLLOUT;
}

/* Limit the memory of all users together and of each of them, bytes. */
static void memory_limit(long all, long each)
{
	twheel_max_memory = all;
	twheel_max_user_memory = each;
}

/* Set the wheel's clock, virtual or not. */
static void time_set(struct tw_ctx *tw, u64 now_ns)
{
	tw->clock.virtual_now_ns = now_ns;
	machine_real_ns = now_ns;
}

static u64 time_of(struct tw_ctx *tw)
{
	return clock_now(&tw->clock);
}

/* Expire the timeouts that are due at a time, and do nothing else. */
static void expire_at(struct tw_ctx *tw, u64 now_ns)
{
	unsigned int nr = UINT_MAX;

	time_set(tw, max(time_of(tw), now_ns));
	twheel_lock(tw);
	while (twheel_expire(tw, time_of(tw), &nr))
		;
	twheel_unlock(tw);
}

/* Make passes, tick by tick, until the timeout expires; return in which tick. */
static u64 tick_of_expiry(struct kunit *test, struct twheel_timeout *t)
{
	struct tw_ctx *tw = test->priv;
	u64 tick = time_of(tw) / TICK_NS;

	for (pass(tw); !timeout_is_unread(t); pass(tw))
		time_set(tw, ++tick * TICK_NS);
	return tick;
}

/* Do what DRAIN does, except for waiting. */
static void drain(struct tw_ctx *tw)
{
	WRITE_ONCE(tw->control.draining, true);
	tw->drains = true;
	pass(tw);
}

static struct twheel_arm arm_of(u32 kind, u32 repeats)
{
	return (struct twheel_arm){
		.expires_ns	= kind & OV ? 0 : DELAY_NS,
		.interval_ns	= kind & PE ? PERIOD_NS : 0,
		.user_data	= 0x1122334455667788ULL,
		.flags		= kind & IS_FIXED_DELAY ? TWHEEL_ARM_FIXED_DELAY : 0,
		.repeats	= kind & IS_LIMITED ? repeats : 0,
		.slack_ticks	= kind & SL ? 1 : 0,
	};
}

#define to_user(object)		((typeof(object) __user __force *)&(object))

/* Arm @nr timeouts in one step. Return the result of that step. */
static int arm_some(struct tw_ctx *tw, struct twheel_arm *how, unsigned int nr)
{
	struct twheel_call call = { .stride = sizeof(*how) };
	struct twheel_arm __user *user = (struct twheel_arm __user __force *)how;

	if (tw->keys.used)
		return twheel_upsert_step(tw, user, nr, &call);
	return twheel_arm_step(tw, user, nr, &call);
}

/* Arm one timeout. Return the result of the element, or the error of the call. */
static int arm_result(struct tw_ctx *tw, struct twheel_arm *how)
{
	int done;

	how->result = 0;
	done = arm_some(tw, how, 1);
	return done == 1 ? how->result : done;
}

static struct twheel_timeout *arm(struct kunit *test, struct twheel_arm *how)
{
	struct tw_ctx *tw = test->priv;

	KUNIT_ASSERT_EQ(test, arm_result(tw, how), TWHEEL_CREATED);
	return place_of(tw, (u32)how->id);
}

static struct twheel_timeout *arm_like(struct kunit *test, u32 kind)
{
	struct twheel_arm how = arm_of(kind, 2);
	struct tw_ctx *tw = test->priv;

	if (tw->clock.settable) {
		how.flags |= TWHEEL_ARM_ABSOLUTE;
		how.expires_ns += time_of(tw);
	}
	return arm(test, &how);
}

/* Arm a plain one-shot; return 0 or an error. */
static int arm_plain(struct tw_ctx *tw, u64 *id)
{
	struct twheel_arm how = arm_of(0, 0);
	int result = arm_result(tw, &how);

	*id = how.id;
	return min(result, 0);
}

/* Arm @nr timeouts in batches. @ids, if given, has space for as many ids. */
static void arm_many(struct kunit *test, unsigned int nr, u64 *ids)
{
	struct twheel_arm *how = kunit_kcalloc(test, TWHEEL_BATCH, sizeof(*how), GFP_KERNEL);
	struct tw_ctx *tw = test->priv;
	unsigned int i, n;

	KUNIT_ASSERT_NOT_NULL(test, how);
	for (; nr; nr -= n) {
		n = min(nr, TWHEEL_BATCH);
		for (i = 0; i < n; i++)
			how[i] = arm_of(0, 0);
		KUNIT_ASSERT_EQ(test, arm_some(tw, how, n), (int)n);
		for (i = 0; i < n; i++) {
			KUNIT_ASSERT_EQ(test, how[i].result, TWHEEL_CREATED);
			if (ids)
				*ids++ = how[i].id;
		}
	}
	kunit_kfree(test, how);
}

/* Arm a number of timeouts that are due at the same time. */
static void arm_same(struct kunit *test, unsigned int nr, u64 expires_ns)
{
	while (nr--)
		arm(test, &(struct twheel_arm) { .expires_ns = expires_ns });
}

/* Arm MAX_PENDING timeouts. */
static u64 *arm_all(struct kunit *test)
{
	u64 *ids = kunit_kcalloc(test, MAX_PENDING, sizeof(*ids), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ids);
	arm_many(test, MAX_PENDING, ids);
	return ids;
}

/* Cancel a timeout; return the verdict, or an error. */
static int cancel(struct tw_ctx *tw, u64 id)
{
	struct twheel_cancel how = { .id = id };
	struct twheel_call call = { .stride = sizeof(how) };
	int done = twheel_cancel_step(tw, to_user(how), 1, &call);

	return done == 1 ? how.result : done;
}

static void cancel_ids(struct tw_ctx *tw, const u64 *ids, unsigned int nr)
{
	while (nr--)
		cancel(tw, *ids++);
}

/* Cancel the last one first: if a page becomes unused late, it is given back early. */
static void cancel_backwards(struct tw_ctx *tw, const u64 *ids, unsigned int nr)
{
	while (nr--)
		cancel(tw, ids[nr]);
}

/* Re-arm a timeout; return the verdict, or an error. */
static int rearm(struct tw_ctx *tw, u64 id, struct twheel_arm *how)
{
	struct twheel_call call = { .stride = sizeof(*how) };
	int done;

	how->id = id;
	how->result = 0;
	done = twheel_rearm_step(tw, to_user(*how), 1, &call);
	return done == 1 ? how->result : done;
}

#define rearm_to(tw, id, ...) rearm(tw, id, &(struct twheel_arm){ __VA_ARGS__ })

/* Read events of @size bytes each. Return how many, or an error. */
static int read_some(struct tw_ctx *tw, void *to, u32 size, unsigned int nr)
{
	struct iov_iter iter;

	iov_iter_ubuf(&iter, READ, (void __user __force *)to, nr * size);
	return twheel_read_step(tw, &iter, size, nr);
}

/* Read an event; return how many were read, 0 or 1. */
static int read_one(struct tw_ctx *tw, struct twheel_event *event)
{
	struct twheel_event ignored;

	return read_some(tw, event ?: &ignored, sizeof(ignored), 1);
}

static u32 nr_unread(const struct tw_ctx *tw)
{
	return tw->events.nr_unread;
}

/* From now on the accesses of the engine to user memory fault, after @nr have succeeded. */
static void faults_begin(int nr)
{
	user_memory.left = nr;
	user_memory.faulted = false;
}

/* Return whether one has faulted. */
static bool faults_end(void)
{
	user_memory.left = -1;
	return user_memory.faulted;
}

/* Give back all pages that nobody needs. */
static void shrink(struct kunit *test)
{
	struct tw_ctx *tw = test->priv;

	cancel_delayed_work_sync(&tw->memory.shrink);
	places_shrink(&tw->memory.shrink.work);
	rcu_barrier();
}

/* From now on a thread does not sleep: a killable wait ends with -EINTR. */
static void fatal_signal_send(void)
{
	spin_lock_irq(&current->sighand->siglock);
	sigaddset(&current->pending.signal, SIGKILL);
	set_tsk_thread_flag(current, TIF_SIGPENDING);
	spin_unlock_irq(&current->sighand->siglock);
}

static void fatal_signal_forget(void)
{
	flush_signals(current);
}

/* The wheel sets alarms from now on; none rings by itself. */
static void alarms_begin(struct tw_ctx *tw)
{
	machine_alarm = (struct machine_alarm){ .used = true };
	tw->alarm.at_ns = NEVER_NS;
	twheel_lock(tw);
	twheel_alarm_set(tw, NULL);
	twheel_unlock(tw);
}

/* Give the softirq its whole share again. */
static void work_is_paid(struct tw_ctx *tw)
{
	int cpu;

	atomic64_set(&tw->memory.user->paid_ns, 0);
	for_each_possible_cpu(cpu)
		per_cpu(soft_until_ns, cpu) = 0;
}

/*
 * Ring the alarm. Return whether its function wants it to ring again. If a case has not set the
 * clock for work, stop it: otherwise, if the machine stood still, that would use up the share of
 * the softirq.
 */
static bool alarm_rings_now(struct tw_ctx *tw)
{
	bool is_set = machine_ns;
	enum hrtimer_restart restart;

	if (!is_set)
		machine_ns = machine_now();
	local_bh_disable();
	machine_alarm.is_on = false;
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		/* If the kernel has PREEMPT_RT, the kthread does this. */
		restart = alarm_work(tw, machine_now() + SOFT_NS);
	else
		restart = alarm_rings(&tw->alarm.timer);
	local_bh_enable();
	if (!is_set)
		machine_ns = 0;
	if (restart != HRTIMER_RESTART)
		return false;
	machine_alarm.is_on = true;
	machine_alarm.at_ns = ktime_to_ns(hrtimer_get_softexpires(&tw->alarm.timer));
	return true;
}
