# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
# Sourced by test.sh: how far a run has come, and how long the rest may take.
#
# .cache/seconds  how long each program took when it ran last: SERIES/NAME SECONDS

declare -A took=() began=()
progress_names=()
progress_lanes=1

# progress_begin LANES NAME...: that many at a time.
progress_begin()
{
	local name seconds

	progress_lanes=$1
	shift
	progress_names=("$@")
	[ ! -e "$cache/seconds" ] || while read -r name seconds; do
		took[$name]=$seconds
	done <"$cache/seconds"
}

# A program that never ran takes as long as the others on average, or ten seconds.
minutes_left()
{
	local name known=0 count=0 left=0

	for name in "${!took[@]}"; do
		known=$((known + ${took[$name]}))
		count=$((count + 1))
	done
	[ $count != 0 ] && known=$((known / count)) || known=10
	for name in "${progress_names[@]}"; do
		[ -n "${began[$name]:-}" ] || left=$((left + ${took[$name]:-$known}))
	done
	echo $(((left / progress_lanes + 59) / 60))
}

# progress_program NAME: it begins. One that a second machine goes on with is told once.
progress_program()
{
	local name=$1

	[ -z "${began[$name]:-}" ] || return 0
	began[$name]=$SECONDS
	echo "# program ${#began[@]} of ${#progress_names[@]}: $name, about $(minutes_left) min left after it"
}

progress_ended()
{
	[ -z "${began[$1]:-}" ] || took[$1]=$((SECONDS - ${began[$1]}))
}

progress_end()
{
	local name

	for name in "${!took[@]}"; do
		echo "$name ${took[$name]}"
	done | sort >"$cache/seconds"
}
