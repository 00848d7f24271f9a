/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * twheel: calls on one timeout, for programs
 *
 * ARM, REARM, CANCEL and QUERY take vectors.  These functions make a vector of one
 * entry.  Each returns the result of its entry: an enum twheel_verdict, 0 for QUERY,
 * or a negative errno, whether it was the call that failed or the entry.  What the
 * entries mean stands in <linux/twheel.h>.
 *
 * A program that has several timeouts to arm, to move or to cancel at a time saves
 * most of the cost by a vector of its own.
 */
#ifndef _UAPI_LINUX_TWHEEL_CALLS_H
#define _UAPI_LINUX_TWHEEL_CALLS_H

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include <linux/twheel.h>

/* Carry out a command on an entry whose result is at @result. */
static __inline__ int twheel_call_one(int fd, unsigned long command, void *entry,
				      __u32 entry_size, const __s32 *result)
{
	struct twheel_vector vector;

	memset(&vector, 0, sizeof(vector));
	vector.size = sizeof(vector);
	vector.entry_size = entry_size;
	vector.nr = 1;
	vector.entries = (unsigned long)entry;
	if (ioctl(fd, command, &vector) < 0)
		return -errno;
	return *result;
}

/* Arm a timeout; its id is in @arm then. */
static __inline__ int twheel_arm_one(int fd, struct twheel_arm *arm)
{
	return twheel_call_one(fd, TWHEEL_IOC_ARM, arm, sizeof(*arm), &arm->result);
}

/* Begin a new life of the timeout whose id is in @arm. */
static __inline__ int twheel_rearm_one(int fd, struct twheel_arm *arm)
{
	return twheel_call_one(fd, TWHEEL_IOC_REARM, arm, sizeof(*arm), &arm->result);
}

/* Cancel a timeout. */
static __inline__ int twheel_cancel_one(int fd, __u64 id)
{
	struct twheel_cancel cancel;

	memset(&cancel, 0, sizeof(cancel));
	cancel.id = id;
	return twheel_call_one(fd, TWHEEL_IOC_CANCEL, &cancel, sizeof(cancel),
			       &cancel.result);
}

/* Tell the state of the timeout whose id is in @status. */
static __inline__ int twheel_query_one(int fd, struct twheel_status *status)
{
	return twheel_call_one(fd, TWHEEL_IOC_QUERY, status, sizeof(*status),
			       &status->result);
}

#endif /* _UAPI_LINUX_TWHEEL_CALLS_H */
