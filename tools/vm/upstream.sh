#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make test-upstream: `make upstream' into the kernel sources of Debian, and tests of the result:
# the driver as a module and built in, the check of its header, its selftests, its KUnit suites in
# User-mode Linux, and that kernel's checkpatch and kernel-doc. Then the same after each of the
# first six patches of the series.
#
# KERNELS="6.12 7.3"        which sources
#
# .cache/source-7.3         the source, as .cache/source is that of 6.12
# .cache/build/upstream     a copy of each with the tree form in it, and the products
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

# Files are replaced in the copy, never written to, so hard links are enough.
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

# builds_with SYMBOL=VALUE...: the driver builds without a warning.
builds_with()
{
	local option

	kernel_make -s tinyconfig
	for option in "${options[@]}"; do
		echo "CONFIG_$option=y"
	done >>"$out/.config"
	printf 'CONFIG_%s\n' "$@" >>"$out/.config"
	kernel_make -s olddefconfig
	for option in "${options[@]/%/=y}" "$@"; do
		grep -x "CONFIG_$option" "$out/.config"
	done
	rm -rf "${out:?}/$driver"
	kernel_make W=1 $driver/ >"$out/build.log" 2>&1 || { cat "$out/build.log"; return 1; }
	! grep -iE 'warning:|error:' "$out/build.log" || return
	[ -e "$out/$driver/tests/twheel_wheel_test.o" ]
}

# builds m|y: the driver builds as a module or built in. The suites are a module.
builds()
{
	builds_with TWHEEL="$1" TWHEEL_KUNIT_TEST=m && [ -e "$out/$driver/engine/run.o" ]
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

# its_kunit_suites_pass [HOW-MANY]: HOW-MANY is a regular expression. By default three digits, the
# number of all cases.
its_kunit_suites_pass()
{
	local ran=${1:-'[0-9]{3}'}

	(cd "$tree" && python3 tools/testing/kunit/kunit.py run --build_dir "$out/kunit" \
		--kunitconfig $driver --jobs "$(nproc)") >"$out/kunit.log" 2>&1 || {
		tail -n 200 "$out/kunit.log"
		return 1
	}
	grep -E "Ran $ran tests: passed: " "$out/kunit.log"
}

# checkpatch OPTION... FILE...: run the tree's checkpatch.
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
	# The lists of programs and options, and the types that the harness defines.
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

# The series

the_series_is_written()
{
	make -C "$top" upstream KSRC="$tree" SERIES="$out/patches"
	ls "$out"/patches/0007-*
}

# patch_tree NUMBER [OPTION]: apply a patch of the series.
patch_tree()
{
	patch -d "$tree" -p1 -s --no-backup-if-mismatch "${@:2}" <"$(echo "$out"/patches/000"$1"-*)"
}

its_patches_can_be_taken_back()
{
	local nr

	for nr in 7 6 5 4 3 2 1; do
		patch_tree $nr -R
	done
	[ ! -e "$tree/$driver" ]
	! grep -rl twheel "$tree"/drivers/misc/{Kconfig,Makefile} "$tree/MAINTAINERS"
}

# patch_does NUMBER: apply a patch and run its checks.
patch_does()
{
	patch_tree "$1"
	case $1 in
	[123])
		builds_with TWHEEL_KUNIT_TEST=m && builds_with TWHEEL_KUNIT_TEST=y
		;;
	4)
		builds m && builds y
		the_header_passes_its_test
		;;
	5)
		kernel_make -s headers
		its_selftests_build
		;;
	6)
		kernel_doc_has_nothing_to_say
		;;
	esac
}

patch_1_builds() { patch_does 1; }
patch_2_builds() { patch_does 2; }
patch_3_builds() { patch_does 3; }
patch_4_builds() { patch_does 4; }
patch_5_builds() { patch_does 5; }
patch_6_is_a_document() { patch_does 6; }

# Patch 1 has the cases of the wheel alone. After patch 3, three digits of cases must run.
kunit_passes_after_patch_1() { its_kunit_suites_pass '[0-9]+'; }
kunit_passes_after_patch_3() { its_kunit_suites_pass; }

# Put the sources after patch 5 into the project's layout, and run its programs in the machine.
programs_pass_after_patch_5()
{
	local carved=$out/carved path names

	rm -rf "$carved"
	mkdir -p "$carved/.cache"
	(cd "$top" && git ls-files -z | xargs -0 cp -P --parents -t "$carved")
	for path in "$cache"/*; do
		case ${path##*/} in
		build | run | lock) ;;
		*) ln -s "$path" "$carved/.cache/" ;;
		esac
	done
	(cd "$carved" && rm -f engine/*.[ch] include/*.h twheel_*.c selftests/*.h &&
		find selftests -mindepth 2 -name '*.[ch]' ! -path '*/lib/*' ! -path '*/wheel/*' -delete)
	(cd "$top" && perl tools/upstream/carve.pl tools/upstream/series/manifest 5 "$carved")
	for path in twheel_stat engine/{keys,rearm,refresh}; do
		[ ! -e "$carved/$path.c" ]
		sed -i "s, $path\.o,," "$carved/Kbuild"
	done
	names=$(cd "$carved/selftests" && basename -a -s .c {device,clocks}/twheel_*.c)
	KERNELS=$series make -C "$carved" test TESTS="${names//$'\n'/ }" >"$carved/log" 2>&1 ||
		{ grep -E '^not ok|because' "$carved/log"; return 1; }
	grep -E '^[0-9]{3} passed, 0 failed$' "$carved/log"
}

the_rest_leads_to_the_whole()
{
	patch_tree 7
	[ -z "$(make -s -C "$top" upstream KSRC="$tree")" ]
}

series_tests()
{
	local case

	tree=$build/upstream/$series/linux
	out=$build/upstream/$series/out
	work=$out/case
	echo 1..21
	tree_of_our_own
	for case in it_is_written a_second_run_changes_nothing "builds m" "builds y" \
		the_header_passes_its_test its_selftests_build checkpatch_has_nothing_to_say \
		kernel_doc_has_nothing_to_say its_kunit_suites_pass the_series_is_written \
		its_patches_can_be_taken_back patch_1_builds kunit_passes_after_patch_1 \
		patch_2_builds patch_3_builds kunit_passes_after_patch_3 patch_4_builds \
		patch_5_builds programs_pass_after_patch_5 patch_6_is_a_document the_rest_leads_to_the_whole; do
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
