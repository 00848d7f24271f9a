// SPDX-License-Identifier: GPL-2.0
/*
 * Copying structures in whose size the caller names
 *
 * Locks: none, and none is held while user memory is copied.
 */
#include <linux/errno.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/uaccess.h>

#include "twheel.h"

/**
 * twheel_arg_copy_in() - copy the argument of an ioctl in, whose first member is its size
 * @to: out: the argument; members that the caller does not know are zero
 * @known: its size in this kernel, bytes
 * @first: its size in the first release, the smallest that was ever published
 * @arg: the user's pointer to it
 *
 * Context: process; sleeps.
 * Return: 0, -EINVAL for too small a size, -EFAULT, or -E2BIG for a size beyond TWHEEL_SIZE_MAX
 * and when the caller sets members that this kernel does not know.
 */
int twheel_arg_copy_in(void *to, size_t known, size_t first, const void __user *arg)
{
	u32 size;

	if (get_user(size, (const u32 __user *)arg))
		return -EFAULT;
	if (size < first)
		return -EINVAL;
	if (size > TWHEEL_SIZE_MAX)
		return -E2BIG;
	return copy_struct_from_user(to, known, arg, size);
}
