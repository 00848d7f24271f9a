#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh FOLDER SIZE...: measure Netty's HashedWheelTimer, if there are a JVM and Debian's
# libnetty-java. Build in the folder, and print rows of CSV.

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
# Drop stderr: Netty warns there that it may not use unsafe memory.
java -Xms1g -Xmx2g -cp "$path:$out" NettyBench "$@" 2>/dev/null
