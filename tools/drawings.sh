#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# drawings.sh [check]: draw Documentation/drawings/*.svg from their sources, *.dot, with graphviz.
# With `check', which needs no graphviz, print the drawings that were not made from the present
# source. Each drawing carries a checksum of its source and itself.

set -eu -o pipefail

unset CDPATH
cd "$(dirname "$0")/../Documentation/drawings"

# sum SOURCE: the checksum of the source and of a drawing on standard input.
sum()
{
	cat "$1" - | sha256sum | cut -d ' ' -f 1
}

# Readers have light or dark screens, so draw in the text's colour instead of graphviz' black.
drawn()
{
	local style='svg { color: #202020 } @media (prefers-color-scheme: dark) { svg { color: #e0e0e0 } }'

	dot -Tsvg "$1" | sed -n -e 's/ \(fill\|stroke\)="black"/ \1="currentColor"/g' \
		-e 's/<text /<text fill="currentColor" /; s/ xmlns:xlink="[^"]*"//' \
		-e "s|^<g id=\"graph0\"|<style>$style</style>\n&|; /^<svg/,\$p"
}

# made SOURCE: print the drawing, with the checksum in its last line.
made()
{
	local drawing

	drawing=$(drawn "$1")
	[[ $drawing = '<svg'*'</svg>' ]] || { echo "dot makes no drawing of $1" >&2; return 1; }
	echo "$drawing"
	echo "<!-- by make drawings from $1: $(sum "$1" <<<"$drawing") -->"
}

for source in *.dot; do
	drawing=${source%.dot}.svg
	if [ "${1-}" = check ]; then
		[ -e "$drawing" ] && [ "$(tail -n 1 "$drawing")" = \
			"<!-- by make drawings from $source: $(sed '$d' "$drawing" | sum "$source") -->" ] ||
			echo "Documentation/drawings/$drawing is not made from $source: run make drawings"
	else
		made "$source" >"$drawing.tmp"
		mv "$drawing.tmp" "$drawing"
	fi
done
