/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Telling a user the results of a batch under RCU and locks, where no fault can be served
 *
 *   tell_begin()	false if the memory is not the user's
 *   tell_probe()	find out whether a result can be written, and leave it as it is
 *   tell()		write a result; false if that needs a fault, as in tell_probe()
 *   tell_end()		done
 *
 * The caller has page faults disabled.  Where one of these returns false, it goes on as
 * engine/look.h says, and has the fault served while it holds nothing.
 *
 * The results of a batch lie in two pages of the user's memory at most.  So if the last one
 * can be written, and the first one can, all of them can, unless another thread takes the
 * memory away meanwhile.
 *
 * Between tell_begin() and tell_end() the kernel may access user memory, and may call no
 * function.  Windows are functions, and so are lockdep's checks of RCU.  In builds that have
 * them, each access is therefore opened by itself.
 */
#ifndef _TWHEEL_ENGINE_TELL_H
#define _TWHEEL_ENGINE_TELL_H

#include <linux/types.h>
#include <linux/uaccess.h>

#if defined(TWHEEL_WINDOWS) || defined(CONFIG_PROVE_RCU)

static inline bool tell_begin(const void __user *to, size_t size)
{
	return access_ok(to, size);
}

static inline void tell_end(void)
{
}

static inline bool tell(s32 result, s32 __user *to)
{
	return !__put_user(result, to);
}

static inline bool tell_probe(s32 __user *to)
{
	s32 was_there;

	return !__get_user(was_there, to) && tell(was_there, to);
}

#else

static __always_inline bool tell_begin(const void __user *to, size_t size)
{
	return user_access_begin(to, size);
}

static __always_inline void tell_end(void)
{
	user_access_end();
}

static __always_inline bool tell(s32 result, s32 __user *to)
{
	unsafe_put_user(result, to, fault);
	return true;
fault:
	return false;
}

static __always_inline bool tell_probe(s32 __user *to)
{
	s32 was_there;

	unsafe_get_user(was_there, to, fault);
	return tell(was_there, to);
fault:
	return false;
}

#endif /* TWHEEL_WINDOWS || CONFIG_PROVE_RCU */

#endif /* _TWHEEL_ENGINE_TELL_H */
