#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# examples/jobs: no job is lost if the processes are killed, or the power fails.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/build.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/jobs_test
db=$work/here/db
# What the commands of the jobs write.
export RECORD=$work/here/record
command="printf 'E %s\\n' \$JOB_ID >>\$RECORD"

fresh_tree()
{
	rm -rf "$work/here"
	mkdir -p "$work/here"
}

compile()
{
	make_examples "$work/product" jobs
}

# mutant NAME SED-SCRIPT: the program with a fault.
mutant()
{
	local source=$top/examples/jobs/jobs.c sqlite=$cache/jobs/usr libraries

	libraries=$sqlite/lib/x86_64-linux-gnu
	sed "$2" "$source" >"$work/$1.c"
	! cmp -s "$source" "$work/$1.c" || return
	gcc -std=gnu11 -I"$top/lib" -isystem "$sqlite/include" -o "$work/$1" "$work/$1.c" \
		"$work/product/lib/libtwheel.a" -L"$libraries" -Wl,-rpath,"$libraries" -lsqlite3
}

# The numbers of the jobs whose commands ran, in order, each once.
first_runs()
{
	sed -n 's/^E //p' "$RECORD" | awk '!seen[$1]++'
}

# The earliest first, and those of one time by their numbers.
jobs_run_in_the_order_of_their_times()
{
	"$work/jobs" add "$db" 0.3 "$command" 0.1 "$command" 0.2 "$command" 0.1 "$command" 0 "$command"
	"$work/jobs" run --drain "$db"
	[ "$(first_runs | xargs)" = "5 2 4 3 1" ]
	[ -z "$("$work/jobs" list "$db")" ]
}

a_job_that_another_process_adds_runs_in_time()
{
	local pid

	"$work/jobs" run "$db" &
	pid=$!
	sleep 0.2
	"$work/jobs" add "$db" 50 "$command" 0.1 "$command"
	sleep 0.5
	kill "$pid"
	wait "$pid"
	[ "$(first_runs)" = 2 ]
}

a_removed_job_does_not_run()
{
	"$work/jobs" add "$db" 0.2 "$command" 0.1 "$command"
	"$work/jobs" remove "$db" 1
	! "$work/jobs" remove "$db" 3 || return
	"$work/jobs" run --drain "$db"
	[ "$(first_runs)" = 2 ]
}

# The second takes over.
two_runs_do_no_job_at_once()
{
	local first second

	"$work/jobs" add "$db" 0 "sleep 0.3; $command" 0.1 "$command"
	"$work/jobs" run "$db" &
	first=$!
	sleep 0.1
	"$work/jobs" run --drain "$db" &
	second=$!
	sleep 0.1
	kill -9 "$first"
	wait "$second"
	# The command of the first run ended before the second began.
	[ "$(sed -n 's/^E //p' "$RECORD" | xargs)" = "1 1 2" ]
}

# kill_often JOBS: a run, with its commands, and a process that adds, at random times.
kill_often()
{
	local i pid adder pairs=() kills=${KILLS:-30}

	for i in {1..100}; do
		pairs+=("0.$((RANDOM % 900 + 100))" "$command")
	done
	"$1" add "$db" "${pairs[@]}" >"$work/here/told"
	"$1" list "$db" | cut -f 1 >"$work/here/order"
	for ((i = 0; i < kills; i++)); do
		setsid "$1" run "$db" &
		pid=$!
		"$1" add "$db" "0.$((RANDOM % 10))" "$command" >>"$work/here/told" &
		adder=$!
		sleep "0.00$((RANDOM % 10))"
		((RANDOM % 4)) || kill -9 "$adder" || true
		sleep "0.0$((RANDOM % 60 + 10))"
		# It has no group of its own before setsid().
		kill -9 -- "-$pid" || kill -9 "$pid"
		wait "$adder" "$pid" || true
	done 2>/dev/null
	"$1" run --drain "$db"
}

each_job_runs_at_least_once_in_order()
{
	kill_often "$work/jobs"
	# None that was told is lost.
	[ -z "$(comm -23 <(sort "$work/here/told") <(first_runs | sort))" ]
	diff "$work/here/order" <(first_runs | grep -Fx -f "$work/here/order")
	# Only the job that ran at a kill runs again.
	[ "$(grep -c ^E "$RECORD")" -le $(($(first_runs | wc -l) + ${KILLS:-30})) ]
}

kills_find_a_job_that_is_deleted_too_early()
{
	mutant early 's/UPDATE jobs SET claims = claims + 1 WHERE id = ?/DELETE FROM jobs WHERE id = ?/'
	kill_often "$work/early"
	[ -n "$(comm -23 <(sort "$work/here/told") <(first_runs | sort))" ]
}

# record_work JOBS: some 150 jobs, and a kill now and then. Who adds is told.
record_work()
{
	local i pid pairs

	for i in {1..10}; do
		LD_PRELOAD=$work/record.so setsid "$1" run "$db" &
		pid=$!
		for _ in {1..10}; do
			pairs=("0.0$((RANDOM % 100))" "$command")
			((RANDOM % 2)) || pairs+=("${pairs[@]}")
			LD_PRELOAD=$work/record.so "$1" add "$db" "${pairs[@]}" |
				sed 's/^/A /' >>"$RECORD"
		done
		kill -9 -- "-$pid" || kill -9 "$pid"
		wait "$pid" || true
	done 2>/dev/null
}

# cuts JOBS
cuts()
{
	gcc -shared -fPIC -Wall -Wextra -Werror -O2 -o "$work/record.so" "$top/selftests/jobs/record.c"
	record_work "$1"
	perl "$top/selftests/jobs/cut.pl" "$1" "$RECORD" "$work/here/cut" "${CUTS:-120}" 6
}

no_job_is_lost_by_a_power_cut()
{
	cuts "$work/jobs"
}

cuts_find_that_the_disk_is_not_waited_for()
{
	mutant hasty 's/synchronous=FULL/synchronous=NORMAL/'
	! cuts "$work/hasty" >"$work/here/said" 2>&1 || return
	grep -q '^after .*: lost: ' "$work/here/said"
}

mkdir -p "$build"
rm -rf "$work"
mkdir -p "$work"
compile >"$work.log" 2>&1 || { cat "$work.log"; exit 1; }
echo "TAP version 13"
if [ ! -x "$work/product/jobs/jobs" ]; then
	echo "1..0 # SKIP $(grep -h 'is not built' "$work.log")"
	exit
fi
ln -s product/jobs/jobs "$work/jobs"
echo "1..8"
for case in jobs_run_in_the_order_of_their_times a_job_that_another_process_adds_runs_in_time \
	a_removed_job_does_not_run two_runs_do_no_job_at_once each_job_runs_at_least_once_in_order \
	kills_find_a_job_that_is_deleted_too_early no_job_is_lost_by_a_power_cut \
	cuts_find_that_the_disk_is_not_waited_for; do
	holds "${case//_/ }" "$case"
done
