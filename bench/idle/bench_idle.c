// SPDX-License-Identifier: GPL-2.0
/*
 * How long the processors were idle, for the benchmark, to the microsecond: in
 * /sys/module/bench_idle/parameters/idle_us.  /proc/stat rounds the same to 10 ms, and
 * /proc/timer_list takes forever if there are many timers.
 *
 * If a kernel counts idle time by its tick unless the tick is stopped, it is wrong by up to a tick
 * each time.  So probes take the time from the switch to the idle task, or from its halt, to the
 * next interrupt.  They assume one processor, as the machine that counts instructions has.
 */
#include <linux/cpumask.h>
#include <linux/kernel_stat.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/tick.h>		/* declares both functions in kernels before 7.3 */
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>

#ifdef IDLE_BY_PROBES

static u64 idle_ns, idle_since_ns;

static void idle_begins(void)
{
	if (!idle_since_ns)
		idle_since_ns = ktime_get_mono_fast_ns();
}

static void idle_ends(void)
{
	if (!idle_since_ns)
		return;
	idle_ns += ktime_get_mono_fast_ns() - idle_since_ns;
	idle_since_ns = 0;
}

static void on_sched_switch(void *data, bool preempt, struct task_struct *prev,
			    struct task_struct *next, unsigned int prev_state)
{
	if (is_idle_task(next))
		idle_begins();
	else
		idle_ends();
}

static void on_cpu_idle(void *data, unsigned int state, unsigned int cpu)
{
	/* The event comes twice: when the processor halts, and when it goes on. */
	if (state != U32_MAX)
		idle_begins();
	else
		idle_ends();
}

static void on_local_timer(void *data, int vector)
{
	idle_ends();
}

struct irqaction;

static void on_irq_handler(void *data, int irq, struct irqaction *action)
{
	idle_ends();
}

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tp;
} probes[] = {
	{ "sched_switch", on_sched_switch },
	{ "cpu_idle", on_cpu_idle },
	{ "local_timer_entry", on_local_timer },
	{ "irq_handler_entry", on_irq_handler },
};

static void find_probe(struct tracepoint *tp, void *priv)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (!strcmp(tp->name, probes[i].name))
			probes[i].tp = tp;
}

static void idle_stop(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (probes[i].tp)
			tracepoint_probe_unregister(probes[i].tp, probes[i].probe, NULL);
	tracepoint_synchronize_unregister();
}

static int idle_start(void)
{
	int i, err = 0;

	for_each_kernel_tracepoint(find_probe, NULL);
	for (i = 0; i < ARRAY_SIZE(probes) && !err; i++)
		err = probes[i].tp ?
			tracepoint_probe_register(probes[i].tp, probes[i].probe, NULL) : -ENOENT;
	if (err)
		idle_stop();
	return err;
}

static u64 get_idle_us(void)
{
	return idle_ns / 1000;
}

#else

static void idle_stop(void)
{
}

static int idle_start(void)
{
	return 0;
}

static u64 get_idle_us(void)
{
	u64 us = 0;
	int cpu;

	for_each_online_cpu(cpu)
		us += get_cpu_idle_time_us(cpu, NULL) +
		      get_cpu_iowait_time_us(cpu, NULL);
	return us;
}

#endif

static int show_idle_us(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%llu\n", get_idle_us());
}

static const struct kernel_param_ops idle_ops = {
	.get = show_idle_us,
};

module_param_cb(idle_us, &idle_ops, NULL, 0444);
MODULE_PARM_DESC(idle_us, "time that all processors were idle, microseconds");

static int __init bench_idle_init(void)
{
	return idle_start();
}
module_init(bench_idle_init);

static void __exit bench_idle_exit(void)
{
	idle_stop();
}
module_exit(bench_idle_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Idle time, for twheel's benchmark");
