#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# The device without any library: requests in asyncio, whose timeouts are records that os.write()
# sends to /dev/twheel. Events come by os.read(). The wheel is keyed, and the key is the request.
import asyncio
import os
import struct

ARM, CANCEL, SETUP = 1, 3, 4
KEYED, MONOTONIC = 2, 0x101
# A timeout that has just expired is no error.
ABSENT_OK = 1 << 16

RECORD = struct.Struct("=IIQQQII")  # op, flags, key, expires_ns, interval_ns, repeats, slack_ticks
SETUP_RECORD = struct.Struct("=IIIIQQII")  # op, flags, clock, event_size, tick_ns, slack_ns, ...
EVENT = struct.Struct("=QQQQII")  # id, user_data, deadline_ns, fired_ns, count, flags


class Device:
    """Timeouts by key; changes are written once a turn of the loop."""

    def __init__(self, expired):
        self.loop = asyncio.get_running_loop()
        self.expired = expired
        self.records = []
        self.fd = os.open("/dev/twheel", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        os.write(self.fd, SETUP_RECORD.pack(SETUP, KEYED, MONOTONIC, EVENT.size, 0, 0, 0, 0))
        self.loop.add_reader(self.fd, self.read)

    def start(self, key, delay):
        """Arms the timeout of a key, or moves it."""
        self.add(RECORD.pack(ARM, 0, key, int(delay * 1e9), 0, 0, 0))

    def stop(self, key):
        self.add(RECORD.pack(CANCEL, ABSENT_OK, key, 0, 0, 0, 0))

    def add(self, record):
        if not self.records:
            self.loop.call_soon(self.write)
        self.records.append(record)

    def write(self):
        left = b"".join(self.records)
        self.records.clear()
        # If a record is refused, the write of the rest fails with the reason.
        while left:
            left = left[os.write(self.fd, left):]

    def read(self):
        try:
            events = os.read(self.fd, 256 * EVENT.size)
        except BlockingIOError:
            return
        for _, key, *_ in EVENT.iter_unpack(events):
            self.expired(key)

    def close(self):
        self.loop.remove_reader(self.fd)
        os.close(self.fd)


async def main():
    # An event that was read may be of a request that has got its answer since.
    waiting = set(range(10))
    expired = []

    def on_expired(request):
        if request in waiting:
            waiting.remove(request)
            expired.append(request)

    device = Device(on_expired)
    for request in range(10):
        device.start(request, 0.1 + request / 100)
    for answered in (2, 3, 5):
        device.stop(answered)
        waiting.remove(answered)
    while waiting:
        await asyncio.sleep(0.01)
    device.close()
    print("expired:", *expired)


asyncio.run(main())
