/* SPDX-License-Identifier: MIT */
/*
 * libtwheel: a client of the device, /dev/twheel
 *
 * The device keeps timeouts in the kernel: for threads and processes that share a wheel, and
 * for timeouts that outlive the process that armed them.  <linux/twheel.h> documents it:
 * structures, flags, units, ranges and errors.  This header makes its calls from C, C++ and
 * other languages, without vectors by hand.  It needs no other part of the library.
 *
 *	struct twheel_arm arms[256] = {0};
 *	struct twheel_event events[64];
 *	struct twheel_device *d;
 *
 *	if (twheel_device_open(&d, NULL, 0, NULL) < 0)
 *		...
 *	arms[i].user_data = who;				as many as there are
 *	arms[i].expires_ns = 30 * 1000000000ULL;		from now
 *	twheel_device_arm_many(d, arms, nr);			one call for all of them
 *	twheel_device_cancel(d, arms[i].id);
 *	...
 *	nr = twheel_device_read(d, events, 64);
 *	for (i = 0; i < nr; i++)
 *		...						events[i].user_data is who
 *
 * A program that has no array, or timeouts of several kinds, collects them in a batch, and
 * fetches events by a reader, one after the other:
 *
 *	twheel_batch_open(&batch, d, 256);
 *	twheel_reader_open(&reader, d, 64);
 *	twheel_batch_arm(batch, who, 30 * 1000000000ULL);	as many as there are
 *	twheel_batch_cancel(batch, id);
 *	twheel_batch_submit(batch);				one call for each run of a kind
 *	...
 *	while (twheel_reader_next(reader, &event) == 1)
 *		...						event.user_data is who
 *
 * Rules that hold for all functions:
 *
 * - Times are nanoseconds of the wheel's own clock, as in <linux/twheel.h>.
 * - A function that can fail returns a negative errno.  errno itself may change as well.  A
 *   function that carries out one operation returns the result of that operation.  If the
 *   call itself fails, it returns the errno of the call.
 * - Any thread may use a device at any time, but for twheel_device_close(), which must be the
 *   last call.  A batch and a reader are for one thread at a time: threads open one each.
 *   Batches and readers are closed before their device.
 * - After fork(), parent and child share the wheel, and both may use the device.
 *   twheel_device_close() in one of them does not disturb the other.  A batch and a reader
 *   belong to either the parent or the child, and the other process closes its copy.  If both
 *   used them, elements would be submitted twice, and events handled twice.
 * - exec closes the descriptor, and so does twheel_device_close().  To pass the wheel
 *   on, through exec or over a socket, pass a duplicate of twheel_device_fd(); the other
 *   process calls twheel_device_adopt().  The wheel lives until its last descriptor and its
 *   last mapping are closed.
 * - Structures of <linux/twheel.h> may grow at their end.  The inline functions below pass the
 *   size of the structure that the program was compiled with.
 *
 * All functions are in the library.  Those at the end of this file are inline as well.  If
 * TWHEEL_NO_INLINE is defined, they are declared only: for a program that makes bindings of
 * this header for another language.  Structures then have the sizes that the library was
 * built with.
 */
#ifndef _TWHEEL_DEVICE_H
#define _TWHEEL_DEVICE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/twheel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library defines _TWHEEL_DEVICE_LIBRARY, and so makes functions of the inline ones. */
#if defined(TWHEEL_NO_INLINE) || defined(_TWHEEL_DEVICE_LIBRARY)
#define _TWHEEL_DEVICE_INLINE
#else
#define _TWHEEL_DEVICE_INLINE	static inline
#endif

/* All three are the library's; a program has pointers to them. */
struct twheel_device;
struct twheel_batch;
struct twheel_reader;

/* ---- the device ---------------------------------------------------------- */

/**
 * twheel_device_open() - open the device, and set a new wheel up
 * @d: out: the device; NULL on failure
 * @path: the device; NULL for /dev/twheel
 * @flags: O_NONBLOCK, so that fetching does not wait for an event, or 0
 * @setup: how the wheel is to be, see <linux/twheel.h>; NULL for TWHEEL_CLOCK_MONOTONIC and the
 *	defaults
 *
 * The descriptor is not 0, 1 or 2, and is closed by exec.
 *
 * Return: 0, or:
 *	-EINVAL		a member of @setup is outside its range
 *	-E2BIG		a member of @setup that the module does not know is not 0
 *	-ENOENT		there is no such device, and the like from open()
 *	-EACCES		the program may not open it
 *	-EMFILE		the process has too many open files; -ENFILE: the system has
 *	-ENOMEM		out of memory, or the memory cgroup is at its limit
 *	-ENOSPC		the module's limit of memory is reached, or the user's share of it
 *	-ENOTTY		@path is something else
 */
int twheel_device_open(struct twheel_device **d, const char *path, int flags,
		       const struct twheel_setup *setup);

/**
 * twheel_device_adopt() - take over a descriptor of the device, and all that pends there
 * @d: out: the device; NULL on failure
 * @fd: the descriptor, inherited, received over a socket, or of the program's own open()
 * @setup: how the wheel is to be if nobody has set it up or armed it; NULL for the
 *	defaults.  Otherwise the wheel stays as it is: twheel_device_info() says how that is,
 *	and twheel_device_list() what pends.
 *
 * On success the descriptor belongs to @d.  exec closes it from now on, and a descriptor 0, 1
 * or 2 is moved to another number.  On failure it still belongs to the caller.
 *
 * Return: 0, or:
 *	-EBADF		@fd is not open, or it is not open for writing, and nobody has set the
 *			wheel up
 *	-ENOTTY		@fd is something else
 *	others		-EINVAL, -E2BIG, -EMFILE, -ENOMEM, -ENOSPC, as twheel_device_open()
 */
int twheel_device_adopt(struct twheel_device **d, int fd, const struct twheel_setup *setup);

/**
 * twheel_device_close() - close a device
 * @d: the device; NULL does nothing
 *
 * Its refresh table is unmapped.  If no other descriptor or mapping of the wheel is left, the
 * wheel ends, with all its timeouts.
 */
void twheel_device_close(struct twheel_device *d);

/**
 * twheel_device_fd() - the descriptor of a device, for poll(), epoll and ioctl()
 * @d: the device
 *
 * poll() says POLLIN when an event can be read, POLLOUT when a timeout can be armed, and
 * POLLHUP when the wheel has been drained.
 *
 * Return: the descriptor, which belongs to @d.
 */
int twheel_device_fd(const struct twheel_device *d);

/**
 * twheel_device_reopen() - open the wheel of a device once more, with a mode of its own
 * @d: the device
 * @flags: O_RDONLY, O_WRONLY or O_RDWR, with O_NONBLOCK and O_CLOEXEC, as for open()
 *
 * A process that is given a descriptor which is open for reading only may fetch events, look,
 * and nothing else.  It makes a device of it by twheel_device_adopt().
 *
 * Return: a descriptor, which belongs to the caller, or:
 *	-EBADF		the device itself does not have that mode
 *	-EINVAL		another flag
 *	-EMFILE		the process has too many open files; -ENFILE: the system has
 *	-ENOMEM		out of memory, or the memory cgroup is at its limit
 */
int twheel_device_reopen(const struct twheel_device *d, int flags);

/**
 * twheel_device_info() - get limits, configuration and counters
 * @d: the device
 * @info: out; a member that the module does not know is 0
 * @flags: TWHEEL_INFO_*: with TWHEEL_INFO_WALK it takes longer for many timeouts
 *
 * Return: 0, or -EINVAL for other flags.
 */
_TWHEEL_DEVICE_INLINE
int twheel_device_info(const struct twheel_device *d, struct twheel_info *info, uint32_t flags);

/**
 * twheel_device_now() - get the time of a wheel
 * @d: the device
 * @now_ns: out
 *
 * This makes a system call.  A program in the time namespace of the wheel may use
 * clock_gettime() with the clock that the wheel was set up with, which makes none.
 *
 * Return: 0, or -EBADF if the descriptor was closed behind the library's back.
 */
int twheel_device_now(const struct twheel_device *d, uint64_t *now_ns);

/**
 * twheel_device_list() - list timeouts: a step of a walk over all of them
 * @d: the device
 * @cursor: 0 to begin; moved on by each call
 * @rows: out
 * @nr: room at @rows, rows, 1 to INFO's max_vector
 *
 * Beside concurrent changes, a timeout that nobody touches during the walk appears exactly
 * once, and one that is re-armed at least once.
 *
 * Return: how many rows were filled in; 0 at the end; or:
 *	-EINVAL		@nr is 0
 *	-E2BIG		@nr is above INFO's max_vector
 */
_TWHEEL_DEVICE_INLINE
int twheel_device_list(const struct twheel_device *d, uint64_t *cursor,
		       struct twheel_status *rows, uint32_t nr);

/**
 * twheel_device_drain() - stop a wheel
 * @d: the device
 *
 * Each timeout that is left becomes an event with the flag TWHEEL_EVENT_DRAINED.  From now on
 * nothing can be armed.
 *
 * Return: 0, also when it was drained before; -EINTR: a signal came while it waited, and the
 * call may be repeated; or -EBADF if the descriptor is not open for writing.
 */
int twheel_device_drain(const struct twheel_device *d);

/**
 * twheel_device_advance() - move the virtual clock
 * @d: the device
 * @to_ns: the new time, not before the present one, TWHEEL_TIME_NEVER at most
 *
 * Return: 0 when the events of all timeouts that are due can be read, or:
 *	-EOPNOTSUPP	the clock of the wheel is not TWHEEL_CLOCK_VIRTUAL
 *	-EINVAL		@to_ns is outside its range
 *	-EINTR		a signal came while it waited; the call may be repeated
 *	-ESHUTDOWN	the wheel has been drained
 *	-EBADF		the descriptor is not open for writing
 */
int twheel_device_advance(const struct twheel_device *d, uint64_t to_ns);

/* ---- one timeout --------------------------------------------------------- */

/*
 * A call each.  A program that has several timeouts to arm, to move or to cancel at a time
 * saves most of the cost by the functions for many, or by a batch, below.
 */

/**
 * twheel_device_arm() - arm a timeout; in a keyed wheel, arm or replace that of a key
 * @d: the device
 * @arm: the timeout, and out: its id and result; in a keyed wheel also the deadline that was
 *	replaced.  Members that are not used must be 0.
 *
 * In a keyed wheel, user_data is the key.  TWHEEL_ARM_IF_ABSENT, _IF_PRESENT, _ONLY_LATER and
 * _ONLY_EARLIER in its flags make it depend on what is there.
 *
 * Return: enum twheel_verdict, or:
 *	-EINVAL		a member is outside its range, or the time is relative and the clock can
 *			be set
 *	-EAGAIN		max_pending timeouts are in use; poll() says POLLOUT when one may be
 *			armed again
 *	-EEXIST		TWHEEL_ARM_IF_ABSENT, and the key is there
 *	-ENOENT		TWHEEL_ARM_IF_PRESENT, and the key is not there
 *	-ERANGE		TWHEEL_ARM_ONLY_LATER or _EARLIER, and the deadline is not
 *	-ENOMEM		out of memory, or the memory cgroup is at its limit
 *	-ENOSPC		the module's limit of memory is reached, or the user's share of it
 *	-ESHUTDOWN	the wheel has been drained
 *	-EBADF		the descriptor is not open for writing
 */
_TWHEEL_DEVICE_INLINE
int twheel_device_arm(const struct twheel_device *d, struct twheel_arm *arm);

/**
 * twheel_device_rearm() - move a timeout to an earlier or a later deadline
 * @d: the device
 * @arm: its id, and the new times; out: the result
 *
 * An unread event of it is revoked.
 *
 * Return: TWHEEL_WAS_PENDING or TWHEEL_WAS_UNREAD, or:
 *	-ENOENT		there is no such timeout: its last event was read, or it was cancelled
 *	others		-EBADF, -EINVAL, -ENOMEM, -ENOSPC, -ERANGE, -ESHUTDOWN, as
 *			twheel_device_arm()
 */
_TWHEEL_DEVICE_INLINE
int twheel_device_rearm(const struct twheel_device *d, struct twheel_arm *arm);

/**
 * twheel_device_rearm_key() - move the timeout that has a key
 * @d: the device, whose wheel is keyed; -EINVAL otherwise
 * @arm: the key, as its id, and the new times; out: the result
 *
 * Return: as twheel_device_rearm().
 */
_TWHEEL_DEVICE_INLINE
int twheel_device_rearm_key(const struct twheel_device *d, struct twheel_arm *arm);

/**
 * twheel_device_cancel() - cancel a timeout
 * @d: the device
 * @id: the timeout
 *
 * Return: TWHEEL_WAS_PENDING; TWHEEL_WAS_UNREAD, and nobody will read that event; -ENOENT
 * when its last event has been read, or there never was such a timeout; or -EBADF if the
 * descriptor is not open for writing.
 */
_TWHEEL_DEVICE_INLINE
int twheel_device_cancel(const struct twheel_device *d, uint64_t id);

/**
 * twheel_device_cancel_key() - cancel the timeout that has a key
 * @d: the device, whose wheel is keyed; -EINVAL otherwise
 * @key: the key
 *
 * Return: as twheel_device_cancel().
 */
_TWHEEL_DEVICE_INLINE
int twheel_device_cancel_key(const struct twheel_device *d, uint64_t key);

/**
 * twheel_device_query() - get the state of a timeout
 * @d: the device
 * @status: its id; out: all the rest, if the call succeeds
 *
 * Return: 0, or -ENOENT if there is no such timeout.
 */
_TWHEEL_DEVICE_INLINE
int twheel_device_query(const struct twheel_device *d, struct twheel_status *status);

/**
 * twheel_device_query_key() - get the state of the timeout that has a key
 * @d: the device, whose wheel is keyed; -EINVAL otherwise
 * @status: the key, as its id; out: all the rest, if the call succeeds, the id too
 *
 * Return: as twheel_device_query().
 */
_TWHEEL_DEVICE_INLINE
int twheel_device_query_key(const struct twheel_device *d, struct twheel_status *status);

/* ---- many timeouts ------------------------------------------------------- */

/*
 * These do what the functions for one timeout do, with all elements of an array, in their
 * order, by one system call.  An array that is longer than INFO's max_vector takes one for each
 * max_vector elements.
 *
 * They go on past an element that fails.  If a call fails as a whole, all of its elements have
 * its errno as their result.  So each element has a result when they return.
 */

/**
 * twheel_device_arm_many() - arm timeouts, as by twheel_device_arm()
 * @d: the device
 * @arms: the timeouts, and out: what twheel_device_arm() writes
 * @nr: how many
 *
 * Return: how many succeeded.
 */
_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_arm_many(const struct twheel_device *d, struct twheel_arm *arms,
				uint32_t nr);

/**
 * twheel_device_rearm_many() - move timeouts, as by twheel_device_rearm()
 * @d: the device
 * @arms: their ids, and the new times; out: the results
 * @nr: how many
 *
 * Return: how many succeeded.
 */
_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_rearm_many(const struct twheel_device *d, struct twheel_arm *arms,
				  uint32_t nr);

/* twheel_device_rearm_key_many() - the same with keys, as by twheel_device_rearm_key() */
_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_rearm_key_many(const struct twheel_device *d, struct twheel_arm *arms,
				      uint32_t nr);

/**
 * twheel_device_cancel_many() - cancel timeouts, as by twheel_device_cancel()
 * @d: the device
 * @cancels: their ids; out: the results
 * @nr: how many
 *
 * Return: how many succeeded.
 */
_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_cancel_many(const struct twheel_device *d, struct twheel_cancel *cancels,
				   uint32_t nr);

/* twheel_device_cancel_key_many() - the same with keys, as by twheel_device_cancel_key() */
_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_cancel_key_many(const struct twheel_device *d,
				       struct twheel_cancel *cancels, uint32_t nr);

/* ---- a batch ------------------------------------------------------------- */

/*
 * A batch collects operations, and carries them out in their order.  An element of it is the
 * kernel's own: the functions that add one fill it in and return it, so that the program may
 * set what they do not (flags, interval_ns, repeats, slack_ticks), and may find the result
 * there.  Elements stay where they are until twheel_batch_reset().
 *
 * Each run of elements of one kind, added by one function, takes one system call.  So a
 * program that need not keep the order between arming and cancelling adds one after the
 * other.
 */

/**
 * twheel_batch_open() - make a batch
 * @b: out: the batch; NULL on failure
 * @d: the device
 * @capacity: how many elements it holds, 1 to INFO's max_vector
 *
 * All its memory is allocated here, 80 bytes for each element.
 *
 * Return: 0, or -EINVAL for another capacity, or -ENOMEM.
 */
_TWHEEL_DEVICE_INLINE
int twheel_batch_open(struct twheel_batch **b, const struct twheel_device *d, uint32_t capacity);

/**
 * twheel_batch_close() - free a batch, with what was not submitted
 * @b: the batch; NULL does nothing
 */
void twheel_batch_close(struct twheel_batch *b);

/**
 * twheel_batch_arm() - add a timeout to be armed, as by twheel_device_arm()
 * @b: the batch
 * @user_data: handed back in events; in a keyed wheel the key
 * @expires_ns: when it expires, from now; or a point on the wheel's clock, if the caller sets
 *	TWHEEL_ARM_ABSOLUTE in its flags
 *
 * Return: the element; NULL if the batch is full.  After twheel_batch_submit() it has the id.
 */
_TWHEEL_DEVICE_INLINE
struct twheel_arm *twheel_batch_arm(struct twheel_batch *b, uint64_t user_data,
				    uint64_t expires_ns);

/**
 * twheel_batch_rearm() - add a timeout to be moved, as by twheel_device_rearm()
 * @b: the batch
 * @id: the timeout
 * @expires_ns: as for twheel_batch_arm()
 *
 * Return: the element; NULL if the batch is full.
 */
_TWHEEL_DEVICE_INLINE
struct twheel_arm *twheel_batch_rearm(struct twheel_batch *b, uint64_t id, uint64_t expires_ns);

/**
 * twheel_batch_rearm_key() - add one to be moved, as by twheel_device_rearm_key()
 * @b: the batch, of a keyed wheel
 * @key: its key
 * @expires_ns: as for twheel_batch_arm()
 *
 * Return: the element; NULL if the batch is full.
 */
_TWHEEL_DEVICE_INLINE
struct twheel_arm *twheel_batch_rearm_key(struct twheel_batch *b, uint64_t key,
					  uint64_t expires_ns);

/**
 * twheel_batch_cancel() - add a timeout to be cancelled, as by twheel_device_cancel()
 * @b: the batch
 * @id: the timeout
 *
 * Return: the element; NULL if the batch is full.
 */
_TWHEEL_DEVICE_INLINE
struct twheel_cancel *twheel_batch_cancel(struct twheel_batch *b, uint64_t id);

/**
 * twheel_batch_cancel_key() - add one to be cancelled, as by twheel_device_cancel_key()
 * @b: the batch, of a keyed wheel
 * @key: its key
 *
 * Return: the element; NULL if the batch is full.
 */
_TWHEEL_DEVICE_INLINE
struct twheel_cancel *twheel_batch_cancel_key(struct twheel_batch *b, uint64_t key);

/**
 * twheel_batch_submit() - carry out what was added since the last call
 * @b: the batch
 *
 * It goes on past an element that fails.  If a call fails as a whole, all of its elements
 * have its errno as their result.  So each element has a result when this returns.
 *
 * Return: how many succeeded; twheel_batch_result() says why the others did not.
 */
uint32_t twheel_batch_submit(struct twheel_batch *b);

/**
 * twheel_batch_reset() - empty a batch, also of what was not submitted
 * @b: the batch
 */
void twheel_batch_reset(struct twheel_batch *b);

/**
 * twheel_batch_nr() - count the elements of a batch
 * @b: the batch
 *
 * Return: how many it has, submitted or not.
 */
uint32_t twheel_batch_nr(const struct twheel_batch *b);

/**
 * twheel_batch_result() - the result of an element
 * @b: the batch
 * @index: which one: 0 is the first that was added
 *
 * Return: as the function for one timeout; -EINPROGRESS for an element that was not
 * submitted; -EINVAL if there is none of that index.
 */
int twheel_batch_result(struct twheel_batch *b, uint32_t index);

/**
 * twheel_batch_id() - the timeout that an element is about
 * @b: the batch
 * @index: as for twheel_batch_result()
 *
 * Return: the id that arming has given, 0 if it was refused; for moving and cancelling the id
 * or the key that was added; 0 if there is none of that index.
 */
uint64_t twheel_batch_id(struct twheel_batch *b, uint32_t index);

/* ---- events -------------------------------------------------------------- */

/**
 * twheel_device_read() - fetch events
 * @d: the device
 * @events: out; a member that the wheel's event_size does not cover is 0
 * @nr: how many there is room for, at least 1
 *
 * It is one read(), which waits for an event unless the descriptor is non-blocking.  Each event
 * goes to one reader.
 *
 * A program that waits for POLLIN with poll() or a level-triggered epoll may call it once; with
 * an edge-triggered epoll it calls it until -EAGAIN.
 *
 * An event that was fetched has been delivered: twheel_device_cancel() says -ENOENT for a
 * one-shot from then on.  See struct twheel_event on what that means for user_data.
 *
 * Return: how many events were fetched, 65,536 at most, or fewer if the wheel's event_size is
 * not that of struct twheel_event; 0 when the wheel has been drained and no event is left; or:
 *	-EAGAIN		there is no event now, and the descriptor is non-blocking
 *	-EINTR		a signal came while it waited
 *	-EINVAL		@nr is 0
 *	-EBADF		the descriptor is not open for reading
 *	-EIO		the descriptor was closed behind the library's back, and is something
 *			else now
 */
_TWHEEL_DEVICE_INLINE
int twheel_device_read(const struct twheel_device *d, struct twheel_event *events, uint32_t nr);

/**
 * twheel_reader_open() - make a reader of events
 * @r: out: the reader; NULL on failure
 * @d: the device
 * @nr: how many events a system call fetches at most, 1 to 65,536
 *
 * Several readers of a device share the events: each event goes to one of them.
 *
 * Return: 0, or -EINVAL for another @nr, or -ENOMEM.
 */
int twheel_reader_open(struct twheel_reader **r, const struct twheel_device *d, uint32_t nr);

/**
 * twheel_reader_close() - free a reader
 * @r: the reader; NULL does nothing
 *
 * The events that twheel_reader_left() counts are lost.
 */
void twheel_reader_close(struct twheel_reader *r);

/**
 * twheel_reader_next() - fetch an event
 * @r: the reader
 * @event: out; a member that the wheel's event_size does not cover is 0
 *
 * If the buffer of the reader is empty, it is filled by one read(), which waits for an event
 * unless the descriptor is non-blocking.
 *
 * A program that waits for POLLIN with poll() or a level-triggered epoll may fetch events until
 * twheel_reader_left() says 0, which saves a call; with an edge-triggered epoll it fetches them
 * until -EAGAIN.
 *
 * An event in the buffer has been delivered: twheel_device_cancel() says -ENOENT for a
 * one-shot from then on.  See struct twheel_event on what that means for user_data.
 *
 * Return: 1 with an event; 0 when the wheel has been drained and no event is left; or:
 *	-EAGAIN		there is no event now, and the descriptor is non-blocking
 *	-EINTR		a signal came while it waited
 *	-EBADF		the descriptor is not open for reading
 *	-EIO		the descriptor was closed behind the library's back, and is something
 *			else now
 */
_TWHEEL_DEVICE_INLINE
int twheel_reader_next(struct twheel_reader *r, struct twheel_event *event);

/**
 * twheel_reader_left() - count the events that need no system call
 * @r: the reader
 *
 * Return: how many are in the buffer of the reader.
 */
uint32_t twheel_reader_left(const struct twheel_reader *r);

/* ---- the refresh table --------------------------------------------------- */

/*
 * A store into the refresh table moves a one-shot timeout to a later deadline, with no system
 * call and no lock, in any thread and any process.  <linux/twheel.h> has its rules.
 *
 *	twheel_word_t *table;
 *	uint32_t shift;
 *	uint64_t later;
 *
 *	if (twheel_device_map(d, &table, &shift) < 0)
 *		...
 *	later = twheel_refresh_deadline(now_ns + 30 * 1000000000ULL, shift);
 *	twheel_refresh(table, id, later);			... and for others
 */

/* A word of the table; the compilers of i386 align a uint64_t to 4 bytes only. */
typedef uint64_t twheel_word_t __attribute__((__aligned__(8)));

/**
 * twheel_device_map() - map the refresh table, if that has not been done yet
 * @d: the device
 * @table: out: the table, until twheel_device_close()
 * @shift: out: for twheel_refresh_deadline()
 *
 * A program that may have ids of timeouts that have ended maps the table before it arms: a
 * timeout that was armed before anybody mapped the table of its wheel has an older generation
 * in its word, so that twheel_refresh() stores with an old id, in vain.
 *
 * Return: 0, or:
 *	-EOPNOTSUPP	the processor has no 64-bit atomic operation without a lock
 *	-EACCES		the descriptor was opened for reading only
 *	-ENOMEM		out of memory
 *	-ENOSPC		the module's limit of memory is reached, or the user's share of it
 */
int twheel_device_map(struct twheel_device *d, twheel_word_t **table, uint32_t *shift);

/**
 * twheel_device_refresh() - move a one-shot timeout to a later deadline by a store
 * @d: the device, whose table is mapped by the first call
 * @id: the timeout; one that was never given out, of this wheel, may raise SIGBUS
 * @deadline_ns: on the wheel's clock, TWHEEL_TIME_NEVER at most
 *
 * Return: as twheel_refresh(), or as twheel_device_map(), or -EINVAL for an @id that no
 * timeout of the wheel can have.
 */
int twheel_device_refresh(struct twheel_device *d, uint64_t id, uint64_t deadline_ns);

/**
 * twheel_refresh_deadline() - turn a deadline into what is stored: round it up to a grain
 * @deadline_ns: on the wheel's clock, TWHEEL_TIME_NEVER at most
 * @shift: from twheel_device_map(); INFO's refresh_shift
 *
 * Return: the deadline of a word, for the functions below.
 */
_TWHEEL_DEVICE_INLINE
uint64_t twheel_refresh_deadline(uint64_t deadline_ns, uint32_t shift);

/**
 * twheel_refresh() - store a deadline for a timeout
 * @table: the table
 * @id: the timeout, which ARM has given out in this wheel
 * @deadline: from twheel_refresh_deadline()
 *
 * It compares the generation in the word with that of @id, and stores unless the one in the
 * word is newer.  So the id of a timeout that has ended does no harm to the timeout that uses
 * the same place now, with one exception: the word has room for 28 bits of the
 * generation.  When the generation of the present timeout is greater by a multiple of 2^28,
 * the store delays that timeout; when it is greater by 2^27 or more, modulo 2^28, the store is
 * made as if it were blind.
 *
 * Return: 1 when the deadline was stored.  That does not say that the timeout was moved: it
 * may have expired before, or have ended, while no other has its place yet.  0 when nothing
 * was stored because the word has a newer generation: the timeout has ended, and another one
 * has its place.  -EOPNOTSUPP if twheel_device_map() says so, too.
 */
_TWHEEL_DEVICE_INLINE
int twheel_refresh(twheel_word_t *table, uint64_t id, uint64_t deadline);

/**
 * twheel_refresh_blind() - the same without comparing generations
 * @table: the table
 * @id: a timeout that has not ended
 * @deadline: from twheel_refresh_deadline()
 *
 * It is for a program that knows that the timeout has not ended, because the program itself
 * cancels it and reads its events.  With a stale id, it may delay the timeout that uses the
 * place now, where their generations are equal in 28 bits.  Otherwise it takes back a deadline
 * that was stored for that timeout and that the kernel has not found yet: until the next store
 * for that timeout, the known deadline is in force.  twheel_refresh() makes that store, since
 * the generation in the word is older then.
 *
 * If twheel_device_map() says -EOPNOTSUPP, it does nothing.
 */
_TWHEEL_DEVICE_INLINE
void twheel_refresh_blind(twheel_word_t *table, uint64_t id, uint64_t deadline);

/* ---- how the inline functions are made ----------------------------------- */

/* The functions below call these, with the sizes of the program's structures. */
int _twheel_device_info(const struct twheel_device *d, struct twheel_info *info, size_t size,
			uint32_t flags);
int _twheel_device_list(const struct twheel_device *d, uint64_t *cursor,
			struct twheel_status *rows, size_t size, uint32_t nr);
/* @result: its offset in an element. */
uint32_t _twheel_device_vector(const struct twheel_device *d, uint32_t command, uint32_t flags,
			       void *elements, size_t size, size_t result, uint32_t nr);
/* @size: that of the longest element. */
int _twheel_batch_open(struct twheel_batch **b, const struct twheel_device *d, uint32_t capacity,
		       size_t size);
/* An element of a batch, of either kind. */
union _twheel_element {
	struct twheel_arm *arm;
	struct twheel_cancel *cancel;
};

/* @size: of the element; @id_offset: of the id in it. */
union _twheel_element _twheel_batch_add(struct twheel_batch *b, uint32_t command, uint32_t flags,
					uint32_t size, uint32_t id_offset, uint64_t id);
int _twheel_device_read(const struct twheel_device *d, struct twheel_event *events, size_t size,
			uint32_t nr);
int _twheel_reader_next(struct twheel_reader *r, struct twheel_event *event, size_t size);

#ifndef TWHEEL_NO_INLINE

_TWHEEL_DEVICE_INLINE
int twheel_device_info(const struct twheel_device *d, struct twheel_info *info, uint32_t flags)
{
	return _twheel_device_info(d, info, sizeof(*info), flags);
}

_TWHEEL_DEVICE_INLINE
int twheel_device_list(const struct twheel_device *d, uint64_t *cursor,
		       struct twheel_status *rows, uint32_t nr)
{
	return _twheel_device_list(d, cursor, rows, sizeof(*rows), nr);
}

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_arm_many(const struct twheel_device *d, struct twheel_arm *arms,
				uint32_t nr)
{
	return _twheel_device_vector(d, TWHEEL_IOC_ARM, 0, arms, sizeof(*arms),
				     offsetof(struct twheel_arm, result), nr);
}

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_rearm_many(const struct twheel_device *d, struct twheel_arm *arms,
				  uint32_t nr)
{
	return _twheel_device_vector(d, TWHEEL_IOC_REARM, 0, arms, sizeof(*arms),
				     offsetof(struct twheel_arm, result), nr);
}

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_rearm_key_many(const struct twheel_device *d, struct twheel_arm *arms,
				      uint32_t nr)
{
	return _twheel_device_vector(d, TWHEEL_IOC_REARM, TWHEEL_VECTOR_BY_KEY, arms, sizeof(*arms),
				     offsetof(struct twheel_arm, result), nr);
}

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_cancel_many(const struct twheel_device *d, struct twheel_cancel *cancels,
				   uint32_t nr)
{
	return _twheel_device_vector(d, TWHEEL_IOC_CANCEL, 0, cancels, sizeof(*cancels),
				     offsetof(struct twheel_cancel, result), nr);
}

_TWHEEL_DEVICE_INLINE
uint32_t twheel_device_cancel_key_many(const struct twheel_device *d,
				       struct twheel_cancel *cancels, uint32_t nr)
{
	return _twheel_device_vector(d, TWHEEL_IOC_CANCEL, TWHEEL_VECTOR_BY_KEY, cancels,
				     sizeof(*cancels), offsetof(struct twheel_cancel, result), nr);
}

_TWHEEL_DEVICE_INLINE
int twheel_device_arm(const struct twheel_device *d, struct twheel_arm *arm)
{
	twheel_device_arm_many(d, arm, 1);
	return arm->result;
}

_TWHEEL_DEVICE_INLINE
int twheel_device_rearm(const struct twheel_device *d, struct twheel_arm *arm)
{
	twheel_device_rearm_many(d, arm, 1);
	return arm->result;
}

_TWHEEL_DEVICE_INLINE
int twheel_device_rearm_key(const struct twheel_device *d, struct twheel_arm *arm)
{
	twheel_device_rearm_key_many(d, arm, 1);
	return arm->result;
}

_TWHEEL_DEVICE_INLINE
int twheel_device_cancel(const struct twheel_device *d, uint64_t id)
{
	struct twheel_cancel cancel;

	/* All of it, whatever <linux/twheel.h> is installed. */
	memset(&cancel, 0, sizeof(cancel));
	cancel.id = id;
	twheel_device_cancel_many(d, &cancel, 1);
	return cancel.result;
}

_TWHEEL_DEVICE_INLINE
int twheel_device_cancel_key(const struct twheel_device *d, uint64_t key)
{
	struct twheel_cancel cancel;

	memset(&cancel, 0, sizeof(cancel));
	cancel.id = key;
	twheel_device_cancel_key_many(d, &cancel, 1);
	return cancel.result;
}

_TWHEEL_DEVICE_INLINE
int twheel_device_query(const struct twheel_device *d, struct twheel_status *status)
{
	_twheel_device_vector(d, TWHEEL_IOC_QUERY, 0, status, sizeof(*status),
			      offsetof(struct twheel_status, result), 1);
	return status->result;
}

_TWHEEL_DEVICE_INLINE
int twheel_device_query_key(const struct twheel_device *d, struct twheel_status *status)
{
	_twheel_device_vector(d, TWHEEL_IOC_QUERY, TWHEEL_VECTOR_BY_KEY, status, sizeof(*status),
			      offsetof(struct twheel_status, result), 1);
	return status->result;
}

_TWHEEL_DEVICE_INLINE
int twheel_batch_open(struct twheel_batch **b, const struct twheel_device *d, uint32_t capacity)
{
	return _twheel_batch_open(b, d, capacity,
				  sizeof(struct twheel_arm) > sizeof(struct twheel_cancel) ?
				  sizeof(struct twheel_arm) : sizeof(struct twheel_cancel));
}

_TWHEEL_DEVICE_INLINE
struct twheel_arm *twheel_batch_arm(struct twheel_batch *b, uint64_t user_data,
				    uint64_t expires_ns)
{
	struct twheel_arm *arm =
		_twheel_batch_add(b, TWHEEL_IOC_ARM, 0, sizeof(*arm),
				  offsetof(struct twheel_arm, id), 0).arm;

	if (arm) {
		arm->user_data = user_data;
		arm->expires_ns = expires_ns;
	}
	return arm;
}

_TWHEEL_DEVICE_INLINE
struct twheel_arm *twheel_batch_rearm(struct twheel_batch *b, uint64_t id, uint64_t expires_ns)
{
	struct twheel_arm *arm =
		_twheel_batch_add(b, TWHEEL_IOC_REARM, 0, sizeof(*arm),
				  offsetof(struct twheel_arm, id), id).arm;

	if (arm)
		arm->expires_ns = expires_ns;
	return arm;
}

_TWHEEL_DEVICE_INLINE
struct twheel_arm *twheel_batch_rearm_key(struct twheel_batch *b, uint64_t key,
					  uint64_t expires_ns)
{
	struct twheel_arm *arm =
		_twheel_batch_add(b, TWHEEL_IOC_REARM, TWHEEL_VECTOR_BY_KEY, sizeof(*arm),
				  offsetof(struct twheel_arm, id), key).arm;

	if (arm)
		arm->expires_ns = expires_ns;
	return arm;
}

_TWHEEL_DEVICE_INLINE
struct twheel_cancel *twheel_batch_cancel(struct twheel_batch *b, uint64_t id)
{
	return _twheel_batch_add(b, TWHEEL_IOC_CANCEL, 0, sizeof(struct twheel_cancel),
				 offsetof(struct twheel_cancel, id), id).cancel;
}

_TWHEEL_DEVICE_INLINE
struct twheel_cancel *twheel_batch_cancel_key(struct twheel_batch *b, uint64_t key)
{
	return _twheel_batch_add(b, TWHEEL_IOC_CANCEL, TWHEEL_VECTOR_BY_KEY,
				 sizeof(struct twheel_cancel),
				 offsetof(struct twheel_cancel, id), key).cancel;
}

_TWHEEL_DEVICE_INLINE
int twheel_device_read(const struct twheel_device *d, struct twheel_event *events, uint32_t nr)
{
	return _twheel_device_read(d, events, sizeof(*events), nr);
}

_TWHEEL_DEVICE_INLINE
int twheel_reader_next(struct twheel_reader *r, struct twheel_event *event)
{
	return _twheel_reader_next(r, event, sizeof(*event));
}

/*
 * A lock in the program would not keep the kernel from a word.  On i386, where clang
 * aligns a uint64_t to 4 bytes only, it denies that it has such operations by the first macro,
 * and affirms it by the second for what is aligned to 8 bytes, as words are.
 */
#if (defined(__GCC_ATOMIC_LLONG_LOCK_FREE) && __GCC_ATOMIC_LLONG_LOCK_FREE == 2) || \
	defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_8)
#define _TWHEEL_ATOMIC_WORDS	1
#else
#define _TWHEEL_ATOMIC_WORDS	0
#endif

_TWHEEL_DEVICE_INLINE
uint64_t twheel_refresh_deadline(uint64_t deadline_ns, uint32_t shift)
{
	return (deadline_ns + (1ULL << shift) - 1) >> shift << TWHEEL_REFRESH_GEN_BITS;
}

_TWHEEL_DEVICE_INLINE
int twheel_refresh(twheel_word_t *table, uint64_t id, uint64_t deadline)
{
#if _TWHEEL_ATOMIC_WORDS
	twheel_word_t *word = table + (id & 0xffffffff);
	uint64_t gen = id >> 32 & TWHEEL_REFRESH_GEN_MASK;
	uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	do {
		/* Newer by less than half of all generations: they are modulo 2^28. */
		if (((old - gen) & TWHEEL_REFRESH_GEN_MASK) - 1 < TWHEEL_REFRESH_GEN_MASK >> 1)
			return 0;
	} while (!__atomic_compare_exchange_n(word, &old, deadline | gen, 1,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return 1;
#else
	(void)table;
	(void)id;
	(void)deadline;
	return -EOPNOTSUPP;
#endif
}

_TWHEEL_DEVICE_INLINE
void twheel_refresh_blind(twheel_word_t *table, uint64_t id, uint64_t deadline)
{
#if _TWHEEL_ATOMIC_WORDS
	__atomic_store_n(table + (id & 0xffffffff),
			 deadline | (id >> 32 & TWHEEL_REFRESH_GEN_MASK), __ATOMIC_RELAXED);
#else
	(void)table;
	(void)id;
	(void)deadline;
#endif
}

#endif /* TWHEEL_NO_INLINE */

#ifdef __cplusplus
}
#endif

#endif /* _TWHEEL_DEVICE_H */
