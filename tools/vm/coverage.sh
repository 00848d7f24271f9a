# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh and test.sh set what is not set here
# Sourced by test.sh: which lines of the module all tests together have reached.
#
# The debug kernel counts (gcov); each machine sends its counts, as a tar of what
# is in debugfs, when its last program has ended.

# The bar, in per cent of the lines of each file.
coverage_bar=95

# The .gcda of all machines of a run, added up, go beside the .gcno of the build.
coverage_collect()
{
	local series=$1 tree tar dir sum=
	tree=$(module_tree "$series")

	for tar in "$run/$series"/coverage.*.tar; do
		[ -s "$tar" ] || continue
		dir=${tar%.tar}
		mkdir -p "$dir"
		tar -x -m -C "$dir" -f "$tar" --ignore-zeros
		if [ -n "$sum" ]; then
			gcov-tool-12 merge "$sum" "$dir" -o "$dir.sum" >/dev/null 2>&1
			dir=$dir.sum
		fi
		sum=$dir
	done
	[ -n "$sum" ] || return 0
	find "$sum" -name 'twheel_*.gcda' -exec cp -t "$tree" {} +
}

# coverage_report SERIES: with all tests run, a result for each file; and always
# the lines that were not reached.
coverage_report()
{
	local series=$1 tree source line lines=0 branches
	tree=$(module_tree "$series")

	stream_begin coverage
	coverage_collect "$series"
	for source in "$top"/twheel_*.c; do
		source=${source##*/}
		[ -e "$tree/${source%.c}.gcda" ] || continue
		(cd "$tree" && gcov-12 -b -o . "${source%.c}.gcda" >"$source.summary" 2>&1)
		line=$(sed -n "\\|^File '.*$source'|,\$p" "$tree/$source.summary" | sed -n 2,4p)
		lines=$(sed -n 's/^Lines executed:\([0-9]*\)\.\([0-9]*\)%.*/\1/p' <<<"$line")
		branches=$(sed -n 's/^Branches executed:\(.*\)/\1/p' <<<"$line")
		line=$(sed -n 's/^Lines executed:\(.*\)/\1/p' <<<"$line")
		mapfile -t not_reached < <(sed -n 's/^ *#####: *\([0-9]*\): *\(.*\)/\1: \2/p' "$tree/$source.gcov")
		show "$source: $line of lines, $branches of branches; not reached" "${not_reached[@]}"
		[ "${patterns[*]}" = '*' ] || continue
		if [ "${lines:-0}" -ge $coverage_bar ]; then
			stream_note ok "the tests reach $coverage_bar % of the lines of $source"
		else
			stream_note 'not ok' "the tests reach $coverage_bar % of the lines of $source"
		fi
	done
}
