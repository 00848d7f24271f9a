# SPDX-License-Identifier: GPL-2.0
#
# Plots of the benchmark's CSV, as SVG:
#
#	gnuplot -e "csv='bench.csv'; dir='plots'" plot.gp

peers = "twheel twheel-store twheel-10ms timerfd posix-timer io_uring heap libev libuv libevent netty"
set terminal svg noenhanced size 720,480 font "sans,12" background "white"
set key outside right
set grid
set datafile separator ","

# The rows of one peer: n and value.
rows(mode, peer, workload, metric) = sprintf( \
	"< awk -F, '$1 == \"%s\" && $2 == \"%s\" && $3 == \"%s\" && $5 == \"%s\" { print $4 \",\" $6 }' '%s'", \
	mode, peer, workload, metric, csv)
# Which peers have such rows. (sprintf() would cut the end off.)
with_rows(mode, workload, n, metric) = system( \
	"for p in " . peers . "; do grep -q \"^" . mode . ",$p," . workload . "," . n . "," . \
	metric . ",\" '" . csv . "' && echo $p; done; true")

set logscale xy
set xlabel "timeouts pending"
set ylabel "instructions each, user and kernel together"
do for [workload in "arm refresh cancel young expire mix"] {
	found = with_rows("instructions", workload, "[0-9]*", "cost")
	if (words(found) > 0) {
		set output dir . "/" . workload . ".svg"
		set title workload
		set xlabel (workload eq "expire" ? "timeouts due within a second" : "timeouts pending")
		plot for [p in found] rows("instructions", p, workload, "cost") \
			using 1:2 with linespoints linewidth 2 title p
		unset output
	}
}

# How late, at so many a second: each point is a share of all.
shares = "'$3 == \"late\" && $2 == \"%s\" && $4 == %d && $5 ~ /^p/ { s = substr($5, 2); print 1 / (1 - s / 100) \",\" $6 }'"
late(peer, n) = sprintf("< awk -F, " . shares . " '%s'", peer, n, csv)
set ylabel "microseconds late"
set xlabel "share of all that is no later"
set xtics ("50 %%" 2, "90 %%" 10, "99 %%" 100, "99.9 %%" 1000, "99.99 %%" 10000)
do for [n in "10000 100000 1000000"] {
	found = with_rows("time", "late", n, "p50")
	if (words(found) > 0) {
		set output dir . "/late-" . n . ".svg"
		set title "lateness, " . n . " a second"
		plot for [p in found] late(p, int(n)) using 1:($2 + 0.1) \
			with linespoints linewidth 2 title p
		unset output
	}
}

set xtics auto
unset logscale
unset xlabel
set ylabel "bytes each, kernel and process"
set style fill solid 0.6
set boxwidth 0.7
unset key
memory = "< awk -F, '$3 == \"memory\" && $5 == \"bytes\" { print $2 \",\" $6 }' '" . csv . "'"
if (int(system(memory[3:] . " | wc -l")) > 0) {
	set output dir . "/memory.svg"
	set title "memory of a pending timeout"
	set xtics rotate by -30
	plot memory using 0:2:xtic(1) with boxes
	unset output
}
