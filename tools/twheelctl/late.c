// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl late: which wheels are late or stuck, and why
 *
 * All is drawn from two looks at fdinfo, an interval apart, in which the kthreads are watched.  Of
 * a wheel: unread and delivered tell how it is read, late and alarm_ns how it is expired, live
 * whether it is full.  Of the kthreads: how long they ran, and how long they waited for a
 * processor.
 */
#include <stdlib.h>
#include <string.h>

#include "twheelctl.h"

/*
 * From these shares of the interval on, a kthread waits for a processor, or has work to do, for
 * which it runs or waits.  The softirq expires as well, and nothing shows for how long.
 */
#define WAITS_SHARE	0.2
#define BUSY_SHARE	0.1

/* A user who takes this share of a limit of memory can hardly arm more. */
#define MEMORY_SHARE	0.95

#define KTHREADS_MAX	64

/* Into so many steps the interval is divided, to see how the kthreads fare in each. */
#define STEPS		20

/**
 * struct kthread - a thread of the module that serves wheels
 * @task: how it looks
 * @has_times: the kernel keeps the times below
 * @run_ns: how long it has run
 * @waited_ns: how long it has waited for a processor, without the present wait
 * @stuck_ns: how long it was ready since the first look, and did not run, as far as that
 *	was watched
 */
struct kthread {
	struct task task;
	bool has_times;
	__u64 run_ns;
	__u64 waited_ns;
	__u64 stuck_ns;
};

/**
 * struct look - what is to be seen at a time
 * @wheels: the wheels
 * @kthreads: the threads of the module
 * @nr_kthreads: how many
 */
struct look {
	struct wheels wheels;
	struct kthread kthreads[KTHREADS_MAX];
	size_t nr_kthreads;
};

/**
 * struct looks - two of them, and what is made of them
 * @before: the first
 * @now: the second
 * @ns: the time between them
 * @report: the findings
 */
struct looks {
	struct look before;
	struct look now;
	__u64 ns;
	struct report report;
};

static void times_read(struct kthread *kthread)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", kthread->task.pid);
	kthread->has_times = read_text(path, text, sizeof(text)) > 0 &&
			     sscanf(text, "%llu %llu", &kthread->run_ns,
				    &kthread->waited_ns) == 2;
}

static void kthreads_look(struct look *look)
{
	DIR *proc = opendir("/proc");
	struct task task;

	while (proc && look->nr_kthreads < KTHREADS_MAX && tasks_next(proc, &task)) {
		struct kthread *kthread = &look->kthreads[look->nr_kthreads];

		if (!task.kthread || strncmp(task.comm, "twheel/", 7))
			continue;
		*kthread = (struct kthread){ .task = task };
		times_read(kthread);
		look->nr_kthreads++;
	}
	if (proc)
		closedir(proc);
}

/* Let a step of the interval pass, and note which kthreads were ready and did not run in it. */
static void kthreads_watch(struct look *look, __u64 step_ns)
{
	__u64 begin_ns = now_ns();
	char path[64];
	size_t i;

	sleep_ns(step_ns);
	for (i = 0; i < look->nr_kthreads; i++) {
		struct kthread *kthread = &look->kthreads[i];
		struct kthread was = *kthread;

		snprintf(path, sizeof(path), "/proc/%d/stat", was.task.pid);
		if (!task_read(path, &kthread->task))
			continue;
		times_read(kthread);
		if (was.task.state == 'R' && kthread->task.state == 'R' &&
		    was.run_ns == kthread->run_ns)
			kthread->stuck_ns += now_ns() - begin_ns;
	}
}

static const struct kthread *kthread_find(const struct look *look, const char *name)
{
	size_t i;

	for (i = 0; i < look->nr_kthreads; i++)
		if (!strcmp(look->kthreads[i].task.comm, name))
			return &look->kthreads[i];
	return NULL;
}

static __u64 growth(const struct wheel *before, const struct wheel *now, const char *key)
{
	return figure(now, key) - figure(before, key);
}

/* What each finding about a wheel has in JSON; in text it begins with the same. */
static json_t *about(const struct wheel *wheel)
{
	return json_pack("{s:I,s:s,s:I,s:O}", "wheel", (json_int_t)wheel->number, "name",
			 word(wheel, "name"), "uid", (json_int_t)figure(wheel, "uid"),
			 "holders", json_object_get(wheel->info, "holders"));
}

#define SUBJECT_SIZE	192

/* "Wheel 3 "sessions" of user 1000 (process 812, daemon, is stopped)" */
static const char *subject(char text[SUBJECT_SIZE], const struct wheel *wheel)
{
	const json_t *holder = json_array_get(json_object_get(wheel->info, "holders"), 0);
	struct task task;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat",
		 (int)json_integer_value(json_object_get(holder, "pid")));
	if (!task_read(path, &task))
		task = (struct task){ .comm = "?" };
	snprintf(text, SUBJECT_SIZE, "Wheel %llu \"%s\" of user %llu (process %d, %s, %s)",
		 wheel->number, word(wheel, "name"), figure(wheel, "uid"), task.pid, task.comm,
		 task.state == 'T' || task.state == 't' ? "is stopped" :
		 task.state == 'R' ? "runs" : task.state == 'D' ? "waits for the kernel" : "sleeps");
	return text;
}

/* How it is read */

static void reader_check(struct looks *looks, const struct wheel *was, const struct wheel *wheel)
{
	__u64 unread = figure(wheel, "unread"), unread_before = figure(was, "unread");
	__u64 read = growth(was, wheel, "delivered");
	char who[SUBJECT_SIZE], text[TEXT_SIZE];

	if (!unread || !unread_before)
		return;
	time_text(text, looks->ns);
	if (!read)
		report_add(&looks->report, PROBLEM, "reader-sleeps", about(wheel),
			   "Look at what the process waits for (its stack, a debugger), and continue it if it is stopped (SIGCONT). Events are not lost meanwhile.",
			   "%s: %llu events wait to be read, and none was read in %s.",
			   subject(who, wheel), unread, text);
	else if (unread > unread_before && unread - unread_before > read / 10)
		report_add(&looks->report, PROBLEM, "reader-slow", about(wheel),
			   "Read more events at a time, do less for each, or read with more threads.",
			   "%s: events come faster than they are read: in %s %llu were read, and %llu more wait now, %llu in all.",
			   subject(who, wheel), text, read, unread - unread_before, unread);
}

/* How it is expired */

/* The thread of highest priority among those that run, or could, where the kthread waits. */
static bool hog_find(int processor, struct task *hog)
{
	DIR *proc = opendir("/proc"), *threads;
	struct task task, thread;
	char path[64];

	*hog = (struct task){};
	while (proc && tasks_next(proc, &task)) {
		snprintf(path, sizeof(path), "/proc/%d/task", task.pid);
		threads = opendir(path);
		while (threads && tasks_next(threads, &thread))
			if (thread.state == 'R' && thread.processor == processor &&
			    thread.rt_priority > hog->rt_priority)
				*hog = thread;
		if (threads)
			closedir(threads);
	}
	if (proc)
		closedir(proc);
	return hog->rt_priority;
}

/* The kernel counts a wait when it is over: one that goes on was watched. */
static __u64 kthread_waited(const struct kthread *was, const struct kthread *kthread)
{
	__u64 waited_ns = kthread->waited_ns - was->waited_ns;

	return waited_ns > kthread->stuck_ns ? waited_ns : kthread->stuck_ns;
}

/* The kthread waited for a processor, where `hog' runs, or threads that have no such priority. */
static void waits_add(struct looks *looks, const struct kthread *kthread, __u64 waited_ns,
		      const char *who, const struct wheel *wheel, const struct task *hog)
{
	/* Where no real-time thread is seen, and where one is */
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
		   time_text(all, looks->ns), kthread->task.processor, there);
}

/* How many timeouts of a user's wheels expired at a kthread; each of these wheels is one. */
static __u64 expired_of(const struct looks *looks, const char *kthread, __u64 uid)
{
	__u64 expired = 0;
	size_t i;

	for (i = 0; i < looks->now.wheels.nr; i++) {
		const struct wheel *wheel = &looks->now.wheels.wheels[i];
		const struct wheel *was = wheels_find(&looks->before.wheels, wheel->number);

		if (was && figure(wheel, "uid") == uid && !strcmp(word(wheel, "kthread"), kthread))
			expired += growth(was, wheel, "expirations");
	}
	return expired;
}

/* A wheel of the user whose wheels expired most at a kthread, and how many that are. */
static const struct wheel *busiest(const struct looks *looks, const char *kthread, __u64 *most)
{
	const struct wheel *busy = NULL;
	size_t i;

	*most = 0;
	for (i = 0; i < looks->now.wheels.nr; i++) {
		const struct wheel *wheel = &looks->now.wheels.wheels[i];
		__u64 expired = expired_of(looks, kthread, figure(wheel, "uid"));

		if (expired <= *most || strcmp(word(wheel, "kthread"), kthread))
			continue;
		*most = expired;
		busy = wheel;
	}
	return busy;
}

static bool kthread_is_busy(struct looks *looks, const struct kthread *was,
			    const struct kthread *kthread, const char *who,
			    const struct wheel *wheel)
{
	__u64 worked_ns = kthread->run_ns - was->run_ns + kthread_waited(was, kthread), most, own;
	const struct wheel *busy = busiest(looks, kthread->task.comm, &most);
	char worked[TEXT_SIZE], all[TEXT_SIZE], flooder[SUBJECT_SIZE];

	if (worked_ns < BUSY_SHARE * looks->ns || !busy)
		return false;
	time_text(worked, worked_ns);
	time_text(all, looks->ns);
	own = expired_of(looks, kthread->task.comm, figure(wheel, "uid"));
	if (figure(busy, "uid") != figure(wheel, "uid"))
		report_add(&looks->report, PROBLEM, "flood", about(wheel),
			   "Have that user's program arm less, or lower max_user_memory_kb; or load the module with more kthreads (kthreads=).",
			   "%s: another user's timeouts keep %s busy, which serves it and had work to do for %s of %s: %llu of user %llu expired there meanwhile, and %llu of this one. %s is one of that user's.",
			   who, kthread->task.comm, worked, all, most, figure(busy, "uid"), own,
			   subject(flooder, busy));
	else
		report_add(&looks->report, PROBLEM, "overload", about(wheel),
			   "Let timeouts expire together (slack), use a longer tick, or share the load among several wheels.",
			   "%s: the same user's timeouts keep %s busy, which serves it and had work to do for %s of %s: %llu expired there meanwhile.",
			   who, kthread->task.comm, worked, all, own);
	return true;
}

/* How long the kernel has owed the wheel a look, beyond a tick and its slack. */
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
	const struct kthread *was = kthread_find(&looks->before, word(wheel, "kthread"));
	const struct kthread *kthread = kthread_find(&looks->now, word(wheel, "kthread"));
	char ran[TEXT_SIZE], waited[TEXT_SIZE], all[TEXT_SIZE];
	__u64 waited_ns;
	struct task hog;
	bool waits;

	if (!was || !kthread || !was->has_times || !kthread->has_times) {
		report_add(&looks->report, UNKNOWN, "late", about(wheel),
			   "Run twheelctl on the host, outside of a container.",
			   "%s: why it is late cannot be told: the threads of the module, or their times, are not seen here.",
			   who);
		return;
	}
	waited_ns = kthread_waited(was, kthread);
	waits = waited_ns >= WAITS_SHARE * looks->ns;
	if (waits && hog_find(kthread->task.processor, &hog)) {
		waits_add(looks, kthread, waited_ns, who, wheel, &hog);
		return;
	}
	if (kthread_is_busy(looks, was, kthread, who, wheel))
		return;
	if (waits)
		waits_add(looks, kthread, waited_ns, who, wheel, NULL);
	else if (resolution_ns() > 1)
		report_add(&looks->report, PROBLEM, "low-resolution", about(wheel),
			   "`twheelctl check' says what to do.",
			   "%s: the kernel has no high-resolution timers.", who);
	else
		report_add(&looks->report, UNKNOWN, "late", about(wheel),
			   "Interrupts may have been off, or the host of a virtual machine has taken a processor away: trace it (perf, trace-cmd).",
			   "%s: why it is late cannot be told: in %s, %s ran for %s, and waited for a processor for %s.",
			   who, time_text(all, looks->ns), kthread->task.comm,
			   time_text(ran, kthread->run_ns - was->run_ns),
			   time_text(waited, waited_ns));
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
		report_add(&looks->report, UNKNOWN, "was-late", about(wheel),
			   "Run `twheelctl late' again when it happens, with --interval to cover it.",
			   "%s: %llu timeouts were late before, the last one by %s, %s ago; nothing was late in this interval, so why cannot be told.",
			   who, figure(wheel, "late"),
			   time_text(last, figure(wheel, "last_late_ns")),
			   time_text(ago, figure(wheel, "now_ns") -
				     figure(wheel, "last_late_at_ns")));
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

/* What the wheels of a user take, or those of all users. */
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

/* Each user once: at the first wheel that is the user's. */
static void memory_check(struct looks *looks)
{
	const struct wheels *wheels = &looks->now.wheels;
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

/* Without PIDs, all wheels are asked for. */
static bool is_asked_for(const struct wheel *wheel, const struct options *options)
{
	int i;

	for (i = 0; i < options->nr; i++)
		if (is_held_by(wheel, options->numbers[i]))
			return true;
	return !options->nr;
}

int late_run(const struct options *options)
{
	static struct looks looks;
	char sentence[128];
	__u64 began_ns = now_ns();
	size_t i, nr = 0;

	report_begin(&looks.report, options->json);
	wheels_look(&looks.before.wheels);
	kthreads_look(&looks.before);
	memcpy(looks.now.kthreads, looks.before.kthreads, sizeof(looks.now.kthreads));
	looks.now.nr_kthreads = looks.before.nr_kthreads;
	for (i = 0; i < STEPS; i++)
		kthreads_watch(&looks.now, options->interval_ns / STEPS);
	looks.ns = now_ns() - began_ns;
	wheels_look(&looks.now.wheels);
	for (i = 0; i < looks.now.wheels.nr; i++) {
		const struct wheel *wheel = &looks.now.wheels.wheels[i];
		const struct wheel *was = wheels_find(&looks.before.wheels, wheel->number);

		if (!was || !is_asked_for(wheel, options))
			continue;
		nr++;
		reader_check(&looks, was, wheel);
		expiry_check(&looks, was, wheel);
		room_check(&looks, wheel);
	}
	memory_check(&looks);
	if (!nr && options->nr)
		report_add(&looks.report, UNKNOWN, "no-wheel", NULL,
			   "Run twheelctl as root, which sees the wheels of all users.",
			   "No wheel of these processes is seen.");
	snprintf(sentence, sizeof(sentence),
		 "%zu wheels were watched, and none is late, full or left unread.%s", nr,
		 looks.now.wheels.complete ? "" : " Those of other users were left out.");
	wheels_free(&looks.before.wheels);
	wheels_free(&looks.now.wheels);
	return report_end(&looks.report, sentence);
}
