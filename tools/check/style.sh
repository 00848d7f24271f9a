# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # check.sh and files.sh set what is not set here
# Sourced by check.sh: checks of the style of the code.

# checkpatch applies other rules to uapi headers and to tools, by their path in the kernel. So
# give it our files in a tree with the kernel's folders. This tree also takes the files that
# checkpatch leaves in the current folder.
kernel_shaped_tree()
{
	local tree=$work/checkpatch

	[ ! -e "$tree" ] || return 0
	mkdir -p "$tree"/{include,drivers/misc,tools/testing}
	ln -s "$top/uapi" "$tree/include/uapi"
	ln -s "$top" "$tree/drivers/misc/twheel"
	ln -s "$top" "$tree/tools/testing/twheel"
	# Types that checkpatch does not know: regular expressions, one a line.
	cat >"$tree/types" <<-'EOT'
	FIXTURE_(?:DATA|VARIANT)\(\w+\)
	_Atomic\s+(?:unsigned\s+)?\w+
	GSource
	sd_event(?:_source)?
	EOT
}

# run_checkpatch FOLDER/ IGNORE FILE...: check these files at their place below FOLDER.
run_checkpatch()
{
	local folder=$1 ignore=$2 jobs=1
	shift 2

	[ $# -gt 0 ] || return 0
	# checkpatch writes a cache of the kernel's CamelCase names. If several ran at a time, one
	# could read half a cache, so start one alone.
	[[ $ignore != *CAMELCASE* ]] || jobs=$(nproc)
	# --root is used only to find the kernel's CamelCase names.
	(cd "$work/checkpatch" && printf '%s\n' "${@/#/$folder}" |
		xargs -P "$jobs" -n 4 perl "$cache/source/scripts/checkpatch.pl" \
			--no-tree --root="$cache/source" --strict --terse --show-types \
			--no-summary --typedefsfile=types ${ignore:+--ignore="$ignore"} \
			--file) | sed "s|^$folder||"
}

# The macros of a tracepoint header become C only in <linux/tracepoint.h>. It may have:
tracepoints=(
	COMPLEX_MACRO			# lists of fields and values without parentheses
	MULTISTATEMENT_MACRO_USE_DO_WHILE # or braces,
	OPEN_ENDED_LINE			# the lists of an event on lines of their own,
	PARENTHESIS_ALIGNMENT		# one tab behind the name of the event
)

# All other code of the module is checked for every type.
checkpatch_module()
{
	local file code=() status=0

	kernel_shaped_tree
	for file in "${module_code[@]}"; do
		[ "$file" = engine/trace.h ] || code+=("$file")
	done
	run_checkpatch include/ '' "${uapi_code[@]}" || status=$?
	run_checkpatch drivers/misc/twheel/ '' "${code[@]}" || status=$?
	run_checkpatch drivers/misc/twheel/ "$(IFS=,; echo "${tracepoints[*]}")" engine/trace.h ||
		status=$?
	return $status
}

# In user space:
userspace=(
	CAMELCASE			# PRIu64, _Atomic, _Static_assert: names of C11
	LONG_LINE_STRING		# a message stays in one piece, as SPLIT_STRING wants it
	PREFER_DEFINED_ATTRIBUTE_MACRO	# __printf() and its kin are the kernel's,
	BIT_MACRO			# and so is BIT()
	VOLATILE			# sig_atomic_t, and memory shared with a child
	ENOSYS				# what a library says on a system without a call
)
# and where there is kselftest_harness.h:
harness=(
	BRACES				# ASSERT_EQ() and its kin are two statements, which
	MACRO_WITH_FLOW_CONTROL		# end the test; so do those that build on them
	COMPLEX_MACRO			# what defines tests can neither stand in parentheses
	MULTISTATEMENT_MACRO_USE_DO_WHILE # nor in a loop
	MACRO_ARG_REUSE			# and takes names of fields, types and fixtures,
	MACRO_ARG_PRECEDENCE		# which have no side effects and no precedence
)

checkpatch_tests()
{
	kernel_shaped_tree
	run_checkpatch tools/testing/twheel/ "$(IFS=,; echo "${userspace[*]},${harness[*]}")" \
		"${test_code[@]}"
}

checkpatch_lib()
{
	# Attributes cannot stand in parentheses, and __int128 is a type.
	local library=(COMPLEX_MACRO UNSPECIFIED_INT)

	local cxx=(SPACING MACRO_ARG_PRECEDENCE) file code=() status=0

	kernel_shaped_tree
	for file in "${lib_code[@]}"; do
		[ "$file" = lib/twheel.h ] || code+=("$file")
	done
	run_checkpatch tools/testing/twheel/ "$(IFS=,; echo "${userspace[*]},${library[*]}")" \
		"${code[@]}" || status=$?
	# twheel.h has casts of C++, whose angle brackets are no comparisons.
	run_checkpatch tools/testing/twheel/ \
		"$(IFS=,; echo "${userspace[*]},${library[*]},${cxx[*]}")" lib/twheel.h || status=$?
	return $status
}

checkpatch_examples()
{
	kernel_shaped_tree
	run_checkpatch tools/testing/twheel/ "$(IFS=,; echo "${userspace[*]}")" \
		"${example_code[@]}"
}

checkpatch_bench()
{
	kernel_shaped_tree
	run_checkpatch tools/testing/twheel/ "$(IFS=,; echo "${userspace[*]}")" \
		"${bench_code[@]}"
}

checkpatch_tools()
{
	kernel_shaped_tree
	run_checkpatch tools/testing/twheel/ "$(IFS=,; echo "${userspace[*]}")" "${tool_code[@]}"
}

# -Wall also reports a missing `Return:'.
kernel_doc()
{
	perl "$cache/source/scripts/kernel-doc" -none -Wall -Werror \
		"${uapi_code[@]}" "${module_code[@]}" "${lib_code[@]}" "${tool_code[@]}"
}

kernel_doc_text()
{
	local page=$work/kernel_doc

	mkdir -p "$page"
	perl "$cache/source/scripts/kernel-doc" -sphinx-version 4.0 -rst -Wall -Werror \
		"${uapi_code[@]}" >"$page/text" || return
	# A page has a title, and the sections of DOC: comments are below it.
	{ printf '%s\n' Header ====== '' && cat "$page/text"; } >"$page/index.rst"
	sphinx-build -C -W --keep-going -q -b html "$page" "$page/html"
}

uapi_includes()
{
	! grep -nHE '^[[:space:]]*#[[:space:]]*include' uapi/linux/twheel.h |
		grep -vE '<linux/(types|ioctl)\.h>$'
}

versions()
{
	! grep -nwE 'LINUX_VERSION_CODE|KERNEL_VERSION|UTS_RELEASE|linux/version\.h' \
		"${module_code[@]}"
}

# A function is measured between braces that stand alone in the first column; checkpatch makes
# sure that they do.
function_length()
{
	awk '
	/^\{/ { start = FNR }
	/^\}/ {
		if (start && FNR - start + 1 > 80)
			printf "%s:%d: a function of %d lines\n", FILENAME, start, FNR - start + 1
		start = 0
	}' "${module_code[@]}" "${lib_code[@]}" "${test_code[@]}" "${example_code[@]}" \
		"${bench_code[@]}" "${tool_code[@]}"
}

# The limit of a test must not exceed that of a program, see selftests/twheel_test.h.
test_limits()
{
	awk '
	$1 == "#define" && $2 == "TW_USUAL_LIMIT_S" { limit = $3 }
	match($0, /^[^#]*TEST_F_TIMEOUT\(.*, *[0-9]+\)/) {
		seconds = substr($0, 1, RLENGTH)
		sub(/\)$/, "", seconds)
		sub(/.*, */, "", seconds)
		if (!limit || seconds + 0 > limit)
			printf "%s:%d: a limit of %d s in a program of %d s\n", FILENAME, FNR, seconds, limit
	}' selftests/twheel_test.h "${test_code[@]}"
}
