# SPDX-License-Identifier: MIT
"""Timers for asyncio.

    timers = Timers()
    handle = timers.call_later(30, request.timed_out)
    handle.reschedule(30)       # earlier or later; nobody cancels first
    handle.cancel()

Changes are collected, and made by one call in each turn of the loop. Timers that have expired
are fetched by one call when the descriptor of the table is readable.
"""
from __future__ import annotations

import asyncio
import contextvars
import selectors
import sys
import time
from array import array
from collections import deque
from itertools import chain
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from ._table import NEVER, Table, _checked
from ._twheel import ffi, lib

__all__ = ["EventLoop", "TimerHandle", "Timers"]

# In place of the number of a handle: it does not pend; or it has expired, and its function is
# called in a moment.
_ENDED = -1
_READY = -2

# How many timers are fetched in one turn of the loop.
_FETCHED = 256

_NS = 1e9


class TimerHandle:
    """A timer of Timers. It may be started again after its function was called."""

    __slots__ = ("_timers", "_callback", "_args", "_context", "_number", "_deadline_ns",
                 "_cancelled", "__weakref__")

    def __init__(self, timers: Timers, callback: Callable[..., object], args: Tuple[Any, ...],
                 context: Optional[contextvars.Context]) -> None:
        self._timers = timers
        self._callback = callback
        self._args = args
        self._context = contextvars.copy_context() if context is None else context
        self._number = _ENDED
        self._deadline_ns = 0
        self._cancelled = False

    def __repr__(self) -> str:
        state = ("cancelled" if self._cancelled else "ended" if self._number == _ENDED
                 else "pending")
        return f"<TimerHandle {state} when={self.when()} {self._callback!r}>"

    def when(self) -> float:
        """When it is to expire, in seconds of loop.time()."""
        return self._deadline_ns / _NS

    def pending(self) -> bool:
        """Whether its function will be called."""
        return self._number != _ENDED

    def cancelled(self) -> bool:
        """Whether it was cancelled, or was closed with its Timers, since its last start."""
        return self._cancelled

    def cancel(self) -> bool:
        """Has its function not called. Returns whether it was pending."""
        number = self._number
        if number == _ENDED:
            return False
        if number >= 0:
            self._timers._stop(number)
        self._number = _ENDED
        self._cancelled = True
        return True

    def reschedule(self, delay: float) -> bool:
        """Moves it to delay seconds from now, or starts it again. Was it pending?"""
        return self._restart(time.monotonic_ns() + int(delay * _NS + 0.5))

    def reschedule_at(self, when: float) -> bool:
        """The same, to a time of loop.time()."""
        return self._restart(int(when * _NS + 0.5))

    def _restart(self, deadline_ns: int) -> bool:
        number = self._number
        if number >= 0:
            self._timers._change(number, deadline_ns)
        else:
            self._timers._start(self, deadline_ns)
            self._cancelled = False
        self._deadline_ns = deadline_ns
        return number != _ENDED


class Timers:
    """Timers of one asyncio loop.

    At most max_pending of them pend at a time; one takes 40 bytes in the table besides its
    handle. device=True has the table on /dev/twheel. A timer expires at the first multiple of
    tick_ns (1 ms) at or after its deadline, and never before.

    All methods are for the thread of the loop. A function that raises is reported to the loop's
    exception handler, and the others are called.
    """

    def __init__(self, *, loop: Optional[asyncio.AbstractEventLoop] = None,
                 max_pending: int = 1_000_000, device: bool = False, tick_ns: int = 0) -> None:
        self._loop = loop or asyncio.get_running_loop()
        self._table = Table(max_pending, device=device, tick_ns=tick_ns)
        self._raw = self._table._table
        self._max_pending = max_pending
        # By number; a number that was given back is in _unused, and has no handle.
        self._handles: List[Optional[TimerHandle]] = []
        self._unused: List[int] = []
        # The changes of this turn: the last deadline of each number.
        self._changes: Dict[int, int] = {}
        self._ready: Deque[TimerHandle] = deque()
        self._fetched = ffi.new("uint32_t[]", _FETCHED)
        self._fd = self._table.fileno()
        self._loop.add_reader(self._fd, self._expire)

    def __enter__(self) -> Timers:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def pending(self) -> int:
        """How many timers pend."""
        ready = sum(handle._number == _READY for handle in self._ready)
        return len(self._handles) - len(self._unused) + ready

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any,
                   context: Optional[contextvars.Context] = None) -> TimerHandle:
        """Has a function called after delay seconds, as loop.call_later() does.

        Raises BlockingIOError if max_pending timers pend.
        """
        handle = TimerHandle(self, callback, args, context)
        handle._deadline_ns = deadline_ns = time.monotonic_ns() + int(delay * _NS + 0.5)
        self._start(handle, deadline_ns)
        return handle

    def call_at(self, when: float, callback: Callable[..., object], *args: Any,
                context: Optional[contextvars.Context] = None) -> TimerHandle:
        """The same at a time of loop.time()."""
        handle = TimerHandle(self, callback, args, context)
        handle._deadline_ns = deadline_ns = int(when * _NS + 0.5)
        self._start(handle, deadline_ns)
        return handle

    def close(self) -> List[TimerHandle]:
        """Ends all timers, and returns those whose functions were not called, by deadline.

        Each start has exactly one outcome: its function was called, it was cancelled or started
        again, or it is in this list. A second call returns an empty list.
        """
        if self._table.closed:
            return []
        self._loop.remove_reader(self._fd)
        left = [handle for handle in self._handles if handle is not None]
        left += [handle for handle in self._ready if handle._number == _READY]
        for handle in left:
            handle._number = _ENDED
            handle._cancelled = True
        self._handles.clear()
        self._unused.clear()
        self._changes.clear()
        self._ready.clear()
        self._raw = None
        self._table.close()
        left.sort(key=lambda handle: handle._deadline_ns)
        return left

    # ---- the changes of a turn

    def _start(self, handle: TimerHandle, deadline_ns: int) -> None:
        if self._unused:
            number = self._unused.pop()
            self._handles[number] = handle
        else:
            number = self._new_number(handle)
        handle._number = number
        self._change(number, deadline_ns)

    def _new_number(self, handle: TimerHandle) -> int:
        number = len(self._handles)
        if self._table.closed:
            raise RuntimeError("Timers is closed")
        if number == self._max_pending:
            raise BlockingIOError(f"{number} timers pend")
        self._handles.append(handle)
        return number

    # The table is told before the next fetch, so the number can be given out again at once.
    def _stop(self, number: int) -> None:
        self._handles[number] = None
        self._unused.append(number)
        self._change(number, NEVER)

    def _change(self, number: int, deadline_ns: int) -> None:
        if not self._changes:
            self._loop.call_soon(self._apply)
        if not 0 <= deadline_ns <= NEVER:
            deadline_ns = 0 if deadline_ns < 0 else NEVER
        self._changes[number] = deadline_ns

    def _apply(self) -> None:
        changes = self._changes
        if not changes:
            return
        # As an array of struct twheel_table_change, with a result of 0.
        pairs: Any = changes.items()
        if sys.byteorder == "big":
            pairs = ((number << 32, deadline_ns) for number, deadline_ns in pairs)
        words = array("Q", chain.from_iterable(pairs))
        changes.clear()
        made = lib.twheel_table_apply(
            self._raw, ffi.from_buffer("struct twheel_table_change[]", words),
            len(words) // 2, 0)
        if made != len(words) // 2:
            _checked(made)
            self._report(words)

    # On the device a start can fail.
    def _report(self, words: array[int]) -> None:
        for change in ffi.from_buffer("struct twheel_table_change[]", words):
            handle = self._handles[change.number]
            if change.result >= 0 or handle is None:
                continue
            self._handles[change.number] = None
            self._unused.append(change.number)
            handle._number = _ENDED
            handle._cancelled = True
            self._tell(handle, OSError(-change.result, "the timer cannot be started"))

    # ---- what has expired

    def _expire(self) -> None:
        # A number that was stopped in this turn may have been given out again.
        self._apply()
        nr = lib.twheel_table_expired(self._raw, self._fetched, _FETCHED, 0)
        if nr < 0:
            # It would be readable for ever.
            self._loop.remove_reader(self._fd)
            _checked(nr)
        handles = self._handles
        for number in ffi.unpack(self._fetched, nr):
            handle = handles[number]
            if handle is None:
                continue
            handles[number] = None
            handle._number = _READY
            self._unused.append(number)
            self._ready.append(handle)
        self._call_ready()

    def _call_ready(self) -> None:
        ready = self._ready
        try:
            while ready:
                handle = ready.popleft()
                # It may have been cancelled, or moved, by another one's function.
                if handle._number != _READY:
                    continue
                handle._number = _ENDED
                try:
                    handle._context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as exception:
                    self._tell(handle, exception)
        finally:
            # A function has ended the program's run, and the loop may run again.
            if ready:
                self._loop.call_soon(self._call_ready)

    def _tell(self, handle: TimerHandle, exception: BaseException) -> None:
        self._loop.call_exception_handler({
            "message": f"Exception in {handle!r}",
            "exception": exception,
            "handle": handle,
        })


class EventLoop(asyncio.SelectorEventLoop):
    """A loop whose own timers are those of Timers: asyncio.sleep(), timeouts, call_later().

    asyncio.Runner(loop_factory=EventLoop) runs a program in it.
    """

    def __init__(self, selector: Optional[selectors.BaseSelector] = None) -> None:
        super().__init__(selector)
        self._timers = Timers(loop=self)

    def call_later(self, delay: float, callback: Callable[..., object],  # type: ignore[override]
                   *args: Any, context: Optional[contextvars.Context] = None) -> TimerHandle:
        return self._timers.call_later(delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Callable[..., object],  # type: ignore[override]
                *args: Any, context: Optional[contextvars.Context] = None) -> TimerHandle:
        return self._timers.call_at(when, callback, *args, context=context)

    def close(self) -> None:
        if not self.is_running():
            self._timers.close()
        super().close()
