#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test the packages of make module-packages: their contents; that two builds are equal; and that a
# machine without a compiler and without headers can install, upgrade and remove them, with two
# kernels in either order. The machine is a folder with a database of dpkg. Its kernels are
# packages with the lists that depmod needs. make test-packages does the same with apt in a bare
# Debian.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/module_packages
case_options=-ex
old=6.1
new=6.12
fresh_tree() { :; }

# make_packages SERIES OUTPUT VARIABLE...
make_packages()
{
	mkdir -p "$work/$2"
	make -s -C "$top" module-packages KDIR="$(kernel_headers "$1")" OUTPUT="$work/$2" \
		TWHEEL_VERSION="${version:-1.2.3}" SOURCE_DATE_EPOCH=1700000000 "${@:3}"
}

# module_deb SERIES FOLDER, newest_deb FOLDER SERIES: print the path of the package.
module_deb() { echo "$work/$2/twheel-modules-${name[$1]}"_*.deb; }
newest_deb() { echo "$work/$2"/twheel-modules_*+"${name[$1]//-/.}"_*.deb; }

field() { dpkg-deb -f "$1" "$2"; }

# Make a key to sign with.
a_key_is_made()
{
	openssl req -new -x509 -newkey rsa:2048 -nodes -days 3650 -subj "/CN=twheel fleet" \
		-keyout "$work/fleet.key" -outform DER -out "$work/fleet.der"
}

they_are_built_for_two_kernels()
{
	local series

	for series in $old $new; do
		make_packages "$series" debs SIGN_KEY="$work/fleet.key" SIGN_CERT="$work/fleet.der" >"$work/said"
		grep -x 'the module is signed by twheel fleet' "$work/said"
		[ -e "$(module_deb "$series" debs)" ]
		[ -e "$(newest_deb "$series" debs)" ]
	done
}

they_hold_the_module_and_nothing_that_two_of_them_have()
{
	local series file

	for series in $old $new; do
		file=$(module_deb "$series" debs)
		[ "$(field "$file" Version)" = 1.2.3-1 ]
		[ "$(field "$file" Depends)" = "linux-image-${name[$series]}, kmod" ]
		dpkg-deb -c "$file" >"$work/list"
		! awk '$2 != "root/root"' "$work/list" | grep . || return
		! grep -v ' 2023-11-14 ' "$work/list" || return
		diff - <(sed -n 's/^-\(.*\)  *[^ ]* \.\//\1 /p' "$work/list" | awk '{ print $1, $NF }' | sort -k 2) <<-EOT
			rw-r--r-- usr/lib/modules/${name[$series]}/updates/twheel.ko
			rw-r--r-- usr/share/doc/twheel-modules-${name[$series]}/copyright
		EOT
		dpkg-deb -x "$file" "$work/unpacked"
		module=$work/unpacked/usr/lib/modules/${name[$series]}/updates/twheel.ko
		[[ $(modinfo -F vermagic "$module") = "${name[$series]} "* ]]
		[ "$(modinfo -F version "$module")" = 1.2.3 ]
		[ "$(modinfo -F signer "$module")" = 'twheel fleet' ]
		! readelf -SW "$module" | grep '\.debug_' || return
		file=$(newest_deb "$series" debs)
		[ "$(field "$file" Depends)" = "twheel-modules-${name[$series]} (>= 1.2.3-1), twheel-tools" ]
		dpkg-deb -c "$file" | grep ' ./usr/lib/modules-load.d/twheel.conf$'
	done
	dpkg --compare-versions "$(field "$(newest_deb $old debs)" Version)" lt \
		"$(field "$(newest_deb $new debs)" Version)"
}

# The kernel cannot check the signature here, but openssl knows the format.
the_signature_is_that_of_the_key()
{
	local file size length

	file=$work/unpacked/usr/lib/modules/${name[$new]}/updates/twheel.ko
	size=$(stat -c %s "$file")
	[ "$(tail -c 28 "$file")" = '~Module signature appended~' ]
	length=$((16#$(tail -c 32 "$file" | head -c 4 | od -An -tx1 | tr -d ' \n')))
	head -c $((size - 40 - length)) "$file" >"$work/content"
	tail -c $((40 + length)) "$file" | head -c "$length" >"$work/signature"
	openssl x509 -inform DER -in "$work/fleet.der" -out "$work/fleet.pem"
	openssl cms -verify -binary -inform DER -in "$work/signature" -content "$work/content" \
		-CAfile "$work/fleet.pem" -certfile "$work/fleet.pem" -purpose any -out /dev/null
	# The signature must not match any other content.
	echo >>"$work/content"
	! openssl cms -verify -binary -inform DER -in "$work/signature" -content "$work/content" \
		-CAfile "$work/fleet.pem" -certfile "$work/fleet.pem" -purpose any -out /dev/null
}

another_build_is_equal()
{
	local file

	umask 077
	make_packages $new again SIGN_KEY="$work/fleet.key" SIGN_CERT="$work/fleet.der"
	for file in "$work"/again/*.deb; do
		cmp "$file" "$work/debs/${file##*/}"
	done
}

a_key_that_cannot_be_read_stops_it()
{
	! make_packages $new none SIGN_KEY="$work/fleet.key" 2>"$work/said" || return
	grep 'SIGN_KEY needs a SIGN_CERT' "$work/said"
	! make_packages $new none SIGN_KEY="$work/no.key" SIGN_CERT="$work/fleet.der" 2>"$work/said" || return
	grep 'no.key cannot be read' "$work/said"
	[ -z "$(ls "$work/none")" ]
}

without_a_key_it_says_so()
{
	make_packages $new unsigned REVISION=2 KERNEL_PACKAGE=linux-image-fleet >"$work/said"
	grep 'is not signed, so Secure Boot would refuse it' "$work/said"
	[ "$(field "$(module_deb $new unsigned)" Version)" = 1.2.3-2 ]
}

a_kernel_may_have_another_package()
{
	[ "$(field "$(module_deb $new unsigned)" Depends)" = 'linux-image-fleet, kmod' ]
}

apt_keeps_packages_of_such_names_with_their_kernel()
{
	apt-config dump APT::VersionedKernelPackages | grep -xF 'APT::VersionedKernelPackages:: ".*-modules";'
}

# stand_in NAME FOLDER [FIELD]: make a package of that name with the files of that folder.
stand_in()
{
	mkdir -p "$2/DEBIAN"
	printf '%s\n' "Package: $1" "Version: ${3:-1}" "Architecture: all" "Maintainer: nobody <nobody@localhost>" \
		"Description: stands in for $1" >"$2/DEBIAN/control"
	dpkg-deb --root-owner-group --build "$2" "$work/kernels/" >/dev/null
}

stand_ins_are_made()
{
	local series lists

	mkdir -p "$work/kernels"
	for series in $old $new; do
		lists=$work/stand-in/$series/usr/lib/modules/${name[$series]}
		mkdir -p "$lists"
		: >"$lists/modules.order"
		: >"$lists/modules.builtin"
		stand_in "linux-image-${name[$series]}" "$work/stand-in/$series"
	done
	stand_in linux-image-fleet "$work/stand-in/fleet"
	stand_in twheel-tools "$work/stand-in/tools"
	stand_in kmod "$work/stand-in/kmod"
}

# node COMMAND...: run dpkg on the machine, which has neither compiler nor headers.
node()
{
	dpkg --root="$work/node" --force-script-chrootless --force-not-root --no-debsig "$@"
}

fresh_node()
{
	rm -rf "${work:?}/node"
	mkdir -p "$work"/node/{usr/lib,var/lib/dpkg/{info,updates}}
	ln -s usr/lib "$work/node/lib"
	: >"$work/node/var/lib/dpkg/status"
	node -i "$work"/kernels/{twheel-tools,kmod,linux-image-fleet}_*.deb
}

kernel() { echo "$work/kernels/linux-image-${name[$1]}_1_all.deb"; }

# finds SERIES: modprobe would find the module for that kernel.
finds()
{
	[ "$(modprobe -d "$work/node" -S "${name[$1]}" --show-depends twheel)" = \
		"insmod $work/node/lib/modules/${name[$1]}/updates/twheel.ko " ] ||
		[ "$(modprobe -d "$work/node" -S "${name[$1]}" --resolve-alias twheel)" = twheel ]
	grep '^updates/twheel.ko:' "$work/node/lib/modules/${name[$1]}/modules.dep"
}

it_is_installed_after_its_kernel()
{
	fresh_node
	! node -i "$(module_deb $old debs)" || return
	node --purge "twheel-modules-${name[$old]}"
	node -i "$(kernel $old)"
	node -i "$(module_deb $old debs)" "$(newest_deb $old debs)"
	finds $old
	[ -e "$work/node/usr/lib/modules-load.d/twheel.conf" ]
}

kernel_then_module()
{
	node -i "$(kernel $new)"
	finds $old
	node -i "$(module_deb $new debs)" "$(newest_deb $new debs)"
	finds $old
	finds $new
}

# Install all in one run, as apt does: the kernel is configured first.
module_then_kernel()
{
	fresh_node
	node -i "$(kernel $old)" "$(module_deb $old debs)" "$(newest_deb $old debs)"
	node --unpack "$(module_deb $new debs)" "$(newest_deb $new debs)"
	node -i "$(kernel $new)"
	node --configure -a
	finds $old
	finds $new
}

a_newer_build_takes_the_place_of_the_old_one()
{
	local before

	before=$(modinfo -F signer "$work/node/lib/modules/${name[$new]}/updates/twheel.ko")
	node -i "$(module_deb $new unsigned)"
	finds $new
	[ "$before" = 'twheel fleet' ]
	[ -z "$(modinfo -F signer "$work/node/lib/modules/${name[$new]}/updates/twheel.ko")" ]
}

the_old_kernel_does_not_go_without_its_module()
{
	! node --purge "linux-image-${name[$old]}" || return
	node --purge "linux-image-${name[$old]}" "twheel-modules-${name[$old]}"
	[ ! -e "$work/node/lib/modules/${name[$old]}/updates" ]
	finds $new
}

purged_they_leave_nothing()
{
	node --purge twheel-modules "twheel-modules-${name[$new]}"
	! find "$work/node" ! -path '*/var/lib/dpkg/*' ! -path '*/share/doc' -name '*twheel*' ! -name '*tools*' | grep . || return
	! grep twheel "$work/node/lib/modules/${name[$new]}/modules.dep"
}

declare -A name
for series in $old $new; do
	name[$series]=$(cat "$cache/kernels/$series/release")
done
rm -rf "${work:?}"
mkdir -p "$work"
cases=(a_key_is_made they_are_built_for_two_kernels they_hold_the_module_and_nothing_that_two_of_them_have
	the_signature_is_that_of_the_key another_build_is_equal a_key_that_cannot_be_read_stops_it
	without_a_key_it_says_so a_kernel_may_have_another_package apt_keeps_packages_of_such_names_with_their_kernel stand_ins_are_made
	it_is_installed_after_its_kernel kernel_then_module module_then_kernel
	a_newer_build_takes_the_place_of_the_old_one the_old_kernel_does_not_go_without_its_module
	purged_they_leave_nothing)
echo "TAP version 13"
echo "1..${#cases[@]}"
for case in "${cases[@]}"; do
	holds "$case" "$case"
done
