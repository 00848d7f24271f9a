// SPDX-License-Identifier: GPL-2.0
/*
 * Sync points, as tests control them: /sys/kernel/debug/twheel_syncpoints
 *
 * One line written there is one command, with the name of a sync point or "all":
 *
 *   POINT hold		the next thread that comes by waits there
 *   POINT release		it goes on
 *   POINT delay US ONE_IN	one thread in ONE_IN waits for US microseconds
 *   POINT off			neither
 *
 * Reading it shows for each sync point how many threads came by, how many are in it now, and
 * whether one is held.
 *
 * Locks: none.  A thread that may not sleep spins.
 */
#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "../../engine/syncpoint.h"

/* The longest time for which a thread is held, nanoseconds: nothing hangs for ever. */
#define HELD_MAX_NS	(20 * (u64)NSEC_PER_SEC)

enum hold {
	HOLD_NONE,
	HOLD_NEXT,
	HOLD_ONE,
};

/**
 * struct site - a sync point, as the test has set it
 * @hits: how many threads came by; atomic
 * @nr_inside: how many of them are in it; atomic
 * @hold: enum hold; atomic
 * @delay_us: how long a thread waits; written by the test, read by any thread
 * @one_in: how many threads come by for each that waits; likewise
 */
struct site {
	atomic_t hits;
	atomic_t nr_inside;
	atomic_t hold;
	u32 delay_us;
	u32 one_in;
};

static struct site sites[NR_SYNCPOINTS];
static struct dentry *syncpoints_file;

static const char * const syncpoint_names[NR_SYNCPOINTS] = {
	[SYNC_ARM_COPIED]	= "arm_copied",
	[SYNC_ARM_CHECKED]	= "arm_checked",
	[SYNC_ARM_ADDED]	= "arm_added",
	[SYNC_LOCKED]		= "locked",
	[SYNC_UNLOCKED]	= "unlocked",
	[SYNC_PAGE_ADDED]	= "page_added",
	[SYNC_EXTRA_NONE]	= "extra_none",
	[SYNC_EVENTS_COUNTED]	= "events_counted",
	[SYNC_READ_DRAINED]	= "read_drained",
	[SYNC_POLL_QUEUED]	= "poll_queued",
	[SYNC_POLL_DRAINED]	= "poll_drained",
	[SYNC_EVENTS_ADDED]	= "events_added",
	[SYNC_PLACES_FREED]	= "places_freed",
	[SYNC_WORDS_SET]	= "words_set",
	[SYNC_WORDS_FOUND]	= "words_found",
	[SYNC_WORDS_LOCKED]	= "words_locked",
	[SYNC_START]		= "start",
};

/* Whether the calling thread may sleep here: it is about to do nothing else. */
static bool may_sleep(void)
{
	return preemptible() && !rcu_preempt_depth() && task_is_running(current);
}

/* Wait for a moment: if there is one processor, the others have to run. */
static void pause(void)
{
	if (may_sleep())
		usleep_range(20, 50);
	else
		cpu_relax();
}

/**
 * twheel_syncpoint() - a sync point at which a test may hold a thread
 * @point: the sync point
 *
 * Context: any but hard interrupts; if it may sleep, it does, otherwise it spins.
 */
void twheel_syncpoint(enum twheel_syncpoint point)
{
	struct site *site = &sites[point];
	u32 delay_us = READ_ONCE(site->delay_us);
	u64 end_ns;

	atomic_inc(&site->nr_inside);
	atomic_inc(&site->hits);
	if (delay_us && !get_random_u32_below(READ_ONCE(site->one_in))) {
		end_ns = ktime_get_ns() + delay_us * (u64)NSEC_PER_USEC;
		while (ktime_get_ns() < end_ns)
			pause();
	}
	if (atomic_cmpxchg(&site->hold, HOLD_NEXT, HOLD_ONE) == HOLD_NEXT) {
		end_ns = ktime_get_ns() + HELD_MAX_NS;
		while (atomic_read(&site->hold) == HOLD_ONE && ktime_get_ns() < end_ns)
			pause();
		atomic_cmpxchg(&site->hold, HOLD_ONE, HOLD_NONE);
	}
	atomic_dec(&site->nr_inside);
}

static int site_set(struct site *site, const char *what, u32 delay_us, u32 one_in)
{
	if (!strcmp(what, "hold")) {
		atomic_set(&site->hold, HOLD_NEXT);
	} else if (!strcmp(what, "release")) {
		/* If a thread was held for too long, it has gone on before its time. */
		if (atomic_read(&site->hold) == HOLD_NONE)
			return -ETIME;
		atomic_set(&site->hold, HOLD_NONE);
	} else if (!strcmp(what, "off")) {
		atomic_set(&site->hold, HOLD_NONE);
		WRITE_ONCE(site->delay_us, 0);
		atomic_set(&site->hits, 0);
	} else if (!strcmp(what, "delay") && delay_us && one_in) {
		WRITE_ONCE(site->one_in, one_in);
		WRITE_ONCE(site->delay_us, delay_us);
	} else {
		return -EINVAL;
	}
	return 0;
}

static ssize_t syncpoints_write(struct file *file, const char __user *from, size_t len,
				loff_t *pos)
{
	char line[64] = {}, name[24], what[12];
	u32 delay_us = 0, one_in = 1;
	bool found = false;
	unsigned int i;
	int err;

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, len))
		return -EFAULT;
	if (sscanf(line, "%23s %11s %u %u", name, what, &delay_us, &one_in) < 2)
		return -EINVAL;
	for (i = 0; i < NR_SYNCPOINTS; i++) {
		if (strcmp(name, "all") && strcmp(name, syncpoint_names[i]))
			continue;
		found = true;
		err = site_set(&sites[i], what, delay_us, one_in);
		if (err)
			return err;
	}
	return found ? len : -ENOENT;
}

static int syncpoints_show(struct seq_file *m, void *unused)
{
	unsigned int i;

	for (i = 0; i < NR_SYNCPOINTS; i++)
		seq_printf(m, "%s %d %d %d\n", syncpoint_names[i],
			   atomic_read(&sites[i].hits), atomic_read(&sites[i].nr_inside),
			   atomic_read(&sites[i].hold) == HOLD_ONE);
	return 0;
}

static int syncpoints_open(struct inode *inode, struct file *file)
{
	return single_open(file, syncpoints_show, NULL);
}

static const struct file_operations syncpoints_fops = {
	.owner		= THIS_MODULE,
	.open		= syncpoints_open,
	.read		= seq_read,
	.write		= syncpoints_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

/**
 * twheel_syncpoints_init() - let tests control the sync points
 *
 * Without debugfs there is no file, and no thread is ever held.
 *
 * Context: process, when the module is loaded.
 */
void twheel_syncpoints_init(void)
{
	syncpoints_file = debugfs_create_file("twheel_syncpoints", 0600, NULL, NULL,
					      &syncpoints_fops);
}

/**
 * twheel_syncpoints_exit() - end what twheel_syncpoints_init() began
 *
 * Context: process, when the module is unloaded.
 */
void twheel_syncpoints_exit(void)
{
	debugfs_remove(syncpoints_file);
}
