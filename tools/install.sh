#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# install.sh install|uninstall|dkms-install|dkms-remove: what the make targets of
# these names do, when the module is built. KDIR and DESTDIR are make's.
#
# There are two ways to install the module: `make install' puts it into updates/ of
# one kernel, dkms into updates/dkms/ of each. With both, depmod would choose one.
# So each way takes back what the other one has installed, and removes nothing else
# of it. The headers and the udev rule come with both.

set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
# These are meant for the make that started us.
unset MAKEFLAGS MFLAGS MAKELEVEL

root=${DESTDIR:-}
if [ "$KDIR" = "/lib/modules/$(uname -r)/build" ]; then
	release=$(uname -r)
else
	# Not kernel.release: Debian 12 builds its packages with another name in there.
	release=$(sed -n 's/^#define UTS_RELEASE "\(.*\)"/\1/p' "$KDIR/include/generated/utsrelease.h")
fi
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)
headers=("$root/usr/include/linux/twheel.h")
rule=$root/usr/lib/udev/rules.d/60-twheel.rules

dkms_trees=()
[ -z "$root" ] || dkms_trees=(--sourcetree "$root/usr/src" --dkmstree "$root/var/lib/dkms"
	--installtree "$root/lib/modules" --no-depmod)

run_dkms()
{
	dkms "$@" -m twheel "${dkms_trees[@]}"
}

# What dkms has of us: VERSION STATE KERNEL, a line for each; `added' has no kernel.
dkms_state()
{
	command -v dkms >/dev/null || return 0
	[ -z "$root" ] || [ -d "$root/var/lib/dkms/twheel" ] || return 0
	LC_ALL=C run_dkms status |
		sed -nE 's|^twheel[/,] ?([^,: ]+)(, ([^,]+), [^:]+)?: ([a-z]+).*|\1 \4 \3|p'
}

# Also its copies of the sources.
leave_dkms()
{
	local version

	dkms_state | cut -d ' ' -f 1 | sort -u | while read -r version; do
		echo "removing twheel $version from dkms"
		run_dkms remove -v "$version" --all
		rm -rf "$root/usr/src/twheel-$version"
	done
}

# remove_module KERNEL: the one that `make install' put there.
remove_module()
{
	local dir

	for dir in "${INSTALL_MOD_DIR:-updates}" updates extra; do
		rm -fv "$root/lib/modules/$1/$dir"/twheel.ko{,.gz,.xz,.zst}
	done
}

run_depmod()
{
	[ -n "$root" ] || depmod "$1"
}

install_rest()
{
	install -D -m 644 -t "$root/usr/include/linux" uapi/linux/twheel{,_calls}.h
	install -D -m 644 tools/60-twheel.rules "$rule"
	[ -n "$root" ] || ! command -v udevadm >/dev/null || udevadm control --reload || true
}

# <linux/twheel.h> stays where libtwheel is installed, which needs it.
remove_rest()
{
	[ ! -e "$root/usr/include/twheel.h" ] || headers=("${headers[@]:1}")
	rm -fv "${headers[@]}" "$rule"
}

do_install()
{
	leave_dkms
	make -C "$KDIR" M="$PWD" modules_install ${root:+INSTALL_MOD_PATH="$root"}
	install_rest
	run_depmod "$release"
}

do_uninstall()
{
	remove_module "$release"
	run_depmod "$release"
	if [ -n "$(dkms_state)" ]; then
		echo "dkms keeps its copy of twheel: \`make dkms-remove' removes that"
	else
		remove_rest
	fi
}

# The sources may have changed without the version: what dkms has built before is
# built anew, for each kernel that had it.
do_dkms_install()
{
	local kernel kernels

	command -v dkms >/dev/null || {
		echo "dkms is not installed (Debian: apt install dkms)." >&2
		exit 1
	}
	kernels=$(dkms_state | sed -n 's/^[^ ]* installed //p' | sort -u | grep -vxF "$release") || true
	leave_dkms
	make dkms-source
	[ -z "$root" ] || mkdir -p "$root/var/lib/dkms"
	run_dkms add -v "$version"
	remove_module "$release"
	run_dkms install -v "$version" -k "$release" --kernelsourcedir "$KDIR" --force
	for kernel in $kernels; do
		remove_module "$kernel"
		run_dkms install -v "$version" -k "$kernel" --force
	done
	install_rest
}

do_dkms_remove()
{
	leave_dkms
	if compgen -G "$root/lib/modules/*/*/twheel.ko*" >/dev/null; then
		echo "the twheel that \`make install' installed stays: \`make uninstall' removes it"
	else
		remove_rest
	fi
}

case $1 in
install | uninstall | dkms-install | dkms-remove) "do_${1//-/_}" ;;
*) echo "install.sh: unknown command: $1" >&2; exit 2 ;;
esac
