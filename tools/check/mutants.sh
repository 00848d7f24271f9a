# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by check.sh: the mistakes of selftests/mutants, which `make mutants' puts into the
# module.

# has_test PROGRAM TEST
has_test()
{
	local sources=(selftests/*/"$1".c)

	[ "$1" != kunit ] || sources=(selftests/kunit/*.c selftests/kunit/engine/*.c)
	grep -qsE "\b(TEST|TEST_F|TEST_F_TIMEOUT|RACE_OF|KUNIT_CASE(_PARAM)?)\(([a-z_]+, )?$2[,)]" \
		"${sources[@]}"
}

# Each applies, says who would be hurt, and names a test that is there.
mutants()
{
	local file kind program programs test

	programs=" kunit $({ host_names; check_names
		for kind in usual debug windows; do guest_names $kind; done; } | xargs) "
	for file in selftests/mutants/*/*.patch; do
		patch -s -p1 -F0 -f --dry-run <"$file" || echo "$file: it does not apply"
		[[ $(head -n 1 "$file") = [!-]*' '*' '* ]] ||
			echo "$file: the first line does not say who would be hurt"
		! grep -q '^Equivalent: ' "$file" || continue
		program=$(sed -n 's/^Program: //p' "$file")
		[[ -n $program && $programs = *" $program "* ]] ||
			echo "$file: there is no test called $program"
		test=$(sed -n 's/^Test: //p' "$file")
		[ -z "$test" ] || has_test "$program" "$test" ||
			echo "$file: $program has no test called $test"
	done
}
