#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make test-bare: `make demo' and `make test' on a Debian that has git and make and nothing
# else. Each combination of a Debian, a user and a language gets a fresh system in
# a folder, with a clone of the last commit in it. This needs root, and the package
# debootstrap.
#
# SUITES='bookworm trixie'   USERS='root user'   LOCALES='C de_DE.UTF-8'
# TARGETS='demo test'        CACHE=.cache copies what that folder has of kernels and
#                            compilers, instead of fetching it each time
# KEEP=1 leaves the systems that have failed.
# TESTS, EXCEPT, KERNELS and their like are for the runs.
#
# For a user without root, root runs the command that make names, and the user then calls
# make again.
#
# .cache/bare/SUITE     as debootstrap made it; never entered
# .cache/bare/debs      packages that apt has downloaded in the systems
# .cache/bare/run.*     a copy of SUITE while it is used
# .cache/bare/logs      SUITE-USER-LOCALE-TARGET.log
# shellcheck source-path=SCRIPTDIR

# These choose tests within a run, and not among the runs.
handed_on=()
for name in TESTS EXCEPT KERNELS SMP LANES TEST_TIMEOUT V DEBIAN_MIRROR http_proxy https_proxy; do
	[ -z "${!name:-}" ] || handed_on+=("$name=${!name}")
done
unset TESTS EXCEPT

. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/tap.sh"

read -ra suites <<<"${SUITES:-bookworm trixie}"
read -ra users <<<"${USERS:-root user}"
read -ra locales <<<"${LOCALES:-C de_DE.UTF-8}"
read -ra targets <<<"${TARGETS:-demo test}"
mirror=${DEBIAN_MIRROR:-http://deb.debian.org}
bare=$cache/bare

# README names these, and they need certificates to fetch a clone.
packages=git,make,ca-certificates
# What may be copied from CACHE.
parts=(apt apt-trixie busybox kselftest loops python trixie kernels/6.1 kernels/6.12 kernels/7.3)

# This runs as PID 1 in namespaces of its own, so that no mount and no process outlives it:
# $1 is the system, $2 the packages, and the rest is the command. It does not use chroot,
# under which the kernel refuses a user namespace, and the test of dkms makes one.
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

# enter ROOT COMMAND...: while it runs, $bare/running has the process to be killed.
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

# as USER LOCALE COMMAND...: in $root, with an environment as after login.
as()
{
	local user=$1 home=/root path=/usr/local/bin:/usr/bin:/bin language=()
	local switch=(chroot --userspec="$1:$1" / env)

	if [ "$user" = root ]; then
		path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	else
		home=/home/$user
	fi
	[ "$2" = C ] || language=(LC_ALL="$2" LANGUAGE="${2%%_*}")
	enter "$root" "${switch[@]}" -i -C "$home" HOME="$home" USER="$user" LOGNAME="$user" \
		PATH="$path" TERM=dumb LANG="$2" "${language[@]}" \
		"${handed_on[@]}" "${@:3}" </dev/null
}

# make_suite SUITE: once.
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

# Without the package, programs would go on in English.
add_locale()
{
	[ "$1" != C ] || return 0
	as root C sh -c "apt-get update && apt-get install -y --no-install-recommends locales &&
		localedef -i ${1%.*} -f ${1#*.} $1"
}

# make_system SUITE USER LOCALE: $root, with a clone in the user's home.
make_system()
{
	local suite=$1 user=$2 home=/root part copied

	[ "$user" = root ] || home=/home/$user
	root=$(mktemp -d "$bare/run.XXXXXX")
	cp -a "$bare/$suite/." "$root/"
	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
	[ "$user" = root ] || as root C useradd -m -s /bin/bash "$user"
	quietly "$bare/logs/locale.log" add_locale "$3"
	git clone -q --no-hardlinks "$top" "$root$home/twheel"
	for part in "${parts[@]}"; do
		[ -e "${CACHE:-/nonexistent}/$part" ] || continue
		copied=$root$home/twheel/.cache/$part
		mkdir -p "${copied%/*}"
		cp -a "$CACHE/$part" "$copied"
	done
	as root C chown -R "$user:$user" "$home/twheel"
}

# The mounts of the system are gone with its last process.
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

# run_target USER LOCALE TARGET LOG: a command that make wants to be run as root is run
# once.
run_target()
{
	local command

	as "$1" "$2" make -C twheel "$3" 2>&1 | tee "$4" && return
	command=$(sed -n 's/^error: as root, run: //p' "$4")
	[ "$1" != root ] && [ -n "$command" ] || return 1
	echo "# as root: $command"
	as root "$2" env DEBIAN_FRONTEND=noninteractive sh -c "$command" >>"$4" 2>&1 || {
		tail -n 20 "$4"
		return 1
	}
	as "$1" "$2" make -C twheel "$3" 2>&1 | tee -a "$4"
}

# The demo prints no TAP: its exit status is the result.
as_tap()
{
	local status=0

	[ "$3" = demo ] || { run_target "$@"; return; }
	echo 1..1
	run_target "$@" | sed 's/^/# /' || status=1
	[ $status = 0 ] && echo 'ok 1 it boots and ends' || echo 'not ok 1 it boots and ends'
	return $status
}

[ "$(id -u)" = 0 ] || die "a bare system is made as root"
[ -n "$(type -P debootstrap)" ] || die "as root, run: apt-get install debootstrap"
[ -z "${CACHE:-}" ] || CACHE=$(realpath -e "$CACHE")
mkdir -p "$bare/logs"
exec 9>"$bare/lock"
flock -n 9 || die "another run of this is under way"
rm -f "$bare/running"
root=
trap 'remove_system' EXIT

echo "TAP version 13"
for suite in "${suites[@]}"; do
	make_suite "$suite"
	for user in "${users[@]}"; do
		for locale in "${locales[@]}"; do
			say "Debian $suite, $user, $locale"
			make_system "$suite" "$user" "$locale"
			before=$failed
			for target in "${targets[@]}"; do
				name=$suite-$user-$locale-$target
				host_test "$name" as_tap "$user" "$locale" "$target" "$bare/logs/$name.log"
			done
			if [ "$failed" != "$before" ] && [ -n "${KEEP:-}" ]; then
				say "left: ${root#"$top"/}"
				root=
			fi
			remove_system
		done
	done
done
tap_summary
