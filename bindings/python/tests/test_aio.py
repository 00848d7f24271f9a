# SPDX-License-Identifier: MIT
import asyncio
import contextvars
import os
import subprocess
import sys
import time
import unittest

from twheel.aio import EventLoop, Timers


class Process(unittest.IsolatedAsyncioTestCase):
    device = False

    async def asyncSetUp(self):
        self.loop = asyncio.get_running_loop()
        self.timers = self.new_timers()
        self.called = []
        self.errors = []
        self.loop.set_exception_handler(lambda loop, context: self.errors.append(context))

    # What a function asserts comes here. A test that expects errors takes them out.
    async def asyncTearDown(self):
        self.assertEqual(self.errors, [])

    def new_timers(self, **options):
        timers = Timers(device=self.device, **options)
        self.addCleanup(timers.close)
        return timers

    def later(self, delay, name):
        return self.timers.call_later(delay, self.called.append, name)

    async def all_are_called(self):
        while self.timers.pending():
            await asyncio.sleep(0.001)

    async def test_function_is_called_once_with_its_arguments_and_not_early(self):
        called = self.loop.create_future()
        began = self.loop.time()
        handle = self.timers.call_later(0.02, lambda *args: called.set_result(args), 1, "two")
        self.assertAlmostEqual(handle.when(), began + 0.02, delta=0.5)
        self.assertTrue(handle.pending())
        self.assertEqual(await called, (1, "two"))
        self.assertGreaterEqual(self.loop.time(), handle.when())
        self.assertFalse(handle.pending())
        self.assertFalse(handle.cancelled())
        self.assertEqual(self.timers.pending(), 0)

    async def test_timers_are_called_in_the_order_of_their_ticks(self):
        now = self.loop.time()
        for delay in (30, 10, 20, 0):
            self.timers.call_at(now + delay / 1000, self.called.append, delay)
        await self.all_are_called()
        self.assertEqual(self.called, [0, 10, 20, 30])

    async def test_call_at_is_by_the_clock_of_the_loop(self):
        when = self.loop.time() + 0.01
        handle = self.timers.call_at(when, self.called.append, "at")
        self.assertAlmostEqual(handle.when(), when, delta=1e-6)
        await self.all_are_called()
        self.assertGreaterEqual(self.loop.time(), when)

    async def test_deadline_that_has_passed_is_called_at_once(self):
        self.later(-5, "negative")
        self.timers.call_at(-1, self.called.append, "at")
        await self.all_are_called()
        self.assertEqual(sorted(self.called), ["at", "negative"])

    async def test_deadline_beyond_all_time_pends(self):
        handle = self.later(1e30, "never")
        self.later(0, "now")
        await asyncio.sleep(0.01)
        self.assertEqual(self.called, ["now"])
        self.assertTrue(handle.cancel())

    async def test_cancelled_function_is_not_called(self):
        in_this_turn = self.later(0, "in this turn")
        self.assertTrue(in_this_turn.cancel())
        self.assertFalse(in_this_turn.cancel())
        later = self.later(0.01, "later")
        await asyncio.sleep(0)
        self.assertTrue(later.cancel())
        self.assertTrue(later.cancelled())
        await asyncio.sleep(0.02)
        self.assertEqual(self.called, [])
        self.assertEqual(self.timers.pending(), 0)

    async def test_timer_that_expired_and_was_not_fetched_can_be_cancelled(self):
        handle = self.later(0.2, "unread")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        time.sleep(0.3)
        # Now the loop finds it readable, and fetches after the next step of this.
        await asyncio.sleep(0)
        self.assertTrue(handle.cancel())
        other = self.later(10, "has the number now")
        await asyncio.sleep(0.01)
        self.assertEqual(self.called, [])
        self.assertTrue(other.cancel())

    async def test_cancel_says_that_it_came_too_late(self):
        handle = self.later(0, "called")
        await self.all_are_called()
        self.assertFalse(handle.cancel())
        self.assertFalse(handle.cancelled())

    async def test_function_may_cancel_another_that_expired_with_it(self):
        handles = []

        def cancel_the_other(me):
            self.called.append(me)
            self.assertEqual(self.timers.pending(), 1)
            self.assertTrue(handles[1 - me].cancel())
        handles += [self.timers.call_later(0, cancel_the_other, me) for me in (0, 1)]
        await self.all_are_called()
        self.assertEqual(len(self.called), 1)

    async def test_reschedule_moves_to_later_and_to_earlier(self):
        later, earlier = self.later(0.005, "later"), self.later(10, "earlier")
        await asyncio.sleep(0)
        now = self.loop.time()
        self.assertTrue(later.reschedule_at(now + 0.03))
        self.assertTrue(earlier.reschedule_at(now + 0.01))
        await self.all_are_called()
        self.assertEqual(self.called, ["earlier", "later"])
        self.assertGreaterEqual(self.loop.time(), later.when())

    async def test_reschedule_moves_a_timer_that_expired_with_another(self):
        handles = []

        def move_the_other(me):
            self.called.append(me)
            if len(self.called) == 1:
                self.assertTrue(handles[1 - me].reschedule(0.01))
        handles += [self.timers.call_later(0, move_the_other, me) for me in (0, 1)]
        await self.all_are_called()
        self.assertEqual(sorted(self.called), [0, 1])

    async def test_function_may_start_its_timer_again(self):
        def again():
            self.called.append(self.loop.time())
            if len(self.called) < 5:
                self.assertFalse(handle.reschedule(0.002))
        handle = self.timers.call_later(0.002, again)
        await self.all_are_called()
        self.assertEqual(len(self.called), 5)

    async def test_cancelled_timer_can_be_started_again(self):
        handle = self.later(10, "again")
        handle.cancel()
        self.assertFalse(handle.reschedule(0))
        self.assertFalse(handle.cancelled())
        await self.all_are_called()
        self.assertEqual(self.called, ["again"])

    async def test_exception_goes_to_the_handler_and_the_others_are_called(self):
        for _ in range(3):
            self.timers.call_later(0, lambda: 1 / 0)
            self.later(0, "other")
        await self.all_are_called()
        self.assertEqual(self.called, ["other"] * 3)
        self.assertEqual([type(error["exception"]) for error in self.errors],
                         [ZeroDivisionError] * 3)
        self.errors.clear()

    async def test_function_runs_in_the_context_of_its_start(self):
        variable = contextvars.ContextVar("variable", default="none")
        variable.set("at the start")
        self.timers.call_later(0, lambda: self.called.append(variable.get()))
        other = contextvars.copy_context()
        other.run(variable.set, "given")
        self.timers.call_later(0.005, lambda: self.called.append(variable.get()), context=other)
        variable.set("later")
        await self.all_are_called()
        self.assertEqual(self.called, ["at the start", "given"])

    async def test_more_than_max_pending_is_refused_and_changes_nothing(self):
        timers = self.new_timers(max_pending=2)
        first = timers.call_later(10, self.called.append, 1)
        timers.call_later(0, self.called.append, 2)
        with self.assertRaises(BlockingIOError):
            timers.call_later(0, self.called.append, 3)
        self.assertEqual(timers.pending(), 2)
        first.cancel()
        timers.call_later(0, self.called.append, 4)
        while timers.pending():
            await asyncio.sleep(0.001)
        self.assertEqual(sorted(self.called), [2, 4])

    async def test_close_returns_what_was_not_called_by_deadline(self):
        last, first, gone = (self.later(delay, delay) for delay in (30, 10, 20))
        await asyncio.sleep(0)
        gone.cancel()
        self.assertEqual(self.timers.close(), [first, last])
        self.assertEqual(self.timers.close(), [])
        self.assertTrue(first.cancelled())
        self.assertFalse(first.cancel())
        self.assertEqual(self.timers.pending(), 0)
        await asyncio.sleep(0.01)
        self.assertEqual(self.called, [])
        self.assertFalse(self.loop.remove_reader(self.timers._fd))

    async def test_closed_timers_refuse_to_start(self):
        handle = self.later(10, "left")
        self.timers.close()
        with self.assertRaises(RuntimeError):
            self.later(0, "new")
        with self.assertRaises(RuntimeError):
            handle.reschedule(0)

    async def test_function_may_close_and_the_others_are_returned(self):
        left = []
        for _ in range(10):
            self.timers.call_later(0, lambda: left.extend(self.timers.close()))
        while not left:
            await asyncio.sleep(0.001)
        self.assertEqual(len(left), 9)

    async def test_end_of_a_block_closes(self):
        with self.new_timers() as timers:
            handle = timers.call_later(10, self.called.append, 1)
        self.assertTrue(handle.cancelled())

    async def test_thousands_that_expire_at_a_time_are_called(self):
        for number in range(3000):
            self.later(0.01, number)
        await self.all_are_called()
        self.assertEqual(sorted(self.called), list(range(3000)))


class Readme(unittest.TestCase):
    def test_program_of_the_readme_prints_what_it_says(self):
        folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with open(os.path.join(folder, "README.md")) as readme:
            program = readme.read().split("```python\n")[1].split("```")[0]
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              check=True)
        self.assertEqual(said.stdout, "request 2 has no answer\nthe connection is idle\n")


class OwnLoop(unittest.TestCase):
    def setUp(self):
        self.loop = EventLoop()
        self.addCleanup(self.loop.close)

    def test_sleep_and_timeouts_of_asyncio_are_timers_of_the_table(self):
        async def program():
            sleep = asyncio.ensure_future(asyncio.sleep(10))
            await asyncio.sleep(0)
            pending = self.loop._timers.pending()
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(sleep, 0.01)
            return pending
        self.assertEqual(self.loop.run_until_complete(program()), 1)
        self.assertEqual(self.loop._timers.pending(), 0)

    def test_closed_loop_refuses_timers(self):
        handle = self.loop.call_at(self.loop.time() + 10, print)
        self.loop.close()
        self.loop.close()
        self.assertTrue(handle.cancelled())
        with self.assertRaises(RuntimeError):
            self.loop.call_later(0, print)

    def test_loop_that_runs_is_not_closed(self):
        called = []

        async def program():
            with self.assertRaises(RuntimeError):
                self.loop.close()
            self.loop.call_later(0.001, called.append, 1)
            await asyncio.sleep(0.01)
        self.loop.run_until_complete(program())
        self.assertEqual(called, [1])


class Ends(unittest.TestCase):
    def test_function_that_ends_the_run_loses_no_other(self):
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        timers = Timers(loop=loop)
        self.addCleanup(timers.close)
        called = []

        def leave(number):
            called.append(number)
            raise SystemExit
        for number in range(5):
            timers.call_later(0, leave, number)
        for _ in range(5):
            with self.assertRaises(SystemExit):
                loop.run_forever()
        self.assertEqual(sorted(called), list(range(5)))
        self.assertEqual(timers.pending(), 0)
