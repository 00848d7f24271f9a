/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What an administrator reads: the counters of the module, and its users
 */
#ifndef _TWHEEL_STAT_H
#define _TWHEEL_STAT_H

struct attribute_group;

extern const struct attribute_group *twheel_attribute_groups[];

void twheel_stat_init(void);
void twheel_stat_exit(void);

#endif /* _TWHEEL_STAT_H */
