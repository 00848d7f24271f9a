// SPDX-License-Identifier: GPL-2.0
/*
 * ARM
 *
 * A single ARM has code of its own, which the compiler makes of the same source: arm_prepare()
 * and arm_commit() are there for one entry and for many.
 *
 * Locks: arena.free_lock, and wake.lock when the timeout is the earliest of all.
 */
#include <linux/atomic.h>
#include <linux/container_of.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "arena.h"
#include "clock.h"
#include "control.h"
#include "ending.h"
#include "engine.h"
#include "inbox.h"
#include "life.h"
#include "room.h"
#include "timeout.h"
#include "twheel.h"
#include "wake.h"
#include "words.h"

/* Before @nr are armed; what comes in between is settled by commit. */
static int arm_allowed(struct twheel *tw, unsigned int nr)
{
	if (READ_ONCE(tw->control.draining))
		return -ESHUTDOWN;
	/* An ARM that arms nothing leaves SETUP open. */
	if (likely(control_is_started(&tw->control)) || !nr)
		return 0;
	return twheel_start_lazily(tw);
}

/* Give one entry its place. */
static inline void arm_place(struct twheel_words *words, struct twheel_arm *arm,
			     struct twheel_timeout *t, const struct life *life)
{
	u64 state = atomic64_read(&t->state);

	life_begin(words, t, state, life);
	WRITE_ONCE(t->user_data, arm->user_data);
	arm->id = timeout_id(t, state);
	/* Nobody acts on it while NEW; the release is in arm_publish(). */
	atomic64_set(&t->state, state_new(state, life->flags));
}

/* The usual case: nothing but one-shots, and a place for each. */
static __always_inline void arm_place_once(struct twheel_words *words,
					   struct twheel_arm *arm,
					   unsigned int nr, u64 now_ns,
					   struct twheel_arming *arming)
{
	struct llist_node *place = arming->first;
	u64 due_ns = WAKE_NEVER;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct life life = life_once(&arm[i], now_ns);

		arm_place(words, &arm[i],
			  llist_entry(place, struct twheel_timeout, node),
			  &life);
		due_ns = min(due_ns, life_due_ns(&life));
		place = place->next;
	}
	arming->due_ns = due_ns;
}

/*
 * Any, of which some may be left out; the last to come get no place when there are
 * not enough.  Returns the places that nobody needed after all.
 */
static struct llist_node *arm_place_any(struct twheel *tw,
					struct twheel_arm *arm,
					unsigned int nr, u64 now_ns,
					struct twheel_arming *arming,
					int short_of)
{
	struct llist_node **link = &arming->first;
	struct llist_node *place;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct twheel_timeout *t;
		struct life life;

		if (arm[i].result)
			continue;
		if (!*link) {
			arm[i].result = short_of;
			continue;
		}
		t = llist_entry(*link, struct twheel_timeout, node);
		if (arm[i].interval_ns) {
			arm[i].result = twheel_periodic_provide(tw, timeout_index(t));
			if (arm[i].result)
				continue;
		}
		life = life_of(&tw->clock, &arm[i], now_ns);
		arm_place(&tw->words, &arm[i], t, &life);
		arming->due_ns = min(arming->due_ns, life_due_ns(&life));
		link = &t->node.next;
	}
	place = *link;
	*link = NULL;
	return place;
}

/* Take back the places at @chain, which never became more than NEW. */
static void arm_undo(struct twheel *tw, struct llist_node *chain)
{
	struct ending ending = {};
	struct twheel_timeout *t, *next;

	llist_for_each_entry_safe(t, next, chain, node) {
		u64 state = atomic64_read(&t->state);

		/* Its id may have been reported: it is not given out again. */
		if (state_is_new(state)) {
			state = state_freed(state);
			atomic64_set(&t->state, state);
		}
		place_free(&tw->arena, t, state, &ending);
		ending.nr_places++;
		ending.nr_room++;
	}
	twheel_ending_done(tw, &ending);
}

static __always_inline int arm_prepare(struct twheel *tw,
				       struct twheel_arm *arm, unsigned int nr,
				       struct twheel_arming *arming)
{
	unsigned int i, got, nr_valid = nr;
	int err, short_of = -EAGAIN;
	u64 now_ns, oddities = 0;

	arming->first = NULL;
	arming->due_ns = WAKE_NEVER;
	for (i = 0; i < nr; i++) {
		oddities |= life_oddities(&arm[i]);
		arm[i].result = 0;
	}
	for (i = 0; i < nr && oddities; i++) {
		arm[i].result = life_check(&arm[i]);
		nr_valid -= !!arm[i].result;
	}
	err = arm_allowed(tw, nr_valid);
	if (err)
		return err;
	now_ns = twheel_now(&tw->clock);

	got = live_take(&tw->arena, nr_valid);
	if (got) {
		err = room_take_at_hand(&tw->room, got) ? 0 :
		      twheel_room_take_reclaiming(tw, got);
		if (err) {
			twheel_live_give(tw, got);
			short_of = err;
			got = 0;
		}
	}
	if (got) {
		struct llist_node **tail = &arming->first;
		unsigned int taken = places_pop(&tw->arena, got, &tail);

		if (unlikely(taken < got))
			taken += twheel_places_wait(tw, got - taken, &tail, &err);
		*tail = NULL;
		if (taken < got) {
			room_give(&tw->room, got - taken);
			twheel_live_give(tw, got - taken);
			short_of = err;
			got = taken;
		}
	}

	arming->all = !oddities && got == nr;
	if (likely(arming->all)) {
		arm_place_once(&tw->words, arm, nr, now_ns, arming);
	} else {
		struct llist_node *unused;

		unused = arm_place_any(tw, arm, nr, now_ns, arming, short_of);
		if (unused)
			arm_undo(tw, unused);
	}
	return 0;
}

/**
 * twheel_arm_prepare() - find places for a batch of timeouts
 * @tw: the wheel
 * @arm: the batch; out: id and result
 * @nr: how many, up to TWHEEL_BATCH
 * @arming: out: for twheel_arm_commit()
 *
 * Context: process; sleeps.
 * Return: 0, or -ESHUTDOWN, -ENOMEM, -ENOSPC, or -EINTR by a fatal signal, when none
 * can be armed.
 */
int twheel_arm_prepare(struct twheel *tw, struct twheel_arm *arm,
		       unsigned int nr, struct twheel_arming *arming)
{
	return nr == 1 ? arm_prepare(tw, arm, 1, arming) :
			 arm_prepare(tw, arm, nr, arming);
}

/* From here on it is everybody's. */
static inline void arm_publish(struct twheel_timeout *t)
{
	u64 state = atomic64_read(&t->state);

	/* Releases the fields to whoever acts on the state. */
	atomic64_set_release(&t->state, state_published(state));
}

static __always_inline int arm_commit(struct twheel *tw,
				      struct twheel_arming *arming,
				      unsigned int nr)
{
	struct chain chain = { .first = arming->first };
	struct llist_node *node = arming->first;
	int nr_requeued = atomic_read(&tw->inbox.nr_requeued);
	u64 due_ns;
	unsigned int i;
	int err = 0;

	/* Pairs with synchronize_rcu() in twheel_drain(). */
	rcu_read_lock();
	if (READ_ONCE(tw->control.draining)) {
		err = -ESHUTDOWN;
		nr = 0;
	}
	atomic64_add(nr, &tw->arena.armed);
	for (i = 0; i < nr; i++) {
		struct twheel_timeout *t =
			llist_entry(node, struct twheel_timeout, node);

		arm_publish(t);
		chain.last = node;
		node = node->next;
	}
	chain.nr = nr;
	if (nr) {
		due_ns = inbox_add(&tw->inbox, &chain, arming->due_ns);
		/*
		 * One of them was re-armed before it was in the inbox, and the
		 * pass that this called for may not have found it.  Both sides
		 * have a full barrier between the two: llist_add_batch() here,
		 * atomic_inc_return() there.
		 */
		if (atomic_read(&tw->inbox.nr_requeued) != nr_requeued)
			due_ns = WAKE_NOW;
		if (wake_is_too_late(&tw->wake, due_ns))
			twheel_wake_for(tw, due_ns);
	}
	rcu_read_unlock();
	if (node)
		arm_undo(tw, node);
	return err;
}

/**
 * twheel_arm_commit() - arm what was reported to the user
 * @tw: the wheel
 * @arming: from twheel_arm_prepare(); used up
 * @nr: how many of those that were given places; the places of the others are
 *	given back
 *
 * Context: process.
 * Return: 0, or -ESHUTDOWN when the wheel was drained meanwhile and nothing was
 * armed.
 */
int twheel_arm_commit(struct twheel *tw, struct twheel_arming *arming,
		      unsigned int nr)
{
	return nr == 1 ? arm_commit(tw, arming, 1) : arm_commit(tw, arming, nr);
}
