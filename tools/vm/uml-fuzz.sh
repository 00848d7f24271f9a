#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Run twheel_fuzz in a User-mode Linux with KASAN, UBSAN, lockdep and kmemleak. It has one
# processor, but runs at the host's speed, so that ten million calls take minutes. Prints TAP;
# make fuzz calls it.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/build.sh"

series=6.12-umldebug
files=$run/$series
kernel=$cache/kernels/$series/vmlinuz

KERNELS=$series bash "$top/tools/vm/setup.sh" build
ARCH=um build_module "$series"
build_selftests debug
rm -rf "$files"
mkdir -p "$files/root"/{bin,lib}
cp "$cache/busybox/bin/busybox" "$build/selftests/debug/twheel_fuzz" "$files/root/bin/"
cp "$(module_tree "$series")/twheel.ko" "$files/root/lib/"
cp "$top/tools/vm/guest/fuzz-init" "$files/root/init"
chmod a+x "$files/root/init"
pack_root "$files/root" "$files/initramfs"

export TW_FUZZ_CALLS=${TW_FUZZ_CALLS:-10000000}
mapfile -t settings < <(env | grep '^TW_[A-Z_]*=')

# The console is on standard output too, between the lines of TAP.
"$kernel" mem=2G initrd="$files/initramfs" uml_dir="$files/" umid=fuzz quiet \
	con=null con0=fd:0,fd:1 panic=-1 "${settings[@]}" \
	</dev/null 2>"$files/stderr.log" |
	tee "$files/console.log" | tr -d '\r' | grep -v '^\[' || true
status=$(sed -n 's/^@end \([0-9]*\).*/\1/p' "$files/console.log")
exit "${status:-1}"
