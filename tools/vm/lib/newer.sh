# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
# Sourced, after common.sh and apt.sh: kernels that are newer than those of Debian 12, and the tools
# that build their modules.
#
# The compiler of such a kernel, and the tools in its packages, need a newer C library than this
# system may have. The library is unpacked beside them, and each program is started with it. That
# needs neither root nor a root file system of its own.
#
# .cache/trixie       compiler, assembler, linker, pahole and their libraries

newer=trixie
newer_tools=$cache/$newer
newer_libraries=$newer_tools/usr/lib/x86_64-linux-gnu

is_newer()
{
	[[ $1 != 6.* ]]
}

# newer_image SERIES: print the package of a kernel. Its linux-image-* is empty; linux-binary-*
# has the kernel. trixie-backports keeps a series for some months only. If the series is gone,
# take the newest one.
newer_image()
{
	local series=${1%-rt} flavour=amd64 names

	[ "$1" = "$series" ] || flavour=rt-amd64
	names=$(apt_own apt-cache pkgnames linux-binary- |
		grep -xE "linux-binary-[0-9][^-]*-$flavour" | sort -V)
	grep -F "linux-binary-$series." <<<"$names" | tail -n 1 | grep . && return
	names=$(tail -n 1 <<<"$names")
	[ -z "$names" ] || say "Debian has no kernel $series any more, and gets $names in its place"
	echo "$names"
}

# bring_library PROGRAM...: replace each program by a script that runs it with the libraries in
# $newer_tools. The script uses relative paths, so that .cache may be moved.
bring_library()
{
	local program folder

	for program; do
		folder=$(dirname "$(realpath -m "$program")")
		mv "$program" "$program.elf"
		cat >"$program" <<-EOT
		#!/bin/sh
		here=\${0%/*}
		libraries=\$here/$(realpath -m --relative-to="$folder" "$newer_libraries")
		exec "\$libraries/ld-linux-x86-64.so.2" --argv0 "\$0" --library-path "\$libraries" \\
			"\$here/${program##*/}.elf" "\$@"
		EOT
		chmod +x "$program"
	done
}

get_newer_tools()
{
	local dir=$newer_tools tmp=$newer_tools/tmp gcc=usr/libexec/gcc/x86_64-linux-gnu/14 programs

	[ -e "$dir/complete" ] && return
	use_suite $newer
	mkdir -p "$dir"
	get_packages "$dir/packages" printf '%s\n' {gcc,cpp}-14-x86-64-linux-gnu \
		libgmp10 libmpfr6 libmpc3 libisl23 \
		binutils-x86-64-linux-gnu libbinutils libctf0 libctf-nobfd0 libjansson4 libsframe1 \
		pahole libdw1t64 libelf1t64 liblzma5 libbz2-1.0 libbpf1 \
		libc6 libgcc-s1 libstdc++6 libssl3t64 libzstd1 zlib1g
	say "unpacking the compiler of Debian $newer"
	rm -rf "$tmp" "${dir:?}/usr"
	while read -r deb; do
		unpack "$deb" "$tmp"
	done < <(deb_files "$dir/packages")
	(
		cd "$tmp" || exit
		# gcc looks for the assembler and the linker in its own folder first.
		ln usr/bin/x86_64-linux-gnu-as usr/bin/x86_64-linux-gnu-ld.bfd $gcc/
		mv $gcc/x86_64-linux-gnu-as $gcc/as
		mv $gcc/x86_64-linux-gnu-ld.bfd $gcc/ld
		cp -al --parents usr/lib/x86_64-linux-gnu usr/bin/pahole $gcc/{cc1,as,ld} \
			usr/bin/x86_64-linux-gnu-{gcc-14,ar,as,ld,ld.bfd,nm,objcopy,objdump,readelf,strip} \
			"$dir"
	)
	rm -rf "$tmp"
	mapfile -t programs < <(find "$dir/usr/bin" "$dir/usr/libexec" -type f)
	bring_library "${programs[@]}"
	touch "$dir/complete"
	drop_packages "$dir/packages"
	use_suite bookworm
}

# use_newer_tools ROOT: have modules for this kernel, below .cache/kernels/SERIES, built with
# these tools.
use_newer_tools()
{
	local root=$1 kbuild programs headers
	# The path starts from the headers.
	# shellcheck disable=SC2016 # the text is for make
	local tools='$(realpath $(dir $(lastword $(MAKEFILE_LIST)))../../../../../../'$newer')/usr/bin'

	kbuild=$(echo "$root"/usr/lib/linux-kbuild-*)
	# These scripts choose a program for the kind of processor; put the program in their
	# place.
	mv "$kbuild"/scripts/mod/modpost{.real-lsb-64,}
	mv "$kbuild"/tools/objtool/objtool{.real-x86,}
	rm "$kbuild"/scripts/mod/modpost.real-* "$kbuild"/tools/objtool/objtool.real-*
	mapfile -t programs < <(find "$kbuild" -type f -perm -u+x -exec grep -lF "ld-linux-x86-64" {} +)
	bring_library "${programs[@]}"
	for headers in "$root"/usr/src/linux-headers-*-amd64; do
		sed -i "s|^override CROSS_COMPILE.*|override CROSS_COMPILE := $tools/x86_64-linux-gnu-|" \
			"$headers/.kernelvariables"
		echo "PAHOLE := $tools/pahole" >>"$headers/.kernelvariables"
	done
}
