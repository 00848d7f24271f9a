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
		awk 'END { if (NR > 800) print FILENAME ": " NR " lines" }' "$file"
	done
}

# If the sources have changed so that a patch of the series cannot be carved from them, this says why.
upstream_series()
{
	local nr

	# What patches 1, 4 and 5 have is in one of these as well.
	for nr in 2 3 6; do
		perl tools/upstream/carve.pl tools/upstream/series/manifest $nr "$work/series/$nr"
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

# The words of this list have given way to those of the field: report, copy out, return; slow path;
# sync point; again.
gone_words()
{
	local list

	mapfile -t list < <(module_files)
	! grep -niE '(^|[^a-z])(tell|tells|told|telling|odd|windows?|anew|limbo|untold)([^a-z]|$)' "${list[@]}"
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

# call_pairs FILE...: which part names a function of which other one, to call it or to hand it
# on. A part is X.c and X.h; static functions of a .c file are its own. The first reading finds
# the functions, the second one the names: in bodies, which stand between braces in the first
# column, and in initialisers. A member of a struct is no function.
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

# No file includes itself by way of others. tsort names those that stand in a circle.
cycles()
{
	local list

	mapfile -t list < <(module_files)
	include_pairs "${list[@]}" >"$work/includes"
	# Without a pair all would be well.
	[ -s "$work/includes" ] || echo "no includes found"
	tsort "$work/includes" >/dev/null
}

# The parts, from the top down, as the banner of twheel_main.c lists them.
banner_order()
{
	sed -n '/^ \* Order of files: /,/^ \*$/s/^ \*\t//p' twheel_main.c | xargs -n 1
}

# The same in the drawing of the layers in the design: the first word of each line.
design_order()
{
	sed -n '/^The layers$/,/^A file calls/s/^   \([a-z_]\+\)  .*/\1/p' Documentation/design.rst
}

# A file calls those below it in the banner's list, and none above. The list has each part once,
# and no other. The drawing shows the same. engine.h and twheel.h have what every part includes.
order()
{
	local list name

	mapfile -t list < <(module_files)
	call_pairs "${list[@]}" >"$work/calls"
	banner_order >"$work/banner_order"
	design_order >"$work/design_order"
	for name in calls banner_order design_order; do
		# Without a name all would be well.
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
