/* SPDX-License-Identifier: MIT */
/*
 * libtwheel: timeouts by number
 *
 * A table has nr numbers, 0 to nr - 1, and each number has one timeout: it is started with a
 * deadline, and stopped or started again at will.  A program fetches the numbers that have
 * expired into an array.  There is no callback, no function is inline, and all types have the
 * same width everywhere, so that other languages can call this by hand: ctypes, cffi, JNI,
 * N-API, cgo.
 *
 *	struct twheel_table *table;
 *	uint32_t numbers[256];
 *	int32_t i, nr;
 *
 *	if (twheel_table_open(&table, 10000, NULL) < 0)
 *		...
 *	twheel_table_start_after(table, 17, 30 * 1000000000ULL);	restarts it as well
 *	twheel_table_stop(table, 17);
 *	...
 *	nr = twheel_table_expired(table, numbers, 256, TWHEEL_TABLE_NEVER);
 *	for (i = 0; i < nr; i++)
 *		...						numbers[i] has expired
 *
 * A program that has many changes at a time puts them into an array, and makes them by one
 * call of twheel_table_apply().  This is the fast path: the cost of a call is shared by 256
 * of them.
 *
 * A table is in the process, or on the device /dev/twheel.  All rules are the same.  The one
 * in the process is faster.  On the device several processes use one table, and the timeouts
 * outlive the process that started them: the table lives as long as one process has its
 * descriptor.
 *
 * Rules that hold for all functions:
 *
 * - Times are nanoseconds on the table's clock.  A deadline from INT64_MAX on, such as
 *   TWHEEL_TABLE_NEVER, is none: to start a number with it is to stop it.
 * - A number never expires before its deadline.  It expires at the first multiple of tick_ns
 *   at or after its deadline.  A deadline that has passed when the number is started does not
 *   wait for that; on the device a thread of the kernel then needs some microseconds.
 * - A number is idle, pending, or unread: it has expired, and twheel_table_expired() has not
 *   fetched it.  To start or to stop an unread number revokes the expiry, which nobody
 *   fetches then.  So each start has exactly one outcome: the number is fetched once, or it is
 *   stopped, or it is started again.
 * - If a program gives numbers out, each number comes back once.  If a stop returned
 *   TWHEEL_TABLE_PENDING or TWHEEL_TABLE_UNREAD, nobody fetches the number: the thread that
 *   stopped it gives it back.  If it returned TWHEEL_TABLE_IDLE, the number was fetched: the
 *   thread that fetched it gives it back.  A number that was given back is idle, so it needs no
 *   generation.  A thread that has given a number back must not start or stop it.
 * - If the clock is set back, an unread number whose deadline is ahead again is pending again in
 *   the process.  On the device it stays unread.  Nowhere is it fetched twice.
 * - Numbers are fetched in the order of their ticks, and in any order within a tick.
 * - Any thread may call any function at any time, but for twheel_table_close(), which must be
 *   the last call.  On the device so may any process that has the descriptor.  Several threads
 *   and processes may fetch: each expiry is fetched once.
 * - A thread that sleeps in twheel_table_expired() is woken in time, whoever starts a number.
 *   To wake it for another reason, keep a number for that, and start it with the deadline 0.
 * - After fork(), the child may only close a table in the process, and open another one.  On
 *   the device both go on with the same table, and both may close it.
 * - If a process dies in the middle of a call, each change of its array has been made or has
 *   not been made.  A number that it has fetched is idle.
 * - Functions that can fail return a negative errno.  errno itself may change as well.
 */
#ifndef _TWHEEL_TABLE_H
#define _TWHEEL_TABLE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No deadline, or no limit. */
#define TWHEEL_TABLE_NEVER	UINT64_MAX

struct twheel_table;

/* Where a table is. */
#define TWHEEL_TABLE_AUTO	0U	/* the device if it is asked for by a flag or by fd */
#define TWHEEL_TABLE_PROCESS	1U
#define TWHEEL_TABLE_DEVICE	2U

/* Clocks of a table. */
#define TWHEEL_TABLE_MONOTONIC	0U
#define TWHEEL_TABLE_BOOTTIME	1U
#define TWHEEL_TABLE_REALTIME	2U
#define TWHEEL_TABLE_TAI	3U
#define TWHEEL_TABLE_VIRTUAL	4U	/* begins at 0, moves by twheel_table_advance() only */

/*
 * A flag of a table: processes are to share it, or its timeouts are to outlive the process.
 * So it has to be on the device.
 */
#define TWHEEL_TABLE_PROCESSES	(1U << 0)

/**
 * struct twheel_table_options - how a table is to be; 0 is the default, but for @size
 * @size: sizeof(struct twheel_table_options): 32
 * @backend: TWHEEL_TABLE_AUTO and its like
 * @flags: TWHEEL_TABLE_PROCESSES or 0
 * @clock: TWHEEL_TABLE_MONOTONIC and its like
 * @tick_ns: 1 us to 1 h; 0 for 1 ms
 * @fd: a descriptor of the device above 2, inherited or received over a socket; 0 for none.
 *	If it is that of a table, the new one is the same table, with all that pends in it, and
 *	@clock and @tick_ns are not looked at.
 * @reserved: 0
 */
struct twheel_table_options {
	uint32_t size;
	uint32_t backend;
	uint32_t flags;
	uint32_t clock;
	uint64_t tick_ns;
	int32_t fd;
	uint32_t reserved;
};

/**
 * struct twheel_table_change - a number to start or to stop; 16 bytes
 * @number: the number
 * @result: out: what it was before, TWHEEL_TABLE_IDLE and its like, or a negative errno
 * @deadline_ns: when it is to expire; TWHEEL_TABLE_NEVER to stop it
 */
struct twheel_table_change {
	uint32_t number;
	int32_t result;
	uint64_t deadline_ns;
};

/* What a number is, or was before a change. */
#define TWHEEL_TABLE_IDLE	0	/* not started, stopped, or fetched */
#define TWHEEL_TABLE_PENDING	1
#define TWHEEL_TABLE_UNREAD	2	/* it has expired, and nobody has fetched it */

/*
 * A flag of twheel_table_apply(): each deadline_ns counts from now on.  Not for a clock that
 * can be set: TWHEEL_TABLE_REALTIME and TWHEEL_TABLE_TAI.
 */
#define TWHEEL_TABLE_AFTER	(1U << 0)

/**
 * twheel_table_open() - make a table, or take one over
 * @table: out: the table; NULL on failure
 * @nr: how many numbers it has, 1 to 2^30, on the device no more than the max_pending_limit
 *	of the module less 65,536; if @options has the descriptor of a table, as many as that has
 * @options: how it is to be; NULL for the defaults
 *
 * In the process a number takes 40 bytes, when it is used.
 *
 * On success, a descriptor that was given belongs to the table; it is made non-blocking for
 * all who share it, and closed by exec.  On failure it still belongs to the caller.
 *
 * Return: 0, or:
 *	-EINVAL		an option or @nr is outside its range, or the descriptor is that of a
 *			wheel that is no table, or has another number of numbers
 *	-E2BIG		@options is larger than this library knows, and not zero there
 *	-ENOMEM		out of memory
 *	-ENOENT		there is no device, and the like from open()
 *	-EACCES		the program may not open the device
 *	-EMFILE		the process has too many open files; -ENFILE: the system has
 *	-ENOSPC		the device has no memory left, or the user's share of it is used up
 *	-EBADF		the descriptor is not open; -ENOTTY: it is something else
 */
int32_t twheel_table_open(struct twheel_table **table, uint32_t nr,
			  const struct twheel_table_options *options);

/**
 * twheel_table_close() - close a table
 * @table: the table, or NULL
 *
 * On the device, what pends goes on if another descriptor of the table is open.
 */
void twheel_table_close(struct twheel_table *table);

/* How many numbers a table has. */
uint32_t twheel_table_nr(const struct twheel_table *table);

/* Where a table is: TWHEEL_TABLE_PROCESS or TWHEEL_TABLE_DEVICE. */
uint32_t twheel_table_backend(const struct twheel_table *table);

/**
 * twheel_table_start() - start a number, or restart it
 * @table: the table
 * @number: the number
 * @deadline_ns: when it is to expire
 *
 * Return: what the number was: TWHEEL_TABLE_IDLE, _PENDING or _UNREAD, or:
 *	-ERANGE		there is no such number
 *	-ENOMEM		the device has no memory; -ENOSPC: or the user's share is used up
 *	-ESHUTDOWN	the device has been drained
 *	-EBADF		the descriptor of the table was closed by somebody else.  In the
 *			process, the number has been started nevertheless.
 */
int32_t twheel_table_start(struct twheel_table *table, uint32_t number, uint64_t deadline_ns);

/**
 * twheel_table_start_after() - the same, counted from now
 * @table: the table
 * @number: the number
 * @delay_ns: how long from now
 *
 * Return: as twheel_table_start(), or -EINVAL if the clock is TWHEEL_TABLE_REALTIME or
 * TWHEEL_TABLE_TAI, which can be set.
 */
int32_t twheel_table_start_after(struct twheel_table *table, uint32_t number, uint64_t delay_ns);

/**
 * twheel_table_stop() - stop a number
 * @table: the table
 * @number: the number
 *
 * It is idle afterwards, and nobody fetches it.
 *
 * Return: what the number was: TWHEEL_TABLE_IDLE, _PENDING or _UNREAD, or -ERANGE or -EBADF as
 * twheel_table_start().
 */
int32_t twheel_table_stop(struct twheel_table *table, uint32_t number);

/**
 * twheel_table_apply() - start and stop numbers, as many as there are in an array
 * @table: the table
 * @changes: the numbers and deadlines; out: the result of each
 * @nr: how many
 * @flags: TWHEEL_TABLE_AFTER or 0
 *
 * Changes of one number are made in the order of the array.  A change that fails is passed
 * over.
 *
 * Return: how many changes were made, or, if no change was looked at:
 *	-EINVAL		@flags has an unknown flag, or TWHEEL_TABLE_AFTER and the clock can be
 *			set, or @nr is above INT32_MAX
 *	-EBADF		in the process: the changes were made, but the descriptor of the table
 *			was closed by somebody else, so a sleeper may not know
 */
int32_t twheel_table_apply(struct twheel_table *table, struct twheel_table_change *changes,
			   uint32_t nr, uint32_t flags);

/**
 * twheel_table_expired() - fetch the numbers that have expired
 * @table: the table
 * @numbers: out: the numbers, which are idle now
 * @nr: how many there is room for, at least 1
 * @timeout_ns: how long to sleep if there is none: 0 for not at all, TWHEEL_TABLE_NEVER for no
 *	limit; real time, whatever the clock of the table is
 *
 * Return: how many there are; 0 if time was up; or:
 *	-EINVAL		@nr is 0
 *	-EINTR		a signal came while it slept
 *	-ESHUTDOWN	the device has been drained, and all that had expired was fetched
 *	-EBADF		the descriptor of the table was closed by somebody else
 *	-EMFILE		the first sleep in the process needs a descriptor; -ENFILE, -ENOMEM
 */
int32_t twheel_table_expired(struct twheel_table *table, uint32_t *numbers, uint32_t nr,
			     uint64_t timeout_ns);

/**
 * twheel_table_state() - say what a number is
 * @table: the table
 * @number: the number
 * @deadline_ns: out: the deadline as it was given, if the number is pending, otherwise
 *	TWHEEL_TABLE_NEVER; may be NULL
 *
 * Return: TWHEEL_TABLE_IDLE, _PENDING or _UNREAD, -ERANGE if there is no such number, or
 * -EBADF.
 */
int32_t twheel_table_state(struct twheel_table *table, uint32_t number, uint64_t *deadline_ns);

/**
 * twheel_table_fd() - the descriptor of a table, for poll(), epoll, and event loops
 * @table: the table
 *
 * It is readable when twheel_table_expired() has something to fetch, or in the process may
 * have.  It is not to be read from, and twheel_table_close() closes it.  On the device, a
 * duplicate of it passes the table on to another process.
 *
 * Return: the descriptor, above 2; in the process the first call makes it, and can return
 * -EMFILE, -ENFILE or -ENOMEM.
 */
int32_t twheel_table_fd(struct twheel_table *table);

/**
 * twheel_table_next() - say until when a loop may sleep
 * @table: the table
 *
 * On the device the kernel looks at all numbers for that: a loop does better by
 * twheel_table_fd().  In the process the time may be too early, but never too late: where many
 * numbers come near each other, the loop wakes up before the first of them, and asks again.
 *
 * Return: nanoseconds on the table's clock; a time that has passed if something has expired, or
 * if it was too early; TWHEEL_TABLE_NEVER if nothing will expire.  On the device it is 0 if the
 * descriptor was closed by somebody else: twheel_table_expired() then says -EBADF.
 */
uint64_t twheel_table_next(struct twheel_table *table);

/*
 * The time of a table, in nanoseconds; on the device 0 if the descriptor was closed by somebody
 * else.
 */
uint64_t twheel_table_now(struct twheel_table *table);

/**
 * twheel_table_advance() - move the virtual clock
 * @table: a table with TWHEEL_TABLE_VIRTUAL
 * @to_ns: the new time, not before the present one, and below INT64_MAX
 *
 * What is due by then can be fetched when it returns.
 *
 * Return: 0, or:
 *	-EINVAL		@to_ns is out of range
 *	-EOPNOTSUPP	the clock is another one
 *	-EINTR		a signal came while it waited for the device; it may be repeated
 *	-ESHUTDOWN	the device has been drained
 */
int32_t twheel_table_advance(struct twheel_table *table, uint64_t to_ns);

#ifdef __cplusplus
}
#endif

#endif /* _TWHEEL_TABLE_H */
