# SPDX-License-Identifier: MIT
"""Timeouts by number, in the process or on the device /dev/twheel.

Table has the functions of <twheel/table.h>, whose rules hold here. twheel.aio has timers for
asyncio, which are what most programs want.
"""
from ._table import IDLE, NEVER, PENDING, UNREAD, Table

__all__ = ["IDLE", "NEVER", "PENDING", "UNREAD", "Table"]
