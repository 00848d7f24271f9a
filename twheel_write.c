// SPDX-License-Identifier: GPL-2.0
/*
 * write(2) on /dev/twheel: records that set up, arm, re-arm and cancel
 *
 * A record is a fixed number of bytes without a pointer, so a program needs no ioctl.  The
 * records of a call are done one after the other, each as the ioctl of its kind does a
 * single entry.  A call has no place where it could report results: it ends at the first
 * record that is refused, and the number of bytes that it returns says which one that is.
 * So records are copied in by batches, but what is copied and not done does not count: the
 * iov_iter goes back to the first record that is not done.
 *
 * With IOCB_NOWAIT (RWF_NOWAIT, io_uring) a record that would have to wait or to allocate
 * is refused with -EAGAIN.
 *
 * Locks: none, and none is held while user memory is copied.
 */
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/uio.h>

#include "twheel.h"

/* The ABI is for ever. */
static_assert(sizeof(struct twheel_record) == 40);
static_assert(sizeof(struct twheel_setup_record) == sizeof(struct twheel_record));

/* The functions below do a record each, and return 0, or an errno and nothing is done. */

static int record_setup(struct twheel *tw, const struct twheel_record *record,
			bool nowait)
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

/* Whether a record counts as done if its timeout is not there. */
static bool record_forgives(const struct twheel_record *record)
{
	return record->flags & TWHEEL_RECORD_ABSENT_OK;
}

/* The entry of ARM or REARM that a record stands for. */
static struct twheel_arm record_entry(const struct twheel_record *record)
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

static int record_arm(struct twheel *tw, const struct twheel_record *record, bool nowait)
{
	struct twheel_arm arm = record_entry(record);

	/* Any other ARM makes the timeout that is not there. */
	if (record_forgives(record) && !(arm.flags & TWHEEL_ARM_IF_PRESENT))
		return -EINVAL;
	return twheel_arm_one(tw, &arm, nowait);
}

static int record_rearm(struct twheel *tw, const struct twheel_record *record, bool nowait)
{
	struct twheel_arm arm = record_entry(record);

	return twheel_rearm_one(tw, &arm, twheel_is_keyed(tw), nowait);
}

/* Whether a record of CANCEL has fields that CANCEL does not use. */
static bool cancel_is_odd(const struct twheel_record *record)
{
	return record->flags & ~TWHEEL_RECORD_ABSENT_OK || record->expires_ns ||
	       record->interval_ns || record->repeats || record->slack_ticks;
}

/* Do a record.  In a keyed wheel, @key of any record is a key. */
static int record_do(struct twheel *tw, const struct twheel_record *record, bool nowait)
{
	switch (record->op) {
	case TWHEEL_OP_ARM:
		return record_arm(tw, record, nowait);
	case TWHEEL_OP_REARM:
		return record_rearm(tw, record, nowait);
	case TWHEEL_OP_CANCEL:
		return cancel_is_odd(record) ? -EINVAL :
		       twheel_cancel_one(tw, record->key, twheel_is_keyed(tw));
	case TWHEEL_OP_SETUP:
		return record_setup(tw, record, nowait);
	default:
		return -EINVAL;
	}
}

/* Do up to @nr records; @err is why there are not more.  Return how many were done. */
static unsigned int records_do(struct twheel *tw, const struct twheel_record *record,
			       unsigned int nr, bool nowait, int *err)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		*err = record_do(tw, &record[i], nowait);
		if (*err == -ENOENT && record_forgives(&record[i]))
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
 * Copy records in; returns how many were copied as a whole, and leaves @from behind the last
 * one.
 *
 * On arm64, copy_from_iter() may stop some records before the one that faults: it copies 64
 * bytes at a time.  So what follows a short copy is copied record by record.
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

/**
 * twheel_write() - do the records of a write
 * @tw: the wheel
 * @from: the records; moves on by those that were done
 * @nowait: refuse with -EAGAIN a record that would have to wait or to allocate
 *
 * Context: process; sleeps, with @nowait only where the user's memory faults.
 * Return: the bytes of the records that were done, or, when that is none, why the first
 * one was not: -EINVAL when it is not whole, -EFAULT, or an errno of SETUP, ARM, REARM or
 * CANCEL.
 */
ssize_t twheel_write(struct twheel *tw, struct iov_iter *from, bool nowait)
{
	struct twheel_record record[TWHEEL_BATCH] __uninitialized;
	size_t left = iov_iter_count(from) / sizeof(record[0]);
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
		nr = records_do(tw, record, copied, nowait, &err);
		iov_iter_revert(from, (copied - nr) * sizeof(record[0]));
		done += nr * sizeof(record[0]);
		left -= nr;
	}
	return done ?: err;
}
