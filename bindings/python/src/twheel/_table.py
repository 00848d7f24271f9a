# SPDX-License-Identifier: MIT
"""The table of libtwheel."""
from __future__ import annotations

import os
import time
from typing import Any, Iterable, List, Optional, Tuple

from ._twheel import ffi, lib

#: A deadline that never comes: to start a number with it is to stop it.
NEVER: int = lib.TWHEEL_TABLE_NEVER

#: What a number is, or was before a change.
IDLE: int = lib.TWHEEL_TABLE_IDLE
PENDING: int = lib.TWHEEL_TABLE_PENDING
UNREAD: int = lib.TWHEEL_TABLE_UNREAD

_CLOCKS = {
    "monotonic": lib.TWHEEL_TABLE_MONOTONIC,
    "boottime": lib.TWHEEL_TABLE_BOOTTIME,
    "realtime": lib.TWHEEL_TABLE_REALTIME,
    "tai": lib.TWHEEL_TABLE_TAI,
    "virtual": lib.TWHEEL_TABLE_VIRTUAL,
}


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


class Table:
    """Timeouts of the numbers 0 to nr - 1.

    device=True has the table on /dev/twheel, where its timeouts outlive the process; fd is a
    descriptor of a table there, which belongs to the new table if this succeeds. clock is
    "monotonic", "boottime", "realtime", "tai" or "virtual". Times are nanoseconds of that
    clock.

    A function that fails raises OSError. Any thread may call any method at any time, close()
    too: a call that is under way in another thread keeps the table open until it returns.
    """

    def __init__(self, nr: int, *, device: bool = False, fd: int = 0,
                 clock: str = "monotonic", tick_ns: int = 0) -> None:
        self._table: Any = None
        options = ffi.new("struct twheel_table_options *", {
            "size": ffi.sizeof("struct twheel_table_options"),
            "backend": lib.TWHEEL_TABLE_DEVICE if device or fd else lib.TWHEEL_TABLE_PROCESS,
            "clock": _CLOCKS[clock],
            "tick_ns": tick_ns,
            "fd": fd,
        })
        table = ffi.new("struct twheel_table **")
        _checked(lib.twheel_table_open(table, nr, options))
        # It is closed when the last call with it has returned.
        self._table = ffi.gc(table[0], lib.twheel_table_close)

    def _open(self) -> Any:
        table = self._table
        if table is None:
            raise ValueError("the table is closed")
        return table

    def close(self) -> None:
        """Closes the table; a second call does nothing."""
        self._table = None

    @property
    def closed(self) -> bool:
        return self._table is None

    def __enter__(self) -> Table:
        self._open()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def nr(self) -> int:
        return lib.twheel_table_nr(self._open())

    @property
    def on_device(self) -> bool:
        return lib.twheel_table_backend(self._open()) == lib.TWHEEL_TABLE_DEVICE

    def start(self, number: int, deadline_ns: int) -> int:
        """Starts a number, or restarts it, and returns what it was."""
        return _checked(lib.twheel_table_start(self._open(), number, deadline_ns))

    def start_after(self, number: int, delay_ns: int) -> int:
        """The same, counted from now."""
        return _checked(lib.twheel_table_start_after(self._open(), number, delay_ns))

    def stop(self, number: int) -> int:
        """Stops a number, and returns what it was.

        After PENDING or UNREAD nobody fetches it, and the caller may give it to another
        timeout. After IDLE this is for the caller of expired(), who has fetched it.
        """
        return _checked(lib.twheel_table_stop(self._open(), number))

    def apply(self, changes: Iterable[Tuple[int, int]], *, after: bool = False) -> List[int]:
        """Starts and stops numbers: pairs of a number and its deadline, or NEVER.

        With after=True, deadlines count from now. Returns for each pair what the number was, or
        a negative errno.
        """
        array = ffi.new("struct twheel_table_change[]",
                        [(number, 0, deadline_ns) for number, deadline_ns in changes])
        _checked(lib.twheel_table_apply(self._open(), array, len(array),
                                        lib.TWHEEL_TABLE_AFTER if after else 0))
        return [change.result for change in array]

    def apply_buffer(self, buffer: Any, *, after: bool = False) -> int:
        """The same with an array of struct twheel_table_change, 16 bytes each.

        It is the fastest way, if the buffer is there: a bytearray, an array, numpy's. The results
        are written into it. Returns how many changes were made.
        """
        array = ffi.from_buffer("struct twheel_table_change[]", buffer, require_writable=True)
        return _checked(lib.twheel_table_apply(self._open(), array, len(array),
                                               lib.TWHEEL_TABLE_AFTER if after else 0))

    def expired(self, max: int = 256, timeout_ns: Optional[int] = 0) -> List[int]:
        """Fetches numbers that have expired, max at most, and which are idle then.

        If there are none, it sleeps for timeout_ns; None means without a limit. If a signal
        comes, its handler is called, and the sleep goes on.
        """
        numbers = ffi.new("uint32_t[]", max)
        end_ns = None if timeout_ns is None else time.monotonic_ns() + timeout_ns
        left_ns = NEVER if timeout_ns is None else timeout_ns
        while True:
            try:
                nr = _checked(lib.twheel_table_expired(self._open(), numbers, max, left_ns))
                fetched: List[int] = ffi.unpack(numbers, nr)
                return fetched
            except InterruptedError:
                if end_ns is not None:
                    left_ns = end_ns - time.monotonic_ns()
                    if left_ns < 0:
                        left_ns = 0

    def state(self, number: int) -> Tuple[int, Optional[int]]:
        """What a number is, and its deadline if it is pending."""
        deadline_ns = ffi.new("uint64_t *")
        state = _checked(lib.twheel_table_state(self._open(), number, deadline_ns))
        return state, None if deadline_ns[0] == NEVER else deadline_ns[0]

    def fileno(self) -> int:
        """The descriptor, readable if a number may have expired. It is not to be read from."""
        return _checked(lib.twheel_table_fd(self._open()))

    def next(self) -> Optional[int]:
        """Until when a loop may sleep; None if nothing pends."""
        deadline_ns = lib.twheel_table_next(self._open())
        return None if deadline_ns == NEVER else deadline_ns

    def now(self) -> int:
        """The time of the table's clock."""
        return lib.twheel_table_now(self._open())

    def advance(self, to_ns: int) -> None:
        """Moves the virtual clock."""
        while True:
            try:
                _checked(lib.twheel_table_advance(self._open(), to_ns))
                return
            except InterruptedError:
                pass
