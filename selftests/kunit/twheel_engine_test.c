// SPDX-License-Identifier: GPL-2.0
/*
 * The engine under KUnit: a suite for each of its subjects
 *
 * The suite twheel_X is in engine/X_test.c beside this file, whose first line names the file of
 * the engine that it tests. Large parts have several suites: engine/time.h has those of clocks,
 * slack and schedules (life_test.c), engine/run.c those of steps (pass_test.c) and the softirq.
 *
 * The engine is compiled into this file unchanged, see engine_parts.h: many of its functions are
 * static. So are the suites, which are included after it. This file stands for the rest of the
 * module. The device is a stub, so that nothing is registered. A wheel is served by a worker
 * without a thread: its work stays queued, and a pass takes place when the test makes one, and only
 * then. The clock is the virtual one. The memory of users, the hrtimer, and some of the clocks of
 * the machine are those of engine/stubs.h: a case decides when an access faults, and when an alarm
 * rings.
 *
 * Each case has a wheel of its own, and when the case ends audit() counts all that must agree
 * in a wheel at rest. G1 to G8 are named at the cases that fail when the guarantee of that
 * name is broken; the banner of twheel_main.c lists them.
 */
/* This must precede the headers; twheel_main.c and counters.c define it again. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
/* Define no tracepoints: twheel.ko may be loaded, which has these events. */
#define NOTRACE

#include <kunit/test.h>
/* All headers that the engine includes: stubs.h replaces what they declare. */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/compiler_types.h>
#include <linux/completion.h>
#include <linux/container_of.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/jiffies.h>
#include <linux/kmemleak.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/lockdep.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/nsproxy.h>
#include <linux/overflow.h>
#include <linux/pagemap.h>
#include <linux/percpu.h>
#include <linux/poll.h>
#include <linux/preempt.h>
#include <linux/prefetch.h>
#include <linux/printk.h>
#include <linux/processor.h>
#include <linux/random.h>
#include <linux/ratelimit.h>
#include <linux/rcupdate.h>
#include <linux/rhashtable-types.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <linux/types.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

/*
 * The suites call the module's init and exit functions, and may be run again long after
 * this module was loaded.
 */
#undef __init
#define __init
#undef __exit
#define __exit
#undef module_init
#define module_init(...)		static_assert(true)
#undef module_exit
#define module_exit(...)		static_assert(true)
#undef MODULE_DESCRIPTION
#define MODULE_DESCRIPTION(...)	static_assert(true)
#undef MODULE_LICENSE
#define MODULE_LICENSE(...)	static_assert(true)
#undef MODULE_VERSION
#define MODULE_VERSION(...)	static_assert(true)

#include "engine/stubs.h"

#include "engine_parts.h"

/* If a case sets it, registering the device fails with that error. */
static int chardev_errno;
static int chardev_registered;

int twheel_chardev_register(void)
{
	if (!chardev_errno)
		chardev_registered++;
	return chardev_errno;
}

void twheel_chardev_unregister(void)
{
	chardev_registered--;
}

#include "engine/actions.c"
#include "engine/audit.c"
#include "engine/fixture.c"
#include "engine/transitions.c"

#include "engine/access_test.c"
#include "engine/counters_test.c"
#include "engine/timeout_test.c"
#include "engine/life_test.c"
#include "engine/clock_test.c"
#include "engine/slack_test.c"
#include "engine/periods_test.c"
#include "engine/wake_test.c"
#include "engine/submit_test.c"
#include "engine/arm_test.c"
#include "engine/cancel_test.c"
#include "engine/rearm_test.c"
#include "engine/read_test.c"
#include "engine/query_test.c"
#include "engine/expire_test.c"
#include "engine/pass_test.c"
#include "engine/alarm_test.c"
#include "engine/softirq_test.c"
#include "engine/places_test.c"
#include "engine/pages_test.c"
#include "engine/memory_test.c"
#include "engine/keys_test.c"
#include "engine/refresh_test.c"
#include "engine/user_test.c"
#include "engine/control_test.c"
#include "engine/main_test.c"

kunit_test_suites(&access_suite, &counters_suite, &timeout_suite, &life_suite, &clock_suite,
		  &slack_suite, &periods_suite, &wake_suite, &submit_suite, &arm_suite,
		  &cancel_suite, &rearm_suite, &read_suite, &query_suite, &expire_suite,
		  &pass_suite, &alarm_suite, &softirq_suite, &places_suite, &pages_suite,
		  &memory_suite, &keys_suite, &refresh_suite, &user_suite, &control_suite,
		  &main_suite);
