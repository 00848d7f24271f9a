# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # common.sh and those that source this set and use the rest
# Sourced by bare.sh and packages.sh, after common.sh: bare Debian systems in folders. They need
# root, and the package debootstrap.
#
# .cache/bare/SUITE     as debootstrap made it; never entered
# .cache/bare/debs      packages that apt has downloaded in the systems
# .cache/bare/run.*     a copy of SUITE while it is used
# .cache/bare/logs      output of the commands

mirror=${DEBIAN_MIRROR:-http://deb.debian.org}
bare=$cache/bare
# The system that is in use.
root=

# README asks users to install git and make. A clone also needs certificates.
packages=git,make,ca-certificates

# This script runs as PID 1 in namespaces of its own, so that no mount and no process outlives it:
# $1 is the system, $2 the folder for packages, and the rest is the command. It uses pivot_root:
# in a chroot, the kernel refuses user namespaces, which the test of dkms needs.
# shellcheck disable=SC2016 # that shell expands it
inside='
set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t sysfs -o ro sysfs "$1/sys"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
mount --bind "$2" "$1/var/cache/apt/archives"
[ ! -e /dev/kvm ] || { touch "$1/dev/kvm" && mount --bind /dev/kvm "$1/dev/kvm"; }
cd "$1"
pivot_root . .
umount -l .
cd /
shift 2
exec "$@"'

# enter ROOT COMMAND...: run a command in a system. Meanwhile, $bare/running has the process to
# kill.
enter()
{
	local status=0

	mkdir -p "$bare/debs/partial"
	unshare --mount --pid --fork --kill-child --propagation private -- \
		bash -c "$inside" bash "$1" "$bare/debs" "${@:2}" &
	echo $! >"$bare/running"
	wait $! || status=$?
	rm "$bare/running"
	return $status
}

# make_suite SUITE: make a system, unless it is there.
make_suite()
{
	local dir=$bare/$1

	[ -e "$dir" ] && return
	say "making a bare Debian $1"
	rm -rf --one-file-system "$dir.tmp"
	quietly "$bare/logs/$1.log" debootstrap --variant=minbase --include=$packages \
		"$1" "$dir.tmp" "$mirror/debian"
	mv "$dir.tmp" "$dir"
}

# copy_suite SUITE: make a fresh system, $root.
copy_suite()
{
	root=$(mktemp -d "$bare/run.XXXXXX")
	cp -a "$bare/$1/." "$root/"
	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
}

# Remove the system. Its mounts end with its last process.
remove_system()
{
	local running

	if running=$(cat "$bare/running" 2>/dev/null); then
		kill -KILL "$running" && tail --pid="$running" -f /dev/null
		rm -f "$bare/running"
	fi
	[ -z "$root" ] || rm -rf --one-file-system "$root"
	root=
}

# Allow one run at a time.
lock_systems()
{
	[ "$(id -u)" = 0 ] || die "a bare system is made as root"
	[ -n "$(type -P debootstrap)" ] || die "as root, run: apt-get install debootstrap"
	mkdir -p "$bare/logs"
	exec 9>"$bare/lock"
	flock -n 9 || die "another run of this is under way"
	rm -f "$bare/running"
}
