#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a timer costs in asyncio: loop.call_later() beside twheel.aio, in nanoseconds.

    bench.py [PENDING]      with that many other timers pending, 100,000 by default

PYTHONPATH is where the package is built.
"""
import asyncio
import sys
import time
from array import array

from twheel import Table
from twheel.aio import Timers

PAIRS = 200_000
TURN = 256


def nothing():
    pass


# Each gets call_later, and the number of timers that are started in one turn of the loop.
async def pairs(call_later, turn):
    handles = []
    for _ in range(PAIRS // turn):
        for handle in handles:
            handle.cancel()
        handles = [call_later(30, nothing) for _ in range(turn)]
        await asyncio.sleep(0)
    for handle in handles:
        handle.cancel()


# A timer that pends is cancelled, and started anew: what an idle timeout does.
async def refreshes(call_later, turn):
    handles = [call_later(30, nothing) for _ in range(turn)]
    await asyncio.sleep(0)
    for _ in range(PAIRS // turn):
        if isinstance(call_later.__self__, Timers):
            for handle in handles:
                handle.reschedule(30)
        else:
            for handle in handles:
                handle.cancel()
            handles = [call_later(30, nothing) for _ in range(turn)]
        await asyncio.sleep(0)
    for handle in handles:
        handle.cancel()


async def expiries(call_later, turn):
    left = PAIRS
    done = asyncio.get_running_loop().create_future()

    def expired():
        nonlocal left
        left -= 1
        if not left:
            done.set_result(None)
    for i in range(PAIRS):
        call_later(0.5 + i / PAIRS, expired)
    await done


async def measured(workload, call_later, turn):
    began = time.process_time_ns()
    await workload(call_later, turn)
    return (time.process_time_ns() - began) / PAIRS


async def beside(pending, workload, turn):
    loop = asyncio.get_running_loop()
    with Timers() as timers:
        nanoseconds = []
        for call_later in (loop.call_later, timers.call_later):
            others = [call_later(3600 + i % 1000, nothing) for i in range(pending)]
            await asyncio.sleep(0)
            nanoseconds.append(min([await measured(workload, call_later, turn)
                                    for _ in range(3)]))
            for other in others:
                other.cancel()
            await asyncio.sleep(0)
    return nanoseconds


def table_pairs(fill):
    """A pair by Table.apply_buffer(), with an array that is there, or is filled each time."""
    with Table(TURN) as table:
        words = array("Q")
        for number in range(TURN):
            words.extend((number, 1 << 62))
        stops = array("Q", words)
        for number in range(TURN):
            stops[2 * number + 1] = 2**64 - 1
        began = time.process_time_ns()
        for _ in range(PAIRS // TURN):
            if fill:
                deadline_ns = time.monotonic_ns() + 30_000_000_000
                words = array("Q", [word for number in range(TURN)
                                    for word in (number, deadline_ns)])
            table.apply_buffer(words)
            table.apply_buffer(stops)
        return (time.process_time_ns() - began) / PAIRS


def main():
    pending = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print("| | `loop.call_later` | `twheel.aio` |\n|---|---:|---:|")
    for name, workload, turn in (
            (f"a start and a cancel, {TURN} in a turn of the loop", pairs, TURN),
            ("a start and a cancel, one in a turn, with the turn", pairs, 1),
            (f"a restart, {TURN} in a turn", refreshes, TURN),
            ("a start that expires", expiries, 1)):
        asyncio_ns, twheel_ns = asyncio.run(beside(pending, workload, turn))
        print(f"| {name} | {asyncio_ns:,.0f} | {twheel_ns:,.0f} |")
    print(f"\nTable.apply_buffer(), a pair: {table_pairs(False):.1f}; "
          f"with an array that is filled: {table_pairs(True):.0f}")


main()
