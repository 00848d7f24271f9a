// SPDX-License-Identifier: GPL-2.0
/*
 * Access to the entries of a user's vector
 *
 * Locks: none.
 */
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/uaccess.h>

#include "access.h"

/**
 * twheel_access_copy_in() - copy entries in, one by one
 * @entries: where to
 * @size: size of an entry there
 * @user: the entries, in the user's memory
 * @stride: how far apart they are, and how long each is
 * @nr: how many
 *
 * What a shorter entry leaves out is zero.
 *
 * Context: process; sleeps.
 * Return: how many were copied; the next one cannot be read.
 */
unsigned int twheel_access_copy_in(void *entries, size_t size, const void __user *user,
				   u32 stride, unsigned int nr)
{
	size_t known = min_t(size_t, stride, size);
	unsigned int i;

	for (i = 0; i < nr; i++, entries += size, user += stride) {
		memset(entries + known, 0, size - known);
		if (copy_from_user(entries, user, known))
			break;
	}
	return i;
}
