#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# The examples, without the module and with it. A loop that was built without its library
# is skipped.

loops='poll libuv libev libevent sd_event glib io_uring'
number=0

# runs PROGRAM ARGUMENT...: with status 0, or 77 if it cannot.
runs()
{
	local status=0

	number=$((number + 1))
	"$@" >/tmp/said 2>&1 || status=$?
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
echo 1..13
where="without the module"
runs hello
runs requests
for loop in $loops; do
	runs loops "$loop"
done

insmod "$TWHEEL_KO" || echo "not ok the module loads"
where="with the module"
runs raw-hello
runs raw-refresh
runs raw-online
runs twheel.sh
rmmod twheel
