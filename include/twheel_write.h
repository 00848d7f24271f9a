/* SPDX-License-Identifier: GPL-2.0 */
/*
 * write(2) on /dev/twheel, for twheel_chardev.c
 */
#ifndef _TWHEEL_WRITE_H
#define _TWHEEL_WRITE_H

#include <linux/types.h>

struct iov_iter;
struct twheel;

ssize_t twheel_write(struct twheel *tw, struct iov_iter *from, bool nowait);

#endif /* _TWHEEL_WRITE_H */
