#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make check: static checks of the sources, as one TAP stream. If a tool prints something, its
# check fails and the output is shown.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../vm/lib/common.sh"
. "$(dirname "$0")/../vm/lib/apt.sh"
. "$(dirname "$0")/../vm/lib/source.sh"
. "$(dirname "$0")/../vm/lib/tap.sh"
. "$(dirname "$0")/../vm/lib/names.sh"
. "$(dirname "$0")/files.sh"
. "$(dirname "$0")/style.sh"
. "$(dirname "$0")/structure.sh"
. "$(dirname "$0")/coccinelle.sh"
. "$(dirname "$0")/text.sh"
. "$(dirname "$0")/mutants.sh"

# The checks are independent. They start in the order of the list, as many at a time as there are
# processors, each with its own output files. Results are printed in the order of the list.
#
# begin NAME COMMAND...: run a check in the background. Its status and its duration in seconds are
# written last, into NAME.out.ended.
begin()
{
	local name=$1 out=$work/$1.out

	wanted "$name" || return 0
	while [ "$(jobs -pr | wc -l)" -ge "$(nproc)" ]; do
		wait -n || true
	done
	{
		status=0 began=$SECONDS
		"${@:2}" >"$out" 2>&1 </dev/null || status=$?
		echo "$status $((SECONDS - began))" >"$out.ends"
		mv "$out.ends" "$out.ended"
	} &
}

# await NAME: wait for the end of a check, and set `status' and `seconds'.
await()
{
	until [ -e "$work/$1.out.ended" ]; do
		kill -0 "$runner" 2>/dev/null || [ -e "$work/$1.out.ended" ] || die "$1 was not run"
		sleep 0.1
	done
	read -r status seconds <"$work/$1.out.ended"
	durations+=("$seconds $1")
}

# program NAME COMMAND...: the result of a check that prints TAP itself.
program()
{
	local line status seconds

	wanted "$1" || return 0
	await "$1"
	stream_begin "$1"
	while IFS= read -r line; do
		stream_line "$line"
	done <"$work/$1.out"
	stream_end "$status"
}

# check NAME SENTENCE: the check succeeds if the function NAME returns 0 and prints nothing.
check()
{
	local name=$1 sentence=$2 status seconds said

	wanted "$name" || return 0
	await "$name"
	mapfile -t said <"$work/$name.out"
	if [ "$status" = 0 ] && [ ${#said[@]} = 0 ]; then
		result ok "$sentence"
	else
		result 'not ok' "$sentence" "${said[@]:0:3}"
		show "$name said, and exited with $status" "${said[@]}"
	fi
}

# No machine is booted here, so another kernel costs little: check the PREEMPT_RT kernels too, if
# their headers have been fetched.
for series in "${kernels[@]}"; do
	[ ! -e "$cache/kernels/$series-rt/complete" ] || kernels+=("$series-rt")
done
export KERNELS="${kernels[*]}"

expect_tests check
lock_cache
bash "$top/tools/vm/setup.sh" check
get_source
took_since 0 "set-up"
# Start in the top folder, so that tools print short file names.
cd "$top"
work=$build/check
rm -rf "$work"
mkdir -p "$work"
list_files

# Several checks use this tree.
kernel_shaped_tree
checks()
{
	program build_matrix bash "$top/tools/check/build_matrix.sh"
	program uapi_header bash "$top/tools/check/uapi_header.sh"
	program stability bash "$top/tools/check/stability.sh"
	program litmus bash "$top/selftests/model/litmus/run.sh" "$top" "$work/litmus"
	program model_ties perl "$top/selftests/model/ties.pl" "$top"
	program big_endian bash "$top/tools/check/big_endian.sh"
	check uapi_includes "the uapi header includes linux/types.h and linux/ioctl.h at most"
	check coccinelle "coccinelle's rules in the kernel find nothing in the module"
	check checkpatch_module "checkpatch --strict has nothing to say about the module"
	check checkpatch_lib "checkpatch --strict has nothing to say about the library"
	check checkpatch_tests "checkpatch --strict has nothing to say about the tests"
	check checkpatch_examples "checkpatch --strict has nothing to say about the examples"
	check checkpatch_bench "checkpatch --strict has nothing to say about the benchmark"
	check checkpatch_tools "checkpatch --strict has nothing to say about the tools"
	check kernel_doc "the kernel-doc comments are complete and agree with the code"
	check kernel_doc_text "sphinx makes a page of the kernel-doc comments of the uapi header without a warning"
	check versions "the module asks for features of a kernel, nowhere for its version"
	check function_length "no function has more than 80 lines"
	check file_length "no file of the module has more than 800 lines"
	check parts_named "Kbuild and the KUnit module name each file that they are made of"
	check state_values "values of the state word stand in engine/timeout.h alone"
	check gone_words "no file of the module has a word that has given way to one of the field"
	check cycles "no file includes itself by way of others"
	check order "a file calls those below it in the list of twheel_main.c, and none above"
	check test_limits "no test has a longer limit than its program"
	check upstream_series "the series for kernel trees finds in the sources all that its manifest names"
	check shell_scripts "shellcheck has nothing to say about the shell scripts"
	check spelling "codespell finds nothing misspelt"
	[ ${#documents[@]} = 0 ] || check documents "sphinx makes pages of the documents without a warning"
	check shown "what the documents show of the examples is there"
	check tables "the tables of costs have the figures of the records"
	check commands "the commands that the documents show are run by tests"
	check layouts "the layouts and numbers in the document about bindings are those of the headers"
	check drawings "the drawings are made from their sources"
	check man_pages "mandoc has nothing to say about the man pages"
	check recipes "rpm, bash and shellcheck have nothing to say about the recipes of packages"
	check syzkaller "the description for syzkaller has the constants and the structures of the header"
	check device_page "the man page of the device says what the header and the sources have"
	check design_names "the functions that the documents name are there, and in the files named with them"
	check operating "the counters and the fields of tracepoints are described, and alerts name counters"
	check peers "each test that the document about peers names is there"
	check sentences "each sentence of the public headers has a test that is there"
	check errnos "each errno has a test for each call that may say it"
	check fault_sites "the table of fault sites is the one that the test goes by"
	check licences "each file says the licence that it is to have, and the text of that is there"
	check mutants "each mutant can be made in the sources, and names a test that is there"
	[ ! -e .git ] || check names_of_files "files that are named somewhere are there"
	[ ! -e .git ] || check products "no build product is kept in git"
}

echo "TAP version 13"
(
	program() { begin "$@"; }
	check() { begin "$1" "$1"; }
	checks
	wait
) &
runner=$!
trap 'kill "$runner" 2>/dev/null || true' EXIT
checks
tap_summary
