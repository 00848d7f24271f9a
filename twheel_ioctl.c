// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls of /dev/twheel: which there are, and those without a vector
 *
 * An ioctl of this file checks the shape of its argument, copies it in, hands it to the
 * engine, and copies the results out.  The ioctls with a vector are in twheel_vectors.c.
 *
 * Locks: none, and none is held while user memory is copied.
 */
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/nospec.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/uaccess.h>

#include "twheel.h"

/* The ABI is for ever: no field may move, for 32-bit programs as for 64-bit ones. */
static_assert(sizeof(struct twheel_setup) == SETUP_SIZE_FIRST);
static_assert(sizeof(struct twheel_info) == INFO_SIZE_FIRST);
static_assert(sizeof(struct twheel_vector) == VECTOR_SIZE_FIRST);
static_assert(sizeof(struct twheel_arm) == ARM_SIZE_FIRST);
static_assert(sizeof(struct twheel_cancel) == CANCEL_SIZE_FIRST);
static_assert(sizeof(struct twheel_status) == STATUS_SIZE_FIRST);
static_assert(sizeof(struct twheel_list) == LIST_SIZE_FIRST);
static_assert(sizeof(struct twheel_advance) == ADVANCE_SIZE_FIRST);
static_assert(sizeof(struct twheel_event) == TWHEEL_EVENT_SIZE_MIN);

static long info_ioctl(struct twheel *tw, void __user *arg)
{
	struct twheel_info __user *user = arg;
	struct twheel_info info;
	u32 size;
	int err;

	if (get_user(size, &user->size))
		return -EFAULT;
	if (size < INFO_SIZE_FIRST)
		return -EINVAL;
	if (size > TWHEEL_SIZE_MAX)
		return -E2BIG;
	if (get_user(info.flags, &user->flags))
		return -EFAULT;
	if (info.flags & ~TWHEEL_INFO_WALK)
		return -EINVAL;
	err = twheel_get_info(tw, &info);
	if (err)
		return err;
	info.size = min_t(u32, size, sizeof(info));
	/* Members that a newer caller knows and this kernel does not are zero. */
	if (clear_user(arg + info.size, size - info.size) ||
	    copy_to_user(arg, &info, info.size))
		return -EFAULT;
	return 0;
}

static long setup_ioctl(struct twheel *tw, void __user *arg)
{
	struct twheel_setup setup;
	int err = twheel_arg_copy_in(&setup, sizeof(setup), SETUP_SIZE_FIRST, arg);

	return err ?: twheel_configure(tw, &setup);
}

/*
 * Report for LIST.  A newer caller may know members that this kernel does not: they are
 * set to zero.
 */
static unsigned int rows_report(void __user *user, u32 stride,
				const struct twheel_status *status,
				unsigned int nr)
{
	size_t known = min_t(size_t, stride, sizeof(status[0]));
	size_t tail = stride - known;
	unsigned int i;

	if (likely(stride == sizeof(status[0]))) {
		if (likely(!copy_to_user(user, status, nr * sizeof(status[0]))))
			return nr;
		/* It may have stopped some rows before the one that faults. */
	}
	for (i = 0; i < nr; i++, user += stride)
		if (copy_to_user(user, &status[i], known) ||
		    (tail && clear_user(user + known, tail)))
			break;
	return i;
}

static long list_ioctl(struct twheel *tw, void __user *arg)
{
	struct twheel_status status[TWHEEL_BATCH / 2] __uninitialized;
	struct twheel_list __user *user = arg;
	struct twheel_list list;
	unsigned int done = 0;
	void __user *rows;
	int err;

	err = twheel_arg_copy_in(&list, sizeof(list), LIST_SIZE_FIRST, arg);
	if (err)
		return err;
	if (list.flags || !list.nr || list.entry_size < STATUS_SIZE_FIRST ||
	    (list.entry_size | list.entries) % sizeof(u64))
		return -EINVAL;
	if (list.entry_size > TWHEEL_SIZE_MAX || list.nr > TWHEEL_MAX_VECTOR)
		return -E2BIG;

	list.changes = twheel_changes(tw);
	rows = u64_to_user_ptr(list.entries);
	while (done < list.nr) {
		u64 cursor = list.cursor;
		unsigned int written;
		int nr;

		nr = twheel_list(tw, &cursor, status,
				 min_t(unsigned int, list.nr - done,
				       ARRAY_SIZE(status)));
		if (nr < 0)
			break;
		written = rows_report(rows + (size_t)done * list.entry_size,
				      list.entry_size, status, nr);
		done += written;
		if (written < nr) {
			/* The next call begins with the timeout whose row faulted. */
			list.cursor = (u32)status[written].id;
			err = -EFAULT;
			break;
		}
		list.cursor = cursor;
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			break;
		}
		cond_resched();
	}
	if (put_user(list.cursor, &user->cursor) || put_user(list.changes, &user->changes))
		return -EFAULT;
	return done ? (long)done : err;
}

static long drain_ioctl(struct twheel *tw, void __user *arg)
{
	return arg ? -EINVAL : twheel_drain(tw);
}

static long advance_ioctl(struct twheel *tw, void __user *arg)
{
	struct twheel_advance advance;
	int err = twheel_arg_copy_in(&advance, sizeof(advance), ADVANCE_SIZE_FIRST, arg);

	if (err)
		return err;
	if (advance.reserved)
		return -EINVAL;
	return twheel_advance(tw, advance.to_ns);
}

static long (* const twheel_ioctls[])(struct twheel *tw, void __user *arg) = {
	[_IOC_NR(TWHEEL_IOC_INFO)]	= info_ioctl,
	[_IOC_NR(TWHEEL_IOC_SETUP)]	= setup_ioctl,
	[_IOC_NR(TWHEEL_IOC_ARM)]	= twheel_arm_ioctl,
	[_IOC_NR(TWHEEL_IOC_REARM)]	= twheel_rearm_ioctl,
	[_IOC_NR(TWHEEL_IOC_CANCEL)]	= twheel_cancel_ioctl,
	[_IOC_NR(TWHEEL_IOC_QUERY)]	= twheel_query_ioctl,
	[_IOC_NR(TWHEEL_IOC_LIST)]	= list_ioctl,
	[_IOC_NR(TWHEEL_IOC_DRAIN)]	= drain_ioctl,
	[_IOC_NR(TWHEEL_IOC_ADVANCE)]	= advance_ioctl,
};

/* The commands that change nothing.  Any other needs a descriptor that is open for writing. */
#define CHANGE_NOTHING	(BIT(_IOC_NR(TWHEEL_IOC_INFO)) | BIT(_IOC_NR(TWHEEL_IOC_QUERY)) | \
			 BIT(_IOC_NR(TWHEEL_IOC_LIST)))

/**
 * twheel_ioctl() - carry out an ioctl
 * @tw: the wheel
 * @mode: FMODE_* of the open file
 * @cmd: TWHEEL_IOC_*
 * @arg: the user's pointer to the argument
 *
 * Context: process; sleeps.
 * Return: what the call returns to the user, see <linux/twheel.h>; -ENOTTY for a @cmd
 * that is not known, -EBADF for one that @mode does not allow.
 */
long twheel_ioctl(struct twheel *tw, fmode_t mode, unsigned int cmd, void __user *arg)
{
	unsigned int nr = _IOC_NR(cmd);

	if (nr >= ARRAY_SIZE(twheel_ioctls) || cmd != _IO(TWHEEL_IOC_MAGIC, nr))
		return -ENOTTY;
	if (!(mode & FMODE_WRITE) && !(CHANGE_NOTHING & BIT(nr)))
		return -EBADF;
	nr = array_index_nospec(nr, ARRAY_SIZE(twheel_ioctls));
	return twheel_ioctls[nr](tw, arg);
}
