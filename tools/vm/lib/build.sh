# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
# Sourced: build what goes into the guest, all of it below .cache/build.

# The programs in the guest may be for another architecture: arguments of make to compile them,
# the folder for those of the tests, and the busybox beside them.
compiler=()
programs=$build/selftests
busybox=$cache/busybox/bin/busybox

# Copy the module's sources, so that each kernel and compiler has its own tree, and the user's
# tree has no products. Remove older products.
copy_module_sources()
{
	local dir=$1

	rm -rf "$dir"
	mkdir -p "$dir"
	(cd "$top" && cp -pr Kbuild Makefile dkms.conf twheel_*.c engine include uapi "$dir/" &&
		cp -p --parents selftests/syncpoints/syncpoint.c "$dir/")
}

# module_tree SERIES: print the folder where the module for that kernel is built.
module_tree()
{
	echo "$build/$1/module"
}

# build_module SERIES: for the debug kernel, the module records coverage, for the fuzzer and for
# the report at the end. For the debug and the race kernel, it has sync points.
build_module()
{
	local series=$1 dir options=()

	dir=$(module_tree "$series")
	case $series in
	# name_calls needs the real folder in the debug information.
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

# If nobody debugs a module, leave out this information, which takes a quarter of the time.
no_debug_info=(KCFLAGS=-g0 CONFIG_DEBUG_INFO_BTF_MODULES=)

# build_grown SERIES: build the module as a later version might be: each structure of the ABI that
# may grow has become longer. Programs of today must work with it.
build_grown()
{
	local series=$1 dir=$build/$1/grown

	say "building a module with larger structures"
	copy_module_sources "$dir"
	awk -f "$top/selftests/releases/later.awk" "$top/uapi/linux/twheel.h" \
		>"$dir/uapi/linux/twheel.h"
	# Keep the sizes of the first release, and set the new members.
	sed -i '/^static_assert(sizeof(struct twheel_/s/ == / >= /' "$dir/twheel_ioctl.c"
	sed -i '/^static_assert(offsetofend(struct twheel_event, flags)/d
		s/!access_put_half(TWHEEL_EVENT_ENDED, &user->flags)/& ||\
			!access_put(0, \&user->grown[0]) || !access_put(0, \&user->grown[1])/' \
		"$dir/engine/read.c"
	quietly "$dir/build.log" make -C "$dir" -j"$(nproc)" KDIR="$(kernel_headers "$series")" \
		"${no_debug_info[@]}" modules
	mv "$dir/twheel.ko" "$dir/twheel_grown.ko"
}

# name_calls FILE: write a file beside a module that lists each call in it, whatever the compiler
# inlined: "SECTION OFFSET FUNCTION...". OFFSET is where the call returns to. The functions are
# those of the module's source that contain the call, the innermost first. The list is for
# selftests/fault. Then the debug information is removed from the module.
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
			function print_call() {
				if (address in returns)
					print section, returns[address] (ours ? ours : name)
			}
			NR == FNR {
				returns[sprintf("0x%16s", $1)] = $2
				next
			}
			/^0x/ {
				print_call()
				sub(/^0x0*/, "")
				address = sprintf("0x%16s", $0)
				ours = ""
				next
			}
			# If a kernel function was not inlined, its name stands alone.
			{
				name = " " $0
				getline
				if (index($0, folder))
					ours = ours name
			}
			END { print_call() }' "$ko.returns" -
	done >"${ko%.ko}.calls"
	rm "$ko.returns"
	strip --strip-debug "$ko"
}

# sources_key SERIES: print a sum of the module's sources and the kernel's release.
sources_key()
{
	cd "$top" && find -L Kbuild Makefile dkms.conf twheel_*.c engine include uapi selftests/syncpoints \
		"$cache/kernels/$1/release" -type f -exec cat {} + | sha256sum
}

# build_quickly SERIES FOLDER: copy the module with its tree into FOLDER. It is built once, in a
# tree that is kept until the sources change. If the test of dkms has built it from these sources,
# that module is used.
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

# Build the module with the KUnit suites, which include the module's sources.
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

# make_examples FOLDER ARGUMENT...: build the examples, with the event loops of .cache/loops and
# SQLite of .cache/jobs if setup.sh has fetched them.
make_examples()
{
	local dir=$1 loops=$cache/loops/usr jobs=$cache/jobs/usr libraries glib
	shift

	libraries=$loops/lib/x86_64-linux-gnu
	if [ -d "$loops" ] && [ ${#compiler[@]} = 0 ]; then
		glib="-I$loops/include/glib-2.0 -I$libraries/glib-2.0/include"
		# Libraries that these libraries need are in the same folder.
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

# Build the examples once: they are the same for each kernel.
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

# Build twheelctl, for guests of this machine's architecture.
build_twheelctl()
{
	say "building twheelctl"
	mkdir -p "$build/twheelctl"
	rm -f "$build/twheelctl/twheelctl"
	quietly "$build/twheelctl.log" make -C "$top/tools/twheelctl" \
		OUTPUT="$build/twheelctl" CFLAGS='-O2 -g -Werror'
}

# selftests_make KIND ARGUMENT...: call make for a kind of test programs, see selftests/Makefile.
selftests_make()
{
	local kind=$1
	shift
	make -C "$top/selftests" KSFT_DIR="$ksft" KIND="$kind" OUTPUT="$programs/$kind" \
		"${compiler[@]}" "$@"
}

# build_selftests KIND: build test programs. If one does not compile, the others are built
# nevertheless, and no older build of it is left.
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

# Print the paths of all test programs, including those that could not be built.
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

# Print the files that twheel_versions_module.sh needs: programs, and the promised names.
version_files()
{
	sort -u "$top"/selftests/releases/*/names >"$build/promised"
	printf '%s\n' "$build/promised" "$programs"/usual/versions_*
}

# pack_root FOLDER FILE: pack the folder into an initramfs, and remove the folder.
pack_root()
{
	(cd "$1" && find . | cpio -o -H newc -R 0:0 --quiet) >"$2"
	rm -rf "$1"
}

# copy_libraries ROOT PROGRAM...: copy the shared libraries of these programs into the folders
# that the guest's loader searches.
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

# make_initramfs FILE MODULE PROGRAM...: pack the guest. `more_modules' are put beside the module,
# and `more_files' beside the programs. An element of `more_folders' is "FOLDER=PATH": FOLDER is
# put at PATH.
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
	# In an archive of the tree, the x bits may be lost.
	chmod -R a+x "$root/bin" "$root/programs"
	ln -s bin/init "$root/init"
	pack_root "$root" "$file"
}
