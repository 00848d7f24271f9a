# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
# Sourced by test.sh: report the progress of a run, and estimate the remaining time.
#
# .cache/seconds  how long each program took last time: SERIES/NAME SECONDS. For programs
#                 that run on the host, SERIES is `host'

# If a program has never run, use these seconds, for the debug kernel, any other kernel, or the
# host. All others count ten seconds.
declare -A usually=(
	[debug/twheel_hostile]=105
	[debug/twheel_fault_load_module]=90
	[debug/twheel_fault_again]=80
	[debug/twheel_fault_sites]=60
	[debug/twheel_kunit_module.sh]=60
	[debug/twheel_fuzz]=50
	[debug/twheel_fairness_module]=50
	[debug/twheel_burst]=45
	[debug/twheel_million]=45
	[debug/twheel_drain]=45
	[debug/twheel_fault_leaks]=40
	[debug/twheel_suspend]=40
	[debug/twheel_race]=40
	[debug/twheel_faults]=40
	[debug/twheel_tai]=35
	[debug/twheel_random]=35
	[debug/twheel_refresh]=35
	[debug/twheel_idle_stale]=30
	[debug/twheel_arm]=30
	[debug/twheel_clocks]=30
	[debug/twheel_peer_timeout]=30
	[debug/twheel_clock_steps]=30
	[debug/twheel_refresh_pages]=30
	[debug/twheel_memory]=30
	[debug/twheel_load_module]=30
	[debug/twheel_cost]=30
	[debug/twheel_enospc_module]=25
	[debug/twheel_limits]=20
	[debug/twheel_idle]=20
	[debug/twheel_poll]=20
	[debug/twheel_advance]=20
	[twheel_ctl_wheels_module]=65
	[twheel_limit_module]=75
	[twheel_load_module]=75
	[twheel_examples_module.sh]=45
	[twheel_hostile]=45
	[twheel_race]=40
	[twheel_suspend]=40
	[twheel_million]=38
	[twheel_idle_stale]=38
	[twheel_tai]=34
	[twheel_burst]=30
	[twheel_clock_steps]=27
	[twheel_idle]=27
	[twheel_memory]=26
	[twheel_ctl_module]=23
	[twheel_between]=20
	[twheel_parameters_module]=20
	[twheel_lib_table_shared]=20
	[twheel_kunit_module.sh]=16
	[twheel_refresh_pages]=16
	[twheel_keyed]=15
	[twheel_refresh]=15
	[host/udev]=200
	[host/systemd]=130
	[host/trace_tools]=130
	[host/install_paths]=120
	[host/install_machines]=110
	[host/clean]=90
	[host/dkms_update]=90
	[host/low_resolution]=70
	[host/module_packages]=120
	[host/lib]=70
	[host/examples]=65
	[host/install]=60
	[host/first_run]=55
	[host/dkms_repair]=50
	[host/install_system]=50
	[host/install_undo]=50
	[host/lib_builds]=43
	[host/wheel]=37
	[host/install_lists]=20
)
declare -A took=() began=()
progress_names=()
progress_lanes=1

progress_load()
{
	local name seconds

	[ ! -e "$cache/seconds" ] || while read -r name seconds; do
		took[$name]=$seconds
	done <"$cache/seconds"
}

# progress_begin LANES NAME...: the programs of this run, so many at a time.
progress_begin()
{
	progress_lanes=$1
	shift
	progress_names=("$@")
}

# estimate SERIES/NAME: set `seconds' to the expected time. If there is no other figure, use that
# of another kernel.
estimate()
{
	local series name=${1#*/}

	seconds=${took[$1]:-${usually[${1#*-}]:-}}
	for series in "${kernels[@]}"; do
		seconds=${seconds:-${took[$series/$name]:-}}
	done
	seconds=${seconds:-${usually[$name]:-10}}
}

minutes_left()
{
	local name seconds left=0

	for name in "${progress_names[@]}"; do
		[ -z "${began[$name]:-}" ] || continue
		estimate "$name"
		left=$((left + seconds))
	done
	echo $(((left / progress_lanes + 59) / 60))
}

# progress_program NAME: a program begins. If a second machine continues it, print no second line.
progress_program()
{
	local name=$1

	[ -z "${began[$name]:-}" ] || return 0
	began[$name]=$SECONDS
	echo "# program ${#began[@]} of ${#progress_names[@]}: $name, about $(minutes_left) min left after it"
}

# progress_host SECONDS NAME: a test on the host has taken so long.
progress_host()
{
	took[host/$2]=$1
}

progress_ended()
{
	[ -n "${began[$1]:-}" ] || return 0
	took[$1]=$((SECONDS - ${began[$1]}))
	took_since "${began[$1]}" "$1"
}

progress_end()
{
	local name

	for name in "${!took[@]}"; do
		echo "$name ${took[$name]}"
	done | sort >"$cache/seconds"
}
