# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034 # others read these
# Sourced: many TAP streams become one, numbered through and counted.

passed=0
failed=0
skipped=0
# How long each part took, "SECONDS NAME"; the longest are told at the end.
durations=()
# Told once more at the end, where they are seen: what failed comes last, each with
# some of what was said about it.
skips=()
failures=()

# Set in a lane, see guest-tests.sh, whose results are counted by who reads it.
in_lane=

# The names that are asked for, and those among them that are not: patterns of the shell.
read -ra patterns <<<"${TESTS:-*}"
read -ra except <<<"${EXCEPT:-}"

# Of the stream that is being read: its name, plan, results, and what else it
# said, which is shown when something failed. The test that is under way begins at
# test_start; test_runs if the harness has announced it.
stream=
planned=
seen=0
stream_failed=0
transcript=()
test_start=0
test_runs=

# result ok|'not ok' DESCRIPTION [REASON...]: one result of the whole run.
result()
{
	local verdict=$1 what=$2
	shift 2

	# An expected failure is no pass either.
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

# stream_note ok|'not ok' WHAT [REASON...]: a result about the stream, not one of its
# own.
stream_note()
{
	[ "$1" = ok ] || stream_failed=1
	result "$1" "$stream: $2" "${@:3}"
}

# A few lines of what the test that has just failed said: where the harness found
# something else than it expected, or its last words.
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

# The test that is under way has ended: what it said is kept if it failed. Programs
# that do not announce a test may say of one that failed what comes after its result.
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

# stream_end STATUS: the stream is complete; STATUS is its program's.
stream_end()
{
	local status=$1

	if [ "$seen" != "${planned:-none}" ]; then
		stream_note 'not ok' "reaches its plan (planned ${planned:-none}, seen $seen, exit status $status)"
	elif [ "$status" != 0 ] && [ $stream_failed = 0 ] && [ "$planned" != 0 ]; then
		stream_note 'not ok' "exits as its results say (all ok, exit status $status)"
	fi
	# With V=1 it has been shown already.
	if [ $stream_failed != 0 ] && [ -z "${verbose:-}" ]; then
		show "$stream said" "${transcript[@]}"
	fi
}

# wanted NAME: does TESTS= ask for it, and EXCEPT= not leave it out?
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

# took_since SECONDS NAME: a part that began when the shell's clock stood there.
took_since()
{
	durations+=("$((SECONDS - $1)) $2")
	[ -z "$in_lane" ] || echo "@took ${durations[-1]}"
}

# The ten longest: who wants a shorter run begins with these.
report_slowest()
{
	[ ${#durations[@]} -gt 1 ] || return 0
	echo "# slowest, in seconds: $(printf '%s\n' "${durations[@]}" | sort -nr |
		sed -n '1,10s/^\([0-9]*\) \(.*\)/\2 \1/p' | paste -sd, | sed 's/,/, /g')"
}

# host_test NAME COMMAND...: one that prints TAP here.
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

# The plan, and the last lines of the run.
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
