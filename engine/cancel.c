// SPDX-License-Identifier: GPL-2.0
/*
 * CANCEL: tell the user the verdict on a timeout, and end it
 *
 * Both are one step for each entry, under the lock, as in REARM.  G7 cost does not grow: the
 * timeout leaves its list by two stores, and its place is free at once.
 *
 * An id is found by tables that are read under RCU, and the generation in the word of its place
 * says, under the lock, whether it still names the timeout that is there.
 *
 * Locks: twheel.lock, and under it places.lock, for a batch.  The places are found before that, so
 * that their cache misses overlap.
 */
#include <linux/errno.h>
#include <linux/prefetch.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/uaccess.h>

#include "access.h"
#include "control.h"
#include "engine.h"
#include "events.h"
#include "keys.h"
#include "periods.h"
#include "places.h"
#include "submit.h"
#include "timeout.h"
#include "trace.h"
#include "twheel.h"
#include "twheel_wheel.h"

/* If there are more pages of places than this, which are 2 MB, those of a batch are fetched. */
#define FETCH_PAGES	512

static struct twheel_timeout *cancel_find(struct twheel *tw, u64 id, bool by_key)
	__must_hold(&tw->lock)
{
	return by_key ? twheel_key_find(tw, id) : timeout_by_id(&tw->places, id);
}

/* What CANCEL says of a timeout, which is NULL if there is none. */
static int cancel_verdict(const struct twheel_timeout *t)
{
	if (!t)
		return -ENOENT;
	return timeout_is_unread(t) ? TWHEEL_WAS_UNREAD : TWHEEL_WAS_PENDING;
}

/* End a timeout of any kind. */
static noinline void cancel_do(struct twheel *tw, struct twheel_timeout *t)
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
	place_give_back(&tw->places, t, tw->keys.used);
}

/* Tell the verdict on an entry of any kind, and do it.  False if it faults. */
static noinline bool cancel_any(struct twheel *tw, struct twheel_cancel __user *user,
				struct twheel_call *call)
	__must_hold(&tw->lock) __must_hold(&tw->places.lock)
{
	struct twheel_cancel cancel = {};
	struct twheel_timeout *t;
	bool told = false;
	int result;

	pagefault_disable();
	if (__copy_from_user_inatomic(&cancel, user,
				      min_t(size_t, call->stride, sizeof(cancel))))
		goto out;
	t = cancel_find(tw, cancel.id, call->by_key);
	result = cancel.reserved ? -EINVAL : cancel_verdict(t);
	told = !__put_user(result, &user->result);
	if (told && result > 0) {
		cancel_do(tw, t);
		call->nr_ok++;
	}
out:
	pagefault_enable();
	return told;
}

/*
 * Tell and cancel timeouts, entry by entry, until one faults; returns how many.  Those that pend in
 * a wheel without keys are done here, others by cancel_any(), and all while they are traced.
 * @place are the places that the ids lead to, or NULL.
 */
static __always_inline unsigned int
cancel_fill(struct twheel *tw, struct twheel_cancel __user *user, unsigned int nr,
	    struct twheel_call *call, struct twheel_timeout **place)
	__must_hold(&tw->lock) __must_hold(&tw->places.lock)
{
	u64 any = tw->keys.used || trace_twheel_cancel_enabled() ? ~0ULL : 0;
	unsigned int i, nr_pending = 0;
	u32 stride = call->stride;

	if (!access_open_locked(user, nr * stride))
		return 0;
	for (i = 0; i < nr; i++, user = access_next(user, stride)) {
		struct twheel_timeout *t;
		u64 id, result_reserved;

		if (unlikely(!access_get(&id, &user->id) ||
			     !access_get(&result_reserved, pair_of(&user->result))))
			goto fault;
		t = place ? place[i] : place_at(&tw->places, id_index(id));
		if (unlikely(!place_has_pending(t, id) ||
			     (result_reserved & PAIR_SECOND(~0U)) | any)) {
			access_close_locked();
			if (!cancel_any(tw, user, call))
				goto out;
			if (access_open_locked(access_next(user, stride), (nr - i - 1) * stride))
				continue;
			i++;
			goto out;
		}
		if (unlikely(!access_tell(TWHEEL_WAS_PENDING, &user->result)))
			goto fault;
		twheel_link_del(&t->link);
		place_free(&tw->places, t);
		nr_pending++;
	}
fault:
	access_close_locked();
out:
	tw->events.cancelled += nr_pending;
	call->nr_ok += nr_pending;
	return i;
}

/* cancel_fill() under the locks. */
static __always_inline unsigned int
cancel_locked(struct twheel *tw, struct twheel_cancel __user *user, unsigned int nr,
	      struct twheel_call *call, struct twheel_timeout **place)
{
	unsigned int i;
	u32 nr_before;

	twheel_lock(tw);
	spin_lock(&tw->places.lock);
	nr_before = tw->places.nr_taken;
	i = cancel_fill(tw, user, nr, call, place);
	spin_unlock(&tw->places.lock);
	twheel_unlock(tw);
	twheel_places_freed(tw, nr_before);
	return i ?: -EFAULT;
}

/* Several entries: find their places, and fetch them, before the locks are taken. */
static noinline_for_stack int cancel_many(struct twheel *tw, struct twheel_cancel __user *user,
					  unsigned int nr, struct twheel_call *call)
{
	struct twheel_timeout *place[TWHEEL_BATCH] __uninitialized;
	int done;

	rcu_read_lock();
	nr = places_fetch(&tw->places, &user->id, call->stride, nr, place);
	done = cancel_locked(tw, user, nr ?: 1, call, nr ? place : NULL);
	rcu_read_unlock();
	return done;
}

/**
 * twheel_cancel_step() - cancel the timeouts of some entries
 * @tw: the wheel
 * @user: the entries, in the user's memory
 * @nr: how many, 1 to TWHEEL_BATCH
 * @call: the call
 *
 * Context: process; does not sleep; no lock of the wheel may be held.
 * Return: the number of entries that are done.  If it is none, -EFAULT: the caller has a fault of
 * the first entry served, and tries again.
 */
int twheel_cancel_step(struct twheel *tw, struct twheel_cancel __user *user, unsigned int nr,
		       struct twheel_call *call)
{
	/* Few places are in the processor's cache anyway. */
	if (nr > 1 && READ_ONCE(tw->places.pages.nr) > FETCH_PAGES)
		return cancel_many(tw, user, nr, call);
	return cancel_locked(tw, user, nr, call, NULL);
}

/**
 * twheel_cancel_one() - cancel a timeout
 * @tw: the wheel
 * @id: its id
 * @by_key: it is a key
 *
 * Context: process; does not sleep; no lock of the wheel may be held.
 * Return: 0 or -ENOENT.
 */
int twheel_cancel_one(struct twheel *tw, u64 id, bool by_key)
{
	struct twheel_timeout *t;
	u32 nr_before;

	twheel_lock(tw);
	t = cancel_find(tw, id, by_key);
	spin_lock(&tw->places.lock);
	nr_before = tw->places.nr_taken;
	if (t)
		cancel_do(tw, t);
	spin_unlock(&tw->places.lock);
	twheel_unlock(tw);
	twheel_places_freed(tw, nr_before);
	return t ? 0 : -ENOENT;
}
