// SPDX-License-Identifier: GPL-2.0
/* lib_moved.c - one count of struct twheel_stats, without the walk that counts those pending */
#include "lib_moved.h"
#include "wheel.h"

uint64_t lib_moved(const struct twheel *w)
{
	return w->stats.moved;
}
