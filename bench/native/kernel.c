// SPDX-License-Identifier: GPL-2.0
/*
 * The functions of the kernel that the module calls, if they need structures of the kernel: the
 * current task, and work items. All others are in process.c.
 */
#include <linux/cred.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/time_namespace.h>
#include <linux/uio.h>
#include <linux/user_namespace.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "native.h"

struct user_namespace init_user_ns = { .ns.count = REFCOUNT_INIT(1) };
static struct task_struct task;
static struct cred cred;
static struct nsproxy proxy;
static struct time_namespace time_ns;

void native_task_init(void)
{
	cred.user_ns = &init_user_ns;
	proxy.time_ns = &time_ns;
	task.nsproxy = &proxy;
	RCU_INIT_POINTER(task.cred, &cred);
	RCU_INIT_POINTER(task.real_cred, &cred);
	this_cpu_write(pcpu_hot.current_task, &task);
}

static struct work_struct *works[16];
static unsigned int nr_works;

bool queue_work_on(int cpu, struct workqueue_struct *queue, struct work_struct *work)
{
	unsigned int i;

	for (i = 0; i < nr_works; i++)
		if (works[i] == work)
			return false;
	if (nr_works == ARRAY_SIZE(works))
		native_fail("too many work items");
	works[nr_works++] = work;
	return true;
}

void native_run_works(void)
{
	static bool running;

	if (running || preempt_count())
		return;
	running = true;
	while (nr_works) {
		struct work_struct *work = works[--nr_works];

		work->func(work);
	}
	running = false;
}

void iov_iter_advance(struct iov_iter *iter, size_t size)
{
	iter->iov_offset += size;
	iter->count -= size;
}

void *__kvmalloc_node_noprof(DECL_BUCKET_PARAMS(size, b), gfp_t flags, int node)
{
	return vzalloc_noprof(size);
}
