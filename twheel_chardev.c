// SPDX-License-Identifier: GPL-2.0
/*
 * The device of twheel: open, read, write, poll and mmap of /dev/twheel
 *
 * Its ioctls are in twheel_ioctl.c, fdinfo is in twheel_stat.c.
 */
#include <linux/fcntl.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "engine/syncpoint.h"
#include "twheel.h"
#include "twheel_compat.h"

/* open */

static int twheel_fop_open(struct inode *inode, struct file *file)
{
	struct twheel_file *opened = kzalloc(sizeof(*opened), GFP_KERNEL_ACCOUNT);
	struct tw_ctx *tw;

	if (!opened)
		return -ENOMEM;
	tw = twheel_create();
	if (IS_ERR(tw)) {
		kfree(opened);
		return PTR_ERR(tw);
	}
	opened->tw = tw;
	file->private_data = opened;
	file->f_mapping = twheel_mapping(tw, file);
	/* read and write obey IOCB_NOWAIT: io_uring needs no worker thread for them. */
	file->f_mode |= FMODE_NOWAIT;
	return stream_open(inode, file);
}

static int twheel_fop_release(struct inode *inode, struct file *file)
{
	twheel_put(file_wheel(file));
	kfree(file->private_data);
	return 0;
}

/* ioctl */

static long twheel_fop_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return twheel_ioctl(file, cmd, (void __user *)arg);
}

/*
 * io_uring
 *
 * A submission is an ioctl.  The thread that submits should not sleep or work for long, as others
 * may wait for the ring; a worker thread of io_uring may do both.
 */

/* The most elements, or rows of LIST, that the thread that submits does. */
#define SUBMISSION_MAX	1024

/*
 * Whether an ioctl may sleep, or takes long.  If its argument cannot be read, it fails at once.
 * For ARM and REARM this is an estimate: others may take the places that are free now, most keys
 * are there already, and the first period or slack of a page takes memory.
 */
static bool submission_waits(struct file *file, unsigned int cmd, void __user *arg)
{
	const struct twheel_vector __user *vector = arg;
	const struct twheel_info __user *info = arg;
	const struct twheel_list __user *list = arg;
	struct tw_ctx *tw = file_wheel(file);
	u32 nr;

	switch (cmd) {
	case TWHEEL_IOC_INFO:
		return !get_user(nr, &info->flags) &&
		       (nr & TWHEEL_INFO_WALK || !twheel_is_started(tw));
	case TWHEEL_IOC_LIST:
		return !get_user(nr, &list->nr) && nr > SUBMISSION_MAX;
	case TWHEEL_IOC_ARM:
		return !get_user(nr, &vector->nr) &&
		       (nr > SUBMISSION_MAX ||
			!(twheel_is_keyed(tw) || twheel_has_places(tw, nr)));
	case TWHEEL_IOC_REARM:
	case TWHEEL_IOC_CANCEL:
	case TWHEEL_IOC_QUERY:
		return !get_user(nr, &vector->nr) && nr > SUBMISSION_MAX;
	default:
		return cmd == TWHEEL_IOC_SETUP || cmd == TWHEEL_IOC_DRAIN ||
		       cmd == TWHEEL_IOC_ADVANCE || cmd == TWHEEL_IOC_REOPEN;
	}
}

/* Whether a submission has only what an ioctl has.  The rest is 0, so that it can get a meaning. */
static bool submission_is_plain(const struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	/* The bytes that a submission of 128 or 64 bytes has for its command. */
	unsigned int i, size = issue_flags & IO_URING_F_SQE128 ? 80 : 16;
	const u64 *words = uring_cmd_words(cmd);

	for (i = 1; i < size / sizeof(*words); i++)
		if (READ_ONCE(words[i]))
			return false;
	return !uring_cmd_user_flags(cmd);
}

static int twheel_fop_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	void __user *arg = u64_to_user_ptr(READ_ONCE(*uring_cmd_words(cmd)));
	long result;

	if (!submission_is_plain(cmd, issue_flags))
		return -EINVAL;
	if (issue_flags & IO_URING_F_NONBLOCK && submission_waits(cmd->file, cmd->cmd_op, arg))
		return -EAGAIN;
	result = twheel_ioctl(cmd->file, cmd->cmd_op, arg);
	/* A worker that is cancelled gets a signal; older kernels pass its result on unchanged. */
	if (result == -ERESTARTSYS)
		result = -EINTR;
	return uring_cmd_result(cmd, result, issue_flags);
}

/* read, write and poll */

/* Have a fault in the space of the next event served, and overwrite it; false if that fails. */
static noinline bool read_serve(struct iov_iter *to, u32 size)
{
	size_t n = iov_iter_zero(size, to);

	iov_iter_revert(to, n);
	return n == size;
}

/*
 * If the space for the events of a batch lies in two pages of the user's memory, have a fault in
 * the last one served, as batch_serve() does.
 */
static void read_serve_batch(struct iov_iter *to, size_t size)
{
	if (iter_is_ubuf(to)) {
		char __user *first = to->ubuf + to->iov_offset, *last = first + size - 1;

		if (((unsigned long)first ^ (unsigned long)last) & PAGE_MASK)
			(void)put_user(0, last);
	} else {
		fault_in_iov_iter_writeable(to, size);
	}
}

/*
 * Copy out as many events as fit.
 *
 * No more events are copied than were unread in the beginning.  Otherwise periods could pass faster
 * than their events are copied, and with a large buffer the call would never end.
 */
static ssize_t events_read(const struct twheel_file *file, struct iov_iter *to)
{
	struct tw_ctx *tw = file->tw;
	size_t room = iov_iter_count(to), left;
	unsigned int most = TWHEEL_BATCH, tries = 0;
	ssize_t done = 0;
	u32 size;

	left = twheel_nr_events(tw, &size);
	size = file->event_size ?: size;
	if (unlikely(room < size))
		return -EINVAL;
	left = min(left, room / size);
	while (left) {
		unsigned int nr = min_t(size_t, left, most);
		int taken;

		read_serve_batch(to, (size_t)nr * size);
		taken = twheel_read_step(tw, to, size, nr);
		if (!taken)
			break;
		if (taken > 0) {
			done += (size_t)taken * size;
			left -= taken;
			most = TWHEEL_BATCH;
			tries = 0;
		} else if (++tries < TWHEEL_TRIES && read_serve(to, size)) {
			/* This one by itself: the batch may end beyond the user's memory. */
			most = 1;
		} else {
			return done ?: taken;
		}
		/* Memory may be taken away faster than faults are served. */
		if (signal_pending(current) && (done || fatal_signal_pending(current)))
			return done ?: -ERESTARTSYS;
		cond_resched();
	}
	return done;
}

static ssize_t twheel_fop_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	const struct twheel_file *file = twheel_file(iocb->ki_filp);
	struct tw_ctx *tw = file->tw;
	bool nonblock = iocb->ki_filp->f_flags & O_NONBLOCK || iocb->ki_flags & IOCB_NOWAIT;
	bool settled = false;

	for (;;) {
		/*
		 * Before reading: once drained is seen, no event is added any more.
		 * Test: syncpoints.read_beside_drain_gets_the_last_event
		 */
		bool drained = twheel_is_drained(tw);
		ssize_t ret;

		twheel_syncpoint(SYNC_READ_DRAINED);
		ret = events_read(file, to);
		if (ret || drained)
			return ret;
		if (nonblock) {
			if (settled)
				return -EAGAIN;
			/* The caller may have armed a deadline in the past: it gets that event. */
			twheel_settle(tw);
			settled = true;
		} else if (twheel_wait_event(tw)) {
			return -ERESTARTSYS;
		}
	}
}

/* write() */

/* The ABI is for ever. */
static_assert(sizeof(struct twheel_record) == 40);
static_assert(sizeof(struct twheel_setup_record) == sizeof(struct twheel_record));

static int record_setup(struct tw_ctx *tw, const struct twheel_record *record, bool nowait)
{
	const struct twheel_setup_record *from = (const void *)record;
	const struct twheel_setup setup = {
		.size		= sizeof(setup),
		.clock		= from->clock,
		.tick_ns	= from->tick_ns,
		.slots		= from->slots,
		.max_pending	= from->max_pending,
		.flags		= from->flags,
		.event_size	= from->event_size,
		.slack_ns	= from->slack_ns,
	};

	/* To start a wheel is to allocate. */
	return nowait ? -EAGAIN : twheel_configure(tw, &setup);
}

/* The element of ARM or REARM that a record stands for. */
static struct twheel_arm record_element(const struct twheel_record *record)
{
	return (struct twheel_arm){
		.expires_ns	= record->expires_ns,
		.interval_ns	= record->interval_ns,
		.user_data	= record->key,
		.flags		= record->flags & ~TWHEEL_RECORD_ABSENT_OK,
		.repeats	= record->repeats,
		.id		= record->key,
		.slack_ticks	= record->slack_ticks,
	};
}

/* Whether a record of CANCEL has fields that CANCEL does not use. */
static bool cancel_has_extra_fields(const struct twheel_record *record)
{
	return record->flags & ~TWHEEL_RECORD_ABSENT_OK || record->expires_ns ||
	       record->interval_ns || record->repeats || record->slack_ticks;
}

/*
 * Do a record.  In a keyed wheel, @key of any record is a key.  Return 0, or an errno if nothing is
 * done.
 */
static int record_do(struct tw_ctx *tw, const struct twheel_record *record, bool nowait)
{
	struct twheel_arm arm = record_element(record);

	switch (record->op) {
	case TWHEEL_OP_ARM:
		/* Any other ARM makes the timeout that is not there. */
		if (record->flags & TWHEEL_RECORD_ABSENT_OK && !(arm.flags & TWHEEL_ARM_IF_PRESENT))
			return -EINVAL;
		return twheel_arm_one(tw, &arm, nowait);
	case TWHEEL_OP_REARM:
		return twheel_rearm_one(tw, &arm, twheel_is_keyed(tw), nowait);
	case TWHEEL_OP_CANCEL:
		return cancel_has_extra_fields(record) ? -EINVAL :
		       twheel_cancel_one(tw, record->key, twheel_is_keyed(tw));
	case TWHEEL_OP_SETUP:
		return record_setup(tw, record, nowait);
	default:
		return -EINVAL;
	}
}

/* Do up to @nr records; @err is why there are not more.  Return how many were done. */
static unsigned int records_do(struct tw_ctx *tw, const struct twheel_record *record,
			       unsigned int nr, bool nowait, int *err)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		*err = record_do(tw, &record[i], nowait);
		if (*err == -ENOENT && record[i].flags & TWHEEL_RECORD_ABSENT_OK)
			*err = 0;
		if (*err)
			break;
		cond_resched();
		if (fatal_signal_pending(current)) {
			*err = -EINTR;
			return i + 1;
		}
	}
	return i;
}

/*
 * Copy records in; returns how many were copied as a whole, and leaves @from behind the last one.
 *
 * On arm64, copy_from_iter() may stop some records before the one that faults: it copies 64 bytes
 * at a time.  So what follows a short copy is copied record by record.
 */
static unsigned int records_copy_in(struct twheel_record *record, unsigned int nr,
				    struct iov_iter *from)
{
	unsigned int i = 0, step = nr;

	while (i < nr) {
		size_t copied = copy_from_iter(&record[i], step * sizeof(record[0]), from);
		unsigned int whole = copied / sizeof(record[0]);

		iov_iter_revert(from, copied - whole * sizeof(record[0]));
		if (!whole && step == 1)
			break;
		i += whole;
		step = 1;
	}
	return i;
}

/*
 * Do each record as the ioctl of its kind does a single element, up to the first one that is
 * refused.  Return the bytes of those that were done; the iov_iter goes back to a record that was
 * copied and not done.  If it is none, return why the first one was not: -EINVAL if it is not
 * whole, -EFAULT, or an errno of SETUP, ARM, REARM or CANCEL.
 */
static ssize_t twheel_fop_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct twheel_record record[TWHEEL_BATCH] __uninitialized;
	size_t left = iov_iter_count(from) / sizeof(record[0]);
	bool nowait = iocb->ki_flags & IOCB_NOWAIT;
	ssize_t done = 0;
	int err = 0;

	if (!left)
		return -EINVAL;
	while (left && !err) {
		unsigned int nr, wanted = min(left, ARRAY_SIZE(record));
		unsigned int copied = records_copy_in(record, wanted, from);

		if (copied < wanted) {
			left = copied;
			err = -EFAULT;
		}
		nr = records_do(file_wheel(iocb->ki_filp), record, copied, nowait, &err);
		iov_iter_revert(from, (copied - nr) * sizeof(record[0]));
		done += nr * sizeof(record[0]);
		left -= nr;
	}
	return done ?: err;
}

static __poll_t twheel_fop_poll(struct file *file, poll_table *wait)
{
	__poll_t events = twheel_poll(file_wheel(file), file, wait);

	if (!(file->f_mode & FMODE_READ))
		events &= ~(EPOLLIN | EPOLLRDNORM);
	if (!(file->f_mode & FMODE_WRITE))
		events &= ~(EPOLLOUT | EPOLLWRNORM);
	return events;
}

/* mmap: the refresh table */

/*
 * ARM or mmap(), which can refuse, has allocated the page before any timeout has its word there: so
 * a store through an id never runs out of memory.  Access beyond the last page gets SIGBUS.
 */
static vm_fault_t words_fault(struct vm_fault *vmf)
{
	vmf->page = twheel_words_lock(file_wheel(vmf->vma->vm_file), vmf->pgoff);
	return vmf->page ? VM_FAULT_LOCKED : VM_FAULT_SIGBUS;
}

/* The mapping is in place: make the table, which may fail.  Called with mmap_lock held. */
static int words_mapped(unsigned long start, unsigned long end, pgoff_t pgoff,
			const struct file *file, void **vm_private_data)
{
	return twheel_map_words(file_wheel(file));
}

static const struct vm_operations_struct words_vm_ops = {
	VM_OPS_MAPPED(words_mapped)
	.fault	= words_fault,
};

/*
 * Whether a mapping is one of the refresh table: at offset 0, and no longer than the table can ever
 * be.  All other offsets are refused, so that they can get a meaning later.
 */
static int words_check(const struct tw_ctx *tw, const struct vm_area_desc *desc)
{
	/*
	 * Stores into a private mapping would never reach the kernel.  Test VM_MAYSHARE: mmap()
	 * clears VM_SHARED if the descriptor is open for reading only.
	 */
	if (!vma_desc_test(desc, VMA_MAYSHARE_BIT) || vma_desc_test(desc, VMA_EXEC_BIT))
		return -EINVAL;
	if (desc->pgoff || desc->end - desc->start > twheel_refresh_size(tw))
		return -EINVAL;
	return 0;
}

/* Check and describe a mapping; nothing is allocated before words_mapped(). */
static int twheel_fop_mmap_prepare(struct vm_area_desc *desc)
{
	int err = words_check(file_wheel(desc->file), desc);

	if (err)
		return err;
	vma_desc_set_flags(desc, VMA_DONTEXPAND_BIT);
	vma_desc_clear_flags(desc, VMA_MAYEXEC_BIT);
	desc->vm_ops = &words_vm_ops;
	return 0;
}

DEFINE_MMAP(twheel_fop_mmap_prepare, words_mapped);

static const struct file_operations twheel_fops = {
	.owner		= THIS_MODULE,
	.open		= twheel_fop_open,
	.release	= twheel_fop_release,
	.unlocked_ioctl	= twheel_fop_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.uring_cmd	= twheel_fop_uring_cmd,
	.read_iter	= twheel_fop_read_iter,
	.write_iter	= twheel_fop_write_iter,
	.poll		= twheel_fop_poll,
	FOPS_MMAP(twheel_fop_mmap_prepare)
	.show_fdinfo	= twheel_show_fdinfo,
};

/* It asks for no mode, which udevd would leave as it is: see tools/60-twheel.rules. */
static struct miscdevice twheel_misc = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "twheel",
	.fops	= &twheel_fops,
	.groups	= twheel_attribute_groups,
};

int twheel_chardev_register(void)
{
	int err = misc_register(&twheel_misc);

	if (!err)
		twheel_stat_init();
	return err;
}

void twheel_chardev_unregister(void)
{
	twheel_stat_exit();
	misc_deregister(&twheel_misc);
}
