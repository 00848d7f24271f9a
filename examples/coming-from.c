// SPDX-License-Identifier: 0BSD
/*
 * For programmers who know another interface of timeouts: its calls, and twheel's beside them.
 *
 *	coming-from posix | libevent | netty		in the process
 *	coming-from timerfd | kqueue | redis		on the device
 *
 * Documentation/coming-from.rst shows each, beside a table of calls.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <twheel.h>
#include <twheel/device.h>
#include <twheel/table.h>

#define MS	1000000ULL

/* If a call has failed, end the program. */
static int must(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror(-ret));
	return ret;
}

static void wait_for(const struct twheel_device *device)
{
	struct pollfd wheel = { .fd = twheel_device_fd(device), .events = POLLIN };

	if (poll(&wheel, 1, 10000) != 1)
		errx(1, "no event");
}

/* timerfd: a descriptor that becomes readable. One is enough for all timeouts. */
static bool timerfd(void)
{
	struct twheel_arm arms[2] = {
		{ .user_data = 1, .expires_ns = 30 * MS },	/* it_value */
		{ .user_data = 2, .expires_ns = 20 * MS, .interval_ns = 20 * MS },
	};
	struct twheel_device *device;
	struct twheel_event events[2];
	unsigned int seen = 0;
	int nr, i;

	must(twheel_device_open(&device, NULL, O_NONBLOCK, NULL), "open");
	if (twheel_device_arm_many(device, arms, 2) != 2)	/* timerfd_settime() */
		return false;
	while (seen != 3) {
		wait_for(device);
		nr = twheel_device_read(device, events, 2);
		for (i = 0; i < nr; i++) {
			printf("timeout %llu: %u\n", events[i].user_data, events[i].count);
			seen |= (unsigned int)events[i].user_data;
		}
	}
	must(twheel_device_cancel(device, arms[1].id), "cancel");	/* settime(), all zero */
	twheel_device_close(device);					/* close() */
	return true;
}

/* POSIX timers: no signal and no thread; the callback runs in the loop. */
struct job {
	struct twheel_timer timer;		/* timer_t */
	uint64_t times;
};

static void on_period(struct twheel *w, struct twheel_timer *t)	/* sigev_notify_function */
{
	struct job *job = twheel_container_of(t, struct job, timer);	/* sigev_value */

	job->times += twheel_periods(w);	/* 1 + timer_getoverrun() */
	if (job->times >= 3)
		twheel_stop(w, t);		/* timer_settime(), all zero */
}

static bool posix(void)
{
	struct job job = { TWHEEL_TIMER_INIT(on_period), 0 };	/* timer_create() */
	struct twheel *w;

	must(twheel_open(&w, NULL), "open");
	twheel_start_every(w, &job.timer, 20 * MS);		/* timer_settime() */
	while (twheel_timer_pending(&job.timer))
		must(twheel_wait(w, TWHEEL_NEVER), "wait");	/* instead of pause() */
	printf("%llu periods\n", (unsigned long long)job.times);
	twheel_close(w);
	return job.times >= 3;
}

/* kqueue: EVFILT_TIMER has an ident, and a keyed wheel has a key. */
static bool kqueue(void)
{
	const struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.flags = TWHEEL_SETUP_KEYED,
	};
	struct twheel_arm once = { .user_data = 7, .expires_ns = 3600000 * MS };
	struct twheel_arm again = { .user_data = 7, .expires_ns = 20 * MS };
	struct twheel_device *device;
	struct twheel_event event;

	must(twheel_device_open(&device, NULL, 0, &setup), "open");	/* kqueue() */
	must(twheel_device_arm(device, &once), "arm");		/* EV_ADD | EV_ONESHOT, ident 7 */
	if (twheel_device_arm(device, &again) != TWHEEL_WAS_PENDING)	/* EV_ADD once more */
		return false;
	if (twheel_device_read(device, &event, 1) != 1)		/* kevent() */
		return false;
	printf("ident %llu, data %u\n", event.user_data, event.count);
	if (twheel_device_cancel_key(device, 7) != -ENOENT)	/* EV_DELETE */
		return false;
	twheel_device_close(device);
	return event.user_data == 7 && event.count == 1;
}

/* libevent: the timer is in the object, and its memory is the caller's. */
struct conn {
	struct twheel_timer idle;		/* struct event * */
	bool closed;
};

static void on_idle(struct twheel *w, struct twheel_timer *t)	/* event_callback_fn */
{
	struct conn *conn = twheel_container_of(t, struct conn, idle);

	(void)w;
	conn->closed = true;
}

static bool libevent(void)
{
	struct conn conn = { TWHEEL_TIMER_INIT(on_idle), false };	/* evtimer_new() */
	struct twheel *w;

	must(twheel_open(&w, NULL), "open");		/* event_base_new() */
	twheel_start(w, &conn.idle, 30 * MS);		/* evtimer_add() */
	twheel_start(w, &conn.idle, 20 * MS);		/* the same: it moves the timer */
	if (!twheel_timer_pending(&conn.idle))		/* evtimer_pending() */
		return false;
	while (!conn.closed)
		must(twheel_wait(w, TWHEEL_NEVER), "wait");	/* event_base_loop() */
	printf("closed\n");
	twheel_stop(w, &conn.idle);			/* evtimer_del(), evtimer_free() */
	twheel_close(w);				/* event_base_free() */
	return true;
}

/* Netty: its calls for a JVM, into which nothing can call back, and which has no structs. */
static bool netty(void)
{
	uint32_t expired[2];
	struct twheel_table *table;

	must(twheel_table_open(&table, 1000, NULL), "open");		/* new HashedWheelTimer() */
	twheel_table_start_after(table, 0, 20 * MS);			/* newTimeout() */
	twheel_table_start_after(table, 1, 3600000 * MS);
	if (twheel_table_stop(table, 1) != TWHEEL_TABLE_PENDING)	/* Timeout.cancel() */
		return false;
	if (twheel_table_expired(table, expired, 2, TWHEEL_TABLE_NEVER) != 1)
		return false;
	printf("number %u\n", expired[0]);				/* TimerTask.run() */
	twheel_table_close(table);					/* stop() */
	return expired[0] == 0;
}

/* Redis: a sorted set of deadlines, and a worker that asks for those that have passed. */
static bool redis(void)
{
	const struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.flags = TWHEEL_SETUP_KEYED,
	};
	struct twheel_arm jobs[3] = {
		{ .user_data = 1, .expires_ns = 20 * MS },	/* ZADD jobs NX ... */
		{ .user_data = 2, .expires_ns = 20 * MS, .flags = TWHEEL_ARM_IF_ABSENT },
		{ .user_data = 3, .expires_ns = 3600000 * MS },
	};
	struct twheel_arm later = { .user_data = 2, .expires_ns = 30 * MS,
				    .flags = TWHEEL_ARM_ONLY_LATER };	/* ZADD jobs GT */
	struct twheel_status status = { .id = 3 };
	struct twheel_device *device;
	struct twheel_event event;
	int done;

	must(twheel_device_open(&device, NULL, 0, &setup), "open");
	if (twheel_device_arm_many(device, jobs, 3) != 3)
		return false;
	must(twheel_device_arm(device, &later), "arm");
	must(twheel_device_query_key(device, &status), "query");	/* ZSCORE jobs 3 */
	must(twheel_device_cancel_key(device, 3), "cancel");		/* ZREM jobs 3 */
	for (done = 0; done < 2; done++) {
		/* ZRANGEBYSCORE jobs -inf now LIMIT 0 1, and ZREM, in one step, without polling */
		if (twheel_device_read(device, &event, 1) != 1)
			return false;
		printf("job %llu\n", event.user_data);
	}
	twheel_device_close(device);
	return true;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*show)(void);
	} origins[] = {
		{ "timerfd", timerfd }, { "posix", posix }, { "kqueue", kqueue },
		{ "libevent", libevent }, { "netty", netty }, { "redis", redis }, { NULL, NULL },
	}, *origin;

	for (origin = origins; argc == 2 && origin->name; origin++)
		if (!strcmp(argv[1], origin->name))
			return !origin->show();
	errx(2, "usage: coming-from timerfd | posix | kqueue | libevent | netty | redis");
}
