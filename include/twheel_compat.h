/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interfaces of newer kernels, for older ones
 *
 * Kbuild looks for each of them in the kernel's headers, since stable kernels backport, and defines
 * TWHEEL_HAVE_... where it finds it.
 */
#ifndef _TWHEEL_COMPAT_H
#define _TWHEEL_COMPAT_H

#include <linux/hrtimer.h>
#ifdef TWHEEL_HAVE_IO_URING_CMD_H
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/poll.h>

/* Older kernels initialise an hrtimer and its callback in two steps. */
#ifndef TWHEEL_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

/*
 * A kernel whose call_rcu() may delay callbacks for seconds (CONFIG_RCU_LAZY) has
 * call_rcu_hurry() beside it.  In a kernel without it, call_rcu() does not delay them.
 */
#ifndef TWHEEL_HAVE_CALL_RCU_HURRY
#define call_rcu_hurry(head, func) call_rcu(head, func)
#endif

/* Older kernels create and start the kthread of a worker under another name. */
#ifndef TWHEEL_HAVE_KTHREAD_RUN_WORKER
#define kthread_run_worker(flags, ...)	kthread_create_worker(flags, __VA_ARGS__)
#endif

/*
 * In older kernels, a poller may look before those that wake see it in the queue: then neither of
 * the two sees the other.
 */
#ifndef TWHEEL_HAVE_POLL_WAIT_BARRIER
static inline void poll_wait_barrier(struct file *file, wait_queue_head_t *queue,
				     struct poll_table_struct *wait)
{
	poll_wait(file, queue, wait);
	smp_mb();	/* pairs with wq_has_sleeper() */
}

#define poll_wait poll_wait_barrier
#endif

/* In older kernels, vm_flags may be written to directly; mmap_lock is held for writing. */
#ifndef TWHEEL_HAVE_VM_FLAGS_MOD
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags |= set;
	vma->vm_flags &= ~clear;
}
#endif

/*
 * In a newer kernel mmap_prepare() only describes a mapping, and mapped() allocates for it when it
 * is in place.  In an older one mmap() does both.
 */
#ifdef TWHEEL_HAVE_VM_OPS_MAPPED
#define VM_OPS_MAPPED(_mapped)		.mapped = (_mapped),
#define FOPS_MMAP(_prepare)		.mmap_prepare = (_prepare),
#define DEFINE_MMAP(...)		static_assert(true)
#else
#define vm_area_desc			twheel_vm_area_desc
#define VMA_EXEC_BIT			VM_EXEC
#define VMA_MAYEXEC_BIT			VM_MAYEXEC
#define VMA_MAYSHARE_BIT		VM_MAYSHARE
#define VMA_DONTEXPAND_BIT		VM_DONTEXPAND
#define vma_desc_test(desc, bit)	(!!((desc)->vm_flags & (bit)))
#define vma_desc_set_flags(desc, bit)	((desc)->vm_flags |= (bit))
#define vma_desc_clear_flags(desc, bit)	((desc)->vm_flags &= ~(bit))

struct vm_area_desc {
	struct file *file;
	unsigned long start;
	unsigned long end;
	pgoff_t pgoff;
	vm_flags_t vm_flags;
	const struct vm_operations_struct *vm_ops;
};

struct mmap_parts {
	int (*prepare)(struct vm_area_desc *desc);
	int (*mapped)(unsigned long start, unsigned long end, pgoff_t pgoff,
		      const struct file *file, void **vm_private_data);
};

static const struct mmap_parts mmap_parts __maybe_unused;	/* by DEFINE_MMAP() */

static inline int mmap_by_parts(struct file *file, struct vm_area_struct *vma)
{
	struct vm_area_desc desc = {
		.file = file,
		.start = vma->vm_start,
		.end = vma->vm_end,
		.pgoff = vma->vm_pgoff,
		.vm_flags = vma->vm_flags,
	};
	int err = mmap_parts.prepare(&desc);

	if (err)
		return err;
	vm_flags_mod(vma, desc.vm_flags, ~desc.vm_flags);
	vma->vm_ops = desc.vm_ops;
	return mmap_parts.mapped(vma->vm_start, vma->vm_end, vma->vm_pgoff, file,
				 &vma->vm_private_data);
}

#define VM_OPS_MAPPED(...)
#define FOPS_MMAP(...)		.mmap = mmap_by_parts,
#define DEFINE_MMAP(...)	static const struct mmap_parts mmap_parts = { __VA_ARGS__ }
#endif

/*
 * Return the bytes that a submission of io_uring has for its command.  Read each word once: the
 * program may write there at any time.
 */
static inline const u64 *uring_cmd_words(const struct io_uring_cmd *cmd)
{
#ifdef TWHEEL_HAVE_IO_URING_CMD_H
	return (const u64 *)cmd->sqe->cmd;
#else
	return cmd->cmd;
#endif
}

/* The flags that the program has set in a submission; the others are io_uring's own. */
static inline u32 uring_cmd_user_flags(const struct io_uring_cmd *cmd)
{
#ifdef TWHEEL_HAVE_IO_URING_CMD_H
	return cmd->flags & ~(0xffU << 24);
#else
	return cmd->flags;
#endif
}

/* Return the value that uring_cmd() returns when a command is done. */
static inline int uring_cmd_result(struct io_uring_cmd *cmd, long result, unsigned int issue_flags)
{
#ifdef TWHEEL_HAVE_IO_URING_CMD_H
	return result;
#else
	/*
	 * A worker thread of io_uring would lose a submission whose result is not 0 or an error,
	 * and cancel one that is linked to it.
	 */
	io_uring_cmd_done(cmd, result, 0, issue_flags);
	return -EIOCBQUEUED;
#endif
}

#endif /* _TWHEEL_COMPAT_H */
