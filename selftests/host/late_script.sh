#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# tools/twheel-late.bt in a machine: it is parsed, and shows a reader that comes a second late as
# such, and the kernel as in time. bpftrace is this system's, where it is installed: it brings a
# compiler of 200 MB, which nothing else here needs.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/common.sh"
. "$(dirname "$0")/../../tools/vm/build.sh"
. "$(dirname "$0")/../../tools/vm/boot.sh"
. "$(dirname "$0")/../../tools/vm/cases.sh"

work=$build/late_script
series=6.12

echo "TAP version 13"
if ! bpftrace=$(command -v bpftrace); then
	echo "1..0 # SKIP this system has no bpftrace"
	exit
fi
if [ ! -e "$cache/kernels/$series/complete" ]; then
	echo "1..0 # SKIP it wants kernel $series"
	exit
fi
rm -rf "$work"
mkdir -p "$work"

# One record arms a timeout for in 10 ms, and its event is read a second later. What bpftrace
# says goes to the host.
cat >"$work/late_module.sh" <<'EOT'
#!/bin/sh
insmod "$TWHEEL_KO"
timeout -s INT 90 bpftrace /programs/twheel-late.bt >/tmp/said 2>&1 &
tries=60
until grep -q Tracing /tmp/said || [ $tries = 0 ]; do
	sleep 1
	tries=$((tries - 1))
done
exec 3<>/dev/twheel
printf '\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\200\226\230\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >&3
sleep 1
head -c 40 <&3 >/dev/null
exec 3<&-
killall -INT bpftrace
wait $!
echo "bpftrace ended with $?"
cat /tmp/said
EOT

# The first line behind a map's name is its lowest bucket, and there is one event.
bucket()
{
	printf '%s\n' "${said[@]}" | grep -A 1 -F "@$1[1, ]:" | sed -n '2s/,.*//p'
}

build_quickly "$series" "$work/module"
make_initramfs "$work/initramfs" "$work/module/twheel.ko" "$work/late_module.sh" "$bpftrace" \
	"$top/tools/twheel-late.bt"
hear "$work/console.log" @done "$series" "$work/initramfs" \
	"vm_mode=test vm_timeout=150 vm_tests=late_module.sh" || tail -n 40 "$work/console.log"
printf '# %s\n' "${said[@]}"
check "bpftrace runs the script" grep -qx 'bpftrace ended with 0' <(printf '%s\n' "${said[@]}")
check "a reader that comes a second late is late" \
	grep -qE '^\[(512K|1M|2M|4M|8M|16M)$' <(bucket reader_late_us)
check "the kernel is not late by that" grep -qE '^\[([0-9]+|[0-9]{1,2}K|128K)\]?$' \
	<(bucket kernel_late_us)
echo "1..$number"
