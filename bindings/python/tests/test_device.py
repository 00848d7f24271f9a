# SPDX-License-Identifier: MIT
import asyncio
import errno
import fcntl
import os
import subprocess
import sys
import unittest

import test_aio
import test_table
import twheel
from twheel import PENDING

DRAIN = 0xf707
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples")


class TableOnDevice(test_table.Process):
    device = True

    def test_table_of_a_descriptor_is_the_same_table(self):
        table = self.table(nr=10)
        table.start_after(3, test_table.HOUR)
        same = twheel.Table(10, fd=os.dup(table.fileno()))
        table.close()
        self.assertEqual(same.stop(3), PENDING)
        same.close()

    def test_child_starts_what_the_parent_fetches_after_its_end(self):
        table = self.table(nr=10)
        child = os.fork()
        if not child:
            table.start_after(3, 10_000_000)
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(table.expired(timeout_ns=None), [3])


class TimersOnDevice(test_aio.Process):
    device = True

    async def test_start_that_fails_is_reported_and_the_timer_ends(self):
        pending = self.later(10, "pending")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        fcntl.ioctl(self.timers._fd, DRAIN, 0)
        handle = self.later(0, "refused")
        while len(self.errors) < 2:
            await asyncio.sleep(0.001)
        self.assertEqual({error["exception"].errno for error in self.errors}, {errno.ESHUTDOWN})
        self.errors.clear()
        self.assertFalse(handle.pending())
        self.assertTrue(handle.cancelled())
        self.assertEqual(self.timers.close(), [pending])
        self.assertEqual(self.called, [])


class Examples(unittest.TestCase):
    def test_example_with_records_alone_runs(self):
        said = subprocess.run([sys.executable, os.path.join(EXAMPLES, "records.py")],
                              capture_output=True, text=True, check=True)
        self.assertEqual(said.stdout, "expired: 0 1 4 6 7 8 9\n")
