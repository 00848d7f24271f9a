/* SPDX-License-Identifier: MIT */
/*
 * options.h - structures of options, which begin with their size and grow at their end
 */
#ifndef _TWHEEL_OPTIONS_H
#define _TWHEEL_OPTIONS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Copy the options; what the caller knows beyond their size here has to be 0.
 * @known: that size, which is the one of the first release; @from: NULL for all 0.
 */
static inline int options_copy(void *to, size_t known, const void *from)
{
	const unsigned char *bytes = (const unsigned char *)from;
	uint32_t size, i;

	memset(to, 0, known);
	if (!from)
		return 0;
	memcpy(&size, from, sizeof(size));
	if (size < known)
		return -EINVAL;
	for (i = (uint32_t)known; i < size; i++)
		if (bytes[i])
			return -E2BIG;
	memcpy(to, from, known);
	return 0;
}

#endif /* _TWHEEL_OPTIONS_H */
