/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Telling a user the results of a batch under RCU and locks, where no fault can be served
 *
 *   tell_begin()	disable page faults; false if the memory is not the user's
 *   tell_probe()	find out whether the last result can be written, too
 *   tell()		write a result
 *   tell_id()		write an id
 *   tell_event()	write an event
 *   tell_end()		done
 *
 * If tell_begin() returns false, page faults are enabled.  If another one does, a fault would
 * have to be served, and tell_end() follows.  In either case the caller goes on as engine/look.h
 * says, which has a fault served while nothing is held.
 *
 * The results of a batch lie in two pages of the user's memory at most.  If they do lie in
 * two, ARM, CANCEL and REARM probe the last one before they tell the first one.  So, as a
 * rule, a batch is told and done here as a whole or not at all; nothing relies on that.  The
 * probe writes back what it has read.  What another thread stores there meanwhile may be lost;
 * but the result of that entry is about to be overwritten anyway.  A read probes nothing: it
 * may end after any event, and goes on from there.
 *
 * Between tell_begin() and tell_end() the kernel may access user memory, and may call no
 * function.  Windows are functions, and so are checks of RCU and of memory, and what a
 * compiler does not inline because it is to save space.  In such builds each access is
 * opened by itself.
 */
#ifndef _TWHEEL_ENGINE_TELL_H
#define _TWHEEL_ENGINE_TELL_H

#include <linux/mm.h>
#include <linux/twheel.h>
#include <linux/types.h>
#include <linux/uaccess.h>

#if defined(TWHEEL_WINDOWS) || defined(CONFIG_PROVE_RCU) || defined(CONFIG_KASAN) || \
	defined(CONFIG_KCSAN) || defined(CONFIG_CC_OPTIMIZE_FOR_SIZE)

static inline bool tell_open(const void __user *to, size_t size)
{
	return access_ok(to, size);
}

static inline void tell_close(void)
{
}

static inline bool tell(s32 result, s32 __user *to)
{
	return !__put_user(result, to);
}

static inline bool tell_id(u64 id, u64 __user *to)
{
	return !__put_user(id, to);
}

static inline bool tell_event(const struct twheel_event *event,
			      struct twheel_event __user *to)
{
	return !__put_user(event->id, &to->id) &&
	       !__put_user(event->user_data, &to->user_data) &&
	       !__put_user(event->deadline_ns, &to->deadline_ns) &&
	       !__put_user(event->fired_ns, &to->fired_ns) &&
	       !__put_user(event->count, &to->count) &&
	       !__put_user(event->flags, &to->flags);
}

/* Read a result and write it back. */
static inline bool tell_again(s32 __user *to)
{
	s32 was_there;

	return !__get_user(was_there, to) && tell(was_there, to);
}

#else

static __always_inline bool tell_open(const void __user *to, size_t size)
{
	return user_access_begin(to, size);
}

static __always_inline void tell_close(void)
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

static __always_inline bool tell_id(u64 id, u64 __user *to)
{
	unsafe_put_user(id, to, fault);
	return true;
fault:
	return false;
}

static __always_inline bool tell_event(const struct twheel_event *event,
				       struct twheel_event __user *to)
{
	unsafe_put_user(event->id, &to->id, fault);
	unsafe_put_user(event->user_data, &to->user_data, fault);
	unsafe_put_user(event->deadline_ns, &to->deadline_ns, fault);
	unsafe_put_user(event->fired_ns, &to->fired_ns, fault);
	unsafe_put_user(event->count, &to->count, fault);
	unsafe_put_user(event->flags, &to->flags, fault);
	return true;
fault:
	return false;
}

/* Read a result and write it back. */
static __always_inline bool tell_again(s32 __user *to)
{
	s32 was_there;

	unsafe_get_user(was_there, to, fault);
	return tell(was_there, to);
fault:
	return false;
}

#endif

static __always_inline bool tell_begin(const void __user *to, size_t size)
{
	pagefault_disable();
	if (likely(tell_open(to, size)))
		return true;
	pagefault_enable();
	return false;
}

static __always_inline void tell_end(void)
{
	tell_close();
	pagefault_enable();
}

/* False if results from the first one to the last one cannot all be written. */
static __always_inline bool tell_probe(s32 __user *first, s32 __user *last)
{
	unsigned long from = (unsigned long)first, to = (unsigned long)(last + 1) - 1;

	return !((from ^ to) & PAGE_MASK) || tell_again(last);
}

#endif /* _TWHEEL_ENGINE_TELL_H */
