# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh and tap.sh set what is not set here
# Sourced, after common.sh: the names of tests. They are read from the files of the tests, so
# nothing has to be built or fetched.

# Print the tests that run on the host in make test.
host_names()
{
	local script

	printf '%s\n' wheel lib
	for script in "$top"/selftests/host/*.sh; do
		basename "$script" .sh
	done
}

# guest_names KIND: print the tests that run in the virtual machine, see selftests/Makefile.
guest_names()
{
	make -C "$top/selftests" -s KIND="$1" list
}

# Print the steps of make check.
check_names()
{
	sed -nE 's/^	(\[.*(\|\||&&) )?(program|check) ([a-z0-9_]+) .*/\4/p' "$top/tools/check/check.sh"
}

# tier_names TIER: print the names that TESTS= may have for a target.
tier_names()
{
	case $1 in
	check) check_names ;;
	model) echo model ;;
	fuzz) printf '%s\n' wheel_fuzz lib_fuzz uml_fuzz twheel_fuzz ;;
	*)
		[ "$1" != test ] || host_names
		guest_names usual
		[ "$1" != debug ] || guest_names debug
		[[ $1 != @(debug|race) ]] || guest_names syncpoints
		;;
	esac
}

# expect_tests TIER: each pattern in TESTS= and EXCEPT= must match a test. Otherwise, a run would
# pass without a test whose name was misspelt.
expect_tests()
{
	local pattern name names found
	mapfile -t names < <(tier_names "$1")

	for pattern in "${patterns[@]/#/TESTS }" "${except[@]/#/EXCEPT }"; do
		found=
		for name in "${names[@]}"; do
			# shellcheck disable=SC2053 # it is a pattern
			[[ $name != ${pattern#* } ]] || found=1
		done
		[ -n "$found" ] || die "${pattern% *}: no test here is called ${pattern#* }. There are:
$(printf '%s\n' "${names[@]}" | fmt -w 78 | sed 's/^/  /')"
	done
}
