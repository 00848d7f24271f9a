#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The module builds without a warning, for each kernel: by gcc and by clang with
# W=1, and sparse has nothing to say about our files. For a 32-bit kernel it is
# not built at all.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/common.sh"
. "$(dirname "$0")/../../tools/vm/build.sh"

here=$top/selftests/host
number=0
about_us='twheel[^ /]*\.[ch]:[0-9:]* (warning|error):'

# builds_cleanly WHAT SERIES COMPLAINT MAKE-ARGUMENT...
builds_cleanly()
{
	local what=$1 series=$2 complaint=$3 verdict='not ok'
	local dir=$build/$series/$what
	shift 3

	copy_module_sources "$dir"
	if make -C "$dir" KDIR="$(kernel_headers "$series")" "$@" modules \
		>"$dir/build.log" 2>&1 && ! grep -E "$complaint" "$dir/build.log"; then
		verdict=ok
	else
		cat "$dir/build.log"
	fi
	number=$((number + 1))
	echo "$verdict $number $what has nothing to say, headers of $series"
}

# refuses_32_bits SERIES: its configuration, but for the one line.
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

echo "TAP version 13"
echo "1..$((4 * ${#kernels[@]}))"
for series in "${kernels[@]}"; do
	builds_cleanly gcc "$series" 'warning:|WARNING:' W=1
	# These two also look into the kernel's headers, which are not ours to mend.
	builds_cleanly clang "$series" "$about_us" W=1 CC="$here/clang-cc"
	builds_cleanly sparse "$series" "$about_us" C=2
	refuses_32_bits "$series"
done
