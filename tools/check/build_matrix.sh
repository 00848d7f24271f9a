#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Build the module for each kernel with gcc 12 or 14 and with clang, with W=1, and check it with
# sparse: there must be no warning about our files. A 32-bit kernel must be refused. The oldest
# and the newest kernel, which build in different ways, must give the same module in any folder.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../vm/lib/common.sh"
. "$(dirname "$0")/../vm/lib/build.sh"
. "$(dirname "$0")/../vm/lib/newer.sh"

here=$top/tools/check
number=0
about_us='(twheel[^ /]*|engine/[^ /]*)\.[ch]:[0-9:]* (warning|error):'

# builds_cleanly NAME SERIES COMPLAINT MAKE-ARGUMENT...: build a copy of the sources. If `tree' is
# set, build in that folder again. COMPLAINT is a pattern for lines of the log that must not
# occur.
tree=
builds_cleanly()
{
	local what=$1 series=$2 complaint=$3 verdict='not ok'
	local dir=$build/$series/${tree:-$what}
	shift 3

	[ -n "$tree" ] || copy_module_sources "$dir"
	if make -j"$(nproc)" -C "$dir" KDIR="$(kernel_headers "$series")" "$@" modules \
		>"$dir/build.log" 2>&1 && ! grep -E "$complaint" "$dir/build.log"; then
		verdict=ok
	else
		cat "$dir/build.log"
	fi
	number=$((number + 1))
	echo "$verdict $number $what has nothing to say, headers of $series"
}

# refuses_32_bits SERIES: build with the configuration of that kernel, but without CONFIG_64BIT.
refuses_32_bits()
{
	local series=$1 verdict='not ok'
	local dir=$build/$series/32-bit

	copy_module_sources "$dir"
	if make -C "$dir" KDIR="$(kernel_headers "$series")" CONFIG_64BIT= modules \
		>"$dir/build.log" 2>&1; then
		echo "it has built $(cd "$dir" && ls ./*.ko)"
	elif grep -q 'twheel needs a 64-bit kernel' "$dir/build.log" &&
		[ -z "$(find "$dir" -name '*.o')" ]; then
		verdict=ok
	else
		cat "$dir/build.log"
	fi
	number=$((number + 1))
	echo "$verdict $number a 32-bit kernel is refused, headers of $series"
}

# same_in_any_folder SERIES: build as gcc did above, in another folder, and compare the modules.
same_in_any_folder()
{
	local series=$1 verdict='not ok'
	local dir="$build/$series/another/folder"

	copy_module_sources "$dir"
	if make -j"$(nproc)" -C "$dir" KDIR="$(kernel_headers "$series")" W=1 modules \
		>"$dir/build.log" 2>&1; then
		! cmp "$build/$series/gcc/twheel.ko" "$dir/twheel.ko" || verdict=ok
	else
		cat "$dir/build.log"
	fi
	number=$((number + 1))
	echo "$verdict $number the module is the same in any folder, headers of $series"
}

echo "TAP version 13"
mapfile -t ends < <(printf '%s\n' "${kernels[0]}" "${kernels[-1]}" | uniq)
echo "1..$((5 * ${#kernels[@]} + ${#ends[@]}))"
for series in "${kernels[@]}"; do
	other=(gcc-14 "$newer_tools/usr/bin/x86_64-linux-gnu-gcc-14")
	! is_newer "$series" || other=(gcc-12 "$here/gcc-12-cc")
	builds_cleanly gcc "$series" 'warning:|WARNING:' W=1
	# These tools also complain about the kernel's headers, which are not ours. sparse runs in
	# the tree that gcc built: with the same arguments, nothing is compiled again.
	tree=gcc builds_cleanly sparse "$series" "$about_us" W=1 C=2
	# Leave out debug information: it causes no warnings, and the build takes a quarter of the
	# time.
	builds_cleanly "${other[0]}" "$series" "$about_us" W=1 CC="${other[1]}" "${no_debug_info[@]}"
	builds_cleanly clang "$series" "$about_us" W=1 CC="$here/clang-cc" "${no_debug_info[@]}"
	refuses_32_bits "$series"
done
for series in "${ends[@]}"; do
	same_in_any_folder "$series"
done
