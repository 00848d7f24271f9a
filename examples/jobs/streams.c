// SPDX-License-Identifier: 0BSD
/*
 * Delayed jobs for a fleet: a stream of Redis or Valkey hands them out and takes them back, and
 * the clock of each worker is a wheel.  It needs Redis 7 or Valkey.
 *
 *	streams add SERVER STREAM SECONDS COMMAND
 *	streams count SERVER STREAM
 *	streams work SERVER STREAM NAME [LEASE_MS]
 *
 * SERVER is the path of a socket, or HOST:PORT.  `add' writes the ID of the job; if the server has
 * "appendfsync always", the job is on its disk then.  `count' writes how many jobs there are.
 * `work' hands each command to /bin/sh when its time has come, one after the other, the earliest
 * of its jobs first, until SIGTERM.  No two workers may have one name at a time.
 *
 * A job stays in the stream until its command has ended.  Three times in a lease, a worker says
 * that it still has its jobs.  If it is silent for a lease, the others take them.  So each job is
 * done at least once.  Documentation/jobs.rst says what holds.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <twheel.h>
#include <unistd.h>

#include "list.h"

#define GROUP		"jobs"
#define SECONDS_MAX	1e9
#define LEASE_MS	15000
/* The most jobs in one command. */
#define BATCH		100
#define BATCH_TEXT	"100"
/* The size of an ID: two numbers and a hyphen. */
#define ID_SIZE		48

/* ---- the protocol --------------------------------------------------------------- */

struct server {
	FILE *in;
	FILE *out;
};

/* A reply has a text, or elements, or a number. */
struct reply {
	char type;
	int64_t number;		/* of an array: how many elements; -1 if there is nothing */
	char *text;
	struct reply *elements;
};

static int connect_to(const char *where)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	struct addrinfo *address;
	char host[256], *port;
	int fd;

	if (strchr(where, '/')) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (strlen(where) >= sizeof(local.sun_path))
			errx(2, "%s is too long for a socket", where);
		memcpy(local.sun_path, where, strlen(where));
		if (connect(fd, (struct sockaddr *)&local, sizeof(local)))
			err(1, "%s", where);
		return fd;
	}
	snprintf(host, sizeof(host), "%s", where);
	port = strrchr(host, ':');
	if (!port)
		errx(2, "%s is neither a path nor HOST:PORT", where);
	*port++ = 0;
	if (getaddrinfo(host, port, &hints, &address))
		errx(1, "%s has no address", where);
	fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fd, address->ai_addr, address->ai_addrlen))
		err(1, "%s", where);
	freeaddrinfo(address);
	return fd;
}

static struct server open_server(const char *where)
{
	int fd = connect_to(where);
	struct server server = { .in = fdopen(fd, "r"), .out = fdopen(dup(fd), "w") };

	if (!server.in || !server.out)
		err(1, "%s", where);
	return server;
}

/* The array of words ends with NULL. */
static void send_words(const struct server *server, const char *const *words)
{
	size_t i, nr = 0;

	while (words[nr])
		nr++;
	fprintf(server->out, "*%zu\r\n", nr);
	for (i = 0; i < nr; i++)
		fprintf(server->out, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
}

#define SEND(server, ...) do {								\
	const char *const words[] = { __VA_ARGS__, NULL };				\
											\
	send_words(server, words);							\
} while (0)

static void __attribute__((noreturn)) gone(void)
{
	errx(1, "the server is gone");
}

static char *read_bytes(const struct server *server, size_t size)
{
	char *bytes = malloc(size + 2);

	if (!bytes)
		err(1, "a reply");
	/* The bytes are followed by two more. */
	if (fread(bytes, 1, size + 2, server->in) != size + 2)
		gone();
	bytes[size] = 0;
	return bytes;
}

static struct reply read_reply(const struct server *server)
{
	struct reply reply = { 0 };
	char *line = NULL;
	size_t size = 0;
	ssize_t length;
	int64_t i;

	length = getline(&line, &size, server->in);
	if (length < 3)
		gone();
	line[length - 2] = 0;
	reply.type = line[0];
	switch (reply.type) {
	case '+':
	case '-':
		reply.text = strdup(line + 1);
		break;
	default:
		reply.number = strtoll(line + 1, NULL, 10);
	}
	free(line);
	if (reply.type == '$' && reply.number >= 0)
		reply.text = read_bytes(server, reply.number);
	if (reply.type == '*' && reply.number > 0) {
		reply.elements = calloc(reply.number, sizeof(*reply.elements));
		if (!reply.elements)
			err(1, "a reply");
		for (i = 0; i < reply.number; i++)
			reply.elements[i] = read_reply(server);
	}
	return reply;
}

static void free_reply(struct reply *reply)
{
	int64_t i;

	if (reply->type == '*')
		for (i = 0; i < reply->number; i++)
			free_reply(&reply->elements[i]);
	free(reply->elements);
	free(reply->text);
}

/*
 * Read the reply to what was sent.  If it is an error that begins like this, return it; any other
 * one ends the program.
 */
static struct reply receive(const struct server *server, const char *may_fail)
{
	struct reply reply;

	if (fflush(server->out))
		gone();
	reply = read_reply(server);
	if (reply.type == '-' && !(may_fail && !strncmp(reply.text, may_fail, strlen(may_fail))))
		errx(1, "the server says: %s", reply.text);
	return reply;
}

static void ignore(const struct server *server, const char *may_fail)
{
	struct reply reply = receive(server, may_fail);

	free_reply(&reply);
}

/* ---- add, count ------------------------------------------------------------------ */

static int add(const char *where, const char *stream, const char *seconds, const char *command)
{
	struct server server;
	struct timespec now;
	struct reply reply;
	char *end, due_ms[32];
	double delay = strtod(seconds, &end);

	if (end == seconds || *end || !(delay >= 0 && delay <= SECONDS_MAX))
		errx(2, "%s is no number of seconds", seconds);
	server = open_server(where);
	clock_gettime(CLOCK_REALTIME, &now);
	/* Round up: no job is early. */
	snprintf(due_ms, sizeof(due_ms), "%" PRId64,
		 now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000 + 1 + (int64_t)(delay * 1000));
	SEND(&server, "XADD", stream, "*", "due_ms", due_ms, "command", command);
	reply = receive(&server, NULL);
	puts(reply.text);
	return 0;
}

static int count(const char *where, const char *stream)
{
	struct server server = open_server(where);
	struct reply reply;

	SEND(&server, "XLEN", stream);
	reply = receive(&server, NULL);
	printf("%" PRId64 "\n", reply.number);
	return 0;
}

/* ---- work: the jobs ---------------------------------------------------------------- */

struct job {
	struct twheel_timer timer;
	struct list of_all;
	struct list link;		/* in those that are due, by time */
	bool is_due;
	int64_t due_ms;
	char *command;
	char id[ID_SIZE];
};

static struct worker {
	const char *stream;
	const char *name;
	uint64_t lease_ns;
	struct server server;		/* answers at once */
	struct server source;		/* waits for new jobs */
	struct twheel *times;		/* by the time of day */
	struct twheel *leases;		/* by a clock that nobody sets */
	struct twheel_timer renewal;
	uint64_t renewed_ns;
	struct list all, due;
	struct job *running;
	pid_t pid;
} worker = {
	.all = { &worker.all, &worker.all },
	.due = { &worker.due, &worker.due },
};

/* The timers of one tick come in any order. */
static void on_due(struct twheel *w, struct twheel_timer *t)
{
	struct job *job = twheel_container_of(t, struct job, timer);
	struct list *at = worker.due.prev;

	(void)w;
	job->is_due = true;
	while (at != &worker.due &&
	       twheel_container_of(at, struct job, link)->due_ms > job->due_ms)
		at = at->prev;
	list_add_after(at, &job->link);
}

static void forget(struct job *job)
{
	twheel_stop(worker.times, &job->timer);
	if (job->is_due)
		list_remove(&job->link);
	list_remove(&job->of_all);
	free(job->command);
	free(job);
}

/* An entry is its ID, and an array of names and values. */
static void take_entry(const struct reply *entry)
{
	const struct reply *fields;
	struct job *job;
	int64_t i;

	/* The job has been deleted. */
	if (entry->number != 2 || entry->elements[1].number < 0)
		return;
	/* This worker was silent, but its command still runs. */
	if (worker.running && !strcmp(worker.running->id, entry->elements[0].text))
		return;
	job = calloc(1, sizeof(*job));
	if (!job)
		err(1, "a job");
	fields = &entry->elements[1];
	snprintf(job->id, sizeof(job->id), "%s", entry->elements[0].text);
	for (i = 0; i + 1 < fields->number; i += 2) {
		const char *value = fields->elements[i + 1].text;

		if (!strcmp(fields->elements[i].text, "due_ms"))
			job->due_ms = strtoll(value, NULL, 10);
		else if (!strcmp(fields->elements[i].text, "command") && !job->command)
			job->command = strdup(value);
	}
	list_add_after(worker.all.prev, &job->of_all);
	twheel_timer_init(&job->timer, on_due);
	twheel_start_at(worker.times, &job->timer, job->due_ms * TWHEEL_MSEC);
}

static void take_entries(const struct reply *entries)
{
	int64_t i;

	for (i = 0; i < entries->number; i++)
		take_entry(&entries->elements[i]);
}

/* ---- work: the stream ---------------------------------------------------------------- */

static void ask_for_new(void)
{
	SEND(&worker.source, "XREADGROUP", "GROUP", GROUP, worker.name, "COUNT", BATCH_TEXT,
	     "BLOCK", "0", "STREAMS", worker.stream, ">");
	if (fflush(worker.source.out))
		gone();
}

static void take_new(void)
{
	struct reply reply = receive(&worker.source, NULL);

	if (reply.number == 1)
		take_entries(&reply.elements[0].elements[1]);
	free_reply(&reply);
	ask_for_new();
}

/* Take the jobs that this name had before the worker was killed. */
static void take_own(void)
{
	char after[ID_SIZE] = "0";
	const struct reply *entries;
	struct reply reply;
	int64_t nr;

	do {
		SEND(&worker.server, "XREADGROUP", "GROUP", GROUP, worker.name,
		     "COUNT", BATCH_TEXT, "STREAMS", worker.stream, after);
		reply = receive(&worker.server, NULL);
		entries = &reply.elements[0].elements[1];
		nr = entries->number;
		take_entries(entries);
		if (nr > 0)
			snprintf(after, sizeof(after), "%s",
				 entries->elements[nr - 1].elements[0].text);
		free_reply(&reply);
	} while (nr > 0);
}

/* Take the jobs of silent workers. */
static void take_back(void)
{
	char lease_ms[32], cursor[ID_SIZE] = "0-0";
	struct reply reply;

	snprintf(lease_ms, sizeof(lease_ms), "%llu", worker.lease_ns / TWHEEL_MSEC);
	do {
		SEND(&worker.server, "XAUTOCLAIM", worker.stream, GROUP, worker.name, lease_ms,
		     cursor, "COUNT", BATCH_TEXT);
		reply = receive(&worker.server, NULL);
		snprintf(cursor, sizeof(cursor), "%s", reply.elements[0].text);
		take_entries(&reply.elements[1]);
		free_reply(&reply);
	} while (strcmp(cursor, "0-0"));
}

static void renew(void)
{
	const char *words[5 + BATCH + 2] = {
		"XCLAIM", worker.stream, GROUP, worker.name, "0",
	};
	struct list *link = worker.all.next;
	size_t nr;

	while (link != &worker.all) {
		for (nr = 5; link != &worker.all && nr < 5 + BATCH; link = link->next)
			words[nr++] = twheel_container_of(link, struct job, of_all)->id;
		words[nr++] = "JUSTID";
		words[nr] = NULL;
		send_words(&worker.server, words);
		ignore(&worker.server, NULL);
	}
}

/*
 * If this process was stopped for a lease, its jobs may be another's by now: it forgets them, and
 * takes back those that are nobody's.
 */
static void forget_all(void)
{
	struct list *link, *next;

	for (link = worker.all.next; link != &worker.all; link = next) {
		struct job *job = twheel_container_of(link, struct job, of_all);

		next = link->next;
		if (job != worker.running)
			forget(job);
	}
}

static void on_renewal(struct twheel *w, struct twheel_timer *t)
{
	if (twheel_now(w) - worker.renewed_ns >= worker.lease_ns)
		forget_all();
	worker.renewed_ns = twheel_now(w);
	renew();
	take_back();
	twheel_start(w, t, worker.lease_ns / 3);
}

/* ---- work: the commands -------------------------------------------------------------- */

static void begin_first(void)
{
	struct job *job = twheel_container_of(worker.due.next, struct job, link);
	sigset_t none;

	list_remove(&job->link);
	job->is_due = false;
	worker.running = job;
	worker.pid = fork();
	if (worker.pid < 0)
		err(1, "fork");
	if (worker.pid)
		return;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setenv("JOB_ID", job->id, 1);
	execl("/bin/sh", "sh", "-c", job->command ? job->command : "", NULL);
	_exit(127);
}

/* If the machine is shut down, the command may be killed before its parent. */
static bool was_killed(int status)
{
	int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	return signal == SIGTERM || signal == SIGKILL || signal == SIGINT || signal == SIGHUP;
}

/* If the command has ended, remove it from both the group and the stream, or from neither. */
static void end_running(int options)
{
	struct job *job = worker.running;
	int status;

	if (!job || waitpid(worker.pid, &status, options) != worker.pid)
		return;
	if (was_killed(status))
		errx(1, "job %s was killed, and is left to the other workers", job->id);
	if (status)
		warnx("job %s ended with status %#x", job->id, status);
	SEND(&worker.server, "MULTI");
	SEND(&worker.server, "XACK", worker.stream, GROUP, job->id);
	SEND(&worker.server, "XDEL", worker.stream, job->id);
	SEND(&worker.server, "EXEC");
	ignore(&worker.server, NULL);
	ignore(&worker.server, NULL);
	ignore(&worker.server, NULL);
	ignore(&worker.server, NULL);
	worker.running = NULL;
	forget(job);
}

static volatile sig_atomic_t stopped;

static void on_stop(int signal)
{
	if (signal == SIGTERM)
		stopped = 1;
}

/* The signals come only while the program sleeps. */
static void block_signals(void)
{
	struct sigaction stop = { .sa_handler = on_stop };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGCHLD, &stop, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* If the server has gone, write() says so. */
	signal(SIGPIPE, SIG_IGN);
}

static void turns(void)
{
	struct pollfd fds[] = {
		{ .fd = twheel_fd(worker.times), .events = POLLIN },
		{ .fd = twheel_fd(worker.leases), .events = POLLIN },
		{ .fd = fileno(worker.source.in), .events = POLLIN },
	};
	sigset_t none;

	sigemptyset(&none);
	while (!stopped) {
		twheel_flush(worker.times);
		twheel_flush(worker.leases);
		if (ppoll(fds, 3, NULL, &none) < 0 && errno != EINTR)
			err(1, "ppoll");
		twheel_dispatch(worker.leases, 0);
		if (fds[2].revents)
			take_new();
		end_running(WNOHANG);
		twheel_dispatch(worker.times, 0);
		if (!worker.running && !list_empty(&worker.due) && !stopped)
			begin_first();
		fds[2].revents = 0;
	}
	end_running(0);
}

static int work(const char *where, const char *lease_ms)
{
	struct twheel_options times = { .size = sizeof(times), .clock = TWHEEL_REALTIME };

	block_signals();
	worker.lease_ns = (lease_ms ? strtoul(lease_ms, NULL, 10) : LEASE_MS) * TWHEEL_MSEC;
	worker.server = open_server(where);
	worker.source = open_server(where);
	if (twheel_open(&worker.times, &times) < 0 || twheel_open(&worker.leases, NULL) < 0 ||
	    twheel_fd(worker.times) < 0 || twheel_fd(worker.leases) < 0)
		errx(1, "there is no wheel");
	SEND(&worker.server, "XGROUP", "CREATE", worker.stream, GROUP, "0", "MKSTREAM");
	ignore(&worker.server, "BUSYGROUP");
	take_own();
	worker.renewed_ns = twheel_now(worker.leases);
	twheel_timer_init(&worker.renewal, on_renewal);
	twheel_start(worker.leases, &worker.renewal, 0);
	ask_for_new();
	turns();
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";

	if (!strcmp(what, "add") && argc == 6)
		return add(argv[2], argv[3], argv[4], argv[5]);
	if (!strcmp(what, "count") && argc == 4)
		return count(argv[2], argv[3]);
	if (!strcmp(what, "work") && (argc == 5 || argc == 6)) {
		worker.stream = argv[3];
		worker.name = argv[4];
		return work(argv[2], argv[5]);
	}
	fputs("usage: streams add SERVER STREAM SECONDS COMMAND\n"
	      "       streams count SERVER STREAM\n"
	      "       streams work SERVER STREAM NAME [LEASE_MS]\n", stderr);
	return 2;
}
