/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sync points: places between two steps whose order matters, where a test can hold a thread while
 * other threads go on
 *
 * They exist only if the module is built with TWHEEL_SYNCPOINTS=1, as for the kernels that tests
 * are debugged on; in any other build twheel_syncpoint() is empty.  A sync point may be open under
 * any lock and in any context but hard interrupts.
 *
 * The step that must come first stands before its sync point, and the other step after it.  If a
 * change swaps the two, the test that holds a thread there sees what the swap breaks.
 */
#ifndef _TWHEEL_ENGINE_SYNCPOINT_H
#define _TWHEEL_ENGINE_SYNCPOINT_H

enum twheel_syncpoint {
	/* ARM has copied out the ids, and has yet to submit the timeouts. */
	SYNC_ARM_COPIED,
	/* ARM has found that the wheel is not draining, and has yet to add to the inbox. */
	SYNC_ARM_CHECKED,
	/* ARM has added to the inbox, and has yet to try the lock. */
	SYNC_ARM_ADDED,
	/* The lock is taken, and the inbox is empty. */
	SYNC_LOCKED,
	/* The lock is released, and the inbox was not read yet. */
	SYNC_UNLOCKED,
	/* A new page of places is in the table, and no thread can take its places yet. */
	SYNC_PAGE_ADDED,
	/* A page was found to lack its struct twheel_extra, and places.mutex is not taken yet. */
	SYNC_EXTRA_NONE,
	/* A reader has seen how many events there are, and has yet to read their size. */
	SYNC_EVENTS_COUNTED,
	/* read() has seen whether the wheel is drained, and has yet to see any event. */
	SYNC_READ_DRAINED,
	/* poll() has queued, and has yet to read the state. */
	SYNC_POLL_QUEUED,
	/* poll() has seen whether the wheel is drained, and has yet to see any event. */
	SYNC_POLL_DRAINED,
	/* Events were added, and waiters were not woken yet. */
	SYNC_EVENTS_ADDED,
	/* Places are free, and no poller was woken for EPOLLOUT yet. */
	SYNC_PLACES_FREED,
	/* A page of words is in its table, and the old one still mapped. */
	SYNC_WORDS_SET,
	/* A page fault has found a page in the table, and has yet to lock the page. */
	SYNC_WORDS_FOUND,
	/* A page fault has checked the table, and has yet to map the page. */
	SYNC_WORDS_LOCKED,
	/* A wheel's configuration is complete, and started is not set yet. */
	SYNC_START,
	NR_SYNCPOINTS,
};

#ifdef TWHEEL_SYNCPOINTS
void twheel_syncpoint(enum twheel_syncpoint point);
void twheel_syncpoints_init(void);
void twheel_syncpoints_exit(void);
#else
static inline void twheel_syncpoint(enum twheel_syncpoint point)
{
}

static inline void twheel_syncpoints_init(void)
{
}

static inline void twheel_syncpoints_exit(void)
{
}
#endif

#endif /* _TWHEEL_ENGINE_SYNCPOINT_H */
