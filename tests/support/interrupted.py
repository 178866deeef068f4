"""The beginnings of programs that tests run in a new interpreter, and interrupt; without what the system of the test
itself lacks (`support.lacking`)."""

from __future__ import annotations

BEGIN = """
import os
if "HLOOM_TESTS_LACK" in os.environ:
    from support import lacking
import ctypes, signal, sys, threading, time
import numpy as np
from support.signals import ANOTHER, end_after, interrupt
signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent may ignore it
end_after(200)
"""

START = (
    BEGIN
    + """
import hloom, hloom.numpy as jnp
from hloom import lax

def forever(body):  # n times; for a negative n without end: the counter stands still, or it would come round to n
    def run(x, n):
        step = jnp.where(n < 0, 0, 1)
        return lax.while_loop(lambda s: s[1] != n, lambda s: (body(s[0]), s[1] + step), (x, 0))[0]
    return hloom.jit(run)

def after(seconds, act):
    threading.Timer(seconds, act).start()
"""
)
