#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Build and test the binding for Rust. tools/vm/bindings.sh describes the commands.
#
#	test.sh needs
#	test.sh build DIR	with libtwheel in $TWHEEL_LIB
#	test.sh test DIR
#	test.sh device DIR
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
export LD_LIBRARY_PATH=${TWHEEL_LIB:-}/lib:${LD_LIBRARY_PATH:-}

# Build outside the tree, with small products, and without the network.
call_cargo()
{
	local folder=$1
	shift

	CARGO_TARGET_DIR=$folder/target CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 \
		CARGO_PROFILE_TEST_DEBUG=0 CARGO_PROFILE_DEV_STRIP=debuginfo \
		CARGO_PROFILE_TEST_STRIP=debuginfo CARGO_TERM_COLOR=never cargo "$@"
}

# Build the tests and examples, each under its name.
build()
{
	local folder=$1 program name

	mkdir -p "$folder/programs"
	call_cargo "$folder" test --offline --locked --no-run --message-format=json \
		>"$folder/messages"
	sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' "$folder/messages" |
		while read -r program; do
			name=${program##*/}
			cp "$program" "$folder/programs/${name%-*}"
		done
}

# Convert the output of Rust's tests to TAP.
tap()
{
	echo "TAP version 13"
	awk '
	/^test .* \.\.\. / {
		verdict = $NF
		if (/\.\.\. ignored/)
			next
		name = $0
		sub(/^test /, "", name)
		sub(/ \.\.\. .*/, "", name)
		gsub(/_/, " ", name)
		nr++
		print (verdict == "ok" ? "ok" : "not ok"), nr, "-", name
		next
	}
	/^ended / {
		if ($2 != 0) {
			nr++
			print "not ok", nr, "-", $3, "ends well"
		}
		next
	}
	NF && !/^(running |test result: ok)/ { print "# " $0 }
	END { print "1.." nr + 0 }'
}

# ends NAME COMMAND...: a test that passes if the command succeeds; its output is shown only if it
# fails.
ends()
{
	local name=$1 said
	shift

	said=$("$@" 2>&1) && echo "test $name ... ok" && return
	echo "test $name ... FAILED"
	echo "$said"
}

# if_there NAME TOOL...: skip the test if the package of cargo has no such tool.
if_there()
{
	! type -P "cargo-$3" >/dev/null || ends "$1" call_cargo "$2" "${@:3}"
}

run_tests()
{
	local folder=$1 name

	for name in header timers futures tables acceptance; do
		"$folder/programs/$name" 2>&1 && echo "ended 0" || echo "ended 1 $name"
	done
	for name in first echo; do
		ends "the_example_${name}_runs" "$folder/programs/$name"
	done
	ends "what_documentation_shows_compiles_and_runs_or_is_refused" \
		call_cargo "$folder" test --offline --locked --quiet --doc
	if_there "sources_are_formatted" "$folder" fmt --check
	if_there "clippy_is_quiet" "$folder" clippy --offline --locked --quiet --all-targets -- \
		-D warnings
}

run_device_tests()
{
	local folder=$1 name

	for name in device acceptance; do
		"$folder/programs/$name" --ignored 2>&1 && echo "ended 0" || echo "ended 1 $name"
	done
}

case ${1:-} in
needs)
	for tool in cargo cc; do
		type -P "$tool" >/dev/null || echo "$tool"
	done
	;;
build) build "$2" ;;
test) run_tests "$2" | tap ;;
device) run_device_tests "$2" | tap ;;
*)
	echo "usage: test.sh needs | build DIR | test DIR | device DIR" >&2
	exit 2
	;;
esac
