# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by all scripts in tools/vm and by those of tests: paths, and how to print messages.
#
# .cache/apt          an apt state of this tree: package lists, sources
# .cache/debs         downloads, until they are unpacked
# .cache/kernels/6.12 vmlinuz, release and root/ with the unpacked headers. A kernel
#                     that is built here has build/ instead (see source.sh)
# .cache/trixie       the compiler of kernels newer than Debian 12's, see newer.sh
# .cache/kselftest    kselftest_harness.h, lib.mk and the files that they need
# .cache/busybox      a static busybox for the guest
# .cache/bindgen      bindgen, which makes bindings from the library's headers
# .cache/python       a small Python for the guest
# .cache/python-cffi  a larger one, which builds and runs the binding for Python
# .cache/udev         roots of Debian 12 and 13 with their udev, see udev.sh, systemd.sh
# .cache/build        products: modules, test programs, guest trees
# .cache/accelerator.6.12  whether kvm boots that kernel here, see boot.sh
# .cache/seconds      how long each test program took last time
# .cache/run          console logs of the virtual machines

set -euo pipefail

# With CDPATH, cd might go to another folder, and would print it. Scripts that do not source this
# file unset it as well.
unset CDPATH
top=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
# shellcheck disable=SC2034 # the scripts that source this use them
{
	cache=$top/.cache
	build=$cache/build
	run=$cache/run
	ksft=$cache/kselftest/tools/testing/selftests
	read -ra kernels <<<"${KERNELS:-6.1 6.12 7.3}"
	verbose=${V:-}
}

# Debian has modinfo and dkms in sbin, which is not in a user's PATH.
export PATH=$PATH:/usr/sbin:/sbin

# The caller's make flags and variables are not meant for the make processes started here.
unset MAKEFLAGS MFLAGS MAKELEVEL KDIR DESTDIR TWHEEL_VERSION PREFIX includedir

# The scripts read the output of apt, compilers and other tools, so it must be in English.
unset LANGUAGE
export LC_ALL=C

say()
{
	printf '== %s\n' "$*" >&2
}

die()
{
	printf 'error: %s\n' "$*" >&2
	exit 1
}

# quietly LOG COMMAND...: write the output to LOG. Show it if the command fails, or with V=1.
quietly()
{
	local log=$1
	shift
	mkdir -p "${log%/*}"
	if [ -n "$verbose" ]; then
		"$@" 2>&1 | tee "$log" >&2
		return
	fi
	"$@" >"$log" 2>&1 || {
		printf 'failed: %s\n' "$*" >&2
		cat "$log" >&2
		return 1
	}
}

# Fail if kbuild cannot build below this folder, or if programs cannot be run there.
can_build_here()
{
	local probe=$cache/probe.$$ status=0

	[ -z "$(printf %s "$top" | tr -d 'A-Za-z0-9_./+@~^\200-\377-')" ] || die "$top has a blank or another character in its path
  that kbuild cannot work with: move the folder, or give it another name."
	printf '#!/bin/sh\nexit 0\n' >"$probe" || die "$cache cannot be written"
	chmod 755 "$probe"
	"$probe" 2>/dev/null || status=$?
	rm -f "$probe"
	[ $status = 0 ] || die "no program can be run below $cache, which is mounted with noexec.
  Test programs are built and run there: move the folder to another file system, or make
  .cache a link to a folder that is on one."
}

# Wait for another run: both would build into the same folder.
lock_cache()
{
	mkdir -p "$cache"
	can_build_here
	exec 9>"$cache/lock"
	flock -n 9 || {
		say "waiting for another run in this tree to end"
		flock 9
	}
}

# Print the KDIR of a kernel, say 6.12. A kernel that was built here has a build folder.
kernel_headers()
{
	local dir=$cache/kernels/$1

	if [ -d "$dir/build" ]; then
		echo "$dir/build"
		return
	fi
	echo "$dir/root/usr/src/linux-headers-$(cat "$dir/release")"
}
