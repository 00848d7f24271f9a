// SPDX-License-Identifier: GPL-2.0
/*
 * What an administrator reads: the counters of the module, beside the device in sysfs, and its
 * users, in debugfs.  Documentation/operating.rst says what each number means.
 *
 * Locks: none.
 */
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/sysfs.h>
#include <linux/types.h>

#include "engine/counters.h"
#include "engine/user.h"
#include "twheel.h"
#include "twheel_stat.h"

#define ATTRIBUTE_RO(_name, _mode, _value)						\
static ssize_t _name##_show(struct device *device, struct device_attribute *attribute,	\
			    char *text)							\
{											\
	return sysfs_emit(text, "%llu\n", (u64)(_value));				\
}											\
static DEVICE_ATTR(_name, _mode, _name##_show, NULL)

ATTRIBUTE_RO(wheels, 0444, twheel_counter(COUNTER_WHEELS));
/* As the users in debugfs: for root only. */
ATTRIBUTE_RO(timeouts, 0400, twheel_counter(COUNTER_TIMEOUTS));
ATTRIBUTE_RO(bytes, 0444, twheel_charged());
ATTRIBUTE_RO(late, 0444, twheel_counter(COUNTER_LATE));
ATTRIBUTE_RO(passes_softirq, 0444, twheel_counter(COUNTER_PASSES_SOFTIRQ));
ATTRIBUTE_RO(passes_kthread, 0444, twheel_counter(COUNTER_PASSES_KTHREAD));
ATTRIBUTE_RO(passes_call, 0444, twheel_counter(COUNTER_PASSES_CALL));
ATTRIBUTE_RO(refused_pending, 0444, twheel_counter(COUNTER_REFUSED_PENDING));
ATTRIBUTE_RO(refused_user_memory, 0444, twheel_counter(COUNTER_REFUSED_USER_MEMORY));
ATTRIBUTE_RO(refused_memory, 0444, twheel_counter(COUNTER_REFUSED_MEMORY));

static struct attribute *counters[] = {
	&dev_attr_wheels.attr,
	&dev_attr_timeouts.attr,
	&dev_attr_bytes.attr,
	&dev_attr_late.attr,
	&dev_attr_passes_softirq.attr,
	&dev_attr_passes_kthread.attr,
	&dev_attr_passes_call.attr,
	&dev_attr_refused_pending.attr,
	&dev_attr_refused_user_memory.attr,
	&dev_attr_refused_memory.attr,
	NULL,
};

static const struct attribute_group counters_group = {
	.name	= "counters",
	.attrs	= counters,
};

/* What the device has in sysfs. */
const struct attribute_group *twheel_attribute_groups[] = {
	&counters_group,
	NULL,
};

/*
 * A line for each user is more than a file of sysfs may have: it is one value, and a page at most.
 * And who has how much is the business of root.
 */
static int users_show(struct seq_file *m, void *unused)
{
	seq_puts(m, "uid userns wheels bytes\n");
	twheel_users_show(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(users);

static struct dentry *folder;

/**
 * twheel_stat_init() - make the files in debugfs
 *
 * Without debugfs there are none, and all else works.
 *
 * Context: process, when the module is loaded; sleeps.
 */
void twheel_stat_init(void)
{
	folder = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("users", 0400, folder, NULL, &users_fops);
}

/**
 * twheel_stat_exit() - remove the files in debugfs
 *
 * Context: process, when the module is unloaded; sleeps.
 */
void twheel_stat_exit(void)
{
	debugfs_remove(folder);
}
