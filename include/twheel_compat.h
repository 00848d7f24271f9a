/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interfaces of newer kernels, for older ones
 *
 * The module is written against the newest kernel API, and this header supplies the
 * functions that an older kernel lacks.  Kbuild looks for each of them in the kernel's
 * headers, since stable kernels backport, and defines TWHEEL_HAVE_... where it finds it.
 */
#ifndef _TWHEEL_COMPAT_H
#define _TWHEEL_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/mm.h>

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
#define kthread_run_worker(flags, namefmt, ...) \
	kthread_create_worker(flags, namefmt, ##__VA_ARGS__)
#endif

/*
 * In older kernels, vm_flags may be written to directly; mmap_lock is held for writing.
 */
#ifndef TWHEEL_HAVE_VM_FLAGS_MOD
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set,
				vm_flags_t clear)
{
	vma->vm_flags |= set;
	vma->vm_flags &= ~clear;
}
#endif

#endif /* _TWHEEL_COMPAT_H */
