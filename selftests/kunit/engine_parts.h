/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of the engine, compiled into one file as they are: their transitions are
 * static.
 */
#ifdef TWHEEL_WINDOWS
#include "../../engine/window.c"
#endif
#include "../../engine/user.c"
#include "../../engine/memory.c"
#include "../../engine/pages.c"
#include "../../engine/clock.c"
#include "../../engine/wake.c"
#include "../../engine/words.c"
#include "../../engine/arena.c"
#include "../../engine/keys.c"
#include "../../engine/room.c"
#include "../../engine/refresh.c"
#include "../../engine/shrink.c"
#include "../../engine/ending.c"
#include "../../engine/periods.c"
#include "../../engine/events.c"
#include "../../engine/pass.c"
#include "../../engine/control.c"
#include "../../engine/arm.c"
#include "../../engine/cancel.c"
#include "../../engine/rearm.c"
#include "../../engine/query.c"
#include "../../twheel_main.c"
