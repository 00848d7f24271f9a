/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Windows: places between the two steps of an order that matters, where a test can hold
 * a thread while other threads go on
 *
 * They are there only if the module is built with TWHEEL_WINDOWS=1, as it is for the
 * kernels that tests are debugged on.  In any other build twheel_window() is nothing.
 *
 * Each step that must come first stands before its window, and the other step after it.
 * So a change that swaps the two steps leaves them on both sides of the window, and the
 * test that holds a thread there sees what the swap breaks.
 *
 * Locks: none is taken here.  A window may be open under any lock and in any context but
 * hard interrupts.
 */
#ifndef _TWHEEL_ENGINE_SYNCPOINT_H
#define _TWHEEL_ENGINE_SYNCPOINT_H

enum twheel_window {
	/* ARM has told the user of its timeouts, and has yet to submit them. */
	WINDOW_ARM_TOLD,
	/* ARM has found that the wheel is not draining, and has yet to add to the inbox. */
	WINDOW_ARM_CHECKED,
	/* ARM has added to the inbox, and has yet to try the lock. */
	WINDOW_ARM_ADDED,
	/* The lock is taken, and nothing done yet. */
	WINDOW_LOCKED,
	/* The lock is released, and the inbox was not looked at yet. */
	WINDOW_UNLOCKED,
	/* A new page of places is in the table, and nobody can take its places yet. */
	WINDOW_PAGE_ADDED,
	/* A page was found without what odd timeouts need, and places.mutex is not taken yet. */
	WINDOW_EXTRA_NONE,
	/* A reader has seen how many events there are, and has yet to read their size. */
	WINDOW_EVENTS_COUNTED,
	/* read() has seen whether the wheel is drained, and has yet to see any event. */
	WINDOW_READ_DRAINED,
	/* poll() has queued, and has yet to look. */
	WINDOW_POLL_QUEUED,
	/* poll() has seen whether the wheel is drained, and has yet to see any event. */
	WINDOW_POLL_DRAINED,
	/* Events were added, and waiters were not woken yet. */
	WINDOW_EVENTS_ADDED,
	/* Places are free, and nobody was woken for EPOLLOUT yet. */
	WINDOW_PLACES_FREED,
	/* A page of words is in its table, and the old one still mapped. */
	WINDOW_WORDS_SET,
	/* A page fault has found a page in the table, and has yet to lock the page. */
	WINDOW_WORDS_FOUND,
	/* A page fault has checked the table, and has yet to map the page. */
	WINDOW_WORDS_LOCKED,
	/* A wheel's configuration is complete, and started does not tell so yet. */
	WINDOW_START,
	NR_WINDOWS,
};

#ifdef TWHEEL_WINDOWS
void twheel_window(enum twheel_window window);
void twheel_windows_init(void);
void twheel_windows_exit(void);
#else
static inline void twheel_window(enum twheel_window window)
{
}

static inline void twheel_windows_init(void)
{
}

static inline void twheel_windows_exit(void)
{
}
#endif

#endif /* _TWHEEL_ENGINE_SYNCPOINT_H */
