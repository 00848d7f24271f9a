#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# Combine programs, libraries and modules of different releases, each with each: versions.c. Then
# check on the module the names that any release has promised: the device, parameters, and keys of
# fdinfo. (tools/check/stability.sh checks constants, structures and functions.)

number=0

verdict()
{
	number=$((number + 1))
	echo "$1 $number $2"
}

# result STATUS SENTENCE
result()
{
	if [ "$1" = 0 ]; then verdict ok "$2"; else verdict 'not ok' "$2"; fi
}

# run_tests PROGRAM SENTENCE: print a result for each of its tests, and its output if one has
# failed. If it did not reach its plan, it has failed. The line to the host is slow, so nothing
# else is printed about tests that pass.
run_tests()
{
	local line planned=none seen=0

	"$1" >/tmp/said 2>&1 || sed '/^ok /d; s/^/# /' /tmp/said
	while read -r line; do
		case $line in
		'ok '* | 'not ok '*)
			seen=$((seen + 1))
			verdict "${line%%ok *}ok" "$2: ${line#*ok [0-9]* }"
			;;
		1..*) planned=${line#1..} ;;
		esac
	done </tmp/said
	[ "$seen" = "$planned" ] || verdict 'not ok' "$2: reaches its plan ($planned, seen $seen)"
}

# run_programs MODULE: run each program with each library, on the loaded module.
run_programs()
{
	local program library

	for program in first later; do
		for library in this later; do
			run_tests "versions_${program}_$library" \
				"$program program, $library library, $1 module"
		done
	done
}

# all_there KIND FUNCTION SENTENCE: a result, "ok" if the function succeeds for each name of that
# kind, of which there must be one.
all_there()
{
	local kind name rest nr=0 status=0

	while read -r kind name rest; do
		[ "$kind" = "$1" ] || continue
		nr=$((nr + 1))
		# shellcheck disable=SC2086 # words
		"$2" "$name" $rest || { echo "# there is no $kind $name $rest"; status=1; }
	done </programs/promised
	[ $nr != 0 ] || status=1
	result $status "$3"
}

is_device()
{
	[ -c "/dev/$1" ]
}

# is_parameter NAME TYPE MODE
is_parameter()
{
	[ "$(stat -c %a "/sys/module/twheel/parameters/$1")" = "$3" ]
}

is_key()
{
	grep -q "^$1:	" /tmp/fdinfo
}

echo "TAP version 13"
insmod "$TWHEEL_KO"
result $? "this module loads"
# The size of INFO, in the program and in the module.
here=$(versions_first_this --info)
run_programs this
all_there device is_device "the device has the promised name"
all_there parameter is_parameter "the parameters have the promised names and modes"
exec 3<>/dev/twheel
cat "/proc/$$/fdinfo/3" >/tmp/fdinfo
exec 3>&-
all_there fdinfo is_key "fdinfo has the promised keys"
rmmod twheel

insmod "${TWHEEL_KO%.ko}_grown.ko"
result $? "the later module loads"
there=$(versions_later_this --info)
# If INFO had the same size, this test would prove nothing.
[ "${here% *}" -lt "${there% *}" ] && [ "${here#* }" -lt "${there#* }" ]
result $? "INFO is larger in the later program and the later module: $here, $there"
run_programs later
rmmod twheel
echo "1..$number"
