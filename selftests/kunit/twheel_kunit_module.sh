#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Load twheel_kunit.ko, which runs its suites, and print the results of KUnit as TAP: a line
# for each case, including parameters. If the kernel has no KUnit, the module writes the same files
# itself, see shim/.
#
# KUNIT_KO  the module, /lib/twheel_kunit.ko by default

results=/sys/kernel/debug/kunit
module=${KUNIT_KO:-/lib/twheel_kunit.ko}

echo "TAP version 13"
if [ ! -e "$module" ]; then
	echo "1..0 # SKIP $module is needed"
	exit 0
fi

# KCSAN watches the whole kernel, which has races of its own. Count a report only if its first
# line names the module. Ignore races of the kernel's hash table, between its worker and a
# function that waits for the lock of a bucket, and that is inlined into the module.
log()
{
	dmesg | sed -E '/BUG: KCSAN: /{/\[twheel/!d
		/ in rh[^ ]* \/ (rht_lock|test_and_set_bit_lock)/d}'
}
complaints() { log | grep -cE 'Call Trace|BUG:|WARNING:'; }

# KUnit makes a folder for each suite, and prints the number of its cases, so that a missing
# result is noticed. Lines that a case printed are shown with it. Results of parameters are
# indented deeper: only failures are shown, since awk in an emulated machine is too slow for all
# of them.
flatten()
{
	for suite in "$results"/twheel_*; do
		cat "$suite/results" || echo "    not ok 0 $suite has results"
	done | grep -v '^        ok ' | awk -v nr="$1" '
	function head(line) { sub(/^ +(not )?ok [0-9]+ (- )?/, "", line); return line }
	/^ *# Subtest: / { if (/^    #/) suite = $3; next }
	/^    1\.\./ { sub(/^    1\.\./, ""); planned += $0; next }
	/^    ok / { print "ok " ++nr " - " suite ": " head($0); next }
	/^    not ok / { print "not ok " ++nr " - " suite ": " head($0); failed = 1; next }
	/^ *(KTAP version|# module: |# .*pass:|1\.\.|ok )/ || /^not ok / { next }
	{ sub(/^ +(# )?/, ""); print "# " $0 }
	END { print "1.." planned + 3; exit failed }'
}

before=$(complaints)
status=0
if insmod "$module" 2>/tmp/insmod; then
	flatten 0 >/tmp/kunit || status=1
	cases=$(cat /sys/module/twheel_kunit/parameters/cases)
	rmmod twheel_kunit || status=1
	cat /tmp/kunit
	nr=$(grep -cE '^(not )?ok ' /tmp/kunit)
	if [ "$status" = 0 ]; then
		echo "ok $((nr + 1)) - the suites load, run and unload"
	else
		echo "not ok $((nr + 1)) - the suites load, run and unload"
	fi
	if [ "$nr" = "$cases" ]; then
		echo "ok $((nr + 2)) - every case of the sources has run"
	else
		echo "not ok $((nr + 2)) - every case of the sources has run ($nr of $cases)"
		status=1
	fi
	# Do not count KUnit's own messages: they would push the complaint out of the log that is
	# shown.
	if [ "$(complaints)" = "$before" ]; then
		echo "ok $((nr + 3)) - the kernel does not complain meanwhile"
	else
		echo "not ok $((nr + 3)) - the kernel does not complain meanwhile"
		log | grep -E -A 30 'BUG:|WARNING:' | head -n 100 | sed 's/^/# /'
		status=1
	fi
else
	echo "1..1"
	echo "not ok 1 - twheel_kunit.ko loads: $(cat /tmp/insmod)"
	status=1
fi
rm -f /tmp/kunit /tmp/insmod
exit $status
