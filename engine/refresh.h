/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The refresh table as users map it
 */
#ifndef _TWHEEL_ENGINE_REFRESH_H
#define _TWHEEL_ENGINE_REFRESH_H

struct mutex;
struct twheel;
struct twheel_words;

void twheel_refresh_shrink(struct twheel *tw);
void twheel_refresh_begin(struct twheel_words *words, struct mutex *mutex);

#endif /* _TWHEEL_ENGINE_REFRESH_H */
