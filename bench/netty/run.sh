#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh FOLDER SIZE...: Netty's HashedWheelTimer, where there are a JVM and Debian's
# libnetty-java; builds in the folder, prints rows of CSV.

set -euo pipefail
jars=/usr/share/java
out=$1
shift

for wanted in java javac; do
	command -v $wanted >/dev/null || { echo "# skipped: netty: no $wanted" >&2; exit; }
done
[ -e $jars/netty-common.jar ] || { echo "# skipped: netty: no libnetty-java" >&2; exit; }
path=$jars/netty-common.jar:$jars/jctools-core.jar
mkdir -p "$out"
javac -cp $path -d "$out" "$(dirname "$0")/NettyBench.java"
# It says on stderr that it may use no unsafe memory, and the like.
java -Xms1g -Xmx2g -cp "$path:$out" NettyBench "$@" 2>/dev/null
