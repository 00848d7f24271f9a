#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# The examples, without the module and with it. A loop that was built without its library
# is skipped.

loops='libuv libev libevent sd_event glib io_uring'
idle='--connections=50 --seconds=6 --idle=2 --request=1'
number=0

# runs PROGRAM ARGUMENT...: with status 0, or 77 when it cannot. The server cannot where the
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

# says WORD PROGRAM ARGUMENT...: and this word is among what it says.
says()
{
	local word=$1
	shift

	runs "$@"
	number=$((number + 1))
	if grep -q "$word" /tmp/said; then
		echo "ok $number $where: $1 says $word"
	else
		echo "not ok $number $where: $1 says $word"
	fi
}

# on_the_library BACKEND
on_the_library()
{
	local loop

	runs hello
	runs requests
	# shellcheck disable=SC2086 # words
	runs idle-server --backend="$1" $idle
	for loop in $loops; do
		runs loops --backend="$1" "$loop"
	done
}

echo "TAP version 13"
echo 1..28
where="without the module"
on_the_library local
says process idle-server --backend=auto --connections=10 --seconds=4 --idle=1 --request=1

insmod "$TWHEEL_KO" || echo "not ok the module loads"
where="with the module"
on_the_library device
says kernel idle-server --backend=auto --connections=10 --seconds=4 --idle=1 --request=1
runs raw-hello
runs raw-refresh
runs raw-online
runs twheel.sh
rmmod twheel
where="without the module again"
runs hello
if idle-server --backend=device >/tmp/said 2>&1; then
	echo "not ok 28 $where: idle-server --backend=device says that the device is not there"
else
	echo "ok 28 $where: idle-server --backend=device says that the device is not there"
fi
