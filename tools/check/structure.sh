# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # files.sh sets what is not set here
# Sourced by check.sh: checks of how the module is divided into files.

# Print the module's own files, without tests.
module_files()
{
	printf '%s\n' "${files[@]}" | grep -xE '(engine/|include/)?[^/]+\.[ch]'
}

file_length()
{
	module_files | while IFS= read -r file; do
		awk 'END { if (NR > 800) print FILENAME ": " NR " lines" }' "$file"
	done
}

# If the sources have changed so that a patch of the series cannot be carved from them, print the
# reason.
upstream_series()
{
	local nr

	# Patches 2, 3 and 6 contain everything that patches 1, 4 and 5 have.
	for nr in 2 3 6; do
		perl tools/upstream/carve.pl tools/upstream/series/manifest $nr "$work/series/$nr"
	done
}

# If a file is not named in these lists, it is not built, or not tested.
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

# Only engine/timeout.h uses the values of states. grep -w does not match TWHEEL_STATE_* of the
# ABI.
state_values()
{
	local list

	mapfile -t list < <(module_files | grep -vx engine/timeout.h)
	! grep -nwE '(STATE|PHASE)_[A-Z_]+' "${list[@]}"
}

# Words that the field does not use. Write report, copy out or return; slow path; sync point;
# again.
gone_words()
{
	local list

	mapfile -t list < <(module_files)
	! grep -niE '(^|[^a-z])(tell|tells|told|telling|odd|windows?|anew|limbo|untold)([^a-z]|$)' "${list[@]}"
}

# include_pairs FILE...: print "INCLUDER INCLUDED" for these files.
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

# call_pairs FILE...: print "CALLER CALLEE" for the parts: one names a function of the other, to
# call it or to pass it on. A part is X.c and X.h; a static function of a .c file belongs to that
# file alone. The first pass collects the functions. The second finds their names in bodies, which
# stand between braces in the first column, and in initialisers. A member of a struct is not a
# function.
call_pairs()
{
	awk '
	FNR == 1 { part = FILENAME; gsub(/.*\/|\.[ch]$/, "", part); comment = inside = 0 }
	{
		gsub(/"([^"\\]|\\.)*"/, "")
		if (comment && !sub(/^.*\*\//, ""))
			next
		gsub(/\/\*([^*]|\*[^\/])*\*\//, "")
		comment = sub(/\/\*.*/, "")
	}
	/^[a-z_].*\(/ { head = $0; sub(/\(.*/, "", head); sub(/.*[ *]/, "", head)
		       own = /^static / && FILENAME ~ /\.c$/ }
	/^\{/ { inside = 1; if (reading == 1 && !own) home[head] = part }
	/^[a-z].*= \{$/ { inside = 1 }
	/^\}/ { inside = 0 }
	reading == 2 && inside {
		while (match($0, /[A-Za-z0-9_.>]+/)) {
			name = substr($0, RSTART, RLENGTH)
			$0 = substr($0, RSTART + RLENGTH)
			if (name in home && home[name] != part)
				print part, home[name]
		}
	}' reading=1 "$@" reading=2 "$@" | sort -u
}

# No file may include itself through others. tsort prints the files of a cycle.
cycles()
{
	local list

	mapfile -t list < <(module_files)
	include_pairs "${list[@]}" >"$work/includes"
	# Finding no pair at all is an error.
	[ -s "$work/includes" ] || echo "no includes found"
	tsort "$work/includes" >/dev/null
}

# Print the parts from the top down, in the order of the banner of twheel_main.c.
banner_order()
{
	sed -n '/^ \* Order of files: /,/^ \*$/s/^ \*\t//p' twheel_main.c | xargs -n 1
}

# Print the parts in the order of the design's drawing: the first word of each line.
design_order()
{
	sed -n '/^The layers$/,/^A file calls/s/^   \([a-z_]\+\)  .*/\1/p' Documentation/design.rst
}

# A file may call only files below it in the banner's list. The list has each part exactly once,
# and the drawing has the same order. Every part may include engine.h and twheel.h.
order()
{
	local list name

	mapfile -t list < <(module_files)
	call_pairs "${list[@]}" >"$work/calls"
	banner_order >"$work/banner_order"
	design_order >"$work/design_order"
	for name in calls banner_order design_order; do
		# Finding no name at all is an error.
		[ -s "$work/$name" ] || echo "no $name found"
	done
	diff "$work/banner_order" "$work/design_order" ||
		echo "the layers in Documentation/design.rst are not in the order of the banner"
	printf '%s\n' "${list[@]}" | sed 's|.*/||; s/\.[ch]$//' |
		grep -vxE 'engine|twheel' | sort -u | diff <(sort "$work/banner_order") - ||
		echo "the banner of twheel_main.c does not list each part once, and no other"
	awk '
	FILENAME ~ /banner_order$/ {
		rank[$1] = FNR
		next
	}
	$1 != "engine" && $2 != "engine" && $2 != "twheel" && rank[$1] > rank[$2] {
		print $1 " calls " $2 ", which stands above it in the banner of twheel_main.c"
	}' "$work/banner_order" "$work/calls" | sort -u
}
