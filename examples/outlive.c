// SPDX-License-Identifier: 0BSD
/*
 * Timeouts that outlive their daemon.
 *
 *	outlive JOURNAL			a daemon, under systemd
 *	outlive JOURNAL KILLS		the same under a keeper, which kills it so many times
 *	outlive JOURNAL check		whether each timeout had one outcome
 *
 * The wheel lives as long as somebody has its descriptor.  systemd keeps it in the store of the
 * service (outlive.service), or the keeper does: the next daemon gets it, with all that pends, and
 * reads the events of timeouts that have expired since.  The daemon may be killed by kill -9 at any
 * time.
 *
 * The daemon's knowledge of its timeouts has to outlive it, too.  Here the kernel itself writes it
 * into a mapped file: ARM writes its results into the elements of the vector, and read() puts new
 * events behind the old ones.  So the file always says what the kernel has done.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <twheel/device.h>
#include <unistd.h>

#define VECTOR		64
#define EVENTS		(1U << 22)
#define PENDING_MAX	1024U
#define EXPIRES_MAX_MS	100

/*
 * Timeouts are numbered by user_data.  All before @first are armed; @arms are those from @first
 * on.  An element of @events is used if its flags are not 0: each event here is the last one of its
 * timeout.
 */
struct journal {
	uint64_t first;
	struct twheel_arm arms[VECTOR];
	struct twheel_event events[EVENTS];
};

static volatile sig_atomic_t stops;

static void on_stop(int signal)
{
	(void)signal;
	stops = 1;
}

static struct journal *journal_open(const char *path)
{
	struct journal *journal;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, sizeof(*journal)))
		err(1, "%s", path);
	journal = mmap(NULL, sizeof(*journal), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (journal == MAP_FAILED)
		err(1, "%s", path);
	close(fd);
	return journal;
}

/*
 * How many of the vector were armed: the kernel arms them in order, and writes a result into each.
 */
static unsigned int nr_armed(const struct journal *journal)
{
	const struct twheel_arm *arms = journal->arms;
	unsigned int i;

	for (i = 0; i < VECTOR; i++)
		if (arms[i].result != TWHEEL_CREATED || arms[i].user_data != journal->first + i)
			break;
	return i;
}

static unsigned int nr_events(const struct journal *journal)
{
	unsigned int low = 0, high = EVENTS;

	while (low < high) {
		unsigned int middle = low + (high - low) / 2;

		if (journal->events[middle].flags)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Arm the rest of the vector, and then a new one. */
static void arm_vector(const struct twheel_device *device, struct journal *journal)
{
	unsigned int i, done = nr_armed(journal);

	if (done == VECTOR) {
		journal->first += VECTOR;
		done = 0;
	}
	for (i = done; i < VECTOR; i++) {
		struct twheel_arm *arm = &journal->arms[i];

		/* If the process is killed here, a new timeout has no old result. */
		arm->result = 0;
		atomic_signal_fence(memory_order_seq_cst);
		*arm = (struct twheel_arm){
			.user_data = journal->first + i,
			.expires_ns = (1 + rand() % EXPIRES_MAX_MS) * 1000000ULL,
		};
	}
	if (twheel_device_arm_many(device, journal->arms + done, VECTOR - done) != VECTOR - done)
		errx(1, "ARM: %s", strerror(-journal->arms[VECTOR - 1].result));
}

/* ---- the descriptor ---------------------------------------------------------- */

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

static int send_descriptor(int to, const struct sockaddr_un *address, socklen_t address_size,
			   const char *text, int fd)
{
	struct iovec iov = { (char *)text, strlen(text) };
	union control control = {
		.header = {
			.cmsg_len = CMSG_LEN(sizeof(fd)),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		},
	};
	struct msghdr message = {
		.msg_name = (void *)address,
		.msg_namelen = address_size,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(to, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static int receive_descriptor(int from)
{
	union control control;
	char text[64];
	struct iovec iov = { text, sizeof(text) };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t ret;
	int fd = -1;

	/* SIGTERM may come first: then still wait for the timeouts that pend. */
	do {
		ret = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
	} while (ret < 0 && errno == EINTR);
	if (ret <= 0 || !CMSG_FIRSTHDR(&message))
		errx(1, "no descriptor comes");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/*
 * The protocol of sd_pid_notify_with_fds(3), without libsystemd.  FDPOLL=0, since poll() says
 * POLLHUP if the wheel is drained, and systemd would drop the descriptor.
 */
static void store_descriptor(int fd)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int to = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (!path || strlen(path) >= sizeof(address.sun_path))
		errx(1, "systemd is not there to keep the wheel; with a number it goes without");
	memcpy(address.sun_path, path, strlen(path));
	if (*path == '@')
		address.sun_path[0] = 0;
	if (to < 0 || send_descriptor(to, &address,
				      offsetof(struct sockaddr_un, sun_path) + strlen(path),
				      "FDSTORE=1\nFDNAME=wheel\nFDPOLL=0", fd))
		err(1, "%s", path);
	close(to);
}

/* The first descriptor from systemd is 3: sd_listen_fds(3). */
static int stored_descriptor(void)
{
	const char *nr = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");

	return nr && pid && atoi(nr) == 1 && atoi(pid) == getpid() ? 3 : -1;
}

static struct twheel_device *wheel_open(void)
{
	static const struct twheel_setup setup = {
		.size = sizeof(setup), .clock = TWHEEL_CLOCK_MONOTONIC, .name = "outlive",
	};
	struct twheel_device *device;
	int ret = twheel_device_open(&device, NULL, O_NONBLOCK, &setup);

	if (ret < 0)
		errx(1, "/dev/twheel: %s", strerror(-ret));
	return device;
}

static struct twheel_device *wheel_take_over(int fd)
{
	struct twheel_device *device;
	int ret = twheel_device_adopt(&device, fd, NULL);

	if (ret < 0)
		errx(1, "descriptor %d: %s", fd, strerror(-ret));
	return device;
}

/* ---- the daemon -------------------------------------------------------------- */

/* Arm and read until SIGTERM; then arm no more, and go on until no timeout is left. */
static int serve(struct twheel_device *device, struct journal *journal)
{
	unsigned int nr = nr_events(journal);
	struct pollfd wheel = { .fd = twheel_device_fd(device), .events = POLLIN };
	struct twheel_info info;
	int ret;

	srand(getpid());
	for (;;) {
		twheel_device_info(device, &info, 0);
		if ((stops || nr + PENDING_MAX > EVENTS) && !info.live)
			break;
		if (!stops && nr + PENDING_MAX <= EVENTS && info.live + VECTOR <= PENDING_MAX)
			arm_vector(device, journal);
		else
			poll(&wheel, 1, 10);
		/* The kernel writes the events straight to their place in the file. */
		ret = twheel_device_read(device, journal->events + nr, EVENTS - nr);
		if (ret < 0 && ret != -EAGAIN && ret != -EINTR)
			errx(1, "read: %s", strerror(-ret));
		nr += ret > 0 ? ret : 0;
	}
	twheel_device_close(device);
	return 0;
}

static pid_t worker_start(int fd, struct journal *journal)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		err(1, "socketpair");
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		close(fd);
		_exit(serve(wheel_take_over(receive_descriptor(ends[1])), journal));
	}
	if (send_descriptor(ends[0], NULL, 0, "wheel", fd))
		err(1, "sendmsg");
	close(ends[0]);
	close(ends[1]);
	return pid;
}

static int worker_end(pid_t pid, int signal)
{
	int status;

	kill(pid, signal);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			err(1, "waitpid");
	return status;
}

/* Hold the descriptor, and do nothing with it.  If SIGTERM comes, do no more kills. */
static void keep(struct journal *journal, int kills)
{
	struct twheel_device *device = wheel_open();
	int fd = twheel_device_fd(device), status;
	pid_t pid;

	while (pid = worker_start(fd, journal), !stops && kills--) {
		usleep(rand() % 10000);
		status = worker_end(pid, SIGKILL);
		if (!WIFSIGNALED(status))
			errx(1, "the daemon has ended by itself: %#x", status);
	}
	do {
		usleep(10000);
	} while (!journal->first && !stops);
	status = worker_end(pid, SIGTERM);
	if (status)
		errx(1, "the daemon has ended with %#x", status);
	twheel_device_close(device);
}

/* Each timeout that was armed has one event, and no other has any. */
static int check(const struct journal *journal)
{
	uint64_t armed = journal->first + nr_armed(journal), seen = 0, twice = 0, wrong = 0, i;
	unsigned int nr = nr_events(journal);
	uint64_t *ids = calloc(armed + 1, sizeof(*ids));

	if (!ids)
		err(1, "%llu timeouts", (unsigned long long)armed);
	for (i = 0; i < nr; i++) {
		const struct twheel_event *event = &journal->events[i];
		uint64_t *id = &ids[event->user_data < armed ? event->user_data : armed];

		/*
		 * If the daemon was killed while read() copied an event, the event stayed in the
		 * wheel, and the next daemon read it again: then both have the same id, which is
		 * never given out twice.
		 */
		if (event->user_data >= armed || (*id && *id != event->id) ||
		    event->fired_ns < event->deadline_ns)
			wrong++;
		else if (*id)
			twice++;
		else
			seen++;
		*id = event->id;
	}
	printf("%llu timeouts armed, %llu expired, %llu copied twice, %llu wrong\n",
	       (unsigned long long)armed, (unsigned long long)seen, (unsigned long long)twice,
	       (unsigned long long)wrong);
	free(ids);
	return !armed || seen != armed || wrong;
}

int main(int argc, char **argv)
{
	struct sigaction stop = { .sa_handler = on_stop };
	struct twheel_device *device;
	struct journal *journal;
	int fd;

	if (argc < 2 || argc > 3)
		errx(2, "usage: outlive JOURNAL [KILLS | check]");
	sigaction(SIGTERM, &stop, NULL);
	journal = journal_open(argv[1]);
	if (argc == 3 && !strcmp(argv[2], "check"))
		return check(journal);
	if (argc == 3) {
		keep(journal, atoi(argv[2]));
		return check(journal);
	}
	fd = stored_descriptor();
	if (fd >= 0) {
		device = wheel_take_over(fd);
	} else {
		device = wheel_open();
		store_descriptor(twheel_device_fd(device));
	}
	return serve(device, journal);
}
