# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # shared with common.sh and tap.sh
# Sourced by test.sh: run programs in guests, and read the output of guest/run-tests.

# The time limit of a program in the guest, from which the limits of its tests are derived
# (selftests/twheel_test.h). If the guest is silent for a minute longer, it hangs. (A boot takes
# 10 s without hardware help.)
program_limit=$(sed -n 's/^#define TW_PROGRAM_LIMIT_S\s*//p' "$top/selftests/twheel_test.h")
program_limit=${TEST_TIMEOUT:-$program_limit}
silence_limit=$((program_limit + 60))

# Messages of a kernel in which something is wrong.
kernel_complaints='BUG[: ]|WARNING|Oops|Call Trace|general protection|kernel panic|
lockdep|circular locking|suspicious RCU|rcu:.*(stall|detected)|scheduling while atomic|
sleeping function called|KASAN|KCSAN|UBSAN|KFENCE|kmemleak|unreferenced object|
soft lockup|hard LOCKUP|hung task|blocked for more than|refcount_t|ODEBUG|
list_(add|del) corruption|bad page|slab error|Objects remaining|page allocation failure'
kernel_complaints=${kernel_complaints//$'\n'/}

# Print the complaints in a kernel log on stdin. KCSAN watches the whole kernel, which has races
# of its own. If a report does not name the module in its first line, ignore it. Also ignore a
# race of the kernel's hash table, which keeps the lock of a bucket in a bit of the bucket's word.
# One thread waits for that bit and tries to set it, while the holder reads the word plainly. One
# of them is the worker that enlarges the table, the other is code of <linux/rhashtable.h> that is
# inlined into the module.
hash_table_waits='bit_spin_lock[^ ]* / twheel_keys_[a-z]+|rh[^ ]* / (rht_lock|test_and_set_bit_lock)[^ ]*'
find_complaints()
{
	sed -E "/KCSAN: /{/\[twheel\]/!d; \, in ($hash_table_waits) \[twheel\],d}
		/Kernel Concurrency Sanitizer|kmemleak: Automatic memory scanning/d" |
		grep -E "$kernel_complaints"
}

# The kernel under test: its series, the program that built the module, and the module's file.
series=
origin=
module=
origin_reported=
kernel_log=()

# end_program STATUS: add results for the program's end and for the kernel log.
end_program()
{
	local status=$1 complaints=()

	stream_end "$status"
	mapfile -t complaints < <(printf '%s\n' "${kernel_log[@]}" | find_complaints)
	if [ ${#complaints[@]} = 0 ]; then
		stream_note ok "kernel log is clean afterwards"
	else
		stream_note 'not ok' "kernel log is clean afterwards" "${complaints[@]:0:3}"
	fi
	if [ ${#kernel_log[@]} -gt 0 ] && { [ "$stream_failed" != 0 ] || [ -n "$verbose" ]; }; then
		show "kernel log of $stream" "${kernel_log[@]}"
	fi
}

# report_origin SRCVERSION: report once for each kernel which module was loaded.
report_origin()
{
	local loaded=$1 built

	[ -z "$origin_reported" ] || return 0
	origin_reported=1
	built=$(modinfo -F srcversion "$module")
	if [ "$loaded" = "$built" ]; then
		result ok "$series: the module built by $origin loads, srcversion $loaded"
	else
		result 'not ok' "$series: the module built by $origin loads ($built built, $loaded loaded)"
	fi
}

# machine_died WHY CONSOLE [LOG]: add a failure to the current stream. LOG is the emulator's, for
# a machine that ends without a message on its console.
machine_died()
{
	local notes

	stream_note 'not ok' "$1"
	[ ${#transcript[@]} -eq 0 ] || show "$stream said" "${transcript[@]}"
	mapfile -t kernel_log < <(tail -n 60 "$2" | tr -cd '[:print:]\t\n')
	show "end of the console" "${kernel_log[@]}"
	if [ -s "${3:-}" ]; then
		mapfile -t notes < <(tail -n 60 "$3")
		show "end of the emulator's log" "${notes[@]}"
	fi
}

# boot_and_read NAME...: run these programs in one machine. `left' gets the programs that did not
# run, `slips' counts machines that qemu killed, and `machines' all machines of this lane.
boot_and_read()
{
	local line status pid fd current='' why='the virtual machine lives' programs program
	local console=$run/$series/console.$lane.log log=$run/$series/emulator.$lane.log

	stream_begin "$series/boot"
	left=("$@")
	programs=$(IFS=,; echo "$*")
	machines=$((machines + 1))
	exec {fd}< <(boot "$series" "$run/$series/initramfs" \
		"vm_mode=test vm_timeout=$program_limit vm_tests=$programs" \
		-serial "file:$console" -serial file:/dev/stdout \
		-serial "file:$run/$series/coverage.$lane.$machines.tar" \
		-d cpu_reset -D "$log" 2>&1 </dev/null)
	pid=$!
	# shellcheck disable=SC2064 # this very process
	trap "kill $pid 2>/dev/null" EXIT
	while IFS= read -r -t "$silence_limit" line <&"$fd" || { status=$?; false; }; do
		case $line in
		'@begin '*)
			current=${line#@begin }
			left=("${left[@]:1}")
			kernel_log=()
			stream_begin "$series/$current"
			echo "@program $stream"
			;;
		'@module '*) report_origin "${line#@module }" ;;
		'@not ok '*) stream_note 'not ok' "${line#@not ok }" ;;
		'@log '*) kernel_log+=("${line#@log }") ;;
		'@say '*) echo "# ${line#@say }" ;;
		'@end '*)
			end_program "${line#@end }"
			echo "@ended $stream"
			current=
			;;
		@done) left=() ;;
		*) stream_line "$line" ;;
		esac
	done
	# If read times out, it returns more than 128.
	if [ "$status" -gt 128 ]; then
		why="the virtual machine says something within $silence_limit s"
		kill "$pid"
	fi
	exec {fd}<&-
	status=0
	wait "$pid" 2>/dev/null || status=$?
	trap - EXIT
	if [ ${#left[@]} -eq 0 ] && [ -z "$current" ]; then
		return
	fi
	if [ "$slips" -lt 3 ] && emulator_slipped "$console" "$log"; then
		slips=$((slips + 1))
		echo "# $stream: the emulator failed (see emulator_slipped() in boot.sh), not the module: trying again"
		left=(${current:+"$current"} "${left[@]}")
	elif [ -n "$current" ]; then
		machine_died "$why (the emulator's status is $status)" "$console" "$log"
	elif [ ${#left[@]} -eq $# ]; then
		# No program has started, and none would start the next time.
		machine_died "$why" "$console" "$log"
		for program in "${left[@]}"; do
			stream_begin "$series/$program"
			stream_note 'not ok' "reaches its plan (never started)"
		done
		left=()
	fi
}

# run_guest_tests SERIES LANE ORIGIN MODULE NAME...: if a machine dies, boot another one for the
# next program.
run_guest_tests()
{
	local left=() slips=0 machines=0 lane=$2
	series=$1 origin=$3 module=$4 origin_reported=
	shift 4

	left=("$@")
	while [ ${#left[@]} -gt 0 ]; do
		say "booting $(cat "$cache/kernels/$series/release") for ${#left[@]} programs"
		boot_and_read "${left[@]}"
	done
}

# The kernels to boot, each "SERIES ORIGIN MODULE".
guest_kernels=()

# by_length SERIES NAME...: print "SECONDS NAME" for each program, the longest first.
by_length()
{
	local series=$1 name seconds
	shift

	for name; do
		estimate "$series/$name"
		echo "$seconds $name"
	done | sort -s -k 1,1nr
}

# share_out NR: read the output of by_length() on stdin, and divide the programs into the strings
# `shares' of about the same duration. Each program goes to the share with the least load. The
# longest begin first, so that short ones even out wrong estimates.
share_out()
{
	local nr=$1 i least name seconds load=()

	shares=()
	for ((i = 0; i < nr; i++)); do
		shares[i]='' load[i]=0
	done
	while read -r seconds name; do
		least=0
		for ((i = 1; i < nr; i++)); do
			[ "${load[i]}" -ge "${load[least]}" ] || least=$i
		done
		shares[least]+=" $name"
		load[least]=$((load[least] + seconds))
	done
}

# A lane is a process. Its lines begin with the number of the lane.
in_a_lane()
{
	local lane=$1
	shift

	{
		in_lane=1
		"$@"
		echo @end
	} | sed -u "s/^/$lane /"
}

# Programs of these folders, and these others, take long or depend little on the kernel. If there
# are several kernels, one of them runs each program, unless TESTS names programs.
on_one_kernel=(stress lib peers clocks module kunit)
on_one_kernel_too=(twheel_between twheel_drain twheel_keyed twheel_random twheel_refresh
	twheel_refresh_pages twheel_slack twheel_stale twheel_write)

# is_for_one_kernel NAME
is_for_one_kernel()
{
	local folder name=${1%_functions}

	[ -z "${TESTS:-}" ] || return
	[[ " ${on_one_kernel_too[*]} " != *" $name "* ]] || return 0
	for folder in "${on_one_kernel[@]}"; do
		[[ ! -e $top/selftests/$folder/$name.c && ! -e $top/selftests/$folder/$name ]] || return 0
	done
	return 1
}

# The kernel that runs a program, or "all".
declare -A which=()

# choose_kernels NAME...: set `which', so that all kernels are equally busy. Programs that only
# one kernel runs are dealt out, the longest first, each to the kernel with the least load. Both
# programs that need a grown module run on the same kernel.
choose_kernels()
{
	local name series least seconds most grown=
	local -A load=()

	for series in "${kernels[@]}"; do
		load[$series]=0
	done
	for name; do
		which[$name]=all
		! is_for_one_kernel "$name" || which[$name]=
		most=0
		for series in "${kernels[@]}"; do
			estimate "$series/$name"
			most=$((seconds > most ? seconds : most))
			[ -z "${which[$name]}" ] || load[$series]=$((load[$series] + seconds))
		done
		[ -n "${which[$name]}" ] || echo "$most $name"
	done >"$run/rotated"
	while read -r seconds name; do
		least=${kernels[0]}
		for series in "${kernels[@]}"; do
			[ "${load[$series]}" -ge "${load[$least]}" ] || least=$series
		done
		[[ $name != @(twheel_grown_module|twheel_versions_module.sh) ]] ||
			least=${grown:=$least}
		which[$name]=$least
		load[$least]=$((load[$least] + seconds))
	done < <(sort -s -k 1,1nr "$run/rotated")
}

# programs_for SERIES NAME...: set `mine' to the programs that this kernel runs.
programs_for()
{
	local series=$1 name
	shift

	mine=()
	for name; do
		[[ ${which[$name]:-all} != @(all|"$series") ]] || mine+=("$name")
	done
}

# start_lanes NAME...: run as many machines at once as LANES says, since a machine waits for half
# of the time. If the number of kernels is a multiple of LANES, each kernel has one machine.
# Otherwise, the programs of a kernel are divided among LANES machines. Tests on the host have
# lanes of their own beside these.
start_lanes()
{
	local lane=0 hosts=() share kernel words shares=() mine=() per_kernel=$lanes

	[ $((${#guest_kernels[@]} % lanes)) != 0 ] || per_kernel=1
	for ((; lane < ${#host_lanes[@]}; lane++)); do
		in_a_lane "$lane" "${host_lanes[lane]}" &
		hosts+=($!)
	done
	for kernel in "${guest_kernels[@]}"; do
		read -ra words <<<"$kernel"
		programs_for "${words[0]}" "$@"
		share_out "$per_kernel" < <(by_length "${words[0]}" "${mine[@]}")
		for share in "${shares[@]}"; do
			[ -n "$share" ] || continue
			while [ "$(jobs -pr | grep -vcxF "$(printf '%s\n' none "${hosts[@]}")")" -ge "$lanes" ]; do
				wait -n || true
			done
			# shellcheck disable=SC2086 # words
			in_a_lane "$lane" run_guest_tests "${words[0]}" "$lane" "${words[@]:1}" $share &
			lane=$((lane + 1))
		done
	done
	wait
	echo "- @lanes $lane"
}

# run_lanes NAME...: run these programs on all kernels, and the functions `host_lanes' beside
# them. Count the results here, and print the output of a failure in one piece.
host_lanes=()
run_lanes()
{
	local lanes=${LANES:-3} lane line fd ended=0 started=none
	local kernel mine=() all=()
	local -A block=() because=()
	local reasons

	for kernel in "${guest_kernels[@]}"; do
		programs_for "${kernel%% *}" "$@"
		all+=("${mine[@]/#/${kernel%% *}/}")
	done
	progress_begin "$lanes" "${all[@]}"
	exec {fd}< <(start_lanes "$@")
	while read -r lane line <&"$fd"; do
		if [[ $line =~ ^(ok|not\ ok)\ [0-9]+\ (.*)$ ]]; then
			mapfile -t reasons < <(printf '%s' "${because[$lane]:-}")
			because[$lane]=
			result "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${reasons[@]}"
		elif [[ $line = '@because '* ]]; then
			because[$lane]+=${line#@because }$'\n'
		elif [ "$line" = @end ]; then
			ended=$((ended + 1))
		elif [[ $line = '@program '* ]]; then
			progress_program "${line#@program }"
		elif [[ $line = '@ended '* ]]; then
			progress_ended "${line#@ended }"
		elif [[ $line = '@took '* ]]; then
			durations+=("${line#@took }")
			# shellcheck disable=SC2086 # words
			progress_host ${line#@took }
		elif [[ $line = '@lanes '* ]]; then
			started=${line#@lanes }
		elif [[ -n ${block[$lane]:-} || $line = '# ---- '* ]]; then
			block[$lane]+=$line$'\n'
			[ "$line" = '# ----' ] || continue
			printf '%s' "${block[$lane]}"
			block[$lane]=
		else
			echo "$line"
		fi
	done
	exec {fd}<&-
	progress_end
	[ $ended = "$started" ] || result 'not ok' "$ended of $started lanes came to their end"
}
