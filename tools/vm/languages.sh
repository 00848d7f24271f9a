#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make languages: run the smallest program in each of nine languages, examples/languages, in a
# virtual machine. The programs are built here, if this machine has the compiler or interpreter;
# the others are skipped. make test runs those that need no runtime of their own: C, C++, shell
# and Python.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/build.sh"
. "$(dirname "$0")/lib/boot.sh"
. "$(dirname "$0")/lib/tap.sh"

series=${kernels[-1]}
files=$run/languages

have()
{
	[[ $(type -P "$1") ]]
}

# bring FOLDER PATH PROGRAM...: put the folder at PATH in the guest, make its programs callable,
# and add the libraries that they need.
bring()
{
	local folder=$1 path=$2 program
	shift 2

	more_folders+=("$folder=$path")
	for program; do
		ln -s "$path/bin/$program" "$files/links/$program"
	done
	find "$folder" -type f -size +4k \( -name '*.so' -o -perm -u+x \) >"$files/list"
	mapfile -t programs <"$files/list"
	copy_libraries "$files/libraries" "${programs[@]}"
	# Libraries of the folder are found there.
	find "$folder" -name '*.so' -printf '%f\n' |
		(cd "$files/libraries/lib/x86_64-linux-gnu" && xargs rm -f)
}

# Put the runtimes into the guest.
bring_runtimes()
{
	local root

	more_folders+=("$cache/python/usr=/usr")
	! have node || more_files+=("$(readlink -f "$(type -P node)")")
	if have javac; then
		"$(dirname "$(readlink -f "$(type -P javac)")")/jlink" --add-modules java.base \
			--no-header-files --no-man-pages --output "$files/java"
		bring "$files/java" /usr/lib/java java
	fi
	if have erl; then
		root=$(erl -noshell -eval 'io:put_chars(code:root_dir()), halt().')
		bring "$root" "$root" erl escript
	fi
	more_folders+=("$files/links=/programs" "$files/libraries=/"
		"$files/programs=/programs/languages")
}

# Print the output of the programs, which is TAP.
in_the_machine()
{
	local console=$files/console.log

	hear "$console" @end "$series" "$files/initramfs" \
		"vm_mode=demo vm_demo=run.sh;run;/programs/languages,echo;@end" || tail -n 40 "$console"
	printf '%s\n' "${said[@]}"
}

lock_cache
KERNELS=$series bash "$top/tools/vm/setup.sh" languages
rm -rf "$files"
mkdir -p "$files"/{links,libraries/lib/x86_64-linux-gnu}
build_module "$series"
say "building the programs"
quietly "$build/languages.log" bash "$top/examples/languages/run.sh" build "$files/programs"
bring_runtimes
make_initramfs "$files/initramfs" "$(module_tree "$series")/twheel.ko" "$files/programs/run.sh"
echo "TAP version 13"
host_test languages in_the_machine
tap_summary
