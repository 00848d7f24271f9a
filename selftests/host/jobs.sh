#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test examples/jobs: no job is lost if processes are killed, or if the power fails.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/build.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/jobs_test
db=$work/here/db
# The commands of the jobs write to this file.
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

# mutant NAME SED-SCRIPT: compile the program with a fault.
mutant()
{
	local source=$top/examples/jobs/jobs.c sqlite=$cache/jobs/usr libraries

	libraries=$sqlite/lib/x86_64-linux-gnu
	sed "$2" "$source" >"$work/$1.c"
	! cmp -s "$source" "$work/$1.c" || return
	gcc -std=gnu11 -I"$top/lib" -I"${source%/*}" -isystem "$sqlite/include" -o "$work/$1" "$work/$1.c" \
		"$work/product/lib/libtwheel.a" -L"$libraries" -Wl,-rpath,"$libraries" -lsqlite3
}

# Print the numbers of the jobs whose commands ran, in order, each once.
first_runs()
{
	sed -n 's/^E //p' "$RECORD" | awk '!seen[$1]++'
}

# The earliest job runs first. If times are equal, the lower number runs first.
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
	until [ "$(first_runs)" ]; do
		sleep 0.05
	done
	kill "$pid"
	wait "$pid"
	[ "$(first_runs)" = 2 ]
}

# Documentation/jobs.rst shows these commands.
what_is_listed_is_what_pends()
{
	cd "$work/here"
	"$work/jobs" add mail.db 3600 'mail-reminder 17'
	"$work/jobs" list mail.db | grep -q $'^1\t3[0-9.]* s\t0 claims\tmail-reminder 17$'
}

a_removed_job_does_not_run()
{
	"$work/jobs" add "$db" 0.2 "$command" 0.1 "$command"
	"$work/jobs" remove "$db" 1
	! "$work/jobs" remove "$db" 3 || return
	"$work/jobs" run --drain "$db"
	[ "$(first_runs)" = 2 ]
}

# A command that takes long. Wait until it has begun, since a busy host is slow.
long()
{
	echo ": >'$work/here/begun'; sleep 2; $command"
}

long_has_begun()
{
	until [ -e "$work/here/begun" ]; do
		sleep 0.05
	done
}

# After the first run was killed, the second one continues.
two_runs_do_no_job_at_once()
{
	local first second

	"$work/jobs" add "$db" 0 "$(long)" 0.1 "$command"
	"$work/jobs" run "$db" &
	first=$!
	long_has_begun
	"$work/jobs" run --drain "$db" &
	second=$!
	sleep 0.1
	kill -9 "$first"
	wait "$second"
	# The command of the first run must end before the second begins.
	[ "$(sed -n 's/^E //p' "$RECORD" | xargs)" = "1 1 2" ]
}

# When a machine is shut down, all processes get the signal.
a_job_whose_command_is_ended_by_a_signal_runs_again()
{
	local pid

	"$work/jobs" add "$db" 0 "$(long)"
	setsid "$work/jobs" run "$db" &
	pid=$!
	long_has_begun
	kill -TERM -- "-$pid"
	wait "$pid" && return 1
	"$work/jobs" run --drain "$db"
	[ "$(first_runs)" = 1 ]
}

# kill_often JOBS: kill a run with its commands, and a process that adds jobs, at random times.
# JOBS is the program.
kill_often()
{
	local i pid adder pairs=() kills=${KILLS:-30}

	for i in {1..100}; do
		pairs+=("0.$((RANDOM % 900 + 100))" "$command")
	done
	"$1" add "$db" "${pairs[@]}" >"$work/here/added"
	"$1" list "$db" | cut -f 1 >"$work/here/order"
	for ((i = 0; i < kills; i++)); do
		setsid "$1" run "$db" &
		pid=$!
		"$1" add "$db" "0.$((RANDOM % 10))" "$command" >>"$work/here/added" &
		adder=$!
		sleep "0.00$((RANDOM % 10))"
		((RANDOM % 4)) || kill -9 "$adder" || true
		sleep "0.0$((RANDOM % 60 + 10))"
		# Before setsid(), the process has no group of its own.
		kill -9 -- "-$pid" || kill -9 "$pid"
		wait "$adder" "$pid" || true
	done 2>/dev/null
	"$1" run --drain "$db"
}

each_job_runs_at_least_once_in_order()
{
	kill_often "$work/jobs"
	# No job whose number was printed is lost.
	[ -z "$(comm -23 <(sort "$work/here/added") <(first_runs | sort))" ]
	diff "$work/here/order" <(first_runs | grep -Fx -f "$work/here/order")
	# Only the job that was running at a kill may run again.
	[ "$(grep -c ^E "$RECORD")" -le $(($(first_runs | wc -l) + ${KILLS:-30})) ]
}

kills_find_a_job_that_is_deleted_too_early()
{
	mutant early 's/UPDATE jobs SET claims = claims + 1 WHERE id = ?/DELETE FROM jobs WHERE id = ?/'
	for _ in {1..10}; do
		fresh_tree
		kill_often "$work/early"
		[ -z "$(comm -23 <(sort "$work/here/added") <(first_runs | sort))" ] || return 0
	done
	return 1
}

# record_work JOBS: record the writes of some 150 jobs, with kills now and then. The numbers that
# `add' prints are recorded as well.
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

# cuts JOBS: cut the power at many places of the record.
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
	for _ in {1..10}; do
		fresh_tree
		cuts "$work/hasty" >"$work/said" 2>&1 || ! grep -q '^after .*: lost: ' "$work/said" || return 0
	done
	return 1
}

# ---- streams ---------------------------------------------------------------------------

socket=$work/here/socket
stream=("$socket" jobs)

# with_server COMMAND...: run a command beside a server that waits for its disk.
with_server()
{
	trap end_all EXIT
	start_server
	"$@"
}

end_all()
{
	local pid

	for pid in $(jobs -p); do
		kill -9 "$pid" || true
	done
}

server=
start_server()
{
	LD_LIBRARY_PATH=$cache/jobs/usr/lib/x86_64-linux-gnu "$redis" --port 0 --unixsocket "$socket" \
		--dir "$work/here" --appendonly yes --appendfsync always --save '' \
		>>"$work/here/server.log" 2>&1 &
	server=$!
	until "$work/streams" count "${stream[@]}" >/dev/null 2>&1; do
		kill -0 "$server"
		sleep 0.05
	done
}

add_job()
{
	"$work/streams" add "${stream[@]}" "$1" "${2:-$command}"
}

# Wait until all jobs of the stream are done.
none_is_left()
{
	local end=$((SECONDS + 60))

	until [ "$("$work/streams" count "${stream[@]}")" = 0 ]; do
		[ $SECONDS -lt $end ]
		sleep 0.05
	done
}

a_worker_runs_its_jobs_in_the_order_of_their_times()
{
	local delay ids=()

	# A busy host needs long to add each job.
	for delay in 2 0.8 1.4 0.8 0; do
		ids+=("$(add_job $delay)")
	done
	"$work/streams" work "${stream[@]}" one &
	none_is_left
	[ "$(first_runs | xargs)" = "${ids[4]} ${ids[1]} ${ids[3]} ${ids[2]} ${ids[0]}" ]
}

# The first worker has taken all jobs, and is stopped. When it continues, it may run a job once
# more.
another_worker_takes_the_jobs_of_a_stopped_one()
{
	local first

	"$work/streams" work "${stream[@]}" first 300 &
	first=$!
	add_job 0.4
	add_job 0.5
	sleep 0.1
	kill -STOP $first
	"$work/streams" work "${stream[@]}" second 300 &
	none_is_left
	kill -CONT $first
	sleep 0.3
	[ "$(grep -c ^E "$RECORD")" -ge 2 ]
}

a_command_of_a_worker_that_is_ended_by_a_signal_runs_again()
{
	local pid

	setsid "$work/streams" work "${stream[@]}" one 300 &
	pid=$!
	add_job 0 "$(long)"
	long_has_begun
	kill -TERM -- "-$pid"
	wait "$pid" && return 1
	"$work/streams" work "${stream[@]}" two 300 &
	none_is_left
	[ "$(grep -c ^E "$RECORD")" = 1 ]
}

# The command takes longer than a lease.
a_job_that_takes_long_runs_once()
{
	"$work/streams" work "${stream[@]}" first 1000 &
	"$work/streams" work "${stream[@]}" second 1000 &
	add_job 0 "sleep 3; $command"
	none_is_left
	[ "$(grep -c ^E "$RECORD")" = 1 ]
}

# Kill the workers with their commands, and the server.
each_job_of_a_stream_runs_at_least_once()
{
	local i name pids=()

	for ((i = 0; i < ${KILLS:-30}; i++)); do
		name=$((i % 3))
		[ -z "${pids[name]:-}" ] || kill -9 -- "-${pids[name]}" || true
		if [ $((i % 10)) = 9 ]; then
			kill -9 "$server"
			wait "$server" || true
			start_server
		fi
		setsid "$work/streams" work "${stream[@]}" $name 500 &
		pids[name]=$!
		for _ in 1 2 3; do
			add_job "0.$((RANDOM % 5))" >>"$work/here/added"
		done
		sleep "0.0$((RANDOM % 90 + 10))"
	done
	"$work/streams" work "${stream[@]}" last 500 &
	none_is_left
	for i in "${pids[@]}"; do
		kill -9 -- "-$i" || true
	done
	[ "$(wc -l <"$work/here/added")" = $((3 * ${KILLS:-30})) ]
	[ -z "$(comm -23 <(sort "$work/here/added") <(first_runs | sort))" ]
}

# ----------------------------------------------------------------------------------------

# in_words NAME: print the name with blanks.
in_words()
{
	echo "${1//_/ }"
}

mkdir -p "$build"
rm -rf "$work"
mkdir -p "$work"
compile >"$work.log" 2>&1 || { cat "$work.log"; exit 1; }
ln -s product/jobs/{jobs,streams} "$work/"
of_jobs='jobs_run_in_the_order_of_their_times a_job_that_another_process_adds_runs_in_time
what_is_listed_is_what_pends a_removed_job_does_not_run two_runs_do_no_job_at_once a_job_whose_command_is_ended_by_a_signal_runs_again
each_job_runs_at_least_once_in_order
kills_find_a_job_that_is_deleted_too_early no_job_is_lost_by_a_power_cut
cuts_find_that_the_disk_is_not_waited_for'
of_streams='a_worker_runs_its_jobs_in_the_order_of_their_times
another_worker_takes_the_jobs_of_a_stopped_one
a_command_of_a_worker_that_is_ended_by_a_signal_runs_again a_job_that_takes_long_runs_once
each_job_of_a_stream_runs_at_least_once'
redis=$cache/jobs/usr/bin/redis-server
[ -x "$redis" ] || redis=$(type -P redis-server valkey-server | head -n 1)
echo "TAP version 13"
echo "1..15"
for case in $of_jobs; do
	if [ -x "$work/jobs" ]; then
		holds "$(in_words "$case")" "$case"
	else
		verdict ok "$(in_words "$case") # SKIP $(grep -h 'is not built' "$work.log")"
	fi
done
for case in $of_streams; do
	if [ -n "$redis" ]; then
		holds "$(in_words "$case")" with_server "$case"
	else
		verdict ok "$(in_words "$case") # SKIP there is no redis-server"
	fi
done
