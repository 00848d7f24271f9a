// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl late: how long threads run, and how long they wait for a processor
 */
#include <string.h>

#include "late.h"

static void times_read(struct thread *thread)
{
	char path[64], text[128];

	/* Each thread has a folder in /proc, also if it is not the first of its process. */
	snprintf(path, sizeof(path), "/proc/%d/schedstat", thread->task.pid);
	thread->has_times = read_text(path, text, sizeof(text)) > 0 &&
			    sscanf(text, "%llu %llu", &thread->run_ns, &thread->waited_ns) == 2;
}

void thread_begin(struct thread *thread, const struct task *task)
{
	*thread = (struct thread){ .task = *task };
	times_read(thread);
	thread->first_run_ns = thread->run_ns;
	thread->first_waited_ns = thread->waited_ns;
}

/* Sample a thread again, `step_ns' after the last time. */
void thread_watch(struct thread *thread, __u64 step_ns)
{
	struct thread was = *thread;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", was.task.pid);
	if (!task_read(path, &thread->task))
		return;
	times_read(thread);
	if (was.task.state == 'R' && thread->task.state == 'R' && was.run_ns == thread->run_ns)
		thread->stuck_ns += step_ns;
}

__u64 thread_ran(const struct thread *thread)
{
	return thread->run_ns - thread->first_run_ns;
}

/* The kernel counts a wait when it is over.  If it is not, @stuck_ns has it. */
__u64 thread_waited(const struct thread *thread)
{
	__u64 waited_ns = thread->waited_ns - thread->first_waited_ns;

	return waited_ns > thread->stuck_ns ? waited_ns : thread->stuck_ns;
}

/* Find the thread of highest priority among those that run or are ready on a processor. */
bool hog_find(int processor, struct task *hog)
{
	DIR *proc = opendir("/proc"), *threads;
	struct task task, thread;
	char path[64];

	*hog = (struct task){};
	while (proc && tasks_next(proc, &task)) {
		snprintf(path, sizeof(path), "/proc/%d/task", task.pid);
		threads = opendir(path);
		while (threads && tasks_next(threads, &thread))
			if (thread.state == 'R' && thread.processor == processor &&
			    thread.rt_priority > hog->rt_priority)
				*hog = thread;
		if (threads)
			closedir(threads);
	}
	if (proc)
		closedir(proc);
	return hog->rt_priority;
}
