#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make demo: boot the newest of the kernels with the module, and run examples/idle-server on the
# terminal: first as processes that share a wheel on the device, one of which is killed, then
# shortly as one process with a wheel of its own. The script exits with the status of the example.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/build.sh"
. "$(dirname "$0")/lib/boot.sh"

program=${DEMO:-idle-server}
# The commands for the guest, separated by commas, with semicolons for blanks.
runs=${DEMO:-idle-server;--connections=4000,idle-server;--local;--connections=1000;--seconds=8;--idle=4;--request=2}
series=${kernels[-1]}
files=$run/demo

lock_cache
KERNELS=$series bash "$top/tools/vm/setup.sh" demo
build_module "$series"
build_examples
mkdir -p "$files"
mapfile -t programs < <(example_programs)
make_initramfs "$files/initramfs" "$(module_tree "$series")/twheel.ko" "${programs[@]}"

say "booting $(cat "$cache/kernels/$series/release") in a virtual machine for examples/$program"
for _ in 1 2 3; do
	rm -f "$files/status"
	# Let the emulator write to a pipe. It opens /dev/stdout by name: that would truncate a
	# log, and fails for a socket.
	(boot "$series" "$files/initramfs" "vm_mode=demo vm_demo=$runs" \
		-serial "file:$files/console.log" -serial file:/dev/stdout \
		-serial "file:$files/status" </dev/null) | cat ||
		say "the emulator has failed, or the reader of its output"
	status=$(tr -dc 0-9 <"$files/status") || true
	if [ -n "$status" ]; then
		say "examples/$program ended with status $status"
		exit "$status"
	fi
	emulator_slipped "$files/console.log" || break
	say "the emulator failed, not the module (int3 oops, see tools/vm/lib/boot.sh): trying again"
done
tail -n 40 "$files/console.log" >&2
die "the virtual machine ended before the program did; its console is above"
