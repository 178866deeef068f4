"""What a fork of the process waits for, so that the child works.

A child has one thread, the one that forked. A lock that another thread held stays locked in the child for ever, and
what that thread was doing stays half done: a kernel in LLVM, a product in BLAS, an import. Most of these locks belong
to other libraries, and nobody can mend them in the child. So `os.fork` first waits until no thread is inside, keeps all
out while it copies the process, and then lets them go on, in both processes. It waits as long as one batch of kernels
compiles or one product runs; `subprocess` and `spawn` do not wait, since their children run another program.

    lock = fork_lock(Order.STORE)          a lock that a child finds free, and what it guards whole
    with PRODUCTS: ...                     several threads at once, but no fork meanwhile
    kept_out_of_forks(order, guard)        anything else: the fork happens within the block of `guard()`

A fork takes the locks in their order, which is the one in which a thread that holds several has taken them.
"""

from __future__ import annotations

import _thread
import enum
import importlib
import logging  # noqa: F401 - see the end
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

_PAUSE = 100e-6
_PACKAGES = frozenset(("hloom", "llvmlite", "ml_dtypes", "numba", "numpy", "opt_einsum", "optree", "scipy"))


class Order(enum.IntEnum):
    """The order in which locks are taken: a thread that holds one takes only those after it."""

    POOL = 0  # starting threads compiles their functions
    STORE = 1  # compiling uses Numba
    COMPILER = 2
    PRODUCTS = 3
    LEAF = 4  # held for a few instructions
    # The end of an object may take these in any thread, whatever that holds.
    LLVM = 5
    MEMORY = 6


_guards: list[tuple[Order, Callable[[], AbstractContextManager[Any]]]] = []


def kept_out_of_forks(order: Order, guard: Callable[[], AbstractContextManager[Any]]) -> None:
    """A fork happens within the block of `guard()`, whose start may wait."""
    _guards.append((order, guard))
    _guards.sort(key=lambda entry: entry[0])


def fork_lock(order: Order) -> Any:
    """A reentrant lock that is taken by every fork, so that a child finds it free. For the life of the process."""
    lock = threading.RLock()
    kept_out_of_forks(order, lambda: lock)
    return lock


class Gate:
    """`with gate:` several threads may be inside at once; a fork waits until all others have left."""

    def __init__(self) -> None:
        self._door = threading.RLock()
        self._inside: list[int] = []
        os.register_at_fork(after_in_child=self._only_this_thread)

    def __enter__(self) -> None:
        thread = _thread.get_ident()
        if thread in self._inside:  # a fork waits for this thread already
            self._inside.append(thread)
        else:
            with self._door:
                self._inside.append(thread)

    def __exit__(self, *_: object) -> None:
        self._inside.remove(_thread.get_ident())

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Within the block, no other thread is inside."""
        thread = _thread.get_ident()
        with self._door:
            while any(other != thread for other in self._inside):
                time.sleep(_PAUSE)
            yield

    def _only_this_thread(self) -> None:
        thread = _thread.get_ident()
        self._inside[:] = [inside for inside in self._inside if inside == thread]


PRODUCTS = Gate()
"""Around the calls of NumPy's or SciPy's BLAS and LAPACK from Python; within it a thread takes no other lock."""
kept_out_of_forks(Order.PRODUCTS, PRODUCTS.closed)


def _imported_elsewhere() -> bool:
    """Is another thread importing one of these packages? A child could never import what was half imported."""
    locks: dict[str, Callable[[], Any]] = getattr(importlib._bootstrap, "_module_locks", {})
    others = sys._current_frames().keys() - {_thread.get_ident()}
    return any(
        name.partition(".")[0] in _PACKAGES and getattr(found(), "owner", None) in others
        for name, found in locks.copy().items()
    )


def _within(guards: list[Callable[[], AbstractContextManager[Any]]]) -> Generator[None, None, None]:
    """Everything is held between the first `next` and `close`: with statements lose no lock to an interrupt."""
    if guards:
        with guards[0]():
            yield from _within(guards[1:])
    else:
        yield


def _interrupt_soon() -> None:
    """Interrupt the main thread after its hooks, in which Python would ignore it."""
    time.sleep(_PAUSE)
    main = threading.main_thread().ident
    if main is not None and callable(signal.getsignal(signal.SIGINT)):
        signal.pthread_kill(main, signal.SIGINT)  # it also ends a system call that waits


class _Fork:
    """The hooks of os.fork."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.RLock()
        self._thread = 0
        """The thread that forks."""
        self._held: Generator[None, None, None] | None = None
        self._interrupted = False

    def before(self) -> None:
        self._one_at_a_time.acquire()
        self._thread = _thread.get_ident()
        while True:
            try:
                while _imported_elsewhere():
                    time.sleep(_PAUSE)
                self._held = _within([guard for _, guard in _guards])
                next(self._held)
                if not _imported_elsewhere():
                    break
            except KeyboardInterrupt:  # an exception would not stop the fork; the parent gets it afterwards
                self._interrupted = True
            if self._held is not None:
                self._held.close()

    def after(self) -> None:
        if self._thread != _thread.get_ident():  # these hooks were registered while the fork had begun
            return
        self._thread = 0
        held, self._held = self._held, None
        if held is not None:
            held.close()
        self._one_at_a_time.release()

    def after_in_parent(self) -> None:
        interrupted, self._interrupted = self._interrupted, False
        self.after()
        if interrupted:
            _thread.start_new_thread(_interrupt_soon, ())

    def after_in_child(self) -> None:
        self._interrupted = False
        self.after()


_fork = _Fork()
# Logging is imported above, since hooks run last to first: its hook takes a lock that Numba needs, and a thread that
# compiles must be waited for before that.
os.register_at_fork(before=_fork.before, after_in_parent=_fork.after_in_parent, after_in_child=_fork.after_in_child)
