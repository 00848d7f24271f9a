// SPDX-License-Identifier: GPL-2.0
/*
 * The counters of the module, and what limits refuse: counted, traced, and told in the log
 *
 * Locks: none; that of a ratelimit is the kernel's business.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/compiler.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/hash.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#include "counters.h"
#include "trace.h"

DEFINE_PER_CPU(u64 [NR_COUNTERS], twheel_counters);

/*
 * The log tells once a minute of a user who is refused memory.  Users are told apart by a hash of
 * the uid, so that one who asks in a loop hides few others.  This is not in struct twheel_user,
 * which goes with the user's last wheel: opening one that is refused would be a line each time.
 */
#define TOLD_BITS	5

static struct ratelimit_state told[1 << TOLD_BITS] = {
	[0 ... (1 << TOLD_BITS) - 1] =
		RATELIMIT_STATE_INIT_FLAGS(told[0], 60 * HZ, 1, RATELIMIT_MSG_ON_RELEASE),
};

/**
 * twheel_refused() - note that a limit has refused something
 * @tw: the wheel that has asked, or NULL: memory is asked for a user
 * @uid: the user
 * @limit: COUNTER_REFUSED_*
 * @used: what there is, timeouts or bytes
 * @wanted: how much more was asked for
 * @most: the limit
 *
 * Context: process; does not sleep.
 */
void twheel_refused(const struct twheel *tw, kuid_t uid, enum twheel_counter limit, u64 used,
		    u64 wanted, u64 most)
{
	u32 number = from_kuid(&init_user_ns, uid);

	trace_twheel_limit(tw, number, limit, used, wanted, most);
	counter_add(limit, 1);
	if (limit == COUNTER_REFUSED_PENDING)
		return;
	if (__ratelimit(&told[hash_32(__kuid_val(uid), TOLD_BITS)]))
		pr_notice("user %u is refused memory by %s, which is %llu\n", number,
			  limit == COUNTER_REFUSED_MEMORY ? "max_memory_kb" : "max_user_memory_kb",
			  most >> 10);
}

/**
 * twheel_counter() - read a counter
 * @counter: which one
 *
 * Context: any; no lock is needed.
 * Return: the sum of all processors, which may change at any time.  It is not below 0: what begins
 * on a processor that was looked at already may end on one that is looked at later.
 */
u64 twheel_counter(enum twheel_counter counter)
{
	unsigned int cpu;
	s64 sum = 0;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(twheel_counters, cpu)[counter]);
	return max(sum, 0LL);
}
