// SPDX-License-Identifier: 0BSD
/*
 * A supervisor that finds workers which hang and workers which are dead.
 *
 *	supervisor [--words] [WORKERS [HANG KILL]]
 *
 * Each worker is a process with a deadline, and moves it on with a heartbeat, which is a store into
 * shared memory and no system call.  If a worker lets its deadline pass, it hangs.  If it dies, its
 * pidfd says so.  One epoll loop waits for both.
 *
 * The deadline is a timeout on /dev/twheel, and the heartbeat a store into the refresh table: the
 * supervisor sleeps until a deadline has passed, and any worker may have the wheel.  With --words
 * it needs no module: each worker has a word in a memfd of its own, and nothing else, so it need
 * not be trusted.  The supervisor has a timer for each, which reads the word when it expires.
 *
 * Then it checks itself: of the workers, HANG are stopped (SIGSTOP) and KILL are killed, each at
 * another time.  Each of these has to be found once, as hung or as dead, and no other one.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <twheel.h>
#include <twheel/device.h>
#include <unistd.h>

#define MS		1000000ULL
#define TIMEOUT_NS	(2000 * MS)	/* if a worker has no heartbeat for this long, it hangs */
#define BEAT_US		200000		/* from one heartbeat to the next */
#define FAULTS_NS	(2000 * MS)	/* the time in which all are stopped and killed */
#define GIVE_UP_NS	(60000 * MS)
#define EVENTS		64
#define WHEEL		UINT32_MAX	/* the wheel in epoll, beside the numbers of workers */

enum state { WELL, HUNG, DEAD };
enum fault { NO_FAULT, STOPPED, KILLED };

/* The words of a worker for the check, in shared memory; the supervisor needs none of them. */
struct diary {
	uint64_t moved_to_ns;		/* deadline of the last store that was certainly in time */
	uint64_t beats;
};

struct worker {
	enum state state;
	pid_t pid;
	int pidfd;
	bool has_deadline;		/* until the deadline has passed, or is cancelled */
	uint64_t id;			/* on the device: of its timeout */
	struct twheel_timer timer;	/* with --words: this, and the deadline to read */
	uint64_t *word;
	/* For the check: */
	enum fault fault;
	uint64_t fault_ns;		/* when it was stopped or killed; 0 before that */
};

/* The deadlines of workers, by their numbers. */
struct deadlines {
	int (*open)(void);		/* a descriptor, readable if one has passed */
	void (*arm)(uint32_t number, uint64_t deadline_ns);
	void (*beat)(uint32_t number, uint64_t deadline_ns);
	void (*cancel)(uint32_t number);
	void (*read)(void);		/* handle the deadlines that have passed */
	bool (*agree)(void);		/* whether the wheel agrees with our accounts, in the end */
};

static const struct deadlines *deadlines;
static int epoll;
static struct worker *workers;
static struct diary *diaries;
static uint32_t nr;
static uint64_t faults_begin_ns, fault_gap_ns, hung_late_ns, dead_late_ns;
static uint32_t next_fault, faults_left, slow, wrong;

static uint64_t now_ns(void)
{
	struct timespec ts;

	/* The clock of a wheel by default; the vDSO reads it. */
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 * MS + ts.tv_nsec;
}

static int check(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror(-ret));
	return ret;
}

/* ---- the verdict --------------------------------------------------------- */

/* A worker was found; here a supervisor would start another one in its place. */
static void found(uint32_t number, enum state state, uint64_t since_ns)
{
	struct worker *w = &workers[number];
	uint64_t late_ns = now_ns() - since_ns;
	uint64_t *most_ns = state == HUNG ? &hung_late_ns : &dead_late_ns;

	if (!w->fault_ns) {
		/* If it has not moved its deadline in time, it was rightly found. */
		if (state == HUNG)
			slow++;
		else
			wrong++;
		return;
	}
	if (late_ns > *most_ns)
		*most_ns = late_ns;
	wrong += state != (w->fault == KILLED ? DEAD : HUNG);
	faults_left--;
}

static bool is_dead(const struct worker *w)
{
	struct pollfd pidfd = { .fd = w->pidfd, .events = POLLIN };

	return poll(&pidfd, 1, 0) == 1;
}

/*
 * A deadline has passed.  A dead worker has no heartbeat either: its pidfd says so in this turn
 * of the loop or in the next one.
 */
static void expired(uint32_t number, uint64_t deadline_ns)
{
	struct worker *w = &workers[number];

	if (w->state != WELL || !w->has_deadline)
		errx(1, "a deadline of nobody");
	w->has_deadline = false;
	if (is_dead(w))
		return;
	w->state = HUNG;
	/* If the deadline has not passed, or was moved in time, the supervisor is wrong. */
	if (now_ns() < deadline_ns ||
	    deadline_ns < __atomic_load_n(&diaries[number].moved_to_ns, __ATOMIC_ACQUIRE))
		wrong++;
	found(number, HUNG, deadline_ns);
	kill(w->pid, SIGKILL);
}

/* ---- deadlines on the device --------------------------------------------- */

static struct twheel_device *device;
static twheel_word_t *table;		/* the refresh table */
static uint32_t shift;			/* shift of its deadlines */

static int device_open(void)
{
	check(twheel_device_open(&device, NULL, O_NONBLOCK, NULL), "/dev/twheel");
	check(twheel_device_map(device, &table, &shift), "map");
	return twheel_device_fd(device);
}

static void device_arm(uint32_t number, uint64_t deadline_ns)
{
	struct twheel_arm arm = {
		.user_data = number,
		.expires_ns = deadline_ns,
		.flags = TWHEEL_ARM_ABSOLUTE,
	};

	check(twheel_device_arm(device, &arm), "arm");
	workers[number].id = arm.id;
}

/* The worker has inherited the table; it needs only its own id. */
static void device_beat(uint32_t number, uint64_t deadline_ns)
{
	twheel_refresh(table, workers[number].id, twheel_refresh_deadline(deadline_ns, shift));
}

/* If its event is unread, it never comes now: there is one verdict for a worker. */
static void device_cancel(uint32_t number)
{
	check(twheel_device_cancel(device, workers[number].id), "cancel");
}

static void device_read(void)
{
	struct twheel_event events[EVENTS];
	int ret = twheel_device_read(device, events, EVENTS);

	if (ret == -EAGAIN || ret == -EINTR)
		return;
	check(ret, "read");
	for (int i = 0; i < ret; i++)
		expired(events[i].user_data, events[i].deadline_ns);
}

static bool device_agrees(void)
{
	struct twheel_info info;

	check(twheel_device_info(device, &info, 0), "info");
	return info.armed == nr && !info.live &&
	       info.completed + info.cancelled + info.revoked == nr;
}

static const struct deadlines on_device = {
	device_open, device_arm, device_beat, device_cancel, device_read, device_agrees,
};

/* ---- deadlines in words -------------------------------------------------- */

static struct twheel *wheel;

static int words_open(void)
{
	check(twheel_open(&wheel, NULL), "wheel");
	return check(twheel_fd(wheel), "wheel");
}

/*
 * A timer expires at the deadline that it has read last, so read it again.  A worker may have
 * stored anything, but gets no more than the timeout from now.
 */
static void word_look(struct twheel *w, struct twheel_timer *timer)
{
	struct worker *worker = twheel_container_of(timer, struct worker, timer);
	/* Read the clock first: if a heartbeat comes before its deadline, it is seen. */
	uint64_t now = now_ns();
	uint64_t deadline_ns = __atomic_load_n(worker->word, __ATOMIC_RELAXED);

	if (deadline_ns > now + TIMEOUT_NS)
		deadline_ns = now + TIMEOUT_NS;
	if (deadline_ns > now)
		twheel_start_at(w, timer, deadline_ns);
	else
		expired(worker - workers, deadline_ns);
}

/* Seal the memfd, so that the worker cannot cut off the word. */
static uint64_t *word_new(void)
{
	int memfd = memfd_create("deadline", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint64_t *word;

	if (memfd < 0 || ftruncate(memfd, sizeof(*word)) ||
	    fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL))
		err(1, "memfd");
	word = mmap(NULL, sizeof(*word), PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (word == MAP_FAILED)
		err(1, "memory");
	close(memfd);		/* if a worker is not forked here, it would be sent this */
	return word;
}

static void words_arm(uint32_t number, uint64_t deadline_ns)
{
	struct worker *w = &workers[number];

	w->word = word_new();
	*w->word = deadline_ns;
	twheel_timer_init(&w->timer, word_look);
	twheel_start_at(wheel, &w->timer, deadline_ns);
	check(twheel_flush(wheel), "flush");
}

static void words_beat(uint32_t number, uint64_t deadline_ns)
{
	__atomic_store_n(workers[number].word, deadline_ns, __ATOMIC_RELAXED);
}

static void words_cancel(uint32_t number)
{
	twheel_stop(wheel, &workers[number].timer);
}

static void words_read(void)
{
	check(twheel_dispatch(wheel, 0), "dispatch");
	check(twheel_flush(wheel), "flush");
}

static bool words_agree(void)
{
	for (uint32_t i = 0; i < nr; i++)
		if (twheel_timer_pending(&workers[i].timer))
			return false;
	return true;
}

static const struct deadlines in_words = {
	words_open, words_arm, words_beat, words_cancel, words_read, words_agree,
};

/* ---- the supervisor ------------------------------------------------------ */

static void work(uint32_t number, uint64_t deadline_ns)
{
	struct diary *diary = &diaries[number];

	for (;;) {
		uint64_t before_ns = deadline_ns;

		usleep(BEAT_US);
		deadline_ns = now_ns() + TIMEOUT_NS;
		deadlines->beat(number, deadline_ns);
		diary->beats++;
		if (now_ns() < before_ns)
			__atomic_store_n(&diary->moved_to_ns, deadline_ns, __ATOMIC_RELEASE);
	}
}

static void watch(int fd, uint32_t who)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = who };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		err(1, "epoll");
}

/* Set the deadline first, so that a worker which hangs at once is found as well. */
static void worker_start(uint32_t number)
{
	uint64_t deadline_ns = now_ns() + TIMEOUT_NS;
	struct worker *w = &workers[number];

	deadlines->arm(number, deadline_ns);
	w->has_deadline = true;
	w->pid = fork();
	if (!w->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work(number, deadline_ns);
	}
	if (w->pid < 0)
		err(1, "fork");
	w->pidfd = syscall(SYS_pidfd_open, w->pid, 0);
	if (w->pidfd < 0)
		err(1, "pidfd");
	watch(w->pidfd, number);
}

/* A worker is dead; perhaps it hung and was killed for that. */
static void died(uint32_t number)
{
	struct worker *w = &workers[number];

	/* The other workers have copies of the descriptor: close() leaves it in epoll. */
	epoll_ctl(epoll, EPOLL_CTL_DEL, w->pidfd, NULL);
	close(w->pidfd);
	waitpid(w->pid, NULL, 0);
	if (w->has_deadline)
		deadlines->cancel(number);
	w->has_deadline = false;
	if (w->state == DEAD)
		errx(1, "worker %u is dead twice", number);
	if (w->state == HUNG)
		return;
	w->state = DEAD;
	found(number, DEAD, w->fault_ns);
}

static void turn(int wait_ms)
{
	struct epoll_event ready[EVENTS];
	int n = epoll_wait(epoll, ready, EVENTS, wait_ms);

	if (n < 0 && errno != EINTR)
		err(1, "epoll");
	for (int i = 0; i < n; i++) {
		if (ready[i].data.u32 == WHEEL)
			deadlines->read();
		else
			died(ready[i].data.u32);
	}
}

/* ---- the check ----------------------------------------------------------- */

/* Draw lots for the workers that are stopped, killed, or left alone. */
static void faults_draw(uint32_t hang, uint32_t killed)
{
	for (uint32_t i = 0; i < nr; i++)
		workers[i].fault = i < hang ? STOPPED : i < hang + killed ? KILLED : NO_FAULT;
	for (uint32_t i = nr - 1; i; i--) {
		uint32_t other = random() % (i + 1);
		enum fault fault = workers[i].fault;

		workers[i].fault = workers[other].fault;
		workers[other].fault = fault;
	}
	faults_left = hang + killed;
	fault_gap_ns = FAULTS_NS / nr;
}

static void faults_happen(uint64_t now)
{
	while (next_fault < nr && now >= faults_begin_ns + next_fault * fault_gap_ns) {
		struct worker *w = &workers[next_fault++];

		if (w->fault == NO_FAULT)
			continue;
		/* The machine was so busy that the worker was found to be slow. */
		if (w->state != WELL) {
			faults_left--;
			continue;
		}
		w->fault_ns = now;
		kill(w->pid, w->fault == KILLED ? SIGKILL : SIGSTOP);
	}
}

/* The workers that are left go on until here. */
static uint32_t end_the_others(void)
{
	uint32_t well = 0;

	for (uint32_t i = 0; i < nr; i++) {
		struct worker *w = &workers[i];

		if (w->state != WELL || !w->has_deadline)
			continue;
		deadlines->cancel(i);
		kill(w->pid, SIGKILL);
		well++;
	}
	while (wait(NULL) > 0)
		;
	return well;
}

static int report(uint32_t well)
{
	uint32_t hung = 0, dead = 0;
	uint64_t beats = 0;

	for (uint32_t i = 0; i < nr; i++) {
		hung += workers[i].state == HUNG;
		dead += workers[i].state == DEAD;
		beats += diaries[i].beats;
	}
	printf("%u workers: %u were well, %u hung, %u died; %u wrong, %u missed\n", nr, well, hung,
	       dead, wrong, faults_left);
	printf("found at most %.1f ms after the deadline, and %.1f ms after the kill\n",
	       hung_late_ns / (double)MS, dead_late_ns / (double)MS);
	printf("%llu heartbeats without a system call\n", (unsigned long long)beats);
	if (slow)
		printf("%u were slow: their heartbeats came too late\n", slow);
	if (!deadlines->agree())
		errx(1, "the wheel has other accounts");
	return wrong || faults_left || well + hung + dead != nr;
}

static void begin(void)
{
	struct rlimit files;

	/* There is a pidfd for each worker. */
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	workers = calloc(nr, sizeof(*workers));
	diaries = mmap(NULL, nr * sizeof(*diaries), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!workers || diaries == MAP_FAILED || epoll < 0)
		err(1, "memory");
	watch(deadlines->open(), WHEEL);
}

int main(int argc, char **argv)
{
	const bool words = argc > 1 && !strcmp(argv[1], "--words");
	uint32_t hang, killed;

	deadlines = words ? &in_words : &on_device;
	argc -= words;
	argv += words;
	nr = argc > 1 ? strtoul(argv[1], NULL, 0) : 20;
	hang = argc > 3 ? strtoul(argv[2], NULL, 0) : nr / 4;
	killed = argc > 3 ? strtoul(argv[3], NULL, 0) : nr / 4;
	if (nr < 1 || nr > 10000 || hang > nr || killed > nr - hang || argc == 3)
		errx(2, "supervisor [--words] [WORKERS [HANG KILL]], of 1 to 10000 workers");
	begin();
	faults_draw(hang, killed);
	for (uint32_t i = 0; i < nr; i++)
		worker_start(i);
	faults_begin_ns = now_ns();
	while ((faults_left || next_fault < nr) &&
	       now_ns() < faults_begin_ns + GIVE_UP_NS) {
		faults_happen(now_ns());
		turn(next_fault < nr ? 1 : 1000);
	}
	return report(end_the_others());
}
