# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
# Sourced: building what goes into the guest, all of it below .cache/build.

# The module's sources, copied so that each kernel and compiler has its own tree
# and none of it is in the tree of the user. Older products must not survive.
copy_module_sources()
{
	local dir=$1

	rm -rf "$dir"
	mkdir -p "$dir"
	(cd "$top" && cp -pr Kbuild Makefile dkms.conf twheel_*.c include uapi "$dir/")
}

# module_tree SERIES: where the module for that kernel is built.
module_tree()
{
	echo "$build/$1/module"
}

build_module()
{
	local series=$1 dir

	dir=$(module_tree "$series")
	say "building twheel.ko for $(cat "$cache/kernels/$series/release")"
	copy_module_sources "$dir"
	quietly "$dir/build.log" make -C "$dir" KDIR="$(kernel_headers "$series")" modules
}

build_examples()
{
	say "building the examples"
	rm -rf "$build/examples"
	quietly "$build/examples.log" \
		make -C "$top/examples" OUTPUT="$build/examples" LDFLAGS=-static
}

example_programs()
{
	find "$build/examples" -type f -perm -u+x
}

selftests_make()
{
	make -C "$top/selftests" KSFT_DIR="$ksft" OUTPUT="$build/selftests" "$@"
}

# One that does not compile must not keep the others from being run, nor leave an
# older build of itself behind.
build_selftests()
{
	say "building the test programs"
	mkdir -p "$build/selftests"
	quietly "$build/selftests.log" selftests_make -j2 all && return
	rm -rf "$build/selftests"
	mkdir -p "$build/selftests"
	selftests_make -k -j2 all >/dev/null 2>&1 || return
}

# The paths of all test programs, also of those that could not be built.
selftest_programs()
{
	local name
	for name in $(selftests_make -s list); do
		case $name in
		*.sh) echo "$top/selftests/$name" ;;
		*) echo "$build/selftests/$name" ;;
		esac
	done
}

# make_initramfs FILE MODULE PROGRAM...: packs the guest.
make_initramfs()
{
	local file=$1 module=$2 root=$1.root
	shift 2

	rm -rf "$root"
	mkdir -p "$root"/{bin,lib,programs}
	cp "$cache/busybox/bin/busybox" "$top"/tools/vm/guest/* "$root/bin/"
	cp "$module" "$root/lib/twheel.ko"
	[ $# -eq 0 ] || cp "$@" "$root/programs/"
	ln -s bin/init "$root/init"
	(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet) >"$file"
	rm -rf "$root"
}
