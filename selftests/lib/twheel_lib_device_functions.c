// SPDX-License-Identifier: GPL-2.0
/* twheel_lib_device.c by the functions of the library: nothing is inline. */
#define TWHEEL_NO_INLINE

#include "twheel_lib_device.c"
