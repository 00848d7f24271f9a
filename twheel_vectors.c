// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls that carry a vector: ARM, REARM, CANCEL and QUERY
 *
 * A vector is copied in, handed to the engine and copied out in batches.
 *
 * Each batch is reported to the user first and committed second, see engine/look.h.  Where
 * all is as usual, the engine does both at once, see engine/tell.h.  An entry that could not
 * be reported is not done, and an entry whose timeout has changed in between is looked at
 * again.  So a bad pointer, wherever in a vector, leaves nothing half done.
 *
 * ARM in a keyed wheel has more steps: keyed_arm_batch() has the engine look the keys up,
 * and then creates or re-arms.  If another thread has taken or freed a key in between, it
 * begins again from that entry on.
 *
 * Locks: none, and none is held while user memory is copied here.
 */
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/uaccess.h>

#include "twheel.h"
#include "twheel_ioctl.h"

/* An entry of a vector, and a batch of them, whatever their kind, on the caller's stack. */
union entry {
	struct twheel_arm arm;
	struct twheel_cancel cancel;
	struct twheel_status status;
};

union batch {
	struct twheel_arm arm[TWHEEL_BATCH];
	struct twheel_cancel cancel[TWHEEL_BATCH];
	struct twheel_status status[TWHEEL_BATCH * 3 / 4];
};

/* The engine relies on it, see engine/tell.h. */
static_assert(sizeof(union batch) <= PAGE_SIZE);

/**
 * struct vector_op - how the entries of one kind of vector are done; constant
 * @entry_size: size of an entry, as this kernel knows it
 * @first_size: its size in the first release
 * @input_size: size of the members at its front that carry something in
 * @result: offset of the result in an entry
 * @id: offset of the id in an entry where ids only go out, 0 otherwise
 * @was_deadline_ns: with @id, offset of the deadline that goes out in a keyed wheel
 * @key: offset of the id for which a key may stand (TWHEEL_VECTOR_BY_KEY)
 * @by_key: entries may hold keys in place of ids
 * @batch_len: number of entries that fit into a union batch
 * @batch: does a batch whose entries are in user memory at @user, @stride bytes each, and
 *	were copied to @entries.  Adds the number of entries that succeeded to @nr_ok.
 *	Returns the number of entries that were reported and done, which is 0 when the
 *	first one faulted; or an errno when none was done and the others cannot be either.
 */
struct vector_op {
	u32 entry_size;
	u32 first_size;
	u32 input_size;
	u32 result;
	u32 id;
	u32 was_deadline_ns;
	u32 key;
	bool by_key;
	u32 batch_len;
	int (*batch)(struct twheel *tw, void __user *user, u32 stride,
		     void *entries, unsigned int nr, unsigned int *nr_ok);
};

/* Whether a vector is well-formed but for its flags: 0, -EINVAL or -E2BIG. */
static __always_inline int vector_check(const struct twheel_vector *vector,
					const struct vector_op *op)
{
	if (vector->reserved || vector->entry_size < op->first_size)
		return -EINVAL;
	if (vector->entry_size > PAGE_SIZE || vector->nr > TWHEEL_MAX_VECTOR)
		return -E2BIG;
	return 0;
}

/*
 * Copy in a vector whose size is the one that this kernel knows, as nearly all are.  For
 * so few bytes, single loads are quicker than any copying function.  False for a vector
 * of another size or with flags, for one that is not well-formed, and if the copy faults:
 * vector_copy_odd() then finds out which.
 *
 * Nearly all calls attempt all entries, so nr_done says so from the start; here that
 * costs one store.  vector_stop() corrects it where a call ends early.
 */
static __always_inline bool
vector_copy_usual(struct twheel_vector *vector,
		  struct twheel_vector __user *user, const struct vector_op *op)
{
	if (!user_access_begin(user, sizeof(*user)))
		return false;
	unsafe_get_user(vector->size, &user->size, fault);
	unsafe_get_user(vector->nr, &user->nr, fault);
	unsafe_get_user(vector->entry_size, &user->entry_size, fault);
	unsafe_get_user(vector->flags, &user->flags, fault);
	unsafe_get_user(vector->entries, &user->entries, fault);
	unsafe_get_user(vector->reserved, &user->reserved, fault);
	if (unlikely(vector->size != sizeof(*vector) || vector->flags ||
		     vector_check(vector, op)))
		goto fault;
	unsafe_put_user(vector->nr, &user->nr_done, fault);
	user_access_end();
	return true;
fault:
	user_access_end();
	return false;
}

/* Whether the flags of a vector fit its command and the wheel: 0 or -EINVAL. */
static int vector_check_flags(const struct twheel *tw, const struct twheel_vector *vector,
			      const struct vector_op *op)
{
	if (vector->flags & ~TWHEEL_VECTOR_BY_KEY)
		return -EINVAL;
	if (vector->flags && !(op->by_key && twheel_is_keyed(tw)))
		return -EINVAL;
	return 0;
}

/* Copy in a vector of any size; 0, or the error that is wrong with it. */
static noinline_for_stack int
vector_copy_odd(const struct twheel *tw, struct twheel_vector *vector,
		struct twheel_vector __user *user, const struct vector_op *op)
{
	int err = twheel_arg_copy_in(vector, sizeof(*vector), VECTOR_SIZE_FIRST, user);

	if (!err)
		err = vector_check_flags(tw, vector, op) ?: vector_check(vector, op);
	if (!err && put_user(vector->nr, &user->nr_done))
		err = -EFAULT;
	return err;
}

#define ARM_INPUT_SIZE		offsetof(struct twheel_arm, was_deadline_ns)
#define STATUS_INPUT_SIZE	offsetof(struct twheel_status, user_data)

/* entry_copy_in() copies two words, four or six. */
static_assert(ARM_INPUT_SIZE == 6 * sizeof(u64));
static_assert(sizeof(struct twheel_cancel) % (2 * sizeof(u64)) == 0);
static_assert(sizeof(struct twheel_cancel) <= 6 * sizeof(u64));
static_assert(STATUS_INPUT_SIZE == 2 * sizeof(u64));

/* Copy what a single entry carries in, by single loads as well; false if it faults. */
static __always_inline bool entry_copy_in(u64 *to, const u64 __user *from, size_t size)
{
	if (!user_read_access_begin(from, size))
		return false;
	unsafe_get_user(to[0], &from[0], fault);
	unsafe_get_user(to[1], &from[1], fault);
	if (size > 2 * sizeof(*to)) {
		unsafe_get_user(to[2], &from[2], fault);
		unsafe_get_user(to[3], &from[3], fault);
	}
	if (size > 4 * sizeof(*to)) {
		unsafe_get_user(to[4], &from[4], fault);
		unsafe_get_user(to[5], &from[5], fault);
	}
	user_read_access_end();
	return true;
fault:
	user_read_access_end();
	return false;
}

/*
 * Copy entries in; returns how many were copied as a whole.  If that is 0, @err is the
 * reason:  -EFAULT, or -E2BIG when the first entry sets members that this kernel does not
 * know.
 */
static __always_inline unsigned int
entries_copy_in(const struct vector_op *op, void *to, const void __user *from,
		u32 stride, unsigned int nr, int *err)
{
	unsigned int i;

	*err = -EFAULT;
	if (likely(stride == op->entry_size)) {
		if (likely(!copy_from_user(to, from, nr * stride)))
			return nr;
		/*
		 * On arm64 it may have stopped some entries before the one that faults:
		 * it copies 64 bytes at a time.
		 */
	}
	for (i = 0; i < nr; i++) {
		*err = twheel_struct_copy_in(to, op->entry_size, op->first_size, from, stride);
		if (*err)
			break;
		to += op->entry_size;
		from += stride;
	}
	return i;
}

/* Write into an entry that it is not done, and why; 0 or -EFAULT. */
static int entry_refuse(const struct twheel *tw, const struct vector_op *op,
			void __user *user, int err)
{
	if (op->id && put_user(0ULL, (u64 __user *)(user + op->id)))
		return -EFAULT;
	if (op->id && twheel_is_keyed(tw) &&
	    put_user(0ULL, (u64 __user *)(user + op->was_deadline_ns)))
		return -EFAULT;
	return put_user(err, (s32 __user *)(user + op->result));
}

/* Write into entries that they are not done, until one faults or a fatal signal comes. */
static noinline void entries_refuse(const struct twheel *tw, const struct vector_op *op,
				    void __user *user, u32 stride,
				    unsigned int nr, int err)
{
	for (; nr && !fatal_signal_pending(current); nr--, user += stride) {
		if (entry_refuse(tw, op, user, err))
			break;
		cond_resched();
	}
}

/*
 * The functions below report results: each writes into as many entries as it can before
 * one faults, and returns how many that were.
 */

static __always_inline unsigned int
arm_report_inline(void __user *user, u32 stride, const struct twheel_arm *arm, unsigned int nr)
{
	unsigned int i = 0;

	if (!user_write_access_begin(user, (size_t)nr * stride))
		return 0;
	for (; i < nr; i++) {
		struct twheel_arm __user *to = user + (size_t)i * stride;

		/* No timeout has id 0: a refused entry gets that. */
		unsafe_put_user(arm[i].result < 0 ? 0 : arm[i].id, &to->id, fault);
		unsafe_put_user(arm[i].result, &to->result, fault);
	}
fault:
	user_write_access_end();
	return i;
}

static noinline unsigned int arm_report(void __user *user, u32 stride,
					const struct twheel_arm *arm, unsigned int nr)
{
	return arm_report_inline(user, stride, arm, nr);
}

/* Report for REARM or CANCEL: an entry has @size bytes, and its result is at @offset. */
static unsigned int result_report(void __user *user, u32 stride,
				  const void *entry, size_t size, size_t offset,
				  unsigned int nr)
{
	unsigned int i = 0;

	if (!user_write_access_begin(user, (size_t)nr * stride))
		return 0;
	for (; i < nr; i++) {
		const s32 *result = entry + i * size + offset;
		s32 __user *to = user + (size_t)i * stride + offset;

		unsafe_put_user(*result, to, fault);
	}
fault:
	user_write_access_end();
	return i;
}

static unsigned int rearm_report(void __user *user, u32 stride,
				 const struct twheel_arm *arm, unsigned int nr)
{
	return result_report(user, stride, arm, sizeof(*arm),
			     offsetof(struct twheel_arm, result), nr);
}

/* Refuse the entries of a batch that were not refused before. */
static void results_refuse(struct twheel_arm *arm, unsigned int nr, int err)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (arm[i].result > 0)
			arm[i].result = err;
}

/*
 * A DRAIN came between report and commit, or a signal that kills: correct the verdicts that
 * were reported.
 */
static void rearm_take_back(void __user *user, u32 stride,
			    struct twheel_arm *arm, unsigned int nr, int err)
{
	results_refuse(arm, nr, err);
	rearm_report(user, stride, arm, nr);
}

static unsigned int cancel_report(void __user *user, u32 stride,
				  const struct twheel_cancel *cancel,
				  unsigned int nr)
{
	return result_report(user, stride, cancel, sizeof(*cancel),
			     offsetof(struct twheel_cancel, result), nr);
}

/* A signal that kills came between report and commit: likewise. */
static void cancel_take_back(void __user *user, u32 stride,
			     struct twheel_cancel *cancel, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (cancel[i].result > 0)
			cancel[i].result = -EINTR;
	cancel_report(user, stride, cancel, nr);
}

static unsigned int status_report(void __user *user, u32 stride,
				  const struct twheel_status *status,
				  unsigned int nr)
{
	size_t known = min_t(size_t, stride, sizeof(status[0]));
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct twheel_status __user *to = user + (size_t)i * stride;

		if (status[i].result ?
		    put_user(status[i].result, &to->result) :
		    copy_to_user(to, &status[i], known))
			break;
	}
	return i;
}

/* Report for ARM in a keyed wheel, which also tells the deadlines that were replaced. */
static unsigned int keyed_report(void __user *user, u32 stride,
				 const struct twheel_arm *arm, unsigned int nr)
{
	unsigned int i = 0;

	if (!user_write_access_begin(user, (size_t)nr * stride))
		return 0;
	for (; i < nr; i++) {
		struct twheel_arm __user *to = user + (size_t)i * stride;
		bool replaced = arm[i].result > TWHEEL_CREATED;

		unsafe_put_user(arm[i].result < 0 ? 0 : arm[i].id, &to->id, fault);
		unsafe_put_user(replaced ? arm[i].was_deadline_ns : 0,
				&to->was_deadline_ns, fault);
		unsafe_put_user(arm[i].result, &to->result, fault);
	}
fault:
	user_write_access_end();
	return i;
}

/*
 * Of the entries up to @nr that were reported for an ARM in a keyed wheel, find the one
 * behind the first @nr_armed that were armed and those that were refused among them.
 */
static unsigned int keyed_done(const struct twheel_arm *arm, unsigned int nr,
			       unsigned int nr_armed)
{
	unsigned int i;

	for (i = 0; i < nr && (nr_armed || arm[i].result < 0); i++)
		nr_armed -= arm[i].result > 0;
	return i;
}

/*
 * How many entries of a prepared batch can be done together.  One that lacks a place or
 * memory is for another round if its key may be there, since it needs neither then: if
 * nobody has looked, which is what @guess says of all but the first one, or if an entry
 * before it that has a place may have the same key.
 */
static unsigned int keyed_together(const struct twheel_arm *arm, unsigned int nr, bool guess)
{
	bool placed = guess;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (i && placed && arm[i].result < 0 && arm[i].result != -EINVAL)
			break;
		placed |= arm[i].result > 0;
	}
	return i;
}

/*
 * The functions below do entries of an ARM in a keyed wheel that twheel_keyed_look() has
 * found to be alike.  Each returns how many are done, which is 0 if the first one faulted,
 * and says how many were reported.  An entry that was reported and is not done has to be
 * looked at again; -EAGAIN says so of the first one.  Any other errno says that neither
 * these entries nor those after them can be done.
 */

static int keyed_create(struct twheel *tw, void __user *user, u32 stride,
			struct twheel_arm *arm, unsigned int nr, bool guess,
			unsigned int *reported, unsigned int *nr_ok)
{
	struct twheel_arming arming __uninitialized;
	unsigned int i, done, nr_armed = 0;
	int err;

	arming.nowait = false;
	err = twheel_arm_prepare(tw, arm, nr, &arming);
	if (err)
		return err;
	if (!arming.all)
		nr = keyed_together(arm, nr, guess);
	*reported = keyed_report(user, stride, arm, nr);
	for (i = 0; i < *reported; i++)
		nr_armed += arm[i].result > 0;
	err = twheel_arm_commit_keyed(tw, &arming, nr_armed, &nr_armed);
	if (err == -ESHUTDOWN)
		return err;
	*nr_ok += nr_armed;
	done = keyed_done(arm, *reported, nr_armed);
	if (err == -ENOMEM) {
		/* The entry after those that were armed cannot be, and it was said to be. */
		arm[done].result = err;
		done += keyed_report(user + (size_t)done * stride, stride, arm + done, 1);
	}
	return done ?: *reported ? -EAGAIN : 0;
}

static int keyed_replace(struct twheel *tw, void __user *user, u32 stride,
			 struct twheel_arm *arm, unsigned int nr,
			 unsigned int *reported, unsigned int *nr_ok)
{
	struct twheel_rearming rearming __uninitialized;
	unsigned int i;
	int err;

	rearming.nowait = false;
	err = twheel_upsert_prepare(tw, arm, &rearming, nr);
	if (err)
		return err;
	/* A timeout that has ended since it was found has given its key up. */
	for (i = 0; i < nr; i++)
		if (arm[i].result == -ENOENT)
			break;
	*reported = i ? keyed_report(user, stride, arm, i) : 0;
	err = twheel_rearm_commit(tw, arm, &rearming, *reported, nr_ok);
	return err ?: *reported || !i ? -EAGAIN : 0;
}

/* A DRAIN came between report and commit: correct what was reported. */
static void keyed_take_back(void __user *user, u32 stride, struct twheel_arm *arm,
			    unsigned int nr, int err)
{
	results_refuse(arm, nr, err);
	keyed_report(user, stride, arm, nr);
}

/*
 * ARM in a keyed wheel: entries whose key is there are re-armed, the others created, in the
 * order of the vector.
 */
static noinline_for_stack int
keyed_arm_batch(struct twheel *tw, void __user *user, u32 stride,
		struct twheel_arm *arm, unsigned int nr, unsigned int *nr_ok)
{
	unsigned int i = 0, told = 0;
	bool guess = true;

	while (i < nr) {
		void __user *rest = user + (size_t)i * stride;
		unsigned int reported = 0, alike = nr - i;
		int done;

		switch (twheel_keyed_look(tw, arm + i, &alike, guess)) {
		case TWHEEL_FOUND_ABSENT:
			done = keyed_create(tw, rest, stride, arm + i, alike, guess,
					    &reported, nr_ok);
			/* A guess that was wrong is not worth another one. */
			guess = done == alike;
			break;
		case TWHEEL_FOUND_PRESENT:
			done = keyed_replace(tw, rest, stride, arm + i, alike,
					     &reported, nr_ok);
			break;
		default:
			/* A wheel that is drained refuses the call, not the entry. */
			if (twheel_is_draining(tw)) {
				done = -ESHUTDOWN;
				break;
			}
			reported = keyed_report(rest, stride, arm + i, alike);
			done = reported;
		}
		told = max(told, i + reported);
		if (done < 0 && done != -EAGAIN) {
			keyed_take_back(rest, stride, arm + i, told - i, done);
			return i ?: done;
		}
		if (done > 0)
			i += done;
		/* Other threads may take keys faster than they are reported. */
		if (fatal_signal_pending(current)) {
			keyed_take_back(user + (size_t)i * stride, stride, arm + i, told - i,
					-EINTR);
			break;
		}
		if (!done)
			break;
		cond_resched();
	}
	return i;
}

/*
 * ARM in a wheel that was not set up when it was looked at, and that another thread has set
 * up as a keyed one before the first ARM could start it.  Begin again, by keys: @arming has
 * none.
 */
static noinline_for_stack int
arm_batch_by_keys(struct twheel *tw, void __user *user, u32 stride,
		  struct twheel_arm *arm, unsigned int nr, unsigned int *nr_ok,
		  struct twheel_arming *arming)
{
	int done;

	twheel_arm_commit(tw, arming, 0);
	done = keyed_arm_batch(tw, user, stride, arm, nr, nr_ok);
	if (done < 0) {
		/* arm_batch() has written a success, which does not come true. */
		arm->result = done;
		keyed_report(user, stride, arm, 1);
	}
	return done;
}

static __always_inline int
arm_batch(struct twheel *tw, void __user *user, u32 stride,
	  void *entries, unsigned int nr, unsigned int *nr_ok)
{
	struct twheel_arm *arm = entries;
	struct twheel_arming arming __uninitialized;
	unsigned int i, nr_armed;
	bool first;
	int err;

	if (likely(stride == sizeof(*arm))) {
		/* The entries that are not done come in the next batch. */
		nr_armed = twheel_arm_directly(tw, arm, user, nr, nr_ok);
		if (likely(nr_armed))
			return nr_armed;
	}
	first = !twheel_is_started(tw);
	if (twheel_is_keyed(tw))
		return keyed_arm_batch(tw, user, stride, arm, nr, nr_ok);
	arming.nowait = false;
	/*
	 * The first ARM starts the wheel, which makes its configuration final.  An ARM
	 * that fails with -EFAULT must not do that, so find out first whether the user's
	 * memory can be written.
	 */
	if (first) {
		arm->result = TWHEEL_CREATED;
		if (!arm_report(user, stride, arm, 1))
			return 0;
	}
	err = twheel_arm_prepare(tw, arm, nr, &arming);
	if (err && first) {
		/* The probe above has written a success, which does not come true. */
		arm->result = err;
		arm_report(user, stride, arm, 1);
	}
	if (err)
		return err;
	if (unlikely(first && twheel_is_keyed(tw)))
		return arm_batch_by_keys(tw, user, stride, arm, nr, nr_ok, &arming);
	nr = nr == 1 ? arm_report_inline(user, stride, arm, 1) : arm_report(user, stride, arm, nr);
	nr_armed = nr;
	for (i = 0; i < nr && !arming.all; i++)
		nr_armed -= arm[i].result < 0;
	err = twheel_arm_commit(tw, &arming, nr_armed);
	if (err) {
		/* A DRAIN came between report and commit: correct the results. */
		results_refuse(arm, nr, err);
		arm_report(user, stride, arm, nr);
		return err;
	}
	*nr_ok += nr_armed;
	return nr;
}

/* REARM from entry @i on, step by step; the user was told of entries up to @told. */
static noinline_for_stack int
rearm_by_steps(struct twheel *tw, void __user *user, u32 stride, struct twheel_arm *arm,
	       unsigned int i, unsigned int told, unsigned int nr, unsigned int *nr_ok)
{
	struct twheel_rearming rearming __uninitialized;

	rearming.nowait = false;
	while (i < nr) {
		void __user *rest = user + (size_t)i * stride;
		unsigned int reported = 0;
		int done;

		done = twheel_rearm_prepare(tw, arm + i, &rearming, nr - i);
		if (!done) {
			reported = rearm_report(rest, stride, arm + i, nr - i);
			told = max(told, i + reported);
			done = twheel_rearm_commit(tw, arm + i, &rearming,
						   reported, nr_ok);
		}
		if (done < 0) {
			rearm_take_back(rest, stride, arm + i, told - i, done);
			return i ?: done;
		}
		i += done;
		/* Other threads may change timeouts faster than they are reported. */
		if (fatal_signal_pending(current)) {
			rearm_take_back(user + (size_t)i * stride, stride, arm + i, told - i,
					-EINTR);
			break;
		}
		if (!reported)
			break;
		cond_resched();
	}
	return i;
}

static __always_inline int
rearm_batch(struct twheel *tw, void __user *user, u32 stride,
	    void *entries, unsigned int nr, unsigned int *nr_ok)
{
	unsigned int done = 0, told = 0;

	if (likely(stride == sizeof(struct twheel_arm)))
		done = twheel_rearm_directly(tw, entries, user, nr, &told, nr_ok);
	return likely(done == nr) ? done :
	       rearm_by_steps(tw, user, stride, entries, done, told, nr, nr_ok);
}

/* CANCEL from entry @i on, step by step; the user was told of entries up to @told. */
static noinline_for_stack int
cancel_by_steps(struct twheel *tw, void __user *user, u32 stride, struct twheel_cancel *cancel,
		unsigned int i, unsigned int told, unsigned int nr, unsigned int *nr_ok)
{
	struct twheel_look look __uninitialized;

	while (i < nr) {
		unsigned int reported;

		twheel_cancel_look(tw, cancel + i, &look, nr - i);
		reported = cancel_report(user + (size_t)i * stride, stride,
					 cancel + i, nr - i);
		told = max(told, i + reported);
		i += twheel_cancel_commit(tw, cancel + i, &look, reported,
					  nr_ok);
		/* Other threads may change timeouts faster than they are reported. */
		if (fatal_signal_pending(current)) {
			cancel_take_back(user + (size_t)i * stride, stride, cancel + i, told - i);
			break;
		}
		if (!reported)
			break;
		cond_resched();
	}
	return i;
}

static __always_inline int
cancel_batch(struct twheel *tw, void __user *user, u32 stride,
	     void *entries, unsigned int nr, unsigned int *nr_ok)
{
	unsigned int done = 0, told = 0;

	if (likely(stride == sizeof(struct twheel_cancel)))
		done = twheel_cancel_directly(tw, entries, user, nr, &told, nr_ok);
	return likely(done == nr) ? done :
	       cancel_by_steps(tw, user, stride, entries, done, told, nr, nr_ok);
}

static int query_batch(struct twheel *tw, void __user *user, u32 stride,
		       void *entries, unsigned int nr, unsigned int *nr_ok)
{
	struct twheel_status *status = entries;
	unsigned int i;

	twheel_query(tw, status, nr);
	nr = status_report(user, stride, status, nr);
	for (i = 0; i < nr; i++)
		*nr_ok += !status[i].result;
	return nr;
}

/*
 * Put the ids of the timeouts that have the keys in place of the keys of a batch.  A timeout
 * that has ended by the time that its id is looked at has given its key up: between the
 * two, nothing had the key.
 */
static noinline void keys_find(struct twheel *tw, const struct vector_op *op, void *entry,
			       unsigned int nr)
{
	for (; nr; nr--, entry += op->entry_size) {
		u64 *id = entry + op->key;

		*id = twheel_key_id(tw, *id);
	}
}

/*
 * Do a batch.  Returns how many entries were reported and done, 1 at least; -EFAULT or -EINTR
 * if not even the first one could be; or another errno if neither these nor the entries
 * after them can be done.
 */
static __always_inline int batch_do(struct twheel *tw, const struct vector_op *op,
				    void __user *user, u32 stride, void *entries,
				    unsigned int nr, unsigned int *nr_ok)
{
	int done = op->batch(tw, user, stride, entries, nr, nr_ok);

	if (likely(done))
		return done;
	return fatal_signal_pending(current) ? -EINTR : -EFAULT;
}

/*
 * Do up to @nr entries at @user.  Returns how many were attempted, 1 at least; -EFAULT or
 * -EINTR if not even the first one could be; or another errno if neither these nor the
 * entries after them can be done.
 */
static __always_inline int
vector_step(struct twheel *tw, const struct vector_op *op, bool by_key, void __user *user,
	    u32 stride, unsigned int nr, bool *attempted, unsigned int *nr_ok)
{
	union batch batch __uninitialized;
	int err, done;

	nr = entries_copy_in(op, &batch, user, stride, nr, &err);
	if (unlikely(!nr)) {
		if (err == -EFAULT || entry_refuse(tw, op, user, err))
			return -EFAULT;
		return 1;	/* the entry was refused */
	}
	if (unlikely(by_key))
		keys_find(tw, op, &batch, nr);
	done = batch_do(tw, op, user, stride, &batch, nr, nr_ok);
	if (likely(done > 0))
		*attempted = true;
	return done;
}

/*
 * End a call early, after @done entries.  After -EFAULT and -EINTR the other entries are
 * left as they are; any other @err is written into them.  The call fails as a whole only
 * if the engine has attempted no entry; entries that vector_step() refused do not count.
 */
static __always_inline long
vector_stop(const struct twheel *tw, const struct vector_op *op,
	    struct twheel_vector __user *arg, const struct twheel_vector *vector,
	    unsigned int done, bool attempted, unsigned int nr_ok, int err)
{
	if (err != -EFAULT && err != -EINTR) {
		if (attempted)
			entries_refuse(tw, op, u64_to_user_ptr(vector->entries) +
				       (size_t)done * vector->entry_size,
				       vector->entry_size, vector->nr - done,
				       err);
		else
			done = 0;
	}
	if (put_user(done, &arg->nr_done))
		return -EFAULT;
	return done ? (long)nr_ok : err;
}

/* Do a vector that was copied in. */
static __always_inline long vector_do(struct twheel *tw, struct twheel_vector __user *arg,
				      const struct twheel_vector *vector,
				      const struct vector_op *op)
{
	unsigned int nr_ok = 0, done = 0, batch_len = op->batch_len;
	bool attempted = false;
	int err;

	while (done < vector->nr) {
		void __user *user = u64_to_user_ptr(vector->entries) +
				    (size_t)done * vector->entry_size;
		unsigned int nr = min(vector->nr - done, batch_len);

		if (done) {
			cond_resched();
			err = -EINTR;
			if (fatal_signal_pending(current))
				goto stop;
		}
		err = vector_step(tw, op, op->by_key && vector->flags, user,
				  vector->entry_size, nr, &attempted, &nr_ok);
		if (likely(err > 0))
			done += err;
		else if (err == -EFAULT && nr > 1 &&
			 !access_ok(user, (size_t)nr * vector->entry_size))
			batch_len = 1;	/* do the entries that are in user space */
		else
			goto stop;
	}
	return nr_ok;
stop:
	return vector_stop(tw, op, arg, vector, done, attempted, nr_ok, err);
}

/*
 * Do a vector of a single entry, which was copied in to @entry.  All is as in vector_do(), but
 * nothing has to be counted.
 */
static __always_inline long vector_do_single(struct twheel *tw,
					     struct twheel_vector __user *arg,
					     const struct twheel_vector *vector,
					     const struct vector_op *op, void *entry)
{
	unsigned int nr_ok = 0;
	int done;

	done = batch_do(tw, op, u64_to_user_ptr(vector->entries), op->entry_size, entry, 1,
			&nr_ok);
	if (likely(done > 0))
		return nr_ok;
	return vector_stop(tw, op, arg, vector, 0, false, 0, done);
}

/*
 * Do a vector.  The usual call with a single entry has code of its own.  This is inlined once
 * for each kind, so that all of @op is constant: it makes these calls quicker.
 */
static __always_inline long vector_ioctl(struct twheel *tw, void __user *arg,
					 const struct vector_op *op)
{
	struct twheel_vector vector __uninitialized;

	if (unlikely(!vector_copy_usual(&vector, arg, op))) {
		struct twheel_vector odd;	/* so @vector can live in registers */
		int err = vector_copy_odd(tw, &odd, arg, op);

		if (err)
			return err;
		vector = odd;
	} else if (vector.nr == 1 && vector.entry_size == op->entry_size) {
		union entry entry __uninitialized;

		if (likely(entry_copy_in((u64 *)&entry, u64_to_user_ptr(vector.entries),
					 op->input_size)))
			return vector_do_single(tw, arg, &vector, op, &entry);
	}
	return vector_do(tw, arg, &vector, op);
}

static const struct vector_op arm_op = {
	.entry_size	= sizeof(struct twheel_arm),
	.first_size	= ARM_SIZE_FIRST,
	.input_size	= ARM_INPUT_SIZE,
	.result		= offsetof(struct twheel_arm, result),
	.id		= offsetof(struct twheel_arm, id),
	.was_deadline_ns = offsetof(struct twheel_arm, was_deadline_ns),
	.batch_len	= ARRAY_SIZE(((union batch *)NULL)->arm),
	.batch		= arm_batch,
};

static const struct vector_op rearm_op = {
	.entry_size	= sizeof(struct twheel_arm),
	.first_size	= ARM_SIZE_FIRST,
	.input_size	= ARM_INPUT_SIZE,
	.result		= offsetof(struct twheel_arm, result),
	.batch_len	= ARRAY_SIZE(((union batch *)NULL)->arm),
	.batch		= rearm_batch,
	.key		= offsetof(struct twheel_arm, id),
	.by_key		= true,
};

static const struct vector_op cancel_op = {
	.entry_size	= sizeof(struct twheel_cancel),
	.first_size	= CANCEL_SIZE_FIRST,
	.input_size	= sizeof(struct twheel_cancel),
	.result		= offsetof(struct twheel_cancel, result),
	.batch_len	= ARRAY_SIZE(((union batch *)NULL)->cancel),
	.batch		= cancel_batch,
	.key		= offsetof(struct twheel_cancel, id),
	.by_key		= true,
};

static const struct vector_op query_op = {
	.entry_size	= sizeof(struct twheel_status),
	.first_size	= STATUS_SIZE_FIRST,
	.input_size	= STATUS_INPUT_SIZE,
	.result		= offsetof(struct twheel_status, result),
	.batch_len	= ARRAY_SIZE(((union batch *)NULL)->status),
	.batch		= query_batch,
	.key		= offsetof(struct twheel_status, id),
	.by_key		= true,
};

/**
 * twheel_arm_ioctl() - carry out ARM
 * @tw: the wheel
 * @arg: the user's pointer to a struct twheel_vector
 *
 * Context: process; sleeps.
 * Return: the number of entries that succeeded, or an errno when none was attempted.
 */
long twheel_arm_ioctl(struct twheel *tw, void __user *arg)
{
	return vector_ioctl(tw, arg, &arm_op);
}

/**
 * twheel_rearm_ioctl() - carry out REARM
 * @tw: the wheel
 * @arg: the user's pointer to a struct twheel_vector
 *
 * Context: process; sleeps.
 * Return: the number of entries that succeeded, or an errno when none was attempted.
 */
long twheel_rearm_ioctl(struct twheel *tw, void __user *arg)
{
	return vector_ioctl(tw, arg, &rearm_op);
}

/**
 * twheel_cancel_ioctl() - carry out CANCEL
 * @tw: the wheel
 * @arg: the user's pointer to a struct twheel_vector
 *
 * Context: process; sleeps.
 * Return: the number of entries that succeeded, or an errno when none was attempted.
 */
long twheel_cancel_ioctl(struct twheel *tw, void __user *arg)
{
	return vector_ioctl(tw, arg, &cancel_op);
}

/**
 * twheel_query_ioctl() - carry out QUERY
 * @tw: the wheel
 * @arg: the user's pointer to a struct twheel_vector
 *
 * Context: process; sleeps.
 * Return: the number of entries that succeeded, or an errno when none was attempted.
 */
long twheel_query_ioctl(struct twheel *tw, void __user *arg)
{
	return vector_ioctl(tw, arg, &query_op);
}
