// SPDX-License-Identifier: GPL-2.0
/*
 * CANCEL: copy the result for a timeout out, and end the timeout
 *
 * G7 cost does not grow: the timeout leaves its list by two stores, and its place is free at once.
 */
#include <linux/errno.h>

#include "lock.h"
#include "trace.h"
#include "user_access.h"

/* End a timeout: the slow path. */
static noinline void cancel_do(struct tw_ctx *tw, struct twheel_timeout *t)
	__must_hold(&tw->lock) __must_hold(&tw->places.lock)
{
	trace_twheel_cancel(tw, t);
	if (timeout_is_unread(t)) {
		twheel_periods_settle(tw, t, twheel_periods_unread(&tw->clock, t));
		event_del(&tw->events, t);
		tw->events.revoked++;
	} else {
		twheel_link_del(&t->link);
		tw->events.cancelled++;
	}
	places_count_free(&tw->places, 1);
	place_free(&tw->places, t);
}

/* Do an element in the slow path.  False if copying the result out faults. */
static bool cancel_slow(struct tw_ctx *tw, const struct twheel_cancel *cancel,
			struct twheel_cancel __user *user, struct twheel_call *call)
	__must_hold(&tw->lock) __must_hold(&tw->places.lock)
{
	struct twheel_timeout *t = timeout_find(tw, cancel->id, call->by_key);
	int result = cancel->reserved ? -EINVAL : !t ? -ENOENT :
		     timeout_is_unread(t) ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING;

	if (!access_put_result_locked(result, &user->result))
		return false;
	if (result > 0) {
		cancel_do(tw, t);
		call->nr_ok++;
	}
	return true;
}

/*
 * The fast path: cancel timeouts that pend, up to an element that faults or needs the slow path;
 * returns how many.
 */
static __always_inline unsigned int
cancel_fast(struct tw_ctx *tw, const struct twheel_cancel *cancel,
	    struct twheel_cancel __user *user, unsigned int nr, struct twheel_call *call)
	__must_hold(&tw->lock) __must_hold(&tw->places.lock)
{
	u32 stride = call->stride;
	unsigned int i;

	if (!access_open_locked(user, sizeof(*user)))
		return 0;
	for (i = 0; i < nr; i++, cancel++, user = access_next(user, stride)) {
		struct twheel_timeout *t = place_at(&tw->places, id_index(cancel->id));

		if (unlikely(!place_has_pending(t, cancel->id) || cancel->reserved))
			break;
		if (unlikely(!access_put_result(TWHEEL_WAS_PENDING, &user->result)))
			break;
		twheel_link_del(&t->link);
		place_free(&tw->places, t);
	}
	access_close_locked();
	places_count_free(&tw->places, i);
	tw->events.cancelled += i;
	call->nr_ok += i;
	return i;
}

/* Do the rest of a batch: the next element in the slow path, and if @all_slow, all of them. */
static noinline unsigned int
cancel_rest(struct tw_ctx *tw, const struct twheel_cancel *cancel,
	    struct twheel_cancel __user *user, unsigned int nr, struct twheel_call *call,
	    bool all_slow) __must_hold(&tw->lock) __must_hold(&tw->places.lock)
{
	u32 stride = call->stride;
	unsigned int i = 0;

	while (i < nr && cancel_slow(tw, cancel + i, access_at(user, i, stride), call)) {
		i++;
		if (!all_slow)
			i += cancel_fast(tw, cancel + i, access_at(user, i, stride), nr - i, call);
	}
	return i;
}

/*
 * Do the elements of a batch, until one faults; returns how many.  If the wheel is keyed, or the
 * tracepoint is on, all take the slow path.
 */
static __always_inline unsigned int
cancel_elements(struct tw_ctx *tw, const struct twheel_cancel *cancel,
		struct twheel_cancel __user *user, unsigned int nr, struct twheel_call *call)
	__must_hold(&tw->lock) __must_hold(&tw->places.lock)
{
	bool all_slow = READ_ONCE(tw->keys.used) || trace_twheel_cancel_enabled();
	unsigned int i = all_slow ? 0 : cancel_fast(tw, cancel, user, nr, call);

	if (unlikely(i < nr))
		i += cancel_rest(tw, cancel + i, access_at(user, i, call->stride), nr - i, call,
				 all_slow);
	return i;
}

/* Prefetch what a batch is about to access. */
static noinline void cancel_prefetch(struct tw_ctx *tw, const struct twheel_cancel *cancel,
				     unsigned int nr, bool by_key)
{
	const struct twheel_timeout *place[TWHEEL_BATCH] __uninitialized;
	unsigned int i;

	rcu_read_lock();
	places_prefetch(tw, place, &cancel->id, sizeof(*cancel), nr, by_key, false);
	for (i = 0; i < nr; i++)
		prefetchw(timeout_page(place[i]));
	for (i = 0; i < nr; i++)
		if (likely(place[i]))
			place_prefetch_beside(place[i]);
	rcu_read_unlock();
}

/*
 * The fast path for a single element: cancel a timeout that pends, and copy the result out.  False
 * if it takes more than that: nothing is done.
 */
static noinline bool cancel_plain(struct tw_ctx *tw, struct twheel_cancel __user *user)
{
	struct twheel_cancel cancel __uninitialized;
	struct twheel_timeout *t;
	u32 nr_before;

	if (unlikely(!access_copy_one(&cancel, sizeof(cancel), user) || cancel.reserved ||
		     trace_twheel_cancel_enabled()))
		return false;
	twheel_lock(tw);
	t = place_at(&tw->places, id_index(cancel.id));
	if (unlikely(!place_has_pending(t, cancel.id) ||
		     !access_put_result_locked(TWHEEL_WAS_PENDING, &user->result))) {
		twheel_unlock(tw);
		return false;
	}
	twheel_link_del(&t->link);
	tw->events.cancelled++;
	spin_lock(&tw->places.lock);
	nr_before = tw->places.nr_taken;
	places_count_free(&tw->places, 1);
	place_free(&tw->places, t);
	spin_unlock(&tw->places.lock);
	twheel_unlock(tw);
	twheel_places_freed(tw, nr_before);
	return true;
}

/* Do the single element of a CANCEL by id in the fast path.  False if that is not possible. */
bool twheel_cancel_plain(struct tw_ctx *tw, void __user *user)
{
	return likely(control_is_started(&tw->control) && !tw->keys.used) && cancel_plain(tw, user);
}

/*
 * Cancel up to TWHEEL_BATCH timeouts.  Returns how many elements are done, or -EFAULT: the caller
 * has a fault of the first one served, and tries again.
 */
int twheel_cancel_step(struct tw_ctx *tw, void __user *user, unsigned int nr,
		       struct twheel_call *call)
{
	struct twheel_cancel cancel[TWHEEL_BATCH] __uninitialized;
	unsigned int i;
	u32 nr_before;

	nr = access_copy_in(cancel, sizeof(cancel[0]), user, call->stride, nr);
	if (!nr)
		return -EFAULT;
	if (prefetch_pays(tw, nr, call->by_key))
		cancel_prefetch(tw, cancel, nr, call->by_key);
	twheel_lock(tw);
	spin_lock(&tw->places.lock);
	nr_before = tw->places.nr_taken;
	i = cancel_elements(tw, cancel, user, nr, call);
	spin_unlock(&tw->places.lock);
	twheel_unlock(tw);
	twheel_places_freed(tw, nr_before);
	return i ?: -EFAULT;
}

/* Cancel a timeout by its id or key: 0 or -ENOENT. */
int twheel_cancel_one(struct tw_ctx *tw, u64 id, bool by_key)
{
	struct twheel_timeout *t;
	u32 nr_before;

	twheel_lock(tw);
	t = timeout_find(tw, id, by_key);
	spin_lock(&tw->places.lock);
	nr_before = tw->places.nr_taken;
	if (t)
		cancel_do(tw, t);
	spin_unlock(&tw->places.lock);
	twheel_unlock(tw);
	twheel_places_freed(tw, nr_before);
	return t ? 0 : -ENOENT;
}
