/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The refresh table as users map it
 */
#ifndef _TWHEEL_ENGINE_REFRESH_H
#define _TWHEEL_ENGINE_REFRESH_H

struct twheel;

void twheel_refresh_shrink(struct twheel *tw);

#endif /* _TWHEEL_ENGINE_REFRESH_H */
