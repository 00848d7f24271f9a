// SPDX-License-Identifier: 0BSD
/*
 * idle-timeouts.c - what a server needs of a wheel
 *
 * timeout_start() and timeout_stop() only note what is wanted;
 * timeouts_flush() does all of it with a call of each kind.  user_data tells
 * whose timeout it is, and which; the id is asked before an event is believed.
 */
#define _GNU_SOURCE
#include "idle-server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <linux/twheel_calls.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEVICE		"/dev/twheel"

/* user_data of the timeout that prints a line each second. */
#define PROGRESS	UINT64_MAX

static int device_open(void)
{
	int fd = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	switch (errno) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		die_plainly(DEVICE " is not there: load the module (insmod twheel.ko, or modprobe twheel once it is installed)");
	case EACCES:
	case EPERM:
		die_plainly(DEVICE " may not be opened by this user: run this as root, or let a group open it with a udev rule (KERNEL==\"twheel\", GROUP=\"...\", MODE=\"0660\")");
	default:
		die("cannot open " DEVICE);
	}
}

/**
 * wheel_open() - open the wheel and set it up
 * @opt: says how many timeouts it shall have room for
 *
 * Return: the descriptor, for epoll; non-blocking.
 */
int wheel_open(const struct options *opt)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.tick_ns = opt->tick_ns,
		.max_pending = opt->connections * NR_TIMEOUTS + 1,
	};
	struct twheel_info info = { .size = sizeof(info) };
	int fd = device_open();

	if (ioctl(fd, TWHEEL_IOC_INFO, &info))
		die(DEVICE " is not a wheel that this program knows");
	if (setup.max_pending > info.max_pending_limit)
		die_plainly("%u connections need %u timeouts and a wheel has room for %u: ask for fewer with --connections, or load the module with a larger max_pending_limit",
			    opt->connections, setup.max_pending,
			    info.max_pending_limit);
	if (ioctl(fd, TWHEEL_IOC_SETUP, &setup))
		die("cannot set up a wheel with ticks of %" PRIu64 " ns",
		    opt->tick_ns);
	return fd;
}

/* One call for many; each entry has a result of its own. */
static void wheel_call(const struct server *s, unsigned long command,
		       void *entries, size_t entry_size, unsigned int nr)
{
	struct twheel_vector vector = {
		.size = sizeof(vector),
		.entry_size = entry_size,
		.nr = nr,
		.entries = (uintptr_t)entries,
	};

	if (ioctl(s->wheel, command, &vector) < 0)
		die("the wheel refuses a call");
}

static struct conn *conn_of(struct server *s, uint64_t user_data)
{
	return &s->conn[user_data / NR_TIMEOUTS];
}

static enum timeout timeout_of(uint64_t user_data)
{
	return user_data % NR_TIMEOUTS;
}

/* Begin to count, or begin anew. */
void timeout_start(struct server *s, struct conn *c, enum timeout t)
{
	struct twheel_arm *arm = c->id[t] ? &s->rearm[s->nr_rearm++] :
					    &s->arm[s->nr_arm++];

	*arm = (struct twheel_arm) {
		.flags = TWHEEL_ARM_ABSOLUTE,
		.user_data = (c - s->conn) * NR_TIMEOUTS + t,
		.id = c->id[t],
	};
}

void timeout_stop(struct server *s, struct conn *c, enum timeout t)
{
	if (!c->id[t])
		return;
	s->cancel[s->nr_cancel++] = (struct twheel_cancel) { .id = c->id[t] };
	c->id[t] = 0;
}

static void deadlines_set(struct server *s, struct twheel_arm *arm,
			  unsigned int nr, uint64_t now)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		enum timeout t = timeout_of(arm[i].user_data);

		conn_of(s, arm[i].user_data)->since_ns[t] = now;
		arm[i].expires_ns = now + s->opt->timeout_ns[t];
	}
}

static void rearms_flush(struct server *s, uint64_t now)
{
	unsigned int i;

	if (!s->nr_rearm)
		return;
	deadlines_set(s, s->rearm, s->nr_rearm, now);
	wheel_call(s, TWHEEL_IOC_REARM, s->rearm, sizeof(s->rearm[0]),
		   s->nr_rearm);
	s->st.refresh_calls++;
	for (i = 0; i < s->nr_rearm; i++) {
		if (s->rearm[i].result > 0)
			s->st.refreshed++;
		else
			s->st.lost++;
		s->st.overtaken += s->rearm[i].result == TWHEEL_WAS_UNREAD;
	}
	s->nr_rearm = 0;
}

static void arms_flush(struct server *s, uint64_t now)
{
	unsigned int i;

	if (!s->nr_arm)
		return;
	deadlines_set(s, s->arm, s->nr_arm, now);
	wheel_call(s, TWHEEL_IOC_ARM, s->arm, sizeof(s->arm[0]), s->nr_arm);
	s->st.arm_calls++;
	for (i = 0; i < s->nr_arm; i++) {
		const struct twheel_arm *arm = &s->arm[i];
		enum timeout t = timeout_of(arm->user_data);

		if (arm->result < 0)
			continue;
		conn_of(s, arm->user_data)->id[t] = arm->id;
		s->st.armed++;
	}
	/* A connection that nothing would ever close is not kept. */
	for (i = 0; i < s->nr_arm; i++) {
		if (s->arm[i].result > 0)
			continue;
		conn_close(s, conn_of(s, s->arm[i].user_data));
		s->st.refused++;
		s->st.refused_errno = -s->arm[i].result;
	}
	s->nr_arm = 0;
}

static void cancels_flush(struct server *s)
{
	unsigned int i;

	if (!s->nr_cancel)
		return;
	wheel_call(s, TWHEEL_IOC_CANCEL, s->cancel, sizeof(s->cancel[0]),
		   s->nr_cancel);
	s->st.cancel_calls++;
	for (i = 0; i < s->nr_cancel; i++) {
		if (s->cancel[i].result == TWHEEL_WAS_PENDING)
			s->st.cancelled++;
		else if (s->cancel[i].result == TWHEEL_WAS_UNREAD)
			s->st.revoked++;
		else
			s->st.lost++;
	}
	s->nr_cancel = 0;
}

/* One look at the clock for all: see the head of idle-server.c. */
void timeouts_flush(struct server *s)
{
	uint64_t now = now_ns();

	rearms_flush(s, now);
	arms_flush(s, now);
	cancels_flush(s);
}

static void late_note(struct stats *st, uint64_t late_ns)
{
	if (st->nr_late == st->room_late) {
		st->room_late = st->room_late ? 2 * st->room_late : 1024;
		st->late_ns = realloc(st->late_ns, st->room_late *
						   sizeof(st->late_ns[0]));
		if (!st->late_ns)
			die("no memory for the statistics");
	}
	st->late_ns[st->nr_late++] = late_ns;
}

/*
 * Whose timeout was it?  NULL when nobody's.  The id ended when its event was
 * read: it is forgotten at once.
 */
static struct conn *event_take(struct server *s,
			       const struct twheel_event *event, uint64_t now)
{
	bool drained = event->flags & TWHEEL_EVENT_DRAINED;
	enum timeout t = timeout_of(event->user_data);
	struct conn *c;

	s->st.events++;
	s->st.expirations += event->count;
	s->st.drained += drained;
	if (event->user_data == PROGRESS) {
		if (!drained)
			report_progress(s);
		return NULL;
	}
	c = conn_of(s, event->user_data);
	if (c->id[t] != event->id) {
		s->st.stray++;
		return NULL;
	}
	c->id[t] = 0;
	if (event->deadline_ns != c->since_ns[t] + s->opt->timeout_ns[t])
		s->st.wrong++;
	if (drained)
		return NULL;
	s->st.expired[t]++;
	if (event->fired_ns < event->deadline_ns || now < event->deadline_ns)
		s->st.early++;
	else
		late_note(&s->st, event->fired_ns - event->deadline_ns);
	c->expired |= 1U << t;
	return c;
}

static unsigned int events_read(struct server *s, struct twheel_event *event)
{
	ssize_t n = read(s->wheel, event, EVENTS * sizeof(*event));

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		die("the wheel cannot be read");
	return n < 0 ? 0 : n / sizeof(*event);
}

/**
 * timeouts_expired() - read what has expired
 * @s: the server
 * @conn: room for EVENTS connections: who has something in ->expired now.  One
 *	of which both timeouts have expired may be named twice.
 *
 * More of them keep the descriptor readable, and are for the next round.
 *
 * Return: how many.
 */
unsigned int timeouts_expired(struct server *s, struct conn **conn)
{
	struct twheel_event event[EVENTS];
	unsigned int i, nr = events_read(s, event), nr_expired = 0;
	uint64_t now = now_ns();

	for (i = 0; i < nr; i++) {
		conn[nr_expired] = event_take(s, &event[i], now);
		nr_expired += !!conn[nr_expired];
	}
	return nr_expired;
}

/*
 * The end: what is still armed comes back as events that say so, to the last
 * one.  Nothing is done with them but to see that none is missing.
 */
void timeouts_drain(struct server *s)
{
	struct twheel_event event[EVENTS];
	unsigned int i, nr;

	if (ioctl(s->wheel, TWHEEL_IOC_DRAIN, 0))
		die("the wheel cannot be drained");
	while ((nr = events_read(s, event)))
		for (i = 0; i < nr; i++)
			event_take(s, &event[i], now_ns());
	for (i = 0; i < s->nr_conn; i++)
		if (s->conn[i].open)
			s->st.lost += s->conn[i].id[IDLE] ||
				      s->conn[i].id[REQUEST];
}

void progress_start(struct server *s)
{
	struct twheel_arm arm = {
		.expires_ns = NSEC_PER_SEC,
		.interval_ns = NSEC_PER_SEC,
		.user_data = PROGRESS,
	};

	if (twheel_arm_one(s->wheel, &arm) < 0)
		die("the wheel refuses a timeout");
	s->st.armed++;
}
