# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034 # others read these
# Sourced: merge many TAP streams into one, numbered and counted.

passed=0
failed=0
skipped=0
# The duration of each part, "SECONDS NAME". The longest are printed at the end.
durations=()
# Lines that are printed again at the end. Failures come last, each with some of its output.
skips=()
failures=()

# Set in a lane, see guest-tests.sh: the process that reads the lane counts its results.
in_lane=

# The patterns of TESTS= and EXCEPT=, as in the shell.
read -ra patterns <<<"${TESTS:-*}"
read -ra except <<<"${EXCEPT:-}"

# The state of the stream that is being read: its name, plan, results, and its other output, which
# is shown if a result fails. The current test's output begins at test_start; test_runs is set if
# the harness has announced the test.
stream=
planned=
seen=0
stream_failed=0
transcript=()
test_start=0
test_runs=

# result ok|'not ok' DESCRIPTION [REASON...]: print one result of the whole run.
result()
{
	local verdict=$1 what=$2
	shift 2

	# An expected failure does not count as passed.
	if [[ $verdict = ok && $what =~ \#\ *(SKIP|XFAIL) ]]; then
		skipped=$((skipped + 1))
		skips+=("skipped: $what")
	elif [ "$verdict" = ok ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		failures+=("FAILED: $what" "${@/#/  because: }")
		[ -z "$in_lane" ] || [ $# = 0 ] || printf '@because %s\n' "$@"
	fi
	echo "$verdict $((passed + failed + skipped)) $what"
}

stream_begin()
{
	stream=$1
	planned=
	seen=0
	stream_failed=0
	transcript=()
	test_start=0
	test_runs=
}

# stream_note ok|'not ok' WHAT [REASON...]: print a result about the stream.
stream_note()
{
	[ "$1" = ok ] || stream_failed=1
	result "$1" "$stream: $2" "${@:3}"
}

# Set `reasons' to a few lines of output of the test that has just failed: the harness's unmet
# expectations or, if there are none, the last lines.
test_reasons()
{
	local line words=()

	reasons=()
	for line in "${transcript[@]:test_start}"; do
		[[ ! $line =~ ^[a-z_]+\.c:[0-9]+: ]] || reasons+=("$line")
		[[ $line =~ ^\ +(RUN|FAIL)\  ]] || words+=("$line")
	done
	if [ ${#reasons[@]} = 0 ]; then
		reasons=("${words[@]:${#words[@]} > 3 ? ${#words[@]} - 3 : 0}")
	fi
	reasons=("${reasons[@]:0:3}")
}

# The current test has ended: keep its output if it failed. If a program does not announce its
# tests, it may print more about a failure after the result.
test_ends()
{
	local verdict=$1 what=$2 reasons=()

	seen=$((seen + 1))
	if [ "$verdict" = ok ]; then
		stream_note ok "$what"
		[ -z "$test_runs" ] || transcript=("${transcript[@]:0:test_start}")
	else
		test_reasons
		stream_note 'not ok' "$what" "${reasons[@]}"
		transcript+=("not ok $what")
	fi
	test_start=${#transcript[@]}
	test_runs=
}

stream_line()
{
	local line=${1%$'\r'}

	if [[ $line =~ ^(ok|not\ ok)(\ +[0-9]+)?(\ +-)?\ *(.*)$ ]]; then
		test_ends "${BASH_REMATCH[1]}" "${BASH_REMATCH[4]}"
		return
	elif [[ $line =~ ^1\.\.([0-9]+)(.*)$ ]]; then
		planned=${BASH_REMATCH[1]}
		# The whole program is skipped.
		[ "$planned" != 0 ] || stream_note ok "nothing run ${BASH_REMATCH[2]:-# SKIP}"
	elif [ "$line" = 'TAP version 13' ] || [ -z "$line" ]; then
		return
	elif [ -n "${verbose:-}" ]; then
		echo "# ${line#\# }"
	fi
	if [[ $line = '#  RUN  '* ]]; then
		test_start=${#transcript[@]}
		test_runs=1
	fi
	transcript+=("${line#\# }")
}

# stream_end STATUS: the stream is complete. STATUS is its program's exit status.
stream_end()
{
	local status=$1

	if [ "$seen" != "${planned:-none}" ]; then
		stream_note 'not ok' "reaches its plan (planned ${planned:-none}, seen $seen, exit status $status)"
	elif [ "$status" != 0 ] && [ $stream_failed = 0 ] && [ "$planned" != 0 ]; then
		stream_note 'not ok' "exits as its results say (all ok, exit status $status)"
	fi
	# V=1 has shown it already.
	if [ $stream_failed != 0 ] && [ -z "${verbose:-}" ]; then
		show "$stream said" "${transcript[@]}"
	fi
}

# wanted NAME: is the name in TESTS=, and not in EXCEPT=?
wanted()
{
	local pattern

	for pattern in "${except[@]}"; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ $1 != $pattern ]] || return 1
	done
	for pattern in "${patterns[@]}"; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ $1 == $pattern ]] && return
	done
	return 1
}

# took_since SECONDS NAME: record the duration of a part that began at that value of $SECONDS.
took_since()
{
	durations+=("$((SECONDS - $1)) $2")
	[ -z "$in_lane" ] || echo "@took ${durations[-1]}"
}

# Print the ten longest parts, for users who want a shorter run.
report_slowest()
{
	[ ${#durations[@]} -gt 1 ] || return 0
	echo "# slowest, in seconds: $(printf '%s\n' "${durations[@]}" | sort -nr |
		sed -n '1,10s/^\([0-9]*\) \(.*\)/\2 \1/p' | paste -sd, | sed 's/,/, /g')"
}

# host_test NAME COMMAND...: run a test on the host that prints TAP.
host_test()
{
	local name=$1 line status=0 began=$SECONDS
	shift

	wanted "$name" || return 0
	stream_begin "$name"
	while IFS= read -r line; do
		stream_line "$line"
	done < <("$@" 2>&1 </dev/null)
	# $! is the process substitution.
	wait $! || status=$?
	stream_end "$status"
	took_since "$began" "$name"
}

show()
{
	local title=$1
	shift
	echo "# ---- $title:"
	[ $# -eq 0 ] || printf '#   %s\n' "$@"
	echo "# ----"
}

# Print the plan, and the last lines of the run.
tap_summary()
{
	echo "1..$((passed + failed + skipped))"
	report_slowest
	[ ${#except[@]} = 0 ] || echo "# left out by EXCEPT: ${except[*]}"
	[ ${#skips[@]} = 0 ] || printf '# %s\n' "${skips[@]}"
	[ ${#failures[@]} = 0 ] || printf '# %s\n' "${failures[@]}"
	[ $skipped = 0 ] || echo "$skipped skipped"
	[ $((passed + failed)) != 0 ] || say "no test has run"
	echo "$passed passed, $failed failed"
	[ $failed = 0 ] && [ $passed != 0 ]
}
