/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls of the engine into the kernel that a case controls: the memory of users, the clock of the
 * machine, the hrtimer, and the allocation of pages
 *
 * Include this after the kernel's headers, and before the engine.
 */

/* Pages */

/* If a case sets it, all pages and areas are refused. */
static bool no_memory;

/**
 * struct machine_memory - the memory that the engine has allocated
 * @nr: pages, areas and objects that it has
 * @nr_unaccounted: allocations for which no memory cgroup was charged
 * @nr_shared: pages that were freed while somebody else had a reference
 */
struct machine_memory {
	atomic_t nr;
	atomic_t nr_unaccounted;
	atomic_t nr_shared;
};

static struct machine_memory machine_memory;

/* Note an allocation. If it need not be cleared, fill it. */
static void *memory_note(void *memory, size_t size, gfp_t flags)
{
	if (!(flags & __GFP_ACCOUNT))
		atomic_inc(&machine_memory.nr_unaccounted);
	if (!memory)
		return NULL;
	atomic_inc(&machine_memory.nr);
	if (!(flags & __GFP_ZERO))
		memset(memory, 0xa5, size);
	return memory;
}

static unsigned long page_alloc(gfp_t flags)
{
	void *page;

	flags |= __GFP_ZERO;
	page = no_memory ? NULL : (void *)__get_free_page(flags);
	return (unsigned long)memory_note(page, PAGE_SIZE, flags);
}

static void page_put(struct page *page)
{
	if (page_count(page) != 1)
		atomic_inc(&machine_memory.nr_shared);
	atomic_dec(&machine_memory.nr);
	__free_page(page);
}

static void page_free(unsigned long page)
{
	if (page)
		page_put(virt_to_page(page));
}

static void *exact_alloc(size_t size, gfp_t flags)
{
	return memory_note(no_memory ? NULL : alloc_pages_exact(size, flags), size, flags);
}

static void exact_free(void *area, size_t size)
{
	atomic_dec(&machine_memory.nr);
	free_pages_exact(area, size);
}

static void *area_alloc(unsigned long size, gfp_t flags)
{
	return memory_note(no_memory ? NULL : __vmalloc(size, flags), size, flags);
}

static void area_free(const void *area)
{
	atomic_dec(&machine_memory.nr);
	vfree(area);
}

#undef get_zeroed_page
#undef free_page
#undef __free_page
#undef alloc_pages_exact
#undef __vmalloc
#define get_zeroed_page	page_alloc
#define free_page	page_free
#define __free_page	page_put
#define alloc_pages_exact	exact_alloc
#define free_pages_exact	exact_free
#define __vmalloc	area_alloc
#define vfree		area_free

/* Let another thread do this while a user is allocated. */
static void (*alloc_call)(void);

static void *object_alloc(size_t size, gfp_t flags)
{
	if (alloc_call)
		alloc_call();
	flags |= __GFP_ZERO;
	return memory_note(kmalloc(size, flags), size, flags);
}

#undef kzalloc
#define kzalloc(size, flags)	object_alloc(size, flags)

/* The address of the object that was freed last. */
static unsigned long freed;

static void object_free(const void *object)
{
	freed = (unsigned long)object;
	if (object)
		atomic_dec(&machine_memory.nr);
	kfree(object);
}

#define kfree(object)	object_free(object)

/* Let another thread do this before a page is locked, once. */
static void (*lock_page_call)(void);

static void page_lock(struct page *page)
{
	void (*call)(void) = lock_page_call;

	lock_page_call = NULL;
	if (call)
		call();
	lock_page(page);
}

#define lock_page(page)	page_lock(page)

/* Let other threads do this in a grace period, once. */
static void (*grace_call)(void);

static void grace_wait(void)
{
	void (*call)(void) = grace_call;

	synchronize_rcu();
	grace_call = NULL;
	if (call)
		call();
}

#define synchronize_rcu()	grace_wait()

/* The work queue */

/* The work that waits, and its delay in jiffies. It never begins: no case takes an hour. */
static struct delayed_work *work_waiting;
static unsigned long work_delay;

static bool work_queue(struct workqueue_struct *queue, struct delayed_work *work,
		       unsigned long delay)
{
	work_waiting = work;
	work_delay = delay;
	return mod_delayed_work(queue, work, delay + 3600 * HZ);
}

static bool work_cancel(struct delayed_work *work)
{
	work_waiting = NULL;
	return cancel_delayed_work_sync(work);
}

#define queue_delayed_work		work_queue
#define mod_delayed_work		work_queue
#define cancel_delayed_work_sync	work_cancel

/* The log */

/* Let another thread do this while a limit refuses memory, before that is logged. */
static void (*log_call)(void);

static bool log_may_tell(struct ratelimit_state *state)
{
	if (log_call)
		log_call();
	return __ratelimit(state);
}

#undef __ratelimit
#define __ratelimit(state)		log_may_tell(state)

/* The memory of users */

/**
 * struct user_memory - the engine's accesses to the memory of a user, which is the kernel's
 *	here
 * @left: accesses that succeed before all others fault; if negative, none faults
 * @faulted: an access has faulted
 * @nr: accesses so far, including those that have faulted
 * @call_at: @call is called before the access of this number
 * @call: lets another thread do something at that time
 * @tw: the wheel
 * @under_lock: the case has the lock of the wheel itself
 * @nr_unserved: accesses under a lock that a fault would have put to sleep
 */
struct user_memory {
	int left;
	bool faulted;
	unsigned int nr;
	unsigned int call_at;
	void (*call)(void);
	struct tw_ctx *tw;
	bool under_lock;
	unsigned int nr_unserved;
};

static struct user_memory user_memory = { .left = -1 };

static noinline bool user_access(void)
{
	if (user_memory.call && user_memory.nr == user_memory.call_at)
		user_memory.call();
	user_memory.nr++;
	if (preempt_count() && !pagefault_disabled() && !user_memory.under_lock)
		user_memory.nr_unserved++;
	if (user_memory.left < 0)
		return true;
	user_memory.faulted |= !user_memory.left;
	return user_memory.left && user_memory.left--;
}

static unsigned long user_copy(void *to, const void *from, size_t n)
{
	if (!user_access())
		return n;
	memcpy(to, from, n);
	return 0;
}

#define user_load(x, ptr)							\
({										\
	__auto_type __from = (ptr);						\
	bool __ok = user_access();						\
										\
	if (__ok)								\
		(x) = *(const typeof(*__from) __force *)__from;			\
	__ok;									\
})

#define user_store(x, ptr)							\
({										\
	__auto_type __to = (ptr);						\
	bool __ok = user_access();						\
										\
	if (__ok)								\
		*(typeof(*__to) __force *)__to = (x);				\
	__ok;									\
})

#undef access_ok
#undef get_user
#undef put_user
#undef __get_user
#undef __put_user
#define access_ok(ptr, size)		((void)(ptr), (void)(size), true)
#define get_user(x, ptr)		(user_load(x, ptr) ? 0 : -EFAULT)
#define put_user(x, ptr)		(user_store(x, ptr) ? 0 : -EFAULT)
#define __get_user(x, ptr)		get_user(x, ptr)
#define __put_user(x, ptr)		put_user(x, ptr)
#define copy_from_user(to, from, n)	user_copy(to, (const void __force *)(from), n)
#define __copy_from_user_inatomic(to, from, n) copy_from_user(to, from, n)

/* Each access is opened by itself, as with sync points, which define this as well. */
#ifndef TWHEEL_ACCESS_BY_CALLS
#define TWHEEL_ACCESS_BY_CALLS
#endif
#include "../../../engine/user_access.h"

/* If an access faults, half of it was written, as at the end of a page. */
static size_t iter_write(const void *from, size_t n, struct iov_iter *to)
{
	void *at = (void __force *)to->ubuf + to->iov_offset;

	if (!user_access())
		n /= 2;
	if (from)
		memcpy(at, from, n);
	else
		memset(at, 0, n);
	iov_iter_advance(to, n);
	return n;
}

#undef copy_to_iter
#undef iov_iter_zero
#define copy_to_iter(from, n, to)	iter_write(from, n, to)
#define iov_iter_zero(n, to)		iter_write(NULL, n, to)

/* The clock of the machine */

/* The engine's clock for its own work, if it is not 0; and its step at each reading. */
static u64 machine_ns, machine_step_ns;

static u64 machine_now(void)
{
	u64 now_ns = machine_ns;

	if (!now_ns)
		return ktime_get_ns();
	machine_ns += machine_step_ns;
	return now_ns;
}

/* The time of a wall clock, if it is not 0. */
static u64 machine_real_ns;

#define ktime_get_ns()			machine_now()
#define ktime_get_real_ns()		(machine_real_ns ?: ktime_get_real_ns())

/* The hrtimer */

/**
 * struct machine_alarm - the hrtimers of wheels with a virtual clock, none of which ever rings
 * @used: these take the place of the kernel's hrtimers
 * @is_on: it was set, and not cancelled
 * @at_ns: when it was to ring; if @relative, after how long
 * @range_ns: how much later it might ring
 * @relative: @at_ns is a time from then on
 * @nr_set: how often it was set
 */
static struct machine_alarm {
	bool used;
	bool is_on;
	u64 at_ns;
	u64 range_ns;
	bool relative;
	unsigned int nr_set;
} machine_alarm;

static void machine_alarm_set(struct hrtimer *timer, ktime_t at, u64 range_ns,
			      enum hrtimer_mode mode)
{
	if (!machine_alarm.used) {
		hrtimer_start_range_ns(timer, at, range_ns, mode);
		return;
	}
	machine_alarm.is_on = true;
	machine_alarm.at_ns = ktime_to_ns(at);
	machine_alarm.range_ns = range_ns;
	machine_alarm.relative = mode & HRTIMER_MODE_REL;
	machine_alarm.nr_set++;
}

static int machine_alarm_cancel(struct hrtimer *timer)
{
	int was_on = machine_alarm.is_on;

	if (!machine_alarm.used)
		return hrtimer_try_to_cancel(timer);
	machine_alarm.is_on = false;
	return was_on;
}

static bool machine_alarm_is_queued(struct hrtimer *timer)
{
	return machine_alarm.used ? machine_alarm.is_on : hrtimer_is_queued(timer);
}

#define hrtimer_start_range_ns		machine_alarm_set
#define hrtimer_start(timer, at, mode)	machine_alarm_set(timer, at, 0, mode)
#define hrtimer_try_to_cancel		machine_alarm_cancel
#define hrtimer_is_queued		machine_alarm_is_queued

/* The wheel */

/* How many entries were put into a slot, new ones or moved ones. */
static u64 nr_inserted;

#include "twheel_wheel.h"

static inline void wheel_insert(struct twheel_wheel *w, struct twheel_link *link, u64 key_ns)
{
	nr_inserted++;
	twheel_wheel_insert(w, link, key_ns);
}

static inline void wheel_put_back(struct twheel_wheel *w, struct twheel_link *link, u64 key_ns)
{
	nr_inserted++;
	twheel_wheel_put_back(w, link, key_ns);
}

static inline void wheel_move_down(struct twheel_wheel *w, u32 level, struct twheel_link *link,
				   u64 key_ns)
{
	nr_inserted++;
	twheel_wheel_move_down(w, level, link, key_ns);
}

#define twheel_wheel_insert		wheel_insert
#define twheel_wheel_put_back		wheel_put_back
#define twheel_wheel_move_down		wheel_move_down
