/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Access to the entries of a user's vector, one after the other
 *
 *	access_open()	begin; false if the memory is not the user's
 *	access_get()	read a member of 64 bits; false if a fault would have to be served
 *	access_put()	write one, likewise; access_put_half() one of 32 bits, access_tell() a
 *	result access_close()	end
 *
 * In between the kernel may access user memory, and may call no function.  Checks of RCU and of
 * memory are functions, and so is what a compiler does not inline because it is to save space.  In
 * such builds each access is opened by itself.
 *
 * Under a lock no fault can be served: access_open_locked() has accesses fail that would have to.
 * The caller then lets go of the lock, has the fault served, and tries the same entry again.
 */
#ifndef _TWHEEL_ENGINE_ACCESS_H
#define _TWHEEL_ENGINE_ACCESS_H

#include <linux/types.h>
#include <linux/uaccess.h>
#include <asm/byteorder.h>

#if defined(TWHEEL_WINDOWS) || defined(CONFIG_LOCKDEP) || defined(CONFIG_KASAN) || \
	defined(CONFIG_KCSAN) || defined(CONFIG_CC_OPTIMIZE_FOR_SIZE)

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

/* Tell a result: enum twheel_verdict, or a negative errno. */
static __always_inline bool access_tell(s32 result, s32 __user *to)
{
	return access_put_half(result, (u32 __user *)to);
}

/*
 * Two neighbouring members of 32 bits are read as one word, which takes half as long: a word with
 * the first of them, and one with the second.
 */
#ifdef __BIG_ENDIAN
#define PAIR_FIRST(x)	((u64)(x) << 32)
#define PAIR_SECOND(x)	((u64)(u32)(x))
#else
#define PAIR_FIRST(x)	((u64)(u32)(x))
#define PAIR_SECOND(x)	((u64)(x) << 32)
#endif
#define pair_of(ptr)	((u64 __user *)(ptr))

/* The next entry of a vector. */
#define access_next(user, stride)	((typeof(user))((void __user *)(user) + (stride)))

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

#endif /* _TWHEEL_ENGINE_ACCESS_H */
