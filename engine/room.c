// SPDX-License-Identifier: GPL-2.0
/*
 * Room in the wheel, and the sweep that drops stale entries
 *
 * G4 nothing lost: before a timeout is armed, its caller takes room for one entry, and
 * can still be refused.  So the kthread finds a chunk for every entry that it inserts.  A
 * pending timeout has room for one entry, and so has a periodic timeout whose event waits
 * to be read.  An entry that is stale, or that a free place keeps, has its room until the
 * kthread drops it.
 *
 * Locks: room.mutex serialises adding and removing pages of chunks.  It is a mutex
 * because pages are allocated and charged under it.  The kthread only tries it, and none
 * of the engine's locks is taken under it.  A sweep holds events.lock for a chunk of
 * entries at a time, because a REARM that is going on would make a live entry look stale.
 * A caller waits for the kthread under neither.
 */
#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/stddef.h>
#include <linux/types.h>

#include "arena.h"
#include "budget.h"
#include "engine.h"
#include "limits.h"
#include "memory.h"
#include "room.h"
#include "timeout.h"
#include "twheel_wheel.h"
#include "wake.h"
#include "window.h"

/*
 * Room is provided for so many entries more than are in use: most callers then find it at
 * hand.
 */
#define ROOM_AHEAD		32
#define ROOM_AHEAD_MAX		2048

static long room_ahead(long used)
{
	return min(ROOM_AHEAD + used / 32, (long)ROOM_AHEAD_MAX);
}

/* A page of chunks has one link for the llist of gifts and for the wheel's free pages. */
static_assert(offsetof(struct twheel_chunk_page, node.next) == 0);

static int chunks_add(struct twheel *tw)
	__must_hold(&tw->room.mutex)
{
	void *page;
	int err = twheel_page_get(&tw->memory, &page);

	if (err)
		return err;
	llist_add(page, &tw->room.gifts);
	tw->room.nr_chunk_pages++;
	return 0;
}

/* Allocate chunks until they suffice for all room that was taken. */
static int room_provide(struct twheel *tw)
{
	int err = 0;

	if (mutex_lock_killable(&tw->room.mutex))
		return -EINTR;
	while (!err && atomic_long_read(&tw->room.used) > tw->room.provided) {
		long used = atomic_long_read(&tw->room.used);
		long room = used + room_ahead(used);

		if (tw->room.nr_chunk_pages < twheel_wheel_pages_for(&tw->wheel, room))
			err = chunks_add(tw);
		else
			/*
			 * Do not lower it: callers take room within it without the lock.
			 */
			WRITE_ONCE(tw->room.provided, max(room, tw->room.provided));
	}
	if (err) {
		/* The chunks may suffice for the caller, with less or nothing ahead. */
		long used = atomic_long_read(&tw->room.used), ahead = room_ahead(used);
		u64 nr_pages = tw->room.nr_chunk_pages;

		while (ahead && twheel_wheel_pages_for(&tw->wheel, used + ahead) > nr_pages)
			ahead /= 2;
		if (twheel_wheel_pages_for(&tw->wheel, used + ahead) <= nr_pages) {
			WRITE_ONCE(tw->room.provided, max(used + ahead, tw->room.provided));
			err = 0;
		}
	}
	WRITE_ONCE(tw->room.short_of, err);
	mutex_unlock(&tw->room.mutex);
	return err;
}

/**
 * twheel_room_take() - take room in the wheel, and add chunks if it needs them
 * @tw: the wheel
 * @nr: entries
 *
 * Context: process; sleeps.
 * Return: 0, -ENOMEM, -ENOSPC at the limit of memory, or -EINTR by a fatal signal.
 */
int twheel_room_take(struct twheel *tw, unsigned int nr)
{
	int err;

	if (atomic_long_add_return(nr, &tw->room.used) <= READ_ONCE(tw->room.provided))
		return 0;
	err = room_provide(tw);
	if (err)
		room_give(&tw->room, nr);
	return err;
}

/**
 * twheel_room_take_reclaiming() - take room, and reclaim some if there is no memory
 * @tw: the wheel
 * @nr: entries
 *
 * If there is no memory for more chunks, the caller waits for a pass.  The pass gives
 * back the room of timeouts that were cancelled in the inbox, and that of the entries that
 * it sweeps: those that are stale, and those of free places.
 *
 * Context: process; sleeps; under none of the engine's locks.
 * Return: 0, -ENOMEM, -ENOSPC at the limit of memory, or -EINTR by a fatal signal.
 */
int twheel_room_take_reclaiming(struct twheel *tw, unsigned int nr)
{
	int err = twheel_room_take(tw, nr);

	if (likely(!err) || err == -EINTR)
		return err;
	WRITE_ONCE(tw->room.starved, true);
	return twheel_pass_wait_killable(tw) ?: twheel_room_take(tw, nr);
}

/**
 * twheel_gifts_accept() - hand the wheel the pages of chunks that were allocated for it
 * @tw: the wheel
 *
 * Context: the kthread within a pass, since no other thread may use the wheel; or the
 * last close.  Sleeps.
 */
void twheel_gifts_accept(struct twheel *tw)
{
	struct llist_node *node, *next;
	unsigned int nr = 0;

	llist_for_each_safe(node, next, llist_del_all(&tw->room.gifts)) {
		twheel_wheel_give(&tw->wheel, (struct twheel_chunk_page *)node);
		if (++nr % KTHREAD_BATCH == 0)
			turn_yield(tw->pass.by_waiter);
	}
}

/*
 * Return whether there are so many stale entries that a sweep is due.  All entries beyond
 * one for each place are stale, but for the few that are promised.  So about half of the
 * entries are stale here, and a sweep drops as many of them as it keeps.
 */
static bool room_is_wasted(const struct twheel *tw)
{
	return atomic_long_read(&tw->room.used) >
	       (s64)(2 * arena_size(&tw->arena)) + SWEEP_SLACK;
}

/*
 * Begin a sweep if one is due.
 *
 * A sweep spares the entries that free places keep.  It drops them, too, for a caller that
 * waits for room, and before pages are given back, when it is worth its cost for fewer
 * stale entries.  A sweep that spares them begins anew then.
 */
static void sweep_begin(struct twheel *tw)
{
	long used = atomic_long_read(&tw->room.used);
	s64 live = atomic_read(&tw->arena.live);
	bool all = false;

	if (tw->pass.sweeping && tw->pass.sweeps_all)
		return;
	/* The caller that has set it waits for this pass. */
	if (READ_ONCE(tw->room.starved)) {
		WRITE_ONCE(tw->room.starved, false);
		all = used > 2 * live;
	}
	if (READ_ONCE(tw->shrink.due) && !tw->shrink.running &&
	    used > live + live / 4 + ROOM_SLACK / 4)
		all = true;
	if (all || (!tw->pass.sweeping && room_is_wasted(tw))) {
		twheel_wheel_sweep_begin(&tw->wheel);
		tw->pass.sweeping = true;
		tw->pass.sweeps_all = all;
	}
}

/* Whether an entry stays in the wheel in a sweep. */
static inline bool entry_survives(struct twheel *tw, u32 seq, struct twheel_timeout *t)
	__must_hold(&tw->events.lock)
{
	u64 state = tw->pass.sweeps_all ? entry_claim(seq, t) : timeout_state_or_free(t);

	return entry_lives(seq, state) || entry_is_kept(seq, state);
}

/**
 * twheel_sweep() - drop stale entries if there are too many
 * @tw: the wheel
 * @budget: of the turn
 *
 * G7 cost does not grow: a pass sweeps at least twice as many entries as it has inserted,
 * so that stale entries cannot become more faster than the sweep drops them.
 *
 * Context: the kthread within a pass; sleeps.
 * Return: false when the turn's budget ran out before the sweep's share of this pass did.
 */
bool twheel_sweep(struct twheel *tw, struct budget *budget)
{
	struct twheel_timeout *t[TWHEEL_CHUNK_ENTRIES] __uninitialized;
	struct twheel_chunk *chunk;
	unsigned int i, nr, nr_left;

	sweep_begin(tw);
	while (tw->pass.sweeping && tw->pass.sweep_left > 0) {
		if (budget_is_spent(budget))
			return false;
		chunk = twheel_wheel_sweep(&tw->wheel);
		if (!chunk) {
			tw->pass.sweeping = false;
			break;
		}
		nr = chunk->nr;
		nr_left = 0;
		twheel_window(WINDOW_SWEEP_TAKEN);
		spin_lock(&tw->events.lock);
		entries_fetch(&tw->arena, chunk->entry, nr, t);
		for (i = 0; i < nr; i++)
			if (entry_survives(tw, chunk->entry[i].seq, t[i]))
				chunk->entry[nr_left++] = chunk->entry[i];
		spin_unlock(&tw->events.lock);
		chunk->nr = nr_left;
		twheel_wheel_put_back(&tw->wheel, chunk);
		room_give(&tw->room, nr - nr_left);
		tw->pass.sweep_left -= nr;
		budget_spend(budget, nr);
		turn_yield(tw->pass.by_waiter);
	}
	return true;
}

/*
 * Return how much room to keep when @used entries are in use: room.provided if that is
 * not too much.  After any pass, more than twice the room in use is too much, and a half
 * more is kept, since much of it may soon be needed again.  While memory is given back
 * (shrink.due), a quarter more is too much, and an eighth more is kept.
 */
static long room_enough(const struct twheel *tw, long used)
{
	if (tw->room.provided / 2 > used + SWEEP_SLACK)
		return used + used / 2 + SWEEP_SLACK;
	if (READ_ONCE(tw->shrink.due) && tw->room.provided > used + used / 4 + ROOM_SLACK / 2)
		return used + used / 8 + ROOM_AHEAD;
	return tw->room.provided;
}

/**
 * twheel_room_shrink() - free pages of chunks if there is far more room than is used
 * @tw: the wheel
 *
 * Frees as many pages at most as hold TURN_BUDGET entries.
 *
 * Context: the kthread within a pass; sleeps.
 * Return: true when there may be more pages to free.
 */
bool twheel_room_shrink(struct twheel *tw)
{
	unsigned int nr = TURN_BUDGET / TWHEEL_CHUNK_ENTRIES / TWHEEL_CHUNKS_PER_PAGE;
	struct twheel_chunk_page *page = NULL;
	long room, enough;
	u64 need;

	/* A thread that holds the mutex adds chunks.  Another pass will come. */
	if (!mutex_trylock(&tw->room.mutex))
		return false;
	/*
	 * G4 nothing lost: nr_chunk_pages counts the gifts as well.  If they were not
	 * accepted first, the pages that remain in the wheel might not suffice for the
	 * room that was taken.
	 */
	twheel_gifts_accept(tw);
	room = tw->room.provided;
	enough = room_enough(tw, atomic_long_read(&tw->room.used));
	if (enough < room) {
		WRITE_ONCE(tw->room.provided, enough);
		twheel_window(WINDOW_ROOM_LOWERED);
		/*
		 * Pairs with the full barrier of atomic_long_add_return() in
		 * twheel_room_take() and room_take_at_hand(): either the caller sees the
		 * lower value and comes for the mutex, or its room is counted here and
		 * the value goes up again.  Test: litmus room_take, room_at_hand
		 */
		smp_mb();
		if (atomic_long_read(&tw->room.used) > tw->room.provided)
			WRITE_ONCE(tw->room.provided, room);
	}
	need = twheel_wheel_pages_for(&tw->wheel, tw->room.provided);
	while (nr-- && tw->room.nr_chunk_pages > need &&
	       (page = twheel_wheel_take_back(&tw->wheel))) {
		twheel_page_put(&tw->memory, page);
		tw->room.nr_chunk_pages--;
	}
	mutex_unlock(&tw->room.mutex);
	turn_yield(tw->pass.by_waiter);
	return page;
}

/**
 * twheel_room_init() - prepare a wheel without room
 * @room: the wheel's
 *
 * Context: process, before the wheel is published.
 */
void twheel_room_init(struct twheel_room *room)
{
	mutex_init(&room->mutex);
	init_llist_head(&room->gifts);
}
