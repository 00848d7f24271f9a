# SPDX-License-Identifier: GPL-2.0
#
# Plots of the benchmark's CSV, as SVG:
#
#	gnuplot -e "csv='bench.csv'; dir='plots'" plot.gp
#
# Each peer has one colour, one width and one kind of point in all of them; twheel
# comes first, and heavier, libtwheel before it. Peers of the kernel have filled points,
# those that are a process's own open ones.

peers = "libtwheel libtwheel-fd twheel twheel-store twheel-keyed timerfd timerfd-1ms posix-timer io_uring heap callout libev libuv libevent netty bpf-timer bpf-1ms bpf-store table table-device levels"
set linetype  1 linecolor rgb "#f08000" linewidth 4   pointtype 7  pointsize 0.8 dashtype 1
set linetype  2 linecolor rgb "#f08000" linewidth 4   pointtype 6  pointsize 0.8 dashtype 2
set linetype  3 linecolor rgb "#d00000" linewidth 4   pointtype 7  pointsize 0.8 dashtype 1
set linetype  4 linecolor rgb "#d00000" linewidth 4   pointtype 5  pointsize 0.8 dashtype 2
set linetype  5 linecolor rgb "#d00000" linewidth 1.5 pointtype 13 pointsize 0.8 dashtype 2
set linetype  6 linecolor rgb "#0060c0" linewidth 1.5 pointtype 7  pointsize 0.7 dashtype 1
set linetype  7 linecolor rgb "#0060c0" linewidth 1.5 pointtype 6  pointsize 0.7 dashtype 2
set linetype  8 linecolor rgb "#00a0d0" linewidth 1.5 pointtype 5  pointsize 0.7 dashtype 1
set linetype  9 linecolor rgb "#6040b0" linewidth 1.5 pointtype 9  pointsize 0.7 dashtype 1
set linetype 10 linecolor rgb "#606060" linewidth 1.5 pointtype 6  pointsize 0.7 dashtype 1
set linetype 11 linecolor rgb "#202020" linewidth 1.5 pointtype 6  pointsize 0.7 dashtype 3
set linetype 12 linecolor rgb "#008040" linewidth 1.5 pointtype 4  pointsize 0.7 dashtype 1
set linetype 13 linecolor rgb "#c08000" linewidth 1.5 pointtype 8  pointsize 0.7 dashtype 1
set linetype 14 linecolor rgb "#b050a0" linewidth 1.5 pointtype 12 pointsize 0.7 dashtype 1
set linetype 15 linecolor rgb "#805030" linewidth 1.5 pointtype 10 pointsize 0.7 dashtype 1
set linetype 16 linecolor rgb "#809000" linewidth 1.5 pointtype 13 pointsize 0.8 dashtype 1
set linetype 17 linecolor rgb "#809000" linewidth 1.5 pointtype 11 pointsize 0.7 dashtype 3
set linetype 18 linecolor rgb "#809000" linewidth 1.5 pointtype 5  pointsize 0.7 dashtype 2
set linetype 19 linecolor rgb "#f08000" linewidth 1.5 pointtype 4  pointsize 0.7 dashtype 3
set linetype 20 linecolor rgb "#d00000" linewidth 1.5 pointtype 4  pointsize 0.7 dashtype 4
set linetype 21 linecolor rgb "#202020" linewidth 1.5 pointtype 4  pointsize 0.7 dashtype 1
style_of(peer) = sum [i = 1:words(peers)] (word(peers, i) eq peer ? i : 0)

set terminal svg noenhanced size 760,540 font "sans,13" background "white"
set key outside right top Left reverse samplen 2.5 spacing 1.05
set grid linecolor rgb "#d8d8d8"
set border 3 linecolor rgb "#606060"
set tics nomirror
set datafile separator ","

# Where it was measured: the second line of each title.
told(what) = system("sed -n 's/^# " . what . ": //p' '" . csv . "' | tail -n 1")
where = (strlen(told("kernel")) ? "Linux " . told("kernel") . ", " . told("date") : "")
set title noenhanced
title(words) = words . "\n" . where

# The rows of one peer: n and value.
rows(mode, peer, workload, metric) = sprintf( \
	"< awk -F, '$1 == \"%s\" && $2 == \"%s\" && $3 == \"%s\" && $5 == \"%s\" { print $4 \",\" $6 }' '%s' | sort -t, -n", \
	mode, peer, workload, metric, csv)
# Which peers have such rows. (sprintf() would cut the end off.)
with_rows(mode, workload, n, metric) = system( \
	"for p in " . peers . "; do grep -q \"^" . mode . ",$p," . workload . "," . n . "," . \
	metric . ",\" '" . csv . "' && echo $p; done; true")

# ---- what one timeout costs ---------------------------------------------------

what_of(workload) = \
	workload eq "arm"     ? "What it costs to arm a timeout" : \
	workload eq "refresh" ? "What it costs to move a timeout to a later deadline" : \
	workload eq "cancel"  ? "What it costs to cancel a timeout" : \
	workload eq "young"   ? "What it costs to arm a timeout and cancel it soon after" : \
	workload eq "expire"  ? "What it costs when a timeout expires and is delivered" : \
	workload eq "request" ? "What a request timeout costs: start, and stop on the reply" : \
	workload eq "lifo"    ? "A request timeout amid long ones, the last one stopped first" : \
	workload eq "restart" ? "What it costs to move the idle timeout of a connection on" : \
	workload eq "lengths" ? "What a request costs: idle timeout moved twice, its own started, stopped" : \
	"What a packet costs among idle connections, with 1/1000 of an expiry"

set logscale xy
set xrange [700:*]
set ytics ("1" 1, "3" 3, "10" 10, "30" 30, "100" 100, "300" 300, "1,000" 1000, "3,000" 3000, \
	"10,000" 1e4, "30,000" 3e4, "100,000" 1e5, "1 million" 1e6, "10 million" 1e7)
do for [mode in "instructions time"] {
	set ylabel (mode eq "time" ? "nanoseconds of processor time each" : \
		"instructions each, user and kernel together")
	do for [workload in "arm refresh cancel young expire mix request lifo restart lengths"] {
		found = with_rows(mode, workload, "[0-9]*", "cost")
		if (words(found) > 0) {
			set output dir . "/" . workload . (mode eq "time" ? "-time" : "") . ".svg"
			set title title(what_of(workload))
			set xrange [(workload eq "request" || workload eq "lifo" ? 70 : 700):*]
			set xlabel (workload eq "expire" ? "timeouts due within one second" : \
				workload eq "request" || workload eq "lifo" ? "requests in flight" : \
				workload eq "lengths" || workload eq "restart" ? "connections" : \
				"timeouts pending")
			set xtics ("100" 100, "1,000" 1e3, "10,000" 1e4, "100,000" 1e5, \
				"1 million" 1e6, "10 million" 1e7)
			plot for [p in found] rows(mode, p, workload, "cost") \
				using 1:2 with linespoints linetype style_of(p) title p
			unset output
		}
	}
}

# ---- how late, at so many a second: each point is a share of all --------------

shares = "'$1 == \"%s\" && $3 == \"late\" && $2 == \"%s\" && $4 == %d && $5 ~ /^p/ { s = substr($5, 2); print 1 / (1 - s / 100) \",\" $6 }'"
late(mode, peer, n) = sprintf("< awk -F, " . shares . " '%s'", mode, peer, n, csv)
set xrange [1.6:*]
set xtics ("half" 2, "90 %%" 10, "99 %%" 100, "99.9 %%" 1000, "99.99 %%" 10000)
set ylabel "microseconds from the deadline to the program"
do for [mode in "instructions time"] {
	do for [n in "10000 100000 1000000"] {
		found = with_rows(mode, "late", n, "p50")
		if (words(found) > 0) {
			set output dir . "/late-" . n . (mode eq "time" ? "-time" : "") . ".svg"
			set title title("How late, at " . n[1:strlen(n) - 3] . ",000 a second" . \
				(mode eq "time" ? ", on two emulated processors" : ""))
			set xlabel "share of the timeouts that came no later"
			plot for [p in found] late(mode, p, int(n)) using 1:($2 + 0.1) \
				with linespoints linetype style_of(p) title p
			unset output
		}
	}
}

# ---- threads --------------------------------------------------------------------

set xrange [0.9:4.4]
set xtics (1, 2, 4)
set xlabel "threads, on as many processors"
set ylabel "pairs of all threads in a second"
set ytics auto
found = with_rows("time", "shared", "[0-9]*", "pairs")
if (words(found) > 0) {
	set output dir . "/shared-time.svg"
	set title title("Timers of one structure, started and stopped by threads")
	plot for [p in found] rows("time", p, "shared", "pairs") \
		using 1:2 with linespoints linetype style_of(p) title p
	unset output
}

# ---- one bar a peer ---------------------------------------------------------------

# of WORKLOAD METRIC: its number in the row, the value, its style, its name.
bars(workload, metric) = sprintf( \
	"< awk -F, '$1 == \"instructions\" && $3 == \"%s\" && $5 == \"%s\" { v[$2] = $6 } " . \
	"END { k = split(\"%s\", p, \" \"); for (i = 1; i <= k; i++) if (p[i] in v) " . \
	"print ++r \",\" v[p[i]] \",\" i \",\" p[i] }' '%s'", workload, metric, peers, csv)
bars_title(workload) = \
	workload eq "wakeups"  ? "How often a process wakes up for its timers in an hour, none of which expires" : \
	workload eq "dispatch" ? "The longest call, where timeouts come due over an hour" : \
	"A wheel with ten timers"
bars_unit(workload) = \
	workload eq "wakeups"  ? "wake-ups, at 100 requests of 1 s in a second" : \
	workload eq "dispatch" ? "instructions, user and kernel together" : \
	"bytes in the process, with the timers"
set key off
unset xlabel
set style fill solid 0.85 noborder
set boxwidth 0.7
set grid noxtics
set xrange [*:*]
do for [i = 1:3] {
	workload = word("wakeups dispatch wheels", i)
	metric = word("hour_1s max process", i)
	if (int(system(bars(workload, metric)[3:] . " | wc -l")) > 0) {
		set xtics auto rotate by -30
		# Of wake-ups some have none, which no logarithm shows.
		if (workload eq "wakeups") { unset logscale } else { set logscale y }
		set yrange [(workload eq "wakeups" ? 0 : 100):*]
		set ylabel bars_unit(workload)
		set output dir . "/" . workload . ".svg"
		set title title(bars_title(workload))
		plot bars(workload, metric) using 1:2:3:xtic(4) with boxes linecolor variable, \
			bars(workload, metric) using 1:2:(sprintf("%.0f", $2)) with labels offset 0,0.6
		unset output
	}
}
set key on
set yrange [*:*]

# ---- memory -------------------------------------------------------------------

# One row a peer, its latest; how many, where it is not a million.
memory = "< awk -F, '$3 == \"memory\" && $5 == \"bytes\" { v[$2] = $6; n[$2] = $4 } " . \
	"END { k = split(\"" . peers . "\", p, \" \"); for (i = 1; i <= k; i++) if (p[i] in v) " . \
	"print ++r \",\" v[p[i]] \",\" i \",\" p[i] (n[p[i]] == 1000000 ? \"\" : \" (of \" n[p[i]] / 1000 \" thousand)\") }' '" . csv . "'"
if (int(system(memory[3:] . " | wc -l")) > 0) {
	unset logscale
	set xrange [*:*]
	unset xlabel
	unset key
	set ylabel "bytes each, of the kernel and of the process"
	set ytics auto
	set yrange [0:*]
	set style fill solid 0.85 noborder
	set boxwidth 0.7
	set grid noxtics
	set xtics auto rotate by -30
	set output dir . "/memory.svg"
	set title title("The memory of a pending timeout, of a million")
	plot memory using 1:2:3:xtic(4) with boxes linecolor variable, \
		memory using 1:2:(sprintf("%.0f", $2)) with labels offset 0,0.6
	unset output
}
