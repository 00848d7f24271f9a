// SPDX-License-Identifier: GPL-2.0
/*
 * The functions of the kernel that the module and the kernel's timers call, in a process
 *
 * One thread runs, so locks are always free; they are taken by an atomic operation, as in the
 * kernel. Memory comes from huge pages, as the kernel's direct map has them; an area of vmalloc()
 * from small ones. Copies are by `rep movsb', as on processors with fast short copies. If a
 * function is missing here, it gets a stub that prints its name and ends the process: see
 * tools/vm/native.sh.
 *
 * Kernel code keeps the stack aligned to 8 bytes, so this file is compiled with -mstackrealign.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "native.h"

#define PAGE		4096UL
#define HUGE_PAGE	(2UL << 20)

/* Do not use vector registers: they would be saved where the stack is not aligned for it. */
#define VARIADIC	__attribute__((target("general-regs-only")))

void native_fail(const char *why)
{
	fprintf(stderr, "native: %s\n", why);
	exit(1);
}

void unimplemented(const char *name)
{
	fprintf(stderr, "native: the kernel's %s() is missing\n", name);
	exit(1);
}

/* Memory */

static char *arena, *arena_end;

static void *take(size_t bytes)
{
	char *taken;

	bytes = (bytes + PAGE - 1) & -PAGE;
	if ((size_t)(arena_end - arena) < bytes) {
		size_t size = bytes + 64 * HUGE_PAGE;

		arena = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
		if (arena == MAP_FAILED)
			native_fail("no memory");
		arena_end = arena + size;
		arena = (char *)(((uintptr_t)arena + HUGE_PAGE - 1) & -HUGE_PAGE);
		madvise(arena, arena_end - arena, MADV_HUGEPAGE);
	}
	taken = arena;
	arena += bytes;
	memset(taken, 0, bytes);
	return taken;
}

void *native_memory(unsigned long bytes)
{
	return take(bytes);
}

/* Freed blocks of 2^order pages. */
static void *freed[16];

void *get_free_pages_noprof(unsigned int flags, unsigned int order)
{
	void *pages = freed[order];

	if (!pages)
		return take(PAGE << order);
	freed[order] = *(void **)pages;
	return memset(pages, 0, PAGE << order);
}

void free_pages(unsigned long address, unsigned int order)
{
	if (!address)
		return;
	*(void **)address = freed[order];
	freed[order] = (void *)address;
}

static unsigned int order_of(size_t bytes)
{
	unsigned int order = 0;

	while (PAGE << order < bytes)
		order++;
	return order;
}

void *get_zeroed_page_noprof(unsigned int flags)
{
	return get_free_pages_noprof(flags, 0);
}

void *alloc_pages_exact_noprof(size_t bytes, unsigned int flags)
{
	return get_free_pages_noprof(flags, order_of(bytes));
}

void free_pages_exact(void *pages, size_t bytes)
{
	free_pages((unsigned long)pages, order_of(bytes));
}

/* Never freed: a workload has few of these. */
void *__vmalloc_noprof(size_t bytes, unsigned int flags)
{
	void *area = mmap(NULL, (bytes + PAGE - 1) & -PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return area == MAP_FAILED ? NULL : area;
}

void *vzalloc_noprof(size_t bytes)
{
	return __vmalloc_noprof(bytes, 0);
}

void *__kmalloc_noprof(size_t bytes, unsigned int flags)
{
	return calloc(1, bytes);
}

void *__kmalloc_cache_noprof(void *cache, unsigned int flags, size_t bytes)
{
	return calloc(1, bytes);
}

void kfree(void *memory)
{
	free(memory);
}

char kmalloc_caches[65536];
unsigned long _totalram_pages = 4UL << 20;
unsigned long USER_PTR_MAX = 0x7ffffffff000;

int __SCT__cond_resched(void)
{
	native_run_works();
	return 0;
}

int __cond_resched(void)
{
	return __SCT__cond_resched();
}

unsigned int get_random_u32(void)
{
	return 0x1234567;
}

void get_random_bytes(void *to, size_t bytes)
{
	memset(to, 7, bytes);
}

void __mutex_init(void *mutex, const char *name, void *key)
{
	memset(mutex, 0, 32);
}

/* An empty list of waiters, behind the lock. */
void __init_waitqueue_head(void **queue, const char *name, void *key)
{
	queue[0] = NULL;
	queue[1] = &queue[1];
	queue[2] = &queue[1];
}

/* A processor's data: %gs leads to a copy of the program's */

char pcpu_hot[128] __attribute__((aligned(64)));
uintptr_t this_cpu_off;
unsigned long jiffies, page_offset_base, phys_base, vmemmap_base;
unsigned long __per_cpu_offset[64], __cpu_possible_mask[128], __cpu_online_mask[128];
unsigned int nr_cpu_ids = 1;
int __num_online_cpus = 1;

__attribute__((weak)) void native_timers_init(void)
{
}

/* The first page has the stack protector's value. */
static void processor_init(void)
{
	char *copy = mmap(NULL, (uintptr_t)_end, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t base = (uintptr_t)copy;

	if (copy == MAP_FAILED || syscall(SYS_arch_prctl, ARCH_SET_GS, base))
		native_fail("no data for the processor");
	asm volatile("movq %0, %%gs:this_cpu_off" : : "r" (base) : "memory");
	__per_cpu_offset[0] = base;
	native_task_init();
	native_timers_init();
}

/* Locks.  The count of preempt_disable() is 8 bytes behind the start of pcpu_hot. */

static inline void preempt_add(int nr)
{
	asm volatile("addl %0, %%gs:pcpu_hot+8" : : "ri" (nr) : "memory", "cc");
}

static inline bool try_lock(unsigned int *lock)
{
	unsigned int is_free = 0;

	return __atomic_compare_exchange_n(lock, &is_free, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

void _raw_spin_lock(unsigned int *lock)
{
	preempt_add(1);
	if (!try_lock(lock))
		native_fail("a lock is taken twice");
}

int _raw_spin_trylock(unsigned int *lock)
{
	_raw_spin_lock(lock);
	return 1;
}

void _raw_spin_unlock(unsigned int *lock)
{
	__atomic_store_n((unsigned char *)lock, 0, __ATOMIC_RELEASE);
	preempt_add(-1);
}

unsigned long _raw_spin_lock_irqsave(unsigned int *lock)
{
	_raw_spin_lock(lock);
	return 0;
}

void *pv_ops[128] = { [0 ... 127] = native_flags };

/* Time */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

uint64_t ktime_get(void)
{
	return now_ns();
}

uint64_t ktime_get_with_offset(int offset)
{
	return now_ns();
}

/* Text.  A level of the kernel's log comes before it. */

int VARIADIC _printk(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format + (*format == 1 ? 2 : 0), args);
	va_end(args);
	return 0;
}

/* The linker redirects snprintf() to this: the C library's wants an aligned stack. */
int VARIADIC __wrap_snprintf(char *to, size_t bytes, const char *format, ...)
{
	va_list args;
	int written;

	va_start(args, format);
	written = vsnprintf(to, bytes, format, args);
	va_end(args);
	return written;
}

void __warn_printk(const char *format, ...)
{
	native_fail(format);
}

void __stack_chk_fail(void)
{
	native_fail("the stack is overwritten");
}

void refcount_warn_saturate(void *refcount, int type)
{
	native_fail("a count of references is wrong");
}

/* Copies from and to the user's memory, which is this process's */

unsigned long _copy_from_user(void *to, const void *from, unsigned long bytes)
{
	asm volatile("rep movsb" : "+D" (to), "+S" (from), "+c" (bytes) : : "memory");
	return 0;
}

/* The kernel's library */

unsigned long _find_next_bit(const unsigned long *map, unsigned long nr, unsigned long from)
{
	for (; from < nr; from++) {
		unsigned long bits = map[from / 64] >> from % 64;

		if (bits)
			return (from += __builtin_ctzl(bits)) < nr ? from : nr;
		from |= 63;
	}
	return nr;
}

void __bitmap_set(unsigned long *map, unsigned int start, int nr)
{
	for (; nr > 0; nr--, start++)
		map[start / 64] |= 1UL << start % 64;
}

void *memchr_inv(const void *from, int byte, size_t bytes)
{
	const unsigned char *at;

	for (at = from; bytes; bytes--, at++)
		if (*at != byte)
			return (void *)at;
	return NULL;
}

/* Rows */

static double cycles_per_ns;

static int compare(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return (x > y) - (x < y);
}

void native_report(const char *who, const char *row, unsigned int nr, unsigned int vector,
		   unsigned int *cycles, unsigned int nr_cycles)
{
	if (!nr_cycles)
		return;
	qsort(cycles, nr_cycles, sizeof(*cycles), compare);
	printf("%s,%s,%u,%u,%.2f\n", who, row, nr, vector,
	       cycles[nr_cycles / 2] / cycles_per_ns / vector);
}

static double measure_cycles(void)
{
	uint64_t begin_ns = now_ns(), begin = __builtin_ia32_rdtsc();

	while (now_ns() - begin_ns < 50000000)
		;
	return (double)(__builtin_ia32_rdtsc() - begin) / (double)(now_ns() - begin_ns);
}

int main(int argc, char **argv)
{
	int i;

	processor_init();
	cycles_per_ns = measure_cycles();
	for (i = 1; i + 2 < argc; i += 3)
		if (!native_run(argv[i], strtoul(argv[i + 1], NULL, 0),
				strtoul(argv[i + 2], NULL, 0)))
			native_fail("usage: native WORKLOAD TIMEOUTS VECTOR...");
	return 0;
}
