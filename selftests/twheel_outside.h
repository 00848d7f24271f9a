/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of the module and the kernel, seen and set without a descriptor: how many wheels there
 * are, and the activity of its kernel threads.
 */
#ifndef TWHEEL_OUTSIDE_H
#define TWHEEL_OUTSIDE_H

#include "twheel_test.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/utsname.h>

/* Return how many wheels are open, each of which holds the module; -errno if it is not loaded. */
static inline int tw_wheels_open(void)
{
	FILE *file = fopen("/sys/module/twheel/refcnt", "re");
	int nr = -1;

	if (!file)
		return -errno;
	if (fscanf(file, "%d", &nr) != 1)
		nr = -EPROTO;
	fclose(file);
	return nr;
}

/*
 * Wait for this many: if a process was just killed, its last close may be under way. Return how
 * many there are.
 */
static inline int tw_wait_wheels_open(int wanted)
{
	int nr;

	TW_WAIT_FOR((nr = tw_wheels_open()) == wanted, 10 * TW_MS);
	return nr;
}

/*
 * If a process is a thread of ours, read how often it went to sleep and whether it runs; otherwise
 * return false. If a thread was preempted, it has not slept. Its name comes first in
 * /proc/PID/status.
 */
static inline bool tw_kthread_read(const char *pid, __u64 *switches, bool *runs)
{
	char path[300], line[256], state;
	bool ours;
	__u64 nr;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	ours = fgets(line, sizeof(line), file) && !strncmp(line, "Name:\ttwheel/", 13);
	while (ours && fgets(line, sizeof(line), file))
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &nr) == 1)
			*switches += nr;
		else if (sscanf(line, "State: %c", &state) == 1 && state == 'R')
			*runs = true;
	fclose(file);
	return ours;
}

/*
 * How many kernel threads the module has, how often they went to sleep, and whether
 * one runs.
 */
static inline int tw_kthreads_read(__u64 *switches, bool *runs)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int nr = 0;

	*switches = 0;
	*runs = false;
	while (proc && (entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			nr += tw_kthread_read(entry->d_name, switches, runs);
	if (proc)
		closedir(proc);
	return nr;
}

static inline int tw_kthreads(__u64 *switches)
{
	bool runs;

	return tw_kthreads_read(switches, &runs);
}

/* Whether the kthreads sleep, and have slept for a while. */
static inline bool tw_kthreads_are_quiet(void)
{
	__u64 before, after;
	bool runs;

	tw_kthreads(&before);
	tw_sleep(300 * TW_MS);
	tw_kthreads_read(&after, &runs);
	return before == after && !runs;
}

/* Wait until none of them has anything to do. Return 0, or -ETIMEDOUT. */
static inline int tw_wait_kthreads_quiet(void)
{
	return TW_WAIT_FOR(tw_kthreads_are_quiet(), 0) ? 0 : -ETIMEDOUT;
}

/* The number that fdinfo shows of a key; -1 if there is none. */
static inline long long tw_fdinfo_number(int fd, const char *key)
{
	size_t length = strlen(key);
	char path[64], line[512];
	long long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, key, length) && line[length] == ':')
			number = strtoll(line + length + 1, NULL, 10);
	fclose(file);
	return number;
}

/* The name of the kernel thread that serves a wheel, from its fdinfo. */
static inline void tw_kthread_name(int fd, char name[64])
{
	char path[64], line[256];
	FILE *file;

	name[0] = '\0';
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "kthread: %63s", name) == 1)
			break;
	if (file)
		fclose(file);
}

/* The first thread of that name; 0 if there is none. */
static inline pid_t tw_thread_named(const char *name)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	char path[64];
	pid_t pid = 0;
	FILE *file;

	while (proc && !pid && (entry = readdir(proc))) {
		char comm[64] = "";

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/comm", entry->d_name);
		file = fopen(path, "re");
		if (file && fscanf(file, "%63s", comm) == 1 && !strcmp(comm, name))
			pid = atoi(entry->d_name);
		if (file)
			fclose(file);
	}
	if (proc)
		closedir(proc);
	return pid;
}

/* The kernel thread that serves a wheel; 0 if there is none. */
static inline pid_t tw_kthread_of(int fd)
{
	char name[64];

	tw_kthread_name(fd, name);
	return tw_thread_named(name);
}

/* How often a thread went to sleep, and whether it sleeps; -1 if there is none. */
static inline long tw_switches_of(pid_t tid, bool *sleeps)
{
	char path[64], line[256], state;
	long nr = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	*sleeps = false;
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "State: %c", &state) == 1)
			*sleeps = state == 'S';
		else if (sscanf(line, "voluntary_ctxt_switches: %ld", &nr) == 1)
			break;
	if (file)
		fclose(file);
	return nr;
}

/*
 * Run on each processor for a moment. If a thread was about to go to sleep there, and its state
 * said so, it sleeps after that: only then is it counted.
 */
static inline void tw_visit_processors(void)
{
	cpu_set_t allowed, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	sched_setaffinity(0, sizeof(allowed), &allowed);
}

/*
 * How often a thread went to sleep, once it sleeps and nothing has woken it for a moment; -1 if it
 * does not come to rest. If a thread is woken, its state is "running" at once. So if it sleeps in
 * two readings, it has done all that it was woken for.
 */
static inline long tw_settled_switches(pid_t tid)
{
	bool slept, sleeps;
	long before, after;

	return TW_WAIT_FOR((before = tw_switches_of(tid, &slept),
			    tw_sleep(TW_MS), tw_visit_processors(),
			    after = tw_switches_of(tid, &sleeps),
			    slept && sleeps && before == after), 0) ? after : -1;
}

/* If the kernel is one with PREEMPT_RT, a thread also sleeps while it waits for a spinlock. */
static inline bool tw_kernel_is_rt(void)
{
	struct utsname names;

	return !uname(&names) && strstr(names.version, "PREEMPT_RT");
}

/* ---- files of the kernel ------------------------------------------------- */

/* If there is kmemleak, the amount of free memory does not show how the rest is used. */
static inline bool tw_kernel_notes_allocations(void)
{
	return !access("/sys/kernel/debug/kmemleak", F_OK);
}

/* The sum of all numbers behind a key in a file of keys and numbers. */
static inline long tw_sum_of(const char *path, const char *key)
{
	char line[256], word[64];
	long number, sum = 0;
	FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, " %63s %ld", word, &number) == 2 && !strcmp(word, key))
			sum += number;
	if (file)
		fclose(file);
	return sum;
}

/* Memory that the allocator has and nobody uses, also on the lists of each processor. */
static inline long tw_free_bytes(void)
{
	return tw_sum_of("/proc/meminfo", "MemFree:") * 1024 +
	       tw_sum_of("/proc/zoneinfo", "count:") * sysconf(_SC_PAGESIZE);
}

static inline int tw_write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_TRUNC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* If there is a limit, the kernel checks changes of the time that it keeps for ordinary threads. */
static inline int tw_limit_realtime(bool limit)
{
	return tw_write_text("/proc/sys/kernel/sched_rt_runtime_us", limit ? "950000" : "-1");
}

/*
 * The kernel keeps 50 ms in a second for ordinary threads beside realtime threads. Take that time
 * away, or give it back; kernels from 6.12 on have it in debugfs. Return 0 or -errno.
 */
static inline int tw_let_realtime_starve(bool starve)
{
	long cpu, nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	int ret = starve ? tw_limit_realtime(false) : 0;

	if (access("/sys/kernel/debug/sched", F_OK))
		mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	for (cpu = 0; cpu < nr_cpus && !ret; cpu++) {
		char path[100];

		snprintf(path, sizeof(path), "/sys/kernel/debug/sched/fair_server/cpu%ld/runtime",
			 cpu);
		if (!access(path, F_OK))
			ret = tw_write_text(path, starve ? "0" : "50000000");
	}
	return starve || ret ? ret : tw_limit_realtime(true);
}

/* Kernel memory that this cgroup is charged for, bytes; -1 if it does not show it. */
static inline long tw_kernel_bytes(void)
{
	char line[256], path[300] = "";
	FILE *file = fopen("/proc/self/cgroup", "re");
	long bytes = -1;

	if (!file)
		return -1;
	if (fgets(line, sizeof(line), file) && !strncmp(line, "0::", 3)) {
		line[strcspn(line, "\n")] = '\0';
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.stat", line + 3);
	}
	fclose(file);
	/* Memory that RCU has yet to free does not count. */
	tw_sleep(100 * TW_MS);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file) && bytes < 0)
		if (sscanf(line, "kernel %ld", &bytes) != 1)
			bytes = -1;
	if (file)
		fclose(file);
	return bytes;
}

/* ---- expiries of hrtimers ------------------------------------------------ */

#define TW_TRACING	"/sys/kernel/tracing"

/*
 * If an event is off, switch it on, and never off again: each switch patches the kernel's code on
 * all CPUs, which must not happen in the middle of a test.
 */
static inline int tw_trace_event(const char *path)
{
	char on = '0';
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (read(fd, &on, 1) < 0)
		on = '0';
	close(fd);
	return on == '1' ? 0 : tw_write_text(path, "1");
}

/* Trace expiries of hrtimers from now on. Return 0, or -errno. */
static inline int tw_trace_start(void)
{
	int ret;

	if (access(TW_TRACING "/trace", F_OK))
		mount("tracefs", TW_TRACING, "tracefs", 0, NULL);
	ret = tw_trace_event(TW_TRACING "/events/timer/hrtimer_expire_entry/enable");
	if (!ret)
		ret = tw_trace_event(TW_TRACING "/events/timer/hrtimer_expire_exit/enable");
	if (!ret)
		ret = tw_write_text(TW_TRACING "/trace", "");
	return ret ? ret : tw_write_text(TW_TRACING "/tracing_on", "1");
}

/* Stop, and open the trace, one line an event; NULL if it cannot be opened. */
static inline FILE *tw_trace_stop(void)
{
	tw_write_text(TW_TRACING "/tracing_on", "0");
	return fopen(TW_TRACING "/trace", "re");
}

/* Stop. Return how many expiries of ours there were; all gets those of any timer. */
static inline int tw_trace_expiries(int *all)
{
	FILE *file = tw_trace_stop();
	char line[512];
	int nr = 0;

	*all = 0;
	while (file && fgets(line, sizeof(line), file)) {
		const char *function = strstr(line, "function=");

		if (!function)
			continue;
		++*all;
		nr += !!strstr(function, "twheel");
	}
	if (file)
		fclose(file);
	return nr;
}

#endif /* TWHEEL_OUTSIDE_H */
