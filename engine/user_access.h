/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Access to the elements of a user's vector
 *
 * access_copy_in() copies a batch of them in, and finds out whether all of it is the user's memory.
 * Their results are copied out member by member:
 *
 *	access_open()	begin; false if the memory is not the user's.  The first element is enough
 *			for a batch that was copied in
 *	access_get()	read a member of 64 bits; false if it faults
 *	access_put()	write a member of 64 bits; false if a fault would have to be served
 *			access_put_half() one of 32 bits, access_put_result() a result
 *	access_close()	end
 *
 * In between the kernel may access user memory, and may call no function.  Checks of RCU and of
 * memory are functions, and a compiler that is to save space may not inline ours.  In such builds
 * each access is opened by itself.  An array element that is checked for its bounds is a call as
 * well, so *(array + i) stands there in place of array[i].
 *
 * Under a lock no fault can be served: access_open_locked() makes accesses fail that would fault.
 * The caller then releases the lock, has the fault served, and tries the same element again.
 */
#ifndef _TWHEEL_ENGINE_USER_ACCESS_H
#define _TWHEEL_ENGINE_USER_ACCESS_H

#include <linux/types.h>
#include <linux/uaccess.h>

#if defined(TWHEEL_ACCESS_BY_CALLS) || defined(CONFIG_LOCKDEP) || \
	defined(CONFIG_KASAN) || defined(CONFIG_KCSAN) || \
	defined(CONFIG_CC_OPTIMIZE_FOR_SIZE)

static inline bool access_open(const void __user *user, size_t size)
{
	return access_ok(user, size);
}

static inline void access_close(void)
{
}

static inline bool access_get(u64 *x, const u64 __user *from)
{
	return !__get_user(*x, from);
}

static inline bool access_put(u64 x, u64 __user *to)
{
	return !__put_user(x, to);
}

static inline bool access_put_half(u32 x, u32 __user *to)
{
	return !__put_user(x, to);
}

#else

static __always_inline bool access_open(const void __user *user, size_t size)
{
	return user_access_begin(user, size);
}

static __always_inline void access_close(void)
{
	user_access_end();
}

static __always_inline bool access_get(u64 *x, const u64 __user *from)
{
	unsafe_get_user(*x, from, fault);
	return true;
fault:
	return false;
}

static __always_inline bool access_put(u64 x, u64 __user *to)
{
	unsafe_put_user(x, to, fault);
	return true;
fault:
	return false;
}

static __always_inline bool access_put_half(u32 x, u32 __user *to)
{
	unsafe_put_user(x, to, fault);
	return true;
fault:
	return false;
}

#endif

/* Copy a result out: enum twheel_verdict, or a negative errno. */
static __always_inline bool access_put_result(s32 result, s32 __user *to)
{
	return access_put_half(result, (u32 __user *)to);
}

/* The element of a vector that comes @i elements after another one, and the next one. */
#define access_at(user, i, stride) \
	((typeof(user))((void __user *)(user) + (size_t)(i) * (stride)))
#define access_next(user, stride)	access_at(user, 1, stride)

static __always_inline bool access_open_locked(const void __user *user, size_t size)
{
	pagefault_disable();
	if (likely(access_open(user, size)))
		return true;
	pagefault_enable();
	return false;
}

static __always_inline void access_close_locked(void)
{
	access_close();
	pagefault_enable();
}

/* Copy a result out under a lock; false if that faults. */
static __always_inline bool access_put_result_locked(s32 result, s32 __user *to)
{
	bool copied;

	if (!access_open_locked(to, sizeof(*to)))
		return false;
	copied = access_put_result(result, to);
	access_close_locked();
	return copied;
}

/*
 * Copy an element of @size bytes in by single loads: for so few they are quicker than a function.
 * False if that faults, or if elements have come to have another size than the two below.
 */
static __always_inline bool access_copy_one(void *element, size_t size, const void __user *from)
{
	const u64 __user *user = from;
	u64 *to = element;
	bool got;

	/* The caller has it in memory, and it would be read from there each time. */
	OPTIMIZER_HIDE_VAR(user);
	if ((size != 2 * sizeof(*to) && size != 7 * sizeof(*to)) || !access_open(user, size))
		return false;
	got = access_get(&to[0], &user[0]) && access_get(&to[1], &user[1]);
	if (size > 2 * sizeof(*to))
		got = got && access_get(&to[2], &user[2]) && access_get(&to[3], &user[3]) &&
		      access_get(&to[4], &user[4]) && access_get(&to[5], &user[5]) &&
		      access_get(&to[6], &user[6]);
	access_close();
	return got;
}

unsigned int twheel_access_copy_each(void *elements, size_t size, const void __user *user,
				     u32 stride, unsigned int nr);

/*
 * Copy elements in that have @size bytes here, until one cannot be read; returns how many.  Members
 * that a shorter element leaves out are zero.  Sleeps.
 */
static __always_inline unsigned int access_copy_in(void *elements, size_t size,
						   const void __user *user, u32 stride,
						   unsigned int nr)
{
	if (likely(stride == size) &&
	    likely(nr == 1 ? access_copy_one(elements, size, user) :
			     !copy_from_user(elements, user, nr * size)))
		return nr;
	return twheel_access_copy_each(elements, size, user, stride, nr);
}

#endif /* _TWHEEL_ENGINE_USER_ACCESS_H */
