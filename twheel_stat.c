// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers for administrators: the counters of the module, beside the device in sysfs; its users, in
 * debugfs; and each wheel, in fdinfo.  Documentation/operating.rst and twheel(4) say what each
 * number means.
 */
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/module.h>
#include <linux/seq_file.h>

#include "engine/engine.h"
#include "twheel.h"

/* For root only: they show when the timeouts of any user expire. */
#define ATTRIBUTE_RO(_name, _value)							\
static ssize_t _name##_show(struct device *device, struct device_attribute *attribute,	\
			    char *text)							\
{											\
	return sysfs_emit(text, "%llu\n", (u64)(_value));				\
}											\
static DEVICE_ATTR(_name, 0400, _name##_show, NULL)

ATTRIBUTE_RO(wheels, twheel_counter(COUNTER_WHEELS));
ATTRIBUTE_RO(timeouts, twheel_counter(COUNTER_TIMEOUTS));
ATTRIBUTE_RO(bytes, twheel_charged());
ATTRIBUTE_RO(late, twheel_counter(COUNTER_LATE));
ATTRIBUTE_RO(passes_softirq, twheel_counter(COUNTER_PASSES_SOFTIRQ));
ATTRIBUTE_RO(passes_kthread, twheel_counter(COUNTER_PASSES_KTHREAD));
ATTRIBUTE_RO(passes_call, twheel_counter(COUNTER_PASSES_CALL));
ATTRIBUTE_RO(refused_pending, twheel_counter(COUNTER_REFUSED_PENDING));
ATTRIBUTE_RO(refused_user_memory, twheel_counter(COUNTER_REFUSED_USER_MEMORY));
ATTRIBUTE_RO(refused_memory, twheel_counter(COUNTER_REFUSED_MEMORY));

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

const struct attribute_group *twheel_attribute_groups[] = {
	&counters_group,
	NULL,
};

/* In debugfs, as a file of sysfs is one value and a page at most; for root, as the counters are. */
static int users_show(struct seq_file *m, void *unused)
{
	seq_puts(m, "uid userns wheels bytes\n");
	twheel_users_show(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(users);

static struct dentry *folder;

/* Make the files in debugfs.  Without debugfs there are none, and all else works. */
void twheel_stat_init(void)
{
	folder = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("users", 0400, folder, NULL, &users_fops);
}

void twheel_stat_exit(void)
{
	debugfs_remove(folder);
}

/* fdinfo */

/* By enum twheel_clock. */
static const char * const clock_names[] = {
	"monotonic", "boottime", "realtime", "tai", "virtual",
};

/* By enum twheel_wheel_state. */
static const char * const state_names[] = { "new", "running", "draining", "drained" };

/* The kthread, which lives as long as the module, is chosen when the wheel starts. */
static const char *kthread_name(const struct tw_ctx *tw)
{
	return control_is_started(&tw->control) ? tw->turn.queue->worker->task->comm : "none";
}

/* seq_printf() would take most of the time of reading fdinfo. */
static void number_show(struct seq_file *m, const char *key, u64 number)
{
	seq_put_decimal_ull(m, key, number);
	seq_putc(m, '\n');
}

static void ticks_show(struct seq_file *m, const char *key, const u64 ticks[TWHEEL_LATE_TICKS])
{
	unsigned int i;

	seq_put_decimal_ull(m, key, ticks[0]);
	for (i = 1; i < TWHEEL_LATE_TICKS; i++)
		seq_put_decimal_ull(m, " ", ticks[i]);
	seq_putc(m, '\n');
}

/* Show a wheel in /proc/PID/fdinfo/FD.  Monitors read it, so there is no walk (G7). */
void twheel_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct tw_ctx *tw = file_wheel(file);
	const struct twheel_user *user = tw->memory.user;
	/* The clock and the levels of a wheel that has started are constant. */
	bool started = control_is_started(&tw->control);
	struct twheel_info info = {};

	if (twheel_get_info(tw, &info))
		return;
	/* Several descriptors, of several processes, may be of one wheel. */
	number_show(m, "wheel:\t", tw->control.nr);
	/* Without a name there is nothing behind the tab: "none" may be the name of a wheel. */
	seq_printf(m, "name:\t%s\n", info.name);
	seq_printf(m, "state:\t%s\n", state_names[info.state]);
	seq_printf(m, "kthread:\t%s\n", kthread_name(tw));
	number_show(m, "uid:\t", from_kuid_munged(seq_user_ns(m), user_uid(user)));
	number_show(m, "userns:\t", user->ns->ns.inum);
	number_show(m, "bytes:\t", atomic_long_read(&tw->memory.charged));
	seq_printf(m, "clock:\t%s\n", clock_names[info.clock - TWHEEL_CLOCK_MONOTONIC]);
	seq_printf(m, "clock_offset_ns:\t%lld\n", started ? tw->clock.offset_ns :
			     twheel_namespace_offset_ns(info.clock));
	number_show(m, "now_ns:\t", info.now_ns);
	number_show(m, "tick_ns:\t", info.tick_ns);
	number_show(m, "slots:\t", info.slots);
	number_show(m, "levels:\t", started ? tw->wheel.nr_levels : 0);
	number_show(m, "max_pending:\t", info.max_pending);
	number_show(m, "setup_flags:\t", info.setup_flags);
	number_show(m, "event_size:\t", twheel_file(file)->event_size ?: info.event_size);
	number_show(m, "slack_ns:\t", info.slack_ns);
	number_show(m, "alarm_ns:\t", info.alarm_ns);
	number_show(m, "late:\t", info.late);
	number_show(m, "last_late_ns:\t", info.last_late_ns);
	number_show(m, "last_late_at_ns:\t", info.last_late_at_ns);
	ticks_show(m, "late_ticks:\t", info.late_ticks);
	ticks_show(m, "unread_ticks:\t", info.unread_ticks);
	number_show(m, "longest_unread_at_ns:\t", info.longest_unread_at_ns);
	number_show(m, "armed:\t", info.armed);
	number_show(m, "pending:\t", info.pending);
	number_show(m, "unread:\t", info.unread);
	number_show(m, "live:\t", info.live);
	number_show(m, "expirations:\t", info.expirations);
	number_show(m, "delivered:\t", info.delivered);
	number_show(m, "completed:\t", info.completed);
	number_show(m, "cancelled:\t", info.cancelled);
	number_show(m, "revoked:\t", info.revoked);
	number_show(m, "drained:\t", info.drained);
	number_show(m, "rearmed:\t", info.rearmed);
	number_show(m, "changes:\t", info.changes);
}
