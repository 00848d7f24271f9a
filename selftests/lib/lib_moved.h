/* SPDX-License-Identifier: GPL-2.0 */
/* One count of struct twheel_stats, without the walk that counts those pending. */
#ifndef LIB_MOVED_H
#define LIB_MOVED_H

#include <stdint.h>

struct twheel;

uint64_t lib_moved(const struct twheel *w);

#endif /* LIB_MOVED_H */
