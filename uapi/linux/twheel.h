/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/**
 * DOC: twheel
 *
 * Millions of timeouts behind one file descriptor.
 *
 * Each open of /dev/twheel makes a wheel of its own.  Whoever has the descriptor by dup,
 * fork, exec or over a socket shares it; the last close destroys it.  Opening
 * /proc/self/fd/N opens /dev/twheel again, and makes a new wheel: TWHEEL_IOC_REOPEN
 * opens the same wheel again.  Any thread of any process that holds the descriptor may
 * use it at any time.
 */

/**
 * DOC: Conventions
 *
 * These hold for every call:
 *
 * - Times are nanoseconds of the wheel's own clock, 64 bits, unsigned.
 *   TWHEEL_TIME_NEVER (2^63-1) is the end of time: a deadline of that value never
 *   expires.  A relative deadline that reaches beyond it reads back as
 *   TWHEEL_TIME_NEVER.  A deadline before the end of time whose tick ends after it never
 *   expires either, and reads back unchanged.  Any greater number is EINVAL: it is a
 *   difference that has become negative, and nobody would learn that it never expires.
 * - A timeout never expires before its deadline.  How late it may be (a tick, its slack,
 *   and the time that the scheduler takes) assumes that the kernel has high-resolution
 *   timers.  If it has none (highres=off), each wake-up may be a jiffy late, which is
 *   4 ms at 250 Hz: clock_getres(CLOCK_MONOTONIC) shows its length then, and 1 ns
 *   otherwise.
 * - The structure a command points to begins with its own ``size``.  A caller
 *   built against an older header passes a smaller one and gets the old
 *   behaviour.  The kernel accepts a larger one when all bytes that it does not
 *   know are zero (E2BIG otherwise).  Of INFO only size and flags go in, and the rows of
 *   LIST carry nothing in: when these are larger, the kernel fills the rest with
 *   zeroes.
 * - A vector names the size of its elements in ``entry_size``, which is also
 *   their stride, under the same rule.  ``entry_size`` and the address in
 *   ``entries`` have to be multiples of 8, for 32-bit programs, too; EINVAL
 *   otherwise, even if ``nr`` is 0.  The structure that a command points to, the
 *   records of write() and the buffer of read() may lie at any address: interpreters
 *   copy them, and a program cannot choose where.
 * - A call does the entries of a vector in order and goes on past an entry that
 *   fails: each entry carries its own ``result``, and the ioctl returns how many
 *   succeeded.  The ioctl fails as a whole only when no entry could be attempted.
 *   A fault in the caller's memory, DRAIN, and a signal that kills the caller
 *   stop the call.  All entries before that point have been done, reported and
 *   counted; no entry from there on has been done; ``nr_done`` says where the
 *   point is.  If another thread has taken the memory of the vector itself away
 *   meanwhile, so that ``nr_done`` cannot be written, the ioctl says EFAULT although
 *   entries may have been done; their results say which.  LIST, which writes
 *   ``cursor`` and ``changes`` at its end, does the same.
 * - Unknown flags and non-zero reserved fields are EINVAL, an unknown command
 *   is ENOTTY, and a call or an entry that fails changes nothing.  Only ADVANCE and
 *   DRAIN have begun if a signal interrupts them.
 * - What changes the wheel needs a descriptor that is open for writing: SETUP, ARM, REARM,
 *   CANCEL, DRAIN, ADVANCE, write() and stores into the refresh table.  read() needs one that
 *   is open for reading.  INFO, QUERY, LIST, REOPEN and poll() need neither; but poll()
 *   says no POLLIN of a descriptor that cannot be read, and no POLLOUT of one that cannot
 *   be written.  REOPEN with O_RDONLY makes a descriptor for somebody who may only listen.
 */

/**
 * DOC: Errors
 *
 * They are the same for all commands, as errno of the call, or negated in the
 * ``result`` of an entry::
 *
 *	EACCES		a security module refuses REOPEN or an ioctl (some say EPERM); or
 *			mmap() of a descriptor that is not open for that
 *	EAGAIN		max_pending places are in use; poll says POLLOUT when
 *			one is free again.  POLLOUT says nothing about memory:
 *			ARM may still fail with ENOMEM or ENOSPC.  poll() does not
 *			wait for memory, so the caller should wait before it tries
 *			again.  For EAGAIN of read(), see struct twheel_event.
 *	E2BIG		a byte that this kernel does not know is not zero, a
 *			structure or an element is larger than
 *			TWHEEL_SIZE_MAX, or a vector is longer than INFO's
 *			max_vector
 *	EBADF		the descriptor is not open for writing, or not for reading, and
 *			the call needs that
 *	EBUSY		SETUP after SETUP or after the first ARM
 *	EEXIST		TWHEEL_ARM_IF_ABSENT, and the key is there
 *	EFAULT		the caller's memory cannot be read or written
 *	EINTR		a signal came while ADVANCE, DRAIN or a blocking read()
 *			waited, and its handler does not restart system calls
 *	EINVAL		a field has a value outside its range, ``size`` or
 *			``entry_size`` is below that of the first release, or entries
 *			are not at multiples of 8
 *	EMFILE		REOPEN, and the process has too many open files
 *	ENFILE		REOPEN, and the system has too many open files
 *	ENOENT		no such timeout: its last event was read, it was
 *			cancelled, or there never was one; or no timeout has the key
 *	ENOMEM		out of memory, or the memory cgroup is at its limit
 *	ENOSPC		the module's limit of memory is reached, or the share of the user
 *			who opened the wheel, or who calls REOPEN; open() and mmap() say
 *			so, too.  A user namespace that root has made counts as a user; in
 *			one that another user has made, one counts as that user
 *	ENOTTY		unknown command
 *	EOPNOTSUPP	ADVANCE on a wheel whose clock is not TWHEEL_CLOCK_VIRTUAL; SETUP
 *			with a clock that the kernel was built without
 *	ERANGE		TWHEEL_ARM_ONLY_LATER or _EARLIER, and the deadline is not
 *	ESHUTDOWN	the wheel has been drained, or DRAIN has begun
 */
#ifndef _UAPI_LINUX_TWHEEL_H
#define _UAPI_LINUX_TWHEEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * The end of time, nanoseconds: a timeout with this deadline never expires.  In next_expiry_ns and
 * alarm_ns it says that there is no such time.
 */
#define TWHEEL_TIME_NEVER	0x7fffffffffffffffULL

/* The largest ``size`` and ``entry_size``, bytes; above it E2BIG. */
#define TWHEEL_SIZE_MAX		4096U

/**
 * enum twheel_clock - the clock of a wheel
 * @TWHEEL_CLOCK_MONOTONIC: CLOCK_MONOTONIC; stands still while suspended
 * @TWHEEL_CLOCK_BOOTTIME: CLOCK_BOOTTIME; goes on while suspended
 * @TWHEEL_CLOCK_REALTIME: CLOCK_REALTIME.  When it is set forwards, all timeouts
 *	that are due by the new time expire.  When it is set backwards, no timeout
 *	expires twice, and none early.  Deadlines are absolute: see
 *	TWHEEL_ARM_ABSOLUTE.
 * @TWHEEL_CLOCK_TAI: CLOCK_TAI; set as CLOCK_REALTIME is, and by its own offset.
 *	Deadlines are absolute.
 * @TWHEEL_CLOCK_VIRTUAL: starts at 0 and moves by TWHEEL_IOC_ADVANCE only.  It is for tests
 *	and simulations: a later release may be built without it, and SETUP then says
 *	EOPNOTSUPP.
 *
 * The values are different from those of all CLOCK_* constants, and 0 is none of them:
 * SETUP says EINVAL when it is given a clockid_t, or nothing, as the clock.
 *
 * A wheel lives in the time namespace of the process that called SETUP, or ARM
 * where SETUP was not called.  Absolute times, ``now_ns`` and the deadlines in the
 * refresh table are times of that namespace, also for a process of another
 * namespace that uses the descriptor later.
 */
enum twheel_clock {
	TWHEEL_CLOCK_MONOTONIC	= 0x101,
	TWHEEL_CLOCK_BOOTTIME	= 0x102,
	TWHEEL_CLOCK_REALTIME	= 0x103,
	TWHEEL_CLOCK_TAI	= 0x104,
	TWHEEL_CLOCK_VIRTUAL	= 0x105,
};

/* Ranges of SETUP; a value outside its range is EINVAL. */
#define TWHEEL_TICK_MIN_NS	1000ULL			/* 1 us */
#define TWHEEL_TICK_MAX_NS	3600000000000ULL	/* 1 h */
#define TWHEEL_TICK_DEFAULT_NS	1000000ULL		/* 1 ms */
#define TWHEEL_SLOTS_MIN	4U
#define TWHEEL_SLOTS_MAX	1048576U		/* 2^20 */
#define TWHEEL_ROUND_MIN_NS	100000000ULL		/* 100 ms, one level only */
#define TWHEEL_EVENT_SIZE_MIN	40U
#define TWHEEL_EVENT_SIZE_MAX	4096U
#define TWHEEL_SLACK_MAX_NS	3600000000000ULL	/* 1 h */
#define TWHEEL_NAME_SIZE	16U			/* with the NUL */

/* The greatest slack_ticks of ARM and REARM; above it EINVAL. */
#define TWHEEL_SLACK_TICKS_MAX	32767U

/* SETUP flags */
/*
 * One level of slots: the classic hashed wheel with rounds.  The kernel looks at a
 * timeout whose deadline is farther than slots * tick_ns once in each round until
 * it is due.  Without this flag the wheel is the same, with coarser ones above it, in
 * which such timeouts wait, and no round looks at them in vain.
 *
 * What it costs: in each round the kernel wakes up for each slot that holds a
 * timeout, and looks at each timeout, however far the deadlines are.  So a single
 * timeout an hour ahead takes a wake-up per round, from the first wake-up of the wheel on.
 * A round, that is slots * tick_ns as in force, lasts TWHEEL_ROUND_MIN_NS at least; EINVAL
 * otherwise.
 */
#define TWHEEL_SETUP_ONE_LEVEL	(1U << 0)
/*
 * The wheel is keyed: ``user_data`` is the key of a timeout, and no two live timeouts
 * (pending, or with an unread event) have the same key.  Any 64-bit value is a key.  ARM
 * of a key that is there re-arms that timeout, see struct twheel_arm.  A keyed wheel
 * takes 20 to 60 bytes more for each timeout.
 */
#define TWHEEL_SETUP_KEYED	(1U << 1)

/**
 * struct twheel_setup - argument of TWHEEL_IOC_SETUP
 * @size: sizeof(struct twheel_setup)
 * @clock: enum twheel_clock
 * @tick_ns: granularity, TWHEEL_TICK_MIN_NS to TWHEEL_TICK_MAX_NS; 0 for the
 *	default, TWHEEL_TICK_DEFAULT_NS.  A timeout expires at the first multiple of tick_ns at
 *	or after its deadline, counted from the clock's own zero, so that wheels
 *	with the same tick share their wake-ups; with slack at a later one, see
 *	slack_ticks of struct twheel_arm.
 * @slots: slots of the first level, TWHEEL_SLOTS_MIN to TWHEEL_SLOTS_MAX, or 0 for the
 *	default.  It is a hint: the kernel may take another number, which INFO reports.
 * @max_pending: how many timeouts may be in use at a time (pending, or expired
 *	with an event still unread), 1 to INFO's max_pending_limit; 0 for the
 *	default: 1,048,576 (2^20), or max_pending_limit where that is less
 * @flags: TWHEEL_SETUP_*
 * @event_size: how long each event of read() is, bytes: TWHEEL_EVENT_SIZE_MIN to
 *	TWHEEL_EVENT_SIZE_MAX, a multiple of 8; 0 for TWHEEL_EVENT_SIZE_MIN.  A program
 *	gives sizeof(struct twheel_event).  See there.
 * @slack_ns: how much later than the edge of a tick the kernel may look at the
 *	wheel, 0 to TWHEEL_SLACK_MAX_NS.  The kernel then looks when another timer
 *	of the processor fires anyway, as with PR_SET_TIMERSLACK.  ADVANCE does not
 *	wait for it.
 * @name: the name of the wheel, which INFO and fdinfo show: up to 15 characters of
 *	printable ASCII, but no blank, no quotation mark (0x22) and no backslash, so that
 *	it stands in a line of text, or in JSON, as it is.  All bytes behind it are 0.
 *	Empty for none.  Several wheels may have the same name.
 *
 * SETUP is allowed once, and only before the first ARM (EBUSY after).  A wheel
 * that is armed without SETUP has CLOCK_MONOTONIC, the defaults and no flags.
 * INFO reads back the values in force.
 */
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

/*
 * Features of struct twheel_info: what this release has, and a kernel that is configured
 * otherwise, or a later release, may not.
 */
/*
 * Each ioctl is a submission of io_uring as well: IORING_OP_URING_CMD with the ioctl's number in
 * cmd_op, and in the first 8 bytes of cmd its argument, which is a pointer except for DRAIN.
 * All other bytes of cmd and uring_cmd_flags must be 0 (EINVAL).  The completion has the result of
 * the ioctl, or minus an errno.  The program must leave the structure that the argument points to,
 * and the elements of a vector, where they are until then.
 *
 * Whether the thread that submits does a submission, or a worker thread of io_uring, is not
 * promised.
 */
#define TWHEEL_FEATURE_URING_CMD	(1ULL << 0)

/* The length of INFO's late_ticks and unread_ticks. */
#define TWHEEL_LATE_TICKS	32

/* Flags of struct twheel_info */
/*
 * Walk over all timeouts, for ``next_expiry_ns`` and an exact ``pending``.  That takes long
 * when there are many: some 16 ms for a million.  INFO without this flag takes as long for
 * ten million as for one.
 */
#define TWHEEL_INFO_WALK	(1U << 0)

/**
 * enum twheel_wheel_state - state of a wheel
 * @TWHEEL_WHEEL_NEW: the wheel has been neither set up nor armed; SETUP is still allowed
 * @TWHEEL_WHEEL_RUNNING: the wheel has been set up, or armed
 * @TWHEEL_WHEEL_DRAINING: DRAIN has begun
 * @TWHEEL_WHEEL_DRAINED: DRAIN is done
 */
enum twheel_wheel_state {
	TWHEEL_WHEEL_NEW	= 0,
	TWHEEL_WHEEL_RUNNING	= 1,
	TWHEEL_WHEEL_DRAINING	= 2,
	TWHEEL_WHEEL_DRAINED	= 3,
};

/**
 * struct twheel_info - argument of TWHEEL_IOC_INFO
 * @size: sizeof(struct twheel_info), in; out: how many bytes the kernel wrote
 * @flags: in: TWHEEL_INFO_*
 * @clock: enum twheel_clock in force
 * @setup_flags: TWHEEL_SETUP_* in force
 * @tick_ns: granularity in force
 * @slots: slots of the first level in force; this release rounds up to a power of two, and its
 *	default is 1024
 * @state: enum twheel_wheel_state
 * @max_pending: limit in force
 * @max_pending_limit: the greatest max_pending that SETUP takes: the module's
 *	parameter of that name, 16,777,216 (2^24) by default.  It may change at any
 *	time; a wheel that has been set up or armed keeps its max_pending.
 * @max_vector: the longest vector one call takes, entries
 * @event_size: how long each event of read() is through this descriptor, bytes
 * @slack_ns: the wheel's slack in force
 * @features: TWHEEL_FEATURE_*
 * @refresh_size: the length for mmap(), bytes: enough for the word of each timeout
 *	that there may ever be, see "The refresh table" below.  Final once the wheel has been
 *	set up or armed.
 * @refresh_shift: a word of the refresh table counts time in units of
 *	2^refresh_shift ns: the greatest power of two that is not above tick_ns.
 *	Final likewise.
 * @reserved: out: 0
 * @now_ns: the wheel's clock
 * @next_expiry_ns: when the next timeout expires, rounded up to its tick, which its
 *	slack_ticks may have moved; slack_ns is not added.  TWHEEL_TIME_NEVER when none
 *	will.  Only with TWHEEL_INFO_WALK; 0 otherwise.
 * @armed: timeouts accepted
 * @pending: timeouts that wait for an expiry.  A periodic one stays pending
 *	while it has an unread event, unless its delay is fixed.  Exact only with
 *	TWHEEL_INFO_WALK; otherwise it is @live - @unread, which leaves those out.
 * @unread: events that wait to be read
 * @live: places in use: pending, or with an unread event
 * @expirations: expirations so far, one for each period of a periodic timeout.
 *	The periods that pass while its event is unread are left out until that event
 *	is read, revoked or drained.
 * @delivered: events read, those flagged TWHEEL_EVENT_DRAINED as well
 * @completed: timeouts that ended because their last event was read
 * @cancelled: timeouts that ended by CANCEL while pending with no unread event
 * @revoked: timeouts that ended by CANCEL with an unread event, which nobody
 *	will read
 * @drained: timeouts that ended because their event flagged
 *	TWHEEL_EVENT_DRAINED was read
 * @rearmed: timeouts that were moved by REARM
 * @changes: differs after each change; its distance is the number of changes.  With the
 *	counters of this release it is @armed + @rearmed + @cancelled + @revoked + @delivered;
 *	a later one may add terms.  See struct twheel_list.
 * @late: how often a timeout expired later than one tick plus slack_ns after the edge
 *	of its tick.  This and the three below do not count timeouts that were already
 *	due when armed, nor the slack_ticks of a timeout, nor the periods that pass
 *	while an event is unread.
 * @last_late_ns: how much later than that edge the last of these timeouts expired,
 *	nanoseconds; 0 when there was none
 * @last_late_at_ns: when it expired, on the wheel's clock
 * @late_ticks: [0]: how often a timeout expired less than a tick after the edge of its
 *	tick; [i]: 2^(i-1) to 2^i - 1 ticks after it; the last one takes all that were
 *	later.  The sum is how often a timeout expired that is counted here, see @late.
 * @unread_ticks: how long the events that were read had been unread: [0]: less than a
 *	tick; [i]: 2^(i-1) to 2^i - 1 ticks; the last one takes all that were unread for
 *	longer.  Events that one read() copies out together, 32 at most, count as the oldest
 *	of them.  The sum is @delivered.
 * @longest_unread_at_ns: when an event was last read that counts in the last element of
 *	@unread_ticks that is not 0, on the wheel's clock; 0 when none was read
 * @alarm_ns: when the kernel looks at the wheel next, on the wheel's clock: at the next
 *	expiry, or before.  Timeouts that the kernel is at work on do not count; a time that
 *	has passed means that it is.  TWHEEL_TIME_NEVER when it need not look, and on the
 *	virtual clock.  slack_ns is not added.
 * @name: the name of the wheel, with a NUL at its end; empty when it has none
 *
 * To find @next_expiry_ns and @pending takes a walk over all timeouts, see
 * TWHEEL_INFO_WALK.  All other members are exact with and without it.  The counters, from
 * @armed to @alarm_ns, are those of one moment.  While other threads use the wheel,
 * the walk may see a timeout before or after a change.
 *
 * /proc/PID/fdinfo/FD shows configuration and counters as INFO does without the walk: one
 * "key:\tvalue" a line, after the lines that the kernel shows of any file.  The first key,
 * ``wheel``, is a number that no other wheel has or had since the module was loaded: all
 * descriptors of a wheel show the same one, whichever processes hold them.  Wheels are
 * numbered in the order in which they are opened, as processes are: the number shows how
 * many were opened before, by all users.  REOPEN takes a number, too.  The value of
 * ``name`` is empty if the wheel has no name: then there is nothing behind the tab.
 * ``clock_offset_ns`` is how far the clock of the wheel is ahead of that of the machine,
 * because of its time namespace; it may be negative.  ``levels``, how many
 * levels of slots there are, is for debugging: a later release may not have it.
 *
 * At rest: armed = live + completed + cancelled + revoked + drained.  And
 * delivered = completed + drained + the events after which a periodic timeout
 * lived on.  Both hold with the counters of this release; a later one may add terms.
 */
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

/* Flags of struct twheel_vector */
/*
 * For REARM, CANCEL and QUERY in a keyed wheel: ``id`` of each element holds a key, which
 * names the live timeout that has it.  QUERY writes the id in its place.
 */
#define TWHEEL_VECTOR_BY_KEY	(1U << 0)

/**
 * struct twheel_vector - argument of ARM, REARM, CANCEL and QUERY
 * @size: sizeof(struct twheel_vector)
 * @entry_size: sizeof() of one element, a multiple of 8
 * @nr: how many elements, 0 to INFO's max_vector
 * @flags: TWHEEL_VECTOR_*
 * @entries: pointer to the elements, a multiple of 8: struct twheel_arm for ARM and
 *	REARM, struct twheel_cancel for CANCEL, struct twheel_status for QUERY
 * @nr_done: out: how many elements were attempted, from the first one on: all @nr
 *	of them, unless DRAIN, a fault or a signal that kills the caller ended the
 *	call early.  Each attempted element has its result.  The call did nothing
 *	for the elements that follow: after DRAIN their results say -ESHUTDOWN,
 *	after a fault their results are as they were, after a signal as they were or
 *	-EINTR.  0 when the call failed; not written when the vector itself is refused.
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
/*
 * expires_ns is a point on the wheel's clock, not a distance from now.  On a clock that can
 * be set, TWHEEL_CLOCK_REALTIME or _TAI, ARM and REARM without this flag are EINVAL: a
 * relative deadline would move when the clock is set.
 */
#define TWHEEL_ARM_ABSOLUTE	(1U << 0)
/*
 * The next period begins when read() takes the event, instead of keeping its phase.
 * Only with an interval.
 */
#define TWHEEL_ARM_FIXED_DELAY	(1U << 1)
/*
 * Conditions, as Redis' EXPIRE has them.  All are for ARM in a keyed wheel; in a wheel
 * without keys, ARM with any of them is EINVAL.  The last two are for REARM, too, in any
 * wheel; the first two are EINVAL there.  The last two compare the new deadline with the one
 * in force, or, where the event is unread, with the one that has expired.  They do not keep
 * an ARM from creating a timeout whose key is not there.  The first two contradict each
 * other, and so do the last two: both at once are EINVAL.
 */
#define TWHEEL_ARM_IF_ABSENT	(1U << 2)	/* EEXIST if the key is there */
#define TWHEEL_ARM_IF_PRESENT	(1U << 3)	/* ENOENT if the key is not there */
#define TWHEEL_ARM_ONLY_LATER	(1U << 4)	/* ERANGE if the deadline is not later */
#define TWHEEL_ARM_ONLY_EARLIER	(1U << 5)	/* ERANGE if the deadline is not earlier */

/**
 * struct twheel_arm - one element of ARM and of REARM
 * @expires_ns: the deadline, 0 to TWHEEL_TIME_NEVER: relative to now, or with
 *	TWHEEL_ARM_ABSOLUTE, which clocks that can be set need, a point on the wheel's
 *	clock.  A deadline that has passed is accepted; the timeout then expires as soon
 *	as it can, and does not wait for a tick.  Who reads until EAGAIN after the call gets
 *	its event; a poll() may find it a moment later.
 * @interval_ns: 0 for a one-shot, else the period, up to TWHEEL_TIME_NEVER; below one
 *	tick it is raised to one tick.  Periods go by the wheel's clock: if that is set
 *	forwards, those that are skipped have passed; if it is set back, the next one waits
 *	for it.
 * @user_data: handed back in events; the key in a keyed wheel; ignored by REARM
 * @flags: TWHEEL_ARM_*
 * @repeats: how many times a periodic timeout expires before it ends; 0 for no
 *	limit.  Only with an interval.  It bounds expirations, not events.
 * @id: out for ARM: names the timeout from now on, never 0; 0 where the entry
 *	was refused.  Its low half is an index into the wheel's places, which are
 *	reused, and below INFO's refresh_size / 8; its high half is a generation:
 *	an id is never given out twice.  In for REARM.
 * @result: out: enum twheel_verdict, or a negative errno
 * @slack_ticks: by how many ticks the timeout may be late, so that many timeouts
 *	expire together, up to TWHEEL_SLACK_TICKS_MAX; 0 for none.  It expires at the first
 *	multiple of 2^k ticks at or after its deadline, counted from the clock's zero,
 *	where k is the largest number with 2^k - 1 <= slack_ticks.  This holds for each period,
 *	and after a refresh, until REARM.  A timeout that is due when it is armed
 *	expires as soon as it would without slack.
 * @was_deadline_ns: out for ARM in a keyed wheel: the deadline that was replaced,
 *	refreshes included; with TWHEEL_WAS_UNREAD the latest one that had expired; 0 where
 *	the timeout was created or the entry refused.  Not written otherwise.
 *
 * ARM takes a place.  REARM keeps id, place and user_data and begins a new
 * life: it replaces times, interval, flags, repeats and counts, and revokes an
 * unread event of the old life, which nobody will read.
 *
 * In a keyed wheel, ARM of a key that is there does what REARM does, in one step: it keeps
 * the id, takes no place, and says in @result and @was_deadline_ns what it has replaced.
 * INFO counts it as ``rearmed``.  A key is free again when its timeout has ended: its last
 * event was read, or it was cancelled.
 */
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

/**
 * enum twheel_verdict - result of an ARM, REARM or CANCEL that succeeded
 * @TWHEEL_CREATED: ARM has made a timeout
 * @TWHEEL_WAS_PENDING: the timeout was pending and had no unread event
 * @TWHEEL_WAS_UNREAD: an event of the timeout was waiting to be read; that event
 *	is revoked: nobody will read it
 */
enum twheel_verdict {
	TWHEEL_CREATED		= 1,
	TWHEEL_WAS_PENDING	= 2,
	TWHEEL_WAS_UNREAD	= 3,
};

/**
 * struct twheel_cancel - one element of CANCEL
 * @id: the timeout
 * @result: out: enum twheel_verdict, or -ENOENT when its last event has been
 *	read, it was cancelled, or there never was such a timeout
 * @reserved: must be 0
 */
struct twheel_cancel {
	__aligned_u64 id;
	__s32 result;
	__u32 reserved;
};

/**
 * enum twheel_state - state of a timeout
 * @TWHEEL_STATE_PENDING: the timeout waits for its deadline
 * @TWHEEL_STATE_EXPIRED: an event of the timeout waits to be read.  A periodic
 *	timeout with a fixed rate waits for its next deadline at the same time
 * @TWHEEL_STATE_DRAINED: the wheel was drained before the timeout had ended; its
 *	last event, flagged TWHEEL_EVENT_DRAINED, waits to be read
 */
enum twheel_state {
	TWHEEL_STATE_PENDING	= 1,
	TWHEEL_STATE_EXPIRED	= 2,
	TWHEEL_STATE_DRAINED	= 3,
};

/* Flags of struct twheel_status, besides TWHEEL_ARM_FIXED_DELAY */
/*
 * The event that waits to be read is the last one of the timeout: it will have
 * TWHEEL_EVENT_ENDED, if it is read now.
 */
#define TWHEEL_STATUS_LAST_EVENT	(1U << 16)

/**
 * struct twheel_status - one element of QUERY, one row of LIST
 * @id: the timeout; in for QUERY, out for LIST
 * @result: out: 0, or -ENOENT
 * @state: out: enum twheel_state
 * @user_data: out: as armed
 * @deadline_ns: out: the deadline that the timeout waits for, or, when it waits
 *	for none, that of its event; absolute, as the caller gave it, not rounded,
 *	or one that was stored in the refresh table
 * @left_ns: out: time until deadline_ns; 0 when deadline_ns has passed or the
 *	timeout does not wait for it
 * @interval_ns: out: the period in force, 0 for a one-shot
 * @flags: out: TWHEEL_ARM_FIXED_DELAY where it applies, TWHEEL_STATUS_*
 * @repeats_left: out: expirations still to come; 0 when there is no limit, or, with
 *	TWHEEL_STATUS_LAST_EVENT, none is left
 * @count: out: expirations in the unread event; 0 when there is none
 * @deliveries: out: events of this life that were read
 * @slack_ticks: out: the slack in force, 2^k - 1 ticks
 * @reserved: out: 0
 * @fired_ns: out: that of the event that waits to be read, see struct twheel_event; 0 when
 *	there is none
 *
 * On failure only @result is written.
 *
 * A program that takes a wheel over finds here all that it needs to arm the timeout again
 * elsewhere: @deadline_ns, with TWHEEL_ARM_ABSOLUTE, @interval_ns, @flags without
 * TWHEEL_STATUS_*, @repeats_left as repeats, @slack_ticks and @user_data.
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
	__u32 slack_ticks;
	__u32 reserved;
	__aligned_u64 fired_ns;
};

/**
 * struct twheel_list - argument of TWHEEL_IOC_LIST
 * @size: sizeof(struct twheel_list)
 * @entry_size: sizeof(struct twheel_status), a multiple of 8
 * @nr: room at @entries, rows, 1 to INFO's max_vector
 * @flags: must be 0
 * @cursor: 0 to begin; moved on by each call
 * @entries: pointer to rows of struct twheel_status, a multiple of 8
 * @changes: out: INFO's @changes when this call began
 *
 * LIST returns how many rows it wrote; 0 at the end.  Beside concurrent changes, a
 * timeout that nobody touches during the walk appears exactly once, and one that
 * is re-armed at least once.
 *
 * To keep a copy of a wheel, a program logs its changes in their order: timeouts armed,
 * moved and cancelled, and events read.  It then walks by LIST, and notes @changes of the
 * first call.  The rows of that walk, and after them the changes of the log from that number
 * on, of which the rows show some already, make an exact copy.  When @changes is the same at
 * the end of a walk, the rows alone are one.  ADVANCE, DRAIN, expirations, and stores into the
 * refresh table do not count.
 */
struct twheel_list {
	__u32 size;
	__u32 entry_size;
	__u32 nr;
	__u32 flags;
	__aligned_u64 cursor;
	__aligned_u64 entries;
	__aligned_u64 changes;
};

/**
 * struct twheel_advance - argument of TWHEEL_IOC_ADVANCE
 * @size: sizeof(struct twheel_advance)
 * @reserved: must be 0
 * @to_ns: the virtual clock's new time, not before its present one, up to
 *	TWHEEL_TIME_NEVER
 *
 * ADVANCE returns 0 when the events of all timeouts that are due by @to_ns can be
 * read.  When a signal interrupts the call, the clock may have moved, and the
 * caller may repeat the call: EINVAL then says that another caller has moved the
 * clock further meanwhile.
 */
struct twheel_advance {
	__u32 size;
	__u32 reserved;
	__aligned_u64 to_ns;
};

/**
 * struct twheel_reopen - argument of TWHEEL_IOC_REOPEN
 * @size: sizeof(struct twheel_reopen)
 * @flags: as the flags of open(): O_RDONLY, O_WRONLY, O_RDWR or 3, which is for neither
 *	reading nor writing, with O_NONBLOCK and O_CLOEXEC.  O_APPEND, O_ASYNC, O_DSYNC,
 *	O_LARGEFILE, O_NOATIME, O_NOCTTY, O_NOFOLLOW, O_SYNC and O_TRUNC mean nothing for a
 *	wheel: they are ignored, and the new descriptor does not have them.  So what F_GETFL of
 *	fcntl() returns can be given here.  Any other bit is EINVAL.
 * @event_size: how long each event of read() is through the new descriptor, bytes, as in
 *	struct twheel_setup; 0: as SETUP has it.  INFO and fdinfo of that descriptor show it.
 * @reserved: must be 0
 *
 * REOPEN returns a new descriptor of the same wheel, as if the wheel had been opened again.
 * A mode that the descriptor itself does not have is EBADF, so whoever is given one that is
 * open for reading only gets no other here.  Besides, REOPEN fails as open() of the device
 * does, with EMFILE, ENFILE, ENOMEM and ENOSPC: for a moment it takes the memory of a wheel
 * from the share of its caller.  The wheel lives until the last of its descriptors is closed,
 * whichever that is.
 *
 * Security modules see the new file as the device that the wheel was opened from.  As with
 * open(), they may refuse it (EACCES, EPERM), or limit what its holder can do.
 */
struct twheel_reopen {
	__u32 size;
	__u32 flags;
	__u32 event_size;
	__u32 reserved;
};

/*
 * Flags of struct twheel_event.  A program ignores those that it does not know: a flag that
 * changes what it has to do, or an event of another kind, will come only for timeouts whose
 * ARM or REARM has asked for it, by a flag that this header does not have yet.
 */
/* The wheel was drained, and this timeout with it; TWHEEL_EVENT_ENDED is set, too. */
#define TWHEEL_EVENT_DRAINED	(1U << 0)
/*
 * This is the last event of the timeout: a one-shot has expired, a periodic timeout
 * has reached its limit of repeats, or the wheel was drained.  The id names nothing
 * any more.  An event without this flag is followed by another one, unless the
 * timeout is cancelled or re-armed first, or its next deadline is after the end of time.
 */
#define TWHEEL_EVENT_ENDED	(1U << 1)

/**
 * struct twheel_event - an event; read() returns an array of these
 * @id: the timeout
 * @user_data: as armed
 * @deadline_ns: the deadline that passed, as the caller gave it, or as it was stored
 *	in the refresh table; the latest one when several have passed; with
 *	TWHEEL_EVENT_DRAINED and a count of 0 the one that was still to come
 * @fired_ns: the wheel's clock when the timeout expired or was drained;
 *	fired_ns - deadline_ns is the lateness.  When further periods passed while
 *	the event was unread: the edge of the tick at which the latest of these
 *	counts.  Nothing ran at that edge: no code runs for these when they pass.
 * @count: expirations in this event, saturating at 2^32-1; 0 only in an event
 *	flagged TWHEEL_EVENT_DRAINED
 * @flags: TWHEEL_EVENT_*
 *
 * An event is as long as the event_size of SETUP says, or that of REOPEN, and
 * TWHEEL_EVENT_SIZE_MIN bytes without both.  This structure may grow at its end.  When
 * event_size is smaller than the structure that the kernel knows, an event is cut off
 * there; when it is larger, the kernel fills the rest with zeroes.
 *
 * read() returns whole events, as many as there are and the buffer holds, in the
 * order of their ticks.  While the event of a periodic timeout is unread, its
 * further periods cost nothing, however short they are: the kernel computes how
 * many have passed when the event is read.  So poll() says POLLIN from the first
 * period on, and an edge-triggered epoll gets its edge at the first period and none
 * at those that follow, as with timerfd.
 *
 * read() returns no more events than were unread when it began.  It fails with
 * EINVAL when the buffer does not hold even one event, and returns 0 when the
 * wheel has been drained and no event is left.  An event that cannot be copied out
 * (EFAULT) stays unread.  With O_NONBLOCK, read() fails with EAGAIN when there is
 * no event.  Any number of threads may read at a time, and each event is returned to
 * one of them.  A reader that sleeps in a page fault has not got the events that it
 * copies then, and keeps no other one from them.  Between POLLIN and read() another
 * thread may read or revoke the event.  A read() that blocks then waits for the next
 * event, so use O_NONBLOCK with poll().  What lies in the buffer beyond the length
 * that read() returns may have been overwritten.
 *
 * Between read() and the handling of an event the program itself may cancel that
 * timeout: while it handles another event of the same buffer, or in another
 * thread.  CANCEL says -ENOENT then, since the event has been delivered.  If the
 * program now frees the object that @user_data points to, the event in its buffer
 * points to freed memory.  So let @user_data be the index or the key of an object
 * that remembers the id, and drop an event whose @id is another one.
 */
struct twheel_event {
	__aligned_u64 id;
	__aligned_u64 user_data;
	__aligned_u64 deadline_ns;
	__aligned_u64 fired_ns;
	__u32 count;
	__u32 flags;
};

/**
 * enum twheel_op - what a record of write() does
 * @TWHEEL_OP_ARM: as TWHEEL_IOC_ARM; ``key`` is the user_data of the timeout, which in
 *	a keyed wheel is its key
 * @TWHEEL_OP_REARM: as TWHEEL_IOC_REARM; ``key`` is the id, in a keyed wheel the key
 * @TWHEEL_OP_CANCEL: as TWHEEL_IOC_CANCEL; ``key`` as for REARM
 * @TWHEEL_OP_SETUP: as TWHEEL_IOC_SETUP, see struct twheel_setup_record
 */
enum twheel_op {
	TWHEEL_OP_ARM		= 1,
	TWHEEL_OP_REARM		= 2,
	TWHEEL_OP_CANCEL	= 3,
	TWHEEL_OP_SETUP		= 4,
};

/* Flags of struct twheel_record, besides TWHEEL_ARM_* */
/*
 * If the timeout is not there, the record counts as done, and changes nothing.  Without this
 * flag it is refused with ENOENT, and ends the write.  For CANCEL, REARM, and ARM with
 * TWHEEL_ARM_IF_PRESENT; EINVAL with any other record, and in struct twheel_arm, where each
 * element has a result of its own.
 */
#define TWHEEL_RECORD_ABSENT_OK	(1U << 16)

/**
 * struct twheel_record - a record; write() takes an array of these
 * @op: enum twheel_op
 * @flags: TWHEEL_ARM_*, TWHEEL_RECORD_*
 * @key: in a keyed wheel the key; in any other user_data for ARM, and the id for REARM
 *	and CANCEL
 * @expires_ns: the deadline, as in struct twheel_arm
 * @interval_ns: 0 for a one-shot, else the period, as in struct twheel_arm
 * @repeats: limit of expirations, as in struct twheel_arm
 * @slack_ticks: as in struct twheel_arm
 *
 * CANCEL uses @key, and of @flags TWHEEL_RECORD_ABSENT_OK; the rest must be 0.
 *
 * write() is for programs that have no ioctl: a shell script does all with printf and
 * dd.  A record is in the byte order of the machine, and has no padding and no pointer.
 * All of its bytes have to come by one write(): a stream that flushes at each byte 10, as
 * the printf of bash does, cuts a record in two.
 * ARM returns no id here, and REARM and CANCEL no verdict.  A timeout may expire, and its
 * event be read by another thread, at any time: TWHEEL_RECORD_ABSENT_OK keeps that from
 * ending a write of many records.  In a keyed wheel no id is needed: ARM of a key that
 * is there moves that timeout.  In any other wheel, a program without ioctl learns the id
 * of a timeout from its first event.
 *
 * write() does the records in order, each as the ioctl of that name does a vector of
 * one entry, and stops at the first that is refused.  It returns the number of bytes
 * of the records that were done, which is a multiple of sizeof(struct twheel_record).
 * When it returns less than it was given, the next record was refused, is not whole,
 * or cannot be read; the same write() from there on fails with the reason.  It fails
 * only when the first record is not done, and then nothing has changed::
 *
 *	EINVAL		the buffer is shorter than a record, op is unknown, a field
 *			that the operation does not use is not 0, or as the ioctl
 *	EFAULT		the record cannot be read
 *	EAGAIN		max_pending places are in use; or see RWF_NOWAIT below
 *	EINTR		a signal that kills the caller
 *	others		as the ioctl: EBUSY, EEXIST, ENOENT, ENOMEM, ENOSPC, ERANGE,
 *			ESHUTDOWN
 *
 * write() never waits for a place: O_NONBLOCK makes no difference.  poll() says POLLOUT
 * when there is one.
 *
 * RWF_NOWAIT and io_uring: read() and write() obey RWF_NOWAIT of preadv2() and
 * pwritev2().  A record then also fails with EAGAIN when it would have to wait or to
 * allocate: SETUP always, the first ARM of a wheel without SETUP, an ARM that finds no
 * free place in the memory of the wheel, and an ARM or REARM that needs memory for a
 * period or for slack.  io_uring tries each read and write in this way.  After EAGAIN it
 * polls the descriptor, for POLLIN or POLLOUT, and tries again, whether or not the
 * descriptor has O_NONBLOCK; a request with RWF_NOWAIT is completed with -EAGAIN instead.
 * So a READ and a READ_MULTISHOT wait for events without a thread, and so does a WRITE
 * for a place.  A WRITE that has to allocate is tried again and again, since there is a
 * place, and is then done by a worker thread of io_uring: it is better to set the wheel
 * up, and to arm it, by ioctl.
 */
struct twheel_record {
	__u32 op;
	__u32 flags;
	__aligned_u64 key;
	__aligned_u64 expires_ns;
	__aligned_u64 interval_ns;
	__u32 repeats;
	__u32 slack_ticks;
};

/**
 * struct twheel_setup_record - a record whose operation is TWHEEL_OP_SETUP
 * @op: TWHEEL_OP_SETUP
 * @flags: TWHEEL_SETUP_*
 * @clock: enum twheel_clock
 * @event_size: as in struct twheel_setup
 * @tick_ns: as in struct twheel_setup
 * @slack_ns: as in struct twheel_setup
 * @slots: as in struct twheel_setup
 * @max_pending: as in struct twheel_setup
 *
 * It is as long as struct twheel_record, and stands in the same array.  So there is no
 * room in it for a name: a wheel that is set up by it has none.
 */
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

/**
 * DOC: The refresh table
 *
 * The refresh table holds one 64-bit word for each timeout.  A program maps it by
 * mmap() of the descriptor, with MAP_SHARED and offset 0; the word of a timeout has
 * the index (__u32)id.  The program moves a one-shot timeout to a later deadline by
 * storing that deadline into the word, with no system call and no lock.  The functions
 * for that are in <twheel/device.h>, a header of libtwheel: twheel_refresh_deadline() makes
 * the deadline of a word, and twheel_refresh() stores it.
 *
 * The upper 36 bits of a word are an absolute deadline in grains of 2^refresh_shift ns,
 * modulo 2^36; refresh_shift stands in INFO.  A grain is at most as long as a tick, and
 * longer than half of one.  The lower 28 bits are the lowest bits of the id's
 * generation.
 *
 * When a stored deadline counts:
 *
 * - The kernel looks at the word when the timeout would expire, and sometimes
 *   before.  The timeout then expires at the deadline that the kernel has found
 *   there.
 * - Of several stores before the kernel looks, the last one counts.  After the
 *   kernel has looked, only a store of a later deadline counts.
 * - A store that comes after the timeout has expired is too late: the event can be
 *   read, or has been read.
 * - A store counts only for a pending one-shot timeout of the stored generation,
 *   and only when the stored deadline is at least a grain later than the known one,
 *   rounded down to a grain.  The known deadline is the one that was armed, or the one
 *   that the kernel found when it last looked.  Any other store changes nothing.
 * - ARM and REARM write the word: the generation, and the deadline rounded down to
 *   a grain, which moves nothing.  Where the table is mapped for the first time,
 *   the words of the timeouts that are there have an older generation.
 * - A program rounds a deadline up to a grain, so that the timeout does not expire before
 *   it.  The rounded deadline is the one in force: QUERY, LIST and ``next_expiry_ns`` of INFO
 *   go by it at once, and the event carries it in ``deadline_ns``.
 *
 * How far a store reaches: the kernel takes the grains for those of the time nearest
 * to the known deadline, so the stored deadline must be within 2^35 grains of that,
 * before it or after it.  These are 208 days where a tick is 1 ms, and 4.9 hours
 * where it is 1 us.  A deadline farther away, such as TWHEEL_TIME_NEVER, is a matter for
 * REARM.  When it is stored nevertheless, the kernel takes it for another one, a
 * multiple of 2^36 grains away: it moves the timeout to a later time than was
 * armed, or not at all.  A timeout with the known deadline TWHEEL_TIME_NEVER is moved by
 * REARM only.
 *
 * What a store may do to another timeout:
 *
 * - The store is one of 64 bits, atomic without a lock: a lock in the program would not keep
 *   the kernel from the word.
 * - The id of a timeout that has ended may name a word that another timeout has now.  A
 *   store whose generation is not that of the timeout does not count.  But it takes back a
 *   deadline that was stored for that timeout and that the kernel has not found yet: until
 *   the next store for that timeout, the known deadline is in force.  So a program that may
 *   have old ids compares the generation in the word first, and stores by compare and
 *   exchange unless that one is newer: unless it is greater by 1 to 2^27 - 1, modulo 2^28.
 * - The word has room for 28 bits of the generation.  When the generation of the present
 *   timeout is greater by a multiple of 2^28, the store delays that timeout.
 * - Whatever a program stores, no timeout expires before the deadline that it was
 *   armed with, no timeout is lost, and no other wheel is affected.
 *
 * REARM beside a store: a program moves a timeout to an earlier deadline by REARM, or in
 * a keyed wheel by ARM, while another of its threads stores a later one.  If the store is
 * made before the call writes the word, the call overwrites it.  If it is made after
 * that, it moves the timeout later again, as any store does.  A program that cannot have
 * that makes the two exclude each other: the thread that refreshes a timeout also
 * re-arms it, or a lock of the program is held for both.  Or it cancels the timeout and
 * arms another: a store through the old id does not count for the new one.
 *
 * The mapping:
 *
 * - INFO's refresh_size is the length to map.  mmap() fails with EINVAL for another
 *   offset, for a greater length, and for a private or executable mapping.  A
 *   mapping cannot be made longer.  A descriptor that was opened for reading only
 *   can be mapped for reading only, and one that was opened for writing only cannot be mapped
 *   (EACCES).
 * - A page of the table takes memory from the time when the first timeout has its
 *   word there.  An access before that time raises SIGBUS.
 * - When no timeout has its word in a page any more, the kernel takes the memory
 *   back and forgets the words in it.  An access still raises no signal: an id that
 *   was once given out never leads to SIGBUS.
 * - The table belongs to the wheel, and is the same in all processes that share the
 *   descriptor.  A mapping keeps the wheel open, as a descriptor does.
 */
#define TWHEEL_REFRESH_GEN_BITS	28
#define TWHEEL_REFRESH_GEN_MASK	0x0fffffffU

/* Numbers 00 to 1f of this are twheel's. */
#define TWHEEL_IOC_MAGIC	0xf7

/**
 * enum twheel_command - the commands of ioctl()
 * @TWHEEL_IOC_INFO: reports limits, configuration and counters: struct twheel_info
 * @TWHEEL_IOC_SETUP: configures a new wheel: struct twheel_setup
 * @TWHEEL_IOC_ARM: arms timeouts: struct twheel_vector of struct twheel_arm
 * @TWHEEL_IOC_REARM: moves timeouts: struct twheel_vector of struct twheel_arm
 * @TWHEEL_IOC_CANCEL: cancels timeouts: struct twheel_vector of struct twheel_cancel
 * @TWHEEL_IOC_QUERY: reports the state of timeouts: struct twheel_vector of struct
 *	twheel_status
 * @TWHEEL_IOC_LIST: reports the state of all timeouts, step by step: struct twheel_list
 * @TWHEEL_IOC_DRAIN: stops the wheel; its argument must be 0 (EINVAL otherwise).  It
 *	returns 0 when the events of all timeouts that were left can be read, and may
 *	be called again.  From its beginning on, ARM and REARM say ESHUTDOWN, and
 *	poll() does not say POLLOUT any more.  When DRAIN is done, poll() says POLLHUP,
 *	for ever; in between it says neither.  Like any POLLHUP, it reaches each
 *	watcher, even one that asked for no events: a service manager that keeps the
 *	descriptor for a restart drops it then (systemd does, unless it was told
 *	FDPOLL=0).
 * @TWHEEL_IOC_ADVANCE: moves the virtual clock: struct twheel_advance
 * @TWHEEL_IOC_REOPEN: opens the wheel once more, with a mode and flags of its own: struct
 *	twheel_reopen
 *
 * The command numbers carry no size: structures may grow, and the first field of
 * each says how large the caller's structure is.
 *
 * Each name is a macro as well, for #ifdef, and for tools that look for ioctls in headers.
 * Programs of other languages find the numbers in the enum.
 */
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

#endif /* _UAPI_LINUX_TWHEEL_H */
