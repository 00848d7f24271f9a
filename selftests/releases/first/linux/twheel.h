/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
#ifndef _UAPI_LINUX_TWHEEL_H
#define _UAPI_LINUX_TWHEEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define TWHEEL_TIME_NEVER	0x7fffffffffffffffULL

#define TWHEEL_SIZE_MAX		4096U

enum twheel_clock {
	TWHEEL_CLOCK_MONOTONIC	= 0x101,
	TWHEEL_CLOCK_BOOTTIME	= 0x102,
	TWHEEL_CLOCK_REALTIME	= 0x103,
	TWHEEL_CLOCK_TAI	= 0x104,
	TWHEEL_CLOCK_VIRTUAL	= 0x105,
};

#define TWHEEL_TICK_MIN_NS	1000ULL
#define TWHEEL_TICK_MAX_NS	3600000000000ULL
#define TWHEEL_TICK_DEFAULT_NS	1000000ULL
#define TWHEEL_SLOTS_MIN	4U
#define TWHEEL_SLOTS_MAX	1048576U
#define TWHEEL_ROUND_MIN_NS	100000000ULL
#define TWHEEL_EVENT_SIZE_MIN	40U
#define TWHEEL_EVENT_SIZE_MAX	4096U
#define TWHEEL_SLACK_MAX_NS	3600000000000ULL
#define TWHEEL_NAME_SIZE	16U

#define TWHEEL_SLACK_TICKS_MAX	32767U

#define TWHEEL_SETUP_ONE_LEVEL	(1U << 0)
#define TWHEEL_SETUP_KEYED	(1U << 1)

struct twheel_setup {
	__u32 size;
	__u32 clock;
	__aligned_u64 tick_ns;
	__u32 slots;
	__u32 max_pending;
	__u32 flags;
	__u32 event_size;
	__aligned_u64 slack_ns;
	char name[TWHEEL_NAME_SIZE];
};

#define TWHEEL_FEATURE_URING_CMD	(1ULL << 0)

#define TWHEEL_LATE_TICKS	32

#define TWHEEL_INFO_WALK	(1U << 0)

enum twheel_wheel_state {
	TWHEEL_WHEEL_NEW	= 0,
	TWHEEL_WHEEL_RUNNING	= 1,
	TWHEEL_WHEEL_DRAINING	= 2,
	TWHEEL_WHEEL_DRAINED	= 3,
};

struct twheel_info {
	__u32 size;
	__u32 flags;
	__u32 clock;
	__u32 setup_flags;
	__aligned_u64 tick_ns;
	__u32 slots;
	__u32 state;
	__u32 max_pending;
	__u32 max_pending_limit;
	__u32 max_vector;
	__u32 event_size;
	__aligned_u64 slack_ns;
	__aligned_u64 features;
	__aligned_u64 refresh_size;
	__u32 refresh_shift;
	__u32 reserved;
	__aligned_u64 now_ns;
	__aligned_u64 next_expiry_ns;
	__aligned_u64 armed;
	__aligned_u64 pending;
	__aligned_u64 unread;
	__aligned_u64 live;
	__aligned_u64 expirations;
	__aligned_u64 delivered;
	__aligned_u64 completed;
	__aligned_u64 cancelled;
	__aligned_u64 revoked;
	__aligned_u64 drained;
	__aligned_u64 rearmed;
	__aligned_u64 changes;
	__aligned_u64 late;
	__aligned_u64 last_late_ns;
	__aligned_u64 last_late_at_ns;
	__aligned_u64 late_ticks[TWHEEL_LATE_TICKS];
	__aligned_u64 unread_ticks[TWHEEL_LATE_TICKS];
	__aligned_u64 longest_unread_at_ns;
	__aligned_u64 alarm_ns;
	char name[TWHEEL_NAME_SIZE];
};

#define TWHEEL_VECTOR_BY_KEY	(1U << 0)

struct twheel_vector {
	__u32 size;
	__u32 entry_size;
	__u32 nr;
	__u32 flags;
	__aligned_u64 entries;
	__u32 nr_done;
	__u32 reserved;
};

#define TWHEEL_ARM_ABSOLUTE	(1U << 0)
#define TWHEEL_ARM_FIXED_DELAY	(1U << 1)
#define TWHEEL_ARM_IF_ABSENT	(1U << 2)
#define TWHEEL_ARM_IF_PRESENT	(1U << 3)
#define TWHEEL_ARM_ONLY_LATER	(1U << 4)
#define TWHEEL_ARM_ONLY_EARLIER	(1U << 5)

struct twheel_arm {
	__aligned_u64 expires_ns;
	__aligned_u64 interval_ns;
	__aligned_u64 user_data;
	__u32 flags;
	__u32 repeats;
	__aligned_u64 id;
	__s32 result;
	__u32 slack_ticks;
	__aligned_u64 was_deadline_ns;
};

enum twheel_verdict {
	TWHEEL_CREATED		= 1,
	TWHEEL_WAS_PENDING	= 2,
	TWHEEL_WAS_UNREAD	= 3,
};

struct twheel_cancel {
	__aligned_u64 id;
	__s32 result;
	__u32 reserved;
};

enum twheel_state {
	TWHEEL_STATE_PENDING	= 1,
	TWHEEL_STATE_EXPIRED	= 2,
	TWHEEL_STATE_DRAINED	= 3,
};

#define TWHEEL_STATUS_LAST_EVENT	(1U << 16)

struct twheel_status {
	__aligned_u64 id;
	__s32 result;
	__u32 state;
	__aligned_u64 user_data;
	__aligned_u64 deadline_ns;
	__aligned_u64 left_ns;
	__aligned_u64 interval_ns;
	__u32 flags;
	__u32 repeats_left;
	__u32 count;
	__u32 deliveries;
	__u32 slack_ticks;
	__u32 reserved;
	__aligned_u64 fired_ns;
};

struct twheel_list {
	__u32 size;
	__u32 entry_size;
	__u32 nr;
	__u32 flags;
	__aligned_u64 cursor;
	__aligned_u64 entries;
	__aligned_u64 changes;
};

struct twheel_advance {
	__u32 size;
	__u32 reserved;
	__aligned_u64 to_ns;
};

struct twheel_reopen {
	__u32 size;
	__u32 flags;
	__u32 event_size;
	__u32 reserved;
};

#define TWHEEL_EVENT_DRAINED	(1U << 0)
#define TWHEEL_EVENT_ENDED	(1U << 1)

struct twheel_event {
	__aligned_u64 id;
	__aligned_u64 user_data;
	__aligned_u64 deadline_ns;
	__aligned_u64 fired_ns;
	__u32 count;
	__u32 flags;
};

enum twheel_op {
	TWHEEL_OP_ARM		= 1,
	TWHEEL_OP_REARM		= 2,
	TWHEEL_OP_CANCEL	= 3,
	TWHEEL_OP_SETUP		= 4,
};

#define TWHEEL_RECORD_ABSENT_OK	(1U << 16)

struct twheel_record {
	__u32 op;
	__u32 flags;
	__aligned_u64 key;
	__aligned_u64 expires_ns;
	__aligned_u64 interval_ns;
	__u32 repeats;
	__u32 slack_ticks;
};

struct twheel_setup_record {
	__u32 op;
	__u32 flags;
	__u32 clock;
	__u32 event_size;
	__aligned_u64 tick_ns;
	__aligned_u64 slack_ns;
	__u32 slots;
	__u32 max_pending;
};

#define TWHEEL_REFRESH_GEN_BITS	28
#define TWHEEL_REFRESH_GEN_MASK	0x0fffffffU

#define TWHEEL_IOC_MAGIC	0xf7

enum twheel_command {
	TWHEEL_IOC_INFO		= _IO(TWHEEL_IOC_MAGIC, 0x00),
	TWHEEL_IOC_SETUP	= _IO(TWHEEL_IOC_MAGIC, 0x01),
	TWHEEL_IOC_ARM		= _IO(TWHEEL_IOC_MAGIC, 0x02),
	TWHEEL_IOC_REARM	= _IO(TWHEEL_IOC_MAGIC, 0x03),
	TWHEEL_IOC_CANCEL	= _IO(TWHEEL_IOC_MAGIC, 0x04),
	TWHEEL_IOC_QUERY	= _IO(TWHEEL_IOC_MAGIC, 0x05),
	TWHEEL_IOC_LIST		= _IO(TWHEEL_IOC_MAGIC, 0x06),
	TWHEEL_IOC_DRAIN	= _IO(TWHEEL_IOC_MAGIC, 0x07),
	TWHEEL_IOC_ADVANCE	= _IO(TWHEEL_IOC_MAGIC, 0x08),
	TWHEEL_IOC_REOPEN	= _IO(TWHEEL_IOC_MAGIC, 0x09),
};

#define TWHEEL_IOC_INFO		_IO(TWHEEL_IOC_MAGIC, 0x00)
#define TWHEEL_IOC_SETUP	_IO(TWHEEL_IOC_MAGIC, 0x01)
#define TWHEEL_IOC_ARM		_IO(TWHEEL_IOC_MAGIC, 0x02)
#define TWHEEL_IOC_REARM	_IO(TWHEEL_IOC_MAGIC, 0x03)
#define TWHEEL_IOC_CANCEL	_IO(TWHEEL_IOC_MAGIC, 0x04)
#define TWHEEL_IOC_QUERY	_IO(TWHEEL_IOC_MAGIC, 0x05)
#define TWHEEL_IOC_LIST		_IO(TWHEEL_IOC_MAGIC, 0x06)
#define TWHEEL_IOC_DRAIN	_IO(TWHEEL_IOC_MAGIC, 0x07)
#define TWHEEL_IOC_ADVANCE	_IO(TWHEEL_IOC_MAGIC, 0x08)
#define TWHEEL_IOC_REOPEN	_IO(TWHEEL_IOC_MAGIC, 0x09)

#endif
