#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Boot the real systemd of Debian 12 and of Debian 13, with the files of install-udev: it loads
# the module, and the device gets its group. Timeouts outlive their daemon: systemd keeps the
# descriptor of the wheel of examples/outlive.c, a service that is killed again and again. While
# the daemon is away, twheelctl names its unit, and twheel-late.service reports that nobody reads
# the wheel. systemd keeps the descriptor of a drained wheel only with FDPOLL=0.
# tools/vm/guest/systemd-test runs in the machine.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/build.sh"
. "$(dirname "$0")/../../tools/vm/lib/boot.sh"
. "$(dirname "$0")/../../tools/vm/lib/tap.sh"
. "$(dirname "$0")/../../tools/vm/lib/guest-tests.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/systemd
series=${kernels[-1]}
release=$(cat "$cache/kernels/$series/release")

# Compile a service that gives two drained wheels to systemd. If it is started again with those
# that were kept, it only waits.
compile_drained()
{
	gcc -x c -std=gnu11 -O2 -Wall -Wextra -static -I"$top/uapi" -o "$work/drained" - <<-'EOT'
	#include <fcntl.h>
	#include <stddef.h>
	#include <stdlib.h>
	#include <string.h>
	#include <sys/ioctl.h>
	#include <sys/socket.h>
	#include <sys/un.h>
	#include <unistd.h>
	#include <linux/twheel.h>

	static void notify(int to, const char *text, int fd)
	{
		struct iovec iov = { (void *)text, strlen(text) };
		char control[CMSG_SPACE(sizeof(int))] = "";
		struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
		struct cmsghdr *header;

		if (fd >= 0) {
			message.msg_control = control;
			message.msg_controllen = sizeof(control);
			header = CMSG_FIRSTHDR(&message);
			header->cmsg_level = SOL_SOCKET;
			header->cmsg_type = SCM_RIGHTS;
			header->cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(header), &fd, sizeof(fd));
		}
		if (sendmsg(to, &message, 0) < 0)
			exit(1);
	}

	static int drained(void)
	{
		int fd = open("/dev/twheel", O_RDWR | O_CLOEXEC);

		if (fd < 0 || ioctl(fd, TWHEEL_IOC_DRAIN))
			exit(1);
		return fd;
	}

	int main(void)
	{
		struct sockaddr_un address = { .sun_family = AF_UNIX };
		const char *path = getenv("NOTIFY_SOCKET");
		int to = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
		if (address.sun_path[0] == '@')
			address.sun_path[0] = 0;
		if (connect(to, (struct sockaddr *)&address,
			    offsetof(struct sockaddr_un, sun_path) + strlen(path)))
			return 1;
		if (!getenv("LISTEN_FDS")) {
			notify(to, "FDSTORE=1\nFDNAME=polled", drained());
			notify(to, "FDSTORE=1\nFDNAME=unpolled\nFDPOLL=0", drained());
		}
		notify(to, "READY=1", -1);
		for (;;)
			pause();
	}
	EOT
}

# make_root ROOT SUITE
make_root()
{
	local root=$1 units=$1/etc/systemd/system updates=$1/usr/lib/modules/$release/updates

	cp -a "$cache/udev/$2" "$root"
	mkdir -p "$root"/{proc,sys,dev,tmp,run,root,var/tmp} \
		"$units"/{outlive,systemd-udev-trigger,twheel-late}.service.d
	cp "$busybox" "$top/tools/vm/guest/systemd-test" "$work/examples/outlive" "$work/drained" \
		"$work/twheelctl/twheelctl" "$root/usr/bin/"
	install -D -m 644 -t "$updates" "$work/src/twheel.ko"
	depmod -b "$root" "$release" 2>"$work/depmod.log"
	quietly "$work/install.log" make -C "$top" install-udev DESTDIR="$root"
	cp "$top/examples/outlive.service" "$top/tools/twheelctl/twheel-late.service" "$units/"
	cp "$top/packaging/prometheus/twheel-metrics" "$root/usr/bin/"
	printf '%s\n' '[Unit]' DefaultDependencies=no '[Service]' StandardOutput=file:/run/late \
		ExecStart= 'ExecStart=twheelctl late --watch --interval=2' \
		>"$units/twheel-late.service.d/test.conf"
	# Otherwise, systemd would give up a service that is killed so often.
	printf '[Unit]\nStartLimitIntervalSec=0\n' >"$units/outlive.service.d/kills.conf"
	# The events of all other devices would take longer than the rest of the test.
	printf '%s\n' '[Service]' ExecStart= \
		'ExecStart=udevadm trigger --type=devices --action=add --subsystem-match=misc' \
		>"$units/systemd-udev-trigger.service.d/few.conf"
	cat >"$units/test.service" <<-EOT
	[Unit]
	DefaultDependencies=no
	Wants=systemd-modules-load.service systemd-sysusers.service systemd-udev-trigger.service
	After=systemd-modules-load.service systemd-sysusers.service systemd-udev-trigger.service
	[Service]
	Type=oneshot
	ExecStart=/usr/bin/systemd-test
	EOT
	cat >"$units/drained.service" <<-EOT
	[Unit]
	DefaultDependencies=no
	[Service]
	Type=notify
	ExecStart=/usr/bin/drained
	FileDescriptorStoreMax=2
	Restart=on-failure
	RestartSec=0
	EOT
	sed -i '/^\[Unit\]/a DefaultDependencies=no' "$units/outlive.service"
	pack_root "$root" "$root.initramfs"
}

# boot_root SUITE KILLS
boot_root()
{
	local files=$work/$1 line ends=false
	local arguments='rdinit=/usr/lib/systemd/systemd systemd.unit=test.service'

	if hear "$files.log" @end "$series" "$files.initramfs" "$arguments systemd.setenv=kills=$2"; then
		ends=true
	else
		tail -n 60 "$files.log"
	fi
	for line in "${said[@]}"; do
		case $line in
		'ok '* | 'not ok '*) verdict "${line%%ok *}ok" "Debian $1: ${line#*ok }" ;;
		@end) ;;
		*) echo "# $line" ;;
		esac
	done
	check "Debian $1: the machine comes to its end" $ends
	check "Debian $1: the kernel does not complain" no_complaint "$files.log"
	rm "$files.initramfs"
}

no_complaint()
{
	! find_complaints <"$1"
}

rm -rf "$work"
mkdir -p "$work"
build_quickly "$series" "$work/src"
quietly "$work/examples.log" make -C "$top/examples" OUTPUT="$work/examples" LDFLAGS=-static \
	"$work/examples/outlive"
compile_drained
quietly "$work/twheelctl.log" make -C "$top/tools/twheelctl" OUTPUT="$work/twheelctl" LDFLAGS=-static

echo "TAP version 13"
make_root "$work/bookworm" bookworm
boot_root bookworm 5
make_root "$work/trixie" trixie
boot_root trixie 15
echo "1..$number"
