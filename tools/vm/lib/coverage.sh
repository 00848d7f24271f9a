# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh and test.sh set what is not set here
# Sourced by test.sh: report the lines of the module that all tests together have reached.
#
# The debug kernel counts with gcov. After its last program, each machine sends its counts, as a
# tar of the files in debugfs.

# The goal, in per cent of the module's lines.
coverage_bar=95

# Add up the .gcda files of all machines of a run, and put them beside the .gcno files of the
# build.
coverage_collect()
{
	local series=$1 tree tar dir sum=
	tree=$(module_tree "$series")

	for tar in "$run/$series"/coverage.*.tar; do
		[ -s "$tar" ] || continue
		dir=${tar%.tar}
		mkdir -p "$dir"
		tar -x -m -C "$dir" -f "$tar" --ignore-zeros
		# A machine that ran only the KUnit suites has never loaded the module.
		[ -n "$(find "$dir" -name '*.gcda' -print -quit)" ] || continue
		if [ -n "$sum" ]; then
			gcov-tool-12 merge "$sum" "$dir" -o "$dir.sum" >/dev/null 2>&1
			dir=$dir.sum
		fi
		sum=$dir
	done
	[ -n "$sum" ] || return 0
	cp -r "$sum/." "$tree/"
}

# coverage_of WHAT TREE SUMMARY: print how many per cent of all lines (or branches) of the module
# were reached, then the files below 100 %, one a line.
coverage_of()
{
	awk -v what="$1 executed:" -v tree="$2/" '
	/^File / { file = substr($2, 2, length($2) - 2); ours = index(file, tree) == 1 }
	ours && index($0, what) == 1 {
		split(substr($0, length(what) + 1), share, /% of /)
		reached += share[1] * share[2] / 100
		all += share[2]
		if (share[1] < 100)
			each = each sprintf("%s %s %%\n", substr(file, length(tree) + 1), share[1])
	}
	END { printf "%.1f\n%s", all ? 100 * reached / all : 0, each }' "$3"
}

# coverage_report SERIES: show the lines that were not reached. If no test was left out, print a
# result for the whole module, so that it does not depend on which file a function is in.
coverage_report()
{
	local series=$1 tree source summary gcov lines branches not_reached
	tree=$(module_tree "$series")
	summary=$tree/coverage

	stream_begin coverage
	coverage_collect "$series"
	(cd "$tree" && find . -name '*.gcda' -exec gcov-12 -b -p {} + >"$summary" 2>&1)
	mapfile -t branches < <(coverage_of Branches "$tree" "$summary")
	show "${branches[0]} % of the module's branches are reached; less in" "${branches[@]:1}"
	mapfile -t lines < <(coverage_of Lines "$tree" "$summary")
	show "${lines[0]} % of the module's lines are reached; less in" "${lines[@]:1}"
	for source in "$tree"/twheel_*.c "$tree"/engine/*.[ch]; do
		gcov=$tree/${source//\//#}.gcov
		[ -e "$gcov" ] || continue
		# The lines of an inline function are listed once for each file that uses it.
		mapfile -t not_reached < <(sed -n 's/^ *#####: *\([0-9]*\): *\(.*\)/\1: \2/p' "$gcov" |
			sort -nu)
		[ ${#not_reached[@]} = 0 ] || show "${source#"$tree/"}: not reached" "${not_reached[@]}"
	done
	[[ "${patterns[*]}" = '*' && ${#except[@]} = 0 ]] || return 0
	if [ "${lines[0]%.*}" -ge $coverage_bar ]; then
		stream_note ok "the tests reach $coverage_bar % of the lines of the module"
	else
		stream_note 'not ok' "the tests reach $coverage_bar % of the lines of the module"
	fi
}
