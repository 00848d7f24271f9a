#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test.sh needs|build DIR|test DIR|device DIR|bench DIR [NAME...]: build and test twheel-netty
# without Maven; tools/vm/bindings.sh describes the commands. Nothing is left in the source tree.
#
# build makes DIR/twheel-netty.jar; a program needs only this and Netty. bench measures the timers
# beside Netty's and the JVM's.

set -euo pipefail
unset CDPATH
here=$(cd -- "$(dirname -- "$0")" && pwd)

# The oldest version of Java that is supported.
release=11

lacking()
{
	local tool

	for tool in java javac jar make gcc; do
		[[ $(type -P "$tool") ]] || echo "$tool"
	done
	[ -n "$(paths_of_jars)" ] || echo libnetty-java
}

paths_of_jars()
{
	bash "$here/jars.sh" 2>/dev/null || true
}

# compile FOLDER OUTPUT: compile against the classes that were compiled before.
compile()
{
	local sources

	mapfile -t sources < <(find "$here/$1" -name '*.java')
	mkdir -p "$2"
	javac --release $release -Xlint:all,-path -Werror -cp "$(path)" -d "$2" "${sources[@]}"
}

# Print the class path of all that has been built so far.
path()
{
	local all=("$dir"/jars/*.jar "$dir"/*.jar)

	(IFS=: && echo "${all[*]}")
}

build()
{
	local jar

	rm -rf "${dir:?}"/{jars,classes,tests,bench,*.jar}
	mkdir -p "$dir/jars"
	for jar in $(paths_of_jars); do
		cp -L "$jar" "$dir/jars/"
	done
	compile src/main/java "$dir/classes"
	make -s -C "$here/src/main/native" TWHEEL_LIB="${TWHEEL_LIB:-/usr/local}" OUTPUT="$dir/classes/META-INF/native"
	echo 'Automatic-Module-Name: twheel.netty' >"$dir/manifest"
	jar --create --file "$dir/twheel-netty.jar" --manifest "$dir/manifest" -C "$dir/classes" .
	compile src/test/java "$dir/tests"
	jar --create --file "$dir/tests.jar" -C "$dir/tests" .
	compile src/bench/java "$dir/bench"
	jar --create --file "$dir/bench.jar" -C "$dir/bench" .
	# The first program on the page must compile.
	# shellcheck disable=SC2016 # the text is for sed
	sed -n '/^```java$/,/^```$/{/^```/d;p}' "$here/README.md" >"$dir/First.java"
	javac --release $release -cp "$(path)" -d "$dir/first" "$dir/First.java"
}

# tests CLASS...: run tests. Exceptions of their tasks are logged; the log is shown if a test
# fails.
tests()
{
	local log=$dir/tests.log status=0

	java -cp "$(path)" twheel.netty.Tap "${@/#/twheel.netty.}" 2>"$log" || status=$?
	[ $status = 0 ] || sed 's/^/# /' "$log"
	return $status
}

what=${1-}
dir=${2-}
shift $(($# < 2 ? $# : 2))
case $what in
needs) lacking ;;
build) build ;;
test) tests TwheelTimerTest NoDeviceTest RefusingTableTest SlotsTest NumbersTest ;;
device) tests TwheelDeviceTimerTest ;;
bench) exec java -cp "$(path)" TimerBench "$@" ;;
*)
	echo "test.sh needs|build DIR|test DIR|device DIR|bench DIR [NAME...]" >&2
	exit 2
	;;
esac
