// SPDX-License-Identifier: GPL-2.0
/*
 * Room in the wheel, and the sweep that keeps stale entries few
 *
 * G4 nothing lost: every entry that the kthread inserts was promised here, while the caller
 * could still be refused.  There is one entry for each pending timeout, one for each periodic
 * timeout whose event waits to be read, and one for each stale entry until it is dropped.
 *
 * Locks: room.mutex for growing and shrinking, a mutex because it allocates and charges.
 * The kthread only tries it.  Nothing but what the allocator takes is taken under it.
 */
#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/prefetch.h>
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

/* Entries of room that are provided beyond what is asked for. */
#define ROOM_AHEAD		32

/* A gift is linked by what will be its link in the wheel. */
static_assert(offsetof(struct twheel_chunk_page, node.next) == 0);

/**
 * twheel_room_init() - begin without room
 * @room: what the wheel has room for
 *
 * Context: any.
 */
void twheel_room_init(struct twheel_room *room)
{
	mutex_init(&room->mutex);
	init_llist_head(&room->gifts);
}

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

static int room_provide(struct twheel *tw)
{
	int err = 0;

	if (mutex_lock_killable(&tw->room.mutex))
		return -EINTR;
	while (!err && atomic_long_read(&tw->room.used) > tw->room.provided) {
		long room = atomic_long_read(&tw->room.used) + ROOM_AHEAD;

		if (tw->room.nr_chunk_pages < twheel_wheel_pages_for(&tw->wheel, room))
			err = chunks_add(tw);
		else
			/* Never less: who takes room has no lock. */
			WRITE_ONCE(tw->room.provided, max(room, tw->room.provided));
	}
	if (err) {
		/* What there is may suffice, with nothing in reserve. */
		long room = atomic_long_read(&tw->room.used);

		if (twheel_wheel_pages_for(&tw->wheel, room) <= tw->room.nr_chunk_pages) {
			WRITE_ONCE(tw->room.provided, max(room, tw->room.provided));
			err = 0;
		}
	}
	WRITE_ONCE(tw->room.short_of, err);
	mutex_unlock(&tw->room.mutex);
	return err;
}

/**
 * twheel_room_take() - take room in the wheel
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
 * twheel_room_take_reclaiming() - take room in the wheel, which others may have to give back first
 * @tw: the wheel
 * @nr: entries
 *
 * Where there is no memory for more room, a pass gives back the room of timeouts that were
 * cancelled in the inbox, and that of stale entries.
 *
 * Context: process; sleeps.
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
 * twheel_gifts_accept() - give the wheel the pages of chunks that were allocated for it
 * @tw: the wheel
 *
 * Context: the kthread within a pass, since nobody else may use the wheel; and the last
 * close.
 */
void twheel_gifts_accept(struct twheel *tw)
{
	struct llist_node *node, *next;
	unsigned int nr = 0;

	llist_for_each_safe(node, next, llist_del_all(&tw->room.gifts)) {
		twheel_wheel_give(&tw->wheel, (struct twheel_chunk_page *)node);
		if (++nr % KTHREAD_BATCH == 0)
			cond_resched();
	}
}

static bool sweep_is_due(struct twheel *tw)
{
	s64 live = atomic_read(&tw->arena.live);

	/* Who is starved waits for this pass. */
	if (READ_ONCE(tw->room.starved)) {
		WRITE_ONCE(tw->room.starved, false);
		return room_is_wasted(&tw->room, &tw->arena, 0);
	}
	/* Now and then, before places are given back, fewer will do. */
	if (tw->shrink.due && !tw->shrink.running &&
	    atomic_long_read(&tw->room.used) > live + live / 4 + ROOM_SLACK / 4)
		return true;
	return room_is_wasted(&tw->room, &tw->arena, SWEEP_SLACK);
}

/**
 * twheel_sweep() - drop stale entries where they are too many
 * @tw: the wheel
 * @budget: of the turn
 *
 * G7 cost does not grow: a pass sweeps at least twice as many entries as it inserted, so the
 * stale entries cannot outgrow the sweep.
 *
 * Context: the kthread within a pass; sleeps.
 * Return: false when the turn's budget ran out before that of the pass.
 */
bool twheel_sweep(struct twheel *tw, struct budget *budget)
{
	struct twheel_timeout *t[TWHEEL_CHUNK_ENTRIES] __uninitialized;
	struct twheel_chunk *chunk;
	unsigned int i, nr_stale;

	if (!tw->pass.sweeping) {
		if (!sweep_is_due(tw))
			return true;
		twheel_wheel_sweep_begin(&tw->wheel);
		tw->pass.sweeping = true;
	}
	while (tw->pass.sweep_left > 0) {
		if (budget_is_spent(budget))
			return false;
		chunk = twheel_wheel_sweep(&tw->wheel);
		if (!chunk) {
			tw->pass.sweeping = false;
			break;
		}
		nr_stale = 0;
		spin_lock(&tw->events.lock);
		/* All of them are fetched before the first is looked at. */
		for (i = 0; i < chunk->nr; i++) {
			t[i] = entry_timeout(&tw->arena, &chunk->entry[i]);
			prefetch(t[i]);
		}
		for (i = 0; i < chunk->nr; i++) {
			if (entry_lives(&chunk->entry[i], t[i]))
				twheel_wheel_keep(&tw->wheel, chunk->entry[i]);
			else
				nr_stale++;
		}
		spin_unlock(&tw->events.lock);
		room_give(&tw->room, nr_stale);
		tw->pass.sweep_left -= chunk->nr;
		budget_spend(budget, chunk->nr);
		twheel_wheel_swept(&tw->wheel, chunk);
		cond_resched();
	}
	return true;
}

/*
 * How much room in the wheel is enough, when @used is in use: the same when it is not
 * too much.  In the usual course much may come back soon.
 */
static long room_enough(const struct twheel *tw, long used)
{
	if (tw->room.provided / 2 > used + SWEEP_SLACK)
		return used + used / 2 + SWEEP_SLACK;
	if (tw->shrink.due && tw->room.provided > used + used / 4 + ROOM_SLACK / 2)
		return used + used / 8 + ROOM_AHEAD;
	return tw->room.provided;
}

/**
 * twheel_room_shrink() - give back pages of chunks
 * @tw: the wheel
 *
 * Context: the kthread within a pass; sleeps.
 * Return: true when there are more to be given back.
 */
bool twheel_room_shrink(struct twheel *tw)
{
	unsigned int nr = TURN_BUDGET / TWHEEL_CHUNK_ENTRIES / TWHEEL_CHUNKS_PER_PAGE;
	struct twheel_chunk_page *page = NULL;
	long room, enough;
	u64 need;

	/* Who holds it is adding. */
	if (!mutex_trylock(&tw->room.mutex))
		return false;
	/* G4: what is given back is more than enough only with these in the pool. */
	twheel_gifts_accept(tw);
	room = tw->room.provided;
	enough = room_enough(tw, atomic_long_read(&tw->room.used));
	if (enough < room) {
		WRITE_ONCE(tw->room.provided, enough);
		/* Pairs with atomic_long_add_return() in twheel_room_take(). */
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
	cond_resched();
	return page;
}
