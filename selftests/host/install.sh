#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test make install, uninstall, dkms-install and dkms-remove, in any order and after the sources
# have changed, below a DESTDIR: the system's dkms and modules are not touched. The kernel is a
# stand-in whose modules build at once; dkms.sh builds real ones.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/install
. "$(dirname "$0")/../../tools/vm/lib/stand_in.sh"
case_options=-ex
fresh_tree() { fresh_stage; }

# installed PATH...: exactly these modules are installed, with all files that belong to them.
installed()
{
	[ "$(modules | sed 's/\.[xg]z$//; s/\.zst$//' | tr '\n' ' ')" = "$(printf '%s ' "$@")" ]
	cmp "$tree/uapi/linux/twheel.h" "$work/root/usr/local/include/linux/twheel.h"
	cmp "$tree/tools/60-twheel.rules" "$work/root/usr/lib/udev/rules.d/60-twheel.rules"
	cmp "$tree/tools/twheel.sysusers" "$work/root/usr/lib/sysusers.d/twheel.conf"
	cmp "$tree/tools/twheel.modules-load" "$work/root/usr/lib/modules-load.d/twheel.conf"
}

# The installed module was built from the present sources.
up_to_date()
{
	of_sources "$(sum_of_sources)"
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

dkms_install_after_a_change_installs_the_changed_sources()
{
	twheel dkms-install
	up_to_date
	change
	twheel dkms-install
	up_to_date
}

dkms_install_of_a_new_version_replaces_the_old_one()
{
	twheel dkms-install
	new_version 99.0
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

install_module_takes_the_place_of_dkms()
{
	twheel dkms-install
	twheel install-module
	installed updates/twheel.ko
	[ -z "$(ls -A "$work/root/usr/src")" ]
}

uninstall_leaves_the_module_that_dkms_has_installed()
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
		touch "$work/root/usr/local/include/twheel.h"
		twheel "${way#*/}"
		[ "$(ls "$work/root/usr/local/include/linux")" = twheel.h ]
		rm "$work/root/usr/local/include/twheel.h"
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

# dkms exits with 77 if it leaves a kernel out.
dkms_leaves_out()
{
	local status=0

	twheel dkms-source
	in_dkms add -m twheel -v "$version"
	in_dkms build -m twheel -v "$version" -k "$1" --kernelsourcedir "$work/$2" || status=$?
	[ $status = 77 ]
}

# dpkg starts this when a kernel is installed. If it fails, dpkg fails too.
dkms_builds_for_a_new_kernel_and_not_for_an_old_one()
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

kbuild_signs_if_it_has_a_key_and_runs_no_depmod()
{
	twheel install >"$work/said"
	grep -x ',true' "$work/new/signs"
	grep -E '^twheel [^ ]+ is installed for 6.99.0-new as .*; it is not signed,' "$work/said"
	echo 'CONFIG_MODULE_SIG_KEY="output/key.pem"' >"$work/new/include/config/auto.conf"
	twheel install
	grep -x ',true' "$work/new/signs"
	mkdir "$work/new/output"
	touch "$work/new/output/key.pem"
	twheel install
	grep -x 'y,true' "$work/new/signs"
	echo 'CONFIG_MODULE_SIG_KEY="pkcs11:token"' >"$work/new/include/config/auto.conf"
	twheel install
	grep -x 'y,true' "$work/new/signs"
	rm "$work/new/include/config/auto.conf"
	twheel install new CONFIG_MODULE_SIG_KEY=/key
	grep -x 'y,true' "$work/new/signs"
}

cases=(
	kbuild_signs_if_it_has_a_key_and_runs_no_depmod
	install_brings_module_header_and_rule
	dkms_install_brings_module_header_and_rule
	dkms_install_after_a_change_installs_the_changed_sources
	dkms_install_of_a_new_version_replaces_the_old_one
	each_way_takes_the_place_of_the_other
	install_module_takes_the_place_of_dkms
	uninstall_leaves_the_module_that_dkms_has_installed
	removing_leaves_the_header_that_libtwheel_needs
	removing_twice_is_no_error
	dkms_builds_for_a_new_kernel_and_not_for_an_old_one
)

echo "TAP version 13"
echo "1..$((${#cases[@]} + 2))"
for case in "${cases[@]}"; do
	holds "$case" "$case"
done
holds dkms_leaves_out_a_kernel_before_6.1 dkms_leaves_out 5.10.0-old old
holds dkms_leaves_out_a_32_bit_kernel dkms_leaves_out 6.99.0-new narrow
