/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of the engine, compiled into one file unchanged: many of their functions are static.
 */
#ifdef TWHEEL_SYNCPOINTS
#include "../syncpoints/syncpoint.c"
#endif
#include "../../engine/user_access.c"
#include "../../engine/account.c"
#include "../../engine/pages.c"
#include "../../engine/time.c"
#include "../../engine/lock.c"
#include "../../engine/refresh.c"
#include "../../engine/keys.c"
#include "../../engine/places.c"
#include "../../engine/expire.c"
#include "../../engine/alarm.c"
#include "../../engine/run.c"
#include "../../engine/control.c"
#include "../../engine/arm.c"
#include "../../engine/cancel.c"
#include "../../engine/rearm.c"
#include "../../engine/read.c"
#include "../../engine/query.c"
#include "../../twheel_main.c"
