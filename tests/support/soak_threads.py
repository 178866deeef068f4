"""16 threads do everything at once while the process is interrupted and forks; run by test_soak.py.

    python -m support.soak_threads SECONDS SEED

Each task checks its result against NumPy. The main thread does tasks too, and is interrupted at random moments: inside
tracing, compiling, loading and running. Forked children do a task of each kind. At the end it prints the numbers of
tasks, interrupts and forks; any failure is an exit status other than 0, with the error on stderr.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import hloom
import hloom.numpy as jnp
from hloom import lax

THREADS = 16
CHILD_SECONDS = 20

scale = hloom.jit(lambda x, y: x * 2 + y)
product = hloom.jit(lambda a, b: a @ b)
gradient = hloom.jit(hloom.grad(lambda x: jnp.sum(jnp.sin(x) * x)))
donating = hloom.jit(lambda x: lax.fori_loop(0, 50, lambda i, c: c + 1, x), donate_argnums=0)
shared = jnp.arange(100_000, dtype=jnp.float32)


def new_shape(random: Random) -> None:
    """A shape that was hardly used before."""
    x = np.arange(random.randrange(1, 3000), dtype=np.float32)
    np.testing.assert_allclose(scale(x, x), 3 * x)


def new_kernel(random: Random) -> None:
    """A program with kernels that were not compiled before, as a rule."""
    steps = [random.randrange(3) for _ in range(8)]

    def chain(x: Any, n: Any) -> Any:
        for step in steps:
            x = (x + 1, x * 0.5, n.maximum(x, 0.25))[step]
        return x

    x = np.linspace(-1, 1, 100, dtype=np.float32)
    np.testing.assert_allclose(hloom.jit(lambda x: chain(x, jnp))(x), chain(x, np), rtol=1e-5)


def products(random: Random) -> None:
    """Matrix products in a program and outside of one."""
    n = random.choice((8, 64, 300))
    a = np.full((n, n), 0.5, np.float32)
    expected = np.full((n, n), n * 0.25, np.float32)
    np.testing.assert_allclose(product(a, a), expected)
    np.testing.assert_allclose(jnp.asarray(a) @ jnp.asarray(a), expected)


def large_rows(random: Random) -> None:
    """Kernels that are split over the runtime's threads."""
    x = np.full(1 << random.randrange(16, 20), random.randrange(100), np.float32)
    np.testing.assert_array_equal(scale(x, x), 3 * x)


def gradients(random: Random) -> None:
    """A derivative."""
    x = np.linspace(0, 1, random.choice((5, 50)), dtype=np.float32)
    np.testing.assert_allclose(gradient(x), np.sin(x) + x * np.cos(x), rtol=1e-4, atol=1e-5)


def donations(random: Random) -> None:
    """A loop in the memory of its argument."""
    x = jnp.full(random.choice((10, 5000)), 3.0)
    for _ in range(3):
        x = donating(x)
    assert (np.asarray(x) == 153).all(), np.asarray(x)


def reads(random: Random) -> None:
    """All threads read one array."""
    assert float(shared[random.randrange(100_000)]) >= 0
    assert float(scale(shared, shared)[99_999]) == 3 * 99_999


def loops(random: Random) -> None:
    """A loop long enough to look for interrupts."""
    turns = random.randrange(1000, 300_000)
    assert int(counting(jnp.int32(0), turns)) == turns


counting = hloom.jit(lambda x, n: lax.while_loop(lambda s: s[1] < n, lambda s: (s[0] + 1, s[1] + 1), (x, 0))[0])

_kept: dict[int, list[tuple[Any, float]]] = {}


def keep(x: Any) -> Any:
    """A custom call that keeps its operand."""
    _kept.setdefault(threading.get_ident(), []).append((x, float(x[0])))
    return x + 1


def callbacks(random: Random) -> None:
    """Python functions in programs; what they kept is as it was."""
    value = float(random.randrange(1000))
    text = (
        "HloModule m\nENTRY e { x = f32[64] parameter(0) y = f32[64] add(x, x) "
        'z = f32[64] custom-call(y), custom_call_target="soak_keep" ROOT r = f32[64] multiply(z, z) }'
    )
    (result,) = hloom.run_hlo(text, np.full(64, value, np.float32))
    np.testing.assert_array_equal(result, np.full(64, (2 * value + 1) ** 2, np.float32))
    mine = _kept.get(threading.get_ident(), [])
    for array, first in mine:
        assert (np.asarray(array) == first).all(), (first, np.asarray(array))
    del mine[:-5]


TASKS: tuple[Callable[[Random], None], ...] = (
    new_shape, new_kernel, products, large_rows, gradients, donations, reads, loops, callbacks,
)  # fmt: skip


class Soak:
    """The threads, the main thread's interrupts, and the children."""

    def __init__(self, seconds: float, seed: int) -> None:
        self.end = time.monotonic() + seconds
        self.seed = seed
        self.failures: list[str] = []
        self.done = self.interrupts = self.forks = 0
        self.armed = False

    def failed(self, what: str) -> None:
        self.failures.append(f"{what}\n{traceback.format_exc()}")

    def is_over(self) -> bool:
        return time.monotonic() > self.end or bool(self.failures)

    def thread(self, number: int) -> None:
        random = Random(f"{self.seed} {number}")
        while not self.is_over():
            task = random.choice(TASKS)
            try:
                task(random)
            except BaseException:
                self.failed(f"thread {number}, {task.__name__}")
            self.done += 1

    def interrupt(self, *_: object) -> None:
        if self.armed:  # once for each task, and never in what counts it
            self.armed = False
            raise KeyboardInterrupt

    def main(self) -> None:
        random = Random(f"{self.seed} main")
        while not self.is_over():
            task = random.choice(TASKS)
            try:
                self.armed = True
                task(random)
                self.armed = False
            except KeyboardInterrupt:
                self.interrupts += 1
            except BaseException:
                self.armed = False
                self.failed(f"the main thread, {task.__name__}")

    def interrupter(self) -> None:
        random = Random(f"{self.seed} interrupts")
        while not self.is_over():
            time.sleep(random.uniform(0, 0.08))
            os.kill(os.getpid(), signal.SIGINT)

    def forker(self) -> None:
        while not self.is_over():
            child = os.fork()
            if not child:
                self.child()
            self.forks += 1
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status:
                self.failures.append(f"a child ended with {status}")
            time.sleep(0.2)

    def child(self) -> None:
        status = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(CHILD_SECONDS)
            random = Random(f"{self.seed} {self.forks}")
            for task in TASKS:
                task(random)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def run(self) -> None:
        random = Random(self.seed)
        for task in TASKS:  # an interrupt in the middle of an import breaks Python's own locks: import all before
            task(random)
        signal.signal(signal.SIGINT, self.interrupt)
        threads = [threading.Thread(target=self.thread, args=(number,)) for number in range(THREADS)]
        threads += [threading.Thread(target=work) for work in (self.interrupter, self.forker)]
        for thread in threads:
            thread.start()
        self.main()
        for thread in threads:
            thread.join()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for task in TASKS:  # everything still works
            task(random)


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork beside any thread
    hloom.register_custom_call("soak_keep", keep)
    seconds = float(sys.argv[1])
    faulthandler.dump_traceback_later(seconds + CHILD_SECONDS + 30, exit=True)
    soak = Soak(seconds, int(sys.argv[2]))
    soak.run()
    print(*soak.failures, sep="\n", file=sys.stderr)
    print(soak.done, soak.interrupts, soak.forks)
    sys.exit(bool(soak.failures))


if __name__ == "__main__":
    main()
