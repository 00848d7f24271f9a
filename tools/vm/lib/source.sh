# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
# Sourced, after common.sh and apt.sh: the source of the newest Debian kernel, and kernels that are
# built from it because no distribution has them.
#
# .cache/source.tar        the source, packed as Debian does (xz)
# .cache/source            unpacked
# .cache/kernels/6.12-debug   release, vmlinuz and build/, which modules are
#                          built against; `complete' has a sum of its configuration

# use_source SERIES: use the source of this series from here on. If it is not 6.12, it is in
# .cache/source-SERIES.
use_source()
{
	source_series=$1
	source_dir=$cache/source
	[ "$1" = 6.12 ] || source_dir+=-$1
}
use_source 6.12

get_source_package()
{
	[ -e "$source_dir.tar" ] && return
	get_packages "$source_dir.packages" echo "linux-source-$source_series"
	say "keeping the kernel source in ${source_dir#"$top"/}.tar"
	dpkg-deb --fsys-tarfile "$(deb_files "$source_dir.packages")" |
		tar -xO "./usr/src/linux-source-$source_series.tar.xz" >"$source_dir.tar.tmp"
	mv "$source_dir.tar.tmp" "$source_dir.tar"
	drop_packages "$source_dir.packages"
}

# unpack_source FOLDER [PATH...]: unpack the whole source, or these paths.
unpack_source()
{
	local dir=$1
	shift

	[ -e "$dir" ] && return
	get_source_package
	say "unpacking the kernel source into ${dir#"$top"/}"
	rm -rf "$dir.tmp"
	mkdir "$dir.tmp"
	xz -dc "$source_dir.tar" |
		tar -x -C "$dir.tmp" --strip-components=1 "${@/#/linux-source-$source_series/}"
	mv "$dir.tmp" "$dir"
}

get_source()
{
	unpack_source "$source_dir"
}

# Get the kernel's test harness, which the headers packages lack.
get_kselftest()
{
	local path=tools/testing/selftests

	unpack_source "$cache/kselftest" \
		$path/lib.mk $path/kselftest.h $path/kselftest_harness.h $path/kselftest
}

# Print the options that were asked for, but are set otherwise.
missing_options()
{
	local config=$1 option

	shift
	sed -n 's/^\(CONFIG_[^ ]*=.*\)/\1/p; s/^# \(CONFIG_.* is not set\)$/\1/p' "$@" |
		while read -r option; do
			case $option in
			*=n) grep -q "^${option%=n}=" "$config" && echo "$option" ;;
			*=*) grep -qxF "$option" "$config" || echo "$option" ;;
			*) grep -q "^${option% is not set}=" "$config" && echo "# $option" ;;
			esac
		done
}

# build_kernel SERIES ARCH IMAGE FRAGMENT...: build a small kernel, from tinyconfig and these
# fragments in configs/. The build folder is kept, for modules.
build_kernel()
{
	local series=$1 arch=$2 image=$3 dir=$cache/kernels/$1 fragments made_of missing
	shift 3
	fragments=("${@/#/$top/tools/vm/configs/}")

	get_source
	made_of=$(cat "${fragments[@]}" | sha256sum)
	[ "$(cat "$dir/complete" 2>/dev/null)" != "$made_of" ] || return 0
	rm -f "$dir/complete"
	mkdir -p "$dir/build"
	local make=(make -C "$cache/source" O="$dir/build" ARCH="$arch")

	quietly "$dir/config.log" "${make[@]}" tinyconfig
	cat "${fragments[@]}" >>"$dir/build/.config"
	echo "CONFIG_LOCALVERSION=\"-${series#*-}\"" >>"$dir/build/.config"
	quietly "$dir/config.log" "${make[@]}" olddefconfig
	missing=$(missing_options "$dir/build/.config" "${fragments[@]}")
	[ -z "$missing" ] || die "the kernel $series would lack: $missing"

	say "building the kernel $series; this takes some minutes, once"
	quietly "$dir/build.log" "${make[@]}" -j"$(nproc)" "${image##*/}" modules_prepare
	# This kernel has no modules; vmlinux exports all that a module may use.
	cp "$dir/build/vmlinux.symvers" "$dir/build/Module.symvers"
	cp "$dir/build/$image" "$dir/vmlinuz"
	"${make[@]}" -s --no-print-directory kernelrelease >"$dir/release"
	echo "$made_of" >"$dir/complete"
}
