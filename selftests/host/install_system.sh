#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test make install and dkms-install into the running system: the group, udev, depmod, and a
# loaded module. The system is a root of links to this machine's files; the files that are written
# are its own. systemd, udev and the kernel are stand-ins.
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2016 # what is in single quotes is for another shell

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/install_system
. "$(dirname "$0")/../../tools/vm/lib/stand_in.sh"
case_options=-ex
here=/host$work

# command_is NAME: write a stand-in for the command, from the lines on stdin. It records each
# start.
command_is()
{
	{ printf '%s\n' '#!/usr/bin/env bash' "echo \"$1 \$*\" >>$here/commands"; cat; } >"$work/bin/$1"
	chmod +x "$work/bin/$1"
}

# links FOLDER NAME...: link all that this machine has in the folder, except these names.
links()
{
	local entry names

	mkdir -p "$root$1"
	for entry in "$1"/*; do
		names=" ${*:2} "
		[[ $names = *" ${entry##*/} "* ]] || ln -sfn "/host$entry" "$root$entry"
	done
}

fresh_tree()
{
	fresh_stage
	rm -r "${root:?}"
	mkdir -p "$work/bin" "$root"/{host,tmp,etc,usr/{local/include,src},var/tmp,sys/module} "$root/var/lib/dkms"
	links '' host tmp etc usr var sys lib work root home
	links /usr local src lib
	links /usr/lib modules udev sysusers.d modules-load.d
	links /etc group
	ln -sfn usr/lib "$root/lib"
	echo root:x:0: >"$root/etc/group"
	mkdir -p "$root/lib/modules/6.99.0-new"
	ln -s "$here/new" "$root/lib/modules/6.99.0-new/build"
	# Without this file, dkms thinks that the kernel is not installed, and does not run
	# depmod.
	echo >"$root/lib/modules/6.99.0-new/modules.dep"
	: >"$work/commands"
	command_is uname <<<'[ "$1" = -r ] && echo 6.99.0-new || exec /usr/bin/uname "$@"'
	command_is depmod <<<"[ ! -e $here/depmod_fails ]"
	command_is udevadm <<<"[ ! -e $here/no_udev ]"
	command_is getent <<<'exit 2'
	command_is ldconfig <<<:
	command_is systemd-sysusers <<<'grep -q "^g twheel" "$1" && echo twheel:x:999: >>/etc/group'
	command_is groupadd <<<'[ "$1" = --system ] && echo "$2:x:998:" >>/etc/group'
}

# in_system COMMAND...: run a command in the system, as root. Its output is in $work/said.
in_system()
{
	local namespace=(unshare -m)

	[ "$(id -u)" = 0 ] || namespace=(unshare --map-root-user -m)
	root=$root here=$here "${namespace[@]}" bash -ec '
		mount --rbind / "$root/host"
		export PATH=$here/bin:/usr/sbin:/usr/bin:/sbin:/bin sign_file=/nonexistent
		exec chroot "$root" "$@"' bash "$@" >"$work/said" 2>&1 ||
		{ cat "$work/said"; return 1; }
	cat "$work/said"
}

# system TARGET...: run make in the system.
system()
{
	in_system make -C "$here/tree" "$@"
}

group()
{
	sed -n 's/^\(twheel\):.*/\1/p' "$root/etc/group"
}

install_brings_group_rule_and_boot_entry()
{
	system "$1"
	[ "$(group)" = twheel ]
	grep '^created the group twheel' "$work/said"
	grep -x 'g twheel -' "$root/usr/lib/sysusers.d/twheel.conf"
	grep -x twheel "$root/usr/lib/modules-load.d/twheel.conf"
	# udev must read the rule after the group was created.
	[ "$(grep -oE '^(systemd-sysusers|udevadm control --reload)' "$work/commands" | tr '\n' ' ')" = \
		'systemd-sysusers udevadm control --reload ' ]
	grep -E '^depmod .*6.99.0-new' "$work/commands"
	lacks '^groupadd' "$work/commands"
	system "$1"
	lacks group "$work/said"
	system "$2"
	grep '^the group twheel stays' "$work/said"
	[ "$(group)" = twheel ]
	nothing_is_left
}

groupadd_makes_the_group_if_there_is_no_systemd()
{
	rm "$work/bin/systemd-sysusers"
	command_is systemd-sysusers <<<'exit 127'
	system install
	[ "$(group)" = twheel ]
	grep '^groupadd --system twheel$' "$work/commands"
}

# There is neither in a container, or in a system with busybox.
install_succeeds_without_systemd_and_udev()
{
	command_is systemd-sysusers <<<'exit 1'
	command_is groupadd <<<'exit 1'
	touch "$work/no_udev"
	system install
	[ "$(modules)" = updates/twheel.ko ]
	grep '^there is no group twheel' "$work/said"
	lacks 'udev|error' "$work/said"
}

install_puts_the_old_module_back_if_depmod_fails()
{
	system install
	before=$(all_files "$root/usr/local/include")$(all_files "$root/lib/modules/")
	change
	echo >>"$tree/uapi/linux/twheel.h"
	touch "$work/depmod_fails"
	! system install || return
	grep 'these files are as they were: ' "$work/said"
	[ "$before" = "$(all_files "$root/usr/local/include")$(all_files "$root/lib/modules/")" ]
}

# loaded SUM [VERSION]: a module with this sum of its sources is loaded.
loaded()
{
	mkdir -p "$root/sys/module/twheel"
	echo "$1" >"$root/sys/module/twheel/srcversion"
	echo "${2:-$version}" >"$root/sys/module/twheel/version"
}

an_old_module_that_is_loaded_is_reported()
{
	loaded "$(sum_of_sources)"
	system "$1"
	lacks 'still the old one' "$work/said"
	loaded "$(sum_of_sources)" 0.0.1
	system "$1"
	grep 'still the old one' "$work/said"
	loaded "$(sum_of_sources)"
	change
	system "$1"
	grep 'The module that is loaded is still the old one' "$work/said"
	grep 'modprobe -r twheel && modprobe twheel' "$work/said"
}

# Configure the package as dpkg does. modinfo would look for this machine's kernel.
configure()
{
	command_is modinfo <<-'EOT'
	file=$(find /lib/modules/ -name twheel.ko)
	[ "$file" ] && exec /usr/sbin/modinfo "${@:1:$#-1}" "$file"
	EOT
	in_system sh "/host$top/debian/twheel-dkms.postinst" configure
}

the_package_names_the_next_steps()
{
	configure
	grep 'no module for the running kernel' "$work/said"
	grep 'apt install linux-headers-6.99.0-new' "$work/said"
	system dkms-install
	configure
	grep -x 'modprobe twheel' "$work/said"
	lacks 'no module|still the old one' "$work/said"
	loaded "$(sum_of_sources)"
	configure
	[ ! -s "$work/said" ]
	loaded another
	configure
	grep 'still the old one' "$work/said"
	grep -x 'modprobe -r twheel && modprobe twheel' "$work/said"
	# In an image that is being built, there is no /sys/module.
	rm -r "$root/sys/module"
	configure
	[ ! -s "$work/said" ]
}

staging_changes_nothing_in_the_running_system()
{
	local target

	loaded another
	for target in install dkms-install uninstall dkms-remove; do
		system $target DESTDIR="$here/stage"
		lacks 'group|loaded' "$work/said"
	done
	[ -z "$(group)" ]
	lacks '^(depmod|udevadm|groupadd|systemd-sysusers)' "$work/commands"
}

# `/' is not a staged tree.
a_destdir_of_a_slash_is_the_running_system()
{
	system install DESTDIR=/
	[ "$(group)" = twheel ]
	grep -E '^depmod .*6.99.0-new' "$work/commands"
}

# runs_ldconfig TARGET DESTDIR: the target runs ldconfig.
runs_ldconfig()
{
	: >"$work/commands"
	system "$1" DESTDIR="$2"
	grep -x 'ldconfig ' "$work/commands"
}

install_lib_runs_ldconfig_in_the_running_system_alone()
{
	local destdir

	for destdir in '' / //; do
		runs_ldconfig install-lib "$destdir"
		runs_ldconfig uninstall-lib "$destdir"
	done
	fails runs_ldconfig install-lib "$here/stage"
	[ -e "$work/stage/usr/local/lib/libtwheel.so" ]
}

cases=(
	install_lib_runs_ldconfig_in_the_running_system_alone
	groupadd_makes_the_group_if_there_is_no_systemd
	install_succeeds_without_systemd_and_udev
	install_puts_the_old_module_back_if_depmod_fails
	the_package_names_the_next_steps
	staging_changes_nothing_in_the_running_system
	a_destdir_of_a_slash_is_the_running_system
)

echo "TAP version 13"
echo "1..$((${#cases[@]} + 4))"
holds install_brings_group_rule_and_boot_entry install_brings_group_rule_and_boot_entry install uninstall
holds dkms_install_brings_group_rule_and_boot_entry \
	install_brings_group_rule_and_boot_entry dkms-install dkms-remove
holds install_reports_an_old_module_that_is_loaded an_old_module_that_is_loaded_is_reported install
holds dkms_install_reports_an_old_module_that_is_loaded an_old_module_that_is_loaded_is_reported dkms-install
for case in "${cases[@]}"; do
	holds "$case" "$case"
done
