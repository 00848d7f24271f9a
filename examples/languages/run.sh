#!/bin/sh
# SPDX-License-Identifier: 0BSD
#
# The smallest program in each of nine languages: opens /dev/twheel, arms a timeout, waits for
# its event and prints it.
#
#	run.sh				builds and runs those whose compiler or interpreter is here
#	run.sh build FOLDER		only builds them
#	run.sh run FOLDER [LANGUAGE...]	runs what has been built there, on this machine or another
#
# It prints TAP. What is not here is skipped: on Debian, apt-get install gcc g++ python3
# golang-go rustc nodejs openjdk-17-jdk-headless erlang-base brings all of it.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)

have()
{
	command -v "$1" >/dev/null 2>&1
}

# C and C++ come by ../Makefile, with libtwheel.
build()
{
	folder=$1
	make -s -C "$here/.." OUTPUT="$folder" LDFLAGS=-static languages
	cp "$here"/run.sh "$here"/hello.sh "$here"/hello.py "$here"/hello.js "$here"/hello.erl "$folder"
	! have go || (cd "$here" && CGO_ENABLED=0 go build -o "$folder/languages-go" hello.go)
	! have rustc || rustc --edition 2021 -C target-feature=+crt-static \
		-o "$folder/languages-rust" "$here/hello.rs"
	! have javac || javac -d "$folder" "$here/Hello.java"
}

number=0
failed=0

# runs LANGUAGE NEEDED COMMAND...: whether the program prints its event, and ends well. It is
# skipped if NEEDED is no command, or if it is a file that was not built.
runs()
{
	sentence="the smallest program in $1 prints its event"
	needed=$2 why=
	shift 2
	number=$((number + 1))
	case $needed in
	*/*) [ -e "$needed" ] || why='its compiler was not found' ;;
	*) have "$needed" || why="there is no $needed" ;;
	esac
	if [ -n "$why" ]; then
		echo "ok $number $sentence # SKIP $why"
		return
	fi
	verdict='not ok'
	said=$(timeout 60 "$@" 2>&1) && case $said in
	'timeout 42 has expired, '[0-9]*' us after its deadline') verdict=ok ;;
	esac
	[ "$verdict" = ok ] || failed=1
	echo "$verdict $number $sentence"
	echo "$said" | sed 's/^/# /'
}

run()
{
	cd "$1"
	shift
	[ $# -gt 0 ] || set -- C C++ shell Python Go Rust Node Java Erlang
	echo "TAP version 13"
	echo "1..$#"
	for language; do
		case $language in
		C) runs C ./languages-c ./languages-c ;;
		C++) runs C++ ./languages-cpp ./languages-cpp ;;
		shell) runs shell sh sh hello.sh ;;
		Python) runs Python python3 python3 hello.py ;;
		Go) runs Go ./languages-go ./languages-go ;;
		Rust) runs Rust ./languages-rust ./languages-rust ;;
		Node) runs Node node node hello.js ;;
		Java)
			if [ -e Hello.class ]; then
				runs Java java java -cp . Hello
			else
				runs Java ./Hello.class false
			fi
			;;
		Erlang) runs Erlang escript sh -c 'escript hello.erl 3<>/dev/twheel' ;;
		esac
	done
	return $failed
}

case ${1:-} in
build) build "$(mkdir -p "$2" && cd "$2" && pwd)" ;;
run)
	shift
	run "$@"
	;;
*)
	folder=$(mktemp -d)
	trap 'rm -rf "$folder"' EXIT
	build "$folder"
	run "$folder"
	;;
esac
