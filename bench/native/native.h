/* SPDX-License-Identifier: GPL-2.0 */
/*
 * make bench-native: the module's object code in a process, on the processor of this machine
 *
 * Two sides are linked together: kernel code, which includes headers of the kernel (the module,
 * workload.c, kernel.c), and process.c, which includes those of the C library. Here are the
 * functions that they call of each other.
 */
#ifndef NATIVE_H
#define NATIVE_H

/* Run the workload of a name; returns whether there is one. */
_Bool native_run(const char *workload, unsigned int nr, unsigned int vector);

/* Prepare what the current processor's data says about the task. */
void native_task_init(void);

/* Run work items that were queued. */
void native_run_works(void);

/* Zeroed memory, which is never given back. */
void *native_memory(unsigned long bytes);

/* Print the median of samples, each of which is the cycles that @vector timeouts took. */
void native_report(const char *who, const char *row, unsigned int nr, unsigned int vector,
		   unsigned int *cycles, unsigned int nr_cycles);

void __attribute__((noreturn)) native_fail(const char *why);

/* process.c defines it as well, for a process without the kernel's timers. */
void native_timers_init(void);

/* The end of the program's data, by the linker. */
extern char _end[];

/* process.S: a paravirtual operation, which says that interrupts are on. */
extern char native_flags[];

#endif /* NATIVE_H */
