// SPDX-License-Identifier: GPL-2.0
/*
 * lib_plain.c - the functions of libtwheel that are inline elsewhere, called as functions
 */
#define TWHEEL_NO_INLINE
#include "lib_oracle.h"

void plain_init(struct twheel_timer *t, twheel_callback *callback)
{
	twheel_timer_init(t, callback);
}

void plain_start(struct twheel *w, struct twheel_timer *t, u64 delay_ns)
{
	twheel_start(w, t, delay_ns);
}

void plain_start_at(struct twheel *w, struct twheel_timer *t, u64 deadline_ns)
{
	twheel_start_at(w, t, deadline_ns);
}

bool plain_stop(struct twheel *w, struct twheel_timer *t)
{
	return twheel_stop(w, t);
}
