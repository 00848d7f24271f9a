// SPDX-License-Identifier: GPL-2.0
/*
 * Doing things to a wheel: arming, cancelling, reading, and the steps of a pass
 *
 * Nothing here checks an outcome beyond what the next step needs.
 */

#define TICK_NS		1000000ULL
#define START_NS	(1000 * TICK_NS)
/* A deadline that is on no edge. */
#define DELAY_NS	(5 * TICK_NS + 1)
#define PERIOD_NS	(10 * TICK_NS)
#define MAX_PENDING	20000

/* The worker without a thread, and the queue for it. */
static struct kthread_worker nobody;
/* In place of its task: it has a priority, and is not woken, since it is always at work. */
static struct task_struct nobodys_task = { .prio = DEFAULT_PRIO };
static struct kthread_work nobodys_occupation;
static struct twheel_queue nobodys;

/* Every combination of flags: STATE_FLAGS is nine bits side by side, four of them slack. */
#define FLAGS_SHIFT	3
#define NR_FLAGS	512

static_assert(STATE_FLAGS == (NR_FLAGS - 1) << FLAGS_SHIFT);

static u64 shape_of(u64 state)
{
	return state & (STATE_PHASE | STATE_FLAGS);
}

static u64 state_of(u32 gen, u32 seq, u64 shape)
{
	return (u64)gen << 32 | (u64)seq << 12 | shape;
}

/* The engine does the following within RCU. Here nothing is freed in between. */
static struct twheel_page *look_at_page(struct twheel *tw, u32 nr)
{
	struct twheel_page *page;

	rcu_read_lock();
	page = page_at(&tw->arena, nr);
	rcu_read_unlock();
	return page;
}

static void *look_at_words(struct twheel *tw, u32 nr)
{
	void *words;

	rcu_read_lock();
	words = pages_at(&tw->words.pages, nr);
	rcu_read_unlock();
	return words;
}

static u64 *word_of(struct twheel *tw, u64 id)
{
	u64 *word;

	rcu_read_lock();
	word = word_at(&tw->words, (u32)id);
	rcu_read_unlock();
	return word;
}

static struct twheel_timeout *look_at(struct twheel *tw, u32 index)
{
	struct twheel_timeout *t;

	rcu_read_lock();
	t = timeout_at(&tw->arena, index);
	rcu_read_unlock();
	return t;
}

static struct twheel_timeout *look_by_id(struct twheel *tw, u64 id, u64 *state)
{
	struct twheel_timeout *t;

	rcu_read_lock();
	t = timeout_by_id(&tw->arena, id, state);
	rcu_read_unlock();
	return t;
}

/* Says whether the kthread was asked for a turn, and takes the request away. */
static bool work_take(struct twheel *tw)
{
	bool queued;

	spin_lock_irq(&nobodys.lock);
	queued = !list_empty(&tw->wake.turn.node);
	list_del_init(&tw->wake.turn.node);
	raw_spin_lock(&nobody.lock);
	list_del_init(&nobodys.work.node);
	raw_spin_unlock(&nobody.lock);
	spin_unlock_irq(&nobodys.lock);
	return queued;
}

/* Makes a whole pass, and returns how many turns it took. */
static unsigned int pass(struct twheel *tw)
{
	unsigned int turns = 0;

	do {
		work_take(tw);
		turns++;
	} while (twheel_pass_turn(&tw->wake.turn, U64_MAX));
	return turns;
}

/* Makes passes, tick by tick, until the timeout expires; returns in which tick. */
static u64 tick_of_expiry(struct kunit *test, struct twheel_timeout *t)
{
	struct twheel *tw = test->priv;
	u64 tick = tw->clock.virtual_now_ns / TICK_NS;

	for (pass(tw); !state_is_unread(timeout_state(t)); pass(tw))
		tw->clock.virtual_now_ns = ++tick * TICK_NS;
	work_take(tw);
	return tick;
}

/* Makes the first step of a pass only: timeouts in the inbox enter the wheel. */
static void enter(struct twheel *tw)
{
	struct budget budget = { .entries = INT_MAX, .end_ns = U64_MAX };

	pass_begin(tw);
	inbox_drain(tw, &budget);
	spin_lock_bh(&tw->wake.lock);
	tw->wake.passing = false;
	spin_unlock_bh(&tw->wake.lock);
	tw->pass.begun = false;
}

/* Makes the next step only: timeouts that are due at @now_ns expire. */
static void expire_at(struct twheel *tw, u64 now_ns)
{
	struct budget budget = { .entries = INT_MAX, .end_ns = U64_MAX };

	tw->clock.virtual_now_ns = max(tw->clock.virtual_now_ns, now_ns);
	tw->pass.now_ns = tw->clock.virtual_now_ns;
	expire(tw, &budget);
}

/* Does what DRAIN does, except for waiting. */
static void drain(struct twheel *tw)
{
	WRITE_ONCE(tw->control.draining, true);
	tw->wake.drain_wanted = true;
	pass(tw);
}

static struct twheel_arm arm_of(u64 state, u32 repeats)
{
	return (struct twheel_arm) {
		.expires_ns	= state & STATE_OVERDUE ? 0 : DELAY_NS,
		.interval_ns	= state & STATE_PERIODIC ? PERIOD_NS : 0,
		.user_data	= 0x1122334455667788ULL,
		.flags		= state & STATE_FIXED_DELAY ?
				  TWHEEL_ARM_FIXED_DELAY : 0,
		.repeats	= state & STATE_LIMITED ? repeats : 0,
		.slack_ticks	= state_slack_ticks(state),
	};
}

static struct twheel_timeout *arm(struct kunit *test, struct twheel_arm *arm)
{
	struct twheel *tw = test->priv;
	struct twheel_arming arming = {};

	KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, arm, 1, &arming), 0);
	KUNIT_ASSERT_EQ(test, arm->result, TWHEEL_CREATED);
	KUNIT_ASSERT_EQ(test, twheel_arm_commit(tw, &arming, 1), 0);
	return look_at(tw, (u32)arm->id);
}

static struct twheel_timeout *arm_like(struct kunit *test, u64 state)
{
	struct twheel_arm how = arm_of(state, 2);

	return arm(test, &how);
}

/* Arms @nr timeouts in batches. @ids, if given, has room for as many ids. */
static void arm_many(struct kunit *test, unsigned int nr, u64 *ids)
{
	struct twheel_arm how[TWHEEL_BATCH];
	struct twheel *tw = test->priv;
	struct twheel_arming arming = {};
	unsigned int i, n;

	for (; nr; nr -= n) {
		n = min(nr, TWHEEL_BATCH);
		for (i = 0; i < n; i++)
			how[i] = arm_of(0, 0);
		KUNIT_ASSERT_EQ(test, twheel_arm_prepare(tw, how, n, &arming), 0);
		KUNIT_ASSERT_EQ(test, twheel_arm_commit(tw, &arming, n), 0);
		for (i = 0; ids && i < n; i++)
			*ids++ = how[i].id;
	}
}

/* Arms MAX_PENDING timeouts. The caller may free the ids by kunit_kfree(). */
static u64 *arm_all(struct kunit *test)
{
	u64 *ids = kunit_kcalloc(test, MAX_PENDING, sizeof(*ids), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ids);
	arm_many(test, MAX_PENDING, ids);
	return ids;
}

/* Arms one timeout.  Returns 0, or the error of the call or of the entry. */
static int arm_result(struct twheel *tw, u64 *id)
{
	struct twheel_arm how = arm_of(0, 0);
	struct twheel_arming arming = {};
	int err;

	err = twheel_arm_prepare(tw, &how, 1, &arming);
	if (!err && how.result > 0)
		err = twheel_arm_commit(tw, &arming, 1);
	*id = how.id;
	return err ?: min(how.result, 0);
}

static u64 id_of(const struct twheel_timeout *t)
{
	return timeout_id(t, timeout_state(t));
}

/* Returns the verdict, or -EBUSY when commit found the timeout changed. */
static int cancel(struct twheel *tw, u64 id)
{
	struct twheel_cancel cancel = { .id = id };
	unsigned int nr_ok = 0;
	struct twheel_look look;

	twheel_cancel_look(tw, &cancel, &look, 1);
	if (cancel.result > 0 &&
	    twheel_cancel_commit(tw, &cancel, &look, 1, &nr_ok) != 1)
		return -EBUSY;
	return cancel.result;
}

/* Returns the verdict or an error, -EBUSY when commit found the timeout changed. */
static int rearm(struct twheel *tw, u64 id, struct twheel_arm *arm)
{
	struct twheel_rearming rearming = {};
	unsigned int nr_ok = 0;
	int err;

	arm->id = id;
	arm->result = 0;
	err = twheel_rearm_prepare(tw, arm, &rearming, 1);
	if (err)
		return err;
	err = twheel_rearm_commit(tw, arm, &rearming, 1, &nr_ok);
	return err == 1 ? arm->result : -EBUSY;
}

/* Returns the number of events read, which is 0 or 1. */
static int read_one(struct twheel *tw, struct twheel_event *event)
{
	struct twheel_event ignored;
	struct twheel_look look;
	int nr = twheel_events_look(tw, event ?: &ignored, &look, 1);

	return nr ? twheel_events_commit(tw, event ?: &ignored, &look, nr) : 0;
}

/* Makes a part of twheel_arena_shrink(). Returns false when that is over. */
static bool shrink_some(struct twheel *tw)
{
	struct budget budget = { .entries = 20 * SHRINK_STEP, .end_ns = U64_MAX };

	twheel_arena_shrink(tw, &budget);
	/* It would go on by itself later. */
	kthread_cancel_delayed_work_sync(&tw->shrink.work);
	return tw->shrink.running;
}

/* Gives back all pages that nobody needs, in as many turns as that takes. */
static void shrink(struct kunit *test)
{
	struct twheel *tw = test->priv;

	tw->shrink.due = true;
	pass(tw);
	KUNIT_EXPECT_FALSE(test, tw->shrink.running);
	rcu_barrier();
}

/* From now on a thread does not sleep: a killable wait ends with -EINTR. */
static void fatal_signal_send_to(struct task_struct *task)
{
	spin_lock_irq(&task->sighand->siglock);
	sigaddset(&task->pending.signal, SIGKILL);
	set_tsk_thread_flag(task, TIF_SIGPENDING);
	spin_unlock_irq(&task->sighand->siglock);
}

static void fatal_signal_send(void)
{
	fatal_signal_send_to(current);
}

static void fatal_signal_forget(void)
{
	flush_signals(current);
}
