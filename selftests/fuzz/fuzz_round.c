// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_round.c - one round: wheels, threads, the watchdog, and the accounts
 */
/* Only one file of a program may include the harness: the others do without. */
#include "../twheel_outside.h"

#include "fuzz.h"

#include <sys/epoll.h>
#include <sys/syscall.h>

/* If a thread waits for nothing for this long, send it a signal. */
#define LOOK_NS		(4 * NS_PER_MS)
/* If a thread makes no progress for this long, it hangs. */
#define HANG_NS		(90 * NS_PER_SEC)
#define ROWS		512
#define MANY_KEYS	((__u64)16384)

struct wheel wheels[WHEELS];
struct thread threads[THREADS_MAX];
int nr_threads;

static int kernel_log;
static struct ledger final;
static pthread_barrier_t start;

/* ---- wheels --------------------------------------------------------------- */

static void wheel_open(struct wheel *w, int nr)
{
	int fd = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || dup3(fd, fd_of(nr, 0), O_CLOEXEC) < 0) {
		printf("Bail out! %s cannot be opened: %s\n", DEVICE, strerror(errno));
		exit(1);
	}
	close(fd);
	w->strict = nr < WHEELS - 1;
	w->may_be_keyed = false;
	w->clock = TWHEEL_CLOCK_MONOTONIC;
	w->tick_ns = NS_PER_MS;
	w->event_size = sizeof(struct twheel_event);
	w->now_ns = 0;
	w->nr_recent = 0;
}

/*
 * Set up a wheel of virtual time, one of real time, and one of any.  Some are left for the threads
 * to set up.
 */
static void wheel_setup(struct wheel *w, int nr, __u64 *seed)
{
	static const __u64 ticks[] = {
		NS_PER_MS, NS_PER_MS, 4 * NS_PER_MS, 10 * NS_PER_MS, NS_PER_SEC, 1234567
	};
	static const __u32 slots[] = { 4, 4, 8, 64, 256, 1024 };
	static const __u32 limits[] = { 0, 3, 33, 64, 500, 5000 };
	static const __u32 event_sizes[] = { 40, 48, 64, 200 };
	struct twheel_setup setup = {
		.clock		= nr ? TWHEEL_CLOCK_MONOTONIC + random_below(seed, 4) :
				  TWHEEL_CLOCK_VIRTUAL,
		.tick_ns	= ticks[random_below(seed, 6)],
		.slots		= slots[random_below(seed, 6)],
		.max_pending	= limits[random_below(seed, 6)],
		.flags		= one_in(seed, 4) ? TWHEEL_SETUP_ONE_LEVEL : 0,
	};

	if (w->strict && one_in(seed, 4))
		setup.event_size = event_sizes[random_below(seed, 4)];
	if (nr == 2 && one_in(seed, 2))
		setup.clock = TWHEEL_CLOCK_VIRTUAL;
	if (setup.clock == TWHEEL_CLOCK_VIRTUAL && one_in(seed, 3))
		setup.tick_ns = one_in(seed, 2) ? TWHEEL_TICK_MIN_NS : TWHEEL_TICK_MAX_NS;
	if (setup.flags && setup.tick_ns < TWHEEL_ROUND_MIN_NS / setup.slots)
		setup.tick_ns += TWHEEL_ROUND_MIN_NS / setup.slots;
	if (one_in(seed, 2))
		setup.flags |= TWHEEL_SETUP_KEYED;
	if (one_in(seed, 8))
		return;
	w->may_be_keyed = setup.flags & TWHEEL_SETUP_KEYED;
	if (tw_setup_full(fd_of(nr, 0), &setup))
		wrong(CHECK_ANSWERS, "SETUP of a new wheel fails");
	w->clock = setup.clock;
	w->tick_ns = setup.tick_ns;
	if (setup.event_size)
		w->event_size = setup.event_size;
}

/* ---- threads -------------------------------------------------------------- */

static void *thread_run(void *arg)
{
	struct thread *t = arg;
	int i;

	t->tid = syscall(SYS_gettid);
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	cover_start(&t->cover);
	pthread_barrier_wait(&start);
	for (i = 0; i < STEPS; i++) {
		if (!(i % SEQUENCE))
			t->cover.fresh = false;
		step_run(t, &t->sequence[i / SEQUENCE].step[i % SEQUENCE]);
		t->done++;
		if (t->cover.fresh)
			t->kept[i / SEQUENCE] = true;
	}
	cover_stop(&t->cover);
	close(t->epoll);
	t->finished = true;
	return NULL;
}

static void thread_start(struct thread *t, const struct plan *plan, int nr)
{
	t->nr = nr;
	t->sequence = plan->sequence[nr];
	memset(t->kept, 0, sizeof(t->kept));
	t->ledger.nr = 0;
	t->serial = 1;
	t->done = 0;
	t->finished = false;
	if (pthread_create(&t->pthread, NULL, thread_run, t))
		exit(1);
}

static void show_stack(const struct thread *t)
{
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stack", t->tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		printf("#     %s", line);
	if (file)
		fclose(file);
}

/* End the program: if threads hang, they cannot be joined. */
static void hangs(const struct plan *plan, struct thread *t)
{
	wrong(CHECK_HANGS, "round %llu: thread %d is stuck in step %llu, %s of wheel %u",
	      plan->round, t->nr, t->done, op_name(t->step->op), t->step->wheel);
	show_stack(t);
}

/* Return whether all threads came to their end. */
static bool threads_watch(const struct plan *plan)
{
	__u64 done[THREADS_MAX] = {}, since[THREADS_MAX] = {};
	int t, left;

	do {
		__u64 now = clock_ns(CLOCK_MONOTONIC);

		for (t = 0, left = 0; t < plan->threads; t++) {
			struct thread *thread = &threads[t];

			left += !thread->finished;
			if (thread->finished || done[t] != thread->done || !since[t]) {
				done[t] = thread->done;
				since[t] = now;
				continue;
			}
			if (thread->patient)
				pthread_kill(thread->pthread, SIGALRM);
			if (now - since[t] > HANG_NS) {
				hangs(plan, thread);
				return false;
			}
		}
		sleep_ns(LOOK_NS);
	} while (left);
	for (t = 0; t < plan->threads; t++)
		pthread_join(threads[t].pthread, NULL);
	return true;
}

/* ---- the accounts --------------------------------------------------------- */

static void check_accounts(int wheel, const struct twheel_info *i)
{
	if (i->armed != i->live + i->completed + i->cancelled + i->revoked + i->drained)
		wrong(CHECK_ACCOUNTS,
		      "wheel %d: armed %llu, live %llu, completed %llu, cancelled %llu, revoked %llu, drained %llu",
		      wheel, i->armed, i->live, i->completed, i->cancelled, i->revoked,
		      i->drained);
	if (i->pending > i->live || i->unread > i->live || i->live > i->pending + i->unread ||
	    i->live > i->max_pending || i->completed + i->drained > i->delivered)
		wrong(CHECK_ACCOUNTS,
		      "wheel %d: live %llu, pending %llu, unread %llu, max_pending %u, completed %llu, drained %llu, delivered %llu",
		      wheel, i->live, i->pending, i->unread, i->max_pending, i->completed,
		      i->drained, i->delivered);
}

static int compare_keys(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* At rest, no two live timeouts have the same key. */
static void check_keys(int wheel, __u64 *key, size_t nr)
{
	size_t i;

	if (nr > 1)
		qsort(key, nr, sizeof(*key), compare_keys);
	for (i = 1; i < nr; i++)
		if (key[i - 1] == key[i])
			wrong(CHECK_OUTCOMES, "wheel %d: two live with the key %#llx", wheel,
			      key[i]);
}

/*
 * Check the rows of LIST, and return how many there are.  If @settled, all timeouts that were due
 * have expired.
 */
static __u64 wheel_list(int wheel, const struct twheel_info *info, bool settled)
{
	static struct twheel_status rows[ROWS];
	static __u64 keys[MANY_KEYS];
	__u64 cursor = 0, nr = 0;
	int i, ret;

	while ((ret = tw_list(fd_of(wheel, 0), &cursor, rows, ROWS)) > 0) {
		for (i = 0; i < ret; i++, nr++) {
			const struct twheel_status *row = &rows[i];

			if (nr < MANY_KEYS)
				keys[nr] = row->user_data;

			if (settled && row->state == TWHEEL_STATE_PENDING &&
			    row->deadline_ns <= info->now_ns &&
			    tw_round_up(row->deadline_ns, (row->slack_ticks + 1) * info->tick_ns) <=
				    info->now_ns)
				wrong(CHECK_OUTCOMES, "wheel %d: %#llx was due at %llu, it is %llu",
				      wheel, row->id, row->deadline_ns, info->now_ns);
			if (wheels[wheel].strict)
				ledger_note(&final, &(struct record){
					.fact = LISTED, .wheel = wheel, .id = row->id,
				});
		}
	}
	if (ret < 0)
		wrong(CHECK_ACCOUNTS, "LIST fails with %d", -ret);
	if (info->setup_flags & TWHEEL_SETUP_KEYED)
		check_keys(wheel, keys, min(nr, MANY_KEYS));
	return nr;
}

/* Drain the wheel, and read all events. */
static void wheel_empty(int wheel)
{
	static unsigned char events[ROWS * sizeof(struct twheel_event)]
		__attribute__((aligned(8)));
	const __u32 each = wheels[wheel].event_size;
	/* The events belong to no thread: they go to the ledger at the end. */
	struct thread t = { .ledger = final };
	int i, ret;

	fcntl(fd_of(wheel, 0), F_SETFL, O_RDWR | O_NONBLOCK);
	ret = tw_drain(fd_of(wheel, 0));
	if (ret)
		wrong(CHECK_ANSWERS, "DRAIN at rest fails with %d", -ret);
	while ((ret = read(fd_of(wheel, 0), events, sizeof(events))) > 0)
		for (i = 0; i < ret; i += each)
			events_seen(&t, wheel, (void *)&events[i], 1, true);
	if (ret)
		wrong(CHECK_ANSWERS, "wheel %d: read after DRAIN says %d, not 0", wheel, -errno);
	final = t.ledger;
}

static void wheel_settle(const struct plan *plan, int wheel)
{
	struct ledger *ledgers[THREADS_MAX + 1];
	bool emptied = mix(plan->seed, wheel) % 2;
	struct twheel_info info;
	bool settled;
	__u64 listed;
	int t;

	/* If others have closed the descriptor and could not open it again, there is no wheel. */
	if (tw_info(fd_of(wheel, 0), &info))
		return;
	check_accounts(wheel, &info);
	/*
	 * ADVANCE returns when all events that are due can be read; on other clocks, time goes on.
	 */
	settled = info.clock == TWHEEL_CLOCK_VIRTUAL &&
		  !tw_advance(fd_of(wheel, 0), info.now_ns);
	listed = wheel_list(wheel, &info, settled);
	if (listed != info.live)
		wrong(CHECK_ACCOUNTS, "wheel %d: live %llu, LIST shows %llu", wheel, info.live,
		      listed);
	if (emptied) {
		wheel_empty(wheel);
		tw_info(fd_of(wheel, 0), &info);
		check_accounts(wheel, &info);
		if (info.live || info.unread || info.pending)
			wrong(CHECK_ACCOUNTS, "wheel %d: %llu are left in an emptied wheel", wheel,
			      info.live);
	}
	if (!wheels[wheel].strict)
		return;
	for (t = 0; t < plan->threads; t++)
		ledgers[t] = &threads[t].ledger;
	ledgers[t] = &final;
	ledger_reconcile(ledgers, t + 1, wheel, &info, emptied);
}

/* Read the kernel's messages since the last time. */
static void log_scan(void)
{
	static const char * const complaints[] = {
		"BUG:", "WARNING", "KASAN", "UBSAN", "KCSAN", "ODEBUG", "possible circular",
		"suspicious RCU", "scheduling while atomic", "sleeping function", "INFO: task",
		"stall", "soft lockup", "corruption", "unreferenced object", "general protection",
		"inconsistent lock", "Objects remaining",
	};
	char text[2048];
	size_t i;

	while (kernel_log >= 0) {
		ssize_t len = read(kernel_log, text, sizeof(text) - 1);

		/* EPIPE says that some were overwritten before they were read. */
		if (len < 0 && errno != EPIPE)
			break;
		text[len < 0 ? 0 : len] = '\0';
		for (i = 0; i < ARRAY_SIZE(complaints); i++)
			if (strstr(text, complaints[i]))
				wrong(CHECK_LOG, "%s", text);
	}
}

/* ---- the round ------------------------------------------------------------ */

static void interrupted(int signal)
{
	(void)signal;
}

void round_init(void)
{
	const struct sigaction ends = { .sa_handler = interrupted };
	const struct sigaction restarts = { .sa_handler = interrupted, .sa_flags = SA_RESTART };
	int t;

	sigaction(SIGALRM, &ends, NULL);
	sigaction(SIGUSR2, &ends, NULL);
	sigaction(SIGUSR1, &restarts, NULL);
	arena_make();
	for (t = 0; t < THREADS_MAX; t++) {
		if (views_make(&threads[t].views)) {
			printf("Bail out! no memory\n");
			exit(1);
		}
		cover_open(&threads[t].cover);
	}
	kernel_log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kernel_log >= 0)
		lseek(kernel_log, 0, SEEK_END);
}

static void corpus_collect(const struct plan *plan)
{
	int t, s;

	for (t = 0; t < plan->threads; t++)
		for (s = 0; s < SEQUENCES; s++)
			if (threads[t].kept[s])
				kept_add(plan, t, s);
}

void round_run(struct plan *plan)
{
	__u64 seed = mix(plan->seed, 1000);
	int t, w, alias, open_now;

	nr_threads = plan->threads;
	final.nr = 0;
	for (w = 0; w < WHEELS; w++) {
		wheel_open(&wheels[w], w);
		wheel_setup(&wheels[w], w, &seed);
	}
	pthread_barrier_init(&start, NULL, plan->threads);
	for (t = 0; t < plan->threads; t++)
		thread_start(&threads[t], plan, t);
	if (!threads_watch(plan))
		return;
	pthread_barrier_destroy(&start);
	corpus_collect(plan);
	for (w = 0; w < WHEELS; w++)
		wheel_settle(plan, w);
	for (w = 0; w < WHEELS; w++)
		for (alias = 0; alias < ALIASES; alias++)
			close(fd_of(w, alias));
	open_now = tw_wait_wheels_open(0);
	if (open_now)
		wrong(CHECK_CLOSE, "%d wheels are open after all were closed", open_now);
	log_scan();
}
