#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# drawings.sh [check]: makes the drawings of the documents, Documentation/drawings/*.svg,
# from their sources, *.dot, by graphviz. With `check', which needs no graphviz, it says which
# drawings are not made from their source: each carries a sum of the source and of itself.

set -eu -o pipefail

unset CDPATH
cd "$(dirname "$0")/../Documentation/drawings"

# sum SOURCE: of that and of a drawing on standard input.
sum()
{
	cat "$1" - | sha256sum | cut -d ' ' -f 1
}

# Readers have light screens and dark ones: what graphviz draws in black has the colour of
# text.
drawn()
{
	local style='svg { color: #202020 } @media (prefers-color-scheme: dark) { svg { color: #e0e0e0 } }'

	dot -Tsvg "$1" | sed -n -e 's/ \(fill\|stroke\)="black"/ \1="currentColor"/g' \
		-e 's/<text /<text fill="currentColor" /; s/ xmlns:xlink="[^"]*"//' \
		-e "s|^<g id=\"graph0\"|<style>$style</style>\n&|; /^<svg/,\$p"
}

# made SOURCE: a drawing, and in its last line the sum.
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
