#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test folders with any name, relative paths, and links: all files are staged below DESTDIR, and
# nothing else is touched.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/install_paths
. "$(dirname "$0")/../../tools/vm/lib/stand_in.sh"
case_options=-ex

# Build the library once, since only its paths are tested.
fresh_tree()
{
	fresh_stage
	make -C "$tree/lib" OUTPUT="$work.lib" >/dev/null
	cp -p "$work.lib"/* "$tree/lib/"
}
new=6.99.0-new

# somebodys FOLDER: make the files to which a path would lead if it were cut at a blank, or
# expanded as a pattern.
somebodys()
{
	local name

	for name in my stage x a ab b; do
		mkdir -p "$1/$name/usr/src/twheel-$version" "$1/$name/lib"
		echo precious >"$1/$name/thesis"
		cp "$1/$name/thesis" "$1/$name/usr/src/twheel-$version/dkms.conf"
	done
}

# everything_goes_below NAME: install everything below a folder of this name.
everything_goes_below()
{
	local stage=$work/d/$1 said

	somebodys "$work/d"
	cp "$tree/dkms.conf" "$work/d/my/usr/src/twheel-$version/"
	before=$(all_files "$work/d")
	root=$stage
	twheel dkms-source
	cmp "$tree/twheel_main.c" "$stage/usr/src/twheel-$version/twheel_main.c"
	twheel install
	[ "$(modules)" = updates/twheel.ko ]
	twheel install-lib
	[ -e "$stage/usr/local/lib/libtwheel.so" ]
	# dkms quotes no paths, so it must work, or be refused with a message.
	if ! said=$(twheel dkms-install 2>&1); then
		grep 'error: dkms cannot work below a folder whose path has a blank' <<<"$said"
	fi
	twheel uninstall-lib
	twheel dkms-remove
	twheel uninstall
	nothing_is_left
	rm -r "$stage"
	[ "$(all_files "$work/d")" = "$before" ]
}

# in_tree TARGET VARIABLE...: start make in the tree.
in_tree()
{
	(cd "$tree" && "${as_root[@]}" make "$@")
}

a_relative_destdir_is_seen_from_where_make_is_started()
{
	local target

	for target in install install-lib dkms-source dkms-install; do
		in_tree $target DESTDIR=stage KDIR="$work/new"
	done
	mv "$tree/stage" "$work/d"
	[ -e "$work/d/usr/local/include/twheel.h" ]
	[ -e "$work/d/usr/src/twheel-$version/dkms.conf" ]
	[ -e "$work/d/usr/local/include/linux/twheel.h" ]
	[ "$(find "$work/new" "$tree" -name 'twheel.ko*')" = "$tree/twheel.ko" ]
}

a_relative_kdir_is_seen_from_where_make_is_started()
{
	local target

	mv "$work/new" "$tree/k"
	for target in modules install dkms-install; do
		in_tree $target KDIR=k DESTDIR="$root"
	done
	[ "$(modules)" = updates/dkms/twheel.ko ]
}

install_mod_path_stages_everything()
{
	in_tree install KDIR="$work/new" INSTALL_MOD_PATH="$root" DESTDIR=
	[ "$(modules)" = updates/twheel.ko ]
	cmp "$tree/uapi/linux/twheel.h" "$root/usr/local/include/linux/twheel.h"
	before=$(all_files "$root")
	fails in_tree install KDIR="$work/new" INSTALL_MOD_PATH="$root" DESTDIR="$work/elsewhere"
	grep 'error: DESTDIR and INSTALL_MOD_PATH name two folders' "$work/said"
	[ "$(all_files "$root")" = "$before" ]
	[ ! -e "$work/elsewhere" ]
	in_tree uninstall KDIR="$work/new" INSTALL_MOD_PATH="$root" DESTDIR=
	nothing_is_left
}

a_destdir_of_two_lines_is_refused()
{
	local target stage=$work/d/my$'\n'stage

	somebodys "$work/d"
	mkdir "$stage"
	before=$(all_files "$work/d")
	for target in install uninstall dkms-source dkms-install dkms-remove; do
		fails twheel $target new DESTDIR="$stage"
		grep 'error: DESTDIR has two lines' "$work/said"
		[ "$(all_files "$work/d")" = "$before" ]
	done
}

# In the tree of another machine, /usr/local/include may be a link to /somewhere.
each_target_refuses_a_link_that_leads_out_of_destdir()
{
	local link target

	for link in usr/local/include usr/src "lib/modules/$new" var/lib/dkms usr/lib/udev; do
		rm -rf "$root" "$work/outside"
		mkdir -p "$work/outside" "$root/${link%/*}" "$root/lib/modules"
		ln -s "$work/outside" "$root/$link"
		for target in install uninstall dkms-install dkms-remove dkms-source; do
			[ "$target" != dkms-source ] || [ "$link" = usr/src ] || continue
			fails twheel $target
			grep "error: $root/.* leads out of DESTDIR, to $work/outside" "$work/said"
		done
		[ -z "$(ls -A "$work/outside")" ]
	done
}

links_within_destdir_are_followed()
{
	mkdir -p "$root/usr"
	mv "$root/lib" "$root/usr/lib"
	ln -s usr/lib "$root/lib"
	twheel install
	[ "$(modules)" = updates/twheel.ko ]
	twheel uninstall
	nothing_is_left
}

# A file to be replaced may be a link to another project's file.
a_link_in_the_place_of_a_file_is_replaced()
{
	mkdir -p "$root/usr/local/include/linux"
	echo precious >"$work/thesis"
	ln -s "$work/thesis" "$root/usr/local/include/linux/twheel.h"
	twheel install
	[ "$(<"$work/thesis")" = precious ]
	cmp "$tree/uapi/linux/twheel.h" "$root/usr/local/include/linux/twheel.h"
}

# `install -d' would change the mode; mkdir -p does not.
the_mode_of_a_folder_that_is_there_stays()
{
	mkdir -p "$root/usr/local/lib" "$root/usr/local/include"
	chmod 2775 "$root/usr/local/lib" "$root/usr/local/include"
	twheel install-lib
	twheel install
	[ "$(stat -c %a "$root/usr/local/lib" "$root/usr/local/include" | sort -u)" = 2775 ]
}

a_prefix_has_to_be_absolute()
{
	fails twheel install-lib new PREFIX=opt
	grep 'begin with a slash; "opt" does not' "$work/said"
	fails twheel install-lib new libdir=lib64
	[ ! -e "$root/usr" ]
}

a_prefix_with_a_blank_is_one_folder()
{
	local prefix='/opt/t & w\heel'

	twheel install-lib new PREFIX="$prefix"
	[ -e "$root$prefix/lib/libtwheel.a" ]
	grep -xF 'prefix=/opt/t\ &\ w\\heel' "$root$prefix/lib/pkgconfig/libtwheel.pc"
	twheel uninstall-lib new PREFIX="$prefix"
	nothing_is_left
}

cases=(
	a_relative_destdir_is_seen_from_where_make_is_started
	a_relative_kdir_is_seen_from_where_make_is_started
	install_mod_path_stages_everything
	a_destdir_of_two_lines_is_refused
	each_target_refuses_a_link_that_leads_out_of_destdir
	links_within_destdir_are_followed
	a_link_in_the_place_of_a_file_is_replaced
	the_mode_of_a_folder_that_is_there_stays
	a_prefix_has_to_be_absolute
	a_prefix_with_a_blank_is_one_folder
)
names=('my stage' ' my' '-x y' 'a*' '[ab]' "it's a" 'a"b' '(a) & b;')

echo "TAP version 13"
echo "1..$((${#cases[@]} + ${#names[@]}))"
for name in "${names[@]}"; do
	holds "each_target_installs_below_a_folder_called ${name@Q}" everything_goes_below "$name"
done
for case in "${cases[@]}"; do
	holds "$case" "$case"
done
