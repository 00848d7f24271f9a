#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# jars.sh [get]: where the jars are that twheel-netty is built and tested with, one a line: this
# system's, or those of Debian 12, unpacked in .cache/java. With "get" they are put there.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/apt.sh"

jars=(netty-common.jar jctools-core.jar junit4.jar hamcrest.jar)

# all_in FOLDER
all_in()
{
	local jar

	for jar in "${jars[@]}"; do
		[ -e "$1/$jar" ] || return
	done
	printf "$1/%s\n" "${jars[@]}"
}

get_jars()
{
	local packages=$cache/java.packages dir=$cache/java tmp=$cache/java.tmp deb

	get_packages "$packages" printf '%s\n' libnetty-java libjctools-java junit4 libhamcrest-java
	rm -rf "$tmp" "$dir"
	while read -r deb; do
		unpack "$deb" "$tmp" ./usr/share/java
	done < <(deb_files "$packages")
	mv "$tmp" "$dir"
	drop_packages "$packages"
}

all_in /usr/share/java || all_in "$cache/java/usr/share/java" || {
	[ "${1-}" = get ] || exit
	get_jars >&2
	all_in "$cache/java/usr/share/java"
}
