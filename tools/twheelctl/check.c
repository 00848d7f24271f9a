// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl check: why a program does not get the device, and what to do
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "check.h"

#define MODULE	"/sys/module/twheel"

/* Why the module is not there */

/* Whether the kernel takes only modules that have a signature it trusts. */
static bool signatures_enforced(void)
{
	char text[128];

	if (read_text("/sys/module/module/parameters/sig_enforce", text, sizeof(text)) > 0 &&
	    *text == 'Y')
		return true;
	return read_text("/sys/kernel/security/lockdown", text, sizeof(text)) > 0 &&
	       (strstr(text, "[integrity]") || strstr(text, "[confidentiality]"));
}

/* Whether the kernel's log says that it has refused some module for its signature. */
static bool module_was_refused(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char record[8192];
	bool found = false;
	ssize_t length;

	/* EPIPE: records were overwritten, and the next ones can be read. */
	while (fd >= 0 && !found &&
	       ((length = read(fd, record, sizeof(record) - 1)) > 0 || errno == EPIPE)) {
		record[length > 0 ? length : 0] = '\0';
		found = strstr(record, "Loading of module with unavailable key is rejected") ||
			strstr(record, "unsigned module loading is restricted");
	}
	if (fd >= 0)
		close(fd);
	return found;
}

#define SIGN \
	"Sign the module with a key that the kernel trusts. dkms does so with its own key: run `mokutil --import /var/lib/dkms/mok.pub', reboot, enrol the key at the prompt, then run `modprobe twheel'."

#define COMMAND_SIZE	160

/* Return whether a line of /etc/os-release, which names the distribution, has this word. */
static bool distribution_is(const char *text, const char *key, const char *name)
{
	const char *line = strstr(text, key), *at = line ? strstr(line + 1, name) : NULL;

	return at && !memchr(line + 1, '\n', at - line - 1);
}

/* The command that installs the headers of a kernel; a distribution may be like another one. */
static const char *headers_command(char command[COMMAND_SIZE], const char *release)
{
	static const char *const commands[][2] = {
		{ "debian", "`apt install linux-headers-%s'" },
		{ "fedora", "`dnf install kernel-devel-%s'" },
		{ "arch", "`pacman -S linux-headers' (those of %s)" },
		{ "", "the package that the distribution has for %s" },
	};
	char text[4096] = "\n";
	size_t i = 0;

	read_text("/etc/os-release", text + 1, sizeof(text) - 1);
	while (*commands[i][0] && !distribution_is(text, "\nID=", commands[i][0]) &&
	       !distribution_is(text, "\nID_LIKE=", commands[i][0]))
		i++;
	snprintf(command, COMMAND_SIZE, commands[i][1], release);
	return command;
}

static void not_installed(struct report *report)
{
	char path[128], command[COMMAND_SIZE], advice[512];
	struct utsname kernel;

	uname(&kernel);
	snprintf(path, sizeof(path), "/lib/modules/%s/build/Makefile", kernel.release);
	snprintf(advice, sizeof(advice),
		 "%s%s%srun `dkms autoinstall', or `make install' in the sources of twheel; then run `modprobe twheel'. In a container, do so on the host.",
		 access(path, F_OK) ? "As root, install the headers of the kernel: " : "As root, ",
		 access(path, F_OK) ? headers_command(command, kernel.release) : "",
		 access(path, F_OK) ? "; then " : "");
	report_add(report, PROBLEM, "not-installed", NULL, advice,
		   "modprobe finds no module twheel for the running kernel %s, and none is loaded.",
		   kernel.release);
}

static void not_loaded(struct report *report, const struct installed *installed)
{
	if (!installed->found)
		not_installed(report);
	else if (signatures_enforced() && !installed->is_signed)
		report_add(report, PROBLEM, "refused", NULL, SIGN,
			   "The module is installed, but has no signature, and this kernel (Secure Boot, lockdown or module.sig_enforce) loads none without.");
	else if (signatures_enforced() && module_was_refused())
		report_add(report, PROBLEM, "refused", NULL, SIGN,
			   "The module is installed, but this kernel (Secure Boot, lockdown or module.sig_enforce) loads only modules with a signature that it trusts, and its log says that it has refused one.");
	else
		report_add(report, PROBLEM, "not-loaded", NULL,
			   "As root, run `modprobe twheel'; if that fails, the end of `dmesg' says why, for example that a value in /etc/modprobe.d is wrong. A file in /etc/modules-load.d with the line \"twheel\" loads it at each boot. In a container, do so on the host.",
			   "The module is installed, but not loaded.");
}

/* If another version was installed since, the loaded one stays until it is unloaded. */
static void other_version(struct report *report, const struct installed *installed)
{
	char version[64], srcversion[64];

	if (!installed->found ||
	    read_text(MODULE "/version", version, sizeof(version)) < 0 ||
	    read_text(MODULE "/srcversion", srcversion, sizeof(srcversion)) < 0 ||
	    (!strcmp(version, installed->version) && !strcmp(srcversion, installed->srcversion)))
		return;
	report_add(report, PROBLEM, "other-version", NULL,
		   "End the programs that `twheelctl ps' shows, as root run `modprobe -r twheel && modprobe twheel', and start them again; or reboot.",
		   "Another module is loaded than is installed: version %s (sources %s) is loaded, %s (sources %s) is installed.",
		   version, srcversion, installed->version, installed->srcversion);
}

/* Why the device is not there, or cannot be opened */

#define PASS \
	"Give the container the device: `docker run --device=/dev/twheel', in a unit DeviceAllow=/dev/twheel without PrivateDevices=yes, for systemd-nspawn --bind=/dev/twheel as well."

static void no_node(struct report *report, const struct attempt *attempt)
{
	if (!attempt->own_dev)
		report_add(report, PROBLEM, "container-without-node", NULL, PASS,
			   "The module is loaded, but there is no " DEVICE " here: /dev is not the kernel's own, as in a container.");
	else
		report_add(report, PROBLEM, "no-node", NULL,
			   "As root, run `mknod " DEVICE " c $(tr : \" \" </sys/class/misc/twheel/dev)', or load the module again, which makes the node.",
			   "The module is loaded, but there is no " DEVICE ", though the kernel makes it in /dev: somebody has removed it.");
}

/* Return whether a user is in a group, by the files of the system. */
static bool is_member(uid_t uid, gid_t gid)
{
	struct passwd *user = getpwuid(uid);
	gid_t groups[1024];
	int nr = ARRAY_SIZE(groups), i;

	if (!user || getgrouplist(user->pw_name, user->pw_gid, groups, &nr) < 0)
		return false;
	for (i = 0; i < nr; i++)
		if (groups[i] == gid)
			return true;
	return false;
}

static void no_permission(struct report *report, const struct attempt *attempt, uid_t uid)
{
	struct group *group = getgrgid(attempt->gid);
	struct passwd *user = getpwuid(uid);
	const char *group_name = group ? group->gr_name : "?";
	char advice[256];

	if (attempt->nodev) {
		report_add(report, PROBLEM, "nodev", NULL,
			   "Mount that file system without nodev. " PASS,
			   "The file system of " DEVICE " is mounted with nodev, so that no device there can be opened.");
	} else if (!attempt->gid || !(attempt->mode & 060)) {
		report_add(report, PROBLEM, "no-permission", NULL,
			   "Install the udev rule and the group (`make install' and the packages do), and load the module again.",
			   DEVICE " has the mode 0%o and the group %s, so it is open to root only: no udev rule has given it to the group twheel.",
			   attempt->mode & 0777, group_name);
	} else if (is_member(uid, attempt->gid)) {
		report_add(report, PROBLEM, "no-permission", NULL,
			   "Log in again, or restart the service: a process gets its groups when it starts.",
			   "The user %s is in the group %s of " DEVICE ", but this process began before that.",
			   user->pw_name, group_name);
	} else {
		snprintf(advice, sizeof(advice),
			 "As root, run `usermod -aG %s %s', and log in again; in a unit, SupplementaryGroups=%s.",
			 group_name, user ? user->pw_name : "USER", group_name);
		report_add(report, PROBLEM, "no-permission", NULL, advice,
			   DEVICE " has the mode 0%o and the group %s, and the user %s is not in that group.",
			   attempt->mode & 0777, group_name,
			   user ? user->pw_name : "of this process");
	}
}

static void limit_reached(struct report *report, int error)
{
	__u64 all_kb = 0, user_kb = 0;

	read_number(MODULE "/parameters/max_memory_kb", &all_kb);
	read_number(MODULE "/parameters/max_user_memory_kb", &user_kb);
	if (error == ENOSPC)
		report_add(report, PROBLEM, "memory-limit", NULL,
			   "See with `twheelctl ps', as root, whose wheels take the memory, and close them; or raise the limit: write it, in kB, to /sys/module/twheel/parameters/max_user_memory_kb or max_memory_kb, and for the next start into /etc/modprobe.d/twheel.conf, as `options twheel max_user_memory_kb=...'.",
			   "A limit of memory is reached: max_user_memory_kb (%llu kB for the wheels of one user) or max_memory_kb (%llu kB for all wheels).",
			   user_kb, all_kb);
	else if (error == ENOMEM)
		report_add(report, PROBLEM, "no-memory", NULL,
			   "Raise memory.max of the cgroup, or free memory.",
			   "There is no memory for a wheel: the machine has none, or the memory cgroup is at its limit.");
	else
		report_add(report, PROBLEM, "descriptors", NULL,
			   error == ENFILE ? "Raise fs.file-max by sysctl." :
			   "Raise the limit: `ulimit -n', or LimitNOFILE= in a unit.",
			   error == EMFILE ? "No descriptor is left: RLIMIT_NOFILE is reached." :
			   "No open file is left in the whole system.");
}

static void seccomp_refuses(struct report *report, const char *call, const char *how)
{
	report_add(report, PROBLEM, "seccomp", NULL,
		   "Allow openat, ioctl, read, write, poll and mmap in the seccomp profile of the container or in SystemCallFilter= of the unit.",
		   "A seccomp filter is in force, and %s %s.", call, how);
}

/* The module never says EPERM to open(), so something else does. */
static void not_permitted(struct report *report, const struct attempt *attempt, bool filtered)
{
	if (attempt->null_error == attempt->error && filtered)
		seccomp_refuses(report, "opening any device", "is refused");
	else
		report_add(report, PROBLEM, "cgroup", NULL, PASS,
			   "Opening " DEVICE " is not permitted, though the node is there: the cgroup of the process, as that of a container, does not allow the device%s.",
			   filtered ? ", or a seccomp filter refuses the call" : "");
}

static void not_ours(struct report *report, const char *says)
{
	report_add(report, PROBLEM, "stale-node", NULL,
		   "Remove the node. On the machine itself, load the module again; start a container again, so that it gets the new one. The number may be another each time that the module is loaded.",
		   DEVICE " %s.", says);
}

static void open_failed(struct report *report, const struct attempt *attempt, uid_t uid,
			bool filtered)
{
	switch (attempt->error) {
	case EACCES:
		no_permission(report, attempt, uid);
		break;
	case EPERM:
		not_permitted(report, attempt, filtered);
		break;
	case ENXIO:
	case ENODEV:
		not_ours(report, "is a node of no device");
		break;
	case ENOSPC:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		limit_reached(report, attempt->error);
		break;
	default:
		if (filtered) {
			seccomp_refuses(report, "opening the device", strerror(attempt->error));
			break;
		}
		report_add(report, UNKNOWN, "open", NULL, "Look into the kernel's log.",
			   "Opening " DEVICE " failed: %s.", strerror(attempt->error));
	}
}

/* If a seccomp filter kills, it does so by SIGSYS, which nothing else sends. */
static void attempt_killed(struct report *report, const struct attempt *attempt)
{
	static const char *const tried[] = {
		[STEP_ENTER] = "took the place of the other one",
		[STEP_NODE] = "looked for " DEVICE,
		[STEP_OPEN] = "opened /dev/null and " DEVICE,
		[STEP_INFO] = "asked the wheel for INFO",
		[STEP_DONE] = "had succeeded",
	};
	/* For any other signal, and for SIGKILL */
	static const char *const advice[] = {
		"Try again. If it happens again, `strace -f twheelctl check' shows by whom the signal was sent.",
		"Look into the kernel's log: if the machine or the memory cgroup had no memory left, the OOM killer has done so; else somebody has, so try again.",
	};

	if (attempt->signal == SIGSYS)
		seccomp_refuses(report,
				attempt->step == STEP_INFO ? "an ioctl" : "opening a file",
				"kills the process");
	else
		report_add(report, UNKNOWN, "killed", NULL,
			   advice[attempt->signal == SIGKILL],
			   "Signal %d (%s) has ended the process that tried the device, when it %s.",
			   attempt->signal, strsignal(attempt->signal), tried[attempt->step]);
}

static void device_failed(struct report *report, const struct attempt *attempt, uid_t uid,
			  bool filtered)
{
	dev_t device;

	if (attempt->signal) {
		attempt_killed(report, attempt);
	} else if (attempt->step == STEP_ENTER) {
		report_add(report, UNKNOWN, "not-root", NULL,
			   "Run twheelctl as root, or as the user of the process and without PID.",
			   "The place of the process cannot be taken: %s.",
			   strerror(attempt->error));
	} else if (attempt->step == STEP_NODE) {
		no_node(report, attempt);
	} else if (!S_ISCHR(attempt->mode) ||
		   (device_number(&device) && device != attempt->device)) {
		not_ours(report, S_ISCHR(attempt->mode) ?
			 "has another number than the device has now" : "is no device");
	} else if (attempt->step == STEP_OPEN) {
		open_failed(report, attempt, uid, filtered);
	} else if (filtered) {
		seccomp_refuses(report, "an ioctl fails with:", strerror(attempt->error));
	} else {
		report_add(report, UNKNOWN, "ioctl", NULL, "Look into the kernel's log.",
			   "The device can be opened, but INFO fails: %s.",
			   strerror(attempt->error));
	}
}

/* The limits and filters of another process, which our own attempt does not show */

static void process_check(struct report *report, int pid, bool filtered)
{
	struct rlimit most;
	char path[64];
	__u64 nr = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	/* Do not count "." and "..", which are no descriptors. */
	while (dir && readdir(dir))
		nr++;
	if (dir)
		closedir(dir);
	if (!prlimit(pid, RLIMIT_NOFILE, NULL, &most) && nr >= most.rlim_cur + 2)
		report_add(report, PROBLEM, "descriptors", NULL,
			   "Raise the limit: `prlimit --nofile=NUMBER --pid PID', or LimitNOFILE= in a unit.",
			   "Process %d has %llu descriptors open, and may have %llu (RLIMIT_NOFILE).",
			   pid, nr - 2, (__u64)most.rlim_cur);
	if (filtered)
		report_add(report, UNKNOWN, "seccomp", NULL,
			   "Run `twheelctl check' as a child of the process, or in its container.",
			   "Process %d has a seccomp filter, and what that refuses cannot be told from outside.",
			   pid);
}

static void resolution_check(struct report *report)
{
	char text[TEXT_SIZE];

	if (resolution_ns() <= 1)
		return;
	report_add(report, PROBLEM, "low-resolution", NULL,
		   "Boot without highres=off and nohz=off, and with a clock source that is good enough (/sys/devices/system/clocksource).",
		   "The kernel has no high-resolution timers, so each timeout may come %s late.",
		   time_text(text, resolution_ns()));
}

int check_run(const struct options *options)
{
	int pid = options->nr ? options->numbers[0] : 0;
	__u64 seccomp = 0, uid = getuid();
	struct installed installed;
	struct attempt attempt;
	struct report report;
	char path[64];
	struct stat status;

	report_begin(&report, options->json);
	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (pid && stat(path, &status)) {
		report_add(&report, UNKNOWN, "no-process", NULL, "Give the PID of one that lives.",
			   "There is no process %d here.", pid);
		return report_end(&report, "");
	}
	if (pid)
		uid = status.st_uid;
	status_number(pid ?: getpid(), "Seccomp:", 10, &seccomp);
	if (!pid)
		libraries_check(&report);
	installed_look(&installed);
	if (access("/sys/module", F_OK)) {
		report_add(&report, UNKNOWN, "no-sysfs", NULL, "Mount it: mount -t sysfs sys /sys",
			   "/sys is not mounted, so it cannot be told whether the module is loaded.");
	} else if (access(MODULE, F_OK)) {
		not_loaded(&report, &installed);
		return report_end(&report, "");
	}
	other_version(&report, &installed);
	attempt_make(&attempt, pid);
	if (attempt.step != STEP_DONE || attempt.signal)
		device_failed(&report, &attempt, uid, seccomp);
	if (pid && attempt.step != STEP_ENTER)
		process_check(&report, pid, seccomp);
	resolution_check(&report);
	return report_end(&report, DEVICE " can be opened, and the module answers.");
}
