# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
# Sourced, after common.sh: compilers for other architectures.
#
# .cache/cross/arm64  gcc, binutils and the C library, to make programs for arm64
#
# They are unpacked there and not installed: each of them conflicts with gcc-multilib, which the
# system may have.

# cross_target ARCHITECTURE: print the prefix of the tools' names.
cross_target()
{
	case $1 in
	arm64) echo aarch64-linux-gnu ;;
	s390x) echo s390x-linux-gnu ;;
	*) die "no compiler for $1 is known" ;;
	esac
}

# cross_compiler ARCHITECTURE: print the compiler command, after use_cross. It does not search
# this machine's headers.
cross_compiler()
{
	echo "$(cross_target "$1")-gcc-12 --sysroot=$cache/cross/$1"
}

cross_packages()
{
	local target
	target=$(cross_target "$1")

	printf '%s\n' "binutils-$target" "cpp-12-$target" "gcc-12-$target"
	printf "%s-$1-cross\n" libgcc-12-dev libgcc-s1 libc6-dev libc6 linux-libc-dev
}

# get_cross ARCHITECTURE: fetch the tools, after apt.sh.
get_cross()
{
	local dir=$cache/cross/$1 packages=$cache/cross/$1.packages deb

	[ -e "$dir" ] && return
	mkdir -p "$cache/cross"
	get_packages "$packages" cross_packages "$1"
	say "unpacking a compiler for $1"
	rm -rf "$dir.tmp"
	while read -r deb; do
		unpack "$deb" "$dir.tmp" --exclude='./usr/share'
	done < <(deb_files "$packages")
	mv "$dir.tmp" "$dir"
	drop_packages "$packages"
}

# use_cross ARCHITECTURE: find the tools from here on. Their libraries have the target in their
# names, so they replace no others.
use_cross()
{
	local dir=$cache/cross/$1/usr

	export PATH=$dir/bin:$PATH
	export LD_LIBRARY_PATH=$dir/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}
