#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# module-packages.sh, called by `make module-packages': build Debian packages of the module for
# the kernel whose headers are in KDIR, for machines that have neither a compiler nor headers.
#
#	twheel-modules-RELEASE	the module
#	twheel-modules		depends on the former: the newest kernel's
#
# They are put into the folder that OUTPUT names, or here. SIGN_KEY and SIGN_CERT sign the module;
# the key may be a URI of PKCS#11, and KBUILD_SIGN_PIN is its PIN. REVISION, 1 by default, counts
# builds of the same version. KERNEL_PACKAGE is the package of the kernel, if it is not
# linux-image-RELEASE. SOURCE_DATE_EPOCH is the time of all files; by default that of the
# last commit, or of debian/changelog. The packages of the same sources, headers, compiler and key
# are the same, wherever and whenever they are built.

set -euo pipefail
unset CDPATH MAKEFLAGS MFLAGS MAKELEVEL
umask 022
export LC_ALL=C TZ=UTC

die()
{
	printf 'error: %s\n' "$*" >&2
	exit 1
}

# absolute PATH: print the path as seen from the folder where make was started.
absolute()
{
	[[ $1 = /* || $1 = pkcs11:* || ! $1 ]] && printf '%s\n' "$1" || printf '%s\n' "$PWD/$1"
}

output=$(realpath -- "${OUTPUT:-.}")
kdir=$(absolute "${KDIR:-/lib/modules/$(uname -r)/build}")
key=$(absolute "${SIGN_KEY:-}")
cert=$(absolute "${SIGN_CERT:-}")
cd -- "$(dirname -- "$0")/.."
PATH=$PATH:/usr/sbin:/sbin

version=${TWHEEL_VERSION:-$(sh tools/version.sh)}-${REVISION:-1}
command -v dpkg-deb >/dev/null || die "there is no dpkg-deb (Debian: apt install dpkg)"
command -v modinfo >/dev/null || die "there is no modinfo (Debian: apt install kmod)"
[ -n "$key" ] || [ -z "$cert" ] || die "SIGN_CERT needs a SIGN_KEY"
[ -n "$cert" ] || [ -z "$key" ] || die "SIGN_KEY needs a SIGN_CERT"
# If the certificate is missing, fail now: an unsigned module would be noticed at the next boot
# only.
[ -z "$cert" ] || [ -r "$cert" ] || die "$cert cannot be read"
[[ ! $key || $key = pkcs11:* || -r $key ]] || die "$key cannot be read"

if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
	if [ -e .git ]; then
		SOURCE_DATE_EPOCH=$(git -c safe.directory='*' log -1 --format=%ct)
	else
		SOURCE_DATE_EPOCH=$(date +%s -d "$(sed -n '/^ -- /{s/^.*>  //p;q}' debian/changelog)")
	fi
fi
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

# With several threads, pahole writes the types of BTF in a random order.
options=()
if command -v pahole >/dev/null; then
	cat >"$work/pahole" <<-'EOT'
		#!/bin/bash
		for argument; do
			shift
			[[ $argument = -j* ]] || set -- "$@" "$argument"
		done
		exec pahole "$@"
	EOT
	chmod 755 "$work/pahole"
	options=(PAHOLE="$work/pahole")
fi

# Build in a copy of the sources alone, without older products.
build_module()
{
	bash tools/install.sh dkms-source >/dev/null
	make -C "$work"/usr/src/twheel-* KDIR="$kdir" "${options[@]}" modules >&2
	cp "$work"/usr/src/twheel-*/twheel.ko "$work/twheel.ko"
	# Remove debug information before signing, as dkms does.
	"${CROSS_COMPILE:-}strip" -g "$work/twheel.ko"
}

# Find sign-file: Debian has it in another package than the headers.
sign_file()
{
	local file

	for file in "$kdir"/{,source/}scripts/sign-file /usr/lib/linux-kbuild-*/scripts/sign-file; do
		[ ! -x "$file" ] || { printf '%s\n' "$file"; return; }
	done
	die "there is no sign-file in $kdir/scripts, nor in /usr/lib/linux-kbuild-*/scripts"
}

sign_module()
{
	local tool

	[ -n "$key" ] || return 0
	tool=$(sign_file)
	"$tool" sha256 "$key" "$cert" "$work/twheel.ko"
	[ -n "$(modinfo -F sig_id "$work/twheel.ko")" ] || die "$tool has not signed the module"
}

# script NAME: add a maintainer script, for this kernel.
script()
{
	sed "s/@RELEASE@/$release/g" "packaging/module.$1" >"$package/DEBIAN/$1"
	chmod 755 "$package/DEBIAN/$1"
}

# begin NAME VERSION: begin a package, whose files go below $package. Further fields of its
# control file come from standard input.
begin()
{
	package=$work/$1
	mkdir -p "$package/DEBIAN" "$package/usr/share/doc/$1"
	cp debian/copyright "$package/usr/share/doc/$1/"
	{
		echo "Package: $1"
		echo "Source: twheel"
		echo "Version: $2"
		echo "Architecture: $arch"
		echo "Section: kernel"
		echo "Priority: optional"
		sed -n '/^Maintainer: /p' debian/control
		cat
	} >"$package/DEBIAN/control"
}

end()
{
	dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$package" "$output" >/dev/null
	printf '%s_%s_%s.deb\n' "${package##*/}" "$(sed -n 's/^Version: //p' "$package/DEBIAN/control")" "$arch"
}

# The package depends on its kernel, so that it is removed together with the kernel. apt keeps a
# package whose name is NAME-modules-RELEASE as long as it keeps that kernel
# (APT::VersionedKernelPackages). If the unsigned kernel would do as well, apt would install it in
# the place of one that is removed.
module_package()
{
	begin "twheel-modules-$name" "$version" <<-EOT
		Depends: ${KERNEL_PACKAGE:-linux-image-$name}, kmod
		Conflicts: twheel-dkms
		Description: timing wheel in the kernel, /dev/twheel (module for $release)
		 The device /dev/twheel holds millions of timeouts behind one file
		 descriptor. This package has the module for the kernel $release,
		 and needs neither a compiler nor headers.
	EOT
	install -D -m 644 "$work/twheel.ko" "$package/usr/lib/modules/$release/updates/twheel.ko"
	script postinst
	script postrm
	end
}

# The version contains the kernel's, so that an upgrade brings the module for the next kernel.
newest_package()
{
	begin twheel-modules "$version+${name//-/.}" <<-EOT
		Depends: twheel-modules-$name (>= $version), twheel-tools
		Conflicts: twheel-dkms
		Description: timing wheel in the kernel, /dev/twheel (module for the newest kernel)
		 The device /dev/twheel holds millions of timeouts behind one file
		 descriptor. This package depends on the module for the newest kernel that
		 it was built for, and has it loaded at boot.
	EOT
	install -D -m 644 tools/twheel.modules-load "$package/usr/lib/modules-load.d/twheel.conf"
	end
}

export DESTDIR=$work
build_module
release=$(modinfo -F vermagic "$work/twheel.ko")
release=${release%% *}
# Write the release as the kernel's `make bindeb-pkg' does in names of packages.
name=$(tr 'A-Z_' 'a-z-' <<<"$release")
case $(modinfo -F vermagic "$work/twheel.ko"; readelf -h "$work/twheel.ko") in
*AArch64*) arch=arm64 ;;
*X86-64*) arch=amd64 ;;
*) arch=${DEB_HOST_ARCH:-$(dpkg --print-architecture)} ;;
esac
sign_module
module_package
newest_package
if [ -n "$key" ]; then
	echo "the module is signed by $(modinfo -F signer "$work/twheel.ko")"
else
	echo "the module is not signed, so Secure Boot would refuse it: say SIGN_KEY= and SIGN_CERT="
fi
