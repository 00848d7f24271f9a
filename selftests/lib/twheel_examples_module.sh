#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Run the examples, without the module and with it. If a loop was built without its library, it is
# skipped.

loops='poll own libuv libev libevent sd_event glib io_uring'
idle='--connections=50 --seconds=6 --idle=2 --request=1'
number=0

# runs PROGRAM ARGUMENT...: a result, "ok" if the status is 0; 77 means that the program cannot
# run. The servers cannot run if the kernel has no TCP.
runs()
{
	local status=0

	number=$((number + 1))
	"$@" >/tmp/said 2>&1 || status=$?
	if [ "${1#idle-}" != "$1" ] && [ ! -e /proc/net/tcp ]; then
		echo "ok $number $where: $* # SKIP the kernel has no TCP"
		return
	fi
	case $status in
	0) echo "ok $number $where: $*" ;;
	77) echo "ok $number $where: $* # SKIP $(cat /tmp/said)" ;;
	*)
		sed 's/^/# /' /tmp/said
		echo "# status $status"
		echo "not ok $number $where: $*"
		;;
	esac
}

# `save' writes its jobs when it is ended, and the next `save' runs them, those that fell due
# meanwhile late.
saves_jobs()
{
	local pid nr job

	rm -f /tmp/jobs
	save /tmp/jobs >/tmp/first &
	pid=$!
	until grep -q '^job 1' /tmp/first; do
		sleep 0.1
	done
	kill "$pid" && wait "$pid" && [ -s /tmp/jobs ] || return
	nr=$(wc -l </tmp/jobs)
	sleep 1.2
	save /tmp/jobs >/tmp/second || return
	cat /tmp/first /tmp/second
	[ "$(head -n 1 /tmp/second)" = "$nr jobs of before" ] && [ ! -e /tmp/jobs ] || return
	for job in 1 2 3 4; do
		[ "$(cat /tmp/first /tmp/second | grep -c "^job $job, count 1")" = 1 ] || return
	done
	# Job 5 is periodic, and comes ten times.
	[ "$(sed -n 's/^job 5, count //p' /tmp/first /tmp/second |
		awk '{ n += $1 } END { print n }')" = 10 ] && grep -q '^job .* ms late$' /tmp/second
}

# End the keeper while it kills: it waits for the timeouts that are pending.
keeper_ends()
{
	local pid

	outlive /tmp/kept 0 || return
	outlive /tmp/kept 1000000000 &
	pid=$!
	until grep -qs ^wheel: "/proc/$pid/fdinfo/"*; do
		sleep 0.1
	done
	sleep 0.5
	kill "$pid" && wait "$pid"
}

echo "TAP version 13"
echo 1..37
where="without the module"
runs hello
runs requests
runs table
runs numbers
runs kqueue-check
runs supervisor --words
for origin in posix libevent netty; do
	runs coming-from "$origin"
done
for loop in $loops; do
	runs loops "$loop"
done
# shellcheck disable=SC2086 # words
runs idle-server --local $idle
runs idle-splice
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
# A worker is killed, and the totals are still exact.
# shellcheck disable=SC2086
runs idle-server $idle
runs table --processes
for origin in timerfd kqueue redis; do
	runs coming-from "$origin"
done
runs raw-hello
runs raw-refresh
runs raw-online
runs twheel.sh
runs saves_jobs
# Of 20 workers, 5 are stopped and 5 are killed. The supervisor must find exactly these, with the
# right reason.
runs supervisor
# The daemon is killed a hundred times, and each timeout must have one outcome.
runs outlive /tmp/journal 100
runs keeper_ends
# The examples in other languages need compilers that the guest lacks.
while read -r line; do
	case $line in
	'ok '* | 'not ok '*)
		number=$((number + 1))
		echo "${line%%ok *}ok $number $where: ${line#*ok [0-9] }"
		;;
	*) echo "$line" ;;
	esac
done <<-EOT
$(run.sh run /programs C C++ shell Python | sed 1,2d)
EOT
rmmod twheel
