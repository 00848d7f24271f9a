# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # shared with check.sh
# Sourced by check.sh: lists of the project's files, relative to the top of the tree.

# Print all files but those that git ignores; files that are new and not yet added count. In a
# tree without a git repository, leave out hidden files and products by their names.
project_files()
{
	if [ -e .git ]; then
		in_git --cached --others --exclude-standard
	else
		find . -name '.?*' -prune -o -type f ! -name '*.ko' ! -name '*.[oa]' \
			! -name '*.so*' \
			! -name '*.mod*' ! -name '*.symvers' ! -name modules.order -print |
			sed 's|^\./||'
	fi | sort -u | while IFS= read -r file; do
		[ ! -f "$file" ] || echo "$file"
	done
}

# The caller may own neither the tree nor a git configuration.
in_git()
{
	git -c safe.directory="$top" ls-files "$@"
}

# Fill the arrays. The arrays of code hold .c and .h files alone, and no copies of released files.
# KUnit suites are kernel code in any folder. selftests/wheel/include has macros of the kernel,
# but is used by tests.
list_files()
{
	local file line

	files=() scripts=() documents=()
	uapi_code=() lib_code=() module_code=() test_code=() example_code=() bench_code=()
	tool_code=()
	while IFS= read -r file; do
		files+=("$file")
		case $file in
		selftests/kunit/*.[ch] | selftests/syncpoints/syncpoint.c) module_code+=("$file") ;;
		bench/wheel/*.[ch]) test_code+=("$file") ;;
		bench/idle/*.[ch] | bench/native/workload.c | bench/native/kernel.c)
			module_code+=("$file") ;;
		# The bindings follow the style of their languages.
		bindings/*.[ch]) ;;
		bench/*.[ch]) bench_code+=("$file") ;;
		selftests/releases/*/*.h) ;;
		selftests/*.[ch]) test_code+=("$file") ;;
		uapi/*.[ch]) uapi_code+=("$file") ;;
		lib/*.[ch]) lib_code+=("$file") ;;
		examples/*.[ch]) example_code+=("$file") ;;
		tools/*.[ch]) tool_code+=("$file") ;;
		*.[ch]) module_code+=("$file") ;;
		*.rst) documents+=("$file") ;;
		*.sh | *.bash) scripts+=("$file") ;;
		*)
			IFS= read -r line <"$file" || true
			[[ ! $line =~ ^#!.*[/\ ](ba|da|)sh ]] || scripts+=("$file")
			;;
		esac
	done < <(project_files)
	# If git fails, the lists are empty and every check would succeed.
	for file in twheel_main.c uapi/linux/twheel.h tools/check/check.sh; do
		[[ " ${files[*]} " = *" $file "* ]] || die "$file is not among the files that git lists"
	done
}
