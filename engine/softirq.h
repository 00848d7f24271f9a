/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The softirq: what is done when the alarm rings
 */
#ifndef _TWHEEL_ENGINE_SOFTIRQ_H
#define _TWHEEL_ENGINE_SOFTIRQ_H

struct twheel;

void twheel_softirq_start(struct twheel *tw);

#endif /* _TWHEEL_ENGINE_SOFTIRQ_H */
