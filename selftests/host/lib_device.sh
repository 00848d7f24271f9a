#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Test <twheel/device.h>: it compiles alone and beside the other headers, in each language and
# width and without a warning, with and without its inline functions; the words of the refresh
# table need no library; and a program in C++ links and runs.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/lib_device
includes=(-I"$top/lib" -I"$top/uapi")
# The kernel's headers for 32 bits are those for 64 bits, but gcc does not search that folder.
for_32=(-m32 -idirafter /usr/include/x86_64-linux-gnu)
strict=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wcast-qual -Wshadow -Wundef)
strict_cxx=(-Wold-style-cast -Wzero-as-null-pointer-constant)

# The cases share nothing, so they need no fresh tree.
fresh_tree() { :; }

# compiles SOURCE COMPILER...
compiles()
{
	echo "$1" | "${@:2}" "${includes[@]}" -Werror -fsyntax-only -
}

compiles_alone()
{
	compiles '#include <twheel/device.h>' "$@" "${strict[@]}"
	compiles '#include <twheel/device.h>' "$@" "${strict[@]}" -DTWHEEL_NO_INLINE
}

# A program may include two headers in either order, or one of them twice.
compiles_beside_the_others()
{
	local header

	for header in linux/twheel.h twheel.h twheel/device.h; do
		compiles "#include <twheel/device.h>
			#include <$header>" "$@"
		compiles "#include <$header>
			#include <twheel/device.h>" "$@"
	done
}

write_words()
{
	cat <<-'EOT'
	#include <errno.h>
	#include <twheel/device.h>

	static twheel_word_t words[8];

	int main(int argc, char **argv)
	{
		uint64_t id = (uint64_t)(unsigned int)argc << 32 | 5;
		uint64_t later = twheel_refresh_deadline((uint64_t)(unsigned int)argc, 19);

		(void)argv;
		/* Up to a grain, and not down to the one before. */
		if (later != 1ULL << TWHEEL_REFRESH_GEN_BITS)
			return 1;
		twheel_refresh_blind(words, id, later);
	#ifdef NO_ATOMIC_WORDS
		return words[5] != 0 || twheel_refresh(words, id, later) != -EOPNOTSUPP;
	#else
		return words[5] != (later | 1) || twheel_refresh(words, id, later) != 1;
	#endif
	}
	EOT
}

# words COMPILER...
words()
{
	"$@" "${includes[@]}" -O2 -Wall -Wextra -Werror -o "$work/words" "$work/words.c"
	"$work/words"
}

# words_of_32_bits COMPILER...: skip this if there is no 32-bit C library, or if the kernel does
# not run 32-bit programs.
words_of_32_bits()
{
	local what="words of the refresh table need no library: $*"

	if { echo 'int main(void) { return 0; }' | "$@" "${for_32[@]}" -x c -o "$work/empty" - &&
	     "$work/empty"; } 2>/dev/null; then
		holds "$what" words "$@" "${for_32[@]}"
	else
		verdict ok "$what # SKIP nothing links and runs here"
	fi
}

write_program()
{
	cat <<-'EOT'
	#include <cerrno>
	#include <twheel/device.h>

	/* A device that is not there, and one that is something else. */
	static int open_error(const char *path)
	{
		twheel_setup setup = twheel_setup();
		twheel_device *device;

		setup.size = sizeof(setup);
		setup.clock = TWHEEL_CLOCK_MONOTONIC;
		return twheel_device_open(&device, path, 0, &setup);
	}

	int main()
	{
		twheel_device *device;
		twheel_word_t table[1] = {0};

		if (open_error("/nonexistent") != -ENOENT || open_error("/dev/null") != -ENOTTY)
			return 1;
		if (twheel_device_adopt(&device, -1, nullptr) != -EBADF || device)
			return 2;
		return twheel_refresh(table, 1ULL << 32, twheel_refresh_deadline(1, 0)) != 1;
	}
	EOT
}

# links DEFINE LIBRARY...
links()
{
	g++ -std=c++17 "${includes[@]}" "${strict[@]}" "${strict_cxx[@]}" -Werror "$1" \
		"$work/program.cc" "${@:2}" -o "$work/program"
	LD_LIBRARY_PATH=$work/lib "$work/program"
}

rm -rf "$work"
mkdir -p "$work"
write_words >"$work/words.c"
write_program >"$work/program.cc"
quietly "$work/build.log" make -C "$top/lib" OUTPUT="$work/lib"

echo "TAP version 13"
echo "1..26"
for compiler in gcc clang; do
	for standard in c99 c11; do
		for width in '' "${for_32[*]}"; do
			read -ra command <<<"$compiler -x c -std=$standard $width"
			holds "the header compiles alone: ${command[*]}" compiles_alone "${command[@]}"
		done
	done
done
for standard in c++11 c++17; do
	for width in '' "${for_32[*]}"; do
		read -ra command <<<"-x c++ -std=$standard ${strict_cxx[*]} $width"
		holds "the header compiles alone: g++ ${command[*]}" \
			compiles_alone g++ "${command[@]}" -Wuseless-cast
		holds "the header compiles alone: clang ${command[*]}" compiles_alone clang "${command[@]}"
	done
done
holds "the header compiles beside the other headers, in any order: C" \
	compiles_beside_the_others gcc -x c -std=c11 -Wall -Wextra -Wpedantic
holds "the header compiles beside the other headers, in any order: C++" \
	compiles_beside_the_others g++ -x c++ -std=c++17 -Wall -Wextra -Wpedantic
holds "words of the refresh table need no library: gcc" words gcc -std=c99
holds "words of the refresh table need no library: clang" words clang -std=c99
words_of_32_bits gcc -std=c99
words_of_32_bits clang -std=c99
words_of_32_bits gcc -std=c99 -march=i486 -DNO_ATOMIC_WORDS
words_of_32_bits clang -std=c99 -march=i486 -DNO_ATOMIC_WORDS
holds "a program in C++ links and runs, with inline functions" links -DINLINE "$work/lib/libtwheel.a"
holds "a program in C++ links and runs, without inline functions" \
	links -DTWHEEL_NO_INLINE -L"$work/lib" -ltwheel
