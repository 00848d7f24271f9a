/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by timers.bpf.c and peer_bpf.c: the memory through which a batch goes. */
#ifndef TWHEEL_BENCH_TIMERS_BPF_H
#define TWHEEL_BENCH_TIMERS_BPF_H

#include <linux/types.h>

/* It must be a power of two. */
#define TIMERS_BATCH	256

struct timers_entry {
	__u64 deadline_ns;	/* on CLOCK_MONOTONIC */
	__u32 who;
	__s32 result;		/* of cancel: 1 if it pended, 0 if not */
};

struct timers_batch {
	__u32 first;		/* the first timer to make */
	__u32 nr;
	__u32 nr_done;
	__s32 error;		/* the error of the first that failed, which ends the batch */
	struct timers_entry entry[TIMERS_BATCH];
};

/* timers.bpf.o, which peer_bpf.c contains. */
extern const char timers_object[], timers_object_end[];

#endif
