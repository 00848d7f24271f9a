# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: the mistakes of selftests/mutants, which `make mutants' puts into the
# module, and those of the library.

# has_test PROGRAM TEST
has_test()
{
	local sources=(selftests/*/"$1".c)

	[ "$1" != kunit ] || sources=(selftests/kunit/*.c selftests/kunit/engine/*.c)
	grep -qsE "\b(TEST|TEST_F|TEST_F_TIMEOUT|RACE_OF|KUNIT_CASE(_PARAM)?)\(([a-z_]+, )?$2[,)]" \
		"${sources[@]}"
}

# What a test can be named by, one a line: its program, or the step of make check that it is.
test_programs()
{
	local kind

	echo kunit
	host_names
	check_names
	for kind in usual debug syncpoints; do
		guest_names $kind
	done
}

# Each can be made in the sources, and names a test that is there.
mutants()
{
	local name program programs test

	perl selftests/mutants/mutants.pl check
	bash selftests/lib/mutations.sh check
	programs=" $(test_programs | xargs) "
	while read -r name program _ test; do
		[ "$program" != equivalent ] || continue
		[[ $programs = *" $program "* ]] || echo "$name: there is no test called $program"
		[ -z "$test" ] || has_test "$program" "$test" ||
			echo "$name: $program has no test called $test"
	done < <(perl selftests/mutants/mutants.pl list 2>/dev/null)
}
