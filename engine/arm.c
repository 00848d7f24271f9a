// SPDX-License-Identifier: GPL-2.0
/*
 * ARM: take places, copy the ids out, and submit the timeouts
 *
 * A plain timeout needs nothing but its place, and one with a period or slack gets its extra before
 * its id is copied out: so nothing fails for want of memory after that (G4).  The elements are
 * copied in, and the ids copied out, while no lock is held: faults are served as they come.  Then
 * the timeouts go into the wheel; if another thread has the lock, ARM adds them to the inbox.
 *
 * If the lock is free and nothing faults, a single plain element is done under it as a whole.  So
 * are those of REARM and CANCEL.  An ARM in a keyed wheel is in rearm.c.
 *
 * G7 cost does not grow: no other timeout is touched.
 */
#include <linux/errno.h>

#include "element.h"
#include "lock.h"
#include "trace.h"
#include "user_access.h"

/**
 * struct arming - a batch that is being armed; a local variable
 * @first: the first place of the chain
 * @place: the next place to be used; NULL if none is left
 * @nr: how many timeouts have a place
 * @short_of: why there is no place left, an errno
 * @nowait: the call may not sleep
 * @now_ns: the clock when the call began; 0 until a relative deadline or the slow path has it read
 */
struct arming {
	struct twheel_timeout *first;
	struct twheel_timeout *place;
	unsigned int nr;
	int short_of;
	bool nowait;
	u64 now_ns;
};

/* Prepare a timeout in the next place: 0, or an errno. */
static int arm_begin(struct tw_ctx *tw, const struct twheel_arm *arm, struct arming *arming)
{
	struct twheel_timeout *t = arming->place;
	int err = arm_check(arm, 0, tw->clock.settable);

	if (err)
		return err;
	if (!t)
		return arming->nowait ? -EAGAIN : arming->short_of;
	if (arm_needs_extra(arm)) {
		err = twheel_extra_provide(tw, timeout_index(t), arming->nowait);
		if (err)
			return err;
	}
	timeout_schedule(&tw->clock, t, arm, arming->now_ns);
	t->user_data = arm->user_data;
	return 0;
}

/* Do an element in the slow path.  False if copying its id and result out faults. */
static noinline bool arm_slow(struct tw_ctx *tw, const struct twheel_arm *arm,
			      struct twheel_arm __user *user, struct twheel_call *call,
			      struct arming *arming)
{
	int err;

	arming->now_ns = call_now_ns(tw, call);
	err = arm_begin(tw, arm, arming);
	if (put_user(err ? 0 : timeout_id(arming->place), &user->id) ||
	    put_user(err ?: (s32)TWHEEL_CREATED, &user->result))
		return false;
	if (!err) {
		arming->place = place_next(arming->place);
		arming->nr++;
	} else if (err == -EAGAIN) {
		twheel_place_refused(tw);
	}
	return true;
}

/*
 * The fast path: prepare plain timeouts in their places and copy the ids out, up to an element that
 * faults, has no place or needs the slow path; returns how many.
 */
static __always_inline unsigned int arm_fast(struct tw_ctx *tw, const struct twheel_arm *arm,
					     struct twheel_arm __user *user, unsigned int nr,
					     u32 stride, struct arming *arming)
{
	struct twheel_timeout *t = arming->place;
	u64 now_ns = arming->now_ns;
	unsigned int i;

	if (!access_open(user, sizeof(*user)))
		return 0;
	for (i = 0; i < nr; i++, arm++, user = access_next(user, stride)) {
		u64 deadline_ns = arm_plain_ns(&tw->clock, arm, now_ns);

		if (unlikely(deadline_ns >= TWHEEL_TIME_NEVER || !t))
			break;
		t->deadline_ns = deadline_ns;
		t->user_data = arm->user_data;
		if (unlikely(!access_put(timeout_id(t), &user->id) ||
			     !access_put_result(TWHEEL_CREATED, &user->result)))
			break;
		t = place_next(t);
	}
	access_close();
	arming->place = t;
	arming->nr += i;
	return i;
}

/* Write the words of timeouts before they are submitted. */
static noinline void arm_words(struct tw_ctx *tw, struct twheel_timeout *t, unsigned int nr)
{
	rcu_read_lock();
	for (; nr; nr--, t = place_next(t))
		word_begin(&tw->words, t, timeout_known_ns(t));
	rcu_read_unlock();
}

/*
 * Put timeouts into the wheel.  The clock is read if a deadline may have passed, or if the
 * tracepoint is on.
 */
static __always_inline void arm_insert(struct tw_ctx *tw, const struct arming *arming)
	__must_hold(&tw->lock)
{
	u64 passed = 0, first_ns = NEVER_NS, never_ns = tw->clock.never_ns, from_ns;
	struct twheel_timeout *next, *t = arming->first;
	unsigned int i;

	/* If the clock was read, a deadline that has passed waits for no alarm. */
	from_ns = trace_twheel_arm_enabled() ? NEVER_NS :
		  max(certain_ns(tw), arming->now_ns + 1);
	for (i = 0; i < arming->nr; i++, t = next) {
		u64 due_ns = t->deadline_ns;

		next = place_next(t);
		timeout_begin(t);
		if (likely(due_ns >= from_ns && due_ns < never_ns)) {
			twheel_wheel_insert(&tw->wheel, &t->link, due_ns);
		} else {
			trace_twheel_arm(tw, t);
			if (!passed) {
				passed = passed_ns(tw, arming->now_ns ?: clock_now(&tw->clock));
				if (!trace_twheel_arm_enabled())
					from_ns = passed + 1;
			}
			due_ns = timeout_pend(tw, t, passed);
		}
		first_ns = min(first_ns, due_ns);
	}
	tw->events.armed += arming->nr;
	alarm_need(tw, first_ns, arming->nr);
}

/* Put timeouts into the wheel, and release the lock.  False if the wheel is draining. */
static __always_inline bool arm_insert_unlock(struct tw_ctx *tw, const struct arming *arming)
	__releases(&tw->lock)
{
	if (unlikely(!llist_empty(&tw->inbox)))
		twheel_inbox_empty(tw);
	if (unlikely(READ_ONCE(tw->control.draining))) {
		twheel_unlock(tw);
		return false;
	}
	arm_insert(tw, arming);
	twheel_unlock(tw);
	return true;
}

/*
 * Another thread has the lock: add timeouts to the inbox.  False if the wheel is draining.  If
 * spinlocks sleep, wait for the lock, so that a holder that was preempted inherits the priority.
 */
static noinline bool arm_queue(struct tw_ctx *tw, const struct arming *arming)
{
	struct twheel_timeout *last = arming->first;
	unsigned int nr = arming->nr;
	bool draining;

	if (spinlocks_sleep() || !llist_empty(&tw->inbox)) {
		twheel_lock(tw);
		return arm_insert_unlock(tw, arming);
	}
	while (--nr)
		last = place_next(last);
	/*
	 * G3 exactly one outcome: synchronize_rcu() in twheel_drain() waits for this section, and
	 * then empties the inbox.  Test: litmus drain_arm
	 */
	rcu_read_lock();
	draining = READ_ONCE(tw->control.draining);
	twheel_syncpoint(SYNC_ARM_CHECKED);
	if (!draining)
		llist_add_batch(&arming->first->node, &last->node, &tw->inbox);
	rcu_read_unlock();
	if (draining)
		return false;
	twheel_syncpoint(SYNC_ARM_ADDED);
	twheel_unlock_inbox(tw);
	return true;
}

/* Submit timeouts whose ids were copied out.  False if the wheel is draining. */
static __always_inline bool arm_submit(struct tw_ctx *tw, const struct arming *arming)
{
	if (words_are_there(&tw->words))
		arm_words(tw, arming->first, arming->nr);
	twheel_syncpoint(SYNC_ARM_COPIED);
	return likely(twheel_trylock(tw)) ? arm_insert_unlock(tw, arming) : arm_queue(tw, arming);
}

/*
 * Submit the timeouts of a batch, and give back the places that were not used: 0; or -ESHUTDOWN if
 * none was submitted.
 */
static __always_inline int arm_finish(struct tw_ctx *tw, struct arming *arming)
{
	struct twheel_timeout *unused = arming->place;

	if (arming->nr && unlikely(!arm_submit(tw, arming))) {
		twheel_places_give(tw, arming->first);
		return -ESHUTDOWN;
	}
	if (unlikely(unused))
		twheel_places_give(tw, unused);
	return 0;
}

/* A DRAIN came after ids were copied out: overwrite these results. */
static noinline void arm_take_back(struct twheel_arm __user *user, u32 stride, unsigned int nr,
				   int err)
{
	for (; nr; nr--, user = access_next(user, stride))
		if (put_user(0ULL, &user->id) || put_user(err, &user->result))
			break;
}

static bool arm_copy_out(struct twheel_arm __user *user, u64 id)
{
	bool copied;

	if (!access_open_locked(user, sizeof(*user)))
		return false;
	copied = access_put(id, &user->id) && access_put_result(TWHEEL_CREATED, &user->result);
	access_close_locked();
	return copied;
}

/*
 * The fast path for a single element: arm a plain timeout that is to come, and copy its id out
 * unless @user is NULL, all under the lock.  False if it takes more than that: nothing is done.
 */
static __always_inline bool arm_one_plain(struct tw_ctx *tw, const struct twheel_arm *arm,
					  struct twheel_arm __user *user)
{
	u64 now_ns = arm->flags & TWHEEL_ARM_ABSOLUTE ? 0 : clock_now(&tw->clock), deadline_ns;
	struct twheel_timeout *t;
	bool copied = false;

	deadline_ns = arm_plain_ns(&tw->clock, arm, now_ns);
	if (unlikely(deadline_ns >= tw->clock.never_ns || trace_twheel_arm_enabled() ||
		     !twheel_trylock(tw)))
		return false;
	if (unlikely(!llist_empty(&tw->inbox) || READ_ONCE(tw->control.draining) ||
		     plain_has_passed(tw, deadline_ns, now_ns)))
		goto unlock;
	spin_lock(&tw->places.lock);
	t = place_pop(&tw->places);
	spin_unlock(&tw->places.lock);
	if (unlikely(!t))
		goto unlock;
	copied = !user || arm_copy_out(user, timeout_id(t));
	if (unlikely(!copied)) {
		twheel_unlock(tw);
		t->link.next = NULL;
		twheel_places_give(tw, t);
		return false;
	}
	t->deadline_ns = deadline_ns;
	t->user_data = arm->user_data;
	if (words_are_there(&tw->words))
		word_begin(&tw->words, t, deadline_ns);
	timeout_begin(t);
	twheel_wheel_insert(&tw->wheel, &t->link, deadline_ns);
	tw->events.armed++;
	alarm_need(tw, deadline_ns, 1);
unlock:
	twheel_unlock(tw);
	return copied;
}

static noinline bool arm_copy_one_plain(struct tw_ctx *tw, void __user *user)
{
	struct twheel_arm arm __uninitialized;

	return likely(access_copy_one(&arm, sizeof(arm), user)) && arm_one_plain(tw, &arm, user);
}

/* Do the single element of an ARM in the fast path.  False if that is not possible. */
bool twheel_arm_plain(struct tw_ctx *tw, void __user *user)
{
	return likely(control_is_started(&tw->control) && !tw->keys.used) &&
	       arm_copy_one_plain(tw, user);
}

/* Arm timeouts in a wheel that has started and is not keyed. */
static noinline int arm_batch(struct tw_ctx *tw, struct twheel_arm __user *user, unsigned int nr,
			      struct twheel_call *call)
{
	struct twheel_arm arm[TWHEEL_BATCH] __uninitialized;
	struct arming arming = {};
	u32 stride = call->stride;
	unsigned int i = 0;
	int err;

	if (unlikely(READ_ONCE(tw->control.draining)))
		return -ESHUTDOWN;
	nr = access_copy_in(arm, sizeof(arm[0]), user, stride, nr);
	if (!nr)
		return -EFAULT;
	if (!(arm[0].flags & TWHEEL_ARM_ABSOLUTE))
		arming.now_ns = call_now_ns(tw, call);
	arming.short_of = twheel_places_take(tw, nr, false, &arming.first);
	arming.place = arming.first;
	do {
		i += arm_fast(tw, arm + i, access_at(user, i, stride), nr - i, stride, &arming);
		if (likely(i == nr))
			break;
	} while (arm_slow(tw, arm + i, access_at(user, i, stride), call, &arming) && ++i < nr);
	err = arm_finish(tw, &arming);
	if (unlikely(err)) {
		arm_take_back(user, stride, i, err);
		return err;
	}
	call->nr_ok += arming.nr;
	return i ?: -EFAULT;
}

/*
 * Start the wheel for an element that can be armed.  An ARM without a valid element does not, so
 * that SETUP may follow.  A wheel that ARM starts has no keys, and CLOCK_MONOTONIC.
 */
static int arm_start_for(struct tw_ctx *tw, const struct twheel_arm *arm, bool nowait)
{
	int err = READ_ONCE(tw->control.draining) ? -ESHUTDOWN : arm_check(arm, 0, false);

	if (err)
		return err;
	return nowait ? -EAGAIN : twheel_start_lazily(tw);
}

/*
 * Start the wheel for an ARM, if the first element can be armed and its result copied out: 0, or an
 * errno, which is the result of that element.
 */
static noinline_for_stack int arm_start(struct tw_ctx *tw, struct twheel_arm __user *user,
					u32 stride)
{
	struct twheel_arm arm = {};
	int err;

	if (copy_from_user(&arm, user, min_t(size_t, stride, sizeof(arm))) ||
	    put_user(arm.id, &user->id) || put_user(arm.result, &user->result))
		return -EFAULT;
	err = arm_start_for(tw, &arm, false);
	if (err && (put_user(0ULL, &user->id) || put_user(err, &user->result)))
		return -EFAULT;
	return err;
}

/*
 * Arm up to TWHEEL_BATCH timeouts.  Returns how many elements are done.  If none is: -EFAULT,
 * -ESHUTDOWN, -EINTR, or why the wheel cannot be started.
 */
int twheel_arm_step(struct tw_ctx *tw, void __user *user, unsigned int nr,
		    struct twheel_call *call)
{
	if (unlikely(!control_is_started(&tw->control))) {
		int err = arm_start(tw, user, call->stride);

		if (err)
			return err == -EINVAL ? 1 : err;
	}
	return tw->keys.used ? twheel_upsert_step(tw, user, nr, call) :
			       arm_batch(tw, user, nr, call);
}

/*
 * Arm a timeout: 0, or an errno as in the result of an element.  If @nowait, refuse with -EAGAIN
 * what would have to sleep.
 */
int twheel_arm_one(struct tw_ctx *tw, struct twheel_arm *arm, bool nowait)
{
	struct arming arming = { .nowait = nowait };
	int err = control_is_started(&tw->control) ? 0 : arm_start_for(tw, arm, nowait);

	if (err)
		return err;
	if (tw->keys.used)
		return twheel_upsert_one(tw, arm, nowait);
	if (likely(arm_one_plain(tw, arm, NULL)))
		return 0;
	arming.now_ns = clock_now(&tw->clock);
	if (READ_ONCE(tw->control.draining))
		return -ESHUTDOWN;
	arming.short_of = twheel_places_take(tw, 1, nowait, &arming.first);
	arming.place = arming.first;
	err = arm_begin(tw, arm, &arming);
	if (!err) {
		arming.place = NULL;
		arming.nr = 1;
	} else if (err == -EAGAIN && arming.short_of == -EAGAIN) {
		twheel_place_refused(tw);
	}
	return arm_finish(tw, &arming) ?: err;
}
