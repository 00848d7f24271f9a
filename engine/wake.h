/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Readers and pollers wait, and are woken
 */
#ifndef _TWHEEL_ENGINE_WAKE_H
#define _TWHEEL_ENGINE_WAKE_H

#include <linux/poll.h>
#include <linux/types.h>

struct twheel;

void twheel_wake_for_events(struct twheel *tw, unsigned int nr);
void twheel_wake_for_room(struct twheel *tw);

#endif /* _TWHEEL_ENGINE_WAKE_H */
