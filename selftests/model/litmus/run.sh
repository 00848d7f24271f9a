#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Check the pairings of the module as litmus tests, see litmus.pl. Prints TAP: the source is
# right, and would be wrong without the marks of either side.
#
#	run.sh [TOP [OUTPUT]]
#	TOP	the project, or a copy of it
#	OUTPUT	the folder for products, which are kept; by default a temporary one

unset CDPATH
here=$(dirname "$(readlink -f "$0")")
top=$(readlink -f "${1:-$here/../../..}")

# In a folder of its own: let spin search for tests that can reach a forbidden end, and write
# their numbers to ./seen.
search()
{
	cp "$here/litmus.pml" . &&
		spin -a litmus.pml >log 2>&1 &&
		${CC:-cc} -w -O1 -DSAFETY -DPRINTF -DMEMLIM=1000 -o pan pan.c >>log 2>&1 &&
		./pan -E -m10000 >pan.log 2>&1 &&
		grep -q '^State-vector.* errors: 0$' pan.log &&
		! grep -q 'Search not completed\|depth too small' pan.log &&
		sed -n 's/.*never \([0-9]*\)$/\1/p' pan.log | sort -u >seen
}

# Print a result for each pairing. "all" is a thread without any of its marks. With "ALL", it need
# not be wrong to leave out a single mark.
judge()
{
	awk -F '\t' '
	FILENAME == "seen" { seen[$1] = 1; next }
	FILENAME == "says" { says[$1] = $2; next }
	!($2 in says) { next }
	!($2 in tests) { names[++nr] = $2 }
	{ tests[$2]++ }
	$3 == "" && $1 in seen { wrong[$2] = wrong[$2] "# this may happen: " $5 "\n" }
	$3 == "" { next }
	{ thread = $2 ", " $3; of[thread] = $2 }
	$4 != "all" && $4 != "ALL" { single[thread] += $1 in seen; next }
	{ whole[thread] = $4 }
	!($1 in seen) { wrong[$2] = wrong[$2] "# " $3 " needs none of its marks: " $5 "\n" }
	END {
		for (thread in of)
			if (whole[thread] == "all" && !single[thread])
				wrong[of[thread]] = wrong[of[thread]] "# no mark of " thread " is needed by itself\n"
		for (i = 1; i <= nr; i++) {
			name = names[i]
			print (wrong[name] != "" ? "not ok " : "ok ") i " - " name ": " says[name]
			printf "%s", wrong[name]
		}
		exit nr == 0
	}' seen says tests
}

output=${2:-}
if [ -z "$output" ]; then
	output=$(mktemp -d) || exit
	trap 'rm -rf "$output"' EXIT
fi
mkdir -p "$output" && cd "$output" || exit
echo 'TAP version 13'
if ! command -v spin >/dev/null; then
	echo 'Bail out! There is no spin (Debian: apt install spin).'
	exit 1
fi
if ! perl "$here/litmus.pl" "$top" "$here/pairings" . || ! search; then
	sed 's/^/# /' log
	echo 'Bail out! spin has not searched all tests.'
	exit 1
fi
sed -n 's/^\([a-z_]*\): */\1\t/p' "$here/pairings" >says
judge >results
cat results
nr=$(grep -c '^ok\|^not ok' results)
verdict=ok
[ ! -s problems ] || verdict='not ok'
echo "$verdict $((nr + 1)) - all that orders is in a pairing, and its comment names that"
sed 's/^/# /' problems
echo "1..$((nr + 1))"
[ "$verdict" = ok ] && ! grep -q '^not ok' results
