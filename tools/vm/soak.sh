#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make soak: run the module in a User-mode Linux with simulated time. Processing takes no time, and
# idle time is skipped. So hundreds of days pass in minutes, and each expiry can be predicted to the
# tick. See selftests/soak.
#
# SEED=number  DAYS=number  PENDING=number  PARTS=mix,steps,virtual,idle,rush
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/build.sh"
. "$(dirname "$0")/lib/tap.sh"
. "$(dirname "$0")/lib/guest-tests.sh"

series=6.12-uml
files=$run/$series
console=$files/console.log

# If a machine prints nothing for that long, it hangs: simulated time stands still while code
# runs.
silence_limit=${TEST_TIMEOUT:-900}

# The start of the realtime clock: 200 days before it reaches 2^31 seconds.
start_ns=$(((2147483648 - 200 * 86400) * 1000000000))

build_soak()
{
	say "building the soak"
	quietly "$build/soak.log" make -C "$top/selftests/soak" OUTPUT="$build/soak"
}

# The program is the guest's init, and its only program.
make_root()
{
	local root=$files/root

	rm -rf "$root"
	mkdir -p "$root"
	cp "$build/soak/soak" "$root/init"
	cp "$(module_tree "$series")/twheel.ko" "$root/"
	pack_root "$root" "$files/initramfs"
}

# The options arrive in init's environment.
boot_uml()
{
	local name options=()

	for name in SEED DAYS PENDING PARTS; do
		[ -z "${!name:-}" ] || options+=("$name=${!name}")
	done
	exec "$cache/kernels/$series/vmlinuz" mem="${MEMORY:-1G}" \
		initrd="$files/initramfs" uml_dir="$files/" umid=soak \
		time-travel=inf-cpu time-travel-start="$start_ns" \
		con=null con0=fd:0,fd:1 panic=-1 "${options[@]}" \
		</dev/null 2>"$files/stderr.log" 9>&-
}

# report_speed "SECONDS PART": print how much time was simulated since the part began.
report_speed()
{
	local seconds=${1% *} part=${1#* }
	local wall_ms=$(((${EPOCHREALTIME/./} - began_us) / 1000))

	echo "# $part: $((seconds / 86400)) days on the clock in $((wall_ms / 1000)) s" \
		"($((seconds * 1000 / (wall_ms + 1))) times as fast)"
}

run_soak()
{
	local line status='' why='the machine lives' reads=0 pid fd began_us=0

	stream_begin "$series/soak"
	kernel_log=()
	: >"$console"
	exec {fd}< <(boot_uml)
	pid=$!
	# shellcheck disable=SC2064 # this very process
	trap "kill $pid 2>/dev/null" EXIT
	while IFS= read -r -t "$silence_limit" line <&"$fd" || { reads=$?; false; }; do
		line=${line%$'\r'}
		echo "$line" >>"$console"
		case $line in
		'['*'.'*'] '*) kernel_log+=("$line") ;;
		'@begin '*) began_us=${EPOCHREALTIME/./} ;;
		'@passed '*) report_speed "${line#@passed }" ;;
		'@end '*) status=${line#@end } ;;
		'# '*) echo "$line" ;;
		*) stream_line "$line" ;;
		esac
	done
	# If read times out, it returns more than 128.
	if [ "$reads" -gt 128 ]; then
		why="the machine says something within $silence_limit s"
		kill "$pid"
	fi
	exec {fd}<&-
	wait "$pid" 2>/dev/null || true
	trap - EXIT
	if [ -n "$status" ]; then
		end_program "$status"
	else
		machine_died "$why" "$console"
	fi
}

lock_cache
KERNELS=$series bash "$top/tools/vm/setup.sh" build
ARCH=um build_module "$series"
build_soak
rm -rf "$files"
mkdir -p "$files"
make_root

echo "TAP version 13"
say "booting $(cat "$cache/kernels/$series/release") with simulated time"
run_soak
tap_summary
