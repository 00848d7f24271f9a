# SPDX-License-Identifier: GPL-2.0
#
# <linux/twheel.h> as a later release might have it: each structure that may grow has done so
# at its end.
/^struct twheel_/ && !/_record {$/ { inside = 1 }
inside && /^};/ { print "\t__aligned_u64 grown[2];"; inside = 0 }
{ print }
