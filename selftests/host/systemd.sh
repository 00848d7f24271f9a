#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Timeouts outlive their daemon: examples/outlive.c as a service of the real systemd of Debian
# 12, and of Debian 13, which keeps the descriptor of the wheel. tools/vm/guest/systemd-outlive
# kills the daemon there again and again.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/common.sh"
. "$(dirname "$0")/../../tools/vm/build.sh"
. "$(dirname "$0")/../../tools/vm/boot.sh"
. "$(dirname "$0")/../../tools/vm/tap.sh"
. "$(dirname "$0")/../../tools/vm/guest-tests.sh"
. "$(dirname "$0")/../../tools/vm/cases.sh"

work=$build/systemd
series=${kernels[-1]}

# make_root ROOT SUITE
make_root()
{
	local root=$1 units=$1/etc/systemd/system

	cp -a "$cache/udev/$2" "$root"
	mkdir -p "$root"/{proc,sys,dev,tmp,run,root,var/tmp} "$units/outlive.service.d"
	cp "$busybox" "$top/tools/vm/guest/systemd-outlive" "$work/examples/outlive" "$root/usr/bin/"
	cp "$work/src/twheel.ko" "$root/"
	cp "$top/examples/outlive.service" "$units/"
	# systemd gives up a service that is killed all the time.
	printf '[Unit]\nStartLimitIntervalSec=0\n' >"$units/outlive.service.d/kills.conf"
	cat >"$units/test.service" <<-EOT
	[Unit]
	DefaultDependencies=no
	[Service]
	Type=oneshot
	ExecStart=/usr/bin/systemd-outlive
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

echo "TAP version 13"
make_root "$work/bookworm" bookworm
boot_root bookworm 10
make_root "$work/trixie" trixie
boot_root trixie 100
echo "1..$number"
