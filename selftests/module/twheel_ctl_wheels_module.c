// SPDX-License-Identifier: GPL-2.0
/*
 * `twheelctl ps' and `show' show wheels as they are, and `late' names why one is late or stuck.
 *
 * The program loads and unloads the module itself; TWHEEL_KO names the file.
 */
#include "twheel_ctl.h"
#include "twheel_outside.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

FIXTURE(wheels) {
};

FIXTURE_SETUP(wheels)
{
	if (!ctl_is_there())
		SKIP(return, "there is no twheelctl here: it was not built");
	/* If a test failed, it has left the module. */
	tw_unload_soon();
	ASSERT_FALSE(tw_is_loaded());
}

FIXTURE_TEARDOWN(wheels)
{
	tw_unload_soon();
}

static int open_named(const char *name, __u32 max_pending)
{
	struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_MONOTONIC, .max_pending = max_pending,
	};

	snprintf(setup.name, sizeof(setup.name), "%s", name);
	return tw_open_setup(O_NONBLOCK | O_CLOEXEC, &setup);
}

/* Return how often a text stands in the output of twheelctl. */
static int times_said(const char *text)
{
	const char *at = ctl_said;
	int nr = 0;

	while ((at = strstr(at, text))) {
		at++;
		nr++;
	}
	return nr;
}

static bool is_holder(pid_t pid, int fd)
{
	char text[64];

	snprintf(text, sizeof(text), "\"pid\": %d,\n          \"fd\": %d\n", pid, fd);
	return strstr(ctl_said, text);
}

/* ---- ps and show --------------------------------------------------------- */

TEST_F(wheels, ps_shows_a_wheel_once_with_all_who_hold_it)
{
	char holder[64];
	int fd, again, copy;
	pid_t child;
	__u64 id;

	ASSERT_EQ(0, tw_load_and_wait(""));
	/* A name may consist of digits. */
	fd = open_named("12", 5);
	again = tw_reopen(fd, O_RDONLY | O_CLOEXEC);
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	child = fork();
	if (!child) {
		close(fd);
		close(copy);
		for (;;)
			pause();
	}
	ASSERT_TRUE(TW_WAIT_FOR(!tw_wait_asleep(child), 0));
	EXPECT_EQ(CTL_DONE, CTL("ps", "--json"));
	EXPECT_EQ(1, times_said("\"wheel\": "))
		TH_LOG("%s", ctl_said);
	EXPECT_EQ(4, times_said("\"pid\": "))
		TH_LOG("%s", ctl_said);
	EXPECT_TRUE(is_holder(getpid(), fd));
	EXPECT_TRUE(is_holder(getpid(), copy));
	EXPECT_TRUE(is_holder(child, again));
	EXPECT_FALSE(is_holder(child, fd));
	EXPECT_SAYS("\"complete\": true");
	EXPECT_SAYS("\"name\": \"12\"");
	EXPECT_SAYS("\"pending\": 1,");
	EXPECT_SAYS("\"max_pending\": 5,");
	EXPECT_SAYS("\"uid\": 0,");
	EXPECT_SAYS("\"kthread\": \"twheel/");
	EXPECT_EQ(0, times_said("\"mnt_id\""));
	snprintf(holder, sizeof(holder), "%d:%d,%d", getpid(), fd, again);
	EXPECT_EQ(CTL_DONE, CTL("ps"));
	EXPECT_SAYS(holder);
	ctl_end(child);
	close(again);
	close(copy);
	close(fd);
	EXPECT_EQ(CTL_DONE, CTL("ps", "--json"));
	EXPECT_EQ(0, times_said("\"wheel\": "));
}

TEST_F(wheels, ps_says_how_to_find_a_wheel_that_is_held_by_a_mapping)
{
	char line[512];
	bool there = false;
	void *words;
	FILE *maps;
	int fd;

	ASSERT_EQ(0, tw_load_and_wait(""));
	fd = open_named("mapped", 5);
	words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, words);
	close(fd);
	EXPECT_EQ(CTL_DONE, CTL("ps"));
	EXPECT_SAYS("1 more are open, which no process has as a descriptor: mapped");
	maps = fopen("/proc/self/maps", "re");
	ASSERT_NE(NULL, maps);
	while (fgets(line, sizeof(line), maps))
		there |= !!strstr(line, TW_DEVICE);
	fclose(maps);
	EXPECT_TRUE(there);
	munmap(words, 4096);
}

TEST_F(wheels, ps_shows_a_user_only_what_the_user_may_see)
{
	int fd;

	ASSERT_EQ(0, tw_load_and_wait(""));
	fd = open_named("roots", 5);
	EXPECT_EQ(CTL_DONE, CTL_AFTER(ctl_become_nobody, "ps", "--json"));
	EXPECT_SAYS("\"complete\": false");
	EXPECT_EQ(0, times_said("\"wheel\": "));
	close(fd);
}

/* For ctl_child(): ten timeouts of a wheel expire in a second, and are read. */
static int read_ten_a_second(void)
{
	int fd = open_named("ten", 0);
	struct twheel_event event;
	__u64 id;

	if (fd < 0 || tw_arm1(fd, 0, TW_SEC / 10, TW_SEC / 10, 0, &id) || fork())
		return fd < 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (tw_poll(fd, POLLIN, -1) < 0 || tw_read(fd, &event, 1) < 0)
			_exit(1);
}

static __u64 timeval_ns(const struct timeval *time)
{
	return time->tv_sec * TW_SEC + time->tv_usec * TW_US;
}

/* The processor time of `twheelctl ps', ns: the least of several, since others may disturb it. */
static __u64 ps_cost_ns(struct __test_metadata *_metadata)
{
	struct rusage before, after;
	__u64 cost_ns, least_ns = ~0ULL;
	int i;

	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, getrusage(RUSAGE_CHILDREN, &before));
		ASSERT_EQ(CTL_DONE, CTL("ps"));
		ASSERT_EQ(0, getrusage(RUSAGE_CHILDREN, &after));
		cost_ns = timeval_ns(&after.ru_utime) + timeval_ns(&after.ru_stime) -
			  timeval_ns(&before.ru_utime) - timeval_ns(&before.ru_stime);
		least_ns = cost_ns < least_ns ? cost_ns : least_ns;
	}
	return least_ns;
}

/* The processor time of a walk over all timeouts of a wheel, ns. */
static __u64 walk_cost_ns(struct __test_metadata *_metadata, int fd)
{
	__u64 before_ns = tw_now(CLOCK_THREAD_CPUTIME_ID);
	struct twheel_info info;

	ASSERT_EQ(0, tw_info(fd, &info));
	return tw_now(CLOCK_THREAD_CPUTIME_ID) - before_ns;
}

/* If ps walked over the timeouts, it would take twice as long, or longer. */
TEST_F_TIMEOUT(wheels, ps_costs_the_same_for_any_number_of_timeouts, 100)
{
	static struct twheel_arm arms[10000];
	const int million = tw_setting("TW_MILLION", 1000000);
	__u64 empty_ns, full_ns, walk_ns, again_ns;
	int fd, nr, i, tries = 25;

	ASSERT_EQ(0, tw_load_and_wait(""));
	fd = open_named("many", 0);
	empty_ns = ps_cost_ns(_metadata);
	for (nr = 0; nr < million; nr += ARRAY_SIZE(arms)) {
		for (i = 0; i < ARRAY_SIZE(arms); i++)
			arms[i] = (struct twheel_arm){ .expires_ns = TW_HOUR + (nr + i) * TW_MS };
		ASSERT_EQ(ARRAY_SIZE(arms), tw_arm_vec(fd, arms, ARRAY_SIZE(arms)));
	}
	walk_ns = walk_cost_ns(_metadata, fd);
	full_ns = ps_cost_ns(_metadata);
	/* If the host is busy, processor time is longer: measure both again. */
	while (full_ns >= empty_ns + walk_ns / 2 && --tries) {
		walk_ns = walk_cost_ns(_metadata, fd);
		again_ns = ps_cost_ns(_metadata);
		full_ns = again_ns < full_ns ? again_ns : full_ns;
	}
	TH_LOG("an empty wheel: %llu us; %d timeouts: %llu us; a walk: %llu us", empty_ns / TW_US,
	       nr, full_ns / TW_US, walk_ns / TW_US);
	EXPECT_LT(full_ns, empty_ns + walk_ns / 2);
	close(fd);
}

TEST_F(wheels, ps_with_an_interval_shows_rates)
{
	double per_second;
	const char *at;
	pid_t child;

	ASSERT_EQ(0, tw_load_and_wait(""));
	child = ctl_child(read_ten_a_second);
	ASSERT_LT(0, child);
	EXPECT_EQ(CTL_DONE, CTL("ps", "--json", "--interval=1"));
	at = strstr(ctl_said, "\"per_second\":");
	ASSERT_NE(NULL, at);
	at = strstr(at, "\"expirations\": ");
	ASSERT_NE(NULL, at);
	/* If the machine is busy, some may come late together. */
	per_second = strtod(at + strlen("\"expirations\": "), NULL);
	EXPECT_LT(2, per_second);
	EXPECT_GT(30, per_second);
	ctl_end(child);
}

TEST_F(wheels, show_tells_info_and_the_nearest_timeouts)
{
	char pid[16], number[16], text[64];
	const char *first, *second;
	__u64 ids[3];
	int fd;

	ASSERT_EQ(0, tw_load_and_wait(""));
	fd = tw_virtual(O_NONBLOCK | O_CLOEXEC, TW_MS);
	ASSERT_EQ(0, tw_arm1(fd, 0, 3 * TW_HOUR, 0, 3, &ids[0]));
	ASSERT_EQ(0, tw_arm1(fd, 0, TW_HOUR, TW_MIN, 1, &ids[1]));
	ASSERT_EQ(0, tw_arm1(fd, 0, 2 * TW_HOUR, 0, ~0ULL, &ids[2]));
	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(number, sizeof(number), "%d", fd);
	EXPECT_EQ(CTL_DONE, CTL("show", "--json", "--nearest=2", pid, number));
	EXPECT_SAYS("\"next_expiry_ns\": 3600000000000,");
	EXPECT_SAYS("\"armed\": 3,");
	EXPECT_SAYS("\"alarm_ns\": null,");
	EXPECT_SAYS("\"clock\": \"virtual\"");
	snprintf(text, sizeof(text), "\"id\": \"0x%llx\"", ids[1]);
	first = strstr(ctl_said, text);
	second = strstr(ctl_said, "\"user_data\": \"0xffffffffffffffff\"");
	ASSERT_NE(NULL, first);
	EXPECT_LT(first, second);
	EXPECT_EQ(2, times_said("\"user_data\""));
	EXPECT_SAYS("\"interval_ns\": 60000000000,");
	EXPECT_EQ(CTL_DONE, CTL("show", pid, number));
	EXPECT_SAYS("in 1 h, every 1 min\n");
	EXPECT_EQ(CTL_DONE, CTL("show", "--nearest=0", "--json", pid, number));
	EXPECT_SAYS("\"next_expiry_ns\": null,");
	EXPECT_SAYS("\"nearest\": []");
	EXPECT_EQ(CTL_UNKNOWN, CTL("show", pid, "0"));
	EXPECT_SAYS("descriptor 0 of process");
	EXPECT_EQ(CTL_UNKNOWN, CTL("show", pid, "999"));
	EXPECT_SAYS("descriptor 999 of process");
	EXPECT_EQ(CTL_UNKNOWN, CTL_AFTER(ctl_become_nobody, "show", pid, number));
	EXPECT_SAYS("run twheelctl as root");
	close(fd);
}

/* The descriptor may be there, and the caller without rights to it: the module is the matter. */
TEST_F(wheels, show_says_that_the_module_is_not_loaded)
{
	char pid[16];

	sprintf(pid, "%d", getpid());
	EXPECT_EQ(CTL_UNKNOWN, CTL("show", pid, "0"));
	EXPECT_SAYS("the module is not loaded");
	EXPECT_EQ(CTL_UNKNOWN, CTL_AFTER(ctl_become_nobody, "show", "1", "0"));
	EXPECT_SAYS("the module is not loaded");
}

#define COUNTERS	"/sys/class/misc/twheel/counters"

/* A module may be older than its counters. */
TEST_F(wheels, stat_shows_the_counters_of_the_module)
{
	int fd;

	EXPECT_EQ(CTL_UNKNOWN, CTL("stat"));
	EXPECT_SAYS("the module is not loaded");
	ASSERT_EQ(0, tw_load_and_wait(""));
	fd = open_named("counted", 0);
	if (access(COUNTERS, F_OK)) {
		EXPECT_EQ(CTL_UNKNOWN, CTL("stat", "--json"));
		EXPECT_SAYS("is older than they are");
	} else {
		EXPECT_EQ(CTL_DONE, CTL("stat", "--json", "--interval=0.1"));
		EXPECT_SAYS("\"wheels\": 1\n");
		EXPECT_SAYS("\"wheels\": 0.0\n");
		EXPECT_EQ(CTL_UNKNOWN, CTL_AFTER(ctl_become_nobody, "stat"));
		EXPECT_SAYS("only root can read the counters");
	}
	close(fd);
}

/* ---- the units of systemd ------------------------------------------------ */

#define COMMANDS	"/tmp/commands"

/*
 * Install a systemd with three units, two of which keep a descriptor. Since 254, it says of which
 * device it is; an older one has no such command.
 */
static int install_systemd(bool lists_stores)
{
	char script[1024], number[32] = "";
	FILE *file = fopen("/sys/class/misc/twheel/dev", "re");

	if (!file || fscanf(file, "%31s", number) != 1 || fclose(file))
		return -1;
	mkdir("/tmp", 0755);
	mkdir(COMMANDS, 0755);
	snprintf(script, sizeof(script),
		 "#!/bin/busybox sh\n"
		 "[ \"$2\" = none.service ] && exit 1\n"
		 "echo 'FDNAME  TYPE DEVNO INODE RDEVNO PATH FLAGS'\n"
		 "[ \"$2\" = other.service ] && echo 'a chr 0:5 1 1:3 /dev/null rw' && exit\n"
		 "echo 'wheel   chr  0:5   300   %s /dev/twheel rw'\n", number);
	if (!lists_stores)
		snprintf(script, sizeof(script), "#!/bin/busybox sh\nexit 1\n");
	return ctl_file(COMMANDS "/systemd-analyze", 0755, script) ?:
	       ctl_file(COMMANDS "/systemctl", 0755,
			"#!/bin/busybox sh\n/bin/busybox cat <<'EOT'\n"
			"Id=none.service\nNFileDescriptorStore=0\n\n"
			"NFileDescriptorStore=2\nId=out\\x2dlive.service\n\n"
			"Id=other.service\nNFileDescriptorStore=1\nEOT\n");
}

/* Run as process 1 of a namespace, under the name systemd: twheelctl has to print these. */
static int be_systemd(const char *in_text, const char *in_json)
{
	int fd = open_named("kept", 0);
	char who[128];
	__u64 id;

	if (fd < 0 || mount("proc", "/proc", "proc", 0, NULL) ||
	    prctl(PR_SET_NAME, "systemd") || setenv("PATH", COMMANDS ":/bin", 1))
		return 1;
	snprintf(who, sizeof(who), " (%s)\n", in_text);
	if (CTL("ps") != CTL_DONE || !strstr(ctl_said, who))
		return 2;
	if (CTL("ps", "--json") != CTL_DONE || !strstr(ctl_said, in_json))
		return 3;
	if (tw_arm_in(fd, TW_MS, &id) || tw_poll(fd, POLLIN, TW_PATIENCE_MS) != POLLIN)
		return 4;
	snprintf(who, sizeof(who), "(process 1, systemd, in the descriptor store of %s)", in_text);
	if (CTL("late", "--interval=0.1") != CTL_PROBLEM || !strstr(ctl_said, who) ||
	    !strstr(ctl_said, "No process reads it"))
		return 5;
	return 0;
}

static void expect_of_systemd(struct __test_metadata *_metadata, const char *in_text,
			      const char *in_json)
{
	int status;
	pid_t child = fork();

	if (!child) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS) ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
			_exit(126);
		child = fork();
		if (!child) {
			status = be_systemd(in_text, in_json);
			if (status)
				fprintf(stderr, "# %s\n", ctl_said);
			_exit(status);
		}
		_exit(waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 127);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(wheels, wheel_that_systemd_keeps_names_the_unit)
{
	ASSERT_EQ(0, tw_load_and_wait(""));
	ASSERT_EQ(0, install_systemd(true));
	expect_of_systemd(_metadata, "out\\x2dlive.service",
			  "\"units\": [\n        \"out\\\\x2dlive.service\"\n      ]");
}

/* If systemd is old, it does not say what a store has: any unit that has one may be the one. */
TEST_F(wheels, wheel_that_an_old_systemd_keeps_names_each_unit_with_a_store)
{
	ASSERT_EQ(0, tw_load_and_wait(""));
	ASSERT_EQ(0, install_systemd(false));
	expect_of_systemd(_metadata, "out\\x2dlive.service or other.service",
			  "\"out\\\\x2dlive.service\",\n        \"other.service\"\n");
}

/* ---- late ---------------------------------------------------------------- */

TEST_F(wheels, wheel_that_is_read_in_time_is_ok)
{
	pid_t child;
	int fd;
	__u64 id;

	ASSERT_EQ(0, tw_load_and_wait(""));
	fd = open_named("quiet", 5);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	EXPECT_EQ(CTL_DONE, CTL("late", "--json", "--interval=0.2"));
	EXPECT_EQ(0, ctl_findings(NULL))
		TH_LOG("%s", ctl_said);
	EXPECT_EQ(CTL_DONE, CTL("late", "--interval=0.2"));
	EXPECT_SAYS("ok: 1 wheel was watched");
	close(fd);
	child = fork();
	if (!child)
		for (;;)
			pause();
	EXPECT_EQ(CTL_UNKNOWN, CTL("late", "--interval=0.2", "999999"));
	EXPECT_SAYS("no-wheel");
	ctl_end(child);
}

/* For ctl_child(): make three events, which nobody reads. */
static int leave_unread(void)
{
	int fd = open_named("left", 0), i;
	__u64 id;

	for (i = 0; i < 3; i++)
		if (tw_arm_in(fd, TW_MS, &id))
			return -1;
	return tw_poll(fd, POLLIN, TW_PATIENCE_MS) != POLLIN;
}

TEST_F(wheels, reader_that_sleeps_is_named)
{
	char pid[16], text[64];
	pid_t child;

	ASSERT_EQ(0, tw_load_and_wait(""));
	child = ctl_child(leave_unread);
	ASSERT_LT(0, child);
	snprintf(pid, sizeof(pid), "%d", child);
	EXPECT_EQ(CTL_PROBLEM, CTL("late", "--json", "--interval=0.3", pid));
	EXPECT_EQ(1, ctl_findings("reader-sleeps"))
		TH_LOG("%s", ctl_said);
	EXPECT_SAYS("3 events wait to be read");
	ASSERT_EQ(0, kill(child, SIGSTOP));
	EXPECT_EQ(CTL_PROBLEM, CTL("late", "--interval=0.3"));
	snprintf(text, sizeof(text), "(process %d, twheel_ctl_whee, is stopped)", child);
	EXPECT_SAYS(text);
	ctl_end(child);
}

/* For ctl_child(): let twenty events come at a time, and read five of them. */
static int read_too_few(void)
{
	struct twheel_event events[5];
	struct twheel_arm arms[20];
	int fd = open_named("slow", 0);

	if (fd < 0 || fork())
		return fd < 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		memset(arms, 0, sizeof(arms));
		if (tw_arm_vec(fd, arms, ARRAY_SIZE(arms)) != ARRAY_SIZE(arms) ||
		    tw_poll(fd, POLLIN, TW_PATIENCE_MS) != POLLIN ||
		    tw_read(fd, events, ARRAY_SIZE(events)) < 0)
			_exit(1);
		tw_sleep(5 * TW_MS);
	}
}

TEST_F(wheels, reader_that_falls_behind_is_named)
{
	pid_t child;

	ASSERT_EQ(0, tw_load_and_wait(""));
	child = ctl_child(read_too_few);
	ASSERT_LT(0, child);
	/* Wait until it has read some events, and some are left. */
	tw_sleep(TW_SEC / 10);
	EXPECT_EQ(CTL_PROBLEM, CTL("late", "--json", "--interval=0.5"));
	EXPECT_EQ(1, ctl_findings("reader-slow"))
		TH_LOG("%s", ctl_said);
	EXPECT_SAYS("events come faster than they are read");
	ctl_end(child);
}

/* Let a child read events at once, which come each 10 ms, and have a nap after each second. */
static int read_between_naps(const char *name, void (*nap)(void))
{
	int fd = open_named(name, 0), i;
	struct twheel_event events[3];
	__u64 id, awake_ns;

	for (i = 0; i < ARRAY_SIZE(events); i++)
		if (tw_arm1(fd, 0, TW_SEC / 100, TW_SEC / 100, 0, &id))
			return -1;
	if (fork())
		return 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (awake_ns = tw_now(CLOCK_MONOTONIC);;) {
		if (tw_poll(fd, POLLIN, TW_PATIENCE_MS) != POLLIN ||
		    tw_read(fd, events, ARRAY_SIZE(events)) < 0)
			_exit(1);
		if (tw_now(CLOCK_MONOTONIC) < awake_ns + TW_SEC)
			continue;
		nap();
		awake_ns = tw_now(CLOCK_MONOTONIC);
	}
}

#define NAP	(300 * TW_MS)

static void sleep_for_a_nap(void)
{
	tw_sleep(NAP);
}

static void be_busy_for_a_nap(void)
{
	__u64 end_ns = tw_now(CLOCK_MONOTONIC) + NAP;

	while (tw_now(CLOCK_MONOTONIC) < end_ns)
		;
}

static void go_on(void)
{
}

/* For ctl_child() */
static int read_and_sleep(void)
{
	return read_between_naps("asleep", sleep_for_a_nap);
}

static int read_and_be_busy(void)
{
	return read_between_naps("busy", be_busy_for_a_nap);
}

static int read_at_once(void)
{
	return read_between_naps("awake", go_on);
}

/* Return a number of the first finding that has it. */
static __u64 number_said(const char *key)
{
	const char *at = strstr(ctl_said, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/*
 * Run `late' with this interval, in seconds, for all wheels or those of a process, until this cause
 * is named. If the host is busy, twheelctl itself may come too seldom, or a thread may wait for a
 * processor that the emulator does not run.
 */
static int look_for(const char *cause, const char *interval, const char *pid)
{
	char option[32];
	int tries = 5, status;

	snprintf(option, sizeof(option), "--interval=%s", interval);
	do
		status = CTL("late", "--json", option, pid);
	while (!ctl_findings(cause) && --tries);
	return status;
}

static void expect_nap(struct __test_metadata *_metadata, int (*read)(void))
{
	pid_t child;

	ASSERT_EQ(0, tw_load_and_wait(""));
	child = ctl_child(read);
	ASSERT_LT(0, child);
	EXPECT_EQ(CTL_PROBLEM, look_for("reader-naps", "3", NULL));
	EXPECT_EQ(1, ctl_findings("reader-naps"))
		TH_LOG("%s", ctl_said);
	EXPECT_EQ(0, ctl_findings("reader-sleeps"));
	EXPECT_SAYS("up to 3 of them");
	EXPECT_LE(1, number_said("\"times\": "));
	EXPECT_LE(TW_SEC / 10, number_said("\"longest_ns\": "));
	ctl_end(child);
}

TEST_F(wheels, reader_that_sleeps_now_and_then_is_named)
{
	expect_nap(_metadata, read_and_sleep);
}

TEST_F(wheels, reader_that_does_something_else_now_and_then_is_named)
{
	expect_nap(_metadata, read_and_be_busy);
}

/* Start this many children, which do nothing but run. */
static int be_busy_beside(int nr)
{
	while (nr--) {
		pid_t child = fork();

		if (child < 0)
			return -1;
		if (child)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	return 0;
}

/* The processor is taken from the reader again and again. */
static int read_beside_others(void)
{
	return be_busy_beside(4) ?: read_at_once();
}

TEST_F(wheels, reader_that_never_naps_is_not_named)
{
	pid_t child;

	ASSERT_EQ(0, tw_load_and_wait(""));
	child = ctl_child(read_at_once);
	ASSERT_LT(0, child);
	CTL("late", "--json", "--interval=2");
	EXPECT_EQ(0, ctl_findings("reader-naps"))
		TH_LOG("%s", ctl_said);
	ctl_end(child);
	child = ctl_child(read_beside_others);
	ASSERT_LT(0, child);
	CTL("late", "--json", "--interval=3");
	EXPECT_EQ(0, ctl_findings("reader-naps"))
		TH_LOG("%s", ctl_said);
	ctl_end(child);
}

TEST_F(wheels, shorter_nap_than_the_caller_asks_for_is_not_named)
{
	pid_t child;

	ASSERT_EQ(0, tw_load_and_wait(""));
	child = ctl_child(read_and_sleep);
	ASSERT_LT(0, child);
	CTL("late", "--json", "--interval=6", "--nap=20");
	EXPECT_EQ(0, ctl_findings("reader-naps"))
		TH_LOG("%s", ctl_said);
	ctl_end(child);
}

static void run_on(pid_t pid, int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(pid, sizeof(cpus), &cpus);
}

/* For ctl_child(): run on the first processor, and leave it to no ordinary thread. */
static int hog_a_processor(void)
{
	const struct sched_param fifo = { .sched_priority = 42 };

	run_on(0, 0);
	if (fork())
		return 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "hog");
	if (sched_setscheduler(0, SCHED_FIFO, &fifo))
		_exit(1);
	for (;;)
		;
}

static int read_on_the_first_processor(void)
{
	run_on(0, 0);
	return read_at_once();
}

TEST_F(wheels, reader_behind_a_real_time_thread_is_named)
{
	pid_t reader, hog;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "a second processor has to run the test");
	ASSERT_EQ(0, tw_load_and_wait("kthread_fifo=1"));
	run_on(0, 1);
	reader = ctl_child(read_on_the_first_processor);
	ASSERT_LT(0, reader);
	hog = ctl_child(hog_a_processor);
	ASSERT_LT(0, hog);
	EXPECT_EQ(CTL_PROBLEM, look_for("reader-waits", "3", NULL));
	EXPECT_EQ(1, ctl_findings("reader-waits"))
		TH_LOG("%s", ctl_said);
	EXPECT_EQ(0, ctl_findings("reader-naps"));
	EXPECT_SAYS("(hog) runs with real-time priority 42");
	ctl_end(hog);
	ctl_end(reader);
}

TEST_F(wheels, wheel_that_is_full_is_named)
{
	__u64 id;
	int fd;

	ASSERT_EQ(0, tw_load_and_wait(""));
	fd = open_named("full", 2);
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	EXPECT_EQ(CTL_DONE, CTL("late", "--json", "--interval=0.1"));
	ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	EXPECT_EQ(CTL_PROBLEM, CTL("late", "--json", "--interval=0.1"));
	EXPECT_ONLY("full");
	close(fd);
}

/* Make a wheel to which no timeout can be added, as a limit of memory is reached. */
static int use_up_memory(const char *name)
{
	int fd = open_named(name, 0);
	__u64 id;

	while (!tw_arm_in(fd, TW_HOUR, &id))
		;
	return fd;
}

TEST_F(wheels, user_whose_memory_is_used_up_is_named)
{
	int fd;

	ASSERT_EQ(0, tw_load_and_wait("kthreads=1 max_memory_kb=1024 max_user_memory_kb=512"));
	fd = use_up_memory("greedy");
	EXPECT_EQ(CTL_PROBLEM, CTL("late", "--json", "--interval=0.1"));
	EXPECT_ONLY("user-memory-limit");
	close(fd);
}

/* For ctl_child(): let the wheel of another user take the rest. */
static int take_the_rest(void)
{
	if (chmod(TW_DEVICE, 0666))
		return -1;
	ctl_become_nobody();
	return use_up_memory("rest") < 0;
}

/* No user has reached the limit of a user. */
TEST_F(wheels, memory_of_all_wheels_that_is_used_up_is_named)
{
	pid_t child;
	__u64 id;
	int fd, i;

	ASSERT_EQ(0, tw_load_and_wait("kthreads=1 max_memory_kb=1024 max_user_memory_kb=1024"));
	fd = open_named("half", 0);
	for (i = 0; i < 8000; i++)
		ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
	child = ctl_child(take_the_rest);
	ASSERT_LT(0, child);
	EXPECT_EQ(CTL_PROBLEM, CTL("late", "--json", "--interval=0.1"));
	EXPECT_ONLY("memory-limit");
	ctl_end(child);
	close(fd);
}

#define CROWD_MAX	20000

/* Let a child have this many timeouts expire at once, again and again. */
static int expire_crowds(const char *name, int nr)
{
	static struct twheel_event events[CROWD_MAX];
	static struct twheel_arm arms[CROWD_MAX];
	int fd = open_named(name, 0), i, n;

	if (fd < 0 || fork())
		return fd < 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		for (i = 0; i < nr; i++)
			arms[i] = (struct twheel_arm){ .expires_ns = 2 * TW_MS };
		if (tw_arm_vec(fd, arms, nr) != nr)
			_exit(1);
		for (n = 0; n < nr; n += i) {
			i = tw_read(fd, events, nr);
			if (i < 0 && i != -EAGAIN)
				_exit(1);
			if (i < 0)
				tw_poll(fd, POLLIN, -1);
			i = i < 0 ? 0 : i;
		}
	}
}

/* For ctl_child(): let more expire than the softirq takes at a time. */
static int expire_some(void)
{
	return expire_crowds("some", 4000);
}

/*
 * Let the only kthread have a crowd to expire on the first processor, where `run_other' runs as
 * well.
 */
static void crowd_beside(struct __test_metadata *_metadata, const char *parameters,
			 int (*run_other)(void), pid_t *crowd, pid_t *other)
{
	pid_t kthread;

	ASSERT_EQ(0, tw_load_and_wait(parameters));
	kthread = tw_thread_named("twheel/0");
	ASSERT_LT(0, kthread);
	run_on(kthread, 0);
	run_on(0, 1);
	*crowd = ctl_child(expire_some);
	ASSERT_LT(0, *crowd);
	*other = ctl_child(run_other);
	ASSERT_LT(0, *other);
}

TEST_F(wheels, kthread_behind_a_real_time_thread_is_named)
{
	pid_t crowd, hog;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "a second processor has to run the test");
	crowd_beside(_metadata, "kthreads=1", hog_a_processor, &crowd, &hog);
	EXPECT_EQ(CTL_PROBLEM, CTL("late", "--json", "--interval=1"));
	EXPECT_EQ(1, ctl_findings("kthread-waits"))
		TH_LOG("%s", ctl_said);
	EXPECT_SAYS("(hog) runs with real-time priority 42");
	ctl_end(hog);
	ctl_end(crowd);
}

/* If a problem is over, `late' does not report it to a monitor for ever. */
#define ROUNDS_MAX	50

TEST_F(wheels, wheel_that_was_late_before_is_ok)
{
	static struct twheel_event events[CROWD_MAX];
	static struct twheel_arm arms[CROWD_MAX];
	struct twheel_info info;
	int fd, i, nr, rounds = 0;
	pid_t hog;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "a second processor has to run the test");
	ASSERT_EQ(0, tw_load_and_wait("kthreads=1"));
	ASSERT_LT(0, tw_thread_named("twheel/0"));
	run_on(tw_thread_named("twheel/0"), 0);
	run_on(0, 1);
	hog = ctl_child(hog_a_processor);
	ASSERT_LT(0, hog);
	fd = open_named("once", 0);
	/* A softirq may be quick enough for all of them, so try again. */
	do {
		for (i = 0; i < CROWD_MAX; i++)
			arms[i] = (struct twheel_arm){ .expires_ns = 2 * TW_MS };
		ASSERT_EQ(CROWD_MAX, tw_arm_vec(fd, arms, CROWD_MAX));
		for (nr = 0; nr < CROWD_MAX; nr += i) {
			ASSERT_EQ(POLLIN, POLLIN & tw_poll(fd, POLLIN, TW_PATIENCE_MS));
			i = tw_read(fd, events, CROWD_MAX);
			ASSERT_LT(0, i);
		}
		ASSERT_EQ(0, tw_info(fd, &info));
	} while (!info.late && ++rounds < ROUNDS_MAX);
	ctl_end(hog);
	ASSERT_LT(0, info.late);
	EXPECT_EQ(CTL_DONE, CTL("late", "--json", "--interval=0.2"));
	/* The reader may have taken long to read them. */
	EXPECT_EQ(1, ctl_findings("was-late"));
	EXPECT_EQ(CTL_DONE, CTL("late", "--interval=0.2"));
	EXPECT_SAYS("ok: was-late: Wheel ");
	EXPECT_SAYS("this is over");
	EXPECT_SAYS(" ago (20");
	EXPECT_SAYS("ok: 1 wheel was watched");
	close(fd);
}

/* If a reader has napped, that is found after it reads in time again. */
TEST_F(wheels, wheel_that_was_read_late_before_is_ok)
{
	struct twheel_event events[3];
	char pid[16], number[16];
	__u64 id;
	int fd, i;

	ASSERT_EQ(0, tw_load_and_wait(""));
	fd = open_named("napped", 0);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, tw_arm_in(fd, TW_MS, &id));
	ASSERT_EQ(POLLIN, tw_poll(fd, POLLIN, TW_PATIENCE_MS));
	tw_sleep(300 * TW_MS);
	ASSERT_EQ(3, tw_read(fd, events, 3));
	EXPECT_EQ(CTL_DONE, CTL("late", "--json", "--interval=0.2"));
	EXPECT_EQ(1, ctl_findings("was-unread"))
		TH_LOG("%s", ctl_said);
	EXPECT_EQ(CTL_DONE, CTL("late", "--interval=0.2"));
	EXPECT_SAYS("ok: was-unread: Wheel ");
	EXPECT_SAYS("it was read late, and this is over: 3 events of 3 had been unread for ");
	EXPECT_SAYS(" ago (20");
	/* If longer naps are asked for, this one is not reported. */
	EXPECT_EQ(CTL_DONE, CTL("late", "--json", "--interval=0.2", "--nap=86400"));
	EXPECT_EQ(0, ctl_findings("was-unread"));
	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(number, sizeof(number), "%d", fd);
	EXPECT_EQ(CTL_DONE, CTL("show", pid, number));
	EXPECT_SAYS("how long events were unread, up to:\n");
	close(fd);
}

/* Expect the next line of `late --watch', within the patience of the test. */
static void expect_line(struct __test_metadata *_metadata, FILE *lines, const char *change)
{
	ASSERT_NE(NULL, fgets(ctl_said, CTL_SIZE, lines));
	EXPECT_SAYS(change);
	EXPECT_SAYS("\"cause\":\"full\"");
}

TEST_F(wheels, late_with_watch_says_what_begins_and_what_is_over)
{
	int fd, pipes[2], round;
	FILE *lines;
	pid_t pid;
	__u64 id;

	ASSERT_EQ(0, tw_load_and_wait(""));
	fd = open_named("full", 1);
	ASSERT_EQ(0, pipe(pipes));
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(pipes[1], STDOUT_FILENO);
		execl("/programs/twheelctl", "twheelctl", "late", "--watch", "--json",
		      "--interval=0.2", NULL);
		_exit(127);
	}
	close(pipes[1]);
	lines = fdopen(pipes[0], "r");
	for (round = 0; round < 2; round++) {
		ASSERT_EQ(0, tw_arm_in(fd, TW_HOUR, &id));
		expect_line(_metadata, lines, "\"change\":\"begins\"");
		ASSERT_EQ(TWHEEL_WAS_PENDING, tw_cancel1(fd, id));
		expect_line(_metadata, lines, "\"change\":\"ends\"");
	}
	ctl_end(pid);
	fclose(lines);
	close(fd);
}

/* For ctl_child(): let many ordinary threads want to run on the first processor. */
static int crowd_a_processor(void)
{
	run_on(0, 0);
	return be_busy_beside(8);
}

TEST_F(wheels, kthread_among_many_threads_is_named)
{
	pid_t crowd, others;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "a second processor has to run the test");
	crowd_beside(_metadata, "kthreads=1 kthread_nice=19", crowd_a_processor, &crowd, &others);
	EXPECT_EQ(CTL_PROBLEM, look_for("kthread-waits", "1", NULL));
	EXPECT_EQ(1, ctl_findings("kthread-waits"))
		TH_LOG("%s", ctl_said);
	EXPECT_EQ(0, ctl_findings("overload"));
	EXPECT_SAYS("too many threads want to run");
	ctl_end(others);
	ctl_end(crowd);
}

/* Let a child have more periods in a tick than can expire in one, however fast they are read. */
static int expire_periods(const char *name)
{
	static struct twheel_event events[CROWD_MAX];
	static struct twheel_arm arms[CROWD_MAX];
	int fd = open_named(name, 0), i;

	for (i = 0; i < CROWD_MAX; i++)
		arms[i] = (struct twheel_arm){ .expires_ns = TW_MS, .interval_ns = TW_MS };
	if (fd < 0 || tw_arm_vec(fd, arms, CROWD_MAX) != CROWD_MAX || fork())
		return fd < 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (tw_poll(fd, POLLIN, -1) < 0 || tw_read(fd, events, CROWD_MAX) < 0)
			_exit(1);
}

/* For ctl_child(): let another user give the kthread more to do. */
static int flood(void)
{
	if (chmod(TW_DEVICE, 0666))
		return -1;
	ctl_become_nobody();
	return expire_periods("flood");
}

TEST_F(wheels, flood_of_another_user_is_named)
{
	pid_t crowd, other;
	char pid[16];

	/* The kthread itself does not wait for a processor. */
	ASSERT_EQ(0, tw_load_and_wait("kthreads=1 kthread_fifo=1"));
	crowd = ctl_child(expire_some);
	ASSERT_LT(0, crowd);
	other = ctl_child(flood);
	ASSERT_LT(0, other);
	snprintf(pid, sizeof(pid), "%d", crowd);
	EXPECT_EQ(CTL_PROBLEM, look_for("flood", "1", pid));
	EXPECT_EQ(1, ctl_findings("flood"))
		TH_LOG("%s", ctl_said);
	EXPECT_SAYS("\\\"flood\\\" of user 1001");
	ctl_end(other);
	ctl_end(crowd);
}

/* For ctl_child(): one user alone gives the kthread so much to do. */
static int expire_many(void)
{
	return expire_periods("many");
}

TEST_F(wheels, user_with_too_many_timeouts_is_named)
{
	pid_t crowd;

	/* The kthread itself does not wait for a processor. */
	ASSERT_EQ(0, tw_load_and_wait("kthreads=1 kthread_fifo=1"));
	crowd = ctl_child(expire_many);
	ASSERT_LT(0, crowd);
	EXPECT_EQ(CTL_PROBLEM, look_for("overload", "1", NULL));
	EXPECT_EQ(1, ctl_findings("overload"))
		TH_LOG("%s", ctl_said);
	ctl_end(crowd);
}

TEST_HARNESS_MAIN
