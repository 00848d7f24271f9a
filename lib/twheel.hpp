/* SPDX-License-Identifier: MIT */
/*
 * libtwheel: the wheel of <twheel.h> for C++17.
 *
 * A timer is a member of any class.  It calls a member function of its object, or a callable
 * that it holds.  It moves with its object, and its destructor stops it.
 *
 *	class conn {
 *		void on_idle();
 *		libtwheel::member_timer<&conn::on_idle> idle;
 *
 *	public:
 *		explicit conn(libtwheel::wheel &w) : idle(w, this) { idle.start(30s); }
 *		void on_data() { idle.start(30s); }		restarts it as well
 *	};
 *
 *	libtwheel::wheel w;
 *	libtwheel::timer report(w, [](auto &timer) { timer.start(1s); });
 *	std::vector<conn> conns;				grows, is sorted and erased
 *
 * Nothing here is compiled into the library, and nothing allocates memory but the opening of a
 * wheel.  The rules of <twheel.h> hold, and these:
 *
 * - Times are std::chrono::nanoseconds on the wheel's clock.  A negative time is 0, and
 *   nanoseconds::max(), which is libtwheel::never, is TWHEEL_NEVER.  A coarser unit is converted by
 *   <chrono>, for which milliseconds::max() is too large.
 * - A function that fails throws std::system_error.  If the compiler has no exceptions, it aborts.
 *   A program that wants the result calls the function of <twheel.h>: a wheel converts to struct
 *   twheel *.
 * - A callback may throw.  The exception leaves dispatch() or wait(), and the next one goes on with
 *   what is due.
 * - A callback may destroy its timer, or move it, as the vector does that its object is in.  After
 *   that it must not use its object, or what its lambda has captured: that is elsewhere.
 * - If the wheel is not shared, a timer and its wheel may be destroyed in any order.
 */
#ifndef _TWHEEL_HPP
#define _TWHEEL_HPP

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

#include <twheel.h>

#ifdef TWHEEL_NO_INLINE
#error "<twheel.hpp> is inline itself: use <twheel.h> with TWHEEL_NO_INLINE"
#endif

namespace libtwheel {

using std::chrono::nanoseconds;

inline constexpr nanoseconds never = nanoseconds::max();

/* Times as <twheel.h> has them */
constexpr uint64_t to_ns(nanoseconds time) noexcept
{
	if (time == never)
		return TWHEEL_NEVER;
	return time.count() < 0 ? 0 : static_cast<uint64_t>(time.count());
}

constexpr nanoseconds from_ns(uint64_t ns) noexcept
{
	return ns > INT64_MAX ? never : nanoseconds(static_cast<int64_t>(ns));
}

inline int checked(int result, const char *function)
{
	if (result >= 0)
		return result;
#ifdef __cpp_exceptions
	throw std::system_error(-result, std::generic_category(), function);
#else
	static_cast<void>(function);
	std::abort();
#endif
}

/**
 * wheel - a wheel that its destructor closes
 *
 * It can be moved: its timers stay in it.  One that has been moved from is none, and may be
 * destroyed or assigned to.  The constructor takes the options of twheel_open(), whose size it
 * fills in, or a wheel that is open, which belongs to it from then on.
 *
 * wait() returns 0 if a signal came.
 */
class wheel {
public:
	explicit wheel(struct twheel_options options = {})
	{
		options.size = sizeof(options);
		checked(twheel_open(&w, &options), "twheel_open");
	}
	explicit wheel(struct twheel *opened) noexcept : w(opened) {}
	wheel(wheel &&from) noexcept : w(from.release()) {}
	wheel &operator=(wheel &&from) noexcept
	{
		wheel old(std::move(from));

		std::swap(w, old.w);
		return *this;
	}
	~wheel() { twheel_close(w); }

	operator struct twheel *() const noexcept { return w; }
	struct twheel *release() noexcept { return std::exchange(w, nullptr); }

	int dispatch(unsigned int max = 0) { return checked(twheel_dispatch(w, max), "twheel_dispatch"); }
	nanoseconds next() noexcept { return from_ns(twheel_next(w)); }
	int wait(nanoseconds timeout = never)
	{
		int result = twheel_wait(w, to_ns(timeout));

		return result == -EINTR ? 0 : checked(result, "twheel_wait");
	}
	void wake() noexcept { twheel_wake(w); }
	int fd() { return checked(twheel_fd(w), "twheel_fd"); }
	void flush() { checked(twheel_flush(w), "twheel_flush"); }
	nanoseconds now() noexcept { return from_ns(twheel_now(w)); }
	nanoseconds update() noexcept { return from_ns(twheel_update(w)); }
	void advance(nanoseconds to) { checked(twheel_advance(w, to_ns(to)), "twheel_advance"); }

private:
	struct twheel *w;
};

/**
 * timer - a timer that calls what it holds
 *
 * The callable takes the timer, or nothing.  Its moves must not throw.
 *
 * A timer belongs to the wheel that it was made with.  If it is moved while it pends, it pends with
 * the same deadline where it is then; the one that it was moved from does not pend.  To assign to
 * it stops it first.
 *
 * start_at() takes the time on the wheel's clock, or a time_point: std::chrono::steady_clock is
 * TWHEEL_MONOTONIC here, and system_clock is TWHEEL_REALTIME.
 *
 * In a shared wheel, the destructor waits as twheel_stop_sync() does, so the caller holds no lock
 * that the callback takes.  The wheel has to outlive its timers there, a timer has to be the last
 * member of its object, and must not move while its callback may be called by another thread.
 */
template <typename Callable>
class timer : private twheel_timer {
public:
	template <typename... Args>
	explicit timer(struct twheel *its_wheel, Args &&...args)
		: twheel_timer TWHEEL_TIMER_INIT(call), w(its_wheel),
		  callable(std::forward<Args>(args)...)
	{
	}
	timer(timer &&from) noexcept
		: twheel_timer TWHEEL_TIMER_INIT(call), w(from.w), callable(std::move(from.callable))
	{
		static_assert(std::is_nothrow_move_constructible_v<Callable>,
			      "a timer is moved by what cannot fail");
		if (is_shared() || from.pending())
			twheel_timer_move(w, this, &from);
	}
	/* By construction: no lambda can be assigned to */
	timer &operator=(timer &&from) noexcept
	{
		if (this != &from) {
			this->~timer();
			new (this) timer(std::move(from));
		}
		return *this;
	}
	~timer()
	{
		if (is_shared())
			twheel_stop_sync(w, this);
		else
			twheel_stop(w, this);
	}

	void start(nanoseconds delay) noexcept { twheel_start(w, this, to_ns(delay)); }
	void start_at(nanoseconds time) noexcept { twheel_start_at(w, this, to_ns(time)); }
	template <typename Clock, typename Duration>
	void start_at(std::chrono::time_point<Clock, Duration> time) noexcept
	{
		start_at(time.time_since_epoch());
	}
	void start_every(nanoseconds interval) noexcept
	{
		twheel_start_every(w, this, to_ns(interval));
	}
	void start_periodic(nanoseconds time, nanoseconds interval, unsigned int flags = 0) noexcept
	{
		twheel_start_periodic(w, this, to_ns(time), to_ns(interval), flags);
	}
	bool stop() noexcept { return twheel_stop(w, this); }
	bool stop_sync() noexcept { return twheel_stop_sync(w, this); }
	bool pending() const noexcept { return twheel_timer_pending(this); }
	nanoseconds deadline() const noexcept { return from_ns(twheel_timer_deadline(this)); }

private:
	static void call(struct twheel *, struct twheel_timer *t)
	{
		timer &self = *static_cast<timer *>(t);

		if constexpr (std::is_invocable_v<Callable &, timer &>)
			self.callable(self);
		else
			self.callable();
	}
	bool is_shared() const noexcept { return _TWHEEL_ADDRESS(w) & _TWHEEL_SHARED_BIT; }

	struct twheel *w;
	Callable callable;
};

template <typename Callable>
timer(struct twheel *, Callable) -> timer<Callable>;

/* The callable of a member_timer, which finds its object by its own place in it */
template <auto Method>
class member {
	template <typename Class, typename Function>
	static Class *class_of(Function Class::*);
	using object = std::remove_pointer_t<decltype(class_of(Method))>;

public:
	explicit member(object *its) noexcept
		: offset(reinterpret_cast<char *>(this) - reinterpret_cast<char *>(its))
	{
	}
	void operator()()
	{
		void *its = reinterpret_cast<char *>(this) - offset;

		(static_cast<object *>(its)->*Method)();
	}

private:
	std::ptrdiff_t offset;
};

/**
 * member_timer - a timer that calls a member function without parameters
 *
 * It is a member of that class, or of a member or an element of an array in it, and its constructor
 * takes the wheel and the object.  The function is declared before it.  It moves with its object,
 * to the same place in another one.
 */
template <auto Method>
using member_timer = timer<member<Method>>;

} /* namespace libtwheel */

#endif /* _TWHEEL_HPP */
