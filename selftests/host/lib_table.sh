#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test <twheel/table.h>: it compiles alone and beside the other headers, in each language and
# width and without a warning; structures have the sizes that the header promises to other
# languages; and threads share a table in the process without a data race.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/lib_table
includes=(-I"$top/lib" -I"$top/uapi")
# The kernel's headers for 32 bits are those for 64 bits, but gcc does not search that folder.
for_32=(-m32 -idirafter /usr/include/x86_64-linux-gnu)
strict=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wcast-qual -Wshadow -Wundef
	-Werror)

# The cases share nothing, so they need no fresh tree.
fresh_tree() { :; }

# compiles SOURCE COMPILER...
compiles()
{
	echo "$1" | "${@:2}" "${includes[@]}" "${strict[@]}" -fsyntax-only -
}

has_its_sizes()
{
	compiles "#include <twheel/table.h>
		typedef char options[sizeof(struct twheel_table_options) == 32 ? 1 : -1];
		typedef char change[sizeof(struct twheel_table_change) == 16 ? 1 : -1];" "$@"
}

compiles_beside_the_others()
{
	local header

	for header in linux/twheel.h twheel.h twheel/device.h twheel/table.h; do
		compiles "#include <twheel/table.h>
			#include <$header>" "$@"
		compiles "#include <$header>
			#include <twheel/table.h>" "$@"
	done
}

# Other languages call the functions by name, so none may be inline.
has_no_inline_function()
{
	! echo '#include <twheel/table.h>' | gcc -x c -E "${includes[@]}" - | grep -w inline
}

has_no_data_race()
{
	local flags='-O1 -g -fsanitize=thread'

	make -s -C "$top/lib" OUTPUT="$work/tsan" CFLAGS="$flags" "$work/tsan/libtwheel.a"
	# shellcheck disable=SC2086 # words
	gcc $flags -std=gnu11 -D_GNU_SOURCE -pthread "${includes[@]}" -I"$top/selftests" \
		-I"$top/selftests/lib" -isystem "$ksft" -o "$work/shared" \
		"$top/selftests/lib/twheel_lib_table_shared.c" "$work/tsan/libtwheel.a"
	TSAN_OPTIONS=halt_on_error=1 "$work/shared" -V device
}

rm -rf "$work"
mkdir -p "$work/tsan"

echo "TAP version 13"
echo "1..15"
for compiler in gcc clang; do
	for language in 'c -std=c99' 'c -std=c11' 'c++ -std=c++11'; do
		for width in '' "${for_32[*]}"; do
			read -ra command <<<"$compiler -x $language $width"
			holds "the header compiles alone and has its sizes: ${command[*]}" \
				has_its_sizes "${command[@]}"
		done
	done
done
holds "the header compiles beside the other headers, in any order" \
	compiles_beside_the_others gcc -x c -std=c11
holds "the header has no inline function" has_no_inline_function
if [ -e "$ksft/kselftest_harness.h" ]; then
	holds "threads that share a table in the process have no data race" has_no_data_race
else
	verdict ok "threads that share a table in the process have no data race # SKIP no kselftest"
fi
