#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# host.sh FOLDER [ARGUMENT...]: build twheel-bench in the folder and run it on this host, with the
# module if it is loaded; then run Netty if there is a JVM. bench.csv and plots are left in the
# folder. The arguments are those of twheel-bench. It measures time.

set -euo pipefail
[ $# -gt 0 ] || { sed -n '4,6s/^# //p' "$0"; exit 2; }
unset CDPATH
here=$(cd -- "$(dirname -- "$0")" && pwd)
out=$1
shift

mkdir -p "$out/plots"
make -C "$here" OUTPUT="$(cd -- "$out" && pwd)"
"$out/twheel-bench" --csv "$out/bench.csv" "$@" >/dev/null
bash "$here/netty/run.sh" "$out/netty" 10000 100000 1000000 >>"$out/bench.csv"
printf '# kernel: %s\n# date: %s\n' "$(uname -r)" "$(date -u +%F)" >>"$out/bench.csv"
"$out/twheel-bench" --report "$out/bench.csv"
if command -v gnuplot >/dev/null; then
	gnuplot -e "csv='$out/bench.csv'; dir='$out/plots'" "$here/plot.gp"
fi
