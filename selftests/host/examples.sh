#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The examples compile. Run those that need no module; selftests/lib runs all of them in the
# guest.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/build.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/examples_test
loops='poll own libuv libev libevent sd_event glib io_uring'

fresh_tree()
{
	:
}

compile()
{
	make_examples "$work/$1" CC="$1" CXX="$2"
}

# written_by COMMAND...: print what the command writes to descriptor 3, a line in hex for each
# write(). A socket that keeps the bounds of each write stands in for the device.
written_by()
{
	perl -MPOSIX -MSocket -e '
		$^F = 9;	# nothing is closed by exec
		socketpair(my $ours, my $theirs, AF_UNIX, SOCK_SEQPACKET, 0) or die;
		my $pid = fork // die;
		if (!$pid) {
			POSIX::dup2(fileno($theirs), 9) or die;
			POSIX::dup2(9, 3) or die;
			POSIX::close($_) for 4 .. 9;
			exec @ARGV or die;
		}
		close $theirs;
		while (sysread($ours, my $bytes, 4096)) {
			print unpack("H*", $bytes), "\n";
		}
		waitpid($pid, 0);
		exit($? ? 1 : 0);
	' "$@"
}

# sent_by SHELL...: print what the example in shell writes there, run by this shell. The records
# have bytes 10, 0, 13 and 37.
sent_by()
{
	local functions

	functions=$(sed '/^# Without the module/,$d' "$top/examples/raw/twheel.sh")
	written_by "$@" -c "$functions
		send 1 10 168626701 2570
		send 3 0 $((0x250a0d000a0a0d0a)) 0"
}

one_write_is_one_record()
{
	local expected sent shell

	expected='010000000a0000000d0a0d0a000000000a0a00000000000000000000000000000000000000000000
03000000000000000a0d0a0a000d0a25000000000000000000000000000000000000000000000000'
	for shell in bash dash "$cache/busybox/bin/busybox sh"; do
		[[ $(command -v "${shell%% *}") ]] || continue
		# shellcheck disable=SC2086 # words
		sent=$(sent_by $shell)
		[ "$sent" = "$expected" ] || { echo "$shell wrote: $sent"; return 1; }
	done
}

# The uapi header says so, which is why the example does not use printf alone.
printf_of_bash_cuts_a_record()
{
	[ "$(written_by bash -c 'printf "\1\n\2" >&3')" = $'010a\n02' ]
}

table_runs()
{
	[ "$("$work/gcc/table" | tail -n 1)" = "5 requests got an answer, 5 expired" ]
}

# If two timeouts expire in one tick, their order is not promised.
conns_runs()
{
	diff <("$work/gcc/conns" | sort) <(printf 'connection %d is idle\n' 1 2 3)
}

# The headers for event loops need the headers of the loops.
copied_headers_are_cxx()
{
	local loops=$cache/loops/usr header headers=("$top/examples/kqueue.h")

	[ ! -d "$loops" ] || headers+=("$top"/examples/loops/twheel-*.h)
	for header in "${headers[@]}"; do
		g++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -I"$top/lib" \
			-isystem "$loops/include" -isystem "$loops/include/glib-2.0" \
			-isystem "$loops/lib/x86_64-linux-gnu/glib-2.0/include" \
			-include "$header" -x c++ /dev/null || return
	done
}

# Simulate a machine so busy that a timer has long expired when it is stopped.
late_stops_are_right()
{
	local example

	for example in table coming-from; do
		gcc -std=gnu11 -I"$top/lib" -I"$top/uapi" -Wl,--wrap=twheel_table_stop \
			-o "$work/late-$example" "$top/examples/$example.c" -x c - -x none \
			"$work/gcc/lib/libtwheel.a" -pthread <<-'EOT'
		#include <unistd.h>
		#include <twheel/table.h>

		int32_t __real_twheel_table_stop(struct twheel_table *table, uint32_t number);
		int32_t __wrap_twheel_table_stop(struct twheel_table *table, uint32_t number);

		int32_t __wrap_twheel_table_stop(struct twheel_table *table, uint32_t number)
		{
			usleep(400000);
			return __real_twheel_table_stop(table, number);
		}
		EOT
	done
	timeout 60 "$work/late-coming-from" netty
	[ "$(timeout 60 "$work/late-table" | tail -n 1)" = "5 requests got an answer, 5 expired" ]
}

# passes_a_descriptor COMPILER...: a program sends a descriptor to itself. Each C library has a
# struct cmsghdr of its own.
passes_a_descriptor()
{
	"$@" -std=gnu11 -static -I"$top/lib" -I"$top/uapi" -I"$top/examples" -o "$work/passes" \
		-x c - -x none "$top/lib/device.c" <<-'EOT'
	#define main daemon_main
	#include "outlive.c"
	#undef main

	int main(void)
	{
		int ends[2];

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ||
		    send_descriptor(ends[0], NULL, 0, "wheel", STDERR_FILENO))
			err(1, "a descriptor cannot be sent");
		return receive_descriptor(ends[1]) < 0;
	}
	EOT
	"$work/passes"
}

# Other languages load the shared library.
python_runs()
{
	make -s -C "$top/lib" OUTPUT="$work/lib"
	[ "$(python3 "$top/examples/table.py" "$work/lib/libtwheel.so.1")" = \
		"expired: 0 1 4 6 7 8 9" ]
}

# Signals interrupt each sleep.
python_with_signals_runs()
{
	[ "$(python3 -c '
import runpy, signal, sys
signal.signal(signal.SIGALRM, lambda *arguments: None)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0])' "$top/examples/table.py" "$work/lib/libtwheel.so.1")" = \
		"expired: 0 1 4 6 7 8 9" ]
}

server_runs()
{
	"$work/gcc/idle-server" --local --connections=50 --seconds=6 --idle=2 --request=1
}

# If the library of a loop is missing, skip it, and print which.
loop_runs()
{
	local what="loops $1 runs" log=$work.log status=0

	"$work/gcc/loops/loops" "$1" >"$log" 2>&1 || status=$?
	case $status in
	0) verdict ok "$what" ;;
	77) verdict ok "$what # SKIP $(<"$log")" ;;
	*)
		cat "$log"
		verdict 'not ok' "$what"
		;;
	esac
}

mkdir -p "$build"
rm -rf "$work"
echo "TAP version 13"
echo "1..30"
holds "the examples compile with gcc" compile gcc g++
holds "the examples compile with clang" compile clang clang++
holds "a record of the example in shell is one write, whatever its bytes are" \
	one_write_is_one_record
holds "the printf of bash writes up to each byte 10" printf_of_bash_cuts_a_record
holds "hello runs" "$work/gcc/hello"
holds "requests runs" "$work/gcc/requests"
holds "conns runs" conns_runs
holds "table runs" table_runs
holds "numbers runs, and each number is back" "$work/gcc/numbers"
holds "the timers of kqueue on a table are what kqueue.h says" "$work/gcc/kqueue-check"
holds "supervisor finds hung and dead workers by words" "$work/gcc/supervisor" --words
for origin in posix libevent netty; do
	holds "coming-from $origin runs" "$work/gcc/coming-from" $origin
done
holds "a timer that is stopped late counts as stopped" late_stops_are_right
holds "outlive passes a descriptor: gcc" passes_a_descriptor gcc
if command -v musl-gcc >/dev/null; then
	holds "outlive passes a descriptor: musl" passes_a_descriptor musl-gcc \
		-idirafter /usr/include -idirafter "/usr/include/$(uname -m)-linux-gnu"
else
	verdict ok "outlive passes a descriptor: musl # SKIP there is no musl-gcc"
fi
if command -v python3 >/dev/null; then
	holds "table.py runs" python_runs
	holds "table.py runs beside signals" python_with_signals_runs
else
	verdict ok "table.py runs # SKIP there is no python3"
	verdict ok "table.py runs beside signals # SKIP there is no python3"
fi
holds "the headers of what is to be copied are taken by C++" copied_headers_are_cxx
holds "idle-server runs in one process" server_runs
holds "idle-splice closes each connection when it is idle, and none early" "$work/gcc/idle-splice"
for loop in $loops; do
	loop_runs "$loop"
done
