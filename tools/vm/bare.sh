#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make test-bare: `make demo' and `make test' on a Debian that has git and make and nothing
# else. Each combination of a Debian, a user and a language gets a fresh system in
# a folder, with a clone of the last commit in it. This needs root, and the package
# debootstrap.
#
# SUITES='bookworm trixie'   USERS='root user'   LOCALES='C de_DE.UTF-8'
# TARGETS='demo test'        CACHE=.cache: copy kernels and compilers from that folder
#                            instead of fetching them each time
# KEEP=1 keeps the systems in which a target has failed.
# TESTS, EXCEPT, KERNELS and the like are passed on to each run.
#
# If make asks a user without root to run a command as root, the script runs it as root, and
# the user calls make again.
#
# .cache/bare/logs      SUITE-USER-LOCALE-TARGET.log
# shellcheck source-path=SCRIPTDIR

# These choose tests within a run. They do not choose runs.
handed_on=()
for name in TESTS EXCEPT KERNELS SMP LANES TEST_TIMEOUT V DEBIAN_MIRROR http_proxy https_proxy; do
	[ -z "${!name:-}" ] || handed_on+=("$name=${!name}")
done
unset TESTS EXCEPT

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/tap.sh"
. "$(dirname "$0")/lib/system.sh"

read -ra suites <<<"${SUITES:-bookworm trixie}"
read -ra users <<<"${USERS:-root user}"
read -ra locales <<<"${LOCALES:-C de_DE.UTF-8}"
read -ra targets <<<"${TARGETS:-demo test}"
# The parts of CACHE that are copied.
parts=(apt apt-trixie busybox jobs kselftest loops python trixie kernels/6.1 kernels/6.12 kernels/7.3)

# as USER LOCALE COMMAND...: run in $root, with the environment of a login.
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

# If the package were missing, programs would print English.
add_locale()
{
	[ "$1" != C ] || return 0
	as root C sh -c "apt-get update && apt-get install -y --no-install-recommends locales &&
		localedef -i ${1%.*} -f ${1#*.} $1"
}

# make_system SUITE USER LOCALE: make a system in $root, with a clone in the user's home.
make_system()
{
	local suite=$1 user=$2 home=/root part copied

	[ "$user" = root ] || home=/home/$user
	copy_suite "$suite"
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

# run_target USER LOCALE TARGET LOG: if make wants a command to be run as root, run it and call
# make once more.
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

# The demo prints no TAP, so make a result of its exit status.
as_tap()
{
	local status=0

	[ "$3" = demo ] || { run_target "$@"; return; }
	echo 1..1
	run_target "$@" | sed 's/^/# /' || status=1
	[ $status = 0 ] && echo 'ok 1 it boots and ends' || echo 'not ok 1 it boots and ends'
	return $status
}

[ -z "${CACHE:-}" ] || CACHE=$(realpath -e "$CACHE")
lock_systems
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
