#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# <linux/twheel.h> and <linux/twheel_calls.h> need nothing before them, in each language
# and width, and what they define for programs compiles without a warning, and links,
# wherever it is there. The commands are an enum and macros as well.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../vm/common.sh"

number=0
# The kernel's headers for 32 bits are those for 64 bits, which gcc does not look for there.
for_32=(-m32 -idirafter /usr/include/x86_64-linux-gnu)

source='#include <linux/twheel.h>
#ifndef TWHEEL_IOC_ARM
#error not a macro
#endif
enum twheel_command command = TWHEEL_IOC_ARM;
enum { IS_CONSTANT = 1 / (TWHEEL_IOC_ADVANCE == 0xf708) };
#include <linux/twheel_calls.h>
int main(void)
{
	struct twheel_arm arm;
	struct twheel_status status;
	switch (command) {
	case TWHEEL_IOC_ARM:
		return twheel_arm_one(0, &arm);
	case TWHEEL_IOC_REARM:
		return twheel_rearm_one(0, &arm);
	case TWHEEL_IOC_CANCEL:
		return twheel_cancel_one(0, 0);
	default:
		return twheel_query_one(0, &status);
	}
}'

compiles()
{
	local verdict='not ok'

	number=$((number + 1))
	if echo '#include <linux/twheel.h>' | "$@" -I"$top/uapi" -pedantic -Wall -Wextra \
		-Werror -fsyntax-only - &&
		echo '#include <linux/twheel_calls.h>' | "$@" -I"$top/uapi" -pedantic -Wall \
			-Wextra -Werror -fsyntax-only - &&
		echo "$source" | "$@" -I"$top/uapi" -pedantic -Wall -Wextra \
		-Werror -fsyntax-only -; then
		verdict=ok
	fi
	echo "$verdict $number each uapi header compiles alone: $*"
}

# A program that moves a timeout by a table of uint64_t; to be compiled, or to be refused.
program='
#include <linux/twheel.h>
#include <stdint.h>

static uint64_t words[8];

int main(int argc, char **argv)
{
	uint64_t id = (uint64_t)argc << 32 | 5, later = twheel_refresh_deadline(argc, 19);

	(void)argv;
	/* Up to a grain, and not down to the one before. */
	if (later != 1ULL << TWHEEL_REFRESH_GEN_BITS)
		return 2;
	twheel_refresh_blind(words, id, later);
	return !twheel_refresh(words, id, later);
}'

links()
{
	local verdict='not ok'

	number=$((number + 1))
	# There may be no library of 32 bits, or no support of the kernel for such programs.
	if ! { echo 'int main(void) { return 0; }' | "$@" -o "$build/refreshes" - &&
	       "$build/refreshes"; } 2>/dev/null; then
		echo "ok $number # SKIP nothing links and runs here: $*"
		return
	fi
	if echo "$program" | "$@" -I"$top/uapi" -O2 -Wall -Wextra -Werror -o "$build/refreshes" - \
	   && "$build/refreshes"; then
		verdict=ok
	fi
	echo "$verdict $number a program that refreshes compiles, links and runs: $*"
}

# Where an atomic store takes a lock, the kernel does not take it.
is_refused()
{
	local verdict='not ok'

	number=$((number + 1))
	if ! echo "$program" | "$@" -I"$top/uapi" -Werror -fsyntax-only - 2>/dev/null &&
	   echo '#include <linux/twheel.h>' | "$@" -I"$top/uapi" -Werror -fsyntax-only -; then
		verdict=ok
	fi
	echo "$verdict $number without lock-free atomics the functions are not there: $*"
}

mkdir -p "$build"
echo "TAP version 13"
echo "1..14"
compiles gcc -x c -std=c99
compiles gcc -x c -std=c99 "${for_32[@]}"
compiles clang -x c -std=c99
compiles g++ -x c++ -std=c++11
compiles g++ -x c++ -std=c++11 "${for_32[@]}"
compiles clang -x c++ -std=c++11
links gcc -x c -std=c99
links gcc -x c -std=c99 "${for_32[@]}"
links clang -x c -std=c99
links clang -x c -std=c99 "${for_32[@]}"
links g++ -x c++ -std=c++11
links clang -x c++ -std=c++11 "${for_32[@]}"
is_refused gcc -x c -std=c99 "${for_32[@]}" -march=i486
is_refused clang -x c -std=c99 "${for_32[@]}" -march=i486
