# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by tests in selftests/host, after common.sh: one result each, numbered.

number=0
# Of the shell that a case runs in; -ex says in which step it failed.
case_options=-e

# verdict ok|'not ok' SENTENCE
verdict()
{
	number=$((number + 1))
	echo "$1 $number $2"
}

# check SENTENCE COMMAND...: true if it succeeds.
check()
{
	local what=$1 verdict=ok
	shift

	"$@" || verdict='not ok'
	verdict "$verdict" "$what"
}

# holds SENTENCE COMMAND...: the same in a shell of its own that ends at the first
# failure, after `fresh_tree'; what it said is shown if it failed. The test says
# where it works.
holds()
{
	local what=$1 verdict=ok log=${work:?}.log status
	shift

	fresh_tree
	# Not in a condition, where the shell would go on after what fails.
	set +e
	(set "$case_options"; "$@") >"$log" 2>&1
	status=$?
	set -e
	[ $status = 0 ] || { verdict='not ok'; cat "$log"; }
	verdict "$verdict" "$what"
}
