// SPDX-License-Identifier: GPL-2.0
/*
 * How long the processors were idle, for the benchmark, to the microsecond: in
 * /sys/module/bench_idle/parameters/idle_us.  /proc/stat rounds the same to 10 ms,
 * and /proc/timer_list takes forever where there are many timers.
 */
#include <linux/cpumask.h>
#include <linux/kernel_stat.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sysfs.h>
#include <linux/tick.h>		/* declares both functions in kernels before 7.3 */

static int get_idle_us(char *buffer, const struct kernel_param *kp)
{
	u64 us = 0;
	int cpu;

	for_each_online_cpu(cpu)
		us += get_cpu_idle_time_us(cpu, NULL) +
		      get_cpu_iowait_time_us(cpu, NULL);
	return sysfs_emit(buffer, "%llu\n", us);
}

static const struct kernel_param_ops idle_ops = {
	.get = get_idle_us,
};

module_param_cb(idle_us, &idle_ops, NULL, 0444);
MODULE_PARM_DESC(idle_us, "time that all processors were idle, microseconds");

static int __init bench_idle_init(void)
{
	return 0;
}
module_init(bench_idle_init);

static void __exit bench_idle_exit(void)
{
}
module_exit(bench_idle_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Idle time, for twheel's benchmark");
