#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make mutants: put each mistake of selftests/mutants into the module, one at a time, and check
# that the program nearest to it fails. One machine gets many of these modules, and loads each for
# its program. The program must first pass with the unbroken module.
#
# selftests/mutants/mutants.pl says how a mutant is written. Those of the library are the area
# `lib': selftests/lib/mutations.sh makes them, and runs its tests on this machine.
#
# A mutant is caught or survives. A program that runs out of time says neither: the mutant has no
# verdict, and the run fails.
#
# MUTANTS="pattern ..." chooses among AREA/NAME; a pattern without a slash is an area's.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/build.sh"
. "$(dirname "$0")/lib/boot.sh"
. "$(dirname "$0")/lib/tap.sh"
. "$(dirname "$0")/lib/names.sh"
. "$(dirname "$0")/lib/guest-tests.sh"

work=$build/mutants
lanes=${LANES:-3}
read -ra chosen <<<"${MUTANTS:-*}"

# The time limit of a program. If a mistake makes a test hang, that test's limit ends it, which is
# a quarter of this. Tests that begin late have shorter limits: if a test fails in the last
# seconds (TW_LAST_WORDS_S in selftests/twheel_test.h), it may only have been late.
export TEST_TIMEOUT=${TEST_TIMEOUT:-90}
program_limit=$TEST_TIMEOUT
late_after=$((program_limit - 5))
silence_limit=$((program_limit + 60))
# A program on the host is also compiled in this time.
host_limit=$((2 * program_limit))

mutants()
{
	perl "$top/selftests/mutants/mutants.pl" "$@"
}

# Print the library's mutants, in the form of `mutants.pl list'.
lib_mutants()
{
	bash "$top/selftests/lib/mutations.sh" list | sed 's,.*,lib/& lib lib,'
}

# chosen AREA/NAME: does a pattern of MUTANTS match?
chosen()
{
	local pattern

	for pattern in "${chosen[@]}"; do
		[[ $pattern = */* ]] || pattern+='/*'
		# shellcheck disable=SC2053 # it is a pattern
		[[ $1 != $pattern ]] || return 0
	done
	return 1
}

# The mutants. "unbroken" is not one of them.
names=()
declare -A program_of=() kernel_of=() test_of=() taken=() verdict_of=()
list_mutants()
{
	local list name program kernel test

	list=$(mutants list && lib_mutants) || die "selftests/mutants: not all of it can be read"
	while read -r name program kernel test; do
		chosen "$name" || continue
		names+=("$name")
		if [ "$program" = equivalent ]; then
			verdict_of[$name]=equivalent
			continue
		fi
		program_of[$name]=$program
		kernel_of[$name]=$kernel
		test_of[$name]=$test
		[ "$kernel" = lib ] || ! is_host_program "$program" || kernel_of[$name]=host
	done <<<"$list"
	[ ${#names[@]} -gt 0 ] || die "MUTANTS: there is no such mutant"
}

mapfile -t hosted < <(host_names; check_names)
is_host_program()
{
	[[ " ${hosted[*]} " = *" $1 "* ]]
}

# guest_program PROGRAM: print its name in the guest.
guest_program()
{
	[ "$1" != kunit ] && echo "$1" || echo twheel_kunit_module.sh
}

# Mutants whose nearest test runs on this machine
# -----------------------------------------------

# Copy the whole tree, with a .cache that links to the downloads.
copy_tree()
{
	local dir=$1 file

	rm -rf "$dir"
	mkdir -p "$dir/.cache"
	for file in "$top"/*; do
		cp -pr "$file" "$dir/"
	done
	for file in "$cache"/*; do
		[[ ${file##*/} = @(build|run|lock|seconds) ]] || ln -s "$file" "$dir/.cache/"
	done
}

# host_verdict PROGRAM DIR: print "passed", "late", or the failure.
host_verdict()
{
	local program=$1 dir=$2 found status=0 script=(bash tools/vm/test.sh)

	rm -rf "$dir.$program"

	case $program in
	wheel | lib)
		script=(make -C "selftests/$program" OUTPUT="$dir.$program" run)
		;;
	*)
		[[ " $(check_names | xargs) " != *" $program "* ]] ||
			script=(bash tools/check/check.sh)
		;;
	esac
	(cd "$dir" && TESTS=$program timeout "$host_limit" "${script[@]}") >"$dir.log" 2>&1 </dev/null ||
		status=$?
	# A test that hung says nothing.
	found=$(awk '/crashed or hung/ { failed = "" }
		failed { exit }
		/^not ok/ { failed = $0 }
		END { if (failed) print failed }' "$dir.log" | sed -E 's/^not ok [0-9]+ (- )?//')
	case $status:$found in
	0:*) echo passed ;;
	124:) echo late ;;
	*) echo "${found:-it ends badly}" ;;
	esac
}

# run_host NAME...
run_host()
{
	local name program what began dir=$work/host
	local -A sound=()

	for name; do
		program=${program_of[$name]}
		if [ -z "${sound[$program]:-}" ]; then
			copy_tree "$dir"
			sound[$program]=$(host_verdict "$program" "$dir")
			judge_unbroken host "$program" "${sound[$program]}"
		fi
		began=$SECONDS
		copy_tree "$dir"
		if ! what=$(mutants apply "$name" "$dir" 2>&1); then
			what=${what%%$'\n'*}
			judge "$name" broken 0 "${what#"$name: "}"
			continue
		fi
		what=$(host_verdict "$program" "$dir")
		if [ "${sound[$program]}" != passed ]; then
			judge "$name" broken 0 "$program fails on the unbroken module"
		elif [ "$what" = passed ]; then
			judge "$name" survived $((SECONDS - began)) "$program"
		elif [ "$what" = late ]; then
			judge "$name" late $((SECONDS - began)) "$program"
		else
			judge "$name" caught $((SECONDS - began)) "$program's \"${what#"$program: "}\""
		fi
	done
	rm -rf "$dir"
}

# Mutants of the library
# ----------------------

# run_lib_lane LANE NAME...
run_lib_lane()
{
	local lane=$1 line name began=$SECONDS
	shift

	while IFS= read -r line; do
		[[ $line =~ ^(ok|not\ ok)\ [0-9]+\ ([^:]*):\ (.*)$ ]] || continue
		name=lib/${BASH_REMATCH[2]}
		case ${BASH_REMATCH[1]}:${BASH_REMATCH[3]} in
		'ok:all tests pass') judge_unbroken lib "lane-$lane" passed $((SECONDS - began)) ;;
		'ok:found by '*) judge "$name" caught $((SECONDS - began)) "${BASH_REMATCH[3]#found by }" ;;
		'not ok:no test fails') judge "$name" survived $((SECONDS - began)) "all programs" ;;
		'not ok:no verdict: '*) judge "$name" late $((SECONDS - began)) "${BASH_REMATCH[3]#no verdict: }" ;;
		*) judge "$name" broken $((SECONDS - began)) "${BASH_REMATCH[3]}" ;;
		esac
		began=$SECONDS
	done < <(OUTPUT=$work/lib.$lane bash "$top/selftests/lib/mutations.sh" "${@#lib/}" </dev/null 2>&1)
	rm -rf "$work/lib.$lane"
}

# run_lib NAME...
run_lib()
{
	local lane i share

	for ((lane = 0; lane < lanes; lane++)); do
		share=()
		for ((i = lane + 1; i <= $#; i += lanes)); do
			share+=("${!i}")
		done
		[ ${#share[@]} = 0 ] || run_lib_lane $lane "${share[@]}" &
	done
	wait
}

# Building modules
# ----------------

module_options=()
# options_of SERIES: set module_options like build_module(), but without debug information and the
# options for fuzzers.
options_of()
{
	module_options=("${no_debug_info[@]}")
	case $1 in
	*-debug | *-race) module_options+=(TWHEEL_SYNCPOINTS=1) ;;
	esac
}

# make_module SERIES KIND TREE: build the module, or the one with the KUnit suites.
make_module()
{
	local dir=$3

	options_of "$1"
	[ "$2" = module ] || dir+=/selftests/kunit
	make -C "$(kernel_headers "$1")" M="$dir" "${module_options[@]}" modules
}

# built_file KIND TREE
built_file()
{
	if [ "$1" = module ]; then
		echo "$2/twheel.ko"
	else
		echo "$2/selftests/kunit/twheel_kunit.ko"
	fi
}

kind_of()
{
	[ "$1" = kunit ] && echo kunit || echo module
}

# Print a sum of the sources: if it is equal, the products are equal.
sources_key()
{
	(cd "$top" && cat Kbuild Makefile dkms.conf twheel_*.c engine/* include/* selftests/syncpoints/syncpoint.c \
		"$(realpath uapi)"/linux/*.h
	[ "$2" = module ] || find selftests/kunit -type f -exec cat {} +
	cat "$cache/kernels/$1/release") | sha256sum | cut -c 1-16
}

# build_lane SERIES KIND LANE NAME...: build modules in copies of a built tree at the same place.
# There, kbuild compiles only the files that the mutant has changed.
build_lane()
{
	local series=$1 kind=$2 lane=$3 name why ko key dir=$work/$1.$2.$3 store=$work/$1.$2 base
	local tree=$dir/tree
	shift 3

	key=$(sources_key "$series" "$kind")
	base=$dir/base.$key
	mkdir -p "$store" "$dir"
	for name in unbroken "$@"; do
		ko=$store/$key.${name/\//.}
		[ "$name" = unbroken ] || ko+=.$(mutants show "$name" | sha256sum | cut -c 1-16)
		ko+=.ko
		ln -sf "$ko" "$store/${name/\//.}.ko"
		rm -f "$store/${name/\//.}.why"
		[ ! -e "$ko" ] || continue
		if [ ! -d "$base" ]; then
			rm -rf "$dir"
			mkdir -p "$dir"
			copy_module_sources "$tree"
			mkdir -p "$tree/selftests"
			cp -pr "$top/selftests/kunit" "$tree/selftests/"
			quietly "$dir/build.log" make_module "$series" "$kind" "$tree" || return
			mv "$tree" "$base"
		fi
		rm -rf "$tree"
		cp -a "$base" "$tree"
		if [ "$name" != unbroken ]; then
			if ! why=$(mutants apply "$name" "$tree" 2>&1); then
				why=${why%%$'\n'*}
				echo "${why#"$name: "}" >"$store/${name/\//.}.why"
				continue
			fi
			if ! make_module "$series" "$kind" "$tree" >"$dir/build.log" 2>&1; then
				echo "it does not compile: $(grep -m 1 -E 'error|undefined' \
					"$dir/build.log" || true)" >"$store/${name/\//.}.why"
				continue
			fi
		fi
		cp "$(built_file "$kind" "$tree")" "$ko.new"
		mv "$ko.new" "$ko"
	done
	rm -rf "$tree"
}

# build_mutants SERIES NAME...
build_mutants()
{
	local series=$1 kind name lane of_kind pid pids failed=0
	shift

	for kind in module kunit; do
		of_kind=()
		for name; do
			[ "$(kind_of "${program_of[$name]}")" != $kind ] || of_kind+=("$name")
		done
		[ ${#of_kind[@]} -gt 0 ] || continue
		say "building ${#of_kind[@]} mutants ($kind) for $(cat "$cache/kernels/$series/release")"
		build_lane "$series" $kind 0
		pids=()
		for ((lane = 0; lane < lanes; lane++)); do
			local share=() i
			for ((i = lane; i < ${#of_kind[@]}; i += lanes)); do
				share+=("${of_kind[i]}")
			done
			build_lane "$series" $kind $lane "${share[@]}" &
			pids+=($!)
		done
		for pid in "${pids[@]}"; do
			wait "$pid" || failed=1
		done
	done
	return $failed
}

# In the machine
# --------------

# The names and programs of the lines in a lane's list.
line_names=()
line_programs=()

# add_line NAME PROGRAM ROOT
add_line()
{
	local name=$1 program=$2 root=$3 kind ko

	kind=$(kind_of "$program")
	ko=$kind.${name/\//.}.ko
	cp "$work/$series.$kind/${name/\//.}.ko" "$root/$ko"
	line_names+=("$name")
	line_programs+=("$program")
	echo "$name $ko $(guest_program "$program") ${test_of[$name]:-}" >>"$root/list"
}

# The line that is being run. line_late is set if the program ran out of time.
at=0

line_log=()
line_failed=
line_planned=
line_seen=0
line_began=
line_late=
# The first complaint of the kernel.
complaint=
line_begin()
{
	at=$1
	line_log=() line_failed='' line_planned='' line_seen=0 line_late=''
	line_began=$EPOCHSECONDS
}

# line_fails WHAT: record the first failure. If it comes late, the program may only have run out
# of time.
line_fails()
{
	[ -z "$line_failed" ] || return 0
	line_failed=$1
	[ $((EPOCHSECONDS - line_began)) -lt $late_after ] || line_late=1
}

# line_judge WHAT: the verdict, from the first failure; WHAT is empty if there is none.
line_judge()
{
	local name=${line_names[at - 1]} program=${line_programs[at - 1]} what=$1
	local seconds=$((EPOCHSECONDS - line_began))

	if [ "$name" = unbroken ]; then
		unbroken[$program]=${what:-passed}
		judge_unbroken "$series" "$program" "${what:-passed}" $seconds
	elif [ "${unbroken[$program]:-}" != passed ]; then
		judge "$name" broken $seconds "$program fails on the unbroken module"
	elif [ -n "$line_late" ]; then
		judge "$name" late $seconds "$program"
	elif [ -n "$what" ]; then
		judge "$name" caught $seconds "$program's \"$what\""
	else
		judge "$name" survived $seconds "$program"
	fi
}

line_end()
{
	local status=$1

	complaint=$(printf '%s\n' "${line_log[@]}" | find_complaints | head -n 1) || true
	if [ -n "$complaint" ] && [[ -z $line_failed || -n $line_late ]]; then
		line_failed="kernel log is clean: ${complaint#*] }"
		line_late=
	elif [ -z "$line_failed" ] && [ "$line_seen" != "${line_planned:-none}" ]; then
		line_failed="reaches its plan"
	elif [ -z "$line_failed" ] && [ "$status" != 0 ]; then
		line_failed="exits with 0"
	fi
	line_judge "$line_failed"
}

# machine_runs LANE FROM: boot a machine and read its output. Sets `at' to the line where the
# machine ended, and `ended': "all"; "stopped" after a line, on purpose or not; "died" within a
# line, with `silent' if it printed nothing any more. If the kernel complains, the machine is
# ended.
machine_runs()
{
	local lane=$1 from=$2 line fd pid status=0 in_line=
	local console=$work/$series.console.$lane.log

	at=$((from - 1))
	ended=died
	silent=
	exec {fd}< <(boot "$series" "$work/$series.initramfs.$lane" \
		"vm_mode=mutants vm_timeout=$program_limit vm_from=$from" \
		-serial "file:$console" -serial file:/dev/stdout -serial null 2>&1 </dev/null)
	pid=$!
	# shellcheck disable=SC2064 # this very process
	trap "kill $pid 2>/dev/null" EXIT
	while IFS= read -r -t "$silence_limit" line <&"$fd" || { status=$?; false; }; do
		line=${line%$'\r'}
		case $line in
		'@mutant '*) line_begin "${line#@mutant }"; in_line=1 ;;
		'@log '*) line_log+=("${line#@log }") ;;
		'@not ok '*) line_fails "${line#@not ok }" ;;
		'@end '*)
			line_end "${line#@end }"
			in_line=''
			# A later failure might be due to this mistake. Also, lockdep is off now.
			[ -z "$complaint" ] || { kill $pid; break; }
			;;
		'@all') ended=all ;;
		'1..0'*) line_failed="it is not skipped" line_planned=0 ;;
		'1..'*) line_planned=${line#1..} line_planned=${line_planned%% *} ;;
		'ok '*) line_seen=$((line_seen + 1)) ;;
		'not ok '*)
			line_seen=$((line_seen + 1))
			line_fails "$(sed -E 's/^not ok +[0-9]* *(- )?//' <<<"$line")"
			;;
		esac
	done
	[ "$status" -le 128 ] || { kill $pid; silent=1; }
	exec {fd}<&-
	wait $pid 2>/dev/null || true
	trap - EXIT
	[ "$ended" = all ] || [ -n "$in_line" ] || ended=stopped
}

# last_words CONSOLE: print the complaint of a kernel that died, or its last line.
last_words()
{
	local words

	words=$(tr -cd '[:print:]\n' <"$1" | tail -n 60)
	{ find_complaints <<<"$words" || echo "${words##*$'\n'}"; } |
		sed -n '1{s/^[^]]*] *//; p}'
}

# run_lane SERIES LANE PROGRAM:PART:PARTS...: run the mutants of these programs. If PARTS is
# greater than 1, take each PARTSth mutant.
run_lane()
{
	local series=$1 lane=$2 program name root=$work/$1.more.$2 from=1 slips=0 ended silent first
	local part parts nr programs=()
	local -A unbroken=()
	shift 2

	line_names=() line_programs=() more_modules=()
	rm -rf "$root"
	mkdir -p "$root/mutants"
	for program; do
		IFS=: read -r program part parts <<<"$program"
		programs+=("$program")
		add_line unbroken "$program" "$root/mutants"
		nr=0
		for name in "${names[@]}"; do
			[ "${kernel_of[$name]:-}" = "$series" ] || continue
			[ "${program_of[$name]}" = "$program" ] || continue
			[ $((nr++ % parts)) = "$part" ] || continue
			if [ -e "$work/$series.$(kind_of "$program")/${name/\//.}.why" ]; then
				judge "$name" broken 0 \
					"$(cat "$work/$series.$(kind_of "$program")/${name/\//.}.why")"
				continue
			fi
			add_line "$name" "$program" "$root/mutants"
		done
	done
	pack_mutants "$series" "$lane" "$root" "${programs[@]}"
	while [ "$from" -le ${#line_names[@]} ]; do
		first=$from
		say "booting $(cat "$cache/kernels/$series/release") for $((${#line_names[@]} - from + 1)) runs"
		machine_runs "$lane" "$from"
		if [ "$ended" = all ]; then
			break
		elif [ "$ended" = died ] && [ $slips -lt 5 ] &&
			emulator_slipped "$work/$series.console.$lane.log"; then
			slips=$((slips + 1))
			from=$((at < first ? first : at))
		elif [ "$ended" = died ] && [ "$at" -gt "$first" ]; then
			# The mistake before may be the cause: run the line again, in a fresh
			# machine.
			from=$at
		elif [ "$ended" = died ]; then
			[ "$at" -ge "$first" ] || line_begin "$first"
			# A machine that became silent is late, unless its kernel gives a reason.
			line_late=$silent
			! find_complaints <"$work/$series.console.$lane.log" >/dev/null || line_late=''
			line_judge "the machine lives: $(last_words "$work/$series.console.$lane.log")"
			from=$((at + 1))
		else
			from=$((at + 1))
		fi
	done
	rm -f "$work/$series.initramfs.$lane"
}

# pack_mutants SERIES LANE ROOT PROGRAM...: pack the guest, with all that it runs.
pack_mutants()
{
	local series=$1 lane=$2 root=$3 program file programs=()
	shift 3

	for program; do
		program=$(guest_program "$program")
		for file in "$build"/selftests/{usual,debug,syncpoints}/"$program" "$top"/selftests/*/"$program"; do
			[ -e "$file" ] && programs+=("$file") && break
		done
	done
	more_modules=() more_files=()
	# The folder is put into /lib as well.
	make_initramfs "$work/$series.initramfs.$lane" "$root/mutants/list" "${programs[@]}"
	(cd "$root" && mkdir lib && mv mutants lib/ && find . | cpio -o -H newc -R 0:0 --quiet) \
		>>"$work/$series.initramfs.$lane"
	rm -rf "$root"
}

# If a program has more mutants than this, each lane runs a part of them.
many=20

# Deal the programs of these mutants out to the lanes, the longest first.
run_guests()
{
	local series=$1 lane program count part parts shares=()
	local -A nr=()
	shift

	for program; do
		nr[$program]=$((${nr[$program]:-0} + 1))
	done
	share_out "$lanes" < <(for program in "${!nr[@]}"; do
		count=$(sed -n "s,^$series/$(guest_program "$program") ,,p" "$cache/seconds" 2>/dev/null || true)
		parts=$((nr[$program] > many ? lanes : 1))
		for ((part = 0; part < parts; part++)); do
			echo "$(((nr[$program] / parts + 1) * (${count:-5} + 2))) $program:$part:$parts"
		done
	done | sort -k 1,1nr -k 2)
	for ((lane = 0; lane < lanes; lane++)); do
		[ -n "${shares[lane]}" ] || continue
		# shellcheck disable=SC2086 # words
		run_lane "$series" $lane ${shares[lane]} &
	done
	wait
}

# Print verdicts to the process that counts them.
# judge NAME caught|survived|late|broken SECONDS TEXT
judge()
{
	echo "@verdict $1 $2 $3 $4"
}

# judge_unbroken SERIES PROGRAM passed|WHAT SECONDS
judge_unbroken()
{
	if [ "$3" = passed ]; then
		echo "@sound $1/$2 ${4:-0}"
	else
		echo "@unsound $1/$2 $3"
	fi
}

run_all()
{
	local series name of_host=() of_lib=() of_series programs

	for name in "${names[@]}"; do
		[ "${kernel_of[$name]:-}" != host ] || of_host+=("$name")
		[ "${kernel_of[$name]:-}" != lib ] || of_lib+=("$name")
	done
	[ ${#of_host[@]} = 0 ] || run_host "${of_host[@]}"
	[ ${#of_lib[@]} = 0 ] || run_lib "${of_lib[@]}"
	for series in "${series_used[@]}"; do
		of_series=() programs=()
		for name in "${names[@]}"; do
			[ "${kernel_of[$name]:-}" = "$series" ] || continue
			of_series+=("$name")
			programs+=("${program_of[$name]}")
		done
		if ! build_mutants "$series" "${of_series[@]}"; then
			echo "@unsound $series/build the module compiles"
			continue
		fi
		run_guests "$series" "${programs[@]}"
	done
}

# Build only the guest programs that are needed.
build_programs()
{
	local kind name wanted

	wanted=" $(for name in "${!program_of[@]}"; do
		[[ ${kernel_of[$name]} = @(host|lib) ]] || echo "${program_of[$name]}"
	done | sort -u | xargs) "
	for kind in usual debug syncpoints; do
		local targets=()

		mkdir -p "$build/selftests/$kind"
		for name in $(guest_names $kind); do
			[[ $name = *.sh || $wanted != *" $name "* ]] ||
				targets+=("$build/selftests/$kind/$name")
		done
		[ ${#targets[@]} = 0 ] ||
			quietly "$build/selftests.log" selftests_make $kind -j2 "${targets[@]}" || true
	done
}

# Print a table of the areas.
report_areas()
{
	local name

	echo "# area          caught  survived  no verdict  equivalent  seconds"
	for name in "${names[@]}"; do
		echo "${name%%/*} ${verdict_of[$name]:-lost} ${taken[$name]:-0}"
	done | awk '{ areas[$1]; nr[$1, $2]++; seconds[$1] += $3 }
		END { for (a in areas) printf "# %-12s %7d %9d %11d %11d %8d\n", a, nr[a, "caught"],
			nr[a, "survived"], nr[a, "late"] + nr[a, "broken"] + nr[a, "lost"],
			nr[a, "equivalent"], seconds[a] }' | sort
}

list_mutants
mapfile -t series_used < <(printf '%s\n' "${kernel_of[@]}" | grep -vxE 'host|lib' | sort -u)
lock_cache
purpose=shell
[[ " ${series_used[*]} " != *-@(debug|race)' '* ]] || purpose=build
[ ${#series_used[@]} = 0 ] || KERNELS="${series_used[*]}" "$top/tools/vm/setup.sh" $purpose
mkdir -p "$work"
say "building the test programs"
build_programs

echo "TAP version 13"
exec {verdicts}< <(run_all)
while read -r word name verdict seconds what <&"$verdicts"; do
	case $word in
	@verdict)
		verdict_of[$name]=$verdict
		taken[$name]=$seconds
		durations+=("$seconds $name")
		case $verdict in
		caught) result ok "$name: caught by $what, $seconds s" ;;
		survived) result 'not ok' "$name: survived $what, $seconds s" ;;
		late) result 'not ok' "$name: no verdict: $what ran out of time, $seconds s" ;;
		*) result 'not ok' "$name: $what" ;;
		esac
		;;
	@sound) result ok "$name passes on the unbroken module, $verdict s" ;;
	@unsound) result 'not ok' "$name on the unbroken module: $verdict $seconds $what" ;;
	*) echo "# $word $name $verdict $seconds $what" ;;
	esac
done
for name in "${names[@]}"; do
	[ -n "${verdict_of[$name]:-}" ] || result 'not ok' "$name: has no verdict"
done
report_areas
tap_summary
