#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make test-upstream: `make upstream' into the kernel sources of Debian, and what becomes of it
# there: the driver as a module and built in, the check of its header, its selftests, its KUnit
# suites in user-mode Linux, checkpatch and kernel-doc, all of them those of that kernel.
#
# KERNELS="6.12 7.3"        which sources
#
# .cache/source-7.3         the source, as .cache/source is that of 6.12
# .cache/build/upstream     a copy of each with the tree form in it, and what was built
# shellcheck source-path=SCRIPTDIR

KERNELS=${UPSTREAM_KERNELS:-6.12 7.3}
. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/apt.sh"
. "$(dirname "$0")/lib/newer.sh"
. "$(dirname "$0")/lib/source.sh"
. "$(dirname "$0")/lib/tap.sh"
. "$(dirname "$0")/lib/cases.sh"
. "$(dirname "$0")/../check/style.sh"

case_options=-ex
driver=drivers/misc/twheel
tests=tools/testing/selftests/twheel
options=(PRINTK BUG MODULES SMP HIGH_RES_TIMERS PROC_FS SYSFS DEBUG_FS FTRACE ENABLE_DEFAULT_TRACERS EPOLL
	POSIX_TIMERS IO_URING NAMESPACES TIME_NS USER_NS MULTIUSER NET KUNIT HEADERS_INSTALL UAPI_HEADER_TEST)
fresh_tree() { :; }

# Files are replaced there, never written to: so links do.
tree_of_our_own()
{
	rm -rf "$tree" "$out"
	mkdir -p "$tree" "$out"
	cp -al "$source_dir/." "$tree"
}

it_is_written()
{
	make -C "$top" upstream KSRC="$tree" >"$work.written"
	grep -qx "$driver/twheel_main.c" "$work.written"
	[ ! -e "$tree/$driver/twheel_compat.h" ]
	! grep -rniE 'syncpoint|twheel_compat|litmus' "$tree/$driver" --include=*.[ch]
}

a_second_run_changes_nothing()
{
	[ -z "$(make -s -C "$top" upstream KSRC="$tree")" ]
}

kernel_make()
{
	make -C "$tree" O="$out" ARCH=x86_64 -j"$(nproc)" "$@"
}

# builds m|y: without a warning. The suites are a module in either case.
builds()
{
	local option

	kernel_make -s tinyconfig
	for option in "${options[@]}"; do
		echo "CONFIG_$option=y"
	done >>"$out/.config"
	printf 'CONFIG_TWHEEL=%s\nCONFIG_TWHEEL_KUNIT_TEST=m\n' "$1" >>"$out/.config"
	kernel_make -s olddefconfig
	for option in "${options[@]/%/=y}" TWHEEL="$1" TWHEEL_KUNIT_TEST=m; do
		grep -x "CONFIG_$option" "$out/.config"
	done
	rm -rf "${out:?}/$driver"
	kernel_make W=1 $driver/ >"$out/build.log" 2>&1 || { cat "$out/build.log"; return 1; }
	! grep -iE 'warning:|error:' "$out/build.log" || return
	[ -e "$out/$driver/engine/run.o" ] && [ -e "$out/$driver/tests/twheel_kunit.o" ]
}

the_header_passes_its_test()
{
	kernel_make -s headers
	kernel_make usr/ >"$out/usr.log" 2>&1 || { cat "$out/usr.log"; return 1; }
	grep -x '  HDRTEST usr/include/linux/twheel.h' "$out/usr.log"
}

its_selftests_build()
{
	make -C "$tree/tools/testing/selftests" TARGETS=twheel O="$out" -j"$(nproc)" \
		KHDR_INCLUDES="-isystem $out/usr/include" >"$out/selftests.log" 2>&1 || {
		cat "$out/selftests.log"
		return 1
	}
	! grep -iE 'warning:|error:' "$out/selftests.log" || return
	[ -x "$out/kselftest/twheel/twheel_arm" ]
}

its_kunit_suites_pass()
{
	(cd "$tree" && python3 tools/testing/kunit/kunit.py run --build_dir "$out/kunit" \
		--kunitconfig $driver --jobs "$(nproc)") >"$out/kunit.log" 2>&1 || {
		tail -n 200 "$out/kunit.log"
		return 1
	}
	grep -E 'Ran [0-9]{3} tests: passed: ' "$out/kunit.log"
}

# checkpatch OPTION... FILE...: that of the tree.
checkpatch()
{
	(cd "$tree" && perl scripts/checkpatch.pl --strict --terse --show-types --no-summary "$@")
}

written()
{
	grep -E "$1" "$work.written"
}

checkpatch_has_nothing_to_say()
{
	local list types=$out/types

	mapfile -t list < <(written "^($driver/|include/uapi|Documentation/.*twheel)" | grep -v engine/trace.h)
	checkpatch --file "${list[@]}"
	checkpatch --ignore "$(IFS=,; echo "${tracepoints[*]}")" --file $driver/engine/trace.h
	# These are lists of programs and options, and the types that the harness makes.
	mapfile -t list < <(written "^$tests/.*\.[ch]$")
	printf '%s\n' 'FIXTURE_(?:DATA|VARIANT)\(\w+\)' '_Atomic\s+(?:unsigned\s+)?\w+' >"$types"
	checkpatch --typedefsfile="$types" --ignore "$(IFS=,; echo "${userspace[*]},${harness[*]}")" \
		--file "${list[@]}"
}

kernel_doc_has_nothing_to_say()
{
	cd "$tree"
	scripts/kernel-doc -none -Wall include/uapi/linux/twheel.h $driver/*.[ch] $driver/engine/*.[ch] \
		>"$out/doc.log" 2>&1
	! grep . "$out/doc.log"
}

series_tests()
{
	local case

	tree=$build/upstream/$series/linux
	out=$build/upstream/$series/out
	work=$out/case
	echo 1..9
	tree_of_our_own
	for case in it_is_written a_second_run_changes_nothing "builds m" "builds y" \
		the_header_passes_its_test its_selftests_build checkpatch_has_nothing_to_say \
		kernel_doc_has_nothing_to_say its_kunit_suites_pass; do
		# shellcheck disable=SC2086 # a name and its argument
		holds "$series: ${case//_/ }" $case
	done
}

lock_cache
bash "$top/tools/vm/setup.sh" build
echo "TAP version 13"
for series in "${kernels[@]}"; do
	use_source "$series"
	! is_newer "$series" || use_suite $newer
	get_source
	use_suite bookworm
	host_test "upstream-$series" series_tests
done
tap_summary
