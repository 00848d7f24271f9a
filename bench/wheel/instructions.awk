# SPDX-License-Identifier: GPL-2.0
# Of what callgrind has counted: calls and instructions of the wheel's functions,
# with all that they call.

# A name is given in full once and by its number after that.
function name(said,	number)
{
	number = said
	sub(/^[^(]*/, "", number)
	sub(/\).*/, ")", number)
	if (said ~ /\) /)
		names[number] = substr(said, index(said, ") ") + 2)
	return names[number]
}

# Each process has a file, and numbers of its own.
FNR == 1 { delete names }

/^fn=/ { name($0) }
/^cfn=/ { callee = name($0) }
/^calls=/ {
	sub(/^calls=/, "")
	calls[callee] += $1
	getline
	instructions[callee] += $2
}

END {
	printf "%-24s%12s%16s%12s\n", "function", "calls", "instructions", "per call"
	for (f in calls)
		if (f ~ /^twheel_wheel_/)
			printf "%-24s%12d%16d%12.1f\n", f, calls[f], instructions[f], instructions[f] / calls[f] | "sort"
}
