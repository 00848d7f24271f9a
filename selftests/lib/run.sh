#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh PROGRAM...: run test programs of OUTPUT, and merge their output into one TAP stream.

nr=0
failed=0
read -ra patterns <<<"${PROGRAMS:-*}"

wanted()
{
	local pattern

	for pattern in "${patterns[@]}"; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ $1 != $pattern ]] || return 0
	done
	return 1
}

echo "TAP version 13"
for program; do
	wanted "$program" || continue
	if [ "$program" = twheel_lib_cxx ] && [ ! -e "$OUTPUT/$program" ]; then
		nr=$((nr + 1))
		echo "ok $nr $program # SKIP there is no compiler for C++"
		continue
	fi
	seen=0
	planned=
	while IFS= read -r line; do
		if [[ $line =~ ^1\.\.([0-9]+) ]]; then
			planned=${BASH_REMATCH[1]}
		elif [[ $line =~ ^(ok|not\ ok)\ [0-9]+\ (.*)$ ]]; then
			verdict=${BASH_REMATCH[1]}
			nr=$((nr + 1))
			seen=$((seen + 1))
			[ "$verdict" = ok ] || failed=1
			echo "$verdict $nr $program.${BASH_REMATCH[2]}"
		elif [[ $line != 'TAP version 13' ]]; then
			echo "# ${line#\# }"
		fi
	done < <($EMULATOR "$OUTPUT/$program" 2>&1 </dev/null)
	if [ "$seen" != "${planned:-none}" ]; then
		nr=$((nr + 1))
		failed=1
		echo "not ok $nr $program reaches its plan (planned ${planned:-none}, seen $seen)"
	fi
done
echo "1..$nr"
exit $failed
