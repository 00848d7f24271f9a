# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # shared with those that source this
# Sourced, after common.sh and cross.sh: an arm64 machine as the guest. The series of its kernels
# end with -arm64, as in 6.12-arm64; 6.12-arm64-16k has pages of 16,384 bytes.
#
# .cache/apt-arm64    an apt state that knows both architectures
# .cache/arm64        busybox, and the libraries of the test programs
#
# The module and the programs are compiled on this machine, with the compiler that Debian's headers
# for arm64 name. kbuild's own tools are this machine's.

arm64_files=$cache/arm64

tools_arm64='
qemu-system-arm  is the arm64 machine
'

# with_arm64 COMMAND...: run a function of apt.sh that also finds arm64's packages, if amd64 has
# none of that name.
with_arm64()
{
	(
		architectures=amd64,arm64
		apt_state=$cache/apt-arm64
		"$@"
	)
}

get_arm64_files()
{
	local tmp=$arm64_files.tmp packages=$cache/arm64.packages deb

	get_cross arm64
	[ -e "$arm64_files" ] && return
	with_arm64 get_packages "$packages" printf '%s:arm64\n' busybox-static liburing-dev
	rm -rf "$tmp"
	while read -r deb; do
		unpack "$deb" "$tmp"
	done < <(deb_files "$packages")
	mv "$tmp" "$arm64_files"
	drop_packages "$packages"
}

# Call it after sourcing build.sh: build for arm64 from here on.
build_for_arm64()
{
	local target
	target=$(cross_target arm64)

	use_cross arm64
	# Of the event loops, Debian's arm64 packages are fetched for io_uring only.
	compiler=(CC="$(cross_compiler arm64) -isystem $arm64_files/usr/include \
-L$arm64_files/usr/lib/$target" AR="$target-ar" LOOPS_LDFLAGS=-static GLIB_CFLAGS=)
	programs=$build/selftests-arm64
	busybox=$arm64_files/bin/busybox
}

# boot_arm64 SERIES INITRAMFS 'KERNEL ARGUMENTS' QEMU-ARGUMENT...
#
# The machine's own serial line is not a ttyS. So each -serial becomes a line on the PCI bus: then
# they have the same names as on a PC.
boot_arm64()
{
	local series=$1 initramfs=$2 arguments=$3 lines=0 qemu=()
	shift 3

	while [ $# -gt 0 ]; do
		if [ "$1" = -serial ]; then
			qemu+=(-chardev "file,id=line$lines,path=${2#file:}"
				-device "pci-serial,chardev=line$lines")
			lines=$((lines + 1))
		else
			qemu+=("$1" "$2")
		fi
		shift 2
	done
	exec qemu-system-aarch64 -machine virt,gic-version=3 -cpu neoverse-n1 \
		-accel tcg,thread=multi -smp "${SMP:-2}" -m "${MEMORY:-2G}" \
		-nodefaults -no-reboot -display none \
		-kernel "$cache/kernels/$series/vmlinuz" -initrd "$initramfs" \
		-append "norandmaps $arguments" "${qemu[@]}" 9>&-
}
