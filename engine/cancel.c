// SPDX-License-Identifier: GPL-2.0
/*
 * CANCEL
 *
 * A single CANCEL has code of its own, which the compiler makes of the same source.
 *
 * Locks: none, but events.lock for a timeout whose event waits to be read.
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
#include "timeout.h"
#include "twheel.h"

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
 * twheel_cancel_look() - what cancelling would say
 * @tw: the wheel
 * @cancel: the batch; out: result
 * @look: out: what was found, for twheel_cancel_commit()
 * @nr: how many, up to TWHEEL_BATCH
 *
 * Context: process.
 */
void twheel_cancel_look(struct twheel *tw, struct twheel_cancel *cancel,
			struct twheel_look *look, unsigned int nr)
{
	if (nr == 1)
		cancel_look(tw, cancel, look, 1);
	else
		cancel_look(tw, cancel, look, nr);
}

static bool cancel_unread(struct twheel *tw, struct twheel_timeout *t, u64 seen,
			  struct ending *ending)
{
	bool won;

	spin_lock(&tw->events.lock);
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

static __always_inline bool cancel_pending(struct twheel *tw,
					   struct twheel_timeout *t, u64 seen,
					   struct ending *ending)
{
	if (likely(state_is_armed(seen))) {
		if (!state_change(t, seen, state_freed(seen)))
			return false;
		place_free(&tw->arena, t, state_freed(seen), ending);
	} else if (!state_change(t, seen, state_dead(seen))) {
		/* The inbox uses the place's link: the kthread will free it. */
		return false;
	}
	ending->nr_places++;
	ending->nr_cancelled++;
	return true;
}

static __always_inline unsigned int
cancel_commit(struct twheel *tw, const struct twheel_cancel *cancel,
	      struct twheel_look *look, unsigned int nr, unsigned int *nr_ok)
{
	struct ending ending = {};
	unsigned int i;

	rcu_read_lock();
	if (unlikely(!look_is_good(&tw->arena, look)))
		for (i = 0; i < nr; i++)
			look->timeout[i] = timeout_at(&tw->arena, id_index(cancel[i].id));
	for (i = 0; i < nr; i++) {
		struct twheel_timeout *t = look->timeout[i];
		u64 seen = look->state[i];

		if (cancel[i].result < 0)
			continue;
		if (!t || (state_is_unread(seen) ?
			   !cancel_unread(tw, t, seen, &ending) :
			   !cancel_pending(tw, t, seen, &ending)))
			break;
	}
	rcu_read_unlock();
	*nr_ok += ending.nr_places;
	twheel_ending_done(tw, &ending);
	return i;
}

/**
 * twheel_cancel_commit() - cancel what was reported to the user
 * @tw: the wheel
 * @cancel: the batch as twheel_cancel_look() left it
 * @look: likewise; used up
 * @nr: how many of them
 * @nr_ok: how many were cancelled is added to it
 *
 * Context: process.
 * Return: how many were done; when fewer than @nr, the next one is no longer as
 * it was seen and has to be looked at again, with those after it.
 */
unsigned int twheel_cancel_commit(struct twheel *tw,
				  const struct twheel_cancel *cancel,
				  struct twheel_look *look,
				  unsigned int nr, unsigned int *nr_ok)
{
	return nr == 1 ? cancel_commit(tw, cancel, look, 1, nr_ok) :
			 cancel_commit(tw, cancel, look, nr, nr_ok);
}
