#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
#
# The smallest program in Python: records and events by struct, os and select.
import os
import select
import struct

# Values of <linux/twheel.h>
OP_ARM, OP_SETUP = 1, 4
CLOCK_MONOTONIC = 0x101

wheel = os.open("/dev/twheel", os.O_RDWR | os.O_CLOEXEC)

# op, flags, clock, event_size, tick_ns, slack_ns, slots, max_pending
os.write(wheel, struct.pack("=IIIIQQII", OP_SETUP, 0, CLOCK_MONOTONIC, 0, 1_000_000, 0, 0, 0))
# op, flags, key, expires_ns, interval_ns, repeats, slack_ticks
os.write(wheel, struct.pack("=IIQQQII", OP_ARM, 0, 42, 100_000_000, 0, 0, 0))

poll = select.poll()
poll.register(wheel, select.POLLIN)
poll.poll()
_, key, deadline_ns, fired_ns, _, _ = struct.unpack("=QQQQII", os.read(wheel, 40))
print(f"timeout {key} has expired, {(fired_ns - deadline_ns) // 1000} us after its deadline")
