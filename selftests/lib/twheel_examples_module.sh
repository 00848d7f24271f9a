#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# The examples, without the module and with it. A loop that was built without its library
# is skipped.

loops='poll libuv libev libevent sd_event glib io_uring'
idle='--connections=50 --seconds=6 --idle=2 --request=1'
number=0

# runs PROGRAM ARGUMENT...: with status 0, or 77 if it cannot. The server cannot if the
# kernel has no TCP.
runs()
{
	local status=0

	number=$((number + 1))
	"$@" >/tmp/said 2>&1 || status=$?
	if [ "$1" = idle-server ] && [ ! -e /proc/net/tcp ]; then
		echo "ok $number $where: $* # SKIP the kernel has no TCP"
		return
	fi
	case $status in
	0) echo "ok $number $where: $*" ;;
	77) echo "ok $number $where: $* # SKIP $(cat /tmp/said)" ;;
	*)
		echo "not ok $number $where: $*"
		sed 's/^/# /' /tmp/said
		echo "# status $status"
		;;
	esac
}

echo "TAP version 13"
echo 1..18
where="without the module"
runs hello
runs requests
runs table
for loop in $loops; do
	runs loops "$loop"
done
# shellcheck disable=SC2086 # words
runs idle-server --local $idle
number=$((number + 1))
# shellcheck disable=SC2086
if [ ! -e /proc/net/tcp ]; then
	echo "ok $number $where: idle-server says that the device is not there # SKIP the kernel has no TCP"
elif ! idle-server $idle >/tmp/said 2>&1 && grep -q "load the module" /tmp/said; then
	echo "ok $number $where: idle-server says that the device is not there"
else
	echo "not ok $number $where: idle-server says that the device is not there"
fi

insmod "$TWHEEL_KO" || echo "not ok the module loads"
where="with the module"
# A worker is killed, and the accounts are exact.
# shellcheck disable=SC2086
runs idle-server $idle
runs table --processes
runs raw-hello
runs raw-refresh
runs raw-online
runs twheel.sh
rmmod twheel
