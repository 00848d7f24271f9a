#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Let the real dkms add, build and install the module for each kernel, in folders of this test:
# the system's dkms and modules are not touched. The installed module is copied to
# .cache/build/KERNEL/dkms.ko, for the guests.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/build.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

trees=$build/dkms
# dkms insists on being root.
as_root=()
[ "$(id -u)" = 0 ] || as_root=(unshare --map-root-user)

# If there were a sign-file, dkms would make a key in /var/lib/dkms.
run_dkms()
{
	sign_file=/nonexistent "${as_root[@]}" dkms "$@" -m twheel -v "$version" \
		--sourcetree "$trees/usr/src" --dkmstree "$trees/dkms" \
		--installtree "$trees/modules" --no-depmod
}

# The module is at the place and has the version that dkms.conf states.
installed_as_stated()
{
	local release=$1 module=$trees/modules/$1/updates/dkms/twheel.ko

	run_dkms status -k "$release" -a x86_64 | grep -q installed || return
	[ "$(modinfo -F version "$module")" = "$version" ] || return
	[[ $(modinfo -F vermagic "$module") = "$release "* ]] || return
	cp "$module" "$build/$series/dkms.ko"
	sources_key "$series" >"$build/$series/dkms.key"
}

# COPYING has the text of GPL-2.0.
has_licences()
{
	local source=$trees/usr/src/twheel-$version name

	[ -s "$source/COPYING" ] || return
	for name in $(grep -rhoE 'SPDX-License-Identifier: [^*]*' "$source" | cut -d : -f 2 |
		tr ' ' '\n' | sort -u | grep -vxE '|OR|WITH|GPL-2.0'); do
		[ -s "$source/LICENSES/$name.txt" ] || return
	done
}

show_log()
{
	cat "$trees/dkms/twheel/$version/build/make.log" 2>/dev/null
	return 1
}

# As for users, the module of the newest kernel has debug information until it is installed. For
# the other kernels, leave it out.
build_with_dkms()
{
	[ "$series" = "${kernels[-1]}" ] || local -x MAKEFLAGS=" -- ${no_debug_info[*]}"
	run_dkms build -k "$1" -a x86_64 --kernelsourcedir "$(kernel_headers "$series")" ||
		show_log
}

rm -rf "$trees"
mkdir -p "$trees"/{usr/src,dkms,modules}
version=$(sh "$top/tools/version.sh")

echo "TAP version 13"
echo "1..$((3 + 3 * ${#kernels[@]}))"
check "make dkms-source installs all that dkms needs" make -C "$top" -s dkms-source DESTDIR="$trees"
check "the licences that the sources name are among them" has_licences
check "dkms adds twheel $version" run_dkms add
for series in "${kernels[@]}"; do
	mkdir -p "$build/$series"
	rm -f "$build/$series"/dkms.{ko,key}
	release=$(cat "$cache/kernels/$series/release")
	mkdir -p "$trees/modules/$release"
	check "dkms builds the module for $release" build_with_dkms "$release"
	check "dkms installs the module for $release" run_dkms install -k "$release" -a x86_64
	check "the module for $release has the place and the version that dkms.conf says" installed_as_stated "$release"
done
