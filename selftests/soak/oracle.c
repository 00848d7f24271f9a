// SPDX-License-Identifier: GPL-2.0
/*
 * The oracle: it makes the calls on a wheel, and foretells each event, verdict and counter.
 *
 * In simulated time, processing takes no time, so little is left to chance: only a reading of the
 * clock moves it, by some 256 ns. A timeout has to expire in the very tick whose edge is the first
 * at or after its deadline.
 */
#include "soak.h"

#define EVENTS_AT_A_TIME	4096

bool oracle_open(struct oracle *o, __u32 nr_jobs)
{
	o->nr_jobs = nr_jobs;
	o->job = calloc(nr_jobs, sizeof(*o->job));
	o->arm = calloc(ORACLE_BATCH, sizeof(*o->arm));
	o->rearm = calloc(ORACLE_BATCH, sizeof(*o->rearm));
	o->cancel = calloc(ORACLE_BATCH, sizeof(*o->cancel));
	o->cancel_index = calloc(ORACLE_BATCH, sizeof(*o->cancel_index));
	o->event = calloc(EVENTS_AT_A_TIME, sizeof(*o->event));
	o->slack_ns = o->setup.clock == TWHEEL_CLOCK_VIRTUAL ? 0 : o->setup.tick_ns;
	o->setup.max_pending = nr_jobs;
	o->fd = tw_open_setup(O_NONBLOCK, &o->setup);
	if (!o->job || !o->arm || !o->rearm || !o->cancel || !o->cancel_index || !o->event ||
	    o->fd < 0) {
		fault(FAULT_BOOKS, "no wheel for %u timeouts: %d", nr_jobs, o->fd);
		return false;
	}
	oracle_stamp(o);
	return true;
}

void oracle_close(struct oracle *o)
{
	if (o->fd >= 0)
		close(o->fd);
	free(o->job);
	free(o->arm);
	free(o->rearm);
	free(o->cancel);
	free(o->cancel_index);
	free(o->event);
}

void oracle_stamp(struct oracle *o)
{
	static const clockid_t clockid[] = {
		[TWHEEL_CLOCK_MONOTONIC - TWHEEL_CLOCK_MONOTONIC] = CLOCK_MONOTONIC,
		[TWHEEL_CLOCK_BOOTTIME - TWHEEL_CLOCK_MONOTONIC] = CLOCK_BOOTTIME,
		[TWHEEL_CLOCK_REALTIME - TWHEEL_CLOCK_MONOTONIC] = CLOCK_REALTIME,
		[TWHEEL_CLOCK_TAI - TWHEEL_CLOCK_MONOTONIC] = CLOCK_TAI,
	};

	if (o->setup.clock != TWHEEL_CLOCK_VIRTUAL)
		o->now_ns = tw_now(clockid[o->setup.clock - TWHEEL_CLOCK_MONOTONIC]);
}

/* ---- the state that must be ---------------------------------------------- */

__u64 oracle_edge_ns(const struct oracle *o, __u64 deadline_ns)
{
	if (deadline_ns >= TWHEEL_TIME_NEVER)
		return TWHEEL_TIME_NEVER;
	return tw_round_up(deadline_ns, o->setup.tick_ns);
}

/* The first edge that the slack of a job leaves. */
static __u64 job_edge_ns(const struct job *job, __u64 deadline_ns)
{
	__u64 edge_ns = tw_round_up(deadline_ns, job->stride_ns);

	return edge_ns > TWHEEL_TIME_NEVER ? TWHEEL_TIME_NEVER : edge_ns;
}

static __u32 job_slack_ticks(const struct oracle *o, const struct job *job)
{
	return job->stride_ns / o->setup.tick_ns - 1;
}

/* The earliest time at which an event of the job may come. */
static __u64 job_due_ns(const struct job *job)
{
	return job->overdue ? job->armed_ns : job_edge_ns(job, job->deadline_ns);
}

/*
 * The time from which on an event of the job is late. If it was overdue when armed, and the clock
 * was set back before it expired, it waits for its edge after all.
 */
static __u64 job_wanted_ns(const struct oracle *o, const struct job *job, __u64 deadline_ns)
{
	__u64 edge_ns = job_edge_ns(job, deadline_ns);

	if (!job->overdue || deadline_ns > job->armed_ns)
		return edge_ns;
	return o->in_order || edge_ns < job->armed_ns ? job->armed_ns : edge_ns;
}

/* The time by which its event must have come, unless a step has just made it due. */
static __u64 job_late_ns(const struct oracle *o, const struct job *job)
{
	__u64 slop_ns = job->overdue ? 0 : job->slop_ns;
	__u64 due_ns = job_wanted_ns(o, job, job->deadline_ns + slop_ns);

	return due_ns == TWHEEL_TIME_NEVER ? due_ns : due_ns + o->slack_ns;
}

static __u64 job_limit(const struct job *job, __u64 periods)
{
	return job->repeats && periods > job->repeats ? job->repeats : periods;
}

/* How many of its deadlines have passed by a time. */
static __u64 job_passed(const struct job *job, __u64 at_ns)
{
	if (at_ns < job->deadline_ns || job->deadline_ns >= TWHEEL_TIME_NEVER)
		return 0;
	if (!job->interval_ns || job->delay)
		return 1;
	return job_limit(job, (at_ns - job->deadline_ns) / job->interval_ns + 1);
}

/* How many times it has expired by a time. */
static __u64 job_expired(const struct job *job, __u64 at_ns)
{
	return job_passed(job, at_ns - at_ns % job->stride_ns);
}

static void job_begin(struct oracle *o, struct job *job, const struct twheel_arm *arm,
		      __u64 before_ns)
{
	__u64 deadline_ns = arm->expires_ns;

	job->slop_ns = 0;
	if (!(arm->flags & TWHEEL_ARM_ABSOLUTE)) {
		deadline_ns = deadline_ns >= TWHEEL_TIME_NEVER - before_ns ? TWHEEL_TIME_NEVER :
			      deadline_ns + before_ns;
		job->slop_ns = o->now_ns - before_ns;
	}
	job->id = arm->id;
	job->deadline_ns = deadline_ns;
	job->interval_ns = arm->interval_ns;
	if (arm->interval_ns && arm->interval_ns < o->setup.tick_ns)
		job->interval_ns = o->setup.tick_ns;
	job->stride_ns = o->setup.tick_ns;
	while (2 * job_slack_ticks(o, job) + 1 <= arm->slack_ticks)
		job->stride_ns *= 2;
	job->armed_ns = before_ns;
	job->repeats = arm->repeats;
	job->live = true;
	job->delay = arm->flags & TWHEEL_ARM_FIXED_DELAY;
	job->overdue = job->deadline_ns <= before_ns && job->deadline_ns < TWHEEL_TIME_NEVER;
}

/* ---- calls, and the events that follow ----------------------------------- */

void oracle_arm(struct oracle *o, __u32 index, struct twheel_arm arm)
{
	if (o->nr_arm == ORACLE_BATCH)
		oracle_flush(o);
	arm.user_data = index;
	o->relative |= !(arm.flags & TWHEEL_ARM_ABSOLUTE);
	o->arm[o->nr_arm++] = arm;
}

void oracle_rearm(struct oracle *o, __u32 index, struct twheel_arm arm)
{
	if (o->nr_rearm == ORACLE_BATCH)
		oracle_flush(o);
	arm.user_data = index;
	arm.id = o->job[index].id;
	o->relative |= !(arm.flags & TWHEEL_ARM_ABSOLUTE);
	o->rearm[o->nr_rearm++] = arm;
}

void oracle_cancel(struct oracle *o, __u32 index)
{
	if (o->nr_cancel == ORACLE_BATCH)
		oracle_flush(o);
	o->cancel_index[o->nr_cancel] = index;
	o->cancel[o->nr_cancel++] = (struct twheel_cancel){ .id = o->job[index].id };
}

/* If an event of it is revoked, it is counted, but nobody reads it. */
static void account_unread(struct oracle *o, const struct job *job)
{
	__u64 most = job->overdue ? job_passed(job, o->now_ns + o->slack_ns) :
		     job_expired(job, o->now_ns + o->slack_ns);
	struct job latest = *job;
	__u64 least;

	latest.deadline_ns += job->slop_ns;
	/* If a timeout is due at this very moment, it may still wait for the kthread. */
	least = job_expired(&latest, o->now_ns - o->slack_ns);
	o->books.expirations += least ?: 1;
	o->expirations_max += most ?: 1;
}

/* CANCEL or REARM has returned a verdict for a job. */
static void judge_verdict(struct oracle *o, const struct job *job, const char *call, int said)
{
	bool may_be_unread = job->live && job_due_ns(job) <= o->now_ns + o->slack_ns;
	bool must_be_unread = job->live && job_late_ns(o, job) <= o->now_ns;
	bool right;

	if (!job->live)
		right = said == -ENOENT;
	else if (said == TWHEEL_WAS_UNREAD)
		right = may_be_unread;
	else
		right = said == TWHEEL_WAS_PENDING && !must_be_unread;
	if (!right) {
		fault(FAULT_VERDICT, "%s said %d of %#llx, %s, deadline %llu, at %llu", call, said,
		      job->id, job->live ? "live" : "ended", job->deadline_ns, o->now_ns);
	}
	if (said == TWHEEL_WAS_UNREAD)
		account_unread(o, job);
}

static void flush_cancels(struct oracle *o)
{
	__u32 i, nr = o->nr_cancel;

	if (!nr)
		return;
	o->nr_cancel = 0;
	if (tw_cancel_vec(o->fd, o->cancel, nr) < 0)
		fault(FAULT_VERDICT, "CANCEL of %u: errno %d", nr, errno);
	for (i = 0; i < nr; i++) {
		struct job *job = &o->job[o->cancel_index[i]];
		int said = o->cancel[i].result;

		judge_verdict(o, job, "CANCEL", said);
		if (said < 0)
			continue;
		job->live = false;
		o->books.live--;
		if (said == TWHEEL_WAS_UNREAD)
			o->books.revoked++;
		else
			o->books.cancelled++;
	}
}

static void flush_rearms(struct oracle *o, __u64 before_ns)
{
	__u32 i, nr = o->nr_rearm;

	if (!nr)
		return;
	o->nr_rearm = 0;
	if (tw_rearm_vec(o->fd, o->rearm, nr) < 0)
		fault(FAULT_VERDICT, "REARM of %u: errno %d", nr, errno);
	if (o->relative)
		oracle_stamp(o);
	for (i = 0; i < nr; i++) {
		struct job *job = &o->job[o->rearm[i].user_data];

		judge_verdict(o, job, "REARM", o->rearm[i].result);
		if (o->rearm[i].result < 0)
			continue;
		job_begin(o, job, &o->rearm[i], before_ns);
		o->books.rearmed++;
	}
}

static void flush_arms(struct oracle *o, __u64 before_ns)
{
	__u32 i, nr = o->nr_arm;

	if (!nr)
		return;
	o->nr_arm = 0;
	if (tw_arm_vec(o->fd, o->arm, nr) < 0)
		fault(FAULT_VERDICT, "ARM of %u: errno %d", nr, errno);
	if (o->relative)
		oracle_stamp(o);
	for (i = 0; i < nr; i++) {
		if (o->arm[i].result != TWHEEL_CREATED) {
			fault(FAULT_VERDICT, "ARM said %d", o->arm[i].result);
			continue;
		}
		job_begin(o, &o->job[o->arm[i].user_data], &o->arm[i], before_ns);
		o->books.armed++;
		o->books.live++;
	}
}

void oracle_flush(struct oracle *o)
{
	__u64 before_ns = o->now_ns;

	flush_cancels(o);
	flush_rearms(o, before_ns);
	flush_arms(o, before_ns);
	o->relative = false;
}

/* ---- events -------------------------------------------------------------- */

/*
 * If a timeout is relative, its deadline is known as soon as it is reported. Return false if it
 * cannot be that one.
 */
static bool settle_deadline(struct job *job, const struct twheel_event *e)
{
	__u64 first_ns = e->deadline_ns;

	if (!job->slop_ns)
		return true;
	if (job->interval_ns && !job->delay)
		first_ns -= (e->count - 1) * job->interval_ns;
	if (first_ns - job->deadline_ns > job->slop_ns)
		return false;
	job->deadline_ns = first_ns;
	job->slop_ns = 0;
	return true;
}

static void judge_count(const struct job *job, const struct twheel_event *e, __u64 *periods)
{
	__u64 least = job_expired(job, e->fired_ns);
	__u64 most = job->overdue ? job_passed(job, e->fired_ns) : least;
	__u64 last_ns = e->deadline_ns - job->deadline_ns;

	/* The deadline shows it too, and does not saturate. */
	*periods = job->interval_ns && !job->delay ? last_ns / job->interval_ns + 1 : 1;
	if (*periods >= (least ?: 1) && *periods <= (most ?: 1) &&
	    last_ns == (*periods - 1) * job->interval_ns &&
	    e->count == (*periods < UINT32_MAX ? *periods : UINT32_MAX))
		return;
	fault(FAULT_COUNT,
	      "%#llx: deadline %llu, interval %llu, left %u: deadline %llu and count %u when fired at %llu, not %llu to %llu",
	      e->id, job->deadline_ns, job->interval_ns, job->repeats, e->deadline_ns, e->count,
	      e->fired_ns, least, most);
	*periods = most ?: 1;
}

static void judge_time(struct oracle *o, const struct job *job, const struct twheel_event *e)
{
	__u64 due_ns = job_wanted_ns(o, job, e->deadline_ns), limit_ns;

	if (e->fired_ns < e->deadline_ns || (!job->overdue && e->fired_ns < due_ns)) {
		fault(FAULT_EARLY, "%#llx: deadline %llu, fired at %llu", e->id, e->deadline_ns,
		      e->fired_ns);
		return;
	}
	if (due_ns < o->since_ns)
		due_ns = o->since_ns;
	limit_ns = due_ns + o->setup.tick_ns;
	if (due_ns < o->since_ns + o->catch_up_ns)
		limit_ns += o->catch_up_ns;
	if (e->fired_ns > o->now_ns + o->slack_ns || e->fired_ns >= limit_ns) {
		fault(FAULT_LATE, "%#llx: deadline %llu, fired at %llu, due at %llu", e->id,
		      e->deadline_ns, e->fired_ns, due_ns);
	} else if (e->fired_ns > due_ns && e->fired_ns - due_ns > o->max_late_ns) {
		o->max_late_ns = e->fired_ns - due_ns;
	}
}

static void judge_order(struct oracle *o, const struct job *job, const struct twheel_event *e)
{
	__u64 edge_ns = job_edge_ns(job, job->deadline_ns);

	if (!o->in_order || job->overdue)
		return;
	if (edge_ns < o->last_edge_ns) {
		fault(FAULT_ORDER, "%#llx: first edge %llu read after one of %llu", e->id, edge_ns,
		      o->last_edge_ns);
	}
	o->last_edge_ns = edge_ns;
}

/* Return whether this many more periods are the last of a job. */
static bool job_ends(const struct job *job, __u64 periods)
{
	return !job->interval_ns || (job->repeats && job->repeats <= periods);
}

/* Update a job whose event was read. */
static void job_go_on(struct oracle *o, struct job *job, __u64 periods, __u64 before_ns)
{
	bool ends = job_ends(job, periods);

	o->books.delivered++;
	o->books.expirations += periods;
	o->expirations_max += periods;
	job->overdue = false;
	if (ends) {
		job->live = false;
		o->books.completed++;
		o->books.live--;
		o->ended(o, job - o->job);
		return;
	}
	if (job->repeats)
		job->repeats -= periods;
	if (job->delay) {
		job->deadline_ns = job->interval_ns >= TWHEEL_TIME_NEVER - before_ns ?
				   TWHEEL_TIME_NEVER : before_ns + job->interval_ns;
		job->slop_ns = o->now_ns - before_ns;
	} else {
		job->deadline_ns += periods * job->interval_ns;
		if (job->deadline_ns > TWHEEL_TIME_NEVER)
			job->deadline_ns = TWHEEL_TIME_NEVER;
	}
}

static struct job *job_of_event(struct oracle *o, const struct twheel_event *e)
{
	struct job *job = e->user_data < o->nr_jobs ? &o->job[e->user_data] : NULL;

	if (job && job->live && job->id == e->id)
		return job;
	fault(FAULT_TWICE, "event of %#llx, user_data %llu, deadline %llu, fired at %llu: %s",
	      e->id, e->user_data, e->deadline_ns, e->fired_ns,
	      !job ? "nobody's" : job->id == e->id ? "it had ended" : "of an earlier schedule");
	return NULL;
}

static void judge_event(struct oracle *o, const struct twheel_event *e, __u64 before_ns)
{
	struct job *job = job_of_event(o, e);
	__u64 periods;

	if (!job)
		return;
	if (!settle_deadline(job, e)) {
		fault(FAULT_COUNT, "%#llx: deadline %llu, not %llu to %u ns later", e->id,
		      e->deadline_ns, job->deadline_ns, job->slop_ns);
	}
	judge_time(o, job, e);
	judge_order(o, job, e);
	judge_count(job, e, &periods);
	if (e->flags != (job_ends(job, periods) ? TWHEEL_EVENT_ENDED : 0))
		fault(FAULT_COUNT, "%#llx: flags %#x", e->id, e->flags);
	job_go_on(o, job, periods, before_ns);
}

unsigned int oracle_read(struct oracle *o)
{
	unsigned int total = 0;
	int i, nr;

	do {
		__u64 before_ns = o->now_ns;

		nr = tw_read(o->fd, o->event, EVENTS_AT_A_TIME);
		if (nr == -EAGAIN)
			break;
		if (nr < 0) {
			fault(FAULT_LOST, "read: %d", nr);
			break;
		}
		oracle_stamp(o);
		for (i = 0; i < nr; i++)
			judge_event(o, &o->event[i], before_ns);
		total += nr;
	} while (nr == EVENTS_AT_A_TIME && !part_is_hopeless());
	return total;
}

void oracle_advance(struct oracle *o, __u64 to_ns)
{
	int ret = tw_advance(o->fd, to_ns);

	if (ret)
		fault(FAULT_VERDICT, "ADVANCE from %llu to %llu: %d", o->now_ns, to_ns, ret);
	o->now_ns = to_ns;
	o->since_ns = to_ns;
	oracle_read(o);
}

/* ---- checks of all timeouts ---------------------------------------------- */

void oracle_find_lost(struct oracle *o)
{
	__u32 i;

	for (i = 0; i < o->nr_jobs && !part_is_hopeless(); i++) {
		struct job *job = &o->job[i];

		if (!job->live || job_late_ns(o, job) > o->now_ns)
			continue;
		/* If the clock was stepped, it may have been due only since then. */
		if (o->now_ns < o->since_ns + o->slack_ns + o->catch_up_ns)
			continue;
		fault(FAULT_LOST, "%#llx: deadline %llu, interval %llu, no event at %llu", job->id,
		      job->deadline_ns, job->interval_ns, o->now_ns);
	}
}

static void check_next(const struct oracle *o, const struct twheel_info *info)
{
	__u64 least_ns = TWHEEL_TIME_NEVER, most_ns = TWHEEL_TIME_NEVER;
	__u32 i;

	for (i = 0; i < o->nr_jobs; i++) {
		const struct job *job = &o->job[i];
		__u64 edge_ns;

		if (!job->live)
			continue;
		/* As long as it is overdue, it has no slack. */
		edge_ns = job->overdue ? oracle_edge_ns(o, job->deadline_ns) :
					 job_edge_ns(job, job->deadline_ns);
		if (edge_ns < least_ns)
			least_ns = edge_ns;
		edge_ns = job_edge_ns(job, job->deadline_ns + job->slop_ns);
		if (edge_ns < most_ns)
			most_ns = edge_ns;
	}
	if (info->next_expiry_ns < least_ns || info->next_expiry_ns > most_ns) {
		fault(FAULT_BOOKS, "next expiry %llu, not %llu to %llu", info->next_expiry_ns,
		      least_ns, most_ns);
	}
}

static void check_book(const char *name, __u64 said, __u64 known)
{
	if (said != known)
		fault(FAULT_BOOKS, "%s %llu, not %llu", name, said, known);
}

static void check_counters(struct oracle *o)
{
	struct twheel_info info;

	if (tw_info(o->fd, &info)) {
		fault(FAULT_BOOKS, "INFO: errno %d", errno);
		return;
	}
	check_book("armed", info.armed, o->books.armed);
	check_book("live", info.live, o->books.live);
	check_book("delivered", info.delivered, o->books.delivered);
	check_book("completed", info.completed, o->books.completed);
	check_book("cancelled", info.cancelled, o->books.cancelled);
	check_book("revoked", info.revoked, o->books.revoked);
	check_book("rearmed", info.rearmed, o->books.rearmed);
	check_book("drained", info.drained, o->books.drained);
	if (info.armed != info.live + info.completed + info.cancelled + info.revoked +
			  info.drained)
		fault(FAULT_BOOKS, "the counters do not add up");
	/* If events are unread, an edge has passed since all were read. */
	if (info.unread)
		return;
	if (info.expirations < o->books.expirations || info.expirations > o->expirations_max) {
		fault(FAULT_BOOKS, "expirations %llu, not %llu to %llu", info.expirations,
		      o->books.expirations, o->expirations_max);
	}
	if (info.pending != info.live)
		fault(FAULT_BOOKS, "pending %llu of %llu", info.pending, info.live);
	check_next(o, &info);
}

void oracle_check_books(struct oracle *o)
{
	oracle_find_lost(o);
	check_counters(o);
}

void oracle_query(struct oracle *o, __u32 index)
{
	const struct job *job = &o->job[index];
	struct twheel_status status;
	int ret = tw_query1(o->fd, job->id, &status);

	if (!job->live) {
		if (ret != -ENOENT)
			fault(FAULT_VERDICT, "QUERY of %#llx, which ended: %d", job->id, ret);
		return;
	}
	if (ret) {
		fault(FAULT_VERDICT, "QUERY of %#llx: %d", job->id, ret);
		return;
	}
	/* If timeouts may have expired, they can hardly be checked. */
	if (job_due_ns(job) <= o->now_ns + 2 * o->slack_ns)
		return;
	if (status.state != TWHEEL_STATE_PENDING || status.user_data != index ||
	    status.deadline_ns - job->deadline_ns > job->slop_ns ||
	    status.interval_ns != job->interval_ns || status.repeats_left != job->repeats ||
	    status.count || status.slack_ticks != job_slack_ticks(o, job)) {
		fault(FAULT_VERDICT,
		      "QUERY of %#llx: state %u, deadline %llu, interval %llu, left %u", job->id,
		      status.state, status.deadline_ns, status.interval_ns, status.repeats_left);
	}
}

static void judge_drained(struct oracle *o, const struct twheel_event *e)
{
	struct job *job = job_of_event(o, e);

	if (!job)
		return;
	job->live = false;
	o->books.live--;
	o->books.delivered++;
	if (!(e->flags & TWHEEL_EVENT_ENDED))
		fault(FAULT_COUNT, "%#llx: drained, flags %#x", e->id, e->flags);
	if (e->flags & TWHEEL_EVENT_DRAINED)
		o->books.drained++;
	else
		o->books.completed++;
	/* An edge may pass while it drains; a late timeout has no event. */
	if (e->count && job_due_ns(job) > o->now_ns + o->slack_ns)
		fault(FAULT_EARLY, "%#llx: drained, deadline %llu, count %u", e->id, e->deadline_ns,
		      e->count);
	if (!e->count && e->deadline_ns - job->deadline_ns > job->slop_ns)
		fault(FAULT_COUNT, "%#llx: drained, deadline %llu, not %llu", e->id, e->deadline_ns,
		      job->deadline_ns);
	o->books.expirations += e->count;
	o->expirations_max += e->count;
}

void oracle_drain(struct oracle *o)
{
	int i, nr, ret;

	oracle_read(o);
	oracle_flush(o);
	ret = tw_drain(o->fd);
	if (ret)
		fault(FAULT_VERDICT, "DRAIN: %d", ret);
	while ((nr = tw_read(o->fd, o->event, EVENTS_AT_A_TIME)) > 0) {
		for (i = 0; i < nr; i++)
			judge_drained(o, &o->event[i]);
	}
	if (nr)
		fault(FAULT_LOST, "read of a drained wheel: %d", nr);
	if (o->books.live)
		fault(FAULT_LOST, "%llu were not drained", o->books.live);
	check_counters(o);
}
