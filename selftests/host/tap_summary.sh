#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The last lines of a log must say what failed, and why. The streams are made up.
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034 # what is sourced reads these

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/tap.sh"
. "$(dirname "$0")/../../tools/vm/lib/progress.sh"
. "$(dirname "$0")/../../tools/vm/lib/guest-tests.sh"

# The output of a program that uses the harness.
program()
{
	cat <<-'EOT'
	TAP version 13
	1..3
	# Starting 3 tests from 1 test cases.
	#  RUN           wheel.turns ...
	# said while it turned
	#            OK  wheel.turns
	ok 1 wheel.turns
	#  RUN           wheel.stops ...
	# said before it stopped
	# wheel.c:7:stops:Expected 0 (0) < rounds (0)
	# stops: Test failed
	#          FAIL  wheel.stops
	not ok 2 wheel.stops
	#  RUN           wheel.hangs ...
	# hangs: Test terminated by timeout
	#          FAIL  wheel.hangs
	not ok 3 wheel.hangs
	# FAILED: 1 / 3 tests passed.
	EOT
}

# run_guest_tests SERIES: this replaces the function that boots a machine.
# shellcheck disable=SC2317 # start_lanes calls it
run_guest_tests()
{
	local line

	stream_begin "$1/wheel"
	while IFS= read -r line; do
		stream_line "$line"
	done < <(program)
	kernel_log=("[1.0] BUG: all of it" "[1.0] and more")
	end_program 1
}

# Run everything, in a guest of that series or on the host.
run()
(
	patterns=('*')
	verbose=
	cache=$work
	guest_kernels=("${1:-} make module")
	if [ $# != 0 ]; then
		LANES=1 run_lanes wheel
	else
		host_test wheel program
	fi
	tap_summary
) </dev/null 2>&1

# says NUMBER SENTENCE TEXT [OTHER]: a result, "ok" if $said contains TEXT and not OTHER.
says()
{
	local verdict=ok

	[[ $said = *"$3"* && ! (${4:-} && $said = *"${4:-}"*) ]] || verdict='not ok'
	echo "$verdict $1 $2"
	[ "$verdict" = ok ] || printf '# %s\n' "${said//$'\n'/$'\n'# }"
}

end_on_host='
# FAILED: wheel: wheel.stops
#   because: wheel.c:7:stops:Expected 0 (0) < rounds (0)
# FAILED: wheel: wheel.hangs
#   because: hangs: Test terminated by timeout
1 passed, 2 failed'
end_in_lane='
# FAILED: 6.12/wheel: wheel.stops
#   because: wheel.c:7:stops:Expected 0 (0) < rounds (0)
# FAILED: 6.12/wheel: wheel.hangs
#   because: hangs: Test terminated by timeout
# FAILED: 6.12/wheel: kernel log is clean afterwards
#   because: [1.0] BUG: all of it
1 passed, 3 failed'

work=$build/tap_summary
rm -rf "$work"
mkdir -p "$work"
echo "TAP version 13"
echo "1..4"
said=$(run) || true
says 1 "the last lines say what failed on the host, and why" "$end_on_host"
says 2 "what a program said is shown as far as its tests failed" \
	'said before it stopped' 'said while it turned'
said=$(run 6.12) || true
says 3 "the last lines say what failed in a guest, and why" "$end_in_lane"
says 4 "what was said around it stands before that" 'said before it stopped'
