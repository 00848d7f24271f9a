// SPDX-License-Identifier: GPL-2.0
/*
 * A histogram after HdrHistogram (Gil Tene): log-linear buckets.  Values below 2^11 have a bucket
 * each; above, each power of two is cut into 2^10 equal buckets, so that no value has an error of
 * more than 0.1 %.
 */
#include "histogram.h"

#include <err.h>
#include <stdlib.h>

#define HALF_BITS	10
#define HALF		(1ULL << HALF_BITS)
#define BUCKETS		((64 - HALF_BITS) * HALF + HALF)

struct histogram {
	uint64_t nr;
	uint64_t max;
	uint64_t count[BUCKETS];
};

struct histogram *histogram_new(void)
{
	struct histogram *histogram = calloc(1, sizeof(*histogram));

	if (!histogram)
		err(1, "a histogram");
	return histogram;
}

/* How many of the lowest bits make no difference to the bucket. */
static unsigned int shift_of(uint64_t value)
{
	return value < 2 * HALF ? 0 : 63 - __builtin_clzll(value) - HALF_BITS;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
	unsigned int shift = shift_of(value);

	histogram->count[shift * HALF + (value >> shift)]++;
	histogram->nr++;
	if (value > histogram->max)
		histogram->max = value;
}

/* The greatest value that a bucket holds. */
static uint64_t bucket_end(uint64_t bucket)
{
	unsigned int shift = bucket < 2 * HALF ? 0 : bucket / HALF - 1;

	return ((bucket - shift * HALF + 1) << shift) - 1;
}

uint64_t histogram_at(const struct histogram *histogram, double share)
{
	uint64_t seen = 0, bucket;

	for (bucket = 0; bucket < BUCKETS; bucket++) {
		seen += histogram->count[bucket];
		if (seen && seen >= share * histogram->nr)
			break;
	}
	if (bucket == BUCKETS || bucket_end(bucket) > histogram->max)
		return histogram->max;
	return bucket_end(bucket);
}

uint64_t histogram_max(const struct histogram *histogram)
{
	return histogram->max;
}
