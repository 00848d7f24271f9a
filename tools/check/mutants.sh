# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: checks of the mutants: those of selftests/mutants, which `make mutants'
# builds into the module, and those of the library.

# has_test PROGRAM TEST: is there such a test?
has_test()
{
	local sources=(selftests/*/"$1".c)

	[ "$1" != kunit ] || sources=(selftests/kunit/*.c selftests/kunit/engine/*.c)
	grep -qsE "\b(TEST|TEST_F|TEST_F_TIMEOUT|RACE_OF|KUNIT_CASE(_PARAM)?)\(([a-z_]+, )?$2[,)]" \
		"${sources[@]}"
}

# Print the names by which a mutant may name its tests, one a line: programs, and checks of make
# check.
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

# Each mutant must apply to the sources, and name a test that exists.
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
