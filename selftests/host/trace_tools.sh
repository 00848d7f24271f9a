#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The tools that read tracepoints, in a machine with each kernel: trace-cmd and perf show all events
# with their fields, which they read by the formats that the module gives them; and
# tools/twheel-late.bt shows a reader that comes a second late as such, and the kernel as in time.
# The tools are this system's.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/common.sh"
. "$(dirname "$0")/../../tools/vm/build.sh"
. "$(dirname "$0")/../../tools/vm/boot.sh"
. "$(dirname "$0")/../../tools/vm/cases.sh"

work=$build/trace_tools
# Between them, these have all events.
names=(twheel_cancel twheel_rearm twheel_limits)

# What it does in the guest. Of the events that a tool shows, each kind goes to the host once, with N
# for numbers, behind the name of the tool.
run_tools()
{
	cat <<-'EOT'
	#!/bin/busybox sh
	cd /tmp
	if [ "$1" = events ]; then
		twheel_cancel >/dev/null 2>&1
		twheel_rearm -t unread_one_was_unread >/dev/null 2>&1
		twheel_limits -t one_more_than_max_pending_says_eagain_and_changes_nothing >/dev/null 2>&1
		exit
	fi
	kinds()
	{
		sed -E "s/.*(twheel_[a-z]+): +/\1: /; s/=(0x[0-9a-f]+|[0-9]+)/=N/g" | sort -u | sed "s/^/$1 /"
	}
	insmod $TWHEEL_KO
	trace-cmd record -q -e twheel -o trace.dat $0 events 2>&1
	trace-cmd report -q -i trace.dat 2>&1 | grep -v ^cpus= | kinds trace-cmd
	perf record -q -a -e 'twheel:*' -o perf.data $0 events 2>&1
	perf script -i perf.data 2>&1 | kinds perf
	perf stat -x ' ' -a -e 'twheel:*' $0 events 2>&1 |
		while read -r nr event _; do
			[ "$nr" -gt 0 ] && echo "stat $event"
		done

	# One record arms a timeout for in 10 ms, and its event is read a second later.
	bpftrace /programs/twheel-late.bt >said 2>&1 &
	tries=60
	until grep -q Tracing said || [ $tries = 0 ]; do
		sleep 1
		tries=$((tries - 1))
	done
	exec 3<>/dev/twheel
	printf '\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\200\226\230\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >&3
	sleep 1
	head -c 40 <&3 >/dev/null
	exec 3<&-
	killall -INT bpftrace
	wait $!
	echo "bpftrace ended with $?"
	cat said
	EOT
}

# The fields that each event has, see Documentation/operating.rst; `by' and `limit' are words. The
# softirq expires nothing of these programs: their wheels have the virtual clock.
all_kinds()
{
	local wheel='wheel=N name=' timeout='wheel=N name= id=N user_data=N deadline_ns=N'

	cat <<-EOT
	twheel_arm: $timeout interval_ns=N
	twheel_cancel: $timeout was_unread=N
	twheel_expire: $timeout fired_ns=N late_ns=N count=N
	twheel_limit: $wheel limit=max_pending uid=N used=N wanted=N most=N
	twheel_move: $timeout interval_ns=N was_deadline_ns=N was_unread=N
	twheel_pass: $wheel by=call now_ns=N looked=N unread=N more=N
	twheel_read: $timeout fired_ns=N read_ns=N count=N flags=N
	EOT
}

# told TOOL: what it says.
told()
{
	printf '%s\n' "${said[@]}" | sed -n "s/^$1 //p"
}

# The first line behind a map's name is its lowest bucket, and there is one event.
bucket()
{
	printf '%s\n' "${said[@]}" | grep -A 1 -F "@$1[" | sed -n '2s/,.*//p'
}

# try_kernel SERIES
try_kernel()
{
	local files=$work/$1

	build_quickly "$1" "$files/module"
	make_initramfs "$files/initramfs" "$files/module/twheel.ko" "${paths[@]}" \
		"$work/tools_module.sh" "$top/tools/twheel-late.bt"
	hear "$files/console.log" @done "$1" "$files/initramfs" \
		"vm_mode=test vm_timeout=300 vm_tests=tools_module.sh" || tail -n 40 "$files/console.log"
	rm "$files/initramfs"
	printf '# %s\n' "${said[@]}"
	check "$1: trace-cmd shows all events with all fields" diff <(all_kinds) <(told trace-cmd)
	check "$1: perf record and perf script do" diff <(all_kinds) <(told perf)
	check "$1: perf stat counts all events" \
		diff <(all_kinds | sed 's/:.*//; s/^/twheel:/') <(told stat | sort)
	check "$1: bpftrace runs the script" grep -qx 'bpftrace ended with 0' <(printf '%s\n' "${said[@]}")
	check "$1: a reader that comes a second late is late" \
		grep -qE '^\[(512K|1M|2M|4M|8M|16M)$' <(bucket reader_late_us)
	check "$1: the kernel is not late by that" grep -qE '^\[([0-9]+|[0-9]{1,2}K|128K)\]?$' \
		<(bucket kernel_late_us)
}

rm -rf "$work"
mkdir -p "$work" "$programs/usual"
paths=("${names[@]/#/$programs/usual/}")
quietly "$work/selftests.log" selftests_make usual "${paths[@]}"
run_tools >"$work/tools_module.sh"
more_files=("$(type -P perf)" "$(type -P trace-cmd)" "$(type -P bpftrace)")

echo "TAP version 13"
for series in "${kernels[@]}"; do
	try_kernel "$series"
done
echo "1..$number"
