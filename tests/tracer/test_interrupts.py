"""Signals while a program runs: its loop stops, the handler's error is raised, and the next call works.

On a busy machine a signal may come while its timer is still being started: that is inside of the `try`, too.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading

import pytest
from hloom.hlo.system import system
from hloom.tracer.core import EVAL, current_trace
from hloom.tracer.settings.context import thread

import hloom
from hloom import lax
from support.interrupted import START
from support.interrupts import at_every_point
from support.runtime_kernels import python
from support.spawned import interrupted

LOOPS = {
    "small": ("jnp.ones(3)", "lambda x: jnp.cos(x)"),
    "scalar": ("jnp.float32(1)", "lambda x: x * 0.5 + 1"),
    "large": ("jnp.ones(300_000)", "lambda x: jnp.sin(x)"),
    "product": ("jnp.ones((64, 64))", "lambda x: x @ x * (1 / 64)"),
    "a loop in a loop": ("jnp.ones(3)", "lambda x: lax.fori_loop(0, 1000, lambda i, y: jnp.cos(y), x)"),
    "a long loop in a loop": ("jnp.ones(3)", "lambda x: lax.fori_loop(0, 1 << 20, lambda i, y: jnp.cos(y), x)"),
    "branches": ("jnp.ones(3)", "lambda x: lax.cond(x[0] > 0.7, jnp.cos, jnp.sin, x)"),
}

INTERRUPTED = """
import json
for name, (x, body) in json.loads(sys.argv[1]).items():
    x, f = eval(x), forever(eval(body))
    expected = np.asarray(f(x, 1))
    late = []
    for delay in (0.1, 0.13, 0.2):
        started = time.monotonic()
        try:
            after(delay, interrupt)
            f(x, -1)
        except KeyboardInterrupt:
            late.append(time.monotonic() - started - delay)
        np.testing.assert_array_equal(f(x, 1), expected)
    assert len(late) == 3 and max(late) < 20, (name, late)
print("done")
"""


def test_loops_stop() -> None:
    assert python(START + INTERRUPTED, json.dumps(LOOPS)).split() == ["done"]


RAISED = """
class Enough(Exception):
    pass

def enough(*_):
    raise Enough

signal.signal(ANOTHER, enough)
f = forever(jnp.cos)
f(jnp.ones(3), 1)
try:
    after(0.2, lambda: interrupt(ANOTHER))
    f(jnp.ones(3), -1)
except Enough as error:
    print(type(error).__name__)
"""

RETURNS = """
g = hloom.jit(lambda x: x + 1)
seen = []
signal.signal(ANOTHER, lambda *_: seen.append(float(f(x, 10)[0]) + float(g(x)[0])))
f = forever(lambda x: x + 1)
x = jnp.zeros(3)
f(x, 1), g(x)

def send():  # the next when the one before was handled: two that wait together are one
    for k in range(3):
        while len(seen) < k:
            time.sleep(0.01)
        time.sleep(0.1)
        interrupt(ANOTHER)

after(0, send)
turns = 1 << 20
while len(seen) < 3:
    assert f(x, turns)[0] == turns
print(*seen)
"""

OTHER_THREAD = """
f = forever(lambda x: x + 1)
x = jnp.zeros(3)
f(x, 1)
caught = []

def call():
    try:
        f(x, -1)
    except ZeroDivisionError:
        caught.append(threading.current_thread() is not threading.main_thread())

thread = threading.Thread(target=call)
thread.start()
try:
    after(0.2, interrupt)
    time.sleep(5)  # not thread.join(): an interrupted one takes the thread for dead (before Python 3.13)
except KeyboardInterrupt:
    print(thread.is_alive())
ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(ZeroDivisionError))
thread.join(60)
print(*caught, f(x, 3)[0])
"""

CHILD = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
f = forever(jnp.cos)
f(jnp.ones(3), 1)

def fork():
    child = os.fork()
    if not child:
        try:
            after(0.2, interrupt)
            f(jnp.ones(3), -1)
        except KeyboardInterrupt:
            os._exit(3)
        os._exit(4)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

thread = threading.Thread(target=fork)  # it is the main thread of the child
thread.start()
thread.join()
"""

DONATED = """
def count(x, n):
    return lax.while_loop(lambda s: s[1] != n, lambda s: (s[0] + 1, s[1] + 1), (x, 0))[0]

f = hloom.jit(count, donate_argnums=0)
f(jnp.zeros(1000), 1)
for _ in range(20):
    x = jnp.zeros(1000)
    try:
        after(0.02, interrupt)
        f(x, -1)
    except KeyboardInterrupt:
        pass
    assert (np.asarray(f(jnp.zeros(1000), 7)) == 7).all()
print("done")
"""

EXIT = """
f = forever(jnp.cos)
f(jnp.ones(3), 1)
for _ in range(3):
    threading.Thread(target=f, args=(jnp.ones(3), -1), daemon=True).start()

class Slow:
    closed = False

    def flush(self):  # the interpreter calls it when no other thread can get the GIL any more
        Slow.flush = lambda self: None
        os.write(1, b"ending")
        time.sleep(1.3)  # the loops look at least once

sys.stdout = Slow()
time.sleep(0.2)
"""

PROGRAMS = {
    "what a handler raises": (RAISED, ["Enough"]),
    "a handler that returns": (RETURNS, ["11.0", "11.0", "11.0"]),
    "another thread": (OTHER_THREAD, ["True", "True", "3.0"]),
    "donation": (DONATED, ["done"]),
}
"""They leave their process as it was, so that one runs all."""

ALL = """
import json
for name, code in json.loads(sys.argv[1]).items():
    print(name, flush=True)
    exec(code, dict(globals()))
"""


def test_signals() -> None:
    printed = python(START + ALL, json.dumps({name: code for name, (code, _) in PROGRAMS.items()})).split("\n")
    expected = [line for name, (_, words) in PROGRAMS.items() for line in (name, *words)]
    assert [word for line in printed for word in ([line] if line in PROGRAMS else line.split())] == expected


def test_the_interpreter_ends_while_loops_run() -> None:
    assert python(START + EXIT).split() == ["ending"]


@pytest.mark.skipif(
    sys.version_info >= (3, 13) or not hasattr(os, "fork"),
    reason="no forks, or no handlers in the child of another thread than the main",
)
def test_a_signal_in_the_child_of_another_thread() -> None:
    assert python(START + CHILD).split() == ["3"]


@pytest.mark.parametrize("busy", [False, True])
def test_a_signal_in_a_spawned_process(busy: bool) -> None:
    """Its loop stops, while loops of this process run and go on."""
    count = hloom.jit(lambda n: lax.fori_loop(0, n, lambda i, x: x * 0.5 + 1, 0.0))
    stop, turns = threading.Event(), []

    def work() -> None:
        while not stop.is_set():
            turns.append(count(1_000_000).item())

    thread = threading.Thread(target=work)
    if busy:
        thread.start()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        name, late, after = pool.apply_async(interrupted, (0.3,)).get(200)
    stop.set()
    if busy:
        thread.join()
    assert name == system.name and late < 20 and after == 2 and set(turns) <= {2.0} and bool(turns) == busy


def test_an_interrupt_while_a_function_is_traced_leaves_no_trace_behind() -> None:
    hloom.jit(lambda x: x * 2 + 1).lower(1.0)  # imports the modules
    points = 0
    for _ in at_every_point(lambda: hloom.jit(lambda x: x * 2 + 1).lower(1.0), "tracer/core.py", "contextlib.py"):
        points += 1
        assert current_trace() is EVAL
        assert thread.running is thread.settings
    assert points > 20
