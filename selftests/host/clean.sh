#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# In a copy of the tree with a real module, make clean must remove all products of the tree and
# nothing else, and make distclean the cache.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/build.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

tree=$build/clean/tree
# bench/idle builds for this kernel: it is one of those that make bench measures.
series=${kernels[0]}

files()
{
	(cd "$tree" && find . -type f | sort)
}

build_in_tree()
{
	local kdir log=$build/clean/log
	kdir=$(kernel_headers "$series")

	{
		make -C "$tree" KDIR="$kdir" modules "${no_debug_info[@]}" -j"$(nproc)" &&
			make -C "$kdir" M="$tree/bench/idle" "${no_debug_info[@]}" modules &&
			make -C "$tree/examples" -j"$(nproc)" CFLAGS=-O0 && make -C "$tree" lib CFLAGS=-O0
	} >"$log" 2>&1 || { cat "$log"; return 1; }
	[ -e "$tree/twheel.ko" ] && [ -e "$tree/bench/idle/bench_idle.ko" ] &&
		[ -x "$tree/examples/loops/loops" ] && [ -e "$tree/lib/libtwheel.so" ]
}

# Make a module and other files that look like products, but are not the project's.
somebodys_files()
{
	local file

	mkdir -p "$tree/mine"
	for file in mine.o mine.ko .mine.o.cmd mine/mine.ko mine/mine.mod.c mine/Module.symvers \
		mine/modules.order selftests/mine.o examples/mine.o bench/mine.o lib/mine.o lib/libmine.a lib/libmine.so notes.mod; do
		touch "$tree/$file"
	done
}

clean()
{
	make -C "$tree" clean >"$build/clean/log" 2>&1 || { cat "$build/clean/log"; return 1; }
	diff <(echo "$before") <(files)
}

# Call make distclean, which must leave files in .cache that are not the project's.
distclean()
{
	make -C "$tree" distclean >"$build/clean/log" 2>&1 || { cat "$build/clean/log"; return 1; }
}

distclean_removes_the_cache()
{
	mkdir -p "$tree/.cache"/{apt,apt-trixie,build/x,kernels/6.1,run,source} || return
	touch "$tree/.cache"/{lock,seconds,source.tar,accelerator.6.12,busybox.packages}
	distclean && [ ! -e "$tree/.cache" ]
}

distclean_leaves_somebodys_cache()
{
	mkdir -p "$tree/.cache"/{clangd/index,build} || return
	distclean && [ "$(ls "$tree/.cache")" = clangd ] &&
		grep -q 'stays: there is more in it: .cache/clangd' "$build/clean/log" && rm -r "$tree/.cache"
}

distclean_leaves_what_a_link_leads_to()
{
	mkdir -p "$build/clean/disk/build" && ln -s ../disk "$tree/.cache" || return
	distclean && [ -d "$build/clean/disk/build" ] && [ -L "$tree/.cache" ] &&
		grep -q 'stays: it is a link to ../disk' "$build/clean/log"
}

rm -rf "$build/clean"
mkdir -p "$tree"
(cd "$top" && cp -pr Kbuild Makefile dkms.conf twheel_*.c engine include uapi lib selftests \
	examples bench tools "$tree/")
# The tree that was copied may have had products.
make -C "$tree" clean >/dev/null 2>&1

echo "TAP version 13"
echo "1..6"
before=$(files)
check "the modules, the library and the examples are built in the tree" build_in_tree
check "make clean leaves the tree as it was before" clean
somebodys_files
before=$(files)
check "make clean leaves what somebody else has built" clean
check "make distclean removes the cache" distclean_removes_the_cache
check "make distclean leaves what somebody else has in .cache" distclean_leaves_somebodys_cache
check "make distclean leaves the folder that .cache is a link to" distclean_leaves_what_a_link_leads_to
