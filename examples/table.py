#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
#
# Timeouts by number, from Python: all that <twheel/table.h> has, by ctypes.
#
#	table.py [--processes] [LIBRARY]
#
# LIBRARY is libtwheel.so.1 by default.  --processes takes the table on the device, whose
# timeouts outlive the process that started them.
import ctypes
import os
import sys

NEVER = 2**64 - 1
AFTER = 1
PENDING, UNREAD = 1, 2


class Change(ctypes.Structure):
    _fields_ = [("number", ctypes.c_uint32), ("result", ctypes.c_int32),
                ("deadline_ns", ctypes.c_uint64)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("backend", ctypes.c_uint32),
                ("flags", ctypes.c_uint32), ("clock", ctypes.c_uint32),
                ("tick_ns", ctypes.c_uint64), ("fd", ctypes.c_int32),
                ("reserved", ctypes.c_uint32)]


words = [word for word in sys.argv[1:] if word != "--processes"]
lib = ctypes.CDLL(words[0] if words else "libtwheel.so.1")


def call(name, table, *arguments):
    result = getattr(lib, "twheel_table_" + name)(table, *arguments)
    if result < 0:
        raise OSError(-result, os.strerror(-result), name)
    return result


options = Options(size=ctypes.sizeof(Options), flags="--processes" in sys.argv)
table = ctypes.c_void_p()
call("open", ctypes.byref(table), 10, ctypes.byref(options))

# Ten requests in one call; three of them get an answer.
changes = (Change * 10)(*[Change(n, 0, 100_000_000 + n * 1_000_000) for n in range(10)])
assert call("apply", table, changes, 10, AFTER) == 10
assert all(call("stop", table, ctypes.c_uint32(n)) in (PENDING, UNREAD) for n in (2, 3, 5))

numbers = (ctypes.c_uint32 * 10)()
expired = []
while len(expired) < 7:
    try:
        nr = call("expired", table, numbers, 10, ctypes.c_uint64(NEVER))
    except InterruptedError:  # a signal has come, and its handler has run
        continue
    expired += numbers[:nr]
assert expired == [0, 1, 4, 6, 7, 8, 9], expired
print("expired:", *expired)
lib.twheel_table_close(table)
