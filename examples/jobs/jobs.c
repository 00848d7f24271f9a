// SPDX-License-Identifier: 0BSD
/*
 * Delayed jobs that survive the machine: a database has all of them, a wheel those of the next
 * minute.
 *
 *	jobs add DB SECONDS COMMAND [SECONDS COMMAND]...
 *	jobs remove DB ID
 *	jobs list DB
 *	jobs run [--drain] DB
 *
 * `add' writes the numbers of the jobs when they are on the disk.  `run' hands each command to
 * /bin/sh when its time has come, one after the other, the earliest first; with --drain it ends
 * when no job is left, otherwise with SIGTERM.  A second `run' waits until the first has ended.
 *
 * A job is claimed before its command begins, and deleted after it has ended.  If `run' is killed
 * in between, or the machine, the next `run' does the job again; $JOB_CLAIMS counts how often it
 * was claimed.  So each job is done at least once.  Documentation/jobs.rst says what holds.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <twheel.h>
#include <unistd.h>

#include "list.h"

/* How far ahead the wheel has the jobs. */
#define WINDOW_MS	60000
/* How long another process may hold the database. */
#define BUSY_MS		60000
#define SECONDS_MAX	1e9

/* ---- the database -------------------------------------------------------------- */

static sqlite3 *db;
static const char *db_path;

/* Without AUTOINCREMENT, a job could get the number of one that is done. */
static const char schema[] =
	"PRAGMA journal_mode=WAL;\n"
	"PRAGMA synchronous=FULL;\n"
	"CREATE TABLE IF NOT EXISTS jobs (\n"
	"	id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
	"	due_ms INTEGER NOT NULL,\n"	/* of CLOCK_REALTIME: it goes on over a reboot */
	"	claims INTEGER NOT NULL DEFAULT 0,\n"
	"	command TEXT NOT NULL);\n"
	"CREATE INDEX IF NOT EXISTS jobs_by_time ON jobs (due_ms, id);\n";

static void __attribute__((noreturn)) fail(void)
{
	errx(1, "%s: %s", db_path, sqlite3_errmsg(db));
}

static void execute(const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail();
}

static void open_db(const char *path)
{
	db_path = path;
	if (sqlite3_open(path, &db) != SQLITE_OK)
		fail();
	sqlite3_busy_timeout(db, BUSY_MS);
	execute(schema);
}

static sqlite3_stmt *prepare(const char *sql)
{
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL))
		fail();
	return statement;
}

static void bind(sqlite3_stmt *statement, int column, int64_t value)
{
	if (sqlite3_bind_int64(statement, column, value))
		fail();
}

/* Step to the next row; after the last one, the statement may be bound again. */
static bool step(sqlite3_stmt *statement)
{
	int ret = sqlite3_step(statement);

	if (ret == SQLITE_ROW)
		return true;
	if (ret != SQLITE_DONE)
		fail();
	sqlite3_reset(statement);
	return false;
}

static int64_t read_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* ---- the file beside the database ---------------------------------------------- */

/* `run' has it locked, and is woken if the times of jobs change. */
static int open_lock(int flags)
{
	char *path = sqlite3_mprintf("%s-lock", db_path);
	int fd = open(path, O_RDWR | O_CREAT | flags, 0666);

	if (fd < 0)
		err(1, "%s", path);
	sqlite3_free(path);
	return fd;
}

/* Call this after the commit: before it, the change is not visible. */
static void ring(void)
{
	if (futimens(open_lock(O_CLOEXEC), NULL))
		err(1, "%s-lock", db_path);
}

static int open_bell(void)
{
	char *path = sqlite3_mprintf("%s-lock", db_path);
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0 || inotify_add_watch(fd, path, IN_ATTRIB) < 0)
		err(1, "%s", path);
	sqlite3_free(path);
	return fd;
}

/* ---- add, remove, list --------------------------------------------------------- */

static double parse_seconds(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0 && seconds <= SECONDS_MAX))
		errx(2, "%s is no number of seconds", text);
	return seconds;
}

static int add(int nr, char **pairs)
{
	int64_t first = 0, now_ms;
	sqlite3_stmt *insert;
	int i;

	for (i = 0; i < nr; i += 2)
		parse_seconds(pairs[i]);
	insert = prepare("INSERT INTO jobs (due_ms, command) VALUES (?, ?)");
	execute("BEGIN IMMEDIATE");
	/*
	 * Now nobody else writes: jobs with the same delay have the order of their numbers.
	 * The time is rounded up: no job is early.
	 */
	now_ms = read_ms() + 1;
	for (i = 0; i < nr; i += 2) {
		bind(insert, 1, now_ms + (int64_t)(parse_seconds(pairs[i]) * 1000));
		sqlite3_bind_text(insert, 2, pairs[i + 1], -1, SQLITE_STATIC);
		step(insert);
		if (!first)
			first = sqlite3_last_insert_rowid(db);
	}
	execute("COMMIT");
	ring();
	for (i = 0; i < nr / 2; i++)
		printf("%" PRId64 "\n", first + i);
	return 0;
}

/* If a job has begun, it stays: otherwise it could not be done again. */
static int remove_job(const char *id)
{
	sqlite3_stmt *delete = prepare("DELETE FROM jobs WHERE id = ? AND claims = 0");

	bind(delete, 1, strtoll(id, NULL, 10));
	step(delete);
	if (!sqlite3_changes(db))
		errx(1, "job %s does not pend: it has begun, or there is none", id);
	ring();
	return 0;
}

static int list(void)
{
	sqlite3_stmt *rows = prepare("SELECT id, due_ms, claims, command FROM jobs\n"
				     "ORDER BY due_ms, id");
	int64_t now_ms = read_ms();

	while (step(rows))
		printf("%lld\t%.3f s\t%d claims\t%s\n", sqlite3_column_int64(rows, 0),
		       (sqlite3_column_int64(rows, 1) - now_ms) / 1000.0,
		       sqlite3_column_int(rows, 2), sqlite3_column_text(rows, 3));
	return 0;
}

/* ---- run: the wheel ------------------------------------------------------------- */

struct job {
	struct twheel_timer timer;
	struct list link;		/* in those that are due, by time */
	int64_t id;
	int64_t due_ms;
};

static struct list due = { &due, &due };
static struct twheel_timer reload;

/* All jobs up to this number that are due before this time are in memory. */
static int64_t seen;
static int64_t near_ms = INT64_MIN;

static struct job *job_of(struct list *link)
{
	return twheel_container_of(link, struct job, link);
}

static bool before(const struct job *a, const struct job *b)
{
	return a->due_ms < b->due_ms || (a->due_ms == b->due_ms && a->id < b->id);
}

/* The timers of one tick come in any order. */
static void on_due(struct twheel *w, struct twheel_timer *t)
{
	struct job *job = twheel_container_of(t, struct job, timer);
	struct list *at = due.prev;

	(void)w;
	while (at != &due && before(job, job_of(at)))
		at = at->prev;
	list_add_after(at, &job->link);
}

static void start_rows(struct twheel *w, sqlite3_stmt *rows)
{
	while (step(rows)) {
		struct job *job = malloc(sizeof(*job));

		if (!job)
			err(1, "a job");
		job->id = sqlite3_column_int64(rows, 0);
		job->due_ms = sqlite3_column_int64(rows, 1);
		twheel_timer_init(&job->timer, on_due);
		twheel_start_at(w, &job->timer, job->due_ms * TWHEEL_MSEC);
	}
}

/* Load new jobs, and those that are due soon. */
static void load(struct twheel *w)
{
	static sqlite3_stmt *last, *new, *nearer;
	int64_t until_ms = read_ms() + WINDOW_MS;

	if (!last) {
		last = prepare("SELECT max(id) FROM jobs");
		new = prepare("SELECT id, due_ms FROM jobs WHERE id > ? AND due_ms < ?\n"
			      "ORDER BY due_ms, id");
		nearer = prepare("SELECT id, due_ms FROM jobs WHERE due_ms >= ? AND due_ms < ?\n"
				 "ORDER BY due_ms, id");
	}
	/* The clock may have been set back. */
	if (until_ms < near_ms)
		until_ms = near_ms;
	/* All three queries see one state of the database. */
	execute("BEGIN");
	bind(new, 1, seen);
	bind(new, 2, near_ms);
	start_rows(w, new);
	bind(nearer, 1, near_ms);
	bind(nearer, 2, until_ms);
	start_rows(w, nearer);
	while (step(last))
		if (sqlite3_column_int64(last, 0) > seen)
			seen = sqlite3_column_int64(last, 0);
	execute("COMMIT");
	near_ms = until_ms;
	twheel_start_at(w, &reload, (near_ms - WINDOW_MS / 2) * TWHEEL_MSEC);
}

static void on_reload(struct twheel *w, struct twheel_timer *t)
{
	(void)t;
	load(w);
}

/* ---- run: the jobs -------------------------------------------------------------- */

/* The job whose command has ended, which the next transaction deletes. */
static int64_t done;

/*
 * Deletes the job that is done, and claims the next one if it has not been removed.  That is one
 * transaction, so it waits for the disk once.  Returns the command.
 */
static char *claim(int64_t id, int *claims)
{
	static sqlite3_stmt *delete, *update;
	char *command = NULL;

	if (!delete) {
		delete = prepare("DELETE FROM jobs WHERE id = ?");
		update = prepare("UPDATE jobs SET claims = claims + 1 WHERE id = ?\n"
				 "RETURNING command, claims");
	}
	execute("BEGIN IMMEDIATE");
	if (done) {
		bind(delete, 1, done);
		step(delete);
	}
	bind(update, 1, id);
	while (step(update)) {
		command = strdup((const char *)sqlite3_column_text(update, 0));
		*claims = sqlite3_column_int(update, 1);
	}
	execute("COMMIT");
	done = 0;
	return command;
}

/* If the machine is shut down, the command may be killed before its parent. */
static bool was_killed(int status)
{
	int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	return signal == SIGTERM || signal == SIGKILL || signal == SIGINT || signal == SIGHUP;
}

/*
 * The command has the lock as well: if this process is killed, the next `run' waits until the
 * command has ended, and does not do the same job beside it.
 */
static void do_command(int64_t id, const char *command, int claims)
{
	char text[32];
	sigset_t none;
	int status;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		snprintf(text, sizeof(text), "%" PRId64, id);
		setenv("JOB_ID", text, 1);
		snprintf(text, sizeof(text), "%d", claims);
		setenv("JOB_CLAIMS", text, 1);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			err(1, "waitpid");
	if (was_killed(status))
		errx(1, "job %" PRId64 " was killed, and is left to the next run", id);
	if (status)
		warnx("job %" PRId64 " ended with status %#x", id, status);
}

static void do_first(void)
{
	struct job *job = job_of(due.next);
	int64_t id = job->id;
	char *command;
	int claims;

	list_remove(&job->link);
	free(job);
	command = claim(id, &claims);
	if (!command)
		return;
	do_command(id, command, claims);
	free(command);
	done = id;
}

static bool jobs_are_left(void)
{
	static sqlite3_stmt *one;
	bool left = false;

	if (!one)
		one = prepare("SELECT 1 FROM jobs LIMIT 1");
	while (step(one))
		left = true;
	return left;
}

/* ---- run: the loop -------------------------------------------------------------- */

static volatile sig_atomic_t stopped;

static void on_stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* SIGTERM comes only while the program sleeps, and lets a command end. */
static void block_signals(void)
{
	struct sigaction stop = { .sa_handler = on_stop };
	sigset_t stops;

	sigemptyset(&stops);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGINT);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	sigprocmask(SIG_BLOCK, &stops, NULL);
}

static bool drain_bell(int bell)
{
	char events[4096];
	bool rang = false;

	while (read(bell, events, sizeof(events)) > 0)
		rang = true;
	return rang;
}

static void turns(struct twheel *w, int bell, bool drain)
{
	struct pollfd fds[] = {
		{ .fd = twheel_fd(w), .events = POLLIN }, { .fd = bell, .events = POLLIN },
	};
	static const struct timespec at_once;
	sigset_t none;

	sigemptyset(&none);
	while (!stopped && !(drain && !jobs_are_left())) {
		twheel_flush(w);
		ppoll(fds, 2, list_empty(&due) ? NULL : &at_once, &none);
		/* New jobs may come before those that are due. */
		if (drain_bell(bell))
			load(w);
		twheel_dispatch(w, 0);
		if (!list_empty(&due) && !stopped)
			do_first();
		if (done && (list_empty(&due) || stopped))
			claim(0, NULL);
	}
}

static int run(bool drain)
{
	struct twheel_options options = {
		.size = sizeof(options), .clock = TWHEEL_REALTIME,
	};
	struct twheel *w;
	int bell;

	/* exec() leaves it open: see do_command(). */
	if (flock(open_lock(0), LOCK_EX))
		err(1, "%s-lock", db_path);
	block_signals();
	if (twheel_open(&w, &options) < 0 || twheel_fd(w) < 0)
		errx(1, "there is no wheel");
	bell = open_bell();
	twheel_timer_init(&reload, on_reload);
	load(w);
	turns(w, bell, drain);
	twheel_close(w);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	bool drain = argc == 4 && !strcmp(argv[2], "--drain");

	if (!strcmp(what, "add") && argc > 4 && argc % 2) {
		open_db(argv[2]);
		return add(argc - 3, argv + 3);
	}
	if (!strcmp(what, "remove") && argc == 4) {
		open_db(argv[2]);
		return remove_job(argv[3]);
	}
	if (!strcmp(what, "list") && argc == 3) {
		open_db(argv[2]);
		return list();
	}
	if (!strcmp(what, "run") && argc == 3 + drain) {
		open_db(argv[2 + drain]);
		return run(drain);
	}
	fputs("usage: jobs add DB SECONDS COMMAND [SECONDS COMMAND]...\n"
	      "       jobs remove DB ID\n"
	      "       jobs list DB\n"
	      "       jobs run [--drain] DB\n", stderr);
	return 2;
}
