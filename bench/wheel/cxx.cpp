// SPDX-License-Identifier: GPL-2.0
/*
 * cxx.cpp - what a restart, and a start and a stop, cost by <twheel.hpp> and by <twheel.h>
 *
 *	cxx [NUMBER OF TIMERS]
 *
 * The two take turns in one process, on objects of the same size, in random order. What is printed
 * is the median of nine rounds, in nanoseconds of processor time.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include <twheel.hpp>

using namespace std::chrono_literals;

#define OPERATIONS	2000000
#define ROUNDS		9

class object {
	void on_idle() { calls++; }
	libtwheel::member_timer<&object::on_idle> timer;
	int calls = 0;

public:
	explicit object(libtwheel::wheel &w) : timer(w, this) {}
	void start(uint32_t us) { timer.start(30s + std::chrono::microseconds(us)); }
	void stop() { timer.stop(); }
};

static void on_idle(struct twheel *, struct twheel_timer *) {}

struct plain {
	struct twheel *w;
	struct twheel_timer timer;
	char rest[sizeof(object) - sizeof(struct twheel *) - sizeof(struct twheel_timer)];

	explicit plain(struct twheel *its_wheel) : w(its_wheel), timer(TWHEEL_TIMER_INIT(on_idle)) {}
	void start(uint32_t us) { twheel_start(w, &timer, 30 * TWHEEL_SEC + us * TWHEEL_USEC); }
	void stop() { twheel_stop(w, &timer); }
};

static double cpu_ns()
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct result {
	std::vector<double> restart, pair;
};

template <typename Object>
static void measure(std::vector<Object> &objects, const std::vector<uint32_t> &who, result &r)
{
	double begin;

	for (Object &o : objects)
		o.start(0);
	begin = cpu_ns();
	for (uint32_t i : who)
		objects[i].start(i);
	r.restart.push_back((cpu_ns() - begin) / OPERATIONS);
	for (Object &o : objects)
		o.stop();
	begin = cpu_ns();
	for (uint32_t i : who) {
		objects[i].start(i);
		objects[i].stop();
	}
	r.pair.push_back((cpu_ns() - begin) / OPERATIONS);
}

static double median(std::vector<double> &of)
{
	std::nth_element(of.begin(), of.begin() + ROUNDS / 2, of.end());
	return of[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	size_t nr = argc > 1 ? std::strtoul(argv[1], nullptr, 0) : 10000;
	libtwheel::wheel w;
	std::vector<object> objects;
	std::vector<plain> plains;
	std::vector<uint32_t> who(OPERATIONS);
	std::mt19937 random(1);
	result cxx, c;

	static_assert(sizeof(object) == sizeof(plain));
	for (size_t i = 0; i < nr; i++) {
		objects.emplace_back(w);
		plains.emplace_back(w);
	}
	for (uint32_t &i : who)
		i = static_cast<uint32_t>(random() % nr);
	for (int i = 0; i < ROUNDS; i++) {
		w.update();
		measure(plains, who, c);
		measure(objects, who, cxx);
	}
	std::printf("%-14s %8s %14s\n", "", "restart", "start and stop");
	std::printf("%-14s %8.1f %14.1f\n", "<twheel.h>", median(c.restart), median(c.pair));
	std::printf("%-14s %8.1f %14.1f\n", "<twheel.hpp>", median(cxx.restart), median(cxx.pair));
}
