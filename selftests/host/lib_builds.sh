#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Build libtwheel and its header as other projects do: with different compilers for library and
# program, optimizations, sanitizers, the warnings of each project in each language, other
# languages that call functions, and exceptions.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/lib_builds
programs=$top/selftests/lib/programs
includes=(-I"$top/lib" -I"$top/uapi")
case_options=-ex
# Use the bindgen that setup.sh has unpacked, or the system's.
bindgen=$cache/bindgen/usr/bin/bindgen
[ -x "$bindgen" ] || bindgen=$(command -v bindgen) || true
# musl comes without the kernel's headers.
kernel_headers=(-idirafter /usr/include -idirafter "/usr/include/$(uname -m)-linux-gnu")
# The system's headers for 32 bits are those for 64 bits.
for_32=(-m32 -idirafter "/usr/include/$(uname -m)-linux-gnu")

# The cases share nothing but libraries.
fresh_tree() { :; }

# library NAME VARIABLE...
library()
{
	make -s -C "$top/lib" OUTPUT="$work/$1" "${@:2}" 2>"$work/warnings"
	[ ! -s "$work/warnings" ] || { cat "$work/warnings"; return 1; }
}

# runs NAME COMPILER...: compile the first program with the static library NAME, with and without
# inline functions, and run it.
runs()
{
	local name=$1
	shift

	"$@" "${includes[@]}" "$programs/first.c" "$work/$name/libtwheel.a" -pthread -o "$work/first"
	timeout 60 "$work/first"
	"$@" "${includes[@]}" -DTWHEEL_NO_INLINE "$programs/first.c" "$work/$name/libtwheel.a" \
		-pthread -o "$work/first"
	timeout 60 "$work/first"
}

# mixed LIBRARY'S_COMPILER OPTION PROGRAM'S_COMPILER
mixed()
{
	library "$1$2" CC="$1" CFLAGS="$2"
	runs "$1$2" "$3" -O2
}

by_the_link_itself()
{
	library lto CFLAGS="-O3 -flto=1 -Werror" AR=gcc-ar
	runs lto gcc -O3 -flto=1
}

by_the_link_itself_with_clang()
{
	library clang-lto CC=clang CFLAGS="-O2 -flto -Werror" LDFLAGS=-fuse-ld=lld AR=llvm-ar
	runs clang-lto clang -O2 -flto -fuse-ld=lld
}

with_musl()
{
	library musl CC=musl-gcc CPPFLAGS="${kernel_headers[*]}" CFLAGS="-O2 -Werror -fno-exceptions"
	runs musl musl-gcc -static "${kernel_headers[@]}"
}

hardened()
{
	library hard CFLAGS="-O2 -D_FORTIFY_SOURCE=2 -fstack-protector-strong -Wformat \
		-fstack-clash-protection -Werror=format-security -Werror" LDFLAGS="-Wl,-z,relro,-z,now"
	runs hard gcc -O2
}

with_32_bits()
{
	library 32 CFLAGS="-O2 -Werror ${for_32[*]}"
	runs 32 gcc -O2 "${for_32[@]}"
}

with_sanitizer_of_memory()
{
	library msan CC=clang CFLAGS="-O1 -g -fsanitize=memory"
	runs msan clang -O1 -g -fsanitize=memory
}

under_valgrind()
{
	library plain
	gcc -g -O1 "${includes[@]}" "$programs/first.c" "$work/plain/libtwheel.a" -o "$work/first"
	valgrind -q --error-exitcode=9 --leak-check=full "$work/first"
}

# header LANGUAGE COMPILER...: compile the headers with all warnings, as a part of another
# project.
header()
{
	"${@:2}" "${includes[@]}" -Werror -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wconversion \
		-Wsign-conversion -Wcast-qual -Wredundant-decls "-x$1" -fsyntax-only "$programs/first.c"
	"${@:2}" "${includes[@]}" -Werror -Wall -Wextra -Wpedantic -DTWHEEL_NO_INLINE "-x$1" \
		-fsyntax-only "$programs/first.c"
}

cxx=(-Wold-style-cast -Wzero-as-null-pointer-constant)

by_names()
{
	library "$1" CC="$1"
	gcc -O2 -Wall "${includes[@]}" "$programs/functions.c" -ldl -o "$work/functions"
	timeout 60 "$work/functions" "$work/$1/libtwheel.so"
}

# A plugin has its own copy of the library, and uses a wheel of its host.
two_copies()
{
	library plain
	gcc -O2 -Wall "${includes[@]}" "$programs/two_copies.c" "$work/plain/libtwheel.a" -pthread -ldl \
		-o "$work/two_copies"
	timeout 60 "$work/two_copies" "$work/plain/libtwheel.so"
}

all_headers()
{
	printf '#include <%s>\n' twheel.h twheel/device.h twheel/table.h twheel/tcp.h
}

# Tools that make bindings skip static and inline functions without a message.
headers_only_declare()
{
	all_headers | clang "${includes[@]}" -DTWHEEL_NO_INLINE -fsyntax-only -xc \
		-Xclang -ast-dump - | grep 'FunctionDecl .* twheel_' >"$work/declared"
	[ "$(wc -l <"$work/declared")" -gt 25 ]
	if grep -E ' (static|inline)( |$)' "$work/declared"; then return 1; fi
}

# The bindings must have exactly the functions of the library.
bindings_name_all_functions()
{
	library plain
	all_headers >"$work/all.h"
	"$bindgen" "$work/all.h" -o "$work/bindings.rs" -- "${includes[@]}" -DTWHEEL_NO_INLINE
	grep -o 'pub fn twheel_[a-z0-9_]*' "$work/bindings.rs" | sed 's/.* //' | sort -u \
		>"$work/functions.bound"
	nm -D --defined-only "$work/plain/libtwheel.so" | sed 's/.* //; s/@.*//' | grep '^twheel_' |
		sort -u >"$work/functions.exported"
	diff "$work/functions.exported" "$work/functions.bound"
}

# throws COMPILER...: callbacks throw; timers are members of classes of each kind, without a
# warning.
throws()
{
	library plain
	"$@" "${includes[@]}" -g -O2 -Wall -Wextra -Werror "${cxx[@]}" -Wno-non-virtual-dtor \
		"$programs/throws.cpp" "$work/plain/libtwheel.a" -pthread -o "$work/throws"
	timeout 60 "$work/throws"
}

# cxx_header COMPILER...: compile a program that uses all of <twheel.hpp>, with all these
# warnings.
cxx_header()
{
	"$@" "${includes[@]}" -Werror -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wconversion \
		-Wsign-conversion -Wcast-qual -Wredundant-decls "${cxx[@]}" -fsyntax-only \
		"$top/selftests/lib/twheel_lib_cxx.cpp"
	# The header must need no other header before it.
	echo '#include <twheel.hpp>' | "$@" "${includes[@]}" -Werror -Wall -Wextra -xc++ -fsyntax-only -
}

# cxx_runs COMPILER...
cxx_runs()
{
	library plain
	"$@" "${includes[@]}" -Wall -Wextra -Werror "$top/selftests/lib/twheel_lib_cxx.cpp" \
		"$work/plain/libtwheel.a" -pthread -o "$work/cxx"
	timeout 60 "$work/cxx" >"$work/said" || { cat "$work/said"; return 1; }
}

# Without exceptions, an error aborts the program.
cxx_without_exceptions()
{
	library plain
	printf '%s\n' '#include <twheel.hpp>' 'int main() { libtwheel::wheel w; w.advance(libtwheel::never); }' |
		"$@" -fno-exceptions -std=c++17 "${includes[@]}" -Wall -Wextra -Werror -xc++ - -xnone \
			"$work/plain/libtwheel.a" -pthread -o "$work/aborts"
	! timeout 60 "$work/aborts" || return 1
}

# where WHAT SENTENCE COMMAND...: run the case if WHAT compiles a program that runs here.
where()
{
	local sentence=$2

	# shellcheck disable=SC2086 # words
	if { echo '#include <stdio.h>
		int main(void) { return 0; }' | $1 -x c -o "$work/empty" - && "$work/empty"; } 2>/dev/null; then
		holds "$sentence" "${@:3}"
	else
		verdict ok "$sentence # SKIP $1 makes no program that runs here"
	fi
}

# Check the comments of the library's headers only.
comments_are_right()
{
	local source

	for source in "$top"/lib/*.c; do
		clang -std=gnu11 -D_GNU_SOURCE -I"$top/lib" -isystem "$top/uapi" -fsyntax-only \
			-Wdocumentation "$source"
	done 2>"$work/said"
	# kernel-doc writes a member as @result, which clang takes for a command.
	diff /dev/null <(grep -E 'warning:|error:' "$work/said" | grep -vF "'@result' command used in a comment")
}

# If sys/sdt.h is missing, the compiler says so. Without USDT=1 there is no probe, even if it is
# there.
has_its_probes()
{
	library probes USDT=1
	library no_probes
	diff <(readelf -nW "$work/probes/libtwheel.so.1" | sed -n 's/^ *Name: //p' | sort) \
		<(sed -nE 's/^ \*\t([a-z, ]+)\t.*/\1/p' "$top/lib/wheel.h" | tr -s ', ' '\n' | sort)
	diff /dev/null <(readelf -nW "$work/no_probes/libtwheel.so.1" | grep stapsdt)
	runs probes gcc -O2
}

# two_files COMPILER OPTION...: the files that `make amalgamation' writes are C11 without
# extensions, and need only POSIX.
two_files()
{
	make -s -C "$top/lib" OUTPUT="$work/two" amalgamation
	diff "$top/lib/twheel.h" "$work/two/twheel.h"
	"$@" -std=c11 -pedantic -O2 -Wall -Wextra -Werror -Wundef -Wshadow -Wstrict-prototypes \
		-I"$work/two" "$work/two/twheel.c" "$programs/first.c" -pthread -o "$work/two/first"
}

two_files_run()
{
	two_files "$@"
	timeout 60 "$work/two/first"
}

rm -rf "$work"
mkdir -p "$work"
echo "TAP version 13"
for compiler in gcc clang; do
	for option in -O0 -O2 -O3; do
		for other in gcc clang; do
			holds "a program by $other works with the library by $compiler $option" \
				mixed $compiler $option $other
		done
	done
	holds "a program loads the library by $compiler, finds its functions by their names and unloads it" \
		by_names $compiler
done
holds "two copies of the library work in one process" two_copies
holds "gcc optimizes library and program when it links them" by_the_link_itself
where "clang -flto -fuse-ld=lld" "clang optimizes library and program when it links them" \
	by_the_link_itself_with_clang
where "musl-gcc" "a program with musl works with the library by musl" with_musl
where "gcc ${for_32[*]}" "a program of 32 bits works with the library of 32 bits" with_32_bits
for compiler in gcc clang; do
	holds "the two files of the part in the process work by $compiler" two_files_run $compiler
	holds "the two files of the part in the process work by $compiler without timerfd" \
		two_files_run $compiler -DTWHEEL_POSIX
done
where "musl-gcc" "the two files of the part in the process work with musl" two_files_run musl-gcc
# Debian's package is gcc-mingw-w64-x86-64-posix. Its programs do not run here.
if command -v x86_64-w64-mingw32-gcc-posix >/dev/null; then
	holds "the two files of the part in the process build for Windows" \
		two_files x86_64-w64-mingw32-gcc-posix
else
	verdict ok "the two files of the part in the process build for Windows # SKIP there is no mingw"
fi
holds "the library works with the hardening flags of a distribution" hardened
where "gcc -include sys/sdt.h" "the library that is built with USDT=1 has its probes" has_its_probes
where "clang -fsanitize=memory" "a program runs with the sanitizer of memory" with_sanitizer_of_memory
if command -v valgrind >/dev/null; then
	holds "a program runs under valgrind" under_valgrind
else
	verdict ok "a program runs under valgrind # SKIP there is no valgrind"
fi
for standard in c99 c11 c17 c2x; do
	holds "the headers have no warning by gcc, $standard" header c gcc -std=$standard \
		-Wcast-align=strict -Wmissing-prototypes
	holds "the headers have no warning by clang, $standard" header c clang -std=$standard \
		-Wcast-align
done
for standard in c++11 c++14 c++17 c++20 c++23; do
	holds "the headers have no warning by g++, $standard" header c++ g++ -std=$standard \
		"${cxx[@]}" -Wuseless-cast -Wcast-align=strict
	# clang knows this standard by an older name.
	holds "the headers have no warning by clang++, $standard" header c++ clang++ \
		-std=${standard/c++23/c++2b} "${cxx[@]}"
done
for standard in c++17 c++20 c++23; do
	holds "<twheel.hpp> has no warning by g++, $standard" cxx_header g++ -std=$standard \
		-Wuseless-cast -Wcast-align=strict
	holds "<twheel.hpp> has no warning by clang++, $standard" cxx_header clang++ \
		-std=${standard/c++23/c++2b}
done
for compiler in g++ clang++; do
	for option in -O0 -O2 -O3; do
		holds "timers of <twheel.hpp> keep its rules: $compiler $option, C++17" cxx_runs $compiler \
			$option -std=c++17
	done
	holds "timers of <twheel.hpp> keep its rules: $compiler -O2, C++20" cxx_runs $compiler -O2 -std=c++20
	holds "<twheel.hpp> aborts where there are no exceptions: $compiler" cxx_without_exceptions $compiler
done
holds "clang has no warning for the comments of the headers" comments_are_right
holds "the headers only declare functions if TWHEEL_NO_INLINE is defined" headers_only_declare
if [ -n "$bindgen" ]; then
	holds "bindgen makes bindings to all functions of the library" bindings_name_all_functions
else
	verdict ok "bindgen makes bindings to all functions of the library # SKIP there is no bindgen"
fi
for compiler in g++ clang++; do
	holds "exceptions leave callbacks, and nothing is lost: $compiler, C++11" throws $compiler -std=c++11
	holds "exceptions leave callbacks, and nothing is lost: $compiler, C++20" throws $compiler -std=c++20
	holds "exceptions leave callbacks, with the sanitizer of undefined behaviour: $compiler" throws \
		$compiler -std=c++17 -fsanitize=undefined -fno-sanitize-recover=all
done
echo "1..$number"
