#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test the reports of the benchmark, with rows that are made up: the comparison with a record, and
# the plots.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"

work=$build/bench_report
number=0

verdict()
{
	local verdict=ok

	number=$((number + 1))
	[ "$1" = 0 ] || verdict='not ok'
	echo "$verdict $number $2"
}

# csv KERNEL ROW...: print a file of these rows, as if measured with that kernel.
csv()
{
	printf '# kernel: %s\n# compiler: gcc\n# date: 2026-01-01\n' "$1"
	echo mode,peer,workload,n,metric,value
	shift
	printf 'instructions,%s\n' "$@"
}

# compare KERNEL ROW...: compare these rows with the record.
compare()
{
	csv "$@" >"$work/new.csv"
	"$work/twheel-bench" --report "$work/new.csv" --recorded "$work/old.csv" | sed '1,/^against/d'
}

# says TEXT SENTENCE: a result, "ok" if $said contains TEXT.
says()
{
	[[ $said = *"$1"* ]]
	verdict $? "$2"
}

# colour SVG PEER: print the colour of the peer's line, which follows its name in the key.
colour()
{
	awk -v name="<text>$2</text>" '
	index($0, name) { found = 1 }
	found && /<path/ && match($0, /rgb\([^)]*\)/) { print substr($0, RSTART, RLENGTH); exit }' "$1"
}

plots()
{
	local peer first=()

	if ! command -v gnuplot >/dev/null; then
		echo "ok $((number += 1)) each peer has one colour in all plots # SKIP no gnuplot"
		return
	fi
	csv 6.12 {timerfd,heap,libev,libevent,twheel}',arm,1000,cost,5' \
		{libevent,twheel}',expire,1000,cost,5' >"$work/new.csv"
	gnuplot -e "csv='$work/new.csv'; dir='$work'" "$top/bench/plot.gp" >"$work/gnuplot.log" 2>&1
	for peer in twheel libevent; do
		first+=("$(colour "$work/arm.svg" "$peer")")
		[ -n "${first[-1]}" ] && [ "${first[-1]}" = "$(colour "$work/expire.svg" "$peer")" ] ||
			first=(no no)
	done
	[ "${first[0]}" != "${first[1]}" ] && grep -q 6.12 "$work/arm.svg"
	verdict $? "each peer has one colour in all plots, which name the kernel"
}

rm -rf "$work"
mkdir -p "$work"
make -s -C "$top/bench" OUTPUT="$work" >"$work/make.log" 2>&1 || { cat "$work/make.log"; exit 1; }
csv 6.12 twheel,arm,1000,cost,100 twheel,late,1000,p99,100 twheel,late,1000,max,100 \
	twheel,idle,1000,interrupts,100 >"$work/old.csv"
echo "TAP version 13"
echo "1..5"
set +e
said=$(compare 6.12 twheel,arm,1000,cost,110)
says '1 of 1 instruction counts moved' "a count that moved is reported"
said=$(compare 6.12 twheel,arm,1000,cost,101)
says '0 of 1 instruction counts moved' "one that moved by a hundredth is not"
said=$(compare 6.12 twheel,late,1000,{p99,max},110 twheel,idle,1000,interrupts,110)
says '1 of 1 instruction counts moved' "tails and the machine's own interrupts are not compared"
said=$(compare 7.3 twheel,arm,1000,cost,110)
says 'nothing is compared' "nothing is compared with the record of another kernel"
plots
