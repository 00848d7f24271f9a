#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make test: everything, as one TAP stream. First what runs on the host, then a
# virtual machine for each kernel with all programs in it.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/build.sh"
. "$(dirname "$0")/boot.sh"
. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/guest-tests.sh"

read -ra patterns <<<"${TESTS:-*}"

# wanted NAME: does TESTS= ask for it?
wanted()
{
	local pattern
	for pattern in "${patterns[@]}"; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ $1 == $pattern ]] && return
	done
	return 1
}

# host_test NAME COMMAND...: one that prints TAP here.
host_test()
{
	local name=$1 line status=0
	shift

	wanted "$name" || return 0
	stream_begin "$name"
	while IFS= read -r line; do
		stream_line "$line"
	done < <("$@" 2>&1 </dev/null)
	# $! is the process substitution.
	wait $! || status=$?
	stream_end "$status"
}

guest_kernel()
{
	local series=$1 origin=make module program programs=()

	for program in "${guest_programs[@]}"; do
		if wanted "${program##*/}"; then
			programs+=("$program")
		fi
	done
	[ ${#programs[@]} -gt 0 ] || return 0
	if ! build_module "$series"; then
		stream_begin "$series"
		stream_note 'not ok' "the module compiles"
		return
	fi
	module=$(module_tree "$series")/twheel.ko
	# The newest kernel gets what dkms built: that is what most people load.
	if [ "$series" = "${kernels[-1]}" ] && [ -e "$build/$series/dkms.ko" ]; then
		origin=dkms
		module=$build/$series/dkms.ko
	fi
	mkdir -p "$run/$series"
	make_initramfs "$run/$series/initramfs" "$module" "${programs[@]}"
	run_guest_tests "$series" "$origin" "$module" "${programs[@]##*/}"
}

lock_cache
"$top/tools/vm/setup.sh" test
mkdir -p "$build" "$run"
# Made anew by the tests below; what an older tree left must not be run.
rm -f "$build"/*/dkms.ko "$build/readme_example"

echo "TAP version 13"
host_test wheel make -C "$top/selftests/wheel" OUTPUT="$build/wheel" run
for script in "$top"/selftests/host/*.sh; do
	name=${script##*/}
	host_test "${name%.sh}" "$script"
done

guest_programs=()
build_selftests || true
while read -r program; do
	if [ -x "$program" ]; then
		guest_programs+=("$program")
	elif wanted "${program##*/}"; then
		stream_begin "${program##*/}"
		stream_note 'not ok' "it compiles"
	fi
done < <(selftest_programs)
[ ! -x "$build/readme_example" ] || guest_programs+=("$build/readme_example")

for series in "${kernels[@]}"; do
	guest_kernel "$series"
done
tap_summary
