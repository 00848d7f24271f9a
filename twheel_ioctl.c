// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls of /dev/twheel
 *
 * Each checks the shape of its argument, copies it in, calls the engine, and copies the results
 * out.
 *
 * ARM, REARM, CANCEL and QUERY have a vector, whose elements go to the engine in batches, so that a
 * bad pointer, wherever in a vector, leaves nothing half done.  For REARM, CANCEL, and ARM in a
 * keyed wheel, the engine copies the result of an element out and does the element in one step,
 * under the lock.  Any other ARM copies the ids of a batch out and submits the timeouts after that.
 * If an element faults, the fault is served here, without a lock, and the element is tried again.
 */
#include <linux/cred.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/kernel.h>
#include <linux/nospec.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>

#include "engine/user_access.h"
#include "twheel.h"

/* The ABI is for ever: no field may move, for 32-bit programs as for 64-bit ones. */
static_assert(sizeof(struct twheel_setup) == SETUP_SIZE_FIRST);
static_assert(sizeof(struct twheel_info) == INFO_SIZE_FIRST);
static_assert(sizeof(struct twheel_vector) == VECTOR_SIZE_FIRST);
static_assert(sizeof(struct twheel_arm) == ARM_SIZE_FIRST);
static_assert(sizeof(struct twheel_cancel) == CANCEL_SIZE_FIRST);
static_assert(sizeof(struct twheel_status) == STATUS_SIZE_FIRST);
static_assert(sizeof(struct twheel_list) == LIST_SIZE_FIRST);
static_assert(sizeof(struct twheel_advance) == ADVANCE_SIZE_FIRST);
static_assert(sizeof(struct twheel_reopen) == REOPEN_SIZE_FIRST);
static_assert(sizeof(struct twheel_event) == TWHEEL_EVENT_SIZE_MIN);

/*
 * Copy the argument of an ioctl in, whose first member is its size.  @known is its size in this
 * kernel, and @first the size of the first release, the smallest that was ever published.  Members
 * that the caller does not know are zero.  Returns -EINVAL if the size is below @first, and -E2BIG
 * if it is above TWHEEL_SIZE_MAX or the caller sets members that this kernel does not know.
 */
static noinline int arg_copy_in(void *to, size_t known, size_t first, const void __user *arg)
{
	u32 size;

	if (get_user(size, (const u32 __user *)arg))
		return -EFAULT;
	if (size < first)
		return -EINVAL;
	if (size > TWHEEL_SIZE_MAX)
		return -E2BIG;
	return copy_struct_from_user(to, known, arg, size);
}

static long info_ioctl(struct file *file, void __user *arg)
{
	struct twheel_info __user *user = arg;
	struct twheel_info info;
	u32 size;
	int err;

	if (get_user(size, &user->size))
		return -EFAULT;
	if (size < INFO_SIZE_FIRST)
		return -EINVAL;
	if (size > TWHEEL_SIZE_MAX)
		return -E2BIG;
	if (get_user(info.flags, &user->flags))
		return -EFAULT;
	if (info.flags & ~TWHEEL_INFO_WALK)
		return -EINVAL;
	err = twheel_get_info(file_wheel(file), &info);
	if (err)
		return err;
	info.event_size = twheel_file(file)->event_size ?: info.event_size;
	info.size = min_t(u32, size, sizeof(info));
	/* Members that a newer caller knows and this kernel does not are zero. */
	if (clear_user(arg + info.size, size - info.size) || copy_to_user(arg, &info, info.size))
		return -EFAULT;
	return 0;
}

static long setup_ioctl(struct file *file, void __user *arg)
{
	struct twheel_setup setup;
	int err = arg_copy_in(&setup, sizeof(setup), SETUP_SIZE_FIRST, arg);

	return err ?: twheel_configure(file_wheel(file), &setup);
}

/* Copy rows of LIST out, of which a newer caller may know more members; returns how many. */
static unsigned int rows_report(void __user *user, u32 stride, const struct twheel_status *status,
				unsigned int nr)
{
	size_t known = min_t(size_t, stride, sizeof(status[0]));
	size_t tail = stride - known;
	unsigned int i;

	/* If this fails, it may have stopped before the row that faults. */
	if (likely(stride == sizeof(status[0])) &&
	    likely(!copy_to_user(user, status, nr * sizeof(status[0]))))
		return nr;
	for (i = 0; i < nr; i++, user += stride)
		if (copy_to_user(user, &status[i], known) ||
		    (tail && clear_user(user + known, tail)))
			break;
	return i;
}

static long list_ioctl(struct file *file, void __user *arg)
{
	struct twheel_status status[TWHEEL_BATCH / 2] __uninitialized;
	struct twheel_list __user *user = arg;
	struct tw_ctx *tw = file_wheel(file);
	struct twheel_list list;
	int err = arg_copy_in(&list, sizeof(list), LIST_SIZE_FIRST, arg);
	unsigned int done = 0;
	void __user *rows;

	if (err)
		return err;
	if (list.flags || !list.nr || list.entry_size < STATUS_SIZE_FIRST ||
	    (list.entry_size | list.entries) % sizeof(u64))
		return -EINVAL;
	if (list.entry_size > TWHEEL_SIZE_MAX || list.nr > TWHEEL_MAX_VECTOR)
		return -E2BIG;

	list.changes = twheel_changes(tw);
	rows = u64_to_user_ptr(list.entries);
	while (done < list.nr) {
		u64 cursor = list.cursor;
		unsigned int written;
		int nr;

		nr = twheel_list(tw, &cursor, status,
				 min_t(unsigned int, list.nr - done, ARRAY_SIZE(status)));
		if (nr < 0)
			break;
		written = rows_report(access_at(rows, done, list.entry_size), list.entry_size,
				      status, nr);
		done += written;
		if (written < nr) {
			/* The next call begins with the timeout whose row faulted. */
			list.cursor = (u32)status[written].id;
			err = -EFAULT;
			break;
		}
		list.cursor = cursor;
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			break;
		}
		cond_resched();
	}
	if (put_user(list.cursor, &user->cursor) || put_user(list.changes, &user->changes))
		return -EFAULT;
	return done ? (long)done : err;
}

static long drain_ioctl(struct file *file, void __user *arg)
{
	return arg ? -EINVAL : twheel_drain(file_wheel(file));
}

static long advance_ioctl(struct file *file, void __user *arg)
{
	struct twheel_advance advance;
	int err = arg_copy_in(&advance, sizeof(advance), ADVANCE_SIZE_FIRST, arg);

	if (err)
		return err;
	if (advance.reserved)
		return -EINVAL;
	return twheel_clock_advance(file_wheel(file), advance.to_ns);
}

/* The flags of open() that REOPEN takes, and those that mean nothing for a wheel. */
#define REOPEN_FLAGS	(O_ACCMODE | O_NONBLOCK | O_CLOEXEC)
#define REOPEN_IGNORED	(O_APPEND | O_DSYNC | O_LARGEFILE | O_NOATIME | O_NOCTTY | O_NOFOLLOW | \
			 O_SYNC | O_TRUNC | FASYNC)

/*
 * Open the wheel of a file once more.  open() of the device, also through /proc/self/fd, makes a
 * new wheel, and dup() keeps the mode.  So only REOPEN gives a descriptor with fewer rights.
 *
 * Security modules must see this open of the device as any other.  So open its path, which makes a
 * new wheel, and replace that by the wheel of the old file.
 */
static int file_reopen(struct file *file, const struct twheel_reopen *reopen)
{
	unsigned int flags = reopen->flags & REOPEN_FLAGS;
	struct twheel_file *opened;
	struct file *again;
	int fd;

	if (reopen->flags & ~(REOPEN_FLAGS | REOPEN_IGNORED))
		return -EINVAL;
	if (OPEN_FMODE(flags) & ~file->f_mode)
		return -EBADF;
	fd = get_unused_fd_flags(flags);
	if (fd < 0)
		return fd;
	again = dentry_open(&file->f_path, flags & ~O_CLOEXEC, current_cred());
	if (IS_ERR(again)) {
		put_unused_fd(fd);
		return PTR_ERR(again);
	}
	opened = again->private_data;
	twheel_put(opened->tw);
	opened->tw = file_wheel(file);
	twheel_get(opened->tw);
	opened->event_size = reopen->event_size;
	again->f_mapping = file->f_mapping;
	fd_install(fd, again);
	return fd;
}

static long reopen_ioctl(struct file *file, void __user *arg)
{
	struct twheel_reopen reopen;
	int err = arg_copy_in(&reopen, sizeof(reopen), REOPEN_SIZE_FIRST, arg);

	if (err)
		return err;
	if (reopen.reserved || (reopen.event_size && !event_size_is_valid(reopen.event_size)))
		return -EINVAL;
	return file_reopen(file, &reopen);
}

/* Vectors */

/**
 * struct vector_op - how the elements of one kind of vector are done; constant
 * @entry_size: size of an element, as this kernel knows it
 * @first_size: its size in the first release
 * @result: offset of the result in an element
 * @arms: elements have no ids, nor keys in place of them: the id is copied out, and in a keyed
 *	wheel was_deadline_ns
 * @serves: a step has faults served itself
 * @plain: does the single element of a vector without flags; NULL if @serves.  False if the element
 *	is not plain, or if something else prevents it: nothing is done, and @step does the element
 * @step: does up to TWHEEL_BATCH elements in user memory.  Returns how many are done.  If none is:
 *	-EFAULT if a fault of the first one is to be served, and another errno if neither it nor
 *	those after it can be done.
 */
struct vector_op {
	u32 entry_size;
	u32 first_size;
	u32 result;
	bool arms;
	bool serves;
	bool (*plain)(struct tw_ctx *tw, void __user *user);
	int (*step)(struct tw_ctx *tw, void __user *user, unsigned int nr,
		    struct twheel_call *call);
};

/* Whether a vector is well-formed but for its flags: 0, -EINVAL or -E2BIG. */
static __always_inline int vector_check(const struct twheel_vector *vector,
					const struct vector_op *op)
{
	if (vector->reserved || vector->entry_size < op->first_size ||
	    (vector->entry_size | vector->entries) % sizeof(u64))
		return -EINVAL;
	if (vector->entry_size > TWHEEL_SIZE_MAX || vector->nr > TWHEEL_MAX_VECTOR)
		return -E2BIG;
	return 0;
}

/*
 * The fast path: copy in a vector whose size and entry_size are those of this kernel, by single
 * loads, as access_copy_one() does.  If it fails, the slow path finds out why.
 *
 * Nearly all calls attempt all elements: store that in nr_done at once.  vector_stop() corrects it.
 */
static __always_inline bool
vector_copy_fast(struct twheel_vector *vector,
		 struct twheel_vector __user *user, const struct vector_op *op)
{
	const u64 __user *from = (const u64 __user *)user;
	u64 *to = (u64 *)vector;

	if (sizeof(*vector) != 4 * sizeof(*to) || !user_access_begin(user, sizeof(*user)))
		return false;
	unsafe_get_user(to[0], &from[0], fault);
	unsafe_get_user(to[1], &from[1], fault);
	unsafe_get_user(to[2], &from[2], fault);
	unsafe_get_user(to[3], &from[3], fault);
	if (unlikely(vector->size != sizeof(*vector) || vector->entry_size != op->entry_size ||
		     !vector->nr || vector_check(vector, op)))
		goto fault;
	if (likely(!vector->flags))
		unsafe_put_user(vector->nr, &user->nr_done, fault);
	user_access_end();
	return true;
fault:
	user_access_end();
	return false;
}

/* The slow path: copy in a vector of any size, unless it is @copied, and check it. */
static noinline_for_stack int
vector_copy_slow(const struct tw_ctx *tw, struct twheel_vector *vector,
		 struct twheel_vector __user *user, const struct vector_op *op, bool copied)
{
	int err = copied ? 0 : arg_copy_in(vector, sizeof(*vector), VECTOR_SIZE_FIRST, user);

	if (err)
		return err;
	if (vector->flags &&
	    (vector->flags != TWHEEL_VECTOR_BY_KEY || op->arms || !twheel_is_keyed(tw)))
		return -EINVAL;
	err = vector_check(vector, op);
	return err ?: put_user(vector->nr, &user->nr_done);
}

/* Write the result of an element that is not done: 0 or -EFAULT. */
static int element_refuse(const struct tw_ctx *tw, const struct vector_op *op,
			  void __user *user, int err)
{
	struct twheel_arm __user *arm = user;

	if (op->arms && (put_user(0ULL, &arm->id) ||
			 (twheel_is_keyed(tw) && put_user(0ULL, &arm->was_deadline_ns))))
		return -EFAULT;
	return put_user(err, (s32 __user *)(user + op->result));
}

/* Write the results of elements that are not done, until one faults or a fatal signal comes. */
static noinline void elements_refuse(const struct tw_ctx *tw, const struct vector_op *op,
				     void __user *user, u32 stride, unsigned int nr, int err)
{
	for (; nr && !fatal_signal_pending(current); nr--, user += stride) {
		if (element_refuse(tw, op, user, err))
			break;
		cond_resched();
	}
}

/*
 * Have the fault of writing a member served: read the member and write it back.  A store by another
 * thread in between may be lost, but the member is about to be overwritten.
 */
#define member_serve(member) ({						\
	typeof(member) __member = (member);				\
	typeof(*__member) __was;					\
									\
	get_user(__was, __member) || put_user(__was, __member);		\
})

/* Have a fault of an element served: read all of it, and write the members of its result. */
static noinline int element_serve(const struct tw_ctx *tw, const struct vector_op *op,
				  void __user *user, u32 stride)
{
	struct twheel_arm __user *arm = user;

	if (fault_in_readable(user, op->first_size) ||
	    member_serve((s32 __user *)(user + op->result)))
		return -EFAULT;
	if (stride > op->entry_size &&
	    check_zeroed_user(user + op->entry_size, stride - op->entry_size) < 0)
		return -EFAULT;
	if (op->arms && (member_serve(&arm->id) ||
			 (twheel_is_keyed(tw) && member_serve(&arm->was_deadline_ns))))
		return -EFAULT;
	return 0;
}

/*
 * Copy a row of @size bytes out: 0 or -EFAULT.  The id and the result come last: if the row faults,
 * they are as they were, and the row can be asked for again.
 */
static int row_copy_out(struct twheel_status __user *user, const struct twheel_status *status,
			size_t size)
{
	const size_t first = offsetof(struct twheel_status, state);

	if (!status->result &&
	    (copy_to_user(&user->state, &status->state, size - first) ||
	     put_user(status->id, &user->id)))
		return -EFAULT;
	return put_user(status->result, &user->result);
}

static int query_step(struct tw_ctx *tw, void __user *arg, unsigned int nr,
		      struct twheel_call *call)
{
	struct twheel_status status[TWHEEL_BATCH * 5 / 8] __uninitialized;
	size_t known = min_t(size_t, call->stride, sizeof(status[0]));
	struct twheel_status __user *user = arg;
	unsigned int i;

	nr = min_t(unsigned int, nr, ARRAY_SIZE(status));
	for (i = 0; i < nr; i++)
		if (get_user(status[i].id, &access_at(user, i, call->stride)->id))
			break;
	nr = i;
	twheel_query(tw, status, nr, call->by_key);
	for (i = 0; i < nr; i++) {
		if (row_copy_out(access_at(user, i, call->stride), &status[i], known))
			break;
		call->nr_ok += !status[i].result;
	}
	return i ?: -EFAULT;
}

/* Check an element that is longer than here: 0 if the rest is zero, 1 if refused, or -EFAULT. */
static int element_check_tail(const struct tw_ctx *tw, const struct vector_op *op,
			      void __user *user, u32 stride)
{
	int zero = check_zeroed_user(user + op->entry_size, stride - op->entry_size);

	if (zero < 0)
		return zero;
	return zero ? 0 : element_refuse(tw, op, user, -E2BIG) ?: 1;
}

/*
 * Of elements that lie in two pages of the user's memory, return how many can be read as a whole:
 * all, or one, or none.  If results are copied out under the wheel's lock, have a fault of the last
 * one served: so a batch is usually done as a whole, but nothing relies on that.
 */
static noinline unsigned int batch_serve(const struct tw_ctx *tw, const struct vector_op *op,
					 void __user *user, u32 stride, unsigned int nr)
{
	s32 __user *last = user + (size_t)(nr - 1) * stride + op->result;
	char byte __maybe_unused;

	if (get_user(byte, (char __user *)user + (size_t)nr * stride - 1))
		return fault_in_readable(user, op->first_size) ? 0 : 1;
	/* ARM without keys and QUERY copy out under no lock. */
	if (!op->serves && (!op->arms || twheel_is_keyed(tw)))
		(void)member_serve(last);
	return nr;
}

/* Do up to @nr elements at @user; returns how many are done, or an errno. */
static __always_inline int vector_batch(struct tw_ctx *tw, const struct vector_op *op,
					void __user *user, u32 stride, unsigned int nr,
					struct twheel_call *call)
{
	if (((unsigned long)user ^ ((unsigned long)user + (size_t)nr * stride - 1)) & PAGE_MASK) {
		nr = batch_serve(tw, op, user, stride, nr);
		if (!nr)
			return -EFAULT;
	}
	return op->step(tw, user, nr, call);
}

/* Do up to @nr elements of any size; of those that are longer than here, the first one. */
static int vector_step(struct tw_ctx *tw, const struct vector_op *op, void __user *user,
		       unsigned int nr, struct twheel_call *call, bool *attempted)
{
	int done;

	if (unlikely(call->stride > op->entry_size)) {
		done = element_check_tail(tw, op, user, call->stride);
		if (done)
			return done;
		nr = 1;
	}
	done = vector_batch(tw, op, user, call->stride, nr, call);
	*attempted |= done > 0;
	return done;
}

/*
 * End a call early, after @done elements.  Unless @err is -EFAULT or -EINTR, write it into the
 * others, or fail the call if no element was @attempted: those that are too long do not count.
 */
static long vector_stop(const struct tw_ctx *tw, const struct vector_op *op,
			struct twheel_vector __user *arg, const struct twheel_vector *vector,
			unsigned int done, bool attempted, unsigned int nr_ok, int err)
{
	if (err != -EFAULT && err != -EINTR) {
		if (attempted)
			elements_refuse(tw, op, access_at(u64_to_user_ptr(vector->entries), done,
							  vector->entry_size),
					vector->entry_size, vector->nr - done, err);
		else
			done = 0;
	}
	if (put_user(done, &arg->nr_done))
		return -EFAULT;
	return done ? (long)nr_ok : err;
}

/* Do the rest of a vector, of which @done elements are done. */
static noinline long vector_do(struct tw_ctx *tw, struct twheel_vector __user *arg,
			       const struct twheel_vector *vector, const struct vector_op *op,
			       struct twheel_call *call, unsigned int done)
{
	unsigned int most = TWHEEL_BATCH, tries = 0;
	bool attempted = done;
	int err;

	while (done < vector->nr) {
		void __user *user = access_at(u64_to_user_ptr(vector->entries), done, call->stride);

		err = vector_step(tw, op, user, min(vector->nr - done, most), call, &attempted);
		if (likely(err > 0)) {
			done += err;
			if (done == vector->nr)
				break;
			most = TWHEEL_BATCH;
			tries = 0;
		} else if (err == -EFAULT && !op->serves && ++tries < TWHEEL_TRIES &&
			   !element_serve(tw, op, user, call->stride)) {
			/* This one by itself: the batch may end beyond the user's memory. */
			most = 1;
		} else {
			goto stop;
		}
		err = -EINTR;
		if (unlikely(fatal_signal_pending(current)))
			goto stop;
		cond_resched();
	}
	return call->nr_ok;
stop:
	return vector_stop(tw, op, arg, vector, done, attempted, call->nr_ok, err);
}

/*
 * Do a vector.  This is inlined once for each kind, so that all of @op is constant, which makes
 * calls of one batch quicker.
 */
static __always_inline long vector_ioctl(struct tw_ctx *tw, void __user *arg,
					 const struct vector_op *op)
{
	struct twheel_call call = { .stride = op->entry_size };
	struct twheel_vector vector __uninitialized;
	bool fast = vector_copy_fast(&vector, arg, op);
	int done = 0;

	if (!op->serves && likely(fast) && vector.nr == 1 && likely(!vector.flags) &&
	    likely(op->plain(tw, u64_to_user_ptr(vector.entries))))
		return 1;
	if (unlikely(!fast || vector.flags)) {
		int err = vector_copy_slow(tw, &vector, arg, op, fast);

		if (err)
			return err;
		call.by_key = vector.flags;
	}
	if (likely(fast)) {
		done = vector_batch(tw, op, u64_to_user_ptr(vector.entries), op->entry_size,
				    min_t(unsigned int, vector.nr, TWHEEL_BATCH), &call);
		if (likely(done == vector.nr))
			return call.nr_ok;
	} else {
		call.stride = vector.entry_size;
	}
	return vector_do(tw, arg, &vector, op, &call, max(done, 0));
}

static const struct vector_op arm_op = {
	.entry_size	= sizeof(struct twheel_arm),
	.first_size	= ARM_SIZE_FIRST,
	.result		= offsetof(struct twheel_arm, result),
	.arms		= true,
	.plain		= twheel_arm_plain,
	.step		= twheel_arm_step,
};

static const struct vector_op rearm_op = {
	.entry_size	= sizeof(struct twheel_arm),
	.first_size	= ARM_SIZE_FIRST,
	.result		= offsetof(struct twheel_arm, result),
	.plain		= twheel_rearm_plain,
	.step		= twheel_rearm_step,
};

static const struct vector_op cancel_op = {
	.entry_size	= sizeof(struct twheel_cancel),
	.first_size	= CANCEL_SIZE_FIRST,
	.result		= offsetof(struct twheel_cancel, result),
	.plain		= twheel_cancel_plain,
	.step		= twheel_cancel_step,
};

static const struct vector_op query_op = {
	.entry_size	= sizeof(struct twheel_status),
	.first_size	= STATUS_SIZE_FIRST,
	.result		= offsetof(struct twheel_status, result),
	.serves		= true,
	.step		= query_step,
};

static long arm_ioctl(struct file *file, void __user *arg)
{
	return vector_ioctl(file_wheel(file), arg, &arm_op);
}

static long rearm_ioctl(struct file *file, void __user *arg)
{
	return vector_ioctl(file_wheel(file), arg, &rearm_op);
}

static long cancel_ioctl(struct file *file, void __user *arg)
{
	return vector_ioctl(file_wheel(file), arg, &cancel_op);
}

static long query_ioctl(struct file *file, void __user *arg)
{
	return vector_ioctl(file_wheel(file), arg, &query_op);
}

static long (* const twheel_ioctls[])(struct file *file, void __user *arg) = {
	[_IOC_NR(TWHEEL_IOC_INFO)]	= info_ioctl,
	[_IOC_NR(TWHEEL_IOC_SETUP)]	= setup_ioctl,
	[_IOC_NR(TWHEEL_IOC_ARM)]	= arm_ioctl,
	[_IOC_NR(TWHEEL_IOC_REARM)]	= rearm_ioctl,
	[_IOC_NR(TWHEEL_IOC_CANCEL)]	= cancel_ioctl,
	[_IOC_NR(TWHEEL_IOC_QUERY)]	= query_ioctl,
	[_IOC_NR(TWHEEL_IOC_LIST)]	= list_ioctl,
	[_IOC_NR(TWHEEL_IOC_DRAIN)]	= drain_ioctl,
	[_IOC_NR(TWHEEL_IOC_ADVANCE)]	= advance_ioctl,
	[_IOC_NR(TWHEEL_IOC_REOPEN)]	= reopen_ioctl,
};

/* The commands that change nothing.  Any other needs a descriptor that is open for writing. */
#define CHANGE_NOTHING	(BIT(_IOC_NR(TWHEEL_IOC_INFO)) | BIT(_IOC_NR(TWHEEL_IOC_QUERY)) | \
			 BIT(_IOC_NR(TWHEEL_IOC_LIST)) | BIT(_IOC_NR(TWHEEL_IOC_REOPEN)))

/* Do an ioctl: -ENOTTY if @cmd is not known, -EBADF if the mode of the file does not allow it. */
long twheel_ioctl(struct file *file, unsigned int cmd, void __user *arg)
{
	unsigned int nr = _IOC_NR(cmd);

	if (nr >= ARRAY_SIZE(twheel_ioctls) || cmd != _IO(TWHEEL_IOC_MAGIC, nr))
		return -ENOTTY;
	if (!(file->f_mode & FMODE_WRITE) && !(CHANGE_NOTHING & BIT(nr)))
		return -EBADF;
	nr = array_index_nospec(nr, ARRAY_SIZE(twheel_ioctls));
	return twheel_ioctls[nr](file, arg);
}
