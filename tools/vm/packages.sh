#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make test-packages: the Debian packages of the last commit, on Debian 12 and 13. They are built
# there twice, and for arm64; lintian checks them; and they are installed, downgraded, upgraded and
# purged in a system that never had twheel. dkms builds the module for the kernel of that Debian;
# only the headers of the kernel are installed, and the module is not loaded. The packages of make
# module-packages are installed by apt for two kernels of that Debian, in a system without a
# compiler and headers. The bindings are built and tested with the languages of that Debian.
#
# SUITES='bookworm trixie'; TESTS='fleet-*' or 'bindings-*' runs only these. If a test fails, KEEP=1
# keeps its system.
#
# .cache/bare/tools-SUITE   a system that has the tools to build packages
# .cache/bare/packages      the packages that were built, by SUITE
# .cache/bare/logs          packages-SUITE.log
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2016 # what is in single quotes is for another shell

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/tap.sh"
. "$(dirname "$0")/lib/cases.sh"
. "$(dirname "$0")/lib/system.sh"

read -ra suites <<<"${SUITES:-bookworm trixie}"
work=$bare/packages
case_options=-ex
fresh_tree() { :; }
version=$(sh "$top/tools/version.sh")
# An older release, which differs only in its number.
old_version=0.0.9

# run_as USER SCRIPT [ARGUMENT...]: run a shell script in $root.
run_as()
{
	enter "$root" chroot --userspec="$1:$1" / env -i HOME=/tmp LC_ALL=C.UTF-8 TERM=dumb \
		DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
		bash -exc "${@:2}" </dev/null
}

as_root() { run_as root "$@"; }
as_builder() { run_as builder "$@"; }

# make_tools SUITE: make the system for building in $root, unless it is there.
make_tools()
{
	root=$bare/tools-$1
	[ ! -e "$root" ] || return 0
	say "installing what builds packages in a Debian $1"
	rm -rf --one-file-system "$root.tmp"
	cp -a "$bare/$1" "$root.tmp"
	cp -L /etc/resolv.conf "$root.tmp/etc/resolv.conf"
	root=$root.tmp
	quietly "$bare/logs/tools-$1.log" as_root '
		dpkg --add-architecture arm64
		apt-get update
		apt-get install -y --no-install-recommends build-essential debhelper dh-dkms lintian \
			crossbuild-essential-arm64 libc6-dev:arm64 makepkg \
			libjansson-dev libjansson-dev:arm64 systemtap-sdt-dev systemtap-sdt-dev:arm64
		useradd -m builder'
	root=${root%.tmp}
	mv "$root.tmp" "$root"
}

# build FOLDER VERSION OPTIONS ARGUMENT...: build the packages of that version in that folder.
# They are in $debs.
build()
{
	rm -rf "${root:?}/build"
	mkdir -p "$root/build/$1"
	tar -xzf "$work/twheel-$2.tar.gz" -C "$root/build/$1"
	as_root 'chown -R builder: /build'
	as_builder 'cd "/build/$1" && shift && export DEB_BUILD_OPTIONS=$1 && shift && dpkg-buildpackage -us -uc "$@"' \
		bash "$1/twheel-$2" "$3" "${@:4}"
	debs=$root/build/$1
}

# keep NAME: copy the packages that were built to $results.
keep()
{
	rm -rf "${results:?}/$1"
	mkdir -p "$results/$1"
	cp "$debs"/*.deb "$results/$1/"
}

they_are_built_and_their_tests_pass()
{
	build one "$version" ''
	keep new
}

lintian_has_nothing_to_say()
{
	local said

	said=$(as_builder 'cd /build/one && lintian --fail-on none *.changes')
	[ -z "$said" ] || { echo "$said"; return 1; }
}

# Build without the tests, which add nothing to a package.
another_build_in_another_folder_is_equal()
{
	local deb

	build another/deeper "$version" nocheck
	for deb in "$results"/new/*.deb; do
		cmp "$deb" "$debs/${deb##*/}"
	done
}

makepkg_reads_its_recipe()
{
	as_builder 'cd "/build/another/deeper/twheel-$1/packaging" && PACMAN=true makepkg --printsrcinfo' bash "$version" \
		>"$work/srcinfo"
	grep 'pkgname = twheel-dkms' "$work/srcinfo"
	grep "pkgver = ${version/\~/}" "$work/srcinfo"
}

an_older_one_is_built()
{
	build old $old_version nocheck
	keep old
}

they_are_built_for_arm64()
{
	build cross "$version" nocheck -aarm64 -B
	dpkg-deb -x "$debs"/libtwheel1_*_arm64.deb "$root/build/unpacked"
	readelf -h "$root"/build/unpacked/usr/lib/aarch64-linux-gnu/libtwheel.so.1 | grep 'Machine:.*AArch64'
}

# unpack NAME: unpack one of the new packages into $work/unpacked.
unpack()
{
	rm -rf "$work/unpacked"
	dpkg-deb -x "$results"/new/"$1"_*.deb "$work/unpacked"
}

the_library_is_hardened()
{
	local library debug

	unpack libtwheel1
	library=$work/unpacked/usr/lib/x86_64-linux-gnu/libtwheel.so.1
	readelf -d "$library" | grep 'FLAGS.*BIND_NOW'
	readelf -lW "$library" | grep GNU_RELRO
	unpack libtwheel1-dbgsym
	debug=$(find "$work/unpacked" -name '*.debug')
	readelf --debug-dump=info "$debug" | grep DW_AT_producer >"$work/producers"
	! grep -v -e '-fstack-protector-strong' "$work/producers" || return
}

# List all files except the databases of apt, dpkg, dkms and depmod, and except groups, which
# stay.
all_files()
{
	(cd "$root" && find . -xdev \( -path ./packages -o -path ./tmp -o -path ./proc -o -path ./sys -o \
		-path ./var/cache -o -path ./var/log -o -path ./var/lib/apt -o -path ./dev \) -prune -o \
		! -path './var/lib/dpkg/*' ! -path './var/lib/dkms/mok.*' ! -path './etc/g*' \
		! -path './usr/lib/modules/*/modules.*' \
		-printf '%y %m %p %l\n' | sort)
}

# is_installed VERSION: all packages have this version, and dpkg reports no problem.
is_installed()
{
	local files

	as_root 'test -z "$(dpkg --audit)" &&
		for name in libtwheel1 libtwheel-dev twheel-dkms twheel-tools twheel-doc; do
			test "$(dpkg-query -W -f "\${db:Status-Abbrev}\${Version}" $name)" = "ii $1"
		done
		grep "^twheel:" /etc/group' bash "$1"
	mapfile -t files < <(find "$root"/usr/lib/modules -name 'twheel.ko*' ! -type d)
	[ ${#files[@]} = 1 ]
	[ "$(modinfo -F version "${files[0]}")" = "$1" ]
	[ "$(ls -d "$root"/usr/src/twheel-*)" = "$root/usr/src/twheel-$1" ]
	[ "$(find "$root/var/lib/dkms/twheel" -mindepth 1 -maxdepth 1 -type d -printf '%f\n')" = "$1" ]
}

# put NAME: install these packages in place of the present ones.
put()
{
	rm -rf "${root:?}/packages"
	cp -r "$results/$1" "$root/packages"
	rm -f "$root"/packages/*dbgsym*
	as_root 'apt-get install -y --no-install-recommends --allow-downgrades --reinstall /packages/*.deb'
}

they_are_installed()
{
	put new
	is_installed "$version"
}

a_program_is_built_and_runs()
{
	cp "$top/debian/tests/program" "$root/tmp/program"
	as_root 'sh /tmp/program'
}

they_are_downgraded()
{
	put old
	is_installed $old_version
}

they_are_upgraded()
{
	put new
	is_installed "$version"
}

# Make headers of a kernel for which the module does not build.
if_the_module_does_not_build_for_a_kernel_dpkg_goes_on()
{
	local headers=$root/usr/lib/modules/99.9.9-broken/build

	mkdir -p "$headers/include"
	echo CONFIG_64BIT=y >"$headers/.config"
	printf '%%:\n\t@echo "this kernel is too new" >&2; false\n' >"$headers/Makefile"
	put new
	is_installed "$version"
	as_root 'dpkg --configure -a'
	rm -r "${headers%/build}"
}

a_kernel_that_is_too_old_is_left_out()
{
	local headers=$root/usr/lib/modules/5.10.0-old/build

	mkdir -p "$headers/include"
	echo CONFIG_64BIT=y >"$headers/.config"
	put new
	is_installed "$version"
	rm -r "${headers%/build}"
}

purged_they_leave_nothing()
{
	as_root 'apt-get purge -y libtwheel1 twheel-dkms twheel-tools twheel-doc'
	as_root 'test -z "$(dpkg --audit)" && ! dpkg-query -W "*twheel*" | grep .'
	diff "$work/before" <(all_files)
}

# suite_tests SUITE
suite_tests()
{
	local case

	echo 1..14
	for case in they_are_built_and_their_tests_pass lintian_has_nothing_to_say \
		another_build_in_another_folder_is_equal makepkg_reads_its_recipe an_older_one_is_built they_are_built_for_arm64 \
		the_library_is_hardened; do
		holds "$case" "$case"
	done
	trap remove_system EXIT
	copy_suite "$1"
	as_root 'apt-get update && apt-get install -y --no-install-recommends linux-headers-amd64 dkms gcc \
		libc6-dev pkgconf systemd-standalone-sysusers' >"$bare/logs/packages-$1.log" 2>&1
	all_files >"$work/before"
	for case in they_are_installed a_program_is_built_and_runs they_are_downgraded they_are_upgraded \
		if_the_module_does_not_build_for_a_kernel_dpkg_goes_on a_kernel_that_is_too_old_is_left_out \
		purged_they_leave_nothing; do
		holds "$case" "$case"
	done
	[ -z "${KEEP:-}" ] || { say "left: $root"; root=; }
}

# ---- the module, for machines without a compiler ------------------------------------

# Build the packages of make module-packages for two kernels of that Debian, and the packages that
# they need.
fleet_is_built()
{
	as_root 'apt-get install -y --no-install-recommends linux-headers-amd64 linux-headers-cloud-amd64 kmod openssl'
	build modules "$version" nocheck
	as_builder 'cd "/build/modules/twheel-$1"
		openssl req -new -x509 -newkey rsa:2048 -nodes -days 3650 -subj "/CN=twheel fleet" \
			-keyout fleet.key -outform DER -out fleet.der
		for kernel in amd64 cloud-amd64; do
			headers=$(dpkg-query -W -f "\${Depends}" linux-headers-$kernel)
			make module-packages KDIR="/usr/src/${headers%% *}" SIGN_KEY=fleet.key SIGN_CERT=fleet.der OUTPUT=..
		done' bash "$version"
	keep fleet
}

# Set $first and $second to the releases. The package "cloud" comes after "amd64".
find_kernels()
{
	first=$(dpkg-deb -f "$results"/fleet/twheel-modules-*[0-9]-amd64_*.deb Package)
	second=$(dpkg-deb -f "$results"/fleet/twheel-modules-*-cloud-amd64_*.deb Package)
	first=${first#twheel-modules-} second=${second#twheel-modules-}
}

# offer FILE...: put some of these packages into the machine's repository.
offer()
{
	local file

	mkdir -p "$root/packages"
	cp "${@/#/$results/fleet/}" "$root/packages/"
	for file in "$root"/packages/*.deb; do
		dpkg-deb -f "$file"
		printf '%s\n' "Filename: ./${file##*/}" "Size: $(stat -c %s "$file")" \
			"SHA256: $(sha256sum <"$file" | cut -d ' ' -f 1)" ''
	done >"$root/packages/Packages"
	echo 'deb [trusted=yes] file:/packages ./' >"$root/etc/apt/sources.list.d/fleet.list"
	as_root 'apt-get update'
}

# offer_for RELEASE: put both packages for that kernel into the repository.
offer_for()
{
	local files

	mapfile -t files < <(cd "$results/fleet" && ls twheel-modules{-"$1"_,_*+"${1//-/.}"_}*.deb)
	offer "${files[@]}"
}

# finds RELEASE: modprobe would find the module for that kernel, and it is signed.
finds()
{
	as_root 'test "$(modinfo -k "$1" -n twheel)" = "/lib/modules/$1/updates/twheel.ko"
		test "$(modinfo -k "$1" -F signer twheel)" = "twheel fleet"
		modinfo -k "$1" -F vermagic twheel | grep "^$1 "
		test -e "/boot/vmlinuz-$1"' bash "$1"
}

nothing_to_build_with()
{
	as_root '! command -v gcc && ! ls -d /usr/src/linux-* /var/lib/dkms 2>/dev/null'
}

the_module_brings_its_kernel()
{
	nothing_to_build_with
	offer "$(basename "$results"/fleet/twheel-tools_*.deb)"
	offer_for "$first"
	as_root 'apt-get install -y --no-install-recommends twheel-modules'
	finds "$first"
	as_root 'test -e /usr/lib/modules-load.d/twheel.conf && grep "^twheel:" /etc/group'
}

the_next_kernel_comes_first_and_then_its_module()
{
	as_root 'apt-get install -y --no-install-recommends "linux-image-$1"
		! modinfo -k "$1" twheel' bash "$second"
	finds "$first"
	offer_for "$second"
	as_root 'apt-get dist-upgrade -y --no-install-recommends'
	finds "$first"
	finds "$second"
	nothing_to_build_with
}

# apt may keep one kernel or both. It must keep the module of each kernel that it keeps.
apt_keeps_the_module_as_long_as_its_kernel()
{
	local release kernel

	as_root 'apt-mark auto "$@" "twheel-modules-*" && apt-get -s -o APT::Get::AutomaticRemove=1 remove twheel-modules' \
		bash "linux-image-$first" "linux-image-$second" >"$work/removed"
	grep '^Remv twheel-modules ' "$work/removed"
	for release in "$first" "$second"; do
		kernel=$(grep -c "^Remv linux-image-$release " "$work/removed" || true)
		[ "$(grep -c "^Remv twheel-modules-$release " "$work/removed" || true)" = "$kernel" ]
	done
	! { grep "^Remv twheel-modules-$first " "$work/removed" &&
		grep "^Remv twheel-modules-$second " "$work/removed"; } || return
}

without_its_kernel_the_module_goes()
{
	as_root 'apt-get purge -y "linux-image-$1" && test ! -e "/lib/modules/$1/updates"' bash "$first"
	finds "$second"
}

a_purge_leaves_the_kernel()
{
	as_root 'apt-get purge -y "twheel-modules*" && test -e "/boot/vmlinuz-$1"
		! grep twheel "/lib/modules/$1/modules.dep" && ! find /lib/modules/ /usr/lib/modules-load.d -name "twheel*" | grep .' \
		bash "$second"
}

# fleet_tests SUITE
fleet_tests()
{
	local case first second

	echo 1..6
	holds fleet_is_built fleet_is_built
	find_kernels
	trap remove_system EXIT
	copy_suite "$1"
	for case in the_module_brings_its_kernel the_next_kernel_comes_first_and_then_its_module \
		apt_keeps_the_module_as_long_as_its_kernel without_its_kernel_the_module_goes a_purge_leaves_the_kernel; do
		holds "$case" "$case"
	done
	[ -z "${KEEP:-}" ] || { say "left: $root"; root=; }
}

# ---- the bindings, with the languages of that Debian ---------------------------------

their_languages_are_installed()
{
	as_root '
		apt-get update
		apt-get install -y --no-install-recommends build-essential cargo rust-clippy golang-go nodejs libnode-dev \
			python3-cffi python3-dev python3-setuptools default-jdk-headless libnetty-java libjctools-java \
			junit4 libhamcrest-java
		make -C /tree install-lib install-headers PREFIX=/twheel'
}

# No test is skipped here. test.sh reports a failure by a line, not by its exit status.
the_binding_passes()
{
	as_root '
		test="bash /tree/bindings/$1/test.sh" dir=/products/$1
		export TWHEEL_LIB=/twheel
		[ -z "$($test needs)" ]
		mkdir -p "$dir"
		$test build "$dir"
		$test test "$dir" >"$dir.tap"
		cat "$dir.tap"
		grep "^ok" "$dir.tap"
		! grep "^not ok" "$dir.tap"' bash "$1"
}

bindings_tests()
{
	local name names

	mapfile -t names < <(cd "$top/bindings" && printf '%s\n' */test.sh)
	echo "1..$((${#names[@]} + 1))"
	trap remove_system EXIT
	copy_suite "$1"
	mkdir "$root/tree"
	tar -xzf "$work/twheel-$version.tar.gz" -C "$root/tree" --strip-components=1
	holds their_languages_are_installed their_languages_are_installed
	for name in "${names[@]%/*}"; do
		holds "the binding for $name passes" the_binding_passes "$name"
	done
	[ -z "${KEEP:-}" ] || { say "left: $root"; root=; }
}

lock_systems
mkdir -p "$work"
OUTPUT=$work bash "$top/tools/dist.sh" >/dev/null
TWHEEL_VERSION=$old_version OUTPUT=$work bash "$top/tools/dist.sh" >/dev/null

echo "TAP version 13"
for suite in "${suites[@]}"; do
	make_suite "$suite"
	make_tools "$suite"
	results=$work/$suite
	host_test "packages-$suite" suite_tests "$suite"
	root=$bare/tools-$suite
	host_test "fleet-$suite" fleet_tests "$suite"
	host_test "bindings-$suite" bindings_tests "$suite"
done
tap_summary
