/* SPDX-License-Identifier: GPL-2.0 */
/*
 * twheelctl late: the threads that are watched, and how wheels are read
 */
#ifndef TWHEELCTL_LATE_H
#define TWHEELCTL_LATE_H

#include "twheelctl.h"

/* threads.c */

/**
 * struct thread - a thread that is watched
 * @task: its state
 * @has_times: the kernel keeps the times below
 * @run_ns: how long it has run
 * @waited_ns: how long it has waited for a processor, without the present wait
 * @first_run_ns: @run_ns when the watch began
 * @first_waited_ns: @waited_ns when the watch began
 * @stuck_ns: how long it was seen ready since then without running
 */
struct thread {
	struct task task;
	bool has_times;
	__u64 run_ns;
	__u64 waited_ns;
	__u64 first_run_ns;
	__u64 first_waited_ns;
	__u64 stuck_ns;
};

void thread_begin(struct thread *thread, const struct task *task);
void thread_watch(struct thread *thread, __u64 step_ns);
__u64 thread_ran(const struct thread *thread);
__u64 thread_waited(const struct thread *thread);
bool hog_find(int processor, struct task *hog);

/* readers.c */

/**
 * struct sample - how a wheel is read, at a moment
 * @began_ns: when the sample began, CLOCK_MONOTONIC
 * @ended_ns: when the sample ended
 * @unread: as in fdinfo
 * @delivered: likewise
 * @revoked: likewise
 */
struct sample {
	__u64 began_ns;
	__u64 ended_ns;
	__u64 unread;
	__u64 delivered;
	__u64 revoked;
};

/**
 * struct pauses - times in which events waited and nobody read them
 * @times: how many
 * @ns: how long in all
 * @longest_ns: the longest
 * @ran_ns: how long the busiest thread of the reader ran in the longest pause
 * @waited_ns: how long a thread of the reader waited for a processor in that pause
 * @waiter: that thread
 * @unread: the greatest number of events that waited
 */
struct pauses {
	__u64 times;
	__u64 ns;
	__u64 longest_ns;
	__u64 ran_ns;
	__u64 waited_ns;
	struct task waiter;
	__u64 unread;
};

/**
 * struct reader - the reader of a wheel, while it is watched
 * @wheel: the wheel, as it was first seen
 * @least_ns: shorter pauses do not count
 * @last: the last sample; all 0 if there is none
 * @pause_ns: how long the present pause was seen to last
 * @watched_ns: the part of it in which the threads below were watched
 * @unread: how many events waited in it
 * @threads: the threads of all processes that hold the wheel, while they are watched
 * @nr_threads: how many
 * @has_few: there were few of them
 * @naps: pauses in which the reader did something else
 * @waits: pauses in which it waited for a processor
 * @unclear: pauses for which nobody knows which it was
 * @pauses_now: the last sample was in a pause that counts
 */
struct reader {
	const struct wheel *wheel;
	__u64 least_ns;
	struct sample last;
	__u64 pause_ns;
	__u64 watched_ns;
	__u64 unread;
	struct thread *threads;
	size_t nr_threads;
	bool has_few;
	struct pauses naps;
	struct pauses waits;
	struct pauses unclear;
	bool pauses_now;
};

void reader_begin(struct reader *reader, const struct wheel *wheel, __u64 nap_ns);
void reader_watch(struct reader *reader, __u64 step_ns);
void reader_end(struct reader *reader);
void reader_report(const struct reader *reader, const struct wheel *wheel, __u64 ns,
		   struct report *report);

/* changes.c */

/**
 * struct changes - the findings of the last interval of late --watch
 * @json: print JSON instead of text
 * @findings: the problems then; NULL at first
 */
struct changes {
	bool json;
	json_t *findings;
};

void changes_print(struct changes *changes, struct report *report);

#endif /* TWHEELCTL_LATE_H */
