// SPDX-License-Identifier: GPL-2.0
/*
 * `twheelctl check' names each cause for which a program does not get the device.
 *
 * The causes are prepared one at a time.  (Kernels that refuse the module, and one without
 * high-resolution timers, are booted by host/low_resolution.sh.)  The program loads and unloads the
 * module itself; TWHEEL_KO names the file.
 */
#include "twheel_ctl.h"
#include "twheel_outside.h"

#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

FIXTURE(check) {
	char modules[128];		/* the folder that modprobe searches */
};

FIXTURE_SETUP(check)
{
	struct utsname kernel;

	if (!ctl_is_there())
		SKIP(return, "there is no twheelctl here: it was not built");
	/* If a test failed, it has left the module. */
	tw_unload_soon();
	ASSERT_FALSE(tw_is_loaded());
	ASSERT_EQ(0, uname(&kernel));
	mkdir("/lib/modules", 0755);
	snprintf(self->modules, sizeof(self->modules), "/lib/modules/%s", kernel.release);
	ASSERT_EQ(0, mkdir(self->modules, 0755));
}

FIXTURE_TEARDOWN(check)
{
	char command[256];

	tw_unload_soon();
	snprintf(command, sizeof(command), "rm -rf %s", self->modules);
	EXPECT_EQ(0, system(command));
}

static char *read_module(struct __test_metadata *_metadata, size_t *size)
{
	FILE *file = fopen(tw_module_path(), "re");
	char *bytes;

	ASSERT_NE(NULL, file);
	ASSERT_EQ(0, fseek(file, 0, SEEK_END));
	*size = ftell(file);
	rewind(file);
	bytes = malloc(*size);
	ASSERT_NE(NULL, bytes);
	ASSERT_EQ(*size, fread(bytes, 1, *size, file));
	fclose(file);
	return bytes;
}

/* Install the module, or one with another number behind `key'. */
static void install_other(struct __test_metadata *_metadata, const char *modules, const char *key,
			  size_t length)
{
	char path[256], command[256], *bytes, *number;
	size_t size;
	FILE *file;

	bytes = read_module(_metadata, &size);
	number = length ? memmem(bytes, size, key, length) : NULL;
	ASSERT_EQ(!length, !number);
	if (number)
		number[length] = number[length] == '0' ? '1' : '0';
	snprintf(path, sizeof(path), "%s/twheel.ko", modules);
	file = fopen(path, "we");
	ASSERT_NE(NULL, file);
	ASSERT_EQ(size, fwrite(bytes, 1, size, file));
	fclose(file);
	free(bytes);
	snprintf(command, sizeof(command), "/programs/depmod 2>/dev/null");
	ASSERT_EQ(0, system(command));
}

static void install(struct __test_metadata *_metadata, const char *modules)
{
	install_other(_metadata, modules, NULL, 0);
}

TEST_F(check, module_that_is_not_installed_is_named)
{
	EXPECT_EQ(CTL_PROBLEM, CTL("check", "--json"));
	EXPECT_ONLY("not-installed");
	EXPECT_SAYS("\"verdict\": \"problem\"");
	EXPECT_EQ(CTL_PROBLEM, CTL("check"));
	EXPECT_SAYS("problem: not-installed: modprobe finds no module twheel");
}

#define OS_RELEASE	"/etc/os-release"

/*
 * Expect the advice to name the headers of the running kernel, as a system of that kind calls them.
 */
static void expect_headers(struct __test_metadata *_metadata, const char *release,
			   const char *system, const char *says)
{
	char text[256];

	ASSERT_EQ(0, ctl_file(OS_RELEASE, 0644, system));
	snprintf(text, sizeof(text), "install the headers of the kernel: %s%s", says, release);
	EXPECT_EQ(CTL_PROBLEM, CTL("check", "--json"));
	EXPECT_ONLY("not-installed");
	EXPECT_SAYS(text);
	EXPECT_EQ(0, unlink(OS_RELEASE));
}

TEST_F(check, headers_that_are_missing_are_named_as_the_distribution_names_them)
{
	const char *release = strrchr(self->modules, '/') + 1;
	char path[256];

	mkdir("/etc", 0755);
	ASSERT_NE(0, access(OS_RELEASE, F_OK));
	expect_headers(_metadata, release, "NAME=Debian\nID=debian\n",
		       "`apt install linux-headers-");
	expect_headers(_metadata, release, "ID_LIKE=\"ubuntu debian\"\nID=mint\n",
		       "`apt install linux-headers-");
	expect_headers(_metadata, release, "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n",
		       "`dnf install kernel-devel-");
	expect_headers(_metadata, release, "NAME=debian\nID=other\n",
		       "the package that the distribution has for ");
	snprintf(path, sizeof(path), "%s/build", self->modules);
	ASSERT_EQ(0, mkdir(path, 0755));
	strcat(path, "/Makefile");
	ASSERT_EQ(0, ctl_file(path, 0644, ""));
	EXPECT_EQ(CTL_PROBLEM, CTL("check", "--json"));
	EXPECT_ONLY("not-installed");
	EXPECT_EQ(NULL, strstr(ctl_said, "install the headers"))
		TH_LOG("%s", ctl_said);
}

TEST_F(check, module_that_is_not_loaded_is_named)
{
	install(_metadata, self->modules);
	EXPECT_EQ(CTL_PROBLEM, CTL("check", "--json"));
	EXPECT_ONLY("not-loaded");
	EXPECT_SAYS("modprobe twheel");
}

TEST_F(check, device_that_can_be_used_is_ok)
{
	ASSERT_EQ(0, tw_load_and_wait(""));
	EXPECT_EQ(CTL_DONE, CTL("check"));
	EXPECT_SAYS("ok: ");
	install(_metadata, self->modules);
	EXPECT_EQ(CTL_DONE, CTL("check", "--json"));
	EXPECT_SAYS("\"verdict\": \"ok\"");
	EXPECT_EQ(0, ctl_findings(NULL));
}

/* If only the library of a release is new, its module has the same sources. */
TEST_F(check, another_version_loaded_than_installed_is_named)
{
	static const char sources[] = "srcversion=", version[] = "\0version=";

	ASSERT_EQ(0, tw_load_and_wait(""));
	install_other(_metadata, self->modules, sources, sizeof(sources) - 1);
	EXPECT_EQ(CTL_PROBLEM, CTL("check", "--json"));
	EXPECT_ONLY("other-version");
	install_other(_metadata, self->modules, version, sizeof(version) - 1);
	EXPECT_EQ(CTL_PROBLEM, CTL("check", "--json"));
	EXPECT_ONLY("other-version");
}

TEST_F(check, node_that_was_removed_is_named)
{
	ASSERT_EQ(0, tw_load_and_wait(""));
	ASSERT_EQ(0, unlink(TW_DEVICE));
	EXPECT_EQ(CTL_PROBLEM, CTL("check", "--json"));
	EXPECT_ONLY("no-node");
}

TEST_F(check, user_outside_the_group_is_named)
{
	ASSERT_EQ(0, tw_load_and_wait(""));
	EXPECT_EQ(CTL_PROBLEM, CTL_AFTER(ctl_become_nobody, "check", "--json"));
	EXPECT_ONLY("no-permission");
	EXPECT_SAYS("open to root only");
	ASSERT_EQ(0, chmod(TW_DEVICE, 0660));
	ASSERT_EQ(0, chown(TW_DEVICE, 0, 777));
	EXPECT_EQ(CTL_PROBLEM, CTL_AFTER(ctl_become_nobody, "check", "--json"));
	EXPECT_ONLY("no-permission");
	EXPECT_SAYS("is not in that group");
	EXPECT_SAYS("usermod -aG ? ");
}

/* Mount a /dev of its own, as a container has. */
static void get_own_dev(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("dev", "/dev", "tmpfs", 0, NULL) ||
	    mknod("/dev/null", S_IFCHR | 0666, makedev(1, 3)))
		_exit(126);
}

TEST_F(check, container_without_the_node_is_named)
{
	ASSERT_EQ(0, tw_load_and_wait(""));
	EXPECT_EQ(CTL_PROBLEM, CTL_AFTER(get_own_dev, "check", "--json"));
	EXPECT_ONLY("container-without-node");
}

/* The number is another one each time that the module is loaded. */
static void get_stale_node(void)
{
	get_own_dev();
	if (mknod(TW_DEVICE, S_IFCHR | 0666, makedev(10, 254)))
		_exit(126);
}

TEST_F(check, node_with_an_old_number_is_named)
{
	ASSERT_EQ(0, tw_load_and_wait(""));
	EXPECT_EQ(CTL_PROBLEM, CTL_AFTER(get_stale_node, "check", "--json"));
	EXPECT_ONLY("stale-node");
}

static void forbid_devices(void)
{
	struct stat node;

	if (stat(TW_DEVICE, &node))
		_exit(126);
	get_own_dev();
	if (mount(NULL, "/dev", NULL, MS_REMOUNT | MS_NODEV, NULL) ||
	    mknod(TW_DEVICE, S_IFCHR | 0666, node.st_rdev))
		_exit(126);
}

TEST_F(check, file_system_without_devices_is_named)
{
	ASSERT_EQ(0, tw_load_and_wait(""));
	EXPECT_EQ(CTL_PROBLEM, CTL_AFTER(forbid_devices, "check", "--json"));
	EXPECT_ONLY("nodev");
}

#define CGROUP		"/sys/fs/cgroup/ctl"

/*
 * Let nobody in this cgroup open a device of major number 10, by a BPF program; return 0, or
 * -errno.
 */
static int cgroup_refuse(int cgroup)
{
	const struct bpf_insn refuse[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1,
		  .off = offsetof(struct bpf_cgroup_dev_ctx, major) },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 2, .imm = 10, .off = 1 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr load = {
		.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
		.insns = (unsigned long)refuse,
		.insn_cnt = ARRAY_SIZE(refuse),
		.license = (unsigned long)"GPL",
	};
	union bpf_attr attach = {
		.target_fd = cgroup,
		.attach_type = BPF_CGROUP_DEVICE,
	};
	int program = syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));

	if (program < 0)
		return -errno;
	attach.attach_bpf_fd = program;
	return syscall(SYS_bpf, BPF_PROG_ATTACH, &attach, sizeof(attach)) ? -errno : 0;
}

static void join_cgroup(void)
{
	int fd = open(CGROUP "/cgroup.procs", O_WRONLY);

	if (write(fd, "0", 1) != 1)
		_exit(126);
	close(fd);
}

TEST_F(check, cgroup_without_the_device_is_named)
{
	int cgroup, ret;

	ASSERT_EQ(0, tw_load_and_wait(""));
	rmdir(CGROUP);
	ASSERT_EQ(0, mkdir(CGROUP, 0755));
	cgroup = open(CGROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_LE(0, cgroup);
	ret = cgroup_refuse(cgroup);
	close(cgroup);
	if (ret) {
		rmdir(CGROUP);
		SKIP(return, "this kernel has no BPF for cgroups (%s)", strerror(-ret));
	}
	EXPECT_EQ(CTL_PROBLEM, CTL_AFTER(join_cgroup, "check", "--json"));
	EXPECT_ONLY("cgroup");
	EXPECT_EQ(0, rmdir(CGROUP));
}

/*
 * From now on, if a call has any of these bits in its argument `nr', seccomp does `action'. Return
 * the result of seccomp().
 */
static int install_filter(__u32 call, int nr, __u32 mask, __u32 bits, __u32 action, int flags)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[nr])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = ARRAY_SIZE(filter), .filter = filter };
	int ret;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		_exit(126);
	ret = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	if (ret < 0)
		_exit(126);
	return ret;
}

static void filter_calls(__u32 call, int nr, __u32 mask, __u32 bits, __u32 action)
{
	install_filter(call, nr, mask, bits, action, 0);
}

static void refuse_our_ioctls(void)
{
	filter_calls(SYS_ioctl, 1, 0xff00, TWHEEL_IOC_MAGIC << 8, SECCOMP_RET_ERRNO | EPERM);
}

static void kill_at_our_ioctls(void)
{
	filter_calls(SYS_ioctl, 1, 0xff00, TWHEEL_IOC_MAGIC << 8, SECCOMP_RET_KILL_PROCESS);
}

static void refuse_open_for_writing(void)
{
	filter_calls(SYS_openat, 2, O_ACCMODE, O_RDWR, SECCOMP_RET_ERRNO | EPERM);
}

TEST_F(check, seccomp_that_refuses_ioctl_or_open_is_named)
{
	ASSERT_EQ(0, tw_load_and_wait(""));
	EXPECT_EQ(CTL_PROBLEM, CTL_AFTER(refuse_our_ioctls, "check", "--json"));
	EXPECT_ONLY("seccomp");
	EXPECT_SAYS("an ioctl fails");
	EXPECT_EQ(CTL_PROBLEM, CTL_AFTER(kill_at_our_ioctls, "check", "--json"));
	EXPECT_ONLY("seccomp");
	EXPECT_SAYS("an ioctl kills the process");
	EXPECT_EQ(CTL_PROBLEM, CTL_AFTER(refuse_open_for_writing, "check", "--json"));
	EXPECT_ONLY("seccomp");
	EXPECT_SAYS("opening any device is refused");
}

/* Let another process wait for the first one that opens a file for writing, and end it. */
static void end_who_opens_for_writing(int signal)
{
	int listener = install_filter(SYS_openat, 2, O_ACCMODE, O_RDWR, SECCOMP_RET_USER_NOTIF,
				      SECCOMP_FILTER_FLAG_NEW_LISTENER);
	struct seccomp_notif opening = {};

	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Close the pipe: its reader waits for the end of twheelctl. */
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	_exit(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &opening) || kill(opening.pid, signal));
}

static void terminate_who_opens_for_writing(void)
{
	end_who_opens_for_writing(SIGTERM);
}

static void kill_who_opens_for_writing(void)
{
	end_who_opens_for_writing(SIGKILL);
}

/* There is a filter all the same. */
TEST_F(check, signal_that_ends_the_attempt_is_named_and_is_not_called_seccomp)
{
	ASSERT_EQ(0, tw_load_and_wait(""));
	EXPECT_EQ(CTL_UNKNOWN, CTL_AFTER(terminate_who_opens_for_writing, "check", "--json"));
	EXPECT_ONLY("killed");
	EXPECT_SAYS("Signal 15 (Terminated)");
	EXPECT_SAYS("when it opened /dev/null and /dev/twheel");
	EXPECT_EQ(CTL_UNKNOWN, CTL_AFTER(kill_who_opens_for_writing, "check", "--json"));
	EXPECT_ONLY("killed");
	EXPECT_SAYS("Signal 9 (Killed)");
	EXPECT_SAYS("OOM killer");
}

TEST_F(check, limit_of_memory_that_is_reached_is_named)
{
	int fds[64], nr = 0;

	ASSERT_EQ(0, tw_load_and_wait("max_memory_kb=256 max_user_memory_kb=128"));
	while (nr < ARRAY_SIZE(fds) && (fds[nr] = tw_open(O_CLOEXEC)) >= 0)
		nr++;
	ASSERT_GT(ARRAY_SIZE(fds), nr);
	EXPECT_EQ(CTL_PROBLEM, CTL("check", "--json"));
	EXPECT_ONLY("memory-limit");
	EXPECT_SAYS("max_user_memory_kb (128 kB");
	while (nr)
		close(fds[--nr]);
}

/* Do as a memory cgroup at its limit does, which may end the process as well. */
static void refuse_memory_at_open(void)
{
	filter_calls(SYS_openat, 2, O_ACCMODE, O_RDWR, SECCOMP_RET_ERRNO | ENOMEM);
}

TEST_F(check, machine_without_memory_is_named)
{
	ASSERT_EQ(0, tw_load_and_wait(""));
	EXPECT_EQ(CTL_PROBLEM, CTL_AFTER(refuse_memory_at_open, "check", "--json"));
	EXPECT_ONLY("no-memory");
}

static int use_up_descriptors(void)
{
	const struct rlimit limit = { .rlim_cur = 32, .rlim_max = 32 };

	if (setrlimit(RLIMIT_NOFILE, &limit))
		return -1;
	while (dup(STDERR_FILENO) >= 0)
		;
	return 0;
}

/* Expect check to find only this about a process that lives in this way. */
static void expect_of_child(struct __test_metadata *_metadata, int (*live)(void),
			    const char *cause)
{
	pid_t child = ctl_child(live);
	char pid[16];

	ASSERT_LT(0, child);
	snprintf(pid, sizeof(pid), "%d", child);
	EXPECT_EQ(CTL_PROBLEM, CTL("check", "--json", pid));
	EXPECT_ONLY(cause);
	ctl_end(child);
}

TEST_F(check, process_that_has_no_descriptor_left_is_named)
{
	ASSERT_EQ(0, tw_load_and_wait(""));
	expect_of_child(_metadata, use_up_descriptors, "descriptors");
}

#define FILE_MAX	"/proc/sys/fs/file-max"

static int live_in_a_container(void)
{
	get_own_dev();
	ctl_become_nobody();
	return 0;
}

static int live_as_nobody(void)
{
	ctl_become_nobody();
	return 0;
}

/* Root may go beyond the limit, and so does twheelctl, until it opens the device as that user. */
TEST_F(check, system_that_has_no_open_file_left_is_named)
{
	char most[32] = "";
	FILE *file;

	ASSERT_EQ(0, tw_load_and_wait(""));
	ASSERT_EQ(0, chmod(TW_DEVICE, 0666));
	file = fopen(FILE_MAX, "re");
	ASSERT_NE(NULL, file);
	ASSERT_NE(NULL, fgets(most, sizeof(most), file));
	fclose(file);
	ASSERT_EQ(0, tw_write_text(FILE_MAX, "1"));
	expect_of_child(_metadata, live_as_nobody, "descriptors");
	EXPECT_SAYS("in the whole system");
	EXPECT_EQ(0, tw_write_text(FILE_MAX, most));
}

/* If check gets a PID, it reports what that process sees, not what root sees. */
TEST_F(check, check_of_a_process_says_what_that_process_sees)
{
	ASSERT_EQ(0, tw_load_and_wait(""));
	expect_of_child(_metadata, live_in_a_container, "container-without-node");
	expect_of_child(_metadata, live_as_nobody, "no-permission");
	EXPECT_EQ(CTL_UNKNOWN, CTL("check", "--json", "999999"));
	EXPECT_ONLY("no-process");
}

#define LDCONFIG	"/sbin/ldconfig"

/* Install a command that prints the output of ldconfig on a machine with such libraries. */
static void install_ldconfig(struct __test_metadata *_metadata, const char *says)
{
	char script[1024];

	mkdir("/sbin", 0755);
	snprintf(script, sizeof(script),
		 "#!/bin/busybox sh\n/bin/busybox cat <<EOT\n2 libs found in cache\n%sEOT\n", says);
	ASSERT_EQ(0, ctl_file(LDCONFIG, 0755, script));
}

TEST_F(check, library_that_hides_another_version_is_named)
{
	ASSERT_NE(0, access(LDCONFIG, F_OK));
	ASSERT_EQ(0, tw_load_and_wait(""));
	install_ldconfig(_metadata,
			 "\tlibtwheel.so.1 (libc6,x86-64) => /usr/local/lib/libtwheel.so.1.1\n"
			 "\tlibtwheel.so.1 (libc6) => /usr/lib/i386-linux-gnu/libtwheel.so.1.0\n"
			 "\tlibtwheel.so.1 (libc6,x86-64) => /usr/lib/libtwheel.so.1.1\n");
	EXPECT_EQ(CTL_DONE, CTL("check", "--json"));
	install_ldconfig(_metadata,
			 "\tlibtwheel.so.1 (libc6,x86-64) => /usr/local/lib/libtwheel.so.1.1\n"
			 "\tlibtwheel.so.1 (libc6,x86-64) => /usr/lib/libtwheel.so.1.0\n");
	EXPECT_EQ(CTL_PROBLEM, CTL("check", "--json"));
	EXPECT_ONLY("two-libraries");
	EXPECT_SAYS("the library /usr/local/lib/libtwheel.so.1.1, which hides /usr/lib/libtwheel.so.1.0");
	EXPECT_EQ(0, unlink(LDCONFIG));
}

TEST_F(check, wrong_command_line_says_usage)
{
	EXPECT_EQ(64, CTL("open"));
	EXPECT_SAYS("there is no command \"open\"");
	EXPECT_EQ(64, CTL("check", "--interval=1"));
	EXPECT_EQ(64, CTL("check", "x"));
	EXPECT_EQ(64, CTL("show", "1"));
	EXPECT_EQ(0, CTL("late", "--help"));
	EXPECT_SAYS("--interval");
}

TEST_HARNESS_MAIN
