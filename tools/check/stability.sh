#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Check that this tree keeps the promises of each release (Documentation/stability.rst): compare
# it with the records in selftests/releases. How old programs run is tested by
# selftests/module/twheel_versions_module.sh.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../vm/lib/common.sh"
. "$(dirname "$0")/../vm/lib/cases.sh"

work=$build/stability
releases=$top/selftests/releases
# The kernel's headers for 32 bits are those for 64 bits, but gcc does not search that folder.
for_32=(-m32 -idirafter /usr/include/x86_64-linux-gnu)
# For these structures the caller passes the size, so they may grow. All others keep their size.
grow='twheel_(setup|info|vector|arm|cancel|status|list|advance|reopen|event|options|stats|table_options)'

# The cases share nothing, so they need no fresh tree.
fresh_tree() { :; }

record()
{
	bash "$releases/record.sh" "$@"
}

# there RECORD PRESENT [PATTERN]: is each line of RECORD in PRESENT? Lines that match PATTERN do
# not count.
there()
{
	local missing

	[ -s "$1" ] || { echo "$1 is empty"; return 1; }
	missing=$(grep -vE "${3:-^$}" "$1" | sort -u | comm -23 - <(sort -u "$2"))
	[ -z "$missing" ] || { printf 'promised, and not there:\n%s\n' "$missing"; return 1; }
}

# growing FILE: print "NAME SIZE" for each structure that may grow.
growing()
{
	sed -nE "s/^size struct ($grow) ([0-9]+) .*/\1 \3/p" "$1" | sort
}

# numbers_stay RELEASE OPTION...: compare constants and layouts, for 64 or 32 bits.
numbers_stay()
{
	local name first now

	record numbers "$1" gcc "${@:2}" >"$work/first"
	record numbers present gcc "${@:2}" >"$work/present"
	there "$work/first" "$work/present" "^size struct $grow "
	while read -r name first now; do
		[ "$now" -ge "$first" ] || { echo "struct $name was $first bytes, and is $now"; return 1; }
	done < <(join <(growing "$work/first") <(growing "$work/present"))
}

functions_stay()
{
	record functions "$1" gcc >"$work/first"
	record functions present gcc >"$work/present"
	there "$work/first" "$work/present"
}

names_stay()
{
	record names >"$work/present"
	there "$releases/$1/names" "$work/present"
}

# The smallest size that a call accepts is the size of the first release.
first_sizes_stay()
{
	record numbers first gcc >"$work/first"
	diff <(sed -nE 's/^#define (\w+)_SIZE_FIRST\s+([0-9]+)$/twheel_\L\1 \2/p' \
			"$top/include/twheel.h" | sort) \
		<(growing "$work/first" | grep -vE '_(event|options|stats|table_options) ')
}

# compiles_with RELEASE FILE LOG: use the headers of the library and of uapi from the record
# alone.
compiles_with()
{
	gcc -std=gnu11 -D_GNU_SOURCE -pthread -I"$releases/$1" -I"$top/selftests" \
		-isystem "$ksft" -fsyntax-only -xc "$2" 2>"$3"
}

# The headers that tests share must use nothing newer; otherwise every program below would be
# skipped.
shared_headers_compile()
{
	local header

	for header in "$top"/selftests/twheel_*.h; do
		compiles_with "$1" "$header" "$work/log" || { cat "$work/log"; return 1; }
	done
}

# newer_names RELEASE: print the names that the headers have got since: constants, members,
# functions.
newer_names()
{
	local tree

	for tree in "$1" present; do
		{ record numbers "$tree" gcc; record functions "$tree" gcc; } |
			sed -E 's/^size //; s/^struct (\w+)\.(\w+) .*/\1\n\2/; s/^.*[ *](\w+) \(.*/\1/; s/ .*//' |
			sort -u >"$work/names.$tree"
	done
	comm -13 "$work/names.$1" "$work/names.present"
}

# program_compiles RELEASE FILE: return 1 if it does not compile. If the reason is a newer name
# ("'X' undeclared", "has no member named 'x'" and so on), return 2 and put the name into `newer'.
program_compiles()
{
	local log=$work/log

	! compiles_with "$1" "$2" "$log" || return 0
	newer=$(sed -n "/ error: /s/.*'\([^']*\)'[^']*$/\1/p" "$log" | sed 's/.* //' | sort -u |
		comm -12 - "$work/newer" | head -n 1)
	[ -z "$newer" ] || return 2
	cat "$log"
	return 1
}

# programs_compile RELEASE FOLDER FILE...: report one result for the folder, and a skip for each
# program that uses a newer name.
programs_compile()
{
	local release=$1 folder=$2 file status newer nr=0 verdict=ok
	shift 2

	for file; do
		status=0
		program_compiles "$release" "$file" || status=$?
		case $status in
		0) nr=$((nr + 1)) ;;
		2) verdict ok "${file#"$top"/} compiles with the headers of the release $release # SKIP it uses $newer, which is newer" ;;
		*) verdict='not ok' ;;
		esac
	done
	[ $nr != 0 ] || verdict='not ok'
	verdict "$verdict" "$nr programs in $folder compile with the headers of the release $release"
}

rm -rf "$work"
mkdir -p "$work"
echo "TAP version 13"
holds "each call takes what the first release gave it" first_sizes_stay
for release in "$releases"/*/; do
	release=$(basename "$release")
	holds "constants, structures and members are those of the release $release" \
		numbers_stay "$release"
	holds "so they are for 32 bits" numbers_stay "$release" "${for_32[@]}"
	holds "each function has the types of the release $release" functions_stay "$release"
	holds "device, parameters, keys of fdinfo and symbols are those of the release $release" \
		names_stay "$release"
	holds "what tests share compiles with the headers of the release $release" \
		shared_headers_compile "$release"
	newer_names "$release" >"$work/newer"
	for folder in device stress clocks peers module lib fault syncpoints; do
		programs_compile "$release" "selftests/$folder" "$top/selftests/$folder"/twheel_*.c
	done
	programs_compile "$release" selftests/fuzz "$top"/selftests/fuzz/*.c
	programs_compile "$release" examples "$top"/examples/{,raw/,languages/}*.c
done
echo "1..$number"
