#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Check that <linux/twheel.h> compiles without any other header, in each language and width, and
# that each command is both an enumerator and a macro.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../vm/lib/common.sh"

number=0
# The kernel's headers for 32 bits are those for 64 bits, but gcc does not search that folder.
for_32=(-m32 -idirafter /usr/include/x86_64-linux-gnu)

# After the #undef, the name is the enumerator's.
source='#include <linux/twheel.h>
#ifndef TWHEEL_IOC_ARM
#error not a macro
#endif
enum { IS_CONSTANT = 1 / (TWHEEL_IOC_ADVANCE == 0xf708) };'
while read -r name; do
	source+="
enum { MACRO_$name = (int)$name };
#undef $name
enum { SAME_$name = 1 / ((int)MACRO_$name == (int)$name) };"
done < <(sed -n 's/^\t\(TWHEEL_IOC_[A-Z]*\)\t*= _IO(.*/\1/p' "$top/uapi/linux/twheel.h")

compiles()
{
	local verdict='not ok'

	number=$((number + 1))
	if echo "$source" | "$@" -I"$top/uapi" -pedantic -Wall -Wextra -Werror -fsyntax-only -; then
		verdict=ok
	fi
	echo "$verdict $number the uapi header compiles alone: $*"
}

mkdir -p "$build"
echo "TAP version 13"
echo "1..6"
compiles gcc -x c -std=c99
compiles gcc -x c -std=c99 "${for_32[@]}"
compiles clang -x c -std=c99
compiles g++ -x c++ -std=c++11
compiles g++ -x c++ -std=c++11 "${for_32[@]}"
compiles clang -x c++ -std=c++11
