/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the tests of tables.  In the virtual machine, each test runs with both back ends; on
 * the host, where there is no device, with the one in the process, and there with sanitizers.
 */
#ifndef LIB_TABLE_H
#define LIB_TABLE_H

#include "twheel_test.h"

#include <sys/stat.h>

#include <twheel/table.h>

#define IDLE		TWHEEL_TABLE_IDLE
#define PENDING		TWHEEL_TABLE_PENDING
#define UNREAD		TWHEEL_TABLE_UNREAD
#define NEVER		TWHEEL_TABLE_NEVER

#define VARIANTS(fixture)							\
	FIXTURE_VARIANT(fixture) {						\
		__u32 backend;							\
	};									\
	FIXTURE_VARIANT_ADD(fixture, process) { .backend = TWHEEL_TABLE_PROCESS };	\
	FIXTURE_VARIANT_ADD(fixture, device) { .backend = TWHEEL_TABLE_DEVICE }

/* A plain file of that name does not count. */
static inline bool device_is_there(void)
{
	struct stat st;

	return !stat(TW_DEVICE, &st) && S_ISCHR(st.st_mode);
}

#define SKIP_WITHOUT_DEVICE() do {						\
	if (variant->backend == TWHEEL_TABLE_DEVICE && !device_is_there())	\
		SKIP(return, "no " TW_DEVICE);					\
} while (0)

static inline int table_open(struct twheel_table **table, __u32 nr, __u32 backend, __u32 clock)
{
	const struct twheel_table_options options = {
		.size = sizeof(options),
		.backend = backend,
		.clock = clock,
	};

	*table = (void *)1;
	return twheel_table_open(table, nr, &options);
}

static inline struct twheel_table_change change(__u32 number, __u64 deadline_ns)
{
	return (struct twheel_table_change){
		.number = number, .result = TW_POISON32, .deadline_ns = deadline_ns,
	};
}

#endif /* LIB_TABLE_H */
