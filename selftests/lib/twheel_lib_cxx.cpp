// SPDX-License-Identifier: GPL-2.0
/*
 * twheel_lib_cxx.cpp - the rules of <twheel.hpp>
 */
#include <twheel.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

using namespace std::chrono_literals;
using libtwheel::nanoseconds;
using libtwheel::never;

/* ---- a harness, which prints TAP ----------------------------------------- */

struct test {
	const char *name;
	void (*run)();
};

static std::vector<test> &tests()
{
	static std::vector<test> all;

	return all;
}

static bool failed;

#define TEST(name)							\
	static void name();						\
	static const bool name##_is_there = (tests().push_back({ #name, name }), true);	\
	static void name()

#define EXPECT(condition)						\
	do {								\
		if (!(condition)) {					\
			std::printf("# line %d: %s\n", __LINE__, #condition); \
			failed = true;					\
		}							\
	} while (0)

/* What new has been asked for. */
static size_t allocations;

void *operator new(size_t size)
{
	void *memory = std::malloc(size ? size : 1);

	allocations++;
	if (!memory)
		throw std::bad_alloc();
	return memory;
}

void operator delete(void *memory) noexcept
{
	std::free(memory);
}

void operator delete(void *memory, size_t) noexcept
{
	std::free(memory);
}

/* ---- wheels and objects --------------------------------------------------- */

static libtwheel::wheel open_wheel(uint32_t clock = TWHEEL_CALLER, uint32_t flags = 0)
{
	struct twheel_options options = {};

	options.clock = clock;
	options.flags = flags;
	return libtwheel::wheel(options);
}

static int step(libtwheel::wheel &w, nanoseconds to)
{
	w.advance(to);
	return w.dispatch();
}

/* An object that is moved about, with no code for that. */
class conn {
	void on_idle() noexcept
	{
		called++;
		at = twheel_now(*wheel);
	}
	libtwheel::wheel *wheel;
	libtwheel::member_timer<&conn::on_idle> idle;

public:
	unsigned int number;
	int called = 0;
	uint64_t at = 0;

	conn(libtwheel::wheel &w, unsigned int its_number, nanoseconds delay)
		: wheel(&w), idle(w, this), number(its_number)
	{
		idle.start(delay);
	}
	bool pending() const { return idle.pending(); }
	nanoseconds deadline() const { return idle.deadline(); }
};

static_assert(std::is_nothrow_move_constructible_v<conn> && std::is_nothrow_move_assignable_v<conn>);
static_assert(!std::is_copy_constructible_v<conn> && !std::is_copy_assignable_v<conn>);
static_assert(!std::is_copy_constructible_v<libtwheel::wheel>);
static_assert(std::is_nothrow_move_constructible_v<libtwheel::wheel>);

/* ---- what a timer calls ---------------------------------------------------- */

TEST(timer_calls_a_member_function_of_its_object)
{
	auto w = open_wheel();
	conn c(w, 1, 30s);

	EXPECT(step(w, 30s - 1ns) == 0 && c.called == 0);
	EXPECT(step(w, 30s) == 1 && c.called == 1 && !c.pending());
}

struct base {
	virtual ~base() = default;
	virtual void on_time() = 0;
	std::string name;
};

struct derived : base {
	int called = 0;
	void on_time() override { called++; }
	std::array<libtwheel::member_timer<&base::on_time>, 2> timers;

	explicit derived(libtwheel::wheel &w)
		: timers{{libtwheel::member_timer<&base::on_time>(w, this),
			  libtwheel::member_timer<&base::on_time>(w, this)}}
	{
	}
};

TEST(timer_in_an_array_calls_a_virtual_function_of_a_base)
{
	auto w = open_wheel();
	derived first(w);

	first.timers[0].start(1s);
	first.timers[1].start(2s);
	derived second(std::move(first));
	EXPECT(step(w, 1s) == 1 && first.called == 0 && second.called == 1);
	EXPECT(step(w, 2s) == 1 && first.called == 0 && second.called == 2);
}

static int plain_calls;

static void plain()
{
	plain_calls++;
}

TEST(timer_calls_a_lambda_a_function_and_what_takes_the_timer)
{
	auto w = open_wheel();
	int calls = 0, restarts = 0;
	libtwheel::timer lambda(w, [&] { calls++; });
	libtwheel::timer function(w, plain);
	libtwheel::timer<std::function<void()>> stored(w, [&] { calls += 10; });
	libtwheel::timer again(w, [&](auto &timer) {
		if (++restarts < 3)
			timer.start(1s);
	});

	plain_calls = 0;
	lambda.start(1s);
	function.start(1s);
	stored.start(1s);
	again.start(1s);
	EXPECT(step(w, 1s) == 4 && calls == 11 && plain_calls == 1);
	EXPECT(step(w, 2s) == 1 && step(w, 3s) == 1 && step(w, 4s) == 0 && restarts == 3);
}

TEST(start_stop_and_move_allocate_nothing)
{
	auto w = open_wheel();
	libtwheel::timer timer(w, plain);
	size_t before = allocations;

	timer.start(1s);
	libtwheel::timer moved(std::move(timer));
	moved.start(2s);
	moved.stop();
	EXPECT(allocations == before);
}

/* ---- times ----------------------------------------------------------------- */

TEST(nanoseconds_max_is_never_and_a_negative_time_is_0)
{
	auto w = open_wheel();
	libtwheel::timer timer(w, plain);

	w.advance(5s);
	timer.start(nanoseconds::max());
	EXPECT(timer.pending() && timer.deadline() == never && w.next() == never);
	timer.start_at(never);
	EXPECT(timer.pending() && timer.deadline() == never);
	timer.start(never - 1ns);
	EXPECT(timer.pending() && timer.deadline() == never);
	timer.start_at(10s);
	EXPECT(timer.deadline() == 10s && w.next() == 10s);
	timer.start(-3s);
	EXPECT(timer.deadline() == 5s && w.dispatch() == 1);
	timer.start_at(-3s);
	EXPECT(w.dispatch() == 1 && !timer.pending() && timer.deadline() == never);
	EXPECT(w.now() == 5s && w.update() == 5s);
	EXPECT(libtwheel::to_ns(never) == TWHEEL_NEVER && libtwheel::to_ns(-1ns) == 0);
	EXPECT(libtwheel::from_ns(TWHEEL_NEVER) == never && libtwheel::from_ns(1ULL << 63) == never);
}

TEST(time_point_of_a_steady_clock_is_one_of_the_monotonic_clock)
{
	libtwheel::wheel w;
	libtwheel::timer timer(w, plain);
	auto deadline = std::chrono::steady_clock::now() + 5ms;

	timer.start_at(deadline);
	EXPECT(timer.deadline() == deadline.time_since_epoch());
	EXPECT(w.wait(never) == 1 && std::chrono::steady_clock::now() >= deadline);
	timer.start_at(std::chrono::steady_clock::time_point::max());
	EXPECT(timer.pending() && timer.deadline() == never);
}

TEST(time_point_of_a_system_clock_is_one_of_the_realtime_clock)
{
	auto w = open_wheel(TWHEEL_REALTIME);
	libtwheel::timer timer(w, plain);
	auto deadline = std::chrono::system_clock::now() + 5ms;

	timer.start_at(deadline);
	EXPECT(timer.deadline() == deadline.time_since_epoch());
	EXPECT(w.wait() == 1 && std::chrono::system_clock::now() >= deadline);
}

TEST(periodic_timer_keeps_its_rate_or_its_delay)
{
	auto w = open_wheel();
	int calls = 0;
	libtwheel::timer rate(w, [&] { calls++; });
	libtwheel::timer delay(w, [&] { calls += 100; });

	rate.start_every(1s);
	EXPECT(step(w, 3500ms) == 1 && calls == 1 && rate.deadline() == 4s);
	rate.stop();
	delay.start_periodic(4s, 1s, TWHEEL_FIXED_DELAY);
	EXPECT(step(w, 5500ms) == 1 && calls == 101 && delay.deadline() == 6500ms);
	delay.start_periodic(6s, 2s);
	EXPECT(step(w, 6s) == 1 && calls == 201 && delay.deadline() == 8s);
}

/* ---- lifetimes --------------------------------------------------------------- */

TEST(destructor_stops_a_timer_and_closes_a_wheel)
{
	auto w = open_wheel();
	int calls = 0;

	{
		libtwheel::timer timer(w, [&] { calls++; });

		timer.start(1s);
		EXPECT(w.next() <= 1s);
	}
	EXPECT(w.next() == never && step(w, 2s) == 0 && calls == 0);
}

TEST(timer_and_wheel_are_destroyed_in_any_order)
{
	auto w = std::make_unique<libtwheel::wheel>(open_wheel());
	auto idle = std::make_unique<libtwheel::timer<void (*)()>>(*w, plain);
	auto pending = std::make_unique<libtwheel::timer<void (*)()>>(*w, plain);

	pending->start(1s);
	w.reset();
	EXPECT(!pending->pending() && !pending->stop());
	libtwheel::timer moved(std::move(*idle));
	*pending = std::move(moved);
}

TEST(wheel_that_moves_keeps_its_timers)
{
	auto w = open_wheel();
	int calls = 0;
	libtwheel::timer timer(w, [&] { calls++; });

	timer.start(1s);
	libtwheel::wheel moved(std::move(w));
	EXPECT(step(moved, 1s) == 1 && calls == 1);
	w = std::move(moved);
	timer.start(1s);
	EXPECT(step(w, 2s) == 1 && calls == 2);
	/* The wheel that it had is closed. */
	timer.start(1s);
	w = open_wheel();
	EXPECT(!timer.pending());
	w = std::move(*&w);
	EXPECT(w.next() == never);
}

TEST(wheel_that_is_open_is_taken_over_and_given_back)
{
	struct twheel *opened;

	EXPECT(twheel_open(&opened, nullptr) == 0);
	libtwheel::wheel w(opened);
	EXPECT(w == opened);
	libtwheel::wheel other(w.release());
	EXPECT(w == static_cast<struct twheel *>(nullptr) && other == opened);
}

/* ---- moves ------------------------------------------------------------------- */

TEST(timer_that_moves_pends_with_the_same_deadline_where_it_is_then)
{
	auto w = open_wheel();
	conn c(w, 1, 7s);
	conn moved(std::move(c));

	EXPECT(!c.pending() && moved.pending() && moved.deadline() == 7s);
	conn other(w, 2, 3s);
	other = std::move(moved);
	EXPECT(!moved.pending() && other.number == 1 && other.deadline() == 7s);
	other = std::move(*&other);
	EXPECT(other.pending() && other.deadline() == 7s);
	EXPECT(step(w, 6s) == 0 && step(w, 7s) == 1);
	EXPECT(c.called == 0 && moved.called == 0 && other.called == 1);
	/* One that does not pend is moved as well. */
	c = std::move(other);
	EXPECT(!c.pending() && c.called == 1);
}

TEST(timer_with_a_lambda_is_assigned_to)
{
	auto w = open_wheel();
	int sum = 0;
	auto make = [&](int number) { return libtwheel::timer(w, [&sum, number] { sum += number; }); };
	auto first = make(1), second = make(2);

	first.start(1s);
	second.start(2s);
	first = std::move(second);
	EXPECT(step(w, 1s) == 0 && step(w, 2s) == 1 && sum == 2);
	std::swap(first, second);
	second.start(1s);
	EXPECT(step(w, 3s) == 1 && sum == 4);
}

TEST(ten_thousand_in_a_vector_that_grows_is_sorted_and_erased_come_once_each_and_none_early)
{
	constexpr unsigned int nr = 10000;
	auto w = open_wheel();
	std::vector<conn> conns;
	uint64_t called = 0, wrong = 0;

	for (unsigned int i = 0; i < nr; i++)
		conns.emplace_back(w, i, std::chrono::milliseconds(1 + i * 7919ULL % nr));
	std::sort(conns.begin(), conns.end(),
		  [](const conn &a, const conn &b) { return a.deadline() < b.deadline(); });
	conns.erase(std::remove_if(conns.begin(), conns.end(),
				   [](const conn &c) { return c.number % 4 == 3; }), conns.end());
	EXPECT(conns.size() == nr / 4 * 3);
	for (unsigned int ms = 1; ms <= nr; ms++) {
		called += static_cast<uint64_t>(step(w, std::chrono::milliseconds(ms)));
		if (ms == nr / 2)
			conns.shrink_to_fit();
	}
	for (const conn &c : conns)
		wrong += c.called != 1 || c.at != (1 + c.number * 7919ULL % nr) * TWHEEL_MSEC;
	EXPECT(called == nr / 4 * 3 && wrong == 0 && w.next() == never);
}

/* ---- callbacks that do much -------------------------------------------------- */

TEST(exception_of_a_callback_leaves_dispatch_and_the_next_goes_on)
{
	auto w = open_wheel();
	int calls = 0, thrown = 0;
	std::vector<libtwheel::timer<std::function<void()>>> timers;

	for (int i = 0; i < 10; i++)
		timers.emplace_back(w, [&, i] {
			calls++;
			if (i % 2)
				throw std::runtime_error("odd");
		});
	for (auto &timer : timers)
		timer.start(1s);
	w.advance(1s);
	for (bool again = true; again;) {
		try {
			w.dispatch();
			again = false;
		} catch (const std::runtime_error &) {
			thrown++;
		}
	}
	EXPECT(calls == 10 && thrown == 5);
}

TEST(exception_of_a_callback_leaves_wait)
{
	libtwheel::wheel w;
	libtwheel::timer timer(w, [] { throw std::runtime_error("in time"); });
	bool thrown = false;

	timer.start(1ms);
	try {
		w.wait();
	} catch (const std::runtime_error &) {
		thrown = true;
	}
	EXPECT(thrown && w.wait(0ns) == 0);
}

class session {
	std::unique_ptr<session> &owner;

public:
	void on_time() { owner.reset(); }
	libtwheel::member_timer<&session::on_time> timer;
	session(libtwheel::wheel &w, std::unique_ptr<session> &its_owner)
		: owner(its_owner), timer(w, this)
	{
	}
};

TEST(callback_destroys_its_object)
{
	auto w = open_wheel();
	std::unique_ptr<session> once, always;

	once = std::make_unique<session>(w, once);
	once->timer.start(1s);
	always = std::make_unique<session>(w, always);
	always->timer.start_every(1s);
	EXPECT(step(w, 1s) == 2 && !once && !always && w.next() == never);
}

/* Its callback adds another one to the vector that it is in, which moves. */
struct grower {
	std::vector<grower> *all;
	int called = 0;
	void on_time()
	{
		std::vector<grower> *here = all;

		called++;
		here->reserve(here->capacity() + 1);
	}
	libtwheel::member_timer<&grower::on_time> timer;
	grower(libtwheel::wheel &w, std::vector<grower> &its_all) : all(&its_all), timer(w, this) {}
};

TEST(callback_moves_the_vector_that_its_object_is_in)
{
	for (uint32_t flags : { 0U, TWHEEL_MEASURE, TWHEEL_SHARED }) {
		auto w = open_wheel(TWHEEL_CALLER, flags);
		std::vector<grower> all;

		for (int i = 0; i < 4; i++)
			all.emplace_back(w, all);
		all[0].timer.start(1s);
		all[1].timer.start_every(1s);
		all[2].timer.start_periodic(1s, 1s, TWHEEL_FIXED_DELAY);
		all[3].timer.start(9s);
		for (int s = 1; s <= 9; s++)
			step(w, std::chrono::seconds(s));
		EXPECT(all[0].called == 1 && all[1].called == 9 && all[2].called == 9 && all[3].called == 1);
		EXPECT(all[1].timer.deadline() == 10s && all[2].timer.deadline() == 10s);
	}
}

/* ---- errors ------------------------------------------------------------------- */

template <typename Function>
static int error_of(Function function)
{
	try {
		function();
	} catch (const std::system_error &error) {
		return error.code().category() == std::generic_category() ? error.code().value() : -1;
	}
	return 0;
}

TEST(function_that_fails_throws_its_errno)
{
	libtwheel::wheel w;
	auto shared = open_wheel(TWHEEL_CALLER, TWHEEL_SHARED);
	int busy = 0;
	libtwheel::timer timer(shared, [&] {
		std::thread([&] { busy = error_of([&] { shared.dispatch(); }); }).join();
	});

	EXPECT(error_of([] {
		struct twheel_options options = {};

		options.tick_ns = 1;
		libtwheel::wheel fails(options);
	}) == EINVAL);
	EXPECT(error_of([&] { w.advance(1s); }) == EOPNOTSUPP);
	EXPECT(twheel_advance(w, 1) == -EOPNOTSUPP);
	timer.start(0s);
	EXPECT(shared.dispatch() == 1 && busy == EBUSY);
	EXPECT(error_of([&] {
		close(w.fd());
		libtwheel::timer soon(w, plain);
		soon.start(1s);
		w.flush();
	}) == EBADF);
}

TEST(wait_returns_0_after_a_signal_and_after_wake)
{
	libtwheel::wheel w;
	auto shared = open_wheel(TWHEEL_MONOTONIC, TWHEEL_SHARED);
	struct sigaction action = {};

	action.sa_handler = [](int) {};
	sigaction(SIGALRM, &action, nullptr);
	ualarm(20000, 20000);
	EXPECT(w.wait(60s) == 0);
	ualarm(0, 0);
	shared.wake();
	EXPECT(shared.wait(60s) == 0);
}

/* ---- threads ------------------------------------------------------------------- */

TEST(destructor_in_a_shared_wheel_waits_for_the_callback)
{
	auto w = open_wheel(TWHEEL_MONOTONIC, TWHEEL_SHARED);
	std::atomic<bool> begun = false, over = false;
	auto timer = std::make_unique<libtwheel::timer<std::function<void()>>>(w, [&] {
		begun = true;
		std::this_thread::sleep_for(50ms);
		over = true;
	});

	timer->start(0s);
	std::thread dispatcher([&] {
		while (!begun)
			w.wait();
	});
	while (!begun)
		std::this_thread::yield();
	timer.reset();
	EXPECT(over);
	dispatcher.join();
}

/* A timer moves in its callback, which goes on for a while. */
struct move_and_sleep;

struct mover {
	std::unique_ptr<libtwheel::timer<move_and_sleep>> *from, *to;
	std::atomic<bool> begun = false, over = false;
};

struct move_and_sleep {
	mover *m;
	void operator()()
	{
		mover *here = m;

		*here->to = std::make_unique<libtwheel::timer<move_and_sleep>>(std::move(**here->from));
		here->begun = true;
		std::this_thread::sleep_for(50ms);
		here->over = true;
	}
};

TEST(destructor_waits_for_the_callback_that_has_moved_its_timer)
{
	auto w = open_wheel(TWHEEL_MONOTONIC, TWHEEL_SHARED);
	std::unique_ptr<libtwheel::timer<move_and_sleep>> from, to;
	mover m;

	m.from = &from;
	m.to = &to;
	from = std::make_unique<libtwheel::timer<move_and_sleep>>(w, move_and_sleep{&m});
	from->start(0s);
	std::thread dispatcher([&] { w.wait(); });
	while (!m.begun)
		std::this_thread::yield();
	to.reset();
	EXPECT(m.over);
	dispatcher.join();
}

TEST(callback_in_a_shared_wheel_destroys_its_object)
{
	auto w = open_wheel(TWHEEL_CALLER, TWHEEL_SHARED);
	std::unique_ptr<session> once;

	once = std::make_unique<session>(w, once);
	once->timer.start(1s);
	EXPECT(step(w, 1s) == 1 && !once);
}

TEST(stop_sync_waits_for_the_callback)
{
	auto w = open_wheel(TWHEEL_MONOTONIC, TWHEEL_SHARED);
	std::atomic<bool> begun = false, over = false;
	libtwheel::timer timer(w, [&] {
		begun = true;
		std::this_thread::sleep_for(50ms);
		over = true;
	});

	timer.start(0s);
	std::thread dispatcher([&] { w.wait(); });
	while (!begun)
		std::this_thread::yield();
	EXPECT(!timer.stop_sync() && over);
	dispatcher.join();
}

int main()
{
	size_t nr = 0;
	bool any = false;

	std::printf("TAP version 13\n1..%zu\n", tests().size());
	for (const test &t : tests()) {
		failed = false;
		/* If it hangs, the program ends before its plan. */
		alarm(20);
		t.run();
		std::printf("%s %zu %s\n", failed ? "not ok" : "ok", ++nr, t.name);
		std::fflush(stdout);
		any |= failed;
	}
	return any;
}
