// SPDX-License-Identifier: 0BSD
/*
 * idle-shared.c - the server in several processes, which share a wheel on /dev/twheel
 *
 * The keeper, which is this process, accepts connections, arms their idle timeouts, and hands
 * them to workers, but keeps a descriptor of each.  It alone reads the events of the wheel,
 * and closes what is idle or too slow.  Workers serve connections, see idle-worker.c.
 *
 * In the middle of all this, the keeper kills a worker.  The worker's timeouts stay in the wheel
 * and its stores in the refresh table, so they expire.  The keeper lists the wheel, repairs what
 * the worker had begun and not finished, and hands the connections to a new worker.
 */
#define _GNU_SOURCE
#include "idle-shared.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROWS		1024		/* of a step of LIST */

/* A result of conn_due_again(). */
#define IS_DUE		0
#define LINE_COMPLETE	UINT64_MAX

/* The state at the death of a worker, and the end of its connections. */
struct death {
	unsigned int worker, connections;
	unsigned int pending[NR_TIMEOUTS];	/* pending in the wheel */
	uint64_t closed;			/* closed since then, by its timeouts */
	uint64_t killed_ns, replaced_ns;
	unsigned int nr;
	bool *was_its;				/* by the number of a connection */
};

struct keeper {
	struct common common;
	struct ledger *ledger;		/* the keeper's own */
	int *fd;			/* of each connection; -1 if it is closed */
	struct {
		pid_t pid;
		int control;
	} worker[MAX_WORKERS];
	struct death death;
	uint64_t kill_ns;		/* when to kill a worker; 0: not known yet */
	uint64_t progress_ns;
};

static struct server *server_of(struct keeper *keeper)
{
	return keeper->common.s;
}

/* ---- workers --------------------------------------------------------------- */

static void worker_fork(struct keeper *keeper, unsigned int i)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		die("cannot make a pair of sockets");
	fflush(stdout);
	keeper->worker[i].pid = fork();
	if (keeper->worker[i].pid < 0)
		die("cannot fork");
	if (!keeper->worker[i].pid)
		worker_run(&keeper->common, &keeper->common.shared->worker[i], pair[1]);
	close(pair[1]);
	keeper->worker[i].control = pair[0];
	epoll_add(server_of(keeper)->epoll, pair[0], WORKER, i);
}

static unsigned int worker_of(struct keeper *keeper, uint32_t number)
{
	return number % server_of(keeper)->opt->workers;
}

/* ---- connections ----------------------------------------------------------- */

/* Keep the ids of idle timeouts, for the refresh table. */
static void keeper_submit(struct keeper *keeper)
{
	struct ledger *l = keeper->ledger;

	if (!l->nr_arm && !l->nr_cancel)
		return;
	ledger_submit(l, keeper->common.wheel);
	for (uint32_t i = 0; i < l->nr_arm; i++)
		if (l->arm[i].user_data % NR_TIMEOUTS == IDLE)
			STORE(keeper->common.shared->conn[l->arm[i].user_data / NR_TIMEOUTS].id,
			      l->arm[i].id);
	l->nr_arm = 0;
	l->nr_cancel = 0;
}

/* Arm the idle timeout before a worker gets the connection. */
static void conns_accept(struct keeper *keeper)
{
	struct server *s = server_of(keeper);
	uint32_t first = s->st.accepted, number;

	while (s->st.accepted < s->opt->connections && s->st.accepted < first + EVENTS) {
		int fd = server_accept(s);
		uint64_t now = now_ns();

		if (fd < 0)
			break;
		number = s->st.accepted++;
		keeper->fd[number] = fd;
		keeper->common.shared->conn[number].heard_ns = now;
		keeper->common.shared->conn[number].open = 1;
		ledger_arm(keeper->ledger, conn_key(number, IDLE), now + s->opt->timeout_ns[IDLE]);
		s->nr_open++;
	}
	keeper_submit(keeper);
	for (number = first; number < s->st.accepted; number++)
		conn_hand_over(keeper->worker[worker_of(keeper, number)].control, number,
			       keeper->fd[number]);
	if (s->st.accepted == s->opt->connections && !keeper->kill_ns)
		keeper->kill_ns = now_ns() + s->opt->seconds * NSEC_PER_SEC / 2;
}

/* The worker of the connection reads the end of the stream, and closes it too. */
static void conn_close(struct keeper *keeper, uint32_t number, enum timeout expired)
{
	ledger_cancel(keeper->ledger, conn_key(number, expired == IDLE ? REQUEST : IDLE));
	STORE(keeper->common.shared->conn[number].open, 0);
	shutdown(keeper->fd[number], SHUT_RDWR);
	close(keeper->fd[number]);
	keeper->fd[number] = -1;
	server_of(keeper)->nr_open--;
	if (keeper->death.nr && keeper->death.was_its[number])
		keeper->death.closed++;
}

/* ---- events ---------------------------------------------------------------- */

/* Return whether the socket has bytes that keep this timeout from being due. */
static enum heard conn_peek(const struct keeper *keeper, uint32_t number, enum timeout t)
{
	char buf[4096];
	ssize_t n = recv(keeper->fd[number], buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return NOTHING;
	if (n <= 0)
		return THE_END;
	return t == IDLE || memchr(buf, '\n', n) ? SOMETHING : NOTHING;
}

/*
 * Check a connection once more: the client may have been in time, but the worker slow or dead.  If
 * the worker has read bytes before the peek, it has noted them, or it is still busy.
 *
 * Returns when to check again, or one of the above.
 */
static uint64_t conn_due_again(struct keeper *keeper, const struct twheel_event *event,
			       enum heard peeked)
{
	uint32_t number = event->user_data / NR_TIMEOUTS;
	const struct options *opt = server_of(keeper)->opt;
	struct conn *c = &keeper->common.shared->conn[number];
	enum timeout t = event->user_data % NR_TIMEOUTS;
	uint64_t since_ns;

	if (peeked == THE_END)
		return IS_DUE;
	if (peeked == SOMETHING)
		return now_ns() + opt->timeout_ns[t];
	if (LOAD(c->busy))
		return now_ns() + opt->tick_ns;
	since_ns = t == IDLE ? LOAD(c->heard_ns) : LOAD(c->line_ns);
	if (!since_ns)
		return LINE_COMPLETE;
	return since_ns + opt->timeout_ns[t] > event->fired_ns ?
	       since_ns + opt->timeout_ns[t] : IS_DUE;
}

/* One of a connection's timeouts has expired. */
static void conn_expired(struct keeper *keeper, const struct twheel_event *event)
{
	uint32_t number = event->user_data / NR_TIMEOUTS;
	enum timeout t = event->user_data % NR_TIMEOUTS;
	struct server *s = server_of(keeper);
	enum heard peeked;
	uint64_t again_ns;

	/* The other timeout came first. */
	if (keeper->fd[number] < 0)
		return;
	peeked = conn_peek(keeper, number, t);
	again_ns = conn_due_again(keeper, event, peeked);
	if (again_ns == LINE_COMPLETE)
		return;
	if (again_ns != IS_DUE) {
		s->st.saved++;
		ledger_arm(keeper->ledger, event->user_data, again_ns);
		return;
	}
	s->st.closed[t] += peeked != THE_END;
	s->st.dropped += peeked == THE_END;
	if (t == REQUEST)
		line_send(keeper->fd[number], "timed out\n", 10);
	conn_close(keeper, number, t);
}

static void event_count(struct server *s, const struct twheel_event *event)
{
	s->st.own.expired++;
	if (event->fired_ns < event->deadline_ns)
		s->st.early++;
	else if (event->deadline_ns)
		server_late(s, event->fired_ns - event->deadline_ns);
}

/* Handle all events of one read(); the vectors collect the changes that follow. */
static void events_read(struct keeper *keeper)
{
	struct twheel_event events[EVENTS];
	int ret = twheel_device_read(keeper->common.wheel, events, EVENTS);

	if (ret <= 0 && ret != -EAGAIN && ret != -EINTR)
		die_plainly("the wheel cannot be read: %s", strerror(-ret));
	for (int i = 0; i < ret; i++) {
		event_count(server_of(keeper), &events[i]);
		conn_expired(keeper, &events[i]);
	}
	keeper_submit(keeper);
}

/* ---- the death of a worker ------------------------------------------------- */

/* List the wheel: a bit for each timeout of each connection. */
static uint8_t *wheel_list(struct keeper *keeper)
{
	static struct twheel_status row[ROWS];
	uint8_t *there = calloc(server_of(keeper)->opt->connections, 1);
	uint64_t cursor = 0;
	int n;

	if (!there)
		die("out of memory");
	while ((n = twheel_device_list(keeper->common.wheel, &cursor, row, ROWS)) > 0)
		for (int i = 0; i < n; i++)
			there[row[i].user_data / NR_TIMEOUTS] |=
				1 << row[i].user_data % NR_TIMEOUTS;
	if (n < 0)
		die_plainly("the wheel cannot be listed: %s", strerror(-n));
	return there;
}

/* The keeper cannot know what the worker had read: give the client all its time to ask again. */
static void conn_begin_anew(struct keeper *keeper, struct conn *c)
{
	uint64_t now = now_ns(), idle_ns = now + server_of(keeper)->opt->timeout_ns[IDLE];

	STORE(c->line_ns, 0);
	STORE(c->heard_ns, now);
	twheel_refresh(keeper->common.table, c->id,
		       twheel_refresh_deadline(idle_ns, keeper->common.shift));
	STORE(c->busy, 0);
}

/* The worker may have died between a line and its timeout. */
static void conn_set_right(struct keeper *keeper, uint32_t number, uint8_t there)
{
	struct conn *c = &keeper->common.shared->conn[number];
	uint64_t key = conn_key(number, REQUEST);

	if (LOAD(c->busy))
		conn_begin_anew(keeper, c);
	if (c->line_ns && !(there & 1 << REQUEST))
		ledger_arm(keeper->ledger, key,
			   c->line_ns + server_of(keeper)->opt->timeout_ns[REQUEST]);
	else if (!c->line_ns && there & 1 << REQUEST)
		ledger_cancel(keeper->ledger, key);
	if (keeper->ledger->nr_arm == EVENTS || keeper->ledger->nr_cancel == EVENTS)
		keeper_submit(keeper);
}

static void death_note(struct keeper *keeper, unsigned int worker)
{
	struct server *s = server_of(keeper);
	struct death *d = &keeper->death;
	uint8_t *there = wheel_list(keeper);

	d->worker = worker;
	d->nr++;
	for (uint32_t number = 0; number < s->st.accepted; number++) {
		if (keeper->fd[number] < 0 || worker_of(keeper, number) != worker)
			continue;
		d->was_its[number] = true;
		d->connections++;
		d->pending[IDLE] += !!(there[number] & 1 << IDLE);
		d->pending[REQUEST] += !!(there[number] & 1 << REQUEST);
		s->st.lost += !(there[number] & 1 << IDLE);
		conn_set_right(keeper, number, there[number]);
	}
	keeper_submit(keeper);
	free(there);
}

static void worker_died(struct keeper *keeper, unsigned int worker)
{
	struct server *s = server_of(keeper);
	struct death *d = &keeper->death;
	int status;

	close(keeper->worker[worker].control);
	waitpid(keeper->worker[worker].pid, &status, 0);
	if (!d->killed_ns || d->nr)
		die_plainly("worker %u has ended by itself", worker);
	ledger_settle(&keeper->common.shared->worker[worker]);
	death_note(keeper, worker);
	printf("          it had %u connections; in the wheel are %u idle timeouts of theirs, and %u request timeouts\n",
	       d->connections, d->pending[IDLE], d->pending[REQUEST]);
	worker_fork(keeper, worker);
	for (uint32_t number = 0; number < s->st.accepted; number++)
		if (keeper->fd[number] >= 0 && worker_of(keeper, number) == worker)
			conn_hand_over(keeper->worker[worker].control, number, keeper->fd[number]);
	d->replaced_ns = now_ns();
	printf("          a new worker has all of them, %.0f ms after the kill\n",
	       (double)(d->replaced_ns - d->killed_ns) / NSEC_PER_MSEC);
}

static void worker_kill(struct keeper *keeper)
{
	struct death *d = &keeper->death;

	d->killed_ns = now_ns();
	printf("%8.1f  worker 1 is killed: kill -9 %d\n",
	       (double)(d->killed_ns - server_of(keeper)->st.begin_ns) / NSEC_PER_SEC,
	       (int)keeper->worker[1].pid);
	kill(keeper->worker[1].pid, SIGKILL);
}

/* ---- the loop -------------------------------------------------------------- */

static void keeper_progress(struct keeper *keeper)
{
	struct server *s = server_of(keeper);

	s->st.refreshed = 0;
	s->st.own.cancelled = ledger_sum(keeper->ledger)->cancelled;
	for (unsigned int i = 0; i < s->opt->workers; i++) {
		const struct ledger *l = &keeper->common.shared->worker[i];

		s->st.refreshed += l->refreshed;
		s->st.own.cancelled += ledger_sum(l)->cancelled;
	}
	report_progress(s);
}

static void keeper_round(struct keeper *keeper)
{
	struct server *s = server_of(keeper);
	struct epoll_event event[EVENTS];
	uint64_t now = now_ns();
	int i, n, wait_ms = 0;

	if (now < keeper->progress_ns)
		wait_ms = (keeper->progress_ns - now) / NSEC_PER_MSEC + 1;
	n = epoll_wait(s->epoll, event, EVENTS, wait_ms);
	if (n < 0 && errno != EINTR)
		die("cannot wait for events");
	for (i = 0; i < n; i++) {
		uint32_t index = event[i].data.u64;

		switch (event[i].data.u64 >> 32) {
		case WHEEL:
			events_read(keeper);
			break;
		case LISTENER:
			conns_accept(keeper);
			break;
		case CLIENTS:
			server_clients_readable(s, index);
			break;
		case WORKER:
			worker_died(keeper, index);
		}
	}
	now = now_ns();
	if (keeper->kill_ns && now >= keeper->kill_ns && !keeper->death.killed_ns)
		worker_kill(keeper);
	if (now >= keeper->progress_ns) {
		keeper_progress(keeper);
		keeper->progress_ns += NSEC_PER_SEC;
	}
}

/* ---- begin and end --------------------------------------------------------- */

static void wheel_open(struct keeper *keeper)
{
	const struct options *opt = server_of(keeper)->opt;
	const struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.tick_ns = opt->tick_ns,
		.max_pending = opt->connections * NR_TIMEOUTS,
		.flags = TWHEEL_SETUP_KEYED,
	};
	int ret = twheel_device_open(&keeper->common.wheel, NULL, O_NONBLOCK, &setup);

	switch (ret) {
	case 0:
		break;
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		die_plainly("/dev/twheel is not there: load the module (insmod twheel.ko, or modprobe twheel once it is installed), or use --local");
	case -EACCES:
	case -EPERM:
		die_plainly("/dev/twheel may not be opened by this user: run this as root, or let a group open it with a udev rule (KERNEL==\"twheel\", GROUP=\"...\", MODE=\"0660\"), or use --local");
	default:
		die_plainly("cannot open a wheel for %u timeouts: %s", setup.max_pending,
			    strerror(-ret));
	}
	ret = twheel_device_map(keeper->common.wheel, &keeper->common.table, &keeper->common.shift);
	if (ret)
		die_plainly("the wheel cannot be used: %s", strerror(-ret));
}

static void keeper_open(struct keeper *keeper)
{
	struct server *s = server_of(keeper);
	size_t size = sizeof(struct shared) + s->opt->connections * sizeof(struct conn);
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	wheel_open(keeper);
	keeper->common.shared = shared;
	keeper->fd = calloc(s->opt->connections, sizeof(keeper->fd[0]));
	keeper->death.was_its = calloc(s->opt->connections, sizeof(bool));
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (shared == MAP_FAILED || !keeper->fd || !keeper->death.was_its || s->epoll < 0)
		die("the server cannot begin");
	keeper->ledger = &keeper->common.shared->keeper;
	for (unsigned int i = 0; i < s->opt->workers; i++)
		worker_fork(keeper, i);
	epoll_add(s->epoll, twheel_device_fd(keeper->common.wheel), WHEEL, 0);
	epoll_add(s->epoll, s->listener, LISTENER, 0);
	for (unsigned int i = 0; i < s->nr_control; i++)
		epoll_add(s->epoll, s->control[i], CLIENTS, i);
	s->st.begin_ns = now_ns();
	keeper->progress_ns = s->st.begin_ns + NSEC_PER_SEC;
}

static uint64_t rusage_ns(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

/* If its socket is closed, a worker ends after its round. */
static void workers_end(struct keeper *keeper)
{
	struct server *s = server_of(keeper);

	for (unsigned int i = 0; i < s->opt->workers; i++)
		close(keeper->worker[i].control);
	for (unsigned int i = 0; i < s->opt->workers; i++) {
		waitpid(keeper->worker[i].pid, NULL, 0);
		ledger_settle(&keeper->common.shared->worker[i]);
	}
	s->st.cpu_ns = rusage_ns(RUSAGE_SELF) + rusage_ns(RUSAGE_CHILDREN);
}

/* Drain the wheel: each open connection has its idle timeout there, and only one. */
static void wheel_drain(struct keeper *keeper)
{
	struct server *s = server_of(keeper);
	uint8_t *idle = calloc(s->opt->connections, 1);
	struct twheel_event events[EVENTS];
	int nr;

	if (!idle || twheel_device_drain(keeper->common.wheel))
		die_plainly("the wheel cannot be drained");
	while ((nr = twheel_device_read(keeper->common.wheel, events, EVENTS)) > 0)
		for (int i = 0; i < nr; i++) {
			if (events[i].flags & TWHEEL_EVENT_DRAINED)
				s->st.own.left++;
			else
				event_count(s, &events[i]);
			if (events[i].user_data % NR_TIMEOUTS == IDLE)
				idle[events[i].user_data / NR_TIMEOUTS]++;
		}
	for (uint32_t number = 0; number < s->st.accepted; number++)
		s->st.lost += idle[number] != (keeper->fd[number] >= 0);
	free(idle);
}

static void accounts_add(struct accounts *sum, const struct accounts *a)
{
	sum->armed += a->armed;
	sum->cancelled += a->cancelled;
	sum->revoked += a->revoked;
	sum->rearmed += a->rearmed;
}

/* Add up the sums of all processes, the dead one's as well. */
static void accounts_close(struct keeper *keeper)
{
	struct server *s = server_of(keeper);
	struct accounts *own = &s->st.own;

	own->cancelled = 0;
	s->st.refreshed = 0;
	accounts_add(own, ledger_sum(keeper->ledger));
	for (unsigned int i = 0; i < s->opt->workers; i++) {
		accounts_add(own, ledger_sum(&keeper->common.shared->worker[i]));
		s->st.refreshed += keeper->common.shared->worker[i].refreshed;
	}
}

static void report_accounts(const struct accounts *own, const struct twheel_info *info)
{
	const struct {
		const char *name;
		uint64_t server, module;
	} row[] = {
		{ "armed", own->armed, info->armed },
		{ "expired, and read", own->expired, info->completed },
		{ "cancelled", own->cancelled, info->cancelled },
		{ "cancelled, unread", own->revoked, info->revoked },
		{ "left at the end", own->left, info->drained },
		{ "re-armed", own->rearmed, info->rearmed },
	};

	printf("\n  timeouts            the server   the module\n");
	for (unsigned int i = 0; i < ARRAY_SIZE(row); i++)
		printf("  %-18s %11" PRIu64 "  %11" PRIu64 "\n", row[i].name, row[i].server,
		       row[i].module);
}

static bool accounts_agree(const struct accounts *own, const struct twheel_info *info)
{
	bool right = true;

	right &= report_equal("timeouts armed", info->armed, own->armed);
	right &= report_equal("timeouts expired", info->completed, own->expired);
	right &= report_equal("timeouts cancelled", info->cancelled, own->cancelled);
	right &= report_equal("timeouts cancelled unread", info->revoked, own->revoked);
	right &= report_equal("timeouts left", info->drained, own->left);
	right &= report_equal("timeouts re-armed", info->rearmed, own->rearmed);
	right &= report_equal("timeouts in use", info->live, 0);
	return right;
}

static void report_death(const struct death *d, const struct server *s)
{
	printf("  the killed   worker had %u connections: %" PRIu64
	       " of them were closed by their timeouts since, %" PRIu64 " are open\n",
	       d->connections, d->closed, d->connections - d->closed);
	printf("  refreshes    %" PRIu64 " stores into the refresh table, by %u processes\n",
	       s->st.refreshed, s->opt->workers + 1);
}

int shared_run(struct server *s)
{
	static struct keeper keeper;
	uint64_t kthreads_before_ns = kthreads_cpu_ns();
	struct twheel_info info;
	bool right = true;

	keeper.common.s = s;
	printf("The wheel is on /dev/twheel, shared by a keeper and %u workers.\n",
	       s->opt->workers);
	keeper_open(&keeper);
	while (s->nr_reports < s->nr_control)
		keeper_round(&keeper);
	s->st.end_ns = now_ns();
	s->st.open_at_end = s->nr_open;
	workers_end(&keeper);
	s->st.kthreads_cpu_ns = kthreads_cpu_ns() - kthreads_before_ns;
	wheel_drain(&keeper);
	accounts_close(&keeper);
	if (twheel_device_info(keeper.common.wheel, &info, 0))
		die_plainly("the wheel does not tell its counters");
	report_server(s);
	report_death(&keeper.death, s);
	report_accounts(&s->st.own, &info);
	printf("\n");
	right &= accounts_agree(&s->st.own, &info);
	if (keeper.death.nr != 1) {
		printf("WRONG: no worker was killed.\n");
		right = false;
	}
	right &= report_verdict(s);
	twheel_device_close(keeper.common.wheel);
	return !right;
}
