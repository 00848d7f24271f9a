# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
# Sourced: boot a virtual machine.

# kvm_boots SERIES: /dev/kvm may exist and not work, or only for kernels made for its kind of
# host. So boot this kernel, until it stops because it has no root.
kvm_boots()
{
	# The subshell hides the shell's message about an abort.
	(timeout 20 qemu-system-x86_64 -accel kvm -cpu host -m 1G -nodefaults -no-reboot \
		-display none -serial stdio -kernel "$cache/kernels/$1/vmlinuz" \
		-append 'console=ttyS0 panic=-1' </dev/null 9>&- || exit 1) 2>/dev/null |
		grep 'Kernel panic' >/dev/null
}

# accelerator SERIES: print kvm or tcg. It is tried once for each boot of this machine.
accelerator()
{
	local known=$cache/accelerator.$1 start

	start=$(cat /proc/sys/kernel/random/boot_id)
	if ! grep -qs "^$start " "$known"; then
		echo "$start $(kvm_boots "$1" && echo kvm || echo tcg)" >"$known.$BASHPID"
		mv "$known.$BASHPID" "$known"
	fi
	cut -d ' ' -f 2 "$known"
}

# The emulator's TSC is that of the host. If a guest measures its frequency while the host is
# busy, the result may be wrong by a factor of five, and each second of the guest is too short. So
# pass the frequency.
tsc_frequency()
{
	awk '/^bogomips/ { printf "tsc_early_khz=%d\n", $3 * 500; exit }' /proc/cpuinfo
}

# boot SERIES INITRAMFS 'KERNEL ARGUMENTS' QEMU-ARGUMENT...
#
# The console (ttyS0) is the first -serial among the arguments. The kernel is quiet until the
# guest's init says otherwise: an emulated serial line is slow.
#
# Without hardware virtualisation, a virtual CPU may stop for seconds if the host is busy. So the
# watchdogs wait three times as long as usual; the clock is the TSC, which qemu takes from the
# host, instead of the slow HPET; and the kernel must not count the timer interrupts that arrive
# while it boots. An oops ends the machine, as no later result would mean anything. The console
# shows it even while the machine is going to sleep.
#
# In the emulator, all processes have the same addresses (norandmaps): if each has its own, the
# code of libraries is translated for each, and a program takes twice as long to start. The emulated
# processor has no fast string operations (erms): the emulator stores one byte after the other,
# where the kernel would take them for quick.
#
# Variables that begin with TW_ are for the test programs. The kernel command line passes them on.
#
# The events that tests trace are enabled at boot: enabling them patches the kernel's code, which
# the emulator sometimes gets wrong, see below. If an event is enabled at boot, Debian's 7.3 with
# PREEMPT_RT hangs before it prints anything; there the tests enable them.
boot()
{
	local series=$1 initramfs=$2 arguments=$3 machine=(-accel kvm -cpu host)
	local watchdogs='watchdog_thresh=30 rcupdate.rcu_cpu_stall_timeout=60'
	local tracing='trace_event=timer:hrtimer_expire_entry,timer:hrtimer_expire_exit'
	local words
	shift 3

	[[ $series != 7.3-rt ]] || tracing=
	words=$(env | grep '^TW_[A-Z_]*=[^ ]*$' | tr '\n' ' ') || true
	arguments="console=ttyS0 quiet panic=-1 oops=panic no_console_suspend log_buf_len=4M \
$watchdogs $tracing trace_buf_size=8M $arguments $words"
	[[ $series != *-arm64* ]] || boot_arm64 "$series" "$initramfs" "$arguments" "$@"
	if [ "$(accelerator "$series")" = tcg ]; then
		machine=(-accel "tcg,thread=multi" -cpu "max,-erms")
		arguments+=" norandmaps $(tsc_frequency)"
	fi
	exec qemu-system-x86_64 "${machine[@]}" \
		-smp "${SMP:-2}" -m "${MEMORY:-2G}" -nodefaults -no-reboot -display none \
		-kernel "$cache/kernels/$series/vmlinuz" -initrd "$initramfs" \
		-append "tsc=reliable no_timer_check $arguments" "$@" 9>&-
}

# emulator_slipped CONSOLE [LOG]: did the emulator kill this machine? If so, the result says
# nothing about the module, and the caller may try again. LOG is the output of `-d cpu_reset'.
#
# With several virtual CPUs, TCG sometimes runs an old version of an instruction that another CPU
# has just patched: a breakpoint that the kernel no longer expects. No C code can cause that oops.
emulator_slipped()
{
	[ "$(accelerator "$series")" = tcg ] || return
	grep -q 'int3: 0000' "$1" || firmware_slipped "${2:-/dev/null}"
}

# firmware_slipped LOG: has a machine with two processors died in its firmware? When it wakes from
# S3, the firmware starts CPU 1 for a moment, on the stack of CPU 0. Under TCG, CPU 1 sometimes
# returns from there to a random address: a triple fault. By then the machine was reset, and CPU 1
# once more by the firmware. The kernel would reset CPU 1 a third time, and the module runs only
# after that.
firmware_slipped()
{
	awk '/^CPU Reset \(CPU 0\)/ { resets = 0 }
		/^CPU Reset \(CPU 1\)/ { resets++ }
		/^Triple fault/ { slipped = resets == 2 }
		END { exit !slipped }' "$1"
}

# hear CONSOLE LAST SERIES INITRAMFS 'KERNEL ARGUMENTS' QEMU-ARGUMENT...: boot a machine with its
# console in that file, and put the lines of its second serial line into `said'. Succeed if it
# prints the line LAST. If a machine is silent for ten minutes, it is ended. If the emulator
# killed it, it is booted again.
said=()
hear()
{
	local console=$1 last=$2 tries=3 line pid fd ended
	shift 2

	while :; do
		said=() ended=
		exec {fd}< <(boot "${@:1:3}" -serial "file:$console" -serial file:/dev/stdout \
			"${@:4}" </dev/null 2>&1)
		pid=$!
		while IFS= read -r -t 600 line <&"$fd"; do
			line=${line%$'\r'}
			[ "$line" != "$last" ] || ended=1
			said+=("$line")
		done
		kill "$pid" 2>/dev/null || true
		exec {fd}<&-
		[ -z "$ended" ] || return 0
		tries=$((tries - 1))
		[ $tries != 0 ] && emulator_slipped "$console" || return 1
	done
}
