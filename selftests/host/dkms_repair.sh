#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# A run that was killed, or a user who removed some files, may have left half a module in dkms.
# make dkms-install must repair it, and make dkms-remove must remove it. All this happens below a
# DESTDIR, with a stand-in for the kernels.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/dkms_repair
. "$(dirname "$0")/../../tools/vm/lib/stand_in.sh"
case_options=-ex
fresh_tree() { fresh_stage; }
new=6.99.0-new
other=6.98.0-other

# Each function makes half a module.
sources_removed_by_hand() { rm -r "$root/usr/src/twheel-$version"; }
link_to_the_sources_removed() { rm "$dkms/$version/source"; }
build_killed()
{
	rm -r "$dkms/$version/$new"/*/module
	mkdir -p "$dkms/$version/build" "$dkms/$version/$other/x86_64/log"
	cp "$dkms/$version/source/Makefile" "$dkms/$version/build/"
}
what_was_built_removed() { rm -r "${dkms:?}/$version/$new"; }
version_removed() { rm -r "${dkms:?}/$version"; }
original_module_left()
{
	mkdir -p "$dkms/original_module/$new/x86_64"
	cp "$root/lib/modules/$new/updates/dkms/twheel.ko" "$dkms/original_module/$new/x86_64/"
	echo "$root/lib/modules/$new/updates/twheel.ko" \
		>"$dkms/original_module/$new/x86_64/twheel.ko.origin"
	rm "$dkms/kernel-$new"-*
}
all_of_dkms_removed() { rm -r "$dkms"; }

# is_repaired HALF: dkms-install repairs this half, and dkms-remove removes it.
is_repaired()
{
	twheel dkms-install
	"$1"
	change
	twheel dkms-install
	of_sources "$(sum_of_sources)"
	[ ! -d "$dkms/$version/$other" ] || of_sources "$(sum_of_sources)" $other
	[ ! -e "$dkms/original_module" ]
	LC_ALL=C in_dkms status >"$work/said"
	lacks 'broken|WARNING|original' "$work/said"
	grep -E "$new, [^:]*: installed$" "$work/said"
	"$1"
	twheel dkms-remove
	nothing_is_left
}

dkms_remove_works_without_dkms()
{
	twheel dkms-install
	at_step dkms 1 fail
	twheel dkms-remove
	no_step
	nothing_is_left
}

# dkms-source leaves such copies, and so does a run that was killed before dkms knew of them.
dkms_remove_removes_copies_that_dkms_does_not_know()
{
	twheel dkms-source
	new_version 99.0
	twheel dkms-source
	[ "$(find "$root/usr/src" -mindepth 1 -maxdepth 1 | wc -l)" = 2 ]
	twheel dkms-remove
	nothing_is_left
}

# somebodys_folder FILE [FOLDER]: make a folder of another project at the place of the sources. It
# must stay as it is.
somebodys_folder()
{
	local way

	mkdir -p "$root/usr/src/twheel-$version"
	cp "$tree/$1" "$root/usr/src/twheel-$version/"
	[ $# = 1 ] || mkdir "$root/usr/src/twheel-$version/$2"
	before=$(all_files "$root")
	for way in dkms-source dkms-install; do
		fails twheel $way
		grep "error: $root/usr/src/twheel-$version is no copy of twheel for dkms" "$work/said"
		[ "$(all_files "$root")" = "$before" ]
	done
	twheel dkms-remove
	[ "$(all_files "$root")" = "$before" ]
}

dkms_source_replaces_a_link_to_sources_and_not_their_folder()
{
	mkdir -p "$root/usr/src"
	before=$(all_files "$tree")
	ln -s "$tree" "$root/usr/src/twheel-$version"
	twheel dkms-source
	[ ! -L "$root/usr/src/twheel-$version" ]
	rm -r "$root/usr/src/twheel-$version"
	ln -s "$tree" "$root/usr/src/twheel-$version"
	twheel dkms-remove
	[ "$(all_files "$tree")" = "$before" ]
}

halves=(sources_removed_by_hand link_to_the_sources_removed build_killed what_was_built_removed
	version_removed original_module_left all_of_dkms_removed)

echo "TAP version 13"
echo "1..$((5 + ${#halves[@]}))"
for half in "${halves[@]}"; do
	holds "dkms_install_repairs_a_module_and_dkms_remove_removes_it: $half" is_repaired "$half"
done
holds dkms_remove_works_without_dkms dkms_remove_works_without_dkms
holds dkms_remove_removes_copies_that_dkms_does_not_know \
	dkms_remove_removes_copies_that_dkms_does_not_know
holds somebodys_folder_at_the_place_of_the_sources_is_left_alone somebodys_folder COPYING
holds a_checkout_at_the_place_of_the_sources_is_left_alone somebodys_folder dkms.conf tools
holds dkms_source_replaces_a_link_to_sources_and_not_their_folder dkms_source_replaces_a_link_to_sources_and_not_their_folder
