// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl late: whether a wheel is read in time
 *
 * The fdinfo of a wheel is sampled again and again.  If events waited at a sample, and none was
 * read until the next one, the reader has paused.  That is true however late the sample is, but a
 * machine that holds up twheelctl may hold up the reader as well, so a late sample is counted as if
 * it came after two steps.
 *
 * In a pause, the threads of all processes that hold the wheel are watched.  If one of them waited
 * for a processor, that may have been the reader, and the pause is no fault of its program.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "late.h"

/* The shortest pause of a reader that counts, by default. */
#define NAP_NS		(100 * NS_PER_MS)

/*
 * If so many threads or fewer hold a wheel, they are watched whenever events wait; if more, only in
 * a pause.
 */
#define THREADS_FEW	16

/* How wheels are sampled */

/* `key' includes the end of the line before it, and the tab behind it. */
static __u64 number_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* If the descriptor was closed since, its number may be that of another file. */
static bool sample_take(const struct wheel *wheel, struct sample *sample)
{
	char path[64], text[4096];
	json_t *holder;
	size_t i;

	json_array_foreach(json_object_get(wheel->info, "holders"), i, holder) {
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d",
			 (int)json_integer_value(json_object_get(holder, "pid")),
			 (int)json_integer_value(json_object_get(holder, "fd")));
		sample->began_ns = now_ns();
		if (read_text(path, text, sizeof(text)) < 0 ||
		    number_of(text, "\nwheel:\t") != wheel->number)
			continue;
		sample->ended_ns = now_ns();
		sample->unread = number_of(text, "\nunread:\t");
		sample->delivered = number_of(text, "\ndelivered:\t");
		sample->revoked = number_of(text, "\nrevoked:\t");
		return true;
	}
	return false;
}

/* Whether events waited all the time: some did, and none was taken in between. */
static bool is_pause(const struct sample *was, const struct sample *now)
{
	return was->unread && now->unread >= was->unread &&
	       now->delivered == was->delivered && now->revoked == was->revoked;
}

/* The cause of a pause */

static void threads_add(struct reader *reader, json_int_t pid)
{
	struct task task;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && tasks_next(dir, &task)) {
		reader->threads = reallocarray(reader->threads, reader->nr_threads + 1,
					       sizeof(*reader->threads));
		if (!reader->threads)
			err(UNKNOWN, "watching a reader");
		thread_begin(&reader->threads[reader->nr_threads++], &task);
	}
	if (dir)
		closedir(dir);
}

/* The descriptors of a process stand together. */
static void threads_find(struct reader *reader)
{
	json_int_t last = 0, pid;
	json_t *holder;
	size_t i;

	json_array_foreach(json_object_get(reader->wheel->info, "holders"), i, holder) {
		pid = json_integer_value(json_object_get(holder, "pid"));
		if (pid != last)
			threads_add(reader, pid);
		last = pid;
	}
	reader->has_few = reader->nr_threads <= THREADS_FEW;
}

static void pause_goes_on(struct reader *reader, __u64 ns)
{
	size_t i;

	reader->pause_ns += ns;
	if (reader->last.unread > reader->unread)
		reader->unread = reader->last.unread;
	if (!reader->threads) {
		threads_find(reader);
		return;
	}
	reader->watched_ns += ns;
	for (i = 0; i < reader->nr_threads; i++)
		thread_watch(&reader->threads[i], ns);
}

static void pause_count(struct pauses *pauses, const struct reader *reader, __u64 ran_ns,
			const struct thread *waiter)
{
	pauses->times++;
	pauses->ns += reader->pause_ns;
	if (reader->unread > pauses->unread)
		pauses->unread = reader->unread;
	if (reader->pause_ns <= pauses->longest_ns)
		return;
	pauses->longest_ns = reader->pause_ns;
	pauses->ran_ns = ran_ns;
	if (!waiter)
		return;
	pauses->waiter = waiter->task;
	pauses->waited_ns = thread_waited(waiter);
}

/* Judge a pause that is over; some of what its threads did may have been in the step behind it. */
static void pause_judge(struct reader *reader)
{
	const struct thread *waiter = NULL;
	__u64 waited_ns = 0, ran_ns = 0;
	bool has_times = reader->threads;
	size_t i;

	for (i = 0; i < reader->nr_threads; i++) {
		struct thread *thread = &reader->threads[i];

		thread_watch(thread, 0);
		has_times &= thread->has_times;
		if (thread_ran(thread) > ran_ns)
			ran_ns = thread_ran(thread);
		if (thread_waited(thread) > waited_ns) {
			waited_ns = thread_waited(thread);
			waiter = thread;
		}
	}
	if (ran_ns > reader->pause_ns)
		ran_ns = reader->pause_ns;
	if (!has_times)
		pause_count(&reader->unclear, reader, ran_ns, waiter);
	else if (waited_ns < reader->watched_ns / 2 &&
		 waited_ns + reader->least_ns <= reader->watched_ns)
		pause_count(&reader->naps, reader, ran_ns, waiter);
	else if (waited_ns >= reader->least_ns)
		pause_count(&reader->waits, reader, ran_ns, waiter);
}

static void pause_end(struct reader *reader)
{
	reader->pauses_now = reader->watched_ns >= reader->least_ns;
	if (reader->pauses_now)
		pause_judge(reader);
	free(reader->threads);
	reader->threads = NULL;
	reader->nr_threads = 0;
	reader->pause_ns = 0;
	reader->watched_ns = 0;
	reader->unread = 0;
}

/* Only pauses of `nap_ns' count; if that is 0, those of a tick and the slack, or of NAP_NS. */
void reader_begin(struct reader *reader, const struct wheel *wheel, __u64 nap_ns)
{
	__u64 late_ns = figure(wheel, "tick_ns") + figure(wheel, "slack_ns");

	*reader = (struct reader){ .wheel = wheel, .has_few = true };
	reader->least_ns = nap_ns ?: late_ns > NAP_NS ? late_ns : NAP_NS;
	sample_take(wheel, &reader->last);
}

/* Take the next sample, after a step that was meant to last `step_ns'. */
void reader_watch(struct reader *reader, __u64 step_ns)
{
	const struct sample was = reader->last;
	__u64 ns;

	reader->last = (struct sample){};
	if (!sample_take(reader->wheel, &reader->last) || !is_pause(&was, &reader->last)) {
		pause_end(reader);
		/* Another pause may begin. */
		if (reader->last.unread && reader->has_few)
			threads_find(reader);
		return;
	}
	ns = reader->last.began_ns - was.ended_ns;
	pause_goes_on(reader, ns < 2 * step_ns ? ns : 2 * step_ns);
}

void reader_end(struct reader *reader)
{
	pause_end(reader);
}

/* The report */

static json_t *about_pauses(const struct wheel *wheel, const struct pauses *pauses)
{
	json_t *json = about(wheel);

	json_object_set_new(json, "times", json_integer(pauses->times));
	json_object_set_new(json, "longest_ns", json_integer(pauses->longest_ns));
	return json;
}

/* "2 times in 10 s it left up to 31 events unread, for 0.61 s in all and 312 ms at most" */
#define PAUSES_SIZE	192

static const char *pauses_text(char text[PAUSES_SIZE], const struct pauses *pauses, __u64 ns)
{
	char all[TEXT_SIZE], sum[TEXT_SIZE], longest[TEXT_SIZE];

	snprintf(text, PAUSES_SIZE,
		 "%llu times in %s it left events unread, up to %llu of them, for %s in all and %s at most",
		 pauses->times, time_text(all, ns), pauses->unread, time_text(sum, pauses->ns),
		 time_text(longest, pauses->longest_ns));
	return text;
}

static void naps_report(const struct pauses *naps, const struct wheel *wheel, __u64 ns,
			struct report *report)
{
	char who[SUBJECT_SIZE], pauses[PAUSES_SIZE], ran[TEXT_SIZE], waited[TEXT_SIZE];

	report_add(report, PROBLEM, "reader-naps", about_pauses(wheel, naps),
		   "See what the process does then, by `strace -f -T -p PID' or `perf trace -p PID', and have another thread do that. twheel-late.bt draws how late events are read.",
		   "%s: its reader naps: %s; in that one, no thread of it ran for longer than %s, or waited longer than %s for a processor.",
		   subject(who, wheel), pauses_text(pauses, naps, ns), time_text(ran, naps->ran_ns),
		   time_text(waited, naps->waited_ns));
}

static void waits_report(const struct pauses *waits, const struct wheel *wheel, __u64 ns,
			 struct report *report)
{
	char who[SUBJECT_SIZE], pauses[PAUSES_SIZE], waited[TEXT_SIZE], there[128] = "";
	struct task hog;

	if (hog_find(waits->waiter.processor, &hog))
		snprintf(there, sizeof(there),
			 ", where thread %d (%s) runs with real-time priority %u", hog.pid,
			 hog.comm, hog.rt_priority);
	report_add(report, PROBLEM, "reader-waits", about_pauses(wheel, waits),
		   "Give the process a higher priority (`renice', `chrt'), or more of the processors (CPUQuota= of its unit, cpu.max of its cgroup), or the machine less to do.",
		   "%s: its reader gets no processor: %s; in that one, thread %d (%s) waited for %s for processor %d%s.",
		   subject(who, wheel), pauses_text(pauses, waits, ns), waits->waiter.pid,
		   waits->waiter.comm, time_text(waited, waits->waited_ns),
		   waits->waiter.processor, there);
}

static void unclear_report(const struct pauses *unclear, const struct wheel *wheel, __u64 ns,
			   struct report *report)
{
	char who[SUBJECT_SIZE], pauses[PAUSES_SIZE];

	report_add(report, UNKNOWN, "reader-late", about_pauses(wheel, unclear),
		   "Run twheelctl on the host, outside of a container, with a kernel that has /proc/PID/schedstat.",
		   "%s: its reader is late: %s; whether it did something else, or waited for a processor, cannot be told: the times of its threads are not seen here.",
		   subject(who, wheel), pauses_text(pauses, unclear, ns));
}

static void sleeps_report(const struct wheel *wheel, __u64 ns, struct report *report)
{
	/* For a process, and for a wheel that only systemd holds */
	static const char *const advice[] = {
		"Look at what the process waits for (its stack, a debugger), and continue it if it is stopped (SIGCONT). Events are not lost meanwhile.",
		"No process reads it: see `systemctl status' of the unit, and start it again. Events are not lost meanwhile.",
	};
	char who[SUBJECT_SIZE], text[TEXT_SIZE], units[UNITS_SIZE];

	report_add(report, PROBLEM, "reader-sleeps", about(wheel),
		   advice[main_holder(wheel) == 1 && *units_text(units, wheel)],
		   "%s: %llu events wait to be read, and none was read in %s.",
		   subject(who, wheel), figure(wheel, "unread"), time_text(text, ns));
}

static void slow_report(const struct wheel *wheel, __u64 read, __u64 more, __u64 ns,
			struct report *report)
{
	char who[SUBJECT_SIZE], text[TEXT_SIZE];

	report_add(report, PROBLEM, "reader-slow", about(wheel),
		   "Read more events at a time, do less for each, or read with more threads.",
		   "%s: events come faster than they are read: in %s %llu were read, and %llu more wait now, %llu in all.",
		   subject(who, wheel), time_text(text, ns), read, more,
		   figure(wheel, "unread"));
}

/* Report what the kernel remembers: events were read late at some time, and that is over. */
static void was_unread(const struct reader *reader, const struct wheel *wheel,
		       struct report *report)
{
	__u64 ago_ns = figure(wheel, "now_ns") - figure(wheel, "longest_unread_at_ns");
	char who[SUBJECT_SIZE], least[TEXT_SIZE], longest[TEXT_SIZE], ago[TEXT_SIZE];
	__u64 tick_ns = figure(wheel, "tick_ns"), late = 0, least_ns = 0, longest_ns = 0;
	char date[TEXT_SIZE];
	json_t *number;
	size_t i;

	json_array_foreach(json_object_get(wheel->info, "unread_ticks"), i, number) {
		__u64 ns = i ? tick_ns << (i - 1) : 0;

		if (ns < reader->least_ns || !json_integer_value(number))
			continue;
		late += json_integer_value(number);
		least_ns = least_ns ?: ns;
		longest_ns = ns;
	}
	if (!late || !strcmp(word(wheel, "clock"), "virtual"))
		return;
	report_add(report, DONE, "was-unread", about(wheel),
		   "Nothing has to be done. If it happens again, run `twheelctl late' with an --interval in which it happens, or with --watch, which names the cause.",
		   "%s: it was read late, and this is over: %llu events of %llu had been unread for %s or longer, one for %s or longer, which was read %s ago (%s).",
		   subject(who, wheel), late, figure(wheel, "delivered"),
		   time_text(least, least_ns), time_text(longest, longest_ns),
		   time_text(ago, ago_ns), date_text(date, ago_ns));
}

/* Report how the wheel is read, by its last snapshot, `ns' after the first. */
void reader_report(const struct reader *reader, const struct wheel *wheel, __u64 ns,
		   struct report *report)
{
	__u64 unread = figure(wheel, "unread"), before = figure(reader->wheel, "unread");
	__u64 read = growth(reader->wheel, wheel, "delivered");

	if (unread && before && !read && !reader->waits.times) {
		sleeps_report(wheel, ns, report);
		return;
	}
	if (!reader->naps.times && !reader->waits.times && !reader->unclear.times)
		was_unread(reader, wheel, report);
	if (reader->naps.times)
		naps_report(&reader->naps, wheel, ns, report);
	if (reader->waits.times)
		waits_report(&reader->waits, wheel, ns, report);
	if (reader->unclear.times)
		unclear_report(&reader->unclear, wheel, ns, report);
	/* If the reader is in a pause, the events that it has left say nothing about its pace. */
	if (before && read && unread > before && unread - before > read / 10 &&
	    !reader->pauses_now)
		slow_report(wheel, read, unread - before, ns, report);
}
