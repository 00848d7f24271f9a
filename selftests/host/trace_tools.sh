#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the tools that read tracepoints, in a machine with the oldest kernel and one with the
# newest. trace-cmd and perf must show all events with their fields, which they read by the
# formats that the module provides. With the newest kernel, tools/twheel-late.bt must show that a
# reader was a second late, and that the kernel was in time; and bpftrace must show the probes of
# the library. The emulator takes a minute to compile a script, and what the script reads does not
# depend on the kernel, so one kernel is enough. The tools are this system's.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/build.sh"
. "$(dirname "$0")/../../tools/vm/lib/boot.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/trace_tools
# Together, these programs cause all events.
names=(twheel_cancel twheel_rearm twheel_limits)

# Print the script that runs in the guest. For each kind of event that a tool shows, it prints one
# line: the name of the tool, and the event with N for numbers.
run_tools()
{
	cat <<-'EOT'
	#!/bin/busybox sh
	cd /tmp
	# boot() turns this off in the emulator. With it off, twice of 25 times a machine hung while
	# bpftrace compiled.
	echo 2 >/proc/sys/kernel/randomize_va_space
	if [ "$1" = events ]; then
		twheel_cancel >/dev/null 2>&1
		twheel_rearm -t rearm_of_an_unread_timeout_says_unread >/dev/null 2>&1
		twheel_limits -t arm_beyond_max_pending_says_eagain_and_changes_nothing >/dev/null 2>&1
		exit
	fi
	kinds()
	{
		sed -E "s/.*(twheel_[a-z]+): +/\1: /; s/=(0x[0-9a-f]+|[0-9]+)/=N/g" | sort -u | sed "s/^/$1 /"
	}
	# On a busy machine perf sometimes reads too late. Events that it loses then are no fault
	# of the module.
	perf_loses_nothing()
	{
		perf record -q -a -m 1024 -e 'twheel:*' -o perf.data $0 events 2>&1
		perf script -i perf.data >events 2>errors
		! grep ' lost ' errors
	}
	# Print something now and then: a machine that is silent for long is ended.
	insmod $TWHEEL_KO && echo "# trace-cmd records"
	trace-cmd record -q -e twheel -o trace.dat $0 events 2>&1
	trace-cmd report -q -i trace.dat 2>&1 | grep -v ^cpus= | kinds trace-cmd
	echo "# perf records"
	tries=5
	until perf_loses_nothing || [ $tries = 0 ]; do
		tries=$((tries - 1))
	done
	kinds perf <events
	grep -v ' lost \|overload' errors
	echo "# perf counts"
	perf stat -x ' ' -a -e 'twheel:*' $0 events 2>&1 |
		while read -r nr event _; do
			[ "$nr" -gt 0 ] && echo "stat $event"
		done

	[ -e /programs/twheel-late.bt ] || exit 0
	echo "# bpftrace compiles"
	# One record arms a timeout that expires in 10 ms. Its event is read a second later.
	bpftrace /programs/twheel-late.bt >said 2>&1 &
	tries=900
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
	echo "# bpftrace compiles once more"
	bpftrace -c /programs/probed -e '
		usdt:/programs/probed:twheel:arm { printf("probe arm %d\n", arg1); }
		usdt:/programs/probed:twheel:move { printf("probe move %d, %d\n", arg1, arg2 > 1000000); }
		usdt:/programs/probed:twheel:cancel { printf("probe cancel %d\n", arg1); }
		usdt:/programs/probed:twheel:read { printf("probe read %d\n", arg1); }
		usdt:/programs/probed:twheel:pass { @called = sum(arg1); }
		usdt:/programs/probed:twheel:expire { @library_late_us = hist(arg3 / 1000); }' 2>&1
	EOT
}

# The probes of the program below. The timer's deadline is an edge, or up to a tick before one.
all_probes()
{
	printf 'probe %s\n' 'arm 3' 'move 3, 1' 'arm 4' 'cancel 4' 'read 3'
	echo '@called: 1'
}

# A program that uses a table in the process, with the library and its probes.
compile_probed()
{
	make -s -C "$top/lib" OUTPUT="$work/lib" USDT=1
	gcc -std=c11 -O2 -Wall -Wextra -static -I"$top/lib" -o "$programs/probed" -x c - \
		-x none "$work/lib/libtwheel.a" -pthread <<-'EOT'
	#include <stddef.h>
	#include <twheel/table.h>

	int main(void)
	{
		struct twheel_table *table;
		uint32_t number;

		if (twheel_table_open(&table, 10, NULL) < 0)
			return 1;
		twheel_table_start_after(table, 3, 60000000000);
		twheel_table_start_after(table, 3, 10000000);
		twheel_table_start_after(table, 4, 10000000);
		twheel_table_stop(table, 4);
		return twheel_table_expired(table, &number, 1, 10000000000) != 1;
	}
	EOT
}

# Print the fields of each event, see Documentation/operating.rst; `by' and `limit' are words. The
# softirq expires nothing in these programs, as their wheels use the virtual clock.
all_kinds()
{
	local wheel='wheel=N name=' timeout='wheel=N name= id=N user_data=N deadline_ns=N'

	cat <<-EOT
	twheel_arm: $timeout interval_ns=N
	twheel_cancel: $timeout was_unread=N
	twheel_expire: $timeout fired_ns=N late_ns=N count=N
	twheel_limit: $wheel limit=max_pending uid=N used=N wanted=N most=N
	twheel_move: $timeout interval_ns=N was_deadline_ns=N was_unread=N
	twheel_pass: $wheel by=call now_ns=N scanned=N unread=N more=N
	twheel_read: $timeout fired_ns=N read_ns=N count=N flags=N
	EOT
}

# output_of TOOL: print its lines.
output_of()
{
	printf '%s\n' "${said[@]}" | sed -n "s/^$1 //p"
}

# bucket MAP: print its lowest bucket, the first line behind the map's name. There is one event.
bucket()
{
	printf '%s\n' "${said[@]}" | grep -A 1 -F "@$1[" | sed -n '2s/,.*//p'
}

# try_kernel SERIES
try_kernel()
{
	local files=$work/$1 scripts=()

	build_quickly "$1" "$files/module"
	more_files=("$(type -P perf)" "$(type -P trace-cmd)")
	if [ "$1" = "${kernels[-1]}" ]; then
		scripts=("$programs/probed" "$top/tools/twheel-late.bt")
		more_files+=("$(type -P bpftrace)")
	fi
	make_initramfs "$files/initramfs" "$files/module/twheel.ko" "${paths[@]}" "${scripts[@]}" \
		"$work/tools_module.sh"
	# Use one processor: the tools patch the running kernel, and with several processors the
	# emulator sometimes gets that wrong, and the machine hangs.
	SMP=1 hear "$files/console.log" @done "$1" "$files/initramfs" \
		"vm_mode=test vm_timeout=1200 vm_tests=tools_module.sh" || tail -n 40 "$files/console.log"
	rm "$files/initramfs"
	printf '# %s\n' "${said[@]}"
	check "$1: trace-cmd shows all events with all fields" diff <(all_kinds) <(output_of trace-cmd)
	check "$1: perf script shows all events with all fields" diff <(all_kinds) <(output_of perf)
	check "$1: perf stat counts all events" \
		diff <(all_kinds | sed 's/:.*//; s/^/twheel:/') <(output_of stat | sort)
	[ ${#scripts[@]} -gt 0 ] || return 0
	check "$1: bpftrace runs the script" grep -qx 'bpftrace ended with 0' <(printf '%s\n' "${said[@]}")
	check "$1: the script shows a reader that comes a second late" \
		grep -qE '^\[(512K|1M|2M|4M|8M|16M)$' <(bucket reader_late_us)
	check "$1: the script does not count that delay as the kernel's" grep -qE '^\[([0-9]+|[0-9]{1,2}K|128K)\]?$' \
		<(bucket kernel_late_us)
	check "$1: bpftrace shows the probes of the library" probes_are_shown
}

probes_are_shown()
{
	diff <(all_probes) <(printf '%s\n' "${said[@]}" | grep -oE '^(probe .*|@called: .*[0-9])') &&
		printf '%s\n' "${said[@]}" | grep -A 1 -F '@library_late_us:' | grep -q '^\['
}

rm -rf "$work"
mkdir -p "$work" "$programs/usual"
paths=("${names[@]/#/$programs/usual/}")
quietly "$work/selftests.log" selftests_make usual "${paths[@]}"
run_tools >"$work/tools_module.sh"
compile_probed
echo "TAP version 13"
mapfile -t ends < <(printf '%s\n' "${kernels[0]}" "${kernels[-1]}" | uniq)
for series in "${ends[@]}"; do
	try_kernel "$series"
done
echo "1..$number"
