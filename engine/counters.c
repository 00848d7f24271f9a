// SPDX-License-Identifier: GPL-2.0
/*
 * The counters of the module, and what limits refuse: counted, traced, and told in the log
 *
 * Locks: told_lock guards the table of users who were told of; no other lock is taken under it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/compiler.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#include "counters.h"
#include "trace.h"

/*
 * The log tells of a user who is refused memory once in this time, jiffies, and of so many users at
 * most.  A power of two.
 */
#define TELL_EVERY	(60 * HZ)
#define TELL_USERS	16

DEFINE_PER_CPU(u64 [NR_COUNTERS], twheel_counters);

/*
 * By a hash of the uid, of whom the log has told last, and until when that is enough; 0 for nobody.
 * Not in struct twheel_user: that goes with the user's last wheel, and opening one that is refused
 * would be a line each time.
 */
static struct told {
	kuid_t uid;
	unsigned long until;
} told[TELL_USERS];

static DEFINE_SPINLOCK(told_lock);

/* Whether the log is to tell of a user now. */
static bool refused_tells(kuid_t uid)
{
	static DEFINE_RATELIMIT_STATE(all_users, TELL_EVERY, TELL_USERS);
	struct told *last = &told[hash_32(__kuid_val(uid), ilog2(TELL_USERS))];
	bool tells;

	spin_lock(&told_lock);
	tells = !last->until || !uid_eq(last->uid, uid) || time_after(jiffies, last->until);
	if (tells)
		*last = (struct told){ .uid = uid, .until = (jiffies + TELL_EVERY) ?: 1 };
	spin_unlock(&told_lock);
	return tells && __ratelimit(&all_users);
}

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
	if (limit == COUNTER_REFUSED_PENDING) {
		counter_add(limit, wanted);
		return;
	}
	counter_add(limit, 1);
	if (refused_tells(uid))
		pr_notice("user %u is refused memory by %s, which is %llu\n", number,
			  limit == COUNTER_REFUSED_MEMORY ? "max_memory_kb" : "max_user_memory_kb",
			  most >> 10);
}

/**
 * twheel_counter() - read a counter
 * @counter: which one
 *
 * Context: any; no lock is needed.
 * Return: the sum of all processors, which may change at any time.
 */
u64 twheel_counter(enum twheel_counter counter)
{
	unsigned int cpu;
	u64 sum = 0;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(twheel_counters, cpu)[counter]);
	return sum;
}
