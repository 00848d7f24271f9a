// SPDX-License-Identifier: GPL-2.0
/*
 * Elements of another size than this kernel's, see user_access.h
 */
#include <linux/minmax.h>
#include <linux/string.h>

#include "user_access.h"

/* Copy elements in one by one; members that a shorter element leaves out are zero. */
unsigned int twheel_access_copy_each(void *elements, size_t size, const void __user *user,
				     u32 stride, unsigned int nr)
{
	size_t known = min_t(size_t, stride, size);
	unsigned int i;

	for (i = 0; i < nr; i++, elements += size, user += stride) {
		memset(elements + known, 0, size - known);
		if (copy_from_user(elements, user, known))
			break;
	}
	return i;
}
