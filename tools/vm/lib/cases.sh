# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by tests in selftests/host, after common.sh: functions that print numbered results.

number=0
# Options of the shell that runs a case; -ex shows the step that failed.
case_options=-e

# verdict ok|'not ok' SENTENCE
verdict()
{
	number=$((number + 1))
	echo "$1 $number $2"
}

# check SENTENCE COMMAND...: print a result, "ok" if the command succeeds.
check()
{
	local what=$1 verdict=ok
	shift

	"$@" || verdict='not ok'
	verdict "$verdict" "$what"
}

# holds SENTENCE COMMAND...: call `fresh_tree', and run the command in a shell of its own that
# ends at the first failure. If it fails, its output is shown. The test sets $work.
holds()
{
	local what=$1 verdict=ok log=${work:?}.log status
	shift

	fresh_tree
	# Do not use a condition here: in one, the shell would not end at a failure.
	set +e
	(set "$case_options"; "$@") >"$log" 2>&1
	status=$?
	set -e
	[ $status = 0 ] || { verdict='not ok'; cat "$log"; }
	verdict "$verdict" "$what"
}
