# SPDX-License-Identifier: MIT
import array
import errno
import gc
import os
import re
import signal
import sys
import threading
import time
import unittest

import twheel
from twheel import IDLE, NEVER, PENDING, UNREAD, Table

MS = 1_000_000
HOUR = 3600 * 1000 * MS


class Process(unittest.TestCase):
    device = False

    def table(self, nr=100, **options):
        table = Table(nr, device=self.device, **options)
        self.addCleanup(table.close)
        return table

    def test_number_expires_once_and_not_before_its_deadline(self):
        table = self.table(clock="virtual")
        self.assertEqual(table.start(17, 5 * MS), IDLE)
        table.advance(5 * MS - 1)
        self.assertEqual(table.expired(), [])
        table.advance(5 * MS)
        self.assertEqual(table.expired(), [17])
        self.assertEqual(table.expired(), [])
        self.assertEqual(table.now(), 5 * MS)

    def test_start_and_stop_say_what_the_number_was(self):
        table = self.table(clock="virtual")
        self.assertEqual(table.start(1, 5 * MS), IDLE)
        self.assertEqual(table.start(1, 6 * MS), PENDING)
        self.assertEqual(table.stop(1), PENDING)
        self.assertEqual(table.stop(1), IDLE)
        table.start(1, 5 * MS)
        table.advance(5 * MS)
        self.assertEqual(table.stop(1), UNREAD)
        self.assertEqual(table.expired(), [])

    def test_apply_returns_a_result_for_each_change(self):
        table = self.table(nr=10, clock="virtual")
        changes = [(3, 5 * MS), (10, 5 * MS), (4, 5 * MS), (3, NEVER), (3, NEVER)]
        self.assertEqual(table.apply(changes), [IDLE, -errno.ERANGE, IDLE, PENDING, IDLE])
        self.assertEqual(table.apply([]), [])
        table.advance(5 * MS)
        self.assertEqual(table.expired(), [4])

    def test_apply_after_counts_from_now(self):
        table = self.table(clock="virtual")
        table.advance(100 * MS)
        table.apply([(1, 5 * MS)], after=True)
        self.assertEqual(table.state(1), (PENDING, 105 * MS))

    def test_apply_buffer_takes_an_array_and_writes_the_results(self):
        table = self.table(nr=10, clock="virtual")
        words = array.array("Q")
        for number, deadline_ns in ((3, 5 * MS), (10, 5 * MS)):
            words.append(number << (32 if sys.byteorder == "big" else 0))
            words.append(deadline_ns)
        self.assertEqual(table.apply_buffer(words), 1)
        self.assertEqual(memoryview(words).cast("B").cast("i")[5], -errno.ERANGE)
        with self.assertRaises((BufferError, TypeError, ValueError)):
            table.apply_buffer(bytes(16))

    def test_state_has_the_deadline(self):
        table = self.table(clock="virtual")
        self.assertEqual(table.state(1), (IDLE, None))
        table.start(1, 5 * MS + 1)
        self.assertEqual(table.state(1), (PENDING, 5 * MS + 1))

    def test_next_is_a_time_until_which_a_loop_may_sleep(self):
        table = self.table(clock="virtual")
        self.assertIsNone(table.next())
        table.start(1, 5 * MS)
        self.assertLessEqual(table.next(), 5 * MS)

    def test_number_outside_the_table_is_erange(self):
        table = self.table(nr=10)
        for call in (table.stop, table.state, lambda number: table.start(number, 0)):
            with self.assertRaises(OSError) as caught:
                call(10)
            self.assertEqual(caught.exception.errno, errno.ERANGE)
        with self.assertRaises(OverflowError):
            table.stop(-1)

    def test_options_outside_their_range_are_einval(self):
        for options in ({"nr": 0}, {"tick_ns": 1}):
            with self.assertRaises(OSError) as caught:
                self.table(**options)
            self.assertEqual(caught.exception.errno, errno.EINVAL)
        with self.assertRaises(KeyError):
            self.table(clock="sundial")

    def test_expired_sleeps_until_a_number_expires_or_time_is_up(self):
        table = self.table()
        began = time.monotonic_ns()
        self.assertEqual(table.expired(timeout_ns=5 * MS), [])
        self.assertLessEqual(began + 5 * MS, time.monotonic_ns())
        table.start_after(7, 5 * MS)
        self.assertEqual(table.expired(timeout_ns=None), [7])
        self.assertLessEqual(began + 10 * MS, time.monotonic_ns())

    def test_expired_fetches_no_more_than_it_was_asked_for(self):
        table = self.table(clock="virtual")
        table.apply((number, 5 * MS) for number in range(10))
        table.advance(5 * MS)
        numbers = table.expired(3)
        self.assertEqual(len(numbers), 3)
        self.assertEqual(sorted(numbers + table.expired()), list(range(10)))

    def test_signal_handler_runs_while_it_sleeps_and_the_sleep_goes_on(self):
        table = self.table()
        heard = []
        before = signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        began = time.monotonic_ns()
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        self.assertEqual(table.expired(timeout_ns=50 * MS), [])
        self.assertEqual(heard, [1])
        self.assertLessEqual(began + 50 * MS, time.monotonic_ns())

    def test_other_threads_run_while_one_sleeps_and_one_wakes_it(self):
        table = self.table()
        fetched = []
        thread = threading.Thread(target=lambda: fetched.extend(table.expired(timeout_ns=None)))
        thread.start()
        time.sleep(0.005)
        table.start(3, 0)
        thread.join()
        self.assertEqual(fetched, [3])

    def test_closed_table_refuses_and_closes_once(self):
        table = self.table()
        with table:
            descriptor = table.fileno()
            os.fstat(descriptor)
        self.assertTrue(table.closed)
        table.close()
        for call in (table.expired, table.fileno, lambda: table.stop(1)):
            with self.assertRaises(ValueError):
                call()
        with self.assertRaises(OSError):
            os.fstat(descriptor)

    def test_table_that_a_thread_uses_is_closed_when_it_returns(self):
        table = self.table()
        descriptor = table.fileno()
        table.start_after(3, 500 * MS)
        fetched = []
        thread = threading.Thread(target=lambda: fetched.extend(table.expired(timeout_ns=None)))
        thread.start()
        time.sleep(0.1)
        table.close()
        os.fstat(descriptor)
        thread.join()
        self.assertEqual(fetched, [3])
        with self.assertRaises(OSError):
            os.fstat(descriptor)

    def test_table_that_nobody_has_is_closed(self):
        table = Table(10, device=self.device)
        descriptor = table.fileno()
        del table
        gc.collect()
        with self.assertRaises(OSError):
            os.fstat(descriptor)

    def test_it_says_what_it_is(self):
        table = self.table(nr=42)
        self.assertEqual(table.nr, 42)
        self.assertEqual(table.on_device, self.device)


class Package(unittest.TestCase):
    def test_extension_is_for_the_stable_abi(self):
        self.assertIn(".abi3.so", twheel._twheel.__file__)

    @unittest.skipUnless("TWHEEL_LIB" in os.environ, "TWHEEL_LIB does not say where the header is")
    def test_extension_has_each_function_of_the_header(self):
        with open(os.environ["TWHEEL_LIB"] + "/include/twheel/table.h") as header:
            names = set(re.findall(r"^\w.* \*?(twheel_table_\w+)\(", header.read(), re.M))
        self.assertIn("twheel_table_apply", names)
        self.assertEqual(names - set(dir(twheel._twheel.lib)), set())
