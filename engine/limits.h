/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine's measures that several files or their tests go by: how much the kthread does at a
 * time, how much waits for it, and how much waste counts
 *
 * Each other measure stands with the code or the structure that it belongs to, that of a user's
 * batch in include/twheel.h.
 */
#ifndef _TWHEEL_ENGINE_LIMITS_H
#define _TWHEEL_ENGINE_LIMITS_H

/* When this many timeouts wait in the inbox, the kthread is woken for them. */
#define INBOX_WATERMARK		8192

/* The kthread works on this many entries under one hold of events.lock. */
#define KTHREAD_BATCH		64

/* After this many entries of one wheel, other wheels have a turn (G2): see user.c. */
#define TURN_BUDGET		4096

/* A sweep is not worth its cost for fewer stale entries than this. */
#define SWEEP_SLACK		4096

/* Fewer free places, or less unused room in the wheel, are not worth giving back. */
#define FREE_SLACK		512
#define ROOM_SLACK		512

/*
 * While pages are given back, a step looks at about this many places, or pages of words, under
 * one hold of a lock.
 */
#define SHRINK_STEP	KTHREAD_BATCH

#endif /* _TWHEEL_ENGINE_LIMITS_H */
