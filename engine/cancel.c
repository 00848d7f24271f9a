// SPDX-License-Identifier: GPL-2.0
/*
 * CANCEL: tell the user the verdict on a timeout, and end it
 *
 * Both are one step for each entry, under the lock, as in REARM.  G7 cost does not grow: the
 * timeout leaves its list by two stores, and its place is free at once.
 *
 * Locks: twheel.lock, and under it places.lock, for a batch.
 */
#include <linux/errno.h>
#include <linux/prefetch.h>

#include "lock.h"
#include "trace.h"
#include "user_access.h"

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
	places_count_free(&tw->places, 1);
	place_give_back(&tw->places, t, tw->keys.used);
}

/* Tell the verdict on an entry of any kind, and do it.  False if it faults. */
static bool cancel_any(struct twheel *tw, const struct twheel_cancel *cancel,
		       struct twheel_cancel __user *user, struct twheel_call *call)
	__must_hold(&tw->lock) __must_hold(&tw->places.lock)
{
	struct twheel_timeout *t = cancel_find(tw, cancel->id, call->by_key);
	int result = cancel->reserved ? -EINVAL : cancel_verdict(t);

	if (!access_tell_locked(result, &user->result))
		return false;
	if (result > 0) {
		cancel_do(tw, t);
		call->nr_ok++;
	}
	return true;
}

/*
 * Tell and cancel timeouts, up to an entry that faults, or whose timeout does not pend; returns how
 * many.  @place are the places that the ids lead to, or NULL.
 */
static __always_inline unsigned int
cancel_run(struct twheel *tw, const struct twheel_cancel *cancel,
	   struct twheel_cancel __user *user, unsigned int nr, struct twheel_call *call,
	   struct twheel_timeout **place)
	__must_hold(&tw->lock) __must_hold(&tw->places.lock)
{
	u32 stride = call->stride;
	unsigned int i;

	/* All of them were copied in. */
	if (!access_open_locked(user, sizeof(*user)))
		return 0;
	for (i = 0; i < nr; i++, cancel++, user = access_next(user, stride)) {
		struct twheel_timeout *t = place ? place[i] :
						   place_at(&tw->places, id_index(cancel->id));

		if (unlikely(!place_has_pending(t, cancel->id) || cancel->reserved))
			break;
		if (unlikely(!access_tell(TWHEEL_WAS_PENDING, &user->result)))
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

/* Go on with a batch at an entry that is not done in cancel_run(), as all are if @any. */
static noinline unsigned int
cancel_go_on(struct twheel *tw, const struct twheel_cancel *cancel,
	     struct twheel_cancel __user *user, unsigned int nr, struct twheel_call *call, bool any)
	__must_hold(&tw->lock) __must_hold(&tw->places.lock)
{
	u32 stride = call->stride;
	unsigned int i = 0;

	while (i < nr && cancel_any(tw, cancel + i, access_at(user, i, stride), call)) {
		i++;
		if (!any)
			i += cancel_run(tw, cancel + i, access_at(user, i, stride), nr - i, call,
					NULL);
	}
	return i;
}

/*
 * Tell and cancel timeouts, until one faults; returns how many entries.  In a keyed wheel all are
 * done by cancel_any(), and while they are traced.
 */
static __always_inline unsigned int
cancel_fill(struct twheel *tw, const struct twheel_cancel *cancel,
	    struct twheel_cancel __user *user, unsigned int nr, struct twheel_call *call)
	__must_hold(&tw->lock) __must_hold(&tw->places.lock)
{
	bool any = tw->keys.used || trace_twheel_cancel_enabled();
	bool fetch = nr > 1 && READ_ONCE(tw->places.pages.nr) > FETCH_PAGES && !any;
	struct twheel_timeout *place[TWHEEL_BATCH] __uninitialized;
	unsigned int i;

	/* The cache misses of the places overlap, if all are fetched before one is read. */
	for (i = 0; i < nr && fetch; i++) {
		place[i] = place_at(&tw->places, id_index(cancel[i].id));
		prefetchw(place[i]);
	}
	i = any ? 0 : cancel_run(tw, cancel, user, nr, call, fetch ? place : NULL);
	if (unlikely(i < nr))
		i += cancel_go_on(tw, cancel + i, access_at(user, i, call->stride), nr - i, call,
				  any);
	return i;
}

/**
 * twheel_cancel_step() - cancel the timeouts of some entries
 * @tw: the wheel
 * @user: the entries, in the user's memory
 * @nr: how many, 1 to TWHEEL_BATCH
 * @call: the call
 *
 * Context: process; sleeps; no lock of the wheel may be held.
 * Return: the number of entries that are done.  If it is none, -EFAULT: the caller has a fault of
 * the first entry served, and tries again.
 */
int twheel_cancel_step(struct twheel *tw, void __user *user, unsigned int nr,
		       struct twheel_call *call)
{
	struct twheel_cancel cancel[TWHEEL_BATCH] __uninitialized;
	unsigned int i;
	u32 nr_before;

	nr = access_copy_in(cancel, sizeof(cancel[0]), user, call->stride, nr);
	if (!nr)
		return -EFAULT;
	twheel_lock(tw);
	spin_lock(&tw->places.lock);
	nr_before = tw->places.nr_taken;
	i = cancel_fill(tw, cancel, user, nr, call);
	spin_unlock(&tw->places.lock);
	twheel_unlock(tw);
	twheel_places_freed(tw, nr_before);
	return i ?: -EFAULT;
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
