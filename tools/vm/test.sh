#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# test.sh [test|debug|race|rt|arm64|fuzz]: make test, test-debug and so on; make fuzz runs the
# fuzzers alone and for longer. All results are one TAP stream. First run tests on the host, then
# a virtual machine for each kernel with all programs in it.
# shellcheck source-path=SCRIPTDIR

tier=${1:-test}
# A kernel that checks every access is slow, so repeat less there.
case $tier in
fuzz)
	TESTS='wheel_fuzz lib_fuzz uml_fuzz twheel_fuzz'
	export TEST_TIMEOUT=${TEST_TIMEOUT:-14400}
	;;&
test)
	# test-debug and test-race run the races for longer, on kernels that check each access.
	export TW_RACE_SECONDS=${TW_RACE_SECONDS:-1}
	;;
debug | fuzz)
	KERNELS=6.12-debug
	export MEMORY=${MEMORY:-3G} TW_ROUNDS=${TW_ROUNDS:-10} TW_MILLION=${TW_MILLION:-100000} \
		TW_SLOWDOWN=${TW_SLOWDOWN:-10} TW_IDLE_SECONDS=${TW_IDLE_SECONDS:-2}
	;;
race)
	KERNELS=6.12-race
	export TW_ROUNDS=${TW_ROUNDS:-10} TW_MILLION=${TW_MILLION:-100000} TW_SLOWDOWN=${TW_SLOWDOWN:-10} \
		TW_RACE_SECONDS=${TW_RACE_SECONDS:-60}
	;;
rt)
	KERNELS='6.12-rt 7.3-rt'
	;;
arm64)
	[[ ${KERNELS:-} = *-arm64* ]] || KERNELS=6.12-arm64
	;;
esac

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/build.sh"
. "$(dirname "$0")/lib/boot.sh"
. "$(dirname "$0")/lib/cross.sh"
. "$(dirname "$0")/lib/arm64.sh"
. "$(dirname "$0")/lib/tap.sh"
. "$(dirname "$0")/lib/names.sh"
. "$(dirname "$0")/lib/progress.sh"
. "$(dirname "$0")/lib/guest-tests.sh"
. "$(dirname "$0")/lib/coverage.sh"

# Set `host_queue' to the tests that run on the host beside the virtual machines, the longest
# first. The test of dkms has run before and built a module for the machines.
host_queue()
{
	local name

	host_queue=()
	while read -r _ name; do
		[ "$name" = dkms ] || ! wanted "$name" || host_queue+=("$name")
	done < <(mapfile -t names < <(host_names); by_length host "${names[@]}")
	rm -rf "$run/host"
	mkdir -p "$run/host"
}

# The host's tests take as long as those in the virtual machines, so they have two lanes: each
# takes the next test that the other has not taken.
host_tests()
{
	local name

	for name in "${host_queue[@]}"; do
		mkdir "$run/host/$name" 2>/dev/null || continue
		case $name in
		wheel | lib) host_test "$name" make -C "$top/selftests/$name" OUTPUT="$build/$name" run ;;
		*) host_test "$name" bash "$top/selftests/host/$name.sh" ;;
		esac
	done
}

# guest_kind KIND: build its programs, and run those that are wanted.
guest_programs=()
guest_kind()
{
	local program

	any_wanted "$1" || return 0
	build_selftests "$1" || true
	while read -r program; do
		wanted "${program##*/}" || continue
		if [ -e "$program" ]; then
			guest_programs+=("$program")
		else
			stream_begin "${program##*/}"
			stream_note 'not ok' "it compiles"
		fi
	done < <(selftest_programs "$1")
}

# any_wanted KIND: is a program of this kind wanted?
any_wanted()
{
	local name

	for name in $(guest_names "$1"); do
		! wanted "$name" || return 0
	done
	return 1
}

# module_compiles COMMAND...: if the command fails, add a failure.
module_compiles()
{
	"$@" && return
	stream_begin "$2"
	stream_note 'not ok' "the module compiles ($1)"
	return 1
}

# Build all that a kernel's machines need for the programs that it runs.
guest_kernel()
{
	local series=$1 origin=make module mine=() paths=() more_modules=() more_files=() more_folders=()

	rm -rf "${run:?}/$series"
	mkdir -p "$run/$series"
	programs_for "$series" "${guest_programs[@]##*/}"
	# Most users load a module that dkms has built. The oldest of several kernels gets the one
	# that make builds.
	if [ -e "$build/$series/dkms.ko" ] &&
		[[ ${#kernels[@]} = 1 || $series != "${kernels[0]}" ]]; then
		origin=dkms
		module=$build/$series/dkms.ko
	elif [[ $tier = test && $series != *-* ]]; then
		module_compiles build_quickly "$series" "$build/$series/module" || return 0
		module=$(module_tree "$series")/twheel.ko
	else
		module_compiles build_module "$series" || return 0
		module=$(module_tree "$series")/twheel.ko
	fi
	[[ $series != *-debug ]] || more_modules=("$(module_tree "$series")/twheel.calls")
	if [[ " ${mine[*]} " = *' twheel_kunit_module.sh '* ]]; then
		module_compiles build_kunit "$series" || return 0
		more_modules+=("$build/$series/kunit/selftests/kunit/twheel_kunit.ko")
	fi
	if [[ " ${mine[*]} " = *' twheel_'@(grown_module|versions_module.sh)' '* ]]; then
		module_compiles build_grown "$series" || return 0
		more_modules+=("$build/$series/grown/twheel_grown.ko")
	fi
	# These programs run the examples.
	if [[ " ${mine[*]} " = *' twheel_'@(examples_module.sh|parameters_module)' '* ]]; then
		build_examples || true
		mapfile -t more_files < <(example_programs)
		more_files+=("$top/examples/raw/twheel.sh" "$top"/examples/languages/{run,hello}.sh
			"$top/examples/languages/hello.py")
		if [ -d "$cache/python" ] && [ "$tier" != arm64 ]; then
			more_folders+=("$cache/python/usr=/usr")
		fi
	fi
	if [[ " ${mine[*]} " = *' twheel_versions_module.sh '* ]]; then
		mapfile -t -O "${#more_files[@]}" more_files < <(version_files)
	fi
	# These programs test twheelctl, which is built for this machine's architecture. One of
	# them installs a module.
	if [[ " ${mine[*]} " = *' twheel_ctl'*'_module '* && ${#compiler[@]} = 0 ]]; then
		build_twheelctl || {
			stream_begin twheelctl
			stream_note 'not ok' "it compiles"
			return 0
		}
		more_files+=("$build/twheelctl/twheelctl" "$(type -P depmod)" "$(type -P modinfo)")
	fi
	mapfile -t paths < <(printf '%s\n' "${guest_programs[@]}" |
		grep -E "/($(IFS='|'; echo "${mine[*]}"))$")
	make_initramfs "$run/$series/initramfs" "$module" "${paths[@]}"
	guest_kernels+=("$series $origin $module")
}

expect_tests "$tier"
lock_cache
case $tier in
test | rt) bash "$top/tools/vm/setup.sh" test ;;
arm64 | fuzz) bash "$top/tools/vm/setup.sh" "$tier" ;;
*) bash "$top/tools/vm/setup.sh" build ;;
esac
took_since 0 "set-up"
[ "$tier" != arm64 ] || build_for_arm64
mkdir -p "$build" "$run"
# The tests below make these files. Never use those of an older tree.
rm -f "$build"/*/dkms.{ko,key}

echo "TAP version 13"
progress_load
case $tier in
test)
	host_test dkms bash "$top/selftests/host/dkms.sh"
	host_queue
	[ ${#host_queue[@]} = 0 ] || host_lanes=(host_tests host_tests)
	;;
fuzz)
	host_test wheel_fuzz make -C "$top/selftests/wheel" OUTPUT="$build/wheel" RUNS=-1 \
		SECONDS="${FUZZ_SECONDS:-600}" fuzz
	host_test lib_fuzz make -C "$top/selftests/lib" OUTPUT="$build/lib" RUNS=-1 \
		SECONDS="${FUZZ_SECONDS:-600}" fuzz
	host_test uml_fuzz bash "$top/tools/vm/uml-fuzz.sh"
	# Also fuzz with two processors, which are slower to emulate.
	export TW_FUZZ_CALLS=${TW_FUZZ_SMP_CALLS:-500000}
	;;
esac
built_from=$SECONDS
guest_kind usual
case $tier in
debug | fuzz) guest_kind debug ;;&
debug | race) guest_kind syncpoints ;;
esac
if [ ${#guest_programs[@]} -gt 0 ]; then
	choose_kernels "${guest_programs[@]##*/}"
	for series in "${kernels[@]}"; do
		guest_kernel "$series"
	done
	took_since "$built_from" "building modules and test programs"
fi
[ -z "${host_lanes[*]}${guest_programs[*]}" ] || run_lanes "${guest_programs[@]##*/}"
[[ $tier != @(debug|fuzz) ]] || coverage_report 6.12-debug
tap_summary
