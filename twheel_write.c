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
#include <linux/stddef.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/uio.h>

#include "twheel.h"
#include "twheel_write.h"

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

/* The entry of ARM or REARM that a record stands for. */
static struct twheel_arm record_entry(const struct twheel_record *record)
{
	return (struct twheel_arm){
		.expires_ns	= record->expires_ns,
		.interval_ns	= record->interval_ns,
		.user_data	= record->key,
		.flags		= record->flags,
		.repeats	= record->repeats,
		.id		= record->key,
		.slack_ticks	= record->slack_ticks,
	};
}

/*
 * The functions below return LOOK_AGAIN when another thread has changed what they found,
 * and nothing is done.
 */
#define LOOK_AGAIN	1

static int record_arm(struct twheel *tw, struct twheel_arm *arm, bool nowait)
{
	struct twheel_arming arming __uninitialized;
	int err;

	arming.nowait = nowait;
	err = twheel_arm_prepare(tw, arm, 1, &arming);
	if (err)
		return err;
	/* Another thread has set the wheel up as a keyed one since record_try() looked. */
	if (unlikely(twheel_is_keyed(tw))) {
		twheel_arm_commit(tw, &arming, 0);
		return LOOK_AGAIN;
	}
	err = twheel_arm_commit(tw, &arming, arm->result > 0);
	return err ?: min(arm->result, 0);
}

static noinline_for_stack int record_rearm(struct twheel *tw, struct twheel_arm *arm,
					   bool nowait)
{
	struct twheel_rearming rearming __uninitialized;
	unsigned int nr_ok = 0;
	int done;

	rearming.nowait = nowait;
	done = twheel_rearm_prepare(tw, arm, &rearming, 1);
	if (!done)
		done = twheel_rearm_commit(tw, arm, &rearming, 1, &nr_ok);
	if (!done)
		return LOOK_AGAIN;
	return done < 0 ? done : min(arm->result, 0);
}

static noinline_for_stack int record_cancel(struct twheel *tw, u64 id)
{
	struct twheel_cancel cancel = { .id = id };
	struct twheel_look look __uninitialized;
	unsigned int nr_ok = 0;

	twheel_cancel_look(tw, &cancel, &look, 1);
	if (!twheel_cancel_commit(tw, &cancel, &look, 1, &nr_ok))
		return LOOK_AGAIN;
	return min(cancel.result, 0);
}

/* ARM in a keyed wheel, of a key that was not there. */
static int record_create(struct twheel *tw, struct twheel_arm *arm, bool nowait)
{
	struct twheel_arming arming __uninitialized;
	unsigned int nr_armed;
	int err;

	arming.nowait = nowait;
	err = twheel_arm_prepare(tw, arm, 1, &arming);
	if (err)
		return err;
	err = twheel_arm_commit_keyed(tw, &arming, arm->result > 0, &nr_armed);
	if (err == -EEXIST)
		return LOOK_AGAIN;
	return err ?: min(arm->result, 0);
}

/* ARM in a keyed wheel, of a key that was there. */
static noinline_for_stack int record_replace(struct twheel *tw, struct twheel_arm *arm,
					     bool nowait)
{
	struct twheel_rearming rearming __uninitialized;
	unsigned int nr_ok = 0;
	int done;

	rearming.nowait = nowait;
	done = twheel_upsert_prepare(tw, arm, &rearming, 1);
	if (done)
		return done;
	done = twheel_rearm_commit(tw, arm, &rearming, 1, &nr_ok);
	/* A timeout that has ended since it was found has given its key up. */
	if (!done || (done > 0 && arm->result == -ENOENT))
		return LOOK_AGAIN;
	return done < 0 ? done : min(arm->result, 0);
}

static int record_upsert(struct twheel *tw, struct twheel_arm *arm, bool nowait)
{
	unsigned int nr = 1;

	switch (twheel_keyed_look(tw, arm, &nr, false)) {
	case TWHEEL_FOUND_ABSENT:
		return record_create(tw, arm, nowait);
	case TWHEEL_FOUND_PRESENT:
		return record_replace(tw, arm, nowait);
	default:
		return twheel_is_draining(tw) ? -ESHUTDOWN : arm->result;
	}
}

/* Whether a record of CANCEL has fields that CANCEL does not use. */
static bool cancel_is_odd(const struct twheel_record *record)
{
	return record->flags || record->expires_ns || record->interval_ns ||
	       record->repeats || record->slack_ticks;
}

/*
 * Do a record, by the timeouts as they are now.  In a keyed wheel, @key of any record is a
 * key.
 */
static int record_try(struct twheel *tw, const struct twheel_record *record,
		      bool nowait)
{
	struct twheel_arm arm = record_entry(record);
	bool keyed = twheel_is_keyed(tw);

	if (keyed && record->op != TWHEEL_OP_ARM)
		arm.id = twheel_key_id(tw, record->key);
	switch (record->op) {
	case TWHEEL_OP_ARM:
		return keyed ? record_upsert(tw, &arm, nowait) :
			       record_arm(tw, &arm, nowait);
	case TWHEEL_OP_REARM:
		return record_rearm(tw, &arm, nowait);
	case TWHEEL_OP_CANCEL:
		return cancel_is_odd(record) ? -EINVAL : record_cancel(tw, arm.id);
	case TWHEEL_OP_SETUP:
		return record_setup(tw, record, nowait);
	default:
		return -EINVAL;
	}
}

/* Do a record. */
static int record_do(struct twheel *tw, const struct twheel_record *record,
		     bool nowait)
{
	for (;;) {
		int err = record_try(tw, record, nowait);

		if (err != LOOK_AGAIN)
			return err;
		/* Other threads may change the timeout faster than this. */
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
}

/* Do up to @nr records; @err is why there are not more.  Return how many were done. */
static unsigned int records_do(struct twheel *tw, const struct twheel_record *record,
			       unsigned int nr, bool nowait, int *err)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		*err = record_do(tw, &record[i], nowait);
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
