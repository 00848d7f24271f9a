/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Time namespaces: processes whose clocks are ahead of others
 */
#ifndef TWHEEL_NAMESPACE_H
#define TWHEEL_NAMESPACE_H

#include "twheel_test.h"

#include <sched.h>

/* Children of this process will live in another time namespace, it does not.  0, or -errno. */
static inline int tw_namespace_for_children(const char *clock, int ahead_s)
{
	char offset[64];
	int fd, len, ret = 0;

	if (unshare(CLONE_NEWTIME))
		return -errno;
	len = snprintf(offset, sizeof(offset), "%s %d 0\n", clock, ahead_s);
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, offset, len) != len)
		ret = -errno;
	close(fd);
	return ret;
}

/* INFO's clock is this process' own. */
static inline bool tw_clock_is_ours(int fd, clockid_t clockid)
{
	__u64 before_ns = tw_now(clockid);
	struct twheel_info info;

	return !tw_info(fd, &info) && before_ns <= info.now_ns && info.now_ns <= tw_now(clockid);
}

#endif /* TWHEEL_NAMESPACE_H */
