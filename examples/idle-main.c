// SPDX-License-Identifier: 0BSD
/*
 * idle-main.c - idle-server's options, limits and processes
 */
#define _GNU_SOURCE
#include "idle-server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process of clients has one address, which has this many ports. */
#define CLIENTS_PER_PROCESS	20000U

/* Descriptors that are no connections: ours, the workers', and inherited ones. */
#define SPARE_FDS		(64 + MAX_WORKERS)

#define MAX_CONNECTIONS		1000000U
#define MAX_PROCESSES		(MAX_CONNECTIONS / CLIENTS_PER_PROCESS)

/* The clients need this long in addition to the longest timeout. */
#define SECONDS_BESIDE		3

static void complain(const char *format, va_list args, int err)
{
	fflush(stdout);
	fprintf(stderr, "idle-server: ");
	vfprintf(stderr, format, args);
	if (err)
		fprintf(stderr, ": %s", strerror(err));
	fprintf(stderr, "\n");
}

void die(const char *format, ...)
{
	int err = errno;
	va_list args;

	va_start(args, format);
	complain(format, args, err);
	va_end(args);
	exit(1);
}

void die_plainly(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args, 0);
	va_end(args);
	exit(1);
}

static noreturn void usage(void)
{
	printf("Usage: idle-server [OPTION]...\n"
	       "A TCP server on loopback that closes idle connections with one wheel,\n"
	       "clients that talk, fall silent, or send halves of requests, and a report.\n"
	       "\n"
	       "The server's processes share a wheel on /dev/twheel, and one of them is\n"
	       "killed in the middle.\n"
	       "\n"
	       "  -l, --local           instead, one process with a wheel of its own\n"
	       "  -w, --workers=N       how many processes serve connections (4)\n"
	       "  -c, --connections=N   how many (10000)\n"
	       "  -s, --seconds=N       how long they talk, once all are connected (16)\n"
	       "  -i, --idle=SECONDS    the idle timeout (8)\n"
	       "  -r, --request=SECONDS the timeout of an incomplete request (3)\n"
	       "  -t, --tick=MS         the wheel's tick (10)\n"
	       "  -h, --help            this\n"
	       "\n"
	       "Exits with 0 if every close was due and came on time, and if every timeout is\n"
	       "accounted for.\n");
	exit(0);
}

/* Parse a number of @unit nanoseconds (or of things), which may have a fraction. */
static uint64_t number(const char *name, const char *arg, double unit,
		       double min, double max)
{
	double value;
	char *end;

	value = strtod(arg, &end);
	if (end == arg || *end || !(value >= min && value <= max))
		die_plainly("--%s takes a value from %.9g to %.9g, not '%s'",
			    name, min, max, arg);
	return value * unit + 0.5;
}

static void options_check(const struct options *opt)
{
	uint64_t longest_ns = opt->timeout_ns[IDLE] > opt->timeout_ns[REQUEST] ?
			      opt->timeout_ns[IDLE] : opt->timeout_ns[REQUEST];

	if (opt->seconds * NSEC_PER_SEC <
	    longest_ns + SECONDS_BESIDE * NSEC_PER_SEC)
		die_plainly("--seconds=%u is too short to see timeouts of %.1f s: say %.0f or more",
			    opt->seconds, (double)longest_ns / NSEC_PER_SEC,
			    (double)longest_ns / NSEC_PER_SEC +
			    SECONDS_BESIDE + 0.5);
}

static void options_parse(struct options *opt, int argc, char **argv)
{
	static const struct option options[] = {
		{ "connections", required_argument, NULL, 'c' },
		{ "seconds",	required_argument, NULL, 's' },
		{ "idle",	required_argument, NULL, 'i' },
		{ "request",	required_argument, NULL, 'r' },
		{ "tick",	required_argument, NULL, 't' },
		{ "local",	no_argument, NULL, 'l' },
		{ "workers",	required_argument, NULL, 'w' },
		{ "help",	no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "c:s:i:r:t:lw:h", options, NULL)) >= 0)
		switch (c) {
		case 'c':
			opt->connections = number("connections", optarg, 1, 10,
						  MAX_CONNECTIONS);
			break;
		case 's':
			opt->seconds = number("seconds", optarg, 1, 1, 1e6);
			break;
		case 'i':
			opt->timeout_ns[IDLE] = number("idle", optarg, 1e9,
						       0.5, 1e5);
			break;
		case 'r':
			opt->timeout_ns[REQUEST] = number("request", optarg,
							  1e9, 0.5, 1e5);
			break;
		case 't':
			opt->tick_ns = number("tick", optarg, 1e6, 0.001, 1e4);
			break;
		case 'l':
			opt->local = true;
			break;
		case 'w':
			opt->workers = number("workers", optarg, 1, 2, MAX_WORKERS);
			break;
		case 'h':
			usage();
		default:
			exit(1);
		}
	if (optind < argc)
		die_plainly("what is '%s'? --help says what there is",
			    argv[optind]);
	options_check(opt);
}

/* The server and the clients have a descriptor for each connection. */
static void fds_reserve(unsigned int connections)
{
	rlim_t need = connections + SPARE_FDS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		die("cannot ask for the limit of file descriptors");
	if (limit.rlim_cur >= need)
		return;
	limit.rlim_cur = need;
	if (limit.rlim_max < need)
		limit.rlim_max = need;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		die("%u connections need %lu file descriptors: raise that limit (ulimit -n), run this as root, or ask for fewer with --connections",
		    connections, (unsigned long)need);
}

static int listener_open(uint16_t *port)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(addr);
	int fd;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (void *)&addr, len) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, (void *)&addr, &len))
		die("cannot listen on the loopback interface");
	*port = ntohs(addr.sin_port);
	return fd;
}

/* The last process may have fewer clients. */
static unsigned int clients_of(unsigned int connections, unsigned int process)
{
	unsigned int left = connections - process * CLIENTS_PER_PROCESS;

	return left < CLIENTS_PER_PROCESS ? left : CLIENTS_PER_PROCESS;
}

static unsigned int clients_fork(const struct server *s, uint16_t port,
				 int *control)
{
	unsigned int i, j, connections = s->opt->connections;
	int pair[2];

	for (i = 0; i * CLIENTS_PER_PROCESS < connections; i++) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
			die("cannot make a pair of sockets");
		fflush(stdout);
		switch (fork()) {
		case -1:
			die("cannot fork");
		case 0:
			/*
			 * Close the server's descriptors, or they stay open as long as this
			 * process.
			 */
			close(s->listener);
			close(pair[0]);
			for (j = 0; j < i; j++)
				close(control[j]);
			clients_run(s->opt, i, clients_of(connections, i), port,
				    pair[1]);
		}
		close(pair[1]);
		control[i] = pair[0];
	}
	return i;
}

int main(int argc, char **argv)
{
	static struct options opt = {
		.workers = 4,
		.connections = 10000,
		.seconds = 16,
		.timeout_ns[IDLE] = 8 * NSEC_PER_SEC,
		.timeout_ns[REQUEST] = 3 * NSEC_PER_SEC,
		.tick_ns = 10 * NSEC_PER_MSEC,
	};
	static struct server server;
	int control[MAX_PROCESSES];
	unsigned int i;
	uint16_t port;
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	options_parse(&opt, argc, argv);
	server.opt = &opt;
	fds_reserve(opt.connections);
	server.listener = listener_open(&port);
	server.control = control;
	server.nr_control = clients_fork(&server, port, control);
	status = opt.local ? local_run(&server) : shared_run(&server);

	/* If its end of the socket is closed, a process of clients ends. */
	for (i = 0; i < server.nr_control; i++)
		close(control[i]);
	while (wait(NULL) > 0)
		;
	return status;
}
