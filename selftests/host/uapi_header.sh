#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# <linux/twheel.h> needs nothing before it, in each language and width.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/common.sh"

number=0

compiles()
{
	local verdict='not ok'

	number=$((number + 1))
	if echo '#include <linux/twheel.h>' | "$@" -I"$top/uapi" -pedantic -Wall -Wextra \
		-Werror -fsyntax-only -; then
		verdict=ok
	fi
	echo "$verdict $number the uapi header compiles alone: $*"
}

echo "TAP version 13"
echo "1..6"
compiles gcc -x c -std=c99
compiles gcc -x c -std=c99 -m32
compiles clang -x c -std=c99
compiles g++ -x c++ -std=c++11
compiles g++ -x c++ -std=c++11 -m32
compiles clang -x c++ -std=c++11
