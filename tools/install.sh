#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# install.sh install|uninstall|dkms-install|dkms-remove|dkms-source|install-module|
#	install-headers|uninstall-headers|install-udev
#
# The make targets of these names call it when the module is built. KDIR, DESTDIR,
# INSTALL_MOD_PATH, includedir and TWHEEL_VERSION are make's variables; KBUILD_OPTIONS are
# arguments for `make modules_install'.
#
# There are two ways to install the module: `make install' puts it into updates/ (6.1: extra/) of
# one kernel, dkms into updates/dkms/ of each. If a kernel had both, depmod would choose one. So
# each way removes the module of the other, and nothing else of it. Both install the header, udev
# rule, group and boot entry. install-module, install-headers and install-udev do a part of `make
# install' each, for packages.
#
# The new module is built first, and then replaces the old one. A file is written beside its place
# and renamed. If a step fails, the old files are put back.

set -euo pipefail
unset CDPATH POSIXLY_CORRECT
# Everybody must be able to read the files, whatever umask root has.
umask 022

die()
{
	printf 'error: %s\n' "$*" >&2
	exit 1
}

# absolute PATH: print the path as seen from the folder where make, or this script, was started.
absolute()
{
	case $1 in
	'' | /*) printf '%s\n' "$1" ;;
	*) printf '%s\n' "$PWD/$1" ;;
	esac
}

# INSTALL_MOD_PATH is kbuild's variable for a staging folder. Stage all files there, not the
# module alone: otherwise header and rules would go into the running system.
if [ -n "${INSTALL_MOD_PATH:-}" ] && [ "${DESTDIR:=$INSTALL_MOD_PATH}" != "$INSTALL_MOD_PATH" ]; then
	die "DESTDIR and INSTALL_MOD_PATH name two folders; everything goes into one: say DESTDIR alone"
fi
unset INSTALL_MOD_PATH
root=$(absolute "${DESTDIR:-}")
while [[ $root = */ ]]; do root=${root%/}; done
# Lists of paths below have one path a line.
[[ $root != *$'\n'* ]] || die "DESTDIR has two lines"
# In a package for a recent system, nothing may be in /lib, which is a link there.
modules=$root/lib/modules
[ -d "$root/lib" ] || modules=$root/usr/lib/modules
KDIR=$(absolute "${KDIR:-}")

cd -- "$(dirname -- "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
# make's flags were meant for the make that called this script. kbuild also gets the variables
# that were given with them, as CC=...; dkms gets none.
overrides=
[[ " ${MAKEFLAGS:-}" != *' -- '* ]] || overrides=" -- ${MAKEFLAGS#*-- }"
unset MAKEFLAGS MFLAGS MAKELEVEL

version=${TWHEEL_VERSION:-$(sh tools/version.sh)}
# dkms and kbuild put the version into shell and sed scripts.
[[ ! $version =~ [^A-Za-z0-9.+~_] ]] || die "no version has characters as those of $version"
# find_release and stage_module set these.
release=
module=
includedir=${includedir:-/usr/local/include}
[[ $includedir = /* && $includedir != *$'\n'* ]] ||
	die "PREFIX and includedir begin with a slash; \"$includedir\" does not"
# Files that come with the module: FILE, and its place.
headers=(uapi/linux/twheel.h "$includedir/linux/twheel.h")
device=(
	tools/60-twheel.rules /usr/lib/udev/rules.d/60-twheel.rules
	tools/twheel.sysusers /usr/lib/sysusers.d/twheel.conf
	tools/twheel.modules-load /usr/lib/modules-load.d/twheel.conf
)

# A temporary folder. dkms quotes no paths.
work_in=${TMPDIR:-/tmp}
[[ $work_in = /* && ! $work_in =~ [^A-Za-z0-9_./+@-] ]] || work_in=/tmp
work=$(mktemp -d "$work_in/twheel.XXXXXX")

# Places of files that are being replaced, and of files that undo() restores.
staged=()
kept=()
# The kernel and architecture that dkms is about to install for.
saved='' saved_arch=''
# Not empty while a copy of the sources is half done.
copying=

beside()
{
	printf '%s\n' "${1%/*}/.${1##*/}.new"
}

# stage FILE DEST: write a copy of FILE beside DEST.
stage()
{
	local new

	new=$(beside "$2")
	rm -f -- "$new"
	staged+=("$2")
	install -D -m 644 -T -- "$1" "$new"
	sync -- "$new"
}

# keep FILE: save the file for undo(); if it does not exist, undo() removes it.
keep()
{
	if [ -e "$1" ] || [ -L "$1" ]; then
		mkdir -p "$work/kept"
		cp -a -- "$1" "$work/kept/${#kept[@]}"
	fi
	kept+=("$1")
}

# Rename all staged files to their places.
commit()
{
	local dest

	for dest in "${staged[@]}"; do
		[ ! -d "$dest" ] || [ -L "$dest" ] || die "$dest is a folder; a file belongs there"
		keep "$dest"
	done
	for dest in "${staged[@]}"; do
		mv -fT -- "$(beside "$dest")" "$dest"
	done
	staged=()
}

# drop FILE...: remove these files, so that undo() can restore them.
drop()
{
	local file

	for file; do
		if [ -e "$file" ] || [ -L "$file" ]; then
			keep "$file"
			rm -fv -- "$file"
		fi
	done
}

# Restore the state before the installation.
undo()
{
	local i dest

	for dest in "${staged[@]}"; do
		rm -f -- "$(beside "$dest")"
	done
	for i in "${!kept[@]}"; do
		dest=${kept[i]}
		if [ -e "$work/kept/$i" ] || [ -L "$work/kept/$i" ]; then
			cp -a -- "$work/kept/$i" "$(beside "$dest")" &&
				mv -fT -- "$(beside "$dest")" "$dest"
		else
			rm -f -- "$dest"
		fi || echo "cannot put $dest back" >&2
	done
}

ends()
{
	local status=$?

	set +e
	trap '' INT TERM HUP
	[ -z "$copying" ] || sweep_copies
	[ -z "$saved" ] || put_back "$saved" "$saved_arch"
	if [ $status != 0 ] && [ ${#kept[@]} -gt 0 ]; then
		undo
		[ -z "$release" ] || run_depmod "$release"
		echo "these files are as they were: ${kept[*]}" >&2
	elif [ $status != 0 ]; then
		undo
	fi
	rm -rf -- "$work"
	exit $status
}
trap ends EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# Set $release to the kernel that KDIR belongs to.
find_release()
{
	local header=$KDIR/include/generated/utsrelease.h

	if [ "$KDIR" = "/lib/modules/$(uname -r)/build" ]; then
		release=$(uname -r)
		return
	fi
	[ -r "$header" ] || die "there is no $header, which says for which kernel KDIR is"
	# Do not read kernel.release: Debian 12 builds its packages with another name in it.
	release=$(sed -n 's/^#define UTS_RELEASE "\(.*\)"/\1/p' "$header")
	[[ $release && $release != */* ]] || die "$header names no kernel"
}

# Check that no link leads out of DESTDIR: a staged tree may be that of another machine.
stays_below_root()
{
	local dir real top

	[ -n "$root" ] || return 0
	top=$(realpath -m -- "$root")
	for dir in "$root$includedir/linux" "$root"/usr/{lib/{udev/rules,sysusers,modules-load}.d,src} \
		"$root/var/lib/dkms/twheel" "$modules"/{,*,*/{updates,extra}}; do
		real=$(realpath -m -- "$dir")
		[[ $real = "${top%/}"/* ]] || die "$dir leads out of DESTDIR, to $real: nothing is done"
	done
}

# installed_in [KERNEL]: print the installed modules, whether by make or dkms.
installed_in()
{
	local dir=$modules/${1:-}

	[ ! -d "$dir" ] || find "${dir%/}/" ! -type d \( -name twheel.ko -o -name 'twheel.ko.[gxz]*' \)
}

# Remove modules that a run left beside their places because it was killed before it renamed them.
sweep_modules()
{
	[ ! -d "$modules" ] || find "$modules/" ! -type d -name '.twheel.ko*.new' -delete
}

# those_of_make KERNEL: print the paths where `make install' may have put the module.
those_of_make()
{
	local dir suffix

	for dir in "${INSTALL_MOD_DIR:-updates}" updates extra; do
		for suffix in '' .gz .xz .zst; do
			printf '%s\n' "$modules/$1/$dir/twheel.ko$suffix"
		done
	done | sort -u
}

run_depmod()
{
	[ -n "$root" ] || depmod "$1"
}

# is_ours FOLDER: is it a copy for dkms? A copy has no tools/; a checkout has.
is_ours()
{
	[ -f "$1/dkms.conf" ] && grep -qx 'PACKAGE_NAME="twheel"' "$1/dkms.conf" && [ ! -e "$1/tools" ]
}

# may_go FOLDER: is it a link, empty, or a copy of ours?
may_go()
{
	[ -L "$1" ] || [ ! -e "$1" ] || is_ours "$1" || { [ -d "$1" ] && [ -z "$(ls -A -- "$1")" ]; }
}

# remove_sources FOLDER: remove a copy. If it is a link, remove the link alone.
remove_sources()
{
	if ! may_go "$1"; then
		echo "$1 stays: it is no copy of twheel for dkms" >&2
	elif [ -L "$1" ]; then
		rm -fv -- "$1"
	else
		rm -rf -- "$1"
	fi
}

# Remove half copies that a run left because it was killed or had no space. If it was killed
# between two renames, put the old copy back.
sweep_copies()
{
	local dir place

	for dir in "$root"/usr/src/.twheel-*.old; do
		place=${dir%/*}/${dir##*/.}
		place=${place%.old}
		! is_ours "$dir" || [ -e "$place" ] || mv -T -- "$dir" "$place"
	done
	for dir in "$root"/usr/src/.twheel-*.{new,old}; do
		[ ! -d "$dir" ] || [ -L "$dir" ] || [ -e "$dir/tools" ] || rm -rf -- "$dir"
	done
}

# copy_sources FOLDER: copy the files that the module is built from, for dkms. dkms.conf comes
# first, since is_ours() looks for it.
copy_sources()
{
	local files

	mapfile -t files < <(printf '%s\n' Kbuild Makefile COPYING LICENSES/*.txt twheel_*.c
		find engine include uapi -name '*.[ch]')
	mkdir -p -- "$1"
	sed "s/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"$version\"/" dkms.conf >"$1/dkms.conf"
	touch -r dkms.conf -- "$1/dkms.conf"
	cp --parents --preserve=timestamps -t "$1" -- "${files[@]}"
	find "$1" -type d -exec chmod 755 {} + -o -exec chmod 644 {} +
}

# check_place FOLDER: fail if a copy must not replace the folder.
check_place()
{
	may_go "$1" || die "$1 is no copy of twheel for dkms, and is not touched: move it away"
}

do_dkms-source()
{
	check_place "$root/usr/src/twheel-$version"
	sweep_copies
	put_sources
}

# Write /usr/src/twheel-VERSION for dkms; nothing of an older copy stays. The caller has called
# check_place() and sweep_copies().
put_sources()
{
	local dir=$root/usr/src/twheel-$version hidden=$root/usr/src/.twheel-$version

	copying=1
	copy_sources "$hidden.new"
	[ -L "$dir" ] || [ ! -e "$dir" ] || mv -T -- "$dir" "$hidden.old"
	rm -f -- "$dir"
	mv -T -- "$hidden.new" "$dir"
	remove_sources "$hidden.old"
	copying=
}

has_group()
{
	grep -qs '^twheel:' /etc/group || { getent group twheel >/dev/null; } 2>/dev/null
}

# Create the group before the rule is installed: udevd looks it up when it reads the rule. If
# there is neither systemd nor udev, as in a container, that is no error.
make_group()
{
	! has_group || return 0
	{ systemd-sysusers "$PWD/tools/twheel.sysusers" || has_group || groupadd --system twheel; } \
		>/dev/null 2>&1 || true
	if has_group; then
		echo "created the group twheel: its members may open /dev/twheel"
	else
		echo "there is no group twheel, and nothing here to create it (systemd-sysusers," \
			"groupadd): only root may open /dev/twheel"
	fi
}

# Have udev apply the rule. On return, an existing device is open to the group.
reload_udev()
{
	command -v udevadm >/dev/null || return 0
	udevadm control --reload >/dev/null 2>&1 || return 0
	[ ! -c /dev/twheel ] || udevadm trigger --settle --action=change /dev/twheel >/dev/null 2>&1 || true
}

# If the loaded module is an older one, say how to replace it.
report_old_module()
{
	local loaded=/sys/module/twheel file

	[ -e $loaded ] && [ "$release" = "$(uname -r)" ] || return 0
	file=$(installed_in "$release" | head -n 1)
	[ "$(cat $loaded/version $loaded/srcversion 2>/dev/null)" != \
	  "$(modinfo -F version "$file"; modinfo -F srcversion "$file")" ] || return 0
	echo "The module that is loaded is still the old one. To replace it, end the programs that use it"
	echo "(twheelctl ps shows them, or fuser -v /dev/twheel), then: modprobe -r twheel && modprobe twheel"
}

# stage_all FILE DEST...: stage each FILE for DEST, below the root.
stage_all()
{
	for (( ; $# > 0; )); do
		stage "$1" "$root$2"
		shift 2
	done
}

install_rest()
{
	[ -n "$root" ] || make_group
	stage_all "${headers[@]}" "${device[@]}"
	commit
}

# Make the new files take effect in the running system.
update_system()
{
	[ -z "$root" ] || return 0
	reload_udev
	report_old_module
}

# If libtwheel is installed, <linux/twheel.h> stays, since it needs the header. If any kernel
# still has a module, everything stays.
remove_rest()
{
	local i left

	left=$(installed_in | head -n 1)
	if [ -n "$left" ]; then
		echo "$left stays (\`make uninstall' removes the module of one kernel)," \
			"and so do header, udev rule and boot entry"
		return
	fi
	for ((i = 1; i < ${#device[@]}; i += 2)); do
		rm -f -- "$(beside "$root${device[i]}")"
		rm -fv -- "$root${device[i]}"
	done
	[ -e "$root$includedir/twheel.h" ] || do_uninstall-headers
	[ -z "$root" ] || return 0
	! has_group || echo "the group twheel stays (groupdel twheel removes it)"
	[ ! -e /sys/module/twheel ] || echo "the module stays loaded until the machine is started again" \
		"(rmmod twheel unloads it, when no program uses it)"
	reload_udev
}

# If this folder cannot be written, as by root on a network file system, say why the present
# module cannot be installed.
do_up-to-date()
{
	local newer

	[ -e twheel.ko ] || die "$PWD cannot be written, and the module is not built: run \`make' first," \
		"as somebody who can"
	newer=$(find Kbuild dkms.conf twheel_*.c engine include uapi -name '*.[ch]' -newer twheel.ko |
		head -n 1)
	[ -z "$newer" ] || die "$PWD cannot be written, and $newer is newer than twheel.ko: run \`make'" \
		"first, as somebody who can"
	[[ $(modinfo -F vermagic ./twheel.ko) = "$release "* ]] || die "$PWD cannot be written, and" \
		"twheel.ko is not for $release: run \`make KDIR=...' first, as somebody who can"
}

# Has kbuild a key to sign with? If the caller says how to sign, or if the key is on a token,
# leave it to kbuild.
has_key()
{
	local key

	[[ $overrides != *' CONFIG_MODULE_SIG_'* ]] || return 0
	key=$(sed -n 's/^CONFIG_MODULE_SIG_KEY="\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' \
		"$KDIR/include/config/auto.conf" 2>/dev/null)
	[[ $key = pkcs11:* ]] || { [ -n "$key" ] && { [[ $key = /* && -e $key ]] || [ -e "$KDIR/$key" ]; }; }
}

# The last line of an installation.
report_installed()
{
	local signed="it is signed"

	[ -n "$(modinfo -F sig_id "$module")" ] ||
		signed="it is not signed, so Secure Boot would refuse it"
	echo "twheel $(modinfo -F version "$module") is installed for $release as $module; $signed"
}

# Let kbuild compress and sign the module, and choose its folder below the kernel's.
stage_module()
{
	local file files options

	read -ra options <<<"${KBUILD_OPTIONS:-}"
	# If there is no key, do not sign: sign-file would print an error, and depmod.sh a
	# warning.
	has_key || options+=(CONFIG_MODULE_SIG_ALL=)
	MAKEFLAGS=$overrides make -C "$KDIR" M="$PWD" "${options[@]}" INSTALL_MOD_PATH="$work/root" \
		quiet_cmd_depmod= cmd_depmod=true modules_install
	mapfile -t files < <(find "$work/root" -name 'twheel.ko*' ! -type d)
	[ ${#files[@]} = 1 ] || die "modules_install of $KDIR has put twheel.ko nowhere"
	file=${files[0]}
	module=$modules/${file#"$work"/root*/lib/modules/}
	release=${module#"$modules"/}
	release=${release%%/*}
	stage "$file" "$module"
}

# Remove the modules that `make install' has put elsewhere, after the new one is in place.
replace_module()
{
	local files

	mapfile -t files < <(those_of_make "$release" | grep -vxF -- "$module")
	drop "${files[@]}"
	sweep_modules
	run_depmod "$release"
	# The module is installed: from here on nothing is undone.
	kept=()
}

do_install()
{
	stage_module
	install_rest
	replace_module
	leave_dkms
	update_system
	report_installed
}

do_install-module()
{
	stage_module
	commit
	replace_module
	leave_dkms
	[ -n "$root" ] || report_old_module
	report_installed
}

do_install-headers()
{
	stage_all "${headers[@]}"
	commit
}

do_uninstall-headers()
{
	rm -f -- "$(beside "$root${headers[1]}")"
	rm -fv -- "$root${headers[1]}"
}

do_install-udev()
{
	[ -n "$root" ] || make_group
	stage_all "${device[@]}"
	commit
	[ -n "$root" ] || reload_udev
}

do_uninstall()
{
	local files

	mapfile -t files < <(those_of_make "$release")
	rm -fv -- "${files[@]}"
	sweep_modules
	run_depmod "$release"
	if [ -n "$(dkms_versions)" ]; then
		echo "dkms keeps its copy of twheel: \`make dkms-remove' removes that"
	else
		remove_rest
	fi
}

# Wait for other installations: each would take the files of the other for the old ones.
wait_for_others()
{
	[ -d "$root/" ] && command -v flock >/dev/null || return 0
	exec 8<"$root/"
	flock -n 8 || {
		echo "something else installs or removes twheel in $root/: waiting until it has ended" >&2
		flock 8
	}
}

. tools/dkms.sh

case ${1:-} in
install | install-module | uninstall | dkms-install | up-to-date) find_release ;;&
install | install-* | dkms-install | dkms-source) [ -z "$root" ] || mkdir -p -- "$root" ;;&
install | install-* | uninstall* | dkms-install | dkms-remove | dkms-source) wait_for_others ;;&
install | install-module | install-headers | install-udev | uninstall | uninstall-headers | \
	dkms-install | dkms-remove | up-to-date | dkms-source)
	stays_below_root
	"do_$1"
	;;
*) die "install.sh: unknown command: ${1:-}" ;;
esac
