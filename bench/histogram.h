/* SPDX-License-Identifier: GPL-2.0 */
/* The histogram of lateness, which the soak uses as well. */
#ifndef TWHEEL_HISTOGRAM_H
#define TWHEEL_HISTOGRAM_H

#include <stdint.h>

struct histogram *histogram_new(void);
void histogram_add(struct histogram *histogram, uint64_t value);
/* The value that this share of all values, 0 to 1, do not exceed. */
uint64_t histogram_at(const struct histogram *histogram, double share);
uint64_t histogram_max(const struct histogram *histogram);

#endif /* TWHEEL_HISTOGRAM_H */
