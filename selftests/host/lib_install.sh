#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test libtwheel as packagers and programs use it: it builds without the module, with each
# compiler; it is installed and removed below a DESTDIR; programs in C and C++ find it by
# pkg-config, static and shared, and run on this machine; its symbols and its man pages are those
# of its headers.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/lib_install
root=$work/root
prefix=/opt/twheel
there=$root$prefix
case_options=-ex
export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$there/lib/pkgconfig
strict=(-Wall -Wextra -pedantic -Wshadow -Wconversion -Werror)

# The cases build on each other.
fresh_tree() { :; }

installs=(install-lib install-headers install-man)
uninstalls=(uninstall-lib uninstall-headers uninstall-man)

# twheel TARGET... VARIABLE...: call make as a packager does. The library needs no kernel.
twheel()
{
	make -C "$top" KDIR=/nonexistent PREFIX=$prefix DESTDIR="$root" OUTPUT="$work/gcc" "$@"
}

# Print each declaration of the headers in a line, after "static", "extern" or "data". Leave out
# bodies, and definitions of functions that were declared before.
header()
{
	awk '
	function said(how) {
		gsub(/[ \t]+/, " ", text)
		gsub(/^ | $/, "", text)
		if (text ~ /\(/ && text !~ /^typedef/) {
			if (sub(/^static inline /, "", text))
				print "static " text ";"
			else if (how == ";" && sub(/^(_TWHEEL_((DEVICE_)?INLINE|FUNCTION) )?/, "", text))
				print "extern " text ";"
		} else if (sub(/^extern /, "", text)) {
			print "data " text ";"
		}
		text = ""
	}
	comment && !sub(/^.*\*\//, "") { next }
	{ comment = 0; gsub(/\/\*([^*]|\*[^\/])*\*\//, "") }
	sub(/\/\*.*/, "") { comment = 1 }
	directive || /^#/ { directive = /\\$/; next }
	/^extern "C" / { next }
	{
		n = split($0, c, "")
		for (i = 1; i <= n; i++) {
			if (c[i] == "{") {
				if (!depth++)
					said("{")
			} else if (c[i] == "}") {
				if (depth && !--depth)
					text = ""
			} else if (!depth) {
				if (c[i] == ";")
					said(";")
				else
					text = text c[i]
			}
		}
		text = text " "
	}' "$top/lib/twheel.h" "$top"/lib/twheel/{device,table,tcp}.h
}

# Print the declarations for programs. Names that begin with an underscore are for inline
# functions.
declarations()
{
	header | sed -n 's/^\(static\|extern\) //p' | grep -v '\b_twheel' | sort -u
}

functions()
{
	declarations | sed 's/(.*//; s/.*[ *]//' | sort -u
}

# Print the symbols that a program may need from the library.
symbols()
{
	header | grep -v ^static | sed 's/[(;].*//; s/.*[ *]//' | sort -u
}

builds_by()
{
	make -C "$top/lib" CC="$1" AR="${2:-ar}" OUTPUT="$work/$3" CFLAGS='-O2 -Werror' \
		"${@:4}" 2>"$work/warnings"
	[ ! -s "$work/warnings" ] || { cat "$work/warnings"; return 1; }
}

# Use the host's kernel headers: musl has none.
runs_with_musl()
{
	local compiler=(musl-gcc -idirafter /usr/include -idirafter "/usr/include/$(uname -m)-linux-gnu")

	# musl's wrapper has no unwinder that works without glibc.
	builds_by "${compiler[*]}" ar musl CFLAGS='-O2 -Werror -fno-exceptions'
	"${compiler[@]}" -I"$top/lib" -I"$top/uapi" "${strict[@]}" "$work/program.c" -static \
		"$work/musl/libtwheel.a" -o "$work/program"
	"$work/program"
}

# where_there_is COMPILER SENTENCE COMMAND...: run the case, or skip it if there is no such
# compiler.
where_there_is()
{
	if command -v "$1" >/dev/null; then
		holds "${@:2}"
	else
		verdict ok "$2 # SKIP there is no $1"
	fi
}

# Print the files that must be installed.
expected_files()
{
	{
		printf '%s\n' include/{twheel.h,twheel.hpp,twheel/{device,table,tcp}.h,linux/twheel.h} share/man/man{4/twheel{,_structs}.4,7/libtwheel.7} \
			lib/{pkgconfig/libtwheel.pc,libtwheel.{a,so,so.1,"so.$version"}}
		functions | sed 's|.*|share/man/man3/&.3|'
	} | sed "s|^|$prefix/|" | sort
}

installed_files()
{
	(cd "$root" && find . ! -type d -printf '/%P\n' | sort)
}

install_brings_libraries_headers_and_pages()
{
	twheel "${installs[@]}"
	diff <(expected_files) <(installed_files)
	cmp "$top/lib/twheel.h" "$there/include/twheel.h"
	cmp "$top/lib/twheel.hpp" "$there/include/twheel.hpp"
	cmp "$top/lib/twheel/device.h" "$there/include/twheel/device.h"
	cmp "$top/lib/twheel/table.h" "$there/include/twheel/table.h"
	cmp "$top/lib/twheel/tcp.h" "$there/include/twheel/tcp.h"
	cmp "$top/uapi/linux/twheel.h" "$there/include/linux/twheel.h"
	[ "$(readlink "$there/lib/libtwheel.so")" = libtwheel.so.1 ]
	[ "$(readlink "$there/lib/libtwheel.so.1")" = "libtwheel.so.$version" ]
}

the_shared_library_exports_what_the_header_declares()
{
	nm -D --defined-only "$there/lib/libtwheel.so" | sed 's/.* //' | sort >"$work/exported"
	diff <({ symbols | sed 's/$/@@LIBTWHEEL_1.0/'; echo LIBTWHEEL_1.0; } | sort) \
		"$work/exported"
}

it_needs_the_C_library_alone()
{
	readelf -d "$there/lib/libtwheel.so" >"$work/dynamic"
	grep -q 'SONAME.*\[libtwheel\.so\.1\]$' "$work/dynamic"
	# It may also need the loader, and libgcc_s, which unwinds if a callback throws.
	[ "$(sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' "$work/dynamic" | grep -v -e '^ld-' -e '^libgcc_s')" = libc.so.6 ]
}

the_static_library_exports_the_same()
{
	nm -g --defined-only "$there/lib/libtwheel.a" | sed -n 's/.* [A-Z] //p' | sort >"$work/symbols"
	diff <(symbols) "$work/symbols"
}

# Programs have this layout compiled in. If it changes, the soname must change, see
# Documentation/stability.rst.
the_layout_is_that_of_soname_1()
{
	cat >"$work/layout.c" <<-'EOT'
	#include <twheel.h>

	_Static_assert(sizeof(struct twheel_timer) == 40, "timer");
	_Static_assert(offsetof(struct twheel_timer, next) == 0, "timer.next");
	_Static_assert(offsetof(struct twheel_timer, callback) == 8, "timer.callback");
	_Static_assert(offsetof(struct twheel_timer, pprev) == 16, "timer.pprev");
	_Static_assert(offsetof(struct twheel_timer, interval_ns) == 24, "timer.interval_ns");
	_Static_assert(offsetof(struct twheel_timer, deadline) == 32, "timer.deadline");
	_Static_assert(offsetof(struct _twheel_head, now) == 0, "head.now");
	_Static_assert(offsetof(struct _twheel_head, base) == 8, "head.base");
	_Static_assert(offsetof(struct _twheel_head, next) == 16, "head.next");
	_Static_assert(offsetof(struct _twheel_head, shared) == 24, "head.shared");
	_Static_assert(offsetof(struct _twheel_head, shift) == 64, "head.shift");
	_Static_assert(offsetof(struct _twheel_head, level) == 128, "head.level");
	_Static_assert(sizeof(struct _twheel_head) == 128 + 64 * 8, "head");
	_Static_assert(sizeof(struct twheel_options) == 40, "options");
	_Static_assert(sizeof(struct twheel_stats) == 56 + 64 * 8, "stats");
	EOT
	gcc -std=c11 -fsyntax-only -I"$there/include" "$work/layout.c"
}

# Print a program that is both C and C++. Its exit status says which step failed.
write_program()
{
	cat <<-'EOT'
	#include <twheel.h>
	#include <string.h>

	struct object {
		int number;
		struct twheel_timer timer;
	};

	static unsigned int seen;

	static void on_time(struct twheel *w, struct twheel_timer *t)
	{
		struct object *o = twheel_container_of(t, struct object, timer);

		if (o->number == 7)
			seen += (unsigned int)twheel_periods(w);
	}

	static struct twheel_timer constant = TWHEEL_TIMER_INIT(on_time);

	static int on_a_virtual_clock(struct object *o)
	{
		struct twheel_options options;
		struct twheel_stats stats;
		struct twheel *w;

		memset(&options, 0, sizeof(options));
		options.size = sizeof(options);
		options.clock = TWHEEL_CALLER;
		options.data = o;
		if (twheel_open(&w, &options) < 0 || twheel_data(w) != o)
			return 1;
		twheel_start(w, &constant, TWHEEL_SEC);
		if (!twheel_stop(w, &constant) || twheel_stop(w, &constant))
			return 2;
		twheel_start_every(w, &o->timer, 10 * TWHEEL_MSEC);
		if (twheel_advance(w, 9 * TWHEEL_MSEC) < 0 || twheel_dispatch(w, 0) != 0 ||
		    twheel_advance(w, 55 * TWHEEL_MSEC) < 0 || twheel_dispatch(w, 0) != 1 ||
		    seen != 5 || !twheel_timer_pending(&o->timer))
			return 3;
		twheel_get_stats(w, &stats, sizeof(stats));
		if (stats.called != 1 || stats.pending != 1)
			return 4;
		twheel_close(w);
		return 0;
	}

	int main(void)
	{
		struct object o;
		struct twheel *w;
		int ret;

		o.number = 7;
		twheel_timer_init(&o.timer, on_time);
		ret = on_a_virtual_clock(&o);
		if (ret)
			return ret;
		if (twheel_open(&w, NULL) < 0 || twheel_fd(w) < 0)
			return 5;
		twheel_start(w, &o.timer, 5 * TWHEEL_MSEC);
		twheel_start_at(w, &o.timer, twheel_now(w) + 5 * TWHEEL_MSEC);
		while (seen == 5)
			if (twheel_wait(w, 10 * TWHEEL_SEC) < 0)
				return 6;
		twheel_close(w);
		return 0;
	}
	EOT
}

# runs LANGUAGE COMPILER...: link with the shared library, with the static one, and fully static,
# and run each.
runs()
{
	local flags libs static name=$work/program

	read -ra flags < <(pkg-config --cflags libtwheel)
	read -ra libs < <(pkg-config --libs libtwheel)
	read -ra static < <(pkg-config --static --libs libtwheel)
	"${@:2}" "${strict[@]}" "${flags[@]}" "-x$1" -c "$name.c" -o "$name.o"
	"$2" "$name.o" "${libs[@]}" -o "$name"
	readelf -d "$name" | grep -q 'NEEDED.*libtwheel\.so\.1'
	LD_LIBRARY_PATH=$there/lib "$name"
	"$2" "$name.o" "$there/lib/libtwheel.a" -o "$name"
	"$name"
	"$2" "$name.o" -static "${static[@]}" -o "$name"
	"$name"
}

# Print the declarations in the synopses of the man pages, with the parts outside of quotes
# joined.
page_declarations()
{
	awk '
	/^\.SH/ { synopsis = /SYNOPSIS/ }
	synopsis && /^\.BI .*[(,;]/ {
		n = split(substr($0, 5), part, "\"")
		line = ""
		for (i = 1; i <= n; i++) {
			if (i % 2)
				gsub(/ /, "", part[i])
			line = line part[i]
		}
		text = text " " line
		if (line ~ /;$/) {
			gsub(/ +/, " ", text)
			sub(/^ /, "", text)
			print text
			text = ""
		}
	}' "$top"/lib/man/*.3 | grep -vE '^typedef | = ' | sort
}

each_function_has_a_page_with_its_declaration()
{
	diff <(declarations) <(page_declarations)
}

links_lead_to_the_page_that_names_them()
{
	local name page

	for name in $(functions); do
		page=$there/share/man/man3/$name.3
		! grep -q '^\.so ' "$page" ||
			page=$there/share/man/$(sed -n 's/^\.so //p' "$page")
		sed -n '/^\.SH NAME/,/\\-/p' "$page" | grep -qw "$name"
		sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p' "$page" | grep -qw "$name"
	done
}

the_example_in_the_page_compiles_and_runs()
{
	local flags

	sed -n '/^\.EX/,/^\.EE/{/^\.E[XE]/d;s/\\e/\\/g;s/\\-/-/g;p}' "$top/lib/man/libtwheel.7" \
		>"$work/example.c"
	read -ra flags < <(pkg-config --cflags libtwheel)
	gcc -std=c11 "${strict[@]}" "${flags[@]}" "$work/example.c" "$there/lib/libtwheel.a" \
		-o "$work/example"
	diff <(printf 'request %d has timed out\n' 1 3) <("$work/example")
}

a_newer_release_takes_the_place_of_the_older_one()
{
	mv "$there/lib/libtwheel.so.$version" "$there/lib/libtwheel.so.0.0.9"
	ln -sf libtwheel.so.0.0.9 "$there/lib/libtwheel.so.1"
	twheel "${installs[@]}"
	diff <(expected_files) <(installed_files)
}

uninstall_removes_that_and_nothing_else()
{
	touch "$there/lib/libmine.a" "$there/include/linux/mine.h" "$there/share/man/man3/mine.3"
	twheel "${uninstalls[@]}"
	diff <(printf '%s\n' $prefix/{include/linux/mine.h,lib/libmine.a,share/man/man3/mine.3}) \
		<(installed_files)
}

# Programs that use the module directly need the header too.
uninstall_of_the_library_leaves_the_header_of_the_module()
{
	rm -rf "$root"
	twheel "${installs[@]}"
	twheel uninstall-lib uninstall-man
	diff <(echo $prefix/include/linux/twheel.h) <(installed_files)
}

it_goes_to_the_folders_that_are_given()
{
	local given=(libdir=/usr/lib/some-triplet mandir=/usr/man)

	rm -rf "$root"
	twheel "${installs[@]}" PREFIX=/usr "${given[@]}"
	[ -e "$root/usr/lib/some-triplet/libtwheel.so.1" ]
	[ -e "$root/usr/man/man7/libtwheel.7" ]
	PKG_CONFIG_LIBDIR=$root/usr/lib/some-triplet/pkgconfig pkg-config --libs libtwheel |
		grep -F -- "-L$root/usr/lib/some-triplet -ltwheel"
	[ "$(PKG_CONFIG_LIBDIR=$root/usr/lib/some-triplet/pkgconfig \
		pkg-config --modversion libtwheel)" = "$version" ]
	twheel "${uninstalls[@]}" PREFIX=/usr "${given[@]}"
	[ -z "$(installed_files)" ]
}

version=$(sed -n 's/^PACKAGE_VERSION="\([0-9.]*\).*"$/\1/p' "$top/dkms.conf")
rm -rf "$work"
mkdir -p "$work"
write_program >"$work/program.c"

echo "TAP version 13"
echo "1..20"
holds "the library builds without a warning: gcc" builds_by gcc ar gcc
holds "the library builds without a warning: clang" builds_by clang ar clang
where_there_is aarch64-linux-gnu-gcc "the library builds without a warning: gcc for aarch64" \
	builds_by aarch64-linux-gnu-gcc aarch64-linux-gnu-ar aarch64
where_there_is musl-gcc "it builds without a warning, and a program runs: gcc with musl" \
	runs_with_musl
for case in install_brings_libraries_headers_and_pages \
	the_shared_library_exports_what_the_header_declares \
	the_layout_is_that_of_soname_1 it_needs_the_C_library_alone \
	the_static_library_exports_the_same; do
	holds $case $case
done
holds "a program finds the library by pkg-config and runs: gcc, C11" runs c gcc -std=c11
holds "a program finds the library by pkg-config and runs: clang, C11" runs c clang -std=c11
holds "a program finds the library by pkg-config and runs: g++, C++17" runs c++ g++ -std=c++17
holds "a program finds the library by pkg-config and runs: clang++, C++17" runs c++ clang++ -std=c++17
for case in each_function_has_a_page_with_its_declaration links_lead_to_the_page_that_names_them \
	the_example_in_the_page_compiles_and_runs a_newer_release_takes_the_place_of_the_older_one \
	uninstall_removes_that_and_nothing_else \
	uninstall_of_the_library_leaves_the_header_of_the_module it_goes_to_the_folders_that_are_given; do
	holds $case $case
done
