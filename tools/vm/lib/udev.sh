# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
# Sourced by setup.sh, after common.sh and apt.sh: a minimal Debian with the real udev.

# get_udev SUITE: make the root of the virtual machine for selftests/host/udev.sh, below
# .cache/udev, with the udev of that Debian and the programs that an installation runs. Leave out
# documents and the hardware database.
get_udev()
{
	local dir=$cache/udev/$1 tmp=$cache/udev/$1.tmp folder libssl=libssl3

	[ -e "$dir" ] && return
	use_suite "$1"
	[ "$suite" = bookworm ] || libssl=libssl3t64
	mkdir -p "${dir%/*}"
	say "getting the udev of Debian $suite, for a test in a virtual machine"
	get_packages "$dir.packages" printf '%s\n' bash coreutils dash findutils grep kmod make mawk \
		sed systemd udev util-linux libacl1 libapparmor1 libattr1 libaudit1 libblkid1 \
		libc6 libcap2 libcap-ng0 libcrypt1 libgcrypt20 libgpg-error0 libip4tc2 libkmod2 \
		liblz4-1 liblzma5 libmount1 libpam0g libpcre2-8-0 libseccomp2 libselinux1 \
		$libssl libsystemd-shared libtinfo6 libzstd1 zlib1g
	rm -rf "$tmp"
	mkdir -p "$tmp"
	for folder in bin sbin lib lib64; do
		mkdir -p "$tmp/usr/$folder"
		ln -s "usr/$folder" "$tmp/$folder"
	done
	while read -r deb; do
		dpkg-deb --fsys-tarfile "$deb" |
			tar -x --keep-directory-symlink -C "$tmp" \
				--exclude './usr/share/*' --exclude '*/hwdb.d/*'
	done < <(deb_files "$dir.packages")
	mv "$tmp" "$dir"
	drop_packages "$dir.packages"
	use_suite bookworm
}
