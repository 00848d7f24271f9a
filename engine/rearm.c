// SPDX-License-Identifier: GPL-2.0
/*
 * REARM: look, and begin new lives for timeouts once the user has been told
 *
 * See look.h for the sequence.  twheel_rearm_directly() makes one step of it as long as all
 * is as usual.  G7 cost does not grow: a timeout that moves later keeps its entry in the
 * wheel.  The entry comes up early, and the kthread then moves it to where the deadline says.
 * A timeout that is due before its entry comes up, and one whose event was unread, goes
 * through the inbox again; an old entry stays behind in the wheel and is dropped as stale.
 *
 * G4 nothing lost: room in the wheel for new entries is taken before the user is told,
 * while REARM can still refuse.
 *
 * Locks: events.lock for the commit of a batch, since it changes the fields of live
 * timeouts; for a moment also in the look.  After it, wake.lock if the kthread has to run
 * earlier.  To take room, or memory for periods: room.mutex or arena.mutex, and wake.lock
 * to ask for a pass that gives room back.  Each is taken while no other is held.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/twheel.h>
#include <linux/types.h>

#include "arena.h"
#include "clock.h"
#include "control.h"
#include "engine.h"
#include "events.h"
#include "inbox.h"
#include "life.h"
#include "look.h"
#include "periods.h"
#include "room.h"
#include "slack.h"
#include "tell.h"
#include "timeout.h"
#include "twheel.h"
#include "wake.h"
#include "window.h"
#include "words.h"

/*
 * Whether a timeout in the state @seen keeps its entry in the wheel when it is re-armed:
 * it has one that comes up when the new life is due, or before.
 *
 * Under events.lock, what is read here may be of another life only if the timeout was
 * cancelled; then the state is no longer @seen, and the caller's state_change() fails.
 * Without the lock, the answer is a guess: the kthread may move the entry and leave the
 * state as it is.
 */
static inline bool entry_stays(const struct twheel_clockwork *clock,
			       const struct twheel_timeout *t, u64 seen,
			       const struct life *life)
{
	return state_is_armed(seen) && !state_is_overdue(life->flags) &&
	       timeout_due_ns(clock, life->flags, life->deadline_ns) >= READ_ONCE(t->entry_ns);
}

/*
 * Whether re-arming takes room for an entry in the wheel.  A timeout whose entry would come
 * up too late needs it for a new entry, because the old one stays there, stale.  A
 * one-shot whose event is unread needs it because its entry is gone.  A timeout in the
 * inbox has room, and a periodic timeout keeps its room while its event is unread.
 */
static inline bool rearm_needs_room(const struct twheel_clockwork *clock,
				    const struct twheel_timeout *t, u64 seen,
				    const struct life *life)
{
	return !entry_stays(clock, t, seen, life) && !state_is_queued(seen) &&
	       !state_keeps_room(seen);
}

/* rearm_needs_room() for an entry of the vector. */
static noinline bool rearm_is_needy(const struct twheel_clockwork *clock,
				    const struct twheel_timeout *t, u64 seen,
				    const struct twheel_arm *arm, u64 now_ns)
{
	struct life life = life_of(clock, arm, now_ns);

	return rearm_needs_room(clock, t, seen, &life);
}

/* rearm_take_room() takes a mask with a bit for each entry of a batch. */
static_assert(TWHEEL_BATCH <= 32);

/*
 * Take room for the entries in the mask @needy.  Where there is less room than that, the
 * last of these entries are refused.
 */
static noinline void rearm_take_room(struct twheel *tw, struct twheel_arm *arm,
				     struct twheel_rearming *rearming, u32 needy)
{
	unsigned int nr_needy = hweight32(needy), left;
	int err;

	if (rearming->nowait)
		err = room_take_at_hand(&tw->room, nr_needy) ? 0 : -EAGAIN;
	else
		err = twheel_room_take_reclaiming(tw, nr_needy);
	if (likely(!err)) {
		rearming->nr_room = nr_needy;
		return;
	}
	/* There is not enough for all of them at once: take it one by one. */
	while (rearming->nr_room < nr_needy &&
	       (rearming->nowait ? room_take_at_hand(&tw->room, 1) :
				   !twheel_room_take(tw, 1)))
		rearming->nr_room++;
	left = rearming->nr_room;
	for (; needy; needy &= needy - 1) {
		if (left)
			left--;
		else
			arm[__ffs(needy)].result = err;
	}
}

/*
 * The deadline that ARM and REARM compare with, and that ARM in a keyed wheel tells: the
 * one in force, or the latest one that has expired where the event is unread.  The caller
 * holds events.lock, or is in an RCU read section and the timeout pends.
 */
static inline u64 rearm_was_deadline_ns(struct twheel *tw, const struct twheel_timeout *t,
					u64 seen)
{
	u64 deadline_ns = timeout_deadline_ns(&tw->words, t, timeout_index(t), seen);

	if (state_is_unread(seen) && state_is_periodic(seen))
		deadline_ns += twheel_periods_unread(&tw->clock, t, seen) *
			       timeout_periodic(t)->interval_ns[timeout_slot(t)];
	return min(deadline_ns, TWHEEL_TIME_NEVER);
}

/* Whether a condition of an entry keeps it from being re-armed: 0, or -ERANGE. */
static inline int rearm_compare(const struct twheel_arm *arm, u64 now_ns)
{
	u64 deadline_ns = arm_deadline_ns(arm, now_ns);

	if (likely(!(arm->flags & ARM_ONLY)))
		return 0;
	if (arm->flags & TWHEEL_ARM_ONLY_LATER)
		return deadline_ns <= arm->was_deadline_ns ? -ERANGE : 0;
	return deadline_ns >= arm->was_deadline_ns ? -ERANGE : 0;
}

/* rearm_was_deadline_ns() of an event, whose periods are counted under events.lock. */
static noinline u64 rearm_was_expired_ns(struct twheel *tw, const struct twheel_timeout *t,
					 u64 seen)
{
	u64 deadline_ns = 0;

	spin_lock(&tw->events.lock);
	if (atomic64_read(&t->state) == seen)
		deadline_ns = rearm_was_deadline_ns(tw, t, seen);
	spin_unlock(&tw->events.lock);
	return deadline_ns;
}

/*
 * Find the deadline that an entry replaces, and refuse the entry if its conditions are not
 * met.  What is found may be out of date: the commit compares it under events.lock.  The
 * caller is in an RCU read section.
 */
static __always_inline int rearm_look_closely(struct twheel *tw, struct twheel_arm *arm,
					      const struct twheel_timeout *t, u64 seen,
					      u64 now_ns)
{
	arm->was_deadline_ns = likely(state_is_pending(seen)) ?
			       rearm_was_deadline_ns(tw, t, seen) :
			       rearm_was_expired_ns(tw, t, seen);
	return rearm_compare(arm, now_ns);
}

/*
 * Find the timeout of an entry without oddities, and the verdict on it.  The caller is in an
 * RCU read section.
 */
static __always_inline int rearm_look(struct twheel *tw, const struct twheel_arm *arm,
				      struct twheel_rearming *rearming, unsigned int i)
{
	struct twheel_look *look = &rearming->look;

	look->timeout[i] = timeout_look(tw, arm->id, &look->state[i]);
	return likely(look->timeout[i]) ? (int)state_verdict(look->state[i]) : -ENOENT;
}

/* The same for an entry of any kind. */
static noinline int rearm_look_odd(struct twheel *tw, struct twheel_arm *arm,
				   struct twheel_rearming *rearming, unsigned int i)
{
	struct twheel_look *look = &rearming->look;
	int err, verdict;

	err = life_check(arm, ARM_ONLY | (rearming->upsert ? ARM_IF : 0));
	if (err)
		return err;
	verdict = rearm_look(tw, arm, rearming, i);
	if (verdict > 0 && arm->interval_ns) {
		/*
		 * This may sleep.  The page of the timeout may be freed meanwhile, and
		 * another one may come in its place; then the timeout has ended, and
		 * commit finds that out by its state.
		 */
		rcu_read_unlock();
		err = twheel_periodic_provide(tw, id_index(arm->id), rearming->nowait);
		rcu_read_lock();
		look->timeout[i] = timeout_at(&tw->arena, id_index(arm->id));
		if (!look->timeout[i])
			return -ENOENT;
		if (err)
			return err;
	}
	if (verdict > 0 && (rearming->upsert || arm->flags & ARM_ONLY)) {
		rearming->exact = true;
		err = rearm_look_closely(tw, arm, look->timeout[i], look->state[i],
					 rearming->now_ns);
	}
	return err ?: verdict;
}

/*
 * twheel_rearm_prepare().  With @upsert, the entries are those of an ARM in a keyed wheel,
 * and have the ids of the timeouts that were found to have the keys.
 */
static __always_inline int rearm_prepare(struct twheel *tw, struct twheel_arm *arm,
					 struct twheel_rearming *rearming,
					 unsigned int nr, bool upsert)
{
	struct twheel_look *look = &rearming->look;
	bool scarce = false;
	unsigned int i;
	u32 needy = 0;

	rearming->nr_room = 0;
	rearming->upsert = upsert;
	rearming->exact = upsert;
	if (READ_ONCE(tw->control.draining))
		return -ESHUTDOWN;
	/*
	 * Most entries need no room.  Taking room for all of them, and giving it back
	 * later, is cheaper than finding out which entries do.  Only when memory is short
	 * is room taken just for the entries that need it.
	 */
	if (likely(control_is_started(&tw->control))) {
		scarce = !room_take_at_hand(&tw->room, nr) &&
			 (READ_ONCE(tw->room.short_of) || rearming->nowait ||
			  twheel_room_take(tw, nr));
		if (likely(!scarce))
			rearming->nr_room = nr;
	}
	rearming->now_ns = twheel_now(&tw->clock);
	rcu_read_lock();
	look_begin(&tw->arena, look);
	for (i = 0; i < nr; i++) {
		arm[i].result = upsert || unlikely(life_oddities(&arm[i])) ?
				rearm_look_odd(tw, &arm[i], rearming, i) :
				rearm_look(tw, &arm[i], rearming, i);
		if (unlikely(scarce) && arm[i].result > 0 &&
		    rearm_is_needy(&tw->clock, look->timeout[i], look->state[i], &arm[i],
				   rearming->now_ns))
			needy |= BIT(i);
	}
	rcu_read_unlock();
	if (unlikely(needy))
		rearm_take_room(tw, arm, rearming, needy);
	return 0;
}

/**
 * twheel_rearm_prepare() - find the timeouts of a batch, and the verdict on each
 * @tw: the wheel
 * @arm: the batch; out: each entry's result
 * @rearming: in: whether the call may sleep; out: the timeouts, their states and the room
 *	taken, for twheel_rearm_commit()
 * @nr: number of entries, 1 to TWHEEL_BATCH
 *
 * No timeout is changed.  A result is the outcome that twheel_rearm_commit() brings
 * about, or an errno.
 *
 * Context: process; sleeps unless @rearming says otherwise; no lock of the wheel may be
 * held.
 * Return: 0, and then twheel_rearm_commit() has to follow, for it gives unused room back;
 * or -ESHUTDOWN when the wheel has been drained.
 */
int twheel_rearm_prepare(struct twheel *tw, struct twheel_arm *arm,
			 struct twheel_rearming *rearming, unsigned int nr)
{
	return rearm_prepare(tw, arm, rearming, nr, false);
}

/**
 * twheel_upsert_prepare() - twheel_rearm_prepare() for ARM in a keyed wheel
 * @tw: the wheel
 * @arm: the batch, with the ids of the timeouts that have the keys; out: each entry's
 *	result, and its was_deadline_ns
 * @rearming: in and out: as for twheel_rearm_prepare()
 * @nr: number of entries, 1 to TWHEEL_BATCH
 *
 * Context: process; sleeps unless @rearming says otherwise; no lock of the wheel may be
 * held.
 * Return: as for twheel_rearm_prepare().
 */
int twheel_upsert_prepare(struct twheel *tw, struct twheel_arm *arm,
			  struct twheel_rearming *rearming, unsigned int nr)
{
	return rearm_prepare(tw, arm, rearming, nr, true);
}

/**
 * struct requeue - what a batch leaves to be done for timeouts that need a new entry; a
 *	local variable
 * @chain: timeouts to be put into the inbox
 * @due_ns: when the kthread has to look at the earliest of the batch
 * @nr_room: room that was taken for their entries, and is left
 * @queued: a timeout was QUEUED and stays where it is, in the inbox or on its way there
 */
struct requeue {
	struct chain chain;
	u64 due_ns;
	unsigned int nr_room;
	bool queued;
};

/* A timeout that was @seen is QUEUED now, and the kthread has to look at it at @due_ns. */
static __always_inline void requeue_note(struct requeue *requeue, struct twheel_timeout *t,
					 u64 seen, u64 due_ns)
{
	requeue->due_ns = min(requeue->due_ns, due_ns);
	if (state_is_queued(seen)) {
		requeue->queued = true;
		return;
	}
	chain_add(&requeue->chain, t);
	if (!state_keeps_room(seen))
		requeue->nr_room--;
}

/*
 * Put the timeouts into the inbox, release the lock, wake the kthread if need be, and give back
 * the room that is left.
 */
static noinline void requeue_finish(struct twheel *tw, struct requeue *requeue)
	__releases(&tw->events.lock)
{
	u64 due_ns = inbox_add(&tw->inbox, &requeue->chain, requeue->due_ns);

	spin_unlock(&tw->events.lock);
	twheel_window(WINDOW_REARM_LEFT);
	/*
	 * A full barrier before at_ns is read; pairs with arm_queue(), which says why.
	 * Test: litmus requeued, wake_requeued
	 */
	if (requeue->queued)
		atomic_inc_return(&tw->inbox.nr_requeued);
	twheel_window(WINDOW_REARM_COUNTED);
	if (wake_is_too_late(&tw->wake, due_ns))
		twheel_wake_for(tw, due_ns);
	room_give(&tw->room, requeue->nr_room);
}

/*
 * Whether a timeout is re-armed as a one-shot without slack in the usual case: it is ARMED,
 * and its entry comes up by the new deadline.
 */
static __always_inline bool can_defer(const struct twheel_timeout *t, u64 seen, u64 deadline_ns)
{
	return state_is_armed(seen) && deadline_ns >= READ_ONCE(t->entry_ns);
}

/*
 * Re-arm a timeout that pends as a one-shot without slack.  @stays says whether it keeps its
 * entry.  G7: then only its fields change, and the entry is moved when it comes up, or when
 * the kthread looks ahead.  False if the timeout is no longer as @seen.
 */
static __always_inline bool timeout_move(struct twheel *tw, struct twheel_timeout *t,
					 u64 seen, u64 deadline_ns, bool stays)
	__must_hold(&tw->events.lock)
{
	const u64 flags = flags_once(false);

	if (!state_change(t, seen, state_rearming(seen)))
		return false;
	twheel_window(WINDOW_REARM_OWNED);
	if (words_are_there(&tw->words))
		word_begin(&tw->words, t, seen, deadline_ns);
	WRITE_ONCE(t->deadline_ns, deadline_ns);
	atomic64_set_release(&t->state, stays ? state_deferred(seen, flags) :
						state_requeued(seen, flags));
	return true;
}

/*
 * Begin a new life of any kind; false if the timeout is no longer as @seen.  @stays says
 * whether it keeps its entry.
 */
static bool timeout_rearm(struct twheel *tw, struct twheel_timeout *t, u64 seen,
			  const struct life *life, bool stays)
	__must_hold(&tw->events.lock)
{
	lockdep_assert_held(&tw->events.lock);
	/*
	 * G3 exactly one outcome.  An UNREAD timeout changes state only under
	 * events.lock; a pending one may be cancelled without it, so the compare-and-swap
	 * decides.
	 */
	if (state_is_unread(seen)) {
		if (atomic64_read(&t->state) != seen)
			return false;
		twheel_event_take(tw, t, seen);
	} else if (!state_change(t, seen, state_rearming(seen))) {
		return false;
	}
	twheel_window(WINDOW_REARM_OWNED);
	if (words_are_there(&tw->words))
		word_begin(&tw->words, t, seen, life->deadline_ns);
	life_begin(t, life);
	atomic64_set_release(&t->state, stays ? state_deferred(seen, life->flags) :
						state_requeued(seen, life->flags));
	return true;
}

/*
 * Whether there is room for the new entry of a timeout that was @seen.  Where room has to be
 * taken, it is taken for @nr entries, as many as may follow in the batch.
 */
static __always_inline bool requeue_has_room(struct twheel *tw, struct requeue *requeue,
					     u64 seen, unsigned int nr)
{
	if (state_is_queued(seen) || requeue->nr_room)
		return true;
	if (!room_take_at_hand(&tw->room, nr))
		return false;
	requeue->nr_room = nr;
	return true;
}

/*
 * Tell and re-arm the entries of a batch from entry @i on, until one is not as usual; returns
 * the entry after those that are done.  @place are the places that the ids name.  Without
 * @requeue, only what keeps its entry in the wheel is as usual.
 */
static __always_inline unsigned int
tell_and_rearm(struct twheel *tw, struct twheel_arm *arm, struct twheel_arm __user *user,
	       struct twheel_timeout **place, unsigned int i, unsigned int nr, u64 now_ns,
	       unsigned int *told, struct requeue *requeue)
	__must_hold(&tw->events.lock)
{
	*told = i;
	if (!tell_begin(&user[i], (nr - i) * sizeof(*user)))
		return i;
	if (!tell_probe(&user[i].result, &user[nr - 1].result))
		goto end;
	for (; i < nr; i++) {
		u64 seen, deadline_ns = arm_deadline_ns(&arm[i], now_ns);
		struct twheel_timeout *t = place[i];
		bool stays;

		if (unlikely(!t || life_oddities(&arm[i]) || deadline_ns <= now_ns ||
			     !timeout_has_id(t, arm[i].id, &seen)))
			break;
		stays = can_defer(t, seen, deadline_ns);
		if (unlikely(!stays) &&
		    !(requeue && state_is_pending(seen) &&
		      requeue_has_room(tw, requeue, seen, nr - i)))
			break;
		arm[i].result = TWHEEL_WAS_PENDING;
		if (unlikely(!tell(arm[i].result, &user[i].result)))
			break;
		twheel_window(WINDOW_REARM_DIRECT);
		if (unlikely(!timeout_move(tw, t, seen, deadline_ns, stays))) {
			tell_end();
			*told = i + 1;
			return i;
		}
		if (!stays)
			requeue_note(requeue, t, seen, deadline_ns);
	}
end:
	tell_end();
	*told = i;
	return i;
}

/*
 * Go on with entry @i of a batch: timeouts may also go into the inbox.  It is not inlined, so
 * that what moves later goes by the shorter loop.
 */
static noinline unsigned int
requeue_directly(struct twheel *tw, struct twheel_arm *arm, struct twheel_arm __user *user,
		 struct twheel_timeout **place, unsigned int i, unsigned int nr, u64 now_ns,
		 unsigned int *told)
	__releases(&tw->events.lock)
{
	struct requeue requeue = { .due_ns = WAKE_NEVER };
	unsigned int told_before = *told, from = i;

	i = tell_and_rearm(tw, arm, user, place, i, nr, now_ns, told, &requeue);
	*told = max(*told, told_before);
	tw->events.rearmed += i - from;
	requeue_finish(tw, &requeue);
	return i;
}

/* twheel_rearm_directly() for a number of entries that may be a constant. */
static __always_inline unsigned int
rearm_directly(struct twheel *tw, struct twheel_arm *arm, struct twheel_arm __user *user,
	       unsigned int nr, unsigned int *told, unsigned int *nr_ok)
{
	struct twheel_timeout *place[TWHEEL_BATCH] __uninitialized;
	u64 now_ns = twheel_now(&tw->clock);
	unsigned int i;

	/*
	 * The lock counts as an RCU read section.  So pages that are found stay, and G3: a
	 * DRAIN that is not seen here finds the timeouts in the wheel, or in the inbox.
	 * Test: windows.drain_finds_what_rearm_is_about_to_move_directly,
	 * windows.drain_finds_what_rearm_is_about_to_requeue_directly,
	 * windows.rearm_directly_is_refused_from_the_beginning_of_a_drain
	 */
	spin_lock(&tw->events.lock);
	if (unlikely(READ_ONCE(tw->control.draining))) {
		spin_unlock(&tw->events.lock);
		*told = 0;
		return 0;
	}
	places_fetch(&tw->arena, &arm->id, sizeof(*arm), nr, place);
	i = tell_and_rearm(tw, arm, user, place, 0, nr, now_ns, told, NULL);
	tw->events.rearmed += i;
	if (likely(i == nr))
		spin_unlock(&tw->events.lock);
	else
		i = requeue_directly(tw, arm, user, place, i, nr, now_ns, told);
	*nr_ok += i;
	return i;
}

/**
 * twheel_rearm_directly() - tell the user the verdicts of a batch, and re-arm, one by one
 * @tw: the wheel
 * @arm: the batch; out: the result of each entry that the user was told of
 * @user: the same entries in the user's memory
 * @nr: number of entries, 1 to TWHEEL_BATCH
 * @told: out: the number of entries that the user was told of
 * @nr_ok: the number of timeouts that were re-armed is added to it
 *
 * It ends at an entry that is not as usual: it asks for more than a deadline to come, or its
 * timeout does not pend, or has changed since the user was told, or needs room that is not
 * at hand, or a result cannot be written without a fault.  A wheel that is being drained has
 * no usual entry.
 *
 * Context: process; does not sleep; no lock of the wheel may be held.
 * Return: the number of entries that are done.  The others are for twheel_rearm_prepare().
 */
unsigned int twheel_rearm_directly(struct twheel *tw, struct twheel_arm *arm,
				   struct twheel_arm __user *user, unsigned int nr,
				   unsigned int *told, unsigned int *nr_ok)
{
	return nr == 1 ? rearm_directly(tw, arm, user, 1, told, nr_ok) :
			 rearm_directly(tw, arm, user, nr, told, nr_ok);
}

/* Re-arm a timeout in any case; false to look again. */
static noinline bool rearm_any(struct twheel *tw, const struct twheel_arm *arm,
			       struct twheel_timeout *t, u64 seen, u64 now_ns,
			       struct requeue *requeue)
	__must_hold(&tw->events.lock)
{
	struct life life = life_of(&tw->clock, arm, now_ns);
	bool stays = entry_stays(&tw->clock, t, seen, &life);

	/*
	 * twheel_rearm_prepare() took no room for this timeout, since it would have kept
	 * its entry.  The kthread has moved the entry meanwhile, and now it would not.
	 */
	if (!requeue->nr_room && rearm_needs_room(&tw->clock, t, seen, &life))
		return false;
	if (!timeout_rearm(tw, t, seen, &life, stays))
		return false;
	if (!stays)
		requeue_note(requeue, t, seen, life_due_ns(&tw->clock, &life));
	return true;
}

/*
 * Whether the deadline of a timeout is the one that rearm_look_closely() has found.  Another
 * REARM may have moved it, and left the state as it was, or brought it back to what it was.
 * The periods of an unread event pass by themselves, and may pass faster than they are
 * reported: any of its deadlines that had passed will do.
 */
static bool rearm_is_as_seen(struct twheel *tw, const struct twheel_arm *arm,
			     const struct twheel_timeout *t, u64 seen)
	__must_hold(&tw->events.lock)
{
	if (atomic64_read(&t->state) != seen)
		return false;
	if (state_is_unread(seen) && state_is_periodic(seen))
		return arm->was_deadline_ns >=
		       timeout_deadline_ns(&tw->words, t, timeout_index(t), seen);
	return rearm_was_deadline_ns(tw, t, seen) == arm->was_deadline_ns;
}

/*
 * Re-arm the timeouts of a batch, until one is no longer as it was seen; returns how many
 * entries are done.  With @exact, the deadline has to be as it was seen, too, also that of
 * an entry that was refused for it: an entry before it may name the same timeout.
 */
static __always_inline unsigned int
rearm_each(struct twheel *tw, const struct twheel_arm *arm,
	   struct twheel_rearming *rearming, unsigned int nr,
	   struct requeue *requeue, unsigned int *nr_rearmed, bool exact)
	__must_hold(&tw->events.lock)
{
	struct twheel_look *look = &rearming->look;
	u64 now_ns = rearming->now_ns;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct twheel_timeout *t = look->timeout[i];
		u64 deadline_ns, seen = look->state[i];

		if (arm[i].result < 0 && !(exact && arm[i].result == -ERANGE))
			continue;
		if (unlikely(!t))
			break;
		if (exact && (rearming->upsert || arm[i].flags & ARM_ONLY) &&
		    !rearm_is_as_seen(tw, &arm[i], t, seen))
			break;
		if (exact && arm[i].result < 0)
			continue;
		deadline_ns = arm_deadline_ns(&arm[i], now_ns);
		if (likely(!(arm[i].interval_ns | arm[i].slack_ticks) &&
			   deadline_ns > now_ns && can_defer(t, seen, deadline_ns) &&
			   timeout_move(tw, t, seen, deadline_ns, true)) ||
		    rearm_any(tw, &arm[i], t, seen, now_ns, requeue))
			++*nr_rearmed;
		else
			break;
	}
	return i;
}

/**
 * twheel_rearm_commit() - re-arm the timeouts whose verdicts were reported to the user
 * @tw: the wheel
 * @arm: the batch as twheel_rearm_prepare() left it
 * @rearming: as twheel_rearm_prepare() left it; used up
 * @nr: number of entries that were reported
 * @nr_ok: the number of timeouts that were re-armed is added to it
 *
 * Context: process; does not sleep; no lock of the wheel may be held.
 * Return: the number of entries that are done.  If it is less than @nr, the timeout of
 * the next entry is no longer as it was seen: the caller has to prepare again from that
 * entry on.  -ESHUTDOWN when DRAIN has begun meanwhile and nothing was done.
 */
int twheel_rearm_commit(struct twheel *tw, const struct twheel_arm *arm,
			struct twheel_rearming *rearming, unsigned int nr,
			unsigned int *nr_ok)
{
	struct requeue requeue = { .due_ns = WAKE_NEVER, .nr_room = rearming->nr_room };
	struct twheel_look *look = &rearming->look;
	unsigned int i = 0, nr_rearmed = 0;

	/*
	 * G3: synchronize_rcu() in twheel_drain() waits for this section, and so the
	 * draining pass finds in the inbox all that is put there here.
	 * Test: windows.drain_finds_what_rearm_is_about_to_move
	 */
	rcu_read_lock();
	if (READ_ONCE(tw->control.draining)) {
		rcu_read_unlock();
		room_give(&tw->room, requeue.nr_room);
		return -ESHUTDOWN;
	}
	twheel_window(WINDOW_REARM_CHECKED);
	spin_lock(&tw->events.lock);
	if (unlikely(!look_is_good(&tw->arena, look)))
		for (i = 0; i < nr; i++)
			look->timeout[i] = timeout_at(&tw->arena, id_index(arm[i].id));
	i = unlikely(rearming->exact) ?
	    rearm_each(tw, arm, rearming, nr, &requeue, &nr_rearmed, true) :
	    rearm_each(tw, arm, rearming, nr, &requeue, &nr_rearmed, false);
	tw->events.rearmed += nr_rearmed;
	requeue_finish(tw, &requeue);
	rcu_read_unlock();
	*nr_ok += nr_rearmed;
	return i;
}
