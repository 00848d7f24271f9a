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
#ifndef _TWHEEL_ENGINE_WINDOW_H
#define _TWHEEL_ENGINE_WINDOW_H

enum twheel_window {
	/* ARM has found that the wheel is not draining, and has yet to publish. */
	WINDOW_ARM_CHECKED,
	/* ARM has told the user of one entry, and has yet to publish its timeout. */
	WINDOW_ARM_DIRECT,
	/* ARM has found that a place has an entry, and has yet to use it. */
	WINDOW_ARM_KEEPS,
	/* ARM has published its timeouts, and has yet to add them to the inbox. */
	WINDOW_ARM_PUBLISHED,
	/* ARM has added to the inbox, and has yet to see when the kthread runs. */
	WINDOW_ARM_ADDED,
	/* A new page is in the table, and its places are not on the free list yet. */
	WINDOW_ARENA_GROWN,
	/* A page was added, and shrink.below does not tell so yet. */
	WINDOW_ARENA_ADDED,
	/* A page was found without periodic fields, and arena.mutex is not taken yet. */
	WINDOW_PERIODIC_NONE,
	/* CANCEL has told the user, and has yet to enter its RCU section. */
	WINDOW_CANCEL_TOLD,
	/* CANCEL has told the user of one entry, and has yet to change its state. */
	WINDOW_CANCEL_DIRECT,
	/* CANCEL has found its pointers good, and has yet to use them. */
	WINDOW_CANCEL_GOOD,
	/* REARM has found that the wheel is not draining, and has yet to go on. */
	WINDOW_REARM_CHECKED,
	/* REARM has told the user of one entry, and has yet to change its state. */
	WINDOW_REARM_DIRECT,
	/* REARM has made a timeout REARMING, and has yet to write its fields. */
	WINDOW_REARM_OWNED,
	/* REARM has left a timeout in the inbox, and has yet to count that. */
	WINDOW_REARM_LEFT,
	/* REARM has counted that, and has yet to see when the kthread runs. */
	WINDOW_REARM_COUNTED,
	/* CANCEL or REARM has read nr_removed, and has yet to find its timeouts. */
	WINDOW_LOOK_BEGUN,
	/* A reader has seen how many events there are, and has yet to read their size. */
	WINDOW_EVENTS_COUNTED,
	/* A reader has copied events, and has yet to take them off the list. */
	WINDOW_READ_COPIED,
	/* A reader has found whether the wheel is draining, and has yet to go on. */
	WINDOW_READ_CHECKED,
	/* read() has seen whether the wheel is drained, and has yet to see any event. */
	WINDOW_READ_DRAINED,
	/* A reader that waits has found that it is not asked, and has yet to see any event. */
	WINDOW_WAIT_UNASKED,
	/* poll() has queued, and has yet to look. */
	WINDOW_POLL_QUEUED,
	/* poll() has seen whether the wheel is drained, and has yet to see any event. */
	WINDOW_POLL_DRAINED,
	/* A pass has set at_ns to WAKE_NEVER, and has yet to empty the inbox. */
	WINDOW_PASS_NOTED,
	/* A pass has emptied the inbox, and has yet to accept chunks. */
	WINDOW_PASS_EMPTIED,
	/* A pass has read the link of an arrival, and has yet to let go of it. */
	WINDOW_PASS_LINK,
	/* A pass has seen the state of an arrival, and has yet to change it. */
	WINDOW_PASS_ENTERS,
	/* A pass has seen that a timeout is due, and has yet to change its state. */
	WINDOW_PASS_EXPIRES,
	/* A place has kept an entry that was taken out, and has yet to lose it. */
	WINDOW_PASS_CLAIMS,
	/* A pass has made a timeout REARMING, and has yet to write its deadline. */
	WINDOW_PASS_POSTPONES,
	/* A pass has seen a timeout that DRAIN left, and has yet to change its state. */
	WINDOW_PASS_DRAINS,
	/* A pass has added events, and has yet to wake waiters. */
	WINDOW_PASS_EXPIRED,
	/* A pass has drained the wheel, and has yet to say so. */
	WINDOW_PASS_EMPTY,
	/* A pass has said that the wheel is drained, and has yet to wake waiters. */
	WINDOW_PASS_DRAINED,
	/* A pass has counted itself, and has yet to wake those that wait for it. */
	WINDOW_PASS_COUNTED,
	/* A thread has found the wheel open, and has yet to set the alarm. */
	WINDOW_ALARM,
	/* A wheel is off its user's queue, and its turn has not begun. */
	WINDOW_TURN,
	/* Timeouts count no longer, and nobody was woken for EPOLLOUT yet. */
	WINDOW_LIVE_GIVEN,
	/* ARM has looked keys up, and has yet to go on by what it found. */
	WINDOW_KEYS_LOOKED,
	/* ARM has found the node of a timeout that has ended, and has yet to replace it. */
	WINDOW_KEYS_FOUND,
	/* Timeouts have ended, and their nodes are not out of the index yet. */
	WINDOW_KEYS_ENDED,
	/* Nodes are out of the index, and their places are not free yet. */
	WINDOW_KEYS_GIVEN,
	/* A sweep has taken entries out, and has yet to see which are stale. */
	WINDOW_SWEEP_TAKEN,
	/* Less room is provided, and room that was just taken is not seen yet. */
	WINDOW_ROOM_LOWERED,
	/* Giving memory back has begun, and the places were not counted yet. */
	WINDOW_SHRINK_BEGUN,
	/* A page is out of the table, and not counted as removed yet. */
	WINDOW_SHRINK_REMOVED,
	/* RCU has let go of pages, and they are not freed yet. */
	WINDOW_SHRINK_FREES,
	/* Giving memory back has ended, and new waste was not looked for yet. */
	WINDOW_SHRINK_ENDED,
	/* A larger table is filled, and not published yet. */
	WINDOW_TABLE_FILLED,
	/* A table was found, and its page was not read yet. */
	WINDOW_TABLE_FOUND,
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

#endif /* _TWHEEL_ENGINE_WINDOW_H */
