#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# install_lists.txt lists what each target installs for a package: these files and no others, with
# their modes, and no file has two owners. Only `install-module' needs a kernel. The files of the
# other targets have no trace of this machine.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/install_lists
. "$(dirname "$0")/../../tools/vm/lib/stand_in.sh"
lists=$top/selftests/host/install_lists.txt
case_options=-ex
folders=(PREFIX=/usr libdir=/usr/lib/triplet)
fresh_tree() { rm -rf "${work:?}/stage"; }

# listed TARGET: print the target's part of the list.
listed()
{
	sed -n "/^$1:/,/^\$/p" "$lists" | sed "1d; /^\$/d; s/@VERSION@/${version%%[~+]*}/" | sort
}

# staged TARGET VARIABLE...: install the target with a strict umask, which must make no
# difference, and print "MODE PATH" for each file.
staged()
{
	(umask 077; make -C "$tree" "$1" DESTDIR="$work/stage" "${folders[@]}" "${@:2}" >&2)
	(cd "$work/stage" 2>/dev/null && find . -type l -printf 'link %P -> %l\n' -o \
		! -type d -printf '%m %P\n' | sort)
}

installs_what_is_listed()
{
	diff <(listed "$1") <(staged "$@")
	[ -z "$(find "$work/stage" -type d ! -perm 755 ! -path "$work/stage")" ]
}

uninstall_leaves_no_file()
{
	local target

	for target in "${both[@]}"; do
		make -C "$tree" "install-$target" DESTDIR="$work/stage" "${folders[@]}" >&2
		[ -n "$(find "$work/stage" ! -type d)" ]
		make -C "$tree" "uninstall-$target" DESTDIR="$work/stage" "${folders[@]}" >&2
		[ -z "$(find "$work/stage" ! -type d -o -name twheel -o -name bash-completion -o -name man8)" ]
	done
}

without_its_libraries_twheelctl_names_them()
{
	local said

	! said=$(make -C "$tree/tools/twheelctl" OUTPUT="$work/stage" CPPFLAGS=-nostdinc 2>&1) || return
	grep 'apt install libjansson-dev)' <<<"$said"
}

without_a_compiler_both_name_the_package()
{
	local dir said

	for dir in lib tools/twheelctl; do
		! said=$(make -C "$tree/$dir" OUTPUT="$work/stage" CC=no-compiler 2>&1) || return
		grep 'apt install build-essential)' <<<"$said"
		lacks libjansson - <<<"$said"
	done
}

no_file_has_two_owners()
{
	local twice

	twice=$(sed -n 's/^\([0-9]*\|link\) //; / ->/s/ ->.*//; /\//p' "$lists" | sort | uniq -d)
	[ -z "$twice" ]
}

fresh_stage
targets=(headers lib man udev tools)
# The udev rule has no such target: `make uninstall' removes it with the module.
both=(headers lib man tools)

echo "TAP version 13"
echo "1..$((${#targets[@]} + 6))"
for target in "${targets[@]}"; do
	holds "install-$target installs what is listed, without a kernel" \
		installs_what_is_listed "install-$target" KDIR=/nonexistent
done
holds "install-module installs what is listed" installs_what_is_listed install-module KDIR="$work/new"
holds "install-module takes INSTALL_MOD_PATH" installs_what_is_listed install-module \
	KDIR="$work/new" DESTDIR= INSTALL_MOD_PATH="$work/stage"
holds "uninstall-${both[0]} and its like remove all that was installed" uninstall_leaves_no_file
holds "without the headers of its libraries, twheelctl names them" \
	without_its_libraries_twheelctl_names_them
holds "without a compiler, the library and twheelctl name its package" \
	without_a_compiler_both_name_the_package
holds "no file has two owners" no_file_has_two_owners
