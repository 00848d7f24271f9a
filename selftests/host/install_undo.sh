#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test make install over an older module. If a step fails, everything must be as before. If a run
# is killed, each file must be the old one or the new one, and the next run must repair the rest.
# All this happens below a DESTDIR, with a stand-in for the kernel.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/install_undo
. "$(dirname "$0")/../../tools/vm/lib/stand_in.sh"
case_options=-ex

# Install an older module with its headers, then change all files of the tree.
fresh_tree()
{
	local file

	fresh_stage
	twheel install >/dev/null
	old_sum=$(sum_of_sources)
	change
	# dkms may have a copy of the sources without having built a module.
	twheel dkms-source >/dev/null
	for file in uapi/linux/twheel.h tools/60-twheel.rules tools/twheel.{sysusers,modules-load}; do
		echo >>"$tree/$file"
	done
	before=$(all_files "$root")
}

everything_is_as_before()
{
	[ "$(all_files "$root")" = "$before" ]
}

all_is_new()
{
	of_sources "$(sum_of_sources)"
	cmp "$tree/uapi/linux/twheel.h" "$root/usr/local/include/linux/twheel.h"
	cmp "$tree/tools/60-twheel.rules" "$root/usr/lib/udev/rules.d/60-twheel.rules"
	cmp "$tree/tools/twheel.sysusers" "$root/usr/lib/sysusers.d/twheel.conf"
	cmp "$tree/tools/twheel.modules-load" "$root/usr/lib/modules-load.d/twheel.conf"
	! find "$root" -name '.*' | grep .
}

# kernel_fails FILE: FILE makes a step of the kernel's stand-in fail.
kernel_fails()
{
	touch "$work/new/$1"
	fails twheel install
	everything_is_as_before
}

# any_step NAME DO AT_LEAST THEN: DO at the first start of NAME, then at the second, and so on,
# with THEN after each. NAME must start more often than AT_LEAST.
any_step()
{
	local step

	for ((step = 1; step < 99; step++)); do
		at_step "$1" $step "$2"
		! twheel install >"$work/said" 2>&1 || break
		cat "$work/said"
		no_step
		"$4"
	done
	rm -r "${work:?}/bin"
	hash -r
	[ $step -gt "$3" ]
	all_is_new
}

repaired_by_the_next_run()
{
	[[ $(sum_of "$root/lib/modules/6.99.0-new/$(modules)") = @("$old_sum"|"$(sum_of_sources)") ]]
	twheel install
	all_is_new
	fresh_tree
}

# Another failed run may have left such a folder.
a_place_that_is_taken()
{
	mkdir "$root/usr/lib/udev/rules.d/.60-twheel.rules.new"
	before=$(all_files "$root")
	fails twheel install
	everything_is_as_before
}

a_folder_in_the_place_of_a_file_is_not_touched()
{
	rm "$root/usr/local/include/linux/twheel.h"
	mkdir "$root/usr/local/include/linux/twheel.h"
	before=$(all_files "$root")
	fails twheel install
	grep "error: $root/usr/local/include/linux/twheel.h is a folder" "$work/said"
	everything_is_as_before
}

# The second run starts while this one holds the lock. It must change nothing before the lock is
# released.
a_second_install_waits_until_the_first_has_ended()
{
	local second

	exec {held}<"$root"
	flock "$held"
	(exec {held}<&- && twheel install) >"$work/said" 2>&1 &
	second=$!
	until grep 'waiting until it has ended' "$work/said"; do
		kill -0 $second
		sleep 0.1
	done
	everything_is_as_before
	exec {held}<&-
	wait $second
	all_is_new
}

echo "TAP version 13"
echo "1..9"
holds a_build_that_fails_leaves_the_old_module kernel_fails broken
holds a_modules_install_that_fails_leaves_the_old_module kernel_fails broken_install
holds a_file_that_cannot_be_written_leaves_the_old_files any_step install fail 6 everything_is_as_before
holds a_file_that_cannot_be_renamed_leaves_the_old_files any_step mv fail 5 everything_is_as_before
holds a_run_that_is_killed_when_it_writes_is_repaired_by_the_next \
	any_step install kill 6 repaired_by_the_next_run
holds a_run_that_is_killed_when_it_renames_is_repaired_by_the_next \
	any_step mv kill 5 repaired_by_the_next_run
holds a_folder_at_the_temporary_name_leaves_the_old_files a_place_that_is_taken
holds a_folder_in_the_place_of_a_file_is_not_touched a_folder_in_the_place_of_a_file_is_not_touched
holds a_second_install_waits_until_the_first_has_ended a_second_install_waits_until_the_first_has_ended
