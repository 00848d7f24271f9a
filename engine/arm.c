// SPDX-License-Identifier: GPL-2.0
/*
 * ARM: prepare places, and publish the timeouts once the user has been told their ids
 *
 * twheel_arm_prepare() takes everything that the timeouts will ever need: a place, an
 * entry of room in the wheel, and memory for their periods.  After that nothing can fail
 * for want of memory (G4), unless the index of a keyed wheel cannot take a key.  The device
 * then reports ids and results, and twheel_arm_commit() or twheel_arm_commit_keyed() publishes
 * the timeouts that were reported and gives the other places back.  As long as all is as
 * usual, twheel_arm_directly() does all that in one step for each entry.
 *
 * G7 cost does not grow: an ARM puts its timeouts into the inbox, and looks at no other
 * timeout.  The kthread moves them into the wheel in its next pass.  ARM wakes it only
 * when it would run too late for the new timeouts, or when the inbox fills up.
 * Where the place still has an entry in the wheel that will do, the timeout is ARMED at once.
 *
 * A batch of one entry has code of its own.  The compiler makes it from the same source:
 * arm_prepare(), arm_commit() and arm_directly() are inlined once for one entry and once for
 * many, and arm_commit() once more for a keyed wheel.
 *
 * Locks: arena.free_lock to take places, once a batch; keys.lock to publish in a keyed
 * wheel, so that a key is taken and its timeout published in one step; wake.lock when the
 * kthread has to run earlier.  When memory has to be allocated: room.mutex and
 * arena.mutex, and wake.lock to ask for a pass that gives some back; in a wheel that nobody
 * has set up: control.mutex.  When places are given back: those of ending.c.  Each is taken
 * while no other is held.
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
#include "keys.h"
#include "life.h"
#include "room.h"
#include "tell.h"
#include "timeout.h"
#include "twheel.h"
#include "wake.h"
#include "window.h"
#include "words.h"

/*
 * Whether @nr timeouts may be armed now; starts the wheel where that has not happened.  A
 * DRAIN that begins after this check is noticed in arm_commit().
 */
static int arm_allowed(struct twheel *tw, unsigned int nr, bool nowait)
{
	if (READ_ONCE(tw->control.draining))
		return -ESHUTDOWN;
	/*
	 * An ARM without a single valid entry does not start the wheel: SETUP may follow.
	 */
	if (likely(control_is_started(&tw->control)) || !nr)
		return 0;
	return nowait ? -EAGAIN : twheel_start_lazily(tw);
}

/*
 * Whether the place's entry in the wheel, if it keeps one, will do for the new timeout: it
 * comes up when that is due, or before, and is moved then.  An overdue timeout does not wait
 * for it.
 */
static inline bool entry_will_do(const struct twheel_timeout *t, u64 state,
				 const struct life *life)
{
	return state_has_entry(state) && !life->flags &&
	       life->deadline_ns >= READ_ONCE(t->entry_ns);
}

/*
 * Begin a timeout in its place, for one entry of the vector.  Returns whether the place
 * keeps its entry in the wheel.
 */
static __always_inline bool arm_place(struct twheel_arm *arm, struct twheel_timeout *t,
				      const struct life *life)
{
	u64 state = atomic64_read(&t->state);
	bool keep = entry_will_do(t, state, life);

	life_begin(t, life);
	WRITE_ONCE(t->user_data, arm->user_data);
	arm->id = timeout_id(t, state);
	/*
	 * G3: the compare-and-swap decides between this and the kthread, which may just be
	 * taking the entry.
	 */
	if (keep && state_change(t, state, state_new_with_entry(state)))
		return true;
	/*
	 * No other thread acts on a NEW timeout, so this need not be a release.  If the place
	 * had an entry, that is stale now, whether or not the kthread has just taken it.
	 */
	atomic64_set(&t->state, state_new(state, life->flags));
	return false;
}

/* Place a batch in the usual case: one-shots without slack, each of which has a place. */
static __always_inline void arm_place_once(struct twheel *tw,
					   struct twheel_arm *arm,
					   unsigned int nr, u64 now_ns,
					   struct twheel_arming *arming)
{
	struct llist_node *place = arming->first;
	u64 due_ns = WAKE_NEVER;
	bool keeps = false;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct life life = life_once(&arm[i], now_ns);

		keeps |= arm_place(&arm[i], llist_entry(place, struct twheel_timeout, node),
				   &life);
		due_ns = min(due_ns, life_due_ns(&tw->clock, &life));
		place = place->next;
	}
	arming->due_ns = due_ns;
	arming->keeps = keeps;
}

/*
 * Place a batch of any kind.  Entries that were refused before have no place; where there
 * are too few places, the last entries of the batch go without and get @short_of as their
 * result.  Returns a chain of the places that are left over, NULL for none.
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

		if (arm[i].result < 0)
			continue;
		if (!*link) {
			arm[i].result = short_of;
			continue;
		}
		t = llist_entry(*link, struct twheel_timeout, node);
		if (arm[i].interval_ns) {
			int err = twheel_periodic_provide(tw, timeout_index(t),
							  arming->nowait);

			if (err) {
				arm[i].result = err;
				continue;
			}
		}
		life = life_of(&tw->clock, &arm[i], now_ns);
		arming->keeps |= arm_place(&arm[i], t, &life);
		arming->due_ns = min(arming->due_ns, life_due_ns(&tw->clock, &life));
		link = &t->node.next;
	}
	place = *link;
	*link = NULL;
	return place;
}

/* Write the words of timeouts that have a place, before the user is told their ids. */
static noinline void arm_words(struct twheel_words *words, struct llist_node *chain)
{
	struct twheel_timeout *t;

	rcu_read_lock();
	llist_for_each_entry(t, chain, node)
		word_begin(words, t, atomic64_read(&t->state), t->deadline_ns);
	rcu_read_unlock();
}

/* Give back a chain of places that are free or NEW: their timeouts were not published. */
static void arm_undo(struct twheel *tw, struct llist_node *chain)
{
	struct ending ending = {};
	struct twheel_timeout *t, *next;

	llist_for_each_entry_safe(t, next, chain, node) {
		u64 state = atomic64_read(&t->state);

		/*
		 * G8: the user may have been told this id, so the place must not reuse
		 * it.  If the place had an entry, that is stale now.
		 */
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

/*
 * Take what @nr timeouts need: that they may pend, room in the wheel, and places, which are
 * put into the chain @first.  Returns for how many there is all of it, and if these are fewer,
 * @short_of says why.
 */
static __always_inline unsigned int arm_take(struct twheel *tw, unsigned int nr, bool nowait,
					     struct llist_node **first, int *short_of)
{
	struct llist_node **tail = first;
	unsigned int got, taken;
	int err;

	*first = NULL;
	*short_of = -EAGAIN;
	/* max_pending is exact: a timeout counts before it has a place. */
	got = live_take(&tw->arena, nr);
	if (!got)
		return 0;
	/* G4 nothing lost: the wheel's room is promised while ARM can still refuse. */
	err = room_take_at_hand(&tw->room, got) ? 0 :
	      nowait ? -EAGAIN :
	      twheel_room_take_reclaiming(tw, got);
	if (err) {
		twheel_live_give(tw, got);
		*short_of = err;
		return 0;
	}
	taken = places_pop(&tw->arena, got, &tail);
	err = -EAGAIN;
	if (unlikely(taken < got) && !nowait)
		taken += twheel_places_wait(tw, got - taken, &tail, &err);
	*tail = NULL;
	if (taken < got) {
		room_give(&tw->room, got - taken);
		twheel_live_give(tw, got - taken);
		*short_of = err;
	}
	return taken;
}

/* twheel_arm_prepare() for a number of entries that may be a constant. */
static __always_inline int arm_prepare(struct twheel *tw,
				       struct twheel_arm *arm, unsigned int nr,
				       struct twheel_arming *arming)
{
	unsigned int i, got, nr_valid = nr;
	u64 now_ns, oddities = 0;
	int err, short_of;

	arming->due_ns = WAKE_NEVER;
	arming->keeps = false;
	for (i = 0; i < nr; i++) {
		oddities |= life_oddities(&arm[i]);
		arm[i].result = TWHEEL_CREATED;
	}
	for (i = 0; i < nr && oddities; i++) {
		err = life_check(&arm[i], tw->keys.used ? ARM_IF | ARM_ONLY : 0);
		if (err) {
			arm[i].result = err;
			nr_valid--;
		}
	}
	err = arm_allowed(tw, nr_valid, arming->nowait);
	if (err)
		return err;
	now_ns = twheel_now(&tw->clock);

	got = arm_take(tw, nr_valid, arming->nowait, &arming->first, &short_of);
	arming->all = !oddities && got == nr;
	if (likely(arming->all)) {
		arm_place_once(tw, arm, nr, now_ns, arming);
	} else {
		struct llist_node *unused;

		unused = arm_place_any(tw, arm, nr, now_ns, arming, short_of);
		if (unused)
			arm_undo(tw, unused);
	}
	if (words_are_there(&tw->words))
		arm_words(&tw->words, arming->first);
	return 0;
}

/**
 * twheel_arm_prepare() - find places for a batch of timeouts
 * @tw: the wheel
 * @arm: the batch; out: each entry's result, TWHEEL_CREATED or an errno, and its id if it
 *	has not been refused
 * @nr: number of entries, 1 to TWHEEL_BATCH
 * @arming: in: whether the call may sleep; out: the places, for twheel_arm_commit()
 *
 * Context: process; sleeps unless @arming says otherwise; no lock of the wheel may be
 * held.
 * Return: 0 when the results say which entries can be armed; twheel_arm_commit() has to
 * follow then.  Otherwise no entry can be armed: -ESHUTDOWN when the wheel has been
 * drained, or, where the wheel has to be started first, -ENOMEM, -ENOSPC at the limit of
 * memory, -EINTR by a fatal signal, or -EAGAIN if the call may not sleep.
 */
int twheel_arm_prepare(struct twheel *tw, struct twheel_arm *arm,
		       unsigned int nr, struct twheel_arming *arming)
{
	return nr == 1 ? arm_prepare(tw, arm, 1, arming) :
			 arm_prepare(tw, arm, nr, arming);
}

/*
 * FREE or NEW, as is in @state --> QUEUED: from here on any thread may re-arm or cancel the
 * timeout.
 */
static __always_inline void arm_publish(struct twheel_timeout *t, u64 state)
{
	/*
	 * Pairs with the acquire in timeout_state(): the fields are there with the state.
	 * Test: litmus arm_publish
	 */
	atomic64_set_release(&t->state, state_published(state));
}

/*
 * FREE or NEW --> ARMED, if the place still has an entry in the wheel: G3, the
 * compare-and-swap decides between this and the kthread, which drops such entries.
 * Test: windows.timeout_expires_whose_place_loses_its_entry_meanwhile,
 * windows.timeout_armed_directly_expires_whose_place_loses_its_entry_meanwhile
 */
static __always_inline bool arm_publish_kept(struct twheel_timeout *t, u64 state)
{
	twheel_window(WINDOW_ARM_KEEPS);
	return state_change(t, state, state_deferred(state, 0));
}

/*
 * Publish those of the first @nr timeouts whose places still have an entry in the wheel,
 * and take them out of the chain.  Returns how many they were.
 *
 * The link of a place is read before its timeout is published, and not written after
 * that: the timeout may be cancelled at once, and its place used again.
 */
static noinline unsigned int chain_publish_kept(struct twheel_arming *arming, unsigned int nr)
{
	struct llist_node **link = &arming->first;
	unsigned int i, nr_kept = 0;

	for (i = 0; i < nr; i++) {
		struct twheel_timeout *t = llist_entry(*link, struct twheel_timeout, node);
		u64 state = atomic64_read(&t->state);
		struct llist_node *next = (*link)->next;

		if (likely(state_has_entry(state) && arm_publish_kept(t, state))) {
			*link = next;
			nr_kept++;
		} else {
			link = &(*link)->next;
		}
	}
	return nr_kept;
}

/*
 * Publish the first @nr timeouts of a chain of places.  Returns the place that follows.
 * The timeouts that have to go into the inbox are put into @queued.
 */
static __always_inline struct llist_node *chain_publish(struct twheel *tw,
							struct twheel_arming *arming,
							unsigned int nr,
							struct chain *queued)
{
	struct llist_node *node;
	unsigned int i;

	atomic64_add(nr, &tw->arena.armed);
	if (arming->keeps)
		nr -= chain_publish_kept(arming, nr);
	node = arming->first;
	queued->first = node;
	for (i = 0; i < nr; i++) {
		struct twheel_timeout *t = llist_entry(node, struct twheel_timeout, node);

		arm_publish(t, state_without_entry(atomic64_read(&t->state)));
		queued->last = node;
		node = node->next;
	}
	queued->nr = nr;
	return node;
}

/*
 * Publish the timeouts of a chain in a keyed wheel, until a key is not free.  G3: the key is
 * taken and the timeout published under one hold of keys.lock, so that another ARM finds
 * both or neither.
 */
static struct llist_node *chain_publish_keyed(struct twheel *tw,
					      struct twheel_arming *arming,
					      unsigned int *nr, struct chain *queued,
					      int *err)
{
	struct llist_node *rest;

	spin_lock(&tw->keys.lock);
	*nr = twheel_keys_take(tw, arming->first, *nr, err);
	rest = chain_publish(tw, arming, *nr, queued);
	spin_unlock(&tw->keys.lock);
	return rest;
}

/*
 * Put timeouts that were published into the inbox, and have the kthread run in time.
 * @nr_requeued is inbox.nr_requeued as it was before they were published.
 */
static __always_inline void arm_queue(struct twheel *tw, const struct chain *queued,
				      u64 due_ns, int nr_requeued)
{
	twheel_window(WINDOW_ARM_PUBLISHED);
	due_ns = inbox_add(&tw->inbox, queued, due_ns);
	twheel_window(WINDOW_ARM_ADDED);
	/*
	 * A timeout can be re-armed as soon as it is published, which is before it is in the
	 * inbox.  A REARM of a QUEUED timeout relies on the inbox: it only has the kthread run
	 * in time.  That pass may be over before the timeout was added, and @due_ns is that of
	 * the life before.  Therefore REARM counts such calls, and if the count has moved since
	 * the beginning, a pass is asked for at once.
	 *
	 * Each side has a full barrier between its store and its load, here in
	 * llist_add_batch(), there in atomic_inc_return(): either this sees the new count, or
	 * the pass that REARM asks for finds the timeout.  Test: litmus requeued
	 */
	if (atomic_read(&tw->inbox.nr_requeued) != nr_requeued)
		due_ns = WAKE_NOW;
	if (wake_is_too_late(&tw->wake, due_ns))
		twheel_wake_for(tw, due_ns);
}

/*
 * twheel_arm_commit() for a number of timeouts that may be a constant, and
 * twheel_arm_commit_keyed() with @nr_armed.
 */
static __always_inline int arm_commit(struct twheel *tw,
				      struct twheel_arming *arming,
				      unsigned int nr, unsigned int *nr_armed)
{
	struct llist_node *rest;
	struct chain queued = {};
	int nr_requeued = atomic_read(&tw->inbox.nr_requeued);
	int err = 0;

	/*
	 * G3 exactly one outcome: synchronize_rcu() in twheel_drain() waits for this
	 * section.  So either the timeouts are in the inbox or in the wheel when the
	 * draining pass begins, or draining is seen here and they are not armed.
	 * Test: windows.drain_finds_what_arm_is_about_to_publish,
	 * windows.drain_finds_what_arm_has_yet_to_add_to_the_inbox
	 */
	rcu_read_lock();
	if (READ_ONCE(tw->control.draining)) {
		err = -ESHUTDOWN;
		nr = 0;
	}
	twheel_window(WINDOW_ARM_CHECKED);
	if (nr_armed && nr)
		rest = chain_publish_keyed(tw, arming, &nr, &queued, &err);
	else
		rest = chain_publish(tw, arming, nr, &queued);
	if (nr_armed)
		*nr_armed = nr;
	if (queued.nr)
		arm_queue(tw, &queued, arming->due_ns, nr_requeued);
	rcu_read_unlock();
	/* An entry in the wheel has its room. */
	room_give(&tw->room, nr - queued.nr);
	if (rest)
		arm_undo(tw, rest);
	return err;
}

/**
 * twheel_arm_commit() - publish the timeouts that were reported to the user
 * @tw: the wheel
 * @arming: as twheel_arm_prepare() left it; used up
 * @nr: publish the first @nr timeouts of the chain, and give the places of the others
 *	back
 *
 * Context: process; does not sleep; no lock of the wheel may be held.
 * Return: 0, or -ESHUTDOWN when DRAIN has begun meanwhile: no timeout of the batch is
 * armed, and all places are given back.
 */
int twheel_arm_commit(struct twheel *tw, struct twheel_arming *arming,
		      unsigned int nr)
{
	return nr == 1 ? arm_commit(tw, arming, 1, NULL) :
			 arm_commit(tw, arming, nr, NULL);
}

/**
 * struct direct - what arming a batch directly leaves to be done; a local variable
 * @queued: timeouts to be put into the inbox
 * @due_ns: when the kthread has to look at the earliest of them
 * @nr_kept: how many timeouts are ARMED, with the entries of their places
 */
struct direct {
	struct chain queued;
	u64 due_ns;
	unsigned int nr_kept;
};

/*
 * Tell and arm the entries of a batch, which have no oddities, until one cannot be told without
 * a fault; returns how many.  @place is a chain of as many places; out: those that are left.
 *
 * Until it is told, an entry is armed by nobody, and as soon as it is, nothing keeps it from
 * being armed: draining was looked at before, in the same RCU read section.
 */
static __always_inline unsigned int
tell_and_arm(struct twheel *tw, struct twheel_arm *arm, struct twheel_arm __user *user,
	     struct llist_node **place, unsigned int nr, u64 now_ns, struct direct *direct)
{
	struct llist_node *node = *place, *next;
	unsigned int i = 0;

	if (!tell_begin(user, nr * sizeof(*user)))
		return 0;
	if (!tell_probe(&user[0].result, &user[nr - 1].result))
		goto end;
	for (; i < nr; i++, node = next) {
		struct twheel_timeout *t = llist_entry(node, struct twheel_timeout, node);
		struct life life = life_once(&arm[i], now_ns);
		u64 state = atomic64_read(&t->state);

		/* Read the link first: if the place's entry will do, the place is let go of. */
		next = node->next;
		life_begin(t, &life);
		WRITE_ONCE(t->user_data, arm[i].user_data);
		/* The user may store into the word as soon as the id is known. */
		if (words_are_there(&tw->words))
			word_begin(&tw->words, t, state, life.deadline_ns);
		if (unlikely(!tell_id(timeout_id(t, state), &user[i].id) ||
			     !tell(TWHEEL_CREATED, &user[i].result))) {
			/* G8: the user may have the id, so arm_undo() must not reuse it. */
			atomic64_set(&t->state, state_new(state, 0));
			break;
		}
		twheel_window(WINDOW_ARM_DIRECT);
		if (entry_will_do(t, state, &life) && likely(arm_publish_kept(t, state))) {
			direct->nr_kept++;
			continue;
		}
		/* If the place had an entry, that is stale now, or the kthread has taken it. */
		arm_publish(t, state_new(state, life.flags));
		/* Until it is in the inbox, nobody frees a place that is QUEUED or DEAD. */
		chain_add(&direct->queued, t);
		direct->due_ns = min(direct->due_ns, life_due_ns(&tw->clock, &life));
	}
end:
	tell_end();
	*place = node;
	return i;
}

/* twheel_arm_directly() for a number of entries that may be a constant. */
static __always_inline unsigned int
arm_directly(struct twheel *tw, struct twheel_arm *arm, struct twheel_arm __user *user,
	     unsigned int nr, unsigned int *nr_ok)
{
	struct direct direct = { .due_ns = WAKE_NEVER };
	unsigned int done = 0, nr_plain = 0;
	struct llist_node *place;
	int short_of, nr_requeued;
	u64 now_ns;

	/* Once it has started, it stays a keyed one or stays none. */
	if (unlikely(!control_is_started(&tw->control) || tw->keys.used ||
		     READ_ONCE(tw->control.draining)))
		return 0;
	while (nr_plain < nr && !life_oddities(&arm[nr_plain]))
		nr_plain++;
	if (unlikely(!nr_plain))
		return 0;
	now_ns = twheel_now(&tw->clock);
	/* Where there is no memory, twheel_arm_prepare() waits for it, and not both of them. */
	nr = min(nr, arm_take(tw, nr_plain, READ_ONCE(tw->room.short_of), &place, &short_of));
	if (unlikely(!nr))
		return 0;
	nr_requeued = atomic_read(&tw->inbox.nr_requeued);
	/*
	 * G3: as in arm_commit().  Test: litmus drain_arm_directly,
	 * windows.drain_finds_what_arm_is_about_to_publish_directly,
	 * windows.drain_finds_what_arm_has_yet_to_add_to_the_inbox_directly
	 */
	rcu_read_lock();
	if (likely(!READ_ONCE(tw->control.draining))) {
		twheel_window(WINDOW_ARM_CHECKED);
		done = tell_and_arm(tw, arm, user, &place, nr, now_ns, &direct);
		atomic64_add(done, &tw->arena.armed);
		if (direct.queued.nr)
			arm_queue(tw, &direct.queued, direct.due_ns, nr_requeued);
	}
	rcu_read_unlock();
	/* An entry in the wheel has its room. */
	room_give(&tw->room, direct.nr_kept);
	if (unlikely(place))
		arm_undo(tw, place);
	*nr_ok += done;
	return done;
}

/**
 * twheel_arm_directly() - tell the user the ids of a batch, and arm its timeouts, one by one
 * @tw: the wheel
 * @arm: the batch
 * @user: the same entries in the user's memory
 * @nr: number of entries, 1 to TWHEEL_BATCH
 * @nr_ok: the number of timeouts that were armed is added to it
 *
 * It ends at an entry that is not as usual: it asks for more than a deadline, or there is no
 * place or no memory for it, or its results cannot be written without a fault.  A wheel that has
 * not started, has keys or is being drained has no usual entry.
 *
 * Context: process; sleeps; no lock of the wheel may be held.
 * Return: the number of entries that are done.  The others are for twheel_arm_prepare().
 */
unsigned int twheel_arm_directly(struct twheel *tw, struct twheel_arm *arm,
				 struct twheel_arm __user *user, unsigned int nr,
				 unsigned int *nr_ok)
{
	return nr == 1 ? arm_directly(tw, arm, user, 1, nr_ok) :
			 arm_directly(tw, arm, user, nr, nr_ok);
}

/**
 * twheel_arm_commit_keyed() - publish timeouts of a keyed wheel whose keys were free
 * @tw: the wheel
 * @arming: as twheel_arm_prepare() left it; used up
 * @nr: the number of timeouts that were reported to the user
 * @nr_armed: out: how many of them were published, from the first one on
 *
 * The places of all others are given back.
 *
 * Context: process; does not sleep; no lock of the wheel may be held.
 * Return: 0 if all were published.  Otherwise the reason why the next one was not:
 *
 * * -EEXIST when a live timeout has its key by now: the caller has to look again
 * * -ENOMEM when the index cannot take its key
 * * -ESHUTDOWN when DRAIN has begun meanwhile; none was published then
 */
int twheel_arm_commit_keyed(struct twheel *tw, struct twheel_arming *arming,
			    unsigned int nr, unsigned int *nr_armed)
{
	return arm_commit(tw, arming, nr, nr_armed);
}
