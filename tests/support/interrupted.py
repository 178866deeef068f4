"""The beginning of programs that tests run in a new interpreter, and interrupt."""

from __future__ import annotations

START = """
import ctypes, os, signal, sys, threading, time
import numpy as np
import hloom, hloom.numpy as jnp
from hloom import lax
signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent may ignore it
signal.alarm(200)

def forever(body):  # n times; for a negative n without end: the counter stands still, or it would come round to n
    def run(x, n):
        step = jnp.where(n < 0, 0, 1)
        return lax.while_loop(lambda s: s[1] != n, lambda s: (body(s[0]), s[1] + step), (x, 0))[0]
    return hloom.jit(run)

def after(seconds, act):
    threading.Timer(seconds, act).start()

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
"""
