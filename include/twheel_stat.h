/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What an administrator reads: the counters of the module, its users, and wheels
 */
#ifndef _TWHEEL_STAT_H
#define _TWHEEL_STAT_H

struct attribute_group;
struct file;
struct seq_file;

extern const struct attribute_group *twheel_attribute_groups[];

void twheel_stat_init(void);
void twheel_stat_exit(void);
void twheel_show_fdinfo(struct seq_file *m, struct file *file);

#endif /* _TWHEEL_STAT_H */
