/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ioctls of /dev/twheel, for twheel_chardev.c
 */
#ifndef _TWHEEL_IOCTL_H
#define _TWHEEL_IOCTL_H

#include <linux/compiler_types.h>

struct twheel;

long twheel_ioctl(struct twheel *tw, unsigned int cmd, void __user *arg);

#endif /* _TWHEEL_IOCTL_H */
