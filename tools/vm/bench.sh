#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make bench: twheel and its peers in virtual machines, see bench/. First boot a machine whose
# clock counts instructions, then one with two CPUs and real time.
#
# BENCH='arm cancel'  PEERS='twheel timerfd'  SIZES='1000 10000'
# MODES='instructions time'
# RECORD=1: what was counted goes into the record of this kernel, bench/recorded-6.12.csv or
#           -7.3.csv, beside what was counted before
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/build.sh"
. "$(dirname "$0")/lib/boot.sh"

read -ra modes <<<"${MODES:-instructions time}"
series=${kernels[-1]}
files=$run/bench
console=$files/console.log
program=$build/bench/twheel-bench
rows=$files/bench.csv
recorded=$top/bench/recorded-$series.csv

# This is longer than the longest measurement.
silence_limit=${TEST_TIMEOUT:-600}

build_bench()
{
	say "building the benchmark"
	mkdir -p "$build/bench"
	quietly "$build/bench.log" make -C "$top/bench" -j2 OUTPUT="$build/bench"
	rm -rf "$build/bench/idle"
	cp -r "$top/bench/idle" "$build/bench/"
	quietly "$build/bench.log" make -C "$(kernel_headers "$series")" \
		M="$build/bench/idle" modules
}

# The program is linked dynamically, since the peers are libraries: copy these too.
pack_guest()
{
	local root=$files/root library

	rm -rf "$root"
	mkdir -p "$root"/{bin,lib,programs}
	cp "$cache/busybox/bin/busybox" "$top"/tools/vm/guest/* "$root/bin/"
	cp "$(module_tree "$series")/twheel.ko" "$build/bench/idle/bench_idle.ko" "$root/lib/"
	cp "$program" "$root/programs/"
	chmod -R a+x "$root/bin" "$root/programs"
	while read -r library; do
		mkdir -p "$root${library%/*}"
		cp -L "$library" "$root$library"
	done < <(ldd "$program" | grep -o '/[^ ]*')
	ln -s bin/init "$root/init"
	pack_root "$root" "$files/initramfs"
}

# boot_bench CPUS ARGUMENTS QEMU-ARGUMENT...: boot Debian's kernel, without tracing.
boot_bench()
{
	local cpus=$1 arguments=$2
	shift 2

	exec qemu-system-x86_64 "$@" -smp "$cpus" -m "${MEMORY:-4G}" \
		-nodefaults -no-reboot -display none \
		-kernel "$cache/kernels/$series/vmlinuz" -initrd "$files/initramfs" \
		-append "console=ttyS0 quiet panic=-1 oops=panic tsc=reliable no_timer_check \
watchdog_thresh=30 rcupdate.rcu_cpu_stall_timeout=60 vm_mode=bench vm_bench=$arguments" \
		-serial "file:$console" -serial file:/dev/stdout </dev/null 9>&-
}

# Each instruction takes one nanosecond, idle time none. Without ERMS, a copy is not counted byte
# by byte. The seed makes each run the same.
boot_counting()
{
	boot_bench 1 "$1 nokaslr norandmaps" -accel tcg,thread=single \
		-icount shift=0,sleep=off -cpu max,-erms,-fsrm \
		-seed 1 -rtc base=2026-01-01,clock=vm
}

boot_timing()
{
	local accel

	accel=$(accelerator "$series")
	boot_bench "$1" "$2$([ "$accel" = kvm ] || echo " $(tsc_frequency)")" -accel "$accel" \
		-cpu "$([ "$accel" = kvm ] && echo host || echo max)"
}

# read_rows COMMAND...: boot a machine, and append the rows that it prints to $rows.
read_rows()
{
	local line fd pid status=0 ended=

	exec {fd}< <("$@")
	pid=$!
	# shellcheck disable=SC2064 # this very process
	trap "kill $pid 2>/dev/null" EXIT
	while IFS= read -r -t "$silence_limit" line <&"$fd" || { status=$?; false; }; do
		line=${line%$'\r'}
		case $line in
		'@end '*) ended=${line#@end } ;;
		mode,*) ;;
		instructions,* | time,*) echo "$line" >>"$rows" ;;
		*) echo "$line" ;;
		esac
	done
	[ "$status" -le 128 ] || kill "$pid"
	exec {fd}<&-
	wait "$pid" 2>/dev/null || true
	trap - EXIT
	if [ "$ended" != 0 ]; then
		tail -n 40 "$console" >&2
		die "the benchmark did not come to its end (${ended:-no status}); the console is above"
	fi
}

# option NAME WORDS: print an option for the guest's command line.
option()
{
	local words=${2// /,}

	[ -z "$words" ] || printf '%s' ";--$1=$words"
}

# Print what a count depends on besides the module. bench/report.c does not compare with a record
# of another kernel or compiler. The plots name kernel and date.
surroundings()
{
	echo "# kernel: $(cat "$cache/kernels/$series/release")"
	echo "# compiler: $(gcc --version | head -n 1)"
	echo "# date: $(date -u +%F)"
}

# arguments WORKLOADS [SIZES [PEERS]]: print the options; the caller's variables have precedence.
arguments()
{
	option workloads "$1"
	option sizes "${SIZES:-${2:-}}"
	option peers "${PEERS:-${3:-}}"
}

count()
{
	say "booting $(cat "$cache/kernels/$series/release") where instructions are counted"
	read_rows boot_counting "--instructions$(arguments "${BENCH:-}")"
}

# An emulated machine cannot do a million calls a second. `scale' and `shared' need a processor
# for each thread; all else has two. Workloads that would take hours are left out.
measure_time()
{
	local word cpus threads=() others=()

	for word in ${BENCH:-arm refresh cancel young expire mix late request lifo restart lengths \
		scale shared}; do
		case $word in
		scale | shared) threads+=("$word") ;;
		wakeups | dispatch) ;;
		*) others+=("$word") ;;
		esac
	done
	say "booting $(cat "$cache/kernels/$series/release") where time is measured"
	if [ "${#others[@]}" -gt 0 ]; then
		read_rows boot_timing 2 "$(arguments "${others[*]}" 10000)"
	fi
	if [[ " ${others[*]} " = *' late '* ]]; then
		read_rows boot_timing 2 "$(arguments late '100000 1000000' \
			'libtwheel libtwheel-fd twheel heap libev')"
	fi
	[ "${#threads[@]}" -gt 0 ] || return 0
	for cpus in 1 2 4; do
		read_rows boot_timing "$cpus" "$(option sizes "$cpus")$(option workloads \
			"${threads[*]}")$(option peers "${PEERS:-}")"
	done
}

# merge_rows RECORD ROWS: print the record, with the new rows in place of older ones. If kernel or
# compiler differ, drop all older rows.
merge_rows()
{
	local old=$1

	[ -e "$old" ] && cmp -s <(grep -E '^# (kernel|compiler): ' "$old") \
		<(grep -E '^# (kernel|compiler): ' "$2") || old=/dev/null
	grep -E '^(#|mode,)' "$2"
	awk -F, '
	!/^instructions,/ { next }
	{
		key = $1 "," $2 "," $3 "," $4 "," $5
		if (!(key in row))
			keys[++nr] = key
		row[key] = $0
	}
	END {
		for (i = 1; i <= nr; i++)
			print row[keys[i]]
	}' "$old" "$2"
}

lock_cache
KERNELS=$series bash "$top/tools/vm/setup.sh" bench
build_module "$series"
build_bench
mkdir -p "$files"
pack_guest
{ surroundings; echo mode,peer,workload,n,metric,value; } >"$rows"
for mode in "${modes[@]}"; do
	case $mode in
	instructions) count ;;
	time) measure_time ;;
	*) die "no mode $mode" ;;
	esac
done
if [ -e "$recorded" ]; then
	"$program" --report "$rows" --recorded "$recorded"
else
	"$program" --report "$rows"
fi
mkdir -p "$files/plots"
quietly "$build/bench.log" gnuplot -e "csv='$rows'; dir='$files/plots'" "$top/bench/plot.gp"
say "all figures are in ${rows#"$top/"}, the plots beside it"
if [ -n "${RECORD:-}" ]; then
	merge_rows "$recorded" "$rows" >"$files/recorded.csv"
	cp "$files/recorded.csv" "$recorded"
	say "the counted figures are in the record, ${recorded#"$top/"}"
fi
