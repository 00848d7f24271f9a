#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make install, uninstall, dkms-install and dkms-remove, in any order and after the
# sources have changed, below a DESTDIR: the system's dkms and modules are not
# touched. The kernel is a stand-in, whose modules are made in no time; dkms.sh
# builds real ones.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/common.sh"
. "$(dirname "$0")/../../tools/vm/cases.sh"

work=$build/install
tree=$work/tree
case_options=-ex
# dkms wants to be root.
as_root=()
[ "$(id -u)" = 0 ] || as_root=(unshare --map-root-user)

# stub_kernel FOLDER RELEASE: headers of a kernel. Its modules hold what dkms
# compares: version, and a sum of the sources.
stub_kernel()
{
	mkdir -p "$1/include/config" "$1/include/generated"
	# As Debian 12 has it.
	echo "${2%-*}.123" >"$1/include/config/kernel.release"
	echo "#define UTS_RELEASE \"$2\"" >"$1/include/generated/utsrelease.h"
	echo CONFIG_64BIT=y >"$1/.config"
	cat >"$1/Makefile" <<-'EOT'
	.RECIPEPREFIX := >
	release := $(shell cut -d '"' -f 2 include/generated/utsrelease.h)
	version := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' $(M)/dkms.conf)
	sum := $(shell cat $(M)/twheel_*.c $(M)/engine/* | md5sum | cut -c 1-24)
	modules:
	> printf '.section .modinfo,"a"\n.asciz "%s"\n.asciz "%s"\n.asciz "%s"\n' \
		version=$(version) srcversion=$(sum) 'vermagic=$(release) SMP' | \
		$(CC) -c -x assembler -o $(M)/twheel.ko -
	modules_install:
	> install -D -m 644 $(M)/twheel.ko \
		$(INSTALL_MOD_PATH)/lib/modules/$(release)/updates/twheel.ko
	EOT
}

# twheel TARGET [KERNEL]: make, in the copy of the tree, as somebody would who makes
# an image. Without the file dkms would make itself a key in /var/lib/dkms.
twheel()
{
	sign_file=/nonexistent "${as_root[@]}" make -C "$tree" DESTDIR="$work/root" \
		KDIR="$work/${2:-new}" "$1"
}

# modules: all that are installed, by the path below updates/.
modules()
{
	(cd "$work/root/lib/modules/6.99.0-new" && find . -name 'twheel.ko*' -printf '%P\n')
}

# installed PATH...: these modules, and what belongs to them.
installed()
{
	[ "$(modules | sed 's/\.[xg]z$//; s/\.zst$//' | tr '\n' ' ')" = "$(printf '%s ' "$@")" ]
	cmp "$tree/uapi/linux/twheel.h" "$work/root/usr/include/linux/twheel.h"
	cmp "$tree/tools/60-twheel.rules" "$work/root/usr/lib/udev/rules.d/60-twheel.rules"
}

nothing_is_left()
{
	! find "$work/root" -name '*twheel*' | grep -vE '/(dkms|src)$'
}

# The module that dkms has installed is of the sources as they are.
up_to_date()
{
	local module sum

	module=$work/root/lib/modules/6.99.0-new/$(modules)
	sum=$(cat "$tree"/twheel_*.c "$tree"/engine/* | md5sum | cut -c 1-24)
	[ "$(modinfo -F srcversion "$module")" = "$sum" ]
}

fresh_tree()
{
	rm -rf "$work"
	mkdir -p "$tree" "$work/root/lib/modules"/{6.99.0-new,5.10.0-old}
	(cd "$top" && cp -pr Kbuild Makefile dkms.conf twheel_*.c engine include uapi COPYING \
		LICENSES tools "$tree/")
	stub_kernel "$work/new" 6.99.0-new
	stub_kernel "$work/old" 5.10.0-old
	stub_kernel "$work/narrow" 6.99.0-new
	sed -i d "$work/narrow/.config"
}

install_brings_module_header_and_rule()
{
	twheel install
	installed updates/twheel.ko
	twheel uninstall
	nothing_is_left
}

dkms_install_brings_module_header_and_rule()
{
	twheel dkms-install
	installed updates/dkms/twheel.ko
	twheel dkms-remove
	nothing_is_left
}

dkms_install_after_a_change_installs_what_changed()
{
	twheel dkms-install
	up_to_date
	echo '/* a change */' >>"$tree/twheel_main.c"
	twheel dkms-install
	up_to_date
}

dkms_install_of_a_new_version_replaces_the_old_one()
{
	twheel dkms-install
	sed -i 's/^PACKAGE_VERSION=.*/PACKAGE_VERSION="99.0"/' "$tree/dkms.conf"
	twheel dkms-install
	up_to_date
	[ "$(ls "$work/root/usr/src")" = twheel-99.0 ]
}

each_way_takes_the_place_of_the_other()
{
	for _ in 1 2; do
		twheel install
		installed updates/twheel.ko
		twheel dkms-install
		installed updates/dkms/twheel.ko
	done
}

uninstall_leaves_what_dkms_installed()
{
	twheel dkms-install
	twheel uninstall
	installed updates/dkms/twheel.ko
}

removing_leaves_the_header_that_libtwheel_needs()
{
	local way

	for way in install/uninstall dkms-install/dkms-remove; do
		twheel "${way%/*}"
		touch "$work/root/usr/include/twheel.h"
		twheel "${way#*/}"
		[ "$(ls "$work/root/usr/include/linux")" = twheel.h ]
		rm "$work/root/usr/include/twheel.h"
		twheel "${way#*/}"
		nothing_is_left
	done
}

removing_twice_is_no_error()
{
	twheel uninstall
	twheel dkms-remove
	nothing_is_left
}

# in_dkms ACTION ARGUMENT...: dkms with its trees below the same folder.
in_dkms()
{
	mkdir -p "$work/root/var/lib/dkms"
	sign_file=/nonexistent "${as_root[@]}" dkms "$@" --sourcetree "$work/root/usr/src" \
		--dkmstree "$work/root/var/lib/dkms" --installtree "$work/root/lib/modules" --no-depmod
}

# 77 is dkms' word for a kernel that is left out.
dkms_leaves_out()
{
	local status=0

	twheel dkms-source
	in_dkms add -m twheel -v "$version"
	in_dkms build -m twheel -v "$version" -k "$1" --kernelsourcedir "$work/$2" || status=$?
	[ $status = 77 ]
}

# What dpkg starts when a kernel is installed: it fails with this.
a_new_kernel_gets_a_module_and_an_old_one_none()
{
	local release

	twheel dkms-source
	in_dkms add -m twheel -v "$version"
	for release in 6.99.0-new 5.10.0-old; do
		in_dkms autoinstall -k "$release" --kernelsourcedir "$work/${release#*-}"
	done
	[ "$(modules | cut -d . -f 1,2)" = updates/dkms/twheel.ko ]
	[ -z "$(find "$work/root/lib/modules/5.10.0-old/" -name 'twheel.ko*')" ]
}

version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' "$top/dkms.conf")
PATH=$PATH:/usr/sbin:/sbin
cases=(
	install_brings_module_header_and_rule
	dkms_install_brings_module_header_and_rule
	dkms_install_after_a_change_installs_what_changed
	dkms_install_of_a_new_version_replaces_the_old_one
	each_way_takes_the_place_of_the_other
	uninstall_leaves_what_dkms_installed
	removing_leaves_the_header_that_libtwheel_needs
	removing_twice_is_no_error
	a_new_kernel_gets_a_module_and_an_old_one_none
)

echo "TAP version 13"
echo "1..$((${#cases[@]} + 2))"
for case in "${cases[@]}"; do
	holds "$case" "$case"
done
holds dkms_leaves_out_a_kernel_before_6.1 dkms_leaves_out 5.10.0-old old
holds dkms_leaves_out_a_32_bit_kernel dkms_leaves_out 6.99.0-new narrow
