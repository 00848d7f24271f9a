// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl late: which wheels are late or stuck, and why
 *
 * It reads fdinfo twice, an interval apart, and watches the kthreads and the readers in between.  A
 * wheel's `unread' and `delivered' show how it is read, `late' and `alarm_ns' how it is expired,
 * and `live' whether it is full.  For a kthread, it samples how long it ran and how long it waited
 * for a processor.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "late.h"

/*
 * If a kthread waits for a processor, or runs or waits, for these shares of the interval, that is a
 * cause of lateness.  The softirq expires timeouts as well, but nothing shows for how long.
 */
#define WAITS_SHARE	0.2
#define BUSY_SHARE	0.1

/* If a kthread waits this many times as long as it runs, waiting is the cause, and not the work. */
#define WAITS_TIMES	2

/* If a user takes this share of a limit of memory, hardly any more can be armed. */
#define MEMORY_SHARE	0.95

#define KTHREADS_MAX	64

/* If the interval is shorter, it may miss problems that come now and then. */
#define SHORT_NS	(10 * NS_PER_S)

/*
 * How often kthreads and readers are sampled.  The kernel updates the time for which a thread has
 * run in each tick of its scheduler, which lasts 10 ms at most.
 */
#define STEP_NS		(20 * NS_PER_MS)

/*
 * If there are many wheels and threads, sampling takes this share of a processor, and steps are
 * longer.  If it goes on for ever, it takes less.
 */
#define LOOKS_SHARE	0.1
#define WATCH_SHARE	0.01

#define INTERVAL_NS	NS_PER_S
#define WATCH_NS	(60 * NS_PER_S)

/**
 * struct looks - two snapshots of the wheels, the samples between them, and the findings
 * @before: the first snapshot of the wheels
 * @now: the second one
 * @kthreads: the threads of the module that serve wheels
 * @nr_kthreads: how many
 * @readers: the readers of the wheels that are asked for
 * @nr_readers: how many
 * @watched_at_ns: when the kthreads were sampled last
 * @watched_ns: how long they were watched
 * @ns: the time between the snapshots, which is longer
 * @report: the findings
 */
struct looks {
	struct wheels before;
	struct wheels now;
	struct thread kthreads[KTHREADS_MAX];
	size_t nr_kthreads;
	struct reader *readers;
	size_t nr_readers;
	__u64 watched_at_ns;
	__u64 watched_ns;
	__u64 ns;
	struct report report;
};

static void kthreads_look(struct looks *looks)
{
	DIR *proc = opendir("/proc");
	struct task task;

	while (proc && looks->nr_kthreads < KTHREADS_MAX && tasks_next(proc, &task))
		if (task.kthread && !strncmp(task.comm, "twheel/", 7))
			thread_begin(&looks->kthreads[looks->nr_kthreads++], &task);
	if (proc)
		closedir(proc);
}

static const struct thread *kthread_find(const struct looks *looks, const char *name)
{
	size_t i;

	for (i = 0; i < looks->nr_kthreads; i++)
		if (!strcmp(looks->kthreads[i].task.comm, name))
			return &looks->kthreads[i];
	return NULL;
}

/* How the wheels are expired */

/* The kthread waited for a processor, while `hog' ran there, or too many other threads if NULL. */
static void waits_add(struct looks *looks, const struct thread *kthread, __u64 waited_ns,
		      const char *who, const struct wheel *wheel, const struct task *hog)
{
	/* If no real-time thread is seen there, and if one is */
	static const char *const advice[] = {
		"Give the kthread a higher priority (`renice', `chrt', or load the module with kthread_nice=-20), or the machine less to do.",
		"Give the kthread a higher priority (`chrt -f -p PRIORITY PID', or load the module with kthread_fifo=1), or keep that thread off its processor.",
	};
	char waited[TEXT_SIZE], all[TEXT_SIZE], there[128] =
		"and no real-time thread is seen there: too many threads want to run";

	if (hog)
		snprintf(there, sizeof(there),
			 "where thread %d (%s) runs with real-time priority %u", hog->pid,
			 hog->comm, hog->rt_priority);
	report_add(&looks->report, PROBLEM, "kthread-waits", about(wheel), advice[!!hog],
		   "%s: %s (thread %d), which serves it, waited %s of %s for processor %d, %s.",
		   who, kthread->task.comm, kthread->task.pid, time_text(waited, waited_ns),
		   time_text(all, looks->watched_ns), kthread->task.processor, there);
}

/* How many timeouts of the user's wheels at this kthread have expired. */
static __u64 expired_of(const struct looks *looks, const char *kthread, __u64 uid)
{
	__u64 expired = 0;
	size_t i;

	for (i = 0; i < looks->now.nr; i++) {
		const struct wheel *wheel = &looks->now.wheels[i];
		const struct wheel *was = wheels_find(&looks->before, wheel->number);

		if (was && figure(wheel, "uid") == uid && !strcmp(word(wheel, "kthread"), kthread))
			expired += growth(was, wheel, "expirations");
	}
	return expired;
}

/* A wheel of the user with most expiries at a kthread, and the number of these expiries. */
static const struct wheel *busiest(const struct looks *looks, const char *kthread, __u64 *most)
{
	const struct wheel *busy = NULL;
	size_t i;

	*most = 0;
	for (i = 0; i < looks->now.nr; i++) {
		const struct wheel *wheel = &looks->now.wheels[i];
		__u64 expired = expired_of(looks, kthread, figure(wheel, "uid"));

		if (expired <= *most || strcmp(word(wheel, "kthread"), kthread))
			continue;
		*most = expired;
		busy = wheel;
	}
	return busy;
}

static bool kthread_is_busy(struct looks *looks, const struct thread *kthread, const char *who,
			    const struct wheel *wheel)
{
	__u64 worked_ns = thread_ran(kthread) + thread_waited(kthread), most, own;
	const struct wheel *busy = busiest(looks, kthread->task.comm, &most);
	char ran[TEXT_SIZE], waited[TEXT_SIZE], all[TEXT_SIZE], flooder[SUBJECT_SIZE];

	if (worked_ns < BUSY_SHARE * looks->watched_ns || !busy)
		return false;
	time_text(ran, thread_ran(kthread));
	time_text(waited, thread_waited(kthread));
	time_text(all, looks->watched_ns);
	own = expired_of(looks, kthread->task.comm, figure(wheel, "uid"));
	if (figure(busy, "uid") != figure(wheel, "uid"))
		report_add(&looks->report, PROBLEM, "flood", about(wheel),
			   "Have that user's program arm less, or lower max_user_memory_kb; or load the module with more kthreads (kthreads=).",
			   "%s: another user's timeouts keep %s busy, which serves it: in %s it ran for %s, and waited for a processor for %s; %llu of user %llu expired there meanwhile, and %llu of this one. %s is one of that user's.",
			   who, kthread->task.comm, all, ran, waited, most,
			   figure(busy, "uid"), own, subject(flooder, busy));
	else
		report_add(&looks->report, PROBLEM, "overload", about(wheel),
			   "If it waited for longer than it ran, the processors are busy with something else (top). Otherwise let timeouts expire together (slack), use a longer tick, or share the load among several wheels.",
			   "%s: the same user's timeouts keep %s busy, which serves it: in %s it ran for %s, and waited for a processor for %s; %llu expired there meanwhile.",
			   who, kthread->task.comm, all, ran, waited, own);
	return true;
}

/* For how long a wheel has been due to expire, beyond a tick and its slack. */
static __u64 overdue_ns(const struct wheel *wheel)
{
	json_t *alarm = json_object_get(wheel->info, "alarm_ns");
	__u64 due_ns = json_integer_value(alarm) + figure(wheel, "tick_ns") +
			  figure(wheel, "slack_ns");

	return json_is_integer(alarm) && figure(wheel, "now_ns") > due_ns ?
	       figure(wheel, "now_ns") - due_ns : 0;
}

static void expiry_explain(struct looks *looks, const struct wheel *wheel, const char *who)
{
	const struct thread *kthread = kthread_find(looks, word(wheel, "kthread"));
	char ran[TEXT_SIZE], waited[TEXT_SIZE], all[TEXT_SIZE];
	__u64 waited_ns;
	struct task hog;
	bool waits;

	if (!kthread || !kthread->has_times) {
		report_add(&looks->report, UNKNOWN, "late", about(wheel),
			   "Run twheelctl on the host, outside of a container.",
			   "%s: why it is late cannot be told: the threads of the module, or their times, are not seen here.",
			   who);
		return;
	}
	waited_ns = thread_waited(kthread);
	waits = waited_ns >= WAITS_SHARE * looks->watched_ns;
	if (waits && hog_find(kthread->task.processor, &hog)) {
		waits_add(looks, kthread, waited_ns, who, wheel, &hog);
		return;
	}
	/* If it mostly waits, its work is not the cause. */
	if (waits && waited_ns > WAITS_TIMES * thread_ran(kthread)) {
		waits_add(looks, kthread, waited_ns, who, wheel, NULL);
		return;
	}
	if (kthread_is_busy(looks, kthread, who, wheel))
		return;
	if (waits)
		waits_add(looks, kthread, waited_ns, who, wheel, NULL);
	else if (resolution_ns() > 1)
		report_add(&looks->report, PROBLEM, "low-resolution", about(wheel),
			   "`twheelctl check' says what to do.",
			   "%s: the kernel has no high-resolution timers.", who);
	else
		report_add(&looks->report, UNKNOWN, "late", about(wheel),
			   "The processors may be busy (top, /proc/pressure/cpu), interrupts may have been off, or the host of a virtual machine has taken a processor away: trace it (twheel-late.bt, perf, trace-cmd).",
			   "%s: why it is late cannot be told: in %s, %s ran for %s, and waited for a processor for %s.",
			   who, time_text(all, looks->watched_ns), kthread->task.comm,
			   time_text(ran, thread_ran(kthread)),
			   time_text(waited, waited_ns));
}

/* The cause has passed, and nothing has to be done. */
static void was_late(struct looks *looks, const struct wheel *wheel, const char *who)
{
	__u64 ago_ns = figure(wheel, "now_ns") - figure(wheel, "last_late_at_ns");
	char last[TEXT_SIZE], ago[TEXT_SIZE], date[TEXT_SIZE];

	report_add(&looks->report, DONE, "was-late", about(wheel),
		   "Nothing has to be done. If it happens again, run `twheelctl late' with an --interval in which it happens, which names the cause.",
		   "%s: it was late, and this is over: %llu timeouts since it was opened, the last one %s ago (%s), by %s.",
		   who, figure(wheel, "late"), time_text(ago, ago_ns), date_text(date, ago_ns),
		   time_text(last, figure(wheel, "last_late_ns")));
}

static void expiry_check(struct looks *looks, const struct wheel *was, const struct wheel *wheel)
{
	__u64 late = growth(was, wheel, "late"), overdue = overdue_ns(wheel);
	char who[SUBJECT_SIZE], text[2 * SUBJECT_SIZE], last[TEXT_SIZE], ago[TEXT_SIZE];

	if (!strcmp(word(wheel, "clock"), "virtual"))
		return;
	subject(who, wheel);
	if (late) {
		snprintf(text, sizeof(text), "%s: %llu timeouts of %llu expired late by more than a tick and the slack, the last one by %s",
			 who, late, growth(was, wheel, "expirations"),
			 time_text(last, figure(wheel, "last_late_ns")));
		expiry_explain(looks, wheel, text);
	} else if (overdue && overdue_ns(was)) {
		snprintf(text, sizeof(text), "%s: the kernel should have looked at it %s ago",
			 who, time_text(ago, overdue));
		expiry_explain(looks, wheel, text);
	} else if (figure(wheel, "late")) {
		was_late(looks, wheel, who);
	}
}

/* Limits */

static void room_check(struct looks *looks, const struct wheel *wheel)
{
	char who[SUBJECT_SIZE];

	if (figure(wheel, "live") < figure(wheel, "max_pending") || !figure(wheel, "max_pending"))
		return;
	report_add(&looks->report, PROBLEM, "full", about(wheel),
		   "Read the events that wait, which frees their places, or set the wheel up with a greater max_pending.",
		   "%s: it is full, and ARM says EAGAIN: %llu timeouts are in use, %llu of them with an unread event, and max_pending is %llu.",
		   subject(who, wheel), figure(wheel, "live"), figure(wheel, "unread"),
		   figure(wheel, "max_pending"));
}

/* How much memory the wheels of a user take, or those of all users. */
static __u64 bytes_of(const struct wheels *wheels, const __u64 *uid)
{
	__u64 bytes = 0;
	size_t i;

	for (i = 0; i < wheels->nr; i++)
		if (!uid || figure(&wheels->wheels[i], "uid") == *uid)
			bytes += figure(&wheels->wheels[i], "bytes");
	return bytes;
}

#define PARAMETERS	"/sys/module/twheel/parameters/"

/* Check each user once, at the first of the user's wheels. */
static void memory_check(struct looks *looks)
{
	const struct wheels *wheels = &looks->now;
	__u64 all_kb = 0, user_kb = 0, kb, uid;
	size_t i, k;

	if (!read_number(PARAMETERS "max_memory_kb", &all_kb) ||
	    !read_number(PARAMETERS "max_user_memory_kb", &user_kb))
		return;
	kb = bytes_of(wheels, NULL) / 1024;
	if (kb >= MEMORY_SHARE * all_kb)
		report_add(&looks->report, PROBLEM, "memory-limit", NULL,
			   "Close wheels, or write a greater limit, in kB, to /sys/module/twheel/parameters/max_memory_kb.",
			   "The wheels take %llu kB, and max_memory_kb is %llu: ARM and open say ENOSPC to everybody.",
			   kb, all_kb);
	for (i = 0; i < wheels->nr; i++) {
		uid = figure(&wheels->wheels[i], "uid");
		for (k = 0; figure(&wheels->wheels[k], "uid") != uid; k++)
			;
		kb = bytes_of(wheels, &uid) / 1024;
		if (k < i || kb < MEMORY_SHARE * user_kb)
			continue;
		report_add(&looks->report, PROBLEM, "user-memory-limit",
			   json_pack("{s:I}", "uid", (json_int_t)uid),
			   "Close wheels of this user, or write a greater limit, in kB, to /sys/module/twheel/parameters/max_user_memory_kb.",
			   "The wheels of user %llu take %llu kB, and max_user_memory_kb is %llu: ARM and open say ENOSPC to this user.",
			   uid, kb, user_kb);
	}
}

/* If there are no PIDs, all wheels are asked for. */
static bool is_asked_for(const struct wheel *wheel, const struct options *options)
{
	int i;

	for (i = 0; i < options->nr; i++)
		if (is_held_by(wheel, options->numbers[i]))
			return true;
	return !options->nr;
}

static void readers_begin(struct looks *looks, const struct options *options)
{
	size_t i;

	looks->readers = calloc(looks->before.nr ?: 1, sizeof(*looks->readers));
	if (!looks->readers)
		err(UNKNOWN, "watching the readers");
	for (i = 0; i < looks->before.nr; i++)
		if (is_asked_for(&looks->before.wheels[i], options))
			reader_begin(&looks->readers[looks->nr_readers++],
				     &looks->before.wheels[i], options->nap_ns);
}

static const struct reader *reader_find(const struct looks *looks, __u64 number)
{
	size_t i;

	for (i = 0; i < looks->nr_readers; i++)
		if (looks->readers[i].wheel->number == number)
			return &looks->readers[i];
	return NULL;
}

/* How much processor time this program has used. */
static __u64 taken_ns(void)
{
	struct timespec taken;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &taken);
	return taken.tv_sec * NS_PER_S + taken.tv_nsec;
}

static void watch_step(struct looks *looks, __u64 step_ns)
{
	__u64 was_ns = looks->watched_at_ns;
	size_t i;

	sleep_ns(step_ns);
	looks->watched_at_ns = now_ns();
	looks->watched_ns += looks->watched_at_ns - was_ns;
	for (i = 0; i < looks->nr_kthreads; i++)
		thread_watch(&looks->kthreads[i], looks->watched_at_ns - was_ns);
	for (i = 0; i < looks->nr_readers; i++)
		reader_watch(&looks->readers[i], step_ns);
}

static void watch(struct looks *looks, __u64 interval_ns, double share)
{
	__u64 now = now_ns(), end_ns = now + interval_ns, step_ns = STEP_NS;
	__u64 before_ns = taken_ns(), steps = 0;
	size_t i;

	for (looks->watched_at_ns = now; now < end_ns; now = now_ns()) {
		watch_step(looks, step_ns < end_ns - now ? step_ns : end_ns - now);
		step_ns = (taken_ns() - before_ns) / share / ++steps;
		step_ns = step_ns > STEP_NS ? step_ns : STEP_NS;
	}
	for (i = 0; i < looks->nr_readers; i++)
		reader_end(&looks->readers[i]);
}

/* Take two snapshots, and add the findings.  Return the number of wheels that were watched. */
static size_t findings_add(struct looks *looks, const struct options *options, __u64 interval_ns)
{
	__u64 began_ns = now_ns();
	size_t i, nr = 0;

	wheels_look(&looks->before);
	kthreads_look(looks);
	readers_begin(looks, options);
	watch(looks, interval_ns, options->watch ? WATCH_SHARE : LOOKS_SHARE);
	looks->ns = now_ns() - began_ns;
	wheels_look(&looks->now);
	units_find(&looks->now);
	for (i = 0; i < looks->now.nr; i++) {
		const struct wheel *wheel = &looks->now.wheels[i];
		const struct wheel *was = wheels_find(&looks->before, wheel->number);
		const struct reader *reader = reader_find(looks, wheel->number);

		if (!was || !is_asked_for(wheel, options))
			continue;
		nr++;
		if (reader)
			reader_report(reader, wheel, looks->ns, &looks->report);
		expiry_check(looks, was, wheel);
		room_check(looks, wheel);
	}
	memory_check(looks);
	if (!nr && options->nr)
		report_add(&looks->report, UNKNOWN, "no-wheel", NULL,
			   "Run twheelctl as root, which sees the wheels of all users.",
			   "No wheel of these processes is seen.");
	free(looks->readers);
	wheels_free(&looks->before);
	wheels_free(&looks->now);
	return nr;
}

static _Noreturn void watch_for_ever(const struct options *options)
{
	struct changes changes = { .json = options->json };
	static struct looks looks;

	for (;;) {
		looks = (struct looks){};
		report_begin(&looks.report, true);
		findings_add(&looks, options, options->interval_ns ?: WATCH_NS);
		changes_print(&changes, &looks.report);
	}
}

static int look_once(const struct options *options)
{
	__u64 interval_ns = options->interval_ns ?: INTERVAL_NS;
	char sentence[256], all[TEXT_SIZE];
	static struct looks looks;
	size_t nr;

	report_begin(&looks.report, options->json);
	nr = findings_add(&looks, options, interval_ns);
	snprintf(sentence, sizeof(sentence),
		 "%zu wheel%s watched for %s, and none is late, full or left unread.%s%s", nr,
		 nr == 1 ? " was" : "s were", time_text(all, looks.ns),
		 interval_ns < SHORT_NS ?
		 " To see what happens only now and then, watch for longer (--interval=60)." : "",
		 looks.now.complete ? "" : " Those of other users were left out.");
	return report_end(&looks.report, sentence);
}

int late_run(const struct options *options)
{
	if (options->watch)
		watch_for_ever(options);
	return look_once(options);
}
