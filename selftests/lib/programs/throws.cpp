// SPDX-License-Identifier: GPL-2.0
/*
 * throws.cpp - exceptions that leave callbacks, and timers in classes of each kind
 */
#include <malloc.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <twheel.h>

/* No class of standard layout: it has virtual functions, a base, and two kinds of access. */
class Base {
public:
	virtual ~Base() {}
	std::string name;
};

class Connection : public Base {
public:
	Connection() { twheel_timer_init(&timer, on_time); }
	~Connection() override {}
	int called = 0;
	bool throws = false;
	struct twheel_timer timer;

private:
	static void on_time(struct twheel *w, struct twheel_timer *t)
	{
		Connection *c = twheel_container_of(t, Connection, timer);

		(void)w;
		c->called++;
		if (c->throws)
			throw std::runtime_error(c->name);
	}
};

static int thrown(struct twheel *w)
{
	try {
		twheel_dispatch(w, 0);
	} catch (const std::runtime_error &error) {
		return error.what() == std::string("connection");
	}
	return 0;
}

static int on_a_wheel(uint32_t flags)
{
	struct twheel_options options = {};
	Connection connection[20];
	struct twheel *w;
	int i, exceptions = 0;

	options.size = sizeof(options);
	options.clock = TWHEEL_CALLER;
	options.flags = flags;
	if (twheel_open(&w, &options) < 0)
		return 1;
	for (i = 0; i < 20; i++) {
		connection[i].name = "connection";
		connection[i].throws = i % 4 == 0;
		twheel_start(w, &connection[i].timer, static_cast<uint64_t>(i % 3) * TWHEEL_MSEC);
	}
	twheel_start_every(w, &connection[4].timer, TWHEEL_MSEC);
	twheel_start_periodic(w, &connection[8].timer, 0, TWHEEL_MSEC, TWHEEL_FIXED_DELAY);
	twheel_advance(w, 2 * TWHEEL_MSEC);
	while (thrown(w)) {
		exceptions++;
		if (exceptions < 5 && twheel_next(w) > twheel_now(w))
			return 2;
	}
	if (exceptions != 5)
		return 3;
	for (i = 0; i < 20; i++)
		if (connection[i].called != 1)
			return 4;
	/* Both pend still, and are called by later dispatches. */
	twheel_advance(w, 10 * TWHEEL_MSEC);
	if (!thrown(w) || !thrown(w) || thrown(w))
		return 5;
	twheel_close(w);
	return twheel_timer_pending(&connection[4].timer) ? 6 : 0;
}

/* Two bases with timers of their own, the second of which is not at the beginning. */
struct Other {
	virtual ~Other() {}
	struct twheel_timer other;
};

class Two : public Connection, public Other {
};

static bool finds_its_object()
{
	Two two;

	return twheel_container_of(&two.timer, Two, timer) == &two &&
		twheel_container_of(&two.other, Two, other) == &two;
}

/* The thread that has thrown is not the only one that goes on with the wheel. */
static int on_two_threads()
{
	struct twheel_options options = {};
	Connection connection[3];
	struct twheel *w;
	int exceptions = 0, called = 0, i;

	options.size = sizeof(options);
	options.clock = TWHEEL_CALLER;
	options.flags = TWHEEL_SHARED;
	if (twheel_open(&w, &options) < 0)
		return 1;
	for (i = 0; i < 3; i++) {
		connection[i].throws = i != 2;
		connection[i].name = "connection";
		twheel_start(w, &connection[i].timer, static_cast<uint64_t>(i + 1) * TWHEEL_MSEC);
	}
	twheel_advance(w, TWHEEL_SEC);
	std::thread([&] { exceptions = thrown(w); }).join();
	exceptions += thrown(w);
	std::thread([&] { called = twheel_dispatch(w, 0); }).join();
	if (exceptions != 2 || called != 1)
		return 2;
	/* It would wait for a callback that is noted as not over. */
	twheel_start(w, &connection[0].timer, TWHEEL_SEC);
	std::thread([&] { called = twheel_stop_sync(w, &connection[0].timer); }).join();
	twheel_close(w);
	return called ? 0 : 3;
}

/* The visitor of twheel_stop_all() throws: the others pend and never expire. */
static void on_stop(struct twheel *w, struct twheel_timer *t, void *arg)
{
	(void)w;
	(void)t;
	if (++*static_cast<int *>(arg) == 2)
		throw std::runtime_error("visitor");
}

static int out_of_a_visitor(uint32_t flags)
{
	struct twheel_options options = {};
	Connection connection[5];
	struct twheel *w;
	int visited = 0, i, pending = 0;

	options.size = sizeof(options);
	options.clock = TWHEEL_CALLER;
	options.flags = flags;
	if (twheel_open(&w, &options) < 0)
		return 1;
	for (i = 0; i < 5; i++)
		twheel_start(w, &connection[i].timer, TWHEEL_MSEC);
	/* That of twheel_each() leaves the lock. */
	try {
		twheel_each(w, on_stop, &visited);
		return 7;
	} catch (const std::runtime_error &) {
		visited = 0;
	}
	try {
		twheel_stop_all(w, on_stop, &visited);
		return 2;
	} catch (const std::runtime_error &) {
	}
	for (i = 0; i < 5; i++) {
		pending += twheel_timer_pending(&connection[i].timer);
		if (twheel_timer_deadline(&connection[i].timer) != TWHEEL_NEVER)
			return 3;
	}
	twheel_advance(w, TWHEEL_SEC);
	if (pending != 3 || twheel_dispatch(w, 0) != 0)
		return 4;
	/* A restart takes one of them along; the next twheel_stop_all() stops the rest. */
	for (i = 0; !twheel_timer_pending(&connection[i].timer);)
		i++;
	twheel_start(w, &connection[i].timer, TWHEEL_MSEC);
	twheel_advance(w, 2 * TWHEEL_SEC);
	if (twheel_dispatch(w, 0) != 1 || connection[i].called != 1)
		return 5;
	if (twheel_stop_all(w, nullptr, nullptr) != 2)
		return 6;
	twheel_close(w);
	return 0;
}

/* A callback dispatches, and the one in it throws: its periods are its own after that. */
class Outer {
public:
	struct twheel_timer timer;
	struct twheel_timer inner;
	uint64_t before = 0, after = 0;

	static void on_time(struct twheel *w, struct twheel_timer *t)
	{
		Outer *o = twheel_container_of(t, Outer, timer);

		o->before = twheel_periods(w);
		twheel_start(w, &o->inner, 0);
		try {
			while (!twheel_dispatch(w, 0)) {
			}
		} catch (const std::runtime_error &) {
			o->after = twheel_periods(w);
		}
		twheel_stop(w, &o->inner);
	}

	static void on_inner(struct twheel *w, struct twheel_timer *t)
	{
		(void)w;
		(void)t;
		throw std::runtime_error("inner");
	}
};

static int in_a_callback(uint32_t flags)
{
	struct twheel_options options = {};
	struct twheel *w;
	Outer outer;

	options.size = sizeof(options);
	options.clock = TWHEEL_CALLER;
	options.flags = flags;
	if (twheel_open(&w, &options) < 0)
		return 1;
	twheel_timer_init(&outer.timer, Outer::on_time);
	twheel_timer_init(&outer.inner, Outer::on_inner);
	twheel_start_every(w, &outer.timer, TWHEEL_MSEC);
	twheel_advance(w, 3 * TWHEEL_MSEC);
	if (twheel_dispatch(w, 0) != 1 || outer.before != 3 || outer.after != 3)
		return 2;
	twheel_close(w);
	return 0;
}

/* A callback closes its wheel and throws: nothing of the wheel is left. */
static void closes_and_throws(struct twheel *w, struct twheel_timer *t)
{
	(void)t;
	twheel_close(w);
	throw std::runtime_error("closed");
}

static int out_of_a_closed_wheel(uint32_t flags)
{
	struct twheel_options options = {};
	struct twheel_timer timer;
	struct twheel *w;
	size_t before = mallinfo2().uordblks;
	int i;

	options.size = sizeof(options);
	options.clock = TWHEEL_CALLER;
	options.flags = flags;
	twheel_timer_init(&timer, closes_and_throws);
	for (i = 0; i < 100; i++) {
		if (twheel_open(&w, &options) < 0)
			return 1;
		twheel_start(w, &timer, 0);
		try {
			twheel_dispatch(w, 0);
			return 2;
		} catch (const std::runtime_error &) {
		}
	}
	return mallinfo2().uordblks - before < 100000 ? 0 : 3;
}

int main()
{
	int ret = on_a_wheel(0);

	if (!ret && on_a_wheel(TWHEEL_MEASURE))
		ret = 10;
	if (!ret && on_a_wheel(TWHEEL_SHARED))
		ret = 11;
	if (!ret && !finds_its_object())
		ret = 20;
	if (!ret && (out_of_a_visitor(0) || out_of_a_visitor(TWHEEL_SHARED)))
		ret = 30;
	if (!ret && (in_a_callback(0) || in_a_callback(TWHEEL_SHARED)))
		ret = 40;
	if (!ret && (out_of_a_closed_wheel(0) || out_of_a_closed_wheel(TWHEEL_SHARED)))
		ret = 50;
	return ret ? ret : on_two_threads();
}
