# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # files.sh sets what is not set here
# Sourced by check.sh: how the module is divided into files.

# The module's own files, without tests.
module_files()
{
	printf '%s\n' "${files[@]}" | grep -xE '(engine/|include/)?[^/]+\.[ch]'
}

file_length()
{
	module_files | while IFS= read -r file; do
		awk 'END { if (NR > 1000) print FILENAME ": " NR " lines" }' "$file"
	done
}

# A file that is not named is not built, or not tested.
parts_named()
{
	local file

	for file in "${files[@]}"; do
		case $file in
		engine/*.c)
			grep -qF "\"../../$file\"" selftests/kunit/engine_parts.h ||
				echo "selftests/kunit/engine_parts.h does not include $file" ;;&
		engine/*.c | twheel_*.c)
			grep -qwF "${file%.c}.o" Kbuild || echo "Kbuild does not build $file" ;;
		selftests/kunit/engine/*.c)
			grep -qF "\"${file#selftests/kunit/}\"" selftests/kunit/twheel_engine_test.c ||
				echo "selftests/kunit/twheel_engine_test.c does not include $file" ;;
		esac
	done
}

# The names of the ABI, TWHEEL_STATE_*, are other words for grep.
state_values()
{
	local list

	mapfile -t list < <(module_files | grep -vx engine/timeout.h)
	! grep -nwE '(STATE|PHASE)_[A-Z_]+' "${list[@]}"
}

# include_pairs FILE...: which file includes which other one of these.
include_pairs()
{
	awk '
	BEGIN {
		for (i = 1; i < ARGC; i++) {
			name = ARGV[i]
			sub(/.*\//, "", name)
			path[name] = ARGV[i]
		}
	}
	/^#include "/ {
		name = $2
		gsub(/"|.*\//, "", name)
		if (name in path)
			print FILENAME, path[name]
	}' "$@"
}

# call_pairs FILE...: which part calls a function of which other one. A part is X.c and
# X.h; static functions of a .c file are its own. The first reading finds the functions,
# the second one the calls; a body stands between braces in the first column.
call_pairs()
{
	awk '
	FNR == 1 { part = FILENAME; gsub(/.*\/|\.[ch]$/, "", part); comment = 0 }
	{
		gsub(/"([^"\\]|\\.)*"/, "")
		if (comment && !sub(/^.*\*\//, ""))
			next
		gsub(/\/\*([^*]|\*[^\/])*\*\//, "")
		comment = sub(/\/\*.*/, "")
	}
	/^[a-z].*\(/ { head = $0; sub(/\(.*/, "", head); sub(/.*[ *]/, "", head)
		       own = /^static / && FILENAME ~ /\.c$/ }
	/^\{/ { inside = 1; if (reading == 1 && !own) home[head] = part }
	/^\}/ { inside = 0 }
	reading == 2 && inside {
		while (match($0, /[a-z_][a-z0-9_]*\(/)) {
			name = substr($0, RSTART, RLENGTH - 1)
			$0 = substr($0, RSTART + RLENGTH)
			if (name in home && home[name] != part)
				print part, home[name]
		}
	}' reading=1 "$@" reading=2 "$@" | sort -u
}

# No file includes itself, and no part calls itself, by way of others. tsort names those
# that stand in a circle.
cycles()
{
	local list pairs status=0

	mapfile -t list < <(module_files)
	include_pairs "${list[@]}" >"$work/includes"
	call_pairs "${list[@]}" >"$work/calls"
	for pairs in includes calls; do
		# Without a pair all would be well.
		[ -s "$work/$pairs" ] || echo "no $pairs found"
		tsort "$work/$pairs" >/dev/null || status=$?
	done
	return $status
}
