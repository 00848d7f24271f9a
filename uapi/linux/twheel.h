/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * twheel: millions of timeouts behind one file descriptor.
 *
 * Each open of /dev/twheel is a wheel of its own.  dup, fork, exec and passing
 * the descriptor over a socket share it; the last close destroys it.  To open
 * /proc/self/fd/N is to open /dev/twheel: that is a new wheel.  Any thread of any
 * process that holds the descriptor may use it at any time.
 *
 * Conventions that hold for every call:
 *
 * - Times are nanoseconds of the wheel's own clock, 64 bits, unsigned.
 *   TWHEEL_TIME_NEVER (2^63-1) is the end of time: it and all above it are
 *   accepted, never expire, and read back as TWHEEL_TIME_NEVER.  A deadline
 *   before it whose tick ends after it never expires either, and reads back as
 *   it is.
 * - The structure a command points to begins with its own ``size``.  A caller
 *   built against an older header passes a smaller one and gets the old
 *   behaviour; a larger one is taken when what this kernel does not know is
 *   zero (E2BIG otherwise).  INFO and the rows of LIST only go out: in a larger
 *   one the rest is filled with zeroes.
 * - A vector names the size of its elements in ``entry_size``, which is also
 *   their stride, under the same rule.
 * - Vectors are done in order and go on past an entry that fails: each entry
 *   carries its own ``result``, and the ioctl returns how many succeeded.  It
 *   fails as a whole only when nothing could be attempted.  A fault in the
 *   caller's memory, DRAIN, and a signal that kills stop the call: what stands
 *   before is done, reported and counted, nothing from there on has been done,
 *   and ``nr_done`` says where that is.
 * - Unknown flags and non-zero reserved fields are EINVAL, an unknown command
 *   is ENOTTY, and a call or an entry that fails changes nothing.
 *
 * Errors, the same for all commands (as errno of the call, or negated in the
 * ``result`` of an entry):
 *
 *	EAGAIN		max_pending places are in use; poll says POLLOUT when
 *			one is free again.  That says nothing about memory: ENOMEM
 *			and ENOSPC may come all the same, and whoever gets them
 *			should wait before the next try, since poll() does not.
 *			Of read(), see struct twheel_event.
 *	E2BIG		something this kernel does not know is not zero, a
 *			structure or an element is larger than a page, or a
 *			vector is longer than INFO's max_vector
 *	EBUSY		SETUP after SETUP or after the first ARM
 *	EFAULT		the memory cannot be read or written
 *	EINTR		a signal came while ADVANCE, DRAIN or a blocking read()
 *			waited, and its handler does not restart system calls
 *	EINVAL		a field has a value outside its range
 *	ENOENT		no such timeout: its last event was read, it was
 *			cancelled, or there never was one
 *	ENOMEM		out of memory, or the memory cgroup is at its limit
 *	ENOSPC		the module's limit of memory is reached, or the user's share
 *			of it; open() and mmap() say so, too
 *	ENOTTY		unknown command
 *	EOPNOTSUPP	ADVANCE on a wheel whose clock is not TWHEEL_CLOCK_VIRTUAL
 *	ESHUTDOWN	the wheel has been drained, or DRAIN has begun
 */
#ifndef _UAPI_LINUX_TWHEEL_H
#define _UAPI_LINUX_TWHEEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* The end of time, nanoseconds: what is due then never expires. */
#define TWHEEL_TIME_NEVER	0x7fffffffffffffffULL

/* ``next_expiry_ns`` when nothing is going to expire. */
#define TWHEEL_NO_EXPIRY	0xffffffffffffffffULL

/**
 * enum twheel_clock - what a wheel's time is
 * @TWHEEL_CLOCK_MONOTONIC: CLOCK_MONOTONIC; stands still while suspended
 * @TWHEEL_CLOCK_BOOTTIME: CLOCK_BOOTTIME; goes on while suspended
 * @TWHEEL_CLOCK_REALTIME: CLOCK_REALTIME.  Set forwards, it expires what is
 *	now due; set backwards, it expires nothing twice and nothing early
 * @TWHEEL_CLOCK_TAI: CLOCK_TAI
 * @TWHEEL_CLOCK_VIRTUAL: starts at 0 and moves by TWHEEL_IOC_ADVANCE only
 *
 * A wheel lives in the time namespace of the process that set it up, or armed it
 * first: absolute times, ``now_ns`` and refresh deadlines are those of that
 * namespace, whoever uses the descriptor later.
 */
enum twheel_clock {
	TWHEEL_CLOCK_MONOTONIC	= 0,
	TWHEEL_CLOCK_BOOTTIME	= 1,
	TWHEEL_CLOCK_REALTIME	= 2,
	TWHEEL_CLOCK_TAI	= 3,
	TWHEEL_CLOCK_VIRTUAL	= 4,
};

/* Ranges of SETUP; what lies outside is EINVAL. */
#define TWHEEL_TICK_MIN_NS	1000ULL			/* 1 us */
#define TWHEEL_TICK_MAX_NS	3600000000000ULL	/* 1 h */
#define TWHEEL_SLOTS_MIN	4U
#define TWHEEL_SLOTS_MAX	1048576U		/* 2^20 */

/* SETUP flags */
/*
 * One level of slots, as in the classic hashed wheel: a deadline beyond
 * slots * tick_ns is looked at once a round until it is due.  Without this
 * flag farther deadlines wait in coarser levels, and nothing is looked at in
 * vain.
 */
#define TWHEEL_SETUP_ONE_LEVEL	(1U << 0)

/**
 * struct twheel_setup - argument of TWHEEL_IOC_SETUP
 * @size: sizeof(struct twheel_setup)
 * @clock: enum twheel_clock
 * @tick_ns: granularity, TWHEEL_TICK_MIN_NS to TWHEEL_TICK_MAX_NS; 0 for the
 *	default: 1 ms, unless the module's parameter default_tick_us says
 *	otherwise.  A timeout expires at the first multiple of tick_ns at
 *	or after its deadline, counted from the clock's own zero, so that wheels
 *	with the same tick share their wake-ups.
 * @slots: slots of the first level, TWHEEL_SLOTS_MIN to TWHEEL_SLOTS_MAX,
 *	rounded up to a power of two; 0 for the default, 1024
 * @max_pending: how many timeouts may be in use at a time (pending, or expired
 *	with an event still unread), 1 to INFO's max_pending_limit; 0 for the
 *	default: 1,048,576 (2^20), or max_pending_limit where that is less
 * @flags: TWHEEL_SETUP_*
 * @reserved: must be 0
 *
 * Allowed once and only before the first ARM (EBUSY after).  A wheel that is
 * armed without it has CLOCK_MONOTONIC, the defaults and no flags; INFO reads
 * back what is in force.
 */
struct twheel_setup {
	__u32 size;
	__u32 clock;
	__aligned_u64 tick_ns;
	__u32 slots;
	__u32 max_pending;
	__u32 flags;
	__u32 reserved;
};

/* Features of struct twheel_info */
/* mmap() of the descriptor gives the refresh table, see twheel_refresh(). */
#define TWHEEL_FEATURE_REFRESH	(1ULL << 0)

/**
 * struct twheel_info - argument of TWHEEL_IOC_INFO
 * @size: sizeof(struct twheel_info), in
 * @clock: enum twheel_clock in force
 * @tick_ns: granularity in force
 * @slots: slots of the first level in force
 * @levels: levels of slots; 0 until the wheel has been set up or armed
 * @max_pending: limit in force
 * @max_pending_limit: the greatest max_pending that SETUP takes: the module's
 *	parameter of that name, 16,777,216 (2^24) by default
 * @max_vector: the longest vector one call takes, entries
 * @setup_flags: TWHEEL_SETUP_* in force
 * @features: TWHEEL_FEATURE_*
 * @now_ns: the wheel's clock
 * @next_expiry_ns: when the next timeout expires, rounded up to its tick;
 *	TWHEEL_NO_EXPIRY when none will.  Found by walking what pends.
 * @max_late_ns: the greatest lateness of an expiration so far; timeouts that
 *	were already due when armed are not counted
 * @armed: timeouts accepted
 * @pending: timeouts that wait for an expiry.  A periodic one stays pending
 *	while it has an unread event, unless its delay is fixed
 * @unread: events that wait to be read
 * @live: places in use: pending, or with an unread event
 * @expirations: expirations so far, each period of a periodic one; the periods that
 *	pass while its event is unread are counted when that event is read, revoked
 *	or drained
 * @delivered: events read, those flagged TWHEEL_EVENT_DRAINED as well
 * @completed: timeouts that ended because their last event was read
 * @cancelled: timeouts that ended by CANCEL while pending with no unread event
 * @revoked: timeouts that ended by CANCEL with an unread event, which never
 *	came
 * @drained: timeouts that ended because their event flagged
 *	TWHEEL_EVENT_DRAINED was read
 * @rearmed: timeouts that began a new life by REARM
 * @refresh_size: bytes that hold the word of each timeout there may be, see
 *	twheel_refresh(): the length for mmap().  Final once the wheel has been set
 *	up or armed.
 *
 * At rest: armed = live + completed + cancelled + revoked + drained.  And
 * delivered = completed + drained + the events after which a periodic timeout
 * lived on.
 */
struct twheel_info {
	__u32 size;
	__u32 clock;
	__aligned_u64 tick_ns;
	__u32 slots;
	__u32 levels;
	__u32 max_pending;
	__u32 max_pending_limit;
	__u32 max_vector;
	__u32 setup_flags;
	__aligned_u64 features;
	__aligned_u64 now_ns;
	__aligned_u64 next_expiry_ns;
	__aligned_u64 max_late_ns;
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
	__aligned_u64 refresh_size;
};

/* The smallest ``size`` of struct twheel_info, without refresh_size. */
#define TWHEEL_INFO_SIZE_VER0	160

/**
 * struct twheel_vector - argument of ARM, REARM, CANCEL and QUERY
 * @size: sizeof(struct twheel_vector)
 * @entry_size: sizeof() of one element
 * @nr: how many elements, 0 to INFO's max_vector
 * @flags: must be 0
 * @entries: pointer to the elements: struct twheel_arm for ARM and REARM,
 *	struct twheel_cancel for CANCEL, struct twheel_status for QUERY
 * @nr_done: out: how many elements were attempted, from the first one on.  All
 *	@nr of them, unless the call ended early: by DRAIN, by a fault, or by a
 *	signal that kills.  Each of these has its result.  Nothing was done for
 *	those that follow; after DRAIN their results say -ESHUTDOWN, after a fault
 *	or a signal they are as they were.  0 when the call failed; not written
 *	where the vector itself is refused.
 * @reserved: must be 0
 */
struct twheel_vector {
	__u32 size;
	__u32 entry_size;
	__u32 nr;
	__u32 flags;
	__aligned_u64 entries;
	__u32 nr_done;
	__u32 reserved;
};

/* Flags of struct twheel_arm */
/* expires_ns is a point on the wheel's clock, not a distance from now. */
#define TWHEEL_ARM_ABSOLUTE	(1U << 0)
/*
 * The next period begins when the event is read, instead of keeping its phase.
 * Only with an interval.
 */
#define TWHEEL_ARM_FIXED_DELAY	(1U << 1)

/**
 * struct twheel_arm - one element of ARM and of REARM
 * @expires_ns: the deadline: relative to now, or with TWHEEL_ARM_ABSOLUTE a
 *	point on the wheel's clock.  One that has passed is accepted and expires
 *	at the next turn.
 * @interval_ns: 0 for a one-shot, else the period; below one tick it is raised
 *	to one tick
 * @user_data: handed back in events; ignored by REARM
 * @flags: TWHEEL_ARM_*
 * @repeats: how many times a periodic one expires before it ends; 0 for no
 *	limit.  Only with an interval.  It bounds expirations, not events.
 * @id: out for ARM: names the timeout from now on, never 0; 0 where the entry
 *	was refused.  Its low half is an index into the wheel's places, which are
 *	reused, and below INFO's refresh_size / 8; its high half is a generation:
 *	an id is never given out twice.  In for REARM.
 * @result: out.  ARM: 0, or a negative errno.  REARM: enum twheel_verdict, or a
 *	negative errno.
 * @reserved: must be 0
 *
 * ARM takes a place.  REARM keeps id, place and user_data and begins a new
 * life: times, interval, flags, repeats and counts are replaced, and an unread
 * event of the old life never comes.
 */
struct twheel_arm {
	__aligned_u64 expires_ns;
	__aligned_u64 interval_ns;
	__aligned_u64 user_data;
	__u32 flags;
	__u32 repeats;
	__aligned_u64 id;
	__s32 result;
	__u32 reserved;
};

/**
 * enum twheel_verdict - what CANCEL or REARM found, where it succeeded
 * @TWHEEL_WAS_PENDING: the timeout was pending and had no unread event
 * @TWHEEL_WAS_UNREAD: an event of it was waiting to be read; that event is
 *	revoked and never comes
 */
enum twheel_verdict {
	TWHEEL_WAS_PENDING	= 1,
	TWHEEL_WAS_UNREAD	= 2,
};

/**
 * struct twheel_cancel - one element of CANCEL
 * @id: the timeout
 * @result: out: enum twheel_verdict, or -ENOENT when its last event has been
 *	read or there never was such a timeout
 * @reserved: must be 0
 */
struct twheel_cancel {
	__aligned_u64 id;
	__s32 result;
	__u32 reserved;
};

/**
 * enum twheel_state - what a timeout is doing
 * @TWHEEL_STATE_PENDING: it waits for its deadline
 * @TWHEEL_STATE_EXPIRED: an event of it waits to be read.  A periodic one with
 *	a fixed rate waits for its next deadline at the same time
 * @TWHEEL_STATE_DRAINED: the wheel was drained; what was left of it waits to be
 *	read
 */
enum twheel_state {
	TWHEEL_STATE_PENDING	= 1,
	TWHEEL_STATE_EXPIRED	= 2,
	TWHEEL_STATE_DRAINED	= 3,
};

/**
 * struct twheel_status - one element of QUERY, one row of LIST
 * @id: the timeout; in for QUERY, out for LIST
 * @result: out: 0, or -ENOENT
 * @state: out: enum twheel_state
 * @user_data: out: as armed
 * @deadline_ns: out: the deadline it waits for, or, when it waits for none, the
 *	one that has passed; absolute, as it was asked for, not rounded
 * @left_ns: out: time until deadline_ns; 0 when it has passed or is not waited
 *	for
 * @interval_ns: out: the period in force, 0 for a one-shot
 * @flags: out: TWHEEL_ARM_FIXED_DELAY where it applies
 * @repeats_left: out: expirations still to come; 0 when there is no limit, or
 *	none is left
 * @count: out: expirations in the unread event; 0 when there is none
 * @deliveries: out: events of this life that were read
 *
 * On failure only @result is written.
 */
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
};

/**
 * struct twheel_list - argument of TWHEEL_IOC_LIST
 * @size: sizeof(struct twheel_list)
 * @entry_size: sizeof(struct twheel_status)
 * @nr: room at @entries, rows, 1 to INFO's max_vector
 * @flags: must be 0
 * @cursor: 0 to begin; moved on by each call
 * @entries: pointer to rows of struct twheel_status
 *
 * Returns how many rows were written; 0 at the end.  Beside concurrent changes,
 * a timeout that is not touched during the walk appears exactly once, one that
 * is re-armed at least once.
 */
struct twheel_list {
	__u32 size;
	__u32 entry_size;
	__u32 nr;
	__u32 flags;
	__aligned_u64 cursor;
	__aligned_u64 entries;
};

/**
 * struct twheel_advance - argument of TWHEEL_IOC_ADVANCE
 * @size: sizeof(struct twheel_advance)
 * @reserved: must be 0
 * @to_ns: the virtual clock's new time, not before its present one, up to
 *	TWHEEL_TIME_NEVER
 *
 * Returns 0 when all that is due by then can be read.  When a signal comes in
 * between, the clock may have moved, and the call may be repeated: EINVAL then says
 * that somebody else has moved it further meanwhile.
 */
struct twheel_advance {
	__u32 size;
	__u32 reserved;
	__aligned_u64 to_ns;
};

/* Flags of struct twheel_event */
/* The wheel was drained, and this timeout with it: no event of it follows. */
#define TWHEEL_EVENT_DRAINED	(1U << 0)

/**
 * struct twheel_event - what read() returns, an array of these
 * @id: the timeout
 * @user_data: as armed
 * @deadline_ns: the deadline that passed, as it was asked for, the latest one
 *	when there were several; with TWHEEL_EVENT_DRAINED and a count of 0 the
 *	one that was still to come
 * @fired_ns: the wheel's clock when the expiration was carried out, or the timeout
 *	was drained; fired_ns - deadline_ns is the lateness.  When more periods
 *	passed while the event was unread, the edge of the tick at which the latest
 *	of them counts: nobody had to carry that out.
 * @count: expirations in this event, saturating at 2^32-1; 0 only in an event
 *	flagged TWHEEL_EVENT_DRAINED
 * @flags: TWHEEL_EVENT_*
 *
 * read() returns as many whole events as fit and are there, in the order of
 * their ticks.  A periodic timeout whose event is unread costs nothing, whatever its
 * period: how many periods have passed is computed when the event is read.  So
 * poll() says POLLIN, and an edge-triggered epoll has its edge, with the first of
 * them, as with timerfd.
 *
 * It returns no more than what was unread when it began, fails with EINVAL when
 * not even one event fits, and returns 0 when the wheel has been drained and
 * nothing is left.  An event that cannot be copied out (EFAULT) stays to be read.
 * A non-blocking one says EAGAIN when there is none, or when another reader is
 * at it and sleeps in a page fault; when that one leaves something, poll() tells
 * of it, by a new edge.  After POLLIN somebody may read or revoke the event: a
 * read() that blocks then waits for the next one, so poll with O_NONBLOCK.
 *
 * Between read() and the handling of an event the program itself may cancel that
 * timeout: while it handles another event of the same buffer, or in another
 * thread.  CANCEL says -ENOENT, for the event was delivered; and when the program
 * then frees what @user_data points to, that event points to freed memory.  So
 * let @user_data be the index, or the key, of something that remembers the id,
 * and drop an event whose @id is another one.
 */
struct twheel_event {
	__aligned_u64 id;
	__aligned_u64 user_data;
	__aligned_u64 deadline_ns;
	__aligned_u64 fired_ns;
	__u32 count;
	__u32 flags;
};

/*
 * The refresh table
 *
 * mmap() of the descriptor, with MAP_SHARED at offset 0, gives one 64-bit word
 * per timeout: that of index (__u32)id.  To store a deadline there is to move a
 * one-shot to it, with no system call and no lock:
 *
 *	deadline_ns = twheel_refresh_deadline(now_ns + 30 * 1000000000ULL);
 *	twheel_refresh(table, id, deadline_ns);		... and for others
 *
 * The kernel looks at the word when the timeout would expire, and may look before.
 * The timeout then expires at the deadline that it found there.  Of several stores
 * the last one before the kernel looks counts, and once it has looked, only a
 * later one.  One comes too late when the timeout has expired: then its event
 * comes, or has come.
 *
 * What is stored is an absolute deadline in units of TWHEEL_REFRESH_GRAIN_NS,
 * and below it the low bits of the id's generation.  It counts for a pending
 * one-shot of that generation, if it is later than the deadline it has;
 * otherwise it changes nothing.  All above TWHEEL_TIME_NEVER is the end of time,
 * here too.  ARM and REARM begin the word anew, with the
 * generation and no deadline.  QUERY, LIST, INFO and fdinfo show the refreshed
 * deadline at once, and events carry it.
 *
 * twheel_refresh() stores only where it finds the id's generation, so that an id
 * whose timeout has ended harms nobody: with one exception, when the place's
 * generation is a multiple of 65536 further on, and then it delays the timeout that
 * is there now.  twheel_refresh_blind() is for those who know that the timeout
 * has not ended, that is, who cancel it and read its events themselves.  At its
 * worst, through a stale id, it also takes back stores to the timeout that has
 * the place now, which then expires at the deadline that it had before them.
 * Nothing that is stored can expire a timeout before the deadline that it was
 * armed with, lose one, or harm another wheel.
 *
 * INFO's refresh_size is how much to map.  A mapping at another offset, a longer
 * one, a private or an executable one is EINVAL, and none can be made longer; a
 * descriptor that was opened for reading only may be mapped for reading.  A page
 * takes memory once a timeout is that has its word in it; before that, an access is
 * SIGBUS.  When no timeout has its word there any more, the memory is given back, and
 * what is stored there is forgotten: an id that was given out never leads to a signal.
 * The table belongs to the wheel and is the same in all processes that share it; a
 * mapping keeps the wheel as a descriptor does.
 */
#define TWHEEL_REFRESH_GRAIN_NS	65536ULL
#define TWHEEL_REFRESH_GEN_MASK	65535U

/* A deadline as it is stored: rounded up, TWHEEL_TIME_NEVER at most. */
static __inline__ __u64 twheel_refresh_deadline(__u64 deadline_ns)
{
	if (deadline_ns > TWHEEL_TIME_NEVER)
		deadline_ns = TWHEEL_TIME_NEVER;
	return (deadline_ns + TWHEEL_REFRESH_GRAIN_NS - 1) &
	       ~(TWHEEL_REFRESH_GRAIN_NS - 1);
}

/*
 * Move a timeout to a deadline that came from twheel_refresh_deadline().  Returns
 * 1, or 0 when the place has another timeout by now.
 */
static __inline__ int twheel_refresh(__u64 *table, __u64 id, __u64 deadline_ns)
{
	__u64 gen = id >> 32 & TWHEEL_REFRESH_GEN_MASK;
	__u64 *word = &table[(__u32)id];
	__u64 old = __atomic_load_n(word, __ATOMIC_RELAXED);

	do {
		if ((old ^ gen) & TWHEEL_REFRESH_GEN_MASK)
			return 0;
	} while (!__atomic_compare_exchange_n(word, &old, deadline_ns | gen, 1,
					      __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return 1;
}

/* The same, without a look, for a timeout that has not ended. */
static __inline__ void twheel_refresh_blind(__u64 *table, __u64 id,
					    __u64 deadline_ns)
{
	__atomic_store_n(&table[(__u32)id],
			 deadline_ns | (id >> 32 & TWHEEL_REFRESH_GEN_MASK),
			 __ATOMIC_RELAXED);
}

/*
 * The commands carry no size: structures grow, and their first field says how
 * large the caller's is.
 */
#define TWHEEL_IOC_MAGIC	0xf7

#define TWHEEL_IOC_INFO		_IO(TWHEEL_IOC_MAGIC, 0x00)
#define TWHEEL_IOC_SETUP	_IO(TWHEEL_IOC_MAGIC, 0x01)
#define TWHEEL_IOC_ARM		_IO(TWHEEL_IOC_MAGIC, 0x02)
#define TWHEEL_IOC_REARM	_IO(TWHEEL_IOC_MAGIC, 0x03)
#define TWHEEL_IOC_CANCEL	_IO(TWHEEL_IOC_MAGIC, 0x04)
#define TWHEEL_IOC_QUERY	_IO(TWHEEL_IOC_MAGIC, 0x05)
#define TWHEEL_IOC_LIST		_IO(TWHEEL_IOC_MAGIC, 0x06)
/*
 * Stops the wheel; no argument.  Returns 0 when all that was left can be read;
 * idempotent.  From its beginning ARM and REARM say ESHUTDOWN and poll() says
 * POLLOUT no more; when it is done, poll() says POLLHUP, for ever.  In between it
 * says neither.  As any POLLHUP, it comes to whoever watches, also for no
 * events: service managers that keep descriptors for a restart drop it then
 * (systemd does, unless it was told FDPOLL=0).
 */
#define TWHEEL_IOC_DRAIN	_IO(TWHEEL_IOC_MAGIC, 0x07)
#define TWHEEL_IOC_ADVANCE	_IO(TWHEEL_IOC_MAGIC, 0x08)

#endif /* _UAPI_LINUX_TWHEEL_H */
