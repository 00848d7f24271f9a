#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Build and test the binding for Go. tools/vm/bindings.sh describes the commands.
#
#	test.sh needs
#	test.sh build DIR	with libtwheel in $TWHEEL_LIB
#	test.sh test DIR
#	test.sh device DIR
#
# On Debian: apt-get install golang-go gcc libc6-dev
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
export LD_LIBRARY_PATH=${TWHEEL_LIB:-}/lib:${LD_LIBRARY_PATH:-}
export TWHEEL_INCLUDE=${TWHEEL_LIB:-}/include
export CGO_CFLAGS="-O2 -I$TWHEEL_INCLUDE" CGO_LDFLAGS="-L${TWHEEL_LIB:-}/lib"
# Use nothing from the network.
export GOFLAGS=-mod=readonly GOPROXY=off GOTOOLCHAIN=local

# Build with and without cgo.
build()
{
	CGO_ENABLED=0 go test -c -o "$1/device" .
	CGO_ENABLED=1 go test -c -tags libtwheel -o "$1/table" .
	CGO_ENABLED=1 go build -tags libtwheel -o "$1/first" ./first
}

# Convert the output of Go's tests to TAP: TestABatchIsEmpty becomes "a batch is empty".
tap()
{
	echo "TAP version 13"
	awk '
	/^--- (PASS|FAIL|SKIP): Test/ {
		name = $3
		sub(/^Test/, "", name)
		gsub(/[A-Z]/, " &", name)
		nr++
		# All tests here were asked for, so a skipped one has failed.
		print ($2 == "PASS:" ? "ok" : "not ok"), nr, "-" tolower(name)
		next
	}
	/^ended / {
		if ($2 != 0) {
			nr++
			print "not ok", nr, "-", $3, "ends well"
		}
		next
	}
	!/^(=== |PASS$)/ { print "# " $0 }
	END { print "1.." nr + 0 }'
}

# run PROGRAM PATTERN: run the tests whose names match.
run()
{
	"$1" -test.v -test.run "$2" 2>&1 && echo "ended 0" || echo "ended 1 ${1##*/}"
}

# silent NAME COMMAND...: a test that passes if the command succeeds and prints nothing.
silent()
{
	local name=$1 said
	shift

	said=$("$@" 2>&1) && [ -z "$said" ] && echo "--- PASS: Test$name" && return
	echo "--- FAIL: Test$name"
	echo "$said"
}

first_program()
{
	[ "$("$1/first")" = "no answer: [7]" ]
}

readme_shows()
{
	(cd ../.. && perl tools/check/shown.pl bindings/go/README.md)
}

run_tests()
{
	local names

	# All tests but those of the device.
	names=$("$1/table" -test.list '^Test' | grep -v '^TestDevice' | paste -sd '|')
	run "$1/table" "^($names)\$"
	silent FirstProgramPrintsTheRequestWithoutAnAnswer first_program "$1"
	silent ReadmeShowsTheFirstProgram readme_shows
	silent SourcesAreFormatted gofmt -l .
	silent VetIsQuiet go vet -tags libtwheel ./...
	CGO_ENABLED=0 silent VetIsQuietWithoutCgo go vet .
}

run_device_tests()
{
	run "$1/device" '^TestDevice'
	run "$1/table" '^TestDeviceTable'
}

case ${1:-} in
needs)
	for tool in go cc; do
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
