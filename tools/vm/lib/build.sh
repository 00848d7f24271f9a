# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
# Sourced: building what goes into the guest, all of it below .cache/build.

# Of the programs in the guest, which need not be for this machine: what make is told to
# compile them, where those of the tests go, and the busybox beside them.
compiler=()
programs=$build/selftests
busybox=$cache/busybox/bin/busybox

# The module's sources, copied so that each kernel and compiler has its own tree
# and none of it is in the tree of the user. Older products must not survive.
copy_module_sources()
{
	local dir=$1

	rm -rf "$dir"
	mkdir -p "$dir"
	(cd "$top" && cp -pr Kbuild Makefile dkms.conf twheel_*.c engine include uapi "$dir/" &&
		cp -p --parents selftests/syncpoints/syncpoint.c "$dir/")
}

# module_tree SERIES: where the module for that kernel is built.
module_tree()
{
	echo "$build/$1/module"
}

# build_module SERIES: for the debug kernel, with what tells a fuzzer where it has
# been, and us where all tests have been.  For those that look for races, with syncpoints.
build_module()
{
	local series=$1 dir options=()

	dir=$(module_tree "$series")
	case $series in
	# name_calls goes by the folder.
	*-debug) options=(TWHEEL_SYNCPOINTS=1 KCOV_INSTRUMENT=y GCOV_PROFILE=y KCFLAGS=-g nowhere=) ;;
	*-race) options=(TWHEEL_SYNCPOINTS=1) ;;
	*-umldebug) options=(KCOV_INSTRUMENT=y) ;;
	esac
	say "building twheel.ko for $(cat "$cache/kernels/$series/release")"
	copy_module_sources "$dir"
	quietly "$dir/build.log" make -C "$dir" -j"$(nproc)" KDIR="$(kernel_headers "$series")" \
		"${options[@]}" modules
	[[ $series != *-debug ]] || name_calls "$dir/twheel.ko"
}

# For modules that nobody debugs: this information takes a quarter of the time.
no_debug_info=(KCFLAGS=-g0 CONFIG_DEBUG_INFO_BTF_MODULES=)

# build_grown SERIES: the module as a later version might be, in which each structure of
# the ABI that may grow has done so at its end. Programs of today have to work with it.
build_grown()
{
	local series=$1 dir=$build/$1/grown

	say "building a module with larger structures"
	copy_module_sources "$dir"
	awk -f "$top/selftests/releases/later.awk" "$top/uapi/linux/twheel.h" \
		>"$dir/uapi/linux/twheel.h"
	# The sizes of the first release stay; and what is new has a value.
	sed -i '/^static_assert(sizeof(struct twheel_/s/ == / >= /' "$dir/twheel_ioctl.c"
	sed -i '/^static_assert(offsetofend(struct twheel_event, flags)/d
		s/!access_put_half(TWHEEL_EVENT_ENDED, &user->flags)/& ||\
			!access_put(0, \&user->grown[0]) || !access_put(0, \&user->grown[1])/' \
		"$dir/engine/read.c"
	quietly "$dir/build.log" make -C "$dir" -j"$(nproc)" KDIR="$(kernel_headers "$series")" \
		"${no_debug_info[@]}" modules
	mv "$dir/twheel.ko" "$dir/twheel_grown.ko"
}

# name_calls FILE: beside a module, a file that tells of each call in it which functions
# of the module's source it stands in, whatever the compiler inlined where: "SECTION
# OFFSET FUNCTION...", with the offset that the call returns to, and the function before
# those that it was inlined into. It is for selftests/fault. The module is left without
# its debug information.
name_calls()
{
	local ko=$1 section

	# shellcheck disable=SC2013 # words
	for section in $(objdump -h "$ko" | grep -o ' \.text[^ ]*'); do
		objdump -d --no-show-raw-insn -j "$section" "$ko" |
			awk '/^ *[0-9a-f]+:/ {
				sub(/:/, "", $1)
				if (call)
					print call, $1
				call = $2 == "call" ? $1 : ""
			}' >"$ko.returns"
		cut -d ' ' -f 1 "$ko.returns" |
			addr2line -a -i -f -j "$section" -e "$ko" |
			awk -v section="$section" -v folder="${ko%/*}/" '
			function tell() {
				if (address in returns)
					print section, returns[address] (ours ? ours : name)
			}
			NR == FNR {
				returns[sprintf("0x%16s", $1)] = $2
				next
			}
			/^0x/ {
				tell()
				sub(/^0x0*/, "")
				address = sprintf("0x%16s", $0)
				ours = ""
				next
			}
			# Of a function of the kernel that was not inlined there is
			# nothing but itself.
			{
				name = " " $0
				getline
				if (index($0, folder))
					ours = ours name
			}
			END { tell() }' "$ko.returns" -
	done >"${ko%.ko}.calls"
	rm "$ko.returns"
	strip --strip-debug "$ko"
}

# sources_key SERIES: differs if the module's sources do, or the kernel.
sources_key()
{
	cd "$top" && find -L Kbuild Makefile dkms.conf twheel_*.c engine include uapi selftests/syncpoints \
		"$cache/kernels/$1/release" -type f -exec cat {} + | sha256sum
}

# build_quickly SERIES FOLDER: the module, in a tree of its own. All share one, which stays until the
# sources change. If the test of dkms has built it from these sources, it is not compiled again.
build_quickly()
{
	local tree=$build/$1/quick key

	mkdir -p "$build/$1"
	key=$(sources_key "$1")
	(
		flock 8
		if [ "$key" != "$(cat "$tree.key" 2>/dev/null)" ]; then
			rm -f "$tree.key"
			copy_module_sources "$tree"
			if [ "$key" = "$(cat "$build/$1/dkms.key" 2>/dev/null)" ]; then
				cp "$build/$1/dkms.ko" "$tree/twheel.ko"
			else
				quietly "$tree.log" make -C "$tree" -j"$(nproc)" \
					KDIR="$(kernel_headers "$1")" "${no_debug_info[@]}" modules
			fi
			echo "$key" >"$tree.key"
		fi
		rm -rf "$2"
		mkdir -p "$2"
		cp -a "$tree/." "$2/"
	) 8>"$tree.lock"
}

# The module with the KUnit suites, which include the module's sources.
build_kunit()
{
	local series=$1 dir=$build/$1/kunit

	say "building twheel_kunit.ko"
	copy_module_sources "$dir"
	mkdir -p "$dir/selftests"
	cp -r "$top/selftests/kunit" "$dir/selftests/"
	quietly "$dir/build.log" make -C "$(kernel_headers "$series")" -j"$(nproc)" \
		M="$dir/selftests/kunit" "${no_debug_info[@]}" modules
}

# make_examples FOLDER ARGUMENT...: with the event loops of .cache/loops and SQLite of .cache/jobs,
# where setup.sh has got them.
make_examples()
{
	local dir=$1 loops=$cache/loops/usr jobs=$cache/jobs/usr libraries glib
	shift

	libraries=$loops/lib/x86_64-linux-gnu
	if [ -d "$loops" ] && [ ${#compiler[@]} = 0 ]; then
		glib="-I$loops/include/glib-2.0 -I$libraries/glib-2.0/include"
		# What these libraries need is beside them.
		set -- "$@" CPPFLAGS="-isystem $loops/include" GLIB_CFLAGS="$glib" \
			LOOPS_LDFLAGS="-L$libraries -Wl,--disable-new-dtags,-rpath,$libraries"
	fi
	if [ -d "$jobs" ] && [ ${#compiler[@]} = 0 ]; then
		libraries=$jobs/lib/x86_64-linux-gnu
		set -- "$@" JOBS_CPPFLAGS="-isystem $jobs/include" \
			JOBS_LDFLAGS="-L$libraries -Wl,--disable-new-dtags,-rpath,$libraries"
	fi
	make -C "$top/examples" OUTPUT="$dir" LDFLAGS=-static "$@"
}

# Once: they are the same for each kernel.
examples_are_built=
build_examples()
{
	[ -z "$examples_are_built" ] || return 0
	say "building the examples"
	rm -rf "$build/examples"
	quietly "$build/examples.log" make_examples "$build/examples" "${compiler[@]}"
	examples_are_built=1
}

example_programs()
{
	find "$build/examples" -type f -perm -u+x ! -name '*.so*'
}

# The program that shows wheels, where its libraries are for the guest's machine.
build_twheelctl()
{
	say "building twheelctl"
	mkdir -p "$build/twheelctl"
	rm -f "$build/twheelctl/twheelctl"
	quietly "$build/twheelctl.log" make -C "$top/tools/twheelctl" \
		OUTPUT="$build/twheelctl" CFLAGS='-O2 -g -Werror'
}

# selftests_make KIND ARGUMENT...: the test programs for any kernel, or for the debug
# kernel, see selftests/Makefile.
selftests_make()
{
	local kind=$1
	shift
	make -C "$top/selftests" KSFT_DIR="$ksft" KIND="$kind" OUTPUT="$programs/$kind" \
		"${compiler[@]}" "$@"
}

# build_selftests KIND: one that does not compile must not keep the others
# from being run, nor leave an older build of itself behind.
build_selftests()
{
	local kind=$1 dir=$programs/$1

	say "building the $kind test programs"
	mkdir -p "$dir"
	quietly "$build/selftests.log" selftests_make "$kind" -j2 all && return
	rm -rf "$dir"
	mkdir -p "$dir"
	selftests_make "$kind" -k -j2 all >/dev/null 2>&1 || return
}

# The paths of all test programs, also of those that could not be built.
selftest_programs()
{
	local kind=$1 name

	for name in $(selftests_make "$kind" -s list); do
		case $name in
		*.sh) echo "$top"/selftests/*/"$name" ;;
		*) echo "$programs/$kind/$name" ;;
		esac
	done
}

# What twheel_versions_module.sh runs, and what it compares the module with.
version_files()
{
	sort -u "$top"/selftests/releases/*/names >"$build/promised"
	printf '%s\n' "$build/promised" "$programs"/usual/versions_*
}

# pack_root FOLDER FILE: into an initramfs; the folder goes.
pack_root()
{
	(cd "$1" && find . | cpio -o -H newc -R 0:0 --quiet) >"$2"
	rm -rf "$1"
}

# copy_libraries ROOT PROGRAM...: those of programs that are not static, to where the
# guest's loader looks, wherever they are here.
copy_libraries()
{
	local root=$1 library libraries=$1/lib/x86_64-linux-gnu
	shift

	mkdir -p "$libraries" "$root/lib64"
	while read -r library; do
		case $library in
		*/ld-linux-*) cp -L "$library" "$root/lib64/" ;;
		*) cp -L "$library" "$libraries/" ;;
		esac
	done < <(ldd "$@" 2>/dev/null | sed -nE 's|^\s+(.* => )?(/[^ ]*) \(0x.*|\2|p' | sort -u)
}

# make_initramfs FILE MODULE PROGRAM...: packs the guest; `more_modules' go to
# where the module goes, `more_files' to the programs. `more_folders' become parts of its root:
# "FOLDER=PATH", where PATH is where it goes.
more_modules=()
more_files=()
more_folders=()
make_initramfs()
{
	local file=$1 module=$2 root=$1.root folder
	shift 2

	rm -rf "$root"
	mkdir -p "$root"/{bin,lib,programs}
	cp "$busybox" "$top"/tools/vm/guest/* "$root/bin/"
	cp "$module" "$root/lib/twheel.ko"
	[ ${#more_modules[@]} -eq 0 ] || cp "${more_modules[@]}" "$root/lib/"
	set -- "$@" "${more_files[@]}"
	if [ $# -gt 0 ]; then
		cp "$@" "$root/programs/"
		copy_libraries "$root" "$@"
	fi
	for folder in "${more_folders[@]}"; do
		mkdir -p "$root${folder#*=}"
		cp -a "${folder%%=*}/." "$root${folder#*=}/"
	done
	# An archive of the tree may have lost them.
	chmod -R a+x "$root/bin" "$root/programs"
	ln -s bin/init "$root/init"
	pack_root "$root" "$file"
}
