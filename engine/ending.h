/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Finishing a batch of timeouts that have ended
 */
#ifndef _TWHEEL_ENGINE_ENDING_H
#define _TWHEEL_ENGINE_ENDING_H

struct ending;
struct twheel;

void twheel_live_give(struct twheel *tw, unsigned int nr);
void twheel_ending_done(struct twheel *tw, struct ending *ending);

#endif /* _TWHEEL_ENGINE_ENDING_H */
