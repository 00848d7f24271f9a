/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ioctls of /dev/twheel: what their files share, and what twheel_chardev.c calls
 */
#ifndef _TWHEEL_IOCTL_H
#define _TWHEEL_IOCTL_H

#include <linux/compiler_types.h>
#include <linux/types.h>

struct twheel;

/*
 * The sizes of the first release.  They are accepted for ever, and whatever a caller of
 * that release leaves out counts as zero.  A structure that grows keeps its first size
 * here; only the assertion below gets the new one.
 */
#define SETUP_SIZE_FIRST	56
#define INFO_SIZE_FIRST		504
#define VECTOR_SIZE_FIRST	32
#define ARM_SIZE_FIRST		56
#define CANCEL_SIZE_FIRST	16
#define STATUS_SIZE_FIRST	72
#define LIST_SIZE_FIRST		40
#define ADVANCE_SIZE_FIRST	16

/* twheel_copy.c */
int twheel_arg_copy_in(void *to, size_t known, size_t first, const void __user *arg);

/* twheel_vectors.c */
long twheel_arm_ioctl(struct twheel *tw, void __user *arg);
long twheel_rearm_ioctl(struct twheel *tw, void __user *arg);
long twheel_cancel_ioctl(struct twheel *tw, void __user *arg);
long twheel_query_ioctl(struct twheel *tw, void __user *arg);

/* twheel_ioctl.c */
bool twheel_ioctl_waits(unsigned int cmd);
long twheel_ioctl(struct twheel *tw, fmode_t mode, unsigned int cmd, void __user *arg);

#endif /* _TWHEEL_IOCTL_H */
