/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The driver is written against the newest kernel API; this is where older
 * kernels are given it.  Kbuild looks into the kernel's headers for each
 * feature (stable kernels backport) and says TWHEEL_HAVE_... when it is there.
 */
#ifndef _TWHEEL_COMPAT_H
#define _TWHEEL_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/mm.h>

#ifndef TWHEEL_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

/* Where callbacks may be put off for seconds, there is another for those in a hurry. */
#ifndef TWHEEL_HAVE_CALL_RCU_HURRY
#define call_rcu_hurry(head, func) call_rcu(head, func)
#endif

#ifndef TWHEEL_HAVE_KTHREAD_RUN_WORKER
#define kthread_run_worker(flags, namefmt, ...) \
	kthread_create_worker(flags, namefmt, ##__VA_ARGS__)
#endif

#ifndef TWHEEL_HAVE_VM_FLAGS_MOD
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set,
				vm_flags_t clear)
{
	vma->vm_flags |= set;
	vma->vm_flags &= ~clear;
}
#endif

#endif /* _TWHEEL_COMPAT_H */
