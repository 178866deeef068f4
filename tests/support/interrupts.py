"""An exception wherever Python runs the handlers of signals, which may raise: at every such point in turn."""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


class Interrupt(BaseException):
    """Raised within the function."""


_POINTS = ("CALL", "JUMP_BACKWARD", "RESUME")
"""Python looks for signals at the end of these instructions."""


def at_every_point(function: Callable[[], object], *files: str) -> Iterator[int]:
    """Call the function again and again; the n-th time it is interrupted at the n-th point at which Python code in
    these files may be. Yields n after each call, and ends when a call was not interrupted.
    """
    number, interrupted = 0, True
    while interrupted:
        interrupted = at_point(function, number, *files)
        yield number
        number += 1


def at_point(function: Callable[[], object], number: int, *files: str) -> bool:
    """Call the function, and interrupt it at a point, counted from 0, at which Python code in files with these endings
    may be; False if it has fewer."""
    interrupted, left = False, number
    last: dict[FrameType, str] = {}

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left, interrupted
        if not frame.f_code.co_filename.replace(os.sep, "/").endswith(files):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            before, last[frame] = last.get(frame, ""), dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if before.startswith(_POINTS):
                if left == 0:
                    left, interrupted = -1, True
                    raise Interrupt
                left -= 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    except Interrupt:
        pass
    finally:
        sys.settrace(before)
        last.clear()
    return interrupted
