#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# record.sh write NAME: record the promises of this tree as the release NAME, in the folder NAME
# beside this file: the headers of programs, without their comments, and the names by which
# administrators know the module and linkers know the library. Once a version is tagged, its
# folders never change (Documentation/stability.rst).
#
# The other commands print what tools/check/stability.sh compares. RELEASE is the name of a record,
# or "present" for this tree, and CC... a compiler with its options:
#
# record.sh names                      the names of this tree
# record.sh numbers RELEASE CC...      each constant, structure and member of the headers
# record.sh functions RELEASE CC...    each function of theirs, with its types
set -euo pipefail
unset CDPATH
export LC_ALL=C
releases=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
top=$(cd -- "$releases/../.." && pwd)

headers='linux/twheel.h twheel.h twheel/device.h twheel/table.h twheel/tcp.h'

# header RELEASE NAME: print the path of a header.
header()
{
	case $1/$2 in
	present/linux/*) echo "$top/uapi/$2" ;;
	present/*) echo "$top/lib/$2" ;;
	*) echo "$releases/$1/$2" ;;
	esac
}

# options RELEASE: print the compiler's options that find the headers.
options()
{
	if [ "$1" = present ]; then
		echo "-I$top/uapi -I$top/lib"
	else
		echo "-I$releases/$1"
	fi
}

# Print a header without its comments, except the first line, which names the licence.
without_comments()
{
	perl -0pe 's{\A(.*\n)}{}; my $licence = $1;
		s{^[ \t]*/\*.*?\*/[ \t]*\n}{}gms; s{[ \t]*/\*.*?\*/}{}gs;
		s{\n{3,}}{\n\n}g; s{\A\s*}{$licence}' "$1"
}

includes()
{
	local file

	for file in $headers; do
		printf '#include <%s>\n' "$file"
	done
}

# Print the names. Their order has no meaning.
names()
{
	cd "$top"
	sed -n 's/^\t\.name\t= "\(.*\)",$/device \1/p' twheel_chardev.c
	sed -n 's/.*"\([a-z_]*\):\\t.*/fdinfo \1/p' twheel_stat.c | sort
	sed -nE 's/^module_param\((\w+), (\w+), 0(\w+)\);$/parameter \1 \2 \3/p' twheel_main.c
	sed -nE '/^module_param_cb\(/{N;s/^module_param_cb\((\w+), [^,]*, [^,]*, 0(\w+)\);\n__MODULE_PARM_TYPE\(\w+, "(\w+)"\);$/parameter \1 \3 \2/p}' twheel_main.c
	sed -n 's/^abi := \([0-9]*\)$/soname libtwheel.so.\1/p' lib/Makefile
	perl -ne '/^(LIBTWHEEL_\S+) \{$/ and $version = $1;
		/^\t(\w+);$/ and print "symbol $version $1\n"' lib/libtwheel.map
}

# numbers_program RELEASE: print a program that prints a line for each name. If it does not
# understand a line of a structure, the program will not compile.
numbers_program()
{
	local file

	echo '#include <stdio.h>'
	includes
	cat <<-'EOT'
	#define NUMBER(name) printf("%s %#llx %s %zu\n", #name, (unsigned long long)(name), \
		(__typeof__(name))-1 < 0 ? "signed" : "unsigned", sizeof(name))
	#define SIZE(name) printf("size %s %zu aligned %zu\n", #name, sizeof(name), _Alignof(name))
	#define MEMBER(name, member, type) printf("%s.%s at %zu size %zu %s\n", #name, #member, \
		offsetof(name, member), sizeof(((name *)0)->member), type)
	int main(void)
	{
	EOT
	for file in $headers; do
		without_comments "$(header "$1" "$file")"
	done | perl -ne '
		if (s/\\$//) { $directive .= $_; next }
		if (length $directive) { $directive = ""; next }
		if (/^#define ([A-Z]\w*)[ \t]+(.*)/) {
			# Leave out macros that stand for code, and those that change with each
			# release.
			print "NUMBER($1);\n" unless $1 =~ /_VERSION_/ || $2 =~ /[{"]|__attribute__|^static/;
		} elsif (/^((struct|enum) \w+|enum) \{$/) {
			$name = $1;
			print "SIZE($name);\n" if $name =~ /^struct/;
		} elsif (/^\}/) {
			$name = "";
		} elsif ($name =~ /^enum/ && /^\t(\w+)/) {
			print "NUMBER($1);\n";
		} elsif ($name =~ /^struct/ && /^\t(.*?)(\w+)(\[.*\])?;$/) {
			print "MEMBER($name, $2, \"$1\");\n";
		} elsif ($name && /\S/) {
			print "#error not understood: $_";
		}'
	printf 'return 0;\n}\n'
}

numbers()
{
	local work words

	work=$(mktemp -d)
	read -ra words < <(options "$1")
	numbers_program "$1" >"$work/numbers.c"
	"${@:2}" "${words[@]}" -w -static "$work/numbers.c" -o "$work/numbers"
	"$work/numbers"
	rm -r "$work"
}

# Print inline functions as the library declares them.
functions()
{
	local work words

	work=$(mktemp -d)
	read -ra words < <(options "$1")
	includes | "${@:2}" "${words[@]}" -xc -DTWHEEL_NO_INLINE -aux-info "$work/functions" \
		-fsyntax-only -
	sed -nE 's,^/\*.*\*/ extern (.*[ *]_?twheel_.*),\1,p' "$work/functions"
	rm -r "$work"
}

write()
{
	local folder=$releases/$1 file tag

	for tag in $(git -C "$top" tag --list 'v*'); do
		if git -C "$top" cat-file -e "$tag:selftests/releases/$1" 2>/dev/null; then
			echo "$tag has been released with the record $1, which stays as it is" >&2
			exit 1
		fi
	done
	rm -rf "$folder"
	for file in $headers; do
		mkdir -p "$(dirname "$folder/$file")"
		without_comments "$(header present "$file")" >"$folder/$file"
	done
	names >"$folder/names"
}

"$@"
