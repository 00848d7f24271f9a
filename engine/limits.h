/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The measures of the engine: how much of something is too much
 */
#ifndef _TWHEEL_ENGINE_LIMITS_H
#define _TWHEEL_ENGINE_LIMITS_H

/* Timeouts that may wait in the inbox before the kthread is woken for them. */
#define INBOX_WATERMARK		8192

/* Entries that the kthread takes at a time, under one hold of the lock. */
#define KTHREAD_BATCH		64

/* Entries that a wheel may do before other wheels have a turn, see user.c. */
#define TURN_BUDGET		4096

/* Stale entries that are not worth a sweep at once. */
#define SWEEP_SLACK		4096

/* Free places, and unused room in the wheel, that are not worth giving back. */
#define FREE_SLACK		512
#define ROOM_SLACK		512

/* Places that are looked at in a step of giving them back, under one hold of a lock. */
#define SHRINK_STEP	KTHREAD_BATCH

#endif /* _TWHEEL_ENGINE_LIMITS_H */
