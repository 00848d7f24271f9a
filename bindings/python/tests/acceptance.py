#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""10,000 timeouts in an asyncio loop: 5,000 are cancelled, 2,500 moved, and all accounts exact.

    acceptance.py process | device
"""
import asyncio
import random
import sys
import unittest

from twheel.aio import Timers

STARTED, CANCELLED, MOVED = 10_000, 5_000, 2_500


class Account:
    """What became of one timeout."""

    def __init__(self, loop):
        self.loop = loop
        self.handle = None
        self.calls = 0
        self.early = False

    def expired(self):
        self.calls += 1
        self.early |= self.loop.time() < self.handle.when()


async def run(device):
    loop = asyncio.get_running_loop()
    accounts = [Account(loop) for _ in range(STARTED)]
    with Timers(device=device, max_pending=STARTED) as timers:
        for account in accounts:
            account.handle = timers.call_later(random.uniform(1, 2), account.expired)
        await asyncio.sleep(0.1)
        random.shuffle(accounts)
        cancelled = sum(account.handle.cancel() for account in accounts[:CANCELLED])
        moved = sum(account.handle.reschedule(random.uniform(0.1, 3))
                    for account in accounts[CANCELLED:CANCELLED + MOVED])
        while timers.pending():
            await asyncio.sleep(0.01)
        left = len(timers.close())
    expired = sum(account.calls for account in accounts)
    return {
        "started": STARTED,
        "cancelled": cancelled,
        "moved": moved,
        "expired": expired,
        "left": left,
        "twice": sum(account.calls > 1 for account in accounts),
        "early": sum(account.early for account in accounts),
        "cancelled and expired": sum(account.calls for account in accounts[:CANCELLED]),
    }


EXPECTED = {
    "started": STARTED, "cancelled": CANCELLED, "moved": MOVED, "expired": STARTED - CANCELLED,
    "left": 0, "twice": 0, "early": 0, "cancelled and expired": 0,
}


class Process(unittest.TestCase):
    def test_accounts_of_ten_thousand_timeouts_are_exact(self):
        self.assertEqual(asyncio.run(run(False)), EXPECTED)


class Device(unittest.TestCase):
    def test_accounts_of_ten_thousand_timeouts_on_the_device_are_exact(self):
        self.assertEqual(asyncio.run(run(True)), EXPECTED)


if __name__ == "__main__":
    if sys.argv[1:] not in (["process"], ["device"]):
        sys.exit(__doc__)
    said = asyncio.run(run(sys.argv[1] == "device"))
    print(", ".join(f"{nr} {what}" for what, nr in said.items()))
    sys.exit(said != EXPECTED)
