/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: what becomes of timeouts, the steps of passes, and what a limit refuses
 *
 * Documentation/operating.rst describes the events for those who read them.  Each names the wheel,
 * by its number and by the name that SETUP gave it, and a timeout by its id and its user_data.
 *
 * A loop over a batch has no tracepoint: while an event is on, the loop leaves each element to the
 * slow path, which has the tracepoint.  So an event that is off costs an instruction a batch, and
 * none is traced while no function may be called (user_access.h).
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM twheel

#if !defined(_TWHEEL_ENGINE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TWHEEL_ENGINE_TRACE_H

#include <linux/tracepoint.h>

#include "engine.h"

TRACE_DEFINE_ENUM(COUNTER_PASSES_SOFTIRQ);
TRACE_DEFINE_ENUM(COUNTER_PASSES_KTHREAD);
TRACE_DEFINE_ENUM(COUNTER_PASSES_CALL);
TRACE_DEFINE_ENUM(COUNTER_REFUSED_PENDING);
TRACE_DEFINE_ENUM(COUNTER_REFUSED_USER_MEMORY);
TRACE_DEFINE_ENUM(COUNTER_REFUSED_MEMORY);

/* The fields that the events begin with. */
#define WHEEL_ENTRY									\
	__field(u64, wheel)								\
	__array(char, name, TWHEEL_NAME_SIZE)
#define WHEEL_ASSIGN									\
	__entry->wheel = tw->control.nr;						\
	memcpy(__entry->name, tw->control.name, TWHEEL_NAME_SIZE)
#define WHEEL_FORMAT	"wheel=%llu name=%s"
#define WHEEL_VALUES	__entry->wheel, __entry->name

#define TIMEOUT_ENTRY									\
	WHEEL_ENTRY									\
	__field(u64, id)								\
	__field(u64, user_data)								\
	__field(u64, deadline_ns)
#define TIMEOUT_ASSIGN(_id, _user_data, _deadline_ns)					\
	WHEEL_ASSIGN;									\
	__entry->id = _id;								\
	__entry->user_data = _user_data;						\
	__entry->deadline_ns = _deadline_ns
#define TIMEOUT_FORMAT	WHEEL_FORMAT " id=0x%llx user_data=0x%llx deadline_ns=%llu"
#define TIMEOUT_VALUES	WHEEL_VALUES, __entry->id, __entry->user_data, __entry->deadline_ns

/* With W=1, clang calls the guards in the kernel's own macros unused variables. */
__diag_push();
__diag_ignore_all("-Wunused-variable", "guards in linux/tracepoint.h");

/* A timeout is PENDING that was not. */
TRACE_EVENT(twheel_arm,
	TP_PROTO(const struct tw_ctx *tw, const struct twheel_timeout *t),
	TP_ARGS(tw, t),
	TP_STRUCT__entry(
		TIMEOUT_ENTRY
		__field(u64, interval_ns)
	),
	TP_fast_assign(
		TIMEOUT_ASSIGN(timeout_id(t), t->user_data, timeout_known_ns(t));
		__entry->interval_ns = timeout_has_extra(t) ? timeout_extra(t)->interval_ns : 0;
	),
	TP_printk(TIMEOUT_FORMAT " interval_ns=%llu", TIMEOUT_VALUES, __entry->interval_ns)
);

/* A timeout was re-armed. */
TRACE_EVENT(twheel_move,
	TP_PROTO(const struct tw_ctx *tw, const struct twheel_timeout *t, u64 was_deadline_ns,
		 bool was_unread),
	TP_ARGS(tw, t, was_deadline_ns, was_unread),
	TP_STRUCT__entry(
		TIMEOUT_ENTRY
		__field(u64, interval_ns)
		__field(u64, was_deadline_ns)
		__field(u32, was_unread)
	),
	TP_fast_assign(
		TIMEOUT_ASSIGN(timeout_id(t), t->user_data, timeout_known_ns(t));
		__entry->interval_ns = timeout_has_extra(t) ? timeout_extra(t)->interval_ns : 0;
		__entry->was_deadline_ns = was_deadline_ns;
		__entry->was_unread = was_unread;
	),
	TP_printk(TIMEOUT_FORMAT " interval_ns=%llu was_deadline_ns=%llu was_unread=%u",
		  TIMEOUT_VALUES, __entry->interval_ns, __entry->was_deadline_ns,
		  __entry->was_unread)
);

/* CANCEL is about to end a timeout. */
TRACE_EVENT(twheel_cancel,
	TP_PROTO(const struct tw_ctx *tw, const struct twheel_timeout *t),
	TP_ARGS(tw, t),
	TP_STRUCT__entry(
		TIMEOUT_ENTRY
		__field(u32, was_unread)
	),
	TP_fast_assign(
		TIMEOUT_ASSIGN(timeout_id(t), t->user_data, timeout_known_ns(t));
		__entry->was_unread = timeout_is_unread(t);
	),
	TP_printk(TIMEOUT_FORMAT " was_unread=%u", TIMEOUT_VALUES, __entry->was_unread)
);

/* A timeout has become an event.  @late_ns counts from the edge of the tick in which it was due. */
TRACE_EVENT(twheel_expire,
	TP_PROTO(const struct tw_ctx *tw, const struct twheel_timeout *t, u64 late_ns, u64 count),
	TP_ARGS(tw, t, late_ns, count),
	TP_STRUCT__entry(
		TIMEOUT_ENTRY
		__field(u64, fired_ns)
		__field(u64, late_ns)
		__field(u64, count)
	),
	TP_fast_assign(
		TIMEOUT_ASSIGN(timeout_id(t), t->user_data, timeout_known_ns(t));
		__entry->fired_ns = t->fired_ns;
		__entry->late_ns = late_ns;
		__entry->count = count;
	),
	TP_printk(TIMEOUT_FORMAT " fired_ns=%llu late_ns=%llu count=%llu",
		  TIMEOUT_VALUES, __entry->fired_ns, __entry->late_ns, __entry->count)
);

/* A reader has got an event. */
TRACE_EVENT(twheel_read,
	TP_PROTO(const struct tw_ctx *tw, const struct twheel_event *event),
	TP_ARGS(tw, event),
	TP_STRUCT__entry(
		TIMEOUT_ENTRY
		__field(u64, fired_ns)
		__field(u64, read_ns)
		__field(u32, count)
		__field(u32, flags)
	),
	TP_fast_assign(
		TIMEOUT_ASSIGN(event->id, event->user_data, event->deadline_ns);
		__entry->fired_ns = event->fired_ns;
		__entry->read_ns = clock_now(&tw->clock);
		__entry->count = event->count;
		__entry->flags = event->flags;
	),
	TP_printk(TIMEOUT_FORMAT " fired_ns=%llu read_ns=%llu count=%u flags=0x%x",
		  TIMEOUT_VALUES, __entry->fired_ns, __entry->read_ns, __entry->count,
		  __entry->flags)
);

/* A step of a pass was taken. */
TRACE_EVENT(twheel_pass,
	TP_PROTO(const struct tw_ctx *tw, enum twheel_counter by, u64 now_ns, u32 scanned,
		 bool more),
	TP_ARGS(tw, by, now_ns, scanned, more),
	TP_STRUCT__entry(
		WHEEL_ENTRY
		__field(u64, now_ns)
		__field(u32, by)
		__field(u32, scanned)
		__field(u32, unread)
		__field(u32, more)
	),
	TP_fast_assign(
		WHEEL_ASSIGN;
		__entry->now_ns = now_ns;
		__entry->by = by;
		__entry->scanned = scanned;
		__entry->unread = tw->events.nr_unread;
		__entry->more = more;
	),
	TP_printk(WHEEL_FORMAT " by=%s now_ns=%llu scanned=%u unread=%u more=%u",
		  WHEEL_VALUES,
		  __print_symbolic(__entry->by,
				   { COUNTER_PASSES_SOFTIRQ, "softirq" },
				   { COUNTER_PASSES_KTHREAD, "kthread" },
				   { COUNTER_PASSES_CALL, "call" }),
		  __entry->now_ns, __entry->scanned, __entry->unread, __entry->more)
);

/* A limit has refused timeouts, or bytes for a user: then @tw is NULL. */
TRACE_EVENT(twheel_limit,
	TP_PROTO(const struct tw_ctx *tw, u32 uid, enum twheel_counter limit, u64 used, u64 wanted,
		 u64 most),
	TP_ARGS(tw, uid, limit, used, wanted, most),
	TP_STRUCT__entry(
		WHEEL_ENTRY
		__field(u32, uid)
		__field(u32, limit)
		__field(u64, used)
		__field(u64, wanted)
		__field(u64, most)
	),
	TP_fast_assign(
		__entry->wheel = tw ? tw->control.nr : 0;
		strscpy_pad(__entry->name, tw ? tw->control.name : "", TWHEEL_NAME_SIZE);
		__entry->uid = uid;
		__entry->limit = limit;
		__entry->used = used;
		__entry->wanted = wanted;
		__entry->most = most;
	),
	TP_printk(WHEEL_FORMAT " limit=%s uid=%u used=%llu wanted=%llu most=%llu",
		  WHEEL_VALUES,
		  __print_symbolic(__entry->limit,
				   { COUNTER_REFUSED_PENDING, "max_pending" },
				   { COUNTER_REFUSED_USER_MEMORY, "max_user_memory_kb" },
				   { COUNTER_REFUSED_MEMORY, "max_memory_kb" }),
		  __entry->uid, __entry->used, __entry->wanted, __entry->most)
);

__diag_pop();

#endif /* _TWHEEL_ENGINE_TRACE_H */

/* Kbuild has the compiler search this folder for the file that makes the events, wherever it is. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
