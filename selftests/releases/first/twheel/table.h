/* SPDX-License-Identifier: MIT */
#ifndef _TWHEEL_TABLE_H
#define _TWHEEL_TABLE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TWHEEL_TABLE_NEVER	UINT64_MAX

struct twheel_table;

#define TWHEEL_TABLE_AUTO	0U
#define TWHEEL_TABLE_PROCESS	1U
#define TWHEEL_TABLE_DEVICE	2U

#define TWHEEL_TABLE_MONOTONIC	0U
#define TWHEEL_TABLE_BOOTTIME	1U
#define TWHEEL_TABLE_REALTIME	2U
#define TWHEEL_TABLE_TAI	3U
#define TWHEEL_TABLE_VIRTUAL	4U

#define TWHEEL_TABLE_PROCESSES	(1U << 0)

struct twheel_table_options {
	uint32_t size;
	uint32_t backend;
	uint32_t flags;
	uint32_t clock;
	uint64_t tick_ns;
	int32_t fd;
	uint32_t reserved;
};

struct twheel_table_change {
	uint32_t number;
	int32_t result;
	uint64_t deadline_ns;
};

#define TWHEEL_TABLE_IDLE	0
#define TWHEEL_TABLE_PENDING	1
#define TWHEEL_TABLE_UNREAD	2

#define TWHEEL_TABLE_AFTER	(1U << 0)

int32_t twheel_table_open(struct twheel_table **table, uint32_t nr,
			  const struct twheel_table_options *options);

void twheel_table_close(struct twheel_table *table);

uint32_t twheel_table_nr(const struct twheel_table *table);

uint32_t twheel_table_backend(const struct twheel_table *table);

int32_t twheel_table_start(struct twheel_table *table, uint32_t number, uint64_t deadline_ns);

int32_t twheel_table_start_after(struct twheel_table *table, uint32_t number, uint64_t delay_ns);

int32_t twheel_table_stop(struct twheel_table *table, uint32_t number);

int32_t twheel_table_apply(struct twheel_table *table, struct twheel_table_change *changes,
			   uint32_t nr, uint32_t flags);

int32_t twheel_table_expired(struct twheel_table *table, uint32_t *numbers, uint32_t nr,
			     uint64_t timeout_ns);

int32_t twheel_table_state(struct twheel_table *table, uint32_t number, uint64_t *deadline_ns);

int32_t twheel_table_fd(struct twheel_table *table);

uint64_t twheel_table_next(struct twheel_table *table);

uint64_t twheel_table_now(struct twheel_table *table);

int32_t twheel_table_advance(struct twheel_table *table, uint64_t to_ns);

#ifdef __cplusplus
}
#endif

#endif
