// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of BPF: one in each element of an array, and a ring of those that expired.
 * User space puts a batch into memory that it shares with the program, and runs the
 * program (BPF_PROG_RUN) to start, move or cancel them: see peer_bpf.c.
 *
 * It needs no headers of the kernel that runs it: clang describes the map (BTF), and the kernel
 * finds the timer by that description.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "timers_bpf.h"

#define CLOCK_MONOTONIC	1
#define ENOENT		2
/* <linux/bpf.h> has it since 6.4. */
#define TIMER_ABS	1
/* If the ring was full, try the event again after this time. */
#define RETRY_NS	1000000

struct timeout {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct timeout);
} timers SEC(".maps");

/* The ring of timeouts that have expired, by their index. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

/* The later deadlines that user space stores, if it does. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} deadlines SEC(".maps");

/* Set before the program is loaded. Before 6.4, timers have relative times only. */
const volatile __u32 has_absolute = 1;
const volatile __u32 has_stores = 1;

/* User space maps the batch. */
struct timers_batch batch;

static long start(struct timeout *timeout, __u64 deadline_ns)
{
	__u64 now_ns;

	if (has_absolute)
		return bpf_timer_start(&timeout->timer, deadline_ns, TIMER_ABS);
	now_ns = bpf_ktime_get_ns();
	return bpf_timer_start(&timeout->timer,
			       deadline_ns > now_ns ? deadline_ns - now_ns : 0, 0);
}

/* If a store has moved the timeout, start its timer again and return 1. */
static int moved(struct timeout *timeout, const __u32 *who)
{
	__u64 *deadline_ns;

	if (!has_stores)
		return 0;
	deadline_ns = bpf_map_lookup_elem(&deadlines, who);
	return deadline_ns && *deadline_ns > bpf_ktime_get_ns() && !start(timeout, *deadline_ns);
}

/*
 * Called in a softirq.  The ring has room for all.  It is full only if a timeout is started again
 * before its event was read; the event then comes a little later.
 */
static int expire(void *map, __u32 *who, struct timeout *timeout)
{
	if (!moved(timeout, who) && bpf_ringbuf_output(&events, who, sizeof(*who), 0))
		bpf_timer_start(&timeout->timer, RETRY_NS, 0);
	return 0;
}

static long failed(long error)
{
	batch.error = error;
	return 1;
}

static long make_one(__u32 i, void *unused)
{
	__u32 who = batch.first + i;
	struct timeout *timeout = bpf_map_lookup_elem(&timers, &who);
	long error;

	if (!timeout)
		return failed(-ENOENT);
	error = bpf_timer_init(&timeout->timer, &timers, CLOCK_MONOTONIC) ?:
		bpf_timer_set_callback(&timeout->timer, expire);
	return error ? failed(error) : 0;
}

static long start_one(__u32 i, void *unused)
{
	struct timers_entry *entry = &batch.entry[i & (TIMERS_BATCH - 1)];
	struct timeout *timeout = bpf_map_lookup_elem(&timers, &entry->who);
	long error;

	if (!timeout)
		return failed(-ENOENT);
	error = start(timeout, entry->deadline_ns);
	return error ? failed(error) : 0;
}

/* Cancelling takes the callback away, and the timer can be started again only with one. */
static long cancel_one(__u32 i, void *unused)
{
	struct timers_entry *entry = &batch.entry[i & (TIMERS_BATCH - 1)];
	struct timeout *timeout = bpf_map_lookup_elem(&timers, &entry->who);

	if (!timeout)
		return failed(-ENOENT);
	entry->result = bpf_timer_cancel(&timeout->timer);
	bpf_timer_set_callback(&timeout->timer, expire);
	return 0;
}

/* bpf_loop() also counts the element that failed. */
static int done(long nr_called)
{
	batch.nr_done = nr_called - !!batch.error;
	return 0;
}

SEC("syscall")
int timers_make(void *unused)
{
	return done(bpf_loop(batch.nr, make_one, (void *)0, 0));
}

SEC("syscall")
int timers_start(void *unused)
{
	return done(bpf_loop(batch.nr, start_one, (void *)0, 0));
}

SEC("syscall")
int timers_cancel(void *unused)
{
	return done(bpf_loop(batch.nr, cancel_one, (void *)0, 0));
}

/* Only programs under the GPL may call the helpers for timers. */
char program_license[] SEC("license") = "GPL";
