#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# If the emulator killed a machine, boot it again, but never if the module may have done it. The
# logs are made up after real ones.
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034 # what is sourced reads these

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/boot.sh"

series=6.12
runs_on=tcg

# This replaces the function that probes for KVM.
# shellcheck disable=SC2317 # emulator_slipped calls it
accelerator() { echo $runs_on; }

# cpus_reset NR...: print the emulator's log of resets of these CPUs, with a line of registers.
cpus_reset()
{
	printf 'CPU Reset (CPU %s)\nEAX=00000000 EBX=00000000\n' "$@"
}

# The firmware resets CPU 1 after the machine has done so, and the kernel resets it again.
boots()
{
	cpus_reset 0 1 0 1 1 1
}

nr=0
# judge SENTENCE yes|no CONSOLE: a result. The emulator's log comes on stdin.
judge()
{
	local slipped=no verdict='not ok'

	nr=$((nr + 1))
	echo "$3" >"$work/console"
	cat >"$work/log"
	! emulator_slipped "$work/console" "$work/log" || slipped=yes
	[ $slipped != "$2" ] || verdict=ok
	echo "$verdict $nr $1"
}

work=$build/emulator_slips
rm -rf "$work"
mkdir -p "$work"
breakpoint='Oops: int3: 0000 [#1] SMP NOPTI'
console='PM: suspend entry (deep)'
echo "TAP version 13"
echo "1..7"
judge "a breakpoint that was patched away is the emulator's" yes "$breakpoint" < <(boots)
judge "any other oops is not" no 'Oops: general protection fault' < <(boots)
judge "a triple fault of the firmware that wakes it is the emulator's" yes "$console" \
	< <(boots; cpus_reset 0 1 1; echo "Triple fault")
judge "one when the kernel has started CPU 1 is not" no "$console" \
	< <(boots; cpus_reset 0 1 1 1; echo "Triple fault")
judge "one in a machine that never slept is not" no "" < <(boots; echo "Triple fault")
judge "nor one with a processor alone" no "" < <(cpus_reset 0 0; echo "Triple fault")
runs_on=kvm
judge "with KVM nothing is the emulator's" no "$breakpoint" < <(boots)
