"""Call Python from a running program: for rows that call Python, and for loops that look for interrupts.

A program runs without the GIL, and Python runs the handler of a signal only in its own loop. So each jump backwards
counts the estimated time of the loop's body. Once that is enough to look at the clock, and the clock says that it is
time, the program takes the GIL and calls an empty Python function. There the handlers of signals run (in the main
thread), and so do other threads' demands to raise an exception here. An exception stops the program.

Both use CPython's functions through a table of their addresses, as call.py does. An exception stays where CPython keeps
it, in the thread's state, until `call_program` returns to Python. (A function that ctypes makes for Python would print
an exception that comes before its first line, and go on.)
"""

from __future__ import annotations

import ctypes
import threading
from array import array

from ...hlo.support.once import once
from ...hlo.system import at_fork, system
from .executor import native_function

_MAIN_NANOSECONDS, _OTHER_NANOSECONDS = 100_000_000, 1_000_000_000
"""How often a loop calls Python, in the main thread and in others. Waiting for the GIL may take 5 ms."""

_CLOCK, _SELF, _MAIN, _ENSURE, _RELEASE, _INTEGER, _CALL, _DECREF, _NOTHING = (f"load(api + {8 * k})" for k in range(9))

CALL_PYTHON = native_function(
    "call_python",
    f"""
def call_python(api, function, words):
    status = 1
    state = call0({_ENSURE}) & 0xffffffff
    address = call1({_INTEGER}, words)
    if address != 0:
        result = call2({_CALL}, function, address)
        call1({_DECREF}, address)
        if result != 0:
            call1({_DECREF}, result)
            status = 0
    call1({_RELEASE}, state)
    return status
""",
    3,
)
"""Calls a Python function with the address of the arguments' words; 1 if it raised."""

LOOK = native_function(
    "look",
    f"""
def look(api, call_python, watch):
    {system.clock_text(_CLOCK, 'watch + 8')}
    now = {system.nanoseconds_text('watch + 8')}
    often = {_OTHER_NANOSECONDS}
    if call0({_SELF}) == {_MAIN}:
        often = {_MAIN_NANOSECONDS}
    status = 0
    if load(watch) == 0:
        store(watch, now)
    elif now - load(watch) >= often:
        status = call3(call_python, api, {_NOTHING}, 0)
        store(watch, now)
    return status
""",
    3,
)
"""Calls Python if it is time. `watch`: when it was last called, 0 before the first look; then room for a timespec."""


def _nothing(_: int) -> None:
    """When this function is entered, Python handles all pending requests: signals, exceptions, other threads' wait for
    the GIL."""


@once
def callback_api() -> array[int]:
    """The table that `call_python` and `look` get."""
    python = ("PyGILState_Ensure", "PyGILState_Release", "PyLong_FromLongLong", "PyObject_CallOneArg", "Py_DecRef")
    functions = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in python]
    main = threading.main_thread().ident or 0
    table = array("q", [*map(system.native_address, ("clock", "self")), main, *functions, id(_nothing)])

    def this_is_main() -> None:
        table[2] = threading.get_ident()

    at_fork(after_in_child=this_is_main)
    for kept in (table, _nothing):  # a daemon thread may look while the interpreter ends
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return table
