// SPDX-License-Identifier: GPL-2.0
/*
 * CANCEL: look, and end the timeouts once the user has been told their verdicts
 *
 * See look.h for the sequence.  twheel_cancel_directly() makes one step of it as long as all
 * is as usual.  G7 cost does not grow: a pending timeout ends by one
 * compare-and-swap.  If it has an entry in the wheel, that stays: its place keeps it for the
 * next timeout that is armed there.  Until then the kthread drops it when it comes up, when it
 * looks ahead, or in a sweep.
 *
 * A batch of one entry has code of its own, which the compiler makes from the same
 * source.
 *
 * Locks: a pending timeout is cancelled under none.  events.lock is taken to revoke the
 * event of an UNREAD timeout, and for a moment to look at a timeout that is REARMING.  After
 * the batch, each under no other lock: keys.lock in a keyed wheel, and wake.lock if giving
 * memory back has become worth while.
 */
#include <linux/atomic.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "arena.h"
#include "ending.h"
#include "engine.h"
#include "events.h"
#include "look.h"
#include "tell.h"
#include "timeout.h"
#include "twheel.h"
#include "window.h"

/* twheel_cancel_look() for a number of entries that may be a constant. */
static __always_inline void cancel_look(struct twheel *tw,
					struct twheel_cancel *cancel,
					struct twheel_look *look,
					unsigned int nr)
{
	unsigned int i;

	rcu_read_lock();
	look_begin(&tw->arena, look);
	for (i = 0; i < nr; i++) {
		struct twheel_timeout *t;

		if (cancel[i].reserved) {
			cancel[i].result = -EINVAL;
			continue;
		}
		t = timeout_look(tw, cancel[i].id, &look->state[i]);
		look->timeout[i] = t;
		cancel[i].result = t ? state_verdict(look->state[i]) : -ENOENT;
	}
	rcu_read_unlock();
}

/**
 * twheel_cancel_look() - find the timeouts of a batch, and the verdict on each
 * @tw: the wheel
 * @cancel: the batch; out: each entry's result
 * @look: out: the timeouts and their states, for twheel_cancel_commit()
 * @nr: number of entries, 1 to TWHEEL_BATCH
 *
 * Nothing is changed.  A result is the outcome that twheel_cancel_commit() brings about,
 * or an errno.
 *
 * Context: process; does not sleep; no lock of the wheel may be held.
 */
void twheel_cancel_look(struct twheel *tw, struct twheel_cancel *cancel,
			struct twheel_look *look, unsigned int nr)
{
	if (nr == 1)
		cancel_look(tw, cancel, look, 1);
	else
		cancel_look(tw, cancel, look, nr);
}

/* Revoke the event of a timeout, and end it; false if it is no longer as @seen. */
static bool cancel_unread(struct twheel *tw, struct twheel_timeout *t, u64 seen,
			  struct ending *ending)
{
	bool won;

	spin_lock(&tw->events.lock);
	/* G3: an UNREAD timeout changes state only under this lock: no swap is needed. */
	won = atomic64_read(&t->state) == seen;
	if (won) {
		twheel_event_take(tw, t, seen);
		tw->events.revoked++;
		if (state_keeps_room(seen))
			ending->nr_room++;
		timeout_end(&tw->arena, t, seen, ending);
	}
	spin_unlock(&tw->events.lock);
	return won;
}

/*
 * End a timeout that is ARMED or QUEUED; false if it is no longer as @seen.  G3 exactly
 * one outcome: the compare-and-swap has one winner, be it this thread, another that
 * cancels or re-arms, or the kthread that lets the timeout expire.  The caller counts those
 * that were cancelled.
 */
static __always_inline bool cancel_pending(struct twheel *tw,
					   struct twheel_timeout *t, u64 seen,
					   struct ending *ending)
{
	/*
	 * The place of an ARMED timeout is free at once.  That of a QUEUED one becomes
	 * DEAD, since the inbox uses its link; the kthread frees it when it empties the
	 * inbox.
	 */
	if (likely(state_is_armed(seen))) {
		if (!state_change(t, seen, state_cancelled(seen)))
			return false;
		place_free(&tw->arena, t, state_cancelled(seen), ending);
		return true;
	}
	return state_change(t, seen, state_dead(seen));
}

/* Count @nr timeouts that cancel_pending() has ended. */
static __always_inline void ending_count(struct ending *ending, unsigned int nr)
{
	ending->nr_places += nr;
	ending->nr_cancelled += nr;
}

/*
 * Tell and cancel the entries of a batch, until one is not as usual; returns how many.
 * @place are the places that the ids name.
 */
static __always_inline unsigned int
tell_and_cancel(struct twheel *tw, struct twheel_cancel *cancel,
		struct twheel_cancel __user *user, struct twheel_timeout **place,
		unsigned int nr, unsigned int *told, struct ending *ending)
{
	unsigned int i = 0;

	*told = 0;
	if (!tell_begin(user, nr * sizeof(*user)))
		return 0;
	if (!tell_probe(&user[0].result, &user[nr - 1].result))
		goto end;
	for (; i < nr; i++) {
		struct twheel_timeout *t = place[i];
		u64 seen;

		if (unlikely(!t || cancel[i].reserved ||
			     !timeout_has_id(t, cancel[i].id, &seen) ||
			     !state_is_pending(seen)))
			break;
		cancel[i].result = TWHEEL_WAS_PENDING;
		if (unlikely(!tell(cancel[i].result, &user[i].result)))
			break;
		twheel_window(WINDOW_CANCEL_DIRECT);
		if (unlikely(!cancel_pending(tw, t, seen, ending))) {
			tell_end();
			*told = i + 1;
			return i;
		}
	}
end:
	tell_end();
	*told = i;
	return i;
}

/* twheel_cancel_directly() for a number of entries that may be a constant. */
static __always_inline unsigned int
cancel_directly(struct twheel *tw, struct twheel_cancel *cancel,
		struct twheel_cancel __user *user, unsigned int nr, unsigned int *told,
		unsigned int *nr_ok)
{
	struct twheel_timeout *place[TWHEEL_BATCH] __uninitialized;
	struct ending ending = {};
	unsigned int i;

	rcu_read_lock();
	places_fetch(&tw->arena, &cancel->id, sizeof(*cancel), nr, place);
	i = tell_and_cancel(tw, cancel, user, place, nr, told, &ending);
	rcu_read_unlock();
	ending_count(&ending, i);
	*nr_ok += i;
	twheel_ending_done(tw, &ending);
	return i;
}

/**
 * twheel_cancel_directly() - tell the user the verdicts of a batch, and cancel, one by one
 * @tw: the wheel
 * @cancel: the batch; out: the result of each entry that the user was told of
 * @user: the same entries in the user's memory
 * @nr: number of entries, 1 to TWHEEL_BATCH
 * @told: out: the number of entries that the user was told of
 * @nr_ok: the number of timeouts that were cancelled is added to it
 *
 * It ends at an entry that is not as usual: it is not well-formed, or its timeout does not
 * pend or has changed since the user was told, or a result cannot be written without a fault.
 *
 * Context: process; does not sleep; no lock of the wheel may be held.
 * Return: the number of entries that are done.  The others are for twheel_cancel_look().
 */
unsigned int twheel_cancel_directly(struct twheel *tw, struct twheel_cancel *cancel,
				    struct twheel_cancel __user *user, unsigned int nr,
				    unsigned int *told, unsigned int *nr_ok)
{
	return nr == 1 ? cancel_directly(tw, cancel, user, 1, told, nr_ok) :
			 cancel_directly(tw, cancel, user, nr, told, nr_ok);
}

/* twheel_cancel_commit() for a number of entries that may be a constant. */
static __always_inline unsigned int
cancel_commit(struct twheel *tw, const struct twheel_cancel *cancel,
	      struct twheel_look *look, unsigned int nr, unsigned int *nr_ok)
{
	struct ending ending = {};
	unsigned int i;

	twheel_window(WINDOW_CANCEL_TOLD);
	rcu_read_lock();
	if (unlikely(!look_is_good(&tw->arena, look)))
		for (i = 0; i < nr; i++)
			look->timeout[i] = timeout_at(&tw->arena, id_index(cancel[i].id));
	twheel_window(WINDOW_CANCEL_GOOD);
	for (i = 0; i < nr; i++) {
		struct twheel_timeout *t = look->timeout[i];
		u64 seen = look->state[i];

		if (cancel[i].result < 0)
			continue;
		if (!t)
			break;
		if (state_is_unread(seen)) {
			if (!cancel_unread(tw, t, seen, &ending))
				break;
		} else {
			if (!cancel_pending(tw, t, seen, &ending))
				break;
			ending_count(&ending, 1);
		}
	}
	rcu_read_unlock();
	*nr_ok += ending.nr_places;
	twheel_ending_done(tw, &ending);
	return i;
}

/**
 * twheel_cancel_commit() - cancel the timeouts whose verdicts were reported to the user
 * @tw: the wheel
 * @cancel: the batch as twheel_cancel_look() left it
 * @look: as twheel_cancel_look() left it; used up
 * @nr: number of entries that were reported
 * @nr_ok: the number of timeouts that were cancelled is added to it
 *
 * Context: process; does not sleep; no lock of the wheel may be held.
 * Return: the number of entries that are done.  If it is less than @nr, the timeout of
 * the next entry is no longer as it was seen: the caller has to look again from that
 * entry on.
 */
unsigned int twheel_cancel_commit(struct twheel *tw,
				  const struct twheel_cancel *cancel,
				  struct twheel_look *look,
				  unsigned int nr, unsigned int *nr_ok)
{
	return nr == 1 ? cancel_commit(tw, cancel, look, 1, nr_ok) :
			 cancel_commit(tw, cancel, look, nr, nr_ok);
}
