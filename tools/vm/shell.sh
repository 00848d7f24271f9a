#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make shell: boot the virtual machine, and open a prompt with the module loaded and the programs
# in PATH.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/build.sh"
. "$(dirname "$0")/lib/boot.sh"

series=${kernels[-1]}
files=$run/shell

lock_cache
KERNELS=$series bash "$top/tools/vm/setup.sh" shell
build_module "$series"
build_examples
build_selftests usual
mkdir -p "$files"
mapfile -t programs < <(selftest_programs usual; example_programs)
make_initramfs "$files/initramfs" "$(module_tree "$series")/twheel.ko" "${programs[@]}"

say "booting $(cat "$cache/kernels/$series/release"); the module is loaded, programs are in /programs"
say "leave with \`exit', or at any time with Ctrl-A X"
boot "$series" "$files/initramfs" vm_mode=shell -serial mon:stdio
