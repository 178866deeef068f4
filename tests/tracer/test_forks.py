"""A fork while another thread is in the middle of something: the children work, and soon."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hloom.hlo.support.forking import Gate

from support.interrupts import at_every_point
from support.runtime_kernels import python

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")

FORKS = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork beside any thread
before, work, check, gap, count = sys.argv[1:]
scope = {"__name__": "busy"}
exec(before, scope)
stop, failed = False, []

def busy():
    try:
        while not stop:
            exec(work, scope)
    except BaseException as error:
        failed.append(error)
        raise

thread = threading.Thread(target=busy, daemon=True)
thread.start()
statuses = []
for k in range(int(count)):
    time.sleep(float(gap) * (k + 1))
    child = os.fork()
    if not child:
        signal.alarm(200)
        status = 1
        try:
            exec(check, scope)
            status = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop = True
thread.join(120)
assert not failed and not thread.is_alive()
print(*statuses)
"""

IMPORTS = """
import itertools, os
import ctypes
import numpy as np
import hloom, hloom.numpy as jnp
from hloom.numba_backend.runtime.blas import thread_setting
"""
COMPILE = (
    IMPORTS
    + """
count = itertools.count(os.getpid() << 6)
def compile():
    bits = bin(next(count))[-12:]  # a kernel for each number
    def f(x):
        for bit in bits:
            x = jnp.abs(x) if bit == "1" else x * x
        return x
    x = np.linspace(-1, 1, 50, dtype=np.float32)
    expected = x
    for bit in bits:
        expected = abs(expected) if bit == "1" else expected * expected
    np.testing.assert_allclose(hloom.jit(f)(x), expected, rtol=1e-5)
"""
)
PRODUCT = (
    IMPORTS
    + """
def blas_threads():
    get = thread_setting()[0]
    return ctypes.CFUNCTYPE(ctypes.c_int)(get)() if get else None
a = jnp.ones((400, 400))
f = hloom.jit(lambda a: a @ a)
f(a)
before = blas_threads()
def product():
    assert np.asarray(f(a))[0, 0] == 400
def child():
    assert blas_threads() == before
    product()
"""
)
EAGER = IMPORTS + "a = jnp.ones((400, 400))\ndef product():\n    assert np.asarray(a @ a)[0, 0] == 400\n"
FACTORS = (
    IMPORTS
    + """
TEXT = "HloModule m\\nENTRY e { x = f32[400,400] parameter(0) ROOT y = f32[400,400] cholesky(x), lower=true }"
a = np.eye(400, dtype=np.float32) * 4
def factor():
    assert hloom.run_hlo(TEXT, a)[0][1, 1] == 2
factor()
"""
)
SPLIT = (
    IMPORTS
    + """
x = jnp.zeros(1 << 20)
f = hloom.jit(lambda x: x + 1)
def split():
    assert (np.asarray(f(x)) == 1).all()
"""
)
MINOR = (
    IMPORTS
    + """
from hloom import hlo
from hloom.hlo.host_queues import HOST_QUEUES
from hloom.hlo.random_state import RANDOM_STATE
def minor():
    with hloom.enable_x64(), hloom.disable_jit():
        hloom.config.update("hloom_backend", "numba")
    hloom.register_custom_call("minor", abs, replace=True)
    HOST_QUEUES.put("minor", np.zeros(1))
    RANDOM_STATE.advance(1)
    str(hlo.parse("HloModule m\\nENTRY e { ROOT x = f32[] parameter(0) }"))
"""
)
FIRST = """
import hloom.numpy as jnp, hloom
import numpy as np
def first():
    assert hloom.jit(lambda x: jnp.sin(x) * 0 + x.sum())(np.ones(4, np.float32))[0] == 4
    assert hloom.random.normal(hloom.random.key(0), (3,)).shape == (3,)
first()
"""

CASES = {
    "compiling": (COMPILE, "compile()", "compile()", "0.02", "4"),
    "a product of a program": (PRODUCT, "product()", "child()", "0.003", "8"),
    "a product outside of programs": (EAGER, "product()", "product()", "0.003", "8"),
    "a factorisation": (FACTORS, "factor()", "factor()", "0.003", "5"),
    "a row on several threads": (SPLIT, "split()", "split()", "0.003", "6"),
    "settings and registries": (MINOR, "minor()", "minor()", "0.003", "6"),
    "import": ("import hloom", "import hloom.numpy", "import hloom.numpy as n; assert n.ones(3)[0] == 1", "0.05", "4"),
    "first call": ("import hloom", FIRST, FIRST, "0.15", "4"),
}  # fmt: skip
"""The setup, the other thread's loop, the child's program; the seconds between forks, the number of forks."""


@needs_fork
@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", CASES)
def test_children_work(case: str, tmp_path: Path) -> None:
    arguments = CASES[case]
    said = python(FORKS, *arguments, environment={"HLOOM_CACHE_DIR": str(tmp_path / "store")}, timeout=180)
    assert said.split() == ["0"] * int(arguments[-1])


CALLBACK = """
import os, signal, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import numpy as np
import hloom, hloom.numpy as jnp
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer
from support.runtime_kernels import ADD
signal.alarm(200)
x = np.ones((300, 300), np.float32)
product = hloom.jit(lambda a: a @ a)
product(x)
children = []
def fork(words):
    children.append(os.fork())
builder = ProgramBuilder()
builder.kernel(ADD, [pointer(0)] * 3, x.size, 1 << 10)
builder.callback(fork, [])
for _ in range(50):
    builder.kernel(ADD, [pointer(0)] * 3, x.size, 1 << 10)
    builder.kernel(ADD, [pointer(0)] * 3, x.size, 1 << 10)
    builder.zero(pointer(0), x.nbytes)
program = builder.build()
program.run([x.ctypes.data])
right = not x.any() and np.asarray(product(np.ones((300, 300), np.float32)))[0, 0] == 300
if not children[0]:
    os._exit(0 if right else 1)
print(right, os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
"""


@needs_fork
def test_a_callback_forks_and_both_programs_go_on() -> None:
    assert python(CALLBACK).split() == ["True", "0"]


FORKS_AT_ONCE = """
import signal, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
signal.alarm(200)
statuses = []
def forks():
    for k in range(4):
        product()
        pid = os.fork()
        if not pid:
            signal.alarm(200)
            child()
            os._exit(0)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
threads = [threading.Thread(target=forks) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(statuses), set(statuses), blas_threads() == before)
"""


@needs_fork
def test_forks_in_several_threads_at_once() -> None:
    assert python(PRODUCT + FORKS_AT_ONCE).split() == ["16", "{0}", "True"]


def test_a_fork_waits_for_those_inside_a_gate_and_lets_none_in() -> None:
    gate, events, entered = Gate(), [], threading.Event()

    def first() -> None:
        with gate.inside():
            entered.set()
            time.sleep(0.1)
            with gate.inside():  # would wait for itself if it waited
                events.append("first")

    def second() -> None:
        with gate.inside():
            events.append("second")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    entered.wait()
    with gate.inside(), gate.closed():
        threads[1].start()
        time.sleep(0.05)
        events.append("fork")
    for thread in threads:
        thread.join()
    assert events == ["first", "fork", "second"]


def _another_thread_can(work: Callable[[], object]) -> bool:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    return not thread.is_alive()


def test_interrupts_leave_no_gate_closed() -> None:
    gate = Gate()

    def enter() -> None:
        with gate.inside():
            pass

    def close() -> None:
        with gate.closed():
            pass

    for work in (enter, close):
        points = 0
        for _ in at_every_point(work, "hlo/support/forking.py"):
            points += 1
            assert _another_thread_can(close), (work, points)
        assert points > 2


ORDER = """
import os, signal, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from hloom.hlo.support.forking import Order, fork_lock
signal.alarm(120)
locks = {order: fork_lock(order) for order in reversed(Order)}
for first, second in zip(Order, list(Order)[1:]):
    held = threading.Event()
    def take_both():
        with locks[first]:
            held.set()
            time.sleep(0.05)
            with locks[second], locks[second]:
                pass
    thread = threading.Thread(target=take_both)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        with locks[first], locks[second]:
            os._exit(0)
    assert os.wait()[1] == 0
    thread.join()
print("done")
"""


@needs_fork
def test_a_fork_takes_locks_in_their_order() -> None:
    assert python(ORDER).split() == ["done"]


INTERRUPTED = """
import _thread, os, signal, threading, time, warnings
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it
warnings.simplefilter("ignore", DeprecationWarning)
from hloom.hlo.support.forking import Order, fork_lock
lock, held = fork_lock(Order.STORE), threading.Event()
def hold():
    with lock:
        held.set()
        time.sleep(0.3)
threading.Thread(target=hold).start()
held.wait()
threading.Timer(0.1, _thread.interrupt_main).start()
child = None
try:
    child = os.fork()
    if not child:
        with lock:
            os._exit(7)
    time.sleep(10)
except KeyboardInterrupt:
    pid, status = os.wait()
    with lock:
        print(os.waitstatus_to_exitcode(status))
"""


@needs_fork
def test_an_interrupt_while_a_fork_waits_comes_after_it() -> None:
    assert python(INTERRUPTED).split() == ["7"]
