// SPDX-License-Identifier: GPL-2.0
/*
 * REARM, and ARM in a keyed wheel, which re-arms the timeout that has the key, or makes one
 *
 * Finding the timeout, reporting the result and doing it are one step for each element, under the
 * lock: nothing changes in between, and an element whose result cannot be copied out is not done
 * (G3).  If an element needs memory, the lock is released, and the element is tried again.
 *
 * G7 cost does not grow: a plain timeout that moves to later only gets another deadline.  The wheel
 * puts it where it belongs when its slot comes up.
 */
#include <linux/err.h>

#include "element.h"
#include "lock.h"
#include "trace.h"
#include "user_access.h"

/**
 * enum rearm_needs - what an element needs before it can be tried again
 * @NEEDS_NOTHING: nothing
 * @NEEDS_PAGE: a page of places
 * @NEEDS_EXTRA: a struct twheel_extra for the place of &rearming.index
 */
enum rearm_needs {
	NEEDS_NOTHING,
	NEEDS_PAGE,
	NEEDS_EXTRA,
};

/**
 * struct rearming - a batch that is done under the lock; a local variable
 * @call: the call
 * @now_ns: the clock when the call began; REARM reads it only if it has to
 * @first_ns: when the first timeout is due that was put into a slot
 * @nr_before: places in use before one was given back; 0 if none was
 * @result: result of the last element
 * @needs: what that element needs
 * @index: of the place that needs it
 * @refused: errno of allocating it for the first element; 0 until that was tried
 */
struct rearming {
	struct twheel_call *call;
	u64 now_ns;
	u64 first_ns;
	u32 nr_before;
	int result;
	enum rearm_needs needs;
	u32 index;
	int refused;
};

/*
 * Note what an element needs.  The caller drops the lock, provides it and tries again; it reports
 * the errno only if that has failed.
 */
static inline int rearm_needs(struct rearming *rearming, enum rearm_needs needs, u32 index)
{
	if (rearming->refused)
		return rearming->refused;
	rearming->needs = needs;
	rearming->index = index;
	return -ENOMEM;
}

/* Provide it without the lock: 0, or an errno; -EAGAIN if that would sleep and @nowait. */
static inline int rearm_provide(struct tw_ctx *tw, const struct rearming *rearming, bool nowait)
{
	if (rearming->needs == NEEDS_EXTRA)
		return twheel_extra_provide(tw, rearming->index, nowait);
	return nowait ? -EAGAIN : twheel_places_provide(tw);
}

/*
 * Does elements, and copies their results out unless @user is NULL, until one faults or needs
 * memory; returns how many.
 */
typedef unsigned int (*rearm_elements_fn)(struct tw_ctx *tw, struct twheel_arm *arm,
					  struct twheel_arm __user *user, unsigned int nr,
					  struct rearming *rearming);

/* Prefetch what a batch is about to access: by the keys of an ARM, the ids or keys of a REARM. */
static noinline void rearm_prefetch(struct tw_ctx *tw, const struct twheel_arm *arm,
				    unsigned int nr, bool is_arm, bool by_key)
{
	const struct twheel_timeout *place[TWHEEL_BATCH] __uninitialized;
	bool keyed = is_arm || by_key;
	unsigned int i;

	rcu_read_lock();
	places_prefetch(tw, place, is_arm ? &arm->user_data : &arm->id, sizeof(*arm), nr, keyed,
			words_are_there(&tw->words));
	for (i = 0; i < nr; i++)
		if (is_arm && place[i])
			prefetchw(timeout_page(place[i]));
	for (i = 0; i < nr; i++) {
		const struct twheel_timeout *t = place[i];

		/* A guess, without the lock.  A timeout that moves to later stays in its list. */
		if (likely(t) && (keyed || arm[i].expires_ns < data_race(t->deadline_ns)))
			place_prefetch_beside(t);
	}
	rcu_read_unlock();
}

/* Do elements under the lock, by @elements: returns what that does, or -ESHUTDOWN. */
static __always_inline int rearm_locked(struct tw_ctx *tw, struct twheel_arm *arm,
					struct twheel_arm __user *user, unsigned int nr,
					struct rearming *rearming, rearm_elements_fn elements)
{
	unsigned int i;

	twheel_lock(tw);
	if (unlikely(READ_ONCE(tw->control.draining))) {
		twheel_unlock(tw);
		return -ESHUTDOWN;
	}
	i = elements(tw, arm, user, nr, rearming);
	alarm_need(tw, rearming->first_ns, i);
	twheel_unlock(tw);
	/* A poller may have seen the wheel full while places were taken. */
	if (unlikely(rearming->nr_before))
		twheel_places_freed(tw, rearming->nr_before);
	return i;
}

/*
 * Do up to @nr elements of a call.  Returns how many are done.  If none is: -EFAULT, and the caller
 * has a fault of the first one served and tries again; -ESHUTDOWN; or -EINTR by a fatal signal.
 */
static __always_inline int rearm_batch(struct tw_ctx *tw, struct twheel_arm __user *user,
				       unsigned int nr, struct twheel_call *call, bool is_arm,
				       rearm_elements_fn elements)
{
	struct twheel_arm arm[TWHEEL_BATCH] __uninitialized;
	int done, err = 0;

	nr = access_copy_in(arm, sizeof(arm[0]), user, call->stride, nr);
	if (unlikely(!nr))
		return -EFAULT;
	if (prefetch_pays(tw, nr, is_arm || call->by_key))
		rearm_prefetch(tw, arm, nr, is_arm, call->by_key);
	do {
		struct rearming rearming = {
			.call		= call,
			.first_ns	= NEVER_NS,
			.refused	= err,
		};

		done = rearm_locked(tw, arm, user, nr, &rearming, elements);
		if (likely(done))
			return done;
		if (!rearming.needs)
			return -EFAULT;
		err = rearm_provide(tw, &rearming, false);
	} while (err != -EINTR);
	return err;
}

/*
 * Do an element that the device has: 0, or an errno as in the result of an element.  If @nowait,
 * refuse with -EAGAIN what would have to sleep.
 */
static int rearm_single(struct tw_ctx *tw, struct twheel_arm *arm, bool by_key, bool nowait,
			rearm_elements_fn elements)
{
	struct twheel_call call = { .by_key = by_key };
	int err;

	do {
		struct rearming rearming = {
			.call		= &call,
			.first_ns	= NEVER_NS,
			.result		= -ESHUTDOWN,
		};

		rearm_locked(tw, arm, NULL, 1, &rearming, elements);
		if (!rearming.needs)
			return min(rearming.result, 0);
		err = rearm_provide(tw, &rearming, nowait);
	} while (!err);
	return err;
}

/*
 * The deadline that ARM and REARM compare with, and that ARM in a keyed wheel reports: the one in
 * force; if the event is unread, the latest one that has expired.
 */
static u64 rearm_was_deadline_ns(struct tw_ctx *tw, const struct twheel_timeout *t)
	__must_hold(&tw->lock)
{
	u64 deadline_ns = timeout_deadline_ns(&tw->words, t);
	u64 nr = twheel_periods_unread(&tw->clock, t);

	if (nr)
		deadline_ns += nr * timeout_extra(t)->interval_ns;
	return min(deadline_ns, TWHEEL_TIME_NEVER);
}

/*
 * Find the outcome of re-arming a live timeout, before that is done, and set @arm->was_deadline_ns.
 * Return TWHEEL_WAS_*, or -ERANGE, or what rearm_needs() returns.
 */
static noinline int rearm_verdict(struct tw_ctx *tw, struct twheel_arm *arm,
				  struct twheel_timeout *t, struct rearming *rearming)
	__must_hold(&tw->lock)
{
	u64 deadline_ns = arm_deadline_ns(arm->expires_ns, arm->flags, rearming->now_ns);

	if (arm_needs_extra(arm) && !READ_ONCE(timeout_page(t)->extra))
		return rearm_needs(rearming, NEEDS_EXTRA, timeout_index(t));
	arm->was_deadline_ns = rearm_was_deadline_ns(tw, t);
	if (arm->flags & TWHEEL_ARM_ONLY_LATER && deadline_ns <= arm->was_deadline_ns)
		return -ERANGE;
	if (arm->flags & TWHEEL_ARM_ONLY_EARLIER && deadline_ns >= arm->was_deadline_ns)
		return -ERANGE;
	return timeout_is_unread(t) ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING;
}

/*
 * Re-arm a live timeout, for which rearm_verdict() has found the outcome.  An unread event is
 * revoked; periods that have passed unread are counted first.
 */
static noinline void rearm_do(struct tw_ctx *tw, struct twheel_timeout *t,
			      const struct twheel_arm *arm, struct rearming *rearming)
	__must_hold(&tw->lock)
{
	bool was_unread = timeout_is_unread(t);
	u64 now_ns = rearming->now_ns;

	if (was_unread) {
		twheel_periods_settle(tw, t, twheel_periods_unread(&tw->clock, t));
		event_del(&tw->events, t);
	} else {
		twheel_link_del(&t->link);
	}
	timeout_begin_again(t);
	timeout_schedule(&tw->clock, t, arm, now_ns);
	trace_twheel_move(tw, t, arm->was_deadline_ns, was_unread);
	if (words_are_there(&tw->words))
		word_begin(&tw->words, t, timeout_known_ns(t));
	tw->events.rearmed++;
	rearming->first_ns = min(rearming->first_ns, timeout_pend(tw, t, passed_ns(tw, now_ns)));
}

/* Find the timeout of an element, and its result: as rearm_verdict(), or another errno. */
static int rearm_find(struct tw_ctx *tw, struct twheel_arm *arm, struct rearming *rearming,
		      struct twheel_timeout **t) __must_hold(&tw->lock)
{
	int err = arm_check(arm, ARM_ONLY, READ_ONCE(tw->clock.settable));

	if (err)
		return err;
	*t = timeout_find(tw, arm->id, rearming->call->by_key);
	return *t ? rearm_verdict(tw, arm, *t, rearming) : -ENOENT;
}

/* Do an element in the slow path.  False if copying its result out faults, or it needs memory. */
static noinline bool rearm_slow(struct tw_ctx *tw, struct twheel_arm *arm,
				struct twheel_arm __user *user, struct rearming *rearming)
	__must_hold(&tw->lock)
{
	struct twheel_timeout *t = NULL;
	int result = rearm_find(tw, arm, rearming, &t);

	rearming->result = result;
	if (rearming->needs || (user && !access_put_result_locked(result, &user->result)))
		return false;
	if (result > 0) {
		rearm_do(tw, t, arm, rearming);
		rearming->call->nr_ok++;
	}
	return true;
}

/* Whether all elements take the slow path. */
static bool rearm_is_slow(const struct twheel_call *call)
{
	return call->by_key || trace_twheel_move_enabled();
}

/*
 * Read the clock, and return from when on a plain deadline has not passed, so that the fast path
 * can take it; NEVER_NS if no element can take that, as in a wheel that has not started.
 */
static noinline u64 rearm_from_ns(struct tw_ctx *tw, struct rearming *rearming)
	__must_hold(&tw->lock)
{
	if (unlikely(!control_is_started(&tw->control)))
		return NEVER_NS;
	rearming->now_ns = call_now_ns(tw, rearming->call);
	return rearm_is_slow(rearming->call) ? NEVER_NS : passed_ns(tw, rearming->now_ns) + 1;
}

/*
 * The fast path: re-arm plain timeouts that pend for deadlines from @from_ns on, up to an element
 * that faults or needs the slow path; returns how many.
 */
static __always_inline unsigned int rearm_fast(struct tw_ctx *tw, const struct twheel_arm *arm,
					       struct twheel_arm __user *user, unsigned int nr,
					       u64 from_ns, struct rearming *rearming)
	__must_hold(&tw->lock)
{
	u64 now_ns = rearming->now_ns, never_ns = tw->clock.never_ns, first_ns = NEVER_NS;
	bool words = words_are_there(&tw->words);
	u32 stride = rearming->call->stride;
	unsigned int i;

	if (!access_open_locked(user, sizeof(*user)))
		return 0;
	for (i = 0; i < nr; i++, arm++, user = access_next(user, stride)) {
		u64 deadline_ns = arm_plain_ns(&tw->clock, arm, now_ns);
		struct twheel_timeout *t;

		if (unlikely(deadline_ns < from_ns || deadline_ns >= never_ns))
			break;
		t = place_at(&tw->places, id_index(arm->id));
		if (unlikely(!place_has_pending(t, arm->id) || timeout_has_extra(t)))
			break;
		if (unlikely(!access_put_result(TWHEEL_WAS_PENDING, &user->result)))
			break;
		if (unlikely(words))
			word_begin(&tw->words, t, deadline_ns);
		if (deadline_ns < t->deadline_ns) {
			twheel_link_del(&t->link);
			twheel_wheel_insert(&tw->wheel, &t->link, deadline_ns);
			first_ns = min(first_ns, deadline_ns);
		}
		t->deadline_ns = deadline_ns;
	}
	access_close_locked();
	rearming->first_ns = min(rearming->first_ns, first_ns);
	rearming->call->nr_ok += i;
	tw->events.rearmed += i;
	return i;
}

/*
 * Do the elements of a REARM: a rearm_elements_fn.  The slow path wants the clock.  An element that
 * the device has comes here only if it is for the slow path.
 */
static unsigned int rearm_elements(struct tw_ctx *tw, struct twheel_arm *arm,
				   struct twheel_arm __user *user, unsigned int nr,
				   struct rearming *rearming) __must_hold(&tw->lock)
{
	u32 stride = rearming->call->stride;
	u64 from_ns = certain_ns(tw);
	unsigned int i = 0;

	if (from_ns == NEVER_NS || !(arm->flags & TWHEEL_ARM_ABSOLUTE) ||
	    rearm_is_slow(rearming->call))
		from_ns = rearm_from_ns(tw, rearming);
	for (;;) {
		if (likely(user && from_ns != NEVER_NS))
			i += rearm_fast(tw, arm + i, access_at(user, i, stride), nr - i, from_ns,
					rearming);
		if (likely(i == nr))
			return i;
		if (!rearming->now_ns)
			from_ns = rearm_from_ns(tw, rearming);
		if (!rearm_slow(tw, arm + i, access_at(user, i, stride), rearming))
			return i;
		rearming->refused = 0;
		i++;
	}
}

/*
 * The fast path for a single element: re-arm a plain timeout that pends for a deadline to come, and
 * copy the result out unless @user is NULL.  False if it takes more than that: nothing is done.
 */
static __always_inline bool rearm_one_plain(struct tw_ctx *tw, const struct twheel_arm *arm,
					    struct twheel_arm __user *user)
{
	u64 now_ns = 0, deadline_ns;
	struct twheel_timeout *t;
	bool done = false;

	if (unlikely(!control_is_started(&tw->control) || trace_twheel_move_enabled()))
		return false;
	if (!(arm->flags & TWHEEL_ARM_ABSOLUTE))
		now_ns = clock_now(&tw->clock);
	deadline_ns = arm_plain_ns(&tw->clock, arm, now_ns);
	twheel_lock(tw);
	if (unlikely(READ_ONCE(tw->control.draining) || deadline_ns >= tw->clock.never_ns ||
		     plain_has_passed(tw, deadline_ns, now_ns)))
		goto unlock;
	t = place_at(&tw->places, id_index(arm->id));
	if (unlikely(!place_has_pending(t, arm->id) || timeout_has_extra(t)))
		goto unlock;
	done = !user || access_put_result_locked(TWHEEL_WAS_PENDING, &user->result);
	if (unlikely(!done))
		goto unlock;
	if (unlikely(words_are_there(&tw->words)))
		word_begin(&tw->words, t, deadline_ns);
	if (deadline_ns < t->deadline_ns) {
		twheel_link_del(&t->link);
		twheel_wheel_insert(&tw->wheel, &t->link, deadline_ns);
		alarm_need(tw, deadline_ns, 1);
	}
	t->deadline_ns = deadline_ns;
	tw->events.rearmed++;
unlock:
	twheel_unlock(tw);
	return done;
}

/* Do the single element of a REARM by id in the fast path.  False if that is not possible. */
bool twheel_rearm_plain(struct tw_ctx *tw, void __user *user)
{
	struct twheel_arm arm __uninitialized;

	return likely(access_copy_one(&arm, sizeof(arm), user)) && rearm_one_plain(tw, &arm, user);
}

/* Re-arm up to TWHEEL_BATCH timeouts; returns what rearm_batch() does. */
int twheel_rearm_step(struct tw_ctx *tw, void __user *user, unsigned int nr,
		      struct twheel_call *call)
{
	return rearm_batch(tw, user, nr, call, false, rearm_elements);
}

/* Re-arm a timeout by its id or key; returns what rearm_single() does. */
int twheel_rearm_one(struct tw_ctx *tw, struct twheel_arm *arm, bool by_key, bool nowait)
{
	return !by_key && rearm_one_plain(tw, arm, NULL) ? 0 :
	       rearm_single(tw, arm, by_key, nowait, rearm_elements);
}

/* ARM in a keyed wheel */

/* Give back a place that was taken for a key. */
static void place_undo(struct tw_ctx *tw, struct twheel_timeout *t, struct rearming *rearming)
	__must_hold(&tw->lock)
{
	spin_lock(&tw->places.lock);
	rearming->nr_before = max(rearming->nr_before, tw->places.nr_taken);
	places_count_free(&tw->places, 1);
	place_free(&tw->places, t);
	spin_unlock(&tw->places.lock);
}

/* Take the place that a key had before.  If it is NULL, or cannot be used again, take any. */
static struct twheel_timeout *place_take(struct tw_ctx *tw, struct twheel_timeout *before)
	__must_hold(&tw->lock)
{
	if (before) {
		int err = twheel_place_take_again(tw, before);

		if (likely(!err))
			return before;
		if (err == -EAGAIN)
			return ERR_PTR(err);
		twheel_key_drop(tw, before);
	}
	return twheel_place_take_locked(tw);
}

/*
 * Take a place and the key for an element whose key is absent: TWHEEL_CREATED, or an errno.  @place
 * is the place that the key had before, or NULL.
 */
static int upsert_take(struct tw_ctx *tw, const struct twheel_arm *arm,
		       struct rearming *rearming, struct twheel_timeout **place)
	__must_hold(&tw->lock)
{
	struct twheel_timeout *before = *place, *t = place_take(tw, before);
	int err = 0;

	if (IS_ERR(t))
		return t == ERR_PTR(-ENOMEM) ? rearm_needs(rearming, NEEDS_PAGE, 0) : PTR_ERR(t);
	if (arm_needs_extra(arm) && !READ_ONCE(timeout_page(t)->extra))
		err = rearm_needs(rearming, NEEDS_EXTRA, timeout_index(t));
	else if (t != before)
		err = twheel_key_take(tw, t, arm->user_data);
	if (err) {
		place_undo(tw, t, rearming);
		return err;
	}
	*place = t;
	return TWHEEL_CREATED;
}

/* Find the result of an element, and take what it needs: enum twheel_verdict, or an errno. */
static int upsert_find(struct tw_ctx *tw, struct twheel_arm *arm, struct rearming *rearming,
		       struct twheel_timeout **t) __must_hold(&tw->lock)
{
	int err = arm_check(arm, ARM_IF | ARM_ONLY, tw->clock.settable);

	arm->was_deadline_ns = 0;
	if (err)
		return err;
	*t = twheel_key_place(tw, arm->user_data);
	if (!*t || !timeout_is_live(*t))
		return arm->flags & TWHEEL_ARM_IF_PRESENT ? -ENOENT :
		       upsert_take(tw, arm, rearming, t);
	if (arm->flags & TWHEEL_ARM_IF_ABSENT)
		return -EEXIST;
	return rearm_verdict(tw, arm, *t, rearming);
}

/* Do an element, for which upsert_find() has returned @result. */
static void upsert_do(struct tw_ctx *tw, struct twheel_timeout *t, const struct twheel_arm *arm,
		      int result, struct rearming *rearming) __must_hold(&tw->lock)
{
	rearming->call->nr_ok++;
	if (result != TWHEEL_CREATED) {
		rearm_do(tw, t, arm, rearming);
		return;
	}
	timeout_schedule(&tw->clock, t, arm, rearming->now_ns);
	t->user_data = arm->user_data;
	if (words_are_there(&tw->words))
		word_begin(&tw->words, t, timeout_known_ns(t));
	timeout_begin(t);
	trace_twheel_arm(tw, t);
	tw->events.armed++;
	rearming->first_ns = min(rearming->first_ns,
				 timeout_pend(tw, t, passed_ns(tw, rearming->now_ns)));
}

static bool upsert_copy_out(struct twheel_arm __user *user, u64 id, int result, u64 was_deadline_ns)
{
	bool copied;

	if (!access_open_locked(user, sizeof(*user)))
		return false;
	copied = access_put(id, &user->id) &&
	       access_put(was_deadline_ns, &user->was_deadline_ns) &&
	       access_put_result(result, &user->result);
	access_close_locked();
	return copied;
}

/* Copy the result of an element out, and do it.  False if that faults, or if it needs memory. */
static bool upsert_element(struct tw_ctx *tw, struct twheel_arm *arm,
			   struct twheel_arm __user *user, struct rearming *rearming)
	__must_hold(&tw->lock)
{
	struct twheel_timeout *t = NULL;
	int result = upsert_find(tw, arm, rearming, &t);
	bool copied;

	rearming->result = result;
	if (rearming->needs)
		return false;
	copied = !user || upsert_copy_out(user, result > 0 ? timeout_id(t) : 0, result,
					  result > 0 ? arm->was_deadline_ns : 0);
	if (copied && result > 0) {
		upsert_do(tw, t, arm, result, rearming);
	} else if (result == TWHEEL_CREATED) {
		/* G8: the user may have the id already. */
		place_undo(tw, t, rearming);
	} else if (copied && result == -EAGAIN) {
		twheel_place_refused(tw);
	}
	return copied;
}

/* Do the elements of an ARM: a rearm_elements_fn. */
static unsigned int upsert_elements(struct tw_ctx *tw, struct twheel_arm *arm,
				    struct twheel_arm __user *user, unsigned int nr,
				    struct rearming *rearming) __must_hold(&tw->lock)
{
	u32 stride = rearming->call->stride;
	unsigned int i;

	rearming->now_ns = call_now_ns(tw, rearming->call);
	for (i = 0; i < nr; i++) {
		if (!upsert_element(tw, arm + i, access_at(user, i, stride), rearming))
			break;
		rearming->refused = 0;
	}
	return i;
}

/* Arm up to TWHEEL_BATCH timeouts in a keyed wheel; returns what rearm_batch() does. */
int twheel_upsert_step(struct tw_ctx *tw, struct twheel_arm __user *user, unsigned int nr,
		       struct twheel_call *call)
{
	return rearm_batch(tw, user, nr, call, true, upsert_elements);
}

/* Arm a timeout in a keyed wheel; returns what rearm_single() does. */
int twheel_upsert_one(struct tw_ctx *tw, struct twheel_arm *arm, bool nowait)
{
	return rearm_single(tw, arm, true, nowait, upsert_elements);
}
