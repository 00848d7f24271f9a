#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test who may open the device after make install, in a virtual machine with the real udevd of
# Debian 12 and of Debian 13. The machine boots twice: the module is installed in it, and loaded
# at the next boot (tools/vm/guest/udev-init). The headers of its kernel are a stand-in: the
# module was built here, so the machine needs no compiler.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/build.sh"
. "$(dirname "$0")/../../tools/vm/lib/boot.sh"
. "$(dirname "$0")/../../tools/vm/lib/tap.sh"
. "$(dirname "$0")/../../tools/vm/lib/guest-tests.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/udev
series=${kernels[-1]}
release=$(cat "$cache/kernels/$series/release")

# stub_headers FOLDER: make headers for a module that is already built.
stub_headers()
{
	mkdir -p "$1"/include/{config,generated}
	cp "$(kernel_headers "$series")/.config" "$1/"
	echo "$release" >"$1/include/config/kernel.release"
	echo "#define UTS_RELEASE \"$release\"" >"$1/include/generated/utsrelease.h"
	cat >"$1/Makefile" <<-EOT
	.RECIPEPREFIX := >
	modules:
	> test -s \$(M)/twheel.ko
	modules_install:
	> install -D -m 644 \$(M)/twheel.ko \$(INSTALL_MOD_PATH)/lib/modules/$release/updates/twheel.ko
	EOT
}

# make_root FILES SUITE: make a Debian in which the module can be installed.
make_root()
{
	local root=$1/root

	mkdir "$1"
	cp -a "$cache/udev/$2" "$root"
	mkdir -p "$root"/{proc,sys,dev,tmp,run,root,etc,src}
	cp "$busybox" "$top/tools/vm/guest/udev-init" "$root/usr/bin/"
	ln -s usr/bin/udev-init "$root/init"
	cp -a "$work/src/." "$root/src/"
	stub_headers "$root/lib/modules/$release/build"
	pack_root "$root" "$1/initramfs"
}

# report_results PREFIX
report_results()
{
	local line

	for line in "${said[@]}"; do
		case $line in
		'ok '* | 'not ok '*) verdict "${line%%ok *}ok" "$1: ${line#*ok }" ;;
		@end) ;;
		*) echo "# $line" ;;
		esac
	done
}

no_complaint()
{
	! find_complaints <"$1"
}

# stage FILES STAGE PREFIX
stage()
{
	local console=$1/$2.log ends=false

	if hear "$console" @end "$series" "$1/initramfs" "stage=$2 printk.devkmsg=on" \
		-serial "file:$1/$2.changed"; then
		ends=true
	else
		tail -n 60 "$console"
	fi
	report_results "$3"
	check "$3: the machine comes to its end" $ends
	check "$3: the kernel does not complain" no_complaint "$console"
}

rm -rf "$work"
mkdir -p "$work"
build_quickly "$series" "$work/src"
cp -r "$top/tools" "$top/COPYING" "$top/LICENSES" "$work/src/"

echo "TAP version 13"
for suite in bookworm trixie; do
	files=$work/$suite
	make_root "$files" $suite
	stage "$files" install "Debian $suite, installed"
	# The kernel unpacks all archives, one after the other.
	cat "$files/install.changed" >>"$files/initramfs"
	stage "$files" reboot "Debian $suite, booted again"
	rm "$files/initramfs"
done
echo "1..$number"
