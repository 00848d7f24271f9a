// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the time and the memory that are used.
 *
 * If the clock of a virtual machine with one CPU counts instructions, the time is that of the
 * clock, less the idle time, which a module measures (see idle/): user, kernel, kthreads and
 * interrupts together.
 *
 * Otherwise it is the processor time of this process and of the module's kthreads.
 */
#include "bench.h"

#include <ctype.h>
#include <dirent.h>
#include <err.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

bool counts_instructions;

/* The sum of all numbers behind a key in a file of keys and numbers. */
static uint64_t sum_of(const char *path, const char *key)
{
	char line[4096], word[64];
	uint64_t number, sum = 0;
	FILE *file = fopen(path, "re");

	if (!file)
		err(1, "%s", path);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " %63s %*1[:] %" SCNu64, word, &number) == 2 ||
		    sscanf(line, " %63s %" SCNu64, word, &number) == 2)
			if (!strcmp(word, key))
				sum += number;
	fclose(file);
	return sum;
}

static uint64_t idle_ns(void)
{
	static const char path[] = "/sys/module/bench_idle/parameters/idle_us";
	FILE *file = fopen(path, "re");
	uint64_t us;

	if (!file || fscanf(file, "%" SCNu64, &us) != 1)
		err(1, "%s", path);
	fclose(file);
	return us * US;
}

uint64_t switches_of(int pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return sum_of(path, "voluntary_ctxt_switches:");
}

/* The module's kthreads; they stay while the program runs. */
static int kthreads[64], nr_kthreads = -1;

static void find_kthreads(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	char path[300], name[32];

	nr_kthreads = 0;
	while (proc && (entry = readdir(proc))) {
		FILE *file;

		if (!isdigit(entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file) && !strncmp(name, "twheel/", 7) &&
		    nr_kthreads < (int)ARRAY_SIZE(kthreads))
			kthreads[nr_kthreads++] = atoi(entry->d_name);
		fclose(file);
	}
	if (proc)
		closedir(proc);
}

uint64_t kthread_switches(void)
{
	uint64_t sum = 0;
	int i;

	if (nr_kthreads < 0)
		find_kthreads();
	for (i = 0; i < nr_kthreads; i++)
		sum += switches_of(kthreads[i]);
	return sum;
}

static uint64_t kthread_ns(void)
{
	uint64_t ns, sum = 0;
	char path[64];
	int i;

	for (i = 0; i < nr_kthreads; i++) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/schedstat", kthreads[i]);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fscanf(file, "%" SCNu64, &ns) == 1)
			sum += ns;
		fclose(file);
	}
	return sum;
}

void kthreads_rest(void)
{
	uint64_t was_ns;

	if (nr_kthreads < 0)
		find_kthreads();
	do {
		was_ns = kthread_ns();
		sleep_until(now_ns() + 10 * MS);
	} while (kthread_ns() != was_ns);
}

static uint64_t process_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static uint64_t process_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

/* Read the values in the reverse order of meter_stop(). */
void meter_start(struct meter *meter)
{
	meter->kthread_wakeups = kthread_switches();
	meter->wakeups = process_switches();
	meter->busy_ns = counts_instructions ? idle_ns() : kthread_ns() + process_ns();
	meter->elapsed_ns = now_ns();
}

void meter_stop(struct meter *meter)
{
	uint64_t now = now_ns();

	meter->elapsed_ns = now - meter->elapsed_ns;
	if (counts_instructions)
		meter->busy_ns = meter->elapsed_ns - (idle_ns() - meter->busy_ns);
	else
		meter->busy_ns = process_ns() + kthread_ns() - meter->busy_ns;
	meter->wakeups = process_switches() - meter->wakeups;
	meter->kthread_wakeups = kthread_switches() - meter->kthread_wakeups;
}

/*
 * MemFree, and the tens of megabytes that each processor may have on lists of its own.  First wait
 * until RCU and others have freed what they free in the background.
 */
uint64_t free_bytes(void)
{
	FILE *file = fopen("/proc/sys/vm/drop_caches", "we");

	sleep_until(now_ns() + SEC);
	if (file) {
		fputs("3\n", file);
		fclose(file);
	}
	return sum_of("/proc/meminfo", "MemFree:") * 1024 +
	       sum_of("/proc/zoneinfo", "count:") * sysconf(_SC_PAGESIZE);
}

uint64_t slab_bytes(void)
{
	return sum_of("/proc/meminfo", "Slab:") * 1024;
}

uint64_t process_bytes(void)
{
	/* RssAnon lacks the pages that a processor has not yet added. */
	return sum_of("/proc/self/smaps_rollup", "Anonymous:") * 1024;
}

/* A line of /proc/interrupts: "LOC:  12  34   Local timer interrupts". */
void count_interrupts(uint64_t *timers, uint64_t *all)
{
	FILE *file = fopen("/proc/interrupts", "re");
	char line[4096];

	*timers = 0;
	*all = sum_of("/proc/stat", "intr");
	while (file && fgets(line, sizeof(line), file)) {
		char *at = line + strspn(line, " "), *end;
		bool loc = !strncmp(at, "LOC:", 4);
		uint64_t number;

		/* /proc/stat lacks the interrupts whose names are letters. */
		if (!isupper(*at) || !strchr(at, ':'))
			continue;
		at = strchr(at, ':') + 1;
		while (number = strtoull(at, &end, 10), end != at) {
			*timers += loc ? number : 0;
			*all += number;
			at = end;
		}
	}
	if (file)
		fclose(file);
}

void sleep_until(uint64_t when_ns)
{
	struct timespec ts = { .tv_sec = when_ns / SEC, .tv_nsec = when_ns % SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

uint64_t got_bytes, got_page_bytes;

void *get_memory(size_t nr, size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, nr * size + 1, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		err(1, "%zu bytes", nr * size);
	got_bytes += nr * size;
	got_page_bytes += nr * size / page * page + page;
	return memory;
}
